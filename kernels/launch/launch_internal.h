/* kernels/launch/launch_internal.h -- how a kernel begins: on the CPU with its rows over the threads that may be had,
   on a GPU by the call that the GPU half has for it. */
#ifndef GPSTI_LAUNCH_INTERNAL_H
#define GPSTI_LAUNCH_INTERNAL_H

#include "../../core/base/base_internal.h"
#include "../simd/simd_internal.h"

/* ---- on the CPU -------------------------------------------------------------------- */
#if defined(_OPENMP) && !defined(GPUSTAGE_NO_OPENMP)
#define GPSTI_OPENMP 1
#else
#define GPSTI_OPENMP 0
#endif

/* n_threads as the public calls have it: 0 = all. What num_threads() may be given on this thread, now: 1 where the
   system gives no threads, or the caller is in a region of its own that has them all. */
GPSTI_INTERN int gpsti_team_size(uint32_t n_threads);

/* Rows first up to end of a job, on the calling thread. */
typedef void (*gpsti_rows_func)(const void* job, gpsti_simd_level level, uint64_t first, uint64_t end);

/* All rows of n_images images, n_rows each, numbered through; no call has rows of two of them. row_values: how many
   values a row reads or writes, by which rows too short to be worth another thread are kept together. */
GPSTI_INTERN void gpsti_launch_rows(gpsti_rows_func func, const void* job, gpsti_simd_level level, uint64_t n_images,
                                    uint64_t n_rows, uint64_t row_values, uint32_t n_threads);

/* ---- on a GPU ----------------------------------------------------------------------
   What call, which is made with stream, returns; without a GPU half UNSUPPORTED, and call is not compiled. */
#if defined(GPSTI_GPU)
#define GPSTI_LAUNCH_GPU(function, stream, call) (call)
#else
#define GPSTI_LAUNCH_GPU(function, stream, call)                                                                    \
    ((void)(stream),                                                                                                \
     gpsti_fail(GPST_ERROR_UNSUPPORTED,                                                                             \
                "%s: this program has no GPU code: compile gpustage.c with nvcc or hipcc, or link gpustage_gpu.cu", \
                (function)))
#endif

#endif
