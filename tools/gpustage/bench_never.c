/* tools/gpustage/bench_never.c -- the case never-slower: what one gets who asks for nothing, against both plain loops
   and a pool of threads written by hand, in every kind of job on every backend. Which jobs is bench_never_jobs.c's. */
#include "bench_never_jobs.h"
#include "bench_never_rounds.h"

#include "../measure.h"
#include "console.h"
#include "stats.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { N_LEARN = 12 }; /* runs in which gpustage comes to know a job; the pool has those of its grid */
enum { LEARN_ITEMS = 4 }; /* of a list that is long enough to be remembered */
#define CELL_S 7.0 /* without a budget; at most, once the fewest rounds are done */
#define REST_NS 20000000

/* ---- rounds ------------------------------------------------------------------------------------------- */

/* The first ones are those of bench_way; the last is a plain loop, too. */
enum { CONTROL = 4, N_TURNS };
static const char* const turn_names[N_TURNS] = {"gpustage", "plain_serial", "plain_inside", "pool", "control"};

/* seconds, efficiency: of every round; the rest: of the round that had the most. */
typedef struct row_times {
    double seconds[N_TURNS][BENCH_MOST_ROUNDS];
    double efficiency[BENCH_MOST_ROUNDS];
    double guard_part; /* of its wall time, spent on comparing */
    uint64_t allocations_after_freeze, growths_after_freeze;
    double slowest_s;          /* of gpustage's rounds, and what it had to say of that one */
    gpst_stats slowest;
    gpst_tuner_report slowest_tuner;
    uint32_t n;
    bench_pool pool;    /* the best */
    bool has[N_TURNS];  /* inside: kernels on the CPU, which threads inside can share */
} row_times;

/* What a pool of the grid took, shortest run; 0 = it is larger than the list is long. */
typedef struct grid_pool {
    bench_pool pool;
    double seconds;
} grid_pool;

enum { N_GRID_THREADS = 5, N_GRID_DEPTHS = 4, N_GRID = N_GRID_THREADS * N_GRID_DEPTHS };
#define GRID_AGAIN 1.25 /* pools that took so many times the shortest have another run */

static void grid_run(bench_job* job, grid_pool* self) {
    const double seconds = bench_job_run(job, BENCH_POOL, &self->pool, NULL);
    if (seconds > 0.0 && (self->seconds <= 0.0 || seconds < self->seconds))
        self->seconds = seconds;
}

static const grid_pool* grid_best(const grid_pool* grid) {
    const grid_pool* best = grid;
    for (size_t g = 1; g < N_GRID; g++)
        if (grid[g].seconds > 0.0 && grid[g].seconds < best->seconds)
            best = &grid[g];
    return best;
}

/* The grid, once: each pool, and then twice more each that was not far from the best. */
static bench_pool row_best_pool(bench_job* job, uint32_t n_items) {
    grid_pool grid[N_GRID];
    memset(grid, 0, sizeof grid);
    for (size_t g = 0; g < N_GRID; g++) {
        grid[g].pool.n_threads = 1u << g / N_GRID_DEPTHS;
        grid[g].pool.depth = 1u << g % N_GRID_DEPTHS;
        if (g == 0 || grid[g].pool.n_threads * grid[g].pool.depth <= n_items)
            grid_run(job, &grid[g]);
    }
    for (int again = 0; again < 2; again++) {
        const double far_s = GRID_AGAIN * grid_best(grid)->seconds;
        for (size_t g = 0; g < N_GRID; g++)
            if (grid[g].seconds > 0.0 && grid[g].seconds < far_s)
                grid_run(job, &grid[g]);
    }
    return grid_best(grid)->pool;
}

static bench_interval row_against_plain(const row_times* times) {
    const measure_spread serial = measure_spread_of(times->seconds[BENCH_PLAIN_SERIAL], times->n);
    const measure_spread inside = measure_spread_of(times->seconds[BENCH_PLAIN_INSIDE], times->n);
    const bool better_inside = times->has[BENCH_PLAIN_INSIDE] && inside.median < serial.median;
    return bench_interval_of(times->seconds[better_inside ? BENCH_PLAIN_INSIDE : BENCH_PLAIN_SERIAL],
                             times->seconds[BENCH_GPUSTAGE], times->n);
}

static bench_interval row_against_pool(const row_times* times) {
    return bench_interval_of(times->seconds[BENCH_POOL], times->seconds[BENCH_GPUSTAGE], times->n);
}

