/* core/pictures/metadata.c -- where JPEG, PNG, TIFF and WebP files keep EXIF, XMP and ICC, and how a JPEG gets them.
   Reads none of these. */
#include "../base/platform_internal.h"

#include "jpeg_internal.h"
#include "metadata_internal.h"

#include <string.h>

#define GPSTI_METADATA_EXIF "Exif\0\0"
#define GPSTI_METADATA_EXIF_BYTES 6
#define GPSTI_METADATA_XMP "http://ns.adobe.com/xap/1.0/"
#define GPSTI_METADATA_XMP_BYTES 29 /* with its zero */
#define GPSTI_METADATA_ICC "ICC_PROFILE"
#define GPSTI_METADATA_ICC_BYTES 14 /* with its zero, a chunk's number and how many there are */
#define GPSTI_METADATA_MOST_XMP ((size_t)4 << 20) /* of a file, and of what EXIF is unpacked to */
#define GPSTI_METADATA_SEGMENT_BYTES 65533
#define GPSTI_METADATA_CHUNK_BYTES (GPSTI_METADATA_SEGMENT_BYTES - GPSTI_METADATA_ICC_BYTES)
#define GPSTI_METADATA_MOST_CHUNKS 255
#define GPSTI_METADATA_MOST_ICC ((size_t)GPSTI_METADATA_MOST_CHUNKS * GPSTI_METADATA_CHUNK_BYTES)

/* A part of a file that says something; where its name does not tell what it is, its first bytes do. */
typedef enum gpsti_part_kind { GPSTI_PART_EXIF = 0, GPSTI_PART_XMP = 1, GPSTI_PART_EITHER = 2 } gpsti_part_kind;

typedef struct gpsti_metadata_part {
    gpsti_part_kind kind;
    uint32_t packing;
    gpsti_segment segment;
} gpsti_metadata_part;

#define GPSTI_METADATA_MOST_PARTS 16 /* files have two or three */

/* What a file has. The profile is in parts, in order; n_icc 0: none that can be read. */
typedef struct gpsti_found {
    gpsti_metadata_part parts[GPSTI_METADATA_MOST_PARTS];
    uint32_t n_parts;
    bool has_more_parts;
    gpsti_segment icc[GPSTI_METADATA_MOST_CHUNKS];
    uint32_t n_icc;
    bool has_odd_icc; /* there are parts, and they do not go together */
} gpsti_found;

GPSTI_PRIVATE gpsti_segment gpsti_segment_of(const uint8_t* data, size_t bytes) {
    gpsti_segment block;
    block.data = data;
    block.bytes = bytes;
    return block;
}

GPSTI_PRIVATE bool gpsti_segment_begins(gpsti_segment block, const void* name, size_t name_bytes) {
    return block.bytes >= name_bytes && memcmp(block.data, name, name_bytes) == 0;
}

/* Behind a name that it begins with; else none. */
GPSTI_PRIVATE gpsti_segment gpsti_segment_behind(gpsti_segment block, const void* name, size_t name_bytes) {
    if (block.bytes <= name_bytes || !gpsti_segment_begins(block, name, name_bytes))
        return gpsti_segment_of(NULL, 0);
    return gpsti_segment_of(block.data + name_bytes, block.bytes - name_bytes);
}

/* Up to the next zero, which is taken, too; none: all of the rest. */
GPSTI_PRIVATE gpsti_segment gpsti_segment_take_text(gpsti_segment* rest) {
    const void* const end = rest->bytes > 0 ? memchr(rest->data, 0, rest->bytes) : NULL;
    const gpsti_segment text =
        gpsti_segment_of(rest->data, end ? (size_t)((const uint8_t*)end - rest->data) : rest->bytes);
    const size_t used = end ? text.bytes + 1 : text.bytes;
    *rest = gpsti_segment_of(used > 0 ? rest->data + used : rest->data, rest->bytes - used);
    return text;
}

GPSTI_PRIVATE void gpsti_found_add(gpsti_found* self, gpsti_part_kind kind, gpsti_segment segment, uint32_t packing) {
    if (segment.bytes == 0)
        return;
    if (self->n_parts == GPSTI_METADATA_MOST_PARTS) {
        self->has_more_parts = true;
        return;
    }
    self->parts[self->n_parts].kind = kind;
    self->parts[self->n_parts].packing = packing;
    self->parts[self->n_parts++].segment = segment;
}

