/* core/files/ahead.c -- which files are brought into the page cache ahead of their
   reads, how far, and when it is not worth it. Owns their descriptors meanwhile; threads are core/io's. */
#include "../base/platform_internal.h"

#include "ahead_internal.h"
#include "io_internal.h"
#include "../base/os_direct_internal.h"

#include <string.h>

#define GPSTI_AHEAD_ENTRIES (2 * GPSTI_PREFETCH_MAX_AHEAD)
#define GPSTI_AHEAD_PIECE ((uint64_t)2 << 20) /* the most that a read which comes meanwhile has to wait for */
#define GPSTI_AHEAD_SAMPLE ((uint64_t)256 << 10) /* looked at, at both ends of a file */
#define GPSTI_AHEAD_LEAST 2                      /* files */
#define GPSTI_AHEAD_IN_TIME 32  /* files in a row that were there: one fewer will do */
#define GPSTI_AHEAD_QUICK_NS 500000 /* what comes sooner is not worth the calls and the thread that wakes for it */
#define GPSTI_AHEAD_EASY 4      /* files in a row that were there anyway, or came quickly: looks become rare */
#define GPSTI_AHEAD_RAREST 256  /* files between two looks */
#define GPSTI_AHEAD_WEIGHED 16  /* reads between two judgements of whether reading is what waits */

typedef enum gpsti_ahead_state {
    GPSTI_AHEAD_FREE = 0,
    GPSTI_AHEAD_WAITING, /* nobody has looked at the file yet */
    GPSTI_AHEAD_LOOKING,
    GPSTI_AHEAD_COLD, /* pieces of it are to be brought */
    GPSTI_AHEAD_OVER  /* nothing is to be done for it: resident, whole, no room, or it failed */
} gpsti_ahead_state;

typedef struct gpsti_ahead_entry {
    gpsti_ahead_state state;
    const char* path;
    uint64_t index, order;
    gpsti_file file; /* open while has_file */
    bool has_file;
    bool asked; /* its item is on its way */
    bool gone;  /* freed when the last thread has left it */
    uint32_t n_threads;
    uint64_t bytes, next_bytes, done_bytes; /* of the file; handed to threads; brought */
    int64_t took_ns;                        /* to bring them */
    bool begun;                             /* counted in fetched */
    bool failed;
} gpsti_ahead_entry;

struct gpsti_ahead {
    gpst_context* context;
    const char* const* paths;
    uint64_t n_paths;
    bool in_order, modelled; /* modelled: the disk is a simulated one, and no file is resident on it */
    uint32_t* table;         /* foreseen: indices by hash of the path, plus 1 */
    uint64_t table_mask;
    gpsti_mutex mutex; /* over all below */
    bool has_mutex;
    bool paused;
    char stopped[64]; /* why, for good */
    gpsti_prefetch_policy policy;
    gpsti_ahead_entry entries[GPSTI_AHEAD_ENTRIES];
    uint32_t n_entries; /* not free */
    uint64_t next_order;
    uint64_t held_bytes, most_bytes; /* brought or on their way, and not read yet */
    uint32_t window, n_in_time;
    uint32_t n_easy, rare, skip; /* in a row; files between two looks; files until the next */
    bool quick;                  /* the last of them was cold, and came quickly */
    uint32_t n_weighed, n_starving;
    bool not_waiting;
    gpst_read_ahead stats;
};

/* ---- paths to indices --------------------------------------------------------------- */

GPSTI_PRIVATE uint64_t gpsti_ahead_hash(const char* path) {
    const uint64_t hash = gpsti_hash(GPSTI_HASH_START, path, strlen(path));
    return hash ^ hash >> 32;
}

/* Of a path that is there twice the first is found. */
GPSTI_PRIVATE gpst_result gpsti_ahead_fill_table(gpsti_ahead* ahead) {
    uint64_t n = 2;
    while (n < ahead->n_paths * 2)
        n *= 2;
    ahead->table = (uint32_t*)gpsti_alloc(&ahead->context->host, (size_t)n * sizeof *ahead->table);
    if (!ahead->table)
        return GPST_ERROR_MEMORY;
    ahead->table_mask = n - 1;
    for (uint64_t k = 0; k < ahead->n_paths; k++) {
        uint64_t at = gpsti_ahead_hash(ahead->paths[k]) & ahead->table_mask;
        while (ahead->table[at])
            at = (at + 1) & ahead->table_mask;
        ahead->table[at] = (uint32_t)k + 1;
    }
    return GPST_OK;
}

