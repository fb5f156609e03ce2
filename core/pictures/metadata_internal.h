/* core/pictures/metadata_internal.h -- EXIF and XMP blocks, wherever they lie in a file. */
#ifndef GPSTI_METADATA_INTERNAL_H
#define GPSTI_METADATA_INTERNAL_H

#include "../base/base_internal.h"
#include "metadata.h"

/* A part of a file; bytes 0: none. */
typedef struct gpsti_segment {
    const uint8_t* data;
    size_t bytes;
} gpsti_segment;

#define GPSTI_TIFF_XMP 700
#define GPSTI_TIFF_ICC 34675

/* Behind "not read: " of out->note, once. */
GPSTI_INTERN void gpsti_metadata_miss(gpst_metadata* out, const char* what);
/* A block that gpsti_tiff_is, of EXIF or a file: fills orientation, dates and gps. */
GPSTI_INTERN void gpsti_exif_read(gpsti_segment exif, gpst_metadata* out);
GPSTI_INTERN bool gpsti_tiff_is(const uint8_t* data, size_t bytes);
/* The bytes of a tag of IFD0. */
GPSTI_INTERN gpsti_segment gpsti_tiff_tag(gpsti_segment tiff, uint32_t tag);
/* The number that a tag of IFD0 has; 0: none. */
GPSTI_INTERN uint32_t gpsti_tiff_number_of(gpsti_segment tiff, uint32_t tag);
/* Has a file a profile that a JPEG of RGB can have: of RGB, and not too large? */
GPSTI_INTERN bool gpsti_metadata_icc_fits(const void* data, size_t bytes);

/* What the XMP packets of a file say together; all-zero before the first. */
typedef struct gpsti_xmp_found {
    uint32_t said; /* a bit for each property that was there */
    double numbers[9];
    char projection[32];
    char fault[GPST_GPANO_FAULT_BYTES]; /* the first that cannot be read, and why */
    uint32_t orientation;
} gpsti_xmp_found;

GPSTI_INTERN void gpsti_xmp_read(gpsti_segment packet, gpsti_xmp_found* found);
/* Fills what GPano says, all of it or nothing; and the orientation where EXIF says none. */
GPSTI_INTERN void gpsti_xmp_finish(const gpsti_xmp_found* found, gpst_metadata* out);

/* ---- unpack.c ---------------------------------------------------------------------------- */

enum { GPSTI_PACKED_ZLIB = 1, GPSTI_PACKED_HEX = 2 }; /* zlib's format; ImageMagick's hex digits, maybe in that */

typedef struct gpsti_unpacked {
    gpsti_segment segment; /* bytes 0: it is damaged, or larger than most_bytes, or there is no memory */
    void* memory;          /* NULL: it lies in the file */
    size_t memory_bytes;
} gpsti_unpacked;

/* packing: of the enum, added; 0: it is not packed. To be given to gpsti_unpack_free. */
GPSTI_INTERN void gpsti_unpack(gpsti_segment packed, uint32_t packing, size_t most_bytes, gpsti_unpacked* out);
GPSTI_INTERN void gpsti_unpack_free(gpsti_unpacked* self);

#endif
