/* bench/gpu/engine.cu -- what the engine makes of a GPU's links: copies through it and through gpst_copy against bare
   copies of the same run, the latency of one small item, many small items, and whole frames to views. One unit, by
   nvcc:

       nvcc -O3 -arch=native -I. bench/gpu/engine.cu -o gpu_engine
       ./gpu_engine [--json FILE] [--dir DIR] [CASE...]      CASE: copies latency small views

   DIR takes eight raw frames, 708 MB, for the case views (default /dev/shm); they are removed again. */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include <algorithm>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_WIDTH 7680u
#define FRAME_HEIGHT 3840u
#define FRAME_BYTES ((size_t)FRAME_WIDTH * FRAME_HEIGHT * 3)
#define N_ROUNDS 5

static FILE* json;

static void die(const char* what) {
    fprintf(stderr, "gpu_engine: %s: %s\n", what, gpst_last_reason());
    exit(1);
}

static void need(gpst_result result, const char* what) {
    if (GPST_FAILED(result))
        die(what);
}

static void record(const char* name, double value, const char* unit) {
    printf("%-52s %12.3f %s\n", name, value, unit);
    if (json)
        fprintf(json, "%s\n  {\"name\": \"%s\", \"value\": %.6g, \"unit\": \"%s\"}", ftell(json) > 2 ? "," : "", name, value,
                unit);
    fflush(stdout);
}

static double median(double* values, int n) {
    std::sort(values, values + n);
    return values[n / 2];
}

static double spread(const double* sorted, int n) { return (sorted[n - 1] - sorted[0]) / sorted[n / 2] * 100; }

/* ---- copies ------------------------------------------------------------------------ */

typedef enum way { UP = 0, DOWN = 1, BOTH = 2 } way;
static const char* const way_names[] = {"H2D", "D2H", "both ways, each"};

#define N_BUFFERS 3
#define N_COPIES 48

/* A stream each way and memory for the copies that no engine makes. */
typedef struct links {
    gpst_stream* streams[2];
    gpst_memory *host[2][N_BUFFERS], *device[2][N_BUFFERS];
    void* pageable;
} links;

typedef enum maker {
    BARE = 0,    /* cudaMemcpyAsync, page-locked memory */
    PUBLIC = 1,  /* gpst_copy, the same memory */
    PAGEABLE = 2 /* cudaMemcpyAsync, memory of malloc */
} maker;

static void links_open(links* self, gpst_device* device) {
    for (int d = 0; d < 2; d++) {
        need(gpst_stream_create(device, &self->streams[d]), "stream");
        for (int b = 0; b < N_BUFFERS; b++) {
            need(gpst_memory_create(device, GPST_MEMORY_PINNED, FRAME_BYTES, &self->host[d][b]), "host memory");
            memset(gpst_memory_data(self->host[d][b]), b, FRAME_BYTES);
            need(gpst_memory_create(device, GPST_MEMORY_DEVICE, FRAME_BYTES, &self->device[d][b]), "device memory");
        }
    }
    self->pageable = malloc(FRAME_BYTES);
    memset(self->pageable, 1, FRAME_BYTES);
}

static void links_close(links* self) {
    for (int d = 0; d < 2; d++) {
        gpst_stream_destroy(self->streams[d]);
        for (int b = 0; b < N_BUFFERS; b++) {
            gpst_memory_destroy(self->host[d][b]);
            gpst_memory_destroy(self->device[d][b]);
        }
    }
    free(self->pageable);
}

static void links_copy(links* self, int direction, int n, maker by) {
    gpst_stream* const stream = self->streams[direction];
    void* const host = by == PAGEABLE ? self->pageable : gpst_memory_data(self->host[direction][n % N_BUFFERS]);
    void* const device = gpst_memory_data(self->device[direction][n % N_BUFFERS]);
    void* const to = direction == UP ? device : host;
    void* const from = direction == UP ? host : device;
    if (by == PUBLIC)
        need(gpst_copy(to, from, FRAME_BYTES, stream), "copy");
    else if (cudaMemcpyAsync(to, from, FRAME_BYTES, direction == UP ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                             (cudaStream_t)gpst_stream_native(stream)) != cudaSuccess)
        die("cudaMemcpyAsync");
}

