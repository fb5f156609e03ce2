/* tests/test_pipeline_mapped.c -- small items on a device that reaches page-locked memory: their pictures stay there.
   Then items that are pushed one by one, there and elsewhere. */
#include "pipeline_kit.h"

#define SIDE 64u
#define OUT_SIDE 32u
#define OUT_BYTES (OUT_SIDE * OUT_SIDE * 3u)
#define LARGE_SIDE 300u /* with its outputs beyond what stays in place */

static uint8_t pixels[LARGE_SIDE * LARGE_SIDE * 3];
static uint8_t wanted[2][OUT_BYTES]; /* of the small frame, of the large one */
static gpst_warp* warp;

static gpst_image frame_of(uint32_t side) {
    gpst_image image = kit_shape(side, side);
    image.format = GPST_FORMAT_RGB;
    image.data = pixels;
    return image;
}

static int make_warp(void** state) {
    uint64_t random = test_seed(3);
    gpst_warp_desc desc = GPST_ZERO;
    (void)state;
    desc.map = GPST_MAP_RESIZE;
    desc.width = desc.height = OUT_SIDE;
    desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&random);
    for (uint32_t large = 0; large < 2; large++) {
        const gpst_image source = frame_of(large ? LARGE_SIDE : SIDE);
        gpst_image output = frame_of(OUT_SIDE);
        output.data = wanted[large];
        assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 0), GPST_OK);
    }
    return 0;
}

static int forget_warp(void** state) {
    (void)state;
    gpst_warp_destroy(warp);
    return 0;
}

/* Every third frame is large where the kit says that some are. */
static bool is_large(const kit* self, uint64_t index) { return self->fail_every != 0 && index % self->fail_every == 2; }

static gpst_result frame_source(void* user_data, uint64_t index, gpst_input* out) {
    const kit* const self = (const kit*)user_data;
    out->frame = frame_of(is_large(self, index) ? LARGE_SIDE : SIDE);
    return index < self->n_items ? GPST_OK : GPST_END;
}

static gpst_result compare_sink(void* user_data, const gpst_item* item) {
    kit* const self = (kit*)user_data;
    kit_check(self, item->result != GPST_OK ||
                        memcmp(item->sets[1].pictures[0].data, wanted[is_large(self, item->index)], OUT_BYTES) == 0);
    return kit_sink(user_data, item);
}

static gpst_pipeline_desc lone_desc(kit* self, uint64_t n_items, bool pull) {
    self->n_items = n_items;
    self->stages[0] = kit_stage(self, GPST_STAGE_WARP, NULL, NULL);
    self->stages[0].warp = warp;
    self->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.source = pull ? frame_source : NULL;
    desc.sink = pull ? compare_sink : NULL;
    desc.capacity[1] = 0; /* the warp's */
    return desc;
}

static const gpst_path* find_path(const gpst_stats* stats, const char* what) {
    for (uint32_t p = 0; p < stats->n_paths; p++)
        if (strcmp(stats->paths[p].what, what) == 0)
            return &stats->paths[p];
    return NULL;
}

/* ---- in place ------------------------------------------------------------------------------------------------ */

/* NULL, and said so, on a GPU whose runtime does not say that it reaches host memory: all is copied there. */
static kit* open_in_place(const char* backend, uint32_t n_workers) {
    kit* const self = kit_open(backend, n_workers);
    if (self->context->device_info.reaches_host)
        return self;
    printf("  %s does not reach host memory\n", self->backend);
    self->wants_none = true;
    kit_close(self);
    return NULL;
}

/* What stays in place takes no copy: the first copy is made to fail, and none is. The bytes are counted: they cross the
   link anyway. */
