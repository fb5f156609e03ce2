/* tests/gpu_device.h -- the GPU backend of this build, and whether a device answers. */
#ifndef GPST_TEST_GPU_DEVICE_H
#define GPST_TEST_GPU_DEVICE_H

#include "test.h"

#if defined(GPSTI_HIP)
#define TEST_GPU_BACKEND "hip"
#else
#define TEST_GPU_BACKEND "cuda"
#endif

static inline void device_warmed_up(void* user_data, gpst_result result) {
    (void)user_data;
    (void)result;
}

/* false with the reason printed: the test is skipped. When true the runtime has started what threads it keeps for the
   device that params name (NULL: the first), before anybody counts any. */
static inline bool device_is_there(const char* params) {
    const gpsti_backend_i* const i = gpsti_backend_gpu();
    gpsti_host host;
    gpsti_device_info info;
    gpsti_device* device = NULL;
    gpsti_stream* stream = NULL;
    gpsti_host_init(&host, NULL, NULL);
    const bool is_there = i->device_probe(params, &info) == GPST_OK &&
                          i->device_open(&host, params, &device) == GPST_OK &&
                          i->stream_create(device, &stream) == GPST_OK &&
                          i->stream_notify(stream, device_warmed_up, NULL) == GPST_OK;
    printf("%s\n", is_there ? info.name : gpst_last_reason());
    if (stream)
        i->stream_destroy(stream);
    if (device)
        i->device_close(device);
    return is_there;
}

#endif
