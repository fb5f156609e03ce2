/* core/memory/ring_depth_internal.h -- the depth of an adaptive ring as a pure policy: what an interval showed in, how
   many slots to use and why out. */
#ifndef GPSTI_RING_DEPTH_INTERNAL_H
#define GPSTI_RING_DEPTH_INTERNAL_H

#include "../base/base_internal.h"
#include "ring.h"

/* Starved intervals in a row that begin a trial, and intervals of each of its depths: fewer judge by chance. */
#define GPSTI_RING_DEPTH_PATIENCE 3

/* What happened in a stretch of time. Times are in any unit, all in the same one. */
typedef struct gpsti_ring_interval {
    uint64_t n_commits;
    uint64_t ticks;       /* its length; not 0 */
    uint64_t full_ticks;  /* of it, a producer had found no free slot and none had found one since */
    uint64_t empty_ticks; /* of it, a consumer had found nothing committed and none had found any since */
    uint32_t peak, used;  /* slots in use: at most, and at its end */
} gpsti_ring_interval;

typedef struct gpsti_ring_depth {
    uint32_t min_depth, max_depth, depth;
    uint32_t n_starved, n_idle;   /* such intervals in a row, of this depth */
    uint32_t idle_peak;           /* largest peak of the idle ones */
    uint32_t idle_patience;       /* idle intervals that make it shrink; doubles when shrinking was wrong */
    bool shrunk;                  /* by the latest change */
    bool limit_reported;          /* of this depth, that it is the largest one */
    uint32_t trial_from;          /* the depth before doublings that are on trial; 0: none is */
    uint32_t n_doublings;         /* of this trial so far; of the latest one: */
    uint32_t n_trial;             /* its intervals so far, */
    double loss_before;           /* and the least loss of the last ones before the trial */
    double losses[GPSTI_RING_DEPTH_PATIENCE]; /* of the latest intervals, the latest first */
    uint32_t rest, next_rest;     /* intervals without a trial, now, and after the next one that fails */
} gpsti_ring_depth;

GPSTI_INTERN void gpsti_ring_depth_init(gpsti_ring_depth* policy, uint32_t min_depth, uint32_t max_depth,
                                        uint32_t depth);
/* The depth from now on. The reason is "" where there is nothing to say. */
GPSTI_INTERN uint32_t gpsti_ring_depth_judge(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                             char reason[GPST_RING_REASON_BYTES]);
/* The deepening that judge asked for could not be had: the depth from now on, that before the trial. */
GPSTI_INTERN uint32_t gpsti_ring_depth_refuse(gpsti_ring_depth* policy);

#endif
