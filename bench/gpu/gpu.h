/* bench/gpu/gpu.h -- what the benchmarks of device code share: memory, times by events, medians with their spread,
   the copy that a share of bandwidth is measured against, and one line a row, as a table and as JSON. */
#ifndef GPST_BENCH_GPU_H
#define GPST_BENCH_GPU_H

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#define BENCH_RT(call)                                                                                    \
    do {                                                                                                  \
        const cudaError_t bench_error = (call);                                                           \
        if (bench_error != cudaSuccess) {                                                                 \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(bench_error)); \
            exit(1);                                                                                      \
        }                                                                                                 \
    } while (0)

struct bench_spread {
    double median, least, most; /* microseconds */
};

inline bench_spread bench_spread_of(std::vector<double>& values) {
    std::sort(values.begin(), values.end());
    return {values[values.size() / 2], values.front(), values.back()};
}

inline double bench_now_us() {
    using namespace std::chrono;
    return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

/* Microseconds of one launch: events around `together` of them, so that the gaps of the host do not count, n_samples
   times. launch(i) must take its input and output by i in turns, over more than the last cache holds. */
template <typename Launch>
bench_spread bench_device_time(cudaStream_t stream, int together, int n_samples, Launch launch) {
    cudaEvent_t begin, end;
    std::vector<double> samples;
    int i = 0;
    BENCH_RT(cudaEventCreate(&begin));
    BENCH_RT(cudaEventCreate(&end));
    for (int s = -2; s < n_samples; s++) { /* two to warm up */
        float ms = 0;
        BENCH_RT(cudaEventRecord(begin, stream));
        for (int k = 0; k < together; k++)
            launch(i++);
        BENCH_RT(cudaEventRecord(end, stream));
        BENCH_RT(cudaEventSynchronize(end));
        BENCH_RT(cudaEventElapsedTime(&ms, begin, end));
        if (s >= 0)
            samples.push_back(1000.0 * ms / together);
    }
    BENCH_RT(cudaEventDestroy(begin));
    BENCH_RT(cudaEventDestroy(end));
    return bench_spread_of(samples);
}

/* Microseconds from the call to the end of the work, seen by a host that spins. */
template <typename Launch>
bench_spread bench_latency(cudaStream_t stream, int n_samples, Launch launch) {
    std::vector<double> samples;
    for (int s = -20; s < n_samples; s++) {
        const double begin = bench_now_us();
        launch(s + 20);
        while (cudaStreamQuery(stream) == cudaErrorNotReady) {
        }
        if (s >= 0)
            samples.push_back(bench_now_us() - begin);
    }
    BENCH_RT(cudaStreamSynchronize(stream));
    return bench_spread_of(samples);
}

inline uint8_t* bench_alloc(size_t bytes) {
    void* memory = nullptr;
    BENCH_RT(cudaMalloc(&memory, bytes));
    return (uint8_t*)memory;
}

/* Random bytes, the same in every run. */
inline uint8_t* bench_alloc_random(size_t bytes, uint32_t seed) {
    std::vector<uint8_t> bytes_of(bytes);
    for (size_t i = 0; i < bytes; i += 4) {
        seed = seed * 1664525u + 1013904223u;
        for (size_t k = i; k < i + 4 && k < bytes; k++)
            bytes_of[k] = (uint8_t)(seed >> (8 * (k - i) + 3));
    }
    uint8_t* const memory = bench_alloc(bytes);
    BENCH_RT(cudaMemcpy(memory, bytes_of.data(), bytes, cudaMemcpyHostToDevice));
    return memory;
}

/* Bytes read and written per microsecond by a plain copy of 512 MiB. */
inline double bench_copy_bytes_per_us(cudaStream_t stream) {
    const size_t bytes = (size_t)512 << 20;
    uint8_t *const from = bench_alloc(bytes), *const to = bench_alloc(bytes);
    const bench_spread time = bench_device_time(stream, 4, 11, [&](int) {
        BENCH_RT(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream));
    });
    BENCH_RT(cudaFree(from));
    BENCH_RT(cudaFree(to));
    return 2.0 * (double)bytes / time.median;
}

/* One row: bytes 0 where no share is meant. */
inline void bench_row(FILE* json, const char* name, const bench_spread& time, double bytes, double copy_bytes_per_us) {
    const double share = bytes > 0 ? bytes / time.median / copy_bytes_per_us : 0;
    printf("%-52s %9.2f us  (%.2f .. %.2f)", name, time.median, time.least, time.most);
    if (bytes > 0)
        printf("  %7.1f MB  %6.1f %% of copy", bytes / 1e6, 100 * share);
    printf("\n");
    if (json)
        fprintf(json, "{\"case\": \"%s\", \"us\": %.3f, \"least_us\": %.3f, \"most_us\": %.3f, \"bytes\": %.0f, "
                      "\"share_of_copy\": %.4f}\n",
                name, time.median, time.least, time.most, bytes, share);
    fflush(stdout);
}

#define BENCH_OK(call)                                                                   \
    do {                                                                                 \
        if (GPST_FAILED(call)) {                                                         \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, gpst_last_reason());      \
            exit(1);                                                                     \
        }                                                                                \
    } while (0)

#endif
