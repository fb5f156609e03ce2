/* tests/test_codec_tags.c -- what is written beside the pixels of PNG, TIFF and WebP: an EXIF block and a colour
   profile; and WebP itself: quality, alpha, animations. */
#include "test_codec.h"

#include <math.h>

/* An EXIF block: Make, orientation, and a directory each for the time and the latitude. */
static const uint8_t exif_little[] = {
    'I', 'I', 42, 0, 8, 0, 0, 0, /* */
    4, 0, /* */
    0x0f, 1, 2, 0, 5, 0, 0, 0, 62, 0, 0, 0, /* Make, 5 letters at 62 */
    0x12, 1, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0, /* orientation 6 */
    0x69, 0x87, 4, 0, 1, 0, 0, 0, 68, 0, 0, 0, /* EXIF at 68 */
    0x25, 0x88, 4, 0, 1, 0, 0, 0, 106, 0, 0, 0, /* GPS at 106 */
    0, 0, 0, 0, /* at 58 */
    'a', 'c', 'm', 'e', 0, 0, /* at 62 */
    1, 0, 3, 0x90, 2, 0, 20, 0, 0, 0, 86, 0, 0, 0, 0, 0, 0, 0, /* at 68: the time, at 86 */
    '2', '0', '2', '4', ':', '0', '5', ':', '0', '6', ' ', '0', '7', ':', '0', '8', ':', '0', '9', 0, /* at 86 */
    1, 0, 2, 0, 5, 0, 3, 0, 0, 0, 124, 0, 0, 0, 0, 0, 0, 0, /* at 106: latitude, at 124 */
    47, 0, 0, 0, 1, 0, 0, 0, 30, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, /* at 124 */
};
static uint8_t exif_big[sizeof exif_little];
static uint8_t profile[151]; /* odd */
static codec_options options;

static void swap(size_t at, size_t bytes) {
    for (size_t i = 0; i < bytes; i++)
        exif_big[at + i] = exif_little[at + bytes - 1 - i];
}

/* The same block, highest byte first. */
static void make_exif_big(void) {
    static const uint8_t directories[] = {8, 68, 106};
    memcpy(exif_big, exif_little, sizeof exif_little);
    exif_big[0] = exif_big[1] = 'M';
    swap(2, 2);
    swap(4, 4);
    for (int d = 0; d < 3; d++) {
        const size_t first = directories[d];
        swap(first, 2);
        for (size_t at = first + 2; at < first + 2 + 12u * exif_little[first]; at += 12) {
            swap(at, 2);
            swap(at + 2, 2);
            swap(at + 4, 4);
            swap(at + 8, exif_little[at + 2] == 3 ? 2 : 4);
        }
    }
    for (size_t at = 124; at < sizeof exif_little; at += 4)
        swap(at, 4);
}

static void set_options(bool big, bool exif, bool icc) {
    memset(&options, 0, sizeof options);
    options.quality = 90;
    memcpy(profile + 16, "RGB ", 4);
    for (size_t i = 20; i < sizeof profile; i++)
        profile[i] = (uint8_t)(i * 7);
    profile[0] = profile[1] = profile[2] = 0;
    profile[3] = sizeof profile; /* its own length, as libraries look at it */
    memcpy(profile + 36, "acsp", 4);
    options.exif = !exif ? NULL : big ? exif_big : exif_little;
    options.exif_bytes = exif ? sizeof exif_little : 0;
    options.icc = icc ? profile : NULL;
    options.icc_bytes = icc ? sizeof profile : 0;
}

static size_t encode(codec_kind kind, const gpst_image* image) {
    const size_t bound = codec_encode_bound(kind, image, &options);
    size_t bytes = bound;
    assert_true(bound > 0 && bound <= ROOM);
    memset(file, 0xA5, sizeof file);
    expect(GPST_OK, codec_encode(self, kind, image, &options, file, &bytes, reason));
    assert_true(bytes <= bound && file[bound] == 0xA5);
    return bytes;
}

/* With and without tags the pixels are the same. */
static void check_pixels(codec_kind kind, const gpst_image* source, size_t bytes) {
    static uint8_t with[ROOM];
    codec_kind found;
    gpst_image image;
    expect(GPST_OK, decode(file, bytes, &found, &image));
    assert_int_equal(found, kind);
    const size_t n = codec_plain_bytes(&image);
    memcpy(with, decoded, n);
    set_options(false, false, false);
    expect(GPST_OK, decode(file, encode(kind, source), &found, &image));
    assert_memory_equal(with, decoded, n);
}

