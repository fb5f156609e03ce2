/* tests/prefetch_kit.h -- picture files of all kinds that a prefetcher decodes, good and bad, and contexts for it: for
   tests of prefetched pictures and of pipelines that they are the source of. */
#ifndef GPST_PREFETCH_KIT_H
#define GPST_PREFETCH_KIT_H

#include "test_allocator.h"
#include "test_files.h"
#if !defined(GPST_TEST_AMALGAM)
#include "../core/prefetch/prefetch.h"
#endif

#include <stdlib.h>

enum { SET_MOST = 64, SET_FILE_BYTES = 1 << 20 };

typedef struct file_set {
    const char* name; /* its files begin with it */
    char rooms[SET_MOST][TEST_PATH_BYTES];
    const char* paths[SET_MOST];
    uint64_t n;
} file_set;

static uint8_t set_pixels[512 * 256 * 4], set_file[SET_FILE_BYTES];

GPSTI_PRIVATE void set_begin(file_set* self, const char* name) {
    self->name = name;
    self->n = 0;
}

GPSTI_PRIVATE bool set_has_jpeg(void) {
    gpst_jpeg* jpeg = NULL;
    const bool has = gpst_jpeg_create(NULL, &jpeg) == GPST_OK;
    gpst_jpeg_destroy(jpeg);
    return has;
}

GPSTI_PRIVATE void set_add_bytes(file_set* self, const char* extension, const void* data, size_t bytes) {
    char* const path = self->rooms[self->n];
    assert_true(self->n < SET_MOST);
    snprintf(path, TEST_PATH_BYTES, "%s/%s%02u.%s", test_directory, self->name, (unsigned)self->n, extension);
    test_file_make(path, data, bytes);
    self->paths[self->n++] = path;
}

/* Something smooth with a little noise. */
GPSTI_PRIVATE gpst_image set_paint(uint32_t width, uint32_t height, gpst_format format, gpst_dtype dtype, uint64_t seed) {
    gpst_image image = GPST_ZERO;
    image.data = set_pixels;
    image.width = width;
    image.height = height;
    image.format = format;
    image.dtype = dtype;
    const uint32_t n = width * gpst_format_channels(format);
    assert_true((size_t)n * height * gpst_dtype_bytes(dtype) <= sizeof set_pixels);
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t i = 0; i < n; i++) {
            const uint32_t value = (i * 2 + y * 3 + (uint32_t)(test_random(&seed) & 15)) & 255;
            if (dtype == GPST_DTYPE_F32)
                ((float*)(void*)set_pixels)[y * n + i] = (float)value / 256.0f;
            else if (dtype == GPST_DTYPE_U16)
                ((uint16_t*)(void*)set_pixels)[y * n + i] = (uint16_t)(value * 251);
            else
                set_pixels[y * n + i] = (uint8_t)value;
        }
    return image;
}

GPSTI_PRIVATE size_t set_encode_jpeg(uint32_t width, uint32_t height, gpst_format format, uint64_t seed) {
    const gpst_image image = set_paint(width, height, format, GPST_DTYPE_U8, seed);
    size_t bytes = sizeof set_file;
    gpst_jpeg* jpeg = NULL;
    assert_int_equal(gpst_jpeg_create(NULL, &jpeg), GPST_OK);
    assert_int_equal(gpst_jpeg_encode(jpeg, &image, NULL, set_file, &bytes), GPST_OK);
    gpst_jpeg_destroy(jpeg);
    return bytes;
}

/* An APP1 segment behind the first marker; the new length. */
GPSTI_PRIVATE size_t set_put_segment(size_t bytes, const void* data, size_t data_bytes) {
    const size_t length = data_bytes + 2;
    assert_true(bytes + length + 2 <= sizeof set_file);
    memmove(set_file + 2 + length + 2, set_file + 2, bytes - 2);
    set_file[2] = 0xff, set_file[3] = 0xe1;
    set_file[4] = (uint8_t)(length >> 8), set_file[5] = (uint8_t)length;
    memcpy(set_file + 6, data, data_bytes);
    return bytes + length + 2;
}

