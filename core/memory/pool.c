/* core/memory/pool.c -- size classes, free lists and loans of host buffers. Owns
   them; the pages come from the device and the budget is the context's. */
#include "../base/platform_internal.h"

#include "../device/context_internal.h"
#include "keep_internal.h"
#include "pool_internal.h"
#include "spares_internal.h"

#include <string.h>

#define GPSTI_POOL_PAGE ((size_t)4096)
#define GPSTI_POOL_CLASSES (8 + 64 * 8)
#define GPSTI_POOL_NONE UINT32_MAX

/* One buffer of the pool, on loan or free; or, without memory, an entry to be used again. */
typedef struct gpsti_pool_entry {
    gpsti_host_memory memory;
    gpsti_device* device; /* whose memory it is */
    size_t bytes;         /* of the size class: what is lent */
    uint64_t charged_bytes;
    bool is_huge; /* asked for */
    uint32_t class_index;
    uint32_t next; /* in its class's free list, or among the unused entries */
    uint32_t loan; /* counts loans, so that the id of an earlier one is known for what it is */
    bool on_loan;
} gpsti_pool_entry;

typedef struct gpsti_pool_class {
    uint32_t free;    /* first of its free list */
    uint32_t n, most; /* buffers, on loan and free: now, and at once since creation */
} gpsti_pool_class;

struct gpst_pool {
    gpst_context* context;
    gpst_pool_desc desc;
    bool keeps; /* what it gives back is the context's, and what it needs it finds there */
    gpsti_mutex mutex;
    gpsti_cond released;
    gpsti_pool_entry* entries;
    uint32_t n_entries, max_entries;
    uint32_t unused; /* list of entries without memory */
    uint32_t n_growing; /* threads that allocate, since: */
    int64_t growing_since_ns;
    uint32_t n_out;  /* on loan, or being allocated: what a waiter may hope for */
    uint32_t n_waiters;
    gpsti_a64 held_bytes; /* charged to desc.max_bytes */
    int64_t growth_ns; /* but for what goes on now */
    gpsti_a64 known_ns, n_known; /* what memory took to make that was found made */
    gpst_pool_info info;
    gpsti_pool_class classes[GPSTI_POOL_CLASSES];
};

/* ---- size classes ---------------------------------------------------------------
   One for every page count up to 8, then eight from one power of two to the next: less than 1/8 is waste. */

GPSTI_PRIVATE uint32_t gpsti_pool_log2(size_t value) {
    uint32_t log = 0;
    while (value >>= 1)
        log++;
    return log;
}

GPSTI_PRIVATE bool gpsti_pool_class_of(size_t bytes, uint32_t* class_index, size_t* class_bytes) {
    size_t rounded = 0;
    if (!gpsti_size_round_up(bytes, GPSTI_POOL_PAGE, &rounded))
        return false;
    size_t pages = rounded / GPSTI_POOL_PAGE;
    *class_index = (uint32_t)pages - 1;
    if (pages > 8) {
        const uint32_t shift = gpsti_pool_log2(pages - 1) - 3;
        const size_t eighths = ((pages - 1) >> shift) + 1; /* 9..16 */
        pages = eighths << shift;
        *class_index = 8 + shift * 8 + (uint32_t)eighths - 9;
    }
    return gpsti_size_mul(pages, GPSTI_POOL_PAGE, class_bytes);
}

