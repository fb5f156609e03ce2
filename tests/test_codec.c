/* tests/test_codec.c -- the command's codecs: round trips, what a header says, every truncation, garbage. */
#include "test.h"

#include <locale.h>
#include <math.h>

#include "../tools/gpustage/codec.c"
#include "../tools/gpustage/codec_jpeg.c"
#include "../tools/gpustage/codec_npy.c"
#include "../tools/gpustage/codec_png.c"
#include "../tools/gpustage/codec_pnm.c"

#define ROOM ((size_t)1 << 20)
#define GUARD 64

static uint8_t file[ROOM + GUARD], pixels[ROOM], decoded[ROOM];
static char reason[CODEC_REASON_BYTES];
static const codec_options options = {95, 444};
static codec* self;

static gpst_image make_image(void* data, uint32_t width, uint32_t height, gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width;
    image.height = height;
    image.format = format;
    return image;
}

/* Something smooth with a little noise. */
static void draw(const gpst_image* image, uint64_t seed) {
    const uint32_t channels = gpst_format_channels(image->format);
    const int64_t pitch = image->pitch_bytes ? image->pitch_bytes : (int64_t)gpst_image_row_bytes(image);
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width; x++)
            for (uint32_t c = 0; c < channels; c++)
                ((uint8_t*)image->data)[(ptrdiff_t)(pitch * (int64_t)y) + (ptrdiff_t)(x * channels + c)] =
                    (uint8_t)(40 + 3 * (x % 30) + 2 * (y % 40) + 13 * c + (test_random(&seed) & 3));
}

static uint8_t sample(const gpst_image* image, uint32_t x, uint32_t y, uint32_t c) {
    const int64_t pitch = image->pitch_bytes ? image->pitch_bytes : (int64_t)gpst_image_row_bytes(image);
    return ((const uint8_t*)image->data)[(ptrdiff_t)(pitch * (int64_t)y) +
                                         (ptrdiff_t)(x * gpst_format_channels(image->format) + c)];
}

static void expect(gpst_result wanted, gpst_result got) {
    if (wanted != got)
        fail_msg("%s instead of %s: %s", gpst_result_name(got), gpst_result_name(wanted), reason);
    if (GPST_FAILED(got))
        assert_string_not_equal(reason, "");
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

static gpst_result read_header(const void* data, size_t bytes, codec_kind* kind, gpst_image* shape) {
    return codec_read_header(self, data, bytes, NULL, kind, shape, reason);
}

/* Header and pixels from a copy that ends exactly where the file does. */
static gpst_result decode(const void* data, size_t bytes, codec_kind* kind, gpst_image* image) {
    void* copy = malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, data, bytes);
    gpst_result result = read_header(copy, bytes, kind, image);
    if (!GPST_FAILED(result)) {
        assert_true(codec_plain_bytes(image) <= ROOM);
        memset(decoded, 0xA5, sizeof decoded);
        image->data = decoded;
        result = codec_decode(self, copy, bytes, *kind, image, reason);
    }
    free(copy);
    return result;
}

/* A kind that the build lacks is skipped, and says so. */
static void need(codec_kind kind) {
    if (!codec_available(kind)) {
        print_message("%s is not compiled in\n", codec_extension(kind));
        skip();
    }
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
    codec_options with = {95, 444};
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
    static const codec_kind kinds[] = {CODEC_JPEG, CODEC_PNG, CODEC_PNM, CODEC_NPY};
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

    const uint64_t shape[4] = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX}, one = 7;
    assert_int_equal(codec_npy_header(GPST_DTYPE_F32, shape, 4, file), 192);
    assert_int_equal(codec_npy_header(GPST_DTYPE_U8, &one, 1, file), 128);
    assert_memory_equal(file + 10, "{'descr': '|u1', 'fortran_order': False, 'shape': (7,), }", 57);
}

