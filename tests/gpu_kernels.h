/* tests/gpu_kernels.h -- argument blocks and GPU forms of the kernels that tests launch. The forms are in
   gpu_kernels.cu, which nvcc or hipcc compiles. */
#ifndef GPST_TEST_GPU_KERNELS_H
#define GPST_TEST_GPU_KERNELS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct test_step_args {
    uint64_t* value; /* device: value = 3 value + add */
    uint64_t add;
} test_step_args;

typedef struct test_gate_args {
    void* open; /* a gpsti_a32 of the host: the stream waits while it is 0 */
} test_gate_args;

typedef struct kit_args {
    const uint8_t* from;
    uint8_t* to;
    uint32_t output, bytes;
    bool fail;
} kit_args;

typedef struct test_number_args {
    const uint8_t* from;
    uint8_t* to; /* device: every byte plus add */
    uint32_t add, bytes;
} test_number_args;

#if defined(GPUSTAGE_CUDA) || defined(GPUSTAGE_HIP) || defined(__CUDACC__) || defined(__HIPCC__)
#define TEST_HAS_GPU 1
#define TEST_GPU(function) function
#ifdef __cplusplus
extern "C" {
#endif
gpst_result test_step_gpu(const void* args, void* native_stream);
gpst_result test_gate_gpu(const void* args, void* native_stream);
gpst_result test_failing_gpu(const void* args, void* native_stream);
gpst_result test_trap_gpu(const void* args, void* native_stream);
gpst_result kit_kernel_gpu(const void* args, void* native_stream);
gpst_result test_number_gpu(const void* args, void* native_stream);
/* The device that is current on this thread, and making another so. */
int test_current_device(void);
void test_set_device(int ordinal);
int test_count_devices(void);
#ifdef __cplusplus
}
#endif
#else
#define TEST_GPU(function) NULL
#endif

#endif
