/* core/device/copy.c -- copies on a stream: bytes, rows, between devices. Knows no direction: the backend sees it from
   the addresses. */
#include "../base/platform_internal.h"

#include "device_internal.h"

#define GPSTI_COPY_PIECE ((size_t)4 << 20) /* what goes through the host at a time */

GPSTI_PRIVATE gpst_result gpsti_copy_check(const char* function, const void* dst, const void* src, size_t bytes,
                                           const gpst_stream* stream) {
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(bytes > SIZE_MAX / 2, GPST_ERROR_OVERFLOW, "%s: bytes=%zu: must be at most SIZE_MAX/2", function,
                  bytes);
    GPSTI_FAIL_IF(bytes > 0 && !dst, GPST_ERROR_ARGUMENT, "%s: dst=NULL: must be memory of bytes=%zu", function, bytes);
    GPSTI_FAIL_IF(bytes > 0 && !src, GPST_ERROR_ARGUMENT, "%s: src=NULL: must be memory of bytes=%zu", function, bytes);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_stream_copy(gpst_stream* stream, void* dst, const void* src, size_t bytes) {
    return stream->records ? gpsti_commands_add_copy(&stream->commands, dst, src, bytes)
                           : stream->device->device->i->copy(stream->stream, GPSTI_COPY_ANY, dst, src, bytes);
}

GPST_API gpst_result gpst_copy(void* dst, const void* src, size_t bytes, gpst_stream* stream) {
    const char* function = "gpst_copy";
    GPSTI_TRY(gpsti_copy_check(function, dst, src, bytes, stream));
    return bytes > 0 ? gpsti_device_result(gpsti_stream_copy(stream, dst, src, bytes), function) : GPST_OK;
}

/* ---- rows -------------------------------------------------------------------------------- */

/* From the first byte of the first row to the last of the last. */
GPSTI_PRIVATE gpst_result gpsti_copy_check_rows(const char* function, const char* member, size_t pitch_bytes,
                                                size_t row_bytes, size_t n_rows, size_t* bytes) {
    size_t before = 0;
    GPSTI_FAIL_IF(pitch_bytes < row_bytes, GPST_ERROR_ARGUMENT, "%s: %s=%zu: must be at least row_bytes=%zu", function,
                  member, pitch_bytes, row_bytes);
    GPSTI_FAIL_IF(!gpsti_size_mul(pitch_bytes, n_rows - 1, &before) || !gpsti_size_add(before, row_bytes, bytes),
                  GPST_ERROR_OVERFLOW, "%s: %s=%zu: %zu rows do not fit in memory", function, member, pitch_bytes,
                  n_rows);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_stream_copy_rows(gpst_stream* stream, const gpsti_copied_rows* rows) {
    return stream->records ? gpsti_commands_add_rows(&stream->commands, rows)
                           : stream->device->device->i->copy_rows(stream->stream, rows->dst, rows->dst_pitch_bytes,
                                                                  rows->src, rows->src_pitch_bytes, rows->row_bytes,
                                                                  rows->n_rows);
}

GPST_API gpst_result gpst_copy_rows(void* dst, size_t dst_pitch_bytes, const void* src, size_t src_pitch_bytes,
                                    size_t row_bytes, size_t n_rows, gpst_stream* stream) {
    const char* function = "gpst_copy_rows";
    size_t dst_bytes = 0, src_bytes = 0;
    GPSTI_TRY(gpsti_stream_check(stream, function));
    if (row_bytes == 0 || n_rows == 0)
        return GPST_OK;
    GPSTI_TRY(gpsti_copy_check_rows(function, "dst_pitch_bytes", dst_pitch_bytes, row_bytes, n_rows, &dst_bytes));
    GPSTI_TRY(gpsti_copy_check_rows(function, "src_pitch_bytes", src_pitch_bytes, row_bytes, n_rows, &src_bytes));
    GPSTI_TRY(gpsti_copy_check(function, dst, src, dst_bytes, stream));
    const gpsti_copied_rows rows = {dst, dst_pitch_bytes, src, src_pitch_bytes, row_bytes, n_rows};
    if (n_rows == 1 || (dst_pitch_bytes == row_bytes && src_pitch_bytes == row_bytes))
        return gpsti_device_result(gpsti_stream_copy(stream, dst, src, dst_bytes), function);
    if (stream->device->device->i->copy_rows && dst_pitch_bytes <= INT32_MAX && src_pitch_bytes <= INT32_MAX)
        return gpsti_device_result(gpsti_stream_copy_rows(stream, &rows), function);
    for (size_t r = 0; r < n_rows; r++)
        GPSTI_TRY(gpsti_device_result(gpsti_stream_copy(stream, (char*)dst + r * dst_pitch_bytes,
                                                        (const char*)src + r * src_pitch_bytes, row_bytes),
                                      function));
    return GPST_OK;
}

/* ---- between devices ----------------------------------------------------------------------- */

/* One way after the other, through memory that both know as the host's. */
GPSTI_PRIVATE gpst_result gpsti_copy_pieces(char* dst, gpsti_stream* to, const char* src, gpsti_stream* from,
                                            size_t bytes, void* piece) {
    for (size_t at = 0; at < bytes; at += GPSTI_COPY_PIECE) {
        const size_t n = bytes - at < GPSTI_COPY_PIECE ? bytes - at : GPSTI_COPY_PIECE;
        GPSTI_TRY(from->device->i->copy(from, GPSTI_COPY_ANY, piece, src + at, n));
        GPSTI_TRY(from->device->i->stream_wait_idle(from));
        GPSTI_TRY(to->device->i->copy(to, GPSTI_COPY_ANY, dst + at, piece, n));
        GPSTI_TRY(to->device->i->stream_wait_idle(to));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_copy_through_host(void* dst, gpsti_device* dst_device, const void* src, size_t bytes,
                                                  gpsti_stream* from) {
    gpsti_host_memory piece;
    gpsti_stream* to = NULL;
    GPSTI_TRY(
        dst_device->i->host_alloc(dst_device, bytes < GPSTI_COPY_PIECE ? bytes : GPSTI_COPY_PIECE, false, &piece));
    gpst_result result = dst_device->i->stream_create(dst_device, &to);
    if (!GPST_FAILED(result)) {
        result = gpsti_copy_pieces((char*)dst, to, (const char*)src, from, bytes, piece.ptr);
        dst_device->i->stream_destroy(to);
    }
    dst_device->i->host_free(dst_device, &piece);
    return result;
}

GPST_API gpst_result gpst_copy_peer(void* dst, gpst_device* dst_device, const void* src, size_t bytes,
                                    gpst_stream* stream) {
    const char* function = "gpst_copy_peer";
    GPSTI_FAIL_IF(!dst_device, GPST_ERROR_ARGUMENT, "%s: dst_device=NULL: must be a device", function);
    GPSTI_TRY(gpsti_device_check(dst_device, function));
    GPSTI_TRY(gpsti_copy_check(function, dst, src, bytes, stream));
    if (bytes == 0)
        return GPST_OK;
    GPSTI_TRY(gpsti_stream_check_not_recording(stream, function));
    const gpsti_backend_i* const i = stream->device->device->i;
    if (dst_device == stream->device || dst_device->info.zero_copy)
        return gpsti_device_result(gpsti_stream_copy(stream, dst, src, bytes), function);
    if (i->copy_peer && i == dst_device->device->i)
        return gpsti_device_result(i->copy_peer(stream->stream, dst, dst_device->device, src, bytes), function);
    return gpsti_device_result(gpsti_copy_through_host(dst, dst_device->device, src, bytes, stream->stream), function);
}

GPSTI_INTERN gpst_result gpsti_stream_fill(gpst_stream* stream, void* dst, int value, size_t bytes) {
    return stream->records ? gpsti_commands_add_fill(&stream->commands, dst, value, bytes)
                           : stream->device->device->i->memory_set(stream->stream, dst, value, bytes);
}

GPST_API gpst_result gpst_fill(void* dst, int value, size_t bytes, gpst_stream* stream) {
    const char* function = "gpst_fill";
    GPSTI_TRY(gpsti_copy_check(function, dst, dst, bytes, stream));
    return bytes > 0 ? gpsti_device_result(gpsti_stream_fill(stream, dst, value, bytes), function) : GPST_OK;
}
