/* kernels/warp_pixel_internal.h -- the reference: what one output pixel is, in
   plain C for the host and for devices. Every faster loop must give these bits. Obeys exact_internal.h. */
#ifndef GPSTI_WARP_PIXEL_INTERNAL_H
#define GPSTI_WARP_PIXEL_INTERNAL_H

#include "exact_internal.h"
#include "warp_internal.h"

/* ---- where: the map --------------------------------------------------------------
   The pixel up and left of the position, which may lie one outside the source, and how far on the position
   is: in 1/2048 of a pixel, rounded, for the sampler in integers, and as a float. NEAREST: the pixel, and
   zeros. */
typedef struct gpsti_warp_place {
    int32_t x, y;
    int32_t wx, wy;
    float fx, fy;
} gpsti_warp_place;

/* One axis of RESIZE: position (2 i + 1) * in / (2 out) - 1/2, exact as whole + rest / den. */
typedef struct gpsti_warp_tap {
    int32_t pixel;
    int32_t weight;
    float fraction;
} gpsti_warp_tap;

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_tap gpsti_warp_resize_tap(uint32_t i, uint32_t in, uint32_t out,
                                                               bool nearest) {
    gpsti_warp_tap tap;
    const uint64_t den = 2 * (uint64_t)out;
    /* One pixel more than the bilinear position, so that nothing is negative. */
    const uint64_t num = (2 * (uint64_t)i + 1) * in + (nearest ? 0 : out);
    const uint32_t rest = (uint32_t)(num % den);
    tap.pixel = (int32_t)(num / den) - (nearest ? 0 : 1);
    tap.weight = nearest ? 0 : (int32_t)((rest * 4096u + (uint32_t)den) / (2 * (uint32_t)den));
    tap.fraction = nearest ? 0.0f : (float)rest / (float)den;
    return tap;
}

/* What the pixels of a row of a view have in common: b * m + d of each component, in two floats. */
typedef struct gpsti_warp_row {
    float high[3], low[3];
} gpsti_warp_row;

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_row gpsti_warp_view_row(const gpsti_warp_job* job, int32_t y) {
    gpsti_warp_row row;
    const double m = (double)(2 * y + 1 - job->height);
    for (int c = 0; c < 3; c++) {
        const double value = gpsti_mul64(job->view.b[c], m) + job->view.d[c];
        gpsti_split(value, &row.high[c], &row.low[c]);
    }
    return row;
}

/* The angle of (x, y) from the x axis as y / x would tell it, times scale, in whole 1/32768 pixels. The arc
   is computed for the first half of a quarter turn only and reflected in integers, which costs no precision.
   */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_angle(float y, float x, float scale, int32_t quarter) {
    const float ay = gpsti_abs32(y), ax = gpsti_abs32(x);
    const float high = ay > ax ? ay : ax, low = ay < ax ? ay : ax;
    const float r = low / (high > 1e-30f ? high : 1e-30f); /* 0 where both are 0 */
    const float arc = r * GPSTI_ATAN_POLYNOMIAL(gpsti_fma, r * r);
    int32_t angle = (int32_t)gpsti_fma(arc, scale, 0.5f);
    angle = ay > ax ? quarter - angle : angle;
    angle = x < 0 ? 2 * quarter - angle : angle;
    return y < 0 ? -angle : angle;
}

