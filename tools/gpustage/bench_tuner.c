/* tools/gpustage/bench_tuner.c -- what the tuner finds in 200 items against the best of a searched grid, on simulated
   devices and disks that are slow in one place each. */
#include "bench_load.h"

#include "console.h"
#include "files.h"
#include "interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TUNER_WIDTH 256u
#define TUNER_BYTES ((size_t)TUNER_WIDTH * TUNER_WIDTH) /* of an item's file, picture and output */
#define TUNER_GRID_ITEMS 64
#define TUNER_ITEMS 200
#define TUNER_ROUNDS 5
#define TUNER_N_NAMES 256 /* of outputs */

typedef struct tuner_case {
    const char* name;
    const char* backend;
    int64_t cpu_ns; /* that decoding an item takes of a core */
} tuner_case;

/* An item is one file of 64 KiB, goes up, through a kernel and down, and becomes one file of 64 KiB. */
static const tuner_case tuner_cases[] = {
    {"disk, latency", "sim:read_us=8000,read_gbps=0.2", 100000},
    {"disk, bandwidth", "sim:read_us=500,read_gbps=0.03", 100000},
    {"cpu", "sim", 2000000},
    {"link up", "sim:h2d_gbps=0.03", 100000},
    {"kernel", "sim:kernel_us=2000", 100000},
    {"launch latency", "sim:launch_us=500,kernel_us=100", 100000},
    {"sink, latency", "sim:write_us=8000,write_gbps=0.2", 100000},
};
#define TUNER_N_CASES (sizeof tuner_cases / sizeof tuner_cases[0])

typedef struct tuner_bench {
    const tuner_case* what;
    text directory; /* of its own, for the files */
    char input[300];
    gpst_context* context;
    uint64_t n_items;
    gpst_tuner_report report; /* of the last run */
} tuner_bench;

/* ---- the pipeline ------------------------------------------------------------------------------ */

static gpst_result tuner_next(void* user_data, uint64_t index, gpst_input* out) {
    const tuner_bench* const self = (const tuner_bench*)user_data;
    out->path = self->input;
    return index < self->n_items ? GPST_OK : GPST_END;
}

static gpst_result tuner_decode(void* user_data, gpst_task* task) {
    const tuner_bench* const self = (const tuner_bench*)user_data;
    const int64_t until_ns = files_clock_ns() + self->what->cpu_ns;
    gpst_image shape = GPST_ZERO, image;
    shape.width = shape.height = TUNER_WIDTH;
    shape.format = GPST_FORMAT_GRAY;
    gpst_result result = gpst_task_set_input(task, &shape, &image);
    if (!GPST_FAILED(result))
        memcpy(image.data, task->item->file_data, TUNER_BYTES);
    while (files_clock_ns() < until_ns)
        ;
    return result;
}

static void tuner_output_path(const tuner_bench* self, unsigned name, char* out, size_t bytes) {
    snprintf(out, bytes, "%s/out_%03u", self->directory.data, name);
}

static gpst_result tuner_encode(void* user_data, gpst_task* task) {
    const tuner_bench* const self = (const tuner_bench*)user_data;
    char path[400];
    void* room = NULL;
    const gpst_result result = gpst_task_encoded(task, TUNER_BYTES, &room);
    if (GPST_FAILED(result))
        return result;
    memcpy(room, task->item->outputs[0].data, TUNER_BYTES);
    tuner_output_path(self, (unsigned)(task->item->index % TUNER_N_NAMES), path, sizeof path);
    return gpst_task_emit(task, path, TUNER_BYTES);
}

