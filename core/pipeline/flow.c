/* core/pipeline/flow.c -- which job of a pipeline runs next, and what follows when it is
   done. Every decision is made under the scheduler's lock; callbacks run without it. */
#include "../base/platform_internal.h"

#include "note_internal.h"

#include <string.h>

#define GPSTI_FLOW_FINISH_ITEMS 16 /* ended at once at most, and for about how long their slots may wait */
#define GPSTI_FLOW_FINISH_NS 50000
#define GPSTI_FLOW_FREES 8 /* replaced files in a row that are freed without waiting for a disk: that is over */

/* ---- how long tasks take ------------------------------------------------------------------ */

GPSTI_PRIVATE int64_t gpsti_work_ns(int64_t seen_ns) {
    return seen_ns != 0 ? seen_ns : 1000000; /* nobody knows yet: worth a worker */
}

/* ---- from step to step -------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_flow_advance(gpsti_job* job);
GPSTI_PRIVATE void gpsti_flow_read_done(gpst_read* read);
GPSTI_PRIVATE void gpsti_flow_write_done(gpsti_write* write);

GPSTI_PRIVATE bool gpsti_slot_failed(const gpsti_slot* slot) { return GPST_FAILED(slot->item.result); }

GPSTI_PRIVATE const char* gpsti_step_name(const gpst_pipeline* pipeline, const gpsti_step* step) {
    return step->kind == GPSTI_STEP_FINISH ? "sink" : pipeline->stages[step->first_stage].name;
}

/* May the job be served, or has its item failed or been cancelled? */
GPSTI_PRIVATE bool gpsti_flow_may_serve(gpsti_job* job, const gpsti_step* step) {
    gpsti_slot* const slot = job->slot;
    if (step->kind == GPSTI_STEP_FINISH)
        return true;
    if (gpsti_a32_load(&slot->pipeline->cancel) != 0)
        gpsti_slot_fail(slot, GPST_ERROR_CANCELLED, gpsti_step_name(slot->pipeline, step), "cancelled");
    return !gpsti_slot_failed(slot);
}

GPSTI_INTERN void gpsti_flow_prepare_read(gpsti_slot* slot) {
    memset(&slot->read, 0, sizeof slot->read);
    slot->read.path = slot->item.path;
    slot->read.data = slot->file.data;
    slot->read.capacity_bytes = slot->file.bytes;
    slot->read.reserve = gpsti_slot_read_reserve;
    slot->read.user_data = slot;
    slot->read_setup_ns = 0;
}

GPSTI_PRIVATE void gpsti_flow_start_read(gpsti_job* job) {
    gpsti_slot* const slot = job->slot;
    slot->started = true;
    gpsti_flow_prepare_read(slot);
    slot->read.done = gpsti_flow_read_done;
    slot->pipeline->n_reading++;
    const gpst_result result = gpst_reader_submit(slot->pipeline->reader, &slot->read);
    if (GPST_FAILED(result)) {
        slot->pipeline->n_reading--;
        gpsti_slot_fail(slot, result, gpsti_step_name(slot->pipeline, &slot->pipeline->steps[job->step]),
                        gpst_last_reason());
        gpsti_flow_advance(job);
    }
}

GPSTI_PRIVATE void gpsti_flow_start_writes(gpsti_job* job) {
    gpsti_slot* const slot = job->slot;
    gpsti_output* const output = &slot->out[job->output];
    gpsti_emit* emit = output->emits;
    const uint32_t n_emits = output->n_emits;
    output->writes_pending = n_emits;
    if (n_emits == 0) {
        gpsti_flow_advance(job);
        return;
    }
    for (uint32_t i = 0; i < n_emits; i++, emit = emit->next) {
        emit->write.done = gpsti_flow_write_done;
        emit->write.user_data = emit;
        const gpst_result result = gpsti_writer_submit(slot->pipeline->writer, &emit->write);
        if (!GPST_FAILED(result))
            continue;
        gpsti_slot_fail(slot, result, gpsti_step_name(slot->pipeline, &slot->pipeline->steps[job->step]),
                        gpst_last_reason());
        if (--output->writes_pending == 0)
            gpsti_flow_advance(job);
    }
}

