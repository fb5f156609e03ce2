/* tests/fuzz/pipeline_plan.h -- a random pipeline as plain data: its stages and sets, its items, how it is fed, who
   takes its results, and what may come of an item. Draws only; pipeline_model.h computes, fuzz_pipeline.c runs. */
#ifndef GPST_FUZZ_PIPELINE_PLAN_H
#define GPST_FUZZ_PIPELINE_PLAN_H

#include "seeds.h"

enum {
    MOST_STAGES = 12,
    MOST_SETS = 12,
    MOST_PICTURES = 12,
    MOST_ITEMS = 48,
    MOST_CAMERAS = 3,
    MOST_BYTES = 20000, /* of a picture */
    MOST_LIST = 4,      /* entries of a list */
    MOST_ENDS = 2,      /* stages with an end */
    MOST_HANDED = 3,    /* items that an end hands out for a camera */
    N_CLASSES = 5
};

/* ---- stages and sets --------------------------------------------------------------------------------------------- */

typedef enum stage_kind {
    MAKE,   /* HOST: up to 3 pictures of all that it reads */
    EACH,   /* HOST, per_picture */
    LIST,   /* HOST: a list for CROP */
    KERNEL, /* DEVICE */
    COUNT,  /* DEVICE: the list again, with a count that only the device knows */
    WARP,
    CROP, /* WARP by a list of the item's */
    MASK,
    N_KINDS
} stage_kind;

static const char* const kind_names[N_KINDS] = {"MAKE", "EACH", "LIST", "KERNEL", "COUNT", "WARP", "CROP", "MASK"};

/* What may be done with the pictures of a set: BYTES are for MAKE, EACH and KERNEL alone. */
typedef enum set_content { GRAY, RGB, BYTES, ENTRIES } set_content;

typedef struct set_plan {
    set_content content;
    uint32_t capacity;
    bool is_counted; /* how many pictures there are only the device may know */
    bool has_one;    /* one picture for every item */
    bool is_fixed;   /* and always of the same shape */
} set_plan;

typedef struct plan plan;

typedef struct stage_plan {
    plan* owner;
    stage_kind kind;
    char name[16];
    uint32_t from, also, to; /* sets; also = from where there is no second one */
    uint32_t salt;
    uint32_t fail_every, skip_every;  /* 0 = never */
    uint32_t batch_most, batch_fails; /* of every so many batches one fails as a whole */
    uint32_t queue_most, concurrency;
    gpst_full_policy policy;
    bool is_ordered, is_stateful, is_capturable;
    bool is_full; /* LIST: every entry is there, since COUNT says how many count */
    gpst_map map; /* WARP, CROP */
    gpst_warp_desc warp_desc;
    gpst_warp* warp;
    gpst_mask_desc mask;
    atomic_uint n_batches;
    atomic_uint n_inside;
    atomic_uint is_inside[MOST_CAMERAS]; /* ordered: nobody else is */
    atomic_int last[MOST_CAMERAS];       /* the number of the item that an ordered stage had last */
    uint32_t first_handed;               /* the number of the first item that its end may hand out; 0 = it has none */
    uint32_t n_asked[MOST_CAMERAS];      /* calls of its end, */
    bool is_through[MOST_CAMERAS];       /* of which the last one was */
} stage_plan;

/* ---- items ------------------------------------------------------------------------------------------------------- */

typedef struct picture_sum {
    uint32_t width, height;
    uint64_t hash;
} picture_sum;

/* What the model says of an item. */
typedef struct outcome {
    gpst_result result; /* OK, SKIPPED, or any error */
    const char* stage;  /* that failed or skipped */
    uint32_t n[MOST_SETS];
    picture_sum sums[MOST_SETS][MOST_PICTURES];
    uint64_t files[MOST_PICTURES]; /* hashes of what is written */
} outcome;

typedef struct item_plan {
    plan* owner;
    uint32_t number, camera;
    int32_t priority;
    bool fails_early; /* the source fails for it, or its file is missing or damaged */
    const stage_plan* handed_by; /* by its end; NULL: an input */
    char path[100];
    uint8_t pixels[MOST_BYTES];
    gpst_memory* memory; /* of a frame on the device */
    gpst_image frame;
    outcome wanted;
    atomic_uint n_heard, n_released;
    bool is_accepted;   /* the source gave it, or submit took or dropped it */
    bool may_run_short; /* the source had no memory for it once */
    gpst_result heard, alone; /* alone: where nobody else is */
    char reason[200];
} item_plan;

