/* core/pipeline/inline.c -- a thread runs a job inline, step after step and without the lock, until the job must wait
   for a file, a device, its turn or a batch, or its item ends. The plain loop is the same function; there nothing
   is handed to another thread. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#define GPSTI_INLINE_ALL_CORES_PIXELS 262144 /* that kernels write: fewer are done before other threads are there */

GPSTI_INTERN void gpsti_run_lock(gpsti_run* run) {
    gpsti_mutex_lock(&run->pipeline->context->scheduler->mutex);
    for (uint32_t i = 0; i < run->n; i++)
        gpsti_account_service(run->pipeline, &run->services[i]);
    run->n = 0;
}

GPSTI_INTERN void gpsti_run_unlock(gpsti_run* run) { gpsti_mutex_unlock(&run->pipeline->context->scheduler->mutex); }

GPSTI_INTERN void gpsti_run_keep(gpsti_run* run, const gpsti_service* service) {
    if (run->n == GPSTI_RUN_SERVICES) {
        gpsti_run_lock(run);
        gpsti_run_unlock(run);
    }
    run->services[run->n++] = *service;
}

GPSTI_INTERN gpsti_step* gpsti_inline_step_of(const gpsti_job* job) {
    return &job->item->pipeline->plan.steps[job->step];
}

/* Parts of one item may fail side by side: the lock decides which failure is the item's. */
GPSTI_INTERN void gpsti_inline_fail(gpsti_job* job, gpst_result result, const char* reason) {
    gpst_pipeline* const pipeline = job->item->pipeline;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    gpsti_item_fail(job->item, result, gpsti_step_name(pipeline, gpsti_inline_step_of(job)), reason);
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
}

/* ---- from step to step ------------------------------------------------------------------------ */

/* Queues the parts that no thread has taken, for idle workers. Locked. */
GPSTI_INTERN void gpsti_inline_offer_parts(gpsti_item* item) {
    while (item->next_part < item->n_split)
        gpsti_flight_send(&item->parts[item->next_part++].job, item->job.step);
}

/* The last step that the parts go through, when they are split at this one. */
GPSTI_PRIVATE uint32_t gpsti_inline_last_chained(const gpst_pipeline* pipeline, uint32_t step) {
    while (pipeline->plan.steps[step + 1].chained)
        step++;
    return step;
}

/* So many parts go through the steps; the sets that these write have as many pictures. */
GPSTI_PRIVATE uint32_t gpsti_inline_count_parts(gpsti_item* item, const gpsti_step* first, const gpsti_step* last) {
    if (first->kind == GPSTI_STEP_WRITE)
        return gpsti_item_n_written(item);
    const uint32_t n = item->sets[gpsti_set_of(first->reads)].n;
    for (const gpsti_step* step = first; step <= last; step++) {
        const gpst_stage_desc* const stage = &item->pipeline->plan.stages[step->first_stage].desc;
        if (stage->kind == GPST_STAGE_ENCODE && step->kind == GPSTI_STEP_HOST && n > 0)
            item->encoder = gpsti_codec_encoder(stage->encode);
        for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
            if (step->writes & GPST_SET(k)) {
                gpsti_item_set_n(item, k, n);
                item->sets[k].writer = step->first_stage + 1;
                item->sets[k].host_valid = true;
            }
    }
    return n;
}

/* The item's thread takes the first part; in a plain loop all of them, each through all its steps while the bytes are
   in the cache. An item without pictures has no parts, but it may have files. */
