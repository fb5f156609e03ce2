/* core/pipeline/rooms_internal.h -- what a pipeline is made of: steps, cameras, sets, and rooms, each of which one file
   writes. Which file owns what: docs/architecture.md.

   All flow state is guarded by the scheduler's lock ("locked" in a comment = with it held). What a job that runs may
   touch without it is its item's memory, and of it a job of one picture only its own part. */
#ifndef GPSTI_PIPELINE_ROOMS_INTERNAL_H
#define GPSTI_PIPELINE_ROOMS_INTERNAL_H

#include "../../kernels/mask/mask_internal.h"
#include "../../kernels/warp/warp_internal.h"
#include "../device/context_internal.h"
#include "../device/graph_internal.h"
#include "../files/reader_internal.h"
#include "../files/writer_internal.h"
#include "../memory/pool_internal.h"
#include "../pictures/pictures_internal.h"
#include "../stats/profile_internal.h"
#include "../stats/timing_internal.h"
#include "../tuning/batch_internal.h"
#include "../tuning/guard_internal.h"
#include "../tuning/shortage_internal.h"
#include "../tuning/tuner_internal.h"
#include "../tuning/window_internal.h"
#include "../workers/scheduler_internal.h"
#include "codec_internal.h"
#include "item_internal.h"

#define GPSTI_MOST_BATCH GPSTI_BATCH_MOST /* items in one submission */

/* ---- steps: the stages as the engine runs them ------------------------------------ */

typedef enum gpsti_step_kind {
    GPSTI_STEP_READ,
    GPSTI_STEP_HOST, /* one HOST or ENCODE stage */
    GPSTI_STEP_DECODE,
    GPSTI_STEP_OFFLOAD, /* WARP, MASK and DEVICE stages that follow one another */
    GPSTI_STEP_WRITE,
    GPSTI_STEP_FINISH /* files committed, sink told; always the last */
} gpsti_step_kind;

typedef struct gpsti_step {
    gpsti_step_kind kind;
    uint32_t first_stage, n_stages;
    uint32_t first_clock;   /* OFFLOAD: upload, then a clock a stage, then download; else the one */
    uint32_t reads, writes; /* sets, of all its stages; */
    uint32_t needs;         /* those that none of its stages writes, and that kernels read; */
    uint32_t lists;         /* OFFLOAD: those that its WARPs read on the host; */
    uint32_t downloads;     /* OFFLOAD: those of writes that the host wants later */
    bool per_picture, ordered;
    bool chained;         /* per_picture: the parts that the step before was split into go on in it */
    bool one_warp;        /* OFFLOAD: a WARP, and nothing else: what it makes is known ahead; */
    bool in_place;        /* small pictures may be read and written over the link: no other device step has them */
    bool capturable;      /* OFFLOAD: more than one launch, and each may be in a graph */
    bool gated;           /* not every job may run at once: jobs come through the queue */
    uint32_t concurrency; /* 0 = any */
    uint32_t running;
    uint32_t streams, on_device; /* OFFLOAD: items or batches on the device at most (0 = any) and now */
    uint32_t batch_most;         /* as its stages say; 0: they say nothing */
    uint32_t batch;              /* OFFLOAD, HOST: items in one submission, or call, at most; else 1 */
    uint32_t batch_full;         /* a batch of so many does not wait for more */
    gpsti_batch_times* times;    /* what its batches take, where items have deadlines; else NULL */
    int64_t done_ns, free_ns;    /* when its latest batch was done, and when those under way are expected to be */
    uint64_t n_late_before;      /* items that were late since its latest batch began */
    uint64_t n_batches, n_late, n_shed;
    /* Items of a camera that may wait here, beyond those that could begin at once; what becomes of more. 0 = any. */
    uint32_t queue_most;
    gpst_full_policy full_policy;
    struct gpsti_step* held_by; /* the next step where BLOCK bounds the queue: jobs wait here while it is full */
    gpsti_job* head;            /* by priority, then first in; ordered: those whose turn it is */
    gpsti_job* tail;
    uint32_t n_queued;
    uint64_t n_served;
} gpsti_step;

/* What a stage keeps of one camera, and where the latest value of it is. */
typedef enum gpsti_state_place {
    GPSTI_STATE_NOWHERE = 0,
    GPSTI_STATE_ON_DEVICE,
    GPSTI_STATE_ON_HOST
} gpsti_state_place;

typedef struct gpsti_state {
    gpst_buffer memory[2]; /* of the device, and of the host, made when first needed */
    gpsti_state_place place;
    gpst_image image;       /* as kernels see it */
    uint32_t width, height; /* of the picture that it is of */
} gpsti_state;

