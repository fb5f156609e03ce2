/* tests/test_warp_fit.c -- LETTERBOX and COVER: where the picture lies and which part of the source it shows, for sizes
   by chance; what the bars are; their rules. */
#include "test_warp.h"

#include <math.h>

#define MAX_SIDE 300

static uint8_t pixels[MAX_SIDE * MAX_SIDE * 4];
static float out_floats[MAX_SIDE * MAX_SIDE * 3];
static uint8_t out_bytes[MAX_SIDE * MAX_SIDE * 4];

static gpst_image image_of(uint32_t width, uint32_t height, gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.data = pixels, image.width = width, image.height = height, image.format = format;
    return image;
}

static gpst_warp_desc desc_of(gpst_fit fit, uint32_t width, uint32_t height) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_RESIZE, desc.filter = GPST_FILTER_NEAREST, desc.fit = fit;
    desc.width = width, desc.height = height, desc.format = GPST_FORMAT_GRAY, desc.dtype = GPST_DTYPE_F32;
    return desc;
}

/* ---- where ---------------------------------------------------------------------------------------------- */
/* One axis of the output: pixels from `begin` on, `size` of them, the first being number `first` of `resized`. */
typedef struct part {
    int begin, size, first, resized;
} part;

/* Python's round is nearbyint. */
static part letterbox_part(uint32_t in, uint32_t out, double ratio) {
    part p;
    p.resized = (int)fmax(nearbyint(in * ratio), 1), p.first = 0, p.size = p.resized;
    p.begin = (int)nearbyint(((int)out - p.resized) / 2.0 - 0.1);
    return p;
}

static part cover_part(uint32_t out, int resized) {
    part p = {0, (int)out, 0, resized};
    if (resized >= (int)out)
        p.first = (int)nearbyint((resized - (int)out) / 2.0);
    else
        p.begin = ((int)out - resized) / 2, p.size = resized;
    return p;
}

static int cover_long(uint32_t short_side, uint32_t shorter, uint32_t longer) {
    return (int)((double)((uint64_t)short_side * longer) / shorter);
}

/* The least side that leaves no bars, by trying. */
static uint32_t least_short_side(uint32_t w, uint32_t h, uint32_t out_w, uint32_t out_h) {
    for (uint32_t side = 1;; side++) {
        const uint32_t width = w <= h ? side : (uint32_t)cover_long(side, h, w);
        const uint32_t height = w <= h ? (uint32_t)cover_long(side, w, h) : side;
        if (width >= out_w && height >= out_h)
            return side;
    }
}

static void expect_axis(const gpst_warp* warp, part p, uint32_t w, uint32_t h, bool down) {
    double at[2], other;
    for (int i = 0; i < 2; i++) {
        const uint32_t x = (uint32_t)(p.begin + (i && p.size > 1 ? 1 : 0));
        assert_int_equal(gpst_warp_position(warp, 0, down ? 0 : x, down ? x : 0, w, h, down ? &other : &at[i],
                                            down ? &at[i] : &other), GPST_OK);
    }
    const double step = (double)(down ? h : w) / p.resized;
    assert_true(fabs(at[0] - ((p.first + 0.5) * step - 0.5)) < 1e-6);
    assert_true(p.size == 1 || fabs(at[1] - at[0] - step) < 1e-6);
}

/* The bars are -1, which no source has. */
static void expect_parts(gpst_warp_desc* desc, uint32_t w, uint32_t h, part across, part down) {
    const gpst_image source = image_of(w, h, GPST_FORMAT_GRAY);
    desc->fill[0] = -1;
    gpst_warp* const warp = make_warp(desc);
    run_warp(warp, &source, out_floats, sizeof out_floats);
    for (int y = 0; y < (int)desc->height; y++)
        for (int x = 0; x < (int)desc->width; x++) {
            const bool inside = x >= across.begin && x < across.begin + across.size && y >= down.begin &&
                                y < down.begin + down.size;
            const float value = out_floats[y * (int)desc->width + x];
            if (inside != (value >= 0) || (!inside && (double)value != -1.0))
                fail_msg("%u x %u in %u x %u, fit %d, short side %u: (%d, %d) is %g", w, h, desc->width, desc->height,
                         (int)desc->fit, desc->short_side, x, y, (double)value);
        }
    expect_axis(warp, across, w, h, false);
    expect_axis(warp, down, w, h, true);
    gpst_warp_destroy(warp);
}

