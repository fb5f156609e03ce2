/* tests/test_quantise.c -- quantising and scales: loops against the one value and against the C library, between
   protected pages; percentiles against sorting; what is refused. --hash prints the hash alone. */
#include "test_mask.h"

#include "test_allocator.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/quantise/quantise_internal.h"
#endif

#include <math.h>

/* What every compiler, option and machine must compute. */
#define HASH_OF_ALL 0xbace263fc417bf62u

typedef struct arenas { arena source, rows, reference; } arenas;

static gpst_channels channels_of(void* data, gpst_dtype dtype, size_t n_outer, uint32_t n_channels, size_t n_inner) {
    gpst_channels values = GPST_ZERO;
    values.data = data;
    values.dtype = dtype;
    values.n_outer = n_outer;
    values.n_channels = n_channels;
    values.n_inner = n_inner;
    return values;
}

/* ---- quantise --------------------------------------------------------------------------- */
static uint64_t quantise_all(uint64_t seed) {
    static const size_t outers[] = {1, 2, 7, 64}, inners[] = {1, 2, 9, 63, 64, 65, 127, 200};
    static const uint32_t channels[] = {1, 2, 3, 5, 16};
    arenas a;
    float scales[16];
    uint64_t hash = FNV_BEGIN;
    a.source = arena_open(), a.rows = arena_open(), a.reference = arena_open();
    for (uint32_t choice = 0; choice < 2 * 5 * 60; choice++) {
        const gpst_dtype dtype = choice & 1 ? GPST_DTYPE_F16 : GPST_DTYPE_F32;
        const size_t unit = gpst_dtype_bytes(dtype), n_outer = outers[test_random(&seed) % 4];
        const size_t n_inner = n_outer == 64 ? 1 + choice % 3 : inners[test_random(&seed) % 8];
        const uint32_t n_channels = channels[test_random(&seed) % 5];
        const size_t n = n_outer * n_channels * n_inner;
        const gpst_channels values =
            channels_of(arena_place(a.source, n * unit, unit, &seed), dtype, n_outer, n_channels, n_inner);
        int8_t* out = (int8_t*)arena_place(a.rows, n, 1, &seed);
        int8_t* expected = (int8_t*)arena_moved(out, a.rows, a.reference);
        fill_scores(values.data, n, dtype, choice / 2 % 5, &seed);
        for (uint32_t c = 0; c < n_channels; c++) {
            const uint32_t bits = (uint32_t)(test_random(&seed) % 0x7f800000u);
            scales[c] = choice % 3 == 0 ? gpsti_f32_from_bits(bits ? bits : 1)
                                        : (float)((double)(1 + test_random(&seed) % 64) / 512);
        }
        memset(a.reference.begin, 0xa5, ARENA_BYTES);
        for (size_t i = 0; i < n; i++)
            expected[i] =
                gpsti_quantise_value(gpsti_quantise_read(&values, i), scales[gpsti_quantise_channel(&values, i)]);
        for (uint32_t level = 0; level <= (uint32_t)gpsti_simd_level_query(); level++) {
            memset(a.rows.begin, 0xa5, ARENA_BYTES);
            gpsti_quantise_range(&values, scales, out, (gpsti_simd_level)level, 0, n);
            expect_same(a.rows, a.reference, "quantise", choice, level, n_channels);
        }
        for (uint32_t n_threads = 0; n_threads < (choice % 60 ? 0 : 4); n_threads++) {
            memset(a.rows.begin, 0xa5, ARENA_BYTES);
            if (GPST_FAILED(gpst_quantise(&values, scales, out, n_threads)))
                fail_msg("%s", gpst_last_reason());
            expect_same(a.rows, a.reference, "quantise", choice, 99, n_threads);
        }
        hash = fnv(hash, (const uint8_t*)expected, n);
    }
    arena_close(a.source), arena_close(a.rows), arena_close(a.reference);
    return hash;
}

static void loops_give_the_bits_of_one_value(void** state) {
    (void)state;
    quantise_all(test_seed(60));
}

static void every_build_gives_the_same_hash(void** state) {
    const uint64_t hash = quantise_all(1);
    (void)state;
    if (hash != HASH_OF_ALL)
        fail_msg("hash %016llx, expected %016llx", (unsigned long long)hash, (unsigned long long)HASH_OF_ALL);
}

