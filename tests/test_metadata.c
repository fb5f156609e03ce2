/* tests/test_metadata.c -- what JPEG, PNG, TIFF and WebP files say beside their pixels; of EXIF also what does not
   count. */
#include "metadata_kit.h"

#include <math.h>

#define GPANO_URI "http://ns.google.com/photos/1.0/panorama/"
#define GPANO "xmlns:GPano=\"" GPANO_URI "\" "

static blob exif_blob, file;

/* ---- everything ------------------------------------------------------------------------------------------- */

static const char all_xmp[] = "<x:xmpmeta><rdf:RDF><rdf:Description rdf:about=\"\" " GPANO
                              "GPano:ProjectionType=\"equirectangular\" GPano:FullPanoWidthPixels=\"8000\" "
                              "GPano:FullPanoHeightPixels=\"4000\"\nGPano:CroppedAreaImageWidthPixels=\"7000\" "
                              "GPano:CroppedAreaImageHeightPixels=\"3000\" GPano:CroppedAreaLeftPixels=\"500\" "
                              "GPano:CroppedAreaTopPixels=\"600\" GPano:PoseHeadingDegrees=\"350.5\" "
                              "GPano:PosePitchDegrees=\"-2.25\" GPano:PoseRollDegrees=\"+1.125\"/></rdf:RDF>";

static const uint8_t all_icc[] = {9, 8, 7, 6, 5, 4, 3, 2, 1};

static gpst_rational ratio(uint32_t numerator, uint32_t denominator) {
    gpst_rational value;
    value.numerator = numerator, value.denominator = denominator;
    return value;
}

static gpst_metadata all_exif(void) {
    gpst_metadata all = GPST_ZERO;
    all.orientation = 6;
    strcpy(all.date, "2024:05:06 07:08:09");
    strcpy(all.date_offset, "-02:30");
    strcpy(all.subsecond, "123456789");
    all.gps.latitude_ref = 'S', all.gps.longitude_ref = 'W';
    all.gps.latitude[0] = ratio(47, 1), all.gps.latitude[1] = ratio(30, 2), all.gps.latitude[2] = ratio(123456, 1000);
    all.gps.longitude[0] = ratio(8, 1), all.gps.longitude[1] = ratio(0, 1), all.gps.longitude[2] = ratio(1, UINT32_MAX);
    all.gps.has_altitude = all.gps.is_below_sea = true;
    all.gps.altitude = ratio(4294967295u, 1000);
    all.gps.has_time = true;
    all.gps.time[0] = ratio(5, 1), all.gps.time[1] = ratio(38, 1), all.gps.time[2] = ratio(9123, 1000);
    strcpy(all.gps.date, "2024:05:07");
    return all;
}

static gpst_metadata all_of_it(void) {
    gpst_metadata all = all_exif();
    strcpy(all.projection, "equirectangular");
    all.has_sphere = true;
    all.full_width = 8000, all.full_height = 4000;
    all.crop_width = 7000, all.crop_height = 3000, all.crop_left = 500, all.crop_top = 600;
    all.heading = 350.5, all.pitch = -2.25, all.roll = 1.125;
    return all;
}

static void put_gps(blob* self, const gpst_gps* gps) {
    const char ns[2] = {gps->latitude_ref, 0}, ew[2] = {gps->longitude_ref, 0};
    (void)tiff_directory(self, 8);
    tiff_text(self, 1, ns);
    tiff_rationals(self, 2, gps->latitude, 3);
    tiff_text(self, 3, ew);
    tiff_rationals(self, 4, gps->longitude, 3);
    tiff_number(self, 5, BYTE, gps->is_below_sea);
    tiff_rationals(self, 6, &gps->altitude, 1);
    tiff_rationals(self, 7, gps->time, 3);
    tiff_text(self, 0x1d, gps->date);
}

/* Where the directories of put_all lie. */
static size_t first_at, exif_at, gps_at;

