/* tests/test_warp_footprint.c -- the filter AREA of the maps that do not go by axes: its samples against double
   precision (libm's), what it makes of patterns finer than the output, seams of tables. */
#include "test_warp.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/warp/warp_footprint_internal.h"
#endif

#include <math.h>

#define W 330
#define H 165
#define OUT_W 48
#define OUT_H 31

static const double pi = 3.14159265358979323846;

static uint8_t pixels[W * H];
static uint8_t out_bytes[OUT_W * OUT_H];
static float out_floats[2][OUT_W * OUT_H];
static float table[OUT_H][OUT_W][2];
static gpst_affine one_affine;
static gpst_view one_view;

static gpst_image source_image(void) {
    gpst_image image = GPST_ZERO;
    image.data = pixels, image.width = W, image.height = H, image.format = GPST_FORMAT_GRAY;
    return image;
}

static gpst_warp_desc desc_of(gpst_map map) {
    gpst_warp_desc desc = GPST_ZERO;
    const gpst_affine affine = {{4.3, -1.4, 61.3, 0.9, 3.2, 7.7}};
    one_affine = affine;
    memset(&one_view, 0, sizeof one_view);
    one_view.yaw = 171.3, one_view.pitch = -61.7, one_view.roll = 20.1;
    one_view.hfov = map == GPST_MAP_EQUIRECT ? 75 : 0;
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++) {
            table[y][x][0] = (float)(-2.5 + 0.07 * x * x + 2.2 * y);
            table[y][x][1] = (float)(150 - 4.6 * y + 0.4 * x);
        }
    desc.map = map, desc.filter = GPST_FILTER_AREA;
    desc.width = OUT_W, desc.height = OUT_H, desc.format = GPST_FORMAT_GRAY, desc.dtype = GPST_DTYPE_F32;
    if (map == GPST_MAP_AFFINE)
        desc.affines = &one_affine, desc.n_affines = 1;
    else if (map == GPST_MAP_TABLE)
        desc.table = &table[0][0][0];
    else
        desc.views = &one_view, desc.n_views = 1;
    return desc;
}

static void run_on_noise(const gpst_warp_desc* desc, void* data, size_t bytes) {
    const gpst_image source = source_image();
    run_desc(desc, &source, data, bytes);
}

static int draw_noise(void** state) {
    uint64_t seed = test_seed(60);
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    return 0;
}

/* ---- the oracle: the formulas of the manual at any point of the output ------------------------------------- */
static double true_tap(int64_t x, int64_t y, bool sphere) {
    if (!sphere)
        return x < 0 || x >= W || y < 0 || y >= H ? 0 : pixels[y * W + x];
    if (y < 0 || y >= H) {
        y = y < 0 ? -1 - y : 2 * H - 1 - y;
        x += W / 2;
    }
    return pixels[y * W + ((x % W) + W) % W];
}

static double true_sample(double x, double y, bool sphere) {
    const double x0 = floor(x), y0 = floor(y), fx = x - x0, fy = y - y0;
    const int64_t ix = (int64_t)x0, iy = (int64_t)y0;
    return (true_tap(ix, iy, sphere) * (1 - fx) + true_tap(ix + 1, iy, sphere) * fx) * (1 - fy) +
           (true_tap(ix, iy + 1, sphere) * (1 - fx) + true_tap(ix + 1, iy + 1, sphere) * fx) * fy;
}

/* Roll first, then pitch, then yaw. */
static void true_turn(const double ray[3], double* x, double* y) {
    const double yaw = one_view.yaw * pi / 180, pitch = one_view.pitch * pi / 180, roll = one_view.roll * pi / 180;
    const double x1 = ray[0] * cos(roll) - ray[1] * sin(roll), y1 = ray[0] * sin(roll) + ray[1] * cos(roll);
    const double y2 = y1 * cos(pitch) - ray[2] * sin(pitch), z2 = y1 * sin(pitch) + ray[2] * cos(pitch);
    const double x3 = x1 * cos(yaw) + z2 * sin(yaw), z3 = z2 * cos(yaw) - x1 * sin(yaw);
    *x = (atan2(x3, z3) / (2 * pi) + 0.5) * W - 0.5;
    *y = (atan2(y2, hypot(x3, z3)) / pi + 0.5) * H - 0.5;
}

