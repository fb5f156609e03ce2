/* tests/test_warp_yuv.c -- NV12 and I420 sources: their layout in memory, their colours and where the chroma
   lies, against double precision; their rules. */
#include "test_warp.h"

#include <math.h>

#define MAX_W 23
#define MAX_H 15

static uint8_t luma[MAX_W * MAX_H], cb[MAX_W * MAX_H], cr[MAX_W * MAX_H];
static uint8_t packed[MAX_W * MAX_H * 3];
static float out[64 * 64 * 3];
static uint8_t out_bytes[64 * 64 * 3];

static uint32_t half(uint32_t n) { return (n + 1) / 2; }

/* The planes as a raw frame of video tools: nothing between rows and planes. */
static gpst_image pack(uint32_t w, uint32_t h, gpst_format format) {
    gpst_image image = GPST_ZERO;
    size_t at = (size_t)w * h, bytes = 0;
    memset(packed, 0xa5, sizeof packed);
    for (uint32_t y = 0; y < h; y++)
        memcpy(packed + y * w, luma + y * MAX_W, w);
    for (uint32_t y = 0; y < half(h); y++)
        for (uint32_t x = 0; x < half(w); x++)
            if (format == GPST_FORMAT_NV12) {
                packed[at++] = cb[y * MAX_W + x];
                packed[at++] = cr[y * MAX_W + x];
            } else {
                packed[at + y * half(w) + x] = cb[y * MAX_W + x];
                packed[at + (half(h) + y) * half(w) + x] = cr[y * MAX_W + x];
            }
    image.data = packed, image.width = w, image.height = h, image.format = format;
    assert_int_equal(gpst_image_bytes(&image, &bytes), GPST_OK);
    assert_int_equal(bytes, (size_t)w * h + 2 * half(w) * half(h));
    return image;
}

static gpst_warp_desc desc_of(uint32_t w, uint32_t h, gpst_dtype dtype) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_RESIZE, desc.width = w, desc.height = h;
    desc.format = GPST_FORMAT_RGB, desc.dtype = dtype;
    return desc;
}

/* The standards, from Kr, Kb and the ranges. */
static void true_rgb(gpst_yuv yuv, double y, double u, double v, double rgb[3]) {
    const bool old = yuv == GPST_YUV_BT601_VIDEO || yuv == GPST_YUV_BT601_FULL;
    const bool full = yuv == GPST_YUV_BT601_FULL || yuv == GPST_YUV_BT709_FULL;
    const double kr = old ? 0.299 : 0.2126, kb = old ? 0.114 : 0.0722;
    const double luma_01 = full ? y / 255 : (y - 16) / 219;
    const double pb = (u - 128) / (full ? 255 : 224), pr = (v - 128) / (full ? 255 : 224);
    rgb[0] = luma_01 + 2 * (1 - kr) * pr;
    rgb[2] = luma_01 + 2 * (1 - kb) * pb;
    rgb[1] = (luma_01 - kr * rgb[0] - kb * rgb[2]) / (1 - kr - kb);
    for (int c = 0; c < 3; c++)
        rgb[c] = fmin(fmax(rgb[c] * 255, 0), 255);
}

static double true_plane(const uint8_t* plane, uint32_t w, uint32_t h, double x, double y) {
    const double fx = x - floor(x), fy = y - floor(y);
    double value = 0;
    for (int t = 0; t < 4; t++) {
        const double px = fmin(fmax(floor(x) + (t & 1), 0), w - 1.0),
                     py = fmin(fmax(floor(y) + (t >> 1), 0), h - 1.0);
        value += plane[(size_t)py * MAX_W + (size_t)px] * ((t & 1) ? fx : 1 - fx) * ((t >> 1) ? fy : 1 - fy);
    }
    return value;
}

