/* tests/test_pipeline_batch.c -- several items in one submission to the device: how many go together, that their bits
   are those of items by themselves, and that one item's trouble is not its companions'. */
#define KIT_NAMES_ITS_BACKENDS
#include "pipeline_kit.h"

/* The device under test; test_batch_gpu.c includes this file with another one. */
#if !defined(DEVICE)
#define DEVICE "sim"
#define DEVICE_IS_MODELLED 1
#endif

#define N_ITEMS 40u
#define MOST_SIDE 40u
#define LARGE_SIDE 300u /* with its outputs beyond what stays in place */
#define OUT_WIDTH 12u
#define OUT_HEIGHT 10u
#define VIEW_BYTES (OUT_WIDTH * OUT_HEIGHT * 3u)
#define N_VIEWS 3u
#define OUT_BYTES (N_VIEWS * VIEW_BYTES)

static uint8_t frames[N_ITEMS][LARGE_SIDE * LARGE_SIDE * 3];
static gpst_image shapes[N_ITEMS];
static uint8_t wanted[N_ITEMS][OUT_BYTES], got[N_ITEMS][OUT_BYTES];
static gpst_warp* warp;

/* ---- the items ------------------------------------------------------------------------------------------- */

static gpst_image rgb_shape(uint32_t width, uint32_t height) {
    gpst_image shape = kit_shape(width, height);
    shape.format = GPST_FORMAT_RGB;
    return shape;
}

static gpst_warp* make_warp(gpst_image mask) {
    gpst_view views[N_VIEWS];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* out = NULL;
    memset(views, 0, sizeof views);
    for (uint32_t v = 0; v < N_VIEWS; v++)
        views[v].yaw = 120.0 * v;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = N_VIEWS;
    desc.width = OUT_WIDTH;
    desc.height = OUT_HEIGHT;
    desc.format = GPST_FORMAT_RGB;
    desc.mask = mask;
    assert_int_equal(gpst_warp_create(&desc, &out), GPST_OK);
    return out;
}

static int make_items(void** state) {
    uint64_t random = test_seed(11);
    const gpst_image no_mask = GPST_ZERO;
    (void)state;
    warp = make_warp(no_mask);
    for (uint32_t n = 0; n < N_ITEMS; n++) {
        gpst_image outputs[N_VIEWS];
        for (size_t i = 0; i < sizeof frames[n]; i++)
            frames[n][i] = (uint8_t)test_random(&random);
        shapes[n] = n < N_ITEMS / 2 ? rgb_shape(MOST_SIDE, MOST_SIDE - 1) /* alike, then of any size */
                                    : rgb_shape(1 + (uint32_t)(test_random(&random) % MOST_SIDE),
                                                1 + (uint32_t)(test_random(&random) % MOST_SIDE));
        if (n > N_ITEMS / 2 && n % 4 == 3)
            shapes[n] = rgb_shape(LARGE_SIDE, LARGE_SIDE);
        shapes[n].data = frames[n];
        for (uint32_t v = 0; v < N_VIEWS; v++) {
            outputs[v] = rgb_shape(OUT_WIDTH, OUT_HEIGHT);
            outputs[v].data = wanted[n] + v * VIEW_BYTES;
        }
        /* On all cores: OpenMP keeps its threads, so they are there before the kit counts any. */
        assert_int_equal(gpst_warp_run(warp, &shapes[n], outputs, N_VIEWS, 0), GPST_OK);
    }
    return 0;
}

static int forget_items(void** state) {
    (void)state;
    gpst_warp_destroy(warp);
    return 0;
}

static gpst_result frame_source(void* user_data, uint64_t index, gpst_input* out) {
    const kit* const self = (const kit*)user_data;
    if (self->source_ns > 0)
        gpsti_sleep_ns(self->source_ns);
    if (index >= self->n_items)
        return GPST_END;
    out->frame = shapes[index];
    return GPST_OK;
}

