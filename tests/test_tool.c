/* tests/test_tool.c -- the parts of the command that can be wrong without a file: numbers read and written,
   JSON, the rig against the warp itself. */
#include "test.h"

#include <math.h>

#include "../tools/gpustage/json.c"
#include "../tools/gpustage/rig.c"
#include "../tools/gpustage/text.c"

/* ---- numbers ------------------------------------------------------------------------ */

static void test_numbers_are_read_as_written(void** state) {
    static const struct {
        const char* written;
        double value;
    } good[] = {{"0", 0.0},
                {"-0", 0.0},
                {"90", 90.0},
                {"+1.5", 1.5},
                {".5", 0.5},
                {"5.", 5.0},
                {"1e3", 1000.0},
                {"2.5E-3", 0.0025},
                {"1e-22", 1e-22},
                {"-12.25", -12.25},
                {"0.229", 0.229},
                {"0.1", 0.1},
                {"123456789.125", 123456789.125},
                {"1e+2", 100.0}};
    static const char* const bad[] = {"",   "-",   ".",  "e5", "nan",   "inf", " 1",
                                      "1e", "1e+", "x1", ",5", "1e301", "--1"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        const char* at = good[i].written;
        double value = -77.0;
        assert_true(text_read_number(&at, &value));
        assert_true(value == good[i].value);
        assert_int_equal(*at, 0);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char* at = bad[i];
        double value = -77.0;
        assert_false(text_read_number(&at, &value));
        assert_ptr_equal(at, bad[i]);
        assert_true(value == -77.0);
    }
}

static void test_numbers_stop_where_they_end(void** state) {
    const char* at = "1.5.5,0x10";
    double value = 0.0;
    (void)state;
    assert_true(text_read_number(&at, &value) && value == 1.5 && *at == '.');
    at = "0x10";
    assert_true(text_read_number(&at, &value) && value == 0.0 && *at == 'x');
    at = "1,5";
    assert_true(text_read_number(&at, &value) && value == 1.0 && *at == ',');
}

static void test_counts(void** state) {
    const char* at = "18446744073709551615";
    uint64_t value = 0;
    (void)state;
    assert_true(text_read_count(&at, &value) && value == UINT64_MAX);
    at = "18446744073709551616";
    assert_false(text_read_count(&at, &value));
    at = "-1";
    assert_false(text_read_count(&at, &value));
    at = "007x";
    assert_true(text_read_count(&at, &value) && value == 7 && *at == 'x');
}

/* ---- JSON ------------------------------------------------------------------------------ */

static void test_json_numbers_come_back(void** state) {
    uint64_t seed = test_seed(11);
    (void)state;
    for (int i = 0; i < 2000; i++) {
        json out = GPST_ZERO;
        double value = (double)test_random(&seed) / 1e9 - 9e9;
        value = i % 3 ? value : value * 1e-12;
        json_number(&out, NULL, value);
        assert_true(strtod(out.out.data, NULL) == value); /* this test never leaves the C locale */
        text_free(&out.out);
    }
}

static void check_json(json* out, const char* wanted) {
    assert_false(out->out.failed);
    assert_string_equal(out->out.data, wanted);
    text_free(&out->out);
}

static void test_json_form(void** state) {
    json out = GPST_ZERO;
    (void)state;
    json_open(&out, NULL, '{');
    json_string(&out, "a", "quote \" back \\ tab \t del \x7f");
    json_open(&out, "empty", '[');
    json_close(&out, ']');
    json_open(&out, "list", '[');
    json_count(&out, NULL, UINT64_MAX);
    json_number(&out, NULL, 0.5);
    json_number(&out, NULL, (double)NAN);
    json_number(&out, NULL, -(double)INFINITY);
    json_bool(&out, NULL, true);
    json_close(&out, ']');
    json_close(&out, '}');
    check_json(
        &out,
        "{\n  \"a\": \"quote \\\" back \\\\ tab \\u0009 del \\u007f\",\n  \"empty\": [],\n  \"list\": [\n"
        "    18446744073709551615,\n    0.5,\n    null,\n    null,\n    true\n  ]\n}\n");
}

