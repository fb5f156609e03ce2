/* kernels/warp/warp_footprint_rows_internal.h -- the row loop of the filter AREA where a map does not go by axes: a
   block's
   samples one after the other, each as BILINEAR into floats samples them, and their sums. A template beside
   warp_rows_internal.h, whose macros it uses. Gives the bits of warp_pixel_internal.h. */
/* amalgamate: template */

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sphere_footprint)(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                     const gpsti_block* block, gpsti_footprint* out) {
    memcpy(out->at, block->ray, sizeof out->at);
    for (int c = 0; c < 3; c++) {
        if (job->map == GPST_MAP_ROTATE) {
            for (int k = 0; k < GPSTI_BLOCK; k++)
                gpsti_warp_turned_steps(job, x + k, y, c, &out->step_x[c][k], &out->step_y[c][k], &out->twist[c][k]);
        } else {
            float step_x, step_y;
            gpsti_warp_view_steps(job, c, &step_x, &step_y);
            for (int k = 0; k < GPSTI_BLOCK; k++)
                out->step_x[c][k] = step_x, out->step_y[c][k] = step_y;
        }
    }
}

/* Of TABLE each pixel has its own; what is past count keeps the steps of before. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(table_footprint)(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                                    gpsti_footprint* out) {
    out->most_across = 1, out->most_down = 1;
    for (int32_t k = 0; k < count; k++) {
        const gpsti_warp_footprint one = gpsti_warp_footprint_of(job, x + k, y);
        out->across[k] = one.across, out->down[k] = one.down;
        out->most_across = one.across > out->most_across ? one.across : out->most_across;
        out->most_down = one.down > out->most_down ? one.down : out->most_down;
        for (int c = 0; c < 2; c++)
            out->at[c][k] = one.at[c], out->step_x[c][k] = one.step_x[c], out->step_y[c][k] = one.step_y[c];
    }
}

/* The places of sample (i, j) of every pixel; job has the map. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(affine_sample)(const gpsti_warp_job* job, int32_t i, int32_t j,
                                                  const gpsti_footprint* from, gpsti_block* block) {
    const gpsti_warp_footprint* const first = &from->affine;
    const int64_t n = 2 * i + 1 - first->across, m = 2 * j + 1 - first->down;
    const int64_t begin_u = first->affine[0] + n * first->affine_x[0] + m * first->affine_y[0];
    const int64_t begin_v = first->affine[1] + n * first->affine_x[1] + m * first->affine_y[1];
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->u[k] = gpsti_warp_affine_at(begin_u + k * (2 * job->affine.q[0]), job->source_width);
    for (int k = 0; k < GPSTI_BLOCK; k++)
        block->v[k] = gpsti_warp_affine_at(begin_v + k * (2 * job->affine.q[3]), job->source_height);
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sample_places)(const gpsti_warp_job* job, int32_t i, int32_t j,
                                                  const gpsti_footprint* from, gpsti_block* block) {
    const float first_x = gpsti_warp_sample_at(i, from->across[0]), first_y = gpsti_warp_sample_at(j, from->down[0]);
    float x[GPSTI_BLOCK], y[GPSTI_BLOCK];
    for (int k = 0; k < GPSTI_BLOCK; k++)
        x[k] = first_x, y[k] = first_y;
    for (int k = 1; job->map == GPST_MAP_TABLE && k < GPSTI_BLOCK; k++)
        x[k] = gpsti_warp_sample_at(i, from->across[k]), y[k] = gpsti_warp_sample_at(j, from->down[k]);
    for (int c = 0; c < 3; c++)
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->ray[c][k] = GPSTI_SIMD_FMA(x[k], GPSTI_SIMD_FMA(y[k], from->twist[c][k], from->step_x[c][k]),
                                              GPSTI_SIMD_FMA(y[k], from->step_y[c][k], from->at[c][k]));
    if (job->map != GPST_MAP_TABLE) {
        GPSTI_ROWS(sphere)(job, block);
        return;
    }
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        block->u[k] = gpsti_warp_table_at(block->ray[0][k], job->source_width, false);
        block->v[k] = gpsti_warp_table_at(block->ray[1][k], job->source_height, false);
    }
}

/* counts: all bits, or none; a choice would keep compilers from vectorising. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(add_sample)(const float* GPSTI_RESTRICT sample,
                                               const uint32_t* GPSTI_RESTRICT counts, float* GPSTI_RESTRICT line) {
    for (int k = 0; k < GPSTI_BLOCK; k++)
        line[k] += gpsti_f32_from_bits(gpsti_f32_bits(sample[k]) & counts[k]);
}

/* Samples first, first + 1, ... of row j, n of them and at most GPSTI_HOT_DEPTH, added to the line's sums, in order. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sample_some)(const gpsti_warp_job* job, int32_t first, int32_t n, int32_t j,
                                                int32_t count, gpsti_footprint* footprint, gpsti_block* block) {
    for (int32_t i = first; i < first + n; i++) {
        if (job->map == GPST_MAP_AFFINE)
            GPSTI_ROWS(affine_sample)(job, i, j, footprint, block);
        else
            GPSTI_ROWS(sample_places)(job, i, j, footprint, block);
        GPSTI_ROWS(places)(&footprint->bilinear, block);
        GPSTI_ROWS(finish)(&footprint->bilinear, 0, i - first, count, block);
    }
    GPSTI_ROWS(hot_drain)(&footprint->bilinear, block->queue);
    for (int32_t i = first; i < first + n; i++) {
        uint32_t counts[GPSTI_BLOCK];
        for (int k = 0; k < GPSTI_BLOCK; k++)
            counts[k] = i < footprint->across[k] && j < footprint->down[k] ? UINT32_MAX : 0;
        for (uint32_t c = 0; c < job->n_channels; c++)
            GPSTI_ROWS(add_sample)(footprint->samples[i - first][c], counts, footprint->line[c]);
    }
}

/* The mean of all samples into block->value. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(mean)(const gpsti_warp_job* job, int32_t count, gpsti_footprint* footprint,
                                         gpsti_block* block) {
    const int32_t across = footprint->most_across, down = footprint->most_down;
    memset(footprint->sum, 0, sizeof footprint->sum);
    for (int32_t j = 0; j < down; j++) {
        memset(footprint->line, 0, sizeof footprint->line);
        for (int32_t i = 0; i < across; i += GPSTI_HOT_DEPTH)
            GPSTI_ROWS(sample_some)
            (job, i, across - i < GPSTI_HOT_DEPTH ? across - i : GPSTI_HOT_DEPTH, j, count, footprint, block);
        for (uint32_t c = 0; c < job->n_channels; c++)
            for (int k = 0; k < GPSTI_BLOCK; k++)
                footprint->sum[c][k] += footprint->line[c][k];
    }
    for (uint32_t c = 0; c < job->n_channels; c++) {
        for (int k = 0; k < GPSTI_BLOCK; k++)
            block->value[c][k] = footprint->sum[c][k] / (float)(footprint->across[k] * footprint->down[k]);
        for (int k = 0; job->shift[c] == GPSTI_WARP_CHANNEL_FULL && k < GPSTI_BLOCK; k++)
            block->value[c][k] = job->full;
    }
}

/* What samples the block: the job's source by BILINEAR, as planes of floats into footprint->samples. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(footprint_init)(const gpsti_warp_job* job, gpsti_footprint* out) {
    gpsti_warp_job* const bilinear = &out->bilinear;
    memset(out, 0, sizeof *out);
    *bilinear = *job;
    bilinear->filter = GPST_FILTER_BILINEAR;
    bilinear->convention = GPST_CONVENTION_NATIVE;
    bilinear->dtype = GPST_DTYPE_F32, bilinear->layout = GPST_LAYOUT_CHW;
    bilinear->has_scale = false, bilinear->mask = NULL;
    bilinear->not_a_number = gpsti_f32_from_bits(0x7fc00000u);
    bilinear->output = (uint8_t*)(void*)out->samples;
    bilinear->output_pitch = sizeof out->samples[0], bilinear->plane_bytes = sizeof out->samples[0][0];
    out->most_across = job->n_across, out->most_down = job->n_down;
    for (int k = 0; k < GPSTI_BLOCK; k++) { /* of TABLE each pixel's own will follow */
        out->across[k] = job->map == GPST_MAP_TABLE ? 1 : job->n_across;
        out->down[k] = job->map == GPST_MAP_TABLE ? 1 : job->n_down;
    }
}

