/* core/pipeline/pipeline_internal.h -- what the files of the engine share: steps, jobs,
   slots and the pipeline itself.

   pipeline.c  checks the desc, makes and unmakes      slot.c     memory of one item in flight, and gpst_task_*
   flow.c      which job runs next, and what follows   offload.c  a device group: upload, kernels, download
   step.c      the jobs that wait in a step            call.c     the user's source and stages called
   plain.c     the plain loops                         push.c     submit, results, close, drain
   report.c    statistics and the verdict              finish.c   commit of files, sink, end of an item
   carry.c     items a worker brings through several steps at once
   service.c   one run of a step for an item, timed      note.c   and what is to be counted of it
   bunch.c     what such a worker has had of the source
   tail.c      at the end of a list: memory given back
   tune.c      windows and models for the tuner        tune_guard.c  plain blocks within an engine
   tune_knobs.c  its values put to work                tune_slots.c  and slots, by what they are worth
   tune_start.c  plain, until an engine is worth it    tune_recall.c  what is known of the last run of the job

   All flow state is guarded by the scheduler's lock ("locked" in a comment = with it held). What a job that runs may
   touch without it is its slot's memory, and of it a per-output job only its own output. */
#ifndef GPSTI_PIPELINE_INTERNAL_H
#define GPSTI_PIPELINE_INTERNAL_H

#include "../../kernels/warp/warp_internal.h"
#include "../device/context_internal.h"
#include "../tuning/guard_internal.h"
#include "pipeline.h"
#include "../memory/pool_internal.h"
#include "../stats/profile_internal.h"
#include "../files/reader_internal.h"
#include "../workers/scheduler_internal.h"
#include "../workers/inside_internal.h"
#include "../tuning/recall_internal.h"
#include "../stats/timing_internal.h"
#include "../tuning/tuner_internal.h"
#include "../files/writer_internal.h"

#define GPSTI_TASK_ARGS_BYTES 224

typedef struct gpsti_slot gpsti_slot;
typedef struct gpsti_way gpsti_way; /* note_internal.h */
typedef struct gpsti_ledger gpsti_ledger;

/* ---- what the pipelines of a context know of each other's ----------------------- */

typedef struct gpsti_jobs {
    gpsti_recall recall;  /* under the scheduler's lock */
    gpsti_inside lone;    /* what kernels of runs of one item took that had every core, or might have; likewise */
    uint64_t lone_pixels; /* of each of them; 0 = there was none */
} gpsti_jobs;

GPSTI_INTERN gpsti_jobs* gpsti_jobs_of(const gpst_context* context);

/* ---- steps: the stages as the engine runs them ------------------------------------ */

typedef enum gpsti_step_kind {
    GPSTI_STEP_READ,    /* handed to the reader */
    GPSTI_STEP_HOST,    /* one HOST stage */
    GPSTI_STEP_OFFLOAD, /* WARP and DEVICE stages that follow one another */
    GPSTI_STEP_WRITE,   /* handed to the writer */
    GPSTI_STEP_FINISH   /* files committed, sink told; always the last */
} gpsti_step_kind;

/* One item, or one output of it, on its way: what waits in a step's list. */
typedef struct gpsti_job {
    gpsti_slot* slot;
    uint32_t output;
    uint32_t step;
    int64_t ready_ns;
    struct gpsti_job* next;
} gpsti_job;

typedef struct gpsti_step {
    gpsti_step_kind kind;
    uint32_t first_stage, n_stages;
    uint32_t first_clock; /* OFFLOAD: upload, then a clock a stage, then download; else the one */
    bool per_output, ordered;
    bool no_callbacks;    /* OFFLOAD, FINISH: nothing of the user's runs in it, and no file is written */
    uint32_t concurrency; /* 0 = any */
    uint32_t running;
    uint32_t n_queued;    /* jobs in the list */
    int64_t work_ns;      /* about how long a service takes, of the last ones; 0 = there was none yet */
    uint32_t streams, on_device; /* OFFLOAD: items or batches on the device at most (0 = any) and now */
    uint32_t batch;       /* OFFLOAD: items in one submission at most; else 1 */
    uint32_t batch_full;  /* so many do not wait for more */
    uint64_t next_ticket; /* ordered: whose turn it is */
    gpsti_job* head;      /* runnable jobs; ordered: by ticket, else first come first served */
    gpsti_job* tail;
    gpsti_job* latest;    /* to have been inserted, while it is there */
} gpsti_step;

typedef struct gpsti_stage {
    gpst_stage_desc desc;
    char name[32];
    void** worker_states;  /* n_workers + 1 */
    bool* worker_started;

    /* WARP on a device with memory of its own: its copies of the warp's mask and table, in one block; or why there
       are none: then every item of it fails like that, and is done on the CPU. */
    gpst_buffer constants;
    const void *mask, *table;
    gpst_result constants_result;
    char constants_reason[GPST_REASON_BYTES];
} gpsti_stage;

/* ---- what memory was thought to cost: stubs, only until the engine that does not ask is here -- */

#define GPSTI_STUB_GROWTH_NS ((int64_t)0)
#define GPSTI_STUB_PRICE_NS ((int64_t)0)
#define GPSTI_STUB_GROWTH_CPU_NS ((int64_t)0)

/* ---- slots ------------------------------------------------------------------------ */

/* One file to write for an output. Nodes stay with the slot and are used again. */
typedef struct gpsti_emit {
    gpsti_write write;
    gpsti_slot* slot;
    uint32_t output;
    gpst_buffer room;
    char* path;
    size_t path_capacity;
    bool committed;
    struct gpsti_emit* next;
} gpsti_emit;