/* A block that says all; a TIFF file has XMP and ICC in it. */
static void put_all(blob* self, bool big, bool is_file) {
    const gpst_metadata all = all_exif();
    tiff_begin(self, big);
    first_at = tiff_directory(self, is_file ? 6 : 4);
    tiff_number(self, ORIENTATION, SHORT, all.orientation);
    tiff_text(self, DATE, "2020:01:02 03:04:05");
    if (is_file) {
        tiff_bytes(self, XMP, BYTE, all_xmp, strlen(all_xmp));
        tiff_bytes(self, ICC, UNDEFINED, all_icc, sizeof all_icc);
    }
    const size_t pointers = self->entry;
    tiff_number(self, EXIF_POINTER, LONG, 0);
    tiff_number(self, GPS_POINTER, LONG, 0);
    exif_at = tiff_directory(self, 3);
    tiff_text(self, DATE_ORIGINAL, all.date);
    tiff_text(self, OFFSET_ORIGINAL, all.date_offset);
    tiff_text(self, SUBSECOND_ORIGINAL, all.subsecond);
    gps_at = self->bytes;
    put_gps(self, &all.gps);
    blob_set(self, pointers + 8, 4, (uint32_t)exif_at);
    blob_set(self, pointers + 20, 4, (uint32_t)gps_at);
}

enum { IN_JPEG, IN_PNG, IN_WEBP, IN_TIFF, N_CONTAINERS };

static void put_file(int container, bool big) {
    put_all(&exif_blob, big, container == IN_TIFF);
    if (container == IN_JPEG) {
        jpeg_begin(&file);
        jpeg_exif(&file, &exif_blob);
        jpeg_xmp(&file, all_xmp);
        jpeg_icc(&file, 1, 1, all_icc, sizeof all_icc);
    } else if (container == IN_PNG) {
        char text[2048];
        const int used = snprintf(text, sizeof text, "XML:com.adobe.xmp%c%c%cde%cw%c%s", 0, 0, 0, 0, 0, all_xmp);
        png_begin(&file);
        png_chunk(&file, "IHDR", "\0\0\0\1\0\0\0\1\10\0\0\0", 13);
        png_chunk(&file, "iTXt", text, (size_t)used);
        png_chunk(&file, "eXIf", exif_blob.data, exif_blob.bytes);
    } else if (container == IN_WEBP) {
        webp_begin(&file);
        webp_chunk(&file, "ICCP", all_icc, sizeof all_icc);
        webp_chunk(&file, "EXIF", exif_blob.data, exif_blob.bytes);
        webp_chunk(&file, "XMP ", all_xmp, strlen(all_xmp));
    } else {
        file = exif_blob;
    }
}

static size_t read_icc(uint8_t* out, size_t room) {
    size_t needed = 0, bytes = room;
    assert_int_equal(gpst_metadata_read_icc(file.data, file.bytes, NULL, &needed), GPST_OK);
    assert_int_equal(gpst_metadata_read_icc(file.data, file.bytes, out, &bytes), GPST_OK);
    assert_int_equal(bytes, needed);
    return bytes;
}

static void every_field_of_every_file(void** state) {
    const gpst_metadata all = all_of_it();
    (void)state;
    for (int i = 0; i < 2 * N_CONTAINERS; i++) {
        uint8_t icc[64];
        put_file(i / 2, i % 2 == 1);
        const gpst_metadata metadata = read_blob(&file);
        expect_metadata(&metadata, &all);
        const size_t bytes = read_icc(icc, sizeof icc);
        assert_int_equal(bytes, i / 2 == IN_PNG ? 0 : sizeof all_icc);
        assert_memory_equal(icc, all_icc, bytes);
    }
}

static bool text_is(const char* text, const char* one, const char* other) {
    return text[0] == 0 || strcmp(text, one) == 0 || strcmp(text, other) == 0;
}

static bool number_is(uint32_t value, uint32_t wanted) { return value == 0 || value == wanted; }

