/* tests/test_gpu.h -- what the programs share that compare kernels on a GPU with the CPU: the one header as their unit,
   chance, checks that end them, a stream. */
#ifndef GPST_TEST_GPU_H
#define GPST_TEST_GPU_H

#define GPUSTAGE_IMPLEMENTATION
#include "../gpustage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t seed_of_all;

static uint64_t random_next(void) {
    uint64_t z = (seed_of_all += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static uint32_t random_below(uint32_t n) { return (uint32_t)(random_next() % n); }

#define CHECK(condition, ...)                                      \
    do {                                                           \
        if (!(condition)) {                                        \
            printf("%s:%d: %s: ", __FILE__, __LINE__, #condition); \
            printf(__VA_ARGS__);                                   \
            printf("; %s\n", gpst_last_reason());                  \
            exit(1);                                               \
        }                                                          \
    } while (0)
#define CHECK_RT(call) CHECK((call) == GPSTI_RT(Success), "the runtime failed")

static gpsti_rt_stream stream;

#endif