typedef struct gpsti_output {
    gpsti_job job;
    gpst_buffer host;
    gpst_buffer device;
    gpsti_emit* emits;       /* list; the first n_emits are in use, the next one holds the open room */
    uint32_t n_emits;
    uint32_t writes_pending; /* locked */
} gpsti_output;

/* A slot's stream on one device, with the events that time a group on it. Made when first needed. */
typedef struct gpsti_lane {
    gpsti_device* device;
    bool on_host;         /* the device computes in host memory: nothing to copy */
    gpsti_stream* stream;
    gpsti_event** events; /* n_events of the pipeline */
    uint64_t number;      /* of the latest group, for the pipeline's timing */
    bool timed;           /* it has its events recorded */
    gpst_image* sources;  /* of a batch: batch_most pictures, and all their outputs */
    gpst_image* images;
    uint32_t n_items;     /* in the latest group */
    bool copies;          /* which has an upload and a download, each between two events */
    uint32_t n_events;    /* made so far */
    int64_t* times_ns;    /* when the first n_times of them happened, in the latest group */
    uint32_t n_recorded, n_times;
} gpsti_lane;

struct gpsti_slot {
    gpst_item item; /* first: a task's item is its slot */
    gpst_pipeline* pipeline;
    uint64_t ticket;        /* place in the order; closed up when an item is dropped */
    bool in_use;            /* between source and end */
    bool started;           /* a stage has touched it */
    bool served;            /* has carried an item to its end */
    bool emptied;           /* its memory is given back, or being: no item will want it */
    bool handed_out;        /* between next_result and release */
    bool plain;             /* a plain loop has it: device work is waited for */
    uint32_t pending;       /* locked: outputs still on their own way */
    gpsti_job job;
    char numbered[32];      /* "item N" */
    char* text;             /* name and path */
    size_t text_capacity;
    char stage[32];
    char reason[GPST_REASON_BYTES];
    gpst_buffer file, input;
    gpst_image* outputs;    /* n_outputs; what item.outputs points to */
    gpsti_output* out;      /* n_outputs */
    gpst_read read;
    gpsti_a64 host_bytes;   /* frame memory of this slot, against max_item_bytes */
    gpsti_a64 setup_ns;     /* making its memory, of host and device, so far */
    int64_t read_setup_ns;  /* and for its latest read */
    int64_t commit_start_ns, commit_end_ns; /* when its files got their names; 0, 0 = it has none */

    bool alone;             /* pushed, and nothing else was in flight when its device work began */
    gpsti_exec exec;        /* how this item's kernels use the CPU */
    bool on_cpu;            /* this item's device work is done by the cpu backend: lanes[1] */
    bool device_done;       /* locked: the device has reported device_result; its sentence is in reason */
    gpst_result device_result;
    int64_t device_wait_ns; /* from runnable to submitted */
    bool single;            /* a batch with it failed: it is submitted by itself */
    gpsti_slot* companion;  /* the next item of its batch; the first item's stream and events are all of theirs */
    gpsti_lane lanes[2];    /* the context's device, and what it falls back to */
    gpsti_lane* lane;       /* of the group now on its way: of a batch the first item's */
    gpst_buffer device_input;
    bool in_place;          /* its kernel works on host memory: nothing to copy */
    gpst_image device_source;
    gpst_image* device_images; /* n_outputs: the outputs where kernels write them */
    gpst_image counted_source; /* what counted_bytes are of */
    uint64_t counted_bytes;    /* a WARP launch reads and writes */

    gpsti_slot* next;       /* free list, results list */
};

/* ---- tuning ------------------------------------------------------------------------- */

/* Everything since the run began, of which a window is the difference of two. */
typedef struct gpsti_tune_totals {
    gpsti_tuner_window window;
    int64_t serial_ns[GPST_MAX_STAGES + 1]; /* by step: busy time of those that serve one at a time */
} gpsti_tune_totals;

/* What a clock had counted at some time. */
typedef struct gpsti_tune_share {
    uint64_t count;
    int64_t work_ns; /* services, but for making memory */
} gpsti_tune_share;

/* What the tuner's windows are made of. Locked. */
typedef struct gpsti_tune {
    bool on;
    bool starts_plain;     /* the engine is opened only when the run is found to be worth it */
    bool modelled;         /* the model has seen a whole item */
    uint64_t n_to_settle;  /* items that are still of the setting before */
    uint64_t n_items;      /* of the window */
    uint64_t growths;      /* when it was opened */
    uint64_t played_before_ns; /* by the device, before the run */
    int64_t start_ns;
    gpsti_tune_totals totals; /* at its start */
    /* its noise: the spread of the times of blocks of items */
    uint64_t n_blocks, n_in_block;
    int64_t block_start_ns;
    double block_sum, block_squares;
    int64_t full_since_ns, full_ns; /* every slot in use: since (0 = now it is not), and before */
    uint64_t item_host_bytes, item_device_bytes; /* of the largest item */
    gpsti_tune_share first[GPST_MAX_STATS]; /* by clock: item 0, which found no memory and no cache; zero = it counts */
    int64_t source_ns;     /* of the plain start: the source's shortest time, so that no chance is in it */
    int64_t item_ns;       /* of the plain start: mean time of an item without set-up */
    bool guessed;          /* of an item 0 that was not over: it takes no less */
    bool sparing;          /* of slots until there is a model: the device locks their memory, and nobody has paid for
                              all that one needs */
    double serial_ns;      /* an item's time in the plain loop, at the start or in the latest block; 0 = not known */
    double inside_ns;      /* likewise with every core inside its kernels */
    int64_t alone_more_ns; /* about so much more the kernels of an item take on one thread */
    gpsti_tuner tuner;
    gpsti_guard guard;
    bool paused;           /* the source rests until a plain block is over */
    uint32_t block_loop;   /* of that block: a gpst_run_mode */
    uint64_t block_items;
    int64_t paused_ns;     /* when */
    uint64_t paused_items; /* items done by then */
    double plain_ns;       /* the plain loop stays: an item's time by which its drift is seen; 0 = not known yet */
    uint32_t n_drifted;
    int64_t read_alone_ns; /* a read's time when the model was made */
    bool waits_weighed;    /* the first reads after item 0's have been looked at */
    uint32_t n_outgrown;   /* windows in a row whose items the model would not bring whole */
    gpsti_a32 files_in_memory; /* the first file that the plain start wrote is on no disk */
    bool crowd_seen;       /* a short window has shown more workers than are good for whole items */
    uint64_t job;          /* by which the context knows such runs; 0 = it is not to know this one */
    gpsti_tuner_costs model; /* what the model was made of */
    bool recalls;          /* that is of the last of such runs, */
    gpsti_tuner_costs known; /* whose items took this, */
    uint32_t n_known_workers; /* beside so many; */
    uint32_t n_whole_workers; /* so many are to bring them whole; 0 = as the model has it */
    uint32_t n_looks;      /* so often it is still to be seen whether these take it, too */
} gpsti_tune;

