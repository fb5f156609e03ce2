/* tests/test_codec.c -- the command's codecs: round trips, how files are written, refusals, truncation, garbage. */
#include "test_codec.h"

#include <math.h>

static const codec_options options = {95, 444, NULL, 0, NULL, 0};

static uint8_t sample(const gpst_image* image, uint32_t x, uint32_t y, uint32_t c) {
    const int64_t pitch = image->pitch_bytes ? image->pitch_bytes : (int64_t)gpst_image_row_bytes(image);
    return ((const uint8_t*)image->data)[(ptrdiff_t)(pitch * (int64_t)y) +
                                         (ptrdiff_t)(x * gpst_format_channels(image->format) + c)];
}

static size_t encode(codec_kind kind, const gpst_image* image, const codec_options* with) {
    const size_t bound = codec_encode_bound(kind, image, with);
    assert_true(bound > 0 && bound <= ROOM);
    memset(file, 0xA5, sizeof file);
    size_t bytes = bound;
    expect(GPST_OK, codec_encode(self, kind, image, with, file, &bytes, reason));
    assert_true(bytes > 0 && bytes <= bound);
    for (size_t i = bound; i < bound + GUARD; i++)
        assert_int_equal(file[i], 0xA5);
    return bytes;
}

/* ---- round trips ------------------------------------------------------------------ */

static void round_trip(codec_kind kind, uint32_t width, uint32_t height, gpst_format format, int64_t pitch) {
    gpst_image source = make_image(pixels, width, height, format), image;
    codec_kind found;
    source.pitch_bytes = pitch;
    if (pitch < 0)
        source.data = pixels + (ptrdiff_t)(-pitch * (int64_t)(height - 1));
    draw(&source, width * 131 + height);
    const size_t bytes = encode(kind, &source, &options);
    expect(GPST_OK, decode(file, bytes, &found, &image));
    assert_int_equal(found, kind);
    assert_int_equal(image.width, width);
    assert_int_equal(image.height, height);
    const bool swapped = format == GPST_FORMAT_BGR && kind != CODEC_NPY;
    assert_int_equal(image.format, format == GPST_FORMAT_BGR ? GPST_FORMAT_RGB : format);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < gpst_format_channels(format); c++)
                assert_int_equal(sample(&image, x, y, c), sample(&source, x, y, swapped ? 2 - c : c));
}

static void round_trips(codec_kind kind) {
    static const uint32_t sizes[][2] = {{1, 1}, {1, 7}, {9, 1}, {17, 5}, {64, 33}};
    static const gpst_format formats[] = {GPST_FORMAT_GRAY, GPST_FORMAT_RGB, GPST_FORMAT_BGR,
                                          GPST_FORMAT_RGBA};
    need(kind);
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
            const int64_t row = (int64_t)(sizes[s][0] * gpst_format_channels(formats[f]));
            round_trip(kind, sizes[s][0], sizes[s][1], formats[f], 0);
            round_trip(kind, sizes[s][0], sizes[s][1], formats[f], row + 3);
            round_trip(kind, sizes[s][0], sizes[s][1], formats[f], -(row + 1));
        }
}

static void test_pnm_round_trip(void** state) {
    (void)state;
    round_trips(CODEC_PNM);
}

static void test_npy_round_trip(void** state) {
    (void)state;
    round_trips(CODEC_NPY);
}

static void test_png_round_trip(void** state) {
    (void)state;
    round_trips(CODEC_PNG);
}

static void test_tiff_round_trip(void** state) {
    (void)state;
    round_trips(CODEC_TIFF);
}

/* What cannot be compressed at all must fit into the bound, too. */
static void test_png_noise_fits(void** state) {
    (void)state;
    need(CODEC_PNG);
    uint64_t seed = test_seed(7);
    for (uint32_t width = 1; width <= 600; width = width * 2 + 1) {
        const gpst_image source = make_image(pixels, width, 300, GPST_FORMAT_RGB);
        for (size_t i = 0; i < codec_plain_bytes(&source); i++)
            pixels[i] = (uint8_t)test_random(&seed);
        codec_kind kind;
        gpst_image image;
        const size_t bytes = encode(CODEC_PNG, &source, &options);
        expect(GPST_OK, decode(file, bytes, &kind, &image));
        assert_memory_equal(decoded, pixels, codec_plain_bytes(&source));
    }
}

static double psnr(const gpst_image* a, const gpst_image* b, bool swapped) {
    double sum = 0;
    const uint32_t channels = gpst_format_channels(b->format);
    for (uint32_t y = 0; y < b->height; y++)
        for (uint32_t x = 0; x < b->width; x++)
            for (uint32_t c = 0; c < channels; c++) {
                const double d = sample(a, x, y, swapped ? 2 - c : c) - sample(b, x, y, c);
                sum += d * d;
            }
    return 10 * log10(255.0 * 255.0 * b->width * b->height * channels / (sum > 0 ? sum : 1));
}

