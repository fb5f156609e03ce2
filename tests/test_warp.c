/* tests/test_warp.c -- what the public warp promises: its rules, its signs, its masks and channels, its
   sizes. */
#include "test_warp.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/exact/exact_internal.h"
#endif

#include <math.h>

#define SOURCE_W 360
#define SOURCE_H 180

static uint8_t source_pixels[SOURCE_W * SOURCE_H * 3];
static uint8_t output_pixels[64 * 64 * 4 * 4];
static uint8_t mask_pixels[SOURCE_W * SOURCE_H];

/* Red says how far right, green how far down, blue how far left. */
static int draw_source(void** state) {
    (void)state;
    for (int y = 0; y < SOURCE_H; y++)
        for (int x = 0; x < SOURCE_W; x++) {
            uint8_t* pixel = source_pixels + (y * SOURCE_W + x) * 3;
            pixel[0] = (uint8_t)(x * 255 / (SOURCE_W - 1));
            pixel[1] = (uint8_t)(y * 255 / (SOURCE_H - 1));
            pixel[2] = (uint8_t)(255 - pixel[0]);
        }
    memset(mask_pixels, 1, sizeof mask_pixels);
    return 0;
}

static gpst_image source_image(void) {
    gpst_image image = GPST_ZERO;
    image.data = source_pixels;
    image.width = SOURCE_W;
    image.height = SOURCE_H;
    image.format = GPST_FORMAT_RGB;
    return image;
}

static gpst_image mask_image(void) {
    gpst_image image = source_image();
    image.data = mask_pixels;
    image.format = GPST_FORMAT_GRAY;
    return image;
}

static gpst_view one_view;

/* A desc that breaks no rule: 64 x 64, one view. */
static gpst_warp_desc good_desc(void) {
    gpst_warp_desc desc = GPST_ZERO;
    memset(&one_view, 0, sizeof one_view);
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = &one_view;
    desc.n_views = 1;
    desc.width = 64;
    desc.height = 64;
    desc.format = GPST_FORMAT_RGB;
    return desc;
}

/* Renders into output_pixels; the desc must be good. */
static void render(const gpst_warp_desc* desc, const gpst_image* source) {
    run_desc(desc, source, output_pixels, sizeof output_pixels);
}

/* ---- signs -------------------------------------------------------------------------------- */
static const uint8_t* look(double yaw, double pitch, double roll, int x, int y) {
    gpst_warp_desc desc = good_desc();
    const gpst_image source = source_image();
    one_view.yaw = yaw, one_view.pitch = pitch, one_view.roll = roll;
    render(&desc, &source);
    return output_pixels + (y * 64 + x) * 3;
}

static void expect_near(int value, int wanted) {
    if (abs(value - wanted) > 3)
        fail_msg("%d, wanted %d", value, wanted);
}

static void yaw_turns_right(void** state) {
    (void)state;
    expect_near(look(0, 0, 0, 32, 32)[0], 128);
    expect_near(look(90, 0, 0, 32, 32)[0], 191);
    expect_near(look(-90, 0, 0, 32, 32)[0], 64);
    assert_true(look(0, 0, 0, 63, 32)[0] > look(0, 0, 0, 0, 32)[0]);
}

static void pitch_turns_up(void** state) {
    (void)state;
    expect_near(look(0, 0, 0, 32, 32)[1], 128);
    expect_near(look(0, 90, 0, 32, 32)[1], 0);
    expect_near(look(0, -90, 0, 32, 32)[1], 255);
    expect_near(look(0, 45, 0, 32, 32)[1], 64);
    assert_true(look(0, 0, 0, 32, 0)[1] < look(0, 0, 0, 32, 63)[1]);
}

/* A camera turned clockwise has the ground at its right. */
static void roll_turns_clockwise(void** state) {
    (void)state;
    assert_true(look(0, 0, 90, 63, 32)[1] > 150);
    assert_true(look(0, 0, 90, 0, 32)[1] < 105);
    assert_true(look(0, 0, 30, 63, 32)[1] > look(0, 0, 0, 63, 32)[1] + 5);
}