/* GB/s in each direction that is used. */
static double links_rate(links* self, way direction, maker by) {
    const int n_copies = by == PAGEABLE ? N_COPIES / 8 : N_COPIES;
    const int64_t start_ns = gpsti_now_ns();
    for (int n = 0; n < n_copies; n++)
        for (int d = 0; d < 2; d++)
            if (direction == BOTH || (int)direction == d)
                links_copy(self, d, n, by);
    for (int d = 0; d < 2; d++)
        need(gpst_stream_synchronize(self->streams[d]), "wait");
    return (double)FRAME_BYTES * n_copies / (double)(gpsti_now_ns() - start_ns);
}

typedef struct flow { /* items through the engine, and when they ended */
    way direction;
    uint64_t n_items, n_done, n_warm;
    int64_t warm_ns, last_ns;
} flow;

static gpst_result flow_next(void* user_data, uint64_t index, gpst_input* out) {
    (void)out;
    return index < ((flow*)user_data)->n_items ? GPST_OK : GPST_END;
}

static void flow_shapes(gpst_image* large, gpst_image* tiny) {
    large->format = tiny->format = GPST_FORMAT_RGB;
    large->width = FRAME_WIDTH;
    large->height = FRAME_HEIGHT;
    tiny->width = tiny->height = 1;
}

/* Large in one direction or both; what is in the picture does not matter to a copy. */
static gpst_result flow_shape(void* user_data, gpst_task* task) {
    const way direction = ((flow*)user_data)->direction;
    gpst_image large = GPST_ZERO, tiny = GPST_ZERO, image;
    flow_shapes(&large, &tiny);
    return gpst_task_set_picture(task, 0, 0, direction == DOWN ? &tiny : &large, &image);
}

static gpst_result flow_make(void* user_data, gpst_task* task) {
    const way direction = ((flow*)user_data)->direction;
    gpst_image large = GPST_ZERO, tiny = GPST_ZERO, image;
    flow_shapes(&large, &tiny);
    return gpst_task_set_picture(task, 1, 0, direction == UP ? &tiny : &large, &image);
}

static gpst_result flow_sink(void* user_data, const gpst_item* item) {
    flow* const self = (flow*)user_data;
    if (GPST_FAILED(item->result))
        fprintf(stderr, "item %llu: %s\n", (unsigned long long)item->index, item->reason);
    self->n_done++;
    self->last_ns = gpsti_now_ns();
    if (self->n_done == self->n_warm)
        self->warm_ns = self->last_ns;
    return GPST_OK;
}

static double flow_rate(gpst_pipeline* pipeline, flow* self) {
    self->n_done = 0;
    need(gpst_pipeline_run(pipeline), "run");
    return (double)FRAME_BYTES * (double)(self->n_done - self->n_warm) / (double)(self->last_ns - self->warm_ns);
}

