/* core/machine/measure.c -- rates of memory, disk and device, each alone and for a part
   of the time given. Owns its buffers while it runs. */
#include "../base/platform_internal.h"

#include "../device/context_internal.h"
#include "measure.h"
#include "../memory/memory_internal.h"
#include "../files/reader.h"

#include <string.h>

#define GPSTI_MEASURE_DEFAULT_NS ((int64_t)300000000)
#define GPSTI_MEASURE_PARTS 6
#define GPSTI_MEASURE_BYTES ((size_t)32 << 20) /* of a buffer: beyond the caches of most */
#define GPSTI_MEASURE_READ ((size_t)4 << 20)
#define GPSTI_MEASURE_READS 8 /* at once; their destinations fill one buffer */

typedef struct gpsti_measure_buffer {
    void* data;
    size_t mapped_bytes;
} gpsti_measure_buffer;

typedef struct gpsti_measure {
    gpst_context* context;
    gpst_measure_info* out;
    int64_t part_ns;
    gpsti_measure_buffer buffers[2];
} gpsti_measure;

/* 10^9 bytes a second are bytes a nanosecond. */
GPSTI_PRIVATE double gpsti_measure_rate(uint64_t bytes, int64_t ns) {
    return ns > 0 ? (double)bytes / (double)ns : 0.0;
}

/* ---- memory ---------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_measure_alloc(gpsti_measure* self) {
    gpsti_pages_kind kind = GPSTI_PAGES_NONE;
    for (int b = 0; b < 2; b++) {
        GPSTI_TRY(gpsti_pages_alloc(GPSTI_MEASURE_BYTES, GPSTI_WANT_FILLED, &self->buffers[b].data,
                                    &self->buffers[b].mapped_bytes, &kind, NULL));
        memset(self->buffers[b].data, b + 1, GPSTI_MEASURE_BYTES); /* touched: pages come at first use */
    }
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_measure_memory(gpsti_measure* self) {
    const int64_t start_ns = gpsti_now_ns();
    int64_t end_ns = start_ns;
    uint64_t bytes = 0;
    while (end_ns - start_ns < self->part_ns) {
        memcpy(self->buffers[bytes / GPSTI_MEASURE_BYTES % 2].data,
               self->buffers[(bytes / GPSTI_MEASURE_BYTES + 1) % 2].data, GPSTI_MEASURE_BYTES);
        bytes += GPSTI_MEASURE_BYTES;
        end_ns = gpsti_now_ns();
    }
    self->out->memcpy_gbps = gpsti_measure_rate(bytes, end_ns - start_ns);
}

/* ---- disk ------------------------------------------------------------------------- */

typedef struct gpsti_measure_reads {
    gpst_reader* reader;
    uint64_t n_pieces; /* of the file */
    gpsti_a64 next;    /* piece; goes round */
    gpsti_a64 bytes;
    gpsti_a32 n_running;
    int64_t deadline_ns;
    gpst_read reads[GPSTI_MEASURE_READS];
} gpsti_measure_reads;

GPSTI_PRIVATE void gpsti_measure_next_read(gpsti_measure_reads* reads, gpst_read* read) {
    read->offset_bytes = gpsti_a64_add(&reads->next, 1) % reads->n_pieces * GPSTI_MEASURE_READ;
    if (GPST_FAILED(gpst_reader_submit(reads->reader, read)))
        gpsti_a32_add(&reads->n_running, UINT32_MAX);
}

GPSTI_PRIVATE void gpsti_measure_read_done(gpst_read* read) {
    gpsti_measure_reads* const reads = (gpsti_measure_reads*)read->user_data;
    if (!GPST_FAILED(read->result))
        gpsti_a64_add(&reads->bytes, read->bytes);
    if (!GPST_FAILED(read->result) && gpsti_now_ns() < reads->deadline_ns)
        gpsti_measure_next_read(reads, read);
    else
        gpsti_a32_add(&reads->n_running, UINT32_MAX);
}

