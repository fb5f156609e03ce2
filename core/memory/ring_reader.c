/* core/memory/ring_reader.c -- readers: cursors of their own over a ring's commits, each of which sees them all. Takes
   and releases need no mutex. Who commits, joins, leaves or gives slots up takes it, so that a slot is counted for just
   those readers that will pass it. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#include <string.h>

/* ---- a slot and its readers ---------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_ring_depart(gpst_ring* ring, bool given_up) {
    (void)gpsti_a64_add(&ring->consumer.ticks, gpsti_ring_time(ring));
    (void)gpsti_a64_add(&ring->consumer.head, 1);
    if (given_up)
        (void)gpsti_a64_add(&ring->consumer.given_up, 1);
}

/* One reader less has the slot before it: it took it, or it will miss it. */
GPSTI_PRIVATE void gpsti_ring_pass(gpst_ring* ring, uint32_t id, bool took) {
    const uint32_t change =
        took ? GPSTI_RING_TOOK - GPSTI_RING_UNTAKEN : 0 - GPSTI_RING_UNTAKEN - GPSTI_RING_UNRELEASED;
    const uint32_t refs = gpsti_a32_add(&ring->entries[id].refs, change) + change;
    if (!(refs / GPSTI_RING_UNTAKEN & GPSTI_RING_REF_MASK))
        gpsti_ring_depart(ring, refs < GPSTI_RING_TOOK);
    if (!(refs & GPSTI_RING_REF_MASK))
        gpsti_ring_mpmc_free(ring, id);
}

GPSTI_PRIVATE void gpsti_ring_drop_reference(gpst_ring* ring, uint32_t id) {
    const uint32_t refs = gpsti_a32_add(&ring->entries[id].refs, 0 - GPSTI_RING_UNRELEASED);
    if ((refs & GPSTI_RING_REF_MASK) == GPSTI_RING_UNRELEASED)
        gpsti_ring_mpmc_free(ring, id);
}

/* What it has not taken below the position, it misses. */
GPSTI_PRIVATE void gpsti_ring_skip_to(gpst_ring* ring, gpsti_ring_cursor* cursor, uint64_t position) {
    uint64_t at = gpsti_a64_load(&cursor->at);
    while (at < position) {
        const uint64_t cell = gpsti_a64_load(gpsti_ring_cell_at(ring, at));
        if (!gpsti_a64_cas(&cursor->at, &at, at + 1))
            continue;
        (void)gpsti_a64_add(&cursor->missed, 1);
        gpsti_ring_pass(ring, (uint32_t)(cell & GPSTI_RING_ID_MASK), false);
        at++;
    }
}

GPSTI_PRIVATE void gpsti_ring_skip_all_to(gpst_ring* ring, uint64_t position) {
    for (uint32_t i = 0; i < ring->desc.max_readers; i++)
        if (ring->cursors[i].active)
            gpsti_ring_skip_to(ring, &ring->cursors[i], position);
}

/* ---- producers ------------------------------------------------------------------------- */

/* Nobody will take a slot that is committed while there is no reader: it is free again at once. */
GPSTI_INTERN bool gpsti_ring_readers_commit(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot) {
    gpsti_mutex_lock(&ring->mutex);
    const uint32_t n_readers = ring->n_readers;
    gpsti_a32_store(&ring->entries[id].refs, n_readers * (GPSTI_RING_UNTAKEN + GPSTI_RING_UNRELEASED));
    const uint64_t position = gpsti_ring_mpmc_push(ring, id, &slot->sequence);
    if (n_readers && ring->desc.policy == GPST_RING_LATEST_ONLY)
        gpsti_ring_skip_all_to(ring, position);
    if (!n_readers) {
        gpsti_ring_depart(ring, true);
        gpsti_ring_mpmc_free(ring, id);
    }
    const bool due = ring->adapt && gpsti_ring_count_commit(ring);
    gpsti_mutex_unlock(&ring->mutex);
    gpsti_ring_mpmc_uncommitted(ring, UINT32_MAX);
    return due;
}

/* The oldest slot that no reader holds, and what is older: false if there is none. A slot that one reader holds would
   not become free if the others missed it. */