/* Puts a job where its step waits. What no worker would take in hand, and outputs of an item that has failed
   meanwhile, go straight on when there is nothing to do for them. */
GPSTI_PRIVATE void gpsti_flow_enqueue(gpsti_job* job) {
    gpst_pipeline* const pipeline = job->slot->pipeline;
    gpsti_step* const step = &pipeline->steps[job->step];
    job->ready_ns = gpsti_now_ns();
    if ((step->per_output || step->kind == GPSTI_STEP_READ) && !gpsti_flow_may_serve(job, step))
        gpsti_flow_advance(job);
    else if (step->kind == GPSTI_STEP_READ)
        gpsti_flow_start_read(job);
    else if (step->kind == GPSTI_STEP_WRITE)
        gpsti_flow_start_writes(job);
    else {
        gpsti_step_insert(step, job);
        gpsti_scheduler_wake(pipeline->context->scheduler);
    }
}

/* A failed item calls no stage any more, but takes its turn in ordered ones, else the next could not. */
GPSTI_PRIVATE uint32_t gpsti_flow_next_step(const gpsti_slot* slot, uint32_t from) {
    const gpst_pipeline* const pipeline = slot->pipeline;
    uint32_t to = from + 1;
    if (!gpsti_slot_failed(slot))
        return to;
    while (!pipeline->steps[to].ordered && pipeline->steps[to].kind != GPSTI_STEP_FINISH)
        to++;
    return to;
}

GPSTI_PRIVATE void gpsti_flow_go(gpsti_slot* slot, uint32_t to) {
    gpst_pipeline* const pipeline = slot->pipeline;
    if (!pipeline->steps[to].per_output) {
        slot->job.step = to;
        gpsti_flow_enqueue(&slot->job);
        return;
    }
    slot->pending = pipeline->n_outputs;
    for (uint32_t o = 0; o < pipeline->n_outputs; o++)
        slot->out[o].job.step = to;
    for (uint32_t o = 0; o < pipeline->n_outputs; o++)
        gpsti_flow_enqueue(&slot->out[o].job);
}

GPSTI_PRIVATE void gpsti_flow_advance(gpsti_job* job) {
    gpsti_slot* const slot = job->slot;
    const gpsti_step* const steps = slot->pipeline->steps;
    const uint32_t to = gpsti_flow_next_step(slot, job->step);
    if (steps[job->step].per_output) {
        if (steps[to].per_output) {
            job->step = to;
            gpsti_flow_enqueue(job);
            return;
        }
        if (--slot->pending > 0)
            return;
    }
    gpsti_flow_go(slot, to);
}

GPSTI_INTERN void gpsti_flow_begin(gpsti_slot* slot) {
    gpsti_flow_go(slot, gpsti_slot_failed(slot) ? gpsti_flow_next_step(slot, (uint32_t)-1) : 0);
}

GPSTI_INTERN void gpsti_flow_continue(gpsti_slot* slot, uint32_t step) {
    gpsti_flow_go(slot, gpsti_slot_failed(slot) ? gpsti_flow_next_step(slot, step - 1) : step);
}

/* ---- slots ------------------------------------------------------------------------------------ */

GPSTI_INTERN uint64_t gpsti_flow_n_left(const gpst_pipeline* pipeline) {
    const uint64_t expected = pipeline->desc.n_items_expected, begun = pipeline->next_index;
    return expected > begun ? expected - begun : 0;
}

GPSTI_INTERN uint32_t gpsti_flow_n_free(const gpst_pipeline* pipeline) {
    const uint32_t n_filled = pipeline->n_served + pipeline->n_filling;
    const uint32_t n = pipeline->n_filling > 0 && n_filled < pipeline->n_slots ? n_filled : pipeline->n_slots;
    return n > pipeline->in_flight ? n - pipeline->in_flight : 0;
}

GPSTI_INTERN bool gpsti_flow_has_slot(const gpst_pipeline* pipeline) {
    return pipeline->free_slots && gpsti_flow_n_free(pipeline) > 0;
}

