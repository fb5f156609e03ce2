/* tests/test_pipeline_counts.c -- sets whose number the device alone knows: a detector's list that is shorter than it may
   be, what WARP, MASK and DEVICE stages make of it there, and what of it comes to the host. */
#include "pipeline_kit.h"

#include <math.h>

enum { MOST = 6, N_ITEMS = 24, WIDTH = 40, HEIGHT = 32, SIDE = 12, MOST_BYTES = SIDE * SIDE * 3 * 4 };

/* Of the pipeline: the frame, all boxes, how many count, the list with its word, and what is made by it. */
enum { FRAME, BOXES, NUMBER, LIST, CROPS, ABOVE, SMALL, SEEN };

typedef struct counts {
    kit* owner;
    gpst_warp_desc desc;
    gpst_warp *warp, *small;
    gpst_mask_desc threshold;
    bool apart;       /* a HOST stage stands between the detector and the warp */
    bool is_exact;    /* the number may be known ahead of the warp */
    bool has_masks;   /* what is made of the crops: ABOVE and SMALL */
    bool has_list;    /* the list is a result */
    uint64_t n_ended;
} counts;

/* ---- what is right --------------------------------------------------------------------------------------------------- */

static void fill_frame(uint64_t index, uint8_t* pixels) {
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
        pixels[i] = (uint8_t)(i * 11 + index * 31 + (i >> 6));
}

static gpst_image frame_of(uint8_t* pixels) {
    gpst_image frame = kit_shape(WIDTH, HEIGHT);
    frame.data = pixels;
    return frame;
}

/* What the detector says: from none to more than there is room for. */
static uint32_t number_of(uint64_t index) { return (uint32_t)(index * 3 % (MOST + 3)); }

static uint32_t n_of(uint64_t index) { return number_of(index) < MOST ? number_of(index) : MOST; }

/* Of those that do not count nobody may look at the numbers. */
static void entry_of(gpst_map map, uint64_t index, uint32_t i, float* out) {
    const float a = (float)(index % 5), b = (float)i;
    const float roi[4] = {a + 2 * b, b, 6 + b, 5 + a}, affine[6] = {1 + b / 8, 0, a, 0, 1 - a / 16, b};
    const uint32_t n = map == GPST_MAP_ROI ? 4 : 6;
    memcpy(out, map == GPST_MAP_ROI ? roi : affine, n * sizeof *out);
    for (uint32_t e = 0; i >= n_of(index) && e < n; e++)
        out[e] = (float)NAN;
}

static gpst_image list_shape(gpst_map map, uint32_t n) {
    gpst_image shape = GPST_ZERO;
    shape.width = n;
    shape.height = 1;
    shape.format = GPST_FORMAT_TENSOR;
    shape.n_channels = map == GPST_MAP_ROI ? 4 : 6;
    shape.dtype = GPST_DTYPE_F32;
    shape.layout = GPST_LAYOUT_HWC;
    return shape;
}

/* The crops of an item by a warp that is made with those that count. */
static void crops_of(const counts* self, uint64_t index, uint8_t room[MOST][MOST_BYTES], gpst_image* crops) {
    static uint8_t pixels[WIDTH * HEIGHT];
    gpst_roi rois[MOST];
    gpst_affine affines[MOST];
    gpst_warp_desc desc = self->desc;
    gpst_warp* warp = NULL;
    const uint32_t n = n_of(index);
    for (uint32_t i = 0; i < n; i++) {
        float e[6];
        entry_of(desc.map, index, i, e);
        rois[i].x = e[0], rois[i].y = e[1], rois[i].width = e[2], rois[i].height = e[3];
        for (int m = 0; desc.map == GPST_MAP_AFFINE && m < 6; m++)
            affines[i].m[m] = (double)e[m];
    }
    if (n == 0)
        return;
    desc.list_per_item = false;
    desc.rois = rois, desc.n_rois = desc.map == GPST_MAP_ROI ? n : 0;
    desc.affines = affines, desc.n_affines = desc.map == GPST_MAP_AFFINE ? n : 0;
    kit_check(self->owner, gpst_warp_create(&desc, &warp) == GPST_OK);
    fill_frame(index, pixels);
    const gpst_image frame = frame_of(pixels);
    for (uint32_t i = 0; i < n; i++) {
        gpst_warp_query_output(warp, &crops[i]);
        crops[i].data = room[i];
    }
    kit_check(self->owner, gpst_warp_run(warp, &frame, crops, n, 1) == GPST_OK);
    gpst_warp_destroy(warp);
}

