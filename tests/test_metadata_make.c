/* tests/test_metadata_make.c -- EXIF blocks that are made, byte by byte and read again; segments of JPEG files. */
#include "metadata_kit.h"

#include <math.h>

static gpst_rational ratio(uint32_t numerator, uint32_t denominator) {
    gpst_rational value;
    value.numerator = numerator, value.denominator = denominator;
    return value;
}

/* Every text as long as it can be. */
static gpst_metadata longest(void) {
    gpst_metadata all = GPST_ZERO;
    all.orientation = 8;
    strcpy(all.date, "2024:05:06 07:08:09");
    strcpy(all.date_offset, "-02:30");
    strcpy(all.subsecond, "123456789");
    strcpy(all.gps.date, "2024:05:07");
    all.gps.latitude_ref = 'N', all.gps.longitude_ref = 'E';
    for (uint32_t i = 0; i < 3; i++) {
        all.gps.latitude[i] = ratio(47 + i, 100 + i);
        all.gps.longitude[i] = ratio(UINT32_MAX - i, 1 + i);
        all.gps.time[i] = ratio(0x01020304u + i, 1000000);
    }
    all.gps.has_altitude = all.gps.is_below_sea = all.gps.has_time = true;
    all.gps.altitude = ratio(123, 10);
    strcpy(all.projection, "equirectangular");
    all.has_sphere = true;
    all.full_width = 8000, all.heading = 90.0;
    return all;
}

static gpst_exif_desc desc_of(const gpst_metadata* from, double focal_px) {
    gpst_exif_desc desc = GPST_ZERO;
    desc.from = from;
    desc.width = 1920, desc.height = 1080;
    desc.focal_px = focal_px;
    return desc;
}

/* Memory of exactly its size is enough. */
static void make(const gpst_exif_desc* desc, blob* out) {
    size_t needed = 0, bytes;
    assert_int_equal(gpst_exif_make(desc, NULL, &needed), GPST_OK);
    assert_true(needed <= GPST_EXIF_MOST_BYTES && needed % 2 == 0);
    uint8_t* const block = (uint8_t*)malloc(needed);
    assert_non_null(block);
    memset(block, 0xa5, needed);
    bytes = needed;
    assert_int_equal(gpst_exif_make(desc, block, &bytes), GPST_OK);
    assert_int_equal(bytes, needed);
    out->bytes = 0;
    out->big = false;
    blob_put(out, block, bytes);
    free(block);
}

/* ---- what is made ------------------------------------------------------------------------------------------- */

static void the_smallest(void** state) {
    static const uint8_t wanted[] = {
        'I', 'I', 42, 0, 8, 0, 0, 0, 2, 0, /* two entries: Orientation 1, where EXIF is */
        0x12, 1, 3, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0x69, 0x87, 4, 0, 1, 0, 0, 0, 38, 0, 0, 0, 0, 0, 0, 0,
        3, 0, 0, 0x90, 7, 0, 4, 0, 0, 0, '0', '2', '3', '2', /* version, width, height */
        2, 0xa0, 4, 0, 1, 0, 0, 0, 0x80, 7, 0, 0, 3, 0xa0, 4, 0, 1, 0, 0, 0, 0x38, 4, 0, 0, 0, 0, 0, 0};
    const gpst_metadata nothing = GPST_ZERO;
    const gpst_exif_desc none = desc_of(NULL, 0.0), empty = desc_of(&nothing, 0.0);
    static blob block;
    (void)state;
    make(&none, &block);
    assert_int_equal(block.bytes, sizeof wanted);
    assert_memory_equal(block.data, wanted, sizeof wanted);
    make(&empty, &block);
    assert_int_equal(block.bytes, sizeof wanted);
    assert_memory_equal(block.data, wanted, sizeof wanted);
}

typedef struct entry {
    uint32_t tag, type, count;
} entry;