GPSTI_PRIVATE bool gpsti_ring_readers_give_up(gpst_ring* ring) {
    const uint64_t tail = gpsti_a64_load(&ring->producer.tail);
    uint64_t first = tail;
    for (uint32_t i = 0; i < ring->desc.max_readers; i++) {
        const uint64_t at = ring->cursors[i].active ? gpsti_a64_load(&ring->cursors[i].at) : tail;
        first = at < first ? at : first;
    }
    for (; first < tail; first++) {
        const uint64_t cell = gpsti_a64_load(gpsti_ring_cell_at(ring, first));
        const uint32_t refs = gpsti_a32_load(&ring->entries[cell & GPSTI_RING_ID_MASK].refs);
        if ((refs & GPSTI_RING_REF_MASK) == (refs / GPSTI_RING_UNTAKEN & GPSTI_RING_REF_MASK)) {
            gpsti_ring_skip_all_to(ring, first + 1);
            return true;
        }
    }
    return false;
}

GPSTI_PRIVATE gpst_result gpsti_ring_readers_try_acquire(gpst_ring* ring, gpst_ring_reader* reader,
                                                         gpst_ring_slot* out) {
    const bool drops_old = ring->desc.policy == GPST_RING_DROP_OLDEST || ring->desc.policy == GPST_RING_LATEST_ONLY;
    gpst_result result = gpsti_ring_mpmc_claim(ring, out);
    (void)reader;
    while (result == GPST_ERROR_WOULD_BLOCK && drops_old) {
        if (!ring->adapt) /* else counted_acquire has it */
            gpsti_mutex_lock(&ring->mutex);
        const bool any = gpsti_ring_readers_give_up(ring);
        if (!ring->adapt)
            gpsti_mutex_unlock(&ring->mutex);
        result = gpsti_ring_mpmc_claim(ring, out);
        if (!any)
            break;
    }
    return result;
}

/* ---- consumers ------------------------------------------------------------------------- */

/* A cell before the cursor is not written again until the cursor has passed it. */
GPSTI_PRIVATE bool gpsti_ring_next(gpst_ring* ring, gpsti_ring_cursor* cursor, uint64_t* position, uint32_t* id) {
    uint64_t at = gpsti_a64_load(&cursor->at);
    for (;;) {
        const uint64_t cell = gpsti_a64_load(gpsti_ring_cell_at(ring, at));
        const uint64_t now = gpsti_a64_load(&cursor->at);
        if (now == at && !gpsti_ring_is_at(cell, at))
            return false;
        if (now == at && gpsti_a64_cas(&cursor->at, &at, at + 1)) {
            *position = at;
            *id = (uint32_t)(cell & GPSTI_RING_ID_MASK);
            return true;
        }
        at = gpsti_a64_load(&cursor->at);
    }
}

GPSTI_PRIVATE uint32_t gpsti_ring_reader_role(uint32_t index) {
    return GPSTI_RING_TAKEN | (index + 1) << GPSTI_RING_READER_SHIFT;
}

GPSTI_PRIVATE gpst_result gpsti_ring_reader_try_take(gpst_ring* ring, gpst_ring_reader* reader, gpst_ring_slot* out) {
    gpsti_ring_cursor* const cursor = &ring->cursors[reader->index];
    uint64_t position = 0;
    uint32_t id = 0;
    if (!gpsti_ring_next(ring, cursor, &position, &id)) {
        if (!gpsti_ring_is_over(gpsti_a64_load(&ring->state)))
            return GPST_ERROR_WOULD_BLOCK;
        if (!gpsti_ring_next(ring, cursor, &position, &id))
            return GPST_END;
    }
    gpsti_ring_hand_over(ring, position, id, gpsti_ring_reader_role(reader->index), out);
    gpsti_ring_pass(ring, id, true);
    (void)gpsti_a64_add(&cursor->taken, 1);
    return GPST_OK;
}

