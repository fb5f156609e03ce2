/* kernels/warp/warp_yuv.cu.h -- the steps of warp_steps.cu.h that NV12 and I420 sources have of their own: twelve bytes
   that a pixel is made of, and its colour. The bits are those of warp_yuv_internal.h. Has no kernel. */
#ifndef GPSTI_WARP_YUV_CU_H
#define GPSTI_WARP_YUV_CU_H

#include "warp_steps.cu.h"

#if defined(GPSTI_GPU_UNIT)

/* Four of each, in the order of reading, as floats: 2^23 and the byte. */
typedef struct gpsti_yuv_taps {
    float y[4], cb[4], cr[4];
} gpsti_yuv_taps;

/* Byte 0 or 1 of value. */
__device__ GPSTI_INLINE float gpsti_yuv_tap(uint32_t value, uint32_t byte) {
    return gpsti_f32_from_bits(gpsti_hot_pick(value, 0x4b000000u, 0x7440u | byte));
}

__device__ GPSTI_INLINE uint32_t gpsti_yuv_byte(const uint8_t* from) {
#if defined(__CUDA_ARCH__)
    return __ldg(from);
#else
    return *from;
#endif
}

__device__ GPSTI_INLINE uint32_t gpsti_yuv_pair(const uint8_t* from) {
#if defined(__CUDA_ARCH__)
    return __ldg((const uint16_t*)(const void*)from);
#else
    return (uint32_t)from[0] | (uint32_t)from[1] << 8;
#endif
}

__device__ GPSTI_INLINE void gpsti_yuv_take_column(const gpsti_warp_tap* tap, int32_t step, gpsti_hot_column* column) {
    column->chroma_at = tap->pixel * step, column->chroma_fraction = tap->fraction;
}

__device__ GPSTI_INLINE void gpsti_yuv_take_row(const gpsti_warp_tap* tap, gpsti_hot_pixel* pixel) {
    pixel->chroma_y = tap->pixel, pixel->chroma_fraction = tap->fraction;
}

/* Whether the chroma of a pixel is away from its borders; where it is, or that of the first pixel. */
template <int pixel_bytes>
__device__ GPSTI_INLINE bool gpsti_yuv_is_inner(const gpsti_warp_job* job, const gpsti_hot_pixel* pixel) {
    return (uint32_t)pixel->column.chroma_at < (uint32_t)((job->chroma_width - 1) * pixel_bytes) &&
           (uint32_t)pixel->chroma_y < (uint32_t)(job->chroma_height - 1);
}

__device__ GPSTI_INLINE const uint8_t* gpsti_yuv_chroma(const gpsti_warp_launch* launch, const uint8_t* source,
                                                        const gpsti_hot_pixel* pixel, bool inner) {
    const int32_t at = pixel->chroma_y * (int32_t)launch->job.chroma_pitch + pixel->column.chroma_at;
    return source + launch->cb_offset + (inner ? at : 0);
}

/* Away from the borders; cb is that of the upper left sample. NV12 is read in pairs. */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_yuv_read_inner(const gpsti_warp_launch* launch, const uint8_t* y, const uint8_t* cb,
                                                  gpsti_yuv_taps* taps) {
    const int32_t pitch = (int32_t)launch->job.source_pitch, chroma_pitch = (int32_t)launch->job.chroma_pitch;
    const uint8_t *const lower_y = y + pitch, *const lower_cb = cb + chroma_pitch;
    taps->y[0] = gpsti_yuv_tap(gpsti_yuv_byte(y), 0), taps->y[1] = gpsti_yuv_tap(gpsti_yuv_byte(y + 1), 0);
    taps->y[2] = gpsti_yuv_tap(gpsti_yuv_byte(lower_y), 0), taps->y[3] = gpsti_yuv_tap(gpsti_yuv_byte(lower_y + 1), 0);
    if (pixel_bytes == GPSTI_HOT_NV12) {
#pragma unroll
        for (int t = 0; t < 4; t++) {
            const uint32_t pair = gpsti_yuv_pair((t < 2 ? cb : lower_cb) + 2 * (t & 1));
            taps->cb[t] = gpsti_yuv_tap(pair, 0), taps->cr[t] = gpsti_yuv_tap(pair, 1);
        }
        return;
    }
    const int64_t cr = launch->cr_offset - launch->cb_offset;
    const uint8_t *const upper_cr = cb + cr, *const lower_cr = lower_cb + cr;
#pragma unroll
    for (int t = 0; t < 4; t++) {
        taps->cb[t] = gpsti_yuv_tap(gpsti_yuv_byte((t < 2 ? cb : lower_cb) + (t & 1)), 0);
        taps->cr[t] = gpsti_yuv_tap(gpsti_yuv_byte((t < 2 ? upper_cr : lower_cr) + (t & 1)), 0);
    }
}

