/* core/pipeline/plain_internal.h -- a plain loop at work: what plain.c and plain_wide.c share. */
#ifndef GPSTI_PLAIN_INTERNAL_H
#define GPSTI_PLAIN_INTERNAL_H

#include "../workers/inside_internal.h"
#include "note_internal.h"
#include "pipeline_internal.h"

typedef struct gpsti_plain {
    gpst_pipeline* pipeline;
    gpsti_slot* slot;
    uint32_t worker_index;
    gpsti_exec exec;    /* how kernels use the CPU, but for wide ones */
    const bool* wants_cpu; /* by step; NULL = its clock says */
    gpsti_ledger* ledger;  /* what is to be counted; NULL = at once */
    bool wants_source_cpu;
    bool within;        /* the pipeline is an engine's: others look at its counts */
    int64_t worth_ns;   /* the last item's work that makes its outputs worth an engine; 0 = none is handed over */
    int64_t now_ns;     /* the last look at the clock; little has happened since */
    uint64_t asks_at;   /* whether the engine would gain, at that item again */
    int64_t inside_ns;  /* with every core inside a kernel */
    int64_t first_ns;   /* the work of item 0 */
    int64_t whole_ns;   /* and of all before the item at which that is asked */
    int64_t first_end_ns; /* of item 0, as if its memory had been made before */
    int64_t wide_ns;    /* an item's time with every core inside its kernels; 0 = nothing was sounded */
    int64_t alone_ns;   /* of the item that was sounded */
    bool is_first;      /* item 0, which others need not wait for */
    bool leaves;        /* the item is left to workers */
    bool in_doubt;       /* it was, whether every core is better than one */
    bool has_company;    /* others ran on cores that kernels would have */
    bool is_company_sure; /* and not for a moment */
    gpsti_inside inside; /* of wide kernels */
} gpsti_plain;

GPSTI_INLINE void gpsti_plain_lock(const gpsti_plain* self) {
    if (self->within)
        gpsti_mutex_lock(&self->pipeline->context->scheduler->mutex);
}

GPSTI_INLINE void gpsti_plain_unlock(const gpsti_plain* self) {
    if (self->within)
        gpsti_mutex_unlock(&self->pipeline->context->scheduler->mutex);
}

/* The run so far, but for memory and what every core worked on: others could not do that faster. */
GPSTI_INTERN int64_t gpsti_plain_work_ns(const gpsti_plain* self);
/* An item's time between item 0 and the one at hand; item 0's where there is none. */
GPSTI_INTERN double gpsti_plain_between_ns(const gpsti_plain* self);

/* ---- plain_wide.c: kernels that may have every core --------------------------------------------- */

/* Of a step, that threads inside could share. */
GPSTI_INTERN uint64_t gpsti_wide_pixels(const gpst_pipeline* pipeline, const gpsti_step* step);
/* When the run begins, before callbacks have threads of their own: are there others on the cores? */
GPSTI_INTERN void gpsti_wide_look_around(gpsti_plain* self);
/* May a kernel of so many pixels have every core? The second runs it so, or finds out that one thread is better. */
GPSTI_INTERN bool gpsti_wide_takes(gpsti_plain* self, uint64_t n_pixels);
GPSTI_INTERN gpst_result gpsti_wide_run(gpsti_plain* self, const gpsti_step* step, uint64_t n_pixels, char* reason);
/* Before an item: is this one to have one thread, to tell what workers would take? And after it: it took so long. */
GPSTI_INTERN void gpsti_wide_sound(gpsti_plain* self);
GPSTI_INTERN void gpsti_wide_sounded(gpsti_plain* self, int64_t alone_ns);

#endif
