/* tests/test_pipeline_state.c -- MASK stages of kind TIME: each camera's mean is its own, the same bits as by
   gpst_mask_time, on every backend; and where it begins anew. */
#include "pipeline_kit.h"

enum { SIDE = 40, N_CAMERAS = 3, N_ITEMS = 60 };

typedef struct smoothing {
    kit* kit;
    gpst_pipeline* pipeline;
    gpst_mask_desc mask;
    gpsti_a32 n_released;
    uint8_t frames[N_ITEMS][SIDE * SIDE];
    uint8_t got[N_ITEMS][SIDE * SIDE];
    gpst_result ends[N_ITEMS];
} smoothing;

static smoothing the_smoothing;

static gpst_image mask_of(void* data) {
    gpst_image image = kit_shape(SIDE, SIDE);
    image.data = data;
    return image;
}

static gpst_result keep_result(void* user_data, const gpst_item* item) {
    smoothing* const self = (smoothing*)user_data;
    const size_t k = (size_t)item->timestamp_ns;
    self->ends[k] = item->result;
    if (item->result == GPST_OK)
        for (uint32_t y = 0; y < SIDE; y++)
            memcpy(&self->got[k][y * SIDE],
                   (const uint8_t*)item->sets[1].pictures[0].data + (int64_t)y * item->sets[1].pictures[0].pitch_bytes, SIDE);
    return GPST_OK;
}

static gpst_result fail_three(void* user_data, gpst_task* task) {
    (void)user_data;
    return task->item->timestamp_ns % 20 == 7 ? GPST_ERROR_FORMAT : GPST_OK;
}

/* Soft masks that change a little from frame to frame, and wholly at item 30. */
static void make_frames(smoothing* self) {
    uint64_t random = 5;
    for (uint32_t k = 0; k < N_ITEMS; k++)
        for (uint32_t i = 0; i < SIDE * SIDE; i++)
            self->frames[k][i] =
                (uint8_t)((k >= 30 ? 200 - i % 90 : i % 90) + k % N_CAMERAS * 9 + (test_random(&random) >> 40) % 23);
}

static void check_means(smoothing* self, bool may_restart) {
    gpst_image shape;
    const gpst_image some = mask_of(self->frames[0]);
    size_t bytes = 0;
    uint32_t n_equal = 0, n_ok = 0;
    assert_int_equal(gpst_mask_query_state(&self->mask, &some, &shape), GPST_OK);
    assert_int_equal(gpst_image_bytes(&shape, &bytes), GPST_OK);
    for (uint32_t c = 0; c < N_CAMERAS; c++) {
        gpst_image state = shape;
        bool restart = true;
        state.data = calloc(1, bytes);
        for (uint32_t k = c; k < N_ITEMS; k += N_CAMERAS) {
            uint8_t wanted[SIDE * SIDE];
            const gpst_image from = mask_of(self->frames[k]), to = mask_of(wanted);
            if (self->ends[k] != GPST_OK)
                continue;
            assert_int_equal(gpst_mask_time(&self->mask, &from, &to, &state, restart, 1), GPST_OK);
            restart = false;
            n_ok++;
            n_equal += memcmp(wanted, self->got[k], sizeof wanted) == 0;
            if (!may_restart && memcmp(wanted, self->got[k], sizeof wanted) != 0)
                fail_msg("item %u of camera %u differs", k, c);
        }
        free(state.data);
    }
    assert_true(n_ok > N_ITEMS / 2 && n_equal > 3);
    assert_true(may_restart || memcmp(self->got[3], self->frames[3], SIDE * SIDE) != 0); /* it is smoothed at all */
}

static void run_smoothing(const char* backend, gpst_run_mode mode, bool may_restart) {
    smoothing* const self = &the_smoothing;
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    memset(self, 0, sizeof *self);
    make_frames(self);
    self->kit = kit_open(backend, 3);
    self->mask.kind = GPST_MASK_TIME;
    self->mask.change = 1.0f;
    gpst_stage_host(&stages[0], GPST_SET(0), 0, fail_three, self);
    gpst_stage_mask(&stages[1], 0, 1, &self->mask);
    desc.stages = stages;
    desc.n_stages = 2;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
    desc.sink = keep_result;
    desc.sink_user_data = self;
    desc.mode = mode;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &desc, &self->pipeline), GPST_OK);
    self->kit->pipeline = self->pipeline;
    for (uint32_t k = 0; k < N_ITEMS; k++) {
        gpst_input input = GPST_ZERO;
        input.frame = mask_of(self->frames[k]);
        input.timestamp_ns = k;
        input.camera = k % N_CAMERAS;
        assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    }
    gpst_pipeline_close(self->pipeline);
    assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    check_means(self, may_restart);
    kit_close(self->kit);
}

