/* core/memory/ring.c -- rings of slots: what users call. Who holds which slot is ring_spsc.c's and ring_mpmc.c's.

   Slots are ids. A free id goes to a producer, from there in the order of the commits to a consumer, and back. So an
   abandoned slot leaves no hole, slots may be released in any order, and a smaller depth only means that fewer ids
   circulate: nothing is moved, and only an adaptive ring frees memory. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#include <string.h>

#define GPSTI_RING_SPINS 256 /* pauses before parking: about what a wake-up costs */

/* ---- acquire, commit, abandon ---------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_ring_check(const gpst_ring* ring, gpst_ring_slot* out, const char* function) {
    if (out)
        gpsti_ring_forget(out);
    GPSTI_FAIL_IF(!ring || !out, GPST_ERROR_ARGUMENT, "%s: %s=NULL: must not be NULL", function, ring ? "out" : "ring");
    return gpsti_context_check(ring->context, function);
}

GPSTI_PRIVATE gpst_result gpsti_ring_acquire(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out,
                                             const char* function) {
    const bool drops = ring->desc.policy != GPST_RING_BLOCK;
    const gpst_result result = gpsti_ring_get(ring, ring->try_acquire, NULL, &ring->space, drops ? 0 : timeout_ns, out);
    if (result == GPST_OK)
        return GPST_OK;
    if (drops && result == GPST_ERROR_WOULD_BLOCK) {
        (void)gpsti_a64_add(&ring->producer.refused, 1);
        return GPST_DROPPED;
    }
    return gpsti_ring_explain(result, function, timeout_ns, "every slot was in use");
}

GPSTI_PRIVATE void gpsti_ring_commit(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot) {
    bool due = false;
    ring->entries[id].words[0] = slot->words[0];
    ring->entries[id].words[1] = slot->words[1];
    gpsti_ring_forget(slot);
    if (ring->spsc)
        due = gpsti_ring_spsc_commit(ring, id, slot);
    else if (ring->readers)
        due = gpsti_ring_readers_commit(ring, id, slot);
    else
        due = gpsti_ring_mpmc_commit(ring, id, slot);
    if (due)
        gpsti_ring_evaluate(ring, NULL);
}

GPST_API gpst_result gpst_ring_acquire(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out) {
    const char* function = "gpst_ring_acquire";
    GPSTI_TRY(gpsti_ring_check(ring, out, function));
    return gpsti_ring_acquire(ring, timeout_ns, out, function);
}

GPST_API gpst_result gpst_ring_acquire_on(gpst_ring* ring, int64_t timeout_ns, gpst_stream* stream,
                                          gpst_ring_slot* out) {
    const char* function = "gpst_ring_acquire_on";
    GPSTI_TRY(gpsti_ring_check(ring, out, function));
    GPSTI_TRY(gpsti_ring_check_stream(ring, stream, function));
    gpst_result result = gpsti_ring_acquire(ring, timeout_ns, out, function);
    if (result != GPST_OK)
        return result;
    result = gpsti_ring_await_users(ring, out->id - 1, stream, function);
    if (GPST_FAILED(result))
        gpst_ring_abandon(ring, out);
    return result;
}

GPST_API void gpst_ring_commit(gpst_ring* ring, gpst_ring_slot* slot) {
    const uint32_t id = gpsti_ring_claim_logged(ring, slot, 0, "gpst_ring_commit");
    if (id == GPSTI_RING_NO_SLOT)
        return;
    (void)gpsti_ring_record_filled(ring, id, NULL, NULL);
    gpsti_ring_commit(ring, id, slot);
}

GPST_API gpst_result gpst_ring_commit_on(gpst_ring* ring, gpst_ring_slot* slot, gpst_stream* stream) {
    const char* function = "gpst_ring_commit_on";
    GPSTI_FAIL_IF(!ring, GPST_ERROR_ARGUMENT, "%s: ring=NULL: must not be NULL", function);
    const uint32_t id = gpsti_ring_claim(ring, slot, 0, function);
    if (id == GPSTI_RING_NO_SLOT)
        return GPST_ERROR_ARGUMENT;
    const gpst_result result = gpsti_ring_record_filled(ring, id, stream, function);
    if (GPST_FAILED(result))
        return gpsti_ring_unclaim(ring, id, 0, slot, result);
    gpsti_ring_commit(ring, id, slot);
    return GPST_OK;
}

GPST_API void gpst_ring_abandon(gpst_ring* ring, gpst_ring_slot* slot) {
    const uint32_t id = gpsti_ring_claim_logged(ring, slot, 0, "gpst_ring_abandon");
    if (id == GPSTI_RING_NO_SLOT)
        return;
    gpsti_ring_forget(slot);
    if (ring->spsc)
        gpsti_ring_spsc_abandon(ring, id);
    else
        gpsti_ring_mpmc_abandon(ring, id);
}

/* ---- take, release --------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_ring_take(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out,
                                          const char* function) {
    const gpst_result result = gpsti_ring_get(ring, ring->try_take, NULL, &ring->items, timeout_ns, out);
    return result == GPST_OK ? GPST_OK : gpsti_ring_explain(result, function, timeout_ns, "nothing was committed");
}

GPSTI_PRIVATE void gpsti_ring_release(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot) {
    gpsti_ring_forget(slot);
    if (ring->spsc)
        gpsti_ring_spsc_release(ring, id);
    else
        gpsti_ring_mpmc_free(ring, id);
}

GPST_API gpst_result gpst_ring_take(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out) {
    const char* function = "gpst_ring_take";
    GPSTI_TRY(gpsti_ring_check(ring, out, function));
    return gpsti_ring_take(ring, timeout_ns, out, function);
}

GPST_API gpst_result gpst_ring_take_on(gpst_ring* ring, int64_t timeout_ns, gpst_stream* stream, gpst_ring_slot* out) {
    const char* function = "gpst_ring_take_on";
    GPSTI_TRY(gpsti_ring_check(ring, out, function));
    GPSTI_TRY(gpsti_ring_check_stream(ring, stream, function));
    gpst_result result = gpsti_ring_take(ring, timeout_ns, out, function);
    if (result != GPST_OK)
        return result;
    result = gpsti_ring_await_filled(ring, (out->id ^ GPSTI_RING_TAKEN) - 1, stream, function);
    if (GPST_FAILED(result))
        gpst_ring_release(ring, out);
    return result;
}

GPST_API void gpst_ring_release(gpst_ring* ring, gpst_ring_slot* slot) {
    const uint32_t id = gpsti_ring_claim_logged(ring, slot, GPSTI_RING_TAKEN, "gpst_ring_release");
    if (id != GPSTI_RING_NO_SLOT)
        gpsti_ring_release(ring, id, slot);
}

GPST_API gpst_result gpst_ring_release_on(gpst_ring* ring, gpst_ring_slot* slot, gpst_stream* stream) {
    const char* function = "gpst_ring_release_on";
    GPSTI_FAIL_IF(!ring, GPST_ERROR_ARGUMENT, "%s: ring=NULL: must not be NULL", function);
    const uint32_t id = gpsti_ring_claim(ring, slot, GPSTI_RING_TAKEN, function);
    if (id == GPSTI_RING_NO_SLOT)
        return GPST_ERROR_ARGUMENT;
    const gpst_result result = gpsti_ring_record_released(ring, id, 0, stream, function);
    if (GPST_FAILED(result))
        return gpsti_ring_unclaim(ring, id, GPSTI_RING_TAKEN, slot, result);
    gpsti_ring_release(ring, id, slot);
    return GPST_OK;
}

/* ---- the ring as a whole ----------------------------------------------------------------------- */

