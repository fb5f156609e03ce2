/* core/items/yield.c -- where memory is short and nobody works any more: who gives back what it has and begins anew,
   who goes on, and who is told that there is no more. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- items at rest -------------------------------------------------------------------------- */

/* What the item has, and no more; of the device what it needs from that step on, where others can take the rest. */
GPSTI_PRIVATE void gpsti_grant_keep(gpsti_item* item, uint32_t from, bool others_can) {
    gpsti_grant_set(item, GPSTI_OF_HOST, gpsti_a64_load(&item->used[GPSTI_OF_HOST]));
    gpsti_grant_set(item, GPSTI_OF_DEVICE,
                    item->work || !others_can ? gpsti_a64_load(&item->used[GPSTI_OF_DEVICE])
                                              : gpsti_sets_needed_bytes(item, from));
}

GPSTI_INTERN void gpsti_grant_rest(gpsti_locked locked, gpsti_item* item) {
    gpsti_grants_of(item)->n_items--;
    gpsti_grant_keep(item, item->pipeline->plan.n_steps, true);
    (void)gpsti_grants_serve(locked);
}

/* Does nobody else have memory of the device, nor may take any? */
GPSTI_PRIVATE bool gpsti_grant_is_alone_on_device(const gpsti_item* item) {
    const gpsti_grants* const grants = gpsti_grants_of(item);
    return gpsti_a64_load(&grants->used[GPSTI_OF_DEVICE]) == gpsti_a64_load(&item->used[GPSTI_OF_DEVICE]) &&
           gpsti_a64_load(&grants->granted[GPSTI_OF_DEVICE]) <= gpsti_a64_load(&item->grant[GPSTI_OF_DEVICE]);
}

/* Until it may have as much as it wants. */
GPSTI_PRIVATE void gpsti_waiter_park(gpsti_locked locked, gpsti_item* item) {
    gpsti_waiter* const waiter = &item->waiter;
    for (int m = 0; m < GPSTI_MEMORIES; m++) {
        waiter->bytes[m] = item->wants[m];
        item->wants[m] = 0;
    }
    waiter->item = item;
    waiter->answer = GPSTI_ANSWER_NONE;
    waiter->is_parked = true;
    waiter->has_yielded = false;
    gpsti_waiter_add(waiter);
    gpsti_item_enter(locked, item, GPSTI_ITEM_MEMORY);
}

/* There is room for it. */
GPSTI_PRIVATE bool gpsti_grant_widen(gpsti_item* item, int memory) {
    const uint64_t used = gpsti_a64_load(&item->used[memory]), wants = item->wants[memory];
    const uint64_t bytes = wants > used ? wants - used : 0, beyond = gpsti_grant_beyond(item, memory, bytes);
    if (beyond > 0 && (gpsti_grants_older_waits(item, memory) || !gpsti_grant_has_room(item, memory, bytes)))
        return false;
    gpsti_grant_set(item, memory, gpsti_a64_load(&item->grant[memory]) + beyond);
    return true;
}

GPSTI_INTERN bool gpsti_grant_park(gpsti_locked locked, gpsti_item* item) {
    const int lacks = item->wants[GPSTI_OF_DEVICE] > 0 ? GPSTI_OF_DEVICE : GPSTI_OF_HOST;
    const bool repeats = item->widened;
    item->widened = !repeats && gpsti_grant_widen(item, lacks); /* the account may be wrong: not twice in a row */
    item->denied = !item->widened && !gpsti_grants_older_waits(item, lacks) &&
                   (gpsti_grant_is_alone(item) || (lacks == GPSTI_OF_DEVICE && gpsti_grant_is_alone_on_device(item)));
    if (item->widened || item->denied) { /* it need not wait, or what it lacks nobody will give back */
        memset(item->wants, 0, sizeof item->wants);
        return true;
    }
    gpsti_grant_keep(item, item->batch.step, true);
    item->pipeline->memory.n_waited += lacks == GPSTI_OF_DEVICE ? 1 : 0;
    gpsti_waiter_park(locked, item);
    (void)gpsti_grants_serve(locked);
    return false;
}

