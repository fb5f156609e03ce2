/* tests/test_reader.h -- a read under test, a way of reading that misbehaves on
   request, and the context and directory that the reader's tests share. */
#ifndef GPST_TEST_READER_H
#define GPST_TEST_READER_H

#include "test_allocator.h"
#include "test_files.h"
#if !defined(GPST_TEST_AMALGAM)
#include "../core/files/reader_internal.h"
#endif

#include <pthread.h>

/* ---- a read under test ------------------------------------------------------- */

typedef struct test_read {
    gpst_read read; /* first: `done` gets it */
    gpsti_a32 n_done;
    unsigned n_reserves;
    gpst_result reserve_result;
    size_t reserve_at_most;
    size_t allocated;
    uint64_t order;
} test_read;

static gpsti_a64 test_done_order;

static inline void test_done(gpst_read* read) {
    test_read* self = (test_read*)read;
    self->order = gpsti_a64_add(&test_done_order, 1);
    gpsti_a32_add(&self->n_done, 1);
}

static inline gpst_result test_reserve(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    test_read* self = (test_read*)read;
    unsigned char* grown;
    ++self->n_reserves;
    if (self->reserve_at_most && needed_bytes > self->reserve_at_most)
        return self->reserve_result;
    grown = (unsigned char*)gpsti_aligned_alloc(needed_bytes, 4096); /* as slots are; free() takes it */
    memset(grown, 0xA5, needed_bytes);
    if (filled_bytes)
        memcpy(grown, read->data, filled_bytes);
    if (self->allocated)
        free(read->data);
    self->allocated = needed_bytes;
    read->data = grown;
    read->capacity_bytes = needed_bytes;
    return GPST_OK;
}

static inline void test_read_init(test_read* t, const char* path) {
    memset(t, 0, sizeof(*t));
    t->read.path = path;
    t->read.reserve = test_reserve;
    t->read.done = test_done;
    t->read.result = GPST_ERROR_INTERNAL;
    t->read.bytes = 0xA5A5;
}

static inline void test_read_term(test_read* t) {
    if (t->allocated)
        free(t->read.data);
    t->allocated = 0;
}

static inline void test_read_wait(test_read* t) {
    while (!gpsti_a32_load(&t->n_done))
        gpsti_sleep_ns(50000);
}

static inline gpst_result test_read_once(gpst_reader* reader, test_read* t) {
    assert_int_equal(gpst_reader_submit(reader, &t->read), GPST_OK);
    test_read_wait(t);
    assert_int_equal(gpsti_a32_load(&t->n_done), 1);
    assert_int_equal(GPST_FAILED(t->read.result), t->read.reason[0] != 0);
    assert_true(t->read.end_ns >= t->read.start_ns);
    return t->read.result;
}

static inline void test_read_check(const test_read* t, const void* data, size_t bytes) {
    if (t->read.result != GPST_OK)
        fail_msg("%s: %s", gpst_result_name(t->read.result), t->read.reason);
    assert_int_equal(t->read.bytes, bytes);
    if (bytes)
        assert_memory_equal(t->read.data, data, bytes);
}

/* ---- a kind of reading that misbehaves --------------------------------------- */

static struct {
    gpsti_a32 calls;
    uint32_t fail_at; /* this call fails */
    size_t at_most;   /* no call gives more */
    void (*before)(uint32_t call, const char* path);
    gpsti_a32 running, most_running;
} test_trouble;

static inline gpst_result test_trouble_read_at(gpsti_reader_file* file, void* data, size_t bytes,
                                               uint64_t offset_bytes, size_t* done) {
    const char* const path = file->path;
    const uint32_t call = gpsti_a32_add(&test_trouble.calls, 1) + 1;
    const uint32_t running = gpsti_a32_add(&test_trouble.running, 1) + 1;
    uint32_t most = gpsti_a32_load(&test_trouble.most_running);
    gpst_result result;
    while (running > most && !gpsti_a32_cas(&test_trouble.most_running, &most, running)) {}
    if (test_trouble.before)
        test_trouble.before(call, path);
    if (call == test_trouble.fail_at)
        result = gpsti_fail(GPST_ERROR_IO, "read \"%s\": injected Input/output error (5)", path);
    else
        result = gpsti_file_read(&file->file, path, data,
                                 test_trouble.at_most && bytes > test_trouble.at_most ? test_trouble.at_most
                                                                                      : bytes,
                                 offset_bytes, done);
    gpsti_a32_add(&test_trouble.running, (uint32_t)-1);
    return result;
}
static const gpsti_reader_kind_i test_trouble_kind = {"trouble", NULL, NULL, test_trouble_read_at};

static gpsti_a32 test_gate;

static inline void test_wait_for_gate(uint32_t call, const char* path) {
    (void)call;
    (void)path;
    while (!gpsti_a32_load(&test_gate))
        gpsti_sleep_ns(50000);
}

/* ---- fixture: one context, one directory -------------------------------------- */

static gpst_context* test_context;
static uint64_t test_live_bytes; /* of the context alone */

static inline int test_group_begin(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context_info info;
    (void)state;
    desc.n_workers = 1;
    desc.backend = "cpu";
    assert_int_equal(gpst_context_create(&desc, &test_context), GPST_OK);
    gpst_context_query_info(test_context, &info);
    test_live_bytes = info.live_bytes;
    test_directory_make();
    return 0;
}

static inline int test_group_end(void** state) {
    gpst_context_info info;
    (void)state;
    test_directory_remove();
    gpst_context_query_info(test_context, &info);
    gpst_context_destroy(test_context);
    return info.live_bytes == test_live_bytes ? 0 : -1;
}

static inline gpst_reader* test_reader_new(uint32_t n_in_flight) {
    gpst_reader_desc desc = GPST_ZERO;
    gpst_reader* reader = NULL;
    desc.n_in_flight = n_in_flight;
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_OK);
    return reader;
}

static inline gpst_reader* test_trouble_new(uint32_t n_in_flight) {
    gpst_reader* reader = NULL;
    memset(&test_trouble, 0, sizeof(test_trouble));
    memset(&test_gate, 0, sizeof(test_gate));
    assert_int_equal(gpsti_reader_create(test_context, &test_trouble_kind, n_in_flight, &reader), GPST_OK);
    return reader;
}

#endif
