/* tests/test_jpeg.c -- JPEG by the real libturbojpeg: what is decoded and encoded against direct calls of it, headers,
   files that are mended, files that are damaged, inks. */
#include "test.h"

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no turbojpeg.h: install libturbojpeg0-dev\n");
    return GPST_TEST_SKIP;
}
#else
#include "test_allocator.h"

#include <turbojpeg.h>

#define ROOM ((size_t)1 << 20)
#define GUARD 64

static uint8_t pixels[ROOM], wanted[ROOM], got[ROOM + 2 * GUARD], file[ROOM], broken[ROOM];
static gpst_jpeg* self;

static gpst_image image_of(void* data, uint32_t width, uint32_t height, gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width;
    image.height = height;
    image.format = format;
    return image;
}

/* Something smooth with a little noise, of 4 bytes a pixel. */
static void draw(uint32_t width, uint32_t height, uint64_t seed) {
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < 4; c++)
                pixels[4 * ((size_t)y * width + x) + c] =
                    (uint8_t)(40 + 3 * (x % 30) + 2 * (y % 40) + 13 * c + (test_random(&seed) & 15));
}

/* A file by libturbojpeg itself, of pixels. */
static size_t compress(uint32_t width, uint32_t height, int format, int sampling, int flags) {
    tjhandle handle = tjInitCompress(); /* another each time: a progressive file would leave its tables to the next */
    unsigned char* out = file;
    unsigned long bytes = ROOM;
    assert_true(tjBufSize((int)width, (int)height, sampling) <= ROOM);
    draw(width, height, width * 131 + height);
    assert_int_equal(tjCompress2(handle, pixels, (int)width, 4 * (int)width, (int)height, format, &out, &bytes,
                                 sampling, 90, flags | TJFLAG_NOREALLOC),
                     0);
    tjDestroy(handle);
    return bytes;
}

static void expect(gpst_result right, gpst_result result) {
    if (right != result)
        fail_msg("%s instead of %s: %s", gpst_result_name(result), gpst_result_name(right), gpst_last_reason());
}

/* Decodes a copy that ends exactly where the file does. */
static gpst_result decode(const uint8_t* data, size_t bytes, gpst_damage on_damage, const gpst_image* picture,
                          gpst_jpeg_note* note) {
    gpst_jpeg_decode_desc desc = GPST_ZERO;
    uint8_t* const copy = (uint8_t*)malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, data, bytes);
    desc.on_damage = on_damage;
    const gpst_result result = gpst_jpeg_decode(self, copy, bytes, &desc, picture, note);
    free(copy);
    return result;
}

static gpst_image rgb_of(const uint8_t* data, size_t bytes) {
    gpst_jpeg_info info;
    expect(GPST_OK, gpst_jpeg_read_header(data, bytes, &info));
    memset(got, 0xA5, sizeof got);
    return image_of(got, info.width, info.height, info.format);
}

/* What is decoded of the file at hand, strictly, is what libturbojpeg gives of it. */
static void decode_wanted(size_t bytes, uint32_t width, uint32_t height, int format) {
    tjhandle handle = tjInitDecompress();
    assert_int_equal(tjDecompress2(handle, file, bytes, wanted, (int)width, 0, (int)height, format,
                                   TJFLAG_STOPONWARNING),
                     0);
    tjDestroy(handle);
}

/* ---- bits -------------------------------------------------------------------------------------------- */

static const int samplings[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_GRAY, TJSAMP_411};
static const gpst_format planes_of_sampling[] = {GPST_FORMAT_JPEG_444, GPST_FORMAT_JPEG_422, GPST_FORMAT_JPEG_420,
                                                 GPST_FORMAT_JPEG_440, GPST_FORMAT_GRAY,     GPST_FORMAT_INVALID};
static const uint32_t sizes[][2] = {{1, 1}, {1, 9}, {17, 5}, {64, 48}, {61, 47}};

static void check_pixels(size_t bytes, uint32_t width, uint32_t height, gpst_format format, int tj, int64_t gap) {
    const uint32_t n = gpst_format_channels(format);
    const int64_t row = (int64_t)width * n, pitch = gap < 0 ? -(row - gap) : gap > 0 ? row + gap : 0;
    const size_t stride = (size_t)(pitch < 0 ? -pitch : pitch > 0 ? pitch : row);
    gpst_image picture = image_of(got + GUARD, width, height, format);
    gpst_jpeg_note note;
    picture.pitch_bytes = pitch;
    if (pitch < 0)
        picture.data = got + GUARD + stride * (height - 1);
    memset(got, 0xA5, sizeof got);
    decode_wanted(bytes, width, height, tj);
    expect(GPST_OK, decode(file, bytes, GPST_DAMAGE_FAIL, &picture, &note));
    assert_string_equal(note.text, "");
    assert_false(note.mended || note.damaged);
    for (uint32_t y = 0; y < height; y++) {
        const uint8_t* const at = got + GUARD + stride * (pitch < 0 ? height - 1 - y : y);
        assert_memory_equal(at, wanted + (size_t)row * y, (size_t)row);
        for (size_t i = (size_t)row; i < stride && at + i < got + sizeof got; i++)
            assert_int_equal(at[i], 0xA5);
    }
    for (size_t i = 0; i < GUARD; i++) {
        assert_int_equal(got[i], 0xA5);
        assert_int_equal(got[GUARD + stride * height + i], 0xA5);
    }
}

static void test_pixels(void** state) {
    static const struct {
        gpst_format format;
        int tj;
    } formats[] = {{GPST_FORMAT_GRAY, TJPF_GRAY},
                   {GPST_FORMAT_RGB, TJPF_RGB},
                   {GPST_FORMAT_BGR, TJPF_BGR},
                   {GPST_FORMAT_RGBA, TJPF_RGBA},
                   {GPST_FORMAT_BGRA, TJPF_BGRA}};
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (size_t z = 0; z < sizeof sizes / sizeof sizes[0]; z++)
            for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
                const size_t bytes = compress(sizes[z][0], sizes[z][1], TJPF_RGBX, samplings[s], flags);
                for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
                    for (int64_t gap = -3; gap <= 3; gap += 3)
                        check_pixels(bytes, sizes[z][0], sizes[z][1], formats[f].format, formats[f].tj, gap);
            }
}

