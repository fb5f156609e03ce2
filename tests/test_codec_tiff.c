/* tests/test_codec_tiff.c -- TIFF as libtiff packs it, more bits than 8 written and read again,
   and what is refused. Kinds of files: tests/test_codec_files.c. */
#include "test_codec.h"

#include <math.h>

static const codec_options options = {90, 444, NULL, 0, NULL, 0};

static size_t encode(codec_kind kind, const gpst_image* image) {
    size_t bytes = codec_encode_bound(kind, image, &options);
    assert_true(bytes > 0 && bytes <= ROOM);
    expect(GPST_OK, codec_encode(self, kind, image, &options, file, &bytes, reason));
    return bytes;
}

/* ---- more bits than 8 ------------------------------------------------------------------ */

static void deep_round_trip(codec_kind kind, gpst_format format, gpst_dtype dtype) {
    gpst_image source = make_image(pixels, 31, 9, format), image;
    codec_kind found;
    uint64_t seed = 5;
    source.dtype = dtype;
    const size_t row = gpst_image_row_bytes(&source), pitch = row + 16, one = gpst_dtype_bytes(dtype);
    source.pitch_bytes = (int64_t)pitch;
    for (size_t i = 0; i < pitch * 9; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    const size_t bytes = encode(kind, &source);
    expect(GPST_OK, decode(file, bytes, &found, &image));
    assert_int_equal(found, kind);
    assert_int_equal(image.dtype, dtype);
    const size_t n = gpst_format_channels(format);
    const bool swapped = format == GPST_FORMAT_BGR || format == GPST_FORMAT_BGRA;
    assert_int_equal(gpst_format_channels(image.format), n);
    for (size_t y = 0; y < 9; y++)
        for (size_t i = 0; i < 31 * n; i++) {
            const size_t c = i % n, from = swapped && c < 3 ? i + 2 - 2 * c : i;
            assert_memory_equal(decoded + y * row + i * one, pixels + y * pitch + from * one, one);
        }
}

static void test_deep_round_trips(void** state) {
    static const gpst_format formats[] = {GPST_FORMAT_GRAY, GPST_FORMAT_RGB, GPST_FORMAT_BGR, GPST_FORMAT_RGBA,
                                          GPST_FORMAT_BGRA};
    static const gpst_dtype dtypes[] = {GPST_DTYPE_U8, GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    (void)state;
    for (size_t f = 0; f < 5; f++)
        for (size_t d = 0; d < 4; d++) {
            gpst_image image = make_image(pixels, 31, 9, formats[f]);
            image.dtype = dtypes[d];
            if (codec_available(CODEC_TIFF))
                deep_round_trip(CODEC_TIFF, formats[f], dtypes[d]);
            if (codec_available(CODEC_PNG) && d < 2)
                deep_round_trip(CODEC_PNG, formats[f], dtypes[d]);
            if (d >= 2)
                assert_int_equal(codec_encode_bound(CODEC_PNG, &image, &options), 0);
        }
}

/* ---- what libtiff packs ------------------------------------------------------------------ */

#if defined(GPST_TOOL_TIFF)
enum { STRIP_ROWS = 8 }; /* as JPEG has them */

typedef struct packing {
    uint16_t compression, photometric, n_channels, bits;
    uint32_t tile; /* 0: strips */
    int most_off;
} packing;

/* Pixels for it, in the stored form; smooth. */
static uint8_t stored(const packing* how, uint32_t x, uint32_t y, uint32_t c) {
    return how->bits == 1 ? (uint8_t)((x / 3 + y / 2) % 2 ? 0xff : 0)
                          : (uint8_t)(120 + 70 * sin(0.05 * x + c) + 40 * cos(0.07 * y - c));
}

static void write_blocks(TIFF* tiff, const packing* how) {
    static uint8_t block[64 * 64 * 4];
    const uint32_t high = how->tile ? how->tile : STRIP_ROWS, wide = how->tile ? how->tile : 61;
    for (uint32_t y0 = 0; y0 < 45; y0 += high)
        for (uint32_t x0 = 0; x0 < 61; x0 += wide) {
            const uint32_t rows = how->tile || 45 - y0 >= high ? high : 45 - y0;
            const uint32_t row_bytes = (wide * how->n_channels * how->bits + 7) / 8;
            memset(block, 0, sizeof block);
            for (uint32_t y = 0; y < rows; y++)
                for (uint32_t x = 0; x < wide; x++)
                    for (uint32_t c = 0; c < how->n_channels; c++)
                        if (how->bits == 1)
                            block[y * row_bytes + x / 8] |= (uint8_t)(stored(how, x0 + x, y0 + y, 0) & 128 >> x % 8);
                        else
                            block[y * row_bytes + x * how->n_channels + c] = stored(how, x0 + x, y0 + y, c);
            const tmsize_t bytes = (tmsize_t)(row_bytes * rows);
            assert_true(how->tile ? TIFFWriteEncodedTile(tiff, TIFFComputeTile(tiff, x0, y0, 0, 0), block, bytes) > 0
                                  : TIFFWriteEncodedStrip(tiff, y0 / high, block, bytes) > 0);
        }
}

static size_t write_packed(const packing* how) {
    codec_tiff_stream stream = {file, file, 0, ROOM, 0, false, reason};
    TIFF* const tiff = codec_tiff_open(&stream, "w");
    assert_non_null(tiff);
    TIFFSetField(tiff, TIFFTAG_IMAGEWIDTH, 61);
    TIFFSetField(tiff, TIFFTAG_IMAGELENGTH, 45);
    TIFFSetField(tiff, TIFFTAG_BITSPERSAMPLE, how->bits);
    TIFFSetField(tiff, TIFFTAG_SAMPLESPERPIXEL, how->n_channels);
    TIFFSetField(tiff, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(tiff, TIFFTAG_PHOTOMETRIC, how->photometric);
    TIFFSetField(tiff, TIFFTAG_COMPRESSION, how->compression);
    if (how->compression == COMPRESSION_JPEG) {
        TIFFSetField(tiff, TIFFTAG_JPEGQUALITY, 95);
        TIFFSetField(tiff, TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    } else if (how->photometric == PHOTOMETRIC_YCBCR) {
        TIFFSetField(tiff, TIFFTAG_YCBCRSUBSAMPLING, 1, 1);
    }
    if (how->tile) {
        TIFFSetField(tiff, TIFFTAG_TILEWIDTH, how->tile);
        TIFFSetField(tiff, TIFFTAG_TILELENGTH, how->tile);
    } else {
        TIFFSetField(tiff, TIFFTAG_ROWSPERSTRIP, STRIP_ROWS);
    }
    write_blocks(tiff, how);
    TIFFClose(tiff);
    assert_false(stream.failed);
    return stream.bytes;
}

static uint8_t shown(const packing* how, uint32_t x, uint32_t y, uint32_t c) {
    const double luma = stored(how, x, y, 0), blue = stored(how, x, y, 1) - 128.0, red = stored(how, x, y, 2) - 128.0;
    if (how->photometric == PHOTOMETRIC_MINISWHITE)
        return (uint8_t)(255 - stored(how, x, y, c));
    if (how->photometric != PHOTOMETRIC_YCBCR || how->compression == COMPRESSION_JPEG)
        return stored(how, x, y, c);
    const double value = c == 0   ? luma + 1.402 * red
                         : c == 2 ? luma + 1.772 * blue
                                  : luma - 0.344136 * blue - 0.714136 * red;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value + 0.5);
}

static void check_packed(const packing* how) {
    codec_kind kind;
    gpst_image image;
    const size_t bytes = write_packed(how);
    expect(GPST_OK, decode(file, bytes, &kind, &image));
    assert_int_equal(gpst_format_channels(image.format), how->n_channels);
    for (uint32_t y = 0; y < 45; y++)
        for (uint32_t x = 0; x < 61; x++)
            for (uint32_t c = 0; c < how->n_channels; c++) {
                const int off = decoded[(y * 61 + x) * how->n_channels + c] - shown(how, x, y, c);
                if (abs(off) > how->most_off)
                    fail_msg("compression %u, photometric %u: %d off at %u, %u", how->compression, how->photometric,
                             off, x, y);
            }
    /* The end is what libtiff writes last, the directory; the beginning are pixels. */
    for (size_t cut = 0; cut < bytes; cut += 1 + bytes / 200)
        assert_true(GPST_FAILED(decode(file, cut, &kind, &image)));
    if (how->compression == COMPRESSION_JPEG) { /* libjpeg would go on with gray behind an end in the middle */
        file[bytes / 8] = 0xff;
        file[bytes / 8 + 1] = 0xd9;
        expect(GPST_ERROR_FORMAT, decode(file, bytes, &kind, &image));
    }
}
#endif

static void test_compressions(void** state) {
    (void)state;
    need(CODEC_TIFF);
#if defined(GPST_TOOL_TIFF)
    /* JPEG's are of its quantisation; YCbCr's of the rounding in libtiff. */
    static const packing cases[] = {{COMPRESSION_LZW, PHOTOMETRIC_RGB, 3, 8, 0, 0},
                                    {COMPRESSION_ADOBE_DEFLATE, PHOTOMETRIC_RGB, 3, 8, 32, 0},
                                    {COMPRESSION_ZSTD, PHOTOMETRIC_RGB, 3, 8, 0, 0},
                                    {COMPRESSION_LZMA, PHOTOMETRIC_MINISBLACK, 1, 8, 0, 0},
                                    {COMPRESSION_CCITTFAX4, PHOTOMETRIC_MINISWHITE, 1, 1, 0, 0},
                                    {COMPRESSION_CCITTFAX3, PHOTOMETRIC_MINISWHITE, 1, 1, 0, 0},
                                    {COMPRESSION_JPEG, PHOTOMETRIC_MINISBLACK, 1, 8, 0, 4},
                                    {COMPRESSION_JPEG, PHOTOMETRIC_RGB, 3, 8, 32, 5},
                                    {COMPRESSION_JPEG, PHOTOMETRIC_YCBCR, 3, 8, 32, 12},
                                    {COMPRESSION_NONE, PHOTOMETRIC_YCBCR, 3, 8, 0, 2},
                                    {COMPRESSION_LZW, PHOTOMETRIC_YCBCR, 3, 8, 0, 2}};
    int n = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (TIFFIsCODECConfigured(cases[i].compression)) {
            check_packed(&cases[i]);
            n++;
        }
    assert_true(n >= 8);
#endif
}

/* ---- files by hand ------------------------------------------------------------------------ */

typedef struct entry {
    uint16_t tag, type, count; /* type SHORT (3) or LONG (4) */
    uint32_t value;            /* or where the values lie */
} entry;

static void put_u16(uint8_t* at, uint32_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void put_u32(uint8_t* at, uint32_t value) {
    put_u16(at, value);
    put_u16(at + 2, value >> 16);
}

enum { DATA_AT = 512, FIRST_AT = 8 };

/* A little-endian file: a directory, and bytes at DATA_AT. Gives its length. */
static size_t make_tiff(const entry* entries, size_t n, const uint8_t* data, size_t bytes) {
    memset(file, 0, DATA_AT);
    memcpy(file, "II*\0", 4);
    put_u32(file + 4, FIRST_AT);
    put_u16(file + FIRST_AT, (uint32_t)n);
    for (size_t i = 0; i < n; i++) {
        uint8_t* const at = file + FIRST_AT + 2 + 12 * i;
        put_u16(at, entries[i].tag);
        put_u16(at + 2, entries[i].type);
        put_u32(at + 4, entries[i].count);
        put_u32(at + 8, entries[i].value);
    }
    memcpy(file + DATA_AT, data, bytes);
    return DATA_AT + bytes;
}

static void expect_tiff(const entry* entries, size_t n, const uint8_t* data, size_t bytes, gpst_format format,
                        const uint8_t* pixels_wanted, size_t n_wanted) {
    codec_kind kind;
    gpst_image image;
    expect(GPST_OK, decode(file, make_tiff(entries, n, data, bytes), &kind, &image));
    assert_int_equal(image.format, format);
    assert_memory_equal(decoded, pixels_wanted, n_wanted);
}

static void test_alpha_and_palette(void** state) {
    (void)state;
    need(CODEC_TIFF);
    /* 2x1, RGB and one sample more, of the kind that the last entry says. */
    entry rgba[] = {{256, 3, 1, 2}, {257, 3, 1, 1}, {258, 3, 1, 8}, {259, 3, 1, 1}, {262, 3, 1, 2},
                    {273, 4, 1, DATA_AT}, {277, 3, 1, 4}, {278, 3, 1, 1},   {279, 4, 1, 8}, {338, 3, 1, 1}};
    static const uint8_t data[8] = {50, 99, 200, 100, 7, 8, 9, 0};
    static const uint8_t divided[8] = {127, 252, 255, 100, 7, 8, 9, 0}, ignored[6] = {50, 99, 200, 7, 8, 9};
    static const uint8_t palette_data[2 + 24] = {0xc0, 0,   /* indices 3, 0 of 2 bits */
                                                 1,    0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0,
                                                 7,    0, 8, 0, 9, 0, 10, 0, 11, 0, 255, 0};
    static const uint8_t colors[6] = {4, 8, 255, 1, 5, 9};
    expect_tiff(rgba, 10, data, 8, GPST_FORMAT_RGBA, divided, 8);
    rgba[9].value = 0;
    expect_tiff(rgba, 10, data, 8, GPST_FORMAT_RGB, ignored, 6);
    rgba[9].value = 2;
    expect_tiff(rgba, 10, data, 8, GPST_FORMAT_RGBA, data, 8);
    expect_tiff(rgba, 9, data, 8, GPST_FORMAT_RGBA, data, 8); /* nothing is said: it is alpha */
    /* A palette of 8 bits, as some writers have it. */
    static const entry indexed[] = {{256, 3, 1, 2}, {257, 3, 1, 1}, {258, 3, 1, 2}, {259, 3, 1, 1}, {262, 3, 1, 3},
                                    {273, 4, 1, DATA_AT}, {278, 3, 1, 1}, {279, 4, 1, 1}, {320, 3, 12, DATA_AT + 2}};
    expect_tiff(indexed, 9, palette_data, sizeof palette_data, GPST_FORMAT_RGB, colors, 6);
}

typedef struct refusal {
    size_t n_changed;
    entry changed[4];
    gpst_result result;
    const char* says;
} refusal;

/* 2x2 gray of 8 bits, with some entries changed or put behind the others. */
static void test_refusals(void** state) {
    static const entry good[] = {{256, 4, 1, 2}, {257, 4, 1, 2}, {258, 3, 1, 8},       {259, 3, 1, 1},
                                 {262, 3, 1, 1}, {273, 4, 1, DATA_AT}, {278, 4, 1, 2}, {279, 4, 1, 4}};
    static const refusal cases[] = {
        {0, {{0, 0, 0, 0}}, GPST_OK, ""},
        {1, {{256, 4, 1, 100000}}, GPST_ERROR_UNSUPPORTED, "100000x2"},
        {1, {{257, 4, 1, 0}}, GPST_ERROR_FORMAT, ""},
        {1, {{258, 3, 1, 12}}, GPST_ERROR_UNSUPPORTED, "12 bits"},
        {1, {{259, 3, 1, 34712}}, GPST_ERROR_UNSUPPORTED, "compression 34712"},
        {1, {{262, 3, 1, 32844}}, GPST_ERROR_UNSUPPORTED, "photometric interpretation 32844"},
        {1, {{262, 3, 1, 2}}, GPST_ERROR_UNSUPPORTED, "1 samples"},
        {1, {{339, 3, 1, 2}}, GPST_ERROR_UNSUPPORTED, "sample format 2"},
        {1, {{50706, 1, 4, 0x00000401}}, GPST_ERROR_UNSUPPORTED, "DNG"},
        {1, {{254, 4, 1, 1}}, GPST_ERROR_UNSUPPORTED, "thumbnail"},
        {2, {{279, 4, 1, 5}, {259, 3, 1, 32773}}, GPST_ERROR_TRUNCATED, "ends before its pixels"},
        {1, {{273, 4, 1, 100000}}, GPST_ERROR_TRUNCATED, "ends before its pixels"},
        {4,
         {{256, 4, 1, 32767}, {257, 4, 1, 32767}, {278, 4, 1, 32767}, {259, 3, 1, 5}},
         GPST_ERROR_BUDGET,
         "--max-item-bytes"},
        {3, {{322, 4, 1, 65536}, {323, 4, 1, 65536}, {279, 4, 1, 4}}, GPST_ERROR_BUDGET, "--max-item-bytes"},
    };
    static const codec_limits small = {(uint64_t)1 << 31, CODEC_SMALL_BYTES}, usual = {0, 0};
    static const uint8_t data[4] = {1, 2, 3, 4};
    (void)state;
    need(CODEC_TIFF);
    codec_set_limits(self, &small);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        entry entries[12];
        codec_kind kind;
        gpst_image image;
        size_t n = sizeof good / sizeof good[0];
        memcpy(entries, good, sizeof good);
        for (size_t k = 0; k < cases[i].n_changed; k++) {
            size_t at = 0;
            while (at < n && entries[at].tag != cases[i].changed[k].tag)
                at++;
            entries[at] = cases[i].changed[k];
            n += at == n;
        }
        const gpst_result result = read_header(file, make_tiff(entries, n, data, 4), &kind, &image);
        if (result != cases[i].result || !strstr(reason, cases[i].says))
            fail_msg("case %zu: %s: %s", i, gpst_result_name(result), reason);
        assert_int_equal(kind, strstr(reason, "which is not read") ? CODEC_UNKNOWN : CODEC_TIFF);
    }
    codec_set_limits(self, &usual);
}

/* Private tags that no library can read say nothing of the pixels. */
static void test_tags_of_others(void** state) {
    static const entry others[] = {{65000, 0, 1, 8}, {65000, 255, 1, 8}, {65000, 16, 1, 8}};
    static const uint8_t data[4] = {1, 2, 3, 4};
    (void)state;
    need(CODEC_TIFF);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const entry page[] = {{256, 4, 1, 2}, {257, 4, 1, 2},       {258, 3, 1, 8}, {259, 3, 1, 1},
                              {262, 3, 1, 1}, {273, 4, 1, DATA_AT}, {278, 4, 1, 2}, {279, 4, 1, 4}, others[i]};
        codec_kind kind;
        gpst_image image;
        expect(GPST_OK, decode(file, make_tiff(page, 9, data, 4), &kind, &image));
        assert_memory_equal(decoded, data, 4);
    }
}

static void test_pages_are_told(void** state) {
    static const entry page[] = {{256, 4, 1, 2}, {257, 4, 1, 2},       {258, 3, 1, 8},       {259, 3, 1, 1},
                                 {262, 3, 1, 1}, {273, 4, 1, DATA_AT}, {278, 4, 1, 2}, {279, 4, 1, 4}};
    static const uint8_t data[4] = {1, 2, 3, 4};
    codec_kind kind;
    gpst_image image;
    (void)state;
    need(CODEC_TIFF);
    const size_t directory_bytes = 2 + 12 * 8 + 4, bytes = make_tiff(page, 8, data, 4);
    expect(GPST_OK, decode(file, bytes, &kind, &image));
    assert_string_equal(codec_note(self), "");
    memcpy(file + 256, file + FIRST_AT, directory_bytes);
    put_u32(file + FIRST_AT + directory_bytes - 4, 256);
    expect(GPST_OK, decode(file, bytes, &kind, &image));
    assert_memory_equal(decoded, data, 4);
    assert_string_equal(codec_note(self), "one of several pictures in the file: the others are not read");
    expect(GPST_ERROR_FORMAT, read_header("text", 4, &kind, &image));
    assert_string_equal(codec_note(self), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deep_round_trips),
        cmocka_unit_test(test_compressions),
        cmocka_unit_test(test_alpha_and_palette),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_tags_of_others),
        cmocka_unit_test(test_pages_are_told),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
