/* tests/test_warp_cubic.c -- BICUBIC and BICUBIC_AREA against double precision, what they must keep, their rules. */
#include "test_warp.h"

#include <math.h>

#define MAX_SIDE 400
#define MAX_TAPS 1700

static uint8_t pixels[MAX_SIDE * MAX_SIDE * 3];
static uint8_t out_bytes[256 * 256 * 3];
static float out_floats[256 * 256 * 3];

static gpst_image image_of(uint32_t width, uint32_t height) {
    gpst_image image = GPST_ZERO;
    image.data = pixels, image.width = width, image.height = height, image.format = GPST_FORMAT_RGB;
    return image;
}

static gpst_warp_desc desc_of(gpst_filter filter, uint32_t width, uint32_t height, gpst_dtype dtype) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_RESIZE, desc.filter = filter;
    desc.width = width, desc.height = height, desc.format = GPST_FORMAT_RGB, desc.dtype = dtype;
    return desc;
}

/* ---- against double precision ------------------------------------------------------------------------------- */
static double cubic(double x, double a) {
    x = fabs(x);
    if (x < 1)
        return (a + 2) * x * x * x - (a + 3) * x * x + 1;
    return x < 2 ? a * (x * x * x - 5 * x * x + 8 * x - 4) : 0;
}

/* Weights of one axis, n of them, from the first on, which is returned; whole: OPENCV's of bytes. */
static int true_weights(const gpst_warp_desc* desc, double begin, double extent, int in, int out, int i,
                        double* weights, int* n) {
    const bool area = desc->filter == GPST_FILTER_BICUBIC_AREA, whole = desc->convention == GPST_CONVENTION_OPENCV;
    const double scale = extent / out, at = begin + (i + 0.5) * scale, wide = area ? fmax(scale, 1) : 1;
    const double centre = area ? fmin(fmax(at, 0), in) : at; /* our own rule for what lies outside */
    const int first = (int)ceil(centre - 2 * wide - 0.5), end = (int)floor(centre + 2 * wide - 0.5) + 1;
    double sum = 0;
    *n = end - first;
    for (int k = 0; k < *n; k++) {
        const bool inside = first + k >= 0 && first + k < in;
        weights[k] = area && !inside ? 0 : cubic((first + k + 0.5 - centre) / wide, area ? -0.5 : -0.75);
        weights[k] = whole ? nearbyint(weights[k] * 2048) / 2048 : weights[k];
        sum += weights[k];
    }
    for (int k = 0; area && k < *n; k++)
        weights[k] /= sum;
    return first;
}

static double true_sample(const double* across, int x, int n, const double* down, int y, int m, uint32_t w, uint32_t h,
                          uint32_t c) {
    double sum = 0;
    for (int b = 0; b < m; b++)
        for (int a = 0; a < n; a++) {
            const int at_x = x + a < 0 ? 0 : x + a < (int)w ? x + a : (int)w - 1;
            const int at_y = y + b < 0 ? 0 : y + b < (int)h ? y + b : (int)h - 1;
            sum += down[b] * across[a] * pixels[((uint32_t)at_y * w + (uint32_t)at_x) * 3 + c];
        }
    return sum;
}

/* How far floats are off, of 255. */
static double expect_truth(const gpst_warp_desc* desc, uint32_t w, uint32_t h, gpst_roi roi) {
    static double across[MAX_TAPS], down[MAX_TAPS];
    gpst_warp_desc as_float = *desc;
    const gpst_image source = image_of(w, h);
    double worst = 0, worst_float = 0;
    as_float.dtype = GPST_DTYPE_F32;
    run_desc(desc, &source, out_bytes, sizeof out_bytes);
    run_desc(&as_float, &source, out_floats, sizeof out_floats);
    for (uint32_t j = 0; j < desc->height; j++)
        for (uint32_t i = 0; i < desc->width; i++) {
            int n = 0, m = 0;
            const int x = true_weights(desc, (double)roi.x, (double)roi.width, (int)w, (int)desc->width, (int)i, across,
                                       &n);
            const int y = true_weights(desc, (double)roi.y, (double)roi.height, (int)h, (int)desc->height, (int)j, down,
                                       &m);
            for (uint32_t c = 0; c < 3; c++) {
                const uint32_t at = (j * desc->width + i) * 3 + c;
                const double truth = true_sample(across, x, n, down, y, m, w, h, c);
                worst = fmax(worst, fabs(out_bytes[at] - fmin(fmax(truth, 0), 255)));
                worst_float = fmax(worst_float, fabs((double)out_floats[at] - truth));
            }
        }
    assert_true(worst <= 0.501);
    return worst_float / 255;
}