static void check_planes(size_t bytes, uint32_t width, uint32_t height, int sampling, gpst_format format, int gap) {
    const int across = tjMCUWidth[sampling] / 8;
    unsigned char* planes[3];
    int pitches[3];
    gpst_image picture = image_of(got + GUARD, width, height, format);
    size_t used = 0, told = 0;
    tjhandle handle = tjInitDecompress();
    for (int c = 0; c < 3; c++) {
        pitches[c] = tjPlaneWidth(0, (int)width, sampling) + gap * across;
        pitches[c] = c ? pitches[c] / across : pitches[c];
        planes[c] = wanted + used;
        used += (size_t)pitches[c] * (size_t)tjPlaneHeight(c, (int)height, sampling);
    }
    memset(wanted, 0xA5, sizeof wanted);
    memset(got, 0xA5, sizeof got);
    assert_int_equal(tjDecompressToYUVPlanes(handle, file, bytes, planes, (int)width, pitches, (int)height,
                                             TJFLAG_STOPONWARNING),
                     0);
    tjDestroy(handle);
    picture.pitch_bytes = gap ? pitches[0] : 0;
    expect(GPST_OK, gpst_image_bytes(&picture, &told));
    assert_int_equal(told, used - (size_t)gap);
    expect(GPST_OK, decode(file, bytes, GPST_DAMAGE_FAIL, &picture, NULL));
    assert_memory_equal(got + GUARD, wanted, used + GUARD);
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(got[i], 0xA5);
}

static void test_planes(void** state) {
    gpst_jpeg_info info;
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (size_t z = 0; z < sizeof sizes / sizeof sizes[0]; z++)
            for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
                const size_t bytes = compress(sizes[z][0], sizes[z][1], TJPF_RGBX, samplings[s], flags);
                expect(GPST_OK, gpst_jpeg_read_header(file, bytes, &info));
                assert_int_equal(info.width, sizes[z][0]);
                assert_int_equal(info.height, sizes[z][1]);
                assert_int_equal(info.planes, planes_of_sampling[s]);
                assert_int_equal(info.format, samplings[s] == TJSAMP_GRAY ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB);
                assert_int_equal(info.n_components, samplings[s] == TJSAMP_GRAY ? 1 : 3);
                assert_int_equal(info.progressive, flags != 0);
                assert_false(info.arithmetic);
                if (!gpsti_image_is_jpeg(info.planes))
                    continue;
                check_planes(bytes, sizes[z][0], sizes[z][1], samplings[s], info.planes, 0);
                check_planes(bytes, sizes[z][0], sizes[z][1], samplings[s], info.planes, 5);
            }
}

static void test_encoding(void** state) {
    static const struct {
        gpst_format format;
        int tj;
    } formats[] = {{GPST_FORMAT_GRAY, TJPF_GRAY},
                   {GPST_FORMAT_RGB, TJPF_RGB},
                   {GPST_FORMAT_BGR, TJPF_BGR},
                   {GPST_FORMAT_RGBA, TJPF_RGBX},
                   {GPST_FORMAT_BGRA, TJPF_BGRX}};
    tjhandle handle = tjInitCompress();
    (void)state;
    draw(61, 47, 9);
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++)
        for (size_t s = 0; s < 4; s++)
            for (int quality = 0; quality <= 100; quality += 50)
                for (int up = 0; up < 2; up++) {
                    gpst_jpeg_encode_desc desc = GPST_ZERO;
                    gpst_image image = image_of(pixels, 61, 47, formats[f].format);
                    const bool gray = formats[f].format == GPST_FORMAT_GRAY;
                    const int sampling = gray ? TJSAMP_GRAY : samplings[s];
                    unsigned char* out = wanted;
                    unsigned long n = ROOM;
                    size_t bytes = 0, bound = 0;
                    image.pitch_bytes = up ? -250 : 250;
                    image.data = pixels + (up ? 250 * 46 : 0);
                    desc.quality = (uint32_t)quality;
                    desc.chroma = planes_of_sampling[s];
                    expect(GPST_OK, gpst_jpeg_bound(&image, &desc, &bound));
                    assert_int_equal(bound, tjBufSize(61, 47, sampling));
                    bytes = bound;
                    memset(file, 0xA5, ROOM);
                    expect(GPST_OK, gpst_jpeg_encode(self, &image, &desc, file, &bytes));
                    assert_int_equal(file[bound], 0xA5);
                    assert_int_equal(tjCompress2(handle, pixels, 61, 250, 47, formats[f].tj, &out, &n, sampling,
                                                 quality ? quality : 95,
                                                 TJFLAG_NOREALLOC | (up ? TJFLAG_BOTTOMUP : 0)),
                                     0);
                    assert_int_equal(bytes, n);
                    assert_memory_equal(file, wanted, n);
                }
    tjDestroy(handle);
}

