/* core/items/grant.c -- memory for items, by age: the account, what an item may take when it begins, who waits for
   more, and the host's memory taken. Where nobody moves any more yield.c decides. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

#define GPSTI_GRANT_WINDOW 64 /* items whose largest tells what the next one will take, once and once more */
/* Until an item has ended well: this, a quarter of the budget if that is less, or twice what one has taken so far. */
#define GPSTI_GRANT_UNSEEN_BYTES ((uint64_t)64 << 20)
#define GPSTI_GRANT_LOOK_NS 50000000         /* between two looks at cancel, which a signal handler may set */
#define GPSTI_GRANT_AGES ((uint64_t)1 << 20) /* between two items; those of a run inside of the first come between */
#define GPSTI_GRANT_PROBE 64 /* of what a device that refused is taken to have, so much more with each item */

/* ---- the account --------------------------------------------------------------------------- */

GPSTI_INTERN gpsti_grants* gpsti_grants_of(const gpsti_item* item) { return item->pipeline->context->grants; }

GPSTI_INTERN uint64_t gpsti_grant_budget(const gpst_context* context, int memory) {
    const uint64_t device_most = gpsti_a64_load(&context->grants->device_most), budget = context->info.max_device_bytes;
    return memory == GPSTI_OF_HOST ? context->info.max_host_bytes : device_most < budget ? device_most : budget;
}

/* Of the budget, what neither items have nor may take, nor anybody else has: pools, rings, prefetchers. */
GPSTI_INTERN uint64_t gpsti_grant_free(const gpst_context* context, int memory) {
    const gpsti_grants* const grants = context->grants;
    const uint64_t lent = gpsti_a64_load(&context->memory->lent_bytes[memory]);
    const uint64_t used = gpsti_a64_load(&grants->used[memory]), budget = gpsti_grant_budget(context, memory);
    const uint64_t taken = gpsti_a64_load(&grants->granted[memory]) + (lent > used ? lent - used : 0);
    return budget > taken ? budget - taken : 0;
}

GPSTI_PRIVATE void gpsti_grant_add(gpsti_item* item, int memory, uint64_t bytes) {
    (void)gpsti_a64_add(&item->grant[memory], bytes);
    (void)gpsti_a64_add(&gpsti_grants_of(item)->granted[memory], bytes);
}

GPSTI_INTERN void gpsti_grant_set(gpsti_item* item, int memory, uint64_t bytes) {
    gpsti_grant_add(item, memory, bytes - gpsti_a64_load(&item->grant[memory]));
}

/* What so many bytes of the host's memory take. */
GPSTI_PRIVATE uint64_t gpsti_grant_class_bytes(size_t bytes) {
    gpsti_memory_request request;
    memset(&request, 0, sizeof request);
    request.asked_bytes = bytes;
    return GPST_FAILED(gpsti_memory_classify(&request)) ? UINT64_MAX / 4 : request.bytes;
}

/* What the item would have beyond its grant with so many bytes more. */
GPSTI_INTERN uint64_t gpsti_grant_beyond(const gpsti_item* item, int memory, uint64_t bytes) {
    const uint64_t after = gpsti_a64_load(&item->used[memory]) + bytes, grant = gpsti_a64_load(&item->grant[memory]);
    return after > grant ? after - grant : 0;
}

GPSTI_INTERN void gpsti_item_count_taken(gpsti_item* item, int memory, const gpst_buffer* buffer) {
    gpsti_a64* const most = &item->pipeline->memory.taken[memory];
    const uint64_t bytes = gpsti_a64_add(&item->used[memory], buffer->charged_bytes) + buffer->charged_bytes;
    uint64_t seen = gpsti_a64_load(most);
    (void)gpsti_a64_add(&gpsti_grants_of(item)->used[memory], buffer->charged_bytes);
    const uint64_t grant = gpsti_a64_load(&item->grant[memory]);
    if (bytes > grant) /* sizes are rounded up */
        gpsti_grant_add(item, memory, bytes - grant);
    if (memory == GPSTI_OF_HOST)
        (void)gpsti_a64_add(&item->host_bytes, buffer->bytes);
    while (bytes > seen && !gpsti_a64_cas(most, &seen, bytes)) {}
}

