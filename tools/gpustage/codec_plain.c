/* tools/gpustage/codec_plain.c -- the files whose pixels lie in them one after the other, by the library's own
   functions: PGM, PPM and PAM, and NumPy's .npy. */
#include "codec_internal.h"

static gpst_result codec_plain_read_header(const uint8_t* data, size_t bytes, gpst_image* shape, codec_layout* layout,
                                           char* reason) {
    gpst_file_kind kind;
    size_t offset;
    const gpst_result result = gpst_picture_read_header(data, bytes, &kind, shape, &offset);
    (void)layout;
    shape->pitch_bytes = 0;
    return GPST_FAILED(result) ? codec_fail(reason, result, "%s", gpst_last_reason()) : GPST_OK;
}

static gpst_result codec_plain_decode(codec* self, const uint8_t* data, size_t bytes, const gpst_image* image,
                                      char* reason) {
    const gpst_result result = gpst_picture_decode(data, bytes, image);
    (void)self;
    return GPST_FAILED(result) ? codec_fail(reason, result, "%s", gpst_last_reason()) : GPST_OK;
}

static size_t codec_plain_bound(gpst_file_kind kind, const gpst_image* image) {
    size_t bytes = 0;
    return GPST_FAILED(gpst_picture_encode(kind, image, NULL, &bytes)) ? 0 : bytes;
}

static size_t codec_pnm_bound(const gpst_image* image, const codec_options* options) {
    (void)options;
    return codec_plain_bound(GPST_FILE_PNM, image);
}

static size_t codec_npy_bound(const gpst_image* image, const codec_options* options) {
    (void)options;
    return codec_plain_bound(GPST_FILE_NPY, image);
}

static gpst_result codec_plain_encode(gpst_file_kind kind, const gpst_image* image, uint8_t* out, size_t* bytes,
                                      char* reason) {
    const gpst_result result = gpst_picture_encode(kind, image, out, bytes);
    return GPST_FAILED(result) ? codec_fail(reason, result, "%s", gpst_last_reason()) : GPST_OK;
}

static gpst_result codec_pnm_encode(codec* self, const gpst_image* image, const codec_options* options, uint8_t* out,
                                    size_t* bytes, char* reason) {
    (void)self, (void)options;
    return codec_plain_encode(GPST_FILE_PNM, image, out, bytes, reason);
}

static gpst_result codec_npy_encode(codec* self, const gpst_image* image, const codec_options* options, uint8_t* out,
                                    size_t* bytes, char* reason) {
    (void)self, (void)options;
    return codec_plain_encode(GPST_FILE_NPY, image, out, bytes, reason);
}

const codec_format codec_pnm = {
    CODEC_PNM,          "PNM",           "ppm",            "u8 and u16", NULL, true, codec_plain_read_header,
    codec_plain_decode, codec_pnm_bound, codec_pnm_encode, NULL};
const codec_format codec_npy = {
    CODEC_NPY,          "NPY",           "npy",            "any dtype", NULL, true, codec_plain_read_header,
    codec_plain_decode, codec_npy_bound, codec_npy_encode, NULL};