static void one_value_is_what_the_library_rounds(void** state) {
    uint64_t seed = test_seed(61);
    (void)state;
    for (int i = 0; i < 300000; i++) {
        const float scale = (float)((double)(1 + test_random(&seed) % 100000) / 65536.0);
        float value = pick_f32((uint32_t)(i % 5), &seed);
        if (i % 7 == 0)
            value = ((float)(int32_t)(test_random(&seed) % 300) - 150.5f) * scale; /* near or on ties */
        const float ratio = value / scale;
        const float whole = ratio != ratio ? 0 : nearbyintf(ratio);
        const int expected = whole >= 127 ? 127 : whole <= -128 ? -128 : (int)whole;
        if (gpsti_quantise_value(value, scale) != expected)
            fail_msg("%a / %a: %d, expected %d", (double)value, (double)scale, gpsti_quantise_value(value, scale),
                     expected);
    }
}

static void special_values(void** state) {
    const float nan = gpsti_f32_from_bits(0x7fc00000), inf = gpsti_f32_from_bits(0x7f800000);
    float in[12] = {0.5f, 1.5f, -0.5f, -1.5f, -0.0f, nan, inf, -inf, 127.4f, 127.6f, -128.5f, 1e-40f};
    const int8_t expected[12] = {0, 2, 0, -2, 0, 0, 127, -128, 127, 127, -128, 0};
    int8_t out[12];
    const float one = 1.0f;
    const gpst_channels values = channels_of(in, GPST_DTYPE_F32, 1, 1, 12);
    (void)state;
    memset(out, 0xa5, sizeof out);
    assert_int_equal(gpst_quantise(&values, &one, out, 1), GPST_OK);
    assert_memory_equal(out, expected, sizeof out);
    const float tiny = gpsti_f32_from_bits(3);
    in[0] = gpsti_f32_from_bits(6), in[1] = gpsti_f32_from_bits(0x80000003);
    assert_int_equal(gpst_quantise(&values, &tiny, out, 1), GPST_OK);
    assert_int_equal(out[0], 2);
    assert_int_equal(out[1], -1);
}

/* Every integer comes back as itself. */
static void back_and_forth(void** state) {
    enum { N = 256 };
    int8_t integers[2 * N], again[2 * N];
    float floats[2 * N];
    uint16_t halves[2 * N];
    const float scales[2] = {0.1f, 3.7e-3f};
    (void)state;
    for (int i = 0; i < 2 * N; i++)
        integers[i] = (int8_t)(i - 128);
    gpst_channels values = channels_of(floats, GPST_DTYPE_F32, N, 2, 1);
    for (int i = 0; i < 2; i++) {
        memset(again, 0xa5, sizeof again);
        assert_int_equal(gpst_dequantise(integers, scales, &values), GPST_OK);
        assert_int_equal(gpst_quantise(&values, scales, again, 1), GPST_OK);
        assert_memory_equal(again, integers, sizeof again);
        values.data = halves;
        values.dtype = GPST_DTYPE_F16;
    }
    assert_true(floats[130] == 2 * 0.1f && floats[131] == 3 * 3.7e-3f);
}

/* ---- calibration ----------------------------------------------------------------------------- */
static gpst_calibration* calibration_of(uint32_t n_channels, bool max_only) {
    gpst_calibration_desc desc = GPST_ZERO;
    gpst_calibration* calibration = NULL;
    desc.n_channels = n_channels;
    desc.max_only = max_only;
    if (GPST_FAILED(gpst_calibration_create(&desc, &calibration)))
        fail_msg("%s", gpst_last_reason());
    return calibration;
}

static int by_value(const void* a, const void* b) {
    const float x = *(const float*)a, y = *(const float*)b;
    return x < y ? -1 : x > y;
}

