/* bench/engine.c -- what the engine costs. First an item: items that only spin for so many microseconds through one
   HOST stage, plain and on all workers; "ideal" is the work over the workers. Then a short run, from creating the
   pipeline to destroying it: the promise is that a run under 100 ms takes at most 1 ms more than the plain loop.

   engine [--rounds N] */
#define _GNU_SOURCE
#include "measure.h"

#include "../gpustage.h"

#define MOST_WORSE_MS 1.0

typedef struct spin_work {
    double spin_s;
    uint64_t n_items;
} spin_work;

static gpst_result next_item(void* user_data, uint64_t index, gpst_input* out) {
    out->name = "spin";
    return index < ((const spin_work*)user_data)->n_items ? GPST_OK : GPST_END;
}

static gpst_result spin(void* user_data, gpst_task* task) {
    const double end = measure_now() + ((const spin_work*)user_data)->spin_s;
    (void)task;
    while (measure_now() < end)
        ;
    return GPST_OK;
}

/* Seconds from creating the pipeline to destroying it, and *run_s of the run alone; negative when it failed. */
static double run_once(gpst_context* context, gpst_run_mode mode, spin_work* work, double* run_s) {
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    stage.kind = GPST_STAGE_HOST;
    stage.func = spin;
    stage.user_data = work;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = next_item;
    desc.source_user_data = work;
    desc.mode = mode;
    const double start = measure_now();
    if (GPST_FAILED(gpst_pipeline_create(context, &desc, &pipeline)))
        return -1.0;
    const gpst_result result = gpst_pipeline_run(pipeline);
    const double ran = measure_now();
    gpst_pipeline_query_stats(pipeline, &stats);
    const double asked = measure_now() - ran;
    gpst_pipeline_destroy(pipeline);
    *run_s = (double)stats.wall_ns / 1e9;
    return result == GPST_OK && stats.items_ok == work->n_items ? measure_now() - start - asked : -1.0;
}

/* Microseconds an item, in both ways. */
static bool measure_items(gpst_context* context, uint32_t n_workers, double work_us, uint32_t n_rounds) {
    static const gpst_run_mode modes[2] = {GPST_RUN_PLAIN_SERIAL, GPST_RUN_ENGINE};
    static const char* const names[2] = {"plain-serial", "engine"};
    static double us[2][MEASURE_MAX_ROUNDS];
    spin_work work;
    work.spin_s = work_us / 1e6;
    work.n_items = work_us > 0.0 ? (uint64_t)(100000.0 / work_us) : 100000;
    for (uint32_t round = 0; round < n_rounds; round++)
        for (int m = 0; m < 2; m++) {
            if (run_once(context, modes[m], &work, &us[m][round]) < 0.0)
                return false;
            us[m][round] *= 1e6 / (double)work.n_items;
        }
    for (int m = 0; m < 2; m++) {
        const measure_spread time = measure_spread_of(us[m], n_rounds);
        printf("%7.0f  %-14s %9.3f (%.3f..%.3f)  %9.3f\n", work_us, names[m], time.median, time.min, time.max,
               m == 0 ? work_us : work_us / n_workers);
    }
    return true;
}

/* By how many milliseconds a run as it comes is slower than the plain loop; *worst: the largest median so far. */
static bool measure_short_run(gpst_context* context, double run_ms, uint64_t n_items, uint32_t n_rounds,
                              double* worst) {
    static double plain_ms[MEASURE_MAX_ROUNDS], worse_ms[MEASURE_MAX_ROUNDS];
    spin_work work;
    double run_s = 0.0;
    work.spin_s = run_ms / 1e3 / (double)n_items;
    work.n_items = n_items;
    for (uint32_t round = 0; round < n_rounds; round++) {
        const double plain = run_once(context, GPST_RUN_PLAIN_SERIAL, &work, &run_s),
                     usual = run_once(context, GPST_RUN_DEFAULT, &work, &run_s);
        if (plain < 0.0 || usual < 0.0)
            return false;
        plain_ms[round] = 1e3 * plain;
        worse_ms[round] = 1e3 * (usual - plain);
    }
    const measure_spread plain = measure_spread_of(plain_ms, n_rounds), worse = measure_spread_of(worse_ms, n_rounds);
    printf("%7.0f  %7.0f  %9.3f  %+9.3f (%+.3f..%+.3f)%s\n", run_ms, (double)n_items, plain.median, worse.median,
           worse.min, worse.max, worse.median > MOST_WORSE_MS ? "  more than promised" : "");
    *worst = worse.median > *worst ? worse.median : *worst;
    return true;
}

static bool measure_engine(gpst_context* context, uint32_t n_rounds) {
    static const double work_us[] = {0, 5, 20, 100, 1000}, run_ms[] = {0, 1, 10, 40, 95};
    static const uint64_t n_items[] = {1, 3, 64, 4096};
    gpst_context_info info;
    double worst = 0.0;
    bool ok = true;
    gpst_context_query_info(context, &info);
    printf("%s\n%u workers; medians of %u rounds (min..max), interleaved\n\nus an item\n%7s  %-14s %9s %24s\n",
           gpst_build_info(), info.n_workers, (unsigned)n_rounds, "work us", "mode", "us", "ideal");
    for (size_t w = 0; ok && w < sizeof work_us / sizeof work_us[0]; w++)
        ok = measure_items(context, info.n_workers, work_us[w], n_rounds);
    printf("\nshort runs, ms\n%7s  %7s  %9s  %9s\n", "work", "items", "plain", "more than plain");
    for (size_t r = 0; ok && r < sizeof run_ms / sizeof run_ms[0]; r++)
        for (size_t i = 0; ok && i < sizeof n_items / sizeof n_items[0]; i++)
            ok = measure_short_run(context, run_ms[r], n_items[i], n_rounds, &worst);
    if (ok)
        printf("at most %.3f ms more than the plain loop; promised: %.0f\n", worst, MOST_WORSE_MS);
    return ok;
}

int main(int argc, char** argv) {
    const uint32_t n_rounds = measure_rounds_asked(argc, argv, 9);
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    desc.backend = "cpu";
    const bool ok = n_rounds > 0 && !GPST_FAILED(gpst_context_create(&desc, &context)) &&
                    measure_engine(context, n_rounds);
    if (n_rounds > 0 && !ok)
        fprintf(stderr, "engine: %s\n", gpst_last_reason());
    gpst_context_destroy(context);
    return ok ? 0 : 1;
}
