/* core/files/reader.c -- one read from open to close, and the reader's public face.
   Owns open files while they are read; the threads are core/files/io.c's, the ways of reading
      core/files/reader_kinds.c's. */
#include "../base/platform_internal.h"

#include "io_internal.h"
#include "reader_internal.h"

#include <stdlib.h>
#include <string.h>

#define GPSTI_READER_DEFAULT_IN_FLIGHT 4
#define GPSTI_READER_WAIT_NS ((int64_t)20 * 1000000) /* between two looks at whether the read is cancelled */
#define GPSTI_READER_SURE 8 /* reads in a row that only computed: the next one will, too */
#define GPSTI_READER_GROW_BYTES 65536 /* a pipe's capacity: the least to grow by when the size is not known */

struct gpst_reader {
    gpst_context* context;
    const gpsti_reader_kind_i* kind;
    gpsti_io io;
    gpsti_reader_ways ways;
    const gpsti_a32* cancel; /* its pipeline's; NULL = none */
    /* Where the system does not say what is in memory: 1; and then, reads in a row that computed for half of their time
       at least. */
    gpsti_a32 is_blind, n_computed;
};

/* ---- one read ---------------------------------------------------------------- */

/* What ends a read that waits for its bytes: another number of cancels than when it began, or a flag. Both may be
   missing. */
typedef struct gpsti_reader_halt {
    const gpsti_a32* cancels;
    uint32_t n_cancels;
    const gpsti_a32* flag;
} gpsti_reader_halt;

typedef struct gpsti_reader_job {
    const gpsti_reader_kind_i* kind;
    gpst_read* read;
    gpsti_reader_file file;
    const gpsti_reader_halt* halt;
    bool in_order; /* a FIFO, a terminal, a socket: no offsets */
} gpsti_reader_job;

GPSTI_PRIVATE bool gpsti_reader_is_cancelled(const gpsti_reader_halt* halt) {
    return (halt->cancels && gpsti_a32_load(halt->cancels) != halt->n_cancels) ||
           (halt->flag && gpsti_a32_load(halt->flag) != 0);
}

/* A failure keeps the callback's own reason where it gave one; a success leaves this thread's as it was. */
GPSTI_PRIVATE gpst_result gpsti_reader_call_reserve(gpst_read* read, size_t needed_bytes) {
    char before[GPSTI_REASON_BYTES];
    gpsti_copy_text(before, sizeof(before), gpst_last_reason());
    gpst_clear_reason();
    const gpst_result result = read->reserve(read, needed_bytes, read->bytes);
    if (!GPST_FAILED(result))
        return gpsti_fail(GPST_OK, "%s", before);
    if (gpst_last_reason()[0])
        return result;
    return gpsti_fail(result, "read \"%s\": reserve: no room for %zu bytes", read->path, needed_bytes);
}

GPSTI_PRIVATE gpst_result gpsti_reader_reserve(gpst_read* read, uint64_t needed_bytes) {
    if (needed_bytes <= read->capacity_bytes)
        return GPST_OK;
    GPSTI_FAIL_IF(needed_bytes > SIZE_MAX / 2, GPST_ERROR_OVERFLOW,
                  "read \"%s\": %llu bytes: do not fit in memory", read->path,
                  (unsigned long long)needed_bytes);
    GPSTI_FAIL_IF(!read->reserve, GPST_ERROR_OVERFLOW,
                  "read \"%s\": capacity_bytes=%zu: the file has more, and reserve is NULL", read->path,
                  read->capacity_bytes);
    GPSTI_TRY(gpsti_reader_call_reserve(read, (size_t)needed_bytes));
    GPSTI_FAIL_IF(!read->data || read->capacity_bytes < needed_bytes, GPST_ERROR_CALLBACK,
                  "read \"%s\": reserve: capacity_bytes=%zu: must be at least %llu", read->path,
                  read->capacity_bytes, (unsigned long long)needed_bytes);
    return GPST_OK;
}

