/* core/pipeline/queue.c -- the jobs that wait in a step: their order, how many of them may run now, and which wait for
   a fuller batch. Runs none of them: inline.c does. All of it is locked. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_INTERN const char* gpsti_step_name(const gpst_pipeline* pipeline, const gpsti_step* step) {
    return step->kind == GPSTI_STEP_FINISH ? "sink" : pipeline->stages[step->first_stage].name;
}

/* ---- the list ------------------------------------------------------------------------------ */

/* A job that the device is done with goes to the front, and so does an exclusive item. */
GPSTI_INTERN void gpsti_queue_put(gpsti_step* step, gpsti_job* job) {
    gpsti_job** link = &step->head;
    job->ready_ns = gpsti_now_ns();
    if (step->ordered && step->tail && step->tail->slot->ticket < job->slot->ticket)
        link = &step->tail->next;
    else if (step->ordered)
        while (*link && (*link)->slot->ticket < job->slot->ticket)
            link = &(*link)->next;
    else if (step->tail && !job->slot->device_done && !job->slot->exclusive)
        link = &step->tail->next;
    job->next = *link;
    *link = job;
    step->n_queued++;
    if (!job->next)
        step->tail = job;
}

GPSTI_INTERN gpsti_job* gpsti_queue_pop(gpsti_step* step) {
    gpsti_job* const job = step->head;
    step->n_queued--;
    step->head = job->next;
    if (!step->head)
        step->tail = NULL;
    return job;
}

GPSTI_INTERN void gpsti_queue_remove(gpsti_step* step, gpsti_job* job) {
    gpsti_job* before = NULL;
    gpsti_job** link = &step->head;
    while (*link != job) {
        before = *link;
        link = &(*link)->next;
    }
    *link = job->next;
    step->n_queued--;
    if (step->tail == job)
        step->tail = before;
}

/* ---- batches ------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_queue_may_join_batch(const gpsti_step* step) {
    const gpsti_slot* const slot = step->head ? step->head->slot : NULL;
    return slot && !slot->device_done && !slot->on_cpu && !slot->single;
}

/* Only while the device is busy: waiting costs nothing then, and the device's notification wakes a worker. */
GPSTI_PRIVATE bool gpsti_queue_waits_for_more(const gpsti_step* step) {
    return step->on_device > 0 && step->n_queued < step->batch_full && gpsti_queue_may_join_batch(step);
}

GPSTI_INTERN gpsti_job* gpsti_queue_take_next_in_batch(gpsti_step* step) {
    return gpsti_queue_may_join_batch(step) ? gpsti_queue_pop(step) : NULL;
}

GPSTI_INTERN void gpsti_queues_set_batch(gpst_pipeline* pipeline, uint32_t batch) {
    const uint32_t in_three = pipeline->n_slots / 3; /* one batch uploads, one is computed, one downloads */
    for (uint32_t s = 0; s < pipeline->n_steps; s++) {
        gpsti_step* const step = &pipeline->steps[s];
        const bool together = step->kind == GPSTI_STEP_OFFLOAD && pipeline->batch_most > 1 && batch > 1;
        step->batch = !together ? 1 : batch < pipeline->batch_most ? batch : pipeline->batch_most;
        /* The engine waits for a batch size that the user gave; else what is ready goes at once. */
        const bool waits = pipeline->desc.batch > 0 && pipeline->desc.preset != GPST_PRESET_LATENCY;
        step->batch_full = !waits ? 1 : step->batch < in_three ? step->batch : in_three;
    }
}

/* ---- what may run -------------------------------------------------------------------------- */

/* An item that reaches a per_picture step is split there, which is no service. */
GPSTI_PRIVATE bool gpsti_queue_is_service(const gpsti_step* step, const gpsti_job* job) {
    return step->gated && !(step->per_picture && job == &job->slot->job) && !job->slot->device_done;
}

GPSTI_INTERN bool gpsti_queue_has_runnable(const gpsti_step* step) {
    const gpsti_job* const head = step->head;
    if (!head || (step->ordered && head->slot->ticket != step->next_ticket))
        return false;
    if (step->kind == GPSTI_STEP_DECODE)
        return gpsti_decode_choose(step) != GPSTI_DECODE_EITHER;
    const bool on_cpu = step->kind == GPSTI_STEP_OFFLOAD && head->slot->on_cpu; /* the limits are the device's */
    if (on_cpu || !gpsti_queue_is_service(step, head))
        return true;
    if (gpsti_queue_waits_for_more(step) || (step->streams > 0 && step->on_device >= step->streams))
        return false;
    return step->concurrency == 0 || step->running < step->concurrency;
}

/* While an exclusive item waits or runs, no other item begins: the first step takes only items that have begun. */
GPSTI_INTERN bool gpsti_queue_may_take(const gpst_pipeline* pipeline, const gpsti_step* step) {
    const bool rests = pipeline->starved || pipeline->exclusive;
    return gpsti_queue_has_runnable(step) && (!rests || step != pipeline->steps || step->head->slot->started);
}

/* One batch at a time is a service of the step; what threads decode has no limit. */
GPSTI_PRIVATE gpsti_job* gpsti_queue_take_to_decode(gpsti_step* step) {
    const gpsti_decode_form form = gpsti_decode_choose(step);
    gpsti_job* const job = gpsti_queue_pop(step);
    const gpsti_codecs* const codecs = &job->slot->pipeline->codecs;
    step->running += form == GPSTI_DECODE_DEVICE && (codecs->has_engines || !codecs->begun) ? 1 : 0;
    job->slot->decode = form;
    return job;
}

GPSTI_INTERN gpsti_job* gpsti_queue_take(gpsti_step* step) {
    if (!gpsti_queue_has_runnable(step))
        return NULL;
    if (step->kind == GPSTI_STEP_DECODE)
        return gpsti_queue_take_to_decode(step);
    gpsti_job* const job = gpsti_queue_pop(step);
    step->running += gpsti_queue_is_service(step, job) ? 1 : 0;
    return job;
}

GPSTI_INTERN void gpsti_queue_leave(gpsti_step* step) {
    step->running--;
    step->next_ticket += step->ordered ? 1 : 0;
}
