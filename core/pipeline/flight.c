/* core/pipeline/flight.c -- which items are in flight: slots taken and put, items dropped, and where a job goes next.
   All of it is locked. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#define GPSTI_FLIGHT_SAMPLE_NS 1000000 /* longer items have their CPU time read, of shorter ones every 16th */

GPSTI_INTERN bool gpsti_flight_is_plain(const gpst_pipeline* pipeline) {
    return gpsti_a32_load(&pipeline->flow.open) == 0;
}

/* ---- slots ------------------------------------------------------------------------------------ */

GPSTI_INTERN uint32_t gpsti_flight_n_under_way(const gpst_pipeline* pipeline) {
    return gpsti_a32_load(&pipeline->items.in_flight) - pipeline->results.n_handed_out - pipeline->results.n_untaken;
}

/* Too little device memory means fewer slots, but not for results that nobody has taken: who submits may be the one who
   takes them, when n_slots are in. */
GPSTI_PRIVATE uint32_t gpsti_flight_n_slots(const gpst_pipeline* pipeline) {
    const bool ends_by_itself = pipeline->plan.desc.source || pipeline->plan.desc.sink;
    return gpsti_shortage_limit(pipeline->items.n_slots, ends_by_itself ? pipeline->memory.shortage.slots_most : 0);
}

/* Results have memory, and no slot: as many as there are slots may wait for whoever takes them. */
GPSTI_INTERN bool gpsti_flight_has_slot(const gpst_pipeline* pipeline) {
    const uint32_t in_flight = gpsti_a32_load(&pipeline->items.in_flight), held = pipeline->results.n_handed_out;
    const uint32_t n_slots = gpsti_flight_n_slots(pipeline);
    const bool by_bytes = pipeline->plan.desc.source || held > 0 || in_flight >= n_slots;
    return gpsti_flight_n_under_way(pipeline) < n_slots && pipeline->results.n_untaken < n_slots &&
           (in_flight == 0 || !by_bytes || in_flight < gpsti_tune_n_fit(pipeline));
}

GPSTI_INTERN void gpsti_flight_time_full(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    const bool full = gpsti_flight_n_under_way(pipeline) >= pipeline->items.n_slots;
    if (full == (tune->full_since_ns != 0))
        return;
    const int64_t now_ns = gpsti_now_ns();
    tune->full_ns += full ? 0 : now_ns - tune->full_since_ns;
    tune->full_since_ns = full ? now_ns : 0;
}

/* Reading a thread's clock costs 400 ns. */
GPSTI_PRIVATE bool gpsti_flight_samples_cpu(const gpst_pipeline* pipeline) {
    const int64_t n_done = (int64_t)(pipeline->counts.items.ok + pipeline->counts.items.failed);
    const int64_t spent_ns = (pipeline->counts.end_ns - pipeline->counts.start_ns) * (int64_t)pipeline->flow.n_active;
    return n_done == 0 || pipeline->items.next_index % 16 == 0 || spent_ns / n_done >= GPSTI_FLIGHT_SAMPLE_NS;
}

GPSTI_INTERN gpsti_item* gpsti_flight_take_slot(gpst_pipeline* pipeline) {
    if (!gpsti_flight_has_slot(pipeline))
        return NULL;
    if (!pipeline->items.free_slots && GPST_FAILED(gpsti_items_make(pipeline, pipeline->items.n_slots_made + 1))) {
        if (pipeline->plan.desc.source) /* no more are to be had; who pushes is told each time */
            pipeline->items.n_slots = pipeline->items.n_slots_made;
        return NULL;
    }
    gpsti_item* const item = pipeline->items.free_slots;
    pipeline->items.free_slots = item->next;
    item->in_use = true;
    item->on_cpu = pipeline->flow.device_lost;
    item->samples_cpu = gpsti_flight_samples_cpu(pipeline);
    (void)gpsti_a32_add(&pipeline->items.in_flight, 1);
    if (gpsti_flight_n_under_way(pipeline) > pipeline->items.n_slots_used)
        pipeline->items.n_slots_used = gpsti_flight_n_under_way(pipeline);
    gpsti_flight_time_full(pipeline);
    return item;
}

GPSTI_INTERN bool gpsti_flight_is_over(const gpst_pipeline* pipeline) {
    const bool no_more = pipeline->plan.desc.source ? pipeline->flow.source_done : pipeline->flow.closed;
    return no_more && !pipeline->flow.source_running && gpsti_a32_load(&pipeline->items.in_flight) == 0 &&
           gpsti_a32_load(&pipeline->flow.executing) == 0;
}

GPSTI_INTERN void gpsti_flight_enter(gpst_pipeline* pipeline) {
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    pipeline->flow.n_inside++;
}

GPSTI_INTERN void gpsti_flight_leave(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    pipeline->flow.n_inside--;
    if (gpsti_a32_load(&pipeline->flow.cancel) != 0) /* as destroy does first */
        gpsti_cond_broadcast(&pipeline->flow.progress);
    gpsti_mutex_unlock(&scheduler->mutex);
}

/* A waiter in pull mode is woken only at the end, or when the engine is empty and the guard wants a block. */
GPSTI_INTERN void gpsti_flight_wake_waiters(gpst_pipeline* pipeline) {
    if (pipeline->flow.n_waiters == 0 ||
        (pipeline->plan.desc.source && !gpsti_flight_is_over(pipeline) && !gpsti_tune_wants_block(pipeline)))
        return;
    gpsti_cond_broadcast(&pipeline->flow.progress);
    if (pipeline->context->scheduler->n_helpers > 0)
        gpsti_cond_broadcast(&pipeline->context->scheduler->work);
}

