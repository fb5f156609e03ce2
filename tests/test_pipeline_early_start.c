/* tests/test_pipeline_early_start.c -- workers begin with the other items while item 0 is still at work on the caller's
   thread: when, when not, and what becomes of item 0. Item 0 waits for what it is to see, so that no clock decides. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

#define PATIENCE_NS ((int64_t)10000000000) /* of item 0: longer than any machine needs */
#define SOME_NS 5000000                    /* in which workers would have begun, if they did */

typedef struct early {
    kit* kit;
    gpsti_a32 n_begun, n_ended; /* of the other items */
    int64_t wait_ns;            /* of item 0, at most */
    uint32_t wants_ended;       /* it goes on when so many others have ended; 0 = when one has begun */
    gpst_result result;         /* and this is what becomes of it */
    bool seen;                  /* it saw them */
    bool zero_is_over, overtaken;
} early;

static bool sees_others(const early* self) {
    return self->wants_ended > 0 ? gpsti_a32_load(&self->n_ended) >= self->wants_ended
                                 : gpsti_a32_load(&self->n_begun) > 0;
}

static gpst_result wait_for_others(void* user_data, gpst_task* task) {
    early* const self = (early*)user_data;
    const int64_t end_ns = gpsti_now_ns() + self->wait_ns;
    if (task->item->index > 0) {
        (void)gpsti_a32_add(&self->n_begun, 1);
        return GPST_OK;
    }
    while (!sees_others(self) && gpsti_now_ns() < end_ns)
        gpsti_sleep_ns(100000);
    self->seen = sees_others(self);
    if (GPST_FAILED(self->result))
        return gpst_task_fail(task, self->result, "item 0 had enough");
    return GPST_OK;
}

static gpst_result count_ended(void* user_data, const gpst_item* item) {
    early* const self = (early*)user_data;
    if (item->index == 0)
        self->zero_is_over = true;
    else
        (void)gpsti_a32_add(&self->n_ended, 1);
    return kit_sink(self->kit, item);
}

static gpst_pipeline_desc early_desc(kit* self, early* watch, uint64_t n_items) {
    gpst_pipeline_desc desc = kit_simple(self, n_items, wait_for_others);
    memset(watch, 0, sizeof *watch);
    watch->kit = self;
    watch->wait_ns = PATIENCE_NS;
    self->stages[0].user_data = watch;
    desc.sink = count_ended;
    desc.sink_user_data = watch;
    desc.n_items_expected = n_items;
    return desc;
}

/* In the source's order to the sink, although item 0 is the last of all to be done. */
static void test_others_begin(void** state) {
    (void)state;
    static const uint64_t n_items[] = {2, 3, 8, 200};
    for (int i = 0; i < 4; i++) {
        kit* const self = kit_open("cpu", 2);
        early watch;
        gpst_stats stats;
        gpst_pipeline_desc desc = early_desc(self, &watch, n_items[i]);
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_true(watch.seen);
        assert_int_equal(self->n_ok, n_items[i]);
        assert_int_equal(stats.stages[0].count, n_items[i]);
        assert_true(stats.slots_used > 1); /* whatever becomes of the engine, which items of nothing may not need */
        kit_close(self);
    }
}

/* As they are ready, others even end before it. */
static void test_others_end(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    early watch;
    gpst_stats stats;
    gpst_pipeline_desc desc = early_desc(self, &watch, 40);
    watch.wants_ended = 39;
    desc.as_ready = self->as_ready = true;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_true(watch.seen);
    assert_int_equal(self->n_ok, 40);
    assert_int_equal(self->last_index, 0);
    kit_close(self);
}

/* Files in, files out: whatever item 0 was at, it goes on in the engine, and every file is there. */
static void test_files(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim:read_us=5000", "sim:kernel_us=200"};
    for (int i = 0; i < 3 * 3; i++) {
        kit* const self = kit_open(backends[i % 3], 3);
        gpst_stats stats;
        gpst_pipeline_desc desc = kit_standard(self, 20);
        desc.n_items_expected = 20;
        self->decode_ns = i / 3 == 0 ? SOME_NS : 0;
        self->encode_ns = i / 3 == 1 ? SOME_NS : 0;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, 20);
        assert_int_equal(stats.stages[0].count, 20);
        kit_check_files(self);
        kit_close(self);
    }
}