/* The default is 4:4:4 at 95. What libturbojpeg 3 alone can do is refused by name, or done. */
static void test_encoding_options(void** state) {
    gpst_jpeg_encode_desc desc = GPST_ZERO;
    const gpst_image image = image_of(pixels, 61, 47, GPST_FORMAT_RGB);
    size_t n = ROOM, bytes = ROOM;
    (void)state;
    draw(61, 47, 9);
    expect(GPST_OK, gpst_jpeg_encode(self, &image, NULL, file, &n));
    desc.quality = 95;
    desc.chroma = GPST_FORMAT_JPEG_444;
    expect(GPST_OK, gpst_jpeg_encode(self, &image, &desc, broken, &bytes));
    assert_int_equal(bytes, n);
    assert_memory_equal(file, broken, n);
    const gpst_image picture = rgb_of(file, n);
    for (int i = 0; i < 2; i++) {
        desc.optimise = i == 0;
        desc.restart_rows = i == 1;
        bytes = ROOM;
        if (!self->calls->set) {
            expect(GPST_ERROR_UNSUPPORTED, gpst_jpeg_encode(self, &image, &desc, broken, &bytes));
            test_reason_has(i == 0 ? "desc.optimise" : "desc.restart_rows", "libturbojpeg 3");
            assert_int_equal(bytes, 0);
            continue;
        }
        expect(GPST_OK, gpst_jpeg_encode(self, &image, &desc, broken, &bytes));
        assert_true(i == 0 ? bytes < n : bytes > n);
        decode_wanted(n, 61, 47, TJPF_RGB);
        expect(GPST_OK, decode(broken, bytes, GPST_DAMAGE_FAIL, &picture, NULL));
        assert_memory_equal(got, wanted, 61 * 47 * 3);
    }
    bytes = ROOM; /* nothing of it is left behind */
    expect(GPST_OK, gpst_jpeg_encode(self, &image, NULL, broken, &bytes));
    assert_int_equal(bytes, n);
    assert_memory_equal(file, broken, n);
}

static void test_encoding_refuses(void** state) {
    gpst_jpeg_encode_desc desc = GPST_ZERO;
    gpst_image image = image_of(pixels, 16, 16, GPST_FORMAT_RGB);
    size_t bytes = 0, bound = 0;
    (void)state;
    expect(GPST_OK, gpst_jpeg_bound(&image, NULL, &bound));
    bytes = bound - 1;
    file[0] = 0xA5;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_encode(self, &image, NULL, file, &bytes));
    assert_int_equal(file[0], 0xA5);
    assert_int_equal(bytes, 0);
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_encode(NULL, &image, NULL, file, &bytes));
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_encode(self, &image, NULL, NULL, &bytes));
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_bound(NULL, NULL, &bytes));
    desc.quality = 101;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_bound(&image, &desc, &bytes));
    desc.quality = 0;
    desc.chroma = GPST_FORMAT_RGB;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_bound(&image, &desc, &bytes));
    test_reason_has("gpst_jpeg_bound: desc.chroma=2", "JPEG_444");
    desc.chroma = GPST_FORMAT_INVALID;
    desc.restart_rows = 65536;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_bound(&image, &desc, &bytes));
    image.layout = GPST_LAYOUT_CHW;
    expect(GPST_ERROR_UNSUPPORTED, gpst_jpeg_bound(&image, NULL, &bytes));
    image.layout = GPST_LAYOUT_HWC;
    image.dtype = GPST_DTYPE_F32;
    expect(GPST_ERROR_UNSUPPORTED, gpst_jpeg_bound(&image, NULL, &bytes));
    image = image_of(pixels, 16, 16, GPST_FORMAT_NV12);
    expect(GPST_ERROR_UNSUPPORTED, gpst_jpeg_bound(&image, NULL, &bytes));
    image = image_of(pixels, GPST_MAX_SIDE + 1, 1, GPST_FORMAT_GRAY);
    expect(GPST_ERROR_UNSUPPORTED, gpst_jpeg_bound(&image, NULL, &bytes));
    image = image_of(pixels, 1, 2, GPST_FORMAT_GRAY);
    image.pitch_bytes = (int64_t)INT32_MAX + 1;
    expect(GPST_ERROR_UNSUPPORTED, gpst_jpeg_bound(&image, NULL, &bytes));
    assert_int_equal(bytes, 0);
}

static void test_decoding_refuses(void** state) {
    const size_t bytes = compress(64, 48, TJPF_RGBX, TJSAMP_420, 0);
    gpst_image picture = image_of(got, 64, 48, GPST_FORMAT_RGB);
    gpst_jpeg_decode_desc desc = GPST_ZERO;
    (void)state;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_decode(NULL, file, bytes, NULL, &picture, NULL));
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_decode(self, file, bytes, NULL, NULL, NULL));
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_decode(self, NULL, bytes, NULL, &picture, NULL));
    expect(GPST_ERROR_TRUNCATED, gpst_jpeg_decode(self, NULL, 0, NULL, &picture, NULL));
    desc.on_damage = (gpst_damage)2;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_decode(self, file, bytes, &desc, &picture, NULL));
    static const gpst_format formats[] = {GPST_FORMAT_NV12, GPST_FORMAT_I420, GPST_FORMAT_JPEG_444,
                                          GPST_FORMAT_JPEG_422, GPST_FORMAT_JPEG_440};
    for (size_t f = 0; f < sizeof formats / sizeof formats[0]; f++) {
        picture.format = formats[f];
        expect(GPST_ERROR_ARGUMENT, gpst_jpeg_decode(self, file, bytes, NULL, &picture, NULL));
        test_reason_has("gpst_jpeg_decode: picture.format=", "planes");
    }
    picture.format = GPST_FORMAT_RGB;
    picture.width = 65; /* libturbojpeg would leave the rest alone, without a word */
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_decode(self, file, bytes, NULL, &picture, NULL));
    test_reason_has("65x48", "64x48");
    picture.width = 64;
    picture.layout = GPST_LAYOUT_CHW;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_decode(self, file, bytes, NULL, &picture, NULL));
    picture.layout = GPST_LAYOUT_HWC;
    picture.dtype = GPST_DTYPE_I8;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_decode(self, file, bytes, NULL, &picture, NULL));
}

/* ---- segments of the file at hand -------------------------------------------------------------------- */

/* Where the n-th segment with this marker is; 0 = there is none. */
static size_t find(const uint8_t* data, size_t bytes, uint8_t marker, uint32_t n) {
    gpsti_jpeg_walk walk = gpsti_jpeg_walk_of(data, bytes);
    while (gpsti_jpeg_next(&walk))
        if (walk.marker == marker && n-- == 0)
            return walk.begin;
    return 0;
}