static void rotation_matches_its_definition(void** state) {
    gpst_view view = GPST_ZERO;
    double r[9];
    (void)state;
    view.yaw = 90;
    gpst_view_rotation(&view, r);
    assert_true(r[2] == 1 && r[5] == 0 && r[8] == 0); /* forward is to the right, exactly */
    view.yaw = 25, view.pitch = -40, view.roll = 70;
    gpst_view_rotation(&view, r);
    for (int a = 0; a < 3; a++)
        for (int b = 0; b < 3; b++) {
            double dot = 0;
            for (int k = 0; k < 3; k++)
                dot += r[3 * a + k] * r[3 * b + k];
            assert_true(fabs(dot - (a == b)) < 1e-15);
        }
    const double degree = 3.14159265358979323846 / 180;
    assert_true(fabs(r[5] - sin(40 * degree)) < 1e-15);
    assert_true(fabs(r[2] - sin(25 * degree) * cos(40 * degree)) < 1e-15);
    view.roll = NAN;
    gpst_view_rotation(&view, r);
    for (int i = 0; i < 9; i++)
        assert_true(r[i] == 0);
}

static void vertical_field_of_view(void** state) {
    double x = 0, y_square = 0, y_set = 0;
    gpst_warp* warp = NULL;
    gpst_warp_desc desc = good_desc();
    (void)state;
    desc.width = 200, desc.height = 100, one_view.hfov = 100;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    assert_int_equal(gpst_warp_position(warp, 0, 100, 0, 3600, 1800, &x, &y_square), GPST_OK);
    gpst_warp_destroy(warp);
    one_view.vfov = 2 * atan(tan(50 * 3.14159265358979323846 / 180) / 2) * 180 / 3.14159265358979323846;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    assert_int_equal(gpst_warp_position(warp, 0, 100, 0, 3600, 1800, &x, &y_set), GPST_OK);
    gpst_warp_destroy(warp);
    assert_true(fabs(y_square - y_set) < 1e-9);
}

/* ---- channels, masks, stores ------------------------------------------------------------------ */
static void channels_are_ordered(void** state) {
    static const gpst_format formats[4] = {GPST_FORMAT_RGB, GPST_FORMAT_BGR, GPST_FORMAT_RGBA,
                                           GPST_FORMAT_BGRA};
    uint8_t pixel[4] = {10, 20, 30, 40}, gray = 77;
    (void)state;
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            gpst_warp_desc desc = good_desc();
            gpst_image source = GPST_ZERO;
            desc.map = GPST_MAP_RESIZE, desc.n_views = 0, desc.width = 2, desc.height = 1,
            desc.format = formats[to];
            source.data = pixel, source.width = 1, source.height = 1, source.format = formats[from];
            render(&desc, &source);
            const bool swapped = (from & 1) != (to & 1);
            assert_int_equal(output_pixels[0], swapped ? 30 : 10);
            assert_int_equal(output_pixels[1], 20);
            assert_int_equal(output_pixels[2], swapped ? 10 : 30);
            if (to >= 2)
                assert_int_equal(output_pixels[3], from >= 2 ? 40 : 255);
        }
    gpst_warp_desc desc = good_desc();
    gpst_image source = GPST_ZERO;
    desc.map = GPST_MAP_RESIZE, desc.n_views = 1, desc.width = 1, desc.height = 1,
    desc.format = GPST_FORMAT_RGBA;
    source.data = &gray, source.width = 1, source.height = 1, source.format = GPST_FORMAT_GRAY;
    render(&desc, &source);
    static const uint8_t repeated[4] = {77, 77, 77, 255};
    assert_memory_equal(output_pixels, repeated, 4);
}

