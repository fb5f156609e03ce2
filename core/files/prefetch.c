/* core/files/prefetch.c -- frames of a list in memory: read ahead as the policy says,
   kept while there is room. Owns frames and the reader; what comes next is core/files/prefetch_policy.c's to say. */
#include "../base/platform_internal.h"

#include "../device/context_internal.h"
#include "prefetch.h"
#include "prefetch_internal.h"

#include <string.h>

#define GPSTI_PREFETCH_CREATE "gpst_prefetch_create"
#define GPSTI_PREFETCH_DEFAULT_BYTES ((uint64_t)256 << 20)
#define GPSTI_PREFETCH_DEFAULT_AHEAD 8

typedef struct gpsti_prefetch_entry {
    gpst_frame frame; /* first: a frame is its entry */
    gpst_prefetch* prefetch;
    gpst_read read;
    void* room; /* the file's bytes */
    size_t room_bytes;
    void* decoded;
    size_t decoded_bytes;
    uint32_t n_holders; /* who asked for it and has not released it; a wait is a hold */
    bool loading;
    bool refused; /* foresight found no room, */
    uint64_t refused_at; /* when so many had been asked for */
    bool fetched; /* ahead of being asked for, and not asked for yet */
    gpst_result result;
    char reason[256];
    struct gpsti_prefetch_entry* newer; /* all entries, by their last use */
    struct gpsti_prefetch_entry* older;
} gpsti_prefetch_entry;

struct gpst_prefetch {
    gpst_context* context;
    gpst_prefetch_desc desc; /* defaults resolved; paths and schedule are the copies below */
    char** paths;
    uint64_t* schedule;
    gpst_reader* reader;
    gpsti_mutex mutex; /* over all below, and the entries */
    gpsti_cond loaded;
    bool has_mutex, has_loaded;
    gpsti_prefetch_entry** entries; /* by index; NULL = not in memory */
    gpsti_prefetch_entry* newest;
    gpsti_prefetch_entry* oldest;
    gpsti_prefetch_policy policy;
    gpst_prefetch_info info;
};

/* ---- entries: all with the mutex held -------------------------------------------------- */

GPSTI_PRIVATE void gpsti_prefetch_unlink(gpst_prefetch* prefetch, gpsti_prefetch_entry* entry) {
    *(entry->newer ? &entry->newer->older : &prefetch->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &prefetch->oldest) = entry->newer;
    entry->newer = entry->older = NULL;
}

GPSTI_PRIVATE void gpsti_prefetch_link(gpst_prefetch* prefetch, gpsti_prefetch_entry* entry) {
    entry->older = prefetch->newest;
    *(prefetch->newest ? &prefetch->newest->newer : &prefetch->oldest) = entry;
    prefetch->newest = entry;
}

GPSTI_PRIVATE gpsti_prefetch_entry* gpsti_prefetch_add(gpst_prefetch* prefetch, uint64_t index) {
    gpsti_prefetch_entry* const entry =
        (gpsti_prefetch_entry*)gpsti_alloc(&prefetch->context->host, sizeof *entry);
    if (!entry)
        return NULL;
    entry->prefetch = prefetch;
    entry->frame.index = index;
    entry->frame.path = entry->read.path = prefetch->paths[index];
    entry->loading = true;
    prefetch->entries[index] = entry;
    gpsti_prefetch_link(prefetch, entry);
    return entry;
}

GPSTI_PRIVATE void gpsti_prefetch_count_bytes(gpst_prefetch* prefetch, uint64_t more, uint64_t less) {
    prefetch->info.bytes += more - less;
    if (prefetch->info.bytes > prefetch->info.most_bytes)
        prefetch->info.most_bytes = prefetch->info.bytes;
}

GPSTI_PRIVATE void gpsti_prefetch_free_room(gpsti_prefetch_entry* entry) {
    if (!entry->room)
        return;
    gpsti_prefetch_count_bytes(entry->prefetch, 0, entry->room_bytes);
    gpsti_free(&entry->prefetch->context->host, entry->room, entry->room_bytes);
    entry->room = NULL;
}

