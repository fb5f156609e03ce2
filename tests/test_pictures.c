/* tests/test_pictures.c -- picture files whose pixels lie in them one after the other, by the public functions: what is
   read, what is written, and what is refused. Their headers in every spelling are test_codec_foreign's, and files of
   every kind test_codec_files'. */
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
        {"P6 2 1 65535 rg", "PNM: 2 bytes of pixels; 2x1 pixels are 12", 15, GPST_ERROR_TRUNCATED, GPST_FILE_PNM},
        {"P6 2 1 65536 rg", "1 to 65535", 15, GPST_ERROR_FORMAT, GPST_FILE_PNM},
        {"P5 2 1 0 rg", "1 to 65535", 11, GPST_ERROR_FORMAT, GPST_FILE_PNM},
        {"GIF89a", "the file is GIF, which is not read: convert it first (JPEG, PNM, PAM and .npy are read)", 6,
         GPST_ERROR_UNSUPPORTED, GPST_FILE_UNKNOWN},
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

/* ---- what does not lie in the file as in memory --------------------------------------------------- */

typedef struct converted {
    const char* header; /* of .npy: the dictionary */
    const char* pixels;
    size_t pixels_bytes;
    uint32_t width, height;
    gpst_format format;
    gpst_dtype dtype;
    const void* wanted;
} converted;

static size_t write_file(const converted* from) {
    const size_t length = strlen(from->header), bytes = from->header[0] == '{' ? 10 + length : length;
    memcpy(file, "\x93NUMPY\1\0", 8);
    file[8] = (uint8_t)length;
    file[9] = 0;
    memcpy(file + bytes - length, from->header, length);
    memcpy(file + bytes, from->pixels, from->pixels_bytes);
    return bytes + from->pixels_bytes;
}

#define NPY(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape "}"

static const uint8_t from_101[3] = {0, 129, 255}; /* 128.8; 102 is more than 101 */
static const uint8_t from_2[3] = {0, 128, 255};   /* a half goes up */
static const uint16_t from_1023[3] = {0, 32800, 65535};
static const uint16_t words[6] = {0x0102, 0x0304, 0x0506, 0x0708, 0x090a, 0x0b0c};
static const uint8_t gray_alpha[8] = {9, 9, 9, 200, 7, 7, 7, 100};
static const uint16_t gray_alpha_words[4] = {0x0909, 0x0909, 0x0909, 0x0102};
static const uint8_t truth[4] = {0, 255, 255, 0};
static const float reals[2] = {1.0f, 0.1f};
static const uint8_t rows_of_columns[6] = {1, 2, 3, 4, 5, 6}; /* 3 x 2 pixels */
static const uint8_t colors_of_columns[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}; /* 2 x 2 pixels of RGB */

static const converted conversions[] = {
    {"P5 3 1 101 ", "\0\63\146", 3, 3, 1, GPST_FORMAT_GRAY, GPST_DTYPE_U8, from_101},
    {"P5 3 1 2 ", "\0\1\2", 3, 3, 1, GPST_FORMAT_GRAY, GPST_DTYPE_U8, from_2},
    {"P5 3 1 1023 ", "\0\0\2\0\377\377", 6, 3, 1, GPST_FORMAT_GRAY, GPST_DTYPE_U16, from_1023},
    {"P6 2 1 65535 ", "\1\2\3\4\5\6\7\10\11\12\13\14", 12, 2, 1, GPST_FORMAT_RGB, GPST_DTYPE_U16, words},
    {"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nENDHDR\n", "\11\310\7\144", 4, 2, 1, GPST_FORMAT_RGBA,
     GPST_DTYPE_U8, gray_alpha},
    {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 65535\nENDHDR\n", "\11\11\1\2", 4, 1, 1, GPST_FORMAT_RGBA,
     GPST_DTYPE_U16, gray_alpha_words},
    {NPY("|b1", "False", "(2, 2)"), "\0\1\2\0", 4, 2, 2, GPST_FORMAT_GRAY, GPST_DTYPE_U8, truth},
    {NPY(">u2", "False", "(1, 2, 3)"), "\1\2\3\4\5\6\7\10\11\12\13\14", 12, 2, 1, GPST_FORMAT_RGB, GPST_DTYPE_U16,
     words},
    {NPY(">f4", "False", "(1, 2)"), "\x3f\x80\0\0\x3d\xcc\xcc\xcd", 8, 2, 1, GPST_FORMAT_GRAY, GPST_DTYPE_F32, reals},
    {NPY("<f8", "False", "(1, 2)"), "\0\0\0\0\0\0\xf0\x3f\x9a\x99\x99\x99\x99\x99\xb9\x3f", 16, 2, 1, GPST_FORMAT_GRAY,
     GPST_DTYPE_F32, reals},
    {NPY(">f8", "True", "(2, 1)"), "\x3f\xf0\0\0\0\0\0\0\x3f\xb9\x99\x99\x99\x99\x99\x9a", 16, 1, 2, GPST_FORMAT_GRAY,
     GPST_DTYPE_F32, reals},
    {NPY("|u1", "True", "(2, 3)"), "\1\4\2\5\3\6", 6, 3, 2, GPST_FORMAT_GRAY, GPST_DTYPE_U8, rows_of_columns},
    {NPY("|u1", "True", "(2L, 3L)"), "\1\4\2\5\3\6", 6, 3, 2, GPST_FORMAT_GRAY, GPST_DTYPE_U8,
     rows_of_columns}, /* as Python 2 wrote them */
    {"{u'descr': u'|u1', u'fortran_order': True, u'shape': (2L, 3L, 1L,), }", "\1\4\2\5\3\6", 6, 3, 2,
     GPST_FORMAT_GRAY, GPST_DTYPE_U8, rows_of_columns},
    {NPY("|u1", "True", "(2, 2, 3)"), "\1\7\4\12\2\10\5\13\3\11\6\14", 12, 2, 2, GPST_FORMAT_RGB, GPST_DTYPE_U8,
     colors_of_columns},
};

