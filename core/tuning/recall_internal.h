/* core/tuning/recall_internal.h -- what a context knows of runs that have been: what a job's items take, for the
   next run of
   the same job. Values only: reads no clock, takes no lock, allocates nothing. */
#ifndef GPSTI_RECALL_INTERNAL_H
#define GPSTI_RECALL_INTERNAL_H

#include "tuner_internal.h"

#define GPSTI_RECALL_MOST 8 /* jobs */

/* How many workers are to bring whole items where they stand in line, for a driver or for a directory, is found run by
   run, where those are brief: a model knows what each call takes beside so many others as there were, not what it takes
   beside more or fewer. */
typedef struct gpsti_recall_workers {
    uint32_t best;   /* of the fastest runs so far; 0 = there are none */
    double best_ns;  /* an item's part of the shortest of them */
    double serial_ns; /* an item in the plain loop; 0 = not known */
    uint32_t now;    /* of the next run; 0 = as the model has it */
    double now_ns;   /* of the shortest of n_now runs with as many */
    uint32_t n_now;
    int step;        /* -1, 1: fewer, more are tried, 0 = no longer */
    bool closely;    /* by small steps */
    bool moved;      /* some were better than the first */
    bool is_top;     /* more than the best were worse: else they are tried when there can be more */
} gpsti_recall_workers;

/* A run as it was. */
typedef struct gpsti_recalled {
    uint64_t job; /* what the pipeline was made of, as one number */
    uint64_t n_items;
    double run_ns;               /* an item's part of the run's time: of the last run that knew nothing */
    uint32_t n_runs, n_slower;   /* since then; and the last of them in a row that knew and took longer */
    bool is_old;                 /* the next one finds out anew: these were slower, or many */
    uint32_t pause, n_rest;      /* runs that begin plain after such ones; and how many of them are still to come */
    double serial_ns;            /* an item's time in the plain loop; 0 = not known */
    double copies_ns;            /* likewise of what the busier of its device's copy engines was; 0 = not known */
    double inside_ns;            /* likewise with every core inside its kernels; 0 = they never had them */
    gpsti_tuner_costs costs;     /* what the model is to be made of: files as they were alone */
    gpsti_tuner_costs seen;      /* what the run's items took beside each other, but for files */
    uint64_t item_host_bytes, item_device_bytes;
    uint32_t n_workers;          /* at its end */
    uint32_t most_whole;         /* of them that could bring whole items; 0 = their number is not to be found */
    bool made_memory;            /* for a good part of its time: it says nothing of their number */
    gpsti_recall_workers workers;
    uint32_t n_slots;            /* in use at once */
    int64_t slot_ns;             /* what the memory of another one takes; 0 = not known */
    int64_t source_ns, source_work_ns;
    double read_cpu_part;
} gpsti_recalled;

typedef struct gpsti_recall {
    uint32_t n;
    gpsti_recalled known[GPSTI_RECALL_MOST]; /* the latest last */
    uint32_t n_brief;
    uint64_t brief[GPSTI_RECALL_MOST]; /* jobs whose item 0 was brief; likewise */
} gpsti_recall;

/* NULL: nothing is known of it. */
GPSTI_INTERN const gpsti_recalled* gpsti_recall_find(const gpsti_recall* recall, uint64_t job);
GPSTI_INTERN void gpsti_recall_forget(gpsti_recall* recall, uint64_t job);
/* A run of seen->job has been. knew: it began by what was known. When two of those in a row were slower than the last
   that did not, or many have been since, the next one finds out anew; the number of workers goes on to be sought from
   where it was. Where kernels of a plain start have every core, that start may be better for good: some runs have it
   then, and each time more. */
GPSTI_INTERN void gpsti_recall_put(gpsti_recall* recall, const gpsti_recalled* seen, bool knew);
/* Item 0 of a run of the job was brief, or was not; and was that of the last one? 0 is no job. */
GPSTI_INTERN void gpsti_recall_note_first(gpsti_recall* recall, uint64_t job, bool is_brief);
GPSTI_INTERN bool gpsti_recall_is_brief(const gpsti_recall* recall, uint64_t job);
/* How many workers runs of the job had come to, for one that finds out anew; 0 = as the model has it. */
GPSTI_INTERN uint32_t gpsti_recall_workers_then(const gpsti_recalled* known);
/* Is a run of so many items to go by that one? */
GPSTI_INTERN bool gpsti_recall_serves(const gpsti_recalled* known, uint64_t n_items);
/* Are these items others, by what one takes of a resource, beside n_now workers instead of n_then? */
GPSTI_INTERN bool gpsti_recall_differs(const gpsti_tuner_costs* then, uint32_t n_then, const gpsti_tuner_costs* now,
                                       uint32_t n_now);

#endif