GPSTI_INTERN gpsti_slot* gpsti_flow_take_slot(gpst_pipeline* pipeline) {
    gpsti_slot* const slot = pipeline->free_slots;
    if (!gpsti_flow_has_slot(pipeline))
        return NULL;
    pipeline->free_slots = slot->next;
    slot->in_use = true;
    slot->plain = false;
    slot->on_cpu = pipeline->device_lost;
    slot->exec = pipeline->exec;
    pipeline->in_flight++;
    if (pipeline->in_flight > pipeline->n_slots_used)
        pipeline->n_slots_used = pipeline->in_flight;
    if (pipeline->tune.on && pipeline->in_flight == pipeline->n_slots)
        pipeline->tune.full_since_ns = gpsti_now_ns();
    return slot;
}

/* A thread that works itself has a core already: a worker that came beside it would have to share one. */
GPSTI_INTERN void gpsti_flow_call_workers(gpst_pipeline* pipeline) {
    const uint32_t n_here = gpsti_carry_is_shared(pipeline) ? 1 : 0;
    gpsti_scheduler_wake_some(pipeline->context->scheduler, pipeline->n_active - n_here);
}

GPSTI_INTERN void gpsti_flow_tell_waiters(gpst_pipeline* pipeline) {
    if (pipeline->n_waiters == 0 && (pipeline->n_end_waiters == 0 || pipeline->in_flight > 0))
        return;
    gpsti_cond_broadcast(&pipeline->progress);
    if (pipeline->context->scheduler->n_helpers > 0)
        gpsti_scheduler_wake_some(pipeline->context->scheduler, 0); /* helpers wait there */
}

GPSTI_INTERN void gpsti_flow_release_slot(gpsti_slot* slot) {
    gpsti_slot_give_back(slot);
    gpsti_flow_put_slot(slot);
}

GPSTI_INTERN void gpsti_flow_put_slot(gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    if (pipeline->tune.full_since_ns != 0) {
        pipeline->tune.full_ns += gpsti_now_ns() - pipeline->tune.full_since_ns;
        pipeline->tune.full_since_ns = 0;
    }
    slot->in_use = false;
    slot->next = pipeline->free_slots;
    pipeline->free_slots = slot;
    pipeline->in_flight--;
    gpsti_flow_tell_waiters(pipeline);
}

GPSTI_INTERN bool gpsti_flow_drop_oldest(gpst_pipeline* pipeline) {
    gpsti_slot* oldest = NULL;
    for (gpsti_job* job = pipeline->steps[0].head; job; job = job->next)
        if (job == &job->slot->job && !job->slot->started && (!oldest || job->slot->ticket < oldest->ticket))
            oldest = job->slot;
    if (!oldest)
        return false;
    gpsti_step_remove(&pipeline->steps[0], &oldest->job);
    /* Nothing after it has passed an ordered step, since it has not: the order can be closed up. */
    for (uint32_t i = 0; i < pipeline->n_slots_made; i++)
        if (pipeline->slots[i]->in_use && pipeline->slots[i]->ticket > oldest->ticket)
            pipeline->slots[i]->ticket--;
    pipeline->next_ticket--;
    pipeline->items_dropped++;
    gpsti_flow_release_slot(oldest);
    return true;
}

GPSTI_INTERN bool gpsti_flow_is_over(gpst_pipeline* pipeline) {
    gpsti_flow_notice(pipeline);
    const bool no_more = pipeline->desc.source ? pipeline->source_done : pipeline->closed;
    return no_more && !pipeline->source_running && pipeline->in_flight == 0 && pipeline->executing == 0;
}

GPSTI_INTERN void gpsti_flow_notice(gpst_pipeline* pipeline) {
    const bool cancel = gpsti_a32_load(&pipeline->cancel) != 0;
    if (cancel || gpsti_a32_load(&pipeline->stop) != 0)
        pipeline->source_done = pipeline->closed = true;
    if (cancel && !pipeline->cancel_noticed) {
        pipeline->cancel_noticed = true;
        if (pipeline->reader)
            gpst_reader_cancel(pipeline->reader);
        gpsti_reader_pause_ahead(pipeline->reader, false);
    }
}

