/* core/memory/pool.c -- buffers of a context's memory under one tag, one cap and one set of statistics, and waiting for
   them. The memory is core/memory/memory.c's. */
#include "../base/platform_internal.h"

#include "pool_internal.h"

#include <string.h>

/* ---- acquire ---------------------------------------------------------------------- */

typedef struct gpsti_pool_waiter {
    int64_t timeout_ns, deadline_ns; /* deadline 0 = not looked at the clock yet */
} gpsti_pool_waiter;

/* OK after a wait that may have helped; else the result of the whole request. Locked. */
GPSTI_PRIVATE gpst_result gpsti_pool_wait(gpst_pool* pool, const gpsti_memory_request* request,
                                          gpsti_pool_waiter* waiter) {
    gpsti_memory* const memory = pool->context->memory;
    const uint64_t cap = pool->desc.max_bytes, live = pool->info.live_bytes, clock = memory->clock;
    const bool may_hope = pool->n_out > 0 || gpsti_caches_are_loading(memory);
    if (!may_hope || (cap && request->bytes > cap) || request->bytes > pool->context->info.max_host_bytes)
        return gpsti_memory_over_budget(memory, request);
    GPSTI_FAIL_IF(waiter->timeout_ns <= 0, GPST_ERROR_WOULD_BLOCK,
                  "bytes=%zu: %llu bytes of the pool are on loan and its budget has no room for %zu more",
                  request->asked_bytes, (unsigned long long)live, request->bytes);
    const int64_t start_ns = gpsti_now_ns();
    if (!waiter->deadline_ns) {
        waiter->deadline_ns = gpsti_deadline(waiter->timeout_ns);
        pool->info.waits++;
    }
    GPSTI_FAIL_IF(start_ns >= waiter->deadline_ns, GPST_ERROR_TIMEOUT,
                  "bytes=%zu: nothing that fits came back within %lld ns (%llu bytes are on loan)",
                  request->asked_bytes, (long long)waiter->timeout_ns, (unsigned long long)live);
    if (memory->clock == clock) /* else something came back while caches were asked */
        gpsti_memory_wait(memory, waiter->deadline_ns);
    pool->info.wait_ns += (uint64_t)(gpsti_now_ns() - start_ns);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_pool_acquire(gpst_pool* pool, size_t bytes, int64_t timeout_ns, bool is_filled,
                                             gpsti_a64* grown, gpst_buffer* out) {
    const char* function = "gpst_pool_acquire";
    gpsti_memory_request request;
    gpsti_pool_waiter waiter;
    if (out)
        memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(!pool || !out, GPST_ERROR_ARGUMENT, "%s: %s=NULL: must not be NULL", function, pool ? "out" : "pool");
    GPSTI_TRY(gpsti_context_check(pool->context, function));
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "%s: bytes=0: must be at least 1", function);
    memset(&request, 0, sizeof request);
    request.kind = GPSTI_MEMORY_PINNED;
    request.asked_bytes = bytes;
    request.huge_pages = pool->desc.huge_pages;
    request.is_filled = is_filled;
    request.tag = pool->tag;
    request.pool = pool;
    request.grown_ns = grown;
    GPSTI_FAIL_IF(GPST_FAILED(gpsti_memory_classify(&request)), GPST_ERROR_OVERFLOW,
                  "%s: bytes=%zu: must be below SIZE_MAX/2", function, bytes);
    waiter.timeout_ns = timeout_ns;
    waiter.deadline_ns = 0;
    gpsti_memory* const memory = pool->context->memory;
    gpst_result waited = GPST_OK;
    gpsti_mutex_lock(&memory->mutex);
    gpst_result result = gpsti_memory_try(memory, &request, out);
    while (result == GPST_ERROR_WOULD_BLOCK && !GPST_FAILED(waited)) {
        waited = gpsti_pool_wait(pool, &request, &waiter);
        result = GPST_FAILED(waited) ? gpsti_fail_in(waited, function) : gpsti_memory_try(memory, &request, out);
    }
    pool->info.refusals += GPST_FAILED(result);
    gpsti_mutex_unlock(&memory->mutex);
    return result;
}