static void percentiles_are_within_their_bound(void** state) {
    enum { N = 5000 };
    static float samples[2][N], magnitudes[N];
    static const double percentiles[] = {0.001, 1, 50, 90, 99, 99.9, 99.99, 100};
    uint64_t seed = test_seed(62);
    (void)state;
    for (int i = 0; i < N; i++) {
        samples[0][i] = pick_f32(1, &seed);
        samples[1][i] = gpsti_f32_from_bits((uint32_t)test_random(&seed) % 0x7f800000u);
    }
    gpst_calibration* calibration = calibration_of(2, false);
    const gpst_channels values = channels_of(samples, GPST_DTYPE_F32, 1, 2, N);
    assert_int_equal(gpst_calibration_add(calibration, &values), GPST_OK);
    for (uint32_t c = 0; c < 2; c++) {
        for (int i = 0; i < N; i++)
            magnitudes[i] = fabsf(samples[c][i]);
        qsort(magnitudes, N, sizeof *magnitudes, by_value);
        for (size_t p = 0; p < sizeof percentiles / sizeof *percentiles; p++) {
            float scales[2];
            const int rank = (int)ceil(percentiles[p] * N / 100);
            const double exact = (double)magnitudes[rank - 1];
            assert_int_equal(gpst_calibration_scales(calibration, percentiles[p], scales), GPST_OK);
            const double range = (double)scales[c] * 127;
            if (range < exact * (1 - 1e-6) || range > exact * (1 + 1.0 / 128) * (1 + 1e-6) + 1e-40)
                fail_msg("channel %u, %g %%: %g, exact %g", c, percentiles[p], range, exact);
            if (percentiles[p] >= 100)
                assert_true(scales[c] == magnitudes[N - 1] / 127.0f);
        }
    }
    gpst_calibration_destroy(calibration);
}

static void order_and_parts_change_nothing(void** state) {
    enum { N = 600 };
    static float samples[N][3], shuffled[N][3];
    uint64_t seed = test_seed(63);
    (void)state;
    for (int i = 0; i < N; i++)
        for (int c = 0; c < 3; c++)
            samples[i][c] = shuffled[N - 1 - i][c] = pick_f32((uint32_t)(i + c) % 5, &seed);
    gpst_calibration* whole = calibration_of(3, false);
    gpst_calibration* parts[2] = {calibration_of(3, false), calibration_of(3, false)};
    gpst_channels values = channels_of(samples, GPST_DTYPE_F32, N, 3, 1);
    assert_int_equal(gpst_calibration_add(whole, &values), GPST_OK);
    for (int i = 0; i < N; i += 100) {
        values = channels_of(shuffled[i], GPST_DTYPE_F32, 100, 3, 1);
        assert_int_equal(gpst_calibration_add(parts[i / 100 % 2], &values), GPST_OK);
    }
    assert_int_equal(gpst_calibration_merge(parts[1], parts[0]), GPST_OK);
    for (uint32_t c = 0; c < 3; c++) {
        gpst_calibration_info one, other;
        memset(&one, 0xa5, sizeof one);
        memset(&other, 0x5a, sizeof other);
        assert_int_equal(gpst_calibration_query(whole, c, &one), GPST_OK);
        assert_int_equal(gpst_calibration_query(parts[1], c, &other), GPST_OK);
        assert_memory_equal(&one, &other, sizeof one);
        assert_int_equal(one.n_finite + one.n_infinite + one.n_nan, N);
        assert_true(one.n_nan > 0 && one.n_infinite > 0);
    }
    for (double p = 0.5; p <= 100; p += 0.5) {
        float one[3], other[3];
        assert_int_equal(gpst_calibration_scales(whole, p, one), GPST_OK);
        assert_int_equal(gpst_calibration_scales(parts[1], p, other), GPST_OK);
        assert_memory_equal(one, other, sizeof one);
    }
    gpst_calibration_destroy(whole);
    gpst_calibration_destroy(parts[0]);
    gpst_calibration_destroy(parts[1]);
    gpst_calibration_destroy(NULL);
}

