/* core/device/device_internal.h -- what the public device, stream and event are, over a backend's. */
#ifndef GPSTI_DEVICE_INTERNAL_H
#define GPSTI_DEVICE_INTERNAL_H

#include "../../backends/backend.h"
#include "commands_internal.h"
#include "device.h"
#include "enqueue.h"
#include "stream.h"

#define GPSTI_CACHE_MOST 128

typedef enum gpsti_cached { GPSTI_CACHED_STREAMS = 0, GPSTI_CACHED_EVENTS = 1 } gpsti_cached;

typedef struct gpsti_cached_list {
    uint32_t n, most;
    void* objects[GPSTI_CACHE_MOST];
} gpsti_cached_list;

/* core/device/device_cache.c: destroyed streams and events, which the next create takes. */
typedef struct gpsti_device_cache {
    gpsti_mutex mutex;
    bool on;
    gpsti_cached_list lists[2];
} gpsti_device_cache;

struct gpst_device {
    gpsti_device* device;
    gpsti_host* host;      /* the context's, or own_host */
    gpst_context* context; /* NULL: opened by itself */
    gpsti_a32* fork_guard; /* the context's where there is one; NULL: processes are told apart by their number */
    const char* reason;    /* the context's, or own_reason */
    gpsti_device_info info; /* as it was when opened */
    uint32_t n_threads;    /* of a kernel that the host computes at once */
    gpsti_a64 n_objects;
    gpsti_a64 n_memories, memory_bytes; /* of them, those of gpst_memory_create and gpst_memory_register */
    gpsti_a32 lost; /* the engine or the memory has seen that the device is gone */
    gpsti_device_cache cache;
};

struct gpst_stream {
    gpst_device* device;
    gpsti_stream* stream;
    bool wrapped; /* the native stream is the application's */
    bool records; /* between gpst_graph_begin and the end of the recording, which is commands */
    gpsti_commands commands;
};

struct gpst_event {
    gpst_device* device;
    gpsti_event* event;
    gpsti_a32 recorded; /* since gpst_event_create: a cached event may have an older record */
};

GPSTI_INTERN bool gpsti_device_forked(const gpst_device* device);
/* ARGUMENT for NULL; FORKED in a child of the process that opened it. */
GPSTI_INTERN gpst_result gpsti_device_check(const gpst_device* device, const char* function);
/* Memory that the user says is the device's. */
GPSTI_INTERN gpst_result gpsti_device_check_memory(const gpst_device* device, const void* ptr, const char* function);
GPSTI_INTERN gpst_result gpsti_stream_check(const gpst_stream* stream, const char* function);
/* STATE: what cannot be in a graph. */
GPSTI_INTERN gpst_result gpsti_stream_check_not_recording(const gpst_stream* stream, const char* function);
/* Puts "function: " before the backend's reason, where it failed. */
GPSTI_INTERN gpst_result gpsti_device_result(gpst_result result, const char* function);
/* Zeroed metadata of an object of the device, which counts as one until it is freed; NULL with the reason set. */
GPSTI_INTERN void* gpsti_device_add_object(gpst_device* device, size_t bytes);
GPSTI_INTERN void gpsti_device_drop_object(gpst_device* device, void* object, size_t bytes);

/* Nothing is cached before init, nor from a device that is lost. put: false, and the object stays the caller's, where
   the cache is full or off. Any thread, all. */
GPSTI_INTERN gpst_result gpsti_device_cache_init(gpst_device* device);
GPSTI_INTERN void gpsti_device_cache_term(gpst_device* device);
GPSTI_INTERN void* gpsti_device_cache_take(gpst_device* device, gpsti_cached kind);
GPSTI_INTERN bool gpsti_device_cache_put(gpst_device* device, gpsti_cached kind, void* object);
GPSTI_INTERN void gpsti_device_cache_clear(gpst_device* device);

/* ---- what the public calls do, without their checks and without their names in the reason --------------------- */

GPSTI_INTERN gpst_result gpsti_stream_make(gpst_device* device, gpst_stream** out); /* cached, or new */
GPSTI_INTERN gpst_result gpsti_event_make(gpst_device* device, gpst_event** out);
GPSTI_INTERN void gpsti_stream_free(gpst_stream* stream); /* not into the cache */
GPSTI_INTERN void gpsti_event_free(gpst_event* event);
GPSTI_INTERN gpst_result gpsti_stream_wait_idle(gpst_stream* stream);
/* As the backend's stream_notify: func is called by a thread of the device's, and may not call the device. */
GPSTI_INTERN gpst_result gpsti_stream_notify(gpst_stream* stream, void (*func)(void* user_data, gpst_result result),
                                             void* user_data);
GPSTI_INTERN gpst_result gpsti_event_record(gpst_event* event, gpst_stream* stream);
GPSTI_INTERN gpst_result gpsti_stream_await(gpst_stream* stream, gpst_event* event); /* its work waits for the event */
GPSTI_INTERN gpst_result gpsti_event_time(gpst_event* event, int64_t* time_ns);
GPSTI_INTERN gpst_result gpsti_stream_copy(gpst_stream* stream, void* dst, const void* src, size_t bytes);
GPSTI_INTERN gpst_result gpsti_stream_fill(gpst_stream* stream, void* dst, int value, size_t bytes);
/* The user's kernel; function begins the sentence of what is refused. */
GPSTI_INTERN gpst_result gpsti_kernel_put(const char* function, const gpst_kernel* kernel, const void* args,
                                          size_t args_bytes, gpst_stream* stream, const gpsti_exec* exec);
GPSTI_INTERN gpst_result gpsti_stream_launch(gpst_stream* stream, const gpsti_kernel* kernel, const void* args,
                                             size_t args_bytes, const gpsti_exec* exec);

#endif
