/* tests/test_pipeline_start.c -- a tuned run starts plain, until what is left is worth an engine: whichever loop its
   items are in, every one comes out, and where no engine is to be had the plain loop does all. When it is worth one is
   test_tuner_start.c's. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

/* Short items: if they stayed on the caller's thread, no thread was made and one slot used. */
static void run_few(uint64_t n_items) {
    kit* const self = kit_open("cpu", 2);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_simple(self, n_items, sleep_a_little);
    const uint32_t n_threads = kit_count_threads();
    self->decode_ns = 20000; /* more than handing over costs, less than threads */
    desc.n_items_expected = n_items;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    const bool plain = strstr(stats.settings, "mode=plain-serial") != NULL;
    if (plain)
        assert_int_equal(kit_count_threads(), n_threads);
    if (plain && n_items > 0)
        assert_int_equal(stats.slots_used, 1);
    assert_int_equal(self->n_ok, n_items);
    kit_close(self);
}

static void test_small_runs(void** state) {
    (void)state;
    for (uint64_t n_items = 0; n_items < 4; n_items++)
        run_few(n_items);
}

static gpst_result spin(int64_t for_ns) {
    const int64_t end_ns = gpsti_now_ns() + for_ns;
    while (gpsti_now_ns() < end_ns) {}
    return GPST_OK;
}

static gpst_result spin_a_little(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return spin(6000);
}

/* 10,000 items of 6 us, which may come in bunches; all come out, in order. */
static void test_brief_items_are_all_done(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_simple(self, KIT_MAX_ITEMS, spin_a_little);
    desc.n_items_expected = KIT_MAX_ITEMS;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, KIT_MAX_ITEMS);
    kit_close(self);
}

static gpst_result spin_then_ask_for_memory(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image picture;
    GPSTI_TRY(spin_a_little(user_data, task));
    GPSTI_TRY(gpst_task_set_input(task, &shape, &picture));
    return gpst_task_set_output(task, 0, &shape, &picture);
}

/* As many of 10 us on a device. */
static void test_brief_items_of_a_device(void** state) {
    (void)state;
    kit* const self = kit_open("sim:launch_us=0,kernel_us=2", 2);
    gpst_stats stats;
    self->n_outputs = 1;
    gpst_pipeline_desc desc = kit_simple(self, KIT_MAX_ITEMS, spin_then_ask_for_memory);
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, kit_device, "compute");
    desc.n_stages = 2;
    desc.n_items_expected = KIT_MAX_ITEMS;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, KIT_MAX_ITEMS);
    kit_close(self);
}

/* As many of nothing, in whichever loop. */
static void test_tiny_items_are_all_done(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_simple(self, KIT_MAX_ITEMS, kit_nothing);
    desc.n_items_expected = KIT_MAX_ITEMS;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, KIT_MAX_ITEMS);
    assert_int_equal(stats.items_ok, KIT_MAX_ITEMS);
    kit_close(self);
}

static void run_with_a_long_step(int i) {
    static const char* const backends[] = {"cpu", "sim:kernel_us=100"};
    kit* const self = kit_open(backends[i % 2], 2);
    gpst_stats stats;
    const uint64_t n_items = kit_is_on_gpu(self) ? 100 : 20; /* where slots take long to make, the run is longer */
    gpst_pipeline_desc desc = kit_standard(self, n_items);
    desc.n_items_expected = i / 2 < 2 ? n_items : 0;
    self->source_ns = i / 2 == 0 ? 2000000 : 0;
    self->decode_ns = i / 2 == 1 || i / 2 == 3 ? 2000000 : 0;
    self->encode_ns = i / 2 == 2 ? 2000000 : 0;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, n_items);
    assert_int_equal(stats.stages[0].count, n_items);
    kit_check_files(self);
    kit_close(self);
}

/* Item 0 goes on in the engine as soon as it has cost enough, wherever it is then: in its source, or in any step. */
static void test_item_0_is_handed_over(void** state) {
    (void)state;
    for (int i = 0; i < 2 * 4; i++)
        run_with_a_long_step(i);
}

/* One item with many outputs that are worth workers. */
static void test_one_wide_item_is_shared(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 4);
    gpst_stats stats;
    self->n_outputs = 8;
    gpst_pipeline_desc desc = kit_standard(self, 1);
    desc.n_items_expected = 1;
    self->decode_ns = 2000000;
    self->encode_ns = 20000000;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_true(stats.stages[3].occupancy >= 0.0);
    kit_check_files(self);
    kit_close(self);
}

/* Runs of 20 items with the n-th allocation refused, every n. */
static void runs_without_engine(uint64_t n_items_expected) {
    for (uint64_t n = 1; n < 40; n++) {
        kit* const self = kit_open("cpu", 2);
        gpst_stats stats;
        gpst_pipeline_desc desc = kit_standard(self, 20);
        desc.n_items_expected = n_items_expected;
        desc.mode = GPST_RUN_DEFAULT;
        self->decode_ns = 2000000;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        test_memory_refuse(&self->memory, n);
        const gpst_result result = gpst_pipeline_run(self->pipeline);
        test_memory_relent(&self->memory);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        gpst_pipeline_query_tuner(self->pipeline, &report);
        assert_true(result == GPST_OK || result == GPST_PARTIAL);
        assert_int_equal(stats.items_ok + stats.items_failed, 20);
        assert_true(stats.items_failed <= 1);
        if (report.n_decisions > 0 && strstr(report.decisions[report.n_decisions - 1].reason, "no engine")) {
            assert_int_equal(stats.items_ok, 20);
            assert_non_null(strstr(stats.settings, "mode=plain-serial"));
        }
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_check_files(self);
        kit_close(self);
    }
}

/* No memory for the engine: the plain loop does it all, and says why. */
static void test_no_engine_stays_plain(void** state) {
    (void)state;
    runs_without_engine(0);
    runs_without_engine(20); /* the first try is a worker's, while item 0 is at work: the second may find some */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_runs),
        cmocka_unit_test(test_tiny_items_are_all_done),
        cmocka_unit_test(test_brief_items_are_all_done),
        cmocka_unit_test(test_brief_items_of_a_device),
        cmocka_unit_test(test_item_0_is_handed_over),
        cmocka_unit_test(test_one_wide_item_is_shared),
        cmocka_unit_test(test_no_engine_stays_plain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
