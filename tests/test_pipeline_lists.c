/* tests/test_pipeline_lists.c -- lists of rois, affines and views that come with the items of a pipeline: the bits of a
   warp that is made with the list, from either side of the link, in batches and in trouble; and what a list may be. */
#include "pipeline_kit.h"

#include <math.h>

enum { MOST = 5, N_ITEMS = 24, WIDTH = 48, HEIGHT = 24, SIDE = 16, MOST_CHANNELS = 6 };

static const uint32_t channels_of[] = {0, 0, 5, 4, 6}; /* by gpst_map */

/* What one run does. */
typedef struct lists {
    kit* owner;
    gpst_warp_desc desc; /* of the pipeline's warp */
    gpst_warp* warp;
    bool by_device; /* a DEVICE stage writes the list, else the HOST stage */
    bool in_trouble;
    uint64_t bad_every; /* items with an entry that breaks a rule; 0 = none */
    uint64_t first;     /* the list of item 0 is this one's */
    gpst_image shape;   /* of a list, where data is not NULL: a wrong one */
    uint32_t n_pictures;
    const char* why; /* part of the sentence of those that fail */
    uint64_t n_listed, list_bytes, n_failed;
} lists;

/* ---- lists and pictures ------------------------------------------------------------------------------------------- */

static void fill_frame(uint64_t index, uint8_t* pixels) {
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
        pixels[i] = (uint8_t)(i * 13 + index * 29 + (i >> 5));
}

static gpst_image frame_of(uint8_t* pixels) {
    gpst_image frame = kit_shape(WIDTH, HEIGHT);
    frame.data = pixels;
    return frame;
}

/* From none up to the warp's most. */
static uint32_t n_of(uint64_t index) { return (uint32_t)(index * 5 % (MOST + 1)); }

static void entry_of(gpst_map map, uint64_t index, uint32_t i, float* out) {
    const float a = (float)(index % 7), b = (float)i;
    const float roi[4] = {a * 2 + b, b * 1.5f, 5 + 3 * b, 4 + a};
    const float affine[6] = {1.25f + b / 8, -a / 16, a, b / 8, 0.75f + a / 8, -b};
    const float view[5] = {a * 40 - 120, b * 15 - 30, a + b, i % 2 == 0 ? 0 : 60 + a, i % 3 == 0 ? 0 : 40 + b};
    memcpy(out, map == GPST_MAP_ROI ? roi : map == GPST_MAP_AFFINE ? affine : view, channels_of[map] * sizeof *out);
}

static gpst_image list_shape(gpst_map map, uint32_t n) {
    gpst_image shape = GPST_ZERO;
    shape.width = n;
    shape.height = 1;
    shape.format = GPST_FORMAT_TENSOR;
    shape.n_channels = channels_of[map];
    shape.dtype = GPST_DTYPE_F32;
    shape.layout = GPST_LAYOUT_HWC;
    return shape;
}

static bool is_bad(const lists* self, uint64_t index) {
    return self->bad_every > 0 && index % self->bad_every == 0 && n_of(index) > 0;
}

/* ---- the pipeline -------------------------------------------------------------------------------------------------- */

static gpst_result lists_source(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[WIDTH * HEIGHT];
    (void)user_data;
    fill_frame(index, pixels);
    out->frame = frame_of(pixels);
    return index < N_ITEMS ? GPST_OK : GPST_END;
}

/* The last entry's last number is what no rule allows. */
static gpst_result make_list(void* user_data, gpst_task* task) {
    const lists* const self = (const lists*)user_data;
    const uint64_t index = task->item->index;
    const gpst_image shape = list_shape(self->desc.map, n_of(index));
    gpst_image image;
    if (shape.width == 0)
        return GPST_OK;
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &image));
    float* const numbers = (float*)image.data;
    for (uint32_t i = 0; i < shape.width; i++)
        entry_of(self->desc.map, index, i, numbers + i * shape.n_channels);
    if (is_bad(self, index))
        numbers[shape.width * shape.n_channels - 1] = index % 2 == 0 ? (float)NAN : 1e30f;
    return GPST_OK;
}

static gpst_result copy_on_host(const void* args) {
    const test_number_args* const a = (const test_number_args*)args;
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = (uint8_t)(a->from[i] + a->add);
    return GPST_OK;
}