/* ---- entries; all under the mutex ------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_pool_reserve_entry(gpst_pool* pool) {
    if (pool->unused != GPSTI_POOL_NONE)
        return GPST_OK;
    if (pool->n_entries == pool->max_entries) {
        const uint32_t more = pool->max_entries ? pool->max_entries * 2 : 8;
        gpsti_host* host = &pool->context->host;
        gpsti_pool_entry* entries = (gpsti_pool_entry*)gpsti_alloc(host, more * sizeof *entries);
        if (!entries)
            return GPST_ERROR_MEMORY;
        if (pool->n_entries)
            memcpy(entries, pool->entries, pool->n_entries * sizeof *entries);
        gpsti_free(host, pool->entries, pool->max_entries * sizeof *entries);
        pool->entries = entries;
        pool->max_entries = more;
    }
    pool->entries[pool->n_entries].next = pool->unused;
    pool->unused = pool->n_entries++;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_pool_lend(gpst_pool* pool, uint32_t index, gpst_buffer* out) {
    gpsti_pool_entry* entry = &pool->entries[index];
    entry->on_loan = true;
    entry->loan++;
    pool->info.acquires++;
    pool->info.live_bytes += entry->bytes;
    if (pool->info.live_bytes > pool->info.peak_bytes)
        pool->info.peak_bytes = pool->info.live_bytes;
    GPSTI_UNPOISON(entry->memory.ptr, entry->bytes);
    out->data = entry->memory.ptr;
    out->bytes = entry->bytes;
    out->id = ((uint64_t)entry->loan << 32) | index;
    out->pinned = entry->memory.pinned;
}

/* The buffer's entry if it is on loan under this very id, else NULL. */
GPSTI_PRIVATE gpsti_pool_entry* gpsti_pool_find(gpst_pool* pool, const gpst_buffer* buffer) {
    const uint32_t index = (uint32_t)(buffer->id & UINT32_MAX);
    if (index >= pool->n_entries)
        return NULL;
    gpsti_pool_entry* entry = &pool->entries[index];
    const bool known = entry->on_loan && entry->loan == buffer->id >> 32 && entry->memory.ptr == buffer->data;
    return known ? entry : NULL;
}

GPSTI_PRIVATE uint64_t* gpsti_pool_pages_account(gpst_pool* pool, gpsti_pages_kind kind) {
    return kind == GPSTI_PAGES_HUGETLB ? &pool->info.hugetlb_bytes
           : kind == GPSTI_PAGES_THP   ? &pool->info.thp_bytes
                                       : &pool->info.small_bytes;
}

GPSTI_PRIVATE void gpsti_pool_refund(gpst_pool* pool, uint64_t bytes) {
    gpsti_budget_refund(&pool->held_bytes, bytes);
    gpsti_budget_refund(&pool->context->host_bytes, bytes);
}

GPSTI_PRIVATE bool gpsti_pool_charge(gpst_pool* pool, uint64_t bytes) {
    gpst_context* context = pool->context;
    const uint64_t own_cap = pool->desc.max_bytes ? pool->desc.max_bytes : UINT64_MAX;
    if (!gpsti_budget_try_charge(&pool->held_bytes, own_cap, bytes))
        return false;
    if (gpsti_budget_try_charge(&context->host_bytes, context->info.max_host_bytes, bytes))
        return true;
    gpsti_budget_refund(&pool->held_bytes, bytes);
    return false;
}

/* The first buffer of a class's free list is the pool's no more. */
GPSTI_PRIVATE gpsti_pool_entry gpsti_pool_take_out(gpst_pool* pool, uint32_t class_index) {
    gpsti_pool_class* const its = &pool->classes[class_index];
    const uint32_t index = its->free;
    gpsti_pool_entry* entry = &pool->entries[index];
    const gpsti_pool_entry out = *entry;
    its->free = entry->next;
    its->n--;
    *gpsti_pool_pages_account(pool, entry->memory.pages) -= entry->charged_bytes;
    if (entry->memory.pinned)
        pool->info.pinned_bytes -= entry->charged_bytes;
    memset(&entry->memory, 0, sizeof entry->memory);
    entry->next = pool->unused;
    pool->unused = index;
    gpsti_pool_refund(pool, out.charged_bytes); /* already: nobody is refused because of what is on its way out */
    return out;
}

/* To the system; this needs no mutex. */
GPSTI_PRIVATE void gpsti_pool_free_memory(gpsti_pool_entry* entry) {
    GPSTI_UNPOISON(entry->memory.ptr, entry->bytes);
    entry->device->i->host_free(entry->device, &entry->memory);
}

