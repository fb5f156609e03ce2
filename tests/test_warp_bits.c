/* tests/test_warp_bits.c -- every loop against the per-pixel reference, bit for bit, between protected pages;
   and one hash of it all that every build must give (--hash prints it alone). */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/warp_pixel_internal.h"
#endif

#include <sys/mman.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)1 << 18)

/* What every compiler, option and machine must compute. A change of any formula changes it: then say so in
   the change log and put the new value here. */
#define HASH_OF_ALL 0xeaa5e3c648638b05u

typedef struct arena {
    uint8_t* begin;
} arena;

static arena arena_open(void) {
    arena a;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t* whole =
        (uint8_t*)mmap(NULL, ARENA_BYTES + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(whole != MAP_FAILED);
    a.begin = whole + page;
    assert_int_equal(mprotect(a.begin, ARENA_BYTES, PROT_READ | PROT_WRITE), 0);
    return a;
}

static void arena_close(arena a) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    munmap(a.begin - page, ARENA_BYTES + 2 * page);
}

/* Puts image against the page before the arena or the one behind it, with rows apart by chance. */
static void place_image(arena a, gpst_image* image, bool at_end, uint64_t* seed) {
    const int64_t unit = gpst_dtype_bytes(image->dtype);
    const int64_t gap = (test_random(seed) & 1) ? 0 : unit * (int64_t)(test_random(seed) % 14);
    size_t bytes = 0;
    image->pitch_bytes = 0;
    image->pitch_bytes = (int64_t)gpst_image_row_bytes(image) + gap;
    if (test_random(seed) & 1)
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

static uint64_t fnv(uint64_t hash, const uint8_t* bytes, size_t n) {
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ bytes[i]) * 0x100000001b3u;
    return hash;
}

static gpst_view view_of(double yaw, double pitch, double roll, double hfov, double vfov) {
    gpst_view view = GPST_ZERO;
    view.yaw = yaw;
    view.pitch = pitch;
    view.roll = roll;
    view.hfov = hfov;
    view.vfov = vfov;
    return view;
}

