/* core/prefetch/prefetch.c -- a list of files as frames: asked for, fetched ahead as the policy says, given back. Made
   and unmade here. What comes next is prefetch_policy.c's to say, what stays prefetch_cache.c's. */
#include "../base/platform_internal.h"

#include "../device/context_internal.h"
#include "../files/io_internal.h"
#include "prefetch_internal.h"

#include <string.h>

#define GPSTI_PREFETCH_CREATE "gpst_prefetch_create"
#define GPSTI_PREFETCH_DEFAULT_BYTES ((uint64_t)256 << 20)
#define GPSTI_PREFETCH_DEFAULT_AHEAD 8
#define GPSTI_PREFETCH_MAX_CAMERAS 64 /* GPST_MAX_CAMERAS of items */

/* ---- which way --------------------------------------------------------------------------------- */

GPSTI_INTERN uint32_t gpsti_prefetch_camera(const gpst_prefetch* prefetch, uint64_t index) {
    const uint64_t n = prefetch->desc.n_cameras;
    return (uint32_t)(prefetch->desc.list_order == GPST_CAMERAS_BY_CAMERA ? index / (prefetch->desc.n_paths / n)
                                                                           : index % n);
}

GPSTI_INTERN bool gpsti_prefetch_walk(const gpst_prefetch* prefetch, uint64_t position, uint64_t* index) {
    const uint64_t n = prefetch->schedule ? prefetch->n_schedule : prefetch->desc.n_paths;
    if (position >= n)
        return false;
    *index = prefetch->schedule ? prefetch->schedule[position] : position;
    return true;
}

/* ---- asking --------------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_prefetch_go_ahead(gpst_prefetch* prefetch) {
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    const uint32_t n = gpsti_prefetch_policy_want(&prefetch->policy, want);
    for (uint32_t k = 0; k < n; k++) {
        if (prefetch->entries[want[k]])
            continue;
        gpsti_prefetch_entry* const entry = gpsti_prefetch_add(prefetch, want[k]);
        if (!entry)
            return; /* no memory for foresight */
        gpsti_prefetch_prepare(entry);
        entry->fetched = true;
        prefetch->info.fetched++;
        if (GPST_FAILED(gpst_reader_submit(prefetch->reader, &entry->read))) {
            gpsti_prefetch_drop(entry);
            return;
        }
    }
}

/* It was there, or is on its way. Locked. */
GPSTI_PRIVATE void gpsti_prefetch_count_found(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    *(entry->loading ? &prefetch->info.late : &prefetch->info.hits) += 1;
    if (entry->fetched) {
        prefetch->info.used++;
        gpsti_prefetch_policy_judge(&prefetch->policy, true);
    } else if (!entry->loading) {
        prefetch->info.kept++;
        prefetch->info.saved_ns += entry->decode_ns;
    }
    entry->fetched = false;
}

/* The entry, held; loaded here when nobody does. Locked; open while it loads. */
GPSTI_PRIVATE gpsti_prefetch_entry* gpsti_prefetch_hold(gpst_prefetch* prefetch, uint64_t index) {
    gpsti_prefetch_entry* entry = prefetch->entries[index];
    prefetch->info.asked++;
    if (entry) {
        gpsti_prefetch_count_found(entry);
        gpsti_prefetch_touch(entry);
        entry->n_holders++;
    } else if ((entry = gpsti_prefetch_add(prefetch, index)) != NULL) {
        prefetch->info.misses++;
        entry->n_holders = 1;
        gpsti_prefetch_prepare(entry);
        gpsti_prefetch_go_ahead(prefetch);
        gpsti_mutex_unlock(&prefetch->mutex);
        gpsti_prefetch_load(entry);
        gpsti_mutex_lock(&prefetch->mutex);
        return entry;
    }
    gpsti_prefetch_go_ahead(prefetch);
    return entry;
}