GPSTI_PRIVATE void set_add_jpeg(file_set* self, uint32_t width, uint32_t height, gpst_format format) {
    set_add_bytes(self, "jpg", set_file, set_encode_jpeg(width, height, format, self->n + 1));
}

GPSTI_PRIVATE void set_add_turned(file_set* self, uint32_t width, uint32_t height, uint8_t orientation) {
    uint8_t exif[] = {'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1,
                      1,   0x12, 0, 3, 0, 0, 0,   1,   0, 0,  0, 0, 0, 0, 0, 0};
    exif[25] = orientation;
    const size_t bytes = set_encode_jpeg(width, height, GPST_FORMAT_RGB, self->n + 1);
    set_add_bytes(self, "jpg", set_file, set_put_segment(bytes, exif, sizeof exif));
}

/* A part of a sphere of 160x80, taken with the camera turned. */
GPSTI_PRIVATE void set_add_part(file_set* self) {
    char xmp[1024];
    const int used = snprintf(
        xmp, sizeof xmp,
        "http://ns.adobe.com/xap/1.0/%c<x:xmpmeta xmlns:x=\"adobe:ns:meta/\"><rdf:RDF "
        "xmlns:rdf=\"http://www.w3.org/1999/02/22-rdf-syntax-ns#\"><rdf:Description "
        "xmlns:GPano=\"http://ns.google.com/photos/1.0/panorama/\" GPano:ProjectionType=\"equirectangular\" "
        "GPano:FullPanoWidthPixels=\"160\" GPano:FullPanoHeightPixels=\"80\" "
        "GPano:CroppedAreaImageWidthPixels=\"90\" GPano:CroppedAreaImageHeightPixels=\"40\" "
        "GPano:CroppedAreaLeftPixels=\"30\" GPano:CroppedAreaTopPixels=\"22\" GPano:PoseHeadingDegrees=\"40\" "
        "GPano:PosePitchDegrees=\"-12\" GPano:PoseRollDegrees=\"5\"/></rdf:RDF></x:xmpmeta>",
        0);
    assert_true(used > 0 && used < (int)sizeof xmp);
    const size_t bytes = set_encode_jpeg(90, 40, GPST_FORMAT_RGB, self->n + 1);
    set_add_bytes(self, "jpg", set_file, set_put_segment(bytes, xmp, (size_t)used));
}

GPSTI_PRIVATE void set_add_plain(file_set* self, gpst_file_kind kind, uint32_t width, uint32_t height, gpst_format format,
                          gpst_dtype dtype) {
    const gpst_image image = set_paint(width, height, format, dtype, self->n + 1);
    size_t bytes = sizeof set_file;
    assert_int_equal(gpst_picture_encode(kind, &image, set_file, &bytes), GPST_OK);
    set_add_bytes(self, kind == GPST_FILE_PNM ? "pnm" : "npy", set_file, bytes);
}