GPSTI_INTERN void gpsti_item_count_given(gpsti_item* item, int memory, const gpst_buffer* buffer) {
    (void)gpsti_a64_add(&item->used[memory], (uint64_t)0 - buffer->charged_bytes);
    (void)gpsti_a64_add(&gpsti_grants_of(item)->used[memory], (uint64_t)0 - buffer->charged_bytes);
    if (memory == GPSTI_OF_HOST)
        (void)gpsti_a64_add(&item->host_bytes, (uint64_t)0 - buffer->bytes);
}

/* ---- items begin and end ------------------------------------------------------------------- */

/* What the next item will take: as the largest of the latest; of the host, where sizes are rounded up, an eighth more.
   */
GPSTI_INTERN uint64_t gpsti_grant_need(const gpst_pipeline* pipeline, int memory) {
    const gpsti_shares* const shares = &pipeline->memory;
    const uint64_t taken = gpsti_a64_load(&shares->taken[memory]), latest = shares->most[0][memory];
    const uint64_t most = latest > shares->most[1][memory] ? latest : shares->most[1][memory];
    const uint64_t budget = gpsti_grant_budget(pipeline->context, memory);
    uint64_t need = most + (memory == GPSTI_OF_HOST ? most / 8 : 0);
    if (memory == GPSTI_OF_DEVICE && (pipeline->plan.device_on_host || pipeline->signals.device_lost))
        return 0;
    if (!shares->any_ended) {
        const uint64_t unseen = GPSTI_GRANT_UNSEEN_BYTES < budget / 4 ? GPSTI_GRANT_UNSEEN_BYTES : budget / 4;
        need = 2 * taken > unseen ? 2 * taken : unseen;
    }
    return need < budget ? need : budget;
}

/* Has nobody else memory, neither items nor results? */
GPSTI_INTERN bool gpsti_grant_is_alone(const gpsti_item* item) {
    const gpsti_grants* const grants = gpsti_grants_of(item);
    return grants->n_items <= 1 &&
           gpsti_a64_load(&grants->used[GPSTI_OF_HOST]) == gpsti_a64_load(&item->used[GPSTI_OF_HOST]);
}

GPSTI_INTERN bool gpsti_grant_fits(gpsti_locked locked, const gpst_pipeline* pipeline) {
    const gpst_context* const context = pipeline->context;
    (void)locked;
    return (context->grants->n_items == 0 && gpsti_a64_load(&context->grants->used[GPSTI_OF_HOST]) == 0) ||
           gpsti_grant_need(pipeline, GPSTI_OF_HOST) <= gpsti_grant_free(context, GPSTI_OF_HOST);
}

/* Device memory that it does not find now it asks for when it comes to the device. */
GPSTI_INTERN void gpsti_grant_begin(gpsti_locked locked, gpsti_item* item) {
    gpsti_grants* const grants = gpsti_grants_of(item);
    gpsti_shares* const shares = &item->pipeline->memory;
    (void)locked;
    shares->n_begun += shares->n_begun + 1 < GPSTI_GRANT_AGES ? 1 : 0;
    item->age = shares->age > 0 ? shares->age + shares->n_begun : (grants->next_age += GPSTI_GRANT_AGES);
    grants->n_items++;
    const uint64_t device_most = gpsti_a64_load(&grants->device_most);
    if (device_most != UINT64_MAX)
        gpsti_a64_store(&grants->device_most, device_most + device_most / GPSTI_GRANT_PROBE + GPSTI_MEMORY_PAGE);
    for (int m = 0; m < GPSTI_MEMORIES; m++) {
        const uint64_t need = gpsti_grant_need(item->pipeline, m);
        const bool fits = m == GPSTI_OF_HOST || need <= gpsti_grant_free(item->pipeline->context, m);
        gpsti_grant_set(item, m, fits ? need : 0);
    }
}

