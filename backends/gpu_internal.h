/* backends/gpu_internal.h -- what a device, a stream, an event and a graph of CUDA or
   HIP are made of. Empty but for the unit of nvcc or hipcc. */
#ifndef GPSTI_GPU_INTERNAL_H
#define GPSTI_GPU_INTERNAL_H

#include "gpu_context_internal.h"
#include "params_internal.h"

#if defined(GPSTI_GPU_UNIT)

#define GPSTI_GPU_CALL(name) "backend " GPSTI_RT_NAME ": " name

typedef struct gpsti_gpu_params { /* all doubles: see gpsti_param */
    double device;                /* ordinal; below 0: not said */
    double oom_mb;                /* MiB that may be allocated; 0 = as many as there are */
    double fail[GPSTI_N_FAULTS];
    double lose_at; /* the launch at which the device is treated as lost; 0 = never */
} gpsti_gpu_params;

/* Events give times since an event, as floats of milliseconds: good to a microsecond for some seconds only. So the
   origin moves on: every second or so the next one is recorded, and when it has happened it takes over. */
typedef struct gpsti_gpu_clock {
    gpsti_mutex mutex;
    gpsti_rt_stream stream;
    gpsti_rt_event origin, next;
    int64_t origin_ns;   /* time of the origin */
    int64_t recorded_ns; /* when the latest of the two was recorded, by the host's clock */
    bool next_recorded;
} gpsti_gpu_clock;

typedef struct gpsti_gpu_device {
    gpsti_device base;
    gpsti_gpu_params params;
    gpsti_gpu_context context;
    bool context_is_open;
    gpsti_a32 lost;
    gpsti_a32 last_error; /* vendor's number; GPSTI_GPU_INJECTED */
    gpsti_a64 n_calls[GPSTI_N_FAULTS];
    gpsti_a64 n_launches;
    gpsti_a64 used_bytes;
    bool has_mutex;
    gpsti_gpu_clock clock;
} gpsti_gpu_device;
#define GPSTI_GPU_INJECTED 0xffffffffu
#define GPSTI_GPU_CONTEXT_DESTROYED 709u

typedef struct gpsti_gpu_stream gpsti_gpu_stream;

/* A notification on its way. Notes stay with the stream, from its creation on, and are used again. */
typedef struct gpsti_gpu_note gpsti_gpu_note;
struct gpsti_gpu_note {
    gpsti_gpu_note* next;
    gpsti_gpu_stream* stream;
    void (*func)(void* user_data, gpst_result result);
    void* user_data;
};

struct gpsti_gpu_stream {
    gpsti_stream base;
    gpsti_rt_stream native;
    gpsti_rt_event idle;
    bool foreign; /* the host application's */
    bool recording;
    bool has_mutex;
    gpsti_mutex mutex; /* over all below */
    gpsti_cond delivered;
    gpsti_gpu_note* free_notes;
    uint32_t n_pending;
};

typedef struct gpsti_gpu_event {
    gpsti_event base;
    gpsti_rt_event native;
    bool recorded;
} gpsti_gpu_event;

typedef struct gpsti_gpu_graph {
    gpsti_graph base;
    gpsti_rt_graph_exec native;
    gpsti_rt_event done; /* of its latest launch */
} gpsti_gpu_graph;

/* Keeps the vendor's error for last_error, and notices the loss of the device. */
GPSTI_PRIVATE void gpsti_gpu_note_error(gpsti_gpu_device* device, gpsti_rt_error error) {
    gpsti_a32_store(&device->last_error, (uint32_t)error);
    if (gpsti_rt_error_is_sticky(error))
        gpsti_a32_store(&device->lost, 1);
}

/* The device's context current on this thread for as long as this lives; then again what was. With an error, which is
   that the context is gone, it is not, and no call may be made: what was of it is gone, too. */
