/* core/pictures/pictures.h -- picture files whose pixels lie in them one after the other: PGM, PPM and PAM, and NumPy's
   .npy. What a file is, where its pixels are, and files made of pictures. JPEG is recognised, and read and written by
   jpeg.h. Knows nothing of files on a disk. Owns nothing. */
#ifndef GPSTI_PICTURES_H
#define GPSTI_PICTURES_H

#include "../../kernels/image/image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_file_kind {
    GPST_FILE_UNKNOWN = 0,
    GPST_FILE_PNM = 1, /* P5, P6, and P7 (PAM) of 1 to 4 channels; values up to 255 are U8, up to 65535 U16 */
    GPST_FILE_NPY = 2, /* (H,W), (H,W,1), (H,W,3) and (H,W,4) of b1, u1, u2, f2, f4 and f8 are read, in either byte
                          order, C and Fortran order; any picture is written */
    GPST_FILE_JPEG = 3 /* decoded by gpst_jpeg_decode, written by gpst_jpeg_encode */
} gpst_file_kind;

#define GPST_MAX_SIDE 32767 /* of a picture in a file */

/* gpst_picture_read_header -- what a file is, by its first bytes, and where its pixels are

   Parameters   data, bytes  (in)   the whole file
                kind         (out)  what it is, also where it cannot be read; UNKNOWN: none of them
                shape        (out)  width, height, format, dtype, HWC, pitch without gaps, data NULL; all-zero on
                                    failure
                offset_bytes (out)  of the first pixel. 0: they do not lie there as they are in memory, and
                                    gpst_picture_decode makes them; of JPEG gpst_jpeg_decode, with the shape as it is
                                    said here, GRAY or RGB. 0 on failure, too
   Shapes       pixels at an offset: height rows of the shape's row bytes, without gaps
   Returns      GPST_OK: the file has all of them (JPEG: its header is sound) | GPST_ERROR_FORMAT |
                GPST_ERROR_TRUNCATED | GPST_ERROR_UNSUPPORTED (of that kind, but not one that is read; or of another
                kind, which the reason names)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/pictures/pictures.c          Tests  tests/test_pictures.c          Since 0.1
*/
GPST_API gpst_result gpst_picture_read_header(const void* data, size_t bytes, gpst_file_kind* kind, gpst_image* shape,
                                              size_t* offset_bytes);

/* gpst_picture_decode -- the pixels of a PNM, PAM or .npy file

   Parameters   data, bytes  (in)  the whole file
                image        (in)  data, any pitch, else the shape that gpst_picture_read_header says
   Shapes       as the image says
   Returns      GPST_OK | ARGUMENT (the image breaks a rule or has another shape, or the file is a JPEG) | as
                gpst_picture_read_header
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Formula      PNM: where the largest value m is not 255 or 65535, (value * full + m / 2) / m in whole numbers, full =
                255 or 65535, and what is above m is full. Gray with alpha is RGBA, gray three times. b1: False 0,
                True 255. f8: the nearest F32. Other values as they are
   Source       core/pictures/pictures.c          Tests  tests/test_pictures.c          Since 0.1
*/
GPST_API gpst_result gpst_picture_decode(const void* data, size_t bytes, const gpst_image* image);

/* gpst_picture_name -- what a file is called, by its first bytes, whether it is read or not

   Parameters   data, bytes  (in)  the file, or its beginning: 64 KiB are enough for all that is told apart here
   Shapes       none
   Returns      a constant: "JPEG", "PNM", "NPY", "PNG", "TIFF", "WebP", "HEIC", "AVIF", "GIF", "BMP", "JPEG XL",
                "JPEG 2000", "camera raw", "camera raw (DNG)", "TIFF (a thumbnail first)", "PSD", "EXR", "HDR", "PDF",
                "MP4 video", "MOV video", "AVI video", "Matroska video"; "" = none of these
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/pictures/names.c          Tests  tests/test_pictures.c          Since 0.1
*/
GPST_API const char* gpst_picture_name(const void* data, size_t bytes);

/* gpst_picture_encode -- a file of a picture

   Parameters   kind   (in)      PNM: U8 and U16, HWC, with colours; NPY: anything but NV12, I420 and JPEG's
                                 planes; JPEG is gpst_jpeg_encode's
                image  (in)      any pitch; data may be NULL where out is
                out    (out)     room for the file; NULL: only *bytes is told
                bytes  (in, out) of the room; of the file
   Shapes       out: uint8_t[*bytes]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (the image breaks a rule, or there is less room) |
                GPST_ERROR_UNSUPPORTED (the kind cannot hold it)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/pictures/pictures.c          Tests  tests/test_pictures.c          Since 0.1
*/
GPST_API gpst_result gpst_picture_encode(gpst_file_kind kind, const gpst_image* image, void* out, size_t* bytes);

#ifdef __cplusplus
}
#endif
#endif
