/* core/steps/device.c -- WARP, MASK and DEVICE stages that follow one another: uploads, kernels and downloads of a
   batch, submitted at once on the stream of its first item; or computed by the cores. */
#include "../base/platform_internal.h"

#include "device_internal.h"

#include <string.h>

#define GPSTI_DEVICE_ALL_CORES_PIXELS 262144 /* that kernels write: fewer are done before other threads are there */
/* Of input and outputs together. Below it two copies take longer to be asked for than the kernel takes to reach over
   the link (docs/benchmarks). */
#define GPSTI_DEVICE_IN_PLACE_BYTES 262144

/* ---- where the pictures are ---------------------------------------------------------------- */

/* The item's own memory for it, page-locked? A mapped picture lies in the file's. */
GPSTI_PRIVATE bool gpsti_device_is_pinned(const gpsti_item* item, uint32_t set, uint32_t picture) {
    const gpst_buffer* const own = &item->sets[set].host[picture];
    const uintptr_t data = (uintptr_t)item->sets[set].on_host[picture].data, file = (uintptr_t)item->file.data;
    if (item->file.data && data >= file && data < file + item->file.bytes)
        return item->file.pinned;
    return own->data && data == (uintptr_t)own->data && own->pinned;
}

/* True if the kernel reads and writes the item's host memory over the link. Never a user's kernel, which may read a
   pixel many times, and never where the device has the pictures or will read them again. */
GPSTI_PRIVATE bool gpsti_device_is_in_place(const gpsti_item* item, const gpsti_step* step) {
    const gpsti_plan* const plan = &item->pipeline->plan;
    const uint32_t sets = step->needs | step->writes;
    if (item->work->on_host)
        return true;
    if (!plan->device_reaches_host || !step->in_place || gpsti_sets_bytes(item, sets) > GPSTI_DEVICE_IN_PLACE_BYTES)
        return false;
    for (uint32_t k = 0; k < plan->n_sets; k++)
        for (uint32_t i = 0; (sets & GPST_SET(k)) && i < item->sets[k].n; i++)
            if (gpsti_set_is_at(item, k, GPSTI_ON_DEVICE(0)) || !gpsti_device_is_pinned(item, k, i))
                return false;
    return true;
}

/* Of a single WARP everything is known ahead; else what each stage writes is made when its turn comes. */
GPSTI_PRIVATE gpst_result gpsti_device_place(gpsti_item* item, const gpsti_step* step) {
    item->in_place = gpsti_device_is_in_place(item, step);
    item->work->copies = item->work->copies || !item->in_place;
    item->up_bytes = item->down_bytes = 0;
    return gpsti_sets_place(item, step->one_warp ? step->needs | step->writes : step->needs);
}

