/* tests/test_pipeline_callbacks.c -- what the source's calls and stages take is in a run's statistics, whether they
   compute or wait: cores that the run has to have, or workers. */
#include "pipeline_kit.h"

typedef struct calls {
    gpst_run_mode mode;
    uint32_t n_workers;
    uint64_t n_items;
    int64_t source_cpu_us, source_wait_us, stage_cpu_us, stage_wait_us;
    uint32_t n_slots; /* 0 = as it comes */
} calls;

typedef struct outcome {
    gpst_stats stats;
    gpsti_clock source;
    bool whole;
} outcome;

static void take_time(int64_t cpu_us, int64_t wait_us) {
    const int64_t until_ns = gpsti_thread_cpu_ns() + cpu_us * 1000;
    while (gpsti_thread_cpu_ns() < until_ns)
        continue;
    if (wait_us > 0)
        gpsti_sleep_ns(wait_us * 1000);
}

static gpst_result source_that_takes_time(void* user_data, uint64_t index, gpst_input* out) {
    const calls* const self = (const calls*)user_data;
    (void)out;
    if (index >= self->n_items)
        return GPST_END;
    take_time(self->source_cpu_us, self->source_wait_us);
    return GPST_OK;
}

static gpst_result stage_that_takes_time(void* user_data, gpst_task* task) {
    const calls* const self = (const calls*)user_data;
    (void)task;
    take_time(self->stage_cpu_us, self->stage_wait_us);
    return GPST_OK;
}

static outcome run_calls(calls asked) {
    kit* const self = kit_open("cpu", asked.n_workers);
    gpst_pipeline_desc desc = kit_simple(self, asked.n_items, stage_that_takes_time);
    gpst_pipeline* pipeline = NULL;
    outcome out;
    self->stages[0].user_data = &asked;
    desc.source = source_that_takes_time;
    desc.source_user_data = &asked;
    desc.sink = NULL;
    desc.mode = asked.mode;
    desc.n_slots = asked.n_slots;
    desc.n_items_expected = asked.n_items;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &out.stats);
    out.source = pipeline->source_clock;
    out.whole = pipeline->whole;
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    printf("    %s\n", out.stats.verdict.text);
    kit_close(self);
    assert_int_equal(out.source.count, asked.n_items);
    return out;
}

/* ---- the source ---------------------------------------------------------------------------------- */

/* From 1 ms on every call is sampled: in a plain loop, beside an engine, and in its turns. */
static void test_cpu_time_of_the_source(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT, GPST_RUN_PLAIN_SERIAL};
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        const calls asked = {modes[m], 2, 20, 1200, 0, 100, 0, 0};
        const outcome out = run_calls(asked);
        if (modes[m] != GPST_RUN_PLAIN_SERIAL) /* whose whole thread is known */
            assert_in_range(gpsti_clock_cpu_ns(&out.source), 20 * 1200000, 21 * 1300000);
        assert_in_range(out.stats.cpu_ns, 20 * 1200000, 200000000);
        assert_in_range(out.source.busy_ns, 20 * 1200000, 200000000);
    }
    const calls lone = {GPST_RUN_DEFAULT, 2, 1, 1200, 0, 100, 0, 0};
    assert_int_equal(run_calls(lone).source.cpu_samples, 1);
}

static void test_cpu_time_of_the_source_of_whole_items(void** state) {
    const calls asked = {GPST_RUN_DEFAULT, 2, 400, 40, 0, 300, 0, 0};
    bool whole = false;
    (void)state;
    for (test_tries t = {0, 0}; !whole && test_again(&t);) {
        const outcome out = run_calls(asked);
        whole = out.whole;
        if (whole) {
            assert_in_range(out.source.cpu_samples, 2, 400);
            assert_in_range(out.source.cpu_ns, 40000 * out.source.cpu_samples, 400 * 100000);
        }
    }
    assert_true(whole);
}

