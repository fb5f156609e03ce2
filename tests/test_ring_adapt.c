/* tests/test_ring_adapt.c -- adaptive rings on one thread: what they measure, the memory of slots that comes and goes,
   limits, slots held meanwhile, faults. The policy is tested in test_ring_depth.c, threads in test_ring_threads.c. */
#include "test_ring.h"

/* ---- helpers -------------------------------------------------------------------------- */

static gpst_ring_decision test_last(const gpst_ring* ring) {
    gpst_ring_decision decision;
    uint32_t n = 0;
    memset(&decision, 0, sizeof decision);
    gpst_ring_query_decisions(ring, &decision, 1, &n);
    assert_true(n >= 1);
    return decision;
}

static uint64_t test_page(void) { return gpsti_page_bytes(); }

/* Acquires until there is none, each slot filled with its number. */
static uint32_t test_fill(gpst_ring* ring, gpst_ring_slot* slots) {
    uint32_t n = 0;
    while (gpst_ring_acquire(ring, 0, &slots[n]) == GPST_OK) {
        memset(slots[n].data, (int)n + 1, 24);
        n++;
    }
    return n;
}

/* Commits and takes slots that hold their numbers; gives them to `taken`. */
static void test_pass(gpst_ring* ring, gpst_ring_slot* slots, uint32_t n, gpst_ring_slot* taken) {
    for (uint32_t i = 0; i < n; i++)
        gpst_ring_commit(ring, &slots[i]);
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(gpst_ring_take(ring, 0, &taken[i]), GPST_OK);
        assert_int_equal(((uint8_t*)taken[i].data)[0], i + 1);
    }
}

static void test_release_all(gpst_ring* ring, gpst_ring_slot* slots, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        gpst_ring_release(ring, &slots[i]);
}

/* ---- arguments -------------------------------------------------------------------------- */

static void test_refused(test_ring* t, gpst_ring_desc desc, const char* text) {
    gpst_ring* ring = NULL;
    gpst_clear_reason();
    assert_int_equal(gpst_ring_create(t->context, &desc, &ring), GPST_ERROR_ARGUMENT);
    assert_null(ring);
    test_reason_has("gpst_ring_create: ", text);
}

static void test_arguments(void** state) {
    test_ring t;
    gpst_ring_desc desc = GPST_ZERO;
    gpst_ring_decision decision;
    uint32_t n = 7;
    (void)state;
    test_begin(&t);
    desc.max_slots = 8;
    desc.slot_bytes = 5000; /* two pages each */
    desc.min_depth = 2;
    test_refused(&t, desc, "desc.adaptive");
    desc.min_depth = 0;
    desc.max_bytes = 1 << 20;
    test_refused(&t, desc, "desc.adaptive");
    desc.adaptive = true;
    desc.min_depth = 9;
    test_refused(&t, desc, "min_depth=9");
    desc.min_depth = 3;
    desc.depth = 2;
    test_refused(&t, desc, "depth=2");
    desc.depth = 0;
    desc.max_bytes = 6 * test_page() - 1;
    test_refused(&t, desc, "max_bytes=");
    desc.max_bytes = 6 * test_page();
    assert_int_equal(gpst_ring_create(t.context, &desc, &t.ring), GPST_OK);
    assert_int_equal(test_info(t.ring).min_depth, 3);
    assert_int_equal(test_info(t.ring).max_depth, 3);
    assert_int_equal(test_info(t.ring).depth, 3);
    assert_int_equal(gpst_ring_set_depth(t.ring, 3), GPST_ERROR_STATE);
    test_reason_has("gpst_ring_set_depth: depth=3", "desc.adaptive");
    gpst_ring_query_decisions(t.ring, NULL, 0, &n);
    assert_int_equal(n, 0);
    gpst_ring_query_decisions(t.ring, &decision, 1, NULL);
    n = 7;
    gpst_ring_query_decisions(NULL, &decision, 1, &n);
    assert_int_equal(n, 0);
    gpst_ring_destroy(t.ring);
    desc.depth = 4;
    test_refused(&t, desc, "depth=4");
    memset(&desc, 0, sizeof desc);
    desc.max_slots = 1;
    desc.adaptive = true;
    assert_int_equal(gpst_ring_create(t.context, &desc, &t.ring), GPST_OK);
    assert_int_equal(test_info(t.ring).depth, 1);
    test_close(&t);
}

