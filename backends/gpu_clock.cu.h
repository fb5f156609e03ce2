/* backends/gpu_clock.cu.h -- when events of CUDA and HIP happened, on the host's clock. */
#ifndef GPSTI_GPU_CLOCK_CU_H
#define GPSTI_GPU_CLOCK_CU_H

#include "gpu_internal.h"

#if defined(GPSTI_GPU_UNIT)

#define GPSTI_GPU_CLOCK_STEP_NS 1000000000

GPSTI_PRIVATE gpst_result gpsti_gpu_clock_open(gpsti_gpu_device* device) {
    gpsti_gpu_clock* clock = &device->clock;
    gpsti_device* base = &device->base;
    GPSTI_GPU_IN_CONTEXT(base, "device_open");
    GPSTI_TRY(gpsti_mutex_init(&clock->mutex));
    device->has_mutex = true;
    GPSTI_GPU_TRY(base, GPSTI_RT(StreamCreateWithFlags)(&clock->stream, GPSTI_RT(StreamNonBlocking)), "device_open");
    GPSTI_GPU_TRY(base, GPSTI_RT(EventCreateWithFlags)(&clock->origin, GPSTI_RT(EventBlockingSync)), "device_open");
    GPSTI_GPU_TRY(base, GPSTI_RT(EventCreateWithFlags)(&clock->next, GPSTI_RT(EventBlockingSync)), "device_open");
    GPSTI_GPU_TRY(base, GPSTI_RT(EventRecord)(clock->origin, clock->stream), "device_open");
    GPSTI_GPU_TRY(base, GPSTI_RT(EventSynchronize)(clock->origin), "device_open");
    clock->origin_ns = clock->recorded_ns = gpsti_now_ns();
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_gpu_clock_close(gpsti_gpu_device* device) {
    gpsti_gpu_clock* clock = &device->clock;
    const gpsti_gpu_current current(&device->base);
    if (clock->next && !current.gone())
        gpsti_gpu_ignore(&device->base, GPSTI_RT(EventDestroy)(clock->next));
    if (clock->origin && !current.gone())
        gpsti_gpu_ignore(&device->base, GPSTI_RT(EventDestroy)(clock->origin));
    if (clock->stream && !current.gone())
        gpsti_gpu_ignore(&device->base, GPSTI_RT(StreamDestroy)(clock->stream));
    if (device->has_mutex)
        gpsti_mutex_term(&clock->mutex);
}

/* Under the mutex. */
GPSTI_PRIVATE void gpsti_gpu_clock_take_over(gpsti_gpu_clock* clock) {
    float passed_ms = 0;
    if (!clock->next_recorded || GPSTI_RT(EventQuery)(clock->next) != GPSTI_RT(Success) ||
        GPSTI_RT(EventElapsedTime)(&passed_ms, clock->origin, clock->next) != GPSTI_RT(Success))
        return;
    const gpsti_rt_event old = clock->origin;
    clock->origin = clock->next;
    clock->next = old;
    clock->next_recorded = false;
    clock->origin_ns += (int64_t)((double)passed_ms * 1e6);
}

/* Before an event is recorded: moves the origin on when it is time to. */
GPSTI_PRIVATE void gpsti_gpu_clock_tick(gpsti_gpu_device* device) {
    gpsti_gpu_clock* clock = &device->clock;
    const int64_t now_ns = gpsti_now_ns();
    gpsti_mutex_lock(&clock->mutex);
    if (!clock->next_recorded && now_ns - clock->recorded_ns > GPSTI_GPU_CLOCK_STEP_NS) {
        clock->next_recorded = GPSTI_RT(EventRecord)(clock->next, clock->stream) == GPSTI_RT(Success);
        clock->recorded_ns = now_ns;
    }
    gpsti_mutex_unlock(&clock->mutex);
}

/* An event from before the origin has a negative time since it. */
GPSTI_PRIVATE gpst_result gpsti_gpu_clock_read(gpsti_gpu_device* device, gpsti_rt_event event, int64_t* time_ns) {
    gpsti_gpu_clock* clock = &device->clock;
    float passed_ms = 0;
    gpsti_mutex_lock(&clock->mutex);
    gpsti_gpu_clock_take_over(clock);
    const gpsti_rt_error error = GPSTI_RT(EventElapsedTime)(&passed_ms, clock->origin, event);
    *time_ns = clock->origin_ns + (int64_t)((double)passed_ms * 1e6);
    gpsti_mutex_unlock(&clock->mutex);
    return gpsti_gpu_result(&device->base, error, GPSTI_GPU_CALL("event_time"));
}

#endif
#endif
