/* core/base/config.h -- what the user may set before including gpustage, and how
   declarations are spelt on every compiler. Owns no function. */
#ifndef GPSTI_CONFIG_H
#define GPSTI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The one place the version is written. */
#define GPST_VERSION_MAJOR 0
#define GPST_VERSION_MINOR 1
#define GPST_VERSION_PATCH 0
#define GPST_VERSION (GPST_VERSION_MAJOR * 10000 + GPST_VERSION_MINOR * 100 + GPST_VERSION_PATCH)
#define GPST_VERSION_TEXT "0.1.0"

/* Configuration macros, all optional, set before the first include:

   GPUSTAGE_IMPLEMENTATION  in exactly one unit: compile the code as well
   GPUSTAGE_GPU_IMPLEMENTATION  in exactly one unit for nvcc or hipcc, where another compiler has the
                            implementation: compile what runs on the GPU, and the calls to its vendor
   GPUSTAGE_CUDA            such a unit, by nvcc, is linked (nvcc itself needs not be told)
   GPUSTAGE_HIP             such a unit, by hipcc, is linked (hipcc itself needs not be told)
   GPUSTAGE_STATIC          every function static: private to the unit that implements it
   GPUSTAGE_SHARED          every public function exported (for a shared library)
   GPUSTAGE_PREFIX          a token put before every public symbol at link time, so that
                            two libraries may vendor two versions
   GPUSTAGE_NO_STDIO        no default logger: nothing is ever printed
   GPUSTAGE_NO_OPENMP       ignore OpenMP even where the compiler has it switched on */

#if defined(GPUSTAGE_STATIC) && defined(GPUSTAGE_SHARED)
#error "gpustage: GPUSTAGE_STATIC and GPUSTAGE_SHARED exclude each other"
#endif

#if defined(__MINGW32__) && !defined(__clang__)
#define GPSTI_UNUSED __attribute__((unused))
#define GPSTI_PRINTF(format_index, first_index) \
    __attribute__((format(gnu_printf, format_index, first_index)))
#elif defined(__GNUC__) || defined(__clang__)
#define GPSTI_UNUSED __attribute__((unused))
#define GPSTI_PRINTF(format_index, first_index) \
    __attribute__((format(printf, format_index, first_index)))
#else
#define GPSTI_UNUSED
#define GPSTI_PRINTF(format_index, first_index)
#endif

#if defined(GPUSTAGE_STATIC)
#define GPST_API GPSTI_UNUSED static
#elif defined(_WIN32) && defined(GPUSTAGE_SHARED)
#define GPST_API extern __declspec(dllexport)
#elif defined(GPUSTAGE_SHARED)
#define GPST_API extern __attribute__((visibility("default")))
#elif (defined(__GNUC__) || defined(__clang__)) && !defined(_WIN32)
#define GPST_API extern __attribute__((visibility("hidden")))
#else
#define GPST_API extern
#endif

/* Zeroes any desc at its definition, without a warning in C and in C++:
   gpst_pool_desc desc = GPST_ZERO; desc.max_bytes = 1 << 30; */
#ifdef __cplusplus
#define GPST_ZERO {}
#else
#define GPST_ZERO {0}
#endif

/* "Wait as long as it takes", wherever a time-out in nanoseconds is asked for. */
#define GPST_FOREVER INT64_MAX
#define GPST_MS INT64_C(1000000) /* in nanoseconds */

#endif
