/* core/pipeline/items.c -- the items of a pipeline: made, taken for an input, sent to a step, ended, free again. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

#include <string.h>

#define GPSTI_ITEMS_SAMPLE_NS 1000000 /* longer items have their CPU time read, of shorter ones every 16th */

/* ---- made ------------------------------------------------------------------------------------- */

/* Buffers that an item may have: file, pictures and counts, for each part its encoded data; on a device with memory of
   its own also pictures and counts there. */
GPSTI_PRIVATE uint32_t gpsti_items_n_pieces(const gpst_pipeline* pipeline) {
    const gpsti_plan* const plan = &pipeline->plan;
    uint32_t n_pictures = 1; /* the counts */
    for (uint32_t k = 0; k < plan->n_sets; k++)
        n_pictures += plan->sets[k].capacity;
    return 1 + n_pictures * (plan->device_on_host ? 1 : 2) + plan->n_parts;
}

/* Results that the user holds may need more items than were thought of. */
GPSTI_PRIVATE gpst_result gpsti_items_grow(gpst_pipeline* pipeline) {
    gpsti_items* const items = &pipeline->items;
    gpsti_host* const host = &pipeline->context->host;
    const uint32_t capacity = 2 * items->capacity;
    gpsti_item** const slots = (gpsti_item**)gpsti_alloc(host, capacity * sizeof *slots);
    if (!slots)
        return GPST_ERROR_MEMORY;
    memcpy(slots, items->slots, items->n_made * sizeof *slots);
    gpsti_free(host, items->slots, items->capacity * sizeof *slots);
    items->slots = slots;
    items->capacity = capacity;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_items_add(gpst_pipeline* pipeline) {
    gpsti_items* const items = &pipeline->items;
    gpsti_item_list* const free_ones = &items->lists[GPSTI_ITEM_FREE];
    if (items->n_made == items->capacity)
        GPSTI_TRY(gpsti_items_grow(pipeline));
    GPSTI_TRY(gpsti_item_create(pipeline, &items->slots[items->n_made]));
    gpsti_item* const item = items->slots[items->n_made++];
    item->previous = free_ones->last;
    *(free_ones->last ? &free_ones->last->next : &free_ones->first) = item;
    free_ones->last = item;
    free_ones->n++;
    return GPST_OK;
}

/* Sets aside the table entries for the items' buffers, so that none allocates one later. */
GPSTI_INTERN gpst_result gpsti_items_make(gpst_pipeline* pipeline, uint32_t n) {
    gpsti_memory* const memory = pipeline->context->memory;
    const uint32_t n_pieces = gpsti_items_n_pieces(pipeline);
    gpst_result result = GPST_OK;
    if (n <= pipeline->items.n_made)
        return GPST_OK;
    GPSTI_TRY(gpsti_blocks_set_aside(memory, (n - pipeline->items.n_made) * n_pieces));
    while (pipeline->items.n_made < n && !GPST_FAILED(result))
        result = gpsti_items_add(pipeline);
    gpsti_blocks_let_go(memory, (n - pipeline->items.n_made) * n_pieces);
    return result;
}

GPSTI_INTERN gpst_result gpsti_items_create(gpst_pipeline* pipeline) {
    gpsti_items* const items = &pipeline->items;
    gpsti_host* const host = &pipeline->context->host;
    items->cameras = (gpsti_camera*)gpsti_alloc(host, GPST_MAX_CAMERAS * sizeof *items->cameras);
    items->slots = (gpsti_item**)gpsti_alloc(host, items->capacity * sizeof *items->slots);
    if (!items->slots || !items->cameras)
        return GPST_ERROR_MEMORY;
    return gpsti_items_make(pipeline, 1); /* the others are made when workers begin */
}

GPSTI_INTERN void gpsti_items_destroy(gpst_pipeline* pipeline) {
    gpsti_items* const items = &pipeline->items;
    gpsti_host* const host = &pipeline->context->host;
    for (uint32_t i = 0; i < items->n_made; i++) {
        gpsti_item_destroy(items->slots[i]);
        gpsti_blocks_let_go(pipeline->context->memory, gpsti_items_n_pieces(pipeline));
    }
    if (items->slots)
        gpsti_free(host, items->slots, items->capacity * sizeof *items->slots);
    if (items->cameras)
        gpsti_free(host, items->cameras, GPST_MAX_CAMERAS * sizeof *items->cameras);
}

/* ---- what others wait for ---------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_items_are_over(const gpst_pipeline* pipeline) {
    const bool no_more = pipeline->plan.desc.source ? pipeline->items.source_done : pipeline->threads->closed;
    return no_more && gpsti_ends_are_over(pipeline) && !pipeline->threads->source_running &&
           gpsti_items_n_under_way(pipeline) == 0 && gpsti_a32_load(&pipeline->items.executing) == 0;
}

/* A waiter in pull mode is woken only at the end, or when the engine is empty and the guard wants a block. In a plain
   loop it is the one that works. */
GPSTI_INTERN void gpsti_items_wake_waiters(gpsti_locked locked, gpst_pipeline* pipeline) {
    if (pipeline->threads->n_waiters == 0 || (pipeline->plan.desc.source && pipeline->threads->has_workers &&
                                              !gpsti_items_are_over(pipeline) && !gpsti_tune_wants_block(pipeline)))
        return;
    gpsti_cond_broadcast(&pipeline->threads->progress);
    if (locked->scheduler->n_helpers > 0)
        gpsti_cond_broadcast(&locked->scheduler->work);
}

/* ---- taken ------------------------------------------------------------------------------------ */

/* Results have memory, and no place: as many as there are places may wait for whoever takes them. */
GPSTI_INTERN bool gpsti_items_may_begin(gpsti_locked locked, const gpst_pipeline* pipeline) {
    const uint32_t n_slots = pipeline->items.n_slots;
    return gpsti_items_n_under_way(pipeline) < n_slots && pipeline->items.lists[GPSTI_ITEM_RESULT].n < n_slots &&
           gpsti_grant_fits(locked, pipeline);
}

GPSTI_INTERN void gpsti_items_time_full(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = pipeline->tune;
    const bool full = gpsti_items_n_under_way(pipeline) >= pipeline->items.n_slots;
    if (full == (tune->full_since_ns != 0))
        return;
    const int64_t now_ns = gpsti_now_ns();
    tune->full_ns += full ? 0 : now_ns - tune->full_since_ns;
    tune->full_since_ns = full ? now_ns : 0;
}

/* Reading a thread's clock costs 400 ns. */
GPSTI_PRIVATE bool gpsti_items_samples_cpu(const gpst_pipeline* pipeline) {
    const gpsti_counts* const counts = &pipeline->counts;
    const int64_t n_done = (int64_t)(counts->items.ok + counts->items.failed);
    const int64_t spent_ns = (counts->end_ns - counts->start_ns) * (int64_t)pipeline->plan.n_active;
    return n_done == 0 || pipeline->items.next_index % 16 == 0 || spent_ns / n_done >= GPSTI_ITEMS_SAMPLE_NS;
}

GPSTI_INTERN gpsti_item* gpsti_items_take(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_items* const items = &pipeline->items;
    if (!gpsti_items_may_begin(locked, pipeline))
        return NULL;
    if (items->lists[GPSTI_ITEM_FREE].n == 0 && GPST_FAILED(gpsti_items_make(pipeline, items->n_made + 1))) {
        if (pipeline->plan.desc.source && items->n_made < items->n_slots) /* no more are to be had; */
            items->n_slots = items->n_made;                               /* who pushes is told each time */
        return NULL;
    }
    gpsti_item* const item = items->lists[GPSTI_ITEM_FREE].last; /* its caches are the warmest */
    gpsti_item_enter(locked, item, GPSTI_ITEM_LOADS);
    item->on_cpu = pipeline->signals.device_lost;
    item->samples_cpu = gpsti_items_samples_cpu(pipeline);
    (void)gpsti_a32_add(&items->in_flight, 1);
    gpsti_grant_begin(locked, item);
    const uint32_t n_busy = gpsti_items_n_under_way(pipeline);
    items->n_used = n_busy > items->n_used ? n_busy : items->n_used;
    gpsti_items_time_full(pipeline);
    return item;
}

GPSTI_INTERN void gpsti_items_put(gpsti_locked locked, gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    const bool ended = item->state == GPSTI_ITEM_HELD || item->state == GPSTI_ITEM_RESULT;
    if (!ended)
        gpsti_grant_rest(locked, item);
    gpsti_item_give_back(item);
    gpsti_item_enter(locked, item, GPSTI_ITEM_FREE);
    (void)gpsti_a32_add(&pipeline->items.in_flight, UINT32_MAX);
    pipeline->threads->source_rests = false;
    gpsti_items_time_full(pipeline);
    gpsti_grant_end(locked, item);
    gpsti_items_wake_waiters(locked, pipeline);
}

/* ---- sent --------------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_items_send(gpsti_locked locked, gpsti_batch* batch, uint32_t to) {
    batch->step = to;
    gpsti_queue_put(locked, batch);
    gpsti_scheduler_wake(locked);
}

GPSTI_INTERN void gpsti_items_begin(gpsti_locked locked, gpsti_item* item) {
    gpsti_queue_enter_order(locked, item);
    gpsti_items_send(locked, &item->batch, gpsti_item_next_step(item, UINT32_MAX));
}

/* ---- ended ---------------------------------------------------------------------------------------- */

/* Every item has served and no knob moves: from now on none calls the allocator any more. */
GPSTI_PRIVATE void gpsti_items_freeze(gpst_pipeline* pipeline) {
    gpsti_counts* const counts = &pipeline->counts;
    const bool settled = !pipeline->tune->on || pipeline->tune->tuner.state == GPSTI_TUNER_FROZEN;
    if (counts->frozen || !settled || pipeline->items.n_served < pipeline->items.n_slots)
        return;
    counts->frozen = true;
    counts->frozen_allocations = gpsti_a64_load(&pipeline->context->host.allocation_count) -
                                 gpsti_graph_cache_n_allocations(pipeline->plan.graphs);
    counts->frozen_growths = gpsti_count_growths(pipeline);
}

GPSTI_INTERN bool gpsti_items_end(gpsti_locked locked, gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_queue_leave_order(locked, item);
    gpsti_count_item(item);
    gpsti_grant_learn(locked, item);
    gpsti_items_freeze(pipeline);
    gpsti_tune_count(locked, item);
    const uint32_t keeping = gpsti_a32_exchange(&item->keeping, GPSTI_NOT_KEPT);
    if ((pipeline->plan.desc.sink || pipeline->plan.desc.source) && keeping == GPSTI_NOT_KEPT) {
        gpsti_items_put(locked, item);
        return false;
    }
    gpsti_item_enter(locked, item, keeping == GPSTI_NOT_KEPT ? GPSTI_ITEM_RESULT : GPSTI_ITEM_HELD);
    gpsti_grant_rest(locked, item);
    if (keeping >= GPSTI_RELEASED)
        gpsti_item_enter(locked, item, keeping == GPSTI_IS_BACK ? GPSTI_ITEM_RUNS : GPSTI_ITEM_DEVICE);
    pipeline->threads->source_rests = false; /* its frame may be back */
    gpsti_items_time_full(pipeline);
    gpsti_items_wake_waiters(locked, pipeline);
    return keeping == GPSTI_IS_BACK;
}

GPSTI_INTERN void gpsti_items_release(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    uint32_t released = GPSTI_RELEASED;
    if (gpsti_a32_cas(&item->keeping, &released, GPSTI_IS_BACK))
        return;
    gpsti_item_release_frame(item);
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    gpsti_item_enter(locked, item, GPSTI_ITEM_HELD); /* whose grant is at rest */
    gpsti_items_put(locked, item);
    gpsti_scheduler_wake(locked);
    gpsti_unlock(locked);
}

GPSTI_INTERN void gpsti_items_tell_dropped(gpsti_locked locked, gpst_pipeline* pipeline) {
    while (pipeline->items.lists[GPSTI_ITEM_DROPPED].n > 0) {
        gpsti_item* const item = pipeline->items.lists[GPSTI_ITEM_DROPPED].first;
        gpsti_item_enter(locked, item, GPSTI_ITEM_RUNS);
        item->shown.end_ns = gpsti_now_ns();
        gpsti_count_item(item);
        gpsti_unlock(locked);
        gpsti_item_discard_files(item);
        gpsti_call_dropped(pipeline, &item->shown);
        gpsti_item_release_frame(item);
        (void)gpsti_lock(pipeline->context);
        gpsti_items_put(locked, item);
    }
}
