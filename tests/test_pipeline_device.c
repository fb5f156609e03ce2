/* tests/test_pipeline_device.c -- the engine on an asynchronous device: the same bytes as on the CPU, whatever the
   simulated device does wrong, and the slowest resource always busy. */
#define KIT_NAMES_ITS_BACKENDS
#include "pipeline_kit.h"

/* The device under test: a backend by name, and what it is given beside a fault. test_pipeline_gpu.c includes this
   file with another one. */
#if !defined(DEVICE)
#define DEVICE "sim"
#define DEVICE_WITH(modelled) "sim:" modelled
#define DEVICE_AND(modelled) "," modelled
#define DEVICE_OUT_OF_MEMORY "out of simulated memory"
#define DEVICE_IS_MODELLED 1
#endif

/* ---- the same pictures from every backend ----------------------------------------------------- */

#define FRAME_WIDTH 64u
#define FRAME_HEIGHT 32u
#define VIEW_WIDTH 24u
#define VIEW_HEIGHT 16u
#define N_VIEWS 3u
#define N_FRAMES 12u
#define VIEW_BYTES (VIEW_WIDTH * VIEW_HEIGHT * 3u)

static uint8_t frame_pixels[FRAME_WIDTH * FRAME_HEIGHT * 3];
static uint8_t pictures[N_FRAMES][N_VIEWS][VIEW_BYTES];

static gpst_image rgb_shape(uint32_t width, uint32_t height) {
    gpst_image shape = kit_shape(width, height);
    shape.format = GPST_FORMAT_RGB;
    return shape;
}

static gpst_result frame_source(void* user_data, uint64_t index, gpst_input* out) {
    uint64_t random = index + 1;
    (void)user_data;
    if (index >= N_FRAMES)
        return GPST_END;
    for (size_t i = 0; i < sizeof frame_pixels; i++)
        frame_pixels[i] = (uint8_t)test_random(&random);
    out->frame = rgb_shape(FRAME_WIDTH, FRAME_HEIGHT);
    out->frame.data = frame_pixels;
    return GPST_OK;
}

static gpst_result picture_sink(void* user_data, const gpst_item* item) {
    kit* const self = (kit*)user_data;
    const gpst_set* const last = &item->sets[item->n_sets - 1];
    for (uint32_t v = 0; item->result == GPST_OK && v < last->n; v++)
        memcpy(pictures[item->index][v], last->pictures[v].data, VIEW_BYTES);
    return kit_sink(self, item);
}

static gpst_warp* make_views(void) {
    gpst_view views[N_VIEWS];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    memset(views, 0, sizeof views);
    for (uint32_t v = 0; v < N_VIEWS; v++) {
        views[v].yaw = 120.0 * v;
        views[v].pitch = 30.0 * v - 30.0;
    }
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = N_VIEWS;
    desc.width = VIEW_WIDTH;
    desc.height = VIEW_HEIGHT;
    desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

/* The user's own device work behind the warp, in the same group: every output byte plus its view's number. */
static gpst_result add_view_number(const void* args) {
    const test_number_args* const a = (const test_number_args*)args;
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = (uint8_t)(a->from[i] + a->add);
    return GPST_OK;
}

static gpst_result number_views(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"number", add_view_number, TEST_GPU(test_number_gpu)};
    gpst_image views[N_VIEWS], numbered[N_VIEWS];
    (void)user_data;
    GPSTI_TRY(gpst_task_pictures(task, 1, views, N_VIEWS));
    for (uint32_t v = 0; v < N_VIEWS; v++) {
        test_number_args args;
        GPSTI_TRY(gpst_task_set_picture(task, 2, v, &views[v], &numbered[v]));
        memset(&args, 0, sizeof args);
        args.from = (const uint8_t*)views[v].data;
        args.to = (uint8_t*)numbered[v].data;
        args.add = v;
        args.bytes = VIEW_BYTES;
        GPSTI_TRY(gpst_task_enqueue(task, &kernel, &args, sizeof args));
    }
    return GPST_OK;
}

