/* core/pictures/metadata.h -- what a picture file says beside its pixels: orientation, when and where it was taken,
   which part of a sphere it is, its colours' profile; and a small EXIF block for pictures made of it. Files are JPEG,
   PNG, TIFF and WebP in memory. What is malformed counts as not there: no picture fails by it. */
#ifndef GPSTI_METADATA_H
#define GPSTI_METADATA_H

#include "pictures.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpst_rational -- a number as EXIF has it

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_rational {
    uint32_t numerator, denominator;
} gpst_rational;

/* gpst_gps -- where and when, as the file has it; all-zero: nothing

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_gps {
    char latitude_ref, longitude_ref; /* 'N' or 'S', 'E' or 'W'; both 0: no position */
    gpst_rational latitude[3], longitude[3]; /* degrees, minutes, seconds: amounts, what the file leaves out 0/1 */
    bool has_altitude, is_below_sea;
    gpst_rational altitude; /* metres */
    bool has_time;
    gpst_rational time[3]; /* hours, minutes, seconds; UTC */
    char date[11];         /* "YYYY:MM:DD", UTC; "" = none */
} gpst_gps;

#define GPST_GPANO_FAULT_BYTES 88

/* gpst_metadata -- what a picture file says beside its pixels; all-zero: nothing

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_metadata {
    uint32_t orientation; /* EXIF's, else XMP's, 1 to 8; 0 = none */
    char date[20];        /* "YYYY:MM:DD HH:MM:SS": DateTimeOriginal, else DateTimeDigitized, DateTime; "" = none */
    char date_offset[7];  /* of that one from UTC, "+02:00"; "" = none */
    char subsecond[10];   /* of that one, digits behind the point; "" = none */
    gpst_gps gps;
    char projection[32];  /* GPano's ProjectionType; "equirectangular" where GPano says none; "" = no GPano */
    bool has_sphere;      /* it is "equirectangular", of any case */
    /* As GPano says; 0 = it does not. Pixels of the whole sphere, and which of them the file has. */
    uint32_t full_width, full_height, crop_width, crop_height, crop_left, crop_top;
    double heading, pitch, roll; /* PoseHeadingDegrees and so on, within +-1e9; 0 = none */
    /* Why nothing of GPano is told above: a property and what is wrong with it; "" = nothing is. */
    char gpano_fault[GPST_GPANO_FAULT_BYTES];
    char note[128];       /* "not read: GPS position, XMP": what is there and cannot be read, GPano aside; "" */
} gpst_metadata;

/* gpst_metadata_read -- what a file says beside its pixels

   Parameters   data, bytes  (in)   the whole file, of any kind
                out          (out)  all-zero where it says nothing, and for other kinds of files
   Shapes       none
   Returns      GPST_OK | ARGUMENT (NULL)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation, but up to 4 MiB during the call where a PNG has EXIF or XMP packed
   Device       none
   Formula      EXIF: of JPEG the first APP1 that begins "Exif", of PNG the first of eXIf and ImageMagick's "Raw profile
                type exif" and "APP1" (tEXt, zTXt, iTXt), WebP's EXIF, a TIFF or BigTIFF file itself; its orientation is
                IFD0's. GPano and tiff:Orientation: as attributes or elements of the XMP of JPEG's APP1 (not extended),
                PNG's texts "XML:com.adobe.xmp" and "Raw profile type xmp", WebP and TIFF, in UTF-8; the first of each
                property counts, of all packets together. Of a file 4 MiB of XMP are read, packets beyond them are
                noted, as those in UTF-16 are; the time is linear. Numbers may have blanks around them and an exponent.
                Rationals of GPS may be signed (a sign says south, west, below), fewer than three, and 0/0 behind the
                first
   Source       core/pictures/metadata.c          Tests  tests/test_metadata.c          Since 0.1
*/
GPST_API gpst_result gpst_metadata_read(const void* data, size_t bytes, gpst_metadata* out);

/* gpst_metadata_read_icc -- the ICC profile of a file

   Parameters   data, bytes  (in)       the whole file
                out          (out)      the profile; NULL: only its size is told
                icc_bytes    (in, out)  of the room; of the profile, 0 = none
   Shapes       out: uint8_t[*icc_bytes]
   Returns      GPST_OK | ARGUMENT (NULL, or there is less room)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Formula      JPEG: its APP2 segments, by their numbers if all are there, else as they come if together they are as
                long as the profile says; TIFF: tag 34675; WebP: ICCP. PNG's is compressed: none here
   Source       core/pictures/metadata.c          Tests  tests/test_metadata_files.c          Since 0.1
*/
GPST_API gpst_result gpst_metadata_read_icc(const void* data, size_t bytes, void* out, size_t* icc_bytes);

/* gpst_exif_desc -- what gpst_exif_make says of a picture; all-zero plus width and height is valid

   Ownership    read during the call
   Since        0.1
*/
typedef struct gpst_exif_desc {
    const gpst_metadata* from; /* date and GPS are taken from it; NULL = none */
    uint32_t width, height;    /* required */
    double focal_px;           /* focal length in pixels; 0 = it says none */
    double focal_y_px;         /* of the rows, where pixels are not square; 0 = focal_px */
} gpst_exif_desc;

#define GPST_EXIF_MOST_BYTES 640 /* of what gpst_exif_make makes */

/* gpst_exif_make -- a small EXIF block for a picture that was made of another

   It says Orientation 1, date, GPS, width, height and focal length, and nothing that would make another program take
   the picture for what it was made of: no camera, no serial numbers, no panorama, no thumbnail.

   Parameters   desc   (in)
                out    (out)      the block: a TIFF structure, as PNG's eXIf and WebP's EXIF have it; NULL: only its
                                  size is told
                bytes  (in, out)  of the room; of the block, at most GPST_EXIF_MOST_BYTES
   Shapes       out: uint8_t[*bytes]
   Returns      GPST_OK | ARGUMENT (a member breaks its rule, or there is less room)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Formula      FocalLength is 10 mm, and FocalPlaneXResolution is focal_px a centimetre: programs that multiply them
                get focal_px, to a thousandth (COLMAP 3.11 to 4.2). FocalLengthIn35mmFilm, which is a whole number of
                millimetres, could not say it. Of pictures higher than wide width and height are left out then: COLMAP
                up to 3.12.5 would take another focal length
   Source       core/pictures/exif.c          Tests  tests/test_metadata_make.c          Since 0.1
*/
GPST_API gpst_result gpst_exif_make(const gpst_exif_desc* desc, void* out, size_t* bytes);

/* gpst_metadata_segments -- EXIF and ICC as segments of a JPEG, for behind its first marker

   Parameters   exif, exif_bytes  (in)       of gpst_exif_make; exif_bytes 0 = none, at most 65527
                icc, icc_bytes    (in)       icc_bytes 0 = none, at most 255 x 65519; icc may lie in the last icc_bytes
                                             of what is written
                out               (out)      the segments; NULL: only their size is told, exif and icc are not read
                bytes             (in, out)  of the room; of the segments
   Shapes       out: uint8_t[*bytes]
   Returns      GPST_OK | ARGUMENT (NULL, too large, or there is less room)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/pictures/metadata.c          Tests  tests/test_metadata_make.c          Since 0.1
*/
GPST_API gpst_result gpst_metadata_segments(const void* exif, size_t exif_bytes, const void* icc, size_t icc_bytes,
                                            void* out, size_t* bytes);

#ifdef __cplusplus
}
#endif
#endif
