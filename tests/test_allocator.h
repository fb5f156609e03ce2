/* tests/test_allocator.h -- an allocator that counts and can refuse its n-th
   call, and a logger that remembers: for tests that inject faults. */
#ifndef GPST_TEST_ALLOCATOR_H
#define GPST_TEST_ALLOCATOR_H

#include "test.h"

#include <unistd.h>

typedef struct test_memory {
    gpsti_a64 calls, live_bytes, live_blocks;
    gpsti_a64 sleep_ns; /* each call takes so long */
    gpsti_a64 fail_at; /* the n-th call, from 1, returns NULL; 0 = none does */
} test_memory;

/* Of the process: calls that were refused, and the latest that a test asked for. */
static gpsti_a64 test_n_refused;
static uint64_t test_refuse_n, test_refuse_before;

static inline void* test_memory_alloc(void* user_data, size_t bytes, size_t align_bytes) {
    test_memory* memory = (test_memory*)user_data;
    if (gpsti_a64_add(&memory->calls, 1) + 1 == gpsti_a64_load(&memory->fail_at)) {
        (void)gpsti_a64_add(&test_n_refused, 1);
        return NULL;
    }
    if (gpsti_a64_load(&memory->sleep_ns) > 0)
        gpsti_sleep_ns((int64_t)gpsti_a64_load(&memory->sleep_ns));
    void* ptr = gpsti_aligned_alloc(bytes, align_bytes);
    assert_non_null(ptr);
    memset(ptr, 0xA5, bytes);
    (void)gpsti_a64_add(&memory->live_bytes, bytes);
    (void)gpsti_a64_add(&memory->live_blocks, 1);
    return ptr;
}

static inline void test_memory_free(void* user_data, void* ptr, size_t bytes) {
    test_memory* memory = (test_memory*)user_data;
    assert_non_null(ptr);
    (void)gpsti_a64_add(&memory->live_bytes, (uint64_t)0 - bytes);
    (void)gpsti_a64_add(&memory->live_blocks, UINT64_MAX);
    memset(ptr, 0xA5, bytes);
    gpsti_aligned_free(ptr);
}

static inline gpst_allocator test_memory_hooks(test_memory* memory) {
    gpst_allocator hooks;
    memset(memory, 0, sizeof *memory);
    hooks.alloc = test_memory_alloc;
    hooks.free = test_memory_free;
    hooks.user_data = memory;
    return hooks;
}

/* The n-th call from now on returns NULL. Whoever tries one call after the other ends where one was not reached. */
static inline void test_memory_refuse(test_memory* memory, uint64_t n) {
    const bool missed = test_refuse_n > 0 && gpsti_a64_load(&test_n_refused) == test_refuse_before;
    if (missed && n > test_refuse_n)
        fail_msg("allocation %llu was never asked for: nothing failed", (unsigned long long)test_refuse_n);
    test_refuse_n = n;
    test_refuse_before = gpsti_a64_load(&test_n_refused);
    gpsti_a64_store(&memory->fail_at, gpsti_a64_load(&memory->calls) + n);
}

static inline bool test_memory_refused(const test_memory* memory) {
    const uint64_t fail_at = gpsti_a64_load(&memory->fail_at);
    return fail_at > 0 && gpsti_a64_load(&memory->calls) >= fail_at;
}

/* Every call is answered again. */
static inline void test_memory_relent(test_memory* memory) {
    gpsti_a64_store(&memory->fail_at, 0);
}

/* Nothing is left, and as many bytes came back as went out. */
static inline void test_memory_check(const test_memory* memory) {
    assert_int_equal(gpsti_a64_load(&memory->live_blocks), 0);
    assert_int_equal(gpsti_a64_load(&memory->live_bytes), 0);
}

/* Memory of this process that lies in the machine's; 0 where the system does not say. */
static inline uint64_t test_resident_bytes(void) {
    unsigned long long pages = 0;
    FILE* const file = fopen("/proc/self/statm", "r");
    if (file && fscanf(file, "%*u %llu", &pages) != 1)
        pages = 0;
    if (file)
        fclose(file);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

typedef struct test_log {
    gpsti_a32 n_errors, n_warnings, n_others, writing;
    char last[1024];
    uint64_t item_index;
    int line;
} test_log;

static inline void test_log_func(void* user_data, gpst_log_level level, uint64_t item_index,
                                 const char* message, const char* file, int line) {
    test_log* log = (test_log*)user_data;
    (void)gpsti_a32_add(level == GPST_LOG_ERROR     ? &log->n_errors
                        : level == GPST_LOG_WARNING ? &log->n_warnings
                                                    : &log->n_others,
                        1);
    assert_non_null(file);
    while (gpsti_a32_exchange(&log->writing, 1) != 0) /* several threads may log at once */
        gpsti_sleep_ns(1000);
    gpsti_copy_text(log->last, sizeof log->last, message);
    log->item_index = item_index;
    log->line = line;
    gpsti_a32_store(&log->writing, 0);
}

static inline gpst_logger test_log_hooks(test_log* log) {
    gpst_logger hooks;
    memset(log, 0, sizeof *log);
    hooks.func = test_log_func;
    hooks.user_data = log;
    hooks.threshold = GPST_LOG_DEFAULT;
    return hooks;
}

/* The result came with a sentence that holds both texts. */
static inline void test_reason_has(const char* first, const char* second) {
    if (!strstr(gpst_last_reason(), first) || !strstr(gpst_last_reason(), second))
        fail_msg("reason \"%s\" lacks \"%s\" or \"%s\"", gpst_last_reason(), first, second);
}

#endif
