/* backends/gpu_runtime_internal.h -- how device code is spelt: CUDA's and HIP's
   runtime calls under one name each, what their errors become. Empty but for the unit
   of nvcc or hipcc.

   In the two-unit build the .c files are in the other unit, compiled by another compiler: device code calls of
   the host's side only inline functions and those declared GPSTI_LINK (in the .h and at the definition; make
   it so for what you need), never public ones. No vendor name is redefined: write GPSTI_RT(MemcpyAsync). */
#ifndef GPSTI_GPU_RUNTIME_INTERNAL_H
#define GPSTI_GPU_RUNTIME_INTERNAL_H

#include "backend.h"

#if defined(GPSTI_GPU_UNIT)
#if defined(GPSTI_HIP)
#include <hip/hip_runtime.h>
#define GPSTI_RT(name) hip##name
#define GPSTI_RT_NAME "hip"
#else
#include <cuda_runtime.h>
#define GPSTI_RT(name) cuda##name
#define GPSTI_RT_NAME "cuda"
#endif

typedef GPSTI_RT(Error_t) gpsti_rt_error;
typedef GPSTI_RT(Stream_t) gpsti_rt_stream;
typedef GPSTI_RT(Event_t) gpsti_rt_event;
typedef GPSTI_RT(GraphExec_t) gpsti_rt_graph_exec;

/* What is not spelt alike. */
#if defined(GPSTI_HIP)
typedef hipDeviceProp_t gpsti_rt_properties;
#define GPSTI_RT_ERROR_MEMORY hipErrorOutOfMemory
#define GPSTI_RT_COPY_ENGINES(properties) 2 /* HIP does not tell; AMD's devices have two or more */
#define GPSTI_RT_REACHES_HOST hipDeviceAttributeCanUseHostPointerForRegisteredMem
#define GPSTI_RT_CALLBACK
#else
typedef cudaDeviceProp gpsti_rt_properties;
#define GPSTI_RT_ERROR_MEMORY cudaErrorMemoryAllocation
#define GPSTI_RT_COPY_ENGINES(properties) ((properties).asyncEngineCount)
#define GPSTI_RT_REACHES_HOST cudaDevAttrCanUseHostPointerForRegisteredMem
#define GPSTI_RT_CALLBACK CUDART_CB
#endif

/* Errors after which the runtime answers every call with the same error: the process has lost the device. The
   numbers are those that CUDA and HIP share; older headers do not name them all. */
GPSTI_PRIVATE bool gpsti_rt_error_is_sticky(gpsti_rt_error error) {
    switch ((int)error) {
    case 4:   /* driver shutting down */
    case 46:  /* devices unavailable */
    case 214: /* uncorrectable memory error */
    case 220: /* uncorrectable link error */
    case 226: /* contained memory error */
    case 700: /* illegal address */
    case 702: /* launch timeout */
    case 709: /* context destroyed */
    case 710: /* device-side assertion */
    case 714: /* hardware stack error */
    case 715: /* illegal instruction */
    case 716: /* misaligned address */
    case 717: /* invalid address space */
    case 718: /* invalid program counter */
    case 719: /* launch failure */
        return true;
    default:
        return false;
    }
}

/* "function: the vendor's sentence (its name, its number)", with the result that it means. */
GPSTI_PRIVATE gpst_result gpsti_rt_fail(gpsti_rt_error error, const char* function) {
    return gpsti_fail(error == GPSTI_RT_ERROR_MEMORY          ? GPST_ERROR_DEVICE_MEMORY
                      : gpsti_rt_error_is_sticky(error)       ? GPST_ERROR_DEVICE_LOST
                      : error == GPSTI_RT(ErrorNotReady)      ? GPST_ERROR_WOULD_BLOCK
                      : error == GPSTI_RT(ErrorInvalidValue)  ? GPST_ERROR_ARGUMENT
                                                              : GPST_ERROR_DEVICE,
                      "%s: %s (%s, %d)", function, GPSTI_RT(GetErrorString)(error),
                      GPSTI_RT(GetErrorName)(error), (int)error);
}

/* OK, or that. The runtime's note of the error is cleared: who looks at it next is not told of ours. */
GPSTI_PRIVATE gpst_result gpsti_rt_check(gpsti_rt_error error, const char* function) {
    if (error == GPSTI_RT(Success))
        return GPST_OK;
    (void)GPSTI_RT(GetLastError)();
    return gpsti_rt_fail(error, function);
}

#define GPSTI_RT_TRY(expression, function) GPSTI_TRY(gpsti_rt_check((expression), (function)))
#endif

#endif
