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

/* ---- JPEG's planes -----------------------------------------------------------------
   Rows of neighbouring pixels, two blocks at a time, whole ones so that loops have a fixed count. */
/* Samples first up to first + n of a row of one of the planes of chroma; beyond its edges they repeat. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(jpeg_samples)(const uint8_t* row, int32_t width, int32_t first, int32_t n,
                                                uint8_t* GPSTI_RESTRICT out) {
    const int32_t from = first < 0 ? 0 : first, to = first + n < width ? first + n : width;
    memcpy(out + (from - first), row + from, (size_t)(to - from));
    if (from > first)
        out[0] = out[1];
    if (to < first + n)
        out[to - first] = out[to - first - 1];
}

/* The chroma of n pixels of row y from x on, which is even where a sample is two pixels'. across and down as in
   gpsti_ycc_read. */
GPSTI_SIMD_INLINE void GPSTI_ROWS(jpeg_chroma)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t n,
                                               uint32_t across, uint32_t down, uint32_t* GPSTI_RESTRICT out) {
    enum { MOST = 2 * GPSTI_BLOCK + 2 };
    const ptrdiff_t pitch = (ptrdiff_t)job->chroma_pitch, to_cr = job->chroma_height * pitch;
    const uint8_t* const cb = gpsti_ycc_cb(job, job->source);
    const int32_t first = across == 2 ? x / 2 - 1 : x, n_samples = across == 2 ? (n + 1) / 2 + 2 : n;
    const int n_sums = across == 2 ? GPSTI_BLOCK + 2 : 2 * GPSTI_BLOCK;
    int32_t row_y[2];
    uint8_t samples[2][2][MOST]; /* of the near row and the far one, Cb and Cr */
    uint32_t sums[MOST];
    memset(samples, 0, sizeof samples);
    gpsti_ycc_samples(y, down, job->chroma_height, &row_y[0], &row_y[1]);
    for (uint32_t r = 0; r < down; r++)
        for (int c = 0; c < 2; c++)
            GPSTI_ROWS(jpeg_samples)
            (cb + row_y[r] * pitch + c * to_cr, job->chroma_width, first, n_samples, samples[r][c]);
    for (int k = 0; k < n_sums; k++) {
        const uint32_t near_pair = (uint32_t)samples[0][0][k] | (uint32_t)samples[0][1][k] << 16;
        const uint32_t far_pair = (uint32_t)samples[1][0][k] | (uint32_t)samples[1][1][k] << 16;
        sums[k] = down == 2 ? 3 * near_pair + far_pair : near_pair;
    }
    for (int k = 0; k < GPSTI_BLOCK && across == 2; k++) {
        out[2 * k] = gpsti_ycc_round(3 * sums[k + 1] + sums[k], 0, y, across, down);
        out[2 * k + 1] = gpsti_ycc_round(3 * sums[k + 1] + sums[k + 2], 1, y, across, down);
    }
    for (int k = 0; k < 2 * GPSTI_BLOCK && across == 1; k++)
        out[k] = gpsti_ycc_round(sums[k], 0, y, across, down);
}