static bool holds(size_t bytes, const void* what, size_t n) {
    for (size_t i = 0; i + n <= bytes; i++)
        if (memcmp(file + i, what, n) == 0)
            return true;
    return false;
}

static void check_profile(size_t bytes) {
    void* found = NULL;
    size_t n = 0;
    assert_true(codec_read_icc(file, bytes, &found, &n));
    assert_int_equal(n, sizeof profile);
    assert_memory_equal(found, profile, n);
    free(found);
}

static void test_png(void** state) {
    void* found = NULL;
    size_t n = 0;
    (void)state;
    need(CODEC_PNG);
    const gpst_image source = make_image(pixels, 20, 10, GPST_FORMAT_RGB);
    draw(&source, 1);
    for (int big = 0; big < 2; big++) {
        set_options(big, true, true);
        const size_t bytes = encode(CODEC_PNG, &source);
        assert_true(holds(bytes, "eXIf", 4) && holds(bytes, options.exif, options.exif_bytes));
        check_profile(bytes);
        check_pixels(CODEC_PNG, &source, bytes);
    }
    const size_t bytes = encode(CODEC_PNG, &source); /* with nothing */
    assert_false(holds(bytes, "eXIf", 4));
    assert_true(codec_read_icc(file, bytes, &found, &n));
    assert_null(found);
    assert_true(codec_read_icc(file, 20, &found, &n));
    assert_null(found);
}

/* A profile of RGB does not go with gray. */
static void test_profile_of_other_colors(void** state) {
    (void)state;
    need(CODEC_PNG);
    const gpst_image source = make_image(pixels, 20, 10, GPST_FORMAT_GRAY);
    set_options(false, false, true);
    assert_false(holds(encode(CODEC_PNG, &source), "iCCP", 4));
    memcpy(profile + 16, "GRAY", 4);
    assert_true(holds(encode(CODEC_PNG, &source), "iCCP", 4));
}

#if defined(GPST_TOOL_TIFF)
static void check_tiff_tags(TIFF* tiff) {
    const char* text = NULL;
    const void* icc = NULL;
    uint16_t orientation = 0;
    uint32_t n = 0;
    uint64_t exif = 0, gps = 0;
    assert_true(TIFFGetField(tiff, TIFFTAG_MAKE, &text));
    assert_string_equal(text, "acme");
    assert_true(TIFFGetField(tiff, TIFFTAG_ORIENTATION, &orientation));
    assert_int_equal(orientation, 6);
    assert_true(TIFFGetField(tiff, TIFFTAG_ICCPROFILE, &n, &icc));
    assert_int_equal(n, sizeof profile);
    assert_memory_equal(icc, profile, n);
    assert_true(TIFFGetField(tiff, TIFFTAG_EXIFIFD, &exif) && TIFFGetField(tiff, TIFFTAG_GPSIFD, &gps));
    assert_true(TIFFReadEXIFDirectory(tiff, exif));
    assert_true(TIFFGetField(tiff, EXIFTAG_DATETIMEORIGINAL, &text));
    assert_string_equal(text, "2024:05:06 07:08:09");
    const bool big = file[0] == 'M';
    const size_t latitude = (size_t)gps + 10 + (big ? 3 : 0); /* low byte of where it lies */
    const uint8_t* const at = file + file[latitude] + 256u * file[big ? latitude - 1 : latitude + 1];
    assert_memory_equal(at, (big ? exif_big : exif_little) + 124, 24);
}
#endif

static void test_tiff(void** state) {
    (void)state;
    need(CODEC_TIFF);
#if defined(GPST_TOOL_TIFF)
    gpst_image source = make_image(pixels, 20, 10, GPST_FORMAT_RGB);
    draw(&source, 1);
    for (int big = 0; big < 2; big++)
        for (int deep = 0; deep < 2; deep++) { /* their bytes are swapped on the way */
            source.dtype = deep ? GPST_DTYPE_U16 : GPST_DTYPE_U8;
            source.width = deep ? 10 : 20;
            set_options(big, true, true);
            const size_t bytes = encode(CODEC_TIFF, &source);
            codec_tiff_stream stream = {file, NULL, bytes, 0, 0, false, reason};
            TIFF* const tiff = codec_tiff_open(&stream, "r");
            assert_non_null(tiff);
            check_tiff_tags(tiff);
            TIFFClose(tiff);
            check_profile(bytes);
            check_pixels(CODEC_TIFF, &source, bytes);
        }
#endif
}

