/* tests/test_pipeline_batch_func.c -- stages that take several items at once: how many, whose result is whose, and what
   becomes of a batch that fails. Bits and copies of batches on a device: test_pipeline_sets.c. */
#define KIT_NAMES_ITS_BACKENDS
#include "pipeline_kit.h"

#define MOST_CALLS 64
#define MOST_ITEMS 64

typedef struct batches {
    kit* kit;
    gpst_pipeline* pipeline;
    gpst_stage_desc stage;
    gpst_pipeline_desc desc;
    gpsti_a32 open, n_calls, inside, most_inside;
    uint32_t sizes[MOST_CALLS];
    uint32_t items[MOST_CALLS][8]; /* by timestamp */
    gpst_result fails_whole; /* a call with more than one item returns this */
    gpst_result ends[MOST_ITEMS];
    char reasons[MOST_ITEMS][64], stages[MOST_ITEMS][32];
    uint32_t order[MOST_ITEMS], n_ended;
} batches;

static batches the_batches;

/* Waits until the door is open; items 5, 15, ... fail. */
static gpst_result take(void* user_data, gpst_task* tasks, uint32_t n_tasks, gpst_result* results) {
    batches* const self = (batches*)user_data;
    const uint32_t call = gpsti_a32_add(&self->n_calls, 1), inside = gpsti_a32_add(&self->inside, 1) + 1;
    if (inside > gpsti_a32_load(&self->most_inside))
        gpsti_a32_store(&self->most_inside, inside);
    kit_check(self->kit, call < MOST_CALLS && n_tasks >= 1 && n_tasks <= 8);
    self->sizes[call % MOST_CALLS] = n_tasks;
    for (uint32_t i = 0; i < n_tasks; i++) {
        self->items[call % MOST_CALLS][i] = (uint32_t)tasks[i].item->timestamp_ns;
        kit_check(self->kit, results[i] == GPST_OK && tasks[i].pipeline == self->pipeline);
    }
    while (gpsti_a32_load(&self->open) == 0)
        gpsti_sleep_ns(20000);
    (void)gpsti_a32_add(&self->inside, UINT32_MAX);
    if (n_tasks > 1 && self->fails_whole != GPST_OK)
        return gpst_task_fail(NULL, self->fails_whole, "not together");
    for (uint32_t i = 0; i < n_tasks; i++)
        if (tasks[i].item->timestamp_ns % 10 == 5)
            results[i] = gpst_task_fail(&tasks[i], GPST_ERROR_FORMAT, "item %d is no good",
                                        (int)tasks[i].item->timestamp_ns);
    return GPST_OK;
}

static gpst_result note_end(void* user_data, const gpst_item* item) {
    batches* const self = (batches*)user_data;
    const size_t k = (size_t)item->timestamp_ns % MOST_ITEMS;
    self->ends[k] = item->result;
    snprintf(self->reasons[k], sizeof self->reasons[k], "%.60s", item->reason);
    snprintf(self->stages[k], sizeof self->stages[k], "%s", item->stage);
    self->order[self->n_ended++ % MOST_ITEMS] = (uint32_t)k;
    return GPST_OK;
}

static batches* batches_open(const char* backend, uint32_t n_workers, gpst_stage_kind kind) {
    batches* const self = &the_batches;
    memset(self, 0, sizeof *self);
    self->kit = kit_open(backend, n_workers);
    self->stage.kind = kind;
    self->stage.name = "several";
    self->stage.batch_func = take;
    self->stage.batch_most = 4;
    self->stage.user_data = self;
    self->desc.stages = &self->stage;
    self->desc.n_stages = 1;
    self->desc.sink = note_end;
    self->desc.sink_user_data = self;
    self->desc.n_slots = MOST_ITEMS;
    return self;
}

/* The first item is inside of the function before the others come. */
static void submit_all(batches* self, uint32_t n, uint32_t n_cameras) {
    static uint8_t pixels[64];
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &self->pipeline), GPST_OK);
    self->kit->pipeline = self->pipeline;
    for (uint32_t k = 0; k < n; k++) {
        gpst_input input = GPST_ZERO;
        input.timestamp_ns = k;
        input.camera = k % n_cameras;
        input.frame = kit_shape(8, 8);
        input.frame.data = pixels;
        assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, 0, NULL), GPST_OK);
        while (k == 0 && gpsti_a32_load(&self->inside) == 0)
            gpsti_sleep_ns(20000);
    }
}