static void masked_pixels_become_zero(void** state) {
    gpst_warp_desc desc = good_desc();
    const gpst_image source = source_image();
    (void)state;
    desc.mask = mask_image();
    desc.dtype = GPST_DTYPE_F32;
    desc.has_scale = true;
    for (int c = 0; c < 3; c++)
        desc.scale[c] = 1, desc.bias[c] = 1000;
    memset(mask_pixels, 0, sizeof mask_pixels / 2); /* the upper half is dropped */
    render(&desc, &source);
    float value[2];
    memcpy(&value[0], output_pixels + (16 * 64 + 32) * 3 * 4, 4);
    memcpy(&value[1], output_pixels + (48 * 64 + 32) * 3 * 4, 4);
    memset(mask_pixels, 1, sizeof mask_pixels);
    assert_true(value[0] == 0.0f);
    assert_true(value[1] >= 1000.0f);
}

/* Bytes with a scale: to nearest, ties to even, clamped. */
static void scaled_bytes_round_and_clamp(void** state) {
    static const struct {
        uint8_t pixel;
        float scale, bias;
        uint8_t wanted;
    } cases[] = {{5, 0.5f, 0.0f, 2},     {7, 0.5f, 0.0f, 4},    {3, 0.5f, 0.25f, 2},
                 {200, 2.0f, 0.0f, 255}, {200, -1.0f, 0.0f, 0}, {1, 3e38f, 3e38f, 255},
                 {255, -3e38f, 0.0f, 0}, {0, 1.0f, -0.5f, 0},   {255, 1.0f, 0.4f, 255}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpst_warp_desc desc = good_desc();
        gpst_image source = GPST_ZERO;
        uint8_t pixel = cases[i].pixel;
        desc.map = GPST_MAP_RESIZE, desc.n_views = 0, desc.width = 1, desc.height = 1,
        desc.format = GPST_FORMAT_GRAY;
        desc.has_scale = true, desc.scale[0] = cases[i].scale, desc.bias[0] = cases[i].bias;
        source.data = &pixel, source.width = 1, source.height = 1, source.format = GPST_FORMAT_GRAY;
        render(&desc, &source);
        assert_int_equal(output_pixels[0], cases[i].wanted);
    }
}

/* Signed bytes: to nearest, ties to even, clamped to -128..127; masked pixels 0. */
static void signed_bytes_round_and_clamp(void** state) {
    static const struct {
        uint8_t pixel;
        float scale, bias;
        int8_t wanted;
    } cases[] = {{5, 0.5f, 0.0f, 2},        {7, 0.5f, 0.0f, 4},       {5, -0.5f, 0.0f, -2},
                 {7, -0.5f, 0.0f, -4},      {255, 1.0f, 0.0f, 127},   {127, 1.0f, 0.5f, 127},
                 {255, -1.0f, 0.0f, -128},  {128, -1.0f, 0.0f, -128}, {1, 3e38f, 3e38f, 127},
                 {1, -3e38f, -3e38f, -128}, {0, 1.0f, -0.5f, 0},      {255, 1.0f, -128.0f, 127}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpst_warp_desc desc = good_desc();
        gpst_image source = GPST_ZERO;
        uint8_t pixel = cases[i].pixel;
        desc.map = GPST_MAP_RESIZE, desc.n_views = 0, desc.width = 1, desc.height = 1;
        desc.format = GPST_FORMAT_GRAY, desc.dtype = GPST_DTYPE_I8;
        desc.has_scale = true, desc.scale[0] = cases[i].scale, desc.bias[0] = cases[i].bias;
        source.data = &pixel, source.width = 1, source.height = 1, source.format = GPST_FORMAT_GRAY;
        render(&desc, &source);
        assert_int_equal((int8_t)output_pixels[0], cases[i].wanted);
    }
}

