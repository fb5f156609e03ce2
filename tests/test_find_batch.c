/* tests/test_find_batch.c -- the search for a batch size, on a clock that the function itself moves. */
#include "test_allocator.h"

#include "../core/machine/find_batch_internal.h"

typedef struct modelled {
    int64_t now_ns, fixed_ns, item_ns;
    uint32_t fails_from, full; /* sizes that fail; beyond `full` an item takes twice as long */
    uint32_t n_calls, largest;
} modelled;

static int64_t modelled_now(void* clock) { return ((const modelled*)clock)->now_ns; }

static gpst_result modelled_batch(void* user_data, uint32_t n_items) {
    modelled* const self = (modelled*)user_data;
    self->n_calls++;
    self->largest = n_items > self->largest ? n_items : self->largest;
    if (self->fails_from > 0 && n_items >= self->fails_from)
        return GPST_ERROR_DEVICE_MEMORY;
    const uint32_t beyond = self->full > 0 && n_items > self->full ? n_items - self->full : 0;
    self->now_ns += self->fixed_ns + self->item_ns * (int64_t)(n_items + 3 * beyond);
    return GPST_OK;
}

static gpst_result find_within(modelled* model, uint32_t most, int64_t most_ns, double tolerance,
                               gpst_batch_report* out) {
    gpsti_find_batch self;
    memset(&self, 0, sizeof self);
    memset(out, 0, sizeof *out);
    self.desc.func = modelled_batch;
    self.desc.user_data = model;
    self.desc.most = most;
    self.desc.try_ns = 20 * GPST_MS;
    self.desc.most_ns = most_ns;
    self.desc.tolerance = tolerance;
    self.now_ns = modelled_now;
    self.clock = model;
    return gpsti_find_batch_run(&self, out);
}

static gpst_result find(modelled* model, uint32_t most, int64_t most_ns, gpst_batch_report* out) {
    return find_within(model, most, most_ns, 0.03, out);
}

static modelled model_of(int64_t fixed_ns, int64_t item_ns) {
    modelled model;
    memset(&model, 0, sizeof model);
    model.fixed_ns = fixed_ns;
    model.item_ns = item_ns;
    return model;
}

static void test_the_best_size(void** state) {
    (void)state;
    gpst_batch_report report;
    modelled model = model_of(4 * GPST_MS, 1200000);
    assert_int_equal(find(&model, 64, 0, &report), GPST_OK); /* more is better, by less and less */
    assert_true(report.best >= 48 && report.best <= 64);
    for (uint32_t i = 1; i < report.n_rows; i++)
        assert_true(report.rows[i].n_items > report.rows[i - 1].n_items);
    model = model_of(0, GPST_MS); /* nothing is gained: the smallest */
    assert_int_equal(find(&model, 64, 0, &report), GPST_OK);
    assert_int_equal(report.best, 1);
    assert_true(report.items_per_s > 999.0 && report.items_per_s < 1001.0);
    model = model_of(4 * GPST_MS, 1200000); /* beyond 24 it falls */
    model.full = 24;
    assert_int_equal(find(&model, 64, 0, &report), GPST_OK);
    assert_true(report.best >= 20 && report.best <= 26);
}