GPSTI_INTERN void gpsti_flight_put_slot(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    item->in_use = pipeline->flow.source_rests = false;
    item->next = pipeline->items.free_slots;
    pipeline->items.free_slots = item;
    (void)gpsti_a32_add(&pipeline->items.in_flight, UINT32_MAX);
    gpsti_flight_time_full(pipeline);
    (void)gpsti_queue_wake_short(pipeline, UINT64_MAX);
    gpsti_flight_wake_waiters(pipeline);
}

GPSTI_INTERN void gpsti_flight_release_slot(gpsti_item* item) {
    gpsti_item_give_back(item);
    gpsti_flight_put_slot(item);
}

GPSTI_INTERN void gpsti_flight_tell_dropped(gpst_pipeline* pipeline) {
    while (pipeline->results.dropped) {
        gpsti_item* const item = pipeline->results.dropped;
        pipeline->results.dropped = item->next;
        item->shown.end_ns = gpsti_now_ns();
        gpsti_account_item(item);
        gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
        gpsti_finish_discard(item);
        gpsti_call_dropped(pipeline, &item->shown);
        gpsti_item_release_frame(item);
        gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
        gpsti_flight_release_slot(item);
    }
}

GPSTI_INTERN void gpsti_flight_notice(gpst_pipeline* pipeline) {
    const bool cancel = gpsti_a32_load(&pipeline->flow.cancel) != 0;
    if (cancel || gpsti_a32_load(&pipeline->flow.stop) != 0)
        pipeline->flow.source_done = pipeline->flow.closed = true;
    if (cancel && !pipeline->flow.cancel_noticed) {
        pipeline->flow.cancel_noticed = true;
        gpst_reader_cancel(pipeline->files.reader);
    }
}

/* ---- where a job goes ------------------------------------------------------------------------- */

/* A failed item calls no stage any more. It still takes its turn in ordered steps, for which the next item waits. */
GPSTI_INTERN uint32_t gpsti_flight_next_step(const gpsti_item* item, uint32_t from) {
    const gpst_pipeline* const pipeline = item->pipeline;
    uint32_t to = from + 1;
    while (gpsti_item_has_failed(item) && !pipeline->plan.steps[to].ordered &&
           pipeline->plan.steps[to].kind != GPSTI_STEP_FINISH)
        to++;
    return to;
}

/* Queues the job at a step, where the next free worker takes it. Locked. */
GPSTI_INTERN void gpsti_flight_send(gpsti_job* job, uint32_t to) {
    gpst_pipeline* const pipeline = job->item->pipeline;
    job->step = to;
    gpsti_queue_put(&pipeline->plan.steps[to], job);
    gpsti_scheduler_wake(pipeline->context->scheduler);
}

GPSTI_INTERN void gpsti_flight_begin(gpsti_item* item) {
    gpsti_queue_enter_order(item);
    gpsti_flight_send(&item->job, gpsti_flight_next_step(item, (uint32_t)-1));
}

/* ---- items for which other items left no memory ------------------------------------------------- */

/* An item cannot pass an ordered step twice, nor have a lent frame again that was given back, nor ask the source. */
GPSTI_PRIVATE bool gpsti_flight_is_repeatable(const gpsti_item* item) {
    const gpst_pipeline* const pipeline = item->pipeline;
    const bool given_back = item->has_frame && item->release && !item->borrowed;
    bool may = !item->source_failed && !given_back && gpsti_a32_load(&pipeline->flow.cancel) == 0;
    for (uint32_t s = 0; may && pipeline->plan.steps[s].kind != GPSTI_STEP_FINISH; s++)
        may = !pipeline->plan.steps[s].ordered;
    return may;
}

GPSTI_INTERN bool gpsti_flight_may_restart(const gpsti_item* item) {
    return gpsti_item_has_failed(item) && item->shown.result == GPST_ERROR_BUDGET && !item->exclusive &&
           gpsti_a32_load(&item->starved) != 0 && gpsti_flight_is_repeatable(item);
}

GPSTI_INTERN void gpsti_flight_restart(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_item** link = &pipeline->memory.starved;
    gpsti_finish_discard(item);
    gpsti_item_begin_anew(item);
    item->exclusive = true;
    while (*link && (*link)->shown.index < item->shown.index)
        link = &(*link)->next;
    item->next = *link;
    *link = item;
    (void)gpsti_queue_wake_short(pipeline, UINT64_MAX); /* it goes on no more: nobody may wait for it */
}

/* An item that waits in FINISH for its turn behind this one holds memory that this one may need: it restarts, too. */
GPSTI_INTERN gpsti_job* gpsti_flight_take_starved(gpst_pipeline* pipeline) {
    const uint32_t finish = pipeline->plan.n_steps - 1;
    bool quiet = pipeline->memory.starved && !pipeline->memory.exclusive &&
                 gpsti_a32_load(&pipeline->flow.executing) <= 1 && gpsti_a32_load(&pipeline->flow.n_parked) == 0;
    for (uint32_t s = 0; quiet && s < pipeline->plan.n_steps; s++)
        quiet = pipeline->plan.steps[s].on_device == 0;
    if (!quiet)
        return NULL;
    for (uint32_t i = 0; i < pipeline->items.n_slots_made; i++)
        if (pipeline->items.slots[i]->waits_turn && pipeline->items.slots[i]->job.step == finish &&
            gpsti_flight_is_repeatable(pipeline->items.slots[i])) {
            pipeline->items.slots[i]->waits_turn = false;
            gpsti_flight_restart(pipeline->items.slots[i]);
        }
    gpsti_item* const item = pipeline->memory.starved;
    pipeline->memory.starved = item->next;
    pipeline->memory.exclusive = true;
    item->started = item->single = true;
    item->job.step = 0;
    item->job.ready_ns = 0;
    return &item->job;
}
