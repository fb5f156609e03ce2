/* core/memory/pool.c -- buffers of a context's memory under one tag, one cap and one set of statistics, and waiting for
   them. The memory is core/memory/memory.c's. */
#include "../base/platform_internal.h"

#include "pool_internal.h"

#include <string.h>

#define GPSTI_POOL_MOST_READY 65536u /* of each chunk size */

/* ---- acquire ---------------------------------------------------------------------- */

typedef struct gpsti_pool_waiter {
    int64_t timeout_ns, deadline_ns; /* deadline 0 = not looked at the clock yet */
} gpsti_pool_waiter;

/* OK after a wait that may have helped; else the result of the whole request. Locked. */
GPSTI_PRIVATE gpst_result gpsti_pool_wait(gpst_pool* pool, const gpsti_memory_request* request,
                                          gpsti_pool_waiter* waiter) {
    gpsti_memory* const memory = pool->context->memory;
    const uint64_t cap = pool->desc.max_bytes, live = pool->info.live_bytes, clock = memory->clock;
    const bool may_hope =
        pool->n_out > 0 || (!gpsti_memory_on_device(request->kind) && gpsti_caches_are_loading(memory));
    if (!may_hope || (cap && request->bytes > cap) || request->bytes > gpsti_memory_budget(memory, request->kind))
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

/* Of a pool with chunks, the index-th of them; else the size class. */
GPSTI_PRIVATE gpst_result gpsti_pool_size(const gpst_pool* pool, uint32_t index, gpsti_memory_request* request) {
    request->is_exact = pool->desc.n_chunk_bytes > 0;
    if (request->is_exact)
        request->asked_bytes = pool->chunks[index];
    return gpsti_memory_classify(request);
}

/* The chunk that fits best; n_chunk_bytes where none is large enough, and of a pool without chunks. */
GPSTI_PRIVATE uint32_t gpsti_pool_best_chunk(const gpst_pool* pool, size_t bytes) {
    uint32_t index = 0;
    while (index < pool->desc.n_chunk_bytes && pool->chunks[index] < bytes)
        index++;
    return index;
}

/* A larger chunk that is free serves before the system is asked to take others back. Locked. */
GPSTI_PRIVATE gpst_result gpsti_pool_try(gpst_pool* pool, gpsti_memory_request* request, uint32_t chunk,
                                         gpst_buffer* out) {
    gpsti_memory* const memory = pool->context->memory;
    gpsti_memory_request larger;
    if (gpsti_memory_try_free(memory, request, out))
        return GPST_OK;
    if (chunk + 1 < pool->desc.n_chunk_bytes && !gpsti_memory_has_room(memory, request, request->bytes)) {
        larger = *request;
        while (++chunk < pool->desc.n_chunk_bytes)
            if (!GPST_FAILED(gpsti_pool_size(pool, chunk, &larger)) && gpsti_memory_try_free(memory, &larger, out))
                return GPST_OK;
    }
    return gpsti_memory_try(memory, request, out);
}

GPSTI_PRIVATE gpst_result gpsti_pool_acquire(gpst_pool* pool, size_t bytes, int64_t timeout_ns, bool is_filled,
                                             gpst_buffer* out) {
    const char* function = "gpst_pool_acquire";
    gpsti_memory_request request;
    gpsti_pool_waiter waiter;
    if (out)
        memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(!pool || !out, GPST_ERROR_ARGUMENT, "%s: %s=NULL: must not be NULL", function, pool ? "out" : "pool");
    GPSTI_TRY(gpsti_context_check(pool->context, function));
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "%s: bytes=0: must be at least 1", function);
    const uint32_t chunk = gpsti_pool_best_chunk(pool, bytes), n_chunks = pool->desc.n_chunk_bytes;
    GPSTI_FAIL_IF(n_chunks > 0 && chunk == n_chunks, GPST_ERROR_ARGUMENT,
                  "%s: bytes=%zu: must be at most %zu, the largest of desc.chunk_bytes", function, bytes,
                  pool->chunks[n_chunks - 1]);
    memset(&request, 0, sizeof request);
    request.kind = pool->kind;
    request.asked_bytes = bytes;
    request.huge_pages = pool->desc.huge_pages;
    request.is_filled = is_filled;
    request.tag = pool->tag;
    request.pool = pool;
    GPSTI_FAIL_IF(GPST_FAILED(gpsti_pool_size(pool, chunk, &request)), GPST_ERROR_OVERFLOW,
                  "%s: bytes=%zu: must be below SIZE_MAX/2", function, bytes);
    waiter.timeout_ns = timeout_ns;
    waiter.deadline_ns = 0;
    gpsti_memory* const memory = pool->context->memory;
    gpst_result waited = GPST_OK;
    gpsti_mutex_lock(&memory->mutex);
    gpst_result result = gpsti_pool_try(pool, &request, chunk, out);
    while (result == GPST_ERROR_WOULD_BLOCK && !GPST_FAILED(waited)) {
        waited = gpsti_pool_wait(pool, &request, &waiter);
        result = GPST_FAILED(waited) ? gpsti_fail_in(waited, function) : gpsti_pool_try(pool, &request, chunk, out);
    }
    pool->info.refusals += GPST_FAILED(result);
    gpsti_mutex_unlock(&memory->mutex);
    if (request.crossed)
        gpsti_memory_alert(memory);
    if (GPST_FAILED(result))
        gpsti_memory_dump_refusal(memory, pool->kind, pool, result);
    return result;
}

