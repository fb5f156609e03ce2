/* bench/gpu/memory.cu -- device memory taken and given back: gpst_memory_create and destroy, or a stream and an event
   likewise, against CUDA's own calls; both sides warm, on one thread. One unit, by nvcc:

       nvcc -O3 -std=c++17 -arch=native -I. bench/gpu/memory.cu -o gpu_memory && ./gpu_memory [--json FILE] */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include "gpu.h"

#include <string.h>

#define N_ROUNDS 5
#define N_PAIRS 20000

/* Microseconds of a pair, N_ROUNDS times after one to warm up. */
template <typename Pair>
static bench_spread measure(Pair pair) {
    std::vector<double> samples;
    for (int round = -1; round < N_ROUNDS; round++) {
        const double begin = bench_now_us();
        for (int n = 0; n < N_PAIRS; n++)
            pair();
        if (round >= 0)
            samples.push_back((bench_now_us() - begin) / N_PAIRS);
    }
    return bench_spread_of(samples);
}

/* CUDA's pool keeps all that it has. */
static void keep_all(void) {
    uint64_t all = UINT64_MAX;
    cudaMemPool_t pool;
    BENCH_RT(cudaDeviceGetDefaultMemPool(&pool, 0));
    BENCH_RT(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
}

static void compare(FILE* json, const char* what, const bench_spread& ours, const bench_spread& theirs) {
    char name[96];
    snprintf(name, sizeof name, "%s: gpustage", what);
    bench_row(json, name, ours, 0, 0);
    snprintf(name, sizeof name, "%s: CUDA, %.1f times as long", what, theirs.median / ours.median);
    bench_row(json, name, theirs, 0, 0);
}

static void bench_memory(FILE* json, gpst_device* device, size_t bytes) {
    char name[64];
    cudaStream_t stream;
    BENCH_RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    snprintf(name, sizeof name, "%zu KiB of device memory", bytes >> 10);
    const bench_spread ours = measure([&] {
        gpst_memory* memory = NULL;
        BENCH_OK(gpst_memory_create(device, GPST_MEMORY_DEVICE, bytes, &memory));
        gpst_memory_destroy(memory);
    });
    const bench_spread theirs = measure([&] {
        void* memory = NULL;
        BENCH_RT(cudaMallocAsync(&memory, bytes, stream));
        BENCH_RT(cudaFreeAsync(memory, stream));
    });
    compare(json, name, ours, theirs);
    BENCH_RT(cudaStreamDestroy(stream));
}

static void bench_handles(FILE* json, gpst_device* device) {
    const bench_spread streams = measure([&] {
        gpst_stream* stream = NULL;
        BENCH_OK(gpst_stream_create(device, &stream));
        gpst_stream_destroy(stream);
    });
    const bench_spread cuda_streams = measure([&] {
        cudaStream_t stream;
        BENCH_RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
        BENCH_RT(cudaStreamDestroy(stream));
    });
    const bench_spread events = measure([&] {
        gpst_event* event = NULL;
        BENCH_OK(gpst_event_create(device, &event));
        gpst_event_destroy(event);
    });
    const bench_spread cuda_events = measure([&] {
        cudaEvent_t event;
        BENCH_RT(cudaEventCreate(&event));
        BENCH_RT(cudaEventDestroy(event));
    });
    compare(json, "a stream", streams, cuda_streams);
    compare(json, "an event", events, cuda_events);
}

int main(int argc, char** argv) {
    static const size_t sizes[] = {64 << 10, 6 << 20, 88 << 20};
    FILE* const json = argc > 2 && !strcmp(argv[1], "--json") ? fopen(argv[2], "w") : NULL;
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    desc.backend = "cuda";
    desc.require_backend = true;
    if (GPST_FAILED(gpst_context_create(&desc, &context))) {
        printf("%s\n", gpst_last_reason());
        return 77;
    }
    gpst_device* const device = gpst_context_device(context);
    if (!device) /* compilers see that a missing context has none */
        return 1;
    printf("%s\n", gpst_build_info());
    keep_all();
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        bench_memory(json, device, sizes[s]);
    bench_handles(json, device);
    if (json)
        fclose(json);
    gpst_context_destroy(context);
    return 0;
}
