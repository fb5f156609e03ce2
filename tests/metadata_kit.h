/* tests/metadata_kit.h -- files that say something beside their pixels, written for tests: TIFF structures of either
   byte order, classic and BigTIFF, in JPEG, PNG and WebP. They have no pixels. */
#ifndef GPST_METADATA_KIT_H
#define GPST_METADATA_KIT_H

#include "test.h"

typedef struct blob {
    uint8_t data[1 << 18];
    size_t bytes;
    size_t entry; /* where the next entry of a directory goes */
    bool big;     /* the highest byte of a number is the first */
    bool wide;    /* BigTIFF */
} blob;

enum { BYTE = 1, ASCII = 2, SHORT = 3, LONG = 4, RATIONAL = 5, UNDEFINED = 7, SIGNED_SHORT = 8,
       SIGNED_RATIONAL = 10, IFD = 13, LONG8 = 16, IFD8 = 18 };

enum {
    ORIENTATION = 0x112,
    DATE = 0x132,
    XMP = 700,
    ICC = 34675,
    EXIF_POINTER = 0x8769,
    GPS_POINTER = 0x8825,
    DATE_ORIGINAL = 0x9003,
    DATE_DIGITIZED = 0x9004,
    OFFSET_ORIGINAL = 0x9011,
    SUBSECOND_ORIGINAL = 0x9291
};

/* ---- bytes and numbers ----------------------------------------------------------------------------------- */

static inline void blob_put(blob* self, const void* data, size_t bytes) {
    assert_true(bytes <= sizeof self->data - self->bytes);
    if (bytes > 0)
        memcpy(self->data + self->bytes, data, bytes);
    self->bytes += bytes;
}

static inline void blob_fill(blob* self, size_t bytes) {
    assert_true(bytes <= sizeof self->data - self->bytes);
    memset(self->data + self->bytes, 0, bytes);
    self->bytes += bytes;
}

static inline void blob_set(blob* self, size_t at, uint32_t n_bytes, uint64_t value) {
    assert_true(at + n_bytes <= sizeof self->data);
    for (uint32_t i = 0; i < n_bytes; i++)
        self->data[at + i] = (uint8_t)(value >> 8 * (self->big ? n_bytes - 1 - i : i));
}

static inline uint32_t blob_get(const blob* self, size_t at, uint32_t n_bytes) {
    uint32_t value = 0;
    assert_true(at + n_bytes <= self->bytes);
    for (uint32_t i = 0; i < n_bytes; i++)
        value |= (uint32_t)self->data[at + i] << 8 * (self->big ? n_bytes - 1 - i : i);
    return value;
}

static inline void blob_number(blob* self, uint32_t n_bytes, uint64_t value) {
    blob_fill(self, n_bytes);
    blob_set(self, self->bytes - n_bytes, n_bytes, value);
}

/* ---- a TIFF structure ------------------------------------------------------------------------------------ */

static inline void tiff_begin(blob* self, bool big) {
    self->bytes = 0;
    self->big = big;
    self->wide = false;
    blob_put(self, big ? "MM" : "II", 2);
    blob_number(self, 2, 42);
    blob_number(self, 4, 8);
}

static inline void bigtiff_begin(blob* self, bool big) {
    self->bytes = 0;
    self->big = big;
    self->wide = true;
    blob_put(self, big ? "MM" : "II", 2);
    blob_number(self, 2, 43);
    blob_number(self, 4, big ? 0x80000 : 8); /* bytes of an offset, and two of nothing */
    blob_number(self, 8, 16);
}

static inline uint32_t tiff_word(const blob* self) { return self->wide ? 8 : 4; }

/* A directory of n entries at the end; where it lies. */
static inline uint32_t tiff_directory(blob* self, uint32_t n) {
    const size_t at = self->bytes;
    blob_number(self, self->wide ? 8 : 2, n);
    self->entry = self->bytes;
    blob_fill(self, (self->wide ? 20 : 12) * (size_t)n + tiff_word(self));
    return (uint32_t)at;
}

/* The next entry of the directory; where its values of that many bytes go. */
static inline size_t tiff_entry(blob* self, uint32_t tag, uint32_t type, uint32_t count, size_t bytes) {
    const size_t entry = self->entry, value = entry + 4 + tiff_word(self);
    self->entry += 4 + 2 * tiff_word(self);
    blob_set(self, entry, 2, tag);
    blob_set(self, entry + 2, 2, type);
    blob_set(self, entry + 4, tiff_word(self), count);
    if (bytes <= tiff_word(self))
        return value;
    blob_set(self, value, tiff_word(self), self->bytes);
    blob_fill(self, bytes + bytes % 2);
    return self->bytes - bytes - bytes % 2;
}