/* ---- what a ring measures ------------------------------------------------------------------ */

/* A side that finds nothing begins a span, and ends it when it finds something again. */
static void test_spans(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slots[4], taken[4], none;
        test_open_adaptive(&t, test_sharings[k], GPST_RING_BLOCK, 3);
        gpsti_ring_adapt* const adapt = t.ring->adapt;
        assert_int_equal(test_fill(t.ring, slots), 2);
        assert_true(gpsti_a64_load(&adapt->full.since) != 0);
        assert_true(gpsti_a64_load(&adapt->empty.since) == 0);
        assert_int_equal(adapt->peak, 2);
        assert_int_equal(gpst_ring_take(t.ring, 0, &none), GPST_ERROR_WOULD_BLOCK);
        assert_true(gpsti_a64_load(&adapt->empty.since) != 0);
        gpsti_sleep_ns(TEST_MS);
        test_pass(t.ring, slots, 2, taken);
        assert_true(gpsti_a64_load(&adapt->empty.since) == 0);
        assert_true(gpsti_a64_load(&adapt->empty.ticks) > 0);
        assert_true(gpsti_a64_load(&adapt->full.since) != 0);
        test_release_all(t.ring, taken, 2);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &slots[0]), GPST_OK);
        assert_true(gpsti_a64_load(&adapt->full.since) == 0);
        assert_true(gpsti_a64_load(&adapt->full.ticks) > 0);
        gpst_ring_abandon(t.ring, &slots[0]);
        test_close(&t);
    }
}

/* The peak is of slots in use at once, though a ring of one producer and one consumer uses all in turn. */
static void test_peak(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slots[9], taken[9];
        test_open_adaptive(&t, test_sharings[k], GPST_RING_BLOCK, 8);
        test_decide(t.ring, TEST_BURSTS);
        test_decide(t.ring, TEST_BURSTS);
        assert_int_equal(test_info(t.ring).depth, 8);
        for (int round = 0; round < 20; round++)
            for (uint32_t i = 0; i < 3; i++) {
                assert_int_equal(gpst_ring_acquire(t.ring, 0, &slots[i]), GPST_OK);
                memset(slots[i].data, (int)i + 1, 24);
                if (i == 2) {
                    test_pass(t.ring, slots, 3, taken);
                    test_release_all(t.ring, taken, 3);
                }
            }
        assert_int_equal(t.ring->adapt->peak, 3);
        test_close(&t);
    }
}

/* Full and empty for about as long each, and as often; then so many commits, of which the last ends the interval. */
static void test_live_bursts(gpst_ring* ring) {
    gpst_ring_slot slots[9], taken[9];
    gpsti_ring_adapt* const adapt = ring->adapt;
    uint32_t n = 0, n_rounds = 0;
    for (uint64_t full = 0, empty = 8; full / 8 > empty || empty / 8 > full;) {
        assert_true(n_rounds++ < 1000);
        n = test_fill(ring, slots);
        gpsti_sleep_ns(TEST_MS);
        test_pass(ring, slots, n, taken);
        test_release_all(ring, taken, n);
        assert_int_equal(gpst_ring_take(ring, 0, &taken[0]), GPST_ERROR_WOULD_BLOCK);
        gpsti_sleep_ns(TEST_MS);
        full = gpsti_a64_load(&adapt->full.ticks) - adapt->start_full_ticks;
        empty = gpsti_a64_load(&adapt->empty.ticks) - adapt->start_empty_ticks;
    }
    adapt->start_ns -= 10 * GPSTI_RING_INTERVAL_NS; /* time passes */
    adapt->n_commits = GPSTI_RING_INTERVAL_COMMITS - 1;
    assert_int_equal(gpst_ring_acquire(ring, 0, &slots[0]), GPST_OK);
    gpst_ring_commit(ring, &slots[0]);
    assert_int_equal(adapt->start_tail, test_info(ring).committed); /* the next one began */
    assert_int_equal(adapt->peak, 1);
    assert_int_equal(gpst_ring_take(ring, 0, &slots[0]), GPST_OK);
    gpst_ring_release(ring, &slots[0]);
}