static gpst_result run_views(const char* backend, gpst_run_mode mode, const gpst_warp* warp,
                             gpst_stats* stats) {
    kit* const self = kit_open(backend, 2);
    memset(pictures, 0xA5, sizeof pictures);
    self->n_items = N_FRAMES;
    self->stages[0] = kit_stage(self, GPST_STAGE_WARP, NULL, NULL);
    self->stages[0].warp = warp;
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, number_views, "number");
    self->stages[1].reads = GPST_SET(1);
    self->stages[1].writes = GPST_SET(2);
    self->n_stages = 2;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.source = frame_source;
    desc.sink = picture_sink;
    desc.capacity[1] = 0; /* the warp's */
    desc.capacity[2] = N_VIEWS;
    desc.mode = mode;
    const gpst_result result = kit_run(self, &desc, stats);
    kit_close(self);
    return result;
}

/* A device with memory of its own has its copies of mask and table, made ahead of the first item: what becomes of the
   caller's afterwards does not matter to it. */
static uint8_t mask_pixels[FRAME_WIDTH * FRAME_HEIGHT];
static float table_entries[VIEW_WIDTH * VIEW_HEIGHT * 2];

static gpst_result spoiling_source(void* user_data, uint64_t index, gpst_input* out) {
    if (index == 0) {
        memset(mask_pixels, 0, sizeof mask_pixels);
        memset(table_entries, 0, sizeof table_entries);
    }
    return frame_source(user_data, index, out);
}

static void test_mask_and_table_are_copied(void** state) {
    static uint8_t wanted[VIEW_BYTES];
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    gpst_image source = rgb_shape(FRAME_WIDTH, FRAME_HEIGHT), output = rgb_shape(VIEW_WIDTH, VIEW_HEIGHT);
    gpst_input input = GPST_ZERO;
    gpst_stats stats;
    (void)state;
    for (size_t i = 0; i < sizeof mask_pixels; i++)
        mask_pixels[i] = (uint8_t)(i % 5 > 1);
    for (size_t i = 0; i < VIEW_WIDTH * VIEW_HEIGHT; i++) {
        table_entries[2 * i] = (float)(i * 7 % FRAME_WIDTH) + 0.25f;
        table_entries[2 * i + 1] = (float)(i * 3 % FRAME_HEIGHT) + 0.5f;
    }
    warp_desc.map = GPST_MAP_TABLE, warp_desc.table = table_entries;
    warp_desc.width = VIEW_WIDTH, warp_desc.height = VIEW_HEIGHT, warp_desc.format = GPST_FORMAT_RGB;
    warp_desc.mask.width = FRAME_WIDTH, warp_desc.mask.height = FRAME_HEIGHT;
    warp_desc.mask.format = GPST_FORMAT_GRAY;
    warp_desc.mask.data = mask_pixels + (FRAME_HEIGHT - 1) * FRAME_WIDTH; /* bottom-up */
    warp_desc.mask.pitch_bytes = -(int64_t)FRAME_WIDTH;
    assert_int_equal(gpst_warp_create(&warp_desc, &warp), GPST_OK);
    frame_source(NULL, 0, &input);
    source.data = frame_pixels, output.data = wanted;
    assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 0), GPST_OK);
    kit* const self = kit_open(DEVICE, 2);
    memset(pictures, 0xA5, sizeof pictures);
    self->n_items = N_FRAMES;
    self->stages[0] = kit_stage(self, GPST_STAGE_WARP, NULL, NULL);
    self->stages[0].warp = warp;
    self->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.source = spoiling_source, desc.sink = picture_sink, desc.capacity[1] = 0;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    kit_close(self);
    assert_memory_equal(pictures[0][0], wanted, sizeof wanted);
    assert_int_equal(stats.device_fallbacks, 0);
    gpst_warp_destroy(warp);
}

