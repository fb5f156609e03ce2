/* kernels/warp/warp_yuv_rows_internal.h -- the row loop's part for NV12 and I420: luma
   as the other sources are sampled, chroma at its own places, then the colours. A template beside
   warp_rows_internal.h, whose macros it uses. Gives the bits of warp_pixel_internal.h. */
/* amalgamate: template */

/* Places in 1/32768 luma pixel to chroma places. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(chroma_places)(const gpsti_warp_job* job, gpsti_block* block) {
    for (int k = 0; k < GPSTI_BLOCK; k++) {
        const int32_t u = gpsti_warp_chroma_u(job, block->u[k]);
        const int32_t v = gpsti_warp_chroma_v(job, block->v[k]);
        block->chroma_x[k] = gpsti_warp_floor(u), block->chroma_y[k] = gpsti_warp_floor(v);
        block->chroma_fx[k] = (float)(u & 32767) * (1.0f / 32768.0f);
        block->chroma_fy[k] = (float)(v & 32767) * (1.0f / 32768.0f);
    }
}

GPSTI_SIMD_PRIVATE void GPSTI_ROWS(gather_chroma)(const gpsti_warp_job* job, int32_t count, gpsti_block* block) {
    const uint32_t inner_width = (uint32_t)job->chroma_width - 1, inner_height = (uint32_t)job->chroma_height - 1;
    const ptrdiff_t step = job->chroma_step, pitch = (ptrdiff_t)job->chroma_pitch;
    const uint8_t *const cb = job->cb, *const cr = job->cr;
    for (int32_t k = 0; k < count; k++) {
        const int32_t x = block->chroma_x[k], y = block->chroma_y[k];
        if ((uint32_t)x < inner_width && (uint32_t)y < inner_height) {
            const ptrdiff_t at = y * pitch + x * step, below = at + pitch;
            block->tap[0][k] = (uint32_t)cb[at] | (uint32_t)cr[at] << 8;
            block->tap[1][k] = (uint32_t)cb[at + step] | (uint32_t)cr[at + step] << 8;
            block->tap[2][k] = (uint32_t)cb[below] | (uint32_t)cr[below] << 8;
            block->tap[3][k] = (uint32_t)cb[below + step] | (uint32_t)cr[below + step] << 8;
        } else {
            for (int32_t t = 0; t < 4; t++)
                block->tap[t][k] = gpsti_warp_read_chroma(job, x + (t & 1), y + (t >> 1));
        }
    }
}

/* yuv, three arrays of a block, to the output's channels. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(colours)(const gpsti_warp_job* job, gpsti_block* block) {
    const gpsti_warp_colours k = job->colours;
    float(*GPSTI_RESTRICT yuv)[GPSTI_BLOCK] = block->yuv;
    for (uint32_t c = 0; c < job->n_channels; c++) {
        float* GPSTI_RESTRICT value = block->value[c];
        if (job->shift[c] == 0)
            for (int i = 0; i < GPSTI_BLOCK; i++)
                value[i] = gpsti_warp_clamp(GPSTI_SIMD_FMA(yuv[2][i], k.red_v, GPSTI_SIMD_FMA(yuv[0][i], k.y, k.red)));
        else if (job->shift[c] == 8)
            for (int i = 0; i < GPSTI_BLOCK; i++)
                value[i] = gpsti_warp_clamp(
                    GPSTI_SIMD_FMA(yuv[1][i], k.green_u,
                                   GPSTI_SIMD_FMA(yuv[2][i], k.green_v, GPSTI_SIMD_FMA(yuv[0][i], k.y, k.green))));
        else if (job->shift[c] == 16)
            for (int i = 0; i < GPSTI_BLOCK; i++)
                value[i] =
                    gpsti_warp_clamp(GPSTI_SIMD_FMA(yuv[1][i], k.blue_u, GPSTI_SIMD_FMA(yuv[0][i], k.y, k.blue)));
        else
            for (int i = 0; i < GPSTI_BLOCK; i++)
                value[i] = 255.0f;
    }
}

/* The luma's taps are gathered; the rest of NEAREST and BILINEAR. */
GPSTI_SIMD_PRIVATE void GPSTI_ROWS(sample_yuv)(const gpsti_warp_job* job, int32_t count, gpsti_block* block) {
    if (job->filter == GPST_FILTER_NEAREST) {
        for (int32_t k = 0; k < count; k++) {
            const uint32_t chroma = gpsti_warp_near_chroma(job, block->x[k], block->y[k]);
            block->yuv[0][k] = (float)(int32_t)block->tap[0][k];
            block->yuv[1][k] = (float)(int32_t)(chroma & 255), block->yuv[2][k] = (float)(int32_t)(chroma >> 8);
        }
    } else {
        GPSTI_ROWS(blend_float)(0, block->fx, block->fy, block->yuv[0], block);
        if (!gpsti_warp_by_axes(job->map))
            GPSTI_ROWS(chroma_places)(job, block);
        GPSTI_ROWS(gather_chroma)(job, count, block);
        GPSTI_ROWS(blend_float)(0, block->chroma_fx, block->chroma_fy, block->yuv[1], block);
        GPSTI_ROWS(blend_float)(8, block->chroma_fx, block->chroma_fy, block->yuv[2], block);
    }
    GPSTI_ROWS(colours)(job, block);
}