/* The file with bytes put in at a place. */
static size_t insert(const uint8_t* data, size_t bytes, size_t at, const void* more, size_t n_more) {
    memmove(broken, data, at);
    memmove(broken + at + n_more, data + at, bytes - at);
    memcpy(broken + at, more, n_more);
    return bytes + n_more;
}

static void clean(size_t bytes) {
    memcpy(broken, file, bytes);
}

/* ---- mending ----------------------------------------------------------------------------------------- */

static void expect_mended(size_t bytes, const char* text) {
    gpst_jpeg_note note;
    const gpst_image picture = rgb_of(broken, bytes);
    expect(GPST_OK, decode(broken, bytes, GPST_DAMAGE_FAIL, &picture, &note));
    assert_string_equal(note.text, text);
    assert_int_equal(note.mended, text[0] != 0);
    assert_false(note.damaged);
    assert_memory_equal(got, wanted, (size_t)picture.width * picture.height * gpst_format_channels(picture.format));
    size_t first = 0;
    assert_false(gpsti_jpeg_is_plain(broken, bytes, &first));
}

static void check_mending(size_t bytes, bool progressive) {
    const size_t scan = find(file, bytes, 0xda, 0), tables = find(file, bytes, 0xdb, 0);
    const uint8_t n = file[scan + 4];
    clean(bytes - 2);
    expect_mended(bytes - 2, "mended: missing end");
    clean(bytes - 1); /* half of it */
    expect_mended(bytes - 1, "mended: missing end");
    expect_mended(insert(file, bytes, tables, "junk\xff", 4), "mended: stray bytes");
    expect_mended(insert(file, bytes, tables, "\0\xff\0", 3), "mended: stray bytes");
    expect_mended(insert(file, bytes, scan, "\0", 1), "mended: stray bytes");
    clean(bytes);
    broken[11] = 7;
    expect_mended(bytes, "mended: JFIF version");
    if (progressive)
        return;
    clean(bytes);
    broken[scan + 5 + 2 * n] = 1;
    expect_mended(bytes, "mended: SOS parameters");
    broken[scan + 6 + 2 * n] = 0;
    broken[scan + 7 + 2 * n] = 0x12;
    expect_mended(bytes, "mended: SOS parameters");
    broken[11] = 9;
    memmove(broken + tables + 2, broken + tables, bytes - tables);
    memcpy(broken + tables, "\x01\x02", 2);
    expect_mended(bytes, "mended: SOS parameters; stray bytes; JFIF version; missing end");
}

static void test_mending(void** state) {
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
            const size_t bytes = compress(61, 47, TJPF_RGBX, samplings[s], flags);
            decode_wanted(bytes, 61, 47, samplings[s] == TJSAMP_GRAY ? TJPF_GRAY : TJPF_RGB);
            check_mending(bytes, flags != 0);
        }
}

/* Up to 16 zeros before the end (of up to 8 the decoder says nothing itself); what stands behind it is nobody's. */
static void test_padding(void** state) {
    static const uint8_t zeros[17] = {0};
    const size_t bytes = compress(61, 47, TJPF_RGBX, TJSAMP_420, 0);
    gpst_image picture;
    (void)state;
    decode_wanted(bytes, 61, 47, TJPF_RGB);
    assert_int_not_equal(file[bytes - 3], 0);
    expect_mended(insert(file, bytes, bytes - 2, zeros, 9), "mended: bytes before the end");
    expect_mended(insert(file, bytes, bytes - 2, zeros, 16), "mended: bytes before the end");
    size_t more = insert(file, bytes, bytes - 2, zeros, 17);
    picture = rgb_of(broken, more);
    expect(GPST_ERROR_FORMAT, decode(broken, more, GPST_DAMAGE_FAIL, &picture, NULL));
    more = insert(file, bytes, bytes - 2, "other bytes", 11);
    expect(GPST_ERROR_FORMAT, decode(broken, more, GPST_DAMAGE_FAIL, &picture, NULL));
    expect_mended(insert(file, bytes, bytes, "garbage", 7), "");
    /* A zero behind 0xff is data. */
    static const uint8_t stuffed[] = {0xff, 0xd8, 0xff, 0xda, 0, 3, 1, 0x55, 0xff, 0, 0, 0, 0xff, 0xd9};
    const gpsti_jpeg_mended mended = gpsti_jpeg_mend(stuffed, sizeof stuffed, true, broken);
    assert_int_equal(mended.faults, GPSTI_JPEG_FAULT_PADDING);
    assert_int_equal(mended.bytes, sizeof stuffed - 2);
    assert_memory_equal(broken + mended.bytes - 4, "\xff\x00\xff\xd9", 4);
}

/* ---- damage ------------------------------------------------------------------------------------------ */

/* Cut anywhere a file is refused, or, where nothing but its end is missing, decoded to the same bits. */
static void test_cuts(void** state) {
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
            const size_t bytes = compress(61, 47, TJPF_RGBX, samplings[s], flags);
            const gpst_image picture = rgb_of(file, bytes);
            decode_wanted(bytes, 61, 47, samplings[s] == TJSAMP_GRAY ? TJPF_GRAY : TJPF_RGB);
            for (size_t cut = 0; cut < bytes - 2; cut++)
                expect(cut < 3 && cut > 0 ? GPST_ERROR_FORMAT : GPST_ERROR_TRUNCATED,
                       decode(file, cut, GPST_DAMAGE_FAIL, &picture, NULL));
        }
}

