/* tools/bench_engine.c -- what the engine itself costs an item: empty items through one HOST stage, in every mode.
   Prints medians and spread of repeated runs; interleaved, so that the machine's mood hits all modes alike. */
#define GPUSTAGE_IMPLEMENTATION
#include "../gpustage.h"

#include <stdio.h>
#include <stdlib.h>

#define N_ITEMS 100000
#define N_ROUNDS 9

static gpst_result next_item(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data;
    out->name = "empty";
    return index < N_ITEMS ? GPST_OK : GPST_END;
}

static gpst_result do_nothing(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return GPST_OK;
}

/* Microseconds an item; negative when the run failed. */
static double run_once(gpst_context* context, gpst_run_mode mode) {
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    stage.kind = GPST_STAGE_HOST;
    stage.func = do_nothing;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = next_item;
    desc.mode = mode;
    if (GPST_FAILED(gpst_pipeline_create(context, &desc, &pipeline)))
        return -1.0;
    const gpst_result result = gpst_pipeline_run(pipeline);
    gpst_pipeline_query_stats(pipeline, &stats);
    gpst_pipeline_destroy(pipeline);
    return result == GPST_OK && stats.items_ok == N_ITEMS ? (double)stats.wall_ns / 1e3 / N_ITEMS : -1.0;
}

static int compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

int main(void) {
    static const gpst_run_mode modes[2] = {GPST_RUN_PLAIN_SERIAL, GPST_RUN_ENGINE};
    static const char* const names[2] = {"plain-serial", "engine"};
    static double us[2][N_ROUNDS];
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_context_info info;
    if (GPST_FAILED(gpst_context_create(&desc, &context))) {
        fprintf(stderr, "bench_engine: %s\n", gpst_last_reason());
        return 1;
    }
    gpst_context_query_info(context, &info);
    for (int round = 0; round < N_ROUNDS; round++)
        for (int m = 0; m < 2; m++)
            us[m][round] = run_once(context, modes[m]);
    printf("%s\n%d empty items, one HOST stage, %u workers, %d rounds interleaved; us an item\n",
           gpst_build_info(), N_ITEMS, info.n_workers, N_ROUNDS);
    for (int m = 0; m < 2; m++) {
        qsort(us[m], N_ROUNDS, sizeof us[m][0], compare);
        if (us[m][0] < 0.0) {
            fprintf(stderr, "bench_engine: %s failed: %s\n", names[m], gpst_last_reason());
            return 1;
        }
        printf("%-14s median %.3f  min %.3f  max %.3f\n", names[m], us[m][N_ROUNDS / 2], us[m][0],
               us[m][N_ROUNDS - 1]);
    }
    gpst_context_destroy(context);
    return 0;
}
