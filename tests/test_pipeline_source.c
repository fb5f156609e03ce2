/* tests/test_pipeline_source.c -- what the source's calls are in a run's statistics: no stage's time, but time and cores
   that the run has to have. */
#include "pipeline_kit.h"

typedef struct sourcing {
    gpst_run_mode mode;
    uint64_t n_items;
    int64_t us; /* of each call: CPU time, or asleep */
    bool computes;
    int64_t stage_us;
    gpst_stats stats; /* what came: */
    gpsti_clock clock;
    bool whole;
} sourcing;

static sourcing sourcing_of(gpst_run_mode mode, uint64_t n_items, int64_t us, bool computes, int64_t stage_us) {
    sourcing self;
    memset(&self, 0, sizeof self);
    self.mode = mode;
    self.n_items = n_items;
    self.us = us;
    self.computes = computes;
    self.stage_us = stage_us;
    return self;
}

static void compute_us(int64_t us) {
    const int64_t until_ns = gpsti_thread_cpu_ns() + us * 1000;
    while (gpsti_thread_cpu_ns() < until_ns)
        continue;
}

static gpst_result source_that_takes_time(void* user_data, uint64_t index, gpst_input* out) {
    const sourcing* const self = (const sourcing*)user_data;
    (void)out;
    if (index >= self->n_items)
        return GPST_END;
    if (self->computes)
        compute_us(self->us);
    else
        gpsti_sleep_ns(self->us * 1000);
    return GPST_OK;
}

static gpst_result stage_after_a_source(void* user_data, gpst_task* task) {
    (void)task;
    compute_us(((const sourcing*)user_data)->stage_us);
    return GPST_OK;
}

static void run_source(sourcing* run) {
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, run->n_items, stage_after_a_source);
    gpst_pipeline* pipeline = NULL;
    self->stages[0].user_data = run;
    desc.source = source_that_takes_time;
    desc.source_user_data = run;
    desc.sink = NULL;
    desc.mode = run->mode;
    desc.n_items_expected = run->n_items;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &run->stats);
    run->clock = pipeline->source_clock;
    run->whole = pipeline->whole;
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    printf("    %s\n", run->stats.verdict.text);
    kit_close(self);
    assert_int_equal(run->clock.count, run->n_items);
}

/* From 1 ms on every call is sampled: in a plain loop, beside an engine, and in its turns. */
static void test_cpu_time_of_the_source(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT, GPST_RUN_PLAIN_SERIAL};
    (void)state;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++) {
        sourcing self = sourcing_of(modes[m], 20, 1200, true, 100);
        run_source(&self);
        if (modes[m] != GPST_RUN_PLAIN_SERIAL) /* whose whole thread is known */
            assert_in_range(gpsti_clock_cpu_ns(&self.clock), 20 * 1200000, 21 * 1300000);
        assert_in_range(self.stats.cpu_ns, 20 * 1200000, 200000000);
        assert_in_range(self.clock.busy_ns, 20 * 1200000, 200000000);
    }
    sourcing lone = sourcing_of(GPST_RUN_DEFAULT, 1, 1200, true, 100);
    run_source(&lone);
    assert_int_equal(lone.clock.cpu_samples, 1);
}

static void test_cpu_time_of_the_source_of_whole_items(void** state) {
    sourcing self = sourcing_of(GPST_RUN_DEFAULT, 400, 40, true, 300);
    (void)state;
    for (test_tries t = {0, 0}; !self.whole && test_again(&t);)
        run_source(&self);
    assert_true(self.whole);
    assert_in_range(self.clock.cpu_samples, 2, 400);
    assert_in_range(self.clock.cpu_ns, 40000 * self.clock.cpu_samples, 400 * 100000);
}

/* It is called by one at a time: what it waits for, no other core would help. */
static void test_a_source_that_waits(void** state) {
    bool known = false;
    (void)state;
    for (test_tries t = {0, 0}; !known && test_again(&t);) {
        sourcing self = sourcing_of(GPST_RUN_ENGINE, 20, 3000, false, 0);
        run_source(&self);
        const gpst_verdict* const verdict = &self.stats.verdict;
        known = verdict->bound == GPST_RESOURCE_NONE && strstr(verdict->text, "stage source busy") &&
                verdict->cap[GPST_RESOURCE_CPU] < 1.5;
    }
    assert_true(known);
}

/* The bound has one item's way on top of what all of them demand: 2 ms of waiting and 2 of computing. */
static void test_an_items_way_begins_at_the_source(void** state) {
    sourcing self = sourcing_of(GPST_RUN_PLAIN_SERIAL, 20, 2000, false, 2000);
    (void)state;
    run_source(&self);
    const double demand_ns = self.stats.verdict.share[GPST_RESOURCE_CPU] * (double)self.stats.wall_ns;
    assert_true(self.stats.verdict.bound_s * 1e9 - demand_ns > 2.5e6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cpu_time_of_the_source),
        cmocka_unit_test(test_cpu_time_of_the_source_of_whole_items),
        cmocka_unit_test(test_a_source_that_waits),
        cmocka_unit_test(test_an_items_way_begins_at_the_source),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