/* The header says so by an offset of 0; rows have gaps, which stay as they are. */
static void test_pixels_that_are_converted(void** state) {
    (void)state;
    for (size_t i = 0; i < sizeof conversions / sizeof conversions[0]; i++) {
        const converted* const from = &conversions[i];
        const size_t bytes = write_file(from);
        uint8_t pixels[64];
        gpst_file_kind kind;
        gpst_image shape;
        size_t offset = 1;
        if (GPST_FAILED(gpst_picture_read_header(file, bytes, &kind, &shape, &offset)))
            fail_msg("%s: %s", from->header, gpst_last_reason());
        assert_int_equal(offset, 0);
        assert_int_equal(shape.width, from->width);
        assert_int_equal(shape.height, from->height);
        assert_int_equal(shape.format, from->format);
        assert_int_equal(shape.dtype, from->dtype);
        const size_t row_bytes = (size_t)shape.pitch_bytes;
        memset(pixels, 0xA5, sizeof pixels);
        shape.data = pixels;
        shape.pitch_bytes += 4;
        assert_int_equal(gpst_picture_decode(file, bytes, &shape), GPST_OK);
        for (uint32_t y = 0; y < from->height; y++) {
            const uint8_t* const row = pixels + (row_bytes + 4) * y;
            if (memcmp(row, (const uint8_t*)from->wanted + row_bytes * y, row_bytes) != 0)
                fail_msg("%s: row %u", from->header, y);
            assert_memory_equal(row + row_bytes, "\xa5\xa5\xa5\xa5", 4);
        }
    }
}