static void test_small_items_are_not_copied(void** state) {
    (void)state;
    for (int mode = GPST_RUN_ENGINE; mode <= GPST_RUN_PLAIN_SERIAL; mode++) {
        for (uint32_t batch = 1; batch <= 4; batch += 3) {
            kit* const self = open_in_place("sim:mapped=1,fail_copy=1", 2);
            if (!self)
                skip();
            gpst_pipeline_desc desc = lone_desc(self, 12, true);
            gpst_stats stats;
            self->wants_none = true;
            desc.mode = (gpst_run_mode)mode;
            desc.batch = batch;
            assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
            assert_int_equal(stats.device_fallbacks, 0);
            assert_int_equal(stats.stages[0].count, 0);
            assert_int_equal(stats.stages[1].count, 12);
            assert_true(stats.stages[1].busy_ns > 0);
            assert_int_equal(stats.stages[2].count, 0);
            assert_int_equal(stats.bytes_h2d, 12 * SIDE * SIDE * 3);
            assert_int_equal(stats.bytes_d2h, 12 * OUT_BYTES);
            assert_string_equal(find_path(&stats, "copies")->taken, "none: small, over the link");
            kit_close(self);
        }
    }
}

/* Large frames among them are copied, in the same batches too; and all are where the device reaches no host memory. */
static void test_large_items_are_copied(void** state) {
    (void)state;
    for (int mapped = 0; mapped < 2; mapped++) {
        for (uint32_t batch = 1; batch <= 4; batch += 3) {
            kit* const self = kit_open(mapped ? "sim:mapped=1" : "sim", 1);
            const bool in_place = self->context->device_info.reaches_host;
            gpst_pipeline_desc desc = lone_desc(self, 12, true);
            gpst_stats stats;
            self->fail_every = 3; /* nothing fails: see is_large */
            desc.batch = batch;
            desc.n_slots = 12;
            assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
            assert_int_equal(stats.stages[0].count, in_place ? 4 : 12);
            assert_int_equal(stats.stages[1].count, 12);
            assert_int_equal(stats.stages[2].count, in_place ? 4 : 12);
            const gpst_path* const path = find_path(&stats, "copies");
            assert_string_equal(path->taken, "up and down, a stream a slot");
            assert_true((strstr(path->why_not, "but 8 items were small enough") != NULL) == in_place);
            kit_close(self);
        }
    }
}

/* Events cost a microsecond each: an item in place has two of them, a copied one four, whichever came before it on the
   same stream. Four are made; the last that is needed is reached, and none after it. */
static void test_items_in_place_record_two_events(void** state) {
    (void)state;
    for (uint32_t past = 0; past < 2; past++) {
        char backend[64];
        snprintf(backend, sizeof backend, "sim:mapped=1,fail_event=%u", 4 + 4 * 4 + 8 * 2 + past);
        kit* const self = open_in_place(backend, 1);
        if (!self)
            skip();
        gpst_pipeline_desc desc = lone_desc(self, 12, true);
        gpst_stats stats;
        self->fail_every = 3; /* nothing fails: see is_large */
        self->wants_none = past;
        desc.mode = GPST_RUN_PLAIN_SERIAL;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.device_fallbacks, 1 - past);
        kit_close(self);
    }
}

/* A user's kernel may look at a pixel many times: it is given device memory. */
static gpst_result look_where(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    gpst_image input, output;
    kit_check(self, gpst_task_pictures(task, 1, &input, 1) == GPST_OK);
    kit_check(self, gpst_task_set_picture(task, 2, 0, &input, &output) == GPST_OK);
    kit_check(self, input.data && output.data);
    kit_check(self, input.data != task->item->sets[1].pictures[0].data);
    kit_check(self, output.data != task->item->sets[2].pictures[0].data);
    return GPST_OK;
}

static void test_the_users_work_is_copied(void** state) {
    (void)state;
    kit* const self = kit_open("sim:mapped=1", 2);
    gpst_pipeline_desc desc = lone_desc(self, 12, true);
    gpst_stats stats;
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, look_where, "own");
    self->stages[1].reads = GPST_SET(1);
    self->stages[1].writes = GPST_SET(2);
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
    desc.n_stages = 2;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_int_equal(stats.stages[0].count, 12);
    kit_close(self);
}

/* Where the system would lock no more pages, pictures are pageable: those are copied. */
static gpst_result unpin(void* user_data, gpst_task* task) {
    gpsti_item* const item = (gpsti_item*)(uintptr_t)task->item;
    (void)user_data;
    item->sets[0].host[0].pinned = false;
    return GPST_OK;
}

