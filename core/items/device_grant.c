/* core/items/device_grant.c -- memory of the device for items: granted, taken, and given back where nobody needs it. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

#define GPSTI_GRANT_TO_CORES 64 /* items that go to the cores at once, at most, before the device is asked again */

/* ---- a device that refuses ------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_grant_denied(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_shares* const shares = &pipeline->memory;
    (void)locked;
    shares->n_to_cores = shares->n_to_cores == 0                         ? 1
                         : shares->n_to_cores < GPSTI_GRANT_TO_CORES / 2 ? 2 * shares->n_to_cores
                                                                         : GPSTI_GRANT_TO_CORES;
    shares->cores_left = shares->n_to_cores - 1;
}

GPSTI_INTERN void gpsti_grant_served(gpsti_locked locked, gpst_pipeline* pipeline) {
    (void)locked;
    pipeline->memory.n_to_cores = 0;
}

GPSTI_INTERN bool gpsti_grant_skips_device(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_shares* const shares = &pipeline->memory;
    (void)locked;
    if (shares->cores_left == 0)
        return false;
    shares->cores_left--;
    return true;
}

/* ---- what nobody needs ----------------------------------------------------------------------- */

/* Of an item that no thread has. */
GPSTI_PRIVATE bool gpsti_grants_take_unneeded(gpst_pipeline* pipeline, gpsti_pieces* out) {
    static const gpsti_item_state states[] = {GPSTI_ITEM_FREE,   GPSTI_ITEM_QUEUED, GPSTI_ITEM_TURN,
                                              GPSTI_ITEM_MEMORY, GPSTI_ITEM_RESULT, GPSTI_ITEM_HELD};
    bool any = false;
    for (size_t s = 0; s < sizeof states / sizeof *states; s++)
        for (gpsti_item* item = pipeline->items.lists[states[s]].first; item; item = item->next) {
            const bool ended = item->state == GPSTI_ITEM_RESULT || item->state == GPSTI_ITEM_HELD;
            const uint32_t from = ended ? pipeline->plan.n_steps : item->batch.step;
            if (!item->batch.returned)
                any = gpsti_sets_take_unneeded(item, from, gpsti_sets_in_call(item), out) || any;
        }
    return any;
}

GPSTI_PRIVATE bool gpsti_grants_drop_graphs(gpst_pipeline* pipeline) {
    gpst_graph_cache_info info;
    gpst_graph_cache_query_info(pipeline->plan.graphs, &info);
    if (info.n_graphs > 0)
        gpst_graph_cache_trim(pipeline->plan.graphs);
    return info.n_graphs > 0;
}

GPSTI_INTERN bool gpsti_grants_trim(gpst_pipeline* pipeline) {
    gpst_context* const context = pipeline->context;
    bool any = gpsti_grants_drop_graphs(pipeline);
    gpsti_pieces pieces;
    do {
        pieces.n = 0;
        const gpsti_locked locked = gpsti_lock(context);
        gpsti_client* const head = &locked->scheduler->clients;
        for (gpsti_client* client = head->next; client != head; client = client->next)
            (void)gpsti_grants_take_unneeded((gpst_pipeline*)client, &pieces);
        any = any || pieces.n > 0;
        pipeline->memory.n_trimmed += any && pieces.n < GPSTI_PIECES ? 1 : 0;
        gpsti_unlock(locked);
        for (uint32_t i = 0; i < pieces.n; i++)
            gpsti_memory_release(context, &pieces.memory[i]);
    } while (pieces.n == GPSTI_PIECES);
    return any;
}

GPSTI_INTERN void gpsti_item_free_device(gpsti_item* item, gpst_buffer* memory) {
    if (!memory->data)
        return;
    gpsti_item_count_given(item, GPSTI_OF_DEVICE, memory);
    gpsti_memory_release(item->pipeline->context, memory);
}

/* The item's own memory on the device that it needs no more from that step on, but for that of sets in `keep`. True:
   there was some. The caller's thread has the item. */
GPSTI_PRIVATE bool gpsti_item_free_unneeded(gpsti_item* item, uint32_t from, uint32_t keep) {
    bool any = false;
    gpsti_pieces pieces;
    do {
        pieces.n = 0;
        any = gpsti_sets_take_unneeded(item, from, keep, &pieces) || any;
        for (uint32_t i = 0; i < pieces.n; i++)
            gpsti_memory_release(item->pipeline->context, &pieces.memory[i]);
    } while (pieces.n == GPSTI_PIECES);
    return any;
}

GPSTI_INTERN void gpsti_grant_settle(gpsti_item* item, uint32_t from) {
    const gpsti_grants* const grants = gpsti_grants_of(item);
    const gpsti_plan* const plan = &item->pipeline->plan;
    bool last = !item->on_cpu;
    for (uint32_t s = from; last && s < plan->n_steps; s++)
        last = !gpsti_step_is_device(plan, &plan->steps[s]);
    if (!last)
        return;
    gpsti_locked locked = gpsti_lock(item->pipeline->context);
    const bool is_short = grants->waiters || gpsti_a64_load(&grants->device_most) != UINT64_MAX;
    gpsti_unlock(locked);
    if (is_short)
        (void)gpsti_item_free_unneeded(item, from, 0);
    locked = gpsti_lock(item->pipeline->context);
    gpsti_grant_set(item, GPSTI_OF_DEVICE, gpsti_a64_load(&item->used[GPSTI_OF_DEVICE]));
    (void)gpsti_grants_serve(locked);
    gpsti_unlock(locked);
}