/* n pixels of row y from x on as bytes, with some that mean nothing behind them. Where a sample is two pixels', two
   blocks from an even x on; rows of one or two samples are short. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(jpeg_bytes)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t n,
                                               uint8_t bytes[6 * GPSTI_BLOCK + 1]) {
    const int32_t odd = job->jpeg_across == 2 ? x & 1 : 0;
    uint32_t pixels[2 * GPSTI_BLOCK];
    uint8_t luma[2 * GPSTI_BLOCK];
    memset(luma, 0, sizeof luma);
    memcpy(luma + odd, job->source + (ptrdiff_t)(y * job->source_pitch) + x, (size_t)n);
    if (job->jpeg_across == 2 && job->chroma_width <= 2) {
        memset(pixels, 0, sizeof pixels);
        for (int32_t k = 0; k < n; k++)
            pixels[odd + k] = gpsti_ycc_chroma(job, job->source, x + k, y);
    } else if (job->jpeg_across == 2 && job->jpeg_down == 2) {
        GPSTI_ROWS(jpeg_chroma)(job, x - odd, y, n + odd, 2, 2, pixels);
    } else if (job->jpeg_across == 2) {
        GPSTI_ROWS(jpeg_chroma)(job, x - odd, y, n + odd, 2, 1, pixels);
    } else if (job->jpeg_down == 2) {
        GPSTI_ROWS(jpeg_chroma)(job, x, y, n, 1, 2, pixels);
    } else {
        GPSTI_ROWS(jpeg_chroma)(job, x, y, n, 1, 1, pixels);
    }
    for (int k = 0; k < 2 * GPSTI_BLOCK; k++)
        pixels[k] = gpsti_ycc_rgb(pixels[k] | (uint32_t)luma[k] << 8);
    for (int32_t k = odd; k < odd + n; k++, bytes += 3) {
        bytes[0] = (uint8_t)pixels[k], bytes[1] = (uint8_t)(pixels[k] >> 8);
        bytes[2] = (uint8_t)(pixels[k] >> 16), bytes[3] = 0;
    }
}

/* Adds pixels begin <= x < end of row y, and what means nothing behind them. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_add_jpeg)(const gpsti_warp_job* job, int32_t begin, int32_t end, int32_t y,
                                                  float weight, float* GPSTI_RESTRICT strip) {
    uint8_t bytes[6 * GPSTI_BLOCK + 1];
    memset(bytes, 0, sizeof bytes);
    for (int32_t x = begin; x < end;) {
        const int32_t most = 2 * GPSTI_BLOCK - (x & 1), n = end - x < most ? end - x : most;
        GPSTI_ROWS(jpeg_bytes)(job, x, y, n, bytes);
        for (int k = 0; k < 6 * GPSTI_BLOCK; k++)
            strip[k] = GPSTI_SIMD_FMA(weight, (float)bytes[k], strip[k]);
        strip += 3 * n, x += n;
    }
}

/* ---- all sources -------------------------------------------------------------------- */
/* Pixels begin <= x < end of the rows of a window, summed down; interleaved. All of them are there, but the rows, whose
   edges repeat. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_down)(const gpsti_area_plane* plane, const gpsti_warp_window* down,
                                              int32_t begin, int32_t end, float* strip) {
    const int32_t n = (end - begin) * plane->n_channels;
    const uint8_t* const first =
        plane->data + (ptrdiff_t)begin * plane->n_channels * (ptrdiff_t)gpst_dtype_bytes(plane->dtype);
    memset(strip, 0, (size_t)(plane->jpeg ? n + 6 * GPSTI_BLOCK : n) * sizeof *strip);
    for (int32_t at = down->begin; at < down->end; at++) {
        const int32_t y = gpsti_area_inside(at, plane->height);
        const uint8_t* const row = first + (ptrdiff_t)(y * plane->pitch);
        const float weight = gpsti_warp_window_weight(down, at);
        if (plane->jpeg)
            GPSTI_ROWS(area_add_jpeg)(plane->jpeg, begin, end, y, weight, strip);
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
GPSTI_SIMD_INLINE gpsti_area_plane GPSTI_ROWS(plane_of)(const gpsti_warp_job* job, bool chroma) {
    gpsti_area_plane plane;
    plane.jpeg = job->jpeg_across ? job : NULL;
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
    gpsti_area_plane plane = GPSTI_ROWS(plane_of)(job, false);
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
    plane = GPSTI_ROWS(plane_of)(job, true);
    GPSTI_ROWS(area_plane)(&plane, &area->chroma_across, &chroma_down, count, area->strip, &block->yuv[1]);
    plane.data = job->cr;
    if (job->chroma_step == 1)
        GPSTI_ROWS(area_plane)(&plane, &area->chroma_across, &chroma_down, count, area->strip, &block->yuv[2]);
    GPSTI_ROWS(colours)(job, block);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(area_columns)(const gpsti_warp_job* job, const gpsti_warp_axis* axis, bool chroma,
                                                 int32_t x, int32_t count, gpsti_area_columns* columns) {
    const gpsti_area_plane plane = GPSTI_ROWS(plane_of)(job, chroma);
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
