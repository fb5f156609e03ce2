/* tests/test_metadata_files.c -- where JPEG, PNG, TIFF and WebP files keep EXIF, XMP and ICC, and which of several
   counts. */
#include "metadata_kit.h"

#define URI "\"http://ns.google.com/photos/1.0/panorama/\""
#define NAMESPACE "xmlns:GPano=" URI " "

static blob file;

static void put_orientation(blob* self, uint32_t value) {
    tiff_begin(self, true);
    (void)tiff_directory(self, 1);
    tiff_number(self, ORIENTATION, SHORT, value);
}

static const blob* orientation_of(uint32_t value) {
    static blob exif;
    put_orientation(&exif, value);
    return &exif;
}

/* ---- JPEG ------------------------------------------------------------------------------------------------- */

static const char sphere[] = "<d " NAMESPACE "GPano:ProjectionType='equirectangular'/>";

static void segments_that_count(void** state) {
    (void)state;
    jpeg_begin(&file); /* others before them, bytes to fill up, the first of two */
    jpeg_segment(&file, 0xe0, "JFIF", 5, NULL, 0);
    jpeg_segment(&file, 0xe1, NULL, 0, NULL, 0);
    jpeg_segment(&file, 0xe1, "Exif\0", 6, NULL, 0);
    jpeg_segment(&file, 0xe1, "Exif", 4, orientation_of(2)->data, orientation_of(2)->bytes);
    jpeg_segment(&file, 0xe2, "Exif\0", 6, orientation_of(4)->data, orientation_of(4)->bytes);
    jpeg_segment(&file, 0xe1, "http://ns.adobe.com/xmp/extension/", 35, sphere, strlen(sphere));
    blob_put(&file, "\xff\xff\xff", 3);
    jpeg_exif(&file, orientation_of(3));
    jpeg_exif(&file, orientation_of(5));
    assert_int_equal(read_blob(&file).orientation, 3);
    assert_false(read_blob(&file).has_sphere);
    jpeg_xmp(&file, "<d " NAMESPACE "GPano:ProjectionType='one'/>");
    jpeg_xmp(&file, sphere);
    assert_string_equal(read_blob(&file).projection, "one");

    jpeg_begin(&file); /* the first is no TIFF structure: the next one counts */
    jpeg_segment(&file, 0xe1, "Exif\0", 6, "II+\0\10\0\0\0\0\0", 10);
    assert_string_equal(read_blob(&file).note, "not read: EXIF");
    jpeg_exif(&file, orientation_of(3));
    assert_int_equal(read_blob(&file).orientation, 3);
    assert_string_equal(read_blob(&file).note, "");

    jpeg_begin(&file); /* in the picture's data */
    jpeg_segment(&file, 0xda, NULL, 0, "\1\1\0\0\77\0", 6);
    jpeg_exif(&file, orientation_of(3));
    assert_int_equal(read_blob(&file).orientation, 0);

    jpeg_begin(&file); /* behind a segment that is longer than the file, or shorter than its length */
    jpeg_segment(&file, 0xe0, "JFIF", 5, NULL, 0);
    jpeg_exif(&file, orientation_of(3));
    blob_set(&file, 4, 2, 60000);
    assert_int_equal(read_blob(&file).orientation, 0);
    blob_set(&file, 4, 2, 1);
    assert_int_equal(read_blob(&file).orientation, 0);
    blob_set(&file, 4, 2, 7);
    assert_int_equal(read_blob(&file).orientation, 3);
}

/* ---- profiles ----------------------------------------------------------------------------------------------- */

#define PART_BYTES 65519
static uint8_t profile[3 * PART_BYTES], got_profile[3 * PART_BYTES];

static size_t profile_bytes(void) {
    size_t bytes = sizeof got_profile;
    memset(got_profile, 0xa5, sizeof got_profile);
    assert_int_equal(gpst_metadata_read_icc(file.data, file.bytes, got_profile, &bytes), GPST_OK);
    return bytes;
}

typedef struct part {
    uint32_t number, n, bytes;
} part;

static void fill_profile(void) {
    for (size_t i = 0; i < sizeof profile; i++)
        profile[i] = (uint8_t)(i * 7 + i / 251);
}

