/* tests/test_mask.c -- argmax, threshold and bit masks: every loop against the per-pixel reference, bit for bit,
   between protected pages; what the reference says where it matters; what is refused. --hash prints the hash alone. */
#include "test_mask.h"

#include <math.h>

/* What every compiler, option and machine must compute. */
#define HASH_OF_ALL 0x0efdd0243b35ecb8u

typedef struct arenas { arena source, rows, reference; } arenas;

static arenas arenas_open(void) {
    arenas a;
    a.source = arena_open(), a.rows = arena_open(), a.reference = arena_open();
    return a;
}

static void arenas_close(arenas a) { arena_close(a.source), arena_close(a.rows), arena_close(a.reference); }

/* ---- argmax ------------------------------------------------------------------------- */
static gpst_logits place_logits(arena a, uint32_t n_classes, uint32_t width, uint32_t height, gpst_dtype dtype,
                                gpst_layout layout, uint64_t* seed) {
    gpst_logits logits = GPST_ZERO;
    const bool planes = layout == GPST_LAYOUT_CHW;
    const size_t unit = gpst_dtype_bytes(dtype), row = (size_t)width * unit * (planes ? 1 : n_classes);
    logits.n_classes = n_classes;
    logits.width = width;
    logits.height = height;
    logits.dtype = dtype;
    logits.layout = layout;
    logits.pitch_bytes = pick_pitch(row, unit, seed);
    size_t bytes = (size_t)logits.pitch_bytes * (height - 1) + row;
    if (planes) {
        logits.plane_bytes = logits.pitch_bytes * height + (int64_t)(unit * (test_random(seed) % 3));
        bytes += (size_t)logits.plane_bytes * (n_classes - 1);
    }
    logits.data = arena_place(a, bytes, unit, seed);
    return logits;
}

static gpst_labels place_labels(arena a, uint32_t n_classes, uint32_t width, uint32_t height, uint64_t* seed) {
    gpst_labels labels = GPST_ZERO;
    const size_t unit = n_classes > 256 ? 2 : 1;
    labels.n_classes = n_classes;
    labels.width = width;
    labels.height = height;
    labels.pitch_bytes = pick_pitch(width * unit, unit, seed);
    labels.data = arena_place(a, (size_t)labels.pitch_bytes * (height - 1) + width * unit, unit, seed);
    return labels;
}

static uint64_t argmax_case(const arenas* a, const gpst_logits* logits, const gpst_labels* labels, uint32_t number,
                            uint64_t hash) {
    gpsti_argmax_job job;
    gpst_labels expected = *labels;
    expected.data = arena_moved(labels->data, a->rows, a->reference);
    memset(a->reference.begin, 0xa5, ARENA_BYTES);
    if (GPST_FAILED(gpsti_argmax_job_init(logits, &expected, &job)))
        fail_msg("%s", gpst_last_reason());
    gpsti_argmax_rows_reference(&job, 0, job.height);
    if (GPST_FAILED(gpsti_argmax_job_init(logits, labels, &job)))
        fail_msg("%s", gpst_last_reason());
    for (uint32_t level = 0; level <= (uint32_t)gpsti_simd_level_query(); level++) {
        memset(a->rows.begin, 0xa5, ARENA_BYTES);
        gpsti_argmax_rows(&job, (gpsti_simd_level)level, 0, job.height);
        expect_same(a->rows, a->reference, "argmax", number, level, logits->n_classes);
    }
    for (uint32_t y = 0; y < labels->height; y++)
        hash = fnv(hash, (const uint8_t*)expected.data + (size_t)y * (size_t)expected.pitch_bytes,
                   (size_t)labels->width * (labels->n_classes > 256 ? 2 : 1));
    return hash;
}