/* ---- submission -------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_device_upload(gpsti_item* item, const gpsti_step* step) {
    if (item->given.borrowed && item->given.ready && (step->needs & GPST_SET(0)))
        GPSTI_TRY(gpsti_stream_await(item->work->stream, item->given.ready));
    if (item->in_place) {
        item->up_bytes = gpsti_sets_bytes(item, step->needs);
        return GPST_OK;
    }
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        if (!(step->needs & GPST_SET(k)) || gpsti_set_is_at(item, k, GPSTI_ON_DEVICE(0)))
            continue;
        item->uploaded |= GPST_SET(k);
        GPSTI_TRY(gpsti_set_copy_up(item, k, &item->up_bytes));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_device_download(gpsti_item* item, const gpsti_step* step) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        if (!(step->writes & GPST_SET(k)))
            continue;
        item->sets[k].valid = item->in_place ? GPSTI_ON_HOST : GPSTI_ON_DEVICE(0);
        if (!item->in_place && (step->downloads & GPST_SET(k)))
            GPSTI_TRY(gpsti_set_copy_down(item, k, &item->down_bytes));
    }
    if (item->in_place)
        item->down_bytes = gpsti_sets_bytes(item, step->writes);
    return GPST_OK;
}

/* Records the next event, if this submission is timed. */
GPSTI_PRIVATE gpst_result gpsti_device_record(gpsti_device_work* work) {
    return work->timed ? gpsti_event_record(work->events[work->n_recorded++], work->stream) : GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_device_submit(const gpsti_batch* batch, uint32_t worker_index, char* reason) {
    gpsti_item* const first = batch->item;
    const gpsti_step* const step = gpsti_batch_step(batch);
    gpsti_device_work* const work = first->work;
    work->timed = work->on_host || (gpsti_timing_takes(&first->pipeline->counts.timing, &work->number) &&
                                    gpsti_graphs_leave_timed(first->pipeline, step, work->number));
    work->n_recorded = 0;
    GPSTI_TRY(gpsti_device_record(work));
    for (uint32_t i = 0; i < batch->n; i++)
        GPSTI_TRY(gpsti_device_upload(batch->items[i], step));
    if (work->copies)
        GPSTI_TRY(gpsti_device_record(work));
    GPSTI_TRY(gpsti_graphs_begin(first, step));
    gpst_result result = GPST_OK;
    for (uint32_t s = 0; s < step->n_stages && !GPST_FAILED(result); s++) {
        first->stage_at = work->stream->commands.tag = step->first_stage + s;
        result = gpsti_launch_stage(batch, first->stage_at, worker_index, reason);
        if (!GPST_FAILED(result))
            result = gpsti_device_record(work);
    }
    GPSTI_TRY(gpsti_graphs_end(first, result));
    first->stage_at = step->first_stage; /* of what the device says later nobody knows the stage */
    for (uint32_t i = 0; i < batch->n; i++)
        GPSTI_TRY(gpsti_device_download(batch->items[i], step));
    return work->copies ? gpsti_device_record(work) : GPST_OK;
}

/* What the step reads is there, and what a single WARP writes has a shape. */
GPSTI_PRIVATE gpst_result gpsti_device_prepare(gpsti_item* item, const gpsti_step* step) {
    const bool given_back = item->given.has_frame && item->given.release && !item->given.borrowed;
    GPSTI_FAIL_IF((step->needs & GPST_SET(0)) && given_back, GPST_ERROR_DEVICE_LOST,
                  "what the device had is lost, and the lent frame that it was made of was given back");
    GPSTI_FAIL_IF((step->needs & GPST_SET(0)) && item->sets[0].n == 0, GPST_ERROR_STATE,
                  "the item has no picture in set 0: a stage before must call gpst_task_set_picture");
    return step->one_warp ? gpsti_launch_shape(item, step, step->first_stage) : GPST_OK;
}

/* On the device's thread. */
GPSTI_PRIVATE void gpsti_device_done(void* user_data, gpst_result result) {
    gpsti_batch* const batch = (gpsti_batch*)user_data;
    gpsti_copy_text(batch->item->device_reason, sizeof batch->item->device_reason,
                    GPST_FAILED(result) ? gpst_last_reason() : "");
    const gpsti_locked locked = gpsti_lock(batch->item->pipeline->context);
    gpsti_batch_return(locked, batch, result);
    gpsti_unlock(locked);
}

GPSTI_PRIVATE void gpsti_device_enter(gpsti_run* run, const gpsti_batch* batch, gpsti_item_state state) {
    const gpsti_locked locked = gpsti_run_lock(run);
    for (uint32_t i = 0; i < batch->n; i++)
        gpsti_item_enter(locked, batch->items[i], state);
    gpsti_unlock(locked);
}

/* Waits for the submission in a plain loop and on the host; else the device calls done. */
GPSTI_PRIVATE gpst_result gpsti_device_start(gpsti_run* run, gpsti_batch* batch, bool* parked, char* reason) {
    const gpsti_step* const step = gpsti_batch_step(batch);
    gpsti_item* const first = batch->item;
    gpsti_device_work* const work = first->work;
    work->n_items = batch->n;
    work->copies = work->is_short = false;
    for (uint32_t i = 0; i < batch->n; i++) {
        batch->items[i]->work = work;
        batch->items[i]->stage_at = step->first_stage;
        GPSTI_TRY(gpsti_device_prepare(batch->items[i], step));
    }
    GPSTI_TRY(gpsti_device_work_prepare(first, work));
    for (uint32_t i = 0; i < batch->n; i++)
        GPSTI_TRY(gpsti_device_place(batch->items[i], step));
    GPSTI_TRY(gpsti_device_submit(batch, run->worker_index, reason));
    if (work->on_host || first->plain)
        return gpsti_stream_wait_idle(work->stream);
    gpsti_device_enter(run, batch, GPSTI_ITEM_DEVICE); /* the batch may be back, and elsewhere, before notify returns */
    const gpst_result result = gpsti_stream_notify(work->stream, gpsti_device_done, batch);
    *parked = !GPST_FAILED(result);
    if (!*parked)
        gpsti_device_enter(run, batch, GPSTI_ITEM_RUNS);
    return result;
}

/* ---- what came of it ---------------------------------------------------------------------------------- */

/* A failed submission: waits until the device touches the items' memory no more, and forgets what it was to make. Where
   memory was short the items give back what is not in use, or each might hold a part and none enough. */
GPSTI_PRIVATE void gpsti_device_undo(const gpsti_batch* batch, bool is_short) {
    const gpsti_step* const step = gpsti_batch_step(batch);
    gpsti_item* const first = batch->item;
    if (first->work->stream) /* what was submitted before the failure */
        (void)gpsti_stream_wait_idle(first->work->stream);
    for (uint32_t i = 0; i < batch->n; i++) {
        gpsti_item* const item = batch->items[i];
        gpsti_sets_forget(item, step->writes);
        if (item->state_changed)
            gpsti_state_forget(item, step);
        item->state_changed = false;
        for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
            if (item->uploaded & GPST_SET(k))
                item->sets[k].valid &= ~GPSTI_ON_DEVICE(0);
            for (uint32_t p = 0;
                 is_short && !gpsti_set_is_at(item, k, GPSTI_ON_DEVICE(0)) && p < item->pipeline->plan.sets[k].capacity;
                 p++)
                gpsti_item_free_device(item, &item->sets[k].device[p]);
        }
        item->uploaded = 0;
    }
}