/* As a detector would, whose boxes are on the device. */
static gpst_result copy_list(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"copy", copy_on_host, TEST_GPU(test_number_gpu)};
    const lists* const self = (const lists*)user_data;
    test_number_args args;
    gpst_image from, to;
    if (task->item->sets[1].n == 0)
        return GPST_OK;
    GPSTI_TRY(gpst_task_pictures(task, 1, &from, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 2, 0, &from, &to));
    memset(&args, 0, sizeof args);
    args.from = (const uint8_t*)from.data;
    args.to = (uint8_t*)to.data;
    args.bytes = from.width * channels_of[self->desc.map] * (uint32_t)sizeof(float);
    return gpst_task_enqueue(task, &kernel, &args, sizeof args);
}

static gpst_warp* warp_with(const gpst_warp_desc* like, uint64_t index, uint32_t n) {
    gpst_roi rois[MOST];
    gpst_affine affines[MOST];
    gpst_view views[MOST];
    gpst_warp_desc desc = *like;
    gpst_warp* warp = NULL;
    for (uint32_t i = 0; i < n; i++) {
        float e[MOST_CHANNELS];
        entry_of(like->map, index, i, e);
        rois[i].x = e[0], rois[i].y = e[1], rois[i].width = e[2], rois[i].height = e[3];
        for (int m = 0; like->map == GPST_MAP_AFFINE && m < 6; m++)
            affines[i].m[m] = (double)e[m];
        if (like->map != GPST_MAP_EQUIRECT)
            continue;
        views[i].yaw = (double)e[0], views[i].pitch = (double)e[1], views[i].roll = (double)e[2];
        views[i].hfov = (double)e[3], views[i].vfov = (double)e[4];
    }
    desc.list_per_item = false;
    desc.rois = rois, desc.n_rois = like->map == GPST_MAP_ROI ? n : 0;
    desc.affines = affines, desc.n_affines = like->map == GPST_MAP_AFFINE ? n : 0;
    desc.views = views, desc.n_views = like->map == GPST_MAP_EQUIRECT ? n : 0;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

static uint32_t out_set(const lists* self) { return self->by_device ? 3 : 2; }

/* Against a warp that is made with the list. */
static void compare(lists* self, const gpst_item* item) {
    static uint8_t pixels[WIDTH * HEIGHT], room[MOST][SIDE * SIDE * sizeof(float)];
    const gpst_set* const made = &item->sets[out_set(self)];
    const uint64_t index = item->index + self->first;
    const uint32_t n = n_of(index);
    gpst_image outputs[MOST];
    kit_check(self->owner, made->n == n);
    if (n == 0 || made->n != n)
        return;
    fill_frame(index, pixels);
    const gpst_image frame = frame_of(pixels);
    gpst_warp* const warp = warp_with(&self->desc, index, n);
    for (uint32_t i = 0; i < n; i++) {
        gpst_warp_query_output(warp, &outputs[i]);
        outputs[i].data = room[i];
    }
    kit_check(self->owner, gpst_warp_run(warp, &frame, outputs, n, 1) == GPST_OK);
    for (uint32_t i = 0; i < n; i++) {
        size_t bytes = 0;
        kit_check(self->owner, gpst_image_bytes(&outputs[i], &bytes) == GPST_OK);
        kit_check(self->owner, memcmp(made->pictures[i].data, room[i], bytes) == 0);
    }
    gpst_warp_destroy(warp);
}

static gpst_result lists_sink(void* user_data, const gpst_item* item) {
    lists* const self = (lists*)user_data;
    const bool fails = is_bad(self, item->index) || self->shape.width > 0;
    kit_check(self->owner, fails == (item->result != GPST_OK));
    if (!fails && item->result != GPST_OK)
        printf("    item %u: %s: %s\n", (unsigned)item->index, item->stage, item->reason);
    if (item->result == GPST_OK && !fails)
        compare(self, item);
    self->n_failed += fails;
    self->n_listed += n_of(item->index) > 0;
    self->list_bytes += n_of(item->index) * channels_of[self->desc.map] * sizeof(float);
    if (!fails || item->result == GPST_OK)
        return GPST_OK;
    kit_check(self->owner, item->result == GPST_ERROR_ARGUMENT && strcmp(item->stage, "by list") == 0);
    kit_check(self->owner, strstr(item->reason, self->why) != NULL);
    if (!strstr(item->reason, self->why))
        printf("    item %u: %s: %s\n", (unsigned)item->index, item->stage, item->reason);
    return GPST_OK;
}

static gpst_warp_desc desc_of(gpst_map map) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = map;
    desc.list_per_item = true;
    desc.n_rois = map == GPST_MAP_ROI ? MOST : 0;
    desc.n_affines = map == GPST_MAP_AFFINE ? MOST : 0;
    desc.n_views = map == GPST_MAP_EQUIRECT ? MOST : 0;
    desc.width = SIDE;
    desc.height = SIDE - 3;
    desc.format = GPST_FORMAT_GRAY;
    return desc;
}