/* Nobody knows when a FIFO, a terminal or a device has its next bytes, or whether it ever will. */
GPSTI_PRIVATE gpst_result gpsti_reader_wait_and_read(gpsti_reader_job* job, void* data, size_t bytes, size_t* done) {
    const gpst_read* const read = job->read;
    for (;;) {
        GPSTI_FAIL_IF(gpsti_reader_is_cancelled(job->halt), GPST_ERROR_CANCELLED,
                      "read \"%s\": cancelled after %zu bytes", read->path, read->bytes);
        const gpst_result result = gpsti_file_read_next(&job->file.file, read->path, data, bytes, read->bytes > 0,
                                                        GPSTI_READER_WAIT_NS, done);
        if (result != GPST_ERROR_WOULD_BLOCK)
            return result;
    }
}

/* One call of the kind, at the next byte wanted. */
GPSTI_PRIVATE gpst_result gpsti_reader_call(gpsti_reader_job* job, void* data, size_t bytes, size_t* done) {
    gpst_read* read = job->read;
    *done = 0;
    GPSTI_TRY(job->in_order ? gpsti_reader_wait_and_read(job, data, bytes, done)
                            : job->kind->read_at(&job->file, data, bytes, read->offset_bytes + read->bytes, done));
    read->n_calls += *done > 0;
    return GPST_OK;
}

/* Reads until `bytes` are there or the file ends. */
GPSTI_PRIVATE gpst_result gpsti_reader_fill(gpsti_reader_job* job, size_t bytes) {
    gpst_read* read = job->read;
    if (read->bytes < bytes)
        gpsti_pages_touch((char*)read->data + read->bytes, bytes - read->bytes, GPSTI_PAGES_THP);
    while (read->bytes < bytes) {
        size_t done;
        GPSTI_TRY(gpsti_reader_call(job, (char*)read->data + read->bytes, bytes - read->bytes, &done));
        if (!done)
            return GPST_OK;
        read->bytes += done;
    }
    return GPST_OK;
}

/* Fills what room there is; a byte beyond it says that the file goes on, and more room is asked for. */
GPSTI_PRIVATE gpst_result gpsti_reader_fill_to_end(gpsti_reader_job* job) {
    gpst_read* read = job->read;
    for (;;) {
        char beyond;
        size_t done;
        GPSTI_TRY(gpsti_reader_fill(job, read->capacity_bytes));
        if (read->bytes < read->capacity_bytes)
            return GPST_OK;
        GPSTI_TRY(gpsti_reader_call(job, &beyond, 1, &done));
        if (!done)
            return GPST_OK;
        const uint64_t half_bytes = read->bytes / 2;
        GPSTI_TRY(gpsti_reader_reserve(
            read,
            read->bytes + (half_bytes > GPSTI_READER_GROW_BYTES ? half_bytes : GPSTI_READER_GROW_BYTES)));
        ((char*)read->data)[read->bytes++] = beyond;
    }
}