GPSTI_PRIVATE void gpsti_flow_wait_as(gpst_pipeline* pipeline, uint32_t* n_waiters, int64_t deadline_ns) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const uint32_t worker_index = gpsti_scheduler_worker_index(scheduler);
    /* Cancel may come from a signal handler, which cannot wake anybody: look at it now and then. */
    const int64_t look_ns = gpsti_now_ns() + 50 * (int64_t)1000000;
    const int64_t until_ns = deadline_ns < look_ns ? deadline_ns : look_ns;
    gpsti_flow_notice(pipeline);
    ++*n_waiters;
    if (worker_index < scheduler->n_workers)
        gpsti_scheduler_help(scheduler, &pipeline->client, worker_index, until_ns);
    else
        gpsti_cond_wait_until(&pipeline->progress, &scheduler->mutex, until_ns);
    --*n_waiters;
    gpsti_flow_notice(pipeline);
}

GPSTI_INTERN void gpsti_flow_wait(gpst_pipeline* pipeline, int64_t deadline_ns) {
    gpsti_flow_wait_as(pipeline, &pipeline->n_waiters, deadline_ns);
}

GPSTI_INTERN void gpsti_flow_wait_end(gpst_pipeline* pipeline) {
    while (!gpsti_flow_is_over(pipeline))
        if (gpsti_tune_is_empty(pipeline))
            gpsti_tune_run_block(pipeline);
        else if (!gpsti_carry_join(pipeline))
            gpsti_flow_wait_as(pipeline, &pipeline->n_end_waiters, GPST_FOREVER);
}

/* ---- what is done elsewhere: reads, writes, the device -------------------------------------------- */

/* A read has ended: were there fewer items behind it than the workers could have served? Locked. */
GPSTI_PRIVATE bool gpsti_flow_starves(const gpst_pipeline* pipeline) {
    return pipeline->in_flight - pipeline->n_reading - pipeline->n_handed_out <= pipeline->n_active;
}

GPSTI_PRIVATE void gpsti_flow_read_done(gpst_read* read) {
    gpsti_slot* const slot = (gpsti_slot*)read->user_data;
    gpst_pipeline* const pipeline = slot->pipeline;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const gpsti_step* const step = &pipeline->steps[slot->job.step];
    gpsti_mutex_lock(&scheduler->mutex);
    pipeline->n_reading--;
    gpsti_reader_weigh(pipeline->reader, gpsti_flow_starves(pipeline));
    gpsti_clock_add(&pipeline->clocks[step->first_clock], read->end_ns - read->start_ns,
                    read->start_ns - slot->job.ready_ns, read->bytes, GPST_FAILED(read->result));
    pipeline->clocks[step->first_clock].setup_ns += slot->read_setup_ns;
    pipeline->bytes_read += read->bytes;
    slot->item.file_data = slot->file.data;
    slot->item.file_bytes = read->bytes;
    if (GPST_FAILED(read->result))
        gpsti_slot_fail(slot, read->result, gpsti_step_name(pipeline, step), read->reason);
    gpsti_flow_advance(&slot->job);
    gpsti_mutex_unlock(&scheduler->mutex);
}

GPSTI_PRIVATE void gpsti_flow_write_done(gpsti_write* write) {
    gpsti_emit* const emit = (gpsti_emit*)write->user_data;
    gpsti_slot* const slot = emit->slot;
    gpst_pipeline* const pipeline = slot->pipeline;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_output* const output = &slot->out[emit->output];
    const gpsti_step* const step = &pipeline->steps[output->job.step];
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_clock_add(&pipeline->clocks[step->first_clock], write->end_ns - write->start_ns,
                    write->start_ns - output->job.ready_ns, write->bytes, GPST_FAILED(write->result));
    gpsti_busy_add(&pipeline->busy[GPST_RESOURCE_DISK_OUT], write->start_ns, write->end_ns);
    if (GPST_FAILED(write->result))
        gpsti_slot_fail(slot, write->result, gpsti_step_name(pipeline, step), write->reason);
    else
        pipeline->bytes_written += write->bytes;
    if (--output->writes_pending == 0)
        gpsti_flow_advance(&output->job);
    gpsti_mutex_unlock(&scheduler->mutex);
}

