/* tools/gpustage/bench_engine.c -- the engine against plain loops and a pool of threads written by hand: the cases
   pipeline and never-slower. What a job does is bench_load.c's. */
#include "bench_load.h"

#include "../measure.h"
#include "console.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MB ((size_t)1 << 20)
enum { MIN_ROUNDS = 9, MAX_ROUNDS = 81 };
#define CELL_S 7.0        /* at most, once the fewest rounds are done */
#define WANTED_WIDTH 0.05 /* of the interval */

/* ---- pipeline -------------------------------------------------------------------------------- */

static const bench_load pipeline_loads[] = {
    {"files", "2 MiB in, 3 ms of CPU, a warp, 256 KiB out", "cpu", 150, 0,
     2 * MB, 3000, 0, 0, true, 0, MB / 4, false, false},
    {"files-sim", "the same with a modelled GPU and a disk of 0.5 GB/s", "sim:preset=rtx3090,read_gbps=0.5", 150, 0,
     2 * MB, 3000, MB, MB / 4, false, 0, MB / 4, false, false},
    {"origin", "8 views of a 7680x3840 JPEG: read 11.7 ms, decode 150 ms, GPU 0.1 ms, encode 8 x 15 ms",
     "sim:preset=rtx3090,read_us=11700,kernel_us=100", 64, 8,
     12 * MB, 150000, 88473600, 6220800, false, 15000, 1200 * 1024, false, false}};

static const char* const way_names[] = {"gpustage", "plain-serial", "plain-inside", "pool", "engine", "everything"};

static bool pipeline_rows(const bench_load* load, json* out) {
    bench_job* const job = bench_job_open(load, 0);
    static const bench_way ways[] = {BENCH_PLAIN_SERIAL, BENCH_EVERYTHING, BENCH_GPUSTAGE};
    static gpst_stats stats;
    bool ok = job != NULL;
    for (int i = 0; ok && i < 3; i++) {
        const bench_way way = ways[i];
        ok = bench_job_run(job, way, 0, &stats) > 0.0;
        if (!ok)
            break;
        const double rate = (double)stats.items_ok / ((double)stats.wall_ns / 1e9);
        printf("%-10s %-13s %9.1f %9.3f  %s\n", load->name, way_names[(int)way], rate, stats.verdict.efficiency,
               stats.verdict.text);
        json_open(out, NULL, '{');
        json_string(out, "load", load->name);
        json_string(out, "way", way_names[(int)way]);
        json_number(out, "items_per_s", rate);
        json_number(out, "efficiency", stats.verdict.efficiency);
        json_number(out, "bound_s", stats.verdict.bound_s);
        json_string(out, "verdict", stats.verdict.text);
        json_string(out, "settings", stats.settings);
        json_close(out, '}');
    }
    if (job)
        bench_job_close(job);
    return ok;
}

int bench_pipeline(json* out) {
    bool ok = true;
    printf("pipeline: one run each; efficiency = bound / measured\n%-10s %-13s %9s %9s  verdict\n", "load",
           "way", "items/s", "efficiency");
    json_open(out, "rows", '[');
    for (size_t i = 0; ok && i < sizeof pipeline_loads / sizeof pipeline_loads[0]; i++)
        ok = pipeline_rows(&pipeline_loads[i], out);
    json_close(out, ']');
    if (!ok)
        console_error("pipeline: %s", gpst_last_reason());
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}

/* ---- never slower -------------------------------------------------------------------------------- */

