/* tests/test_jpeg_files.c -- JPEG files as they come: headers, colours and inks, what is mended, what is damaged, what
   a decoder on a GPU may have. */
#include "test.h"

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no turbojpeg.h: install libturbojpeg0-dev\n");
    return GPST_TEST_SKIP;
}
#else
#include "test_jpeg.h"

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

/* Up to 16 zeros before the end (of what it had read ahead, 4 bytes at least and 8 at most, the decoder says nothing
   itself); what stands behind it is nobody's. */
static void test_padding(void** state) {
    static const uint8_t zeros[17] = {0};
    const size_t bytes = compress(61, 47, TJPF_RGBX, TJSAMP_420, 0);
    gpst_image picture;
    gpst_jpeg_note note;
    (void)state;
    decode_wanted(bytes, 61, 47, TJPF_RGB);
    assert_int_not_equal(file[bytes - 3], 0);
    expect_mended(insert(file, bytes, bytes - 2, zeros, 9), "mended: bytes before the end");
    expect_mended(insert(file, bytes, bytes - 2, zeros, 16), "mended: bytes before the end");
    size_t more = insert(file, bytes, bytes - 2, zeros, 17);
    picture = rgb_of(broken, more);
    expect(GPST_ERROR_FORMAT, decode(broken, more, GPST_DAMAGE_FAIL, &picture, NULL));
    test_reason_has("JPEG: there are more data than pixels before marker 0xd9: damage, or added bytes", "");
    more = insert(file, bytes, bytes - 2, "UUUU", 4);
    expect(GPST_OK, decode(broken, more, GPST_DAMAGE_FAIL, &picture, &note));
    assert_string_equal(note.text, "");
    assert_memory_equal(got, wanted, 61 * 47 * 3);
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

/* ---- garbage ----------------------------------------------------------------------------------------- */

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

/* With Adobe's marker the inks are inverted in the file; without one they are taken for it, and that is said. */
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
                gpst_jpeg_note note;
                expect(GPST_OK, decode(file, bytes, GPST_DAMAGE_FAIL, &picture, &note));
                assert_int_equal(note.text[0] == 0, adobe);
                assert_true(adobe || strstr(note.text, "CMYK without an Adobe marker"));
                assert_false(note.mended || note.damaged);
                for (size_t i = 0; i < 61 * 47; i++) {
                    const uint8_t* const at = (const uint8_t*)picture.data +
                                              (ptrdiff_t)(picture.pitch_bytes * (int64_t)(i / 61)) + i % 61 * n;
                    for (uint32_t c = 0; c < 3; c++) {
                        const uint8_t ink = wanted[4 * i + c], black = wanted[4 * i + 3];
                        assert_int_equal(at[swaps ? 2 - c : c], mixed(ink, black));
                    }
                    if (n == 4)
                        assert_int_equal(at[3], 255);
                }
                picture.format = GPST_FORMAT_GRAY;
                expect(GPST_ERROR_UNSUPPORTED, decode(file, bytes, GPST_DAMAGE_FAIL, &picture, NULL));
                if (sign > 0) {
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

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mending),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_missing_scans),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_garbage),
        cmocka_unit_test(test_colours),
        cmocka_unit_test(test_inks),
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_headers_that_are_refused),
        cmocka_unit_test(test_scans),
        cmocka_unit_test(test_kind),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
#endif