/* The plain loop against itself: holds 1, unless turns or intervals are not what they seem. */
static bench_interval row_control(const row_times* times) {
    return bench_interval_of(times->seconds[CONTROL], times->seconds[BENCH_PLAIN_SERIAL], times->n);
}

static bool row_goes_on(const row_times* times, double spent_s, double budget_s) {
    const bool in_time = spent_s < (budget_s > 0.0 ? budget_s : CELL_S);
    if (times->n < BENCH_LEAST_ROUNDS)
        return true;
    const bench_interval plain = row_against_plain(times), pool = row_against_pool(times);
    return in_time && bench_wants_more(&plain, &pool, times->n);
}

/* Threads that were inside a kernel look for more on their cores for some ms: nobody who asks for one run has them. */
static void row_rest(const row_times* times) {
    const struct timespec rest = {0, REST_NS};
    if (times->has[BENCH_PLAIN_INSIDE])
        nanosleep(&rest, NULL);
}

/* What the verdict says of a run, what it spent on comparing, and asked of memory when it should not any more. */
static void row_note(row_times* times, const gpst_stats* stats, const gpst_guard_report* guard) {
    const double guard_part = stats->wall_ns > 0 ? (double)guard->cost_ns / (double)stats->wall_ns : 0.0;
    times->efficiency[times->n] = stats->verdict.efficiency;
    if (guard_part > times->guard_part)
        times->guard_part = guard_part;
    if (stats->allocations_after_freeze > times->allocations_after_freeze)
        times->allocations_after_freeze = stats->allocations_after_freeze;
    if (stats->growths_after_freeze > times->growths_after_freeze)
        times->growths_after_freeze = stats->growths_after_freeze;
}

static void row_note_slowest(row_times* times, const gpst_stats* stats, const gpst_tuner_report* tuner) {
    const double seconds = times->seconds[BENCH_GPUSTAGE][times->n];
    if (seconds <= times->slowest_s)
        return;
    times->slowest_s = seconds;
    times->slowest = *stats;
    times->slowest_tuner = *tuner;
}

static bool row_turn(bench_job* job, row_times* times, uint32_t turn, gpst_stats* stats) {
    const bench_way way = turn == CONTROL ? BENCH_PLAIN_SERIAL : (bench_way)turn;
    row_rest(times);
    times->seconds[turn][times->n] =
        bench_job_run(job, way, &times->pool, turn == BENCH_GPUSTAGE ? stats : NULL);
    if (turn == BENCH_GPUSTAGE) {
        row_note(times, stats, &bench_job_report(job)->guard);
        row_note_slowest(times, stats, bench_job_report(job));
    }
    return times->seconds[turn][times->n] > 0.0;
}

static uint32_t row_n_turns(const row_times* times) {
    uint32_t n = 0;
    for (uint32_t turn = 0; turn < N_TURNS; turn++)
        n += times->has[turn] ? 1 : 0;
    return n;
}

/* The which-th of those that take part. */
static uint32_t row_turn_of(const row_times* times, uint32_t which) {
    uint32_t turn = 0;
    while (!times->has[turn] || which-- > 0)
        turn++;
    return turn;
}

/* Not where every run is to be the first one of its context. */
static bool row_learn(bench_job* job, const never_row* row, bool fresh, gpst_stats* stats) {
    bool ok = true;
    for (int n = 0; ok && !fresh && row->load.n_items >= LEARN_ITEMS && n < N_LEARN; n++)
        ok = bench_job_run(job, BENCH_GPUSTAGE, NULL, stats) > 0.0;
    return ok;
}

/* Every way once a round. Threads, memory and caches that one leaves behind are the next one's, so that all are as often
   next to each other. A first round warms up. */
static bool row_measure(bench_job* job, row_times* times, double start, double budget_s, gpst_stats* stats) {
    bench_turns turns = GPST_ZERO;
    uint32_t order[BENCH_MOST_TURNS];
    bool ok = true;
    turns.n = row_n_turns(times);
    turns.random = (uint64_t)(start * 1e6);
    for (uint32_t i = 0; ok && i < turns.n; i++)
        ok = row_turn(job, times, row_turn_of(times, i), stats);
    times->slowest_s = 0.0;
    while (ok && row_goes_on(times, measure_now() - start, budget_s)) {
        bench_turns_next(&turns, order);
        for (uint32_t i = 0; ok && i < turns.n; i++)
            ok = row_turn(job, times, row_turn_of(times, order[i]), stats);
        times->n += ok ? 1 : 0;
    }
    return ok;
}

/* ---- what came of it ------------------------------------------------------------------------------------- */

