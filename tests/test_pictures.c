/* tests/test_pictures.c -- picture files whose pixels lie in them as they are, by the public functions: what is read,
   what is written, and what is refused. Their headers in every spelling are test_codec's. */
#include "test.h"

static uint8_t file[4096];

static gpst_image image_of(void* data, uint32_t width, uint32_t height, gpst_format format, gpst_dtype dtype,
                           gpst_layout layout) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width;
    image.height = height;
    image.format = format;
    image.dtype = dtype;
    image.layout = layout;
    return image;
}

static void test_header_of_ppm(void** state) {
    static const char text[] = "P6 # a comment\n2 1\n255\nrgbRGB";
    gpst_file_kind kind;
    gpst_image shape;
    size_t offset = 0;
    (void)state;
    assert_int_equal(gpst_picture_read_header(text, sizeof text - 1, &kind, &shape, &offset), GPST_OK);
    assert_int_equal(kind, GPST_FILE_PNM);
    assert_int_equal(shape.width, 2);
    assert_int_equal(shape.height, 1);
    assert_int_equal(shape.format, GPST_FORMAT_RGB);
    assert_int_equal(shape.dtype, GPST_DTYPE_U8);
    assert_int_equal(shape.pitch_bytes, 6);
    assert_null(shape.data);
    assert_memory_equal(text + offset, "rgbRGB", 6);
}