/* A directory has these, and their values lie one behind the other from at on; where they end. */
static size_t expect_directory(const blob* block, size_t directory, const entry* wanted, uint32_t n) {
    static const uint32_t type_bytes[] = {0, 1, 1, 2, 4, 8, 1, 1};
    size_t end = directory + 2 + 12 * (size_t)n + 4;
    assert_int_equal(blob_get(block, directory, 2), n);
    assert_int_equal(blob_get(block, end - 4, 4), 0); /* none follows */
    for (uint32_t i = 0; i < n; i++) {
        const size_t at = directory + 2 + 12 * (size_t)i;
        const size_t bytes = (size_t)wanted[i].count * type_bytes[wanted[i].type];
        assert_int_equal(blob_get(block, at, 2), wanted[i].tag);
        assert_int_equal(blob_get(block, at + 2, 2), wanted[i].type);
        assert_int_equal(blob_get(block, at + 4, 4), wanted[i].count);
        assert_true(i == 0 || wanted[i].tag > wanted[i - 1].tag);
        if (bytes <= 4)
            continue;
        assert_int_equal(blob_get(block, at + 8, 4), end);
        end += bytes + bytes % 2;
    }
    return end;
}

/* No camera, no serial numbers, no thumbnail: these entries and no others. */
static void all_that_it_says(void** state) {
    static const entry first[] = {{ORIENTATION, SHORT, 1}, {EXIF_POINTER, LONG, 1}, {GPS_POINTER, LONG, 1}};
    static const entry exif[] = {{0x9000, UNDEFINED, 4}, {DATE_ORIGINAL, ASCII, 20}, {OFFSET_ORIGINAL, ASCII, 7},
                                 {0x920a, RATIONAL, 1}, {SUBSECOND_ORIGINAL, ASCII, 10}, {0xa002, LONG, 1},
                                 {0xa003, LONG, 1}, {0xa20e, RATIONAL, 1}, {0xa20f, RATIONAL, 1}, {0xa210, SHORT, 1}};
    static const entry gps[] = {{0, BYTE, 4}, {1, ASCII, 2}, {2, RATIONAL, 3}, {3, ASCII, 2}, {4, RATIONAL, 3},
                                {5, BYTE, 1}, {6, RATIONAL, 1}, {7, RATIONAL, 3}, {0x1d, ASCII, 11}};
    const gpst_metadata from = longest();
    const gpst_exif_desc desc = desc_of(&from, 1234.5678);
    static blob block;
    (void)state;
    make(&desc, &block);
    assert_memory_equal(block.data, "II*\0\10\0\0\0", 8);
    const size_t exif_at = expect_directory(&block, 8, first, 3);
    const size_t gps_at = expect_directory(&block, exif_at, exif, 10);
    assert_int_equal(expect_directory(&block, gps_at, gps, 9), block.bytes);
    assert_int_equal(blob_get(&block, tiff_find(&block, 8, ORIENTATION) + 8, 4), 1);
    assert_int_equal(blob_get(&block, tiff_find(&block, 8, EXIF_POINTER) + 8, 4), exif_at);
    assert_int_equal(blob_get(&block, tiff_find(&block, 8, GPS_POINTER) + 8, 4), gps_at);
    assert_memory_equal(block.data + tiff_find(&block, exif_at, 0x9000) + 8, "0232", 4);
    assert_memory_equal(block.data + tiff_find(&block, gps_at, 0) + 8, "\2\3\0", 4);
    assert_int_equal(blob_get(&block, tiff_find(&block, exif_at, 0xa002) + 8, 4), 1920);
    assert_int_equal(blob_get(&block, tiff_find(&block, exif_at, 0xa003) + 8, 4), 1080);
    assert_int_equal(blob_get(&block, tiff_find(&block, exif_at, 0xa210) + 8, 4), 3); /* centimetres */
}

/* Sides that a reader would take the wrong way round. */
static void an_upright_picture(void** state) {
    static const entry exif[] = {{0x9000, UNDEFINED, 4}, {0x920a, RATIONAL, 1}, {0xa20e, RATIONAL, 1},
                                 {0xa20f, RATIONAL, 1}, {0xa210, SHORT, 1}};
    static const entry no_focal[] = {{0x9000, UNDEFINED, 4}, {0xa002, LONG, 1}, {0xa003, LONG, 1}};
    static blob block;
    gpst_exif_desc desc = desc_of(NULL, 317.3);
    (void)state;
    desc.width = 400, desc.height = 600;
    make(&desc, &block);
    (void)expect_directory(&block, 8 + 2 + 2 * 12 + 4, exif, 5);
    desc.focal_px = 0.0;
    make(&desc, &block);
    (void)expect_directory(&block, 8 + 2 + 2 * 12 + 4, no_focal, 3);
}

