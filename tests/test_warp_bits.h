/* tests/test_warp_bits.h -- one case of the warp at every level against the per-pixel reference, between
   protected pages: what the tests of the same bits share. */
#ifndef GPST_TEST_WARP_BITS_H
#define GPST_TEST_WARP_BITS_H

#include "test_warp.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/warp/warp_pixel_internal.h"
#endif

#include <sys/mman.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1 << 18)

typedef struct arena {
    uint8_t* begin;
} arena;

static inline arena arena_open(void) {
    arena a;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t* whole =
        (uint8_t*)mmap(NULL, ARENA_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(whole != MAP_FAILED);
    a.begin = whole + page;
    assert_int_equal(mprotect(a.begin, ARENA_BYTES, PROT_READ | PROT_WRITE), 0);
    return a;
}

static inline void arena_close(arena a) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(a.begin - page, ARENA_BYTES + 2 * page);
}

/* Puts image against the page before the arena or the one behind it, with rows apart by chance. */
static inline void place_image(arena a, gpst_image* image, bool at_end, uint64_t* seed) {
    const int64_t unit = gpst_dtype_bytes(image->dtype);
    /* of JPEG's planes a whole number of samples of chroma */
    const int64_t step = gpsti_image_is_jpeg(image->format) ? 2 : unit;
    const int64_t gap = (test_random(seed) & 1) ? 0 : step * (int64_t)(test_random(seed) % 14);
    size_t bytes = 0;
    image->pitch_bytes = 0;
    image->pitch_bytes = (int64_t)gpst_image_row_bytes(image) + gap;
    if ((test_random(seed) & 1) && !gpsti_image_is_yuv(image->format))
        image->pitch_bytes = -image->pitch_bytes;
    assert_int_equal(gpst_image_bytes(image, &bytes), GPST_OK);
    assert_true(bytes <= ARENA_BYTES);
    uint8_t* lowest = at_end ? a.begin + ARENA_BYTES - bytes : a.begin;
    if (at_end)
        lowest -= (uintptr_t)lowest % (uintptr_t)unit;
    image->data = lowest;
    const uint8_t* shifted = gpsti_image_lowest(image);
    image->data = lowest + (lowest - shifted);
}

typedef struct arenas {
    arena source, mask, rows, reference;
} arenas;

typedef struct tally {
    uint32_t n_cases;
    uint64_t hash;
} tally;

static inline uint64_t fnv(uint64_t hash, const uint8_t* bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static inline gpst_view view_of(double yaw, double pitch, double roll, double hfov, double vfov) {
    gpst_view view = GPST_ZERO;
    view.yaw = yaw;
    view.pitch = pitch;
    view.roll = roll;
    view.hfov = hfov;
    view.vfov = vfov;
    return view;
}

/* Poles looked at straight, seams, the least and the widest view, and anything. */
static inline gpst_view pick_view(uint64_t* seed) {
    const double a = (double)(int64_t)(test_random(seed) % 720) - 360,
                 b = (double)(int64_t)(test_random(seed) % 181) - 90;
    switch (test_random(seed) % 8) {
    case 0:
        return view_of(0, 0, 0, 0, 0);
    case 1:
        return view_of(180, 0, 0, 120, 0);
    case 2:
        return view_of(0, 90, 0, 90, 90);
    case 3:
        return view_of(45, -90, 30, 60, 0);
    case 4:
        return view_of(-179.5, 3, 10, 1e-4, 0);
    case 5:
        return view_of(12, 80, -5, 179.9, 179.9);
    default:
        return view_of(a, b, a - b, 40 + (b + 90) / 2, 0);
    }
}

/* The same image elsewhere: its memory is copied from one arena to the other, gaps and all. */
static inline gpst_image moved(const gpst_image* image, arena from, arena to) {
    gpst_image other = *image;
    other.data = to.begin + ((uint8_t*)image->data - from.begin);
    return other;
}

/* Runs one desc on one source at every level, against the reference. The whole arena is compared, so a byte
   touched outside the rows is seen. */
static inline void run_case(const arenas* a, gpst_warp_desc* desc, gpst_image* source, uint64_t* seed,
                            tally* count) {
    if (desc->mask.data) {
        desc->mask.width = source->width;
        desc->mask.height = source->height;
        place_image(a->mask, &desc->mask, (test_random(seed) & 1) != 0, seed);
    }
    place_image(a->source, source, (test_random(seed) & 1) != 0, seed);
    gpst_warp* const warp = make_warp(desc);
    gpst_image output = GPST_ZERO;
    gpst_warp_query_output(warp, &output);
    place_image(a->rows, &output, (test_random(seed) & 1) != 0, seed);
    const gpst_image expected = moved(&output, a->rows, a->reference);
    if (GPST_FAILED(gpsti_warp_check(warp, source, &output, 1)))
        fail_msg("%s", gpst_last_reason());
    gpsti_warp_job job;
    memset(a->reference.begin, 0xa5, ARENA_BYTES);
    gpsti_warp_job_init(warp, source, &expected, 0, &job);
    gpsti_warp_rows_reference(&job, 0, job.output_height);
    const gpsti_simd_level highest = gpsti_simd_level_query();
    for (int level = GPSTI_SIMD_PORTABLE; level <= (int)highest; level++) {
        memset(a->rows.begin, 0xa5, ARENA_BYTES);
        warp->level = (gpsti_simd_level)level;
        assert_int_equal(gpst_warp_run(warp, source, &output, 1, 1), GPST_OK);
        if (memcmp(a->rows.begin, a->reference.begin, ARENA_BYTES) != 0) {
            size_t at = 0;
            while (a->rows.begin[at] == a->reference.begin[at])
                at++;
            fail_msg("case %u, level %d: map %d filter %d convention %d dtype %d layout %d format %d scale "
                     "%d mask %d, "
                     "source %ux%u format %d, output %ux%u pitch %lld, byte %ld: %d, reference %d",
                     count->n_cases, level, (int)desc->map, (int)desc->filter, (int)desc->convention,
                     (int)desc->dtype, (int)desc->layout, (int)desc->format, desc->has_scale,
                     desc->mask.data != NULL, source->width, source->height, (int)source->format,
                     output.width, output.height, (long long)output.pitch_bytes,
                     (long)(a->rows.begin + at - (uint8_t*)output.data), a->rows.begin[at],
                     a->reference.begin[at]);
        }
    }
    size_t bytes = 0;
    assert_int_equal(gpst_image_bytes(&expected, &bytes), GPST_OK);
    count->hash = fnv(count->hash, gpsti_image_lowest(&expected), bytes);
    count->n_cases++;
    gpst_warp_destroy(warp);
}

static inline void pick_sizes(gpst_warp_desc* desc, gpst_image* source, uint64_t* seed) {
    static const uint32_t sources[10][2] = {{1, 1}, {2, 1},   {1, 2},    {3, 3},     {5, 4},
                                            {4, 2}, {64, 33}, {131, 67}, {200, 100}, {97, 1}};
    static const uint32_t outputs[10][2] = {{1, 1},  {2, 3},   {3, 2},  {63, 2}, {64, 3},
                                            {65, 2}, {129, 3}, {37, 9}, {1, 7},  {7, 1}};
    const uint32_t* from = sources[test_random(seed) % 10];
    const uint32_t* to = outputs[test_random(seed) % 10];
    source->width = from[0];
    source->height = from[1];
    desc->width = to[0];
    desc->height = to[1];
}

#endif