/* Items a second; 0 when the run failed. */
static double tuner_run(tuner_bench* self, const gpst_warp* warp, uint64_t n_items, const gpst_settings* fixed) {
    gpst_stage_desc stages[5];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    static gpst_stats stats;
    if (interrupt_happened())
        return 0.0;
    memset(stages, 0, sizeof stages);
    stages[0].kind = GPST_STAGE_READ;
    stages[1].kind = stages[3].kind = GPST_STAGE_HOST;
    stages[1].func = tuner_decode;
    stages[2].kind = GPST_STAGE_WARP;
    stages[2].warp = warp;
    stages[3].func = tuner_encode;
    stages[1].user_data = stages[3].user_data = self;
    stages[4].kind = GPST_STAGE_WRITE;
    desc.stages = stages;
    desc.n_stages = 5;
    desc.source = tuner_next;
    desc.source_user_data = self;
    desc.n_items_expected = self->n_items = n_items;
    desc.fsync = GPST_FSYNC_NONE;
    if (fixed) {
        /* whole items are found, and given, in the mode DEFAULT only */
        desc.mode = fixed->value[GPST_KNOB_ITEMS] == GPST_ITEMS_WHOLE ? GPST_RUN_DEFAULT : GPST_RUN_ENGINE;
        desc.tune = GPST_TUNE_ON;
        desc.settings = *fixed;
        desc.n_slots = fixed->value[GPST_KNOB_SLOTS];
        desc.n_reads = fixed->value[GPST_KNOB_READS];
        desc.n_writes = fixed->value[GPST_KNOB_WRITES];
    }
    if (GPST_FAILED(gpst_pipeline_create(self->context, &desc, &pipeline)))
        return 0.0;
    const gpst_result result = gpst_pipeline_run(pipeline);
    gpst_pipeline_query_stats(pipeline, &stats);
    gpst_pipeline_query_tuner(pipeline, &self->report);
    (void)gpst_pipeline_destroy(pipeline);
    return result == GPST_OK && stats.wall_ns > 0 ? (double)n_items * 1e9 / (double)stats.wall_ns : 0.0;
}

/* ---- grid and comparison ----------------------------------------------------------------------- */

/* Every number of reads, writes and streams, with slots for all of them. */
static double tuner_search(tuner_bench* self, const gpst_warp* warp, uint32_t workers, gpst_settings* best) {
    static const uint32_t steps[] = {1, 4, 16, 64};
    double best_rate = 0.0;
    for (int i = 0; i < 4 * 4 * 3; i++) {
        gpst_settings settings = GPST_ZERO;
        settings.value[GPST_KNOB_LOOP] = GPST_RUN_ENGINE;
        settings.value[GPST_KNOB_WORKERS] = workers;
        settings.value[GPST_KNOB_READS] = steps[i % 4];
        settings.value[GPST_KNOB_WRITES] = steps[i / 4 % 4];
        settings.value[GPST_KNOB_STREAMS] = steps[i / 16];
        settings.value[GPST_KNOB_SLOTS] = 100;
        const double rate = tuner_run(self, warp, TUNER_GRID_ITEMS, &settings);
        if (rate > best_rate) {
            best_rate = rate;
            *best = settings;
        }
    }
    return best_rate;
}

