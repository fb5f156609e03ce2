/* kernels/mask/mask_cpu.c -- argmax, threshold and bit masks on the CPU: the loops of
   each level of the machine, rows in parallel. Checks nothing; mask.c did. */
#include "../../core/base/platform_internal.h"

#include "mask_pixel_internal.h"

#include <float.h>

/* Windows aligns stacks to 16 bytes, and gcc there spills 32-byte registers as if it were 32. */
#if (defined(__x86_64__) || defined(__i386__)) && (defined(__clang__) || (defined(__GNUC__) && !defined(_WIN32)))
#define GPSTI_MASK_HAS_AVX2 1
#endif

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

#define GPSTI_MASK(name) gpsti_mask_##name##_portable
#define GPSTI_MASK_TARGET
#define GPSTI_MASK_FMA gpsti_fma
#include "mask_rows_internal.h"

#if defined(GPSTI_MASK_HAS_AVX2)
#define GPSTI_MASK(name) gpsti_mask_##name##_avx2
#define GPSTI_MASK_TARGET __attribute__((target("avx2,fma")))
#define GPSTI_MASK_FMA __builtin_fmaf
#include "mask_rows_internal.h"
#endif

/* ---- argmax ----------------------------------------------------------------------- */
GPSTI_PRIVATE void gpsti_argmax_direct(const gpsti_argmax_job* job, gpsti_warp_level level, uint32_t y_begin,
                                       uint32_t y_end) {
    gpsti_argmax_run run;
    memset(&run.copy, 0, sizeof run.copy); /* the end of a row's last block is compared, too, and never used */
#if defined(GPSTI_MASK_HAS_AVX2)
    if (level != GPSTI_WARP_PORTABLE) {
        gpsti_mask_argmax_avx2(job, y_begin, y_end, &run);
        return;
    }
#endif
    (void)level;
    gpsti_mask_argmax_portable(job, y_begin, y_end, &run);
}

GPSTI_PRIVATE void gpsti_argmax_enlarge(const gpsti_argmax_job* job, gpsti_warp_level level, uint32_t y_begin,
                                        uint32_t y_end) {
    gpsti_argmax_tile tile;
#if defined(GPSTI_MASK_HAS_AVX2)
    if (level != GPSTI_WARP_PORTABLE) {
        gpsti_mask_enlarge_avx2(job, y_begin, y_end, &tile);
        return;
    }
#endif
    (void)level;
    gpsti_mask_enlarge_portable(job, y_begin, y_end, &tile);
}

GPSTI_INTERN void gpsti_argmax_rows(const gpsti_argmax_job* job, gpsti_warp_level level, uint32_t y_begin,
                                    uint32_t y_end) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    if (job->resize)
        gpsti_argmax_enlarge(job, level, y_begin, y_end);
    else
        gpsti_argmax_direct(job, level, y_begin, y_end);
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
GPSTI_INTERN void gpsti_mask_rows(const gpsti_mask_job* job, gpsti_warp_level level, uint32_t y_begin, uint32_t y_end) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
#if defined(GPSTI_MASK_HAS_AVX2)
    if (level != GPSTI_WARP_PORTABLE)
        gpsti_mask_rows_avx2(job, y_begin, y_end);
    else
#endif
        gpsti_mask_rows_portable(job, y_begin, y_end);
    (void)level;
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
GPSTI_PRIVATE void gpsti_argmax_band(const void* job, gpsti_warp_level level, uint32_t y_begin, uint32_t y_end) {
    gpsti_argmax_rows((const gpsti_argmax_job*)job, level, y_begin, y_end);
}

GPSTI_PRIVATE void gpsti_mask_band(const void* job, gpsti_warp_level level, uint32_t y_begin, uint32_t y_end) {
    gpsti_mask_rows((const gpsti_mask_job*)job, level, y_begin, y_end);
}

GPSTI_INTERN void gpsti_mask_bands(gpsti_mask_band_func band, const void* job, uint32_t height, uint32_t n_threads) {
    const gpsti_warp_level level = gpsti_warp_level_query();
#if GPSTI_OPENMP
    const int n = gpsti_team_size(n_threads);
    if (n > 1) {
        const uint32_t wanted = 4 * (uint32_t)n, n_bands = wanted < height ? wanted : height;
        _Pragma("omp parallel for schedule(dynamic) num_threads(n)")
        for (uint32_t i = 0; i < n_bands; i++)
            band(job, level, (uint32_t)((uint64_t)height * i / n_bands),
                 (uint32_t)((uint64_t)height * (i + 1) / n_bands));
        return;
    }
#endif
    (void)n_threads;
    band(job, level, 0, height);
}

GPSTI_INTERN void gpsti_argmax_compute(const gpsti_argmax_job* job, uint32_t n_threads) {
    gpsti_mask_bands(gpsti_argmax_band, job, job->height, n_threads);
}

GPSTI_INTERN void gpsti_mask_compute(const gpsti_mask_job* job, uint32_t n_threads) {
    gpsti_mask_bands(gpsti_mask_band, job, job->height, n_threads);
}