/* What was replaced is freed beside the run, by the disk that the run's files go to. */
GPSTI_INTERN void gpsti_flow_file_closed(void* user_data, int64_t start_ns, int64_t end_ns, bool waited) {
    gpst_pipeline* const pipeline = (gpst_pipeline*)user_data;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    if (pipeline->in_flight == 0 && end_ns > pipeline->end_ns)
        end_ns = pipeline->end_ns;
    gpsti_busy_add(&pipeline->busy[GPST_RESOURCE_DISK_OUT], start_ns, end_ns);
    pipeline->n_frees = waited ? 0 : pipeline->n_frees + 1;
    if (waited || pipeline->n_frees >= GPSTI_FLOW_FREES)
        gpsti_a32_store(&pipeline->context->frees_wait, waited ? 1 : 0);
    gpsti_mutex_unlock(&scheduler->mutex);
}

/* The device group of one item is over, one way or the other. Locked. */
GPSTI_PRIVATE void gpsti_flow_end_offload(gpsti_slot* slot, gpst_result result, int64_t wait_ns,
                                          const char* reason) {
    gpst_pipeline* const pipeline = slot->pipeline;
    const gpsti_step* const step = &pipeline->steps[slot->job.step];
    if (GPST_FAILED(result) && gpsti_offload_fall_back(slot, result, reason)) {
        slot->lane = NULL;
        gpsti_flow_enqueue(&slot->job);
        return;
    }
    if (GPST_FAILED(result)) {
        gpsti_clock_add(&pipeline->clocks[step->first_clock + 1], 0, 0, 0, true);
        gpsti_slot_fail(slot, result, gpsti_step_name(pipeline, step), reason);
    } else {
        gpsti_way way;
        gpsti_offload_note(slot, &way);
        gpsti_offload_account(pipeline, step, &way, wait_ns);
    }
    slot->lane = NULL;
    gpsti_flow_advance(&slot->job);
}

/* Nobody knows whose fault it was: each item tries by itself, and those that can do well do. Locked. */
GPSTI_PRIVATE void gpsti_flow_retry_single(gpsti_slot* slot) {
    slot->lane = NULL;
    slot->single = true;
    slot->reason[0] = '\0';
    gpsti_flow_enqueue(&slot->job);
}

/* The device is done with an item and its companions. Locked. */
GPSTI_PRIVATE void gpsti_flow_end_submission(gpsti_slot* first, gpst_result result, const char* reason) {
    gpst_pipeline* const pipeline = first->pipeline;
    const bool apart = GPST_FAILED(result) && first->companion;
    pipeline->n_submissions++;
    pipeline->n_taken_apart += apart ? 1 : 0;
    if (apart)
        gpsti_copy_text(pipeline->apart_reason, sizeof pipeline->apart_reason, reason);
    for (gpsti_slot *slot = first, *next = NULL; slot; slot = next) {
        next = slot->companion;
        slot->companion = NULL;
        pipeline->n_submitted++;
        if (apart)
            gpsti_flow_retry_single(slot);
        else
            gpsti_flow_end_offload(slot, result, slot->device_wait_ns, reason);
    }
}

/* On the backend's thread, which may not call the device: a worker goes on from here. */
GPSTI_INTERN void gpsti_flow_offload_done(void* user_data, gpst_result result) {
    gpsti_slot* const slot = (gpsti_slot*)user_data;
    gpsti_scheduler* const scheduler = slot->pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    slot->device_done = true;
    slot->device_result = result;
    gpsti_copy_text(slot->reason, sizeof slot->reason, GPST_FAILED(result) ? gpst_last_reason() : "");
    gpsti_flow_enqueue(&slot->job);
    gpsti_mutex_unlock(&scheduler->mutex);
}