static int tuner_compare_numbers(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static void tuner_print_settings(const gpst_settings* settings, char* out, size_t out_bytes) {
    snprintf(out, out_bytes, "w%u s%u r%u o%u d%u", settings->value[GPST_KNOB_WORKERS],
             settings->value[GPST_KNOB_SLOTS], settings->value[GPST_KNOB_READS], settings->value[GPST_KNOB_WRITES],
             settings->value[GPST_KNOB_STREAMS]);
}

static void tuner_row(const tuner_bench* self, const gpst_settings* best, const gpst_settings* found,
                      double rates[2][TUNER_ROUNDS], double ratio[TUNER_ROUNDS], json* out) {
    char best_text[64], found_text[64], settings[256];
    tuner_print_settings(best, best_text, sizeof best_text);
    tuner_print_settings(found, found_text, sizeof found_text);
    qsort(ratio, TUNER_ROUNDS, sizeof ratio[0], tuner_compare_numbers);
    printf("%-18s %-24s %-24s %6.1f %% (%.1f..%.1f)\n", self->what->name, best_text, found_text,
           100.0 * ratio[TUNER_ROUNDS / 2], 100.0 * ratio[0], 100.0 * ratio[TUNER_ROUNDS - 1]);
    fflush(stdout);
    json_open(out, NULL, '{');
    json_string(out, "case", self->what->name);
    json_string(out, "backend", self->what->backend);
    (void)gpst_settings_format(best, settings, sizeof settings);
    json_string(out, "grid_best", settings);
    (void)gpst_settings_format(found, settings, sizeof settings);
    json_string(out, "found", settings);
    json_number(out, "ratio_median", ratio[TUNER_ROUNDS / 2]);
    json_open(out, "grid_items_per_s", '[');
    for (int i = 0; i < TUNER_ROUNDS; i++)
        json_number(out, NULL, rates[0][i]);
    json_close(out, ']');
    json_open(out, "found_items_per_s", '[');
    for (int i = 0; i < TUNER_ROUNDS; i++)
        json_number(out, NULL, rates[1][i]);
    json_close(out, ']');
    json_open(out, "decisions", '[');
    for (uint32_t i = 0; i < self->report.n_decisions && i < GPST_MAX_DECISIONS; i++)
        json_string(out, NULL, self->report.decisions[i].reason);
    json_close(out, ']');
    json_close(out, '}');
}

/* The grid is searched once; then its best and what the tuner found in 200 items take turns. */
static bool tuner_one(tuner_bench* self, const gpst_warp* warp, uint32_t workers, json* out) {
    double rates[2][TUNER_ROUNDS], ratio[TUNER_ROUNDS];
    gpst_settings best = GPST_ZERO;
    static gpst_tuner_report tuned;
    bool ok = tuner_search(self, warp, workers, &best) > 0.0;
    ok = ok && tuner_run(self, warp, TUNER_ITEMS, NULL) > 0.0;
    tuned = self->report;
    gpst_settings found = tuned.settings;
    found.value[GPST_KNOB_LOOP] = GPST_RUN_ENGINE;
    for (int round = 0; ok && round < TUNER_ROUNDS; round++) {
        rates[0][round] = tuner_run(self, warp, TUNER_ITEMS, &best);
        rates[1][round] = tuner_run(self, warp, TUNER_ITEMS, &found);
        ok = rates[0][round] > 0.0 && rates[1][round] > 0.0;
        ratio[round] = ok ? rates[1][round] / rates[0][round] : 0.0;
    }
    self->report = tuned;
    if (ok)
        tuner_row(self, &best, &found, rates, ratio, out);
    return ok;
}

/* ---- around it --------------------------------------------------------------------------------- */

static bool tuner_open(tuner_bench* self) {
    static unsigned char pixels[TUNER_BYTES];
    if (!bench_make_directory(false, &self->directory))
        return false;
    snprintf(self->input, sizeof self->input, "%s/input", self->directory.data);
    return files_write_whole(self->input, pixels, sizeof pixels) == NULL;
}

static void tuner_close(tuner_bench* self) {
    char path[400];
    if (!self->directory.data)
        return;
    for (unsigned i = 0; i < TUNER_N_NAMES; i++) {
        tuner_output_path(self, i, path, sizeof path);
        files_remove(path);
    }
    files_remove(self->input);
    files_remove_directory(self->directory.data);
    text_free(&self->directory);
}

static gpst_warp* tuner_make_warp(void) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_RESIZE;
    desc.width = desc.height = TUNER_WIDTH;
    desc.format = GPST_FORMAT_GRAY;
    return GPST_FAILED(gpst_warp_create(&desc, &warp)) ? NULL : warp;
}

int bench_tuner(const bench_ask* asked, json* out) {
    (void)asked;
    static tuner_bench self;
    if (!tuner_open(&self)) {
        tuner_close(&self);
        console_error("bench tuner: no directory for its files: set TMPDIR");
        return EXIT_MACHINE;
    }
    gpst_warp* const warp = tuner_make_warp();
    bool ok = warp != NULL;
    printf("tuner: %d items, then its setting against the best of 48, %d rounds; w workers, s slots, r reads, o writes, "
           "d on the device\n",
           TUNER_ITEMS, TUNER_ROUNDS);
    printf("%-18s %-24s %-24s %s\n", "case", "grid's best", "found", "found / best");
    json_open(out, "rows", '[');
    for (size_t i = 0; ok && i < TUNER_N_CASES; i++) {
        gpst_context_desc desc = GPST_ZERO;
        gpst_context_info info;
        self.what = &tuner_cases[i];
        desc.backend = self.what->backend;
        ok = !GPST_FAILED(gpst_context_create(&desc, &self.context));
        if (!ok)
            break;
        gpst_context_query_info(self.context, &info);
        ok = tuner_one(&self, warp, info.n_workers, out);
        gpst_context_destroy(self.context);
    }
    json_close(out, ']');
    tuner_close(&self);
    gpst_warp_destroy(warp);
    if (!ok)
        console_error("bench tuner: %s", bench_reason());
    return ok ? EXIT_DONE : EXIT_MACHINE;
}
