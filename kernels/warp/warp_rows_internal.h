/* kernels/warp/warp_rows_internal.h -- the row loop of the CPU, stage by stage over
   blocks of pixels so that compilers vectorise it. A template: warp_cpu.c includes it once for each level of
   the machine. Gives the bits of warp_pixel_internal.h, whose steps it keeps; obeys exact_internal.h. */
/* amalgamate: template */
/* The bands of the maps, of which one runs, are not inlined: else the stack would hold what each of them needs.
   From elsewhere come GPSTI_ROWS(sqrt) of a block's floats, in place, (round) of them to bytes, GPSTI_ROWS(hot) and
   (hot_by_axes), which take a block if they can, (hot_columns), which the latter needs, and (hot_drain), which finishes
   those that the former took: warp_hot_internal.h */

/* ---- where -------------------------------------------------------------------------
   Whole blocks are computed even where the row ends within: a fixed count vectorises everywhere. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(angles)(const float* GPSTI_RESTRICT y, const float* GPSTI_RESTRICT x, float scale,
                                           int32_t quarter, int32_t offset, int32_t* GPSTI_RESTRICT out) {
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const float ay = gpsti_abs32(y[k]), ax = gpsti_abs32(x[k]);
        const float high = ay > ax ? ay : ax, low = ay < ax ? ay : ax;
        const float r = low / (high > 1e-30f ? high : 1e-30f); /* 0 where both are 0 */
        const float z = r * r;
        const float arc = r * GPSTI_ATAN_POLYNOMIAL(GPSTI_SIMD_FMA, z);
        int32_t angle = (int32_t)GPSTI_SIMD_FMA(arc, scale, 0.5f);
        angle = ay > ax ? quarter - angle : angle;
        angle = x[k] < 0 ? 2 * quarter - angle : angle;
        out[k] = (y[k] < 0 ? -angle : angle) + offset;
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sphere)(const gpsti_warp_job* job, gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->across[k] = GPSTI_SIMD_FMA(block->ray[0][k], block->ray[0][k], block->ray[2][k] * block->ray[2][k]);
    GPSTI_ROWS(sqrt)(block->across);
    GPSTI_ROWS(angles)(block->ray[0], block->ray[2], job->scale_u, job->quarter_u, job->offset_u, block->u);
    GPSTI_ROWS(angles)(block->ray[1], block->across, job->scale_v, job->quarter_v, job->offset_v, block->v);
}