/* ---- the stages -------------------------------------------------------------------------------------------------------- */

static gpst_result counts_source(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[WIDTH * HEIGHT];
    (void)user_data;
    fill_frame(index, pixels);
    out->frame = frame_of(pixels);
    return index < N_ITEMS ? GPST_OK : GPST_END;
}

/* What the model would find. */
static gpst_result prepare(void* user_data, gpst_task* task) {
    const counts* const self = (const counts*)user_data;
    const gpst_image boxes = list_shape(self->desc.map, MOST), word = kit_shape(4, 1);
    const uint32_t number = number_of(task->item->index);
    gpst_image image;
    GPSTI_TRY(gpst_task_set_picture(task, BOXES, 0, &boxes, &image));
    for (uint32_t i = 0; i < MOST; i++)
        entry_of(self->desc.map, task->item->index, i, (float*)image.data + i * boxes.n_channels);
    GPSTI_TRY(gpst_task_set_picture(task, NUMBER, 0, &word, &image));
    memcpy(image.data, &number, sizeof number);
    return GPST_OK;
}

static gpst_result copy_on_host(const void* args) {
    const test_number_args* const a = (const test_number_args*)args;
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = (uint8_t)(a->from[i] + a->add);
    return GPST_OK;
}

static gpst_result enqueue_copy(gpst_task* task, const void* from, void* to, size_t bytes) {
    static const gpst_kernel kernel = {"copy", copy_on_host, TEST_GPU(test_number_gpu)};
    test_number_args args;
    memset(&args, 0, sizeof args);
    args.from = (const uint8_t*)from;
    args.to = (uint8_t*)to;
    args.bytes = (uint32_t)bytes;
    return gpst_task_enqueue(task, &kernel, &args, sizeof args);
}

/* Its kernels find the list. Where none counts they leave the word alone. */
static gpst_result detect(void* user_data, gpst_task* task) {
    const counts* const self = (const counts*)user_data;
    gpst_image boxes, number, list;
    uint32_t *word = NULL, *again = NULL;
    size_t bytes = 0;
    GPSTI_TRY(gpst_task_pictures(task, BOXES, &boxes, 1));
    GPSTI_TRY(gpst_task_pictures(task, NUMBER, &number, 1));
    GPSTI_TRY(gpst_task_set_picture(task, LIST, 0, &boxes, &list));
    GPSTI_TRY(gpst_task_count(task, LIST, &word));
    GPSTI_TRY(gpst_image_bytes(&boxes, &bytes));
    GPSTI_TRY(enqueue_copy(task, boxes.data, list.data, bytes));
    if (number_of(task->item->index) > 0)
        GPSTI_TRY(enqueue_copy(task, number.data, word, sizeof *word));
    kit_check(self->owner, gpst_task_count(task, LIST, &again) == GPST_OK && again == word);
    kit_check(self->owner, gpst_task_count(task, BOXES, &again) == GPST_OK && again == NULL);
    kit_check(self->owner, gpst_task_count(task, SEEN, &again) == GPST_ERROR_ARGUMENT && again == NULL);
    return GPST_OK;
}

/* A model behind it has all crops, and finds the word. */
static gpst_result see(void* user_data, gpst_task* task) {
    counts* const self = (counts*)user_data;
    const uint32_t n = task->item->sets[CROPS].n;
    uint32_t *by_list = NULL, *by_crops = NULL;
    gpst_image crops[MOST], seen, list;
    size_t bytes = 0;
    kit_check(self->owner, n <= MOST);
    GPSTI_TRY(gpst_task_pictures(task, LIST, &list, task->item->sets[LIST].n));
    if (task->item->sets[LIST].n == 1)
        kit_check(self->owner, list.width == task->item->sets[LIST].pictures[0].width);
    GPSTI_TRY(gpst_task_pictures(task, CROPS, crops, n));
    GPSTI_TRY(gpst_task_count(task, LIST, &by_list));
    GPSTI_TRY(gpst_task_count(task, CROPS, &by_crops));
    kit_check(self->owner, by_list == by_crops);
    for (uint32_t i = 0; i < n; i++) {
        GPSTI_TRY(gpst_task_set_picture(task, SEEN, i, &crops[i], &seen));
        GPSTI_TRY(gpst_image_bytes(&seen, &bytes));
        GPSTI_TRY(enqueue_copy(task, crops[i].data, seen.data, bytes));
    }
    return GPST_OK;
}

