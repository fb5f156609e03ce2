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

/* A TIFF structure, of EXIF or a file: fills orientation, dates and gps. */
GPSTI_INTERN void gpsti_exif_read(gpsti_segment exif, gpst_metadata* out);
GPSTI_INTERN bool gpsti_tiff_is(const uint8_t* data, size_t bytes);
/* The bytes of a tag of IFD0. */
GPSTI_INTERN gpsti_segment gpsti_tiff_tag(gpsti_segment tiff, uint32_t tag);
/* The number that a tag of IFD0 has; 0: none. */
GPSTI_INTERN uint32_t gpsti_tiff_number_of(gpsti_segment tiff, uint32_t tag);
/* Has a file a profile that a JPEG of RGB can have: of RGB, and not too large? */
GPSTI_INTERN bool gpsti_metadata_icc_fits(const void* data, size_t bytes);
/* An XMP packet: fills what GPano says. */
GPSTI_INTERN void gpsti_xmp_read(gpsti_segment xmp, gpst_metadata* out);

#endif