/* ---- the pipeline ------------------------------------------------------------------------------------------------ */

typedef enum input_kind { COPIED, LENT, ON_DEVICE, FILES, NONE, N_INPUTS } input_kind;
typedef enum feeding { PULLED, PULLED_ALONE, PUSHED_TO_SINK, ONE_THREAD, TWO_THREADS, N_WAYS } feeding;
typedef enum plan_ending { ALL, CANCELLED, STOPPED, DESTROYED, N_ENDINGS } plan_ending;

static const char* const input_names[N_INPUTS] = {"copied", "lent", "on the device", "files", "none"};
static const char* const way_names[N_WAYS] = {"pulled", "pulled, nobody listens", "pushed to a sink", "one thread",
                                              "two threads"};
static const char* const ending_names[N_ENDINGS] = {"all", "cancelled", "stopped", "destroyed"};

struct plan {
    struct fuzz_world* world;
    draw from; /* for the thread that runs it */
    uint32_t n_stages, n_sets, n_items, n_cameras;
    stage_plan stages[MOST_STAGES];
    set_plan sets[MOST_SETS];
    gpst_pipeline_desc desc;      /* without stages */
    uint8_t is_result[MOST_SETS]; /* 1 + place */
    input_kind input;
    bool is_one_shape; /* of all frames */
    gpst_file_kind file_kind;
    feeding way;
    plan_ending ending;
    uint32_t end_after; /* so many items were heard of */
    bool writes;        /* ENCODE and WRITE */
    uint32_t encoded;   /* the set */
    gpst_encode_desc encode;
    const gpst_item* kept[8]; /* n_held at most, by the sink */
    uint32_t n_kept;
    uint32_t n_held, fail_early_every, would_block_every, stream_every;
    bool with_priorities, submits_forever;
    bool may_drop, has_time; /* has_time: a mean of masks */
    item_plan items[MOST_ITEMS + MOST_CAMERAS + MOST_ENDS * MOST_HANDED * MOST_CAMERAS];
    uint32_t n_all, n_ended, n_since_cancel; /* n_all: inputs, and what ends may hand out; calls of ends since */
    item_plan* ended[MOST_ENDS * MOST_HANDED * MOST_CAMERAS]; /* by index, from first_end on */
    atomic_ullong first_end;
    atomic_uint n_in_end;
    atomic_bool is_cancelled;
    char folder[64];
    gpst_pipeline* pipeline;
    gpst_stream* stream;
    uint8_t scratch[MOST_BYTES];
    uint32_t next, n_submitted;         /* the next input; submit returned OK */
    uint32_t next_number[MOST_CAMERAS]; /* of results in order: the next one's at least */
    atomic_uint n_heard, n_taken, n_in_sink, n_in_source;
    atomic_bool is_over;
};

/* What pipelines share. */
typedef struct fuzz_world {
    const char* backend;
    char backend_text[100];
    bool has_faults, is_calm, is_host_short, is_device_short;
    gpst_context_desc desc;
    gpst_context* context;
    uint32_t n_plans;
    plan plans[2];
} fuzz_world;

/* ---- shapes ------------------------------------------------------------------------------------------------------ */

static gpst_image shape_of(uint32_t width, uint32_t height, set_content content) {
    gpst_image shape = GPST_ZERO;
    shape.width = width;
    shape.height = height;
    shape.format = content == RGB ? GPST_FORMAT_RGB : GPST_FORMAT_GRAY;
    return shape;
}

static gpst_image frame_shape(const plan* self, uint32_t number) {
    const uint32_t n = self->is_one_shape ? 3 : number;
    return shape_of(8 + n * 7 % 23, 5 + n * 5 % 17, self->sets[0].content);
}

/* What MAKE makes for an item, of which LIST says how long it is. */
static uint32_t n_made(const stage_plan* stage, uint32_t number) {
    return stage->to == 0 ? 1 + (number + stage->salt) % 3 : (number + stage->salt) % 4; /* set 0 is never empty */
}

static gpst_image made_shape(const stage_plan* stage, uint32_t number, uint32_t i) {
    return shape_of(7 + (number + stage->salt + i) % 19, 5 + (stage->salt + i) % 11,
                    stage->owner->sets[stage->to].content);
}

