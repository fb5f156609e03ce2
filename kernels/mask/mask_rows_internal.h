/* kernels/mask/mask_rows_internal.h -- the row loops of the mask operations over
   blocks of pixels, so that compilers vectorise them. A template: mask_cpu.c includes it once for each level of the
   machine. Gives the bits of mask_pixel_internal.h; obeys exact_internal.h. */
/* amalgamate: template */
/* ---- argmax: one class, or four, meet the best so far -------------------------------
   Lower classes come first and only a greater score wins, so ties go to the lowest. NaN is never greater. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(meet)(const float* GPSTI_RESTRICT a, int32_t label, uint32_t n_blocks,
                                         float* GPSTI_RESTRICT best, int32_t* GPSTI_RESTRICT index) {
    for (; n_blocks > 0; n_blocks--, a += GPSTI_MASK_BLOCK, best += GPSTI_MASK_BLOCK, index += GPSTI_MASK_BLOCK) {
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
            index[k] = a[k] > best[k] ? label : index[k];
            best[k] = a[k] > best[k] ? a[k] : best[k];
        }
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(meet_block)(const float* GPSTI_RESTRICT a, const float* GPSTI_RESTRICT b,
                                               const float* GPSTI_RESTRICT c, const float* GPSTI_RESTRICT d,
                                               int32_t label, float* GPSTI_RESTRICT best,
                                               int32_t* GPSTI_RESTRICT index) {
    for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
        float value = best[k];
        int32_t found = index[k];
        found = a[k] > value ? label : found;
        value = a[k] > value ? a[k] : value;
        found = b[k] > value ? label + 1 : found;
        value = b[k] > value ? b[k] : value;
        found = c[k] > value ? label + 2 : found;
        value = c[k] > value ? c[k] : value;
        found = d[k] > value ? label + 3 : found;
        value = d[k] > value ? d[k] : value;
        best[k] = value;
        index[k] = found;
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(meet_four)(const float* const four[4], int32_t label, uint32_t n_blocks, float* best,
                                              int32_t* index) {
    for (size_t at = 0; at < (size_t)n_blocks * GPSTI_MASK_BLOCK; at += GPSTI_MASK_BLOCK)
        GPSTI_MASK(meet_block)(four[0] + at, four[1] + at, four[2] + at, four[3] + at, label, best + at, index + at);
}

/* Halves by their keys. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(meet_half)(const uint16_t* GPSTI_RESTRICT a, uint16_t label, uint32_t n_blocks,
                                              int16_t* GPSTI_RESTRICT best, uint16_t* GPSTI_RESTRICT index) {
    for (; n_blocks > 0; n_blocks--, a += GPSTI_MASK_BLOCK, best += GPSTI_MASK_BLOCK, index += GPSTI_MASK_BLOCK) {
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
            const int16_t key = gpsti_f16_key(a[k]);
            index[k] = key > best[k] ? label : index[k];
            best[k] = key > best[k] ? key : best[k];
        }
    }
}

/* ---- argmax: labels out ----------------------------------------------------------------- */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(labels_u8)(const int32_t* GPSTI_RESTRICT index, uint32_t count,
                                              uint8_t* GPSTI_RESTRICT out) {
    uint8_t last[GPSTI_MASK_BLOCK];
    for (; count >= GPSTI_MASK_BLOCK; count -= GPSTI_MASK_BLOCK, index += GPSTI_MASK_BLOCK, out += GPSTI_MASK_BLOCK)
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++)
            out[k] = (uint8_t)index[k];
    for (int k = 0; count > 0 && k < GPSTI_MASK_BLOCK; k++)
        last[k] = (uint8_t)index[k];
    if (count > 0)
        memcpy(out, last, count);
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(labels_u16)(const int32_t* GPSTI_RESTRICT index, uint32_t count, uint8_t* out) {
    for (uint32_t begin = 0; begin < count; begin += GPSTI_MASK_BLOCK) {
        const uint32_t n = count - begin < GPSTI_MASK_BLOCK ? count - begin : GPSTI_MASK_BLOCK;
        uint16_t block[GPSTI_MASK_BLOCK];
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++)
            block[k] = (uint16_t)index[begin + (uint32_t)k];
        memcpy(out + (size_t)begin * sizeof *block, block, n * sizeof *block);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(store)(const gpsti_argmax_job* job, uint32_t x, uint32_t y, const int32_t* index,
                                          uint32_t count) {
    uint8_t* row = job->output + (ptrdiff_t)(y * job->output_pitch);
    if (job->wide)
        GPSTI_MASK(labels_u16)(index, count, row + (size_t)x * sizeof(uint16_t));
    else
        GPSTI_MASK(labels_u8)(index, count, row + x);
}

/* Scores that are all NaN or -inf left the label at 0, but -inf wins over NaN. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(settle)(const gpsti_argmax_job* job, uint32_t x, uint32_t y, uint32_t count,
                                           const gpsti_argmax_run* run, int32_t* index) {
    uint32_t n_open = 0;
    for (uint32_t k = 0; k < count; k++)
        n_open += run->best.floats[k] < -FLT_MAX ? 1 : 0;
    for (uint32_t k = 0; n_open > 0 && k < count; k++)
        if (run->best.floats[k] < -FLT_MAX)
            index[k] = (int32_t)gpsti_argmax_pixel(job, x + k, y);
}

/* ---- argmax: planes ---------------------------------------------------------------------
   count pixels, at most GPSTI_MASK_RUN, class by class in place; what is left after whole blocks goes through a
   copy, so that nothing past it is read. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(planes)(const gpsti_argmax_job* job, uint32_t x, uint32_t y, uint32_t count,
                                           gpsti_argmax_run* run) {
    const uint8_t* p = job->source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)(x * job->pixel_bytes);
    const uint32_t n_blocks = count / GPSTI_MASK_BLOCK, whole = n_blocks * GPSTI_MASK_BLOCK;
    const size_t step = (size_t)job->class_bytes, rest_bytes = (count - whole) * sizeof(float);
    uint32_t c = 0;
    for (uint32_t k = 0; k < whole + GPSTI_MASK_BLOCK; k++) {
        run->best.floats[k] = GPSTI_MASK_LOWEST;
        run->index[k] = 0;
    }
    for (; c + 4 <= job->n_classes; c += 4, p += 4 * step)
        for (int part = 0; part < 2; part++) {
            const float* four[4];
            for (int i = 0; i < 4; i++) {
                four[i] = (const float*)(const void*)(p + (size_t)i * step);
                if (part && rest_bytes)
                    four[i] = (const float*)memcpy(run->copy.floats[i], four[i] + whole, rest_bytes);
            }
            const uint32_t at = part ? whole : 0, n = part ? (rest_bytes ? 1 : 0) : n_blocks;
            GPSTI_MASK(meet_four)(four, (int32_t)c, n, run->best.floats + at, run->index + at);
        }
    for (; c < job->n_classes; c++, p += step) {
        const float* plane = (const float*)(const void*)p;
        GPSTI_MASK(meet)(plane, (int32_t)c, n_blocks, run->best.floats, run->index);
        if (rest_bytes) {
            memcpy(run->copy.floats[0], plane + whole, rest_bytes);
            GPSTI_MASK(meet)(run->copy.floats[0], (int32_t)c, 1, run->best.floats + whole, run->index + whole);
        }
    }
    GPSTI_MASK(settle)(job, x, y, count, run, run->index);
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(half_begin)(uint32_t n_blocks, gpsti_argmax_run* run) {
    for (uint32_t k = 0; k < n_blocks * GPSTI_MASK_BLOCK; k++) {
        run->best.halves.keys[k] = INT16_MIN;
        run->best.halves.index[k] = 0;
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(half_end)(uint32_t n_blocks, gpsti_argmax_run* run) {
    for (uint32_t k = 0; k < n_blocks * GPSTI_MASK_BLOCK; k++)
        run->index[k] = run->best.halves.index[k];
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(planes_half)(const gpsti_argmax_job* job, uint32_t x, uint32_t y, uint32_t count,
                                                gpsti_argmax_run* run) {
    const uint8_t* p = job->source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)(x * job->pixel_bytes);
    const uint32_t n_blocks = count / GPSTI_MASK_BLOCK, whole = n_blocks * GPSTI_MASK_BLOCK;
    const size_t rest_bytes = (count - whole) * sizeof(uint16_t);
    GPSTI_MASK(half_begin)(n_blocks + 1, run);
    for (uint32_t c = 0; c < job->n_classes; c++, p += job->class_bytes) {
        const uint16_t* plane = (const uint16_t*)(const void*)p;
        GPSTI_MASK(meet_half)(plane, (uint16_t)c, n_blocks, run->best.halves.keys, run->best.halves.index);
        if (rest_bytes) {
            memcpy(run->copy.halves[0], plane + whole, rest_bytes);
            GPSTI_MASK(meet_half)
            (run->copy.halves[0], (uint16_t)c, 1, run->best.halves.keys + whole, run->best.halves.index + whole);
        }
    }
    GPSTI_MASK(half_end)(n_blocks + 1, run);
}

/* ---- argmax: interleaved scores -----------------------------------------------------------
   Up to GPSTI_MASK_CLASSES classes of a block at a time are turned into planes. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(pixels)(const gpsti_argmax_job* job, uint32_t x, uint32_t y, uint32_t count,
                                           gpsti_argmax_run* run) {
    const uint8_t* p = job->source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)(x * job->pixel_bytes);
    const float* scores = (const float*)(const void*)p;
    const size_t step = job->n_classes;
    for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
        run->best.floats[k] = GPSTI_MASK_LOWEST;
        run->index[k] = 0;
    }
    for (uint32_t c = 0; c < job->n_classes; c += GPSTI_MASK_CLASSES, scores += GPSTI_MASK_CLASSES) {
        const uint32_t left = job->n_classes - c, n = left < GPSTI_MASK_CLASSES ? left : GPSTI_MASK_CLASSES;
        uint32_t i = 0;
        for (uint32_t k = 0; k < count; k++)
            for (i = 0; i < n; i++)
                run->copy.floats[i][k] = scores[k * step + i];
        for (i = 0; i + 4 <= n; i += 4) {
            const float* const four[4] = {run->copy.floats[i], run->copy.floats[i + 1], run->copy.floats[i + 2],
                                          run->copy.floats[i + 3]};
            GPSTI_MASK(meet_four)(four, (int32_t)(c + i), 1, run->best.floats, run->index);
        }
        for (; i < n; i++)
            GPSTI_MASK(meet)(run->copy.floats[i], (int32_t)(c + i), 1, run->best.floats, run->index);
    }
    GPSTI_MASK(settle)(job, x, y, count, run, run->index);
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(pixels_half)(const gpsti_argmax_job* job, uint32_t x, uint32_t y, uint32_t count,
                                                gpsti_argmax_run* run) {
    const uint8_t* p = job->source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)(x * job->pixel_bytes);
    const uint16_t* scores = (const uint16_t*)(const void*)p;
    const size_t step = job->n_classes;
    GPSTI_MASK(half_begin)(1, run);
    for (uint32_t c = 0; c < job->n_classes; c += GPSTI_MASK_CLASSES, scores += GPSTI_MASK_CLASSES) {
        const uint32_t left = job->n_classes - c, n = left < GPSTI_MASK_CLASSES ? left : GPSTI_MASK_CLASSES;
        for (uint32_t k = 0; k < count; k++)
            for (uint32_t i = 0; i < n; i++)
                run->copy.halves[i][k] = scores[k * step + i];
        for (uint32_t i = 0; i < n; i++)
            GPSTI_MASK(meet_half)
            (run->copy.halves[i], (uint16_t)(c + i), 1, run->best.halves.keys, run->best.halves.index);
    }
    GPSTI_MASK(half_end)(1, run);
}

/* ---- argmax: enlarged ------------------------------------------------------------------------
   A block of columns at a time. Source rows are interpolated across for up to GPSTI_MASK_CLASSES classes; all output
   rows between the same two source rows then need one multiply-add a class. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(across)(const gpsti_argmax_job* job, uint32_t y, uint32_t c,
                                           const gpsti_argmax_columns* columns, float* GPSTI_RESTRICT out) {
    const uint8_t* p = job->source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)(c * job->class_bytes);
    float first[GPSTI_MASK_BLOCK], second[GPSTI_MASK_BLOCK];
    if (job->half) {
        const uint16_t* scores = (const uint16_t*)(const void*)p;
        uint16_t halves[2][GPSTI_MASK_BLOCK];
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
            halves[0][k] = scores[columns->first[k]];
            halves[1][k] = scores[columns->second[k]];
        }
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
            first[k] = gpsti_f32_from_f16(halves[0][k]);
            second[k] = gpsti_f32_from_f16(halves[1][k]);
        }
    } else {
        const float* scores = (const float*)(const void*)p;
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
            first[k] = scores[columns->first[k]];
            second[k] = scores[columns->second[k]];
        }
    }
    for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
        const float a = gpsti_argmax_limited(first[k]), b = gpsti_argmax_limited(second[k]);
        out[k] = GPSTI_SIMD_FMA(b - a, columns->weight[k], a);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(down)(const float* GPSTI_RESTRICT upper, const float* GPSTI_RESTRICT change,
                                         float weight, int32_t label, float* GPSTI_RESTRICT best,
                                         int32_t* GPSTI_RESTRICT index) {
    for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
        const float a = GPSTI_SIMD_FMA(change[k], weight, upper[k]);
        index[k] = a > best[k] ? label : index[k];
        best[k] = a > best[k] ? a : best[k];
    }
}

/* Four classes, which stand GPSTI_MASK_BLOCK apart. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(down_four)(const float* GPSTI_RESTRICT upper, const float* GPSTI_RESTRICT change,
                                              float weight, int32_t label, float* GPSTI_RESTRICT best,
                                              int32_t* GPSTI_RESTRICT index) {
    for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
        const float a = GPSTI_SIMD_FMA(change[k], weight, upper[k]);
        const float b = GPSTI_SIMD_FMA(change[k + GPSTI_MASK_BLOCK], weight, upper[k + GPSTI_MASK_BLOCK]);
        const float c = GPSTI_SIMD_FMA(change[k + 2 * GPSTI_MASK_BLOCK], weight, upper[k + 2 * GPSTI_MASK_BLOCK]);
        const float d = GPSTI_SIMD_FMA(change[k + 3 * GPSTI_MASK_BLOCK], weight, upper[k + 3 * GPSTI_MASK_BLOCK]);
        float value = best[k];
        int32_t found = index[k];
        found = a > value ? label : found;
        value = a > value ? a : value;
        found = b > value ? label + 1 : found;
        value = b > value ? b : value;
        found = c > value ? label + 2 : found;
        value = c > value ? c : value;
        found = d > value ? label + 3 : found;
        value = d > value ? d : value;
        best[k] = value;
        index[k] = found;
    }
}

/* Source row y of n classes from first_class on, interpolated across: as it stands in one of the two lines, or
   computed into the one that does not hold `other`. */
GPSTI_SIMD_PRIVATE uint32_t GPSTI_MASK(line)(const gpsti_argmax_job* job, uint32_t y, uint32_t other,
                                             uint32_t first_class, uint32_t n, gpsti_argmax_tile* tile) {
    for (uint32_t i = 0; i < 2; i++)
        if (tile->line_row[i] == y && tile->line_class[i] == first_class)
            return i;
    const uint32_t i = tile->line_row[0] == other && tile->line_class[0] == first_class ? 1 : 0;
    for (uint32_t c = 0; c < n; c++)
        GPSTI_MASK(across)(job, y, first_class + c, &tile->columns, tile->line[i][c]);
    tile->line_row[i] = y;
    tile->line_class[i] = first_class;
    return i;
}

/* n_rows output rows that lie between source rows upper_y and lower_y, by weights. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(group)(const gpsti_argmax_job* job, uint32_t upper_y, uint32_t lower_y,
                                          const float* weights, uint32_t n_rows, gpsti_argmax_tile* tile) {
    for (uint32_t r = 0; r < n_rows; r++)
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++) {
            tile->best[r][k] = GPSTI_MASK_LOWEST;
            tile->index[r][k] = 0;
        }
    for (uint32_t c = 0; c < job->n_classes; c += GPSTI_MASK_CLASSES) {
        const uint32_t left = job->n_classes - c, n = left < GPSTI_MASK_CLASSES ? left : GPSTI_MASK_CLASSES;
        const uint32_t upper = GPSTI_MASK(line)(job, upper_y, lower_y, c, n, tile);
        const uint32_t lower = GPSTI_MASK(line)(job, lower_y, upper_y, c, n, tile);
        for (uint32_t i = 0; i < n; i++)
            for (int k = 0; k < GPSTI_MASK_BLOCK; k++)
                tile->change[i][k] = tile->line[lower][i][k] - tile->line[upper][i][k];
        for (uint32_t r = 0; r < n_rows; r++) {
            uint32_t i = 0;
            for (; i + 4 <= n; i += 4)
                GPSTI_MASK(down_four)
                (tile->line[upper][i], tile->change[i], weights[r], (int32_t)(c + i), tile->best[r], tile->index[r]);
            for (; i < n; i++)
                GPSTI_MASK(down)
                (tile->line[upper][i], tile->change[i], weights[r], (int32_t)(c + i), tile->best[r], tile->index[r]);
        }
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(columns)(const gpsti_argmax_job* job, uint32_t x, uint32_t count,
                                            gpsti_argmax_tile* tile) {
    const size_t step = (size_t)job->pixel_bytes / (job->half ? sizeof(uint16_t) : sizeof(float));
    for (uint32_t k = 0; k < GPSTI_MASK_BLOCK; k++) {
        const uint32_t at = k < count ? x + k : x + count - 1;
        const gpsti_argmax_tap tap = gpsti_argmax_locate(at, job->source_width, job->width);
        tile->columns.first[k] = tap.first * step;
        tile->columns.second[k] = tap.second * step;
        tile->columns.weight[k] = tap.weight;
    }
    tile->line_row[0] = tile->line_row[1] = UINT32_MAX;
    tile->line_class[0] = tile->line_class[1] = UINT32_MAX;
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(enlarge)(const gpsti_argmax_job* job, uint32_t y_begin, uint32_t y_end,
                                            gpsti_argmax_tile* tile) {
    for (uint32_t x = 0; x < job->width; x += GPSTI_MASK_BLOCK) {
        const uint32_t count = job->width - x < GPSTI_MASK_BLOCK ? job->width - x : GPSTI_MASK_BLOCK;
        GPSTI_MASK(columns)(job, x, count, tile);
        for (uint32_t y = y_begin; y < y_end;) {
            const gpsti_argmax_tap place = gpsti_argmax_locate(y, job->source_height, job->height);
            float weights[GPSTI_MASK_GROUP];
            uint32_t n_rows = 0;
            gpsti_argmax_tap next = place;
            do {
                weights[n_rows++] = next.weight;
                next = gpsti_argmax_locate(y + n_rows, job->source_height, job->height);
            } while (y + n_rows < y_end && n_rows < GPSTI_MASK_GROUP && next.first == place.first &&
                     next.second == place.second);
            GPSTI_MASK(group)(job, place.first, place.second, weights, n_rows, tile);
            for (uint32_t r = 0; r < n_rows; r++)
                GPSTI_MASK(store)(job, x, y + r, tile->index[r], count);
            y += n_rows;
        }
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(argmax)(const gpsti_argmax_job* job, uint32_t y_begin, uint32_t y_end,
                                           gpsti_argmax_run* run) {
    const bool planes = job->pixel_bytes == (job->half ? 2 : 4);
    const bool gapless = job->source_pitch == job->width * job->pixel_bytes &&
                         job->output_pitch == (int64_t)job->width * (job->wide ? 2 : 1);
    const uint32_t most = planes ? GPSTI_MASK_RUN : GPSTI_MASK_BLOCK;
    const uint32_t width = gapless ? job->width * (y_end - y_begin) : job->width; /* rows without gaps are one row */
    for (uint32_t y = y_begin; y < (gapless ? y_begin + 1 : y_end); y++)
        for (uint32_t x = 0; x < width; x += most) {
            const uint32_t count = width - x < most ? width - x : most;
            if (planes && job->half)
                GPSTI_MASK(planes_half)(job, x, y, count, run);
            else if (planes)
                GPSTI_MASK(planes)(job, x, y, count, run);
            else if (job->half)
                GPSTI_MASK(pixels_half)(job, x, y, count, run);
            else
                GPSTI_MASK(pixels)(job, x, y, count, run);
            GPSTI_MASK(store)(job, x, y, run->index, count);
        }
}