/* n_paths: not in the list. */
GPSTI_PRIVATE uint64_t gpsti_ahead_find_path(const gpsti_ahead* ahead, const char* path, uint64_t n_asked) {
    if (ahead->in_order)
        return n_asked < ahead->n_paths && !strcmp(ahead->paths[n_asked], path) ? n_asked : ahead->n_paths;
    for (uint64_t at = gpsti_ahead_hash(path) & ahead->table_mask; ahead->table[at];
         at = (at + 1) & ahead->table_mask)
        if (!strcmp(ahead->paths[ahead->table[at] - 1], path))
            return ahead->table[at] - 1;
    return ahead->n_paths;
}

/* ---- entries: all with the mutex held --------------------------------------------------- */

GPSTI_PRIVATE void gpsti_ahead_free_entry(gpsti_ahead* ahead, gpsti_ahead_entry* entry) {
    entry->gone = true;
    if (entry->n_threads > 0)
        return;
    ahead->held_bytes -= entry->begun ? entry->bytes : 0;
    if (entry->has_file)
        (void)gpsti_file_close(&entry->file, entry->path);
    memset(entry, 0, sizeof *entry);
    ahead->n_entries--;
}

/* It will not be read, as far as one knows. */
GPSTI_PRIVATE void gpsti_ahead_drop(gpsti_ahead* ahead, gpsti_ahead_entry* entry) {
    if (entry->begun) {
        ahead->stats.wasted++;
        gpsti_prefetch_policy_judge(&ahead->policy, false);
    }
    gpsti_ahead_free_entry(ahead, entry);
}

GPSTI_PRIVATE gpsti_ahead_entry* gpsti_ahead_find(gpsti_ahead* ahead, const char* path) {
    for (uint32_t k = 0; ahead->n_entries > 0 && k < GPSTI_AHEAD_ENTRIES; k++)
        if (ahead->entries[k].state != GPSTI_AHEAD_FREE && !ahead->entries[k].gone &&
            !strcmp(ahead->entries[k].path, path))
            return &ahead->entries[k];
    return NULL;
}

/* Items that were asked for and dropped never read their files: the oldest of them makes room. */
GPSTI_PRIVATE gpsti_ahead_entry* gpsti_ahead_find_room(gpsti_ahead* ahead) {
    gpsti_ahead_entry* oldest = NULL;
    for (uint32_t k = 0; k < GPSTI_AHEAD_ENTRIES; k++) {
        gpsti_ahead_entry* const entry = &ahead->entries[k];
        if (entry->state == GPSTI_AHEAD_FREE)
            return entry;
        if (entry->asked && entry->n_threads == 0 && (!oldest || entry->order < oldest->order))
            oldest = entry;
    }
    if (oldest)
        gpsti_ahead_free_entry(ahead, oldest);
    return oldest;
}

/* ---- how far ---------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_ahead_was_late(gpsti_ahead* ahead) {
    ahead->stats.late++;
    ahead->n_in_time = 0;
    ahead->window = ahead->window * 2 < GPSTI_PREFETCH_MAX_AHEAD ? ahead->window * 2 : GPSTI_PREFETCH_MAX_AHEAD;
    if (ahead->window > ahead->stats.most_window)
        ahead->stats.most_window = ahead->window;
}

GPSTI_PRIVATE void gpsti_ahead_was_in_time(gpsti_ahead* ahead) {
    ahead->stats.used++;
    if (++ahead->n_in_time < GPSTI_AHEAD_IN_TIME)
        return;
    ahead->n_in_time = 0;
    ahead->window -= ahead->window > GPSTI_AHEAD_LEAST ? 1 : 0;
}

/* A file that needed no foresight. */
GPSTI_PRIVATE void gpsti_ahead_was_easy(gpsti_ahead* ahead, bool quick) {
    ahead->quick = quick;
    if (++ahead->n_easy >= GPSTI_AHEAD_EASY) {
        ahead->rare = ahead->rare * 2 < GPSTI_AHEAD_RAREST ? ahead->rare * 2 : GPSTI_AHEAD_RAREST;
        ahead->skip = ahead->rare;
    }
}

