/* core/pipeline/pipeline_internal.h -- what the files of the engine share: steps, cameras and the pipeline itself, and
   what each file does for the others. Which file owns what: docs/architecture.md.

   All flow state is guarded by the scheduler's lock ("locked" in a comment = with it held). What a job that runs may
   touch without it is its slot's memory, and of it a job of one picture only its own part. */
#ifndef GPSTI_PIPELINE_INTERNAL_H
#define GPSTI_PIPELINE_INTERNAL_H

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

/* ---- plan.c -------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_stage_is_offload(const gpst_stage_desc* stage);
GPSTI_INTERN bool gpsti_stage_has_batches(const gpst_stage_desc* stage); /* may it take items together? */
GPSTI_INTERN bool gpsti_stage_has_bound(const gpst_stage_desc* stage);   /* of its own */
/* The stage whose bound is the step's: the one that has any, else the first. */
GPSTI_INTERN const gpst_stage_desc* gpsti_step_bounded(const gpst_pipeline* pipeline, const gpsti_step* step);
/* Items or batches that are in the step at once, where its stages imply it; 0: they say nothing. */
GPSTI_INTERN uint32_t gpsti_step_depth(const gpst_pipeline* pipeline, const gpsti_step* step);
/* Fills in the sets that a stage reads and writes where its desc says nothing. earlier, named: the sets that stages
   before it write, and that any stage names. */
GPSTI_INTERN void gpsti_stage_resolve_sets(gpst_stage_desc* stage, uint32_t earlier, uint32_t named);
/* The same for all of n_stages, in order; gives how many sets there are. */
GPSTI_INTERN uint32_t gpsti_stages_resolve_sets(gpst_stage_desc* stages, const gpst_pipeline_desc* desc);
/* Capacities, of stages, before steps are made; results and who wants what, of steps. n_sets is known. */
GPSTI_INTERN void gpsti_plan_capacities(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc);
GPSTI_INTERN void gpsti_plan_copies(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc);
/* Pictures that a stage of the device makes of n pictures. */
GPSTI_INTERN uint32_t gpsti_stage_makes(const gpst_stage_desc* stage, uint32_t n);
GPSTI_INTERN uint32_t gpsti_set_of(uint32_t sets); /* the lowest one */
/* Of a WARP or MASK: does it read a second set, and which is the first? */
GPSTI_INTERN bool gpsti_stage_has_second(const gpst_stage_desc* stage);
GPSTI_INTERN uint32_t gpsti_stage_from(const gpst_stage_desc* stage);
/* A WARP by the lists of items; and of affines or views, which the host reads, the list's set as a bit. */
GPSTI_INTERN bool gpsti_stage_is_listed(const gpst_stage_desc* stage);
GPSTI_INTERN uint32_t gpsti_stage_host_list(const gpst_stage_desc* stage);

/* ---- call.c -------------------------------------------------------------------------- */

/* A thread's note of the callbacks it is inside of, innermost first. */
typedef struct gpsti_call {
    gpst_pipeline* pipeline;
    struct gpsti_call* outer;
} gpsti_call;
GPSTI_INTERN bool gpsti_call_inside(const gpst_pipeline* pipeline);
GPSTI_INTERN bool gpsti_call_inside_any(const gpst_context* context); /* of the context's pipelines */
/* A lent frame goes back; what worker_init has made goes. Not locked. */
GPSTI_INTERN void gpsti_call_release(gpst_pipeline* pipeline, void (*release)(void* user_data), void* user_data);
GPSTI_INTERN void gpsti_call_worker_terms(gpst_pipeline* pipeline, gpsti_stage* stage);
/* Calls the source for the index-th input; *reason: the sentence of a failure, or NULL, until this thread's next one.
   Not locked. */
GPSTI_INTERN gpst_result gpsti_call_source(gpst_pipeline* pipeline, uint64_t index, gpst_input* out,
                                           const char** reason);
/* One service of a HOST or DEVICE stage; the failure's sentence goes to reason (GPST_REASON_BYTES). Not locked. */
GPSTI_INTERN gpst_result gpsti_call_stage(gpsti_item* item, uint32_t stage_index, uint32_t part, uint32_t worker_index,
                                          char* reason);
/* Items of the camera that a stateful stage has missed before this one; UINT64_MAX: it has had none. */
GPSTI_INTERN uint64_t gpsti_call_missed(const gpsti_item* item, uint32_t stage_index);
/* Tells desc.dropped, if there is one. Not locked. */
GPSTI_INTERN void gpsti_call_dropped(gpst_pipeline* pipeline, const gpst_item* item);
/* One call of a batch function for n slots. Negative: nothing was done; else each has its result, and in slot->reason
   its sentence. Not locked. */
