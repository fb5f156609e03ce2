/* kernels/simd/simd_internal.h -- the levels of the CPU's vector instructions: which one runs, and how a loop is
   compiled for each of them. */
#ifndef GPSTI_SIMD_INTERNAL_H
#define GPSTI_SIMD_INTERNAL_H

#include "../exact/exact_internal.h"

/* All give the same bits. */
typedef enum gpsti_simd_level {
    GPSTI_SIMD_PORTABLE = 0, /* what the compiler was told */
    GPSTI_SIMD_AVX2 = 1,     /* AVX2 and FMA, compiled in beside it and chosen at run time */
    GPSTI_SIMD_AVX512 = 2    /* AVX-512 F, BW, DQ and VL, likewise */
} gpsti_simd_level;

/* The highest level that this machine has and GPUSTAGE_CPU=portable or =avx2 in the environment does not forbid. */
GPSTI_INTERN gpsti_simd_level gpsti_simd_level_query(void);
GPSTI_INTERN const char* gpsti_simd_level_name(gpsti_simd_level level);

/* ---- compiling a loop --------------------------------------------------------------
   A loop is a template: a file that is included with GPSTI_SIMD_LEVEL as portable, and where GPSTI_SIMD_X86 is set also
   as avx2 and, if that is faster, as avx512. It undefines GPSTI_SIMD_LEVEL at its end. In it are
   GPSTI_SIMD(name)      gpsti_name at this level
   GPSTI_SIMD_PRIVATE    what a function begins with, for GPSTI_PRIVATE
   GPSTI_SIMD_INLINE     the same where it must be inlined
   GPSTI_SIMD_FMA        float multiply-add, rounded once
   Windows aligns stacks to 16 bytes, and gcc there spills 32-byte registers as if it were 32. */
#if (defined(__x86_64__) || defined(__i386__)) && (defined(__clang__) || (defined(__GNUC__) && !defined(_WIN32)))
#define GPSTI_SIMD_X86 1
#else
#define GPSTI_SIMD_X86 0
#endif

#define GPSTI_SIMD_JOIN(a, b) a##_##b
#define GPSTI_SIMD_AT(name, level) GPSTI_SIMD_JOIN(name, level)
#define GPSTI_SIMD(name) GPSTI_SIMD_AT(gpsti_##name, GPSTI_SIMD_LEVEL)
#define GPSTI_SIMD_PRIVATE GPSTI_PRIVATE GPSTI_SIMD_AT(GPSTI_TARGET, GPSTI_SIMD_LEVEL)
#define GPSTI_SIMD_INLINE GPSTI_SIMD_PRIVATE GPSTI_ALWAYS_INLINE
#define GPSTI_SIMD_FMA GPSTI_SIMD_AT(GPSTI_FMA, GPSTI_SIMD_LEVEL)

#define GPSTI_TARGET_portable
#define GPSTI_TARGET_avx2 __attribute__((target("avx2,fma")))
#define GPSTI_TARGET_AVX512 "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl"
#if defined(__clang__)
#define GPSTI_TARGET_avx512 __attribute__((target(GPSTI_TARGET_AVX512)))
#else
#define GPSTI_TARGET_avx512 __attribute__((target(GPSTI_TARGET_AVX512 ",prefer-vector-width=512")))
#endif
#define GPSTI_FMA_portable gpsti_fma
#define GPSTI_FMA_avx2 __builtin_fmaf
#define GPSTI_FMA_avx512 __builtin_fmaf

/* At avx2 and avx512: a vector's bits, its types, its intrinsics and those of untyped bits. */
#define GPSTI_SIMD_WIDTH GPSTI_SIMD_AT(GPSTI_WIDTH, GPSTI_SIMD_LEVEL)
#define GPSTI_WIDTH_avx2 256
#define GPSTI_WIDTH_avx512 512
#define GPSTI_SIMD_GLUE_TOKENS(a, b, c) a##b##c
#define GPSTI_SIMD_GLUE(a, b, c) GPSTI_SIMD_GLUE_TOKENS(a, b, c)
#define GPSTI_SIMD_INTS GPSTI_SIMD_GLUE(__m, GPSTI_SIMD_WIDTH, i)
#define GPSTI_SIMD_FLOATS GPSTI_SIMD_GLUE(__m, GPSTI_SIMD_WIDTH, )
#define GPSTI_SIMD_OP(name) GPSTI_SIMD_GLUE(_mm, GPSTI_SIMD_WIDTH, _##name)
#define GPSTI_SIMD_BITS(name) GPSTI_SIMD_GLUE(GPSTI_SIMD_OP(name), _si, GPSTI_SIMD_WIDTH)

/* ---- calling it ---------------------------------------------------------------------
   gpsti_name of the level, or of the highest that there is below it. */
#if GPSTI_SIMD_X86
#define GPSTI_SIMD_TO_AVX2(level, name, ...) \
    ((level) == GPSTI_SIMD_PORTABLE ? gpsti_##name##_portable(__VA_ARGS__) : gpsti_##name##_avx2(__VA_ARGS__))
#define GPSTI_SIMD_TO_AVX512(level, name, ...) \
    ((level) == GPSTI_SIMD_AVX512 ? gpsti_##name##_avx512(__VA_ARGS__) : GPSTI_SIMD_TO_AVX2(level, name, __VA_ARGS__))
#else
#define GPSTI_SIMD_TO_AVX2(level, name, ...) ((void)(level), gpsti_##name##_portable(__VA_ARGS__))
#define GPSTI_SIMD_TO_AVX512 GPSTI_SIMD_TO_AVX2
#endif

#endif
