/* tests/test_orient.c -- pictures turned and mirrored as EXIF's orientation says. */
#include "test.h"

#define WIDTH 67 /* two tiles and a part, and no square */
#define HEIGHT 41

/* Where EXIF's table (row 0 and column 0 of the stored picture are the visual side ...) puts stored pixel (x, y). */
static void place(uint32_t orientation, uint32_t x, uint32_t y, uint32_t* to_x, uint32_t* to_y) {
    static const char* const sides[8][2] = {{"top", "left"},  {"top", "right"},  {"bottom", "right"}, {"bottom", "left"},
                                            {"left", "top"},  {"right", "top"},  {"right", "bottom"}, {"left", "bottom"}};
    const uint32_t along[2] = {y, x}; /* row 0 is sides[][0], column 0 is sides[][1] */
    const uint32_t last[2] = {HEIGHT - 1, WIDTH - 1};
    for (int i = 0; i < 2; i++) {
        const char* const side = sides[orientation - 1][i];
        if (!strcmp(side, "top"))
            *to_y = along[i];
        else if (!strcmp(side, "bottom"))
            *to_y = last[i] - along[i];
        else if (!strcmp(side, "left"))
            *to_x = along[i];
        else
            *to_x = last[i] - along[i];
    }
}

static gpst_image make(uint32_t width, uint32_t height, gpst_format format, gpst_dtype dtype, int64_t pitch,
                       uint8_t* data) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.pitch_bytes = pitch;
    image.width = width;
    image.height = height;
    image.format = format;
    image.dtype = dtype;
    return image;
}

static void every_orientation(void** state) {
    static const gpst_format formats[] = {GPST_FORMAT_GRAY, GPST_FORMAT_RGB, GPST_FORMAT_RGBA};
    static const gpst_dtype dtypes[] = {GPST_DTYPE_U8, GPST_DTYPE_U16, GPST_DTYPE_F32};
    static uint8_t from_data[HEIGHT * (WIDTH * 16 + 16)], to_data[WIDTH * (WIDTH * 16 + 16) + 64];
    (void)state;
    for (int f = 0; f < 3; f++)
        for (int d = 0; d < 3; d++)
            for (uint32_t o = 1; o <= 8; o++) {
                const size_t pixel = gpst_format_channels(formats[f]) * gpst_dtype_bytes(dtypes[d]);
                const uint32_t width = o >= 5 ? HEIGHT : WIDTH, height = o >= 5 ? WIDTH : HEIGHT;
                const size_t from_pitch = WIDTH * pixel + 16, to_pitch = width * pixel + 8;
                for (size_t i = 0; i < sizeof from_data; i++)
                    from_data[i] = (uint8_t)(i * 2654435761u >> 13);
                memset(to_data, 0xa5, sizeof to_data);
                const gpst_image from =
                    make(WIDTH, HEIGHT, formats[f], dtypes[d], (int64_t)from_pitch, from_data);
                const gpst_image to = make(width, height, formats[f], dtypes[d], (int64_t)to_pitch, to_data);
                assert_int_equal(gpst_image_orient(&from, o, &to), GPST_OK);
                for (uint32_t y = 0; y < HEIGHT; y++)
                    for (uint32_t x = 0; x < WIDTH; x++) {
                        uint32_t to_x = 0, to_y = 0;
                        place(o, x, y, &to_x, &to_y);
                        assert_memory_equal(to_data + to_y * to_pitch + to_x * pixel,
                                            from_data + y * from_pitch + x * pixel, pixel);
                    }
                for (uint32_t y = 0; y < height; y++) /* gaps stay as they were */
                    for (size_t i = width * pixel; i < to_pitch; i++)
                        assert_int_equal(to_data[y * to_pitch + i], 0xa5);
            }
}

static void upside_down_pitch(void** state) {
    static uint8_t from_data[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, to_data[12];
    static const uint8_t wanted[12] = {1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12}; /* 4x3 from below, turned right */
    (void)state;
    const gpst_image from = make(4, 3, GPST_FORMAT_GRAY, GPST_DTYPE_U8, -4, from_data + 8);
    const gpst_image to = make(3, 4, GPST_FORMAT_GRAY, GPST_DTYPE_U8, 0, to_data);
    assert_int_equal(gpst_image_orient(&from, 6, &to), GPST_OK);
    assert_memory_equal(to_data, wanted, 12);
}

static void refused(gpst_result result, const char* rule) {
    assert_int_equal(result, GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), rule));
}

static void refusals(void** state) {
    uint8_t a[64] = {0}, b[64] = {0};
    (void)state;
    gpst_image from = make(4, 3, GPST_FORMAT_GRAY, GPST_DTYPE_U8, 0, a);
    gpst_image to = make(3, 4, GPST_FORMAT_GRAY, GPST_DTYPE_U8, 0, b);
    refused(gpst_image_orient(NULL, 6, &to), "from and to: required");
    refused(gpst_image_orient(&from, 0, &to), "orientation=0");
    refused(gpst_image_orient(&from, 9, &to), "orientation=9");
    refused(gpst_image_orient(&from, 3, &to), "4x3 with orientation 3 is 4x3");
    to.dtype = GPST_DTYPE_U16;
    refused(gpst_image_orient(&from, 6, &to), "must be from's");
    to.dtype = GPST_DTYPE_U8;
    from.layout = to.layout = GPST_LAYOUT_CHW;
    refused(gpst_image_orient(&from, 6, &to), "interleaved");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_orientation),
        cmocka_unit_test(upside_down_pitch),
        cmocka_unit_test(refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
