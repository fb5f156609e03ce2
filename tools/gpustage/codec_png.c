/* tools/gpustage/codec_png.c -- PNG of 8 and 16 bits a channel, through libspng. The first chunks are read here, so
   that a picture's size is known and judged before the library allocates anything for it; and the library sees only those
   chunks that it is wanted for, so that no picture fails by the others. */
#include "codec_internal.h"

#include <stdlib.h>
#include <string.h>

#if defined(GPST_TOOL_PNG)
#include <spng.h>
#endif

#if defined(GPST_TOOL_PNG)

#define CODEC_PNG_CHUNK_LIMIT ((size_t)16 << 20) /* of a colour profile */
#define CODEC_PNG_DEFLATE 1032 /* bytes that deflate packs into one at most */

static uint32_t codec_png_u32(const uint8_t* at) {
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* From chunk to chunk up to the last: the file is whole (the library would not miss its end), and whether a colour is
   declared transparent. */
static gpst_result codec_png_walk(const uint8_t* data, size_t bytes, bool* transparent, char* reason) {
    size_t at = 8;
    while (bytes - at >= 12) {
        const size_t length = codec_png_u32(data + at);
        const uint8_t* name = data + at + 4;
        if (length > bytes - at - 12)
            break;
        if (memcmp(name, "IEND", 4) == 0)
            return GPST_OK;
        if (memcmp(name, "tRNS", 4) == 0)
            *transparent = true;
        at += 12 + length;
    }
    return codec_fail(reason, GPST_ERROR_TRUNCATED, "PNG: the file ends before its last chunk");
}

static gpst_result codec_png_read_header(const uint8_t* data, size_t bytes, gpst_image* shape,
                                         codec_layout* layout, char* reason) {
    if (bytes < 33)
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "PNG: the header ends too early");
    if (codec_png_u32(data + 8) != 13 || memcmp(data + 12, "IHDR", 4) != 0)
        return codec_fail(reason, GPST_ERROR_FORMAT, "PNG: the first chunk is not a header");
    const uint64_t width = codec_png_u32(data + 16), height = codec_png_u32(data + 20);
    const uint8_t bits = data[24], color = data[25];
    gpst_result result = codec_check_sides("PNG", width, height, reason);
    if (GPST_FAILED(result))
        return result;
    const bool color_known = color == 0 || color == 2 || color == 3 || color == 4 || color == 6;
    const bool few = bits == 1 || bits == 2 || bits == 4; /* gray and palettes only; palettes have no 16 */
    if (!color_known || !(bits == 8 || (bits == 16 && color != 3) || (few && (color == 0 || color == 3))))
        return codec_fail(reason, GPST_ERROR_FORMAT, "PNG: colour type %d with %d bits does not exist", color,
                          bits);
    const uint64_t channels = color == 2 ? 3 : color == 4 ? 2 : color == 6 ? 4 : 1;
    const uint64_t row_bytes = (width * channels * bits + 7) / 8 + 1;
    if (row_bytes * height / CODEC_PNG_DEFLATE > bytes)
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "PNG: %zu bytes cannot hold %llux%llu pixels", bytes,
                          (unsigned long long)width, (unsigned long long)height);
    bool transparent = color >= 4;
    result = codec_png_walk(data, bytes, &transparent, reason);
    if (GPST_FAILED(result))
        return result;
    shape->width = (uint32_t)width;
    shape->height = (uint32_t)height;
    shape->dtype = bits == 16 ? GPST_DTYPE_U16 : GPST_DTYPE_U8;
    if (transparent)
        shape->format = GPST_FORMAT_RGBA;
    else
        shape->format = color == 0 ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    layout->decoder_bytes = 4 * (row_bytes + 8 * width) + 65536; /* rows, of interlaced pictures too; inflate's window */
    return GPST_OK;
}

static gpst_result codec_png_fail(int error, char* reason) {
    const bool cut = error == SPNG_EOF || error == SPNG_IO_EOF || error == SPNG_EIDAT_TOO_SHORT;
    return codec_fail(reason,
                      error == SPNG_EMEM ? GPST_ERROR_MEMORY
                      : cut              ? GPST_ERROR_TRUNCATED
                                         : GPST_ERROR_FORMAT,
                      "PNG: %s", spng_strerror(error));
}

