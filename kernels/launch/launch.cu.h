/* kernels/launch/launch.cu.h -- how a kernel is spelt and launched on a GPU. Empty but for the unit of nvcc or hipcc.

   A kernel's file is kernels/NAME.cu.h: it includes this header, stands in amalgamate.py's list DEVICE, has all
   its code under #if defined(GPSTI_GPU_UNIT), and one launcher that C code knows:

       GPSTI_LINK gpst_result gpsti_NAME_kernel_gpu(const void* args, void* native_stream);

   declared so in NAME_internal.h, under #if defined(GPSTI_GPU).

   GPSTI_KERNEL void gpsti_fill_device(const gpsti_fill_args args) { ... }
   return gpsti_gpu_launch("gpsti_fill_kernel_gpu", gpsti_fill_device, grid, block, &args, native_stream);

   A kernel takes one struct of plain data, by value, of at most 4096 bytes; it may be a template's instance. The
   runtime's note of errors is neither read nor cleared, so what the host application left there is not taken
   for ours. */
#ifndef GPSTI_LAUNCH_CU_H
#define GPSTI_LAUNCH_CU_H

#include "../../backends/gpu_runtime_internal.h"
#include "launch_internal.h"

#if defined(GPSTI_GPU_UNIT)

#define GPSTI_KERNEL __global__ GPSTI_PRIVATE

template <typename Args>
GPSTI_PRIVATE gpst_result gpsti_gpu_launch(const char* function, void (*kernel)(Args), dim3 grid, dim3 block,
                                           const Args* args, void* native_stream) {
    static_assert(sizeof(Args) <= 4096, "what a kernel takes by value");
    void* parameters[1] = {const_cast<void*>(static_cast<const void*>(args))};
    return gpsti_rt_check(GPSTI_RT(LaunchKernel)(reinterpret_cast<const void*>(kernel), grid, block, parameters, 0,
                                                 static_cast<gpsti_rt_stream>(native_stream)),
                          function);
}

/* Blocks of step each that n need. */
GPSTI_PRIVATE uint32_t gpsti_gpu_blocks(uint64_t n, uint32_t step) { return (uint32_t)((n + step - 1) / step); }

/* n elements that one instruction moves. */
template <typename T, uint32_t n>
struct alignas(sizeof(T) * n) gpsti_lanes {
    T at[n];
};

/* Whether this and all from it in steps of pitch are multiples of bytes. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_lanes_fit(const void* data, int64_t pitch, uint32_t bytes) {
    return ((uintptr_t)data | (uintptr_t)pitch) % bytes == 0;
}

#endif
#endif