static void profiles_of_jpegs(void** state) {
    static const struct {
        part parts[4];
        uint32_t bytes; /* of the profile; 0: it is none */
    } cases[] = {
        {{{1, 1, 4}}, 4}, {{{1, 3, PART_BYTES}, {2, 3, PART_BYTES}, {3, 3, 1}}, 2 * PART_BYTES + 1},
        {{{3, 3, 1}, {1, 3, PART_BYTES}, {2, 3, PART_BYTES}}, 2 * PART_BYTES + 1}, /* in any order */
        {{{1, 3, PART_BYTES}, {3, 3, 1}}, 0}, {{{1, 2, 4}}, 0}, {{{2, 2, 4}}, 0}, /* one is missing */
        {{{1, 2, PART_BYTES}, {1, 2, PART_BYTES}}, 0}, /* one is there twice */
        {{{1, 2, PART_BYTES}, {2, 2, 4}, {1, 2, 4}}, 0}, {{{1, 1, 4}, {1, 1, 4}}, 0},
        {{{0, 1, 4}}, 0}, {{{1, 0, 4}}, 0}, {{{2, 1, 4}}, 0}, {{{0, 1, 4}, {1, 1, 4}}, 0}, /* wrong numbers */
        {{{1, 2, PART_BYTES}, {2, 3, 4}}, 0}, {{{1, 1, 4}, {2, 2, 4}}, 0}, {{{1, 2, 4}, {2, 1, 4}, {2, 2, 4}}, 0},
        {{{1, 1, 4}, {2, 1, 4}}, 0},
    };
    (void)state;
    fill_profile();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        jpeg_begin(&file);
        for (const part* one = cases[i].parts; one->bytes > 0; one++) {
            jpeg_icc(&file, one->number, one->n, profile + PART_BYTES * (size_t)(one->number ? one->number - 1 : 0),
                     one->bytes);
            jpeg_segment(&file, 0xe2, "MPF", 4, profile, 9);
        }
        const size_t bytes = profile_bytes();
        if (bytes != cases[i].bytes)
            fail_msg("case %u: %u bytes", (unsigned)i, (unsigned)bytes);
        assert_memory_equal(got_profile, profile, bytes);
        assert_string_equal(read_blob(&file).note, bytes > 0 ? "" : "not read: ICC profile");
    }
    jpeg_begin(&file); /* parts of no bytes are none */
    jpeg_icc(&file, 1, 1, NULL, 0);
    assert_int_equal(profile_bytes(), 0);
    jpeg_begin(&file);
    jpeg_icc(&file, 1, 2, profile, 4);
    jpeg_icc(&file, 2, 2, NULL, 0);
    assert_int_equal(profile_bytes(), 0);
}

/* Numbers that are not 1 to n of n: as the parts come, if the profile says that they are all of it. */
static void profiles_that_are_numbered_oddly(void** state) {
    static const part cases[][3] = {
        {{0, 3, 0}, {1, 3, 0}, {2, 3, 0}}, {{1, 1, 0}, {1, 1, 0}, {1, 1, 0}}, {{1, 2, 0}, {2, 2, 0}, {3, 2, 0}},
        {{1, 9, 0}, {2, 9, 0}, {3, 9, 0}}, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, {{7, 3, 0}, {8, 3, 0}, {9, 3, 0}}};
    (void)state;
    for (size_t i = 0; i < 3 * sizeof cases / sizeof cases[0]; i++) {
        const size_t said = 300 + i % 3 - 1; /* one too few, right, one too many */
        fill_profile();
        profile[0] = profile[1] = 0, profile[2] = (uint8_t)(said >> 8), profile[3] = (uint8_t)said;
        jpeg_begin(&file);
        for (size_t k = 0; k < 3; k++)
            jpeg_icc(&file, cases[i / 3][k].number, cases[i / 3][k].n, profile + 100 * k, 100);
        assert_int_equal(profile_bytes(), said == 300 ? 300 : 0);
        assert_memory_equal(got_profile, profile, said == 300 ? 300 : 0);
        assert_string_equal(read_blob(&file).note, said == 300 ? "" : "not read: ICC profile");
    }
    fill_profile();
    jpeg_begin(&file); /* more than there can be */
    for (uint32_t number = 1; number <= 256; number++)
        jpeg_icc(&file, number, 255, profile, 3);
    assert_int_equal(profile_bytes(), 0);
}

static void profile_of_255_parts(void** state) {
    (void)state;
    jpeg_begin(&file);
    for (uint32_t number = 255; number > 0; number--)
        jpeg_icc(&file, number, 255, profile + 3 * (number - 1), 3);
    assert_int_equal(profile_bytes(), 255 * 3);
    assert_memory_equal(got_profile, profile, 255 * 3);
}