/* ---- who may yield -------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_grants_move(gpsti_locked locked) {
    const gpsti_client* const head = &locked->scheduler->clients;
    if (!gpsti_scheduler_is_quiet(locked))
        return true;
    for (const gpsti_client* client = head->next; client != head; client = client->next) {
        const gpsti_item_list* const lists = ((const gpst_pipeline*)client)->items.lists;
        const gpst_pipeline* const pipeline = (const gpst_pipeline*)client;
        const bool loads = lists[GPSTI_ITEM_LOADS].n > 0 && !pipeline->plan.desc.source; /* a source's thread works */
        if (pipeline->files.n_writing > 0 || loads || lists[GPSTI_ITEM_FILE].n > 0 || lists[GPSTI_ITEM_DEVICE].n > 0 ||
            lists[GPSTI_ITEM_WRITER].n > 0)
            return true;
    }
    return false;
}

/* The first who waits; NULL: nobody, or somebody is on its way. */
GPSTI_PRIVATE gpsti_waiter* gpsti_grants_oldest(gpsti_locked locked) {
    for (const gpsti_waiter* waiter = locked->context->grants->waiters; waiter; waiter = waiter->next)
        if (waiter->answer != GPSTI_ANSWER_NONE)
            return NULL;
    return locked->context->grants->waiters;
}

/* Without the frame that came with it, and what it needs no more. */
GPSTI_PRIVATE uint64_t gpsti_item_has(const gpsti_item* item, int memory) {
    const uint64_t copied = item->given.has_frame ? item->sets[0].host[0].charged_bytes : 0;
    const uint64_t frame_bytes = copied + item->given.charged_bytes;
    return memory == GPSTI_OF_DEVICE ? gpsti_sets_needed_bytes(item, item->batch.step)
                                     : gpsti_a64_load(&item->used[GPSTI_OF_HOST]) - frame_bytes;
}

/* Would its end, or its beginning anew, give back memory of which the oldest lacks some? */
GPSTI_PRIVATE bool gpsti_item_helps(const gpsti_item* item, const gpsti_waiter* oldest) {
    const gpst_context* const context = item->pipeline->context;
    bool helps = false;
    for (int m = 0; m < GPSTI_MEMORIES; m++) {
        const bool lacks =
            gpsti_grant_beyond(oldest->item, m, gpsti_waiter_more(oldest, m)) > gpsti_grant_free(context, m);
        helps = helps || (lacks && gpsti_item_has(item, m) > 0);
    }
    return helps;
}

/* May it begin anew? No step has it, or just the one that asks for memory. */
GPSTI_PRIVATE bool gpsti_item_may_yield(const gpsti_item* item) {
    return item->pending == 0 && !gpsti_item_has_failed(item) && gpsti_item_is_repeatable(item);
}

/* A function that keeps an order is not called twice; a load is done later. */
GPSTI_PRIVATE bool gpsti_call_may_yield(const gpsti_waiter* waiter) {
    return waiter->is_call && (waiter->is_load || (!gpsti_batch_step(&waiter->item->batch)->ordered &&
                                                   gpsti_item_may_yield(waiter->item)));
}

/* The youngest that no thread has, and that stands in no queue. */
GPSTI_PRIVATE gpsti_item* gpsti_grants_find_item(gpsti_locked locked, const gpsti_waiter* oldest) {
    static const gpsti_item_state states[] = {GPSTI_ITEM_TURN, GPSTI_ITEM_MEMORY};
    gpsti_client* const head = &locked->scheduler->clients;
    gpsti_item* found = NULL;
    for (gpsti_client* client = head->next; client != head; client = client->next)
        for (int s = 0; s < 2; s++)
            for (gpsti_item* item = ((gpst_pipeline*)client)->items.lists[states[s]].first; item; item = item->next)
                if (item != oldest->item && (!found || item->age > found->age) && (s == 0 || item->waiter.is_parked) &&
                    gpsti_item_helps(item, oldest) && gpsti_item_may_yield(item))
                    found = item;
    return found;
}

/* Of the items that are ready to run, the one that came first; NULL: none is. */
GPSTI_PRIVATE const gpsti_item* gpsti_grants_first_queued(gpsti_locked locked) {
    const gpsti_client* const head = &locked->scheduler->clients;
    const gpsti_item* first = NULL;
    for (const gpsti_client* client = head->next; client != head; client = client->next) {
        const gpsti_item* item = ((const gpst_pipeline*)client)->items.lists[GPSTI_ITEM_QUEUED].first;
        for (; item && client->has_work(locked, client); item = item->next)
            first = !first || item->age < first->age ? item : first;
    }
    return first;
}