GPSTI_INTERN gpst_result gpsti_call_batch(gpsti_item* const* slots, uint32_t n, uint32_t stage_index,
                                          uint32_t worker_index, gpst_result* results, char* reason);
/* Tells the sink, if there is one; *reason likewise. Not locked. */
GPSTI_INTERN gpst_result gpsti_call_sink(gpsti_item* item, const char** reason);

/* A picture's file: bytes of room, the first `before` of them for segments. */
typedef struct gpsti_encoded {
    void* room;
    size_t bytes, before;
} gpsti_encoded;
/* Not locked, either. */
GPSTI_INTERN gpst_result gpsti_call_ask_segments(gpsti_item* item, uint32_t stage_index, uint32_t picture,
                                                 size_t* bytes);
/* As gpsti_call_stage, with a picture's file, which gets its segments, for the func of an ENCODE stage; NULL: none. */
GPSTI_INTERN gpst_result gpsti_call_encoded(gpsti_item* item, uint32_t stage_index, uint32_t part,
                                            uint32_t worker_index, const gpsti_encoded* encoded, char* reason);

/* ---- account.c ------------------------------------------------------------------------ */

GPSTI_INTERN bool gpsti_step_calls(const gpsti_step* step); /* HOST, ENCODE, DECODE: a function on a thread */
/* One run of a step for an item or a part, timed. */
typedef struct gpsti_service {
    const gpsti_step* step;
    int64_t start_ns, end_ns, wait_ns;
    int64_t cpu_ns;     /* of this thread; -1: not sampled */
    int64_t setup_ns;   /* making memory */
    uint64_t bytes;     /* of a file */
    uint32_t n_threads; /* inside a kernel */
    bool failed;
} gpsti_service;

GPSTI_INTERN void gpsti_service_begin(gpsti_service* service, const gpsti_step* step, const gpsti_job* job);
GPSTI_INTERN void gpsti_service_end(gpsti_service* service, gpst_result result);
GPSTI_INTERN void gpsti_service_share(gpsti_service* service, uint32_t n_items); /* becomes one item's part of it */
GPSTI_INTERN void gpsti_account_service(gpst_pipeline* pipeline, const gpsti_service* service); /* locked */
GPSTI_INTERN void gpsti_account_source(gpst_pipeline* pipeline, uint64_t n_items, int64_t busy_ns, int64_t cpu_ns);
/* A read or a write that its own thread did. Locked. */
GPSTI_INTERN void gpsti_account_read(gpst_pipeline* pipeline, const gpsti_item* item);
GPSTI_INTERN void gpsti_account_write(gpst_pipeline* pipeline, const gpsti_write* write, int64_t ready_ns);
GPSTI_INTERN void gpsti_account_copy(gpst_pipeline* pipeline, gpsti_set_plan* set, bool up, uint32_t n_pictures,
                                     uint64_t bytes); /* over the link; locked */
#define GPSTI_ENDS_ITEM(result) (GPST_FAILED(result) || (result) == GPST_SKIPPED || (result) == GPST_DROPPED)
/* Keeps the item's first failure, or that it is skipped. Locked, or no other thread has the item. */
GPSTI_INTERN void gpsti_item_fail(gpsti_item* item, gpst_result result, const char* stage, const char* reason);
GPSTI_INTERN bool gpsti_item_has_failed(const gpsti_item* item); /* any thread */
GPSTI_INTERN void gpsti_account_item(gpsti_item* item);          /* it has ended: counts, latency, freeze; locked */
GPSTI_INTERN uint64_t gpsti_account_growths(const gpst_pipeline* pipeline); /* allocations of frame memory so far */
GPSTI_INTERN int64_t gpsti_account_own_cpu_ns(const gpsti_clock* clock, int64_t own_ns); /* of own_ns, by samples */
GPSTI_INTERN int64_t gpsti_account_between_cpu_ns(const gpst_pipeline* pipeline);        /* of what is no stage's */
GPSTI_INTERN int64_t gpsti_account_cpu_ns(const gpst_pipeline* pipeline); /* thread CPU time of everything so far */

/* ---- queue.c -------------------------------------------------------------------------- */

