/* tests/test_mask.h -- what the mask and quantise tests share: memory between protected pages, scores of every kind,
   a hash. */
#ifndef GPST_TEST_MASK_H
#define GPST_TEST_MASK_H

#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/mask/mask_pixel_internal.h"
#endif

#include <sys/mman.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1 << 18)

typedef struct arena { uint8_t* begin; } arena;

static inline arena arena_open(void) {
    arena a;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t* whole = (uint8_t*)mmap(NULL, ARENA_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(whole != MAP_FAILED);
    a.begin = whole + page;
    assert_int_equal(mprotect(a.begin, ARENA_BYTES, PROT_READ | PROT_WRITE), 0);
    return a;
}

static inline void arena_close(arena a) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(a.begin - page, ARENA_BYTES + 2 * page);
}

/* bytes against the page before the arena or the one behind it (as far as elements of unit bytes allow). */
static inline uint8_t* arena_place(arena a, size_t bytes, size_t unit, uint64_t* seed) {
    assert_true(bytes <= ARENA_BYTES);
    if (test_random(seed) & 1)
        return a.begin;
    uint8_t* lowest = a.begin + ARENA_BYTES - bytes;
    return lowest - (uintptr_t)lowest % unit;
}

/* The same place in another arena. */
static inline uint8_t* arena_moved(const void* p, arena from, arena to) {
    return to.begin + ((const uint8_t*)p - from.begin);
}

/* From one row to the next: without gaps, or with some. */
static inline int64_t pick_pitch(size_t row_bytes, size_t unit, uint64_t* seed) {
    return (int64_t)(row_bytes + ((test_random(seed) & 1) ? 0 : unit * (test_random(seed) % 14)));
}

/* A GRAY image in the arena; rows may go upwards. */
static inline gpst_image place_gray(arena a, uint32_t width, uint32_t height, gpst_dtype dtype, uint64_t* seed) {
    gpst_image image = GPST_ZERO;
    const size_t unit = gpst_dtype_bytes(dtype);
    size_t bytes = 0;
    image.width = width;
    image.height = height;
    image.format = GPST_FORMAT_GRAY;
    image.dtype = dtype;
    image.pitch_bytes = pick_pitch(width * unit, unit, seed);
    assert_int_equal(gpst_image_bytes(&image, &bytes), GPST_OK);
    uint8_t* lowest = arena_place(a, bytes, unit, seed);
    image.data = lowest;
    if (test_random(seed) & 1) {
        image.data = lowest + (size_t)(height - 1) * (size_t)image.pitch_bytes;
        image.pitch_bytes = -image.pitch_bytes;
    }
    return image;
}

/* Floats that are few (so that ties happen), any, or special. */
static inline float pick_f32(uint32_t kind, uint64_t* seed) {
    static const uint32_t special[] = {0x7fc00000, 0xffc00000, 0x7f800001, 0x7f800000, 0xff800000,
                                       0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x007fffff,
                                       0x00800000, 0x7f7fffff, 0xff7fffff, 0x3f800000};
    const uint64_t random = test_random(seed);
    if (kind == 0)
        return (float)((int32_t)(random % 7) - 3);
    if (kind == 1)
        return (float)((double)(int32_t)(uint32_t)random / 1e8);
    if (kind == 2)
        return gpsti_f32_from_bits((uint32_t)random);
    if (kind == 3)
        return gpsti_f32_from_bits(random & 1 ? 0x7fc12345 : 0xff800000);
    return gpsti_f32_from_bits(special[random % 14]);
}

static inline void fill_scores(void* data, size_t n, gpst_dtype dtype, uint32_t kind, uint64_t* seed) {
    for (size_t i = 0; i < n; i++) {
        const float value = pick_f32(kind, seed);
        const uint16_t half = kind == 2 ? (uint16_t)test_random(seed) : gpsti_f16_from_f32(value);
        if (dtype == GPST_DTYPE_F32)
            memcpy((uint8_t*)data + i * sizeof value, &value, sizeof value);
        else if (dtype == GPST_DTYPE_F16)
            memcpy((uint8_t*)data + i * sizeof half, &half, sizeof half);
        else
            ((uint8_t*)data)[i] = (uint8_t)test_random(seed);
    }
}

static inline uint64_t fnv(uint64_t hash, const uint8_t* bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

#define FNV_BEGIN 0xcbf29ce484222325u

static inline void expect_same(arena rows, arena reference, const char* what, uint32_t a, uint32_t b, uint32_t c) {
    size_t at = 0;
    if (memcmp(rows.begin, reference.begin, ARENA_BYTES) == 0)
        return;
    while (rows.begin[at] == reference.begin[at])
        at++;
    fail_msg("%s, case %u, level %u, %u: byte %lu is %d, reference %d", what, a, b, c, (unsigned long)at,
             rows.begin[at], reference.begin[at]);
}

/* The call must be refused with this text in the reason. */
static inline void expect_refused(gpst_result result, const char* text) {
    if (result != GPST_ERROR_ARGUMENT && result != GPST_ERROR_OVERFLOW)
        fail_msg("result %d, expected a refusal with '%s'", (int)result, text);
    if (!strstr(gpst_last_reason(), text))
        fail_msg("'%s' does not say '%s'", gpst_last_reason(), text);
}

#endif
