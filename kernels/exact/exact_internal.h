/* kernels/exact/exact_internal.h -- the discipline of the same bits: the only arithmetic
   that kernels may use where floats are concerned, and the floating-point mode it needs. Knows no picture. */
#ifndef GPSTI_EXACT_INTERNAL_H
#define GPSTI_EXACT_INTERNAL_H

#include <string.h>

#include "../../core/base/compiler_internal.h"

#if defined(__SSE2__) || defined(_M_X64) || (defined(_M_IX86_FP) && _M_IX86_FP >= 2)
#define GPSTI_HAS_SSE2 1
#include <emmintrin.h>
#elif defined(__aarch64__) || defined(_M_ARM64)
#define GPSTI_HAS_NEON64 1
#include <arm_neon.h>
#endif

/* The rules. A kernel that keeps them gives the same bits on every compiler, option and device:

   1. A float product never feeds a sum, except as gpsti_fma(a, b, c): one rounding everywhere. No bare
      a * b + c, also not through a variable: compilers contract across statements. (A product with a power of
      two is exact and may.)
   2. A double product that feeds a sum goes through gpsti_mul64: rounded on its own everywhere. Doubles are
      for set-up (views, rows), never for pixels.
   3. Besides these: + - / and comparisons; square roots by gpsti_sqrt32 and gpsti_sqrt64. No function of
      libm, whose results differ between systems: sines, tangents and arcs are the polynomials below.
   4. Float to integer by a cast of a value known to fit (towards zero). No rounding function, no saturation.
   5. Selection by comparison (a < b ? a : b), not fminf. No NaN is ever made, except of floats that were given:
      machines differ in its bits, so one pattern replaces it ahead of the store (value == value). No result
      depends on the sign of a zero.
   6. Sums are written in their order; no loop is a reduction.
   7. Double to float by gpsti_narrow: gcc 12 takes (double)(float)x for x where it computes two at once.

   The floating-point mode (nearest, subnormals kept) is set by gpsti_fp_enter around every computation.
   gpsti_exact_self_test notices a build that breaks the rules from outside (-ffast-math, x87). */

#if defined(__CUDACC__) || defined(__HIPCC__)
#define GPSTI_DEVICE __host__ __device__
#else
#define GPSTI_DEVICE
#endif

/* ---- bits --------------------------------------------------------------------- */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_f32_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_f32_from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

GPSTI_DEVICE GPSTI_INLINE uint64_t gpsti_f64_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

GPSTI_DEVICE GPSTI_INLINE double gpsti_f64_from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* By its bits: where a loop needs the sign again, a comparison for it here would keep compilers from
   vectorising. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_abs32(float value) {
    return gpsti_f32_from_bits(gpsti_f32_bits(value) & 0x7fffffffu);
}

/* To float, rounded, even where the result is widened again. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_narrow(double value) {
    float narrow = (float)value;
#if defined(__GNUC__) && !defined(__clang__) && !defined(__CUDA_ARCH__)
#if defined(GPSTI_HAS_SSE2)
    __asm__("" : "+x"(narrow));
#else
    __asm__("" : "+m"(narrow));
#endif
#endif
    return narrow;
}

/* ---- products and sums ---------------------------------------------------------
   fma without the instruction. The product of two floats is exact in double, so only the sum is rounded
   twice: to double, then to float. The second rounding goes wrong only where the first one landed on its tie,
   or where the float is subnormal and has its tie elsewhere; there the sum is first rounded to odd, which
   never makes a tie. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_fma_soft(float a, float b, float c) {
    const double product = (double)a * (double)b;
    const double sum = product + (double)c;
    uint64_t bits = gpsti_f64_bits(sum);
    if ((bits & 0x1fffffffu) != 0x10000000u && (bits & 0x7fffffffffffffffu) >= 0x3810000000000000u)
        return gpsti_narrow(sum);
    const double c_part = sum - product;
    const double lost = (product - (sum - c_part)) + ((double)c - c_part);
    if ((lost > 0 || lost < 0) && (bits & 1) == 0)
        bits += (lost > 0) == (sum > 0) ? 1u : ~(uint64_t)0;
    return gpsti_narrow(gpsti_f64_from_bits(bits));
}

/* a * b + c, rounded once. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_fma(float a, float b, float c) {
#if defined(__CUDA_ARCH__)
    return __fmaf_rn(a, b, c);
#elif defined(__HIP_DEVICE_COMPILE__) || defined(__FMA__) || defined(__ARM_FEATURE_FMA)
    return __builtin_fmaf(a, b, c);
#else
    return gpsti_fma_soft(a, b, c);
#endif
}

/* a * b, rounded on its own: volatile keeps every compiler from contracting it into a sum. */
GPSTI_DEVICE GPSTI_INLINE double gpsti_mul64(double a, double b) {
#if defined(__CUDA_ARCH__)
    return __dmul_rn(a, b);
#else
    volatile double product = a * b;
    return product;
#endif
}