static void it_is_read_again(void** state) {
    static blob block;
    (void)state;
    for (uint32_t left_out = 0; left_out < 64; left_out++) {
        gpst_metadata from = longest(), wanted = GPST_ZERO;
        if (left_out & 1)
            from.gps.latitude_ref = from.gps.longitude_ref = 0, memset(from.gps.latitude, 0, 48);
        if (left_out & 2)
            from.gps.has_altitude = from.gps.is_below_sea = false, from.gps.altitude = ratio(0, 0);
        if (left_out & 4)
            from.gps.has_time = false, memset(from.gps.time, 0, 24);
        if (left_out & 8)
            from.gps.date[0] = 0;
        if (left_out & 16)
            from.date[0] = from.date_offset[0] = from.subsecond[0] = 0;
        if (left_out & 32)
            from.date_offset[0] = 0, from.gps.is_below_sea = false;
        const gpst_exif_desc desc = desc_of(&from, left_out & 1 ? 900.0 : 0.0);
        make(&desc, &block);
        wanted.orientation = 1;
        strcpy(wanted.date, from.date);
        strcpy(wanted.date_offset, from.date_offset);
        strcpy(wanted.subsecond, from.subsecond);
        wanted.gps = from.gps;
        const gpst_metadata metadata = read_blob(&block);
        expect_metadata(&metadata, &wanted);
        assert_int_equal(blob_get(&block, 8, 2), (left_out & 15) == 15 ? 2 : 3);
    }
}

/* In thousandths of a pixel, to the nearest; what a rational cannot say is left out. */
static void focal_lengths(void** state) {
    static const struct {
        double px;
        uint32_t thousandths; /* 0: it says none */
    } cases[] = {{960.0, 960000}, {1234.5678, 1234568}, {0.001, 1}, {0.0006, 1}, {0.0004, 0}, {1e-300, 0}, {0.0, 0},
                 {-5.0, 0}, {4294967.295, 4294967295u}, {4294967.2956, 0}, {1e300, 0}, {(double)INFINITY, 0},
                 {(double)NAN, 0}};
    static blob block;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const gpst_exif_desc desc = desc_of(NULL, cases[i].px);
        make(&desc, &block);
        const bool has_focal = cases[i].thousandths > 0;
        assert_int_equal(blob_get(&block, 38, 2), has_focal ? 7 : 3);
        for (uint32_t tag = 0x920a; has_focal && tag <= 0xa20f; tag += tag == 0x920a ? 0xa20e - 0x920a : 1) {
            const size_t at = blob_get(&block, tiff_find(&block, 38, tag) + 8, 4);
            assert_int_equal(blob_get(&block, at, 4), tag == 0x920a ? 10 : cases[i].thousandths);
            assert_int_equal(blob_get(&block, at + 4, 4), tag == 0x920a ? 1 : 1000);
        }
    }
}

/* A block is a TIFF: a file that says what it says. */
static void the_block_of_a_view(void** state) {
    const gpst_metadata all = longest();
    const gpst_view view = {30.0, 0.0, 0.0, 90.0, 0.0};
    const gpst_exif_desc in_file = desc_of(&all, 0.0);
    gpst_exif_desc wanted = desc_of(&all, 960.0);
    gpst_warp_desc desc = GPST_ZERO;
    gpst_item item = GPST_ZERO;
    gpst_warp* warp = NULL;
    uint8_t got[GPST_EXIF_MOST_BYTES];
    size_t bytes = sizeof got;
    static blob file, block;
    (void)state;
    wanted.focal_y_px = 960.0;
    make(&in_file, &file);
    make(&wanted, &block);
    item.file_data = file.data, item.file_bytes = file.bytes;
    desc.map = GPST_MAP_EQUIRECT, desc.views = &view, desc.n_views = 1;
    desc.width = 1920, desc.height = 1080, desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    assert_int_equal(gpst_view_exif(warp, 0, &item, got, &bytes), GPST_OK);
    assert_int_equal(bytes, block.bytes);
    assert_memory_equal(got, block.data, bytes);
    assert_int_equal(gpst_view_exif(warp, 0, &item, NULL, &bytes), GPST_OK);
    assert_int_equal(bytes, block.bytes);
    assert_int_equal(gpst_view_exif(warp, 1, &item, got, &bytes), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_view_exif(warp, 0, NULL, got, &bytes), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_view_exif(NULL, 0, &item, got, &bytes), GPST_ERROR_ARGUMENT);
    gpst_warp_destroy(warp);
}