static gpst_result keep_output(void* user_data, const gpst_item* item) {
    for (uint32_t v = 0; item->result == GPST_OK && v < N_VIEWS; v++)
        memcpy(got[item->index] + v * VIEW_BYTES, item->sets[1].pictures[v].data, VIEW_BYTES);
    return kit_sink(user_data, item);
}

static gpst_pipeline_desc batch_desc(kit* self, uint64_t n_items, uint32_t batch, uint32_t n_slots) {
    self->n_items = n_items;
    self->stages[0] = kit_stage(self, GPST_STAGE_WARP, NULL, NULL);
    self->stages[0].warp = warp;
    self->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.source = frame_source;
    desc.sink = keep_output;
    desc.capacity[1] = 0; /* the warp's */
    desc.batch = batch;
    desc.n_slots = n_slots;
    memset(got, 0xA5, sizeof got);
    return desc;
}

static void check_outputs(const kit* self) {
    for (uint64_t n = 0; n < self->n_items; n++)
        if (self->seen[n] && self->results[n] == GPST_OK && memcmp(got[n], wanted[n], OUT_BYTES) != 0)
            fail_msg("item %u is wrong", (unsigned)n);
}

static kit* open_required(const char* backend, uint32_t n_workers) {
    kit* const self = kit_open("cpu", n_workers);
    gpst_context_desc context = GPST_ZERO;
    context.backend = backend;
    context.require_backend = true;
    context.n_workers = n_workers;
    kit_reopen(self, &context);
    return self;
}

static const gpst_path* find_path(const gpst_stats* stats, const char* what) {
    for (uint32_t p = 0; p < stats->n_paths; p++)
        if (strcmp(stats->paths[p].what, what) == 0)
            return &stats->paths[p];
    return NULL;
}

/* ---- how many go together ---------------------------------------------------------------------------------- */

typedef struct held_worker {
    gpsti_a32 is_held, may_go;
} held_worker;

static gpst_result hold_worker(void* user_data, gpst_task* task) {
    held_worker* const self = (held_worker*)user_data;
    (void)task;
    gpsti_a32_store(&self->is_held, 1);
    while (gpsti_a32_load(&self->may_go) == 0)
        gpsti_sleep_ns(100000);
    return GPST_OK;
}

/* Another pipeline has the only worker until all items are submitted: what goes together is known. */
static void run_held(kit* self, gpst_pipeline_desc* desc, gpst_stats* stats) {
    held_worker worker;
    gpst_pipeline* other = NULL;
    gpst_stage_desc stage = kit_stage(self, GPST_STAGE_HOST, hold_worker, "hold");
    gpst_pipeline_desc other_desc = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    memset(&worker, 0, sizeof worker);
    stage.user_data = &worker;
    other_desc.stages = &stage;
    other_desc.n_stages = 1;
    assert_int_equal(gpst_pipeline_create(self->context, &other_desc, &other), GPST_OK);
    assert_int_equal(gpst_pipeline_submit(other, &input, 0, NULL), GPST_OK);
    while (gpsti_a32_load(&worker.is_held) == 0)
        gpsti_sleep_ns(100000);
    desc->source = NULL;
    kit_forget(self);
    assert_int_equal(gpst_pipeline_create(self->context, desc, &self->pipeline), GPST_OK);
    for (uint64_t n = 0; n < self->n_items; n++) {
        input.frame = shapes[n];
        assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, 0, NULL), GPST_OK);
        gpsti_sleep_ns(self->source_ns);
    }
    gpsti_a32_store(&worker.may_go, 1);
    assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
    gpst_pipeline_query_stats(self->pipeline, stats);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(other), GPST_OK);
    self->pipeline = NULL;
}

