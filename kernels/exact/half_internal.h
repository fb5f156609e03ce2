/* kernels/exact/half_internal.h -- binary16 as an input: to float, and to integers in
   the order of the values. Writing halves is in exact_internal.h. */
#ifndef GPSTI_HALF_INTERNAL_H
#define GPSTI_HALF_INTERNAL_H

#include "exact_internal.h"

/* Exact for every value; NaN stays NaN. The product moves the exponent's bias and never rounds. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_f32_from_f16(uint16_t half) {
#if defined(__CUDA_ARCH__)
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(half));
    return value;
#elif defined(__HIP_DEVICE_COMPILE__)
    _Float16 value;
    memcpy(&value, &half, sizeof value);
    return (float)value;
#else
    const uint32_t magnitude = half & 0x7fffu, sign = (uint32_t)(half & 0x8000u) << 16;
    const uint32_t moved =
        gpsti_f32_bits(gpsti_f32_from_bits(magnitude << 13) * 5192296858534827628530496329220096.0f /* 2^112 */);
    return gpsti_f32_from_bits(moved | (magnitude >= 0x7c00u ? 0x7f800000u : 0) | sign);
#endif
}

/* Larger for larger values, the same for both zeros, least of all for NaN. */
GPSTI_DEVICE GPSTI_INLINE int16_t gpsti_f16_key(uint16_t half) {
    const int16_t magnitude = (int16_t)(half & 0x7fffu), sign = (int16_t)(0 - (half >> 15)); /* all ones: negative */
    const int16_t key = (int16_t)((magnitude ^ sign) - sign), nan = magnitude > 0x7c00 ? -1 : 0;
    return (int16_t)((key & ~nan) | (nan & INT16_MIN));
}

GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_f32_key(float value) {
    const uint32_t bits = gpsti_f32_bits(value);
    const int32_t magnitude = (int32_t)(bits & 0x7fffffffu);
    const int32_t key = bits >> 31 ? -magnitude : magnitude;
    return magnitude > 0x7f800000 ? INT32_MIN : key;
}

#endif
