/* core/tuning/shortage_internal.h -- what a pipeline does when its device has too little memory, one step after the
   other, and when it takes a step back. A pure policy: failures and successes in, limits out. */
#ifndef GPSTI_SHORTAGE_INTERNAL_H
#define GPSTI_SHORTAGE_INTERNAL_H

#include "../base/base_internal.h"

/* The steps, in order. Each is taken when those before it have not helped. */
typedef enum gpsti_relief {
    GPSTI_RELIEF_NONE = 0,
    GPSTI_RELIEF_GRAPHS,    /* cached graphs are dropped */
    GPSTI_RELIEF_FREE,      /* memory that no item uses goes back */
    GPSTI_RELIEF_BATCH,     /* batches of half the size */
    GPSTI_RELIEF_SLOTS,     /* fewer items in flight; this one waits for the others */
    GPSTI_RELIEF_CPU,       /* the item's device work is done on the CPU */
    GPSTI_RELIEF_BACK,      /* a limit was raised again; counted only */
    GPSTI_N_RELIEFS
} gpsti_relief;

/* Zeroed, nothing was ever short. */
typedef struct gpsti_shortage {
    uint32_t batch_most, slots_most; /* limits; 0 = none */
    uint32_t n_good;                 /* submissions that found memory, since the latest failure or raise */
    uint32_t patience;               /* so many of them raise a limit */
    uint32_t n_to_cpu, cpu_left;     /* after a CPU step so many items go there at once; of them, those still to come */
    uint64_t counts[GPSTI_N_RELIEFS];
} gpsti_shortage;

/* A submission of n_items found no memory, although no graph and no unused memory is left; others may go on: BATCH,
   SLOTS or CPU. n_in_flight: items, with these. */
GPSTI_INTERN gpsti_relief gpsti_shortage_fail(gpsti_shortage* shortage, uint32_t n_items, uint32_t n_in_flight,
                                              bool others_go_on);
/* A submission found memory. Limits go up to these, the pipeline's own, where they end. True: one was raised. */
GPSTI_INTERN bool gpsti_shortage_succeed(gpsti_shortage* shortage, uint32_t n_slots, uint32_t batch);
/* An item comes to the device: is it to go to the CPU at once? */
GPSTI_INTERN bool gpsti_shortage_skips_device(gpsti_shortage* shortage);
/* The smaller of a limit of the pipeline's own and one of these. */
GPSTI_INTERN uint32_t gpsti_shortage_limit(uint32_t own, uint32_t limit);

#endif
