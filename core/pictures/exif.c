/* core/pictures/exif.c -- EXIF blocks: tags read out of one, in either byte order, classic or BigTIFF, and a small one
   made. Every offset and count is checked: a block may say anything. */
#include "../base/platform_internal.h"

#include "metadata_internal.h"

#include <string.h>

/* ---- a TIFF structure ------------------------------------------------------------------------------------ */

/* Classic, or BigTIFF, whose counts and offsets have 8 bytes. */
typedef struct gpsti_tiff {
    const uint8_t* data;
    size_t bytes;
    bool big; /* the first byte of a number is the highest */
    bool wide;
    uint64_t first; /* where the first directory lies */
} gpsti_tiff;

/* A tag's values: count of them. */
typedef struct gpsti_tiff_entry {
    bool found; /* the tag is there, whatever its values are */
    uint32_t type;
    uint64_t count;
    const uint8_t* values;
} gpsti_tiff_entry;

/* What a tag says. */
typedef enum gpsti_said {
    GPSTI_SAID_NOTHING = 0, /* it is not there, or says that nothing is known */
    GPSTI_SAID_WRONG = 1,   /* it is there and cannot be read */
    GPSTI_SAID_RIGHT = 2
} gpsti_said;

#define GPSTI_TIFF_MOST_ENTRIES 65535 /* of a directory; a classic one has no more */

enum {
    GPSTI_TIFF_BYTE = 1,
    GPSTI_TIFF_ASCII = 2,
    GPSTI_TIFF_SHORT = 3,
    GPSTI_TIFF_LONG = 4,
    GPSTI_TIFF_RATIONAL = 5,
    GPSTI_TIFF_UNDEFINED = 7,
    GPSTI_TIFF_SIGNED_RATIONAL = 10,
    GPSTI_TIFF_IFD = 13,   /* a LONG: libtiff's pointers to directories */
    GPSTI_TIFF_LONG8 = 16, /* BigTIFF's */
    GPSTI_TIFF_IFD8 = 18
};

