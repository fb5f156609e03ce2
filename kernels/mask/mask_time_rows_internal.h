/* kernels/mask/mask_time_rows_internal.h -- the row loops of the mean over time, over blocks of pixels, so that
   compilers vectorise them. A template: mask_time_cpu.c includes it once for each level of the machine. Gives the bits
   of mask_pixel_internal.h. */
/* amalgamate: template */
/* At most 64 * 65535. */
GPSTI_SIMD_PRIVATE uint32_t GPSTI_TIME(differ)(const uint8_t* GPSTI_RESTRICT value,
                                               const uint16_t* GPSTI_RESTRICT mean) {
    uint32_t sum = 0;
    for (int k = 0; k < GPSTI_TIME_BLOCK; k++) {
        const uint16_t target = (uint16_t)(value[k] << 8);
        const uint16_t high = target > mean[k] ? target : mean[k], low = target > mean[k] ? mean[k] : target;
        sum += (uint16_t)(high - low);
    }
    return sum;
}

/* The step is the upper half of a product of 16 bits, and 1 more where the lower half is not 0. */
GPSTI_SIMD_PRIVATE void GPSTI_TIME(blend)(const uint8_t* GPSTI_RESTRICT value, uint16_t weight, uint16_t change,
                                          uint16_t* GPSTI_RESTRICT mean, uint8_t* GPSTI_RESTRICT out) {
    for (int k = 0; k < GPSTI_TIME_BLOCK; k++) {
        const uint16_t target = (uint16_t)(value[k] << 8), old = mean[k];
        const uint16_t high = target > old ? target : old, low = target > old ? old : target;
        const uint16_t difference = (uint16_t)(high - low);
        const uint16_t upper = (uint16_t)(((uint32_t)difference * weight) >> 16);
        const uint16_t lower = (uint16_t)((uint32_t)difference * weight);
        const uint16_t step = (uint16_t)(upper + (lower != 0 ? 1 : 0));
        const uint16_t moved = (uint16_t)(target > old ? old + step : old - step);
        const uint16_t next = difference > change ? target : moved;
        mean[k] = next;
        out[k] = (uint8_t)((uint16_t)(next + 128) >> 8);
    }
}

GPSTI_SIMD_PRIVATE uint64_t GPSTI_TIME(differ_row)(const gpsti_mask_time_job* job, const uint8_t* value,
                                                   const uint16_t* mean) {
    uint8_t last_value[GPSTI_TIME_BLOCK];
    uint16_t last_mean[GPSTI_TIME_BLOCK];
    uint64_t sum = 0;
    uint32_t x = 0;
    for (; x + GPSTI_TIME_BLOCK <= job->width; x += GPSTI_TIME_BLOCK)
        sum += GPSTI_TIME(differ)(value + x, mean + x);
    if (x == job->width)
        return sum;
    memset(last_value, 0, sizeof last_value);
    memset(last_mean, 0, sizeof last_mean);
    memcpy(last_value, value + x, job->width - x);
    memcpy(last_mean, mean + x, (job->width - x) * sizeof *mean);
    return sum + GPSTI_TIME(differ)(last_value, last_mean);
}

GPSTI_SIMD_PRIVATE void GPSTI_TIME(blend_row)(const gpsti_mask_time_job* job, const uint8_t* value, uint16_t* mean,
                                              uint8_t* out) {
    uint8_t last_value[GPSTI_TIME_BLOCK], last_out[GPSTI_TIME_BLOCK];
    uint16_t last_mean[GPSTI_TIME_BLOCK];
    uint32_t x = 0;
    for (; x + GPSTI_TIME_BLOCK <= job->width; x += GPSTI_TIME_BLOCK)
        GPSTI_TIME(blend)(value + x, job->weight, job->change, mean + x, out + x);
    if (x == job->width)
        return;
    memset(last_value, 0, sizeof last_value);
    memset(last_mean, 0, sizeof last_mean);
    memcpy(last_value, value + x, job->width - x);
    memcpy(last_mean, mean + x, (job->width - x) * sizeof *mean);
    GPSTI_TIME(blend)(last_value, job->weight, job->change, last_mean, last_out);
    memcpy(mean + x, last_mean, (job->width - x) * sizeof *mean);
    memcpy(out + x, last_out, job->width - x);
}

GPSTI_SIMD_PRIVATE void GPSTI_TIME(begin_row)(const gpsti_mask_time_job* job, const uint8_t* GPSTI_RESTRICT value,
                                              uint16_t* GPSTI_RESTRICT mean) {
    for (uint32_t x = 0; x < job->width; x++)
        mean[x] = (uint16_t)(value[x] << 8);
}

GPSTI_SIMD_PRIVATE uint64_t GPSTI_TIME(sum)(const gpsti_mask_time_job* job, uint32_t y_begin, uint32_t y_end) {
    uint64_t sum = 0;
    for (uint32_t y = y_begin; y < y_end; y++)
        sum += GPSTI_TIME(differ_row)(job, job->source + (ptrdiff_t)(y * job->source_pitch),
                                      gpsti_mask_time_row(job, y));
    return sum;
}

GPSTI_SIMD_PRIVATE void GPSTI_TIME(rows)(const gpsti_mask_time_job* job, uint32_t y_begin, uint32_t y_end) {
    for (uint32_t y = y_begin; y < y_end; y++) {
        const uint8_t* value = job->source + (ptrdiff_t)(y * job->source_pitch);
        uint8_t* out = job->output + (ptrdiff_t)(y * job->output_pitch);
        if (job->restart) {
            GPSTI_TIME(begin_row)(job, value, gpsti_mask_time_row(job, y));
            memcpy(out, value, job->width);
        } else {
            GPSTI_TIME(blend_row)(job, value, gpsti_mask_time_row(job, y), out);
        }
    }
}

#undef GPSTI_SIMD_LEVEL