static uint64_t argmax_all(uint64_t seed, uint32_t* n_cases) {
    static const uint32_t classes[] = {1, 2, 3, 4, 5, 7, 21, 31, 32, 33, 37, 64, 256, 257, 300};
    static const uint32_t sizes[][2] = {{1, 1}, {2, 1}, {1, 3}, {3, 2}, {63, 2}, {64, 1}, {65, 3}, {17, 5}, {40, 9}};
    static const uint32_t targets[][2] = {{1, 1}, {2, 3}, {5, 4}, {64, 7}, {65, 20}, {131, 37}, {17, 40}, {3, 1}};
    const arenas a = arenas_open();
    uint64_t hash = FNV_BEGIN;
    *n_cases = 0;
    for (uint32_t choice = 0; choice < 8 * 5 * 15; choice++) {
        const gpst_dtype dtype = choice & 1 ? GPST_DTYPE_F16 : GPST_DTYPE_F32;
        const gpst_layout layout = choice & 2 ? GPST_LAYOUT_HWC : GPST_LAYOUT_CHW;
        const uint32_t kind = choice / 8 % 5, n_classes = classes[choice / 40];
        const uint32_t* size = sizes[test_random(&seed) % 9];
        const uint32_t* target = choice & 4 ? targets[test_random(&seed) % 8] : size;
        if (n_classes > 64 && size[0] * size[1] > 130)
            size = sizes[test_random(&seed) % 4], target = choice & 4 ? target : size;
        const gpst_logits logits = place_logits(a.source, n_classes, size[0], size[1], dtype, layout, &seed);
        const gpst_labels labels = place_labels(a.rows, n_classes, target[0], target[1], &seed);
        fill_scores(a.source.begin, ARENA_BYTES / gpst_dtype_bytes(dtype), dtype, kind, &seed);
        hash = argmax_case(&a, &logits, &labels, choice, hash);
        ++*n_cases;
    }
    arenas_close(a);
    return hash;
}

static void argmax_gives_the_bits_of_the_reference(void** state) {
    uint32_t n_cases = 0;
    (void)state;
    argmax_all(test_seed(40), &n_cases);
    assert_true(n_cases == 600);
}

/* A long row, so that runs end within it; rows without gaps are one. */
static void argmax_of_long_rows(void** state) {
    uint64_t seed = test_seed(41);
    const arenas a = arenas_open();
    (void)state;
    for (uint32_t width = 1023; width < 1030; width++)
        for (uint32_t gap = 0; gap < 2; gap++) {
            gpst_logits logits = GPST_ZERO;
            gpst_labels labels = GPST_ZERO;
            logits.data = a.source.begin;
            labels.data = a.rows.begin;
            logits.n_classes = labels.n_classes = 6;
            logits.width = labels.width = width;
            logits.height = labels.height = 7;
            logits.pitch_bytes = gap ? (int64_t)(width + gap) * 4 : 0;
            logits.dtype = GPST_DTYPE_F32;
            logits.layout = GPST_LAYOUT_CHW;
            fill_scores(a.source.begin, ARENA_BYTES / 4, GPST_DTYPE_F32, 0, &seed);
            gpsti_argmax_job job;
            assert_int_equal(gpsti_argmax_job_init(&logits, &labels, &job), GPST_OK);
            argmax_case(&a, &logits, &labels, width, 0);
        }
    arenas_close(a);
}

/* One pixel, by hand. */
static uint32_t label_of(const float* scores, uint32_t n) {
    uint8_t label = 0xa5;
    gpst_logits logits = GPST_ZERO;
    gpst_labels labels = GPST_ZERO;
    logits.data = scores;
    labels.data = &label;
    logits.n_classes = labels.n_classes = n;
    logits.width = logits.height = labels.width = labels.height = 1;
    logits.dtype = GPST_DTYPE_F32;
    logits.layout = GPST_LAYOUT_HWC;
    assert_int_equal(gpst_mask_argmax(&logits, &labels, 1), GPST_OK);
    return label;
}

static void argmax_of_special_scores(void** state) {
    const float nan = gpsti_f32_from_bits(0x7fc00000), inf = gpsti_f32_from_bits(0x7f800000);
    const float tie[4] = {1, 2, 2, 1}, nans[3] = {nan, nan, nan}, lowest[3] = {nan, -inf, -inf},
                first[3] = {nan, 1, inf};
    const float zeros[3] = {-0.0f, 0.0f, -0.0f}, negative[3] = {-3, nan, -2};
    const float tiny[3] = {0.0f, gpsti_f32_from_bits(1), gpsti_f32_from_bits(0x80000001)};
    (void)state;
    assert_int_equal(label_of(tie, 4), 1);
    assert_int_equal(label_of(nans, 3), 0);
    assert_int_equal(label_of(lowest, 3), 1);
    assert_int_equal(label_of(first, 3), 2);
    assert_int_equal(label_of(zeros, 3), 0);
    assert_int_equal(label_of(negative, 3), 2);
    assert_int_equal(label_of(tiny, 3), 1);
}

