/* core/prefetch/prefetch_policy_internal.h -- what will be asked for next: a trace of indices in,
   indices to fetch out. Knows no file, no thread and no clock. */
#ifndef GPSTI_PREFETCH_POLICY_INTERNAL_H
#define GPSTI_PREFETCH_POLICY_INTERNAL_H

#include "../base/base_internal.h"

#define GPSTI_PREFETCH_MAX_PERIOD 32
#define GPSTI_PREFETCH_HISTORY 64 /* steps; a power of two, at least twice the period */
#define GPSTI_PREFETCH_MAX_AHEAD 64
#define GPSTI_PREFETCH_FIRST_PAUSE 64 /* accesses; doubled each time */
#define GPSTI_PREFETCH_JUDGED 64      /* outcomes that a judgement takes */

/* All patterns are one: the steps between indices repeat with some period. Of 1 it is a sequence or stride; of 8 it is
   eight cameras in turn; steps that sum to zero go in circles. */
typedef struct gpsti_prefetch_policy {
    uint64_t n;               /* indices are below it */
    uint32_t max_ahead;
    bool scheduled;           /* what is asked for is known: */
    const uint64_t* schedule; /* in this order; NULL = 0, 1, 2, ... */
    uint64_t n_schedule, position;
    bool started;
    uint64_t last;
    uint64_t n_steps;
    int64_t steps[GPSTI_PREFETCH_HISTORY];
    uint32_t runs[GPSTI_PREFETCH_MAX_PERIOD + 1]; /* steps in a row that were those of so long ago */
    uint32_t period;   /* the one that has been right for longest; 0 = none */
    uint32_t window;   /* how far ahead: doubles while it holds */
    uint32_t rightly;  /* right guesses since the window changed */
    bool wraps;        /* seen to go on at the beginning when it came to the end */
    uint32_t n_used, n_wasted; /* since the last judgement */
    uint64_t pause, pause_left; /* accesses that it stays off */
    uint32_t times_off;
} gpsti_prefetch_policy;

/* max_ahead 1 .. GPSTI_PREFETCH_MAX_AHEAD. n_schedule 0: nothing is known; schedule NULL: 0 .. n_schedule - 1. */
GPSTI_INTERN void gpsti_prefetch_policy_init(gpsti_prefetch_policy* policy, uint64_t n, uint32_t max_ahead,
                                             const uint64_t* schedule, uint64_t n_schedule);
/* index was asked for. */
GPSTI_INTERN void gpsti_prefetch_policy_note(gpsti_prefetch_policy* policy, uint64_t index);
/* The next that will be asked for is the schedule's so many-th; where nothing is known it does nothing. */
GPSTI_INTERN void gpsti_prefetch_policy_place(gpsti_prefetch_policy* policy, uint64_t position);
/* What is to be there, in the order in which it will be asked for; each once, never the last one asked for. */
GPSTI_INTERN uint32_t gpsti_prefetch_policy_want(const gpsti_prefetch_policy* policy,
                                                 uint64_t out[GPSTI_PREFETCH_MAX_AHEAD]);
/* What became of one that was fetched. */
GPSTI_INTERN void gpsti_prefetch_policy_judge(gpsti_prefetch_policy* policy, bool used);
/* "schedule", "sequence", "stride 3", "period 8", "none", "off". */
GPSTI_INTERN void gpsti_prefetch_policy_name(const gpsti_prefetch_policy* policy, char* out, size_t out_bytes);

#endif
