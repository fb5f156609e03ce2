/* tests/test_codec_limits.c -- files of a hundred bytes that ask for gigabytes: what decoding would take is known from
   the header, and what is too much is refused before anything is allocated. */
#include "test_codec.h"

/* ---- JPEG, made here ----------------------------------------------------------------- */

#if defined(GPST_TOOL_JPEG)

typedef struct jpeg_parts {
    uint8_t marker, bits; /* of the frame */
    uint16_t width, height;
    uint8_t n, sampling[3]; /* components */
    uint8_t n_first;        /* of them in the first scan */
    uint32_t n_scans;       /* more follow */
    size_t data_bytes;      /* zeros behind the first scan's header: the shortest code, again and again */
} jpeg_parts;

static const jpeg_parts vast = {0xc0, 8, 32767, 32767, 3, {0x11, 0x11, 0x11}, 3, 1, 0};

static size_t put_segment(size_t at, uint8_t marker, const void* data, size_t bytes) {
    file[at] = 0xff;
    file[at + 1] = marker;
    file[at + 2] = (uint8_t)((bytes + 2) >> 8);
    file[at + 3] = (uint8_t)(bytes + 2);
    memcpy(file + at + 4, data, bytes);
    return at + 4 + bytes;
}

static size_t put_scan(size_t at, uint8_t n, uint8_t first, uint8_t last) {
    uint8_t scan[16] = {0};
    scan[0] = n;
    for (uint8_t c = 0; c < n; c++)
        scan[1 + 2 * c] = (uint8_t)(c + 1);
    scan[1 + 2 * n] = first;
    scan[2 + 2 * n] = last;
    return put_segment(at, 0xda, scan, 4 + 2 * (size_t)n);
}

/* Tables in which the only codes are a bit long; values all zero. */
static size_t make_jpeg(const jpeg_parts* parts) {
    static const uint8_t conditions[4] = {0x00, 0x10, 0x10, 0x05};
    uint8_t table[65] = {0}, frame[20] = {0};
    size_t at = 2;
    memcpy(file, "\xff\xd8", 2);
    memset(table + 1, 1, 64);
    at = put_segment(at, 0xdb, table, 65);
    frame[0] = parts->bits;
    frame[1] = (uint8_t)(parts->height >> 8);
    frame[2] = (uint8_t)parts->height;
    frame[3] = (uint8_t)(parts->width >> 8);
    frame[4] = (uint8_t)parts->width;
    frame[5] = parts->n;
    for (uint8_t c = 0; c < parts->n; c++) {
        frame[6 + 3 * c] = (uint8_t)(c + 1);
        frame[7 + 3 * c] = parts->sampling[c];
    }
    at = put_segment(at, parts->marker, frame, 6 + 3 * (size_t)parts->n);
    memset(table, 0, sizeof table);
    table[1] = 1;
    if (parts->marker > 0xc8) {
        at = put_segment(at, 0xcc, conditions, 4);
    } else {
        at = put_segment(at, 0xc4, table, 18);
        table[0] = 0x10;
        at = put_segment(at, 0xc4, table, 18);
    }
    const bool progressive = parts->marker == 0xc2 || parts->marker == 0xca;
    at = put_scan(at, parts->n_first, 0, progressive ? 0 : 63);
    assert_true(at + parts->data_bytes + 12 * (size_t)parts->n_scans < ROOM);
    memset(file + at, 0, parts->data_bytes);
    at += parts->data_bytes;
    for (uint32_t s = 1; s < parts->n_scans; s++)
        at = put_scan(at, 1, progressive ? 1 : 0, 63);
    memcpy(file + at, "\xff\xd9", 2);
    return at + 2;
}

static void set_limits(uint64_t most_pixels, uint64_t most_bytes) {
    codec_limits limits;
    limits.pixels = most_pixels;
    limits.bytes = most_bytes;
    codec_set_limits(self, &limits);
}

static void expect_says(gpst_result wanted, gpst_result got, const char* text) {
    expect(wanted, got);
    if (!strstr(reason, text))
        fail_msg("\"%s\" does not say \"%s\"", reason, text);
}