static uint32_t n_entries(const stage_plan* stage, uint32_t number) {
    return stage->is_full ? MOST_LIST : (number + stage->salt) % (MOST_LIST + 1);
}

/* More than there are means all. */
static uint32_t n_counted(const stage_plan* stage, uint32_t number) { return (number + stage->salt) % (MOST_LIST + 2); }

static uint32_t entry_floats(gpst_map map) { return map == GPST_MAP_ROI ? 4 : map == GPST_MAP_AFFINE ? 6 : 5; }

static void entry_of(const stage_plan* stage, uint32_t number, uint32_t i, float* out) {
    const float a = (float)((number + stage->salt) % 5), b = (float)i;
    const float roi[4] = {a + 2 * b - 1, b, 4 + b, 3.5f + a}, affine[6] = {1 + b / 8, 0, a, 0, 1 - a / 16, b};
    const float view[5] = {30 * a - 7 * b, 10 * b, a, 60 + b, 0};
    const float* const all[3] = {roi, affine, view};
    memcpy(out,
           all[stage->map == GPST_MAP_ROI      ? 0
               : stage->map == GPST_MAP_AFFINE ? 1
                                               : 2],
           entry_floats(stage->map) * sizeof *out);
}

static gpst_image list_shape(gpst_map map, uint32_t n) {
    gpst_image shape = GPST_ZERO;
    shape.width = n;
    shape.height = 1;
    shape.format = GPST_FORMAT_TENSOR;
    shape.n_channels = entry_floats(map);
    shape.dtype = GPST_DTYPE_F32;
    shape.layout = GPST_LAYOUT_HWC;
    return shape;
}

static bool fails_at(const stage_plan* stage, uint32_t number) {
    return stage->fail_every > 0 && (number + stage->salt) % stage->fail_every == 0;
}
static bool skips_at(const stage_plan* stage, uint32_t number) {
    return stage->skip_every > 0 && (number + stage->salt) % stage->skip_every == 1;
}
static uint32_t n_handed(const stage_plan* stage, uint32_t camera) {
    return (stage->salt + camera) % (MOST_HANDED + 1);
}

/* ---- drawing: stages --------------------------------------------------------------------------------------------- */

/* A set that fits, or MOST_SETS. */
static uint32_t pick_set(plan* self, draw* from, bool for_pictures, bool counted_too, uint32_t most_pictures) {
    const uint32_t first = pick(from, self->n_sets);
    for (uint32_t i = 0; i < self->n_sets; i++) {
        const uint32_t k = (first + i) % self->n_sets;
        const set_plan* const set = &self->sets[k];
        if (set->content != ENTRIES && (!for_pictures || set->content != BYTES) && (counted_too || !set->is_counted) &&
            set->capacity <= most_pictures)
            return k;
    }
    return MOST_SETS;
}

static stage_plan* add_stage(plan* self, stage_kind kind, uint32_t from, draw* random) {
    stage_plan* const stage = &self->stages[self->n_stages];
    stage->owner = self;
    stage->kind = kind;
    stage->from = stage->also = from;
    stage->to = self->n_sets++;
    stage->salt = pick(random, 250);
    self->sets[stage->to] = self->sets[from];
    snprintf(stage->name, sizeof stage->name, "stage%u", self->n_stages++);
    return stage;
}

