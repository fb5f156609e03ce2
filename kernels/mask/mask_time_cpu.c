/* kernels/mask/mask_time_cpu.c -- the mean over time on the CPU: all rows are summed where a cut is looked for, then
   all are blended, by the loops of each level. Checks nothing; mask_time.c did. */
#include "../../core/base/platform_internal.h"

#include "mask_pixel_internal.h"

#define GPSTI_TIME_BLOCK 64 /* pixels; a multiple of every vector's length */
#define GPSTI_TIME(name) GPSTI_SIMD(mask_time_##name)

#define GPSTI_SIMD_LEVEL portable
#include "mask_time_rows_internal.h"

#if GPSTI_SIMD_X86
#define GPSTI_SIMD_LEVEL avx2
#include "mask_time_rows_internal.h"
#endif

/* What all threads add to. */
typedef struct gpsti_mask_time_sum {
    const gpsti_mask_time_job* job;
    gpsti_a64* sum;
} gpsti_mask_time_sum;

GPSTI_PRIVATE void gpsti_mask_time_sum_rows(const void* summed, gpsti_simd_level level, uint64_t first, uint64_t end) {
    const gpsti_mask_time_sum* const to = (const gpsti_mask_time_sum*)summed;
    gpsti_a64_add(to->sum, GPSTI_SIMD_TO_AVX2(level, mask_time_sum, to->job, (uint32_t)first, (uint32_t)end));
}

GPSTI_PRIVATE void gpsti_mask_time_rows(const void* job, gpsti_simd_level level, uint64_t first, uint64_t end) {
    GPSTI_SIMD_TO_AVX2(level, mask_time_rows, (const gpsti_mask_time_job*)job, (uint32_t)first, (uint32_t)end);
}

GPSTI_INTERN void gpsti_mask_time_compute(const gpsti_mask_time_job* job, gpsti_simd_level level, uint32_t n_threads) {
    gpsti_mask_time_job decided = *job;
    gpsti_mask_time_sum summed;
    gpsti_a64 sum;
    if (job->cut != UINT64_MAX) {
        gpsti_a64_store(&sum, 0);
        summed.job = job, summed.sum = &sum;
        gpsti_launch_rows(gpsti_mask_time_sum_rows, &summed, level, 1, job->height, job->width, n_threads);
        decided.restart = gpsti_a64_load(&sum) >= job->cut;
    }
    gpsti_launch_rows(gpsti_mask_time_rows, &decided, level, 1, job->height, job->width, n_threads);
}

GPSTI_INTERN void gpsti_mask_time_reference(const gpsti_mask_time_job* job) {
    uint64_t sum = 0;
    for (uint32_t y = 0; y < job->height; y++)
        for (uint32_t x = 0; x < job->width; x++)
            sum += gpsti_mask_time_difference((job->source + (ptrdiff_t)(y * job->source_pitch))[x],
                                              gpsti_mask_time_row(job, y)[x]);
    const bool restart = job->restart || (job->cut != UINT64_MAX && sum >= job->cut);
    for (uint32_t y = 0; y < job->height; y++)
        for (uint32_t x = 0; x < job->width; x++) {
            const uint32_t value = (job->source + (ptrdiff_t)(y * job->source_pitch))[x];
            uint16_t* mean = gpsti_mask_time_row(job, y) + x;
            *mean = restart ? (uint16_t)(value << 8) : gpsti_mask_time_mean(value, *mean, job->weight, job->change);
            (job->output + (ptrdiff_t)(y * job->output_pitch))[x] = gpsti_mask_time_rounded(*mean);
        }
}