static uint32_t describe(lists* self, gpst_stage_func make, gpst_stage_desc* stages) {
    uint32_t n = 0;
    gpst_stage_host(&stages[n++], 0, GPST_SET(1), make, self);
    if (self->by_device)
        gpst_stage_device(&stages[n++], GPST_SET(1), GPST_SET(2), copy_list, self);
    gpst_stage_list(&stages[n], 0, self->by_device ? 2 : 1, out_set(self), self->warp);
    stages[n++].name = "by list";
    return n;
}

static void run_lists(lists* self, const char* backend, gpst_stage_func make, gpst_pipeline_desc* desc,
                      gpst_stats* stats) {
    gpst_stage_desc stages[3];
    kit* const owner = self->owner = kit_open(backend, 3);
    assert_int_equal(gpst_warp_create(&self->desc, &self->warp), GPST_OK);
    desc->n_stages = describe(self, make, stages);
    desc->stages = stages;
    desc->source = lists_source;
    desc->sink = lists_sink;
    desc->sink_user_data = self;
    desc->mode = desc->mode == GPST_RUN_DEFAULT ? GPST_RUN_ENGINE : desc->mode;
    self->n_listed = self->list_bytes = self->n_failed = 0;
    assert_int_equal(gpst_pipeline_create(owner->context, desc, &owner->pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(owner->pipeline);
    gpst_pipeline_query_stats(owner->pipeline, stats);
    assert_int_equal(GPST_FAILED(result), self->n_failed == N_ITEMS);
    assert_int_equal(result == GPST_PARTIAL, self->n_failed > 0 && self->n_failed < N_ITEMS);
    assert_int_equal(stats->items_ok + stats->items_failed, N_ITEMS);
    assert_int_equal(gpst_pipeline_destroy(owner->pipeline), GPST_OK);
    owner->pipeline = NULL;
    gpst_warp_destroy(self->warp);
}

/* ---- the bits ------------------------------------------------------------------------------------------------------ */

static const gpst_map all_maps[] = {GPST_MAP_ROI, GPST_MAP_AFFINE, GPST_MAP_EQUIRECT};

static const gpst_copy_stats* find_copy(const gpst_stats* stats, uint32_t set, bool up) {
    for (uint32_t c = 0; c < stats->n_copies; c++)
        if (stats->copies[c].set == set && stats->copies[c].up == up)
            return &stats->copies[c];
    return NULL;
}

/* Rois go up where the host wrote them, or stay where they are; affines and views come down, or stay. */
static void check_copies(const lists* self, const gpst_stats* stats) {
    const bool rois = self->desc.map == GPST_MAP_ROI;
    const uint32_t set = self->by_device ? 2 : 1;
    const gpst_copy_stats* const up = find_copy(stats, set, true);
    const gpst_copy_stats* const down = find_copy(stats, set, false);
    assert_true((up != NULL) == (rois && !self->by_device));
    assert_true((down != NULL) == (!rois && self->by_device));
    const gpst_copy_stats* const copy = up ? up : down;
    if (!copy)
        return;
    assert_string_equal(copy->wanted, "by list");
    assert_int_equal(copy->count, self->n_listed);
    assert_int_equal(copy->bytes, self->list_bytes);
}

static void run_variant(gpst_map map, const char* backend, uint32_t variant) {
    lists self;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stats stats;
    memset(&self, 0, sizeof self);
    self.desc = desc_of(map);
    self.by_device = variant % 2 == 1;
    self.in_trouble = strstr(backend, "fail") || strstr(backend, "lose");
    desc.batch = variant / 2 % 2 == 1 ? 4 : 0;
    desc.mode = variant == 5 ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
    if (variant >= 4) {
        self.desc.filter = GPST_FILTER_AREA;
        self.desc.dtype = GPST_DTYPE_F32;
    }
    if (variant % 4 >= 2)
        self.desc.convention = map == GPST_MAP_EQUIRECT ? GPST_CONVENTION_PY360 : GPST_CONVENTION_OPENCV;
    run_lists(&self, backend, make_list, &desc, &stats);
    if (kit_has_own_memory(self.owner) && !self.in_trouble)
        check_copies(&self, &stats);
    kit_close(self.owner);
}

static void test_the_bits_are_those_of_a_list_up_front(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:mapped=1", "sim:kernel_us=100,jitter_pct=80,seed=3"};
    for (uint32_t m = 0; m < 3; m++)
        for (uint32_t b = 0; b < 4; b++)
            for (uint32_t variant = 0; variant < 8; variant++)
                run_variant(all_maps[m], backends[b], variant);
}

/* What the device does not do is computed on the CPU, its list fetched or computed again, too. */
static void test_in_trouble(void** state) {
    (void)state;
    static const char* const backends[] = {"sim:fail_launch=3", "sim:fail_copy=4", "sim:fail_notify=2", "sim:lose_at=5",
                                           "sim:fail_alloc=2"};
    kit_count_faults();
    for (uint32_t m = 0; m < 3; m++)
        for (uint32_t b = 0; b < 5; b++)
            for (uint32_t variant = 0; variant < 4; variant++)
                run_variant(all_maps[m], backends[b], variant);
    assert_true(kit_counted_faults() >= 3 * 3 * 4); /* small pictures in place are not copied so often */
}

static gpst_result make_frame(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(WIDTH, HEIGHT);
    gpst_image image;
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &image));
    fill_frame(task->item->index + ((const lists*)user_data)->first, (uint8_t*)image.data);
    return GPST_OK;
}

