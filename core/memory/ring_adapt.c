/* core/memory/ring_adapt.c -- an adaptive ring measures itself and follows its policy (ring_depth.c), on the threads
   that use it. A ring that is not adaptive never comes here. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#include <string.h>

/* ---- counted as it happens ------------------------------------------------------------- */

/* A time of 0 would mean "not now". Clocks of cores may differ by little. */
GPSTI_PRIVATE uint64_t gpsti_ring_elapsed(uint64_t since, uint64_t now) {
    return since && now > since ? now - since : 0;
}

GPSTI_PRIVATE void gpsti_ring_begin_span(const gpst_ring* ring, gpsti_ring_span* span) {
    if (!gpsti_a64_load_relaxed(&span->since))
        gpsti_a64_store_relaxed(&span->since, gpsti_ring_time(ring) | 1);
}

GPSTI_PRIVATE void gpsti_ring_end_span(const gpst_ring* ring, gpsti_ring_span* span) {
    const uint64_t since = gpsti_a64_load_relaxed(&span->since);
    if (!since)
        return;
    const uint64_t elapsed = gpsti_ring_elapsed(since, gpsti_ring_time(ring));
    gpsti_a64_store_relaxed(&span->since, 0);
    gpsti_a64_store_relaxed(&span->ticks, gpsti_a64_load_relaxed(&span->ticks) + elapsed);
}

/* With what is so at present. Where another thread ends the span now, this part may be missing or counted twice. */
GPSTI_PRIVATE uint64_t gpsti_ring_span_ticks(const gpsti_ring_span* span, uint64_t now) {
    return gpsti_a64_load_relaxed(&span->ticks) + gpsti_ring_elapsed(gpsti_a64_load_relaxed(&span->since), now);
}

GPSTI_INTERN void gpsti_ring_count_acquire(gpst_ring* ring, gpst_result result, uint64_t n_used) {
    gpsti_ring_adapt* const adapt = ring->adapt;
    if (result == GPST_ERROR_WOULD_BLOCK)
        gpsti_ring_begin_span(ring, &adapt->full);
    else if (result == GPST_OK)
        gpsti_ring_end_span(ring, &adapt->full);
    if (n_used > adapt->peak)
        adapt->peak = (uint32_t)n_used;
}

GPSTI_INTERN void gpsti_ring_count_take(gpst_ring* ring, gpst_result result) {
    if (result == GPST_ERROR_WOULD_BLOCK)
        gpsti_ring_begin_span(ring, &ring->adapt->empty);
    else if (result == GPST_OK)
        gpsti_ring_end_span(ring, &ring->adapt->empty);
}

GPSTI_INTERN bool gpsti_ring_count_commit(gpst_ring* ring) {
    gpsti_ring_adapt* const adapt = ring->adapt;
    if (++adapt->n_commits < GPSTI_RING_INTERVAL_COMMITS)
        return false;
    adapt->n_commits = 0;
    return gpsti_now_ns() - adapt->start_ns >= GPSTI_RING_INTERVAL_NS;
}

/* ---- intervals -------------------------------------------------------------------------- */

GPSTI_PRIVATE uint32_t gpsti_ring_count_used(const gpst_ring* ring) {
    return ring->spsc ? (uint32_t)(ring->producer.granted - ring->producer.returned_seen)
                      : (uint32_t)gpsti_ring_used(gpsti_a64_load(&ring->state));
}

/* Of a span's time, what came since the interval's start. */
GPSTI_PRIVATE uint64_t gpsti_ring_since(uint64_t start_ticks, uint64_t ticks) {
    return ticks > start_ticks ? ticks - start_ticks : 0;
}

GPSTI_PRIVATE void gpsti_ring_measure(const gpst_ring* ring, gpsti_ring_interval* out) {
    const gpsti_ring_adapt* const adapt = ring->adapt;
    const uint64_t now = gpsti_ring_time(ring);
    out->n_commits = gpsti_a64_load_relaxed(&ring->producer.tail) - adapt->start_tail;
    out->ticks = now > adapt->start_ticks ? now - adapt->start_ticks : 1;
    out->full_ticks = gpsti_ring_since(adapt->start_full_ticks, gpsti_ring_span_ticks(&adapt->full, now));
    out->empty_ticks = gpsti_ring_since(adapt->start_empty_ticks, gpsti_ring_span_ticks(&adapt->empty, now));
    out->peak = adapt->peak;
    out->used = gpsti_ring_count_used(ring);
}

GPSTI_PRIVATE void gpsti_ring_begin_interval(gpst_ring* ring) {
    gpsti_ring_adapt* const adapt = ring->adapt;
    adapt->start_ns = gpsti_now_ns();
    adapt->start_ticks = gpsti_ring_time(ring);
    adapt->start_tail = gpsti_a64_load_relaxed(&ring->producer.tail);
    adapt->start_full_ticks = gpsti_ring_span_ticks(&adapt->full, adapt->start_ticks);
    adapt->start_empty_ticks = gpsti_ring_span_ticks(&adapt->empty, adapt->start_ticks);
    adapt->n_commits = 0;
    adapt->peak = gpsti_ring_count_used(ring);
}

