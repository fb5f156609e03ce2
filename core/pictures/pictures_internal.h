/* core/pictures/pictures_internal.h -- what the files of this folder share. */
#ifndef GPSTI_PICTURES_INTERNAL_H
#define GPSTI_PICTURES_INTERNAL_H

#include "../../kernels/warp/warp_internal.h"
#include "pictures.h"

GPSTI_INTERN bool gpsti_pnm_is(const uint8_t* data, size_t bytes);
GPSTI_INTERN bool gpsti_npy_is(const uint8_t* data, size_t bytes);
/* Fill width, height, format and, other than U8, dtype of a shape that is all-zero but for HWC. */
GPSTI_INTERN gpst_result gpsti_pnm_read_header(const uint8_t* data, size_t bytes, gpst_image* shape, size_t* offset);
GPSTI_INTERN gpst_result gpsti_npy_read_header(const uint8_t* data, size_t bytes, gpst_image* shape, size_t* offset);
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
