/* core/pictures/pictures_internal.h -- what the files of this folder share. */
#ifndef GPSTI_PICTURES_INTERNAL_H
#define GPSTI_PICTURES_INTERNAL_H

#include "../../kernels/warp/warp_internal.h"
#include "pictures.h"

GPSTI_INTERN bool gpsti_pnm_is(const uint8_t* data, size_t bytes);
GPSTI_INTERN bool gpsti_npy_is(const uint8_t* data, size_t bytes);

typedef enum gpsti_values {
    GPSTI_VALUES_AS_THEY_ARE = 0,
    GPSTI_VALUES_BOOL = 1,   /* 0 or 255 of each byte */
    GPSTI_VALUES_SCALED = 2, /* max_value of the file is all that the type holds */
    GPSTI_VALUES_DOUBLE = 3  /* F32 of each 8 bytes */
} gpsti_values;

/* How the pixels of a picture lie in a file. */
typedef struct gpsti_plain {
    size_t offset;       /* of the first */
    uint32_t n_channels; /* 2: gray and alpha, in memory RGBA; else as many as the picture has */
    uint32_t bytes_each; /* of a value in the file */
    gpsti_values values;
    uint32_t max_value;
    bool big;            /* the first byte of a value is the highest */
    bool columns;        /* the first index runs fastest: y, then x, then channels */
} gpsti_plain;

/* Fill plain, and width, height, format and, other than U8, dtype of a shape that is all-zero but for HWC. */
GPSTI_INTERN gpst_result gpsti_pnm_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                               gpsti_plain* plain);
GPSTI_INTERN gpst_result gpsti_npy_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                               gpsti_plain* plain);
/* The file, of so many bytes, has all pixels of the shape. */
GPSTI_INTERN gpst_result gpsti_plain_check(const gpsti_plain* self, const char* name, const gpst_image* shape,
                                           size_t bytes, bool may_be_longer);
/* The pixels lie there as in memory. */
GPSTI_INTERN bool gpsti_plain_is_native(const gpsti_plain* self, const gpst_image* shape);
GPSTI_INTERN bool gpsti_plain_big_machine(void);
/* Into an image of the shape, pitch resolved. */
GPSTI_INTERN void gpsti_plain_decode(const gpsti_plain* self, const uint8_t* data, const gpst_image* image);
#define GPSTI_PNM_HEADER_BYTES 128
#define GPSTI_NPY_HEADER_BYTES 192 /* of four dimensions of 20 digits */
/* The header of an .npy file of any shape of 1 to 4 dimensions, in C order; gives the bytes used, a multiple of 64. */
GPSTI_INTERN size_t gpsti_npy_header(gpst_dtype dtype, const uint64_t* shape, uint32_t n_dims,
                                     char out[GPSTI_NPY_HEADER_BYTES]);
/* Of an image that the format can hold; give the bytes used. */
GPSTI_INTERN size_t gpsti_pnm_write_header(const gpst_image* image, char out[GPSTI_PNM_HEADER_BYTES]);
GPSTI_INTERN size_t gpsti_npy_write_header(const gpst_image* image, char out[GPSTI_NPY_HEADER_BYTES]);
/* The sides are 1..GPST_MAX_SIDE. */
GPSTI_INTERN gpst_result gpsti_picture_check_sides(const char* name, uint64_t width, uint64_t height);
GPSTI_INTERN size_t gpsti_picture_rows(const gpst_image* image); /* of all planes together */
GPSTI_INTERN size_t gpsti_picture_bytes(const gpst_image* image); /* its pixels without gaps */

#endif
