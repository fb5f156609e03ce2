/* tests/fuzz/fuzz_metadata.c -- any bytes as a file: what it says beside its pixels, its profile, where its pixels come
   to lie, and what is made of all that: read again, it says the same.

   With a fuzzer (clang's), and with run_corpus.c instead of one:
   clang -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_metadata.c gpustage.c
   cc tests/fuzz/fuzz_metadata.c tests/fuzz/run_corpus.c gpustage.c -pthread
*/
#include "../../gpustage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

#define REQUIRE(holds) ((holds) ? (void)0 : stop(#holds))

static void stop(const char* rule) {
    fprintf(stderr, "fuzz_metadata: does not hold: %s (last reason: %s)\n", rule, gpst_last_reason());
    abort();
}

/* Exactly as long as its content, for the sanitizers. */
static uint8_t* take(size_t bytes) {
    uint8_t* const data = (uint8_t*)malloc(bytes ? bytes : 1);
    REQUIRE(data != NULL);
    return data;
}

static gpst_metadata read_metadata(const uint8_t* data, size_t bytes) {
    gpst_metadata metadata;
    memset(&metadata, 0xa5, sizeof metadata);
    REQUIRE(gpst_metadata_read(data, bytes, &metadata) == GPST_OK);
    return metadata;
}

/* ---- what was read ------------------------------------------------------------------------------------------- */

static bool is_text(const char* text, size_t room, size_t length) {
    const char* const end = (const char*)memchr(text, 0, room);
    for (const char* c = text; end && c < end; c++)
        if (*c < ' ' || *c > '~')
            return false;
    return end && (end == text || length == 0 || (size_t)(end - text) == length);
}

static bool are_sound(const gpst_rational* values, uint32_t n, bool are_there) {
    for (uint32_t i = 0; i < n; i++)
        if ((values[i].denominator != 0) != are_there || (!are_there && values[i].numerator != 0))
            return false;
    return true;
}

static void check_metadata(const gpst_metadata* read) {
    const gpst_gps* const gps = &read->gps;
    const bool placed = gps->latitude_ref != 0;
    REQUIRE(read->orientation <= 8);
    REQUIRE(is_text(read->date, sizeof read->date, 19) && is_text(read->date_offset, sizeof read->date_offset, 6));
    REQUIRE(is_text(read->subsecond, sizeof read->subsecond, 0) && is_text(gps->date, sizeof gps->date, 10));
    REQUIRE(read->date[0] || (!read->date_offset[0] && !read->subsecond[0]));
    REQUIRE(!placed || gps->latitude_ref == 'N' || gps->latitude_ref == 'S');
    REQUIRE(placed ? gps->longitude_ref == 'E' || gps->longitude_ref == 'W' : gps->longitude_ref == 0);
    REQUIRE(are_sound(gps->latitude, 3, placed) && are_sound(gps->longitude, 3, placed));
    REQUIRE(are_sound(&gps->altitude, 1, gps->has_altitude) && (gps->has_altitude || !gps->is_below_sea));
    REQUIRE(are_sound(gps->time, 3, gps->has_time));
    REQUIRE(is_text(read->projection, sizeof read->projection, 0));
    REQUIRE(read->has_sphere == (strcmp(read->projection, "equirectangular") == 0));
    REQUIRE(fabs(read->heading) <= 1e9 && fabs(read->pitch) <= 1e9 && fabs(read->roll) <= 1e9);
    REQUIRE(is_text(read->gpano_fault, sizeof read->gpano_fault, 0) && is_text(read->note, sizeof read->note, 0));
    REQUIRE(!read->gpano_fault[0] || (!read->projection[0] && read->full_width == 0 && fabs(read->heading) <= 0.0));
}

/* ---- where the pixels come to lie ------------------------------------------------------------------------------ */

