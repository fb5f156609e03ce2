/* core/tuning/tuner_internal.h -- the tuner as a pure policy: clocks and counts of a
   stretch of the run in, values of knobs out. Reads no clock, takes no lock, allocates nothing. */
#ifndef GPSTI_TUNER_INTERNAL_H
#define GPSTI_TUNER_INTERNAL_H

#include "../base/base_internal.h"
#include "../stats/profile.h"
#include "tuner.h"

/* What a run may use, and what of it is there to be tuned. */
typedef struct gpsti_tuner_budget {
    uint32_t cores;              /* allowed by affinity and quota */
    uint32_t workers;            /* threads of the context */
    bool reads, writes, streams; /* the pipeline has such a stage; streams: on an asynchronous device */
    bool syncs;                  /* what is written is brought to the disk */
    uint32_t outputs;            /* of an item, each with files of its own */
    uint32_t batch;  /* items that a submission to the device may have at most; 0 or 1: batches are not for it */
    uint32_t inside; /* threads that a kernel on the CPU may have at most */
    gpst_preset preset;
    gpst_settings fixed; /* non-zero: the user's, not to be moved */
} gpsti_tuner_budget;

/* A stretch of the run under one setting, from the end of one item to the end of another. */
typedef struct gpsti_tuner_window {
    uint64_t n_items;
    int64_t wall_ns;
    double noise;                            /* standard error of the mean time an item, as a part of it */
    int64_t service_ns[GPST_RESOURCE_COUNT]; /* summed over all that ran at once; of files, by threads of their own */
    int64_t busy_ns[GPST_RESOURCE_COUNT];    /* H2D, GPU, D2H: at least one at work */
    int64_t cpu_ns;                          /* thread CPU time of everything */
    int64_t slots_full_ns;                      /* every slot was in use */
    uint64_t item_bytes;                     /* host memory that the largest item so far took */
    uint64_t n_left;                         /* items of the run that have not begun by its end; 0 = not known */
} gpsti_tuner_window;

typedef enum gpsti_tuner_state {
    GPSTI_TUNER_START, /* the next window is the first */
    GPSTI_TUNER_BASE,  /* the next window says what the setting gives */
    GPSTI_TUNER_TRIAL, /* the next window says whether the move was a win */
    GPSTI_TUNER_FROZEN
} gpsti_tuner_state;

typedef struct gpsti_tuner {
    gpsti_tuner_budget budget;
    gpst_settings now, kept; /* in force; the last that held its ground */
    gpst_settings least, most;
    gpsti_tuner_state state;
    uint32_t n_held;                /* items that the device's JPEG engines hold without a worker */
    uint64_t n_items;               /* done when the window ended */
    double kept_rate;               /* items a second under `kept` */
    gpsti_tuner_window kept_window; /* that measured it */
    gpst_knob knob;                 /* of the trial */
    bool tried[GPST_KNOB_COUNT];    /* under these clocks more of it brought nothing */
    uint32_t n_failures;            /* trials in a row */
    uint32_t n_drifted;             /* windows in a row */
    uint32_t n_decisions;
    gpst_tuner_decision decisions[GPST_MAX_DECISIONS];
} gpsti_tuner;

GPSTI_INTERN void gpsti_tuner_init(gpsti_tuner* tuner, const gpsti_tuner_budget* budget);
/* Starts from settings that were found before, and looks again only when the clocks drift. */
GPSTI_INTERN void gpsti_tuner_load(gpsti_tuner* tuner, const gpst_settings* settings);
/* The device's JPEG engines are open, and hold so many items without a worker: each needs a slot, unless slots are
   fixed. True: `now` has changed, and the next window is the first again. */
GPSTI_INTERN bool gpsti_tuner_hold(gpsti_tuner* tuner, uint32_t n_items);
/* A window of the setting in force is over, n_items done by its end. True: `now` has changed, and what is in flight is
   still of the setting before. */
GPSTI_INTERN bool gpsti_tuner_judge(gpsti_tuner* tuner, const gpsti_tuner_window* window, uint64_t n_items);
/* A new line among the decisions. */
GPSTI_INTERN gpst_tuner_decision* gpsti_tuner_add_decision(gpsti_tuner* tuner, gpst_knob knob, uint32_t before,
                                                           uint32_t after);

#endif
