/* core/files/writer.c -- one file written under a temporary name, then renamed or
   removed; or a part of one that has more. Owns temporary files until then; the threads are core/files/io.c's. */
#include "../base/platform_internal.h"

#include "io_internal.h"
#include "writer_internal.h"

#include <string.h>

#define GPSTI_WRITER_DEFAULT_IN_FLIGHT 2
#define GPSTI_WRITER_ENDING ".tmp"

#define GPSTI_WRITER_CLOSES 16 /* replaced files that wait to be freed, at most: as much of the disk stays taken */

struct gpsti_writer {
    gpst_context* context;
    gpsti_io io;
    gpsti_closed_func closed; /* and its user_data, or NULL */
    void* user_data;
    gpsti_mutex mutex; /* over both below */
    gpsti_write closes[GPSTI_WRITER_CLOSES];
    gpsti_write* free_closes;
};

/* ---- one write --------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_writer_temporary(const gpsti_write* write, char* out) {
    return gpsti_temporary_name(write->path, write->temporary_id, GPSTI_WRITER_ENDING, out);
}

/* Window after window: while one is written the one before goes to the disk, and it is waited for, so that memory does
   not fill with what is yet to be written until the system stops everybody. */
GPSTI_PRIVATE gpst_result gpsti_writer_put(const gpsti_write* write, const gpsti_file* file) {
    const size_t window = write->dirty_bytes && write->dirty_bytes < write->bytes ? (size_t)write->dirty_bytes : 0;
    size_t at = 0;
    if (!window)
        return gpsti_file_write(file, write->path, write->data, write->bytes);
    while (at < write->bytes) {
        const size_t bytes = write->bytes - at < window ? write->bytes - at : window;
        GPSTI_TRY(gpsti_file_write(file, write->path, (const char*)write->data + at, bytes));
        GPSTI_TRY(gpsti_file_flush(file, write->path, at, bytes, false));
        if (at)
            GPSTI_TRY(gpsti_file_flush(file, write->path, at - window, window, true));
        at += bytes;
    }
    return GPST_OK;
}

/* Messages name the file that the user knows. */
GPSTI_PRIVATE gpst_result gpsti_writer_fill(const gpsti_write* write, gpsti_file* file) {
    gpst_result result = gpsti_writer_put(write, file);
    if (!GPST_FAILED(result) && write->sync)
        result = gpsti_file_sync(file, write->path);
    if (!GPST_FAILED(result))
        return gpsti_file_close(file, write->path);
    char reason[GPSTI_REASON_BYTES];
    gpsti_copy_text(reason, sizeof(reason), gpst_last_reason());
    (void)gpsti_file_close(file, write->path);
    return gpsti_fail(result, "%s", reason);
}