static void test_encode_refuses(void** state) {
    static const codec_kind pictures[] = {CODEC_JPEG, CODEC_PNG, CODEC_PNM};
    (void)state;
    for (size_t k = 0; k < 3; k++) {
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
    static const codec_options wrong[] = {{0, 444}, {101, 444}, {95, 411}};
    for (size_t i = 0; codec_available(CODEC_JPEG) && i < 3; i++)
        assert_int_equal(codec_encode_bound(CODEC_JPEG, &image, &wrong[i]), 0);
    assert_int_equal(codec_encode_bound(CODEC_UNKNOWN, &image, &options), 0);
    assert_string_equal(codec_extension(CODEC_PNM), "ppm");
    assert_string_equal(codec_extension(CODEC_JPEG), "jpg");
    assert_false(codec_available(CODEC_UNKNOWN));
}

/* ---- PNG that others write ---------------------------------------------------------- */

static uint32_t crc32_of(const uint8_t* data, size_t bytes) {
    uint32_t crc = 0xffffffffu;
    for (size_t i = 0; i < bytes; i++) {
        crc ^= data[i];
        for (int k = 0; k < 8; k++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

static void put_u32(uint8_t* at, uint32_t value) {
    at[0] = (uint8_t)(value >> 24);
    at[1] = (uint8_t)(value >> 16);
    at[2] = (uint8_t)(value >> 8);
    at[3] = (uint8_t)value;
}

static size_t put_chunk(size_t at, const char* name, const void* data, size_t bytes) {
    put_u32(file + at, (uint32_t)bytes);
    memcpy(file + at + 4, name, 4);
    if (bytes)
        memcpy(file + at + 8, data, bytes);
    put_u32(file + at + 8 + bytes, crc32_of(file + at + 4, bytes + 4));
    return at + 12 + bytes;
}

typedef struct png_parts {
    uint32_t width, height;
    uint8_t bits, color, interlace;
    const uint8_t *palette, *transparency;
    size_t palette_bytes, transparency_bytes;
} png_parts;

/* A whole PNG from filtered rows, the data in one stored block. */
static size_t make_png(const png_parts* parts, const uint8_t* rows, size_t bytes) {
    uint8_t header[13] = {0}, data[2048];
    uint32_t a = 1, b = 0;
    memcpy(file, "\x89PNG\r\n\x1a\n", 8);
    put_u32(header, parts->width);
    put_u32(header + 4, parts->height);
    header[8] = parts->bits;
    header[9] = parts->color;
    header[12] = parts->interlace;
    size_t at = put_chunk(8, "IHDR", header, 13);
    if (parts->palette)
        at = put_chunk(at, "PLTE", parts->palette, parts->palette_bytes);
    if (parts->transparency)
        at = put_chunk(at, "tRNS", parts->transparency, parts->transparency_bytes);
    const uint8_t start[7] = {
        0x78, 0x01, 1, (uint8_t)bytes, (uint8_t)(bytes >> 8), (uint8_t)~bytes, (uint8_t)(~bytes >> 8)};
    memcpy(data, start, 7);
    memcpy(data + 7, rows, bytes);
    for (size_t i = 0; i < bytes; i++) {
        a = (a + rows[i]) % 65521;
        b = (b + a) % 65521;
    }
    put_u32(data + 7 + bytes, b << 16 | a);
    at = put_chunk(at, "IDAT", data, bytes + 11);
    return put_chunk(at, "IEND", NULL, 0);
}

static void expect_png(const png_parts* parts, const uint8_t* rows, size_t row_bytes, gpst_format format,
                       const uint8_t* wanted) {
    codec_kind kind;
    gpst_image image;
    const size_t bytes = make_png(parts, rows, row_bytes);
    expect(GPST_OK, decode(file, bytes, &kind, &image));
    assert_int_equal(image.format, format);
    assert_memory_equal(decoded, wanted, codec_plain_bytes(&image));
}

static void test_png_kinds(void** state) {
    static const uint8_t palette[9] = {1, 2, 3, 40, 50, 60, 200, 210, 220};
    (void)state;
    need(CODEC_PNG);
    {
        const png_parts parts = {3, 1, 8, 3, 0, palette, NULL, 9, 0};
        const uint8_t rows[] = {0, 2, 0, 1}, wanted[] = {200, 210, 220, 1, 2, 3, 40, 50, 60};
        expect_png(&parts, rows, sizeof rows, GPST_FORMAT_RGB, wanted);
    }
    {
        static const uint8_t alpha[2] = {0, 128};
        const png_parts parts = {3, 1, 2, 3, 0, palette, alpha, 9, 2};
        const uint8_t rows[] = {0, 2 << 6 | 0 << 4 | 1 << 2};
        const uint8_t wanted[] = {200, 210, 220, 255, 1, 2, 3, 0, 40, 50, 60, 128};
        expect_png(&parts, rows, sizeof rows, GPST_FORMAT_RGBA, wanted);
    }
    {
        const png_parts parts = {5, 2, 1, 0, 0, NULL, NULL, 0, 0};
        const uint8_t rows[] = {0, 0xa8, 0, 0x50}, wanted[] = {255, 0, 255, 0, 255, 0, 255, 0, 255, 0};
        expect_png(&parts, rows, sizeof rows, GPST_FORMAT_GRAY, wanted);
    }
    {
        static const uint8_t key[2] = {0, 7};
        const png_parts parts = {2, 1, 8, 0, 0, NULL, key, 0, 2};
        const uint8_t rows[] = {0, 7, 9}, wanted[] = {7, 7, 7, 0, 9, 9, 9, 255};
        expect_png(&parts, rows, sizeof rows, GPST_FORMAT_RGBA, wanted);
    }
    {
        const png_parts parts = {1, 1, 8, 4, 0, NULL, NULL, 0, 0};
        const uint8_t rows[] = {0, 77, 66}, wanted[] = {77, 77, 77, 66};
        expect_png(&parts, rows, sizeof rows, GPST_FORMAT_RGBA, wanted);
    }
    {
        /* Adam7 of 3x3: pass 1 has (0,0); 5 has (0,2) (2,2); 6 has (1,0), (1,2); 7 has row 1; 4 has (2,0). */
        const png_parts parts = {3, 3, 8, 0, 1, NULL, NULL, 0, 0};
        const uint8_t rows[] = {0, 1, 0, 3, 0, 7, 9, 0, 2, 0, 8, 0, 4, 5, 6};
        const uint8_t wanted[] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
        expect_png(&parts, rows, sizeof rows, GPST_FORMAT_GRAY, wanted);
    }
    codec_kind kind;
    gpst_image image;
    const uint8_t rows[] = {0, 1, 2, 3, 4, 5, 6};
    const png_parts odd = {1, 1, 4, 2, 0, NULL, NULL, 0, 0}, deep_palette = {1, 1, 16, 3, 0, palette, NULL, 9, 0};
    size_t bytes = make_png(&odd, rows, sizeof rows);
    expect(GPST_ERROR_FORMAT, read_header(file, bytes, &kind, &image));
    bytes = make_png(&deep_palette, rows, sizeof rows);
    expect(GPST_ERROR_FORMAT, read_header(file, bytes, &kind, &image));
    /* A wrong check sum is damage. */
    const png_parts plain = {6, 1, 8, 0, 0, NULL, NULL, 0, 0};
    bytes = make_png(&plain, rows, sizeof rows);
    expect(GPST_OK, decode(file, bytes, &kind, &image));
    file[8 + 25 + 8 + 7 + 3] ^= 1;
    expect(GPST_ERROR_FORMAT, decode(file, bytes, &kind, &image));
    file[8 + 25 + 8 + 7 + 3] ^= 1;
    file[bytes - 12 - 4] ^= 1; /* the last data chunk's own sum, behind the last pixel */
    expect(GPST_ERROR_FORMAT, decode(file, bytes, &kind, &image));
}

/* 16 bits, highest byte first in the file, the machine's own order in memory. */
static void test_png_of_16_bits(void** state) {
    static const uint8_t key[2] = {0x12, 0x34};
    static const struct {
        png_parts parts;
        gpst_format format;
        uint8_t rows[17];
        uint32_t n_bytes;
        uint16_t wanted[8];
    } cases[] = {
        {{2, 1, 16, 0, 0, NULL, NULL, 0, 0}, GPST_FORMAT_GRAY, {0, 0x12, 0x34, 0xff, 0xfe}, 5, {0x1234, 0xfffe}},
        {{1, 1, 16, 2, 0, NULL, NULL, 0, 0}, GPST_FORMAT_RGB, {0, 1, 2, 3, 4, 5, 6}, 7, {0x102, 0x304, 0x506}},
        {{1, 1, 16, 6, 0, NULL, NULL, 0, 0}, GPST_FORMAT_RGBA, {0, 1, 2, 3, 4, 5, 6, 7, 8}, 9,
         {0x102, 0x304, 0x506, 0x708}},
        {{1, 1, 16, 4, 0, NULL, NULL, 0, 0}, GPST_FORMAT_RGBA, {0, 1, 2, 3, 4}, 5, {0x102, 0x102, 0x102, 0x304}},
        {{2, 1, 16, 0, 0, NULL, key, 0, 2}, GPST_FORMAT_RGBA, {0, 0x12, 0x34, 0, 9}, 5,
         {0x1234, 0x1234, 0x1234, 0, 9, 9, 9, 0xffff}},
    };
    (void)state;
    need(CODEC_PNG);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        codec_kind kind;
        gpst_image image;
        const size_t bytes = make_png(&cases[i].parts, cases[i].rows, cases[i].n_bytes);
        expect(GPST_OK, decode(file, bytes, &kind, &image));
        assert_int_equal(image.format, cases[i].format);
        assert_int_equal(image.dtype, GPST_DTYPE_U16);
        assert_memory_equal(decoded, cases[i].wanted, codec_plain_bytes(&image));
        image.dtype = GPST_DTYPE_U8, image.data = decoded;
        expect(GPST_ERROR_ARGUMENT, codec_decode(self, file, bytes, CODEC_PNG, &image, reason));
    }
}

/* ---- JPEG that others write --------------------------------------------------------- */

#if defined(GPST_TOOL_JPEG)
static size_t compress(int format, int sampling, int flags) {
    tjhandle handle = tjInitCompress();
    unsigned char* out = file;
    unsigned long bytes = ROOM;
    assert_true(tjBufSize(64, 48, sampling) <= ROOM);
    assert_int_equal(
        tjCompress2(handle, pixels, 64, 0, 48, format, &out, &bytes, sampling, 90, flags | TJFLAG_NOREALLOC),
        0);
    tjDestroy(handle);
    return bytes;
}
#endif

static void test_jpeg_kinds(void** state) {
    (void)state;
    need(CODEC_JPEG);
#if defined(GPST_TOOL_JPEG)
    codec_kind kind;
    gpst_image image;
    const gpst_image source = make_image(pixels, 64, 48, GPST_FORMAT_RGBA);
    draw(&source, 5);
    static const int samplings[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY, TJSAMP_440, TJSAMP_411};
    for (size_t i = 0; i < sizeof samplings / sizeof samplings[0]; i++)
        for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
            const size_t bytes = compress(TJPF_RGB, samplings[i], flags);
            expect(GPST_OK, decode(file, bytes, &kind, &image));
            assert_int_equal(image.width, 64);
            assert_int_equal(image.height, 48);
            assert_int_equal(image.format, samplings[i] == TJSAMP_GRAY ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB);
            assert_false(memcmp(decoded + 63 * 48, decoded + 62 * 48, 48) == 0);
            /* Cut anywhere: progressive data would still show a picture. */
            for (size_t cut = 0; cut < bytes; cut++)
                assert_true(GPST_FAILED(decode(file, cut, &kind, &image)));
            expect(GPST_ERROR_TRUNCATED, decode(file, bytes / 2, &kind, &image));
        }
    size_t bytes = compress(TJPF_CMYK, TJSAMP_444, 0);
    expect(GPST_ERROR_UNSUPPORTED, read_header(file, bytes, &kind, &image));
    assert_non_null(strstr(reason, "CMYK"));
    /* A marker in the middle of the data: the rest would be gray. */
    bytes = compress(TJPF_RGB, TJSAMP_444, 0);
    file[bytes / 2] = 0xff;
    file[bytes / 2 + 1] = 0xd9;
    assert_true(GPST_FAILED(decode(file, bytes, &kind, &image)));
    /* The size is judged before anything is allocated. */
    bytes = compress(TJPF_RGB, TJSAMP_444, 0);
    const uint8_t* frame = NULL;
    expect(GPST_OK, codec_jpeg_find_frame(file, bytes, &frame, reason));
    uint8_t* height = file + (frame - file) + 5;
    static const uint16_t heights[][3] = {{0, 64, GPST_ERROR_FORMAT & 255},
                                          {65535, 65535, GPST_ERROR_UNSUPPORTED & 255},
                                          {32767, 32767, GPST_ERROR_TRUNCATED & 255}};
    for (size_t i = 0; i < 3; i++) {
        height[0] = (uint8_t)(heights[i][0] >> 8);
        height[1] = (uint8_t)heights[i][0];
        height[2] = (uint8_t)(heights[i][1] >> 8);
        height[3] = (uint8_t)heights[i][1];
        assert_int_equal(read_header(file, bytes, &kind, &image) & 255, heights[i][2]);
    }
#endif
}

/* ---- headers ------------------------------------------------------------------------- */

typedef struct header_case {
    const char* text;
    gpst_result result;
    uint32_t width, height;
    gpst_format format;
} header_case;

static void check_headers(const header_case* cases, size_t n, size_t payload) {
    for (size_t i = 0; i < n; i++) {
        codec_kind kind;
        gpst_image image;
        const size_t bytes = strlen(cases[i].text);
        memcpy(file, cases[i].text, bytes);
        for (size_t k = 0; k < payload; k++)
            file[bytes + k] = (uint8_t)(k + 1);
        const gpst_result result = decode(file, bytes + payload, &kind, &image);
        if (result != cases[i].result)
            fail_msg("case %zu: %s: %s", i, gpst_result_name(result), reason);
        if (GPST_FAILED(result)) {
            assert_string_not_equal(reason, "");
            continue;
        }
        assert_int_equal(image.width, cases[i].width);
        assert_int_equal(image.height, cases[i].height);
        assert_int_equal(image.format, cases[i].format);
        assert_int_equal(decoded[0], 1);
    }
}

static void test_pnm_headers(void** state) {
    static const header_case cases[] = {
        {"P5 2 3 255\n", GPST_OK, 2, 3, GPST_FORMAT_GRAY},
        {"P6\n# made by hand\n1 #width\n 2\n# two\n255\n", GPST_OK, 1, 2, GPST_FORMAT_RGB},
        {"P5\r\n\t 2\v\f3\r\n255\r", GPST_OK, 2, 3, GPST_FORMAT_GRAY},
        {"P5#c\n2 3 255#last\n", GPST_OK, 2, 3, GPST_FORMAT_GRAY},
        {"P5 0000002 03 255 ", GPST_OK, 2, 3, GPST_FORMAT_GRAY},
        {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", GPST_OK, 1, 1,
         GPST_FORMAT_RGBA},
        {"P7\n# c\n\n MAXVAL 255\nDEPTH 1\nHEIGHT  3 \nWIDTH 2\nENDHDR\n", GPST_OK, 2, 3, GPST_FORMAT_GRAY},
        {"P7\nWIDTH 1\nHEIGHT 2\nDEPTH 3\nMAXVAL 255\nTUPLTYPE A_VERY_LONG_TUPLE_TYPE_INDEED\nENDHDR\n",
         GPST_OK, 1, 2, GPST_FORMAT_RGB},
        {"P5 0 0 255\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"P5 100000 100000 255\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P5 99999999999999999999999999 1 255\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P5 18446744073709551617 1 255\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P5 -2 3 255\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"P5 2.0 3 255\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"P5 2 3 65535\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P5 2 3 100\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P5 2 4 255\n", GPST_ERROR_TRUNCATED, 0, 0, GPST_FORMAT_INVALID},
        {"P5 32767 32767 255\n", GPST_ERROR_TRUNCATED, 0, 0, GPST_FORMAT_INVALID},
        {"P4 2 3\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P3 2 3 255\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nENDHDR\n", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"P7\nWIDTH 1\nDEPTH 1\nMAXVAL 255\nENDHDR\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"P7\nWIDTH 1\nGIRTH 1\nENDHDR\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"P7\nWIDTH\nHEIGHT 1\nENDHDR\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"P5", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"Photos of\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
    };
    (void)state;
    const bool comma =
        setlocale(LC_ALL, "de_DE.UTF-8") != NULL; /* where it is installed, it must not matter */
    check_headers(cases, sizeof cases / sizeof cases[0], 6);
    if (comma)
        setlocale(LC_ALL, "C");
}

static size_t make_npy(int version, const char* dictionary, size_t payload) {
    const size_t length = strlen(dictionary), prefix = version == 1 ? 10 : 12;
    memset(file, 0, prefix);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (uint8_t)version;
    file[8] = (uint8_t)length;
    file[9] = (uint8_t)(length >> 8);
    memcpy(file + prefix, dictionary, length);
    for (size_t k = 0; k < payload; k++)
        file[prefix + length + k] = (uint8_t)(k + 1);
    return prefix + length + payload;
}

static void test_npy_headers(void** state) {
    static const header_case cases[] = {
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", GPST_OK, 3, 2, GPST_FORMAT_GRAY},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }   \n", GPST_OK, 3, 2, GPST_FORMAT_GRAY},
        {"{\"shape\":(2,1,3),\"fortran_order\":False,\"descr\":\"<u1\"}", GPST_OK, 1, 2, GPST_FORMAT_RGB},
        {" { 'shape' : ( 6 , 1 , 1 , ) , 'descr' : 'u1' , 'fortran_order' : False }", GPST_OK, 1, 6,
         GPST_FORMAT_GRAY},
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", GPST_ERROR_TRUNCATED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 3), }", GPST_OK, 1, 1, GPST_FORMAT_RGB},
        {"{'descr': '=f2', 'fortran_order': False, 'shape': (3, 1), }", GPST_OK, 1, 3, GPST_FORMAT_GRAY},
        {"{'descr': '>u2', 'fortran_order': False, 'shape': (1, 3), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|b1', 'fortran_order': False, 'shape': (2, 3), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': 'a long type name', 'fortran_order': False, 'shape': (2, 3), }", GPST_ERROR_UNSUPPORTED,
         0, 0, GPST_FORMAT_INVALID},
        {"{'descr': [('x', '|u1')], 'fortran_order': False, 'shape': (2, 3), }", GPST_ERROR_FORMAT, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (6,), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1, 3, 2), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", GPST_ERROR_FORMAT, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (0, 0), }", GPST_ERROR_FORMAT, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (100000, 100000), }", GPST_ERROR_UNSUPPORTED, 0,
         0, GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (18446744073709551618, 3), }",
         GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 4), }", GPST_ERROR_TRUNCATED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 2), }", GPST_ERROR_FORMAT, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'shape': (2, 3), }", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': Maybe, 'shape': (2, 3), }", GPST_ERROR_FORMAT, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2 3), }", GPST_ERROR_FORMAT, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), 'more': 1}", GPST_ERROR_FORMAT, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '|u1", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (int version = 1; version <= 3; version++) {
            codec_kind kind;
            gpst_image image;
            const gpst_result result = decode(file, make_npy(version, cases[i].text, 6), &kind, &image);
            if (result != cases[i].result)
                fail_msg("case %zu: %s: %s", i, gpst_result_name(result), reason);
            assert_int_equal(image.width, cases[i].width);
            assert_int_equal(image.height, cases[i].height);
            if (!GPST_FAILED(result))
                assert_int_equal(decoded[0], 1);
        }
    codec_kind kind;
    gpst_image image;
    expect(GPST_ERROR_UNSUPPORTED, decode(file, make_npy(4, cases[0].text, 6), &kind, &image));
}