static gpst_result count_on_host(void* user_data, gpst_task* task) {
    counts* const self = (counts*)user_data;
    uint32_t* word = NULL;
    kit_check(self->owner, gpst_task_count(task, BOXES, &word) == GPST_ERROR_STATE && word == NULL);
    kit_check(self->owner, strcmp(gpst_last_reason(), "gpst_task_count: only from a DEVICE stage") == 0);
    return GPST_OK;
}

/* ---- the sinks --------------------------------------------------------------------------------------------------------- */

static void check_list(const counts* self, const gpst_item* item) {
    const gpst_set* const list = &item->sets[LIST];
    const uint32_t n = n_of(item->index), n_channels = self->desc.map == GPST_MAP_ROI ? 4 : 6;
    if (list->on_device) { /* as it is, nobody has counted */
        kit_check(self->owner, self->apart && list->n == 1 && list->pictures[0].width == MOST);
        return;
    }
    kit_check(self->owner, list->n == (n > 0 ? 1 : 0));
    if (list->n == 0)
        return;
    kit_check(self->owner, list->pictures[0].width == n && list->pictures[0].height == 1);
    kit_check(self->owner, (size_t)list->pictures[0].pitch_bytes == n * n_channels * sizeof(float));
    for (uint32_t i = 0; i < n; i++) {
        float e[6];
        entry_of(self->desc.map, item->index, i, e);
        kit_check(self->owner, memcmp((const float*)list->pictures[0].data + i * n_channels, e,
                                      n_channels * sizeof *e) == 0);
    }
}

/* All of them where nobody counted again: the last are 0. */
static void check_pictures(const counts* self, const gpst_set* set, uint32_t n, uint32_t n_there,
                           const gpst_image* wanted) {
    static const uint8_t zeros[MOST_BYTES];
    kit_check(self->owner, set->n == n_there);
    for (uint32_t i = 0; i < n_there && set->n == n_there; i++) {
        size_t bytes = 0;
        kit_check(self->owner, gpst_image_bytes(&set->pictures[i], &bytes) == GPST_OK && bytes <= MOST_BYTES);
        kit_check(self->owner, memcmp(set->pictures[i].data, i < n ? wanted[i].data : zeros, bytes) == 0);
    }
}

static void check_masks(const counts* self, const gpst_item* item, const gpst_image* crops) {
    const uint32_t n = n_of(item->index);
    kit_check(self->owner, item->sets[ABOVE].n == n && item->sets[SMALL].n == 2 * n);
    for (uint32_t i = 0; i < n && item->sets[ABOVE].n == n && item->sets[SMALL].n == 2 * n; i++) {
        uint8_t room[3][SIDE * SIDE];
        gpst_image above = item->sets[ABOVE].pictures[i], small[2];
        above.data = room[0];
        small[0] = item->sets[SMALL].pictures[2 * i], small[1] = item->sets[SMALL].pictures[2 * i + 1];
        small[0].data = room[1], small[1].data = room[2];
        kit_check(self->owner, gpst_mask_run(&self->threshold, &crops[i], NULL, &above, 1) == GPST_OK);
        kit_check(self->owner, gpst_warp_run(self->small, &crops[i], small, 2, 1) == GPST_OK);
        kit_check(self->owner, memcmp(item->sets[ABOVE].pictures[i].data, room[0],
                                      (size_t)above.width * above.height) == 0);
        for (uint32_t k = 0; k < 2; k++)
            kit_check(self->owner, memcmp(item->sets[SMALL].pictures[2 * i + k].data, room[1 + k],
                                          (size_t)small[k].width * small[k].height) == 0);
    }
}

