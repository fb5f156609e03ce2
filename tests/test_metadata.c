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
static void put_all(blob* self, bool big, bool wide, bool is_file) {
    const gpst_metadata all = all_exif();
    if (wide)
        bigtiff_begin(self, big);
    else
        tiff_begin(self, big);
    const uint32_t word = tiff_word(self), pointer = wide ? IFD8 : LONG;
    first_at = tiff_directory(self, is_file ? 6 : 4);
    tiff_number(self, ORIENTATION, SHORT, all.orientation);
    tiff_text(self, DATE, "2020:01:02 03:04:05");
    if (is_file) {
        tiff_bytes(self, XMP, BYTE, all_xmp, strlen(all_xmp));
        tiff_bytes(self, ICC, UNDEFINED, all_icc, sizeof all_icc);
    }
    const size_t exif_pointer = tiff_entry(self, EXIF_POINTER, pointer, 1, word);
    const size_t gps_pointer = tiff_entry(self, GPS_POINTER, pointer, 1, word);
    exif_at = tiff_directory(self, 3);
    tiff_text(self, DATE_ORIGINAL, all.date);
    tiff_text(self, OFFSET_ORIGINAL, all.date_offset);
    tiff_text(self, SUBSECOND_ORIGINAL, all.subsecond);
    gps_at = self->bytes;
    put_gps(self, &all.gps);
    blob_set(self, exif_pointer, word, exif_at);
    blob_set(self, gps_pointer, word, gps_at);
}

/* Where PNG keeps EXIF and XMP: the kind of text, its keyword, what the block begins with, and how it is packed. */
typedef struct png_place {
    const char *chunk, *exif, *xmp;
    bool is_packed, is_raw, has_names;
} png_place;

static const png_place png_places[] = {
    {"iTXt", NULL, "XML:com.adobe.xmp", false, false, false}, /* EXIF in eXIf */
    {"iTXt", NULL, "XML:com.adobe.xmp", true, false, true},
    {"tEXt", NULL, "XML:com.adobe.xmp", false, false, false},
    {"zTXt", NULL, "XML:com.adobe.xmp", true, false, true},
    {"tEXt", "Raw profile type exif", "Raw profile type xmp", false, true, true},
    {"zTXt", "Raw profile type exif", "Raw profile type xmp", true, true, false},
    {"iTXt", "Raw profile type exif", "Raw profile type xmp", true, true, true},
    {"tEXt", "Raw profile type APP1", "Raw profile type APP1", false, true, true},
    {"zTXt", "Raw profile type APP1", "Raw profile type APP1", true, true, true},
};

enum { IN_JPEG, IN_WEBP, IN_TIFF, IN_PNG, N_CONTAINERS = IN_PNG + (int)(sizeof png_places / sizeof png_places[0]) };

static void put_png_part(const png_place* place, const char* keyword, const char* name, size_t name_bytes,
                         const void* data, size_t bytes) {
    static blob block, digits;
    block.bytes = 0;
    blob_put(&block, name, place->has_names ? name_bytes : 0);
    blob_put(&block, data, bytes);
    if (!keyword) {
        png_chunk(&file, "eXIf", block.data, block.bytes);
        return;
    }
    raw_profile(&digits, "a name", block.data, block.bytes);
    png_text(&file, place->chunk, keyword, place->is_packed, place->is_raw ? digits.data : block.data,
             place->is_raw ? digits.bytes : block.bytes);
}

static void put_png(const png_place* place) {
    png_begin(&file);
    png_chunk(&file, "IHDR", "\0\0\0\1\0\0\0\1\10\0\0\0", 13);
    put_png_part(place, place->xmp, "http://ns.adobe.com/xap/1.0/", place->is_raw ? 29 : 0, all_xmp, strlen(all_xmp));
    put_png_part(place, place->exif, "Exif\0", 6, exif_blob.data, exif_blob.bytes);
}

static void put_file_of(int container, bool big, bool wide) {
    put_all(&exif_blob, big, wide, container == IN_TIFF);
    if (container == IN_JPEG) {
        jpeg_begin(&file);
        jpeg_exif(&file, &exif_blob);
        jpeg_xmp(&file, all_xmp);
        jpeg_icc(&file, 1, 1, all_icc, sizeof all_icc);
    } else if (container == IN_WEBP) {
        webp_begin(&file);
        webp_chunk(&file, "ICCP", all_icc, sizeof all_icc);
        webp_chunk(&file, "EXIF", exif_blob.data, exif_blob.bytes);
        webp_chunk(&file, "XMP ", all_xmp, strlen(all_xmp));
    } else if (container == IN_TIFF) {
        file = exif_blob;
    } else {
        put_png(&png_places[container - IN_PNG]);
    }
}