static void batches_close(batches* self) {
    gpsti_a32_store(&self->open, 1);
    gpst_pipeline_close(self->pipeline);
    assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_close(self->kit);
}

static void check_sizes(const batches* self, const uint32_t* wanted, uint32_t n) {
    assert_int_equal(gpsti_a32_load(&self->n_calls), n);
    for (uint32_t k = 0; k < n; k++)
        if (self->sizes[k] != wanted[k])
            fail_msg("call %u had %u items instead of %u", k, self->sizes[k], wanted[k]);
}

/* What is ready goes at once: one item, then as many as may. Each fails for itself, with its own sentence. */
static void test_what_is_ready_goes(void** state) {
    static const struct {
        const char* backend;
        gpst_stage_kind kind;
    } cases[] = {{"cpu", GPST_STAGE_HOST}, {"cpu", GPST_STAGE_DEVICE}};
    static const uint32_t wanted[] = {1, 4, 4, 2};
    (void)state;
    for (size_t c = 0; c < 2; c++) {
        batches* const self = batches_open(cases[c].backend, 1, cases[c].kind);
        submit_all(self, 11, 1);
        batches_close(self);
        assert_int_equal(self->n_ended, 11);
        for (uint32_t k = 0; k < 11; k++) {
            assert_int_equal(self->order[k], k);
            assert_int_equal(self->ends[k], k == 5 ? GPST_ERROR_FORMAT : GPST_OK);
        }
        assert_string_equal(self->reasons[5], "item 5 is no good");
        assert_string_equal(self->stages[5], "several");
        if (cases[c].kind == GPST_STAGE_HOST)
            check_sizes(self, wanted, 4);
        else /* a device's batch with a bad item is taken apart */
            assert_true(self->sizes[0] == 1 && self->sizes[1] == 4);
    }
}

/* Nothing was done for any of them: each is tried alone. */
static void test_a_batch_that_fails(void** state) {
    static const uint32_t wanted[] = {1, 4, 1, 1, 1, 1, 2, 1, 1};
    (void)state;
    batches* const self = batches_open("cpu", 1, GPST_STAGE_HOST);
    self->fails_whole = GPST_ERROR_MEMORY;
    submit_all(self, 7, 1);
    batches_close(self);
    check_sizes(self, wanted, 9);
    for (uint32_t k = 0; k < 7; k++)
        assert_int_equal(self->ends[k], k == 5 ? GPST_ERROR_FORMAT : GPST_OK);
    assert_string_equal(self->reasons[5], "item 5 is no good");
}

/* Fewer than a batch wait for more while another one is under way, whatever the workers, and go when it is done. */
static void test_a_part_of_a_batch_waits(void** state) {
    static const uint32_t wanted[] = {1, 3};
    (void)state;
    batches* const self = batches_open("cpu", 4, GPST_STAGE_HOST);
    submit_all(self, 4, 1);
    gpsti_sleep_ns(5000000);
    assert_int_equal(gpsti_a32_load(&self->n_calls), 1);
    batches_close(self);
    check_sizes(self, wanted, 2);
}

/* Where nobody says how many slots there are, there are enough for the batches of the mode. */
static void test_slots_are_enough(void** state) {
    static const uint32_t wanted[] = {12, 8, 12, 16}; /* (depth + 1) batches of 4, by preset */
    (void)state;
    for (int preset = 0; preset <= (int)GPST_PRESET_THROUGHPUT; preset++) {
        batches* const self = batches_open("cpu", 1, GPST_STAGE_HOST);
        gpst_stats stats;
        self->desc.preset = (gpst_preset)preset;
        self->desc.n_slots = 0;
        assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &self->pipeline), GPST_OK);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_int_equal(stats.slots, wanted[preset]);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_close(self->kit);
    }
}

/* Two batches are in the stage at most, with the preset LATENCY one, with a concurrency so many; others gather. */
static void test_how_many_at_a_time(void** state) {
    static const struct {
        gpst_preset preset;
        uint32_t concurrency, wanted;
    } cases[] = {{GPST_PRESET_BALANCED, 0, 2}, {GPST_PRESET_LATENCY, 0, 1}, {GPST_PRESET_LATENCY, 3, 3}};
    (void)state;
    for (size_t c = 0; c < 3; c++) {
        batches* const self = batches_open("cpu", 4, GPST_STAGE_HOST);
        self->desc.preset = cases[c].preset;
        self->stage.concurrency = cases[c].concurrency;
        submit_all(self, 20, 1);
        while (gpsti_a32_load(&self->inside) < cases[c].wanted)
            gpsti_sleep_ns(20000);
        gpsti_sleep_ns(5000000);
        assert_int_equal(gpsti_a32_load(&self->n_calls), cases[c].wanted);
        batches_close(self);
        for (uint32_t k = 1; k < cases[c].wanted; k++) /* beside another one only full ones */
            assert_int_equal(self->sizes[k], 4);
        assert_int_equal(gpsti_a32_load(&self->most_inside), cases[c].wanted);
    }
}

