/* core/items/pipeline_internal.h -- a pipeline as items and steps see it: rooms, each of which one file writes. What
   only the engine itself has is behind pointers (core/pipeline/engine_internal.h). */
#ifndef GPSTI_PIPELINE_ROOMS_H
#define GPSTI_PIPELINE_ROOMS_H

#include "counts_internal.h"
#include "grant_internal.h"
#include "item_internal.h"
#include "plan_internal.h"

/* One camera, or other origin of items that keep an order of their own. Locked. */
typedef struct gpsti_camera {
    gpsti_item* newest; /* of its items in flight, a list by item->older */
    bool was_seen;
    uint32_t ended, ending; /* steps before it have no more for the camera; the one that has been asked, + 1 */
    uint64_t n_items;       /* that have begun, or were refused */
    gpsti_item_counts items;
    uint64_t seen[GPST_MAX_STAGES];       /* by a stateful stage: its latest item's camera_index, + 1, */
    uint64_t missed[GPST_MAX_STAGES];     /* and how many it missed before that */
    uint64_t served[GPST_MAX_STAGES + 1]; /* of a step's services, the number of its latest */
    gpsti_histogram latency;
} gpsti_camera;

/* Items, each in the list of what it is doing. Locked, but for the atomics; core/pipeline/items.c's. */
typedef struct gpsti_items {
    gpsti_item** slots;                 /* n_made of them, with room for capacity */
    uint32_t n_slots, n_made, capacity; /* items in flight at most; made; there is room for */
    uint32_t n_used, n_served;          /* the most in flight so far; items that have had an input to its end */
    gpsti_item_list lists[GPSTI_ITEM_STATES];
    gpsti_a32 in_flight; /* items that are not free, finished results among them */
    gpsti_a32 executing; /* threads that run a batch, or ask the source, and do not wait for memory; written locked */
    uint64_t next_index;
    bool source_done;      /* no more inputs come */
    uint32_t n_wanted;     /* in flight, for those who serve batches; 0: they want no number */
    gpsti_camera* cameras; /* GPST_MAX_CAMERAS */
    uint32_t n_cameras;    /* the highest number seen, + 1 */
} gpsti_items;

/* What READ and WRITE share; core/steps/files.c's. */
typedef struct gpsti_files {
    gpst_reader* reader;  /* engine with a READ step; its threads come with the first read that waits */
    gpsti_writer* writer; /* engine with a WRITE step; likewise */
    gpsti_a32 reads_wait; /* 1: the latest read did: the next one is begun as long as some may */
    uint32_t n_writing;   /* files that the writer has; locked */
    uint64_t advised;     /* files of desc.paths that the system was told of; locked */
} gpsti_files;

/* Set from anywhere. */
typedef struct gpsti_signals {
    gpsti_a32 open;         /* workers have begun; until then the caller of run brings items one by one */
    gpsti_a32 cancel, stop; /* even by signal handlers */
    bool device_lost;       /* locked; the device is gone: later items go to the cores at once */
} gpsti_signals;

struct gpst_pipeline {
    gpsti_client client; /* first: the scheduler's client is its pipeline */
    gpst_context* context;
    gpsti_plan plan;
    gpsti_items items;
    gpsti_shares memory;
    gpsti_files files;
    gpsti_counts counts;
    gpsti_signals signals;
    struct gpsti_engines* engines; /* the device's JPEG engines; core/steps/engines.c */
    struct gpsti_threads* threads; /* core/pipeline/threads.c */
    struct gpsti_tune* tune;       /* core/pipeline/tune.c */
    /* A batch is back from where it was parked: some worker goes on with it. */
    void (*goes_on)(gpsti_locked locked, gpsti_batch* batch);
};

/* No worker has begun; any thread. */
GPSTI_INTERN bool gpsti_is_plain(const gpst_pipeline* pipeline);

/* ---- callback.c: not locked --------------------------------------------------------------- */

/* A thread's note of the callbacks it is inside of, innermost first; on the stack of who calls. */
typedef struct gpsti_call {
    gpst_pipeline* pipeline;
    const gpsti_item* item; /* it is of; NULL: of none */
    struct gpsti_call* outer;
} gpsti_call;
GPSTI_INTERN void gpsti_call_enter(gpsti_call* call, gpst_pipeline* pipeline, const gpsti_item* item);
GPSTI_INTERN void gpsti_call_leave(void);
GPSTI_INTERN bool gpsti_call_inside(const gpst_pipeline* pipeline);
GPSTI_INTERN bool gpsti_call_inside_any(const gpst_context* context); /* of one of its pipelines */
/* The age of the item whose callback the thread is in, of the context's pipelines; 0: it is in none. */
GPSTI_INTERN uint64_t gpsti_call_age(const gpst_context* context);
GPSTI_INTERN void gpsti_call_release(gpst_pipeline* pipeline, void (*release)(void* user_data), void* user_data);

/* ---- state.c: what an item is doing; locked ------------------------------------------------- */

GPSTI_INTERN uint32_t gpsti_items_n_under_way(const gpst_pipeline* pipeline); /* that have not ended; locked */
GPSTI_INTERN void gpsti_item_enter(gpsti_locked locked, gpsti_item* item, gpsti_item_state state);
/* What the batch was parked for has come. */
GPSTI_INTERN void gpsti_batch_return(gpsti_locked locked, gpsti_batch* batch, gpst_result result);

#endif