static void draw_outputs(stage_plan* stage, gpst_warp_desc* desc, uint32_t n, draw* from) {
    static const gpst_roi rois[3] = {{1, 1, 5, 3}, {2.5f, 0, 4, 4.5f}, {-2, 1, 9, 2}};
    static const gpst_view views[3] = {{0, 0, 0, 90, 0}, {100, -20, 5, 70, 50}, {-60, 80, 0, 40, 0}};
    static const gpst_affine affines[3] = {{{1, 0.25, 0, -0.25, 1, 2}}, {{2, 0, -3, 0, 2, 1}}, {{0.5, 0, 1, 0, 1, 0}}};
    set_plan* const to = &stage->owner->sets[stage->to];
    desc->map = stage->map;
    desc->rois = stage->map == GPST_MAP_ROI ? rois : NULL, desc->n_rois = stage->map == GPST_MAP_ROI ? n : 0;
    desc->views = stage->map == GPST_MAP_EQUIRECT ? views : NULL;
    desc->n_views = stage->map == GPST_MAP_EQUIRECT ? n : 0;
    desc->affines = stage->map == GPST_MAP_AFFINE ? affines : NULL;
    desc->n_affines = stage->map == GPST_MAP_AFFINE ? n : 0;
    desc->fit = stage->map == GPST_MAP_RESIZE && one_in(from, 3) ? GPST_FIT_LETTERBOX : GPST_FIT_STRETCH;
    desc->width = 6 + pick(from, 20);
    desc->height = 5 + pick(from, 20);
    desc->format = to->content == RGB || one_in(from, 4) ? GPST_FORMAT_RGB : GPST_FORMAT_GRAY;
    to->content = desc->format == GPST_FORMAT_RGB ? RGB : GRAY;
    if (one_in(from, 3)) { /* a tensor */
        desc->dtype = GPST_DTYPE_F32;
        desc->layout = one_in(from, 2) ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
        desc->has_scale = true;
        for (int c = 0; c < 4; c++)
            desc->scale[c] = 1.0f / 255, desc->bias[c] = -0.5f;
        to->content = BYTES;
    }
}

static void make_warp(stage_plan* stage) { REQUIRE(gpst_warp_create(&stage->warp_desc, &stage->warp) == GPST_OK); }

static void draw_warp(plan* self, draw* from) {
    static const gpst_map maps[4] = {GPST_MAP_RESIZE, GPST_MAP_ROI, GPST_MAP_EQUIRECT, GPST_MAP_AFFINE};
    const uint32_t source = pick_set(self, from, true, true, MOST_PICTURES);
    if (source == MOST_SETS)
        return;
    stage_plan* const stage = add_stage(self, WARP, source, from);
    set_plan* const to = &self->sets[stage->to];
    stage->map = maps[pick(from, 4)];
    const uint32_t most = MOST_PICTURES / to->capacity < 3 ? MOST_PICTURES / to->capacity : 3;
    const uint32_t n = stage->map == GPST_MAP_RESIZE ? 1 : 1 + pick(from, most);
    to->capacity *= n;
    draw_outputs(stage, &stage->warp_desc, n, from);
    to->has_one = to->has_one && n == 1;
    to->is_fixed = to->has_one;
    make_warp(stage);
}

/* LIST, COUNT for half of them, CROP. */
static void draw_crop(plan* self, draw* from) {
    static const gpst_map maps[3] = {GPST_MAP_ROI, GPST_MAP_AFFINE, GPST_MAP_EQUIRECT};
    const uint32_t source = pick_set(self, from, true, false, 1);
    if (source == MOST_SETS || self->n_sets + 3 > MOST_SETS)
        return;
    const gpst_map map = maps[pick(from, 3)];
    stage_plan* stage = add_stage(self, LIST, source, from);
    uint32_t list = stage->to;
    stage->map = map;
    self->sets[list].content = ENTRIES;
    if (one_in(from, 2)) {
        stage->is_full = true;
        stage = add_stage(self, COUNT, list, from);
        stage->map = map;
        self->sets[list].capacity = 1;
        list = stage->to;
        self->sets[list].is_counted = true;
    }
    stage = add_stage(self, CROP, source, from);
    stage->also = list;
    stage->map = map;
    draw_outputs(stage, &stage->warp_desc, MOST_LIST, from);
    stage->warp_desc.rois = NULL, stage->warp_desc.views = NULL, stage->warp_desc.affines = NULL;
    stage->warp_desc.list_per_item = true;
    self->sets[stage->to].capacity = MOST_LIST;
    self->sets[stage->to].is_counted = self->sets[list].is_counted;
    self->sets[stage->to].has_one = self->sets[stage->to].is_fixed = false;
    make_warp(stage);
}

