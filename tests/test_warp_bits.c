/* tests/test_warp_bits.c -- every loop against the per-pixel reference, bit for bit, between protected pages; and one
   hash of it all that every build must give (--hash prints it alone; --levels what GPUSTAGE_CPU may name here). */
#include "test_warp_bits.h"

/* What every compiler, option and machine must compute. A change of any formula changes it: then say so in
   the change log and put the new value here. */
#define HASH_OF_ALL 0xeaa5e3c648638b05u

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
    printf("%u cases at %d levels\n", count.n_cases, (int)gpsti_simd_level_query() + 1);
    assert_true(count.n_cases > 1000);
}

static void every_build_gives_the_same_hash(void** state) {
    (void)state;
    const tally count = run_all(1);
    if (count.hash != HASH_OF_ALL)
        fail_msg("hash %016llx, expected %016llx", (unsigned long long)count.hash,
                 (unsigned long long)HASH_OF_ALL);
}

/* Tensors whose last pixels need the last luma and chroma of their rows, and just not those behind. */
static void tensors_from_nv12_give_the_bits_of_the_reference(void** state) {
    static const uint32_t sizes[][2] = {{64, 32}, {64, 16}, {130, 65}, {260, 65}, {7, 4},
                                        {4, 2},   {3, 2},   {2, 1},    {64, 64},  {280, 64}};
    enum { N_SIZES = sizeof sizes / sizeof sizes[0] };
    uint64_t seed = test_seed(22);
    tally count = {0, 0};
    arenas a;
    (void)state;
    a.source = arena_open(), a.mask = arena_open(), a.rows = arena_open(), a.reference = arena_open();
    for (size_t i = 0; i < ARENA_BYTES; i++)
        a.source.begin[i] = (uint8_t)test_random(&seed);
    for (uint32_t choice = 0; choice < N_SIZES * N_SIZES * 3; choice++) {
        const uint32_t *across = sizes[choice % N_SIZES], *down = sizes[choice / N_SIZES % N_SIZES];
        gpst_warp_desc desc = GPST_ZERO;
        gpst_image source = GPST_ZERO;
        desc.map = GPST_MAP_RESIZE;
        desc.width = across[1], desc.height = down[1];
        desc.format = choice & 1 ? GPST_FORMAT_RGB : GPST_FORMAT_BGR;
        desc.dtype = GPST_DTYPE_F32;
        desc.layout = GPST_LAYOUT_CHW;
        desc.siting = (gpst_siting)(choice / (N_SIZES * N_SIZES));
        source.width = across[0], source.height = down[0];
        source.format = GPST_FORMAT_NV12;
        run_case(&a, &desc, &source, &seed, &count);
    }
    arena_close(a.source), arena_close(a.mask), arena_close(a.rows), arena_close(a.reference);
}

/* What is made smaller and larger by axes in steps of vectors: rows whose last pixels are needed, bytes and tensors. */
static void resizes_of_packed_pixels_give_the_bits_of_the_reference(void** state) {
    static const uint32_t sizes[][2] = {{64, 5}, {71, 16}, {130, 33}, {263, 65}, {200, 9}, {6, 4}};
    static const gpst_format packed[] = {GPST_FORMAT_RGB, GPST_FORMAT_RGBA, GPST_FORMAT_BGR, GPST_FORMAT_BGRA};
    enum { N_SIZES = sizeof sizes / sizeof sizes[0] };
    uint64_t seed = test_seed(23);
    tally count = {0, 0};
    arenas a;
    (void)state;
    a.source = arena_open(), a.mask = arena_open(), a.rows = arena_open(), a.reference = arena_open();
    for (size_t i = 0; i < ARENA_BYTES; i++)
        a.source.begin[i] = (uint8_t)test_random(&seed);
    for (uint32_t choice = 0; choice < N_SIZES * N_SIZES * 16; choice++) {
        const uint32_t *from = sizes[choice % N_SIZES], *to = sizes[choice / N_SIZES % N_SIZES];
        const uint32_t rest = choice / (N_SIZES * N_SIZES);
        gpst_warp_desc desc = GPST_ZERO;
        gpst_image source = GPST_ZERO;
        desc.map = GPST_MAP_RESIZE;
        desc.width = to[0], desc.height = to[1];
        desc.format = rest & 1 ? GPST_FORMAT_RGB : GPST_FORMAT_BGR;
        desc.dtype = rest & 2 ? GPST_DTYPE_F32 : GPST_DTYPE_U8;
        desc.layout = rest & 2 ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
        desc.has_scale = (rest & 2) != 0 && (test_random(&seed) & 1) != 0;
        for (int c = 0; c < 4; c++)
            desc.scale[c] = (float)(c + 1) / 64.0f, desc.bias[c] = (float)c - 1.5f;
        source.width = from[0], source.height = from[1];
        source.format = packed[rest / 4];
        run_case(&a, &desc, &source, &seed, &count);
    }
    arena_close(a.source), arena_close(a.mask), arena_close(a.rows), arena_close(a.reference);
}