/* An ordered stage has one item of a camera at a time: those of several cameras go together. */
static void test_ordered_batches(void** state) {
    (void)state;
    batches* const self = batches_open("cpu", 1, GPST_STAGE_HOST);
    self->stage.ordered = true;
    submit_all(self, 24, 3);
    batches_close(self);
    uint32_t next[3] = {0, 1, 2};
    bool together = false;
    for (uint32_t c = 0; c < gpsti_a32_load(&self->n_calls); c++) {
        assert_true(self->sizes[c] <= 3);
        together = together || self->sizes[c] > 1;
        for (uint32_t i = 0; i < self->sizes[c]; i++) {
            const uint32_t item = self->items[c][i];
            assert_int_equal(item, next[item % 3]);
            next[item % 3] += 3;
        }
    }
    assert_true(together);
}

static void note_late(void* user_data, const gpst_item* item) {
    batches* const self = (batches*)user_data;
    const size_t k = (size_t)(uintptr_t)item->user_data;
    self->ends[k] = item->result;
    kit_check(self->kit, strcmp(item->stage, "several") == 0);
    snprintf(self->reasons[k], sizeof self->reasons[k], "%.60s", item->reason);
}

static gpst_result take_any(void* user_data, gpst_task* tasks, uint32_t n_tasks, gpst_result* results) {
    batches* const self = (batches*)user_data;
    const uint32_t call = gpsti_a32_add(&self->n_calls, 1);
    (void)tasks;
    (void)results;
    self->sizes[call % MOST_CALLS] = n_tasks;
    (void)gpsti_a32_add(&self->inside, 1);
    while (gpsti_a32_load(&self->open) == 0)
        gpsti_sleep_ns(20000);
    return GPST_OK;
}

static gpst_result end_any(void* user_data, const gpst_item* item) {
    batches* const self = (batches*)user_data;
    self->ends[(size_t)(uintptr_t)item->user_data] = item->result;
    return GPST_OK;
}

/* Items wanted by now, long ago, and at any time: the second ones are dropped when the stage is free, on every way. */
static void test_late_items(void** state) {
    static const gpst_stage_kind kinds[] = {GPST_STAGE_HOST, GPST_STAGE_DEVICE, GPST_STAGE_HOST};
    (void)state;
    for (int c = 0; c < 6; c++) {
        static uint8_t pixels[64];
        const uint32_t most = c < 3 ? 4 : 1; /* one at a time is a batch, too */
        batches* const self = batches_open(c % 3 == 2 ? "sim" : "cpu", 1, kinds[c % 3]);
        gpst_stats stats;
        self->stage.batch_func = take_any;
        self->desc.sink = end_any;
        self->desc.dropped = note_late;
        self->desc.dropped_user_data = self;
        self->desc.deadline_ns = 3600000 * GPST_MS;
        self->stage.batch_most = most;
        assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &self->pipeline), GPST_OK);
        self->kit->pipeline = self->pipeline;
        for (uint32_t k = 0; k < 10; k++) {
            gpst_input input = GPST_ZERO;
            const int64_t now_ns = gpst_now_ns();
            input.timestamp_ns = k % 3 == 0 ? now_ns : k % 3 == 1 ? now_ns - 7200000 * GPST_MS : 0;
            input.user_data = (void*)(uintptr_t)k;
            input.frame = kit_shape(8, 8);
            input.frame.data = pixels;
            assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, 0, NULL), GPST_OK);
            while (k == 0 && gpsti_a32_load(&self->inside) == 0)
                gpsti_sleep_ns(20000);
        }
        gpsti_a32_store(&self->open, 1);
        gpst_pipeline_close(self->pipeline);
        assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        const gpst_stage_stats* const row = &stats.stages[kinds[c % 3] == GPST_STAGE_DEVICE ? 1 : 0];
        assert_int_equal(row->n_late, 3);
        assert_int_equal(row->n_shed, 0);
        assert_int_equal(row->n_batches, most == 1 ? 7 : 3);
        assert_int_equal(stats.items_dropped, 3);
        assert_non_null(strstr(stats.settings, most == 1 ? "; several: batch=1 depth=2" : "; several: batch=4 depth=2"));
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        for (uint32_t k = 0; k < 10; k++)
            assert_int_equal(self->ends[k], k % 3 == 1 ? GPST_DROPPED : GPST_OK);
        assert_non_null(strstr(self->reasons[4], "deadline_ns=3600000000000: it would be late even alone"));
        kit_close(self->kit);
    }
}