/* ---- queries ------------------------------------------------------------------------------------- */
static void query_output_is_resolved(void** state) {
    gpst_view views[3];
    gpst_warp_desc desc = good_desc();
    gpst_image output = GPST_ZERO;
    gpst_warp* warp = NULL;
    (void)state;
    memset(views, 0, sizeof views);
    desc.views = views, desc.n_views = 3, desc.width = 30, desc.height = 20, desc.dtype = GPST_DTYPE_F16;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    views[0].yaw = 1e9; /* copied: what happens to the caller's does not matter */
    assert_int_equal(gpst_warp_n_outputs(warp), 3);
    gpst_warp_query_output(warp, &output);
    assert_null(output.data);
    assert_int_equal(output.width, 30);
    assert_int_equal(output.height, 20);
    assert_int_equal(output.format, GPST_FORMAT_RGB);
    assert_int_equal(output.dtype, GPST_DTYPE_F16);
    assert_int_equal(output.layout, GPST_LAYOUT_HWC);
    assert_int_equal(output.pitch_bytes, 30 * 3 * 2);
    gpst_warp_destroy(warp);
    gpst_warp_destroy(NULL);
    assert_int_equal(gpst_warp_n_outputs(NULL), 0);
}

static void query_bytes_counts_unique_bytes(void** state) {
    gpst_view views[8];
    gpst_warp_desc desc = good_desc();
    gpst_image source = GPST_ZERO;
    gpst_warp* warp = NULL;
    uint64_t read_bytes = 0, written_bytes = 0;
    (void)state;
    memset(views, 0, sizeof views);
    for (int i = 0; i < 8; i++)
        views[i].yaw = 45 * i;
    source.width = 7680, source.height = 3840, source.format = GPST_FORMAT_RGB;
    desc.views = views, desc.n_views = 8, desc.width = 1920, desc.height = 1080;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
    gpst_warp_destroy(warp);
    /* Eight level views overlap in a belt of about 29 degrees up and down. */
    printf("8 views read %.1f MB of %.1f, write %.1f MB\n", (double)read_bytes / 1e6, 7680 * 3840 * 3 / 1e6,
           (double)written_bytes / 1e6);
    assert_true(read_bytes > 24000000 && read_bytes < 32000000);
    assert_int_equal(written_bytes, (uint64_t)8 * 1920 * 1080 * 3);
    desc = good_desc();
    desc.map = GPST_MAP_RESIZE, desc.n_views = 0, desc.filter = GPST_FILTER_NEAREST;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
    gpst_warp_destroy(warp);
    assert_int_equal(read_bytes, 64 * 64 * 3);
}

/* The environment takes levels away, and adds none. */
static void the_level_has_a_name(void** state) {
    static const char* const wanted[] = {"portable", "avx2", ""};
    gpst_warp_desc desc = good_desc();
    (void)state;
    for (int i = 0; i < 3; i++) {
        gpst_warp* warp = NULL;
        setenv("GPUSTAGE_CPU", wanted[i], 1);
        assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
        const char* const level = gpst_warp_cpu_level(warp);
        gpst_warp_destroy(warp);
        assert_true(!strcmp(level, "portable") || (i > 0 && !strcmp(level, "avx2")) ||
                    (i > 1 && !strcmp(level, "avx512")));
    }
    unsetenv("GPUSTAGE_CPU");
}

/* ---- rules ------------------------------------------------------------------------------------------ */
static void expect_reason(gpst_result result, gpst_result wanted, const char* text) {
    if (result != wanted)
        fail_msg("%s instead of %s (%s)", gpst_result_name(result), gpst_result_name(wanted), text);
    if (!strstr(gpst_last_reason(), text))
        fail_msg("\"%s\" is not in \"%s\"", text, gpst_last_reason());
}

static void expect_refused(const gpst_warp_desc* desc, const char* text) {
    gpst_warp* warp = (gpst_warp*)(void*)output_pixels;
    gpst_clear_reason();
    expect_reason(gpst_warp_create(desc, &warp), GPST_ERROR_ARGUMENT, text);
    assert_null(warp);
    assert_ptr_equal(strstr(gpst_last_reason(), "gpst_warp_create:"), gpst_last_reason());
}

#define EXPECT_REFUSED(text, change)       \
    do {                                   \
        gpst_warp_desc desc = good_desc(); \
        change;                            \
        expect_refused(&desc, text);       \
    } while (0)

