/* core/items/plan_internal.h -- what is the same for every item of a pipeline: its stages, the steps that they become,
   and its picture sets. Made once by core/pipeline/plan.c; the knobs among it move later, under the lock. */
#ifndef GPSTI_PLAN_INTERNAL_H
#define GPSTI_PLAN_INTERNAL_H

#include "../device/context_internal.h"
#include "../device/graph_internal.h"
#include "../memory/pool_internal.h"
#include "../tuning/batch_internal.h"
#include "stage.h"

#define GPSTI_MOST_BATCH GPSTI_BATCH_MOST /* items that go together at most */

typedef struct gpsti_item gpsti_item;
typedef struct gpsti_batch gpsti_batch;
typedef struct gpsti_service gpsti_service;

/* ---- stages ---------------------------------------------------------------------------- */

typedef struct gpsti_stage {
    gpst_stage_desc desc;
    char name[32];
    struct gpsti_codec* codecs; /* n_workers + 1; core/steps/codec.c's */
    bool planes;                /* DECODE: of a JPEG the planes of its file */
    gpst_codec codec;           /* DECODE, ENCODE: who may; EXACT where the device has none */
    void** worker_states;       /* n_workers + 1 */
    bool* worker_started;
    struct gpsti_state* states; /* MASK TIME: GPST_MAX_CAMERAS; else NULL; core/steps/state.c's */

    /* WARP on a device with memory of its own: its copies of the warp's mask and table, in one block; or why there
       are none: then every item of it fails like that, and is done on the CPU. */
    gpst_buffer constants;
    const void *mask, *table;
    gpst_result constants_result;
    char constants_reason[GPST_REASON_BYTES];
} gpsti_stage;

/* ---- steps ----------------------------------------------------------------------------- */

/* What waits in front of a step, and what is in it. Locked; core/pipeline/queue.c's. */
typedef struct gpsti_queue {
    gpsti_batch *head, *tail; /* who is back, then by priority, then first in; ordered: those whose turn it is */
    uint32_t n;
    uint32_t running;   /* batches that a thread has in the step */
    uint32_t on_device; /* that are on the device, or about to be */
    uint64_t n_served;
    uint64_t n_batches, n_late, n_shed;
    gpsti_batch_times* times; /* what its batches take, where items have deadlines; else NULL */
    int64_t done_ns, free_ns; /* when its latest batch was done, and when those under way are expected to be */
    uint64_t n_late_before;   /* items that were late since its latest batch began */
} gpsti_queue;

typedef struct gpsti_step {
    const struct gpsti_step_kind* kind; /* core/steps */
    uint32_t index, first_stage, n_stages;
    uint32_t first_clock;   /* a device's: upload, then a clock a stage, then download; else the one */
    uint32_t reads, writes; /* sets, of all its stages; */
    uint32_t needs;         /* those that none of its stages writes, and that kernels read; */
    uint32_t lists;         /* those that its WARPs read on the host; */
    uint32_t downloads;     /* those that it writes on the device and the host wants later */
    bool per_picture, ordered;
    bool chained;    /* per_picture: the parts that the step before was split into go on in it */
    bool one_warp;   /* on a device a WARP, and nothing else: what it makes is known ahead; */
    bool in_place;   /* small pictures may be read and written over the link: no other device step has them */
    bool capturable; /* more than one launch, and each may be in a graph */
    bool repeatable; /* no function of the user's, no order, no state: what it made may be made again */
    bool gated;      /* not every batch may run at once: they come through the queue */
    /* What a service of it is counted as; NULL: on its clock, with the wait. False: all of it is counted. Locked. */
    bool (*count)(gpst_pipeline* pipeline, const gpsti_service* service);
    uint32_t concurrency; /* 0 = any */
    uint32_t streams;     /* batches on the device at most; 0 = any */
    uint32_t batch_most;  /* as its stages say; 0: they say nothing */
    uint32_t batch;       /* items that go together at most */
    uint32_t batch_full;  /* a batch of so many does not wait for more */
    /* Items of a camera that may wait here, beyond those that could begin at once; what becomes of more. 0 = any. */
    uint32_t queue_most;
    gpst_full_policy full_policy;
    struct gpsti_step* held_by; /* the next step where BLOCK bounds the queue: items wait here while it is full */
    gpsti_queue queue;
} gpsti_step;

