/* core/files/reader_kinds.c -- the ways of reading: by the page cache, past it by
   pread or io_uring, and the choice between them. Owns rings and second descriptors, not the files' first. */
#include "../base/platform_internal.h"

#include "reader_internal.h"

#include <string.h>

/* ---- the second way in ----------------------------------------------------------- */

/* Why something was refused, for the report. */
GPSTI_PRIVATE void gpsti_reader_note(gpsti_reader_file* file, char* reason, size_t reason_bytes) {
    gpsti_mutex_lock(&file->ways->mutex);
    gpsti_copy_text(reason, reason_bytes, gpst_last_reason());
    gpsti_mutex_unlock(&file->ways->mutex);
}

GPSTI_PRIVATE void gpsti_reader_open_direct(gpsti_reader_file* file) {
    file->has_direct =
        !GPST_FAILED(gpsti_file_open_direct(&file->file, file->path, &file->direct, &file->rules));
    if (!file->has_direct)
        gpsti_reader_note(file, file->ways->direct_reason, sizeof file->ways->direct_reason);
}

GPSTI_PRIVATE void gpsti_reader_close_direct(gpsti_reader_file* file) {
    if (file->has_direct)
        (void)gpsti_file_close(&file->direct, file->path);
    file->has_direct = false;
}

GPSTI_PRIVATE gpst_result gpsti_reader_take_ring(gpsti_reader_ways* ways, gpsti_uring** out) {
    uint32_t k = 0;
    gpst_result result = GPST_OK;
    *out = NULL;
    gpsti_mutex_lock(&ways->mutex);
    while (k < GPSTI_READER_RINGS && (ways->rings_taken >> k & 1u))
        k++;
    if (k < GPSTI_READER_RINGS) {
        if (!ways->rings[k].open)
            result = gpsti_uring_open(&ways->rings[k]);
        if (!GPST_FAILED(result)) {
            ways->rings_taken |= (uint64_t)1 << k;
            *out = &ways->rings[k];
        }
    }
    gpsti_mutex_unlock(&ways->mutex);
    return result;
}

GPSTI_PRIVATE void gpsti_reader_give_ring(gpsti_reader_ways* ways, gpsti_uring* ring) {
    if (!ring)
        return;
    gpsti_mutex_lock(&ways->mutex);
    if (ring->broken)
        gpsti_uring_close(ring);
    ways->rings_taken &= ~((uint64_t)1 << (ring - ways->rings));
    gpsti_mutex_unlock(&ways->mutex);
}

/* ---- stretches of a read ----------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_reader_by_cache(gpsti_reader_file* file, void* data, size_t bytes,
                                                uint64_t offset_bytes, size_t* done) {
    return gpsti_file_read(&file->file, file->path, data, bytes, offset_bytes, done);
}

/* How many bytes from here on may go past the cache: whole blocks within the size the file was opened with. 0: then
   *by_cache says how many do not. */
GPSTI_PRIVATE size_t gpsti_reader_direct_stretch(const gpsti_reader_file* file, const void* data, size_t bytes,
                                                 uint64_t offset_bytes, size_t* by_cache) {
    *by_cache = bytes;
    if (!file->has_direct)
        return 0;
    const uint64_t block = file->rules.offset_align_bytes, end = file->bytes & ~(block - 1);
    const size_t head = (size_t)((0 - offset_bytes) & (block - 1));
    const bool aligned = (((uintptr_t)data + head) & (file->rules.memory_align_bytes - 1)) == 0;
    if (!aligned || bytes <= head || offset_bytes + head >= end)
        return 0;
    if (head) {
        *by_cache = head;
        return 0;
    }
    const uint64_t room = end - offset_bytes;
    return (size_t)((room < bytes ? room : bytes) & ~(block - 1));
}

GPSTI_PRIVATE gpst_result gpsti_reader_past_cache(gpsti_reader_file* file, void* data, size_t bytes,
                                                  uint64_t offset_bytes, size_t* done) {
    if (!file->ring)
        return gpsti_file_read(&file->direct, file->path, data, bytes, offset_bytes, done);
    return gpsti_uring_read(file->ring, &file->direct, file->path, data, bytes, offset_bytes, done);
}

