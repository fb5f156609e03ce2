/* tests/test_warp_maps.c -- what ROI, AFFINE, ROTATE and TABLE promise: where they look, against double
   precision (libm's), their borders and their rules. */
#include "test_warp.h"

#include <math.h>

#define W 97
#define H 61
#define OUT_W 70
#define OUT_H 45

static uint8_t pixels[W * H * 3];
static uint8_t mask_pixels[W * H];
static uint8_t out_bytes[2][OUT_W * OUT_H * 3];
static float out_floats[OUT_W * OUT_H * 3];
static float table[OUT_H][OUT_W][2];

static int draw_noise(void** state) {
    uint64_t seed = test_seed(40);
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    memset(mask_pixels, 1, sizeof mask_pixels);
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++) {
            table[y][x][0] = (float)((double)(test_random(&seed) % 20000) / 200.0 - 2.0);
            table[y][x][1] = (float)((double)(test_random(&seed) % 20000) / 300.0 - 2.0);
        }
    return 0;
}

static gpst_image source_image(void) {
    gpst_image image = GPST_ZERO;
    image.data = pixels, image.width = W, image.height = H, image.format = GPST_FORMAT_RGB;
    return image;
}

static gpst_roi one_roi;
static gpst_affine one_affine;
static gpst_view one_view;

/* A desc that breaks no rule. */
static gpst_warp_desc desc_of(gpst_map map) {
    gpst_warp_desc desc = GPST_ZERO;
    const gpst_roi roi = {3.25f, 5.5f, 60.125f, 41.75f};
    const gpst_affine affine = {{0.9, -0.4, 21.3, 0.35, 0.8, -3.7}};
    one_roi = roi, one_affine = affine;
    memset(&one_view, 0, sizeof one_view);
    one_view.yaw = 33.3, one_view.pitch = -21.7, one_view.roll = 60.1;
    desc.map = map;
    desc.width = OUT_W, desc.height = OUT_H, desc.format = GPST_FORMAT_RGB;
    if (map == GPST_MAP_ROI)
        desc.rois = &one_roi, desc.n_rois = 1;
    else if (map == GPST_MAP_AFFINE)
        desc.affines = &one_affine, desc.n_affines = 1;
    else if (map == GPST_MAP_ROTATE)
        desc.views = &one_view, desc.n_views = 1;
    else if (map == GPST_MAP_TABLE)
        desc.table = &table[0][0][0];
    return desc;
}

/* ---- positions and samples against double precision ------------------------------------------ */
typedef enum edges { EDGES_REPEAT, EDGES_ZERO, EDGES_SPHERE } edges;

static double true_tap(int64_t x, int64_t y, int c, edges rule) {
    if (rule == EDGES_SPHERE) {
        if (y < 0 || y >= H) {
            y = y < 0 ? -1 - y : 2 * H - 1 - y;
            x += W / 2;
        }
        x = ((x % W) + W) % W;
    } else if (rule == EDGES_ZERO && (x < 0 || x >= W || y < 0 || y >= H)) {
        return 0;
    }
    x = x < 0 ? 0 : x >= W ? W - 1 : x;
    y = y < 0 ? 0 : y >= H ? H - 1 : y;
    return pixels[(y * W + x) * 3 + c];
}

static double true_sample(double x, double y, int c, edges rule) {
    const double x0 = floor(x), y0 = floor(y), fx = x - x0, fy = y - y0;
    const int64_t ix = (int64_t)x0, iy = (int64_t)y0;
    return (true_tap(ix, iy, c, rule) * (1 - fx) + true_tap(ix + 1, iy, c, rule) * fx) * (1 - fy) +
           (true_tap(ix, iy + 1, c, rule) * (1 - fx) + true_tap(ix + 1, iy + 1, c, rule) * fx) * fy;
}

typedef void (*true_map)(int i, int j, double* x, double* y);

static void true_roi(int i, int j, double* x, double* y) {
    *x = (double)one_roi.x + (i + 0.5) * (double)one_roi.width / OUT_W - 0.5;
    *y = (double)one_roi.y + (j + 0.5) * (double)one_roi.height / OUT_H - 0.5;
}