static gpst_result counts_sink(void* user_data, const gpst_item* item) {
    static uint8_t room[MOST][MOST_BYTES];
    counts* const self = (counts*)user_data;
    gpst_image crops[MOST];
    const uint32_t n = n_of(item->index), n_there = item->sets[SEEN].n;
    self->n_ended++;
    kit_check(self->owner, item->result == GPST_OK);
    if (item->result != GPST_OK) {
        printf("    item %u: %s: %s\n", (unsigned)item->index, item->stage, item->reason);
        return GPST_OK;
    }
    memset(crops, 0, sizeof crops);
    crops_of(self, item->index, room, crops);
    check_pictures(self, &item->sets[CROPS], n, n, crops);
    kit_check(self->owner, n_there == MOST || (self->is_exact && n_there == n));
    check_pictures(self, &item->sets[SEEN], n, n_there, crops);
    if (self->has_masks)
        check_masks(self, item, crops);
    if (self->has_list)
        check_list(self, item);
    return GPST_OK;
}

/* ---- the pipelines ----------------------------------------------------------------------------------------------------- */

/* With a bias, so that a 0 is none of the source's. */
static void init(counts* self, gpst_map map, uint32_t variant) {
    memset(self, 0, sizeof *self);
    self->has_masks = variant % 2 == 0;
    self->apart = variant / 2 % 2 == 1;
    self->has_list = variant / 4 % 2 == 1;
    self->is_exact = map == GPST_MAP_AFFINE;
    self->desc.map = map;
    self->desc.list_per_item = true;
    self->desc.n_rois = map == GPST_MAP_ROI ? MOST : 0;
    self->desc.n_affines = map == GPST_MAP_AFFINE ? MOST : 0;
    self->desc.width = SIDE;
    self->desc.height = SIDE - 1;
    self->desc.format = self->has_masks ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    self->desc.dtype = self->has_masks ? GPST_DTYPE_U8 : GPST_DTYPE_F32;
    self->desc.layout = self->has_masks ? GPST_LAYOUT_HWC : GPST_LAYOUT_CHW;
    self->desc.has_scale = true;
    for (int c = 0; c < 4; c++)
        self->desc.scale[c] = 0.5f, self->desc.bias[c] = 70 + (float)c;
    self->threshold.kind = GPST_MASK_THRESHOLD;
    self->threshold.threshold = 120;
}

static void make_warps(counts* self) {
    static const gpst_roi halves[2] = {{0, 0, 6, 11}, {6, 0, 6, 11}};
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_ROI;
    desc.rois = halves;
    desc.n_rois = 2;
    desc.width = 5, desc.height = 7;
    desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&self->desc, &self->warp), GPST_OK);
    assert_int_equal(gpst_warp_create(&desc, &self->small), GPST_OK);
}

static void describe(counts* self, gpst_stage_desc* stages, gpst_pipeline_desc* desc) {
    uint32_t n = 0;
    gpst_stage_host(&stages[n++], 0, GPST_SET(BOXES) | GPST_SET(NUMBER), prepare, self);
    gpst_stage_device(&stages[n++], GPST_SET(BOXES) | GPST_SET(NUMBER), GPST_SET(LIST), detect, self);
    if (self->apart)
        gpst_stage_host(&stages[n++], GPST_SET(BOXES), 0, count_on_host, self);
    gpst_stage_list(&stages[n], FRAME, LIST, CROPS, self->warp);
    stages[n++].name = "by list";
    if (self->has_masks) {
        gpst_stage_mask(&stages[n++], CROPS, ABOVE, &self->threshold);
        gpst_stage_warp(&stages[n++], CROPS, SMALL, self->small);
        desc->results[desc->n_results++] = gpst_result_of(ABOVE, GPST_ON_HOST);
        desc->results[desc->n_results++] = gpst_result_of(SMALL, GPST_ON_HOST);
    }
    gpst_stage_device(&stages[n++], GPST_SET(LIST) | GPST_SET(CROPS), GPST_SET(SEEN), see, self);
    desc->capacity[SEEN] = MOST;
    desc->results[desc->n_results++] = gpst_result_of(CROPS, GPST_ON_HOST);
    desc->results[desc->n_results++] = gpst_result_of(SEEN, GPST_ON_HOST);
    if (self->has_list)
        desc->results[desc->n_results++] = gpst_result_of(LIST, self->apart ? GPST_AS_IT_IS : GPST_ON_HOST);
    desc->stages = stages;
    desc->n_stages = n;
    desc->source = counts_source;
    desc->sink = counts_sink;
    desc->sink_user_data = self;
}