static const bench_load cells[] = {
    {"disk-bound", "sim, 0.05 GB/s", "sim:read_gbps=0.05", 64, 0,
     MB / 4, 500, 64 * 1024, 64 * 1024, false, 0, 0, false, false},
    {"warm-files", "cpu, 1 MiB from the page cache", "cpu", 400, 0,
     MB, 0, 0, 0, false, 0, 0, false, false},
    {"cpu-bound", "cpu, 5 ms a decode", "cpu", 96, 0,
     MB / 4, 5000, 0, 0, false, 0, 0, false, false},
    {"upload-bound", "sim, 0.25 GB/s", "sim:h2d_gbps=0.25", 64, 0,
     MB / 4, 300, MB, 64 * 1024, false, 0, 0, false, false},
    {"kernel-bound", "sim, 4 ms a kernel", "sim:kernel_us=4000", 64, 0,
     MB / 4, 300, MB, 64 * 1024, false, 0, 0, false, false},
    {"warp-bound", "cpu, a view of 640x480", "cpu", 96, 0,
     0, 0, 0, 0, true, 0, 0, false, false},
    {"sink-bound", "sim, 0.1 GB/s", "sim:write_gbps=0.1", 64, 0,
     0, 300, 64 * 1024, 64 * 1024, false, 0, MB / 2, false, false},
    {"fsync", "cpu, 1 MiB written and synced", "cpu", 64, 0,
     0, 300, 0, 0, false, 0, MB, true, false},
    {"many-small", "cpu, 10000 of 64 KiB", "cpu", 10000, 0,
     64 * 1024, 0, 0, 0, false, 0, 0, false, false},
    {"few-large", "cpu, 40 of 88 MB", "cpu", 40, 0,
     88000000, 2000, 0, 0, false, 0, 0, false, false},
    {"mixed-sizes", "cpu, 4 MiB and 256 KiB", "cpu", 200, 0,
     4 * MB, 300, 0, 0, false, 0, 64 * 1024, false, true},
    {"jittery-reads", "sim, 5 ms a file, +- 90 %", "sim:read_us=5000,jitter_pct=90,seed=1", 96, 0,
     64 * 1024, 300, 0, 0, false, 0, 0, false, false},
    {"one-item", "cpu, 5 ms a decode", "cpu", 1, 0,
     MB / 4, 5000, 0, 0, true, 0, MB / 4, false, false},
    {"three-items", "cpu, 5 ms a decode", "cpu", 3, 0,
     MB / 4, 5000, 0, 0, true, 0, MB / 4, false, false}};

/* Times as long as another way took over gpustage's, round by round; above 1 gpustage is faster. */
typedef struct interval {
    double low, middle, high;
} interval;

/* Of the median, 95 %, by ranks: nothing is assumed of how times are spread. */
static interval interval_of(const double* other, const double* self, uint32_t n) {
    double ratios[MAX_ROUNDS];
    interval out;
    for (uint32_t i = 0; i < n; i++)
        ratios[i] = other[i] / self[i];
    qsort(ratios, n, sizeof ratios[0], measure_compare);
    const uint32_t rank = (uint32_t)floor(((double)n - 1.96 * sqrt((double)n)) / 2.0);
    out.low = ratios[rank];
    out.middle = ratios[n / 2];
    out.high = ratios[n - 1 - rank];
    return out;
}

typedef struct cell_times {
    double seconds[4][MAX_ROUNDS]; /* by bench_way */
    uint32_t n;
    uint32_t n_threads; /* of the best pool */
} cell_times;

/* The grid, once: the number of threads whose better run of two is the shortest. */
static uint32_t cell_best_pool(bench_job* job, uint32_t n_items) {
    static const uint32_t grid[] = {1, 2, 4, 8, 16};
    uint32_t best = 1;
    double best_s = 1e9;
    for (size_t g = 0; g < sizeof grid / sizeof grid[0] && (g == 0 || grid[g] <= n_items); g++)
        for (int again = 0; again < 2; again++) {
            const double seconds = bench_job_run(job, BENCH_POOL, grid[g], NULL);
            if (seconds > 0.0 && seconds < best_s) {
                best_s = seconds;
                best = grid[g];
            }
        }
    return best;
}

static interval cell_against_plain(const cell_times* times) {
    const measure_spread serial = measure_spread_of(times->seconds[BENCH_PLAIN_SERIAL], times->n);
    const measure_spread inside = measure_spread_of(times->seconds[BENCH_PLAIN_INSIDE], times->n);
    const bench_way better = serial.median < inside.median ? BENCH_PLAIN_SERIAL : BENCH_PLAIN_INSIDE;
    return interval_of(times->seconds[better], times->seconds[BENCH_GPUSTAGE], times->n);
}

static bool cell_is_narrow(const cell_times* times) {
    const interval plain = cell_against_plain(times);
    const interval pool = interval_of(times->seconds[BENCH_POOL], times->seconds[BENCH_GPUSTAGE], times->n);
    return plain.high - plain.low <= WANTED_WIDTH * plain.middle && pool.high - pool.low <= WANTED_WIDTH * pool.middle;
}