GPSTI_PRIVATE uint32_t gpsti_metadata_big32(const uint8_t* at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

GPSTI_PRIVATE uint32_t gpsti_metadata_little32(const uint8_t* at) {
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* ---- JPEG ---------------------------------------------------------------------------------------------------- */

/* Each part says its number and how many there are. */
typedef struct gpsti_icc_numbers {
    uint8_t numbers[GPSTI_METADATA_MOST_CHUNKS], totals[GPSTI_METADATA_MOST_CHUNKS];
} gpsti_icc_numbers;

GPSTI_PRIVATE void gpsti_found_add_icc(gpsti_found* self, gpsti_segment segment, gpsti_icc_numbers* said) {
    const gpsti_segment part = gpsti_segment_behind(segment, GPSTI_METADATA_ICC, sizeof GPSTI_METADATA_ICC);
    if (part.bytes < 3)
        return;
    if (self->n_icc == GPSTI_METADATA_MOST_CHUNKS) {
        self->has_odd_icc = true;
        return;
    }
    said->numbers[self->n_icc] = part.data[0];
    said->totals[self->n_icc] = part.data[1];
    self->icc[self->n_icc++] = gpsti_segment_of(part.data + 2, part.bytes - 2);
}

/* By their numbers, if these are 1 to n of n; false: they are not, and nothing has changed. */
GPSTI_PRIVATE bool gpsti_found_sort_icc(gpsti_found* self, const gpsti_icc_numbers* said) {
    gpsti_segment sorted[GPSTI_METADATA_MOST_CHUNKS];
    memset(sorted, 0, sizeof sorted);
    for (uint32_t i = 0; i < self->n_icc; i++) {
        const uint32_t number = said->numbers[i];
        if (said->totals[i] != self->n_icc || number == 0 || number > self->n_icc || sorted[number - 1].bytes > 0)
            return false;
        sorted[number - 1] = self->icc[i];
    }
    memcpy(self->icc, sorted, sizeof sorted);
    return true;
}

/* Parts that are numbered otherwise count as they come, if together they are as long as the profile says that it is. */
GPSTI_PRIVATE void gpsti_found_order_icc(gpsti_found* self, const gpsti_icc_numbers* said) {
    size_t total = 0;
    if (self->n_icc == 0 || (!self->has_odd_icc && gpsti_found_sort_icc(self, said)))
        return;
    for (uint32_t i = 0; i < self->n_icc; i++)
        total += self->icc[i].bytes;
    self->has_odd_icc =
        self->has_odd_icc || self->icc[0].bytes < 4 || gpsti_metadata_big32(self->icc[0].data) != total;
    self->n_icc = self->has_odd_icc ? 0 : self->n_icc;
}

GPSTI_PRIVATE void gpsti_found_in_jpeg(const uint8_t* data, size_t bytes, gpsti_found* out) {
    gpsti_jpeg_walk walk = gpsti_jpeg_walk_of(data, bytes);
    gpsti_icc_numbers said;
    memset(&said, 0, sizeof said);
    while (gpsti_jpeg_next(&walk) && walk.marker != 0xda && !walk.cut) {
        if (walk.length < 2)
            continue;
        const gpsti_segment segment = gpsti_segment_of(data + walk.begin + 4, walk.length - 2);
        if (walk.marker == 0xe1) {
            gpsti_found_add(out, GPSTI_PART_EXIF,
                            gpsti_segment_behind(segment, GPSTI_METADATA_EXIF, GPSTI_METADATA_EXIF_BYTES), 0);
            gpsti_found_add(out, GPSTI_PART_XMP,
                            gpsti_segment_behind(segment, GPSTI_METADATA_XMP, GPSTI_METADATA_XMP_BYTES), 0);
        } else if (walk.marker == 0xe2) {
            gpsti_found_add_icc(out, segment, &said);
        }
    }
    gpsti_found_order_icc(out, &said);
}

/* ---- PNG ----------------------------------------------------------------------------------------------------- */

/* A text of any of the three kinds, by its keyword: XMP, or one of ImageMagick's raw profiles. */
GPSTI_PRIVATE void gpsti_found_text(gpsti_found* self, const uint8_t* kind, gpsti_segment text) {
    static const char* const profiles[] = {"exif", "xmp", "APP1", "app1"};
    static const gpsti_part_kind kinds[] = {GPSTI_PART_EXIF, GPSTI_PART_XMP, GPSTI_PART_EITHER, GPSTI_PART_EITHER};
    const gpsti_segment keyword = gpsti_segment_take_text(&text);
    const char *const xmp = "XML:com.adobe.xmp", *const raw = "Raw profile type ";
    uint32_t packing = memcmp(kind, "zTXt", 4) == 0 ? GPSTI_PACKED_ZLIB : 0;
    if (memcmp(kind, "iTXt", 4) == 0 && text.bytes >= 2) { /* compressed?, method, language, translated keyword */
        packing = text.data[0] ? GPSTI_PACKED_ZLIB : 0;
        text = gpsti_segment_of(text.data + 2, text.bytes - 2);
        (void)gpsti_segment_take_text(&text);
        (void)gpsti_segment_take_text(&text);
    } else if (packing && text.bytes >= 1) { /* method */
        text = gpsti_segment_of(text.data + 1, text.bytes - 1);
    }
    if (keyword.bytes == strlen(xmp) && gpsti_segment_begins(keyword, xmp, keyword.bytes))
        gpsti_found_add(self, GPSTI_PART_XMP, text, packing);
    const gpsti_segment profile = gpsti_segment_behind(keyword, raw, strlen(raw));
    for (int i = 0; i < 4; i++)
        if (profile.bytes == strlen(profiles[i]) && gpsti_segment_begins(profile, profiles[i], profile.bytes))
            gpsti_found_add(self, kinds[i], text, packing | GPSTI_PACKED_HEX);
}

GPSTI_PRIVATE void gpsti_found_in_png(const uint8_t* data, size_t bytes, gpsti_found* out) {
    size_t at = 8;
    while (bytes - at >= 12) {
        const uint32_t length = gpsti_metadata_big32(data + at);
        const uint8_t* const kind = data + at + 4;
        if (length > bytes - at - 12)
            return;
        const gpsti_segment chunk = gpsti_segment_of(data + at + 8, length);
        if (memcmp(kind, "eXIf", 4) == 0)
            gpsti_found_add(out, GPSTI_PART_EXIF, chunk, 0);
        else if (memcmp(kind, "iTXt", 4) == 0 || memcmp(kind, "tEXt", 4) == 0 || memcmp(kind, "zTXt", 4) == 0)
            gpsti_found_text(out, kind, chunk);
        at += 12 + (size_t)length;
    }
}

/* ---- WebP and TIFF ------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_found_in_webp(const uint8_t* data, size_t bytes, gpsti_found* out) {
    size_t at = 12;
    while (bytes - at >= 8) {
        const uint32_t length = gpsti_metadata_little32(data + at + 4);
        if (length > bytes - at - 8)
            break;
        const gpsti_segment chunk = gpsti_segment_of(data + at + 8, length);
        if (memcmp(data + at, "EXIF", 4) == 0)
            gpsti_found_add(out, GPSTI_PART_EXIF, chunk, 0);
        else if (memcmp(data + at, "XMP ", 4) == 0)
            gpsti_found_add(out, GPSTI_PART_XMP, chunk, 0);
        else if (memcmp(data + at, "ICCP", 4) == 0 && out->icc[0].bytes == 0)
            out->icc[0] = chunk;
        const size_t padded = (size_t)length + (length & 1);
        at += 8 + (padded <= bytes - at - 8 ? padded : length);
    }
    out->n_icc = out->icc[0].bytes > 0 ? 1 : 0;
}

GPSTI_PRIVATE void gpsti_found_in_tiff(const uint8_t* data, size_t bytes, gpsti_found* out) {
    const gpsti_segment file = gpsti_segment_of(data, bytes);
    gpsti_found_add(out, GPSTI_PART_EXIF, file, 0);
    gpsti_found_add(out, GPSTI_PART_XMP, gpsti_tiff_tag(file, GPSTI_TIFF_XMP), 0);
    out->icc[0] = gpsti_tiff_tag(file, GPSTI_TIFF_ICC);
    out->n_icc = out->icc[0].bytes > 0 ? 1 : 0;
}

GPSTI_PRIVATE void gpsti_metadata_find(const void* file, size_t bytes, gpsti_found* out) {
    const uint8_t* const data = (const uint8_t*)file;
    memset(out, 0, sizeof *out);
    if (gpsti_jpeg_is(data, bytes))
        gpsti_found_in_jpeg(data, bytes, out);
    else if (bytes >= 8 && memcmp(data, "\x89PNG\r\n\x1a\n", 8) == 0)
        gpsti_found_in_png(data, bytes, out);
    else if (bytes >= 12 && memcmp(data, "RIFF", 4) == 0 && memcmp(data + 8, "WEBP", 4) == 0)
        gpsti_found_in_webp(data, bytes, out);
    else if (gpsti_tiff_is(data, bytes))
        gpsti_found_in_tiff(data, bytes, out);
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_metadata_miss(gpst_metadata* out, const char* what) {
    const size_t used = strlen(out->note);
    gpsti_format(out->note + used, sizeof out->note - used, "%s%s", used > 0 ? ", " : "not read: ", what);
}

/* Parts in the order of the file, until so many bytes of XMP were read. */
typedef struct gpsti_metadata_reader {
    gpst_metadata* out;
    gpsti_xmp_found xmp;
    size_t xmp_bytes;
    bool has_exif, missed_exif, missed_xmp;
} gpsti_metadata_reader;

GPSTI_PRIVATE void gpsti_metadata_read_exif(gpsti_metadata_reader* self, gpsti_segment block) {
    const gpsti_segment bare = gpsti_segment_behind(block, GPSTI_METADATA_EXIF, GPSTI_METADATA_EXIF_BYTES);
    const gpsti_segment exif = bare.bytes > 0 ? bare : block;
    self->has_exif = true;
    self->missed_exif = !gpsti_tiff_is(exif.data, exif.bytes);
    if (!self->missed_exif)
        gpsti_exif_read(exif, self->out);
}

GPSTI_PRIVATE void gpsti_metadata_read_xmp(gpsti_metadata_reader* self, gpsti_segment block) {
    const gpsti_segment bare = gpsti_segment_behind(block, GPSTI_METADATA_XMP, GPSTI_METADATA_XMP_BYTES);
    const gpsti_segment packet = bare.bytes > 0 ? bare : block;
    self->xmp_bytes += block.bytes;
    if (memchr(packet.data, 0, packet.bytes < 4 ? packet.bytes : 4)) /* UTF-16 or UTF-32: '<' has a zero beside it */
        self->missed_xmp = true;
    else
        gpsti_xmp_read(packet, &self->xmp);
}

/* The first EXIF, and all of XMP. A file itself is its EXIF, however large. */
GPSTI_PRIVATE void gpsti_metadata_read_part(gpsti_metadata_reader* self, const gpsti_metadata_part* part) {
    const bool is_exif = part->kind == GPSTI_PART_EXIF;
    const size_t most = is_exif && !part->packing ? SIZE_MAX
                        : is_exif                 ? GPSTI_METADATA_MOST_XMP
                                                  : GPSTI_METADATA_MOST_XMP - self->xmp_bytes;
    gpsti_unpacked unpacked;
    if (is_exif && self->has_exif)
        return;
    gpsti_unpack(part->segment, part->packing, most, &unpacked);
    const gpsti_segment block = unpacked.segment;
    if (block.bytes == 0 && is_exif) {
        self->has_exif = self->missed_exif = true;
    } else if (block.bytes == 0) {
        self->missed_xmp = true;
        self->xmp_bytes += unpacked.memory_bytes < most ? unpacked.memory_bytes : most; /* that took its time, too */
    } else if (is_exif || (part->kind == GPSTI_PART_EITHER &&
                           gpsti_segment_begins(block, GPSTI_METADATA_EXIF, GPSTI_METADATA_EXIF_BYTES))) {
        if (!self->has_exif)
            gpsti_metadata_read_exif(self, block);
    } else {
        gpsti_metadata_read_xmp(self, block);
    }
    gpsti_unpack_free(&unpacked);
}

GPST_API gpst_result gpst_metadata_read(const void* data, size_t bytes, gpst_metadata* out) {
    gpsti_metadata_reader reader;
    gpsti_found found;
    GPSTI_FAIL_IF(!data || !out, GPST_ERROR_ARGUMENT, "gpst_metadata_read: data and out: required");
    memset(out, 0, sizeof *out);
    memset(&reader, 0, sizeof reader);
    reader.out = out;
    gpsti_metadata_find(data, bytes, &found);
    for (uint32_t i = 0; i < found.n_parts; i++)
        gpsti_metadata_read_part(&reader, &found.parts[i]);
    gpsti_xmp_finish(&reader.xmp, out);
    if (reader.missed_exif)
        gpsti_metadata_miss(out, "EXIF");
    if (reader.missed_xmp || found.has_more_parts)
        gpsti_metadata_miss(out, "XMP");
    if (found.has_odd_icc)
        gpsti_metadata_miss(out, "ICC profile");
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_metadata_icc_fits(const void* data, size_t bytes) {
    gpsti_found found;
    size_t total = 0;
    gpsti_metadata_find(data, bytes, &found);
    for (uint32_t i = 0; i < found.n_icc; i++)
        total += found.icc[i].bytes;
    return total > 128 && total <= GPSTI_METADATA_MOST_ICC && found.icc[0].bytes >= 20 &&
           memcmp(found.icc[0].data + 16, "RGB ", 4) == 0;
}

GPST_API gpst_result gpst_metadata_read_icc(const void* data, size_t bytes, void* out, size_t* icc_bytes) {
    gpsti_found found;
    size_t total = 0, at = 0;
    GPSTI_FAIL_IF(!data || !icc_bytes, GPST_ERROR_ARGUMENT, "gpst_metadata_read_icc: data and icc_bytes: required");
    gpsti_metadata_find(data, bytes, &found);
    for (uint32_t i = 0; i < found.n_icc; i++)
        total += found.icc[i].bytes;
    GPSTI_FAIL_IF(out && *icc_bytes < total, GPST_ERROR_ARGUMENT,
                  "gpst_metadata_read_icc: icc_bytes=%llu: %llu are needed", (unsigned long long)*icc_bytes,
                  (unsigned long long)total);
    for (uint32_t i = 0; out && i < found.n_icc; at += found.icc[i++].bytes)
        memcpy((uint8_t*)out + at, found.icc[i].data, found.icc[i].bytes);
    *icc_bytes = total;
    return GPST_OK;
}

/* ---- segments of a JPEG --------------------------------------------------------------------------------------- */

/* Marker, length and name; where the rest goes. */
GPSTI_PRIVATE uint8_t* gpsti_metadata_begin(uint8_t* at, uint8_t marker, const void* name, size_t name_bytes,
                                            size_t bytes) {
    const size_t length = 2 + name_bytes + bytes;
    at[0] = 0xff, at[1] = marker;
    at[2] = (uint8_t)(length >> 8), at[3] = (uint8_t)length;
    memcpy(at + 4, name, name_bytes);
    return at + 4 + name_bytes;
}

GPST_API gpst_result gpst_metadata_segments(const void* exif, size_t exif_bytes, const void* icc, size_t icc_bytes,
                                            void* out, size_t* bytes) {
    const char* const function = "gpst_metadata_segments";
    const size_t n_chunks = (icc_bytes + GPSTI_METADATA_CHUNK_BYTES - 1) / GPSTI_METADATA_CHUNK_BYTES;
    uint8_t* at = (uint8_t*)out;
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "%s: bytes=NULL: required", function);
    GPSTI_FAIL_IF(exif_bytes > GPSTI_METADATA_SEGMENT_BYTES - GPSTI_METADATA_EXIF_BYTES, GPST_ERROR_ARGUMENT,
                  "%s: exif_bytes=%llu: at most %d", function, (unsigned long long)exif_bytes,
                  GPSTI_METADATA_SEGMENT_BYTES - GPSTI_METADATA_EXIF_BYTES);
    GPSTI_FAIL_IF(icc_bytes > GPSTI_METADATA_MOST_ICC, GPST_ERROR_ARGUMENT, "%s: icc_bytes=%llu: at most %llu",
                  function, (unsigned long long)icc_bytes, (unsigned long long)GPSTI_METADATA_MOST_ICC);
    GPSTI_FAIL_IF(out && ((exif_bytes > 0 && !exif) || (icc_bytes > 0 && !icc)), GPST_ERROR_ARGUMENT,
                  "%s: %s=NULL: required with its bytes", function, exif_bytes > 0 && !exif ? "exif" : "icc");
    const size_t total = (exif_bytes ? 4 + GPSTI_METADATA_EXIF_BYTES + exif_bytes : 0) +
                         n_chunks * (4 + GPSTI_METADATA_ICC_BYTES) + icc_bytes;
    GPSTI_FAIL_IF(out && *bytes < total, GPST_ERROR_ARGUMENT, "%s: bytes=%llu: %llu are needed", function,
                  (unsigned long long)*bytes, (unsigned long long)total);
    *bytes = total;
    if (!out)
        return GPST_OK;
    if (exif_bytes > 0) {
        at = gpsti_metadata_begin(at, 0xe1, GPSTI_METADATA_EXIF, GPSTI_METADATA_EXIF_BYTES, exif_bytes);
        memcpy(at, exif, exif_bytes);
        at += exif_bytes;
    }
    for (size_t i = 0; i < n_chunks; i++) {
        const size_t done = i * GPSTI_METADATA_CHUNK_BYTES, left = icc_bytes - done;
        const size_t piece = left < GPSTI_METADATA_CHUNK_BYTES ? left : GPSTI_METADATA_CHUNK_BYTES;
        at = gpsti_metadata_begin(at, 0xe2, GPSTI_METADATA_ICC, sizeof GPSTI_METADATA_ICC, 2 + piece);
        at[0] = (uint8_t)(i + 1), at[1] = (uint8_t)n_chunks;
        memmove(at + 2, (const uint8_t*)icc + done, piece); /* what is not moved yet lies behind what is written */
        at += 2 + piece;
    }
    return GPST_OK;
}