static inline void tiff_number(blob* self, uint32_t tag, uint32_t type, uint32_t value) {
    const uint32_t bytes = type == BYTE ? 1 : type == SHORT ? 2 : type == LONG8 || type == IFD8 ? 8 : 4;
    blob_set(self, tiff_entry(self, tag, type, 1, bytes), bytes, value);
}

static inline void tiff_bytes(blob* self, uint32_t tag, uint32_t type, const void* data, size_t bytes) {
    memcpy(self->data + tiff_entry(self, tag, type, (uint32_t)bytes, bytes), data, bytes);
}

static inline void tiff_text(blob* self, uint32_t tag, const char* text) {
    tiff_bytes(self, tag, ASCII, text, strlen(text) + 1);
}

static inline void tiff_rationals(blob* self, uint32_t tag, const gpst_rational* values, uint32_t n) {
    const size_t at = tiff_entry(self, tag, RATIONAL, n, 8 * (size_t)n);
    for (uint32_t i = 0; i < n; i++) {
        blob_set(self, at + 8 * (size_t)i, 4, values[i].numerator);
        blob_set(self, at + 8 * (size_t)i + 4, 4, values[i].denominator);
    }
}

/* Where the entry of that tag lies in the directory of a classic one at that offset. */
static inline size_t tiff_find(const blob* self, size_t directory, uint32_t tag) {
    for (uint32_t i = 0; i < blob_get(self, directory, 2); i++)
        if (blob_get(self, directory + 2 + 12 * (size_t)i, 2) == tag)
            return directory + 2 + 12 * (size_t)i;
    fail_msg("tag %#x is not there", (unsigned)tag);
    return 0;
}

/* ---- parts of files ---------------------------------------------------------------------------------------- */

static inline void jpeg_begin(blob* self) {
    self->bytes = 0;
    self->big = true;
    blob_put(self, "\xff\xd8", 2);
}

/* name_bytes 0: it begins with no name. */
static inline void jpeg_segment(blob* self, uint32_t marker, const void* name, size_t name_bytes, const void* data,
                                size_t bytes) {
    assert_true(name_bytes + bytes <= 65533);
    blob_number(self, 2, 0xff00 | marker);
    blob_number(self, 2, (uint32_t)(2 + name_bytes + bytes));
    blob_put(self, name, name_bytes);
    blob_put(self, data, bytes);
}

static inline void jpeg_exif(blob* self, const blob* exif) {
    jpeg_segment(self, 0xe1, "Exif\0", 6, exif->data, exif->bytes);
}

static inline void jpeg_xmp(blob* self, const char* xmp) {
    jpeg_segment(self, 0xe1, "http://ns.adobe.com/xap/1.0/", 29, xmp, strlen(xmp));
}

static inline void jpeg_icc(blob* self, uint32_t number, uint32_t n, const void* data, size_t bytes) {
    const char name[14] = {'I', 'C', 'C', '_', 'P', 'R', 'O', 'F', 'I', 'L', 'E', 0, (char)number, (char)n};
    jpeg_segment(self, 0xe2, name, sizeof name, data, bytes);
}

static inline void png_begin(blob* self) {
    self->bytes = 0;
    self->big = true;
    blob_put(self, "\x89PNG\r\n\x1a\n", 8);
}

/* Its check is 0. */
static inline void png_chunk(blob* self, const char* name, const void* data, size_t bytes) {
    blob_number(self, 4, (uint32_t)bytes);
    blob_put(self, name, 4);
    blob_put(self, data, bytes);
    blob_number(self, 4, 0);
}

/* What ImageMagick writes: digits in lines. */
static inline void raw_profile(blob* self, const char* name, const void* data, size_t bytes) {
    char text[64];
    self->bytes = 0;
    blob_put(self, text, (size_t)snprintf(text, sizeof text, "\n%s\n%8u", name, (unsigned)bytes));
    for (size_t i = 0; i < bytes; i++) {
        if (i % 36 == 0)
            blob_put(self, "\n", 1);
        blob_put(self, text, (size_t)snprintf(text, sizeof text, "%02x", ((const uint8_t*)data)[i]));
    }
    blob_put(self, "\n", 1);
}

