/* backends/gpu_stream.cu.h -- streams of CUDA and HIP and what happens on them:
   copies, launches, events, notifications. */
#include "gpu_clock.cu.h"

#if defined(GPSTI_GPU_UNIT)

#include <string.h>

GPSTI_PRIVATE gpsti_rt_stream gpsti_gpu_native(const gpsti_stream* stream) {
    return ((const gpsti_gpu_stream*)stream)->native;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_check_not_recording(const gpsti_stream* stream, const char* function) {
    GPSTI_FAIL_IF(((const gpsti_gpu_stream*)stream)->recording, GPST_ERROR_STATE,
                  "%s: the stream is recording a graph", function);
    return GPST_OK;
}

/* ---- waiting ------------------------------------------------------------------
   Blocking, by an event made for it: what the runtime does by itself is spin. A thread that slept needs 50 to 100
   microseconds until it has noticed, which is no small part of what it waits for where that is brief: it looks for
   twice as long before it sleeps. */
#define GPSTI_GPU_SPIN_NS 200000

GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_wait(gpsti_rt_event event) {
    const int64_t end_ns = gpsti_now_ns() + GPSTI_GPU_SPIN_NS;
    gpsti_rt_error error;
    do {
        error = GPSTI_RT(EventQuery)(event);
    } while (error == GPSTI_RT(ErrorNotReady) && gpsti_now_ns() < end_ns);
    return error == GPSTI_RT(ErrorNotReady) ? GPSTI_RT(EventSynchronize)(event) : error;
}

/* ---- notifications -------------------------------------------------------------- */

/* One more note on the free list; under the mutex, or while nobody else has the stream. */
GPSTI_PRIVATE gpst_result gpsti_gpu_note_make(gpsti_gpu_stream* stream) {
    gpsti_gpu_note* note = (gpsti_gpu_note*)gpsti_alloc(stream->base.device->host, sizeof(*note));
    if (!note)
        return GPST_ERROR_MEMORY;
    note->stream = stream;
    note->next = stream->free_notes;
    stream->free_notes = note;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_note_take(gpsti_gpu_stream* stream, gpsti_gpu_note** out) {
    gpst_result result = GPST_OK;
    gpsti_mutex_lock(&stream->mutex);
    if (!stream->free_notes)
        result = gpsti_gpu_note_make(stream);
    *out = stream->free_notes;
    if (*out) {
        stream->free_notes = (*out)->next;
        ++stream->n_pending;
    }
    gpsti_mutex_unlock(&stream->mutex);
    return result;
}

GPSTI_PRIVATE void gpsti_gpu_note_give_back(gpsti_gpu_note* note) {
    gpsti_gpu_stream* stream = note->stream;
    gpsti_mutex_lock(&stream->mutex);
    note->next = stream->free_notes;
    stream->free_notes = note;
    gpsti_mutex_unlock(&stream->mutex);
}

/* After this the stream may be gone. */
GPSTI_PRIVATE void gpsti_gpu_note_delivered(gpsti_gpu_stream* stream) {
    gpsti_mutex_lock(&stream->mutex);
    if (--stream->n_pending == 0)
        gpsti_cond_broadcast(&stream->delivered);
    gpsti_mutex_unlock(&stream->mutex);
}

/* On a thread of the runtime, where no call to it is allowed: errors are put into words only. This form of callback
   is told of errors and comes after them too, which cudaLaunchHostFunc's does not. */
GPSTI_PRIVATE void GPSTI_RT_CALLBACK gpsti_gpu_notified(gpsti_rt_stream native, gpsti_rt_error error,
                                                        void* user_data) {
    const gpsti_gpu_note note = *(gpsti_gpu_note*)user_data;
    gpsti_device* device = note.stream->base.device;
    gpst_result result = GPST_OK;
    (void)native;
    if (error != GPSTI_RT(Success)) {
        gpsti_gpu_note_error((gpsti_gpu_device*)device, error);
        result = gpsti_rt_fail(error, GPSTI_GPU_CALL("stream_notify"));
    } else {
        result = gpsti_gpu_check_lost(device, GPSTI_GPU_CALL("stream_notify"));
    }
    gpsti_gpu_note_give_back((gpsti_gpu_note*)user_data); /* first: what func sets going may ask for one */
    note.func(note.user_data, result);
    gpsti_gpu_note_delivered(note.stream);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_stream_notify(gpsti_stream* base,
                                                  void (*func)(void* user_data, gpst_result result),
                                                  void* user_data) {
    gpsti_gpu_stream* stream = (gpsti_gpu_stream*)base;
    GPSTI_TRY(gpsti_gpu_check_not_recording(base, GPSTI_GPU_CALL("stream_notify")));
    GPSTI_TRY(gpsti_gpu_enter(base->device, GPSTI_FAULT_NOTIFY, GPSTI_GPU_CALL("stream_notify")));
    GPSTI_GPU_IN_CONTEXT(base->device, "stream_notify");
    gpsti_gpu_note* note = NULL;
    GPSTI_TRY(gpsti_gpu_note_take(stream, &note));
    note->func = func;
    note->user_data = user_data;
    const gpsti_rt_error error = GPSTI_RT(StreamAddCallback)(stream->native, gpsti_gpu_notified, note, 0);
    if (error != GPSTI_RT(Success)) {
        gpsti_gpu_note_give_back(note);
        gpsti_gpu_note_delivered(stream);
    }
    return gpsti_gpu_result(base->device, error, GPSTI_GPU_CALL("stream_notify"));
}

/* ---- create, destroy, wait --------------------------------------------------------- */

/* gone: what the vendor had of it went with its context. */
GPSTI_PRIVATE void gpsti_gpu_stream_free(gpsti_gpu_stream* stream, bool gone) {
    gpsti_device* device = stream->base.device;
    if (stream->native && !stream->foreign && !gone)
        gpsti_gpu_ignore(device, GPSTI_RT(StreamDestroy)(stream->native));
    if (stream->idle && !gone)
        gpsti_gpu_ignore(device, GPSTI_RT(EventDestroy)(stream->idle));
    while (stream->free_notes) {
        gpsti_gpu_note* note = stream->free_notes;
        stream->free_notes = note->next;
        gpsti_free(device->host, note, sizeof(*note));
    }
    if (stream->has_mutex) {
        gpsti_cond_term(&stream->delivered);
        gpsti_mutex_term(&stream->mutex);
    }
    gpsti_free(device->host, stream, sizeof(*stream));
}

GPSTI_PRIVATE gpst_result gpsti_gpu_stream_open(gpsti_gpu_stream* stream) {
    gpsti_device* device = stream->base.device;
    GPSTI_TRY(gpsti_mutex_init(&stream->mutex));
    const gpst_result result = gpsti_cond_init(&stream->delivered);
    stream->has_mutex = !GPST_FAILED(result);
    if (GPST_FAILED(result)) {
        gpsti_mutex_term(&stream->mutex);
        return result;
    }
    GPSTI_TRY(gpsti_gpu_note_make(stream));
    if (!stream->foreign)
        GPSTI_GPU_TRY(device, GPSTI_RT(StreamCreateWithFlags)(&stream->native, GPSTI_RT(StreamNonBlocking)),
                      "stream_create");
    GPSTI_GPU_TRY(device,
                  GPSTI_RT(EventCreateWithFlags)(&stream->idle,
                                                 GPSTI_RT(EventBlockingSync) | GPSTI_RT(EventDisableTiming)),
                  "stream_create");
    return GPST_OK;
}

/* In the device's context. */
GPSTI_PRIVATE gpst_result gpsti_gpu_stream_make(gpsti_device* device, bool foreign, void* native, gpsti_stream** out) {
    gpsti_gpu_stream* stream = (gpsti_gpu_stream*)gpsti_alloc(device->host, sizeof(gpsti_gpu_stream));
    if (!stream)
        return GPST_ERROR_MEMORY;
    stream->base.device = device;
    stream->foreign = foreign;
    stream->native = (gpsti_rt_stream)native;
    const gpst_result result = gpsti_gpu_stream_open(stream);
    if (GPST_FAILED(result)) {
        gpsti_gpu_stream_free(stream, false);
        return result;
    }
    *out = &stream->base;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_stream_create(gpsti_device* device, gpsti_stream** out) {
    GPSTI_TRY(gpsti_gpu_enter(device, GPSTI_FAULT_STREAM, GPSTI_GPU_CALL("stream_create")));
    GPSTI_GPU_IN_CONTEXT(device, "stream_create");
    return gpsti_gpu_stream_make(device, false, NULL, out);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_stream_wrap(gpsti_device* device, void* native, gpsti_stream** out) {
    GPSTI_TRY(gpsti_gpu_enter(device, GPSTI_FAULT_STREAM, GPSTI_GPU_CALL("stream_wrap")));
    GPSTI_GPU_IN_CONTEXT(device, "stream_wrap");
    const gpsti_gpu_context* const context = &((const gpsti_gpu_device*)device)->context;
    GPSTI_FAIL_IF(!gpsti_gpu_context_has_stream(context, (gpsti_rt_stream)native), GPST_ERROR_ARGUMENT,
                  "%s: native=%p: is a stream of another context than the device's, which works %s",
                  GPSTI_GPU_CALL("stream_wrap"), native, gpsti_gpu_context_text(context));
    return gpsti_gpu_stream_make(device, true, native, out);
}

/* Without setting a reason. What is done soon needs no event. */
GPSTI_PRIVATE gpsti_rt_error gpsti_gpu_stream_finish(gpsti_gpu_stream* stream) {
    const int64_t end_ns = gpsti_now_ns() + GPSTI_GPU_SPIN_NS;
    gpsti_rt_error error;
    do {
        error = GPSTI_RT(StreamQuery)(stream->native);
    } while (error == GPSTI_RT(ErrorNotReady) && gpsti_now_ns() < end_ns);
    if (error != GPSTI_RT(ErrorNotReady))
        return error;
    error = GPSTI_RT(EventRecord)(stream->idle, stream->native);
    return error == GPSTI_RT(Success) ? GPSTI_RT(EventSynchronize)(stream->idle) : error;
}

GPSTI_PRIVATE void gpsti_gpu_stream_stop(gpsti_gpu_stream* stream) {
    gpsti_device* const device = stream->base.device;
    if (stream->recording) {
        GPSTI_RT(Graph_t) graph = NULL;
        gpsti_gpu_ignore(device, GPSTI_RT(StreamEndCapture)(stream->native, &graph));
        if (graph)
            gpsti_gpu_ignore(device, GPSTI_RT(GraphDestroy)(graph));
    }
    if (!stream->foreign)
        gpsti_gpu_ignore(device, gpsti_gpu_stream_finish(stream));
}

/* After an error of the device the runtime does not wait, but its callbacks still come. Nobody says so of those whose
   context was destroyed: who has not come by the end of a second may yet find its stream there. */
#define GPSTI_GPU_GONE_NS ((int64_t)1000000000)
GPSTI_PRIVATE void gpsti_gpu_stream_destroy(gpsti_stream* base) {
    gpsti_gpu_stream* stream = (gpsti_gpu_stream*)base;
    if (!stream)
        return;
    const gpsti_gpu_current current(base->device);
    if (!current.gone())
        gpsti_gpu_stream_stop(stream);
    const int64_t until_ns = current.gone() ? gpsti_now_ns() + GPSTI_GPU_GONE_NS : GPST_FOREVER;
    gpsti_mutex_lock(&stream->mutex);
    while (stream->n_pending && gpsti_now_ns() < until_ns)
        (void)gpsti_cond_wait_until(&stream->delivered, &stream->mutex, until_ns);
    const bool delivered = stream->n_pending == 0;
    gpsti_mutex_unlock(&stream->mutex);
    if (delivered)
        gpsti_gpu_stream_free(stream, current.gone());
}

GPSTI_PRIVATE gpst_result gpsti_gpu_stream_wait_idle(gpsti_stream* base) {
    GPSTI_TRY(gpsti_gpu_check_not_recording(base, GPSTI_GPU_CALL("stream_wait_idle")));
    GPSTI_GPU_IN_CONTEXT(base->device, "stream_wait_idle");
    GPSTI_GPU_TRY(base->device, gpsti_gpu_stream_finish((gpsti_gpu_stream*)base), "stream_wait_idle");
    return gpsti_gpu_enter(base->device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("stream_wait_idle"));
}

GPSTI_PRIVATE gpst_result gpsti_gpu_stream_query(gpsti_stream* base) {
    GPSTI_TRY(gpsti_gpu_check_not_recording(base, GPSTI_GPU_CALL("stream_query")));
    GPSTI_GPU_IN_CONTEXT(base->device, "stream_query");
    const gpsti_rt_error error = GPSTI_RT(StreamQuery)(gpsti_gpu_native(base));
    if (error == GPSTI_RT(ErrorNotReady))
        return GPST_ERROR_WOULD_BLOCK;
    GPSTI_GPU_TRY(base->device, error, "stream_query");
    return gpsti_gpu_enter(base->device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("stream_query"));
}

GPSTI_PRIVATE void* gpsti_gpu_stream_native(gpsti_stream* stream) { return gpsti_gpu_native(stream); }

/* ---- events -------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_gpu_event_create(gpsti_device* device, gpsti_event** out) {
    GPSTI_TRY(gpsti_gpu_enter(device, GPSTI_FAULT_EVENT, GPSTI_GPU_CALL("event_create")));
    GPSTI_GPU_IN_CONTEXT(device, "event_create");
    gpsti_gpu_event* event = (gpsti_gpu_event*)gpsti_alloc(device->host, sizeof(gpsti_gpu_event));
    if (!event)
        return GPST_ERROR_MEMORY;
    event->base.device = device;
    const gpsti_rt_error error = GPSTI_RT(EventCreateWithFlags)(&event->native, GPSTI_RT(EventBlockingSync));
    if (error != GPSTI_RT(Success)) {
        gpsti_free(device->host, event, sizeof(*event));
        return gpsti_gpu_result(device, error, GPSTI_GPU_CALL("event_create"));
    }
    *out = &event->base;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_gpu_event_destroy(gpsti_event* base) {
    gpsti_gpu_event* event = (gpsti_gpu_event*)base;
    if (!event)
        return;
    const gpsti_gpu_current current(base->device);
    if (!current.gone())
        gpsti_gpu_ignore(base->device, GPSTI_RT(EventDestroy)(event->native));
    gpsti_free(base->device->host, event, sizeof(*event));
}

GPSTI_PRIVATE gpst_result gpsti_gpu_event_record(gpsti_event* base, gpsti_stream* stream) {
    gpsti_gpu_event* event = (gpsti_gpu_event*)base;
    GPSTI_TRY(gpsti_gpu_check_not_recording(stream, GPSTI_GPU_CALL("event_record")));
    GPSTI_TRY(gpsti_gpu_enter(base->device, GPSTI_FAULT_EVENT, GPSTI_GPU_CALL("event_record")));
    GPSTI_GPU_IN_CONTEXT(base->device, "event_record");
    gpsti_gpu_clock_tick((gpsti_gpu_device*)base->device);
    GPSTI_GPU_TRY(base->device, GPSTI_RT(EventRecord)(event->native, gpsti_gpu_native(stream)), "event_record");
    event->recorded = true;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_event_query(gpsti_event* base) {
    GPSTI_GPU_IN_CONTEXT(base->device, "event_query");
    const gpsti_rt_error error = GPSTI_RT(EventQuery)(((gpsti_gpu_event*)base)->native);
    GPSTI_FAIL_IF(error == GPSTI_RT(ErrorNotReady), GPST_ERROR_WOULD_BLOCK, "%s: the event is not done",
                  GPSTI_GPU_CALL("event_query"));
    GPSTI_TRY(gpsti_gpu_result(base->device, error, GPSTI_GPU_CALL("event_query")));
    return gpsti_gpu_enter(base->device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("event_query"));
}

GPSTI_PRIVATE gpst_result gpsti_gpu_event_wait(gpsti_event* base) {
    GPSTI_GPU_IN_CONTEXT(base->device, "event_wait");
    GPSTI_GPU_TRY(base->device, gpsti_gpu_wait(((gpsti_gpu_event*)base)->native), "event_wait");
    return gpsti_gpu_enter(base->device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("event_wait"));
}

GPSTI_PRIVATE gpst_result gpsti_gpu_event_time(gpsti_event* base, int64_t* time_ns) {
    gpsti_gpu_event* event = (gpsti_gpu_event*)base;
    GPSTI_FAIL_IF(!event->recorded, GPST_ERROR_STATE, "%s: the event was never recorded",
                  GPSTI_GPU_CALL("event_time"));
    GPSTI_TRY(gpsti_gpu_enter(base->device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("event_time")));
    GPSTI_GPU_IN_CONTEXT(base->device, "event_time");
    return gpsti_gpu_clock_read((gpsti_gpu_device*)base->device, event->native, time_ns);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_stream_wait_event(gpsti_stream* stream, gpsti_event* event) {
    GPSTI_TRY(gpsti_gpu_check_not_recording(stream, GPSTI_GPU_CALL("stream_wait_event")));
    GPSTI_TRY(gpsti_gpu_enter(stream->device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("stream_wait_event")));
    GPSTI_GPU_IN_CONTEXT(stream->device, "stream_wait_event");
    return gpsti_gpu_result(
        stream->device, GPSTI_RT(StreamWaitEvent)(gpsti_gpu_native(stream), ((gpsti_gpu_event*)event)->native, 0),
        GPSTI_GPU_CALL("stream_wait_event"));
}

/* ---- operations ------------------------------------------------------------------------ */

/* A copy that was refused for its addresses says so where one of them is of another context. */
GPSTI_PRIVATE gpst_result gpsti_gpu_copy_result(gpsti_stream* stream, gpsti_rt_error error, const char* function,
                                                const void* dst, const void* src) {
    const gpsti_gpu_context* const context = &((const gpsti_gpu_device*)stream->device)->context;
    const gpst_result result = gpsti_gpu_result(stream->device, error, function);
    if (error != GPSTI_RT(ErrorInvalidValue))
        return result;
    const bool is_dst = gpsti_gpu_context_is_foreign(context, dst);
    GPSTI_FAIL_IF(is_dst || gpsti_gpu_context_is_foreign(context, src), GPST_ERROR_ARGUMENT,
                  "%s: %s=%p: is memory of another context than the device's, which works %s", function,
                  is_dst ? "dst" : "src", is_dst ? dst : src, gpsti_gpu_context_text(context));
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_copy(gpsti_stream* stream, gpsti_copy_kind kind, void* dst, const void* src,
                                         size_t bytes) {
    GPSTI_FAIL_IF(kind < GPSTI_COPY_H2D || kind > GPSTI_COPY_ANY, GPST_ERROR_ARGUMENT,
                  "%s: kind=%d: must be H2D, D2H, D2D or ANY", GPSTI_GPU_CALL("copy"), (int)kind);
    GPSTI_FAIL_IF(bytes && (!dst || !src), GPST_ERROR_ARGUMENT, "%s: dst or src is NULL for %zu bytes",
                  GPSTI_GPU_CALL("copy"), bytes);
    GPSTI_TRY(gpsti_gpu_enter(stream->device, GPSTI_FAULT_COPY, GPSTI_GPU_CALL("copy")));
    if (!bytes)
        return GPST_OK;
    GPSTI_GPU_IN_CONTEXT(stream->device, "copy");
    return gpsti_gpu_copy_result(stream,
                                 GPSTI_RT(MemcpyAsync)(dst, src, bytes,
                                                       kind == GPSTI_COPY_H2D   ? GPSTI_RT(MemcpyHostToDevice)
                                                       : kind == GPSTI_COPY_D2H ? GPSTI_RT(MemcpyDeviceToHost)
                                                       : kind == GPSTI_COPY_D2D ? GPSTI_RT(MemcpyDeviceToDevice)
                                                                                : GPSTI_RT(MemcpyDefault),
                                                       gpsti_gpu_native(stream)),
                                 GPSTI_GPU_CALL("copy"), dst, src);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_copy_rows(gpsti_stream* stream, void* dst, size_t dst_pitch_bytes,
                                              const void* src, size_t src_pitch_bytes, size_t row_bytes,
                                              size_t n_rows) {
    GPSTI_TRY(gpsti_gpu_enter(stream->device, GPSTI_FAULT_COPY, GPSTI_GPU_CALL("copy_rows")));
    GPSTI_GPU_IN_CONTEXT(stream->device, "copy_rows");
    return gpsti_gpu_copy_result(stream,
                                 GPSTI_RT(Memcpy2DAsync)(dst, dst_pitch_bytes, src, src_pitch_bytes, row_bytes, n_rows,
                                                         GPSTI_RT(MemcpyDefault), gpsti_gpu_native(stream)),
                                 GPSTI_GPU_CALL("copy_rows"), dst, src);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_copy_peer(gpsti_stream* stream, void* dst, gpsti_device* dst_device,
                                              const void* src, size_t bytes) {
    GPSTI_FAIL_IF(bytes && (!dst || !src), GPST_ERROR_ARGUMENT, "%s: dst or src is NULL for %zu bytes",
                  GPSTI_GPU_CALL("copy_peer"), bytes);
    GPSTI_TRY(gpsti_gpu_enter(stream->device, GPSTI_FAULT_COPY, GPSTI_GPU_CALL("copy_peer")));
    if (!bytes)
        return GPST_OK;
    GPSTI_GPU_IN_CONTEXT(stream->device, "copy_peer");
    return gpsti_gpu_result(stream->device,
                            gpsti_gpu_context_copy_peer(&((const gpsti_gpu_device*)stream->device)->context, src,
                                                        &((const gpsti_gpu_device*)dst_device)->context, dst, bytes,
                                                        gpsti_gpu_native(stream)),
                            GPSTI_GPU_CALL("copy_peer"));
}

GPSTI_PRIVATE gpst_result gpsti_gpu_memory_set(gpsti_stream* stream, void* dst, int value, size_t bytes) {
    GPSTI_FAIL_IF(bytes && !dst, GPST_ERROR_ARGUMENT, "%s: dst is NULL for %zu bytes", GPSTI_GPU_CALL("memory_set"),
                  bytes);
    GPSTI_TRY(gpsti_gpu_enter(stream->device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("memory_set")));
    if (!bytes)
        return GPST_OK;
    GPSTI_GPU_IN_CONTEXT(stream->device, "memory_set");
    return gpsti_gpu_copy_result(stream, GPSTI_RT(MemsetAsync)(dst, value, bytes, gpsti_gpu_native(stream)),
                                 GPSTI_GPU_CALL("memory_set"), dst, dst);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_check_launch(const gpsti_kernel* kernel, const void* args, size_t args_bytes) {
    const char* function = GPSTI_GPU_CALL("launch");
    GPSTI_FAIL_IF(!kernel || !kernel->host, GPST_ERROR_ARGUMENT, "%s: kernel: must have a host form", function);
    GPSTI_FAIL_IF(args_bytes > GPSTI_ARGS_BYTES, GPST_ERROR_ARGUMENT, "%s: args_bytes=%zu: must be at most %d",
                  function, args_bytes, GPSTI_ARGS_BYTES);
    GPSTI_FAIL_IF(args_bytes && !args, GPST_ERROR_ARGUMENT, "%s: args is NULL for %zu bytes", function, args_bytes);
    GPSTI_FAIL_IF(!kernel->gpu, GPST_ERROR_UNSUPPORTED, "%s: kernel \"%s\" has no GPU form", function, kernel->name);
    return GPST_OK;
}

/* lose_at: from this launch on the device is treated as lost. */
GPSTI_PRIVATE void gpsti_gpu_count_launch(gpsti_gpu_device* device) {
    if (device->params.lose_at <= 0 ||
        gpsti_a64_add(&device->n_launches, 1) + 1 != (uint64_t)device->params.lose_at)
        return;
    (void)gpsti_a32_add(gpsti_faults_fired(), 1);
    gpsti_a32_store(&device->last_error, GPSTI_GPU_INJECTED);
    gpsti_a32_store(&device->lost, 1);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_launch_kernel(gpsti_stream* stream, const gpsti_kernel* kernel,
                                                  const void* args, size_t args_bytes, const gpsti_exec* exec) {
    gpsti_gpu_device* device = (gpsti_gpu_device*)stream->device;
    (void)exec;
    GPSTI_TRY(gpsti_gpu_check_launch(kernel, args, args_bytes));
    gpsti_gpu_count_launch(device);
    GPSTI_TRY(gpsti_gpu_enter(stream->device, GPSTI_FAULT_LAUNCH, GPSTI_GPU_CALL("launch")));
    GPSTI_GPU_IN_CONTEXT(stream->device, "launch");
    const gpst_result result = kernel->gpu(args, gpsti_gpu_native(stream));
    if (result == GPST_ERROR_DEVICE_LOST)
        gpsti_a32_store(&device->lost, 1);
    return result;
}

#endif
