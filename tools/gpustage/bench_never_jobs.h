/* tools/gpustage/bench_never_jobs.h -- the jobs of never-slower. */
#ifndef GPST_TOOL_BENCH_NEVER_JOBS_H
#define GPST_TOOL_BENCH_NEVER_JOBS_H

#include "bench.h"
#include "bench_load.h"

enum { NEVER_MANY_ITEMS = 64 }; /* of a list on which pool and efficiency are asked for */

typedef struct never_row {
    char name[48]; /* cell/backend, mix-number/backend */
    bench_load load;
    bool on_cpu;
} never_row;

/* Of the matrix, or as many mixes as are asked for, on three backends each. */
size_t never_n_rows(const bench_ask* asked);
/* Row `index` of those. false: there is no such row, or it is not asked for. */
bool never_row_of(const bench_ask* asked, size_t index, never_row* out);

#endif
