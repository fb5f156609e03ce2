/* bench/gpu/live_model.cu -- the network of bench/live.c on a GPU: one block that spins by the device's own clock, then
   writes its scores. */
#include "live_model.h"

#if defined(GPUSTAGE_HIP) || (defined(__HIPCC__) && !defined(__CUDACC__))
#include <hip/hip_runtime.h>
#define RT(name) hip##name
#else
#include <cuda_runtime.h>
#define RT(name) cuda##name
#endif

/* A counter of 1 GHz on NVIDIA. On AMD one of 100 MHz. */
static __device__ uint64_t device_ns() {
#if defined(__CUDACC__)
    uint64_t ns;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(ns));
    return ns;
#else
    return 10 * (uint64_t)__builtin_amdgcn_s_memrealtime();
#endif
}

static __global__ void live_model(live_model_args args) {
    const uint64_t end = device_ns() + args.service_ns;
    while (device_ns() < end) {
    }
    for (uint32_t i = threadIdx.x; i < args.n_classes * args.n_scores; i += blockDim.x)
        args.scores[i] = args.tensor[i % args.n_scores * args.n_steps] * (float)(i / args.n_scores);
}

gpst_result live_model_gpu(const void* args, void* native_stream) {
    live_model<<<1, 1024, 0, (RT(Stream_t))native_stream>>>(*(const live_model_args*)args);
    const RT(Error_t) error = RT(GetLastError)();
    return error == RT(Success) ? GPST_OK
                                : gpst_task_fail(NULL, GPST_ERROR_DEVICE, "live_model: %s", RT(GetErrorString)(error));
}