GPSTI_PRIVATE gpsti_job* gpsti_inline_split(gpsti_run* run, gpsti_item* item) {
    const gpst_pipeline* const pipeline = run->pipeline;
    const uint32_t first = item->job.step, last = gpsti_inline_last_chained(pipeline, first);
    const bool encoded = gpsti_inline_encode(run, item, &pipeline->plan.steps[first]);
    char reason[GPST_REASON_BYTES];
    const gpst_result result =
        encoded ? GPST_OK : gpsti_offload_fetch(item, pipeline->plan.steps[first].reads, run->worker_index, reason);
    if (GPST_FAILED(result))
        gpsti_inline_fail(&item->job, result, reason);
    const bool ok = !gpsti_item_has_failed(item);
    uint32_t n =
        ok && !encoded ? gpsti_inline_count_parts(item, &pipeline->plan.steps[first], &pipeline->plan.steps[last]) : 0;
    if (n == 0 && ok && pipeline->plan.steps[last].kind == GPSTI_STEP_WRITE) {
        item->job.step = last;
        n = gpsti_item_n_written(item);
    }
    item->job.ready_ns = 0;
    if (n == 0) {
        item->job.step = gpsti_flight_next_step(item, last);
        return &item->job;
    }
    gpsti_run_lock(run);
    item->pending = item->n_split = n;
    item->next_part = 1;
    item->parts[0].job.step = item->job.step;
    item->parts[0].job.ready_ns = 0;
    if (!gpsti_flight_is_plain(pipeline))
        gpsti_inline_offer_parts(item);
    gpsti_run_unlock(run);
    return &item->parts[0].job;
}

/* The last part has passed the steps: where the item goes on. Locked. */
GPSTI_PRIVATE uint32_t gpsti_inline_after_parts(const gpsti_item* item) {
    return gpsti_flight_next_step(item, gpsti_inline_last_chained(item->pipeline, item->job.step));
}

/* A part has passed its steps. Gives the next part, or after the last one the item itself. */
GPSTI_PRIVATE gpsti_job* gpsti_inline_join(gpsti_run* run, gpsti_item* item) {
    gpsti_job* next = NULL;
    gpsti_run_lock(run);
    if (--item->pending == 0) {
        next = &item->job;
        next->step = gpsti_inline_after_parts(item);
        next->ready_ns = 0;
    } else if (item->next_part < item->n_split) {
        next = &item->parts[item->next_part++].job;
        next->step = item->job.step;
        next->ready_ns = 0;
        if (!gpsti_flight_is_plain(run->pipeline))
            gpsti_inline_offer_parts(item);
    }
    gpsti_run_unlock(run);
    return next;
}

GPSTI_INTERN gpsti_job* gpsti_inline_next(gpsti_run* run, gpsti_job* job) {
    const uint32_t to = gpsti_flight_next_step(job->item, job->step);
    if (job != &job->item->job && (to != job->step + 1 || !run->pipeline->plan.steps[to].chained))
        return gpsti_inline_join(run, job->item);
    job->step = to;
    job->ready_ns = 0;
    return job;
}

GPSTI_PRIVATE bool gpsti_inline_has_failed(gpsti_job* job, const gpsti_step* step) {
    if (step->kind == GPSTI_STEP_FINISH)
        return false;
    if (gpsti_a32_load(&job->item->pipeline->flow.cancel) != 0 && !gpsti_item_has_failed(job->item))
        gpsti_inline_fail(job, GPST_ERROR_CANCELLED, "cancelled");
    return gpsti_item_has_failed(job->item);
}

/* The item has failed because other items have the memory: it begins again instead of ending. */
GPSTI_PRIVATE gpsti_job* gpsti_inline_restart(gpsti_run* run, gpsti_job* job, gpsti_step* finish) {
    gpsti_run_lock(run);
    finish->running -= run->entered ? 1 : 0; /* the item has not ended yet */
    run->entered = false;
    gpsti_flight_restart(job->item);
    gpsti_scheduler_wake(run->pipeline->context->scheduler);
    gpsti_run_unlock(run);
    return NULL;
}

/* Adds items that are ready to the batch, up to so many. Locked. */
GPSTI_PRIVATE void gpsti_inline_gather(gpsti_step* step, gpsti_item* first, uint32_t most) {
    gpsti_item* last = first;
    if (step->kind == GPSTI_STEP_OFFLOAD) {
        step->on_device++;
        first->on_cpu = first->on_cpu || first->pipeline->flow.device_lost; /* of those that began before, too */
        gpsti_shortage_skip(first);
    }
    first->next_in_batch = NULL;
    first->batch_ns = gpsti_now_ns();
    first->device_wait_ns = first->batch_ns - first->job.ready_ns;
    for (uint32_t n = 1; n < most && !first->on_cpu && !first->single; n++) {
        gpsti_job* const job = gpsti_queue_take_next_in_batch(step);
        if (!job)
            return;
        last->next_in_batch = job->item;
        last = job->item;
        last->next_in_batch = NULL;
        last->started = true;
        last->device_wait_ns = gpsti_now_ns() - job->ready_ns;
    }
}