static bool ratios_are(const gpst_rational* values, const gpst_rational* wanted, bool are_there) {
    static const gpst_rational nothing[3];
    return same_rationals(values, are_there ? wanted : nothing, 3);
}

/* Each field is right, or says nothing. */
static void expect_part(const gpst_metadata* got, const gpst_metadata* all) {
    assert_true(number_is(got->orientation, all->orientation));
    assert_true(text_is(got->date, all->date, "2020:01:02 03:04:05"));
    assert_true(text_is(got->date_offset, all->date_offset, ""));
    assert_true(text_is(got->subsecond, all->subsecond, ""));
    assert_true(text_is(got->gps.date, all->gps.date, ""));
    assert_int_equal(got->gps.latitude_ref == 'S', got->gps.longitude_ref == 'W');
    assert_true(ratios_are(got->gps.latitude, all->gps.latitude, got->gps.latitude_ref == 'S'));
    assert_true(ratios_are(got->gps.longitude, all->gps.longitude, got->gps.latitude_ref == 'S'));
    assert_true(ratios_are(got->gps.time, all->gps.time, got->gps.has_time));
    assert_int_equal(got->gps.altitude.numerator, got->gps.has_altitude ? all->gps.altitude.numerator : 0);
    assert_true(number_is(got->full_width, all->full_width) && number_is(got->crop_top, all->crop_top));
    assert_true(got->heading == 0 || got->heading == all->heading);
}

/* Of any file that lost its end: what is still whole. */
static void every_beginning_of_a_file(void** state) {
    const gpst_metadata all = all_of_it();
    (void)state;
    for (int i = 0; i < 2 * N_CONTAINERS; i++) {
        put_file(i / 2, i % 2 == 1);
        for (size_t bytes = 0; bytes < file.bytes; bytes++) {
            const gpst_metadata metadata = read_bytes(file.data, bytes);
            expect_part(&metadata, &all);
        }
    }
}

/* ---- EXIF ------------------------------------------------------------------------------------------------- */

static void orientations(void** state) {
    static const uint32_t types[] = {BYTE, SHORT, LONG, UNDEFINED, SIGNED_SHORT, 0, 14, 65535};
    (void)state;
    for (size_t t = 0; t < sizeof types / sizeof types[0]; t++)
        for (uint32_t value = 0; value <= 9; value++)
            for (int big = 0; big < 2; big++) {
                tiff_begin(&file, big == 1);
                (void)tiff_directory(&file, 1);
                tiff_number(&file, ORIENTATION, t < 3 ? types[t] : SHORT, value);
                blob_set(&file, 12, 2, types[t]);
                assert_int_equal(read_blob(&file).orientation, t < 3 && value >= 1 && value <= 8 ? value : 0);
                blob_set(&file, 14, 4, 0); /* none of them */
                assert_int_equal(read_blob(&file).orientation, 0);
            }
    tiff_begin(&file, false);
    (void)tiff_directory(&file, 1);
    tiff_number(&file, ORIENTATION, LONG, 65536 + 6);
    assert_int_equal(read_blob(&file).orientation, 0);
}

enum { NO_ORIENTATION, NO_DATE, NO_OFFSET, NO_SUBSECOND, NO_PLACE, NO_ALTITUDE, NO_BELOW, NO_TIME, NO_DAY, NO_GPS };

static void lose(gpst_metadata* all, int what) {
    gpst_gps* const gps = &all->gps;
    all->orientation = what == NO_ORIENTATION ? 0 : all->orientation;
    if (what == NO_DATE)
        strcpy(all->date, "2020:01:02 03:04:05");
    if (what == NO_DATE || what == NO_OFFSET)
        all->date_offset[0] = 0;
    if (what == NO_DATE || what == NO_SUBSECOND)
        all->subsecond[0] = 0;
    if (what == NO_PLACE) {
        gps->latitude_ref = gps->longitude_ref = 0;
        memset(gps->latitude, 0, sizeof gps->latitude);
        memset(gps->longitude, 0, sizeof gps->longitude);
    }
    if (what == NO_ALTITUDE)
        gps->has_altitude = false, gps->altitude = ratio(0, 0);
    if (what == NO_ALTITUDE || what == NO_BELOW)
        gps->is_below_sea = false;
    if (what == NO_TIME) {
        gps->has_time = false;
        memset(gps->time, 0, sizeof gps->time);
    }
    if (what == NO_DAY)
        gps->date[0] = 0;
    if (what == NO_GPS)
        memset(gps, 0, sizeof *gps);
}