static void rules_of_making(void** state) {
    const gpst_metadata from = longest();
    uint8_t block[GPST_EXIF_MOST_BYTES];
    gpst_exif_desc desc = desc_of(&from, 900.0);
    size_t needed = 0, bytes;
    (void)state;
    assert_int_equal(gpst_exif_make(&desc, NULL, &needed), GPST_OK);
    bytes = needed - 1;
    memset(block, 0xa5, sizeof block);
    assert_int_equal(gpst_exif_make(&desc, block, &bytes), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "are needed"));
    assert_int_equal(bytes, needed - 1);
    for (size_t i = 0; i < sizeof block; i++)
        assert_int_equal(block[i], 0xa5);
    assert_int_equal(gpst_exif_make(NULL, block, &bytes), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_exif_make(&desc, block, NULL), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_exif_make: desc and bytes: required");
    for (int i = 0; i < 4; i++) {
        bytes = sizeof block;
        desc = desc_of(NULL, 0.0);
        *(i % 2 ? &desc.width : &desc.height) = i < 2 ? 0 : GPST_MAX_SIDE + 1;
        assert_int_equal(gpst_exif_make(&desc, block, &bytes), GPST_ERROR_ARGUMENT);
        assert_non_null(strstr(gpst_last_reason(), i % 2 ? "gpst_exif_make: width=" : "height="));
    }
    desc.width = desc.height = GPST_MAX_SIDE;
    assert_int_equal(gpst_exif_make(&desc, block, &bytes), GPST_OK);
}

/* ---- segments ------------------------------------------------------------------------------------------------- */

#define PART_BYTES 65519
#define MOST_EXIF 65527
#define MOST_ICC ((size_t)255 * PART_BYTES)

static uint8_t *icc, *segments, *got_icc;

static int open_memory(void** state) {
    (void)state;
    icc = (uint8_t*)malloc(MOST_ICC);
    segments = (uint8_t*)malloc(MOST_ICC + 255 * 18 + MOST_EXIF + 16);
    got_icc = (uint8_t*)malloc(MOST_ICC);
    for (size_t i = 0; icc && i < MOST_ICC; i++)
        icc[i] = (uint8_t)(i * 13 + i / 65521);
    return icc && segments && got_icc ? 0 : -1;
}

static int close_memory(void** state) {
    (void)state;
    free(icc);
    free(segments);
    free(got_icc);
    return 0;
}

/* Of a file that is made of them, between its first marker and its last. */
static void expect_segments(const void* exif, size_t exif_bytes, size_t icc_bytes, size_t wanted) {
    size_t needed = 0, bytes = wanted, got_bytes = MOST_ICC;
    gpst_metadata metadata;
    assert_int_equal(gpst_metadata_segments(NULL, exif_bytes, NULL, icc_bytes, NULL, &needed), GPST_OK);
    assert_int_equal(needed, wanted);
    memcpy(segments, "\xff\xd8", 2);
    memset(segments + 2, 0xa5, wanted + 1);
    assert_int_equal(gpst_metadata_segments(exif, exif_bytes, icc, icc_bytes, segments + 2, &bytes), GPST_OK);
    assert_int_equal(bytes, wanted);
    assert_int_equal(segments[2 + wanted], 0xa5);
    memcpy(segments + 2 + wanted, "\xff\xd9", 2);
    assert_int_equal(gpst_metadata_read(segments, wanted + 4, &metadata), GPST_OK);
    assert_string_equal(metadata.date, exif_bytes > 0 ? "2024:05:06 07:08:09" : "");
    assert_int_equal(gpst_metadata_read_icc(segments, wanted + 4, got_icc, &got_bytes), GPST_OK);
    assert_int_equal(got_bytes, icc_bytes);
    assert_memory_equal(got_icc, icc, icc_bytes);
    if (wanted > 0) { /* less room, and nothing is written */
        memset(segments, 0xa5, wanted);
        bytes = wanted - 1;
        assert_int_equal(gpst_metadata_segments(exif, exif_bytes, icc, icc_bytes, segments, &bytes),
                         GPST_ERROR_ARGUMENT);
        assert_non_null(strstr(gpst_last_reason(), "are needed"));
        assert_int_equal(bytes, wanted - 1);
        for (size_t i = 0; i < wanted; i += i < 64 ? 1 : 4093)
            assert_int_equal(segments[i], 0xa5);
    }
}