GPSTI_INTERN const char* gpsti_step_name(const gpst_pipeline* pipeline, const gpsti_step* step);
/* All of it locked. A job is put in; who takes one may run it, and then takes 1 off step->running. */
GPSTI_INTERN void gpsti_queue_put(gpsti_step* step, gpsti_job* job);
GPSTI_INTERN bool gpsti_queue_has_runnable(const gpsti_step* step); /* as far as the step goes */
GPSTI_INTERN bool gpsti_queue_may_take(const gpst_pipeline* pipeline, const gpsti_step* step);
GPSTI_INTERN gpsti_job* gpsti_queue_take(gpsti_step* step); /* the next that may run; NULL: none */
GPSTI_INTERN gpsti_job* gpsti_queue_pop(gpsti_step* step);  /* the first; there is one */
/* The item has passed the step, if that keeps an order: the one behind it may have its turn there. */
GPSTI_INTERN void gpsti_queue_pass(const gpsti_step* step, gpsti_item* item);
/* For want of device memory the item waits: until another one has ended, has come from the device or waits for its
   turn. */
GPSTI_INTERN void gpsti_queue_park_short(gpsti_item* item);
/* Those that wait so and came before an item with that index queue again. True: there were some. */
GPSTI_INTERN bool gpsti_queue_wake_short(gpst_pipeline* pipeline, uint64_t before);
GPSTI_INTERN gpsti_camera* gpsti_queue_camera(gpst_pipeline* pipeline, uint32_t camera); /* which has been seen now */
/* The item is the newest of its camera from now on, until it leaves the order: the items behind do not wait for it. */
GPSTI_INTERN void gpsti_queue_enter_order(gpsti_item* item);
GPSTI_INTERN void gpsti_queue_leave_order(gpsti_item* item);
/* Gives up the oldest item that waits in front of a step and has no higher priority: of the camera with the most items
   in flight, or of this one where it has as many. False: there is none. */
GPSTI_INTERN bool gpsti_queue_drop_oldest(gpst_pipeline* pipeline, uint32_t camera, int32_t priority,
                                          const char* reason);
/* Of a step that has `times`, and a job that may run: gives up items that would be late, and others if that lets more
   be in time. Gives how many are to go now; 0: none is left. */
GPSTI_INTERN uint32_t gpsti_queue_meet_deadlines(gpsti_step* step);
/* A batch of so many was begun at start_ns, and is done. */
GPSTI_INTERN void gpsti_queue_learn(gpsti_step* step, uint32_t n_items, int64_t start_ns);
/* The next one, if it may share a submission; NULL: it may not, or there is none. */
GPSTI_INTERN gpsti_job* gpsti_queue_take_next_in_batch(gpsti_step* step);
GPSTI_INTERN void gpsti_queue_remove(gpsti_step* step, gpsti_job* job);
/* Items in one submission from now on; fewer where the pipeline cannot. n_slots is set. */
GPSTI_INTERN void gpsti_queues_set_batch(gpst_pipeline* pipeline, uint32_t batch);

/* ---- place.c --------------------------------------------------------------------------- */

/* Stream and events of the slot's work, made when first needed. Not locked, all of it. */
GPSTI_INTERN gpst_result gpsti_device_work_prepare(gpsti_item* item, gpsti_device_work* work);
/* Memory of the device for a picture whose shape is known. */
GPSTI_INTERN gpst_result gpsti_place_make_on_device(gpsti_item* item, uint32_t set, uint32_t picture);
/* Finds where kernels will have the pictures of sets, whose shapes are known. */
GPSTI_INTERN gpst_result gpsti_place_sets(gpsti_item* item, uint32_t sets);
/* Puts copies on the stream of the slot's work in progress. */
GPSTI_INTERN gpst_result gpsti_place_copy_up(gpsti_item* item, uint32_t set, uint64_t* copied);
GPSTI_INTERN gpst_result gpsti_place_copy_down(gpsti_item* item, uint32_t set, uint64_t* copied);
/* Makes the word that counts the set where the work in progress computes, and puts its being 0 on the stream. */
GPSTI_INTERN gpst_result gpsti_place_make_count(gpsti_item* item, uint32_t set);
/* Sets that the host has, with all that was put on the stream for it, have as many pictures as count. */
GPSTI_INTERN void gpsti_place_take_counts(gpsti_item* item, uint32_t sets);
/* Copies sets that only the device has to the host, or the other way, and waits. */
GPSTI_INTERN gpst_result gpsti_place_fetch(gpsti_item* item, uint32_t sets);
GPSTI_INTERN gpst_result gpsti_place_bring(gpsti_item* item, uint32_t sets);
/* Memory of sets that are not on the device; true: some of sets that are not needed next. */
GPSTI_INTERN bool gpsti_place_free_unused(gpsti_item* item, uint32_t needed);
#define GPSTI_PIECES 64

