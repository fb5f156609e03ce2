/* tests/test_tuner_slots.c -- how many slots are worth what their memory takes, in figures of machines that were
   measured: no clock is read here. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/tuning/tuner_internal.h"
#endif

#define MS ((int64_t)1000000)
#define MIB ((uint64_t)1 << 20)

/* What a run of n_left items takes on n slots, where memory is made for one after the other. */
static double run_ms(double n_left, double item_ms, double slot_ms, double n) {
    return n * slot_ms + n_left * item_ms / n;
}

typedef struct case_of_slots {
    uint64_t n_left;
    int64_t item_us, slot_us;
    uint32_t slots;
} case_of_slots;

static void test_as_many_as_pay(void** state) {
    (void)state;
    static const case_of_slots cases[] = {
        {39, 24000, 57000, 4}, /* frames of 88 MB on an H200 */
        {197, 700, 1700, 9},   /* files of 4 MiB and 256 KiB */
        {63, 5000, 1100, 16},  /* JPEGs */
        {199, 400, 2200, 6},   /* the files again, of which nothing but the beginning was seen */
        {39, 5100, 50000, 3},  /* so of the frames: three is the least */
        {1, 1, 1000000, 3},
        {UINT32_MAX, 1000000000, 1, 1000000},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        const case_of_slots* const k = &cases[c];
        const uint32_t n = gpsti_tuner_slots_worth(k->n_left, k->item_us * 1000, k->slot_us * 1000);
        const double items = (double)k->n_left, item_ms = (double)k->item_us / 1e3, slot_ms = (double)k->slot_us / 1e3;
        assert_int_equal(n, k->slots);
        if (n <= 3 || n == 1000000)
            continue;
        assert_true(run_ms(items, item_ms, slot_ms, n) <= run_ms(items, item_ms, slot_ms, n + 1.0) * 1.01);
        assert_true(run_ms(items, item_ms, slot_ms, n) <= run_ms(items, item_ms, slot_ms, n - 1.0));
    }
}

static void test_any_number_where_nothing_is_known(void** state) {
    (void)state;
    assert_int_equal(gpsti_tuner_slots_worth(100, 0, MS), 0);
    assert_int_equal(gpsti_tuner_slots_worth(100, MS, 0), 0);
    assert_int_equal(gpsti_tuner_slots_worth(100, -MS, MS), 0);
    assert_int_equal(gpsti_tuner_slots_worth(0, MS, MS), 3);
}

/* By bytes: several slots are half made at the time, or one is and the others are not. */
static void test_price_of_a_slot(void** state) {
    (void)state;
    assert_int_equal(gpsti_tuner_slot_ns(12 * MS, 4 * MIB, 4 * MIB), 12 * MS);
    assert_int_equal(gpsti_tuner_slot_ns(12 * MS, 24 * MIB, 4 * MIB), 2 * MS);
    assert_int_equal(gpsti_tuner_slot_ns(12 * MS, 5 * MIB, 4 * MIB) * 5, 48 * MS);
    assert_int_equal(gpsti_tuner_slot_ns(12 * MS, 3 * MIB, 4 * MIB), 12 * MS); /* given back meanwhile */
    assert_int_equal(gpsti_tuner_slot_ns(12 * MS, 0, 0), 12 * MS);
    assert_int_equal(gpsti_tuner_slot_ns(12 * MS, 4 * MIB, 0), 12 * MS);
    assert_int_equal(gpsti_tuner_slot_ns(0, 4 * MIB, MIB), 0);
}

/* As much again, and no less than any slot of a device takes. */
static void test_price_of_what_nobody_has_seen(void** state) {
    (void)state;
    assert_int_equal(gpsti_tuner_unseen_slot_ns(25 * MS), 50 * MS);
    assert_int_equal(gpsti_tuner_unseen_slot_ns(MS / 4), MS / 2);
    assert_int_equal(gpsti_tuner_unseen_slot_ns(MS / 4 + 1), MS / 2 + 2);
    assert_int_equal(gpsti_tuner_unseen_slot_ns(0), MS / 2);
}