GPSTI_PRIVATE void gpsti_prefetch_drop(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    if (entry->fetched) {
        prefetch->info.wasted++;
        gpsti_prefetch_policy_judge(&prefetch->policy, false);
    }
    gpsti_prefetch_free_room(entry);
    if (entry->decoded) {
        gpsti_prefetch_count_bytes(prefetch, 0, entry->decoded_bytes);
        prefetch->desc.decode_free(prefetch->desc.decode_user_data, entry->decoded, entry->decoded_bytes);
    }
    gpsti_prefetch_unlink(prefetch, entry);
    prefetch->entries[entry->frame.index] = NULL;
    gpsti_free(&prefetch->context->host, entry, sizeof *entry);
}

GPSTI_PRIVATE bool gpsti_prefetch_fits(const gpst_prefetch* prefetch, uint64_t bytes) {
    return prefetch->info.bytes + bytes <= prefetch->desc.max_bytes;
}

GPSTI_PRIVATE bool gpsti_prefetch_may_go(const gpsti_prefetch_entry* entry, bool fetched) {
    return !entry->n_holders && !entry->loading && entry->fetched == fetched;
}

/* How many will be asked for before it, as far as is foreseen; all of them when it is not foreseen any more. */
GPSTI_PRIVATE uint32_t gpsti_prefetch_place(const uint64_t* want, uint32_t n, uint64_t index) {
    uint32_t place = 0;
    while (place < n && want[place] != index)
        place++;
    return place;
}

/* Of what was fetched and waits to be asked for, what that will come to last; NULL: only the next n_kept are left. */
GPSTI_PRIVATE gpsti_prefetch_entry* gpsti_prefetch_last_due(gpst_prefetch* prefetch, uint32_t n_kept) {
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    const uint32_t n = gpsti_prefetch_policy_want(&prefetch->policy, want);
    gpsti_prefetch_entry* last = NULL;
    uint32_t last_place = 0;
    for (gpsti_prefetch_entry* entry = prefetch->oldest; entry; entry = entry->newer) {
        const uint32_t place = gpsti_prefetch_place(want, n, entry->frame.index);
        if (!gpsti_prefetch_may_go(entry, true) || place < n_kept || (last && place <= last_place))
            continue;
        last = entry;
        last_place = place;
    }
    return last;
}

/* How many of those that will be asked for next keep their room when this entry wants some: those before it. */
GPSTI_PRIVATE uint32_t gpsti_prefetch_n_kept(const gpsti_prefetch_entry* entry) {
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    if (entry->n_holders > 0) /* it is asked for now */
        return 0;
    const uint32_t n = gpsti_prefetch_policy_want(&entry->prefetch->policy, want);
    return gpsti_prefetch_place(want, n, entry->frame.index) + 1;
}

/* Makes room for so many bytes more: from what was used longest ago, then from what was fetched and is not among the
   next n_kept that will be asked for, the last one first. false when that does not suffice. */
GPSTI_PRIVATE bool gpsti_prefetch_make_room(gpst_prefetch* prefetch, uint64_t bytes, uint32_t n_kept) {
    for (gpsti_prefetch_entry *entry = prefetch->oldest, *next = NULL; entry; entry = next) {
        next = entry->newer;
        if (gpsti_prefetch_fits(prefetch, bytes))
            return true;
        if (gpsti_prefetch_may_go(entry, false))
            gpsti_prefetch_drop(entry);
    }
    while (!gpsti_prefetch_fits(prefetch, bytes)) {
        gpsti_prefetch_entry* const entry = gpsti_prefetch_last_due(prefetch, n_kept);
        if (!entry)
            return false;
        gpsti_prefetch_drop(entry);
    }
    return true;
}

