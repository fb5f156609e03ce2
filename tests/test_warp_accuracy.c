/* tests/test_warp_accuracy.c -- the warp against double precision (libm's), on noise and on smooth pictures,
   up to 7680x3840, through seam and poles. Prints the worst figures. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/warp/warp_pixel_internal.h"
#endif

#include <math.h>

static const double pi = 3.14159265358979323846;

/* ---- the oracle ---------------------------------------------------------------------- */
typedef struct spot {
    double x, y;
} spot;

/* The formulas of the manual, written down once more. */
static spot true_position(const gpst_view* view, uint32_t width, uint32_t height, uint32_t i, uint32_t j,
                          uint32_t source_w, uint32_t source_h) {
    const double yaw = view->yaw * pi / 180, pitch = view->pitch * pi / 180, roll = view->roll * pi / 180;
    const double tan_x = tan(view->hfov * pi / 360);
    const double tan_y = view->vfov > 0 ? tan(view->vfov * pi / 360) : tan_x * height / width;
    const double x0 = tan_x * ((2.0 * i + 1) / width - 1), y0 = tan_y * ((2.0 * j + 1) / height - 1);
    const double x1 = x0 * cos(roll) - y0 * sin(roll), y1 = x0 * sin(roll) + y0 * cos(roll); /* roll first */
    const double y2 = y1 * cos(pitch) - sin(pitch), z2 = y1 * sin(pitch) + cos(pitch);
    const double x3 = x1 * cos(yaw) + z2 * sin(yaw), z3 = z2 * cos(yaw) - x1 * sin(yaw);
    spot at;
    at.x = (atan2(x3, z3) / (2 * pi) + 0.5) * source_w - 0.5;
    at.y = (atan2(y2, hypot(x3, z3)) / pi + 0.5) * source_h - 0.5;
    return at;
}

static double true_pixel(const uint8_t* pixels, int64_t w, int64_t h, int64_t x, int64_t y) {
    if (y < 0 || y >= h) {
        y = y < 0 ? -1 - y : 2 * h - 1 - y;
        x += w / 2;
    }
    x = ((x % w) + w) % w;
    return pixels[y * w + x];
}

static double true_sample(const uint8_t* pixels, uint32_t w, uint32_t h, spot at) {
    const double x = floor(at.x), y = floor(at.y), fx = at.x - x, fy = at.y - y;
    const int64_t ix = (int64_t)x, iy = (int64_t)y;
    const double upper =
        true_pixel(pixels, w, h, ix, iy) * (1 - fx) + true_pixel(pixels, w, h, ix + 1, iy) * fx;
    const double lower =
        true_pixel(pixels, w, h, ix, iy + 1) * (1 - fx) + true_pixel(pixels, w, h, ix + 1, iy + 1) * fx;
    return upper * (1 - fy) + lower * fy;
}

/* ---- views ------------------------------------------------------------------------------ */
static gpst_view view_of(double yaw, double pitch, double roll, double hfov) {
    gpst_view view = GPST_ZERO;
    view.yaw = yaw, view.pitch = pitch, view.roll = roll, view.hfov = hfov;
    return view;
}

typedef struct score {
    double worst, beyond;
    uint64_t n, n_beyond;
} score;

static void measure_view(const uint8_t* pixels, uint32_t w, uint32_t h, const gpst_view* view, uint64_t* seed,
                         score* s) {
    enum { OUT_W = 640, OUT_H = 360, SAMPLES = 40000 };
    static uint8_t out[OUT_W * OUT_H];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_image source = GPST_ZERO, output = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = view;
    desc.n_views = 1;
    desc.width = OUT_W;
    desc.height = OUT_H;
    desc.format = GPST_FORMAT_GRAY;
    source.data = (void*)(uintptr_t)pixels;
    source.width = w;
    source.height = h;
    source.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_output(warp, &output);
    output.data = out;
    memset(out, 0xa5, sizeof out);
    assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 1), GPST_OK);
    for (uint32_t k = 0; k < SAMPLES; k++) {
        const uint32_t i = (uint32_t)(test_random(seed) % OUT_W), j = (uint32_t)(test_random(seed) % OUT_H);
        const spot at = true_position(view, OUT_W, OUT_H, i, j, w, h);
        const double error = fabs(out[j * OUT_W + i] - true_sample(pixels, w, h, at));
        s->worst = fmax(s->worst, error);
        s->n_beyond += error > 0.75 ? 1 : 0;
        s->n++;
        if (k % 16 == 0) { /* and the public query, in double */
            double x = 0, y = 0;
            assert_int_equal(gpst_warp_position(warp, 0, i, j, w, h, &x, &y), GPST_OK);
            const double across = fabs(x - at.x), around = fmin(across, fabs(across - w));
            assert_true(around < 1e-6 * w && fabs(y - at.y) < 1e-9 * h);
        }
    }
    gpst_warp_destroy(warp);
}