/* Nothing, zeros, the least float, NaN and infinities alone; halves; one scale for all channels. */
static void unusual_samples(void** state) {
    float in[4] = {-0.0f, 0, gpsti_f32_from_bits(0x7fc00000), gpsti_f32_from_bits(0xff800000)};
    const uint16_t halves[4] = {0x3c00, 0xc400, 0x7c00, 0x7e00}; /* 1, -4, inf, NaN */
    float scale = 0;
    gpst_calibration_info info;
    gpst_calibration* calibration = calibration_of(0, true);
    gpst_channels values = channels_of(in, GPST_DTYPE_F32, 2, 2, 1);
    (void)state;
    assert_int_equal(gpst_calibration_scales(calibration, 100, &scale), GPST_OK);
    assert_true(scale == 1.0f);
    assert_int_equal(gpst_calibration_add(calibration, &values), GPST_OK);
    assert_int_equal(gpst_calibration_scales(calibration, 100, &scale), GPST_OK);
    assert_true(scale == 1.0f);
    assert_int_equal(gpst_calibration_query(calibration, 0, &info), GPST_OK);
    assert_true(gpsti_f32_bits(info.min) == 0 && gpsti_f32_bits(info.max) == 0); /* -0 was seen first */
    in[1] = gpsti_f32_from_bits(5);
    assert_int_equal(gpst_calibration_add(calibration, &values), GPST_OK);
    assert_int_equal(gpst_calibration_scales(calibration, 100, &scale), GPST_OK);
    assert_int_equal(gpsti_f32_bits(scale), 1);
    memcpy(in, halves, sizeof halves);
    values.dtype = GPST_DTYPE_F16;
    assert_int_equal(gpst_calibration_add(calibration, &values), GPST_OK);
    assert_int_equal(gpst_calibration_scales(calibration, 100, &scale), GPST_OK);
    assert_true(scale == 4.0f / 127.0f);
    assert_int_equal(gpst_calibration_query(calibration, 0, &info), GPST_OK);
    assert_true(info.n_finite == 6 && info.n_infinite == 3 && info.n_nan == 3 && info.min == -4 && info.max == 1);
    gpst_calibration_destroy(calibration);
}

/* What a device saw of two tensors, counted here: as if they had been looked at. */
static void infos_count_as_samples(void** state) {
    enum { N = 200 };
    static float samples[2][N][3];
    uint64_t seed = test_seed(64);
    gpst_calibration_info infos[3], one, other;
    gpst_calibration *whole = calibration_of(3, true), *parts = calibration_of(3, true),
                     *together = calibration_of(1, true);
    (void)state;
    for (int t = 0; t < 2; t++) {
        const gpst_channels values = channels_of(samples[t], GPST_DTYPE_F32, N, 3, 1);
        gpst_calibration* part = calibration_of(3, true);
        for (int i = 0; i < N * 3; i++)
            samples[t][i / 3][i % 3] = pick_f32((uint32_t)(i + t) % 5, &seed);
        assert_int_equal(gpst_calibration_add(whole, &values), GPST_OK);
        assert_int_equal(gpst_calibration_add(part, &values), GPST_OK);
        for (uint32_t c = 0; c < 3; c++)
            assert_int_equal(gpst_calibration_query(part, c, &infos[c]), GPST_OK);
        gpst_calibration_destroy(part);
        assert_int_equal(gpst_calibration_add_info(parts, infos, 3), GPST_OK);
        assert_int_equal(gpst_calibration_add_info(together, infos, 3), GPST_OK);
    }
    memset(infos, 0, sizeof infos);
    assert_int_equal(gpst_calibration_add_info(parts, infos, 3), GPST_OK); /* nothing seen: no range */
    uint64_t n_finite = 0;
    float most = 0;
    for (uint32_t c = 0; c < 3; c++) {
        assert_int_equal(gpst_calibration_query(whole, c, &one), GPST_OK);
        assert_int_equal(gpst_calibration_query(parts, c, &other), GPST_OK);
        assert_memory_equal(&one, &other, sizeof one);
        n_finite += one.n_finite;
        most = one.max > most ? one.max : most;
    }
    assert_int_equal(gpst_calibration_query(together, 0, &one), GPST_OK);
    assert_true(one.n_finite == n_finite && one.max == most);
    gpst_calibration* histograms = calibration_of(3, false);
    expect_refused(gpst_calibration_add_info(parts, NULL, 3), "required");
    expect_refused(gpst_calibration_add_info(parts, infos, 2), "n_channels=2");
    assert_int_equal(gpst_calibration_add_info(histograms, infos, 3), GPST_ERROR_STATE);
    gpst_calibration_destroy(whole), gpst_calibration_destroy(parts);
    gpst_calibration_destroy(together), gpst_calibration_destroy(histograms);
}

static void faults(void** state) {
    test_memory memory;
    const gpst_allocator hooks = test_memory_hooks(&memory);
    gpst_calibration_desc desc = GPST_ZERO;
    gpst_calibration* calibration = (gpst_calibration*)&desc;
    (void)state;
    test_memory_refuse(&memory, 1);
    assert_int_equal(gpst_calibration_create_versioned(GPST_VERSION, sizeof desc, &desc, &hooks, &calibration),
                     GPST_ERROR_MEMORY);
    assert_null(calibration);
    test_memory_check(&memory);
    assert_int_equal(gpst_calibration_create_versioned(GPST_VERSION, sizeof desc, &desc, &hooks, &calibration),
                     GPST_OK);
    gpst_calibration_destroy(calibration);
    test_memory_check(&memory);
}