static void draw_mask(plan* self, draw* from, bool is_calm) {
    static const gpst_mask_kind kinds[8] = {GPST_MASK_THRESHOLD, GPST_MASK_MORPH, GPST_MASK_SMOOTH,
                                            GPST_MASK_PACK,      GPST_MASK_BOX,   GPST_MASK_LABEL_BOXES,
                                            GPST_MASK_REFINE,    GPST_MASK_TIME};
    const uint32_t source = pick_set(self, from, true, true, MOST_PICTURES);
    if (source == MOST_SETS || self->sets[source].content != GRAY)
        return;
    stage_plan* const stage = add_stage(self, MASK, source, from);
    set_plan* const to = &self->sets[stage->to];
    const bool is_time = is_calm && to->is_fixed && one_in(from, 2);
    stage->mask.kind = kinds[is_time ? 7 : pick(from, 7)];
    stage->mask.threshold = (float)pick(from, 250);
    stage->mask.morph = one_in(from, 2) ? GPST_MORPH_OPEN : GPST_MORPH_DILATE;
    stage->mask.smooth = GPST_SMOOTH_GAUSSIAN;
    stage->mask.size = one_in(from, 2) ? 3 : 5;
    stage->mask.change = is_time ? 1 : 0; /* means, whatever comes */
    stage->mask.cut = is_time ? 2 : 0;
    self->has_time = self->has_time || is_time;
    stage->mask.n_classes = stage->mask.kind == GPST_MASK_LABEL_BOXES ? N_CLASSES : 0;
    if (stage->mask.kind != GPST_MASK_MORPH)
        stage->mask.morph = (gpst_morph)0;
    if (stage->mask.kind != GPST_MASK_SMOOTH)
        stage->mask.smooth = (gpst_smooth)0;
    if (stage->mask.kind != GPST_MASK_MORPH && stage->mask.kind != GPST_MASK_SMOOTH)
        stage->mask.size = 0;
    if (stage->mask.kind == GPST_MASK_PACK || stage->mask.kind == GPST_MASK_BOX ||
        stage->mask.kind == GPST_MASK_LABEL_BOXES)
        to->content = BYTES;
}

/* MAKE, EACH, KERNEL. */
static void draw_own(plan* self, stage_kind kind, draw* from) {
    const uint32_t source = pick_set(self, from, false, kind != KERNEL, MOST_PICTURES);
    if (source == MOST_SETS)
        return;
    stage_plan* const stage = add_stage(self, kind, source, from);
    set_plan* const to = &self->sets[stage->to];
    if (kind == MAKE) {
        const uint32_t also = pick_set(self, from, false, true, MOST_PICTURES);
        stage->also = also < stage->to ? also : source;
        to->content = one_in(from, 3) ? RGB : GRAY;
        to->capacity = 4;
        to->is_counted = to->has_one = to->is_fixed = false;
    }
    if (kind == EACH)
        to->is_counted = false;
}

/* What makes set 0 where the input has no picture. */
static void draw_first(plan* self, draw* from) {
    stage_plan* const stage = &self->stages[self->n_stages++];
    stage->owner = self;
    stage->kind = MAKE;
    stage->salt = pick(from, 250);
    stage->from = stage->also = MOST_SETS;
    stage->to = 0;
    snprintf(stage->name, sizeof stage->name, "first");
    self->sets[0].capacity = 4;
}

static void draw_stages(plan* self, draw* from, bool is_calm) {
    const uint32_t n_wanted = 1 + pick(from, 8);
    self->n_sets = 1;
    self->sets[0].capacity = 1;
    self->sets[0].has_one = self->input != NONE;
    self->is_one_shape = one_in(from, 2);
    self->sets[0].is_fixed = self->is_one_shape && self->sets[0].has_one;
    self->sets[0].content = one_in(from, 3) ? RGB : GRAY;
    if (self->input == NONE)
        draw_first(self, from);
    for (uint32_t tries = 0; tries < 20 && self->n_stages < n_wanted && self->n_sets + 1 < MOST_SETS; tries++) {
        const uint32_t choice = pick(from, 10);
        if (choice < 4)
            draw_own(self, choice < 2 ? MAKE : choice == 2 ? EACH : KERNEL, from);
        else if (choice < 5)
            draw_own(self, KERNEL, from);
        else if (choice < 7)
            draw_warp(self, from);
        else if (choice < 8)
            draw_crop(self, from);
        else
            draw_mask(self, from, is_calm);
    }
    if (self->n_stages == 0)
        draw_own(self, KERNEL, from);
}

/* ---- drawing: how stages are served ------------------------------------------------------------------------------ */