static void test_live(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slot;
        test_open_adaptive(&t, test_sharings[k], GPST_RING_BLOCK, 8);
        for (int i = 1; i <= GPSTI_RING_DEPTH_PATIENCE; i++) {
            test_live_bursts(t.ring);
            assert_int_equal(test_info(t.ring).depth, i < GPSTI_RING_DEPTH_PATIENCE ? 2 : 4);
        }
        assert_non_null(strstr(test_last(t.ring).reason, "bursts: full "));
        for (int i = 0; i < 63; i++) { /* neither so many commits, */
            assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
            t.ring->adapt->start_ns -= 10 * GPSTI_RING_INTERVAL_NS;
            gpst_ring_commit(t.ring, &slot);
            assert_int_equal(gpst_ring_take(t.ring, 0, &slot), GPST_OK);
            gpst_ring_release(t.ring, &slot);
            assert_int_equal(t.ring->adapt->n_commits, i + 1);
        }
        const uint64_t start_tail = t.ring->adapt->start_tail;
        t.ring->adapt->start_ns = gpsti_now_ns() + 1000000 * (int64_t)TEST_MS; /* nor so long a time */
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
        gpst_ring_commit(t.ring, &slot);
        assert_int_equal(t.ring->adapt->start_tail, start_tail);
        assert_int_equal(t.ring->adapt->n_commits, 0);
        test_close(&t);
    }
}

/* A ring that gives slots up was full; one that only keeps the latest was not. */
static void test_policies(void** state) {
    (void)state;
    for (int policy = GPST_RING_DROP_NEWEST; policy <= GPST_RING_LATEST_ONLY; policy++) {
        test_ring t;
        gpst_ring_slot slot;
        test_open_adaptive(&t, GPST_RING_MPMC, (gpst_ring_policy)policy, 4);
        for (int i = 0; i < 3; i++)
            if (gpst_ring_acquire(t.ring, 0, &slot) == GPST_OK)
                gpst_ring_commit(t.ring, &slot);
        assert_int_equal(gpsti_a64_load(&t.ring->adapt->full.since) != 0, policy != GPST_RING_LATEST_ONLY);
        test_decide(t.ring, TEST_BURSTS);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
        assert_true(gpsti_a64_load(&t.ring->adapt->full.since) == 0);
        gpst_ring_abandon(t.ring, &slot);
        test_close(&t);
    }
}

/* ---- memory that comes and goes ---------------------------------------------------------------- */

static void test_memory_follows(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slots[17], taken[17];
        test_open_adaptive(&t, test_sharings[k], GPST_RING_BLOCK, 16);
        for (uint32_t depth = 2; depth <= 16; depth *= 2) {
            assert_int_equal(test_info(t.ring).depth, depth);
            assert_int_equal(test_info(t.ring).memory_bytes, depth * test_page());
            assert_int_equal(test_fill(t.ring, slots), depth);
            test_pass(t.ring, slots, depth, taken);
            test_release_all(t.ring, taken, depth);
            test_decide(t.ring, TEST_BURSTS);
        }
        assert_int_equal(test_last(t.ring).before, 16);
        assert_int_equal(test_last(t.ring).after, 16);
        assert_non_null(strstr(test_last(t.ring).reason, "stays: "));
        for (int i = 0; i < 10; i++)
            test_decide(t.ring, TEST_IDLE);
        assert_int_equal(test_info(t.ring).depth, 2);
        assert_int_equal(test_info(t.ring).memory_bytes, 2 * test_page());
        gpst_context_trim(t.context);
        assert_int_equal(gpsti_a64_load(&t.context->host_bytes), 2 * test_page());
        for (int i = 0; i < 20; i++)
            test_decide(t.ring, i % 2 ? TEST_IDLE : TEST_BURSTS);
        gpst_ring_decision decisions[GPST_RING_MAX_DECISIONS + 1];
        uint32_t n = 0;
        gpst_ring_query_decisions(t.ring, decisions, GPST_RING_MAX_DECISIONS + 1, &n);
        assert_int_equal(n, GPST_RING_MAX_DECISIONS);
        for (uint32_t i = 1; i < n; i++) {
            assert_int_equal(decisions[i].before, decisions[i - 1].after);
            assert_int_equal(decisions[i].commit, 30);
        }
        assert_int_equal(decisions[n - 1].after, test_info(t.ring).depth);
        assert_true(test_info(t.ring).n_decisions > n);
        test_close(&t);
    }
}

