/* bench/prefetch.c -- what a cache of decoded frames is worth: JPEG frames through one WARP stage, twice, read and
   decoded each time by the pipeline, or lent by a prefetcher that keeps all of them. The files lie in a folder of their
   own under TMPDIR, are in the page cache, and are removed.

   prefetch [--rounds N] [--frames N] [--backend NAME] */
#define _GNU_SOURCE
#include "measure.h"

#include "../gpustage.h"

#include <unistd.h>

enum { MOST_FRAMES = 1000, WIDTH = 1216, HEIGHT = 608, N_WAYS = 2, N_PASSES = 2, N_VIEWS = 4, VIEW_SIDE = 512 };
#define FRAME_BYTES ((size_t)WIDTH * HEIGHT * 3)

static const char* const ways[N_WAYS] = {"read and decode", "prefetcher"};

typedef struct prefetch_bench {
    const char* backend;
    char directory[256];
    char paths[MOST_FRAMES][320];
    const char* list[MOST_FRAMES];
    uint32_t n_frames, n_made, n_rounds;
    gpst_warp* warp;
    uint64_t n_ok;
    double seconds[N_WAYS][N_PASSES][MEASURE_MAX_ROUNDS];
    double decode_ms[N_WAYS][N_PASSES][MEASURE_MAX_ROUNDS]; /* a frame, of threads' time */
    gpst_prefetch_info info; /* of the last round */
} prefetch_bench;

/* ---- frames ------------------------------------------------------------------------------------- */

/* Clouds and noise, another offset each: a file has about as many bytes as a photograph of that size. */
static void paint(uint8_t* pixels, uint32_t frame) {
    uint32_t noise = frame + 1;
    for (uint32_t y = 0; y < HEIGHT; y++)
        for (uint32_t x = 0; x < WIDTH; x++)
            for (uint32_t c = 0; c < 3; c++) {
                noise = noise * 1664525u + 1013904223u;
                const uint32_t wave = ((x + frame * 7) * (y + 50) / 90 + c * 40) & 255;
                *pixels++ = (uint8_t)((wave < 128 ? wave : 255 - wave) + (noise >> 28));
            }
}

static bool make_frames(prefetch_bench* self) {
    const char* const root = getenv("TMPDIR");
    const size_t room = FRAME_BYTES + 65536;
    uint8_t* const pixels = (uint8_t*)malloc(FRAME_BYTES);
    uint8_t* const file = (uint8_t*)malloc(room);
    gpst_jpeg_encode_desc desc = GPST_ZERO;
    gpst_image image = GPST_ZERO;
    gpst_jpeg* jpeg = NULL;
    snprintf(self->directory, sizeof self->directory, "%.200s/gpustage-prefetch-XXXXXX", root ? root : "/tmp");
    bool ok = pixels && file && mkdtemp(self->directory) && gpst_jpeg_create(NULL, &jpeg) == GPST_OK;
    desc.quality = 90;
    desc.chroma = GPST_FORMAT_JPEG_420;
    image.data = pixels;
    image.width = WIDTH;
    image.height = HEIGHT;
    image.format = GPST_FORMAT_RGB;
    while (ok && self->n_made < self->n_frames) {
        char* const path = self->paths[self->n_made];
        size_t bytes = room;
        snprintf(path, sizeof self->paths[0], "%s/f%04u.jpg", self->directory, (unsigned)self->n_made);
        self->list[self->n_made] = path;
        paint(pixels, self->n_made++);
        ok = gpst_jpeg_encode(jpeg, &image, &desc, file, &bytes) == GPST_OK;
        FILE* const stream = ok ? fopen(path, "wb") : NULL;
        ok = stream && fwrite(file, 1, bytes, stream) == bytes;
        ok = stream && fclose(stream) == 0 && ok;
    }
    gpst_jpeg_destroy(jpeg);
    free(pixels);
    free(file);
    return ok;
}

static void remove_frames(const prefetch_bench* self) {
    for (uint32_t i = 0; i < self->n_made; i++)
        unlink(self->paths[i]);
    rmdir(self->directory);
}

static bool make_warp(prefetch_bench* self) {
    static const gpst_view views[N_VIEWS] = {
        {0, 0, 0, 90, 0}, {90, 0, 0, 90, 0}, {180, 0, 0, 90, 0}, {270, 0, 0, 90, 0}};
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = N_VIEWS;
    desc.width = desc.height = VIEW_SIDE;
    desc.format = GPST_FORMAT_RGB;
    return gpst_warp_create(&desc, &self->warp) == GPST_OK;
}

