/* tests/test_guard.c -- the guard's policy: what an item takes of the engine and may take of the plain loop in, a block
   of plain items or the decision out. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/tuning/guard_internal.h"
#endif

static gpsti_guard_estimate estimate(double ns) {
    const gpsti_guard_estimate plain = {ns, ns};
    return plain;
}

/* The plain loop is far behind by the stages' clocks: decided, without an item of it. */
static void test_far_away_needs_no_block(void** state) {
    (void)state;
    gpsti_guard guard = GPST_ZERO;
    assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(1201.0), 100000), 0);
    assert_true(guard.decided);
    assert_false(guard.plain);
    assert_false(guard.report.measured);
    assert_int_equal(guard.report.plain_items, 0);
    assert_float_equal(guard.report.engine_ns, 1000.0, 1e-9);
    assert_float_equal(guard.report.plain_ns, 1201.0, 1e-9);
    assert_string_equal(guard.report.text, "the engine stays: the engine is about 1.20x the plain loop (estimated from "
                                           "clocks, not measured)");
    assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(900.0), 100000), 0); /* once is enough */
    assert_float_equal(guard.report.plain_ns, 1201.0, 1e-9);
}

/* It may be as good, or within 20 %: 1/64 of what is left is measured, 16 items at most. */
static void test_near_is_measured(void** state) {
    (void)state;
    static const struct {
        uint64_t n_left, n_items;
    } cases[] = {{64, 1}, {127, 1}, {128, 2}, {1023, 15}, {1024, 16}, {1 << 20, 16}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (double plain_ns = 100.0; plain_ns <= 1200.0; plain_ns += 1100.0) {
            gpsti_guard guard = GPST_ZERO;
            assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(plain_ns), cases[i].n_left), cases[i].n_items);
            assert_false(guard.decided);
        }
    }
}

/* Too few are left for a block, or nobody knows how many: the engine stays. */
static void test_few_are_left(void** state) {
    (void)state;
    static const uint64_t n_left[] = {0, 1, 63};
    for (size_t i = 0; i < sizeof n_left / sizeof n_left[0]; i++) {
        gpsti_guard guard = GPST_ZERO;
        assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(500.0), n_left[i]), 0);
        assert_true(guard.decided);
        assert_false(guard.plain);
    }
}

/* The block decides, whatever was expected: the plain loop must be faster by more than chance. */
static void test_a_block_decides(void** state) {
    (void)state;
    static const struct {
        int64_t block_ns;
        bool plain;
        const char* text;
    } cases[] = {{5000, true, "the plain loop stays: the engine is 0.50x the plain loop (measured)"},
                 {9790, true, "the plain loop stays: the engine is 0.98x the plain loop (measured)"},
                 {9810, false, "the engine stays: the engine is 0.98x the plain loop (measured)"},
                 {31415, false, "the engine stays: the engine is 3.14x the plain loop (measured)"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpsti_guard guard = GPST_ZERO;
        assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(1100.0), 640), 10);
        gpsti_guard_end_block(&guard, 10, cases[i].block_ns);
        assert_true(guard.decided);
        assert_true(guard.report.measured);
        assert_int_equal(guard.plain, cases[i].plain);
        assert_int_equal(guard.report.plain_items, 10);
        assert_true(guard.report.plain_ns * 10.0 == (double)cases[i].block_ns);
        assert_string_equal(guard.report.text, cases[i].text);
    }
}

/* A block of fewer items than were asked for, at a source's end, says what it says. */
static void test_a_short_block(void** state) {
    (void)state;
    gpsti_guard guard = GPST_ZERO;
    assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(1000.0), 640), 10);
    gpsti_guard_end_block(&guard, 2, 1000);
    assert_true(guard.plain);
    assert_float_equal(guard.report.plain_ns, 500.0, 1e-9);
}

/* Other clocks: all over again, but the items that were measured remain counted. */
static void test_forgetting(void** state) {
    (void)state;
    gpsti_guard guard = GPST_ZERO;
    assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(1000.0), 640), 10);
    gpsti_guard_end_block(&guard, 10, 1000);
    assert_true(guard.plain);
    gpsti_guard_forget(&guard);
    assert_false(guard.decided || guard.plain || guard.report.measured);
    assert_string_equal(guard.report.text, "");
    assert_float_equal(guard.report.engine_ns, 0.0, 1e-9);
    assert_int_equal(guard.report.plain_items, 10);
    assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(1000.0), 640), 10);
    gpsti_guard_end_block(&guard, 10, 20000);
    assert_false(guard.plain);
    assert_int_equal(guard.report.plain_items, 20);
}

/* 16 items: services of cores and disks, busy times of a device, and the source. Said: of disks the busy time; of cores
   that were busy with us and others the CPU time alone, with what waited for a disk meanwhile, and no more than ours. */
static void test_what_is_expected(void** state) {
    (void)state;
    static const struct {
        int64_t cpu_ns;
        uint32_t cores;
        double others;
        float host_ns;
    } cases[] = {{800, 2, 0.0, 100 + 100 + 10},   {1399, 2, 0.0, 100 + 100 + 10}, {1401, 2, 0.0, 87.5625f},
                 {1000, 1, 0.0, 62.5f},           {9000, 4, 0.0, 250},            {800, 2, 0.29, 100 + 100 + 10},
                 {800, 2, 0.31, 50},              {1300, 2, 0.46, 67.5f},         {1300, 2, 0.3, 81.25f},
                 {800, 2, -1.0, 50},              {2100, 2, -1.0, 125},           {100, 64, 0.99, 6.25f}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpsti_tuner_window window = GPST_ZERO;
        window.n_items = 16;
        window.wall_ns = 1000;
        window.cpu_ns = cases[i].cpu_ns;
        for (int r = 0; r <= (int)GPST_RESOURCE_DISK_OUT; r++) {
            window.service_ns[r] = r == (int)GPST_RESOURCE_NONE ? 1000000 : 1600;
            window.busy_ns[r] = r == (int)GPST_RESOURCE_DISK_OUT ? 3200 : 160;
        }
        const gpsti_guard_estimate plain = gpsti_guard_expect(&window, cases[i].cores, cases[i].others, 7.0);
        assert_float_equal((float)plain.ns, 3 * 100.0f + 3 * 10.0f + 7.0f, 1e-3);
        assert_float_equal((float)plain.said_ns, cases[i].host_ns + 3 * 10.0f, 1e-3);
    }
}