/* Is this the moment to look at files again? */
GPSTI_PRIVATE bool gpsti_ahead_is_on(gpsti_ahead* ahead) {
    if (ahead->stopped[0] || ahead->not_waiting)
        return false;
    if (ahead->n_easy < GPSTI_AHEAD_EASY)
        return true;
    if (ahead->skip > 0 && --ahead->skip > 0)
        return false;
    ahead->skip = ahead->rare;
    return true;
}

GPSTI_INTERN void gpsti_ahead_weigh(gpsti_ahead* ahead, bool starving) {
    gpsti_mutex_lock(&ahead->mutex);
    ahead->n_starving += starving ? 1 : 0;
    if (++ahead->n_weighed == GPSTI_AHEAD_WEIGHED) {
        ahead->not_waiting = ahead->n_starving < GPSTI_AHEAD_WEIGHED / 4;
        ahead->n_weighed = ahead->n_starving = 0;
    }
    gpsti_mutex_unlock(&ahead->mutex);
}

/* ---- what is asked for -------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_ahead_wants(const uint64_t* want, uint32_t n, uint64_t index) {
    for (uint32_t k = 0; k < n; k++)
        if (want[k] == index)
            return true;
    return false;
}

GPSTI_PRIVATE bool gpsti_ahead_add(gpsti_ahead* ahead, uint64_t index) {
    gpsti_ahead_entry* const there = gpsti_ahead_find(ahead, ahead->paths[index]);
    gpsti_ahead_entry* const entry = there ? NULL : gpsti_ahead_find_room(ahead);
    if (!entry)
        return false;
    entry->state = GPSTI_AHEAD_WAITING;
    entry->path = ahead->paths[index];
    entry->index = index;
    entry->order = ahead->next_order++;
    ahead->n_entries++;
    return true;
}

/* Passed over in the list, or foresight has changed its mind: what was brought is given up. */
GPSTI_PRIVATE void gpsti_ahead_drop_unwanted(gpsti_ahead* ahead, const uint64_t* want, uint32_t n) {
    for (uint32_t k = 0; ahead->n_entries > 0 && k < GPSTI_AHEAD_ENTRIES; k++) {
        gpsti_ahead_entry* const entry = &ahead->entries[k];
        const bool wanted = ahead->in_order ? entry->index >= ahead->policy.position
                                            : gpsti_ahead_wants(want, n, entry->index);
        if (entry->state != GPSTI_AHEAD_FREE && !entry->gone && !entry->asked && !wanted)
            gpsti_ahead_drop(ahead, entry);
    }
}

GPSTI_PRIVATE bool gpsti_ahead_go(gpsti_ahead* ahead) {
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    bool more = false;
    const bool on = gpsti_ahead_is_on(ahead);
    if (!on && ahead->n_entries == 0)
        return false;
    if (ahead->in_order)
        ahead->policy.max_ahead = ahead->window;
    uint32_t n = gpsti_prefetch_policy_want(&ahead->policy, want);
    gpsti_ahead_drop_unwanted(ahead, want, n);
    if (!on)
        return false;
    n = n < ahead->window ? n : ahead->window;
    for (uint32_t k = 0; k < (ahead->n_easy >= GPSTI_AHEAD_EASY && n > 1 ? 1 : n); k++)
        more = gpsti_ahead_add(ahead, want[k]) || more;
    return more;
}