static const gpst_copy_stats* find_copy(const gpst_stats* stats, uint32_t set, bool up) {
    for (uint32_t c = 0; c < stats->n_copies; c++)
        if (stats->copies[c].set == set && stats->copies[c].up == up)
            return &stats->copies[c];
    return NULL;
}

static void run_counts(counts* self, const char* backend, gpst_run_mode mode) {
    gpst_stage_desc stages[8];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stats stats;
    kit* const owner = self->owner = kit_open(backend, 3);
    const bool faults = strstr(backend, "fail") || strstr(backend, "lose");
    self->is_exact = self->is_exact || faults || !kit_has_own_memory(owner); /* where the host sees it at once */
    make_warps(self);
    describe(self, stages, &desc);
    desc.mode = mode;
    assert_int_equal(gpst_pipeline_create(owner->context, &desc, &owner->pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(owner->pipeline);
    gpst_pipeline_query_stats(owner->pipeline, &stats);
    assert_int_equal(gpst_pipeline_destroy(owner->pipeline), GPST_OK);
    owner->pipeline = NULL;
    assert_int_equal(result, GPST_OK);
    assert_int_equal(self->n_ended, N_ITEMS);
    if (kit_has_own_memory(owner) && !faults) { /* no trip to the host for the count */
        const bool comes_down = self->desc.map == GPST_MAP_AFFINE || (self->has_list && !self->apart);
        assert_true((find_copy(&stats, LIST, false) != NULL) == comes_down);
        assert_null(find_copy(&stats, LIST, true));
        assert_null(find_copy(&stats, CROPS, true));
    }
    gpst_warp_destroy(self->warp);
    gpst_warp_destroy(self->small);
    kit_close(owner);
}

static void test_a_list_is_counted_on_the_device(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:mapped=1", "sim:kernel_us=50,jitter_pct=80,seed=5"};
    for (uint32_t b = 0; b < 4; b++)
        for (uint32_t variant = 0; variant < 8; variant++) {
            counts self;
            init(&self, GPST_MAP_ROI, variant);
            run_counts(&self, backends[b], variant == 6 ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE);
            init(&self, GPST_MAP_AFFINE, variant);
            run_counts(&self, backends[b], GPST_RUN_ENGINE);
        }
}

/* What the device does not do is computed on the CPU, the count fetched or found again, too. */
static void test_in_trouble(void** state) {
    (void)state;
    static const char* const backends[] = {"sim:fail_launch=3", "sim:fail_launch=30", "sim:fail_copy=9", "sim:fail_copy=40",
                                           "sim:fail_notify=2", "sim:lose_at=60", "sim:fail_alloc=4"};
    for (uint32_t b = 0; b < 7; b++)
        for (uint32_t variant = 0; variant < 8; variant++) {
            counts self;
            init(&self, variant % 3 == 0 ? GPST_MAP_AFFINE : GPST_MAP_ROI, variant);
            run_counts(&self, backends[b], GPST_RUN_ENGINE);
        }
}

/* ---- pictures, and what HOST stages see of them -------------------------------------------------------------------------- */

enum { IN, N_IN, MADE, TWICE };

static gpst_result make_number(void* user_data, gpst_task* task) {
    const gpst_image word = kit_shape(4, 1);
    const uint32_t number = number_of(task->item->index);
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, N_IN, 0, &word, &image));
    memcpy(image.data, &number, sizeof number);
    return GPST_OK;
}