/* value as the sum of two floats, to 48 bits. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_split(double value, float* high, float* low) {
    *high = gpsti_narrow(value);
    *low = gpsti_narrow(value - (double)*high);
}

/* ---- square roots ---------------------------------------------------------------
   The root of bits (n_pairs pairs of binary digits, highest first), one binary digit a pair; the lowest bit
   of the result is set when something remains. For machines whose instruction we do not know. */
GPSTI_INLINE uint64_t gpsti_root_digits(uint64_t bits, uint32_t n_bits, uint32_t n_digits) {
    uint64_t root = 0, rest = 0;
    for (uint32_t i = 0; i < n_digits; i++) {
        const uint32_t used = 2 * (i + 1);
        const uint64_t pair = used <= n_bits ? (bits >> (n_bits - used)) & 3 : 0;
        const uint64_t trial = (root << 2) | 1;
        rest = (rest << 2) | pair;
        root <<= 1;
        if (rest >= trial) {
            rest -= trial;
            root |= 1;
        }
    }
    return (root << 1) | (rest != 0);
}

/* Positive finite doubles. A float's root comes out correctly rounded from this, too: 53 >= 2 * 24 + 2 bits.
   */
GPSTI_INLINE double gpsti_sqrt64_soft(double value) {
    uint64_t bits = gpsti_f64_bits(value);
    int32_t exponent = 0;
    if (bits == 0)
        return value;
    if (bits < 0x0010000000000000u) { /* subnormal: times 2^54 */
        bits = gpsti_f64_bits(value * 18014398509481984.0);
        exponent = -54;
    }
    exponent += (int32_t)(bits >> 52) - 1023 - 52;
    uint64_t significand = (bits & 0x000fffffffffffffu) | 0x0010000000000000u;
    if (exponent & 1) {
        significand <<= 1;
        exponent--;
    }
    /* 54 digits and the sticky bit; 53 are kept. */
    const uint64_t root = gpsti_root_digits(significand, 54, 54);
    const uint64_t rounded = (root + 1 + ((root >> 2) & 1)) >> 2;
    /* root's digits stand for significand * 2^54, so one kept digit is worth 2^(exponent / 2 - 26). */
    return (double)rounded * gpsti_f64_from_bits((uint64_t)(exponent / 2 - 26 + 1023) << 52);
}