GPSTI_PRIVATE gpst_result gpsti_reader_read_range(gpsti_reader_job* job) {
    gpst_read* read = job->read;
    GPSTI_TRY(gpsti_reader_reserve(read, read->length_bytes));
    GPSTI_TRY(gpsti_reader_fill(job, (size_t)read->length_bytes));
    GPSTI_FAIL_IF(read->bytes < read->length_bytes, GPST_ERROR_TRUNCATED,
                  "read \"%s\": length_bytes=%llu at offset_bytes=%llu: the file ends after %zu of them",
                  read->path, (unsigned long long)read->length_bytes, (unsigned long long)read->offset_bytes,
                  read->bytes);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_reader_read_whole(gpsti_reader_job* job, uint64_t announced_bytes) {
    gpst_read* read = job->read;
    GPSTI_TRY(gpsti_reader_reserve(read, announced_bytes));
    GPSTI_TRY(gpsti_reader_fill_to_end(job));
    GPSTI_FAIL_IF(read->bytes < announced_bytes, GPST_ERROR_TRUNCATED,
                  "read \"%s\": the file shrank from %llu to %zu bytes while it was read", read->path,
                  (unsigned long long)announced_bytes, read->bytes);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_reader_read_open(gpsti_reader_job* job) {
    gpst_read* read = job->read;
    gpsti_file_info info;
    memset(&info, 0, sizeof(info));
    GPSTI_TRY(gpsti_file_query(&job->file.file, read->path, &info));
    GPSTI_FAIL_IF(info.is_directory, GPST_ERROR_IO, "read \"%s\": is a directory", read->path);
    job->in_order = !info.is_regular;
    GPSTI_FAIL_IF(job->in_order && read->offset_bytes, GPST_ERROR_ARGUMENT,
                  "read \"%s\": offset_bytes=%llu: must be 0 for what is not a regular file", read->path,
                  (unsigned long long)read->offset_bytes);
    GPSTI_FAIL_IF(read->length_bytes > UINT64_MAX - read->offset_bytes, GPST_ERROR_OVERFLOW,
                  "read \"%s\": offset_bytes=%llu, length_bytes=%llu: the sum overflows", read->path,
                  (unsigned long long)read->offset_bytes, (unsigned long long)read->length_bytes);
    /* Before room for it is asked for. Files of /proc have a size of 0 and yet contents. */
    GPSTI_FAIL_IF(info.bytes && read->offset_bytes + read->length_bytes > info.bytes, GPST_ERROR_TRUNCATED,
                  "read \"%s\": length_bytes=%llu at offset_bytes=%llu: the file has only %llu bytes",
                  read->path, (unsigned long long)read->length_bytes, (unsigned long long)read->offset_bytes,
                  (unsigned long long)info.bytes);
    job->file.bytes = info.bytes;
    if (info.is_regular && job->kind->open)
        job->kind->open(&job->file);
    const gpst_result result =
        read->length_bytes ? gpsti_reader_read_range(job)
                           : gpsti_reader_read_whole(job, info.bytes ? info.bytes - read->offset_bytes : 0);
    if (info.is_regular && job->kind->close)
        job->kind->close(&job->file);
    return result;
}

/* Nothing is wrong: this is not the way to read the file. */
GPSTI_PRIVATE bool gpsti_reader_is_put_off(gpst_result result) {
    return result == GPST_ERROR_WOULD_BLOCK || result == GPST_ERROR_UNSUPPORTED;
}

GPSTI_PRIVATE gpst_result gpsti_reader_read_path(const gpsti_reader_kind_i* kind, gpsti_reader_ways* ways,
                                                 const gpsti_reader_halt* halt, gpst_read* read) {
    gpsti_reader_job job;
    GPSTI_FAIL_IF(!read->path, GPST_ERROR_ARGUMENT, "read: path is NULL");
    GPSTI_FAIL_IF(!read->data && read->capacity_bytes, GPST_ERROR_ARGUMENT,
                  "read \"%s\": data is NULL with capacity_bytes=%zu", read->path, read->capacity_bytes);
    memset(&job, 0, sizeof(job));
    job.kind = kind;
    job.read = read;
    job.halt = halt;
    job.file.path = read->path;
    job.file.ways = ways;
    GPSTI_TRY(gpsti_file_open_read(read->path, &job.file.file));
    const gpst_result result = gpsti_reader_read_open(&job);
    if (GPST_FAILED(result) && !gpsti_reader_is_put_off(result)) { /* closing must not hide why */
        gpsti_copy_text(read->reason, sizeof(read->reason), gpst_last_reason());
        (void)gpsti_file_close(&job.file.file, read->path);
        return gpsti_fail(result, "%s", read->reason);
    }
    const gpst_result closed = gpsti_file_close(&job.file.file, read->path);
    return GPST_FAILED(result) ? result : closed;
}

/* Ways that were tried and refused leave reasons: a read that succeeded in the end takes them back. */
GPSTI_PRIVATE void gpsti_reader_run_kind(const gpsti_reader_kind_i* kind, gpsti_reader_ways* ways,
                                         const gpsti_reader_halt* halt, gpst_read* read) {
    char before[GPSTI_REASON_BYTES];
    const uint64_t serial = gpsti_fail_serial();
    gpsti_copy_text(before, sizeof(before), gpst_last_reason());
    read->bytes = 0;
    read->n_calls = 0;
    read->reason[0] = 0;
    read->start_ns = gpsti_now_ns();
    read->result = gpsti_reader_read_path(kind, ways, halt, read);
    read->end_ns = gpsti_now_ns();
    if (GPST_FAILED(read->result))
        gpsti_copy_text(read->reason, sizeof(read->reason), gpst_last_reason());
    else if (gpsti_fail_serial() != serial)
        gpsti_fail(GPST_OK, "%s", before);
}

GPSTI_PRIVATE void gpsti_reader_read(gpst_reader* reader, gpst_read* read, uint32_t n_cancels) {
    gpsti_reader_halt halt;
    halt.cancels = &reader->io.n_cancels;
    halt.n_cancels = n_cancels;
    halt.flag = reader->cancel;
    gpsti_reader_run_kind(reader->kind, &reader->ways, &halt, read);
    gpsti_a64_add(&reader->ways.file_bytes, read->bytes);
    read->end_ns = gpsti_io_wait_disk(reader->context, false, read->bytes, read->start_ns);
}

/* Its thread's clock is asked only where nothing else says whether a read waited. */
GPSTI_PRIVATE void gpsti_reader_read_and_weigh(gpst_reader* reader, gpst_read* read, uint32_t n_cancels) {
    const bool weighs = gpsti_a32_load(&reader->is_blind) != 0;
    const int64_t cpu_ns = weighs ? gpsti_thread_cpu_ns() : 0;
    gpsti_reader_read(reader, read, n_cancels);
    if (!weighs)
        return;
    const bool computed = 2 * (gpsti_thread_cpu_ns() - cpu_ns) >= read->end_ns - read->start_ns;
    const uint32_t n = gpsti_a32_load(&reader->n_computed);
    gpsti_a32_store(&reader->n_computed, computed ? (n < GPSTI_READER_SURE ? n + 1 : n) : 0);
}

GPSTI_INTERN void gpsti_reader_read_here(gpst_reader* reader, gpst_read* read) {
    gpsti_reader_read_and_weigh(reader, read, gpsti_a32_load(&reader->io.n_cancels));
}

GPSTI_PRIVATE gpst_result gpsti_reader_read_cached_at(gpsti_reader_file* file, void* data, size_t bytes,
                                                      uint64_t offset_bytes, size_t* done) {
    return gpsti_file_read_cached(&file->file, file->path, data, bytes, offset_bytes, done);
}

GPSTI_INTERN bool gpsti_reader_goes_by_cache(gpst_reader* reader, const gpst_read* read) {
    return !strcmp(reader->kind->name, "pread") ||
           (!strcmp(reader->kind->name, "auto") && read->capacity_bytes < GPSTI_READER_LARGE_BYTES &&
            gpsti_a64_load_relaxed(&reader->ways.direct_bytes) == 0);
}

/* A FIFO is not opened: its writer would write to nobody. */
GPSTI_INTERN bool gpsti_reader_try(gpst_reader* reader, gpst_read* read) {
    static const gpsti_reader_kind_i cached = {"cached", NULL, NULL, gpsti_reader_read_cached_at};
    gpsti_reader_halt halt = {NULL, 0, NULL};
    const bool by_cache = !strcmp(reader->kind->name, "auto") || !strcmp(reader->kind->name, "pread");
    if (!by_cache || gpsti_io_models_disk(reader->context) || !gpsti_path_is_regular(read->path))
        return false;
    if (gpsti_a32_load(&reader->is_blind) != 0) {
        if (gpsti_a32_load(&reader->n_computed) < GPSTI_READER_SURE)
            return false;
        gpsti_reader_read_here(reader, read);
        return true;
    }
    gpsti_reader_run_kind(&cached, &reader->ways, &halt, read);
    if (read->result == GPST_ERROR_UNSUPPORTED)
        gpsti_a32_store(&reader->is_blind, 1);
    if (gpsti_reader_is_put_off(read->result))
        return false;
    gpsti_a64_add(&reader->ways.file_bytes, read->bytes);
    return true;
}

GPSTI_INTERN void gpsti_reader_read_plain(const gpst_context* context, gpst_read* read, const gpsti_a32* cancel) {
    gpsti_reader_halt halt;
    halt.cancels = NULL;
    halt.n_cancels = 0;
    halt.flag = cancel;
    gpsti_reader_run_kind(gpsti_reader_kind_find("pread"), NULL, &halt, read);
    if (context)
        read->end_ns = gpsti_io_wait_disk(context, false, read->bytes, read->start_ns);
}

/* ---- jobs of core/io --------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_reader_run(void* owner, void* job, gpsti_io_outcome* outcome) {
    gpst_read* read = (gpst_read*)job;
    gpst_reader* reader = (gpst_reader*)owner;
    uint64_t waits_before = 0, waits = 0;
    const bool counted = gpsti_thread_waits(&waits_before);
    gpsti_reader_read_and_weigh(reader, read, outcome->n_cancels);
    outcome->computed = counted && gpsti_thread_waits(&waits) && waits == waits_before;
    outcome->failed = GPST_FAILED(read->result);
    outcome->bytes = read->bytes;
    outcome->calls = read->n_calls;
    outcome->service_ns = read->end_ns - read->start_ns;
}

GPSTI_PRIVATE void gpsti_reader_done(void* owner, void* job, bool cancelled) {
    gpst_read* read = (gpst_read*)job;
    (void)owner;
    if (cancelled) {
        read->result = GPST_ERROR_CANCELLED;
        read->bytes = 0;
        read->n_calls = 0;
        read->start_ns = read->end_ns = gpsti_now_ns();
        gpsti_copy_text(read->reason, sizeof(read->reason), "the read was cancelled before it began");
    }
    if (read->done)
        read->done(read);
}

static const gpsti_io_job_i gpsti_reader_job_i = {offsetof(gpst_read, next), gpsti_reader_run,
                                                  gpsti_reader_done};

/* ---- the public face --------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_reader_init(gpst_reader* reader, uint32_t n_in_flight) {
    GPSTI_TRY(gpsti_reader_ways_init(&reader->ways));
    gpst_result result = GPST_OK;
    if (!strcmp(reader->kind->name, "uring"))
        result = gpsti_reader_ways_need_ring(&reader->ways);
    if (!GPST_FAILED(result))
        result = gpsti_io_init(&reader->io, &gpsti_reader_job_i, reader,
                               n_in_flight ? n_in_flight : GPSTI_READER_DEFAULT_IN_FLIGHT, "gpst-read",
                               &reader->context->pin);
    if (GPST_FAILED(result))
        gpsti_reader_ways_term(&reader->ways);
    return result;
}

GPSTI_INTERN gpst_result gpsti_reader_create(gpst_context* context, const gpsti_reader_kind_i* kind,
                                             uint32_t n_in_flight, gpst_reader** out) {
    gpst_reader* reader = (gpst_reader*)gpsti_context_add_object(context, sizeof(gpst_reader));
    if (!reader)
        return GPST_ERROR_MEMORY;
    reader->context = context;
    reader->kind = kind;
    const gpst_result result = gpsti_reader_init(reader, n_in_flight);
    if (GPST_FAILED(result)) {
        gpsti_context_drop_object(context, reader, sizeof(*reader));
        return gpsti_fail_in(result, "gpst_reader_create");
    }
    *out = reader;
    return GPST_OK;
}

GPSTI_INTERN gpsti_reader_ways* gpsti_reader_ways_of(gpst_reader* reader) { return &reader->ways; }

/* What the caller says counts, then what the environment says. */
GPSTI_PRIVATE gpst_result gpsti_reader_choose_kind(const char* asked, const gpsti_reader_kind_i** out) {
    const char* const fixed = getenv("GPUSTAGE_IO");
    const char* const name = asked ? asked : fixed && fixed[0] ? fixed : "auto";
    *out = gpsti_reader_kind_find(name);
    GPSTI_FAIL_IF(!*out, GPST_ERROR_ARGUMENT,
                  "gpst_reader_create: %s=\"%.64s\": must be \"auto\", \"pread\", \"direct\" or \"uring\"",
                  asked ? "kind" : "GPUSTAGE_IO", name);
    return GPST_OK;
}

/* What only the environment would like is had where it can be; elsewhere the report says why not. No read has begun. */
GPSTI_PRIVATE void gpsti_reader_try_ring(gpst_reader* reader) {
    if (!GPST_FAILED(gpsti_reader_ways_need_ring(&reader->ways))) {
        reader->kind = gpsti_reader_kind_find("uring");
        return;
    }
    gpsti_copy_text(reader->ways.ring_reason, sizeof reader->ways.ring_reason, gpst_last_reason());
    GPSTI_LOG(&reader->context->host, GPST_LOG_WARNING, GPSTI_NO_ITEM,
              "gpst_reader_create: GPUSTAGE_IO=uring: %s; reads as \"%s\"", reader->ways.ring_reason,
              reader->kind->name);
    gpst_clear_reason();
}

GPSTI_INTERN void gpsti_reader_set_cancel(gpst_reader* reader, const gpsti_a32* flag) { reader->cancel = flag; }

GPSTI_INTERN gpst_result gpsti_reader_start(gpst_reader* reader) { return gpsti_io_start(&reader->io); }

GPSTI_INTERN gpst_result gpsti_reader_open(gpst_context* context, const char* asked, uint32_t n_in_flight,
                                           gpst_reader** out) {
    const gpsti_reader_kind_i* kind = NULL;
    GPSTI_TRY(gpsti_reader_choose_kind(asked, &kind));
    GPSTI_TRY(gpsti_context_check(context, "gpst_reader_create"));
    const bool wished = !asked && !strcmp(kind->name, "uring");
    GPSTI_TRY(gpsti_reader_create(context, wished ? gpsti_reader_kind_find("auto") : kind, n_in_flight, out));
    if (wished)
        gpsti_reader_try_ring(*out);
    return GPST_OK;
}

GPST_API gpst_result gpst_reader_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                  const gpst_reader_desc* desc, gpst_reader** out) {
    gpst_reader_desc defaults = GPST_ZERO;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version("gpst_reader_create", version, desc_bytes, sizeof(*desc)));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_reader_create: out=NULL: must point to a gpst_reader*");
    if (!desc)
        desc = &defaults;
    GPSTI_TRY(gpsti_check_canaries("gpst_reader_create", desc->start_canary, desc->end_canary));
    GPSTI_FAIL_IF(desc->n_in_flight > GPSTI_IO_MAX_THREADS, GPST_ERROR_ARGUMENT,
                  "gpst_reader_create: n_in_flight=%u: must be at most %d", desc->n_in_flight,
                  GPSTI_IO_MAX_THREADS);
    GPSTI_TRY(gpsti_reader_open(context, desc->kind, desc->n_in_flight, out));
    const gpst_result result = gpsti_reader_start(*out);
    if (GPST_FAILED(result)) {
        gpst_reader_destroy(*out);
        *out = NULL;
        return gpsti_fail_in(result, "gpst_reader_create");
    }
    return GPST_OK;
}

