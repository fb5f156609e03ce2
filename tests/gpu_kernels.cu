/* tests/gpu_kernels.cu -- GPU forms of the kernels that tests launch, written as a user of the header would. */
#include "gpustage.h"

#if defined(GPUSTAGE_HIP) || (defined(__HIPCC__) && !defined(__CUDACC__))
#include <hip/hip_runtime.h>
#define RT(name) hip##name
#define RT_CALLBACK
#else
#include <cuda_runtime.h>
#define RT(name) cuda##name
#define RT_CALLBACK CUDART_CB
#endif

#include "gpu_kernels.h"

#include <time.h>

static gpst_result launched(RT(Error_t) error) {
    return error == RT(Success)
               ? GPST_OK
               : gpst_task_fail(NULL, GPST_ERROR_DEVICE, "a test's launch: %s", RT(GetErrorString)(error));
}

static __global__ void step(test_step_args args) { *args.value = *args.value * 3 + args.add; }

gpst_result test_step_gpu(const void* args, void* native_stream) {
    step<<<1, 1, 0, (RT(Stream_t))native_stream>>>(*(const test_step_args*)args);
    return launched(RT(GetLastError)());
}

/* Polls without sleeping calls: what a callback may call is little. A tool that lets only one call in at a time would
   never see the gate opened, so it opens by itself after long enough for every test to have failed. */
static void RT_CALLBACK wait_for_gate(RT(Stream_t) stream, RT(Error_t) error, void* user_data) {
    const volatile uint32_t* const open = (const volatile uint32_t*)user_data;
    (void)stream;
    (void)error;
    const time_t start = time(NULL);
    while (*open == 0 && time(NULL) - start < 10) {
    }
}

gpst_result test_gate_gpu(const void* args, void* native_stream) {
    const test_gate_args* const gate = (const test_gate_args*)args;
    return launched(RT(StreamAddCallback)((RT(Stream_t))native_stream, wait_for_gate, gate->open, 0));
}

gpst_result test_failing_gpu(const void* args, void* native_stream) {
    (void)args;
    (void)native_stream;
    return gpst_task_fail(NULL, GPST_ERROR_DEVICE, "test_failing: value=%d: fails always", 7);
}

static __global__ void trap(volatile uint32_t* nowhere) { *nowhere = 1; }

gpst_result test_trap_gpu(const void* args, void* native_stream) {
    (void)args;
    trap<<<1, 1, 0, (RT(Stream_t))native_stream>>>((volatile uint32_t*)(uintptr_t)64);
    return launched(RT(GetLastError)());
}

static __global__ void kit_flip(kit_args args) {
    for (uint32_t i = threadIdx.x; i < args.bytes; i += blockDim.x)
        args.to[i] = (uint8_t)((args.from[i] ^ 0x5a) + args.output * 41);
}

gpst_result kit_kernel_gpu(const void* args, void* native_stream) {
    const kit_args* const a = (const kit_args*)args;
    if (a->fail)
        return gpst_task_fail(NULL, GPST_ERROR_FORMAT, "the kernel found a NaN");
    kit_flip<<<1, 128, 0, (RT(Stream_t))native_stream>>>(*a);
    return launched(RT(GetLastError)());
}

static __global__ void number(test_number_args args) {
    for (uint32_t i = threadIdx.x; i < args.bytes; i += blockDim.x)
        args.to[i] = (uint8_t)(args.from[i] + args.add);
}

gpst_result test_number_gpu(const void* args, void* native_stream) {
    number<<<1, 128, 0, (RT(Stream_t))native_stream>>>(*(const test_number_args*)args);
    return launched(RT(GetLastError)());
}

int test_current_device(void) {
    int ordinal = -1;
    (void)RT(GetDevice)(&ordinal);
    return ordinal;
}

void test_set_device(int ordinal) { (void)RT(SetDevice)(ordinal); }

int test_count_devices(void) {
    int n = 0;
    return RT(GetDeviceCount)(&n) == RT(Success) ? n : 0;
}