static void test_every_coding_is_refused(void** state) {
    /* Baseline, extended, progressive; arithmetic: sequential, progressive; the last two in a scan a component, too */
    static const uint8_t codings[] = {0xc0, 0xc1, 0xc2, 0xc9, 0xca};
    (void)state;
    need(CODEC_JPEG);
    for (size_t i = 0; i < sizeof codings; i++)
        for (uint8_t n_first = 1; n_first <= 3; n_first += 2) {
            codec_kind kind;
            gpst_image image;
            jpeg_parts parts = vast;
            parts.marker = codings[i];
            parts.n_first = n_first;
            const bool huffman = codings[i] < 0xc8;
            const size_t bytes = make_jpeg(&parts);
            set_limits(0, 0);
            expect_says(huffman ? GPST_ERROR_TRUNCATED : GPST_ERROR_BUDGET, read_header(file, bytes, &kind, &image),
                        huffman ? "cannot hold 32767x32767" : "--max-pixels");
            set_limits((uint64_t)1 << 40, (uint64_t)3 << 30);
            expect_says(huffman ? GPST_ERROR_TRUNCATED : GPST_ERROR_BUDGET, read_header(file, bytes, &kind, &image),
                        huffman ? "cannot hold 32767x32767" : "--max-item-bytes");
            /* Who does not look at the header first gets no further. */
            image = make_image(decoded, 32767, 32767, GPST_FORMAT_RGB);
            decoded[0] = 0xA5;
            assert_true(GPST_FAILED(codec_decode(self, file, bytes, CODEC_JPEG, &image, reason)));
            assert_int_equal(decoded[0], 0xA5);
        }
    set_limits(0, 0);
}

/* The header's arithmetic against what the library is known to take: 3 bytes a pixel, 6 more where it waits for more
   scans, 3 where the colours have half the resolution. */
static void test_what_decoding_takes(void** state) {
    static const struct {
        uint8_t marker, sampling, n_first;
        uint64_t bytes_a_pixel_twice;
    } cases[] = {
        {0xc9, 0x11, 3, 6}, {0xc9, 0x11, 1, 18}, {0xca, 0x11, 3, 18}, {0xca, 0x22, 3, 12}, {0xc9, 0x22, 1, 12}};
    (void)state;
    need(CODEC_JPEG);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        codec_kind kind;
        gpst_image image;
        jpeg_parts parts = vast;
        parts.marker = cases[i].marker;
        parts.sampling[0] = cases[i].sampling;
        parts.n_first = cases[i].n_first;
        parts.width = 16000;
        parts.height = 8000;
        const size_t bytes = make_jpeg(&parts);
        const uint64_t least = (uint64_t)16000 * 8000 * cases[i].bytes_a_pixel_twice / 2;
        set_limits(0, least);
        expect_says(GPST_ERROR_BUDGET, read_header(file, bytes, &kind, &image), "--max-item-bytes");
        set_limits(0, least + least / 64);
        expect(GPST_OK, read_header(file, bytes, &kind, &image));
        set_limits(16000 * 8000 - 1, least + least / 64);
        expect_says(GPST_ERROR_BUDGET, read_header(file, bytes, &kind, &image),
                    "at most 127999999 here (--max-pixels)");
    }
    /* The largest panoramas fit into a quarter of 8 GB however they come. */
    codec_kind kind;
    gpst_image image;
    jpeg_parts parts = vast;
    parts.marker = 0xca;
    parts.width = 16384;
    parts.height = 8192;
    set_limits(0, (uint64_t)2 << 30);
    expect(GPST_OK, read_header(file, make_jpeg(&parts), &kind, &image));
    set_limits(0, 0);
}

/* Two bits a block, and one where the picture is progressive: a byte less, and there is no such file. */
static void test_shortest_huffman(void** state) {
    static const struct {
        uint8_t marker, n;
        size_t data_bytes;
    } cases[] = {{0xc0, 1, 507}, {0xc0, 3, 1519}, {0xc1, 3, 1519}, {0xc2, 1, 254}, {0xc2, 3, 760}};
    (void)state;
    need(CODEC_JPEG);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        codec_kind kind;
        gpst_image image;
        jpeg_parts parts = vast;
        parts.marker = cases[i].marker;
        parts.n = parts.n_first = cases[i].n;
        parts.width = parts.height = 360; /* 2025 blocks */
        parts.data_bytes = cases[i].data_bytes;
        expect(GPST_OK, decode(file, make_jpeg(&parts), &kind, &image));
        for (size_t p = 0; p < codec_plain_bytes(&image); p++)
            assert_int_equal(decoded[p], 128);
        parts.data_bytes -= 20; /* the scan's header and the end are counted, too */
        expect_says(GPST_ERROR_TRUNCATED, decode(file, make_jpeg(&parts), &kind, &image), "cannot hold 360x360");
    }
}