static void expect_truth(uint32_t w, uint32_t h, gpst_format format, gpst_yuv yuv, gpst_siting siting) {
    gpst_warp_desc desc = desc_of(31, 17, GPST_DTYPE_F32);
    const gpst_image source = pack(w, h, format);
    desc.yuv = yuv, desc.siting = siting;
    run_desc(&desc, &source, out, sizeof out);
    for (uint32_t j = 0; j < 17; j++)
        for (uint32_t i = 0; i < 31; i++) {
            const double x = (i + 0.5) * w / 31 - 0.5, y = (j + 0.5) * h / 17 - 0.5;
            const double u = siting == GPST_SITING_CENTER ? (x - 0.5) / 2 : x / 2, v = (y - 0.5) / 2;
            double rgb[3];
            true_rgb(yuv ? yuv : GPST_YUV_BT709_VIDEO, true_plane(luma, w, h, x, y),
                     true_plane(cb, half(w), half(h), u, v), true_plane(cr, half(w), half(h), u, v), rgb);
            for (int c = 0; c < 3; c++)
                if (fabs((double)out[(j * 31 + i) * 3 + (uint32_t)c] - rgb[c]) > 5e-4)
                    fail_msg("%ux%u format %d yuv %d siting %d at %u, %u, %d: %f, truth %f", w, h,
                             (int)format, (int)yuv, (int)siting, i, j, c,
                             (double)out[(j * 31 + i) * 3 + (uint32_t)c], rgb[c]);
        }
}

static void colours_and_places_agree_with_double(void** state) {
    static const uint32_t sizes[5][2] = {{16, 12}, {MAX_W, MAX_H}, {1, 1}, {2, 5}, {7, 2}};
    (void)state;
    for (int s = 0; s < 5; s++)
        for (int format = GPST_FORMAT_NV12; format <= (int)GPST_FORMAT_I420; format++)
            for (int yuv = 0; yuv <= (int)GPST_YUV_BT709_FULL; yuv++)
                for (int siting = 0; siting <= (int)GPST_SITING_CENTER; siting++)
                    expect_truth(sizes[s][0], sizes[s][1], (gpst_format)format, (gpst_yuv)yuv,
                                 (gpst_siting)siting);
}

/* White, black, gray and the primaries come out as such. */
static void known_colours(void** state) {
    static const uint8_t cases[4][2][3] = {{{235, 128, 128}, {255, 255, 255}},
                                           {{16, 128, 128}, {0, 0, 0}},
                                           {{63, 102, 240}, {255, 0, 0}},
                                           {{32, 240, 118}, {0, 0, 255}}};
    (void)state;
    for (int k = 0; k < 4; k++) {
        memset(luma, cases[k][0][0], sizeof luma), memset(cb, cases[k][0][1], sizeof cb);
        memset(cr, cases[k][0][2], sizeof cr);
        for (int filter = GPST_FILTER_NEAREST; filter <= (int)GPST_FILTER_AREA; filter++) {
            gpst_warp_desc desc = desc_of(5, 4, GPST_DTYPE_U8);
            const gpst_image source = pack(9, 7, GPST_FORMAT_I420);
            desc.filter = (gpst_filter)filter;
            run_desc(&desc, &source, out_bytes, sizeof out_bytes);
            for (int i = 0; i < 5 * 4 * 3; i++)
                if (abs(out_bytes[i] - cases[k][1][i % 3]) > 1)
                    fail_msg("colour %d, filter %d: %d", k, filter, out_bytes[i]);
        }
    }
}

static int draw_noise(void** state) {
    uint64_t seed = test_seed(60);
    (void)state;
    for (size_t i = 0; i < sizeof luma; i++) {
        luma[i] = (uint8_t)test_random(&seed);
        cb[i] = (uint8_t)(64 + test_random(&seed) % 128), cr[i] = (uint8_t)(64 + test_random(&seed) % 128);
    }
    return 0;
}