/* The window lies in the picture: all of it can be written. */
static void check_window(const gpst_placement* placement) {
    gpst_image picture = GPST_ZERO, window;
    if ((uint64_t)placement->width * placement->height > 1 << 12)
        return;
    uint8_t* const pixels = take((size_t)placement->width * placement->height);
    picture.data = pixels;
    picture.width = placement->width, picture.height = placement->height, picture.format = GPST_FORMAT_GRAY;
    gpst_placement_window(placement, &picture, &window);
    REQUIRE(window.width == placement->turned_width && window.height == placement->turned_height);
    for (uint32_t y = 0; y < window.height; y++)
        memset((uint8_t*)window.data + (ptrdiff_t)y * (ptrdiff_t)window.pitch_bytes, 1, window.width);
    free(pixels);
}

static void check_placement(const gpst_metadata* metadata, uint32_t flags, uint32_t width, uint32_t height) {
    static const gpst_placement nothing;
    gpst_placement_desc desc = GPST_ZERO;
    gpst_placement placement;
    gpst_image stored = GPST_ZERO;
    desc.ignore_orientation = flags & 1, desc.sphere = flags & 2, desc.ignore_pose = flags & 4;
    stored.width = width, stored.height = height;
    memset(&placement, 0xa5, sizeof placement);
    gpst_clear_reason();
    const gpst_result result = gpst_placement_of(&desc, metadata, &stored, &placement);
    REQUIRE(GPST_FAILED(result) == (gpst_last_reason()[0] != 0));
    if (GPST_FAILED(result)) {
        REQUIRE(result == GPST_ERROR_UNSUPPORTED && desc.sphere && metadata->has_sphere);
        REQUIRE(memcmp(&placement, &nothing, sizeof nothing) == 0);
        return;
    }
    const bool swaps = placement.orientation >= 5;
    REQUIRE(placement.orientation >= 1 && placement.orientation <= 8);
    REQUIRE(placement.turned_width == (swaps ? height : width) && placement.turned_height == (swaps ? width : height));
    REQUIRE(placement.width <= GPST_MAX_SIDE && placement.height <= GPST_MAX_SIDE);
    REQUIRE((uint64_t)placement.left + placement.turned_width <= placement.width);
    REQUIRE((uint64_t)placement.top + placement.turned_height <= placement.height);
    REQUIRE(placement.moves == (placement.orientation != 1 || placement.width != placement.turned_width ||
                                placement.height != placement.turned_height));
    REQUIRE(is_text(placement.note, sizeof placement.note, 0));
    REQUIRE(desc.sphere || strcmp(placement.note, metadata->note) == 0);
    REQUIRE(!strstr(placement.note, "is ignored") || (!placement.has_pose && placement.width == placement.turned_width));
    REQUIRE(!placement.has_pose || (desc.sphere && !desc.ignore_pose && metadata->has_sphere));
    REQUIRE(fabs(placement.pose.yaw) <= 360 && fabs(placement.pose.pitch) <= 360 && fabs(placement.pose.roll) <= 360);
    check_window(&placement);
}

static uint32_t side_of(uint32_t value) { return value == 0 ? 1 : value < GPST_MAX_SIDE ? value : GPST_MAX_SIDE; }

static void check_placements(const gpst_metadata* metadata) {
    const uint32_t width = side_of(metadata->crop_width), height = side_of(metadata->crop_height);
    for (uint32_t flags = 0; flags < 8; flags++) {
        check_placement(metadata, flags, width, height);
        check_placement(metadata, flags, side_of(width / 7), side_of(height / 5));
        check_placement(metadata, flags, 20, 10);
        check_placement(metadata, flags, 1, GPST_MAX_SIDE);
    }
}

/* ---- what is made of it ------------------------------------------------------------------------------------------ */