typedef enum gpsti_early {
    GPSTI_EARLY_OFF = 0,
    GPSTI_EARLY_WATCHED, /* workers look at it */
    GPSTI_EARLY_OPENING  /* one of them opens the engine */
} gpsti_early;

/* ---- the pipeline ------------------------------------------------------------------- */

struct gpst_pipeline {
    gpsti_client client; /* first: the scheduler's client is its pipeline */
    gpst_context* context;
    gpst_pipeline_desc desc; /* every default resolved */
    gpsti_stage* stages;
    gpsti_step steps[GPST_MAX_STAGES + 1];
    uint32_t n_steps;
    gpsti_clock* clocks;
    uint32_t n_clocks;
    uint32_t n_outputs, n_events, n_workers;
    bool device_on_host;     /* the context's device computes in host memory */
    bool device_reaches_host; /* its kernels read and write page-locked host memory */
    bool device_counts_bytes; /* its launches take the time that their bytes need */
    uint32_t batch_most;     /* items that a submission may ever have; 1 = batches are not for this pipeline */
    gpst_pool* pool;
    gpst_reader* reader;     /* engine with a READ step */
    gpsti_writer* writer;    /* engine with a WRITE step */
    gpsti_exec exec;         /* how kernels use the CPU, from the next item on the device on */

    gpsti_cond progress;     /* something ended: waiters look again */
    bool has_progress;
    gpsti_slot** slots; /* n_slots_made of them, with room for slots_capacity */
    gpsti_slot* free_slots;
    gpsti_slot* first_result; /* push without a sink: finished items in the order they are handed out */
    gpsti_slot* last_result;
    uint32_t n_slots;        /* items in flight at most */
    uint32_t n_slots_made, slots_capacity; /* of `slots`: ready for use; there is room for */
    uint32_t n_slots_used, n_served;
    uint32_t n_active;       /* calls at once at most: the workers, or fewer */
    gpsti_tune tune;
    gpsti_slot* left;        /* an item that a plain loop left to the workers, and the step where it goes on */
    uint32_t left_step;
    uint32_t in_flight;      /* slots in use, finished results among them */
    uint32_t n_reading;      /* of them, those that the reader has, */
    uint32_t n_finishing;    /* and those that the sink is told of */
    uint32_t n_handed_out;   /* results the user has and has not released */
    uint32_t n_waiters;      /* threads that wait on progress */
    uint32_t n_end_waiters;  /* threads that wait on it for the end of everything */
    uint32_t executing;      /* calls of this pipeline on any thread now */
    bool listed, attached;   /* the scheduler knows us; and that there is an engine to run */
    gpsti_core_use use_start, use_end; /* of the cores, when the run began and when it ended */
    gpsti_early early;       /* item 0 is at work, and no engine is opened yet */
    gpsti_step* early_step;  /* at this one */
    gpsti_a64 early_submitted_ns; /* and it is with a device, since then; 0 = it is not yet; INT64_MAX = nor will it be:
                                     one thread has its kernel on the CPU */
    uint32_t* early_counted_in; /* others have begun: item 0 counts here, too; NULL = not, or not any more */
    bool started, source_running, source_done, closed;
    bool reader_retired;     /* nothing is to be read any more, */
    bool writer_retired;     /* or written */
    bool giving_back;        /* a worker has memory in hand that no item will want */
    bool whole;              /* a worker brings its items through every step itself */
    uint32_t n_filling;      /* items at once that are the first of their slots, whose memory is dear; 0 = any number */
    struct gpsti_carry* joined; /* of who waits for the end, where that may take items, too */
    uint32_t n_carrying;     /* workers at items that end with them; those call the source under: */
    gpsti_mutex source_mutex; /* for as many of them as come in a few microseconds */
    bool has_source_mutex;
    bool source_dry;         /* to them; and the index of their next item: next_index, but for those they have begun */
    uint64_t source_index;
    bool cancel_noticed;
    int64_t source_work_ns;  /* as a step's, of what a worker does for an item it takes from the source */
    double read_cpu_part;    /* of its time a read computes, of the last ones; negative = not known */
    uint64_t weighed_reads, weighed_computed; /* the reader's, when they were weighed last */
    gpsti_a32 cancel, stop;  /* set from anywhere, even signal handlers */
    uint64_t next_index, next_ticket;
    bool device_lost;        /* the device is gone: later items go to the CPU at once */

