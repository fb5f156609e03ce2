/* core/memory/ring_event.c -- the events of a ring's slots: one that the producer records, and one for each reader; who
   waits for which. They are made with the ring. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

GPSTI_PRIVATE uint32_t gpsti_ring_event_rows(const gpst_ring* ring) {
    return ring->desc.max_readers ? 1 + ring->desc.max_readers : 2;
}

GPSTI_PRIVATE gpst_event* gpsti_ring_event_at(const gpst_ring* ring, uint32_t row, uint32_t id) {
    return ring->events[(size_t)row * ring->desc.max_slots + id];
}

GPSTI_INTERN gpst_result gpsti_ring_events_init(gpst_ring* ring) {
    const size_t n = (size_t)gpsti_ring_event_rows(ring) * ring->desc.max_slots;
    if (!ring->desc.streams)
        return GPST_OK;
    ring->events = (gpst_event**)gpsti_alloc(&ring->context->host, n * sizeof *ring->events);
    gpst_result result = ring->events ? GPST_OK : GPST_ERROR_MEMORY;
    for (size_t i = 0; i < n && !GPST_FAILED(result); i++)
        result = gpsti_event_make(&ring->context->public_device, &ring->events[i]);
    return GPST_FAILED(result) ? gpsti_fail_in(result, "gpst_ring_create") : GPST_OK;
}

/* Those that were recorded since the slot was last committed. */
GPSTI_PRIVATE gpst_result gpsti_ring_wait_marks(const gpst_ring* ring, uint32_t id, uint64_t marks,
                                                int64_t deadline_ns) {
    for (uint32_t row = 0; row < gpsti_ring_event_rows(ring); row++) {
        const int64_t left_ns = deadline_ns == GPST_FOREVER ? GPST_FOREVER : deadline_ns - gpsti_now_ns();
        if (marks >> row & 1)
            GPSTI_TRY(gpst_event_wait(gpsti_ring_event_at(ring, row, id), left_ns > 0 ? left_ns : 0));
    }
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_ring_device_is_done(const gpst_ring* ring, uint32_t id) {
    const uint64_t marks = ring->events ? gpsti_a64_load(&ring->entries[id].marks) : 0;
    char before[GPSTI_REASON_BYTES];
    if (!marks)
        return true;
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    const gpst_result result = gpsti_ring_wait_marks(ring, id, marks, 0);
    (void)gpsti_fail(GPST_OK, "%s", before);
    return result != GPST_ERROR_WOULD_BLOCK && result != GPST_ERROR_TIMEOUT;
}

GPSTI_INTERN void gpsti_ring_events_term(gpst_ring* ring) {
    const size_t n = (size_t)gpsti_ring_event_rows(ring) * ring->desc.max_slots;
    char before[GPSTI_REASON_BYTES];
    if (!ring->events)
        return;
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    for (uint32_t id = 0; id < ring->desc.max_slots; id++)
        (void)gpsti_ring_wait_marks(ring, id, gpsti_a64_load(&ring->entries[id].marks), GPST_FOREVER);
    for (size_t i = 0; i < n; i++)
        gpst_event_destroy(ring->events[i]);
    gpsti_free(&ring->context->host, ring->events, n * sizeof *ring->events);
    (void)gpsti_fail(GPST_OK, "%s", before);
}

/* ---- streams ----------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_ring_check_stream(const gpst_ring* ring, const gpst_stream* stream,
                                                 const char* function) {
    if (!stream)
        return GPST_OK;
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(stream->device != &ring->context->public_device, GPST_ERROR_ARGUMENT,
                  "%s: stream: must be of the device of the ring's context (gpst_context_device)", function);
    GPSTI_FAIL_IF(!ring->events, GPST_ERROR_STATE, "%s: stream: must be NULL: the ring was made without desc.streams",
                  function);
    return GPST_OK;
}

/* For the producer's event, too: the slot may have been given up while it was filled. */
GPSTI_INTERN gpst_result gpsti_ring_await_users(const gpst_ring* ring, uint32_t id, gpst_stream* stream,
                                                const char* function) {
    uint64_t marks = stream ? gpsti_a64_load(&ring->entries[id].marks) : 0;
    for (uint32_t row = 0; marks; row++, marks >>= 1)
        if (marks & 1)
            GPSTI_TRY(gpsti_device_result(gpsti_stream_await(stream, gpsti_ring_event_at(ring, row, id)), function));
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_ring_await_filled(const gpst_ring* ring, uint32_t id, gpst_stream* stream,
                                                 const char* function) {
    if (!stream || !(gpsti_a64_load(&ring->entries[id].marks) & GPSTI_RING_FILLED))
        return GPST_OK;
    return gpsti_device_result(gpsti_stream_await(stream, gpsti_ring_event_at(ring, 0, id)), function);
}

GPSTI_INTERN gpst_result gpsti_ring_record_filled(gpst_ring* ring, uint32_t id, gpst_stream* stream,
                                                  const char* function) {
    GPSTI_TRY(gpsti_ring_check_stream(ring, stream, function));
    if (stream)
        GPSTI_TRY(gpsti_device_result(gpsti_event_record(gpsti_ring_event_at(ring, 0, id), stream), function));
    gpsti_a64_store(&ring->entries[id].marks, stream ? GPSTI_RING_FILLED : 0);
    return GPST_OK;
}

/* A reader releases a slot once: its bit is not set yet. */
GPSTI_INTERN gpst_result gpsti_ring_record_released(gpst_ring* ring, uint32_t id, uint32_t row, gpst_stream* stream,
                                                    const char* function) {
    GPSTI_TRY(gpsti_ring_check_stream(ring, stream, function));
    if (!stream)
        return GPST_OK;
    GPSTI_TRY(gpsti_device_result(gpsti_event_record(gpsti_ring_event_at(ring, 1 + row, id), stream), function));
    (void)gpsti_a64_add(&ring->entries[id].marks, GPSTI_RING_RELEASED(row));
    return GPST_OK;
}

/* ---- the host ------------------------------------------------------------------------------ */

GPST_API gpst_result gpst_ring_slot_wait(gpst_ring* ring, const gpst_ring_slot* slot, int64_t timeout_ns) {
    const char* function = "gpst_ring_slot_wait";
    GPSTI_FAIL_IF(!ring, GPST_ERROR_ARGUMENT, "%s: ring=NULL: must not be NULL", function);
    GPSTI_TRY(gpsti_context_check(ring->context, function));
    const uint32_t id = gpsti_ring_look_up(ring, slot, function);
    if (id == GPSTI_RING_NO_SLOT)
        return GPST_ERROR_ARGUMENT;
    if (!ring->events)
        return GPST_OK;
    const uint64_t mask = slot->id & GPSTI_RING_TAKEN ? GPSTI_RING_FILLED : UINT64_MAX;
    const uint64_t marks = gpsti_a64_load(&ring->entries[id].marks) & mask;
    const int64_t deadline_ns = timeout_ns == GPST_FOREVER ? GPST_FOREVER : gpsti_deadline(timeout_ns);
    const gpst_result result = gpsti_ring_wait_marks(ring, id, marks, deadline_ns);
    if (result == GPST_ERROR_WOULD_BLOCK || result == GPST_ERROR_TIMEOUT)
        return gpsti_fail(timeout_ns > 0 ? GPST_ERROR_TIMEOUT : GPST_ERROR_WOULD_BLOCK,
                          "%s: timeout_ns=%lld: the device is not done with the slot", function, (long long)timeout_ns);
    return GPST_FAILED(result) ? gpsti_fail_in(result, function) : GPST_OK;
}