/* A progressive file that ends between two scans is whole but for bits that no decoder misses. */
static void test_missing_scans(void** state) {
    gpst_jpeg_note note;
    size_t bytes = compress(61, 47, TJPF_RGBX, TJSAMP_420, TJFLAG_PROGRESSIVE);
    const gpst_image picture = rgb_of(file, bytes);
    uint32_t n = 0;
    (void)state;
    for (uint32_t i = 1; find(file, bytes, 0xda, i); i++, n++) {
        gpsti_jpeg_walk walk = gpsti_jpeg_walk_of(file, bytes);
        for (uint32_t k = 0; k < i; k += walk.marker == 0xda)
            gpsti_jpeg_next(&walk);
        gpsti_jpeg_next(&walk);
        expect(GPST_ERROR_TRUNCATED, decode(file, walk.begin, GPST_DAMAGE_FAIL, &picture, NULL));
        test_reason_has("JPEG: scans are missing", "");
        expect(GPST_OK, decode(file, walk.begin, GPST_DAMAGE_KEEP, &picture, &note));
        assert_string_equal(note.text, "damaged: scans are missing");
        assert_true(note.damaged && !note.mended);
    }
    assert_true(n > 4);
    /* The first scan without one component: its mean values never come, end marker or not. */
    const size_t scan = find(file, bytes, 0xda, 0);
    gpsti_jpeg_header header;
    file[scan + 5 + 4] = file[scan + 5 + 2]; /* Cb twice */
    expect(GPST_OK, gpsti_jpeg_read(file, bytes, &header));
    assert_false(header.has_all_components);
    expect(GPST_ERROR_FORMAT, decode(file, bytes, GPST_DAMAGE_FAIL, &picture, NULL));
    test_reason_has("JPEG: scans are missing", "");
}

static void test_damage(void** state) {
    gpst_jpeg_note note;
    const size_t bytes = compress(64, 48, TJPF_RGBX, TJSAMP_422, 0);
    gpst_image picture = rgb_of(file, bytes);
    (void)state;
    /* A marker in the middle of the data, with an end and without one. */
    clean(bytes);
    memcpy(broken + bytes / 2, "\xff\xd9", 2);
    expect(GPST_ERROR_FORMAT, decode(broken, bytes, GPST_DAMAGE_FAIL, &picture, &note));
    assert_string_equal(note.text, "");
    expect(GPST_ERROR_TRUNCATED, decode(file, bytes / 2, GPST_DAMAGE_FAIL, &picture, &note));
    assert_non_null(strstr(gpst_last_reason(), "JPEG: "));
    /* What comes is taken, top first, and said. */
    decode_wanted(bytes, 64, 48, TJPF_RGB);
    for (int f = 0; f < 3; f++) {
        static const gpst_format formats[] = {GPST_FORMAT_RGB, GPST_FORMAT_RGBA, GPST_FORMAT_JPEG_422};
        picture = image_of(got, 64, 48, formats[f]);
        memset(got, 0xA5, sizeof got);
        expect(GPST_OK, decode(file, bytes * 3 / 4, GPST_DAMAGE_KEEP, &picture, &note));
        assert_true(note.damaged && !note.mended);
        assert_memory_equal(note.text, "damaged: ", 9);
        assert_true(strlen(note.text) > 9);
        if (f == 0)
            assert_memory_equal(got, wanted, 64 * 3 * 8);
        for (size_t i = 3; f == 1 && i < 64 * 48 * 4; i += 4)
            assert_int_equal(got[i], 255);
    }
    /* Where nothing is damaged the same is asked for in vain. */
    expect(GPST_OK, decode(file, bytes, GPST_DAMAGE_KEEP, &picture, &note));
    assert_string_equal(note.text, "");
    /* Data that look like a long segment, in a file that is mended besides. */
    clean(bytes);
    memcpy(broken + bytes / 2, "\xff\xe1\xff\xff", 4);
    expect(GPST_ERROR_FORMAT, decode(broken, bytes, GPST_DAMAGE_FAIL, &picture, &note));
    broken[11] = 3;
    expect(GPST_ERROR_FORMAT, decode(broken, bytes, GPST_DAMAGE_FAIL, &picture, &note));
    test_reason_has("JPEG: a segment ends behind the file", "");
    expect(GPST_ERROR_TRUNCATED, decode(broken, bytes - 2, GPST_DAMAGE_FAIL, &picture, &note));
    expect(GPST_OK, decode(broken, bytes, GPST_DAMAGE_KEEP, &picture, &note));
    assert_true(note.damaged);
    /* No header, no picture. */
    expect(GPST_ERROR_TRUNCATED, decode(file, 20, GPST_DAMAGE_KEEP, &picture, &note));
}

/* ---- colours ----------------------------------------------------------------------------------------- */

/* An APP14 segment of Adobe's. */
static size_t with_adobe(size_t bytes, uint8_t transform) {
    uint8_t segment[16] = {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100, 0, 0, 0, 0, 0};
    segment[15] = transform;
    return insert(file, bytes, 2, segment, sizeof segment);
}

static size_t without(size_t bytes, uint8_t marker) {
    const size_t at = find(file, bytes, marker, 0);
    assert_true(at > 0);
    const size_t length = 2 + ((size_t)file[at + 2] << 8 | file[at + 3]);
    memmove(file + at, file + at + length, bytes - at - length);
    return bytes - length;
}

static void set_ids(size_t bytes, const char ids[4]) {
    const size_t frame = find(file, bytes, 0xc0, 0), scan = find(file, bytes, 0xda, 0);
    for (size_t c = 0; c < 3; c++)
        file[frame + 10 + 3 * c] = file[scan + 5 + 2 * c] = (uint8_t)ids[c];
}

