/* kernels/warp/warp_pixel_internal.h -- the reference: what one output pixel is,
   once its place is known, in plain C for the host and for devices. Every faster loop must give these bits.
   Obeys exact_internal.h. */
#ifndef GPSTI_WARP_PIXEL_INTERNAL_H
#define GPSTI_WARP_PIXEL_INTERNAL_H

#include "../exact/exact_internal.h"
#include "warp_footprint_internal.h"
#include "warp_jpeg_internal.h"
#include "warp_wide_internal.h"

/* A source pixel, its bytes from the lowest up, of JPEG's planes as RGB; job->source need not be set. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_read_of(const gpsti_warp_job* job, const uint8_t* source,
                                                      int32_t x, int32_t y) {
    if (job->jpeg_across)
        return gpsti_ycc_read_pixel(job, source, x, y);
    if (!gpsti_warp_border(job, &x, &y))
        return job->outside;
    const uint8_t* p = source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)x * job->source_pixel_bytes;
    uint32_t pixel = 0;
    for (uint32_t i = 0; i < job->source_pixel_bytes; i++)
        pixel |= (uint32_t)p[i] << (8 * i);
    return pixel;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_read(const gpsti_warp_job* job, int32_t x, int32_t y) {
    return gpsti_warp_read_of(job, job->source, x, y);
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

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_area_value(const gpsti_warp_job* job, int32_t x, int32_t y, bool chroma,
                                                      uint32_t shift) {
    if (gpsti_warp_is_wide(job->source_dtype))
        return gpsti_warp_read_wide(job, x, y, shift);
    return (float)gpsti_warp_channel(chroma ? gpsti_warp_read_chroma(job, x, y) : gpsti_warp_read(job, x, y), shift);
}

/* One channel of the windows, of the chroma or of the other source: down, then across, each in order. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_area_of(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                   bool chroma, uint32_t shift) {
    const gpsti_warp_window across = gpsti_warp_window_of(chroma ? &job->chroma_across : &job->across, x);
    const gpsti_warp_window down = gpsti_warp_window_of(chroma ? &job->chroma_down : &job->down, y);
    float sum = 0.0f;
    for (int32_t at_x = across.begin; at_x < across.end; at_x++) {
        float column = 0.0f;
        for (int32_t at_y = down.begin; at_y < down.end; at_y++) {
            const float value = gpsti_warp_area_value(job, at_x, at_y, chroma, shift);
            column = gpsti_fma(gpsti_warp_window_weight(&down, at_y), value, column);
        }
        sum = gpsti_fma(gpsti_warp_window_weight(&across, at_x), column, sum);
    }
    return sum;
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_area(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                uint32_t shift) {
    return shift == GPSTI_WARP_CHANNEL_FULL ? job->full : gpsti_warp_area_of(job, x, y, false, shift);
}

/* Where the chroma of a position is looked up. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_place gpsti_warp_chroma_place(const gpsti_warp_job* job, int32_t u, int32_t v) {
    return gpsti_warp_place_of(gpsti_warp_chroma_u(job, u), gpsti_warp_chroma_v(job, v), false);
}

/* Where the chroma of an output pixel is looked up. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_place gpsti_warp_locate_chroma(const gpsti_warp_job* job, int32_t x,
                                                                    int32_t y) {
    gpsti_warp_place place;
    memset(&place, 0, sizeof place);
    if (gpsti_warp_by_axes(job->map)) {
        const gpsti_warp_tap across = gpsti_warp_axis_tap(&job->chroma_across, x, false);
        const gpsti_warp_tap down = gpsti_warp_axis_tap(&job->chroma_down, y, false);
        place.x = across.pixel, place.fx = across.fraction;
        place.y = down.pixel, place.fy = down.fraction;
        return place;
    }
    int32_t u, v;
    gpsti_warp_position(job, x, y, &u, &v);
    return gpsti_warp_chroma_place(job, u, v);
}

/* NEAREST: the chroma of the pixel's two by two, black outside. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_near_chroma(const gpsti_warp_job* job, int32_t x, int32_t y) {
    if (!gpsti_warp_border(job, &x, &y))
        return 128u | 128u << 8;
    return gpsti_warp_read_chroma(job, x >> 1, y >> 1);
}

/* Y, Cb and Cr between the taps of both places. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_blend_yuv(const gpsti_warp_job* job, const gpsti_warp_place* luma,
                                                    const gpsti_warp_place* chroma, float yuv[3]) {
    int32_t tap[3][4];
    for (int t = 0; t < 4; t++) {
        const uint32_t pair = gpsti_warp_read_chroma(job, chroma->x + (t & 1), chroma->y + (t >> 1));
        tap[0][t] = gpsti_warp_channel(gpsti_warp_read(job, luma->x + (t & 1), luma->y + (t >> 1)), 0);
        tap[1][t] = gpsti_warp_channel(pair, 0), tap[2][t] = gpsti_warp_channel(pair, 8);
    }
    yuv[0] = gpsti_warp_blend_float(tap[0], luma->fx, luma->fy);
    yuv[1] = gpsti_warp_blend_float(tap[1], chroma->fx, chroma->fy);
    yuv[2] = gpsti_warp_blend_float(tap[2], chroma->fx, chroma->fy);
}

/* Y, Cb and Cr of an output pixel. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_yuv(const gpsti_warp_job* job, int32_t x, int32_t y, float yuv[3]) {
    if (gpsti_warp_by_windows(job->filter)) {
        for (uint32_t c = 0; c < 3; c++)
            yuv[c] = gpsti_warp_area_of(job, x, y, c > 0, c == 2 ? 8 : 0);
        return;
    }
    const gpsti_warp_place luma = gpsti_warp_locate(job, x, y);
    if (job->filter == GPST_FILTER_NEAREST) {
        const uint32_t chroma = gpsti_warp_near_chroma(job, luma.x, luma.y);
        yuv[0] = (float)gpsti_warp_channel(gpsti_warp_read(job, luma.x, luma.y), 0);
        yuv[1] = (float)gpsti_warp_channel(chroma, 0), yuv[2] = (float)gpsti_warp_channel(chroma, 8);
        return;
    }
    const gpsti_warp_place chroma = gpsti_warp_locate_chroma(job, x, y);
    gpsti_warp_blend_yuv(job, &luma, &chroma, yuv);
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_colour(const gpsti_warp_job* job, const float yuv[3], float value[4]) {
    float rgb[3];
    gpsti_warp_rgb_of(&job->colours, yuv, rgb);
    for (uint32_t c = 0; c < job->n_channels; c++)
        value[c] = job->shift[c] == GPSTI_WARP_CHANNEL_FULL ? 255.0f : rgb[job->shift[c] / 8];
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

GPSTI_DEVICE GPSTI_INLINE uint16_t gpsti_warp_word(float value) {
    const float high = value < 65535.0f ? value : 65535.0f, clamped = high > 0.0f ? high : 0.0f;
    return (uint16_t)(gpsti_f32_bits(clamped + GPSTI_WARP_ROUNDER) - GPSTI_WARP_ROUNDER_BITS);
}

/* Of the output: the bytes of a number, its planes, and the bytes of a row of one. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_value_bytes(const gpsti_warp_job* job) {
    return job->dtype == GPST_DTYPE_F32 ? 4 : job->dtype == GPST_DTYPE_F16 || job->dtype == GPST_DTYPE_U16 ? 2 : 1;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_n_planes(const gpsti_warp_job* job) {
    return job->layout == GPST_LAYOUT_CHW ? job->n_channels : 1;
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_row_bytes(const gpsti_warp_job* job) {
    return (uint32_t)job->width * (job->layout == GPST_LAYOUT_CHW ? 1 : job->n_channels) * gpsti_warp_value_bytes(job);
}

/* Where a sample is stored; job->output need not be set. */
GPSTI_DEVICE GPSTI_INLINE uint8_t* gpsti_warp_output_of(const gpsti_warp_job* job, uint8_t* output, int32_t x,
                                                        int32_t y, uint32_t c) {
    const uint32_t bytes = gpsti_warp_value_bytes(job);
    uint8_t* row = output + (ptrdiff_t)(y * job->output_pitch);
    if (job->layout == GPST_LAYOUT_CHW)
        return row + (ptrdiff_t)(c * job->plane_bytes) + (ptrdiff_t)x * bytes;
    return row + ((ptrdiff_t)x * job->n_channels + c) * bytes;
}