enum {
    GPSTI_TAG_ORIENTATION = 0x112,
    GPSTI_TAG_DATE = 0x132,
    GPSTI_TAG_EXIF = 0x8769,
    GPSTI_TAG_GPS = 0x8825,
    GPSTI_TAG_VERSION = 0x9000,
    GPSTI_TAG_DATE_ORIGINAL = 0x9003,
    GPSTI_TAG_DATE_DIGITIZED = 0x9004,
    GPSTI_TAG_OFFSET = 0x9010,
    GPSTI_TAG_OFFSET_ORIGINAL = 0x9011,
    GPSTI_TAG_OFFSET_DIGITIZED = 0x9012,
    GPSTI_TAG_FOCAL = 0x920a,
    GPSTI_TAG_SUBSECOND = 0x9290,
    GPSTI_TAG_SUBSECOND_ORIGINAL = 0x9291,
    GPSTI_TAG_SUBSECOND_DIGITIZED = 0x9292,
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

GPSTI_PRIVATE uint64_t gpsti_tiff_uint(const gpsti_tiff* self, const uint8_t* at, size_t n_bytes) {
    uint64_t value = 0;
    for (size_t i = 0; i < n_bytes; i++)
        value = value << 8 | at[self->big ? i : n_bytes - 1 - i];
    return value;
}

GPSTI_PRIVATE uint32_t gpsti_tiff_u16(const gpsti_tiff* self, const uint8_t* at) {
    return (uint32_t)gpsti_tiff_uint(self, at, 2);
}

GPSTI_PRIVATE uint32_t gpsti_tiff_u32(const gpsti_tiff* self, const uint8_t* at) {
    return (uint32_t)gpsti_tiff_uint(self, at, 4);
}

GPSTI_INTERN bool gpsti_tiff_is(const uint8_t* data, size_t bytes) {
    return (bytes >= 8 && (memcmp(data, "II*\0", 4) == 0 || memcmp(data, "MM\0*", 4) == 0)) ||
           (bytes >= 16 && (memcmp(data, "II+\0\10\0\0\0", 8) == 0 || memcmp(data, "MM\0+\0\10\0\0", 8) == 0));
}

GPSTI_PRIVATE gpsti_tiff gpsti_tiff_of(gpsti_segment block) {
    gpsti_tiff tiff;
    tiff.data = block.data;
    tiff.bytes = block.bytes;
    tiff.big = block.data[0] == 'M';
    tiff.wide = block.data[tiff.big ? 3 : 2] == '+';
    tiff.first = tiff.wide ? gpsti_tiff_uint(&tiff, block.data + 8, 8) : gpsti_tiff_u32(&tiff, block.data + 4);
    return tiff;
}

GPSTI_PRIVATE size_t gpsti_tiff_value_bytes(uint32_t type) {
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

/* The entry that lies there; false: not all of its values are in the block. */
GPSTI_PRIVATE bool gpsti_tiff_entry_at(const gpsti_tiff* self, const uint8_t* at, gpsti_tiff_entry* out) {
    const size_t word = self->wide ? 8 : 4;
    out->found = true;
    out->type = gpsti_tiff_u16(self, at + 2);
    out->count = gpsti_tiff_uint(self, at + 4, word);
    const size_t each = gpsti_tiff_value_bytes(out->type);
    if (each == 0 || out->count == 0 || out->count > self->bytes / each)
        return false;
    const size_t bytes = (size_t)out->count * each;
    const uint64_t offset = gpsti_tiff_uint(self, at + 4 + word, word);
    out->values = at + 4 + word;
    if (bytes <= word)
        return true;
    if (offset > self->bytes - bytes)
        return false;
    out->values = self->data + (size_t)offset;
    return true;
}

/* The first entry of that tag in the directory at offset ifd, if all of its values are in the block. */
GPSTI_PRIVATE bool gpsti_tiff_find(const gpsti_tiff* self, uint64_t ifd, uint32_t tag, gpsti_tiff_entry* out) {
    const size_t head_bytes = self->wide ? 8 : 2, entry_bytes = self->wide ? 20 : 12;
    memset(out, 0, sizeof *out);
    if (ifd > self->bytes || self->bytes - ifd < head_bytes)
        return false;
    const uint8_t* at = self->data + (size_t)ifd + head_bytes;
    const uint64_t fit = (self->bytes - ifd - head_bytes) / entry_bytes;
    uint64_t n = gpsti_tiff_uint(self, at - head_bytes, head_bytes);
    n = n < fit ? n : fit;
    for (n = n < GPSTI_TIFF_MOST_ENTRIES ? n : GPSTI_TIFF_MOST_ENTRIES; n > 0; n--, at += entry_bytes)
        if (gpsti_tiff_u16(self, at) == tag)
            return gpsti_tiff_entry_at(self, at, out);
    return false;
}

GPSTI_PRIVATE bool gpsti_tiff_number(const gpsti_tiff* self, uint64_t ifd, uint32_t tag, uint64_t* out) {
    gpsti_tiff_entry entry;
    if (!gpsti_tiff_find(self, ifd, tag, &entry))
        return false;
    switch (entry.type) {
    case GPSTI_TIFF_BYTE:
    case GPSTI_TIFF_SHORT:
    case GPSTI_TIFF_LONG:
    case GPSTI_TIFF_IFD:
    case GPSTI_TIFF_LONG8:
    case GPSTI_TIFF_IFD8:
        *out = gpsti_tiff_uint(self, entry.values, gpsti_tiff_value_bytes(entry.type));
        return true;
    default:
        return false;
    }
}

/* One that is most at most; else *out is as it was. */
GPSTI_PRIVATE gpsti_said gpsti_exif_number(const gpsti_tiff* self, uint64_t ifd, uint32_t tag, uint32_t most,
                                           uint32_t* out) {
    gpsti_tiff_entry entry;
    uint64_t value = UINT64_MAX;
    if (!gpsti_tiff_number(self, ifd, tag, &value) || value > most)
        return gpsti_tiff_find(self, ifd, tag, &entry) || entry.found ? GPSTI_SAID_WRONG : GPSTI_SAID_NOTHING;
    *out = (uint32_t)value;
    return GPSTI_SAID_RIGHT;
}

/* ---- texts ---------------------------------------------------------------------------------------------- */

#define GPSTI_EXIF_TEXT_BYTES 48 /* longer ones are of no form that is read */

/* A text up to its zero, without blanks behind it. */
GPSTI_PRIVATE gpsti_said gpsti_exif_text(const gpsti_tiff* self, uint64_t ifd, uint32_t tag,
                                         char out[GPSTI_EXIF_TEXT_BYTES]) {
    gpsti_tiff_entry entry;
    size_t n = 0;
    out[0] = '\0';
    if (!gpsti_tiff_find(self, ifd, tag, &entry) || entry.type != GPSTI_TIFF_ASCII)
        return entry.found ? GPSTI_SAID_WRONG : GPSTI_SAID_NOTHING;
    for (; n < entry.count && n < GPSTI_EXIF_TEXT_BYTES - 1 && entry.values[n] != 0; n++)
        out[n] = (char)entry.values[n];
    while (n > 0 && out[n - 1] == ' ')
        n--;
    out[n] = '\0';
    return n > 0 ? GPSTI_SAID_RIGHT : GPSTI_SAID_NOTHING;
}

/* Does text begin so? '0' stands for a digit, '-' for what separates the parts of a date, 'T' for a blank, too. */
GPSTI_PRIVATE bool gpsti_exif_begins(const char* text, const char* form) {
    for (; *form; text++, form++) {
        const bool fits = *form == '0'   ? *text >= '0' && *text <= '9'
                          : *form == '-' ? *text == ':' || *text == '-' || *text == '/' || *text == '.'
                          : *form == 'T' ? *text == ' ' || *text == 'T'
                                         : *text == *form;
        if (!fits)
            return false;
    }
    return true;
}

/* "+02:00" of that, "+0200", "+02" or "Z". */
GPSTI_PRIVATE gpsti_said gpsti_exif_zone(const char* text, char out[7]) {
    if (!text[strspn(text, " :+-")])
        return GPSTI_SAID_NOTHING;
    const bool has_colon = gpsti_exif_begins(text + 1, "00:00");
    const bool has_minutes = has_colon || gpsti_exif_begins(text + 1, "0000");
    if (strcmp(text, "Z") == 0 || strcmp(text, "z") == 0) {
        memcpy(out, "+00:00", 7);
        return GPSTI_SAID_RIGHT;
    }
    if ((text[0] != '+' && text[0] != '-') || !gpsti_exif_begins(text + 1, "00") ||
        strlen(text) != (has_colon ? 6u : has_minutes ? 5u : 3u))
        return GPSTI_SAID_WRONG;
    memcpy(out, "+00:00", 7);
    memcpy(out, text, 3);
    if (has_minutes)
        memcpy(out + 4, text + (has_colon ? 4 : 3), 2);
    return GPSTI_SAID_RIGHT;
}

/* Digits alone, as many as there are, up to room; the text behind them. */
GPSTI_PRIVATE const char* gpsti_exif_digits(const char* text, char* out, size_t room) {
    size_t n = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if (n + 1 < room)
            out[n++] = *text;
    out[n] = '\0';
    return text;
}

/* "YYYY:MM:DD" of a text that begins with a date. A camera that does not know the day leaves it blank, or all zeros. */
GPSTI_PRIVATE gpsti_said gpsti_exif_day(const char* text, char out[11]) {
    const size_t blank = strspn(text, " 0:-/.");
    if (blank >= 10 || !text[blank])
        return GPSTI_SAID_NOTHING;
    if (!gpsti_exif_begins(text, "0000-00-00"))
        return GPSTI_SAID_WRONG;
    memcpy(out, text, 10);
    out[4] = out[7] = ':';
    out[10] = '\0';
    return GPSTI_SAID_RIGHT;
}

/* A date, with what may be behind it: parts of a second, and a zone. Nothing is written but where it is right. */
GPSTI_PRIVATE gpsti_said gpsti_exif_date(const gpsti_tiff* self, uint64_t ifd, uint32_t tag, gpst_metadata* out) {
    char text[GPSTI_EXIF_TEXT_BYTES], day[11], subsecond[sizeof out->subsecond] = "", zone[7] = "";
    const gpsti_said there = gpsti_exif_text(self, ifd, tag, text);
    const gpsti_said said = there == GPSTI_SAID_RIGHT ? gpsti_exif_day(text, day) : there;
    if (said != GPSTI_SAID_RIGHT)
        return said;
    if (!gpsti_exif_begins(text + 10, "T00:00:00"))
        return GPSTI_SAID_WRONG;
    const char* rest = text + 19;
    if (*rest == '.')
        rest = gpsti_exif_digits(rest + 1, subsecond, sizeof subsecond);
    while (*rest == ' ')
        rest++;
    if (*rest && gpsti_exif_zone(rest, zone) != GPSTI_SAID_RIGHT)
        return GPSTI_SAID_WRONG;
    gpsti_format(out->date, sizeof out->date, "%s %.8s", day, text + 11);
    memcpy(out->subsecond, subsecond, sizeof subsecond);
    memcpy(out->date_offset, zone, sizeof zone);
    return said;
}

/* When the picture was taken, else digitised, else changed; of that one zone and parts of a second, too. */
GPSTI_PRIVATE void gpsti_exif_read_date(const gpsti_tiff* self, uint64_t exif, gpst_metadata* out) {
    static const uint32_t tags[3][3] = {
        {GPSTI_TAG_DATE_ORIGINAL, GPSTI_TAG_OFFSET_ORIGINAL, GPSTI_TAG_SUBSECOND_ORIGINAL},
        {GPSTI_TAG_DATE_DIGITIZED, GPSTI_TAG_OFFSET_DIGITIZED, GPSTI_TAG_SUBSECOND_DIGITIZED},
        {GPSTI_TAG_DATE, GPSTI_TAG_OFFSET, GPSTI_TAG_SUBSECOND}};
    char text[GPSTI_EXIF_TEXT_BYTES];
    bool wrong = false;
    for (int i = 0; i < 3 && !out->date[0]; i++) {
        const gpsti_said said = gpsti_exif_date(self, i == 2 ? self->first : exif, tags[i][0], out);
        wrong = wrong || said == GPSTI_SAID_WRONG;
        if (said != GPSTI_SAID_RIGHT)
            continue;
        const gpsti_said zone = gpsti_exif_text(self, exif, tags[i][1], text);
        if (zone == GPSTI_SAID_WRONG || (zone && gpsti_exif_zone(text, out->date_offset) == GPSTI_SAID_WRONG))
            gpsti_metadata_miss(out, "the date's zone");
        if (gpsti_exif_text(self, exif, tags[i][2], text) == GPSTI_SAID_RIGHT)
            (void)gpsti_exif_digits(text, out->subsecond, sizeof out->subsecond);
    }
    if (wrong && !out->date[0])
        gpsti_metadata_miss(out, "date");
}

/* ---- GPS ------------------------------------------------------------------------------------------------ */

/* One of signed numbers is of their amounts; is it negative? */
GPSTI_PRIVATE bool gpsti_exif_rational(const gpsti_tiff* self, const uint8_t* at, bool is_signed, gpst_rational* out) {
    const uint32_t sign = (uint32_t)1 << 31;
    out->numerator = gpsti_tiff_u32(self, at);
    out->denominator = gpsti_tiff_u32(self, at + 4);
    if (!is_signed)
        return false;
    const bool negative = out->numerator > 0 && ((out->numerator ^ out->denominator) & sign) != 0;
    out->numerator = out->numerator & sign ? 0 - out->numerator : out->numerator;
    out->denominator = out->denominator & sign ? 0 - out->denominator : out->denominator;
    return negative;
}

/* Up to n of them, those that are left out 0; behind the first one 0/0 is 0. All 0/0: it is not known. */
GPSTI_PRIVATE gpsti_said gpsti_exif_rationals(const gpsti_tiff* self, uint64_t ifd, uint32_t tag, uint32_t n,
                                              gpst_rational* out, bool* negative) {
    gpsti_tiff_entry entry;
    const bool there = gpsti_tiff_find(self, ifd, tag, &entry);
    const bool is_signed = entry.type == GPSTI_TIFF_SIGNED_RATIONAL;
    bool sound = there && (entry.type == GPSTI_TIFF_RATIONAL || is_signed) && entry.count <= n, known = !sound;
    *negative = false;
    memset(out, 0, n * sizeof *out);
    for (uint32_t i = 0; sound && i < n; i++) {
        if (i < entry.count && gpsti_exif_rational(self, entry.values + 8 * (size_t)i, is_signed, &out[i]))
            *negative = true;
        known = known || out[i].numerator > 0 || out[i].denominator > 0;
        if (i > 0 && out[i].numerator == 0 && out[i].denominator == 0)
            out[i].denominator = 1;
    }
    for (uint32_t i = 0; sound && i < n; i++)
        sound = out[i].denominator != 0;
    if (!sound || !known)
        memset(out, 0, n * sizeof *out);
    return !entry.found || !known ? GPSTI_SAID_NOTHING : sound ? GPSTI_SAID_RIGHT : GPSTI_SAID_WRONG;
}

/* One half of a position. two: the letters of what is positive, and negative; a sign says the latter, too. */
GPSTI_PRIVATE gpsti_said gpsti_exif_degrees(const gpsti_tiff* self, uint64_t ifd, uint32_t tag, const char* two,
                                            gpst_rational out[3], char* letter) {
    char text[GPSTI_EXIF_TEXT_BYTES];
    bool negative;
    const gpsti_said said = gpsti_exif_rationals(self, ifd, tag, 3, out, &negative);
    (void)gpsti_exif_text(self, ifd, tag - 1, text);
    const char upper = (char)(text[0] >= 'a' && text[0] <= 'z' ? text[0] - 'a' + 'A' : text[0]);
    if (said != GPSTI_SAID_RIGHT)
        return said;
    *letter = negative ? two[1] : upper;
    return upper == two[0] || upper == two[1] ? said : GPSTI_SAID_WRONG;
}

GPSTI_PRIVATE void gpsti_exif_read_position(const gpsti_tiff* self, uint64_t ifd, gpst_metadata* out) {
    gpst_gps* const gps = &out->gps;
    const gpsti_said across =
        gpsti_exif_degrees(self, ifd, GPSTI_GPS_LATITUDE, "NS", gps->latitude, &gps->latitude_ref);
    const gpsti_said along =
        gpsti_exif_degrees(self, ifd, GPSTI_GPS_LONGITUDE, "EW", gps->longitude, &gps->longitude_ref);
    if (across == GPSTI_SAID_RIGHT && along == GPSTI_SAID_RIGHT)
        return;
    if (across != GPSTI_SAID_NOTHING || along != GPSTI_SAID_NOTHING)
        gpsti_metadata_miss(out, "GPS position");
    memset(gps->latitude, 0, sizeof gps->latitude);
    memset(gps->longitude, 0, sizeof gps->longitude);
    gps->latitude_ref = gps->longitude_ref = 0;
}

GPSTI_PRIVATE void gpsti_exif_read_gps(const gpsti_tiff* self, uint64_t ifd, gpst_metadata* out) {
    gpst_gps* const gps = &out->gps;
    char text[GPSTI_EXIF_TEXT_BYTES];
    uint32_t below = 0;
    bool negative;
    gpsti_exif_read_position(self, ifd, out);
    gpsti_said said = gpsti_exif_rationals(self, ifd, GPSTI_GPS_ALTITUDE, 1, &gps->altitude, &negative);
    gps->has_altitude = said == GPSTI_SAID_RIGHT;
    if (said == GPSTI_SAID_WRONG)
        gpsti_metadata_miss(out, "GPS altitude");
    if (gpsti_exif_number(self, ifd, GPSTI_GPS_ALTITUDE_REF, 3, &below) == GPSTI_SAID_WRONG && gps->has_altitude)
        gpsti_metadata_miss(out, "the altitude's sign"); /* 2 and 3: of the ellipsoid, above and below */
    gps->is_below_sea = gps->has_altitude && (negative || (below & 1) == 1);
    said = gpsti_exif_rationals(self, ifd, GPSTI_GPS_TIME, 3, gps->time, &negative);
    gps->has_time = said == GPSTI_SAID_RIGHT && !negative;
    if (said != GPSTI_SAID_NOTHING && !gps->has_time) {
        memset(gps->time, 0, sizeof gps->time);
        gpsti_metadata_miss(out, "GPS time");
    }
    said = gpsti_exif_text(self, ifd, GPSTI_GPS_DATE, text);
    if (said == GPSTI_SAID_WRONG || (said && gpsti_exif_day(text, gps->date) == GPSTI_SAID_WRONG))
        gpsti_metadata_miss(out, "GPS date");
}

GPSTI_INTERN void gpsti_exif_read(gpsti_segment exif, gpst_metadata* out) {
    const gpsti_tiff tiff = gpsti_tiff_of(exif);
    uint64_t ifd = UINT64_MAX;
    if (gpsti_exif_number(&tiff, tiff.first, GPSTI_TAG_ORIENTATION, 8, &out->orientation) == GPSTI_SAID_WRONG)
        gpsti_metadata_miss(out, "orientation");
    (void)gpsti_tiff_number(&tiff, tiff.first, GPSTI_TAG_EXIF, &ifd);
    gpsti_exif_read_date(&tiff, ifd, out);
    if (gpsti_tiff_number(&tiff, tiff.first, GPSTI_TAG_GPS, &ifd))
        gpsti_exif_read_gps(&tiff, ifd, out);
}

GPSTI_INTERN gpsti_segment gpsti_tiff_tag(gpsti_segment block, uint32_t tag) {
    gpsti_segment none = {NULL, 0};
    const gpsti_tiff tiff = gpsti_tiff_of(block);
    gpsti_tiff_entry entry;
    if (!gpsti_tiff_find(&tiff, tiff.first, tag, &entry) || gpsti_tiff_value_bytes(entry.type) != 1)
        return none;
    none.data = entry.values;
    none.bytes = (size_t)entry.count;
    return none;
}

GPSTI_INTERN uint32_t gpsti_tiff_number_of(gpsti_segment block, uint32_t tag) {
    const gpsti_tiff tiff = gpsti_tiff_of(block);
    uint64_t number = 0;
    return gpsti_tiff_number(&tiff, tiff.first, tag, &number) ? (uint32_t)number : 0;
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