/* One item is wanted so soon that it would go alone, and the four behind it go together in less than four times its
   time: it is given up for them. What batches take is set here; of one batch of each size nothing is learnt. */
static void test_one_is_shed_for_many(void** state) {
    static const gpst_stage_kind kinds[] = {GPST_STAGE_HOST, GPST_STAGE_DEVICE, GPST_STAGE_HOST};
    static const uint32_t wanted[] = {1, 4};
    (void)state;
    for (int c = 0; c < 3; c++) {
        static uint8_t pixels[64];
        batches* const self = batches_open(c == 2 ? "sim" : "cpu", 1, kinds[c]);
        gpst_stats stats;
        self->stage.batch_func = take_any;
        self->desc.sink = end_any;
        self->desc.dropped = note_late;
        self->desc.dropped_user_data = self;
        self->desc.deadline_ns = 5200000 * GPST_MS;
        assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &self->pipeline), GPST_OK);
        self->kit->pipeline = self->pipeline;
        gpsti_batch_times* const times = self->pipeline->plan.steps[0].queue.times;
        times->high_ns[1] = 4000000 * GPST_MS;
        times->high_ns[4] = 12000000 * GPST_MS;
        for (uint32_t k = 0; k < 6; k++) {
            gpst_input input = GPST_ZERO;
            input.timestamp_ns = k == 1 ? gpst_now_ns() : 0;
            input.user_data = (void*)(uintptr_t)k;
            input.frame = kit_shape(8, 8);
            input.frame.data = pixels;
            assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, 0, NULL), GPST_OK);
            while (k == 0 && gpsti_a32_load(&self->inside) == 0)
                gpsti_sleep_ns(20000);
        }
        gpsti_a32_store(&self->open, 1);
        gpst_pipeline_close(self->pipeline);
        assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        const gpst_stage_stats* const row = &stats.stages[kinds[c] == GPST_STAGE_DEVICE ? 1 : 0];
        assert_int_equal(row->n_late, 0);
        assert_int_equal(row->n_shed, 1);
        assert_int_equal(stats.items_dropped, 1);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        check_sizes(self, wanted, 2);
        for (uint32_t k = 0; k < 6; k++)
            assert_int_equal(self->ends[k], k == 1 ? GPST_DROPPED : GPST_OK);
        assert_non_null(strstr(self->reasons[1], "deadline_ns=5200000000000: given up, so that more"));
        kit_close(self->kit);
    }
}

/* All that wait in front of the later stage are late: they are told of, and the earlier stage goes on at once. */
static gpst_result work_a_while(void* user_data, gpst_task* task) {
    (void)task;
    (void)gpsti_a32_add((gpsti_a32*)user_data, 1);
    gpsti_sleep_ns(2 * GPST_MS);
    return GPST_OK;
}

static void count_end(void* user_data, const gpst_item* item) {
    (void)item;
    (void)gpsti_a32_add((gpsti_a32*)user_data, 1);
}

static gpst_result count_sunk(void* user_data, const gpst_item* item) {
    count_end(user_data, item);
    return GPST_OK;
}

