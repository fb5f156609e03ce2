/* kernels/warp/warp_wide_internal.h -- the reference of sources wider than a byte: how a
   sample of 16 bits or a float is read and what becomes of its neighbours. Plain C for the host and for
   devices. */
#ifndef GPSTI_WARP_WIDE_INTERNAL_H
#define GPSTI_WARP_WIDE_INTERNAL_H

#include "../exact/half_internal.h"
#include "warp_yuv_internal.h"

GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_is_wide(gpst_dtype dtype) {
    return dtype == GPST_DTYPE_U16 || dtype == GPST_DTYPE_F16 || dtype == GPST_DTYPE_F32;
}

/* A number of U16, F16 or F32 at its address; exact. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_wide_at(gpst_dtype dtype, const uint8_t* p) {
    uint16_t half;
    float value;
    if (dtype == GPST_DTYPE_F32) {
        memcpy(&value, p, sizeof value);
        return value;
    }
    memcpy(&half, p, sizeof half);
    return dtype == GPST_DTYPE_U16 ? (float)(int32_t)half : gpsti_f32_from_f16(half);
}

/* The channel whose first byte stands shift / 8 numbers into the pixel. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_read_wide(const gpsti_warp_job* job, int32_t x, int32_t y, uint32_t shift) {
    const ptrdiff_t bytes = job->source_dtype == GPST_DTYPE_F32 ? 4 : 2;
    if (!gpsti_warp_border(job, &x, &y))
        return 0.0f;
    return gpsti_warp_wide_at(job->source_dtype, job->source + (ptrdiff_t)(y * job->source_pitch) +
                                                     (ptrdiff_t)x * job->source_pixel_bytes +
                                                     (ptrdiff_t)(shift / 8) * bytes);
}

/* From a to b. Of integers: exact where a is b. Of floats: nothing of a neighbour of weight 0, whatever it is,
   and no difference, which of infinities or of huge numbers would be none. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_mix(float a, float b, float f, bool floats) {
    if (!floats)
        return gpsti_fma(b - a, f, a);
    const float left = f < 1.0f ? a * (1.0f - f) : 0.0f, right = f > 0.0f ? b : 0.0f;
    return gpsti_fma(right, f, left);
}

/* NEAREST and BILINEAR: one channel. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_wide(const gpsti_warp_job* job, const gpsti_warp_place* place,
                                                uint32_t shift) {
    const bool floats = job->source_dtype != GPST_DTYPE_U16;
    float tap[4];
    if (job->filter == GPST_FILTER_NEAREST)
        return gpsti_warp_read_wide(job, place->x, place->y, shift);
    for (int t = 0; t < 4; t++)
        tap[t] = gpsti_warp_read_wide(job, place->x + (t & 1), place->y + (t >> 1), shift);
    return gpsti_warp_mix(gpsti_warp_mix(tap[0], tap[1], place->fx, floats),
                          gpsti_warp_mix(tap[2], tap[3], place->fx, floats), place->fy, floats);
}

/* What is not a number is stored as one pattern, by integers as 0. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_settle(const gpsti_warp_job* job, float value) {
    return value == value ? value : job->not_a_number;
}

#endif