static void draw_noise(uint8_t* pixels, size_t n, uint64_t* seed) {
    for (size_t i = 0; i < n; i += 8) {
        const uint64_t random = test_random(seed);
        memcpy(pixels + i, &random, n - i < 8 ? n - i : 8);
    }
}

static void draw_waves(uint8_t* pixels, uint32_t w, uint32_t h) {
    for (uint32_t y = 0; y < h; y++) {
        const double height = 120 * cos(0.05 * y);
        for (uint32_t x = 0; x < w; x++)
            pixels[(size_t)y * w + x] = (uint8_t)lrint(127.5 + height * sin(24 * pi * x / w));
    }
}

/* Both poles in the middle and at an edge, the seam, the widest, the narrowest, the ordinary. */
static void measure(uint32_t w, uint32_t h, bool noise, uint64_t seed) {
    const gpst_view views[] = {
        view_of(0, 0, 0, 90),       view_of(180, 0, 0, 110),   view_of(-179.9, 20, 15, 60),
        view_of(0, 90, 0, 90),      view_of(33, -90, 12, 100), view_of(70, 55, -30, 90),
        view_of(200, -65, 100, 80), view_of(10, 5, 0, 165),    view_of(123, 88, 45, 8)};
    score s = GPST_ZERO;
    uint8_t* pixels = (uint8_t*)malloc((size_t)w * h);
    assert_non_null(pixels);
    if (noise)
        draw_noise(pixels, (size_t)w * h, &seed);
    else
        draw_waves(pixels, w, h);
    for (size_t i = 0; i < sizeof views / sizeof views[0]; i++)
        measure_view(pixels, w, h, &views[i], &seed, &s);
    free(pixels);
    const double share = (double)s.n_beyond / (double)s.n;
    printf("%ux%u %s: worst %.4f LSB, beyond 0.75 LSB %.5f %% of %llu samples\n", w, h,
           noise ? "noise" : "smooth", s.worst, 100 * share, (unsigned long long)s.n);
    assert_true(s.worst <= 1.5);
    assert_true(share <= 1e-4);
}

static void views_agree_with_double(void** state) {
    const uint64_t seed = test_seed(30);
    (void)state;
    measure(7680, 3840, true, seed);
    measure(4096, 2048, true, seed + 1);
    measure(4096, 2048, false, seed + 2);
    measure(1023, 512, true, seed + 3);
}

/* ---- resize --------------------------------------------------------------------------------- */
static double true_resized(const uint8_t* pixels, uint32_t w, uint32_t h, uint32_t out_w, uint32_t out_h,
                           uint32_t i, uint32_t j) {
    const double x = (i + 0.5) * w / out_w - 0.5, y = (j + 0.5) * h / out_h - 0.5;
    const double fx = x - floor(x), fy = y - floor(y);
    double value = 0;
    for (int t = 0; t < 4; t++) {
        const double px = fmin(fmax(floor(x) + (t & 1), 0), w - 1.0),
                     py = fmin(fmax(floor(y) + (t >> 1), 0), h - 1.0);
        value += pixels[(uint32_t)py * w + (uint32_t)px] * ((t & 1) ? fx : 1 - fx) * ((t >> 1) ? fy : 1 - fy);
    }
    return value;
}