static void given_back(void* user_data) { (void)gpsti_a32_add((gpsti_a32*)user_data, 1); }

/* The list is the input's own frame, in memory of the device. */
static void submit_list(lists* self, gpst_memory* memory, gpst_stream* stream, gpsti_a32* n_back) {
    float numbers[MOST * MOST_CHANNELS];
    gpst_input input = GPST_ZERO;
    const gpst_item* item = NULL;
    input.frame = list_shape(self->desc.map, n_of(self->first));
    for (uint32_t i = 0; i < input.frame.width; i++)
        entry_of(self->desc.map, self->first, i, numbers + i * input.frame.n_channels);
    assert_int_equal(gpst_copy(gpst_memory_data(memory), numbers, sizeof numbers, stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(stream), GPST_OK);
    input.frame.data = gpst_memory_data(memory);
    input.frame_on_device = true;
    input.release = given_back;
    input.release_user_data = n_back;
    assert_int_equal(gpst_pipeline_submit(self->owner->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(self->owner->pipeline, GPST_FOREVER, &item), GPST_OK);
    if (item->result != GPST_OK)
        fail_msg("%s: %s", item->stage, item->reason);
    compare(self, item);
    gpst_pipeline_release(self->owner->pipeline, item);
}

/* From there the list comes down for the stage alone; a copy that fails is made again for the CPU. */
static void run_lent(gpst_map map, const char* backend) {
    lists self;
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stream* stream = NULL;
    gpst_memory* memory = NULL;
    gpsti_a32 n_back = GPST_ZERO;
    kit* const owner = kit_open(backend, 2);
    gpst_device* const device = gpst_context_device(owner->context);
    memset(&self, 0, sizeof self);
    self.owner = owner;
    self.desc = desc_of(map);
    self.first = 5;
    assert_int_equal(gpst_warp_create(&self.desc, &self.warp), GPST_OK);
    assert_int_equal(gpst_stream_create(device, &stream), GPST_OK);
    assert_int_equal(gpst_memory_create(device, GPST_MEMORY_DEVICE, 4096, &memory), GPST_OK);
    gpst_stage_host(&stages[0], 0, GPST_SET(1), make_frame, &self);
    gpst_stage_list(&stages[1], 1, 0, 2, self.warp);
    desc.stages = stages;
    desc.n_stages = 2;
    assert_int_equal(gpst_pipeline_create(owner->context, &desc, &owner->pipeline), GPST_OK);
    submit_list(&self, memory, stream, &n_back);
    assert_int_equal(gpst_pipeline_destroy(owner->pipeline), GPST_OK);
    assert_int_equal(gpsti_a32_load(&n_back), 1);
    owner->pipeline = NULL;
    gpst_memory_destroy(memory);
    gpst_stream_destroy(stream);
    gpst_warp_destroy(self.warp);
    kit_close(owner);
}

static void test_a_list_that_is_lent_on_the_device(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:fail_copy=2", "sim:fail_copy=3"};
    kit_count_faults();
    for (uint32_t m = 0; m < 3; m++)
        for (uint32_t b = 0; b < 4; b++)
            run_lent(all_maps[m], backends[b]);
    assert_true(kit_counted_faults() >= 3); /* small pictures in place are not copied so often */
}

/* Items with lists of other lengths go to the device together. */
static void test_batches_are_made(void** state) {
    (void)state;
    lists self;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stats stats;
    for (uint32_t m = 0; m < 3; m++) {
        bool together = false;
        memset(&self, 0, sizeof self);
        self.desc = desc_of(all_maps[m]);
        desc.batch = 4;
        run_lists(&self, "sim:kernel_us=1000", make_list, &desc, &stats);
        for (uint32_t p = 0; p < stats.n_paths; p++)
            together = together || strstr(stats.paths[p].taken, "items together") != NULL;
        assert_true(together || kit_is_on_gpu(self.owner));
        kit_close(self.owner);
    }
}

/* ---- what a list may be -------------------------------------------------------------------------------------------- */

/* The item fails, with the rule that its entry breaks; those beside it do not. Rois are not looked at. */
static void test_a_bad_entry_fails_its_item(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim"};
    static const gpst_map maps[] = {GPST_MAP_AFFINE, GPST_MAP_EQUIRECT};
    static const char* const why[2][2] = {{"set 1: affines[", "set 2: affines["}, {"set 1: views[", "set 2: views["}};
    for (uint32_t m = 0; m < 2; m++)
        for (uint32_t b = 0; b < 2; b++)
            for (uint32_t variant = 0; variant < 4; variant++) {
                lists self;
                gpst_pipeline_desc desc = GPST_ZERO;
                gpst_stats stats;
                memset(&self, 0, sizeof self);
                self.desc = desc_of(maps[m]);
                self.by_device = variant % 2 == 1;
                self.bad_every = 3;
                self.why = why[m][variant % 2];
                desc.batch = variant >= 2 ? 4 : 0;
                run_lists(&self, backends[b], make_list, &desc, &stats);
                assert_int_equal(stats.items_failed, 4); /* every third, but of every sixth there is no list */
                assert_int_equal(stats.device_fallbacks, 0);
                kit_close(self.owner);
            }
}

static gpst_result make_wrong(void* user_data, gpst_task* task) {
    const lists* const self = (const lists*)user_data;
    for (uint32_t i = 0; i < self->n_pictures; i++) {
        gpst_image image;
        size_t bytes = 0;
        GPSTI_TRY(gpst_task_set_picture(task, 1, i, &self->shape, &image));
        GPSTI_TRY(gpst_image_bytes(&image, &bytes));
        memset(image.data, 0, bytes);
    }
    return GPST_OK;
}

static void run_wrong(gpst_map map, gpst_image shape, uint32_t n_pictures, const char* why) {
    static const char* const backends[] = {"cpu", "sim"};
    for (uint32_t b = 0; b < 2; b++) {
        lists self;
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_stats stats;
        memset(&self, 0, sizeof self);
        self.desc = desc_of(map);
        self.shape = shape;
        self.n_pictures = n_pictures;
        self.why = why;
        desc.capacity[1] = 2;
        run_lists(&self, backends[b], make_wrong, &desc, &stats);
        assert_int_equal(stats.items_failed, N_ITEMS);
        kit_close(self.owner);
    }
}

static void test_a_list_of_another_shape_is_none(void** state) {
    (void)state;
    static const char* const shapes[] = {"", "", "set 1: a list of views is one TENSOR of 5 channels, F32, HWC, height 1",
                                         "set 1: a list of rois is one TENSOR of 4 channels, F32, HWC, height 1",
                                         "set 1: a list of affines is one TENSOR of 6 channels, F32, HWC, height 1"};
    static const char* const lengths[] = {"", "", "set 1: 6 views: the warp has n_views=5",
                                          "set 1: 6 rois: the warp has n_rois=5",
                                          "set 1: 6 affines: the warp has n_affines=5"};
    for (uint32_t m = 0; m < 3; m++) {
        const gpst_map map = all_maps[m];
        const gpst_image right = list_shape(map, 2);
        gpst_image shape = right;
        run_wrong(map, right, 2, shapes[map]);
        run_wrong(map, list_shape(map, MOST + 1), 1, lengths[map]);
        shape.n_channels++;
        run_wrong(map, shape, 1, shapes[map]);
        shape = right, shape.height = 2;
        run_wrong(map, shape, 1, shapes[map]);
        shape = right, shape.dtype = GPST_DTYPE_U8;
        run_wrong(map, shape, 1, shapes[map]);
        shape = right, shape.layout = GPST_LAYOUT_CHW;
        run_wrong(map, shape, 1, shapes[map]);
        run_wrong(map, kit_shape(2, 1), 1, shapes[map]);
    }
}

static void expect_refused(const gpst_warp_desc* desc, const char* text) {
    gpst_warp* warp = NULL;
    assert_int_equal(gpst_warp_create(desc, &warp), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_warp_create: ", text);
    assert_null(warp);
}

static void test_rules_of_the_warp(void** state) {
    static const gpst_view view = GPST_ZERO;
    static const gpst_affine affine = {{1, 0, 0, 0, 1, 0}};
    gpst_warp_desc desc = desc_of(GPST_MAP_EQUIRECT);
    (void)state;
    desc.views = &view;
    expect_refused(&desc, "views: must be NULL with list_per_item");
    desc.views = NULL, desc.n_views = 0;
    expect_refused(&desc, "n_views=0: required");
    desc.n_views = 1, desc.map = GPST_MAP_ROTATE;
    expect_refused(&desc, "list_per_item: only with map=ROI, AFFINE and EQUIRECT");
    desc = desc_of(GPST_MAP_AFFINE), desc.affines = &affine;
    expect_refused(&desc, "affines: must be NULL with list_per_item");
    desc.affines = NULL, desc.list_per_item = false;
    expect_refused(&desc, "affines=NULL: required");
}

/* What a warp without a list of its own can tell, and what not. */
static void test_only_a_pipeline_runs_it(void** state) {
    static uint8_t pixels[WIDTH * HEIGHT], room[SIDE * SIDE];
    (void)state;
    for (uint32_t m = 0; m < 3; m++) {
        const gpst_warp_desc desc = desc_of(all_maps[m]);
        const gpst_image frame = frame_of(pixels);
        gpst_image outputs[MOST];
        gpst_warp* warp = NULL;
        double x = 0, y = 0;
        uint64_t read_bytes = 0, written_bytes = 0;
        assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
        assert_int_equal(gpst_warp_n_outputs(warp), MOST);
        for (uint32_t i = 0; i < MOST; i++) {
            gpst_warp_query_output(warp, &outputs[i]);
            outputs[i].data = room;
        }
        assert_int_equal(gpst_warp_run(warp, &frame, outputs, MOST, 1), GPST_ERROR_ARGUMENT);
        test_reason_has("gpst_warp_run: ", "the warp has list_per_item");
        assert_int_equal(gpst_warp_launch(warp, &frame, 1, outputs, MOST, NULL), GPST_ERROR_ARGUMENT);
        test_reason_has("gpst_warp_launch: ", "the warp has list_per_item");
        assert_int_equal(gpst_warp_position(warp, 0, 0, 0, WIDTH, HEIGHT, &x, &y), GPST_ERROR_UNSUPPORTED);
        test_reason_has("gpst_warp_position: ", "list_per_item");
        gpst_warp_query_bytes(warp, &frame, &read_bytes, &written_bytes);
        assert_int_equal(read_bytes, WIDTH * HEIGHT);
        assert_int_equal(written_bytes, MOST * desc.width * desc.height);
        gpst_warp_destroy(warp);
    }
}

static void test_a_stage_needs_its_list(void** state) {
    (void)state;
    const gpst_warp_desc desc = desc_of(GPST_MAP_EQUIRECT);
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc pipeline = kit_simple(self, 1, kit_nothing);
    gpst_warp* warp = NULL;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_stage_warp(&self->stages[0], 0, 2, warp);
    assert_int_equal(gpst_pipeline_create(self->context, &pipeline, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create: stages[0].warp", "list_per_item: second_set must be the list's");
    gpst_warp_destroy(warp);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_bits_are_those_of_a_list_up_front),
        cmocka_unit_test(test_in_trouble),
        cmocka_unit_test(test_a_list_that_is_lent_on_the_device),
        cmocka_unit_test(test_batches_are_made),
        cmocka_unit_test(test_a_bad_entry_fails_its_item),
        cmocka_unit_test(test_a_list_of_another_shape_is_none),
        cmocka_unit_test(test_rules_of_the_warp),
        cmocka_unit_test(test_only_a_pipeline_runs_it),
        cmocka_unit_test(test_a_stage_needs_its_list),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