GPSTI_SIMD_INLINE void GPSTI_ROWS(ray)(const gpsti_warp_job* job, const gpsti_warp_row* row, int32_t x, int c,
                                       float* GPSTI_RESTRICT ray) {
    const int32_t n = 2 * x + 1 - job->width;
    const float a_high = job->view.a_high[c], a_low = job->view.a_low[c], high = row->high[c], low = row->low[c];
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const float at = (float)(n + 2 * k);
        ray[k] = GPSTI_SIMD_FMA(a_high, at, high) + GPSTI_SIMD_FMA(a_low, at, low);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(equirect)(const gpsti_warp_job* job, const gpsti_warp_row* row, int32_t x,
                                             gpsti_block* block) {
    for (int c = 0; c < 3; c++)
        GPSTI_ROWS(ray)(job, row, x, c, block->ray[c]);
    GPSTI_ROWS(sphere)(job, block);
}

/* Columns are padded to whole blocks. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(rotate)(const gpsti_warp_job* job, int32_t x, int32_t y, gpsti_block* block) {
    const float* const row = job->turn_rows + GPSTI_WARP_TURN_ROW * (ptrdiff_t)y;
    for (int c = 0; c < 3; c++) {
        const float* GPSTI_RESTRICT high = job->turn_columns + (2 * c) * (ptrdiff_t)job->turn_stride + x;
        const float* GPSTI_RESTRICT low = high + job->turn_stride;
        const float cos_high = row[0], cos_low = row[1], row_high = row[2 + 2 * c], row_low = row[3 + 2 * c];
        float* GPSTI_RESTRICT ray = block->ray[c];
        for (int k = 0; k < GPSTI_BLOCK; k++)
            ray[k] = GPSTI_SIMD_FMA(high[k], cos_high, row_high) +
                     GPSTI_SIMD_FMA(high[k], cos_low, GPSTI_SIMD_FMA(low[k], cos_high, row_low));
    }
    GPSTI_ROWS(sphere)(job, block);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(affine)(const gpsti_warp_job* job, int32_t x, int32_t y, gpsti_block* block) {
    const int64_t n = 2 * (int64_t)x + 1, m = 2 * (int64_t)y + 1;
    const int64_t* const q = job->affine.q;
    if (job->convention == GPST_CONVENTION_OPENCV) {
        for (int k = 0; k < GPSTI_BLOCK; k++)
            gpsti_warp_affine(job, x + k, y, &block->u[k], &block->v[k]);
        return;
    }
    const int64_t begin_u = q[0] * n + q[1] * m + q[2], step_u = 2 * q[0];
    const int64_t begin_v = q[3] * n + q[4] * m + q[5], step_v = 2 * q[3];
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->u[k] = gpsti_warp_affine_at(begin_u + k * step_u, job->source_width);
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->v[k] = gpsti_warp_affine_at(begin_v + k * step_v, job->source_height);
}

/* The table ends with its row: what is past count keeps the places of before. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(table)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                          gpsti_block* block) {
    const float* GPSTI_RESTRICT entry = gpsti_warp_table_row(job, y) + 2 * (ptrdiff_t)x;
    const bool on_grid = gpsti_warp_on_grid(job);
    for (int32_t k = 0; k < count; k++) {
        block->u[k] = gpsti_warp_table_at(entry[2 * k], job->source_width, on_grid);
        block->v[k] = gpsti_warp_table_at(entry[2 * k + 1], job->source_height, on_grid);
    }
}

/* Positions to pixels and fractions, of one axis; positions stay as they are for the mask, on OpenCV's grid too. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(places_of)(const gpsti_warp_job* job, const int32_t* GPSTI_RESTRICT position,
                                              int32_t* GPSTI_RESTRICT pixel, int32_t* GPSTI_RESTRICT weight,
                                              float* GPSTI_RESTRICT fraction) {
    const int32_t half = job->filter == GPST_FILTER_NEAREST ? 16384 : 0;
    int32_t on_grid[GPSTI_BLOCK];
    if (gpsti_warp_on_grid(job)) {
        for (int k = 0; k < GPSTI_BLOCK; k++)
            on_grid[k] = gpsti_warp_to_grid(position[k]);
        position = on_grid;
    }
    for (int k = 0; k < GPSTI_BLOCK; k++)
        pixel[k] = gpsti_warp_floor(position[k] + half);
    if (half)
        return;
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const int32_t rest = position[k] & 32767;
        weight[k] = (rest + 8) >> 4;
        fraction[k] = (float)rest * (1.0f / 32768.0f);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(places)(const gpsti_warp_job* job, gpsti_block* block) {
    GPSTI_ROWS(places_of)(job, block->u, block->x, block->wx, block->fx);
    GPSTI_ROWS(places_of)(job, block->v, block->y, block->wy, block->fy);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(keep)(const gpsti_warp_job* job, int32_t count, gpsti_block* block) {
    for (int32_t k = 0; k < count; k++)
        block->keep[k] = gpsti_warp_mask_at(job, block->u[k], block->v[k]);
}

#include "warp_gather_rows_internal.h"

/* ---- what --------------------------------------------------------------------------
   Integer samples are collected in block->packed, output channel c in bits 8 c and up; float samples in
   value[c]. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(blend)(uint32_t shift, uint32_t c, gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const int32_t a = (int32_t)((block->tap[0][k] >> shift) & 255),
                      b = (int32_t)((block->tap[1][k] >> shift) & 255);
        const int32_t d = (int32_t)((block->tap[2][k] >> shift) & 255),
                      e = (int32_t)((block->tap[3][k] >> shift) & 255);
        const int32_t upper = ((a << 11) + (b - a) * block->wx[k] + 8) >> 4;
        const int32_t lower = ((d << 11) + (e - d) * block->wx[k] + 8) >> 4;
        const int32_t value = ((upper << 11) + (lower - upper) * block->wy[k] + (1 << 17)) >> 18;
        block->packed[k] |= (uint32_t)value << (8 * c);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(pick)(uint32_t shift, uint32_t c, gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->packed[k] |= ((block->tap[0][k] >> shift) & 255) << (8 * c);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(ffmpeg_weights)(gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const float fx = block->fx[k], fy = block->fy[k], gx = 1.0f - fx, gy = 1.0f - fy;
        const float w[4] = {gx * gy, fx * gy, gx * fy, fx * fy};
        block->weight[0][k] = gpsti_f32_bits(GPSTI_SIMD_FMA(w[0], 16385.0f, GPSTI_WARP_ROUNDER));
        block->weight[1][k] = gpsti_f32_bits(GPSTI_SIMD_FMA(w[1], 16385.0f, GPSTI_WARP_ROUNDER));
        block->weight[2][k] = gpsti_f32_bits(GPSTI_SIMD_FMA(w[2], 16385.0f, GPSTI_WARP_ROUNDER));
        block->weight[3][k] = gpsti_f32_bits(GPSTI_SIMD_FMA(w[3], 16385.0f, GPSTI_WARP_ROUNDER));
    }
    for (int t = 0; t < 4; t++)
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->weight[t][k] -= GPSTI_WARP_ROUNDER_BITS;
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(blend_ffmpeg)(uint32_t shift, uint32_t c, gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        uint32_t sum = ((block->tap[0][k] >> shift) & 255) * block->weight[0][k];
        sum += ((block->tap[1][k] >> shift) & 255) * block->weight[1][k];
        sum += ((block->tap[2][k] >> shift) & 255) * block->weight[2][k];
        sum += ((block->tap[3][k] >> shift) & 255) * block->weight[3][k];
        sum >>= 14;
        block->packed[k] |= (sum > 255 ? 255 : sum) << (8 * c);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(blend_float)(uint32_t shift, const float* GPSTI_RESTRICT fx,
                                                const float* GPSTI_RESTRICT fy, float* GPSTI_RESTRICT value,
                                                const gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const int32_t a = (int32_t)((block->tap[0][k] >> shift) & 255),
                      b = (int32_t)((block->tap[1][k] >> shift) & 255);
        const int32_t d = (int32_t)((block->tap[2][k] >> shift) & 255),
                      e = (int32_t)((block->tap[3][k] >> shift) & 255);
        const float upper = GPSTI_SIMD_FMA((float)(b - a), fx[k], (float)a);
        const float lower = GPSTI_SIMD_FMA((float)(e - d), fx[k], (float)d);
        value[k] = GPSTI_SIMD_FMA(lower - upper, fy[k], upper);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sample_integers)(const gpsti_warp_job* job, gpsti_block* block) {
    const bool ffmpeg = job->convention == GPST_CONVENTION_FFMPEG && job->filter == GPST_FILTER_BILINEAR;
    memset(block->packed, 0, sizeof block->packed);
    if (ffmpeg)
        GPSTI_ROWS(ffmpeg_weights)(block);
    for (uint32_t c = 0; c < job->n_channels; c++) {
        const uint32_t shift = job->shift[c];
        if (shift == GPSTI_WARP_CHANNEL_FULL) {
            for (int k = 0; k < GPSTI_BLOCK; k++)
                block->packed[k] |= (uint32_t)255 << (8 * c);
        } else if (job->filter == GPST_FILTER_NEAREST) {
            GPSTI_ROWS(pick)(shift, c, block);
        } else if (ffmpeg) {
            GPSTI_ROWS(blend_ffmpeg)(shift, c, block);
        } else {
            GPSTI_ROWS(blend)(shift, c, block);
        }
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sample_floats)(const gpsti_warp_job* job, gpsti_block* block) {
    for (uint32_t c = 0; c < job->n_channels; c++) {
        if (job->shift[c] == GPSTI_WARP_CHANNEL_FULL) {
            for (int k = 0; k < GPSTI_BLOCK; k++)
                block->value[c][k] = 255.0f;
        } else {
            GPSTI_ROWS(blend_float)(job->shift[c], block->fx, block->fy, block->value[c], block);
        }
    }
}

/* ---- how --------------------------------------------------------------------------- */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(floats_from_packed)(const gpsti_warp_job* job, gpsti_block* block) {
    for (uint32_t c = 0; c < job->n_channels; c++)
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->value[c][k] = (float)(int32_t)((block->packed[k] >> (8 * c)) & 255);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(scale)(const gpsti_warp_job* job, gpsti_block* block) {
    for (uint32_t c = 0; c < job->n_channels; c++) {
        const float scale = job->scale[c], bias = job->bias[c];
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->value[c][k] = GPSTI_SIMD_FMA(block->value[c][k], scale, bias);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(bytes_from_floats)(const gpsti_warp_job* job, gpsti_block* block) {
    memset(block->packed, 0, sizeof block->packed);
    for (uint32_t c = 0; c < job->n_channels; c++)
        GPSTI_ROWS(round)(block->value[c], job->dtype == GPST_DTYPE_I8, 8 * c, block->packed);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(mask)(const gpsti_warp_job* job, bool packed, gpsti_block* block) {
    if (packed) {
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->packed[k] &= block->keep[k];
        return;
    }
    for (uint32_t c = 0; c < job->n_channels; c++)
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->value[c][k] = block->keep[k] ? block->value[c][k] : 0.0f;
}

/* A whole block in a few vectors; gcc takes the slow string move where it only knows a bound. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(copy)(void* to, const void* from, int32_t count, size_t bytes_each) {
    if (count == GPSTI_BLOCK)
        memcpy(to, from, GPSTI_BLOCK * bytes_each);
    else
        memcpy(to, from, (size_t)count * bytes_each);
}

/* Interleaved pixels of n bytes, each written as four bytes of which the next pixel overwrites the rest. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(store_bytes)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                                const gpsti_block* block) {
    const uint32_t n = job->n_channels;
    if (job->layout == GPST_LAYOUT_CHW || n == 1) {
        for (uint32_t c = 0; c < n; c++) {
            uint8_t plane[GPSTI_BLOCK];
            for (int k = 0; k < GPSTI_BLOCK; k++)
                plane[k] = (uint8_t)(block->packed[k] >> (8 * c));
            GPSTI_ROWS(copy)(gpsti_warp_output(job, x, y, c), plane, count, 1);
        }
        return;
    }
    uint8_t* GPSTI_RESTRICT out = gpsti_warp_output(job, x, y, 0);
    const int32_t whole = n == 4 ? count : count - 1;
    for (int32_t k = 0; k < whole; k++, out += n) {
        out[0] = (uint8_t)block->packed[k];
        out[1] = (uint8_t)(block->packed[k] >> 8);
        out[2] = (uint8_t)(block->packed[k] >> 16);
        out[3] = (uint8_t)(block->packed[k] >> 24);
    }
    for (uint32_t c = 0; whole < count && c < n; c++)
        out[c] = (uint8_t)(block->packed[whole] >> (8 * c));
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(words_from_floats)(const gpsti_warp_job* job, gpsti_block* block) {
    for (uint32_t c = 0; c < job->n_channels; c++)
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->half[c][k] = gpsti_warp_word(block->value[c][k]);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(halves_from_floats)(const gpsti_warp_job* job, gpsti_block* block) {
    for (uint32_t c = 0; c < job->n_channels; c++)
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->half[c][k] = gpsti_f16_from_f32(block->value[c][k]);
}

/* F16 and U16. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(store_halves)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                                 gpsti_block* block) {
    const uint32_t n = job->n_channels;
    if (job->dtype == GPST_DTYPE_U16)
        GPSTI_ROWS(words_from_floats)(job, block);
    else
        GPSTI_ROWS(halves_from_floats)(job, block);
    if (job->layout == GPST_LAYOUT_CHW || n == 1) {
        for (uint32_t c = 0; c < n; c++)
            GPSTI_ROWS(copy)(gpsti_warp_output(job, x, y, c), block->half[c], count, 2);
        return;
    }
    uint16_t row[4 * GPSTI_BLOCK];
    for (uint32_t c = 0; c < n; c++)
        for (int32_t k = 0; k < count; k++)
            row[(uint32_t)k * n + c] = block->half[c][k];
    memcpy(gpsti_warp_output(job, x, y, 0), row, (size_t)count * n * sizeof(uint16_t));
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(store_floats)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                                 const gpsti_block* block) {
    const uint32_t n = job->n_channels;
    if (job->layout == GPST_LAYOUT_CHW || n == 1) {
        for (uint32_t c = 0; c < n; c++)
            GPSTI_ROWS(copy)(gpsti_warp_output(job, x, y, c), block->value[c], count, 4);
        return;
    }
    float row[4 * GPSTI_BLOCK];
    for (uint32_t c = 0; c < n; c++)
        for (int32_t k = 0; k < count; k++)
            row[(uint32_t)k * n + c] = block->value[c][k];
    memcpy(gpsti_warp_output(job, x, y, 0), row, (size_t)count * n * sizeof(float));
}

#include "warp_yuv_rows_internal.h"
#include "warp_wide_rows_internal.h"

/* ---- a block, a band ------------------------------------------------------------------
   From the samples on: in packed, else in value. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(emit)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count, bool in_packed,
                                        gpsti_block* block) {
    const bool bytes_out = job->dtype == GPST_DTYPE_U8 || job->dtype == GPST_DTYPE_I8;
    const bool as_floats = job->has_scale || !bytes_out || !in_packed;
    if (in_packed && as_floats)
        GPSTI_ROWS(floats_from_packed)(job, block);
    if (job->has_scale)
        GPSTI_ROWS(scale)(job, block);
    if (job->source_dtype == GPST_DTYPE_F16 || job->source_dtype == GPST_DTYPE_F32)
        GPSTI_ROWS(settle)(job, block);
    if (job->dtype == GPST_DTYPE_I8 || (bytes_out && as_floats))
        GPSTI_ROWS(bytes_from_floats)(job, block);
    if (job->mask) {
        GPSTI_ROWS(keep)(job, count, block);
        GPSTI_ROWS(mask)(job, bytes_out, block);
    }
    if (bytes_out)
        GPSTI_ROWS(store_bytes)(job, x, y, count, block);
    else if (job->dtype != GPST_DTYPE_F32)
        GPSTI_ROWS(store_halves)(job, x, y, count, block);
    else
        GPSTI_ROWS(store_floats)(job, x, y, count, block);
}

/* The block's places are known; the rest is the same for every map. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(finish)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                           gpsti_block* block) {
    const bool integers = (job->dtype == GPST_DTYPE_U8 && !job->has_scale) || job->filter == GPST_FILTER_NEAREST ||
                          job->convention == GPST_CONVENTION_FFMPEG;
    if (gpsti_warp_is_wide(job->source_dtype)) {
        GPSTI_ROWS(sample_wide)(job, count, block);
        GPSTI_ROWS(emit)(job, x, y, count, false, block);
        return;
    }
    const gpsti_places places = {block->x, block->y, block->wx, block->wy, block->fx, block->fy};
    if (GPSTI_ROWS(hot)(job, x, y, count, &places, block->queue))
        return;
    GPSTI_ROWS(gather)(job, count, block);
    if (job->cb)
        GPSTI_ROWS(sample_yuv)(job, count, block);
    else if (integers)
        GPSTI_ROWS(sample_integers)(job, block);
    else
        GPSTI_ROWS(sample_floats)(job, block);
    GPSTI_ROWS(emit)(job, x, y, count, integers && !job->cb, block);
}

GPSTI_SIMD_INLINE void GPSTI_ROWS(positions)(const gpsti_warp_job* job, const gpsti_warp_row* row, int32_t x, int32_t y,
                                             int32_t count, gpsti_block* block) {
    if (job->map == GPST_MAP_EQUIRECT)
        GPSTI_ROWS(equirect)(job, row, x, block);
    else if (job->map == GPST_MAP_ROTATE)
        GPSTI_ROWS(rotate)(job, x, y, block);
    else if (job->map == GPST_MAP_AFFINE)
        GPSTI_ROWS(affine)(job, x, y, block);
    else
        GPSTI_ROWS(table)(job, x, y, count, block);
}

GPSTI_NOINLINE GPSTI_SIMD_PRIVATE void GPSTI_ROWS(band_by_positions)(const gpsti_warp_job* job, int32_t y_begin,
                                                                     int32_t y_end, gpsti_block* block) {
    gpsti_warp_row row;
    gpsti_hot_queue queue;
    queue.put = queue.taken = 0;
    block->queue = &queue;
    memset(&row, 0, sizeof row);
    for (int32_t y = y_begin; y < y_end; y++) {
        if (job->map == GPST_MAP_EQUIRECT)
            row = gpsti_warp_view_row(job, y);
        for (int32_t x = 0; x < job->width; x += GPSTI_BLOCK) {
            const int32_t count = job->width - x < GPSTI_BLOCK ? job->width - x : GPSTI_BLOCK;
            GPSTI_ROWS(positions)(job, &row, x, y, count, block);
            GPSTI_ROWS(places)(job, block);
            GPSTI_ROWS(finish)(job, x, y, count, block);
        }
    }
    GPSTI_ROWS(hot_drain)(job, &queue);
    block->queue = NULL;
}

/* ---- by axes -------------------------------------------------------------------------
   Strips of columns outside, so that their taps (divisions) are computed once a band; rows inside, and in them
   blocks: a strip reads its source row after row. Past count a row's last block repeats its last column. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(columns)(const gpsti_warp_job* job, int32_t x, int32_t count,
                                            gpsti_columns* columns) {
    const bool nearest = job->filter == GPST_FILTER_NEAREST;
    for (int32_t k = 0; k < GPSTI_BLOCK; k++) {
        const gpsti_warp_tap tap = gpsti_warp_axis_tap(&job->across, x + (k < count ? k : count - 1), nearest);
        columns->x[k] = tap.pixel, columns->wx[k] = tap.weight, columns->fx[k] = tap.fraction;
        columns->u[k] = tap.nearest * 32768;
    }
    for (int32_t k = 0; job->cb && k < GPSTI_BLOCK; k++) {
        const gpsti_warp_tap tap = gpsti_warp_axis_tap(&job->chroma_across, x + (k < count ? k : count - 1), false);
        columns->yuv->chroma_x[k] = tap.pixel, columns->yuv->chroma_fx[k] = tap.fraction;
    }
    GPSTI_ROWS(hot_columns)(job, columns);
}

GPSTI_SIMD_INLINE gpsti_row_taps GPSTI_ROWS(taps_of_row)(const gpsti_warp_job* job, int32_t y) {
    gpsti_row_taps taps;
    taps.luma = taps.chroma = gpsti_warp_axis_tap(&job->down, y, job->filter == GPST_FILTER_NEAREST);
    if (job->cb)
        taps.chroma = gpsti_warp_axis_tap(&job->chroma_down, y, false);
    return taps;
}

/* A block of columns, where it is not hot. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(block_by_axes)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                                  const gpsti_row_taps* taps, const gpsti_columns* columns,
                                                  gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->y[k] = taps->luma.pixel, block->v[k] = taps->luma.nearest * 32768;
    memcpy(block->x, columns->x, sizeof block->x), memcpy(block->wx, columns->wx, sizeof block->wx);
    memcpy(block->fx, columns->fx, sizeof block->fx), memcpy(block->u, columns->u, sizeof block->u);
    if (job->cb) {
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->chroma_y[k] = taps->chroma.pixel;
        memcpy(block->chroma_x, columns->yuv->chroma_x, sizeof block->chroma_x);
        memcpy(block->chroma_fx, columns->yuv->chroma_fx, sizeof block->chroma_fx);
    }
    GPSTI_ROWS(finish)(job, x, y, count, block);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(row_by_axes)(const gpsti_warp_job* job, int32_t x_begin, int32_t x_end, int32_t y,
                                                const gpsti_row_taps* taps, const gpsti_row_taps* next,
                                                const gpsti_columns* columns, gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->wy[k] = taps->luma.weight, block->fy[k] = taps->luma.fraction;
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->chroma_fy[k] = taps->chroma.fraction;
    for (int32_t x = x_begin; x < x_end; x += GPSTI_BLOCK, columns++) {
        const int32_t count = x_end - x < GPSTI_BLOCK ? x_end - x : GPSTI_BLOCK;
        if (!GPSTI_ROWS(hot_by_axes)(job, x, y, count, taps, next, columns, block))
            GPSTI_ROWS(block_by_axes)(job, x, y, count, taps, columns, block);
    }
}

GPSTI_NOINLINE GPSTI_SIMD_PRIVATE void GPSTI_ROWS(band_by_axes)(const gpsti_warp_job* job, int32_t y_begin,
                                                                int32_t y_end, gpsti_block* block) {
    gpsti_strip strip;
    const int32_t step = (job->cb ? GPSTI_YUV_STRIP : GPSTI_STRIP) * GPSTI_BLOCK;
    memset(&strip, 0, sizeof strip);
    for (int32_t i = 0; job->cb && i < GPSTI_YUV_STRIP; i++)
        strip.yuv.columns[i].yuv = &strip.yuv.chroma[i];
    for (int32_t x = 0; x < job->width && y_begin < y_end; x += step) {
        const int32_t rest = job->width - x;
        const int32_t x_end = rest < step ? job->width : x + step;
        for (int32_t i = 0; x + i * GPSTI_BLOCK < x_end; i++) {
            const int32_t left = x_end - x - i * GPSTI_BLOCK;
            GPSTI_ROWS(columns)
            (job, x + i * GPSTI_BLOCK, left < GPSTI_BLOCK ? left : GPSTI_BLOCK, &strip.columns[i]);
        }
        gpsti_row_taps taps = GPSTI_ROWS(taps_of_row)(job, y_begin);
        for (int32_t y = y_begin; y < y_end; y++) {
            const gpsti_row_taps next = GPSTI_ROWS(taps_of_row)(job, y + 1 < y_end ? y + 1 : y);
            GPSTI_ROWS(row_by_axes)(job, x, x_end, y, &taps, &next, strip.columns, block);
            taps = next;
        }
    }
}

/* ---- level views -------------------------------------------------------------------
   Without pitch and roll a column has the same azimuth in every row: as by axes, strips of columns outside. */
GPSTI_SIMD_INLINE bool GPSTI_ROWS(is_level)(const gpsti_warp_job* job) {
    return job->map == GPST_MAP_EQUIRECT && job->view.b[0] == 0.0 && job->view.b[2] == 0.0;
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(level_columns)(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                  gpsti_level_columns* columns, gpsti_block* block) {
    const gpsti_warp_row row = gpsti_warp_view_row(job, y);
    GPSTI_ROWS(equirect)(job, &row, x, block);
    memcpy(columns->u, block->u, sizeof columns->u);
    memcpy(columns->across, block->across, sizeof columns->across);
    GPSTI_ROWS(places_of)(job, columns->u, columns->x, columns->wx, columns->fx);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(level_row)(const gpsti_warp_job* job, int32_t x_begin, int32_t x_end, int32_t y,
                                              const gpsti_level_columns* columns, gpsti_block* block) {
    const gpsti_warp_row row = gpsti_warp_view_row(job, y);
    for (int32_t x = x_begin; x < x_end; x += GPSTI_BLOCK, columns++) {
        const gpsti_places places = {columns->x, block->y, columns->wx, block->wy, columns->fx, block->fy};
        const int32_t count = x_end - x < GPSTI_BLOCK ? x_end - x : GPSTI_BLOCK;
        GPSTI_ROWS(ray)(job, &row, x, 1, block->ray[1]);
        GPSTI_ROWS(angles)(block->ray[1], columns->across, job->scale_v, job->quarter_v, job->offset_v, block->v);
        GPSTI_ROWS(places_of)(job, block->v, block->y, block->wy, block->fy);
        if (GPSTI_ROWS(hot)(job, x, y, count, &places, block->queue))
            continue;
        memcpy(block->u, columns->u, sizeof block->u), memcpy(block->x, columns->x, sizeof block->x);
        memcpy(block->wx, columns->wx, sizeof block->wx), memcpy(block->fx, columns->fx, sizeof block->fx);
        GPSTI_ROWS(finish)(job, x, y, count, block);
    }
}

GPSTI_NOINLINE GPSTI_SIMD_PRIVATE void GPSTI_ROWS(band_level)(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end,
                                                              gpsti_block* block) {
    gpsti_level_columns strip[GPSTI_STRIP];
    gpsti_hot_queue queue;
    queue.put = queue.taken = 0;
    block->queue = &queue;
    for (int32_t x = 0; x < job->width && y_begin < y_end; x += GPSTI_STRIP * GPSTI_BLOCK) {
        const int32_t rest = job->width - x;
        const int32_t x_end = rest < GPSTI_STRIP * GPSTI_BLOCK ? job->width : x + GPSTI_STRIP * GPSTI_BLOCK;
        for (int32_t i = 0; x + i * GPSTI_BLOCK < x_end; i++)
            GPSTI_ROWS(level_columns)(job, x + i * GPSTI_BLOCK, y_begin, &strip[i], block);
        for (int32_t y = y_begin; y < y_end; y++)
            GPSTI_ROWS(level_row)(job, x, x_end, y, strip, block);
    }
    GPSTI_ROWS(hot_drain)(job, &queue);
    block->queue = NULL;
}

#include "warp_area_rows_internal.h"
#include "warp_footprint_rows_internal.h"

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(band)(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end,
                                         gpsti_block* block) {
    if (gpsti_warp_by_windows(job->filter) && gpsti_warp_by_axes(job->map))
        GPSTI_ROWS(band_area)(job, y_begin, y_end, block);
    else if (job->filter == GPST_FILTER_AREA)
        GPSTI_ROWS(band_footprint)(job, y_begin, y_end, block);
    else if (gpsti_warp_by_axes(job->map))
        GPSTI_ROWS(band_by_axes)(job, y_begin, y_end, block);
    else if (GPSTI_ROWS(is_level)(job))
        GPSTI_ROWS(band_level)(job, y_begin, y_end, block);
    else
        GPSTI_ROWS(band_by_positions)(job, y_begin, y_end, block);
}

#undef GPSTI_SIMD_LEVEL
