/* tools/gpustage/codec_jpeg.c -- JPEG, baseline and progressive, through libjpeg-turbo. The header is read
   here, so that a picture's size is known and judged before the library allocates anything for it. */
#include "codec_internal.h"

#if defined(GPST_TOOL_JPEG)
#include <string.h>

#include <turbojpeg.h>
#endif

static bool codec_jpeg_is(const uint8_t* data, size_t bytes) {
    return bytes >= 3 && data[0] == 0xff && data[1] == 0xd8 && data[2] == 0xff;
}

#if defined(GPST_TOOL_JPEG)

bool codec_jpeg_create(codec* self) {
    self->jpeg_decoder = tjInitDecompress();
    self->jpeg_encoder = tjInitCompress();
    return self->jpeg_decoder && self->jpeg_encoder;
}

void codec_jpeg_destroy(codec* self) {
    if (self->jpeg_decoder)
        tjDestroy(self->jpeg_decoder);
    if (self->jpeg_encoder)
        tjDestroy(self->jpeg_encoder);
}

static uint32_t codec_jpeg_u16(const uint8_t* at) { return (uint32_t)at[0] << 8 | at[1]; }

/* A start-of-frame marker; C4, C8 and CC of that range are something else. */
static bool codec_jpeg_is_frame(uint8_t marker) {
    return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

/* The frame segment (its length field first); lengths are checked, so that 8 bytes are there. */
static gpst_result codec_jpeg_find_frame(const uint8_t* data, size_t bytes, const uint8_t** frame,
                                         char* reason) {
    size_t at = 2;
    while (at + 4 <= bytes) {
        if (data[at] != 0xff)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: byte %zu is not a marker", at);
        const uint8_t marker = data[at + 1];
        if (marker == 0xff) { /* a fill byte */
            at++;
            continue;
        }
        if (marker == 0xda || marker == 0xd9)
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: there is no frame header before the data");
        if (marker == 0x01 || (marker >= 0xd0 && marker <= 0xd7)) { /* no segment behind these */
            at += 2;
            continue;
        }
        const uint32_t length = codec_jpeg_u16(data + at + 2);
        if (length < 2 || (codec_jpeg_is_frame(marker) && length < 8))
            return codec_fail(reason, GPST_ERROR_FORMAT, "JPEG: a segment of %u bytes at byte %zu", length,
                              at);
        if (length > bytes - at - 2)
            break;
        if (codec_jpeg_is_frame(marker)) {
            *frame = data + at;
            return GPST_OK;
        }
        at += 2 + (size_t)length;
    }
    return codec_fail(reason, GPST_ERROR_TRUNCATED, "JPEG: the header ends too early");
}

static gpst_result codec_jpeg_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                          size_t* offset, char* reason) {
    const uint8_t* frame = NULL;
    *offset = 0;
    gpst_result result = codec_jpeg_find_frame(data, bytes, &frame, reason);
    if (GPST_FAILED(result))
        return result;
    const uint8_t marker = frame[1], precision = frame[4], components = frame[9];
    const uint64_t height = codec_jpeg_u16(frame + 5), width = codec_jpeg_u16(frame + 7);
    result = codec_check_sides("JPEG", width, height, reason);
    if (GPST_FAILED(result))
        return result;
    if (precision != 8)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "JPEG: %d bits a sample; only 8 are read",
                          precision);
    if (components == 4)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "JPEG: CMYK (4 components); convert it to RGB first");
    if (components != 1 && components != 3)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "JPEG: %d components; 1 (gray) and 3 are read",
                          components);
    /* Huffman coding spends a bit or more on a unit of at most 32x32 pixels. */
    if (marker < 0xc8 && bytes < width * height / (32 * 32 * 8))
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "JPEG: %zu bytes cannot hold %llux%llu pixels", bytes,
                          (unsigned long long)width, (unsigned long long)height);
    shape->width = (uint32_t)width;
    shape->height = (uint32_t)height;
    shape->format = components == 1 ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    return GPST_OK;
}

static int codec_jpeg_pixels(gpst_format format) {
    switch (format) {
    case GPST_FORMAT_GRAY:
        return TJPF_GRAY;
    case GPST_FORMAT_BGR:
        return TJPF_BGR;
    case GPST_FORMAT_RGBA:
        return TJPF_RGBX;
    default:
        return TJPF_RGB;
    }
}