/* ---- what a worker does ------------------------------------------------------------------------------ */

GPSTI_PRIVATE bool gpsti_flow_source_ready(const gpst_pipeline* pipeline) {
    return pipeline->desc.source && pipeline->started && !pipeline->source_done &&
           !pipeline->source_running && (pipeline->n_carrying == 0 || gpsti_carry_ends(pipeline)) &&
           !pipeline->tune.paused && gpsti_flow_has_slot(pipeline);
}

GPSTI_PRIVATE bool gpsti_flow_run_source(gpst_pipeline* pipeline, uint32_t worker_index) {
    if (!gpsti_flow_source_ready(pipeline))
        return false;
    gpsti_carry_run(pipeline, worker_index);
    return true;
}

/* Of what one worker takes from the source at once. */
GPSTI_INTERN int64_t gpsti_flow_source_work_ns(const gpst_pipeline* pipeline) {
    return gpsti_work_ns(pipeline->source_work_ns) * (int64_t)gpsti_carry_n_items(pipeline);
}

GPSTI_PRIVATE void gpsti_flow_end_item(gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpsti_finish_count(slot);
    if (gpsti_tune_count(slot))
        gpsti_tune_look(pipeline);
    if (pipeline->desc.sink || pipeline->desc.source) {
        gpsti_flow_release_slot(slot);
        return;
    }
    slot->next = NULL;
    if (pipeline->last_result)
        pipeline->last_result->next = slot;
    else
        pipeline->first_result = slot;
    pipeline->last_result = slot;
    gpsti_flow_tell_waiters(pipeline);
}

GPSTI_PRIVATE void gpsti_flow_end_service(gpsti_job* job, gpsti_step* step, const gpsti_service* service) {
    gpsti_slot* const slot = job->slot;
    gpst_pipeline* const pipeline = slot->pipeline;
    if (step->kind == GPSTI_STEP_FINISH) {
        pipeline->end_ns = service->start_ns + service->busy_ns;
        gpsti_flow_end_item(slot);
        return;
    }
    if (step->kind == GPSTI_STEP_OFFLOAD) {
        gpsti_flow_end_submission(slot, service->result, service->reason);
        return;
    }
    gpsti_clock_add(&pipeline->clocks[step->first_clock], service->busy_ns, service->wait_ns, 0,
                    GPST_FAILED(service->result));
    pipeline->clocks[step->first_clock].setup_ns += service->setup_ns;
    if (GPST_FAILED(service->result))
        gpsti_slot_fail(slot, service->result, gpsti_step_name(pipeline, step), service->reason);
    gpsti_flow_advance(job);
}

/* What else is ready goes along, as far as the knob allows. Locked. */
GPSTI_PRIVATE void gpsti_flow_gather(gpsti_step* step, gpsti_slot* first) {
    const int64_t now_ns = gpsti_now_ns();
    gpsti_slot* last = first;
    first->exec = first->pipeline->exec;
    first->companion = NULL;
    for (uint32_t n = 1; n < step->batch && !first->on_cpu && !first->single;) {
        gpsti_job* const job = gpsti_step_take_companion(step);
        if (!job)
            return;
        if (!gpsti_flow_may_serve(job, step)) {
            gpsti_flow_advance(job);
            continue;
        }
        last->companion = job->slot;
        last = job->slot;
        last->companion = NULL;
        last->started = true;
        last->device_wait_ns = now_ns - job->ready_ns;
        n++;
    }
}