/* Whether libturbojpeg sees YCbCr, too, which alone has planes. */
static void expect_planes(size_t bytes, gpst_format planes) {
    tjhandle handle = tjInitDecompress();
    int width, height, sampling, colours;
    gpst_jpeg_info info;
    assert_int_equal(tjDecompressHeader3(handle, broken, bytes, &width, &height, &sampling, &colours), 0);
    tjDestroy(handle);
    assert_int_equal(colours, planes == GPST_FORMAT_INVALID ? TJCS_RGB : TJCS_YCbCr);
    expect(GPST_OK, gpst_jpeg_read_header(broken, bytes, &info));
    assert_int_equal(info.planes, planes);
    assert_int_equal(info.format, GPST_FORMAT_RGB);
    const gpst_image picture = rgb_of(broken, bytes);
    memcpy(file, broken, bytes);
    decode_wanted(bytes, 64, 48, TJPF_RGB);
    expect(GPST_OK, decode(broken, bytes, GPST_DAMAGE_FAIL, &picture, NULL));
    assert_memory_equal(got, wanted, 64 * 48 * 3);
}

static void test_colours(void** state) {
    static const char names[2][4] = {"RGB", "abc"};
    (void)state;
    for (int adobe = -1; adobe <= 1; adobe++)
        for (int jfif = 0; jfif < 2; jfif++)
            for (int ids = -1; ids < 2; ids++) {
                size_t bytes = compress(64, 48, TJPF_RGBX, TJSAMP_444, 0);
                if (!jfif)
                    bytes = without(bytes, 0xe0);
                if (ids >= 0)
                    set_ids(bytes, names[ids]);
                if (adobe >= 0)
                    bytes = with_adobe(bytes, (uint8_t)adobe);
                else
                    clean(bytes);
                const bool rgb = !jfif && (adobe == 0 || (adobe < 0 && ids == 0));
                expect_planes(bytes, rgb ? GPST_FORMAT_INVALID : GPST_FORMAT_JPEG_444);
            }
}

static uint8_t mixed(double a, double b) { return (uint8_t)(a * b / 255 + 0.5); }

/* With Adobe's marker the inks are inverted in the file; without one they are not. */
static void test_inks(void** state) {
    static const gpst_format formats[] = {GPST_FORMAT_RGB, GPST_FORMAT_BGR, GPST_FORMAT_RGBA, GPST_FORMAT_BGRA};
    gpst_jpeg_info info;
    (void)state;
    for (int adobe = 0; adobe < 2; adobe++)
        for (size_t f = 0; f < 4; f++)
            for (int sign = -1; sign <= 1; sign += 2) {
                size_t bytes = compress(61, 47, TJPF_CMYK, TJSAMP_420, 0); /* YCCK, with a marker that says so */
                if (!adobe)
                    bytes = without(bytes, 0xee);
                expect(GPST_OK, gpst_jpeg_read_header(file, bytes, &info));
                assert_int_equal(info.n_components, 4);
                assert_int_equal(info.format, GPST_FORMAT_RGB);
                assert_int_equal(info.planes, GPST_FORMAT_INVALID);
                assert_true(info.decoder_bytes > 61 * 47 * 4);
                const uint32_t n = gpst_format_channels(formats[f]);
                const bool swaps = formats[f] == GPST_FORMAT_BGR || formats[f] == GPST_FORMAT_BGRA;
                const int64_t pitch = 61 * n + 7;
                gpst_image picture = image_of(got + (sign < 0 ? pitch * 46 : 0), 61, 47, formats[f]);
                picture.pitch_bytes = sign * pitch;
                memset(got, 0xA5, sizeof got);
                decode_wanted(bytes, 61, 47, TJPF_CMYK);
                expect(GPST_OK, decode(file, bytes, GPST_DAMAGE_FAIL, &picture, NULL));
                for (size_t i = 0; i < 61 * 47; i++) {
                    const uint8_t* const at = (const uint8_t*)picture.data +
                                              (ptrdiff_t)(picture.pitch_bytes * (int64_t)(i / 61)) + i % 61 * n;
                    for (uint32_t c = 0; c < 3; c++) {
                        const uint8_t ink = wanted[4 * i + c], black = wanted[4 * i + 3];
                        assert_int_equal(at[swaps ? 2 - c : c],
                                         adobe ? mixed(ink, black) : mixed(255 - ink, 255 - black));
                    }
                    if (n == 4)
                        assert_int_equal(at[3], 255);
                }
                picture.format = GPST_FORMAT_GRAY;
                expect(GPST_ERROR_UNSUPPORTED, decode(file, bytes, GPST_DAMAGE_FAIL, &picture, NULL));
                if (sign > 0) {
                    gpst_jpeg_note note;
                    picture.format = formats[f];
                    expect(GPST_ERROR_TRUNCATED, decode(file, bytes / 2, GPST_DAMAGE_FAIL, &picture, NULL));
                    expect(GPST_OK, decode(file, bytes / 2, GPST_DAMAGE_KEEP, &picture, &note));
                    assert_true(note.damaged);
                }
            }
}

/* ---- plain files ------------------------------------------------------------------------------------- */

static bool is_plain(const uint8_t* data, size_t bytes, size_t* first) {
    uint8_t* const copy = (uint8_t*)malloc(bytes);
    memcpy(copy, data, bytes);
    const bool plain = gpsti_jpeg_is_plain(copy, bytes, first);
    free(copy);
    return plain;
}

