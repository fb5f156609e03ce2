/* core/tuning/guard_internal.h -- the guard as a pure policy: what the engine's frozen setting gives, in; whether some
   items are to go through the plain loop, and which of the two is better, out. */
#ifndef GPSTI_GUARD_INTERNAL_H
#define GPSTI_GUARD_INTERNAL_H

#include "../base/base_internal.h"
#include "tuner_internal.h"

#define GPSTI_GUARD_STAY_ITEMS 64 /* of a plain loop that stays, between two looks at its clock */

typedef struct gpsti_guard {
    bool decided;
    bool plain; /* the plain loop is the better one */
    gpst_guard_report report;
    double stay_ns;     /* an item's time in the first block of a plain loop that stays; 0 = there was none yet */
    uint32_t n_drifted; /* blocks in a row that were slower */
} gpsti_guard;

/* An item's expected time in a plain loop: by its services, and what may be said of it. Services that ran side by side
   took long because of each other, on a disk or on busy cores. */
typedef struct gpsti_guard_estimate {
    double ns, said_ns;
} gpsti_guard_estimate;

/* From the window's services, one after the other, the device's busy times, and source_ns for the source. others: share
   of the cores that other programs took; negative = not known. */
GPSTI_INTERN gpsti_guard_estimate gpsti_guard_expect(const gpsti_tuner_window* window, uint32_t cores, double others,
                                                     double source_ns);
/* After a window of the frozen setting, in which an item took engine_ns; n_left: items still to come, 0 = not known.
   Gives the number of items to be measured; 0: none, the guard has decided. */
GPSTI_INTERN uint64_t gpsti_guard_ask(gpsti_guard* guard, double engine_ns, gpsti_guard_estimate plain,
                                      uint64_t n_left);
/* They took block_ns, one after the other. Decides. */
GPSTI_INTERN void gpsti_guard_end_block(gpsti_guard* guard, uint64_t n_items, int64_t block_ns);
/* A block of the plain loop, which has stayed. True: two blocks in a row were slower, so the engine is to be looked at
   again. */
GPSTI_INTERN bool gpsti_guard_watch(gpsti_guard* guard, uint64_t n_items, int64_t block_ns);
/* What was measured is of other clocks: all over again. */
GPSTI_INTERN void gpsti_guard_forget(gpsti_guard* guard);

#endif
