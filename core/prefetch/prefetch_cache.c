/* core/prefetch/prefetch_cache.c -- which frames are in memory, and which go when there is no room for another. Owns
   the list of entries. All of it runs with the prefetcher's mutex held. */
#include "../base/platform_internal.h"

#include "../device/context_internal.h"
#include "prefetch_internal.h"

/* ---- entries ---------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_prefetch_unlink(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    *(entry->newer ? &entry->newer->older : &prefetch->newest) = entry->older;
    *(entry->older ? &entry->older->newer : &prefetch->oldest) = entry->newer;
    entry->newer = entry->older = NULL;
}

GPSTI_PRIVATE void gpsti_prefetch_link(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    entry->older = prefetch->newest;
    *(prefetch->newest ? &prefetch->newest->newer : &prefetch->oldest) = entry;
    prefetch->newest = entry;
}

GPSTI_INTERN gpsti_prefetch_entry* gpsti_prefetch_add(gpst_prefetch* prefetch, uint64_t index) {
    gpsti_prefetch_entry* const entry =
        (gpsti_prefetch_entry*)gpsti_alloc(&prefetch->context->host, sizeof *entry);
    if (!entry)
        return NULL;
    entry->prefetch = prefetch;
    entry->frame.index = index;
    entry->frame.camera = gpsti_prefetch_camera(prefetch, index);
    entry->frame.path = entry->read.path = prefetch->paths[index];
    entry->frame.note = entry->note;
    entry->loading = true;
    prefetch->entries[index] = entry;
    gpsti_prefetch_link(entry);
    return entry;
}

GPSTI_INTERN void gpsti_prefetch_touch(gpsti_prefetch_entry* entry) {
    gpsti_prefetch_unlink(entry);
    gpsti_prefetch_link(entry);
}

GPSTI_INTERN void gpsti_prefetch_empty(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    gpst_pool_release(prefetch->pool, &entry->file);
    gpst_pool_release(prefetch->pool, &entry->pixels);
    entry->read.data = NULL;
    entry->read.capacity_bytes = 0;
    prefetch->info.bytes -= entry->claimed_bytes;
    entry->claimed_bytes = 0;
}

GPSTI_INTERN void gpsti_prefetch_drop(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    if (entry->fetched) {
        prefetch->info.wasted++;
        gpsti_prefetch_policy_judge(&prefetch->policy, false);
    }
    gpsti_prefetch_empty(entry);
    gpsti_prefetch_unlink(entry);
    prefetch->entries[entry->frame.index] = NULL;
    gpsti_free(&prefetch->context->host, entry, sizeof *entry);
}

/* ---- room ------------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_prefetch_fits(const gpst_prefetch* prefetch, uint64_t bytes) {
    const uint64_t most = prefetch->desc.max_bytes, have = prefetch->info.bytes;
    return have <= most && bytes <= most - have;
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
        if (!gpsti_prefetch_may_go(entry, true))
            continue;
        const uint32_t place = gpsti_prefetch_place(want, n, entry->frame.index);
        if (place < n_kept || (last && place <= last_place))
            continue;
        last = entry;
        last_place = place;
    }
    return last;
}

GPSTI_INTERN uint32_t gpsti_prefetch_n_kept(const gpsti_prefetch_entry* entry) {
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    if (entry->n_holders > 0) /* it is asked for now */
        return 0;
    const uint32_t n = gpsti_prefetch_policy_want(&entry->prefetch->policy, want);
    return gpsti_prefetch_place(want, n, entry->frame.index) + 1;
}

GPSTI_INTERN bool gpsti_prefetch_drop_one(gpst_prefetch* prefetch, uint32_t n_kept) {
    gpsti_prefetch_entry* entry = prefetch->oldest;
    while (entry && !gpsti_prefetch_may_go(entry, false))
        entry = entry->newer;
    if (!entry)
        entry = gpsti_prefetch_last_due(prefetch, n_kept);
    if (entry)
        gpsti_prefetch_drop(entry);
    return entry != NULL;
}

GPSTI_INTERN bool gpsti_prefetch_make_room(gpst_prefetch* prefetch, uint64_t bytes, uint32_t n_kept) {
    while (!gpsti_prefetch_fits(prefetch, bytes))
        if (!gpsti_prefetch_drop_one(prefetch, n_kept))
            return false;
    return true;
}

GPSTI_INTERN bool gpsti_prefetch_claim(gpsti_prefetch_entry* entry, uint64_t bytes) {
    gpst_prefetch* const prefetch = entry->prefetch;
    gpst_prefetch_info* const info = &prefetch->info;
    const uint64_t more = bytes > entry->claimed_bytes ? bytes - entry->claimed_bytes : 0;
    const bool fits = more == 0 || gpsti_prefetch_make_room(prefetch, more, gpsti_prefetch_n_kept(entry));
    if (!fits && entry->n_holders == 0) {
        entry->refused = true;
        entry->refused_at = info->asked;
        return false;
    }
    info->bytes += bytes - entry->claimed_bytes;
    info->most_bytes = info->bytes > info->most_bytes ? info->bytes : info->most_bytes;
    entry->claimed_bytes = bytes;
    return true;
}