/* Where the point (i, j) of the output looks, pixels having their centres at halves; ROTATE: on the plane that touches
   the output's sphere at the centre of its pixel. */
static void true_position(gpst_map map, double i, double j, double* x, double* y) {
    const double* m = one_affine.m;
    if (map == GPST_MAP_AFFINE) {
        *x = m[0] * i + m[1] * j + m[2] - 0.5, *y = m[3] * i + m[4] * j + m[5] - 0.5;
    } else if (map == GPST_MAP_EQUIRECT) {
        const double tan_x = tan(one_view.hfov * pi / 360), tan_y = tan_x * OUT_H / OUT_W;
        const double ray[3] = {tan_x * (2 * i / OUT_W - 1), tan_y * (2 * j / OUT_H - 1), 1};
        true_turn(ray, x, y);
    } else {
        const double a = pi * (2 * (floor(i) + 0.5) / OUT_W - 1), b = pi / 2 * (2 * (floor(j) + 0.5) / OUT_H - 1);
        const double da = 2 * pi / OUT_W * (i - floor(i) - 0.5), db = pi / OUT_H * (j - floor(j) - 0.5);
        const double ring = cos(b) - db * sin(b);
        const double ray[3] = {ring * (sin(a) + da * cos(a)), sin(b) + db * cos(b), ring * (cos(a) - da * sin(a))};
        true_turn(ray, x, y);
    }
}

/* The mean of across x down samples of every output pixel, against out_floats[0]; the worst, in LSB. */
static double compare(gpst_map map, int across, int down) {
    const bool sphere = map != GPST_MAP_AFFINE;
    double worst = 0;
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++) {
            double sum = 0, u = 0, v = 0;
            for (int j = 0; j < down; j++)
                for (int i = 0; i < across; i++) {
                    true_position(map, x + (i + 0.5) / across, y + (j + 0.5) / down, &u, &v);
                    sum += true_sample(u, v, sphere);
                }
            worst = fmax(worst, fabs((double)out_floats[0][y * OUT_W + x] - sum / (across * down)));
        }
    return worst;
}

/* As many samples as the manual says: 330 pixels around, 48 of the output. */
static void samples_agree_with_double(void** state) {
    gpst_warp_desc desc = desc_of(GPST_MAP_EQUIRECT);
    (void)state;
    const double tan_x = tan(75 * pi / 360);
    const int n_view = (int)ceil(2 * tan_x / OUT_W * W / (2 * pi));
    run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
    const double of_view = compare(GPST_MAP_EQUIRECT, n_view, n_view);
    desc = desc_of(GPST_MAP_ROTATE);
    run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
    const double of_turn = compare(GPST_MAP_ROTATE, 7, 6); /* 330 / 48, 165 / 31 */
    desc = desc_of(GPST_MAP_AFFINE);
    run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
    const double of_affine = compare(GPST_MAP_AFFINE, 5, 4); /* hypot(4.3, 0.9), hypot(1.4, 3.2) */
    printf("within %.4f (views), %.4f (rotation), %.4f (matrices) of 255\n", of_view, of_turn, of_affine);
    assert_true(n_view == 2);
    assert_true(of_view <= 0.05 && of_affine <= 0.05 && of_turn <= 0.05);
}

