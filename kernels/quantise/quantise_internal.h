/* kernels/quantise/quantise_internal.h -- one value to 8 bits and back, the reference, and
   how tests reach every loop. Obeys exact_internal.h. */
#ifndef GPSTI_QUANTISE_INTERNAL_H
#define GPSTI_QUANTISE_INTERNAL_H

#include "../exact/half_internal.h"
#include "quantise.h"
#include "../launch/launch_internal.h"

/* Within +-2^22, to the nearest integer, ties to even: in 1.5 * 2^23 + value it stands in the low bits. */
GPSTI_DEVICE GPSTI_INLINE int8_t gpsti_quantise_value(float value, float scale) {
    const float ratio = value / scale, number = ratio == ratio ? ratio : 0.0f;
    const float high = number < 127.0f ? number : 127.0f, clamped = high > -128.0f ? high : -128.0f;
    return (int8_t)(uint8_t)gpsti_f32_bits(clamped + 12582912.0f);
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_quantise_read(const gpst_channels* values, size_t i) {
    return values->dtype == GPST_DTYPE_F32 ? ((const float*)values->data)[i]
                                           : gpsti_f32_from_f16(((const uint16_t*)values->data)[i]);
}

GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_quantise_channel(const gpst_channels* values, size_t i) {
    return (uint32_t)(i / values->n_inner % values->n_channels);
}

/* The rules of a tensor; the reason begins "function: values". n_values: of them all. */
GPSTI_INTERN gpst_result gpsti_channels_check(const char* function, const gpst_channels* values, size_t* n_values);
/* The same with what it becomes, or is made of. */
GPSTI_INTERN gpst_result gpsti_quantise_check(const char* function, const gpst_channels* values, const float* scales,
                                              const int8_t* integers, size_t* n_values);
/* Values first up to end, on this thread. */
GPSTI_INTERN void gpsti_quantise_range(const gpst_channels* values, const float* scales, int8_t* out,
                                       gpsti_simd_level level, size_t first, size_t end);

/* ---- launches, from quantise_launch.c to quantise.cu.h ---------------------------- */
typedef struct gpsti_quantise_args {
    gpst_channels shape; /* data: floats */
    int8_t* integers;
    const float* scales;
    uint64_t n_values;
    bool back; /* integers to floats */
} gpsti_quantise_args;

typedef struct gpsti_range_args {
    gpst_channels shape;
    gpst_calibration_info* infos;
} gpsti_range_args;

#if defined(GPSTI_GPU)
GPSTI_LINK gpst_result gpsti_quantise_gpu_launch(const char* function, const gpsti_quantise_args* args, void* stream);
GPSTI_LINK gpst_result gpsti_range_gpu_launch(const char* function, const gpsti_range_args* args, void* stream);
#endif

#endif
