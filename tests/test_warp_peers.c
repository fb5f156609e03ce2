/* tests/test_warp_peers.c -- the conventions against what the projects they are named after gave: the cases and
   results of tests/golden, or of the folder GPST_GOLDEN (make peers-results: made anew, live). Draws the sources of
   make_goldens.py from the same seeds. */
#include "test.h"

#include <float.h>
#include <math.h>

#define MAX_SAMPLES (128 * 128 * 4)

typedef struct golden_case {
    char name[32], peer[16], convention[16], map[16], filter[16], source[8], store[8], bound[8];
    uint32_t channels, width, height, out_width, out_height;
    uint64_t seed;
    double limit, rest[6];
} golden_case;

static union {
    uint8_t bytes[MAX_SAMPLES];
    uint16_t shorts[MAX_SAMPLES];
    float floats[MAX_SAMPLES];
} source_pixels, golden;
static float table[MAX_SAMPLES];
static uint8_t our_bytes[MAX_SAMPLES];
static float our_floats[MAX_SAMPLES];

/* ---- sources ------------------------------------------------------------------------------------------ */
static void draw_noise(const golden_case* g) {
    uint64_t seed = g->seed;
    for (uint32_t i = 0; i < g->width * g->height * g->channels; i++) {
        const uint64_t z = test_random(&seed);
        if (strcmp(g->source, "u8") == 0)
            source_pixels.bytes[i] = (uint8_t)z;
        else if (strcmp(g->source, "u16") == 0)
            source_pixels.shorts[i] = (uint16_t)z;
        else
            source_pixels.floats[i] = (float)((double)(z >> 40) / 16777216.0);
    }
}

static void draw_smooth(const golden_case* g) {
    static uint8_t grid[MAX_SAMPLES];
    const uint32_t across = g->width / 4, n = g->channels;
    uint64_t seed = g->seed;
    for (uint32_t i = 0; i < across * (g->height / 4 + 1) * n; i++)
        grid[i] = (uint8_t)test_random(&seed);
    for (uint32_t i = 0; i < g->width * g->height * n; i++) {
        const uint32_t x = i / n % g->width, y = i / n / g->width, right = (x / 4 + 1) % across, c = i % n;
        const uint8_t *const above = grid + y / 4 * across * n + c, *const below = above + across * n;
        const uint32_t upper = above[x / 4 * n] * (4 - x % 4) + above[right * n] * (x % 4);
        const uint32_t lower = below[x / 4 * n] * (4 - x % 4) + below[right * n] * (x % 4);
        source_pixels.bytes[i] = (uint8_t)((upper * (4 - y % 4) + lower * (y % 4)) / 16);
    }
}

static void draw_table(const golden_case* g) {
    uint64_t seed = g->seed + 1;
    for (uint32_t i = 0; i < g->out_width * g->out_height * 2; i++)
        table[i] = (float)((double)(test_random(&seed) >> 40) / 16777216.0 * ((i % 2 ? g->height : g->width) + 4) - 2);
}