/* gpsti_warp_read and gpsti_warp_read_chroma. */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_yuv_read_any(const gpsti_warp_launch* launch, const uint8_t* source,
                                                const gpsti_hot_pixel* pixel, gpsti_yuv_taps* taps) {
    const gpsti_warp_job* const job = &launch->job;
#pragma unroll
    for (int t = 0; t < 4; t++) {
        int32_t x = pixel->column.at + (t & 1), y = pixel->y + (t >> 1);
        int32_t cx = pixel->column.chroma_at / pixel_bytes + (t & 1), cy = pixel->chroma_y + (t >> 1);
        const bool has_luma = gpsti_warp_border(job, &x, &y);
        const bool has_chroma = gpsti_warp_border_of(job->border, job->chroma_width, job->chroma_height, &cx, &cy);
        const uint8_t* const cb = source + launch->cb_offset + (cy * (int32_t)job->chroma_pitch + cx * pixel_bytes);
        const uint32_t luma = gpsti_yuv_byte(source + (y * (int32_t)job->source_pitch + x));
        const uint32_t blue = gpsti_yuv_byte(cb), red = gpsti_yuv_byte(cb + (launch->cr_offset - launch->cb_offset));
        taps->y[t] = gpsti_yuv_tap(has_luma ? luma : job->outside, 0);
        taps->cb[t] = gpsti_yuv_tap(has_chroma ? blue : 128u, 0);
        taps->cr[t] = gpsti_yuv_tap(has_chroma ? red : 128u, 0);
    }
}

/* gpsti_warp_blend_float. */
__device__ GPSTI_INLINE float gpsti_yuv_blend(const float tap[4], float fx, float fy) {
    const float upper = gpsti_fma(tap[1] - tap[0], fx, tap[0] - 8388608.0f);
    const float lower = gpsti_fma(tap[3] - tap[2], fx, tap[2] - 8388608.0f);
    return gpsti_fma(lower - upper, fy, upper);
}

__device__ GPSTI_INLINE float gpsti_yuv_clamp(float value) {
    return gpsti_hot_greater(gpsti_hot_lesser(value, 255.0f), 0.0f);
}

/* Red, green and blue as bytes: the fourth byte means nothing. Or as floats, in the output's order. */
template <int store>
__device__ GPSTI_INLINE void gpsti_yuv_sample(const gpsti_warp_launch* launch, const gpsti_yuv_taps* taps,
                                              const gpsti_hot_pixel* pixel, gpsti_hot_sample* sample) {
    const gpsti_warp_colours* const k = &launch->job.colours;
    const float fx = pixel->column.chroma_fraction, fy = pixel->chroma_fraction;
    const float y = gpsti_yuv_blend(taps->y, pixel->column.fraction, pixel->fraction);
    const float cb = gpsti_yuv_blend(taps->cb, fx, fy), cr = gpsti_yuv_blend(taps->cr, fx, fy);
    const float red = gpsti_yuv_clamp(gpsti_fma(cr, k->red_v, gpsti_fma(y, k->y, k->red)));
    const float green =
        gpsti_yuv_clamp(gpsti_fma(cb, k->green_u, gpsti_fma(cr, k->green_v, gpsti_fma(y, k->y, k->green))));
    const float blue = gpsti_yuv_clamp(gpsti_fma(cb, k->blue_u, gpsti_fma(y, k->y, k->blue)));
    if (store == GPSTI_HOT_U8) {
        const uint32_t first = gpsti_hot_pick(gpsti_f32_bits(red + GPSTI_WARP_ROUNDER),
                                              gpsti_f32_bits(green + GPSTI_WARP_ROUNDER), 0x0040);
        sample->packed = gpsti_hot_pick(first, gpsti_f32_bits(blue + GPSTI_WARP_ROUNDER), launch->order);
        return;
    }
    const bool swapped = launch->job.shift[0] != 0;
    sample->value[0] = swapped ? blue : red, sample->value[1] = green, sample->value[2] = swapped ? red : blue;
    for (int c = 0; c < 3; c++)
        sample->value[c] = gpsti_fma(sample->value[c], launch->job.scale[c], launch->job.bias[c]);
}

#endif
#endif