/* Every way once a round, in another order each time; a first round warms up. */
static bool cell_measure(bench_job* job, cell_times* times, gpst_stats* stats) {
    const double start = measure_now();
    bool ok = true;
    for (int way = 0; ok && way < 4; way++)
        ok = bench_job_run(job, (bench_way)way, times->n_threads, stats) > 0.0;
    while (ok && times->n < MAX_ROUNDS &&
           (times->n < MIN_ROUNDS || (measure_now() - start < CELL_S && !cell_is_narrow(times)))) {
        for (int i = 0; ok && i < 4; i++) {
            const int way = (i + (int)times->n) % 4;
            const double seconds = bench_job_run(job, (bench_way)way, times->n_threads, way == 0 ? stats : NULL);
            times->seconds[way][times->n] = seconds;
            ok = seconds > 0.0;
        }
        times->n += ok ? 1 : 0;
    }
    return ok;
}

static void interval_json(json* out, const char* key, const interval* self) {
    json_open(out, key, '[');
    json_number(out, NULL, self->low);
    json_number(out, NULL, self->middle);
    json_number(out, NULL, self->high);
    json_close(out, ']');
}

/* The promise: not below 0.97 with 95 % certainty, and 0.99 in the middle. */
static bool cell_row(const bench_load* load, const cell_times* times, const gpst_stats* stats, json* out) {
    const interval plain = cell_against_plain(times);
    const interval pool = interval_of(times->seconds[BENCH_POOL], times->seconds[BENCH_GPUSTAGE], times->n);
    const measure_spread own = measure_spread_of(times->seconds[BENCH_GPUSTAGE], times->n);
    const bool holds = plain.low > 0.97 && plain.middle >= 0.99;
    printf("%-14s %6u %11.3f  %6.3f (%.3f..%.3f)  %6.3f (%.3f..%.3f) of %2u  %5.3f  %3u  %s\n", load->name,
           (unsigned)load->n_items, 1e3 * own.median, plain.middle, plain.low, plain.high, pool.middle, pool.low,
           pool.high, (unsigned)times->n_threads, stats->verdict.efficiency, (unsigned)times->n, holds ? "yes" : "NO");
    fflush(stdout);
    json_open(out, NULL, '{');
    json_string(out, "cell", load->name);
    json_string(out, "text", load->text);
    json_string(out, "backend", load->backend);
    json_count(out, "items", load->n_items);
    json_number(out, "gpustage_s", own.median);
    interval_json(out, "against_plain", &plain);
    interval_json(out, "against_pool", &pool);
    json_count(out, "pool_threads", times->n_threads);
    json_count(out, "rounds", times->n);
    json_bool(out, "holds", holds);
    json_number(out, "efficiency", stats->verdict.efficiency);
    json_string(out, "verdict", stats->verdict.text);
    for (int way = 0; way < 4; way++) {
        json_open(out, way_names[(int)way], '[');
        for (uint32_t i = 0; i < times->n; i++)
            json_number(out, NULL, times->seconds[way][i]);
        json_close(out, ']');
    }
    json_close(out, '}');
    return holds;
}

int bench_never_slower(json* out) {
    static cell_times times;
    static gpst_stats stats;
    uint32_t n_holds = 0, n = 0;
    bool ok = true;
    printf("never-slower: time of the better plain loop, and of the best pool of 1..16 threads, over gpustage's: "
           "median (95 %% interval); each with create and destroy\n%-14s %6s %11s  %-22s  %-28s  %5s  %3s  holds\n",
           "cell", "items", "gpustage ms", "against plain", "against pool", "eff.", "n");
    json_open(out, "rows", '[');
    for (size_t i = 0; ok && i < sizeof cells / sizeof cells[0]; i++) {
        bench_job* const job = bench_job_open(&cells[i], 0);
        memset(&times, 0, sizeof times);
        times.n_threads = job ? cell_best_pool(job, cells[i].n_items) : 1;
        ok = job && cell_measure(job, &times, &stats);
        if (ok) {
            n_holds += cell_row(&cells[i], &times, &stats, out) ? 1 : 0;
            n++;
        }
        if (job)
            bench_job_close(job);
    }
    json_close(out, ']');
    json_count(out, "cells", n);
    json_count(out, "holds", n_holds);
    if (!ok)
        console_error("never-slower: %s", gpst_last_reason());
    else
        printf("%u of %u cells hold\n", (unsigned)n_holds, (unsigned)n);
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}
