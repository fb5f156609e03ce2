/* tests/test_inside.c -- every core inside a kernel, or one thread: nanoseconds in, the way of the next kernel out. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/workers/inside_internal.h"
#endif

#define US 1000
enum { MOST = 16 };

typedef struct inside_case {
    const char* name;
    int64_t about_us, alone_us; /* a kernel on one thread: as it is thought, as it is */
    int64_t wide_us[MOST];      /* the kernels on every core, the last n_again of them again and again */
    uint32_t n_wide, n_again;
    uint32_t n_kernels;
    uint32_t n_alone;           /* of them on one thread */
} inside_case;

static const inside_case cases[] = {
    {"free cores", 1200, 1500, {350, 80}, 2, 1, 500, 0},
    {"a hiccup", 1200, 1500, {80, 80, 80, 80, 4000, 80}, 6, 1, 500, 0},
    {"a hiccup at the start", 1200, 1500, {4000, 80}, 2, 1, 500, 1},
    {"threads on one core for a while", 1200, 1500, {8000, 8000, 80}, 3, 1, 500, 9},
    {"a slow kernel is not what was thought", 1200, 9000, {4600}, 1, 1, 500, 1},
    {"a fast kernel on one core of two", 1200, 400, {700}, 1, 1, 500, 0}, /* below what is thought: not tried */
    {"two busy cores", 1200, 900, {7000}, 1, 1, 80, 76},
    {"two busy cores, mostly", 1200, 900, {7000, 500, 7000, 500}, 4, 4, 80, 73},
    {"busy, but faster in the mean", 1200, 4000, {500, 7000}, 2, 2, 500, 1},
};

static uint32_t run(const inside_case* c) {
    gpsti_inside inside;
    uint32_t n_alone = 0, w = 0;
    gpsti_inside_init(&inside, c->about_us * US);
    for (uint32_t i = 0; i < c->n_kernels; i++) {
        const bool wide = gpsti_inside_wants(&inside);
        n_alone += wide ? 0 : 1;
        gpsti_inside_note(&inside, (wide ? c->wide_us[w] : c->alone_us) * US);
        if (wide && ++w == c->n_wide)
            w -= c->n_again;
    }
    return n_alone;
}

static void test_one_thread_where_all_take_longer(void** state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint32_t n_alone = run(&cases[i]);
        if (n_alone != cases[i].n_alone)
            fail_msg("%s: %u on one thread, not %u", cases[i].name, n_alone, cases[i].n_alone);
    }
}

/* One has one thread, and says what that takes: no doubt, and those after it have every core again. */
static void test_sounding(void** state) {
    (void)state;
    gpsti_inside inside;
    gpsti_inside_init(&inside, 1200 * US);
    gpsti_inside_note(&inside, 90 * US);
    gpsti_inside_sound(&inside);
    assert_false(gpsti_inside_wants(&inside));
    assert_false(gpsti_inside_doubts(&inside));
    gpsti_inside_note(&inside, 750 * US);
    assert_int_equal(inside.alone_ns, 750 * US);
    assert_true(gpsti_inside_wants(&inside));
    gpsti_inside_note(&inside, 800 * US); /* two took 890 us: less than twice 750 */
    assert_true(gpsti_inside_wants(&inside));
    gpsti_inside_note(&inside, 1500 * US);
    assert_false(gpsti_inside_wants(&inside)); /* now there is a doubt, of its own length */
    gpsti_inside_sound(&inside);
    gpsti_inside_note(&inside, 750 * US);
    assert_true(gpsti_inside_wants(&inside));
}

/* One kernel on one thread may be chance, eight are not. */
static void test_first_doubt(void** state) {
    (void)state;
    gpsti_inside inside;
    gpsti_inside_init(&inside, 100 * US);
    assert_false(gpsti_inside_doubts(&inside));
    gpsti_inside_note(&inside, 50 * US);
    assert_false(gpsti_inside_doubts(&inside));
    gpsti_inside_note(&inside, 500 * US);
    assert_true(gpsti_inside_doubts(&inside));
    gpsti_inside_note(&inside, 100 * US); /* that was on one thread */
    assert_false(gpsti_inside_doubts(&inside));
    gpsti_inside_note(&inside, 500 * US);
    for (int i = 0; i < 8; i++) {
        assert_false(gpsti_inside_wants(&inside));
        assert_false(gpsti_inside_doubts(&inside));
        gpsti_inside_note(&inside, 100 * US);
    }
    assert_true(gpsti_inside_wants(&inside));
}

