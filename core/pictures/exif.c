/* core/pictures/exif.c -- EXIF blocks: tags read out of one, in either byte order, and a small one made. Every offset
   and count is checked: a block may say anything. */
#include "../base/platform_internal.h"

#include "metadata_internal.h"

#include <string.h>

/* ---- a TIFF structure ------------------------------------------------------------------------------------ */

typedef struct gpsti_tiff {
    const uint8_t* data;
    size_t bytes;
    bool big; /* the first byte of a number is the highest */
} gpsti_tiff;

/* A tag's values: count of them, each of value_bytes. */
typedef struct gpsti_tiff_entry {
    uint32_t type, count;
    const uint8_t* values;
} gpsti_tiff_entry;

enum {
    GPSTI_TIFF_BYTE = 1,
    GPSTI_TIFF_ASCII = 2,
    GPSTI_TIFF_SHORT = 3,
    GPSTI_TIFF_LONG = 4,
    GPSTI_TIFF_RATIONAL = 5,
    GPSTI_TIFF_UNDEFINED = 7,
    GPSTI_TIFF_IFD = 13 /* a LONG: libtiff's pointers to directories */
};

enum {
    GPSTI_TAG_ORIENTATION = 0x112,
    GPSTI_TAG_DATE = 0x132,
    GPSTI_TAG_EXIF = 0x8769,
    GPSTI_TAG_GPS = 0x8825,
    GPSTI_TAG_VERSION = 0x9000,
    GPSTI_TAG_DATE_ORIGINAL = 0x9003,
    GPSTI_TAG_OFFSET_ORIGINAL = 0x9011,
    GPSTI_TAG_FOCAL = 0x920a,
    GPSTI_TAG_SUBSECOND_ORIGINAL = 0x9291,
    GPSTI_TAG_WIDTH = 0xa002,
    GPSTI_TAG_HEIGHT = 0xa003,
    GPSTI_TAG_PLANE_X = 0xa20e,
    GPSTI_TAG_PLANE_Y = 0xa20f,
    GPSTI_TAG_PLANE_UNIT = 0xa210
};

enum {
    GPSTI_GPS_VERSION = 0,
    GPSTI_GPS_LATITUDE_REF = 1,
    GPSTI_GPS_LATITUDE = 2,
    GPSTI_GPS_LONGITUDE_REF = 3,
    GPSTI_GPS_LONGITUDE = 4,
    GPSTI_GPS_ALTITUDE_REF = 5,
    GPSTI_GPS_ALTITUDE = 6,
    GPSTI_GPS_TIME = 7,
    GPSTI_GPS_DATE = 0x1d
};

GPSTI_PRIVATE uint32_t gpsti_tiff_u16(const gpsti_tiff* self, const uint8_t* at) {
    return self->big ? (uint32_t)at[0] << 8 | at[1] : (uint32_t)at[1] << 8 | at[0];
}

GPSTI_PRIVATE uint32_t gpsti_tiff_u32(const gpsti_tiff* self, const uint8_t* at) {
    return self->big ? gpsti_tiff_u16(self, at) << 16 | gpsti_tiff_u16(self, at + 2)
                     : gpsti_tiff_u16(self, at + 2) << 16 | gpsti_tiff_u16(self, at);
}

GPSTI_INTERN bool gpsti_tiff_is(const uint8_t* data, size_t bytes) {
    return bytes >= 8 && (memcmp(data, "II*\0", 4) == 0 || memcmp(data, "MM\0*", 4) == 0);
}

GPSTI_PRIVATE size_t gpsti_tiff_value_bytes(uint32_t type) {
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4};
    return type < sizeof bytes ? bytes[type] : 0;
}

/* The first entry of that tag in the directory at offset ifd, if all of its values are in the block. */
GPSTI_PRIVATE bool gpsti_tiff_find(const gpsti_tiff* self, uint32_t ifd, uint32_t tag, gpsti_tiff_entry* out) {
    if (ifd > self->bytes || self->bytes - ifd < 2)
        return false;
    const uint8_t* at = self->data + ifd + 2;
    const size_t fit = (self->bytes - ifd - 2) / 12, said = gpsti_tiff_u16(self, at - 2);
    for (size_t n = said < fit ? said : fit; n > 0; n--, at += 12) {
        if (gpsti_tiff_u16(self, at) != tag)
            continue;
        out->type = gpsti_tiff_u16(self, at + 2);
        out->count = gpsti_tiff_u32(self, at + 4);
        const uint64_t bytes = (uint64_t)out->count * gpsti_tiff_value_bytes(out->type);
        const uint32_t offset = gpsti_tiff_u32(self, at + 8);
        out->values = bytes <= 4 ? at + 8 : self->data + (offset <= self->bytes ? offset : 0);
        return bytes > 0 && (bytes <= 4 || (offset <= self->bytes && bytes <= self->bytes - offset));
    }
    return false;
}

