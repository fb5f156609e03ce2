/* core/memory/ring_free.c -- the free slots of a ring with many producers: a stack of ids, since the slot used last is
   the warmest. A list through the entries with its top in one word; the count in that word tells a top that came back
   from one that never went. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

GPSTI_INTERN void gpsti_ring_push_free(gpst_ring* ring, uint32_t id) {
    uint64_t top = gpsti_a64_load(&ring->free_top);
    do {
        gpsti_a32_store_relaxed(&ring->entries[id].next, (uint32_t)(top & GPSTI_RING_ID_MASK));
    } while (!gpsti_a64_cas(&ring->free_top, &top, gpsti_ring_pack((top >> GPSTI_RING_ID_BITS) + 1, id + 1)));
}

GPSTI_INTERN uint32_t gpsti_ring_pop_free(gpst_ring* ring) {
    uint64_t top = gpsti_a64_load(&ring->free_top);
    for (;;) {
        const uint32_t number = (uint32_t)(top & GPSTI_RING_ID_MASK);
        if (!number)
            return GPSTI_RING_NO_SLOT;
        const uint32_t next = gpsti_a32_load_relaxed(&ring->entries[number - 1].next);
        if (gpsti_a64_cas(&ring->free_top, &top, gpsti_ring_pack((top >> GPSTI_RING_ID_BITS) + 1, next)))
            return number - 1;
    }
}

GPSTI_INTERN void gpsti_ring_gather_free(gpst_ring* ring) {
    gpsti_ring_producer* const producer = &ring->producer;
    if (ring->spsc) {
        producer->returned_seen = gpsti_a64_load(&ring->consumer.returned);
        while (producer->returned_read != producer->returned_seen)
            ring->free_ids[producer->n_free++] = ring->returned[producer->returned_read++ & (ring->n_cells - 1)];
        return;
    }
    for (uint32_t id = gpsti_ring_pop_free(ring); id != GPSTI_RING_NO_SLOT; id = gpsti_ring_pop_free(ring))
        ring->free_ids[producer->n_free++] = id;
    for (uint32_t i = 0; i < producer->n_free / 2; i++) {
        const uint32_t id = ring->free_ids[i];
        ring->free_ids[i] = ring->free_ids[producer->n_free - 1 - i];
        ring->free_ids[producer->n_free - 1 - i] = id;
    }
}

GPSTI_INTERN void gpsti_ring_scatter_free(gpst_ring* ring) {
    for (uint32_t i = 0; i < ring->producer.n_free; i++)
        gpsti_ring_push_free(ring, ring->free_ids[i]);
    ring->producer.n_free = 0;
}
