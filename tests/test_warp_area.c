/* tests/test_warp_area.c -- the filter AREA of RESIZE and ROI against double precision, its limits and its rules. */
#include "test_warp.h"

#include <math.h>

#define MAX_SIDE 700

static uint8_t pixels[MAX_SIDE * MAX_SIDE * 3];
static uint8_t out_bytes[256 * 256 * 3];
static float out_floats[256 * 256 * 3];

static gpst_image image_of(uint32_t width, uint32_t height) {
    gpst_image image = GPST_ZERO;
    image.data = pixels, image.width = width, image.height = height, image.format = GPST_FORMAT_RGB;
    return image;
}

static gpst_warp_desc desc_of(uint32_t width, uint32_t height, gpst_dtype dtype) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_RESIZE, desc.filter = GPST_FILTER_AREA;
    desc.width = width, desc.height = height, desc.format = GPST_FORMAT_RGB, desc.dtype = dtype;
    return desc;
}

/* Weights of one axis as PyTorch's antialias=True and Pillow define them: n of them; returns the first. */
static int true_weights(double begin, double extent, int in, int out, int i, double* weights, int* n) {
    const double scale = extent / out, support = fmax(scale, 1.0);
    const double centre =
        fmin(fmax(begin + (i + 0.5) * scale, 0), in); /* our own rule for what lies outside */
    const int first = (int)fmax(trunc(centre - support + 0.5), 0),
              end = (int)fmin(trunc(centre + support + 0.5), in);
    double sum = 0;
    *n = end - first;
    for (int k = 0; k < *n; k++)
        sum += weights[k] = fmax(0, 1 - fabs((first + k - centre + 0.5) / support));
    for (int k = 0; k < *n; k++)
        weights[k] /= sum;
    return first;
}

static double expect_truth(const gpst_warp_desc* desc, uint32_t w, uint32_t h, gpst_roi roi) {
    static double across[MAX_SIDE], down[MAX_SIDE];
    gpst_warp_desc as_float = *desc;
    const gpst_image source = image_of(w, h);
    double worst = 0, worst_float = 0;
    as_float.dtype = GPST_DTYPE_F32;
    run_desc(desc, &source, out_bytes, sizeof out_bytes);
    run_desc(&as_float, &source, out_floats, sizeof out_floats);
    for (uint32_t j = 0; j < desc->height; j++)
        for (uint32_t i = 0; i < desc->width; i++) {
            int n = 0, m = 0;
            const int x =
                true_weights((double)roi.x, (double)roi.width, (int)w, (int)desc->width, (int)i, across, &n);
            const int y =
                true_weights((double)roi.y, (double)roi.height, (int)h, (int)desc->height, (int)j, down, &m);
            for (uint32_t c = 0; c < 3; c++) {
                const uint32_t at = (j * desc->width + i) * 3 + c;
                double truth = 0;
                for (int b = 0; b < m; b++)
                    for (int a = 0; a < n; a++)
                        truth +=
                            down[b] * across[a] * pixels[((uint32_t)(y + b) * w + (uint32_t)(x + a)) * 3 + c];
                worst = fmax(worst, fabs(out_bytes[at] - truth));
                worst_float = fmax(worst_float, fabs((double)out_floats[at] - truth));
            }
        }
    assert_true(worst <= 0.501);
    return worst_float / 255;
}

static void area_agrees_with_double(void** state) {
    static const uint32_t sizes[][4] = {{640, 360, 64, 36}, {333, 251, 100, 70}, {100, 70, 200, 113},
                                        {7, 5, 3, 2},       {1, 1, 9, 5},        {MAX_SIDE, 3, 7, 2},
                                        {64, 64, 64, 64},   {99, 400, 150, 4}};
    double worst = 0;
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        const gpst_roi whole = {0, 0, (float)sizes[s][0], (float)sizes[s][1]};
        const gpst_warp_desc desc = desc_of(sizes[s][2], sizes[s][3], GPST_DTYPE_U8);
        worst = fmax(worst, expect_truth(&desc, sizes[s][0], sizes[s][1], whole));
    }
    const gpst_roi rois[3] = {{10.5f, 20.25f, 200.75f, 150.5f}, {-3, -7.5f, 330, 190}, {100, 100, 9.5f, 4}};
    for (int r = 0; r < 3; r++) {
        gpst_warp_desc desc = desc_of(31, 17, GPST_DTYPE_U8);
        desc.map = GPST_MAP_ROI, desc.rois = &rois[r], desc.n_rois = 1;
        worst = fmax(worst, expect_truth(&desc, 320, 180, rois[r]));
    }
    printf("area: floats within %.2e of the range\n", worst);
    assert_true(worst <= 2e-6);
}

