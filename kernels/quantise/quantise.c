/* kernels/quantise/quantise.c -- floats to 8-bit integers and back. Chooses no scale;
   calibration.c does. */
#include "../../core/base/platform_internal.h"

#include "quantise_internal.h"

#define GPSTI_QUANTISE_BLOCK 64 /* values; a multiple of every vector's length */

#define GPSTI_QUANTISE(name) GPSTI_SIMD(quantise_##name)

#define GPSTI_SIMD_LEVEL portable
#include "quantise_rows_internal.h"

#if GPSTI_SIMD_X86
#define GPSTI_SIMD_LEVEL avx2
#include "quantise_rows_internal.h"
#endif

/* ---- rules ------------------------------------------------------------------------ */
GPSTI_INTERN gpst_result gpsti_channels_check(const char* function, const gpst_channels* values, size_t* n_values) {
    size_t n = 0, bytes = 0;
    GPSTI_FAIL_IF(!values, GPST_ERROR_ARGUMENT, "%s: values=NULL: required", function);
    GPSTI_FAIL_IF(!values->data, GPST_ERROR_ARGUMENT, "%s: values.data=NULL: required", function);
    GPSTI_FAIL_IF(values->dtype != GPST_DTYPE_F16 && values->dtype != GPST_DTYPE_F32, GPST_ERROR_ARGUMENT,
                  "%s: values.dtype=%d: required, F16 or F32", function, (int)values->dtype);
    GPSTI_FAIL_IF(values->n_channels == 0 || values->n_outer == 0 || values->n_inner == 0, GPST_ERROR_ARGUMENT,
                  "%s: values.n_outer=%llu, n_channels=%u, n_inner=%llu: must be 1 or more", function,
                  (unsigned long long)values->n_outer, (unsigned)values->n_channels,
                  (unsigned long long)values->n_inner);
    const uint32_t unit = gpst_dtype_bytes(values->dtype);
    GPSTI_FAIL_IF((uintptr_t)values->data % unit != 0, GPST_ERROR_ARGUMENT,
                  "%s: values.data=%p: must be a multiple of the %u bytes of its dtype", function, values->data,
                  (unsigned)unit);
    GPSTI_FAIL_IF(!gpsti_size_mul(values->n_outer, values->n_channels, &n) || !gpsti_size_mul(n, values->n_inner, &n) ||
                      !gpsti_size_mul(n, unit, &bytes),
                  GPST_ERROR_OVERFLOW, "%s: values: %llu x %u x %llu do not fit in memory", function,
                  (unsigned long long)values->n_outer, (unsigned)values->n_channels,
                  (unsigned long long)values->n_inner);
    *n_values = n;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_quantise_check(const char* function, const gpst_channels* values, const float* scales,
                                              const int8_t* integers, size_t* n_values) {
    GPSTI_TRY(gpsti_channels_check(function, values, n_values));
    GPSTI_FAIL_IF(!scales, GPST_ERROR_ARGUMENT, "%s: scales=NULL: required", function);
    GPSTI_FAIL_IF(!integers, GPST_ERROR_ARGUMENT, "%s: integers=NULL: required", function);
    const uintptr_t a = (uintptr_t)values->data, b = (uintptr_t)integers;
    GPSTI_FAIL_IF(a < b + *n_values && b < a + *n_values * gpst_dtype_bytes(values->dtype), GPST_ERROR_ARGUMENT,
                  "%s: values.data=%p: must not overlap the 8-bit integers", function, values->data);
    return GPST_OK;
}

/* Where the scales are the host's. */
GPSTI_PRIVATE gpst_result gpsti_quantise_check_host(const char* function, const gpst_channels* values,
                                                    const float* scales, const int8_t* integers, size_t* n_values) {
    GPSTI_TRY(gpsti_quantise_check(function, values, scales, integers, n_values));
    for (uint32_t c = 0; c < values->n_channels; c++) {
        const uint32_t bits = gpsti_f32_bits(scales[c]); /* by its bits: the caller may flush subnormals */
        GPSTI_FAIL_IF(bits == 0 || bits >= 0x7f800000u, GPST_ERROR_ARGUMENT,
                      "%s: scales[%u]=%g: must be finite and above 0", function, (unsigned)c, (double)scales[c]);
    }
    return gpsti_exact_check(function);
}

/* ---- quantise ---------------------------------------------------------------------- */
/* The scales of n values from number first on. */
GPSTI_PRIVATE void gpsti_quantise_scales(const gpst_channels* values, const float* scales, size_t first, size_t n,
                                         float* out) {
    uint32_t channel = gpsti_quantise_channel(values, first);
    if (values->n_inner == 1) { /* the scales themselves, over and over */
        for (size_t k = 0, run = 0; k < n; k += run, channel = 0) {
            const size_t to_last = values->n_channels - channel;
            run = to_last < n - k ? to_last : n - k;
            memcpy(out + k, scales + channel, run * sizeof *out);
        }
        return;
    }
    size_t left = values->n_inner - first % values->n_inner; /* of this channel */
    for (size_t k = 0; k < n;) {
        const size_t run = left < n - k ? left : n - k;
        for (size_t end = k + run; k < end; k++)
            out[k] = scales[channel];
        channel = channel + 1 < values->n_channels ? channel + 1 : 0;
        left = values->n_inner;
    }
}

/* n values from number first on, at most a block. */
GPSTI_PRIVATE void gpsti_quantise_some(const gpst_channels* values, const float* scales, int8_t* out,
                                       gpsti_simd_level level, size_t first, size_t n) {
    const bool half = values->dtype == GPST_DTYPE_F16, whole = n == GPSTI_QUANTISE_BLOCK;
    const size_t unit = half ? sizeof(uint16_t) : sizeof(float);
    const uint8_t* from = (const uint8_t*)values->data + first * unit;
    float floats[GPSTI_QUANTISE_BLOCK];
    uint16_t halves[GPSTI_QUANTISE_BLOCK];
    int8_t rest[GPSTI_QUANTISE_BLOCK];
    const float* in = whole ? (const float*)(const void*)from : floats;
    if (!whole) {
        memset(floats, 0, sizeof floats);
        memset(halves, 0, sizeof halves);
        memcpy(half ? (void*)halves : (void*)floats, from, n * unit);
    }
    const uint16_t* in_half = whole ? (const uint16_t*)(const void*)from : halves;
    int8_t* to = whole ? out + first : rest;
    if (half)
        GPSTI_SIMD_TO_AVX2(level, quantise_halves, in_half, scales, to);
    else
        GPSTI_SIMD_TO_AVX2(level, quantise_block, in, scales, to);
    if (!whole)
        memcpy(out + first, rest, n);
}

GPSTI_INTERN void gpsti_quantise_range(const gpst_channels* values, const float* scales, int8_t* out,
                                       gpsti_simd_level level, size_t first, size_t end) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    float block[GPSTI_QUANTISE_BLOCK];
    size_t same_until = 0; /* up to here the block of scales holds this channel's */
    for (int k = 0; k < GPSTI_QUANTISE_BLOCK; k++)
        block[k] = 1.0f; /* what the last block does not fill is computed, too, and never used */
    for (size_t i = first; i < end; i += GPSTI_QUANTISE_BLOCK) {
        const size_t n = end - i < GPSTI_QUANTISE_BLOCK ? end - i : GPSTI_QUANTISE_BLOCK;
        if (i + n > same_until) {
            const size_t channel_end = (i / values->n_inner + 1) * values->n_inner;
            gpsti_quantise_scales(values, scales, i, n, block);
            same_until = n == GPSTI_QUANTISE_BLOCK && i + n <= channel_end ? channel_end : 0;
        }
        gpsti_quantise_some(values, block, out, level, i, n);
    }
    gpsti_fp_leave(mode);
}

