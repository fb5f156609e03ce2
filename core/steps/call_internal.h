/* core/steps/call_internal.h -- the user's functions called, and what steps of several kinds do alike. */
#ifndef GPSTI_CALL_INTERNAL_H
#define GPSTI_CALL_INTERNAL_H

#include "steps_internal.h"

/* ---- call.c: not locked, all of it ------------------------------------------------------------ */

/* Calls the source for the index-th input; *reason: the sentence of a failure, or NULL, until this thread's next one.
   */
GPSTI_INTERN gpst_result gpsti_call_source(gpst_pipeline* pipeline, uint64_t index, gpst_input* out,
                                           const char** reason);
/* One service of a HOST or DEVICE stage; the failure's sentence goes to reason (GPST_REASON_BYTES). */
GPSTI_INTERN gpst_result gpsti_call_stage(gpsti_item* item, uint32_t stage_index, uint32_t part, uint32_t worker_index,
                                          char* reason);
/* Asks the stage for one more item, whose sets it makes; END: it has none. */
GPSTI_INTERN gpst_result gpsti_call_end(gpsti_item* item, uint32_t stage_index, uint32_t worker_index, char* reason);
/* Items of the camera that a stateful stage has missed before this one; UINT64_MAX: it has had none. */
GPSTI_INTERN uint64_t gpsti_call_missed(const gpsti_item* item, uint32_t stage_index);
GPSTI_INTERN void gpsti_call_worker_terms(gpst_pipeline* pipeline, gpsti_stage* stage); /* of all that have begun */
/* Tells desc.dropped, if there is one. */
GPSTI_INTERN void gpsti_call_dropped(gpst_pipeline* pipeline, const gpst_item* shown);
/* One call of a batch function for n items. Negative: nothing was done; else each has its result, and in item->reason
   its sentence. */
GPSTI_INTERN gpst_result gpsti_call_batch(gpsti_item* const* items, uint32_t n, uint32_t stage_index,
                                          uint32_t worker_index, gpst_result* results, char* reason);
/* Tells the sink, if there is one; *reason likewise. */
GPSTI_INTERN gpst_result gpsti_call_sink(gpsti_item* item, const char** reason);

/* A picture's file: bytes of room, the first `before` of them for segments. */
typedef struct gpsti_encoded {
    void* room;
    size_t bytes, before;
} gpsti_encoded;
GPSTI_INTERN gpst_result gpsti_call_ask_segments(gpsti_item* item, uint32_t stage_index, uint32_t picture,
                                                 size_t* bytes);
/* As gpsti_call_stage, with a picture's file, which gets its segments, for the func of an ENCODE stage; NULL: none. */
GPSTI_INTERN gpst_result gpsti_call_encoded(gpsti_item* item, uint32_t stage_index, uint32_t part,
                                            uint32_t worker_index, const gpsti_encoded* encoded, char* reason);

/* A callback's task, and what else it must not lack. */
GPSTI_INTERN gpst_result gpsti_task_check(const gpst_task* task, const char* function, const void* pointer,
                                          const char* member);
/* Of the item's file, read where it was not yet. */
GPSTI_INTERN const gpst_metadata* gpsti_item_metadata(gpsti_item* item);

/* ---- task.c ----------------------------------------------------------------------------------- */

/* gpst_task_encoded; or it does not wait: WOULD_BLOCK. */
GPSTI_INTERN gpst_result gpsti_task_encoded(gpsti_item* item, uint32_t part, size_t bytes, bool waits, void** out);

/* ---- common.c --------------------------------------------------------------------------------------- */

/* Sets that the host reads come there. AGAIN: what the device does not give the cores make again, or the item begins
   anew, since others have the memory; else *result says what came. Not locked. */
GPSTI_INTERN gpsti_outcome gpsti_item_fetch(gpsti_item* item, uint32_t sets, gpst_result* result);
/* May this failure be made good by the cores? Then the item goes to them from now on. Not locked. */
GPSTI_INTERN bool gpsti_item_leaves_device(gpsti_item* item, gpst_result result, const char* reason);

/* ---- host.c, finish.c ------------------------------------------------------------------------------ */

GPSTI_INTERN gpsti_outcome gpsti_host_fetch(gpsti_batch* batch);
GPSTI_INTERN gpsti_outcome gpsti_host_call(gpsti_run* run, gpsti_batch* batch);

/* ---- state.c ---------------------------------------------------------------------------------------- */

/* The state of the item's camera where its work in progress computes; *restart: it says nothing of this picture. */
GPSTI_INTERN gpst_result gpsti_state_of(gpsti_item* item, uint32_t stage_index, const gpst_image* from,
                                        const gpst_image** out, bool* restart);
GPSTI_INTERN void gpsti_state_forget(const gpsti_item* item, const gpsti_step* step);      /* its work has failed */
GPSTI_INTERN gpst_result gpsti_states_create(gpst_pipeline* pipeline, gpsti_stage* stage); /* if it has any */
GPSTI_INTERN void gpsti_states_free(gpst_pipeline* pipeline, gpsti_stage* stage);

/* ---- graphs.c --------------------------------------------------------------------------------------- */

/* Marks the steps that may become graphs, and makes their cache. */
GPSTI_INTERN gpst_result gpsti_graphs_create(gpst_pipeline* pipeline);
/* Is a submission, which could be timed, to be? */
GPSTI_INTERN bool gpsti_graphs_leave_timed(const gpst_pipeline* pipeline, const gpsti_step* step, uint64_t number);
/* From here on the kernels of a submission that may be a graph are recorded; others run at once. */
GPSTI_INTERN gpst_result gpsti_graphs_begin(gpsti_item* first, const gpsti_step* step);
/* Runs them, where result says that all are there; gives what the submission comes to. */
GPSTI_INTERN gpst_result gpsti_graphs_end(gpsti_item* first, gpst_result result);

/* ---- device.c --------------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_constants_load(gpst_pipeline* pipeline, gpsti_stage* stage);
GPSTI_INTERN void gpsti_constants_free(gpst_pipeline* pipeline, gpsti_stage* stage);

#endif
