/* bench/gpu/graphs.cu -- what graphs save and cost: chains of 3, 10 or 12, and about 100 pieces of work put on a
   stream by gpustage's calls, as a bare CUDA graph of the same work, as a gpst_graph and through a gpst_graph_cache;
   what making and updating a graph takes; whether memory stays flat over 100000 shapes; the memory of a graph. One
   unit, by nvcc:

       nvcc -O3 -std=c++17 -arch=native -I. bench/gpu/graphs.cu -o gpu_graphs
       ./gpu_graphs [--json FILE] [--shapes N] [--round MS] [--only chains|making|shapes|memory] [--backend cpu]

   With another backend than cuda the ways that are CUDA's own are left out. */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include "gpu.h"

#include <cstring>
#include <string>
#include <unistd.h>

enum { SIDE = 256, N_PIXELS = SIDE * SIDE, N_ROUNDS = 15, SYNC_EACH = 100, N_SHIFTS = 64, SHIFT_BYTES = 256 };

static FILE* json;
static gpst_device* device;
static gpst_stream* stream;
static bool on_cuda;
static double round_us = 100000; /* of one way in one round: over a second in all rounds */

/* ---- the work ---------------------------------------------------------------------------- */

static __global__ void empty(void) {}

static gpst_result rt_result(cudaError_t error) { return error == cudaSuccess ? GPST_OK : GPST_ERROR_DEVICE; }

static gpst_result empty_host(const void* args) {
    (void)args;
    return GPST_OK;
}

static gpst_result empty_gpu(const void* args, void* native_stream) {
    (void)args;
    empty<<<1, 1, 0, (cudaStream_t)native_stream>>>();
    return rt_result(cudaGetLastError());
}

static const gpst_kernel empty_kernel = {"empty", empty_host, empty_gpu};

struct opened_mask {
    gpst_image from, to;
};

static gpst_result open_host(const void* args) {
    const opened_mask* const mask = (const opened_mask*)args;
    return gpst_mask_morph(&mask->from, GPST_MORPH_OPEN, 3, &mask->to, 1);
}

static gpst_result open_gpu(const void* args, void* native_stream) {
    const opened_mask* const mask = (const opened_mask*)args;
    return gpst_mask_morph_launch(&mask->from, GPST_MORPH_OPEN, 3, &mask->to, 1, native_stream);
}

static const gpst_kernel open_kernel = {"open", open_host, open_gpu};

/* A small frame's device memory; outputs begin `shift` steps later where addresses are to differ. */
struct frame_memory {
    gpst_memory* memory;
    uint8_t *picture, *resized, *mask, *opened, *integers, *filled, *copied;
    float *scores, *scale;
    gpst_warp* warp;
};

static frame_memory frame;

static uint8_t* take_bytes(uint8_t** next, size_t bytes) {
    uint8_t* const taken = *next;
    *next += (bytes + N_SHIFTS * SHIFT_BYTES + 511) / 512 * 512;
    return taken;
}

static void make_frame(void) {
    const float scale = 0.01f;
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_RESIZE;
    desc.width = desc.height = SIDE;
    desc.format = GPST_FORMAT_RGB;
    BENCH_OK(gpst_warp_create(&desc, &frame.warp));
    BENCH_OK(gpst_memory_create(device, GPST_MEMORY_DEVICE, (size_t)16 << 20, &frame.memory));
    uint8_t* next = (uint8_t*)gpst_memory_data(frame.memory);
    BENCH_OK(gpst_fill(next, 0, (size_t)16 << 20, stream));
    frame.picture = take_bytes(&next, 4 * N_PIXELS * 3);
    frame.resized = take_bytes(&next, N_PIXELS * 3);
    frame.scores = (float*)(void*)take_bytes(&next, N_PIXELS * sizeof(float));
    frame.scale = (float*)(void*)take_bytes(&next, sizeof(float));
    frame.mask = take_bytes(&next, N_PIXELS);
    frame.opened = take_bytes(&next, N_PIXELS);
    frame.integers = take_bytes(&next, N_PIXELS);
    frame.filled = take_bytes(&next, N_PIXELS);
    frame.copied = take_bytes(&next, N_PIXELS);
    BENCH_OK(gpst_copy(frame.scale, &scale, sizeof scale, stream));
    BENCH_OK(gpst_stream_synchronize(stream));
}

