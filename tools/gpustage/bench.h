/* tools/gpustage/bench.h -- what the cases of gpustage bench share. */
#ifndef GPST_TOOL_BENCH_H
#define GPST_TOOL_BENCH_H

#include "json.h"

#define BENCH_ROUNDS 11
#define BENCH_SAMPLE_S 0.02

/* What the command line says of cases that have parts. */
typedef struct bench_ask {
    const char* only;  /* parts whose name has one of these in it, between commas; NULL = all */
    uint32_t budget_s; /* about so long for all of them; 0 = as long as it takes */
    uint32_t times;    /* lists so many times as long; 0 = 1 */
    uint32_t mixes;    /* so many generated jobs in place of the chosen ones; 0 = these */
    bool control;      /* what is compared with itself, too */
    bool fresh;        /* no run finds memory that one before it made */
} bench_ask;

/* A case prints its table and puts its members into the open object of out; returns the exit status. */
int bench_kernels(const bench_ask* asked, json* out);
int bench_limits(const bench_ask* asked, json* out);
int bench_readers(const bench_ask* asked, json* out);
int bench_pipeline(const bench_ask* asked, json* out);
int bench_never_slower(const bench_ask* asked, json* out);
int bench_tuner(const bench_ask* asked, json* out);
int bench_verdict(const bench_ask* asked, json* out);

#endif
