/* core/memory/memory.c -- the frame memory of a context: size classes, free lists, loans, budgets, tags. Owns it from
   the system's answer until the system has it back; what it is used for is the business of pools, rings and pipelines.

   A block is lent, or free in the list of its kind and class. What is free is a pool's, which has it charged to its own
   cap, or no pool's: kept, within max_kept_bytes. Either serves whoever asks next. */
#include "../base/platform_internal.h"

#include "memory_internal.h"

#include <string.h>

#define GPSTI_MEMORY_HUGE_PAGE ((size_t)2 << 20)
#define GPSTI_MEMORY_HUGE_PART 16 /* of a budget: no huge pages that would take more and leave some unused */
#define GPSTI_MEMORY_KEPT_PART 8  /* of each budget is kept where the user says nothing */

/* ---- size classes ---------------------------------------------------------------
   One for every page count up to 8, then eight from one power of two to the next: less than 1/8 is waste. */

GPSTI_PRIVATE uint32_t gpsti_memory_log2(size_t value) {
    uint32_t log = 0;
    while (value >>= 1)
        log++;
    return log;
}

GPSTI_INTERN gpst_result gpsti_memory_classify(gpsti_memory_request* request) {
    size_t rounded = 0;
    if (!gpsti_size_round_up(request->asked_bytes, GPSTI_MEMORY_PAGE, &rounded))
        return GPST_ERROR_OVERFLOW;
    size_t pages = rounded / GPSTI_MEMORY_PAGE;
    request->class_index = (uint32_t)pages - 1;
    if (pages > 8) {
        const uint32_t shift = gpsti_memory_log2(pages - 1) - 3;
        const size_t eighths = ((pages - 1) >> shift) + 1; /* 9..16 */
        pages = eighths << shift;
        request->class_index = 8 + shift * 8 + (uint32_t)eighths - 9;
    }
    if (!gpsti_size_mul(pages, GPSTI_MEMORY_PAGE, &request->bytes))
        return GPST_ERROR_OVERFLOW;
    if (request->is_exact && request->bytes > rounded) {
        request->bytes = rounded;
        request->class_index--;
    }
    return GPST_OK;
}

/* ---- one piece of memory ------------------------------------------------------------ */

GPSTI_PRIVATE const gpsti_backend_i* gpsti_memory_backend(const gpsti_device* device, gpsti_memory_kind kind) {
    return kind == GPSTI_MEMORY_HOST ? gpsti_backend_cpu() : device->i;
}

GPSTI_INTERN gpst_result gpsti_memory_make(gpsti_device* device, gpsti_memory_kind kind, size_t bytes, bool want_huge,
                                           gpsti_host_memory* out) {
    memset(out, 0, sizeof *out);
    if (kind != GPSTI_MEMORY_DEVICE)
        return gpsti_memory_backend(device, kind)->host_alloc(device, bytes, want_huge, out);
    out->bytes = bytes;
    return device->i->memory_alloc(device, bytes, &out->ptr);
}

GPSTI_INTERN void gpsti_memory_unmake(gpsti_device* device, gpsti_memory_kind kind, gpsti_host_memory* memory) {
    if (kind == GPSTI_MEMORY_DEVICE)
        device->i->memory_free(device, memory->ptr, memory->bytes);
    else
        gpsti_memory_backend(device, kind)->host_free(device, memory);
}

GPSTI_PRIVATE void gpsti_memory_poison(const gpsti_memory_block* block) {
    if (block->kind != GPSTI_MEMORY_DEVICE)
        GPSTI_POISON(block->memory.ptr, block->memory.bytes);
}

GPSTI_PRIVATE void gpsti_memory_unpoison(const gpsti_memory_block* block, size_t bytes) {
    if (block->kind != GPSTI_MEMORY_DEVICE)
        GPSTI_UNPOISON(block->memory.ptr, bytes);
}

/* ---- whose a block is; from here on the mutex is held unless something else is said ------------ */