/* The next job that may run in this step, or NULL. Locked. */
GPSTI_INTERN gpsti_job* gpsti_inline_take(gpsti_run* run, gpsti_step* step) {
    const uint32_t n_running = step->running;
    uint32_t most = step->kind == GPSTI_STEP_OFFLOAD
                        ? gpsti_shortage_limit(step->batch, run->pipeline->memory.shortage.batch_most)
                        : step->batch;
    if (step->times && gpsti_queue_has_runnable(step))
        most = gpsti_queue_meet_deadlines(step);
    gpsti_job* const job = most > 0 ? gpsti_queue_take(step) : NULL;
    run->entered = step->running != n_running;
    if (run->entered && (step->kind == GPSTI_STEP_OFFLOAD || (step->kind == GPSTI_STEP_HOST && step->batch_most > 0)))
        gpsti_inline_gather(step, job->item, most);
    if (run->entered && step->kind == GPSTI_STEP_DECODE)
        gpsti_decode_gather(step, job->item);
    if (job)
        job->item->started = true;
    return job;
}

GPSTI_PRIVATE gpsti_job* gpsti_inline_enter(gpsti_run* run, gpsti_job* job) {
    gpsti_step* const step = gpsti_inline_step_of(job);
    gpsti_run_lock(run);
    gpsti_queue_put(step, job);
    if (job != &job->item->job && !gpsti_flight_is_plain(run->pipeline)) /* the item's other parts need not wait */
        gpsti_inline_offer_parts(job->item);
    gpsti_flight_tell_dropped(run->pipeline);
    job = gpsti_inline_take(run, step);
    gpsti_run_unlock(run);
    return job;
}

GPSTI_INTERN void gpsti_inline_leave(gpsti_run* run, gpsti_step* step, gpsti_job* job) {
    if (!run->entered)
        return;
    run->entered = false;
    step->running--;
    if (step->kind != GPSTI_STEP_OFFLOAD) /* else when the device is done */
        gpsti_queue_pass(step, job->item);
    gpsti_scheduler_wake(run->pipeline->context->scheduler);
}

/* ---- the steps: each gives the job to run next on this thread, or NULL where the job was parked ---- */

GPSTI_INTERN gpsti_job* gpsti_inline_host(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    char reason[GPST_REASON_BYTES];
    gpsti_service service;
    gpsti_service_begin(&service, step, job);
    gpst_result result = GPST_OK;
    if (job == &job->item->job)
        result = gpsti_offload_fetch(job->item, step->reads, run->worker_index, reason);
    if (!GPST_FAILED(result))
        result = gpsti_call_stage(job->item, step->first_stage, job->part, run->worker_index, reason);
    gpsti_service_end(&service, result);
    gpsti_run_keep(run, &service);
    if (GPSTI_ENDS_ITEM(result))
        gpsti_inline_fail(job, result, reason);
    if (run->entered) {
        gpsti_run_lock(run);
        gpsti_inline_leave(run, step, job);
        gpsti_run_unlock(run);
    }
    return gpsti_inline_next(run, job);
}

/* One item's device work has ended, well or not. Gives the step where the item goes on. Locked. */
GPSTI_PRIVATE uint32_t gpsti_inline_end_offload(gpsti_item* item, gpst_result result, const char* reason) {
    gpst_pipeline* const pipeline = item->pipeline;
    const gpsti_step* const step = gpsti_inline_step_of(&item->job);
    const bool again = GPST_FAILED(result) && gpsti_offload_fall_back(item, result, reason);
    if (!GPST_FAILED(result))
        gpsti_offload_account(item, step, item->device_wait_ns);
    item->work = NULL;
    if (again)
        return item->job.step;
    if (GPST_FAILED(result)) {
        gpsti_clock_add(&pipeline->counts.clocks[step->first_clock + 1], 0, 0, 0, true);
        gpsti_item_fail(item, result, pipeline->plan.stages[item->stage_at].name, reason);
    }
    return gpsti_flight_next_step(item, item->job.step);
}