/* Whatever the block says, nothing is read or written outside of it. */
static void test_tiff_of_a_damaged_block(void** state) {
    uint64_t seed = test_seed(3), n_refused = 0;
    (void)state;
    need(CODEC_TIFF);
    const gpst_image source = make_image(pixels, 20, 10, GPST_FORMAT_RGB);
    for (int i = 0; i < 3000; i++) {
        uint8_t* const block = (uint8_t*)malloc(sizeof exif_little);
        assert_non_null(block);
        memcpy(block, exif_little, sizeof exif_little);
        for (uint64_t k = 1 + test_random(&seed) % 3; k > 0; k--)
            block[2 + test_random(&seed) % (sizeof exif_little - 2)] = (uint8_t)test_random(&seed);
        set_options(false, true, false);
        options.exif = block;
        options.exif_bytes = i % 4 ? sizeof exif_little : test_random(&seed) % sizeof exif_little;
        size_t bytes = codec_encode_bound(CODEC_TIFF, &source, &options);
        const gpst_result result = codec_encode(self, CODEC_TIFF, &source, &options, file, &bytes, reason);
        if (result != GPST_OK && !(result == GPST_ERROR_FORMAT && strstr(reason, "EXIF")))
            fail_msg("%d: %s: %s", i, gpst_result_name(result), reason);
        n_refused += result != GPST_OK;
        free(block);
    }
    assert_true(n_refused > 100 && n_refused < 2900);
}

/* ---- WebP ------------------------------------------------------------------------------ */

/* Chunks in the order that the format asks for. */
static void check_chunks(size_t bytes, const char* const* names, size_t n_names) {
    size_t at = 12, n = 0;
    assert_int_equal(file[4] + 256u * file[5], bytes - 8);
    while (at < bytes) {
        const size_t length = file[at + 4] + 256u * file[at + 5];
        assert_true(n < n_names);
        assert_memory_equal(file + at, names[n], 4);
        if (!strcmp(names[n], "ICCP"))
            assert_memory_equal(file + at + 8, profile, sizeof profile);
        if (!strcmp(names[n], "EXIF"))
            assert_memory_equal(file + at + 8, exif_little, sizeof exif_little);
        at += 8 + length + length % 2;
        n++;
    }
    assert_int_equal(at, bytes);
    assert_int_equal(n, n_names);
}

static void test_webp_tags(void** state) {
    static const char* const plain[] = {"VP8X", "ICCP", "VP8 ", "EXIF"};
    static const char* const alpha[] = {"VP8X", "ICCP", "ALPH", "VP8 ", "EXIF"};
    (void)state;
    need(CODEC_WEBP);
    for (int a = 0; a < 2; a++) {
        const gpst_image source = make_image(pixels, 20, 10, a ? GPST_FORMAT_RGBA : GPST_FORMAT_RGB);
        draw(&source, 1);
        set_options(false, true, true);
        const size_t bytes = encode(CODEC_WEBP, &source);
        assert_int_equal(file[20], a ? 0x38 : 0x28);
        check_chunks(bytes, a ? alpha : plain, a ? 5 : 4);
        check_profile(bytes);
        check_pixels(CODEC_WEBP, &source, bytes);
    }
}

static double mean_off(const gpst_image* image, const uint8_t* wanted) {
    double sum = 0;
    const size_t n = codec_plain_bytes(image);
    for (size_t i = 0; i < n; i++)
        sum += abs(decoded[i] - wanted[i]);
    return sum / (double)n;
}

