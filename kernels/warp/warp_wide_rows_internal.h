/* kernels/warp/warp_wide_rows_internal.h -- the row loop's part for sources wider than
   a byte: channel by channel, in floats. A template beside warp_rows_internal.h, whose macros it uses. Gives
   the bits of warp_pixel_internal.h. */
/* amalgamate: template */

GPSTI_SIMD_INLINE void GPSTI_ROWS(wide_taps_of)(const gpsti_warp_job* job, int32_t count, uint32_t shift,
                                                gpst_dtype dtype, int32_t n_taps, gpsti_block* block) {
    const ptrdiff_t across = (ptrdiff_t)job->source_pixel_bytes, down = (ptrdiff_t)job->source_pitch;
    const uint32_t inner_width = (uint32_t)job->source_width - (n_taps == 4 ? 1 : 0);
    const uint32_t inner_height = (uint32_t)job->source_height - (n_taps == 4 ? 1 : 0);
    const uint8_t* const source = job->source + (ptrdiff_t)(shift / 8) * (dtype == GPST_DTYPE_F32 ? 4 : 2);
    for (int32_t k = 0; k < count; k++) {
        const int32_t x = block->x[k], y = block->y[k];
        const bool inside = (uint32_t)x < inner_width && (uint32_t)y < inner_height;
        for (int32_t t = 0; t < n_taps; t++)
            block->wide[t][k] = inside
                                    ? gpsti_warp_wide_at(dtype, source + (y + (t >> 1)) * down + (x + (t & 1)) * across)
                                    : gpsti_warp_read_wide(job, x + (t & 1), y + (t >> 1), shift);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(wide_taps)(const gpsti_warp_job* job, int32_t count, uint32_t shift,
                                              gpsti_block* block) {
    const int32_t n_taps = job->filter == GPST_FILTER_BILINEAR ? 4 : 1;
    if (job->source_dtype == GPST_DTYPE_U16)
        GPSTI_ROWS(wide_taps_of)(job, count, shift, GPST_DTYPE_U16, n_taps, block);
    else if (job->source_dtype == GPST_DTYPE_F16)
        GPSTI_ROWS(wide_taps_of)(job, count, shift, GPST_DTYPE_F16, n_taps, block);
    else
        GPSTI_ROWS(wide_taps_of)(job, count, shift, GPST_DTYPE_F32, n_taps, block);
}

/* out may be a or b: no restrict, and every element is read ahead of its being written. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(mix)(const float* a, const float* b, const float* f, bool floats, float* out) {
    if (!floats) {
        for (int k = 0; k < GPSTI_BLOCK; k++)
            out[k] = GPSTI_SIMD_FMA(b[k] - a[k], f[k], a[k]);
        return;
    }
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const float left = f[k] < 1.0f ? a[k] * (1.0f - f[k]) : 0.0f, right = f[k] > 0.0f ? b[k] : 0.0f;
        out[k] = GPSTI_SIMD_FMA(right, f[k], left);
    }
}

/* The places are known; NEAREST and BILINEAR into block->value. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sample_wide)(const gpsti_warp_job* job, int32_t count, gpsti_block* block) {
    const bool floats = job->source_dtype != GPST_DTYPE_U16;
    for (uint32_t c = 0; c < job->n_channels; c++) {
        if (job->shift[c] == GPSTI_WARP_CHANNEL_FULL) {
            for (int k = 0; k < GPSTI_BLOCK; k++)
                block->value[c][k] = job->full;
            continue;
        }
        GPSTI_ROWS(wide_taps)(job, count, job->shift[c], block);
        if (job->filter == GPST_FILTER_NEAREST) {
            memcpy(block->value[c], block->wide[0], sizeof block->value[c]);
            continue;
        }
        GPSTI_ROWS(mix)(block->wide[0], block->wide[1], block->fx, floats, block->wide[0]);
        GPSTI_ROWS(mix)(block->wide[2], block->wide[3], block->fx, floats, block->wide[2]);
        GPSTI_ROWS(mix)(block->wide[0], block->wide[2], block->fy, floats, block->value[c]);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(settle)(const gpsti_warp_job* job, gpsti_block* block) {
    for (uint32_t c = 0; c < job->n_channels; c++)
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->value[c][k] = gpsti_warp_settle(job, block->value[c][k]);
}

/* AREA: adds one row of n numbers to the strip. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_add_wide)(const uint8_t* GPSTI_RESTRICT row, gpst_dtype dtype, float weight,
                                                  float* GPSTI_RESTRICT strip, int32_t n) {
    if (dtype == GPST_DTYPE_U16)
        for (int32_t j = 0; j < n; j++)
            strip[j] = GPSTI_SIMD_FMA(weight, gpsti_warp_wide_at(GPST_DTYPE_U16, row + 2 * (ptrdiff_t)j), strip[j]);
    else if (dtype == GPST_DTYPE_F16)
        for (int32_t j = 0; j < n; j++)
            strip[j] = GPSTI_SIMD_FMA(weight, gpsti_warp_wide_at(GPST_DTYPE_F16, row + 2 * (ptrdiff_t)j), strip[j]);
    else
        for (int32_t j = 0; j < n; j++)
            strip[j] = GPSTI_SIMD_FMA(weight, gpsti_warp_wide_at(GPST_DTYPE_F32, row + 4 * (ptrdiff_t)j), strip[j]);
}