/* Two pixels of two classes enlarged to four: the second pixel's weights are 0, 1/4, 3/4, 1. */
static void argmax_between_pixels(void** state) {
    const float inf = gpsti_f32_from_bits(0x7f800000), nan = gpsti_f32_from_bits(0x7fc00000);
    /* In turn: 0 1 3 4 against 1, where the tie goes to class 0; infinities as +-2^126; NaN in one tap; infinities on
       both sides, which make no NaN. */
    static const uint8_t expected[4][4] = {{1, 0, 0, 0}, {1, 1, 0, 0}, {1, 1, 1, 0}, {1, 1, 1, 1}};
    const float scores[4][4] = {{0, 4, 1, 1}, {-inf, inf, -1e30f, -1e30f}, {nan, 0, -inf, -1}, {0, 1e30f, inf, inf}};
    (void)state;
    for (int i = 0; i < 4; i++) {
        uint8_t out[4] = {0xa5, 0xa5, 0xa5, 0xa5};
        gpst_logits logits = GPST_ZERO;
        gpst_labels labels = GPST_ZERO;
        logits.data = scores[i];
        logits.n_classes = labels.n_classes = 2;
        logits.width = 2;
        labels.width = 4;
        logits.height = labels.height = 1;
        logits.dtype = GPST_DTYPE_F32;
        logits.layout = GPST_LAYOUT_CHW;
        labels.data = out;
        assert_int_equal(gpst_mask_argmax(&logits, &labels, 1), GPST_OK);
        assert_memory_equal(out, expected[i], sizeof out);
    }
}

/* The interpolation itself, checked once against double. */
static void interpolation_agrees_with_double(void** state) {
    enum { W = 9, H = 7, OUT_W = 40, OUT_H = 33 };
    float scores[2][H][W];
    uint64_t seed = test_seed(42);
    uint32_t n_close = 0;
    static uint8_t out[OUT_H][OUT_W];
    gpst_logits logits = GPST_ZERO;
    gpst_labels labels = GPST_ZERO;
    (void)state;
    fill_scores(scores, 2 * H * W, GPST_DTYPE_F32, 1, &seed);
    logits.data = scores;
    logits.n_classes = labels.n_classes = 2;
    logits.width = W, logits.height = H;
    logits.dtype = GPST_DTYPE_F32;
    logits.layout = GPST_LAYOUT_CHW;
    labels.data = out;
    labels.width = OUT_W, labels.height = OUT_H;
    memset(out, 0xa5, sizeof out);
    assert_int_equal(gpst_mask_argmax(&logits, &labels, 0), GPST_OK);
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++) {
            double value[2];
            double sx = (x + 0.5) * W / OUT_W - 0.5, sy = (y + 0.5) * H / OUT_H - 0.5;
            sx = sx < 0 ? 0 : sx > W - 1 ? W - 1 : sx;
            sy = sy < 0 ? 0 : sy > H - 1 ? H - 1 : sy;
            const int x0 = sx >= W - 1 ? W - 2 : (int)sx, y0 = sy >= H - 1 ? H - 2 : (int)sy;
            for (int c = 0; c < 2; c++) {
                const double fx = sx - x0, fy = sy - y0;
                const double upper = (double)scores[c][y0][x0] * (1 - fx) + (double)scores[c][y0][x0 + 1] * fx;
                const double lower = (double)scores[c][y0 + 1][x0] * (1 - fx) + (double)scores[c][y0 + 1][x0 + 1] * fx;
                value[c] = upper * (1 - fy) + lower * fy;
            }
            if (fabs(value[1] - value[0]) < 1e-4)
                n_close++;
            else
                assert_int_equal(out[y][x], value[1] > value[0] ? 1 : 0);
        }
    assert_true(n_close < 20);
}

/* ---- threshold ------------------------------------------------------------------------- */
static uint64_t rows_case(const arenas* a, const gpsti_mask_job* job, size_t row_bytes, const char* what,
                          uint32_t number, uint64_t hash) {
    gpsti_mask_job expected = *job;
    expected.output = arena_moved(job->output, a->rows, a->reference);
    memset(a->reference.begin, 0xa5, ARENA_BYTES);
    gpsti_mask_rows_reference(&expected, 0, job->height);
    for (uint32_t level = 0; level <= (uint32_t)gpsti_simd_level_query(); level++) {
        memset(a->rows.begin, 0xa5, ARENA_BYTES);
        gpsti_mask_rows(job, (gpsti_simd_level)level, 0, job->height);
        expect_same(a->rows, a->reference, what, number, level, job->width);
    }
    for (uint32_t y = 0; y < job->height; y++)
        hash = fnv(hash, expected.output + (int64_t)y * expected.output_pitch, row_bytes);
    return hash;
}

