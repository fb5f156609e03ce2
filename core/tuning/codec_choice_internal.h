/* core/tuning/codec_choice_internal.h -- who decodes the next file. */
#ifndef GPSTI_CODEC_CHOICE_INTERNAL_H
#define GPSTI_CODEC_CHOICE_INTERNAL_H

#include "../base/base_internal.h"
#include "../base/os_internal.h"

/* What the cores would have to do alone. */
typedef struct gpsti_codec_load {
    uint64_t n_items;  /* UINT64_MAX: no end is known */
    uint64_t core_ns;  /* of one, on one core; 0: not measured */
    uint32_t n_cores;
} gpsti_codec_load;

/* Is it so much that opening the device's engines pays? Not before an item has been measured. */
GPSTI_INTERN bool gpsti_codec_is_worth_opening(const gpsti_codec_load* load);

typedef enum gpsti_codec_choice {
    GPSTI_CODEC_WAIT = 0, /* for the engines' next batch */
    GPSTI_CODEC_DEVICE = 1,
    GPSTI_CODEC_CORES = 2
} gpsti_codec_choice;

typedef struct gpsti_codec_choice_input {
    bool only_device; /* the user wants no core where the device can */
    bool has_engines; /* batches, one at a time; else a thread and the device decode a file together */
    bool busy;        /* a batch is being decoded */
    uint32_t n_queued, batch; /* files that wait, and that a batch takes */
    uint64_t n_to_come;       /* those that wait, and those after them; UINT64_MAX: no end is known */
    uint64_t device_ns, core_ns; /* a file takes; 0: not measured */
    uint64_t n_before;        /* files decoded so far */
} gpsti_codec_choice_input;

/* For the file at the head of the queue. */
GPSTI_INTERN gpsti_codec_choice gpsti_codec_choose(const gpsti_codec_choice_input* input);
/* Brings a mean of recent times up to date; any thread. */
GPSTI_INTERN void gpsti_codec_learn(gpsti_a64* mean_ns, int64_t ns);

#endif