/* What goes wrong past the cache is read again by it, whose word counts. */
GPSTI_PRIVATE gpst_result gpsti_reader_direct_read_at(gpsti_reader_file* file, void* data, size_t bytes,
                                                      uint64_t offset_bytes, size_t* done) {
    size_t by_cache = 0;
    const size_t direct = gpsti_reader_direct_stretch(file, data, bytes, offset_bytes, &by_cache);
    if (direct == 0)
        return gpsti_reader_by_cache(file, data, by_cache, offset_bytes, done);
    const gpst_result result = gpsti_reader_past_cache(file, data, direct, offset_bytes, done);
    if (!GPST_FAILED(result) && *done) {
        gpsti_a64_add(&file->ways->direct_bytes, *done);
        gpsti_a64_add(&file->ways->ring_bytes, file->ring ? *done : 0);
        return GPST_OK;
    }
    if (GPST_FAILED(result)) {
        gpsti_reader_note(file, file->ways->direct_reason, sizeof file->ways->direct_reason);
        gpsti_reader_close_direct(file);
    }
    return gpsti_reader_by_cache(file, data, direct, offset_bytes, done);
}

/* ---- io_uring ------------------------------------------------------------------------ */

GPSTI_PRIVATE void gpsti_reader_uring_open(gpsti_reader_file* file) {
    if (GPST_FAILED(gpsti_reader_take_ring(file->ways, &file->ring)))
        gpsti_reader_note(file, file->ways->ring_reason, sizeof file->ways->ring_reason);
    (void)gpsti_file_make_waiting(&file->file); /* a ring would tell that there is nothing yet, and not wait */
    gpsti_reader_open_direct(file);
}

GPSTI_PRIVATE void gpsti_reader_uring_close(gpsti_reader_file* file) {
    gpsti_reader_close_direct(file);
    gpsti_reader_give_ring(file->ways, file->ring);
}

/* Where there is nothing past the cache the ring reads by it; what is small or has no offsets needs no ring. */
GPSTI_PRIVATE gpst_result gpsti_reader_uring_read_at(gpsti_reader_file* file, void* data, size_t bytes,
                                                     uint64_t offset_bytes, size_t* done) {
    if (file->has_direct || !file->ring || offset_bytes >= file->bytes)
        return gpsti_reader_direct_read_at(file, data, bytes, offset_bytes, done);
    const uint64_t left = file->bytes - offset_bytes;
    const size_t wanted = left < bytes ? (size_t)left : bytes;
    if (!GPST_FAILED(
            gpsti_uring_read(file->ring, &file->file, file->path, data, wanted, offset_bytes, done)) &&
        *done) {
        gpsti_a64_add(&file->ways->ring_bytes, *done);
        return GPST_OK;
    }
    return gpsti_reader_by_cache(file, data, wanted, offset_bytes, done);
}

/* ---- auto ------------------------------------------------------------------------------ */

/* Half of the memory that could be had when the first large file came. */
GPSTI_PRIVATE uint64_t gpsti_reader_cache_share(gpsti_reader_ways* ways) {
    gpsti_limits limits;
    uint64_t share = gpsti_a64_load(&ways->direct_after_bytes);
    if (share == 0) {
        gpsti_limits_query(&limits);
        share = limits.ram_available_bytes / 2 + 1;
        gpsti_a64_store(&ways->direct_after_bytes, share);
    }
    return share;
}

/* A run that fits in memory leaves its files in the cache for the next one. What is read beyond that would only push
   out what was read before, so from there on what is not resident is read past the cache. */
GPSTI_PRIVATE void gpsti_reader_auto_open(gpsti_reader_file* file) {
    if (file->bytes < GPSTI_READER_LARGE_BYTES)
        return;
    gpsti_a64_add(&file->ways->large_files, 1);
    if (gpsti_a64_load(&file->ways->file_bytes) + file->bytes > gpsti_reader_cache_share(file->ways))
        gpsti_reader_open_direct(file);
}

/* The window that offset_bytes is in; told by its end, where read-ahead of what came before has not come. */
GPSTI_PRIVATE void gpsti_reader_look_at_window(gpsti_reader_file* file, uint64_t offset_bytes) {
    const uint64_t next = (offset_bytes / GPSTI_READER_LARGE_BYTES + 1) * GPSTI_READER_LARGE_BYTES;
    const uint64_t end = next < file->bytes ? next : file->bytes;
    const uint64_t sample = end - offset_bytes < GPSTI_READER_SAMPLE_BYTES ? end - offset_bytes
                                                                            : GPSTI_READER_SAMPLE_BYTES;
    file->window_end = end;
    file->window_is_cold = gpsti_file_resident_pct(&file->file, end - sample, (size_t)sample) < 50;
}

GPSTI_PRIVATE gpst_result gpsti_reader_auto_read_at(gpsti_reader_file* file, void* data, size_t bytes,
                                                    uint64_t offset_bytes, size_t* done) {
    if (!file->has_direct || offset_bytes >= file->bytes)
        return gpsti_reader_by_cache(file, data, bytes, offset_bytes, done);
    if (offset_bytes >= file->window_end)
        gpsti_reader_look_at_window(file, offset_bytes);
    const uint64_t left = file->window_end - offset_bytes;
    const size_t wanted = left < bytes ? (size_t)left : bytes;
    if (!file->window_is_cold)
        return gpsti_reader_by_cache(file, data, wanted, offset_bytes, done);
    return gpsti_reader_direct_read_at(file, data, wanted, offset_bytes, done);
}