static void letterbox_is_where_ultralytics_puts_it(void** state) {
    uint64_t seed = test_seed(60);
    (void)state;
    for (int i = 0; i < 3000; i++) {
        const uint32_t w = 1 + (uint32_t)(test_random(&seed) % MAX_SIDE);
        const uint32_t h = 1 + (uint32_t)(test_random(&seed) % MAX_SIDE);
        gpst_warp_desc desc = desc_of(GPST_FIT_LETTERBOX, 1 + (uint32_t)(test_random(&seed) % 64),
                                      1 + (uint32_t)(test_random(&seed) % 64));
        const double ratio = fmin((double)desc.height / h, (double)desc.width / w);
        expect_parts(&desc, w, h, letterbox_part(w, desc.width, ratio), letterbox_part(h, desc.height, ratio));
    }
}

static void cover_is_what_torchvision_cuts_out(void** state) {
    uint64_t seed = test_seed(61);
    (void)state;
    for (int i = 0; i < 3000; i++) {
        const uint32_t w = 1 + (uint32_t)(test_random(&seed) % MAX_SIDE);
        const uint32_t h = 1 + (uint32_t)(test_random(&seed) % MAX_SIDE);
        gpst_warp_desc desc = desc_of(GPST_FIT_COVER, 1 + (uint32_t)(test_random(&seed) % 64),
                                      1 + (uint32_t)(test_random(&seed) % 64));
        desc.short_side = (uint32_t)(test_random(&seed) % 80);
        const uint32_t side = desc.short_side ? desc.short_side : least_short_side(w, h, desc.width, desc.height);
        const int width = w <= h ? (int)side : cover_long(side, h, w);
        const int height = w <= h ? cover_long(side, w, h) : (int)side;
        expect_parts(&desc, w, h, cover_part(desc.width, width), cover_part(desc.height, height));
    }
}

/* ---- what ----------------------------------------------------------------------------------------------- */
/* The picture is what a warp to its own size makes of it. */
static void the_picture_is_that_of_the_plain_resize(void** state) {
    static const gpst_filter filters[] = {GPST_FILTER_NEAREST, GPST_FILTER_BILINEAR, GPST_FILTER_AREA,
                                          GPST_FILTER_BICUBIC, GPST_FILTER_BICUBIC_AREA};
    static uint8_t plain[64 * 48 * 3];
    const gpst_image source = image_of(200, 150, GPST_FORMAT_RGB);
    (void)state;
    for (int f = 0; f < 5; f++) {
        gpst_warp_desc desc = desc_of(GPST_FIT_LETTERBOX, 64, 70);
        desc.filter = filters[f], desc.format = GPST_FORMAT_BGR, desc.dtype = GPST_DTYPE_U8;
        desc.fill[0] = 1, desc.fill[1] = 2.5f, desc.fill[2] = 300;
        run_desc(&desc, &source, out_bytes, sizeof out_bytes);
        desc.fit = GPST_FIT_STRETCH, desc.height = 48;
        run_desc(&desc, &source, plain, sizeof plain);
        assert_memory_equal(out_bytes + 11 * 64 * 3, plain, sizeof plain);
        for (int i = 0; i < 64; i++) /* halves to even, cut to a byte */
            assert_true(out_bytes[3 * i] == 1 && out_bytes[3 * i + 1] == 2 && out_bytes[3 * i + 2] == 255);
        assert_memory_equal(out_bytes, out_bytes + 59 * 64 * 3, 11 * 64 * 3);
    }
}

