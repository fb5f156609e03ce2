/* kernels/warp_cpu.c -- the warp on the CPU: which level of the machine is used,
   the row loop of each level, rows and outputs in parallel. Checks nothing; warp.c did. */
#include "../core/platform_internal.h"

#include "warp_pixel_internal.h"

#include <stdlib.h>

#if defined(_OPENMP) && !defined(GPUSTAGE_NO_OPENMP)
#define GPSTI_WARP_OPENMP 1
#include <omp.h>
#endif

/* Windows aligns stacks to 16 bytes, and gcc there spills 32-byte registers as if it were 32. */
#if (defined(__x86_64__) || defined(__i386__)) && \
    (defined(__clang__) || (defined(__GNUC__) && !defined(_WIN32)))
#define GPSTI_WARP_HAS_AVX2 1
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define GPSTI_ALWAYS_INLINE __forceinline
#else
#define GPSTI_ALWAYS_INLINE inline __attribute__((always_inline))
#endif

/* What is known of a block of pixels, stage by stage; always whole, so that loops have a fixed count. */
typedef struct gpsti_block {
    GPSTI_ALIGNAS(64) float ray[3][GPSTI_BLOCK];
    float across[GPSTI_BLOCK];
    int32_t u[GPSTI_BLOCK], v[GPSTI_BLOCK];
    int32_t x[GPSTI_BLOCK], y[GPSTI_BLOCK];
    int32_t wx[GPSTI_BLOCK], wy[GPSTI_BLOCK];
    float fx[GPSTI_BLOCK], fy[GPSTI_BLOCK];
    uint32_t tap[4][GPSTI_BLOCK];
    uint32_t weight[4][GPSTI_BLOCK];
    uint32_t packed[GPSTI_BLOCK];
    uint32_t keep[GPSTI_BLOCK];
    float value[4][GPSTI_BLOCK];
    int32_t chroma_x[GPSTI_BLOCK], chroma_y[GPSTI_BLOCK];
    float chroma_fx[GPSTI_BLOCK], chroma_fy[GPSTI_BLOCK];
    float yuv[3][GPSTI_BLOCK];
    uint16_t half[4][GPSTI_BLOCK];
} gpsti_block;

#define GPSTI_AREA_STRIP 512 /* source pixels */

/* What AREA needs besides. */
typedef struct gpsti_area {
    float strip[4 * GPSTI_AREA_STRIP];
    gpsti_warp_window across[GPSTI_BLOCK], chroma_across[GPSTI_BLOCK];
} gpsti_area;

typedef struct gpsti_area_plane {
    const uint8_t* data;
    int64_t pitch;
    int32_t n_channels;
} gpsti_area_plane;

#define GPSTI_ROWS(name) gpsti_rows_##name##_portable
#define GPSTI_ROWS_TARGET
#define GPSTI_ROWS_INLINE GPSTI_ALWAYS_INLINE
#define GPSTI_ROWS_FMA gpsti_fma
#include "warp_rows_internal.h"

#if defined(GPSTI_WARP_HAS_AVX2)
#define GPSTI_ROWS(name) gpsti_rows_##name##_avx2
#define GPSTI_ROWS_TARGET __attribute__((target("avx2,fma")))
#define GPSTI_ROWS_INLINE GPSTI_ALWAYS_INLINE GPSTI_ROWS_TARGET
#define GPSTI_ROWS_FMA __builtin_fmaf
#include "warp_rows_internal.h"
#endif

GPSTI_INTERN gpsti_warp_level gpsti_warp_level_query(void) {
#if defined(GPSTI_WARP_HAS_AVX2)
    const char* wanted = getenv("GPUSTAGE_CPU");
    if (wanted && strcmp(wanted, "portable") == 0)
        return GPSTI_WARP_PORTABLE;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return GPSTI_WARP_AVX2;
#endif
    return GPSTI_WARP_PORTABLE;
}

GPSTI_INTERN void gpsti_warp_rows(const gpsti_warp_job* job, gpsti_warp_level level, int32_t y_begin,
                                  int32_t y_end) {
    gpsti_block block;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    memset(&block, 0, sizeof block); /* the end of a row's last block is computed, too, and never used */
#if defined(GPSTI_WARP_HAS_AVX2)
    if (level == GPSTI_WARP_AVX2)
        gpsti_rows_band_avx2(job, y_begin, y_end, &block);
    else
#endif
        gpsti_rows_band_portable(job, y_begin, y_end, &block);
    (void)level;
    gpsti_fp_leave(mode);
}

GPSTI_INTERN void gpsti_warp_rows_reference(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (int32_t y = y_begin; y < y_end; y++)
        for (int32_t x = 0; x < job->width; x++)
            gpsti_warp_pixel(job, x, y);
    gpsti_fp_leave(mode);
}

/* Band number `task` of all bands of all outputs. */
GPSTI_PRIVATE void gpsti_warp_band(const gpsti_warp_args* args, uint64_t task, uint32_t n_bands) {
    const uint32_t output = (uint32_t)(task / n_bands), band = (uint32_t)(task % n_bands);
    const uint64_t height = args->warp->desc.height;
    gpsti_warp_job job;
    gpsti_warp_job_init(args->warp, &args->source, &args->outputs[output], args->first_output + output, &job);
    gpsti_warp_rows(&job, args->warp->level, (int32_t)(height * band / n_bands),
                    (int32_t)(height * (band + 1) / n_bands));
}

GPSTI_INTERN void gpsti_warp_compute(const gpsti_warp_args* args, uint32_t n_threads) {
#if defined(GPSTI_WARP_OPENMP)
    if (n_threads != 1) {
        const int n = n_threads ? (int)n_threads : omp_get_max_threads();
        const uint32_t wanted = 4 * (uint32_t)n, height = args->warp->desc.height;
        const uint32_t most = wanted < height ? wanted : height;
        const uint32_t n_bands = args->n_outputs < 4 * wanted ? most : 1;
        const int64_t n_tasks = (int64_t)args->n_outputs * n_bands;
        _Pragma("omp parallel for schedule(dynamic) num_threads(n)") for (int64_t task = 0; task < n_tasks;
                                                                          task++)
            gpsti_warp_band(args, (uint64_t)task, n_bands);
        return;
    }
#endif
    (void)n_threads;
    for (uint32_t i = 0; i < args->n_outputs; i++)
        gpsti_warp_band(args, i, 1);
}
