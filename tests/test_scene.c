/* tests/test_scene.c -- the warp of a rendered 360-degree picture against views taken straight from the
   analytic scene: their colours, and where things are. */
#include "test.h"

#include "../tools/scene.h"

#define WIDTH 4096
#define HEIGHT 2048
#define VIEW_WIDTH 800
#define VIEW_HEIGHT 600
#define PSNR_DB 50.0    /* at least; 51 to 58 were found */
#define OFF_PIXELS 0.05 /* at most; 0.012 were found */

static uint8_t *background, *source, *warped, *direct;

typedef struct look_at {
    double yaw, pitch, roll, hfov;
} look_at;

/* Level, tilted and rolled; the seam; both poles; narrow and wide. */
static const look_at views[] = {
    {0, 0, 0, 90},         {45, 20, 0, 90},   {38, 24, 30, 60},    {180, 0, 0, 90},
    {-179, -15, -75, 100}, {0, 90, 0, 90},    {25, -90, 0, 90},    {120, 88, 45, 110},
    {-100, -87, 200, 70},  {-60, 0, 180, 40}, {135, -42, 10, 120},
};
#define N_VIEWS (sizeof views / sizeof views[0])

static gpst_image picture(void* data, uint32_t width, uint32_t height) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width;
    image.height = height;
    image.format = GPST_FORMAT_RGB;
    return image;
}

static gpst_view view_of(const look_at* at) {
    gpst_view view;
    view.yaw = at->yaw;
    view.pitch = at->pitch;
    view.roll = at->roll;
    view.hfov = at->hfov;
    view.vfov = 0;
    return view;
}