static void test_plain(void** state) {
    size_t first = 0, bytes;
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
            bytes = compress(61, 47, TJPF_RGBX, samplings[s], flags);
            assert_int_equal(is_plain(file, bytes, &first), !flags && samplings[s] != TJSAMP_411);
            for (size_t cut = 2; cut < bytes; cut++)
                assert_false(is_plain(file, cut, &first));
            assert_false(is_plain(file, insert(file, bytes, bytes, "", 1) ? bytes + 1 : 0, &first));
        }
    /* The start and what is not extra are the same picture. */
    bytes = compress(61, 47, TJPF_RGBX, TJSAMP_420, 0);
    bytes = insert(file, bytes, find(file, bytes, 0xdb, 0), "\xff\xfe\0\6text\xff\xe2\0\3.", 13);
    memcpy(file, broken, bytes);
    assert_true(is_plain(file, bytes, &first));
    assert_int_equal(file[first + 1], 0xdb);
    const gpst_image picture = rgb_of(file, bytes);
    decode_wanted(bytes, 61, 47, TJPF_RGB);
    file[first - 2] = 0xff, file[first - 1] = 0xd8;
    assert_true(is_plain(file + first - 2, bytes - first + 2, &first));
    assert_int_equal(first, 2);
    bytes = compress(61, 47, TJPF_RGBX, TJSAMP_420, 0);
    first = find(file, bytes, 0xdb, 0);
    expect(GPST_OK, decode(file, bytes, GPST_DAMAGE_FAIL, &picture, NULL));
    assert_memory_equal(got, wanted, 61 * 47 * 3);
    /* A comment between other segments; another frame; numbers that would mean RGB. */
    assert_false(is_plain(broken, insert(file, bytes, find(file, bytes, 0xc0, 0), "\xff\xfe\0\2", 4), &first));
    const uint8_t* const frame = file + find(file, bytes, 0xc0, 0);
    assert_false(is_plain(broken, insert(file, bytes, find(file, bytes, 0xda, 0), frame, 19), &first));
    set_ids(bytes, "RGB");
    assert_false(is_plain(file, bytes, &first));
    set_ids(bytes, "\1\2\3");
    assert_true(is_plain(file, bytes, &first));
    bytes = without(bytes, 0xe0);
    assert_true(is_plain(file, bytes, &first));
    assert_false(is_plain(broken, with_adobe(bytes, 0), &first));
}

/* ---- headers ----------------------------------------------------------------------------------------- */