/* The batch failed and we cannot tell which item caused it. Resubmit each item alone. Locked. */
GPSTI_PRIVATE uint32_t gpsti_inline_retry_single(gpsti_item* item) {
    item->work = NULL;
    item->single = true;
    item->device_reason[0] = '\0';
    gpsti_offload_undo(item, gpsti_inline_step_of(&item->job));
    return item->job.step;
}

/* The device has too little memory: it is tried again, in smaller batches, or when other items have gone on. False: the
   CPU is left. */
GPSTI_PRIVATE bool gpsti_inline_find_room(gpsti_item* first, const char* reason) {
    const gpsti_relief relief = gpsti_shortage_choose(first, reason);
    if (relief == GPSTI_RELIEF_CPU)
        return false;
    for (gpsti_item *item = first, *next = NULL; item; item = next) {
        next = item->next_in_batch;
        item->next_in_batch = NULL;
        item->work = NULL;
        item->device_reason[0] = '\0';
        if (relief == GPSTI_RELIEF_SLOTS)
            gpsti_queue_park_short(item);
        else
            gpsti_flight_send(&item->job, item->job.step);
    }
    return true;
}

/* The device is done with a batch, whose first item is `first`. Gives that item's job, or NULL where it waits; queues
   the others. Locked. */
GPSTI_PRIVATE gpsti_job* gpsti_inline_end_submission(gpsti_item* first, gpst_result result, const char* reason) {
    gpst_pipeline* const pipeline = first->pipeline;
    const bool is_short = GPST_FAILED(result) && gpsti_shortage_is(first, result);
    const bool apart = GPST_FAILED(result) && first->next_in_batch;
    char why[GPST_REASON_BYTES];
    if (!GPST_FAILED(result))
        (void)gpsti_queue_wake_short(pipeline, UINT64_MAX);
    if (is_short && gpsti_inline_find_room(first, reason))
        return NULL;
    if (!GPST_FAILED(result) && !first->on_cpu)
        (void)gpsti_shortage_succeed(&pipeline->memory.shortage, pipeline->items.n_slots,
                                     gpsti_inline_step_of(&first->job)->batch);
    gpsti_copy_text(why, sizeof why, reason);
    uint32_t n_items = 0;
    for (const gpsti_item* item = first; item; item = item->next_in_batch)
        n_items++;
    if (!GPST_FAILED(result))
        gpsti_queue_learn(gpsti_inline_step_of(&first->job), n_items, first->batch_ns);
    pipeline->counts.n_submissions++;
    pipeline->counts.n_taken_apart += apart ? 1 : 0;
    if (apart)
        gpsti_copy_text(pipeline->counts.apart_reason, sizeof pipeline->counts.apart_reason, why);
    for (gpsti_item *item = first, *next = NULL; item; item = next) {
        next = item->next_in_batch;
        item->next_in_batch = NULL;
        pipeline->counts.n_submitted++;
        const gpsti_step* const step = gpsti_inline_step_of(&item->job);
        const uint32_t to = apart ? gpsti_inline_retry_single(item) : gpsti_inline_end_offload(item, result, why);
        if (to != item->job.step)
            gpsti_queue_pass(step, item);
        if (item != first)
            gpsti_flight_send(&item->job, to);
        else
            item->job.step = to;
    }
    first->job.ready_ns = gpsti_now_ns();
    return &first->job;
}

/* Called on the device's thread, which may not call the device: a worker continues. */
GPSTI_PRIVATE void gpsti_inline_device_done(void* user_data, gpst_result result) {
    gpsti_item* const item = (gpsti_item*)user_data;
    gpsti_scheduler* const scheduler = item->pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    item->device_done = true;
    item->device_result = result;
    gpsti_copy_text(item->device_reason, sizeof item->device_reason, GPST_FAILED(result) ? gpst_last_reason() : "");
    gpsti_flight_send(&item->job, item->job.step);
    gpsti_mutex_unlock(&scheduler->mutex);
}