/* Of 16 bits without alpha the library has no name: they come as they are, in the machine's byte order. */
static int codec_png_layout(const gpst_image* image) {
    if (image->dtype == GPST_DTYPE_U16)
        return image->format == GPST_FORMAT_RGBA ? SPNG_FMT_RGBA16 : SPNG_FMT_PNG;
    return image->format == GPST_FORMAT_GRAY  ? SPNG_FMT_G8
           : image->format == GPST_FORMAT_RGB ? SPNG_FMT_RGB8
                                              : SPNG_FMT_RGBA8;
}

static int codec_png_decode_rows(spng_ctx* context, const gpst_image* image) {
    const int format = codec_png_layout(image);
    int error = spng_decode_image(context, NULL, 0, format, SPNG_DECODE_TRNS | SPNG_DECODE_PROGRESSIVE);
    while (!error) {
        struct spng_row_info row;
        error = spng_get_row_info(context, &row);
        if (!error)
            error = spng_decode_row(context, codec_row(image, row.row_num), gpst_image_row_bytes(image));
    }
    return error == SPNG_EOI ? spng_decode_chunks(context) : error; /* to the end: a cut file is noticed */
}

/* A file as the library sees it: without chunks that are not needed for the pixels (of a small first letter), but one. */
typedef struct codec_png_source {
    const uint8_t* data;
    size_t bytes, at;
    size_t left; /* of the chunk that is being read */
    const char* kept; /* name of the one */
} codec_png_source;

/* At the beginning of a chunk: false where no more are whole. */
static bool codec_png_next(codec_png_source* self) {
    while (self->bytes - self->at >= 12) {
        const uint8_t* const name = self->data + self->at + 4;
        const size_t length = codec_png_u32(self->data + self->at);
        if (length > self->bytes - self->at - 12)
            return false;
        self->left = length + 12;
        if (!(name[0] & 32) || memcmp(name, self->kept, 4) == 0)
            return true;
        self->at += self->left;
    }
    return false;
}

static int codec_png_read(spng_ctx* context, void* user, void* out, size_t length) {
    codec_png_source* const self = (codec_png_source*)user;
    uint8_t* to = (uint8_t*)out;
    (void)context;
    while (length > 0) {
        if (self->left == 0 && !codec_png_next(self))
            return SPNG_IO_EOF;
        const size_t n = self->left < length ? self->left : length;
        memcpy(to, self->data + self->at, n);
        to += n;
        self->at += n;
        self->left -= n;
        length -= n;
    }
    return 0;
}

static int codec_png_open(spng_ctx* context, codec_png_source* source) {
    int error = spng_set_image_limits(context, CODEC_MAX_SIDE, CODEC_MAX_SIDE);
    if (!error)
        error = spng_set_chunk_limits(context, CODEC_PNG_CHUNK_LIMIT, CODEC_PNG_CHUNK_LIMIT);
    return error ? error : spng_set_png_stream(context, codec_png_read, source);
}

static gpst_result codec_png_decode(codec* self, const uint8_t* data, size_t bytes, const gpst_image* image,
                                    char* reason) {
    codec_png_source source = {data, bytes, 0, 8, "tRNS"};
    spng_ctx* context = spng_ctx_new(0);
    (void)self;
    if (!context)
        return codec_fail(reason, GPST_ERROR_MEMORY, "PNG: no memory for a decoder");
    int error = codec_png_open(context, &source);
    if (!error)
        error = codec_png_decode_rows(context, image);
    spng_ctx_free(context);
    return error ? codec_png_fail(error, reason) : GPST_OK;
}

static bool codec_png_read_icc(const uint8_t* data, size_t bytes, void** profile, size_t* profile_bytes) {
    codec_png_source source = {data, bytes, 0, 8, "iCCP"};
    struct spng_iccp found;
    spng_ctx* const context = spng_ctx_new(0);
    if (context && !codec_png_open(context, &source) && !spng_get_iccp(context, &found)) {
        *profile = malloc(found.profile_len);
        *profile_bytes = *profile ? found.profile_len : 0;
        if (*profile)
            memcpy(*profile, found.profile, found.profile_len);
        spng_ctx_free(context);
        return *profile != NULL;
    }
    spng_ctx_free(context);
    return context != NULL;
}