static void cubics_agree_with_double(void** state) {
    static const uint32_t sizes[][4] = {{MAX_SIDE, 360, 64, 36}, {333, 251, 100, 70}, {100, 70, 200, 113},
                                        {7, 5, 3, 2},            {1, 1, 9, 5},        {MAX_SIDE, 3, 7, 2},
                                        {64, 64, 64, 64},        {99, 400, 150, 4},   {2, 3, 1, 70}};
    const gpst_roi rois[3] = {{10.5f, 20.25f, 200.75f, 150.5f}, {-3, -7.5f, 330, 190}, {100, 100, 9.5f, 4}};
    double worst = 0;
    (void)state;
    for (int choice = 0; choice < 3; choice++) {
        const gpst_filter filter = choice == 2 ? GPST_FILTER_BICUBIC_AREA : GPST_FILTER_BICUBIC;
        gpst_warp_desc desc = desc_of(filter, 1, 1, GPST_DTYPE_U8);
        desc.convention = choice == 1 ? GPST_CONVENTION_OPENCV : GPST_CONVENTION_NATIVE;
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const gpst_roi all = {0, 0, (float)sizes[s][0], (float)sizes[s][1]};
            desc.map = GPST_MAP_RESIZE, desc.n_rois = 0;
            desc.width = sizes[s][2], desc.height = sizes[s][3];
            worst = fmax(worst, expect_truth(&desc, sizes[s][0], sizes[s][1], all));
        }
        for (int r = 0; r < 3; r++) {
            desc.map = GPST_MAP_ROI, desc.rois = &rois[r], desc.n_rois = 1;
            desc.width = 31, desc.height = 17;
            worst = fmax(worst, expect_truth(&desc, 320, 180, rois[r]));
        }
    }
    printf("cubics: floats within %.2e of the range\n", worst);
    assert_true(worst <= 2e-6);
}

/* ---- what they keep ------------------------------------------------------------------------------------------- */
/* The same size copies, a flat picture stays flat, and far outside is the corner. */
static void cubics_keep_what_they_must(void** state) {
    static uint8_t flat[MAX_SIDE * 4 * 3];
    const gpst_roi outside = {5000, -70, 6, 4};
    (void)state;
    memset(flat, 77, sizeof flat);
    for (int f = (int)GPST_FILTER_BICUBIC; f <= (int)GPST_FILTER_BICUBIC_AREA; f++) {
        gpst_warp_desc desc = desc_of((gpst_filter)f, 200, 100, GPST_DTYPE_U8);
        gpst_image source = image_of(200, 100);
        run_desc(&desc, &source, out_bytes, sizeof out_bytes);
        assert_memory_equal(out_bytes, pixels, 200 * 100 * 3);
        desc = desc_of((gpst_filter)f, 6, 4, GPST_DTYPE_U8);
        desc.map = GPST_MAP_ROI, desc.rois = &outside, desc.n_rois = 1;
        run_desc(&desc, &source, out_bytes, sizeof out_bytes);
        for (int i = 0; f == (int)GPST_FILTER_BICUBIC && i < 6 * 4 * 3; i++)
            assert_int_equal(out_bytes[i], pixels[199 * 3 + i % 3]);
        source = image_of(MAX_SIDE, 4), source.data = flat;
        for (uint32_t width = 1; width < 60; width += 7) {
            desc = desc_of((gpst_filter)f, width, 3, GPST_DTYPE_U8);
            run_desc(&desc, &source, out_bytes, sizeof out_bytes);
            for (uint32_t i = 0; i < width * 3 * 3; i++)
                assert_int_equal(out_bytes[i], 77);
        }
    }
}

