/* tools/gpustage/codec_tiff_internal.h -- a TIFF in memory as libtiff sees it: what reader and writer share. */
#ifndef GPST_TOOL_CODEC_TIFF_INTERNAL_H
#define GPST_TOOL_CODEC_TIFF_INTERNAL_H

#include "codec_internal.h"

#include <tiffio.h>

typedef struct codec_tiff_stream {
    const uint8_t* data;
    uint8_t* out; /* NULL: data are only read; else the same memory */
    size_t bytes;
    size_t room; /* at out */
    size_t at;
    bool failed;  /* reason says what the library said first; */
    char* reason; /* its own output goes nowhere else */
} codec_tiff_stream;

/* NULL: reason is filled. mode as of TIFFClientOpen. */
TIFF* codec_tiff_open(codec_tiff_stream* stream, const char* mode);
/* FORMAT, with what the library said, or else the sentence. */
gpst_result codec_tiff_fail(const codec_tiff_stream* stream, const char* sentence);

size_t codec_tiff_bound(const gpst_image* image, const codec_options* options);
gpst_result codec_tiff_encode(codec* self, const gpst_image* image, const codec_options* options, uint8_t* out,
                              size_t* bytes, char* reason);

#endif