/* ---- passes ------------------------------------------------------------------------------------- */

static gpst_result next_path(void* user_data, uint64_t index, gpst_input* out) {
    const prefetch_bench* const self = (const prefetch_bench*)user_data;
    if (index >= self->n_frames)
        return GPST_END;
    out->path = self->paths[index];
    return GPST_OK;
}

static gpst_result count(void* user_data, const gpst_item* item) {
    prefetch_bench* const self = (prefetch_bench*)user_data;
    self->n_ok += item->result == GPST_OK;
    return GPST_OK;
}

static int64_t decode_ns_of(const gpst_stats* stats) {
    for (uint32_t s = 0; s < stats->n_stages; s++)
        if (!strcmp(stats->stages[s].name, "decode"))
            return stats->stages[s].busy_ns;
    return 0;
}

/* One pass over all frames; where prefetch is NULL the pipeline reads and decodes. */
static bool run_pass(prefetch_bench* self, gpst_context* context, gpst_prefetch* prefetch, double* seconds,
                     int64_t* decode_ns) {
    static gpst_stats stats;
    gpst_stage_desc stages[3];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    uint32_t n = 0;
    if (!prefetch) {
        gpst_stage_read(&stages[n++]);
        gpst_stage_decode(&stages[n++], 0, NULL);
    }
    gpst_stage_warp(&stages[n++], 0, 1, self->warp);
    desc.stages = stages;
    desc.n_stages = n;
    desc.source = prefetch ? gpst_prefetch_source : next_path;
    desc.source_user_data = prefetch ? (void*)prefetch : (void*)self;
    desc.n_items_expected = self->n_frames;
    desc.sink = count;
    desc.sink_user_data = self;
    self->n_ok = 0;
    const double start = measure_now();
    bool ok = gpst_pipeline_create(context, &desc, &pipeline) == GPST_OK && gpst_pipeline_run(pipeline) == GPST_OK;
    *seconds = measure_now() - start;
    ok = ok && self->n_ok == self->n_frames;
    gpst_pipeline_query_stats(pipeline, &stats);
    *decode_ns = decode_ns_of(&stats);
    gpst_pipeline_destroy(pipeline);
    return ok;
}

/* On a virtual machine memory that nobody has had for a while comes from the host, at 0.2 to 0.5 GB/s: that is done
   before the clock runs, by a context that has as much of the same kind and gives it back. */
static bool touch_memory(const prefetch_bench* self) {
    static gpst_buffer buffers[MOST_FRAMES];
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pool* pool = NULL;
    uint32_t n = 0;
    desc.backend = self->backend;
    bool ok = gpst_context_create(&desc, &context) == GPST_OK && gpst_pool_create(context, NULL, &pool) == GPST_OK;
    while (ok && n < self->n_frames) {
        ok = gpst_pool_acquire(pool, FRAME_BYTES, 0, &buffers[n]) == GPST_OK;
        if (ok)
            memset(buffers[n++].data, 1, FRAME_BYTES);
    }
    while (n > 0)
        gpst_pool_release(pool, &buffers[--n]);
    gpst_pool_destroy(pool);
    gpst_context_destroy(context);
    return ok;
}

static bool run_way(prefetch_bench* self, int way, uint32_t round) {
    static const gpst_decode_desc decode = GPST_ZERO;
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_prefetch_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_prefetch* prefetch = NULL;
    int64_t decoded_ns = 0;
    context_desc.backend = self->backend;
    desc.paths = self->list;
    desc.n_paths = self->n_frames;
    desc.walk_order = GPST_CAMERAS_BY_FRAME;
    desc.max_bytes = (uint64_t)self->n_frames * FRAME_BYTES;
    desc.pinned = true;
    desc.decode = &decode;
    bool ok = touch_memory(self) && gpst_context_create(&context_desc, &context) == GPST_OK;
    ok = ok && (way == 0 || gpst_prefetch_create(context, &desc, &prefetch) == GPST_OK);
    for (int pass = 0; ok && pass < N_PASSES; pass++) {
        int64_t ns = 0;
        ok = run_pass(self, context, prefetch, &self->seconds[way][pass][round], &ns);
        if (prefetch) {
            gpst_prefetch_query_info(prefetch, &self->info);
            ns = self->info.decode_ns - decoded_ns;
            decoded_ns = self->info.decode_ns;
        }
        self->decode_ms[way][pass][round] = (double)ns / 1e6 / self->n_frames;
    }
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
    return ok;
}

