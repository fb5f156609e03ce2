/* tools/gpustage/bench.h -- what the cases of gpustage bench share. */
#ifndef GPST_TOOL_BENCH_H
#define GPST_TOOL_BENCH_H

#include "json.h"

#define BENCH_ROUNDS 11
#define BENCH_SAMPLE_S 0.02

/* A case prints its table and puts its members into the open object of out; returns the exit status. */
int bench_kernels(json* out);
int bench_limits(json* out);
int bench_readers(json* out);
int bench_pipeline(json* out);
int bench_never_slower(json* out);
int bench_tuner(json* out);
int bench_verdict(json* out);

#endif