static void interval_json(json* out, const char* key, const bench_interval* self) {
    json_open(out, key, '[');
    json_number(out, NULL, self->low);
    json_number(out, NULL, self->middle);
    json_number(out, NULL, self->high);
    json_close(out, ']');
}

/* What is promised of the row, and kept. */
typedef struct row_verdict {
    bench_interval plain, pool, control;
    double efficiency; /* in the middle */
    bool plain_holds; /* not below 0.97 with 95 % certainty, and 0.99 in the middle */
    bool pool_holds, efficiency_holds; /* of 64 items and more */
} row_verdict;

static row_verdict row_judge(const never_row* row, const row_times* times) {
    row_verdict out;
    out.plain = row_against_plain(times);
    out.pool = row_against_pool(times);
    out.control = row_control(times);
    out.plain_holds = out.plain.low > 0.97 && out.plain.middle >= 0.99;
    out.pool_holds = row->load.n_items < NEVER_MANY_ITEMS || out.pool.middle >= 0.97;
    out.efficiency = measure_spread_of(times->efficiency, times->n).median;
    out.efficiency_holds = row->load.n_items < NEVER_MANY_ITEMS || out.efficiency >= 0.95;
    return out;
}

static void row_json_costs(const row_times* times, json* out) {
    json_number(out, "most_guard_part", times->guard_part);
    json_count(out, "most_allocations_after_freeze", times->allocations_after_freeze);
    json_count(out, "most_growths_after_freeze", times->growths_after_freeze);
}

/* A round far from the others is noise, or a decision that should not have been. */
static void row_json_slowest(const row_times* times, json* out) {
    json_open(out, "slowest", '{');
    json_number(out, "seconds", times->slowest_s);
    json_string(out, "verdict", times->slowest.verdict.text);
    stats_json_tuner(out, &times->slowest, &times->slowest_tuner);
    json_close(out, '}');
}

static void row_json_rounds(const char* name, const double* values, uint32_t n, json* out) {
    json_open(out, name, '[');
    for (uint32_t i = 0; i < n; i++)
        json_number(out, NULL, values[i]);
    json_close(out, ']');
}

/* Of an item; and of each of its outputs. */
static void row_json_demands(const bench_load* load, json* out) {
    json_open(out, "demands", '{');
    json_count(out, "read_bytes", load->read_bytes);
    json_number(out, "cpu_us", load->cpu_us);
    json_count(out, "up_bytes", load->up_bytes);
    json_count(out, "down_bytes", load->down_bytes);
    json_count(out, "outputs", load->n_outputs > 0 ? load->n_outputs : 1);
    json_number(out, "encode_us", load->encode_us);
    json_count(out, "write_bytes", load->write_bytes);
    json_bool(out, "mixed", load->mixed);
    json_close(out, '}');
}

static void row_json(const never_row* row, const row_times* times, const row_verdict* verdict, const gpst_stats* stats,
                     const bench_job* job, json* out) {
    json_open(out, NULL, '{');
    json_string(out, "cell", row->name);
    json_string(out, "text", row->load.text);
    json_string(out, "backend", row->load.backend);
    json_count(out, "items", row->load.n_items);
    row_json_demands(&row->load, out);
    json_number(out, "gpustage_s", measure_spread_of(times->seconds[BENCH_GPUSTAGE], times->n).median);
    interval_json(out, "against_plain", &verdict->plain);
    interval_json(out, "against_pool", &verdict->pool);
    if (times->has[CONTROL])
        interval_json(out, "against_itself", &verdict->control);
    json_count(out, "pool_threads", times->pool.n_threads);
    json_count(out, "pool_depth", times->pool.depth);
    json_count(out, "rounds", times->n);
    json_bool(out, "plain_holds", verdict->plain_holds);
    json_bool(out, "pool_holds", verdict->pool_holds);
    json_bool(out, "efficiency_holds", verdict->efficiency_holds);
    json_number(out, "efficiency", verdict->efficiency);
    json_string(out, "verdict", stats->verdict.text);
    json_string(out, "settings", stats->settings);
    if (row->load.cold)
        json_number(out, "resident_before_pct", bench_job_resident_pct(job));
    json_string(out, "guard", bench_job_report(job)->guard.text);
    row_json_costs(times, out);
    row_json_slowest(times, out);
    row_json_rounds("efficiencies", times->efficiency, times->n, out);
    for (uint32_t turn = 0; turn < N_TURNS; turn++)
        if (times->has[turn])
            row_json_rounds(turn_names[turn], times->seconds[turn], times->n, out);
    json_close(out, '}');
}