static void test_pageable_items_are_copied(void** state) {
    (void)state;
    kit* const self = kit_open("sim:mapped=1", 1);
    gpst_pipeline_desc desc = lone_desc(self, 12, true);
    gpst_stats stats;
    self->stages[1] = self->stages[0];
    self->stages[0] = kit_stage(self, GPST_STAGE_HOST, unpin, "unpin");
    desc.n_stages = 2;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_int_equal(stats.stages[1].count, 12);
    assert_int_equal(stats.stages[3].count, 12);
    kit_close(self);
}

static void test_trouble_in_place(void** state) {
    (void)state;
    static const char* const backends[] = {"sim:mapped=1,fail_launch=3", "sim:mapped=1,fail_event=9",
                                           "sim:mapped=1,lose_at=4", "sim:mapped=1,fail_notify=2"};
    for (int b = 0; b < 4; b++) {
        kit* const self = kit_open(backends[b], 2);
        const gpst_pipeline_desc desc = lone_desc(self, 12, true);
        gpst_stats stats;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, 12);
        assert_true(stats.device_fallbacks >= 1);
        kit_close(self);
    }
}

/* ---- one by one ---------------------------------------------------------------------------------------------- */

static void push_and_take(kit* self, int64_t timeout_ns) {
    gpst_input input = GPST_ZERO;
    const gpst_item* item = NULL;
    gpst_result result = GPST_OK;
    input.frame = frame_of(SIDE);
    assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    do {
        result = gpst_pipeline_next_result(self->pipeline, timeout_ns, &item);
    } while (result == GPST_ERROR_TIMEOUT || result == GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(result, GPST_OK);
    assert_int_equal(item->result, GPST_OK);
    assert_memory_equal(item->sets[1].pictures[0].data, wanted[0], OUT_BYTES);
    gpst_pipeline_release(self->pipeline, item);
}

static void test_pushed_one_by_one(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:mapped=1", "sim:mapped=1,kernel_us=300",
                                           "sim:fail_launch=30", "sim:lose_at=40"};
    for (int b = 0; b < 6; b++) {
        kit* const self = kit_open(backends[b], 2);
        const gpst_pipeline_desc desc = lone_desc(self, 0, false);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        for (int n = 0; n < 60; n++)
            push_and_take(self, n % 3 ? GPST_FOREVER : n * 100000);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_close(self);
    }
}

/* Several threads push and wait at once, and nobody is forgotten. */
static void pusher(void* argument) {
    kit* const self = (kit*)argument;
    for (int n = 0; n < 300; n++) {
        gpst_input input = GPST_ZERO;
        const gpst_item* item = NULL;
        input.frame = frame_of(SIDE);
        kit_check(self, gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL) == GPST_OK);
        if (n % 7 == 0)
            gpsti_sleep_ns(50000);
        kit_check(self, gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &item) == GPST_OK);
        kit_check(self, item && item->result == GPST_OK);
        kit_check(self, item && memcmp(item->sets[1].pictures[0].data, wanted[0], OUT_BYTES) == 0);
        gpst_pipeline_release(self->pipeline, item);
    }
}

static void test_pushers(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim:mapped=1", "sim:launch_us=20"};
    for (int b = 0; b < 3; b++) {
        gpsti_thread threads[3];
        kit* const self = kit_open(backends[b], 2);
        gpst_pipeline_desc desc = lone_desc(self, 0, false);
        desc.batch = 1 + (uint32_t)b;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        for (int t = 0; t < 3; t++)
            assert_int_equal(gpsti_thread_start(&threads[t], pusher, self, "pusher"), GPST_OK);
        for (int t = 0; t < 3; t++)
            gpsti_thread_join(&threads[t]);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_close(self);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_items_are_not_copied),
        cmocka_unit_test(test_large_items_are_copied),
        cmocka_unit_test(test_items_in_place_record_two_events),
        cmocka_unit_test(test_the_users_work_is_copied),
        cmocka_unit_test(test_pageable_items_are_copied),
        cmocka_unit_test(test_trouble_in_place),
        cmocka_unit_test(test_pushed_one_by_one),
        cmocka_unit_test(test_pushers),
    };
    return cmocka_run_group_tests(tests, make_warp, forget_warp);
}