static void true_affine(int i, int j, double* x, double* y) {
    const double* m = one_affine.m;
    *x = m[0] * (i + 0.5) + m[1] * (j + 0.5) + m[2] - 0.5;
    *y = m[3] * (i + 0.5) + m[4] * (j + 0.5) + m[5] - 0.5;
}

static void true_table(int i, int j, double* x, double* y) {
    *x = (double)table[j][i][0];
    *y = (double)table[j][i][1];
}

/* Roll first, then pitch, then yaw, as the manual says. */
static void true_rotate(int i, int j, double* x, double* y) {
    const double pi = 3.14159265358979323846;
    const double a = pi * ((2.0 * i + 1) / OUT_W - 1), b = pi / 2 * ((2.0 * j + 1) / OUT_H - 1);
    const double yaw = one_view.yaw * pi / 180, pitch = one_view.pitch * pi / 180,
                 roll = one_view.roll * pi / 180;
    const double x0 = cos(b) * sin(a), y0 = sin(b), z0 = cos(b) * cos(a);
    const double x1 = x0 * cos(roll) - y0 * sin(roll), y1 = x0 * sin(roll) + y0 * cos(roll);
    const double y2 = y1 * cos(pitch) - z0 * sin(pitch), z2 = y1 * sin(pitch) + z0 * cos(pitch);
    const double x3 = x1 * cos(yaw) + z2 * sin(yaw), z3 = z2 * cos(yaw) - x1 * sin(yaw);
    *x = (atan2(x3, z3) / (2 * pi) + 0.5) * W - 0.5;
    *y = (atan2(y2, hypot(x3, z3)) / pi + 0.5) * H - 0.5;
}

static void expect_truth(const gpst_warp_desc* desc, true_map map, edges rule) {
    gpst_warp_desc as_float = *desc;
    const gpst_image source = source_image();
    gpst_warp* warp = make_warp(desc);
    double worst = 0, worst_float = 0;
    as_float.dtype = GPST_DTYPE_F32;
    run_warp(warp, &source, out_bytes[0], sizeof out_bytes[0]);
    run_desc(&as_float, &source, out_floats, sizeof out_floats);
    for (int j = 0; j < OUT_H; j++)
        for (int i = 0; i < OUT_W; i++) {
            double x = 0, y = 0, said_x = 0, said_y = 0;
            map(i, j, &x, &y);
            assert_int_equal(gpst_warp_position(warp, 0, (uint32_t)i, (uint32_t)j, W, H, &said_x, &said_y),
                             GPST_OK);
            const double across = fabs(said_x - x);
            assert_true(fmin(across, fabs(across - W)) < 1e-5 && fabs(said_y - y) < 1e-5);
            for (int c = 0; c < 3; c++) {
                const double truth = true_sample(x, y, c, rule);
                const int at = (j * OUT_W + i) * 3 + c;
                worst = fmax(worst, fabs(out_bytes[0][at] - truth));
                worst_float = fmax(worst_float, fabs((double)out_floats[at] - truth));
            }
        }
    gpst_warp_destroy(warp);
    printf("map %d: bytes within %.3f, floats within %.4f of 255\n", (int)desc->map, worst, worst_float);
    assert_true(worst <= 1.0);
    assert_true(worst_float <= 0.05); /* positions to 1/32768 pixel */
}

static void maps_agree_with_double(void** state) {
    (void)state;
    gpst_warp_desc desc = desc_of(GPST_MAP_ROI);
    expect_truth(&desc, true_roi, EDGES_REPEAT);
    one_roi.x = -20, one_roi.y = 30, desc.border = GPST_BORDER_ZERO;
    expect_truth(&desc, true_roi, EDGES_ZERO);
    desc = desc_of(GPST_MAP_AFFINE);
    expect_truth(&desc, true_affine, EDGES_ZERO);
    desc.border = GPST_BORDER_EDGE;
    expect_truth(&desc, true_affine, EDGES_REPEAT);
    desc = desc_of(GPST_MAP_TABLE);
    expect_truth(&desc, true_table, EDGES_ZERO);
    desc.border = GPST_BORDER_EDGE;
    expect_truth(&desc, true_table, EDGES_REPEAT);
    desc = desc_of(GPST_MAP_ROTATE);
    expect_truth(&desc, true_rotate, EDGES_SPHERE);
    one_view.yaw = 0, one_view.pitch = 90, one_view.roll = 0;
    expect_truth(&desc, true_rotate, EDGES_SPHERE);
}