/* Of each kind, and a PNG, which only a function reads: its index. */
GPSTI_PRIVATE uint64_t set_add_kinds(file_set* self) {
    static const uint8_t png[] = {0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n', 7, 5, 3};
    set_add_jpeg(self, 64, 32, GPST_FORMAT_RGB);
    set_add_jpeg(self, 61, 33, GPST_FORMAT_GRAY);
    for (uint8_t orientation = 2; orientation <= 8; orientation++)
        set_add_turned(self, 57, 35, orientation);
    set_add_part(self);
    set_add_plain(self, GPST_FILE_PNM, 50, 20, GPST_FORMAT_RGB, GPST_DTYPE_U8);
    set_add_plain(self, GPST_FILE_PNM, 51, 21, GPST_FORMAT_GRAY, GPST_DTYPE_U16);
    set_add_plain(self, GPST_FILE_NPY, 40, 24, GPST_FORMAT_RGB, GPST_DTYPE_F32);
    set_add_plain(self, GPST_FILE_NPY, 44, 22, GPST_FORMAT_RGBA, GPST_DTYPE_U8);
    set_add_bytes(self, "png", png, sizeof png);
    return self->n - 1;
}

/* What decodes the PNG: 3 x 1 pixels of what is behind its first 8 bytes. */
GPSTI_PRIVATE gpst_image set_png_shape(void) {
    gpst_image shape = GPST_ZERO;
    shape.width = 3;
    shape.height = 1;
    shape.format = GPST_FORMAT_GRAY;
    return shape;
}

GPSTI_PRIVATE gpst_result set_png_func(void* user_data, const gpst_prefetch_file* file) {
    const gpst_image shape = set_png_shape();
    gpst_image picture;
    (void)user_data;
    if (file->bytes != 11)
        return gpst_task_fail(NULL, GPST_ERROR_FORMAT, "%u bytes are no PNG", (unsigned)file->bytes);
    const gpst_result result = gpst_prefetch_set_picture(file, &shape, &picture);
    if (result == GPST_OK)
        memcpy(picture.data, (const uint8_t*)file->data + 8, 3);
    return result;
}

GPSTI_PRIVATE gpst_context* set_context(const char* backend, uint64_t max_host_bytes, test_memory* memory) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    desc.n_workers = 2;
    desc.backend = backend;
#if defined(GPST_PIPELINE_KIT_H)
    char room[256];
    desc.backend = kit_backend("set_context", backend, room, sizeof room);
#endif
    desc.max_host_bytes = max_host_bytes;
    if (memory)
        desc.allocator = test_memory_hooks(memory);
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    return context;
}

GPSTI_PRIVATE gpst_prefetch_desc set_desc(const file_set* self, const gpst_decode_desc* decode) {
    gpst_prefetch_desc desc = GPST_ZERO;
    desc.paths = self->paths;
    desc.n_paths = self->n;
    desc.decode = decode;
    desc.n_in_flight = 2;
    return desc;
}

GPSTI_PRIVATE gpst_prefetch* set_open(gpst_context* context, const gpst_prefetch_desc* desc) {
    gpst_prefetch* prefetch = NULL;
    if (gpst_prefetch_create(context, desc, &prefetch) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    return prefetch;
}

GPSTI_PRIVATE gpst_prefetch_info set_info(gpst_prefetch* prefetch) {
    gpst_prefetch_info info;
    gpst_prefetch_query_info(prefetch, &info);
    return info;
}

GPSTI_PRIVATE const gpst_frame* get(gpst_prefetch* prefetch, uint64_t index) {
    const gpst_frame* frame = NULL;
    if (gpst_prefetch_get(prefetch, index, &frame) != GPST_OK)
        fail_msg("frame %u: %s", (unsigned)index, gpst_last_reason());
    return frame;
}

GPSTI_PRIVATE void pass(gpst_prefetch* prefetch, uint64_t n) {
    for (uint64_t k = 0; k < n; k++)
        gpst_prefetch_release(prefetch, get(prefetch, k));
}

/* Files of one size, for tests of memory. */
enum { N_ALIKE = 12, ALIKE_BYTES = 256 * 128 * 3 };

static file_set alike;

GPSTI_PRIVATE void add_alike(void) {
    set_begin(&alike, "alike");
    for (int k = 0; k < N_ALIKE; k++)
        set_add_jpeg(&alike, 256, 128, GPST_FORMAT_RGB);
}

/* ---- groups of tests ----------------------------------------------------------------------- */

GPSTI_PRIVATE int set_begin_empty(void** state) {
    (void)state;
    test_directory_make();
    return 0;
}

GPSTI_PRIVATE int set_begin_alike(void** state) {
    const int result = set_begin_empty(state);
    add_alike();
    return result;
}

GPSTI_PRIVATE int set_end(void** state) {
    (void)state;
    test_directory_remove();
    return 0;
}

GPSTI_PRIVATE int set_skip(void) {
    printf("no libturbojpeg: install libturbojpeg0\n");
    return GPST_TEST_SKIP;
}

#endif