static void test_each_camera_has_its_mean(void** state) {
    (void)state;
    run_smoothing("cpu", GPST_RUN_ENGINE, false);
    run_smoothing("sim", GPST_RUN_ENGINE, false);
}

/* A device in trouble: the mean begins anew on the CPU, no item is lost, and nothing leaks. */
static void test_a_device_in_trouble(void** state) {
    (void)state;
    static const char* const faults[] = {"sim:fail_launch=9", "sim:lose_at=30", "sim:memory_mb=1"};
    for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++)
        run_smoothing(faults[f], GPST_RUN_ENGINE, true);
}

/* A stage of its own behind the mean: by the kernel of the kit, pixel for pixel. */
static gpst_result pass_on(void* user_data, gpst_task* task) {
    smoothing* const self = (smoothing*)user_data;
    const gpst_image shape = kit_shape(SIDE, SIDE);
    gpst_image from, to;
    kit_args args;
    memset(&args, 0, sizeof args);
    GPSTI_TRY(gpst_task_pictures(task, 1, &from, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 2, 0, &shape, &to));
    kit_check(self->kit, from.pitch_bytes == to.pitch_bytes);
    args.from = (const uint8_t*)from.data;
    args.to = (uint8_t*)to.data;
    args.bytes = (uint32_t)to.pitch_bytes * SIDE;
    return gpst_task_enqueue(task, &kit_kernel, &args, sizeof args);
}

static gpst_result keep_pixel(void* user_data, const gpst_item* item) {
    smoothing* const self = (smoothing*)user_data;
    const size_t k = (size_t)item->timestamp_ns;
    self->ends[k] = item->result;
    if (item->result == GPST_OK)
        self->got[k][0] = kit_result(*(const uint8_t*)item->sets[2].pictures[0].data, 0); /* it is its own inverse */
    return GPST_OK;
}

/* Frames that grow brighter, and a device that is lost: nowhere does their mean fall, which it would if an item of before
   were done again behind later ones; and it begins anew once at most. */
static void lose_device_at(uint32_t lose_at) {
    smoothing* const self = &the_smoothing;
    char backend[64];
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    uint32_t n_anew = 0;
    uint8_t before = 0;
    memset(self, 0, sizeof *self);
    snprintf(backend, sizeof backend, "sim:kernel_us=200,lose_at=%u", lose_at);
    self->kit = kit_open(backend, 3);
    self->mask.kind = GPST_MASK_TIME;
    self->mask.cut = 2.0f; /* never */
    self->mask.change = 1.0f;
    gpst_stage_mask(&stages[0], 0, 1, &self->mask);
    gpst_stage_device(&stages[1], GPST_SET(1), GPST_SET(2), pass_on, self);
    stages[1].queue_most = 4;
    desc.stages = stages;
    desc.n_stages = 2;
    desc.n_slots = 12;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(2, GPST_ON_HOST);
    desc.sink = keep_pixel;
    desc.sink_user_data = self;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &desc, &self->pipeline), GPST_OK);
    self->kit->pipeline = self->pipeline;
    for (uint32_t k = 0; k < N_ITEMS; k++) {
        gpst_input input = GPST_ZERO;
        memset(self->frames[k], (int)(40 + 3 * k), sizeof self->frames[k]);
        input.frame = mask_of(self->frames[k]);
        input.timestamp_ns = k;
        assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    }
    gpst_pipeline_close(self->pipeline);
    assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    for (uint32_t k = 0; k < N_ITEMS; k++) {
        assert_true(self->ends[k] == GPST_OK || self->ends[k] == GPST_ERROR_DEVICE_LOST);
        if (self->ends[k] != GPST_OK)
            continue;
        n_anew += k > 0 && self->got[k][0] == self->frames[k][0] ? 1 : 0;
        if (self->got[k][0] < before)
            fail_msg("lose_at=%u: item %u has %u behind %u", lose_at, k, self->got[k][0], before);
        before = self->got[k][0];
    }
    assert_in_range(n_anew, 0, 1);
    assert_true(before > 40);
    kit_close(self->kit);
}

static void test_a_state_is_in_order_when_the_device_is_lost(void** state) {
    (void)state;
    for (uint32_t lose_at = 2; lose_at < 40; lose_at++)
        lose_device_at(lose_at);
}

/* ---- where a mean begins anew, item by item --------------------------------------------------------- */

enum { GAP = 30 };

static gpst_result fail_gap(void* user_data, gpst_task* task) {
    return task->item->timestamp_ns > 0 && task->item->timestamp_ns <= *(const int64_t*)user_data ? GPST_ERROR_FORMAT
                                                                                                 : GPST_OK;
}