static void test_same_pictures(void** state) {
    (void)state;
    static uint8_t wanted[N_FRAMES][N_VIEWS][VIEW_BYTES];
    static const char* const backends[] = {
        "cpu", DEVICE, DEVICE_WITH("h2d_gbps=0.01,d2h_gbps=0.02,kernel_us=300,launch_us=20"),
        DEVICE_WITH("copy_engines=1,jitter_pct=50,seed=3,kernel_us=100"), DEVICE ":lose_at=7"};
    gpst_warp* const warp = make_views();
    gpst_image outputs[N_VIEWS], source = rgb_shape(FRAME_WIDTH, FRAME_HEIGHT);
    gpst_input input = GPST_ZERO;
    source.data = frame_pixels;
    for (uint32_t n = 0; n < N_FRAMES; n++) {
        frame_source(NULL, n, &input);
        for (uint32_t v = 0; v < N_VIEWS; v++) {
            outputs[v] = rgb_shape(VIEW_WIDTH, VIEW_HEIGHT);
            outputs[v].data = wanted[n][v];
        }
        /* On all cores: OpenMP keeps its threads, so they are there before the kit counts any. */
        assert_int_equal(gpst_warp_run(warp, &source, outputs, N_VIEWS, 0), GPST_OK);
        for (uint32_t v = 0; v < N_VIEWS; v++)
            for (size_t i = 0; i < VIEW_BYTES; i++)
                wanted[n][v][i] = (uint8_t)(wanted[n][v][i] + v);
    }
    for (int b = 0; b < 5; b++) {
        for (int mode = GPST_RUN_DEFAULT; mode <= GPST_RUN_PLAIN_INSIDE; mode++) {
            gpst_stats stats;
            assert_int_equal(run_views(backends[b], (gpst_run_mode)mode, warp, &stats), GPST_OK);
            assert_memory_equal(pictures, wanted, sizeof wanted);
            assert_int_equal(stats.n_stages, 4); /* one upload and one download for the group */
            assert_string_equal(stats.stages[0].name, "upload");
            assert_string_equal(stats.stages[1].name, "kernel");
            assert_string_equal(stats.stages[2].name, "number");
            assert_string_equal(stats.stages[3].name, "download");
            if (b < 4) {
                const uint64_t n_copied = b == 0 ? 0 : N_FRAMES;
                assert_int_equal(stats.bytes_h2d, n_copied * sizeof frame_pixels);
                assert_int_equal(stats.bytes_d2h, n_copied * N_VIEWS * VIEW_BYTES);
                assert_int_equal(stats.stages[0].count, n_copied);
                assert_int_equal(stats.stages[2].count, N_FRAMES);
                assert_int_equal(stats.stages[2].resource, b == 0 ? GPST_RESOURCE_CPU : GPST_RESOURCE_GPU);
                assert_int_equal(stats.device_fallbacks, 0);
                assert_string_equal(stats.paths[1].what, "device");
                assert_string_equal(stats.paths[1].taken, b == 0 ? "cpu" : DEVICE);
            } else {
                assert_true(stats.device_fallbacks > 0);
                assert_string_equal(stats.paths[1].taken, "cpu");
                assert_non_null(strstr(stats.paths[1].why_not, "lost"));
            }
        }
    }
    gpst_warp_destroy(warp);
}

/* Every other panorama was taken with its camera turned: in batches, too, each has its own views. */
static gpst_result turn_odd_ones(void* user_data, gpst_task* task) {
    gpst_view pose = GPST_ZERO;
    (void)user_data;
    pose.yaw = 10.0 * (double)task->item->index;
    pose.pitch = 20.0;
    pose.roll = -35.0;
    return task->item->index % 2 ? gpst_task_set_pose(task, &pose) : GPST_OK;
}

static void run_turned(const char* backend, const gpst_warp* warp, bool turns) {
    kit* const self = kit_open(backend, 2);
    memset(pictures, 0xA5, sizeof pictures);
    self->n_items = N_FRAMES;
    self->stages[0] = kit_stage(self, GPST_STAGE_HOST, turn_odd_ones, "turn");
    self->stages[1] = kit_stage(self, GPST_STAGE_WARP, NULL, NULL);
    self->stages[1].warp = warp;
    self->n_stages = 2;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.stages = &self->stages[turns ? 0 : 1];
    desc.n_stages = turns ? 2 : 1;
    desc.source = frame_source;
    desc.sink = picture_sink;
    desc.capacity[1] = 0;
    desc.mode = GPST_RUN_ENGINE;
    desc.n_slots = N_FRAMES;
    desc.batch = 6;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    kit_close(self);
}

static void test_turned_cameras(void** state) {
    static uint8_t upright[N_FRAMES][N_VIEWS][VIEW_BYTES], turned[N_FRAMES][N_VIEWS][VIEW_BYTES];
    static const char* const backends[] = {DEVICE, DEVICE_WITH("kernel_us=3000"), DEVICE ":lose_at=7"};
    gpst_warp* const warp = make_views();
    (void)state;
    run_turned("cpu", warp, false);
    memcpy(upright, pictures, sizeof upright);
    run_turned("cpu", warp, true);
    memcpy(turned, pictures, sizeof turned);
    for (uint32_t n = 0; n < N_FRAMES; n++)
        assert_int_equal(memcmp(upright[n], turned[n], sizeof turned[n]) != 0, n % 2);
    for (int b = 0; b < 3; b++) {
        run_turned(backends[b], warp, true);
        assert_memory_equal(pictures, turned, sizeof turned);
    }
    gpst_warp_destroy(warp);
}