/* A table of a matrix' positions is that matrix, but for the border, where it has one neighbour only. */
static void tables_agree_with_matrices(void** state) {
    gpst_warp_desc desc = desc_of(GPST_MAP_TABLE);
    double worst = 0;
    (void)state;
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++) {
            double u = 0, v = 0;
            true_position(GPST_MAP_AFFINE, x + 0.5, y + 0.5, &u, &v);
            table[y][x][0] = (float)u, table[y][x][1] = (float)v;
        }
    run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
    desc = desc_of(GPST_MAP_AFFINE);
    run_on_noise(&desc, out_floats[1], sizeof out_floats[1]);
    for (int i = 0; i < OUT_W * OUT_H; i++)
        worst = fmax(worst, fabs((double)out_floats[0][i] - (double)out_floats[1][i]));
    printf("within %.4f of 255\n", worst);
    assert_true(worst <= 0.05);
}

/* ---- quality ------------------------------------------------------------------------------------------------ */
/* How far apart the least and the largest output are in the middle, where views minify most, and away from the
   outside. */
static double spread(const float* values, const gpst_warp_desc* desc) {
    const gpst_image source = source_image();
    double least = 1e9, most = -1e9;
    gpst_warp* warp = NULL;
    assert_int_equal(gpst_warp_create(desc, &warp), GPST_OK);
    for (uint32_t y = 9; y < OUT_H - 9; y++)
        for (uint32_t x = 18; x < OUT_W - 18; x++) {
            double u = 0, v = 0;
            assert_int_equal(gpst_warp_position(warp, 0, x, y, source.width, source.height, &u, &v), GPST_OK);
            if (u < 8 || v < 8 || u > W - 9 || v > H - 9)
                continue;
            least = fmin(least, (double)values[y * OUT_W + x]), most = fmax(most, (double)values[y * OUT_W + x]);
        }
    gpst_warp_destroy(warp);
    assert_true(least <= most);
    return most - least;
}

/* Lines of one pixel, black and white, that an output of a fourth the size cannot show. */
static void what_is_finer_than_the_output_comes_out_flat(void** state) {
    static const gpst_map maps[4] = {GPST_MAP_EQUIRECT, GPST_MAP_ROTATE, GPST_MAP_AFFINE, GPST_MAP_TABLE};
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int down = 0; down < 2; down++) {
            gpst_warp_desc desc = desc_of(maps[m]);
            for (int i = 0; i < W * H; i++)
                pixels[i] = (down ? i / W : i % W) & 1 ? 255 : 0;
            one_view.pitch = 0, one_view.roll = 0;
            if (maps[m] == GPST_MAP_EQUIRECT)
                one_view.hfov = 140;
            for (int i = 0; i < OUT_W * OUT_H; i++)
                table[i / OUT_W][i % OUT_W][0] = (float)(6.03 * (i % OUT_W)),
                table[i / OUT_W][i % OUT_W][1] = (float)(5.02 * (i / OUT_W));
            run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
            desc.filter = GPST_FILTER_BILINEAR;
            run_on_noise(&desc, out_floats[1], sizeof out_floats[1]);
            const double area = spread(out_floats[0], &desc), bilinear = spread(out_floats[1], &desc);
            printf("map %d, lines %s: %.1f of 255 (bilinear %.1f)\n", (int)maps[m], down ? "across" : "down", area,
                   bilinear);
            assert_true(bilinear > 80 && area < 50 && area < bilinear / 2.5);
        }
    draw_noise(NULL);
}

/* A flat picture stays as it is to the last bit, whatever the number of samples. */
static void flat_pictures_stay_flat(void** state) {
    (void)state;
    memset(pixels, 77, sizeof pixels);
    for (int n = 1; n < 70; n += 4) {
        gpst_warp_desc desc = desc_of(GPST_MAP_AFFINE);
        const gpst_affine affine = {{n, 0, 0.3, 0, 0.9 * n, -0.2}};
        desc.border = GPST_BORDER_EDGE;
        one_affine = affine;
        run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
        for (int i = 0; i < OUT_W * OUT_H; i++)
            assert_true(out_floats[0][i] >= 77 && out_floats[0][i] <= 77);
    }
    draw_noise(NULL);
}