static void draw_service(stage_plan* stage, draw* from, bool is_calm) {
    const bool has_func = stage->kind == MAKE || stage->kind == KERNEL;
    if (stage->kind != EACH && stage->kind != LIST && stage->kind != COUNT && one_in(from, 3))
        stage->batch_most = 2 + pick(from, 7);
    if (stage->batch_most > 0 && has_func && one_in(from, 3))
        stage->batch_fails = 2 + pick(from, 4);
    if (stage->kind == MAKE && one_in(from, 3))
        stage->concurrency = 1 + pick(from, 2);
    stage->is_ordered = stage->kind == MAKE && one_in(from, 4);
    stage->is_stateful = has_func && one_in(from, 5);
    stage->is_capturable = stage->kind == KERNEL && one_in(from, 2);
    if (is_calm)
        return;
    if ((has_func || stage->kind == EACH) && one_in(from, 5))
        stage->fail_every = 2 + pick(from, 6);
    if (stage->kind == MAKE && one_in(from, 8))
        stage->skip_every = 2 + pick(from, 6);
    if (stage->kind != EACH && one_in(from, 6)) {
        stage->policy = (gpst_full_policy)pick(from, 4);
        stage->queue_most = 1 + (stage->policy != GPST_FULL_LATEST_ONLY ? pick(from, 4) : 0);
        stage->owner->may_drop = stage->owner->may_drop || stage->policy != GPST_FULL_BLOCK;
    }
}

/* ---- drawing: the rest ------------------------------------------------------------------------------------------- */

static void draw_desc(plan* self, draw* from) {
    const fuzz_world* const world = self->world;
    gpst_pipeline_desc* const desc = &self->desc;
    const bool pulls = self->way == PULLED || self->way == PULLED_ALONE;
    bool has_batch = false;
    for (uint32_t s = 0; s < self->n_stages; s++)
        has_batch = has_batch || self->stages[s].batch_most > 1;
    desc->mode = pulls ? (gpst_run_mode)pick(from, 4) : GPST_RUN_ENGINE;
    desc->as_ready = one_in(from, 3);
    desc->tune = (gpst_tune)pick(from, 3);
    desc->preset = (gpst_preset)pick(from, 4);
    desc->n_slots = one_in(from, 2) ? 1 + pick(from, 10) : 0;
    desc->n_reads = pick(from, 3);
    desc->n_writes = pick(from, 3);
    desc->batch = one_in(from, 3) ? 1 + pick(from, 6) : 0;
    desc->graphs = (gpst_graph_use)pick(from, 3);
    desc->fsync = GPST_FSYNC_NONE;
    desc->n_items_expected = one_in(from, 3) ? 1 + pick(from, MOST_ITEMS) : 0;
    if (!pulls && !world->is_calm && one_in(from, 3))
        desc->full_policy = (gpst_full_policy)pick(from, 4);
    if (!pulls && !world->is_calm && has_batch && one_in(from, 3))
        desc->deadline_ns = (int64_t)20000 << pick(from, 14);
    self->may_drop = self->may_drop || desc->deadline_ns > 0 || desc->full_policy != GPST_FULL_BLOCK;
    for (uint32_t k = 0; k < self->n_sets; k++) {
        const bool is_last = k + 1 == self->n_sets && desc->n_results == 0;
        if (self->sets[k].content == ENTRIES || (!is_last && one_in(from, 2)))
            continue;
        const gpst_place place = (gpst_place)pick(from, 3);
        desc->results[desc->n_results++] = gpst_result_of(k, place);
        self->is_result[k] = (uint8_t)(1 + (uint32_t)place);
    }
    for (uint32_t s = 0; s < self->n_stages; s++) {
        const stage_plan* const stage = &self->stages[s];
        if (stage->kind != WARP && stage->kind != CROP && stage->kind != MASK)
            desc->capacity[stage->to] = self->sets[stage->to].capacity;
    }
}

/* A file of each picture of a set behind the stages. */
static void draw_files(plan* self, draw* from, bool has_jpeg) {
    static const gpst_file_kind kinds[3] = {GPST_FILE_PNM, GPST_FILE_NPY, GPST_FILE_JPEG};
    self->file_kind = kinds[pick(from, has_jpeg ? 3 : 2)];
    self->encoded = pick_set(self, from, true, false, 4);
    self->writes = self->encoded < MOST_SETS && self->n_stages + 2 < MOST_STAGES && one_in(from, 4);
    self->encode.kind = kinds[pick(from, has_jpeg ? 3 : 2)];
}