/* As many pictures as there may be, of which the device says how many count. */
static gpst_result make_pictures(void* user_data, gpst_task* task) {
    gpst_image frame, number, made;
    uint32_t* word = NULL;
    (void)user_data;
    GPSTI_TRY(gpst_task_pictures(task, IN, &frame, 1));
    GPSTI_TRY(gpst_task_pictures(task, N_IN, &number, 1));
    GPSTI_TRY(gpst_task_count(task, MADE, &word));
    GPSTI_TRY(enqueue_copy(task, number.data, word, sizeof *word));
    for (uint32_t i = 0; i < MOST; i++) {
        GPSTI_TRY(gpst_task_set_picture(task, MADE, i, &frame, &made));
        GPSTI_TRY(enqueue_copy(task, frame.data, made.data, WIDTH * HEIGHT));
    }
    return GPST_OK;
}

static gpst_result double_each(void* user_data, gpst_task* task) {
    const gpst_image* const from = &task->item->sets[MADE].pictures[task->picture_index];
    gpst_image to;
    kit_check((kit*)user_data, task->item->sets[MADE].n == n_of(task->item->index));
    GPSTI_TRY(gpst_task_set_picture(task, TWICE, task->picture_index, from, &to));
    for (uint32_t i = 0; i < WIDTH * HEIGHT; i++)
        ((uint8_t*)to.data)[i] = (uint8_t)(((const uint8_t*)from->data)[i] * 2);
    return GPST_OK;
}

static gpst_result pictures_sink(void* user_data, const gpst_item* item) {
    static uint8_t pixels[WIDTH * HEIGHT];
    kit* const self = (kit*)user_data;
    const gpst_set* const twice = &item->sets[TWICE];
    kit_check(self, item->result == GPST_OK && twice->n == n_of(item->index));
    fill_frame(item->index, pixels);
    for (uint32_t i = 0; i < twice->n; i++)
        for (uint32_t k = 0; k < WIDTH * HEIGHT; k++)
            kit_check(self, ((const uint8_t*)twice->pictures[i].data)[k] == (uint8_t)(pixels[k] * 2));
    return GPST_OK;
}

static void run_pictures(const char* backend, gpst_stage_func device, gpst_sink_func sink, gpst_result wanted) {
    kit* const owner = kit_open(backend, 3);
    gpst_stage_desc stages[3];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_host(&stages[0], 0, GPST_SET(N_IN), make_number, owner);
    gpst_stage_device(&stages[1], GPST_SET(IN) | GPST_SET(N_IN), GPST_SET(MADE), device, owner);
    gpst_stage_host(&stages[2], GPST_SET(MADE), GPST_SET(TWICE), double_each, owner);
    stages[2].per_picture = true;
    desc.capacity[MADE] = device == make_pictures ? MOST : 1;
    desc.stages = stages;
    desc.n_stages = 3;
    desc.source = counts_source;
    desc.sink = sink;
    desc.sink_user_data = owner;
    desc.mode = GPST_RUN_ENGINE;
    assert_int_equal(gpst_pipeline_create(owner->context, &desc, &owner->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(owner->pipeline), wanted);
    assert_int_equal(gpst_pipeline_destroy(owner->pipeline), GPST_OK);
    owner->pipeline = NULL;
    kit_close(owner);
}

static void test_pictures_are_counted_on_the_device(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:fail_launch=5", "sim:fail_notify=3"};
    for (uint32_t b = 0; b < 4; b++)
        run_pictures(backends[b], make_pictures, pictures_sink, GPST_OK);
}

/* A picture of two rows is no list. */
static gpst_result make_no_list(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(8, 2);
    gpst_image made;
    uint32_t* word = NULL;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, MADE, 0, &shape, &made));
    return gpst_task_count(task, MADE, &word);
}

static gpst_result no_list_sink(void* user_data, const gpst_item* item) {
    kit_check((kit*)user_data, item->result == GPST_ERROR_ARGUMENT);
    kit_check((kit*)user_data, strstr(item->reason, "gpst_task_count: set=2: desc.capacity[2] is 1") != NULL);
    return GPST_OK;
}

static void test_only_a_list_has_columns(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim"};
    for (uint32_t b = 0; b < 2; b++)
        run_pictures(backends[b], make_no_list, no_list_sink, GPST_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_list_is_counted_on_the_device),
        cmocka_unit_test(test_in_trouble),
        cmocka_unit_test(test_pictures_are_counted_on_the_device),
        cmocka_unit_test(test_only_a_list_has_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
