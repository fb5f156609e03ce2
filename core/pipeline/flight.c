/* core/pipeline/flight.c -- which items are in flight: slots taken and put, items dropped, and where a job goes next.
   All of it is locked. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#define GPSTI_FLIGHT_SAMPLE_NS 1000000 /* longer items have their CPU time read, of shorter ones every 16th */

GPSTI_INTERN bool gpsti_flight_is_plain(const gpst_pipeline* pipeline) { return gpsti_a32_load(&pipeline->open) == 0; }

/* ---- slots ------------------------------------------------------------------------------------ */

GPSTI_INTERN uint32_t gpsti_flight_n_under_way(const gpst_pipeline* pipeline) {
    return gpsti_a32_load(&pipeline->in_flight) - pipeline->n_handed_out - pipeline->n_untaken;
}

/* Too little device memory means fewer slots, but not for results that nobody has taken: who submits may be the one who
   takes them, when n_slots are in. */
GPSTI_PRIVATE uint32_t gpsti_flight_n_slots(const gpst_pipeline* pipeline) {
    const bool ends_by_itself = pipeline->desc.source || pipeline->desc.sink;
    return gpsti_shortage_limit(pipeline->n_slots, ends_by_itself ? pipeline->shortage.slots_most : 0);
}

/* Results have memory, and no slot: as many as there are slots may wait for whoever takes them. */
GPSTI_INTERN bool gpsti_flight_has_slot(const gpst_pipeline* pipeline) {
    const uint32_t in_flight = gpsti_a32_load(&pipeline->in_flight), held = pipeline->n_handed_out;
    const uint32_t n_slots = gpsti_flight_n_slots(pipeline);
    const bool by_bytes = pipeline->desc.source || held > 0 || in_flight >= n_slots;
    return gpsti_flight_n_under_way(pipeline) < n_slots && pipeline->n_untaken < n_slots &&
           (in_flight == 0 || !by_bytes || in_flight < gpsti_tune_n_fit(pipeline));
}

GPSTI_INTERN void gpsti_flight_time_full(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    const bool full = gpsti_flight_n_under_way(pipeline) >= pipeline->n_slots;
    if (full == (tune->full_since_ns != 0))
        return;
    const int64_t now_ns = gpsti_now_ns();
    tune->full_ns += full ? 0 : now_ns - tune->full_since_ns;
    tune->full_since_ns = full ? now_ns : 0;
}

/* Reading a thread's clock costs 400 ns. */
GPSTI_PRIVATE bool gpsti_flight_samples_cpu(const gpst_pipeline* pipeline) {
    const int64_t n_done = (int64_t)(pipeline->items.ok + pipeline->items.failed);
    const int64_t spent_ns = (pipeline->end_ns - pipeline->start_ns) * (int64_t)pipeline->n_active;
    return n_done == 0 || pipeline->next_index % 16 == 0 || spent_ns / n_done >= GPSTI_FLIGHT_SAMPLE_NS;
}

GPSTI_INTERN gpsti_slot* gpsti_flight_take_slot(gpst_pipeline* pipeline) {
    if (!gpsti_flight_has_slot(pipeline))
        return NULL;
    if (!pipeline->free_slots && GPST_FAILED(gpsti_slots_make(pipeline, pipeline->n_slots_made + 1))) {
        if (pipeline->desc.source) /* no more are to be had; who pushes is told each time */
            pipeline->n_slots = pipeline->n_slots_made;
        return NULL;
    }
    gpsti_slot* const slot = pipeline->free_slots;
    pipeline->free_slots = slot->next;
    slot->in_use = true;
    slot->on_cpu = pipeline->device_lost;
    slot->samples_cpu = gpsti_flight_samples_cpu(pipeline);
    (void)gpsti_a32_add(&pipeline->in_flight, 1);
    if (gpsti_flight_n_under_way(pipeline) > pipeline->n_slots_used)
        pipeline->n_slots_used = gpsti_flight_n_under_way(pipeline);
    gpsti_flight_time_full(pipeline);
    return slot;
}

GPSTI_INTERN bool gpsti_flight_is_over(const gpst_pipeline* pipeline) {
    const bool no_more = pipeline->desc.source ? pipeline->source_done : pipeline->closed;
    return no_more && !pipeline->source_running && gpsti_a32_load(&pipeline->in_flight) == 0 &&
           gpsti_a32_load(&pipeline->executing) == 0;
}

GPSTI_INTERN void gpsti_flight_enter(gpst_pipeline* pipeline) {
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    pipeline->n_inside++;
}

GPSTI_INTERN void gpsti_flight_leave(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    pipeline->n_inside--;
    if (gpsti_a32_load(&pipeline->cancel) != 0) /* as destroy does first */
        gpsti_cond_broadcast(&pipeline->progress);
    gpsti_mutex_unlock(&scheduler->mutex);
}

/* A waiter in pull mode is woken only at the end, or when the engine is empty and the guard wants a block. */
GPSTI_INTERN void gpsti_flight_wake_waiters(gpst_pipeline* pipeline) {
    if (pipeline->n_waiters == 0 ||
        (pipeline->desc.source && !gpsti_flight_is_over(pipeline) && !gpsti_tune_wants_block(pipeline)))
        return;
    gpsti_cond_broadcast(&pipeline->progress);
    if (pipeline->context->scheduler->n_helpers > 0)
        gpsti_cond_broadcast(&pipeline->context->scheduler->work);
}

