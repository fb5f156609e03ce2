/* tests/test_warp_wide.c -- sources of 16 bits, half floats and floats: against double precision, what becomes of
   them in bytes, what NaN, infinities and subnormals become, and their rules. */
#include "test_warp.h"

#include <float.h>
#include <math.h>

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/exact/half_internal.h"
#endif

#define MAX_W 67
#define MAX_H 41

static union {
    uint16_t halves[MAX_W * MAX_H * 4];
    float floats[MAX_W * MAX_H * 4];
} pixels;
static double truth[MAX_W * MAX_H * 4];
static float out[64 * 64 * 4];
static uint8_t out_bytes[300 * 300 * 4];
static uint16_t out_words[256 * 256 * 4];

static const gpst_dtype wide[3] = {GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};

static gpst_image image_of(uint32_t w, uint32_t h, gpst_format format, gpst_dtype dtype) {
    gpst_image image = GPST_ZERO;
    image.data = &pixels, image.width = w, image.height = h, image.format = format, image.dtype = dtype;
    return image;
}

static gpst_warp_desc desc_of(uint32_t w, uint32_t h, gpst_format format, gpst_dtype dtype) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_RESIZE, desc.width = w, desc.height = h;
    desc.format = format, desc.dtype = dtype;
    return desc;
}

/* Floats from -2 to 2, halves too; the same numbers in truth. */
static void draw(gpst_dtype dtype, uint64_t* seed) {
    for (size_t i = 0; i < MAX_W * MAX_H * 4; i++) {
        const uint64_t random = test_random(seed);
        const float value = (float)((double)(random >> 40) / 4194304.0 - 2.0);
        if (dtype == GPST_DTYPE_F32)
            pixels.floats[i] = value, truth[i] = (double)value;
        else if (dtype == GPST_DTYPE_F16)
            pixels.halves[i] = gpsti_f16_from_f32(value), truth[i] = (double)gpsti_f32_from_f16(pixels.halves[i]);
        else
            pixels.halves[i] = (uint16_t)random, truth[i] = pixels.halves[i];
    }
}

static double true_sample(uint32_t w, uint32_t h, double x, double y, uint32_t c) {
    const double fx = x - floor(x), fy = y - floor(y);
    double value = 0;
    for (int t = 0; t < 4; t++) {
        const double px = fmin(fmax(floor(x) + (t & 1), 0), w - 1.0), py = fmin(fmax(floor(y) + (t >> 1), 0), h - 1.0);
        value += truth[((size_t)py * w + (size_t)px) * 3 + c] * ((t & 1) ? fx : 1 - fx) * ((t >> 1) ? fy : 1 - fy);
    }
    return value;
}

static void samples_agree_with_double(void** state) {
    uint64_t seed = test_seed(70);
    (void)state;
    for (int d = 0; d < 3; d++) {
        const double range = wide[d] == GPST_DTYPE_U16 ? 65535 : 2, full = wide[d] == GPST_DTYPE_U16 ? 65535 : 1;
        const gpst_warp_desc desc = desc_of(50, 47, GPST_FORMAT_BGR, GPST_DTYPE_F32);
        const gpst_warp_desc in_bytes = desc_of(50, 47, GPST_FORMAT_BGR, GPST_DTYPE_U8);
        const gpst_image source = image_of(MAX_W, MAX_H, GPST_FORMAT_RGB, wide[d]);
        const gpst_warp_desc in_words = desc_of(50, 47, GPST_FORMAT_BGR, GPST_DTYPE_U16);
        double worst = 0, worst_byte = 0, worst_word = 0;
        draw(wide[d], &seed);
        run_desc(&desc, &source, out, sizeof out);
        run_desc(&in_bytes, &source, out_bytes, sizeof out_bytes);
        run_desc(&in_words, &source, out_words, sizeof out_words);
        for (uint32_t y = 0; y < 47; y++)
            for (uint32_t x = 0; x < 50; x++)
                for (uint32_t c = 0; c < 3; c++) {
                    const uint32_t at = (y * 50 + x) * 3 + c;
                    const double value =
                        true_sample(MAX_W, MAX_H, (x + 0.5) * MAX_W / 50 - 0.5, (y + 0.5) * MAX_H / 47 - 0.5, 2 - c);
                    worst = fmax(worst, fabs((double)out[at] - value) / range);
                    worst_byte = fmax(worst_byte, fabs(out_bytes[at] - fmin(fmax(value * 255 / full, 0), 255)));
                    worst_word = fmax(worst_word, fabs(out_words[at] - fmin(fmax(value * 65535 / full, 0), 65535)));
                }
        printf("dtype %d: floats within %.1e of the range, bytes within %.4f, words within %.4f\n", (int)wide[d], worst,
               worst_byte, worst_word);
        assert_true(worst < 1e-6);
        assert_true(worst_byte < 0.501);
        assert_true(worst_word < 0.52);
    }
}