/* This machine has its lowest byte first, as all that the tests run on. */
static void test_npy_dtypes(void** state) {
    static const char* const descrs[4] = {"|u1", "<u2", "<f2", "<f4"};
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    (void)state;
    for (int i = 0; i < 4; i++) {
        char text[96];
        codec_kind kind;
        gpst_image image;
        const size_t n = 6 * gpst_dtype_bytes(dtypes[i]);
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (1, 2, 3), }", descrs[i]);
        expect(GPST_OK, decode(file, make_npy(1, text, n), &kind, &image));
        assert_int_equal(image.dtype, dtypes[i]);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(((uint8_t*)decoded)[k], k + 1);
    }
}

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
    static const codec_kind kinds[] = {CODEC_PNM, CODEC_NPY, CODEC_PNG, CODEC_JPEG};
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
            for (size_t cut = 0; cut < bytes; cut++)
                if (!GPST_FAILED(decode(file, cut, &kind, &image)))
                    fail_msg("%s: the first %zu of %zu bytes pass", codec_extension(kinds[k]), cut, bytes);
        }
}

static void test_garbage(void** state) {
    static const codec_kind kinds[] = {CODEC_PNM, CODEC_NPY, CODEC_PNG, CODEC_JPEG};
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

static int group_setup(void** state) {
    (void)state;
    self = codec_create();
    return self ? 0 : -1;
}

static int group_teardown(void** state) {
    (void)state;
    codec_destroy(self);
    codec_destroy(NULL);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pnm_round_trip),
        cmocka_unit_test(test_npy_round_trip),
        cmocka_unit_test(test_png_round_trip),
        cmocka_unit_test(test_png_noise_fits),
        cmocka_unit_test(test_jpeg_round_trip),
        cmocka_unit_test(test_decode_into_pitch),
        cmocka_unit_test(test_npy_types_and_layouts),
        cmocka_unit_test(test_encode_refuses),
        cmocka_unit_test(test_png_kinds),
        cmocka_unit_test(test_png_of_16_bits),
        cmocka_unit_test(test_jpeg_kinds),
        cmocka_unit_test(test_pnm_headers),
        cmocka_unit_test(test_npy_headers),
        cmocka_unit_test(test_npy_dtypes),
        cmocka_unit_test(test_unknown_and_raw),
        cmocka_unit_test(test_wrong_shape),
        cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_garbage),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
