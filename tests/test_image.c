/* tests/test_image.c -- sizes and rules of images. */
#include "test.h"

static gpst_image image_of(uint32_t width, uint32_t height, gpst_format format, gpst_dtype dtype,
                           gpst_layout layout) {
    gpst_image image = GPST_ZERO;
    image.width = width;
    image.height = height;
    image.format = format;
    image.dtype = dtype;
    image.layout = layout;
    return image;
}

static void channels_and_bytes(void** state) {
    (void)state;
    assert_int_equal(gpst_format_channels(GPST_FORMAT_GRAY), 1);
    assert_int_equal(gpst_format_channels(GPST_FORMAT_RGB), 3);
    assert_int_equal(gpst_format_channels(GPST_FORMAT_BGR), 3);
    assert_int_equal(gpst_format_channels(GPST_FORMAT_RGBA), 4);
    assert_int_equal(gpst_format_channels(GPST_FORMAT_BGRA), 4);
    assert_int_equal(gpst_format_channels(GPST_FORMAT_INVALID), 0);
    assert_int_equal(gpst_format_channels((gpst_format)99), 0);
    assert_int_equal(gpst_dtype_bytes(GPST_DTYPE_DEFAULT), 1);
    assert_int_equal(gpst_dtype_bytes(GPST_DTYPE_U8), 1);
    assert_int_equal(gpst_dtype_bytes(GPST_DTYPE_I8), 1);
    assert_int_equal(gpst_dtype_bytes(GPST_DTYPE_F16), 2);
    assert_int_equal(gpst_dtype_bytes(GPST_DTYPE_F32), 4);
    assert_int_equal(gpst_dtype_bytes((gpst_dtype)99), 0);
}

static void rows_and_extent(void** state) {
    size_t bytes = 0;
    (void)state;
    gpst_image image = image_of(5, 3, GPST_FORMAT_RGB, GPST_DTYPE_DEFAULT, GPST_LAYOUT_DEFAULT);
    assert_int_equal(gpst_image_row_bytes(&image), 15);
    assert_int_equal(gpst_image_bytes(&image, &bytes), GPST_OK);
    assert_int_equal(bytes, 45);
    image.pitch_bytes = 20; /* the last row ends at its own bytes */
    assert_int_equal(gpst_image_bytes(&image, &bytes), GPST_OK);
    assert_int_equal(bytes, 55);
    image.pitch_bytes = -20;
    assert_int_equal(gpst_image_bytes(&image, &bytes), GPST_OK);
    assert_int_equal(bytes, 55);
    image = image_of(5, 3, GPST_FORMAT_RGBA, GPST_DTYPE_F32, GPST_LAYOUT_CHW);
    assert_int_equal(gpst_image_row_bytes(&image), 20);
    image.pitch_bytes = 32; /* planes are height * pitch apart: 12 rows */
    assert_int_equal(gpst_image_bytes(&image, &bytes), GPST_OK);
    assert_int_equal(bytes, 11 * 32 + 20);
    image = image_of(0, 3, GPST_FORMAT_RGB, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    assert_int_equal(gpst_image_row_bytes(&image), 0);
    assert_int_equal(gpst_image_row_bytes(NULL), 0);
}

/* Each rule fires, and its sentence names the member. */
static void expect_refused(const gpst_image* image, gpst_result result, const char* text) {
    size_t bytes = 0xa5;
    gpst_clear_reason();
    assert_int_equal(gpst_image_bytes(image, &bytes), result);
    assert_int_equal(bytes, 0xa5);
    if (!strstr(gpst_last_reason(), text))
        fail_msg("\"%s\" is not in \"%s\"", text, gpst_last_reason());
}

static void rules_fire(void** state) {
    size_t bytes = 0;
    (void)state;
    gpst_image image = image_of(5, 3, GPST_FORMAT_INVALID, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.format=0");
    image = image_of(5, 3, GPST_FORMAT_RGB, (gpst_dtype)7, GPST_LAYOUT_HWC);
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.dtype=7");
    image = image_of(5, 3, GPST_FORMAT_RGB, GPST_DTYPE_U8, (gpst_layout)7);
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.layout=7");
    image = image_of(5, 0, GPST_FORMAT_RGB, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    expect_refused(&image, GPST_ERROR_ARGUMENT, "height=0");
    image = image_of(5, 3, GPST_FORMAT_RGB, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    image.pitch_bytes = 14;
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.pitch_bytes=14");
    image.pitch_bytes = INT64_MIN; /* its size is no int64_t */
    expect_refused(&image, GPST_ERROR_OVERFLOW, "do not fit");
    image.pitch_bytes = INT64_MAX;
    expect_refused(&image, GPST_ERROR_OVERFLOW, "do not fit");
    assert_int_equal(gpst_image_bytes(NULL, &bytes), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_image_bytes(&image, NULL), GPST_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_and_bytes),
        cmocka_unit_test(rows_and_extent),
        cmocka_unit_test(rules_fire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