/* A launch that is made to fail and is never reached was not made. */
static void test_launches_are_shared(void** state) {
    (void)state;
    static const struct {
        uint32_t batch, n_launches;
        const char *taken, *why_not;
    } cases[] = {{0, 12, "each by itself", "together: batch=1"},
                 {1, 12, "each by itself", "together: batch=1"},
                 {2, 6, "2.0 items together", ""},
                 {4, 3, "4.0 items together", ""},
                 {5, 3, "4.0 items together", "5 together: so many were not ready when the device was"},
                 {64, 1, "12.0 items together", "64 together: so many were not ready when the device was"}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (uint32_t past = 0; past < 2; past++) {
            char backend[64];
            gpst_stats stats;
            snprintf(backend, sizeof backend, DEVICE ":fail_launch=%u", (unsigned)(cases[c].n_launches + past));
            kit* const self = open_required(backend, 1);
            self->wants_none = past;
            gpst_pipeline_desc desc = batch_desc(self, 12, cases[c].batch, 12);
            const bool alone = cases[c].batch < 2;
            run_held(self, &desc, &stats);
            assert_int_equal(self->n_ok, 12 - (alone && !past ? 1 : 0));
            check_outputs(self);
            assert_int_equal(stats.device_fallbacks, 0);
            const gpst_path* const path = find_path(&stats, "batch");
            assert_non_null(path);
            if (past) {
                assert_string_equal(path->taken, cases[c].taken);
                assert_string_equal(path->why_not, cases[c].why_not);
                assert_int_equal(stats.stages[1].count, 12);
                assert_int_equal(stats.bytes_d2h, 12 * OUT_BYTES);
            } else if (!alone) { /* taken apart: then each by itself, and every one is good */
                assert_non_null(strstr(path->why_not, "1 batches failed and were taken apart: "));
                assert_non_null(strstr(path->why_not, "launch: injected fault"));
                assert_int_equal(gpsti_a32_load(&self->log.n_warnings), 0);
            }
            kit_close(self);
        }
    }
}

/* A pipeline without a context: two steps, and items that come to the first. */
typedef struct queued {
    gpst_context context; /* of nothing */
    gpst_pipeline pipeline;
    gpsti_threads threads;
    gpsti_item items[8];
    gpsti_item* rooms[8][8];
    gpsti_camera cameras[2];
    gpsti_step* step;
} queued;

static void open_queue(queued* self, const gpsti_step_kind* kind) {
    memset(self, 0, sizeof *self);
    self->pipeline.context = &self->context;
    self->pipeline.threads = &self->threads;
    self->pipeline.items.cameras = self->cameras;
    self->pipeline.plan.n_steps = 2;
    self->pipeline.plan.steps[1].index = 1;
    self->step = &self->pipeline.plan.steps[0];
    self->step->kind = kind;
    self->step->batch = 1;
    for (uint32_t n = 0; n < 8; n++) {
        gpsti_item* const item = &self->items[n];
        item->pipeline = &self->pipeline;
        item->batch.item = item;
        item->room = self->rooms[n];
        item->state = GPSTI_ITEM_RUNS;
        gpsti_item_list* const runs = &self->pipeline.items.lists[GPSTI_ITEM_RUNS];
        item->previous = runs->last;
        *(runs->last ? &runs->last->next : &runs->first) = item;
        runs->last = item;
        runs->n++;
    }
}