GPSTI_INTERN void gpsti_grant_learn(gpsti_locked locked, const gpsti_item* item) {
    gpsti_shares* const shares = &item->pipeline->memory;
    (void)locked;
    if (item->shown.result != GPST_OK)
        return;
    shares->any_ended = true;
    for (int m = 0; m < GPSTI_MEMORIES; m++) {
        const uint64_t used = gpsti_a64_load(&item->used[m]);
        if (shares->n_seen == GPSTI_GRANT_WINDOW) {
            shares->most[1][m] = shares->most[0][m];
            shares->most[0][m] = 0;
        }
        shares->most[0][m] = used > shares->most[0][m] ? used : shares->most[0][m];
    }
    shares->n_seen = shares->n_seen == GPSTI_GRANT_WINDOW ? 1 : shares->n_seen + 1;
}

/* On the device a free item keeps what it has; whoever needs it takes it (gpsti_grants_trim). */
GPSTI_INTERN void gpsti_grant_end(gpsti_locked locked, gpsti_item* item) {
    for (int m = 0; m < GPSTI_MEMORIES; m++)
        gpsti_grant_set(item, m, 0);
    (void)gpsti_grants_serve(locked);
    gpsti_scheduler_wake(locked);         /* items of other pipelines may begin */
    (void)gpsti_scheduler_settle(locked); /* it may be the user who gave a result back */
}

/* ---- who waits ------------------------------------------------------------------------------ */

GPSTI_INTERN uint64_t gpsti_waiter_more(const gpsti_waiter* waiter, int memory) {
    const uint64_t has = waiter->is_parked ? gpsti_a64_load(&waiter->item->used[memory]) : 0;
    return waiter->bytes[memory] > has ? waiter->bytes[memory] - has : 0;
}

GPSTI_INTERN void gpsti_waiter_add(gpsti_waiter* waiter) {
    gpsti_waiter** link = &gpsti_grants_of(waiter->item)->waiters;
    while (*link && (*link)->item->age <= waiter->item->age)
        link = &(*link)->next;
    waiter->next = *link;
    *link = waiter;
}

GPSTI_INTERN void gpsti_waiter_remove(gpsti_waiter* waiter) {
    gpsti_waiter** link = &gpsti_grants_of(waiter->item)->waiters;
    while (*link != waiter)
        link = &(*link)->next;
    *link = waiter->next;
}

/* Of the context's items in flight, the one that came first. */
GPSTI_PRIVATE const gpsti_item* gpsti_grants_first_item(const gpst_context* context) {
    const gpsti_client* const head = &context->scheduler->clients;
    const gpsti_item* first = NULL;
    for (const gpsti_client* client = head->next; client != head; client = client->next)
        for (int s = GPSTI_ITEM_LOADS; s < GPSTI_ITEM_RESULT; s++)
            for (const gpsti_item* item = ((const gpst_pipeline*)client)->items.lists[s].first; item; item = item->next)
                first = !first || item->age < first->age ? item : first;
    return first;
}

/* What must stay free when the item has so much: the item that came first may need as much as this one, or as the
   largest so far. */
GPSTI_PRIVATE uint64_t gpsti_grant_reserve(const gpsti_item* item, int memory, uint64_t after, uint64_t left) {
    const uint64_t seen = gpsti_a64_load(&item->pipeline->memory.taken[memory]), most = after > seen ? after : seen;
    const gpsti_item* const first = left >= most ? NULL : gpsti_grants_first_item(item->pipeline->context);
    const uint64_t grant = first ? gpsti_a64_load(&first->grant[memory]) : most;
    return first == item || grant >= most ? 0 : most - grant;
}

