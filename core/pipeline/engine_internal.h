/* core/pipeline/engine_internal.h -- what the files of the engine do for each other. It knows items, batches and
   grants, and no kinds of steps. */
#ifndef GPSTI_ENGINE_INTERNAL_H
#define GPSTI_ENGINE_INTERNAL_H

#include "../steps/call_internal.h"
#include "../tuning/guard_internal.h"
#include "../tuning/tuner_internal.h"
#include "../tuning/window_internal.h"
#include "pipeline.h"

/* ---- rooms of the engine ------------------------------------------------------------------- */

/* Who runs now, and whether more may come. Locked, but for the atomics; threads.c's. */
typedef struct gpsti_threads {
    gpsti_cond progress;            /* something ended: waiters look again */
    bool has_progress, has_workers; /* workers may take its items */
    uint32_t n_waiters;
    bool started, source_running, closed, cancel_noticed;
    bool source_rests; /* until an item has ended or was released: it had no memory for another one */
    bool has_input;    /* the source's next one is here: when it came there was no memory for it */
    gpst_input input;
    uint32_t n_inside; /* calls of run, submit, next_result and drain under way: destroy waits for them */
    const void* taker; /* the thread that took the latest result, by an address of its own */
} gpsti_threads;

/* State between the engine and the policies of core/tuning. Locked; tune.c's. */
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

/* ---- plan.c ---------------------------------------------------------------------------------- */

/* Fills in the sets that stages read and write where their descs say nothing; gives how many sets there are. */
GPSTI_INTERN uint32_t gpsti_stages_resolve_sets(gpst_stage_desc* stages, const gpst_pipeline_desc* desc);
/* Capacities, of stages; then stages become steps, with their clocks, and it is known who wants what where. */
GPSTI_INTERN void gpsti_plan_capacities(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc);
GPSTI_INTERN void gpsti_plan_steps(gpst_pipeline* pipeline, bool asynchronous);
GPSTI_INTERN void gpsti_plan_copies(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc);
/* Items that a submission may ever have; 1 = batches are not for this pipeline. */
GPSTI_INTERN uint32_t gpsti_plan_batch_most(const gpst_pipeline* pipeline, bool asynchronous);
GPSTI_INTERN uint32_t gpsti_plan_room(const gpst_pipeline* pipeline); /* items that may ever go together */
/* Items in one submission from now on; fewer where the pipeline cannot. n_slots is set. Locked, or nobody runs. */
GPSTI_INTERN void gpsti_plan_set_batch(gpst_pipeline* pipeline, uint32_t batch);

/* ---- queue.c --------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_queue_put(gpsti_locked locked, gpsti_batch* batch);
/* Of the step's queue, those that may run now, as one batch; NULL: none may. */
GPSTI_INTERN gpsti_batch* gpsti_queue_take(gpsti_locked locked, gpsti_step* step);
GPSTI_INTERN bool gpsti_queue_may_take(gpsti_locked locked, const gpsti_step* step);
/* BLOCK: as many items of the camera as may wait in front of that step, or more. Locked */
GPSTI_INTERN bool gpsti_queue_is_full(const gpsti_step* step, uint32_t camera);
/* A batch has left its step, or the device. */
GPSTI_INTERN void gpsti_queue_leave(gpsti_locked locked, gpsti_batch* batch);
GPSTI_INTERN void gpsti_queue_leave_device(gpsti_locked locked, gpsti_batch* batch);
/* A batch of so many is done. */
GPSTI_INTERN void gpsti_queue_learn(gpsti_locked locked, const gpsti_batch* batch);
/* The item has passed the step, if that keeps an order: the one behind it may have its turn there. */
GPSTI_INTERN void gpsti_queue_pass(gpsti_locked locked, gpsti_item* item, uint32_t step);
GPSTI_INTERN gpsti_camera* gpsti_queue_camera(gpsti_locked locked, gpst_pipeline* pipeline,
                                              uint32_t camera); /* which has been seen now */
/* The item is the newest of its camera from now on, until it leaves the order: the items behind do not wait for it. */
GPSTI_INTERN void gpsti_queue_enter_order(gpsti_locked locked, gpsti_item* item);
GPSTI_INTERN void gpsti_queue_leave_order(gpsti_locked locked, gpsti_item* item);
/* Gives up the oldest item that waits in front of a step and has no higher priority: of the camera with the most items
   in flight, or of this one where it has as many. False: there is none. */
GPSTI_INTERN bool gpsti_queue_drop_oldest(gpsti_locked locked, gpst_pipeline* pipeline, uint32_t camera,
                                          int32_t priority, const char* reason);

/* ---- items.c --------------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_items_create(gpst_pipeline* pipeline);           /* room for capacity */
GPSTI_INTERN gpst_result gpsti_items_make(gpst_pipeline* pipeline, uint32_t n); /* until there are n; locked */
GPSTI_INTERN void gpsti_items_destroy(gpst_pipeline* pipeline);
GPSTI_INTERN bool gpsti_items_may_begin(gpsti_locked locked, const gpst_pipeline* pipeline); /* with another one */
GPSTI_INTERN gpsti_item* gpsti_items_take(gpsti_locked locked, gpst_pipeline* pipeline); /* to be loaded; NULL: none */
GPSTI_INTERN void gpsti_items_put(gpsti_locked locked, gpsti_item* item); /* it is free, with the memory that it had */
GPSTI_INTERN void gpsti_items_begin(gpsti_locked locked, gpsti_item* item); /* loaded, or failed: to its first step */
/* It has passed its last step, and is free, a result, or held. True: it was released already, and is given back by
   gpsti_items_release. */