/* ---- one map in the words of another ----------------------------------------------------------- */
static void expect_same(const gpst_warp_desc* a, const gpst_warp_desc* b) {
    const gpst_image source = source_image();
    run_desc(a, &source, out_bytes[0], sizeof out_bytes[0]);
    run_desc(b, &source, out_bytes[1], sizeof out_bytes[1]);
    assert_memory_equal(out_bytes[0], out_bytes[1], sizeof out_bytes[0]);
}

static void the_whole_source_as_a_roi_is_a_resize(void** state) {
    (void)state;
    for (int filter = GPST_FILTER_NEAREST; filter <= (int)GPST_FILTER_BILINEAR; filter++) {
        gpst_warp_desc roi = desc_of(GPST_MAP_ROI), resize = desc_of(GPST_MAP_RESIZE);
        one_roi.x = 0, one_roi.y = 0, one_roi.width = W, one_roi.height = H;
        roi.filter = resize.filter = (gpst_filter)filter;
        expect_same(&roi, &resize);
    }
}

/* A matrix of whole pixels copies; a table of whole pixels does, too. */
static void whole_pixels_are_copied(void** state) {
    static float whole[OUT_H][OUT_W][2];
    gpst_warp_desc desc = desc_of(GPST_MAP_AFFINE), by_table = desc_of(GPST_MAP_TABLE);
    const gpst_affine shift = {{1, 0, 12, 0, 1, 7}};
    const gpst_image source = source_image();
    (void)state;
    one_affine = shift;
    for (int y = 0; y < OUT_H; y++)
        for (int x = 0; x < OUT_W; x++)
            whole[y][x][0] = (float)(x + 12), whole[y][x][1] = (float)(y + 7);
    by_table.table = &whole[0][0][0];
    expect_same(&desc, &by_table);
    run_desc(&desc, &source, out_bytes[0], sizeof out_bytes[0]);
    for (int y = 0; y < OUT_H; y++)
        assert_memory_equal(out_bytes[0] + y * OUT_W * 3, pixels + ((y + 7) * W + 12) * 3, OUT_W * 3);
}

static void what_is_outside_is_black_or_the_edge(void** state) {
    const gpst_image source = source_image();
    const gpst_affine far_out = {{1, 0, -1e8, 0, 1, -1e8}};
    gpst_warp_desc desc = desc_of(GPST_MAP_AFFINE);
    (void)state;
    one_affine = far_out;
    run_desc(&desc, &source, out_bytes[0], sizeof out_bytes[0]);
    for (size_t i = 0; i < sizeof out_bytes[0]; i++)
        assert_int_equal(out_bytes[0][i], 0);
    desc.border = GPST_BORDER_EDGE;
    run_desc(&desc, &source, out_bytes[0], sizeof out_bytes[0]);
    for (size_t i = 0; i < sizeof out_bytes[0]; i++)
        assert_int_equal(out_bytes[0][i], pixels[i % 3]);
    table[0][0][0] = NAN, table[0][1][1] = NAN, table[0][2][0] = INFINITY, table[0][3][1] = -INFINITY;
    desc = desc_of(GPST_MAP_TABLE);
    run_desc(&desc, &source, out_bytes[0], sizeof out_bytes[0]);
    for (int i = 0; i < 12; i++)
        assert_int_equal(out_bytes[0][i], 0);
    draw_noise(NULL);
}