static void row_print(const never_row* row, const row_times* times, const row_verdict* verdict, double residency_pct) {
    printf("%-18s %6u %10.3f  %6.3f (%.3f..%.3f)  %6.3f (%.3f..%.3f) of %2ux%u  %5.3f  %3u  %s%s%s", row->name,
           (unsigned)row->load.n_items, 1e3 * measure_spread_of(times->seconds[BENCH_GPUSTAGE], times->n).median,
           verdict->plain.middle, verdict->plain.low, verdict->plain.high, verdict->pool.middle, verdict->pool.low,
           verdict->pool.high, (unsigned)times->pool.n_threads, (unsigned)times->pool.depth, verdict->efficiency, (unsigned)times->n,
           verdict->plain_holds ? "yes" : "NO", verdict->pool_holds ? "" : ", pool NO",
           verdict->efficiency_holds ? "" : ", efficiency NO");
    if (row->load.cold)
        printf(" (%.0f %% resident)", residency_pct);
    if (times->has[CONTROL])
        printf("; plain against itself %.3f (%.3f..%.3f)", verdict->control.middle, verdict->control.low,
               verdict->control.high);
    printf("\n");
    fflush(stdout);
}

typedef struct never_counts {
    uint32_t rows, skipped, plain, pool, efficiency;
} never_counts;

/* A row whose device is not here is skipped, with the reason. */
static bool row_run(const never_row* row, double budget_s, const bench_ask* asked, never_counts* counts, json* out) {
    static row_times times;
    static gpst_stats stats;
    const double start = measure_now();
    bench_job* job = NULL;
    if (bench_job_open(&row->load, 0, &job) == GPST_ERROR_NO_BACKEND) {
        printf("%-18s skipped: %s\n", row->name, bench_reason());
        counts->skipped++;
        return true;
    }
    memset(&times, 0, sizeof times);
    if (job && asked->fresh)
        bench_job_set_fresh(job);
    if (job)
        times.pool = row_best_pool(job, row->load.n_items);
    times.has[BENCH_GPUSTAGE] = times.has[BENCH_PLAIN_SERIAL] = times.has[BENCH_POOL] = true;
    times.has[BENCH_PLAIN_INSIDE] = row->on_cpu && row->load.warp;
    times.has[CONTROL] = asked->control;
    const bool ok = job && row_learn(job, row, asked->fresh, &stats) &&
                    row_measure(job, &times, start, budget_s, &stats);
    if (ok) {
        const row_verdict verdict = row_judge(row, &times);
        row_print(row, &times, &verdict, bench_job_resident_pct(job));
        row_json(row, &times, &verdict, &stats, job, out);
        counts->rows++;
        counts->plain += verdict.plain_holds ? 1 : 0;
        counts->pool += verdict.pool_holds ? 1 : 0;
        counts->efficiency += verdict.efficiency_holds ? 1 : 0;
    }
    bench_job_close(job);
    return ok;
}

int bench_never_slower(const bench_ask* asked, json* out) {
    const double end = measure_now() + (double)asked->budget_s;
    const size_t n_rows = never_n_rows(asked);
    never_counts counts = GPST_ZERO;
    never_row row;
    uint32_t n_left = 0;
    bool ok = true;
    for (size_t i = 0; i < n_rows; i++)
        n_left += never_row_of(asked, i, &row) ? 1 : 0;
    printf("never-slower: time of the better plain loop, and of the best pool of 1..16 threads, each with 1..8 items in "
           "flight, over gpustage's: median (95 %% interval); each with create and destroy%s\n%-18s %6s %10s  %-22s  %-30s  %5s  %3s  holds\n",
           asked->fresh ? ", each the first one of its context" : "; the job has run before", "cell", "items", "ms", "against plain", "against pool", "eff.", "n");
    json_open(out, "rows", '[');
    for (size_t i = 0; ok && i < n_rows; i++) {
        if (!never_row_of(asked, i, &row))
            continue;
        const double left_s = end - measure_now();
        ok = row_run(&row, asked->budget_s ? (left_s > 0.1 ? left_s : 0.1) / n_left : 0.0, asked, &counts,
                     out);
        n_left--;
    }
    json_close(out, ']');
    json_count(out, "cells", counts.rows);
    json_count(out, "skipped", counts.skipped);
    json_count(out, "holds", counts.plain);
    if (!ok)
        console_error("never-slower: %s: %s", row.name, bench_reason());
    else
        printf("of %u cells %u hold against plain, %u against the pool, %u in efficiency; %u skipped\n",
               (unsigned)counts.rows, (unsigned)counts.plain, (unsigned)counts.pool, (unsigned)counts.efficiency,
               (unsigned)counts.skipped);
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}