/* The items of a batch that failed: each alone; later; by the cores; or they have failed. */
GPSTI_PRIVATE gpsti_outcome gpsti_device_failed(const gpsti_batch* batch, gpst_result result, const char* why) {
    gpsti_item* const first = batch->item;
    gpst_pipeline* const pipeline = first->pipeline;
    const gpsti_step* const step = gpsti_batch_step(batch);
    const bool is_memory = result == GPST_ERROR_DEVICE_MEMORY || result == GPST_ERROR_BUDGET;
    const bool is_short = is_memory && first->work->is_short && !first->on_cpu;
    char reason[GPST_REASON_BYTES];
    gpsti_copy_text(reason, sizeof reason, why);
    gpsti_device_undo(batch, is_memory);
    bool yields = false; /* it was the host's memory */
    for (uint32_t i = 0; i < batch->n; i++) {
        yields = yields || batch->items[i]->yields;
        batch->items[i]->work = NULL;
        if (!is_short || batch->n > 1 || batch->items[i]->denied)
            batch->items[i]->wants[GPSTI_OF_DEVICE] = 0;
    }
    if (batch->n > 1) {
        const gpsti_locked locked = gpsti_lock(pipeline->context);
        pipeline->counts.n_taken_apart += is_short ? 0 : 1;
        if (!is_short)
            gpsti_copy_text(pipeline->counts.apart_reason, sizeof pipeline->counts.apart_reason, reason);
        for (uint32_t i = 0; i < batch->n; i++)
            batch->items[i]->single = true; /* where memory is short each waits for its own */
        gpsti_unlock(locked);
        return GPSTI_AGAIN;
    }
    if (yields || (is_short && !first->denied))
        return GPSTI_AGAIN;
    const bool leaves = gpsti_item_leaves_device(first, result, reason);
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    if (leaves && first->denied) {
        pipeline->memory.n_denied++;
        gpsti_grant_denied(locked, pipeline);
    }
    first->denied = false;
    if (leaves) {
        gpsti_unlock(locked);
        return GPSTI_OTHER_FORM;
    }
    gpsti_clock_add(&pipeline->counts.clocks[step->first_clock + 1], 0, 0, 0, true);
    gpsti_item_fail(first, result, pipeline->plan.stages[first->stage_at].name, reason);
    gpsti_unlock(locked);
    return GPSTI_DONE;
}

