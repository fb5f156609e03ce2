/* tests/test_exact.c -- the arithmetic behind the promise of the same bits, against libm and the compiler. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/exact/exact_internal.h"
#endif

#include <fenv.h>
#include <math.h>

/* Finite or not, of any exponent; half of the triples cancel nearly. */
static void random_triple(uint64_t* seed, float out[3]) {
    uint32_t bits[3];
    for (int i = 0; i < 3; i++)
        bits[i] = (uint32_t)test_random(seed);
    const uint64_t choice = test_random(seed);
    if (choice & 1) {
        const int32_t sum = (int32_t)((bits[0] >> 23) & 255) + (int32_t)((bits[1] >> 23) & 255) - 127;
        const int32_t near = sum + (int32_t)((choice >> 8) % 60) - 30;
        bits[2] = (bits[2] & 0x807fffffu) | ((uint32_t)(near < 0 ? 0 : near > 254 ? 254 : near) << 23);
    }
    if (choice & 2) { /* few bits: ties and exact results */
        bits[0] &= 0xfffff001u;
        bits[1] &= 0xffff8003u;
        bits[2] &= (choice & 4) ? 0xffffffffu : 0xfffff000u;
    }
    for (int i = 0; i < 3; i++)
        out[i] = gpsti_f32_from_bits(bits[i]);
}

static void fma_equals_libm(void** state) {
    uint64_t seed = test_seed(1);
    (void)state;
    for (uint32_t i = 0; i < 4000000; i++) {
        float v[3];
        random_triple(&seed, v);
        const float want = fmaf(v[0], v[1], v[2]), soft = gpsti_fma_soft(v[0], v[1], v[2]);
        const float used = gpsti_fma(v[0], v[1], v[2]);
        const bool both_nan = isnan(want) && isnan(soft) && isnan(used);
        if (!both_nan &&
            (gpsti_f32_bits(want) != gpsti_f32_bits(soft) || gpsti_f32_bits(want) != gpsti_f32_bits(used)))
            fail_msg("fma(%a, %a, %a): libm %a, soft %a, used %a", (double)v[0], (double)v[1], (double)v[2],
                     (double)want, (double)soft, (double)used);
    }
}

static void roots_equal_libm(void** state) {
    uint64_t seed = test_seed(2);
    (void)state;
    for (uint32_t i = 0; i < 400000; i++) {
        const uint64_t bits = test_random(&seed) & 0x7fffffffffffffffu;
        const double value = gpsti_f64_from_bits(i % 16 == 0 ? bits >> 12 : bits);
        const float narrow = gpsti_f32_from_bits((uint32_t)(bits >> 33));
        if (value < (double)INFINITY) {
            assert_true(gpsti_sqrt64(value) == sqrt(value));
            assert_true(gpsti_sqrt64_soft(value) == sqrt(value));
        }
        if (narrow < INFINITY) {
            float block[4] = {narrow, 2.0f, 3.0f, narrow};
            gpsti_sqrt32_block(block, 4);
            assert_true(gpsti_sqrt32(narrow) == sqrtf(narrow) && block[0] == sqrtf(narrow) &&
                        block[3] == block[0]);
            assert_true((float)gpsti_sqrt64_soft((double)narrow) == sqrtf(narrow));
        }
    }
}

/* The oracle must be better than what it judges. */
static long double wide_sine(double degrees, bool cosine) {
    const double quarters = floor(degrees / 90.0 + 0.5);
    const long double x =
        ((long double)degrees - 90.0L * (long double)quarters) * 3.14159265358979323846264338L / 180.0L;
    const int64_t turn = (int64_t)quarters + (cosine ? 1 : 0);
    const long double part = (turn & 1) ? cosl(x) : sinl(x);
    return (turn & 2) ? -part : part;
}

static void set_up_functions_keep_their_bounds(void** state) {
    uint64_t seed = test_seed(3);
    double worst_sine = 0, worst_arc = 0;
    (void)state;
    for (uint32_t i = 0; i < 400000; i++) {
        const double unit = (double)(int64_t)test_random(&seed) / 9223372036854775808.0;
        const double degrees = unit * (i & 1 ? 360.0 : 1e6);
        double sine, cosine;
        gpsti_sin_cos_degrees(degrees, &sine, &cosine);
        const double sine_error = (double)fabsl((long double)sine / wide_sine(degrees, false) - 1);
        const double cosine_error = (double)fabsl((long double)cosine / wide_sine(degrees, true) - 1);
        worst_sine = fmax(worst_sine, fmax(sine_error, cosine_error));
        const double y = (double)(int64_t)test_random(&seed) * (i & 2 ? 1e-9 : 1.0),
                     x = (double)(int64_t)test_random(&seed);
        worst_arc = fmax(worst_arc, (double)fabsl((long double)gpsti_atan2_radians(y, x) -
                                                  atan2l((long double)y, (long double)x)));
    }
    printf("sine and cosine: worst relative error %.2e; arc tangent: worst error %.2e rad\n", worst_sine,
           worst_arc);
    assert_true(worst_sine < 1e-15);
    assert_true(worst_arc < 1e-15);
    for (int quarter = -8; quarter <= 8; quarter++) {
        static const double sines[4] = {0, 1, 0, -1};
        double sine, cosine;
        gpsti_sin_cos_degrees(90.0 * quarter, &sine, &cosine);
        assert_true(sine == sines[quarter & 3] && cosine == sines[(quarter + 1) & 3]);
    }
    assert_true(gpsti_atan2_radians(0, 0) == 0);
}