/* ---- sets ------------------------------------------------------------------------------ */

/* What is the same for one set of every item. */
typedef struct gpsti_set_plan {
    uint32_t capacity;
    uint32_t last_step; /* that reads it; of a result, the last */
    uint32_t writer;    /* the stage; n_stages: none that is named */
    bool is_result;
    bool is_required;                    /* a function that leaves it unset has failed */
    gpst_place place;                    /* of a result */
    char wanted_up[32], wanted_down[32]; /* by whom */
} gpsti_set_plan;

typedef struct gpsti_plan {
    gpst_pipeline_desc desc; /* every default resolved */
    gpsti_stage* stages;
    gpsti_step steps[GPST_MAX_STAGES + 1]; /* the last one ends items */
    uint32_t n_steps;
    gpsti_set_plan sets[GPST_MAX_SETS];
    uint32_t n_sets, n_parts;
    const char* frame_reader; /* the stage that needs the input to have a frame; NULL: none */
    uint32_t n_written;       /* pictures that the device stages of an item write at most */
    uint32_t n_events, n_workers;
    bool has_ends;            /* stages are asked when no more items of a camera come */
    bool device_on_host;      /* the context's device computes in host memory */
    bool device_reaches_host; /* its kernels read and write page-locked host memory */
    bool device_counts_bytes; /* its launches take the time that their bytes need */
    uint32_t batch_most;      /* items of one submission at most; 1 = batches are not for this pipeline */
    uint32_t room;            /* items that may ever go together in any step */
    gpst_graph_cache* graphs; /* of its device steps; NULL: none may become a graph */
    gpst_pool* pool;
    uint32_t kernel_threads; /* a kernel may have, while no worker has begun */
    uint32_t n_active;       /* batches run at once at most: the workers, or fewer; locked */
} gpsti_plan;

/* Of its stages the one that says how many items may wait in front of it; the first where none does. */
GPSTI_INTERN const gpst_stage_desc* gpsti_step_bounded(const gpsti_plan* plan, const gpsti_step* step);
/* Batches under way at once, of a HOST stage or device work: where the newest alone waits one, since what was in it
   would stand behind it; where stages say batch_most, what the preset has; 0: nothing says so. */
GPSTI_INTERN uint32_t gpsti_step_depth(const gpsti_plan* plan, const gpsti_step* step);
GPSTI_INTERN bool gpsti_step_is_device(const gpsti_plan* plan, const gpsti_step* step);
GPSTI_INTERN gpsti_step* gpsti_batch_step(const gpsti_batch* batch);
/* The step's name in reports. */
GPSTI_INTERN const char* gpsti_step_name(const gpsti_plan* plan, const gpsti_step* step);
GPSTI_INTERN uint32_t gpsti_set_of(uint32_t sets); /* the lowest one */
/* Of a WARP or MASK: does it read a second set, and which is the first? */
GPSTI_INTERN bool gpsti_stage_has_second(const gpst_stage_desc* stage);
GPSTI_INTERN uint32_t gpsti_stage_from(const gpst_stage_desc* stage);
/* A WARP by the lists of items; and of affines or views, which the host reads, the list's set as a bit. */
GPSTI_INTERN bool gpsti_stage_is_listed(const gpst_stage_desc* stage);
GPSTI_INTERN uint32_t gpsti_stage_host_list(const gpst_stage_desc* stage);
/* Pictures that a stage of the device makes of n pictures. */
GPSTI_INTERN uint32_t gpsti_stage_makes(const gpst_stage_desc* stage, uint32_t n);
GPSTI_INTERN const char* gpsti_stage_default_name(gpst_stage_kind kind);
GPSTI_INTERN bool gpsti_stage_is_device(const gpst_stage_desc* stage);
GPSTI_INTERN bool gpsti_stage_has_batches(const gpst_stage_desc* stage); /* may several items be told at once? */
GPSTI_INTERN bool gpsti_stage_has_bound(const gpst_stage_desc* stage);   /* does it say how many may wait? */
GPSTI_INTERN bool gpsti_stage_has_state(const gpst_stage_desc* stage);   /* of the library's own */

#endif
