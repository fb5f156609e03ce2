/* tools/gpustage/codec.c -- which format is asked for and the checks that all of them share; headerless
   pixels too. The formats themselves are in codec_<format>.c. */
#include "codec_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gpst_result codec_fail(char* reason, gpst_result result, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(reason, CODEC_REASON_BYTES, format, arguments);
    va_end(arguments);
    return result;
}

gpst_result codec_check_sides(const char* name, uint64_t width, uint64_t height, char* reason) {
    if (width >= 1 && width <= CODEC_MAX_SIDE && height >= 1 && height <= CODEC_MAX_SIDE)
        return GPST_OK;
    return codec_fail(reason, width && height ? GPST_ERROR_UNSUPPORTED : GPST_ERROR_FORMAT,
                      "%s: the header says %llux%llu pixels; sides of 1 to %u are possible", name,
                      (unsigned long long)width, (unsigned long long)height, CODEC_MAX_SIDE);
}

uint8_t* codec_row(const gpst_image* image, size_t y) {
    return (uint8_t*)image->data + (ptrdiff_t)(image->pitch_bytes * (int64_t)y);
}

/* Rows of all planes together. */
static size_t codec_n_rows(const gpst_image* image) {
    return (size_t)image->height *
           (image->layout == GPST_LAYOUT_CHW ? gpst_format_channels(image->format) : 1);
}

size_t codec_plain_bytes(const gpst_image* image) {
    return gpst_image_row_bytes(image) * codec_n_rows(image);
}

void codec_write_plain(const gpst_image* image, uint8_t* out) {
    const size_t row_bytes = gpst_image_row_bytes(image);
    for (size_t y = 0; y < codec_n_rows(image); y++)
        memcpy(out + row_bytes * y, codec_row(image, y), row_bytes);
}

static void codec_read_plain(const gpst_image* image, const uint8_t* from) {
    const size_t row_bytes = gpst_image_row_bytes(image);
    for (size_t y = 0; y < codec_n_rows(image); y++)
        memcpy(codec_row(image, y), from + row_bytes * y, row_bytes);
}

const uint8_t* codec_rgb_row(codec* self, const gpst_image* image, uint32_t y) {
    const uint8_t* row = codec_row(image, y);
    uint8_t* const out = (uint8_t*)self->row;
    const size_t one = gpst_dtype_bytes(image->dtype), n_channels = gpst_format_channels(image->format);
    if (image->format != GPST_FORMAT_BGR && image->format != GPST_FORMAT_BGRA)
        return row;
    for (size_t i = 0; i < n_channels * image->width; i++) {
        const size_t c = i % n_channels;
        memcpy(out + i * one, row + (c < 3 ? i + 2 - 2 * c : i) * one, one);
    }
    return out;
}

bool codec_is_picture(const gpst_image* image) {
    return image->layout != GPST_LAYOUT_CHW && image->format <= GPST_FORMAT_BGRA && image->width <= CODEC_MAX_SIDE &&
           image->height <= CODEC_MAX_SIDE;
}

/* ---- headerless ----------------------------------------------------------------- */

static size_t codec_raw_bound(const gpst_image* image, const codec_options* options) {
    (void)options;
    return image->format <= GPST_FORMAT_BGRA ? codec_plain_bytes(image) : 0; /* planes of chroma are not plain rows */
}

static gpst_result codec_raw_encode(codec* self, const gpst_image* image, const codec_options* options,
                                    uint8_t* out, size_t* bytes, char* reason) {
    (void)self, (void)options, (void)reason;
    codec_write_plain(image, out);
    *bytes = codec_plain_bytes(image);
    return GPST_OK;
}

static const codec_format codec_headerless = {CODEC_RAW, "raw", "raw", "any dtype",     NULL,            true,
                                              NULL,      NULL,  codec_raw_bound, codec_raw_encode, NULL};

static gpst_result codec_read_raw(const codec* self, const codec_raw* raw, size_t bytes, gpst_image* shape,
                                  char* reason) {
    codec_layout layout;
    memset(&layout, 0, sizeof layout);
    layout.in_place = true;
    shape->width = raw->width;
    shape->height = raw->height;
    shape->format = raw->format;
    const gpst_result result = codec_check_sides("raw", raw->width, raw->height, reason);
    if (GPST_FAILED(result))
        return result;
    const size_t wanted = codec_plain_bytes(shape);
    if (wanted == 0)
        return codec_fail(reason, GPST_ERROR_ARGUMENT, "raw: format=%d: no such format", (int)raw->format);
    if (bytes != wanted)
        return codec_fail(reason, bytes < wanted ? GPST_ERROR_TRUNCATED : GPST_ERROR_FORMAT,
                          "raw: %zu bytes; %ux%u pixels are %zu", bytes, raw->width, raw->height, wanted);
    return codec_check_limits(self, "raw", shape, bytes, &layout, reason);
}