/* Device memory on its way back. */
typedef struct gpsti_pieces {
    uint32_t n;
    gpst_buffer memory[GPSTI_PIECES];
} gpsti_pieces;

/* Of a slot that waits in front of a step, or has no item, takes what nobody will find on the device, as far as out has
   room; NULL: nothing is taken. True: there is some. Locked. The caller gives it back when it is not: a driver that
   frees may wait for notifications. */
GPSTI_INTERN bool gpsti_place_take_unneeded(gpsti_item* item, uint32_t from, gpsti_pieces* out);
GPSTI_INTERN void gpsti_place_free_slot(gpsti_item* item);
GPSTI_INTERN void gpsti_constants_load(gpst_pipeline* pipeline, gpsti_stage* stage);
GPSTI_INTERN void gpsti_constants_free(gpst_pipeline* pipeline, gpsti_stage* stage);

/* ---- state.c -------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_stage_has_state(const gpst_stage_desc* stage);
/* The state of the item's camera where its work in progress computes; *restart: it says nothing of this picture. */
GPSTI_INTERN gpst_result gpsti_state_of(gpsti_item* item, uint32_t stage_index, const gpst_image* from,
                                        const gpst_image** out, bool* restart);
GPSTI_INTERN void gpsti_state_forget(const gpsti_item* item, const gpsti_step* step); /* its work has failed */
GPSTI_INTERN void gpsti_states_free(gpst_pipeline* pipeline, gpsti_stage* stage);

/* ---- graphs.c ------------------------------------------------------------------------- */

#define GPSTI_GRAPHS_COMMAND_BYTES 8192 /* of a recorded submission, before its stream's list must grow */

/* Marks the steps that may become graphs, and makes their cache. */
GPSTI_INTERN gpst_result gpsti_graphs_create(gpst_pipeline* pipeline);
/* Is a submission, which could be timed, to be? */
GPSTI_INTERN bool gpsti_graphs_leave_timed(const gpst_pipeline* pipeline, const gpsti_step* step, uint64_t number);
/* From here on the kernels of a submission that may be a graph are recorded; others run at once. */
GPSTI_INTERN gpst_result gpsti_graphs_begin(gpsti_item* first, const gpsti_step* step);
/* Runs them, where result says that all are there; gives what the submission comes to. */
GPSTI_INTERN gpst_result gpsti_graphs_end(gpsti_item* first, gpst_result result);

/* ---- shortage.c ----------------------------------------------------------------------- */

/* Did a submission fail since the device, or its budget, has no memory? */
GPSTI_INTERN bool gpsti_shortage_is(const gpsti_item* first, gpst_result result);
/* Drops the cached graphs; where there are none, what slots hold and nobody needs. first, reason: of the submission
   that failed, and was given up; the report has the first reason. freed: that gave memory back that it does not take
   again. True: something was given back. Not locked. */
GPSTI_INTERN bool gpsti_shortage_relieve(gpsti_item* first, const char* reason, bool freed);
/* The rest locked. What to do with the items of a submission, when that helped no more. */
GPSTI_INTERN gpsti_relief gpsti_shortage_choose(const gpsti_item* first, const char* reason);
GPSTI_INTERN void gpsti_shortage_skip(gpsti_item* item); /* an item for the device: or for the CPU at once? */

/* ---- offload.c ------------------------------------------------------------------------ */

/* Submits the device work of a slot and the rest of its batch. *finished: it is done already; else the device says when
   to `done`, on a thread that may not call it. Not locked. */
GPSTI_INTERN gpst_result gpsti_offload_run(gpsti_item* item, const gpsti_step* step, uint32_t worker_index,
                                           void (*done)(void* item, gpst_result result), bool* finished, char* reason);
/* When the group's events happened, from a device that has reported: its calls take time. Not locked. */
GPSTI_INTERN void gpsti_offload_read_times(gpsti_item* item);
/* Adds the times of the slot's device work, which is done, to the clocks. Locked. */
GPSTI_INTERN void gpsti_offload_account(gpsti_item* item, const gpsti_step* step, int64_t wait_ns);
/* What the slot's device work has failed to make is not there. Locked, or nobody else has the slot. */
GPSTI_INTERN void gpsti_offload_undo(gpsti_item* item, const gpsti_step* step);
/* Copies sets that only the device has to the host; where it does not give them they are computed again. The sentence
   of a failure goes to reason. Not locked, and in no device work. */
