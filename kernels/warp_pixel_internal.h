/* kernels/warp_pixel_internal.h -- the reference: what one output pixel is,
   once its place is known, in plain C for the host and for devices. Every faster loop must give these bits.
   Obeys exact_internal.h. */
#ifndef GPSTI_WARP_PIXEL_INTERNAL_H
#define GPSTI_WARP_PIXEL_INTERNAL_H

#include "exact_internal.h"
#include "warp_area_internal.h"

/* A source pixel, its bytes from the lowest up. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_read(const gpsti_warp_job* job, int32_t x, int32_t y) {
    if (!gpsti_warp_border(job, &x, &y))
        return 0;
    const uint8_t* p =
        job->source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)x * job->source_pixel_bytes;
    uint32_t pixel = 0;
    for (uint32_t i = 0; i < job->source_pixel_bytes; i++)
        pixel |= (uint32_t)p[i] << (8 * i);
    return pixel;
}

GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_channel(uint32_t pixel, uint32_t shift) {
    return shift == GPSTI_WARP_CHANNEL_FULL ? 255 : (int32_t)((pixel >> shift) & 255);
}

/* Whether the mask keeps an output pixel. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_keeps(const gpsti_warp_job* job, int32_t x, int32_t y) {
    int32_t u, v;
    if (!job->mask)
        return true;
    gpsti_warp_position(job, x, y, &u, &v);
    return gpsti_warp_mask_at(job, u, v) != 0;
}

/* ---- what: the sampler -------------------------------------------------------------
   Four taps in the order of reading. In integers: across to 7 bits below the byte, then down, each rounded.
   */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_blend(const int32_t tap[4], int32_t wx, int32_t wy) {
    const int32_t upper = (tap[0] * (2048 - wx) + tap[1] * wx + 8) >> 4;
    const int32_t lower = (tap[2] * (2048 - wx) + tap[3] * wx + 8) >> 4;
    return (upper * (2048 - wy) + lower * wy + (1 << 17)) >> 18;
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_blend_float(const int32_t tap[4], float fx, float fy) {
    const float upper = gpsti_fma((float)(tap[1] - tap[0]), fx, (float)tap[0]);
    const float lower = gpsti_fma((float)(tap[3] - tap[2]), fx, (float)tap[2]);
    return gpsti_fma(lower - upper, fy, upper);
}

/* value >= 0 or so small in magnitude that the sum below is exact, rounded to the nearest integer, ties to
   even: in the float 1.5 * 2^23 + value the integer stands in the low bits. */
#define GPSTI_WARP_ROUNDER 12582912.0f
#define GPSTI_WARP_ROUNDER_BITS 0x4b400000u

/* FFmpeg's weights: products of the fractions, times 16385, each rounded. */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_ffmpeg_weight(float across, float down) {
    return (int32_t)(gpsti_f32_bits(gpsti_fma(across * down, 16385.0f, GPSTI_WARP_ROUNDER)) -
                     GPSTI_WARP_ROUNDER_BITS);
}

GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_blend_ffmpeg(const int32_t tap[4], float fx, float fy) {
    const int32_t sum = tap[0] * gpsti_warp_ffmpeg_weight(1.0f - fx, 1.0f - fy) +
                        tap[1] * gpsti_warp_ffmpeg_weight(fx, 1.0f - fy) +
                        tap[2] * gpsti_warp_ffmpeg_weight(1.0f - fx, fy) +
                        tap[3] * gpsti_warp_ffmpeg_weight(fx, fy);
    return sum >> 14 > 255 ? 255 : sum >> 14;
}

/* One channel of the windows: down, then across, each in order. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_area(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                uint32_t shift) {
    const gpsti_warp_window across = gpsti_warp_window_of(&job->across, x);
    const gpsti_warp_window down = gpsti_warp_window_of(&job->down, y);
    float sum = 0.0f;
    if (shift == GPSTI_WARP_CHANNEL_FULL)
        return 255.0f;
    for (int32_t at_x = across.begin; at_x < across.end; at_x++) {
        float column = 0.0f;
        for (int32_t at_y = down.begin; at_y < down.end; at_y++)
            column = gpsti_fma(gpsti_warp_window_weight(&down, at_y),
                               (float)gpsti_warp_channel(gpsti_warp_read(job, at_x, at_y), shift), column);
        sum = gpsti_fma(gpsti_warp_window_weight(&across, at_x), column, sum);
    }
    return sum;
}

/* ---- how: the pixel transform and the store ----------------------------------------- */
GPSTI_DEVICE GPSTI_INLINE uint8_t gpsti_warp_byte(float value) {
    const float high = value < 255.0f ? value : 255.0f, clamped = high > 0.0f ? high : 0.0f;
    return (uint8_t)(gpsti_f32_bits(clamped + GPSTI_WARP_ROUNDER) - GPSTI_WARP_ROUNDER_BITS);
}

/* As the byte that stands for it. */
GPSTI_DEVICE GPSTI_INLINE uint8_t gpsti_warp_signed_byte(float value) {
    const float high = value < 127.0f ? value : 127.0f, clamped = high > -128.0f ? high : -128.0f;
    return (uint8_t)(gpsti_f32_bits(clamped + GPSTI_WARP_ROUNDER) - GPSTI_WARP_ROUNDER_BITS);
}

GPSTI_DEVICE GPSTI_INLINE uint8_t* gpsti_warp_output(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                     uint32_t c) {
    const uint32_t bytes = job->dtype == GPST_DTYPE_F32 ? 4 : job->dtype == GPST_DTYPE_F16 ? 2 : 1;
    uint8_t* row = job->output + (ptrdiff_t)(y * job->output_pitch);
    if (job->layout == GPST_LAYOUT_CHW)
        return row + (ptrdiff_t)(c * job->plane_bytes) + (ptrdiff_t)x * bytes;
    return row + ((ptrdiff_t)x * job->n_channels + c) * bytes;
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_store(const gpsti_warp_job* job, uint8_t* output, float value) {
    if (job->dtype == GPST_DTYPE_F32) {
        memcpy(output, &value, sizeof value);
    } else if (job->dtype == GPST_DTYPE_F16) {
        const uint16_t half = gpsti_f16_from_f32(value);
        memcpy(output, &half, sizeof half);
    } else if (job->dtype == GPST_DTYPE_I8) {
        *output = gpsti_warp_signed_byte(value);
    } else {
        *output = gpsti_warp_byte(value);
    }
}

/* One sample of NEAREST or BILINEAR from its four taps. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_sample(const gpsti_warp_job* job, const gpsti_warp_place* place,
                                                  const int32_t tap[4]) {
    /* Bytes to bytes stay integers, and so does FFmpeg's sampler. */
    const bool bytes_out = job->dtype == GPST_DTYPE_U8 && !job->has_scale;
    if (job->filter == GPST_FILTER_NEAREST)
        return (float)tap[0];
    if (job->convention == GPST_CONVENTION_FFMPEG)
        return (float)gpsti_warp_blend_ffmpeg(tap, place->fx, place->fy);
    if (bytes_out)
        return (float)gpsti_warp_blend(tap, place->wx, place->wy);
    return gpsti_warp_blend_float(tap, place->fx, place->fy);
}

/* Output pixel (x, y). */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_pixel(const gpsti_warp_job* job, int32_t x, int32_t y) {
    const bool area = job->filter == GPST_FILTER_AREA, bilinear = job->filter == GPST_FILTER_BILINEAR;
    const bool keep = gpsti_warp_keeps(job, x, y);
    gpsti_warp_place place;
    memset(&place, 0, sizeof place);
    uint32_t pixel[4] = {0, 0, 0, 0};
    if (!area) {
        place = gpsti_warp_locate(job, x, y);
        for (int t = 0; t < (bilinear ? 4 : 1); t++)
            pixel[t] = gpsti_warp_read(job, place.x + (t & 1), place.y + (t >> 1));
    }
    for (uint32_t c = 0; c < job->n_channels; c++) {
        int32_t tap[4];
        float value;
        for (int t = 0; t < 4; t++)
            tap[t] = gpsti_warp_channel(pixel[t], job->shift[c]);
        value = area ? gpsti_warp_area(job, x, y, job->shift[c]) : gpsti_warp_sample(job, &place, tap);
        if (job->has_scale)
            value = gpsti_fma(value, job->scale[c], job->bias[c]);
        gpsti_warp_store(job, gpsti_warp_output(job, x, y, c), keep ? value : 0.0f);
    }
}

#endif