/* May the item have so many bytes more? */
GPSTI_INTERN bool gpsti_grant_has_room(const gpsti_item* item, int memory, uint64_t bytes) {
    const uint64_t beyond = gpsti_grant_beyond(item, memory, bytes);
    const uint64_t room = gpsti_grant_free(item->pipeline->context, memory);
    return beyond == 0 ||
           (beyond <= room && gpsti_grant_reserve(item, memory, gpsti_a64_load(&item->used[memory]) + bytes,
                                                  room - beyond) <= room - beyond);
}

/* One item alone may try whatever is there. *held: of the memories, those for which an older one waits. */
GPSTI_PRIVATE bool gpsti_waiter_fits(const gpsti_waiter* waiter, bool* held) {
    bool fits = true;
    for (int m = 0; m < GPSTI_MEMORIES; m++)
        fits = fits && (gpsti_grant_beyond(waiter->item, m, gpsti_waiter_more(waiter, m)) == 0 ||
                        (!held[m] && gpsti_grant_has_room(waiter->item, m, gpsti_waiter_more(waiter, m))));
    for (int m = 0; m < GPSTI_MEMORIES; m++)
        held[m] = held[m] || (!fits && gpsti_waiter_more(waiter, m) > 0);
    return fits || gpsti_grant_is_alone(waiter->item);
}

/* A parked item goes on in its step; a thread looks again. */
GPSTI_INTERN void gpsti_waiter_answer(gpsti_locked locked, gpsti_waiter* waiter, gpsti_answer answer) {
    waiter->answer = answer;
    for (int m = 0; m < GPSTI_MEMORIES && answer == GPSTI_ANSWER_GOES; m++)
        gpsti_grant_add(waiter->item, m, gpsti_grant_beyond(waiter->item, m, gpsti_waiter_more(waiter, m)));
    if (!waiter->is_parked) {
        gpsti_cond_broadcast(&gpsti_grants_of(waiter->item)->changed);
        return;
    }
    gpsti_waiter_remove(waiter);
    waiter->is_parked = false;
    waiter->item->denied = answer == GPSTI_ANSWER_DENIED;
    waiter->item->pipeline->goes_on(locked, &waiter->item->batch);
}

GPSTI_INTERN bool gpsti_grants_serve(gpsti_locked locked) {
    bool held[GPSTI_MEMORIES] = {false, false}, any = false;
    for (gpsti_waiter *waiter = locked->context->grants->waiters, *next = NULL; waiter; waiter = next) {
        next = waiter->next;
        const bool cancelled = gpsti_a32_load(&waiter->item->pipeline->signals.cancel) != 0;
        if (waiter->answer != GPSTI_ANSWER_NONE || (!cancelled && !gpsti_waiter_fits(waiter, held)))
            continue;
        gpsti_waiter_answer(locked, waiter, cancelled ? GPSTI_ANSWER_DENIED : GPSTI_ANSWER_GOES);
        any = true;
    }
    return any;
}

/* Does an older item wait for that memory? */
GPSTI_INTERN bool gpsti_grants_older_waits(const gpsti_item* item, int memory) {
    const gpsti_waiter* older = gpsti_grants_of(item)->waiters;
    while (older && gpsti_waiter_more(older, memory) == 0)
        older = older->next;
    return older && older->item->age < item->age;
}

