/* bench/gpu/chain.cu -- a chain of small device stages as a detector has them (two resizes, threshold, close, smooth,
   box), through a pipeline, with graphs off, where they pay, and always. Frames are on the device, or come from the
   host. One unit, by nvcc:

       nvcc -O3 -std=c++17 -arch=native -I. bench/gpu/chain.cu -o gpu_chain && ./gpu_chain [--json FILE] */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include "gpu.h"

#include <string.h>

enum { FRAME, SMALL, SHARP, MASK, CLOSED, SOFT, BOX };
enum { N_STAGES = 6, N_ROUNDS = 5, N_AT_ONCE = 8 };

struct chain {
    uint32_t side;
    uint32_t n_items;
    bool on_device;
    gpst_warp *shrink, *grow;
    gpst_mask_desc threshold, close, smooth, box;
    gpst_image source;
    void* host_pixels;
};

static gpst_warp* resize(uint32_t side) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_RESIZE;
    desc.filter = GPST_FILTER_BILINEAR;
    desc.width = desc.height = side;
    desc.format = GPST_FORMAT_GRAY;
    BENCH_OK(gpst_warp_create(&desc, &warp));
    return warp;
}

static void chain_open(chain* self, uint32_t side, bool on_device, uint32_t n_items) {
    const size_t bytes = (size_t)side * side;
    memset(self, 0, sizeof *self);
    self->side = side;
    self->n_items = n_items;
    self->on_device = on_device;
    self->shrink = resize(side / 2);
    self->grow = resize(side);
    self->threshold.kind = GPST_MASK_THRESHOLD;
    self->threshold.threshold = 127.0f;
    self->close.kind = GPST_MASK_MORPH;
    self->close.morph = GPST_MORPH_CLOSE;
    self->close.size = 3;
    self->smooth.kind = GPST_MASK_SMOOTH;
    self->smooth.smooth = GPST_SMOOTH_GAUSSIAN;
    self->smooth.size = 3;
    self->box.kind = GPST_MASK_BOX;
    self->source.width = self->source.height = side;
    self->source.format = GPST_FORMAT_GRAY;
    self->source.data = bench_alloc_random(bytes, 5);
    if (on_device)
        return;
    self->host_pixels = malloc(bytes);
    BENCH_RT(cudaMemcpy(self->host_pixels, self->source.data, bytes, cudaMemcpyDeviceToHost));
    BENCH_RT(cudaFree(self->source.data));
    self->source.data = self->host_pixels;
}

static void chain_close(chain* self) {
    if (self->on_device)
        BENCH_RT(cudaFree(self->source.data));
    free(self->host_pixels);
    gpst_warp_destroy(self->shrink);
    gpst_warp_destroy(self->grow);
}

static void kept(void* user_data) { (void)user_data; }

static gpst_result next_frame(void* user_data, uint64_t index, gpst_input* out) {
    const chain* const self = (const chain*)user_data;
    out->frame = self->source;
    out->frame_on_device = self->on_device;
    out->release = kept;
    return index < self->n_items ? GPST_OK : GPST_END;
}

static gpst_result see(void* user_data, const gpst_item* item) {
    *(uint64_t*)user_data += item->result == GPST_OK;
    return GPST_OK;
}

/* Microseconds an item. */
static double run(chain* self, gpst_context* context, gpst_graph_use use, char* path, size_t path_bytes) {
    static gpst_stats stats;
    gpst_stage_desc stages[N_STAGES];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    uint64_t n_seen = 0;
    gpst_stage_warp(&stages[0], FRAME, SMALL, self->shrink);
    gpst_stage_warp(&stages[1], SMALL, SHARP, self->grow);
    gpst_stage_mask(&stages[2], SHARP, MASK, &self->threshold);
    gpst_stage_mask(&stages[3], MASK, CLOSED, &self->close);
    gpst_stage_mask(&stages[4], CLOSED, SOFT, &self->smooth);
    gpst_stage_mask(&stages[5], SOFT, BOX, &self->box);
    desc.stages = stages;
    desc.n_stages = N_STAGES;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(BOX, GPST_ON_HOST);
    desc.source = next_frame;
    desc.source_user_data = self;
    desc.sink = see;
    desc.sink_user_data = &n_seen;
    desc.n_slots = N_AT_ONCE;
    desc.graphs = use;
    desc.mode = GPST_RUN_ENGINE;
    BENCH_OK(gpst_pipeline_create(context, &desc, &pipeline));
    const double begin = bench_now_us();
    BENCH_OK(gpst_pipeline_run(pipeline));
    const double spent = bench_now_us() - begin;
    gpst_pipeline_query_stats(pipeline, &stats);
    gpst_pipeline_destroy(pipeline);
    if (n_seen != self->n_items || stats.device_fallbacks > 0) {
        fprintf(stderr, "%llu of %u items, %llu on the CPU\n", (unsigned long long)n_seen, self->n_items,
                (unsigned long long)stats.device_fallbacks);
        exit(1);
    }
    for (uint32_t i = 0; i < stats.n_paths; i++)
        if (!strcmp(stats.paths[i].what, "graph"))
            snprintf(path, path_bytes, "%.31s %.120s", stats.paths[i].taken, stats.paths[i].why_not);
    return spent / self->n_items;
}

static void compare(FILE* json, gpst_context* context, uint32_t side, bool on_device, uint32_t n_items) {
    static const char* const names[] = {"auto", "off", "always"};
    chain self;
    std::vector<double> times[3];
    char text[120], paths[3][160];
    chain_open(&self, side, on_device, n_items);
    for (int round = -1; round < N_ROUNDS; round++)
        for (int use = 0; use < 3; use++) {
            const double us = run(&self, context, (gpst_graph_use)use, paths[use], sizeof paths[use]);
            if (round >= 0)
                times[use].push_back(us);
        }
    const bench_spread off = bench_spread_of(times[1]);
    for (int use = 0; use < 3; use++) {
        const bench_spread spread = bench_spread_of(times[use]);
        snprintf(text, sizeof text, "%u x %u from the %s, graphs %s: rate %.3f of off", side, side,
                 on_device ? "device" : "host", names[use], off.median / spread.median);
        bench_row(json, text, spread, 0, 0);
        printf("    %s\n", paths[use]);
    }
    chain_close(&self);
}

int main(int argc, char** argv) {
    FILE* const json = argc > 2 && !strcmp(argv[1], "--json") ? fopen(argv[2], "w") : NULL;
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    desc.backend = "cuda";
    desc.require_backend = true;
    if (GPST_FAILED(gpst_context_create(&desc, &context))) {
        printf("%s\n", gpst_last_reason());
        return 77;
    }
    printf("%s\n", gpst_build_info());
    compare(json, context, 256, true, 30000);
    compare(json, context, 256, false, 30000);
    compare(json, context, 2048, true, 8000);
    gpst_context_destroy(context);
    if (json)
        fclose(json);
    return 0;
}
