/* tests/test_codec_foreign.c -- what the codecs make of files that others write: every kind of PNG and JPEG, headers of
   PNM and NPY as they may be and as they must not be. */
#include "test_codec.h"

#include <locale.h>

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
            for (size_t cut = 0; cut + 2 < bytes; cut++) /* without the end marker alone nothing is lost */
                assert_true(GPST_FAILED(decode(file, cut, &kind, &image)));
            expect(GPST_OK, decode(file, bytes - 2, &kind, &image));
            expect(GPST_ERROR_TRUNCATED, decode(file, bytes / 2, &kind, &image));
        }
    size_t bytes = compress(TJPF_CMYK, TJSAMP_444, 0);
    expect(GPST_OK, read_header(file, bytes, &kind, &image));
    assert_int_equal(image.format, GPST_FORMAT_RGB);
    /* A marker in the middle of the data: the rest would be gray. */
    bytes = compress(TJPF_RGB, TJSAMP_444, 0);
    file[bytes / 2] = 0xff;
    file[bytes / 2 + 1] = 0xd9;
    assert_true(GPST_FAILED(decode(file, bytes, &kind, &image)));
    /* The size is judged before anything is allocated. */
    bytes = compress(TJPF_RGB, TJSAMP_444, 0);
    uint8_t* height = file;
    while (height[0] != 0xff || height[1] != 0xc0)
        height++;
    height += 5;
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
        {"P7\nWIDTH 3\nHEIGHT 1\nDEPTH 2\nMAXVAL 255\nENDHDR\n", GPST_OK, 3, 1, GPST_FORMAT_RGBA},
        {"P5 2 3 65535\n", GPST_ERROR_TRUNCATED, 0, 0, GPST_FORMAT_INVALID},
        {"P5 2 3 65536\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"P5 2 3 0\n", GPST_ERROR_FORMAT, 0, 0, GPST_FORMAT_INVALID},
        {"P5 2 4 255\n", GPST_ERROR_TRUNCATED, 0, 0, GPST_FORMAT_INVALID},
        {"P5 32767 32767 255\n", GPST_ERROR_TRUNCATED, 0, 0, GPST_FORMAT_INVALID},
        {"P4 2 3\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P3 2 3 255\n", GPST_ERROR_UNSUPPORTED, 0, 0, GPST_FORMAT_INVALID},
        {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 5\nMAXVAL 255\nENDHDR\n", GPST_ERROR_UNSUPPORTED, 0, 0,
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
        {"{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", GPST_OK, 3, 2, GPST_FORMAT_GRAY},
        {"{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", GPST_ERROR_TRUNCATED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (1, 1, 3), }", GPST_OK, 1, 1, GPST_FORMAT_RGB},
        {"{'descr': '=f2', 'fortran_order': False, 'shape': (3, 1), }", GPST_OK, 1, 3, GPST_FORMAT_GRAY},
        {"{'descr': '|u2', 'fortran_order': False, 'shape': (1, 3), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (1, 3), }", GPST_ERROR_UNSUPPORTED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1, 3), }", GPST_ERROR_TRUNCATED, 0, 0,
         GPST_FORMAT_INVALID},
        {"{'descr': '<u4', 'fortran_order': False, 'shape': (1, 1), }", GPST_ERROR_UNSUPPORTED, 0, 0,
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png_kinds),
        cmocka_unit_test(test_png_of_16_bits),
        cmocka_unit_test(test_jpeg_kinds),
        cmocka_unit_test(test_pnm_headers),
        cmocka_unit_test(test_npy_headers),
        cmocka_unit_test(test_npy_dtypes),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