GPSTI_PRIVATE gpsti_outcome gpsti_device_finish(gpsti_run* run, gpsti_batch* batch, gpst_result result,
                                                const char* reason) {
    const gpsti_step* const step = gpsti_batch_step(batch);
    gpsti_outcome outcome = GPSTI_DONE;
    gpsti_device_read_times(batch->item);
    if (GPST_FAILED(result))
        outcome = gpsti_device_failed(batch, result, reason);
    const gpsti_locked locked = gpsti_run_lock(run);
    run->pipeline->counts.n_submissions++;
    run->pipeline->counts.n_submitted += batch->n;
    if (!GPST_FAILED(result) && !batch->item->on_cpu)
        gpsti_grant_served(locked, run->pipeline);
    for (uint32_t i = 0; i < batch->n && !GPST_FAILED(result); i++) {
        gpsti_device_count(batch->items[i], step);
        batch->items[i]->work = NULL;
        batch->items[i]->denied = batch->items[i]->widened = false;
    }
    gpsti_unlock(locked);
    for (uint32_t i = 0; i < batch->n && !GPST_FAILED(result); i++)
        gpsti_grant_settle(batch->items[i], step->index + 1);
    return outcome;
}

/* ---- the kind --------------------------------------------------------------------------------------------- */

/* A kernel on the CPU has every core only in the plain loop. Each worker would have an OpenMP team of its own, whose
   idle threads spin and take the cores from the other workers: a 60 fps stream took 4.4 ms (p50) instead of 1.2. */
GPSTI_PRIVATE uint32_t gpsti_device_kernel_threads(const gpst_pipeline* pipeline, const gpsti_step* step) {
    const gpsti_plan* const plan = &pipeline->plan;
    uint64_t n_pixels = 0;
    if (plan->kernel_threads <= 1 || plan->desc.mode == GPST_RUN_PLAIN_INSIDE)
        return plan->kernel_threads;
    for (uint32_t s = 0; s < step->n_stages; s++) {
        const gpst_warp* const warp = plan->stages[step->first_stage + s].desc.warp;
        gpst_image shape;
        if (!warp)
            continue;
        gpst_warp_query_output(warp, &shape);
        n_pixels += (uint64_t)shape.width * shape.height * gpst_warp_n_outputs(warp);
    }
    return n_pixels >= GPSTI_DEVICE_ALL_CORES_PIXELS && gpsti_is_plain(pipeline) ? plan->kernel_threads : 1;
}

/* What the cores compute from must be on the host, and what the host reads of a device's. */
GPSTI_PRIVATE gpsti_outcome gpsti_device_fetch(gpsti_batch* batch) {
    const gpsti_step* const step = gpsti_batch_step(batch);
    gpsti_outcome outcome = GPSTI_DONE;
    for (uint32_t i = 0; i < batch->n; i++) {
        gpsti_item* const item = batch->items[i];
        gpst_result result = GPST_OK;
        if (gpsti_item_fetch(item, step->lists | (item->on_cpu ? step->needs : 0), &result) == GPSTI_AGAIN)
            outcome = GPSTI_AGAIN;
        else if (GPST_FAILED(result)) { /* the others go without it */
            gpsti_batch_fail(&item->batch, result, gpst_last_reason());
            outcome = batch->n > 1 ? GPSTI_AGAIN : outcome;
        }
    }
    return outcome;
}

/* Said here, where no lock is held: why the device could not. */
GPSTI_PRIVATE void gpsti_device_log(gpsti_item* item) {
    if (item->device_reason[0] && item->on_cpu)
        GPSTI_LOG(&item->pipeline->context->host, GPST_LOG_WARNING, item->shown.index,
                  "device work done again on the CPU: %s", item->device_reason);
    item->device_reason[0] = '\0';
}

/* Where it is not granted to all of them each waits for its own. */
GPSTI_PRIVATE bool gpsti_device_has_memory(const gpsti_batch* batch) {
    bool has = true;
    for (uint32_t i = 0; i < batch->n; i++)
        has = gpsti_grant_prepare_device(batch->items[i]) && has;
    for (uint32_t i = 0; !has && batch->n > 1 && i < batch->n; i++)
        batch->items[i]->single = true;
    return has;
}

