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
    for (int format = GPST_FORMAT_JPEG_444; format <= (int)GPST_FORMAT_JPEG_440; format++)
        assert_int_equal(gpst_format_channels((gpst_format)format), 3);
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

/* A JPEG file's planes: their sizes with padding, that of the row with its padding, and the whole extent. */
static void planes_of_jpeg(void** state) {
    static const struct {
        uint32_t width, height;
        gpst_format format;
        int64_t pitch;
        size_t row_bytes, bytes;
    } cases[] = {
        {5, 3, GPST_FORMAT_JPEG_444, 0, 5, 15 + 15 + 15},
        {5, 3, GPST_FORMAT_JPEG_422, 0, 6, 18 + 9 + 9},
        {5, 3, GPST_FORMAT_JPEG_420, 0, 6, 24 + 6 + 6},
        {5, 3, GPST_FORMAT_JPEG_440, 0, 5, 20 + 10 + 10},
        {4, 2, GPST_FORMAT_JPEG_420, 0, 4, 8 + 2 + 2},
        {1, 1, GPST_FORMAT_JPEG_420, 0, 2, 4 + 1 + 1},
        {5, 3, GPST_FORMAT_JPEG_444, 7, 5, 21 + 21 + 2 * 7 + 5}, /* the last row ends at its own bytes */
        {5, 3, GPST_FORMAT_JPEG_422, 8, 6, 24 + 12 + 2 * 4 + 3},
        {5, 3, GPST_FORMAT_JPEG_420, 8, 6, 32 + 8 + 4 + 3},
        {5, 3, GPST_FORMAT_JPEG_440, 7, 5, 28 + 14 + 7 + 5},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpst_image image = image_of(cases[i].width, cases[i].height, cases[i].format, GPST_DTYPE_DEFAULT,
                                    GPST_LAYOUT_DEFAULT);
        size_t bytes = 0;
        image.pitch_bytes = cases[i].pitch;
        assert_int_equal(gpst_image_row_bytes(&image), cases[i].row_bytes);
        assert_int_equal(gpst_image_bytes(&image, &bytes), GPST_OK);
        if (bytes != cases[i].bytes)
            fail_msg("case %zu: %zu bytes, wanted %zu", i, bytes, cases[i].bytes);
        image = gpsti_image_resolved(&image);
        assert_int_equal(image.pitch_bytes, cases[i].pitch ? cases[i].pitch : (int64_t)cases[i].row_bytes);
    }
}

/* Every byte that means something arrives at its place, and none beside the rows is touched. */
static void copies_of_jpeg_planes(void** state) {
    static const uint32_t across[4] = {1, 2, 2, 1}, down[4] = {1, 1, 2, 2};
    enum { W = 5, H = 3, PITCH = 8 };
    (void)state;
    for (uint32_t f = 0; f < 4; f++) {
        const uint32_t w = W + W % across[f], h = H + H % down[f];
        uint8_t tight[3 * 6 * 4], wide[3 * PITCH * 4], *from = tight;
        gpst_image a = image_of(W, H, (gpst_format)((uint32_t)GPST_FORMAT_JPEG_444 + f), GPST_DTYPE_U8,
                                GPST_LAYOUT_HWC);
        gpst_image b = a;
        size_t bytes = 0;
        a.data = tight, b.data = wide, b.pitch_bytes = PITCH;
        for (size_t i = 0; i < sizeof tight; i++)
            tight[i] = (uint8_t)(i + 1);
        memset(wide, 0xa5, sizeof wide);
        gpsti_image_copy(&a, &b);
        assert_int_equal(gpst_image_bytes(&b, &bytes), GPST_OK);
        const uint8_t* to = wide;
        for (uint32_t plane = 0; plane < 3; plane++) {
            const uint32_t columns = plane ? w / across[f] : w, rows = plane ? h / down[f] : h;
            const uint32_t pitch = plane ? PITCH / across[f] : PITCH;
            for (uint32_t y = 0; y < rows; y++, from += columns, to += pitch) {
                assert_memory_equal(to, from, columns);
                for (uint32_t x = columns; x < pitch && to + x < wide + sizeof wide; x++)
                    assert_int_equal(to[x], 0xa5);
            }
        }
        assert_int_equal(from - tight, w * h + 2 * (w / across[f]) * (h / down[f]));
        assert_int_equal(bytes, (size_t)(to - wide) - (PITCH - w) / across[f]);
    }
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
    image = image_of(5, 3, GPST_FORMAT_JPEG_420, GPST_DTYPE_U16, GPST_LAYOUT_HWC);
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.dtype=5: must be U8 with JPEG's formats");
    image = image_of(5, 3, GPST_FORMAT_JPEG_420, GPST_DTYPE_U8, GPST_LAYOUT_CHW);
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.layout=CHW: must be HWC with JPEG's formats");
    image.layout = GPST_LAYOUT_HWC, image.pitch_bytes = -6;
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.pitch_bytes=-6: must not be negative with JPEG's formats");
    image.pitch_bytes = 7;
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.pitch_bytes=7: must be a multiple of the 2 pixels");
    image.pitch_bytes = 4; /* 5, which are 6 with padding */
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.pitch_bytes=4: must be 0, or in size at least the 6 bytes");
    image.pitch_bytes = INT64_MAX - 1;
    expect_refused(&image, GPST_ERROR_OVERFLOW, "and their chroma do not fit");
    image = image_of(UINT32_MAX, UINT32_MAX, GPST_FORMAT_JPEG_420, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    expect_refused(&image, GPST_ERROR_OVERFLOW, "do");
    image = image_of(5, 3, GPST_FORMAT_JPEG_440, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    image.n_channels = 1;
    expect_refused(&image, GPST_ERROR_ARGUMENT, "image.n_channels=1: the format has 3");
    assert_int_equal(gpst_image_bytes(NULL, &bytes), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_image_bytes(&image, NULL), GPST_ERROR_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(channels_and_bytes),
        cmocka_unit_test(rows_and_extent),
        cmocka_unit_test(planes_of_jpeg),
        cmocka_unit_test(copies_of_jpeg_planes),
        cmocka_unit_test(rules_fire),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