/* Every map carries a mask: what it drops is 0, and so is what lies outside. */
static void masks_follow_every_map(void** state) {
    static const gpst_map maps[5] = {GPST_MAP_RESIZE, GPST_MAP_ROI, GPST_MAP_AFFINE, GPST_MAP_ROTATE,
                                     GPST_MAP_TABLE};
    static const true_map truths[5] = {NULL, true_roi, true_affine, true_rotate, true_table};
    const gpst_image source = source_image();
    (void)state;
    for (int y = 0; y < H; y++)
        memset(mask_pixels + y * W, 0, W / 3);
    for (int m = 0; m < 5; m++) {
        gpst_warp_desc desc = desc_of(maps[m]);
        uint32_t n_dropped = 0;
        desc.mask = source, desc.mask.format = GPST_FORMAT_GRAY, desc.mask.data = mask_pixels;
        desc.has_scale = true;
        for (int c = 0; c < 3; c++)
            desc.bias[c] = 9;
        run_desc(&desc, &source, out_bytes[0], sizeof out_bytes[0]);
        for (int j = 0; j < OUT_H; j++)
            for (int i = 0; i < OUT_W; i++) {
                double x = (i + 0.5) * W / OUT_W - 0.5, y = 0;
                if (truths[m])
                    truths[m](i, j, &x, &y);
                if (fabs(x + 0.5 - nearbyint(x + 0.5)) < 1e-3 || fabs(y + 0.5 - nearbyint(y + 0.5)) < 1e-3)
                    continue;
                const bool zero = desc.map == GPST_MAP_AFFINE || desc.map == GPST_MAP_TABLE;
                const double at_x = floor(x + 0.5), at_y = floor(y + 0.5);
                const bool inside = at_x >= 0 && at_x < W && at_y >= 0 && at_y < H;
                const double turned = maps[m] == GPST_MAP_ROTATE ? fmod(at_x + W, W) : at_x;
                const bool keep = turned >= W / 3 && (inside || !zero);
                n_dropped += keep ? 0 : 1;
                assert_int_equal(out_bytes[0][(j * OUT_W + i) * 3 + 1], keep ? 9 : 0);
            }
        assert_true(n_dropped > 50 && n_dropped < OUT_W * OUT_H);
    }
    memset(mask_pixels, 1, sizeof mask_pixels);
}

/* More outputs than 16 bits count, at one thread and at several. */
static void many_rois_in_one_call(void** state) {
    enum { N = 70000 };
    gpst_roi* rois = (gpst_roi*)malloc(N * sizeof *rois);
    gpst_image* outputs = (gpst_image*)malloc(N * sizeof *outputs);
    uint8_t* bytes = (uint8_t*)malloc((size_t)N * 2 * 3);
    const gpst_image source = source_image();
    gpst_warp_desc desc = desc_of(GPST_MAP_ROI);
    (void)state;
    assert_true(rois && outputs && bytes);
    for (uint32_t i = 0; i < N; i++) {
        rois[i].x = (float)(i % (W - 1)), rois[i].y = (float)(i / W % H);
        rois[i].width = 2, rois[i].height = 1;
    }
    desc.rois = rois, desc.n_rois = N, desc.width = 2, desc.height = 1;
    gpst_warp* warp = make_warp(&desc);
    assert_int_equal(gpst_warp_n_outputs(warp), N);
    for (uint32_t n_threads = 0; n_threads < 2; n_threads++) {
        memset(bytes, 0xa5, (size_t)N * 2 * 3);
        for (uint32_t i = 0; i < N; i++) {
            gpst_warp_query_output(warp, &outputs[i]);
            outputs[i].data = bytes + (size_t)i * 6;
        }
        assert_int_equal(gpst_warp_run(warp, &source, outputs, N, n_threads), GPST_OK);
        for (uint32_t i = 0; i < N; i++)
            assert_memory_equal(bytes + (size_t)i * 6, pixels + ((i / W % H) * W + i % (W - 1)) * 3, 6);
    }
    gpst_warp_destroy(warp);
    free(rois), free(outputs), free(bytes);
}