/* Where nothing is minified there is one sample: BILINEAR into floats, bit for bit; bytes are those rounded. */
static void one_sample_is_bilinear(void** state) {
    static const gpst_map maps[3] = {GPST_MAP_EQUIRECT, GPST_MAP_AFFINE, GPST_MAP_TABLE};
    (void)state;
    for (int m = 0; m < 3; m++) {
        gpst_warp_desc desc = desc_of(maps[m]);
        const double turn = 0.7; /* a rotation keeps its size but for rounding */
        const gpst_affine affine = {{cos(turn), -sin(turn), 60, sin(turn), cos(turn), 40}};
        one_affine = affine;
        one_view.hfov = maps[m] == GPST_MAP_EQUIRECT ? 40 : 0;
        for (int i = 0; i < OUT_W * OUT_H; i++)
            table[i / OUT_W][i % OUT_W][0] = 0.7f * (float)(i % OUT_W), table[i / OUT_W][i % OUT_W][1] = 3.3f;
        run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
        desc.filter = GPST_FILTER_BILINEAR;
        run_on_noise(&desc, out_floats[1], sizeof out_floats[1]);
        assert_memory_equal(out_floats[0], out_floats[1], sizeof out_floats[0]);
        desc.filter = GPST_FILTER_AREA, desc.dtype = GPST_DTYPE_U8;
        run_on_noise(&desc, out_bytes, sizeof out_bytes);
        for (int i = 0; i < OUT_W * OUT_H; i++)
            assert_true(fabs(out_bytes[i] - (double)out_floats[0][i]) <= 0.5);
    }
}

/* Left of column 20 a table shows the source's black left part, right of it its white one: nothing in between. */
static void seams_of_tables_stay_sharp(void** state) {
    gpst_warp_desc desc = desc_of(GPST_MAP_TABLE);
    (void)state;
    for (int i = 0; i < W * H; i++)
        pixels[i] = i % W < W / 2 ? 0 : 255;
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++)
            table[y][x][0] = (float)(x < 20 ? 40 + 4 * x : 180 + 3 * x), table[y][x][1] = (float)(5 + 4 * y);
    run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
    for (int i = 0; i < OUT_W * OUT_H; i++)
        assert_true(fabs((double)out_floats[0][i] - (i % OUT_W < 20 ? 0 : 255)) < 1e-3);
    for (int y = 0; y < OUT_H; y++) /* and entries that are no number are outside, alone */
        table[y][7][0] = NAN, table[y][9][1] = INFINITY;
    memset(pixels, 200, sizeof pixels);
    run_on_noise(&desc, out_floats[0], sizeof out_floats[0]);
    for (int i = 0; i < OUT_W * OUT_H; i++)
        assert_true(fabs((double)out_floats[0][i] - (i % OUT_W == 7 || i % OUT_W == 9 ? 0 : 200)) < 1e-3);
    draw_noise(NULL);
}

/* Every number of samples, from the step: at most one pixel apart, and 64. */
static void samples_are_at_most_a_pixel_apart(void** state) {
    (void)state;
    for (int n = 1; n <= 64; n++) {
        assert_int_equal(gpsti_warp_n_samples((float)n), n);
        assert_int_equal(gpsti_warp_n_samples((float)n + 0.01f), n < 64 ? n + 1 : 64);
    }
    assert_int_equal(gpsti_warp_n_samples(0), 1);
    assert_int_equal(gpsti_warp_n_samples(1e30f), 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(samples_agree_with_double),
        cmocka_unit_test(tables_agree_with_matrices),
        cmocka_unit_test(what_is_finer_than_the_output_comes_out_flat),
        cmocka_unit_test(flat_pictures_stay_flat),
        cmocka_unit_test(one_sample_is_bilinear),
        cmocka_unit_test(seams_of_tables_stay_sharp),
        cmocka_unit_test(samples_are_at_most_a_pixel_apart),
    };
    return cmocka_run_group_tests(tests, draw_noise, NULL);
}
