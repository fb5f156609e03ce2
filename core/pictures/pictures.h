/* core/pictures/pictures.h -- picture files whose pixels lie in them as they are: PGM, PPM and PAM with values up to
   255, and NumPy's .npy. What a file is, where its pixels begin, and files made of pictures. JPEG is recognised, and
   read and written by jpeg.h. Knows nothing of files on a disk. Owns nothing. */
#ifndef GPSTI_PICTURES_H
#define GPSTI_PICTURES_H

#include "../../kernels/image/image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_file_kind {
    GPST_FILE_UNKNOWN = 0,
    GPST_FILE_PNM = 1, /* P5, P6, and P7 (PAM) of 1, 3 or 4 channels; U8; of U16 only written */
    GPST_FILE_NPY = 2, /* (H,W), (H,W,1), (H,W,3) and (H,W,4) of u1, u2, f2 and f4 are read; any picture is written */
    GPST_FILE_JPEG = 3 /* decoded by gpst_jpeg_decode, written by gpst_jpeg_encode */
} gpst_file_kind;

#define GPST_MAX_SIDE 32767 /* of a picture in a file */

/* gpst_picture_read_header -- what a file is, by its first bytes, and where its pixels are

   Parameters   data, bytes  (in)   the whole file
                kind         (out)  what it is, also where it cannot be read; UNKNOWN: none of them
                shape        (out)  width, height, format, dtype, HWC, pitch without gaps, data NULL; all-zero on
                                    failure
                offset_bytes (out)  of the first pixel; 0 on failure, and of JPEG, in whose files no pixels lie as they
                                    are: its shape, GRAY or RGB, is what gpst_jpeg_decode gives
   Shapes       pixels: height rows of the shape's row bytes, without gaps
   Returns      GPST_OK: the file has all of them (JPEG: its header is sound) | GPST_ERROR_FORMAT |
                GPST_ERROR_TRUNCATED | GPST_ERROR_UNSUPPORTED (of that kind, but not one that is read)
   Ownership    nothing is kept
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/pictures/pictures.c          Tests  tests/test_pictures.c          Since 0.1
*/
GPST_API gpst_result gpst_picture_read_header(const void* data, size_t bytes, gpst_file_kind* kind, gpst_image* shape,
                                              size_t* offset_bytes);

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
