/* tests/test.h -- the first include of every test: the library's inside, to be linked with the split sources or with
   the one header's unit, or (GPST_TEST_AMALGAM) that header itself, then cmocka. */
#ifndef GPST_TEST_H
#define GPST_TEST_H

#if defined(GPST_TEST_AMALGAM)
#define GPUSTAGE_IMPLEMENTATION
#include "../gpustage.h"
#else
#include "../core/base/platform_internal.h"

#include "../backends/backend.h"
#include "../core/base/base_internal.h"
#include "../core/device/context_internal.h"
#include "../core/memory/memory_internal.h"
#include "../core/jobs/jobs.h"
#include "../core/memory/pool.h"
#include "../core/files/reader.h"
#include "../core/memory/ring.h"
#include "../core/machine/tier.h"
#include "../core/pictures/jpeg_internal.h"
#include "../core/files/writer_internal.h"
#include "../kernels/warp/warp_internal.h"
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Exit status of a test that cannot run here; print the reason first. */
#define GPST_TEST_SKIP 77

/* Of a case: tests/run.py tells the reason. */
#define test_skip(reason) (print_message("%s\n", reason), skip())

/* The seed of a randomised test: GPST_SEED from the environment, else the default; always printed. */
static inline uint64_t test_seed(uint64_t default_seed) {
    const char* text = getenv("GPST_SEED");
    const uint64_t seed = text ? strtoull(text, NULL, 0) : default_seed;
    printf("seed %llu (set GPST_SEED to replay)\n", (unsigned long long)seed);
    return seed;
}

/* Code under a sanitizer takes more stack and address space than limits leave. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TEST_INSTRUMENTED 1
#else
#define TEST_INSTRUMENTED 0
#endif

/* splitmix64: small, seedable, the same everywhere. */
static inline uint64_t test_random(uint64_t* state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

#endif