/* An entry that is not as it should be counts as not there, and no other with it. */
static void entries_that_are_wrong(void** state) {
    static const struct {
        int directory;
        uint32_t tag;
        int lost;
    } tags[] = {{0, ORIENTATION, NO_ORIENTATION}, {1, DATE_ORIGINAL, NO_DATE}, {1, OFFSET_ORIGINAL, NO_OFFSET},
                {1, SUBSECOND_ORIGINAL, NO_SUBSECOND}, {2, 1, NO_PLACE}, {2, 2, NO_PLACE}, {2, 3, NO_PLACE},
                {2, 4, NO_PLACE}, {2, 5, NO_BELOW}, {2, 6, NO_ALTITUDE}, {2, 7, NO_TIME}, {2, 0x1d, NO_DAY},
                {0, EXIF_POINTER, NO_DATE}, {0, GPS_POINTER, NO_GPS}};
    static const struct {
        uint32_t at, n_bytes, value;
    } faults[] = {{0, 2, 0xc000}, {2, 2, 0}, {2, 2, UNDEFINED}, {2, 2, 10}, {2, 2, 12}, {2, 2, 65535}, {4, 4, 0},
                  {4, 4, 0x20000000}, {4, 4, 0x40000001}, {4, 4, 0x80000003}, {4, 4, 0xffffffff}};
    (void)state;
    for (size_t t = 0; t < sizeof tags / sizeof tags[0]; t++)
        for (size_t f = 0; f < 2 * sizeof faults / sizeof faults[0]; f++) {
            gpst_metadata left = all_of_it();
            put_file(IN_TIFF, f % 2 == 1);
            const size_t directory = tags[t].directory == 0 ? first_at : tags[t].directory == 1 ? exif_at : gps_at;
            blob_set(&file, tiff_find(&file, directory, tags[t].tag) + faults[f / 2].at, faults[f / 2].n_bytes,
                     faults[f / 2].value);
            lose(&left, tags[t].lost);
            const gpst_metadata metadata = read_blob(&file);
            expect_metadata(&metadata, &left);
        }
}

/* Values and directories that lie anywhere, also beyond the end. */
static void offsets_that_are_wrong(void** state) {
    static const struct {
        int directory;
        uint32_t tag;
        int lost;
        uint32_t bytes;
    } tags[] = {{1, DATE_ORIGINAL, NO_DATE, 20}, {1, OFFSET_ORIGINAL, NO_OFFSET, 7},
                {1, SUBSECOND_ORIGINAL, NO_SUBSECOND, 10}, {2, 2, NO_PLACE, 24}, {2, 4, NO_PLACE, 24},
                {2, 6, NO_ALTITUDE, 8}, {2, 7, NO_TIME, 24}, {2, 0x1d, NO_DAY, 11}, {0, EXIF_POINTER, NO_DATE, 2},
                {0, GPS_POINTER, NO_GPS, 2}};
    (void)state;
    for (size_t t = 0; t < sizeof tags / sizeof tags[0]; t++)
        for (int i = 0; i < 10; i++) {
            gpst_metadata left = all_of_it();
            put_file(IN_TIFF, i % 2 == 1);
            const uint32_t end = (uint32_t)file.bytes;
            const uint32_t offsets[5] = {end - tags[t].bytes + 1, end, end + 1, 0x7fffffff, 0xffffffff};
            const size_t directory = tags[t].directory == 0 ? first_at : tags[t].directory == 1 ? exif_at : gps_at;
            blob_set(&file, tiff_find(&file, directory, tags[t].tag) + 8, 4, offsets[i / 2]);
            lose(&left, tags[t].lost);
            const gpst_metadata metadata = read_blob(&file);
            expect_metadata(&metadata, &left);
        }
}