/* Two device groups with a host stage between: two uploads, and the second sees what the host made of the first. */
static gpst_result made_to_inputs(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    kit* const self = (kit*)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, 2, 0, &shape, &image));
    for (size_t i = 0; i < KIT_BYTES; i++) {
        const uint8_t pixel = kit_pixel(task->item->index, i);
        kit_check(self, ((const uint8_t*)task->item->sets[1].pictures[1].data)[i] == kit_result(pixel, 1));
        ((uint8_t*)image.data)[i] = pixel;
    }
    return GPST_OK;
}

static gpst_result device_again(void* user_data, gpst_task* task) {
    return kit_device_sets((kit*)user_data, task, 2, 3);
}

static void test_two_groups(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", DEVICE, DEVICE_WITH("kernel_us=200")};
    for (int b = 0; b < 3; b++) {
        kit* const self = kit_open(backends[b], 2);
        gpst_pipeline_desc desc = kit_standard(self, 15);
        gpst_stats stats;
        self->stages[5] = self->stages[3];
        self->stages[6] = self->stages[4];
        self->stages[4] = kit_stage(self, GPST_STAGE_DEVICE, device_again, "again");
        self->stages[4].reads = GPST_SET(2);
        self->stages[4].writes = self->stages[5].reads = GPST_SET(3);
        self->stages[3] = kit_stage(self, GPST_STAGE_HOST, made_to_inputs, "between");
        self->stages[3].reads = GPST_SET(1);
        self->stages[3].writes = GPST_SET(2);
        self->encoded_set = 3;
        desc.capacity[3] = self->n_outputs;
        desc.n_stages = 7;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.bytes_h2d, b == 0 ? 0 : 2 * 15 * KIT_BYTES);
        assert_int_equal(stats.n_stages, 11);
        kit_check_files(self);
        kit_close(self);
    }
}

/* ---- a device in trouble ------------------------------------------------------------------------------ */

typedef struct trouble {
    const char* backend;
    gpst_result result; /* of the items it hits, when the backend is required */
    const char* reason;
    uint64_t n_failed; /* then */
} trouble;

/* 20 items of one upload, three launches, three downloads; a slot has four allocations, one stream, four
   events, and one of the two slots may serve all. */
static const trouble troubles[] = {
    {DEVICE ":fail_launch=1", GPST_ERROR_DEVICE, "launch: injected fault", 1},
    {DEVICE ":fail_launch=32", GPST_ERROR_DEVICE, "launch: injected fault", 1},
    {DEVICE ":fail_copy=1", GPST_ERROR_DEVICE, "copy: injected fault", 1},
    {DEVICE ":fail_copy=18", GPST_ERROR_DEVICE, "copy: injected fault", 1},
    {DEVICE ":fail_alloc=1", GPST_ERROR_DEVICE_MEMORY, "memory_alloc: injected fault", 1},
    {DEVICE ":fail_alloc=4", GPST_ERROR_DEVICE_MEMORY, "memory_alloc: injected fault", 1},
    {DEVICE ":fail_event=2", GPST_ERROR_DEVICE, "injected fault", 1},
    {DEVICE ":fail_event=14", GPST_ERROR_DEVICE, "injected fault", 1},
    {DEVICE ":fail_stream=1", GPST_ERROR_DEVICE, "stream_create: injected fault", 1},
    {DEVICE ":fail_notify=3", GPST_ERROR_DEVICE, "stream_notify: injected fault", 1},
    {DEVICE ":oom_mb=0.0002", GPST_ERROR_DEVICE_MEMORY, DEVICE_OUT_OF_MEMORY, 20},
    {DEVICE ":lose_at=1", GPST_ERROR_DEVICE_LOST, "lost", 20},
    {DEVICE ":lose_at=1" DEVICE_AND("kernel_us=500"), GPST_ERROR_DEVICE_LOST, "lost", 20},
};