/* As many as begin while one is worked on, one whose turn it is, and no less than two. */
static void test_slots_that_get_memory_at_once(void** state) {
    (void)state;
    static const struct {
        int64_t slot_us, file_us, device_us;
        bool is_first;
        uint32_t n;
    } rows[] = {{900, 700, 0, false, 2}, /* files of 4 MiB and 256 KiB */
                {900, 5000, 0, false, 7}, /* JPEGs */
                {1000, 900, 100, false, 2}, {1000, 900, 101, false, 3}, {1000, 900, 9000, true, 2},
                {1000, 0, 0, false, 2}, {0, 1000, 0, false, 0}}; /* the last: nobody made any */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gpsti_tuner_costs costs;
        memset(&costs, 0, sizeof costs);
        costs.service_ns[GPST_RESOURCE_DISK_IN] = rows[i].file_us * 1000;
        costs.service_ns[GPST_RESOURCE_H2D] = rows[i].device_us * 500;
        costs.service_ns[GPST_RESOURCE_D2H] = rows[i].device_us * 500;
        costs.is_first = rows[i].is_first;
        const int64_t way_ns = gpsti_tuner_filling_way_ns(&costs);
        assert_int_equal(gpsti_tuner_filling(way_ns, rows[i].slot_us * 1000), rows[i].n);
    }
}

/* Twice Little's law. */
static void test_slots_beside_a_device(void** state) {
    (void)state;
    assert_int_equal(gpsti_tuner_slots_beside(5 * MS, MS), 12);
    assert_int_equal(gpsti_tuner_slots_beside(MS, MS), 4);
    assert_int_equal(gpsti_tuner_slots_beside(0, MS), 3);
    assert_int_equal(gpsti_tuner_slots_beside(MS, 0), 1000000); /* only just submitted */
    assert_int_equal(gpsti_tuner_slots_beside(5, 0), 12);
}

/* Eight times what one took where that is little, four times beyond two milliseconds. */
static void test_price_of_an_engine_s_slots(void** state) {
    (void)state;
    assert_int_equal(gpsti_tuner_setups_ns(0), 0);
    assert_int_equal(gpsti_tuner_setups_ns(MS / 2), 4 * MS);
    assert_int_equal(gpsti_tuner_setups_ns(2 * MS), 16 * MS);
    assert_int_equal(gpsti_tuner_setups_ns(11 * MS), 52 * MS);
}

/* A fifth of what its memory takes: an item that is briefer is waited for. */
static void test_dear_memory(void** state) {
    (void)state;
    assert_false(gpsti_tuner_is_dear(5 * MS, MS));
    assert_true(gpsti_tuner_is_dear(5 * MS, MS - 1));
    assert_false(gpsti_tuner_is_dear(0, 0));
}

static gpsti_tuner_window window_of_1_ms_items(uint64_t n_left) {
    gpsti_tuner_window window;
    memset(&window, 0, sizeof window);
    window.n_items = 100;
    window.wall_ns = 100 * MS;
    window.n_left = n_left;
    return window;
}

/* Half as many again would at best make the rest of 300 ms a third shorter: 100 ms, and one hope of four comes true. */
static void test_slots_on_trial(void** state) {
    (void)state;
    gpsti_tuner_window window = window_of_1_ms_items(300);
    window.slot_ns = 12 * MS;
    assert_true(gpsti_tuner_slots_pay(&window, 4, 6, false));
    window.slot_ns = 13 * MS;
    assert_false(gpsti_tuner_slots_pay(&window, 4, 6, false));
    window.n_left = 600;
    assert_true(gpsti_tuner_slots_pay(&window, 4, 6, false));
    assert_false(gpsti_tuner_slots_pay(&window, 16, 24, false)); /* the same gain, for four times the slots */
    window.n_left = 0; /* nobody knows */
    assert_true(gpsti_tuner_slots_pay(&window, 16, 24, false));
    window.n_left = 1;
    window.slot_ns = 0;
    assert_true(gpsti_tuner_slots_pay(&window, 16, 24, false));
}

/* Where items take turns a hundredth of the rest at best, however many there are: 3 of 300 ms. */
static void test_slots_on_trial_in_turns(void** state) {
    (void)state;
    gpsti_tuner_window window = window_of_1_ms_items(300);
    window.slot_ns = 370000;
    assert_true(gpsti_tuner_slots_pay(&window, 4, 6, true));
    window.slot_ns = 380000;
    assert_false(gpsti_tuner_slots_pay(&window, 4, 6, true));
    assert_true(gpsti_tuner_slots_pay(&window, 4, 5, true));
    window.n_left = 0; /* nobody knows */
    assert_true(gpsti_tuner_slots_pay(&window, 4, 6, true));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_as_pay),
        cmocka_unit_test(test_any_number_where_nothing_is_known),
        cmocka_unit_test(test_price_of_a_slot),
        cmocka_unit_test(test_price_of_what_nobody_has_seen),
        cmocka_unit_test(test_slots_that_get_memory_at_once),
        cmocka_unit_test(test_slots_beside_a_device),
        cmocka_unit_test(test_price_of_an_engine_s_slots),
        cmocka_unit_test(test_dear_memory),
        cmocka_unit_test(test_slots_on_trial),
        cmocka_unit_test(test_slots_on_trial_in_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