/* ---- the same, counted: of an adaptive ring ------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_ring_readers_counted_acquire(gpst_ring* ring, gpst_ring_reader* reader,
                                                             gpst_ring_slot* out) {
    gpsti_mutex_lock(&ring->mutex);
    const uint64_t given_up = gpsti_a64_load_relaxed(&ring->consumer.given_up);
    const gpst_result result = gpsti_ring_readers_try_acquire(ring, reader, out);
    const bool gave_up = given_up != gpsti_a64_load_relaxed(&ring->consumer.given_up);
    gpsti_ring_count_acquire(ring, gave_up ? GPST_ERROR_WOULD_BLOCK : result,
                             gpsti_ring_used(gpsti_a64_load(&ring->state)));
    gpsti_mutex_unlock(&ring->mutex);
    return result;
}

/* A reader that has taken all finds the ring empty only where the others have, too: else it is faster than they are,
   which more slots would not change. */
GPSTI_PRIVATE gpst_result gpsti_ring_reader_counted_take(gpst_ring* ring, gpst_ring_reader* reader,
                                                         gpst_ring_slot* out) {
    gpsti_mutex_lock(&ring->mutex);
    const gpst_result result = gpsti_ring_reader_try_take(ring, reader, out);
    const bool all_taken = gpsti_a64_load(&ring->consumer.head) == gpsti_a64_load(&ring->producer.tail);
    if (result == GPST_OK || all_taken)
        gpsti_ring_count_take(ring, result);
    gpsti_mutex_unlock(&ring->mutex);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_ring_readers_refuse_take(gpst_ring* ring, gpst_ring_reader* reader,
                                                         gpst_ring_slot* out) {
    (void)ring;
    (void)reader;
    (void)out;
    return GPST_ERROR_STATE;
}

/* If the reader holds it. */
GPSTI_PRIVATE void gpsti_ring_reader_give_back(gpst_ring* ring, uint32_t index, uint32_t id) {
    if (gpsti_ring_end_held(ring, id, gpsti_ring_reader_role(index)))
        gpsti_ring_drop_reference(ring, id);
}

/* ---- the public calls -------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_ring_reader_check(const gpst_ring_reader* reader, const char* function) {
    GPSTI_FAIL_IF(!reader, GPST_ERROR_ARGUMENT, "%s: reader=NULL: must not be NULL", function);
    return gpsti_context_check(reader->ring->context, function);
}

GPST_API gpst_result gpst_ring_reader_create(gpst_ring* ring, gpst_ring_reader** out) {
    const char* function = "gpst_ring_reader_create";
    GPSTI_OUT_NONE(out);
    GPSTI_FAIL_IF(!ring || !out, GPST_ERROR_ARGUMENT, "%s: %s=NULL: must not be NULL", function, ring ? "out" : "ring");
    GPSTI_TRY(gpsti_context_check(ring->context, function));
    gpsti_mutex_lock(&ring->mutex);
    uint32_t index = 0;
    while (index < ring->desc.max_readers && ring->cursors[index].active)
        index++;
    if (index < ring->desc.max_readers) {
        gpsti_ring_cursor* const cursor = &ring->cursors[index];
        cursor->active = 1;
        gpsti_a64_store(&cursor->at, gpsti_a64_load(&ring->producer.tail));
        gpsti_a64_store(&cursor->taken, 0);
        gpsti_a64_store(&cursor->missed, 0);
        ring->n_readers++;
    }
    gpsti_mutex_unlock(&ring->mutex);
    GPSTI_FAIL_IF(index == ring->desc.max_readers, GPST_ERROR_STATE,
                  "%s: the ring has as many readers as it was made for: desc.max_readers=%u", function,
                  ring->desc.max_readers);
    *out = &ring->readers[index];
    return GPST_OK;
}

/* What is committed from here on does not count it any more. */
GPST_API void gpst_ring_reader_destroy(gpst_ring_reader* reader) {
    if (!reader || gpsti_context_forked(reader->ring->context))
        return;
    gpst_ring* const ring = reader->ring;
    gpsti_ring_cursor* const cursor = &ring->cursors[reader->index];
    gpsti_mutex_lock(&ring->mutex);
    if (cursor->active) {
        gpsti_ring_skip_to(ring, cursor, gpsti_a64_load(&ring->producer.tail));
        for (uint32_t id = 0; id < ring->desc.max_slots; id++)
            gpsti_ring_reader_give_back(ring, reader->index, id);
        cursor->active = 0;
        ring->n_readers--;
    }
    gpsti_mutex_unlock(&ring->mutex);
}

GPST_API gpst_result gpst_ring_reader_take(gpst_ring_reader* reader, int64_t timeout_ns, gpst_stream* stream,
                                           gpst_ring_slot* out) {
    const char* function = "gpst_ring_reader_take";
    if (out)
        gpsti_ring_forget(out);
    GPSTI_TRY(gpsti_ring_reader_check(reader, function));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: must not be NULL", function);
    gpst_ring* const ring = reader->ring;
    GPSTI_TRY(gpsti_ring_check_stream(ring, stream, function));
    const gpsti_ring_try look = ring->adapt ? gpsti_ring_reader_counted_take : gpsti_ring_reader_try_take;
    gpst_result result = gpsti_ring_get(ring, look, reader, &ring->items, timeout_ns, out);
    if (result != GPST_OK)
        return gpsti_ring_explain(result, function, timeout_ns, "nothing was committed");
    const uint32_t id = (out->id ^ gpsti_ring_reader_role(reader->index)) - 1;
    result = gpsti_ring_await_filled(ring, id, stream, function);
    if (GPST_FAILED(result)) {
        gpsti_ring_forget(out);
        gpsti_ring_reader_give_back(ring, reader->index, id);
    }
    return result;
}

GPST_API gpst_result gpst_ring_reader_release(gpst_ring_reader* reader, gpst_ring_slot* slot, gpst_stream* stream) {
    const char* function = "gpst_ring_reader_release";
    GPSTI_TRY(gpsti_ring_reader_check(reader, function));
    gpst_ring* const ring = reader->ring;
    const uint32_t role = gpsti_ring_reader_role(reader->index);
    const uint32_t id = gpsti_ring_claim(ring, slot, role, function);
    if (id == GPSTI_RING_NO_SLOT)
        return GPST_ERROR_ARGUMENT;
    const gpst_result result = gpsti_ring_record_released(ring, id, reader->index, stream, function);
    if (GPST_FAILED(result))
        return gpsti_ring_unclaim(ring, id, role, slot, result);
    gpsti_ring_forget(slot);
    gpsti_ring_drop_reference(ring, id);
    return GPST_OK;
}

GPST_API void gpst_ring_reader_query_info(const gpst_ring_reader* reader, gpst_ring_reader_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!reader)
        return;
    const gpsti_ring_cursor* const cursor = &reader->ring->cursors[reader->index];
    const uint64_t at = gpsti_a64_load(&cursor->at); /* before tail: never ahead of it */
    const uint64_t tail = gpsti_a64_load(&reader->ring->producer.tail);
    out->taken = gpsti_a64_load(&cursor->taken);
    out->missed = gpsti_a64_load(&cursor->missed);
    out->behind =
        tail > at ? (uint32_t)(tail - at < reader->ring->desc.max_slots ? tail - at : reader->ring->desc.max_slots) : 0;
}

