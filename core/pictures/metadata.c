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
#define GPSTI_METADATA_SEGMENT_BYTES 65533
#define GPSTI_METADATA_CHUNK_BYTES (GPSTI_METADATA_SEGMENT_BYTES - GPSTI_METADATA_ICC_BYTES)
#define GPSTI_METADATA_MOST_CHUNKS 255
#define GPSTI_METADATA_MOST_ICC ((size_t)GPSTI_METADATA_MOST_CHUNKS * GPSTI_METADATA_CHUNK_BYTES)

/* What a file has. The profile is in parts, in order; n_icc 0: none. */
typedef struct gpsti_found {
    gpsti_segment exif, xmp;
    gpsti_segment icc[GPSTI_METADATA_MOST_CHUNKS];
    uint32_t n_icc;
} gpsti_found;

GPSTI_PRIVATE gpsti_segment gpsti_segment_of(const uint8_t* data, size_t bytes) {
    gpsti_segment block;
    block.data = data;
    block.bytes = bytes;
    return block;
}

/* Behind a name that it begins with; else none. */
GPSTI_PRIVATE gpsti_segment gpsti_segment_behind(gpsti_segment block, const void* name, size_t name_bytes) {
    if (block.bytes <= name_bytes || memcmp(block.data, name, name_bytes) != 0)
        return gpsti_segment_of(NULL, 0);
    return gpsti_segment_of(block.data + name_bytes, block.bytes - name_bytes);
}

GPSTI_PRIVATE void gpsti_found_keep(gpsti_segment* first, gpsti_segment block) {
    if (first->bytes == 0)
        *first = block;
}

/* ---- where it lies ------------------------------------------------------------------------------------------- */

/* Each part says its number and how many there are. A profile of which one is missing, or is there twice, is none. */
GPSTI_PRIVATE void gpsti_found_add_icc(gpsti_found* self, gpsti_segment segment, uint32_t* said, uint32_t* n_parts) {
    const gpsti_segment part = gpsti_segment_behind(segment, GPSTI_METADATA_ICC, sizeof GPSTI_METADATA_ICC);
    if (part.bytes < 3)
        return;
    const uint32_t number = part.data[0], n = part.data[1];
    if ((*said != 0 && *said != n) || number == 0 || number > n || self->icc[number - 1].bytes > 0) {
        *said = UINT32_MAX; /* nothing agrees with that */
        return;
    }
    *said = n;
    ++*n_parts;
    self->icc[number - 1] = gpsti_segment_of(part.data + 2, part.bytes - 2);
}

GPSTI_PRIVATE void gpsti_found_in_jpeg(const uint8_t* data, size_t bytes, gpsti_found* out) {
    gpsti_jpeg_walk walk = gpsti_jpeg_walk_of(data, bytes);
    uint32_t said = 0, n_parts = 0;
    while (gpsti_jpeg_next(&walk) && walk.marker != 0xda && !walk.cut) {
        if (walk.length < 2)
            continue;
        const gpsti_segment segment = gpsti_segment_of(data + walk.begin + 4, walk.length - 2);
        if (walk.marker == 0xe1) {
            gpsti_found_keep(&out->exif,
                             gpsti_segment_behind(segment, GPSTI_METADATA_EXIF, GPSTI_METADATA_EXIF_BYTES));
            gpsti_found_keep(&out->xmp, gpsti_segment_behind(segment, GPSTI_METADATA_XMP, GPSTI_METADATA_XMP_BYTES));
        } else if (walk.marker == 0xe2) {
            gpsti_found_add_icc(out, segment, &said, &n_parts);
        }
    }
    out->n_icc = said == n_parts ? n_parts : 0;
}

GPSTI_PRIVATE uint32_t gpsti_metadata_big32(const uint8_t* at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

GPSTI_PRIVATE uint32_t gpsti_metadata_little32(const uint8_t* at) {
    return (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
}

/* keyword, compressed?, method, language, translated keyword, text */
GPSTI_PRIVATE gpsti_segment gpsti_metadata_itxt(gpsti_segment chunk) {
    const char* const keyword = "XML:com.adobe.xmp";
    gpsti_segment rest = gpsti_segment_behind(chunk, keyword, strlen(keyword) + 1);
    if (rest.bytes < 2 || rest.data[0] != 0)
        return gpsti_segment_of(NULL, 0);
    rest = gpsti_segment_of(rest.data + 2, rest.bytes - 2);
    for (int i = 0; i < 2 && rest.bytes > 0; i++) {
        const void* const end = memchr(rest.data, 0, rest.bytes);
        const size_t used = end ? (size_t)((const uint8_t*)end - rest.data) + 1 : rest.bytes;
        rest = gpsti_segment_of(rest.data + used, rest.bytes - used);
    }
    return rest;
}

GPSTI_PRIVATE void gpsti_found_in_png(const uint8_t* data, size_t bytes, gpsti_found* out) {
    size_t at = 8;
    while (bytes - at >= 12) {
        const uint32_t length = gpsti_metadata_big32(data + at);
        if (length > bytes - at - 12)
            return;
        const gpsti_segment chunk = gpsti_segment_of(data + at + 8, length);
        if (memcmp(data + at + 4, "eXIf", 4) == 0)
            gpsti_found_keep(&out->exif, chunk);
        else if (memcmp(data + at + 4, "iTXt", 4) == 0)
            gpsti_found_keep(&out->xmp, gpsti_metadata_itxt(chunk));
        at += 12 + (size_t)length;
    }
}

GPSTI_PRIVATE void gpsti_found_in_webp(const uint8_t* data, size_t bytes, gpsti_found* out) {
    size_t at = 12;
    while (bytes - at >= 8) {
        const uint32_t length = gpsti_metadata_little32(data + at + 4);
        if (length > bytes - at - 8)
            break;
        const gpsti_segment chunk = gpsti_segment_of(data + at + 8, length);
        const gpsti_segment bare = gpsti_segment_behind(chunk, GPSTI_METADATA_EXIF, GPSTI_METADATA_EXIF_BYTES);
        if (memcmp(data + at, "EXIF", 4) == 0)
            gpsti_found_keep(&out->exif, bare.bytes > 0 ? bare : chunk);
        else if (memcmp(data + at, "XMP ", 4) == 0)
            gpsti_found_keep(&out->xmp, chunk);
        else if (memcmp(data + at, "ICCP", 4) == 0)
            gpsti_found_keep(&out->icc[0], chunk);
        const size_t padded = (size_t)length + (length & 1);
        at += 8 + (padded <= bytes - at - 8 ? padded : length);
    }
    out->n_icc = out->icc[0].bytes > 0 ? 1 : 0;
}

GPSTI_PRIVATE void gpsti_found_in_tiff(const uint8_t* data, size_t bytes, gpsti_found* out) {
    out->exif = gpsti_segment_of(data, bytes);
    out->xmp = gpsti_tiff_tag(out->exif, GPSTI_TIFF_XMP);
    out->icc[0] = gpsti_tiff_tag(out->exif, GPSTI_TIFF_ICC);
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

GPST_API gpst_result gpst_metadata_read(const void* data, size_t bytes, gpst_metadata* out) {
    gpsti_found found;
    GPSTI_FAIL_IF(!data || !out, GPST_ERROR_ARGUMENT, "gpst_metadata_read: data and out: required");
    memset(out, 0, sizeof *out);
    gpsti_metadata_find(data, bytes, &found);
    gpsti_exif_read(found.exif, out);
    gpsti_xmp_read(found.xmp, out);
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