static void bench_copies(gpst_context* context) {
    static double rates[4][N_ROUNDS];
    links self_links;
    links_open(&self_links, gpst_context_device(context));
    for (int d = UP; d <= BOTH; d++) {
        flow self;
        char name[96];
        memset(&self, 0, sizeof self);
        self.direction = (way)d;
        self.n_items = 1200; /* slots of 88 MB take some 25 ms each to lock: a short run does without them */
        self.n_warm = 600;
        for (int round = 0; round < N_ROUNDS; round++) {
            gpst_stage_desc stages[2] = {};
            gpst_pipeline_desc desc = GPST_ZERO;
            gpst_pipeline* pipeline = NULL;
            stages[0].kind = GPST_STAGE_HOST;
            stages[0].func = flow_shape;
            stages[0].user_data = &self;
            stages[1].kind = GPST_STAGE_DEVICE;
            stages[1].func = flow_make;
            stages[1].user_data = &self;
            desc.stages = stages;
            desc.n_stages = 2;
            desc.source = flow_next;
            desc.source_user_data = &self;
            desc.sink = flow_sink;
            desc.sink_user_data = &self;
            desc.mode = GPST_RUN_ENGINE; /* the default stays plain where six slots cost what they bring */
            desc.n_slots = 6;
            desc.n_items_expected = self.n_items;
            need(gpst_pipeline_create(context, &desc, &pipeline), "pipeline");
            rates[0][round] = links_rate(&self_links, (way)d, BARE);
            rates[1][round] = links_rate(&self_links, (way)d, PUBLIC);
            rates[2][round] = flow_rate(pipeline, &self);
            rates[3][round] = d == BOTH ? 0 : links_rate(&self_links, (way)d, PAGEABLE);
            need(gpst_pipeline_destroy(pipeline), "destroy");
        }
        const char* const what[4] = {"bare pinned", "gpst_copy", "through the engine", "bare pageable"};
        double middle[4];
        for (int k = 0; k < (d == BOTH ? 3 : 4); k++) {
            middle[k] = median(rates[k], N_ROUNDS);
            snprintf(name, sizeof name, "%s, %s (spread %.1f %%)", way_names[d], what[k], spread(rates[k], N_ROUNDS));
            record(name, middle[k], "GB/s");
        }
        for (int k = 1; k <= 2; k++) {
            snprintf(name, sizeof name, "%s, %s / bare", way_names[d], what[k]);
            record(name, middle[k] / middle[0], "");
        }
    }
    links_close(&self_links);
}

/* ---- one small item ------------------------------------------------------------------- */

#define N_CALLS 4000

static __global__ void empty(void) {}

static void report_latency(const char* name, double* us) {
    char text[96];
    std::sort(us, us + N_CALLS);
    snprintf(text, sizeof text, "%s (p10 %.1f, p99 %.1f)", name, us[N_CALLS / 10], us[N_CALLS * 99 / 100]);
    record(text, us[N_CALLS / 2], "us");
}

static double empty_launches(double* us, bool blocking) {
    cudaStream_t stream;
    cudaEvent_t event;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventBlockingSync | cudaEventDisableTiming);
    for (int n = 0; n < N_CALLS; n++) {
        const int64_t start_ns = gpsti_now_ns();
        empty<<<1, 1, 0, stream>>>();
        if (blocking) {
            cudaEventRecord(event, stream);
            cudaEventSynchronize(event);
        } else {
            cudaStreamSynchronize(stream);
        }
        us[n] = (double)(gpsti_now_ns() - start_ns) / 1e3;
    }
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
    report_latency(blocking ? "empty launch, blocking wait" : "empty launch, spinning wait", us);
    return us[N_CALLS / 2];
}

static gpst_warp* small_warp(void) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_RESIZE;
    desc.width = desc.height = 32;
    desc.format = GPST_FORMAT_RGB;
    need(gpst_warp_create(&desc, &warp), "warp");
    return warp;
}

static uint8_t small_pixels[64 * 64 * 3];

typedef struct repeated {
    double* us;
    int64_t last_ns;
} repeated;

static gpst_result repeated_next(void* user_data, uint64_t index, gpst_input* out) {
    repeated* const self = (repeated*)user_data;
    const int64_t now_ns = gpsti_now_ns();
    if (index > 0)
        self->us[index - 1] = (double)(now_ns - self->last_ns) / 1e3;
    self->last_ns = now_ns;
    out->frame.data = small_pixels;
    out->frame.width = out->frame.height = 64;
    out->frame.format = GPST_FORMAT_RGB;
    return index < N_CALLS ? GPST_OK : GPST_END;
}

/* The engine's plain loop: one item after the other on the caller's thread, from one call of the source to the next. */
static void bench_plain_latency(gpst_context* context, const gpst_stage_desc* stage, double* us, double blocking_us) {
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    repeated self;
    self.us = us;
    desc.stages = stage;
    desc.n_stages = 1;
    desc.source = repeated_next;
    desc.source_user_data = &self;
    desc.mode = GPST_RUN_PLAIN_SERIAL;
    need(gpst_pipeline_create(context, &desc, &pipeline), "pipeline");
    need(gpst_pipeline_run(pipeline), "run");
    need(gpst_pipeline_destroy(pipeline), "destroy");
    report_latency("one 64x64 item in the plain loop", us);
    record("plain loop / empty launch with a blocking wait", us[N_CALLS / 2] / blocking_us, "");
}