GPSTI_INTERN bool gpsti_ahead_note(gpsti_ahead* ahead, const char* path, uint64_t n_asked) {
    const uint64_t index = gpsti_ahead_find_path(ahead, path, n_asked);
    if (index == ahead->n_paths)
        return false;
    gpsti_mutex_lock(&ahead->mutex);
    ahead->paused = false;
    gpsti_ahead_entry* const entry = gpsti_ahead_find(ahead, path);
    if (entry)
        entry->asked = true;
    gpsti_prefetch_policy_note(&ahead->policy, index);
    const bool more = gpsti_ahead_go(ahead);
    gpsti_mutex_unlock(&ahead->mutex);
    return more;
}

GPSTI_INTERN uint64_t gpsti_ahead_take(gpsti_ahead* ahead, const char* path) {
    uint64_t done_bytes = 0;
    gpsti_mutex_lock(&ahead->mutex);
    gpsti_ahead_entry* const entry = gpsti_ahead_find(ahead, path);
    if (entry) {
        done_bytes = entry->done_bytes;
        if (entry->begun && !entry->failed) {
            if (done_bytes == entry->bytes)
                gpsti_ahead_was_in_time(ahead);
            else
                gpsti_ahead_was_late(ahead);
            gpsti_prefetch_policy_judge(&ahead->policy, true);
        }
        gpsti_ahead_free_entry(ahead, entry);
    }
    gpsti_mutex_unlock(&ahead->mutex);
    return done_bytes;
}

/* ---- bringing: without the mutex while a file is touched ---------------------------------------- */

/* Opens a regular file that is not in memory. A FIFO must not even be opened: its writer would notice. */
GPSTI_PRIVATE bool gpsti_ahead_look(const gpsti_ahead* ahead, gpsti_ahead_entry* entry, bool* failed) {
    gpsti_file_info info;
    memset(&info, 0, sizeof info);
    *failed = GPST_FAILED(gpsti_path_query(entry->path, &info));
    if (*failed || !info.is_regular || info.bytes == 0)
        return false;
    *failed = GPST_FAILED(gpsti_file_open_read(entry->path, &entry->file));
    if (*failed)
        return false;
    entry->has_file = true;
    entry->bytes = info.bytes;
    const uint64_t sample = info.bytes < GPSTI_AHEAD_SAMPLE ? info.bytes : GPSTI_AHEAD_SAMPLE;
    return ahead->modelled || gpsti_file_resident_pct(&entry->file, 0, (size_t)sample) < 50 ||
           gpsti_file_resident_pct(&entry->file, info.bytes - sample, (size_t)sample) < 50;
}

/* What is held for items and what waits for them share the context's budget. Locked. */
GPSTI_PRIVATE bool gpsti_ahead_has_room(gpsti_ahead* ahead, uint64_t bytes) {
    const uint64_t items_bytes = gpsti_a64_load(&ahead->context->host_bytes);
    const uint64_t budget = ahead->context->info.max_host_bytes;
    const uint64_t left = items_bytes < budget ? budget - items_bytes : 0;
    const uint64_t most = ahead->most_bytes < left ? ahead->most_bytes : left;
    return bytes <= most && ahead->held_bytes <= most - bytes;
}

/* The file has been looked at. Locked. */
GPSTI_PRIVATE void gpsti_ahead_settle(gpsti_ahead* ahead, gpsti_ahead_entry* entry, bool cold, bool failed) {
    entry->state = GPSTI_AHEAD_OVER;
    if (entry->gone)
        return;
    ahead->stats.failed += failed ? 1 : 0;
    if (!failed && !cold) {
        ahead->stats.resident++;
        gpsti_ahead_was_easy(ahead, false);
    }
    if (!cold)
        return;
    if (!gpsti_ahead_has_room(ahead, entry->bytes))
        return;
    entry->state = GPSTI_AHEAD_COLD;
    entry->begun = true;
    ahead->held_bytes += entry->bytes;
    ahead->stats.fetched++;
}

/* The first, in the order in which they will be asked for, that has something to be done. Locked. */
GPSTI_PRIVATE gpsti_ahead_entry* gpsti_ahead_next(gpsti_ahead* ahead) {
    gpsti_ahead_entry* first = NULL;
    for (uint32_t k = 0; k < GPSTI_AHEAD_ENTRIES && !ahead->paused; k++) {
        gpsti_ahead_entry* const entry = &ahead->entries[k];
        const bool work = entry->state == GPSTI_AHEAD_WAITING ||
                          (entry->state == GPSTI_AHEAD_COLD && entry->next_bytes < entry->bytes);
        if (work && !entry->gone && (!first || entry->order < first->order))
            first = entry;
    }
    return first;
}