static void test_json_is_always_utf8(void** state) {
    static const char* const pairs[][2] = {
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x93\xb7", "\"\xc3\xa4\xe2\x82\xac\xf0\x9f\x93\xb7\""},
        {"latin \xe4.", "\"latin \\ufffd.\""},
        {"cut \xe2\x82", "\"cut \\ufffd\\ufffd\""},
        {"long \xc0\xaf", "\"long \\ufffd\\ufffd\""},
        {"surrogate \xed\xa0\x80", "\"surrogate \\ufffd\\ufffd\\ufffd\""},
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""},
        {"\xff", "\"\\ufffd\""}};
    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        json out = GPST_ZERO;
        json_string(&out, NULL, pairs[i][0]);
        check_json(&out, pairs[i][1]);
    }
}

/* ---- rig --------------------------------------------------------------------------------- */

/* v = conjugate(q) v q: from the camera back into the rig. */
static void turn_back(const double q[4], const double v[3], double out[3]) {
    const double w = q[0], x = -q[1], y = -q[2], z = -q[3];
    const double t[3] = {2 * (y * v[2] - z * v[1]), 2 * (z * v[0] - x * v[2]), 2 * (x * v[1] - y * v[0])};
    out[0] = v[0] + w * t[0] + y * t[2] - z * t[1];
    out[1] = v[1] + w * t[1] + z * t[0] - x * t[2];
    out[2] = v[2] + w * t[2] + x * t[1] - y * t[0];
}

static void check_direction(const double ray[3], double source_x, double source_y, uint32_t source_width,
                            uint32_t source_height, gpst_convention convention) {
    const double pi = 3.14159265358979323846;
    const bool to_edges = convention == GPST_CONVENTION_FFMPEG;
    const double width = source_width - (to_edges ? 1.0 : 0.0), height = source_height - (to_edges ? 1.0 : 0.0);
    const double half = to_edges ? 0.0 : 0.5;
    const double wanted_x = (atan2(ray[0], ray[2]) / (2 * pi) + 0.5) * width - half;
    const double wanted_y = (atan2(ray[1], hypot(ray[0], ray[2])) / pi + 0.5) * height - half;
    const double off = fabs(source_x - wanted_x);
    assert_true(off < 1e-6 || fabs(off - width) < 1e-6); /* the seam is one place */
    assert_true(fabs(source_y - wanted_y) < 1e-6);
}

/* A pixel's direction by the rig file, in the panorama, is where the warp looks that pixel up. */
static void check_rig(gpst_convention convention) {
    enum { N_VIEWS = 12, WIDTH = 97, HEIGHT = 61 };
    gpst_view views[N_VIEWS];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    uint64_t seed = test_seed(5);
    double first[9];
    rig_views asked = {views, N_VIEWS, WIDTH, HEIGHT, NULL};
    memset(views, 0, sizeof views);
    for (int i = 0; i < N_VIEWS; i++) {
        views[i].yaw = (double)(test_random(&seed) % 7200) / 10.0 - 360.0;
        views[i].pitch = (double)(test_random(&seed) % 1800) / 10.0 - 90.0;
        views[i].roll = (double)(test_random(&seed) % 7200) / 10.0 - 360.0;
        views[i].hfov = (double)(test_random(&seed) % 1600) / 10.0 + 5.0;
        views[i].vfov = i % 2 ? 0.0 : (double)(test_random(&seed) % 1600) / 10.0 + 5.0;
    }
    desc.map = GPST_MAP_EQUIRECT;
    desc.convention = convention;
    desc.views = views;
    desc.n_views = N_VIEWS;
    desc.width = WIDTH;
    desc.height = HEIGHT;
    desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    asked.warp = warp;
    gpst_view_rotation(&views[0], first);
    for (uint32_t n = 0; n < 2000; n++) {
        const uint32_t i = n % N_VIEWS, x = (uint32_t)(test_random(&seed) % WIDTH),
                       y = (uint32_t)(test_random(&seed) % HEIGHT);
        rig_camera camera;
        double source_x = 0, source_y = 0, in_rig[3], world[3];
        rig_camera_make(&asked, i, &camera);
        const double ray[3] = {(x + 0.5 - camera.cx) / camera.fx, (y + 0.5 - camera.cy) / camera.fy, 1.0};
        assert_int_equal(gpst_warp_position(warp, i, x, y, 4096, 2048, &source_x, &source_y), GPST_OK);
        turn_back(camera.cam_from_panorama, ray, world);
        check_direction(world, source_x, source_y, 4096, 2048, convention);
        turn_back(camera.cam_from_rig, ray, in_rig);
        for (int r = 0; r < 3; r++)
            world[r] = first[3 * r] * in_rig[0] + first[3 * r + 1] * in_rig[1] + first[3 * r + 2] * in_rig[2];
        check_direction(world, source_x, source_y, 4096, 2048, convention);
        if (i == 0)
            assert_true(fabs(camera.cam_from_rig[0] - 1.0) < 1e-12);
    }
    gpst_warp_destroy(warp);
}