/* The block is the pool's, or no longer. */
GPSTI_PRIVATE void gpsti_pool_count(gpst_pool* pool, const gpsti_memory_block* block, bool add) {
    const uint64_t change = add ? block->charged_bytes : (uint64_t)0 - block->charged_bytes;
    gpst_pool_info* const info = &pool->info;
    info->held_bytes += change;
    if (gpsti_memory_on_device(block->kind))
        return;
    *(block->memory.pages == GPSTI_PAGES_HUGETLB ? &info->hugetlb_bytes
      : block->memory.pages == GPSTI_PAGES_THP   ? &info->thp_bytes
                                                 : &info->small_bytes) += change;
    info->pinned_bytes += block->memory.pinned ? change : 0;
    if (add && block->memory.why_not[0])
        gpsti_copy_text(info->pages_reason, sizeof info->pages_reason, block->memory.why_not);
}

GPSTI_PRIVATE void gpsti_memory_set_pool(gpsti_memory_block* block, gpst_pool* pool) {
    if (block->pool == pool)
        return;
    if (block->pool)
        gpsti_pool_count(block->pool, block, false);
    if (pool)
        gpsti_pool_count(pool, block, true);
    block->pool = pool;
}

/* A free block is, or is no longer, kept: free and no pool's. */
GPSTI_PRIVATE void gpsti_memory_count_kept(gpsti_memory* memory, const gpsti_memory_block* block, bool add) {
    if (!block->pool)
        memory->kept_bytes[gpsti_memory_on_device(block->kind)] +=
            add ? block->charged_bytes : (uint64_t)0 - block->charged_bytes;
}

/* ---- which free block ---------------------------------------------------------------------- */

/* A free block of the class that may serve the request, off its list; NONE. */
GPSTI_PRIVATE uint32_t gpsti_memory_find(gpsti_memory* memory, const gpsti_memory_request* request) {
    uint32_t* at = &memory->free[request->kind][request->class_index];
    if (gpsti_memory_on_device(request->kind) && gpsti_a32_load(&memory->context->public_device.lost) != 0)
        return GPSTI_MEMORY_NONE;
    for (; *at != GPSTI_MEMORY_NONE; at = &memory->blocks[*at].next) {
        const gpsti_memory_block* const block = &memory->blocks[*at];
        const bool wrong_pages = request->huge_pages == GPST_HUGE_PAGES_OFF ? block->memory.pages > GPSTI_PAGES_SMALL
                                                                            : request->huge_pages && !block->is_huge;
        const bool fits = block->pool == request->pool || gpsti_pool_has_room(request->pool, block->charged_bytes);
        if (block->bytes >= request->bytes && !wrong_pages && fits) {
            const uint32_t index = *at;
            *at = block->next;
            return index;
        }
    }
    return GPSTI_MEMORY_NONE;
}

/* The free block that was given back first: of those that the pool has (NULL: that no pool has), or of all; NONE. */
GPSTI_PRIVATE uint32_t gpsti_memory_oldest(const gpsti_memory* memory, bool on_device, const gpst_pool* pool,
                                           bool of_all) {
    uint32_t oldest = GPSTI_MEMORY_NONE;
    for (uint32_t i = 0; i < memory->n_blocks; i++) {
        const gpsti_memory_block* const block = &memory->blocks[i];
        if (block->state == GPSTI_MEMORY_FREE && gpsti_memory_on_device(block->kind) == on_device &&
            (of_all || block->pool == pool) &&
            (oldest == GPSTI_MEMORY_NONE || block->freed_at < memory->blocks[oldest].freed_at))
            oldest = i;
    }
    return oldest;
}

/* ---- to the system -------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_memory_wait(gpsti_memory* memory, int64_t deadline_ns) {
    memory->n_waiters++;
    (void)gpsti_cond_wait_until(&memory->changed, &memory->mutex, deadline_ns);
    memory->n_waiters--;
}

GPSTI_PRIVATE void gpsti_memory_tell(gpsti_memory* memory) {
    if (memory->n_waiters)
        gpsti_cond_broadcast(&memory->changed); /* all: they want different classes */
}