/* To whom the pool's memory goes when it needs none. */
GPSTI_PRIVATE void gpsti_pool_let_go(gpst_pool* pool, gpsti_pool_entry* entry) {
    if (!pool->keeps) {
        gpsti_pool_free_memory(entry);
        return;
    }
    GPSTI_UNPOISON(entry->memory.ptr, entry->bytes);
    gpsti_keep_host_free(pool->context->keep, entry->device, entry->bytes, entry->is_huge, &entry->memory);
}

/* Largest first, because that takes the fewest calls. */
GPSTI_PRIVATE bool gpsti_pool_drop_any(gpst_pool* pool) {
    for (uint32_t i = GPSTI_POOL_CLASSES; i-- > 0;) {
        if (pool->classes[i].free != GPSTI_POOL_NONE) {
            gpsti_pool_entry gone = gpsti_pool_take_out(pool, i);
            gpsti_pool_free_memory(&gone);
            if (pool->keeps)
                gpsti_keep_note_dropped(pool->context->keep);
            return true;
        }
    }
    return false;
}

/* ---- what memory takes to make ---------------------------------------------------- */

static GPSTI_TLS int64_t gpsti_pool_here_ns = 0, gpsti_pool_here_cpu_ns = 0;

GPSTI_INTERN int64_t gpsti_pool_growth_begin(gpst_pool* pool) {
    gpsti_mutex_lock(&pool->mutex);
    const int64_t now_ns = gpsti_now_ns();
    if (pool->n_growing++ == 0)
        pool->growing_since_ns = now_ns;
    gpsti_mutex_unlock(&pool->mutex);
    gpsti_pool_here_cpu_ns -= gpsti_thread_cpu_ns();
    return now_ns;
}

GPSTI_INTERN void gpsti_pool_growth_end(gpst_pool* pool, int64_t begin_ns, gpsti_a64* grown) {
    gpsti_mutex_lock(&pool->mutex);
    const int64_t now_ns = gpsti_now_ns();
    if (grown)
        gpsti_a64_add(grown, (uint64_t)(now_ns - begin_ns));
    if (--pool->n_growing == 0)
        pool->growth_ns += now_ns - pool->growing_since_ns;
    gpsti_mutex_unlock(&pool->mutex);
    gpsti_pool_here_ns += now_ns - begin_ns;
    gpsti_pool_here_cpu_ns += gpsti_thread_cpu_ns();
}

GPSTI_INTERN int64_t gpsti_pool_growth_ns(gpst_pool* pool) {
    gpsti_mutex_lock(&pool->mutex);
    const int64_t open_ns = pool->n_growing > 0 ? gpsti_now_ns() - pool->growing_since_ns : 0;
    const int64_t growth_ns = pool->growth_ns + open_ns;
    gpsti_mutex_unlock(&pool->mutex);
    return growth_ns;
}

GPSTI_INTERN int64_t gpsti_pool_price_ns(gpst_pool* pool) {
    const int64_t known_ns = (int64_t)gpsti_a64_load(&pool->known_ns);
    return gpsti_pool_growth_ns(pool) + known_ns;
}

GPSTI_INTERN uint64_t gpsti_pool_n_known(gpst_pool* pool) { return gpsti_a64_load(&pool->n_known); }

GPSTI_INTERN void gpsti_pool_note_known(gpst_pool* pool, int64_t known_ns) {
    gpsti_a64_add(&pool->known_ns, (uint64_t)known_ns);
    gpsti_a64_add(&pool->n_known, known_ns > 0 ? 1 : 0);
}

GPSTI_INTERN bool gpsti_pool_is_growing(gpst_pool* pool) {
    gpsti_mutex_lock(&pool->mutex);
    const bool is_growing = pool->n_growing > 0;
    gpsti_mutex_unlock(&pool->mutex);
    return is_growing;
}