GPSTI_PRIVATE bool gpsti_tiff_number(const gpsti_tiff* self, uint32_t ifd, uint32_t tag, uint32_t* out) {
    gpsti_tiff_entry entry;
    if (!gpsti_tiff_find(self, ifd, tag, &entry))
        return false;
    if (entry.type == GPSTI_TIFF_LONG || entry.type == GPSTI_TIFF_IFD)
        *out = gpsti_tiff_u32(self, entry.values);
    else if (entry.type == GPSTI_TIFF_SHORT)
        *out = gpsti_tiff_u16(self, entry.values);
    else if (entry.type == GPSTI_TIFF_BYTE)
        *out = entry.values[0];
    else
        return false;
    return true;
}

/* As long as pattern, and like it: a digit where that has '0', a sign where it has '+', else the same. A camera
   that does not know the day says that it is all zeros. */
GPSTI_PRIVATE void gpsti_tiff_text(const gpsti_tiff* self, uint32_t ifd, uint32_t tag, const char* pattern, char* out) {
    const size_t length = strlen(pattern);
    gpsti_tiff_entry entry;
    if (!gpsti_tiff_find(self, ifd, tag, &entry) || entry.type != GPSTI_TIFF_ASCII || entry.count < length ||
        (entry.count > length && entry.values[length] != 0))
        return;
    for (size_t i = 0; i < length; i++) {
        const char c = (char)entry.values[i];
        if (pattern[i] == '0' ? c < '0' || c > '9' : pattern[i] == '+' ? c != '+' && c != '-' : c != pattern[i])
            return;
    }
    if (memcmp(entry.values, "0000:00:00", length < 10 ? length : 10) == 0)
        return;
    memcpy(out, entry.values, length);
    out[length] = '\0';
}

/* Digits alone, as many as there are, up to room. */
GPSTI_PRIVATE void gpsti_tiff_digits(const gpsti_tiff* self, uint32_t ifd, uint32_t tag, char* out, size_t room) {
    gpsti_tiff_entry entry;
    size_t n = 0;
    if (!gpsti_tiff_find(self, ifd, tag, &entry) || entry.type != GPSTI_TIFF_ASCII)
        return;
    while (n < entry.count && n + 1 < room && entry.values[n] >= '0' && entry.values[n] <= '9')
        n++;
    memcpy(out, entry.values, n);
    out[n] = '\0';
}

/* n of them, none divided by 0. */
GPSTI_PRIVATE bool gpsti_tiff_rationals(const gpsti_tiff* self, uint32_t ifd, uint32_t tag, uint32_t n,
                                        gpst_rational* out) {
    gpsti_tiff_entry entry;
    bool sound = gpsti_tiff_find(self, ifd, tag, &entry) && entry.type == GPSTI_TIFF_RATIONAL && entry.count == n;
    for (uint32_t i = 0; sound && i < n; i++) {
        out[i].numerator = gpsti_tiff_u32(self, entry.values + 8 * (size_t)i);
        out[i].denominator = gpsti_tiff_u32(self, entry.values + 8 * (size_t)i + 4);
        sound = out[i].denominator != 0;
    }
    if (!sound)
        memset(out, 0, n * sizeof *out);
    return sound;
}

/* The letter, if it is one of two. */
GPSTI_PRIVATE char gpsti_tiff_letter(const gpsti_tiff* self, uint32_t ifd, uint32_t tag, const char* two) {
    gpsti_tiff_entry entry;
    if (!gpsti_tiff_find(self, ifd, tag, &entry) || entry.type != GPSTI_TIFF_ASCII)
        return 0;
    return entry.values[0] == two[0] || entry.values[0] == two[1] ? (char)entry.values[0] : 0;
}