/* Notes the failure in the write and leaves no file; the reason stays what it was whatever removing says. */
GPSTI_PRIVATE gpst_result gpsti_writer_give_up(gpsti_write* write, gpst_result result,
                                               const char* temporary) {
    gpsti_copy_text(write->reason, sizeof(write->reason), gpst_last_reason());
    if (GPST_FAILED(gpsti_path_remove(temporary)))
        gpsti_fail(result, "%s", write->reason);
    write->pending = false;
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_writer_write_path(gpsti_write* write) {
    char temporary[GPSTI_TEMPORARY_BYTES];
    gpsti_file file = GPST_ZERO;
    GPSTI_FAIL_IF(!write->path || !write->path[0], GPST_ERROR_ARGUMENT, "write: path: must not be empty");
    GPSTI_FAIL_IF(!write->data && write->bytes, GPST_ERROR_ARGUMENT,
                  "write \"%s\": data is NULL for %zu bytes", write->path, write->bytes);
    if (write->target) {
        GPSTI_TRY(gpsti_target_put(write->target, write->offset_bytes, write->data, write->bytes));
        write->pending = true;
        return GPST_OK;
    }
    gpst_result result = gpsti_temporary_create(write->path, GPSTI_WRITER_ENDING, false, &write->temporary_id,
                                                temporary, &file);
    if (GPST_FAILED(result))
        return result;
    result = gpsti_writer_fill(write, &file);
    if (GPST_FAILED(result))
        return gpsti_writer_give_up(write, result, temporary);
    write->pending = true;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_writer_run_write(gpsti_write* write) {
    write->pending = false;
    write->reason[0] = 0;
    write->start_ns = gpsti_now_ns();
    write->result = gpsti_writer_write_path(write);
    write->end_ns = gpsti_now_ns();
    if (GPST_FAILED(write->result))
        gpsti_copy_text(write->reason, sizeof(write->reason), gpst_last_reason());
}

/* ---- what was replaced -------------------------------------------------------
   Freeing what a file held may wait for the disk, and nobody needs the result: a job like a write. */

GPSTI_PRIVATE void gpsti_writer_let_go(gpsti_file* file) { (void)gpsti_file_close(file, "a file that was replaced"); }

GPSTI_PRIVATE gpsti_write* gpsti_writer_take_close(gpsti_writer* writer) {
    gpsti_mutex_lock(&writer->mutex);
    gpsti_write* const close = writer->free_closes;
    if (close)
        writer->free_closes = (gpsti_write*)close->next;
    gpsti_mutex_unlock(&writer->mutex);
    return close;
}

GPSTI_PRIVATE void gpsti_writer_put_close(gpsti_writer* writer, gpsti_write* close) {
    gpsti_mutex_lock(&writer->mutex);
    close->next = writer->free_closes;
    writer->free_closes = close;
    gpsti_mutex_unlock(&writer->mutex);
}

GPSTI_PRIVATE void gpsti_writer_free_replaced(gpsti_writer* writer, gpsti_file* file) {
    gpsti_write* const close = writer ? gpsti_writer_take_close(writer) : NULL;
    if (!close) {
        gpsti_writer_let_go(file);
        return;
    }
    close->closes = true;
    close->replaced = *file;
    if (!GPST_FAILED(gpsti_io_submit(&writer->io, close)))
        return;
    gpsti_writer_let_go(file);
    gpsti_writer_put_close(writer, close);
}

GPSTI_PRIVATE void gpsti_writer_run_close(gpsti_writer* writer, gpsti_write* close) {
    close->start_ns = gpsti_now_ns();
    gpsti_writer_let_go(&close->replaced);
    close->end_ns = gpsti_now_ns();
    if (writer->closed)
        writer->closed(writer->user_data, close->start_ns, close->end_ns);
}

/* ---- commit and discard ------------------------------------------------------ */

GPSTI_INTERN gpst_result gpsti_write_commit(gpsti_write* write, gpsti_writer* writer) {
    char temporary[GPSTI_TEMPORARY_BYTES];
    gpsti_file replaced;
    GPSTI_FAIL_IF(!write->pending, GPST_ERROR_STATE, "gpsti_write_commit: \"%s\": nothing is pending",
                  write->path ? write->path : "");
    GPSTI_TRY(gpsti_writer_temporary(write, temporary));
    const bool replaces = gpsti_path_hold(write->path, &replaced);
    const gpst_result result = gpsti_path_rename(temporary, write->path);
    if (GPST_FAILED(result))
        write->result = gpsti_writer_give_up(write, result, temporary);
    write->pending = false;
    if (replaces)
        gpsti_writer_free_replaced(writer, &replaced);
    return result;
}

GPSTI_INTERN void gpsti_write_discard(gpsti_write* write) {
    char temporary[GPSTI_TEMPORARY_BYTES];
    if (write->pending && write->target)
        gpsti_target_clear(write->target, write->offset_bytes, write->bytes);
    else if (write->pending && !GPST_FAILED(gpsti_writer_temporary(write, temporary)))
        (void)gpsti_path_remove(temporary);
    write->pending = false;
}

/* ---- jobs of core/io --------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_writer_run(void* owner, void* job, gpsti_io_outcome* outcome) {
    gpsti_write* write = (gpsti_write*)job;
    uint64_t waits_before = 0, waits = 0;
    if (write->closes) {
        gpsti_writer_run_close((gpsti_writer*)owner, write);
        return;
    }
    const bool counted = gpsti_thread_waits(&waits_before);
    gpsti_writer_run_write(write);
    write->end_ns = gpsti_io_wait_disk(((gpsti_writer*)owner)->context, true, write->bytes, write->start_ns);
    outcome->computed = counted && gpsti_thread_waits(&waits) && waits == waits_before;
    outcome->failed = GPST_FAILED(write->result);
    outcome->bytes = outcome->failed ? 0 : write->bytes;
    outcome->service_ns = write->end_ns - write->start_ns;
}

GPSTI_PRIVATE void gpsti_writer_done(void* owner, void* job, bool cancelled) {
    gpsti_write* write = (gpsti_write*)job;
    if (write->closes) {
        if (cancelled)
            gpsti_writer_let_go(&write->replaced);
        gpsti_writer_put_close((gpsti_writer*)owner, write);
        return;
    }
    if (cancelled) {
        write->result = GPST_ERROR_CANCELLED;
        write->pending = false;
        write->start_ns = write->end_ns = gpsti_now_ns();
        gpsti_copy_text(write->reason, sizeof(write->reason), "the write was cancelled before it began");
    }
    if (write->done)
        write->done(write);
}

static const gpsti_io_job_i gpsti_writer_job_i = {offsetof(gpsti_write, next), gpsti_writer_run,
                                                  gpsti_writer_done};

/* ---- the writer -------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_writer_create(gpst_context* context, uint32_t n_in_flight,
                                             gpsti_writer** out) {
    *out = NULL;
    gpsti_writer* writer = (gpsti_writer*)gpsti_alloc(&context->host, sizeof(gpsti_writer));
    if (!writer)
        return GPST_ERROR_MEMORY;
    writer->context = context;
    for (uint32_t c = 0; c < GPSTI_WRITER_CLOSES; c++) {
        writer->closes[c].next = writer->free_closes;
        writer->free_closes = &writer->closes[c];
    }
    gpst_result result = gpsti_mutex_init(&writer->mutex);
    if (!GPST_FAILED(result)) {
        result = gpsti_io_init(&writer->io, &gpsti_writer_job_i, writer,
                               n_in_flight ? n_in_flight : GPSTI_WRITER_DEFAULT_IN_FLIGHT, "gpst-write",
                               &context->pin);
        if (GPST_FAILED(result))
            gpsti_mutex_term(&writer->mutex);
    }
    if (GPST_FAILED(result)) {
        gpsti_free(&context->host, writer, sizeof(*writer));
        return gpsti_fail_in(result, "gpsti_writer_create");
    }
    *out = writer;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_writer_start(gpsti_writer* writer) { return gpsti_io_start(&writer->io); }

GPSTI_INTERN void gpsti_writer_tell_closed(gpsti_writer* writer, gpsti_closed_func closed, void* user_data) {
    writer->closed = closed;
    writer->user_data = user_data;
}

GPSTI_INTERN void gpsti_writer_destroy(gpsti_writer* writer) {
    if (!writer)
        return;
    gpsti_io_term(&writer->io);
    gpsti_mutex_term(&writer->mutex);
    gpsti_free(&writer->context->host, writer, sizeof(*writer));
}

GPSTI_INTERN gpst_result gpsti_writer_submit(gpsti_writer* writer, gpsti_write* write) {
    return gpsti_io_submit(&writer->io, write);
}

GPSTI_INTERN gpst_result gpsti_writer_write_here(const gpst_context* context, gpsti_write* write) {
    gpsti_writer_run_write(write);
    if (context)
        write->end_ns = gpsti_io_wait_disk(context, true, write->bytes, write->start_ns);
    return write->result;
}

GPSTI_INTERN gpst_result gpsti_writer_set_in_flight(gpsti_writer* writer, uint32_t n_in_flight) {
    return gpsti_io_set_in_flight(&writer->io, n_in_flight);
}

GPSTI_INTERN void gpsti_writer_query_info(const gpsti_writer* writer, gpsti_writer_info* out) {
    gpsti_io_info info;
    gpsti_io_query_info(&writer->io, &info);
    out->n_in_flight = info.n_in_flight;
    out->writes = info.jobs;
    out->failed = info.failed;
    out->computed = info.computed;
    out->bytes = info.bytes;
    out->service_ns = info.service_ns;
    out->cpu_ns = info.cpu_ns;
}
