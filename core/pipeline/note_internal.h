/* core/pipeline/note_internal.h -- services that are over and what is to be counted of them: one, and several of a
   worker's. */
#ifndef GPSTI_NOTE_INTERNAL_H
#define GPSTI_NOTE_INTERNAL_H

#include "pipeline_internal.h"

/* An item's way over a device. */
struct gpsti_way {
    bool counts; /* it was the device that the clocks are about */
    bool on_host, in_place, copies, timed;
    uint32_t n_items; /* of its group */
    uint32_t n_recorded, n_times;
    uint64_t number;  /* of its group, for the pipeline's timing */
    uint64_t in_bytes, out_bytes;
    int64_t end_ns;          /* when the host knew of its end */
    const int64_t* times_ns; /* n_times */
};

/* A service that is over. */
typedef struct gpsti_note {
    const gpsti_step* step;
    int64_t start_ns, end_ns, cpu_ns; /* cpu_ns -1: not sampled */
    int64_t setup_ns, setup_cpu_ns;   /* of them: making memory */
    uint32_t n_threads;               /* inside a kernel, of which cpu_ns is one's */
    gpst_result result;
    bool has_file; /* READ, WRITE: */
    int64_t file_start_ns, file_end_ns;
    uint64_t file_bytes;
    gpsti_way way; /* OFFLOAD that has not failed */
} gpsti_note;

/* The service begins at now_ns, which the one before ended at, or if its CPU time is to be known now. */
GPSTI_INTERN void gpsti_note_begin(gpsti_note* note, const gpsti_step* step, bool sample_cpu, int64_t now_ns);
/* And is over: gives the time. */
GPSTI_INTERN int64_t gpsti_note_end(gpsti_note* note, gpst_result result);
GPSTI_INTERN void gpsti_note_file(gpsti_note* note, int64_t start_ns, int64_t end_ns, uint64_t bytes);
GPSTI_INTERN void gpsti_note_count(gpst_pipeline* pipeline, const gpsti_note* note); /* locked */

#define GPSTI_LEDGER_NOTES 96
#define GPSTI_LEDGER_TIMES 128
GPSTI_STATIC_ASSERT(GPSTI_LEDGER_TIMES > GPST_MAX_STAGES + 3, "the times of any group fit");

/* One worker's, of several items. */
struct gpsti_ledger {
    gpst_pipeline* pipeline;
    uint32_t n, n_counted, n_times;
    gpsti_note notes[GPSTI_LEDGER_NOTES];
    int64_t times_ns[GPSTI_LEDGER_TIMES];
};

GPSTI_INTERN void gpsti_ledger_open(gpsti_ledger* ledger, gpst_pipeline* pipeline);
/* Copies it. Where there is no room, or others are judged by it, everything is counted at once. Not locked. */
GPSTI_INTERN void gpsti_ledger_keep(gpsti_ledger* ledger, const gpsti_note* note);
/* Counts notes up to this one, excluded, that are not counted yet. Locked. */
GPSTI_INTERN void gpsti_ledger_count(gpsti_ledger* ledger, uint32_t end);

#endif
