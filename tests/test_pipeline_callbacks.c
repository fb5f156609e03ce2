/* tests/test_pipeline_callbacks.c -- what the source's calls take is in a run's statistics: what the clocks of the
   calls themselves said, at least. Which verdict follows from such clocks is test_verdict.c's. */
#include "pipeline_kit.h"

enum { CALL_NS = 1200000, STAGE_NS = 100000 }; /* of CPU time */

typedef struct calls {
    gpst_run_mode mode;
    uint64_t n_items;
} calls;

typedef struct outcome {
    gpst_stats stats;
    gpsti_clock source;
} outcome;

static void compute(int64_t cpu_ns) {
    const int64_t until_ns = gpsti_thread_cpu_ns() + cpu_ns;
    while (gpsti_thread_cpu_ns() < until_ns)
        continue;
}

static gpst_result source_that_takes_time(void* user_data, uint64_t index, gpst_input* out) {
    const calls* const self = (const calls*)user_data;
    (void)out;
    if (index >= self->n_items)
        return GPST_END;
    compute(CALL_NS);
    return GPST_OK;
}

static gpst_result stage_that_takes_time(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    compute(STAGE_NS);
    return GPST_OK;
}

static outcome run_calls(calls asked) {
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, asked.n_items, stage_that_takes_time);
    gpst_pipeline* pipeline = NULL;
    outcome out;
    desc.source = source_that_takes_time;
    desc.source_user_data = &asked;
    desc.sink = NULL;
    desc.mode = asked.mode;
    desc.n_items_expected = asked.n_items;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &out.stats);
    out.source = pipeline->counts.source_clock;
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    printf("    %s\n", out.stats.verdict.text);
    kit_close(self);
    assert_int_equal(out.source.count, asked.n_items);
    return out;
}

/* From 1 ms on every call is sampled: in a plain loop, beside an engine, and in its turns. */
static void test_cpu_time_of_the_source(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT, GPST_RUN_PLAIN_SERIAL};
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        const calls asked = {modes[m], 20};
        const outcome out = run_calls(asked);
        if (modes[m] != GPST_RUN_PLAIN_SERIAL) /* whose whole thread is known */
            assert_true(gpsti_clock_cpu_ns(&out.source) >= 20 * CALL_NS);
        assert_true(out.stats.cpu_ns >= 20 * CALL_NS);
        assert_true(out.source.busy_ns >= 20 * CALL_NS);
    }
    const calls lone = {GPST_RUN_DEFAULT, 1};
    assert_int_equal(run_calls(lone).source.cpu_samples, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_time_of_the_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