/* The same size copies, a flat picture stays flat, and far outside is the corner. */
static void area_keeps_what_it_must(void** state) {
    static uint8_t copy[MAX_SIDE * 4 * 3];
    gpst_warp_desc desc = desc_of(200, 100, GPST_DTYPE_U8);
    gpst_image source = image_of(200, 100);
    const gpst_roi outside = {5000, -70, 6, 4};
    (void)state;
    run_desc(&desc, &source, out_bytes, sizeof out_bytes);
    assert_memory_equal(out_bytes, pixels, 200 * 100 * 3);
    desc = desc_of(6, 4, GPST_DTYPE_U8);
    desc.map = GPST_MAP_ROI, desc.rois = &outside, desc.n_rois = 1;
    run_desc(&desc, &source, out_bytes, sizeof out_bytes);
    for (int i = 0; i < 6 * 4 * 3; i++)
        assert_int_equal(out_bytes[i], pixels[199 * 3 + i % 3]);
    memset(copy, 77, sizeof copy);
    source = image_of(MAX_SIDE, 4), source.data = copy;
    for (uint32_t width = 1; width < 60; width += 7) {
        desc = desc_of(width, 3, GPST_DTYPE_U8);
        run_desc(&desc, &source, out_bytes, sizeof out_bytes);
        for (uint32_t i = 0; i < width * 3 * 3; i++)
            assert_int_equal(out_bytes[i], 77);
    }
}

static void the_largest_source_becomes_one_pixel(void** state) {
    const uint32_t side = 65535;
    uint8_t* wide = (uint8_t*)malloc((size_t)side * 3);
    gpst_warp_desc desc = desc_of(1, 1, GPST_DTYPE_F32);
    gpst_image source = image_of(side, 1);
    float value[3];
    (void)state;
    assert_non_null(wide);
    for (uint32_t x = 0; x < side; x++)
        wide[3 * x] = 200, wide[3 * x + 1] = (uint8_t)(x & 1 ? 255 : 0), wide[3 * x + 2] = (uint8_t)(x >> 8);
    source.data = wide;
    run_desc(&desc, &source, value, sizeof value);
    assert_true(fabs((double)value[0] - 200) < 0.5);
    assert_true(fabs((double)value[1] - 127.5) < 0.5);
    assert_true(fabs((double)value[2] - 127.5) < 0.5);
    free(wide);
}

/* OPENCV's boxes narrower than any float could tell, between two pixels and far outside. */
static void boxes_are_never_empty(void** state) {
    const gpst_roi rois[3] = {{10, 5, 0.00001f, 0.00001f}, {9.5f, 4.5f, 0.00001f, 1}, {-900, 5, 0.00001f, 0.00001f}};
    const gpst_image source = image_of(20, 10);
    (void)state;
    memset(pixels, 77, 20 * 10 * 3);
    for (int r = 0; r < 3; r++) {
        gpst_warp_desc desc = desc_of(65535, 1, GPST_DTYPE_U8);
        desc.map = GPST_MAP_ROI, desc.rois = &rois[r], desc.n_rois = 1, desc.convention = GPST_CONVENTION_OPENCV;
        run_desc(&desc, &source, out_bytes, sizeof out_bytes);
        for (int i = 0; i < 65535 * 3; i++)
            assert_int_equal(out_bytes[i], 77);
    }
}

static void rules_of_area_fire(void** state) {
    const gpst_roi roi = {0, 0, 1, 1};
    gpst_warp_desc desc = desc_of(8, 8, GPST_DTYPE_U8);
    gpst_warp* warp = NULL;
    (void)state;
    desc.map = GPST_MAP_ROI, desc.rois = &roi, desc.n_rois = 1, desc.border = GPST_BORDER_ZERO;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "border=ZERO: not with map=ROI and filter=AREA"));
}

static void query_bytes_counts_the_whole_source(void** state) {
    const gpst_warp_desc desc = desc_of(8, 8, GPST_DTYPE_U8);
    const gpst_image source = image_of(200, 100);
    gpst_warp* warp = NULL;
    uint64_t read_bytes = 0, written_bytes = 0;
    (void)state;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
    assert_int_equal(read_bytes, 200 * 100 * 3);
    gpst_warp_destroy(warp);
}

static int draw_noise(void** state) {
    uint64_t seed = test_seed(50);
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(area_agrees_with_double),
        cmocka_unit_test(area_keeps_what_it_must),
        cmocka_unit_test(the_largest_source_becomes_one_pixel),
        cmocka_unit_test(boxes_are_never_empty),
        cmocka_unit_test(rules_of_area_fire),
        cmocka_unit_test(query_bytes_counts_the_whole_source),
    };
    return cmocka_run_group_tests(tests, draw_noise, NULL);
}