static uint64_t threshold_all(uint64_t seed) {
    static const uint32_t widths[] = {1, 2, 3, 31, 63, 64, 65, 127, 200};
    const arenas a = arenas_open();
    uint64_t hash = FNV_BEGIN;
    for (uint32_t choice = 0; choice < 3 * 5 * 40; choice++) {
        const gpst_dtype dtype = (gpst_dtype)(1 + choice % 3);
        const uint32_t kind = choice / 3 % 5, width = widths[test_random(&seed) % 9];
        const uint32_t height = 1 + (uint32_t)(test_random(&seed) % 4);
        float threshold = pick_f32((uint32_t)(test_random(&seed) % 5), &seed);
        if (dtype == GPST_DTYPE_U8)
            threshold = (float)((double)(test_random(&seed) % 1100) / 4 - 5);
        if (!(threshold <= 0 || threshold > 0))
            threshold = -gpsti_f32_from_bits(0x7f800000);
        const gpst_image source = place_gray(a.source, width, height, dtype, &seed);
        const gpst_image mask = place_gray(a.rows, width, height, GPST_DTYPE_U8, &seed);
        gpsti_mask_job job;
        fill_scores(a.source.begin, ARENA_BYTES / gpst_dtype_bytes(dtype), dtype, kind, &seed);
        if (GPST_FAILED(gpsti_threshold_job_init("test", &source, threshold, &mask, &job)))
            fail_msg("%s", gpst_last_reason());
        hash = rows_case(&a, &job, width, "threshold", choice, hash);
    }
    arenas_close(a);
    return hash;
}

static void threshold_gives_the_bits_of_the_reference(void** state) {
    (void)state;
    threshold_all(test_seed(43));
}

/* Every half against every kind of threshold: the limit in integers is the comparison of floats. */
static void halves_compare_as_floats(void** state) {
    const float thresholds[] = {0.0f, -0.0f, 1e-8f, -1e-8f, 6e-8f, 1.0f, 0.99999f, 65504.0f, 65519.0f, 65520.0f,
                                -65520.0f, 1e30f, -1e30f, 3e-5f, -6.1e-5f, gpsti_f32_from_bits(0x7f800000),
                                gpsti_f32_from_bits(0xff800000), gpsti_f32_from_bits(1),
                                gpsti_f32_from_bits(0x80000001)};
    static uint16_t halves[65535];
    static uint8_t mask[65535];
    (void)state;
    for (uint32_t i = 0; i < 65535; i++)
        halves[i] = (uint16_t)(i + 1);
    for (size_t t = 0; t < sizeof thresholds / sizeof *thresholds; t++) {
        gpst_image source = GPST_ZERO, out = GPST_ZERO;
        source.data = halves, out.data = mask;
        source.width = out.width = 65535;
        source.height = out.height = 1;
        source.format = out.format = GPST_FORMAT_GRAY;
        source.dtype = GPST_DTYPE_F16;
        memset(mask, 0xa5, sizeof mask);
        assert_int_equal(gpst_mask_threshold(&source, thresholds[t], &out, 1), GPST_OK);
        for (uint32_t i = 0; i < 65535; i++)
            if (mask[i] != (gpsti_f32_from_f16(halves[i]) > thresholds[t] ? 255 : 0))
                fail_msg("half %04x against %a: %d", halves[i], (double)thresholds[t], mask[i]);
    }
}

/* Halves against their definition in double. */
static void halves_are_exact(void** state) {
    (void)state;
    for (uint32_t bits = 0; bits < 65536; bits++) {
        const uint32_t exponent = (bits >> 10) & 31, fraction = bits & 1023;
        const float value = gpsti_f32_from_f16((uint16_t)bits);
        const double sign = bits >> 15 ? -1.0 : 1.0;
        if (exponent == 31) {
            assert_true(fraction ? value != value : (double)value == sign * HUGE_VAL);
            continue;
        }
        assert_true((double)value ==
                    sign * (exponent ? ldexp(1024 + fraction, (int)exponent - 25) : ldexp(fraction, -24)));
        assert_int_equal(gpsti_f32_bits(value) >> 31, bits >> 15);
    }
}