static void jpeg_round_trip(gpst_format format, int chroma, int64_t pitch, double wanted) {
    codec_options with = {95, 444, NULL, 0, NULL, 0};
    gpst_image source = make_image(pixels, 61, 47, format), image;
    codec_kind kind;
    with.chroma = chroma;
    source.pitch_bytes = pitch;
    if (pitch < 0)
        source.data = pixels + (ptrdiff_t)(-pitch * 46);
    for (uint32_t y = 0; y < 47; y++)
        for (uint32_t x = 0; x < 61; x++)
            for (uint32_t c = 0; c < gpst_format_channels(format); c++)
                ((uint8_t*)
                     source.data)[(ptrdiff_t)((pitch ? pitch : (int64_t)gpst_image_row_bytes(&source)) * y) +
                                  (ptrdiff_t)(x * gpst_format_channels(format) + c)] =
                    (uint8_t)(100 + 60 * sin(0.07 * x + c) + 40 * cos(0.09 * y - c));
    expect(GPST_OK, decode(file, encode(CODEC_JPEG, &source, &with), &kind, &image));
    assert_int_equal(kind, CODEC_JPEG);
    assert_int_equal(image.format, format == GPST_FORMAT_GRAY ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB);
    const double found = psnr(&source, &image, format == GPST_FORMAT_BGR);
    if (found < wanted)
        fail_msg("format %d, chroma %d: %.1f dB, %.1f wanted", (int)format, chroma, found, wanted);
}

static void test_jpeg_round_trip(void** state) {
    (void)state;
    need(CODEC_JPEG);
    jpeg_round_trip(GPST_FORMAT_GRAY, 444, 0, 45);
    jpeg_round_trip(GPST_FORMAT_RGB, 444, 0, 40);
    jpeg_round_trip(GPST_FORMAT_RGB, 444, 61 * 3 + 5, 40);
    jpeg_round_trip(GPST_FORMAT_RGB, 444, -61 * 3, 40);
    jpeg_round_trip(GPST_FORMAT_BGR, 444, 0, 40);
    jpeg_round_trip(GPST_FORMAT_RGBA, 444, 0, 40);
    jpeg_round_trip(GPST_FORMAT_RGB, 422, 0, 36);
    jpeg_round_trip(GPST_FORMAT_RGB, 420, 0, 34);
}

/* Decoding goes where the image says, and nowhere else. */
static void test_decode_into_pitch(void** state) {
    static const codec_kind kinds[] = {CODEC_JPEG, CODEC_PNG, CODEC_PNM, CODEC_NPY, CODEC_TIFF, CODEC_WEBP};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if (!codec_available(kinds[k]))
            continue;
        const gpst_image source = make_image(pixels, 19, 7, GPST_FORMAT_RGB);
        gpst_image image, mirrored;
        codec_kind kind;
        draw(&source, 3);
        const size_t bytes = encode(kinds[k], &source, &options);
        expect(GPST_OK, decode(file, bytes, &kind, &image));
        uint8_t* other = pixels + 100000;
        memset(other, 0xA5, 70 * 7);
        mirrored = image;
        mirrored.data = other + 70 * 6;
        mirrored.pitch_bytes = -70;
        expect(GPST_OK, codec_decode(self, file, bytes, kind, &mirrored, reason));
        for (uint32_t y = 0; y < 7; y++) {
            assert_memory_equal(other + 70 * (6 - y), decoded + 57 * y, 57);
            for (size_t i = 57; i < 70; i++)
                assert_int_equal(other[70 * y + i], 0xA5);
        }
    }
}

/* ---- writing ------------------------------------------------------------------------ */