typedef struct gpsti_stage {
    gpst_stage_desc desc;
    char name[32];
    gpsti_codec* codecs;  /* n_workers + 1 */
    bool planes;          /* DECODE: of a JPEG the planes of its file */
    gpst_codec codec;     /* DECODE, ENCODE: who may; EXACT where the device has none */
    void** worker_states; /* n_workers + 1 */
    bool* worker_started;
    gpsti_state* states; /* MASK TIME: GPST_MAX_CAMERAS; else NULL */

    /* WARP on a device with memory of its own: its copies of the warp's mask and table, in one block; or why there
       are none: then every item of it fails like that, and is done on the CPU. */
    gpst_buffer constants;
    const void *mask, *table;
    gpst_result constants_result;
    char constants_reason[GPST_REASON_BYTES];
} gpsti_stage;

/* How items ended. */
typedef struct gpsti_item_counts {
    uint64_t ok, failed, skipped, dropped, cancelled;
} gpsti_item_counts;

/* One camera, or other origin of items that keep an order of their own. Locked. */
typedef struct gpsti_camera {
    gpsti_item* newest; /* of its items in flight, a list by slot->older */
    bool was_seen;
    uint64_t n_items; /* that have begun, or were refused */
    gpsti_item_counts items;
    uint64_t seen[GPST_MAX_STAGES];       /* by a stateful stage: its latest item's camera_index, + 1, */
    uint64_t missed[GPST_MAX_STAGES];     /* and how many it missed before that */
    uint64_t served[GPST_MAX_STAGES + 1]; /* of a step's services, the number of its latest */
    gpsti_histogram latency;
} gpsti_camera;

/* What is the same for one set of every item. */
typedef struct gpsti_set_plan {
    uint32_t capacity;
    uint32_t last_step; /* that reads it; of a result, FINISH */
    uint32_t writer;    /* the stage; n_stages: none that is named */
    bool is_required;   /* the stage must set it: else nobody would notice */
    bool is_result;
    gpst_place place;                            /* of a result */
    char wanted_up[32], wanted_down[32];         /* by whom */
    uint64_t n_up, n_down, up_bytes, down_bytes; /* copies; locked */
} gpsti_set_plan;

/* ---- tuning ------------------------------------------------------------------------- */

/* State between the engine and the policies of core/tuning. Locked. */
typedef struct gpsti_tune {
    bool on;
    gpsti_tuner tuner;
    gpsti_guard guard;
    uint64_t n_unjudged; /* items still to end that belong to no window: of the setting before, or the first */
    gpsti_window window;
    gpsti_tuner_window totals;      /* what every clock stood at when the window opened */
    int64_t full_since_ns, full_ns; /* every slot in use: since (0 = now it is not), and before */
    bool paused;                    /* the source is not asked until a plain block has ended */
    uint64_t block_items;
} gpsti_tune;

/* ---- the pipeline ------------------------------------------------------------------- */

/* What follows from the desc and the device, once. Written by plan.c, pipeline.c and, the knobs, tune.c. */
typedef struct gpsti_plan {
    gpst_pipeline_desc desc; /* every default resolved */
    gpsti_stage* stages;
    gpsti_step steps[GPST_MAX_STAGES + 1];
    uint32_t n_steps;
    gpsti_set_plan sets[GPST_MAX_SETS];
    uint32_t n_sets, n_parts;
    const char* frame_reader; /* the stage that needs the input to have a frame; NULL: none */
    uint32_t n_written;       /* pictures that the device stages of an item write at most */
    uint32_t n_events, n_workers;
    bool device_on_host;      /* the context's device computes in host memory */
    bool device_reaches_host; /* its kernels read and write page-locked host memory */
    bool device_counts_bytes; /* its launches take the time that their bytes need */
    uint32_t batch_most;      /* items that a submission may ever have; 1 = batches are not for this pipeline */
    gpst_graph_cache* graphs; /* of its device steps; NULL: none may become a graph */
    gpst_pool* pool;
    uint32_t kernel_threads; /* a kernel may have, while no worker has begun */
} gpsti_plan;

/* Items in flight and free ones. Locked. */
typedef struct gpsti_items {
    gpsti_item** slots; /* n_slots_made of them, with room for slots_capacity */
    gpsti_item* free_slots;
    uint32_t n_slots, n_slots_made, slots_capacity; /* items in flight at most; made; there is room for */
    uint32_t n_slots_used, n_served;
    gpsti_a32 in_flight; /* items in use, finished results among them; written locked */
    uint64_t next_index;
    gpsti_camera* cameras; /* GPST_MAX_CAMERAS */
    uint32_t n_cameras;    /* the highest number seen, + 1 */
} gpsti_items;

/* Ended items. Locked. */
typedef struct gpsti_results {
    gpsti_item* first_result; /* push without a sink: finished items in the order they are handed out */
    gpsti_item* last_result;
    gpsti_item* handed_out; /* results the user has and has not released: n_handed_out */
    uint32_t n_handed_out;
    uint32_t n_untaken;  /* results that nobody has taken */
    const void* taker;   /* the thread that took the latest one, by an address of its own; NULL: nobody has */
    gpsti_item* dropped; /* of whom desc.dropped has not been told yet, first come first */
    gpsti_item* last_dropped;
} gpsti_results;

