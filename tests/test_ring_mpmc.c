/* tests/test_ring_mpmc.c -- moments of a ring of many producers and consumers that threads meet too seldom to be waited
   for: a thread that stops half-way, a stack whose top comes back, positions that begin anew. Made by hand, on one
   thread. */
#include "test_ring.h"

static uint64_t test_state_used(const gpst_ring* ring) { return gpsti_ring_used(gpsti_a64_load(&ring->state)); }

static void test_put(gpst_ring* ring, uint64_t value) {
    gpst_ring_slot slot;
    assert_int_equal(gpst_ring_acquire(ring, 0, &slot), GPST_OK);
    slot.words[0] = value;
    gpst_ring_commit(ring, &slot);
}

static void test_get(gpst_ring* ring, uint64_t value) {
    gpst_ring_slot slot;
    assert_int_equal(gpst_ring_take(ring, 0, &slot), GPST_OK);
    assert_int_equal(slot.words[0], value);
    gpst_ring_release(ring, &slot);
}

/* The first half of a commit: what a thread has done that is stopped before it moves the tail. */
static void test_commit_half(gpst_ring* ring, uint64_t value) {
    gpst_ring_slot slot;
    assert_int_equal(gpst_ring_acquire(ring, 0, &slot), GPST_OK);
    ring->entries[slot.id - 1].words[0] = value;
    const uint64_t tail = gpsti_a64_load(&ring->producer.tail);
    gpsti_a64* const cell = gpsti_ring_cell_at(ring, tail);
    assert_true(gpsti_ring_is_at(gpsti_a64_load(cell), tail - ring->n_cells));
    gpsti_a64_store(cell, gpsti_ring_pack(tail + 1, slot.id - 1));
}

static void test_stopped_commit(void** state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        test_ring t;
        test_open(&t, GPST_RING_MPMC, k < 2 ? GPST_RING_BLOCK : GPST_RING_LATEST_ONLY, 4);
        test_put(t.ring, 1);
        test_get(t.ring, 1);
        test_commit_half(t.ring, 2);
        if (k == 0) { /* it is committed: consumers see it, and what is counted fits */
            test_get(t.ring, 2);
            assert_true(test_info(t.ring).committed == 2 && test_info(t.ring).occupancy == 0);
            gpst_ring_slot none;
            assert_int_equal(gpst_ring_take(t.ring, 0, &none), GPST_ERROR_WOULD_BLOCK);
        }
        test_put(t.ring, 3); /* others go on */
        if (k == 1)
            test_get(t.ring, 2);
        test_get(t.ring, 3);
        assert_int_equal(test_info(t.ring).committed, 3);
        gpst_ring_close(t.ring);
        gpst_ring_slot slot;
        assert_int_equal(gpst_ring_take(t.ring, 0, &slot), GPST_ERROR_WOULD_BLOCK); /* it is still counted */
        gpsti_ring_mpmc_uncommitted(t.ring, 1);                                     /* the other half */
        assert_int_equal(gpst_ring_take(t.ring, 0, &slot), GPST_END);
        assert_int_equal(test_state_used(t.ring), 0);
        test_close(&t);
    }
}

/* A pop that read the top, and what is below it, long ago: the top is the same slot again, on another one. */
static void test_stale_top(void** state) {
    test_ring t;
    gpst_ring_slot a, b;
    (void)state;
    test_open(&t, GPST_RING_MPMC, GPST_RING_BLOCK, 3);
    uint64_t stale = gpsti_a64_load(&t.ring->free_top);
    const uint32_t top = (uint32_t)(stale & GPSTI_RING_ID_MASK);
    const uint32_t next = gpsti_a32_load(&t.ring->entries[top - 1].next);
    assert_int_equal(gpst_ring_acquire(t.ring, 0, &a), GPST_OK);
    assert_int_equal(a.id, top);
    assert_int_equal(gpst_ring_acquire(t.ring, 0, &b), GPST_OK);
    assert_int_equal(b.id, next);
    gpst_ring_abandon(t.ring, &a);
    assert_int_equal(gpsti_a64_load(&t.ring->free_top) & GPSTI_RING_ID_MASK, top);
    assert_false(gpsti_a64_cas(&t.ring->free_top, &stale, gpsti_ring_pack((stale >> GPSTI_RING_ID_BITS) + 1, next)));
    gpst_ring_abandon(t.ring, &b);
    test_close(&t);
}

/* The numbers in the cells and of the stack begin anew after 2^47 uses: nothing is seen of it. */
static void test_numbers_wrap(void** state) {
    const uint64_t start = ((uint64_t)1 << (64 - GPSTI_RING_ID_BITS)) - 20;
    (void)state;
    for (uint32_t max_slots = 1; max_slots < 6; max_slots++)
        for (int with_reader = 0; with_reader < 2; with_reader++) {
            test_ring t;
            gpst_ring_reader* reader = NULL;
            gpst_ring_slot slot;
            test_begin(&t);
            t.desc.max_slots = max_slots;
            t.desc.max_readers = (uint32_t)with_reader;
            assert_int_equal(gpst_ring_create(t.context, &t.desc, &t.ring), GPST_OK);
            const uint64_t top = gpsti_a64_load(&t.ring->free_top);
            gpsti_a64_store(&t.ring->free_top, gpsti_ring_pack(start, (uint32_t)(top & GPSTI_RING_ID_MASK)));
            gpsti_a64_store(&t.ring->producer.tail, start);
            gpsti_a64_store(&t.ring->consumer.head, start);
            for (uint64_t p = start - t.ring->n_cells; p < start; p++)
                gpsti_a64_store(gpsti_ring_cell_at(t.ring, p), gpsti_ring_pack(p + 1, 0));
            if (with_reader)
                assert_int_equal(gpst_ring_reader_create(t.ring, &reader), GPST_OK);
            for (uint64_t i = 0; i < 100; i++) {
                for (uint64_t j = 0; j < max_slots; j++)
                    test_put(t.ring, i + j);
                for (uint64_t j = 0; j < max_slots; j++) {
                    assert_int_equal(with_reader ? gpst_ring_reader_take(reader, 0, NULL, &slot)
                                                 : gpst_ring_take(t.ring, 0, &slot),
                                     GPST_OK);
                    assert_int_equal(slot.words[0], i + j);
                    assert_int_equal(slot.sequence, start + i * max_slots + j);
                    if (with_reader)
                        assert_int_equal(gpst_ring_reader_release(reader, &slot, NULL), GPST_OK);
                    else
                        gpst_ring_release(t.ring, &slot);
                }
            }
            assert_int_equal(test_state_used(t.ring), 0);
            test_close(&t);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stopped_commit),
        cmocka_unit_test(test_stale_top),
        cmocka_unit_test(test_numbers_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
