/* tests/test_batch_gpu.c -- what test_pipeline_batch.c says of the simulated device, said of the GPU. */
#include "gpu_device.h"

#define DEVICE TEST_GPU_BACKEND
#define DEVICE_IS_MODELLED 0

#include "test_pipeline_batch.c"
