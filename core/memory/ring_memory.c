/* core/memory/ring_memory.c -- the memory of a ring's slots: one piece for all of them, or, of an adaptive ring, one
   for each, which comes and goes with the depth. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#include <string.h>

GPSTI_PRIVATE void gpsti_ring_describe(const gpst_context* context, gpst_memory_kind kind, size_t bytes,
                                       gpsti_memory_request* request) {
    memset(request, 0, sizeof *request);
    request->kind = kind == GPST_MEMORY_DEVICE ? GPSTI_MEMORY_DEVICE
                    : kind == GPST_MEMORY_HOST ? GPSTI_MEMORY_HOST
                                               : GPSTI_MEMORY_PINNED;
    request->asked_bytes = bytes;
    request->tag = context ? gpsti_memory_tag(context->memory, "ring") : 0;
}

/* Device memory is aligned as the driver aligns it: less than a page. */
GPSTI_PRIVATE size_t gpsti_ring_slack(const gpst_ring_desc* desc) {
    return desc->memory == GPST_MEMORY_DEVICE ? desc->align_bytes - 1 : 0;
}

/* What a slot with memory of its own takes, in small pages. */
GPSTI_PRIVATE gpst_result gpsti_ring_slot_cost(const gpst_ring_desc* desc, size_t stride_bytes, size_t* cost_bytes) {
    gpsti_memory_request request;
    GPSTI_FAIL_IF(!gpsti_size_add(stride_bytes, gpsti_ring_slack(desc), &stride_bytes), GPST_ERROR_OVERFLOW,
                  "desc.slot_bytes=%zu: too many", desc->slot_bytes);
    gpsti_ring_describe(NULL, desc->memory, stride_bytes, &request);
    GPSTI_TRY(gpsti_memory_classify(&request));
    return gpsti_size_round_up(request.bytes, gpsti_page_bytes(), cost_bytes) ? GPST_OK : GPST_ERROR_OVERFLOW;
}

GPSTI_INTERN gpst_result gpsti_ring_plan_memory(const gpst_ring_desc* desc, size_t* stride_bytes, uint32_t* max_depth) {
    size_t all_bytes = 0, cost_bytes = 0;
    *stride_bytes = 0;
    *max_depth = desc->max_slots;
    if (!desc->slot_bytes)
        return GPST_OK;
    GPSTI_FAIL_IF(!gpsti_size_round_up(desc->slot_bytes, desc->align_bytes, stride_bytes) ||
                      !gpsti_size_mul(*stride_bytes, desc->max_slots, &all_bytes) ||
                      (desc->adaptive && GPST_FAILED(gpsti_ring_slot_cost(desc, *stride_bytes, &cost_bytes))),
                  GPST_ERROR_OVERFLOW, "gpst_ring_create: desc.slot_bytes=%zu: times max_slots=%u does not fit",
                  desc->slot_bytes, desc->max_slots);
    if (desc->max_bytes && desc->max_bytes / cost_bytes < desc->max_slots)
        *max_depth = (uint32_t)(desc->max_bytes / cost_bytes);
    return GPST_OK;
}

/* ---- of an adaptive ring -------------------------------------------------------------- */

GPSTI_PRIVATE gpst_buffer* gpsti_ring_buffer(gpst_ring* ring, uint32_t bare) {
    return &ring->slots[ring->free_ids[ring->desc.max_slots - bare]];
}

/* Memory for the slots at the places first .. last, counted from the end of free_ids. */
GPSTI_PRIVATE void gpsti_ring_release_buffers(gpst_ring* ring, uint32_t first, uint32_t last) {
    gpsti_memory* const memory = ring->context->memory;
    for (uint32_t i = first; i <= last; i++)
        gpst_pool_release(ring->pool, gpsti_ring_buffer(ring, i));
    gpsti_mutex_lock(&memory->mutex);
    gpsti_memory_disown(memory, ring->pool); /* for anybody's use, and out of max_bytes */
    gpsti_mutex_unlock(&memory->mutex);
}

GPSTI_INTERN gpst_result gpsti_ring_grow_memory(gpst_ring* ring, uint32_t depth) {
    const uint32_t n_backed = ring->desc.max_slots - ring->n_bare;
    const uint32_t n = ring->slots && depth > n_backed ? depth - n_backed : 0;
    const size_t bytes = ring->stride_bytes + gpsti_ring_slack(&ring->desc);
    for (uint32_t i = 0; i < n; i++) {
        gpst_buffer* const buffer = gpsti_ring_buffer(ring, ring->n_bare - i);
        const gpst_result result = gpst_pool_acquire(ring->pool, bytes, 0, buffer);
        if (GPST_FAILED(result)) {
            if (i)
                gpsti_ring_release_buffers(ring, ring->n_bare - i + 1, ring->n_bare);
            return result == GPST_ERROR_WOULD_BLOCK ? GPST_ERROR_BUDGET : result;
        }
        if (ring->desc.memory != GPST_MEMORY_DEVICE)
            GPSTI_POISON(buffer->data, buffer->bytes);
    }
    gpsti_mutex_lock(&ring->mutex);
    for (uint32_t i = 0; i < n; i++)
        ring->free_ids[ring->producer.n_free++] = ring->free_ids[ring->desc.max_slots - ring->n_bare--];
    if (!ring->spsc)
        gpsti_ring_scatter_free(ring);
    gpsti_mutex_unlock(&ring->mutex);
    return GPST_OK;
}