/* Nothing is left of a shape where the file cannot be read; the kind is told all the same. */
static void test_files_that_are_refused(void** state) {
    static const struct {
        const char *text, *sentence;
        size_t bytes;
        gpst_result result;
        gpst_file_kind kind;
    } cases[] = {
        {"", "the file is empty", 0, GPST_ERROR_TRUNCATED, GPST_FILE_UNKNOWN},
        {"\xff\xd8\xfe", "not a PNM, PAM, .npy or JPEG file by its first bytes", 3, GPST_ERROR_FORMAT, GPST_FILE_UNKNOWN},
        {"P6 2 1 255 rgbRG", "PNM: 5 bytes of pixels; 2x1 pixels are 6", 16, GPST_ERROR_TRUNCATED, GPST_FILE_PNM},
        {"P6 2 1 65535 rg", "255", 15, GPST_ERROR_UNSUPPORTED, GPST_FILE_PNM},
        {"\x93NUMPY\x01", "NPY: the header ends too early", 7, GPST_ERROR_TRUNCATED, GPST_FILE_NPY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const gpst_image nothing = GPST_ZERO;
        gpst_file_kind kind;
        gpst_image shape;
        size_t offset = 1;
        memset(&shape, 1, sizeof shape);
        assert_int_equal(gpst_picture_read_header(cases[i].text, cases[i].bytes, &kind, &shape, &offset),
                         cases[i].result);
        assert_non_null(strstr(gpst_last_reason(), cases[i].sentence));
        assert_int_equal(kind, cases[i].kind);
        assert_memory_equal(&shape, &nothing, sizeof shape);
        assert_int_equal(offset, 0);
    }
}

/* Rows with gaps and blue first, as other libraries have them, are written as the format wants them. */
static void test_ppm_of_a_bgr_picture(void** state) {
    uint8_t pixels[16] = {3, 2, 1, 6, 5, 4, 99, 99, 9, 8, 7, 12, 11, 10, 99, 99};
    static const uint8_t wanted[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    gpst_image image = image_of(pixels, 2, 2, GPST_FORMAT_BGR, GPST_DTYPE_U8, GPST_LAYOUT_HWC), shape;
    gpst_file_kind kind;
    size_t bytes = 0, told = 0, offset = 0;
    (void)state;
    image.pitch_bytes = 8;
    assert_int_equal(gpst_picture_encode(GPST_FILE_PNM, &image, NULL, &told), GPST_OK);
    bytes = told - 1;
    assert_int_equal(gpst_picture_encode(GPST_FILE_PNM, &image, file, &bytes), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_picture_encode: bytes="));
    bytes = sizeof file;
    file[told] = 77;
    assert_int_equal(gpst_picture_encode(GPST_FILE_PNM, &image, file, &bytes), GPST_OK);
    assert_int_equal(bytes, told);
    assert_int_equal(file[told], 77);
    assert_int_equal(gpst_picture_read_header(file, bytes, &kind, &shape, &offset), GPST_OK);
    assert_int_equal(bytes - offset, sizeof wanted);
    assert_memory_equal(file + offset, wanted, sizeof wanted);
}

/* Of 16 bits the high byte is first, whatever the machine has; four channels are PAM. */
static void test_pnm_of_words(void** state) {
    uint16_t pixels[6] = {0x0102, 0x0304, 0x0506, 0x0708, 0x090a, 0x0b0c};
    static const char blue_first[] = "P6\n2 1\n65535\n\5\6\3\4\1\2\13\14\11\12\7\10";
    static const char gray[] = "P5\n2 1\n65535\n\1\2\3\4";
    static const char rgba[] =
        "P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 65535\nTUPLTYPE RGB_ALPHA\nENDHDR\n\1\2\3\4\5\6\7\10";
    const gpst_image images[3] = {image_of(pixels, 2, 1, GPST_FORMAT_BGR, GPST_DTYPE_U16, GPST_LAYOUT_HWC),
                                  image_of(pixels, 2, 1, GPST_FORMAT_GRAY, GPST_DTYPE_U16, GPST_LAYOUT_HWC),
                                  image_of(pixels, 1, 1, GPST_FORMAT_RGBA, GPST_DTYPE_U16, GPST_LAYOUT_HWC)};
    const char* const wanted[3] = {blue_first, gray, rgba};
    const size_t wanted_bytes[3] = {sizeof blue_first - 1, sizeof gray - 1, sizeof rgba - 1};
    (void)state;
    for (int i = 0; i < 3; i++) {
        size_t bytes = sizeof file;
        assert_int_equal(gpst_picture_encode(GPST_FILE_PNM, &images[i], file, &bytes), GPST_OK);
        assert_int_equal(bytes, wanted_bytes[i]);
        assert_memory_equal(file, wanted[i], bytes);
    }
}

/* Planes are written in their order, with the shape that NumPy reads; of PNM they are refused. */
static void test_npy_of_planes(void** state) {
    float values[6] = {0, 1, 2, 3, 4, 5};
    const gpst_image image = image_of(values, 2, 1, GPST_FORMAT_RGB, GPST_DTYPE_F32, GPST_LAYOUT_CHW);
    size_t bytes = sizeof file;
    (void)state;
    assert_int_equal(gpst_picture_encode(GPST_FILE_NPY, &image, file, &bytes), GPST_OK);
    assert_int_equal(bytes, 128 + sizeof values);
    assert_non_null(strstr((const char*)file + 10, "'shape': (3, 1, 2)"));
    assert_memory_equal(file + 128, values, sizeof values);
    bytes = sizeof file;
    assert_int_equal(gpst_picture_encode(GPST_FILE_PNM, &image, file, &bytes), GPST_ERROR_UNSUPPORTED);
    assert_int_equal(gpst_picture_encode(GPST_FILE_UNKNOWN, &image, file, &bytes), GPST_ERROR_ARGUMENT);
    const gpst_image planes = image_of(values, 2, 1, GPST_FORMAT_JPEG_420, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    assert_int_equal(gpst_picture_encode(GPST_FILE_NPY, &planes, file, &bytes), GPST_ERROR_UNSUPPORTED);
    assert_int_equal(gpst_picture_encode(GPST_FILE_PNM, &planes, file, &bytes), GPST_ERROR_UNSUPPORTED);
    assert_int_equal(gpst_picture_encode(GPST_FILE_NPY, NULL, file, &bytes), GPST_ERROR_ARGUMENT);
}

/* A tensor of many channels, as logits are. */
static void test_npy_of_logits(void** state) {
    static float values[21 * 4];
    gpst_image image = image_of(values, 2, 2, GPST_FORMAT_TENSOR, GPST_DTYPE_F32, GPST_LAYOUT_CHW);
    size_t bytes = sizeof file;
    (void)state;
    image.n_channels = 21;
    for (size_t i = 0; i < 21 * 4; i++)
        values[i] = (float)i;
    assert_int_equal(gpst_picture_encode(GPST_FILE_NPY, &image, file, &bytes), GPST_OK);
    assert_non_null(strstr((const char*)file + 10, "'shape': (21, 2, 2)"));
    assert_memory_equal(file + 128, values, sizeof values);
}

/* NumPy's names of the types that pictures have. */
static void test_npy_types(void** state) {
    static const struct {
        gpst_dtype dtype;
        const char* name;
    } types[] = {{GPST_DTYPE_U8, "'|u1'"},
                 {GPST_DTYPE_I8, "'|i1'"},
                 {GPST_DTYPE_U16, "'<u2'"},
                 {GPST_DTYPE_F16, "'<f2'"},
                 {GPST_DTYPE_F32, "'<f4'"}};
    static uint32_t value;
    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        const gpst_image image = image_of(&value, 1, 1, GPST_FORMAT_GRAY, types[i].dtype, GPST_LAYOUT_HWC);
        size_t bytes = sizeof file;
        assert_int_equal(gpst_picture_encode(GPST_FILE_NPY, &image, file, &bytes), GPST_OK);
        assert_non_null(strstr((const char*)file + 10, types[i].name));
    }
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_of_ppm),        cmocka_unit_test(test_files_that_are_refused),
        cmocka_unit_test(test_ppm_of_a_bgr_picture), cmocka_unit_test(test_pnm_of_words),
        cmocka_unit_test(test_npy_of_planes),        cmocka_unit_test(test_npy_of_logits),
        cmocka_unit_test(test_npy_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