/* Whole pixels of a position of -1 or more, in 1/32768 pixel; the rest is the low 15 bits. */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_floor(int32_t position) {
    return (int32_t)(((uint32_t)position + 32768u) >> 15) - 1;
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_equirect(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                   int32_t* u, int32_t* v) {
    const gpsti_warp_row row = gpsti_warp_view_row(job, y);
    const float n = (float)(2 * x + 1 - job->width);
    float ray[3];
    for (int c = 0; c < 3; c++)
        ray[c] =
            gpsti_fma(job->view.a_high[c], n, row.high[c]) + gpsti_fma(job->view.a_low[c], n, row.low[c]);
    const float across = gpsti_sqrt32(gpsti_fma(ray[0], ray[0], ray[2] * ray[2]));
    *u = gpsti_warp_angle(ray[0], ray[2], job->scale_u, job->quarter_u) + job->offset_u;
    *v = gpsti_warp_angle(ray[1], across, job->scale_v, job->quarter_v) + job->offset_v;
}

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_place gpsti_warp_locate(const gpsti_warp_job* job, int32_t x,
                                                             int32_t y) {
    gpsti_warp_place place;
    const bool nearest = job->filter == GPST_FILTER_NEAREST;
    if (job->map == GPST_MAP_RESIZE) {
        const gpsti_warp_tap across =
            gpsti_warp_resize_tap((uint32_t)x, (uint32_t)job->source_width, (uint32_t)job->width, nearest);
        const gpsti_warp_tap down =
            gpsti_warp_resize_tap((uint32_t)y, (uint32_t)job->source_height, (uint32_t)job->height, nearest);
        place.x = across.pixel, place.wx = across.weight, place.fx = across.fraction;
        place.y = down.pixel, place.wy = down.weight, place.fy = down.fraction;
        return place;
    }
    int32_t u, v;
    gpsti_warp_equirect(job, x, y, &u, &v);
    place.x = gpsti_warp_floor(nearest ? u + 16384 : u);
    place.y = gpsti_warp_floor(nearest ? v + 16384 : v);
    const int32_t rest_x = nearest ? 0 : u & 32767, rest_y = nearest ? 0 : v & 32767;
    place.wx = (rest_x + 8) >> 4, place.fx = (float)rest_x * (1.0f / 32768.0f);
    place.wy = (rest_y + 8) >> 4, place.fy = (float)rest_y * (1.0f / 32768.0f);
    return place;
}

/* ---- which pixel: the border ------------------------------------------------------
   RESIZE repeats the edge. EQUIRECT goes over the pole, to the row it came from half a turn on (with an odd
   width the half is rounded down), and around in x. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_border(const gpsti_warp_job* job, int32_t* x, int32_t* y) {
    const int32_t width = job->source_width, height = job->source_height;
    if (job->map == GPST_MAP_RESIZE) {
        *x = *x < 0 ? 0 : *x >= width ? width - 1 : *x;
        *y = *y < 0 ? 0 : *y >= height ? height - 1 : *y;
        return;
    }
    if (*y < 0 || *y >= height) {
        *y = *y < 0 ? -1 - *y : 2 * height - 1 - *y;
        *x += width / 2;
    }
    *x = *x < 0 ? *x + width : *x >= width ? *x - width : *x;
}

/* A source pixel, its bytes from the lowest up. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_read(const gpsti_warp_job* job, int32_t x, int32_t y) {
    gpsti_warp_border(job, &x, &y);
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

/* Whether the mask keeps the pixel nearest to a place. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_keeps(const gpsti_warp_job* job, int32_t x, int32_t y) {
    int32_t u, v;
    if (!job->mask)
        return true;
    gpsti_warp_equirect(job, x, y, &u, &v);
    int32_t mask_x = gpsti_warp_floor(u + 16384), mask_y = gpsti_warp_floor(v + 16384);
    gpsti_warp_border(job, &mask_x, &mask_y);
    return job->mask[(ptrdiff_t)(mask_y * job->mask_pitch) + mask_x] != 0;
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

/* Output pixel (x, y). */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_pixel(const gpsti_warp_job* job, int32_t x, int32_t y) {
    const gpsti_warp_place place = gpsti_warp_locate(job, x, y);
    const bool bilinear = job->filter == GPST_FILTER_BILINEAR;
    const bool keep = gpsti_warp_keeps(job, x, y);
    /* Bytes to bytes stay integers, and so does FFmpeg's sampler. */
    const bool bytes_out = job->dtype == GPST_DTYPE_U8 && !job->has_scale;
    const bool integers = bytes_out || !bilinear || job->convention == GPST_CONVENTION_FFMPEG;
    uint32_t pixel[4];
    for (int t = 0; t < 4; t++)
        pixel[t] = bilinear || t == 0 ? gpsti_warp_read(job, place.x + (t & 1), place.y + (t >> 1)) : 0;
    for (uint32_t c = 0; c < job->n_channels; c++) {
        int32_t tap[4], whole = 0;
        float value;
        for (int t = 0; t < 4; t++)
            tap[t] = gpsti_warp_channel(pixel[t], job->shift[c]);
        if (!integers) {
            value = gpsti_warp_blend_float(tap, place.fx, place.fy);
        } else {
            whole = !bilinear ? tap[0]
                    : job->convention == GPST_CONVENTION_FFMPEG
                        ? gpsti_warp_blend_ffmpeg(tap, place.fx, place.fy)
                        : gpsti_warp_blend(tap, place.wx, place.wy);
            value = (float)whole;
        }
        if (job->has_scale)
            value = gpsti_fma(value, job->scale[c], job->bias[c]);
        gpsti_warp_store(job, gpsti_warp_output(job, x, y, c), keep ? value : 0.0f);
    }
}

#endif
