/* tests/test_jpeg.c -- JPEG by the real libturbojpeg: what is decoded and encoded against direct calls of it, what is
   refused, and no memory. */
#include "test.h"

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no turbojpeg.h: install libturbojpeg0-dev\n");
    return GPST_TEST_SKIP;
}
#else
#include "test_jpeg.h"

/* ---- bits -------------------------------------------------------------------------------------------- */

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

static void test_bounds(void** state) {
    (void)state;
    for (size_t s = 0; s < 5; s++)
        for (size_t z = 0; z < sizeof sizes / sizeof sizes[0]; z++) {
            const bool gray = samplings[s] == TJSAMP_GRAY;
            const gpst_format format = gray ? GPST_FORMAT_GRAY : GPST_FORMAT_BGR;
            const gpst_image image = image_of(NULL, sizes[z][0], sizes[z][1], format);
            gpst_jpeg_encode_desc desc = GPST_ZERO;
            size_t bound = 0;
            desc.chroma = gray ? GPST_FORMAT_INVALID : planes_of_sampling[s];
            expect(GPST_OK, gpst_jpeg_bound(&image, &desc, &bound));
            assert_int_equal(bound, tjBufSize((int)sizes[z][0], (int)sizes[z][1], samplings[s]));
        }
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

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pixels),
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_encoding),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_encoding_options),
        cmocka_unit_test(test_encoding_refuses),
        cmocka_unit_test(test_decoding_refuses),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_create),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
#endif
