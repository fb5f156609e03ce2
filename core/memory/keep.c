/* core/memory/keep.c -- memory between two pipelines of a context. Owns it from free to alloc; what is in use is the
   pipelines', and making more the devices'. */
#include "../base/platform_internal.h"

#include "keep_internal.h"

#include <string.h>

GPSTI_PRIVATE void gpsti_kept_free(gpsti_kept* kept, bool on_device) {
    if (on_device) {
        kept->device->i->memory_free(kept->device, kept->memory.ptr, kept->memory.bytes);
        return;
    }
    GPSTI_UNPOISON(kept->memory.ptr, kept->memory.bytes);
    kept->device->i->host_free(kept->device, &kept->memory);
}

/* ---- one kind; locked ------------------------------------------------------------------- */

GPSTI_PRIVATE gpsti_kept gpsti_shelf_take_out(gpsti_shelf* shelf, uint32_t index) {
    const gpsti_kept out = shelf->kept[index];
    shelf->bytes -= out.memory.bytes;
    shelf->n--;
    memmove(&shelf->kept[index], &shelf->kept[index + 1], (shelf->n - index) * sizeof out);
    return out;
}

/* What was given back last is the likeliest to be in a cache. */
GPSTI_PRIVATE bool gpsti_shelf_find(gpsti_shelf* shelf, const gpsti_device* device, size_t bytes, bool want_huge,
                                    gpsti_kept* out) {
    for (uint32_t i = shelf->n; i-- > 0;) {
        const gpsti_kept* const kept = &shelf->kept[i];
        if (kept->asked_bytes == bytes && kept->device == device && kept->want_huge == want_huge) {
            *out = gpsti_shelf_take_out(shelf, i);
            return true;
        }
    }
    return false;
}

GPSTI_PRIVATE bool gpsti_shelf_is_over(const gpsti_shelf* shelf, uint64_t most_bytes, uint64_t more_bytes) {
    return shelf->bytes + more_bytes > most_bytes ||
           shelf->bytes + more_bytes + gpsti_a64_load_relaxed(shelf->in_use) > shelf->budget_bytes;
}

/* ---- free; locked, but not while the device is at it ---------------------------------------- */

GPSTI_PRIVATE void gpsti_keep_let_go(gpsti_keep* keep, const gpsti_shelf* shelf, gpsti_kept* kept) {
    keep->dropped = true;
    keep->n_freeing++;
    gpsti_mutex_unlock(&keep->mutex);
    gpsti_kept_free(kept, shelf->on_device);
    gpsti_mutex_lock(&keep->mutex);
    keep->n_freed++;
    if (--keep->n_freeing == 0)
        gpsti_cond_broadcast(&keep->freed);
}

/* The oldest first, until there is room for more_bytes, which are one buffer's. */
GPSTI_PRIVATE void gpsti_keep_make_room(gpsti_keep* keep, gpsti_shelf* shelf, uint64_t most_bytes,
                                        uint64_t more_bytes) {
    while (shelf->n > 0 && (gpsti_shelf_is_over(shelf, most_bytes, more_bytes) ||
                            (more_bytes > 0 && shelf->n == GPSTI_KEEP_MOST))) {
        gpsti_kept oldest = gpsti_shelf_take_out(shelf, 0);
        gpsti_keep_let_go(keep, shelf, &oldest);
    }
}

GPSTI_PRIVATE void gpsti_keep_put(gpsti_keep* keep, gpsti_shelf* shelf, gpsti_kept* kept) {
    const uint64_t bytes = kept->memory.bytes;
    gpsti_mutex_lock(&keep->mutex);
    const bool fits = bytes <= shelf->most_bytes && !keep->lost;
    if (fits)
        gpsti_keep_make_room(keep, shelf, shelf->most_bytes, bytes);
    if (fits && !gpsti_shelf_is_over(shelf, shelf->most_bytes, bytes)) {
        if (!shelf->on_device)
            GPSTI_POISON(kept->memory.ptr, bytes);
        shelf->bytes += bytes;
        shelf->kept[shelf->n++] = *kept;
    } else {
        gpsti_keep_let_go(keep, shelf, kept);
    }
    gpsti_mutex_unlock(&keep->mutex);
}

GPSTI_PRIVATE void gpsti_keep_empty(gpsti_keep* keep, gpsti_shelf* shelf) {
    for (uint32_t n = shelf->n; n > 0 && shelf->n > 0; n--) {
        gpsti_kept oldest = gpsti_shelf_take_out(shelf, 0);
        gpsti_keep_let_go(keep, shelf, &oldest);
    }
}