GPSTI_PRIVATE bool gpsti_ahead_bring(const gpsti_ahead* ahead, const gpsti_ahead_entry* entry, uint64_t from,
                                     uint64_t bytes) {
    const uint64_t left = entry->bytes - from; /* the next piece is asked for with this one: the disk does not pause */
    if (!ahead->modelled)
        return !GPST_FAILED(
            gpsti_file_fetch(&entry->file, entry->path, from, left < 2 * bytes ? left : 2 * bytes, bytes));
    (void)gpsti_io_wait_disk(ahead->context, false, (size_t)bytes, gpsti_now_ns());
    return true;
}

/* Locked. */
GPSTI_PRIVATE void gpsti_ahead_is_whole(gpsti_ahead* ahead, gpsti_ahead_entry* entry) {
    entry->state = GPSTI_AHEAD_OVER;
    if (entry->took_ns < GPSTI_AHEAD_QUICK_NS) {
        gpsti_ahead_was_easy(ahead, true);
    } else {
        ahead->n_easy = 0;
        ahead->rare = GPSTI_AHEAD_EASY;
    }
}

/* Locked, but not while the file is touched. */
GPSTI_PRIVATE void gpsti_ahead_run_piece(gpsti_ahead* ahead, gpsti_ahead_entry* entry) {
    const uint64_t from = entry->next_bytes, left = entry->bytes - from;
    const uint64_t bytes = left < GPSTI_AHEAD_PIECE ? left : GPSTI_AHEAD_PIECE;
    entry->next_bytes += bytes;
    gpsti_mutex_unlock(&ahead->mutex);
    const int64_t start_ns = gpsti_now_ns();
    const bool ok = gpsti_ahead_bring(ahead, entry, from, bytes);
    const int64_t took_ns = gpsti_now_ns() - start_ns;
    gpsti_mutex_lock(&ahead->mutex);
    entry->took_ns += took_ns;
    if (ok) {
        entry->done_bytes += bytes;
        ahead->stats.bytes += bytes;
    } else {
        ahead->stats.failed += entry->failed ? 0 : 1;
        entry->failed = true;
    }
    if (!ok)
        entry->state = GPSTI_AHEAD_OVER;
    else if (entry->done_bytes == entry->bytes)
        gpsti_ahead_is_whole(ahead, entry);
}

/* A failure here is nobody's: the reason that the thread had stays. */
GPSTI_INTERN bool gpsti_ahead_run(gpsti_ahead* ahead) {
    char before[GPSTI_REASON_BYTES];
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    gpsti_mutex_lock(&ahead->mutex);
    gpsti_ahead_entry* const entry = gpsti_ahead_next(ahead);
    if (entry) {
        entry->n_threads++;
        if (entry->state == GPSTI_AHEAD_WAITING) {
            bool failed = false;
            entry->state = GPSTI_AHEAD_LOOKING;
            gpsti_mutex_unlock(&ahead->mutex);
            const bool cold = gpsti_ahead_look(ahead, entry, &failed);
            gpsti_mutex_lock(&ahead->mutex);
            gpsti_ahead_settle(ahead, entry, cold, failed);
        } else {
            gpsti_ahead_run_piece(ahead, entry);
        }
        if (--entry->n_threads == 0 && entry->gone)
            gpsti_ahead_free_entry(ahead, entry);
    }
    gpsti_mutex_unlock(&ahead->mutex);
    (void)gpsti_fail(GPST_OK, "%s", before);
    return entry != NULL;
}

