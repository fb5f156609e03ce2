/* kernels/warp/warp_area_rows_internal.h -- the row loop of the filters that go by windows, AREA and the cubics: down
   first, over a strip of neighbouring source pixels, then across; nothing larger than the strip is kept. A template
   beside warp_rows_internal.h, whose macros it uses. Gives the bits of warp_pixel_internal.h. */
/* amalgamate: template */

/* Adds one row of bytes to the strip. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_add_row)(const uint8_t* GPSTI_RESTRICT row, float weight,
                                                 float* GPSTI_RESTRICT strip, int32_t n) {
    for (int32_t j = 0; j < n; j++)
        strip[j] = GPSTI_SIMD_FMA(weight, (float)row[j], strip[j]);
}

/* Adds pixels begin <= x < end of row y of JPEG's planes, two of the taps of each of a block's places. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_add_jpeg)(const gpsti_area_plane* plane, int32_t begin, int32_t end, int32_t y,
                                                  float weight, float* GPSTI_RESTRICT strip) {
    gpsti_block* const block = plane->block;
    for (int32_t x = begin; x < end; x += 2 * GPSTI_BLOCK) {
        const int32_t n = end - x < 2 * GPSTI_BLOCK ? end - x : 2 * GPSTI_BLOCK;
        for (int32_t k = 0; k < GPSTI_BLOCK; k++)
            block->x[k] = x + 2 * k, block->y[k] = y;
        GPSTI_ROWS(gather_jpeg)(plane->jpeg, (n + 1) / 2, block);
        for (int32_t i = 0; i < n; i++, strip += 3) {
            const uint32_t rgb = block->tap[i & 1][i / 2];
            for (int c = 0; c < 3; c++)
                strip[c] = GPSTI_SIMD_FMA(weight, (float)(int32_t)((rgb >> (8 * c)) & 255), strip[c]);
        }
    }
}

/* Pixels begin <= x < end of the rows of a window, summed down; interleaved. All of them are there, but the rows, whose
   edges repeat. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_down)(const gpsti_area_plane* plane, const gpsti_warp_window* down,
                                              int32_t begin, int32_t end, float* strip) {
    const int32_t n = (end - begin) * plane->n_channels;
    const uint8_t* const first =
        plane->data + (ptrdiff_t)begin * plane->n_channels * (ptrdiff_t)gpst_dtype_bytes(plane->dtype);
    memset(strip, 0, (size_t)n * sizeof *strip);
    for (int32_t at = down->begin; at < down->end; at++) {
        const int32_t y = gpsti_area_inside(at, plane->height);
        const uint8_t* const row = first + (ptrdiff_t)(y * plane->pitch);
        const float weight = gpsti_warp_window_weight(down, at);
        if (plane->jpeg)
            GPSTI_ROWS(area_add_jpeg)(plane, begin, end, y, weight, strip);
        else if (plane->dtype == GPST_DTYPE_U8)
            GPSTI_ROWS(area_add_row)(row, weight, strip, n);
        else
            GPSTI_ROWS(area_add_wide)(row, plane->dtype, weight, strip, n);
    }
}

/* Adds pixels begin <= x < end of the strip, of n_channels, to the sums of every output that has them. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(area_across)(const gpsti_warp_window* across, const float* strip, int32_t begin,
                                               int32_t end, int32_t count, int32_t n_channels,
                                               float (*sums)[GPSTI_BLOCK]) {
    for (int32_t k = 0; k < count; k++) {
        const gpsti_warp_window* window = &across[k];
        const int32_t from = window->begin > begin ? window->begin : begin;
        const int32_t to = window->end < end ? window->end : end;
        const float origin = window->origin, step = window->step, norm = window->norm, top = window->top;
        const int32_t cubic_to = top < 0.0f ? to : from;
        const float* pixel = strip + (from - begin) * n_channels;
        float sum[4];
        for (int32_t c = 0; c < n_channels; c++)
            sum[c] = sums[c][k];
        for (int32_t x = from; x < cubic_to; x++, pixel += n_channels) {
            const float distance = gpsti_abs32(GPSTI_SIMD_FMA((float)(x - window->begin), step, origin));
            const float height = GPSTI_WARP_CUBIC(GPSTI_SIMD_FMA, top, distance);
            const float weight = norm > 0.0f ? height * norm : GPSTI_WARP_WHOLE_WEIGHT(height);
            for (int32_t c = 0; c < n_channels; c++)
                sum[c] = GPSTI_SIMD_FMA(weight, pixel[c], sum[c]);
        }
        for (int32_t x = cubic_to > from ? to : from; x < to; x++, pixel += n_channels) {
            const float slope = 1.0f - gpsti_abs32(GPSTI_SIMD_FMA((float)(x - window->begin), step, origin));
            const float height = slope < top ? slope : top;
            const float weight = (height > 0.0f ? height : 0.0f) * norm;
            for (int32_t c = 0; c < n_channels; c++)
                sum[c] = GPSTI_SIMD_FMA(weight, pixel[c], sum[c]);
        }
        for (int32_t c = 0; c < n_channels; c++)
            sums[c][k] = sum[c];
    }
}

/* The sums of a block of one row of a plane, channel by channel. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_plane)(const gpsti_area_plane* plane, const gpsti_area_columns* columns,
                                               const gpsti_warp_window* down, int32_t count, float* strip,
                                               float (*sums)[GPSTI_BLOCK]) {
    const gpsti_warp_window* const across = columns->windows;
    const int32_t last = across[count - 1].end;
    if (!plane->jpeg && GPSTI_ROWS(hot_area)(plane, columns, down, strip, sums))
        return;
    memset(sums, 0, (size_t)plane->n_channels * sizeof sums[0]); /* the rest of a block, too */
    for (int32_t begin = across[0].begin; begin < last; begin += GPSTI_AREA_STRIP) {
        const int32_t end = last - begin < GPSTI_AREA_STRIP ? last : begin + GPSTI_AREA_STRIP;
        const gpsti_area_part part = gpsti_area_part_of(plane, begin, end);
        GPSTI_ROWS(area_down)(plane, down, part.first, part.end, strip + part.at);
        gpsti_area_repeat(&part, plane->n_channels, strip);
        if (plane->n_channels == 1)
            GPSTI_ROWS(area_across)(across, strip, begin, end, count, 1, sums);
        else if (plane->n_channels == 2)
            GPSTI_ROWS(area_across)(across, strip, begin, end, count, 2, sums);
        else if (plane->n_channels == 3)
            GPSTI_ROWS(area_across)(across, strip, begin, end, count, 3, sums);
        else
            GPSTI_ROWS(area_across)(across, strip, begin, end, count, 4, sums);
    }
}

