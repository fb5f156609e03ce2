/* tests/test_subject.h -- a context under test, with an allocator that counts and a logger that remembers. */
#ifndef GPST_TEST_SUBJECT_H
#define GPST_TEST_SUBJECT_H

#include "test_allocator.h"

typedef struct test_subject {
    test_memory memory;
    test_log log;
    gpst_context_desc desc;
    gpst_context* context;
} test_subject;

static inline void test_begin(test_subject* t) {
    memset(t, 0, sizeof *t);
    t->desc.allocator = test_memory_hooks(&t->memory);
    t->desc.logger = test_log_hooks(&t->log);
    t->desc.n_workers = 1;
    t->context = (gpst_context*)&t->desc; /* must be overwritten, with NULL by a failing create */
}

/* Nothing is left, and nothing was wrong. */
static inline void test_end(test_subject* t) {
    gpst_context_destroy(t->context);
    test_memory_check(&t->memory);
    assert_int_equal(gpsti_a32_load(&t->log.n_errors), 0);
}

#endif