static void logit_is_within_its_bound(void** state) {
    uint64_t seed = test_seed(44);
    double worst = 0, worst_double = 0;
    (void)state;
    for (int i = 0; i < 200000; i++) {
        const uint64_t random = test_random(&seed);
        double p = (double)(random >> 11) / 9007199254740992.0;
        if (i % 3 == 1)
            p = ldexp(p, -(int)(random % 1060));
        if (i % 3 == 2)
            p = 1.0 - ldexp(p, -(int)(random % 52));
        if (p <= 0 || p >= 1)
            continue;
        const long double exact = logl((long double)p) - log1pl(-(long double)p);
        const float got = gpst_logit(p);
        int exponent;
        frexpl(fabsl(exact), &exponent);
        const double ulps = (double)(fabsl((long double)got - exact) / ldexpl(1.0L, exponent - 24));
        const double relative = (double)fabsl(((long double)gpsti_logit(p) - exact) / exact);
        worst = ulps > worst ? ulps : worst;
        worst_double = exact < 0 || exact > 0 ? (relative > worst_double ? relative : worst_double) : worst_double;
    }
    printf("worst error of gpst_logit: %.7f ulp, in double %.2g\n", worst, worst_double);
    /* valgrind computes long double as double, which is too little to judge a double by. */
    const volatile long double one = 1.0L;
    assert_true(worst <= 0.500001 && (worst_double <= 2e-15 || one + 0x1p-60L <= one));
    assert_true(gpst_logit(0.5) == 0.0f);
    assert_true((double)gpst_logit(0.0) == -HUGE_VAL && (double)gpst_logit(-1.0) == -HUGE_VAL);
    assert_true((double)gpst_logit(1.0) == HUGE_VAL && (double)gpst_logit(2.0) == HUGE_VAL);
    assert_true((double)gpst_logit((double)gpsti_f32_from_bits(0x7fc00000)) == -HUGE_VAL);
}

static void sigmoid_threshold_compares_logits(void** state) {
    const float inf = gpsti_f32_from_bits(0x7f800000), nan = gpsti_f32_from_bits(0x7fc00000);
    float logits[8] = {-inf, -5, 0, 0, 0.25f, 5, inf, nan};
    static const uint8_t above[3][8] = {{0, 255, 255, 255, 255, 255, 255, 0}, {0, 0, 0, 0, 255, 255, 255, 0}, {0}};
    const double probability[3] = {0.0, 0.5, 1.0};
    gpst_image source = GPST_ZERO, mask = GPST_ZERO;
    uint8_t out[8];
    (void)state;
    source.data = logits, mask.data = out;
    source.width = mask.width = 8;
    source.height = mask.height = 1;
    source.format = mask.format = GPST_FORMAT_GRAY;
    source.dtype = GPST_DTYPE_F32;
    for (int i = 0; i < 3; i++) {
        memset(out, 0xa5, sizeof out);
        assert_int_equal(gpst_mask_threshold_sigmoid(&source, probability[i], &mask, 1), GPST_OK);
        assert_memory_equal(out, above[i], 8);
    }
    logits[3] = gpst_logit(0.9); /* itself is not above; the next float is */
    logits[4] = gpsti_f32_from_bits(gpsti_f32_bits(logits[3]) + 1);
    assert_int_equal(gpst_mask_threshold_sigmoid(&source, 0.9, &mask, 1), GPST_OK);
    assert_int_equal(out[3], 0);
    assert_int_equal(out[4], 255);
}

/* ---- bits ---------------------------------------------------------------------------------- */
static uint64_t bits_all(uint64_t seed) {
    static const uint32_t widths[] = {1, 2, 7, 8, 9, 63, 64, 65, 71, 72, 129};
    const arenas a = arenas_open();
    uint64_t hash = FNV_BEGIN;
    for (size_t i = 0; i < ARENA_BYTES; i++) {
        const uint64_t random = test_random(&seed);
        a.source.begin[i] = random & 0x100 ? 0 : (uint8_t)random;
    }
    for (uint32_t choice = 0; choice < 400; choice++) {
        const bool packs = (choice & 1) != 0;
        const uint32_t width = widths[test_random(&seed) % 11], height = 1 + (uint32_t)(test_random(&seed) % 4);
        const uint32_t row_bytes = (width + 7) / 8;
        const gpst_image mask = place_gray(packs ? a.source : a.rows, width, height, GPST_DTYPE_U8, &seed);
        gpst_bitmap bitmap = GPST_ZERO;
        gpsti_mask_job job;
        bitmap.width = width, bitmap.height = height;
        bitmap.pitch_bytes = pick_pitch(row_bytes, 1, &seed);
        bitmap.data =
            arena_place(packs ? a.rows : a.source, (size_t)bitmap.pitch_bytes * (height - 1) + row_bytes, 1, &seed);
        if (GPST_FAILED(
                gpsti_bitmap_job_init("test", packs ? GPSTI_MASK_PACK : GPSTI_MASK_UNPACK, &mask, &bitmap, &job)))
            fail_msg("%s", gpst_last_reason());
        hash = rows_case(&a, &job, packs ? row_bytes : width, "bits", choice, hash);
    }
    arenas_close(a);
    return hash;
}

