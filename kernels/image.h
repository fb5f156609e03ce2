/* kernels/image.h -- what a picture in memory is. Owns nothing: an image is a
   description of memory that belongs to somebody else. */
#ifndef GPSTI_IMAGE_H
#define GPSTI_IMAGE_H

#include "../core/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_format { /* channels and their order */
    GPST_FORMAT_INVALID = 0,
    GPST_FORMAT_GRAY = 1,
    GPST_FORMAT_RGB = 2,
    GPST_FORMAT_BGR = 3,
    GPST_FORMAT_RGBA = 4
} gpst_format;

typedef enum gpst_dtype {
    GPST_DTYPE_DEFAULT = 0, /* U8 */
    GPST_DTYPE_U8 = 1,
    GPST_DTYPE_F16 = 2,
    GPST_DTYPE_F32 = 3
} gpst_dtype;

typedef enum gpst_layout {
    GPST_LAYOUT_DEFAULT = 0, /* HWC */
    GPST_LAYOUT_HWC = 1,     /* channels interleaved */
    GPST_LAYOUT_CHW = 2      /* one plane after the other, height * pitch_bytes apart */
} gpst_layout;

/* data is the first byte of the first (top) row, so with a negative pitch it lies above the others in memory.
   u8 at any address and pitch; f16 and f32 naturally aligned. The last row ends at its own bytes: nothing past it is
   read or written. */
typedef struct gpst_image {
    void* data;
    int64_t pitch_bytes; /* from one row to the next; 0 = rows without gaps */
    uint32_t width, height;
    gpst_format format;
    gpst_dtype dtype;
    gpst_layout layout;
} gpst_image;

GPST_API uint32_t gpst_format_channels(gpst_format format); /* 0 when invalid */
GPST_API uint32_t gpst_dtype_bytes(gpst_dtype dtype);
/* Bytes of one row of one plane; 0 when width or format is out of range. */
GPST_API size_t gpst_image_row_bytes(const gpst_image* image);
/* Bytes from the lowest address to one past the highest (pitch 0 resolved); OVERFLOW, ARGUMENT. */
GPST_API gpst_result gpst_image_bytes(const gpst_image* image, size_t* out);

#ifdef __cplusplus
}
#endif
#endif
