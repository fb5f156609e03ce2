/* tools/gpustage/codec_webp.c -- WebP through libwebp: read as it is, written lossy. Animations are refused. */
#include "codec_internal.h"

#include <stdlib.h>
#include <string.h>

#define CODEC_WEBP_HOLDS "u8 and sides up to 16383"

#if defined(GPST_TOOL_WEBP)
#include <webp/decode.h>
#include <webp/encode.h>

#define CODEC_WEBP_ROW_BYTES 256 /* a pixel's share of the rows that a lossy decoder holds */
#define CODEC_WEBP_METHOD 2      /* of 0 to 6: the library's default, 4, takes twice the time */

static gpst_result codec_webp_fail(VP8StatusCode status, char* reason) {
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return codec_fail(reason, GPST_ERROR_MEMORY, "WebP: no memory for a decoder");
    case VP8_STATUS_NOT_ENOUGH_DATA:
    case VP8_STATUS_SUSPENDED:
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "WebP: the file ends too early");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "WebP: it uses what libwebp does not know");
    default:
        return codec_fail(reason, GPST_ERROR_FORMAT, "WebP: the data are damaged");
    }
}

static uint32_t codec_webp_u32(const uint8_t* at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static gpst_result codec_webp_read_header(const uint8_t* data, size_t bytes, gpst_image* shape, codec_layout* layout,
                                          char* reason) {
    WebPBitstreamFeatures features;
    const VP8StatusCode status = WebPGetFeatures(data, bytes, &features);
    if (status != VP8_STATUS_OK)
        return codec_webp_fail(status, reason);
    if (features.has_animation)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "WebP: is an animation: not read; extract its frames first");
    if (codec_webp_u32(data + 4) > bytes - 8)
        return codec_webp_fail(VP8_STATUS_NOT_ENOUGH_DATA, reason);
    const gpst_result result = codec_check_sides("WebP", (uint64_t)features.width, (uint64_t)features.height, reason);
    if (GPST_FAILED(result))
        return result;
    shape->width = (uint32_t)features.width;
    shape->height = (uint32_t)features.height;
    shape->format = features.has_alpha ? GPST_FORMAT_RGBA : GPST_FORMAT_RGB;
    /* Lossless pixels, and alpha, are unpacked as a whole; lossy ones some rows at a time. */
    const uint64_t pixels = (uint64_t)shape->width * shape->height;
    layout->decoder_bytes = ((uint64_t)1 << 20) + CODEC_WEBP_ROW_BYTES * (uint64_t)shape->width +
                            (features.format == 1 && !features.has_alpha ? 0 : 7 * pixels);
    return GPST_OK;
}

static gpst_result codec_webp_decode(codec* self, const uint8_t* data, size_t bytes, const gpst_image* image,
                                     char* reason) {
    WebPDecoderConfig config;
    (void)self;
    if (!WebPInitDecoderConfig(&config))
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "WebP: the libwebp that is here is of another version");
    const uint64_t pitch = (uint64_t)(image->pitch_bytes < 0 ? -image->pitch_bytes : image->pitch_bytes);
    config.output.colorspace = image->format == GPST_FORMAT_RGBA ? MODE_RGBA : MODE_RGB;
    config.output.is_external_memory = 1;
    config.output.u.RGBA.rgba = (uint8_t*)image->data;
    config.output.u.RGBA.stride = (int)image->pitch_bytes;
    config.output.u.RGBA.size = (size_t)(pitch * (image->height - 1) + gpst_image_row_bytes(image));
    const VP8StatusCode status = WebPDecode(data, bytes, &config);
    WebPFreeDecBuffer(&config.output);
    return status == VP8_STATUS_OK ? GPST_OK : codec_webp_fail(status, reason);
}

/* ---- the way out ------------------------------------------------------------------- */

#define CODEC_WEBP_HEAD_BYTES 64 /* RIFF, VP8X and the heads of the chunks */

/* Lossy data have no bound that the library would give: noise at quality 100 takes about 3 bytes a pixel. */
static size_t codec_webp_bound(const gpst_image* image, const codec_options* options) {
    const bool fits = image->width <= WEBP_MAX_DIMENSION && image->height <= WEBP_MAX_DIMENSION &&
                      options->quality >= 1 && options->quality <= 100;
    const size_t pixels = (size_t)image->width * image->height;
    return codec_is_picture(image) && gpst_dtype_bytes(image->dtype) == 1 && fits
               ? 6 * pixels + 4096 + CODEC_WEBP_HEAD_BYTES + options->exif_bytes + options->icc_bytes
               : 0;
}

typedef struct codec_webp_room {
    uint8_t* at;
    size_t bytes, room;
} codec_webp_room;

static int codec_webp_write(const uint8_t* data, size_t bytes, const WebPPicture* picture) {
    codec_webp_room* const room = (codec_webp_room*)picture->custom_ptr;
    if (bytes > room->room - room->bytes)
        return 0;
    memcpy(room->at + room->bytes, data, bytes);
    room->bytes += bytes;
    return 1;
}