static void directories_that_are_wrong(void** state) {
    const gpst_metadata all = all_of_it();
    (void)state;
    for (int big = 0; big < 2; big++) {
        gpst_metadata metadata, left = all_of_it();
        const size_t directories[] = {first_at, exif_at, gps_at};
        for (int d = 0; d < 3; d++) { /* more entries than there are bytes: those that are there count */
            put_file(IN_TIFF, big == 1);
            blob_set(&file, directories[d], 2, 65535);
            metadata = read_blob(&file);
            expect_metadata(&metadata, &all);
        }
        put_file(IN_TIFF, big == 1); /* EXIF and GPS are the first directory itself */
        blob_set(&file, tiff_find(&file, first_at, EXIF_POINTER) + 8, 4, (uint32_t)first_at);
        blob_set(&file, tiff_find(&file, first_at, GPS_POINTER) + 8, 4, (uint32_t)first_at);
        lose(&left, NO_DATE);
        lose(&left, NO_GPS);
        metadata = read_blob(&file);
        expect_metadata(&metadata, &left);
        memset(&left, 0, sizeof left);
        for (int i = 0; i < 4; i++) { /* the first directory is nowhere */
            const uint32_t end = (uint32_t)file.bytes, offsets[4] = {end - 1, end, end + 1, 0xffffffff};
            blob_set(&file, 4, 4, offsets[i]);
            metadata = read_blob(&file);
            expect_metadata(&metadata, &left);
        }
    }
}

/* Each rational in turn is divided by 0; there is one more or one fewer. */
static void rationals_that_are_wrong(void** state) {
    static const uint32_t tags[] = {2, 4, 7, 6};
    static const int lost[] = {NO_PLACE, NO_PLACE, NO_TIME, NO_ALTITUDE};
    (void)state;
    for (int i = 0; i < 10; i++) {
        gpst_metadata left = all_of_it();
        put_file(IN_TIFF, false);
        const size_t at = blob_get(&file, tiff_find(&file, gps_at, tags[i / 3]) + 8, 4);
        blob_set(&file, at + 8 * (size_t)(i % 3) + 4, 4, 0);
        lose(&left, lost[i / 3]);
        gpst_metadata metadata = read_blob(&file);
        expect_metadata(&metadata, &left);
        for (uint32_t more = 0; more < 2; more++) {
            put_file(IN_TIFF, true);
            blob_set(&file, tiff_find(&file, gps_at, tags[i / 3]) + 4, 4, (i < 9 ? 2 : 0) + 2 * more);
            metadata = read_blob(&file);
            expect_metadata(&metadata, &left);
        }
    }
}

static void below_the_sea(void** state) {
    (void)state;
    for (uint32_t value = 0; value <= 3; value++) { /* 2 and 3: above and below the ellipsoid */
        put_file(IN_TIFF, true);
        const size_t entry = tiff_find(&file, gps_at, 5);
        file.data[entry + 8] = (uint8_t)value;
        assert_int_equal(read_blob(&file).gps.is_below_sea, value % 2);
        blob_set(&file, entry + 2, 2, UNDEFINED);
        assert_false(read_blob(&file).gps.is_below_sea);
    }
}

static void letters_of_a_place(void** state) {
    (void)state;
    for (uint32_t i = 0; i < 512; i++) {
        put_file(IN_TIFF, false);
        file.data[tiff_find(&file, gps_at, i < 256 ? 1 : 3) + 8] = (uint8_t)i;
        const gpst_gps gps = read_blob(&file).gps;
        const bool is_one = i < 256 ? i == 'N' || i == 'S' : i == 256 + 'E' || i == 256 + 'W';
        assert_int_equal(gps.latitude_ref, !is_one ? 0 : i < 256 ? (int)i : 'S');
        assert_int_equal(gps.longitude_ref, !is_one ? 0 : i < 256 ? 'W' : (int)i - 256);
    }
}

