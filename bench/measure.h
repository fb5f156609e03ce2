/* bench/measure.h -- times things against each other: interleaved rounds, medians with spread. Knows nothing of what
   is timed. For C and C++. */
#ifndef GPST_TOOL_MEASURE_H
#define GPST_TOOL_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MEASURE_MAX_ROUNDS 101

/* Something that does one piece of work on the turn-th set of buffers; false: it failed. */
typedef struct measured {
    const char* name;
    bool (*run)(void* user_data, uint32_t turn);
    void* user_data;
    uint32_t n_turns; /* pieces of work a sample; measure_rounds sets it */
    double seconds[MEASURE_MAX_ROUNDS]; /* a piece, one a round */
} measured;

typedef struct measure_spread {
    double median, min, max;
} measure_spread;

static inline double measure_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Seconds a piece of n pieces of work. *turn goes on from call to call, so that no buffer comes back early. */
static inline double measure_sample(const measured* self, uint32_t n, uint32_t* turn, bool* ok) {
    const double start = measure_now();
    for (uint32_t i = 0; i < n; i++)
        *ok = self->run(self->user_data, (*turn)++) && *ok;
    return (measure_now() - start) / n;
}

/* Every contestant once a round, in turn, so that the machine's mood hits all alike. A sample lasts sample_s at
   least; a first round, which is not kept, warms up and finds how many pieces that takes. */
static inline bool measure_rounds(measured* all, uint32_t n, uint32_t n_rounds, double sample_s) {
    uint32_t turn = 0;
    bool ok = true;
    for (uint32_t i = 0; ok && i < n; i++) {
        const double warm = measure_sample(&all[i], 1, &turn, &ok), once = measure_sample(&all[i], 1, &turn, &ok);
        const double needed = sample_s / (once < warm ? once : warm);
        all[i].n_turns = needed > 1000.0 ? 1000 : 1 + (uint32_t)needed;
    }
    for (uint32_t round = 0; ok && round < n_rounds && round < MEASURE_MAX_ROUNDS; round++)
        for (uint32_t i = 0; ok && i < n; i++)
            all[i].seconds[round] = measure_sample(&all[i], all[i].n_turns, &turn, &ok);
    return ok;
}

static inline int measure_compare(const void* a, const void* b) {
    const double x = *(const double*)a, y = *(const double*)b;
    return x < y ? -1 : x > y;
}

static inline measure_spread measure_spread_of(const double* values, uint32_t n) {
    double sorted[MEASURE_MAX_ROUNDS];
    measure_spread out;
    for (uint32_t i = 0; i < n; i++)
        sorted[i] = values[i];
    qsort(sorted, n, sizeof sorted[0], measure_compare);
    out.min = sorted[0];
    out.median = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0;
    out.max = sorted[n - 1];
    return out;
}

/* "--rounds N" as the only arguments, or none: so many rounds. 0: something else, and the usage is printed. */
static inline uint32_t measure_rounds_asked(int argc, char** argv, uint32_t usual) {
    char* end = NULL;
    const bool asked = argc == 3 && !strcmp(argv[1], "--rounds");
    const long n = asked ? strtol(argv[2], &end, 10) : (long)usual;
    const bool right = (asked && !*end && n >= 1 && n <= MEASURE_MAX_ROUNDS) || argc == 1;
    if (!right)
        fprintf(stderr, "usage: %s [--rounds N]     N from 1 to %d\n", argv[0], MEASURE_MAX_ROUNDS);
    return right ? (uint32_t)n : 0;
}

/* How many times as long `other` took as `self`, round by round: the ratios of neighbours in time. */
static inline measure_spread measure_ratio(const measured* other, const measured* self, uint32_t n) {
    double ratios[MEASURE_MAX_ROUNDS];
    for (uint32_t i = 0; i < n; i++)
        ratios[i] = other->seconds[i] / self->seconds[i];
    return measure_spread_of(ratios, n);
}

#endif
