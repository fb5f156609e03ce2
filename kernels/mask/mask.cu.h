/* kernels/mask/mask.cu.h -- thresholds and bit masks on a GPU, and which kernel a launch
   of mask operations is for. Checks nothing: mask_launch.c did. */
#ifndef GPSTI_MASK_CU_H
#define GPSTI_MASK_CU_H

#include "mask_argmax.cu.h"
#include "mask_box.cu.h"
#include "mask_window.cu.h"

#if defined(GPSTI_GPU_UNIT)

#define GPSTI_ROWS_THREADS 256

__device__ GPSTI_INLINE gpsti_mask_job gpsti_rows_take(const gpsti_mask_batch* batch) {
    gpsti_mask_job job = batch->job.rows;
    job.source = batch->items[blockIdx.z].source;
    job.output = batch->items[blockIdx.z].output;
    return job;
}

/* ---- threshold ------------------------------------------------------------------------- */
__device__ GPSTI_INLINE float gpsti_rows_value(float value) { return value; }
__device__ GPSTI_INLINE float gpsti_rows_value(uint16_t value) { return gpsti_f32_from_f16(value); }
__device__ GPSTI_INLINE float gpsti_rows_value(uint8_t value) { return (float)value; }

/* 16 bytes of source a thread; where a row ends, or does not begin at a multiple of that, pixel by pixel. */
template <typename T, bool fits>
GPSTI_KERNEL void gpsti_rows_above_device(const gpsti_mask_batch batch) {
    constexpr uint32_t n = fits ? 16 / sizeof(T) : 1;
    const gpsti_mask_job job = gpsti_rows_take(&batch);
    const uint8_t* from = job.source + (ptrdiff_t)(blockIdx.y * job.source_pitch);
    uint8_t* to = job.output + (ptrdiff_t)(blockIdx.y * job.output_pitch);
    uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * n;
    if (x < job.width && job.width - x >= n) {
        const gpsti_lanes<T, n> values = *(const gpsti_lanes<T, n>*)(const void*)(from + (size_t)x * sizeof(T));
        gpsti_lanes<uint8_t, n> mask;
#pragma unroll
        for (uint32_t i = 0; i < n; i++)
            mask.at[i] = gpsti_rows_value(values.at[i]) > job.threshold ? 255 : 0;
        *(gpsti_lanes<uint8_t, n>*)(void*)(to + x) = mask;
    } else {
        for (; x < job.width; x++)
            gpsti_mask_pixel(&job, x, blockIdx.y);
    }
}

/* ---- bits ---------------------------------------------------------------------------------
   The lowest bit of each byte, the first lowest. */
__device__ GPSTI_INLINE uint32_t gpsti_rows_four_bits(uint32_t word) {
    const uint32_t low_bits = 0x7f7f7f7fu;
    return ((((word & low_bits) + low_bits) | word) >> 7 & 0x01010101u) * 0x01020408u >> 24 & 15u;
}

/* 32 pixels a thread; those of a row's end byte by byte. */
GPSTI_KERNEL void gpsti_rows_pack_device(const gpsti_mask_batch batch) {
    const gpsti_mask_job job = gpsti_rows_take(&batch);
    const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * 32, n_bytes = (job.width + 7) / 8;
    const bool fits =
        gpsti_lanes_fit(job.source, job.source_pitch, 16) && gpsti_lanes_fit(job.output, job.output_pitch, 4);
    if (fits && x < job.width && job.width - x >= 32) {
        const gpsti_lanes<uint32_t, 4>* words =
            (const gpsti_lanes<uint32_t, 4>*)(const void*)(job.source + (ptrdiff_t)(blockIdx.y * job.source_pitch) + x);
        const gpsti_lanes<uint32_t, 4> first = words[0], second = words[1];
        uint32_t bits = 0;
#pragma unroll
        for (uint32_t i = 0; i < 4; i++)
            bits |= gpsti_rows_four_bits(first.at[i]) << (4 * i) | gpsti_rows_four_bits(second.at[i]) << (4 * i + 16);
        *(uint32_t*)(void*)(job.output + (ptrdiff_t)(blockIdx.y * job.output_pitch) + x / 8) = bits;
    } else {
        for (uint32_t i = x / 8; i < x / 8 + 4 && i < n_bytes; i++)
            gpsti_mask_pixel(&job, i, blockIdx.y);
    }
}

