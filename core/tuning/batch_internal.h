/* core/tuning/batch_internal.h -- which of the items that wait in front of a stage go together, by what batches take
   and by when items are wanted. Pure policies: clocks and counts in, what to do out. */
#ifndef GPSTI_BATCH_INTERNAL_H
#define GPSTI_BATCH_INTERNAL_H

#include "../base/base_internal.h"
#include "tuner.h"

#define GPSTI_BATCH_MOST 64 /* items in a batch */
#define GPSTI_BATCH_RUNS 32 /* service times of a size that are remembered */

/* What batches of each size take, learned. All-zero: nothing is known. */
typedef struct gpsti_batch_times {
    uint32_t n_runs[GPSTI_BATCH_MOST + 1]; /* of a size; the first is not counted: it makes memory, and warms up */
    uint32_t runs_us[GPSTI_BATCH_MOST + 1][GPSTI_BATCH_RUNS];
    int64_t high_ns[GPSTI_BATCH_MOST + 1]; /* nine of ten of them take no longer; 0 = not known */
    uint64_t latest[GPSTI_BATCH_MOST + 1], n_all; /* of a size, its latest batch among those of all sizes */
} gpsti_batch_times;

GPSTI_INTERN void gpsti_batch_times_add(gpsti_batch_times* times, uint32_t n, int64_t service_ns);
/* Of a size from 1 to GPSTI_BATCH_MOST; larger ones never take less. A size without runs is taken to lie between its
   neighbours, below the smallest known one to take as long, beyond the largest to take as much an item. 0 = nothing is
   known of any size. */
GPSTI_INTERN int64_t gpsti_batch_times_estimate(const gpsti_batch_times* times, uint32_t n);

typedef enum gpsti_batch_verdict {
    GPSTI_BATCH_WAIT = 0,
    GPSTI_BATCH_TAKE,
    GPSTI_BATCH_LATE, /* to be dropped: even alone it would be ready too late */
    GPSTI_BATCH_SHED  /* to be dropped: without it more of the others are ready in time */
} gpsti_batch_verdict;

typedef struct gpsti_batch_item {
    int64_t deadline_ns; /* INT64_MAX = none */
    int32_t priority;
    gpsti_batch_verdict verdict; /* out */
} gpsti_batch_item;

typedef struct gpsti_batch_input {
    int64_t start_ns; /* of the batch: now, or when those under way are expected to be done */
    gpsti_batch_item* items; /* n_waiting of them, in order of service: by priority, then first in */
    uint32_t n_waiting;
    uint32_t most;           /* items of a batch */
    uint64_t n_late_before;  /* items that were late since the latest batch began */
    bool busy;               /* a batch is under way */
    const gpsti_batch_times* times;
} gpsti_batch_input;

/* The stage may begin with a batch. Gives the verdict of each item, and how many are taken: they are the batch. None:
   all were late. */
GPSTI_INTERN uint32_t gpsti_batch_choose(const gpsti_batch_input* input);

/* What a mode sets where the user says nothing. */
typedef struct gpsti_batch_preset {
    uint32_t batch_most;    /* of a stage with a batch function */
    uint32_t depth;         /* batches of a stage under way */
    uint32_t queue_batches; /* that may wait in front of a stage before others wait behind it; 0 = any number */
} gpsti_batch_preset;

GPSTI_INTERN gpsti_batch_preset gpsti_batch_preset_of(gpst_preset preset);

#endif
