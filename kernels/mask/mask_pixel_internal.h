/* kernels/mask/mask_pixel_internal.h -- the reference of the mask operations: what
   one output pixel is, in plain C for the host and for devices. Obeys exact_internal.h. */
#ifndef GPSTI_MASK_PIXEL_INTERNAL_H
#define GPSTI_MASK_PIXEL_INTERNAL_H

#include "../exact/half_internal.h"
#include "mask_internal.h"
#include "../warp/warp_pixel_internal.h"

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

/* Half-pixel centres: (i + 1/2) in / out - 1/2, a pixel further on and in units of 1 / (2 out) of a pixel. Divisions of
   64 bits are slow on devices, and hardly ever needed. */
GPSTI_DEVICE GPSTI_INLINE gpsti_argmax_tap gpsti_argmax_locate(uint32_t i, uint32_t in, uint32_t out) {
    const uint64_t position = (2 * (uint64_t)i + 1) * in + out;
    const uint32_t unit = 2 * out, last = in - 1;
    const uint32_t pixel =
        position >> 32 ? (uint32_t)(position / unit) : (uint32_t)position / unit; /* a pixel further on */
    gpsti_argmax_tap tap;
    tap.first = pixel == 0 ? 0 : pixel - 1 > last ? last : pixel - 1;
    tap.second = pixel > last ? last : pixel;
    tap.weight = (float)(uint32_t)(position - (uint64_t)pixel * unit) / (float)unit;
    return tap;
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

/* ---- windows ------------------------------------------------------------------------ */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_window_inside(const gpsti_window_job* job, int32_t x, int32_t y) {
    return x >= 0 && y >= 0 && x < job->width && y < job->height;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_window_read(const gpsti_window_job* job, int32_t x, int32_t y) {
    const uint8_t* row = job->source + (ptrdiff_t)(y * job->source_pitch);
    uint16_t wide;
    if (!job->wide)
        return row[x];
    memcpy(&wide, row + (size_t)x * sizeof wide, sizeof wide);
    return wide;
}

/* Whether any pixel of the window is in (dilate), or any is out (what eroding asks). */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_window_any(const gpsti_window_job* job, int32_t x, int32_t y, bool in) {
    for (int32_t v = y - job->radius; v <= y + job->radius; v++)
        for (int32_t u = x - job->radius; u <= x + job->radius; u++)
            if (gpsti_window_inside(job, u, v) && (gpsti_window_read(job, u, v) != 0) == in)
                return true;
    return false;
}

/* OPEN: whether any pixel of the window survives eroding. CLOSE: whether any stays out after dilating. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_window_any_uniform(const gpsti_window_job* job, int32_t x, int32_t y, bool in) {
    for (int32_t v = y - job->radius; v <= y + job->radius; v++)
        for (int32_t u = x - job->radius; u <= x + job->radius; u++)
            if (gpsti_window_inside(job, u, v) && !gpsti_window_any(job, u, v, !in))
                return true;
    return false;
}

GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_window_weight(const gpsti_window_job* job, int32_t offset) {
    const int32_t at = offset < 0 ? -offset : offset;
    if (job->op == GPSTI_WINDOW_BOX)
        return 1;
    if (job->radius == 1)
        return 2 - at;
    return at == 0 ? 6 : at == 1 ? 4 : 1;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_window_mean(const gpsti_window_job* job, int32_t x, int32_t y) {
    int32_t sum = 0, weights = 0;
    for (int32_t v = y - job->radius; v <= y + job->radius; v++)
        for (int32_t u = x - job->radius; u <= x + job->radius; u++) {
            const int32_t at_x = u < 0 ? 0 : u >= job->width ? job->width - 1 : u;
            const int32_t at_y = v < 0 ? 0 : v >= job->height ? job->height - 1 : v;
            const int32_t weight = gpsti_window_weight(job, u - x) * gpsti_window_weight(job, v - y);
            sum += weight * (int32_t)gpsti_window_read(job, at_x, at_y);
            weights += weight;
        }
    return (uint32_t)((sum + weights / 2) / weights);
}

/* Whether (u, v) has a vote on the label of (x, y). */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_window_votes(const gpsti_window_job* job, int32_t x, int32_t y, int32_t u,
                                                  int32_t v) {
    if (!gpsti_window_inside(job, u, v))
        return false;
    for (int32_t c = 0; job->guide && c < job->guide_channels; c++) {
        const int32_t own = job->guide[(ptrdiff_t)(y * job->guide_pitch) + (ptrdiff_t)x * job->guide_channels + c];
        const int32_t other = job->guide[(ptrdiff_t)(v * job->guide_pitch) + (ptrdiff_t)u * job->guide_channels + c];
        if (other - own > job->tolerance || own - other > job->tolerance)
            return false;
    }
    return true;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_window_count(const gpsti_window_job* job, int32_t x, int32_t y,
                                                      uint32_t label) {
    uint32_t n = 0;
    for (int32_t v = y - 1; v <= y + 1; v++)
        for (int32_t u = x - 1; u <= x + 1; u++)
            n += gpsti_window_votes(job, x, y, u, v) && gpsti_window_read(job, u, v) == label ? 1u : 0u;
    return n;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_window_elect(const gpsti_window_job* job, int32_t x, int32_t y) {
    const uint32_t own = gpsti_window_read(job, x, y), own_count = gpsti_window_count(job, x, y, own);
    uint32_t label = own, most = own_count;
    for (int32_t v = y - 1; v <= y + 1; v++)
        for (int32_t u = x - 1; u <= x + 1; u++) {
            if (!gpsti_window_votes(job, x, y, u, v))
                continue;
            const uint32_t other = gpsti_window_read(job, u, v), count = gpsti_window_count(job, x, y, other);
            if (count > most || (count == most && most > own_count && other < label)) {
                label = other;
                most = count;
            }
        }
    return label;
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_window_pixel(const gpsti_window_job* job, int32_t x, int32_t y) {
    uint8_t* row = job->output + (ptrdiff_t)(y * job->output_pitch);
    uint32_t value = 0;
    switch (job->op) {
    case GPSTI_WINDOW_ERODE: value = gpsti_window_any(job, x, y, false) ? 0 : 255; break;
    case GPSTI_WINDOW_DILATE: value = gpsti_window_any(job, x, y, true) ? 255 : 0; break;
    case GPSTI_WINDOW_OPEN: value = gpsti_window_any_uniform(job, x, y, true) ? 255 : 0; break;
    case GPSTI_WINDOW_CLOSE: value = gpsti_window_any_uniform(job, x, y, false) ? 0 : 255; break;
    case GPSTI_WINDOW_REFINE: value = gpsti_window_elect(job, x, y); break;
    default: value = gpsti_window_mean(job, x, y); break;
    }
    const uint16_t wide = (uint16_t)value;
    if (job->wide)
        memcpy(row + (size_t)x * sizeof wide, &wide, sizeof wide);
    else
        row[x] = (uint8_t)value;
}

/* ---- over time ------------------------------------------------------------------------
   A mean is at most 65280; one that nobody set, up to 65535, is computed alike everywhere. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_mask_time_difference(uint32_t value, uint32_t mean) {
    const uint32_t target = value << 8;
    return target > mean ? target - mean : mean - target;
}

GPSTI_DEVICE GPSTI_INLINE uint16_t gpsti_mask_time_mean(uint32_t value, uint32_t mean, uint32_t weight,
                                                        uint32_t change) {
    const uint32_t target = value << 8, difference = gpsti_mask_time_difference(value, mean);
    const uint32_t step = (difference * weight + 65535u) >> 16; /* 65535 * 65535 + 65535 < 2^32 */
    if (difference > change)
        return (uint16_t)target;
    return (uint16_t)(target > mean ? mean + step : mean - step);
}

GPSTI_DEVICE GPSTI_INLINE uint8_t gpsti_mask_time_rounded(uint16_t mean) {
    return (uint8_t)((uint16_t)(mean + 128u) >> 8);
}

/* Where the means of row y are. */
GPSTI_DEVICE GPSTI_INLINE uint16_t* gpsti_mask_time_row(const gpsti_mask_time_job* job, uint32_t y) {
    return (uint16_t*)(void*)(job->state + (ptrdiff_t)(((int64_t)y + 1) * job->state_pitch));
}

#endif