/* Windows of a few taps and of many, columns near each other and far apart, every store of bytes and floats. */
static void areas_of_bytes_give_the_bits_of_the_reference(void** state) {
    static const uint32_t sizes[][2] = {{960, 64}, {300, 65}, {131, 64}, {64, 130}, {9, 4}};
    static const gpst_format formats[] = {GPST_FORMAT_GRAY, GPST_FORMAT_RGB, GPST_FORMAT_BGRA, GPST_FORMAT_NV12,
                                          GPST_FORMAT_I420};
    static const gpst_dtype stores[] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F32};
    static const gpst_convention conventions[] = {GPST_CONVENTION_NATIVE, GPST_CONVENTION_OPENCV,
                                                  GPST_CONVENTION_TORCH};
    uint64_t seed = test_seed(24);
    tally count = {0, 0};
    arenas a;
    (void)state;
    a.source = arena_open(), a.mask = arena_open(), a.rows = arena_open(), a.reference = arena_open();
    for (size_t i = 0; i < ARENA_BYTES; i++)
        a.source.begin[i] = (uint8_t)test_random(&seed);
    for (uint32_t choice = 0; choice < 5 * 5 * 3 * 3; choice++) {
        gpst_warp_desc desc = GPST_ZERO;
        gpst_image source = GPST_ZERO;
        desc.map = GPST_MAP_RESIZE;
        desc.filter = GPST_FILTER_AREA;
        desc.convention = conventions[choice / 75];
        desc.width = sizes[choice % 5][1], desc.height = 3;
        desc.dtype = stores[choice / 25 % 3];
        desc.has_scale = desc.dtype == GPST_DTYPE_I8;
        for (int c = 0; c < 4; c++)
            desc.scale[c] = 1.5f, desc.bias[c] = -190.0f;
        source.format = formats[choice / 5 % 5];
        desc.format = source.format == GPST_FORMAT_GRAY ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
        source.width = sizes[choice % 5][0], source.height = choice % 2 ? 7 : 61;
        run_case(&a, &desc, &source, &seed, &count);
    }
    arena_close(a.source), arena_close(a.mask), arena_close(a.rows), arena_close(a.reference);
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
    args.sources = &source;
    args.n_sources = 1;
    args.outputs = &outputs[1];
    args.n_outputs = 2;
    args.first_output = 1;
    exec.n_threads = 1;
    exec.bytes = 0;
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
        cmocka_unit_test(tensors_from_nv12_give_the_bits_of_the_reference),
        cmocka_unit_test(resizes_of_packed_pixels_give_the_bits_of_the_reference),
        cmocka_unit_test(areas_of_bytes_give_the_bits_of_the_reference),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(the_callers_mode_changes_nothing),
    };
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        printf("%016llx\n", (unsigned long long)run_all(1).hash);
        return 0;
    }
    if (argc > 1 && strcmp(argv[1], "--levels") == 0) {
        static const char* const levels[] = {"portable", "avx2", "avx512"};
        for (int level = 0; level <= (int)gpsti_simd_level_query(); level++)
            printf("%s\n", levels[level]);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