static void test_all_late_and_more_to_do(void** state) {
    (void)state;
    batches* const self = batches_open("sim:kernel_us=8000", 1, GPST_STAGE_HOST);
    static uint8_t pixels[64];
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    gpst_stage_desc stages[2];
    gpsti_a32 n_worked = GPST_ZERO, n_ended = GPST_ZERO;
    warp_desc.map = GPST_MAP_RESIZE;
    warp_desc.width = warp_desc.height = 8;
    warp_desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&warp_desc, &warp), GPST_OK);
    gpst_stage_host(&stages[0], GPST_SET(0), 0, work_a_while, &n_worked);
    gpst_stage_warp(&stages[1], 0, 1, warp);
    stages[1].batch_most = 4;
    self->desc.stages = stages;
    self->desc.n_stages = 2;
    self->desc.sink = count_sunk;
    self->desc.dropped = count_end;
    self->desc.sink_user_data = self->desc.dropped_user_data = &n_ended;
    self->desc.deadline_ns = 60000 * GPST_MS;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &self->pipeline), GPST_OK);
    self->kit->pipeline = self->pipeline;
    for (uint32_t k = 0; k < 12; k++) {
        gpst_input input = GPST_ZERO;
        input.timestamp_ns = gpst_now_ns() - (k > 0 ? 120000 * GPST_MS : 0);
        input.frame = kit_shape(8, 8);
        input.frame.data = pixels;
        assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, 0, NULL), GPST_OK);
    }
    assert_int_equal(gpst_pipeline_drain(self->pipeline, 20000 * GPST_MS), GPST_OK);
    assert_int_equal(gpsti_a32_load(&n_worked), 12);
    assert_int_equal(gpsti_a32_load(&n_ended), 12);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    gpst_warp_destroy(warp);
    kit_close(self->kit);
}

/* What takes no batches may say that it takes one item at a time, which is what 0 says: it is called as ever. */
static gpst_result count_task(void* user_data, gpst_task* task) {
    gpst_image image;
    const gpst_image shape = kit_shape(8, 8);
    (void)gpsti_a32_add((gpsti_a32*)user_data, 1);
    return task->stage_index == 2 ? GPST_OK : gpst_task_set_picture(task, task->stage_index + 1, 0, &shape, &image);
}

static void test_one_at_a_time_without_batches(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    (void)state;
    for (size_t b = 0; b < 2; b++) {
        batches* const self = batches_open(backends[b], 2, GPST_STAGE_HOST);
        gpst_stage_desc stages[3];
        gpsti_a32 n_calls = GPST_ZERO;
        gpst_stats stats;
        gpst_stage_host(&stages[0], GPST_SET(0), GPST_SET(1), count_task, &n_calls);
        gpst_stage_device(&stages[1], GPST_SET(1), GPST_SET(2), count_task, &n_calls);
        gpst_stage_host(&stages[2], GPST_SET(2), 0, count_task, &n_calls);
        stages[2].per_picture = true;
        for (int s = 0; s < 3; s++)
            stages[s].batch_most = 1;
        self->desc.stages = stages;
        self->desc.n_stages = 3;
        gpsti_a32_store(&self->inside, 1); /* nobody waits at the door */
        submit_all(self, 9, 2);
        assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_null(strstr(stats.settings, "batch"));
        assert_int_equal(stats.items_ok, 9);
        assert_int_equal(gpsti_a32_load(&n_calls), 27);
        batches_close(self);
    }
}

static void test_refused(void** state) {
    (void)state;
    batches* const self = batches_open("cpu", 1, GPST_STAGE_HOST);
    gpst_pipeline* pipeline = NULL;
    self->stage.batch_most = 65;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("stages[0].batch_most=65", "at most 64");
    self->stage.batch_most = 2;
    self->stage.func = kit_nothing;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("stages[0].batch_func", "without func");
    self->stage.func = NULL;
    self->desc.deadline_ns = -1;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("deadline_ns=-1", "negative");
    self->desc.deadline_ns = 0;
    self->stage.func = kit_nothing;
    self->stage.batch_func = NULL;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("stages[0].batch_most=2", "only with batch_func");
    self->desc.deadline_ns = GPST_MS; /* nothing here would look at it */
    for (self->stage.batch_most = 0; self->stage.batch_most < 2; self->stage.batch_most++) {
        assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
        test_reason_has("deadline_ns=1000000", "batch_func");
    }
    kit_close(self->kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_ready_goes), cmocka_unit_test(test_a_batch_that_fails),
        cmocka_unit_test(test_how_many_at_a_time), cmocka_unit_test(test_ordered_batches),
        cmocka_unit_test(test_a_part_of_a_batch_waits), cmocka_unit_test(test_slots_are_enough),
        cmocka_unit_test(test_one_is_shed_for_many), cmocka_unit_test(test_all_late_and_more_to_do),
        cmocka_unit_test(test_late_items), cmocka_unit_test(test_one_at_a_time_without_batches),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests_name("pipeline_batch_func", tests, NULL, NULL);
}