static void several_outputs_of_each_map(void** state) {
    gpst_view views[3];
    gpst_affine affines[3];
    gpst_image outputs[3];
    uint64_t read_bytes = 0, written_bytes = 0;
    const gpst_image source = source_image();
    (void)state;
    for (int rotate = 0; rotate < 2; rotate++) {
        gpst_warp_desc desc = desc_of(rotate ? GPST_MAP_ROTATE : GPST_MAP_AFFINE);
        for (int i = 0; i < 3; i++) {
            views[i] = one_view, views[i].yaw += 20 * i;
            affines[i] = one_affine, affines[i].m[2] += 2.5 * i;
        }
        static uint8_t three[3][OUT_W * OUT_H * 3];
        gpst_warp_desc all = desc;
        all.views = rotate ? views : NULL, all.n_views = rotate ? 3 : 0;
        all.affines = rotate ? NULL : affines, all.n_affines = rotate ? 0 : 3;
        gpst_warp* warp = make_warp(&all);
        assert_int_equal(gpst_warp_n_outputs(warp), 3);
        gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
        assert_int_equal(read_bytes, W * H * 3);
        assert_int_equal(written_bytes, sizeof three);
        memset(three, 0xa5, sizeof three);
        for (int i = 0; i < 3; i++) {
            gpst_warp_query_output(warp, &outputs[i]);
            outputs[i].data = three[i];
        }
        assert_int_equal(gpst_warp_run(warp, &source, outputs, 3, 0), GPST_OK);
        gpst_warp_destroy(warp);
        for (int i = 0; i < 3; i++) {
            one_view = views[i], one_affine = affines[i];
            run_desc(&desc, &source, out_bytes[0], sizeof out_bytes[0]);
            assert_memory_equal(three[i], out_bytes[0], sizeof out_bytes[0]);
        }
    }
}

/* ---- rules ----------------------------------------------------------------------------------------- */
static void expect_refused(const gpst_warp_desc* desc, gpst_result wanted, const char* text) {
    gpst_warp* warp = NULL;
    gpst_clear_reason();
    const gpst_result result = gpst_warp_create(desc, &warp);
    if (result != wanted || warp)
        fail_msg("%s instead of %s (%s)", gpst_result_name(result), gpst_result_name(wanted), text);
    if (!strstr(gpst_last_reason(), text))
        fail_msg("\"%s\" is not in \"%s\"", text, gpst_last_reason());
}

#define EXPECT_REFUSED(map, text, change)                 \
    do {                                                  \
        gpst_warp_desc desc = desc_of(map);               \
        change;                                           \
        expect_refused(&desc, GPST_ERROR_ARGUMENT, text); \
    } while (0)

