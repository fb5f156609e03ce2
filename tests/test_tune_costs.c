/* tests/test_tune_costs.c -- what an engine is expected to take an item, from the clocks of a run: in stages, whole, and
   beside a device that the host's cores play. */
#include "pipeline_kit.h"

#define US 1000

enum { N_SEEN = 10 };

static void see(gpst_pipeline* pipeline, gpst_resource resource, int64_t item_ns) {
    for (uint32_t c = 0; c < pipeline->n_clocks; c++) {
        gpsti_clock* const clock = &pipeline->clocks[c];
        if (clock->resource != resource || clock->count > 0)
            continue;
        clock->count = N_SEEN;
        clock->busy_ns = N_SEEN * item_ns;
        pipeline->busy[resource].busy_ns = clock->busy_ns;
        return;
    }
    fail_msg("no clock of resource %d", (int)resource);
}

/* Two workers, each with 40 us of an item that is 10 us on its way up and 5 in a kernel. */
static gpst_pipeline* seen_open(kit* self, bool in_order) {
    gpst_pipeline* pipeline = NULL;
    gpst_pipeline_desc desc = kit_simple(self, 1000, kit_decode);
    self->stages[0].concurrency = in_order ? 1 : 0;
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, kit_device, "compute");
    self->n_stages = 2;
    desc.n_stages = 2;
    desc.mode = GPST_RUN_DEFAULT;
    desc.n_items_expected = 1000;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    see(pipeline, GPST_RESOURCE_CPU, 40 * US);
    see(pipeline, GPST_RESOURCE_H2D, 10 * US);
    see(pipeline, GPST_RESOURCE_GPU, 5 * US);
    pipeline->n_copied = N_SEEN;
    pipeline->items_ok = N_SEEN;
    return pipeline;
}

static void test_an_item_of_an_engine(void** state) {
    (void)state;
    kit* const self = kit_open("sim", 2);
    gpst_pipeline* pipeline = seen_open(self, true);
    bool whole = true;
    assert_int_equal(gpsti_tune_period_ns(pipeline, &whole), 35 * US); /* (40 + 30 of the engine) / 2 */
    assert_false(whole); /* in order */
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    pipeline = seen_open(self, false);
    assert_int_equal(gpsti_tune_period_ns(pipeline, &whole), 55 * US / 2);
    assert_true(whole);
    (void)gpsti_a64_add(&self->context->device->played_ns, (uint64_t)(N_SEEN * 20 * US));
    assert_int_equal(gpsti_tune_period_ns(pipeline, &whole), 30 * US); /* (40 + 20 that are played) / 2 */
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    pipeline = seen_open(self, false); /* what was played before it is not its own */
    assert_int_equal(gpsti_tune_period_ns(pipeline, &whole), 55 * US / 2);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* Is a file that takes 100 us to write, so much of it on a core, work for that? */
static bool writing_computes(gpst_fsync policy, int64_t cpu_ns) {
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline* pipeline = NULL;
    gpsti_tuner_costs costs;
    gpst_pipeline_desc desc = kit_standard(self, 100);
    desc.mode = GPST_RUN_DEFAULT;
    desc.fsync = policy;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    see(pipeline, GPST_RESOURCE_DISK_OUT, 100 * US);
    gpsti_clock* const clock = &pipeline->clocks[pipeline->steps[pipeline->n_steps - 2].first_clock];
    assert_int_equal(clock->busy_ns, N_SEEN * 100 * US);
    clock->cpu_samples = 1;
    clock->cpu_busy_ns = 100 * US;
    clock->cpu_ns = cpu_ns;
    gpsti_tune_costs(pipeline, &costs);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
    return costs.writes_compute;
}

/* Half of it may be waiting, but not where a disk is waited for: of that others have time for more. */
static void test_what_writing_is(void** state) {
    (void)state;
    assert_true(writing_computes(GPST_FSYNC_NONE, 50 * US));
    assert_false(writing_computes(GPST_FSYNC_NONE, 49 * US));
    assert_false(writing_computes(GPST_FSYNC_FILE, 87 * US));
    assert_true(writing_computes(GPST_FSYNC_FILE, 88 * US));
    assert_false(writing_computes(GPST_FSYNC_DEFAULT, 87 * US));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_an_item_of_an_engine),
                                       cmocka_unit_test(test_what_writing_is)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