static void bits_are_those_of_the_reference(void** state) {
    (void)state;
    bits_all(test_seed(45));
}

static void bits_are_lowest_first(void** state) {
    uint8_t mask[10] = {1, 0, 7, 255, 0, 0, 0, 128, 0, 9}, back[10], bits[2] = {0xa5, 0xa5};
    gpst_image image = GPST_ZERO;
    gpst_bitmap bitmap = GPST_ZERO;
    (void)state;
    image.data = mask;
    image.width = bitmap.width = 10;
    image.height = bitmap.height = 1;
    image.format = GPST_FORMAT_GRAY;
    bitmap.data = bits;
    assert_int_equal(gpst_mask_pack(&image, &bitmap, 1), GPST_OK);
    assert_int_equal(bits[0], 0x8d);
    assert_int_equal(bits[1], 0x02);
    bits[1] |= 0xf0; /* filling bits are ignored */
    image.data = back;
    memset(back, 0xa5, sizeof back);
    assert_int_equal(gpst_mask_unpack(&bitmap, &image, 1), GPST_OK);
    for (int i = 0; i < 10; i++)
        assert_int_equal(back[i], mask[i] ? 255 : 0);
}

/* ---- every build, every thread ---------------------------------------------------------------- */
static uint64_t hash_all(void) {
    uint32_t n_cases = 0;
    uint64_t parts[3];
    parts[0] = argmax_all(1, &n_cases);
    parts[1] = threshold_all(2);
    parts[2] = bits_all(3);
    return fnv(FNV_BEGIN, (const uint8_t*)parts, sizeof parts);
}

static void every_build_gives_the_same_hash(void** state) {
    const uint64_t hash = hash_all();
    (void)state;
    if (hash != HASH_OF_ALL)
        fail_msg("hash %016llx, expected %016llx", (unsigned long long)hash, (unsigned long long)HASH_OF_ALL);
}

/* A caller who rounds upwards and flushes subnormals gets the same bits. */
static void the_callers_mode_changes_nothing(void** state) {
    (void)state;
#if defined(__x86_64__)
    const uint32_t saved = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved | 0x8040 | 0x4000);
    const uint64_t hash = hash_all();
    __builtin_ia32_ldmxcsr(saved);
    assert_true(hash == HASH_OF_ALL);
#endif
}

static void threads_give_the_same_bits(void** state) {
    enum { CLASSES = 5, W = 50, H = 31, OUT_W = 70, OUT_H = 90 };
    static float scores[CLASSES][H][W];
    static uint8_t serial[OUT_H * OUT_W], threaded[OUT_H * OUT_W];
    uint64_t seed = test_seed(46);
    (void)state;
    fill_scores(scores, CLASSES * H * W, GPST_DTYPE_F32, 0, &seed);
    for (uint32_t resize = 0; resize < 2; resize++)
        for (uint32_t n_threads = 0; n_threads < 6; n_threads++) {
            gpst_logits logits = GPST_ZERO;
            gpst_labels labels = GPST_ZERO;
            logits.data = scores;
            logits.n_classes = labels.n_classes = CLASSES;
            logits.width = W, logits.height = H;
            labels.width = resize ? OUT_W : W, labels.height = resize ? OUT_H : H;
            logits.dtype = GPST_DTYPE_F32;
            logits.layout = GPST_LAYOUT_CHW;
            memset(serial, 0xa5, sizeof serial);
            memset(threaded, 0x5a, sizeof threaded);
            labels.data = serial;
            assert_int_equal(gpst_mask_argmax(&logits, &labels, 1), GPST_OK);
            labels.data = threaded;
            assert_int_equal(gpst_mask_argmax(&logits, &labels, n_threads), GPST_OK);
            assert_memory_equal(serial, threaded, (size_t)labels.width * labels.height);
        }
}

/* ---- what is refused -------------------------------------------------------------------------- */
typedef struct argmax_call {
    gpst_logits logits;
    gpst_labels labels;
} argmax_call;

static float some_scores[64];
static uint16_t some_labels[64];

static argmax_call good_call(void) {
    argmax_call call = GPST_ZERO;
    call.logits.data = some_scores;
    call.labels.data = some_labels;
    call.logits.n_classes = call.labels.n_classes = 3;
    call.logits.width = call.labels.width = 4;
    call.logits.height = call.labels.height = 2;
    call.logits.dtype = GPST_DTYPE_F32;
    call.logits.layout = GPST_LAYOUT_CHW;
    return call;
}

