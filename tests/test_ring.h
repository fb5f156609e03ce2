/* tests/test_ring.h -- a ring under test, in a context of its own, whose memory and errors are counted. */
#ifndef GPST_TEST_RING_H
#define GPST_TEST_RING_H

#include "test_allocator.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/memory/ring_internal.h"
#endif

#define TEST_MS 1000000 /* in ns */

static const gpst_ring_sharing test_sharings[] = {GPST_RING_SPSC, GPST_RING_MPMC};

typedef struct test_ring {
    test_memory memory;
    test_log log;
    gpst_context* context;
    gpst_ring_desc desc;
    gpst_ring* ring;
} test_ring;

static inline void test_begin(test_ring* t) {
    gpst_context_desc context = GPST_ZERO;
    memset(t, 0, sizeof *t);
    context.allocator = test_memory_hooks(&t->memory);
    context.logger = test_log_hooks(&t->log);
    context.n_workers = 1;
    context.max_host_bytes = (uint64_t)64 << 20;
    assert_int_equal(gpst_context_create(&context, &t->context), GPST_OK);
}

static inline void test_open(test_ring* t, gpst_ring_sharing sharing, gpst_ring_policy policy, uint32_t max_slots) {
    test_begin(t);
    t->desc.max_slots = max_slots;
    t->desc.slot_bytes = 24;
    t->desc.sharing = sharing;
    t->desc.policy = policy;
    assert_int_equal(gpst_ring_create(t->context, &t->desc, &t->ring), GPST_OK);
}

static inline void test_open_adaptive(test_ring* t, gpst_ring_sharing sharing, gpst_ring_policy policy,
                                      uint32_t max_slots) {
    test_begin(t);
    t->desc.max_slots = max_slots;
    t->desc.slot_bytes = 24;
    t->desc.sharing = sharing;
    t->desc.policy = policy;
    t->desc.adaptive = true;
    assert_int_equal(gpst_ring_create(t->context, &t->desc, &t->ring), GPST_OK);
}

typedef enum test_evidence {
    TEST_BURSTS,  /* deepen */
    TEST_IDLE,    /* shrink, not below what is in use */
    TEST_IN_VAIN, /* the latest deepening brought nothing: half of the depth, whatever is in use */
    TEST_N_EVIDENCE
} test_evidence;

/* An adaptive ring decides on such an interval; the past is forgotten. By a thread that may commit. */
static inline void test_decide(gpst_ring* ring, test_evidence evidence) {
    gpsti_ring_interval interval;
    gpsti_ring_depth* const policy = &ring->adapt->policy;
    memset(&interval, 0, sizeof interval);
    interval.n_commits = interval.ticks = 1000;
    interval.full_ticks = interval.empty_ticks = evidence == TEST_BURSTS ? 500 : 0;
    interval.peak = evidence == TEST_IDLE ? 0 : UINT32_MAX;
    gpsti_mutex_lock(&ring->mutex);
    policy->n_starved = 5;
    policy->idle_patience = 1;
    policy->rest = policy->trial_from = 0;
    if (evidence == TEST_IN_VAIN && policy->depth > policy->min_depth) {
        policy->n_trial = 5;
        policy->n_doublings = 4; /* it is the last of the trial */
        policy->trial_from = policy->depth / 2 > policy->min_depth ? policy->depth / 2 : policy->min_depth;
        policy->loss_before = 0.0;
    }
    gpsti_mutex_unlock(&ring->mutex);
    gpsti_ring_evaluate(ring, &interval);
}

static inline void test_close(test_ring* t) {
    gpst_ring_destroy(t->ring);
    gpst_context_trim(t->context);
    assert_int_equal(gpsti_a64_load(&t->context->host_bytes), 0);
    gpst_context_destroy(t->context);
    test_memory_check(&t->memory);
    assert_int_equal(gpsti_a32_load(&t->log.n_errors), 0);
}

static inline gpst_ring_info test_info(const gpst_ring* ring) {
    gpst_ring_info info;
    memset(&info, 0xA5, sizeof info);
    gpst_ring_query_info(ring, &info);
    return info;
}

#endif