/* zlib's format, in blocks that are stored as they are. */
static inline void zlib_stored(blob* self, const void* data, size_t bytes) {
    uint32_t low = 1, high = 0;
    blob_put(self, "\x78\x01", 2);
    for (size_t at = 0; at < bytes || bytes == 0;) {
        const size_t n = bytes - at < 1000 ? bytes - at : 1000;
        const uint8_t head[5] = {at + n == bytes, (uint8_t)n, (uint8_t)(n >> 8), (uint8_t)~n, (uint8_t)(~n >> 8)};
        blob_put(self, head, 5);
        blob_put(self, (const uint8_t*)data + at, n);
        at += n;
    }
    for (size_t i = 0; i < bytes; i++)
        low = (low + ((const uint8_t*)data)[i]) % 65521, high = (high + low) % 65521;
    const uint8_t sum[4] = {(uint8_t)(high >> 8), (uint8_t)high, (uint8_t)(low >> 8), (uint8_t)low};
    blob_put(self, sum, 4);
}

/* A text of one of PNG's three kinds, packed or not (tEXt never is, zTXt always). */
static inline void png_text(blob* self, const char* kind, const char* keyword, bool is_packed, const void* data,
                            size_t bytes) {
    static blob text;
    text.bytes = 0;
    blob_put(&text, keyword, strlen(keyword) + 1);
    if (strcmp(kind, "iTXt") == 0) {
        blob_put(&text, is_packed ? "\1" : "\0", 1);
        blob_put(&text, "\0de\0w", 6);
    } else if (is_packed) {
        blob_put(&text, "", 1);
    }
    if (is_packed)
        zlib_stored(&text, data, bytes);
    else
        blob_put(&text, data, bytes);
    png_chunk(self, kind, text.data, text.bytes);
}

static inline void webp_begin(blob* self) {
    self->bytes = 0;
    self->big = false;
    blob_put(self, "RIFF\0\0\0\0WEBP", 12);
}

/* With a byte behind it where its length is odd. */
static inline void webp_chunk(blob* self, const char* name, const void* data, size_t bytes) {
    blob_put(self, name, 4);
    blob_number(self, 4, (uint32_t)bytes);
    blob_put(self, data, bytes);
    blob_fill(self, bytes % 2);
}

/* ---- reading ----------------------------------------------------------------------------------------------- */

/* Of a copy that is exactly as long, for the sanitizers. */
static inline gpst_metadata read_bytes(const void* data, size_t bytes) {
    gpst_metadata metadata;
    uint8_t* const copy = (uint8_t*)malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, data, bytes);
    memset(&metadata, 0xa5, sizeof metadata);
    assert_int_equal(gpst_metadata_read(copy, bytes, &metadata), GPST_OK);
    free(copy);
    return metadata;
}

static inline gpst_metadata read_blob(const blob* self) { return read_bytes(self->data, self->bytes); }

static inline bool same_rationals(const gpst_rational* a, const gpst_rational* b, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (a[i].numerator != b[i].numerator || a[i].denominator != b[i].denominator)
            return false;
    return true;
}

static inline void expect_gps(const gpst_gps* got, const gpst_gps* wanted) {
    assert_int_equal(got->latitude_ref, wanted->latitude_ref);
    assert_int_equal(got->longitude_ref, wanted->longitude_ref);
    assert_true(same_rationals(got->latitude, wanted->latitude, 3));
    assert_true(same_rationals(got->longitude, wanted->longitude, 3));
    assert_int_equal(got->has_altitude, wanted->has_altitude);
    assert_int_equal(got->is_below_sea, wanted->is_below_sea);
    assert_true(same_rationals(&got->altitude, &wanted->altitude, 1));
    assert_int_equal(got->has_time, wanted->has_time);
    assert_true(same_rationals(got->time, wanted->time, 3));
    assert_string_equal(got->date, wanted->date);
}

static inline void expect_metadata(const gpst_metadata* got, const gpst_metadata* wanted) {
    assert_int_equal(got->orientation, wanted->orientation);
    assert_string_equal(got->date, wanted->date);
    assert_string_equal(got->date_offset, wanted->date_offset);
    assert_string_equal(got->subsecond, wanted->subsecond);
    expect_gps(&got->gps, &wanted->gps);
    assert_string_equal(got->projection, wanted->projection);
    assert_int_equal(got->has_sphere, wanted->has_sphere);
    assert_int_equal(got->full_width, wanted->full_width);
    assert_int_equal(got->full_height, wanted->full_height);
    assert_int_equal(got->crop_width, wanted->crop_width);
    assert_int_equal(got->crop_height, wanted->crop_height);
    assert_int_equal(got->crop_left, wanted->crop_left);
    assert_int_equal(got->crop_top, wanted->crop_top);
    assert_true(got->heading == wanted->heading && got->pitch == wanted->pitch && got->roll == wanted->roll);
    assert_string_equal(got->gpano_fault, wanted->gpano_fault);
    assert_string_equal(got->note, wanted->note);
}

#endif
