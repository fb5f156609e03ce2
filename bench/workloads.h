/* bench/workloads.h -- the work that kernels are measured by, the same for bench/kernels.c and for the peer programs:
   what is computed, on pictures of which size, and sets of buffers that do not fit the caches. Times nothing. For C
   and C++; uses the public API only. */
#ifndef GPST_TOOL_WORKLOADS_H
#define GPST_TOOL_WORKLOADS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../gpustage.h"

#define WORKLOAD_MAX_OUTPUTS 8
#define WORKLOAD_MAX_SETS 256
#define WORKLOAD_CLASSES 21 /* of the class scores */

typedef struct workload workload;

/* One picture and what is made of it. */
typedef struct workload_set {
    gpst_image source, outputs[WORKLOAD_MAX_OUTPUTS];
} workload_set;

typedef struct workload_run {
    const workload* work;
    gpst_warp* warp; /* of warps */
    float* table;    /* of the map TABLE */
    uint32_t n_outputs, n_sets, n_threads;
    uint64_t read_bytes, written_bytes, output_pixels; /* of one piece of work; bytes are unique ones */
    workload_set sets[WORKLOAD_MAX_SETS];
} workload_run;

struct workload {
    const char *name, *text;
    /* Fills everything of run but the memory of sets: sets[0] says the shapes. */
    bool (*plan)(workload_run* run);
    /* One piece of work on the turn-th set: as measured.run, with the workload_run. */
    bool (*run)(void* run, uint32_t turn);
    uint32_t width, height; /* of the source; of class scores: of one class */
    gpst_format format;     /* of the source */
    uint32_t to_width, to_height;
};

static inline const workload_set* workload_turn(const workload_run* self, uint32_t turn) {
    return &self->sets[turn % self->n_sets];
}

/* ---- warps --------------------------------------------------------------------------- */
static const double workload_mean[3] = {0.485, 0.456, 0.406}, workload_std[3] = {0.229, 0.224, 0.225};

static inline void workload_describe_tensor(gpst_warp_desc* desc) {
    desc->map = GPST_MAP_RESIZE;
    desc->dtype = GPST_DTYPE_F32;
    desc->layout = GPST_LAYOUT_CHW;
    desc->has_scale = true;
    for (int c = 0; c < 3; c++) {
        desc->scale[c] = (float)(1.0 / (255.0 * workload_std[c]));
        desc->bias[c] = (float)(-workload_mean[c] / workload_std[c]);
    }
}

static inline bool workload_plan_warp(workload_run* self, gpst_warp_desc* desc) {
    gpst_image* const source = &self->sets[0].source;
    desc->width = self->work->to_width;
    desc->height = self->work->to_height;
    desc->format = GPST_FORMAT_RGB;
    if (GPST_FAILED(gpst_warp_create(desc, &self->warp)))
        return false;
    source->width = self->work->width, source->height = self->work->height, source->format = self->work->format;
    self->n_outputs = gpst_warp_n_outputs(self->warp);
    for (uint32_t i = 0; i < self->n_outputs; i++)
        gpst_warp_query_output(self->warp, &self->sets[0].outputs[i]);
    gpst_warp_query_bytes(self->warp, source, &self->read_bytes, &self->written_bytes);
    self->output_pixels = (uint64_t)self->n_outputs * desc->width * desc->height;
    return true;
}

static inline bool workload_plan_views_at(workload_run* self, double pitch, double roll) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_view views[WORKLOAD_MAX_OUTPUTS];
    memset(views, 0, sizeof views);
    for (uint32_t i = 0; i < 8; i++)
        views[i].yaw = 45.0 * i, views[i].pitch = pitch, views[i].roll = roll;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = 8;
    return workload_plan_warp(self, &desc);
}

static inline bool workload_plan_views(workload_run* self) { return workload_plan_views_at(self, 0.0, 0.0); }

static inline bool workload_plan_tilted(workload_run* self) { return workload_plan_views_at(self, 20.0, 5.0); }