/* ---- threshold --------------------------------------------------------------------------------- */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(above_u8)(const uint8_t* GPSTI_RESTRICT in, uint8_t limit,
                                             uint8_t* GPSTI_RESTRICT out) {
    for (int k = 0; k < GPSTI_MASK_BLOCK; k++)
        out[k] = in[k] > limit ? 255 : 0;
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(above_f16)(const uint16_t* GPSTI_RESTRICT in, int16_t limit,
                                              uint8_t* GPSTI_RESTRICT out) {
    for (int k = 0; k < GPSTI_MASK_BLOCK; k++)
        out[k] = gpsti_f16_key(in[k]) > limit ? 255 : 0;
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(above_f32)(const float* GPSTI_RESTRICT in, float limit,
                                              uint8_t* GPSTI_RESTRICT out) {
    for (int k = 0; k < GPSTI_MASK_BLOCK; k++)
        out[k] = in[k] > limit ? 255 : 0;
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(above)(const gpsti_mask_job* job, const void* in, uint8_t* out) {
    if (job->op == GPSTI_MASK_ABOVE_F32)
        GPSTI_MASK(above_f32)((const float*)in, job->threshold, out);
    else if (job->op == GPSTI_MASK_ABOVE_F16)
        GPSTI_MASK(above_f16)((const uint16_t*)in, (int16_t)job->limit, out);
    else if (job->limit < 0)
        memset(out, 255, GPSTI_MASK_BLOCK);
    else
        GPSTI_MASK(above_u8)((const uint8_t*)in, (uint8_t)job->limit, out);
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(above_row)(const gpsti_mask_job* job, const uint8_t* in, uint8_t* out) {
    const size_t unit = job->op == GPSTI_MASK_ABOVE_F32 ? 4 : job->op == GPSTI_MASK_ABOVE_F16 ? 2 : 1;
    GPSTI_ALIGNAS(64) uint8_t rest_in[GPSTI_MASK_BLOCK * sizeof(float)], rest_out[GPSTI_MASK_BLOCK];
    uint32_t x = 0;
    for (; x + GPSTI_MASK_BLOCK <= job->width; x += GPSTI_MASK_BLOCK)
        GPSTI_MASK(above)(job, in + x * unit, out + x);
    if (x < job->width) {
        memset(rest_in, 0, sizeof rest_in);
        memcpy(rest_in, in + x * unit, (job->width - x) * unit);
        GPSTI_MASK(above)(job, rest_in, rest_out);
        memcpy(out + x, rest_out, job->width - x);
    }
}

/* ---- bits ------------------------------------------------------------------------------------------
   Eight pixels in a word, the first lowest; the product collects their lowest bits in the top byte. */
GPSTI_SIMD_PRIVATE void GPSTI_MASK(pack_row)(const gpsti_mask_job* job, const uint8_t* in, uint8_t* out) {
    const uint32_t whole = job->width / GPSTI_MASK_BLOCK * GPSTI_MASK_BLOCK;
    uint8_t rest[GPSTI_MASK_BLOCK];
    memset(rest, 0, sizeof rest);
    memcpy(rest, in + whole, job->width - whole);
    for (uint32_t x = 0; x < job->width; x += GPSTI_MASK_BLOCK) {
        const uint8_t* from = x < whole ? in + x : rest;
        const uint32_t n_bytes = (x < whole ? GPSTI_MASK_BLOCK : job->width - whole + 7) / 8;
        uint8_t ones[GPSTI_MASK_BLOCK], packed[GPSTI_MASK_BLOCK / 8];
        for (int k = 0; k < GPSTI_MASK_BLOCK; k++)
            ones[k] = from[k] != 0 ? 1 : 0;
        for (uint32_t i = 0; i < GPSTI_MASK_BLOCK / 8; i++) {
            const uint8_t* p = ones + 8 * i;
            const uint64_t word = (uint64_t)p[0] | (uint64_t)p[1] << 8 | (uint64_t)p[2] << 16 | (uint64_t)p[3] << 24 |
                                  (uint64_t)p[4] << 32 | (uint64_t)p[5] << 40 | (uint64_t)p[6] << 48 |
                                  (uint64_t)p[7] << 56;
            packed[i] = (uint8_t)((word * 0x0102040810204080u) >> 56);
        }
        memcpy(out + x / 8, packed, n_bytes);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(unpack_row)(const gpsti_mask_job* job, const uint8_t* in, uint8_t* out) {
    static const uint8_t bit[8] = {1, 2, 4, 8, 16, 32, 64, 128};
    uint8_t last[8];
    for (uint32_t x = 0; x < job->width; x += 8) {
        const uint8_t bits = in[x / 8];
        uint8_t* to = job->width - x >= 8 ? out + x : last;
        for (int k = 0; k < 8; k++)
            to[k] = (bits & bit[k]) != 0 ? 255 : 0;
        if (to == last)
            memcpy(out + x, last, job->width - x);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_MASK(rows)(const gpsti_mask_job* job, uint32_t y_begin, uint32_t y_end) {
    for (uint32_t y = y_begin; y < y_end; y++) {
        const uint8_t* in = job->source + (ptrdiff_t)(y * job->source_pitch);
        uint8_t* out = job->output + (ptrdiff_t)(y * job->output_pitch);
        if (job->op == GPSTI_MASK_PACK)
            GPSTI_MASK(pack_row)(job, in, out);
        else if (job->op == GPSTI_MASK_UNPACK)
            GPSTI_MASK(unpack_row)(job, in, out);
        else
            GPSTI_MASK(above_row)(job, in, out);
    }
}

#undef GPSTI_SIMD_LEVEL