GPSTI_PRIVATE void gpsti_flow_run_job(gpst_pipeline* pipeline, gpsti_step* step, gpsti_job* job,
                                      uint32_t worker_index) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_service service;
    if (job->slot->device_done) {
        job->slot->device_done = false;
        step->on_device--;
        pipeline->executing++;
        gpsti_mutex_unlock(&scheduler->mutex);
        gpsti_offload_read_times(job->slot);
        gpsti_mutex_lock(&scheduler->mutex);
        pipeline->executing--;
        gpsti_flow_end_submission(job->slot, job->slot->device_result, job->slot->reason);
        return;
    }
    if (!gpsti_flow_may_serve(job, step)) {
        step->next_ticket += step->ordered ? 1 : 0;
        gpsti_flow_advance(job);
        return;
    }
    const bool sample_cpu = gpsti_service_wants_cpu(pipeline, step);
    const int64_t work_ns = gpsti_work_ns(step->work_ns);
    job->slot->started = true;
    job->slot->alone = !pipeline->desc.source && pipeline->in_flight == 1;
    if (step->kind == GPSTI_STEP_OFFLOAD)
        gpsti_flow_gather(step, job->slot);
    step->running++;
    step->on_device += step->kind == GPSTI_STEP_OFFLOAD ? 1 : 0;
    pipeline->executing++;
    gpsti_scheduler_leave(scheduler, work_ns);
    gpsti_mutex_unlock(&scheduler->mutex);
    gpsti_service_run(&service, job, step, worker_index, sample_cpu);
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_scheduler_return(scheduler, work_ns);
    gpsti_work_note(&step->work_ns, service.busy_ns);
    pipeline->executing--;
    step->running--;
    step->next_ticket += step->ordered ? 1 : 0;
    gpsti_service_account_cpu(pipeline, step, service.busy_ns, service.cpu_ns);
    if (service.finished) { /* else the job is the device's now, and may be gone already */
        step->on_device -= step->kind == GPSTI_STEP_OFFLOAD ? 1 : 0;
        gpsti_flow_end_service(job, step, &service);
    }
}

/* What is known to take no longer may keep a thread that waits anyway. */
#define GPSTI_FLOW_BRIEF_NS 200000

GPSTI_PRIVATE gpsti_job* gpsti_flow_take_brief(gpst_pipeline* pipeline, gpsti_step** step) {
    for (uint32_t s = pipeline->n_steps; s-- > 0;) {
        *step = &pipeline->steps[s];
        gpsti_job* const job = (*step)->no_callbacks && gpsti_work_ns((*step)->work_ns) <= GPSTI_FLOW_BRIEF_NS
                                   ? gpsti_step_take(*step)
                                   : NULL;
        if (job)
            return job;
    }
    return NULL;
}

GPSTI_INTERN bool gpsti_flow_serve_lone(gpst_pipeline* pipeline, int64_t deadline_ns) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_step* step = NULL;
    gpsti_job* job = NULL;
    bool served = false;
    if (pipeline->in_flight != 1 || pipeline->executing > 0 ||
        gpsti_scheduler_worker_index(scheduler) < scheduler->n_workers ||
        deadline_ns - gpsti_now_ns() < 10 * GPSTI_FLOW_BRIEF_NS)
        return false;
    gpsti_scheduler_enter(scheduler);
    while (pipeline->executing == 0 && (job = gpsti_flow_take_brief(pipeline, &step)) != NULL) {
        gpsti_flow_run_job(pipeline, step, job, scheduler->n_workers);
        served = true;
    }
    gpsti_scheduler_exit(scheduler);
    return served;
}

#define GPSTI_FLOW_LOCK_NS 2000 /* of an item's work for each worker: the lock then is idle for half of the time */

/* What the source has for others. One that has given many gives many more: however brief they are, that is worth
   calling somebody for, unless those who are there already keep the lock busy. A list may be longer than was said. */
GPSTI_PRIVATE int64_t gpsti_flow_source_backlog_ns(const gpst_pipeline* pipeline) {
    const int64_t work_ns = gpsti_flow_source_work_ns(pipeline);
    if (!gpsti_flow_source_ready(pipeline))
        return 0;
    if (pipeline->executing == 0 || (int64_t)pipeline->executing >= work_ns / GPSTI_FLOW_LOCK_NS)
        return work_ns;
    const int64_t n_left = (int64_t)gpsti_plain_left(pipeline);
    return n_left > 1 ? work_ns * n_left : work_ns;
}

