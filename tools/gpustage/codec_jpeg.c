/* tools/gpustage/codec_jpeg.c -- JPEG by the library, which finds libturbojpeg when it runs. */
#include "codec_internal.h"

#include <string.h>

bool codec_jpeg_is(const uint8_t* data, size_t bytes) {
    return bytes >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

static gpst_result codec_jpeg_result(gpst_result result, char* reason) {
    return GPST_FAILED(result) ? codec_fail(reason, result, "%s", gpst_last_reason()) : result;
}

/* Made when a picture needs it: who has none needs no library. */
static gpst_result codec_jpeg_prepare(codec* self, char* reason) {
    return self->jpeg ? GPST_OK : codec_jpeg_result(gpst_jpeg_create(NULL, &self->jpeg), reason);
}

bool codec_jpeg_available(void) {
    gpst_jpeg* jpeg = NULL;
    const gpst_result result = gpst_jpeg_create(NULL, &jpeg);
    gpst_jpeg_destroy(jpeg);
    return !GPST_FAILED(result);
}

bool codec_jpeg_can(const gpst_jpeg_encode_desc* desc, char* reason) {
    uint8_t pixel[3] = {0, 0, 0}, room[8192];
    gpst_image image = GPST_ZERO;
    gpst_jpeg* jpeg = NULL;
    size_t bytes = sizeof room;
    image.data = pixel;
    image.width = image.height = 1;
    image.format = GPST_FORMAT_RGB;
    gpst_result result = gpst_jpeg_create(NULL, &jpeg);
    if (!GPST_FAILED(result))
        result = gpst_jpeg_encode(jpeg, &image, desc, room, &bytes);
    gpst_jpeg_destroy(jpeg);
    const char* const needs = GPST_FAILED(result) ? strstr(gpst_last_reason(), "needs ") : NULL;
    if (GPST_FAILED(result))
        codec_fail(reason, result, "%s", needs ? needs : gpst_last_reason());
    return !GPST_FAILED(result);
}

static gpst_result codec_jpeg_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                          codec_layout* layout, char* reason) {
    gpst_jpeg_info info;
    const gpst_result result = gpst_jpeg_read_header(data, bytes, &info);
    if (GPST_FAILED(result))
        return codec_jpeg_result(result, reason);
    layout->decoder_bytes = info.decoder_bytes;
    layout->n_scans = info.n_scans;
    shape->width = info.width;
    shape->height = info.height;
    shape->format = info.format;
    return GPST_OK;
}

static gpst_result codec_jpeg_decode(codec* self, const uint8_t* data, size_t bytes, const gpst_image* image,
                                     char* reason) {
    const gpst_result result = codec_jpeg_prepare(self, reason);
    if (GPST_FAILED(result))
        return result;
    return codec_jpeg_result(gpst_jpeg_decode(self->jpeg, data, bytes, NULL, image, NULL), reason);
}

static bool codec_jpeg_options(const codec_options* options, gpst_jpeg_encode_desc* out) {
    memset(out, 0, sizeof *out);
    out->quality = options->quality > 0 ? (uint32_t)options->quality : 101; /* 0 is not the command's default */
    out->chroma = options->chroma == 444   ? GPST_FORMAT_JPEG_444
                  : options->chroma == 422 ? GPST_FORMAT_JPEG_422
                                           : GPST_FORMAT_JPEG_420;
    return options->chroma == 444 || options->chroma == 422 || options->chroma == 420;
}

static size_t codec_jpeg_bound(const gpst_image* image, const codec_options* options) {
    gpst_jpeg_encode_desc desc;
    size_t bytes = 0;
    if (!codec_jpeg_options(options, &desc) || GPST_FAILED(gpst_jpeg_bound(image, &desc, &bytes)))
        return 0;
    return bytes;
}

static gpst_result codec_jpeg_encode(codec* self, const gpst_image* image, const codec_options* options,
                                     uint8_t* out, size_t* bytes, char* reason) {
    gpst_jpeg_encode_desc desc;
    const gpst_result result = codec_jpeg_prepare(self, reason);
    if (GPST_FAILED(result))
        return result;
    (void)codec_jpeg_options(options, &desc);
    return codec_jpeg_result(gpst_jpeg_encode(self->jpeg, image, &desc, out, bytes), reason);
}

const codec_format codec_jpeg = {
    CODEC_JPEG,       "JPEG",           "jpg", "u8", NULL, true, codec_jpeg_read_header, codec_jpeg_decode,
    codec_jpeg_bound, codec_jpeg_encode, NULL};