/* ---- ours --------------------------------------------------------------------------------------------- */
static int choice_of(const char* word, const char* const* words) {
    for (int i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return i + 1;
    fail_msg("cases.txt: \"%s\"?", word);
    return 0;
}

static gpst_warp_desc desc_of(const golden_case* g) {
    static const char* const maps[] = {"resize", "equirect", "roi", "affine", "rotate", "table", NULL};
    static const char* const fits[] = {"letterbox", "cover", NULL};
    static const char* const filters[] = {"nearest", "bilinear", "area", "bicubic", "bicubic-area", NULL};
    static const char* const conventions[] = {"native", "ffmpeg", "opencv", "torch", "py360", NULL};
    static const double mean[3] = {0.485, 0.456, 0.406}, std[3] = {0.229, 0.224, 0.225};
    gpst_warp_desc desc = GPST_ZERO;
    const bool fitted = strcmp(g->map, "letterbox") == 0 || strcmp(g->map, "cover") == 0;
    desc.map = fitted ? GPST_MAP_RESIZE : (gpst_map)choice_of(g->map, maps);
    desc.fit = fitted ? (gpst_fit)choice_of(g->map, fits) : GPST_FIT_STRETCH;
    desc.short_side = desc.fit == GPST_FIT_COVER ? (uint32_t)g->rest[0] : 0;
    for (int c = 0; desc.fit == GPST_FIT_LETTERBOX && c < 4; c++)
        desc.fill[c] = (float)g->rest[0];
    desc.filter = (gpst_filter)choice_of(g->filter, filters);
    desc.convention = (gpst_convention)choice_of(g->convention, conventions);
    desc.width = g->out_width, desc.height = g->out_height;
    desc.format = g->channels == 1 ? GPST_FORMAT_GRAY : g->channels == 3 ? GPST_FORMAT_RGB : GPST_FORMAT_RGBA;
    desc.dtype = strcmp(g->store, "u8") == 0 ? GPST_DTYPE_U8 : GPST_DTYPE_F32;
    desc.has_scale = strcmp(g->store, "norm") == 0;
    for (int c = 0; desc.has_scale && c < 3; c++)
        desc.scale[c] = (float)(1 / (255 * std[c])), desc.bias[c] = (float)(-mean[c] / std[c]);
    return desc;
}

static void run_ours(const golden_case* g) {
    gpst_warp_desc desc = desc_of(g);
    gpst_image source = GPST_ZERO, output = GPST_ZERO;
    gpst_view view = GPST_ZERO;
    gpst_affine affine;
    gpst_warp* warp = NULL;
    memcpy(affine.m, g->rest, sizeof affine.m);
    view.yaw = g->rest[0], view.pitch = g->rest[1], view.roll = g->rest[2];
    view.hfov = g->rest[3], view.vfov = g->rest[4];
    if (desc.map == GPST_MAP_EQUIRECT)
        desc.views = &view, desc.n_views = 1;
    if (desc.map == GPST_MAP_AFFINE)
        desc.affines = &affine, desc.n_affines = 1;
    if (desc.map == GPST_MAP_TABLE)
        desc.table = table;
    source.data = &source_pixels, source.width = g->width, source.height = g->height, source.format = desc.format;
    source.dtype = strcmp(g->source, "u8") == 0    ? GPST_DTYPE_U8
                   : strcmp(g->source, "u16") == 0 ? GPST_DTYPE_U16
                                                   : GPST_DTYPE_F32;
    if (GPST_FAILED(gpst_warp_create(&desc, &warp)))
        fail_msg("%s: %s", g->name, gpst_last_reason());
    gpst_warp_query_output(warp, &output);
    output.data = desc.dtype == GPST_DTYPE_U8 ? (void*)our_bytes : (void*)our_floats;
    memset(our_bytes, 0xa5, sizeof our_bytes), memset(our_floats, 0xa5, sizeof our_floats);
    if (GPST_FAILED(gpst_warp_run(warp, &source, &output, 1, 1)))
        fail_msg("%s: %s", g->name, gpst_last_reason());
    gpst_warp_destroy(warp);
}

/* ---- theirs ------------------------------------------------------------------------------------------- */
static const char* folder(void) {
    const char* const named = getenv("GPST_GOLDEN");
    return named ? named : "tests/golden";
}

/* False where the peer was not there to make it; the shape is make_goldens.py's. */
static bool read_golden(const golden_case* g) {
    char path[512], head[128], shape[48];
    const bool bytes = strcmp(g->store, "u8") == 0;
    const size_t n = (size_t)g->out_width * g->out_height * g->channels * (bytes ? 1 : 4);
    snprintf(path, sizeof path, "%s/%s.npy", folder(), g->name);
    snprintf(shape, sizeof shape, "'shape': (%u, %u, %u)", g->out_height, g->out_width, g->channels);
    FILE* const file = fopen(path, "rb");
    if (!file)
        return false;
    assert_int_equal(fread(head, 1, 128, file), 128);
    head[127] = 0;
    assert_non_null(strstr(head + 10, bytes ? "'|u1'" : "'<f4'"));
    assert_non_null(strstr(head + 10, shape));
    assert_int_equal(fread(&golden, 1, n, file), n);
    fclose(file);
    return true;
}

static bool agree(const golden_case* g) {
    const bool bytes = strcmp(g->store, "u8") == 0, psnr = strcmp(g->bound, "psnr") == 0;
    const uint32_t n = g->out_width * g->out_height * g->channels;
    double worst = 0, squares = 0;
    for (uint32_t i = 0; i < n; i++) {
        const double ours = bytes ? our_bytes[i] : (double)our_floats[i];
        const double off = fabs(ours - (bytes ? golden.bytes[i] : (double)golden.floats[i]));
        worst = fmax(worst, off == off ? off : DBL_MAX), squares += off * off;
    }
    const double decibels = squares > 0 ? 10 * log10(255.0 * 255.0 * n / squares) : 99.0;
    printf("%-21s %-6s worst %-9.3g", g->name, g->peer, worst);
    printf(psnr ? " PSNR %.1f dB (bound %g)\n" : " PSNR %.1f dB (bound %g at the worst)\n", decibels, g->limit);
    return psnr ? decibels >= g->limit : worst <= g->limit;
}

/* ---- the list ----------------------------------------------------------------------------------------- */
static bool parse(const char* line, golden_case* g) {
    double* const r = g->rest;
    unsigned long long seed = 0;
    memset(g, 0, sizeof *g);
    const int n =
        sscanf(line, "%31s %15s %15s %15s %15s %7s %7s %u %u %u %llu %u %u %7s %lf %lf %lf %lf %lf %lf %lf", g->name,
               g->peer, g->convention, g->map, g->filter, g->source, g->store, &g->channels, &g->width, &g->height,
               &seed, &g->out_width, &g->out_height, g->bound, &g->limit, &r[0], &r[1], &r[2], &r[3], &r[4], &r[5]);
    g->seed = seed;
    return n >= 15 && g->name[0] != '#';
}

static int run_list(uint32_t* n_missing, uint32_t* n_far) {
    char line[256];
    golden_case g;
    int n_run = 0;
    FILE* const list = fopen("tests/golden/cases.txt", "r");
    if (!list)
        return -1;
    while (fgets(line, sizeof line, list)) {
        if (!parse(line, &g))
            continue;
        if (!read_golden(&g)) {
            printf("%-21s %-6s not here\n", g.name, g.peer);
            ++*n_missing;
            continue;
        }
        if (strcmp(g.map, "equirect") == 0)
            draw_smooth(&g);
        else
            draw_noise(&g);
        draw_table(&g);
        run_ours(&g);
        n_run++;
        if (!agree(&g)) {
            printf("%s: too far from %s\n", g.name, g.peer);
            ++*n_far;
        }
    }
    fclose(list);
    return n_run;
}

static void conventions_agree_with_their_projects(void** state) {
    uint32_t n_missing = 0, n_far = 0;
    const int n_run = run_list(&n_missing, &n_far);
    (void)state;
    printf("%d cases, %u not here\n", n_run, n_missing);
    assert_int_equal(n_far, 0);
    assert_true(n_run >= (getenv("GPST_GOLDEN") ? 1 : 56));
    assert_true(getenv("GPST_GOLDEN") || n_missing == 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(conventions_agree_with_their_projects)};
    FILE* const list = fopen("tests/golden/cases.txt", "r");
    if (!list) {
        printf("skipped: tests/golden/cases.txt is not here: run it in the folder of the project\n");
        return GPST_TEST_SKIP;
    }
    fclose(list);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