GPSTI_DEVICE GPSTI_INLINE uint8_t* gpsti_warp_output(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                     uint32_t c) {
    return gpsti_warp_output_of(job, job->output, x, y, c);
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_store(const gpsti_warp_job* job, uint8_t* output, float value) {
    if (job->dtype == GPST_DTYPE_F32) {
        memcpy(output, &value, sizeof value);
    } else if (job->dtype == GPST_DTYPE_F16) {
        const uint16_t half = gpsti_f16_from_f32(value);
        memcpy(output, &half, sizeof half);
    } else if (job->dtype == GPST_DTYPE_U16) {
        const uint16_t word = gpsti_warp_word(value);
        memcpy(output, &word, sizeof word);
    } else if (job->dtype == GPST_DTYPE_I8) {
        *output = gpsti_warp_signed_byte(value);
    } else {
        *output = gpsti_warp_byte(value);
    }
}

/* One sample from its four taps. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_sample(const gpsti_warp_job* job, const gpsti_warp_place* place,
                                                  const int32_t tap[4]) {
    /* Bytes to bytes stay integers, and so does FFmpeg's sampler. */
    const bool bytes_out = job->dtype == GPST_DTYPE_U8 && !job->has_scale;
    if (job->filter == GPST_FILTER_NEAREST)
        return (float)tap[0];
    if (job->filter == GPST_FILTER_AREA)
        return gpsti_warp_blend_float(tap, place->fx, place->fy);
    if (job->convention == GPST_CONVENTION_FFMPEG)
        return (float)gpsti_warp_blend_ffmpeg(tap, place->fx, place->fy);
    if (bytes_out)
        return (float)gpsti_warp_blend(tap, place->wx, place->wy);
    return gpsti_warp_blend_float(tap, place->fx, place->fy);
}