GPSTI_INTERN bool gpsti_items_end(gpsti_locked locked, gpsti_item* item);
GPSTI_INTERN void gpsti_items_release(gpsti_item* item); /* nobody has it any more, or its sink alone; not locked */
GPSTI_INTERN void gpsti_items_send(gpsti_locked locked, gpsti_batch* batch, uint32_t to); /* queues it there */
GPSTI_INTERN void gpsti_items_tell_dropped(gpsti_locked locked, gpst_pipeline* pipeline); /* unlocks for a callback */
GPSTI_INTERN void gpsti_items_time_full(gpst_pipeline* pipeline);                         /* are all in use? Locked */
GPSTI_INTERN bool gpsti_items_are_over(const gpst_pipeline* pipeline); /* all have ended, and no more come; locked */
GPSTI_INTERN void gpsti_items_wake_waiters(gpsti_locked locked, gpst_pipeline* pipeline); /* something ended */

/* ---- run.c ----------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_run_batch(gpsti_run* run, gpsti_batch* batch); /* as far as this thread brings it; not locked */
GPSTI_INTERN void gpsti_run_goes_on(gpsti_locked locked, gpsti_batch* batch); /* gpst_pipeline's */

/* ---- ends.c ----------------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_ends_are_over(const gpst_pipeline* pipeline); /* no stage has more items; locked */
GPSTI_INTERN bool gpsti_ends_are_ready(gpsti_locked locked, const gpst_pipeline* pipeline); /* one may be asked now */
/* Unlocked while it is; false: none can be made. */
GPSTI_INTERN bool gpsti_ends_ask(gpsti_locked locked, gpsti_run* run);

/* ---- threads.c ---------------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_threads_run_one(gpsti_locked locked, gpsti_client* client, uint32_t worker_index);
GPSTI_INTERN bool gpsti_threads_has_work(gpsti_locked locked, const gpsti_client* client);
/* The run's items one after the other on this thread, for as long as no worker has begun and at most n_items. Not
   locked. */
GPSTI_INTERN void gpsti_threads_run_plain(gpst_pipeline* pipeline, uint64_t n_items);
/* A call of the user's is inside of the pipeline, and holds the lock. */
GPSTI_INTERN gpsti_locked gpsti_threads_enter(gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_threads_leave(gpsti_locked locked, gpst_pipeline* pipeline);
/* Waits for `progress` or a while, helping when this thread is a worker. */
GPSTI_INTERN void gpsti_threads_wait(gpsti_locked locked, gpst_pipeline* pipeline, int64_t deadline_ns);
GPSTI_INTERN void gpsti_threads_wait_end(gpsti_locked locked, gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_threads_notice(gpst_pipeline* pipeline); /* cancel and stop; locked */
GPSTI_INTERN void gpsti_threads_file_closed(void* pipeline, int64_t start_ns, int64_t end_ns); /* a gpsti_closed_func */

/* ---- tune.c ---------------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_tune_check(const gpst_pipeline_desc* desc, const char* function);
/* What DEFAULT means: the engine, or the plain loop that the settings name. */
GPSTI_INTERN gpst_run_mode gpsti_tune_loop(const gpst_pipeline_desc* desc);
GPSTI_INTERN void gpsti_tune_init(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc); /* and capacity */
/* The rest locked. */
GPSTI_INTERN void gpsti_tune_open(gpsti_locked locked, gpst_pipeline* pipeline); /* workers begin: sets the knobs */
GPSTI_INTERN void gpsti_tune_count(gpsti_locked locked, gpsti_item* item);       /* it has ended */
/* Those who serve batches want so many items in flight. */
GPSTI_INTERN void gpsti_tune_hold(gpsti_locked locked, gpst_pipeline* pipeline, uint32_t n_items);
/* The source rests and the engine has run empty: a plain block is to be, of tune.block_items. */
GPSTI_INTERN bool gpsti_tune_wants_block(const gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_tune_end_block(gpst_pipeline* pipeline, uint64_t n_items, int64_t block_ns);

/* ---- report.c -------------------------------------------------------------------------------- */

/* Part of the cores that others used so far, 0..1; negative: it is not known. Locked. */
GPSTI_INTERN double gpsti_report_others(const gpst_pipeline* pipeline, int64_t wall_ns);
/* The run is a part of a job that began and ended then; 0: it goes on. Not locked. */
GPSTI_INTERN void gpsti_report_job(gpst_pipeline* pipeline, int64_t begun_ns, int64_t ended_ns);

/* ---- report_paths.c -------------------------------------------------------------------------- */

/* Has a step its work there, by its kind? */
GPSTI_INTERN bool gpsti_report_has(const gpst_pipeline* pipeline, gpst_resource resource);
GPSTI_INTERN void gpsti_report_paths(const gpst_pipeline* pipeline, gpst_stats* out); /* locked */

/* ---- desc.c ---------------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_desc_check(const gpst_context* context, const gpst_pipeline_desc* desc,
                                          gpst_pipeline** out);

#endif