/* ---- the table ---------------------------------------------------------------------------------- */

/* The second pass read and decoded again takes so many times as long, round by round. */
static measure_spread gain_of(const prefetch_bench* self, int way, int pass) {
    double ratios[MEASURE_MAX_ROUNDS];
    for (uint32_t r = 0; r < self->n_rounds; r++)
        ratios[r] = self->seconds[0][1][r] / self->seconds[way][pass][r];
    return measure_spread_of(ratios, self->n_rounds);
}

static void print_rows(const prefetch_bench* self) {
    for (int way = 0; way < N_WAYS; way++)
        for (int pass = 0; pass < N_PASSES; pass++) {
            const measure_spread s = measure_spread_of(self->seconds[way][pass], self->n_rounds);
            const measure_spread d = measure_spread_of(self->decode_ms[way][pass], self->n_rounds);
            const measure_spread g = gain_of(self, way, pass);
            printf("%-16s %4d  %6.2f (%.2f..%.2f) %8.0f %9.2f  %5.2f (%.2f..%.2f)\n", ways[way], pass + 1, s.median,
                   s.min, s.max, self->n_frames / s.median, d.median, g.median, g.min, g.max);
        }
    printf("last round: %llu decoded, %llu kept, %llu late, %llu missed, %.0f MiB of frames, %.0f MiB of the budget, "
           "%.2f s of decoding saved\n",
           (unsigned long long)self->info.decoded, (unsigned long long)self->info.kept,
           (unsigned long long)self->info.late, (unsigned long long)self->info.misses,
           (double)self->info.bytes / 1048576, (double)self->info.charged_bytes / 1048576,
           (double)self->info.saved_ns / 1e9);
}

static bool parse(prefetch_bench* self, int argc, char** argv) {
    self->backend = "cpu";
    self->n_frames = 240;
    self->n_rounds = 5;
    for (int i = 1; i < argc; i += 2) {
        const bool rounds = !strcmp(argv[i], "--rounds"), frames = !strcmp(argv[i], "--frames");
        const long most = rounds ? MEASURE_MAX_ROUNDS : MOST_FRAMES;
        char* end = NULL;
        const long n = i + 1 < argc && (rounds || frames) ? strtol(argv[i + 1], &end, 10) : 0;
        if (i + 1 < argc && !strcmp(argv[i], "--backend"))
            self->backend = argv[i + 1];
        else if (!end || *end || n < 1 || n > most)
            return false;
        else
            *(rounds ? &self->n_rounds : &self->n_frames) = (uint32_t)n;
    }
    return true;
}

int main(int argc, char** argv) {
    static prefetch_bench self;
    if (!parse(&self, argc, argv)) {
        fprintf(stderr, "usage: %s [--rounds N] [--frames N] [--backend NAME]\n", argv[0]);
        return 1;
    }
    bool ok = make_warp(&self) && make_frames(&self);
    printf("%s\n%s: %u JPEG frames of %dx%d to %d views of %dx%d, medians of %u rounds (min..max)\n"
           "%-16s %4s  %6s                %8s %9s  %s\n",
           gpst_build_info(), self.backend, (unsigned)self.n_frames, (int)WIDTH, (int)HEIGHT, (int)N_VIEWS,
           (int)VIEW_SIDE, (int)VIEW_SIDE, (unsigned)self.n_rounds, "frames by", "pass", "s", "frames/s",
           "decode ms", "as fast as decoding again");
    for (uint32_t round = 0; ok && round < self.n_rounds; round++)
        for (int way = 0; ok && way < N_WAYS; way++)
            ok = run_way(&self, (way + (int)round) % N_WAYS, round);
    if (ok)
        print_rows(&self);
    else
        fprintf(stderr, "prefetch: %s\n", gpst_last_reason()[0] ? gpst_last_reason() : "frames cannot be made");
    remove_frames(&self);
    gpst_warp_destroy(self.warp);
    return ok ? 0 : 1;
}