static void draw_items(plan* self, draw* from) {
    self->n_items = self->n_all = 1 + pick(from, MOST_ITEMS);
    self->n_cameras = one_in(from, 2) ? 1 : 1 + pick(from, MOST_CAMERAS);
    for (uint32_t n = 0; n < self->n_items; n++) {
        item_plan* const item = &self->items[n];
        item->owner = self;
        item->number = n;
        item->camera = n % self->n_cameras;
        item->priority = self->with_priorities ? (int32_t)pick(from, 3) - 1 : 0;
        item->fails_early = self->fail_early_every > 0 && n % self->fail_early_every == 0;
    }
}

/* What an end hands out has only what is made from there on: fails where a device stage needs set 0, or is a function
   that has nothing to write for its one picture. */
static bool may_end(const plan* self, uint32_t s) {
    bool may = self->stages[s].kind == MAKE;
    for (uint32_t i = s + 1; may && i < self->n_stages; i++) {
        const stage_plan* const later = &self->stages[i];
        const bool reads_0 = self->stages[s].to > 0 && (later->from == 0 || later->also == 0);
        may = later->kind == MAKE || later->kind == EACH || later->kind == LIST ||
              (!reads_0 && (later->kind != KERNEL || self->sets[later->from].capacity > 1));
    }
    return may;
}

/* The numbers behind the inputs' go on, camera by camera, for each end as many as it may hand out. */
static void draw_ends(plan* self, draw* from) {
    uint32_t n = 0, next = (self->n_items + self->n_cameras - 1) / self->n_cameras * self->n_cameras;
    atomic_store(&self->first_end, UINT64_MAX);
    for (uint32_t s = 0; s < self->n_stages && n < MOST_ENDS; s++) {
        stage_plan* const stage = &self->stages[s];
        if (!may_end(self, s) || !one_in(from, 2))
            continue;
        n++;
        stage->first_handed = next;
        for (uint32_t i = 0; i < MOST_HANDED * self->n_cameras; i++, next++) {
            item_plan* const item = &self->items[next];
            item->owner = self;
            item->number = next;
            item->camera = next % self->n_cameras;
            item->handed_by = i / self->n_cameras < n_handed(stage, item->camera) ? stage : NULL;
        }
        self->n_all = next;
    }
}

static void draw_plan(plan* self, fuzz_world* world, draw* from, bool has_jpeg) {
    const bool is_calm = world->is_calm;
    self->world = world;
    self->input = (input_kind)pick(from, N_INPUTS);
    if (self->input == ON_DEVICE && (world->has_faults || world->is_host_short || world->is_device_short))
        self->input = COPIED;
    self->way = (feeding)pick(from, N_WAYS);
    draw_stages(self, from, is_calm);
    for (uint32_t s = 0; s < self->n_stages; s++)
        draw_service(&self->stages[s], from, is_calm);
    draw_files(self, from, has_jpeg);
    draw_desc(self, from);
    self->ending = is_calm || one_in(from, 2) ? ALL : (plan_ending)pick(from, N_ENDINGS);
    self->end_after = pick(from, 20);
    self->n_held = one_in(from, 2) ? pick(from, 8) : 0;
    self->stream_every = one_in(from, 4) ? 1 + pick(from, 3) : 0;
    self->fail_early_every = !is_calm && one_in(from, 5) ? 2 + pick(from, 6) : 0;
    self->would_block_every = one_in(from, 4) ? 2 + pick(from, 6) : 0;
    self->with_priorities = one_in(from, 3);
    self->submits_forever = one_in(from, 2);
    if (self->way == TWO_THREADS && self->ending == DESTROYED)
        self->submits_forever = false; /* nobody takes any more */
    if (self->way == ONE_THREAD && self->n_held > 0)
        self->submits_forever = false; /* nobody gives any back meanwhile */
    draw_items(self, from);
    self->from = fork_draw(from);
}

