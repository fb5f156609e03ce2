/* core/memory/ring.c -- slots from producers to consumers: who holds which slot, who
   waits, what is given up. Their memory is ring_memory.c's; knows nothing of what is in it.

   Slots are ids. A free id goes to a producer, from there in the order of the commits to a consumer, and
   back. So an abandoned slot leaves no hole, slots may be released in any order, and a smaller depth only
   means that fewer ids circulate: nothing is moved, and only an adaptive ring frees memory.
   SPSC: two queues of ids, one each way; each side writes only its own index and reads the other's when its
   copy says "nothing there". MPMC: the same under one mutex, which next to items of 0.1 ms and more costs
   nothing. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#include <string.h>

#define GPSTI_RING_SPINS 256         /* pauses before parking: about what a wake-up costs */
#define GPSTI_RING_TRIES_MASK 15     /* a look every 16 pauses */
#define GPSTI_RING_TAKEN 0x80000000u /* in a consumer's gpst_ring_slot.id, so that it cannot be committed */
#define GPSTI_RING_NO_SLOT UINT32_MAX

/* ---- small pieces ----------------------------------------------------------------- */

/* For counters with one writer at a time: no locked instruction. */
GPSTI_PRIVATE void gpsti_ring_add(gpsti_a64* counter, uint64_t amount) {
    gpsti_a64_store_relaxed(counter, gpsti_a64_load_relaxed(counter) + amount);
}

GPSTI_PRIVATE gpsti_ring_cell* gpsti_ring_cell_at(const gpst_ring* ring, uint64_t index) {
    return &ring->cells[index & (ring->n_cells - 1)];
}

GPSTI_PRIVATE uint8_t* gpsti_ring_data(const gpst_ring* ring, uint32_t id) {
    if (ring->memory.data)
        return (uint8_t*)ring->memory.data + id * ring->stride_bytes;
    return ring->slots ? (uint8_t*)ring->slots[id].data : NULL;
}

/* Frame memory that nobody holds must not be touched. */
GPSTI_PRIVATE void gpsti_ring_poison(const gpst_ring* ring, uint32_t id) {
    if (ring->desc.slot_bytes)
        GPSTI_POISON(gpsti_ring_data(ring, id), ring->stride_bytes);
}

GPSTI_PRIVATE void gpsti_ring_grant(const gpst_ring* ring, uint32_t id, gpst_ring_slot* out) {
    memset(out, 0, sizeof *out);
    out->data = gpsti_ring_data(ring, id);
    out->id = id + 1;
    if (out->data)
        GPSTI_UNPOISON(out->data, ring->desc.slot_bytes);
}

GPSTI_PRIVATE void gpsti_ring_hand_over(const gpst_ring* ring, uint64_t sequence, gpst_ring_slot* out) {
    const gpsti_ring_cell* cell = gpsti_ring_cell_at(ring, sequence);
    out->data = gpsti_ring_data(ring, cell->id);
    out->sequence = sequence;
    out->words[0] = cell->words[0];
    out->words[1] = cell->words[1];
    out->id = (cell->id + 1) | GPSTI_RING_TAKEN;
}

GPSTI_PRIVATE void gpsti_ring_enqueue(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot) {
    const uint64_t tail = gpsti_a64_load_relaxed(&ring->producer.tail);
    gpsti_ring_cell* cell = gpsti_ring_cell_at(ring, tail);
    cell->words[0] = slot->words[0];
    cell->words[1] = slot->words[1];
    cell->id = id;
    slot->sequence = tail;
    gpsti_ring_add(&ring->producer.ticks, gpsti_ring_time(ring));
    gpsti_a64_store(&ring->producer.tail, tail + 1);
}

GPSTI_PRIVATE void gpsti_ring_set_held(gpst_ring* ring, int change) {
    gpsti_a32* n_held = &ring->producer.n_held;
    gpsti_a32_store(n_held, gpsti_a32_load_relaxed(n_held) + (uint32_t)change);
}

/* ---- one producer, one consumer ------------------------------------------------------
   try functions: OK, WOULD_BLOCK, or the result to return; they set no reason. */

/* Counts itself as a holder before it looks at `closed`, so that a consumer that saw the close and no holder
   knows that nothing more can come. */