/* Beside an edge from 0 to 255: floats beyond both, bytes cut. */
static void bytes_are_cut_where_floats_ring(void** state) {
    static uint8_t edge[16];
    gpst_image source = GPST_ZERO;
    gpst_warp_desc desc = desc_of(GPST_FILTER_BICUBIC, 64, 1, GPST_DTYPE_F32);
    float least = 0, most = 0;
    (void)state;
    memset(edge + 8, 255, 8);
    source.data = edge, source.width = 16, source.height = 1, source.format = GPST_FORMAT_GRAY;
    desc.format = GPST_FORMAT_GRAY;
    run_desc(&desc, &source, out_floats, sizeof out_floats);
    for (int i = 0; i < 64; i++) {
        least = out_floats[i] < least ? out_floats[i] : least;
        most = out_floats[i] > most ? out_floats[i] : most;
    }
    assert_true(least < -10 && most > 265);
    desc.dtype = GPST_DTYPE_U8;
    run_desc(&desc, &source, out_bytes, sizeof out_bytes);
    for (int i = 0; i < 64; i++)
        assert_true(fabs(out_bytes[i] - fmin(fmax((double)out_floats[i], 0), 255)) <= 0.5);
}

static void query_bytes_counts_four_taps(void** state) {
    const gpst_warp_desc desc = desc_of(GPST_FILTER_BICUBIC, 8, 50, GPST_DTYPE_U8);
    const gpst_image source = image_of(200, 100);
    uint64_t read_bytes = 0, written_bytes = 0;
    (void)state;
    gpst_warp* const warp = make_warp(&desc);
    gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
    assert_int_equal(read_bytes, 32 * 100 * 3);
    gpst_warp_destroy(warp);
}

/* ---- rules ------------------------------------------------------------------------------------------------------ */
static void rules_of_cubics_fire(void** state) {
    const gpst_roi roi = {0, 0, 1, 1};
    const gpst_affine affine = {{1, 0, 0, 0, 1, 0}};
    gpst_warp_desc desc = desc_of(GPST_FILTER_BICUBIC, 8, 8, GPST_DTYPE_U8);
    (void)state;
    desc.map = GPST_MAP_AFFINE, desc.affines = &affine, desc.n_affines = 1;
    expect_rule(&desc, "filter=BICUBIC: only with map=RESIZE and ROI");
    desc = desc_of(GPST_FILTER_BICUBIC_AREA, 8, 8, GPST_DTYPE_U8);
    desc.convention = GPST_CONVENTION_OPENCV;
    expect_rule(&desc, "filter=BICUBIC_AREA: not with convention=OPENCV, which has none");
    desc = desc_of(GPST_FILTER_BICUBIC, 8, 8, GPST_DTYPE_U8);
    desc.map = GPST_MAP_ROI, desc.rois = &roi, desc.n_rois = 1, desc.border = GPST_BORDER_ZERO;
    expect_rule(&desc, "border=ZERO: not with map=ROI and filter=BICUBIC, whose edges repeat");
    desc = desc_of((gpst_filter)6, 8, 8, GPST_DTYPE_U8);
    expect_rule(&desc, "filter=6: must be one of gpst_filter");
}

static int draw_noise(void** state) {
    uint64_t seed = test_seed(63);
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cubics_agree_with_double),
        cmocka_unit_test(cubics_keep_what_they_must),
        cmocka_unit_test(bytes_are_cut_where_floats_ring),
        cmocka_unit_test(query_bytes_counts_four_taps),
        cmocka_unit_test(rules_of_cubics_fire),
    };
    return cmocka_run_group_tests(tests, draw_noise, NULL);
}