static void check_again(const gpst_metadata* read, const gpst_metadata* again) {
    const gpst_gps *const a = &read->gps, *const b = &again->gps;
    REQUIRE(again->orientation == 1 && !again->projection[0]);
    REQUIRE(strcmp(read->date, again->date) == 0 && strcmp(read->date_offset, again->date_offset) == 0);
    REQUIRE(strcmp(read->subsecond, again->subsecond) == 0 && strcmp(a->date, b->date) == 0);
    REQUIRE(a->latitude_ref == b->latitude_ref && memcmp(a->latitude, b->latitude, sizeof a->latitude) == 0);
    REQUIRE(a->longitude_ref == b->longitude_ref && memcmp(a->longitude, b->longitude, sizeof a->longitude) == 0);
    REQUIRE(a->has_altitude == b->has_altitude && memcmp(&a->altitude, &b->altitude, sizeof a->altitude) == 0);
    REQUIRE(a->is_below_sea == b->is_below_sea && a->has_time == b->has_time);
    REQUIRE(memcmp(a->time, b->time, sizeof a->time) == 0);
}

/* Into room for the most bytes. */
static size_t make_exif(const gpst_metadata* read, uint8_t* exif) {
    gpst_exif_desc desc = GPST_ZERO;
    size_t needed = 0, bytes;
    desc.from = read;
    desc.width = side_of(read->full_width), desc.height = side_of(read->full_height);
    desc.focal_px = read->heading;
    REQUIRE(gpst_exif_make(&desc, NULL, &needed) == GPST_OK && needed <= GPST_EXIF_MOST_BYTES);
    bytes = needed - 1;
    REQUIRE(gpst_exif_make(&desc, exif, &bytes) == GPST_ERROR_ARGUMENT && bytes == needed - 1);
    bytes = needed;
    REQUIRE(gpst_exif_make(&desc, exif, &bytes) == GPST_OK && bytes == needed);
    return bytes;
}

static void check_made(const gpst_metadata* read, const uint8_t* icc, size_t icc_bytes) {
    uint8_t exif[GPST_EXIF_MOST_BYTES];
    const size_t exif_bytes = make_exif(read, exif);
    gpst_metadata again = read_metadata(exif, exif_bytes);
    size_t bytes = 0, got_bytes = icc_bytes;
    check_again(read, &again);
    REQUIRE(gpst_metadata_segments(NULL, exif_bytes, NULL, icc_bytes, NULL, &bytes) == GPST_OK);
    uint8_t *const jpeg = take(bytes + 4), *const got = take(icc_bytes);
    memcpy(jpeg, "\xff\xd8", 2);
    REQUIRE(gpst_metadata_segments(exif, exif_bytes, icc, icc_bytes, jpeg + 2, &bytes) == GPST_OK);
    memcpy(jpeg + 2 + bytes, "\xff\xd9", 2);
    again = read_metadata(jpeg, bytes + 4);
    check_again(read, &again);
    REQUIRE(gpst_metadata_read_icc(jpeg, bytes + 4, got, &got_bytes) == GPST_OK && got_bytes == icc_bytes);
    REQUIRE(memcmp(got, icc, icc_bytes) == 0);
    free(jpeg);
    free(got);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    uint8_t* const copy = take(bytes);
    size_t icc_bytes = 0, room;
    if (bytes)
        memcpy(copy, data, bytes);
    const gpst_metadata metadata = read_metadata(copy, bytes);
    check_metadata(&metadata);
    check_placements(&metadata);
    REQUIRE(gpst_metadata_read_icc(copy, bytes, NULL, &icc_bytes) == GPST_OK && icc_bytes <= bytes);
    uint8_t* const icc = take(icc_bytes);
    room = icc_bytes;
    REQUIRE(gpst_metadata_read_icc(copy, bytes, icc, &room) == GPST_OK && room == icc_bytes);
    if (icc_bytes > 0) {
        room = icc_bytes - 1;
        REQUIRE(gpst_metadata_read_icc(copy, bytes, icc, &room) == GPST_ERROR_ARGUMENT && room == icc_bytes - 1);
    }
    check_made(&metadata, icc, icc_bytes);
    free(icc);
    free(copy);
    return 0;
}