GPSTI_NOINLINE GPSTI_SIMD_PRIVATE void GPSTI_ROWS(band_footprint)(const gpsti_warp_job* job, int32_t y_begin,
                                                                  int32_t y_end, gpsti_block* block) {
    gpsti_footprint footprint;
    gpsti_hot_queue queue;
    int32_t u[GPSTI_BLOCK], v[GPSTI_BLOCK];
    queue.put = queue.taken = 0;
    block->queue = &queue;
    GPSTI_ROWS(footprint_init)(job, &footprint);
    for (int32_t y = y_begin; y < y_end; y++) {
        const gpsti_warp_row row = gpsti_warp_view_row(job, y);
        for (int32_t x = 0; x < job->width; x += GPSTI_BLOCK) {
            const int32_t count = job->width - x < GPSTI_BLOCK ? job->width - x : GPSTI_BLOCK;
            GPSTI_ROWS(positions)(job, &row, x, y, count, block);
            memcpy(u, block->u, sizeof u), memcpy(v, block->v, sizeof v);
            if (job->map == GPST_MAP_TABLE)
                GPSTI_ROWS(table_footprint)(job, x, y, count, &footprint);
            else if (job->map == GPST_MAP_AFFINE)
                footprint.affine = gpsti_warp_footprint_of(job, x, y);
            else
                GPSTI_ROWS(sphere_footprint)(job, x, y, block, &footprint);
            GPSTI_ROWS(mean)(job, count, &footprint, block);
            memcpy(block->u, u, sizeof u), memcpy(block->v, v, sizeof v); /* the mask's */
            GPSTI_ROWS(emit)(job, x, y, count, false, block);
        }
    }
    block->queue = NULL;
}