/* ---- memory for an item ---------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_item_check_budget(gpsti_item* item, size_t old_bytes, size_t new_bytes) {
    const uint64_t max_bytes = item->pipeline->plan.desc.max_item_bytes;
    const uint64_t held = gpsti_a64_load(&item->host_bytes);
    GPSTI_FAIL_IF(max_bytes != 0 && held - old_bytes + new_bytes > max_bytes, GPST_ERROR_BUDGET,
                  "item needs %llu bytes of host memory: max_item_bytes=%llu allows no more",
                  (unsigned long long)(held - old_bytes + new_bytes), (unsigned long long)max_bytes);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_item_lacks_memory(const gpsti_item* item, size_t bytes) {
    gpst_context* const context = item->pipeline->context;
    const uint64_t own = gpsti_a64_load(&item->used[GPSTI_OF_HOST]);
    const uint64_t all = gpsti_a64_load(&context->memory->lent_bytes[GPSTI_OF_HOST]);
    const uint64_t others = all > own ? all - own : 0;
    const gpsti_locked locked = gpsti_lock(context);
    const uint32_t held = item->pipeline->items.lists[GPSTI_ITEM_HELD].n;
    gpsti_unlock(locked);
    char rule[96] = "too little for it alone";
    if (others > 0)
        gpsti_format(rule, sizeof rule, "of which others have %llu", (unsigned long long)others);
    if (held > 0)
        gpsti_format(rule + strlen(rule), sizeof rule - strlen(rule), ", and %u results are held", held);
    return gpsti_fail(GPST_ERROR_BUDGET, "item has %llu bytes and needs %llu more: max_host_bytes=%llu, %s",
                      (unsigned long long)own, (unsigned long long)bytes,
                      (unsigned long long)context->info.max_host_bytes, rule);
}

/* Beyond its grant an item may take what is free, unless an older one waits for that memory. */
GPSTI_INTERN bool gpsti_grant_allows(gpsti_item* item, int memory, uint64_t bytes) {
    gpst_context* const context = item->pipeline->context;
    if (gpsti_grant_beyond(item, memory, bytes) == 0)
        return true;
    const gpsti_locked locked = gpsti_lock(context);
    const bool allows = gpsti_grant_is_alone(item) ||
                        (!gpsti_grants_older_waits(item, memory) && gpsti_grant_has_room(item, memory, bytes));
    if (allows)
        gpsti_grant_add(item, memory, gpsti_grant_beyond(item, memory, bytes));
    gpsti_unlock(locked);
    return allows;
}

GPSTI_PRIVATE void gpsti_waiter_wait(gpsti_locked locked, gpsti_waiter* waiter) {
    gpsti_item* const item = waiter->item;
    const gpsti_item_state state = item->state;
    const bool moves = item->pending == 0; /* else other threads have parts of it */
    if (moves)
        gpsti_item_enter(locked, item, GPSTI_ITEM_MEMORY);
    if (waiter->is_call) { /* another thread may have its place meanwhile */
        (void)gpsti_a32_add(&item->pipeline->items.executing, UINT32_MAX);
        gpsti_scheduler_wake(locked);
    }
    while (waiter->answer == GPSTI_ANSWER_NONE && !gpsti_a32_load(&item->pipeline->signals.cancel) &&
           gpsti_now_ns() < waiter->until_ns) {
        const bool worked = gpsti_work_rests(locked);
        const int64_t look_ns = gpsti_now_ns() + GPSTI_GRANT_LOOK_NS;
        if (waiter->answer == GPSTI_ANSWER_NONE)
            (void)gpsti_cond_wait_until(&gpsti_grants_of(item)->changed, &locked->scheduler->mutex,
                                        look_ns < waiter->until_ns ? look_ns : waiter->until_ns);
        gpsti_work_goes_on(locked, worked);
    }
    if (waiter->is_call)
        (void)gpsti_a32_add(&item->pipeline->items.executing, 1);
    if (moves)
        gpsti_item_enter(locked, item, state);
}