/* ---- loading one: without the mutex ------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_prefetch_reserve(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    gpsti_prefetch_entry* const entry = (gpsti_prefetch_entry*)read->user_data;
    gpst_prefetch* const prefetch = entry->prefetch;
    gpsti_mutex_lock(&prefetch->mutex);
    const bool asked = entry->n_holders > 0;
    const bool fits = gpsti_prefetch_make_room(prefetch, needed_bytes, gpsti_prefetch_n_kept(entry));
    void* const room = fits || asked ? gpsti_alloc(&prefetch->context->host, needed_bytes) : NULL;
    if (room) {
        if (filled_bytes)
            memcpy(room, read->data, filled_bytes);
        gpsti_prefetch_free_room(entry);
        gpsti_prefetch_count_bytes(prefetch, needed_bytes, 0);
        entry->room = read->data = room;
        entry->room_bytes = read->capacity_bytes = needed_bytes;
    }
    entry->refused = !fits && !asked;
    entry->refused_at = prefetch->info.asked;
    gpsti_mutex_unlock(&prefetch->mutex);
    GPSTI_FAIL_IF(!fits && !asked, GPST_ERROR_BUDGET, "prefetch \"%s\": max_bytes=%llu: no room for %zu bytes",
                  read->path, (unsigned long long)prefetch->desc.max_bytes, needed_bytes);
    return room ? GPST_OK : GPST_ERROR_MEMORY;
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_decode(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    if (!prefetch->desc.decode)
        return GPST_OK;
    const uint64_t serial = gpsti_fail_serial();
    const gpst_result result =
        prefetch->desc.decode(prefetch->desc.decode_user_data, entry->frame.index, entry->room, entry->read.bytes,
                              &entry->decoded, &entry->decoded_bytes);
    if (!GPST_FAILED(result) && !entry->decoded)
        return gpsti_fail(GPST_ERROR_CALLBACK, "prefetch \"%s\": decode gave no frame", entry->frame.path);
    if (GPST_FAILED(result)) {
        entry->decoded = NULL;
        if (gpsti_fail_serial() == serial)
            return gpsti_fail(result, "prefetch \"%s\": decode: %s", entry->frame.path, gpst_result_text(result));
    }
    return result;
}

GPSTI_PRIVATE void gpsti_prefetch_go_ahead(gpst_prefetch* prefetch);

/* The read is over, one way or the other: decodes, and tells those who wait. A frame that nobody asked for and that
   could not be had is forgotten: whoever asks for it will see for himself. */
GPSTI_PRIVATE void gpsti_prefetch_finish(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    gpst_result result = entry->read.result;
    gpsti_copy_text(entry->reason, sizeof entry->reason, entry->read.reason);
    if (!GPST_FAILED(result)) {
        result = gpsti_prefetch_decode(entry);
        if (GPST_FAILED(result))
            gpsti_copy_text(entry->reason, sizeof entry->reason, gpst_last_reason());
    }
    gpsti_mutex_lock(&prefetch->mutex);
    entry->result = result;
    entry->loading = false;
    entry->frame.data = entry->decoded ? entry->decoded : entry->room;
    entry->frame.bytes = entry->decoded ? entry->decoded_bytes : entry->read.bytes;
    if (prefetch->desc.decode || GPST_FAILED(result))
        gpsti_prefetch_free_room(entry);
    if (entry->decoded)
        gpsti_prefetch_count_bytes(prefetch, entry->decoded_bytes, 0);
    if (GPST_FAILED(result) && !entry->n_holders) {
        const bool again = entry->refused && entry->refused_at != prefetch->info.asked; /* who asked took it for read */
        prefetch->info.failed += result != GPST_ERROR_BUDGET && result != GPST_ERROR_CANCELLED;
        gpsti_prefetch_drop(entry);
        if (again)
            gpsti_prefetch_go_ahead(prefetch);
    } else {
        (void)gpsti_prefetch_make_room(prefetch, 0, gpsti_prefetch_n_kept(entry));
    }
    gpsti_cond_broadcast(&prefetch->loaded);
    gpsti_mutex_unlock(&prefetch->mutex);
}

