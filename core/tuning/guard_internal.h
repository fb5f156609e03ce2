/* core/tuning/guard_internal.h -- the guard as a pure policy: what the engine's frozen
   setting gives, in; which plain loop is to be measured next, and which loop is best, out. */
#ifndef GPSTI_GUARD_INTERNAL_H
#define GPSTI_GUARD_INTERNAL_H

#include "../base/base_internal.h"
#include "tuner.h"

#define GPSTI_GUARD_LOOPS 2 /* plain-serial, plain-inside */

typedef struct gpsti_guard_input {
    double engine_ns;  /* an item's time in the last window of the frozen setting */
    double plain_ns[GPSTI_GUARD_LOOPS]; /* what the clocks let expect of each plain loop; 0 = there is no such loop */
    int64_t elapsed_ns;
    uint64_t n_left;   /* items still to come; 0 = not known */
} gpsti_guard_input;

typedef struct gpsti_guard {
    gpsti_guard_input input; /* when a block was last asked for */
    bool decided;
    uint32_t loop;      /* gpst_run_mode: the best, 1 = the engine */
    uint32_t n_windows; /* of the engine */
    double engine_sum_ns;
    uint32_t n_blocks[GPSTI_GUARD_LOOPS];
    uint64_t n_items[GPSTI_GUARD_LOOPS];
    int64_t block_ns[GPSTI_GUARD_LOOPS];
    gpst_guard_report report;
} gpsti_guard;

/* After a window of the frozen setting: the plain loop to be measured now and with how many items, or 1: go on. */
GPSTI_INTERN uint32_t gpsti_guard_ask(gpsti_guard* guard, const gpsti_guard_input* input, uint64_t* n_items);
/* A block has been: n items of a plain loop took block_ns; in all the engine lost cost_ns. Decides where that is
   clear. */
GPSTI_INTERN void gpsti_guard_note(gpsti_guard* guard, uint32_t loop, uint64_t n_items, int64_t block_ns,
                                   int64_t cost_ns);
/* What was measured is of other clocks: all over again. What it has cost stays. */
GPSTI_INTERN void gpsti_guard_forget(gpsti_guard* guard);

#endif