static void bench_latency(gpst_context* context) {
    static double us[N_CALLS];
    gpst_warp* const warp = small_warp();
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_input input = GPST_ZERO;
    empty_launches(us, false);
    const double blocking_us = empty_launches(us, true);
    stage.kind = GPST_STAGE_WARP;
    stage.warp = warp;
    desc.stages = &stage;
    desc.n_stages = 1;
    bench_plain_latency(context, &stage, us, blocking_us);
    input.frame.data = small_pixels;
    input.frame.width = input.frame.height = 64;
    input.frame.format = GPST_FORMAT_RGB;
    need(gpst_pipeline_create(context, &desc, &pipeline), "pipeline");
    for (int n = 0; n < N_CALLS; n++) {
        const gpst_item* item = NULL;
        const int64_t start_ns = gpsti_now_ns();
        need(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), "submit");
        need(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), "next_result");
        us[n] = (double)(gpsti_now_ns() - start_ns) / 1e3;
        need(item->result, item->reason);
        gpst_pipeline_release(pipeline, item);
    }
    report_latency("one 64x64 item pushed and waited for", us);
    record("pushed / empty launch with a blocking wait", us[N_CALLS / 2] / blocking_us, "");
    need(gpst_pipeline_destroy(pipeline), "destroy");
    gpst_warp_destroy(warp);
}

/* ---- many small items -------------------------------------------------------------------- */

#define N_SMALL 100000

static gpst_result small_next(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[96 * 96 * 3];
    uint64_t* const random = (uint64_t*)user_data;
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    out->frame.data = pixels;
    out->frame.width = 1 + (uint32_t)(*random >> 33) % 96;
    out->frame.height = 1 + (uint32_t)(*random >> 45) % 96;
    out->frame.format = GPST_FORMAT_RGB;
    return index < N_SMALL ? GPST_OK : GPST_END;
}

static void print_decisions(const gpst_tuner_report* tuner) {
    const uint32_t most = sizeof tuner->decisions / sizeof tuner->decisions[0];
    for (uint32_t d = 0; d < tuner->n_decisions && d < most; d++) {
        const gpst_tuner_decision* const decision = &tuner->decisions[d];
        printf("  after %llu: %s %u -> %u, %.0f -> %.0f items/s: %s\n", (unsigned long long)decision->item,
               gpst_knob_name(decision->knob), decision->before, decision->after,
               decision->items_per_s_before, decision->items_per_s_after, decision->reason);
    }
    printf("  guard: %s\n", tuner->guard.text);
}

static void bench_small(gpst_context* context, uint32_t batch) {
    char name[96];
    gpst_warp* const warp = small_warp();
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_context_info before, after;
    gpsti_device_info device_before, device_after;
    gpst_stats stats;
    static gpst_tuner_report tuner;
    uint64_t random = 1;
    stage.kind = GPST_STAGE_WARP;
    stage.warp = warp;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = small_next;
    desc.source_user_data = &random;
    desc.batch = batch;
    for (int round = 0; round < 2; round++) { /* what the runtime makes once for all is there after the first */
        context->device->i->device_query(context->device, &device_before);
        gpst_context_query_info(context, &before);
        need(gpst_pipeline_create(context, &desc, &pipeline), "pipeline");
        need(gpst_pipeline_run(pipeline), "run");
        gpst_pipeline_query_stats(pipeline, &stats);
        gpst_pipeline_query_tuner(pipeline, &tuner);
        need(gpst_pipeline_destroy(pipeline), "destroy");
    }
    context->device->i->device_query(context->device, &device_after);
    gpst_context_query_info(context, &after);
    gpst_warp_destroy(warp);
    snprintf(name, sizeof name, "100000 small items of random sizes, batch=%u", batch);
    record(name, (double)stats.wall_ns / 1e3 / N_SMALL, "us an item");
    for (uint32_t p = 0; p < stats.n_paths; p++)
        if (!strcmp(stats.paths[p].what, "batch") || !strcmp(stats.paths[p].what, "copies"))
            printf("  %s: %s; %s\n", stats.paths[p].what, stats.paths[p].taken, stats.paths[p].why_not);
    record("  items ok", (double)stats.items_ok, "");
    record("  allocations of frame memory, all of the run", (double)stats.growths, "");
    record("  allocations by the allocator after the freeze", (double)stats.allocations_after_freeze, "");
    record("  host bytes left behind", (double)after.live_bytes - (double)before.live_bytes, "bytes");
    record("  device bytes left behind",
           (double)device_before.memory_free_bytes - (double)device_after.memory_free_bytes, "bytes");
    printf("  %s\n", stats.verdict.text);
    if (batch == 0)
        print_decisions(&tuner);
}