GPSTI_INTERN int64_t gpsti_pool_growth_here_ns(void) { return gpsti_pool_here_ns; }
GPSTI_INTERN int64_t gpsti_pool_growth_here_cpu_ns(void) { return gpsti_pool_here_cpu_ns; }

/* ---- acquire ---------------------------------------------------------------------- */

typedef struct gpsti_pool_request {
    size_t asked_bytes, bytes;
    uint32_t class_index;
    int64_t timeout_ns, deadline_ns; /* deadline 0 = not looked at the clock yet */
    gpsti_a64* grown;                /* whose growth it is; may be NULL */
    bool is_filled;
} gpsti_pool_request;

/* Only the engine's pools ask for memory that will be filled. What is small has no price that shows. */
GPSTI_PRIVATE gpst_result gpsti_pool_get_pages(gpst_pool* pool, const gpsti_pool_request* request, bool want_huge,
                                               gpsti_pool_entry* made, int64_t* known_ns) {
    const bool use = request->is_filled && request->asked_bytes >= GPSTI_PAGES_REST_BYTES;
    memset(&made->memory, 0, sizeof made->memory);
    made->is_huge = want_huge;
    *known_ns = 0;
    return pool->keeps ? gpsti_keep_host_alloc(pool->context->keep, made->device, request->bytes, want_huge,
                                               use ? request->asked_bytes : 0, &made->memory, known_ns)
                       : gpsti_keep_make_host(pool->context->keep, made->device, request->bytes, want_huge,
                                              &made->memory);
}

/* Memory for a class whose bytes are charged already. Pages may come in larger units than the class: the rest
   is charged too, or ordinary pages are taken. Without the mutex: mapping and pinning take milliseconds. */
GPSTI_PRIVATE gpst_result gpsti_pool_allocate(gpst_pool* pool, gpsti_device* device, const gpsti_pool_request* request,
                                              gpsti_pool_entry* made, int64_t* known_ns) {
    const gpst_huge_pages huge = pool->desc.huge_pages;
    const size_t bytes = request->bytes;
    const bool want_huge =
        huge == GPST_HUGE_PAGES_ALWAYS || (huge == GPST_HUGE_PAGES_DEFAULT && bytes >= GPSTI_PAGES_REST_BYTES);
    made->device = device;
    made->bytes = made->charged_bytes = bytes;
    GPSTI_TRY(gpsti_pool_get_pages(pool, request, want_huge, made, known_ns));
    if (made->memory.bytes <= bytes)
        return GPST_OK;
    if (gpsti_pool_charge(pool, made->memory.bytes - bytes)) {
        made->charged_bytes = made->memory.bytes;
        return GPST_OK;
    }
    if (!want_huge) /* the rest of one small page: cannot be had for less */
        return GPST_OK;
    device->i->host_free(device, &made->memory);
    return gpsti_pool_get_pages(pool, request, false, made, known_ns);
}