static void rules_of_create_fire(void** state) {
    (void)state;
    gpst_warp* warp = NULL;
    const gpst_warp_desc good = good_desc();
    assert_int_equal(gpst_warp_create(&good, &warp), GPST_OK);
    gpst_warp_destroy(warp);
    assert_int_equal(gpst_warp_create(&good, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_warp_create(NULL, &warp), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_warp_create_versioned(GPST_VERSION + 1, sizeof good, &good, NULL, &warp),
                     GPST_ERROR_VERSION);
    assert_int_equal(gpst_warp_create_versioned(GPST_VERSION, sizeof good + 8, &good, NULL, &warp),
                     GPST_ERROR_VERSION);
    EXPECT_REFUSED("canary", desc.start_canary = 1);
    EXPECT_REFUSED("canary", desc.end_canary = 1);
    EXPECT_REFUSED("map=0", desc.map = GPST_MAP_INVALID);
    EXPECT_REFUSED("map=9", desc.map = (gpst_map)9);
    EXPECT_REFUSED("filter=9", desc.filter = (gpst_filter)9);
    EXPECT_REFUSED("convention=9", desc.convention = (gpst_convention)9);
    EXPECT_REFUSED("convention=FFMPEG",
                   (desc.map = GPST_MAP_RESIZE, desc.convention = GPST_CONVENTION_FFMPEG));
    EXPECT_REFUSED("convention=TORCH: only with map=RESIZE", desc.convention = GPST_CONVENTION_TORCH);
    EXPECT_REFUSED("convention=PY360: only with map=EQUIRECT",
                   (desc.map = GPST_MAP_RESIZE, desc.convention = GPST_CONVENTION_PY360));
    EXPECT_REFUSED("height=1: must be 2 or more with convention=PY360",
                   (desc.height = 1, desc.convention = GPST_CONVENTION_PY360));
    EXPECT_REFUSED("format=0", desc.format = GPST_FORMAT_INVALID);
    EXPECT_REFUSED("dtype=9", desc.dtype = (gpst_dtype)9);
    EXPECT_REFUSED("dtype=I8: only with has_scale", desc.dtype = GPST_DTYPE_I8);
    EXPECT_REFUSED("layout=9", desc.layout = (gpst_layout)9);
    EXPECT_REFUSED("width=0", desc.width = 0);
    EXPECT_REFUSED("width=65536", desc.width = 65536);
    EXPECT_REFUSED("height=0", desc.height = 0);
    EXPECT_REFUSED("height=4294967295", desc.height = UINT32_MAX);
    EXPECT_REFUSED("n_views=0", desc.n_views = 0);
    EXPECT_REFUSED("views=NULL", desc.views = NULL);
    EXPECT_REFUSED("n_views=2", (desc.map = GPST_MAP_RESIZE, desc.n_views = 2));
    EXPECT_REFUSED("views[0].yaw=nan", one_view.yaw = NAN);
    EXPECT_REFUSED("views[0].pitch=", one_view.pitch = -1e7);
    EXPECT_REFUSED("views[0].roll=inf", one_view.roll = INFINITY);
    EXPECT_REFUSED("views[0].hfov=180", one_view.hfov = 180);
    EXPECT_REFUSED("views[0].hfov=-1", one_view.hfov = -1);
    EXPECT_REFUSED("views[0].vfov=nan", one_view.vfov = NAN);
    EXPECT_REFUSED("scale[2]=inf", (desc.has_scale = true, desc.scale[2] = INFINITY));
    EXPECT_REFUSED("bias[0]=nan", (desc.has_scale = true, desc.bias[0] = NAN));
    EXPECT_REFUSED("mask.format=2",
                   (desc.mask = mask_image(), desc.mask.format = GPST_FORMAT_RGB, desc.mask.width = 9));
    EXPECT_REFUSED("dtype=4: must be GRAY and U8",
                   (desc.mask = mask_image(), desc.mask.dtype = GPST_DTYPE_I8));
    EXPECT_REFUSED("mask.pitch_bytes=5", (desc.mask = mask_image(), desc.mask.pitch_bytes = 5));
}

static void expect_run_refused(const gpst_warp* warp, const gpst_image* source, const gpst_image* outputs,
                               uint32_t n, gpst_result wanted, const char* text) {
    memset(output_pixels, 0xa5, sizeof output_pixels);
    gpst_clear_reason();
    expect_reason(gpst_warp_run(warp, source, outputs, n, 1), wanted, text);
    for (size_t i = 0; i < sizeof output_pixels; i++)
        assert_int_equal(output_pixels[i], 0xa5);
}

#define EXPECT_RUN_REFUSED(text, change)                                          \
    do {                                                                          \
        gpst_image source = source_image(), output = good_output;                 \
        uint32_t n = 1;                                                           \
        change;                                                                   \
        expect_run_refused(warp, &source, &output, n, GPST_ERROR_ARGUMENT, text); \
    } while (0)

static void rules_of_run_fire(void** state) {
    gpst_image good_output = GPST_ZERO;
    gpst_warp* warp = NULL;
    gpst_warp_desc desc = good_desc();
    (void)state;
    desc.mask = mask_image();
    desc.dtype = GPST_DTYPE_F32;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_output(warp, &good_output);
    good_output.data = output_pixels;
    EXPECT_RUN_REFUSED("n_outputs=0", n = 0);
    EXPECT_RUN_REFUSED("n_outputs=2", n = 2);
    EXPECT_RUN_REFUSED("source.data=NULL", source.data = NULL);
    EXPECT_RUN_REFUSED("outputs[0].data=NULL", output.data = NULL);
    EXPECT_RUN_REFUSED("source.width=70000", (source.width = 70000, source.pitch_bytes = 0));
    EXPECT_RUN_REFUSED("source.width=0", source.width = 0);
    EXPECT_RUN_REFUSED("source.dtype=4: must be U8", source.dtype = GPST_DTYPE_I8);
    EXPECT_RUN_REFUSED("source.layout=CHW", source.layout = GPST_LAYOUT_CHW);
    EXPECT_RUN_REFUSED("source.pitch_bytes=-3", source.pitch_bytes = -3);
    EXPECT_RUN_REFUSED("the mask's", source.height--);
    EXPECT_RUN_REFUSED("outputs[0].width=63", output.width--);
    EXPECT_RUN_REFUSED("outputs[0].format=3", output.format = GPST_FORMAT_BGR);
    EXPECT_RUN_REFUSED("dtype=1", (output.dtype = GPST_DTYPE_U8, output.pitch_bytes = 0));
    EXPECT_RUN_REFUSED("layout=2", (output.layout = GPST_LAYOUT_CHW, output.pitch_bytes = 0));
    EXPECT_RUN_REFUSED("outputs[0].data=", output.data = output_pixels + 2);
    EXPECT_RUN_REFUSED("outputs[0].pitch_bytes=769", output.pitch_bytes++);
    EXPECT_RUN_REFUSED("must not overlap the source", output.data = source_pixels + 4);
    EXPECT_RUN_REFUSED("must not overlap the mask", output.data = mask_pixels + SOURCE_W * SOURCE_H - 4);
    expect_run_refused(NULL, &good_output, &good_output, 1, GPST_ERROR_ARGUMENT, "required");
    gpst_warp_destroy(warp);
    desc = good_desc();
    desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_output(warp, &good_output);
    good_output.data = output_pixels;
    EXPECT_RUN_REFUSED("must be GRAY", (void)n);
    gpst_warp_destroy(warp);
}

static void rules_of_position_fire(void** state) {
    gpst_warp* warp = NULL;
    const gpst_warp_desc desc = good_desc();
    double x = 0, y = 0;
    (void)state;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    expect_reason(gpst_warp_position(warp, 1, 0, 0, 9, 9, &x, &y), GPST_ERROR_ARGUMENT, "output_index=1");
    expect_reason(gpst_warp_position(warp, 0, 64, 0, 9, 9, &x, &y), GPST_ERROR_ARGUMENT, "x=64");
    expect_reason(gpst_warp_position(warp, 0, 0, 0, 0, 9, &x, &y), GPST_ERROR_ARGUMENT, "source_width=0");
    expect_reason(gpst_warp_position(warp, 0, 0, 0, 9, 9, NULL, &y), GPST_ERROR_ARGUMENT, "required");
    gpst_warp_destroy(warp);
}

/* A pixel's direction, by the camera, is where the warp looks it up. */
static void cameras_project_as_the_warp_does(void** state) {
    static const gpst_convention conventions[] = {GPST_CONVENTION_NATIVE, GPST_CONVENTION_PY360,
                                                  GPST_CONVENTION_FFMPEG};
    static const gpst_view views[2] = {{20, -35, 50, 70, 0}, {-130, 60, -20, 100, 55}};
    const double pi = 3.14159265358979323846;
    (void)state;
    for (uint32_t i = 0, v = 0; i < 6; v = ++i % 2) {
        gpst_warp_desc desc = good_desc();
        gpst_warp* warp = NULL;
        double k[4], r[9], ray[3], x, y;
        desc.views = views, desc.n_views = 2, desc.width = 50, desc.height = 30, desc.convention = conventions[i / 2];
        assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
        assert_int_equal(gpst_warp_query_camera(warp, v, k), GPST_OK);
        assert_true(k[2] == 25 && k[3] == 15);
        const double edge = i / 2 == 1 ? 1 : 0, fx = (50 - edge) / (2 * tan(views[v].hfov * pi / 360));
        assert_true(fabs(k[0] - fx) < 1e-12 * fx);
        gpst_view_rotation(&views[v], r);
        for (uint32_t n = 0; n < 50 * 30; n += 7) {
            const double across = (n % 50 + 0.5 - k[2]) / k[0], down = (n / 50 + 0.5 - k[3]) / k[1];
            for (int a = 0; a < 3; a++)
                ray[a] = r[3 * a] * across + r[3 * a + 1] * down + r[3 * a + 2];
            const double turn = atan2(ray[0], ray[2]) / (2 * pi) + 0.5;
            const double tilt = atan2(ray[1], hypot(ray[0], ray[2])) / pi + 0.5;
            assert_int_equal(gpst_warp_position(warp, v, n % 50, n / 50, 4000, 2000, &x, &y), GPST_OK);
            const bool ffmpeg = conventions[i / 2] == GPST_CONVENTION_FFMPEG;
            assert_true(fabs(x - (ffmpeg ? turn * 3999 : turn * 4000 - 0.5)) < 1e-6);
            assert_true(fabs(y - (ffmpeg ? tilt * 1999 : tilt * 2000 - 0.5)) < 1e-6);
        }
        gpst_warp_destroy(warp);
    }
}

static void rules_of_cameras_fire(void** state) {
    gpst_warp* warp = NULL;
    gpst_warp_desc desc = good_desc();
    double k[4] = {7, 7, 7, 7};
    (void)state;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    expect_reason(gpst_warp_query_camera(warp, 1, k), GPST_ERROR_ARGUMENT, "output_index=1: the warp has 1 outputs");
    expect_reason(gpst_warp_query_camera(warp, 0, NULL), GPST_ERROR_ARGUMENT, "required");
    expect_reason(gpst_warp_query_camera(NULL, 0, k), GPST_ERROR_ARGUMENT, "required");
    gpst_warp_destroy(warp);
    desc.map = GPST_MAP_ROTATE;
    for (int i = 0; i < 3; i++) { /* a sphere; none; views of each item */
        desc.n_views = i == 1 ? 0 : 1, desc.list_per_item = i == 2, desc.views = i == 0 ? &one_view : NULL;
        assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
        expect_reason(gpst_warp_query_camera(warp, 0, k), GPST_ERROR_ARGUMENT, "must be EQUIRECT, with views");
        gpst_warp_destroy(warp);
        desc.map = i == 0 ? GPST_MAP_RESIZE : GPST_MAP_EQUIRECT;
    }
    assert_true(k[0] == 7 && k[1] == 7 && k[2] == 7 && k[3] == 7);
}

/* ---- memory ------------------------------------------------------------------------------------------ */
static int live_allocations;

static void* counted_alloc(void* user_data, size_t bytes, size_t align_bytes) {
    if (*(const bool*)user_data)
        return NULL;
    live_allocations++;
    return aligned_alloc(align_bytes, (bytes + align_bytes - 1) / align_bytes * align_bytes);
}

static void counted_free(void* user_data, void* ptr, size_t bytes) {
    (void)user_data;
    (void)bytes;
    live_allocations--;
    free(ptr);
}

static void memory_comes_from_the_allocator(void** state) {
    bool refuse = false;
    gpst_allocator allocator = GPST_ZERO;
    gpst_warp* warp = NULL;
    const gpst_warp_desc desc = good_desc();
    (void)state;
    allocator.alloc = counted_alloc;
    allocator.free = counted_free;
    allocator.user_data = &refuse;
    assert_int_equal(gpst_warp_create_versioned(GPST_VERSION, sizeof desc, &desc, &allocator, &warp),
                     GPST_OK);
    assert_int_equal(live_allocations, 1);
    gpst_warp_destroy(warp);
    assert_int_equal(live_allocations, 0);
    refuse = true;
    gpst_clear_reason();
    expect_reason(gpst_warp_create_versioned(GPST_VERSION, sizeof desc, &desc, &allocator, &warp),
                  GPST_ERROR_MEMORY, "gpst_warp_create");
    assert_null(warp);
}

/* On a GPU tests/test_gpu_warp.cu looks at what is computed; here at the rules. */
static void launch_has_rules(void** state) {
    static uint8_t pixels[4 * 4 * 3], out[2 * 2 * 3];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_image source = GPST_ZERO, output = GPST_ZERO;
    gpst_warp* warp = NULL;
    (void)state;
    desc.map = GPST_MAP_RESIZE, desc.width = 2, desc.height = 2, desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    gpst_warp_query_output(warp, &output);
    output.data = out;
    source.data = pixels, source.width = 4, source.height = 4, source.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_launch(NULL, &source, 1, &output, 1, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_warp_launch(warp, &source, 0, &output, 0, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_warp_launch(warp, &source, 1, &output, 2, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "n_outputs=2"));
    output.width = 3;
    assert_int_equal(gpst_warp_launch(warp, &source, 1, &output, 1, NULL), GPST_ERROR_ARGUMENT);
    output.width = 2;
#if !defined(GPSTI_GPU)
    assert_int_equal(gpst_warp_launch(warp, &source, 1, &output, 1, NULL), GPST_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gpst_last_reason(), "no GPU code"));
#endif
    gpst_warp_destroy(warp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(launch_has_rules),
        cmocka_unit_test(yaw_turns_right),
        cmocka_unit_test(pitch_turns_up),
        cmocka_unit_test(roll_turns_clockwise),
        cmocka_unit_test(rotation_matches_its_definition),
        cmocka_unit_test(vertical_field_of_view),
        cmocka_unit_test(channels_are_ordered),
        cmocka_unit_test(masked_pixels_become_zero),
        cmocka_unit_test(scaled_bytes_round_and_clamp),
        cmocka_unit_test(signed_bytes_round_and_clamp),
        cmocka_unit_test(query_output_is_resolved),
        cmocka_unit_test(query_bytes_counts_unique_bytes),
        cmocka_unit_test(the_level_has_a_name),
        cmocka_unit_test(rules_of_create_fire),
        cmocka_unit_test(rules_of_run_fire),
        cmocka_unit_test(rules_of_position_fire),
        cmocka_unit_test(cameras_project_as_the_warp_does),
        cmocka_unit_test(rules_of_cameras_fire),
        cmocka_unit_test(memory_comes_from_the_allocator),
    };
    return cmocka_run_group_tests(tests, draw_source, NULL);
}
