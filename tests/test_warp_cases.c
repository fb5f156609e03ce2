/* tests/test_warp_cases.c -- every loop against the per-pixel reference for what the first table
   (test_warp_bits.c) does not hold: family by family, each with a hash that every build must give (--hash prints them alone). */
#include "test_warp_bits.h"

/* One case: what the choice says, the rest by chance. */
typedef struct kit {
    arenas a;
    gpst_warp_desc desc;
    gpst_image source;
    gpst_view view;
} kit;

typedef struct family {
    const char* name;
    uint32_t n_choices;
    bool (*choose)(kit* k, uint32_t choice, uint64_t* seed); /* false: no such case */
    uint64_t hash;
} family;

/* Takes the next choice of n. */
static uint32_t take(uint32_t* choice, uint32_t n) {
    const uint32_t taken = *choice % n;
    *choice /= n;
    return taken;
}

/* 0 or 1 as a bool: has_scale, a float's worth of scale and bias that is exact in any rounding mode. */
static void pick_scale(kit* k, uint64_t* seed, bool has_scale) {
    k->desc.has_scale = has_scale;
    for (int c = 0; c < 4; c++) {
        k->desc.scale[c] = (float)((double)(test_random(seed) % 2048) / 512.0 - 1.0);
        k->desc.bias[c] = (float)((double)(test_random(seed) % 2048) / 16.0 - 60.0);
    }
}

static void pick_mask(kit* k, bool masked) {
    k->desc.mask.data = masked ? k->a.mask.begin : NULL;
    k->desc.mask.format = GPST_FORMAT_GRAY;
}

static void pick_map(kit* k, uint64_t* seed, gpst_map map) {
    k->desc.map = map;
    pick_sizes(&k->desc, &k->source, seed);
    k->view = pick_view(seed);
    k->desc.views = &k->view;
    k->desc.n_views = map == GPST_MAP_EQUIRECT ? 1 : 0;
}

/* ---- signed bytes, blue first ------------------------------------------------------------- */
static bool choose_bytes(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    const gpst_map map = take(&choice, 2) ? GPST_MAP_EQUIRECT : GPST_MAP_RESIZE;
    k->desc.filter = take(&choice, 2) ? GPST_FILTER_NEAREST : GPST_FILTER_BILINEAR;
    k->desc.layout = take(&choice, 2) ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    k->desc.dtype = dtypes[take(&choice, 4)];
    k->source.format = (gpst_format)(1 + take(&choice, 5));
    k->desc.format = (gpst_format)(1 + take(&choice, 5));
    const bool has_scale = k->desc.dtype == GPST_DTYPE_I8 || (test_random(seed) & 1) != 0;
    const bool is_new = k->desc.dtype == GPST_DTYPE_I8 || k->source.format == GPST_FORMAT_BGRA ||
                        k->desc.format == GPST_FORMAT_BGRA;
    pick_scale(k, seed, has_scale);
    pick_mask(k, map == GPST_MAP_EQUIRECT && (test_random(seed) & 1) != 0);
    pick_map(k, seed, map);
    return is_new && (k->desc.format != GPST_FORMAT_GRAY || k->source.format == GPST_FORMAT_GRAY);
}

/* What every compiler, option and machine must compute. A change of any formula changes it: then say so in
   the change log and put the new value here. */
static const family families[] = {
    {"bytes", 2 * 2 * 2 * 4 * 5 * 5, choose_bytes, 0x25b9939f63d0346au},
};
#define N_FAMILIES (sizeof families / sizeof families[0])

static tally run_family(const family* f, uint64_t seed) {
    kit k;
    tally count = {0, 0xcbf29ce484222325u};
    memset(&k, 0, sizeof k);
    k.a.source = arena_open(), k.a.mask = arena_open(), k.a.rows = arena_open(), k.a.reference = arena_open();
    for (size_t i = 0; i < ARENA_BYTES; i++) {
        const uint64_t random = test_random(&seed);
        k.a.source.begin[i] = (uint8_t)random;
        k.a.mask.begin[i] = (random >> 8) % 3 == 0 ? 0 : (uint8_t)(random >> 16);
    }
    for (uint32_t choice = 0; choice < f->n_choices; choice++) {
        memset(&k.desc, 0, sizeof k.desc);
        memset(&k.source, 0, sizeof k.source);
        if (f->choose(&k, choice, &seed))
            run_case(&k.a, &k.desc, &k.source, &seed, &count);
    }
    arena_close(k.a.source), arena_close(k.a.mask), arena_close(k.a.rows), arena_close(k.a.reference);
    return count;
}

static void loops_give_the_bits_of_the_reference(void** state) {
    const uint64_t seed = test_seed(22);
    (void)state;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const tally count = run_family(&families[i], seed);
        printf("%s: %u cases at %d levels\n", families[i].name, count.n_cases,
               (int)gpsti_warp_level_query() + 1);
        assert_true(count.n_cases > families[i].n_choices / 4);
    }
}

static void every_build_gives_the_same_hashes(void** state) {
    (void)state;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const tally count = run_family(&families[i], 1);
        if (count.hash != families[i].hash)
            fail_msg("%s: hash %016llx, expected %016llx", families[i].name, (unsigned long long)count.hash,
                     (unsigned long long)families[i].hash);
    }
}

/* A caller who rounds upwards and flushes subnormals gets the same bits. */
static void the_callers_mode_changes_nothing(void** state) {
    (void)state;
#if defined(__x86_64__)
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const uint32_t saved = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(saved | 0x8040 | 0x4000);
        const tally count = run_family(&families[i], 1);
        __builtin_ia32_ldmxcsr(saved);
        assert_true(count.hash == families[i].hash);
    }
#endif
}

int main(int argc, char** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_give_the_bits_of_the_reference),
        cmocka_unit_test(every_build_gives_the_same_hashes),
        cmocka_unit_test(the_callers_mode_changes_nothing),
    };
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        for (size_t i = 0; i < N_FAMILIES; i++)
            printf("%s %016llx\n", families[i].name, (unsigned long long)run_family(&families[i], 1).hash);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