/* The rules by themselves: who waits for whom, and who never does. */
static void test_who_waits(void** state) {
    (void)state;
    static queued self;
    open_queue(&self, gpsti_step_device());
    gpsti_step* const step = self.step;
    gpsti_item* const items = self.items;
    step->gated = true;
    step->batch = 4;
    step->batch_full = 3;
    gpsti_queue_put(NULL, &items[0].batch);
    assert_true(gpsti_queue_may_take(NULL, step)); /* alone, on an idle device */
    step->queue.on_device = 1;
    assert_false(gpsti_queue_may_take(NULL, step));
    gpsti_queue_put(NULL, &items[1].batch);
    assert_false(gpsti_queue_may_take(NULL, step));
    assert_null(gpsti_queue_take(NULL, step));
    step->queue.on_device = 0;
    assert_true(gpsti_queue_may_take(NULL, step)); /* idle again: who is there goes */
    step->queue.on_device = 1;
    gpsti_queue_put(NULL, &items[2].batch);
    assert_true(gpsti_queue_may_take(NULL, step)); /* enough */
    for (uint32_t n = 3; n < 6; n++)
        gpsti_queue_put(NULL, &items[n].batch);
    assert_true(gpsti_queue_may_take(NULL, step));
    step->streams = 1;
    assert_false(gpsti_queue_may_take(NULL, step)); /* a batch is one of them */
    step->streams = 9;
    items[2].on_cpu = true; /* no company, and no waiting */
    gpsti_batch* batch = gpsti_queue_take(NULL, step);
    assert_ptr_equal(batch, &items[0].batch);
    assert_int_equal(batch->n, 2);
    assert_ptr_equal(batch->items[1], &items[1]);
    assert_true(batch->entered && batch->on_device);
    items[6].batch.returned = true; /* back from the device: it goes first, and by itself */
    gpsti_queue_put(NULL, &items[6].batch);
    assert_ptr_equal(gpsti_queue_take(NULL, step), &items[6].batch);
    batch = gpsti_queue_take(NULL, step);
    assert_ptr_equal(batch, &items[2].batch);
    assert_int_equal(batch->n, 1);
    items[4].single = true; /* likewise */
    step->batch_full = 1;
    batch = gpsti_queue_take(NULL, step);
    assert_ptr_equal(batch, &items[3].batch);
    assert_int_equal(batch->n, 1);
}

/* Whose camera was served longest ago; but where batches have deadlines the first, as the policy has chosen. */
static void test_who_is_next(void** state) {
    (void)state;
    static queued self;
    static gpsti_batch_times times;
    for (int with_deadlines = 0; with_deadlines < 2; with_deadlines++) {
        open_queue(&self, gpsti_step_host());
        self.step->queue.times = with_deadlines ? &times : NULL;
        self.pipeline.items.n_cameras = 2;
        self.cameras[0].served[0] = 7;
        for (uint32_t n = 0; n < 2; n++) {
            self.items[n].shown.camera = n;
            self.items[n].shown.timestamp_ns = 0;
            gpsti_queue_put(NULL, &self.items[n].batch);
        }
        assert_ptr_equal(gpsti_queue_take(NULL, self.step), &self.items[with_deadlines ? 0 : 1].batch);
        assert_ptr_equal(gpsti_queue_take(NULL, self.step), &self.items[with_deadlines ? 1 : 0].batch);
        assert_null(gpsti_queue_take(NULL, self.step));
    }
}

#if DEVICE_IS_MODELLED
/* A launch of 1000 us and kernels of 10, on the device's own clock: 12 items are 12 launches, or one. Each item's clock
   has its share. */
static void test_what_it_saves(void** state) {
    (void)state;
    for (int together = 0; together < 2; together++) {
        kit* const self = kit_open("sim:virtual=1,launch_us=1000,kernel_us=10", 1);
        self->source_ns = 100000;
        gpst_pipeline_desc desc = batch_desc(self, 12, together ? 12 : 1, 12);
        gpst_stats stats;
        run_held(self, &desc, &stats);
        assert_int_equal(self->n_ok, 12);
        const int64_t busy_ns = stats.stages[1].busy_ns;
        assert_int_equal(stats.stages[1].count, 12);
        if (together)
            assert_int_equal(busy_ns, 12 * (1010000 / 12));
        else
            assert_true(busy_ns >= 12 * 1010000);
        assert_true(stats.stages[1].wait_ns >= 78 * self->source_ns); /* 12, 11, ... frames */
        kit_close(self);
    }
}
#endif

/* ---- the same bits ----------------------------------------------------------------------------------------- */