/* Until it is there. What foresight found no room for is loaded now that it is asked for. Locked; open meanwhile. */
GPSTI_PRIVATE void gpsti_prefetch_wait(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    while (entry->loading || entry->refused) {
        if (entry->loading) {
            gpsti_cond_wait_until(&prefetch->changed, &prefetch->mutex, GPST_FOREVER);
            continue;
        }
        entry->loading = true;
        entry->refused = entry->starved = false;
        gpsti_mutex_unlock(&prefetch->mutex);
        gpsti_prefetch_load(entry);
        gpsti_mutex_lock(&prefetch->mutex);
    }
}

/* Locked. */
GPSTI_PRIVATE void gpsti_prefetch_let_go(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    if (--entry->n_holders == 0 && GPST_FAILED(entry->result))
        gpsti_prefetch_drop(entry);
    (void)gpsti_prefetch_make_room(prefetch, 0, 0);
}

GPSTI_INTERN gpst_result gpsti_prefetch_get_at(gpst_prefetch* prefetch, uint64_t index, uint64_t position,
                                               const gpst_frame** out, bool* starved) {
    char reason[GPSTI_REASON_BYTES];
    gpsti_mutex_lock(&prefetch->mutex);
    if (position > 0)
        gpsti_prefetch_policy_place(&prefetch->policy, position - 1);
    gpsti_prefetch_policy_note(&prefetch->policy, index);
    gpsti_prefetch_entry* const entry = gpsti_prefetch_hold(prefetch, index);
    if (entry)
        gpsti_prefetch_wait(entry);
    const gpst_result result = entry ? entry->result : GPST_ERROR_MEMORY;
    if (entry && GPST_FAILED(result)) {
        gpsti_copy_text(reason, sizeof reason, entry->reason);
        *starved = entry->starved;
        prefetch->info.failed++;
        gpsti_prefetch_let_go(entry);
    } else if (entry) {
        *out = &entry->frame;
    }
    gpsti_mutex_unlock(&prefetch->mutex);
    return *out || !entry ? result : gpsti_fail(result, "%s", reason);
}

GPST_API gpst_result gpst_prefetch_get(gpst_prefetch* prefetch, uint64_t index, const gpst_frame** out) {
    bool starved = false;
    GPSTI_OUT_NONE(out);
    GPSTI_FAIL_IF(!prefetch || !out, GPST_ERROR_ARGUMENT, "gpst_prefetch_get: %s=NULL: required",
                  prefetch ? "out" : "prefetch");
    GPSTI_TRY(gpsti_context_check(prefetch->context, "gpst_prefetch_get"));
    GPSTI_FAIL_IF(index >= prefetch->desc.n_paths, GPST_ERROR_ARGUMENT,
                  "gpst_prefetch_get: index=%llu: must be below n_paths=%llu", (unsigned long long)index,
                  (unsigned long long)prefetch->desc.n_paths);
    return gpsti_prefetch_get_at(prefetch, index, 0, out, &starved);
}

GPST_API void gpst_prefetch_release(gpst_prefetch* prefetch, const gpst_frame* frame) {
    if (!prefetch || !frame || GPST_FAILED(gpsti_context_check(prefetch->context, "gpst_prefetch_release")))
        return;
    gpsti_prefetch_entry* const entry = (gpsti_prefetch_entry*)(uintptr_t)frame;
    gpsti_mutex_lock(&prefetch->mutex);
    const bool held = entry->n_holders > 0;
    if (held)
        gpsti_prefetch_let_go(entry);
    gpsti_mutex_unlock(&prefetch->mutex);
    if (!held)
        GPSTI_LOG(&prefetch->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
                  "gpst_prefetch_release: frame=%p: released already; ignored", (const void*)frame);
    gpsti_caches_tell(prefetch->context->memory);
}

/* For the context's memory: something is wanted by others. */
GPSTI_PRIVATE bool gpsti_prefetch_shrink(void* user_data) {
    gpst_prefetch* const prefetch = (gpst_prefetch*)user_data;
    gpsti_mutex_lock(&prefetch->mutex);
    const bool gave = gpsti_prefetch_drop_one(prefetch, 0);
    prefetch->info.given_up += gave ? 1 : 0;
    gpsti_mutex_unlock(&prefetch->mutex);
    return gave;
}