GPST_API gpst_result gpst_ring_set_depth(gpst_ring* ring, uint32_t depth) {
    GPSTI_FAIL_IF(!ring, GPST_ERROR_ARGUMENT, "gpst_ring_set_depth: ring=NULL: must not be NULL");
    GPSTI_FAIL_IF(!depth || depth > ring->desc.max_slots, GPST_ERROR_ARGUMENT,
                  "gpst_ring_set_depth: depth=%u: must be 1..%u (desc.max_slots)", depth, ring->desc.max_slots);
    GPSTI_FAIL_IF(ring->adapt, GPST_ERROR_STATE,
                  "gpst_ring_set_depth: depth=%u: the ring was made with desc.adaptive, which sets it", depth);
    gpsti_a32_store(&ring->depth, depth);
    gpsti_ring_notify(&ring->space, UINT32_MAX);
    return GPST_OK;
}

GPST_API void gpst_ring_close(gpst_ring* ring) {
    if (!ring)
        return;
    gpsti_a32_store(&ring->closed, 1);
    gpsti_ring_mpmc_close(ring);
    gpsti_ring_notify(&ring->space, UINT32_MAX);
    gpsti_ring_notify(&ring->items, UINT32_MAX);
}

/* The integral of the occupancy over time is what the departures' times sum up to, less the arrivals', with
   those still there departing now. Of a running ring it is off by an item or two for each thread at most. */
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
    /* In this order: never more given up than gone, nor more gone than committed. The tail may be behind by one. */
    const uint64_t given_up = gpsti_a64_load(&locked->consumer.given_up);
    const uint64_t head = gpsti_a64_load(&locked->consumer.head);
    const uint64_t tail_seen = gpsti_a64_load(&locked->producer.tail), tail = tail_seen > head ? tail_seen : head;
    out->max_slots = locked->desc.max_slots;
    out->depth = gpsti_a32_load(&locked->depth);
    out->min_depth = locked->adapt ? locked->desc.min_depth : 1;
    out->max_depth = locked->max_depth;
    out->occupancy = (uint32_t)(tail - head < out->max_slots ? tail - head : out->max_slots);
    out->committed = tail;
    out->taken = head - given_up;
    out->dropped = given_up + gpsti_a64_load_relaxed(&locked->producer.refused);
    out->abandoned = gpsti_a64_load_relaxed(&locked->producer.abandoned);
    out->producer_waits = gpsti_a64_load_relaxed(&locked->space.waits);
    out->producer_wait_ns = gpsti_a64_load_relaxed(&locked->space.wait_ns);
    out->consumer_waits = gpsti_a64_load_relaxed(&locked->items.waits);
    out->consumer_wait_ns = gpsti_a64_load_relaxed(&locked->items.wait_ns);
    out->max_readers = locked->desc.max_readers;
    out->n_readers = locked->n_readers;
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
    ring->cells = (gpsti_a64*)gpsti_alloc(host, ring->n_cells * sizeof *ring->cells);
    ring->entries = (gpsti_ring_entry*)gpsti_alloc(host, max_slots * sizeof *ring->entries);
    ring->returned = ring->spsc ? (uint32_t*)gpsti_alloc(host, ring->n_cells * sizeof *ring->returned) : NULL;
    ring->free_ids = (uint32_t*)gpsti_alloc(host, max_slots * sizeof *ring->free_ids);
    if (!ring->cells || !ring->entries || (ring->spsc && !ring->returned) || !ring->free_ids)
        return gpsti_fail_in(GPST_ERROR_MEMORY, "gpst_ring_create");
    for (uint32_t i = 0; i < max_slots; i++)
        ring->free_ids[i] = max_slots - 1 - i;
    ring->producer.n_free = max_slots;
    if (ring->desc.adaptive)
        GPSTI_TRY(gpsti_ring_adapt_init(ring));
    GPSTI_TRY(gpsti_ring_map(ring));
    (ring->spsc ? gpsti_ring_spsc_set_up : gpsti_ring_mpmc_set_up)(ring);
    GPSTI_TRY(gpsti_ring_readers_init(ring));
    return gpsti_ring_events_init(ring);
}