static void rules_of_maps_fire(void** state) {
    (void)state;
    EXPECT_REFUSED(GPST_MAP_ROI, "n_rois=0: required", desc.n_rois = 0);
    EXPECT_REFUSED(GPST_MAP_ROI, "rois=NULL: required", desc.rois = NULL);
    EXPECT_REFUSED(GPST_MAP_ROI, "rois[0].x=nan", one_roi.x = NAN);
    EXPECT_REFUSED(GPST_MAP_ROI, "y=2e+06: must be within", one_roi.y = 2e6f);
    EXPECT_REFUSED(GPST_MAP_ROI, "rois[0].width=0", one_roi.width = 0);
    EXPECT_REFUSED(GPST_MAP_ROI, "height=-1", one_roi.height = -1);
    EXPECT_REFUSED(GPST_MAP_ROI, "rois[0].width=inf", one_roi.width = INFINITY);
    EXPECT_REFUSED(GPST_MAP_RESIZE, "n_rois=1: only with map=ROI", desc.n_rois = 1);
    EXPECT_REFUSED(GPST_MAP_AFFINE, "n_affines=0: required", desc.n_affines = 0);
    EXPECT_REFUSED(GPST_MAP_AFFINE, "affines=NULL: required", desc.affines = NULL);
    EXPECT_REFUSED(GPST_MAP_AFFINE, "affines[0].m[1]=nan", one_affine.m[1] = NAN);
    EXPECT_REFUSED(GPST_MAP_AFFINE, "affines[0].m[4]=65537: must be within +-65536", one_affine.m[4] = 65537);
    EXPECT_REFUSED(GPST_MAP_AFFINE, "must be within +-2^29", one_affine.m[5] = -6e8);
    EXPECT_REFUSED(GPST_MAP_ROI, "n_affines=2: only with map=AFFINE", desc.n_affines = 2);
    EXPECT_REFUSED(GPST_MAP_ROTATE, "n_views=0: required", desc.n_views = 0);
    EXPECT_REFUSED(GPST_MAP_ROTATE, "views=NULL: required", desc.views = NULL);
    EXPECT_REFUSED(GPST_MAP_ROTATE, "views[0].hfov=90", one_view.hfov = 90);
    EXPECT_REFUSED(GPST_MAP_ROTATE, "vfov=1: must be 0 with map=ROTATE", one_view.vfov = 1);
    EXPECT_REFUSED(GPST_MAP_ROTATE, "convention=FFMPEG", desc.convention = GPST_CONVENTION_FFMPEG);
    EXPECT_REFUSED(GPST_MAP_TABLE, "n_views=1: only with", desc.n_views = 1);
    EXPECT_REFUSED(GPST_MAP_TABLE, "table=NULL: required", desc.table = NULL);
    EXPECT_REFUSED(GPST_MAP_TABLE, "must be a multiple of 4",
                   desc.table = (const float*)(const void*)((const char*)table + 2));
    EXPECT_REFUSED(GPST_MAP_TABLE, "table_pitch_bytes=556", desc.table_pitch_bytes = 556);
    EXPECT_REFUSED(GPST_MAP_TABLE, "table_pitch_bytes=562", desc.table_pitch_bytes = 562);
    EXPECT_REFUSED(GPST_MAP_TABLE, "table_pitch_bytes=-560", desc.table_pitch_bytes = -560);
    EXPECT_REFUSED(GPST_MAP_RESIZE, "table: only with map=TABLE", desc.table = &table[0][0][0]);
    EXPECT_REFUSED(GPST_MAP_RESIZE, "border=ZERO: not with map=RESIZE", desc.border = GPST_BORDER_ZERO);
    EXPECT_REFUSED(GPST_MAP_ROTATE, "border=1: must be 0", desc.border = GPST_BORDER_EDGE);
    EXPECT_REFUSED(GPST_MAP_AFFINE, "border=3: must be EDGE or ZERO", desc.border = (gpst_border)3);
    EXPECT_REFUSED(GPST_MAP_AFFINE, "map=7", desc.map = (gpst_map)7);
    gpst_warp_desc desc = desc_of(GPST_MAP_TABLE);
    desc.table_pitch_bytes = INT64_MAX - 3;
    expect_refused(&desc, GPST_ERROR_OVERFLOW, "does not fit in memory");
}

static void outputs_must_not_overlap_the_table(void** state) {
    const gpst_warp_desc desc = desc_of(GPST_MAP_TABLE);
    const gpst_image source = source_image();
    gpst_image output = GPST_ZERO;
    gpst_warp* warp = make_warp(&desc);
    (void)state;
    gpst_warp_query_output(warp, &output);
    output.data = &table[OUT_H - 1][OUT_W - 1][1];
    gpst_clear_reason();
    assert_int_equal(gpst_warp_run(warp, &source, &output, 1, 1), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "must not overlap the table"));
    gpst_warp_destroy(warp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(maps_agree_with_double),
        cmocka_unit_test(the_whole_source_as_a_roi_is_a_resize),
        cmocka_unit_test(whole_pixels_are_copied),
        cmocka_unit_test(what_is_outside_is_black_or_the_edge),
        cmocka_unit_test(masks_follow_every_map),
        cmocka_unit_test(many_rois_in_one_call),
        cmocka_unit_test(several_outputs_of_each_map),
        cmocka_unit_test(rules_of_maps_fire),
        cmocka_unit_test(outputs_must_not_overlap_the_table),
    };
    return cmocka_run_group_tests(tests, draw_noise, NULL);
}