/* Too little memory is no trouble where an item can wait for another one's: then it is said in a path of its own. */
static void test_trouble_costs_no_item(void** state) {
    (void)state;
    for (size_t t = 0; t < sizeof troubles / sizeof troubles[0]; t++) {
        for (int m = 0; m < 2; m++) {
            if (m && strstr(troubles[t].backend, "fail_notify")) /* a plain loop asks for none */
                continue;
            kit* const self = kit_open(troubles[t].backend, 2);
            gpst_pipeline_desc desc = kit_standard(self, 20);
            gpst_stats stats;
            self->sink_ns = 100000;
            desc.n_slots = 2;
            desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
            if (kit_run(self, &desc, &stats) != GPST_OK)
                fail_msg("%s: %s: %s", troubles[t].backend, self->failed_stage, self->failed_reason);
            assert_int_equal(self->n_ok, 20);
            if (troubles[t].n_failed == 1)
                assert_true(stats.device_fallbacks <= 1);
            kit_check_files(self);
            if (troubles[t].result == GPST_ERROR_DEVICE_MEMORY) {
                assert_non_null(strstr(kit_why_not(&stats, "device_memory"), troubles[t].reason));
                assert_true(gpsti_a32_load(&self->log.n_warnings) <= stats.device_fallbacks);
            } else {
                assert_true(stats.device_fallbacks >= 1);
                assert_int_equal(gpsti_a32_load(&self->log.n_warnings), stats.device_fallbacks);
                assert_non_null(strstr(self->log.last, "done again on the CPU"));
                assert_non_null(strstr(stats.paths[2].why_not, troubles[t].reason));
            }
            kit_close(self);
        }
    }
}

static void test_trouble_of_a_required_backend(void** state) {
    (void)state;
    for (size_t t = 0; t < sizeof troubles / sizeof troubles[0]; t++) {
        kit* const self = kit_open("cpu", 2);
        gpst_context_desc context = GPST_ZERO;
        gpst_stats stats;
        context.backend = troubles[t].backend;
        context.require_backend = true;
        context.n_workers = 2;
        kit_reopen(self, &context);
        gpst_pipeline_desc desc = kit_standard(self, 20);
        self->sink_ns = 100000;
        desc.n_slots = 2;
        const bool may_wait = troubles[t].result == GPST_ERROR_DEVICE_MEMORY && troubles[t].n_failed == 1;
        const gpst_result result = kit_run(self, &desc, &stats);
        assert_true(result == (self->n_failed == 20 ? troubles[t].result : GPST_PARTIAL) ||
                    (may_wait && result == GPST_OK));
        assert_int_equal(self->n_sinks, 20);
        if (self->n_failed != troubles[t].n_failed && !(may_wait && self->n_failed == 0))
            fail_msg("%s: %u items failed", troubles[t].backend, (unsigned)self->n_failed);
        for (uint64_t n = 0; n < 20; n++)
            assert_true(self->results[n] == GPST_OK || self->results[n] == troubles[t].result);
        if (self->n_failed > 0 &&
            troubles[t].result != GPST_ERROR_DEVICE_LOST) /* which gives no host memory either: it may hit earlier */
            assert_string_equal(self->failed_stage, "compute");
        if (self->n_failed > 0 && !strstr(self->failed_reason, troubles[t].reason))
            fail_msg("%s: \"%s\" lacks \"%s\"", troubles[t].backend, self->failed_reason, troubles[t].reason);
        assert_int_equal(stats.device_fallbacks, 0);
        kit_check_files(self);
        kit_close(self);
    }
}

/* The device goes while several items are on it, at every moment in turn. */
static void test_lost_in_flight(void** state) {
    (void)state;
    for (int lose_at = 1; lose_at < 60; lose_at += 4) {
        char backend[64];
        snprintf(backend, sizeof backend, DEVICE ":lose_at=%d%s", lose_at,
                 lose_at % 3 ? DEVICE_AND("kernel_us=75") : "");
        kit* const self = kit_open(backend, 3);
        gpst_pipeline_desc desc = kit_standard(self, 20);
        gpst_stats stats;
        desc.n_slots = 6;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, 20);
        assert_in_range(stats.device_fallbacks, 1, 6);
        kit_check_files(self);
        kit_close(self);
    }
}

/* The same where the tuner moves the knobs meanwhile. */
static void test_lost_while_tuned(void** state) {
    (void)state;
    for (int lose_at = 1; lose_at < 300; lose_at += 37) {
        char backend[64];
        snprintf(backend, sizeof backend, DEVICE ":lose_at=%d", lose_at);
        kit* const self = kit_open(backend, 3);
        gpst_pipeline_desc desc = kit_standard(self, 120);
        gpst_stats stats;
        desc.mode = GPST_RUN_DEFAULT;
        desc.n_items_expected = 120;
        self->decode_ns = 300000;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, 120);
        assert_true(stats.device_fallbacks >= 1);
        assert_non_null(strstr(stats.paths[2].why_not, "lost"));
        kit_check_files(self);
        kit_close(self);
    }
}