/* What nobody needs: the item's own first, then that of others. True: there was some. */
GPSTI_PRIVATE bool gpsti_item_make_room(gpsti_item* item) {
    const gpsti_step* const step = gpsti_batch_step(&item->batch);
    const bool own = gpsti_item_free_unneeded(item, step->index, step->needs | step->writes | item->moved);
    return gpsti_grants_trim(item->pipeline) || own;
}

/* ---- memory for an item ---------------------------------------------------------------------- */

/* Why something was done for want of device memory, the first time. */
GPSTI_PRIVATE void gpsti_grant_note(gpsti_item* item, uint64_t bytes) {
    gpst_context* const context = item->pipeline->context;
    gpsti_shares* const shares = &item->pipeline->memory;
    const gpsti_locked locked = gpsti_lock(context);
    if (!shares->reason[0])
        gpsti_format(shares->reason, sizeof shares->reason,
                     "device memory: max_device_bytes=%llu: others have too much for %llu more",
                     (unsigned long long)gpsti_grant_budget(context, GPSTI_OF_DEVICE), (unsigned long long)bytes);
    gpsti_unlock(locked);
}

/* Where the device itself has refused it is taken to have what it gave. */
GPSTI_PRIVATE void gpsti_grant_refused(gpsti_item* item, bool by_device) {
    gpst_context* const context = item->pipeline->context;
    gpsti_shares* const shares = &item->pipeline->memory;
    const gpsti_locked locked = gpsti_lock(context);
    if (by_device)
        gpsti_a64_store(&context->grants->device_most, gpsti_a64_load(&context->device_bytes));
    shares->n_refused++;
    if (!shares->reason[0])
        gpsti_copy_text(shares->reason, sizeof shares->reason, gpst_last_reason());
    gpsti_unlock(locked);
}

/* Within its grant, and as far as free items and graphs give memory back. */
GPSTI_PRIVATE gpst_result gpsti_grant_take_device(gpsti_item* item, size_t bytes, size_t rounded, const char* tag,
                                                  bool* by_device, gpst_buffer* out) {
    gpst_pipeline* const pipeline = item->pipeline;
    bool allows = item->denied || gpsti_grant_allows(item, GPSTI_OF_DEVICE, rounded);
    if (!allows) {
        gpsti_grant_note(item, bytes);
        (void)gpsti_item_make_room(item);
        allows = gpsti_grant_allows(item, GPSTI_OF_DEVICE, rounded);
    }
    GPSTI_FAIL_IF(!allows, GPST_ERROR_BUDGET, "device memory: max_device_bytes=%llu: others have too much for %zu more",
                  (unsigned long long)gpsti_grant_budget(pipeline->context, GPSTI_OF_DEVICE), bytes);
    gpst_result result =
        gpsti_memory_acquire_device(pipeline->context, bytes, tag, &pipeline->memory.device_growths, out);
    if (!GPST_FAILED(result))
        return result;
    if (result == GPST_ERROR_BUDGET)
        gpsti_grant_note(item, bytes);
    if (gpsti_item_make_room(item))
        result = gpsti_memory_acquire_device(pipeline->context, bytes, tag, &pipeline->memory.device_growths, out);
    *by_device = GPST_FAILED(result);
    return result;
}

GPSTI_INTERN bool gpsti_grant_prepare_device(gpsti_item* item) {
    const uint64_t used = gpsti_a64_load(&item->used[GPSTI_OF_DEVICE]);
    if (item->on_cpu || item->denied)
        return true;
    const gpsti_locked locked = gpsti_lock(item->pipeline->context);
    const uint64_t need =
        item->pipeline->memory.any_ended ? gpsti_grant_need(item->pipeline, GPSTI_OF_DEVICE) : 0; /* nothing is known */
    gpsti_unlock(locked);
    if (need <= used || gpsti_grant_allows(item, GPSTI_OF_DEVICE, need - used))
        return true;
    item->wants[GPSTI_OF_DEVICE] = need;
    gpsti_grant_note(item, need - used);
    return false;
}

GPSTI_INTERN gpst_result gpsti_item_reserve_device(gpsti_item* item, gpst_buffer* memory, size_t bytes,
                                                   const char* tag) {
    const size_t rounded = (bytes + GPSTI_MEMORY_PAGE - 1) / GPSTI_MEMORY_PAGE * GPSTI_MEMORY_PAGE;
    if (memory->data && memory->bytes >= bytes)
        return GPST_OK;
    gpsti_item_free_device(item, memory);
    bool by_device = false;
    const gpst_result result = gpsti_grant_take_device(item, bytes, rounded, tag, &by_device, memory);
    if (!GPST_FAILED(result)) {
        gpsti_item_count_taken(item, GPSTI_OF_DEVICE, memory);
        return result;
    }
    gpsti_grant_refused(item, by_device);
    item->wants[GPSTI_OF_DEVICE] = gpsti_a64_load(&item->used[GPSTI_OF_DEVICE]) + rounded;
    if (item->work)
        item->work->is_short = true;
    return result;
}