GPSTI_PRIVATE void gpsti_exif_read_gps(const gpsti_tiff* self, uint32_t ifd, gpst_gps* out) {
    uint32_t below = 0;
    const char ns = gpsti_tiff_letter(self, ifd, GPSTI_GPS_LATITUDE_REF, "NS");
    const char ew = gpsti_tiff_letter(self, ifd, GPSTI_GPS_LONGITUDE_REF, "EW");
    if (ns && ew && gpsti_tiff_rationals(self, ifd, GPSTI_GPS_LATITUDE, 3, out->latitude) &&
        gpsti_tiff_rationals(self, ifd, GPSTI_GPS_LONGITUDE, 3, out->longitude)) {
        out->latitude_ref = ns;
        out->longitude_ref = ew;
    } else {
        memset(out->latitude, 0, sizeof out->latitude);
    }
    out->has_altitude = gpsti_tiff_rationals(self, ifd, GPSTI_GPS_ALTITUDE, 1, &out->altitude);
    (void)gpsti_tiff_number(self, ifd, GPSTI_GPS_ALTITUDE_REF, &below);
    out->is_below_sea = out->has_altitude && (below & 1) == 1; /* 2 and 3: of the ellipsoid, above and below */
    out->has_time = gpsti_tiff_rationals(self, ifd, GPSTI_GPS_TIME, 3, out->time);
    gpsti_tiff_text(self, ifd, GPSTI_GPS_DATE, "0000:00:00", out->date);
}

GPSTI_INTERN void gpsti_exif_read(gpsti_segment exif, gpst_metadata* out) {
    const char* const form = "0000:00:00 00:00:00";
    gpsti_tiff tiff;
    uint32_t value = 0, ifd = 0;
    if (!gpsti_tiff_is(exif.data, exif.bytes))
        return;
    tiff.data = exif.data;
    tiff.bytes = exif.bytes;
    tiff.big = exif.data[0] == 'M';
    const uint32_t first = gpsti_tiff_u32(&tiff, exif.data + 4);
    if (gpsti_tiff_number(&tiff, first, GPSTI_TAG_ORIENTATION, &value) && value >= 1 && value <= 8)
        out->orientation = value;
    if (gpsti_tiff_number(&tiff, first, GPSTI_TAG_EXIF, &ifd)) {
        gpsti_tiff_text(&tiff, ifd, GPSTI_TAG_DATE_ORIGINAL, form, out->date);
        if (out->date[0]) {
            gpsti_tiff_text(&tiff, ifd, GPSTI_TAG_OFFSET_ORIGINAL, "+00:00", out->date_offset);
            gpsti_tiff_digits(&tiff, ifd, GPSTI_TAG_SUBSECOND_ORIGINAL, out->subsecond, sizeof out->subsecond);
        }
    }
    if (!out->date[0])
        gpsti_tiff_text(&tiff, first, GPSTI_TAG_DATE, form, out->date);
    if (gpsti_tiff_number(&tiff, first, GPSTI_TAG_GPS, &ifd))
        gpsti_exif_read_gps(&tiff, ifd, &out->gps);
}

GPSTI_INTERN gpsti_segment gpsti_tiff_tag(gpsti_segment block, uint32_t tag) {
    gpsti_segment none = {NULL, 0};
    gpsti_tiff_entry entry;
    gpsti_tiff tiff;
    tiff.data = block.data;
    tiff.bytes = block.bytes;
    tiff.big = block.data[0] == 'M';
    if (!gpsti_tiff_find(&tiff, gpsti_tiff_u32(&tiff, block.data + 4), tag, &entry) ||
        gpsti_tiff_value_bytes(entry.type) != 1)
        return none;
    none.data = entry.values;
    none.bytes = entry.count;
    return none;
}

GPSTI_INTERN uint32_t gpsti_tiff_number_of(gpsti_segment block, uint32_t tag) {
    uint32_t number = 0;
    gpsti_tiff tiff;
    tiff.data = block.data;
    tiff.bytes = block.bytes;
    tiff.big = block.data[0] == 'M';
    return gpsti_tiff_number(&tiff, gpsti_tiff_u32(&tiff, block.data + 4), tag, &number) ? number : 0;
}

/* ---- making one --------------------------------------------------------------------------------------------- */

#define GPSTI_EXIF_MOST_ENTRIES 16
#define GPSTI_EXIF_VALUE_BYTES 24

/* A directory before it is written: entries in the order of their tags, little-endian. */
typedef struct gpsti_exif_directory {
    struct {
        uint32_t tag, type, count;
        size_t bytes;
        uint8_t value[GPSTI_EXIF_VALUE_BYTES];
    } entries[GPSTI_EXIF_MOST_ENTRIES];
    uint32_t n;
} gpsti_exif_directory;