/* Of workers that wait inside of a call, the one with the youngest item. Where all of them do, and an older item is
   ready to run, it gives a thread back. */
GPSTI_PRIVATE gpsti_waiter* gpsti_grants_find_call(gpsti_locked locked, gpsti_waiter* oldest) {
    const gpsti_item* const queued = gpsti_grants_first_queued(locked);
    gpsti_waiter* found = NULL;
    for (gpsti_waiter* waiter = oldest; waiter; waiter = waiter->next) {
        const bool lacks_thread = queued && queued->age < waiter->item->age;
        if ((lacks_thread || (waiter != oldest && gpsti_item_helps(waiter->item, oldest))) &&
            gpsti_call_may_yield(waiter))
            found = waiter;
    }
    return found;
}

/* Of those who wait and have what the oldest lacks the youngest; else the oldest. */
GPSTI_PRIVATE gpsti_waiter* gpsti_grants_find_denied(gpsti_waiter* oldest) {
    gpsti_waiter* found = oldest;
    for (gpsti_waiter* waiter = oldest->next; waiter; waiter = waiter->next)
        if (gpsti_item_helps(waiter->item, oldest))
            found = waiter;
    return found;
}

/* ---- where nobody moves --------------------------------------------------------------------- */

/* What it has made is given back, and made again once there is memory for it: for as much as it wanted. */
GPSTI_PRIVATE void gpsti_grants_take_from(gpsti_locked locked, gpsti_item* item) {
    const bool waits = item->state == GPSTI_ITEM_MEMORY;
    for (int m = 0; m < GPSTI_MEMORIES; m++) {
        const uint64_t wants =
            waits ? gpsti_a64_load(&item->used[m]) + gpsti_waiter_more(&item->waiter, m) : item->wants[m];
        const uint64_t need = gpsti_grant_need(item->pipeline, m),
                       most = gpsti_grant_budget(item->pipeline->context, m);
        const uint64_t larger = wants > need ? wants : need;
        item->wants[m] = larger < most ? larger : most;
    }
    if (waits)
        gpsti_waiter_remove(&item->waiter);
    const uint64_t wants[GPSTI_MEMORIES] = {item->wants[GPSTI_OF_HOST], item->wants[GPSTI_OF_DEVICE]};
    gpsti_item_begin_anew(item);
    item->batch.step = gpsti_item_next_step(item, UINT32_MAX);
    gpsti_grant_keep(item, item->batch.step, true);
    memcpy(item->wants, wants, sizeof item->wants);
    item->pipeline->memory.n_restarted++;
    gpsti_waiter_park(locked, item);
    item->waiter.has_yielded = true;
}

/* With what is kept for the item that came first, or for older ones that cannot go, and what another item has. */
GPSTI_PRIVATE bool gpsti_waiter_fits_with(const gpsti_waiter* waiter, const gpsti_item* other) {
    bool fits = true;
    for (int m = 0; m < GPSTI_MEMORIES; m++)
        fits =
            fits && gpsti_grant_beyond(waiter->item, m, gpsti_waiter_more(waiter, m)) <=
                        gpsti_grant_free(waiter->item->pipeline->context, m) + (other ? gpsti_item_has(other, m) : 0);
    return fits;
}

/* Others could go on with what the oldest has. Once in its life, or two might give way to each other for ever. */
GPSTI_PRIVATE bool gpsti_waiter_is_in_the_way(const gpsti_waiter* oldest) {
    bool is = false;
    for (const gpsti_waiter* waiter = oldest->next; waiter && !is && !oldest->item->gave_way; waiter = waiter->next)
        is = !waiter->has_yielded && gpsti_waiter_fits_with(waiter, oldest->item);
    return is && (oldest->is_parked ? gpsti_item_may_yield(oldest->item) : gpsti_call_may_yield(oldest));
}

