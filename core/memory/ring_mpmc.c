/* core/memory/ring_mpmc.c -- a ring of many producers and many consumers without a mutex: who may have a slot, the
   queue of what was committed, what is given up. An adaptive ring's calls take the ring's mutex around it all, for what
   they measure.

   The queue is cells of one word. A commit writes (position + 1, id) into the cell of the tail, if that holds the
   position one turn before; that one operation is the commit, and the order of the commits. The tail is moved on
   afterwards, by whoever finds it behind: so a thread that stops in between stops nobody. A take moves the head on from
   a position whose cell is filled. The cell of a free position is never still in use: a slot is in the queue once, and
   there are as many cells as slots. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

GPSTI_PRIVATE void gpsti_ring_move_tail(gpst_ring* ring, uint64_t tail) {
    (void)gpsti_a64_cas(&ring->producer.tail, &tail, tail + 1);
}

GPSTI_INTERN uint64_t gpsti_ring_mpmc_push(gpst_ring* ring, uint32_t id, uint64_t* sequence) {
    for (;;) {
        const uint64_t tail = gpsti_a64_load(&ring->producer.tail);
        gpsti_a64* const cell = gpsti_ring_cell_at(ring, tail);
        uint64_t seen = gpsti_a64_load(cell);
        *sequence = tail;
        if (gpsti_ring_is_at(seen, tail - ring->n_cells) && gpsti_a64_cas(cell, &seen, gpsti_ring_pack(tail + 1, id))) {
            (void)gpsti_a64_add(&ring->producer.ticks, gpsti_ring_time(ring));
            gpsti_ring_move_tail(ring, tail);
            return tail;
        }
        if (gpsti_ring_is_at(seen, tail))
            gpsti_ring_move_tail(ring, tail);
    }
}

/* The oldest, if its position is below the limit. */
GPSTI_PRIVATE bool gpsti_ring_mpmc_pop(gpst_ring* ring, uint64_t limit, uint64_t* position, uint32_t* id) {
    uint64_t head = gpsti_a64_load(&ring->consumer.head);
    while (head < limit) {
        const uint64_t cell = gpsti_a64_load(gpsti_ring_cell_at(ring, head));
        const uint64_t now = gpsti_a64_load(&ring->consumer.head);
        if (now == head && !gpsti_ring_is_at(cell, head))
            return false;
        if (now == head && gpsti_a64_cas(&ring->consumer.head, &head, head + 1)) {
            (void)gpsti_a64_add(&ring->consumer.ticks, gpsti_ring_time(ring));
            *position = head;
            *id = (uint32_t)(cell & GPSTI_RING_ID_MASK);
            return true;
        }
        head = gpsti_a64_load(&ring->consumer.head);
    }
    return false;
}

GPSTI_PRIVATE bool gpsti_ring_give_up_oldest(gpst_ring* ring, uint64_t limit) {
    uint64_t position = 0;
    uint32_t id = 0;
    if (!gpsti_ring_mpmc_pop(ring, limit, &position, &id))
        return false;
    (void)gpsti_a64_add(&ring->consumer.given_up, 1);
    gpsti_ring_mpmc_free(ring, id);
    return true;
}

/* ---- producers ------------------------------------------------------------------------- */

/* There is an id for whoever is counted: it is pushed before its former user is taken off the count. */
GPSTI_INTERN gpst_result gpsti_ring_mpmc_claim(gpst_ring* ring, gpst_ring_slot* out) {
    uint64_t state = gpsti_a64_load(&ring->state);
    do {
        if (state >= GPSTI_RING_CLOSED)
            return GPST_ERROR_CLOSED;
        if (gpsti_ring_used(state) >= gpsti_a32_load_relaxed(&ring->depth))
            return GPST_ERROR_WOULD_BLOCK;
    } while (!gpsti_a64_cas(&ring->state, &state, state + GPSTI_RING_USED + GPSTI_RING_HELD));
    gpsti_ring_grant(ring, gpsti_ring_pop_free(ring), out);
    return GPST_OK;
}

/* Where nothing is committed any more, somebody may have taken and released it since the first look. */
GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_try_acquire(gpst_ring* ring, gpst_ring_reader* reader, gpst_ring_slot* out) {
    const bool drops_old = ring->desc.policy == GPST_RING_DROP_OLDEST || ring->desc.policy == GPST_RING_LATEST_ONLY;
    gpst_result result = gpsti_ring_mpmc_claim(ring, out);
    (void)reader;
    while (result == GPST_ERROR_WOULD_BLOCK && drops_old) {
        const bool any = gpsti_ring_give_up_oldest(ring, UINT64_MAX);
        result = gpsti_ring_mpmc_claim(ring, out);
        if (!any)
            break;
    }
    return result;
}