/* ---- which ------------------------------------------------------------------------ */

static const codec_format* const codec_formats[] = {&codec_jpeg, &codec_png,  &codec_pnm,       &codec_npy,
                                                    &codec_tiff, &codec_webp, &codec_headerless};
#define CODEC_N_FORMATS (sizeof codec_formats / sizeof codec_formats[0])

static const codec_format* codec_find(codec_kind kind) {
    for (size_t i = 0; i < CODEC_N_FORMATS; i++)
        if (codec_formats[i]->kind == kind)
            return codec_formats[i];
    return NULL;
}

static const codec_format* codec_recognise(const uint8_t* data, size_t bytes) {
    const char* const name = gpst_picture_name(data, bytes);
    for (size_t i = 0; i < CODEC_N_FORMATS; i++)
        if (!strcmp(codec_formats[i]->name, name))
            return codec_formats[i];
    return NULL;
}

const char* codec_library(codec_kind kind) {
    const codec_format* format = codec_find(kind);
    return format && format->library ? format->library : "";
}

const char* codec_extension(codec_kind kind) {
    const codec_format* format = codec_find(kind);
    return format ? format->extension : "";
}

bool codec_available(codec_kind kind) {
    const codec_format* format = codec_find(kind);
    return kind == CODEC_JPEG ? codec_jpeg_available() : format && format->available;
}

static gpst_result codec_not_available(const codec_format* format, char* reason) {
    return codec_fail(reason, GPST_ERROR_UNSUPPORTED, "%s: this build is without %s", format->name, format->library);
}

static gpst_result codec_refuse(const char* name, char* reason) {
    static const char read[] = "JPEG, PNG, TIFF, WebP, PNM, PAM";
    return name[0] ? codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                                "the file is %s, which is not read: convert it first (%s and .npy are read)", name, read)
                   : codec_fail(reason, GPST_ERROR_FORMAT, "not a %s or .npy file by its first bytes", read);
}

/* ---- the way in ------------------------------------------------------------------- */

codec* codec_create(void) {
    return (codec*)calloc(1, sizeof(codec));
}

void codec_destroy(codec* self) {
    if (!self)
        return;
    gpst_jpeg_destroy(self->jpeg);
    free(self);
}

void codec_set_limits(codec* self, const codec_limits* limits) { self->limits = *limits; }

const char* codec_note(const codec* self) { return self->note; }

static void codec_clear_shape(gpst_image* shape) {
    memset(shape, 0, sizeof *shape);
    shape->dtype = GPST_DTYPE_U8;
    shape->layout = GPST_LAYOUT_HWC;
}

static gpst_result codec_read_layout(codec* self, const codec_format* format, const uint8_t* data,
                                     size_t bytes, gpst_image* shape, codec_layout* layout, char* reason) {
    codec_clear_shape(shape);
    memset(layout, 0, sizeof *layout);
    const gpst_result result = format->read_header(data, bytes, shape, layout, reason);
    memcpy(self->note, layout->note, sizeof self->note);
    self->held_bytes = bytes + layout->decoder_bytes;
    return GPST_FAILED(result) ? result
                               : codec_check_limits(self, format->name, shape, bytes, layout, reason);
}

gpst_result codec_read_header(codec* self, const void* data, size_t bytes, const codec_raw* raw,
                              codec_kind* kind, gpst_image* shape, char* reason) {
    codec_clear_shape(shape);
    reason[0] = self->note[0] = '\0';
    *kind = CODEC_UNKNOWN;
    if (raw && raw->format != GPST_FORMAT_INVALID) {
        *kind = CODEC_RAW;
        return codec_read_raw(self, raw, bytes, shape, reason);
    }
    if (bytes == 0)
        return codec_fail(reason, GPST_ERROR_TRUNCATED, "the file is empty");
    const codec_format* format = codec_recognise((const uint8_t*)data, bytes);
    if (!format)
        return codec_refuse(gpst_picture_name(data, bytes), reason);
    *kind = format->kind;
    if (!format->available)
        return codec_not_available(format, reason);
    codec_layout layout;
    const gpst_result result =
        codec_read_layout(self, format, (const uint8_t*)data, bytes, shape, &layout, reason);
    if (GPST_FAILED(result))
        codec_clear_shape(shape);
    return result;
}

static gpst_result codec_decode_raw(const void* data, size_t bytes, const gpst_image* image, char* reason) {
    const size_t wanted = codec_plain_bytes(image);
    if (bytes != wanted)
        return codec_fail(reason, bytes < wanted ? GPST_ERROR_TRUNCATED : GPST_ERROR_FORMAT,
                          "raw: %zu bytes; %ux%u pixels are %zu", bytes, image->width, image->height, wanted);
    codec_read_plain(image, (const uint8_t*)data);
    return GPST_OK;
}