/* The mean of 2 x 2 blocks, by AREA's triangle of 4 x 4 with weights 1 3 3 1. */
static void area_agrees_with_double(void** state) {
    static const double weights[4] = {0.125, 0.375, 0.375, 0.125};
    uint64_t seed = test_seed(71);
    (void)state;
    for (int d = 0; d < 3; d++) {
        const double range = wide[d] == GPST_DTYPE_U16 ? 65535 : 2;
        gpst_warp_desc desc = desc_of(20, 20, GPST_FORMAT_RGBA, GPST_DTYPE_F32);
        const gpst_image source = image_of(40, 40, GPST_FORMAT_RGBA, wide[d]);
        desc.filter = GPST_FILTER_AREA;
        draw(wide[d], &seed);
        run_desc(&desc, &source, out, sizeof out);
        for (uint32_t y = 1; y < 19; y++)
            for (uint32_t x = 1; x < 19; x++)
                for (uint32_t c = 0; c < 4; c++) {
                    double value = 0;
                    for (uint32_t t = 0; t < 16; t++)
                        value += weights[t / 4] * weights[t % 4] *
                                 truth[((2 * y - 1 + t / 4) * 40 + 2 * x - 1 + t % 4) * 4 + c];
                    assert_true(fabs((double)out[(y * 20 + x) * 4 + c] - value) < 2e-6 * range);
                }
    }
}

/* Every number of 16 bits: in U8 a 257th of it to nearest, in F32 itself; a missing alpha is full. */
static void sixteen_bits_become_eight(void** state) {
    static uint16_t all[65536];
    static float copies[65536];
    gpst_image source = image_of(256, 256, GPST_FORMAT_GRAY, GPST_DTYPE_U16);
    gpst_warp_desc desc = desc_of(256, 256, GPST_FORMAT_RGBA, GPST_DTYPE_U8);
    (void)state;
    for (uint32_t i = 0; i < 65536; i++)
        all[i] = (uint16_t)i;
    source.data = all;
    for (int filter = GPST_FILTER_NEAREST; filter <= (int)GPST_FILTER_AREA; filter++) {
        desc.filter = (gpst_filter)filter;
        run_desc(&desc, &source, out_bytes, sizeof out_bytes);
        for (uint32_t i = 0; i < 65536; i++) {
            assert_int_equal(out_bytes[4 * i + 1], (i + 128) / 257);
            assert_int_equal(out_bytes[4 * i + 3], 255);
        }
    }
    desc = desc_of(256, 256, GPST_FORMAT_GRAY, GPST_DTYPE_F32);
    run_desc(&desc, &source, copies, sizeof copies);
    for (uint32_t i = 0; i < 65536; i++)
        assert_true(copies[i] >= (float)i && copies[i] <= (float)i);
    desc = desc_of(1, 1, GPST_FORMAT_BGRA, GPST_DTYPE_F32);
    source.width = source.height = 1;
    run_desc(&desc, &source, out, sizeof out);
    assert_true(out[3] >= 65535.0f);
    source.dtype = GPST_DTYPE_F32;
    run_desc(&desc, &source, out, sizeof out);
    assert_true(out[3] >= 1.0f && out[3] <= 1.0f);
}

/* Into U16 every number of 16 bits is itself, every byte 257 times itself, a float 65535 times itself, rounded to
   nearest even; a missing alpha is full. */