/* An image as the library wants it: from its lowest address, upside down where the pitch is negative. */
typedef struct codec_jpeg_rows {
    uint8_t* data;
    int pitch;
    int flags;
} codec_jpeg_rows;

static codec_jpeg_rows codec_jpeg_lay_out(const gpst_image* image) {
    const bool up = image->pitch_bytes < 0;
    codec_jpeg_rows rows;
    rows.data = codec_row(image, up ? image->height - 1 : 0);
    rows.pitch = (int)(up ? -image->pitch_bytes : image->pitch_bytes);
    rows.flags = up ? TJFLAG_BOTTOMUP : 0;
    return rows;
}

static bool codec_jpeg_pitch_fits(const gpst_image* image) {
    return image->pitch_bytes >= -INT32_MAX && image->pitch_bytes <= INT32_MAX;
}

static gpst_result codec_jpeg_fail(tjhandle handle, char* reason) {
    const char* text = tjGetErrorStr2(handle);
    const gpst_result result = strstr(text, "Premature end") || strstr(text, "premature end")
                                   ? GPST_ERROR_TRUNCATED
                               : strstr(text, "emory") ? GPST_ERROR_MEMORY
                                                       : GPST_ERROR_FORMAT;
    return codec_fail(reason, result, "JPEG: %s", text);
}

static gpst_result codec_jpeg_decode(codec* self, const uint8_t* data, size_t bytes, const gpst_image* image,
                                     char* reason) {
    const codec_jpeg_rows rows = codec_jpeg_lay_out(image);
    if (!codec_jpeg_pitch_fits(image))
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "JPEG: pitch_bytes=%lld: up to 2147483647 is possible",
                          (long long)image->pitch_bytes);
    if (tjDecompress2(self->jpeg_decoder, data, (unsigned long)bytes, rows.data, (int)image->width,
                      rows.pitch, (int)image->height, codec_jpeg_pixels(image->format),
                      rows.flags | TJFLAG_STOPONWARNING | TJFLAG_LIMITSCANS) != 0)
        return codec_jpeg_fail(self->jpeg_decoder, reason);
    return GPST_OK;
}

static int codec_jpeg_sampling(const gpst_image* image, const codec_options* options) {
    if (image->format == GPST_FORMAT_GRAY)
        return TJSAMP_GRAY;
    return options->chroma == 444 ? TJSAMP_444 : options->chroma == 422 ? TJSAMP_422 : TJSAMP_420;
}

static size_t codec_jpeg_bound(const gpst_image* image, const codec_options* options) {
    const bool chroma = options->chroma == 444 || options->chroma == 422 || options->chroma == 420;
    if (!codec_is_picture(image) || !codec_jpeg_pitch_fits(image) || !chroma || options->quality < 1 ||
        options->quality > 100)
        return 0;
    return tjBufSize((int)image->width, (int)image->height, codec_jpeg_sampling(image, options));
}

static gpst_result codec_jpeg_encode(codec* self, const gpst_image* image, const codec_options* options,
                                     uint8_t* out, size_t* bytes, char* reason) {
    const codec_jpeg_rows rows = codec_jpeg_lay_out(image);
    unsigned long used = (unsigned long)*bytes;
    if (tjCompress2(self->jpeg_encoder, rows.data, (int)image->width, rows.pitch, (int)image->height,
                    codec_jpeg_pixels(image->format), &out, &used, codec_jpeg_sampling(image, options),
                    options->quality, rows.flags | TJFLAG_NOREALLOC) != 0)
        return codec_jpeg_fail(self->jpeg_encoder, reason);
    *bytes = used;
    return GPST_OK;
}

const codec_format codec_jpeg = {
    CODEC_JPEG,       "JPEG",           "jpg", true, codec_jpeg_is, codec_jpeg_read_header, codec_jpeg_decode,
    codec_jpeg_bound, codec_jpeg_encode};

#else

bool codec_jpeg_create(codec* self) {
    (void)self;
    return true;
}

void codec_jpeg_destroy(codec* self) { (void)self; }

const codec_format codec_jpeg = {CODEC_JPEG, "JPEG", "jpg", false, codec_jpeg_is, NULL, NULL, NULL, NULL};

#endif