GPSTI_INTERN void gpsti_ring_mpmc_uncommitted(gpst_ring* ring, uint32_t n_wake) {
    const uint64_t state = gpsti_a64_add(&ring->state, 0 - GPSTI_RING_HELD);
    if (n_wake || state >= GPSTI_RING_CLOSED)
        gpsti_ring_notify(&ring->items, state >= GPSTI_RING_CLOSED ? UINT32_MAX : n_wake);
}

GPSTI_INTERN bool gpsti_ring_mpmc_commit(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot) {
    if (ring->adapt)
        gpsti_mutex_lock(&ring->mutex);
    const uint64_t position = gpsti_ring_mpmc_push(ring, id, &slot->sequence);
    if (ring->desc.policy == GPST_RING_LATEST_ONLY)
        while (gpsti_ring_give_up_oldest(ring, position)) {}
    const bool due = ring->adapt && gpsti_ring_count_commit(ring);
    if (ring->adapt)
        gpsti_mutex_unlock(&ring->mutex);
    gpsti_ring_mpmc_uncommitted(ring, 1);
    return due;
}

GPSTI_INTERN void gpsti_ring_mpmc_free(gpst_ring* ring, uint32_t id) {
    gpsti_ring_poison(ring, id);
    gpsti_ring_push_free(ring, id);
    const uint64_t state = gpsti_a64_add(&ring->state, 0 - GPSTI_RING_USED);
    gpsti_fence(); /* the depth, too, may change at this moment */
    if (gpsti_ring_used(state) <= gpsti_a32_load(&ring->depth))
        gpsti_ring_wake(&ring->space, 1);
}

GPSTI_INTERN void gpsti_ring_mpmc_abandon(gpst_ring* ring, uint32_t id) {
    (void)gpsti_a64_add(&ring->producer.abandoned, 1);
    gpsti_ring_mpmc_free(ring, id);
    gpsti_ring_mpmc_uncommitted(ring, 0);
}

GPSTI_INTERN void gpsti_ring_mpmc_close(gpst_ring* ring) {
    uint64_t state = gpsti_a64_load(&ring->state);
    while (state < GPSTI_RING_CLOSED && !gpsti_a64_cas(&ring->state, &state, state | GPSTI_RING_CLOSED)) {}
}

/* ---- consumers ------------------------------------------------------------------------- */

/* What its last holder has committed is in the queue before it is off the count: hence the second look. */
GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_try_take(gpst_ring* ring, gpst_ring_reader* reader, gpst_ring_slot* out) {
    uint64_t position = 0;
    uint32_t id = 0;
    (void)reader;
    if (!gpsti_ring_mpmc_pop(ring, UINT64_MAX, &position, &id)) {
        if (!gpsti_ring_is_over(gpsti_a64_load(&ring->state)))
            return GPST_ERROR_WOULD_BLOCK;
        if (!gpsti_ring_mpmc_pop(ring, UINT64_MAX, &position, &id))
            return GPST_END;
    }
    gpsti_ring_hand_over(ring, position, id, GPSTI_RING_TAKEN, out);
    return GPST_OK;
}

/* ---- the same, counted: of an adaptive ring ------------------------------------------------ */

/* A ring that had to give a slot up was full, too. */
GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_counted_acquire(gpst_ring* ring, gpst_ring_reader* reader,
                                                          gpst_ring_slot* out) {
    gpsti_mutex_lock(&ring->mutex);
    const uint64_t given_up = gpsti_a64_load_relaxed(&ring->consumer.given_up);
    const gpst_result result = gpsti_ring_mpmc_try_acquire(ring, reader, out);
    const bool gave_up = given_up != gpsti_a64_load_relaxed(&ring->consumer.given_up);
    gpsti_ring_count_acquire(ring, gave_up ? GPST_ERROR_WOULD_BLOCK : result,
                             gpsti_ring_used(gpsti_a64_load(&ring->state)));
    gpsti_mutex_unlock(&ring->mutex);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_ring_mpmc_counted_take(gpst_ring* ring, gpst_ring_reader* reader, gpst_ring_slot* out) {
    gpsti_mutex_lock(&ring->mutex);
    const gpst_result result = gpsti_ring_mpmc_try_take(ring, reader, out);
    gpsti_ring_count_take(ring, result);
    gpsti_mutex_unlock(&ring->mutex);
    return result;
}

GPSTI_INTERN void gpsti_ring_mpmc_set_up(gpst_ring* ring) {
    ring->try_acquire = ring->desc.adaptive ? gpsti_ring_mpmc_counted_acquire : gpsti_ring_mpmc_try_acquire;
    ring->try_take = ring->desc.adaptive ? gpsti_ring_mpmc_counted_take : gpsti_ring_mpmc_try_take;
    for (uint32_t i = 0; i < ring->n_cells; i++) /* as if all had been used a turn before */
        gpsti_a64_store_relaxed(&ring->cells[i], gpsti_ring_pack((uint64_t)i + 1 - ring->n_cells, 0));
    gpsti_ring_scatter_free(ring);
}
