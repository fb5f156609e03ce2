/* kernels/warp/warp_hot_area_internal.h -- the filters that go by windows, of bytes by axes, in vector instructions: a
   step of neighbouring bytes down at once, then four output pixels across, a channel in each 32 bits. A template inside
   warp_hot_internal.h, whose macros it uses. Gives the bits of warp_pixel_internal.h. */
/* amalgamate: template */

/* What a block's columns have in common with every row; n_taps 0 where windows are too wide for it. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(hot_area_columns)(const gpsti_area_plane* plane, gpsti_area_columns* columns) {
    const int32_t span = columns->windows[GPSTI_BLOCK - 1].end - columns->windows[0].begin;
    columns->n_taps = 0;
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const int32_t n_taps = columns->windows[k].end - columns->windows[k].begin;
        columns->n_taps = n_taps > columns->n_taps ? n_taps : columns->n_taps;
    }
    if (plane->dtype != GPST_DTYPE_U8 || columns->n_taps > GPSTI_AREA_TAPS || span > GPSTI_AREA_STRIP)
        columns->n_taps = 0;
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const gpsti_warp_window* const window = &columns->windows[k];
        for (int32_t t = 0; t < columns->n_taps; t++)
            columns->weights[k][t] =
                window->begin + t < window->end ? gpsti_warp_window_weight(window, window->begin + t) : 0.0f;
    }
}

/* n bytes from `first` on in each row of the window, summed down. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_area_down)(const uint8_t* first, int64_t pitch, const gpsti_warp_window* down,
                                                 int32_t n, float* strip) {
    for (int32_t y = down->begin; y < down->end; y += GPSTI_AREA_TAPS) {
        const int32_t n_rows = down->end - y < GPSTI_AREA_TAPS ? down->end - y : GPSTI_AREA_TAPS;
        const uint8_t* const row = first + (ptrdiff_t)(y * pitch);
        float weights[GPSTI_AREA_TAPS];
        int32_t j = 0;
        for (int32_t i = 0; i < n_rows; i++)
            weights[i] = gpsti_warp_window_weight(down, y + i);
        for (; j + GPSTI_HOT_STEP <= n; j += GPSTI_HOT_STEP) {
            GPSTI_SIMD_FLOATS sum =
                y == down->begin ? GPSTI_SIMD_OP(set1_ps)(0.0f) : GPSTI_SIMD_OP(loadu_ps)(strip + j);
            for (int32_t i = 0; i < n_rows; i++)
                sum = GPSTI_SIMD_OP(fmadd_ps)(
                    GPSTI_SIMD_OP(set1_ps)(weights[i]),
                    GPSTI_SIMD_OP(cvtepi32_ps)(GPSTI_HOT_WIDEN(row + i * (ptrdiff_t)pitch + j)), sum);
            GPSTI_SIMD_OP(storeu_ps)(strip + j, sum);
        }
        for (; j < n; j++) {
            float sum = y == down->begin ? 0.0f : strip[j];
            for (int32_t i = 0; i < n_rows; i++)
                sum = GPSTI_SIMD_FMA(weights[i], (float)row[i * (ptrdiff_t)pitch + j], sum);
            strip[j] = sum;
        }
    }
}

/* Behind the strip lie zeros for the taps of weight 0. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_area_across)(const gpsti_area_columns* columns, const float* strip,
                                                   int32_t n_channels, float (*sums)[GPSTI_BLOCK]) {
    const int32_t n_taps = columns->n_taps;
    for (int32_t k = 0; k < GPSTI_BLOCK; k += 4) {
        __m128 sum[4];
        const float* pixel[4];
        for (int i = 0; i < 4; i++) {
            pixel[i] = strip + (columns->windows[k + i].begin - columns->windows[0].begin) * n_channels;
            sum[i] = _mm_setzero_ps();
        }
        for (int32_t t = 0; t < n_taps; t++)
            for (int i = 0; i < 4; i++)
                sum[i] = _mm_fmadd_ps(_mm_set1_ps(columns->weights[k + i][t]), _mm_loadu_ps(pixel[i] + t * n_channels),
                                      sum[i]);
        _MM_TRANSPOSE4_PS(sum[0], sum[1], sum[2], sum[3]);
        for (int32_t c = 0; c < n_channels; c++)
            _mm_storeu_ps(sums[c] + k, sum[c]);
    }
}

/* The sums of a block of one row of a plane, channel by channel; false: not these columns. */
GPSTI_SIMD_PRIVATE bool GPSTI_ROWS(hot_area)(const gpsti_area_plane* plane, const gpsti_area_columns* columns,
                                             const gpsti_warp_window* down, float* strip, float (*sums)[GPSTI_BLOCK]) {
    const int32_t begin = columns->windows[0].begin, end = columns->windows[GPSTI_BLOCK - 1].end;
    const int32_t n_channels = plane->n_channels;
    const gpsti_area_part part = gpsti_area_part_of(plane, begin, end);
    if (!columns->n_taps || down->begin < 0 || down->end > plane->height)
        return false;
    GPSTI_ROWS(hot_area_down)
    (plane->data + (ptrdiff_t)part.first * n_channels, plane->pitch, down, (part.end - part.first) * n_channels,
     strip + part.at);
    gpsti_area_repeat(&part, n_channels, strip);
    memset(strip + (end - begin) * n_channels, 0, GPSTI_AREA_PAD * sizeof *strip);
    if (n_channels == 1)
        GPSTI_ROWS(hot_area_across)(columns, strip, 1, sums);
    else if (n_channels == 2)
        GPSTI_ROWS(hot_area_across)(columns, strip, 2, sums);
    else if (n_channels == 3)
        GPSTI_ROWS(hot_area_across)(columns, strip, 3, sums);
    else
        GPSTI_ROWS(hot_area_across)(columns, strip, 4, sums);
    return true;
}
