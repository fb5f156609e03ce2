/* kernels/mask/mask_window_rows_internal.h -- windows of pixels over a tile, row by
   row, so that compilers vectorise them. A template: mask_window_cpu.c includes it once for each level of the machine.
   Gives the bits of mask_pixel_internal.h; integers only. */
/* amalgamate: template */
/* A tile's row holds GPSTI_WINDOW_ROW pixels, the tile's own from GPSTI_WINDOW_LEFT on. What is computed of a row is
   always GPSTI_WINDOW_SPAN pixels from GPSTI_WINDOW_LEFT / 2 on: the tile's own and enough to both sides. */

/* ---- morphology ------------------------------------------------------------------------ */
GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(most_of_three)(const uint8_t* GPSTI_RESTRICT a, const uint8_t* GPSTI_RESTRICT b,
                                                    const uint8_t* GPSTI_RESTRICT c, uint8_t* GPSTI_RESTRICT out) {
    for (int k = 0; k < GPSTI_WINDOW_SPAN; k++) {
        const uint8_t ab = a[k] > b[k] ? a[k] : b[k];
        out[k] = ab > c[k] ? ab : c[k];
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(most_of_two)(const uint8_t* GPSTI_RESTRICT a, const uint8_t* GPSTI_RESTRICT b,
                                                  uint8_t* GPSTI_RESTRICT inout) {
    for (int k = 0; k < GPSTI_WINDOW_SPAN; k++) {
        const uint8_t ab = a[k] > b[k] ? a[k] : b[k];
        inout[k] = ab > inout[k] ? ab : inout[k];
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(flip)(uint8_t* row) {
    for (int k = 0; k < GPSTI_WINDOW_ROW; k++)
        row[k] ^= 255;
}

/* Dilates rows first up to end of one plane of the tile into the other: down into a row of its own, then across. */
GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(dilate)(gpsti_window_tile* tile, int32_t from, int32_t first, int32_t end,
                                             int32_t radius) {
    uint8_t down[GPSTI_WINDOW_ROW];
    const int left = GPSTI_WINDOW_LEFT / 2;
    memset(down, 0, sizeof down);
    for (int32_t y = first; y < end; y++) {
        uint8_t* out = tile->bytes[1 - from][y] + left;
        GPSTI_WINDOW(most_of_three)
        (tile->bytes[from][y - 1] + left, tile->bytes[from][y] + left, tile->bytes[from][y + 1] + left, down + left);
        if (radius == 2)
            GPSTI_WINDOW(most_of_two)(tile->bytes[from][y - 2] + left, tile->bytes[from][y + 2] + left, down + left);
        GPSTI_WINDOW(most_of_three)(down + left - 1, down + left, down + left + 1, out);
        if (radius == 2)
            GPSTI_WINDOW(most_of_two)(down + left - 2, down + left + 2, out);
    }
}

/* Zero what lies outside the image: nothing is dilated from there. */
GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(clip)(gpsti_window_tile* tile, int32_t plane) {
    for (int32_t y = 0; y < GPSTI_WINDOW_ALL_ROWS; y++) {
        uint8_t* row = tile->bytes[plane][y];
        if (y < tile->cover.row_first || y >= tile->cover.row_end) {
            memset(row, 0, GPSTI_WINDOW_ROW);
        } else {
            memset(row, 0, (size_t)tile->cover.column_first);
            memset(row + tile->cover.column_end, 0, (size_t)(GPSTI_WINDOW_ROW - tile->cover.column_end));
        }
    }
}

/* Eroding is dilating what is out, and opening is closing it: so there is one operation. */
GPSTI_SIMD_PRIVATE int32_t GPSTI_WINDOW(morph)(const gpsti_window_job* job, gpsti_window_tile* tile) {
    const bool twice = job->op == GPSTI_WINDOW_OPEN || job->op == GPSTI_WINDOW_CLOSE;
    const bool flipped = job->op == GPSTI_WINDOW_ERODE || job->op == GPSTI_WINDOW_OPEN;
    const int32_t r = job->radius, top = GPSTI_WINDOW_TOP, bottom = GPSTI_WINDOW_TOP + GPSTI_WINDOW_ROWS;
    for (int32_t y = 0; y < GPSTI_WINDOW_ALL_ROWS; y++) {
        uint8_t* row = tile->bytes[0][y];
        for (int k = 0; k < GPSTI_WINDOW_ROW; k++)
            row[k] = row[k] != 0 ? 255 : 0;
        if (flipped)
            GPSTI_WINDOW(flip)(row);
    }
    GPSTI_WINDOW(clip)(tile, 0);
    GPSTI_WINDOW(dilate)(tile, 0, twice ? top - r : top, twice ? bottom + r : bottom, r);
    if (twice) {
        for (int32_t y = 0; y < GPSTI_WINDOW_ALL_ROWS; y++)
            GPSTI_WINDOW(flip)(tile->bytes[1][y]);
        GPSTI_WINDOW(clip)(tile, 1);
        GPSTI_WINDOW(dilate)(tile, 1, top, bottom, r);
    }
    for (int32_t y = top; flipped != twice && y < bottom; y++)
        GPSTI_WINDOW(flip)(tile->bytes[twice ? 0 : 1][y]);
    return twice ? 0 : 1;
}

/* ---- smoothing ------------------------------------------------------------------------------ */
GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(add_bytes)(const uint8_t* GPSTI_RESTRICT a, const uint8_t* GPSTI_RESTRICT b,
                                                uint16_t weight, uint16_t* GPSTI_RESTRICT sum) {
    for (int k = 0; k < GPSTI_WINDOW_ROW; k++)
        sum[k] = (uint16_t)(sum[k] + (uint16_t)(a[k] + b[k]) * weight);
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(add_sums)(const uint16_t* GPSTI_RESTRICT a, const uint16_t* GPSTI_RESTRICT b,
                                               uint16_t weight, uint16_t* GPSTI_RESTRICT sum) {
    for (int k = 0; k < GPSTI_WINDOW_SPAN; k++)
        sum[k] = (uint16_t)(sum[k] + (uint16_t)(a[k] + b[k]) * weight);
}

/* (sum + half) / weights as (sum + half) * factor / 2^(16 + shift), which is the same for every sum there can be. */
GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(divide)(const uint16_t* GPSTI_RESTRICT sum, uint16_t half, uint16_t factor,
                                             uint32_t shift, uint8_t* GPSTI_RESTRICT out) {
    for (int k = 0; k < GPSTI_WINDOW_SPAN; k++) {
        const uint16_t value = (uint16_t)(sum[k] + half);
        out[k] = (uint8_t)((((uint32_t)value * factor) >> 16) >> shift);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(smooth)(const gpsti_window_job* job, gpsti_window_tile* tile) {
    /* of box 3, box 5, Gaussian 3, Gaussian 5: weights of the middle (halved, for it is added to itself), the next and
       the next; half the sum of weights; the factor and shift that divide by the sum */
    static const uint16_t rules[4][6] = {
        {0, 1, 0, 4, 7282, 0}, {0, 1, 1, 12, 20972, 3}, {1, 1, 0, 8, 4096, 0}, {3, 4, 1, 128, 256, 0}};
    const bool box = job->op == GPSTI_WINDOW_BOX;
    const uint16_t* rule = rules[(box ? 0 : 2) + job->radius - 1];
    const int left = GPSTI_WINDOW_LEFT / 2;
    uint16_t down[GPSTI_WINDOW_ROW], across[GPSTI_WINDOW_ROW];
    for (int32_t y = GPSTI_WINDOW_TOP; y < GPSTI_WINDOW_TOP + GPSTI_WINDOW_ROWS; y++) {
        for (int k = 0; k < GPSTI_WINDOW_ROW; k++)
            down[k] = box ? tile->bytes[0][y][k] : 0;
        if (!box)
            GPSTI_WINDOW(add_bytes)(tile->bytes[0][y], tile->bytes[0][y], rule[0], down);
        for (int32_t r = 1; r <= job->radius; r++)
            GPSTI_WINDOW(add_bytes)(tile->bytes[0][y - r], tile->bytes[0][y + r], rule[r], down);
        for (int k = 0; k < GPSTI_WINDOW_ROW; k++)
            across[k] = box ? down[k] : 0;
        if (!box)
            GPSTI_WINDOW(add_sums)(down + left, down + left, rule[0], across + left);
        for (int32_t r = 1; r <= job->radius; r++)
            GPSTI_WINDOW(add_sums)(down + left - r, down + left + r, rule[r], across + left);
        GPSTI_WINDOW(divide)(across + left, rule[3], rule[4], rule[5], tile->bytes[1][y] + left);
    }
}

/* ---- refinement ---------------------------------------------------------------------------------
   Logic in 16 bits: all ones is true. */
GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(similar)(const uint8_t* GPSTI_RESTRICT own, const uint8_t* GPSTI_RESTRICT other,
                                              uint8_t tolerance, uint16_t* GPSTI_RESTRICT votes) {
    for (int k = 0; k < GPSTI_WINDOW_SPAN; k++) {
        const uint8_t high = own[k] > other[k] ? own[k] : other[k], low = own[k] > other[k] ? other[k] : own[k];
        votes[k] &= (uint8_t)(high - low) <= tolerance ? 0xffff : 0;
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(inside)(const uint8_t* GPSTI_RESTRICT inside, uint16_t* GPSTI_RESTRICT votes) {
    for (int k = 0; k < GPSTI_WINDOW_SPAN; k++)
        votes[k] = inside[k] ? 0xffff : 0;
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(count)(const uint16_t* GPSTI_RESTRICT label, const uint16_t* GPSTI_RESTRICT other,
                                            const uint16_t* GPSTI_RESTRICT votes, uint16_t* GPSTI_RESTRICT count) {
    for (int k = 0; k < GPSTI_WINDOW_SPAN; k++)
        count[k] = (uint16_t)(count[k] + ((label[k] == other[k] ? 1 : 0) & votes[k]));
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(elect)(const uint16_t* GPSTI_RESTRICT other, const uint16_t* GPSTI_RESTRICT votes,
                                            const uint16_t* GPSTI_RESTRICT count,
                                            const uint16_t* GPSTI_RESTRICT own_count, uint16_t* GPSTI_RESTRICT most,
                                            uint16_t* GPSTI_RESTRICT label) {
    for (int k = 0; k < GPSTI_WINDOW_SPAN; k++) {
        const uint16_t more = count[k] > most[k] ? 0xffff : 0, same = count[k] == most[k] ? 0xffff : 0;
        const uint16_t beaten = most[k] > own_count[k] ? 0xffff : 0, lower = other[k] < label[k] ? 0xffff : 0;
        const uint16_t takes = (uint16_t)(votes[k] & (more | (same & beaten & lower)));
        most[k] = (uint16_t)((count[k] & takes) | (most[k] & ~takes));
        label[k] = (uint16_t)((other[k] & takes) | (label[k] & ~takes));
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(refine_row)(const gpsti_window_job* job, gpsti_refine_tile* tile, int32_t y) {
    uint16_t votes[9][GPSTI_WINDOW_SPAN], count[9][GPSTI_WINDOW_SPAN], most[GPSTI_WINDOW_SPAN];
    const uint16_t* labels[9];
    const int left = GPSTI_WINDOW_LEFT / 2;
    uint16_t* out = tile->elected + left;
    for (int j = 0; j < 9; j++) {
        const int32_t at_y = y + j / 3 - 1, at_x = left + j % 3 - 1;
        labels[j] = tile->labels[at_y] + at_x;
        GPSTI_WINDOW(inside)(tile->inside[at_y] + at_x, votes[j]);
        for (int32_t c = 0; c < job->guide_channels; c++)
            GPSTI_WINDOW(similar)
            (tile->guide[c][y] + left, tile->guide[c][at_y] + at_x, (uint8_t)job->tolerance, votes[j]);
    }
    memset(count, 0, sizeof count);
    for (int i = 0; i < 9; i++)
        for (int j = 0; j < 9; j++)
            GPSTI_WINDOW(count)(labels[i], labels[j], votes[j], count[i]);
    memcpy(most, count[4], sizeof most);
    memcpy(out, labels[4], GPSTI_WINDOW_SPAN * sizeof *out);
    for (int i = 0; i < 9; i++)
        GPSTI_WINDOW(elect)(labels[i], votes[i], count[i], count[4], most, out);
}

/* ---- a tile ---------------------------------------------------------------------------------------- */
GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(refine)(const gpsti_window_job* job, int32_t x, int32_t y, int32_t y_end,
                                             gpsti_refine_tile* tile) {
    gpsti_window_load_labels(job, x, y, tile);
    for (int32_t row = y; row < y_end; row++) {
        GPSTI_WINDOW(refine_row)(job, tile, GPSTI_REFINE_TOP + row - y);
        gpsti_window_store_labels(job, x, row, tile);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_WINDOW(tile)(const gpsti_window_job* job, int32_t x, int32_t y, int32_t y_end,
                                           gpsti_window_tiles* tiles) {
    gpsti_window_tile* const tile = &tiles->bytes;
    if (job->op == GPSTI_WINDOW_REFINE) {
        GPSTI_WINDOW(refine)(job, x, y, y_end, &tiles->refine);
        return;
    }
    gpsti_window_load_bytes(job, x, y, tile);
    if (job->op == GPSTI_WINDOW_BOX || job->op == GPSTI_WINDOW_GAUSSIAN) {
        gpsti_window_repeat_edges(tile);
        GPSTI_WINDOW(smooth)(job, tile);
        gpsti_window_store_bytes(job, x, y, y_end, tile, 1);
    } else {
        gpsti_window_store_bytes(job, x, y, y_end, tile, GPSTI_WINDOW(morph)(job, tile));
    }
}

#undef GPSTI_SIMD_LEVEL