/* More than the budget allows at once: items wait for one another, or go to the CPU. */
static void test_device_budget(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_context_desc context = GPST_ZERO;
    gpst_stats stats;
    context.backend = DEVICE;
    context.max_device_bytes = 5 * 4096; /* one slot has room: four pictures of a page each */
    context.n_workers = 2;
    kit_reopen(self, &context);
    gpst_pipeline_desc desc = kit_standard(self, 20);
    self->sink_ns = 100000;
    desc.n_slots = 2;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_non_null(strstr(kit_why_not(&stats, "device_memory"), "device memory"));
    kit_check_files(self);
    kit_close(self);
}

/* The user's own failure is not the device's: nothing is done again, and the sentence is the user's. */
static void test_failing_kernel(void** state) {
    (void)state;
    static const kit_place places[] = {KIT_DEVICE, KIT_DEVICE_LATER};
    for (int p = 0; p < 2; p++) {
        for (int m = 0; m < 2; m++) {
            kit* const self = kit_open(DEVICE, 2);
            gpst_pipeline_desc desc = kit_standard(self, 20);
            gpst_stats stats;
            self->fail_place = places[p];
            self->fail_every = 4;
            desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
            assert_int_equal(kit_run(self, &desc, &stats), GPST_PARTIAL);
            assert_int_equal(self->n_failed, 5);
            assert_int_equal(stats.device_fallbacks, 0);
            assert_int_equal(stats.stages[3].failed, 5);
            assert_string_equal(self->failed_stage, "compute");
            assert_string_equal(self->failed_reason,
                                p == 0 ? "no launch for item 16" : "the kernel found a NaN");
            for (uint64_t n = 0; n < 20; n++)
                assert_int_equal(self->results[n], n % 4 == 0 ? GPST_ERROR_FORMAT : GPST_OK);
            kit_check_files(self);
            kit_close(self);
        }
    }
}

/* The user's stage fails behind work that it put on the stream: that work uses the item's memory, so the item is not
   over before it is, in any loop. */
static gpsti_a32 the_gate;

static gpst_result wait_for_the_gate(const void* args) {
    (void)args;
    while (gpsti_a32_load(&the_gate) == 0)
        gpsti_sleep_ns(100000);
    return GPST_OK;
}

static gpst_result fail_behind_the_gate(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"gate", wait_for_the_gate, TEST_GPU(test_gate_gpu)};
    test_gate_args args;
    (void)user_data;
    args.open = &the_gate;
    GPSTI_TRY(gpst_task_enqueue(task, &kernel, &args, sizeof args));
    return gpst_task_fail(task, GPST_ERROR_FORMAT, "found out too late");
}

static gpst_result sink_behind_the_gate(void* user_data, const gpst_item* item) {
    kit_check((kit*)user_data, gpsti_a32_load(&the_gate) == 1);
    return kit_sink(user_data, item);
}

static void open_the_gate(void* argument) {
    (void)argument;
    gpsti_sleep_ns(30000000);
    gpsti_a32_store(&the_gate, 1);
}

static void test_failed_work_is_waited_for(void** state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        gpsti_thread opener;
        gpsti_a32_store(&the_gate, 0);
        kit* const self = kit_open(DEVICE, 2);
        gpst_pipeline_desc desc = kit_standard(self, 1);
        self->stages[2].func = fail_behind_the_gate;
        desc.sink = sink_behind_the_gate;
        desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        assert_int_equal(gpsti_thread_start(&opener, open_the_gate, NULL, "opener"), GPST_OK);
        assert_int_equal(kit_run(self, &desc, NULL), GPST_ERROR_FORMAT);
        gpsti_thread_join(&opener);
        assert_string_equal(self->failed_reason, "found out too late");
        kit_close(self);
    }
}

/* Host memory that the device cannot give fails the item that needed it; where room to spare was asked for, as
   the first read does, what is really needed is asked for then. */
