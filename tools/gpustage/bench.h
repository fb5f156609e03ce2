/* tools/gpustage/bench.h -- the parts of gpustage bench. */
#ifndef GPST_TOOL_BENCH_H
#define GPST_TOOL_BENCH_H

#include "json.h"

/* The folder of a run, under TMPDIR, and what may be in it. */
typedef struct bench_place {
    text directory; /* "" until it is made */
    double budget_s;
    uint32_t n_cores;
} bench_place;

/* A part prints its table and puts its members into the open object of out; returns the exit status. What it made in
   the folder stays for bench.c to remove. */
int bench_limits(const bench_place* place, json* out);
int bench_job(const bench_place* place, json* out);

double bench_now(void); /* seconds */
void bench_paint(const gpst_image* frame); /* RGB that costs a codec about what a photograph does */

#endif