GPSTI_PRIVATE gpsti_job* gpsti_inline_after_device(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    job->item->device_done = false;
    gpsti_offload_read_times(job->item);
    gpsti_run_lock(run);
    step->on_device--;
    job = gpsti_inline_end_submission(job->item, job->item->device_result, job->item->device_reason);
    gpsti_scheduler_wake(run->pipeline->context->scheduler);
    gpsti_run_unlock(run);
    return job;
}

/* A kernel on the CPU has every core only in the plain loop. Each worker would have an OpenMP team of its own, whose
   idle threads spin and take the cores from the other workers: a 60 fps stream took 4.4 ms (p50) instead of 1.2. */
GPSTI_PRIVATE uint32_t gpsti_inline_kernel_threads(const gpst_pipeline* pipeline, const gpsti_step* step) {
    uint64_t n_pixels = 0;
    if (pipeline->plan.kernel_threads <= 1 || pipeline->plan.desc.mode == GPST_RUN_PLAIN_INSIDE)
        return pipeline->plan.kernel_threads;
    for (uint32_t s = 0; s < step->n_stages; s++) {
        const gpst_warp* const warp = pipeline->plan.stages[step->first_stage + s].desc.warp;
        gpst_image shape;
        if (!warp)
            continue;
        gpst_warp_query_output(warp, &shape);
        n_pixels += (uint64_t)shape.width * shape.height * gpst_warp_n_outputs(warp);
    }
    return n_pixels >= GPSTI_INLINE_ALL_CORES_PIXELS && gpsti_flight_is_plain(pipeline) ? pipeline->plan.kernel_threads
                                                                                        : 1;
}

GPSTI_PRIVATE gpsti_job* gpsti_inline_offload(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpsti_item* const item = job->item;
    char reason[GPST_REASON_BYTES];
    gpsti_service service;
    bool finished = false;
    const bool entered = run->entered; /* the batch counts in step->on_device */
    item->plain = gpsti_flight_is_plain(run->pipeline);
    item->exec.n_threads = gpsti_inline_kernel_threads(run->pipeline, step);
    gpsti_service_begin(&service, step, job);
    service.n_threads = item->exec.n_threads;
    (void)gpsti_a32_add(&run->pipeline->flow.n_submitting, entered ? 1 : 0);
    const gpst_result result =
        gpsti_offload_run(item, step, run->worker_index, gpsti_inline_device_done, &finished, reason);
    gpsti_service_end(&service, GPST_OK);
    gpsti_run_keep(run, &service);
    gpsti_run_lock(run);
    (void)gpsti_a32_add(&run->pipeline->flow.n_submitting, entered ? UINT32_MAX : 0);
    step->on_device -= entered && finished ? 1 : 0;
    gpsti_inline_leave(run, step, job);
    /* If it is not finished, another thread may have the slot. */
    job = finished ? gpsti_inline_end_submission(item, result, reason) : NULL;
    gpsti_run_unlock(run);
    return job;
}

/* Frees the slot, or queues it as a result. Locked. */
GPSTI_PRIVATE void gpsti_inline_end_item(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    pipeline->memory.exclusive = pipeline->memory.exclusive && !item->exclusive;
    gpsti_queue_leave_order(item);
    gpsti_account_item(item);
    gpsti_tune_count(item);
    if (pipeline->plan.desc.sink || pipeline->plan.desc.source) {
        gpsti_flight_release_slot(item);
        return;
    }
    item->next = NULL;
    (void)gpsti_queue_wake_short(pipeline, UINT64_MAX);
    if (pipeline->results.last_result)
        pipeline->results.last_result->next = item;
    else
        pipeline->results.first_result = item;
    pipeline->results.last_result = item;
    pipeline->results.n_untaken++;
    gpsti_flight_time_full(pipeline);
    gpsti_flight_wake_waiters(pipeline);
}

