/* tools/gpustage/bench_engine.c -- files to files, plain, with everything switched on, and in the engine: the case
   pipeline. What a job does is bench_load.c's. */
#include "bench_load.h"

#include "console.h"

#include <stdio.h>

#define MB ((size_t)1 << 20)

static const bench_load pipeline_loads[] = {
    {"files", "2 MiB in, 3 ms of CPU, a warp, 256 KiB out", "cpu", 150, 0,
     2 * MB, 3000, 0, 0, true, 0, MB / 4, false, false, 0, false, false},
    {"files-sim", "the same with a modelled GPU and a disk of 0.5 GB/s", "sim:preset=rtx3090,read_gbps=0.5", 150, 0,
     2 * MB, 3000, MB, MB / 4, false, 0, MB / 4, false, false, 0, false, false},
    {"origin", "8 views of a 7680x3840 JPEG: read 11.7 ms, decode 150 ms, GPU 0.1 ms, encode 8 x 15 ms",
     "sim:preset=rtx3090,read_us=11700,kernel_us=100", 64, 8,
     12 * MB, 150000, 88473600, 6220800, false, 15000, 1200 * 1024, false, false, 0, false, false}};

static const char* const way_names[] = {"gpustage", "plain-serial", "plain-inside", "pool", "engine", "everything"};

static bool pipeline_rows(const bench_load* load, json* out) {
    bench_job* job = NULL;
    static const bench_way ways[] = {BENCH_PLAIN_SERIAL, BENCH_EVERYTHING, BENCH_GPUSTAGE};
    static gpst_stats stats;
    bool ok = bench_job_open(load, 0, &job) == GPST_OK;
    for (int i = 0; ok && i < 3; i++) {
        const bench_way way = ways[i];
        ok = bench_job_run(job, way, NULL, &stats) > 0.0;
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
    bench_job_close(job);
    return ok;
}

int bench_pipeline(const bench_ask* asked, json* out) {
    (void)asked;
    bool ok = true;
    printf("pipeline: one run each; efficiency = bound / measured\n%-10s %-13s %9s %9s  verdict\n", "load",
           "way", "items/s", "efficiency");
    json_open(out, "rows", '[');
    for (size_t i = 0; ok && i < sizeof pipeline_loads / sizeof pipeline_loads[0]; i++)
        ok = pipeline_rows(&pipeline_loads[i], out);
    json_close(out, ']');
    if (!ok)
        console_error("pipeline: %s", bench_reason());
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}