static gpst_result source_after_zero(void* user_data, uint64_t index, gpst_input* out) {
    early* const self = (early*)user_data;
    self->overtaken = self->overtaken || (index > 0 && !self->zero_is_over);
    return kit_source_empty(self->kit, index, out);
}

static bool others_wait(uint64_t n_items, uint64_t n_items_expected, uint32_t concurrency) {
    kit* const self = kit_open("cpu", 2);
    early watch;
    gpst_stats stats;
    gpst_pipeline_desc desc = early_desc(self, &watch, n_items);
    watch.wait_ns = SOME_NS;
    desc.source = source_after_zero;
    desc.source_user_data = &watch;
    desc.n_items_expected = n_items_expected;
    self->stages[0].concurrency = concurrency;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, n_items);
    kit_close(self);
    return !watch.seen && !watch.overtaken;
}

/* A source of unknown length may wait for its inputs, and a stage that serves one at a time keeps the others waiting. */
static void test_others_wait(void** state) {
    (void)state;
    assert_true(others_wait(8, 0, 0));
    assert_true(others_wait(8, 8, 1));
}

/* Work of a while, and more than opening costs by what the others gain. */
static void test_what_pays(void** state) {
    (void)state;
    assert_false(gpsti_early_pays(399999, 399999, 1000000, 500000));
    assert_true(gpsti_early_pays(400000, 400000, 2, 500000));
    assert_false(gpsti_early_pays(400000, 400000, 2, 1000000));
    assert_true(gpsti_early_pays(400000, 400000, 2, 800000));
    assert_false(gpsti_early_pays(5000000, 5000000, 39, 200000000)); /* frames that take 25 ms each to lock */
    assert_true(gpsti_early_pays(5200000, 5200000, 39, 200000000));
    assert_true(gpsti_early_pays(400000, 10000, 50, 500000)); /* brief, and then long with a device */
    assert_false(gpsti_early_pays(400000, 9999, 50, 500000));
}

/* On paper: what opening takes, and half of what memory costs. */
static void test_what_an_engine_gains(void** state) {
    (void)state;
    assert_true(gpsti_plain_gains(500000, 500000, 0));
    assert_false(gpsti_plain_gains(499999, 500000, 0));
    assert_true(gpsti_plain_gains(600000, 500000, 200000));
    assert_false(gpsti_plain_gains(599999, 500000, 200000));
    assert_false(gpsti_plain_gains(-1, 500000, 0)); /* the busiest resource has no room for others */
}