static void test_no_host_memory(void** state) {
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        kit* const self = kit_open(DEVICE ":fail_host_alloc=1", 2);
        gpst_pipeline_desc desc = kit_standard(self, 20);
        desc.max_item_bytes = exact ? 1 << 20 : 0;
        assert_int_equal(kit_run(self, &desc, NULL), exact ? GPST_PARTIAL : GPST_OK);
        assert_int_equal(self->n_failed, exact);
        if (exact)
            assert_non_null(strstr(self->failed_reason, "host_alloc: injected fault"));
        kit_check_files(self);
        kit_close(self);
    }
}

static void test_cancel_with_work_on_the_device(void** state) {
    (void)state;
    uint64_t random = test_seed(7);
    kit* const self = kit_open(DEVICE_WITH("kernel_us=100,h2d_gbps=0.001"), 2);
    gpst_pipeline_desc desc = kit_standard(self, 40);
    for (int i = 0; i < 30; i++) {
        gpsti_thread thread;
        gpst_stats stats;
        kit_forget(self);
        self->encode_ns = 0;
        desc.n_slots = 1 + (uint32_t)(test_random(&random) % 6);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        self->encode_ns = self->cancel_ns = (int64_t)(test_random(&random) % 10000000);
        self->stages[3].func = kit_encode;
        assert_int_equal(gpsti_thread_start(&thread, kit_cancel_soon, self, "cancel"), GPST_OK);
        const gpst_result result = gpst_pipeline_run(self->pipeline);
        gpsti_thread_join(&thread);
        assert_true(result == GPST_OK || result == GPST_ERROR_CANCELLED);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_int_equal(stats.items_ok + stats.items_cancelled, self->n_sinks);
        assert_int_equal(stats.items_ok, self->n_ok);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_check_files(self);
        kit_remove_files(self, "out_");
    }
    kit_close(self);
}

/* ---- the model's times ------------------------------------------------------------------------------------- */

#if DEVICE_IS_MODELLED
/* A modelled disk: nobody is faster than it, in the engine and in the plain loop, and the verdict's shares have it. A
   read of 21 ms that a busy machine held up for longer never waited for the disk: hence no more than half is asked. */
static void test_modelled_disk(void** state) {
    (void)state;
    for (int mode = GPST_RUN_ENGINE; mode <= GPST_RUN_PLAIN_SERIAL; mode++) {
        kit* const self = kit_open("sim:read_gbps=0.000003,write_us=3000", 2);
        gpst_pipeline_desc desc = kit_standard(self, 12);
        gpst_stats stats;
        desc.mode = (gpst_run_mode)mode;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        const gpst_stage_stats* const write = &stats.stages[stats.n_stages - 1];
        const int64_t read_ns = (int64_t)((double)stats.bytes_read / 0.000003);
        assert_true(stats.bytes_read > 0 && write->count > 0);
        assert_true(stats.wall_ns >= read_ns);
        assert_true(stats.stages[0].busy_ns >= read_ns);
        assert_true(write->busy_ns >= (int64_t)write->count * 3000000);
        assert_true(stats.verdict.share[GPST_RESOURCE_DISK_IN] >= 0.5 * (double)read_ns / (double)stats.wall_ns);
        kit_close(self);
    }
}

/* On the virtual clock the device's times are the model's, whatever machine this is: bytes over GB/s, launches. */
static void test_virtual_times(void** state) {
    (void)state;
    const double gbps = 0.01, ns = 1 / gbps;
    gpst_warp* const warp = make_views();
    const gpst_image source = rgb_shape(FRAME_WIDTH, FRAME_HEIGHT);
    uint64_t read_bytes = 0, written_bytes = 0;
    gpst_stats stats;
    gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
    const double kernel_ns = (double)(read_bytes + written_bytes) * ns + 1000;
    for (int mode = GPST_RUN_ENGINE; mode <= GPST_RUN_PLAIN_SERIAL; mode++) {
        assert_int_equal(run_views("sim:virtual=1,h2d_gbps=0.01,d2h_gbps=0.01,kernel_gbps=0.01,launch_us=1",
                                   (gpst_run_mode)mode, warp, &stats),
                         GPST_OK);
        assert_true(stats.stages[0].max_ns >= (int64_t)(sizeof frame_pixels * ns));
        assert_true((double)stats.stages[1].max_ns >= kernel_ns - 2);
        if (mode == GPST_RUN_ENGINE) /* streams wait for one another's engines: between events there is more */
            continue;
        assert_int_equal(stats.stages[0].busy_ns, N_FRAMES * (int64_t)(sizeof frame_pixels * ns));
        assert_true((double)stats.stages[1].busy_ns > N_FRAMES * (kernel_ns - 2) &&
                    (double)stats.stages[1].busy_ns < N_FRAMES * (kernel_ns + 2));
        assert_int_equal(stats.stages[2].busy_ns, N_FRAMES * (int64_t)N_VIEWS * 1000); /* launches alone */
        assert_int_equal(stats.stages[3].busy_ns, N_FRAMES * (int64_t)(N_VIEWS * VIEW_BYTES * ns));
    }
    gpst_warp_destroy(warp);
}