#define REFUSES_ARGMAX(text, ...)                                              \
    do {                                                                       \
        argmax_call call = good_call();                                        \
        __VA_ARGS__;                                                           \
        expect_refused(gpst_mask_argmax(&call.logits, &call.labels, 1), text); \
    } while (0)

static void bad_argmax_is_refused(void** state) {
    argmax_call good = good_call();
    (void)state;
    assert_int_equal(gpst_mask_argmax(&good.logits, &good.labels, 1), GPST_OK);
    expect_refused(gpst_mask_argmax(NULL, &good.labels, 1), "logits=NULL");
    expect_refused(gpst_mask_argmax(&good.logits, NULL, 1), "labels=NULL");
    REFUSES_ARGMAX("logits.data=NULL", call.logits.data = NULL);
    REFUSES_ARGMAX("labels.data=NULL", call.labels.data = NULL);
    REFUSES_ARGMAX("logits.data=", call.logits.data = (uint8_t*)some_scores + 1);
    REFUSES_ARGMAX("labels.data=", call.logits.n_classes = call.labels.n_classes = 300;
                   call.labels.data = (uint8_t*)some_labels + 1);
    REFUSES_ARGMAX("logits.width=0", call.logits.width = 0);
    REFUSES_ARGMAX("height=65536", call.logits.height = 65536);
    REFUSES_ARGMAX("labels.width=0", call.labels.width = 0);
    REFUSES_ARGMAX("height=0", call.labels.height = 0);
    REFUSES_ARGMAX("logits.n_classes=0", call.logits.n_classes = 0);
    REFUSES_ARGMAX("logits.n_classes=65536", call.logits.n_classes = 65536);
    REFUSES_ARGMAX("labels.n_classes=0", call.labels.n_classes = 0);
    REFUSES_ARGMAX("labels.n_classes=4: must be the 3", call.labels.n_classes = 4);
    REFUSES_ARGMAX("logits.dtype=0", call.logits.dtype = GPST_DTYPE_DEFAULT);
    REFUSES_ARGMAX("logits.dtype=1", call.logits.dtype = GPST_DTYPE_U8);
    REFUSES_ARGMAX("logits.layout=0", call.logits.layout = GPST_LAYOUT_DEFAULT);
    REFUSES_ARGMAX("logits.pitch_bytes=15", call.logits.pitch_bytes = 15);
    REFUSES_ARGMAX("logits.pitch_bytes=18", call.logits.pitch_bytes = 18);
    REFUSES_ARGMAX("logits.pitch_bytes=-16", call.logits.pitch_bytes = -16);
    REFUSES_ARGMAX("labels.pitch_bytes=3", call.labels.pitch_bytes = 3);
    REFUSES_ARGMAX("labels.pitch_bytes=-4", call.labels.pitch_bytes = -4);
    REFUSES_ARGMAX("logits.plane_bytes=15", call.logits.plane_bytes = 15);
    REFUSES_ARGMAX("logits.plane_bytes=34", call.logits.plane_bytes = 34);
    REFUSES_ARGMAX("logits.plane_bytes=32", call.logits.plane_bytes = 32; call.logits.layout = GPST_LAYOUT_HWC);
    REFUSES_ARGMAX("do not fit", call.logits.pitch_bytes = INT64_MAX - 3);
    REFUSES_ARGMAX("do not fit", call.logits.plane_bytes = INT64_MAX - 3);
    REFUSES_ARGMAX("do not fit", call.labels.pitch_bytes = INT64_MAX);
    REFUSES_ARGMAX("overlap", call.labels.data = some_scores + 23);
    {
        argmax_call call = good_call(); /* right behind the scores */
        call.labels.data = some_scores + 24;
        assert_int_equal(gpst_mask_argmax(&call.logits, &call.labels, 1), GPST_OK);
    }
}

static gpst_image small_image(void* data, gpst_dtype dtype) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = image.height = 4;
    image.format = GPST_FORMAT_GRAY;
    image.dtype = dtype;
    return image;
}