/* Whole items ask for nothing but workers that wake; stages on a device for twice as much as elsewhere. */
static void test_what_opening_takes(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    (void)state;
    for (int b = 0; b < 2; b++) {
        kit* const self = kit_open(backends[b], 2);
        gpst_pipeline_desc desc = kit_standard(self, 40);
        gpst_pipeline* pipeline = NULL;
        desc.tune = GPST_TUNE_ON;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
        const bool on_device = pipeline->tune.tuner.budget.streams;
        assert_int_equal(gpsti_tune_open_ns(pipeline, true), 100000);
        assert_int_equal(gpsti_tune_open_ns(pipeline, false), on_device ? 1000000 : 500000);
        assert_true(on_device == self->context->device_info.asynchronous);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}

/* At the moment from which on it may be long, and then at a quarter more each time, but not all the time. */
static void test_when_it_is_looked_at(void** state) {
    (void)state;
    assert_int_equal(gpsti_early_look_in_ns(-300000), 700000); /* memory is being made: no work yet */
    assert_int_equal(gpsti_early_look_in_ns(0), 400000);
    assert_int_equal(gpsti_early_look_in_ns(300000), 100000);
    assert_int_equal(gpsti_early_look_in_ns(390000), 50000);
    assert_int_equal(gpsti_early_look_in_ns(400000), 100000);
    assert_int_equal(gpsti_early_look_in_ns(8000000), 2000000);
}

/* What a worker allocates while item 0 is at this takes 2 ms. */
static gpst_result work_and_slow_down(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    if (task->item->index == 0)
        gpsti_a64_store(&self->memory.sleep_ns, 2000000);
    return kit_decode(user_data, task);
}

/* Item 0 comes to its next step while the engine is being opened, which takes long: it waits for it. */
static void test_slow_opening(void** state) {
    (void)state;
    for (int i = 0; i < 6; i++) {
        kit* const self = kit_open("cpu", 2);
        gpst_stats stats;
        gpst_pipeline_desc desc = kit_standard(self, 20);
        self->stages[1].func = work_and_slow_down;
        desc.n_items_expected = 20;
        desc.mode = GPST_RUN_DEFAULT;
        self->decode_ns = 700000 + i * 200000; /* a worker begins to open at 0.6 ms, about */
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
        gpsti_a64_store(&self->memory.sleep_ns, 0);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_int_equal(stats.items_ok, 20);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_check_files(self);
        kit_close(self);
    }
}

typedef struct crowd {
    gpsti_a32 now, most; /* in the stage */
} crowd;

static gpst_result join_the_crowd(void* user_data, gpst_task* task) {
    crowd* const self = (crowd*)user_data;
    const uint32_t now = gpsti_a32_add(&self->now, 1) + 1;
    for (uint32_t most = gpsti_a32_load(&self->most); now > most;)
        if (gpsti_a32_cas(&self->most, &most, now))
            break;
    gpsti_sleep_ns(task->item->index == 0 ? 20000000 : 1000000);
    (void)gpsti_a32_add(&self->now, UINT32_MAX);
    return GPST_OK;
}

/* Item 0's thread is one of so many that may be at work. */
static void test_no_more_at_work_than_given(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 4);
    gpst_stats stats;
    crowd all;
    memset(&all, 0, sizeof all);
    gpst_pipeline_desc desc = kit_simple(self, 60, join_the_crowd);
    self->stages[0].user_data = &all;
    desc.n_items_expected = 60;
    desc.settings.value[GPST_KNOB_WORKERS] = 2;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, 60);
    assert_in_range(gpsti_a32_load(&all.most), 1, 2);
    kit_close(self);
}

/* Item 0 fails after the others have begun: it alone, unless the run is to stop. */
static void test_item_0_fails(void** state) {
    (void)state;
    for (int stops = 0; stops < 2; stops++) {
        kit* const self = kit_open("cpu", 2);
        early watch;
        gpst_stats stats;
        gpst_pipeline_desc desc = early_desc(self, &watch, 100);
        watch.result = GPST_ERROR_FORMAT;
        desc.stop_on_error = stops != 0;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_PARTIAL);
        assert_true(watch.seen);
        assert_int_equal(self->results[0], GPST_ERROR_FORMAT);
        assert_int_equal(self->n_failed, 1);
        assert_true(stops ? self->n_ok < 99 : self->n_ok == 99);
        assert_string_equal(self->failed_reason, "item 0 had enough");
        kit_close(self);
    }
}

/* Cancelled while both are at it. */
static void test_cancel(void** state) {
    (void)state;
    for (int round = 0; round < 40; round++) {
        kit* const self = kit_open("cpu", 3);
        gpsti_thread thread;
        early watch;
        gpst_stats stats;
        gpst_pipeline_desc desc = early_desc(self, &watch, 50);
        watch.wait_ns = SOME_NS / 4;
        watch.wants_ended = 50; /* which will not be */
        self->cancel_ns = round * (SOME_NS / 80);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpsti_thread_start(&thread, kit_cancel_soon, self, "cancel"), GPST_OK);
        const gpst_result result = gpst_pipeline_run(self->pipeline);
        gpsti_thread_join(&thread);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_true(result == GPST_OK || result == GPST_ERROR_CANCELLED);
        assert_int_equal(stats.items_ok + stats.items_failed + stats.items_cancelled, self->n_sinks);
        assert_true(result != GPST_OK || self->n_sinks == 50);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_close(self);
    }
}