static void test_same_bits(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", DEVICE,
#if DEVICE_IS_MODELLED
                                           "sim:launch_us=300,kernel_us=20", "sim:jitter_pct=90,copy_engines=1",
#endif
                                           DEVICE ":lose_at=3"};
    for (size_t b = 0; b < sizeof backends / sizeof backends[0]; b++) {
        for (uint32_t batch = 1; batch < 9; batch += 1 + batch / 2) {
            kit* const self = kit_open(backends[b], 1 + batch % 3);
            const gpst_pipeline_desc desc = batch_desc(self, N_ITEMS, batch, batch % 2 ? 0 : 7);
            gpst_stats stats;
            assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
            check_outputs(self);
            assert_int_equal(self->n_ok, N_ITEMS);
            assert_true(b == 0 || desc.n_slots != 0 || stats.slots >= 3 * batch);
            if (strstr(backends[b], "lose_at"))
                assert_true(stats.device_fallbacks > 0);
            else
                assert_int_equal(stats.device_fallbacks, 0);
            kit_close(self);
        }
    }
}

/* ---- trouble ------------------------------------------------------------------------------------------------- */

/* Every call of every kind fails in turn. A batch is taken apart, so it costs an item at most where the backend must be
   used, and none where the CPU may help. */
static void test_faults(void** state) {
    (void)state;
    static const char* const faults[] = {"copy", "launch", "event", "stream", "notify", "alloc"};
    uint32_t n_fired = 0;
    for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++) {
        kit_count_faults();
        for (unsigned nth = 1; nth < 14; nth += 1 + nth / 4) {
            for (int required = 0; required < 2; required++) {
                char backend[64];
                gpst_stats stats;
                snprintf(backend, sizeof backend, DEVICE ":fail_%s=%u", faults[f], nth);
                kit* const self = required ? open_required(backend, 2) : kit_open(backend, 2);
                const gpst_pipeline_desc desc = batch_desc(self, 20, 3, 9);
                const gpst_result result = kit_run(self, &desc, &stats);
                assert_true(result == GPST_OK || (required && result == GPST_PARTIAL));
                assert_int_equal(self->n_sinks, 20);
                assert_true(self->n_failed + stats.device_fallbacks <= 1);
                if (self->n_failed)
                    assert_non_null(strstr(self->failed_reason, "injected fault"));
                check_outputs(self);
                kit_close(self);
            }
        }
        const uint32_t n = kit_counted_faults();
        assert_true(n >= (DEVICE_IS_MODELLED ? 2 : 0)); /* the first call at least, with either backend */
        n_fired += n;
    }
    assert_true(n_fired >= 8); /* a GPU that reads host memory may copy nothing */
}

/* What is wrong with an item fails it, with its own sentence, and its companions are good. */
static void test_a_bad_item(void** state) {
    (void)state;
    static uint8_t mask[MOST_SIDE * (MOST_SIDE - 1)];
    gpst_image mask_image = kit_shape(MOST_SIDE, MOST_SIDE - 1);
    gpst_stats stats;
    memset(mask, 1, sizeof mask);
    mask_image.data = mask;
    gpst_warp* const masked = make_warp(mask_image);
    kit* const self = kit_open(DEVICE, 1);
    gpst_pipeline_desc desc = batch_desc(self, 12, 4, 12);
    self->stages[0].warp = masked;
    const gpst_image good = shapes[5];
    shapes[5].width--; /* the mask is for another size */
    assert_int_equal(kit_run(self, &desc, &stats), GPST_PARTIAL);
    shapes[5] = good;
    assert_int_equal(self->n_failed, 1);
    assert_int_equal(self->results[5], GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(self->failed_reason, "mask"));
    assert_int_equal(stats.device_fallbacks, 0);
    check_outputs(self);
    kit_close(self);
    gpst_warp_destroy(masked);
}

