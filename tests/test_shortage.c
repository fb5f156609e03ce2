/* tests/test_shortage.c -- the steps down from too little device memory and back up, as a pure policy. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/tuning/shortage_internal.h"
#endif

static void test_batches_are_halved_first(void** state) {
    gpsti_shortage shortage;
    (void)state;
    memset(&shortage, 0, sizeof shortage);
    assert_int_equal(gpsti_shortage_fail(&shortage, 16, 30, true), GPSTI_RELIEF_BATCH);
    assert_int_equal(shortage.batch_most, 8);
    assert_int_equal(gpsti_shortage_fail(&shortage, 8, 30, true), GPSTI_RELIEF_BATCH);
    assert_int_equal(gpsti_shortage_fail(&shortage, 16, 30, true), GPSTI_RELIEF_BATCH); /* of before: no step up */
    assert_int_equal(shortage.batch_most, 4);
    assert_int_equal(gpsti_shortage_fail(&shortage, 3, 30, true), GPSTI_RELIEF_BATCH);
    assert_int_equal(shortage.batch_most, 1);
    assert_int_equal(shortage.slots_most, 0);
    assert_int_equal(shortage.counts[GPSTI_RELIEF_BATCH], 4);
}

static void test_then_fewer_slots_while_others_end(void** state) {
    gpsti_shortage shortage;
    (void)state;
    memset(&shortage, 0, sizeof shortage);
    for (uint32_t in_flight = 5; in_flight > 1; in_flight--) {
        assert_int_equal(gpsti_shortage_fail(&shortage, 1, in_flight, true), GPSTI_RELIEF_SLOTS);
        assert_int_equal(shortage.slots_most, in_flight - 1);
    }
    assert_int_equal(gpsti_shortage_fail(&shortage, 1, 1, true), GPSTI_RELIEF_SLOTS); /* of another pipeline's doing */
    assert_int_equal(shortage.slots_most, 1);
    assert_int_equal(gpsti_shortage_limit(8, shortage.slots_most), 1);
    assert_int_equal(gpsti_shortage_limit(8, 0), 8);
    assert_int_equal(gpsti_shortage_limit(8, 9), 8);
}

/* An item that is alone goes to the CPU; after it one, three, ... up to 63 more without asking the device. */
static void test_then_the_cpu_for_longer_and_longer(void** state) {
    static const uint32_t skipped[] = {0, 1, 3, 7, 15, 31, 63, 63};
    gpsti_shortage shortage;
    (void)state;
    memset(&shortage, 0, sizeof shortage);
    for (size_t i = 0; i < sizeof skipped / sizeof *skipped; i++) {
        uint32_t n = 0;
        assert_int_equal(gpsti_shortage_fail(&shortage, 1, 4, false), GPSTI_RELIEF_CPU);
        while (gpsti_shortage_skips_device(&shortage))
            n++;
        assert_int_equal(n, skipped[i]);
    }
    (void)gpsti_shortage_succeed(&shortage, 8, 1);
    assert_int_equal(gpsti_shortage_fail(&shortage, 1, 4, false), GPSTI_RELIEF_CPU); /* from the beginning */
    assert_false(gpsti_shortage_skips_device(&shortage));
}

static uint32_t goods_until_raised(gpsti_shortage* shortage, uint32_t n_slots, uint32_t batch) {
    for (uint32_t n = 1; n < 100000; n++)
        if (gpsti_shortage_succeed(shortage, n_slots, batch))
            return n;
    return 0;
}

static void test_it_climbs_back(void** state) {
    gpsti_shortage shortage;
    (void)state;
    memset(&shortage, 0, sizeof shortage);
    assert_false(gpsti_shortage_succeed(&shortage, 4, 16)); /* nothing to raise, */
    assert_int_equal(shortage.n_good, 0);                   /* and nothing to count towards it */
    (void)gpsti_shortage_fail(&shortage, 16, 20, true);
    (void)gpsti_shortage_fail(&shortage, 8, 20, true);
    (void)gpsti_shortage_fail(&shortage, 1, 3, true);
    assert_int_equal(shortage.batch_most, 4);
    assert_int_equal(shortage.slots_most, 2);
    const uint32_t first = goods_until_raised(&shortage, 4, 16);
    assert_int_equal(shortage.slots_most, 3);
    assert_int_equal(goods_until_raised(&shortage, 4, 16), first);
    assert_int_equal(shortage.slots_most, 0);
    assert_int_equal(goods_until_raised(&shortage, 4, 16), first);
    assert_int_equal(shortage.batch_most, 8);
    assert_int_equal(goods_until_raised(&shortage, 4, 16), first);
    assert_int_equal(shortage.batch_most, 0);
    assert_int_equal(goods_until_raised(&shortage, 4, 16), 0);
    assert_int_equal(shortage.counts[GPSTI_RELIEF_BACK], 4);
}

/* A raise that fails is tried again later each time, up to an end. */
static void test_it_learns_patience(void** state) {
    gpsti_shortage shortage;
    uint32_t before = 0;
    (void)state;
    memset(&shortage, 0, sizeof shortage);
    (void)gpsti_shortage_fail(&shortage, 1, 3, true);
    for (int i = 0; i < 20; i++) {
        const uint32_t n = goods_until_raised(&shortage, 100, 1);
        assert_true(n >= before);
        before = n;
        (void)gpsti_shortage_fail(&shortage, 1, 3, true);
        (void)gpsti_shortage_fail(&shortage, 1, 2, true);
    }
    assert_true(before >= 1024);
    assert_true(before <= 8192);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches_are_halved_first),
        cmocka_unit_test(test_then_fewer_slots_while_others_end),
        cmocka_unit_test(test_then_the_cpu_for_longer_and_longer),
        cmocka_unit_test(test_it_climbs_back),
        cmocka_unit_test(test_it_learns_patience),
    };
    return cmocka_run_group_tests_name("shortage", tests, NULL, NULL);
}