/* A free block. It is charged until the system has it. */
GPSTI_PRIVATE void gpsti_memory_drop(gpsti_memory* memory, uint32_t index) {
    gpsti_memory_block gone = memory->blocks[index];
    uint32_t* at = &memory->free[gone.kind][gone.class_index];
    while (*at != index)
        at = &memory->blocks[*at].next;
    *at = gone.next;
    gpsti_memory_count_kept(memory, &gone, false);
    gpsti_memory_set_pool(&gone, NULL);
    gpsti_blocks_put(memory, index);
    memory->n_freeing++;
    gpsti_mutex_unlock(&memory->mutex);
    gpsti_memory_unpoison(&gone, gone.memory.bytes);
    gpsti_memory_unmake(gone.device, gone.kind, &gone.memory);
    gpsti_mutex_lock(&memory->mutex);
    gpsti_memory_refund(memory, gone.kind, gone.charged_bytes);
    memory->n_freed++;
    memory->n_freeing--;
    gpsti_memory_tell(memory);
}

/* What was given back until now; what is given back meanwhile may stay. */
GPSTI_PRIVATE void gpsti_memory_drop_all(gpsti_memory* memory, bool on_device, const gpst_pool* pool, bool of_all) {
    const uint64_t until = memory->clock;
    for (;;) {
        const uint32_t index = gpsti_memory_oldest(memory, on_device, pool, of_all);
        if (index == GPSTI_MEMORY_NONE || memory->blocks[index].freed_at > until)
            return;
        gpsti_memory_drop(memory, index);
    }
}

/* What others are freeing, too, is back behind this. */
GPSTI_PRIVATE void gpsti_memory_wait_freed(gpsti_memory* memory) {
    while (memory->n_freeing > 0)
        gpsti_memory_wait(memory, GPST_FOREVER);
}

GPSTI_PRIVATE void gpsti_memory_limit_kept(gpsti_memory* memory, bool on_device) {
    while (memory->kept_bytes[on_device] >
           (gpsti_a32_load(&memory->context->public_device.lost) != 0 ? 0 : memory->max_kept_bytes[on_device]))
        gpsti_memory_drop(memory, gpsti_memory_oldest(memory, on_device, NULL, false));
}

GPSTI_INTERN uint64_t gpsti_memory_shrink_to(gpsti_memory* memory, bool on_device, uint64_t target_bytes) {
    const gpsti_memory_kind kind = on_device ? GPSTI_MEMORY_DEVICE : GPSTI_MEMORY_HOST;
    const uint64_t until = memory->clock;
    uint64_t freed = 0;
    while (gpsti_a64_load(gpsti_memory_charged(memory, kind)) > target_bytes) {
        uint32_t index = gpsti_memory_oldest(memory, on_device, NULL, false);
        if (index == GPSTI_MEMORY_NONE)
            index = gpsti_memory_oldest(memory, on_device, NULL, true);
        if (index == GPSTI_MEMORY_NONE || memory->blocks[index].freed_at > until)
            break;
        freed += memory->blocks[index].charged_bytes;
        gpsti_memory_drop(memory, index);
    }
    return freed;
}

GPSTI_INTERN uint64_t gpsti_memory_shrink(gpsti_memory* memory, bool on_device, uint64_t target_bytes) {
    gpsti_mutex_lock(&memory->mutex);
    const uint64_t freed = gpsti_memory_shrink_to(memory, on_device, target_bytes);
    gpsti_mutex_unlock(&memory->mutex);
    return freed;
}

/* After a charge that was refused: false when nothing is free that would make room. What is kept goes first, then what
   pools have free, then what caches can do without. */