/* 16 pixels a thread. */
GPSTI_KERNEL void gpsti_rows_unpack_device(const gpsti_mask_batch batch) {
    const gpsti_mask_job job = gpsti_rows_take(&batch);
    const uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * 16;
    const uint8_t* from = job.source + (ptrdiff_t)(blockIdx.y * job.source_pitch);
    if (gpsti_lanes_fit(job.output, job.output_pitch, 16) && x < job.width && job.width - x >= 16) {
        const uint32_t bits = from[x / 8] | (uint32_t)from[x / 8 + 1] << 8;
        gpsti_lanes<uint32_t, 4> words;
#pragma unroll
        for (uint32_t i = 0; i < 4; i++) {
            const uint32_t four = bits >> (4 * i) & 15u;
            words.at[i] = (four * 0x00204081u & 0x01010101u) * 255u;
        }
        *(gpsti_lanes<uint32_t, 4>*)(void*)(job.output + (ptrdiff_t)(blockIdx.y * job.output_pitch) + x) = words;
    } else {
        for (uint32_t i = x; i < x + 16 && i < job.width; i++)
            gpsti_mask_pixel(&job, i, blockIdx.y);
    }
}

/* ---- launching -------------------------------------------------------------------------------- */
/* Rows without gaps are one row. */
template <typename T>
GPSTI_PRIVATE gpst_result gpsti_rows_launch_above(const char* function, const gpsti_mask_batch* batch, void* stream) {
    gpsti_mask_batch flat = *batch;
    gpsti_mask_job* job = &flat.job.rows;
    if (job->source_pitch == job->width * (int64_t)sizeof(T) && job->output_pitch == (int64_t)job->width)
        job->width *= job->height, job->height = 1;
    const uint32_t n = 16 / sizeof(T);
    const bool fits = gpsti_mask_fits(&flat, job->height, job->source_pitch, 16, job->output_pitch, n);
    const uint32_t step = GPSTI_ROWS_THREADS * (fits ? n : 1);
    const dim3 grid(gpsti_gpu_blocks(job->width, step), job->height, flat.n_items);
    return gpsti_gpu_launch(function, fits ? gpsti_rows_above_device<T, true> : gpsti_rows_above_device<T, false>, grid,
                            dim3(GPSTI_ROWS_THREADS), &flat, stream);
}

GPSTI_PRIVATE gpst_result gpsti_rows_launch(const char* function, const gpsti_mask_batch* batch, void* stream) {
    const gpsti_mask_job* job = &batch->job.rows;
    const bool packs = job->op == GPSTI_MASK_PACK;
    const dim3 grid(gpsti_gpu_blocks(job->width, GPSTI_ROWS_THREADS * (packs ? 32 : 16)), job->height, batch->n_items);
    switch (job->op) {
    case GPSTI_MASK_ABOVE_F32: return gpsti_rows_launch_above<float>(function, batch, stream);
    case GPSTI_MASK_ABOVE_F16: return gpsti_rows_launch_above<uint16_t>(function, batch, stream);
    case GPSTI_MASK_ABOVE_U8: return gpsti_rows_launch_above<uint8_t>(function, batch, stream);
    default:
        return gpsti_gpu_launch(function, packs ? gpsti_rows_pack_device : gpsti_rows_unpack_device, grid,
                                dim3(GPSTI_ROWS_THREADS), batch, stream);
    }
}

GPSTI_LINK gpst_result gpsti_mask_gpu_launch(const char* function, const gpsti_mask_batch* batch, void* stream) {
    switch (batch->kind) {
    case GPSTI_MASK_KIND_ARGMAX: return gpsti_argmax_launch(function, batch, stream);
    case GPSTI_MASK_KIND_WINDOW: return gpsti_window_launch(function, batch, stream);
    case GPSTI_MASK_KIND_BOX: return gpsti_box_launch(function, batch, stream);
    default: return gpsti_rows_launch(function, batch, stream);
    }
}

#endif
#endif