static void test_npy_types_and_layouts(void** state) {
    static const float values[6] = {0.5f, -1.0f, 2.0f, 3.25f, 1e-3f, 65504.0f};
    (void)state;
    gpst_image image = make_image(pixels, 2, 1, GPST_FORMAT_RGB);
    memcpy(pixels, values, sizeof values);
    image.dtype = GPST_DTYPE_F32;
    size_t bytes = encode(CODEC_NPY, &image, &options);
    const char* header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2, 3), }";
    assert_memory_equal(file, "\x93NUMPY\x01\x00\x76\x00", 10);
    assert_memory_equal(file + 10, header, strlen(header));
    assert_int_equal(file[127], '\n');
    assert_int_equal(bytes, 128 + sizeof values);
    assert_memory_equal(file + 128, values, sizeof values);

    image.layout = GPST_LAYOUT_CHW;
    image.pitch_bytes = 8;
    bytes = encode(CODEC_NPY, &image, &options);
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 1, 2), }";
    assert_memory_equal(file + 10, header, strlen(header));
    assert_memory_equal(file + 128, values, sizeof values);

    image.dtype = GPST_DTYPE_F16;
    image.pitch_bytes = 6; /* a gap of one half behind each row */
    bytes = encode(CODEC_NPY, &image, &options);
    assert_int_equal(bytes, 128 + 12);
    header = "{'descr': '<f2', 'fortran_order': False, 'shape': (3, 1, 2), }";
    assert_memory_equal(file + 10, header, strlen(header));
    for (size_t c = 0; c < 3; c++)
        assert_memory_equal(file + 128 + 4 * c, pixels + 6 * c, 4);

    image = make_image(pixels, 2, 1, GPST_FORMAT_GRAY);
    encode(CODEC_NPY, &image, &options);
    header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2), }";
    assert_memory_equal(file + 10, header, strlen(header));
}

static void test_encode_refuses(void** state) {
    static const codec_kind pictures[] = {CODEC_JPEG, CODEC_PNG, CODEC_PNM, CODEC_WEBP};
    (void)state;
    for (size_t k = 0; k < 4; k++) {
        if (!codec_available(pictures[k]))
            continue;
        gpst_image image = make_image(pixels, 16, 16, GPST_FORMAT_RGB);
        size_t bytes = codec_encode_bound(pictures[k], &image, &options) - 1;
        memset(file, 0xA5, 64);
        expect(GPST_ERROR_ARGUMENT, codec_encode(self, pictures[k], &image, &options, file, &bytes, reason));
        assert_int_equal(file[0], 0xA5);
        bytes = ROOM;
        image.layout = GPST_LAYOUT_CHW;
        assert_int_equal(codec_encode_bound(pictures[k], &image, &options), 0);
        expect(GPST_ERROR_UNSUPPORTED,
               codec_encode(self, pictures[k], &image, &options, file, &bytes, reason));
        image.layout = GPST_LAYOUT_HWC;
        image.dtype = GPST_DTYPE_F32;
        expect(GPST_ERROR_UNSUPPORTED,
               codec_encode(self, pictures[k], &image, &options, file, &bytes, reason));
        image = make_image(pixels, CODEC_MAX_SIDE + 1, 1, GPST_FORMAT_BGR);
        expect(GPST_ERROR_UNSUPPORTED,
               codec_encode(self, pictures[k], &image, &options, file, &bytes, reason));
        image.width = 0;
        expect(GPST_ERROR_ARGUMENT, codec_encode(self, pictures[k], &image, &options, file, &bytes, reason));
    }
    const gpst_image image = make_image(pixels, 16, 16, GPST_FORMAT_RGB);
    static const codec_options wrong[] = {
        {0, 444, NULL, 0, NULL, 0}, {101, 444, NULL, 0, NULL, 0}, {95, 411, NULL, 0, NULL, 0}};
    for (size_t i = 0; codec_available(CODEC_JPEG) && i < 3; i++)
        assert_int_equal(codec_encode_bound(CODEC_JPEG, &image, &wrong[i]), 0);
    assert_int_equal(codec_encode_bound(CODEC_UNKNOWN, &image, &options), 0);
    assert_string_equal(codec_extension(CODEC_PNM), "ppm");
    assert_string_equal(codec_extension(CODEC_JPEG), "jpg");
    assert_false(codec_available(CODEC_UNKNOWN));
}

/* ---- refusals --------------------------------------------------------------------------- */

static void test_unknown_and_raw(void** state) {
    codec_kind kind;
    gpst_image image;
    codec_raw raw = {3, 2, GPST_FORMAT_RGB};
    (void)state;
    expect(GPST_ERROR_TRUNCATED, read_header("", 0, &kind, &image));
    expect(GPST_ERROR_FORMAT, read_header("just some text\n", 15, &kind, &image));
    assert_int_equal(kind, CODEC_UNKNOWN);
    memset(file, 9, 18);
    expect(GPST_OK, codec_read_header(self, file, 18, &raw, &kind, &image, reason));
    assert_int_equal(kind, CODEC_RAW);
    assert_int_equal(image.width, 3);
    image.data = decoded;
    memset(decoded, 0xA5, 32);
    expect(GPST_OK, codec_decode(self, file, 18, kind, &image, reason));
    assert_memory_equal(decoded, file, 18);
    assert_int_equal(decoded[18], 0xA5);
    expect(GPST_ERROR_TRUNCATED, codec_decode(self, file, 17, kind, &image, reason));
    expect(GPST_ERROR_TRUNCATED, codec_read_header(self, file, 17, &raw, &kind, &image, reason));
    expect(GPST_ERROR_FORMAT, codec_read_header(self, file, 19, &raw, &kind, &image, reason));
    raw.width = 40000;
    expect(GPST_ERROR_UNSUPPORTED, codec_read_header(self, file, 18, &raw, &kind, &image, reason));
    raw.width = 0;
    expect(GPST_ERROR_FORMAT, codec_read_header(self, file, 18, &raw, &kind, &image, reason));
}

