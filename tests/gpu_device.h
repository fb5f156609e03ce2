/* tests/gpu_device.h -- the GPU backend of this build, and whether a device answers. */
#ifndef GPST_TEST_GPU_DEVICE_H
#define GPST_TEST_GPU_DEVICE_H

#include "test.h"

#if defined(GPSTI_HIP)
#define TEST_GPU_BACKEND "hip"
#else
#define TEST_GPU_BACKEND "cuda"
#endif

/* false with the reason printed: the test is skipped. */
static inline bool device_is_there(void) {
    gpsti_device_info info;
    const bool is_there = gpsti_backend_gpu()->device_probe(NULL, &info) == GPST_OK;
    printf("%s\n", is_there ? info.name : gpst_last_reason());
    return is_there;
}

#endif
