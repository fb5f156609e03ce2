/* tools/bench_engine.c -- what the engine itself costs an item: items that only spin for so many microseconds through
   one HOST stage, plain and on all workers. Prints medians and spread of repeated runs, interleaved, so that the
   machine's mood hits both alike. "ideal" is the work over the workers. */
#define GPUSTAGE_IMPLEMENTATION
#include "../gpustage.h"

#include <stdio.h>
#include <stdlib.h>

#define N_ROUNDS 9

typedef struct bench_work {
    int64_t spin_ns;
    uint64_t n_items;
} bench_work;

static gpst_result next_item(void* user_data, uint64_t index, gpst_input* out) {
    out->name = "spin";
    return index < ((const bench_work*)user_data)->n_items ? GPST_OK : GPST_END;
}

static gpst_result spin(void* user_data, gpst_task* task) {
    const int64_t spin_ns = ((const bench_work*)user_data)->spin_ns;
    (void)task;
    if (spin_ns > 0) {
        const int64_t end_ns = gpsti_now_ns() + spin_ns;
        while (gpsti_now_ns() < end_ns)
            gpsti_relax();
    }
    return GPST_OK;
}

/* Microseconds an item; negative when the run failed. */
static double run_once(gpst_context* context, gpst_run_mode mode, bench_work* work) {
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
    if (GPST_FAILED(gpst_pipeline_create(context, &desc, &pipeline)))
        return -1.0;
    const gpst_result result = gpst_pipeline_run(pipeline);
    gpst_pipeline_query_stats(pipeline, &stats);
    gpst_pipeline_destroy(pipeline);
    return result == GPST_OK && stats.items_ok == work->n_items ? (double)stats.wall_ns / 1e3 / (double)work->n_items
                                                                 : -1.0;
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static bool bench_row(gpst_context* context, uint32_t n_workers, double work_us) {
    static const gpst_run_mode modes[2] = {GPST_RUN_PLAIN_SERIAL, GPST_RUN_ENGINE};
    static const char* const names[2] = {"plain-serial", "engine"};
    double us[2][N_ROUNDS];
    bench_work work;
    work.spin_ns = (int64_t)(work_us * 1e3);
    work.n_items = work_us > 0.0 ? (uint64_t)(100000.0 / work_us) : 100000;
    for (int round = 0; round < N_ROUNDS; round++)
        for (int m = 0; m < 2; m++)
            us[m][round] = run_once(context, modes[m], &work);
    for (int m = 0; m < 2; m++) {
        qsort(us[m], N_ROUNDS, sizeof us[m][0], compare);
        if (us[m][0] < 0.0) {
            fprintf(stderr, "bench_engine: %s failed: %s\n", names[m], gpst_last_reason());
            return false;
        }
        printf("%7u  %7.0f  %-14s %9.3f %9.3f %9.3f %9.3f\n", n_workers, work_us, names[m], us[m][N_ROUNDS / 2],
               us[m][0], us[m][N_ROUNDS - 1], m == 0 ? work_us : work_us / n_workers);
    }
    return true;
}

/* bench_engine [WORKERS...]; 0 = the default */
int main(int argc, char** argv) {
    static const double work_us[] = {0, 5, 20, 100, 1000};
    printf("%s\n%d rounds interleaved; us an item\n%7s  %7s  %-14s %9s %9s %9s %9s\n", gpst_build_info(), N_ROUNDS,
           "workers", "work us", "mode", "median", "min", "max", "ideal");
    for (int a = 1; a < argc || a == 1; a++) {
        gpst_context_desc desc = GPST_ZERO;
        gpst_context* context = NULL;
        gpst_context_info info;
        desc.n_workers = a < argc ? (uint32_t)strtoul(argv[a], NULL, 10) : 0;
        if (GPST_FAILED(gpst_context_create(&desc, &context))) {
            fprintf(stderr, "bench_engine: %s\n", gpst_last_reason());
            return 1;
        }
        gpst_context_query_info(context, &info);
        for (size_t w = 0; w < sizeof work_us / sizeof work_us[0]; w++)
            if (!bench_row(context, info.n_workers, work_us[w])) {
                gpst_context_destroy(context);
                return 1;
            }
        gpst_context_destroy(context);
    }
    return 0;
}
