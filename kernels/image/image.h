/* kernels/image/image.h -- what a picture in memory is. Owns nothing: an image is a
   description of memory that belongs to somebody else. */
#ifndef GPSTI_IMAGE_H
#define GPSTI_IMAGE_H

#include "../../core/base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_format { /* channels and their order */
                           GPST_FORMAT_INVALID = 0,
                           GPST_FORMAT_GRAY = 1,
                           GPST_FORMAT_RGB = 2,
                           GPST_FORMAT_BGR = 3,
                           GPST_FORMAT_RGBA = 4,
                           GPST_FORMAT_BGRA = 5,
                           GPST_FORMAT_NV12 = 6, /* Y, then CbCr interleaved at half size; see gpst_image */
                           GPST_FORMAT_I420 = 7, /* Y, then Cb, then Cr at half size */
                           GPST_FORMAT_TENSOR = 8, /* n_channels of any meaning; dtype and layout have no default */
                           /* The planes of a JPEG file, Y, then Cb, then Cr; see gpst_image. */
                           GPST_FORMAT_JPEG_444 = 9,  /* all of one size */
                           GPST_FORMAT_JPEG_422 = 10, /* Cb and Cr of half the width */
                           GPST_FORMAT_JPEG_420 = 11, /* of half the width and height */
                           GPST_FORMAT_JPEG_440 = 12  /* of half the height */
} gpst_format;

typedef enum gpst_dtype {
    GPST_DTYPE_DEFAULT = 0, /* U8 */
    GPST_DTYPE_U8 = 1,
    GPST_DTYPE_F16 = 2,
    GPST_DTYPE_F32 = 3,
    GPST_DTYPE_I8 = 4,
    GPST_DTYPE_U16 = 5
} gpst_dtype;

typedef enum gpst_layout {
    GPST_LAYOUT_DEFAULT = 0, /* HWC */
    GPST_LAYOUT_HWC = 1,     /* channels interleaved */
    GPST_LAYOUT_CHW = 2      /* one plane after the other, height * pitch_bytes apart */
} gpst_layout;

/* gpst_image -- a picture in memory

   data is the first byte of the first (top) row, so with a negative pitch it lies above the others in memory;
   with CHW the planes go on in the direction of the rows. u8 and i8 at any address and pitch; u16, f16
   and f32 naturally aligned. The last row ends at its own bytes: nothing past it is read or written.

   NV12 and I420 are U8, HWC and never bottom-up; data and pitch_bytes are those of Y. The chroma, half as wide
   and high, rounded up, follows height * pitch_bytes behind: of NV12 one plane of pairs with pitch_bytes
   rounded up to even, of I420 two planes with half of that each. So without gaps it is what video tools write
   as raw frames, odd sizes too.

   The four of JPEG are U8, HWC and never bottom-up, too. A sample of chroma is for h x v pixels: 1 x 1 of 444, 2 x 1
   of 422, 2 x 2 of 420, 1 x 2 of 440. Planes are padded to whole samples: W' is width rounded up to a multiple of h, H'
   height to one of v. Y has H' rows of pitch_bytes, which is a multiple of h and at least W' (0 = W'). Cb follows with
   H' / v rows of pitch_bytes / h, then Cr likewise. What decoders leave in the padding means nothing: only width x
   height samples of Y and W' / h x H' / v of Cb and Cr do.

   Ownership    the struct is the caller's, and so is the memory it describes
   Since 0.1
*/
typedef struct gpst_image {
    void* data;
    int64_t pitch_bytes; /* from one row to the next; 0 = rows without gaps */
    uint32_t width, height;
    gpst_format format;
    gpst_dtype dtype;
    gpst_layout layout;
    uint32_t n_channels; /* TENSOR: required, at least 1; else 0, or as many as the format has */
} gpst_image;

/* gpst_format_channels, gpst_dtype_bytes -- how many channels a format has, how many bytes a value of a dtype

   Parameters   format, dtype  (in)  any value
   Shapes       none
   Returns      the number, 3 for NV12, I420 and those of JPEG; 0 for TENSOR, whose images say it, and when the value is
                none of the enum's (or GPST_FORMAT_INVALID)
   Ownership    none
   Threads      any
   Blocking     never
   Device       none
   Source       kernels/image/image.c      Tests  tests/test_image.c         Since 0.1
*/
GPST_API uint32_t gpst_format_channels(gpst_format format);
GPST_API uint32_t gpst_dtype_bytes(gpst_dtype dtype);

/* gpst_image_row_bytes -- bytes of one row (of one plane, with CHW; of Y, with NV12 and I420; of Y and its padding,
   with those of JPEG) without its gap

   Parameters   image  (in)  width, format, n_channels, dtype and layout are read; NULL is allowed
   Shapes       none
   Returns      the bytes; 0 when width, format or dtype is out of range, or a row does not fit in memory
   Ownership    none
   Threads      any
   Blocking     never
   Device       none
   Source       kernels/image/image.c      Tests  tests/test_image.c         Since 0.1
*/
GPST_API size_t gpst_image_row_bytes(const gpst_image* image);

/* gpst_image_bytes -- bytes from the lowest address of an image to one past the highest

   Parameters   image  (in)   everything but data is read; pitch_bytes may be 0 or negative
                out    (out)  the bytes; untouched on failure
   Shapes       (rows - 1) * |pitch| + row_bytes, where rows = height, times the channels with CHW; with NV12,
                I420 and those of JPEG up to the end of the last chroma row
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (a member breaks its rule) | GPST_ERROR_OVERFLOW (does not fit
                in memory)
   Ownership    none
   Threads      any
   Blocking     never
   Device       none
   Source       kernels/image/image.c      Tests  tests/test_image.c         Since 0.1
*/
GPST_API gpst_result gpst_image_bytes(const gpst_image* image, size_t* out);

/* gpst_image_orient -- a picture as EXIF's orientation says that it is to be seen

   Parameters   from         (in)  channels interleaved, any dtype and pitch
                orientation  (in)  1: as stored. 2: mirrored left to right; 3: turned by 180 degrees; 4: mirrored top to
                                   bottom; 5: rows become columns; 6: turned right by 90 degrees; 7: as 5, turned by 180
                                   degrees; 8: turned left by 90 degrees
                to           (in)  of from's format, dtype and layout, any pitch; must not overlap it
   Shapes       to: from's width and height, with 5 to 8 its height and width
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (an image or the orientation breaks its rule; nothing was written) |
                GPST_ERROR_OVERFLOW
   Ownership    none is taken
   Threads      any
   Blocking     copies; no allocation
   Device       none: memory of the host
   Source       kernels/image/orient.c     Tests  tests/test_orient.c        Since 0.1
*/
GPST_API gpst_result gpst_image_orient(const gpst_image* from, uint32_t orientation, const gpst_image* to);

#ifdef __cplusplus
}
#endif
#endif