/* ---- what is refused --------------------------------------------------------------------------- */
static void bad_calls_are_refused(void** state) {
    float in[8] = {0}, scales[2] = {1, 1};
    int8_t out[8];
    const gpst_channels good = channels_of(in, GPST_DTYPE_F32, 2, 2, 2);
    gpst_channels bad;
    gpst_calibration_desc desc = GPST_ZERO;
    gpst_calibration_info info;
    (void)state;
    assert_int_equal(gpst_quantise(&good, scales, out, 1), GPST_OK);
    expect_refused(gpst_quantise(NULL, scales, out, 1), "values=NULL");
    expect_refused(gpst_quantise(&good, NULL, out, 1), "scales=NULL");
    expect_refused(gpst_quantise(&good, scales, NULL, 1), "NULL: required");
    expect_refused(gpst_quantise(&good, scales, (int8_t*)in + 31, 1), "overlap");
    bad = good, bad.data = NULL;
    expect_refused(gpst_quantise(&bad, scales, out, 1), "values.data=NULL");
    bad = good, bad.data = (uint8_t*)in + 2;
    expect_refused(gpst_quantise(&bad, scales, out, 1), "multiple of the 4 bytes");
    bad = good, bad.dtype = GPST_DTYPE_U8;
    expect_refused(gpst_quantise(&bad, scales, out, 1), "values.dtype=1");
    bad = good, bad.n_channels = 0;
    expect_refused(gpst_quantise(&bad, scales, out, 1), "n_channels=0");
    bad = good, bad.n_inner = SIZE_MAX / 2;
    expect_refused(gpst_quantise(&bad, scales, out, 1), "do not fit");
    const uint32_t bad_scales[] = {0, 0x80000000, 0xbf800000, 0x7f800000, 0x7fc00000};
    for (int i = 0; i < 5; i++) {
        scales[1] = gpsti_f32_from_bits(bad_scales[i]);
        expect_refused(gpst_quantise(&good, scales, out, 1), "scales[1]");
        expect_refused(gpst_dequantise(out, scales, &good), "scales[1]");
    }
    gpst_calibration* calibration = calibration_of(2, true);
    gpst_calibration* other = calibration_of(3, true);
    gpst_calibration* third = calibration_of(2, false);
    gpst_calibration* none = NULL;
    expect_refused(gpst_calibration_create(NULL, &none), "desc=NULL");
    expect_refused(gpst_calibration_create(&desc, NULL), "out=NULL");
    desc.end_canary = 1;
    expect_refused(gpst_calibration_create(&desc, &none), "canary");
    bad = good, bad.n_channels = 1;
    expect_refused(gpst_calibration_add(calibration, &bad), "values.n_channels=1");
    expect_refused(gpst_calibration_add(NULL, &good), "calibration=NULL");
    expect_refused(gpst_calibration_merge(calibration, other), "other.n_channels=3");
    expect_refused(gpst_calibration_merge(calibration, third), "other.max_only=0");
    expect_refused(gpst_calibration_merge(calibration, calibration), "itself");
    expect_refused(gpst_calibration_query(calibration, 2, &info), "channel=2");
    expect_refused(gpst_calibration_scales(calibration, 0, scales), "percentile=0");
    expect_refused(gpst_calibration_scales(calibration, 100.5, scales), "percentile=100.5");
    assert_int_equal(gpst_calibration_scales(calibration, 99, scales), GPST_ERROR_STATE);
    gpst_calibration_destroy(calibration);
    gpst_calibration_destroy(other);
    gpst_calibration_destroy(third);
}

int main(int argc, char** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_give_the_bits_of_one_value),
        cmocka_unit_test(every_build_gives_the_same_hash),
        cmocka_unit_test(one_value_is_what_the_library_rounds),
        cmocka_unit_test(special_values),
        cmocka_unit_test(back_and_forth),
        cmocka_unit_test(percentiles_are_within_their_bound),
        cmocka_unit_test(order_and_parts_change_nothing),
        cmocka_unit_test(unusual_samples),
        cmocka_unit_test(infos_count_as_samples),
        cmocka_unit_test(faults),
        cmocka_unit_test(bad_calls_are_refused),
    };
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        printf("%016llx\n", (unsigned long long)quantise_all(1));
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
