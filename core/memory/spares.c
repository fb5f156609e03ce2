/* core/memory/spares.c -- streams and events between two pipelines of a context. Owns them from put to take. */
#include "../base/platform_internal.h"

#include "../device/context_internal.h"
#include "keep_internal.h"
#include "spares_internal.h"

GPSTI_INTERN gpst_result gpsti_spares_init(gpsti_spares* spares, gpsti_device* device) {
    spares->device = device;
    return gpsti_mutex_init(&spares->mutex);
}

GPSTI_INTERN void gpsti_spares_term(gpsti_spares* spares) {
    gpsti_spares_clear(spares);
    gpsti_mutex_term(&spares->mutex);
}

/* What was given back last: a stream that a thread plays finds its thread the warmest. */
GPSTI_INTERN gpst_result gpsti_spares_take_stream(gpsti_spares* spares, gpsti_device* device, gpsti_stream** out) {
    gpsti_mutex_lock(&spares->mutex);
    const bool has = device == spares->device && spares->n_streams > 0;
    if (has)
        *out = spares->streams[--spares->n_streams];
    gpsti_mutex_unlock(&spares->mutex);
    return has ? GPST_OK : device->i->stream_create(device, out);
}

GPSTI_INTERN gpst_result gpsti_spares_take_event(gpsti_spares* spares, gpsti_device* device, gpsti_event** out) {
    gpsti_mutex_lock(&spares->mutex);
    const bool has = device == spares->device && spares->n_events > 0;
    if (has)
        *out = spares->events[--spares->n_events];
    gpsti_mutex_unlock(&spares->mutex);
    return has ? GPST_OK : device->i->event_create(device, out);
}

GPSTI_INTERN void gpsti_spares_put_stream(gpsti_spares* spares, gpsti_stream* stream) {
    gpsti_mutex_lock(&spares->mutex);
    const bool fits = stream->device == spares->device && spares->n_streams < GPSTI_SPARES_STREAMS;
    if (fits)
        spares->streams[spares->n_streams++] = stream;
    gpsti_mutex_unlock(&spares->mutex);
    if (!fits)
        stream->device->i->stream_destroy(stream);
}

GPSTI_INTERN void gpsti_spares_put_event(gpsti_spares* spares, gpsti_event* event) {
    gpsti_mutex_lock(&spares->mutex);
    const bool fits = event->device == spares->device && spares->n_events < GPSTI_SPARES_EVENTS;
    if (fits)
        spares->events[spares->n_events++] = event;
    gpsti_mutex_unlock(&spares->mutex);
    if (!fits)
        event->device->i->event_destroy(event);
}

/* One by one: the lock is not kept while a driver is at it. */
GPSTI_PRIVATE gpsti_stream* gpsti_spares_next_stream(gpsti_spares* spares) {
    gpsti_mutex_lock(&spares->mutex);
    gpsti_stream* const stream = spares->n_streams > 0 ? spares->streams[--spares->n_streams] : NULL;
    gpsti_mutex_unlock(&spares->mutex);
    return stream;
}

GPSTI_PRIVATE gpsti_event* gpsti_spares_next_event(gpsti_spares* spares) {
    gpsti_mutex_lock(&spares->mutex);
    gpsti_event* const event = spares->n_events > 0 ? spares->events[--spares->n_events] : NULL;
    gpsti_mutex_unlock(&spares->mutex);
    return event;
}

GPSTI_INTERN void gpsti_spares_clear(gpsti_spares* spares) {
    gpsti_stream* stream = NULL;
    gpsti_event* event = NULL;
    while ((stream = gpsti_spares_next_stream(spares)) != NULL)
        stream->device->i->stream_destroy(stream);
    while ((event = gpsti_spares_next_event(spares)) != NULL)
        event->device->i->event_destroy(event);
}

GPSTI_INTERN void gpsti_spares_lose(gpsti_spares* spares) {
    gpsti_mutex_lock(&spares->mutex);
    spares->device = NULL;
    gpsti_mutex_unlock(&spares->mutex);
}

GPSTI_INTERN void gpsti_context_lose_device(gpst_context* context) {
    gpsti_keep_lose(context->keep);
    gpsti_spares_lose(context->spares);
}
