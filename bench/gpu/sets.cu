/* bench/gpu/sets.cu -- a warp and a mask of frames that are on the device and whose labels stay there, through a pipeline,
   against the same two kernels put on one stream by hand. Nothing crosses the link. One unit, by nvcc:

       nvcc -O3 -std=c++17 -arch=native -I. bench/gpu/sets.cu -o gpu_sets && ./gpu_sets [--json FILE] */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include "gpu.h"

#include <string.h>

enum { FRAME, SCORES, LABELS };
enum { WIDTH = 1920, HEIGHT = 1080, N_ROUNDS = 5, N_AT_ONCE = 12 };

struct work {
    gpst_device* device;
    gpst_warp* warp;
    gpst_mask_desc mask;
    gpst_memory *scores, *labels;
    gpst_image source, made, labelled;
    uint32_t n_items;
};

static void work_open(work* self, gpst_device* device, bool is_large) {
    gpst_warp_desc desc = GPST_ZERO;
    size_t bytes = 0;
    memset(self, 0, sizeof *self);
    self->device = device;
    desc.map = GPST_MAP_RESIZE;
    desc.filter = GPST_FILTER_AREA;
    desc.width = is_large ? WIDTH : 512;
    desc.height = is_large ? HEIGHT : 512;
    desc.format = GPST_FORMAT_RGB;
    desc.dtype = GPST_DTYPE_F32;
    desc.layout = GPST_LAYOUT_CHW;
    BENCH_OK(gpst_warp_create(&desc, &self->warp));
    self->mask.kind = GPST_MASK_ARGMAX; /* the strongest of three colours, at the frame's size */
    self->mask.width = WIDTH;
    self->mask.height = HEIGHT;
    self->source.width = WIDTH;
    self->source.height = HEIGHT;
    self->source.format = GPST_FORMAT_RGB;
    BENCH_OK(gpst_image_bytes(&self->source, &bytes));
    self->source.data = bench_alloc_random(bytes, 5);
    gpst_warp_query_output(self->warp, &self->made);
    BENCH_OK(gpst_image_bytes(&self->made, &bytes));
    BENCH_OK(gpst_memory_create(device, GPST_MEMORY_DEVICE, bytes, &self->scores));
    self->made.data = gpst_memory_data(self->scores);
    BENCH_OK(gpst_mask_query_output(&self->mask, &self->made, &self->labelled));
    BENCH_OK(gpst_image_bytes(&self->labelled, &bytes));
    BENCH_OK(gpst_memory_create(device, GPST_MEMORY_DEVICE, bytes, &self->labels));
    self->labelled.data = gpst_memory_data(self->labels);
    self->n_items = 20000;
}

static void work_close(work* self) {
    BENCH_RT(cudaFree(self->source.data));
    gpst_memory_destroy(self->scores);
    gpst_memory_destroy(self->labels);
    gpst_warp_destroy(self->warp);
}

/* Microseconds an item. */
static double by_hand(work* self) {
    gpst_stream* stream = NULL;
    BENCH_OK(gpst_stream_create(self->device, &stream));
    const double begin = bench_now_us();
    for (uint32_t n = 0; n < self->n_items; n++) {
        BENCH_OK(gpst_warp_enqueue(self->warp, &self->source, &self->made, 1, stream));
        BENCH_OK(gpst_mask_launch(&self->mask, &self->made, NULL, &self->labelled, gpst_stream_native(stream)));
    }
    BENCH_OK(gpst_stream_synchronize(stream));
    const double spent = bench_now_us() - begin;
    gpst_stream_destroy(stream);
    return spent / self->n_items;
}

static void kept(void* user_data) { (void)user_data; }

static gpst_result next_frame(void* user_data, uint64_t index, gpst_input* out) {
    const work* const self = (const work*)user_data;
    out->frame = self->source;
    out->frame_on_device = true;
    out->release = kept;
    return index < self->n_items ? GPST_OK : GPST_END;
}

static gpst_result see(void* user_data, const gpst_item* item) {
    *(uint64_t*)user_data += item->result == GPST_OK && item->sets[LABELS].on_device;
    return GPST_OK;
}

static double by_pipeline(work* self, gpst_context* context) {
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    static gpst_stats stats;
    uint64_t n_seen = 0;
    gpst_stage_warp(&stages[0], FRAME, SCORES, self->warp);
    gpst_stage_mask(&stages[1], SCORES, LABELS, &self->mask);
    desc.stages = stages;
    desc.n_stages = 2;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(LABELS, GPST_ON_DEVICE);
    desc.source = next_frame;
    desc.source_user_data = self;
    desc.sink = see;
    desc.sink_user_data = &n_seen;
    desc.n_slots = N_AT_ONCE;
    desc.mode = GPST_RUN_ENGINE;
    BENCH_OK(gpst_pipeline_create(context, &desc, &pipeline));
    const double begin = bench_now_us();
    BENCH_OK(gpst_pipeline_run(pipeline));
    const double spent = bench_now_us() - begin;
    gpst_pipeline_query_stats(pipeline, &stats);
    gpst_pipeline_destroy(pipeline);
    if (n_seen != self->n_items || stats.bytes_h2d != 0 || stats.bytes_d2h != 0) {
        fprintf(stderr, "%llu of %u items, %llu bytes up, %llu down: must be all, 0 and 0\n",
                (unsigned long long)n_seen, self->n_items, (unsigned long long)stats.bytes_h2d,
                (unsigned long long)stats.bytes_d2h);
        exit(1);
    }
    return spent / self->n_items;
}

static void compare(FILE* json, const char* name, work* self, gpst_context* context) {
    std::vector<double> hand, engine;
    char text[120];
    for (int round = -1; round < N_ROUNDS; round++) {
        const double a = by_hand(self), b = by_pipeline(self, context);
        if (round < 0)
            continue;
        hand.push_back(a);
        engine.push_back(b);
    }
    const bench_spread by_stream = bench_spread_of(hand), through = bench_spread_of(engine);
    snprintf(text, sizeof text, "%s: one stream, by hand", name);
    bench_row(json, text, by_stream, 0, 0);
    snprintf(text, sizeof text, "%s: pipeline, %.2f times as long", name, through.median / by_stream.median);
    bench_row(json, text, through, 0, 0);
}

int main(int argc, char** argv) {
    FILE* const json = argc > 2 && !strcmp(argv[1], "--json") ? fopen(argv[2], "w") : NULL;
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    work small, large;
    desc.backend = "cuda";
    desc.require_backend = true;
    if (GPST_FAILED(gpst_context_create(&desc, &context))) {
        printf("%s\n", gpst_last_reason());
        return 77;
    }
    printf("%s\n", gpst_build_info());
    work_open(&small, gpst_context_device(context), false);
    work_open(&large, gpst_context_device(context), true);
    compare(json, "1080p to scores of 512x512 to labels of 1080p", &small, context);
    compare(json, "1080p to scores of 1080p to labels of 1080p", &large, context);
    work_close(&small);
    work_close(&large);
    gpst_context_destroy(context);
    if (json)
        fclose(json);
    return 0;
}
