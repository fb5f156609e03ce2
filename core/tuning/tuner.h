/* core/tuning/tuner.h -- the engine's knobs as values that can be read, fixed, saved
   and loaded, and what the tuner and the guard decided about them. */
#ifndef GPSTI_TUNER_H
#define GPSTI_TUNER_H

#include "../base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_knob {
    GPST_KNOB_NONE = 0,    /* of a decision: none was moved */
    GPST_KNOB_LOOP = 1,    /* a gpst_run_mode: the engine or one of the plain loops */
    GPST_KNOB_WORKERS = 2, /* stage services at once, at most the context's workers */
    GPST_KNOB_SLOTS = 3,   /* items in flight */
    GPST_KNOB_READS = 4,   /* reads in flight */
    GPST_KNOB_WRITES = 5,  /* writes in flight */
    GPST_KNOB_STREAMS = 6, /* submissions on the device at once: items, or batches of them */
    GPST_KNOB_INSIDE = 7,  /* threads inside one kernel on the CPU, while no worker has begun (OpenMP, where compiled
                              in); not tuned */
    GPST_KNOB_BATCH = 8,   /* items in one submission to the device at most: one launch where their shapes are alike */
    GPST_KNOB_COUNT = 9
} gpst_knob;

typedef enum gpst_tune {
    GPST_TUNE_DEFAULT = 0, /* ON where the mode is DEFAULT, else OFF */
    GPST_TUNE_ON = 1,      /* knobs that are not fixed move while the run goes on */
    GPST_TUNE_OFF = 2
} gpst_tune;

typedef enum gpst_preset { /* how deep queues may become (or the workers and 4, where that is more), nothing else */
                           GPST_PRESET_DEFAULT = 0,   /* BALANCED */
                           GPST_PRESET_LATENCY = 1,   /* at most 20 items in flight, none to spare */
                           GPST_PRESET_BALANCED = 2,  /* at most 100, 2 to spare */
                           GPST_PRESET_THROUGHPUT = 3 /* at most 200 */
} gpst_preset;

/* gpst_settings -- a value for every knob; 0 = not said: the default, or what the tuner finds

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_settings {
    uint32_t value[GPST_KNOB_COUNT]; /* by gpst_knob; [GPST_KNOB_NONE] is not used */
} gpst_settings;

#define GPST_MAX_DECISIONS 32

/* gpst_tuner_decision -- one thing the tuner or the guard did, and what came of it

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_tuner_decision {
    uint64_t item;                                /* items that were done by then */
    gpst_knob knob;                               /* NONE: froze, or looks again */
    uint32_t before, after;                       /* the knob's values; equal when a trial was taken back */
    double items_per_s_before, items_per_s_after; /* 0 = not measured */
    char reason[128];
} gpst_tuner_decision;

/* gpst_guard_report -- the engine against the plain loop

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_guard_report {
    double engine_ns;     /* mean time an item, 0 = not known */
    double plain_ns;      /* likewise of the plain loop; where it was not measured an estimate: what items computed on
                             the cores that were ours, with the waits of idle cores, and the device's time */
    bool measured;        /* by a block of plain items within the run; else estimated from the stages' clocks */
    uint64_t plain_items; /* items that went through the plain loop for that */
    char text[160];       /* the decision in words; "" = nothing was compared */
} gpst_guard_report;

/* gpst_tuner_report -- the knobs as they are, what they may reach, and how they came there

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_tuner_report {
    bool on;
    bool frozen;               /* nothing helps any more; drift of the clocks thaws it */
    gpst_settings settings;    /* now */
    gpst_settings least, most; /* what budgets, presets and fixed values leave of every knob */
    uint32_t n_decisions;      /* made; the first GPST_MAX_DECISIONS - 1 and the last are kept */
    gpst_tuner_decision decisions[GPST_MAX_DECISIONS];
    gpst_guard_report guard;
} gpst_tuner_report;

/* gpst_knob_name -- the knob's name in texts and reports

   Parameters   knob (in)  any value
   Shapes       none
   Returns      "none", "loop", "workers", "slots", "reads", "writes", "streams", "inside", "batch";
                "unknown" for others
   Ownership    static text; do not free
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/tuning/tuner_text.c          Tests  tests/test_tuner.c          Since 0.1
*/
GPST_API const char* gpst_knob_name(gpst_knob knob);

/* gpst_settings_format -- settings as text, a line "name=value" for every knob that is said

   Parameters   settings  (in)   loop is written as a name: engine, plain-serial, plain-inside
                out       (out)  always terminated
                out_bytes (in)   256 are enough
   Shapes       none
   Returns      GPST_OK | ARGUMENT (NULL, or a loop that is none) | OVERFLOW (out is too short)
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/tuning/tuner_text.c          Tests  tests/test_tuner.c          Since 0.1
*/
GPST_API gpst_result gpst_settings_format(const gpst_settings* settings, char* out, size_t out_bytes);

/* gpst_settings_parse -- the settings a text holds

   Parameters   text (in)   "name=value" parted by white space; from # to the end of the line is a remark
                out  (out)  knobs the text does not name are 0; untouched on failure
   Shapes       none
   Returns      GPST_OK | ARGUMENT | FORMAT (the reason names the line and what is wrong)
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/tuning/tuner_text.c          Tests  tests/test_tuner.c          Since 0.1
*/
GPST_API gpst_result gpst_settings_parse(const char* text, gpst_settings* out);

#ifdef __cplusplus
}
#endif
#endif