/* What an encoder makes of a picture of one colour is never held to be too short. */
static void test_blank_pictures_pass(void** state) {
    static const int samplings[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_GRAY, TJSAMP_440, TJSAMP_411};
    (void)state;
    need(CODEC_JPEG);
    uint8_t* const blank = (uint8_t*)malloc((size_t)2000 * 1500 * 3);
    assert_non_null(blank);
    memset(blank, 128, (size_t)2000 * 1500 * 3);
    for (size_t i = 0; i < sizeof samplings / sizeof samplings[0]; i++)
        for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
            codec_kind kind;
            gpst_image image;
            unsigned char* out = NULL;
            unsigned long bytes = 0;
            /* Another each time: behind a progressive file the same one would write a broken baseline file. */
            tjhandle encoder = tjInitCompress();
            assert_int_equal(0, tjCompress2(encoder, blank, 2000, 0, 1500, TJPF_RGB, &out, &bytes, samplings[i], 1,
                                             flags));
            expect(GPST_OK, read_header(out, bytes, &kind, &image));
            tjFree(out);
            tjDestroy(encoder);
        }
    free(blank);
}

static void test_scans(void** state) {
    codec_kind kind;
    gpst_image image;
    jpeg_parts parts = vast;
    (void)state;
    need(CODEC_JPEG);
    parts.marker = 0xca;
    parts.width = parts.height = 1000;
    parts.n_scans = 500;
    expect(GPST_OK, read_header(file, make_jpeg(&parts), &kind, &image));
    parts.n_scans = 501;
    expect_says(GPST_ERROR_UNSUPPORTED, read_header(file, make_jpeg(&parts), &kind, &image), "501 scans; 500 at most");
    parts.n_scans = 160; /* with the pixels of ten such pictures allowed */
    set_limits(10000000, 0);
    expect(GPST_OK, read_header(file, make_jpeg(&parts), &kind, &image));
    parts.n_scans = 161;
    expect_says(GPST_ERROR_BUDGET, read_header(file, make_jpeg(&parts), &kind, &image),
                "161 scans over 1000x1000 pixels; at most 160 at this size (--max-pixels)");
    set_limits(0, 0);
    /* Only scans count: not what looks like one within a segment, or behind the end. */
    parts.n_scans = 3;
    size_t bytes = make_jpeg(&parts) - 2;
    static const uint8_t text[] = {0xff, 0xda, 0, 3, 0, 0xff, 0xda};
    bytes = put_segment(bytes, 0xfe, text, sizeof text);
    static const uint8_t data[] = {1, 0xff, 0x00, 0xda, 0xff, 0xd0, 0xff, 0xff, 0xff, 0xd9, 0xff, 0xda, 0, 3, 0};
    memcpy(file + bytes, data, sizeof data);
    for (size_t cut = 0; cut <= sizeof data; cut++) {
        gpst_jpeg_info info;
        assert_int_equal(gpst_jpeg_read_header(file, bytes + cut, &info), GPST_OK);
        assert_int_equal(info.n_scans, 3);
    }
}