/* Results have what it lacks, and the cores cannot do without. */
GPSTI_PRIVATE bool gpsti_grants_need_user(const gpsti_waiter* oldest) {
    const gpst_pipeline* const pipeline = oldest->item->pipeline;
    const gpsti_item_list* const lists = pipeline->items.lists;
    const bool lacks_host = gpsti_grant_beyond(oldest->item, GPSTI_OF_HOST, gpsti_waiter_more(oldest, GPSTI_OF_HOST)) >
                            gpsti_grant_free(pipeline->context, GPSTI_OF_HOST);
    return lists[GPSTI_ITEM_RESULT].n + lists[GPSTI_ITEM_HELD].n > 0 &&
           (lacks_host || pipeline->context->require_backend);
}

/* What items have been granted and have not taken is nobody's now. */
GPSTI_PRIVATE bool gpsti_grants_reclaim(gpsti_locked locked) {
    static const gpsti_item_state states[] = {GPSTI_ITEM_LOADS, GPSTI_ITEM_RUNS, GPSTI_ITEM_QUEUED, GPSTI_ITEM_TURN,
                                              GPSTI_ITEM_MEMORY};
    gpsti_client* const head = &locked->scheduler->clients;
    for (gpsti_client* client = head->next; client != head; client = client->next)
        for (size_t s = 0; s < sizeof states / sizeof *states; s++)
            for (gpsti_item* item = ((gpst_pipeline*)client)->items.lists[states[s]].first; item; item = item->next)
                gpsti_grant_keep(item, item->batch.step, states[s] >= GPSTI_ITEM_QUEUED);
    return gpsti_grants_serve(locked);
}

/* The oldest goes on, where all that is free is enough; else the youngest item, or call, that may begin anew gives back
   what it lacks; else another one goes on; else the oldest gives back what others lack; else one is told that there is
   no more. True: nobody goes on for that yet. */
GPSTI_PRIVATE bool gpsti_grants_resolve_one(gpsti_locked locked) {
    gpsti_waiter* const oldest = gpsti_grants_oldest(locked);
    if (!oldest || gpsti_grants_move(locked))
        return false;
    if (gpsti_waiter_fits_with(oldest, NULL)) {
        gpsti_waiter_answer(locked, oldest, GPSTI_ANSWER_GOES);
        return false;
    }
    gpsti_item* const item = gpsti_grants_find_item(locked, oldest);
    gpsti_waiter* const call = item ? NULL : gpsti_grants_find_call(locked, oldest);
    if (item) {
        gpsti_grants_take_from(locked, item);
        return !gpsti_grants_serve(locked);
    }
    if (call) {
        gpsti_waiter_answer(locked, call, GPSTI_ANSWER_YIELDS);
        return false;
    }
    for (gpsti_waiter* waiter = oldest->next; waiter; waiter = waiter->next)
        if (!waiter->has_yielded && gpsti_waiter_fits_with(waiter, NULL)) {
            gpsti_waiter_answer(locked, waiter, GPSTI_ANSWER_GOES);
            return false;
        }
    if (gpsti_grants_need_user(oldest))
        return false;
    if (gpsti_waiter_is_in_the_way(oldest)) {
        oldest->item->gave_way = true;
        if (oldest->is_call) {
            gpsti_waiter_answer(locked, oldest, GPSTI_ANSWER_YIELDS);
            return false;
        }
        gpsti_grants_take_from(locked, oldest->item);
        return !gpsti_grants_serve(locked);
    }
    gpsti_waiter_answer(locked, gpsti_grants_find_denied(oldest), GPSTI_ANSWER_DENIED);
    return false;
}

GPSTI_INTERN bool gpsti_grants_resolve(gpsti_locked locked) {
    if (!gpsti_grants_oldest(locked) || gpsti_grants_move(locked))
        return false;
    if (!gpsti_grants_reclaim(locked))
        while (gpsti_grants_resolve_one(locked)) {}
    return true;
}

GPSTI_INTERN bool gpsti_grant_begins_anew(gpsti_locked locked, gpsti_item* item) {
    const bool begins = item->yields && (item->shown.result == GPST_ERROR_BUDGET || !gpsti_item_has_failed(item));
    item->yields = false;
    if (!begins)
        return false;
    gpsti_grants_take_from(locked, item);
    (void)gpsti_grants_serve(locked);
    return true;
}

GPSTI_INTERN bool gpsti_grants_wait_for_user(gpsti_locked locked, const gpst_pipeline* pipeline) {
    const gpsti_waiter* const oldest = gpsti_grants_oldest(locked);
    return oldest && oldest->item->pipeline == pipeline && !gpsti_grants_move(locked);
}
