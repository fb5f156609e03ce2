/* kernels/simd/simd.c -- which level of vector instructions this machine has. */
#include "../../core/base/platform_internal.h"

#include "simd_internal.h"

#include <stdlib.h>

/* gcc's AddressSanitizer can move a frame to memory aligned to 32 bytes, where 64-byte vectors on the stack fault. */
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define GPSTI_SIMD_AVX512_RUNS 0
#else
#define GPSTI_SIMD_AVX512_RUNS 1
#endif

GPSTI_INTERN gpsti_simd_level gpsti_simd_level_query(void) {
#if GPSTI_SIMD_X86
    const char* wanted = getenv("GPUSTAGE_CPU");
    if ((wanted && strcmp(wanted, "portable") == 0) || !__builtin_cpu_supports("avx2") ||
        !__builtin_cpu_supports("fma"))
        return GPSTI_SIMD_PORTABLE;
    const bool avx512 = GPSTI_SIMD_AVX512_RUNS && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    return avx512 && !(wanted && strcmp(wanted, "avx2") == 0) ? GPSTI_SIMD_AVX512 : GPSTI_SIMD_AVX2;
#else
    return GPSTI_SIMD_PORTABLE;
#endif
}

GPSTI_INTERN const char* gpsti_simd_level_name(gpsti_simd_level level) {
    static const char* const names[] = {"portable", "avx2", "avx512"};
    return names[(int)level];
}