GPSTI_INTERN gpst_result gpsti_offload_fetch(gpsti_item* item, uint32_t sets, uint32_t worker_index, char* reason);
/* May this failure be made good on the CPU? Then the slot is set for it. Locked. */
GPSTI_INTERN bool gpsti_offload_fall_back(gpsti_item* item, gpst_result result, const char* reason);

/* ---- finish.c -------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_finish_discard(gpsti_item* item); /* none of the item's files stays */
/* Files committed or removed, sink told. Not locked; leaves the item's final result in it. */
GPSTI_INTERN void gpsti_finish_item(gpsti_item* item);

/* ---- tune.c ---------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_tune_check(const gpst_pipeline_desc* desc, const char* function);
/* What DEFAULT means: the engine, or the plain loop that the settings name. */
GPSTI_INTERN gpst_run_mode gpsti_tune_loop(const gpst_pipeline_desc* desc);
GPSTI_INTERN void gpsti_tune_init(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc); /* and slots_capacity */
/* The rest locked. How many items fit in what memory there is, by the largest so far. */
GPSTI_INTERN uint32_t gpsti_tune_n_fit(const gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_tune_open(gpst_pipeline* pipeline); /* workers begin: sets the knobs */
GPSTI_INTERN void gpsti_tune_count(const gpsti_item* item); /* an item has ended; its slot still has its memory */
GPSTI_INTERN void gpsti_tune_hold(gpst_pipeline* pipeline, uint32_t n_items); /* so many wait at the JPEG engines */
/* The source rests and the engine has run empty: a plain block is to be, of tune.block_items. */
GPSTI_INTERN bool gpsti_tune_wants_block(const gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_tune_end_block(gpst_pipeline* pipeline, uint64_t n_items, int64_t block_ns);

/* ---- report.c -------------------------------------------------------------------------- */

/* Share of the cores that other programs took in the run's wall_ns so far, 0..1; negative = not known. Locked. */
GPSTI_INTERN double gpsti_report_others(const gpst_pipeline* pipeline, int64_t wall_ns);
/* When the job began and ended that the run is a part of, on gpst_now_ns's clock; ended_ns 0 = it goes on. What it took
   before the run and behind the last item is in the run's statistics and verdict. */
GPSTI_INTERN void gpsti_report_job(gpst_pipeline* pipeline, int64_t begun_ns, int64_t ended_ns);

/* ---- flight.c -------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_flight_is_plain(const gpst_pipeline* pipeline); /* no worker has begun; any thread */
/* The rest locked. */
GPSTI_INTERN uint32_t gpsti_flight_n_under_way(const gpst_pipeline* pipeline); /* that have not ended */
GPSTI_INTERN bool gpsti_flight_has_slot(const gpst_pipeline* pipeline);
GPSTI_INTERN gpsti_item* gpsti_flight_take_slot(gpst_pipeline* pipeline); /* for the next input; NULL: there is none */
GPSTI_INTERN void gpsti_flight_release_slot(gpsti_item* item);
GPSTI_INTERN void gpsti_flight_time_full(gpst_pipeline* pipeline);    /* slots were taken or put: are all in use? */
GPSTI_INTERN void gpsti_flight_put_slot(gpsti_item* item);            /* the same of one that has no memory */
GPSTI_INTERN void gpsti_flight_tell_dropped(gpst_pipeline* pipeline); /* of all; unlocks for a callback */
GPSTI_INTERN bool gpsti_flight_is_over(const gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_flight_enter(gpst_pipeline* pipeline);        /* locks; a destroy waits for the call */
GPSTI_INTERN void gpsti_flight_leave(gpst_pipeline* pipeline);        /* unlocks; the pipeline may be gone */
GPSTI_INTERN void gpsti_flight_wake_waiters(gpst_pipeline* pipeline); /* something ended: they look again */
GPSTI_INTERN void gpsti_flight_notice(gpst_pipeline* pipeline);       /* reacts to cancel and stop */
GPSTI_INTERN uint32_t gpsti_flight_next_step(const gpsti_item* item, uint32_t from);
GPSTI_INTERN void gpsti_flight_send(gpsti_job* job, uint32_t to); /* queues the job there */
/* Has the item failed because others have the memory, and may it begin anew? */
GPSTI_INTERN bool gpsti_flight_may_restart(const gpsti_item* item);
GPSTI_INTERN void gpsti_flight_restart(gpsti_item* item); /* queues it to run exclusively; no thread has it */
/* The first of those who do, where nothing else runs; what waits for it to end begins anew behind it. NULL: not yet. */
GPSTI_INTERN gpsti_job* gpsti_flight_take_starved(gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_flight_begin(gpsti_item* item); /* queues a loaded (or failed) slot at its first step */

/* ---- inline.c --------------------------------------------------------------------------- */

#define GPSTI_RUN_SERVICES 8

/* A thread at work on a job, and its services that are not counted yet. */
typedef struct gpsti_run {
    gpst_pipeline* pipeline;
    uint32_t worker_index;
    bool entered; /* the job's step has let it in */
    uint32_t n;
    gpsti_service services[GPSTI_RUN_SERVICES];
} gpsti_run;

/* What the parts of the inline run share: the lock, which counts the services kept; the job's step; its failure; the
   parts that no thread has taken, for others (locked); and where the job goes next. */
GPSTI_INTERN void gpsti_run_lock(gpsti_run* run);
GPSTI_INTERN void gpsti_run_unlock(gpsti_run* run);
GPSTI_INTERN void gpsti_run_keep(gpsti_run* run, const gpsti_service* service);
GPSTI_INTERN gpsti_step* gpsti_inline_step_of(const gpsti_job* job);
GPSTI_INTERN void gpsti_inline_fail(gpsti_job* job, gpst_result result, const char* reason);
GPSTI_INTERN void gpsti_inline_offer_parts(gpsti_item* item);
GPSTI_INTERN gpsti_job* gpsti_inline_next(gpsti_run* run, gpsti_job* job);
GPSTI_INTERN gpsti_job* gpsti_inline_host(gpsti_run* run, gpsti_job* job, gpsti_step* step);
/* The job's place in the step is free for another one; locked. */
GPSTI_INTERN void gpsti_inline_leave(gpsti_run* run, gpsti_step* step, gpsti_job* job);
GPSTI_INTERN gpsti_job* gpsti_inline_take(gpsti_run* run, gpsti_step* step); /* that may run, or NULL; locked */
GPSTI_INTERN void gpsti_inline_run(gpsti_run* run, gpsti_job* job); /* as far as this thread brings it; not locked */

/* ---- inline_files.c, inline_batch.c: steps as inline.c runs them ------------------------- */

GPSTI_INTERN gpsti_job* gpsti_inline_read(gpsti_run* run, gpsti_job* job, gpsti_step* step);
GPSTI_INTERN gpsti_job* gpsti_inline_write(gpsti_run* run, gpsti_job* job, gpsti_step* step);
GPSTI_INTERN gpsti_job* gpsti_inline_decode(gpsti_run* run, gpsti_job* job, gpsti_step* step);
GPSTI_INTERN gpsti_job* gpsti_inline_batch(gpsti_run* run, gpsti_job* job, gpsti_step* step); /* of a HOST stage */
/* The step's pictures are encoded on the device: true, and the item goes on behind it, or has failed. */
GPSTI_INTERN bool gpsti_inline_encode(gpsti_run* run, gpsti_item* item, const gpsti_step* step);

/* ---- flow.c ---------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_flow_run_one(gpsti_client* client, uint32_t worker_index); /* locked */
GPSTI_INTERN bool gpsti_flow_has_work(const gpsti_client* client);                 /* locked */
/* The run's items one after the other on this thread, for as long as no worker has begun and at most n_items. Not
   locked. */
GPSTI_INTERN void gpsti_flow_run_plain(gpst_pipeline* pipeline, uint64_t n_items);
/* Waits for `progress` or a while, helping when this thread is a worker. Locked. */
GPSTI_INTERN void gpsti_flow_wait(gpst_pipeline* pipeline, int64_t deadline_ns);
GPSTI_INTERN void gpsti_flow_wait_end(gpst_pipeline* pipeline);                             /* locked */
GPSTI_INTERN void gpsti_flow_file_closed(void* pipeline, int64_t start_ns, int64_t end_ns); /* a gpsti_closed_func */

/* ---- input.c --------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_input_check(const gpst_pipeline* pipeline, const gpst_input* input,
                                           const char* function);

/* ---- desc.c ---------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_desc_check(const gpst_context* context, const gpst_pipeline_desc* desc,
                                          gpst_pipeline** out);

#endif