static void test_webp(void** state) {
    static const gpst_format formats[] = {GPST_FORMAT_GRAY, GPST_FORMAT_RGB, GPST_FORMAT_BGR, GPST_FORMAT_RGBA};
    static uint8_t shown[61 * 47 * 4];
    codec_kind kind;
    gpst_image image;
    size_t before = 0;
    (void)state;
    need(CODEC_WEBP);
    for (int f = 0; f < 4; f++) {
        const uint32_t n = gpst_format_channels(formats[f]), n_out = n == 4 ? 4 : 3;
        const gpst_image source = make_image(pixels, 61, 47, formats[f]);
        for (uint32_t i = 0; i < 61 * 47; i++)
            for (uint32_t c = 0; c < n; c++) {
                const double x = i % 61, y = i / 61;
                pixels[i * n + c] = (uint8_t)(110 + 60 * sin(0.03 * x + c) + 40 * cos(0.04 * y - c));
            }
        for (uint32_t i = 0; i < 61 * 47; i++)
            for (uint32_t c = 0; c < n_out; c++)
                shown[i * n_out + c] =
                    pixels[i * n + (n == 1 ? 0 : formats[f] == GPST_FORMAT_BGR ? 2 - c : c)];
        set_options(false, false, false);
        options.quality = 95;
        expect(GPST_OK, decode(file, encode(CODEC_WEBP, &source), &kind, &image));
        assert_int_equal(image.format, n == 4 ? GPST_FORMAT_RGBA : GPST_FORMAT_RGB);
        assert_true(mean_off(&image, shown) < 2.0);
        for (size_t i = 3; n == 4 && i < 61 * 47 * 4; i += 4) /* alpha loses nothing */
            assert_int_equal(decoded[i], shown[i]);
    }
    for (int quality = 100; quality >= 10; quality -= 30) {
        const gpst_image source = make_image(pixels, 61, 47, GPST_FORMAT_RGB);
        draw(&source, 1);
        options.quality = quality;
        const size_t bytes = encode(CODEC_WEBP, &source);
        assert_true(before == 0 || bytes < before);
        before = bytes;
    }
}

/* Noise takes most; it fits the bound, at the best quality, too. */
static void test_webp_noise_fits(void** state) {
    uint64_t seed = test_seed(7);
    codec_kind kind;
    gpst_image image;
    (void)state;
    need(CODEC_WEBP);
    for (int f = 0; f < 2; f++) {
        const gpst_image source = make_image(pixels, 300, 300, f ? GPST_FORMAT_RGBA : GPST_FORMAT_RGB);
        for (size_t i = 0; i < codec_plain_bytes(&source); i++)
            pixels[i] = (uint8_t)test_random(&seed);
        set_options(false, false, false);
        options.quality = 100;
        expect(GPST_OK, decode(file, encode(CODEC_WEBP, &source), &kind, &image));
    }
}

static void test_webp_refusals(void** state) {
    static const uint8_t animation[] = {'R', 'I', 'F', 'F', 44, 0, 0, 0,  'W', 'E', 'B', 'P', 'V', 'P', '8',
                                        'X', 10,  0,   0,   0, 2, 0, 0, 0, 9,   0,   0,   9,   0,   0,   'A',
                                        'N', 'I', 'M', 6,   0, 0, 0, 0, 0, 0,   0,   0,   0,   0,   0,   0,
                                        0,   0,   0,   0,   0};
    codec_kind kind;
    gpst_image image = make_image(pixels, 16384, 1, GPST_FORMAT_RGB);
    (void)state;
    need(CODEC_WEBP);
    set_options(false, false, false);
    expect(GPST_ERROR_UNSUPPORTED, read_header(animation, sizeof animation, &kind, &image));
    assert_non_null(strstr(reason, "animation"));
    image = make_image(pixels, 16384, 1, GPST_FORMAT_RGB);
    assert_int_equal(codec_encode_bound(CODEC_WEBP, &image, &options), 0);
    size_t bytes = ROOM;
    expect(GPST_ERROR_UNSUPPORTED, codec_encode(self, CODEC_WEBP, &image, &options, file, &bytes, reason));
    assert_non_null(strstr(reason, "16383"));
    image.width = 16383;
    (void)encode(CODEC_WEBP, &image);
    image.dtype = GPST_DTYPE_U16;
    assert_int_equal(codec_encode_bound(CODEC_WEBP, &image, &options), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png),
        cmocka_unit_test(test_profile_of_other_colors),
        cmocka_unit_test(test_tiff),
        cmocka_unit_test(test_tiff_of_a_damaged_block),
        cmocka_unit_test(test_webp_tags),
        cmocka_unit_test(test_webp),
        cmocka_unit_test(test_webp_noise_fits),
        cmocka_unit_test(test_webp_refusals),
    };
    make_exif_big();
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