static gpst_result source_that_refuses(void* user_data, uint64_t index, gpst_input* out) {
    early* const self = (early*)user_data;
    if (index == 0)
        test_memory_refuse(&self->kit->memory, 1);
    return kit_source_empty(self->kit, index, out);
}

static gpst_result wait_for_a_refusal(void* user_data, gpst_task* task) {
    early* const self = (early*)user_data;
    test_memory* const memory = &self->kit->memory;
    const int64_t end_ns = gpsti_now_ns() + self->wait_ns;
    if (task->item->index > 0)
        return GPST_OK;
    while (!test_memory_refused(memory) && gpsti_now_ns() < end_ns)
        gpsti_sleep_ns(100000);
    self->seen = test_memory_refused(memory);
    return GPST_OK;
}

/* No writer is to be had while item 0 is at work: it goes on as if nobody had tried to open an engine. */
static void test_no_memory_for_the_opening(void** state) {
    (void)state;
    for (uint64_t n_items = 3; n_items <= 300; n_items *= 10) {
        kit* const self = kit_open("cpu", 2);
        early watch;
        gpst_stats stats;
        gpst_pipeline_desc desc = early_desc(self, &watch, n_items);
        self->stages[0].func = wait_for_a_refusal;
        self->stages[1] = kit_stage(self, GPST_STAGE_WRITE, NULL, NULL);
        desc.n_stages = self->n_stages = 2;
        desc.source = source_that_refuses;
        desc.source_user_data = &watch;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_true(watch.seen);
        assert_int_equal(self->n_ok, n_items);
        kit_close(self);
    }
}

typedef struct early_run {
    early watch;
    gpsti_a32 n_items;
    gpst_result result;
} early_run;

static gpst_result source_of_20(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data;
    (void)out;
    return index < 20 ? GPST_OK : GPST_END;
}

static gpst_result count_items(void* user_data, const gpst_item* item) {
    early_run* const self = (early_run*)user_data;
    (void)gpsti_a32_add(&self->n_items, 1);
    return item->result;
}

static void run_early(void* argument) {
    early_run* const self = (early_run*)argument;
    gpst_stage_desc stage = kit_stage(self->watch.kit, GPST_STAGE_HOST, wait_for_others, "work");
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    stage.user_data = &self->watch;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = source_of_20;
    desc.sink = count_items;
    desc.sink_user_data = self;
    desc.n_items_expected = 20;
    self->result = gpst_pipeline_create(self->watch.kit->context, &desc, &pipeline);
    if (self->result == GPST_OK)
        self->result = gpst_pipeline_run(pipeline);
    (void)gpst_pipeline_destroy(pipeline);
}

/* Whose workers are one context's: they look at each. */
static void test_several_pipelines(void** state) {
    (void)state;
    static early_run runs[4];
    gpsti_thread threads[4];
    kit* const self = kit_open("cpu", 2);
    memset(runs, 0, sizeof runs);
    for (int i = 0; i < 4; i++) {
        runs[i].watch.kit = self;
        runs[i].watch.wait_ns = PATIENCE_NS;
        assert_int_equal(gpsti_thread_start(&threads[i], run_early, &runs[i], "run"), GPST_OK);
    }
    for (int i = 0; i < 4; i++) {
        gpsti_thread_join(&threads[i]);
        assert_int_equal(runs[i].result, GPST_OK);
        assert_true(runs[i].watch.seen);
        assert_int_equal(gpsti_a32_load(&runs[i].n_items), 20);
    }
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_begin),
        cmocka_unit_test(test_others_end),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_others_wait),
        cmocka_unit_test(test_what_pays),
        cmocka_unit_test(test_what_an_engine_gains),
        cmocka_unit_test(test_what_opening_takes),
        cmocka_unit_test(test_when_it_is_looked_at),
        cmocka_unit_test(test_slow_opening),
        cmocka_unit_test(test_no_more_at_work_than_given),
        cmocka_unit_test(test_item_0_fails),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_no_memory_for_the_opening),
        cmocka_unit_test(test_several_pipelines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