GPSTI_PRIVATE bool gpsti_memory_make_room(gpsti_memory* memory, const gpsti_memory_request* request, uint64_t bytes) {
    const bool on_device = gpsti_memory_on_device(request->kind), in_cap = gpsti_pool_has_room(request->pool, bytes);
    uint32_t index = gpsti_memory_oldest(memory, on_device, in_cap ? NULL : request->pool, false);
    if (index == GPSTI_MEMORY_NONE && in_cap)
        index = gpsti_memory_oldest(memory, on_device, NULL, true);
    if (index != GPSTI_MEMORY_NONE)
        gpsti_memory_drop(memory, index);
    else if (in_cap && memory->n_freeing > 0)
        gpsti_memory_wait(memory, GPST_FOREVER);
    else
        return in_cap && !on_device && !request->spares_caches && gpsti_caches_shrink(memory);
    return true;
}

/* ---- from the system ------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_memory_wants_huge(const gpsti_memory* memory, const gpsti_memory_request* request) {
    const uint64_t cap = request->pool ? request->pool->desc.max_bytes : 0;
    uint64_t budget = gpsti_memory_budget(memory, request->kind);
    size_t mapped = 0;
    if (gpsti_memory_on_device(request->kind) || request->huge_pages != GPST_HUGE_PAGES_DEFAULT)
        return !gpsti_memory_on_device(request->kind) && request->huge_pages == GPST_HUGE_PAGES_ALWAYS;
    budget = cap && cap < budget ? cap : budget;
    return request->bytes >= GPSTI_PAGES_REST_BYTES &&
           gpsti_size_round_up(request->bytes, GPSTI_MEMORY_HUGE_PAGE, &mapped) &&
           (mapped == request->bytes || mapped <= budget / GPSTI_MEMORY_HUGE_PART);
}

/* Without the mutex. */
GPSTI_PRIVATE gpst_result gpsti_memory_get_pages(const gpsti_memory_request* request, gpsti_memory_block* made) {
    const gpst_result result = gpsti_memory_make(made->device, made->kind, made->bytes, made->is_huge, &made->memory);
    if (!GPST_FAILED(result) && request->is_filled && request->asked_bytes >= GPSTI_PAGES_REST_BYTES &&
        !gpsti_memory_on_device(made->kind) && !made->memory.pinned)
        gpsti_pages_touch(made->memory.ptr, request->asked_bytes, made->memory.pages);
    return result;
}

/* Lets the mutex go: mapping and page-locking take milliseconds. Where there is no memory all that is free goes back,
   and what another thread gave back while the system refused is reason enough to ask once more. */
GPSTI_PRIVATE gpst_result gpsti_memory_ask(gpsti_memory* memory, const gpsti_memory_request* request,
                                           gpsti_memory_block* made) {
    for (int tries = 0;; tries++) {
        const uint64_t n_freed = memory->n_freed;
        gpsti_mutex_unlock(&memory->mutex);
        const gpst_result result = gpsti_memory_get_pages(request, made);
        gpsti_mutex_lock(&memory->mutex);
        if (tries > 0 || (result != GPST_ERROR_MEMORY && result != GPST_ERROR_DEVICE_MEMORY))
            return result;
        gpsti_memory_drop_all(memory, gpsti_memory_on_device(request->kind), NULL, true);
        gpsti_memory_wait_freed(memory);
        if (memory->n_freed == n_freed)
            return result;
    }
}

/* The device's; of a lost one the cpu's where a pool asks for the host's, unless the job may not go on without it. */
GPSTI_PRIVATE gpst_result gpsti_memory_ask_devices(gpsti_memory* memory, const gpsti_memory_request* request,
                                                   gpsti_memory_block* made) {
    const gpst_result result = gpsti_memory_ask(memory, request, made);
    if (result != GPST_ERROR_DEVICE_LOST)
        return result;
    gpsti_a32_store(&memory->context->public_device.lost, 1);
    if (!request->pool || gpsti_memory_on_device(request->kind) || memory->context->require_backend)
        return result;
    made->device = memory->context->cpu;
    return gpsti_memory_ask(memory, request, made);
}