GPSTI_INTERN void gpsti_keep_clear(gpsti_keep* keep) {
    gpsti_mutex_lock(&keep->mutex);
    gpsti_keep_empty(keep, &keep->host);
    gpsti_keep_empty(keep, &keep->device);
    while (keep->n_freeing > 0) /* others' is not back before that */
        gpsti_cond_wait_until(&keep->freed, &keep->mutex, GPST_FOREVER);
    keep->dropped = false;
    keep->n_runs = 0;
    gpsti_mutex_unlock(&keep->mutex);
}

/* ---- alloc ------------------------------------------------------------------------------------ */

/* Within the budget, which what is asked for is charged to by now. How many had been freed by then. */
GPSTI_PRIVATE uint64_t gpsti_keep_make_way(gpsti_keep* keep, gpsti_shelf* shelf) {
    gpsti_mutex_lock(&keep->mutex);
    gpsti_keep_make_room(keep, shelf, UINT64_MAX, 0);
    const uint64_t n_freed = keep->n_freed;
    gpsti_mutex_unlock(&keep->mutex);
    return n_freed;
}

/* Frees all that is kept: is it worth asking again? It is if any was freed since then, by another, too, while the
   device was refusing. */
GPSTI_PRIVATE bool gpsti_keep_frees_more(gpsti_keep* keep, uint64_t n_freed_then) {
    gpsti_keep_clear(keep);
    gpsti_mutex_lock(&keep->mutex);
    const bool more = keep->n_freed != n_freed_then;
    gpsti_mutex_unlock(&keep->mutex);
    return more;
}

GPSTI_INTERN gpst_result gpsti_keep_make_host(gpsti_keep* keep, gpsti_device* device, size_t bytes, bool want_huge,
                                              gpsti_host_memory* out) {
    const uint64_t n_freed = gpsti_keep_make_way(keep, &keep->host);
    const gpst_result result = device->i->host_alloc(device, bytes, want_huge, out);
    return result == GPST_ERROR_MEMORY && gpsti_keep_frees_more(keep, n_freed)
               ? device->i->host_alloc(device, bytes, want_huge, out)
               : result;
}

GPSTI_INTERN gpst_result gpsti_keep_make_memory(gpsti_keep* keep, gpsti_device* device, size_t bytes, void** out) {
    const uint64_t n_freed = gpsti_keep_make_way(keep, &keep->device);
    const gpst_result result = device->i->memory_alloc(device, bytes, out);
    const bool lacks = result == GPST_ERROR_DEVICE_MEMORY || result == GPST_ERROR_MEMORY;
    return lacks && gpsti_keep_frees_more(keep, n_freed) ? device->i->memory_alloc(device, bytes, out) : result;
}

/* The kept one, and what it took. */
GPSTI_PRIVATE bool gpsti_keep_take(gpsti_keep* keep, gpsti_shelf* shelf, const gpsti_device* device, size_t bytes,
                                   bool want_huge, gpsti_kept* out, int64_t* known_ns) {
    gpsti_mutex_lock(&keep->mutex);
    const bool found = gpsti_shelf_find(shelf, device, bytes, want_huge, out);
    *known_ns = 0;
    if (found && shelf->made_bytes > 0)
        *known_ns = 1 + (int64_t)((double)shelf->made_ns * (double)bytes / (double)shelf->made_bytes);
    gpsti_mutex_unlock(&keep->mutex);
    return found;
}

GPSTI_PRIVATE void gpsti_keep_begin(gpsti_keep* keep, gpsti_shelf* shelf) {
    gpsti_mutex_lock(&keep->mutex);
    if (shelf->n_making++ == 0)
        shelf->making_since_ns = gpsti_now_ns();
    gpsti_mutex_unlock(&keep->mutex);
}

/* By the clock, however many are at it. made_bytes 0: what failed has no price. */
GPSTI_PRIVATE void gpsti_keep_end(gpsti_keep* keep, gpsti_shelf* shelf, size_t made_bytes) {
    gpsti_mutex_lock(&keep->mutex);
    const int64_t now_ns = gpsti_now_ns();
    shelf->made_bytes += made_bytes;
    shelf->made_ns += made_bytes > 0 ? now_ns - shelf->making_since_ns : 0;
    shelf->making_since_ns = now_ns;
    shelf->n_making--;
    gpsti_mutex_unlock(&keep->mutex);
}

