/* kernels/mask/mask_cpu.c -- argmax, threshold and bit masks on the CPU, by the loops of each level. Checks nothing;
   mask.c did. */
#include "../../core/base/platform_internal.h"

#include "mask_pixel_internal.h"

#include <float.h>

#define GPSTI_MASK_LOWEST gpsti_f32_from_bits(0xff800000u) /* -inf */
#define GPSTI_MASK_BLOCK 64   /* pixels; a multiple of every vector's length */
#define GPSTI_MASK_RUN 2048   /* pixels of planes at a time: long for the prefetcher, short for L1 and the stack */
#define GPSTI_MASK_CLASSES 32 /* at a time where scores are rearranged */
#define GPSTI_MASK_GROUP 16   /* enlarged rows at a time */

/* Best score and class of a run of pixels; a block more than the run, where its rest is worked on. */
typedef struct gpsti_argmax_run {
    GPSTI_ALIGNAS(64) int32_t index[GPSTI_MASK_RUN + GPSTI_MASK_BLOCK];
    union {
        float floats[GPSTI_MASK_RUN + GPSTI_MASK_BLOCK];
        struct {
            int16_t keys[GPSTI_MASK_RUN + GPSTI_MASK_BLOCK];
            uint16_t index[GPSTI_MASK_RUN + GPSTI_MASK_BLOCK];
        } halves;
    } best;
    union {
        float floats[GPSTI_MASK_CLASSES][GPSTI_MASK_BLOCK];
        uint16_t halves[GPSTI_MASK_CLASSES][GPSTI_MASK_BLOCK];
    } copy;
} gpsti_argmax_run;

/* Where a block of enlarged columns reads, in scores from the row's begin. */
typedef struct gpsti_argmax_columns {
    size_t first[GPSTI_MASK_BLOCK], second[GPSTI_MASK_BLOCK];
    float weight[GPSTI_MASK_BLOCK];
} gpsti_argmax_columns;

typedef struct gpsti_argmax_tile {
    GPSTI_ALIGNAS(64) float line[2][GPSTI_MASK_CLASSES][GPSTI_MASK_BLOCK]; /* source rows, interpolated across */
    float change[GPSTI_MASK_CLASSES][GPSTI_MASK_BLOCK];                    /* from one to the other */
    float best[GPSTI_MASK_GROUP][GPSTI_MASK_BLOCK];
    int32_t index[GPSTI_MASK_GROUP][GPSTI_MASK_BLOCK];
    gpsti_argmax_columns columns;
    uint32_t line_row[2], line_class[2]; /* what the lines hold */
} gpsti_argmax_tile;

#define GPSTI_MASK(name) GPSTI_SIMD(mask_##name)

#define GPSTI_SIMD_LEVEL portable
#include "mask_rows_internal.h"

#if GPSTI_SIMD_X86
#define GPSTI_SIMD_LEVEL avx2
#include "mask_rows_internal.h"
#endif

/* ---- argmax ----------------------------------------------------------------------- */
GPSTI_PRIVATE void gpsti_argmax_direct(const gpsti_argmax_job* job, gpsti_simd_level level, uint32_t y_begin,
                                       uint32_t y_end) {
    gpsti_argmax_run run;
    memset(&run.copy, 0, sizeof run.copy); /* the end of a row's last block is compared, too, and never used */
    GPSTI_SIMD_TO_AVX2(level, mask_argmax, job, y_begin, y_end, &run);
}

GPSTI_PRIVATE void gpsti_argmax_enlarge(const gpsti_argmax_job* job, gpsti_simd_level level, uint32_t y_begin,
                                        uint32_t y_end) {
    gpsti_argmax_tile tile;
    GPSTI_SIMD_TO_AVX2(level, mask_enlarge, job, y_begin, y_end, &tile);
}

GPSTI_INTERN void gpsti_argmax_rows(const void* argmax_job, gpsti_simd_level level, uint64_t first, uint64_t end) {
    const gpsti_argmax_job* const job = (const gpsti_argmax_job*)argmax_job;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    if (job->resize)
        gpsti_argmax_enlarge(job, level, (uint32_t)first, (uint32_t)end);
    else
        gpsti_argmax_direct(job, level, (uint32_t)first, (uint32_t)end);
    gpsti_fp_leave(mode);
}

GPSTI_INTERN void gpsti_argmax_rows_reference(const gpsti_argmax_job* job, uint32_t y_begin, uint32_t y_end) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (uint32_t y = y_begin; y < y_end; y++)
        for (uint32_t x = 0; x < job->width; x++)
            gpsti_argmax_store(job, x, y, gpsti_argmax_pixel(job, x, y));
    gpsti_fp_leave(mode);
}

/* ---- row by row --------------------------------------------------------------------- */
GPSTI_INTERN void gpsti_mask_rows(const void* job, gpsti_simd_level level, uint64_t first, uint64_t end) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    GPSTI_SIMD_TO_AVX2(level, mask_rows, (const gpsti_mask_job*)job, (uint32_t)first, (uint32_t)end);
    gpsti_fp_leave(mode);
}

GPSTI_INTERN void gpsti_mask_rows_reference(const gpsti_mask_job* job, uint32_t y_begin, uint32_t y_end) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    const uint32_t n = job->op == GPSTI_MASK_PACK ? (job->width + 7) / 8 : job->width;
    for (uint32_t y = y_begin; y < y_end; y++)
        for (uint32_t x = 0; x < n; x++)
            gpsti_mask_pixel(job, x, y);
    gpsti_fp_leave(mode);
}

/* ---- all rows ------------------------------------------------------------------------ */
GPSTI_INTERN void gpsti_argmax_compute(const gpsti_argmax_job* job, uint32_t n_threads) {
    gpsti_launch_rows(gpsti_argmax_rows, job, gpsti_simd_level_query(), 1, job->height,
                      (uint64_t)job->width * job->n_classes, n_threads);
}

GPSTI_INTERN void gpsti_mask_compute(const gpsti_mask_job* job, uint32_t n_threads) {
    gpsti_launch_rows(gpsti_mask_rows, job, gpsti_simd_level_query(), 1, job->height, job->width, n_threads);
}