/* NEAREST without a change of size: every pixel with the chroma of its two by two. */
static void nearest_takes_the_chroma_of_the_square(void** state) {
    gpst_warp_desc desc = desc_of(MAX_W, MAX_H, GPST_DTYPE_F32);
    const gpst_image source = pack(MAX_W, MAX_H, GPST_FORMAT_NV12);
    (void)state;
    desc.filter = GPST_FILTER_NEAREST;
    run_desc(&desc, &source, out, sizeof out);
    for (uint32_t y = 0; y < MAX_H; y++)
        for (uint32_t x = 0; x < MAX_W; x++) {
            double rgb[3];
            const uint32_t at = y / 2 * MAX_W + x / 2;
            true_rgb(GPST_YUV_BT709_VIDEO, luma[y * MAX_W + x], cb[at], cr[at], rgb);
            for (uint32_t c = 0; c < 3; c++)
                assert_true(fabs((double)out[(y * MAX_W + x) * 3 + c] - rgb[c]) < 1e-3);
        }
}

static void what_is_outside_is_black(void** state) {
    const gpst_affine far_out = {{1, 0, 1000, 0, 1, 0}};
    (void)state;
    for (int yuv = 1; yuv <= (int)GPST_YUV_BT709_FULL; yuv++)
        for (int filter = GPST_FILTER_NEAREST; filter <= (int)GPST_FILTER_BILINEAR; filter++) {
            gpst_warp_desc desc = desc_of(5, 5, GPST_DTYPE_U8);
            const gpst_image source = pack(9, 7, GPST_FORMAT_NV12);
            desc.map = GPST_MAP_AFFINE, desc.affines = &far_out, desc.n_affines = 1;
            desc.yuv = (gpst_yuv)yuv, desc.filter = (gpst_filter)filter;
            run_desc(&desc, &source, out_bytes, sizeof out_bytes);
            for (int i = 0; i < 5 * 5 * 3; i++)
                assert_int_equal(out_bytes[i], 0);
        }
}

/* Half a pixel out of a gray picture: half way to black, not to where no signal is (Y = 0 of video). */
static void the_edge_fades_to_black(void** state) {
    const gpst_affine half_out = {{1, 0, -0.5, 0, 1, 0}};
    gpst_warp_desc desc = desc_of(1, 1, GPST_DTYPE_F32);
    (void)state;
    memset(luma, 126, sizeof luma), memset(cb, 128, sizeof cb), memset(cr, 128, sizeof cr);
    const gpst_image source = pack(9, 7, GPST_FORMAT_I420);
    desc.map = GPST_MAP_AFFINE, desc.affines = &half_out, desc.n_affines = 1;
    run_desc(&desc, &source, out, sizeof out);
    for (int c = 0; c < 3; c++)
        assert_true(fabs((double)out[c] - 55 * 255.0 / 219) < 1e-3);
}

/* Gaps of any length between rows change nothing, and copying keeps the planes. */
static void pitches_and_copies(void** state) {
    static uint8_t wide[(MAX_W + 40) * (MAX_H + 1) * 2];
    (void)state;
    for (int format = GPST_FORMAT_NV12; format <= (int)GPST_FORMAT_I420; format++)
        for (int64_t pitch = MAX_W; pitch < MAX_W + 9; pitch++) {
            const gpst_image tight = pack(MAX_W, MAX_H, (gpst_format)format);
            const gpst_warp_desc desc = desc_of(31, 17, GPST_DTYPE_F32);
            static float again[64 * 64 * 3];
            gpst_image gaps = tight;
            size_t bytes = 0;
            gaps.data = wide, gaps.pitch_bytes = pitch;
            memset(wide, 0xa5, sizeof wide);
            gpsti_image_copy(&tight, &gaps);
            assert_int_equal(gpst_image_bytes(&gaps, &bytes), GPST_OK);
            assert_int_equal(wide[bytes], 0xa5);
            const size_t chroma_pitch =
                (size_t)(format == (int)GPST_FORMAT_NV12 ? pitch + pitch % 2 : (pitch + 1) / 2);
            assert_int_equal(wide[MAX_H * (size_t)pitch + chroma_pitch], cb[MAX_W]);
            run_desc(&desc, &tight, out, sizeof out);
            run_desc(&desc, &gaps, again, sizeof again);
            assert_memory_equal(out, again, sizeof out);
        }
}