static void test_cancel(void** state) {
    (void)state;
    uint64_t random = test_seed(7);
    kit* const self = kit_open(DEVICE_IS_MODELLED ? "sim:launch_us=200,h2d_gbps=0.02" : DEVICE, 2);
    for (int i = 0; i < 20; i++) {
        gpsti_thread thread;
        gpst_stats stats;
        kit_forget(self);
        const gpst_pipeline_desc desc = batch_desc(self, N_ITEMS, 2 + (uint32_t)(test_random(&random) % 6),
                                                   1 + (uint32_t)(test_random(&random) % 15));
        self->sink_ns = self->cancel_ns = (int64_t)(test_random(&random) % 400000);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpsti_thread_start(&thread, kit_cancel_soon, self, "cancel"), GPST_OK);
        const gpst_result result = gpst_pipeline_run(self->pipeline);
        gpsti_thread_join(&thread);
        assert_true(result == GPST_OK || result == GPST_ERROR_CANCELLED);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_int_equal(stats.items_ok + stats.items_cancelled, self->n_sinks);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        check_outputs(self);
    }
    kit_close(self);
}

/* ---- pushed ---------------------------------------------------------------------------------------------------- */

/* Nobody waits for company that never comes. */
static void test_pushed(void** state) {
    (void)state;
    kit* const self = kit_open(DEVICE, 2);
    gpst_pipeline_desc desc = batch_desc(self, N_ITEMS, 8, 24);
    desc.source = NULL;
    desc.sink = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    uint64_t n_taken = 0;
    for (uint32_t together = 1; n_taken + together <= N_ITEMS; together += 2) {
        for (uint32_t n = 0; n < together; n++) {
            gpst_input input = GPST_ZERO;
            input.frame = shapes[n_taken + n];
            assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        }
        for (uint32_t n = 0; n < together; n++, n_taken++) {
            const gpst_item* item = NULL;
            assert_int_equal(gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &item), GPST_OK);
            assert_int_equal(item->index, n_taken);
            assert_int_equal(item->result, GPST_OK);
            for (uint32_t v = 0; v < N_VIEWS; v++)
                assert_memory_equal(item->sets[1].pictures[v].data, wanted[n_taken] + v * VIEW_BYTES, VIEW_BYTES);
            gpst_pipeline_release(self->pipeline, item);
        }
    }
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_close(self);
}

/* ---- where there are none ---------------------------------------------------------------------------------------- */

static gpst_result count_call(void* user_data, gpst_task* task) {
    (void)task;
    (void)gpsti_a32_add((gpsti_a32*)user_data, 1);
    return GPST_OK;
}

static void test_where_there_are_none(void** state) {
    (void)state;
    gpsti_a32 n_calls = GPST_ZERO;
    gpst_stats stats;
    kit* self = kit_open(DEVICE, 1);
    gpst_pipeline_desc desc = batch_desc(self, 12, 4, 12);
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, count_call, "own");
    self->stages[1].user_data = &n_calls;
    self->stages[1].reads = GPST_SET(1);
    desc.n_stages = 2;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    check_outputs(self);
    assert_int_equal(gpsti_a32_load(&n_calls), 12);
    assert_string_equal(find_path(&stats, "batch")->taken, "each by itself");
    assert_string_equal(find_path(&stats, "batch")->why_not, "together: DEVICE stages are called for each item");
    kit_close(self);
    self = kit_open("cpu", 1);
    desc = batch_desc(self, 12, 4, 12);
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_string_equal(find_path(&stats, "batch")->why_not, "together: computed in place");
    desc.batch = 65;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_pipeline_create: batch=65: at most 64");
    kit_close(self);
}

int main(void) {
#if !DEVICE_IS_MODELLED
    if (!device_is_there(NULL))
        return GPST_TEST_SKIP;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_launches_are_shared),
        cmocka_unit_test(test_who_waits),
        cmocka_unit_test(test_who_is_next),
#if DEVICE_IS_MODELLED
        cmocka_unit_test(test_what_it_saves),
#endif
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_a_bad_item),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_pushed),
        cmocka_unit_test(test_where_there_are_none),
    };
    return cmocka_run_group_tests(tests, make_items, forget_items);
}
