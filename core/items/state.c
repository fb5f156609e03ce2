/* core/items/state.c -- what an item is doing: it moves from list to list, and comes back from where it was parked. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_INTERN bool gpsti_is_plain(const gpst_pipeline* pipeline) { return gpsti_a32_load(&pipeline->signals.open) == 0; }

GPSTI_INTERN uint32_t gpsti_items_n_under_way(const gpst_pipeline* pipeline) {
    const gpsti_item_list* const lists = pipeline->items.lists;
    return gpsti_a32_load(&pipeline->items.in_flight) - lists[GPSTI_ITEM_RESULT].n - lists[GPSTI_ITEM_HELD].n;
}

GPSTI_INTERN bool gpsti_item_has_failed(const gpsti_item* item) { return gpsti_a32_load(&item->failed) != 0; }

/* A thread has the item: nobody else takes what it has. */
GPSTI_PRIVATE void gpsti_grant_hold(gpsti_item* item) {
    const uint64_t used = gpsti_a64_load(&item->used[GPSTI_OF_DEVICE]);
    if (used > gpsti_a64_load(&item->grant[GPSTI_OF_DEVICE]))
        gpsti_grant_set(item, GPSTI_OF_DEVICE, used);
}

GPSTI_INTERN void gpsti_item_enter(gpsti_locked locked, gpsti_item* item, gpsti_item_state state) {
    gpsti_item_list* const lists = item->pipeline->items.lists;
    gpsti_item_list *const from = &lists[item->state], *const to = &lists[state];
    (void)locked;
    if (state == GPSTI_ITEM_RUNS)
        gpsti_grant_hold(item);
    *(item->previous ? &item->previous->next : &from->first) = item->next;
    *(item->next ? &item->next->previous : &from->last) = item->previous;
    from->n--;
    item->state = state;
    item->next = NULL;
    item->previous = to->last;
    *(to->last ? &to->last->next : &to->first) = item;
    to->last = item;
    to->n++;
}

GPSTI_INTERN void gpsti_batch_return(gpsti_locked locked, gpsti_batch* batch, gpst_result result) {
    batch->returned = true;
    batch->result = result;
    batch->item->pipeline->goes_on(locked, batch);
}
