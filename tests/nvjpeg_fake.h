/* tests/nvjpeg_fake.h -- the stand-in for nvJPEG (tests/fake/nvjpeg.c) in place of the real one, files for it, and what
   libturbojpeg makes of them. For tests on devices whose memory is the host's. */
#ifndef GPST_NVJPEG_FAKE_H
#define GPST_NVJPEG_FAKE_H

#include "test_device.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/pictures/nvjpeg_internal.h"
#endif

#if defined(GPST_TOOL_JPEG)
#include <dlfcn.h>

#include <turbojpeg.h>

#define FAKE_GUARD 0xA5

typedef struct fake_calls {
    void (*reset)(void);
    int (*live)(void);
    int (*misused)(void);
    int (*prepared)(void);
    int (*decoded)(int backend); /* 1 HYBRID, 2 GPU_HYBRID, 3 the hardware */
} fake_calls;

static inline void* fake_find(void* library, const char* name) {
    void* const found = dlsym(library, name);
    assert_non_null(found);
    return found;
}

/* Loaded, and named to those who look for nvJPEG from now on. */
static inline const fake_calls* fake_load(void) {
    static fake_calls calls;
    if (calls.reset)
        return &calls;
    void* const library = dlopen(GPST_TEST_FAKES "/nvjpeg.so", RTLD_NOW);
    assert_non_null(library);
    const char* const names[] = {"reset", "live", "misused", "prepared", "decoded"};
    void* found[5];
    for (int i = 0; i < 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "fake_nvjpeg_%s", names[i]);
        found[i] = fake_find(library, name);
    }
    memcpy(&calls, found, sizeof calls);
    assert_int_equal(setenv("GPUSTAGE_LIBNVJPEG", GPST_TEST_FAKES "/nvjpeg.so", 1), 0);
    return &calls;
}

/* The n-th call from now on, of one function or "*", fails with that status; NULL: none does. */
static inline void fake_fail(const char* function, int n, int status) {
    char text[96];
    fake_load()->reset();
    snprintf(text, sizeof text, "%s:%d:%d", function ? function : "", n, status);
    assert_int_equal(function ? setenv("FAKE_NVJPEG_FAIL", text, 1) : unsetenv("FAKE_NVJPEG_FAIL"), 0);
}

/* ---- files -------------------------------------------------------------------------------------------------------- */

static inline int fake_sampling(gpst_format format) {
    switch (format) {
    case GPST_FORMAT_JPEG_444:
        return TJSAMP_444;
    case GPST_FORMAT_JPEG_422:
        return TJSAMP_422;
    case GPST_FORMAT_JPEG_420:
        return TJSAMP_420;
    case GPST_FORMAT_JPEG_440:
        return TJSAMP_440;
    default:
        return TJSAMP_GRAY;
    }
}

typedef struct fake_file {
    uint32_t width, height;
    gpst_format format;
    bool progressive;
    unsigned char* data;
    unsigned long bytes;
} fake_file;

static inline fake_file fake_file_make(uint32_t width, uint32_t height, gpst_format format, bool progressive) {
    fake_file file = {width, height, format, progressive, NULL, 0};
    uint64_t random = width * 65537u + height;
    uint8_t* const pixels = (uint8_t*)malloc((size_t)width * height * 3);
    for (size_t i = 0; i < (size_t)width * height * 3; i++)
        pixels[i] = (uint8_t)(i / 3 % width * 150 / width + (i / 3 / width) % 64 + test_random(&random) % 40);
    tjhandle const turbo = tjInitCompress();
    assert_int_equal(tjCompress2(turbo, pixels, (int)width, 0, (int)height, TJPF_RGB, &file.data, &file.bytes,
                                 fake_sampling(format), 90, progressive ? TJFLAG_PROGRESSIVE : 0),
                     0);
    tjDestroy(turbo);
    free(pixels);
    return file;
}

static inline void fake_file_free(fake_file* file) { tjFree(file->data); }

/* ---- planes --------------------------------------------------------------------------------------------------------- */

/* Room for a file's planes, `gap` samples of chroma more in each row, full of guards. */
typedef struct fake_planes {
    gpst_image image;
    size_t bytes;
} fake_planes;

static inline fake_planes fake_planes_make(const fake_file* file, uint32_t gap) {
    fake_planes planes;
    memset(&planes, 0, sizeof planes);
    gpst_image* const image = &planes.image;
    const bool wide = file->format == GPST_FORMAT_JPEG_422 || file->format == GPST_FORMAT_JPEG_420;
    image->width = file->width, image->height = file->height, image->format = file->format;
    image->pitch_bytes = gap ? (int64_t)gpst_image_row_bytes(image) + gap * (wide ? 2 : 1) : 0;
    assert_int_equal(gpst_image_bytes(image, &planes.bytes), GPST_OK);
    image->data = malloc(planes.bytes + 64);
    memset(image->data, FAKE_GUARD, planes.bytes + 64);
    return planes;
}

static inline void fake_planes_free(fake_planes* planes) { free(planes->image.data); }