static void test_rig_agrees_with_the_warp(void** state) {
    (void)state;
    check_rig(GPST_CONVENTION_NATIVE);
    check_rig(GPST_CONVENTION_FFMPEG);
    check_rig(GPST_CONVENTION_OPENCV);
    check_rig(GPST_CONVENTION_PY360);
}

/* ---- names and encodings --------------------------------------------------------------------- */

static void test_patterns(void** state) {
    char out[16];
    (void)state;
    assert_true(text_expand("{name}.png", "a.b.jpg", out, sizeof out));
    assert_string_equal(out, "a.b.jpg.png");
    assert_true(text_expand("m_{stem}{x}.png", "a.b.jpg", out, 15));
    assert_string_equal(out, "m_a.b{x}.png");
    assert_true(text_expand("{stem}", ".hidden", out, sizeof out));
    assert_string_equal(out, ".hidden");
    assert_true(text_expand("{name}", "123456789012345", out, sizeof out));
    assert_false(text_expand("{name}", "1234567890123456", out, sizeof out));
    assert_false(text_expand("{stem}.png", "123456789012.x", out, sizeof out));
}

static void check_utf8(const char* data, size_t bytes, const char* wanted, const char* says) {
    text found = GPST_ZERO;
    text_append(&found, data, bytes);
    const char* const problem = text_make_utf8(&found);
    assert_true(says ? problem && strstr(problem, says) : !problem);
    if (wanted) {
        assert_int_equal(found.bytes, strlen(wanted));
        assert_string_equal(found.data, wanted);
    }
    text_free(&found);
}

static void test_lists_become_utf8(void** state) {
    (void)state;
    check_utf8("plain\n", 6, "plain\n", NULL);
    check_utf8("\xef\xbb\xbfmark\xc3\xa4", 9, "mark\xc3\xa4", NULL);
    /* a, umlaut a, euro, camera (two units), line feed */
    check_utf8("\xff\xfe" "a\0\xe4\0\xac\x20\x3d\xd8\xf7\xdc\n\0", 14, "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x93\xb7\n", NULL);
    check_utf8("\xfe\xff" "\0a\0\xe4\x20\xac\xd8\x3d\xdc\xf7\0\n", 14, "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x93\xb7\n", NULL);
    check_utf8("\xff\xfe" "a\0b", 5, NULL, "an odd number of bytes");
    check_utf8("\xff\xfe\x3d\xd8" "a\0", 6, NULL, "half a character");
    check_utf8("\xff\xfe\xf7\xdc", 4, NULL, "half a character");
    check_utf8("a\0b\0", 4, NULL, "a zero byte");
    check_utf8("\xff\xfe" "a\0\0\0", 6, NULL, "a zero byte");
    check_utf8("", 0, NULL, NULL);
    check_utf8("\xff\xfe", 2, NULL, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers_are_read_as_written),
                                       cmocka_unit_test(test_numbers_stop_where_they_end),
                                       cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_json_numbers_come_back),
                                       cmocka_unit_test(test_json_form),
                                       cmocka_unit_test(test_json_is_always_utf8),
                                       cmocka_unit_test(test_rig_agrees_with_the_warp),
                                       cmocka_unit_test(test_patterns),
                                       cmocka_unit_test(test_lists_become_utf8)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