GPSTI_PRIVATE void gpsti_ring_free(gpst_ring* ring) {
    gpst_context* context = ring->context;
    gpsti_host* host = &context->host;
    gpsti_ring_events_term(ring); /* first: the device may use the memory */
    gpsti_ring_readers_term(ring);
    gpsti_ring_unmap(ring);
    gpsti_ring_adapt_term(ring);
    gpsti_free(host, ring->free_ids, ring->desc.max_slots * sizeof *ring->free_ids);
    gpsti_free(host, ring->returned, ring->n_cells * sizeof *ring->returned);
    gpsti_free(host, ring->entries, ring->desc.max_slots * sizeof *ring->entries);
    gpsti_free(host, ring->cells, ring->n_cells * sizeof *ring->cells);
    gpsti_mutex_term(&ring->mutex);
    gpsti_context_drop_object(context, ring, sizeof *ring);
}

GPSTI_PRIVATE void gpsti_ring_set_up(gpst_ring* ring, gpst_context* context, const gpst_ring_desc* desc) {
    ring->context = context;
    ring->desc = *desc;
    ring->spsc = desc->sharing == GPST_RING_SPSC;
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
    GPSTI_FAIL_IF(!out || !desc, GPST_ERROR_ARGUMENT, "%s: %s=NULL: must not be NULL", function, out ? "desc" : "out");
    GPSTI_TRY(gpsti_context_check(context, function));
    gpst_ring_desc resolved = *desc;
    GPSTI_TRY(gpsti_ring_resolve(&resolved, &stride_bytes, &max_depth));
    gpst_ring* ring = (gpst_ring*)gpsti_context_add_object(context, sizeof *ring);
    if (!ring)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    gpsti_ring_set_up(ring, context, &resolved);
    ring->stride_bytes = stride_bytes;
    ring->max_depth = max_depth;
    gpst_result result = gpsti_mutex_init(&ring->mutex);
    if (GPST_FAILED(result)) {
        gpsti_context_drop_object(context, ring, sizeof *ring);
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