static void resize_agrees_with_double(void** state) {
    static const uint32_t sizes[][4] = {{640, 360, 200, 113}, {100, 70, 333, 251}, {1, 1, 9, 5},
                                        {1920, 3, 512, 7},    {64, 64, 64, 64},    {7, 1000, 13, 512}};
    static uint8_t pixels[640 * 360];
    static uint8_t bytes[512 * 512];
    static float floats[512 * 512];
    uint64_t seed = test_seed(31);
    double worst = 0, worst_float = 0;
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    for (size_t c = 0; c < sizeof sizes / sizeof sizes[0]; c++) {
        const uint32_t w = sizes[c][0], h = sizes[c][1], out_w = sizes[c][2], out_h = sizes[c][3];
        for (int as_float = 0; as_float < 2; as_float++) {
            gpst_warp_desc desc = GPST_ZERO;
            gpst_image source = GPST_ZERO, output = GPST_ZERO;
            gpst_warp* warp = NULL;
            desc.map = GPST_MAP_RESIZE;
            desc.width = out_w, desc.height = out_h;
            desc.format = GPST_FORMAT_GRAY;
            desc.dtype = as_float ? GPST_DTYPE_F32 : GPST_DTYPE_U8;
            source.data = pixels, source.width = w, source.height = h, source.format = GPST_FORMAT_GRAY;
            assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
            gpst_warp_query_output(warp, &output);
            output.data = as_float ? (void*)floats : (void*)bytes;
            memset(output.data, 0xa5, (size_t)out_w * out_h * (as_float ? 4 : 1));
            assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 1), GPST_OK);
            for (uint32_t j = 0; j < out_h; j++)
                for (uint32_t i = 0; i < out_w; i++) {
                    const double truth = true_resized(pixels, w, h, out_w, out_h, i, j);
                    const uint32_t at = j * out_w + i;
                    if (as_float)
                        worst_float = fmax(worst_float, fabs((double)floats[at] - truth));
                    else
                        worst = fmax(worst, fabs(bytes[at] - truth));
                    double x = 0, y = 0;
                    assert_int_equal(gpst_warp_position(warp, 0, i, j, w, h, &x, &y), GPST_OK);
                    assert_true(fabs(x - ((i + 0.5) * w / out_w - 0.5)) < 1e-9);
                    assert_true(fabs(y - ((j + 0.5) * h / out_h - 0.5)) < 1e-9);
                }
            gpst_warp_destroy(warp);
        }
    }
    printf("resize: bytes within %.4f LSB, floats within %.2e of the range\n", worst, worst_float / 255);
    assert_true(worst <= 1.0);
    assert_true(worst_float / 255 <= 1e-6);
}

static void resize_nearest_is_exact(void** state) {
    enum { W = 37, OUT = 101 };
    uint8_t pixels[W], out[OUT];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_image source = GPST_ZERO, output = GPST_ZERO;
    gpst_warp* warp = NULL;
    (void)state;
    for (int i = 0; i < W; i++)
        pixels[i] = (uint8_t)(i * 3);
    desc.map = GPST_MAP_RESIZE, desc.filter = GPST_FILTER_NEAREST;
    desc.width = OUT, desc.height = 1, desc.format = GPST_FORMAT_GRAY;
    source.data = pixels, source.width = W, source.height = 1, source.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_output(warp, &output);
    output.data = out;
    assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 1), GPST_OK);
    for (int i = 0; i < OUT; i++)
        assert_int_equal(out[i], (2 * i + 1) * W / (2 * OUT) * 3);
    gpst_warp_destroy(warp);
}

/* Float stores at the position that the pixels themselves use: only the sampling and the scale are judged. */
static void float_views_are_accurate(void** state) {
    enum { W = 300, H = 150, OUT_W = 90, OUT_H = 60 };
    static uint8_t pixels[W * H];
    static float out[OUT_W * OUT_H];
    uint64_t seed = test_seed(32);
    double worst = 0;
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    for (int v = 0; v < 40; v++) {
        const gpst_view view =
            view_of((double)(test_random(&seed) % 360), (double)(test_random(&seed) % 181) - 90, 7.0 * v, 90);
        gpst_warp_desc desc = GPST_ZERO;
        gpst_image source = GPST_ZERO, output = GPST_ZERO;
        gpst_warp* warp = NULL;
        gpsti_warp_job job;
        desc.map = GPST_MAP_EQUIRECT, desc.views = &view, desc.n_views = 1;
        desc.width = OUT_W, desc.height = OUT_H, desc.format = GPST_FORMAT_GRAY, desc.dtype = GPST_DTYPE_F32;
        desc.has_scale = true, desc.scale[0] = 1.0f / 64.0f, desc.bias[0] = -2.0f;
        source.data = pixels, source.width = W, source.height = H, source.format = GPST_FORMAT_GRAY;
        assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
        gpst_warp_query_output(warp, &output);
        output.data = out;
        memset(out, 0xa5, sizeof out);
        assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 1), GPST_OK);
        gpsti_warp_job_init(warp, &source, &output, 0, &job);
        for (uint32_t j = 0; j < OUT_H; j++)
            for (uint32_t i = 0; i < OUT_W; i++) {
                const gpsti_warp_place place = gpsti_warp_locate(&job, (int32_t)i, (int32_t)j);
                const spot at = {place.x + (double)place.fx, place.y + (double)place.fy};
                const double truth = true_sample(pixels, W, H, at) / 64.0 - 2.0;
                worst = fmax(worst, fabs((double)out[j * OUT_W + i] - truth));
            }
        gpst_warp_destroy(warp);
    }
    printf("float views: within %.2e of the range\n", worst / (255.0 / 64.0));
    assert_true(worst / (255.0 / 64.0) <= 1e-6);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views_agree_with_double),
        cmocka_unit_test(resize_agrees_with_double),
        cmocka_unit_test(resize_nearest_is_exact),
        cmocka_unit_test(float_views_are_accurate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