/* Inside of a call: waits until it is its turn, and others have given enough back. */
GPSTI_PRIVATE gpst_result gpsti_grant_wait(gpsti_item* item, size_t bytes, bool is_filled, gpst_buffer* out) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_waiter waiter;
    gpst_result result = GPST_ERROR_BUDGET;
    memset(&waiter, 0, sizeof waiter);
    waiter.item = item;
    waiter.bytes[GPSTI_OF_HOST] = gpsti_grant_class_bytes(bytes);
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    waiter.is_load = item->state == GPSTI_ITEM_LOADS;
    waiter.is_call = gpsti_scheduler_works_here(locked->scheduler) && (!waiter.is_load || pipeline->plan.desc.source);
    waiter.until_ns = waiter.is_load ? item->given.until_ns : GPST_FOREVER;
    gpsti_waiter_add(&waiter);
    (void)gpsti_grants_serve(locked);
    for (bool more = true; more;) {
        gpsti_waiter_wait(locked, &waiter);
        if (waiter.answer == GPSTI_ANSWER_NONE || waiter.answer == GPSTI_ANSWER_YIELDS) {
            result = waiter.answer == GPSTI_ANSWER_NONE && gpsti_now_ns() >= waiter.until_ns ? GPST_ERROR_WOULD_BLOCK
                                                                                             : GPST_ERROR_BUDGET;
            break;
        }
        const bool last = waiter.answer == GPSTI_ANSWER_DENIED || gpsti_grant_is_alone(item);
        gpsti_unlock(locked);
        result = gpsti_pool_acquire_now(pipeline->plan.pool, bytes, is_filled, out);
        result = result == GPST_ERROR_WOULD_BLOCK ? GPST_ERROR_BUDGET : result;
        more = result == GPST_ERROR_BUDGET &&
               (!last || gpsti_caches_wait(pipeline->context->memory, gpsti_now_ns() + GPSTI_GRANT_LOOK_NS));
        (void)gpsti_lock(pipeline->context);
        if (more && !last) { /* it was given a larger piece, or others have taken it */
            waiter.answer = GPSTI_ANSWER_NONE;
            waiter.bytes[GPSTI_OF_HOST] += waiter.bytes[GPSTI_OF_HOST] / 8;
        }
    }
    gpsti_waiter_remove(&waiter);
    if (waiter.answer == GPSTI_ANSWER_YIELDS) { /* others have it: the item begins anew (gpsti_grant_begins_anew) */
        item->yields = true;
        item->wants[GPSTI_OF_HOST] = gpsti_a64_load(&item->used[GPSTI_OF_HOST]) + waiter.bytes[GPSTI_OF_HOST];
    }
    (void)gpsti_grants_serve(locked);
    gpsti_unlock(locked);
    return result == GPST_ERROR_BUDGET ? gpsti_item_lacks_memory(item, bytes) : result;
}

GPSTI_PRIVATE gpst_result gpsti_grant_take(gpsti_item* item, size_t bytes, bool is_filled, bool waits,
                                           gpst_buffer* out) {
    gpst_result result = GPST_ERROR_WOULD_BLOCK;
    if (item->denied || gpsti_grant_allows(item, GPSTI_OF_HOST, gpsti_grant_class_bytes(bytes)))
        result = gpsti_pool_acquire_now(item->pipeline->plan.pool, bytes, is_filled, out);
    if (result != GPST_ERROR_WOULD_BLOCK && result != GPST_ERROR_BUDGET)
        return result;
    if (gpsti_a64_load(&item->used[GPSTI_OF_HOST]) + gpsti_grant_class_bytes(bytes) >
        item->pipeline->context->info.max_host_bytes)
        return result == GPST_ERROR_BUDGET ? result : gpsti_item_lacks_memory(item, bytes); /* not even alone */
    if (waits)
        return gpsti_grant_wait(item, bytes, is_filled, out);
    item->wants[GPSTI_OF_HOST] = gpsti_a64_load(&item->used[GPSTI_OF_HOST]) + gpsti_grant_class_bytes(bytes);
    return gpsti_fail(GPST_ERROR_WOULD_BLOCK, "item needs %llu bytes more", (unsigned long long)bytes);
}

