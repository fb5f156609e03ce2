/* tests/test_jpeg.h -- what the tests of JPEG with the real libturbojpeg share: files by direct calls of it, what was
   decoded, and the segments of a file. */
#ifndef GPST_TEST_JPEG_H
#define GPST_TEST_JPEG_H

#include "test_allocator.h"

#include <turbojpeg.h>

#define ROOM ((size_t)1 << 20)
#define GUARD 64

static uint8_t pixels[ROOM], wanted[ROOM], got[ROOM + 2 * GUARD], file[ROOM], broken[ROOM];
static gpst_jpeg* self;

static inline gpst_image image_of(void* data, uint32_t width, uint32_t height, gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width;
    image.height = height;
    image.format = format;
    return image;
}

/* Something smooth with a little noise, of 4 bytes a pixel. */
static inline void draw(uint32_t width, uint32_t height, uint64_t seed) {
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++)
            for (uint32_t c = 0; c < 4; c++)
                pixels[4 * ((size_t)y * width + x) + c] =
                    (uint8_t)(40 + 3 * (x % 30) + 2 * (y % 40) + 13 * c + (test_random(&seed) & 15));
}

/* A file by libturbojpeg itself, of pixels. */
static inline size_t compress(uint32_t width, uint32_t height, int format, int sampling, int flags) {
    tjhandle handle = tjInitCompress(); /* another each time: a progressive file would leave its tables to the next */
    unsigned char* out = file;
    unsigned long bytes = ROOM;
    assert_true(tjBufSize((int)width, (int)height, sampling) <= ROOM);
    draw(width, height, width * 131 + height);
    assert_int_equal(tjCompress2(handle, pixels, (int)width, 4 * (int)width, (int)height, format, &out, &bytes,
                                 sampling, 90, flags | TJFLAG_NOREALLOC),
                     0);
    tjDestroy(handle);
    return bytes;
}

static inline void expect(gpst_result right, gpst_result result) {
    if (right != result)
        fail_msg("%s instead of %s: %s", gpst_result_name(result), gpst_result_name(right), gpst_last_reason());
}

/* Decodes a copy that ends exactly where the file does. */
static inline gpst_result decode(const uint8_t* data, size_t bytes, gpst_damage on_damage, const gpst_image* picture,
                          gpst_jpeg_note* note) {
    gpst_jpeg_decode_desc desc = GPST_ZERO;
    uint8_t* const copy = (uint8_t*)malloc(bytes ? bytes : 1);
    assert_non_null(copy);
    memcpy(copy, data, bytes);
    desc.on_damage = on_damage;
    const gpst_result result = gpst_jpeg_decode(self, copy, bytes, &desc, picture, note);
    free(copy);
    return result;
}

static inline gpst_image rgb_of(const uint8_t* data, size_t bytes) {
    gpst_jpeg_info info;
    expect(GPST_OK, gpst_jpeg_read_header(data, bytes, &info));
    memset(got, 0xA5, sizeof got);
    return image_of(got, info.width, info.height, info.format);
}

/* What is decoded of the file at hand, strictly, is what libturbojpeg gives of it. */
static inline void decode_wanted(size_t bytes, uint32_t width, uint32_t height, int format) {
    tjhandle handle = tjInitDecompress();
    assert_int_equal(tjDecompress2(handle, file, bytes, wanted, (int)width, 0, (int)height, format,
                                   TJFLAG_STOPONWARNING),
                     0);
    tjDestroy(handle);
}

static const int samplings[] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_GRAY, TJSAMP_411};
static const gpst_format planes_of_sampling[] = {GPST_FORMAT_JPEG_444, GPST_FORMAT_JPEG_422, GPST_FORMAT_JPEG_420,
                                                 GPST_FORMAT_JPEG_440, GPST_FORMAT_GRAY,     GPST_FORMAT_INVALID};
static const uint32_t sizes[][2] = {{1, 1}, {1, 9}, {17, 5}, {64, 48}, {61, 47}};

/* ---- segments of the file at hand ---------------------------------------------------------------------- */

/* Where the n-th segment with this marker is; 0 = there is none. */
static inline size_t find(const uint8_t* data, size_t bytes, uint8_t marker, uint32_t n) {
    gpsti_jpeg_walk walk = gpsti_jpeg_walk_of(data, bytes);
    while (gpsti_jpeg_next(&walk))
        if (walk.marker == marker && n-- == 0)
            return walk.begin;
    return 0;
}

/* The file with bytes put in at a place. */
static inline size_t insert(const uint8_t* data, size_t bytes, size_t at, const void* more, size_t n_more) {
    memmove(broken, data, at);
    memmove(broken + at + n_more, data + at, bytes - at);
    memcpy(broken + at, more, n_more);
    return bytes + n_more;
}

static inline void clean(size_t bytes) {
    memcpy(broken, file, bytes);
}

static inline int group_setup(void** state) {
    (void)state;
    return gpst_jpeg_create(NULL, &self) == GPST_OK ? 0 : -1;
}

static inline int group_teardown(void** state) {
    (void)state;
    gpst_jpeg_destroy(self);
    return 0;
}

#endif