static void profiles_need_room(void** state) {
    size_t bytes = 3;
    (void)state;
    jpeg_begin(&file);
    jpeg_icc(&file, 1, 1, profile, 4);
    got_profile[0] = 0xa5;
    assert_int_equal(gpst_metadata_read_icc(file.data, file.bytes, got_profile, &bytes), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_metadata_read_icc: icc_bytes=3: 4 are needed");
    assert_int_equal(bytes, 3);
    assert_int_equal(got_profile[0], 0xa5);
    assert_int_equal(gpst_metadata_read_icc(NULL, 9, NULL, &bytes), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_metadata_read_icc(file.data, file.bytes, got_profile, NULL), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_metadata_read_icc: data and icc_bytes: required");
}

static void profiles_of_tiffs(void** state) {
    static const uint32_t types[] = {BYTE, UNDEFINED, ASCII, SHORT, LONG};
    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        tiff_begin(&file, i % 2 == 1);
        const uint32_t directory = tiff_directory(&file, 1);
        tiff_bytes(&file, ICC, types[i], profile, 100);
        if (i >= 3)
            blob_set(&file, directory + 6, 4, 10); /* fewer, since each is larger */
        assert_int_equal(profile_bytes(), i < 3 ? 100 : 0);
        assert_memory_equal(got_profile, profile, i < 3 ? 100 : 0);
        blob_set(&file, directory + 6, 4, 101);
        assert_int_equal(profile_bytes(), 0);
    }
}

/* ---- PNG and WebP --------------------------------------------------------------------------------------------- */

#define KEYWORD "XML:com.adobe.xmp"

static void put_text(const char* keyword, int compressed, const char* rest, size_t rest_bytes) {
    char text[512];
    const int used = snprintf(text, sizeof text, "%s%c%c%c", keyword, 0, compressed, 0);
    memcpy(text + used, rest, rest_bytes);
    png_chunk(&file, "iTXt", text, (size_t)used + rest_bytes);
}

static void chunks_of_pngs(void** state) {
    char rest[256];
    const int used = snprintf(rest, sizeof rest, "de%cwort%c%s", 0, 0, sphere);
    const size_t bytes = (size_t)used;
    (void)state;
    png_begin(&file);
    put_text("Comment", 0, rest, bytes);
    put_text(KEYWORD, 1, rest, bytes); /* compressed, it says */
    put_text(KEYWORD, 0, "de", 2);     /* without what must be there */
    put_text(KEYWORD, 0, "de\0w", 4);
    put_text(KEYWORD, 0, "\0", 2); /* of no bytes */
    png_chunk(&file, "iTXt", KEYWORD, sizeof KEYWORD);
    png_chunk(&file, "iTXt", NULL, 0);
    assert_string_equal(read_blob(&file).projection, "");
    assert_string_equal(read_blob(&file).note, "not read: XMP");
    png_chunk(&file, "tEXt", KEYWORD, sizeof KEYWORD);
    put_text(KEYWORD, 0, rest, bytes);
    assert_true(read_blob(&file).has_sphere);
    png_chunk(&file, "eXIf", NULL, 0);
    png_chunk(&file, "eXIf", orientation_of(3)->data, orientation_of(3)->bytes);
    png_chunk(&file, "eXIf", orientation_of(5)->data, orientation_of(5)->bytes);
    assert_int_equal(read_blob(&file).orientation, 3);
    blob_set(&file, 8, 4, (uint32_t)file.bytes - 19); /* one byte longer than the file */
    assert_int_equal(read_blob(&file).orientation, 0);
    blob_set(&file, 8, 4, 0xffffffff);
    assert_int_equal(read_blob(&file).orientation, 0);
    png_begin(&file); /* iCCP is compressed */
    png_chunk(&file, "iCCP", "p\0\0x", 4);
    assert_int_equal(profile_bytes(), 0);
}

/* Each byte of what is packed is wrong once, or the last: what is read is right, or noted. */
static void damaged_texts_of_pngs(void** state) {
    static blob digits;
    (void)state;
    raw_profile(&digits, "exif", orientation_of(6)->data, orientation_of(6)->bytes);
    for (int way = 0; way < 2; way++) {
        png_begin(&file);
        png_text(&file, "zTXt", "Raw profile type exif", true, digits.data, digits.bytes);
        assert_int_equal(read_blob(&file).orientation, 6);
        const size_t begin = 8 + 8 + strlen("Raw profile type exif") + 2, end = file.bytes - 4;
        for (size_t at = begin; at < end; at++) {
            const uint8_t was = file.data[at];
            const size_t bytes = file.bytes;
            if (way == 0) {
                file.data[at] ^= 1;
            } else {
                blob_set(&file, 8, 4, at - 16);
                file.bytes = at + 4;
            }
            const gpst_metadata metadata = read_blob(&file);
            assert_int_equal(metadata.orientation, metadata.note[0] ? 0 : way == 0 || at > begin ? 6 : 0);
            if (metadata.note[0])
                assert_string_equal(metadata.note, "not read: EXIF");
            file.data[at] = was;
            file.bytes = bytes;
        }
    }
    png_begin(&file);
    png_text(&file, "tEXt", "Raw profile type exif", false, "\nexif\n 2\n4g4d", 13);
    assert_string_equal(read_blob(&file).note, "not read: EXIF");
    png_chunk(&file, "eXIf", orientation_of(6)->data, orientation_of(6)->bytes); /* the next that can be read counts */
    assert_int_equal(read_blob(&file).orientation, 6);
    assert_string_equal(read_blob(&file).note, "");
    png_begin(&file); /* the block itself */
    png_chunk(&file, "eXIf", "no TIFF at all", 14);
    assert_string_equal(read_blob(&file).note, "not read: EXIF");
    png_text(&file, "zTXt", "Raw profile type exif", true, digits.data, digits.bytes);
    assert_int_equal(read_blob(&file).orientation, 6);
    assert_string_equal(read_blob(&file).note, "");
}

static void chunks_of_webps(void** state) {
    blob exif_file;
    (void)state;
    webp_begin(&file);
    webp_chunk(&file, "VP8X", "12345", 5); /* an odd number, and a byte behind it */
    webp_chunk(&file, "EXIF", NULL, 0);
    webp_chunk(&file, "EXIF", orientation_of(3)->data, orientation_of(3)->bytes);
    webp_chunk(&file, "EXIF", orientation_of(5)->data, orientation_of(5)->bytes);
    webp_chunk(&file, "ICCP", NULL, 0);
    webp_chunk(&file, "ICCP", profile, 7);
    webp_chunk(&file, "ICCP", profile + 9, 9);
    assert_int_equal(read_blob(&file).orientation, 3);
    assert_int_equal(profile_bytes(), 7);
    assert_memory_equal(got_profile, profile, 7);
    blob_set(&file, file.bytes - 14, 4, 11); /* what stands in front of a cut chunk counts */
    assert_int_equal(profile_bytes(), 7);

    webp_begin(&file); /* as in a JPEG; odd, and the last, without the byte behind it */
    exif_file.bytes = 0;
    blob_put(&exif_file, "Exif\0", 6);
    blob_put(&exif_file, orientation_of(7)->data, orientation_of(7)->bytes);
    blob_put(&exif_file, "", 1);
    webp_chunk(&file, "EXIF", exif_file.data, exif_file.bytes);
    assert_int_equal(exif_file.bytes % 2, 1);
    file.bytes--;
    assert_int_equal(read_blob(&file).orientation, 7);
    file.bytes--;
    assert_int_equal(read_blob(&file).orientation, 0);

    webp_begin(&file);
    webp_chunk(&file, "VP8 ", "1234", 4);
    webp_chunk(&file, "EXIF", orientation_of(3)->data, orientation_of(3)->bytes);
    blob_set(&file, 16, 4, (uint32_t)file.bytes - 19);
    assert_int_equal(read_blob(&file).orientation, 0);
    blob_set(&file, 16, 4, 0xffffffff);
    assert_int_equal(read_blob(&file).orientation, 0);
}

/* ---- other files ---------------------------------------------------------------------------------------------- */

static void other_files(void** state) {
    static const char* const files[] = {"P6 1 1 255 abc", "RIFF1234WAVEEXIF", "\x89PNG\r\n\x1a\r", "GIF89a", "I", "II*",
                                        "MM*\0", "\xff\xd8"};
    const gpst_metadata nothing = GPST_ZERO;
    gpst_metadata metadata = read_bytes("", 0);
    (void)state;
    expect_metadata(&metadata, &nothing);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        metadata = read_bytes(files[i], strlen(files[i]));
        expect_metadata(&metadata, &nothing);
    }
    put_orientation(&file, 3);
    assert_int_equal(read_blob(&file).orientation, 3);
    file.data[3] = 43; /* BigTIFF */
    assert_int_equal(read_blob(&file).orientation, 0);
    assert_int_equal(gpst_metadata_read(NULL, 9, &metadata), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_metadata_read(file.data, file.bytes, NULL), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_metadata_read: data and out: required");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_that_count),
        cmocka_unit_test(profiles_of_jpegs),
        cmocka_unit_test(profile_of_255_parts),
        cmocka_unit_test(profiles_need_room),
        cmocka_unit_test(profiles_of_tiffs),
        cmocka_unit_test(chunks_of_pngs),
        cmocka_unit_test(chunks_of_webps),
        cmocka_unit_test(other_files),
        cmocka_unit_test(damaged_texts_of_pngs),
        cmocka_unit_test(profiles_that_are_numbered_oddly),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
