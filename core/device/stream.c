/* core/device/stream.c -- the life of streams and events, and who waits for whom. Copies and computes nothing. */
#include "../base/platform_internal.h"

#include "device_internal.h"

/* How often who waits with a time-out asks: at once for a while, then at growing intervals. */
#define GPSTI_EVENT_SPIN_NS 50000
#define GPSTI_EVENT_SLEEP_MOST_NS 1000000

/* ---- streams --------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_stream_check(const gpst_stream* stream, const char* function) {
    GPSTI_FAIL_IF(!stream, GPST_ERROR_ARGUMENT, "%s: stream=NULL: must be a stream", function);
    return gpsti_device_check(stream->device, function);
}

GPSTI_INTERN gpst_result gpsti_stream_check_not_recording(const gpst_stream* stream, const char* function) {
    GPSTI_FAIL_IF(stream->records, GPST_ERROR_STATE,
                  "%s: the stream records a graph, which holds copies, fills and kernels alone: call it before "
                  "gpst_graph_begin, or after the end of the recording",
                  function);
    return GPST_OK;
}

/* The host application's, or a new one. */
GPSTI_PRIVATE gpst_result gpsti_stream_add(gpst_device* device, bool wrap, void* native, gpst_stream** out) {
    const gpsti_backend_i* const i = device->device->i;
    gpst_stream* const stream = (gpst_stream*)gpsti_device_add_object(device, sizeof *stream);
    if (!stream)
        return GPST_ERROR_MEMORY;
    stream->device = device;
    stream->wrapped = wrap;
    stream->commands.host = device->host;
    const gpst_result result = wrap && i->stream_wrap ? i->stream_wrap(device->device, native, &stream->stream)
                                                      : i->stream_create(device->device, &stream->stream);
    if (GPST_FAILED(result)) {
        gpsti_device_drop_object(device, stream, sizeof *stream);
        return result;
    }
    *out = stream;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_stream_make(gpst_device* device, gpst_stream** out) {
    *out = (gpst_stream*)gpsti_device_cache_take(device, GPSTI_CACHED_STREAMS);
    return *out ? GPST_OK : gpsti_stream_add(device, false, NULL, out);
}

GPSTI_INTERN void gpsti_stream_free(gpst_stream* stream) {
    stream->device->device->i->stream_destroy(stream->stream);
    gpsti_commands_free(&stream->commands);
    gpsti_device_drop_object(stream->device, stream, sizeof *stream);
}

GPSTI_PRIVATE gpst_result gpsti_stream_check_out(gpst_device* device, gpst_stream** out, const char* function) {
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: must point to a gpst_stream*", function);
    return gpsti_device_check(device, function);
}

GPST_API gpst_result gpst_stream_create(gpst_device* device, gpst_stream** out) {
    const char* function = "gpst_stream_create";
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_stream_check_out(device, out, function));
    return gpsti_device_result(gpsti_stream_make(device, out), function);
}

GPST_API gpst_result gpst_stream_wrap(gpst_device* device, void* native, gpst_stream** out) {
    const char* function = "gpst_stream_wrap";
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_stream_check_out(device, out, function));
    GPSTI_FAIL_IF(native && !device->device->i->stream_wrap, GPST_ERROR_ARGUMENT,
                  "%s: native=%p: must be NULL: the backend %s has no native streams", function, native,
                  device->device->i->name);
    return gpsti_device_result(gpsti_stream_add(device, true, native, out), function);
}

/* A stream whose work failed is not for the next user. */
GPST_API void gpst_stream_destroy(gpst_stream* stream) {
    char before[GPSTI_REASON_BYTES];
    if (!stream || gpsti_device_forked(stream->device))
        return;
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    stream->records = false;
    if (stream->wrapped || GPST_FAILED(gpsti_stream_wait_idle(stream)) ||
        !gpsti_device_cache_put(stream->device, GPSTI_CACHED_STREAMS, stream))
        gpsti_stream_free(stream);
    (void)gpsti_fail(GPST_OK, "%s", before);
}

