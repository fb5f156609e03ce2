/* tools/gpustage/codec.h -- picture files in memory to pixels and back: JPEG (libjpeg-turbo), PNG
   (libspng), and our own small PNM, PAM and .npy. Knows nothing of files on disk or of pipelines. */
#ifndef GPST_TOOL_CODEC_H
#define GPST_TOOL_CODEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../gpustage.h"

typedef enum codec_kind {
    CODEC_UNKNOWN = 0,
    CODEC_JPEG = 1,
    CODEC_PNG = 2,
    CODEC_PNM = 3, /* P5, P6, P7 (PAM) */
    CODEC_NPY = 4,
    CODEC_RAW = 5
} codec_kind;

typedef struct codec_raw { /* --raw WxH:FORMAT */
    uint32_t width, height;
    gpst_format format; /* INVALID: files have headers */
} codec_raw;

#define CODEC_REASON_BYTES 256
#define CODEC_MAX_SIDE 32767u

/* Per worker: decoder and encoder handles, made once. */
typedef struct codec codec;
codec* codec_create(void); /* NULL when out of memory */
void codec_destroy(codec* self);

/* What the bytes are (by magic, never by name; raw wins when set) and the shape of the picture: width,
   height, format, dtype (U16 of PNG with 16 bits; U8, U16, F16 or F32 of .npy; else U8), layout HWC, pitch 0,
   data NULL. Sizes 1..32767. FORMAT | TRUNCATED | UNSUPPORTED, reason filled. */
gpst_result codec_read_header(codec* self, const void* data, size_t bytes, const codec_raw* raw,
                              codec_kind* kind, gpst_image* shape, char* reason);
/* Decodes into image (shape as read by the header, data and pitch set; of RAW, the shape is the image's
   own). A damaged or truncated file is an error, never a grey rest. */
gpst_result codec_decode(codec* self, const void* data, size_t bytes, codec_kind kind,
                         const gpst_image* image, char* reason);

typedef struct codec_options {
    int quality; /* JPEG 1..100 */
    int chroma;  /* JPEG 444, 422, 420 */
} codec_options;

/* Most bytes that encode can need for this image; 0 when this kind cannot hold it. */
size_t codec_encode_bound(codec_kind kind, const gpst_image* image, const codec_options* options);
/* *bytes in: room at out, at least the bound; out: used. U8 HWC for JPEG (alpha is dropped), PNG, PNM; any
   dtype and layout for NPY and RAW. */
gpst_result codec_encode(codec* self, codec_kind kind, const gpst_image* image, const codec_options* options,
                         void* out, size_t* bytes, char* reason);

/* The header of an .npy file of this type and shape (1..4 dimensions, C order) into out, which has room for
   CODEC_NPY_HEADER_BYTES; returns the bytes used, a multiple of 64. */
#define CODEC_NPY_HEADER_BYTES 192
size_t codec_npy_header(gpst_dtype dtype, const uint64_t* shape, uint32_t n_dims, void* out);

const char* codec_extension(codec_kind kind); /* "jpg", "png", "ppm", "npy", "raw" */
bool codec_available(codec_kind kind);        /* compiled in */

#endif
