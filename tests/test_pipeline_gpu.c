/* tests/test_pipeline_gpu.c -- what test_pipeline_device.c says of the simulated device, said of the GPU. */
#include "gpu_device.h"

#define DEVICE TEST_GPU_BACKEND
#define DEVICE_WITH(modelled) TEST_GPU_BACKEND
#define DEVICE_AND(modelled) ""
#define DEVICE_OUT_OF_MEMORY "over oom_mb"
#define DEVICE_IS_MODELLED 0

#include "test_pipeline_device.c"
