/* core/pictures/jpeg_encode.c -- pixels to JPEG files through libturbojpeg. */
#include "../base/platform_internal.h"

#include "jpeg_internal.h"

/* Parameters of tj3Set. */
#define GPSTI_TJ3_OPTIMISE 11
#define GPSTI_TJ3_RESTART_ROWS 19

typedef struct gpsti_jpeg_sampling {
    int number;               /* TJSAMP_* */
    uint32_t width, height;   /* of an MCU */
    uint32_t bytes_each; /* of the bound: bytes a pixel */
} gpsti_jpeg_sampling;

GPSTI_PRIVATE gpsti_jpeg_sampling gpsti_jpeg_sampling_of(const gpst_image* image, const gpst_jpeg_encode_desc* desc) {
    static const gpsti_jpeg_sampling gray = {3, 8, 8, 2}, all = {0, 8, 8, 6}, half_wide = {1, 16, 8, 4},
                                     quarter = {2, 16, 16, 3}, half_high = {4, 8, 16, 4};
    if (image->format == GPST_FORMAT_GRAY)
        return gray;
    const gpst_format chroma = desc ? desc->chroma : GPST_FORMAT_INVALID;
    return chroma == GPST_FORMAT_JPEG_422   ? half_wide
           : chroma == GPST_FORMAT_JPEG_420 ? quarter
           : chroma == GPST_FORMAT_JPEG_440 ? half_high
                                            : all;
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_check_desc(const char* function, const gpst_jpeg_encode_desc* desc) {
    if (!desc)
        return GPST_OK;
    GPSTI_FAIL_IF(desc->quality > 100, GPST_ERROR_ARGUMENT, "%s: desc.quality=%u: must be 1 to 100, or 0", function,
                  desc->quality);
    GPSTI_FAIL_IF(desc->chroma != GPST_FORMAT_INVALID && !gpsti_image_is_jpeg(desc->chroma), GPST_ERROR_ARGUMENT,
                  "%s: desc.chroma=%d: must be JPEG_444, _422, _420 or _440", function, (int)desc->chroma);
    GPSTI_FAIL_IF(desc->restart_rows > 65535, GPST_ERROR_ARGUMENT, "%s: desc.restart_rows=%u: must be 65535 at most",
                  function, desc->restart_rows);
    return GPST_OK;
}

/* As tjBufSize has it, so that the library need not be there. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_find_bound(const char* function, const gpst_image* image,
                                                const gpst_jpeg_encode_desc* desc, size_t* bytes) {
    size_t extent = 0;
    GPSTI_FAIL_IF(!image || !bytes, GPST_ERROR_ARGUMENT, "%s: image and bytes: required", function);
    GPSTI_TRY(gpsti_jpeg_check_desc(function, desc));
    GPSTI_TRY(gpsti_image_extent(image, function, "image", &extent));
    const gpst_image from = gpsti_image_resolved(image);
    GPSTI_FAIL_IF(from.dtype != GPST_DTYPE_U8 || (from.layout != GPST_LAYOUT_HWC && from.format != GPST_FORMAT_GRAY) ||
                      from.format == GPST_FORMAT_TENSOR || gpsti_image_is_yuv(from.format) ||
                      from.width > GPST_MAX_SIDE || from.height > GPST_MAX_SIDE,
                  GPST_ERROR_UNSUPPORTED, "%s: image: JPEG holds u8 with interleaved colours and sides up to %d",
                  function, GPST_MAX_SIDE);
    GPSTI_TRY(gpsti_jpeg_check_pitch(&from, function, "image"));
    const gpsti_jpeg_sampling sampling = gpsti_jpeg_sampling_of(&from, desc);
    size_t across = 0, down = 0, most = 0;
    const bool fits = gpsti_size_round_up(from.width, sampling.width, &across) &&
                      gpsti_size_round_up(from.height, sampling.height, &down) && gpsti_size_mul(across, down, &most) &&
                      gpsti_size_mul(most, sampling.bytes_each, &most) && gpsti_size_add(most, 2048, &most);
    GPSTI_FAIL_IF(!fits, GPST_ERROR_OVERFLOW, "%s: image: a file of %ux%u pixels may not fit in memory", function,
                  from.width, from.height);
    *bytes = most;
    return GPST_OK;
}

GPST_API gpst_result gpst_jpeg_bound(const gpst_image* image, const gpst_jpeg_encode_desc* desc, size_t* bytes) {
    if (bytes)
        *bytes = 0;
    return gpsti_jpeg_find_bound("gpst_jpeg_bound", image, desc, bytes);
}

/* The encoder of a picture, with its parameters. One that optimises does nothing else: it leaves its tables behind,
   which may lack codes of the next picture. */
GPSTI_PRIVATE gpst_result gpsti_jpeg_encoder(gpst_jpeg* self, const gpst_jpeg_encode_desc* desc, void** out) {
    const bool optimise = desc && desc->optimise;
    const uint32_t restart_rows = desc ? desc->restart_rows : 0;
    *out = self->encoder;
    GPSTI_TRY(gpsti_jpeg_check_options(desc, "gpst_jpeg_encode: desc"));
    if (!self->calls->set)
        return GPST_OK;
    if (optimise && !self->optimiser) {
        self->optimiser = self->calls->init_compress();
        if (!self->optimiser)
            return gpsti_jpeg_fail(self, NULL, GPST_ERROR_MEMORY);
    }
    *out = optimise ? self->optimiser : self->encoder;
    if (self->calls->set(*out, GPSTI_TJ3_OPTIMISE, optimise) != 0 ||
        self->calls->set(*out, GPSTI_TJ3_RESTART_ROWS, (int)restart_rows) != 0)
        return gpsti_jpeg_fail(self, *out, GPST_ERROR_UNSUPPORTED);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_encode_image(gpst_jpeg* self, const gpst_image* image,
                                                  const gpst_jpeg_encode_desc* desc, uint8_t* out, size_t room,
                                                  size_t* used) {
    const gpst_image from = gpsti_image_resolved(image);
    const gpsti_jpeg_rows rows = gpsti_jpeg_rows_of(&from);
    const gpsti_jpeg_sampling sampling = gpsti_jpeg_sampling_of(&from, desc);
    const int width = (int)from.width, height = (int)from.height;
    const uint32_t quality = desc && desc->quality ? desc->quality : GPSTI_JPEG_QUALITY;
    const unsigned long bound = self->calls->bound(width, height, sampling.number);
    unsigned long bytes = (unsigned long)room;
    unsigned char* file = out;
    void* encoder = NULL;
    GPSTI_FAIL_IF(bound > room, GPST_ERROR_UNSUPPORTED,
                  "gpst_jpeg_encode: libturbojpeg wants room for %lu bytes; gpst_jpeg_bound knows of less", bound);
    GPSTI_TRY(gpsti_jpeg_encoder(self, desc, &encoder));
    if (self->calls->compress(encoder, rows.data, width, rows.pitch, height, gpsti_jpeg_pixels(from.format),
                              &file, &bytes, sampling.number, (int)quality, rows.flags | GPSTI_TJ_NO_REALLOC) != 0)
        return gpsti_jpeg_fail(self, encoder, GPST_ERROR_UNSUPPORTED);
    GPSTI_FAIL_IF(file != out || bytes > room, GPST_ERROR_INTERNAL,
                  "gpst_jpeg_encode: libturbojpeg tells of %lu bytes in room for %zu", bytes, room);
    *used = bytes;
    return GPST_OK;
}

GPST_API gpst_result gpst_jpeg_encode(gpst_jpeg* jpeg, const gpst_image* image, const gpst_jpeg_encode_desc* desc,
                                      void* out, size_t* bytes) {
    const char* const function = "gpst_jpeg_encode";
    GPSTI_FAIL_IF(!jpeg || !image || !out || !bytes, GPST_ERROR_ARGUMENT, "%s: jpeg, image, out and bytes: required",
                  function);
    const size_t room = *bytes;
    size_t bound = 0;
    *bytes = 0;
    GPSTI_TRY(gpsti_jpeg_find_bound(function, image, desc, &bound));
    GPSTI_TRY(gpsti_image_check(image, function, "image"));
    GPSTI_FAIL_IF(room < bound, GPST_ERROR_ARGUMENT, "%s: bytes=%zu: %zu are needed", function, room, bound);
    return gpsti_jpeg_encode_image(jpeg, image, desc, (uint8_t*)out, room, bytes);
}