GPSTI_PRIVATE gpst_result gpsti_ring_spsc_try_acquire(gpst_ring* ring, gpst_ring_slot* out) {
    gpsti_ring_producer* producer = &ring->producer;
    const uint32_t depth = gpsti_a32_load_relaxed(&ring->depth);
    if (producer->granted - producer->returned_seen >= depth) {
        producer->returned_seen = gpsti_a64_load(&ring->consumer.returned);
        if (producer->granted - producer->returned_seen >= depth && !gpsti_a32_load(&ring->closed))
            return GPST_ERROR_WOULD_BLOCK;
    }
    gpsti_ring_set_held(ring, 1);
    gpsti_fence();
    if (gpsti_a32_load(&ring->closed)) {
        gpsti_ring_set_held(ring, -1);
        gpsti_ring_notify(&ring->items, UINT32_MAX);
        return GPST_ERROR_CLOSED;
    }
    producer->granted++;
    if (producer->returned_read != producer->returned_seen)
        gpsti_ring_grant(ring, ring->returned[producer->returned_read++ & (ring->n_cells - 1)], out);
    else
        gpsti_ring_grant(ring, ring->free_ids[--producer->n_free], out);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_ring_spsc_abandon(gpst_ring* ring, uint32_t id) {
    gpsti_ring_producer* producer = &ring->producer;
    producer->granted--;
    ring->free_ids[producer->n_free++] = id;
    gpsti_ring_add(&producer->abandoned, 1);
    gpsti_ring_set_held(ring, -1);
    gpsti_ring_notify(&ring->items, 1);
}

GPSTI_PRIVATE gpst_result gpsti_ring_spsc_try_take(gpst_ring* ring, gpst_ring_slot* out) {
    gpsti_ring_consumer* consumer = &ring->consumer;
    const uint64_t head = gpsti_a64_load_relaxed(&consumer->head);
    if (head == consumer->tail_seen) {
        const bool last = gpsti_a32_load(&ring->closed) != 0;
        gpsti_fence();
        const bool nobody_holds = gpsti_a32_load(&ring->producer.n_held) == 0;
        consumer->tail_seen = gpsti_a64_load(&ring->producer.tail);
        if (head == consumer->tail_seen)
            return last && nobody_holds ? GPST_END : GPST_ERROR_WOULD_BLOCK;
    }
    gpsti_ring_hand_over(ring, head, out);
    gpsti_ring_add(&consumer->ticks, gpsti_ring_time(ring));
    gpsti_ring_add(&consumer->taken, 1);
    gpsti_a64_store(&consumer->head, head + 1);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_ring_spsc_release(gpst_ring* ring, uint32_t id) {
    const uint64_t returned = gpsti_a64_load_relaxed(&ring->consumer.returned);
    ring->returned[returned & (ring->n_cells - 1)] = id;
    gpsti_a64_store(&ring->consumer.returned, returned + 1);
    gpsti_ring_notify(&ring->space, 1);
}

/* ---- many producers, many consumers: the parts that run under the mutex ----------------- */

GPSTI_PRIVATE bool gpsti_ring_has_space(const gpst_ring* ring) {
    return ring->n_used < gpsti_a32_load_relaxed(&ring->depth);
}

GPSTI_PRIVATE void gpsti_ring_free_slot(gpst_ring* ring, uint32_t id) {
    gpsti_ring_poison(ring, id);
    ring->free_ids[ring->producer.n_free++] = id;
    ring->n_used--;
}

/* Frees the oldest committed slot; false when there is none. */
GPSTI_PRIVATE bool gpsti_ring_give_up_oldest(gpst_ring* ring) {
    const uint64_t head = gpsti_a64_load_relaxed(&ring->consumer.head);
    if (head == gpsti_a64_load_relaxed(&ring->producer.tail))
        return false;
    gpsti_ring_free_slot(ring, gpsti_ring_cell_at(ring, head)->id);
    gpsti_ring_add(&ring->consumer.ticks, gpsti_ring_time(ring));
    (void)gpsti_a64_add(&ring->producer.dropped, 1);
    gpsti_a64_store(&ring->consumer.head, head + 1);
    return true;
}

GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_try_acquire_locked(gpst_ring* ring, gpst_ring_slot* out) {
    if (gpsti_a32_load_relaxed(&ring->closed))
        return GPST_ERROR_CLOSED;
    if (ring->desc.policy == GPST_RING_DROP_OLDEST || ring->desc.policy == GPST_RING_LATEST_ONLY)
        while (!gpsti_ring_has_space(ring) && gpsti_ring_give_up_oldest(ring)) {}
    if (!gpsti_ring_has_space(ring))
        return GPST_ERROR_WOULD_BLOCK;
    ring->n_used++;
    gpsti_ring_set_held(ring, 1);
    gpsti_ring_grant(ring, ring->free_ids[--ring->producer.n_free], out);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_try_take_locked(gpst_ring* ring, gpst_ring_slot* out) {
    const uint64_t head = gpsti_a64_load_relaxed(&ring->consumer.head);
    if (head == gpsti_a64_load_relaxed(&ring->producer.tail))
        return gpsti_a32_load_relaxed(&ring->closed) && !gpsti_a32_load_relaxed(&ring->producer.n_held)
                   ? GPST_END
                   : GPST_ERROR_WOULD_BLOCK;
    gpsti_ring_hand_over(ring, head, out);
    gpsti_ring_add(&ring->consumer.ticks, gpsti_ring_time(ring));
    gpsti_ring_add(&ring->consumer.taken, 1);
    gpsti_a64_store(&ring->consumer.head, head + 1);
    return GPST_OK;
}

/* ---- the same with the mutex --------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_try_acquire(gpst_ring* ring, gpst_ring_slot* out) {
    gpsti_mutex_lock(&ring->mutex);
    const gpst_result result = gpsti_ring_mpmc_try_acquire_locked(ring, out);
    gpsti_mutex_unlock(&ring->mutex);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_try_take(gpst_ring* ring, gpst_ring_slot* out) {
    gpsti_mutex_lock(&ring->mutex);
    const gpst_result result = gpsti_ring_mpmc_try_take_locked(ring, out);
    gpsti_mutex_unlock(&ring->mutex);
    return result;
}

/* True: adaptive, and to be evaluated now. */
GPSTI_PRIVATE bool gpsti_ring_mpmc_commit(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot) {
    gpsti_mutex_lock(&ring->mutex);
    if (ring->desc.policy == GPST_RING_LATEST_ONLY)
        while (gpsti_ring_give_up_oldest(ring)) {}
    gpsti_ring_enqueue(ring, id, slot);
    gpsti_ring_set_held(ring, -1);
    const bool last = gpsti_a32_load_relaxed(&ring->closed) != 0;
    const bool due = ring->adapt && gpsti_ring_count_commit(ring);
    gpsti_mutex_unlock(&ring->mutex);
    gpsti_ring_notify(&ring->items, last ? UINT32_MAX : 1);
    return due;
}

GPSTI_PRIVATE void gpsti_ring_mpmc_free(gpst_ring* ring, uint32_t id, bool abandoned) {
    gpsti_mutex_lock(&ring->mutex);
    gpsti_ring_free_slot(ring, id);
    if (abandoned) {
        gpsti_ring_add(&ring->producer.abandoned, 1);
        gpsti_ring_set_held(ring, -1);
    }
    const bool has_space = gpsti_ring_has_space(ring);
    const bool last = abandoned && gpsti_a32_load_relaxed(&ring->closed);
    gpsti_mutex_unlock(&ring->mutex);
    if (has_space)
        gpsti_ring_notify(&ring->space, 1);
    if (last)
        gpsti_ring_notify(&ring->items, UINT32_MAX);
}

/* ---- the same, counted: of an adaptive ring ------------------------------------------------ */

/* A look at what was released wherever more seem to be in use than ever in this interval: so the peak is exact, and
   such looks are few. */
GPSTI_PRIVATE gpst_result gpsti_ring_spsc_counted_acquire(gpst_ring* ring, gpst_ring_slot* out) {
    gpsti_ring_producer* const producer = &ring->producer;
    if (producer->granted - producer->returned_seen >= ring->adapt->peak)
        producer->returned_seen = gpsti_a64_load(&ring->consumer.returned);
    const gpst_result result = gpsti_ring_spsc_try_acquire(ring, out);
    gpsti_ring_count_acquire(ring, result, producer->granted - producer->returned_seen);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_ring_spsc_counted_take(gpst_ring* ring, gpst_ring_slot* out) {
    const gpst_result result = gpsti_ring_spsc_try_take(ring, out);
    gpsti_ring_count_take(ring, result);
    return result;
}

/* A ring that had to give a slot up was full, too. */
GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_counted_acquire(gpst_ring* ring, gpst_ring_slot* out) {
    gpsti_mutex_lock(&ring->mutex);
    const uint64_t head = gpsti_a64_load_relaxed(&ring->consumer.head);
    const gpst_result result = gpsti_ring_mpmc_try_acquire_locked(ring, out);
    const bool gave_up = head != gpsti_a64_load_relaxed(&ring->consumer.head);
    gpsti_ring_count_acquire(ring, gave_up ? GPST_ERROR_WOULD_BLOCK : result, ring->n_used);
    gpsti_mutex_unlock(&ring->mutex);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_counted_take(gpst_ring* ring, gpst_ring_slot* out) {
    gpsti_mutex_lock(&ring->mutex);
    const gpst_result result = gpsti_ring_mpmc_try_take_locked(ring, out);
    gpsti_ring_count_take(ring, result);
    gpsti_mutex_unlock(&ring->mutex);
    return result;
}

/* ---- waiting ---------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_ring_spin(gpst_ring* ring, gpsti_ring_try look, gpst_ring_slot* out) {
    for (uint32_t i = 0; i < ring->n_spins; i++) {
        gpsti_relax();
        if ((i & GPSTI_RING_TRIES_MASK) == GPSTI_RING_TRIES_MASK) {
            const gpst_result result = look(ring, out);
            if (result != GPST_ERROR_WOULD_BLOCK)
                return result;
        }
    }
    return GPST_ERROR_WOULD_BLOCK;
}

GPSTI_PRIVATE gpst_result gpsti_ring_park(gpst_ring* ring, gpsti_ring_try look, gpsti_ring_event* event,
                                          int64_t deadline_ns, gpst_ring_slot* out) {
    gpst_result result = GPST_ERROR_WOULD_BLOCK;
    while (result == GPST_ERROR_WOULD_BLOCK) {
        const uint32_t epoch = gpsti_a32_load(&event->epoch);
        (void)gpsti_a32_add(&event->n_waiters, 1);
        gpsti_fence();
        result = look(ring, out);
        if (result == GPST_ERROR_WOULD_BLOCK && gpsti_now_ns() >= deadline_ns)
            result = GPST_ERROR_TIMEOUT;
        if (result == GPST_ERROR_WOULD_BLOCK)
            gpsti_futex_wait(&event->epoch, epoch, deadline_ns);
        (void)gpsti_a32_add(&event->n_waiters, UINT32_MAX);
    }
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_ring_wait(gpst_ring* ring, gpsti_ring_try look, gpsti_ring_event* event,
                                          int64_t timeout_ns, gpst_ring_slot* out) {
    const int64_t start_ns = gpsti_now_ns();
    gpst_result result = gpsti_ring_spin(ring, look, out);
    if (result == GPST_ERROR_WOULD_BLOCK)
        result = gpsti_ring_park(ring, look, event, gpsti_deadline(timeout_ns), out);
    (void)gpsti_a64_add(&event->waits, 1);
    (void)gpsti_a64_add(&event->wait_ns, (uint64_t)(gpsti_now_ns() - start_ns));
    return result;
}

/* ---- the public calls -------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_ring_forget(gpst_ring_slot* slot) {
    slot->data = NULL;
    slot->id = 0;
}

GPSTI_PRIVATE gpst_result gpsti_ring_check(const gpst_ring* ring, gpst_ring_slot* out, const char* function) {
    if (out)
        gpsti_ring_forget(out);
    GPSTI_FAIL_IF(!ring || !out, GPST_ERROR_ARGUMENT, "%s: %s=NULL: must not be NULL", function,
                  ring ? "out" : "ring");
    return gpsti_context_check(ring->context, function);
}

GPSTI_PRIVATE gpst_result gpsti_ring_explain(gpst_result result, const char* function, int64_t timeout_ns,
                                             const char* what) {
    if (result == GPST_ERROR_TIMEOUT)
        return gpsti_fail(result, "%s: timeout_ns=%lld: %s all that time", function, (long long)timeout_ns,
                          what);
    if (result == GPST_ERROR_WOULD_BLOCK)
        return gpsti_fail(result, "%s: timeout_ns=0: %s", function, what);
    if (result == GPST_ERROR_CLOSED)
        return gpsti_fail(result, "%s: the ring is closed", function);
    return result;
}

/* The slot's id if the caller holds it in the right role, else NO_SLOT with a logged error. What callers see
   is the id + 1, so that a zeroed slot is none. */
GPSTI_PRIVATE uint32_t gpsti_ring_claim(gpst_ring* ring, gpst_ring_slot* slot, uint32_t role,
                                        const char* function) {
    const uint32_t number = slot->id ^ role;
    if (number >= 1 && number <= ring->desc.max_slots)
        return number - 1;
    GPSTI_LOG(&ring->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
              "%s: slot.id=%u: not held by the caller; ignored", function, slot->id);
    return GPSTI_RING_NO_SLOT;
}

GPST_API gpst_result gpst_ring_acquire(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out) {
    GPSTI_TRY(gpsti_ring_check(ring, out, "gpst_ring_acquire"));
    const gpsti_ring_try look = ring->try_acquire;
    gpst_result result = look(ring, out);
    if (result == GPST_OK)
        return GPST_OK;
    if (result == GPST_ERROR_WOULD_BLOCK && ring->desc.policy != GPST_RING_BLOCK) {
        (void)gpsti_a64_add(&ring->producer.dropped, 1);
        return GPST_DROPPED;
    }
    if (result == GPST_ERROR_WOULD_BLOCK && timeout_ns > 0)
        result = gpsti_ring_wait(ring, look, &ring->space, timeout_ns, out);
    return gpsti_ring_explain(result, "gpst_ring_acquire", timeout_ns, "every slot was in use");
}

GPST_API void gpst_ring_commit(gpst_ring* ring, gpst_ring_slot* slot) {
    const uint32_t id =
        ring && slot ? gpsti_ring_claim(ring, slot, 0, "gpst_ring_commit") : GPSTI_RING_NO_SLOT;
    bool due = false;
    if (id == GPSTI_RING_NO_SLOT)
        return;
    if (ring->spsc) {
        gpsti_ring_enqueue(ring, id, slot);
        gpsti_ring_set_held(ring, -1);
        gpsti_ring_notify(&ring->items, 1);
        due = ring->adapt && gpsti_ring_count_commit(ring);
    } else {
        due = gpsti_ring_mpmc_commit(ring, id, slot);
    }
    gpsti_ring_forget(slot);
    if (due)
        gpsti_ring_evaluate(ring, NULL);
}

GPST_API void gpst_ring_abandon(gpst_ring* ring, gpst_ring_slot* slot) {
    const uint32_t id =
        ring && slot ? gpsti_ring_claim(ring, slot, 0, "gpst_ring_abandon") : GPSTI_RING_NO_SLOT;
    if (id == GPSTI_RING_NO_SLOT)
        return;
    if (ring->spsc) {
        gpsti_ring_poison(ring, id);
        gpsti_ring_spsc_abandon(ring, id);
    } else {
        gpsti_ring_mpmc_free(ring, id, true);
    }
    gpsti_ring_forget(slot);
}

GPST_API gpst_result gpst_ring_take(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out) {
    GPSTI_TRY(gpsti_ring_check(ring, out, "gpst_ring_take"));
    const gpsti_ring_try look = ring->try_take;
    gpst_result result = look(ring, out);
    if (result == GPST_OK)
        return GPST_OK;
    if (result == GPST_ERROR_WOULD_BLOCK && timeout_ns > 0)
        result = gpsti_ring_wait(ring, look, &ring->items, timeout_ns, out);
    return gpsti_ring_explain(result, "gpst_ring_take", timeout_ns, "nothing was committed");
}

GPST_API void gpst_ring_release(gpst_ring* ring, gpst_ring_slot* slot) {
    const uint32_t id = ring && slot ? gpsti_ring_claim(ring, slot, GPSTI_RING_TAKEN, "gpst_ring_release")
                                     : GPSTI_RING_NO_SLOT;
    if (id == GPSTI_RING_NO_SLOT)
        return;
    if (ring->spsc) {
        gpsti_ring_poison(ring, id);
        gpsti_ring_spsc_release(ring, id);
    } else {
        gpsti_ring_mpmc_free(ring, id, false);
    }
    gpsti_ring_forget(slot);
}

GPST_API gpst_result gpst_ring_set_depth(gpst_ring* ring, uint32_t depth) {
    GPSTI_FAIL_IF(!ring, GPST_ERROR_ARGUMENT, "gpst_ring_set_depth: ring=NULL: must not be NULL");
    GPSTI_FAIL_IF(!depth || depth > ring->desc.max_slots, GPST_ERROR_ARGUMENT,
                  "gpst_ring_set_depth: depth=%u: must be 1..%u (desc.max_slots)", depth,
                  ring->desc.max_slots);
    GPSTI_FAIL_IF(ring->adapt, GPST_ERROR_STATE,
                  "gpst_ring_set_depth: depth=%u: the ring was made with desc.adaptive, which sets it", depth);
    gpsti_a32_store(&ring->depth, depth);
    gpsti_ring_notify(&ring->space, UINT32_MAX);
    return GPST_OK;
}

/* Under the mutex, so that no MPMC producer is between its look at `closed` and its slot. */
GPST_API void gpst_ring_close(gpst_ring* ring) {
    if (!ring)
        return;
    gpsti_mutex_lock(&ring->mutex);
    gpsti_a32_store(&ring->closed, 1);
    gpsti_mutex_unlock(&ring->mutex);
    gpsti_ring_notify(&ring->space, UINT32_MAX);
    gpsti_ring_notify(&ring->items, UINT32_MAX);
}

/* The integral of the occupancy over time is what the departures' times sum up to, less the arrivals', with
   those still there departing now. Exact under the mutex; in a running SPSC ring off by an item or two at
   most. */
GPSTI_PRIVATE double gpsti_ring_mean_occupancy(const gpst_ring* ring, uint64_t head, uint64_t tail) {
    const uint64_t now = gpsti_ring_time(ring);
    const uint64_t integral = gpsti_a64_load_relaxed(&ring->consumer.ticks) -
                              gpsti_a64_load_relaxed(&ring->producer.ticks) + (tail - head) * now;
    const double mean = now ? (double)(int64_t)integral / (double)now : 0.0;
    return mean < 0.0 ? 0.0 : mean > ring->desc.max_slots ? ring->desc.max_slots : mean;
}

GPST_API void gpst_ring_query_info(const gpst_ring* ring, gpst_ring_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!ring)
        return;
    gpst_ring* locked = (gpst_ring*)ring;
    gpsti_mutex_lock(&locked->mutex);
    const uint64_t head =
        gpsti_a64_load(&locked->consumer.head); /* before tail: never more taken than committed */
    const uint64_t tail = gpsti_a64_load(&locked->producer.tail);
    out->max_slots = locked->desc.max_slots;
    out->depth = gpsti_a32_load(&locked->depth);
    out->min_depth = locked->adapt ? locked->desc.min_depth : 1;
    out->max_depth = locked->max_depth;
    out->occupancy = (uint32_t)(tail - head < out->max_slots ? tail - head : out->max_slots);
    out->committed = tail;
    out->taken = gpsti_a64_load_relaxed(&locked->consumer.taken);
    out->dropped = gpsti_a64_load_relaxed(&locked->producer.dropped);
    out->abandoned = gpsti_a64_load_relaxed(&locked->producer.abandoned);
    out->producer_waits = gpsti_a64_load_relaxed(&locked->space.waits);
    out->producer_wait_ns = gpsti_a64_load_relaxed(&locked->space.wait_ns);
    out->consumer_waits = gpsti_a64_load_relaxed(&locked->items.waits);
    out->consumer_wait_ns = gpsti_a64_load_relaxed(&locked->items.wait_ns);
    out->mean_occupancy = gpsti_ring_mean_occupancy(locked, head, tail);
    out->n_decisions = locked->adapt ? locked->adapt->n_decisions : 0;
    gpsti_mutex_unlock(&locked->mutex);
    out->memory_bytes = gpsti_ring_memory_bytes(locked);
}

/* ---- create / destroy ---------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_ring_build(gpst_ring* ring) {
    gpsti_host* host = &ring->context->host;
    const uint32_t max_slots = ring->desc.max_slots;
    ring->n_cells = 1;
    while (ring->n_cells < max_slots)
        ring->n_cells *= 2;
    ring->cells = (gpsti_ring_cell*)gpsti_alloc(host, ring->n_cells * sizeof *ring->cells);
    ring->returned = (uint32_t*)gpsti_alloc(host, ring->n_cells * sizeof *ring->returned);
    ring->free_ids = (uint32_t*)gpsti_alloc(host, max_slots * sizeof *ring->free_ids);
    if (!ring->cells || !ring->returned || !ring->free_ids)
        return gpsti_fail_in(GPST_ERROR_MEMORY, "gpst_ring_create");
    for (uint32_t i = 0; i < max_slots; i++)
        ring->free_ids[i] = max_slots - 1 - i;
    ring->producer.n_free = max_slots;
    if (ring->desc.adaptive)
        GPSTI_TRY(gpsti_ring_adapt_init(ring));
    return gpsti_ring_map(ring);
}

GPSTI_PRIVATE void gpsti_ring_free(gpst_ring* ring) {
    gpst_context* context = ring->context;
    gpsti_host* host = &context->host;
    gpsti_ring_unmap(ring);
    gpsti_ring_adapt_term(ring);
    gpsti_free(host, ring->free_ids, ring->desc.max_slots * sizeof *ring->free_ids);
    gpsti_free(host, ring->returned, ring->n_cells * sizeof *ring->returned);
    gpsti_free(host, ring->cells, ring->n_cells * sizeof *ring->cells);
    gpsti_mutex_term(&ring->mutex);
    gpsti_free(host, ring, sizeof *ring);
}

GPSTI_PRIVATE void gpsti_ring_set_up(gpst_ring* ring, gpst_context* context, const gpst_ring_desc* desc) {
    ring->context = context;
    ring->desc = *desc;
    ring->spsc = desc->sharing == GPST_RING_SPSC;
    if (ring->spsc) {
        ring->try_acquire = desc->adaptive ? gpsti_ring_spsc_counted_acquire : gpsti_ring_spsc_try_acquire;
        ring->try_take = desc->adaptive ? gpsti_ring_spsc_counted_take : gpsti_ring_spsc_try_take;
    } else {
        ring->try_acquire = desc->adaptive ? gpsti_ring_mpmc_counted_acquire : gpsti_ring_mpmc_try_acquire;
        ring->try_take = desc->adaptive ? gpsti_ring_mpmc_counted_take : gpsti_ring_mpmc_try_take;
    }
    ring->n_spins = context->info.cores_allowed > 1 ? GPSTI_RING_SPINS : 0;
    ring->created_ticks = gpsti_ticks();
    gpsti_a32_store(&ring->depth, desc->depth);
}

GPST_API gpst_result gpst_ring_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                const gpst_ring_desc* desc, gpst_ring** out) {
    const char* function = "gpst_ring_create";
    size_t stride_bytes = 0;
    uint32_t max_depth = 0;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(function, version, desc_bytes, sizeof *desc));
    GPSTI_FAIL_IF(!out || !desc, GPST_ERROR_ARGUMENT, "%s: %s=NULL: must not be NULL", function,
                  out ? "desc" : "out");
    GPSTI_TRY(gpsti_context_check(context, function));
    gpst_ring_desc resolved = *desc;
    GPSTI_TRY(gpsti_ring_resolve(&resolved, &stride_bytes, &max_depth));
    gpst_ring* ring = (gpst_ring*)gpsti_alloc(&context->host, sizeof *ring);
    if (!ring)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    gpsti_ring_set_up(ring, context, &resolved);
    ring->stride_bytes = stride_bytes;
    ring->max_depth = max_depth;
    gpst_result result = gpsti_mutex_init(&ring->mutex);
    if (GPST_FAILED(result)) {
        gpsti_free(&context->host, ring, sizeof *ring);
        return result;
    }
    result = gpsti_ring_build(ring);
    if (GPST_FAILED(result))
        gpsti_ring_free(ring);
    else
        *out = ring;
    return result;
}

GPST_API void gpst_ring_destroy(gpst_ring* ring) {
    if (ring && !gpsti_context_forked(ring->context))
        gpsti_ring_free(ring);
}
