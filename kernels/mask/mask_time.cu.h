/* kernels/mask/mask_time.cu.h -- the mean over time on a GPU: 16 pixels a thread; where a cut is looked for, a first
   launch leaves sums in the state, and every block of the second adds them up. Integers only. Checks nothing:
   mask_time.c did. */
#ifndef GPSTI_MASK_TIME_CU_H
#define GPSTI_MASK_TIME_CU_H

#include "../launch/launch.cu.h"
#include "mask_launch_internal.h"
#include "mask_pixel_internal.h"

#if defined(GPSTI_GPU_UNIT)

#define GPSTI_MASK_TIME_STEP 16 /* pixels of a thread */
#define GPSTI_MASK_TIME_THREADS 256
#define GPSTI_MASK_TIME_SUM_THREADS 1024

/* Where a thread's pixels are; n_across threads have a row. */
typedef struct gpsti_mask_time_place {
    uint32_t x, y;
    bool whole; /* vectors may be used */
} gpsti_mask_time_place;

__device__ GPSTI_INLINE uint32_t gpsti_mask_time_across(const gpsti_mask_time_job* job) {
    return (job->width + GPSTI_MASK_TIME_STEP - 1) / GPSTI_MASK_TIME_STEP;
}

__device__ GPSTI_INLINE gpsti_mask_time_place gpsti_mask_time_place_of(const gpsti_mask_time_job* job, uint32_t i) {
    const uint32_t n_across = gpsti_mask_time_across(job);
    gpsti_mask_time_place place;
    place.y = i / n_across;
    place.x = (i - place.y * n_across) * GPSTI_MASK_TIME_STEP;
    place.whole = job->width - place.x >= GPSTI_MASK_TIME_STEP && gpsti_lanes_fit(job->source, job->source_pitch, 16) &&
                  gpsti_lanes_fit(job->output, job->output_pitch, 16) &&
                  gpsti_lanes_fit(job->state, job->state_pitch, 32);
    return place;
}

__device__ GPSTI_INLINE gpsti_lanes<uint8_t, GPSTI_MASK_TIME_STEP> gpsti_mask_time_values(
    const gpsti_mask_time_job* job, const gpsti_mask_time_place* place) {
    const uint8_t* from = job->source + (ptrdiff_t)(place->y * job->source_pitch) + place->x;
    gpsti_lanes<uint8_t, GPSTI_MASK_TIME_STEP> values;
    if (place->whole)
        return *(const gpsti_lanes<uint8_t, GPSTI_MASK_TIME_STEP>*)(const void*)from;
#pragma unroll
    for (uint32_t k = 0; k < GPSTI_MASK_TIME_STEP; k++)
        values.at[k] = place->x + k < job->width ? from[k] : 0;
    return values;
}

__device__ GPSTI_INLINE gpsti_lanes<uint16_t, GPSTI_MASK_TIME_STEP> gpsti_mask_time_means(
    const gpsti_mask_time_job* job, const gpsti_mask_time_place* place) {
    const uint16_t* from = gpsti_mask_time_row(job, place->y) + place->x;
    gpsti_lanes<uint16_t, GPSTI_MASK_TIME_STEP> means;
    if (place->whole)
        return *(const gpsti_lanes<uint16_t, GPSTI_MASK_TIME_STEP>*)(const void*)from;
#pragma unroll
    for (uint32_t k = 0; k < GPSTI_MASK_TIME_STEP; k++)
        means.at[k] = place->x + k < job->width ? from[k] : 0;
    return means;
}

/* ---- the sum ---------------------------------------------------------------------------------
   Of n values in shared memory, n a power of 2, by all threads of a block, of which there are n at least. */
