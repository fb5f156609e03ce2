/* tests/test_metadata_files.c -- where JPEG, PNG, TIFF and WebP files keep EXIF, XMP and ICC, which of several counts,
   and how GPano may be written. */
#include "metadata_kit.h"

#include <math.h>

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

/* ---- GPano ----------------------------------------------------------------------------------------------- */

static gpst_metadata read_xmp(const char* xmp) {
    webp_begin(&file);
    webp_chunk(&file, "XMP ", xmp, strlen(xmp));
    return read_blob(&file);
}

/* Packets that say a sphere of 8000 pixels that was taken towards 12.5 degrees. */
static void forms_that_are_read(void** state) {
    static const char* const packets[] = {
        "<rdf:Description " NAMESPACE "GPano:ProjectionType=\"equirectangular\" GPano:FullPanoWidthPixels=\"8000\" "
        "GPano:PoseHeadingDegrees=\"12.5\"/>",
        "<rdf:Description GPano:ProjectionType='equirectangular' GPano:FullPanoWidthPixels = '8000'\r\n"
        "\tGPano:PoseHeadingDegrees\n=\t\"12.5\" xmlns:GPano\n = " URI "/>",
        "<rdf:Description " NAMESPACE "><GPano:ProjectionType>equirectangular</GPano:ProjectionType>"
        "<GPano:FullPanoWidthPixels>\n 8000\t</GPano:FullPanoWidthPixels>"
        "<GPano:PoseHeadingDegrees rdf:datatype='x'>12.5</GPano:PoseHeadingDegrees></rdf:Description>",
        "<d xmlns:GPano='http://else.where/' xmlns:p='http://ns.google.com/photos/1.0/panorama/' "
        "GPano:ProjectionType='cylindrical' p:ProjectionType='equirectangular' GPano:FullPanoWidthPixels='1' "
        "p:FullPanoWidthPixels='8000'><p:PoseHeadingDegrees>12.5</p:PoseHeadingDegrees></d>",
        /* names that end as one does, and begin as one does */
        "<d " NAMESPACE "xGPano:ProjectionType='cylindrical' GPano:ProjectionTypes='cubic' >"
        "<GPano:ProjectionTypes>cubic</GPano:ProjectionTypes><yGPano:ProjectionType>cubic</yGPano:ProjectionType>"
        "<GPano:PoseHeadingDegreesOf>99</GPano:PoseHeadingDegreesOf><GPano:FullPanoWidthPixels.>1<"
        "/GPano:FullPanoWidthPixels.><GPano:ProjectionType>equirectangular</GPano:ProjectionType>"
        "<GPano:FullPanoWidthPixels>8000</GPano:FullPanoWidthPixels>"
        "<GPano:PoseHeadingDegrees>12.5</GPano:PoseHeadingDegrees></d>",
        /* the first of two */
        "<d xmlns:GPan='GPano' xmlns:=" URI " " NAMESPACE "GPano:ProjectionType='equirectangular' "
        "GPano:ProjectionType='cubic' GPano:PoseHeadingDegrees='12.5' GPano:FullPanoWidthPixels='8000' "
        "GPano:FullPanoWidthPixels='9'/>",
    };
    (void)state;
    for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
        gpst_metadata wanted = GPST_ZERO;
        const gpst_metadata metadata = read_xmp(packets[i]);
        strcpy(wanted.projection, "equirectangular");
        wanted.has_sphere = true;
        wanted.full_width = 8000;
        wanted.heading = 12.5;
        expect_metadata(&metadata, &wanted);
    }
}

static void forms_that_say_nothing(void** state) {
    static const char* const packets[] = {
        "", " ", "xmlns:", "xmlns:GPano", "xmlns:GPano=", "xmlns:GPano=\"", NAMESPACE, "<d GPano:ProjectionType='a'/>",
        "<d xmlns:GPano='http://ns.google.com/photos/1.0/panorama' GPano:ProjectionType='a'/>",
        "<d xmlns:=" URI " :ProjectionType='a'/>",
        "<d xmlns:a2345678901234567890123456789012=" URI " a2345678901234567890123456789012:ProjectionType='a'/>",
        NAMESPACE "GPano:ProjectionType", NAMESPACE " GPano:ProjectionType=", NAMESPACE " GPano:ProjectionType=\"open",
        NAMESPACE " GPano:ProjectionType=bare ", NAMESPACE " GPano:ProjectionType=''",
        NAMESPACE "<GPano:ProjectionType", NAMESPACE "<GPano:ProjectionType>", NAMESPACE "<GPano:ProjectionType>open",
        NAMESPACE "<GPano:ProjectionType/>x<", NAMESPACE "<GPano:ProjectionType a='b' />x<",
        NAMESPACE "<GPano:ProjectionType></GPano:ProjectionType>",
        NAMESPACE "<GPano:ProjectionType> \n </GPano:ProjectionType>",
    };
    const gpst_metadata nothing = GPST_ZERO;
    (void)state;
    for (size_t i = 0; i < sizeof packets / sizeof packets[0]; i++) {
        const gpst_metadata metadata = read_xmp(packets[i]);
        expect_metadata(&metadata, &nothing);
    }
    const gpst_metadata longest = read_xmp("<d xmlns:a234567890123456789012345678901=" URI
                                           " a234567890123456789012345678901:ProjectionType='a'/>");
    assert_string_equal(longest.projection, "a");
}