/* 4 ms and 1.2 an item: 64 at once have 792 a second, 56 784, 48 779, 32 755, 16 690, 8 588. */
static void test_as_good_and_smaller(void** state) {
    static const struct {
        double tolerance;
        uint32_t best;
    } rows[] = {{0.0, 64}, {0.011, 56}, {0.017, 48}, {0.04, 48}, {0.05, 32}, {0.12, 32}, {0.13, 16}, {0.26, 8}};
    gpst_batch_report report;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        modelled model = model_of(4 * GPST_MS, 1200000);
        assert_int_equal(find_within(&model, 64, 0, rows[i].tolerance, &report), GPST_OK);
        if (report.best != rows[i].best)
            fail_msg("tolerance %.3f: %u", rows[i].tolerance, report.best);
        assert_int_equal(report.n_rows, 9); /* the powers of two, 48 and 56 */
    }
    modelled model = model_of(0, GPST_MS); /* all alike: the smallest, beside which there is nothing to look at */
    assert_int_equal(find_within(&model, 64, 0, 0.0, &report), GPST_OK);
    assert_int_equal(report.best, 1);
    assert_int_equal(report.n_rows, 7);
    gpst_find_batch_desc desc; /* on a real clock, too: so wide that all are alike */
    memset(&desc, 0, sizeof desc);
    model = model_of(1, 1);
    desc.func = modelled_batch;
    desc.user_data = &model;
    desc.most = 4;
    desc.try_ns = 1;
    desc.tolerance = 0.9999999;
    assert_int_equal(gpst_find_batch(&desc, &report), GPST_OK);
    assert_int_equal(report.best, 1);
}

/* Too large is no failure: the best of those below, and it is looked for up to there. */
static void test_sizes_that_fail(void** state) {
    (void)state;
    gpst_batch_report report;
    modelled model = model_of(4 * GPST_MS, 1200000);
    model.fails_from = 23;
    assert_int_equal(find(&model, 64, 0, &report), GPST_OK);
    assert_true(report.best >= 20 && report.best <= 22);
    assert_int_equal(model.largest, 32);
    uint32_t n_failed = 0;
    for (uint32_t i = 0; i < report.n_rows; i++)
        n_failed += report.rows[i].result == GPST_ERROR_DEVICE_MEMORY;
    assert_true(n_failed >= 1);
    model = model_of(4 * GPST_MS, 1200000); /* no power of two is the largest */
    assert_int_equal(find(&model, 11, 0, &report), GPST_OK);
    assert_true(report.best >= 10);
    assert_int_equal(report.rows[report.n_rows - 1].n_items, 11);
    model.fails_from = 1;
    assert_int_equal(find(&model, 64, 0, &report), GPST_ERROR_DEVICE_MEMORY);
    test_reason_has("gpst_find_batch: desc.func(1)", "");
}

static void test_time_limit(void** state) {
    (void)state;
    gpst_batch_report report;
    modelled model = model_of(4 * GPST_MS, 1200000);
    assert_int_equal(find(&model, 64, 14 * GPST_MS, &report), GPST_OK);
    assert_int_equal(report.best, 8); /* 13.6 ms; 9 take 14.8 */
    assert_int_equal(find(&model, 64, GPST_MS, &report), GPST_ERROR_TIMEOUT);
    test_reason_has("desc.most_ns=1000000", "one item takes 5200000");
}

static void test_by_the_real_clock(void** state) {
    (void)state;
    gpst_find_batch_desc desc;
    gpst_batch_report report;
    modelled model = model_of(1, 1);
    memset(&desc, 0, sizeof desc);
    memset(&report, 0xA5, sizeof report);
    assert_int_equal(gpst_find_batch(&desc, &report), GPST_ERROR_ARGUMENT);
    test_reason_has("desc.func=NULL", "required");
    assert_int_equal(report.n_rows, 0);
    desc.func = modelled_batch;
    desc.user_data = &model;
    desc.most = 65537;
    assert_int_equal(gpst_find_batch(&desc, &report), GPST_ERROR_ARGUMENT);
    desc.most = 5;
    desc.tolerance = 2.0;
    assert_int_equal(gpst_find_batch(&desc, &report), GPST_ERROR_ARGUMENT);
    desc.tolerance = 0.0;
    desc.try_ns = 1;
    assert_int_equal(gpst_find_batch(&desc, &report), GPST_OK);
    assert_true(report.best >= 1 && report.best <= 5 && report.n_rows >= 3);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_best_size),
        cmocka_unit_test(test_as_good_and_smaller),
        cmocka_unit_test(test_sizes_that_fail),
        cmocka_unit_test(test_time_limit),
        cmocka_unit_test(test_by_the_real_clock),
    };
    return cmocka_run_group_tests_name("find_batch", tests, NULL, NULL);
}