static gpst_warp* create_warp(const look_at* at) {
    const gpst_view view = view_of(at);
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = &view;
    desc.n_views = 1;
    desc.width = VIEW_WIDTH;
    desc.height = VIEW_HEIGHT;
    desc.format = GPST_FORMAT_RGB;
    if (gpst_warp_create(&desc, &warp) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    return warp;
}

static void warp_view(const look_at* at) {
    const gpst_image input = picture(source, WIDTH, HEIGHT),
                     output = picture(warped, VIEW_WIDTH, VIEW_HEIGHT);
    gpst_warp* warp = create_warp(at);
    memset(warped, 0xA5, (size_t)VIEW_WIDTH * VIEW_HEIGHT * 3);
    if (gpst_warp_run(warp, &input, &output, 1, 1) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    gpst_warp_destroy(warp);
}

static double psnr(const uint8_t* a, const uint8_t* b, size_t bytes) {
    double sum = 0;
    for (size_t i = 0; i < bytes; i++) {
        const double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return 10 * log10(255.0 * 255.0 * (double)bytes / (sum > 0 ? sum : 1));
}

static void test_colours(void** state) {
    scene now;
    (void)state;
    scene_prepare(&now, SCENE_ALL, 0);
    assert_true(scene_render_background(&now, WIDTH, HEIGHT, background));
    scene_prepare(&now, SCENE_ALL, 7.5);
    assert_true(scene_render_frame(&now, WIDTH, HEIGHT, background, source));
    for (size_t i = 0; i < N_VIEWS; i++) {
        warp_view(&views[i]);
        scene_render_view(&now, views[i].yaw, views[i].pitch, views[i].roll, views[i].hfov, VIEW_WIDTH,
                          VIEW_HEIGHT, direct);
        const double found = psnr(warped, direct, (size_t)VIEW_WIDTH * VIEW_HEIGHT * 3);
        print_message("yaw %g pitch %g roll %g hfov %g: %.1f dB\n", views[i].yaw, views[i].pitch,
                      views[i].roll, views[i].hfov, found);
        if (found < PSNR_DB)
            fail_msg("%.1f dB are wanted", PSNR_DB);
    }
}

/* A frame made from the background is the frame made from nothing. */
static void test_frame_is_whole(void** state) {
    enum { W = 512, H = 256 };
    scene now;
    (void)state;
    scene_prepare(&now, SCENE_ALL, 3);
    assert_true(scene_render_background(&now, W, H, background));
    assert_true(scene_render_frame(&now, W, H, background, source));
    size_t moved = 0;
    for (int y = 0; y < H; y++)
        for (int x = 0; x < W; x++) {
            const double yaw = 360.0 * (x + 0.5) / W - 180.0, pitch = 90.0 - 180.0 * (y + 0.5) / H;
            double rgb[3];
            scene_color(&now, scene_direction(yaw, pitch), rgb);
            for (int c = 0; c < 3; c++) {
                const size_t at = 3 * ((size_t)y * W + (size_t)x) + (size_t)c;
                assert_true(abs(source[at] - scene_byte(rgb[c])) <= 1);
                moved += source[at] != background[at];
            }
        }
    assert_true(moved > 1000);
}

/* ---- where things are ------------------------------------------------------------------- */

typedef struct place {
    double x, y, reach; /* centre of the ellipse and half its larger side, in pixels */
    bool inside;
} place;

/* A disc is a cone around its direction; the view's plane cuts an ellipse from it, whose centre is known. */
static place place_of_disc(const look_at* at, scene_vec centre, double radius) {
    const gpst_view view = view_of(at);
    double r[9], c[3];
    place found = {0, 0, 0, false};
    gpst_view_rotation(&view, r);
    for (int i = 0; i < 3; i++)
        c[i] = r[i] * centre.x + r[3 + i] * centre.y + r[6 + i] * centre.z;
    const double k = cos(radius) * cos(radius);
    const double q11 = c[0] * c[0] - k, q22 = c[1] * c[1] - k, q12 = c[0] * c[1];
    const double determinant = q11 * q22 - q12 * q12;
    if (c[2] < 0.3)
        return found;
    const double X = (q12 * c[1] * c[2] - q22 * c[0] * c[2]) / determinant;
    const double Y = (q12 * c[0] * c[2] - q11 * c[1] * c[2]) / determinant;
    const double focal = 0.5 * VIEW_WIDTH / tan(SCENE_RADIANS(at->hfov) / 2);
    found.x = focal * X + 0.5 * VIEW_WIDTH - 0.5;
    found.y = focal * Y + 0.5 * VIEW_HEIGHT - 0.5;
    found.reach = focal * (tan(acos(c[2]) + radius) - tan(acos(c[2]) - radius)) / 2 +
                  focal * 4 * SCENE_SOFTNESS / (c[2] * c[2]) + 2;
    found.inside = found.x > found.reach && found.x < VIEW_WIDTH - 1 - found.reach && found.y > found.reach &&
                   found.y < VIEW_HEIGHT - 1 - found.reach;
    return found;
}

static void measure(const place* expected, double* x, double* y) {
    double sum = 0, sum_x = 0, sum_y = 0;
    for (int row = (int)(expected->y - expected->reach); row <= (int)(expected->y + expected->reach) + 1;
         row++)
        for (int column = (int)(expected->x - expected->reach);
             column <= (int)(expected->x + expected->reach) + 1; column++) {
            const double value = warped[3 * ((size_t)row * VIEW_WIDTH + (size_t)column) + 1];
            sum += value;
            sum_x += value * column;
            sum_y += value * row;
        }
    *x = sum_x / sum;
    *y = sum_y / sum;
}

static void test_discs_are_where_they_should_be(void** state) {
    scene now;
    size_t n = 0;
    double worst = 0;
    uint32_t seen = 0;
    (void)state;
    scene_prepare(&now, SCENE_DISCS, 0);
    assert_true(scene_render_background(&now, WIDTH, HEIGHT, source));
    for (size_t i = 0; i < N_VIEWS; i++) {
        warp_view(&views[i]);
        for (int d = 0; d < SCENE_N_DISCS; d++) {
            const place expected =
                place_of_disc(&views[i], now.discs[d], SCENE_RADIANS(scene_discs()[d].radius));
            double x, y;
            if (!expected.inside)
                continue;
            measure(&expected, &x, &y);
            const double off = fmax(fabs(x - expected.x), fabs(y - expected.y));
            if (!(off < OFF_PIXELS))
                fail_msg("view %zu, disc %d: (%.3f, %.3f) instead of (%.3f, %.3f)", i, d, x, y, expected.x,
                         expected.y);
            worst = off > worst ? off : worst;
            seen |= 1u << d;
            n++;
        }
    }
    print_message("%zu discs, the worst %.3f pixels off\n", n, worst);
    assert_true(n >= 18);
    assert_int_equal(seen & 0x30000u, 0x30000u); /* both poles, too */
    assert_int_equal(seen & 0x10u, 0x10u);       /* and the seam */
}

/* Where the library says it looks is where the scene's own arithmetic looks. */
static void test_positions(void** state) {
    uint64_t seed = test_seed(1);
    (void)state;
    for (size_t i = 0; i < N_VIEWS; i++) {
        gpst_warp* warp = create_warp(&views[i]);
        for (int k = 0; k < 500; k++) {
            const uint32_t x = (uint32_t)(test_random(&seed) % VIEW_WIDTH),
                           y = (uint32_t)(test_random(&seed) % VIEW_HEIGHT);
            const scene_vec d = scene_view_direction(views[i].yaw, views[i].pitch, views[i].roll,
                                                     views[i].hfov, VIEW_WIDTH, VIEW_HEIGHT, x, y);
            const double u = (atan2(d.x, d.z) / (2 * SCENE_PI) + 0.5) * WIDTH - 0.5;
            const double v = (atan2(d.y, sqrt(d.x * d.x + d.z * d.z)) / SCENE_PI + 0.5) * HEIGHT - 0.5;
            double found_u = -1e9, found_v = -1e9;
            assert_int_equal(gpst_warp_position(warp, 0, x, y, WIDTH, HEIGHT, &found_u, &found_v), GPST_OK);
            const double around = fabs(found_u - u), off = fmin(around, WIDTH - around);
            assert_true(off * sqrt(d.x * d.x + d.z * d.z) < 1e-6);
            assert_true(fabs(found_v - v) < 1e-6);
        }
        gpst_warp_destroy(warp);
    }
}

static int group_setup(void** state) {
    (void)state;
    background = (uint8_t*)malloc((size_t)WIDTH * HEIGHT * 3);
    source = (uint8_t*)malloc((size_t)WIDTH * HEIGHT * 3);
    warped = (uint8_t*)malloc((size_t)VIEW_WIDTH * VIEW_HEIGHT * 3);
    direct = (uint8_t*)malloc((size_t)VIEW_WIDTH * VIEW_HEIGHT * 3);
    return background && source && warped && direct ? 0 : -1;
}

static int group_teardown(void** state) {
    (void)state;
    free(background);
    free(source);
    free(warped);
    free(direct);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_frame_is_whole),
        cmocka_unit_test(test_discs_are_where_they_should_be),
        cmocka_unit_test(test_positions),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