/* The slots at the bottom of the stack go: those above are warmer. One that the device still uses stays until the next
   evaluation. */
GPSTI_INTERN void gpsti_ring_shrink_memory(gpst_ring* ring) {
    const uint32_t depth = gpsti_a32_load_relaxed(&ring->depth), first = ring->n_bare + 1;
    if (!ring->slots || ring->desc.max_slots - ring->n_bare <= depth)
        return;
    gpsti_mutex_lock(&ring->mutex);
    if (!ring->spsc)
        gpsti_ring_gather_free(ring);
    while (ring->desc.max_slots - ring->n_bare > depth && ring->producer.n_free &&
           gpsti_ring_device_is_done(ring, ring->free_ids[0])) {
        const uint32_t id = ring->free_ids[0];
        ring->free_ids[0] = ring->free_ids[--ring->producer.n_free];
        ring->free_ids[ring->desc.max_slots - ++ring->n_bare] = id;
    }
    if (!ring->spsc)
        gpsti_ring_scatter_free(ring);
    gpsti_mutex_unlock(&ring->mutex);
    if (ring->n_bare >= first)
        gpsti_ring_release_buffers(ring, first, ring->n_bare);
}

GPSTI_PRIVATE gpst_result gpsti_ring_map_each(gpst_ring* ring) {
    gpst_pool_desc desc;
    memset(&desc, 0, sizeof desc);
    desc.max_bytes = ring->desc.max_bytes;
    desc.kind = ring->desc.memory;
    desc.tag = "ring";
    ring->slots = (gpst_buffer*)gpsti_alloc(&ring->context->host, ring->desc.max_slots * sizeof *ring->slots);
    if (!ring->slots)
        return GPST_ERROR_MEMORY;
    GPSTI_TRY(gpst_pool_create(ring->context, &desc, &ring->pool));
    ring->n_bare = ring->desc.max_slots;
    ring->producer.n_free = 0;
    return gpsti_ring_grow_memory(ring, ring->desc.depth);
}

/* ---- of any ring ------------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_ring_map_all(gpst_ring* ring) {
    const gpst_ring_desc* const desc = &ring->desc;
    gpsti_memory_request request;
    size_t bytes = ring->stride_bytes * desc->max_slots;
    const size_t slack_bytes = gpsti_ring_slack(desc);
    GPSTI_FAIL_IF(!gpsti_size_add(bytes, slack_bytes, &bytes), GPST_ERROR_OVERFLOW, "desc.slot_bytes=%zu: too many",
                  desc->slot_bytes);
    gpsti_ring_describe(ring->context, desc->memory, bytes, &request);
    GPSTI_TRY(gpsti_memory_acquire(ring->context, &request, &ring->memory));
    ring->data = (uint8_t*)ring->memory.data;
    ring->data += (0 - (uintptr_t)ring->data) & slack_bytes;
    if (desc->memory != GPST_MEMORY_DEVICE)
        GPSTI_POISON(ring->memory.data, ring->memory.bytes);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_ring_map(gpst_ring* ring) {
    if (!ring->desc.slot_bytes)
        return GPST_OK;
    const gpst_result result = ring->adapt ? gpsti_ring_map_each(ring) : gpsti_ring_map_all(ring);
    return GPST_FAILED(result) ? gpsti_fail_in(result, "gpst_ring_create") : GPST_OK;
}

GPSTI_INTERN void gpsti_ring_unmap(gpst_ring* ring) {
    if (ring->memory.data)
        gpsti_memory_release(ring->context, &ring->memory);
    if (ring->pool) {
        for (uint32_t i = 0; i < ring->desc.max_slots; i++)
            gpst_pool_release(ring->pool, &ring->slots[i]); /* of no bare slot: there is nothing */
        (void)gpst_pool_destroy(ring->pool);
    }
    gpsti_free(&ring->context->host, ring->slots, ring->desc.max_slots * sizeof *ring->slots);
}

GPSTI_INTERN uint64_t gpsti_ring_memory_bytes(const gpst_ring* ring) {
    gpst_pool_info info;
    gpst_pool_query_info(ring->pool, &info);
    return ring->memory.charged_bytes + info.live_bytes;
}