static void expect_reason(gpst_result result, gpst_result wanted, const char* text) {
    if (result != wanted || !strstr(gpst_last_reason(), text))
        fail_msg("%s: \"%s\", wanted \"%s\"", gpst_result_name(result), gpst_last_reason(), text);
}

static void rules_fire(void** state) {
    const gpst_view view = GPST_ZERO;
    gpst_warp* warp = NULL;
    gpst_image image = pack(8, 8, GPST_FORMAT_NV12), output = GPST_ZERO;
    size_t bytes = 0;
    uint64_t read_bytes = 0, written_bytes = 0;
    (void)state;
    image.pitch_bytes = -8;
    expect_reason(gpst_image_bytes(&image, &bytes), GPST_ERROR_ARGUMENT,
                  "pitch_bytes=-8: must not be negative");
    image.pitch_bytes = INT64_MAX;
    expect_reason(gpst_image_bytes(&image, &bytes), GPST_ERROR_OVERFLOW, "and their chroma do not fit");
    image.pitch_bytes = 0, image.dtype = GPST_DTYPE_F32;
    expect_reason(gpst_image_bytes(&image, &bytes), GPST_ERROR_ARGUMENT, "dtype=3: must be U8 with NV12");
    image.dtype = GPST_DTYPE_U8, image.layout = GPST_LAYOUT_CHW;
    expect_reason(gpst_image_bytes(&image, &bytes), GPST_ERROR_ARGUMENT, "layout=CHW: must be HWC with NV12");
    image.layout = GPST_LAYOUT_HWC;
    gpst_warp_desc desc = desc_of(8, 8, GPST_DTYPE_U8);
    desc.yuv = (gpst_yuv)5;
    expect_reason(gpst_warp_create(&desc, &warp), GPST_ERROR_ARGUMENT, "yuv=5: must be");
    desc.yuv = GPST_YUV_DEFAULT, desc.siting = (gpst_siting)3;
    expect_reason(gpst_warp_create(&desc, &warp), GPST_ERROR_ARGUMENT, "siting=3: must be");
    desc.siting = GPST_SITING_DEFAULT, desc.format = GPST_FORMAT_NV12;
    expect_reason(gpst_warp_create(&desc, &warp), GPST_ERROR_ARGUMENT, "format=6: required, GRAY");
    desc.format = GPST_FORMAT_RGB;
    desc.map = GPST_MAP_EQUIRECT, desc.views = &view, desc.n_views = 1,
    desc.convention = GPST_CONVENTION_FFMPEG;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_output(warp, &output);
    output.data = out_bytes;
    expect_reason(gpst_warp_run(warp, &image, &output, 1, 1), GPST_ERROR_ARGUMENT,
                  "source.format=6, dtype=1: NV12, I420");
    gpst_warp_destroy(warp);
    desc = desc_of(8, 8, GPST_DTYPE_U8);
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_bytes(warp, &image, &read_bytes, &written_bytes);
    assert_int_equal(read_bytes, 8 * 8 * 3 / 2);
    gpst_warp_destroy(warp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(colours_and_places_agree_with_double, draw_noise),
        cmocka_unit_test(known_colours),
        cmocka_unit_test_setup(nearest_takes_the_chroma_of_the_square, draw_noise),
        cmocka_unit_test(what_is_outside_is_black),
        cmocka_unit_test(the_edge_fades_to_black),
        cmocka_unit_test_setup(pitches_and_copies, draw_noise),
        cmocka_unit_test(rules_fire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
