/* core/recall_internal.h -- what a context knows of runs that have been: what a job's items take, for the next run of
   the same job. Values only: reads no clock, takes no lock, allocates nothing. */
#ifndef GPSTI_RECALL_INTERNAL_H
#define GPSTI_RECALL_INTERNAL_H

#include "tuner_internal.h"

#define GPSTI_RECALL_MOST 8 /* jobs */

/* A run as it was. */
typedef struct gpsti_recalled {
    uint64_t job; /* what the pipeline was made of, as one number */
    uint64_t n_items;
    double run_ns;               /* an item's part of the run's time: of the last run that knew nothing */
    uint32_t n_runs, n_slower;   /* since then; and the last of them in a row that knew and took longer */
    uint32_t pause, n_rest;      /* runs that begin plain after such ones; and how many of them are still to come */
    double serial_ns;            /* an item's time in the plain loop; 0 = not known */
    double inside_ns;            /* likewise with every core inside its kernels; 0 = they never had them */
    gpsti_tuner_costs costs;     /* what the model is to be made of: files as they were alone */
    gpsti_tuner_costs seen;      /* what the run's items took beside each other */
    uint64_t item_host_bytes, item_device_bytes;
    uint32_t n_slots;            /* in use at once */
    int64_t slot_ns;             /* what the memory of another one takes; 0 = not known */
    int64_t source_ns, source_work_ns;
    double read_cpu_part;
} gpsti_recalled;

typedef struct gpsti_recall {
    uint32_t n;
    gpsti_recalled known[GPSTI_RECALL_MOST]; /* the latest last */
} gpsti_recall;

/* NULL: nothing is known of it. */
GPSTI_INTERN const gpsti_recalled* gpsti_recall_find(const gpsti_recall* recall, uint64_t job);
GPSTI_INTERN void gpsti_recall_forget(gpsti_recall* recall, uint64_t job);
/* A run of seen->job has been. knew: it began by what was known. When two of those in a row were slower than the last
   that did not, or many have been since, nothing is known any more: the next one finds out anew. Where kernels of a
   plain start have every core, that start may be better for good: some runs have it then, and each time more. */
GPSTI_INTERN void gpsti_recall_put(gpsti_recall* recall, const gpsti_recalled* seen, bool knew);
/* Is a run of so many items to go by that one? */
GPSTI_INTERN bool gpsti_recall_serves(const gpsti_recalled* known, uint64_t n_items);
/* Are these items others, by what one takes of a resource? */
GPSTI_INTERN bool gpsti_recall_differs(const gpsti_tuner_costs* then, const gpsti_tuner_costs* now);

#endif
