/* core/pipeline/pipeline_internal.h -- what each file of the engine does for the others. */
#ifndef GPSTI_PIPELINE_INTERNAL_H
#define GPSTI_PIPELINE_INTERNAL_H

#include "rooms_internal.h"

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

GPSTI_INTERN bool gpsti_report_is_serial(const gpst_pipeline* pipeline); /* no worker has begun: a plain loop */
GPSTI_INTERN void gpsti_report_paths(const gpst_pipeline* pipeline, gpst_stats* out); /* report_paths.c; locked */
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
