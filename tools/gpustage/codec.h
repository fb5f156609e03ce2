/* tools/gpustage/codec.h -- picture files in memory to pixels and back: PNG (libspng), TIFF (libtiff), WebP (libwebp);
   JPEG, PNM, PAM and .npy by the library. Knows nothing of files on disk or of pipelines. */
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
    CODEC_RAW = 5,
    CODEC_TIFF = 6,
    CODEC_WEBP = 7
} codec_kind;

typedef struct codec_raw { /* --raw WxH:FORMAT */
    uint32_t width, height;
    gpst_format format; /* INVALID: files have headers */
} codec_raw;

#define CODEC_REASON_BYTES 256
#define CODEC_MAX_SIDE 32767u

/* What one file may ask for: a few bytes can stand for a picture of gigabytes. 0 = the default. */
typedef struct codec_limits {
    uint64_t pixels; /* default CODEC_DEFAULT_PIXELS. Of pictures sent in scans, CODEC_SCANS times as many in all scans
                        together */
    uint64_t bytes;  /* file, picture and what the decoder needs beside them; default: a quarter of the memory that this
                        process may use, CODEC_SMALL_BYTES at least */
} codec_limits;

#define CODEC_DEFAULT_PIXELS ((uint64_t)1 << 29) /* 32767x16384 and a little more */
#define CODEC_SMALL_BYTES ((uint64_t)256 << 20)
#define CODEC_SCANS 16 /* the usual progression has 10 */

/* What is in force for limits->bytes. Looks at the machine where that is 0. */
uint64_t codec_most_bytes(const codec_limits* limits);
bool codec_fits(const codec_limits* limits, uint64_t bytes); /* looks at the machine for much only */
/* "1000 bytes", "402 MB", "6.4 GB"; up or down, so that what is more than a limit never reads the same as it. */
#define CODEC_AMOUNT_BYTES 32
void codec_format_amount(uint64_t bytes, bool up, char out[CODEC_AMOUNT_BYTES]);

/* Per worker: decoder and encoder handles, made once. */
typedef struct codec codec;
codec* codec_create(void); /* NULL when out of memory */
void codec_destroy(codec* self);
void codec_set_limits(codec* self, const codec_limits* limits); /* until then: the defaults */

/* What the bytes are (by magic, never by name; raw wins when set) and the shape of the picture: width,
   height, format, dtype (U16 of PNG with 16 bits; U8, U16, F16 or F32 of TIFF and .npy; else U8), layout HWC, pitch 0,
   data NULL. Sizes 1..32767. FORMAT | TRUNCATED | UNSUPPORTED | BUDGET (the limits), reason filled. */
gpst_result codec_read_header(codec* self, const void* data, size_t bytes, const codec_raw* raw,
                              codec_kind* kind, gpst_image* shape, char* reason);
/* Is a picture of this shape, made of the file whose header was read last, within the limits? beside_bytes: what is held
   beside file, decoder and that picture. BUDGET. */
gpst_result codec_check_made(const codec* self, const gpst_image* shape, uint64_t beside_bytes, char* reason);
/* Decodes into image (shape as read by the header, data and pitch set; of RAW, the shape is the image's
   own). Missing data are an error, never a grey rest, and so is damage that is noticed. What decoders that hold a whole
   picture have in memory together, in all threads, is the limit of bytes at most: the next waits until there is
   room. */
gpst_result codec_decode(codec* self, const void* data, size_t bytes, codec_kind kind,
                         const gpst_image* image, char* reason);

/* What a reader should be told of the file whose header was read last: "one of several pictures in the file: the others are not read"; else "". */
const char* codec_note(const codec* self);

/* The ICC profile of a file of any kind: *profile is to be freed; NULL: it has none, or none that can be read. False: out
   of memory. */
bool codec_read_icc(const void* data, size_t bytes, void** profile, size_t* profile_bytes);

typedef struct codec_options {
    int quality;      /* JPEG, WebP 1..100 */
    int chroma;       /* JPEG 444, 422, 420 */
    const void* exif; /* PNG, TIFF, WebP: an EXIF block, from its "II" or "MM" on; NULL: none */
    size_t exif_bytes;
    const void* icc; /* the same three: a colour profile, left out where its colours (gray, RGB) are not the image's */
    size_t icc_bytes;
} codec_options;

/* Most bytes that encode can need for this image; 0 when this kind cannot hold it. */
size_t codec_encode_bound(codec_kind kind, const gpst_image* image, const codec_options* options);
/* *bytes in: room at out, at least the bound; out: used. HWC: U8 for JPEG (alpha is dropped) and WebP (lossy), U8 and
   U16 for PNG and PNM, these and floats for TIFF; any dtype and layout for NPY and RAW. */
gpst_result codec_encode(codec* self, codec_kind kind, const gpst_image* image, const codec_options* options,
                         void* out, size_t* bytes, char* reason);

const char* codec_library(codec_kind kind); /* that reads and writes it here; "": none is needed */
const char* codec_extension(codec_kind kind); /* "jpg", "png", "ppm", "npy", "raw", "tif", "webp" */
bool codec_available(codec_kind kind);        /* compiled in, or found */
/* Can the libturbojpeg that was found do this? Else reason says what it needs. */
bool codec_jpeg_can(const gpst_jpeg_encode_desc* desc, char* reason);
bool codec_jpeg_is(const uint8_t* data, size_t bytes); /* by its first three bytes */

#endif