/* ---- decisions -------------------------------------------------------------------------- */

/* The caller's call does not fail: the reason of this thread stays as it is. */
GPSTI_PRIVATE gpst_result gpsti_ring_grow_quietly(gpst_ring* ring, uint32_t depth) {
    char reason[512];
    gpsti_copy_text(reason, sizeof reason, gpst_last_reason());
    const gpst_result result = gpsti_ring_grow_memory(ring, depth);
    if (GPST_FAILED(result) && reason[0])
        (void)gpsti_fail(result, "%s", reason);
    else if (GPST_FAILED(result))
        gpst_clear_reason();
    return result;
}

GPSTI_PRIVATE void gpsti_ring_record(gpst_ring* ring, uint32_t before, uint32_t after, const char* reason) {
    gpsti_ring_adapt* const adapt = ring->adapt;
    gpst_ring_decision* const decision = &adapt->decisions[adapt->n_decisions++ % GPST_RING_MAX_DECISIONS];
    decision->commit = gpsti_a64_load_relaxed(&ring->producer.tail);
    decision->before = before;
    decision->after = after;
    gpsti_copy_text(decision->reason, sizeof decision->reason, reason);
}

/* Memory is made and freed without the mutex. */
GPSTI_PRIVATE void gpsti_ring_follow(gpst_ring* ring, uint32_t before, uint32_t depth,
                                     char reason[GPST_RING_REASON_BYTES]) {
    const gpst_result result = depth > before ? gpsti_ring_grow_quietly(ring, depth) : GPST_OK;
    gpsti_mutex_lock(&ring->mutex);
    if (GPST_FAILED(result)) {
        const uint32_t n_more = depth - before;
        depth = gpsti_ring_depth_refuse(&ring->adapt->policy);
        gpsti_format(reason, GPST_RING_REASON_BYTES, "%s: no memory for %u more slots (%s)",
                     depth == before ? "stays" : "taken back", n_more, gpst_result_name(result));
    }
    gpsti_a32_store(&ring->depth, depth);
    if (reason[0])
        gpsti_ring_record(ring, before, depth, reason);
    gpsti_ring_begin_interval(ring);
    gpsti_mutex_unlock(&ring->mutex);
    gpsti_ring_shrink_memory(ring);
    if (depth > before)
        gpsti_ring_notify(&ring->space, UINT32_MAX);
}

GPSTI_INTERN void gpsti_ring_evaluate(gpst_ring* ring, const gpsti_ring_interval* made_up) {
    gpsti_ring_adapt* const adapt = ring->adapt;
    gpsti_ring_interval interval;
    char reason[GPST_RING_REASON_BYTES];
    if (gpsti_a32_load(&ring->closed) || gpsti_a32_exchange(&adapt->evaluating, 1))
        return;
    gpsti_mutex_lock(&ring->mutex);
    if (ring->spsc)
        gpsti_ring_gather_free(ring); /* what was released is free before anything is counted */
    gpsti_ring_measure(ring, &interval);
    if (made_up) {
        const uint32_t n_used = interval.used;
        interval = *made_up;
        interval.used = n_used;
    }
    const uint32_t before = adapt->policy.depth;
    const uint32_t depth = gpsti_ring_depth_judge(&adapt->policy, &interval, reason);
    gpsti_mutex_unlock(&ring->mutex);
    gpsti_ring_follow(ring, before, depth, reason);
    gpsti_a32_store(&adapt->evaluating, 0);
}

GPST_API void gpst_ring_query_decisions(const gpst_ring* ring, gpst_ring_decision* out, uint32_t max, uint32_t* n) {
    if (!n)
        return;
    *n = 0;
    if (!ring || !ring->adapt)
        return;
    gpst_ring* const locked = (gpst_ring*)ring;
    const gpsti_ring_adapt* const adapt = ring->adapt;
    gpsti_mutex_lock(&locked->mutex);
    *n = adapt->n_decisions < GPST_RING_MAX_DECISIONS ? (uint32_t)adapt->n_decisions : GPST_RING_MAX_DECISIONS;
    const uint32_t n_rows = !out ? 0 : *n < max ? *n : max;
    for (uint32_t i = 0; i < n_rows; i++)
        out[i] = adapt->decisions[(adapt->n_decisions - n_rows + i) % GPST_RING_MAX_DECISIONS];
    gpsti_mutex_unlock(&locked->mutex);
}

/* ---- init / term ------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_ring_adapt_init(gpst_ring* ring) {
    ring->adapt = (gpsti_ring_adapt*)gpsti_alloc(&ring->context->host, sizeof *ring->adapt);
    if (!ring->adapt)
        return gpsti_fail_in(GPST_ERROR_MEMORY, "gpst_ring_create");
    gpsti_ring_depth_init(&ring->adapt->policy, ring->desc.min_depth, ring->max_depth, ring->desc.depth);
    gpsti_ring_begin_interval(ring);
    return GPST_OK;
}

GPSTI_INTERN void gpsti_ring_adapt_term(gpst_ring* ring) {
    gpsti_free(&ring->context->host, ring->adapt, sizeof *ring->adapt);
}