/* Locked, but for the atomics. */
typedef struct gpsti_shares {
    gpsti_item* short_of_memory;                  /* items that the device had no memory for, until another one ends */
    gpsti_item* starved;                          /* items that begin again, one at a time, by ticket */
    bool exclusive;                               /* one of them runs */
    gpsti_a32 n_starving;                         /* of threads that run or are parked, the ones that wait for memory */
    gpsti_a64 item_host_bytes, item_device_bytes; /* of the largest item so far */
    uint64_t decoder_bytes;                       /* that decoders hold side by side */
    gpsti_a64 device_growths;                     /* allocations of device memory */
    gpsti_shortage shortage;                      /* of the device's memory, and its first reason */
    char shortage_reason[GPST_REASON_BYTES];
} gpsti_shares;

/* Who runs now, and whether more may come. Locked, but for the atomics. */
typedef struct gpsti_flow {
    uint32_t n_active;      /* jobs run at once at most: the workers, or fewer */
    gpsti_a32 executing;    /* threads that run a job of this pipeline, or ask its source; written locked */
    gpsti_a32 n_parked;     /* reads and writes that their own threads have, and who submits */
    gpsti_a32 n_submitting; /* threads that submit to the device what counts as on it already */
    gpsti_a32 open;         /* workers have begun; until then the caller of run brings items one by one */
    gpsti_cond progress;    /* something ended: waiters look again */
    bool has_progress, listed;
    uint32_t n_waiters;
    uint32_t n_inside; /* calls of run, submit, next_result and drain under way: destroy waits for them */
    bool started, source_running, source_done, closed, cancel_noticed;
    bool source_rests;      /* until an item has ended: it had no memory for another one */
    int64_t source_ns;      /* a call of the source takes, about */
    gpsti_a32 cancel, stop; /* set from anywhere, even signal handlers */
    bool device_lost;       /* the device is gone: later items go to the CPU at once */
} gpsti_flow;

typedef struct gpsti_files {
    gpst_reader* reader;  /* engine with a READ step; its threads come with the first read that waits */
    gpsti_writer* writer; /* engine with a WRITE step; likewise */
    gpsti_a32 reads_wait; /* 1: the latest read did: the next one is begun as long as some may */
    uint32_t n_reading;   /* items that the reader has; locked */
    uint64_t advised;     /* files of desc.paths that the system was told of; locked */
} gpsti_files;

/* Locked. */
typedef struct gpsti_counts {
    gpsti_clock* clocks;
    uint32_t n_clocks;
    gpsti_clock finish_clock, submit_clock; /* what no stage's clock has: ends of items, calls to a device; */
    gpsti_clock source_clock;          /* and the source, which knows no percentiles: an item it gave is a service */
    int64_t own_read_ns, own_write_ns; /* reads and writes on workers */
    gpsti_timing timing;
    gpsti_busy busy[GPST_RESOURCE_COUNT]; /* H2D, GPU, D2H, DISK_OUT; DISK_IN but for the reader's */
    gpsti_histogram latency;
    gpsti_item_counts items;
    uint64_t device_fallbacks;
    uint64_t items_refused;              /* of those dropped: the ones that never got an index */
    uint64_t n_submissions, n_submitted; /* to the device, of so many items */
    uint64_t n_copied, n_in_place;       /* items of a device with memory of its own: how they came there */
    uint64_t n_taken_apart;              /* batches that failed, the latest for this reason */
    char apart_reason[GPST_REASON_BYTES];
    char fallback_reason[GPST_REASON_BYTES];
    uint64_t bytes_read, bytes_h2d, bytes_d2h, bytes_written;
    int64_t start_ns, end_ns, commit_ns; /* commit_ns: of DISK_OUT's busy time, files got their names */
    int64_t kernel_cpu_ns;               /* of the other threads inside kernels */
    gpsti_core_use use_start, use_end;   /* of the cores, when the run began and when it ended */
    int64_t job_begun_ns, job_ended_ns;  /* of the job around the run; 0: none, or not yet */
    gpst_result first_failed;            /* item's result, and its sentence */
    char first_reason[GPST_REASON_BYTES];
    bool frozen;
    uint64_t frozen_allocations, frozen_growths;
} gpsti_counts;

struct gpst_pipeline {
    gpsti_client client; /* first: the scheduler's client is its pipeline */
    gpst_context* context;
    gpsti_plan plan;
    gpsti_items items;
    gpsti_results results;
    gpsti_shares memory;
    gpsti_flow flow;
    gpsti_files files;
    gpsti_counts counts;
    gpsti_tune tune;
    gpsti_jpeg_device engines;
};

#endif
