/* tests/test_reader_kinds.h -- readers of every kind that there is on this machine. */
#ifndef GPST_TEST_READER_KINDS_H
#define GPST_TEST_READER_KINDS_H

#include "test_reader.h"

static const char* const test_kinds[] = {"pread", "auto", "direct", "uring"};
enum { TEST_N_KINDS = 4 };
static bool test_has_ring;

static inline void test_ring_look(void) {
    gpsti_uring ring;
    test_has_ring = !GPST_FAILED(gpsti_uring_open(&ring));
    if (!test_has_ring)
        printf("io_uring: %s: its cases are left out\n", gpst_last_reason());
    gpsti_uring_close(&ring);
}

/* NULL where io_uring is refused here. */
static inline gpst_reader* test_kind_open(int kind) {
    gpst_reader* reader = NULL;
    gpst_reader_desc desc = GPST_ZERO;
    if (kind == 3 && !test_has_ring)
        return NULL;
    desc.kind = test_kinds[kind];
    desc.n_in_flight = 2;
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_OK);
    gpsti_a64_store(&gpsti_reader_ways_of(reader)->direct_after_bytes, 1);
    return reader;
}

/* The reads of a test go by the one ring that may have a fault. */
static inline gpst_result test_read_kind(gpst_reader* reader, test_read* t) {
    return gpst_reader_read_now(reader, &t->read);
}

#endif