GPSTI_INTERN gpst_result gpsti_keep_host_alloc(gpsti_keep* keep, gpsti_device* device, size_t bytes, bool want_huge,
                                               size_t used_bytes, gpsti_host_memory* out, int64_t* known_ns) {
    gpsti_kept kept;
    if (gpsti_keep_take(keep, &keep->host, device, bytes, want_huge, &kept, known_ns)) {
        GPSTI_UNPOISON(kept.memory.ptr, kept.memory.bytes);
        *out = kept.memory;
        return GPST_OK;
    }
    gpsti_keep_begin(keep, &keep->host);
    const gpst_result result = gpsti_keep_make_host(keep, device, bytes, want_huge, out);
    if (!GPST_FAILED(result) && !out->pinned && used_bytes > 0)
        gpsti_pages_touch(out->ptr, used_bytes, out->pages);
    gpsti_keep_end(keep, &keep->host, GPST_FAILED(result) ? 0 : bytes);
    return result;
}

GPSTI_INTERN void gpsti_keep_host_free(gpsti_keep* keep, gpsti_device* device, size_t asked_bytes, bool want_huge,
                                       gpsti_host_memory* memory) {
    gpsti_kept kept;
    kept.device = device;
    kept.asked_bytes = asked_bytes;
    kept.want_huge = want_huge;
    kept.memory = *memory;
    gpsti_keep_put(keep, &keep->host, &kept);
}

GPSTI_INTERN gpst_result gpsti_keep_memory_alloc(gpsti_keep* keep, gpsti_device* device, size_t bytes, void** out,
                                                 int64_t* known_ns) {
    gpsti_kept kept;
    if (gpsti_keep_take(keep, &keep->device, device, bytes, false, &kept, known_ns)) {
        *out = kept.memory.ptr;
        return GPST_OK;
    }
    gpsti_keep_begin(keep, &keep->device);
    const gpst_result result = gpsti_keep_make_memory(keep, device, bytes, out);
    gpsti_keep_end(keep, &keep->device, GPST_FAILED(result) ? 0 : bytes);
    return result;
}

GPSTI_INTERN void gpsti_keep_memory_free(gpsti_keep* keep, gpsti_device* device, void* ptr, size_t bytes) {
    gpsti_kept kept;
    memset(&kept, 0, sizeof kept);
    kept.device = device;
    kept.asked_bytes = kept.memory.bytes = bytes;
    kept.memory.ptr = ptr;
    gpsti_keep_put(keep, &keep->device, &kept);
}

/* ---- what it is worth ------------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_keep_count_run(gpsti_keep* keep) {
    gpsti_mutex_lock(&keep->mutex);
    const bool lost = keep->lost;
    keep->n_runs = keep->dropped ? 0 : keep->n_runs + 1;
    keep->dropped = false;
    gpsti_mutex_unlock(&keep->mutex);
    if (lost)
        gpsti_keep_clear(keep);
}

GPSTI_INTERN void gpsti_keep_note_dropped(gpsti_keep* keep) {
    gpsti_mutex_lock(&keep->mutex);
    keep->dropped = true;
    gpsti_mutex_unlock(&keep->mutex);
}

GPSTI_INTERN void gpsti_keep_lose(gpsti_keep* keep) {
    gpsti_mutex_lock(&keep->mutex);
    keep->lost = true;
    gpsti_mutex_unlock(&keep->mutex);
}

GPSTI_INTERN bool gpsti_keep_stays(gpsti_keep* keep) {
    gpsti_mutex_lock(&keep->mutex);
    const bool stays = keep->n_runs > 0 && !keep->dropped;
    gpsti_mutex_unlock(&keep->mutex);
    return stays;
}

GPSTI_INTERN int64_t gpsti_keep_share_ns(gpsti_keep* keep, int64_t price_ns) {
    gpsti_mutex_lock(&keep->mutex);
    const int64_t share_ns = price_ns / (1 + (int64_t)keep->n_runs);
    gpsti_mutex_unlock(&keep->mutex);
    return share_ns;
}

GPSTI_INTERN void gpsti_keep_query(const gpsti_keep* keep, uint64_t* host_bytes, uint64_t* device_bytes) {
    gpsti_keep* const locked = (gpsti_keep*)keep;
    gpsti_mutex_lock(&locked->mutex);
    *host_bytes = locked->host.bytes;
    *device_bytes = locked->device.bytes;
    gpsti_mutex_unlock(&locked->mutex);
}

/* ---- init / term ------------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_keep_init(gpsti_keep* keep) {
    keep->device.on_device = true;
    GPSTI_TRY(gpsti_mutex_init(&keep->mutex));
    const gpst_result result = gpsti_cond_init(&keep->freed);
    if (GPST_FAILED(result))
        gpsti_mutex_term(&keep->mutex);
    return result;
}

GPSTI_INTERN void gpsti_keep_term(gpsti_keep* keep) {
    gpsti_keep_clear(keep);
    gpsti_cond_term(&keep->freed);
    gpsti_mutex_term(&keep->mutex);
}
