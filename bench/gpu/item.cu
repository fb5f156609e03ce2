/* bench/gpu/item.cu -- the ways one item can take to a GPU and back, by bare calls of the runtime: with copies or
   without, with events that time it or without, as launches or as a graph. From the first call to the end, as a host sees
   it that looks for 50 us and then sleeps.

   nvcc -O3 -std=c++17 -arch=native -I. bench/gpu/item.cu -o gpu_item
   ./gpu_item [--json FILE] */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include "gpu.h"

#include <cstring>

#define HOST_BYTES ((size_t)8 << 20)
#define N_CALLS 2000
#define LOOK_US 50

static cudaStream_t stream;
static cudaEvent_t begin_event, uploaded, computed, end_event, idle;
static FILE* json;

struct item { /* a square picture to one of half its side */
    gpst_warp* warp;
    size_t in_bytes, out_bytes;
    gpst_image host_in, host_out, device_in, device_out;
    cudaGraphExec_t graph;
};

struct way {
    const char* name;
    bool copies, events, graph;
};

static const way ways[] = {{"copies, an event behind every step", true, true, false},
                           {"copies", true, false, false},
                           {"a graph with copies", true, false, true},
                           {"in place, events around the kernel", false, true, false},
                           {"in place", false, false, false}};

static void need(gpst_result result) {
    if (GPST_FAILED(result)) {
        fprintf(stderr, "gpu_item: %s\n", gpst_last_reason());
        exit(1);
    }
}

static gpst_image square(uint32_t side, void* data) {
    gpst_image image = GPST_ZERO;
    image.width = image.height = side;
    image.format = GPST_FORMAT_RGB;
    image.data = data;
    return image;
}

static void record(cudaEvent_t event, bool wanted) {
    if (wanted)
        BENCH_RT(cudaEventRecord(event, stream));
}

static void submit(const item& it, bool copies, bool events) {
    record(begin_event, events);
    if (copies)
        BENCH_RT(cudaMemcpyAsync(it.device_in.data, it.host_in.data, it.in_bytes, cudaMemcpyHostToDevice, stream));
    record(uploaded, events && copies);
    need(gpst_warp_launch(it.warp, copies ? &it.device_in : &it.host_in, 1, copies ? &it.device_out : &it.host_out, 1,
                          stream));
    record(computed, events && copies);
    if (copies)
        BENCH_RT(cudaMemcpyAsync(it.host_out.data, it.device_out.data, it.out_bytes, cudaMemcpyDeviceToHost, stream));
    record(end_event, events);
}

static item make_item(uint32_t side, uint8_t* host) {
    gpst_warp_desc desc = GPST_ZERO;
    cudaGraph_t graph;
    item it = {};
    desc.map = GPST_MAP_RESIZE;
    desc.width = desc.height = side / 2;
    desc.format = GPST_FORMAT_RGB;
    need(gpst_warp_create(&desc, &it.warp));
    it.in_bytes = (size_t)side * side * 3;
    it.out_bytes = it.in_bytes / 4;
    it.host_in = square(side, host);
    it.host_out = square(side / 2, host + HOST_BYTES / 2);
    it.device_in = square(side, bench_alloc(it.in_bytes));
    it.device_out = square(side / 2, bench_alloc(it.out_bytes));
    BENCH_RT(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    submit(it, true, false);
    BENCH_RT(cudaStreamEndCapture(stream, &graph));
    BENCH_RT(cudaGraphInstantiate(&it.graph, graph, 0));
    BENCH_RT(cudaGraphDestroy(graph));
    return it;
}

static void free_item(const item& it) {
    BENCH_RT(cudaGraphExecDestroy(it.graph));
    BENCH_RT(cudaFree(it.device_in.data));
    BENCH_RT(cudaFree(it.device_out.data));
    gpst_warp_destroy(it.warp);
}

static void wait_idle(void) {
    const double until = bench_now_us() + LOOK_US;
    BENCH_RT(cudaEventRecord(idle, stream));
    cudaError_t error = cudaErrorNotReady;
    while (error == cudaErrorNotReady && bench_now_us() < until)
        error = cudaEventQuery(idle);
    BENCH_RT(cudaEventSynchronize(idle));
}

static void measure(const item& it, const way& w, uint32_t side) {
    std::vector<double> samples;
    char name[96];
    for (int n = -20; n < N_CALLS; n++) {
        const double start = bench_now_us();
        if (w.graph)
            BENCH_RT(cudaGraphLaunch(it.graph, stream));
        else
            submit(it, w.copies, w.events);
        wait_idle();
        if (n >= 0)
            samples.push_back(bench_now_us() - start);
    }
    snprintf(name, sizeof name, "%u x %u: %s", side, side, w.name);
    bench_row(json, name, bench_spread_of(samples), 0, 0);
}

int main(int argc, char** argv) {
    int n_devices = 0;
    void* host = NULL;
    if (cudaGetDeviceCount(&n_devices) != cudaSuccess || n_devices == 0) {
        printf("no device\n");
        return 77;
    }
    if (argc > 2 && !strcmp(argv[1], "--json"))
        json = fopen(argv[2], "w");
    BENCH_RT(cudaHostAlloc(&host, HOST_BYTES, cudaHostAllocDefault));
    memset(host, 7, HOST_BYTES);
    BENCH_RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    cudaEvent_t* const timed[] = {&begin_event, &uploaded, &computed, &end_event};
    for (cudaEvent_t* event : timed)
        BENCH_RT(cudaEventCreateWithFlags(event, cudaEventBlockingSync));
    BENCH_RT(cudaEventCreateWithFlags(&idle, cudaEventBlockingSync | cudaEventDisableTiming));
    for (uint32_t side = 16; side <= 1024; side *= 2) {
        const item it = make_item(side, (uint8_t*)host);
        for (const way& w : ways)
            measure(it, w, side);
        free_item(it);
    }
    BENCH_RT(cudaFreeHost(host));
    if (json)
        fclose(json);
    return 0;
}
