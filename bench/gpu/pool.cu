/* bench/gpu/pool.cu -- device memory acquired and released: a gpst_pool of DEVICE memory in its steady state against a
   warm pair of cudaMallocAsync and cudaFreeAsync, with one thread and with 16, and against cudaMalloc and cudaFree. The
   ways take turns. One unit, by nvcc:

       nvcc -O3 -std=c++17 -arch=native -I. bench/gpu/pool.cu -o gpu_pool && ./gpu_pool [--json FILE] [--rounds N] */
#define GPUSTAGE_IMPLEMENTATION
#include "gpustage.h"

#include "gpu.h"

#include <atomic>
#include <cstring>
#include <thread>

#define MOST_THREADS 16

static double round_s = 0.4; /* of one way */

/* Nanoseconds of each pair, in buckets of a sixteenth of a power of two: a vector of all of them would be the larger
   part of what is measured. */
struct histogram {
    uint64_t n = 0, counts[64 * 16] = {0};
    void add(uint64_t ns) {
        const int log = ns < 16 ? 0 : 60 - __builtin_clzll(ns);
        counts[log * 16 + (int)((ns >> (log > 0 ? log - 1 : 0)) & 15)]++;
        n++;
    }
    void add(const histogram& other) {
        n += other.n;
        for (int i = 0; i < 64 * 16; i++)
            counts[i] += other.counts[i];
    }
    /* The middle of the bucket. */
    double at(double part) const {
        uint64_t left = (uint64_t)(part * (double)n);
        for (int i = 0; i < 64 * 16; i++) {
            if (left < counts[i]) {
                const int log = i / 16;
                return log == 0 ? i : (16.5 + i % 16) * (double)(1ull << (log - 1));
            }
            left -= counts[i];
        }
        return 0;
    }
};

static uint64_t now_ns(void) { return (uint64_t)gpst_now_ns(); }

/* One of the ways that are compared. */
struct way {
    const char* name;
    int n_threads;
    histogram times;
    std::vector<double> mean_ns; /* of a pair, without the clock in between: a round each */
};

/* Each thread has what it needs and begins when all have. Half of the time pairs are timed one by one, for the
   percentiles, half of it in blocks of 64, for what they cost without a clock beside them. */
template <typename Setup, typename Pair, typename End>
static void run_way(way& one, Setup setup, Pair pair, End end) {
    std::vector<std::thread> threads;
    std::vector<histogram> times(one.n_threads);
    std::vector<double> means(one.n_threads);
    std::atomic<int> n_ready{0};
    for (int t = 0; t < one.n_threads; t++)
        threads.emplace_back([&, t] {
            auto own = setup();
            pair(own);
            n_ready++;
            while (n_ready.load() < one.n_threads) {
            }
            const uint64_t half_ns = (uint64_t)(round_s * 5e8), begin = now_ns();
            uint64_t before = begin;
            while (before - begin < half_ns) {
                pair(own);
                const uint64_t now = now_ns();
                times[t].add(now - before);
                before = now;
            }
            uint64_t n = 0, now = before;
            while (now - before < half_ns) {
                for (int k = 0; k < 64; k++)
                    pair(own);
                n += 64;
                now = now_ns();
            }
            means[t] = (double)(now - before) / (double)n;
            end(own);
        });
    double mean = 0;
    for (int t = 0; t < one.n_threads; t++) {
        threads[t].join();
        one.times.add(times[t]);
        mean += means[t] / one.n_threads;
    }
    one.mean_ns.push_back(mean);
}

static void run_pool(way& one, gpst_pool* pool, size_t bytes) {
    run_way(
        one, [] { return 0; },
        [=](int) {
            gpst_buffer buffer;
            BENCH_OK(gpst_pool_acquire(pool, bytes, 0, &buffer));
            gpst_pool_release(pool, &buffer);
        },
        [](int) {});
}