/* ---- frames to views ---------------------------------------------------------------------- */

#define N_FILES 8u
#define N_FRAMES 400u

typedef struct views {
    char dir[400], path[512];
} views;

static void frame_path(const views* self, uint64_t index, char* out, size_t bytes) {
    snprintf(out, bytes, "%s/gpu_engine_%u.raw", self->dir, (unsigned)(index % N_FILES));
}

static gpst_result frame_next(void* user_data, uint64_t index, gpst_input* out) {
    views* const self = (views*)user_data;
    frame_path(self, index, self->path, sizeof self->path);
    out->path = self->path;
    return index < N_FRAMES ? GPST_OK : GPST_END;
}

static gpst_result frame_map(void* user_data, gpst_task* task) {
    gpst_image shape = GPST_ZERO, image;
    (void)user_data;
    shape.width = FRAME_WIDTH;
    shape.height = FRAME_HEIGHT;
    shape.format = GPST_FORMAT_RGB;
    return gpst_task_map_picture(task, 0, 0, &shape, 0, &image);
}

static void write_frames(const views* self) {
    uint8_t* const pixels = (uint8_t*)malloc(FRAME_BYTES);
    char path[512];
    for (unsigned n = 0; n < N_FILES; n++) {
        for (size_t i = 0; i < FRAME_BYTES; i++)
            pixels[i] = (uint8_t)(i * (n + 1) >> 4);
        frame_path(self, n, path, sizeof path);
        FILE* const file = fopen(path, "wb");
        if (!file || fwrite(pixels, 1, FRAME_BYTES, file) != FRAME_BYTES || fclose(file) != 0) {
            fprintf(stderr, "gpu_engine: cannot write %s\n", path);
            exit(1);
        }
    }
    free(pixels);
}

typedef struct views_result {
    double ms, efficiency;
} views_result;

/* n_reads 0: what the engine takes, and finds. */
static views_result run_views(gpst_context* context, views* self, const gpst_warp* warp, uint32_t n_reads) {
    gpst_stage_desc stages[3] = {};
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    static gpst_tuner_report tuner;
    stages[0].kind = GPST_STAGE_READ;
    stages[1].kind = GPST_STAGE_HOST;
    stages[1].func = frame_map;
    stages[2].kind = GPST_STAGE_WARP;
    stages[2].warp = warp;
    desc.stages = stages;
    desc.n_stages = 3;
    desc.source = frame_next;
    desc.source_user_data = self;
    desc.n_items_expected = N_FRAMES;
    desc.n_slots = n_reads ? n_reads + 6 : 0;
    desc.n_reads = n_reads;
    need(gpst_pipeline_create(context, &desc, &pipeline), "pipeline");
    need(gpst_pipeline_run(pipeline), "run");
    gpst_pipeline_query_stats(pipeline, &stats);
    gpst_pipeline_query_tuner(pipeline, &tuner);
    need(gpst_pipeline_destroy(pipeline), "destroy");
    printf("  %u reads asked for: %.3f ms a frame, %s\n", n_reads, (double)stats.wall_ns / 1e6 / N_FRAMES,
           stats.verdict.text);
    if (n_reads == 0)
        print_decisions(&tuner);
    return {(double)stats.wall_ns / 1e6 / N_FRAMES, stats.verdict.efficiency};
}

