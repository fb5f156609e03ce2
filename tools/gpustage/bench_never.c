/* tools/gpustage/bench_never.c -- the case never-slower: what one gets who asks for nothing, against both plain loops
   and a pool of threads written by hand, in every kind of job on every backend. What a job does is bench_load.c's. */
#include "bench_load.h"

#include "../measure.h"
#include "console.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define KB ((size_t)1024)
#define MB (KB * KB)
enum { LEAST_ROUNDS = 6, MIN_ROUNDS = 9, MAX_ROUNDS = 81, N_BACKENDS = 3, MANY_ITEMS = 64 };
#define CELL_S 7.0        /* at most, once the fewest rounds are done */
#define WANTED_WIDTH 0.05 /* of the interval */

/* ---- the matrix ------------------------------------------------------------------------------------ */

/* On each backend one row. A device has bytes to carry, so that the row is about it. */
typedef struct never_cell {
    const char* backends[N_BACKENDS]; /* cpu, sim, cuda; NULL = there is no such row */
    size_t device_bytes;              /* up, where the load says nothing and the backend is a device */
    bench_load load;                  /* without its backend */
} never_cell;

static const char* const backend_names[N_BACKENDS] = {"cpu", "sim", "cuda"};

static const never_cell cells[] = {
    {{"cpu", "sim:preset=h200,read_gbps=0.2", "cuda"}, MB,
     {"disk-cold", "1 MiB from the disk; sim: 0.2 GB/s", NULL, 64, 0,
      MB, 300, 0, 0, false, 0, 0, false, false, 0, true}},
    {{"cpu", "sim:preset=h200", "cuda"}, MB,
     {"warm-files", "1 MiB from the page cache", NULL, 400, 0,
      MB, 0, 0, 0, false, 0, 0, false, false, 0, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 0,
     {"jpeg-decode", "1024x512 JPEG, a view of 640x480", NULL, 64, 0,
      0, 0, 0, 0, true, 0, 0, false, false, 1024, false}},
    {{NULL, "sim:h2d_gbps=0.5", NULL}, 0,
     {"upload-bound", "1 MiB at 0.5 GB/s", NULL, 64, 0,
      MB / 4, 300, MB, 64 * KB, false, 0, 0, false, false, 0, false}},
    {{NULL, NULL, "cuda"}, 0,
     {"upload-bound", "64 MiB an item", NULL, 64, 0,
      64 * KB, 100, 64 * MB, 64 * KB, false, 0, 0, false, false, 0, false}},
    {{NULL, "sim:kernel_us=2000", NULL}, 0,
     {"kernel-bound", "2 ms a kernel", NULL, 64, 0,
      MB / 4, 300, MB, 64 * KB, false, 0, 0, false, false, 0, false}},
    {{"cpu", NULL, "cuda"}, 0,
     {"warp-bound", "a view of 640x480", NULL, 96, 0,
      0, 0, 0, 0, true, 0, 0, false, false, 0, false}},
    {{"cpu", "sim:write_gbps=0.2", "cuda"}, 64 * KB,
     {"sink-bound", "512 KiB written; sim: 0.2 GB/s", NULL, 64, 0,
      0, 100, 0, 64 * KB, false, 0, MB / 2, false, false, 0, false}},
    {{"cpu", NULL, NULL}, 0,
     {"fsync", "1 MiB written and synced", NULL, 64, 0,
      0, 300, 0, 0, false, 0, MB, true, false, 0, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 64 * KB,
     {"many-small", "10000 of 64 KiB", NULL, 10000, 0,
      64 * KB, 0, 0, 0, false, 0, 0, false, false, 0, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 84 * MB,
     {"few-large", "40 of 88 MB", NULL, 40, 0,
      88000000, 2000, 0, 0, false, 0, 0, false, false, 0, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, MB,
     {"mixed-sizes", "4 MiB and 256 KiB", NULL, 200, 0,
      4 * MB, 300, 0, 0, false, 0, 64 * KB, false, true, 0, false}},
    {{NULL, "sim:read_us=3000,jitter_pct=90,seed=1", NULL}, 0,
     {"jittery-reads", "3 ms a file, +- 90 %", NULL, 96, 0,
      64 * KB, 300, 0, 0, false, 0, 0, false, false, 0, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 0,
     {"one-item", "5 ms of CPU, a view, a file", NULL, 1, 0,
      MB / 4, 5000, 0, 0, true, 0, MB / 4, false, false, 0, false}},
    {{"cpu", "sim:preset=h200", "cuda"}, 0,
     {"three-items", "5 ms of CPU, a view, a file", NULL, 3, 0,
      MB / 4, 5000, 0, 0, true, 0, MB / 4, false, false, 0, false}}};
#define N_CELLS (sizeof cells / sizeof cells[0])
#define N_ROWS (N_CELLS * N_BACKENDS)

typedef struct never_row {
    char name[48]; /* cell/backend */
    bench_load load;
    bool on_cpu;
} never_row;

static bool row_of(size_t index, never_row* out) {
    const never_cell* const cell = &cells[index / N_BACKENDS];
    const size_t b = index % N_BACKENDS;
    if (!cell->backends[b] || (cell->load.jpeg_width > 0 && !bench_has_jpeg()))
        return false;
    out->load = cell->load;
    out->load.backend = cell->backends[b];
    out->on_cpu = b == 0;
    if (!out->on_cpu && !out->load.warp && out->load.up_bytes == 0)
        out->load.up_bytes = cell->device_bytes;
    if (out->on_cpu || out->load.up_bytes == 0)
        out->load.down_bytes = 0;
    out->load.cold = cell->load.cold && b != 1; /* the model's disk is as slow as it says */
    snprintf(out->name, sizeof out->name, "%s/%s", cell->load.name, backend_names[b]);
    return true;
}

/* Does --only name the row? */
static bool row_is_asked(const never_row* row, const char* only) {
    while (only && *only) {
        const size_t bytes = strcspn(only, ",");
        char part[48];
        snprintf(part, sizeof part, "%.*s", (int)bytes, only);
        if (bytes > 0 && strstr(row->name, part))
            return true;
        only += bytes + (only[bytes] ? 1 : 0);
    }
    return only == NULL;
}

/* ---- rounds ------------------------------------------------------------------------------------------- */

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
    const double rank_of = floor(((double)n - 1.96 * sqrt((double)n)) / 2.0);
    const uint32_t rank = rank_of > 0.0 ? (uint32_t)rank_of : 0;
    out.low = ratios[rank];
    out.middle = n % 2 ? ratios[n / 2] : (ratios[n / 2 - 1] + ratios[n / 2]) / 2.0;
    out.high = ratios[n - 1 - rank];
    return out;
}

enum { N_WAYS = 4 };
static const char* const way_names[N_WAYS] = {"gpustage", "plain_serial", "plain_inside", "pool"};

typedef struct row_times {
    double seconds[N_WAYS][MAX_ROUNDS]; /* by bench_way */
    uint32_t n;
    uint32_t n_threads; /* of the best pool */
    bool has_inside;    /* kernels on the CPU, which threads inside can share */
} row_times;

/* The grid, once: the number of threads whose better run of two is the shortest. */
static uint32_t row_best_pool(bench_job* job, uint32_t n_items) {
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

static interval row_against_plain(const row_times* times) {
    const measure_spread serial = measure_spread_of(times->seconds[BENCH_PLAIN_SERIAL], times->n);
    const measure_spread inside = measure_spread_of(times->seconds[BENCH_PLAIN_INSIDE], times->n);
    const bool better_inside = times->has_inside && inside.median < serial.median;
    return interval_of(times->seconds[better_inside ? BENCH_PLAIN_INSIDE : BENCH_PLAIN_SERIAL],
                       times->seconds[BENCH_GPUSTAGE], times->n);
}

static interval row_against_pool(const row_times* times) {
    return interval_of(times->seconds[BENCH_POOL], times->seconds[BENCH_GPUSTAGE], times->n);
}

static bool row_is_narrow(const row_times* times) {
    const interval plain = row_against_plain(times), pool = row_against_pool(times);
    return plain.high - plain.low <= WANTED_WIDTH * plain.middle && pool.high - pool.low <= WANTED_WIDTH * pool.middle;
}

static bool row_goes_on(const row_times* times, double spent_s, double budget_s) {
    if (times->n >= MAX_ROUNDS)
        return false;
    if (budget_s > 0.0 && spent_s >= budget_s)
        return times->n < LEAST_ROUNDS;
    return times->n < MIN_ROUNDS || (spent_s < (budget_s > 0.0 ? budget_s : CELL_S) && !row_is_narrow(times));
}

/* Every way once a round, in another order each time and by turns backwards, so that none always follows the same one:
   threads and memory that a way leaves behind are the next one's. A first round warms up. Without a kernel on the CPU
   the two plain loops are one. */
static bool row_measure(bench_job* job, row_times* times, double start, double budget_s, gpst_stats* stats) {
    bool ok = true;
    for (int way = 0; ok && way < N_WAYS; way++)
        if (way != BENCH_PLAIN_INSIDE || times->has_inside)
            ok = bench_job_run(job, (bench_way)way, times->n_threads, stats) > 0.0;
    while (ok && row_goes_on(times, measure_now() - start, budget_s)) {
        for (int i = 0; ok && i < N_WAYS; i++) {
            const int turn = times->n % 2 == 0 ? i : N_WAYS - 1 - i;
            const int way = (turn + (int)times->n / 2) % N_WAYS;
            if (way == BENCH_PLAIN_INSIDE && !times->has_inside)
                continue;
            const double seconds = bench_job_run(job, (bench_way)way, times->n_threads, way == 0 ? stats : NULL);
            times->seconds[way][times->n] = seconds;
            ok = seconds > 0.0;
        }
        times->n += ok ? 1 : 0;
    }
    return ok;
}

/* ---- what came of it ------------------------------------------------------------------------------------- */

static void interval_json(json* out, const char* key, const interval* self) {
    json_open(out, key, '[');
    json_number(out, NULL, self->low);
    json_number(out, NULL, self->middle);
    json_number(out, NULL, self->high);
    json_close(out, ']');
}

/* What is promised of the row, and kept. */
typedef struct row_verdict {
    interval plain, pool;
    bool plain_holds; /* not below 0.97 with 95 % certainty, and 0.99 in the middle */
    bool pool_holds, efficiency_holds; /* of 64 items and more */
} row_verdict;

static row_verdict row_judge(const never_row* row, const row_times* times, const gpst_stats* stats) {
    row_verdict out;
    out.plain = row_against_plain(times);
    out.pool = row_against_pool(times);
    out.plain_holds = out.plain.low > 0.97 && out.plain.middle >= 0.99;
    out.pool_holds = row->load.n_items < MANY_ITEMS || out.pool.middle >= 0.97;
    out.efficiency_holds = row->load.n_items < MANY_ITEMS || stats->verdict.efficiency >= 0.95;
    return out;
}

/* What the latest run spent on comparing, and asked of memory when it should not any more. */
static void row_json_costs(const gpst_stats* stats, const gpst_guard_report* guard, json* out) {
    json_number(out, "guard_part", stats->wall_ns > 0 ? (double)guard->cost_ns / (double)stats->wall_ns : 0.0);
    json_string(out, "guard", guard->text);
    json_count(out, "allocations_after_freeze", stats->allocations_after_freeze);
    json_count(out, "growths_after_freeze", stats->growths_after_freeze);
}

static void row_json(const never_row* row, const row_times* times, const row_verdict* verdict, const gpst_stats* stats,
                     const bench_job* job, json* out) {
    json_open(out, NULL, '{');
    json_string(out, "cell", row->name);
    json_string(out, "text", row->load.text);
    json_string(out, "backend", row->load.backend);
    json_count(out, "items", row->load.n_items);
    json_number(out, "gpustage_s", measure_spread_of(times->seconds[BENCH_GPUSTAGE], times->n).median);
    interval_json(out, "against_plain", &verdict->plain);
    interval_json(out, "against_pool", &verdict->pool);
    json_count(out, "pool_threads", times->n_threads);
    json_count(out, "rounds", times->n);
    json_bool(out, "plain_holds", verdict->plain_holds);
    json_bool(out, "pool_holds", verdict->pool_holds);
    json_bool(out, "efficiency_holds", verdict->efficiency_holds);
    json_number(out, "efficiency", stats->verdict.efficiency);
    json_string(out, "verdict", stats->verdict.text);
    json_string(out, "settings", stats->settings);
    if (row->load.cold)
        json_number(out, "resident_before_pct", bench_job_resident_pct(job));
    row_json_costs(stats, &bench_job_report(job)->guard, out);
    for (int way = 0; way < N_WAYS; way++) {
        if (way == BENCH_PLAIN_INSIDE && !times->has_inside)
            continue;
        json_open(out, way_names[way], '[');
        for (uint32_t i = 0; i < times->n; i++)
            json_number(out, NULL, times->seconds[way][i]);
        json_close(out, ']');
    }
    json_close(out, '}');
}

static void row_print(const never_row* row, const row_times* times, const row_verdict* verdict,
                      const gpst_stats* stats, double residency_pct) {
    printf("%-18s %6u %10.3f  %6.3f (%.3f..%.3f)  %6.3f (%.3f..%.3f) of %2u  %5.3f  %3u  %s%s%s", row->name,
           (unsigned)row->load.n_items, 1e3 * measure_spread_of(times->seconds[BENCH_GPUSTAGE], times->n).median,
           verdict->plain.middle, verdict->plain.low, verdict->plain.high, verdict->pool.middle, verdict->pool.low,
           verdict->pool.high, (unsigned)times->n_threads, stats->verdict.efficiency, (unsigned)times->n,
           verdict->plain_holds ? "yes" : "NO", verdict->pool_holds ? "" : ", pool NO",
           verdict->efficiency_holds ? "" : ", efficiency NO");
    if (row->load.cold)
        printf(" (%.0f %% resident)", residency_pct);
    printf("\n");
    fflush(stdout);
}

typedef struct never_counts {
    uint32_t rows, skipped, plain, pool, efficiency;
} never_counts;

/* A row whose device is not here is skipped, with the reason. */
static bool row_run(const never_row* row, double budget_s, never_counts* counts, json* out) {
    static row_times times;
    static gpst_stats stats;
    const double start = measure_now();
    bench_job* const job = bench_job_open(&row->load, 0);
    if (!job && strcmp(row->load.backend, "cuda") == 0) {
        printf("%-18s skipped: %s\n", row->name, gpst_last_reason());
        counts->skipped++;
        return true;
    }
    memset(&times, 0, sizeof times);
    times.n_threads = job ? row_best_pool(job, row->load.n_items) : 1;
    times.has_inside = row->on_cpu && row->load.warp;
    const bool ok = job && row_measure(job, &times, start, budget_s, &stats);
    if (ok) {
        const row_verdict verdict = row_judge(row, &times, &stats);
        row_print(row, &times, &verdict, &stats, bench_job_resident_pct(job));
        row_json(row, &times, &verdict, &stats, job, out);
        counts->rows++;
        counts->plain += verdict.plain_holds ? 1 : 0;
        counts->pool += verdict.pool_holds ? 1 : 0;
        counts->efficiency += verdict.efficiency_holds ? 1 : 0;
    }
    if (job)
        bench_job_close(job);
    return ok;
}

int bench_never_slower(const bench_ask* asked, json* out) {
    const double end = measure_now() + (double)asked->budget_s;
    never_counts counts = GPST_ZERO;
    never_row row;
    uint32_t n_left = 0;
    bool ok = true;
    for (size_t i = 0; i < N_ROWS; i++)
        n_left += row_of(i, &row) && row_is_asked(&row, asked->only) ? 1 : 0;
    printf("never-slower: time of the better plain loop, and of the best pool of 1..16 threads, over gpustage's: "
           "median (95 %% interval); each with create and destroy\n%-18s %6s %10s  %-22s  %-28s  %5s  %3s  holds\n",
           "cell", "items", "ms", "against plain", "against pool", "eff.", "n");
    json_open(out, "rows", '[');
    for (size_t i = 0; ok && i < N_ROWS; i++) {
        if (!row_of(i, &row) || !row_is_asked(&row, asked->only))
            continue;
        const double left_s = end - measure_now();
        ok = row_run(&row, asked->budget_s ? (left_s > 0.1 ? left_s : 0.1) / n_left : 0.0, &counts, out);
        n_left--;
    }
    json_close(out, ']');
    json_count(out, "cells", counts.rows);
    json_count(out, "skipped", counts.skipped);
    json_count(out, "holds", counts.plain);
    if (!ok)
        console_error("never-slower: %s: %s", row.name, gpst_last_reason());
    else
        printf("of %u cells %u hold against plain, %u against the pool, %u in efficiency; %u skipped\n",
               (unsigned)counts.rows, (unsigned)counts.plain, (unsigned)counts.pool, (unsigned)counts.efficiency,
               (unsigned)counts.skipped);
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}