/* The tilted views again, one above the other, their positions prepared. */
static inline bool workload_plan_table(workload_run* self) {
    gpst_warp_desc desc = GPST_ZERO;
    workload views = *self->work;
    const workload* const own = self->work;
    const uint32_t width = own->to_width, height = own->to_height;
    const size_t bytes = (size_t)width * height * 2 * sizeof(float);
    views.to_height = height / 8;
    self->table = (float*)malloc(bytes);
    self->work = &views;
    bool ok = self->table && workload_plan_tilted(self);
    self->work = own;
    for (uint32_t i = 0; ok && i < width * height; i++) {
        double x = 0.0, y = 0.0;
        const uint32_t row = i / width;
        ok = gpst_warp_position(self->warp, row / views.to_height, i % width, row % views.to_height, own->width,
                                own->height, &x, &y) == GPST_OK;
        self->table[2 * i] = (float)x, self->table[2 * i + 1] = (float)y;
    }
    gpst_warp_destroy(self->warp);
    self->warp = NULL;
    memset(self->sets[0].outputs, 0, sizeof self->sets[0].outputs);
    desc.map = GPST_MAP_TABLE;
    desc.table = self->table;
    ok = ok && workload_plan_warp(self, &desc);
    self->read_bytes += bytes;
    return ok;
}

static inline bool workload_plan_tensor(workload_run* self) {
    gpst_warp_desc desc = GPST_ZERO;
    workload_describe_tensor(&desc);
    return workload_plan_warp(self, &desc);
}

static inline bool workload_run_warp(void* run, uint32_t turn) {
    workload_run* const self = (workload_run*)run;
    const workload_set* const set = workload_turn(self, turn);
    return gpst_warp_run(self->warp, &set->source, set->outputs, self->n_outputs, self->n_threads) == GPST_OK;
}

/* ---- class scores: an image whose rows are those of one class after the other ------------ */
static inline bool workload_plan_argmax(workload_run* self) {
    gpst_image *const source = &self->sets[0].source, *const output = &self->sets[0].outputs[0];
    source->width = self->work->width, source->height = WORKLOAD_CLASSES * self->work->height;
    output->width = self->work->to_width, output->height = self->work->to_height;
    source->format = output->format = GPST_FORMAT_GRAY;
    source->dtype = GPST_DTYPE_F32;
    self->n_outputs = 1;
    self->output_pixels = self->written_bytes = (uint64_t)output->width * output->height;
    self->read_bytes = (uint64_t)source->width * source->height * sizeof(float);
    return true;
}

static inline bool workload_run_argmax(void* run, uint32_t turn) {
    workload_run* const self = (workload_run*)run;
    const workload_set* const set = workload_turn(self, turn);
    gpst_logits logits = GPST_ZERO;
    gpst_labels labels = GPST_ZERO;
    logits.data = set->source.data, labels.data = set->outputs[0].data;
    logits.n_classes = labels.n_classes = WORKLOAD_CLASSES;
    logits.width = self->work->width, logits.height = self->work->height;
    logits.dtype = GPST_DTYPE_F32;
    logits.layout = GPST_LAYOUT_CHW;
    labels.width = self->work->to_width, labels.height = self->work->to_height;
    return gpst_mask_argmax(&logits, &labels, self->n_threads) == GPST_OK;
}

/* ---- all of them ------------------------------------------------------------------------- */
static const workload workloads[] = {
    {"equirect", "7680x3840 RGB8 to 8 views of 1920x1080 RGB8, bilinear", workload_plan_views, workload_run_warp, 7680,
     3840, GPST_FORMAT_RGB, 1920, 1080},
    {"tilted", "the same at pitch 20 and roll 5", workload_plan_tilted, workload_run_warp, 7680, 3840, GPST_FORMAT_RGB,
     1920, 1080},
    {"table", "the tilted views, one above the other, by a table of positions", workload_plan_table, workload_run_warp,
     7680, 3840, GPST_FORMAT_RGB, 1920, 8 * 1080},
    {"tensor", "1920x1080 BGR8 to 512x512 f32 CHW RGB, mean and std, bilinear", workload_plan_tensor,
     workload_run_warp, 1920, 1080, GPST_FORMAT_BGR, 512, 512},
    {"tensor-nv12", "the same from NV12", workload_plan_tensor, workload_run_warp, 1920, 1080, GPST_FORMAT_NV12, 512,
     512},
    {"argmax", "21x512x512 f32 to labels", workload_plan_argmax, workload_run_argmax, 512, 512, GPST_FORMAT_GRAY, 512,
     512},
    {"upscale-argmax", "21x128x128 f32 to labels of 1920x1080, bilinear", workload_plan_argmax, workload_run_argmax,
     128, 128, GPST_FORMAT_GRAY, 1920, 1080},
};
#define WORKLOAD_COUNT (sizeof workloads / sizeof workloads[0])

static inline const workload* workload_find(const char* name) {
    for (size_t i = 0; i < WORKLOAD_COUNT; i++)
        if (!strcmp(workloads[i].name, name))
            return &workloads[i];
    return NULL;
}