/* The channels at a place, other than of NV12 and I420. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_samples_at(const gpsti_warp_job* job, const gpsti_warp_place* place,
                                                     float value[4]) {
    if (gpsti_warp_is_wide(job->source_dtype)) {
        for (uint32_t c = 0; c < job->n_channels; c++)
            value[c] =
                job->shift[c] == GPSTI_WARP_CHANNEL_FULL ? job->full : gpsti_warp_wide(job, place, job->shift[c]);
        return;
    }
    uint32_t pixel[4] = {0, 0, 0, 0};
    if (job->jpeg_across && job->filter != GPST_FILTER_NEAREST) {
        const gpsti_ycc_taps taps = gpsti_ycc_read_taps(job, place->x, place->y);
        for (int t = 0; t < 4; t++)
            pixel[t] = taps.pixel[t];
    } else {
        for (int t = 0; t < (job->filter == GPST_FILTER_NEAREST ? 1 : 4); t++)
            pixel[t] = gpsti_warp_read(job, place->x + (t & 1), place->y + (t >> 1));
    }
    for (uint32_t c = 0; c < job->n_channels; c++) {
        int32_t tap[4];
        for (int t = 0; t < 4; t++)
            tap[t] = gpsti_warp_channel(pixel[t], job->shift[c]);
        value[c] = gpsti_warp_sample(job, place, tap);
    }
}

/* AREA where the map does not go by axes: the mean of the samples of the footprint, each as BILINEAR into floats has
   it; summed across, then down. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_mean(const gpsti_warp_job* job, int32_t x, int32_t y, float value[4]) {
    const gpsti_warp_footprint footprint = gpsti_warp_footprint_of(job, x, y);
    float sum[4] = {0, 0, 0, 0};
    for (int32_t j = 0; j < footprint.down; j++) {
        float line[4] = {0, 0, 0, 0};
        for (int32_t i = 0; i < footprint.across; i++) {
            int32_t u, v;
            gpsti_warp_sample_position(job, &footprint, i, j, &u, &v);
            const gpsti_warp_place place = gpsti_warp_place_of(u, v, false);
            if (job->cb) {
                const gpsti_warp_place chroma = gpsti_warp_chroma_place(job, u, v);
                float yuv[3];
                gpsti_warp_blend_yuv(job, &place, &chroma, yuv);
                gpsti_warp_colour(job, yuv, value);
            } else {
                gpsti_warp_samples_at(job, &place, value);
            }
            for (uint32_t c = 0; c < job->n_channels; c++)
                line[c] += value[c];
        }
        for (uint32_t c = 0; c < job->n_channels; c++)
            sum[c] += line[c];
    }
    for (uint32_t c = 0; c < job->n_channels; c++)
        value[c] = job->shift[c] == GPSTI_WARP_CHANNEL_FULL
                       ? job->full
                       : sum[c] / (float)(footprint.across * footprint.down);
}

/* The channels of an output pixel in their order, ahead of scale and bias. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_samples(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                  float value[4]) {
    if (job->filter == GPST_FILTER_AREA && !gpsti_warp_by_axes(job->map)) {
        gpsti_warp_mean(job, x, y, value);
    } else if (job->cb) {
        float yuv[3];
        gpsti_warp_yuv(job, x, y, yuv);
        gpsti_warp_colour(job, yuv, value);
    } else if (gpsti_warp_by_windows(job->filter)) {
        for (uint32_t c = 0; c < job->n_channels; c++)
            value[c] = gpsti_warp_area(job, x, y, job->shift[c]);
    } else {
        const gpsti_warp_place place = gpsti_warp_locate(job, x, y);
        gpsti_warp_samples_at(job, &place, value);
    }
}

/* Whether an output pixel, counted from the map's first, is one of the bars. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_is_bar(const gpsti_warp_job* job, int32_t x, int32_t y) {
    return x < 0 || x >= job->width || y < 0 || y >= job->height;
}

/* Such a pixel; job->output need not be set. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_bar_pixel(const gpsti_warp_job* job, uint8_t* output, int32_t x, int32_t y) {
    for (uint32_t c = 0; c < job->n_channels; c++)
        gpsti_warp_store(job, gpsti_warp_output_of(job, output, x, y, c), job->bar[c]);
}

/* Output pixel (x, y). */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_pixel(const gpsti_warp_job* job, int32_t x, int32_t y) {
    const bool keep = gpsti_warp_keeps(job, x, y);
    float value[4];
    gpsti_warp_samples(job, x, y, value);
    for (uint32_t c = 0; c < job->n_channels; c++) {
        if (job->has_scale)
            value[c] = gpsti_fma(value[c], job->scale[c], job->bias[c]);
        gpsti_warp_store(job, gpsti_warp_output(job, x, y, c), keep ? gpsti_warp_settle(job, value[c]) : 0.0f);
    }
}

#endif