static gpst_image image_of(void* data, uint32_t width, uint32_t height, gpst_format format, gpst_dtype dtype) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width;
    image.height = height;
    image.format = format;
    image.dtype = dtype;
    return image;
}

/* A piece of a frame's work: six kinds in turn, of a picture of at most 256 x 256. */
static gpst_result put_piece(int piece, uint32_t width, uint32_t height, size_t shift) {
    const size_t n = (size_t)width * height;
    opened_mask mask = {};
    gpst_channels values = GPST_ZERO;
    gpst_image source = GPST_ZERO, output = GPST_ZERO;
    switch (piece % 6) {
    case 0:
        source = image_of(frame.picture, 2 * SIDE, 2 * SIDE, GPST_FORMAT_RGB, GPST_DTYPE_U8);
        output = image_of(frame.resized + shift, SIDE, SIDE, GPST_FORMAT_RGB, GPST_DTYPE_U8);
        return gpst_warp_enqueue(frame.warp, &source, &output, 1, stream);
    case 1:
        source = image_of(frame.scores, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_F32);
        output = image_of(frame.mask + shift, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
        return gpst_mask_threshold_enqueue(&source, 0.5f, &output, stream);
    case 2:
        mask.from = image_of(frame.mask + shift, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
        mask.to = image_of(frame.opened + shift, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
        return gpst_kernel_enqueue(&open_kernel, &mask, sizeof mask, stream);
    case 3:
        values.data = frame.scores;
        values.dtype = GPST_DTYPE_F32;
        values.n_channels = 1;
        values.n_outer = 1;
        values.n_inner = n;
        return gpst_quantise_enqueue(&values, frame.scale, (int8_t*)(frame.integers + shift), stream);
    case 4:
        return gpst_fill(frame.filled + shift, 0, n, stream);
    default:
        return gpst_copy(frame.copied + shift, frame.opened + shift, n, stream);
    }
}

struct chain {
    const char* name;
    int n;
    bool real; /* a frame's work; else kernels that do nothing */
};

static const chain chains[] = {{"empty kernels", 3, false},   {"empty kernels", 10, false},
                               {"empty kernels", 100, false}, {"256 x 256 frame", 3, true},
                               {"256 x 256 frame", 12, true}, {"256 x 256 frame", 102, true}};

/* Puts it on the stream, or into its recording. */
static void put(const chain& c, size_t shift) {
    for (int i = 0; i < c.n; i++)
        BENCH_OK(c.real ? put_piece(i, SIDE, SIDE, shift)
                        : gpst_kernel_enqueue(&empty_kernel, &shift, sizeof shift, stream));
}

/* ---- a bare graph of the same work --------------------------------------------------------- */

static cudaStream_t native_stream(void) { return (cudaStream_t)gpst_stream_native(stream); }

static cudaGraph_t capture(const chain& c, size_t shift) {
    cudaGraph_t captured = NULL;
    BENCH_RT(cudaStreamBeginCapture(native_stream(), cudaStreamCaptureModeThreadLocal));
    put(c, shift);
    BENCH_RT(cudaStreamEndCapture(native_stream(), &captured));
    return captured;
}

static cudaGraphExec_t instantiate(cudaGraph_t captured) {
    cudaGraphExec_t made = NULL;
    BENCH_RT(cudaGraphInstantiateWithFlags(&made, captured, 0));
    return made;
}

static gpst_graph* record(const chain& c, size_t shift) {
    gpst_graph* graph = NULL;
    BENCH_OK(gpst_graph_begin(stream));
    put(c, shift);
    BENCH_OK(gpst_graph_end(stream, &graph));
    return graph;
}

static gpst_graph_cache* make_cache(gpst_graph_use use, uint32_t max_graphs) {
    gpst_graph_cache_desc desc = GPST_ZERO;
    gpst_graph_cache* cache = NULL;
    desc.use = use;
    desc.max_graphs = max_graphs;
    BENCH_OK(gpst_graph_cache_create(device, &desc, &cache));
    return cache;
}

static void run_cached(gpst_graph_cache* cache, const chain& c, size_t shift) {
    BENCH_OK(gpst_graph_begin(stream));
    put(c, shift);
    BENCH_OK(gpst_graph_cache_run(cache, stream));
}

/* ---- a) chains ------------------------------------------------------------------------------- */

enum way { PLAIN, BARE, GRAPH, ALWAYS, AUTO, N_WAYS };
static const char* const way_names[N_WAYS] = {"plain calls", "bare CUDA graph", "gpst_graph_launch", "cache, ALWAYS",
                                              "cache, AUTO"};

struct samples_of {
    std::vector<double> host_us, wall_us; /* an iteration, one a round */
};

struct ways_of {
    gpst_graph* graph;
    gpst_graph_cache *always, *automatic;
    cudaGraphExec_t bare;
};

static void submit(const ways_of& w, int way, const chain& c) {
    switch (way) {
    case PLAIN:
        return put(c, 0);
    case BARE:
        BENCH_RT(cudaGraphLaunch(w.bare, native_stream()));
        return;
    case GRAPH:
        BENCH_OK(gpst_graph_launch(w.graph, stream));
        return;
    default:
        return run_cached(way == ALWAYS ? w.always : w.automatic, c, 0);
    }
}

/* One round of one way: host time in the calls, and wall time with the waits, of an iteration. */
static void sample(const ways_of& w, int way, const chain& c, int sync_each, samples_of* out) {
    double host_us = 0;
    int n = 0;
    const double start = bench_now_us();
    double now = start;
    while (now - start < round_us) {
        for (int i = 0; i < sync_each; i++) {
            const double begin = bench_now_us();
            submit(w, way, c);
            host_us += bench_now_us() - begin;
        }
        BENCH_OK(gpst_stream_synchronize(stream));
        n += sync_each;
        now = bench_now_us();
    }
    if (!out)
        return;
    out->host_us.push_back(host_us / n);
    out->wall_us.push_back((now - start) / n);
}

/* How many times as fast as plain calls, by neighbours in time. */
static bench_spread speed_of(const samples_of* samples, int way) {
    std::vector<double> speeds;
    for (size_t round = 0; round < samples[way].wall_us.size(); round++)
        speeds.push_back(samples[PLAIN].wall_us[round] / samples[way].wall_us[round]);
    return bench_spread_of(speeds);
}

static double share_of_gain(double plain, double bare, double ours) {
    return plain > bare ? 100 * (plain - ours) / (plain - bare) : 0;
}

static void print_ways(const chain& c, const char* mode, samples_of* samples, const ways_of& w) {
    gpst_graph_cache_info info;
    bench_spread host[N_WAYS] = {}, wall[N_WAYS] = {};
    const bench_spread speed = speed_of(samples, AUTO);
    for (int way = 0; way < N_WAYS; way++) {
        if (samples[way].host_us.empty())
            continue;
        char name[160];
        host[way] = bench_spread_of(samples[way].host_us);
        wall[way] = bench_spread_of(samples[way].wall_us);
        snprintf(name, sizeof name, "%d %s, %s: %s", c.n, c.name, mode, way_names[way]);
        printf("  %-18s host %8.2f us (%.2f .. %.2f)   wall %8.2f us (%.2f .. %.2f)", way_names[way], host[way].median,
               host[way].least, host[way].most, wall[way].median, wall[way].least, wall[way].most);
        if (on_cuda && way >= GRAPH)
            printf("   of the bare graph's gain: host %3.0f %%, wall %3.0f %%",
                   share_of_gain(host[PLAIN].median, host[BARE].median, host[way].median),
                   share_of_gain(wall[PLAIN].median, wall[BARE].median, wall[way].median));
        printf("\n");
        if (json)
            fprintf(json,
                    "{\"case\": \"%s\", \"host_us\": %.3f, \"us\": %.3f, \"least_us\": %.3f, \"most_us\": %.3f}\n",
                    name, host[way].median, wall[way].median, wall[way].least, wall[way].most);
    }
    gpst_graph_cache_query_info(w.automatic, &info);
    printf("  AUTO is %.3fx plain (%.3f .. %.3f)%s; %llu hits, %llu misses, %llu refused%s%s\n", speed.median,
           speed.least, speed.most, speed.median < 0.99 ? ": SLOWER" : "", (unsigned long long)info.hits,
           (unsigned long long)info.misses, (unsigned long long)info.refused, info.refused ? ": " : "",
           info.refused ? info.reason : "");
    fflush(stdout);
}

static void bench_chain(const chain& c, bool pipelined) {
    ways_of w = {};
    samples_of samples[N_WAYS];
    char mode[64];
    snprintf(mode, sizeof mode, pipelined ? "synchronised each %d" : "synchronised each time", SYNC_EACH);
    printf("%d %s, %s\n", c.n, c.name, mode);
    w.graph = record(c, 0);
    w.always = make_cache(GPST_GRAPHS_ALWAYS, 0);
    w.automatic = make_cache(GPST_GRAPHS_AUTO, 0);
    if (on_cuda) {
        cudaGraph_t captured = capture(c, 0);
        w.bare = instantiate(captured);
        BENCH_RT(cudaGraphDestroy(captured));
    }
    for (int round = -1; round < N_ROUNDS; round++) /* the first warms up */
        for (int way = 0; way < N_WAYS; way++)
            if (way != BARE || on_cuda)
                sample(w, way, c, pipelined ? SYNC_EACH : 1, round < 0 ? NULL : &samples[way]);
    print_ways(c, mode, samples, w);
    gpst_graph_destroy(w.graph);
    gpst_graph_cache_destroy(w.always);
    gpst_graph_cache_destroy(w.automatic);
    if (w.bare)
        BENCH_RT(cudaGraphExecDestroy(w.bare));
}

/* ---- b) making, updating ------------------------------------------------------------------------ */

enum step { PLAIN_CALLS, CAPTURE, INSTANTIATE, UPDATE, LAUNCH, RECORD, MAKE, CACHE_MISS, CACHE_UPDATE, N_STEPS };
static const char* const step_names[N_STEPS] = {
    "plain calls", "capture",          "instantiate", "update of a graph (cudaGraphExecUpdate)", "launch of a graph",
    "recording",   "gpst_graph, made", "cache: a run seen first", "cache: a run by update"};

template <typename Call>
static void time_step(std::vector<double>* samples, Call call) {
    const double begin = bench_now_us();
    call();
    samples->push_back(bench_now_us() - begin);
}

/* By CUDA's own calls: addresses differ from turn to turn. */
static void bare_turn(const chain& c, size_t shift, cudaGraphExec_t kept, std::vector<double>* steps) {
    cudaGraph_t captured = NULL;
    cudaGraphExec_t made = NULL;
    time_step(&steps[CAPTURE], [&] { captured = capture(c, shift); });
    time_step(&steps[INSTANTIATE], [&] { made = instantiate(captured); });
#if CUDART_VERSION >= 12000
    cudaGraphExecUpdateResultInfo info;
    time_step(&steps[UPDATE], [&] { BENCH_RT(cudaGraphExecUpdate(kept, captured, &info)); });
#endif
    time_step(&steps[LAUNCH], [&] { BENCH_RT(cudaGraphLaunch(kept, native_stream())); });
    BENCH_OK(gpst_stream_synchronize(stream));
    BENCH_RT(cudaGraphExecDestroy(made));
    BENCH_RT(cudaGraphDestroy(captured));
}

/* By ours: a list that the cache sees for the first time, and, with place for one graph, its update. */
static void own_turn(const chain& c, size_t shift, gpst_graph_cache* cache, std::vector<double>* steps) {
    gpst_graph* graph = NULL;
    time_step(&steps[PLAIN_CALLS], [&] { put(c, shift); });
    BENCH_OK(gpst_stream_synchronize(stream));
    time_step(&steps[RECORD], [&] {
        BENCH_OK(gpst_graph_begin(stream));
        put(c, shift);
    });
    time_step(&steps[MAKE], [&] { BENCH_OK(gpst_graph_end(stream, &graph)); });
    time_step(&steps[CACHE_MISS], [&] { run_cached(cache, c, shift); });
    BENCH_OK(gpst_stream_synchronize(stream));
    time_step(&steps[CACHE_UPDATE], [&] { run_cached(cache, c, shift); });
    BENCH_OK(gpst_stream_synchronize(stream));
    gpst_graph_destroy(graph);
}

static void print_verdict(const chain& c, const double* us) {
    const double updated = us[CAPTURE] + us[UPDATE] + us[LAUNCH], anew = us[CAPTURE] + us[INSTANTIATE] + us[LAUNCH];
    const double saved = us[PLAIN_CALLS] - us[LAUNCH];
    printf("  CAPTURE + UPDATE + LAUNCH %.1f us against %.1f us of plain calls: %s (%.2fx)\n", updated,
           us[PLAIN_CALLS], updated < us[PLAIN_CALLS] ? "CHEAPER" : "DEARER", us[PLAIN_CALLS] / updated);
    printf("  capture + instantiate + launch %.1f us; an update takes %.2f of that; a launch saves %.1f us of %d "
           "pieces\n",
           anew, updated / anew, saved, c.n);
    if (saved > 0)
        printf("  paid back after %.1f launches (made anew), %.1f (updated)\n", (anew - us[LAUNCH]) / saved,
               (updated - us[LAUNCH]) / saved);
}

static void bench_making(const chain& c) {
    enum { N_TURNS = 400 };
    std::vector<double> steps[N_STEPS];
    double medians[N_STEPS] = {};
    cudaGraphExec_t kept = NULL;
    gpst_graph_cache* const cache = make_cache(GPST_GRAPHS_ALWAYS, 1);
    printf("%d %s: making a graph, from call to return\n", c.n, c.name);
    if (on_cuda) {
        cudaGraph_t captured = capture(c, 0);
        kept = instantiate(captured);
        BENCH_RT(cudaGraphDestroy(captured));
    }
    for (int turn = 0; turn < N_TURNS; turn++) {
        const size_t shift = (size_t)(turn % N_SHIFTS) * SHIFT_BYTES;
        if (on_cuda)
            bare_turn(c, shift, kept, steps);
        own_turn(c, shift, cache, steps);
    }
    for (int s = 0; s < N_STEPS; s++) {
        char name[160];
        if (steps[s].empty())
            continue;
        const bench_spread time = bench_spread_of(steps[s]);
        medians[s] = time.median;
        snprintf(name, sizeof name, "%d %s: %s", c.n, c.real ? "frame" : "empty", step_names[s]);
        bench_row(json, name, time, 0, 0);
    }
    if (on_cuda)
        print_verdict(c, medians);
    if (kept)
        BENCH_RT(cudaGraphExecDestroy(kept));
    gpst_graph_cache_destroy(cache);
}

/* ---- c) shapes, d) memory ------------------------------------------------------------------------- */

static double free_mb(void) {
    size_t free_bytes = 0, total_bytes = 0;
    if (on_cuda)
        BENCH_RT(cudaMemGetInfo(&free_bytes, &total_bytes));
    return (double)free_bytes / 1048576;
}

static double resident_mb(void) {
    unsigned long long pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return (double)pages * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

static void bench_shapes(int n_shapes) {
    uint32_t random = 7;
    double first_free = 0, first_resident = 0;
    gpst_graph_cache* const cache = make_cache(GPST_GRAPHS_ALWAYS, 0);
    printf("%d random shapes of four pieces, each twice, through a cache\n", n_shapes);
    for (int n = 1; n <= n_shapes; n++) {
        random = random * 1664525u + 1013904223u;
        const uint32_t width = 1 + (random >> 8) % SIDE, height = 1 + (random >> 17) % SIDE;
        for (int twice = 0; twice < 2; twice++) {
            BENCH_OK(gpst_graph_begin(stream));
            for (int piece = 1; piece <= 4; piece++)
                BENCH_OK(put_piece(piece, width, height, (random >> 26) * SHIFT_BYTES % (N_SHIFTS * SHIFT_BYTES)));
            BENCH_OK(gpst_graph_cache_run(cache, stream));
        }
        if (n % SYNC_EACH == 0)
            BENCH_OK(gpst_stream_synchronize(stream));
        if (n % (n_shapes > 10 ? n_shapes / 10 : 1) == 0) {
            gpst_graph_cache_info info;
            gpst_graph_cache_query_info(cache, &info);
            if (first_resident == 0)
                first_free = free_mb(), first_resident = resident_mb();
            printf("  after %6d: device free %.1f MiB (%+.1f), resident %.1f MiB (%+.1f); %u graphs, %llu bytes of "
                   "host, %llu of device; %llu captures, %llu updates, %llu hits\n",
                   n, free_mb(), free_mb() - first_free, resident_mb(), resident_mb() - first_resident, info.n_graphs,
                   (unsigned long long)info.host_bytes, (unsigned long long)info.device_bytes,
                   (unsigned long long)info.captures, (unsigned long long)info.updates, (unsigned long long)info.hits);
            fflush(stdout);
        }
    }
    BENCH_OK(gpst_stream_synchronize(stream));
    gpst_graph_cache_destroy(cache);
}

/* Of many graphs at once, since a driver takes memory in blocks. */
static void bench_memory(bool real, int n_nodes) {
    enum { N_GRAPHS = 256 };
    std::vector<gpst_graph*> graphs;
    const chain c = {real ? "256 x 256 frame" : "empty kernels", n_nodes, real};
    gpst_graph_info info = {};
    uint64_t told_bytes = 0;
    const double before = free_mb();
    for (int n = 0; n < N_GRAPHS; n++) {
        graphs.push_back(record(c, (size_t)(n % N_SHIFTS) * SHIFT_BYTES));
        gpst_graph_query_info(graphs.back(), &info);
        told_bytes += info.device_bytes;
    }
    const double made = free_mb();
    for (gpst_graph* graph : graphs)
        BENCH_OK(gpst_graph_launch(graph, stream));
    BENCH_OK(gpst_stream_synchronize(stream));
    const double launched = free_mb();
    for (gpst_graph* graph : graphs)
        gpst_graph_destroy(graph);
    const double gone = free_mb();
    printf("%d graphs of %d %s: %.1f KiB of the device each when made, %.1f KiB when launched (info says %.1f KiB); "
           "%.1f MiB less free than before when destroyed; %llu bytes of the host each\n",
           N_GRAPHS, n_nodes, c.name, (before - made) * 1024 / N_GRAPHS, (before - launched) * 1024 / N_GRAPHS,
           (double)told_bytes / 1024 / N_GRAPHS, before - gone, (unsigned long long)info.host_bytes);
    fflush(stdout);
}

/* ---- main -------------------------------------------------------------------------------------------- */

struct options {
    const char *only, *backend;
    int n_shapes;
};

static options read_options(int argc, char** argv) {
    options o = {"", "cuda", 100000};
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--json"))
            json = fopen(argv[i + 1], "w");
        else if (!strcmp(argv[i], "--shapes"))
            o.n_shapes = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--round"))
            round_us = 1000 * atof(argv[i + 1]);
        else if (!strcmp(argv[i], "--only"))
            o.only = argv[i + 1];
        else if (!strcmp(argv[i], "--backend"))
            o.backend = argv[i + 1];
    }
    return o;
}

static bool wanted(const options& o, const char* part) { return !*o.only || !strcmp(o.only, part); }

static void bench_all(const options& o) {
    for (const chain& c : chains)
        for (int pipelined = 0; pipelined < 2 && wanted(o, "chains"); pipelined++)
            bench_chain(c, pipelined);
    for (const chain& c : chains)
        if (wanted(o, "making"))
            bench_making(c);
    if (wanted(o, "memory"))
        for (int real = 0; real < 2; real++)
            for (int n = 10; n <= 100; n *= 10)
                bench_memory(real, n);
    if (wanted(o, "shapes"))
        bench_shapes(o.n_shapes);
}

int main(int argc, char** argv) {
    const options o = read_options(argc, argv);
    gpst_device_info info;
    int n_devices = 0;
    on_cuda = !strncmp(o.backend, "cuda", 4);
    if (on_cuda && (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0)) {
        printf("no device\n");
        return 77;
    }
    BENCH_OK(gpst_device_open(o.backend, &device));
    BENCH_OK(gpst_stream_create(device, &stream));
    gpst_device_query_info(device, &info);
    printf("%s: %s\n", info.backend, info.name);
    make_frame();
    bench_all(o);
    gpst_stream_destroy(stream);
    gpst_memory_destroy(frame.memory);
    gpst_warp_destroy(frame.warp);
    BENCH_OK(gpst_device_close(device));
    if (json)
        fclose(json);
    return 0;
}