/* made->charged_bytes are charged. Pages may come in larger units than the class: the rest is charged too, or small
   pages are taken. */
GPSTI_PRIVATE gpst_result gpsti_memory_fill(gpsti_memory* memory, const gpsti_memory_request* request,
                                            gpsti_memory_block* made) {
    GPSTI_TRY(gpsti_memory_ask_devices(memory, request, made));
    if (made->memory.bytes <= made->charged_bytes)
        return GPST_OK;
    if (gpsti_memory_charge(memory, request, made->memory.bytes - made->charged_bytes)) {
        made->charged_bytes = made->memory.bytes;
        return GPST_OK;
    }
    gpsti_mutex_unlock(&memory->mutex);
    gpsti_memory_unmake(made->device, made->kind, &made->memory);
    gpsti_mutex_lock(&memory->mutex);
    made->is_huge = false;
    return gpsti_memory_ask_devices(memory, request, made);
}

GPSTI_PRIVATE void gpsti_memory_lend(gpsti_memory* memory, const gpsti_memory_request* request, uint32_t index,
                                     gpst_buffer* out) {
    gpsti_memory_block* const block = &memory->blocks[index];
    gpst_pool* const pool = request->pool;
    gpsti_memory_set_pool(block, pool);
    block->state = GPSTI_MEMORY_LENT;
    block->loan = ++memory->n_loans;
    block->tag = request->tag;
    gpsti_memory_count_tag(memory, block, true);
    if (pool) {
        gpst_pool_info* const info = &pool->info;
        pool->n_out++;
        info->acquires++;
        info->live_bytes += block->charged_bytes;
        info->peak_bytes = info->live_bytes > info->peak_bytes ? info->live_bytes : info->peak_bytes;
    }
    gpsti_memory_unpoison(block, request->bytes);
    out->data = block->memory.ptr;
    out->bytes = request->bytes;
    out->charged_bytes = block->charged_bytes;
    out->id = ((uint64_t)block->loan << 32) | index;
    out->pinned = block->memory.pinned;
    if (request->why_not)
        gpsti_copy_text(request->why_not, sizeof block->memory.why_not, block->memory.why_not);
}

/* charged_bytes are charged to the pool and the context. */
GPSTI_PRIVATE gpst_result gpsti_memory_grow(gpsti_memory* memory, gpsti_memory_request* request, uint64_t charged_bytes,
                                            gpst_buffer* out) {
    gpst_pool* const pool = request->pool;
    gpsti_memory_block made;
    uint32_t index = 0;
    memset(&made, 0, sizeof made);
    made.kind = request->kind;
    made.device = memory->context->device;
    made.bytes = request->bytes;
    made.charged_bytes = charged_bytes;
    made.is_huge = gpsti_memory_wants_huge(memory, request);
    made.class_index = request->class_index;
    gpst_result result = gpsti_blocks_take(memory, &index);
    if (!GPST_FAILED(result)) {
        if (pool)
            pool->n_out++;
        result = gpsti_memory_fill(memory, request, &made);
        if (pool)
            pool->n_out--;
        if (GPST_FAILED(result))
            gpsti_blocks_put(memory, index);
    }
    if (pool)
        pool->info.held_bytes -= made.charged_bytes; /* counted again with the block, if there is one */
    if (GPST_FAILED(result)) {
        gpsti_memory_refund(memory, request->kind, made.charged_bytes);
        gpsti_memory_tell(memory);
        return result;
    }
    memory->blocks[index] = made;
    if (request->n_growths)
        gpsti_a64_add(request->n_growths, 1);
    if (pool)
        pool->info.allocations++;
    gpsti_memory_lend(memory, request, index, out);
    gpsti_memory_count_made(memory, request, made.charged_bytes);
    return GPST_OK;
}