/* ---- pauses ------------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_ahead_pause(gpsti_ahead* ahead, bool undo) {
    gpsti_mutex_lock(&ahead->mutex);
    ahead->paused = true;
    for (uint32_t k = 0; undo && k < GPSTI_AHEAD_ENTRIES; k++) {
        gpsti_ahead_entry* const entry = &ahead->entries[k];
        if (entry->state == GPSTI_AHEAD_FREE || entry->gone)
            continue;
        if (entry->begun && !ahead->modelled)
            gpsti_file_forget(&entry->file);
        gpsti_ahead_drop(ahead, entry);
    }
    gpsti_mutex_unlock(&ahead->mutex);
}

GPSTI_INTERN void gpsti_ahead_stop(gpsti_ahead* ahead, const char* why) {
    gpsti_mutex_lock(&ahead->mutex);
    ahead->paused = true;
    gpsti_copy_text(ahead->stopped, sizeof ahead->stopped, why);
    gpsti_mutex_unlock(&ahead->mutex);
}

GPSTI_INTERN void gpsti_ahead_query(gpsti_ahead* ahead, gpst_read_ahead* out) {
    gpsti_mutex_lock(&ahead->mutex);
    *out = ahead->stats;
    out->window = ahead->window;
    if (ahead->stopped[0])
        gpsti_format(out->state, sizeof out->state, "off: %.50s", ahead->stopped);
    else if (ahead->not_waiting)
        gpsti_copy_text(out->state, sizeof out->state, "off: reading is not what waits");
    else if (ahead->n_easy >= GPSTI_AHEAD_EASY)
        gpsti_copy_text(out->state, sizeof out->state,
                        ahead->quick ? "off: files come quickly" : "off: the files are resident");
    else
        gpsti_prefetch_policy_name(&ahead->policy, out->state, sizeof out->state);
    gpsti_mutex_unlock(&ahead->mutex);
}

/* ---- create / destroy ------------------------------------------------------------------------------ */

/* 64 bytes on the modelled disk's clock: nothing. */
GPSTI_PRIVATE bool gpsti_ahead_disk_is_modelled(const gpst_context* context) {
    gpsti_device* const device = context->device;
    const int64_t now_ns = gpsti_now_ns();
    return device->i->disk_end && device->i->disk_end(device, false, 64, now_ns) > now_ns;
}

GPSTI_INTERN gpst_result gpsti_ahead_create(gpst_context* context, const char* const* paths, uint64_t n_paths,
                                            bool in_order, gpsti_ahead** out) {
    gpsti_ahead* const ahead = (gpsti_ahead*)gpsti_alloc(&context->host, sizeof *ahead);
    if (!ahead)
        return GPST_ERROR_MEMORY;
    ahead->context = context;
    ahead->paths = paths;
    ahead->n_paths = n_paths;
    ahead->in_order = in_order;
    ahead->modelled = gpsti_ahead_disk_is_modelled(context);
    ahead->most_bytes = context->info.max_host_bytes / 4;
    ahead->window = ahead->stats.most_window = GPSTI_AHEAD_LEAST;
    ahead->rare = GPSTI_AHEAD_EASY;
    gpsti_prefetch_policy_init(&ahead->policy, n_paths, GPSTI_PREFETCH_MAX_AHEAD, NULL, in_order ? n_paths : 0);
    gpst_result result = gpsti_mutex_init(&ahead->mutex);
    ahead->has_mutex = !GPST_FAILED(result);
    if (!GPST_FAILED(result) && !in_order)
        result = gpsti_ahead_fill_table(ahead);
    if (GPST_FAILED(result))
        gpsti_ahead_destroy(ahead);
    else
        *out = ahead;
    return result;
}

GPSTI_INTERN void gpsti_ahead_destroy(gpsti_ahead* ahead) {
    if (!ahead)
        return;
    for (uint32_t k = 0; k < GPSTI_AHEAD_ENTRIES; k++)
        if (ahead->entries[k].state != GPSTI_AHEAD_FREE)
            gpsti_ahead_free_entry(ahead, &ahead->entries[k]);
    if (ahead->table)
        gpsti_free(&ahead->context->host, ahead->table, (size_t)(ahead->table_mask + 1) * sizeof *ahead->table);
    if (ahead->has_mutex)
        gpsti_mutex_term(&ahead->mutex);
    gpsti_free(&ahead->context->host, ahead, sizeof *ahead);
}
