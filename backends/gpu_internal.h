/* backends/gpu_internal.h -- what a device, a stream, an event and a graph of CUDA or
   HIP are made of. Empty but for the unit of nvcc or hipcc. */
#ifndef GPSTI_GPU_INTERNAL_H
#define GPSTI_GPU_INTERNAL_H

#include "gpu_runtime_internal.h"
#include "params_internal.h"

#if defined(GPSTI_GPU_UNIT)

#define GPSTI_GPU_CALL(name) "backend " GPSTI_RT_NAME ": " name

typedef struct gpsti_gpu_params { /* all doubles: see gpsti_param */
    double device;                /* ordinal */
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
    int ordinal;
    gpsti_a32 lost;
    gpsti_a32 last_error; /* vendor's number; GPSTI_GPU_INJECTED */
    gpsti_a64 n_calls[GPSTI_N_FAULTS];
    gpsti_a64 n_launches;
    gpsti_a64 used_bytes;
    bool has_mutex;
    gpsti_gpu_clock clock;
} gpsti_gpu_device;
#define GPSTI_GPU_INJECTED 0xffffffffu

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

/* The device current on this thread for as long as this lives; then the host application's again (since CUDA 12
   that makes the latter's context, if it has none yet). Runtime calls act in the device's primary context. */
struct gpsti_gpu_current {
    int before;
    bool changed;
    explicit gpsti_gpu_current(const gpsti_device* device) : before(0), changed(false) {
        const int ordinal = ((const gpsti_gpu_device*)device)->ordinal;
        if (GPSTI_RT(GetDevice)(&before) != GPSTI_RT(Success) || before != ordinal)
            changed = GPSTI_RT(SetDevice)(ordinal) == GPSTI_RT(Success);
    }
    ~gpsti_gpu_current() {
        if (changed)
            (void)GPSTI_RT(SetDevice)(before);
    }
    gpsti_gpu_current(const gpsti_gpu_current&) = delete;
    gpsti_gpu_current& operator=(const gpsti_gpu_current&) = delete;
};

/* Every call that can fail begins here: a lost device refuses, and the n-th call fails on request. */
GPSTI_PRIVATE gpst_result gpsti_gpu_enter(gpsti_device* base, gpsti_fault fault, const char* function) {
    gpsti_gpu_device* device = (gpsti_gpu_device*)base;
    if (gpsti_a32_load(&device->lost))
        return gpsti_fail(GPST_ERROR_DEVICE_LOST, "%s: the device is lost: %s", function,
                          base->i->last_error(base));
    if (fault == GPSTI_FAULT_NONE || device->params.fail[fault] <= 0)
        return GPST_OK;
    const uint64_t n = gpsti_a64_add(&device->n_calls[fault], 1) + 1;
    if (n != (uint64_t)device->params.fail[fault])
        return GPST_OK;
    gpsti_a32_store(&device->last_error, GPSTI_GPU_INJECTED);
    return gpsti_fail(fault == GPSTI_FAULT_ALLOC        ? GPST_ERROR_DEVICE_MEMORY
                      : fault == GPSTI_FAULT_HOST_ALLOC ? GPST_ERROR_MEMORY
                                                        : GPST_ERROR_DEVICE,
                      "%s: injected fault at call %u", function, (unsigned)n);
}

/* Keeps the vendor's error for last_error, and notices the loss of the device. */
GPSTI_PRIVATE void gpsti_gpu_note_error(gpsti_gpu_device* device, gpsti_rt_error error) {
    gpsti_a32_store(&device->last_error, (uint32_t)error);
    if (gpsti_rt_error_is_sticky(error))
        gpsti_a32_store(&device->lost, 1);
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
