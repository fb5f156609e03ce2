/* kernels/mask_pixel_internal.h -- the reference of the mask operations: what
   one output pixel is, in plain C for the host and for devices. Obeys exact_internal.h. */
#ifndef GPSTI_MASK_PIXEL_INTERNAL_H
#define GPSTI_MASK_PIXEL_INTERNAL_H

#include "half_internal.h"
#include "mask_internal.h"
#include "warp_pixel_internal.h"

/* ---- argmax --------------------------------------------------------------------- */
GPSTI_DEVICE GPSTI_INLINE float gpsti_argmax_read(const gpsti_argmax_job* job, uint32_t x, uint32_t y, uint32_t c) {
    const uint8_t* p = job->source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)(x * job->pixel_bytes) +
                       (ptrdiff_t)(c * job->class_bytes);
    uint16_t half;
    float value;
    if (!job->half) {
        memcpy(&value, p, sizeof value);
        return value;
    }
    memcpy(&half, p, sizeof half);
    return gpsti_f32_from_f16(half);
}

/* Scores that are interpolated lie within this, so that no difference overflows and infinities make no NaN. */
#define GPSTI_ARGMAX_LIMIT 85070591730234615865843651857942052864.0f /* 2^126 */

GPSTI_DEVICE GPSTI_INLINE float gpsti_argmax_limited(float value) {
    const float low = value > GPSTI_ARGMAX_LIMIT ? GPSTI_ARGMAX_LIMIT : value;
    return low < -GPSTI_ARGMAX_LIMIT ? -GPSTI_ARGMAX_LIMIT : low;
}

/* The two pixels of one axis, the edge repeated, and the weight of the second. */
typedef struct gpsti_argmax_tap {
    uint32_t first, second;
    float weight;
} gpsti_argmax_tap;

GPSTI_DEVICE GPSTI_INLINE gpsti_argmax_tap gpsti_argmax_locate(uint32_t i, uint32_t in, uint32_t out) {
    const gpsti_warp_tap tap = gpsti_warp_resize_tap(i, in, out, false);
    const int32_t last = (int32_t)in - 1;
    gpsti_argmax_tap taps;
    taps.first = (uint32_t)(tap.pixel < 0 ? 0 : tap.pixel > last ? last : tap.pixel);
    taps.second = (uint32_t)(tap.pixel + 1 > last ? last : tap.pixel + 1);
    taps.weight = tap.fraction;
    return taps;
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_argmax_across(const gpsti_argmax_job* job, gpsti_argmax_tap x, uint32_t y,
                                                    uint32_t c) {
    const float first = gpsti_argmax_limited(gpsti_argmax_read(job, x.first, y, c));
    const float second = gpsti_argmax_limited(gpsti_argmax_read(job, x.second, y, c));
    return gpsti_fma(second - first, x.weight, first);
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_argmax_pixel(const gpsti_argmax_job* job, uint32_t x, uint32_t y) {
    int32_t best = INT32_MIN;
    uint32_t label = 0;
    for (uint32_t c = 0; c < job->n_classes; c++) {
        float value;
        if (job->resize) {
            const gpsti_argmax_tap across = gpsti_argmax_locate(x, job->source_width, job->width);
            const gpsti_argmax_tap down = gpsti_argmax_locate(y, job->source_height, job->height);
            const float upper = gpsti_argmax_across(job, across, down.first, c);
            const float lower = gpsti_argmax_across(job, across, down.second, c);
            value = gpsti_fma(lower - upper, down.weight, upper);
        } else {
            value = gpsti_argmax_read(job, x, y, c);
        }
        const int32_t key = gpsti_f32_key(value);
        if (key > best) {
            best = key;
            label = c;
        }
    }
    return label;
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_argmax_store(const gpsti_argmax_job* job, uint32_t x, uint32_t y, uint32_t label) {
    uint8_t* row = job->output + (ptrdiff_t)(y * job->output_pitch);
    const uint16_t wide = (uint16_t)label;
    if (job->wide)
        memcpy(row + (size_t)x * sizeof wide, &wide, sizeof wide);
    else
        row[x] = (uint8_t)label;
}

/* ---- row by row ------------------------------------------------------------------- */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_mask_above(const gpsti_mask_job* job, const uint8_t* row, uint32_t x) {
    uint16_t half;
    float value;
    switch (job->op) {
    case GPSTI_MASK_ABOVE_F16:
        memcpy(&half, row + (size_t)x * sizeof half, sizeof half);
        return gpsti_f32_from_f16(half) > job->threshold;
    case GPSTI_MASK_ABOVE_F32:
        memcpy(&value, row + (size_t)x * sizeof value, sizeof value);
        return value > job->threshold;
    default: return (float)row[x] > job->threshold;
    }
}

/* Pixel x of row y; PACK: byte x. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_mask_pixel(const gpsti_mask_job* job, uint32_t x, uint32_t y) {
    const uint8_t* from = job->source + (ptrdiff_t)(y * job->source_pitch);
    uint8_t* to = job->output + (ptrdiff_t)(y * job->output_pitch);
    if (job->op == GPSTI_MASK_PACK) {
        uint32_t bits = 0;
        for (uint32_t i = 0; i < 8 && 8 * x + i < job->width; i++)
            bits |= (from[8 * x + i] != 0 ? 1u : 0u) << i;
        to[x] = (uint8_t)bits;
    } else if (job->op == GPSTI_MASK_UNPACK) {
        to[x] = (from[x / 8] >> (x % 8)) & 1 ? 255 : 0;
    } else {
        to[x] = gpsti_mask_above(job, from, x) ? 255 : 0;
    }
}

#endif