/* ---- the kinds -------------------------------------------------------------------------- */

static const gpsti_reader_kind_i gpsti_reader_kinds[] = {
    {"pread", NULL, NULL, gpsti_reader_by_cache},
    {"auto", gpsti_reader_auto_open, gpsti_reader_close_direct, gpsti_reader_auto_read_at},
    {"direct", gpsti_reader_open_direct, gpsti_reader_close_direct, gpsti_reader_direct_read_at},
    {"uring", gpsti_reader_uring_open, gpsti_reader_uring_close, gpsti_reader_uring_read_at}};

GPSTI_INTERN const gpsti_reader_kind_i* gpsti_reader_kind_find(const char* name) {
    for (size_t k = 0; k < sizeof gpsti_reader_kinds / sizeof gpsti_reader_kinds[0]; k++)
        if (!strcmp(gpsti_reader_kinds[k].name, name))
            return &gpsti_reader_kinds[k];
    return NULL;
}

/* ---- what a reader's files share ------------------------------------------------------------ */

GPSTI_INTERN gpst_result gpsti_reader_ways_init(gpsti_reader_ways* ways) {
    memset(ways, 0, sizeof *ways);
    return gpsti_mutex_init(&ways->mutex);
}

GPSTI_INTERN void gpsti_reader_ways_term(gpsti_reader_ways* ways) {
    for (uint32_t k = 0; k < GPSTI_READER_RINGS; k++)
        gpsti_uring_close(&ways->rings[k]);
    gpsti_mutex_term(&ways->mutex);
}

GPSTI_INTERN gpst_result gpsti_reader_ways_need_ring(gpsti_reader_ways* ways) {
    gpsti_uring* ring = NULL;
    GPSTI_TRY(gpsti_reader_take_ring(ways, &ring));
    gpsti_reader_give_ring(ways, ring);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_reader_tell_direct(gpsti_reader_ways* ways, const char* kind, char* out,
                                            size_t out_bytes) {
    const uint64_t share = gpsti_a64_load(&ways->direct_after_bytes);
    if (!strcmp(kind, "pread"))
        gpsti_copy_text(out, out_bytes, "pread was asked for");
    else if (ways->direct_reason[0])
        gpsti_copy_text(out, out_bytes, ways->direct_reason);
    else if (strcmp(kind, "auto") != 0)
        gpsti_copy_text(out, out_bytes, "nothing read was a whole aligned block");
    else if (gpsti_a64_load(&ways->large_files) == 0)
        gpsti_copy_text(out, out_bytes, "no file of 8 MiB or more");
    else if (gpsti_a64_load(&ways->file_bytes) <= share)
        gpsti_format(out, out_bytes, "what is read fits in memory (%llu MiB left to the page cache)",
                     (unsigned long long)(share >> 20));
    else
        gpsti_copy_text(out, out_bytes, "what was read was resident");
}

GPSTI_INTERN void gpsti_reader_ways_tell(gpsti_reader_ways* ways, const char* kind, gpst_reader_info* out) {
    const uint64_t direct_bytes = gpsti_a64_load(&ways->direct_bytes);
    const bool by_ring = gpsti_a64_load(&ways->ring_bytes) > 0;
    char direct[160] = "", ring[160] = "";
    out->direct_bytes = direct_bytes;
    if (direct_bytes && out->bytes)
        gpsti_format(out->path, sizeof out->path, "%s, %u %% direct", by_ring ? "io_uring" : "pread",
                     (unsigned)(direct_bytes >= out->bytes ? 100 : direct_bytes * 100 / out->bytes));
    else
        gpsti_format(out->path, sizeof out->path, "%s, buffered", by_ring ? "io_uring" : "pread");
    gpsti_mutex_lock(&ways->mutex);
    if (!direct_bytes)
        gpsti_reader_tell_direct(ways, kind, direct, sizeof direct);
    if (!by_ring)
        gpsti_copy_text(ring, sizeof ring, ways->ring_reason[0] ? ways->ring_reason
                                           : strcmp(kind, "uring") ? "only when asked for: GPUSTAGE_IO=uring"
                                                                   : "nothing was read by it");
    gpsti_mutex_unlock(&ways->mutex);
    gpsti_format(out->why_not, sizeof out->why_not, "%s%.120s%s%s%.100s", direct[0] ? "direct: " : "", direct,
                 direct[0] && ring[0] ? "; " : "", ring[0] ? "io_uring: " : "", ring);
}