/* An image that is not of the file's shape is refused before a byte is written. */
static void test_wrong_shape(void** state) {
    codec_kind kind;
    gpst_image image;
    (void)state;
    const gpst_image source = make_image(pixels, 16, 8, GPST_FORMAT_RGB);
    draw(&source, 1);
    const size_t bytes = encode(CODEC_PNM, &source, &options);
    expect(GPST_OK, decode(file, bytes, &kind, &image));
    image.width = 15;
    expect(GPST_ERROR_ARGUMENT, codec_decode(self, file, bytes, kind, &image, reason));
    image.width = 16;
    image.format = GPST_FORMAT_GRAY;
    expect(GPST_ERROR_ARGUMENT, codec_decode(self, file, bytes, kind, &image, reason));
    image.format = GPST_FORMAT_RGB;
    image.data = NULL;
    expect(GPST_ERROR_ARGUMENT, codec_decode(self, file, bytes, kind, &image, reason));
    image.data = decoded;
    expect(GPST_ERROR_FORMAT, codec_decode(self, file, bytes, CODEC_UNKNOWN, &image, reason));
}

/* ---- damage --------------------------------------------------------------------------- */

static void test_every_truncation(void** state) {
    static const codec_kind kinds[] = {CODEC_PNM, CODEC_NPY, CODEC_PNG, CODEC_JPEG, CODEC_TIFF, CODEC_WEBP};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++)
        for (int alpha = 0; alpha < 2; alpha++) {
            codec_kind kind;
            gpst_image image;
            if (!codec_available(kinds[k]))
                continue;
            const gpst_image source = make_image(pixels, 23, 9, alpha ? GPST_FORMAT_RGBA : GPST_FORMAT_RGB);
            draw(&source, 11);
            const size_t bytes = encode(kinds[k], &source, &options);
            expect(GPST_OK, decode(file, bytes, &kind, &image));
            const size_t least = kinds[k] == CODEC_JPEG ? bytes - 2 : bytes; /* its end marker is no picture */
            for (size_t cut = 0; cut < least; cut++)
                if (!GPST_FAILED(decode(file, cut, &kind, &image)))
                    fail_msg("%s: the first %zu of %zu bytes pass", codec_extension(kinds[k]), cut, bytes);
        }
}

static void test_garbage(void** state) {
    static const codec_kind kinds[] = {CODEC_PNM, CODEC_NPY, CODEC_PNG, CODEC_JPEG, CODEC_TIFF, CODEC_WEBP};
    uint64_t seed = test_seed(20240607), passed = 0, failed = 0;
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if (!codec_available(kinds[k]))
            continue;
        const gpst_image source = make_image(pixels, 33, 17, GPST_FORMAT_RGB);
        draw(&source, 2);
        const size_t bytes = encode(kinds[k], &source, &options);
        uint8_t* broken = pixels + 100000;
        for (int i = 0; i < 3000; i++) {
            codec_kind kind;
            gpst_image image;
            const size_t kept = test_random(&seed) % 8 ? bytes : test_random(&seed) % bytes;
            memcpy(broken, file, bytes);
            for (uint64_t n = 1 + test_random(&seed) % 6; n > 0; n--) {
                const size_t range = test_random(&seed) % 2 && bytes > 64 ? 64 : bytes;
                broken[test_random(&seed) % range] = (uint8_t)test_random(&seed);
            }
            gpst_result result = read_header(broken, kept, &kind, &image);
            if (!GPST_FAILED(result) && codec_plain_bytes(&image) > ROOM)
                continue;
            result = decode(broken, kept, &kind, &image);
            if (GPST_FAILED(result))
                assert_string_not_equal(reason, "");
            *(GPST_FAILED(result) ? &failed : &passed) += 1;
        }
    }
    assert_true(passed > 0 && failed > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pnm_round_trip),
        cmocka_unit_test(test_npy_round_trip),
        cmocka_unit_test(test_png_round_trip),
        cmocka_unit_test(test_tiff_round_trip),
        cmocka_unit_test(test_png_noise_fits),
        cmocka_unit_test(test_jpeg_round_trip),
        cmocka_unit_test(test_decode_into_pitch),
        cmocka_unit_test(test_npy_types_and_layouts),
        cmocka_unit_test(test_encode_refuses),
        cmocka_unit_test(test_unknown_and_raw),
        cmocka_unit_test(test_wrong_shape),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
