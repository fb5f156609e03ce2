/* tests/test_codec.h -- what the tests of the command's codecs share: a file, pixels, and what was decoded. */
#ifndef GPST_TEST_CODEC_H
#define GPST_TEST_CODEC_H

#include "test.h"

#include "../tools/gpustage/codec.c"
#include "../tools/gpustage/codec_jpeg.c"
#include "../tools/gpustage/codec_limits.c"
#include "../tools/gpustage/codec_plain.c"
#include "../tools/gpustage/codec_png.c"
#include "../tools/gpustage/codec_tiff.c"
#include "../tools/gpustage/codec_tiff_stream.c"
#include "../tools/gpustage/codec_tiff_write.c"
#include "../tools/gpustage/codec_webp.c"

#if defined(GPST_TOOL_JPEG)
#include <turbojpeg.h>
#endif

#define ROOM ((size_t)1 << 20)
#define GUARD 64

static uint8_t file[ROOM + GUARD], pixels[ROOM], decoded[ROOM];
static char reason[CODEC_REASON_BYTES];
static codec* self;

static inline gpst_image make_image(void* data, uint32_t width, uint32_t height, gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width;
    image.height = height;
    image.format = format;
    return image;
}

/* Something smooth with a little noise. */
static inline void draw(const gpst_image* image, uint64_t seed) {
    const uint32_t channels = gpst_format_channels(image->format);
    const int64_t pitch = image->pitch_bytes ? image->pitch_bytes : (int64_t)gpst_image_row_bytes(image);
    for (uint32_t y = 0; y < image->height; y++)
        for (uint32_t x = 0; x < image->width; x++)
            for (uint32_t c = 0; c < channels; c++)
                ((uint8_t*)image->data)[(ptrdiff_t)(pitch * (int64_t)y) + (ptrdiff_t)(x * channels + c)] =
                    (uint8_t)(40 + 3 * (x % 30) + 2 * (y % 40) + 13 * c + (test_random(&seed) & 3));
}

static inline void expect(gpst_result wanted, gpst_result got) {
    if (wanted != got)
        fail_msg("%s instead of %s: %s", gpst_result_name(got), gpst_result_name(wanted), reason);
    if (GPST_FAILED(got))
        assert_string_not_equal(reason, "");
}

static inline gpst_result read_header(const void* data, size_t bytes, codec_kind* kind, gpst_image* shape) {
    return codec_read_header(self, data, bytes, NULL, kind, shape, reason);
}

/* Header and pixels from a copy that ends exactly where the file does. */
static inline gpst_result decode(const void* data, size_t bytes, codec_kind* kind, gpst_image* image) {
    void* copy = malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, data, bytes);
    gpst_result result = read_header(copy, bytes, kind, image);
    if (!GPST_FAILED(result)) {
        assert_true(codec_plain_bytes(image) <= ROOM);
        memset(decoded, 0xA5, sizeof decoded);
        image->data = decoded;
        result = codec_decode(self, copy, bytes, *kind, image, reason);
    }
    free(copy);
    return result;
}

/* A kind that the build lacks is skipped, and says so. */
static inline void need(codec_kind kind) {
    if (!codec_available(kind)) {
        print_message("%s is not compiled in\n", codec_extension(kind));
        skip();
    }
}

static inline int group_setup(void** state) {
    (void)state;
    self = codec_create();
    return self ? 0 : -1;
}

static inline int group_teardown(void** state) {
    (void)state;
    codec_destroy(self);
    codec_destroy(NULL);
    return 0;
}

#endif