/* The plane of packed pixels, or of luma; of chroma the first of two, or both in one. */
GPSTI_SIMD_INLINE gpsti_area_plane GPSTI_ROWS(plane_of)(const gpsti_warp_job* job, bool chroma, gpsti_block* block) {
    gpsti_area_plane plane;
    plane.jpeg = job->jpeg_across ? job : NULL, plane.block = block;
    plane.dtype = job->source_dtype;
    plane.width = chroma ? job->chroma_width : job->source_width;
    plane.height = chroma ? job->chroma_height : job->source_height;
    plane.data = chroma ? job->cb : job->source, plane.pitch = chroma ? job->chroma_pitch : job->source_pitch;
    plane.n_channels =
        chroma ? job->chroma_step : (int32_t)(job->source_pixel_bytes / gpst_dtype_bytes(job->source_dtype));
    if (plane.jpeg)
        plane.n_channels = 3;
    return plane;
}

/* The samples of a block of one row into block->value. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_sample)(const gpsti_warp_job* job, int32_t y, int32_t count, gpsti_area* area,
                                                gpsti_block* block) {
    const gpsti_warp_window down = gpsti_warp_window_of(&job->down, y);
    gpsti_area_plane plane = GPSTI_ROWS(plane_of)(job, false, block);
    float sums[4][GPSTI_BLOCK];
    if (!job->cb) {
        GPSTI_ROWS(area_plane)(&plane, &area->across, &down, count, area->strip, sums);
        for (uint32_t c = 0; c < job->n_channels; c++) {
            if (job->shift[c] != GPSTI_WARP_CHANNEL_FULL)
                memcpy(block->value[c], sums[job->shift[c] / 8], sizeof block->value[c]);
            for (int k = 0; job->shift[c] == GPSTI_WARP_CHANNEL_FULL && k < GPSTI_BLOCK; k++)
                block->value[c][k] = job->full;
        }
        return;
    }
    const gpsti_warp_window chroma_down = gpsti_warp_window_of(&job->chroma_down, y);
    GPSTI_ROWS(area_plane)(&plane, &area->across, &down, count, area->strip, &block->yuv[0]);
    plane = GPSTI_ROWS(plane_of)(job, true, block);
    GPSTI_ROWS(area_plane)(&plane, &area->chroma_across, &chroma_down, count, area->strip, &block->yuv[1]);
    plane.data = job->cr;
    if (job->chroma_step == 1)
        GPSTI_ROWS(area_plane)(&plane, &area->chroma_across, &chroma_down, count, area->strip, &block->yuv[2]);
    GPSTI_ROWS(colours)(job, block);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_columns)(const gpsti_warp_job* job, const gpsti_warp_axis* axis, bool chroma,
                                                 int32_t x, int32_t count, gpsti_area_columns* columns) {
    const gpsti_area_plane plane = GPSTI_ROWS(plane_of)(job, chroma, NULL);
    for (int32_t k = 0; k < GPSTI_BLOCK; k++)
        columns->windows[k] = k < count ? gpsti_warp_window_of(axis, x + k) : columns->windows[k - 1];
    GPSTI_ROWS(hot_area_columns)(&plane, columns);
}

GPSTI_NOINLINE GPSTI_SIMD_PRIVATE void GPSTI_ROWS(band_area)(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end,
                                                             gpsti_block* block) {
    gpsti_area area;
    for (int32_t x = 0; x < job->width; x += GPSTI_BLOCK) {
        const int32_t count = job->width - x < GPSTI_BLOCK ? job->width - x : GPSTI_BLOCK;
        GPSTI_ROWS(area_columns)(job, &job->across, false, x, count, &area.across);
        if (job->cb)
            GPSTI_ROWS(area_columns)(job, &job->chroma_across, true, x, count, &area.chroma_across);
        for (int32_t k = 0; k < count; k++)
            block->u[k] = gpsti_warp_axis_tap(&job->across, x + k, true).nearest * 32768;
        for (int32_t y = y_begin; y < y_end; y++) {
            const int32_t v = gpsti_warp_axis_tap(&job->down, y, true).nearest * 32768;
            for (int k = 0; k < GPSTI_BLOCK; k++)
                block->v[k] = v;
            GPSTI_ROWS(area_sample)(job, y, count, &area, block);
            GPSTI_ROWS(emit)(job, x, y, count, false, block);
        }
    }
}