static void bad_masks_are_refused(void** state) {
    const float nan = gpsti_f32_from_bits(0x7fc00000);
    const gpst_image source = small_image(some_scores, GPST_DTYPE_F32), mask = small_image(some_labels, GPST_DTYPE_U8);
    gpst_image bad;
    uint8_t bytes[16];
    gpst_bitmap bitmap = GPST_ZERO, bad_bitmap;
    (void)state;
    bitmap.data = bytes, bitmap.width = bitmap.height = 4;
    assert_int_equal(gpst_mask_threshold(&source, 0, &mask, 1), GPST_OK);
    assert_int_equal(gpst_mask_pack(&mask, &bitmap, 1), GPST_OK);
    expect_refused(gpst_mask_threshold(&source, nan, &mask, 1), "threshold=NaN");
    expect_refused(gpst_mask_threshold(NULL, 0, &mask, 1), "source=NULL");
    expect_refused(gpst_mask_threshold(&source, 0, NULL, 1), "mask=NULL");
    bad = source, bad.data = NULL;
    expect_refused(gpst_mask_threshold(&bad, 0, &mask, 1), "source.data=NULL");
    bad = source, bad.format = GPST_FORMAT_RGB;
    expect_refused(gpst_mask_threshold(&bad, 0, &mask, 1), "source.format=2");
    bad = mask, bad.dtype = GPST_DTYPE_F16;
    expect_refused(gpst_mask_threshold(&source, 0, &bad, 1), "mask.format=1, dtype=2");
    bad = mask, bad.width = 5;
    expect_refused(gpst_mask_threshold(&source, 0, &bad, 1), "mask.width=5");
    bad = mask, bad.height = 70000;
    expect_refused(gpst_mask_threshold(&source, 0, &bad, 1), "height=70000");
    bad = mask, bad.pitch_bytes = 3;
    expect_refused(gpst_mask_threshold(&source, 0, &bad, 1), "mask.pitch_bytes=3");
    bad = mask, bad.data = (uint8_t*)some_scores + 63;
    expect_refused(gpst_mask_threshold(&source, 0, &bad, 1), "overlap");
    expect_refused(gpst_mask_threshold_sigmoid(&source, 1.5, &mask, 1), "probability=1.5");
    expect_refused(gpst_mask_threshold_sigmoid(&source, -0.1, &mask, 1), "probability=-0.1");
    expect_refused(gpst_mask_threshold_sigmoid(&source, (double)nan, &mask, 1), "probability=");
    bad = small_image(some_scores, GPST_DTYPE_U8);
    expect_refused(gpst_mask_threshold_sigmoid(&bad, 0.5, &mask, 1), "source.dtype=U8");
    expect_refused(gpst_mask_pack(NULL, &bitmap, 1), "mask=NULL");
    expect_refused(gpst_mask_pack(&mask, NULL, 1), "bitmap=NULL");
    expect_refused(gpst_mask_pack(&source, &bitmap, 1), "mask.format=1, dtype=3");
    bad_bitmap = bitmap, bad_bitmap.data = NULL;
    expect_refused(gpst_mask_unpack(&bad_bitmap, &mask, 1), "bitmap.data=NULL");
    bad_bitmap = bitmap, bad_bitmap.width = 0;
    expect_refused(gpst_mask_unpack(&bad_bitmap, &mask, 1), "bitmap.width=0");
    bad_bitmap = bitmap, bad_bitmap.width = 9;
    expect_refused(gpst_mask_unpack(&bad_bitmap, &mask, 1), "mask.width=4");
    bad_bitmap = bitmap, bad_bitmap.width = 9, bad_bitmap.pitch_bytes = 1;
    expect_refused(gpst_mask_unpack(&bad_bitmap, &mask, 1), "bitmap.pitch_bytes=1");
    bad_bitmap = bitmap, bad_bitmap.pitch_bytes = INT64_MAX;
    expect_refused(gpst_mask_pack(&mask, &bad_bitmap, 1), "do not fit");
    bad_bitmap = bitmap, bad_bitmap.data = (uint8_t*)some_labels + 15;
    expect_refused(gpst_mask_pack(&mask, &bad_bitmap, 1), "overlap");
}

int main(int argc, char** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(argmax_gives_the_bits_of_the_reference),
        cmocka_unit_test(argmax_of_long_rows),
        cmocka_unit_test(argmax_of_special_scores),
        cmocka_unit_test(argmax_between_pixels),
        cmocka_unit_test(interpolation_agrees_with_double),
        cmocka_unit_test(threshold_gives_the_bits_of_the_reference),
        cmocka_unit_test(halves_compare_as_floats),
        cmocka_unit_test(halves_are_exact),
        cmocka_unit_test(logit_is_within_its_bound),
        cmocka_unit_test(sigmoid_threshold_compares_logits),
        cmocka_unit_test(bits_are_those_of_the_reference),
        cmocka_unit_test(bits_are_lowest_first),
        cmocka_unit_test(every_build_gives_the_same_hash),
        cmocka_unit_test(the_callers_mode_changes_nothing),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(bad_argmax_is_refused),
        cmocka_unit_test(bad_masks_are_refused),
    };
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        printf("%016llx\n", (unsigned long long)hash_all());
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