template <uint32_t n>
__device__ GPSTI_INLINE uint64_t gpsti_mask_time_total(uint64_t* sums) {
    __syncthreads();
#pragma unroll
    for (uint32_t half = n / 2; half > 0; half /= 2) {
        if (threadIdx.x < half)
            sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    return sums[0];
}

GPSTI_KERNEL void gpsti_mask_time_sum_device(const gpsti_mask_time_job job) {
    __shared__ uint64_t sums[GPSTI_MASK_TIME_SUM_THREADS];
    const uint32_t n = gpsti_mask_time_across(&job) * job.height;
    uint64_t own = 0;
    for (uint32_t i = blockIdx.x * GPSTI_MASK_TIME_SUM_THREADS + threadIdx.x; i < n;
         i += GPSTI_MASK_TIME_PARTS * GPSTI_MASK_TIME_SUM_THREADS) {
        const gpsti_mask_time_place place = gpsti_mask_time_place_of(&job, i);
        const gpsti_lanes<uint8_t, GPSTI_MASK_TIME_STEP> values = gpsti_mask_time_values(&job, &place);
        const gpsti_lanes<uint16_t, GPSTI_MASK_TIME_STEP> means = gpsti_mask_time_means(&job, &place);
        uint32_t some = 0;
#pragma unroll
        for (uint32_t k = 0; k < GPSTI_MASK_TIME_STEP; k++)
            some += gpsti_mask_time_difference(values.at[k], means.at[k]);
        own += some;
    }
    sums[threadIdx.x] = own;
    const uint64_t total = gpsti_mask_time_total<GPSTI_MASK_TIME_SUM_THREADS>(sums);
    if (threadIdx.x == 0)
        ((uint64_t*)(void*)job.state)[blockIdx.x] = total;
}

/* ---- the mean ---------------------------------------------------------------------------------- */
GPSTI_KERNEL void gpsti_mask_time_device(const gpsti_mask_time_job job) {
    __shared__ uint64_t sums[GPSTI_MASK_TIME_PARTS];
    const uint32_t i = blockIdx.x * GPSTI_MASK_TIME_THREADS + threadIdx.x;
    bool restart = job.restart;
    if (job.cut != UINT64_MAX) {
        if (threadIdx.x < GPSTI_MASK_TIME_PARTS)
            sums[threadIdx.x] = ((const uint64_t*)(const void*)job.state)[threadIdx.x];
        restart = gpsti_mask_time_total<GPSTI_MASK_TIME_PARTS>(sums) >= job.cut;
    }
    if (i >= gpsti_mask_time_across(&job) * job.height)
        return;
    const gpsti_mask_time_place place = gpsti_mask_time_place_of(&job, i);
    const gpsti_lanes<uint8_t, GPSTI_MASK_TIME_STEP> values = gpsti_mask_time_values(&job, &place);
    const gpsti_lanes<uint16_t, GPSTI_MASK_TIME_STEP> old = gpsti_mask_time_means(&job, &place);
    gpsti_lanes<uint16_t, GPSTI_MASK_TIME_STEP> means;
    gpsti_lanes<uint8_t, GPSTI_MASK_TIME_STEP> rounded;
#pragma unroll
    for (uint32_t k = 0; k < GPSTI_MASK_TIME_STEP; k++) {
        means.at[k] = restart ? (uint16_t)(values.at[k] << 8)
                              : gpsti_mask_time_mean(values.at[k], old.at[k], job.weight, job.change);
        rounded.at[k] = gpsti_mask_time_rounded(means.at[k]);
    }
    uint8_t* to = job.output + (ptrdiff_t)(place.y * job.output_pitch) + place.x;
    uint16_t* state = gpsti_mask_time_row(&job, place.y) + place.x;
    if (place.whole) {
        *(gpsti_lanes<uint8_t, GPSTI_MASK_TIME_STEP>*)(void*)to = rounded;
        *(gpsti_lanes<uint16_t, GPSTI_MASK_TIME_STEP>*)(void*)state = means;
        return;
    }
#pragma unroll
    for (uint32_t k = 0; k < GPSTI_MASK_TIME_STEP; k++)
        if (place.x + k < job.width)
            to[k] = rounded.at[k], state[k] = means.at[k];
}

/* ---- launching ----------------------------------------------------------------------------------- */
GPSTI_STATIC_ASSERT(GPSTI_MASK_TIME_PARTS <= GPSTI_MASK_TIME_THREADS, "a thread for each");

GPSTI_LINK gpst_result gpsti_mask_time_gpu_launch(const char* function, const gpsti_mask_time_job* job, void* stream) {
    const uint64_t n = (uint64_t)gpsti_gpu_blocks(job->width, GPSTI_MASK_TIME_STEP) * job->height;
    if (job->cut != UINT64_MAX)
        GPSTI_TRY(gpsti_gpu_launch(function, gpsti_mask_time_sum_device, dim3(GPSTI_MASK_TIME_PARTS),
                                   dim3(GPSTI_MASK_TIME_SUM_THREADS), job, stream));
    return gpsti_gpu_launch(function, gpsti_mask_time_device, dim3(gpsti_gpu_blocks(n, GPSTI_MASK_TIME_THREADS)),
                            dim3(GPSTI_MASK_TIME_THREADS), job, stream);
}

#endif
#endif