static void run_async(way& one, size_t bytes) {
    run_way(
        one,
        [] {
            cudaStream_t stream;
            BENCH_RT(cudaSetDevice(0));
            BENCH_RT(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
            return stream;
        },
        [=](cudaStream_t stream) {
            void* memory = NULL;
            BENCH_RT(cudaMallocAsync(&memory, bytes, stream));
            BENCH_RT(cudaFreeAsync(memory, stream));
        },
        [](cudaStream_t stream) {
            BENCH_RT(cudaStreamSynchronize(stream));
            BENCH_RT(cudaStreamDestroy(stream));
        });
}

static void run_malloc(way& one, size_t bytes) {
    run_way(
        one, [] { return 0; },
        [=](int) {
            void* memory = NULL;
            BENCH_RT(cudaMalloc(&memory, bytes));
            BENCH_RT(cudaFree(memory));
        },
        [](int) {});
}

static double median_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

static void print_way(FILE* json, size_t bytes, const way& one, double ours_ns) {
    const double mean_ns = median_of(one.mean_ns);
    const double least = *std::min_element(one.mean_ns.begin(), one.mean_ns.end());
    const double most = *std::max_element(one.mean_ns.begin(), one.mean_ns.end());
    printf("%6zu KiB  %-21s %2d threads  %9.0f ns a pair (%.0f .. %.0f)  p50 %8.0f  p99 %9.0f  p99.9 %9.0f",
           bytes >> 10, one.name, one.n_threads, mean_ns, least, most, one.times.at(0.5), one.times.at(0.99),
           one.times.at(0.999));
    if (ours_ns > 0)
        printf("  %.1f times the pool's", mean_ns / ours_ns);
    printf("\n");
    if (json)
        fprintf(json,
                "{\"case\": \"%zu KiB, %s, %d threads\", \"ns\": %.1f, \"p50_ns\": %.0f, \"p99_ns\": %.0f, "
                "\"p999_ns\": %.0f, \"times_the_pool\": %.2f}\n",
                bytes >> 10, one.name, one.n_threads, mean_ns, one.times.at(0.5), one.times.at(0.99),
                one.times.at(0.999), ours_ns > 0 ? mean_ns / ours_ns : 1.0);
    fflush(stdout);
}

static void bench_size(FILE* json, gpst_context* context, size_t bytes, int n_rounds) {
    way pool_1 = {"gpst_pool", 1, {}, {}}, pool_16 = {"gpst_pool", MOST_THREADS, {}, {}};
    way async_1 = {"cudaMallocAsync, warm", 1, {}, {}}, async_16 = {"cudaMallocAsync, warm", MOST_THREADS, {}, {}};
    way plain = {"cudaMalloc", 1, {}, {}};
    gpst_pool_desc desc = GPST_ZERO;
    gpst_pool* pool = NULL;
    desc.kind = GPST_MEMORY_DEVICE;
    desc.tag = "bench";
    desc.chunk_bytes = &bytes;
    desc.n_chunk_bytes = 1;
    BENCH_OK(gpst_pool_create(context, &desc, &pool));
    for (int round = 0; round < n_rounds; round++) {
        run_pool(pool_1, pool, bytes);
        run_async(async_1, bytes);
        run_malloc(plain, bytes);
        run_pool(pool_16, pool, bytes);
        run_async(async_16, bytes);
    }
    print_way(json, bytes, pool_1, 0);
    print_way(json, bytes, async_1, median_of(pool_1.mean_ns));
    print_way(json, bytes, plain, median_of(pool_1.mean_ns));
    print_way(json, bytes, pool_16, 0);
    print_way(json, bytes, async_16, median_of(pool_16.mean_ns));
    gpst_pool_info info;
    gpst_pool_query_info(pool, &info);
    printf("%6zu KiB  the pool made %llu chunks for %llu acquires\n", bytes >> 10,
           (unsigned long long)info.allocations, (unsigned long long)info.acquires);
    BENCH_OK(gpst_pool_destroy(pool));
    gpst_context_trim(context);
}

/* What the soft marks ask beside each piece that is made. */
static void bench_query(FILE* json) {
    std::vector<double> samples;
    for (int s = 0; s < 200; s++) {
        size_t free_bytes = 0, total_bytes = 0;
        const double begin = bench_now_us();
        BENCH_RT(cudaMemGetInfo(&free_bytes, &total_bytes));
        samples.push_back(bench_now_us() - begin);
    }
    bench_row(json, "cudaMemGetInfo", bench_spread_of(samples), 0, 0);
}

int main(int argc, char** argv) {
    static const size_t sizes[] = {64 << 10, 1 << 20, 88 << 20};
    FILE* json = NULL;
    int n_rounds = 5;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--json"))
            json = fopen(argv[i + 1], "w");
        else if (!strcmp(argv[i], "--rounds"))
            n_rounds = atoi(argv[i + 1]) > 0 ? atoi(argv[i + 1]) : 1;
    }
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    desc.backend = "cuda";
    desc.require_backend = true;
    desc.n_workers = 1;
    if (GPST_FAILED(gpst_context_create(&desc, &context))) {
        printf("%s\n", gpst_last_reason());
        return 77;
    }
    uint64_t all = UINT64_MAX;
    cudaMemPool_t pool;
    gpst_context_info info;
    gpst_context_query_info(context, &info);
    printf("%s; %s; %u cores\n", gpst_build_info(), info.device_name, info.cores_allowed);
    BENCH_RT(cudaDeviceGetDefaultMemPool(&pool, 0)); /* it keeps all that it has */
    BENCH_RT(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all));
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++)
        bench_size(json, context, sizes[s], n_rounds);
    bench_query(json);
    if (json)
        fclose(json);
    gpst_context_destroy(context);
    return 0;
}
