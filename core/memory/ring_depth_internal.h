/* core/memory/ring_depth_internal.h -- the depth of an adaptive ring as a pure policy: what an interval showed in, how
   many slots to use and why out. */
#ifndef GPSTI_RING_DEPTH_INTERNAL_H
#define GPSTI_RING_DEPTH_INTERNAL_H

#include "../base/base_internal.h"
#include "ring.h"

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
    double last_loss;             /* of the interval before */
    uint32_t trial_from, n_trial; /* the depth before a deepening that is on trial (0: none is); its intervals so far */
    double loss_before;           /* with that depth */
    uint32_t rest, next_rest;     /* intervals without a deepening, now, and after the next one that fails */
    double barred_rate;           /* commits in a tick of which deepening brought nothing; 0: not known of any */
    uint32_t n_drifted;           /* intervals in a row of another rate */
} gpsti_ring_depth;

GPSTI_INTERN void gpsti_ring_depth_init(gpsti_ring_depth* policy, uint32_t min_depth, uint32_t max_depth,
                                        uint32_t depth);
/* The depth from now on. The reason is "" where there is nothing to say. */
GPSTI_INTERN uint32_t gpsti_ring_depth_judge(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                             char reason[GPST_RING_REASON_BYTES]);
/* The deepening that judge asked for could not be had: the depth is still `depth`. */
GPSTI_INTERN void gpsti_ring_depth_refuse(gpsti_ring_depth* policy, uint32_t depth);

#endif