GPST_API void gpst_reader_destroy(gpst_reader* reader) {
    /* A forked child has none of the threads that would be waited for. */
    if (!reader || gpsti_pid() != reader->context->host.pid)
        return;
    gpsti_io_term(&reader->io);
    gpsti_reader_ways_term(&reader->ways);
    gpsti_context_drop_object(reader->context, reader, sizeof(*reader));
}

GPST_API gpst_result gpst_reader_submit(gpst_reader* reader, gpst_read* read) {
    GPSTI_FAIL_IF(!reader || !read, GPST_ERROR_ARGUMENT,
                  "gpst_reader_submit: reader and read: must not be NULL");
    GPSTI_FAIL_IF(!read->path, GPST_ERROR_ARGUMENT, "gpst_reader_submit: path: must not be NULL");
    GPSTI_TRY(gpsti_context_check(reader->context, "gpst_reader_submit"));
    return gpsti_io_submit(&reader->io, read);
}

GPST_API gpst_result gpst_reader_read_now(gpst_reader* reader, gpst_read* read) {
    GPSTI_FAIL_IF(!read, GPST_ERROR_ARGUMENT, "gpst_reader_read_now: read: must not be NULL");
    if (reader)
        gpsti_io_run_now(&reader->io, read);
    else
        gpsti_reader_read_plain(NULL, read, NULL);
    return read->result;
}