GPSTI_PRIVATE void gpsti_item_give_up(gpsti_item* item, gpst_buffer* buffer) {
    gpsti_item_count_given(item, GPSTI_OF_HOST, buffer);
    gpst_pool_release(item->pipeline->plan.pool, buffer);
}

GPSTI_PRIVATE gpst_result gpsti_item_acquire(gpsti_item* item, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                             bool is_filled, bool waits) {
    gpst_buffer larger = GPST_ZERO;
    if (buffer->data && buffer->bytes >= bytes)
        return GPST_OK;
    GPSTI_TRY(gpsti_item_check_budget(item, buffer->bytes, bytes));
    if (keep_bytes == 0 && buffer->data)
        gpsti_item_give_up(item, buffer);
    GPSTI_TRY(gpsti_grant_take(item, bytes, is_filled, waits, &larger));
    if (buffer->data) {
        memcpy(larger.data, buffer->data, keep_bytes);
        gpsti_item_give_up(item, buffer);
    }
    *buffer = larger;
    gpsti_item_count_taken(item, GPSTI_OF_HOST, buffer);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_item_reserve(gpsti_item* item, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                            bool is_filled) {
    return gpsti_item_acquire(item, buffer, bytes, keep_bytes, is_filled, true);
}

GPSTI_INTERN gpst_result gpsti_item_reserve_now(gpsti_item* item, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                                bool is_filled) {
    return gpsti_item_acquire(item, buffer, bytes, keep_bytes, is_filled, false);
}

/* It counts as lent, and for no item. */
GPSTI_INTERN gpst_result gpsti_item_take_memory(gpsti_item* item, size_t bytes, gpst_buffer* out) {
    const uint64_t before = gpsti_a64_load(&item->grant[GPSTI_OF_HOST]);
    const gpst_result result = gpsti_grant_take(item, bytes, true, true, out);
    const uint64_t after = gpsti_a64_load(&item->grant[GPSTI_OF_HOST]);
    if (!GPST_FAILED(result) && after > before)
        gpsti_grant_add(item, GPSTI_OF_HOST, before - after);
    return result;
}

GPSTI_PRIVATE void gpsti_item_give_back_one(gpsti_item* item, gpst_buffer* buffer) {
    if (buffer->data)
        gpst_pool_release(item->pipeline->plan.pool, buffer);
    memset(buffer, 0, sizeof *buffer);
}

/* In reverse order of taking, since the pool lends what came back last: the next file is read into the buffer of this
   one, still in the cache, and few sets of pictures are ever touched. */
GPSTI_INTERN void gpsti_item_give_back(gpsti_item* item) {
    const gpsti_plan* const plan = &item->pipeline->plan;
    for (uint32_t i = plan->n_parts; i-- > 0;)
        for (gpsti_output_file* file = item->parts[i].files; file; file = file->next)
            gpsti_item_give_back_one(item, &file->room);
    for (uint32_t k = plan->n_sets; k-- > 0;)
        for (uint32_t i = plan->sets[k].capacity; i-- > 0;)
            gpsti_item_give_back_one(item, &item->sets[k].host[i]);
    gpsti_item_give_back_one(item, &item->counts_on_host);
    gpsti_item_give_back_one(item, &item->file);
    (void)gpsti_a64_add(&gpsti_grants_of(item)->used[GPSTI_OF_HOST],
                        (uint64_t)0 - gpsti_a64_load(&item->used[GPSTI_OF_HOST]));
    gpsti_a64_store(&item->host_bytes, 0);
    gpsti_a64_store(&item->used[GPSTI_OF_HOST], 0);
}

/* ---- of a context ---------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_grants_init(gpst_context* context, gpsti_grants* grants) {
    gpsti_a64_store(&grants->device_most, UINT64_MAX);
    GPSTI_TRY(gpsti_cond_init(&grants->changed));
    context->grants = grants;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_grants_term(gpsti_grants* grants) { gpsti_cond_term(&grants->changed); }
