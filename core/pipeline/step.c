/* core/pipeline/step.c -- the jobs that wait in a step: their order, how many of them may run
   now, and which of them wait for company. Runs none of them: flow.c does. All of it is locked. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

/* ---- the list ------------------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_step_insert(gpsti_step* step, gpsti_job* job) {
    gpsti_job** link = &step->head;
    if (step->ordered) {
        if (step->latest && step->latest->slot->ticket < job->slot->ticket) /* of a bunch each follows the one before */
            link = &step->latest->next;
        while (*link && (*link)->slot->ticket < job->slot->ticket)
            link = &(*link)->next;
    } else if (step->tail && !job->slot->device_done) { /* what the device is done with waits for nobody */
        link = &step->tail->next;
    }
    job->next = *link;
    *link = job;
    step->latest = job;
    step->n_queued++;
    if (!job->next)
        step->tail = job;
}

GPSTI_PRIVATE gpsti_job* gpsti_step_pop(gpsti_step* step) {
    gpsti_job* const job = step->head;
    step->n_queued--;
    step->head = job->next;
    if (!step->head)
        step->tail = NULL;
    if (step->latest == job)
        step->latest = NULL;
    return job;
}

GPSTI_INTERN gpsti_job* gpsti_step_take(gpsti_step* step) {
    return gpsti_step_n_runnable(step) == 0 ? NULL : gpsti_step_pop(step);
}

GPSTI_INTERN void gpsti_step_remove(gpsti_step* step, gpsti_job* job) {
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
    if (step->latest == job)
        step->latest = NULL;
}

/* ---- batches ------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_step_has_company(const gpsti_step* step) {
    const gpsti_slot* const slot = step->head ? step->head->slot : NULL;
    return slot && !slot->device_done && !slot->on_cpu && !slot->single;
}

/* Only while the device is busy with what came before: nothing is lost then, and its report makes somebody look. */
GPSTI_PRIVATE bool gpsti_step_waits_for_more(const gpsti_step* step) {
    return step->on_device > 0 && step->n_queued < step->batch_full && gpsti_step_has_company(step);
}

GPSTI_INTERN gpsti_job* gpsti_step_take_companion(gpsti_step* step) {
    return gpsti_step_has_company(step) ? gpsti_step_pop(step) : NULL;
}

GPSTI_INTERN void gpsti_steps_set_batch(gpst_pipeline* pipeline, uint32_t batch) {
    const uint32_t in_three = pipeline->n_slots / 3; /* one uploads, one is computed, one downloads */
    for (uint32_t s = 0; s < pipeline->n_steps; s++) {
        gpsti_step* const step = &pipeline->steps[s];
        const bool together = step->kind == GPSTI_STEP_OFFLOAD && pipeline->batch_most > 1 && batch > 1;
        step->batch = !together ? 1 : batch < pipeline->batch_most ? batch : pipeline->batch_most;
        step->batch_full = pipeline->desc.preset == GPST_PRESET_LATENCY ? 1
                           : step->batch < in_three                    ? step->batch
                                                                       : in_three;
    }
}

/* ---- how many may run ---------------------------------------------------------------------- */

GPSTI_PRIVATE uint32_t gpsti_step_room(uint32_t most, uint32_t taken, uint32_t wanted) {
    const uint32_t n_free = taken < most ? most - taken : 0;
    return n_free < wanted ? n_free : wanted;
}

GPSTI_INTERN uint32_t gpsti_step_n_runnable(const gpsti_step* step) {
    if (!step->head || (step->ordered && step->head->slot->ticket != step->next_ticket) ||
        gpsti_step_waits_for_more(step))
        return 0;
    const uint32_t n_services = (step->n_queued + step->batch - 1) / step->batch;
    if (step->streams != 0 && !step->head->slot->device_done)
        return gpsti_step_room(step->streams, step->on_device, n_services);
    return step->concurrency == 0 ? n_services : gpsti_step_room(step->concurrency, step->running, n_services);
}