/* Called with the mutex held and the class's bytes charged; lets the mutex go while it allocates. */
GPSTI_PRIVATE gpst_result gpsti_pool_grow(gpst_pool* pool, const gpsti_pool_request* request,
                                          gpst_buffer* out) {
    gpsti_pool_entry made;
    int64_t known_ns = 0;
    gpst_result result = gpsti_pool_reserve_entry(pool);
    const uint32_t index = pool->unused;
    pool->n_out++;
    memset(&made, 0, sizeof made);
    made.charged_bytes = request->bytes;
    if (!GPST_FAILED(result)) {
        pool->unused = pool->entries[index].next;
        gpsti_mutex_unlock(&pool->mutex);
        const int64_t begin_ns = gpsti_pool_growth_begin(pool);
        result = gpsti_pool_allocate(pool, pool->context->device, request, &made, &known_ns);
        if (result == GPST_ERROR_DEVICE_LOST)
            gpsti_context_lose_device(pool->context);
        if (result == GPST_ERROR_DEVICE_LOST && !pool->context->require_backend) /* the job goes on without it */
            result = gpsti_pool_allocate(pool, pool->context->cpu, request, &made, &known_ns);
        gpsti_pool_note_known(pool, known_ns);
        gpsti_pool_growth_end(pool, begin_ns, request->grown);
        gpsti_mutex_lock(&pool->mutex);
        if (GPST_FAILED(result)) {
            pool->entries[index].next = pool->unused;
            pool->unused = index;
        }
    }
    if (GPST_FAILED(result)) {
        gpsti_pool_refund(pool, made.charged_bytes);
        pool->n_out--;
        if (pool->n_waiters)
            gpsti_cond_broadcast(&pool->released);
        return result;
    }
    gpsti_pool_entry* entry = &pool->entries[index];
    made.class_index = request->class_index;
    made.loan = entry->loan;
    *entry = made;
    gpsti_pool_class* const its = &pool->classes[request->class_index];
    its->n++;
    its->most = its->n > its->most ? its->n : its->most;
    *gpsti_pool_pages_account(pool, made.memory.pages) += made.charged_bytes;
    if (made.memory.pinned)
        pool->info.pinned_bytes += made.charged_bytes;
    if (made.memory.why_not[0])
        gpsti_copy_text(pool->info.pages_reason, sizeof pool->info.pages_reason, made.memory.why_not);
    pool->info.allocations++;
    gpsti_pool_lend(pool, index, out);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_pool_over_budget(const gpst_pool* pool, const gpsti_pool_request* request) {
    const gpst_context* context = pool->context;
    const uint64_t cap = pool->desc.max_bytes;
    const uint64_t held = gpsti_a64_load_relaxed(&pool->held_bytes);
    if (cap && (held > cap || request->bytes > cap - held))
        return gpsti_fail(
            GPST_ERROR_BUDGET,
            "gpst_pool_acquire: bytes=%zu: takes %zu, and %llu of desc.max_bytes=%llu are in use",
            request->asked_bytes, request->bytes, (unsigned long long)held, (unsigned long long)cap);
    return gpsti_fail(
        GPST_ERROR_BUDGET,
        "gpst_pool_acquire: bytes=%zu: takes %zu, and %llu of the context's max_host_bytes=%llu are in "
        "use",
        request->asked_bytes, request->bytes,
        (unsigned long long)gpsti_a64_load_relaxed(&context->host_bytes),
        (unsigned long long)context->info.max_host_bytes);
}

/* OK after a wait that may have helped; else the result of the whole request. */
GPSTI_PRIVATE gpst_result gpsti_pool_wait(gpst_pool* pool, gpsti_pool_request* request) {
    const uint64_t cap = pool->desc.max_bytes;
    const uint64_t live = pool->info.live_bytes;
    if (!pool->n_out || (cap && request->bytes > cap) || request->bytes > pool->context->info.max_host_bytes)
        return gpsti_pool_over_budget(pool, request);
    GPSTI_FAIL_IF(
        request->timeout_ns <= 0, GPST_ERROR_WOULD_BLOCK,
        "gpst_pool_acquire: bytes=%zu: %llu bytes of the pool are on loan and its budget has no room for "
        "%zu more",
        request->asked_bytes, (unsigned long long)live, request->bytes);
    const int64_t start_ns = gpsti_now_ns();
    if (!request->deadline_ns) {
        request->deadline_ns = gpsti_deadline(request->timeout_ns);
        pool->info.waits++;
    }
    GPSTI_FAIL_IF(
        start_ns >= request->deadline_ns, GPST_ERROR_TIMEOUT,
        "gpst_pool_acquire: bytes=%zu: nothing that fits came back within %lld ns (%llu bytes are on "
        "loan)",
        request->asked_bytes, (long long)request->timeout_ns, (unsigned long long)live);
    pool->n_waiters++;
    (void)gpsti_cond_wait_until(&pool->released, &pool->mutex, request->deadline_ns);
    pool->n_waiters--;
    pool->info.wait_ns += (uint64_t)(gpsti_now_ns() - start_ns);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_pool_acquire_locked(gpst_pool* pool, gpsti_pool_request* request,
                                                    gpst_buffer* out) {
    for (;;) {
        const uint32_t index = pool->classes[request->class_index].free;
        if (index != GPSTI_POOL_NONE) {
            pool->classes[request->class_index].free = pool->entries[index].next;
            pool->n_out++;
            gpsti_pool_lend(pool, index, out);
            return GPST_OK;
        }
        bool charged = gpsti_pool_charge(pool, request->bytes);
        while (!charged && gpsti_pool_drop_any(pool))
            charged = gpsti_pool_charge(pool, request->bytes);
        if (charged)
            return gpsti_pool_grow(pool, request, out);
        GPSTI_TRY(gpsti_pool_wait(pool, request));
    }
}

GPSTI_PRIVATE gpst_result gpsti_pool_acquire(gpst_pool* pool, size_t bytes, int64_t timeout_ns, bool is_filled,
                                             gpsti_a64* grown, gpst_buffer* out) {
    gpsti_pool_request request;
    if (out)
        memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(!pool || !out, GPST_ERROR_ARGUMENT, "gpst_pool_acquire: %s=NULL: must not be NULL",
                  pool ? "out" : "pool");
    GPSTI_TRY(gpsti_context_check(pool->context, "gpst_pool_acquire"));
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "gpst_pool_acquire: bytes=0: must be at least 1");
    GPSTI_FAIL_IF(!gpsti_pool_class_of(bytes, &request.class_index, &request.bytes), GPST_ERROR_OVERFLOW,
                  "gpst_pool_acquire: bytes=%zu: must be below SIZE_MAX/2", bytes);
    request.asked_bytes = bytes;
    request.timeout_ns = timeout_ns;
    request.deadline_ns = 0;
    request.grown = grown;
    request.is_filled = is_filled;
    gpsti_mutex_lock(&pool->mutex);
    const gpst_result result = gpsti_pool_acquire_locked(pool, &request, out);
    pool->info.refusals += GPST_FAILED(result);
    gpsti_mutex_unlock(&pool->mutex);
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
    gpsti_mutex_lock(&pool->mutex);
    gpsti_pool_entry* entry = gpsti_pool_find(pool, buffer);
    if (entry) {
        GPSTI_POISON(entry->memory.ptr, entry->bytes);
        entry->on_loan = false;
        entry->next = pool->classes[entry->class_index].free;
        pool->classes[entry->class_index].free = (uint32_t)(entry - pool->entries);
        pool->info.live_bytes -= entry->bytes;
        pool->n_out--;
        if (pool->n_waiters)
            gpsti_cond_broadcast(&pool->released); /* all: they want different classes */
    }
    gpsti_mutex_unlock(&pool->mutex);
    if (!entry)
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
    gpsti_mutex_lock(&pool->mutex);
    while (gpsti_pool_drop_any(pool)) {}
    gpsti_mutex_unlock(&pool->mutex);
}

/* A class of which there are more than n_items may want: each as many as there have been for each of the slots, so that
   what the pages of the run's memory are can be told to its end. */
GPSTI_PRIVATE uint32_t gpsti_pool_spare_class(const gpst_pool* pool, uint32_t n_items, uint32_t n_slots) {
    for (uint32_t i = GPSTI_POOL_CLASSES; i-- > 0;) {
        const gpsti_pool_class* const its = &pool->classes[i];
        const uint64_t each = ((uint64_t)its->most + n_slots - 1) / n_slots;
        if (its->free != GPSTI_POOL_NONE && its->n > each * n_items)
            return i;
    }
    return GPSTI_POOL_NONE;
}

GPSTI_INTERN bool gpsti_pool_has_spare(gpst_pool* pool, uint32_t n_items, uint32_t n_slots) {
    gpsti_mutex_lock(&pool->mutex);
    const bool has = gpsti_pool_spare_class(pool, n_items, n_slots) != GPSTI_POOL_NONE;
    gpsti_mutex_unlock(&pool->mutex);
    return has;
}

GPSTI_INTERN void gpsti_pool_drop_spare(gpst_pool* pool, uint32_t n_items, uint32_t n_slots) {
    gpsti_pool_entry gone;
    gpsti_mutex_lock(&pool->mutex);
    const uint32_t class_index = gpsti_pool_spare_class(pool, n_items, n_slots);
    if (class_index != GPSTI_POOL_NONE)
        gone = gpsti_pool_take_out(pool, class_index);
    gpsti_mutex_unlock(&pool->mutex);
    if (class_index != GPSTI_POOL_NONE)
        gpsti_pool_let_go(pool, &gone);
}

GPST_API void gpst_pool_query_info(const gpst_pool* pool, gpst_pool_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!pool)
        return;
    gpst_pool* locked = (gpst_pool*)pool;
    gpsti_mutex_lock(&locked->mutex);
    *out = locked->info;
    out->held_bytes = gpsti_a64_load_relaxed(&locked->held_bytes);
    gpsti_mutex_unlock(&locked->mutex);
}