static void codec_webp_fill(codec* self, const gpst_image* image, WebPPicture* picture) {
    const uint32_t n_channels = gpst_format_channels(image->format), green = n_channels > 1, blue = 2 * green;
    for (uint32_t y = 0; y < image->height; y++) {
        const uint8_t* pixel = codec_rgb_row(self, image, y);
        uint32_t* const out = picture->argb + (size_t)picture->argb_stride * y;
        for (uint32_t x = 0; x < image->width; x++, pixel += n_channels)
            out[x] = (uint32_t)(n_channels == 4 ? pixel[3] : 255) << 24 | (uint32_t)pixel[0] << 16 |
                     (uint32_t)pixel[green] << 8 | pixel[blue];
    }
}

static void codec_webp_put_u32(uint8_t* at, uint32_t value, int n) {
    for (int i = 0; i < n; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

static uint8_t* codec_webp_put_chunk(uint8_t* at, const char* name, const void* data, size_t bytes) {
    memcpy(at, name, 4);
    codec_webp_put_u32(at + 4, (uint32_t)bytes, 4);
    memcpy(at + 8, data, bytes);
    if (bytes % 2)
        at[8 + bytes] = 0;
    return at + 8 + bytes + bytes % 2;
}

/* The extended form: VP8X, the profile, the picture's own chunks, EXIF. Gives the bytes of the whole file. */
static size_t codec_webp_put_tags(uint8_t* file, size_t bytes, const gpst_image* image, const codec_options* options) {
    uint8_t head[10] = {0};
    const bool is_extended = memcmp(file + 12, "VP8X", 4) == 0; /* it has alpha */
    const size_t from = is_extended ? 12 + 8 + sizeof head : 12;
    const size_t icc_bytes = options->icc ? 8 + options->icc_bytes + options->icc_bytes % 2 : 0;
    const size_t to = 12 + 8 + sizeof head + icc_bytes;
    head[0] = (uint8_t)((is_extended ? file[20] : 0) | (options->icc ? 0x20 : 0) | (options->exif ? 0x08 : 0));
    codec_webp_put_u32(head + 4, image->width - 1, 3);
    codec_webp_put_u32(head + 7, image->height - 1, 3);
    memmove(file + to, file + from, bytes - from);
    uint8_t* at = codec_webp_put_chunk(file + 12, "VP8X", head, sizeof head);
    if (options->icc)
        (void)codec_webp_put_chunk(at, "ICCP", options->icc, options->icc_bytes);
    at = file + to + (bytes - from);
    if (options->exif)
        at = codec_webp_put_chunk(at, "EXIF", options->exif, options->exif_bytes);
    codec_webp_put_u32(file + 4, (uint32_t)(at - file - 8), 4);
    return (size_t)(at - file);
}

static gpst_result codec_webp_encode_picture(codec* self, const gpst_image* image, const WebPConfig* config,
                                             WebPPicture* picture, char* reason) {
    picture->use_argb = 1;
    picture->width = (int)image->width;
    picture->height = (int)image->height;
    if (!WebPPictureAlloc(picture))
        return codec_fail(reason, GPST_ERROR_MEMORY, "WebP: no memory for an encoder");
    codec_webp_fill(self, image, picture);
    if (WebPEncode(config, picture))
        return GPST_OK;
    if (picture->error_code == VP8_ENC_ERROR_OUT_OF_MEMORY ||
        picture->error_code == VP8_ENC_ERROR_BITSTREAM_OUT_OF_MEMORY)
        return codec_fail(reason, GPST_ERROR_MEMORY, "WebP: no memory for an encoder");
    return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "WebP: %ux%u pixels cannot be written (error %d of libwebp)",
                      image->width, image->height, (int)picture->error_code);
}

static gpst_result codec_webp_encode(codec* self, const gpst_image* image, const codec_options* options, uint8_t* out,
                                     size_t* bytes, char* reason) {
    codec_webp_room room;
    WebPConfig config;
    WebPPicture picture;
    room.at = out;
    room.bytes = 0;
    room.room = *bytes - options->exif_bytes - options->icc_bytes - CODEC_WEBP_HEAD_BYTES;
    if (!WebPConfigPreset(&config, WEBP_PRESET_DEFAULT, (float)options->quality) || !WebPPictureInit(&picture))
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "WebP: the libwebp that is here is of another version");
    config.method = CODEC_WEBP_METHOD;
    picture.writer = codec_webp_write;
    picture.custom_ptr = &room;
    const gpst_result result = codec_webp_encode_picture(self, image, &config, &picture, reason);
    WebPPictureFree(&picture);
    if (GPST_FAILED(result))
        return result;
    *bytes = options->exif || options->icc ? codec_webp_put_tags(out, room.bytes, image, options) : room.bytes;
    return GPST_OK;
}

const codec_format codec_webp = {CODEC_WEBP,
                                 "WebP",
                                 "webp",
                                 CODEC_WEBP_HOLDS,
                                 "libwebp",
                                 true,
                                 codec_webp_read_header,
                                 codec_webp_decode,
                                 codec_webp_bound,
                                 codec_webp_encode,
                                 NULL};

#else

const codec_format codec_webp = {
    CODEC_WEBP, "WebP", "webp", CODEC_WEBP_HOLDS, "libwebp", false, NULL, NULL, NULL, NULL, NULL};

#endif