static void what_words_become(void** state) {
    static uint16_t all[65536];
    static uint8_t bytes[256];
    static float floats[65536];
    gpst_image source = image_of(256, 256, GPST_FORMAT_GRAY, GPST_DTYPE_U16);
    gpst_warp_desc desc = desc_of(256, 256, GPST_FORMAT_RGBA, GPST_DTYPE_U16);
    (void)state;
    for (uint32_t i = 0; i < 65536; i++) {
        all[i] = (uint16_t)i, bytes[i % 256] = (uint8_t)i;
        floats[i] = (float)i / 65536.0f;
    }
    for (int filter = GPST_FILTER_NEAREST; filter <= (int)GPST_FILTER_AREA; filter++) {
        desc.filter = (gpst_filter)filter, desc.width = desc.height = 256;
        source.data = all, source.dtype = GPST_DTYPE_U16, source.width = source.height = 256;
        run_desc(&desc, &source, out_words, sizeof out_words);
        for (uint32_t i = 0; i < 65536; i++)
            assert_true(out_words[4 * i + 1] == i && out_words[4 * i + 3] == 65535);
        source.data = floats, source.dtype = GPST_DTYPE_F32;
        run_desc(&desc, &source, out_words, sizeof out_words);
        for (uint32_t i = 0; i < 65536; i++)
            assert_true(out_words[4 * i + 1] == lrintf(floats[i] * 65535.0f) && out_words[4 * i + 3] == 65535);
        desc.width = desc.height = 16;
        source.data = bytes, source.dtype = GPST_DTYPE_U8, source.width = source.height = 16;
        run_desc(&desc, &source, out_words, sizeof out_words);
        for (uint32_t i = 0; i < 256; i++)
            assert_true(out_words[4 * i + 1] == 257 * i && out_words[4 * i + 3] == 65535);
    }
}