/* Stored blocks, the chunks around them and the header, with room to spare. */
static size_t codec_png_bound(const gpst_image* image, const codec_options* options) {
    const size_t bytes = codec_plain_bytes(image) + image->height + options->exif_bytes + options->icc_bytes;
    const bool integers = image->dtype <= GPST_DTYPE_U8 || image->dtype == GPST_DTYPE_U16;
    return codec_is_picture(image) && integers ? bytes + bytes / 64 + 4096 : 0;
}

typedef struct codec_png_room {
    uint8_t* at;
    size_t left;
} codec_png_room;

static int codec_png_write(spng_ctx* context, void* user, void* data, size_t length) {
    codec_png_room* room = (codec_png_room*)user;
    (void)context;
    if (length > room->left)
        return SPNG_IO_EOF;
    memcpy(room->at, data, length);
    room->at += length;
    room->left -= length;
    return 0;
}

static int codec_png_set_tags(spng_ctx* context, const codec_options* options) {
    struct spng_exif exif;
    struct spng_iccp profile;
    int error = 0;
    if (options->exif) {
        exif.length = options->exif_bytes;
        exif.data = (char*)(uintptr_t)options->exif; /* only read */
        error = spng_set_exif(context, &exif);
    }
    if (!error && options->icc) {
        memset(&profile, 0, sizeof profile);
        memcpy(profile.profile_name, "ICC profile", 11);
        profile.profile_len = options->icc_bytes;
        profile.profile = (char*)(uintptr_t)options->icc;
        error = spng_set_iccp(context, &profile);
    }
    return error;
}

/* Fast rather than small: level 1 and one filter for all rows. */
static int codec_png_encode_rows(codec* self, spng_ctx* context, const gpst_image* image,
                                 const codec_options* options) {
    struct spng_ihdr header;
    memset(&header, 0, sizeof header);
    header.width = image->width;
    header.height = image->height;
    header.bit_depth = image->dtype == GPST_DTYPE_U16 ? 16 : 8;
    header.color_type = image->format == GPST_FORMAT_GRAY   ? SPNG_COLOR_TYPE_GRAYSCALE
                        : gpst_format_channels(image->format) == 4 ? SPNG_COLOR_TYPE_TRUECOLOR_ALPHA
                                                                   : SPNG_COLOR_TYPE_TRUECOLOR;
    int error = spng_set_ihdr(context, &header);
    if (!error)
        error = codec_png_set_tags(context, options);
    if (!error)
        error = spng_set_option(context, SPNG_IMG_COMPRESSION_LEVEL, 1);
    if (!error)
        error = spng_set_option(context, SPNG_FILTER_CHOICE, SPNG_FILTER_CHOICE_SUB);
    if (!error)
        error =
            spng_encode_image(context, NULL, 0, SPNG_FMT_PNG, SPNG_ENCODE_PROGRESSIVE | SPNG_ENCODE_FINALIZE);
    for (uint32_t y = 0; !error && y < image->height; y++)
        error = spng_encode_row(context, codec_rgb_row(self, image, y), gpst_image_row_bytes(image));
    return error == SPNG_EOI ? SPNG_OK : error; /* said of the last row */
}

static gpst_result codec_png_encode(codec* self, const gpst_image* image, const codec_options* options,
                                    uint8_t* out, size_t* bytes, char* reason) {
    codec_png_room room;
    spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
    if (!context)
        return codec_fail(reason, GPST_ERROR_MEMORY, "PNG: no memory for an encoder");
    room.at = out;
    room.left = *bytes;
    int error = spng_set_png_stream(context, codec_png_write, &room);
    if (!error)
        error = codec_png_encode_rows(self, context, image, options);
    spng_ctx_free(context);
    if (error)
        return codec_png_fail(error, reason);
    *bytes = (size_t)(room.at - out);
    return GPST_OK;
}

const codec_format codec_png = {
    CODEC_PNG,
    "PNG",
    "png",
    "u8 and u16",
    "libspng",
    true,
    codec_png_read_header,
    codec_png_decode,
    codec_png_bound,
    codec_png_encode,
    codec_png_read_icc};

#else

const codec_format codec_png = {
    CODEC_PNG, "PNG", "png", "u8 and u16", "libspng", false, NULL, NULL, NULL, NULL, NULL};

#endif
