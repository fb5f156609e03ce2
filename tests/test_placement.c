/* tests/test_placement.c -- how the pixels of a file become the picture that is used. */
#include "test.h"

static gpst_placement place(const gpst_placement_desc* desc, const gpst_metadata* metadata, uint32_t width,
                            uint32_t height) {
    gpst_image stored = GPST_ZERO;
    gpst_placement placement;
    stored.width = width;
    stored.height = height;
    assert_int_equal(gpst_placement_of(desc, metadata, &stored, &placement), GPST_OK);
    return placement;
}

static gpst_metadata sphere_of(uint32_t full_width, uint32_t full_height, uint32_t width, uint32_t height, uint32_t left,
                               uint32_t top) {
    gpst_metadata metadata = GPST_ZERO;
    metadata.has_sphere = true;
    metadata.full_width = full_width, metadata.full_height = full_height;
    metadata.crop_width = width, metadata.crop_height = height;
    metadata.crop_left = left, metadata.crop_top = top;
    return metadata;
}

static void expect(const gpst_placement* placement, uint32_t width, uint32_t height, uint32_t left, uint32_t top) {
    assert_int_equal(placement->width, width);
    assert_int_equal(placement->height, height);
    assert_int_equal(placement->left, left);
    assert_int_equal(placement->top, top);
}

static void orientations(void** state) {
    gpst_placement_desc ignores = GPST_ZERO;
    (void)state;
    ignores.ignore_orientation = true;
    for (uint32_t said = 0; said <= 9; said++) {
        gpst_metadata metadata = GPST_ZERO;
        metadata.orientation = said;
        const gpst_placement placement = place(NULL, &metadata, 40, 30), kept = place(&ignores, &metadata, 40, 30);
        const bool swaps = said >= 5 && said <= 8;
        assert_int_equal(placement.orientation, said >= 1 && said <= 8 ? said : 1);
        assert_int_equal(placement.moves, said >= 2 && said <= 8);
        expect(&placement, swaps ? 30 : 40, swaps ? 40 : 30, 0, 0);
        assert_int_equal(kept.orientation, 1);
        assert_false(kept.moves);
        expect(&kept, 40, 30, 0, 0);
        assert_string_equal(placement.note, "");
    }
}

static void crops(void** state) {
    gpst_placement_desc sphere = GPST_ZERO;
    (void)state;
    sphere.sphere = true;
    gpst_metadata metadata = sphere_of(8000, 4000, 4000, 1200, 2000, 1400);
    gpst_placement placement = place(&sphere, &metadata, 4000, 1200);
    expect(&placement, 8000, 4000, 2000, 1400);
    assert_true(placement.moves);
    assert_non_null(strstr(placement.note, "4000x1200 placed at 2000,1400 of a sphere of 8000x4000"));

    placement = place(&sphere, &metadata, 1000, 300); /* scaled since */
    expect(&placement, 2000, 1000, 500, 350);

    placement = place(NULL, &metadata, 4000, 1200); /* not as a panorama */
    expect(&placement, 4000, 1200, 0, 0);
    assert_false(placement.moves);

    metadata.orientation = 6; /* GPano speaks of what is seen */
    placement = place(&sphere, &metadata, 1200, 4000);
    expect(&placement, 8000, 4000, 2000, 1400);
    assert_int_equal(placement.turned_width, 4000);
    assert_int_equal(placement.turned_height, 1200);

    metadata = sphere_of(8000, 4000, 8000, 4000, 0, 0);
    placement = place(&sphere, &metadata, 8000, 4000);
    assert_false(placement.moves);
    assert_string_equal(placement.note, "");
}