/* It is called by one at a time: what it waits for, no other core would help. */
static void test_a_source_that_waits(void** state) {
    const calls asked = {GPST_RUN_ENGINE, 2, 20, 0, 3000, 0, 0, 0};
    bool known = false;
    (void)state;
    for (test_tries t = {0, 0}; !known && test_again(&t);) {
        const gpst_verdict verdict = run_calls(asked).stats.verdict;
        known = verdict.bound == GPST_RESOURCE_NONE && strstr(verdict.text, "stage source busy") &&
                verdict.cap[GPST_RESOURCE_CPU] < 1.5;
    }
    assert_true(known);
}

/* The bound has one item's way on top of what all of them demand: 2 ms of waiting and 2 of computing. */
static void test_an_items_way_begins_at_the_source(void** state) {
    const calls asked = {GPST_RUN_PLAIN_SERIAL, 2, 20, 0, 2000, 2000, 0, 0};
    (void)state;
    const gpst_stats stats = run_calls(asked).stats;
    const double demand_ns = stats.verdict.share[GPST_RESOURCE_CPU] * (double)stats.wall_ns;
    assert_true(stats.verdict.bound_s * 1e9 - demand_ns > 2.5e6);
}

/* ---- stages -------------------------------------------------------------------------------------- */

/* Workers are all there, waiting, one step at a time and with whole items: fewer cycles would be no help. */
static void test_a_stage_that_waits(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT};
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        const calls asked = {modes[m], 2, 60, 0, 0, 0, 3000, 0};
        bool known = false;
        for (test_tries t = {0, 0}; !known && test_again(&t);) {
            const gpst_verdict verdict = run_calls(asked).stats.verdict;
            known = verdict.bound == GPST_RESOURCE_NONE && strstr(verdict.text, "waiting in stage work") &&
                    verdict.cap[GPST_RESOURCE_CPU] < 1.5;
        }
        assert_true(known);
    }
}

/* Nobody is busy but one worker at a time: it is an item's way. */
static void test_a_stage_that_waits_on_an_items_way(void** state) {
    const calls asked = {GPST_RUN_ENGINE, 4, 30, 0, 0, 0, 3000, 1};
    bool known = false;
    (void)state;
    for (test_tries t = {0, 0}; !known && test_again(&t);) {
        const gpst_verdict verdict = run_calls(asked).stats.verdict;
        known = verdict.bound == GPST_RESOURCE_NONE && verdict.cap[GPST_RESOURCE_CPU] < 1.5;
    }
    assert_true(known);
}

/* A third of its time a lone worker computes. */
static void test_a_stage_that_waits_and_computes(void** state) {
    const calls asked = {GPST_RUN_ENGINE, 1, 30, 0, 0, 1000, 2000, 0};
    bool known = false;
    (void)state;
    for (test_tries t = {0, 0}; !known && test_again(&t);) {
        const double cap = run_calls(asked).stats.verdict.cap[GPST_RESOURCE_CPU];
        known = cap > 1.3 && cap < 1.7;
    }
    assert_true(known);
}

/* More workers than cores, here: what their stage does not compute it waits for one of these. */
static void test_a_stage_that_waits_for_cores(void** state) {
    const calls asked = {GPST_RUN_ENGINE, 8, 60, 0, 0, 4000, 0, 0};
    bool known = false;
    (void)state;
    for (test_tries t = {0, 0}; !known && test_again(&t);) {
        const gpst_verdict verdict = run_calls(asked).stats.verdict;
        known = verdict.bound == GPST_RESOURCE_CPU && verdict.cap[GPST_RESOURCE_CPU] > 10.0;
    }
    assert_true(known);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_time_of_the_source),
        cmocka_unit_test(test_cpu_time_of_the_source_of_whole_items),
        cmocka_unit_test(test_a_source_that_waits),
        cmocka_unit_test(test_an_items_way_begins_at_the_source),
        cmocka_unit_test(test_a_stage_that_waits),
        cmocka_unit_test(test_a_stage_that_waits_on_an_items_way),
        cmocka_unit_test(test_a_stage_that_waits_and_computes),
        cmocka_unit_test(test_a_stage_that_waits_for_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