/* Whatever the services say, no more is said than the cores could compute that other programs left, and nothing where
   that is not more than the engine gave. */
static void test_no_more_is_said_than_the_cores_give(void** state) {
    (void)state;
    uint64_t random = test_seed(31);
    for (int i = 0; i < 2000; i++) {
        const uint32_t cores = 1 + (uint32_t)(test_random(&random) % 16);
        const double others = (double)(test_random(&random) % 100) / 100.0;
        gpsti_tuner_window window = GPST_ZERO;
        gpsti_guard guard = GPST_ZERO;
        window.n_items = 100;
        window.wall_ns = 1000000;
        window.cpu_ns = (int64_t)((0.71 - others + 0.3 * (double)(test_random(&random) % 100) / 100.0) * cores * 1e6);
        window.cpu_ns = window.cpu_ns > 0 ? window.cpu_ns : 0;
        for (int r = (int)GPST_RESOURCE_DISK_IN; r <= (int)GPST_RESOURCE_CPU; r++)
            window.service_ns[r] = window.busy_ns[r] = (int64_t)(test_random(&random) % (20000000));
        window.service_ns[GPST_RESOURCE_CPU] += window.cpu_ns;
        const double engine_ns = 1e4, most = (1.0 - others) * (double)cores;
        (void)gpsti_guard_ask(&guard, engine_ns, gpsti_guard_expect(&window, cores, others, 0.0), 0);
        const double said = guard.report.plain_ns / engine_ns;
        assert_false(guard.report.measured);
        if (0.71 - others > 0.0)
            assert_true(said <= most * 1.000001);
        assert_true(said == 0.0 || said > 1.0);
        assert_non_null(strstr(guard.report.text, "not measured"));
        assert_null(strstr(guard.report.text, "at least"));
    }
}

/* Reads side by side on a disk: decided by their services, said by the disk's busy time. */
static void test_what_is_said(void** state) {
    (void)state;
    static const struct {
        double said_ns, plain_ns;
        const char* text;
    } cases[] = {
        {1900.0, 1900.0,
         "the engine stays: the engine is about 1.90x the plain loop (estimated from clocks, not measured)"},
        {1000.0, 0.0, "the engine stays: the plain loop was not measured"},
        {40.0, 0.0, "the engine stays: the plain loop was not measured"},
        {0.0, 0.0, "the engine stays: the plain loop was not measured"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpsti_guard guard = GPST_ZERO;
        const gpsti_guard_estimate plain = {17000.0, cases[i].said_ns};
        assert_int_equal(gpsti_guard_ask(&guard, 1000.0, plain, 100000), 0);
        assert_true(guard.decided && !guard.plain);
        assert_true(guard.report.plain_ns == cases[i].plain_ns);
        assert_string_equal(guard.report.text, cases[i].text);
    }
}

/* A plain loop that stays is looked at in blocks: two in a row a fifth slower than the first, and it is over. */
static void test_a_plain_loop_that_stays(void** state) {
    (void)state;
    static const struct {
        int64_t item_ns;
        bool again;
    } blocks[] = {{10, false}, {13, false}, {10, false}, {13, false}, {11, false}, {13, false}, {13, true}};
    gpsti_guard guard = GPST_ZERO;
    assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(1000.0), 640), 10);
    gpsti_guard_end_block(&guard, 10, 100);
    assert_true(guard.plain);
    for (size_t b = 0; b < sizeof blocks / sizeof blocks[0]; b++)
        assert_int_equal(gpsti_guard_watch(&guard, 64, 64 * blocks[b].item_ns), blocks[b].again);
    assert_int_equal(guard.report.plain_items, 10 + 7 * 64);
    gpsti_guard_forget(&guard);
    assert_false(gpsti_guard_watch(&guard, 64, 64 * 1000)); /* the first block of another loop */
}

/* Nothing was measured: nothing is compared, now. */
static void test_nothing_is_known(void** state) {
    (void)state;
    gpsti_guard guard = GPST_ZERO;
    assert_int_equal(gpsti_guard_ask(&guard, 0.0, estimate(1000.0), 640), 0);
    assert_int_equal(gpsti_guard_ask(&guard, 1000.0, estimate(0.0), 640), 0);
    assert_false(guard.decided);
    assert_string_equal(guard.report.text, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_away_needs_no_block),
        cmocka_unit_test(test_near_is_measured),
        cmocka_unit_test(test_few_are_left),
        cmocka_unit_test(test_a_block_decides),
        cmocka_unit_test(test_a_short_block),
        cmocka_unit_test(test_forgetting),
        cmocka_unit_test(test_what_is_expected),
        cmocka_unit_test(test_no_more_is_said_than_the_cores_give),
        cmocka_unit_test(test_what_is_said),
        cmocka_unit_test(test_a_plain_loop_that_stays),
        cmocka_unit_test(test_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