static void contradictions(void** state) {
    static const uint32_t numbers[][6] = {{8000, 4000, 8001, 4000, 0, 0}, {8000, 4000, 4000, 1200, 4001, 0},
                                          {8000, 4000, 4000, 1200, 0, 2801}, {0, 4000, 4000, 1200, 0, 0},
                                          {8000, 4000, 0, 1200, 0, 0}, {8000, 4000, 4000, 1200, UINT32_MAX, 0}};
    static const char* const notes[] = {
        "8001x4000 at 0,0 does not fit into 8000x4000", "4000x1200 at 4001,0 does not fit into 8000x4000",
        "4000x1200 at 0,2801 does not fit into 8000x4000", "FullPanoWidthPixels is missing or 0",
        "CroppedAreaImageWidthPixels is missing or 0", "4000x1200 at 4294967295,0 does not fit into 8000x4000"};
    gpst_placement_desc sphere = GPST_ZERO;
    gpst_placement placement;
    gpst_image stored = GPST_ZERO;
    char note[192];
    (void)state;
    sphere.sphere = true;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const uint32_t* const n = numbers[i];
        gpst_metadata metadata = sphere_of(n[0], n[1], n[2], n[3], n[4], n[5]);
        metadata.heading = 90.0; /* nor is this used */
        placement = place(&sphere, &metadata, 4000, 1200);
        expect(&placement, 4000, 1200, 0, 0);
        assert_false(placement.moves || placement.has_pose);
        snprintf(note, sizeof note, "GPano is ignored: %s: taken for a whole sphere", notes[i]);
        assert_string_equal(placement.note, note);
    }
    gpst_metadata fault = GPST_ZERO;
    strcpy(fault.gpano_fault, "PoseHeadingDegrees=\"20,0\" is not a number");
    placement = place(&sphere, &fault, 4000, 1200);
    assert_string_equal(placement.note, "GPano is ignored: PoseHeadingDegrees=\"20,0\" is not a number: taken for a "
                                        "whole sphere");
    placement = place(NULL, &fault, 4000, 1200);
    assert_string_equal(placement.note, "");
    const gpst_metadata large = sphere_of(40000, 20000, 4000, 1200, 0, 0);
    stored.width = 4000, stored.height = 1200;
    assert_int_equal(gpst_placement_of(&sphere, &large, &stored, &placement), GPST_ERROR_UNSUPPORTED);
    assert_non_null(strstr(gpst_last_reason(), "a sphere of 40000x20000"));
    assert_int_equal(placement.width, 0);
}

/* A few bytes are no part of a sphere of gigabytes; what fills its sphere is the decoder's to judge. */
static void parts_of_few_bytes(void** state) {
    const gpst_metadata part = sphere_of(32000, 16000, 8, 4, 0, 0), all = sphere_of(32000, 16000, 32000, 16000, 0, 0);
    gpst_placement_desc sphere = GPST_ZERO;
    gpst_placement placement;
    gpst_image stored = GPST_ZERO;
    (void)state;
    sphere.sphere = true;
    stored.width = 8, stored.height = 4;
    assert_true(place(&sphere, &part, 8, 4).moves); /* their number is not known */
    sphere.file_bytes = 32000 * 16000 / 8256;
    assert_true(place(&sphere, &part, 8, 4).moves);
    sphere.file_bytes--;
    assert_int_equal(gpst_placement_of(&sphere, &part, &stored, &placement), GPST_ERROR_TRUNCATED);
    assert_non_null(strstr(gpst_last_reason(), "GPano: 62014 bytes cannot hold a part of a sphere of 32000x16000"));
    assert_int_equal(placement.width, 0);
    assert_false(place(&sphere, &all, 32000, 16000).moves);
    sphere.sphere = false;
    assert_false(place(&sphere, &part, 8, 4).moves);
}