/* Frames of two sizes in turn through one slot: each takes what its own bytes take. */
static gpst_result sizes_source(void* user_data, uint64_t index, gpst_input* out) {
    const gpst_result result = frame_source(user_data, index, out);
    out->frame.width = index % 2 ? FRAME_WIDTH : FRAME_WIDTH / 4;
    return result;
}

static void test_virtual_times_of_sizes(void** state) {
    (void)state;
    gpst_warp* const warp = make_views();
    double wanted_ns = 0;
    gpst_stats stats;
    for (uint32_t n = 0; n < N_FRAMES; n++) {
        const gpst_image source = rgb_shape(n % 2 ? FRAME_WIDTH : FRAME_WIDTH / 4, FRAME_HEIGHT);
        uint64_t read_bytes = 0, written_bytes = 0;
        gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
        wanted_ns += (double)(read_bytes + written_bytes) * 100;
    }
    kit* const self = kit_open("sim:virtual=1,kernel_gbps=0.01,launch_us=0", 1);
    self->n_items = N_FRAMES;
    self->stages[0] = kit_stage(self, GPST_STAGE_WARP, NULL, NULL);
    self->stages[0].warp = warp;
    self->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.source = sizes_source;
    desc.capacity[1] = 0; /* the warp's */
    desc.mode = GPST_RUN_PLAIN_SERIAL;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_true((double)stats.stages[1].busy_ns > wanted_ns - 2 * N_FRAMES);
    assert_true((double)stats.stages[1].busy_ns < wanted_ns + 2 * N_FRAMES);
    kit_close(self);
    gpst_warp_destroy(warp);
}

/* ---- overlap ---------------------------------------------------------------------------------------------- */

/* Each item: 3 ms up, 3 x 1 ms of kernels, 3 x 1 ms down, so 9 ms alone, and 3 ms when all three overlap; 6 ms when two
   of them do not. Nobody is faster than the model. */
static void test_overlap(void** state) {
    (void)state;
    kit* const self = kit_open("sim:h2d_gbps=0.0000213333,d2h_gbps=0.000064,kernel_us=1000,launch_us=0", 2);
    gpst_pipeline_desc desc = kit_standard(self, 40);
    gpst_stats stats;
    desc.n_slots = 6;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    const gpst_verdict* const v = &stats.verdict;
    printf("%s (efficiency %.3f, %lld us an item instead of 3000)\n", v->text, v->efficiency,
           (long long)(stats.wall_ns / 1000 / 40));
    assert_true(v->share[GPST_RESOURCE_H2D] > 0 && v->share[GPST_RESOURCE_GPU] > 0 &&
                v->share[GPST_RESOURCE_D2H] > 0);
    assert_true(stats.wall_ns >= 40 * (int64_t)3000000);
    kit_close(self);
}
#endif

int main(void) {
#if !DEVICE_IS_MODELLED
    if (!device_is_there(NULL))
        return GPST_TEST_SKIP;
#endif
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_pictures),
        cmocka_unit_test(test_mask_and_table_are_copied),
        cmocka_unit_test(test_turned_cameras),
        cmocka_unit_test(test_two_groups),
        cmocka_unit_test(test_trouble_costs_no_item),
        cmocka_unit_test(test_trouble_of_a_required_backend),
        cmocka_unit_test(test_lost_in_flight),
        cmocka_unit_test(test_device_budget),
        cmocka_unit_test(test_failing_kernel),
        cmocka_unit_test(test_failed_work_is_waited_for),
        cmocka_unit_test(test_no_host_memory),
        cmocka_unit_test(test_cancel_with_work_on_the_device),
        cmocka_unit_test(test_lost_while_tuned),
#if DEVICE_IS_MODELLED
        cmocka_unit_test(test_modelled_disk),
        cmocka_unit_test(test_virtual_times),
        cmocka_unit_test(test_virtual_times_of_sizes),
        cmocka_unit_test(test_overlap),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
