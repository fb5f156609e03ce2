/* core/memory/ring_spsc.c -- a ring of one producer and one consumer: two queues of ids, one each way. Each side writes
   only its own index and reads the other's when its copy says "nothing there". */
#include "../base/platform_internal.h"

#include "ring_internal.h"

GPSTI_PRIVATE void gpsti_ring_set_held(gpst_ring* ring, int change) {
    gpsti_a32* n_held = &ring->producer.n_held;
    gpsti_a32_store(n_held, gpsti_a32_load_relaxed(n_held) + (uint32_t)change);
}

/* Counts itself as a holder before it looks at `closed`, so that a consumer that saw the close and no holder
   knows that nothing more can come. */
GPSTI_PRIVATE gpst_result gpsti_ring_spsc_try_acquire(gpst_ring* ring, gpst_ring_reader* reader, gpst_ring_slot* out) {
    gpsti_ring_producer* producer = &ring->producer;
    const uint32_t depth = gpsti_a32_load_relaxed(&ring->depth);
    (void)reader;
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

GPSTI_INTERN bool gpsti_ring_spsc_commit(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot) {
    const uint64_t tail = gpsti_a64_load_relaxed(&ring->producer.tail);
    gpsti_a64_store_relaxed(gpsti_ring_cell_at(ring, tail), gpsti_ring_pack(tail + 1, id));
    slot->sequence = tail;
    gpsti_ring_add(&ring->producer.ticks, gpsti_ring_time(ring));
    gpsti_a64_store(&ring->producer.tail, tail + 1);
    gpsti_ring_set_held(ring, -1);
    gpsti_ring_notify(&ring->items, 1);
    return ring->adapt && gpsti_ring_count_commit(ring);
}

GPSTI_INTERN void gpsti_ring_spsc_abandon(gpst_ring* ring, uint32_t id) {
    gpsti_ring_producer* producer = &ring->producer;
    gpsti_ring_poison(ring, id);
    producer->granted--;
    ring->free_ids[producer->n_free++] = id;
    gpsti_ring_add(&producer->abandoned, 1);
    gpsti_ring_set_held(ring, -1);
    gpsti_ring_notify(&ring->items, 1);
}

GPSTI_PRIVATE gpst_result gpsti_ring_spsc_try_take(gpst_ring* ring, gpst_ring_reader* reader, gpst_ring_slot* out) {
    gpsti_ring_consumer* consumer = &ring->consumer;
    const uint64_t head = gpsti_a64_load_relaxed(&consumer->head);
    (void)reader;
    if (head == consumer->tail_seen) {
        const bool last = gpsti_a32_load(&ring->closed) != 0;
        gpsti_fence();
        const bool nobody_holds = gpsti_a32_load(&ring->producer.n_held) == 0;
        consumer->tail_seen = gpsti_a64_load(&ring->producer.tail);
        if (head == consumer->tail_seen)
            return last && nobody_holds ? GPST_END : GPST_ERROR_WOULD_BLOCK;
    }
    const uint64_t cell = gpsti_a64_load_relaxed(gpsti_ring_cell_at(ring, head));
    gpsti_ring_hand_over(ring, head, (uint32_t)(cell & GPSTI_RING_ID_MASK), GPSTI_RING_TAKEN, out);
    gpsti_ring_add(&consumer->ticks, gpsti_ring_time(ring));
    gpsti_a64_store(&consumer->head, head + 1);
    return GPST_OK;
}

GPSTI_INTERN void gpsti_ring_spsc_release(gpst_ring* ring, uint32_t id) {
    const uint64_t returned = gpsti_a64_load_relaxed(&ring->consumer.returned);
    gpsti_ring_poison(ring, id);
    ring->returned[returned & (ring->n_cells - 1)] = id;
    gpsti_a64_store(&ring->consumer.returned, returned + 1);
    gpsti_ring_notify(&ring->space, 1);
}

/* ---- the same, counted: of an adaptive ring ------------------------------------------------ */

/* A look at what was released wherever more seem to be in use than ever in this interval: so the peak is exact, and
   such looks are few. */
GPSTI_PRIVATE gpst_result gpsti_ring_spsc_counted_acquire(gpst_ring* ring, gpst_ring_reader* reader,
                                                          gpst_ring_slot* out) {
    gpsti_ring_producer* const producer = &ring->producer;
    if (producer->granted - producer->returned_seen >= ring->adapt->peak)
        producer->returned_seen = gpsti_a64_load(&ring->consumer.returned);
    const gpst_result result = gpsti_ring_spsc_try_acquire(ring, reader, out);
    gpsti_ring_count_acquire(ring, result, producer->granted - producer->returned_seen);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_ring_spsc_counted_take(gpst_ring* ring, gpst_ring_reader* reader, gpst_ring_slot* out) {
    const gpst_result result = gpsti_ring_spsc_try_take(ring, reader, out);
    gpsti_ring_count_take(ring, result);
    return result;
}

GPSTI_INTERN void gpsti_ring_spsc_set_up(gpst_ring* ring) {
    ring->try_acquire = ring->desc.adaptive ? gpsti_ring_spsc_counted_acquire : gpsti_ring_spsc_try_acquire;
    ring->try_take = ring->desc.adaptive ? gpsti_ring_spsc_counted_take : gpsti_ring_spsc_try_take;
}