typedef struct form {
    const char* text;
    const char* read;
} form;

static void forms_of_text(void** state) {
    static const form dates[] = {{"2024:05:06 07:08:0", ""}, {"2024-05-06 07:08:09", ""}, {"    :  :     :  :  ", ""},
                                 {"0000:00:00 00:00:00", ""}, {"2024:05:06 07:08:09Z", ""},
                                 {"2024:05:06T07:08:09", ""}, {"", ""},
                                 {"2024:05:06 07:08:0x", ""}, {"9999:99:99 99:99:99", "9999:99:99 99:99:99"}};
    static const form offsets[] = {{"+14:00", "+14:00"}, {"-00:45", "-00:45"}, {"14:00", ""}, {"Z", ""},
                                   {"*14:00", ""}, {"+1400", ""}, {"+14:000", ""}, {"   :  ", ""}};
    static const form subseconds[] = {{"1", "1"}, {"007", "007"}, {"12 ", "12"}, {"1234567890", "123456789"},
                                      {" 1", ""}, {"", ""}, {"1.5", "1"}, {"-1", ""}};
    (void)state;
    for (int i = 0; i < 8; i++) {
        const char* const date = "2024:05:06 07:08:09";
        for (int which = 0; which < 3; which++) {
            tiff_begin(&file, which == 1);
            (void)tiff_directory(&file, 1);
            tiff_number(&file, EXIF_POINTER, LONG, (uint32_t)file.bytes);
            (void)tiff_directory(&file, 3);
            tiff_text(&file, DATE_ORIGINAL, which == 0 ? dates[i].text : date);
            tiff_text(&file, OFFSET_ORIGINAL, which == 1 ? offsets[i].text : "+01:00");
            tiff_text(&file, SUBSECOND_ORIGINAL, which == 2 ? subseconds[i].text : "5");
            const gpst_metadata got = read_blob(&file);
            assert_string_equal(got.date, which == 0 ? dates[i].read : date);
            assert_string_equal(got.date_offset, which == 1 ? offsets[i].read : got.date[0] ? "+01:00" : "");
            assert_string_equal(got.subsecond, which == 2 ? subseconds[i].read : got.date[0] ? "5" : "");
        }
    }
    tiff_begin(&file, false);
    (void)tiff_directory(&file, 1);
    tiff_bytes(&file, DATE, ASCII, "2024:05:06 07:08:09", 19); /* without a zero */
    assert_string_equal(read_blob(&file).date, "2024:05:06 07:08:09");
    blob_set(&file, 14, 4, 18); /* what follows is not its own */
    assert_string_equal(read_blob(&file).date, "");
}

/* libtiff says so of its pointers. */
static void pointers_of_type_ifd(void** state) {
    const gpst_metadata all = all_of_it();
    (void)state;
    for (int big = 0; big < 2; big++) {
        put_file(IN_TIFF, big == 1);
        blob_set(&file, tiff_find(&file, first_at, EXIF_POINTER) + 2, 2, IFD);
        blob_set(&file, tiff_find(&file, first_at, GPS_POINTER) + 2, 2, IFD);
        const gpst_metadata metadata = read_blob(&file);
        expect_metadata(&metadata, &all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_field_of_every_file), cmocka_unit_test(every_beginning_of_a_file),
        cmocka_unit_test(orientations),              cmocka_unit_test(entries_that_are_wrong),
        cmocka_unit_test(offsets_that_are_wrong),    cmocka_unit_test(directories_that_are_wrong),
        cmocka_unit_test(rationals_that_are_wrong),  cmocka_unit_test(below_the_sea),
        cmocka_unit_test(letters_of_a_place),        cmocka_unit_test(forms_of_text),
        cmocka_unit_test(pointers_of_type_ifd),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