/* Poles looked at straight, seams, the least and the widest view, and anything. */
static gpst_view pick_view(uint64_t* seed) {
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
static gpst_image moved(const gpst_image* image, arena from, arena to) {
    gpst_image other = *image;
    other.data = to.begin + ((uint8_t*)image->data - from.begin);
    return other;
}

/* Runs one desc on one source at every level, against the reference. The whole arena is compared, so a byte
   touched outside the rows is seen. */
static void run_case(const arenas* a, gpst_warp_desc* desc, gpst_image* source, uint64_t* seed,
                     tally* count) {
    gpst_warp* warp = NULL;
    if (desc->mask.data) {
        desc->mask.width = source->width;
        desc->mask.height = source->height;
        place_image(a->mask, &desc->mask, (test_random(seed) & 1) != 0, seed);
    }
    place_image(a->source, source, (test_random(seed) & 1) != 0, seed);
    if (GPST_FAILED(gpst_warp_create(desc, &warp)))
        fail_msg("%s", gpst_last_reason());
    gpst_image output = GPST_ZERO;
    gpst_warp_query_output(warp, &output);
    place_image(a->rows, &output, (test_random(seed) & 1) != 0, seed);
    const gpst_image expected = moved(&output, a->rows, a->reference);
    if (GPST_FAILED(gpsti_warp_check(warp, source, &output, 1)))
        fail_msg("%s", gpst_last_reason());
    gpsti_warp_job job;
    memset(a->reference.begin, 0xa5, ARENA_BYTES);
    gpsti_warp_job_init(warp, source, &expected, 0, &job);
    gpsti_warp_rows_reference(&job, 0, job.height);
    const gpsti_warp_level highest = gpsti_warp_level_query();
    for (int level = GPSTI_WARP_PORTABLE; level <= (int)highest; level++) {
        memset(a->rows.begin, 0xa5, ARENA_BYTES);
        warp->level = (gpsti_warp_level)level;
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

static void pick_sizes(gpst_warp_desc* desc, gpst_image* source, uint64_t* seed) {
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

/* All combinations of the small choices, with sizes, views, pitches and places by chance. */
static tally run_all(uint64_t seed) {
    arenas a;
    tally count = {0, 0xcbf29ce484222325u};
    gpst_view view;
    a.source = arena_open(), a.mask = arena_open(), a.rows = arena_open(), a.reference = arena_open();
    for (size_t i = 0; i < ARENA_BYTES; i++) {
        const uint64_t random = test_random(&seed);
        a.source.begin[i] = (uint8_t)random;
        a.mask.begin[i] = (random >> 8) % 3 == 0 ? 0 : (uint8_t)(random >> 16);
    }
    /* bits: map, filter, convention, mask, scale, layout; then source format, output format, dtype */
    for (uint32_t choice = 0; choice < 64 * 4 * 4 * 3; choice++) {
        gpst_warp_desc desc = GPST_ZERO;
        gpst_image source = GPST_ZERO;
        desc.map = choice & 1 ? GPST_MAP_EQUIRECT : GPST_MAP_RESIZE;
        desc.filter = choice & 2 ? GPST_FILTER_NEAREST : GPST_FILTER_BILINEAR;
        desc.convention = choice & 4 ? GPST_CONVENTION_FFMPEG : GPST_CONVENTION_NATIVE;
        desc.mask.data = choice & 8 ? a.mask.begin : NULL;
        desc.mask.format = GPST_FORMAT_GRAY;
        desc.has_scale = (choice & 16) != 0;
        desc.layout = choice & 32 ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
        source.format = (gpst_format)(1 + choice / 64 % 4);
        desc.format = (gpst_format)(1 + choice / 256 % 4);
        desc.dtype = (gpst_dtype)(1 + choice / 1024);
        if (desc.map == GPST_MAP_RESIZE && (choice & 12))
            continue;
        if (desc.format == GPST_FORMAT_GRAY && source.format != GPST_FORMAT_GRAY)
            continue;
        for (int c = 0; c < 4; c++) { /* exact in any rounding mode */
            desc.scale[c] = (float)((double)(test_random(&seed) % 2048) / 512.0 - 1.0);
            desc.bias[c] = (float)((double)(test_random(&seed) % 2048) / 16.0 - 60.0);
        }
        pick_sizes(&desc, &source, &seed);
        view = pick_view(&seed);
        desc.views = &view;
        desc.n_views = desc.map == GPST_MAP_EQUIRECT ? 1 : 0;
        run_case(&a, &desc, &source, &seed, &count);
    }
    arena_close(a.source), arena_close(a.mask), arena_close(a.rows), arena_close(a.reference);
    return count;
}

static void loops_give_the_bits_of_the_reference(void** state) {
    (void)state;
    const tally count = run_all(test_seed(20));
    printf("%u cases at %d levels\n", count.n_cases, (int)gpsti_warp_level_query() + 1);
    assert_true(count.n_cases > 1000);
}

static void every_build_gives_the_same_hash(void** state) {
    (void)state;
    const tally count = run_all(1);
    if (count.hash != HASH_OF_ALL)
        fail_msg("hash %016llx, expected %016llx", (unsigned long long)count.hash,
                 (unsigned long long)HASH_OF_ALL);
}

/* Threads, bands and several outputs change nothing. */
static void threads_give_the_same_bits(void** state) {
    enum { W = 150, H = 75, VIEWS = 3, OUT_W = 70, OUT_H = 41 };
    static uint8_t pixels[W * H * 3];
    static float serial[VIEWS][OUT_W * OUT_H * 3], threaded[VIEWS][OUT_W * OUT_H * 3];
    uint64_t seed = test_seed(21);
    gpst_view views[VIEWS];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_image source = GPST_ZERO, outputs[VIEWS];
    gpst_warp* warp = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&seed);
    for (int v = 0; v < VIEWS; v++)
        views[v] = pick_view(&seed);
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = VIEWS;
    desc.width = OUT_W;
    desc.height = OUT_H;
    desc.format = GPST_FORMAT_BGR;
    desc.dtype = GPST_DTYPE_F32;
    source.data = pixels;
    source.width = W;
    source.height = H;
    source.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    for (uint32_t n_threads = 0; n_threads < 6; n_threads++) {
        memset(threaded, 0xa5, sizeof threaded);
        for (int v = 0; v < VIEWS; v++) {
            gpst_warp_query_output(warp, &outputs[v]);
            outputs[v].data = n_threads == 1 ? serial[v] : threaded[v];
        }
        if (n_threads == 0) { /* the serial result first */
            for (int v = 0; v < VIEWS; v++)
                outputs[v].data = serial[v];
            assert_int_equal(gpst_warp_run(warp, &source, outputs, VIEWS, 1), GPST_OK);
            for (int v = 0; v < VIEWS; v++)
                outputs[v].data = threaded[v];
        }
        assert_int_equal(gpst_warp_run(warp, &source, outputs, VIEWS, n_threads), GPST_OK);
        if (n_threads != 1)
            assert_memory_equal(threaded, serial, sizeof serial);
    }
    /* The engine's way in: some of the outputs, through the kernel entry. */
    gpsti_warp_args args;
    gpsti_exec exec;
    memset(&args, 0, sizeof args);
    memset(threaded, 0xa5, sizeof threaded);
    args.warp = warp;
    args.source = source;
    args.outputs = &outputs[1];
    args.n_outputs = 2;
    args.first_output = 1;
    exec.n_threads = 1;
    for (int v = 0; v < VIEWS; v++)
        outputs[v].data = threaded[v];
    assert_int_equal(gpsti_warp_kernel()->host(&args, &exec), GPST_OK);
    assert_memory_equal(threaded[1], serial[1], sizeof serial[1] * 2);
    assert_int_equal(((const uint8_t*)threaded[0])[0], 0xa5);
    gpst_warp_destroy(warp);
}

/* A caller who rounds upwards and flushes subnormals gets the same bits. */
static void the_callers_mode_changes_nothing(void** state) {
    (void)state;
#if defined(__x86_64__)
    const uint32_t saved = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(saved | 0x8040 | 0x4000);
    const tally count = run_all(1);
    __builtin_ia32_ldmxcsr(saved);
    assert_true(count.hash == HASH_OF_ALL);
#endif
}

int main(int argc, char** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_give_the_bits_of_the_reference),
        cmocka_unit_test(every_build_gives_the_same_hash),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(the_callers_mode_changes_nothing),
    };
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        printf("%016llx\n", (unsigned long long)run_all(1).hash);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
