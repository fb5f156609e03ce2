/* kernels/quantise/quantise.cu.h -- floats to 8 bits and back on a GPU, and the ranges of
   channels. Checks nothing: quantise_launch.c did. */
#ifndef GPSTI_QUANTISE_CU_H
#define GPSTI_QUANTISE_CU_H

#include "../launch/launch.cu.h"
#include "quantise_internal.h"

#if defined(GPSTI_GPU_UNIT)

#define GPSTI_QUANTISE_THREADS 256

/* ---- quantise, dequantise ----------------------------------------------------------------
   Which channel a value is of, and how far into a run of it. */
typedef struct gpsti_quantise_place {
    uint32_t channel;
    uint64_t inner;
} gpsti_quantise_place;

/* Divisions of 64 bits are slow, and hardly ever needed. */
__device__ GPSTI_INLINE gpsti_quantise_place gpsti_quantise_locate(const gpst_channels* shape, uint64_t i) {
    const uint64_t n_inner = shape->n_inner;
    const uint64_t line = (i | n_inner) >> 32 ? i / n_inner : (uint32_t)i / (uint32_t)n_inner;
    gpsti_quantise_place place;
    place.channel = line >> 32 ? (uint32_t)(line % shape->n_channels) : (uint32_t)line % shape->n_channels;
    place.inner = i - line * n_inner;
    return place;
}

__device__ GPSTI_INLINE void gpsti_quantise_step(const gpst_channels* shape, gpsti_quantise_place* place) {
    if (++place->inner == shape->n_inner) {
        place->inner = 0;
        place->channel = place->channel + 1 == shape->n_channels ? 0 : place->channel + 1;
    }
}

__device__ GPSTI_INLINE int8_t gpsti_quantise_one(float value, float scale) {
    return gpsti_quantise_value(value, scale);
}
__device__ GPSTI_INLINE int8_t gpsti_quantise_one(uint16_t value, float scale) {
    return gpsti_quantise_value(gpsti_f32_from_f16(value), scale);
}
__device__ GPSTI_INLINE void gpsti_dequantise_one(int8_t integer, float scale, float* out) {
    *out = (float)integer * scale;
}
__device__ GPSTI_INLINE void gpsti_dequantise_one(int8_t integer, float scale, uint16_t* out) {
    *out = gpsti_f16_from_f32((float)integer * scale);
}

/* n values from number i on. */
template <typename T, uint32_t n>
__device__ GPSTI_INLINE void gpsti_quantise_lanes(const gpsti_quantise_args* args, uint64_t i) {
    gpsti_quantise_place place = gpsti_quantise_locate(&args->shape, i);
    gpsti_lanes<T, n>* values = (gpsti_lanes<T, n>*)args->shape.data + i / n;
    gpsti_lanes<int8_t, n>* integers = (gpsti_lanes<int8_t, n>*)(void*)args->integers + i / n;
    gpsti_lanes<T, n> wide;
    gpsti_lanes<int8_t, n> narrow;
    if (args->back)
        narrow = *integers;
    else
        wide = *values;
#pragma unroll
    for (uint32_t k = 0; k < n; k++, gpsti_quantise_step(&args->shape, &place)) {
        const float scale = args->scales[place.channel];
        if (args->back)
            gpsti_dequantise_one(narrow.at[k], scale, &wide.at[k]);
        else
            narrow.at[k] = gpsti_quantise_one(wide.at[k], scale);
    }
    if (args->back)
        *values = wide;
    else
        *integers = narrow;
}

template <typename T, bool fits>
GPSTI_KERNEL void gpsti_quantise_device(const gpsti_quantise_args args) {
    constexpr uint32_t n = fits ? 16 / sizeof(T) : 1;
    uint64_t i = ((uint64_t)blockIdx.x * GPSTI_QUANTISE_THREADS + threadIdx.x) * n;
    if (i < args.n_values && args.n_values - i >= n)
        gpsti_quantise_lanes<T, n>(&args, i);
    else
        for (; i < args.n_values; i++)
            gpsti_quantise_lanes<T, 1>(&args, i);
}

/* ---- ranges ----------------------------------------------------------------------------------
   While they grow, min and max are the floats' keys, and compared as integers. */
typedef struct gpsti_range {
    int32_t min, max;
    uint32_t n_finite, n_infinite, n_nan;
} gpsti_range;

#define GPSTI_RANGE_THREADS 256

