/* tools/gpustage/bench_kernels.c -- the kernels on the work of tools/workloads.h, each interleaved with a memcpy that
   moves as many bytes. A kernel is added there, not here. */
#if !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clock_gettime, sysconf */
#endif
#include "bench.h"
#include "bench_load.h"

#include "../measure.h"
#include "../workloads.h"
#include "console.h"
#include "interrupt.h"

/* ---- a row ---------------------------------------------------------------------------------- */

static void bench_samples(json* out, const char* key, const measured* self) {
    json_open(out, key, '[');
    for (uint32_t i = 0; i < BENCH_ROUNDS; i++)
        json_number(out, NULL, self->seconds[i]);
    json_close(out, ']');
}

static void bench_kernels_row(const workload_run* run, const measured both[2], json* out) {
    const measure_spread time = measure_spread_of(both[0].seconds, BENCH_ROUNDS),
                         share = measure_ratio(&both[1], &both[0], BENCH_ROUNDS);
    const double pixels = (double)run->output_pixels, bytes = (double)(run->read_bytes + run->written_bytes);
    char spread[40];
    snprintf(spread, sizeof spread, "%.3f (%.3f..%.3f)", 1e3 * time.median, 1e3 * time.min, 1e3 * time.max);
    printf("%-14s %7u  %-28s %8.3f %8.1f %8.1f %6.2f  %.1f %% (%.1f..%.1f)\n", run->work->name, run->n_threads, spread,
           1e9 * time.median / pixels, (double)run->read_bytes / 1e6, (double)run->written_bytes / 1e6,
           bytes / time.median / 1e9, 100.0 * share.median, 100.0 * share.min, 100.0 * share.max);
    fflush(stdout);
    json_open(out, NULL, '{');
    json_string(out, "work", run->work->name);
    json_string(out, "text", run->work->text);
    json_count(out, "threads", run->n_threads);
    json_count(out, "sets", run->n_sets);
    json_count(out, "output_pixels", run->output_pixels);
    json_count(out, "read_bytes", run->read_bytes);
    json_count(out, "written_bytes", run->written_bytes);
    json_number(out, "median_s", time.median);
    json_number(out, "ns_per_pixel", 1e9 * time.median / pixels);
    json_number(out, "share_of_memcpy", share.median);
    json_count(out, "pieces_per_sample", both[0].n_turns);
    bench_samples(out, "samples_s", &both[0]);
    bench_samples(out, "memcpy_samples_s", &both[1]);
    json_close(out, '}');
}

/* One kernel on 1 thread, then on all cores, on the same buffers. */
static int bench_kernels_one(const workload* work, uint32_t cores, json* out) {
    static workload_run run;
    static measured both[2];
    workload_copy copy = GPST_ZERO;
    memset(both, 0, sizeof both);
    both[0].run = work->run;
    both[0].user_data = &run;
    both[1].run = workload_copy_run;
    both[1].user_data = &copy;
    gpst_clear_reason();
    bool ok = workload_open(&run, work) && workload_copy_open(&copy, &run);
    for (uint32_t threads = 1; ok && threads <= cores; threads = threads < cores ? cores : cores + 1) {
        run.n_threads = threads;
        ok = measure_rounds(both, 2, BENCH_ROUNDS, BENCH_SAMPLE_S);
        if (ok)
            bench_kernels_row(&run, both, out);
    }
    if (!ok)
        console_error("kernels: %s: %s", work->name, gpst_last_reason()[0] ? gpst_last_reason() : "out of memory");
    workload_copy_close(&copy);
    workload_close(&run);
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}

/* ---- the case --------------------------------------------------------------------------------- */

static void bench_kernels_head(json* out) {
    static workload_run run;
    memset(&run, 0, sizeof run);
    run.work = workload_find("tensor");
    const char* const level = run.work->plan(&run) ? gpst_warp_cpu_level(run.warp) : "unknown";
    gpst_warp_destroy(run.warp);
    printf("kernels: level %s; medians of %d rounds (min..max), interleaved with memcpy; buffers rotate over more "
           "than the last cache, %.0f MiB\n",
           level, BENCH_ROUNDS, (double)workload_cache_bytes() / 1048576.0);
    for (size_t i = 0; i < WORKLOAD_COUNT; i++)
        printf("  %-16s%s\n", workloads[i].name, workloads[i].text);
    printf("%-14s %7s  %-28s %8s %8s %8s %6s  %s\n", "work", "threads", "ms", "ns/pixel", "MB read", "written", "GB/s",
           "of memcpy");
    json_string(out, "level", level);
    json_count(out, "cache_bytes", workload_cache_bytes());
    json_count(out, "rounds", BENCH_ROUNDS);
}

int bench_kernels(const bench_ask* asked, json* out) {
    (void)asked;
    const uint32_t cores = bench_cores();
    int status = EXIT_DONE;
    bench_kernels_head(out);
    json_open(out, "rows", '[');
    for (size_t i = 0; i < WORKLOAD_COUNT && status == EXIT_DONE && !interrupt_happened(); i++)
        status = bench_kernels_one(&workloads[i], cores, out);
    json_close(out, ']');
    return status;
}