/* fill is of 255 whatever the source is, then scale and bias; a mask that drops everything drops no bar. */
static void bars_go_the_way_of_pixels(void** state) {
    static const gpst_dtype dtypes[] = {GPST_DTYPE_U8, GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    static uint8_t nothing[100 * 10];
    (void)state;
    for (int d = 0; d < 4; d++) {
        gpst_image source = image_of(100, 10, GPST_FORMAT_GRAY);
        gpst_warp_desc desc = desc_of(GPST_FIT_LETTERBOX, 100, 20);
        source.dtype = dtypes[d];
        desc.format = GPST_FORMAT_RGB, desc.layout = GPST_LAYOUT_CHW;
        desc.has_scale = desc.scale_of_full = true;
        desc.mask = image_of(100, 10, GPST_FORMAT_GRAY), desc.mask.data = nothing;
        for (int c = 0; c < 3; c++)
            desc.fill[c] = (float)(51 * (c + 1)), desc.scale[c] = 2, desc.bias[c] = (float)c;
        run_desc(&desc, &source, out_floats, sizeof out_floats);
        for (int c = 0; c < 3; c++)
            for (int i = 0; i < 2000; i++) {
                const bool bar = i < 500 || i >= 1500;
                const double expected = bar ? 0.4 * (c + 1) + c : 0.0;
                assert_true(fabs((double)out_floats[2000 * c + i] - expected) < 1e-6);
            }
    }
}

static void query_bytes_counts_what_is_seen(void** state) {
    const gpst_image source = image_of(200, 100, GPST_FORMAT_RGB);
    gpst_warp_desc desc = desc_of(GPST_FIT_COVER, 20, 20);
    uint64_t read_bytes = 0, written_bytes = 0;
    (void)state;
    desc.filter = GPST_FILTER_AREA, desc.format = GPST_FORMAT_RGB;
    gpst_warp* const warp = make_warp(&desc);
    gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
    assert_int_equal(read_bytes, 100 * 100 * 3); /* the middle half */
    assert_int_equal(written_bytes, 20 * 20 * 3 * 4);
    gpst_warp_destroy(warp);
}

/* ---- rules ---------------------------------------------------------------------------------------------- */
static void rules_of_fits_fire(void** state) {
    const gpst_roi roi = {0, 0, 1, 1};
    gpst_warp_desc desc = desc_of((gpst_fit)3, 8, 8);
    (void)state;
    expect_rule(&desc, "fit=3: must be STRETCH, LETTERBOX or COVER");
    desc = desc_of(GPST_FIT_COVER, 8, 8);
    desc.map = GPST_MAP_ROI, desc.rois = &roi, desc.n_rois = 1;
    expect_rule(&desc, "fit=2: LETTERBOX and COVER only with map=RESIZE");
    desc = desc_of(GPST_FIT_LETTERBOX, 8, 8);
    desc.short_side = 7;
    expect_rule(&desc, "short_side=7: only with fit=COVER");
    desc = desc_of(GPST_FIT_COVER, 8, 8);
    desc.short_side = 65536;
    expect_rule(&desc, "short_side=65536: must be at most 65535");
    desc.short_side = 0, desc.fill[0] = (float)INFINITY;
    expect_rule(&desc, "fill[0]=inf: must be finite");
}

static void a_source_far_too_long_is_refused(void** state) {
    gpst_image source = image_of(65535, 1, GPST_FORMAT_GRAY), output = GPST_ZERO;
    gpst_warp_desc desc = desc_of(GPST_FIT_COVER, 16, 16);
    double x = 0, y = 0;
    (void)state;
    gpst_warp* warp = make_warp(&desc);
    run_warp(warp, &source, out_floats, sizeof out_floats); /* 1048560 pixels, 16 of them seen */
    assert_true((double)out_floats[0] == pixels[32767]);
    gpst_warp_destroy(warp);
    desc.width = 17;
    desc.height = 17;
    warp = make_warp(&desc);
    gpst_warp_query_output(warp, &output);
    output.data = out_floats;
    assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 1), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_warp_run: source.width=65535, height=1: with fit=COVER it would "
                                               "become 1114095 x 17: must be at most 1048576"));
    assert_int_equal(gpst_warp_position(warp, 0, 0, 0, 65535, 1, &x, &y), GPST_ERROR_ARGUMENT);
    gpst_warp_destroy(warp);
}

static int draw_noise(void** state) {
    uint64_t seed = test_seed(62);
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letterbox_is_where_ultralytics_puts_it),
        cmocka_unit_test(cover_is_what_torchvision_cuts_out),
        cmocka_unit_test(the_picture_is_that_of_the_plain_resize),
        cmocka_unit_test(bars_go_the_way_of_pixels),
        cmocka_unit_test(query_bytes_counts_what_is_seen),
        cmocka_unit_test(rules_of_fits_fire),
        cmocka_unit_test(a_source_far_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, draw_noise, NULL);
}
