/* kernels/warp/warp_level.cu.h -- the tiles of level views, pitch and roll 0, whose taps are all away from the
   borders: what
   a column has in common is computed once, and nothing is checked in its rows. Leaves other tiles to
   warp_hot.cu.h. */
#ifndef GPSTI_WARP_LEVEL_CU_H
#define GPSTI_WARP_LEVEL_CU_H

#include "warp_yuv.cu.h"

#if defined(GPSTI_GPU_UNIT)

typedef struct gpsti_level_column {
    const uint8_t* first; /* the left tap's word in the source's first row */
    uint32_t bits;        /* see gpsti_hot_read_words */
    uint32_t weights;
    float fraction;
    float across, inverse; /* what y is divided by */
    const uint8_t* chroma; /* of NV12 and I420 */
    float chroma_fraction;
} gpsti_level_column;

template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_level_take_column(const gpsti_warp_launch* launch, const gpsti_hot_column* from,
                                                     const uint8_t* source, gpsti_level_column* column) {
    column->first = source + (GPSTI_HOT_IS_YUV(pixel_bytes) ? from->at : from->at & ~3);
    column->chroma = source + launch->cb_offset + from->chroma_at;
    column->chroma_fraction = from->chroma_fraction;
    column->bits = (uint32_t)from->at * 8;
    column->weights = from->weights, column->fraction = from->fraction;
    column->across = from->across, column->inverse = gpsti_hot_inverse(from->across);
}

/* Whether rows of 45 degrees of latitude and less are read, and columns that are not at the source's sides. From 16
   rows on the former are some rows away from its first and its last. */
template <int pixel_bytes>
__device__ GPSTI_INLINE bool gpsti_level_is_inner(const gpsti_warp_launch* launch, const gpsti_hot_tile* tile,
                                                  int32_t y0) {
    const int32_t rest = launch->job.height - y0, rows = rest < launch->tile_rows ? rest : launch->tile_rows;
    const float highest = gpsti_hot_greater(gpsti_hot_abs(tile->levels[0].y), gpsti_hot_abs(tile->levels[rows - 1].y));
    bool inner = launch->job.source_height >= 16;
#pragma unroll
    for (int p = 0; p < GPSTI_HOT_TOGETHER; p++) {
        const gpsti_hot_column* const column = &tile->columns[(int32_t)threadIdx.x + p * GPSTI_HOT_LANES];
        inner = inner && highest < column->across && (uint32_t)column->at < tile->inner_bytes;
        if (GPSTI_HOT_IS_YUV(pixel_bytes))
            inner = inner && (uint32_t)column->chroma_at < (uint32_t)((launch->job.chroma_width - 1) * pixel_bytes);
    }
    return gpsti_hot_all(inner);
}

/* gpsti_hot_tilt. All steps are the same for -y but for the sign. */
__device__ GPSTI_INLINE int32_t gpsti_level_angle(const gpsti_level_column* column, const gpsti_hot_level* row,
                                                  float scale) {
    const float r = gpsti_hot_divide_by(row->y, column->across, column->inverse);
    const float arc = r * GPSTI_ATAN_POLYNOMIAL(gpsti_fma, r * r);
    return (int32_t)gpsti_fma(arc, scale, row->half);
}

/* gpsti_hot_set_v. Into bytes: a fraction that is rounded to a whole pixel may as well be no part of the next one. */
template <int pixel_bytes, int store>
__device__ GPSTI_INLINE int32_t gpsti_level_place(int32_t v, gpsti_hot_pixel* pixel) {
    if (GPSTI_HOT_IS_YUV(pixel_bytes) || store != GPSTI_HOT_U8) {
        gpsti_hot_set_v(v, pixel);
        return pixel->y;
    }
    pixel->below = ((uint32_t)(v + 8) & 0x7ff0u) << 2;
    return (v + 8) >> 15;
}

template <int pixel_bytes, int store>
__device__ GPSTI_INLINE void gpsti_level_sample(const gpsti_warp_launch* launch, const gpsti_level_column* column,
                                                int32_t v, gpsti_hot_sample* sample) {
    const int32_t pitch = (int32_t)launch->job.source_pitch;
    gpsti_hot_pixel pixel;
    const int32_t y = gpsti_level_place<pixel_bytes, store>(v, &pixel);
    const uint8_t* const upper = gpsti_hot_advance(column->first, y, pitch);
    pixel.column.weights = column->weights, pixel.column.fraction = column->fraction;
    if (GPSTI_HOT_IS_YUV(pixel_bytes)) {
        gpsti_yuv_taps taps;
        gpsti_hot_set_chroma_v(v, &pixel);
        pixel.column.chroma_fraction = column->chroma_fraction;
        gpsti_yuv_read_inner<pixel_bytes>(
            launch, upper, gpsti_hot_advance(column->chroma, pixel.chroma_y, (int32_t)launch->job.chroma_pitch), &taps);
        gpsti_yuv_sample<store>(launch, &taps, &pixel, sample);
        return;
    }
    gpsti_hot_read_words<pixel_bytes>(upper, 0, column->bits, &pixel);
    gpsti_hot_read_words<pixel_bytes>(upper + pitch, 1, column->bits, &pixel);
    gpsti_hot_take_sample<pixel_bytes, store>(launch, &pixel, sample);
}

/* All rows of the tile; false, and nothing done, where it is none of these tiles. */
template <int pixel_bytes, int store>
__device__ GPSTI_INLINE bool gpsti_level_rows(const gpsti_warp_launch* launch, const gpsti_warp_item* item,
                                              const gpsti_hot_tile* tile, int32_t x0, int32_t y0) {
    const gpsti_warp_job* const job = &launch->job;
    const int32_t x = x0 + (int32_t)threadIdx.x, line = (int32_t)threadIdx.y;
    const bool whole = x0 + GPSTI_HOT_COLUMNS <= job->width && (store != GPSTI_HOT_U8 || launch->words);
    if (!whole || job->mask || item->map.view.a_high[1] != 0 || !gpsti_level_is_inner<pixel_bytes>(launch, tile, y0))
        return false;
    const float scale = tile->view.scale_v;
    const int32_t offset = tile->view.offset_v, rest = job->height - y0;
    const int32_t rows = rest < launch->tile_rows ? rest : launch->tile_rows;
    const int32_t lines = GPSTI_HOT_THREADS_Y(GPSTI_HOT_VIEWS);
    const uint32_t select = tile->word_selects[threadIdx.x & 3];
    gpsti_level_column columns[GPSTI_HOT_TOGETHER];
#pragma unroll
    for (int p = 0; p < GPSTI_HOT_TOGETHER; p++)
        gpsti_level_take_column<pixel_bytes>(launch, &tile->columns[(int32_t)threadIdx.x + p * GPSTI_HOT_LANES],
                                             item->source, &columns[p]);
    uint8_t* row = item->output + (ptrdiff_t)((y0 + line) * job->output_pitch);
#pragma unroll 1
    for (int32_t j = line; j < rows; j += lines, row += lines * job->output_pitch) {
        const gpsti_hot_level level = tile->levels[j];
        gpsti_hot_sample samples[GPSTI_HOT_TOGETHER];
#pragma unroll
        for (int p = 0; p < GPSTI_HOT_TOGETHER; p++)
            gpsti_level_sample<pixel_bytes, store>(launch, &columns[p],
                                                   offset + gpsti_level_angle(&columns[p], &level, scale), &samples[p]);
        gpsti_hot_store_all<store>(launch, samples, row, x, true, select);
    }
    return true;
}

#endif
#endif