GPST_API gpst_result gpst_pool_acquire(gpst_pool* pool, size_t bytes, int64_t timeout_ns, gpst_buffer* out) {
    return gpsti_pool_acquire(pool, bytes, timeout_ns, false, out);
}

GPSTI_INTERN gpst_result gpsti_pool_acquire_now(gpst_pool* pool, size_t bytes, bool is_filled, gpst_buffer* out) {
    return gpsti_pool_acquire(pool, bytes, 0, is_filled, out);
}

/* ---- release ---------------------------------------------------------------------- */

GPST_API void gpst_pool_release(gpst_pool* pool, gpst_buffer* buffer) {
    if (!pool || !buffer || !buffer->data)
        return;
    const gpst_buffer loan = *buffer;
    memset(buffer, 0, sizeof *buffer); /* first: who is lent the memory next may have the same struct */
    gpsti_mutex_lock(&pool->context->memory->mutex);
    const bool known = gpsti_memory_give(pool->context->memory, pool, &loan);
    gpsti_mutex_unlock(&pool->context->memory->mutex);
    if (!known)
        GPSTI_LOG(
            &pool->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
            "gpst_pool_release: buffer.id=%llu data=%p: not on loan from this pool (released already, or "
            "another's); ignored",
            (unsigned long long)loan.id, loan.data);
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

GPSTI_PRIVATE gpst_result gpsti_pool_validate_chunks(const char* function, const gpst_pool_desc* desc) {
    GPSTI_FAIL_IF(desc->n_chunk_bytes > GPST_POOL_MAX_CHUNK_SIZES, GPST_ERROR_ARGUMENT,
                  "%s: desc.n_chunk_bytes=%u: must be at most %d", function, desc->n_chunk_bytes,
                  GPST_POOL_MAX_CHUNK_SIZES);
    GPSTI_FAIL_IF(!desc->chunk_bytes != !desc->n_chunk_bytes, GPST_ERROR_ARGUMENT,
                  "%s: desc.n_chunk_bytes=%u: must be %s chunk_bytes=%s", function, desc->n_chunk_bytes,
                  desc->chunk_bytes ? "above 0 with" : "0 with", desc->chunk_bytes ? "a list" : "NULL");
    GPSTI_FAIL_IF(desc->n_ready > 0 && desc->n_chunk_bytes == 0, GPST_ERROR_ARGUMENT,
                  "%s: desc.n_ready=%u: must be 0 without chunk_bytes", function, desc->n_ready);
    GPSTI_FAIL_IF(desc->n_ready > GPSTI_POOL_MOST_READY, GPST_ERROR_ARGUMENT,
                  "%s: desc.n_ready=%u: must be at most %u", function, desc->n_ready, GPSTI_POOL_MOST_READY);
    const uint64_t cap = desc->max_bytes && desc->max_bytes < SIZE_MAX / 4 ? desc->max_bytes : SIZE_MAX / 4;
    const uint64_t most = cap / GPSTI_MEMORY_PAGE * GPSTI_MEMORY_PAGE;
    for (uint32_t i = 0; i < desc->n_chunk_bytes; i++)
        GPSTI_FAIL_IF(!desc->chunk_bytes[i] || desc->chunk_bytes[i] > most, GPST_ERROR_ARGUMENT,
                      "%s: desc.chunk_bytes[%u]=%zu: must be 1 .. %llu%s", function, i, desc->chunk_bytes[i],
                      (unsigned long long)most, cap == desc->max_bytes ? ", the pages of max_bytes" : "");
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_pool_validate(const char* function, const gpst_pool_desc* desc) {
    GPSTI_TRY(gpsti_check_canaries(function, desc->start_canary, desc->end_canary));
    GPSTI_FAIL_IF((int)desc->kind < 0 || desc->kind > GPST_MEMORY_DEVICE, GPST_ERROR_ARGUMENT,
                  "%s: desc.kind=%d: must be 0 (PINNED), HOST, PINNED or DEVICE", function, (int)desc->kind);
    GPSTI_FAIL_IF((int)desc->huge_pages < 0 || desc->huge_pages > GPST_HUGE_PAGES_ALWAYS, GPST_ERROR_ARGUMENT,
                  "%s: desc.huge_pages=%d: must be 0..%d", function, (int)desc->huge_pages,
                  (int)GPST_HUGE_PAGES_ALWAYS);
    GPSTI_FAIL_IF(desc->kind == GPST_MEMORY_DEVICE && desc->huge_pages != GPST_HUGE_PAGES_DEFAULT, GPST_ERROR_ARGUMENT,
                  "%s: desc.huge_pages=%d: must be 0 with kind=DEVICE", function, (int)desc->huge_pages);
    return gpsti_pool_validate_chunks(function, desc);
}

/* Rounded up to pages, the smallest first. */
GPSTI_PRIVATE void gpsti_pool_sort_chunks(gpst_pool* pool, const size_t* chunk_bytes) {
    for (uint32_t i = 0; i < pool->desc.n_chunk_bytes; i++) {
        size_t bytes = 0;
        uint32_t at = i;
        (void)gpsti_size_round_up(chunk_bytes[i], GPSTI_MEMORY_PAGE, &bytes);
        for (; at > 0 && pool->chunks[at - 1] > bytes; at--)
            pool->chunks[at] = pool->chunks[at - 1];
        pool->chunks[at] = bytes;
    }
}

/* All are lent at once, so that none of them is found again or freed for another. */
GPSTI_PRIVATE gpst_result gpsti_pool_make_ready(gpst_pool* pool) {
    gpsti_host* const host = &pool->context->host;
    const uint32_t n = pool->desc.n_ready * pool->desc.n_chunk_bytes;
    gpst_result result = GPST_OK;
    uint32_t n_made = 0;
    if (n == 0)
        return GPST_OK;
    gpst_buffer* const buffers = (gpst_buffer*)gpsti_alloc(host, n * sizeof *buffers);
    if (!buffers)
        return GPST_ERROR_MEMORY;
    while (n_made < n && !GPST_FAILED(result)) {
        result = gpst_pool_acquire(pool, pool->chunks[n_made / pool->desc.n_ready], 0, &buffers[n_made]);
        n_made += !GPST_FAILED(result);
    }
    while (n_made > 0)
        gpst_pool_release(pool, &buffers[--n_made]);
    gpsti_free(host, buffers, n * sizeof *buffers);
    return result == GPST_ERROR_WOULD_BLOCK ? GPST_ERROR_BUDGET : result;
}

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
    GPSTI_TRY(gpsti_pool_validate(function, desc));
    gpst_pool* const pool = (gpst_pool*)gpsti_context_add_object(context, sizeof *pool);
    if (!pool)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    pool->context = context;
    pool->desc = *desc;
    pool->desc.tag = NULL;
    pool->desc.chunk_bytes = NULL;
    pool->kind = desc->kind ? (gpsti_memory_kind)(desc->kind - 1) : GPSTI_MEMORY_PINNED;
    gpsti_pool_sort_chunks(pool, desc->chunk_bytes);
    pool->tag = gpsti_memory_tag(context->memory, desc->tag);
    const gpst_result result = gpsti_pool_make_ready(pool);
    if (GPST_FAILED(result)) {
        (void)gpst_pool_destroy(pool);
        return gpsti_fail_in(result, function);
    }
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
    const uint64_t live_bytes = pool->info.live_bytes;
    if (!n_out)
        gpsti_memory_disown(memory, pool);
    gpsti_mutex_unlock(&memory->mutex);
    if (n_out) {
        (void)gpsti_fail(GPST_ERROR_STATE,
                         "gpst_pool_destroy: %u buffers are on loan, %llu bytes of the tag \"%s\": release them first",
                         n_out, (unsigned long long)live_bytes, memory->tags[pool->tag].tag);
        gpsti_pool_log_leak(pool);
        return GPST_ERROR_STATE;
    }
    gpsti_context_drop_object(pool->context, pool, sizeof *pool);
    return GPST_OK;
}