GPSTI_PRIVATE void gpsti_prefetch_done(gpst_read* read) {
    gpsti_prefetch_finish((gpsti_prefetch_entry*)read->user_data);
}

GPSTI_PRIVATE void gpsti_prefetch_prepare(gpsti_prefetch_entry* entry) {
    entry->read.reserve = gpsti_prefetch_reserve;
    entry->read.done = gpsti_prefetch_done;
    entry->read.user_data = entry;
}

/* Sets going what will be asked for. Locked. */
GPSTI_PRIVATE void gpsti_prefetch_go_ahead(gpst_prefetch* prefetch) {
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

/* ---- the public face ------------------------------------------------------------------------ */

/* The entry, held; loaded here when nobody does. Locked; open while it loads. */
GPSTI_PRIVATE gpsti_prefetch_entry* gpsti_prefetch_hold(gpst_prefetch* prefetch, uint64_t index) {
    gpsti_prefetch_entry* entry = prefetch->entries[index];
    prefetch->info.asked++;
    if (entry) {
        *(entry->loading ? &prefetch->info.late : &prefetch->info.hits) += 1;
        if (entry->fetched) {
            prefetch->info.used++;
            gpsti_prefetch_policy_judge(&prefetch->policy, true);
        }
        entry->fetched = false;
        gpsti_prefetch_unlink(prefetch, entry);
        gpsti_prefetch_link(prefetch, entry);
        entry->n_holders++;
    } else if ((entry = gpsti_prefetch_add(prefetch, index)) != NULL) {
        prefetch->info.misses++;
        entry->n_holders = 1;
        gpsti_prefetch_prepare(entry);
        gpsti_prefetch_go_ahead(prefetch);
        gpsti_mutex_unlock(&prefetch->mutex);
        (void)gpst_reader_read_now(prefetch->reader, &entry->read);
        gpsti_prefetch_finish(entry);
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
            gpsti_cond_wait_until(&prefetch->loaded, &prefetch->mutex, GPST_FOREVER);
            continue;
        }
        entry->loading = true;
        entry->refused = false;
        gpsti_mutex_unlock(&prefetch->mutex);
        (void)gpst_reader_read_now(prefetch->reader, &entry->read);
        gpsti_prefetch_finish(entry);
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

GPST_API gpst_result gpst_prefetch_get(gpst_prefetch* prefetch, uint64_t index, const gpst_frame** out) {
    char reason[256];
    GPSTI_OUT_NONE(out);
    GPSTI_FAIL_IF(!prefetch || !out, GPST_ERROR_ARGUMENT, "gpst_prefetch_get: %s=NULL: required",
                  prefetch ? "out" : "prefetch");
    GPSTI_TRY(gpsti_context_check(prefetch->context, "gpst_prefetch_get"));
    GPSTI_FAIL_IF(index >= prefetch->desc.n_paths, GPST_ERROR_ARGUMENT,
                  "gpst_prefetch_get: index=%llu: must be below n_paths=%llu", (unsigned long long)index,
                  (unsigned long long)prefetch->desc.n_paths);
    gpsti_mutex_lock(&prefetch->mutex);
    gpsti_prefetch_policy_note(&prefetch->policy, index);
    gpsti_prefetch_entry* const entry = gpsti_prefetch_hold(prefetch, index);
    if (entry)
        gpsti_prefetch_wait(entry);
    const gpst_result result = entry ? entry->result : GPST_ERROR_MEMORY;
    if (entry && GPST_FAILED(result)) {
        gpsti_copy_text(reason, sizeof reason, entry->reason);
        prefetch->info.failed++;
        gpsti_prefetch_let_go(entry);
    } else if (entry) {
        *out = &entry->frame;
    }
    gpsti_mutex_unlock(&prefetch->mutex);
    return *out || !entry ? result : gpsti_fail(result, "%s", reason);
}

GPST_API void gpst_prefetch_release(gpst_prefetch* prefetch, const gpst_frame* frame) {
    if (!prefetch || !frame || GPST_FAILED(gpsti_context_check(prefetch->context, "gpst_prefetch_release")))
        return;
    gpsti_mutex_lock(&prefetch->mutex);
    gpsti_prefetch_let_go((gpsti_prefetch_entry*)(uintptr_t)frame);
    gpsti_mutex_unlock(&prefetch->mutex);
}

GPST_API void gpst_prefetch_query_info(gpst_prefetch* prefetch, gpst_prefetch_info* out) {
    memset(out, 0, sizeof *out);
    if (!prefetch)
        return;
    gpsti_mutex_lock(&prefetch->mutex);
    *out = prefetch->info;
    out->times_off = prefetch->policy.times_off;
    gpsti_prefetch_policy_name(&prefetch->policy, out->pattern, sizeof out->pattern);
    gpsti_mutex_unlock(&prefetch->mutex);
}

/* ---- create / destroy ------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_prefetch_check(const gpst_context* context, const gpst_prefetch_desc* desc) {
    GPSTI_FAIL_IF(!desc, GPST_ERROR_ARGUMENT, GPSTI_PREFETCH_CREATE ": desc=NULL: required");
    GPSTI_TRY(gpsti_check_canaries(GPSTI_PREFETCH_CREATE, desc->start_canary, desc->end_canary));
    GPSTI_TRY(gpsti_context_check(context, GPSTI_PREFETCH_CREATE));
    GPSTI_FAIL_IF(!desc->paths || desc->n_paths < 1 || desc->n_paths > UINT32_MAX, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": n_paths=%llu: 1..2^32-1 paths are required",
                  (unsigned long long)desc->n_paths);
    for (uint64_t k = 0; k < desc->n_paths; k++)
        GPSTI_FAIL_IF(!desc->paths[k] || !desc->paths[k][0], GPST_ERROR_ARGUMENT,
                      GPSTI_PREFETCH_CREATE ": paths[%llu]: must not be empty", (unsigned long long)k);
    GPSTI_FAIL_IF(desc->n_schedule && !desc->schedule, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": schedule=NULL: required with n_schedule=%llu",
                  (unsigned long long)desc->n_schedule);
    for (uint64_t k = 0; k < desc->n_schedule; k++)
        GPSTI_FAIL_IF(desc->schedule[k] >= desc->n_paths, GPST_ERROR_ARGUMENT,
                      GPSTI_PREFETCH_CREATE ": schedule[%llu]=%llu: must be below n_paths=%llu",
                      (unsigned long long)k, (unsigned long long)desc->schedule[k],
                      (unsigned long long)desc->n_paths);
    GPSTI_FAIL_IF(desc->max_ahead > GPSTI_PREFETCH_MAX_AHEAD, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": max_ahead=%u: at most %d", desc->max_ahead, GPSTI_PREFETCH_MAX_AHEAD);
    GPSTI_FAIL_IF(desc->decode && !desc->decode_free, GPST_ERROR_ARGUMENT,
                  GPSTI_PREFETCH_CREATE ": decode_free=NULL: required with decode");
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_copy_lists(gpst_prefetch* prefetch, const gpst_prefetch_desc* desc) {
    gpsti_host* const host = &prefetch->context->host;
    const size_t n = (size_t)desc->n_paths;
    GPSTI_FAIL_IF(desc->n_schedule > SIZE_MAX / 2 / sizeof(uint64_t), GPST_ERROR_OVERFLOW,
                  GPSTI_PREFETCH_CREATE ": n_schedule: does not fit in memory");
    prefetch->entries = (gpsti_prefetch_entry**)gpsti_alloc(host, n * sizeof *prefetch->entries);
    prefetch->paths = (char**)gpsti_alloc(host, n * sizeof *prefetch->paths);
    if (!prefetch->entries || !prefetch->paths)
        return GPST_ERROR_MEMORY;
    for (size_t k = 0; k < n; k++) {
        const size_t bytes = strlen(desc->paths[k]) + 1;
        prefetch->paths[k] = (char*)gpsti_alloc(host, bytes);
        if (!prefetch->paths[k])
            return GPST_ERROR_MEMORY;
        memcpy(prefetch->paths[k], desc->paths[k], bytes);
    }
    if (!desc->n_schedule)
        return GPST_OK;
    prefetch->schedule = (uint64_t*)gpsti_alloc(host, (size_t)desc->n_schedule * sizeof(uint64_t));
    if (!prefetch->schedule)
        return GPST_ERROR_MEMORY;
    memcpy(prefetch->schedule, desc->schedule, (size_t)desc->n_schedule * sizeof(uint64_t));
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_build(gpst_prefetch* prefetch, const gpst_prefetch_desc* desc) {
    gpst_reader_desc reader = GPST_ZERO;
    prefetch->desc = *desc;
    if (!desc->max_bytes)
        prefetch->desc.max_bytes = GPSTI_PREFETCH_DEFAULT_BYTES;
    if (!desc->max_ahead)
        prefetch->desc.max_ahead = GPSTI_PREFETCH_DEFAULT_AHEAD;
    GPSTI_TRY(gpsti_mutex_init(&prefetch->mutex));
    prefetch->has_mutex = true;
    GPSTI_TRY(gpsti_cond_init(&prefetch->loaded));
    prefetch->has_loaded = true;
    GPSTI_TRY(gpsti_prefetch_copy_lists(prefetch, desc));
    gpsti_prefetch_policy_init(&prefetch->policy, desc->n_paths, prefetch->desc.max_ahead, prefetch->schedule,
                               desc->n_schedule);
    reader.n_in_flight = desc->n_in_flight;
    reader.kind = desc->kind;
    return gpst_reader_create(prefetch->context, &reader, &prefetch->reader);
}

GPSTI_PRIVATE void gpsti_prefetch_free(gpst_prefetch* prefetch) {
    gpsti_host* const host = &prefetch->context->host;
    gpst_reader_destroy(prefetch->reader); /* every read is over */
    while (prefetch->newest)
        gpsti_prefetch_drop(prefetch->newest);
    for (size_t k = 0; prefetch->paths && k < (size_t)prefetch->desc.n_paths && prefetch->paths[k]; k++)
        gpsti_free(host, prefetch->paths[k], strlen(prefetch->paths[k]) + 1);
    if (prefetch->paths)
        gpsti_free(host, prefetch->paths, (size_t)prefetch->desc.n_paths * sizeof *prefetch->paths);
    if (prefetch->entries)
        gpsti_free(host, prefetch->entries, (size_t)prefetch->desc.n_paths * sizeof *prefetch->entries);
    if (prefetch->schedule)
        gpsti_free(host, prefetch->schedule, (size_t)prefetch->desc.n_schedule * sizeof(uint64_t));
    if (prefetch->has_loaded)
        gpsti_cond_term(&prefetch->loaded);
    if (prefetch->has_mutex)
        gpsti_mutex_term(&prefetch->mutex);
    gpsti_free(host, prefetch, sizeof *prefetch);
}

GPST_API gpst_result gpst_prefetch_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                    const gpst_prefetch_desc* desc, gpst_prefetch** out) {
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(GPSTI_PREFETCH_CREATE, version, desc_bytes, sizeof(gpst_prefetch_desc)));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, GPSTI_PREFETCH_CREATE ": out=NULL: required");
    GPSTI_TRY(gpsti_prefetch_check(context, desc));
    gpst_prefetch* const prefetch = (gpst_prefetch*)gpsti_alloc(&context->host, sizeof *prefetch);
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