static void put_file(int container, bool big) { put_file_of(container, big, false); }

static size_t read_icc(uint8_t* out, size_t room) {
    size_t needed = 0, bytes = room;
    assert_int_equal(gpst_metadata_read_icc(file.data, file.bytes, NULL, &needed), GPST_OK);
    assert_int_equal(gpst_metadata_read_icc(file.data, file.bytes, out, &bytes), GPST_OK);
    assert_int_equal(bytes, needed);
    return bytes;
}

/* Every reader, of every place where a file may keep what it reads, of every head of a TIFF structure. */
static void every_field_of_every_file(void** state) {
    const gpst_metadata all = all_of_it();
    (void)state;
    for (int i = 0; i < 4 * N_CONTAINERS; i++) {
        uint8_t icc[64];
        put_file_of(i / 4, i & 1, i & 2);
        const gpst_metadata metadata = read_blob(&file);
        expect_metadata(&metadata, &all);
        const size_t bytes = read_icc(icc, sizeof icc);
        assert_int_equal(bytes, i / 4 >= IN_PNG ? 0 : sizeof all_icc);
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
    for (int i = 0; i < 4 * N_CONTAINERS; i++) {
        put_file_of(i / 4, i & 1, i & 2);
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
                assert_string_equal(read_blob(&file).note, t >= 3 || value == 9 ? "not read: orientation" : "");
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

/* What is said of each, where the tag is there. */
static const char* const said_of[] = {
    "orientation", "", "the date's zone", "", "GPS position", "GPS altitude", "the altitude's sign", "GPS time",
    "GPS date", ""};

static void expect_left(const gpst_metadata* all, int lost, bool is_there) {
    gpst_metadata left = *all;
    const gpst_metadata metadata = read_blob(&file);
    lose(&left, lost);
    if (said_of[lost][0] && (is_there || lost == NO_PLACE)) /* half a position is none */
        snprintf(left.note, sizeof left.note, "not read: %s", said_of[lost]);
    expect_metadata(&metadata, &left);
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
    } faults[] = {{0, 2, 0xc000}, {2, 2, 0}, {2, 2, UNDEFINED}, {2, 2, 9}, {2, 2, 12}, {2, 2, 65535}, {4, 4, 0},
                  {4, 4, 0x20000000}, {4, 4, 0x40000001}, {4, 4, 0x80000003}, {4, 4, 0xffffffff}};
    (void)state;
    for (size_t t = 0; t < sizeof tags / sizeof tags[0]; t++)
        for (size_t f = 0; f < 2 * sizeof faults / sizeof faults[0]; f++) {
            const gpst_metadata all = all_of_it();
            put_file(IN_TIFF, f % 2 == 1);
            const size_t directory = tags[t].directory == 0 ? first_at : tags[t].directory == 1 ? exif_at : gps_at;
            blob_set(&file, tiff_find(&file, directory, tags[t].tag) + faults[f / 2].at, faults[f / 2].n_bytes,
                     faults[f / 2].value);
            expect_left(&all, tags[t].lost, f / 2 > 0);
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
            const gpst_metadata all = all_of_it();
            put_file(IN_TIFF, i % 2 == 1);
            const uint32_t end = (uint32_t)file.bytes;
            const uint32_t offsets[5] = {end - tags[t].bytes + 1, end, end + 1, 0x7fffffff, 0xffffffff};
            const size_t directory = tags[t].directory == 0 ? first_at : tags[t].directory == 1 ? exif_at : gps_at;
            blob_set(&file, tiff_find(&file, directory, tags[t].tag) + 8, 4, offsets[i / 2]);
            expect_left(&all, tags[t].lost, true);
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

/* Each rational in turn is divided by 0; there is one too many. */
static void rationals_that_are_wrong(void** state) {
    static const uint32_t tags[] = {2, 4, 7, 6};
    static const int lost[] = {NO_PLACE, NO_PLACE, NO_TIME, NO_ALTITUDE};
    const gpst_metadata all = all_of_it();
    (void)state;
    for (int i = 0; i < 10; i++) {
        put_file(IN_TIFF, false);
        const size_t at = blob_get(&file, tiff_find(&file, gps_at, tags[i / 3]) + 8, 4) + 8 * (size_t)(i % 3);
        if (blob_get(&file, at, 4) == 0)
            blob_set(&file, at, 4, 1); /* 0/0 is 0 */
        blob_set(&file, at + 4, 4, 0);
        expect_left(&all, lost[i / 3], true);
        put_file(IN_TIFF, true);
        blob_set(&file, tiff_find(&file, gps_at, tags[i / 3]) + 4, 4, i < 9 ? 4 : 2);
        expect_left(&all, lost[i / 3], true);
    }
}

/* ---- what cameras and programs write otherwise -------------------------------------------------------------- */

typedef struct gps_way {
    uint32_t type, n; /* of latitude, longitude and time */
    int32_t values[6];
    gpst_rational read[3];
    const char *refs, *read_refs, *note;
} gps_way;

/* Of all heads: the same values as latitude, longitude and time. "": there is no position. */
static void ways_of_positions(void** state) {
    static const gps_way ways[] = {
        {RATIONAL, 3, {47, 1, 30, 1, 15, 10}, {{47, 1}, {30, 1}, {15, 10}}, "NE", "NE", ""},
        {SIGNED_RATIONAL, 3, {47, 1, 30, 1, 15, 10}, {{47, 1}, {30, 1}, {15, 10}}, "NE", "NE", ""},
        {SIGNED_RATIONAL, 3, {-47, 1, 30, 1, 15, 10}, {{47, 1}, {30, 1}, {15, 10}}, "NE", "SW", ""},
        {SIGNED_RATIONAL, 3, {47, -1, -30, 1, -15, -10}, {{47, 1}, {30, 1}, {15, 10}}, "SW", "SW", ""},
        {RATIONAL, 3, {47, 1, 30, 1, 0, 0}, {{47, 1}, {30, 1}, {0, 1}}, "NE", "NE", ""},
        {RATIONAL, 3, {47, 1, 0, 0, 0, 0}, {{47, 1}, {0, 1}, {0, 1}}, "NE", "NE", ""},
        {RATIONAL, 2, {47, 1, 305, 10}, {{47, 1}, {305, 10}, {0, 1}}, "NE", "NE", ""},
        {RATIONAL, 1, {475125, 10000}, {{475125, 10000}, {0, 1}, {0, 1}}, "NE", "NE", ""},
        {RATIONAL, 3, {47, 1, 30, 1, 15, 10}, {{47, 1}, {30, 1}, {15, 10}}, "nw", "NW", ""},
        {RATIONAL, 3, {0, 0, 0, 0, 0, 0}, {{0, 0}, {0, 0}, {0, 0}}, "NE", "", ""}, /* a camera that does not know */
        {RATIONAL, 3, {0, 0, 30, 1, 0, 0}, {{0, 0}, {0, 0}, {0, 0}}, "NE", "", "not read: GPS position, GPS time"},
        {RATIONAL, 3, {47, 1, 30, 0, 0, 0}, {{0, 0}, {0, 0}, {0, 0}}, "NE", "", "not read: GPS position, GPS time"},
        {LONG, 3, {47, 30, 15, 0}, {{0, 0}, {0, 0}, {0, 0}}, "NE", "", "not read: GPS position, GPS time"},
        {RATIONAL, 3, {47, 1, 30, 1, 15, 10}, {{47, 1}, {30, 1}, {15, 10}}, "?E", "", "not read: GPS position"},
    };
    (void)state;
    for (size_t i = 0; i < 4 * sizeof ways / sizeof ways[0]; i++) {
        const gps_way* const way = &ways[i / 4];
        static const gpst_rational none[3];
        const bool negative = way->type == SIGNED_RATIONAL && strcmp(way->read_refs, "SW") == 0;
        if (i & 1)
            bigtiff_begin(&file, i & 2);
        else
            tiff_begin(&file, i & 2);
        (void)tiff_directory(&file, 1);
        blob_set(&file, tiff_entry(&file, GPS_POINTER, LONG, 1, 4), 4, file.bytes);
        (void)tiff_directory(&file, negative ? 4 : 5);
        for (uint32_t tag = 1; tag < (negative ? 5 : 6); tag++) {
            const char letter[2] = {way->refs[tag / 2 % 2], 0};
            if (tag % 2 == 1 && tag < 5) {
                tiff_text(&file, tag, letter);
                continue;
            }
            const uint32_t each = way->type == LONG ? 1 : 2;
            const size_t at = tiff_entry(&file, tag == 5 ? 7 : tag, way->type, way->n, 4 * each * (size_t)way->n);
            for (uint32_t k = 0; k < each * way->n; k++)
                blob_set(&file, at + 4 * (size_t)k, 4, (uint32_t)way->values[k]);
        }
        const gpst_metadata got = read_blob(&file);
        const gpst_rational* const position = way->read_refs[0] ? way->read : none;
        assert_string_equal(got.note, way->note);
        assert_int_equal(got.gps.latitude_ref, way->read_refs[0]);
        assert_int_equal(got.gps.longitude_ref, way->read_refs[0] ? way->read_refs[1] : 0);
        assert_true(same_rationals(got.gps.latitude, position, 3) && same_rationals(got.gps.longitude, position, 3));
        assert_int_equal(got.gps.has_time, !negative && way->read[0].denominator > 0);
        assert_true(same_rationals(got.gps.time, negative ? none : way->read, 3));
    }
}

static void ways_of_altitudes(void** state) {
    static const struct {
        uint32_t type;
        int32_t value, by;
        uint32_t ref;
        bool read, below;
        const char* note;
    } ways[] = {{RATIONAL, 125, 10, 0, true, false, ""}, {RATIONAL, 125, 10, 1, true, true, ""},
                {SIGNED_RATIONAL, 125, 10, 0, true, false, ""}, {SIGNED_RATIONAL, -125, 10, 0, true, true, ""},
                {SIGNED_RATIONAL, 125, -10, 1, true, true, ""}, {RATIONAL, 0, 0, 0, false, false, ""},
                {RATIONAL, 125, 0, 0, false, false, "not read: GPS altitude"},
                {RATIONAL, 125, 10, 4, true, false, "not read: the altitude's sign"}};
    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        tiff_begin(&file, i % 2 == 1);
        (void)tiff_directory(&file, 1);
        blob_set(&file, tiff_entry(&file, GPS_POINTER, LONG, 1, 4), 4, file.bytes);
        (void)tiff_directory(&file, 2);
        tiff_number(&file, 5, BYTE, ways[i].ref);
        const size_t at = tiff_entry(&file, 6, ways[i].type, 1, 8);
        blob_set(&file, at, 4, (uint32_t)ways[i].value);
        blob_set(&file, at + 4, 4, (uint32_t)ways[i].by);
        const gpst_metadata got = read_blob(&file);
        const gpst_rational wanted = ratio(ways[i].read ? 125 : 0, ways[i].read ? 10 : 0);
        assert_true(same_rationals(&got.gps.altitude, &wanted, 1));
        assert_int_equal(got.gps.has_altitude, ways[i].read);
        assert_int_equal(got.gps.is_below_sea, ways[i].below);
        assert_string_equal(got.note, ways[i].note);
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
        const int c = (int)(i % 256), upper = c >= 'a' && c <= 'z' ? c - 32 : c;
        const bool is_one = i < 256 ? upper == 'N' || upper == 'S' : upper == 'E' || upper == 'W';
        assert_int_equal(gps.latitude_ref, !is_one ? 0 : i < 256 ? upper : 'S');
        assert_int_equal(gps.longitude_ref, !is_one ? 0 : i < 256 ? 'W' : upper);
    }
}

typedef struct form {
    const char *text, *read;
    bool is_said; /* where nothing is read */
} form;

/* A directory of EXIF with these texts in the tags of a date: when it was taken, or digitised. */
static void put_dates(bool big, bool digitised, const char* date, const char* zone, const char* subsecond) {
    tiff_begin(&file, big);
    (void)tiff_directory(&file, 1);
    tiff_number(&file, EXIF_POINTER, LONG, (uint32_t)file.bytes);
    (void)tiff_directory(&file, 3);
    tiff_text(&file, DATE_ORIGINAL + (uint32_t)digitised, date);
    tiff_text(&file, OFFSET_ORIGINAL + (uint32_t)digitised, zone);
    tiff_text(&file, SUBSECOND_ORIGINAL + (uint32_t)digitised, subsecond);
}

static void forms_of_text(void** state) {
    static const form dates[] = {
        {"2024:05:06 07:08:09", "2024:05:06 07:08:09", false}, {"2024-05-06 07:08:09", "2024:05:06 07:08:09", false},
        {"2024/05/06 07:08:09", "2024:05:06 07:08:09", false}, {"2024:05:06T07:08:09", "2024:05:06 07:08:09", false},
        {"2024:05:06 07:08:09  ", "2024:05:06 07:08:09", false}, {"9999:99:99 99:99:99", "9999:99:99 99:99:99", false},
        {"    :  :     :  :  ", "", false}, {"0000:00:00 00:00:00", "", false}, {"0000:00:00 12:00:00", "", false},
        {"", "", false}, {"0", "", false}, {"2024:05:06 07:08:0", "", true}, {"2024:05:06 07:08:0x", "", true},
        {"2024:05:06", "", true}, {"yesterday", "", true}, {"2024:05:06 07:08:09 noon", "", true}, {"6 May 2024", "", true},
        {"2024:05:06 07:08:09 and so on, longer than any", "", true}};
    static const form offsets[] = {{"+14:00", "+14:00", false}, {"-00:45", "-00:45", false}, {"Z", "+00:00", false},
                                   {"-1430", "-14:30", false}, {"+02", "+02:00", false}, {"   :  ", "", false},
                                   {"", "", false}, {"14:00", "", true}, {"*14:00", "", true}, {"+14:000", "", true},
                                   {"+1", "", true}, {"+", "", false}, {"CEST", "", true}};
    static const form subseconds[] = {{"1", "1", false}, {"007", "007", false}, {"12 ", "12", false},
                                      {"1234567890", "123456789", false}, {" 1", "", false}, {"", "", false},
                                      {"1.5", "1", false}, {"-1", "", false}};
    const char* const date = "2024:05:06 07:08:09";
    (void)state;
    for (size_t i = 0; i < 2 * sizeof dates / sizeof dates[0]; i++) {
        const form* const one = &dates[i / 2];
        put_dates(i % 2 == 1, i % 2 == 1, one->text, "+01:00", "5");
        assert_string_equal(read_blob(&file).date, one->read);
        assert_string_equal(read_blob(&file).date_offset, one->read[0] ? "+01:00" : "");
        assert_string_equal(read_blob(&file).subsecond, one->read[0] ? "5" : "");
        assert_string_equal(read_blob(&file).note, one->is_said ? "not read: date" : "");
    }
    for (size_t i = 0; i < sizeof offsets / sizeof offsets[0]; i++) {
        put_dates(i % 2 == 1, i % 2 == 1, date, offsets[i].text, "5");
        assert_string_equal(read_blob(&file).date, date);
        assert_string_equal(read_blob(&file).date_offset, offsets[i].read);
        assert_string_equal(read_blob(&file).note, offsets[i].is_said ? "not read: the date's zone" : "");
    }
    for (size_t i = 0; i < sizeof subseconds / sizeof subseconds[0]; i++) {
        put_dates(i % 2 == 1, i % 2 == 1, date, "", subseconds[i].text);
        assert_string_equal(read_blob(&file).subsecond, subseconds[i].read);
    }
    tiff_begin(&file, false);
    (void)tiff_directory(&file, 1);
    tiff_bytes(&file, DATE, ASCII, "2024:05:06 07:08:09", 19); /* without a zero */
    assert_string_equal(read_blob(&file).date, "2024:05:06 07:08:09");
    blob_set(&file, 14, 4, 18); /* what follows is not its own */
    assert_string_equal(read_blob(&file).date, "");
}

/* What is in the date itself counts where no tag of its own says it. */
static void zones_in_dates(void** state) {
    static const char* const dates[][4] = {
        {"2024:05:06 07:08:09Z", "", "+00:00", ""}, {"2024-05-06T07:08:09.25+02:00", "", "+02:00", "25"},
        {"2024:05:06 07:08:09 -0330", "", "-03:30", ""}, {"2024:05:06 07:08:09.125", "+01:00", "+01:00", "125"},
        {"2024:05:06 07:08:09+02:00", "+01:00", "+01:00", ""}};
    (void)state;
    for (size_t i = 0; i < sizeof dates / sizeof dates[0]; i++) {
        put_dates(false, i % 2 == 0, dates[i][0], dates[i][1], "");
        const gpst_metadata got = read_blob(&file);
        assert_string_equal(got.date, "2024:05:06 07:08:09");
        assert_string_equal(got.date_offset, dates[i][2]);
        assert_string_equal(got.subsecond, dates[i][3]);
        assert_string_equal(got.note, "");
    }
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
        cmocka_unit_test(pointers_of_type_ifd),      cmocka_unit_test(ways_of_positions),
        cmocka_unit_test(ways_of_altitudes),         cmocka_unit_test(zones_in_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
