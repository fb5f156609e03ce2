/* bench/measure.h -- times things against each other: interleaved rounds, medians with spread; and what programs that
   wait for a clock share: percentiles, a process's memory, JSON text. Knows nothing of what is timed. For C and C++;
   include it with _GNU_SOURCE. */
#ifndef GPST_TOOL_MEASURE_H
#define GPST_TOOL_MEASURE_H

#include <errno.h>
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

/* ---- clocks, percentiles, memory ------------------------------------------------------------------ */

static inline int64_t measure_clock_ns(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t measure_ns(void) { return measure_clock_ns(CLOCK_MONOTONIC); }

static inline void measure_wait_until(int64_t ns) {
    struct timespec until;
    until.tv_sec = (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR) {}
}

static inline int measure_compare_ns(const void* a, const void* b) {
    const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return x < y ? -1 : x > y;
}

static inline void measure_sort_ns(int64_t* values, uint64_t n) {
    qsort(values, (size_t)n, sizeof *values, measure_compare_ns);
}

/* In milliseconds, of n sorted values; percent 100 is the largest. Of none 0. */
static inline double measure_percentile_ms(const int64_t* sorted, uint64_t n, uint32_t percent) {
    return n ? (double)sorted[(n - 1) * percent / 100] * 1e-6 : 0.0;
}

/* Of this process, from /proc/self/status: "VmRSS", or "VmHWM", the most it was (getrusage would count what it was
   started from). 0: not known. */
static inline uint64_t measure_status_kib(const char* key) {
    char line[256];
    const size_t length = strlen(key);
    unsigned long long kib = 0;
    FILE* const status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, key, length) && sscanf(line + length, ": %llu", &kib) == 1)
            break;
    if (status)
        fclose(status);
    return (uint64_t)kib;
}

static inline void measure_print_text(FILE* json, const char* key, const char* value) {
    fprintf(json, "\"%s\": \"", key);
    for (; *value; value++)
        if (*value == '"' || *value == '\\')
            fprintf(json, "\\%c", *value);
        else if ((unsigned char)*value >= ' ')
            fputc(*value, json);
    fprintf(json, "\"");
}

#endif