GPST_API void gpst_reader_cancel(gpst_reader* reader) {
    if (reader)
        gpsti_io_cancel(&reader->io);
}

GPST_API gpst_result gpst_reader_drain(gpst_reader* reader, int64_t timeout_ns) {
    GPSTI_FAIL_IF(!reader, GPST_ERROR_ARGUMENT, "gpst_reader_drain: reader: must not be NULL");
    GPSTI_TRY(gpsti_context_check(reader->context, "gpst_reader_drain"));
    GPSTI_FAIL_IF(!gpsti_io_drain(&reader->io, gpsti_deadline(timeout_ns)),
                  timeout_ns <= 0 ? GPST_ERROR_WOULD_BLOCK : GPST_ERROR_TIMEOUT,
                  "gpst_reader_drain: timeout_ns=%lld: reads are under way", (long long)timeout_ns);
    return GPST_OK;
}

GPST_API gpst_result gpst_reader_set_in_flight(gpst_reader* reader, uint32_t n_in_flight) {
    GPSTI_FAIL_IF(!reader, GPST_ERROR_ARGUMENT, "gpst_reader_set_in_flight: reader: must not be NULL");
    GPSTI_TRY(gpsti_context_check(reader->context, "gpst_reader_set_in_flight"));
    const gpst_result result = gpsti_io_set_in_flight(&reader->io, n_in_flight);
    return GPST_FAILED(result) ? gpsti_fail_in(result, "gpst_reader_set_in_flight") : GPST_OK;
}

GPST_API void gpst_reader_query_info(const gpst_reader* reader, gpst_reader_info* out) {
    gpsti_io_info info;
    if (out)
        memset(out, 0, sizeof(*out));
    if (!out || !reader)
        return;
    gpsti_io_query_info(&reader->io, &info);
    out->kind = reader->kind->name;
    out->n_in_flight = info.n_in_flight;
    out->reads = info.jobs;
    out->failed = info.failed;
    out->computed = info.computed;
    out->bytes = info.bytes;
    out->calls = info.calls;
    out->busy_ns = info.busy_ns;
    out->service_ns = info.service_ns;
    out->cpu_ns = info.cpu_ns;
    gpsti_reader_ways_tell(&((gpst_reader*)(uintptr_t)reader)->ways, out->kind, out);
}