static void remarks(void** state) {
    gpst_placement_desc sphere = GPST_ZERO;
    gpst_metadata metadata = GPST_ZERO;
    (void)state;
    sphere.sphere = true;
    gpst_placement placement = place(&sphere, &metadata, 7680, 3840);
    assert_string_equal(placement.note, "");
    placement = place(&sphere, &metadata, 7680, 3803); /* within a percent */
    assert_string_equal(placement.note, "");
    placement = place(&sphere, &metadata, 4000, 3000);
    assert_non_null(strstr(placement.note, "4000x3000 is not 2:1"));
    placement = place(NULL, &metadata, 4000, 3000);
    assert_string_equal(placement.note, "");
    strcpy(metadata.note, "not read: GPS position");
    placement = place(NULL, &metadata, 4000, 3000);
    assert_string_equal(placement.note, "not read: GPS position");
    placement = place(&sphere, &metadata, 4000, 3000);
    assert_non_null(strstr(placement.note, "taken for a whole one; not read: GPS position"));
    metadata.note[0] = 0, metadata.has_sphere = true; /* ProjectionType alone, or a pose */
    placement = place(&sphere, &metadata, 4000, 2000);
    assert_string_equal(placement.note, "");
    placement = place(&sphere, &metadata, 4000, 3000);
    assert_non_null(strstr(placement.note, "4000x3000 is not 2:1"));
    metadata.has_sphere = false;
    strcpy(metadata.projection, "cylindrical");
    placement = place(&sphere, &metadata, 4000, 3000);
    assert_non_null(strstr(placement.note, "cylindrical"));
}

static void poses(void** state) {
    gpst_placement_desc sphere = GPST_ZERO;
    gpst_metadata metadata = sphere_of(8000, 4000, 8000, 4000, 0, 0);
    (void)state;
    sphere.sphere = true;
    gpst_placement placement = place(&sphere, &metadata, 8000, 4000);
    assert_false(placement.has_pose);
    metadata.heading = 90.0, metadata.pitch = -2.5, metadata.roll = 1.25;
    placement = place(&sphere, &metadata, 8000, 4000);
    assert_true(placement.has_pose);
    assert_true(placement.pose.yaw == 90.0 && placement.pose.pitch == -2.5 && placement.pose.roll == 1.25);
    assert_false(placement.moves);
    sphere.ignore_pose = true;
    placement = place(&sphere, &metadata, 8000, 4000);
    assert_false(placement.has_pose);
    sphere.ignore_pose = false;
    metadata.heading = 450.0, metadata.pitch = -360.0, metadata.roll = -370.0; /* modulo 360 */
    placement = place(&sphere, &metadata, 8000, 4000);
    assert_true(placement.pose.yaw == 90.0 && placement.pose.pitch == 0.0 && placement.pose.roll == -10.0);
    metadata.heading = 720.0, metadata.roll = 0.0;
    placement = place(&sphere, &metadata, 8000, 4000);
    assert_false(placement.has_pose);
    assert_string_equal(placement.note, "");
    metadata.pitch = 1.0, metadata.roll = 2e9; /* all of it or nothing */
    placement = place(&sphere, &metadata, 8000, 4000);
    assert_false(placement.has_pose);
    assert_non_null(strstr(placement.note, "GPano is ignored: 2e+09 is no angle"));
}

/* Bytes around the window become 0, and only they. */
static void windows(void** state) {
    uint8_t data[4 * (6 * 3 + 2)];
    gpst_placement placement = GPST_ZERO;
    gpst_image picture = GPST_ZERO, window;
    (void)state;
    memset(data, 0xa5, sizeof data);
    picture.data = data;
    picture.width = 6, picture.height = 4, picture.format = GPST_FORMAT_RGB, picture.pitch_bytes = 20;
    placement.width = 6, placement.height = 4, placement.left = 2, placement.top = 1;
    placement.turned_width = 3, placement.turned_height = 2, placement.orientation = 1;
    gpst_placement_window(&placement, &picture, &window);
    assert_ptr_equal(window.data, data + 20 + 6);
    assert_int_equal(window.pitch_bytes, 20);
    assert_int_equal(window.width, 3);
    assert_int_equal(window.height, 2);
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 20; x++)
            assert_int_equal(data[20 * y + x], x < 18 ? 0 : 0xa5);
    memset(data, 0xa5, sizeof data);
    placement.left = placement.top = 0, placement.turned_width = 6, placement.turned_height = 4;
    gpst_placement_window(&placement, &picture, &window);
    assert_ptr_equal(window.data, data);
    assert_int_equal(data[0], 0xa5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orientations), cmocka_unit_test(crops), cmocka_unit_test(contradictions), cmocka_unit_test(parts_of_few_bytes),
        cmocka_unit_test(remarks),      cmocka_unit_test(poses), cmocka_unit_test(windows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
