/* tests/test_guard.c -- the guard's policy: nanoseconds in, the next block or the decision out. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/tuning/guard_internal.h"
#endif

#define MS 1e6
#define PAUSE_MS 0.12 /* workers go to sleep and are called again: so much on 2 cores */
enum { ENGINE = 1, SERIAL = 2, INSIDE = 3 };

static gpsti_guard_input input_of(double engine_ms, double serial_ms, double inside_ms, double elapsed_ms,
                                  uint64_t n_left) {
    gpsti_guard_input input;
    input.engine_ns = engine_ms * MS;
    input.plain_ns[0] = serial_ms * MS;
    input.plain_ns[1] = inside_ms * MS;
    input.elapsed_ns = (int64_t)(elapsed_ms * MS);
    input.n_left = n_left;
    return input;
}

/* A run whose loops take what they take, whatever is expected of them. Gives the loop that stays. */
static uint32_t run(gpsti_guard* guard, const double real_ms[4], double expected_serial, double expected_inside,
                    uint64_t n_items, double* cost_part) {
    double elapsed_ms = 20.0 * real_ms[ENGINE], cost_ms = 0.0;
    uint64_t done = 20;
    memset(guard, 0, sizeof *guard);
    while (!guard->decided && done + 64 < n_items) {
        uint64_t n = 0;
        done += 64;
        elapsed_ms += 64.0 * real_ms[ENGINE];
        const gpsti_guard_input input = input_of(real_ms[ENGINE], expected_serial, expected_inside, elapsed_ms,
                                                 n_items - done);
        const uint32_t loop = gpsti_guard_ask(guard, &input, &n);
        if (n == 0)
            continue;
        assert_in_range(loop, SERIAL, INSIDE);
        const double block_ms = (double)n * real_ms[loop];
        const double lost_ms = block_ms - (double)n * real_ms[ENGINE] + real_ms[loop] + PAUSE_MS;
        done += n;
        elapsed_ms += block_ms;
        cost_ms += lost_ms > 0.0 ? lost_ms : 0.0;
        gpsti_guard_note(guard, loop, n, (int64_t)(block_ms * MS), (int64_t)(lost_ms * MS));
    }
    *cost_part = cost_ms / (elapsed_ms + (double)(n_items - done) * real_ms[ENGINE]);
    return guard->decided ? guard->loop : ENGINE;
}

typedef struct guard_case {
    const char* name;
    double real[4]; /* by loop, ms an item */
    double expected_serial, expected_inside;
    uint64_t n_items;
    uint32_t stays;
    bool measured;
} guard_case;

static const guard_case cases[] = {
    {"16 cores, decode", {0, 9.4, 150, 148}, 160, 158, 240, ENGINE, false},
    {"16 cores, decode, long", {0, 9.4, 150, 148}, 160, 158, 20000, ENGINE, true},
    {"2 cores, decode", {0, 15, 30, 0}, 32, 0, 2000, ENGINE, true},
    {"one core, nothing to gain", {0, 10, 9.9, 0}, 10, 0, 2000, ENGINE, true},
    {"tiny items", {0, 0.02, 0.005, 0}, 0.005, 0, 10000, SERIAL, true},
    {"bandwidth, expected dearer", {0, 4, 3, 3.5}, 8, 8, 1000, SERIAL, true},
    {"brief items", {0, 0.0035, 0.006, 0}, 0.006, 0, 10000, ENGINE, true},
    {"brief items, a short run", {0, 0.018, 0.03, 0}, 0.03, 0, 400, ENGINE, false},
    {"one big kernel", {0, 30, 40, 12}, 41, 21, 5000, INSIDE, true},
    {"too short to know", {0, 10, 12, 0}, 12, 0, 100, ENGINE, false},
    {"too short, near", {0, 10, 8.5, 0}, 8.5, 0, 100, ENGINE, false},
    {"too short, but to gain", {0, 10, 6, 0}, 7, 0, 100, SERIAL, true},
    {"expected wrongly", {0, 10, 12, 0}, 7, 0, 1000, ENGINE, true},
};

/* The best loop stays, and finding it takes no more than a hundredth of the run. */
static void test_the_best_stays(void** state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const guard_case* const c = &cases[i];
        gpsti_guard guard;
        double cost_part = 0.0;
        const uint32_t stays =
            run(&guard, c->real, c->expected_serial, c->expected_inside, c->n_items, &cost_part);
        printf("  %-28s loop %u, cost %.2f %%, %s\n", c->name, stays, 100.0 * cost_part, guard.report.text);
        if (stays != c->stays || guard.report.measured != c->measured || cost_part > 0.0101)
            fail_msg("%s: loop %u, measured %d, cost %g", c->name, stays, (int)guard.report.measured, cost_part);
        if (guard.decided)
            assert_true(guard.report.engine_ns > 0.0 && guard.report.plain_serial_ns > 0.0);
    }
}