/* For the context's memory: foresight has some that nobody waits for. */
GPSTI_PRIVATE bool gpsti_prefetch_is_loading(void* user_data) {
    gpst_prefetch* const prefetch = (gpst_prefetch*)user_data;
    gpsti_mutex_lock(&prefetch->mutex);
    const gpsti_prefetch_entry* entry = prefetch->oldest;
    while (entry && !(entry->loading && entry->n_holders == 0 && entry->claimed_bytes > 0))
        entry = entry->newer;
    gpsti_mutex_unlock(&prefetch->mutex);
    return entry != NULL;
}

GPST_API void gpst_prefetch_query_info(gpst_prefetch* prefetch, gpst_prefetch_info* out) {
    gpst_pool_info pool;
    if (out)
        memset(out, 0, sizeof *out);
    if (!out || !prefetch)
        return;
    gpst_pool_query_info(prefetch->pool, &pool);
    gpsti_mutex_lock(&prefetch->mutex);
    *out = prefetch->info;
    out->charged_bytes = pool.held_bytes;
    out->pinned_bytes = pool.pinned_bytes;
    out->times_off = prefetch->policy.times_off;
    gpsti_prefetch_policy_name(&prefetch->policy, out->pattern, sizeof out->pattern);
    gpsti_mutex_unlock(&prefetch->mutex);
}