GPSTI_PRIVATE gpsti_job* gpsti_inline_finish(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpsti_service service;
    gpsti_service_begin(&service, step, job);
    gpsti_finish_item(job->item);
    if (run->pipeline->plan.desc.sink || run->pipeline->plan.desc.source || !run->pipeline->plan.sets[0].is_result)
        gpsti_item_release_frame(job->item); /* else results live until release */
    gpsti_service_end(&service, GPST_OK);
    gpsti_run_keep(run, &service);
    gpsti_run_lock(run);
    gpsti_inline_leave(run, step, job);
    gpsti_inline_end_item(job->item);
    job = gpsti_inline_take(run, step);
    gpsti_run_unlock(run);
    return job;
}

/* A failed item takes its turn in an ordered step without a service. */
GPSTI_PRIVATE gpsti_job* gpsti_inline_pass(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    if (run->entered) {
        gpsti_run_lock(run);
        step->on_device -= step->kind == GPSTI_STEP_OFFLOAD ? 1 : 0;
        /* The rest of its batch queues again. */
        for (gpsti_item *item = job->item->next_in_batch, *next = NULL; item; item = next) {
            next = item->next_in_batch;
            item->next_in_batch = NULL;
            gpsti_flight_send(&item->job, item->job.step);
        }
        job->item->next_in_batch = NULL;
        gpsti_inline_leave(run, step, job);
        gpsti_queue_pass(step, job->item);
        gpsti_run_unlock(run);
    }
    return gpsti_inline_next(run, job);
}

GPSTI_PRIVATE gpsti_job* gpsti_inline_serve(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    switch (step->kind) {
    case GPSTI_STEP_READ:
        return gpsti_inline_read(run, job, step);
    case GPSTI_STEP_HOST:
        return step->batch_most > 0 ? gpsti_inline_batch(run, job, step) : gpsti_inline_host(run, job, step);
    case GPSTI_STEP_DECODE:
        return gpsti_inline_decode(run, job, step);
    case GPSTI_STEP_OFFLOAD:
        return gpsti_inline_offload(run, job, step);
    case GPSTI_STEP_WRITE:
        return gpsti_inline_write(run, job, step);
    case GPSTI_STEP_FINISH:
        break;
    }
    return gpsti_inline_finish(run, job, step);
}

/* Where the item is behind the last step that reads the borrowed frame, has not failed, and need not begin anew for an
   item that lacks memory now. Else the frame is given back at the item's end. */
GPSTI_PRIVATE void gpsti_inline_release_frame(gpsti_run* run, const gpsti_job* job) {
    gpsti_item* const item = job->item;
    const gpst_pipeline* const pipeline = run->pipeline;
    if (job != &item->job || job->step <= pipeline->plan.sets[0].last_step || pipeline->plan.sets[0].is_result)
        return;
    gpsti_run_lock(run);
    const bool may_repeat = pipeline->memory.starved || gpsti_a32_load(&pipeline->memory.n_starving) > 0;
    gpsti_run_unlock(run);
    if (may_repeat)
        return;
    gpsti_item_forget(item, GPST_SET(0));
    gpsti_item_release_frame(item);
}

/* Runs a job until it is parked or its item has ended. Not locked. */
GPSTI_INTERN void gpsti_inline_run(gpsti_run* run, gpsti_job* job) {
    while (job) {
        gpsti_step* const step = gpsti_inline_step_of(job);
        if (job->item->borrowed && !job->item->device_done && !gpsti_item_has_failed(job->item))
            gpsti_inline_release_frame(run, job);
        if (job->item->device_done)
            job = gpsti_inline_after_device(run, job, step);
        else if (step->kind == GPSTI_STEP_FINISH && gpsti_flight_may_restart(job->item))
            job = gpsti_inline_restart(run, job, step);
        else if (step->per_picture && !step->chained && job == &job->item->job)
            job = gpsti_inline_split(run, job->item);
        else if (gpsti_inline_has_failed(job, step) && (run->entered || !step->ordered))
            job = gpsti_inline_pass(run, job, step);
        else if (step->kind == GPSTI_STEP_DECODE ? gpsti_decode_must_queue(job->item, step)
                                                 : step->gated && !run->entered)
            job = gpsti_inline_enter(run, job);
        else
            job = gpsti_inline_serve(run, job, step);
    }
    if (run->n > 0) {
        gpsti_run_lock(run);
        gpsti_run_unlock(run);
    }
}