/* n_at_once reads always in flight until the part is over. */
GPSTI_PRIVATE double gpsti_measure_reading(gpsti_measure* self, gpsti_measure_reads* reads, const char* path,
                                           uint32_t n_at_once) {
    const int64_t start_ns = gpsti_now_ns();
    const uint64_t before = gpsti_a64_load(&reads->bytes);
    reads->deadline_ns = start_ns + self->part_ns;
    gpsti_a32_store(&reads->n_running, n_at_once);
    for (uint32_t r = 0; r < n_at_once; r++) {
        gpst_read* const read = &reads->reads[r];
        memset(read, 0, sizeof *read);
        read->path = path;
        read->length_bytes = read->capacity_bytes = GPSTI_MEASURE_READ;
        read->data = (char*)self->buffers[0].data + r * GPSTI_MEASURE_READ;
        read->done = gpsti_measure_read_done;
        read->user_data = reads;
        gpsti_measure_next_read(reads, read);
    }
    while (gpsti_a32_load(&reads->n_running) > 0)
        gpsti_sleep_ns(200000);
    return gpsti_measure_rate(gpsti_a64_load(&reads->bytes) - before, gpsti_now_ns() - start_ns);
}

GPSTI_PRIVATE gpst_result gpsti_measure_disk(gpsti_measure* self, const char* path) {
    gpst_measure_info* const out = self->out;
    gpsti_measure_reads reads;
    gpst_reader_desc desc = GPST_ZERO;
    gpst_reader_info info;
    gpsti_file_info file = GPST_ZERO;
    memset(&reads, 0, sizeof reads);
    GPSTI_TRY(gpsti_path_query(path, &file));
    GPSTI_FAIL_IF(!file.is_regular || file.bytes < 2 * GPSTI_MEASURE_READ, GPST_ERROR_ARGUMENT,
                  "path=\"%.64s\": must be a regular file of 8 MiB or more", path);
    reads.n_pieces = file.bytes / GPSTI_MEASURE_READ;
    desc.kind = "direct";
    desc.n_in_flight = out->n_reads = GPSTI_MEASURE_READS;
    GPSTI_TRY(gpst_reader_create(self->context, &desc, &reads.reader));
    out->read_one_gbps = gpsti_measure_reading(self, &reads, path, 1);
    out->read_many_gbps = gpsti_measure_reading(self, &reads, path, GPSTI_MEASURE_READS);
    gpst_reader_query_info(reads.reader, &info);
    out->read_direct = info.direct_bytes > 0;
    if (!out->read_direct)
        gpsti_format(out->read_reason, sizeof out->read_reason, "by the page cache: %.130s", info.why_not);
    gpst_reader_destroy(reads.reader);
    return info.failed ? gpsti_fail(GPST_ERROR_IO, "%.64s: a read failed", path) : GPST_OK;
}

/* ---- device ------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_measure_copies(gpsti_measure* self, gpst_stream* stream, void* device_data,
                                               const void* host_data, double* out_gbps) {
    const int64_t start_ns = gpsti_now_ns();
    int64_t end_ns = start_ns;
    uint64_t bytes = 0;
    while (end_ns - start_ns < self->part_ns) {
        GPSTI_TRY(gpst_copy(device_data, host_data, GPSTI_MEASURE_BYTES, stream));
        GPSTI_TRY(gpst_stream_synchronize(stream));
        bytes += GPSTI_MEASURE_BYTES;
        end_ns = gpsti_now_ns();
    }
    *out_gbps = gpsti_measure_rate(bytes, end_ns - start_ns);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_measure_launches(gpsti_measure* self, gpst_stream* stream, void* device_data) {
    const int64_t start_ns = gpsti_now_ns();
    int64_t end_ns = start_ns;
    uint64_t n = 0;
    while (end_ns - start_ns < self->part_ns) {
        GPSTI_TRY(gpst_fill(device_data, 0, 64, stream));
        GPSTI_TRY(gpst_stream_synchronize(stream));
        n++;
        end_ns = gpsti_now_ns();
    }
    self->out->launch_us = n ? (double)(end_ns - start_ns) / (double)n / 1000.0 : 0.0;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_measure_with_memory(gpsti_measure* self, gpst_stream* stream, void* device_data,
                                                    const void* pinned) {
    memset((void*)(uintptr_t)pinned, 1, GPSTI_MEASURE_BYTES);
    GPSTI_TRY(gpsti_measure_launches(self, stream, device_data)); /* the first operation is slower: it is not a copy */
    GPSTI_TRY(gpsti_measure_copies(self, stream, device_data, pinned, &self->out->h2d_pinned_gbps));
    return gpsti_measure_copies(self, stream, device_data, self->buffers[0].data, &self->out->h2d_pageable_gbps);
}