/* ---- create / destroy ------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_prefetch_check_order(const gpst_prefetch_desc* desc) {
    const uint32_t n = desc->n_cameras ? desc->n_cameras : 1;
    GPSTI_FAIL_IF(n > GPSTI_PREFETCH_MAX_CAMERAS || desc->n_paths % n != 0, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": n_cameras=%u: must be at most %d, and divide n_paths=%llu", n,
                  GPSTI_PREFETCH_MAX_CAMERAS, (unsigned long long)desc->n_paths);
    GPSTI_FAIL_IF((int)desc->list_order < 0 || desc->list_order > GPST_CAMERAS_BY_CAMERA, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": list_order=%d: must be 0..2", (int)desc->list_order);
    GPSTI_FAIL_IF((int)desc->walk_order < 0 || desc->walk_order > GPST_CAMERAS_BY_CAMERA, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": walk_order=%d: must be 0..2", (int)desc->walk_order);
    GPSTI_FAIL_IF(!desc->n_schedule != !desc->schedule, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": n_schedule=%llu: must be %s schedule=%s",
                  (unsigned long long)desc->n_schedule, desc->schedule ? "above 0 with" : "0 with",
                  desc->schedule ? "a list" : "NULL");
    GPSTI_FAIL_IF(desc->n_schedule && desc->walk_order, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": walk_order=%d: must be 0 with a schedule", (int)desc->walk_order);
    for (uint64_t k = 0; k < desc->n_schedule; k++)
        GPSTI_FAIL_IF(desc->schedule[k] >= desc->n_paths, GPST_ERROR_ARGUMENT,
                      GPSTI_PREFETCH_CREATE ": schedule[%llu]=%llu: must be below n_paths=%llu",
                      (unsigned long long)k, (unsigned long long)desc->schedule[k],
                      (unsigned long long)desc->n_paths);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_check(const gpst_context* context, const gpst_prefetch_desc* desc) {
    GPSTI_FAIL_IF(!desc, GPST_ERROR_ARGUMENT, GPSTI_PREFETCH_CREATE ": desc=NULL: required");
    GPSTI_TRY(gpsti_check_canaries(GPSTI_PREFETCH_CREATE, desc->start_canary, desc->end_canary));
    GPSTI_TRY(gpsti_context_check(context, GPSTI_PREFETCH_CREATE));
    GPSTI_FAIL_IF(!desc->paths, GPST_ERROR_ARGUMENT, GPSTI_PREFETCH_CREATE ": paths=NULL: required");
    GPSTI_FAIL_IF(desc->n_paths < 1 || desc->n_paths > UINT32_MAX, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": n_paths=%llu: must be 1 .. 2^32-1", (unsigned long long)desc->n_paths);
    for (uint64_t k = 0; k < desc->n_paths; k++)
        GPSTI_FAIL_IF(!desc->paths[k] || !desc->paths[k][0], GPST_ERROR_ARGUMENT,
                      GPSTI_PREFETCH_CREATE ": paths[%llu]: must be neither NULL nor empty", (unsigned long long)k);
    GPSTI_TRY(gpsti_prefetch_check_order(desc));
    GPSTI_FAIL_IF(desc->max_ahead > GPSTI_PREFETCH_MAX_AHEAD, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": max_ahead=%u: must be at most %d", desc->max_ahead,
                  GPSTI_PREFETCH_MAX_AHEAD);
    GPSTI_FAIL_IF(desc->n_in_flight > GPSTI_IO_MAX_THREADS, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": n_in_flight=%u: must be at most %d", desc->n_in_flight,
                  GPSTI_IO_MAX_THREADS);
    GPSTI_TRY(gpsti_decode_check(desc->decode, GPSTI_PREFETCH_CREATE ": decode"));
    GPSTI_FAIL_IF(desc->decode && desc->decode->codec != GPST_CODEC_EXACT, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": decode: codec=%d: must be EXACT: the cores decode",
                  (int)desc->decode->codec);
    return GPST_OK;
}

/* The schedule, or the walk where it goes another way than the list. */
GPSTI_PRIVATE gpst_result gpsti_prefetch_copy_schedule(gpst_prefetch* prefetch, const gpst_prefetch_desc* desc) {
    const uint64_t n_cameras = prefetch->desc.n_cameras, n_frames = desc->n_paths / n_cameras;
    const bool walks = desc->walk_order && n_cameras > 1 && desc->walk_order != prefetch->desc.list_order;
    const uint64_t n = walks ? desc->n_paths : desc->n_schedule;
    GPSTI_FAIL_IF(n > SIZE_MAX / 2 / sizeof(uint64_t), GPST_ERROR_OVERFLOW,
                  GPSTI_PREFETCH_CREATE ": n_schedule: does not fit in memory");
    prefetch->n_schedule = n;
    if (n == 0)
        return GPST_OK;
    prefetch->schedule = (uint64_t*)gpsti_alloc(&prefetch->context->host, (size_t)n * sizeof(uint64_t));
    if (!prefetch->schedule)
        return GPST_ERROR_MEMORY;
    if (!walks)
        memcpy(prefetch->schedule, desc->schedule, (size_t)n * sizeof(uint64_t));
    const uint64_t inner = desc->walk_order == GPST_CAMERAS_BY_FRAME ? n_cameras : n_frames;
    for (uint64_t k = 0; walks && k < n; k++)
        prefetch->schedule[k] = k % inner * (n / inner) + k / inner;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_copy_list(gpst_prefetch* prefetch, const gpst_prefetch_desc* desc) {
    gpsti_host* const host = &prefetch->context->host;
    const size_t n = (size_t)desc->n_paths;
    prefetch->entries = (gpsti_prefetch_entry**)gpsti_alloc(host, n * sizeof *prefetch->entries);
    prefetch->paths = (char**)gpsti_alloc(host, n * sizeof *prefetch->paths);
    if (!prefetch->entries || !prefetch->paths)
        return GPST_ERROR_MEMORY;
    for (size_t k = 0; k < n; k++) {
        prefetch->paths[k] = gpsti_copy_string(host, desc->paths[k]);
        if (!prefetch->paths[k])
            return GPST_ERROR_MEMORY;
    }
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_prefetch_resolve(gpst_prefetch* prefetch, const gpst_prefetch_desc* desc) {
    prefetch->desc = *desc;
    if (!desc->max_bytes)
        prefetch->desc.max_bytes = GPSTI_PREFETCH_DEFAULT_BYTES;
    if (!desc->max_ahead)
        prefetch->desc.max_ahead = GPSTI_PREFETCH_DEFAULT_AHEAD;
    if (!desc->n_cameras)
        prefetch->desc.n_cameras = 1;
    if (!desc->list_order)
        prefetch->desc.list_order = GPST_CAMERAS_BY_FRAME;
    if (desc->decode) {
        prefetch->decode = *desc->decode;
        prefetch->desc.decode = &prefetch->decode;
    }
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_build(gpst_prefetch* prefetch, const gpst_prefetch_desc* desc) {
    gpst_reader_desc reader = GPST_ZERO;
    gpst_pool_desc pool = GPST_ZERO;
    gpsti_prefetch_resolve(prefetch, desc);
    GPSTI_TRY(gpsti_mutex_init(&prefetch->mutex));
    prefetch->has_mutex = true;
    GPSTI_TRY(gpsti_cond_init(&prefetch->changed));
    prefetch->has_changed = true;
    GPSTI_TRY(gpsti_prefetch_copy_list(prefetch, desc));
    GPSTI_TRY(gpsti_prefetch_copy_schedule(prefetch, desc));
    const uint64_t n_known = desc->walk_order ? desc->n_paths : prefetch->n_schedule;
    gpsti_prefetch_policy_init(&prefetch->policy, desc->n_paths, prefetch->desc.max_ahead, prefetch->schedule,
                               n_known);
    pool.tag = "prefetch";
    pool.kind = desc->pinned ? GPST_MEMORY_PINNED : GPST_MEMORY_HOST;
    GPSTI_TRY(gpst_pool_create(prefetch->context, &pool, &prefetch->pool));
    reader.n_in_flight = desc->n_in_flight;
    reader.kind = desc->kind;
    GPSTI_TRY(gpst_reader_create(prefetch->context, &reader, &prefetch->reader));
    prefetch->cache.shrink = gpsti_prefetch_shrink;
    prefetch->cache.is_loading = gpsti_prefetch_is_loading;
    prefetch->cache.user_data = prefetch;
    gpsti_caches_add(prefetch->context->memory, &prefetch->cache);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_prefetch_free(gpst_prefetch* prefetch) {
    gpsti_host* const host = &prefetch->context->host;
    gpsti_caches_remove(prefetch->context->memory, &prefetch->cache);
    gpst_reader_destroy(prefetch->reader); /* every read is over */
    while (prefetch->newest)
        gpsti_prefetch_drop(prefetch->newest);
    (void)gpst_pool_destroy(prefetch->pool);
    while (prefetch->n_codecs > 0)
        gpst_jpeg_destroy(prefetch->codecs[--prefetch->n_codecs]);
    for (size_t k = 0; prefetch->paths && k < (size_t)prefetch->desc.n_paths && prefetch->paths[k]; k++)
        gpsti_free(host, prefetch->paths[k], strlen(prefetch->paths[k]) + 1);
    if (prefetch->paths)
        gpsti_free(host, prefetch->paths, (size_t)prefetch->desc.n_paths * sizeof *prefetch->paths);
    if (prefetch->entries)
        gpsti_free(host, prefetch->entries, (size_t)prefetch->desc.n_paths * sizeof *prefetch->entries);
    if (prefetch->schedule)
        gpsti_free(host, prefetch->schedule, (size_t)prefetch->n_schedule * sizeof(uint64_t));
    if (prefetch->has_changed)
        gpsti_cond_term(&prefetch->changed);
    if (prefetch->has_mutex)
        gpsti_mutex_term(&prefetch->mutex);
    gpsti_context_drop_object(prefetch->context, prefetch, sizeof *prefetch);
}

GPST_API gpst_result gpst_prefetch_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                    const gpst_prefetch_desc* desc, gpst_prefetch** out) {
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(GPSTI_PREFETCH_CREATE, version, desc_bytes, sizeof(gpst_prefetch_desc)));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, GPSTI_PREFETCH_CREATE ": out=NULL: required");
    GPSTI_TRY(gpsti_prefetch_check(context, desc));
    gpst_prefetch* const prefetch = (gpst_prefetch*)gpsti_context_add_object(context, sizeof *prefetch);
    if (!prefetch)
        return GPST_ERROR_MEMORY;
    prefetch->context = context;
    const gpst_result result = gpsti_prefetch_build(prefetch, desc);
    if (GPST_FAILED(result)) {
        gpsti_prefetch_free(prefetch);
        return result;
    }
    *out = prefetch;
    return GPST_OK;
}

GPST_API void gpst_prefetch_destroy(gpst_prefetch* prefetch) {
    if (prefetch && !gpsti_context_forked(prefetch->context))
        gpsti_prefetch_free(prefetch);
}