/* By scale and bias: rounded to nearest even, cut to 0..65535. Between two bytes more than 8 bits are kept. */
static void words_are_scaled(void** state) {
    static uint8_t bytes[6] = {0, 1, 2, 3, 255, 5};
    static const uint16_t scaled[6] = {0, 0, 2, 4, 382, 6};
    gpst_image source = image_of(6, 1, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
    gpst_warp_desc desc = desc_of(6, 1, GPST_FORMAT_GRAY, GPST_DTYPE_U16);
    const gpst_affine half = {{1, 0, 0.5, 0, 1, 0}};
    (void)state;
    source.data = bytes;
    desc.has_scale = true, desc.scale[0] = 1.5f, desc.bias[0] = -1.0f; /* 0.5, 2, 3.5 of 1, 2, 3 */
    run_desc(&desc, &source, out_words, sizeof out_words);
    assert_memory_equal(out_words, scaled, sizeof scaled);
    desc.scale_of_full = true, desc.scale[0] = 10 * 65535.0f, desc.bias[0] = 0.0f; /* 10 times 257 of each unit */
    run_desc(&desc, &source, out_words, sizeof out_words);
    for (int i = 0; i < 6; i++)
        assert_int_equal(out_words[i], bytes[i] == 255 ? 65535 : bytes[i] * 2570);
    desc.bias[0] = -10000.0f;
    run_desc(&desc, &source, out_words, sizeof out_words);
    assert_int_equal(out_words[0], 0), assert_int_equal(out_words[4], 65535);
    desc = desc_of(6, 1, GPST_FORMAT_GRAY, GPST_DTYPE_U16);
    desc.map = GPST_MAP_AFFINE, desc.affines = &half, desc.n_affines = 1;
    run_desc(&desc, &source, out_words, sizeof out_words);
    assert_int_equal(out_words[0], 128); /* 128.5 */
    assert_int_equal(out_words[1], 386); /* 385.5 */
    assert_int_equal(out_words[3], 129 * 257);
}

/* ---- what is not a number, or hardly one ------------------------------------------------------------- */
#define NAN_OUT 0x7fc00000u
#define INF 0x7f800000u

static const uint32_t specials[8] = {0x7fc00000u, 0xffc12345u, 0x7f800001u, INF,
                                     0xff800000u, 0x00000001u, 0x807fffffu, 0x7f7fffffu};

static void run_specials(gpst_dtype dtype, bool has_scale, gpst_filter filter, void* data, size_t bytes) {
    gpst_image source = image_of(8, 1, GPST_FORMAT_GRAY, GPST_DTYPE_F32);
    gpst_warp_desc desc = desc_of(8, 1, GPST_FORMAT_GRAY, dtype);
    memcpy(&pixels, specials, sizeof specials);
    desc.filter = filter, desc.has_scale = has_scale;
    desc.scale[0] = 1;
    run_desc(&desc, &source, data, bytes);
}

/* In place, by every filter: pixels of weight 0 do not spill over. */
static void specials_in_place(void** state) {
    static const uint32_t floats[8] = {NAN_OUT, NAN_OUT, NAN_OUT, INF, 0xff800000u, 1, 0x807fffffu, 0x7f7fffffu};
    static const uint16_t halves[8] = {0x7e00, 0x7e00, 0x7e00, 0x7c00, 0xfc00, 0, 0x8000, 0x7c00};
    static const uint8_t bytes[8] = {0, 0, 0, 255, 0, 0, 0, 255}, signed_bytes[8] = {0, 0, 0, 127, 128, 0, 0, 127};
    static const uint16_t words[8] = {0, 0, 0, 65535, 0, 0, 0, 65535};
    (void)state;
    for (int filter = GPST_FILTER_NEAREST; filter <= (int)GPST_FILTER_AREA; filter++) {
        uint32_t as_floats[8];
        uint16_t as_halves[8];
        uint8_t as_bytes[8];
        run_specials(GPST_DTYPE_F32, false, (gpst_filter)filter, as_floats, sizeof as_floats);
        assert_memory_equal(as_floats, floats, sizeof floats);
        run_specials(GPST_DTYPE_F16, false, (gpst_filter)filter, as_halves, sizeof as_halves);
        assert_memory_equal(as_halves, halves, sizeof halves);
        run_specials(GPST_DTYPE_U16, false, (gpst_filter)filter, as_halves, sizeof as_halves);
        assert_memory_equal(as_halves, words, sizeof words);
        run_specials(GPST_DTYPE_U8, false, (gpst_filter)filter, as_bytes, sizeof as_bytes);
        assert_memory_equal(as_bytes, bytes, sizeof bytes);
        run_specials(GPST_DTYPE_I8, true, (gpst_filter)filter, as_bytes, sizeof as_bytes);
        assert_memory_equal(as_bytes, signed_bytes, sizeof signed_bytes);
    }
}

/* Half way between two pixels. */
static uint32_t between(uint32_t a, uint32_t b) {
    const gpst_affine half = {{1, 0, 0.5, 0, 1, 0}};
    const gpst_image source = image_of(2, 1, GPST_FORMAT_GRAY, GPST_DTYPE_F32);
    gpst_warp_desc desc = desc_of(1, 1, GPST_FORMAT_GRAY, GPST_DTYPE_F32);
    uint32_t bits = 0;
    memcpy(&pixels.floats[0], &a, 4), memcpy(&pixels.floats[1], &b, 4);
    desc.map = GPST_MAP_AFFINE, desc.affines = &half, desc.n_affines = 1;
    run_desc(&desc, &source, &bits, sizeof bits);
    return bits;
}

static void specials_between(void** state) {
    (void)state;
    assert_int_equal(between(INF, 0x3f800000u), INF);
    assert_int_equal(between(0x3f800000u, INF), INF);
    assert_int_equal(between(0xff800000u, 0x3f800000u), 0xff800000u);
    assert_int_equal(between(INF, INF), INF);
    assert_int_equal(between(INF, 0xff800000u), NAN_OUT);
    assert_int_equal(between(0xffc00001u, 0x3f800000u), NAN_OUT);
    assert_int_equal(between(0x3f800000u, 0x7fa00001u), NAN_OUT);
    assert_int_equal(between(0x7f7fffffu, 0xff7fffffu), 0); /* the largest and its negative */
    assert_int_equal(between(0x7f7fffffu, 0x7f7fffffu), 0x7f7fffffu);
    assert_int_equal(between(2, 6), 4); /* subnormals */
    assert_int_equal(between(0x00800000u, 0), 0x00400000u);
}

/* ---- rules -------------------------------------------------------------------------------------------- */
static void expect_reason(gpst_result result, const char* text) {
    if (result != GPST_ERROR_ARGUMENT || !strstr(gpst_last_reason(), text))
        fail_msg("%s: \"%s\", wanted \"%s\"", gpst_result_name(result), gpst_last_reason(), text);
}

/* One warp for every dtype: full is 1 ahead of scale and bias, NaN and alpha that the source lacks included. */
static void scales_of_full(void** state) {
    static const float full[4] = {255, 65535, 1, 1};
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    gpst_warp_desc desc = desc_of(1, 1, GPST_FORMAT_RGBA, GPST_DTYPE_F32);
    (void)state;
    desc.has_scale = desc.scale_of_full = true;
    for (int c = 0; c < 4; c++)
        desc.scale[c] = (float)(2 + c), desc.bias[c] = -0.5f;
    for (int i = 0; i < 4; i++) {
        const gpst_image source = image_of(1, 1, GPST_FORMAT_RGB, dtypes[i]);
        float value[4];
        for (int c = 0; c < 3; c++) {
            const float number = full[i] * (i == 0 ? 1.0f : 0.5f) - (i == 1 ? 0.5f : 0.0f);
            if (dtypes[i] == GPST_DTYPE_U8)
                ((uint8_t*)&pixels)[c] = (uint8_t)number;
            else if (dtypes[i] == GPST_DTYPE_F32)
                pixels.floats[c] = number;
            else
                pixels.halves[c] = dtypes[i] == GPST_DTYPE_U16 ? (uint16_t)number : gpsti_f16_from_f32(number);
        }
        run_desc(&desc, &source, value, sizeof value);
        for (int c = 0; c < 4; c++) {
            const double share = c == 3 || i == 0 ? 1.0 : i == 1 ? 32767.0 / 65535 : 0.5;
            assert_true(fabs((double)value[c] - (share * (2 + c) - 0.5)) < 1e-6);
        }
    }
}

static void rules_fire(void** state) {
    const gpst_view view = GPST_ZERO;
    gpst_warp_desc desc = desc_of(4, 4, GPST_FORMAT_RGB, GPST_DTYPE_F32);
    gpst_image source = image_of(4, 4, GPST_FORMAT_RGB, GPST_DTYPE_U16), output = GPST_ZERO;
    gpst_warp* warp = NULL;
    uint64_t read_bytes = 0, written_bytes = 0;
    (void)state;
    desc.scale_of_full = true;
    expect_reason(gpst_warp_create(&desc, &warp), "scale_of_full: only with has_scale");
    desc.scale_of_full = false;
    desc.dtype = GPST_DTYPE_U8, desc.mask = image_of(4, 4, GPST_FORMAT_GRAY, GPST_DTYPE_U16);
    expect_reason(gpst_warp_create(&desc, &warp), "mask.format=1, dtype=5: must be GRAY and U8");
    desc.mask.data = NULL;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
    assert_int_equal(read_bytes, 4 * 4 * 3 * 2);
    gpst_warp_query_output(warp, &output);
    output.data = out_bytes;
    source.data = (uint8_t*)&pixels + 1;
    expect_reason(gpst_warp_run(warp, &source, &output, 1, 1), "must be a multiple of the 2 bytes of its dtype");
    source.data = &pixels, source.pitch_bytes = 25;
    expect_reason(gpst_warp_run(warp, &source, &output, 1, 1), "source.pitch_bytes=25: must be a multiple of the 2");
    source.pitch_bytes = 0, source.dtype = GPST_DTYPE_I8;
    expect_reason(gpst_warp_run(warp, &source, &output, 1, 1), "source.dtype=4: must be U8, U16, F16 or F32");
    source.dtype = GPST_DTYPE_F32, source.layout = GPST_LAYOUT_CHW;
    expect_reason(gpst_warp_run(warp, &source, &output, 1, 1), "source.layout=CHW: must be HWC");
    gpst_warp_destroy(warp);
    desc.map = GPST_MAP_EQUIRECT, desc.views = &view, desc.n_views = 1, desc.convention = GPST_CONVENTION_FFMPEG;
    source.layout = GPST_LAYOUT_HWC;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    expect_reason(gpst_warp_run(warp, &source, &output, 1, 1), "wider than a byte not with convention=FFMPEG");
    gpst_warp_destroy(warp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_agree_with_double), cmocka_unit_test(area_agrees_with_double),
        cmocka_unit_test(sixteen_bits_become_eight), cmocka_unit_test(specials_in_place),
        cmocka_unit_test(what_words_become),         cmocka_unit_test(words_are_scaled),
        cmocka_unit_test(specials_between),          cmocka_unit_test(scales_of_full),
        cmocka_unit_test(rules_fire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