GPSTI_PRIVATE gpst_result gpsti_measure_pinned(gpsti_measure* self, gpst_stream* stream, void* device_data) {
    gpsti_memory_request request;
    gpst_buffer pinned;
    memset(&request, 0, sizeof request);
    request.kind = GPSTI_MEMORY_PINNED;
    request.asked_bytes = GPSTI_MEASURE_BYTES;
    GPSTI_TRY(gpsti_memory_acquire(self->context, &request, &pinned));
    const gpst_result result = gpsti_measure_with_memory(self, stream, device_data, pinned.data);
    (void)gpst_stream_synchronize(stream);
    gpsti_memory_release(self->context, &pinned);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_measure_device(gpsti_measure* self) {
    gpst_context* const context = self->context;
    gpsti_device_info info;
    gpst_buffer device_memory;
    gpst_stream* stream = NULL;
    context->device->i->device_query(context->device, &info);
    GPSTI_FAIL_IF(info.zero_copy, GPST_ERROR_UNSUPPORTED, "the device computes in host memory: nothing is copied");
    GPSTI_TRY(gpsti_stream_make(&context->public_device, &stream));
    gpst_result result = gpsti_memory_acquire_device(context, GPSTI_MEASURE_BYTES, NULL, NULL, &device_memory);
    if (!GPST_FAILED(result)) {
        result = gpsti_measure_pinned(self, stream, device_memory.data);
        gpsti_memory_release(context, &device_memory);
    }
    gpst_stream_destroy(stream);
    return result;
}

/* ---- all of it ------------------------------------------------------------------------ */

GPST_API gpst_result gpst_measure(gpst_context* context, const char* path, int64_t budget_ns, gpst_measure_info* out) {
    const int64_t start_ns = gpsti_now_ns();
    char before[GPSTI_REASON_BYTES];
    gpsti_measure self;
    GPSTI_FAIL_IF(!out || budget_ns < 0, GPST_ERROR_ARGUMENT, "gpst_measure: %s",
                  out ? "budget_ns: must not be negative" : "out=NULL: required");
    GPSTI_TRY(gpsti_context_check(context, "gpst_measure"));
    memset(out, 0, sizeof *out);
    memset(&self, 0, sizeof self);
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    self.context = context;
    self.out = out;
    self.part_ns = (budget_ns ? budget_ns : GPSTI_MEASURE_DEFAULT_NS) / GPSTI_MEASURE_PARTS;
    const gpst_result result = gpsti_measure_alloc(&self);
    if (!GPST_FAILED(result)) {
        gpsti_measure_memory(&self);
        if (!path)
            gpsti_copy_text(out->read_reason, sizeof out->read_reason, "no path was given");
        else if (GPST_FAILED(gpsti_measure_disk(&self, path)))
            gpsti_copy_text(out->read_reason, sizeof out->read_reason, gpst_last_reason());
        if (GPST_FAILED(gpsti_measure_device(&self)))
            gpsti_copy_text(out->device_reason, sizeof out->device_reason, gpst_last_reason());
    }
    for (int b = 0; b < 2; b++)
        gpsti_pages_free(self.buffers[b].data, self.buffers[b].mapped_bytes);
    out->duration_ns = gpsti_now_ns() - start_ns;
    if (GPST_FAILED(result))
        return gpsti_fail_in(result, "gpst_measure");
    return gpsti_fail(GPST_OK, "%s", before); /* what could not be measured is no failure of the caller's */
}
