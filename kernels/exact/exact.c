/* kernels/exact/exact.c -- the parts of exact_internal.h that are no use inside a
   pixel loop: set-up functions in double, the floating-point mode, the self-test. Knows no picture. */
#include "../../core/base/platform_internal.h"

#include "../../core/base/base_internal.h"
#include "exact_internal.h"

#include <float.h>

#if defined(_M_ARM64)
#include <intrin.h>
#endif

/* ---- arc tangent ------------------------------------------------------------------ */
/* r in 0..1 */
GPSTI_PRIVATE double gpsti_exact_atan(double r) {
    static const double a[12] = {
        0.99999999999999999882,  -0.33333333333333133298,  0.19999999999943707977,  -0.14285714279505329316,
        0.11111110756771419996,  -0.090908971303727689612, 0.076920507622876615506, -0.066630107832131447129,
        0.058472896214234051051, -0.050368841229451821733, 0.038008872558971726948, -0.017851506329428187809};
    const bool upper = r > 0.41421356237309503; /* tan(pi / 8): above it, pi / 4 plus the arc of the rest */
    const double t = upper ? (r - 1.0) / (r + 1.0) : r;
    const double arc = gpsti_mul64(t, gpsti_exact_polynomial(a, 12, gpsti_mul64(t, t)));
    return upper ? GPSTI_PI / 4 + arc : arc;
}

GPSTI_INTERN double gpsti_atan2_radians(double y, double x) {
    const double ax = x < 0 ? -x : x, ay = y < 0 ? -y : y;
    const double high = ax > ay ? ax : ay, low = ax > ay ? ay : ax;
    double arc = high > 0 ? gpsti_exact_atan(low / high) : 0.0;
    if (ay > ax)
        arc = GPSTI_PI / 2 - arc;
    if (x < 0)
        arc = GPSTI_PI - arc;
    return y < 0 ? -arc : arc;
}

/* ---- the floating-point mode ----------------------------------------------------- */
GPSTI_INTERN gpsti_fp_mode gpsti_fp_enter(void) {
    gpsti_fp_mode mode;
#if defined(GPSTI_HAS_SSE2)
    mode.saved = _mm_getcsr();
    _mm_setcsr(0x1f80); /* every exception masked, to nearest, neither flush to zero nor denormals are zero */
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode.saved));
    __asm__ volatile("msr fpcr, %0" : : "r"((uint64_t)0) : "memory");
#elif defined(_M_ARM64)
    mode.saved = (uint64_t)_ReadStatusReg(ARM64_FPCR);
    _WriteStatusReg(ARM64_FPCR, 0);
#else
    mode.saved = 0;
#endif
    return mode;
}

GPSTI_INTERN void gpsti_fp_leave(gpsti_fp_mode mode) {
#if defined(GPSTI_HAS_SSE2)
    _mm_setcsr((unsigned)mode.saved);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" : : "r"(mode.saved) : "memory");
#elif defined(_M_ARM64)
    _WriteStatusReg(ARM64_FPCR, (int64_t)mode.saved);
#else
    (void)mode;
#endif
}

/* ---- the self-test ----------------------------------------------------------------
   Values pass through volatile so that nothing is computed by the compiler. */
GPSTI_PRIVATE const char* gpsti_exact_test_arithmetic(void) {
    volatile float one = 1.0f, tiny = 1.0f / 16777216.0f, least_normal = FLT_MIN, three = 3.0f;
    volatile double one_64 = 1.0, tiny_64 = DBL_EPSILON / 4;
    volatile float sum = one + tiny, negative_sum = -one - tiny, upper_sum = one + three * tiny;
    if (gpsti_f32_bits(sum) != 0x3f800000u || gpsti_f32_bits(negative_sum) != 0xbf800000u ||
        gpsti_f32_bits(upper_sum) != 0x3f800002u)
        return "floats are not rounded to nearest even";
    if ((one + tiny) - one != 0.0f || (one_64 + tiny_64) - one_64 != 0.0)
        return "sums are reordered (-ffast-math) or kept in excess precision (x87: use -msse2 -mfpmath=sse)";
    volatile float subnormal = least_normal / three;
    if (gpsti_f32_bits(subnormal) != 0x002aaaabu || subnormal + subnormal < subnormal * 1.5f)
        return "subnormal floats are flushed to zero";
    volatile float third = one / three;
    if (gpsti_f32_bits(third) != 0x3eaaaaabu)
        return "divisions are approximate (-ffast-math)";
    volatile float root = gpsti_sqrt32(three);
    if (gpsti_f32_bits(root) != 0x3fddb3d7u)
        return "square roots are approximate (-ffast-math)";
    return NULL;
}

GPSTI_PRIVATE const char* gpsti_exact_test_fma(void) {
    /* a * b + c = result with, in turn: a product of 48 bits that nearly cancels; a sum that lies just below
       a tie and is on it in double; the same with a subnormal result. */
    static const uint32_t cases[3][4] = {{0x3f800001u, 0x3f800001u, 0xbf800002u, 0x28800000u},
                                         {0x3f800001u, 0x337ffffeu, 0x3f800001u, 0x3f800001u},
                                         {0x1a000001u, 0x19fffffeu, 0x00400001u, 0x00400001u}};
    for (uint32_t i = 0; i < 3; i++) {
        volatile float a = gpsti_f32_from_bits(cases[i][0]), b = gpsti_f32_from_bits(cases[i][1]);
        volatile float c = gpsti_f32_from_bits(cases[i][2]);
        if (gpsti_f32_bits(gpsti_fma(a, b, c)) != cases[i][3] ||
            gpsti_f32_bits(gpsti_fma_soft(a, b, c)) != cases[i][3])
            return "fused multiply-adds are not rounded once (-ffast-math, or x87: use -msse2 -mfpmath=sse)";
    }
    return NULL;
}

GPSTI_INTERN const char* gpsti_exact_self_test(void) {
#if defined(__FAST_MATH__) || defined(__ASSOCIATIVE_MATH__) || defined(__RECIPROCAL_MATH__) || \
    defined(_M_FP_FAST)
    return "compiled with -ffast-math or a part of it, which gives up the promise of the same bits: leave it "
           "out";
#else
    const gpsti_fp_mode mode = gpsti_fp_enter();
    const char* reason = gpsti_exact_test_arithmetic();
    if (!reason)
        reason = gpsti_exact_test_fma();
    gpsti_fp_leave(mode);
    return reason;
#endif
}

GPSTI_INTERN gpst_result gpsti_exact_check(const char* function) {
    const char* inexact = gpsti_exact_self_test();
    GPSTI_FAIL_IF(inexact, GPST_ERROR_UNSUPPORTED, "%s: this build does not compute exactly: %s", function, inexact);
    return GPST_OK;
}