    /* counts, locked */
    uint64_t items_ok, items_failed, items_dropped, items_cancelled, device_fallbacks;
    uint64_t items_refused; /* of those dropped: the ones that never got an index */
    uint64_t n_submissions, n_submitted; /* to the device, of so many items */
    uint64_t n_copied, n_in_place; /* items of a device with memory of its own: how they came there */
    uint64_t n_taken_apart; /* batches that failed, the latest for this reason */
    char apart_reason[GPST_REASON_BYTES];
    uint64_t bytes_read, bytes_h2d, bytes_d2h, bytes_written;
    int64_t start_ns, end_ns;
    int64_t plain_cpu_ns;    /* of a whole plain run, on its thread */
    int64_t plain_inside_cpu_ns; /* of the other threads inside kernels */
    gpsti_clock finish_clock, submit_clock; /* CPU time that no stage's clock has: sink, calls to a device; */
    gpsti_clock source_clock; /* and the source, which knows no percentiles: an item it gave is a service */
    gpsti_timing timing;     /* by which to read it: */
    gpsti_busy busy[GPST_RESOURCE_COUNT]; /* H2D, GPU, D2H, DISK_OUT; DISK_IN but for the reader's reads */
    int64_t commit_ns; /* of DISK_OUT's: files got their names */
    uint32_t n_frees;  /* of replaced files, the last ones that waited for no disk */
    gpsti_histogram latency;
    bool frozen;
    uint64_t frozen_allocations, frozen_growths;
    gpsti_a64 device_growths; /* allocations of device memory */
    char fallback_reason[GPST_REASON_BYTES];
};

/* ---- bunch.c ------------------------------------------------------------------------- */

#define GPSTI_BUNCH_ITEMS 16
#define GPSTI_BUNCH_TEXT_BYTES 4096

/* What the source says of one item. Strings and pixels are its own until it is called again, unless a bunch keeps
   them. */
typedef struct gpsti_given {
    uint64_t index;
    int64_t start_ns;   /* of the call */
    gpst_result result; /* END: there is no item */
    const char* reason; /* of a failure, or NULL; until this thread's next one */
    gpst_input input;
} gpsti_given;

typedef struct gpsti_bunch {
    uint32_t n;
    gpsti_given given[GPSTI_BUNCH_ITEMS]; /* n of them are kept */
    size_t text_bytes;
    char text[GPSTI_BUNCH_TEXT_BYTES];
} gpsti_bunch;

GPSTI_INTERN void gpsti_bunch_empty(gpsti_bunch* self);
/* Keeps given[n]. False: it has a picture, or its strings are too long; a slot has to be loaded with it at once. */
GPSTI_INTERN bool gpsti_bunch_keep(gpsti_bunch* self);

/* ---- slot.c ------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_slots_create(gpst_pipeline* pipeline); /* room for slots_capacity */
/* Makes slots until there are n of them. Locked, once the pipeline is attached. */
GPSTI_INTERN gpst_result gpsti_slots_make(gpst_pipeline* pipeline, uint32_t n);
GPSTI_INTERN void gpsti_slots_destroy(gpst_pipeline* pipeline);
/* Streams, events and memory of the slot, which nobody has, back to the device, and its frame memory to the pool. Needs
   no lock. */
GPSTI_INTERN void gpsti_slot_empty(gpsti_slot* slot);
/* Gives the slot's frame memory back to the pool: the item is over. */
GPSTI_INTERN void gpsti_slot_give_back(gpsti_slot* slot);
/* Fills the slot from what the source or submit gave; copies strings and frame. */
GPSTI_INTERN gpst_result gpsti_slot_load(gpsti_slot* slot, const gpst_input* input);
GPSTI_INTERN void gpsti_slot_reset(gpsti_slot* slot, uint64_t index, int64_t start_ns);
/* Fills a slot that was reset from what the source gave; also the name, at least, of an item that it failed. */
GPSTI_INTERN void gpsti_slot_receive(gpsti_slot* slot, const gpsti_given* given);
GPSTI_INTERN gpst_result gpsti_slot_set_output(gpsti_slot* slot, uint32_t output_index, const gpst_image* shape);
GPSTI_INTERN gpst_result gpsti_slot_read_reserve(gpst_read* read, size_t needed_bytes, size_t filled_bytes);
/* Notes the item's first failure. Locked. */
GPSTI_INTERN void gpsti_slot_fail(gpsti_slot* slot, gpst_result result, const char* stage, const char* reason);

/* ---- step.c -------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_step_insert(gpsti_step* step, gpsti_job* job);
GPSTI_INTERN uint32_t gpsti_step_n_runnable(const gpsti_step* step); /* services that could begin now */
GPSTI_INTERN gpsti_job* gpsti_step_take(gpsti_step* step);           /* the next that may run; NULL: none */
/* The next one, if it may share a submission; NULL: it may not, or there is none. */
GPSTI_INTERN gpsti_job* gpsti_step_take_companion(gpsti_step* step);
GPSTI_INTERN void gpsti_step_remove(gpsti_step* step, gpsti_job* job);
/* Items in one submission from now on; fewer where the pipeline cannot. n_slots is set. */
GPSTI_INTERN void gpsti_steps_set_batch(gpst_pipeline* pipeline, uint32_t batch);

/* ---- call.c -------------------------------------------------------------------------- */