static void segments_are_read_again(void** state) {
    static const size_t sizes[] = {0, 1, 500, PART_BYTES - 1, PART_BYTES, PART_BYTES + 1, 2 * PART_BYTES,
                                   2 * PART_BYTES + 1, MOST_ICC - PART_BYTES + 1, MOST_ICC};
    static uint8_t exif[MOST_EXIF];
    const gpst_metadata from = longest();
    const gpst_exif_desc desc = desc_of(&from, 900.0);
    size_t bytes = sizeof exif;
    (void)state;
    assert_int_equal(gpst_exif_make(&desc, exif, &bytes), GPST_OK);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const size_t n = (sizes[i] + PART_BYTES - 1) / PART_BYTES, icc_bytes = 18 * n + sizes[i];
        expect_segments(NULL, 0, sizes[i], icc_bytes);
        expect_segments(exif, bytes, sizes[i], 10 + bytes + icc_bytes);
        expect_segments(exif, MOST_EXIF, sizes[i], 10 + MOST_EXIF + icc_bytes);
    }
}

static void segments_byte_by_byte(void** state) {
    static const uint8_t wanted[] = {0xff, 0xe1, 0, 11, 'E', 'x', 'i', 'f', 0, 0, 'a', 'b', 'c',
                                     0xff, 0xe2, 0, 18, 'I', 'C', 'C', '_', 'P', 'R', 'O', 'F', 'I', 'L', 'E', 0, 1, 1,
                                     'd', 'e'};
    uint8_t out[sizeof wanted];
    size_t bytes = sizeof out;
    (void)state;
    assert_int_equal(gpst_metadata_segments("abc", 3, "de", 2, out, &bytes), GPST_OK);
    assert_int_equal(bytes, sizeof wanted);
    assert_memory_equal(out, wanted, sizeof wanted);
}

static void rules_of_segments(void** state) {
    size_t bytes = 100;
    (void)state;
    assert_int_equal(gpst_metadata_segments(icc, 1, icc, 1, segments, NULL), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_metadata_segments: bytes=NULL: required");
    assert_int_equal(gpst_metadata_segments(icc, MOST_EXIF + 1, icc, 0, NULL, &bytes), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_metadata_segments: exif_bytes=65528: at most 65527");
    assert_int_equal(gpst_metadata_segments(icc, SIZE_MAX, icc, 0, NULL, &bytes), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_metadata_segments(icc, 0, icc, MOST_ICC + 1, NULL, &bytes), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_metadata_segments: icc_bytes=16707346: at most 16707345");
    assert_int_equal(gpst_metadata_segments(icc, 0, icc, SIZE_MAX, NULL, &bytes), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_metadata_segments(NULL, 1, icc, 1, segments, &bytes), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_metadata_segments: exif=NULL: required with its bytes");
    assert_int_equal(gpst_metadata_segments(icc, 1, NULL, 1, segments, &bytes), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "gpst_metadata_segments: icc=NULL: required with its bytes");
    assert_int_equal(bytes, 100);
    assert_int_equal(gpst_metadata_segments(NULL, 0, NULL, 0, segments, &bytes), GPST_OK);
    assert_int_equal(bytes, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_smallest),          cmocka_unit_test(all_that_it_says),
        cmocka_unit_test(an_upright_picture),    cmocka_unit_test(the_block_of_a_view),
        cmocka_unit_test(it_is_read_again),      cmocka_unit_test(focal_lengths),
        cmocka_unit_test(rules_of_making),       cmocka_unit_test(segments_are_read_again),
        cmocka_unit_test(segments_byte_by_byte), cmocka_unit_test(rules_of_segments),
    };
    return cmocka_run_group_tests(tests, open_memory, close_memory);
}