/* pitch 0 and the defaults resolved; nothing where the image breaks a rule. */
static gpst_result codec_resolve(const gpst_image* image, gpst_image* out, char* reason) {
    size_t bytes;
    if (GPST_FAILED(gpst_image_bytes(image, &bytes)))
        return codec_fail(reason, GPST_ERROR_ARGUMENT, "%s", gpst_last_reason());
    *out = *image;
    if (out->dtype == GPST_DTYPE_DEFAULT)
        out->dtype = GPST_DTYPE_U8;
    if (out->pitch_bytes == 0)
        out->pitch_bytes = (int64_t)gpst_image_row_bytes(image);
    return GPST_OK;
}

gpst_result codec_decode(codec* self, const void* data, size_t bytes, codec_kind kind,
                         const gpst_image* image, char* reason) {
    const codec_format* format = codec_find(kind);
    gpst_image shape, target;
    codec_layout layout;
    reason[0] = '\0';
    if (!format)
        return codec_fail(reason, GPST_ERROR_FORMAT, "not a file of a known kind");
    if (!format->available)
        return codec_not_available(format, reason);
    gpst_result result = codec_resolve(image, &target, reason);
    if (GPST_FAILED(result))
        return result;
    if (!target.data)
        return codec_fail(reason, GPST_ERROR_ARGUMENT, "%s: data=NULL: memory is required", format->name);
    if (kind == CODEC_RAW)
        return codec_decode_raw(data, bytes, &target, reason);
    result = codec_read_layout(self, format, (const uint8_t*)data, bytes, &shape, &layout, reason);
    if (GPST_FAILED(result))
        return result;
    if (shape.width != target.width || shape.height != target.height || shape.format != target.format ||
        shape.dtype != target.dtype || target.layout == GPST_LAYOUT_CHW)
        return codec_fail(reason, GPST_ERROR_ARGUMENT,
                          "%s: the image is not of the shape of the file (%ux%u)", format->name, shape.width,
                          shape.height);
    codec_room_take(self, layout.decoder_bytes);
    result = format->decode(self, (const uint8_t*)data, bytes, &target, reason);
    codec_room_give(layout.decoder_bytes);
    return result;
}

bool codec_read_icc(const void* data, size_t bytes, void** profile, size_t* profile_bytes) {
    const codec_format* const format = codec_recognise((const uint8_t*)data, bytes);
    *profile = NULL;
    *profile_bytes = 0;
    if (format && format->read_icc)
        return format->read_icc((const uint8_t*)data, bytes, profile, profile_bytes);
    if (GPST_FAILED(gpst_metadata_read_icc(data, bytes, NULL, profile_bytes)) || *profile_bytes == 0)
        return true;
    *profile = malloc(*profile_bytes);
    return *profile && !GPST_FAILED(gpst_metadata_read_icc(data, bytes, *profile, profile_bytes));
}

/* ---- the way out ------------------------------------------------------------------ */

size_t codec_encode_bound(codec_kind kind, const gpst_image* image, const codec_options* options) {
    const codec_format* format = codec_find(kind);
    size_t bytes;
    if (!format || !format->available || GPST_FAILED(gpst_image_bytes(image, &bytes)))
        return 0;
    return format->bound(image, options);
}

/* Is the profile of gray for gray pixels, of RGB for others? Readers warn of any other. WebP has no gray. */
static bool codec_profile_fits(codec_kind kind, const gpst_image* image, const codec_options* options) {
    const bool gray = image->format == GPST_FORMAT_GRAY && kind != CODEC_WEBP;
    return options->icc && options->icc_bytes > 128 &&
           memcmp((const char*)options->icc + 16, gray ? "GRAY" : "RGB ", 4) == 0;
}

gpst_result codec_encode(codec* self, codec_kind kind, const gpst_image* image, const codec_options* options,
                         void* out, size_t* bytes, char* reason) {
    const codec_format* format = codec_find(kind);
    gpst_image source;
    reason[0] = '\0';
    if (!format)
        return codec_fail(reason, GPST_ERROR_ARGUMENT, "kind=%d: no such format", (int)kind);
    if (!format->available)
        return codec_not_available(format, reason);
    const gpst_result result = codec_resolve(image, &source, reason);
    if (GPST_FAILED(result))
        return result;
    const size_t bound = format->bound(&source, options);
    if (bound == 0)
        return codec_fail(reason, GPST_ERROR_UNSUPPORTED,
                          "%s: cannot hold this image (or quality, or chroma): it holds interleaved channels of %s",
                          format->name, format->holds);
    if (*bytes < bound)
        return codec_fail(reason, GPST_ERROR_ARGUMENT, "%s: room for %zu bytes; %zu are needed", format->name,
                          *bytes, bound);
    codec_options used = *options;
    if (!codec_profile_fits(kind, &source, options))
        used.icc = NULL, used.icc_bytes = 0;
    return format->encode(self, &source, &used, (uint8_t*)out, bytes, reason);
}