/* By what most of them take beyond the shortest. */
static void test_kernels_that_are_often_late(void** state) {
    (void)state;
    gpsti_inside inside;
    gpsti_inside_init(&inside, 1200 * US);
    assert_int_equal(gpsti_inside_late_ns(&inside), 0);
    gpsti_inside_note(&inside, 1000 * US);
    assert_int_equal(gpsti_inside_late_ns(&inside), 0);
    gpsti_inside_note(&inside, 90 * US);
    gpsti_inside_note(&inside, 90 * US);
    assert_int_equal(gpsti_inside_late_ns(&inside), 0); /* one is chance */
    gpsti_inside_note(&inside, 390 * US);
    assert_int_equal(gpsti_inside_late_ns(&inside), 100 * US);
    gpsti_inside_note(&inside, 80 * US);
    assert_int_equal(gpsti_inside_late_ns(&inside), 82500); /* (90 + 90 + 390 + 80) / 4 - 80 */
    gpsti_inside_note(&inside, 9000 * US); /* all together no better than one thread */
    gpsti_inside_note(&inside, 1200 * US);
    for (int i = 0; i < 3; i++)
        gpsti_inside_note(&inside, 180 * US);
    assert_int_equal(gpsti_inside_late_ns(&inside), 100 * US); /* those before are of another time, but for the shortest */
    for (int i = 0; i < 61; i++)
        gpsti_inside_note(&inside, 180 * US);
    assert_int_equal(inside.n, 32);
    assert_int_equal(gpsti_inside_late_ns(&inside), (32 * 180 - 90) * US / 31 - 80 * US);
}

/* A sixteenth and a microsecond of each thread's at least. */
static void test_what_kernels_lose(void** state) {
    (void)state;
    gpsti_inside inside;
    gpsti_inside_init(&inside, 1200 * US);
    assert_int_equal(gpsti_inside_lost_ns(&inside, 320 * US, 16), 36 * US);
    for (int i = 0; i < 8; i++)
        gpsti_inside_note(&inside, (i % 2 ? 400 : 100) * US);
    const int64_t late_ns = gpsti_inside_late_ns(&inside);
    assert_int_equal(late_ns, (4 * 100 + 3 * 400) * US / 7 - 100 * US);
    assert_int_equal(gpsti_inside_lost_ns(&inside, 250 * US, 16), late_ns);
    assert_int_equal(gpsti_inside_lost_ns(&inside, 250 * US, 200), 200 * US + 250 * US / 16);
}

/* As many as the threads of the shortest, less what one takes on all of them. */
static void test_what_one_thread_takes(void** state) {
    (void)state;
    gpsti_inside inside;
    gpsti_inside_init(&inside, 1200 * US);
    assert_int_equal(gpsti_inside_alone_more_ns(&inside, 16), 0);
    gpsti_inside_note(&inside, 300 * US);
    gpsti_inside_note(&inside, 100 * US);
    assert_int_equal(gpsti_inside_alone_more_ns(&inside, 16), (1600 - 200) * US);
    assert_int_equal(gpsti_inside_alone_more_ns(&inside, 1), 0);
}

/* One, eight, 64, and no more than some thousands. */
static void test_every_core_has_another_turn(void** state) {
    (void)state;
    static const uint32_t pauses[] = {1, 8, 64, 512, 4096, 4096};
    gpsti_inside inside;
    gpsti_inside_init(&inside, 100 * US);
    for (size_t i = 0; i < sizeof pauses / sizeof pauses[0]; i++) {
        assert_true(gpsti_inside_wants(&inside));
        gpsti_inside_note(&inside, 101 * US);
        for (uint32_t k = 0; k < pauses[i]; k++) {
            assert_false(gpsti_inside_wants(&inside));
            gpsti_inside_note(&inside, 100 * US);
        }
    }
    assert_true(gpsti_inside_wants(&inside));
    gpsti_inside_note(&inside, 100 * US); /* no longer is enough */
    assert_true(gpsti_inside_wants(&inside));
}

/* Not expected to be better: tried after eight, and if it is not, after 64. */
static void test_every_core_is_put_off(void** state) {
    (void)state;
    gpsti_inside inside;
    gpsti_inside_init(&inside, 1200 * US);
    gpsti_inside_put_off(&inside);
    for (uint32_t n = 8; n <= 64; n *= 8) {
        assert_false(gpsti_inside_doubts(&inside));
        for (uint32_t k = 0; k < n; k++) {
            assert_false(gpsti_inside_wants(&inside));
            gpsti_inside_note(&inside, 400 * US);
        }
        assert_true(gpsti_inside_wants(&inside));
        gpsti_inside_note(&inside, 5000 * US);
    }
    assert_false(gpsti_inside_wants(&inside));
}

/* A thousand good kernels do not outweigh ten bad ones. */
static void test_what_was_long_ago_says_little(void** state) {
    (void)state;
    gpsti_inside inside;
    int n_bad = 0;
    gpsti_inside_init(&inside, 1000 * US);
    for (int i = 0; i < 1000; i++)
        gpsti_inside_note(&inside, 100 * US);
    for (; n_bad < 1000 && gpsti_inside_wants(&inside); n_bad++)
        gpsti_inside_note(&inside, 7000 * US);
    assert_in_range(n_bad, 2, 10);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_thread_where_all_take_longer),
        cmocka_unit_test(test_sounding), cmocka_unit_test(test_first_doubt),
        cmocka_unit_test(test_kernels_that_are_often_late),
        cmocka_unit_test(test_what_kernels_lose),
        cmocka_unit_test(test_what_one_thread_takes),
        cmocka_unit_test(test_every_core_has_another_turn),
        cmocka_unit_test(test_every_core_is_put_off),
        cmocka_unit_test(test_what_was_long_ago_says_little),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