__device__ GPSTI_INLINE gpsti_range gpsti_range_none(void) {
    gpsti_range none;
    none.min = INT32_MAX, none.max = INT32_MIN;
    none.n_finite = none.n_infinite = none.n_nan = 0;
    return none;
}

__device__ GPSTI_INLINE void gpsti_range_count(gpsti_range* range, float value) {
    const uint32_t magnitude = gpsti_f32_bits(value) & 0x7fffffffu;
    const int32_t key = gpsti_f32_key(value);
    const bool is_finite = magnitude < 0x7f800000u;
    range->n_finite += is_finite ? 1 : 0;
    range->n_infinite += magnitude == 0x7f800000u ? 1 : 0;
    range->n_nan += magnitude > 0x7f800000u ? 1 : 0;
    range->min = is_finite && key < range->min ? key : range->min;
    range->max = is_finite && key > range->max ? key : range->max;
}

__device__ GPSTI_INLINE void gpsti_range_merge(gpsti_range* to, const gpsti_range* from) {
    atomicMin(&to->min, from->min);
    atomicMax(&to->max, from->max);
    atomicAdd(&to->n_finite, from->n_finite);
    atomicAdd(&to->n_infinite, from->n_infinite);
    atomicAdd(&to->n_nan, from->n_nan);
}

__device__ GPSTI_INLINE void gpsti_range_add(gpst_calibration_info* info, const gpsti_range* from) {
    atomicMin((int32_t*)(void*)&info->min, from->min);
    atomicMax((int32_t*)(void*)&info->max, from->max);
    atomicAdd((unsigned long long*)(void*)&info->n_finite, (unsigned long long)from->n_finite);
    if (from->n_infinite)
        atomicAdd((unsigned long long*)(void*)&info->n_infinite, (unsigned long long)from->n_infinite);
    if (from->n_nan)
        atomicAdd((unsigned long long*)(void*)&info->n_nan, (unsigned long long)from->n_nan);
}

GPSTI_KERNEL void gpsti_range_clear_device(const gpsti_range_args args) {
    const uint32_t c = blockIdx.x * GPSTI_RANGE_THREADS + threadIdx.x;
    if (c >= args.shape.n_channels)
        return;
    const gpsti_range none = gpsti_range_none();
    gpst_calibration_info* info = &args.infos[c];
    info->n_finite = info->n_infinite = info->n_nan = 0;
    memcpy(&info->min, &none.min, sizeof info->min);
    memcpy(&info->max, &none.max, sizeof info->max);
}

__device__ GPSTI_INLINE float gpsti_range_value(float in_key) {
    int32_t key;
    memcpy(&key, &in_key, sizeof key);
    return gpsti_f32_from_bits(key < 0 ? (uint32_t)-key | 0x80000000u : (uint32_t)key);
}

GPSTI_KERNEL void gpsti_range_finish_device(const gpsti_range_args args) {
    const uint32_t c = blockIdx.x * GPSTI_RANGE_THREADS + threadIdx.x;
    if (c >= args.shape.n_channels)
        return;
    gpst_calibration_info* info = &args.infos[c];
    const bool any = info->n_finite != 0;
    info->min = any ? gpsti_range_value(info->min) : 0.0f;
    info->max = any ? gpsti_range_value(info->max) : 0.0f;
}

/* Long runs of a channel: a block has one channel at a time. */
GPSTI_KERNEL void gpsti_range_runs_device(const gpsti_range_args args) {
    __shared__ gpsti_range whole;
    const gpst_channels shape = args.shape;
    for (uint32_t c = blockIdx.y; c < shape.n_channels; c += gridDim.y) {
        gpsti_range own = gpsti_range_none();
        if (threadIdx.x == 0)
            whole = own;
        __syncthreads();
        for (size_t outer = blockIdx.z; outer < shape.n_outer; outer += gridDim.z) {
            const size_t begin = (outer * shape.n_channels + c) * shape.n_inner;
            for (size_t i = (size_t)blockIdx.x * GPSTI_RANGE_THREADS + threadIdx.x; i < shape.n_inner;
                 i += (size_t)gridDim.x * GPSTI_RANGE_THREADS)
                gpsti_range_count(&own, gpsti_quantise_read(&shape, begin + i));
        }
        gpsti_range_merge(&whole, &own);
        __syncthreads();
        if (threadIdx.x == 0)
            gpsti_range_add(&args.infos[c], &whole);
        __syncthreads();
    }
}