GPSTI_PRIVATE void gpsti_exif_put16(uint8_t* at, uint32_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

GPSTI_PRIVATE void gpsti_exif_put32(uint8_t* at, uint32_t value) {
    gpsti_exif_put16(at, value);
    gpsti_exif_put16(at + 2, value >> 16);
}

GPSTI_PRIVATE void gpsti_exif_add(gpsti_exif_directory* self, uint32_t tag, uint32_t type, uint32_t count,
                                  const void* value) {
    self->entries[self->n].tag = tag;
    self->entries[self->n].type = type;
    self->entries[self->n].count = count;
    self->entries[self->n].bytes = count * gpsti_tiff_value_bytes(type);
    memcpy(self->entries[self->n].value, value, self->entries[self->n].bytes);
    self->n++;
}

GPSTI_PRIVATE void gpsti_exif_add_number(gpsti_exif_directory* self, uint32_t tag, uint32_t type, uint32_t number) {
    uint8_t value[4];
    gpsti_exif_put32(value, number);
    gpsti_exif_add(self, tag, type, 1, value);
}

GPSTI_PRIVATE void gpsti_exif_add_text(gpsti_exif_directory* self, uint32_t tag, const char* text) {
    if (text[0])
        gpsti_exif_add(self, tag, GPSTI_TIFF_ASCII, (uint32_t)strlen(text) + 1, text);
}

GPSTI_PRIVATE void gpsti_exif_add_rationals(gpsti_exif_directory* self, uint32_t tag, uint32_t n,
                                            const gpst_rational* from) {
    uint8_t value[GPSTI_EXIF_VALUE_BYTES];
    for (uint32_t i = 0; i < n; i++) {
        gpsti_exif_put32(value + 8 * (size_t)i, from[i].numerator);
        gpsti_exif_put32(value + 8 * (size_t)i + 4, from[i].denominator);
    }
    gpsti_exif_add(self, tag, GPSTI_TIFF_RATIONAL, n, value);
}

/* At offset at of the block, values that do not fit into their entries behind it; where it ends. */
GPSTI_PRIVATE size_t gpsti_exif_write(const gpsti_exif_directory* self, uint8_t* block, size_t at) {
    uint8_t* entry = block + at + 2;
    size_t end = at + 2 + 12 * (size_t)self->n + 4;
    gpsti_exif_put16(block + at, self->n);
    for (uint32_t i = 0; i < self->n; i++, entry += 12) {
        gpsti_exif_put16(entry, self->entries[i].tag);
        gpsti_exif_put16(entry + 2, self->entries[i].type);
        gpsti_exif_put32(entry + 4, self->entries[i].count);
        if (self->entries[i].bytes <= 4) {
            memcpy(entry + 8, self->entries[i].value, self->entries[i].bytes);
            continue;
        }
        gpsti_exif_put32(entry + 8, (uint32_t)end);
        memcpy(block + end, self->entries[i].value, self->entries[i].bytes);
        end += self->entries[i].bytes + self->entries[i].bytes % 2;
    }
    return end;
}

#define GPSTI_EXIF_FOCAL_MM 10
#define GPSTI_EXIF_PLANE_CM 3 /* pixels a centimetre: COLMAP before 4.0 knows no millimetres */

/* What a rational cannot say is left out. */
GPSTI_PRIVATE void gpsti_exif_fill(const gpst_exif_desc* desc, gpsti_exif_directory* out) {
    static const gpst_rational focal = {GPSTI_EXIF_FOCAL_MM, 1};
    const double thousandths = desc->focal_px * 1000.0 + 0.5;
    const bool has_focal = thousandths >= 1.0 && thousandths < 4294967296.0;
    const gpst_metadata* const from = desc->from;
    out->n = 0;
    gpsti_exif_add(out, GPSTI_TAG_VERSION, GPSTI_TIFF_UNDEFINED, 4, "0232");
    gpsti_exif_add_text(out, GPSTI_TAG_DATE_ORIGINAL, from ? from->date : "");
    gpsti_exif_add_text(out, GPSTI_TAG_OFFSET_ORIGINAL, from ? from->date_offset : "");
    if (has_focal)
        gpsti_exif_add_rationals(out, GPSTI_TAG_FOCAL, 1, &focal);
    gpsti_exif_add_text(out, GPSTI_TAG_SUBSECOND_ORIGINAL, from ? from->subsecond : "");
    if (!has_focal || desc->width >= desc->height) { /* COLMAP up to 3.12.5 takes the width for the longer side */
        gpsti_exif_add_number(out, GPSTI_TAG_WIDTH, GPSTI_TIFF_LONG, desc->width);
        gpsti_exif_add_number(out, GPSTI_TAG_HEIGHT, GPSTI_TIFF_LONG, desc->height);
    }
    if (!has_focal)
        return;
    const double down = desc->focal_y_px * 1000.0 + 0.5;
    const gpst_rational across = {(uint32_t)thousandths, 1000};
    const gpst_rational plane_y = {down >= 1.0 && down < 4294967296.0 ? (uint32_t)down : across.numerator, 1000};
    gpsti_exif_add_rationals(out, GPSTI_TAG_PLANE_X, 1, &across);
    gpsti_exif_add_rationals(out, GPSTI_TAG_PLANE_Y, 1, &plane_y);
    gpsti_exif_add_number(out, GPSTI_TAG_PLANE_UNIT, GPSTI_TIFF_SHORT, GPSTI_EXIF_PLANE_CM);
}

GPSTI_PRIVATE void gpsti_exif_fill_gps(const gpst_gps* gps, gpsti_exif_directory* out) {
    const char ns[2] = {gps->latitude_ref, 0}, ew[2] = {gps->longitude_ref, 0};
    out->n = 0;
    gpsti_exif_add(out, GPSTI_GPS_VERSION, GPSTI_TIFF_BYTE, 4, "\2\3\0\0");
    if (ns[0] && ew[0]) {
        gpsti_exif_add_text(out, GPSTI_GPS_LATITUDE_REF, ns);
        gpsti_exif_add_rationals(out, GPSTI_GPS_LATITUDE, 3, gps->latitude);
        gpsti_exif_add_text(out, GPSTI_GPS_LONGITUDE_REF, ew);
        gpsti_exif_add_rationals(out, GPSTI_GPS_LONGITUDE, 3, gps->longitude);
    }
    if (gps->has_altitude) {
        gpsti_exif_add_number(out, GPSTI_GPS_ALTITUDE_REF, GPSTI_TIFF_BYTE, gps->is_below_sea ? 1 : 0);
        gpsti_exif_add_rationals(out, GPSTI_GPS_ALTITUDE, 1, &gps->altitude);
    }
    if (gps->has_time)
        gpsti_exif_add_rationals(out, GPSTI_GPS_TIME, 3, gps->time);
    gpsti_exif_add_text(out, GPSTI_GPS_DATE, gps->date);
}

/* The first directory has no value that is not in its entries, so it is known where the others begin. */
GPSTI_PRIVATE size_t gpsti_exif_build(const gpst_exif_desc* desc, uint8_t block[GPST_EXIF_MOST_BYTES]) {
    gpsti_exif_directory first, exif, gps;
    memset(block, 0, GPST_EXIF_MOST_BYTES);
    memcpy(block, "II*\0\10\0\0\0", 8);
    gpsti_exif_fill(desc, &exif);
    gps.n = 0;
    if (desc->from)
        gpsti_exif_fill_gps(&desc->from->gps, &gps);
    const bool has_gps = gps.n > 1; /* more than the version */
    const size_t exif_at = 8 + 2 + 12 * (has_gps ? 3u : 2u) + 4;
    const size_t gps_at = gpsti_exif_write(&exif, block, exif_at);
    const size_t end = has_gps ? gpsti_exif_write(&gps, block, gps_at) : gps_at;
    first.n = 0;
    gpsti_exif_add_number(&first, GPSTI_TAG_ORIENTATION, GPSTI_TIFF_SHORT, 1);
    gpsti_exif_add_number(&first, GPSTI_TAG_EXIF, GPSTI_TIFF_LONG, (uint32_t)exif_at);
    if (has_gps)
        gpsti_exif_add_number(&first, GPSTI_TAG_GPS, GPSTI_TIFF_LONG, (uint32_t)gps_at);
    (void)gpsti_exif_write(&first, block, 8);
    return end;
}

GPST_API gpst_result gpst_exif_make(const gpst_exif_desc* desc, void* out, size_t* bytes) {
    const char* const function = "gpst_exif_make";
    uint8_t block[GPST_EXIF_MOST_BYTES];
    GPSTI_FAIL_IF(!desc || !bytes, GPST_ERROR_ARGUMENT, "%s: desc and bytes: required", function);
    GPSTI_FAIL_IF(desc->width == 0 || desc->height == 0 || desc->width > GPST_MAX_SIDE || desc->height > GPST_MAX_SIDE,
                  GPST_ERROR_ARGUMENT, "%s: width=%u, height=%u: must be 1 to %d", function, desc->width, desc->height,
                  GPST_MAX_SIDE);
    const size_t used = gpsti_exif_build(desc, block);
    GPSTI_FAIL_IF(out && *bytes < used, GPST_ERROR_ARGUMENT, "%s: bytes=%llu: %llu are needed", function,
                  (unsigned long long)*bytes, (unsigned long long)used);
    if (out)
        memcpy(out, block, used);
    *bytes = used;
    return GPST_OK;
}