/* A thread's note of the callbacks it is inside of, innermost first. */
typedef struct gpsti_call {
    gpst_pipeline* pipeline;
    struct gpsti_call* outer;
} gpsti_call;
GPSTI_INTERN void gpsti_call_enter(gpsti_call* call, gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_call_leave(void);
GPSTI_INTERN bool gpsti_call_inside(const gpst_pipeline* pipeline);
/* Calls the source for item given->index. Not locked. */
GPSTI_INTERN void gpsti_call_source_for(gpst_pipeline* pipeline, gpsti_given* given);
/* Likewise for the item of a slot that was reset; it is loaded, or END. */
GPSTI_INTERN gpst_result gpsti_call_source(gpst_pipeline* pipeline, gpsti_slot* slot);
/* One service of a HOST stage; the failure's sentence goes to reason (GPST_REASON_BYTES). Not locked. */
GPSTI_INTERN gpst_result gpsti_call_stage(gpsti_slot* slot, uint32_t stage_index, uint32_t output,
                                          uint32_t worker_index, char* reason);

/* ---- flow.c -------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_flow_run_one(gpsti_client* client, uint32_t worker_index); /* locked */
/* On the thread of who waits for the only item there is: what is left of it to do, if that is brief and no callback's.
   False: nothing was done. Locked. */
GPSTI_INTERN bool gpsti_flow_serve_lone(gpst_pipeline* pipeline, int64_t deadline_ns);
GPSTI_INTERN int64_t gpsti_flow_backlog_ns(gpsti_client* client); /* locked */
/* A loaded (or failed) slot begins its way. Locked. */
GPSTI_INTERN void gpsti_flow_begin(gpsti_slot* slot);
/* Likewise of one whose steps before this one are done already. */
GPSTI_INTERN void gpsti_flow_continue(gpsti_slot* slot, uint32_t step);
/* Items of the list that have not begun; 0, too, where its length is not known. Locked. */
GPSTI_INTERN uint64_t gpsti_flow_n_left(const gpst_pipeline* pipeline);
GPSTI_INTERN bool gpsti_flow_has_slot(const gpst_pipeline* pipeline); /* locked */
GPSTI_INTERN uint32_t gpsti_flow_n_free(const gpst_pipeline* pipeline); /* items that may begin now; locked */
/* Takes a free slot for the next input; NULL when there is none. Locked. */
GPSTI_INTERN gpsti_slot* gpsti_flow_take_slot(gpst_pipeline* pipeline);
/* Gives up the oldest item that no stage has started; false when there is none. Locked. */
GPSTI_INTERN bool gpsti_flow_drop_oldest(gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_flow_release_slot(gpsti_slot* slot); /* locked */
GPSTI_INTERN void gpsti_flow_put_slot(gpsti_slot* slot);     /* the same, but it keeps its memory */
/* As many as the pipeline is to have at work, of those who sleep. Locked. */
GPSTI_INTERN void gpsti_flow_call_workers(gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_flow_tell_waiters(gpst_pipeline* pipeline); /* something ended: they look again; locked */
GPSTI_INTERN bool gpsti_flow_is_over(gpst_pipeline* pipeline); /* locked */
/* The same until everything is over: not told of each item. Locked. */
GPSTI_INTERN void gpsti_flow_wait_end(gpst_pipeline* pipeline);
/* Waits for `progress` or a while, helping when this thread is a worker. Locked. */
GPSTI_INTERN void gpsti_flow_wait(gpst_pipeline* pipeline, int64_t deadline_ns);
GPSTI_INTERN void gpsti_flow_notice(gpst_pipeline* pipeline); /* reacts to cancel and stop; locked */
GPSTI_INTERN int64_t gpsti_flow_source_work_ns(const gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_flow_prepare_read(gpsti_slot* slot); /* slot->read, but for done */
/* A gpsti_closed_func of a pipeline: the disk was busy until then, or until the last item's end where none is left. */
GPSTI_INTERN void gpsti_flow_file_closed(void* pipeline, int64_t start_ns, int64_t end_ns, bool waited);

/* ---- carry.c --------------------------------------------------------------------------- */

typedef struct gpsti_carry gpsti_carry;
/* What who waits for the run's end needs to be one of those at work: before there are any, and at the end. */
GPSTI_INTERN gpst_result gpsti_carry_open(gpst_pipeline* pipeline); /* again: nothing */
GPSTI_INTERN void gpsti_carry_close(gpst_pipeline* pipeline);
/* Takes items from the source, which is ready, and brings them as far as this worker can alone. Locked, but not while
   callbacks run. */
GPSTI_INTERN void gpsti_carry_run(gpst_pipeline* pipeline, uint32_t worker_index);
/* Are those at work loops on one list, so that who waits for the run's end is one of them? Where workers are bound to
   cores it has none of its own. Locked. */
GPSTI_INTERN bool gpsti_carry_is_shared(const gpst_pipeline* pipeline);
/* On the thread of who waits for the end, unless that is a worker: items, for as long as there are some and a place
   among those at work. False: there was nothing. Locked, but not while callbacks run. */
GPSTI_INTERN bool gpsti_carry_join(gpst_pipeline* pipeline);
GPSTI_INTERN uint32_t gpsti_carry_n_items(const gpst_pipeline* pipeline); /* that it would take now; locked */
/* Does it more than call the source? Locked. */
GPSTI_INTERN bool gpsti_carry_is_work(const gpst_pipeline* pipeline);
/* Does a read compute (copy from the page cache) rather than wait? Locked. */
GPSTI_INTERN bool gpsti_carry_computes(const gpst_pipeline* pipeline);
/* Do workers read, because that is computing or they bring items through every step? Locked. */
GPSTI_INTERN bool gpsti_carry_reads(const gpst_pipeline* pipeline);
/* Do items end with the worker that took them? Locked. */
GPSTI_INTERN bool gpsti_carry_ends(const gpst_pipeline* pipeline);
/* The reader's threads know whether their reads compute: of one long read, whose thread may have waited for a core,
   nobody can tell. Locked. */
GPSTI_INTERN void gpsti_carry_weigh_reads(gpst_pipeline* pipeline);
/* A read's CPU time was sampled; both without what making its memory took. Locked. */
GPSTI_INTERN void gpsti_carry_note_read(gpst_pipeline* pipeline, int64_t busy_ns, int64_t cpu_ns);

/* ---- tail.c --------------------------------------------------------------------------------------- */

/* Are there threads that read or write, and nothing more for them? They came to that while others slept. Locked. */
GPSTI_INTERN bool gpsti_tail_has_threads(const gpst_pipeline* pipeline);
/* What no item will want any more: gives some of it back. Locked, but not meanwhile. False: there is none. */
GPSTI_INTERN bool gpsti_tail_run(gpst_pipeline* pipeline);

/* ---- offload.c ------------------------------------------------------------------------ */

/* Submits the group of a slot and its companions. *finished: it is done already; else the backend calls
   gpsti_flow_offload_done. */
GPSTI_INTERN gpst_result gpsti_offload_run(gpsti_slot* slot, const gpsti_step* step, uint32_t worker_index,
                                           bool* finished, char* reason);
/* When the group's events happened, from a device that has reported: its calls take time. Not locked. */
GPSTI_INTERN void gpsti_offload_read_times(gpsti_slot* slot);
/* What is to be counted of the slot's item, whose group is done. times_ns stays the lane's. Not locked. */
GPSTI_INTERN void gpsti_offload_note(const gpsti_slot* slot, gpsti_way* out);
/* Enters it into the clocks. Locked. */
GPSTI_INTERN void gpsti_offload_account(gpst_pipeline* pipeline, const gpsti_step* step, const gpsti_way* way,
                                        int64_t wait_ns);
/* May this failure be made good on the CPU? Then the slot is set for it. Locked. */
GPSTI_INTERN bool gpsti_offload_fall_back(gpsti_slot* slot, gpst_result result, const char* reason);
GPSTI_INTERN void gpsti_offload_free(gpsti_slot* slot);
GPSTI_INTERN void gpsti_offload_constants_load(gpst_pipeline* pipeline, gpsti_stage* stage);
GPSTI_INTERN void gpsti_offload_constants_free(gpst_pipeline* pipeline, gpsti_stage* stage);
GPSTI_INTERN void gpsti_flow_offload_done(void* slot, gpst_result result); /* flow.c: the backend's notification */

/* ---- service.c ---------------------------------------------------------------------------- */

typedef struct gpsti_service { /* one run of one job, timed */
    int64_t start_ns, wait_ns, busy_ns;
    int64_t setup_ns;             /* of busy_ns: making memory */
    int64_t cpu_start_ns, cpu_ns; /* cpu_ns -1: not sampled */
    gpst_result result;
    bool finished;
    char reason[GPST_REASON_BYTES];
} gpsti_service;

/* Not locked. */
GPSTI_INTERN void gpsti_service_run(gpsti_service* service, gpsti_job* job, const gpsti_step* step,
                                    uint32_t worker_index, bool sample_cpu);
/* Is the next service's CPU time to be read? Of a group, when one of its stages would have it. Locked. */
GPSTI_INTERN bool gpsti_service_wants_cpu(gpst_pipeline* pipeline, const gpsti_step* step);
/* Enters one service's CPU time, -1 when it was not sampled. Locked. */
GPSTI_INTERN void gpsti_service_account_cpu(gpst_pipeline* pipeline, const gpsti_step* step, int64_t busy_ns,
                                            int64_t cpu_ns);
/* Enters calls of the source that gave n_items; cpu_ns likewise. Locked. */
GPSTI_INTERN void gpsti_service_account_source(gpst_pipeline* pipeline, uint64_t n_items, int64_t busy_ns,
                                               int64_t cpu_ns);

/* ---- finish.c --------------------------------------------------------------------------- */

/* Files committed or discarded, sink called. Not locked; leaves the item's final result in it. writer: whose threads
   free what the files replace; NULL = the caller: a plain loop, beside whom a worker may just be opening the engine.
   now_ns: when the item's last step ended; without files to commit or remove it ends then, too. */
GPSTI_INTERN void gpsti_finish_item(gpsti_slot* slot, gpsti_writer* writer, int64_t now_ns);
/* For it: who frees what the files of an item that comes in stages replace; NULL = who calls it. */
GPSTI_INTERN gpsti_writer* gpsti_finish_who_frees(const gpsti_slot* slot);
/* The caller, unless that waits for the disk: others would take the core that it has. */
GPSTI_INTERN gpsti_writer* gpsti_finish_who_frees_here(const gpst_pipeline* pipeline);
/* Counts, latency, freeze. Locked. */
GPSTI_INTERN void gpsti_finish_count(gpsti_slot* slot);

/* ---- plain.c, report.c -------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_plain_run(gpst_pipeline* pipeline);
/* Is an engine that would at best save so much worth opening? Of its memory the next runs have the use, too: half of
   that is theirs. */
GPSTI_INTERN bool gpsti_plain_gains(int64_t gain_ns, int64_t open_ns, int64_t memory_ns);
/* Items one after the other on this thread within an engine's pipeline, in its slots and its order, at most n_items.
   worth_ns: stops in the midst of an item as soon as an engine is worth opening for what is left, or for the outputs of
   the last item where that has taken so much; 0 = never. False: the source is dry. No other call of the pipeline runs,
   the source among them. */
GPSTI_INTERN bool gpsti_plain_within(gpst_pipeline* pipeline, uint64_t n_items, int64_t worth_ns);
/* An item through its steps from this one on, but not its end, on a worker. wants_cpu: by step. ledger: what is to be
   counted. now_ns: when the step before it ended; gives when the last one did. Not locked. */
GPSTI_INTERN int64_t gpsti_plain_bring(gpsti_slot* slot, uint32_t worker_index, uint32_t from, const bool* wants_cpu,
                                       gpsti_ledger* ledger, int64_t now_ns);
/* In so much time memory, streams and events were made. */
GPSTI_INTERN int64_t gpsti_plain_setup_ns(const gpst_pipeline* pipeline);
/* Of the run so far, as if that had been made before. */
GPSTI_INTERN int64_t gpsti_plain_time_ns(const gpst_pipeline* pipeline);
GPSTI_INTERN uint64_t gpsti_plain_left(const gpst_pipeline* pipeline); /* items still to begin, about; locked */
GPSTI_INTERN void gpsti_report_make(gpst_pipeline* pipeline, gpst_stats* out); /* locked */
/* Times frame memory was allocated for items so far, on the host or on the device. */
GPSTI_INTERN uint64_t gpsti_report_growths(const gpst_pipeline* pipeline);
GPSTI_INTERN uint64_t gpsti_report_made(const gpst_pipeline* pipeline); /* of these, not found made */
GPSTI_INTERN int64_t gpsti_report_cpu_ns(const gpst_pipeline* pipeline); /* thread CPU time of everything so far */

/* ---- early.c ------------------------------------------------------------------------------ */

/* Item 0 has taken work_ns by now, and beside_ns of them with what the n_left items (at least one) that wait for it
   could do meanwhile: is that worth price_ns? */
GPSTI_INTERN bool gpsti_early_pays(int64_t work_ns, int64_t beside_ns, int64_t n_left, int64_t price_ns);
GPSTI_INTERN int64_t gpsti_early_look_in_ns(int64_t work_ns); /* after so much work it is looked at again after that */
/* Item 0 comes to a step, FINISH among them: the next run of the job is to know whether it was brief. Locked. */
GPSTI_INTERN void gpsti_early_weigh(gpst_pipeline* pipeline, const gpsti_step* step);
/* And nobody has begun with the others. Locked. */
GPSTI_INTERN void gpsti_early_enter(gpst_pipeline* pipeline, gpsti_step* step);
/* All of item 0's device group is submitted: its thread waits from now on, if for anything. Not locked. */
GPSTI_INTERN void gpsti_early_note_submitted(gpst_pipeline* pipeline);
/* It is about to be in a kernel on the CPU, with one thread. Not locked. */
GPSTI_INTERN void gpsti_early_note_alone(gpst_pipeline* pipeline);
/* Item 0 is left: from now on the engine counts it itself. Locked. */
GPSTI_INTERN void gpsti_early_uncount(gpst_pipeline* pipeline);
/* Others have begun; item 0 may be with its read still: do theirs have as long to wait? A worker looks. Locked. */
GPSTI_INTERN void gpsti_early_look_again(gpst_pipeline* pipeline);
/* Workers have begun, or are about to: item 0 is to be left to them. Locked. */
GPSTI_INTERN bool gpsti_early_has_begun(const gpst_pipeline* pipeline);
/* The plain start is over: waits for who opens the engine. True: it is open. Not locked. */
GPSTI_INTERN bool gpsti_early_join(gpst_pipeline* pipeline);

/* ---- tune.c ------------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_tune_check(const gpst_pipeline_desc* desc, const char* function);
/* What DEFAULT means: the engine, or the plain loop that the settings name. */
GPSTI_INTERN gpst_run_mode gpsti_tune_loop(const gpst_pipeline_desc* desc);
/* Workers that there could be for whole items. */
GPSTI_INTERN uint32_t gpsti_tune_most_whole(const gpst_pipeline* pipeline);
/* In which order items end, now. Locked, or before the run. */
GPSTI_INTERN void gpsti_tune_set_order(gpst_pipeline* pipeline);
/* From the desc: is there to be a tuner, and how many slots may there ever be? */
GPSTI_INTERN void gpsti_tune_init(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc);
/* Plain until what is left is worth threads, then the engine is opened. False: nothing is left. */
GPSTI_INTERN bool gpsti_tune_start(gpst_pipeline* pipeline);
/* What opening the engine costs beside its memory; and what that costs, which is to be made. */
GPSTI_INTERN int64_t gpsti_tune_open_ns(const gpst_pipeline* pipeline, bool whole);
GPSTI_INTERN int64_t gpsti_tune_memory_ns(const gpst_pipeline* pipeline);
/* Both, of an engine in stages that is opened beside item 0: with a device not twice as much. */
GPSTI_INTERN int64_t gpsti_tune_price_ns(const gpst_pipeline* pipeline);
/* Item 0 is at work on this: what is known of items by now. Locked. */
GPSTI_INTERN void gpsti_tune_guess(gpst_pipeline* pipeline);
/* What the memory of a slot takes to make, by what it has taken so far. */
GPSTI_INTERN int64_t gpsti_tune_slot_ns(const gpst_pipeline* pipeline);
/* How many slots what is left of the run is worth; 0 = any number. Locked. */
GPSTI_INTERN uint32_t gpsti_tune_slots_worth(const gpst_pipeline* pipeline);
/* While a run of unknown length goes on, more slots are worth their making. Locked. */
GPSTI_INTERN void gpsti_tune_afford_more(gpst_pipeline* pipeline);
/* Memory comes dearer than item 0's did: slots that have none yet may not be worth it any more. Locked. */
GPSTI_INTERN void gpsti_tune_afford_fewer(gpst_pipeline* pipeline);
/* So many items at once may be the first of their slots, while an item is on its way that long. Locked. */
GPSTI_INTERN void gpsti_tune_set_filling(gpst_pipeline* pipeline, int64_t way_ns);
/* There are to be more slots, or more of them in use, but not yet: workers look again every while. Locked. */
GPSTI_INTERN bool gpsti_tune_holds_back(const gpst_pipeline* pipeline);
/* A worker looks for work: are more of them worth it by now? Locked. */
GPSTI_INTERN void gpsti_tune_let_in(gpst_pipeline* pipeline);
/* How many slots there are to be now: fewer than the tuner's knob says while the run is sparing. Locked. */
GPSTI_INTERN uint32_t gpsti_tune_slots_now(const gpst_pipeline* pipeline);
/* Until there is a model: slots up to what the items are worth, by what is known of them. Locked. */
GPSTI_INTERN void gpsti_tune_afford(gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_tune_set_files(gpst_pipeline* pipeline); /* what reader and writer are opened with */
GPSTI_INTERN void gpsti_tune_prepare(gpst_pipeline* pipeline); /* knobs for an engine that is to be opened; locked */
/* Item 0 has ended: what others take is not to be told by it. Locked. */
GPSTI_INTERN void gpsti_tune_leave_out(gpst_pipeline* pipeline);
/* Of the plain start: how long the source took. */
GPSTI_INTERN void gpsti_tune_note_source(gpst_pipeline* pipeline, int64_t busy_ns);
/* From the items so far: what the engine takes an item at best, by the model, and whether they would be whole ones. */
GPSTI_INTERN int64_t gpsti_tune_period_ns(const gpst_pipeline* pipeline, bool* whole);
/* Are items to end with the worker that brings them whole, or in turn? Locked. */
GPSTI_INTERN void gpsti_tune_set_ends(gpst_pipeline* pipeline, bool whole);
/* Sets the knobs to where the tuner has them. Locked. */
GPSTI_INTERN void gpsti_tune_apply(gpst_pipeline* pipeline);
/* Without a tuner: slots that the user has not fixed are no more than memory holds. Pull only: who submits may count
   on them. Locked, once the pipeline is attached. */
GPSTI_INTERN void gpsti_tune_hold_back(gpst_pipeline* pipeline);
/* An item has ended; its slot still has its memory. Locked. */
GPSTI_INTERN void gpsti_tune_note_item(const gpsti_slot* slot);
/* Likewise in the engine: the tuner's clock. True: it is in the window, which is to be looked at, once for several that
   are counted together. */
GPSTI_INTERN bool gpsti_tune_count(const gpsti_slot* slot);
GPSTI_INTERN void gpsti_tune_look(gpst_pipeline* pipeline); /* is the window full, and what then? Locked */
/* Opens reader and writer and lets the workers in. */
GPSTI_INTERN gpst_result gpsti_pipeline_open(gpst_pipeline* pipeline); /* pipeline.c */

/* What an item takes, by the means of all so far. */
GPSTI_INTERN void gpsti_tune_costs(const gpst_pipeline* pipeline, gpsti_tuner_costs* out);
/* By workers that bring whole items, or by the reader. Locked. */
GPSTI_INTERN uint32_t gpsti_tune_reads_at_once(const gpst_pipeline* pipeline);
/* Its files as they would be alone, by what the model was made of: many at once take long. Locked. */
GPSTI_INTERN void gpsti_tune_take_alone(const gpst_pipeline* pipeline, gpsti_tuner_costs* costs);
/* The knobs are where the model has them for items that take so much; why begins the line that says so. Locked. */
GPSTI_INTERN void gpsti_tune_set_model(gpst_pipeline* pipeline, const gpsti_tuner_costs* costs, const char* why);

/* ---- tune_recall.c ------------------------------------------------------------------------- */

/* True: the items are known from the last run of the job, and the engine is to be opened for them. Locked. */
GPSTI_INTERN bool gpsti_tune_recall(gpst_pipeline* pipeline);
/* Are they others than those were? Asked a second time, when some more have been, before it is believed. Locked. */
GPSTI_INTERN bool gpsti_tune_finds_others(gpst_pipeline* pipeline);
/* The run is over, as it is to be remembered. */
GPSTI_INTERN void gpsti_tune_remember(gpst_pipeline* pipeline);

/* ---- tune_guard.c -------------------------------------------------------------------------- */

/* Do items take longer in the window so far than they did in the plain loop? Locked. */
GPSTI_INTERN bool gpsti_tune_is_behind(const gpst_pipeline* pipeline);
/* After a window of the frozen setting, or one that is behind: pauses the source if a plain block is to be. Locked. */
GPSTI_INTERN void gpsti_tune_guard(gpst_pipeline* pipeline, const gpsti_tuner_window* window);
/* Has the engine run empty for a plain block? Locked. */
GPSTI_INTERN bool gpsti_tune_is_empty(const gpst_pipeline* pipeline);
/* Runs the block on this thread, the one that called gpst_pipeline_run. Locked, but not while items run. */
GPSTI_INTERN void gpsti_tune_run_block(gpst_pipeline* pipeline);

#endif
