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
    assert_string_equal(guard.report.text,
                        "the engine stays: the engine is at least 1.20x the plain loop (by its stages' clocks)");
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

/* 16 items: services of cores and disks, busy times of a device, and the source. At least: of disks the busy time, of busy
   cores the CPU time, where services ran side by side. */
static void test_what_is_expected(void** state) {
    (void)state;
    static const struct {
        int64_t cpu_ns;
        uint32_t cores;
        float least_ns;
    } cases[] = {{800, 2, 100 + 100 + 10},
                 {1399, 2, 100 + 100 + 10},
                 {1401, 2, 100 + 87.5625f + 10},
                 {1000, 1, 100 + 62.5f + 10},
                 {9000, 4, 100 + 100 + 10}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpsti_tuner_window window = GPST_ZERO;
        window.n_items = 16;
        window.wall_ns = 1000;
        window.cpu_ns = cases[i].cpu_ns;
        for (int r = 0; r <= (int)GPST_RESOURCE_DISK_OUT; r++) {
            window.service_ns[r] = r == (int)GPST_RESOURCE_NONE ? 1000000 : 1600;
            window.busy_ns[r] = r == (int)GPST_RESOURCE_DISK_OUT ? 3200 : 160;
        }
        const gpsti_guard_estimate plain = gpsti_guard_expect(&window, cases[i].cores, 7.0);
        assert_float_equal((float)plain.ns, 3 * 100.0f + 3 * 10.0f + 7.0f, 1e-3);
        assert_float_equal((float)plain.least_ns, cases[i].least_ns + 3 * 10.0f + 7.0f, 1e-3);
    }
}

/* Reads side by side on a disk: decided by their services, said by the disk's busy time. */
static void test_the_least_is_said(void** state) {
    (void)state;
    gpsti_guard guard = GPST_ZERO;
    const gpsti_guard_estimate plain = {17000.0, 1900.0};
    assert_int_equal(gpsti_guard_ask(&guard, 1000.0, plain, 100000), 0);
    assert_true(guard.decided && !guard.plain);
    assert_string_equal(guard.report.text,
                        "the engine stays: the engine is at least 1.90x the plain loop (by its stages' clocks)");
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
        cmocka_unit_test(test_the_least_is_said),
        cmocka_unit_test(test_a_plain_loop_that_stays),
        cmocka_unit_test(test_nothing_is_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