#define N_VIEWS 4
#define N_VIEWS_ROUNDS 3
static const uint32_t views_reads[N_VIEWS] = {0, 8, 12, 16};

static void record_views(uint32_t n_reads, double* ms, double* efficiency) {
    char name[96];
    const double middle = median(ms, N_VIEWS_ROUNDS), part = median(efficiency, N_VIEWS_ROUNDS);
    snprintf(name, sizeof name, "%u frames to 8 views, %u reads%s", (unsigned)N_FRAMES, n_reads,
             n_reads ? "" : ": tuned");
    record(name, middle, "ms a frame");
    printf("  %.3f..%.3f\n", ms[0], ms[N_VIEWS_ROUNDS - 1]);
    record("  efficiency", part, "");
    printf("  %.3f..%.3f\n", efficiency[0], efficiency[N_VIEWS_ROUNDS - 1]);
}

static void bench_views(gpst_context* context, const char* dir) {
    views self;
    gpst_view view[8] = {};
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    char path[512];
    snprintf(self.dir, sizeof self.dir, "%s", dir);
    write_frames(&self);
    for (int v = 0; v < 8; v++)
        view[v].yaw = 45.0 * v;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = view;
    desc.n_views = 8;
    desc.width = 1920;
    desc.height = 1080;
    desc.format = GPST_FORMAT_RGB;
    need(gpst_warp_create(&desc, &warp), "warp");
    double ms[N_VIEWS][N_VIEWS_ROUNDS], efficiency[N_VIEWS][N_VIEWS_ROUNDS];
    for (int round = 0; round < N_VIEWS_ROUNDS; round++)
        for (int i = 0; i < N_VIEWS; i++) {
            const views_result result = run_views(context, &self, warp, views_reads[i]);
            ms[i][round] = result.ms, efficiency[i][round] = result.efficiency;
        }
    for (int i = 0; i < N_VIEWS; i++)
        record_views(views_reads[i], ms[i], efficiency[i]);
    gpst_warp_destroy(warp);
    for (unsigned n = 0; n < N_FILES; n++) {
        frame_path(&self, n, path, sizeof path);
        (void)unlink(path);
    }
}

static bool chosen(int argc, char** argv, int first, const char* name) {
    bool any = false;
    for (int i = first; i < argc; i++) {
        any = true;
        if (!strcmp(argv[i], name))
            return true;
    }
    return !any;
}

int main(int argc, char** argv) {
    const char* dir = "/dev/shm";
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_context_info info;
    int first = 1;
    for (; first + 1 < argc && !strncmp(argv[first], "--", 2); first += 2) {
        if (!strcmp(argv[first], "--json"))
            json = fopen(argv[first + 1], "w");
        else
            dir = argv[first + 1];
    }
    desc.backend = "cuda";
    desc.require_backend = true;
    if (GPST_FAILED(gpst_context_create(&desc, &context))) {
        printf("%s\n", gpst_last_reason());
        return 77;
    }
    gpst_context_query_info(context, &info);
    printf("%s\n%s, %u workers\n", gpst_build_info(), info.device_name, info.n_workers);
    if (json)
        fprintf(json, "[");
    if (chosen(argc, argv, first, "copies"))
        bench_copies(context);
    if (chosen(argc, argv, first, "latency"))
        bench_latency(context);
    if (chosen(argc, argv, first, "small"))
        for (uint32_t batch = 0; batch <= 16; batch = batch ? batch * 4 : 1) /* 0: tuned */
            bench_small(context, batch);
    if (chosen(argc, argv, first, "views"))
        bench_views(context, dir);
    if (json) {
        fprintf(json, "\n]\n");
        fclose(json);
    }
    gpst_context_destroy(context);
    return 0;
}