GPSTI_INTERN int64_t gpsti_flow_backlog_ns(gpsti_client* client) {
    const gpst_pipeline* const pipeline = (const gpst_pipeline*)client;
    if (pipeline->executing >= pipeline->n_active) /* who returns takes the next */
        return 0;
    int64_t total_ns = gpsti_flow_source_backlog_ns(pipeline);
    total_ns += gpsti_tune_holds_back(pipeline) || gpsti_tail_has_threads(pipeline) ? 1 : 0; /* somebody has to look */
    for (uint32_t s = 0; s < pipeline->n_steps; s++)
        total_ns += gpsti_work_ns(pipeline->steps[s].work_ns) * (int64_t)gpsti_step_n_runnable(&pipeline->steps[s]);
    return total_ns;
}

/* The sink's turn for all that have ended in order by now, as many as are brief. What it needs of the stack is not to
   be there while other tasks run. */
GPSTI_PRIVATE GPSTI_NOINLINE void gpsti_flow_run_finish(gpst_pipeline* pipeline, gpsti_step* step,
                                                        uint32_t worker_index) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_job* jobs[GPSTI_FLOW_FINISH_ITEMS];
    gpsti_service services[GPSTI_FLOW_FINISH_ITEMS];
    const int64_t item_ns = gpsti_work_ns(step->work_ns);
    const bool sample_cpu = gpsti_service_wants_cpu(pipeline, step);
    uint32_t n = 0;
    while (n < GPSTI_FLOW_FINISH_ITEMS && item_ns * (int64_t)n < GPSTI_FLOW_FINISH_NS &&
           (jobs[n] = gpsti_step_take(step)) != NULL) {
        jobs[n++]->slot->started = true;
        step->next_ticket += step->ordered ? 1 : 0;
    }
    step->running++;
    pipeline->executing++;
    pipeline->n_finishing = n;
    gpsti_scheduler_leave(scheduler, item_ns * (int64_t)n);
    gpsti_mutex_unlock(&scheduler->mutex);
    for (uint32_t i = 0; i < n; i++)
        gpsti_service_run(&services[i], jobs[i], step, worker_index, sample_cpu && i == 0);
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_scheduler_return(scheduler, item_ns * (int64_t)n);
    pipeline->executing--;
    pipeline->n_finishing = 0;
    step->running--;
    for (uint32_t i = 0; i < n; i++) {
        gpsti_work_note(&step->work_ns, services[i].busy_ns);
        gpsti_service_account_cpu(pipeline, step, services[i].busy_ns, services[i].cpu_ns);
        gpsti_flow_end_service(jobs[i], step, &services[i]);
    }
}

GPSTI_PRIVATE bool gpsti_flow_run_step(gpst_pipeline* pipeline, gpsti_step* step, uint32_t worker_index) {
    if (gpsti_step_n_runnable(step) == 0)
        return false;
    if (step->kind == GPSTI_STEP_FINISH)
        gpsti_flow_run_finish(pipeline, step, worker_index);
    else
        gpsti_flow_run_job(pipeline, step, gpsti_step_take(step), worker_index);
    return true;
}

/* Work that others then do by themselves comes first: a source with a free slot keeps the reader busy. After it the
   runnable job nearest the sink, so that memory stays bounded and items leave; then a source whose items the worker
   itself would work on; and at the end of the list what is to be given back. */
GPSTI_INTERN bool gpsti_flow_run_one(gpsti_client* client, uint32_t worker_index) {
    gpst_pipeline* const pipeline = (gpst_pipeline*)client;
    if (pipeline->executing >= pipeline->n_active)
        return false;
    gpsti_flow_notice(pipeline);
    gpsti_tune_let_in(pipeline);
    gpsti_early_look_again(pipeline);
    const bool source_last = gpsti_carry_is_work(pipeline);
    bool ran = !source_last && gpsti_flow_run_source(pipeline, worker_index);
    for (uint32_t s = pipeline->n_steps; !ran && s-- > 0;)
        ran = gpsti_flow_run_step(pipeline, &pipeline->steps[s], worker_index);
    return ran || (source_last && gpsti_flow_run_source(pipeline, worker_index)) || gpsti_tail_run(pipeline);
}
