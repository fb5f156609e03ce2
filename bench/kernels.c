/* bench/kernels.c -- the kernels on the work of workloads.h, on one thread and on all cores, each interleaved with a
   memcpy that moves as many bytes. A kernel is added in workloads.h, not here.

   kernels [--rounds N] */
#define _GNU_SOURCE
#include "measure.h"
#include "workloads.h"

#define SAMPLE_S 0.02

static uint32_t cores(void) {
    static gpst_probe_info info;
    return GPST_FAILED(gpst_probe(NULL, &info)) || info.cores_allowed == 0 ? 1 : info.cores_allowed;
}

static void print_row(const workload_run* run, const measured both[2], uint32_t n_rounds) {
    const measure_spread time = measure_spread_of(both[0].seconds, n_rounds),
                         share = measure_ratio(&both[1], &both[0], n_rounds);
    const double pixels = (double)run->output_pixels, bytes = (double)(run->read_bytes + run->written_bytes);
    char spread[40];
    snprintf(spread, sizeof spread, "%.3f (%.3f..%.3f)", 1e3 * time.median, 1e3 * time.min, 1e3 * time.max);
    printf("%-14s %7u  %-28s %8.3f %8.1f %8.1f %6.2f  %.1f %% (%.1f..%.1f)\n", run->work->name, run->n_threads, spread,
           1e9 * time.median / pixels, (double)run->read_bytes / 1e6, (double)run->written_bytes / 1e6,
           bytes / time.median / 1e9, 100.0 * share.median, 100.0 * share.min, 100.0 * share.max);
    fflush(stdout);
}

/* On 1 thread, then on all cores, on the same buffers. */
static bool measure_kernel(const workload* work, uint32_t n_cores, uint32_t n_rounds) {
    static workload_run run;
    static measured both[2];
    workload_copy copy = GPST_ZERO;
    memset(both, 0, sizeof both);
    both[0].run = work->run;
    both[0].user_data = &run;
    both[1].run = workload_copy_run;
    both[1].user_data = &copy;
    bool ok = workload_open(&run, work) && workload_copy_open(&copy, &run);
    for (uint32_t threads = 1; ok && threads <= n_cores; threads = threads < n_cores ? n_cores : n_cores + 1) {
        run.n_threads = threads;
        ok = measure_rounds(both, 2, n_rounds, SAMPLE_S);
        if (ok)
            print_row(&run, both, n_rounds);
    }
    if (!ok)
        fprintf(stderr, "kernels: %s: %s\n", work->name, gpst_last_reason()[0] ? gpst_last_reason() : "out of memory");
    workload_copy_close(&copy);
    workload_close(&run);
    return ok;
}

static void print_head(uint32_t n_rounds) {
    static workload_run run;
    run.work = workload_find("tensor");
    const char* const level = run.work->plan(&run) ? gpst_warp_cpu_level(run.warp) : "unknown";
    gpst_warp_destroy(run.warp);
    printf("%s\nlevel %s; medians of %u rounds (min..max), interleaved with memcpy; buffers rotate over more than the "
           "last cache, %.0f MiB\n",
           gpst_build_info(), level, (unsigned)n_rounds, (double)workload_cache_bytes() / 1048576.0);
    for (size_t i = 0; i < WORKLOAD_COUNT; i++)
        printf("  %-16s%s\n", workloads[i].name, workloads[i].text);
    printf("%-14s %7s  %-28s %8s %8s %8s %6s  %s\n", "work", "threads", "ms", "ns/pixel", "MB read", "written", "GB/s",
           "of memcpy");
}

int main(int argc, char** argv) {
    const uint32_t n_rounds = measure_rounds_asked(argc, argv, 11), n_cores = cores();
    bool ok = n_rounds > 0;
    if (ok)
        print_head(n_rounds);
    for (size_t i = 0; ok && i < WORKLOAD_COUNT; i++)
        ok = measure_kernel(&workloads[i], n_cores, n_rounds);
    return ok ? 0 : 1;
}
