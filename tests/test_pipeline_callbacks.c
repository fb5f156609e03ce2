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

/* ---- a run inside of a callback --------------------------------------------------------------------------- */

enum { N_OUTER = 3, N_INNER = 4 };

typedef struct nested {
    kit* kit;
    gpsti_a32 n_inside; /* outer items whose callback has begun, or has been */
    uint64_t ages[N_OUTER], inner_ages[N_INNER];
} nested;

static uint64_t age_of(const gpst_task* task) { return ((const gpsti_item*)(uintptr_t)task->item)->age; }

static gpst_result note_age(void* user_data, gpst_task* task) {
    ((nested*)user_data)->inner_ages[task->item->index] = age_of(task);
    return GPST_OK;
}

static gpst_result inner_source(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixel;
    (void)user_data;
    out->frame = kit_shape(1, 1);
    out->frame.data = &pixel;
    return index < N_INNER ? GPST_OK : GPST_END;
}

/* The first item runs another pipeline when all the others have begun. */
static gpst_result run_inside(void* user_data, gpst_task* task) {
    nested* const self = (nested*)user_data;
    gpst_stage_desc stage;
    gpst_pipeline* inner = NULL;
    self->ages[task->item->index] = age_of(task);
    (void)gpsti_a32_add(&self->n_inside, 1);
    if (task->item->index > 0)
        return GPST_OK;
    while (gpsti_a32_load(&self->n_inside) < N_OUTER)
        gpsti_sleep_ns(100000);
    gpst_stage_host(&stage, GPST_SET(0), 0, note_age, self);
    gpst_pipeline_desc desc = GPST_ZERO;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = inner_source;
    gpst_result result = gpst_pipeline_create(self->kit->context, &desc, &inner);
    if (result == GPST_OK)
        result = gpst_pipeline_run(inner);
    kit_check(self->kit, gpst_pipeline_destroy(inner) == GPST_OK);
    return result;
}

/* Its items have the age of the item that runs it: they come before those that have begun since. */
static void test_items_of_a_run_inside_are_as_old_as_its_caller(void** state) {
    nested self = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    uint8_t pixel = 0;
    (void)state;
    self.kit = kit_open("cpu", N_OUTER);
    gpst_stage_host(&self.kit->stages[0], GPST_SET(0), 0, run_inside, &self);
    self.kit->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(self.kit);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.source = NULL;
    desc.n_slots = N_OUTER;
    assert_int_equal(gpst_pipeline_create(self.kit->context, &desc, &pipeline), GPST_OK);
    for (int i = 0; i < N_OUTER; i++) {
        gpst_input input = GPST_ZERO;
        input.frame = kit_shape(1, 1);
        input.frame.data = &pixel;
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    }
    assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    for (int i = 0; i < N_INNER; i++) {
        assert_true(self.inner_ages[i] > (i > 0 ? self.inner_ages[i - 1] : self.ages[0]));
        assert_true(self.inner_ages[i] < self.ages[1]);
    }
    assert_true(self.ages[1] < self.ages[2]);
    kit_close(self.kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_time_of_the_source),
        cmocka_unit_test(test_items_of_a_run_inside_are_as_old_as_its_caller),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