/* Each loop is measured twice, in turn, between windows of the engine. */
static void test_blocks_are_interleaved(void** state) {
    (void)state;
    static const uint32_t wanted[] = {SERIAL, INSIDE, SERIAL, INSIDE};
    const gpsti_guard_input input = input_of(1, 2, 1.5, 1000, 100000);
    gpsti_guard guard;
    uint64_t n = 0;
    memset(&guard, 0, sizeof guard);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(gpsti_guard_ask(&guard, &input, &n), wanted[i]);
        assert_in_range(n, 1, 16);
        gpsti_guard_note(&guard, wanted[i], n, (int64_t)((double)n * 2.0 * MS), (int64_t)(3.0 * MS));
    }
    assert_false(guard.decided);
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), ENGINE);
    assert_int_equal(n, 0);
    assert_true(guard.decided);
    assert_int_equal(guard.loop, ENGINE);
    assert_int_equal(guard.report.cost_ns, 12000000);
    assert_string_equal(guard.report.text, "engine stays: the engine is 2.00x plain-serial (measured)");
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), ENGINE); /* and no more */
    assert_int_equal(guard.n_windows, 5);
}

/* A run of unknown length has only its past to spend from: the guard waits, and says what it expects meanwhile. */
static void test_unknown_length_waits(void** state) {
    (void)state;
    gpsti_guard_input input = input_of(1, 2, 0, 100, 0);
    gpsti_guard guard;
    uint64_t n = 0;
    memset(&guard, 0, sizeof guard);
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), ENGINE);
    assert_false(guard.decided);
    assert_string_equal(guard.report.text, "engine stays: the engine is 2.00x plain-serial (by its stages' clocks)");
    input.elapsed_ns = (int64_t)(1000.0 * MS);
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), SERIAL);
    assert_int_equal(n, 1);
}

/* A loop that is expected to gain is tried in a run of any length, and stays at once where it does. */
static void test_a_gain_need_not_be_afforded(void** state) {
    (void)state;
    const gpsti_guard_input input = input_of(1.0, 0.5, 0.0, 20, 64);
    gpsti_guard guard;
    uint64_t n = 0;
    memset(&guard, 0, sizeof guard);
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), SERIAL);
    assert_int_equal(n, 4); /* a sixteenth of what is left */
    assert_false(guard.decided);
    gpsti_guard_note(&guard, SERIAL, n, (int64_t)(4 * 0.6 * MS), 0);
    assert_true(guard.decided);
    assert_int_equal(guard.loop, SERIAL);
    assert_string_equal(guard.report.text, "plain-serial stays: the engine is 0.60x plain-serial (measured)");
}

/* What is only expected is not preferred to what was measured and is about as good. */
static void test_the_measured_loop_is_preferred(void** state) {
    (void)state;
    const gpsti_guard_input input = input_of(1.0, 0.5, 0.49, 20, 64);
    gpsti_guard guard;
    uint64_t n = 0;
    memset(&guard, 0, sizeof guard);
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), SERIAL);
    gpsti_guard_note(&guard, SERIAL, n, (int64_t)(4 * 0.5 * MS), 0);
    assert_true(guard.decided);
    assert_int_equal(guard.loop, SERIAL);
}

/* Found to be no faster, it is not tried a second time: that the run cannot afford. */
static void test_a_gain_that_was_none_is_not_tried_again(void** state) {
    (void)state;
    const gpsti_guard_input input = input_of(1.0, 0.5, 0.0, 20, 64);
    gpsti_guard guard;
    uint64_t n = 0;
    memset(&guard, 0, sizeof guard);
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), SERIAL);
    gpsti_guard_note(&guard, SERIAL, n, (int64_t)(4 * 0.99 * MS), 0);
    assert_false(guard.decided);
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), ENGINE);
    assert_int_equal(n, 0);
    assert_true(guard.decided);
    assert_int_equal(guard.loop, ENGINE);
}

static void test_forgetting_keeps_the_cost(void** state) {
    (void)state;
    const gpsti_guard_input input = input_of(1, 2, 0, 1000, 0);
    gpsti_guard guard;
    uint64_t n = 0;
    memset(&guard, 0, sizeof guard);
    gpsti_guard_note(&guard, SERIAL, 1, (int64_t)MS, (int64_t)(10.0 * MS));
    gpsti_guard_note(&guard, SERIAL, 1, (int64_t)MS, -5); /* a block that was faster costs nothing */
    gpsti_guard_forget(&guard);
    assert_int_equal(guard.n_items[0], 0);
    assert_int_equal(guard.report.cost_ns, 10000000);
    assert_int_equal(guard.report.plain_items, 2);
    assert_int_equal(gpsti_guard_ask(&guard, &input, &n), ENGINE); /* all is spent */
    assert_int_equal(n, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_stays),
        cmocka_unit_test(test_blocks_are_interleaved),
        cmocka_unit_test(test_unknown_length_waits),
        cmocka_unit_test(test_a_gain_need_not_be_afforded),
        cmocka_unit_test(test_the_measured_loop_is_preferred),
        cmocka_unit_test(test_a_gain_that_was_none_is_not_tried_again),
        cmocka_unit_test(test_forgetting_keeps_the_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