static void test_headers_that_are_refused(void** state) {
    static const struct {
        const char *bytes, *sentence;
        size_t n;
        gpst_result result;
    } cases[] = {
        {"", "empty", 0, GPST_ERROR_TRUNCATED},
        {"P5", "first bytes", 2, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff", "the header ends too early", 3, GPST_ERROR_TRUNCATED},
        {"\xff\xd8\xff\xe0\0\1", "a segment of 1 bytes at byte 2", 6, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xe0\0\0", "a segment of 0 bytes at byte 2", 6, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xe0\0\x10", "the header ends too early", 6, GPST_ERROR_TRUNCATED},
        {"\xff\xd8\xff\xd9", "there is no picture before the end", 4, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xd8", "a second start at byte 2", 4, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xda\0\3\1", "there is no frame header before the data", 7, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xc0\0\7\10\0\1\0\1", "a segment of 7 bytes", 11, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xc0\0\10\10\0\1\0\1\1", "a frame header of 8 bytes for 1", 12, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xc0\0\10\14\0\1\0\1\1", "12 bits a sample", 12, GPST_ERROR_UNSUPPORTED},
        {"\xff\xd8\xff\xc3\0\10\10\0\1\0\1\1", "a frame of type C3, lossless", 12, GPST_ERROR_UNSUPPORTED},
        {"\xff\xd8\xff\xc0\0\10\10\0\1\0\1\2", "2 components; 1 (gray), 3 and 4", 12, GPST_ERROR_UNSUPPORTED},
        {"\xff\xd8\xff\xc0\0\10\10\0\0\0\1\1", "1x0 pixels", 12, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xc0\0\10\10\x80\0\0\1\1", "1x32768 pixels", 12, GPST_ERROR_UNSUPPORTED},
        {"\xff\xd8\xff\xc0\0\13\10\0\1\0\1\1\1\x51\0", "sampling factors of 5x1", 15, GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xc0\0\13\10\0\1\0\1\1\1\x11\0", "the header ends too early", 15, GPST_ERROR_TRUNCATED},
        {"\xff\xd8\xff\xc0\0\13\10\0\1\0\1\1\1\x11\0\xff\xda\0\2", "a segment of 2 bytes at byte 15", 19,
         GPST_ERROR_FORMAT},
        {"\xff\xd8\xff\xc0\0\13\10\x7f\xff\x7f\xff\1\1\x11\0\xff\xda\0\3\1", "cannot hold 32767x32767 pixels", 20,
         GPST_ERROR_TRUNCATED},
    };
    const gpst_jpeg_info nothing = GPST_ZERO;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpst_jpeg_info info;
        memset(&info, 1, sizeof info);
        uint8_t* const copy = (uint8_t*)malloc(cases[i].n + 1);
        memcpy(copy, cases[i].bytes, cases[i].n);
        const gpst_result result = gpst_jpeg_read_header(copy, cases[i].n, &info);
        free(copy);
        if (result != cases[i].result || !strstr(gpst_last_reason(), cases[i].sentence))
            fail_msg("case %zu: %s: %s", i, gpst_result_name(result), gpst_last_reason());
        assert_memory_equal(&info, &nothing, sizeof info);
    }
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_read_header(NULL, 3, NULL));
}

/* Scans: only what is one counts, and 500 are the most. */
static void test_scans(void** state) {
    static const uint8_t head[] = {0xff, 0xd8, 0xff, 0xca, 0, 11, 8, 1, 0, 1, 0, 1, 1, 0x11, 0};
    static const uint8_t scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0};
    static const uint8_t text[] = {0xff, 0xfe, 0, 9, 0xff, 0xda, 0, 3, 0, 0xff, 0xda};
    static const uint8_t data[] = {1, 0xff, 0x00, 0xda, 0xff, 0xd0, 0xff, 0xff, 0xff, 0xd9, 0xff, 0xda, 0, 3, 0};
    gpst_jpeg_info info;
    (void)state;
    for (uint32_t n = 1; n <= 501; n += 50) {
        size_t at = sizeof head;
        memcpy(file, head, at);
        for (uint32_t i = 0; i < n; i++, at += sizeof scan)
            memcpy(file + at, scan, sizeof scan);
        memcpy(file + at, text, sizeof text);
        at += sizeof text;
        memcpy(file + at, data, sizeof data);
        for (size_t cut = 0; cut <= sizeof data; cut++) {
            const gpst_result result = gpst_jpeg_read_header(file, at + cut, &info);
            expect(n > 500 ? GPST_ERROR_UNSUPPORTED : GPST_OK, result);
            assert_int_equal(info.n_scans, n > 500 ? 0 : n);
        }
        if (n > 500)
            test_reason_has("501 scans", "500 at most");
        else
            assert_true(info.progressive && info.arithmetic && info.decoder_bytes > 256 * 256 * 2);
    }
}

/* Headers are read as far as pictures.h needs them; pixels are not its. */
static void test_kind(void** state) {
    const size_t bytes = compress(61, 47, TJPF_RGBX, TJSAMP_420, 0);
    gpst_file_kind kind;
    gpst_image shape;
    size_t offset = 1, used = ROOM;
    (void)state;
    expect(GPST_OK, gpst_picture_read_header(file, bytes, &kind, &shape, &offset));
    assert_int_equal(kind, GPST_FILE_JPEG);
    assert_int_equal(shape.width, 61);
    assert_int_equal(shape.height, 47);
    assert_int_equal(shape.format, GPST_FORMAT_RGB);
    assert_int_equal(shape.dtype, GPST_DTYPE_U8);
    assert_int_equal(shape.pitch_bytes, 61 * 3);
    assert_int_equal(offset, 0);
    expect(GPST_ERROR_TRUNCATED, gpst_picture_read_header(file, 30, &kind, &shape, &offset));
    assert_int_equal(kind, GPST_FILE_JPEG);
    shape = image_of(pixels, 61, 47, GPST_FORMAT_RGB);
    expect(GPST_ERROR_ARGUMENT, gpst_picture_encode(GPST_FILE_JPEG, &shape, broken, &used));
    test_reason_has("gpst_picture_encode: kind=JPEG", "gpst_jpeg_encode");
}

/* ---- garbage, memory --------------------------------------------------------------------------------- */

static void test_garbage(void** state) {
    uint64_t seed = test_seed(11);
    uint32_t passed = 0, failed = 0, kept = 0;
    (void)state;
    for (size_t s = 0; s < sizeof samplings / sizeof samplings[0]; s++)
        for (int flags = 0; flags <= TJFLAG_PROGRESSIVE; flags += TJFLAG_PROGRESSIVE) {
            const size_t bytes = compress(33, 21, TJPF_RGBX, samplings[s], flags);
            for (int i = 0; i < 150; i++) {
                gpst_jpeg_info info;
                gpst_jpeg_note note;
                clean(bytes);
                for (uint64_t n = 1 + test_random(&seed) % 3; n > 0; n--)
                    broken[test_random(&seed) % bytes] = (uint8_t)test_random(&seed);
                if (GPST_FAILED(gpst_jpeg_read_header(broken, bytes, &info)) ||
                    (uint64_t)info.width * info.height * 3 > ROOM) {
                    failed++;
                    continue;
                }
                gpst_image picture = rgb_of(broken, bytes);
                const bool right = decode(broken, bytes, GPST_DAMAGE_FAIL, &picture, &note) == GPST_OK;
                assert_true(!note.damaged && (right || !note.mended));
                *(right ? &passed : &failed) += 1;
                if (decode(broken, bytes, GPST_DAMAGE_KEEP, &picture, &note) == GPST_OK)
                    kept += note.damaged;
                else
                    assert_false(right);
            }
        }
    assert_true(passed > 0 && failed > 0 && kept > 0);
}

/* The n-th allocation fails: MEMORY, nothing is left behind, and the next call works. */
static void test_no_memory(void** state) {
    test_memory memory;
    const gpst_allocator hooks = test_memory_hooks(&memory);
    gpst_jpeg *other = NULL, *const first = self;
    const size_t bytes = compress(61, 47, TJPF_CMYK, TJSAMP_444, 0) - 2; /* to be mended, and with inks */
    gpst_image picture = image_of(got, 61, 47, GPST_FORMAT_RGB);
    (void)state;
    test_memory_refuse(&memory, 1);
    expect(GPST_ERROR_MEMORY, gpst_jpeg_create(&hooks, &other));
    assert_null(other);
    test_memory_relent(&memory);
    expect(GPST_OK, gpst_jpeg_create(&hooks, &other));
    self = other;
    uint64_t n = 1;
    for (;; n++) {
        test_memory_refuse(&memory, n);
        const gpst_result result = decode(file, bytes, GPST_DAMAGE_FAIL, &picture, NULL);
        if (!test_memory_refused(&memory)) {
            expect(GPST_OK, result);
            break;
        }
        expect(GPST_ERROR_MEMORY, result);
        test_reason_has("out of memory", "");
        assert_int_equal(gpsti_a64_load(&memory.live_blocks), 1);
    }
    assert_int_equal(n, 3);
    test_memory_relent(&memory);
    gpst_jpeg_destroy(other);
    self = first;
    test_memory_check(&memory);
}

static void test_create(void** state) {
    gpst_jpeg* other = self;
    gpst_allocator half = GPST_ZERO;
    (void)state;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_create(NULL, NULL));
    expect(GPST_ERROR_VERSION, gpst_jpeg_create_versioned(GPST_VERSION + 1, sizeof(gpst_jpeg_info), NULL, &other));
    assert_null(other);
    other = self;
    half.alloc = test_memory_alloc;
    expect(GPST_ERROR_ARGUMENT, gpst_jpeg_create(&half, &other));
    assert_null(other);
    gpst_jpeg_destroy(NULL);
}

static int group_setup(void** state) {
    (void)state;
    return gpst_jpeg_create(NULL, &self) == GPST_OK ? 0 : -1;
}

static int group_teardown(void** state) {
    (void)state;
    gpst_jpeg_destroy(self);
    return 0;
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_encoding_options),
        cmocka_unit_test(test_encoding_refuses),
        cmocka_unit_test(test_decoding_refuses),
        cmocka_unit_test(test_mending),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_missing_scans),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_inks),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_headers_that_are_refused),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_kind),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_create),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
#endif