/* ---- create / destroy -------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_pool_build(gpst_pool* pool) {
    for (uint32_t i = 0; i < GPSTI_POOL_CLASSES; i++)
        pool->classes[i].free = GPSTI_POOL_NONE;
    pool->unused = GPSTI_POOL_NONE;
    GPSTI_TRY(gpsti_mutex_init(&pool->mutex));
    const gpst_result result = gpsti_cond_init(&pool->released);
    if (GPST_FAILED(result))
        gpsti_mutex_term(&pool->mutex);
    return result;
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
    GPSTI_TRY(gpsti_check_canaries(function, desc->start_canary, desc->end_canary));
    GPSTI_FAIL_IF((int)desc->huge_pages < 0 || desc->huge_pages > GPST_HUGE_PAGES_ALWAYS, GPST_ERROR_ARGUMENT,
                  "%s: desc.huge_pages=%d: must be 0..%d", function, (int)desc->huge_pages,
                  (int)GPST_HUGE_PAGES_ALWAYS);
    gpst_pool* pool = (gpst_pool*)gpsti_alloc(&context->host, sizeof *pool);
    if (!pool)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    pool->context = context;
    pool->desc = *desc;
    const gpst_result result = gpsti_pool_build(pool);
    if (GPST_FAILED(result))
        gpsti_free(&context->host, pool, sizeof *pool);
    else
        *out = pool;
    return result;
}

GPSTI_INTERN void gpsti_pool_set_keeps(gpst_pool* pool) { pool->keeps = true; }

GPSTI_PRIVATE void gpsti_pool_let_go_of_all(gpst_pool* pool) {
    for (uint32_t i = GPSTI_POOL_CLASSES; i-- > 0;) {
        while (pool->classes[i].free != GPSTI_POOL_NONE) {
            gpsti_pool_entry gone = gpsti_pool_take_out(pool, i);
            gpsti_pool_let_go(pool, &gone);
        }
    }
}

GPST_API gpst_result gpst_pool_destroy(gpst_pool* pool) {
    if (!pool)
        return GPST_OK;
    gpsti_host* host = &pool->context->host;
    GPSTI_TRY(gpsti_context_check(pool->context, "gpst_pool_destroy"));
    gpsti_mutex_lock(&pool->mutex);
    const uint32_t n_out = pool->n_out;
    gpsti_mutex_unlock(&pool->mutex);
    GPSTI_FAIL_IF(n_out, GPST_ERROR_STATE, "gpst_pool_destroy: %u buffers are on loan: release them first",
                  n_out);
    gpsti_pool_let_go_of_all(pool);
    gpsti_cond_term(&pool->released);
    gpsti_mutex_term(&pool->mutex);
    gpsti_free(host, pool->entries, pool->max_entries * sizeof *pool->entries);
    gpsti_free(host, pool, sizeof *pool);
    return GPST_OK;
}