/* ---- init / term ------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_ring_readers_init(gpst_ring* ring) {
    gpsti_host* const host = &ring->context->host;
    const size_t n = ring->desc.max_readers;
    if (!n)
        return GPST_OK;
    ring->readers = (gpst_ring_reader*)gpsti_alloc(host, n * sizeof *ring->readers);
    ring->cursors = (gpsti_ring_cursor*)gpsti_alloc(host, n * sizeof *ring->cursors);
    ring->holds = (gpsti_a32*)gpsti_alloc(host, n * ring->desc.max_slots * sizeof *ring->holds);
    if (!ring->readers || !ring->cursors || !ring->holds)
        return gpsti_fail_in(GPST_ERROR_MEMORY, "gpst_ring_create");
    for (uint32_t i = 0; i < n; i++) {
        ring->readers[i].ring = ring;
        ring->readers[i].index = i;
    }
    ring->try_acquire = ring->adapt ? gpsti_ring_readers_counted_acquire : gpsti_ring_readers_try_acquire;
    ring->try_take = gpsti_ring_readers_refuse_take;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_ring_readers_term(gpst_ring* ring) {
    gpsti_host* const host = &ring->context->host;
    const size_t n = ring->desc.max_readers;
    gpsti_free(host, ring->holds, n * ring->desc.max_slots * sizeof *ring->holds);
    gpsti_free(host, ring->cursors, n * sizeof *ring->cursors);
    gpsti_free(host, ring->readers, n * sizeof *ring->readers);
}