static inline size_t workload_cache_bytes(void) {
    long bytes = 0;
#if defined(_SC_LEVEL3_CACHE_SIZE)
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? (size_t)bytes : (size_t)64 << 20;
}

static inline bool workload_alloc(gpst_image* image, uint64_t* seed) {
    size_t bytes = 0;
    image->pitch_bytes = (int64_t)gpst_image_row_bytes(image);
    if (GPST_FAILED(gpst_image_bytes(image, &bytes)) || !(image->data = malloc(bytes)))
        return false;
    for (size_t i = 0; i < bytes; i += 8) { /* every page is there before the clock runs */
        *seed = *seed * 6364136223846793005u + 1442695040888963407u;
        memcpy((uint8_t*)image->data + i, seed, bytes - i < 8 ? bytes - i : 8);
    }
    if (image->dtype == GPST_DTYPE_F32) /* scores between -8 and 8 */
        for (size_t i = 0; i < bytes / sizeof(float); i++) {
            int32_t bits;
            memcpy(&bits, (uint8_t*)image->data + i * sizeof bits, sizeof bits);
            ((float*)image->data)[i] = (float)bits * 0x1p-28f;
        }
    return true;
}

static inline void workload_close(workload_run* self) {
    for (uint32_t s = 0; s < WORKLOAD_MAX_SETS; s++) {
        free(self->sets[s].source.data);
        for (uint32_t i = 0; i < WORKLOAD_MAX_OUTPUTS; i++)
            free(self->sets[s].outputs[i].data);
    }
    gpst_warp_destroy(self->warp);
    free(self->table);
    memset(self, 0, sizeof *self);
}

/* As many sets as are one and a half times the last cache, two at least: what a turn touches is out of it by its
   next. */
static inline bool workload_open(workload_run* self, const workload* work) {
    uint64_t seed = 1;
    memset(self, 0, sizeof *self);
    self->work = work;
    self->n_threads = 1;
    bool ok = work->plan(self);
    const uint64_t sets = ok ? 1 + 3 * workload_cache_bytes() / 2 / (self->read_bytes + self->written_bytes) : 0;
    self->n_sets = sets < 2 ? 2 : sets > WORKLOAD_MAX_SETS ? WORKLOAD_MAX_SETS : (uint32_t)sets;
    for (uint32_t s = 0; s < self->n_sets; s++) {
        workload_set* const set = &self->sets[s];
        if (s > 0) {
            *set = self->sets[0];
            set->source.data = NULL;
            for (uint32_t i = 0; i < self->n_outputs; i++)
                set->outputs[i].data = NULL;
        }
        ok = ok && workload_alloc(&set->source, &seed);
        for (uint32_t i = 0; ok && i < self->n_outputs; i++)
            ok = workload_alloc(&set->outputs[i], &seed);
    }
    if (!ok)
        workload_close(self);
    return ok;
}

/* ---- memcpy --------------------------------------------------------------------------------
   Reads half of the bytes that the work moves and writes the other half, on as many threads, from as many sets. */
typedef struct workload_copy {
    const workload_run* work;
    size_t bytes; /* of each buffer */
    uint8_t *from, *to;
} workload_copy;

static inline bool workload_copy_open(workload_copy* self, const workload_run* work) {
    self->work = work;
    self->bytes = (size_t)(work->read_bytes + work->written_bytes) / 2;
    self->from = (uint8_t*)malloc(self->bytes * work->n_sets);
    self->to = (uint8_t*)malloc(self->bytes * work->n_sets);
    if (!self->from || !self->to)
        return false;
    memset(self->from, 1, self->bytes * work->n_sets); /* every page is there before the clock runs */
    memset(self->to, 2, self->bytes * work->n_sets);
    return true;
}

static inline void workload_copy_close(workload_copy* self) {
    free(self->from);
    free(self->to);
}

static inline bool workload_copy_run(void* user_data, uint32_t turn) {
    const workload_copy* const self = (const workload_copy*)user_data;
    const size_t at = turn % self->work->n_sets * self->bytes;
    const int n = (int)self->work->n_threads;
#if defined(_OPENMP)
    _Pragma("omp parallel for num_threads(n)")
#endif
    for (int i = 0; i < n; i++) {
        const size_t begin = self->bytes * (size_t)i / (size_t)n, end = self->bytes * (size_t)(i + 1) / (size_t)n;
        memcpy(self->to + at + begin, self->from + at + begin, end - begin);
    }
    return true;
}

#endif