static void draw_world(fuzz_world* self, draw* from, const char* backend, bool has_jpeg) {
    static const char* const faults[] = {"fail_launch=3", "fail_copy=4",  "fail_notify=2",
                                         "lose_at=30",    "fail_alloc=2", "lose_at=4",
                                         "fail_event=3",  "fail_graph=2", "fail_stream=2"};
    static const char* const times[] = {"launch_us=0", "kernel_us=100,jitter_pct=80,seed=3", "mapped=1", "virtual=1"};
    const uint32_t time = pick(from, 4), fault = pick(from, 4 * sizeof faults / sizeof *faults);
    const bool is_sim = strcmp(backend, "sim") == 0, only_budgets = seeds.only && strcmp(seeds.only, "budgets") == 0;
    REQUIRE_OF(!seeds.only || only_budgets, "--only %s: unknown", seeds.only);
    self->is_calm = one_in(from, 4) && !only_budgets;
    self->has_faults = is_sim && !self->is_calm && fault < sizeof faults / sizeof *faults && !only_budgets;
    snprintf(self->backend_text, sizeof self->backend_text, "%s%s%s%s%s", backend, is_sim ? ":" : "",
             is_sim ? times[time] : "", self->has_faults ? "," : "", self->has_faults ? faults[fault] : "");
    self->is_host_short = (one_in(from, 4) && !self->is_calm) || only_budgets;
    self->is_device_short = (one_in(from, 4) && !self->is_calm) || only_budgets;
    self->desc.backend = self->backend_text;
    self->desc.n_workers = 1 + pick(from, 4);
    const uint64_t host = (uint64_t)16384 << pick(from, 11);
    const uint64_t device = (uint64_t)16384 << pick(from, 8);
    self->desc.max_host_bytes = self->is_host_short ? host + host * pick(from, 8) / 8 : 0;
    self->desc.max_device_bytes = self->is_device_short ? device + device * pick(from, 8) / 8 : 0;
    self->desc.max_kept_bytes = pick(from, 2);
    self->n_plans = one_in(from, 4) ? 2 : 1;
    for (uint32_t p = 0; p < self->n_plans; p++)
        draw_plan(&self->plans[p], self, from, has_jpeg);
    for (uint32_t p = 0; p < self->n_plans; p++)
        draw_ends(&self->plans[p], from);
}

/* ---- what was drawn, in words ------------------------------------------------------------------------------------ */

static void say_plan(const plan* self) {
    const gpst_pipeline_desc* const desc = &self->desc;
    say("pipeline: input %s%s, %s, end %s after %u; %u items, %u cameras, priorities %d, held %u, fail_early %u\n",
        input_names[self->input], self->is_one_shape ? " of one shape" : "", way_names[self->way],
        ending_names[self->ending], self->end_after, self->n_items, self->n_cameras, self->with_priorities,
        self->n_held, self->fail_early_every);
    say("  mode %d as_ready %d tune %d preset %d slots %u reads %u writes %u batch %u graphs %d policy %d deadline "
        "%lld\n",
        (int)desc->mode, desc->as_ready, (int)desc->tune, (int)desc->preset, desc->n_slots, desc->n_reads,
        desc->n_writes, desc->batch, (int)desc->graphs, (int)desc->full_policy, (long long)desc->deadline_ns);
    for (uint32_t s = 0; s < self->n_stages; s++) {
        const stage_plan* const stage = &self->stages[s];
        say("  %s %s %u,%u -> %u (%u) map %d mask %d salt %u batch %u/%u queue %u policy %d concurrency %u%s%s%s"
            " fail %u skip %u end %u\n",
            stage->name, kind_names[stage->kind], stage->from, stage->also, stage->to, self->sets[stage->to].capacity,
            (int)stage->map, (int)stage->mask.kind, stage->salt, stage->batch_most, stage->batch_fails,
            stage->queue_most, (int)stage->policy, stage->concurrency, stage->is_ordered ? " ordered" : "",
            stage->is_stateful ? " stateful" : "", stage->is_capturable ? " capturable" : "", stage->fail_every,
            stage->skip_every, stage->first_handed);
    }
    for (uint32_t r = 0; r < desc->n_results; r++)
        say("  result %u place %d\n", desc->results[r].set, (int)desc->results[r].place);
    if (self->writes)
        say("  files of set %u, kind %d\n", self->encoded, (int)self->encode.kind);
}

static void say_world(const fuzz_world* self) {
    say("context: %s, %u workers, host %llu, device %llu, kept %llu%s\n", self->backend_text, self->desc.n_workers,
        (unsigned long long)self->desc.max_host_bytes, (unsigned long long)self->desc.max_device_bytes,
        (unsigned long long)self->desc.max_kept_bytes, self->is_calm ? ", calm" : "");
    for (uint32_t p = 0; p < self->n_plans; p++)
        say_plan(&self->plans[p]);
}

#endif