/* A start-of-frame marker; C4, C8 and CC of that range are something else. */
static bool is_frame(uint32_t marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

static void test_frames_that_are_not_read(void** state) {
    codec_kind kind;
    gpst_image image;
    (void)state;
    need(CODEC_JPEG);
    for (int marker = 0xc3; marker <= 0xcf; marker++) {
        jpeg_parts parts = vast;
        parts.marker = (uint8_t)marker;
        parts.width = parts.height = 16;
        if (marker != 0xc9 && marker != 0xca && is_frame(parts.marker))
            expect_says(GPST_ERROR_UNSUPPORTED, read_header(file, make_jpeg(&parts), &kind, &image), "lossless");
    }
    jpeg_parts parts = vast;
    parts.bits = 12;
    parts.marker = 0xc1;
    expect_says(GPST_ERROR_UNSUPPORTED, read_header(file, make_jpeg(&parts), &kind, &image), "12 bits");
    static const uint8_t wrong[] = {0x01, 0x10, 0x51, 0x15, 0x00};
    for (size_t i = 0; i < sizeof wrong; i++) {
        parts = vast;
        parts.sampling[1] = wrong[i];
        expect_says(GPST_ERROR_FORMAT, read_header(file, make_jpeg(&parts), &kind, &image), "sampling factors");
    }
    parts = vast;
    const size_t bytes = make_jpeg(&parts);
    size_t frame = 0;
    while (file[frame] != 0xff || file[frame + 1] != parts.marker)
        frame++;
    file[frame + 3] = 8; /* three components, and room for none */
    expect_says(GPST_ERROR_FORMAT, read_header(file, bytes, &kind, &image), "a frame header of 8 bytes for 3");
}

#endif

/* ---- all formats --------------------------------------------------------------------- */

static void test_limits_hold_for_all(void** state) {
    static const codec_kind kinds[] = {CODEC_PNM, CODEC_NPY, CODEC_PNG, CODEC_JPEG};
    static const codec_options options = {95, 444, NULL, 0, NULL, 0};
    codec_limits limits = {64 * 32, 0};
    codec_kind kind;
    gpst_image image;
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        if (!codec_available(kinds[k]))
            continue;
        const gpst_image source = make_image(pixels, 64, 32, GPST_FORMAT_RGB);
        draw(&source, 3);
        size_t bytes = ROOM;
        expect(GPST_OK, codec_encode(self, kinds[k], &source, &options, file, &bytes, reason));
        limits.pixels = 64 * 32;
        limits.bytes = bytes + 64 * 32 * 3 + (1 << 20);
        codec_set_limits(self, &limits);
        expect(GPST_OK, decode(file, bytes, &kind, &image));
        limits.pixels--;
        codec_set_limits(self, &limits);
        expect(GPST_ERROR_BUDGET, read_header(file, bytes, &kind, &image));
        assert_non_null(strstr(reason, "64x32 are 2048 pixels; at most 2047 here (--max-pixels)"));
        image = source;
        image.data = decoded;
        expect(GPST_ERROR_BUDGET, codec_decode(self, file, bytes, kinds[k], &image, reason));
        limits.pixels = 0;
        limits.bytes = bytes + 64 * 32 * 3 - 1;
        codec_set_limits(self, &limits);
        expect(GPST_ERROR_BUDGET, read_header(file, bytes, &kind, &image));
        assert_non_null(strstr(reason, "--max-item-bytes"));
    }
    /* Headerless: the file is the picture. */
    const codec_raw raw = {64, 32, GPST_FORMAT_RGB};
    limits.bytes = 64 * 32 * 3;
    codec_set_limits(self, &limits);
    expect(GPST_OK, codec_read_header(self, pixels, 64 * 32 * 3, &raw, &kind, &image, reason));
    limits.bytes--;
    codec_set_limits(self, &limits);
    expect(GPST_ERROR_BUDGET, codec_read_header(self, pixels, 64 * 32 * 3, &raw, &kind, &image, reason));
    limits.pixels = limits.bytes = 0;
    codec_set_limits(self, &limits);
}

static void test_defaults(void** state) {
    codec_limits limits = {0, 0};
    gpst_probe_info machine;
    (void)state;
    assert_int_equal(gpst_probe(NULL, &machine), GPST_OK);
    const uint64_t quarter = machine.ram_bytes / 4;
    assert_int_equal(codec_most_bytes(&limits), quarter < CODEC_SMALL_BYTES ? CODEC_SMALL_BYTES : quarter);
    assert_true(codec_fits(&limits, CODEC_SMALL_BYTES));
    assert_true(codec_fits(&limits, codec_most_bytes(&limits)));
    assert_false(codec_fits(&limits, codec_most_bytes(&limits) + 1));
    limits.bytes = 1000;
    assert_int_equal(codec_most_bytes(&limits), 1000);
    assert_true(codec_fits(&limits, 1000));
    assert_false(codec_fits(&limits, 1001));
    assert_true(CODEC_DEFAULT_PIXELS >= (uint64_t)32767 * 16384);
}

static void test_amounts(void** state) {
    static const struct {
        uint64_t bytes;
        const char *down, *up;
    } cases[] = {{0, "0 bytes", "0 bytes"},
                 {9999999, "9999999 bytes", "9999999 bytes"},
                 {10000000, "10 MB", "10 MB"},
                 {10000001, "10 MB", "11 MB"},
                 {9999000001, "9999 MB", "10000 MB"},
                 {10000000001, "10.0 GB", "10.1 GB"},
                 {214748364800, "214.7 GB", "214.8 GB"}};
    char text[CODEC_AMOUNT_BYTES];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        codec_format_amount(cases[i].bytes, false, text);
        assert_string_equal(text, cases[i].down);
        codec_format_amount(cases[i].bytes, true, text);
        assert_string_equal(text, cases[i].up);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
#if defined(GPST_TOOL_JPEG)
        cmocka_unit_test(test_every_coding_is_refused),
        cmocka_unit_test(test_what_decoding_takes),
        cmocka_unit_test(test_shortest_huffman),
        cmocka_unit_test(test_blank_pictures_pass),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_frames_that_are_not_read),
#endif
        cmocka_unit_test(test_limits_hold_for_all),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_amounts),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
