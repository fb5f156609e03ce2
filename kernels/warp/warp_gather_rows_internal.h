/* kernels/warp/warp_gather_rows_internal.h -- the row loop's part that reads the source: the taps of a block, packed
   pixels, each a sample or three or four. A template beside warp_rows_internal.h, whose macros it uses. Gives the bits
   of warp_pixel_internal.h. */
/* amalgamate: template */

/* Away from the borders the four taps are two by two neighbours; pixels of 3 bytes are read as 4, which stays
   inside the row for all but its last one. */
GPSTI_SIMD_INLINE uint32_t GPSTI_ROWS(load)(const uint8_t* p, uint32_t pixel_bytes) {
    if (pixel_bytes == 1)
        return p[0];
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

GPSTI_SIMD_INLINE void GPSTI_ROWS(gather_of)(const gpsti_warp_job* job, int32_t count, uint32_t pixel_bytes,
                                             bool bilinear, gpsti_block* block) {
    const uint8_t* const source = job->source;
    const ptrdiff_t pitch = (ptrdiff_t)job->source_pitch;
    const uint32_t inner_width = job->source_width > 2 ? (uint32_t)job->source_width - 2 : 0;
    const uint32_t inner_height = (uint32_t)job->source_height - 1;
    for (int32_t k = 0; k < count; k++) {
        const int32_t x = block->x[k], y = block->y[k];
        if ((uint32_t)x < inner_width && (uint32_t)y < inner_height) {
            const uint8_t* p = source + y * pitch + (ptrdiff_t)x * (ptrdiff_t)pixel_bytes;
            block->tap[0][k] = GPSTI_ROWS(load)(p, pixel_bytes);
            if (bilinear) {
                block->tap[1][k] = GPSTI_ROWS(load)(p + pixel_bytes, pixel_bytes);
                block->tap[2][k] = GPSTI_ROWS(load)(p + pitch, pixel_bytes);
                block->tap[3][k] = GPSTI_ROWS(load)(p + pitch + pixel_bytes, pixel_bytes);
            }
        } else {
            for (int32_t t = 0; t < (bilinear ? 4 : 1); t++)
                block->tap[t][k] = gpsti_warp_read(job, x + (t & 1), y + (t >> 1));
        }
    }
}

GPSTI_SIMD_INLINE void GPSTI_ROWS(jpeg_read)(const gpsti_warp_job* job, int32_t count, uint32_t across, uint32_t down,
                                             const gpsti_block* block, gpsti_ycc_block* words) {
    for (int32_t k = 0; k < count; k++) {
        gpsti_ycc_words one;
        if (!gpsti_ycc_is_inner(job, block->x[k], block->y[k], across, down)) {
            words->outer[words->n_outer++] = k;
            continue;
        }
        gpsti_ycc_read(job, job->source, block->x[k], block->y[k], across, down, &one);
        for (int r = 0; r < 2; r++)
            words->luma[r][k] = one.luma[r];
        for (int r = 0; r < 3; r++)
            words->cb[r][k] = one.cb[r], words->cr[r][k] = one.cr[r];
    }
}

GPSTI_SIMD_INLINE void GPSTI_ROWS(jpeg_four)(const gpsti_ycc_block* words, uint32_t across, uint32_t down,
                                             gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const gpsti_ycc_words one = {{words->luma[0][k], words->luma[1][k]},
                                      {words->cb[0][k], words->cb[1][k], words->cb[2][k]},
                                      {words->cr[0][k], words->cr[1][k], words->cr[2][k]}};
        uint32_t pixel[4];
        gpsti_ycc_four(&one, block->x[k], block->y[k], across, down, pixel);
        block->tap[0][k] = pixel[0], block->tap[1][k] = pixel[1];
        block->tap[2][k] = pixel[2], block->tap[3][k] = pixel[3];
    }
}

GPSTI_SIMD_INLINE void GPSTI_ROWS(jpeg_taps)(const gpsti_warp_job* job, int32_t count, uint32_t across, uint32_t down,
                                             gpsti_block* block, gpsti_ycc_block* words) {
    GPSTI_ROWS(jpeg_read)(job, count, across, down, block, words);
    GPSTI_ROWS(jpeg_four)(words, across, down, block);
}

/* Of JPEG's planes: words pixel by pixel, then everything else for the whole block; what is at an edge by itself. */
GPSTI_NOINLINE GPSTI_SIMD_PRIVATE void GPSTI_ROWS(gather_jpeg)(const gpsti_warp_job* job, int32_t count,
                                                               gpsti_block* block) {
    gpsti_ycc_block words;
    if (job->filter == GPST_FILTER_NEAREST) {
        for (int32_t k = 0; k < count; k++)
            block->tap[0][k] = gpsti_warp_read(job, block->x[k], block->y[k]);
        return;
    }
    memset(&words, 0, sizeof words);
    if (job->jpeg_across == 2 && job->jpeg_down == 2)
        GPSTI_ROWS(jpeg_taps)(job, count, 2, 2, block, &words);
    else if (job->jpeg_across == 2)
        GPSTI_ROWS(jpeg_taps)(job, count, 2, 1, block, &words);
    else if (job->jpeg_down == 2)
        GPSTI_ROWS(jpeg_taps)(job, count, 1, 2, block, &words);
    else
        GPSTI_ROWS(jpeg_taps)(job, count, 1, 1, block, &words);
    for (int t = 0; t < 4; t++)
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->tap[t][k] = gpsti_ycc_rgb(block->tap[t][k]);
    for (int32_t i = 0; i < words.n_outer; i++)
        for (int32_t t = 0, k = words.outer[i]; t < 4; t++)
            block->tap[t][k] = gpsti_warp_read(job, block->x[k] + (t & 1), block->y[k] + (t >> 1));
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(gather)(const gpsti_warp_job* job, int32_t count, gpsti_block* block) {
    const bool bilinear = job->filter == GPST_FILTER_BILINEAR;
    if (job->jpeg_across)
        GPSTI_ROWS(gather_jpeg)(job, count, block);
    else if (job->source_pixel_bytes == 1 && bilinear)
        GPSTI_ROWS(gather_of)(job, count, 1, true, block);
    else if (job->source_pixel_bytes == 3 && bilinear)
        GPSTI_ROWS(gather_of)(job, count, 3, true, block);
    else if (job->source_pixel_bytes == 4 && bilinear)
        GPSTI_ROWS(gather_of)(job, count, 4, true, block);
    else if (job->source_pixel_bytes == 1)
        GPSTI_ROWS(gather_of)(job, count, 1, false, block);
    else if (job->source_pixel_bytes == 3)
        GPSTI_ROWS(gather_of)(job, count, 3, false, block);
    else
        GPSTI_ROWS(gather_of)(job, count, 4, false, block);
}