/* Slots that somebody holds keep their memory, whatever the depth; it goes when they are back. */
static void test_held_slots(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slots[9], taken[9], other[9];
        test_open_adaptive(&t, test_sharings[k], GPST_RING_BLOCK, 8);
        test_decide(t.ring, TEST_BURSTS);
        test_decide(t.ring, TEST_BURSTS);
        assert_int_equal(test_fill(t.ring, slots), 8);
        test_pass(t.ring, slots, 8, taken);
        test_release_all(t.ring, taken, 3);
        test_decide(t.ring, TEST_IDLE); /* 5 are held: no less */
        assert_int_equal(test_info(t.ring).depth, 5);
        assert_int_equal(test_info(t.ring).memory_bytes, 5 * test_page());
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &slots[0]), GPST_ERROR_WOULD_BLOCK);
        test_decide(t.ring, TEST_IN_VAIN); /* this one asks nobody */
        assert_int_equal(test_info(t.ring).depth, 2);
        assert_int_equal(test_info(t.ring).memory_bytes, 5 * test_page());
        for (uint32_t i = 3; i < 8; i++)
            for (uint32_t j = 0; j < 24; j++)
                assert_int_equal(((uint8_t*)taken[i].data)[j], i + 1);
        for (uint32_t i = 3; i < 7; i++) {
            assert_int_equal(gpst_ring_acquire(t.ring, 0, &slots[0]), GPST_ERROR_WOULD_BLOCK);
            gpst_ring_release(t.ring, &taken[i]);
        }
        test_decide(t.ring, TEST_IN_VAIN);
        assert_int_equal(test_info(t.ring).memory_bytes, 2 * test_page());
        assert_int_equal(((uint8_t*)taken[7].data)[0], 8);
        assert_int_equal(test_fill(t.ring, other), 1);
        gpst_ring_abandon(t.ring, &other[0]);
        gpst_ring_release(t.ring, &taken[7]);
        test_decide(t.ring, TEST_BURSTS);
        assert_int_equal(test_fill(t.ring, other), 4);
        test_close(&t);
    }
}

/* Slots of words alone: the depth moves, memory there is none. */
static void test_words(void** state) {
    test_ring t;
    (void)state;
    test_begin(&t);
    t.desc.max_slots = 8;
    t.desc.adaptive = true;
    t.desc.max_bytes = 1; /* of nothing */
    assert_int_equal(gpst_ring_create(t.context, &t.desc, &t.ring), GPST_OK);
    test_decide(t.ring, TEST_BURSTS);
    test_decide(t.ring, TEST_BURSTS);
    assert_int_equal(test_info(t.ring).depth, 8);
    assert_int_equal(test_info(t.ring).memory_bytes, 0);
    test_decide(t.ring, TEST_IDLE);
    assert_int_equal(test_info(t.ring).depth, 4);
    test_close(&t);
}

/* ---- limits and faults ------------------------------------------------------------------------- */

static void test_max_bytes(void** state) {
    test_ring t;
    (void)state;
    test_begin(&t);
    t.desc.max_slots = 100;
    t.desc.slot_bytes = 5000;
    t.desc.adaptive = true;
    t.desc.max_bytes = 13 * test_page();
    assert_int_equal(gpst_ring_create(t.context, &t.desc, &t.ring), GPST_OK);
    assert_int_equal(test_info(t.ring).max_depth, 6);
    for (int i = 0; i < 5; i++)
        test_decide(t.ring, TEST_BURSTS);
    assert_int_equal(test_info(t.ring).depth, 6);
    assert_int_equal(test_info(t.ring).memory_bytes, 12 * test_page());
    test_close(&t);
}

/* Large slots take huge pages where the system gives them: the cap holds for what is taken. */
static void test_large_slots(void** state) {
    test_ring t;
    (void)state;
    test_begin(&t);
    t.desc.max_slots = 16;
    t.desc.slot_bytes = (size_t)1500 << 10;
    t.desc.adaptive = true;
    t.desc.max_bytes = (size_t)12 << 20;
    assert_int_equal(gpst_ring_create(t.context, &t.desc, &t.ring), GPST_OK);
    for (int i = 0; i < 8; i++) {
        test_decide(t.ring, TEST_BURSTS);
        assert_true(test_info(t.ring).memory_bytes <= t.desc.max_bytes);
    }
    assert_true(test_info(t.ring).depth >= 4);
    test_close(&t);
}