/* ---- acquire and release ------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_memory_try_free(gpsti_memory* memory, const gpsti_memory_request* request, gpst_buffer* out) {
    const uint32_t index = gpsti_memory_find(memory, request);
    if (index == GPSTI_MEMORY_NONE)
        return false;
    gpsti_memory_count_kept(memory, &memory->blocks[index], false);
    gpsti_memory_lend(memory, request, index, out);
    return true;
}

GPSTI_INTERN gpst_result gpsti_memory_try(gpsti_memory* memory, gpsti_memory_request* request, gpst_buffer* out) {
    size_t bytes = request->bytes; /* what small pages take */
    if (!gpsti_memory_on_device(request->kind) && !gpsti_size_round_up(bytes, gpsti_page_bytes(), &bytes))
        return GPST_ERROR_OVERFLOW;
    for (;;) {
        if (gpsti_memory_try_free(memory, request, out))
            return GPST_OK;
        if (gpsti_memory_charge(memory, request, bytes))
            return gpsti_memory_grow(memory, request, bytes, out);
        if (!gpsti_memory_make_room(memory, request, bytes))
            return GPST_ERROR_WOULD_BLOCK;
    }
}

GPSTI_INTERN gpst_result gpsti_memory_over_budget(const gpsti_memory* memory, const gpsti_memory_request* request) {
    const bool in_cap = gpsti_pool_has_room(request->pool, request->bytes);
    return gpsti_fail(
        GPST_ERROR_BUDGET, "bytes=%zu: takes %zu, and %llu of the budget %s=%llu are in use", request->asked_bytes,
        request->bytes,
        (unsigned long long)(in_cap ? gpsti_a64_load(gpsti_memory_charged(memory, request->kind))
                                    : request->pool->info.held_bytes),
        !in_cap                                 ? "desc.max_bytes"
        : gpsti_memory_on_device(request->kind) ? "max_device_bytes"
                                                : "max_host_bytes",
        (unsigned long long)(in_cap ? gpsti_memory_budget(memory, request->kind) : request->pool->desc.max_bytes));
}

GPSTI_INTERN gpst_result gpsti_memory_acquire(gpst_context* context, gpsti_memory_request* request, gpst_buffer* out) {
    gpsti_memory* const memory = context->memory;
    memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(GPST_FAILED(gpsti_memory_classify(request)), GPST_ERROR_OVERFLOW,
                  "bytes=%zu: must be below SIZE_MAX/2", request->asked_bytes);
    gpsti_mutex_lock(&memory->mutex);
    gpst_result result = gpsti_memory_try(memory, request, out);
    if (result == GPST_ERROR_WOULD_BLOCK)
        result = gpsti_memory_over_budget(memory, request);
    gpsti_mutex_unlock(&memory->mutex);
    if (request->crossed)
        gpsti_memory_alert(memory);
    return result;
}

GPSTI_INTERN gpst_result gpsti_memory_acquire_device(gpst_context* context, size_t bytes, const char* tag,
                                                     gpsti_a64* n_growths, gpst_buffer* out) {
    gpsti_memory_request request;
    memset(&request, 0, sizeof request);
    request.kind = GPSTI_MEMORY_DEVICE;
    request.asked_bytes = bytes;
    request.tag = gpsti_memory_tag(context->memory, tag);
    request.n_growths = n_growths;
    const gpst_result result = gpsti_memory_acquire(context, &request, out);
    return GPST_FAILED(result) ? gpsti_fail_in(result, "device memory") : result;
}

GPSTI_INTERN bool gpsti_memory_give(gpsti_memory* memory, const gpst_pool* pool, const gpst_buffer* buffer) {
    const uint32_t index = (uint32_t)(buffer->id & UINT32_MAX);
    gpsti_memory_block* const block = index < memory->n_blocks ? &memory->blocks[index] : NULL;
    if (!block || block->state != GPSTI_MEMORY_LENT || block->pool != pool || block->loan != buffer->id >> 32 ||
        block->memory.ptr != buffer->data)
        return false;
    gpsti_memory_count_tag(memory, block, false);
    if (block->pool) {
        block->pool->info.live_bytes -= block->charged_bytes;
        block->pool->n_out--;
    }
    gpsti_memory_poison(block);
    block->state = GPSTI_MEMORY_FREE;
    block->freed_at = ++memory->clock;
    block->next = memory->free[block->kind][block->class_index];
    memory->free[block->kind][block->class_index] = index;
    gpsti_memory_count_kept(memory, block, true);
    gpsti_memory_tell(memory);
    if (!pool)
        gpsti_memory_limit_kept(memory, gpsti_memory_on_device(block->kind));
    return true;
}