/* Native pixels by the same function; and whom it refuses. */
static void test_decode(void** state) {
    static const char text[] = "P6\n1 2\n255\nrgbRGB";
    uint8_t pixels[16];
    gpst_image image = image_of(pixels, 1, 2, GPST_FORMAT_RGB, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    (void)state;
    memset(pixels, 0xA5, sizeof pixels);
    image.pitch_bytes = -4;
    image.data = pixels + 4;
    assert_int_equal(gpst_picture_decode(text, sizeof text - 1, &image), GPST_OK);
    assert_memory_equal(pixels, "RGB\xa5rgb\xa5", 8);
    image = image_of(pixels, 1, 2, GPST_FORMAT_RGB, GPST_DTYPE_U8, GPST_LAYOUT_HWC);
    assert_int_equal(gpst_picture_decode(text, sizeof text - 2, &image), GPST_ERROR_TRUNCATED);
    assert_int_equal(gpst_picture_decode("GIF89a", 6, &image), GPST_ERROR_UNSUPPORTED);
    assert_int_equal(gpst_picture_decode(text, sizeof text - 1, NULL), GPST_ERROR_ARGUMENT);
    image.format = GPST_FORMAT_BGR;
    assert_int_equal(gpst_picture_decode(text, sizeof text - 1, &image), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_picture_decode: image: not of the shape"));
    image.format = GPST_FORMAT_RGB;
    image.height = 1;
    assert_int_equal(gpst_picture_decode(text, sizeof text - 1, &image), GPST_ERROR_ARGUMENT);
    image.height = 2;
    image.dtype = GPST_DTYPE_U16;
    assert_int_equal(gpst_picture_decode(text, sizeof text - 1, &image), GPST_ERROR_ARGUMENT);
    image.dtype = GPST_DTYPE_U8;
    image.layout = GPST_LAYOUT_CHW;
    assert_int_equal(gpst_picture_decode(text, sizeof text - 1, &image), GPST_ERROR_ARGUMENT);
    image.data = NULL;
    assert_int_equal(gpst_picture_decode(text, sizeof text - 1, &image), GPST_ERROR_ARGUMENT);
}

/* ---- names ------------------------------------------------------------------------------------------ */

static void test_names(void** state) {
    static const struct {
        const char *name, *first;
        size_t bytes;
    } cases[] = {
        {"", "", 0},
        {"", "hello, world, this is a text", 28},
        {"PNM", "P6 ", 3},
        {"NPY", "\x93NUMPY", 6},
        {"JPEG", "\xff\xd8\xff", 3},
        {"PNG", "\x89PNG\r\n\x1a\n", 8},
        {"", "\x89PNG\r\n\x1a", 7},
        {"WebP", "RIFF\1\0\0\0WEBP", 12},
        {"AVI video", "RIFF\1\0\0\0AVI ", 12},
        {"", "RIFF\1\0\0\0WAVE", 12},
        {"TIFF", "II*\0\xff\1\0\0AVI ", 12}, /* pixels */
        {"TIFF", "II*\0\xff\1\0\0CR\2\0", 12},
        {"GIF", "GIF87a", 6},
        {"BMP", "BM\1\0\0\0\0\0\0\0\0\0\0\0\x28\0\0\0", 18},
        {"", "BMX goes fast, they say", 23},
        {"PSD", "8BPS", 4},
        {"EXR", "\x76\x2f\x31\x01", 4},
        {"HDR", "#?RADIANCE\n", 11},
        {"HDR", "#?RGBE\n", 7},
        {"PDF", "%PDF-1.7", 8},
        {"JPEG XL", "\xff\x0a\xfa", 3},
        {"JPEG XL", "\0\0\0\x0cJXL \r\n\x87\n", 12},
        {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n", 12},
        {"JPEG 2000", "\xff\x4f\xff\x51", 4},
        {"HEIC", "\0\0\0\x18" "ftypheic", 12},
        {"HEIC", "\0\0\0\x18" "ftypmif1", 12},
        {"AVIF", "\0\0\0\x18" "ftypavif", 12},
        {"MP4 video", "\0\0\0\x18" "ftypisom", 12},
        {"MOV video", "\0\0\0\x18" "ftypqt  ", 12},
        {"MOV video", "\0\0\0\x18" "moov", 8},
        {"MOV video", "\0\0\0\x08" "wide", 8},
        {"camera raw", "\0\0\0\x18" "ftypcrx ", 12},
        {"camera raw", "FUJIFILMCCD-RAW 0201", 20},
        {"camera raw", "IIU\0\x18\0\0\0", 8},
        {"camera raw", "II*\0\x10\0\0\0CR\2\0", 12},
        {"Matroska video", "\x1a\x45\xdf\xa3", 4},
        {"TIFF", "II*\0", 4},
        {"TIFF", "MM\0+\0\x08\0\0", 8},
        {"TIFF", "MM\0*\0\0\0\x08\0\x01\0\xfe\0\x04\0\0\0\x01\0\0\0\x02", 22}, /* a page of several */
        {"TIFF (a thumbnail first)", "MM\0*\0\0\0\x08\0\x01\0\xfe\0\x04\0\0\0\x01\0\0\0\x01", 22},
        {"camera raw (DNG)", "II*\0\x08\0\0\0\1\0\x12\xc6\1\0\4\0\0\0\1\4\0\0", 22},
        {"TIFF", "II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\xfe\0\4\0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0",
         44},
        {"TIFF (a thumbnail first)",
         "MM\0+\0\x08\0\0\0\0\0\0\0\0\0\x10\0\0\0\0\0\0\0\1\0\xfe\0\4\0\0\0\0\0\0\0\1\0\0\0\1\0\0\0\0", 44},
        {"camera raw (DNG)",
         "II+\0\x08\0\0\0\x10\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\x12\xc6\1\0\4\0\0\0\0\0\0\0\1\4\0\0\0\0\0\0", 44},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        void* const copy = malloc(cases[i].bytes + 1); /* ends where the file does, for the sanitizers */
        assert_non_null(copy);
        void* const at = (uint8_t*)copy + 1;
        memcpy(at, cases[i].first, cases[i].bytes);
        if (strcmp(gpst_picture_name(at, cases[i].bytes), cases[i].name) != 0)
            fail_msg("case %zu: \"%s\" instead of \"%s\"", i, gpst_picture_name(at, cases[i].bytes), cases[i].name);
        free(copy);
    }
    assert_string_equal(gpst_picture_name(NULL, 4), "");
}

/* ---- written ---------------------------------------------------------------------------------------- */

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
        cmocka_unit_test(test_npy_types),            cmocka_unit_test(test_pixels_that_are_converted),
        cmocka_unit_test(test_decode),               cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