GPSTI_PRIVATE gpsti_outcome gpsti_device_run(gpsti_run* run, gpsti_batch* batch) {
    gpsti_item* const first = batch->item;
    char reason[GPST_REASON_BYTES];
    gpsti_service service;
    bool parked = false;
    const gpsti_outcome fetched = gpsti_device_fetch(batch);
    if (fetched != GPSTI_DONE || gpsti_item_has_failed(first))
        return fetched;
    if (!gpsti_device_has_memory(batch))
        return GPSTI_AGAIN;
    gpsti_device_log(first);
    for (uint32_t i = 0; i < batch->n; i++) {
        batch->items[i]->uploaded = 0;
        batch->items[i]->state_changed = false;
        batch->items[i]->wants[GPSTI_OF_DEVICE] = 0;
    }
    first->work = &first->works[first->on_cpu ? 1 : 0];
    first->plain = gpsti_is_plain(run->pipeline);
    first->exec.n_threads = gpsti_device_kernel_threads(run->pipeline, gpsti_batch_step(batch));
    reason[0] = '\0';
    gpsti_service_begin(&service, batch);
    service.n_threads = first->exec.n_threads;
    const gpst_result result = gpsti_device_start(run, batch, &parked, reason);
    gpsti_service_end(&service, GPST_OK);
    gpsti_run_keep(run, &service);
    if (parked)
        return GPSTI_PARKED;
    if (GPST_FAILED(result) && !reason[0])
        gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
    return gpsti_device_finish(run, batch, result, reason);
}

GPSTI_PRIVATE gpsti_outcome gpsti_device_end(gpsti_run* run, gpsti_batch* batch) {
    char reason[GPST_REASON_BYTES];
    gpsti_copy_text(reason, sizeof reason, batch->item->device_reason);
    batch->item->device_reason[0] = '\0';
    return gpsti_device_finish(run, batch, batch->result, reason);
}

/* CPU time of device work: the stages' where the host's cores compute them, else the submission's. */
GPSTI_PRIVATE bool gpsti_device_count_service(gpst_pipeline* pipeline, const gpsti_service* service) {
    const gpsti_step* const step = service->step;
    const bool on_host = pipeline->plan.device_on_host;
    const int64_t busy_ns = service->end_ns - service->start_ns, n_threads = (int64_t)service->n_threads;
    gpsti_counts* const counts = &pipeline->counts;
    counts->kernel_cpu_ns += busy_ns * (n_threads - 1);
    if (!on_host)
        gpsti_clock_add(&counts->submit_clock, busy_ns, 0, 0, false);
    for (uint32_t s = 0; service->cpu_ns >= 0 && s < (on_host ? step->n_stages : 1); s++)
        gpsti_clock_add_cpu(on_host ? &counts->clocks[step->first_clock + 1 + s] : &counts->submit_clock,
                            service->cpu_ns * n_threads, busy_ns);
    return false;
}

/* An item that is the cores' goes alone, and the device's limits are not its. */
GPSTI_PRIVATE gpsti_next gpsti_device_next(gpsti_locked locked, const gpsti_step* step, const gpsti_item* head) {
    const gpsti_queue* const queue = &step->queue;
    const gpst_pipeline* const pipeline = head->pipeline;
    const bool on_cpu = head->on_cpu || pipeline->signals.device_lost;
    gpsti_next next = {on_cpu || head->single || pipeline->memory.cores_left > 0 ? 1 : step->batch, true, !on_cpu};
    (void)locked;
    const bool full = (step->streams > 0 && queue->on_device >= step->streams) ||
                      (step->concurrency > 0 && queue->running >= step->concurrency);
    if (next.on_device && full)
        next.most = 0;
    return next;
}

GPSTI_PRIVATE bool gpsti_device_goes_along(const gpsti_item* item) { return !item->on_cpu; }

/* After an item for which the device had no room the next ones go to the cores at once. */
GPSTI_PRIVATE void gpsti_device_formed(gpsti_locked locked, gpsti_batch* batch, bool on_device) {
    gpst_pipeline* const pipeline = batch->item->pipeline;
    gpsti_item* const first = batch->item;
    (void)on_device;
    if (batch->n > 1 || first->on_cpu || pipeline->context->require_backend || pipeline->plan.device_on_host)
        return;
    first->on_cpu = pipeline->signals.device_lost || gpsti_grant_skips_device(locked, pipeline);
    pipeline->counts.device_fallbacks += first->on_cpu && !pipeline->signals.device_lost ? 1 : 0;
}

GPSTI_PRIVATE gpst_result gpsti_device_check_desc(const gpst_pipeline_desc* desc, uint32_t s) {
    const gpst_stage_desc* const stage = &desc->stages[s];
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_DEVICE && !stage->func && !stage->batch_func, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].func=NULL: required for HOST, DEVICE and ENCODE", s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_WARP && !stage->warp, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].warp=NULL: required for WARP", s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_WARP && stage->warp->desc.rois_in_place, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].warp: rois_in_place is for gpst_warp_launch: use list_per_item", s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_MASK && !stage->mask, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].mask=NULL: required for MASK", s);
    if (stage->kind == GPST_STAGE_MASK) {
        char function[64];
        gpsti_format(function, sizeof function, "gpst_pipeline_create: stages[%u].mask", s);
        GPSTI_TRY(gpsti_mask_desc_rules(stage->mask, function));
    }
    return GPST_OK;
}