static void test_context_budget(void** state) {
    test_ring t;
    gpst_ring* other = NULL;
    gpst_ring_desc desc = GPST_ZERO;
    gpst_ring_slot slots[9];
    (void)state;
    test_open_adaptive(&t, GPST_RING_SPSC, GPST_RING_BLOCK, 8);
    test_decide(t.ring, TEST_BURSTS);
    desc.max_slots = 1;
    desc.slot_bytes = (size_t)(((uint64_t)64 << 20) - 6 * test_page()); /* leaves room for two more */
    desc.slot_bytes -= desc.slot_bytes / 8;
    assert_int_equal(gpst_ring_create(t.context, &desc, &other), GPST_OK);
    t.context->info.max_host_bytes = gpsti_a64_load(&t.context->host_bytes) + 2 * test_page();
    gpst_clear_reason();
    test_decide(t.ring, TEST_BURSTS);
    assert_string_equal(gpst_last_reason(), "");
    assert_int_equal(test_info(t.ring).depth, 4);
    assert_int_equal(test_info(t.ring).memory_bytes, 4 * test_page());
    assert_string_equal(test_last(t.ring).reason, "stays: no memory for 4 more slots (GPST_ERROR_BUDGET)");
    assert_int_equal(test_fill(t.ring, slots), 4);
    test_reason_has("gpst_ring_acquire: ", "every slot was in use");
    test_decide(t.ring, TEST_BURSTS);
    test_reason_has("gpst_ring_acquire: ", "every slot was in use"); /* no call has failed since */
    for (int i = 0; i < 4; i++)
        gpst_ring_abandon(t.ring, &slots[i]);
    gpst_ring_destroy(other);
    test_decide(t.ring, TEST_BURSTS);
    assert_int_equal(test_info(t.ring).depth, 8);
    test_close(&t);
}

/* Any allocation may fail, when the ring is made and when it deepens. */
static void test_faults(void** state) {
    gpst_result result = GPST_ERROR_MEMORY;
    uint32_t n_stayed = 0;
    (void)state;
    for (uint64_t n = 1; GPST_FAILED(result); n++) {
        test_ring t;
        test_begin(&t);
        t.desc.max_slots = 100;
        t.desc.slot_bytes = 100;
        t.desc.adaptive = true;
        test_memory_refuse(&t.memory, n);
        result = gpst_ring_create(t.context, &t.desc, &t.ring);
        assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
        assert_int_equal(t.ring == NULL, GPST_FAILED(result));
        if (GPST_FAILED(result))
            test_reason_has("gpst_ring_create", "out of memory");
        test_close(&t);
    }
    for (uint64_t n = 1; n < 6; n++) {
        test_ring t;
        gpst_ring_slot slots[101];
        test_open_adaptive(&t, GPST_RING_MPMC, GPST_RING_BLOCK, 100);
        test_memory_refuse(&t.memory, n);
        uint32_t depth = 2;
        for (int i = 0; i < 6; i++) {
            test_decide(t.ring, TEST_BURSTS);
            const gpst_ring_decision last = test_last(t.ring);
            if (last.before == last.after && last.after < 100) {
                assert_string_equal(strstr(last.reason, "("), "(GPST_ERROR_MEMORY)");
                n_stayed++;
            } else {
                depth = depth * 2 < 100 ? depth * 2 : 100;
            }
            assert_int_equal(test_info(t.ring).depth, depth);
            assert_int_equal(test_info(t.ring).memory_bytes, depth * test_page());
        }
        assert_int_equal(test_fill(t.ring, slots), depth);
        test_close(&t);
    }
    assert_true(n_stayed >= 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments),      cmocka_unit_test(test_spans),
        cmocka_unit_test(test_peak),           cmocka_unit_test(test_live),
        cmocka_unit_test(test_policies),       cmocka_unit_test(test_memory_follows),
        cmocka_unit_test(test_held_slots),     cmocka_unit_test(test_words),
        cmocka_unit_test(test_max_bytes),      cmocka_unit_test(test_large_slots),
        cmocka_unit_test(test_context_budget), cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