static void pixel_arc_keeps_its_bound(void** state) {
    double worst = 0;
    (void)state;
    for (uint32_t i = 0; i <= 2000000; i++) {
        const float r = (float)i / 2000000.0f, z = r * r, arc = r * GPSTI_ATAN_POLYNOMIAL(gpsti_fma, z);
        worst = fmax(worst, fabs((double)arc - atan((double)r)));
    }
    printf("float arc tangent: worst error %.3e rad\n", worst);
    assert_true(worst < 1.3e-7);
}

static double half_value(uint16_t half) {
    const int exponent = (half >> 10) & 31, significand = half & 1023;
    const double magnitude =
        exponent == 0 ? ldexp(significand, -24) : ldexp(1024 + significand, exponent - 25);
    return half & 0x8000 ? -magnitude : magnitude;
}

/* The finite half nearest to value, ties to even, by looking at the neighbours. */
static uint16_t nearest_half(float value) {
    const double magnitude = fabs((double)value);
    const uint16_t sign = signbit(value) ? 0x8000 : 0;
    uint32_t low = 0, high = 0x7c00; /* 0x7c00 stands for 65536, where rounding overflows to infinity */
    while (high - low > 1) {
        const uint32_t middle = (low + high) / 2;
        if (half_value((uint16_t)middle) <= magnitude)
            low = middle;
        else
            high = middle;
    }
    const double above = high == 0x7c00 ? 65536.0 : half_value((uint16_t)high);
    const double below_gap = magnitude - half_value((uint16_t)low), above_gap = above - magnitude;
    const bool up = above_gap < below_gap || (above_gap == below_gap && (low & 1));
    return (uint16_t)(sign | (up ? high : low));
}

static void halves_round_to_nearest_even(void** state) {
    uint64_t seed = test_seed(4);
    (void)state;
    for (uint32_t half = 0; half < 0x10000; half++) {
        if ((half & 0x7c00) == 0x7c00)
            continue;
        assert_int_equal(gpsti_f16_from_f32((float)half_value((uint16_t)half)), half);
        /* The tie above it, and its two neighbours. */
        if ((half & 0x7fff) == 0x7bff)
            continue;
        const float next = (float)half_value((uint16_t)(half + 1));
        const float tie = ((float)half_value((uint16_t)half) + next) / 2;
        const float values[3] = {tie, nextafterf(tie, 0), nextafterf(tie, next * 2)};
        for (int i = 0; i < 3; i++)
            assert_int_equal(gpsti_f16_from_f32(values[i]), nearest_half(values[i]));
    }
    for (uint32_t i = 0; i < 1000000; i++) {
        uint32_t bits = (uint32_t)test_random(&seed);
        if (i & 1) /* within the range of halves and a little below */
            bits = (bits & 0x807fffffu) | ((100 + (bits >> 8) % 46) << 23);
        const float value = gpsti_f32_from_bits(bits);
        if (isfinite(value))
            assert_int_equal(gpsti_f16_from_f32(value), nearest_half(value));
    }
    assert_int_equal(gpsti_f16_from_f32(INFINITY), 0x7c00);
    assert_int_equal(gpsti_f16_from_f32(-INFINITY), 0xfc00);
    assert_int_equal(gpsti_f16_from_f32(gpsti_f32_from_bits(0x7f800001u)), 0x7e00);
    assert_int_equal(gpsti_f16_from_f32(gpsti_f32_from_bits(0xffc12345u)), 0xfe00);
}

static void self_test_passes(void** state) {
    const char* reason = gpsti_exact_self_test();
    (void)state;
    if (reason)
        fail_msg("%s", reason);
}

/* Whatever the caller's mode is, ours is nearest, and the caller's comes back. */
static void mode_is_set_and_restored(void** state) {
    (void)state;
#if defined(__x86_64__) || defined(__aarch64__)
    volatile float one = 1.0f, small = 1.0f / 33554432.0f, least = 1.17549435e-38f;
    volatile float inside, outside;
    assert_int_equal(fesetround(FE_UPWARD), 0);
    const gpsti_fp_mode mode = gpsti_fp_enter();
    inside = one + small;
    gpsti_fp_leave(mode);
    outside = one + small;
    assert_int_equal(fegetround(), FE_UPWARD);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_true(inside == 1.0f);
    assert_true(outside > 1.0f);
#if defined(__x86_64__)
    const uint32_t saved = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved | 0x8040);
    const gpsti_fp_mode flushing = gpsti_fp_enter();
    inside = least / 2;
    gpsti_fp_leave(flushing);
    outside = least / 2;
    const uint32_t left = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved);
    assert_true(inside > 0);
    assert_true(outside == 0);
    assert_int_equal(left & 0x8040, 0x8040);
#endif
    (void)least;
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fma_equals_libm),
        cmocka_unit_test(roots_equal_libm),
        cmocka_unit_test(set_up_functions_keep_their_bounds),
        cmocka_unit_test(pixel_arc_keeps_its_bound),
        cmocka_unit_test(halves_round_to_nearest_even),
        cmocka_unit_test(self_test_passes),
        cmocka_unit_test(mode_is_set_and_restored),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