/* What libturbojpeg writes, and what the decoder that it stands for changes: 3 nothing. */
static inline void fake_planes_expect(const fake_file* file, int backend, fake_planes* planes) {
    const gpst_image image = gpsti_image_resolved(&planes->image);
    const int sampling = fake_sampling(file->format);
    uint8_t* at[3] = {(uint8_t*)image.data, NULL, NULL};
    int pitches[3] = {(int)image.pitch_bytes, 0, 0};
    if (sampling != TJSAMP_GRAY) {
        const gpsti_image_chroma chroma = gpsti_image_chroma_of(&image);
        pitches[1] = pitches[2] = (int)chroma.pitch_bytes;
        at[1] = at[0] + chroma.luma_rows * (uint64_t)image.pitch_bytes;
        at[2] = at[1] + chroma.height * (uint64_t)chroma.pitch_bytes;
    }
    tjhandle const turbo = tjInitDecompress();
    assert_int_equal(
        tjDecompressToYUVPlanes(turbo, file->data, file->bytes, at, (int)file->width, pitches, (int)file->height, 0),
        0);
    tjDestroy(turbo);
    for (int p = 0; p < (sampling == TJSAMP_GRAY ? 1 : 3) && backend != 3; p++) {
        const size_t width = (size_t)tjPlaneWidth(p, (int)file->width, sampling);
        const size_t n = width * (size_t)tjPlaneHeight(p, (int)file->height, sampling);
        for (size_t i = backend == 2 ? 0 : 1; i < n; i += 64)
            at[p][i / width * (size_t)pitches[p] + i % width] ^= 1;
    }
}

/* Every byte, gaps and guards too. */
static inline void fake_planes_check(const fake_file* file, int backend, const fake_planes* planes, uint32_t gap) {
    fake_planes wanted = fake_planes_make(file, gap);
    fake_planes_expect(file, backend, &wanted);
    assert_memory_equal(planes->image.data, wanted.image.data, wanted.bytes + 64);
    fake_planes_free(&wanted);
}

/* ---- calls ---------------------------------------------------------------------------------------------------------- */

static inline gpsti_nvjpeg_op fake_op(gpsti_nvjpeg_operation operation, gpsti_nvjpeg* self,
                                      gpsti_nvjpeg_worker* worker) {
    gpsti_nvjpeg_op op;
    memset(&op, 0, sizeof op);
    op.operation = operation;
    op.self = self;
    op.worker = worker;
    return op;
}

static inline gpst_result fake_do(gpst_stream* stream, gpsti_nvjpeg_operation operation, gpsti_nvjpeg* self,
                                  gpsti_nvjpeg_worker* worker) {
    gpsti_nvjpeg_op op = fake_op(operation, self, worker);
    return gpsti_nvjpeg_call(stream, &op);
}

/* A library that has begun on a device, and a worker. At the end nothing is left. */
typedef struct fake_kit {
    device_kit device;
    gpsti_nvjpeg* self;
    gpsti_nvjpeg_worker worker;
} fake_kit;

static inline void fake_kit_load(fake_kit* kit, const char* device) {
    memset(kit, 0, sizeof *kit);
    fake_load()->reset();
    kit_start(&kit->device, device);
    assert_int_equal(gpsti_nvjpeg_load(kit->device.device->host, &kit->self), GPST_OK);
}

static inline void fake_kit_start(fake_kit* kit, const char* device) {
    fake_kit_load(kit, device);
    assert_int_equal(fake_do(kit->device.stream, GPSTI_NVJPEG_BEGIN, kit->self, NULL), GPST_OK);
}

static inline void fake_kit_end(fake_kit* kit) {
    gpsti_nvjpeg_worker nothing;
    memset(&nothing, 0, sizeof nothing);
    assert_int_equal(fake_do(kit->device.stream, GPSTI_NVJPEG_WORKER_END, kit->self, &kit->worker), GPST_OK);
    assert_memory_equal(&kit->worker, &nothing, sizeof nothing);
    assert_int_equal(fake_do(kit->device.stream, GPSTI_NVJPEG_END, kit->self, NULL), GPST_OK);
    gpsti_nvjpeg_unload(kit->self);
    assert_int_equal(fake_load()->live(), 0);
    assert_int_equal(fake_load()->misused(), 0);
    kit_end(&kit->device);
}

static inline const char* fake_device(int index) { return index == 0 ? "cpu" : "sim:launch_us=0"; }
#define FAKE_EACH_DEVICE(kit)      \
    for (int d_ = 0; d_ < 2; d_++) \
        for (bool once_ = (fake_kit_start(&(kit), fake_device(d_)), true); once_; fake_kit_end(&(kit)), once_ = false)

static inline gpsti_nvjpeg_file fake_input(const fake_file* file, const fake_planes* planes) {
    gpsti_nvjpeg_file input;
    memset(&input, 0, sizeof input);
    input.data = file->data;
    input.bytes = file->bytes;
    input.progressive = file->progressive;
    input.to = planes->image;
    input.result = GPST_ERROR_INTERNAL;
    return input;
}

#endif
#endif