GPST_API gpst_result gpst_pool_acquire(gpst_pool* pool, size_t bytes, int64_t timeout_ns, gpst_buffer* out) {
    return gpsti_pool_acquire(pool, bytes, timeout_ns, false, NULL, out);
}

GPSTI_INTERN gpst_result gpsti_pool_acquire_now(gpst_pool* pool, size_t bytes, bool is_filled, gpsti_a64* grown,
                                                gpst_buffer* out) {
    return gpsti_pool_acquire(pool, bytes, 0, is_filled, grown, out);
}

/* ---- release ---------------------------------------------------------------------- */

GPST_API void gpst_pool_release(gpst_pool* pool, gpst_buffer* buffer) {
    if (!pool || !buffer || !buffer->data)
        return;
    gpsti_mutex_lock(&pool->context->memory->mutex);
    const bool known = gpsti_memory_give(pool->context->memory, pool, buffer);
    gpsti_mutex_unlock(&pool->context->memory->mutex);
    if (!known)
        GPSTI_LOG(
            &pool->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
            "gpst_pool_release: buffer.id=%llu data=%p: not on loan from this pool (released already, or "
            "another's); ignored",
            (unsigned long long)buffer->id, buffer->data);
    memset(buffer, 0, sizeof *buffer);
}

GPST_API void gpst_pool_trim(gpst_pool* pool) {
    if (!pool)
        return;
    gpsti_mutex_lock(&pool->context->memory->mutex);
    gpsti_memory_trim_pool(pool->context->memory, pool);
    gpsti_mutex_unlock(&pool->context->memory->mutex);
}

GPST_API void gpst_pool_query_info(const gpst_pool* pool, gpst_pool_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!pool)
        return;
    gpsti_mutex_lock(&pool->context->memory->mutex);
    *out = pool->info;
    gpsti_mutex_unlock(&pool->context->memory->mutex);
}

/* ---- create / destroy -------------------------------------------------------------- */

GPST_API gpst_result gpst_pool_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                const gpst_pool_desc* desc, gpst_pool** out) {
    const char* function = "gpst_pool_create";
    gpst_pool_desc defaults = GPST_ZERO;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(function, version, desc_bytes, sizeof *desc));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: must point to a gpst_pool*", function);
    GPSTI_TRY(gpsti_context_check(context, function));
    if (!desc)
        desc = &defaults;
    GPSTI_TRY(gpsti_check_canaries(function, desc->start_canary, desc->end_canary));
    GPSTI_FAIL_IF((int)desc->huge_pages < 0 || desc->huge_pages > GPST_HUGE_PAGES_ALWAYS, GPST_ERROR_ARGUMENT,
                  "%s: desc.huge_pages=%d: must be 0..%d", function, (int)desc->huge_pages,
                  (int)GPST_HUGE_PAGES_ALWAYS);
    gpst_pool* const pool = (gpst_pool*)gpsti_alloc(&context->host, sizeof *pool);
    if (!pool)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    pool->context = context;
    pool->desc = *desc;
    pool->desc.tag = NULL;
    pool->tag = gpsti_memory_tag(context->memory, desc->tag);
    *out = pool;
    return GPST_OK;
}

GPST_API gpst_result gpst_pool_destroy(gpst_pool* pool) {
    if (!pool)
        return GPST_OK;
    gpsti_memory* const memory = pool->context->memory;
    GPSTI_TRY(gpsti_context_check(pool->context, "gpst_pool_destroy"));
    gpsti_mutex_lock(&memory->mutex);
    const uint32_t n_out = pool->n_out;
    if (!n_out)
        gpsti_memory_disown(memory, pool);
    gpsti_mutex_unlock(&memory->mutex);
    GPSTI_FAIL_IF(n_out, GPST_ERROR_STATE, "gpst_pool_destroy: %u buffers are on loan: release them first", n_out);
    gpsti_free(&pool->context->host, pool, sizeof *pool);
    return GPST_OK;
}