GPSTI_INTERN gpst_result gpsti_stream_wait_idle(gpst_stream* stream) {
    return stream->device->device->i->stream_wait_idle(stream->stream);
}

GPSTI_INTERN gpst_result gpsti_stream_notify(gpst_stream* stream, void (*func)(void* user_data, gpst_result result),
                                             void* user_data) {
    return stream->device->device->i->stream_notify(stream->stream, func, user_data);
}

GPST_API void* gpst_stream_native(const gpst_stream* stream) {
    const gpsti_backend_i* const i = stream ? stream->device->device->i : NULL;
    return i && i->stream_native ? i->stream_native(stream->stream) : NULL;
}

GPST_API gpst_result gpst_stream_synchronize(gpst_stream* stream) {
    const char* function = "gpst_stream_synchronize";
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_TRY(gpsti_stream_check_not_recording(stream, function));
    return gpsti_device_result(gpsti_stream_wait_idle(stream), function);
}

/* ---- events ---------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_event_check(const gpst_event* event, const char* function) {
    GPSTI_FAIL_IF(!event, GPST_ERROR_ARGUMENT, "%s: event=NULL: must be an event", function);
    return gpsti_device_check(event->device, function);
}

GPSTI_PRIVATE gpst_result gpsti_event_check_stream(const gpst_event* event, const gpst_stream* stream,
                                                   const char* function) {
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_TRY(gpsti_event_check(event, function));
    GPSTI_FAIL_IF(event->device != stream->device, GPST_ERROR_ARGUMENT,
                  "%s: event: must be of the stream's device; between devices the host waits, with gpst_event_wait",
                  function);
    return gpsti_stream_check_not_recording(stream, function);
}

GPSTI_INTERN gpst_result gpsti_event_make(gpst_device* device, gpst_event** out) {
    gpst_event* event = (gpst_event*)gpsti_device_cache_take(device, GPSTI_CACHED_EVENTS);
    if (!event) {
        event = (gpst_event*)gpsti_device_add_object(device, sizeof *event);
        if (!event)
            return GPST_ERROR_MEMORY;
        event->device = device;
        const gpst_result result = device->device->i->event_create(device->device, &event->event);
        if (GPST_FAILED(result)) {
            gpsti_device_drop_object(device, event, sizeof *event);
            return result;
        }
    }
    gpsti_a32_store(&event->recorded, 0);
    *out = event;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_event_free(gpst_event* event) {
    event->device->device->i->event_destroy(event->event);
    gpsti_device_drop_object(event->device, event, sizeof *event);
}

GPSTI_INTERN gpst_result gpsti_event_record(gpst_event* event, gpst_stream* stream) {
    const gpst_result result = event->device->device->i->event_record(event->event, stream->stream);
    if (!GPST_FAILED(result))
        gpsti_a32_store(&event->recorded, 1);
    return result;
}

GPSTI_INTERN gpst_result gpsti_event_time(gpst_event* event, int64_t* time_ns) {
    GPSTI_FAIL_IF(gpsti_a32_load(&event->recorded) == 0, GPST_ERROR_STATE, "the event was never recorded");
    return event->device->device->i->event_time(event->event, time_ns);
}

GPSTI_INTERN gpst_result gpsti_stream_await(gpst_stream* stream, gpst_event* event) {
    return stream->device->device->i->stream_wait_event(stream->stream, event->event);
}

GPST_API gpst_result gpst_event_create(gpst_device* device, gpst_event** out) {
    const char* function = "gpst_event_create";
    GPSTI_OUT_NONE(out);
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: must point to a gpst_event*", function);
    GPSTI_TRY(gpsti_device_check(device, function));
    return gpsti_device_result(gpsti_event_make(device, out), function);
}

/* An event that is not done is not for the next user, who would wait for this one's work. */
GPST_API void gpst_event_destroy(gpst_event* event) {
    char before[GPSTI_REASON_BYTES];
    if (!event || gpsti_device_forked(event->device))
        return;
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    if (event->device->device->i->event_query(event->event) != GPST_OK ||
        !gpsti_device_cache_put(event->device, GPSTI_CACHED_EVENTS, event))
        gpsti_event_free(event);
    (void)gpsti_fail(GPST_OK, "%s", before);
}