GPSTI_INTERN void gpsti_memory_release(gpst_context* context, gpst_buffer* buffer) {
    const gpst_buffer loan = *buffer;
    memset(buffer, 0, sizeof *buffer);
    gpsti_mutex_lock(&context->memory->mutex);
    (void)gpsti_memory_give(context->memory, NULL, &loan);
    gpsti_mutex_unlock(&context->memory->mutex);
}

GPSTI_INTERN void gpsti_memory_trim_pool(gpsti_memory* memory, const gpst_pool* pool) {
    gpsti_memory_drop_all(memory, gpsti_memory_on_device(pool->kind), pool, false);
}

GPSTI_INTERN void gpsti_memory_disown(gpsti_memory* memory, gpst_pool* pool) {
    for (uint32_t i = 0; i < memory->n_blocks; i++) {
        gpsti_memory_block* const block = &memory->blocks[i];
        if (block->state == GPSTI_MEMORY_FREE && block->pool == pool) {
            gpsti_memory_set_pool(block, NULL);
            gpsti_memory_count_kept(memory, block, true);
        }
    }
    gpsti_memory_limit_kept(memory, gpsti_memory_on_device(pool->kind));
}

/* ---- init, term, trim -------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_memory_trim(gpsti_memory* memory) {
    gpsti_mutex_lock(&memory->mutex);
    for (int on_device = 0; on_device < 2; on_device++)
        gpsti_memory_drop_all(memory, on_device != 0, NULL, false);
    gpsti_memory_wait_freed(memory);
    gpsti_blocks_trim(memory);
    gpsti_mutex_unlock(&memory->mutex);
    gpsti_device_cache_clear(&memory->context->public_device);
}

GPSTI_INTERN gpst_result gpsti_memory_init(gpsti_memory* memory, gpst_context* context, uint64_t max_kept_bytes,
                                           const gpst_memory_marks* marks) {
    const gpst_context_info* const info = &context->info;
    memory->context = context;
    memory->unused = GPSTI_MEMORY_NONE;
    memset(memory->free, 0xFF, sizeof memory->free); /* GPSTI_MEMORY_NONE */
    memory->max_kept_bytes[0] = max_kept_bytes ? max_kept_bytes : info->max_host_bytes / GPSTI_MEMORY_KEPT_PART;
    memory->max_kept_bytes[1] = max_kept_bytes ? max_kept_bytes : info->max_device_bytes / GPSTI_MEMORY_KEPT_PART;
    gpsti_copy_text(memory->tags[memory->n_tags++].tag, sizeof memory->tags[0].tag, "other");
    gpsti_memory_set_marks(memory, marks);
    GPSTI_TRY(gpsti_mutex_init(&memory->mutex));
    const gpst_result result = gpsti_cond_init(&memory->changed);
    if (GPST_FAILED(result))
        gpsti_mutex_term(&memory->mutex);
    return result;
}

/* What pools that were forgotten have free goes, too; what is on loan stays. */
GPSTI_INTERN void gpsti_memory_term(gpsti_memory* memory) {
    gpsti_memory_log_leaks(memory);
    gpsti_memory_trim(memory);
    (void)gpsti_memory_shrink(memory, false, 0);
    (void)gpsti_memory_shrink(memory, true, 0);
    gpsti_blocks_free(memory);
    gpsti_cond_term(&memory->changed);
    gpsti_mutex_term(&memory->mutex);
}