GPSTI_DEVICE GPSTI_INLINE double gpsti_sqrt64(double value) {
#if defined(__CUDA_ARCH__)
    return __dsqrt_rn(value);
#elif defined(__HIP_DEVICE_COMPILE__)
    return __builtin_sqrt(value);
#elif defined(GPSTI_HAS_SSE2)
    return _mm_cvtsd_f64(_mm_sqrt_sd(_mm_setzero_pd(), _mm_set_sd(value)));
#elif defined(GPSTI_HAS_NEON64)
    return vget_lane_f64(vsqrt_f64(vdup_n_f64(value)), 0);
#else
    return gpsti_sqrt64_soft(value);
#endif
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_sqrt32(float value) {
#if defined(__CUDA_ARCH__)
    return __fsqrt_rn(value);
#elif defined(__HIP_DEVICE_COMPILE__)
    return __builtin_sqrtf(value); /* not __fsqrt_rn, which is approximate on AMD */
#elif defined(GPSTI_HAS_SSE2)
    return _mm_cvtss_f32(_mm_sqrt_ss(_mm_set_ss(value)));
#elif defined(GPSTI_HAS_NEON64)
    return vget_lane_f32(vsqrt_f32(vdup_n_f32(value)), 0);
#else
    return gpsti_narrow(gpsti_sqrt64_soft((double)value));
#endif
}

/* In place, n a multiple of 4: compilers do not vectorise square roots that might set errno. */
GPSTI_INLINE void gpsti_sqrt32_block(float* values, uint32_t n) {
#if defined(GPSTI_HAS_SSE2)
    for (uint32_t i = 0; i < n; i += 4)
        _mm_storeu_ps(values + i, _mm_sqrt_ps(_mm_loadu_ps(values + i)));
#elif defined(GPSTI_HAS_NEON64)
    for (uint32_t i = 0; i < n; i += 4)
        vst1q_f32(values + i, vsqrtq_f32(vld1q_f32(values + i)));
#else
    for (uint32_t i = 0; i < n; i++)
        values[i] = gpsti_sqrt32(values[i]);
#endif
}

/* ---- arcs -----------------------------------------------------------------------
   atan(r) = r * GPSTI_ATAN_POLYNOMIAL(fma, r * r) on 0..1: our minimax fit; with every coefficient and step
   rounded to float the error stays below 1.3e-7 rad (the fit alone: 4.0e-8). fma names the multiply-add to
   use, so that code compiled for several levels of one machine can name the instruction. */
#define GPSTI_ATAN_POLYNOMIAL(fma, z)                                                                 \
    fma(fma(fma(fma(fma(fma(fma(-4.09448321866e-3f, z, 2.20179961178e-2f), z, -5.61552509068e-2f), z, \
                        9.66181674530e-2f),                                                           \
                    z, -1.39172708275e-1f),                                                           \
                z, 1.99485777934e-1f),                                                                \
            z, -3.33300787464e-1f),                                                                   \
        z, 9.99999412595e-1f)

#define GPSTI_PI 3.14159265358979323846

/* ---- sine and cosine -----------------------------------------------------------
   For set-up in double: each within 1e-15 of the truth, relative, and the same bits everywhere. Degrees within
   +-1e6; multiples of 90 come out exact. Minimax fits of our own; the fits alone are good to 4e-17. Coefficients
   from the lowest power up. */
GPSTI_DEVICE GPSTI_INLINE double gpsti_exact_polynomial(const double* coefficients, uint32_t n, double z) {
    double value = coefficients[n - 1];
    for (uint32_t i = n - 1; i > 0; i--)
        value = gpsti_mul64(value, z) + coefficients[i - 1];
    return value;
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_sin_cos_degrees(double degrees, double* sine, double* cosine) {
    /* sin x = x + x z S(z), cos x = 1 - z / 2 + z z C(z), z = x x, on +-pi/4 */
    static const double s[6] = {-0.16666666666666632047,    0.0083333333333224190513,
                                -0.00019841269829812358686, 2.7557313693566354014e-6,
                                -2.5050758383469974188e-8,  1.5896811749410585636e-10};
    static const double c[6] = {0.041666666666666599516,    -0.0013888888888874131307,
                                0.000024801587289487017871, -2.7557314353789640165e-7,
                                2.0875723479007841482e-9,   -1.1359658838463137365e-11};
    const int64_t quarter = (int64_t)(degrees / 90.0 + (degrees < 0 ? -0.5 : 0.5));
    const double rest = degrees - (double)(90 * quarter); /* exact */
    const double x = gpsti_mul64(rest, GPSTI_PI / 180.0);
    const double z = gpsti_mul64(x, x);
    const double sine_0 = x + gpsti_mul64(gpsti_mul64(x, z), gpsti_exact_polynomial(s, 6, z));
    const double tail = gpsti_mul64(gpsti_mul64(z, z), gpsti_exact_polynomial(c, 6, z));
    const double cosine_0 = 1.0 - (gpsti_mul64(z, 0.5) - tail);
    const bool odd = (quarter & 1) != 0;
    const double first = odd ? cosine_0 : sine_0, second = odd ? sine_0 : cosine_0;
    *sine = (quarter & 2) != 0 ? 0.0 - first : first;
    *cosine = ((quarter + 1) & 2) != 0 ? 0.0 - second : second;
}

/* Within 1e-15 of the truth, and the same bits everywhere. For set-up on the host. */
GPSTI_INTERN double gpsti_atan2_radians(double y, double x);

/* ---- half floats ----------------------------------------------------------------
   float -> binary16, to nearest even, in integers: too large becomes infinity, subnormals are exact, NaN
   becomes the quiet NaN of its sign. */
GPSTI_DEVICE GPSTI_INLINE uint16_t gpsti_f16_from_f32(float value) {
    const uint32_t bits = gpsti_f32_bits(value);
    const uint32_t sign = (bits >> 16) & 0x8000u;
    const uint32_t magnitude = bits & 0x7fffffffu;
    /* Normal: the exponent moves from bias 127 to 15, and 13 bits are rounded off; a carry runs into the
       exponent. */
    const uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
    /* Subnormal: the significand in units of 2^-24, shifted right by at most 25, where nothing is left. */
    const uint32_t below = magnitude < 0x38800000u ? 126 - (magnitude >> 23) : 25;
    const uint32_t shift = below < 25 ? below : 25;
    const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
    const uint32_t subnormal =
        (significand + (1u << (shift - 1)) - 1 + ((significand >> shift) & 1)) >> shift;
    const uint32_t finite = magnitude < 0x38800000u ? subnormal : normal;
    const uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    return (uint16_t)(sign | (magnitude < 0x477ff000u ? finite : large));
}

/* ---- the floating-point mode ----------------------------------------------------
   enter: rounding to nearest, subnormals kept, exceptions masked, on this thread; leave: as it was found. */
typedef struct gpsti_fp_mode {
    uint64_t saved;
} gpsti_fp_mode;

GPSTI_INTERN gpsti_fp_mode gpsti_fp_enter(void);
GPSTI_INTERN void gpsti_fp_leave(gpsti_fp_mode mode);

/* NULL when this build computes as the rules say (in the mode of gpsti_fp_enter), else a sentence saying what
   is wrong and what to do. */
GPSTI_INTERN const char* gpsti_exact_self_test(void);
GPSTI_INTERN gpst_result gpsti_exact_check(const char* function); /* UNSUPPORTED when there is such a sentence */

#endif
