/* core/memory/spares_internal.h -- streams and events that the pipelines of a context gave back, kept for the next:
   a driver
   takes about 50 us to make a stream and to unmake it, of which a short run has few. */
#ifndef GPSTI_SPARES_INTERNAL_H
#define GPSTI_SPARES_INTERNAL_H

#include "../../backends/backend.h"

#define GPSTI_SPARES_STREAMS 32
#define GPSTI_SPARES_EVENTS 128

typedef struct gpsti_spares gpsti_spares;
struct gpsti_spares {
    gpsti_mutex mutex;    /* over all below; not held while a device makes or unmakes something */
    gpsti_device* device; /* whose they are; NULL = nothing is kept */
    uint32_t n_streams, n_events;
    gpsti_stream* streams[GPSTI_SPARES_STREAMS];
    gpsti_event* events[GPSTI_SPARES_EVENTS];
};

/* device NULL: nothing is to be kept. */
GPSTI_INTERN gpst_result gpsti_spares_init(gpsti_spares* spares, gpsti_device* device);
GPSTI_INTERN void gpsti_spares_term(gpsti_spares* spares);

/* The rest from any thread. As stream_create and event_create, but of what is kept first. */
GPSTI_INTERN gpst_result gpsti_spares_take_stream(gpsti_spares* spares, gpsti_device* device, gpsti_stream** out);
GPSTI_INTERN gpst_result gpsti_spares_take_event(gpsti_spares* spares, gpsti_device* device, gpsti_event** out);
/* The stream is idle, and has nothing to say that nobody was told of; no stream is to pass the event. */
GPSTI_INTERN void gpsti_spares_put_stream(gpsti_spares* spares, gpsti_stream* stream);
GPSTI_INTERN void gpsti_spares_put_event(gpsti_spares* spares, gpsti_event* event);
GPSTI_INTERN void gpsti_spares_clear(gpsti_spares* spares);
/* The device is lost: from now on nothing is kept. */
GPSTI_INTERN void gpsti_spares_lose(gpsti_spares* spares);

/* From now on nothing of the device's is kept for the next pipeline, neither memory nor streams. */
GPSTI_INTERN void gpsti_context_lose_device(gpst_context* context);

#endif
