/* core/memory/device_cache.c -- streams and events that were put back, for whoever takes the next: a driver needs about
   50 us to make a stream. Owns them from put to take. */
#include "../base/platform_internal.h"

#include "memory_internal.h"

/* Streams and events begin alike. */
GPSTI_PRIVATE gpsti_device* gpsti_handle_device(const void* handle) { return ((const gpsti_stream*)handle)->device; }

GPSTI_PRIVATE gpst_result gpsti_handle_create(gpsti_device* device, gpsti_handle_kind kind, void** out) {
    gpsti_stream* stream = NULL;
    gpsti_event* event = NULL;
    const int64_t begin_ns = gpsti_now_ns();
    const gpst_result result = kind == GPSTI_HANDLE_STREAM ? device->i->stream_create(device, &stream)
                                                           : device->i->event_create(device, &event);
    (void)gpsti_memory_count_growth(begin_ns);
    *out = kind == GPSTI_HANDLE_STREAM ? (void*)stream : (void*)event;
    return result;
}

GPSTI_PRIVATE void gpsti_handle_destroy(gpsti_handle_kind kind, void* handle) {
    const gpsti_backend_i* const i = gpsti_handle_device(handle)->i;
    if (kind == GPSTI_HANDLE_STREAM)
        i->stream_destroy((gpsti_stream*)handle);
    else
        i->event_destroy((gpsti_event*)handle);
}

/* Only the context's own device is worth it, and one whose operations are done when a call returns is not. */
GPSTI_PRIVATE bool gpsti_handles_keep(const gpst_context* context, const gpsti_device* device) {
    return device == context->device && context->device_info.asynchronous && !context->memory->lost &&
           context->memory->max_kept_bytes[0] > 1;
}

GPSTI_INTERN gpst_result gpsti_handle_take(gpst_context* context, gpsti_device* device, gpsti_handle_kind kind,
                                           void** out) {
    gpsti_handles* const its = &context->memory->handles[kind];
    gpsti_mutex_lock(&context->memory->mutex);
    *out = gpsti_handles_keep(context, device) && its->n > 0 ? its->handles[--its->n] : NULL; /* the warmest */
    gpsti_mutex_unlock(&context->memory->mutex);
    return *out ? GPST_OK : gpsti_handle_create(device, kind, out);
}

GPSTI_INTERN void gpsti_handle_put(gpst_context* context, gpsti_handle_kind kind, void* handle) {
    gpsti_handles* const its = &context->memory->handles[kind];
    const uint32_t most = kind == GPSTI_HANDLE_STREAM ? GPSTI_HANDLES_MOST / 4 : GPSTI_HANDLES_MOST;
    gpsti_mutex_lock(&context->memory->mutex);
    const bool stays = gpsti_handles_keep(context, gpsti_handle_device(handle)) && its->n < most;
    if (stays)
        its->handles[its->n++] = handle;
    gpsti_mutex_unlock(&context->memory->mutex);
    if (!stays)
        gpsti_handle_destroy(kind, handle);
}

/* The lock is not held while a driver is at work. */
GPSTI_INTERN void gpsti_handles_clear(gpst_context* context) {
    for (int kind = 0; kind < 2; kind++) {
        gpsti_handles gone;
        gpsti_mutex_lock(&context->memory->mutex);
        gone = context->memory->handles[kind];
        context->memory->handles[kind].n = 0;
        gpsti_mutex_unlock(&context->memory->mutex);
        while (gone.n > 0)
            gpsti_handle_destroy((gpsti_handle_kind)kind, gone.handles[--gone.n]);
    }
}

GPSTI_INTERN void gpsti_context_lose_device(gpst_context* context) {
    gpsti_mutex_lock(&context->memory->mutex);
    context->memory->lost = true;
    gpsti_mutex_unlock(&context->memory->mutex);
}