struct gpsti_gpu_current {
    gpsti_gpu_device* device;
    gpsti_gpu_before before;
    gpsti_rt_error error;
    explicit gpsti_gpu_current(const gpsti_device* base) : device((gpsti_gpu_device*)(uintptr_t)base), before(),
                                                           error(GPSTI_RT(Success)) {
        error = gpsti_gpu_context_enter(&device->context, &before);
        if (error != GPSTI_RT(Success))
            gpsti_gpu_note_error(device, error);
    }
    ~gpsti_gpu_current() { gpsti_gpu_context_leave(&device->context, &before); }
    bool gone() const { return error != GPSTI_RT(Success); }
    gpsti_gpu_current(const gpsti_gpu_current&) = delete;
    gpsti_gpu_current& operator=(const gpsti_gpu_current&) = delete;
};

/* LOST, in words, which a thread of the runtime may ask for as well. */
GPSTI_PRIVATE gpst_result gpsti_gpu_check_lost(const gpsti_device* base, const char* function) {
    const gpsti_gpu_device* const device = (const gpsti_gpu_device*)base;
    const char* const context = gpsti_a32_load(&device->last_error) == GPSTI_GPU_CONTEXT_DESTROYED
                                    ? gpsti_gpu_context_lost_text(&device->context)
                                    : NULL;
    GPSTI_FAIL_IF(gpsti_a32_load(&device->lost), GPST_ERROR_DEVICE_LOST, "%s: the device is lost: %s", function,
                  context ? context : base->i->last_error(base));
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_check_current(const gpsti_gpu_current* current, const char* function) {
    if (!current->gone())
        return GPST_OK;
    GPSTI_TRY(gpsti_gpu_check_lost(&current->device->base, function));
    return gpsti_rt_fail(current->error, function);
}

/* For the rest of the function. */
#define GPSTI_GPU_IN_CONTEXT(device, name)  \
    const gpsti_gpu_current current(device); \
    GPSTI_TRY(gpsti_gpu_check_current(&current, GPSTI_GPU_CALL(name)))

/* Every call that can fail begins here: a lost device refuses, and the n-th call fails on request. */
GPSTI_PRIVATE gpst_result gpsti_gpu_enter(gpsti_device* base, gpsti_fault fault, const char* function) {
    gpsti_gpu_device* device = (gpsti_gpu_device*)base;
    GPSTI_TRY(gpsti_gpu_check_lost(base, function));
    if (fault == GPSTI_FAULT_NONE || device->params.fail[fault] <= 0)
        return GPST_OK;
    const uint64_t n = gpsti_a64_add(&device->n_calls[fault], 1) + 1;
    if (n != (uint64_t)device->params.fail[fault])
        return GPST_OK;
    (void)gpsti_a32_add(gpsti_faults_fired(), 1);
    gpsti_a32_store(&device->last_error, GPSTI_GPU_INJECTED);
    return gpsti_fail(fault == GPSTI_FAULT_ALLOC        ? GPST_ERROR_DEVICE_MEMORY
                      : fault == GPSTI_FAULT_HOST_ALLOC ? GPST_ERROR_MEMORY
                                                        : GPST_ERROR_DEVICE,
                      "%s: injected fault at call %u", function, (unsigned)n);
}

/* What every runtime call that can fail ends with. */
GPSTI_PRIVATE gpst_result gpsti_gpu_result(gpsti_device* device, gpsti_rt_error error, const char* function) {
    if (error == GPSTI_RT(Success))
        return GPST_OK;
    gpsti_gpu_note_error((gpsti_gpu_device*)device, error);
    return gpsti_rt_check(error, function);
}

/* The same for what cannot fail: frees and destroys leave the reason alone. */
GPSTI_PRIVATE void gpsti_gpu_ignore(gpsti_device* device, gpsti_rt_error error) {
    if (error == GPSTI_RT(Success))
        return;
    gpsti_gpu_note_error((gpsti_gpu_device*)device, error);
    (void)GPSTI_RT(GetLastError)();
}

#define GPSTI_GPU_TRY(device, expression, name) \
    GPSTI_TRY(gpsti_gpu_result((device), (expression), GPSTI_GPU_CALL(name)))

#endif
#endif