/* Short ones: a thread has one place of a line of all channels, and goes from line to line; short lines share a
   block, which gathers its channels. */
GPSTI_KERNEL void gpsti_range_lines_device(const gpsti_range_args args) {
    __shared__ gpsti_range parts[GPSTI_RANGE_THREADS];
    const gpst_channels shape = args.shape;
    const size_t length = shape.n_channels * shape.n_inner;
    const bool gathers = length < GPSTI_RANGE_THREADS;
    const uint32_t n_lines = gathers ? GPSTI_RANGE_THREADS / (uint32_t)length : 1;
    const uint32_t line = gathers ? threadIdx.x / (uint32_t)length : 0;
    const size_t at = gathers ? threadIdx.x % (uint32_t)length : (size_t)blockIdx.x * GPSTI_RANGE_THREADS + threadIdx.x;
    const bool works = line < n_lines && at < length;
    const uint32_t channel = works ? (uint32_t)(at / shape.n_inner) : 0;
    gpsti_range own = gpsti_range_none();
    parts[threadIdx.x] = own;
    __syncthreads();
    for (size_t outer = (size_t)blockIdx.y * n_lines + line; works && outer < shape.n_outer;
         outer += (size_t)gridDim.y * n_lines)
        gpsti_range_count(&own, gpsti_quantise_read(&shape, outer * length + at));
    if (works && gathers)
        gpsti_range_merge(&parts[channel], &own);
    else if (works)
        gpsti_range_add(&args.infos[channel], &own);
    __syncthreads();
    if (gathers && threadIdx.x < shape.n_channels)
        gpsti_range_add(&args.infos[threadIdx.x], &parts[threadIdx.x]);
}

/* ---- launching --------------------------------------------------------------------------------- */
template <typename T>
GPSTI_PRIVATE gpst_result gpsti_quantise_launch(const char* function, const gpsti_quantise_args* args, void* stream) {
    const uint32_t n = 16 / sizeof(T);
    const bool fits = gpsti_lanes_fit(args->shape.data, 0, 16) && gpsti_lanes_fit(args->integers, 0, n);
    const dim3 grid(gpsti_gpu_blocks(args->n_values, GPSTI_QUANTISE_THREADS * (fits ? n : 1)));
    return gpsti_gpu_launch(function, fits ? gpsti_quantise_device<T, true> : gpsti_quantise_device<T, false>, grid,
                            dim3(GPSTI_QUANTISE_THREADS), args, stream);
}

GPSTI_LINK gpst_result gpsti_quantise_gpu_launch(const char* function, const gpsti_quantise_args* args, void* stream) {
    return args->shape.dtype == GPST_DTYPE_F16 ? gpsti_quantise_launch<uint16_t>(function, args, stream)
                                               : gpsti_quantise_launch<float>(function, args, stream);
}

GPSTI_PRIVATE uint32_t gpsti_range_split(uint64_t n, uint64_t most) {
    return (uint32_t)(n < 1 ? 1 : n < most ? n : most);
}

GPSTI_LINK gpst_result gpsti_range_gpu_launch(const char* function, const gpsti_range_args* args, void* stream) {
    const gpst_channels* shape = &args->shape;
    const size_t length = shape->n_channels * shape->n_inner;
    const dim3 each(gpsti_gpu_blocks(shape->n_channels, GPSTI_RANGE_THREADS)), block(GPSTI_RANGE_THREADS);
    const bool runs = shape->n_inner >= 64;
    const dim3 grid_runs(gpsti_range_split(shape->n_inner / (16 * GPSTI_RANGE_THREADS), 512),
                         gpsti_range_split(shape->n_channels, 65535), gpsti_range_split(shape->n_outer, 64));
    const size_t n_lines = length < GPSTI_RANGE_THREADS ? GPSTI_RANGE_THREADS / length : 1;
    const dim3 grid_lines(length < GPSTI_RANGE_THREADS ? 1 : gpsti_gpu_blocks(length, GPSTI_RANGE_THREADS),
                          gpsti_range_split(shape->n_outer / (16 * n_lines), 1024));
    GPSTI_TRY(gpsti_gpu_launch(function, gpsti_range_clear_device, each, block, args, stream));
    GPSTI_TRY(gpsti_gpu_launch(function, runs ? gpsti_range_runs_device : gpsti_range_lines_device,
                               runs ? grid_runs : grid_lines, block, args, stream));
    return gpsti_gpu_launch(function, gpsti_range_finish_device, each, block, args, stream);
}

#endif
#endif
