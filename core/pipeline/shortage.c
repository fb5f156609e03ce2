/* core/pipeline/shortage.c -- what a pipeline does when its device has too little memory: gives memory back, waits for
   other items, or leaves an item to the CPU. Which of these, and when to try more again, is core/tuning/shortage.c's to
   say. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_INTERN bool gpsti_shortage_is(const gpsti_item* first, gpst_result result) {
    const bool is_memory = result == GPST_ERROR_DEVICE_MEMORY || result == GPST_ERROR_BUDGET;
    return is_memory && first->works[0].is_short && !first->on_cpu;
}

/* Locked. What slots between two items have, and what nobody needs of finished items and of those that wait in front of
   a step: the device's work for them is done. True: there is some; out as gpsti_place_take_unneeded has it. */
GPSTI_PRIVATE bool gpsti_shortage_take_of(gpst_pipeline* pipeline, gpsti_pieces* out) {
    bool any = false;
    for (gpsti_item* item = pipeline->items.free_slots; item; item = item->next)
        any = gpsti_place_take_unneeded(item, 0, out) || any;
    for (uint32_t c = 0; c < pipeline->items.n_cameras; c++)
        for (gpsti_item* item = pipeline->items.cameras[c].newest; item; item = item->older)
            any = (item->waits_turn && gpsti_place_take_unneeded(item, item->job.step, out)) || any;
    for (gpsti_item* item = pipeline->results.handed_out; item; item = item->next)
        any = gpsti_place_take_unneeded(item, pipeline->plan.n_steps, out) || any;
    for (gpsti_item* item = pipeline->results.first_result; item; item = item->next)
        any = gpsti_place_take_unneeded(item, pipeline->plan.n_steps, out) || any;
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++)
        for (gpsti_job* job = pipeline->plan.steps[s].head; job; job = job->next)
            any = (job == &job->item->job && !job->item->device_done && gpsti_place_take_unneeded(job->item, s, out)) ||
                  any;
    return any;
}

/* Locked. Of all pipelines of the context, and of a batch whose submission failed. */
GPSTI_PRIVATE bool gpsti_shortage_take(gpst_context* context, gpsti_item* failed, gpsti_pieces* out) {
    gpsti_client* const head = &context->scheduler->clients;
    bool any = false;
    for (gpsti_item* item = failed; item; item = item->next_in_batch)
        any = gpsti_place_take_unneeded(item, item->job.step, out) || any;
    for (gpsti_client* client = head->next; client != head; client = client->next)
        any = gpsti_shortage_take_of((gpst_pipeline*)client, out) || any;
    return any;
}

/* True: memory was given back; any: some was already. */
GPSTI_PRIVATE bool gpsti_shortage_free_unneeded(gpsti_item* failed, bool any) {
    gpst_pipeline* const pipeline = failed->pipeline;
    gpst_context* const context = pipeline->context;
    gpsti_pieces pieces;
    do {
        pieces.n = 0;
        gpsti_mutex_lock(&context->scheduler->mutex);
        (void)gpsti_shortage_take(context, failed, &pieces);
        any = any || pieces.n > 0;
        pipeline->memory.shortage.counts[GPSTI_RELIEF_FREE] += any && pieces.n < GPSTI_PIECES ? 1 : 0;
        gpsti_mutex_unlock(&context->scheduler->mutex);
        for (uint32_t i = 0; i < pieces.n; i++)
            gpsti_memory_release(context, &pieces.memory[i]);
    } while (pieces.n == GPSTI_PIECES);
    return any;
}

GPSTI_PRIVATE bool gpsti_shortage_drop_graphs(gpst_pipeline* pipeline) {
    gpst_graph_cache_info info;
    gpst_graph_cache_query_info(pipeline->plan.graphs, &info);
    if (info.n_graphs == 0)
        return false;
    gpst_graph_cache_trim(pipeline->plan.graphs);
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    pipeline->memory.shortage.counts[GPSTI_RELIEF_GRAPHS]++;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    return true;
}

/* Locked. The report has the first. */
GPSTI_PRIVATE void gpsti_shortage_set_reason(gpst_pipeline* pipeline, const char* reason) {
    if (!pipeline->memory.shortage_reason[0])
        gpsti_copy_text(pipeline->memory.shortage_reason, sizeof pipeline->memory.shortage_reason, reason);
}

GPSTI_INTERN bool gpsti_shortage_relieve(gpsti_item* first, const char* reason, bool freed) {
    gpst_pipeline* const pipeline = first->pipeline;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    gpsti_shortage_set_reason(pipeline, reason);
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    return gpsti_shortage_drop_graphs(pipeline) || gpsti_shortage_free_unneeded(first, freed);
}

/* Is there an item, in no wait, that goes on to its end or to a wait, where its memory may be taken? For an exclusive
   item those that have not begun wait, too, and others of its kind. */
GPSTI_PRIVATE bool gpsti_shortage_others_go_on(const gpsti_item* item) {
    const gpst_pipeline* const pipeline = item->pipeline;
    const bool rests = pipeline->memory.starved || pipeline->memory.exclusive;
    for (uint32_t c = 0; c < pipeline->items.n_cameras; c++)
        for (const gpsti_item* other = pipeline->items.cameras[c].newest; other; other = other->older)
            if (other != item && !other->waits_memory && !other->waits_turn && (other->started || !rests))
                return true;
    return false;
}

GPSTI_INTERN gpsti_relief gpsti_shortage_choose(const gpsti_item* first, const char* reason) {
    gpst_pipeline* const pipeline = first->pipeline;
    uint32_t n_items = 0;
    for (const gpsti_item* item = first; item; item = item->next_in_batch)
        n_items++;
    const uint32_t in_flight = gpsti_a32_load(&pipeline->items.in_flight) - pipeline->results.n_handed_out;
    gpsti_shortage_set_reason(pipeline, reason);
    if (gpsti_shortage_take(pipeline->context, NULL, NULL)) /* an item has come to a wait since the submission failed */
        return GPSTI_RELIEF_FREE;
    const bool waits =
        n_items == 1 && (gpsti_shortage_others_go_on(first) || gpsti_queue_wake_short(pipeline, first->shown.index));
    return gpsti_shortage_fail(&pipeline->memory.shortage, n_items, in_flight, waits);
}

GPSTI_INTERN void gpsti_shortage_skip(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    if (item->on_cpu || pipeline->context->require_backend || pipeline->plan.device_on_host ||
        !gpsti_shortage_skips_device(&pipeline->memory.shortage))
        return;
    item->on_cpu = true;
    pipeline->counts.device_fallbacks++;
}