typedef struct gpsti_quantise_job {
    const gpst_channels* values;
    const float* scales;
    int8_t* out;
    size_t n_values;
} gpsti_quantise_job;

/* A row is a block of values. */
GPSTI_PRIVATE void gpsti_quantise_rows(const void* quantise_job, gpsti_simd_level level, uint64_t first, uint64_t end) {
    const gpsti_quantise_job* const job = (const gpsti_quantise_job*)quantise_job;
    const size_t begin = (size_t)first * GPSTI_QUANTISE_BLOCK, rest = job->n_values - begin;
    const size_t n = (size_t)(end - first) * GPSTI_QUANTISE_BLOCK;
    gpsti_quantise_range(job->values, job->scales, job->out, level, begin, begin + (n < rest ? n : rest));
}

GPST_API gpst_result gpst_quantise(const gpst_channels* values, const float* scales, int8_t* out, uint32_t n_threads) {
    gpsti_quantise_job job;
    GPSTI_TRY(gpsti_quantise_check_host("gpst_quantise", values, scales, out, &job.n_values));
    job.values = values, job.scales = scales, job.out = out;
    const size_t n_blocks = (job.n_values + GPSTI_QUANTISE_BLOCK - 1) / GPSTI_QUANTISE_BLOCK;
    gpsti_launch_rows(gpsti_quantise_rows, &job, gpsti_simd_level_query(), 1, n_blocks, GPSTI_QUANTISE_BLOCK,
                      n_threads);
    return GPST_OK;
}

GPST_API gpst_result gpst_dequantise(const int8_t* integers, const float* scales, const gpst_channels* out) {
    size_t n = 0;
    GPSTI_TRY(gpsti_quantise_check_host("gpst_dequantise", out, scales, integers, &n));
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (size_t i = 0; i < n; i++) {
        const float value = (float)integers[i] * scales[gpsti_quantise_channel(out, i)];
        if (out->dtype == GPST_DTYPE_F32)
            ((float*)out->data)[i] = value;
        else
            ((uint16_t*)out->data)[i] = gpsti_f16_from_f32(value);
    }
    gpsti_fp_leave(mode);
    return GPST_OK;
}