/* One frame after the other, each of one grey; a HOST stage in front fails the first n_failing behind item 0. */
static void run_greys(const char* opener, const char* backend, int64_t n_failing, uint32_t n_items) {
    smoothing* const self = &the_smoothing;
    gpst_context_desc context = GPST_ZERO;
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    memset(self, 0, sizeof *self);
    self->kit = kit_open_in(opener, backend, 1);
    context.backend = backend;
    context.require_backend = true;
    context.n_workers = 1;
    kit_reopen(self->kit, &context);
    self->mask.kind = GPST_MASK_TIME;
    self->mask.cut = 2.0f; /* never */
    self->mask.change = 1.0f;
    gpst_stage_host(&stages[0], GPST_SET(0), 0, fail_gap, &n_failing);
    gpst_stage_mask(&stages[1], 0, 1, &self->mask);
    desc.stages = stages;
    desc.n_stages = 2;
    desc.n_slots = 1;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
    desc.sink = keep_result;
    desc.sink_user_data = self;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &desc, &self->pipeline), GPST_OK);
    self->kit->pipeline = self->pipeline;
    for (uint32_t k = 0; k < n_items; k++) {
        gpst_input input = GPST_ZERO;
        memset(self->frames[k], (int)(40 + 3 * k), sizeof self->frames[k]);
        input.frame = mask_of(self->frames[k]);
        input.timestamp_ns = k;
        assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    }
    gpst_pipeline_close(self->pipeline);
    assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_close(self->kit);
}

static bool began_anew(uint32_t k) { return the_smoothing.got[k][0] == the_smoothing.frames[k][0]; }

/* A camera that missed more than 30 items has another picture before it. */
static void test_a_gap_begins_anew(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    (void)state;
    for (int b = 0; b < 2; b++)
        for (uint32_t n_failing = GAP - 1; n_failing <= GAP + 1; n_failing++) {
            run_greys(__func__, backends[b], n_failing, n_failing + 3);
            assert_int_equal(the_smoothing.ends[n_failing], GPST_ERROR_FORMAT);
            assert_int_equal(the_smoothing.ends[n_failing + 1], GPST_OK);
            assert_int_equal(began_anew(n_failing + 1), n_failing > GAP);
            assert_false(began_anew(n_failing + 2));
        }
}

/* An item that the device fails for may have changed the mean already: nobody goes on with it. Each frame goes up, and
   down again: the down of item 3 fails. */
static void test_a_failed_item_leaves_no_mean(void** state) {
    (void)state;
    run_greys(__func__, "sim:fail_copy=8", 0, 6);
    for (uint32_t k = 0; k < 6; k++) {
        assert_int_equal(the_smoothing.ends[k], k == 3 ? GPST_ERROR_DEVICE : GPST_OK);
        if (k != 3)
            assert_int_equal(began_anew(k), k == 0 || k == 4);
    }
}

/* More than one picture an item has no mean over time. */
static gpst_result make_two(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(SIDE, SIDE);
    gpst_image image;
    (void)user_data;
    for (uint32_t i = 0; i < 2; i++) {
        GPSTI_TRY(gpst_task_set_picture(task, 0, i, &shape, &image));
        memset(image.data, 0, SIDE * SIDE);
    }
    return GPST_OK;
}

static gpst_result note_failure(void* user_data, const gpst_item* item) {
    smoothing* const self = (smoothing*)user_data;
    self->ends[0] = item->result;
    kit_check(self->kit, strstr(item->reason, "TIME takes one of each item") != NULL);
    return GPST_OK;
}

static void test_two_pictures_are_refused(void** state) {
    (void)state;
    smoothing* const self = &the_smoothing;
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    memset(self, 0, sizeof *self);
    self->kit = kit_open("cpu", 1);
    self->mask.kind = GPST_MASK_TIME;
    gpst_stage_host(&stages[0], 0, GPST_SET(0), make_two, self);
    gpst_stage_mask(&stages[1], 0, 1, &self->mask);
    desc.stages = stages;
    desc.n_stages = 2;
    desc.capacity[0] = 2;
    desc.sink = note_failure;
    desc.sink_user_data = self;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &desc, &self->pipeline), GPST_OK);
    self->kit->pipeline = self->pipeline;
    assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    assert_int_equal(self->ends[0], GPST_ERROR_ARGUMENT);
    kit_close(self->kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_camera_has_its_mean),
        cmocka_unit_test(test_a_device_in_trouble),
        cmocka_unit_test(test_a_state_is_in_order_when_the_device_is_lost),
        cmocka_unit_test(test_a_gap_begins_anew),
        cmocka_unit_test(test_a_failed_item_leaves_no_mean),
        cmocka_unit_test(test_two_pictures_are_refused),
    };
    return cmocka_run_group_tests_name("pipeline_state", tests, NULL, NULL);
}