static void projections(void** state) {
    static const char* const texts[][2] = {{"cylindrical", "cylindrical"}, {"Equirectangular", "Equirectangular"},
                                           {"equirectangular ", "equirectangular "}, {"a\xc3\xa4\x7f\nz", "a????z"},
                                           {"equirectangular, or the longest name of all",
                                            "equirectangular, or the longest"}};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char packet[256];
        snprintf(packet, sizeof packet, NAMESPACE "GPano:ProjectionType=\"%s\" GPano:PosePitchDegrees=\"1\"/>",
                 texts[i][0]);
        const gpst_metadata metadata = read_xmp(packet);
        assert_string_equal(metadata.projection, texts[i][1]);
        assert_false(metadata.has_sphere);
        assert_true(metadata.pitch == 1.0);
    }
}

/* What each text is as a size and as an angle; not a number: 0. */
static void numbers(void** state) {
    static const struct {
        const char* text;
        uint32_t size;
        double angle;
    } cases[] = {
        {"0", 0, 0.0}, {"4294967295", 4294967295u, 4294967295.0}, {"4294967296", 0, 4294967296.0},
        {"4294967295.5", 0, 4294967295.5}, {"8000.0", 8000, 8000.0}, {"8000.75", 8000, 8000.75}, {"007", 7, 7.0},
        {"+5", 5, 5.0}, {"-5", 0, -5.0}, {"5.", 5, 5.0}, {".5", 0, 0.5}, {"-.25", 0, -0.25}, {"", 0, 0.0},
        {"-", 0, 0.0}, {"+", 0, 0.0}, {".", 0, 0.0}, {"-.", 0, 0.0}, {"--5", 0, 0.0}, {"+-5", 0, 0.0}, {"5-", 0, 0.0},
        {"1,5", 0, 0.0}, {"1.2.3", 0, 0.0}, {"1..2", 0, 0.0}, {"1e3", 0, 0.0}, {"0x10", 0, 0.0}, {"nan", 0, 0.0},
        {"inf", 0, 0.0}, {"1 000", 0, 0.0}, {" 5", 0, 0.0}, {"5 ", 0, 0.0}, {"12;", 0, 0.0}, {"\xd9\xa5", 0, 0.0},
        {"1234567890123456789012345678901234567890", 0, 1.2345678901234568e39},
        {"12345678901234567890123456789012345678901", 0, 0.0},
        {"0.000000000000000000000000000000000000001", 0, 1e-39}, {"359.9999999999", 359, 359.9999999999},
        {"-0.3", 0, -0.3}, {"123.456789012345", 123, 123.456789012345},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static const char* const angles[] = {"PoseHeadingDegrees", "PosePitchDegrees", "PoseRollDegrees"};
        char packet[512];
        snprintf(packet, sizeof packet,
                 "<d " NAMESPACE "GPano:ProjectionType='a' GPano:CroppedAreaTopPixels='%s' GPano:%s='%s'/>",
                 cases[i].text, angles[i % 3], cases[i].text);
        const gpst_metadata metadata = read_xmp(packet);
        const double got[3] = {metadata.heading, metadata.pitch, metadata.roll};
        assert_int_equal(metadata.crop_top, cases[i].size);
        const double off = strlen(cases[i].text) > 16 ? 1e-15 * fabs(cases[i].angle) : 0.0;
        if (!(fabs(got[i % 3] - cases[i].angle) <= off))
            fail_msg("%s is %.17g", cases[i].text, got[i % 3]);
    }
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

    jpeg_begin(&file); /* the first is no TIFF structure */
    jpeg_segment(&file, 0xe1, "Exif\0", 6, "II+\0\10\0\0\0\0\0", 10);
    jpeg_exif(&file, orientation_of(3));
    assert_int_equal(read_blob(&file).orientation, 0);

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
    for (size_t i = 0; i < sizeof profile; i++)
        profile[i] = (uint8_t)(i * 7 + i / 251);
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
    }
    jpeg_begin(&file); /* parts of no bytes are none */
    jpeg_icc(&file, 1, 1, NULL, 0);
    assert_int_equal(profile_bytes(), 0);
    jpeg_begin(&file);
    jpeg_icc(&file, 1, 2, profile, 4);
    jpeg_icc(&file, 2, 2, NULL, 0);
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
    put_text(KEYWORD, 1, rest, bytes); /* compressed */
    put_text(KEYWORD, 0, "de", 2);     /* without what must be there */
    put_text(KEYWORD, 0, "de\0w", 4);
    put_text(KEYWORD, 0, "\0", 2); /* of no bytes */
    png_chunk(&file, "iTXt", KEYWORD, sizeof KEYWORD);
    png_chunk(&file, "iTXt", NULL, 0);
    assert_string_equal(read_blob(&file).projection, "");
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
        cmocka_unit_test(forms_that_are_read),  cmocka_unit_test(forms_that_say_nothing),
        cmocka_unit_test(projections),          cmocka_unit_test(numbers),
        cmocka_unit_test(segments_that_count),  cmocka_unit_test(profiles_of_jpegs),
        cmocka_unit_test(profile_of_255_parts), cmocka_unit_test(profiles_need_room),
        cmocka_unit_test(profiles_of_tiffs),    cmocka_unit_test(chunks_of_pngs),
        cmocka_unit_test(chunks_of_webps),      cmocka_unit_test(other_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