GPST_API gpst_result gpst_event_record(gpst_event* event, gpst_stream* stream) {
    const char* function = "gpst_event_record";
    GPSTI_TRY(gpsti_event_check_stream(event, stream, function));
    return gpsti_device_result(gpsti_event_record(event, stream), function);
}

GPST_API gpst_result gpst_stream_wait(gpst_stream* stream, gpst_event* event) {
    const char* function = "gpst_stream_wait";
    GPSTI_TRY(gpsti_event_check_stream(event, stream, function));
    return gpsti_device_result(gpsti_stream_await(stream, event), function);
}

/* Until it is done, or the time is over: WOULD_BLOCK. */
GPSTI_PRIVATE gpst_result gpsti_event_ask(gpsti_event* event, int64_t timeout_ns) {
    const int64_t start_ns = gpsti_now_ns();
    int64_t sleep_ns = 0;
    gpst_result result = event->device->i->event_query(event);
    while (result == GPST_ERROR_WOULD_BLOCK) {
        const int64_t passed_ns = gpsti_now_ns() - start_ns, left_ns = timeout_ns - passed_ns;
        if (left_ns <= 0)
            break;
        if (passed_ns > GPSTI_EVENT_SPIN_NS) {
            sleep_ns = sleep_ns ? 2 * sleep_ns : GPSTI_EVENT_SPIN_NS;
            sleep_ns = sleep_ns < GPSTI_EVENT_SLEEP_MOST_NS ? sleep_ns : GPSTI_EVENT_SLEEP_MOST_NS;
            gpsti_sleep_ns(sleep_ns < left_ns ? sleep_ns : left_ns);
        }
        result = event->device->i->event_query(event);
    }
    return result;
}

GPST_API gpst_result gpst_event_wait(gpst_event* event, int64_t timeout_ns) {
    const char* function = "gpst_event_wait";
    GPSTI_TRY(gpsti_event_check(event, function));
    GPSTI_FAIL_IF(timeout_ns < 0, GPST_ERROR_ARGUMENT, "%s: timeout_ns=%lld: must not be negative", function,
                  (long long)timeout_ns);
    if (timeout_ns == GPST_FOREVER)
        return gpsti_device_result(event->device->device->i->event_wait(event->event), function);
    const gpst_result result = gpsti_event_ask(event->event, timeout_ns);
    GPSTI_FAIL_IF(result == GPST_ERROR_WOULD_BLOCK && timeout_ns > 0, GPST_ERROR_TIMEOUT,
                  "%s: timeout_ns=%lld: the event is not done yet", function, (long long)timeout_ns);
    return gpsti_device_result(result, function);
}

GPST_API gpst_result gpst_event_elapsed(gpst_event* start, gpst_event* end, int64_t* elapsed_ns) {
    const char* function = "gpst_event_elapsed";
    int64_t start_ns = 0, end_ns = 0;
    if (elapsed_ns)
        *elapsed_ns = 0;
    GPSTI_FAIL_IF(!elapsed_ns, GPST_ERROR_ARGUMENT, "%s: elapsed_ns=NULL: must point to a number", function);
    GPSTI_TRY(gpsti_event_check(start, function));
    GPSTI_TRY(gpsti_event_check(end, function));
    GPSTI_FAIL_IF(start->device != end->device, GPST_ERROR_ARGUMENT,
                  "%s: start, end: must be of one device, whose clock they have", function);
    GPSTI_TRY(gpsti_device_result(gpsti_event_time(start, &start_ns), function));
    GPSTI_TRY(gpsti_device_result(gpsti_event_time(end, &end_ns), function));
    *elapsed_ns = end_ns - start_ns;
    return GPST_OK;
}