GPSTI_INTERN void gpsti_flight_put_slot(gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    slot->in_use = pipeline->source_rests = false;
    slot->next = pipeline->free_slots;
    pipeline->free_slots = slot;
    (void)gpsti_a32_add(&pipeline->in_flight, UINT32_MAX);
    gpsti_flight_time_full(pipeline);
    (void)gpsti_queue_wake_short(pipeline, UINT64_MAX);
    gpsti_flight_wake_waiters(pipeline);
}

GPSTI_INTERN void gpsti_flight_release_slot(gpsti_slot* slot) {
    gpsti_slot_give_back(slot);
    gpsti_flight_put_slot(slot);
}

GPSTI_INTERN void gpsti_flight_tell_dropped(gpst_pipeline* pipeline) {
    while (pipeline->dropped) {
        gpsti_slot* const slot = pipeline->dropped;
        pipeline->dropped = slot->next;
        slot->item.end_ns = gpsti_now_ns();
        gpsti_account_item(slot);
        gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
        gpsti_finish_discard(slot);
        gpsti_call_dropped(pipeline, &slot->item);
        gpsti_slot_release_frame(slot);
        gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
        gpsti_flight_release_slot(slot);
    }
}

GPSTI_INTERN void gpsti_flight_notice(gpst_pipeline* pipeline) {
    const bool cancel = gpsti_a32_load(&pipeline->cancel) != 0;
    if (cancel || gpsti_a32_load(&pipeline->stop) != 0)
        pipeline->source_done = pipeline->closed = true;
    if (cancel && !pipeline->cancel_noticed) {
        pipeline->cancel_noticed = true;
        gpst_reader_cancel(pipeline->reader);
    }
}

/* ---- where a job goes ------------------------------------------------------------------------- */

/* A failed item calls no stage any more. It still takes its turn in ordered steps, for which the next item waits. */
GPSTI_INTERN uint32_t gpsti_flight_next_step(const gpsti_slot* slot, uint32_t from) {
    const gpst_pipeline* const pipeline = slot->pipeline;
    uint32_t to = from + 1;
    while (gpsti_slot_has_failed(slot) && !pipeline->steps[to].ordered && pipeline->steps[to].kind != GPSTI_STEP_FINISH)
        to++;
    return to;
}

/* Queues the job at a step, where the next free worker takes it. Locked. */
GPSTI_INTERN void gpsti_flight_send(gpsti_job* job, uint32_t to) {
    gpst_pipeline* const pipeline = job->slot->pipeline;
    job->step = to;
    gpsti_queue_put(&pipeline->steps[to], job);
    gpsti_scheduler_wake(pipeline->context->scheduler);
}

GPSTI_INTERN void gpsti_flight_begin(gpsti_slot* slot) {
    gpsti_queue_enter_order(slot);
    gpsti_flight_send(&slot->job, gpsti_flight_next_step(slot, (uint32_t)-1));
}

/* ---- items for which other items left no memory ------------------------------------------------- */

/* An item cannot pass an ordered step twice, nor have a lent frame again that was given back, nor ask the source. */
GPSTI_PRIVATE bool gpsti_flight_is_repeatable(const gpsti_slot* slot) {
    const gpst_pipeline* const pipeline = slot->pipeline;
    const bool given_back = slot->has_frame && slot->release && !slot->borrowed;
    bool may = !slot->source_failed && !given_back && gpsti_a32_load(&pipeline->cancel) == 0;
    for (uint32_t s = 0; may && pipeline->steps[s].kind != GPSTI_STEP_FINISH; s++)
        may = !pipeline->steps[s].ordered;
    return may;
}

GPSTI_INTERN bool gpsti_flight_may_restart(const gpsti_slot* slot) {
    return gpsti_slot_has_failed(slot) && slot->item.result == GPST_ERROR_BUDGET && !slot->exclusive &&
           gpsti_a32_load(&slot->starved) != 0 && gpsti_flight_is_repeatable(slot);
}

GPSTI_INTERN void gpsti_flight_restart(gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpsti_slot** link = &pipeline->starved;
    gpsti_finish_discard(slot);
    gpsti_slot_begin_anew(slot);
    slot->exclusive = true;
    while (*link && (*link)->item.index < slot->item.index)
        link = &(*link)->next;
    slot->next = *link;
    *link = slot;
    (void)gpsti_queue_wake_short(pipeline, UINT64_MAX); /* it goes on no more: nobody may wait for it */
}

/* An item that waits in FINISH for its turn behind this one holds memory that this one may need: it restarts, too. */
GPSTI_INTERN gpsti_job* gpsti_flight_take_starved(gpst_pipeline* pipeline) {
    const uint32_t finish = pipeline->n_steps - 1;
    bool quiet = pipeline->starved && !pipeline->exclusive && gpsti_a32_load(&pipeline->executing) <= 1 &&
                 gpsti_a32_load(&pipeline->n_parked) == 0;
    for (uint32_t s = 0; quiet && s < pipeline->n_steps; s++)
        quiet = pipeline->steps[s].on_device == 0;
    if (!quiet)
        return NULL;
    for (uint32_t i = 0; i < pipeline->n_slots_made; i++)
        if (pipeline->slots[i]->waits_turn && pipeline->slots[i]->job.step == finish &&
            gpsti_flight_is_repeatable(pipeline->slots[i])) {
            pipeline->slots[i]->waits_turn = false;
            gpsti_flight_restart(pipeline->slots[i]);
        }
    gpsti_slot* const slot = pipeline->starved;
    pipeline->starved = slot->next;
    pipeline->exclusive = true;
    slot->started = slot->single = true;
    slot->job.step = 0;
    slot->job.ready_ns = 0;
    return &slot->job;
}