/* Threads that submit to a driver side by side wait for each other in it: one after the other is faster
   (docs/benchmarks/gpu-engine.md). A DEVICE stage's function may wait for what another item does: it has no limit. */
GPSTI_PRIVATE void gpsti_device_plan(const gpst_pipeline* pipeline, gpsti_step* step, bool asynchronous) {
    const gpsti_stage* const stages = &pipeline->plan.stages[step->first_stage];
    bool is_ours = true;
    for (uint32_t s = 0; s < step->n_stages; s++)
        is_ours = is_ours && stages[s].desc.kind != GPST_STAGE_DEVICE;
    step->concurrency = !asynchronous ? gpsti_step_depth(&pipeline->plan, step) : is_ours ? 1 : 0;
    step->repeatable = !step->ordered; /* DEVICE's function, too: the cores do it again where the device was lost */
    step->gated = step->gated || asynchronous;
}

GPSTI_INTERN const gpsti_step_kind* gpsti_step_device(void) {
    static const gpsti_step_kind kind = {
        GPST_RESOURCE_GPU,
        /* joins */ true,
        /* calls */ false,  gpsti_device_check_desc, gpsti_device_plan,
        /* queues */ NULL,  gpsti_device_next,       gpsti_device_goes_along, gpsti_device_formed,
        /* run_all */ NULL, gpsti_device_run,        gpsti_device_end,        gpsti_device_count_service};
    return &kind;
}

/* ---- what a warp keeps on the device ------------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_constants_copy(gpst_device* device, void* to, const void* from, size_t bytes) {
    gpst_stream* stream = NULL;
    GPSTI_TRY(gpsti_stream_make(device, &stream));
    gpst_result result = gpsti_stream_copy(stream, to, from, bytes);
    if (!GPST_FAILED(result))
        result = gpsti_stream_wait_idle(stream);
    gpst_stream_destroy(stream);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_constants_make(gpst_pipeline* pipeline, gpsti_stage* stage) {
    gpst_context* const context = pipeline->context;
    gpst_device* const device = &context->public_device;
    const void *mask = NULL, *table = NULL;
    ptrdiff_t mask_data = 0; /* from the mask's lowest byte: bottom-up its first row is the last in memory */
    size_t mask_bytes = 0, table_bytes = 0, bytes = 0;
    gpsti_warp_query_constants(stage->desc.warp, &mask, &mask_bytes, &mask_data, &table, &table_bytes);
    if (mask_bytes + table_bytes == 0)
        return GPST_OK;
    GPSTI_FAIL_IF(!gpsti_size_round_up(mask_bytes, 64, &bytes) || !gpsti_size_add(bytes, table_bytes, &bytes),
                  GPST_ERROR_OVERFLOW, "gpst_pipeline_create: the warp's mask and table do not fit in memory");
    GPSTI_TRY(gpsti_memory_acquire_device(context, bytes, "warp", NULL, &stage->constants));
    uint8_t* const table_copy = (uint8_t*)stage->constants.data + (bytes - table_bytes);
    if (mask_bytes > 0)
        GPSTI_TRY(gpsti_constants_copy(device, stage->constants.data, mask, mask_bytes));
    if (table_bytes > 0)
        GPSTI_TRY(gpsti_constants_copy(device, table_copy, table, table_bytes));
    stage->mask = mask_bytes > 0 ? (const uint8_t*)stage->constants.data + mask_data : NULL;
    stage->table = table_bytes > 0 ? table_copy : NULL;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_constants_load(gpst_pipeline* pipeline, gpsti_stage* stage) {
    if (!stage->desc.warp)
        return;
    stage->constants_result = gpsti_constants_make(pipeline, stage);
    if (GPST_FAILED(stage->constants_result))
        gpsti_copy_text(stage->constants_reason, sizeof stage->constants_reason, gpst_last_reason());
}

GPSTI_INTERN void gpsti_constants_free(gpst_pipeline* pipeline, gpsti_stage* stage) {
    if (stage->constants.data)
        gpsti_memory_release(pipeline->context, &stage->constants);
}
