/* tests/test_ring_readers.c -- rings whose readers have cursors of their own: who sees what, when a slot is free again,
   policies with slow readers, readers that join late and leave while they hold slots, faults. Threads are in
   test_ring_readers_threads.c. */
#include "test_ring_readers.h"

/* ---- who sees what ------------------------------------------------------------------------ */

static void test_broadcast(void** state) {
    test_ring t;
    gpst_ring_slot held[2], other;
    (void)state;
    test_open_readers(&t, GPST_RING_BLOCK, 3, 2);
    gpst_ring_reader* const a = test_join(t.ring);
    gpst_ring_reader* const b = test_join(t.ring);
    for (uint8_t i = 0; i < 3; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK);
    assert_int_equal(test_put(t.ring, 9), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(test_get(a), 0);
    assert_int_equal(test_put(t.ring, 9), GPST_ERROR_WOULD_BLOCK); /* b has not seen it */
    assert_int_equal(test_info(t.ring).occupancy, 3);
    assert_int_equal(test_hold(b, &held[0]), 0);
    assert_int_equal(test_info(t.ring).occupancy, 2);
    assert_int_equal(test_put(t.ring, 9), GPST_ERROR_WOULD_BLOCK); /* nor released it */
    assert_int_equal(test_hold(a, &held[1]), 1);
    assert_int_equal(test_hold(b, &other), 1);
    assert_ptr_equal(held[1].data, other.data); /* the same slot for both */
    assert_int_equal(other.sequence, 1);
    assert_int_equal(gpst_ring_reader_release(b, &other, NULL), GPST_OK);
    assert_int_equal(gpst_ring_reader_release(a, &held[1], NULL), GPST_OK); /* before the older one */
    assert_int_equal(test_put(t.ring, 3), GPST_OK);
    assert_int_equal(test_put(t.ring, 9), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(gpst_ring_reader_release(b, &held[0], NULL), GPST_OK);
    assert_int_equal(test_put(t.ring, 4), GPST_OK);
    assert_int_equal(test_reader_info(a).behind, 3);
    for (int i = 2; i < 5; i++) {
        assert_int_equal(test_get(a), i);
        assert_int_equal(test_get(b), i);
    }
    assert_int_equal(test_get(a), GPST_ERROR_WOULD_BLOCK);
    test_reason_has("gpst_ring_reader_take: ", "nothing was committed");
    for (int i = 0; i < 200; i++) { /* several turns */
        assert_int_equal(test_put(t.ring, (uint8_t)i), GPST_OK);
        assert_int_equal(test_get(a), i);
        assert_int_equal(test_get(b), i);
    }
    assert_int_equal(test_reader_info(b).taken, 205);
    assert_int_equal(test_reader_info(b).missed + test_reader_info(b).behind, 0);
    const gpst_ring_info info = test_info(t.ring);
    assert_true(info.committed == 205 && info.taken == 205 && info.dropped == 0 && info.occupancy == 0);
    assert_true(info.max_readers == 2 && info.n_readers == 2);
    test_close(&t);
}

/* Slots that nobody will take are free at once. */
static void test_no_reader(void** state) {
    test_ring t;
    gpst_ring_slot slot;
    (void)state;
    test_open_readers(&t, GPST_RING_BLOCK, 2, 1);
    for (uint8_t i = 0; i < 5; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK);
    gpst_ring_info info = test_info(t.ring);
    assert_true(info.committed == 5 && info.dropped == 5 && info.taken == 0 && info.occupancy == 0);
    assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
    gpst_ring_reader* const late = test_join(t.ring);
    assert_int_equal(test_get(late), GPST_ERROR_WOULD_BLOCK); /* not what was before it */
    memset(slot.data, 7, 24);
    slot.words[0] = 7;
    gpst_ring_commit(t.ring, &slot); /* acquired before, committed after */
    assert_int_equal(slot.sequence, 5);
    assert_int_equal(test_get(late), 7);
    info = test_info(t.ring);
    assert_true(info.taken == 1 && info.dropped == 5);
    test_close(&t);
}

static void test_join_late(void** state) {
    test_ring t;
    (void)state;
    test_open_readers(&t, GPST_RING_BLOCK, 4, 3);
    gpst_ring_reader* const a = test_join(t.ring);
    assert_int_equal(test_put(t.ring, 0), GPST_OK);
    assert_int_equal(test_put(t.ring, 1), GPST_OK);
    gpst_ring_reader* const b = test_join(t.ring);
    assert_int_equal(test_put(t.ring, 2), GPST_OK);
    assert_int_equal(test_get(b), 2);
    assert_int_equal(test_get(b), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(test_get(a), 0);
    assert_int_equal(test_put(t.ring, 3), GPST_OK);
    assert_int_equal(test_put(t.ring, 4), GPST_OK); /* the slot of 0 was a's alone */
    assert_int_equal(test_put(t.ring, 9), GPST_ERROR_WOULD_BLOCK);
    for (int i = 1; i < 5; i++)
        assert_int_equal(test_get(a), i);
    assert_int_equal(test_get(b), 3);
    assert_int_equal(test_get(b), 4);
    test_close(&t);
}

/* What a reader that leaves has not taken, and what it holds, keeps no slot. */
static void test_leave(void** state) {
    test_ring t;
    gpst_ring_slot held[2], kept;
    (void)state;
    test_open_readers(&t, GPST_RING_BLOCK, 4, 2);
    gpst_ring_reader* const a = test_join(t.ring);
    gpst_ring_reader* b = test_join(t.ring);
    for (uint8_t i = 0; i < 4; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK);
    assert_int_equal(test_hold(b, &held[0]), 0);
    assert_int_equal(test_hold(b, &held[1]), 1);
    assert_int_equal(test_get(a), 0);
    assert_int_equal(test_hold(a, &kept), 1);
    assert_int_equal(test_get(a), 2);
    assert_int_equal(test_put(t.ring, 9), GPST_ERROR_WOULD_BLOCK);
    gpst_ring_reader_destroy(b); /* frees 0 and 2; a holds 1 and has not seen 3 */
    assert_int_equal(test_info(t.ring).n_readers, 1);
    assert_int_equal(test_put(t.ring, 4), GPST_OK);
    assert_int_equal(test_put(t.ring, 5), GPST_OK);
    assert_int_equal(test_put(t.ring, 9), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(((uint8_t*)kept.data)[0], 1);
    b = test_join(t.ring); /* in its place, with nothing of it */
    assert_int_equal(test_get(b), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(test_reader_info(b).taken, 0);
    assert_int_equal(gpst_ring_reader_release(b, &held[0], NULL), GPST_ERROR_ARGUMENT);
    for (int i = 3; i < 6; i++)
        assert_int_equal(test_get(a), i);
    assert_int_equal(gpst_ring_reader_release(a, &kept, NULL), GPST_OK);
    for (uint8_t i = 6; i < 10; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK);
    gpst_ring_reader_destroy(a);
    for (int i = 6; i < 10; i++)
        assert_int_equal(test_get(b), i);
    gpst_ring_reader_destroy(b);
    for (uint8_t i = 0; i < 9; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK); /* for nobody */
    assert_int_equal(test_info(t.ring).occupancy, 0);
    test_close(&t);
}

/* ---- policies ------------------------------------------------------------------------------- */

static void test_drop_oldest(void** state) {
    test_ring t;
    gpst_ring_slot slot, held[3];
    (void)state;
    test_open_readers(&t, GPST_RING_DROP_OLDEST, 3, 2);
    gpst_ring_reader* const fast = test_join(t.ring);
    gpst_ring_reader* const slow = test_join(t.ring);
    for (uint8_t i = 0; i < 7; i++) {
        assert_int_equal(test_put(t.ring, i), GPST_OK);
        assert_int_equal(test_get(fast), i); /* misses nothing for the other's sake */
    }
    assert_int_equal(test_reader_info(slow).missed, 4);
    assert_int_equal(test_reader_info(slow).behind, 3);
    assert_int_equal(test_reader_info(fast).missed, 0);
    assert_int_equal(test_hold(slow, &slot), 4);
    assert_int_equal(slot.sequence, 4);             /* the gap tells what it missed */
    assert_int_equal(test_put(t.ring, 7), GPST_OK); /* gives up 5, never what a reader holds */
    assert_int_equal(((uint8_t*)slot.data)[0], 4);
    assert_int_equal(test_hold(fast, &held[0]), 7);
    assert_int_equal(test_put(t.ring, 8), GPST_OK); /* 6 */
    assert_int_equal(test_hold(fast, &held[1]), 8);
    /* fast holds 7 and 8, slow 4: nothing that could be given up would be free, so slow misses nothing for it */
    assert_int_equal(test_put(t.ring, 9), GPST_DROPPED);
    assert_int_equal(test_reader_info(slow).behind, 2);
    assert_int_equal(gpst_ring_reader_release(slow, &slot, NULL), GPST_OK);
    assert_int_equal(test_put(t.ring, 9), GPST_OK);
    assert_int_equal(test_hold(slow, &slot), 7);
    assert_int_equal(gpst_ring_reader_release(slow, &slot, NULL), GPST_OK);
    /* 8 is fast's; 9 alone can go, and 8 with it for slow */
    assert_int_equal(test_put(t.ring, 10), GPST_OK);
    assert_int_equal(test_hold(slow, &slot), 10);
    assert_int_equal(test_hold(fast, &held[2]), 10);
    assert_int_equal(test_reader_info(slow).missed, 8);
    assert_int_equal(test_reader_info(fast).missed, 1);
    const gpst_ring_info info = test_info(t.ring);
    assert_int_equal(info.committed, 11);
    assert_int_equal(info.taken, 10);
    assert_int_equal(info.dropped, 2); /* 9, which both missed, and the refused one */
    test_close(&t);
}

static void test_latest_only(void** state) {
    test_ring t;
    gpst_ring_slot held, other;
    (void)state;
    test_open_readers(&t, GPST_RING_LATEST_ONLY, 4, 2);
    gpst_ring_reader* const a = test_join(t.ring);
    gpst_ring_reader* const b = test_join(t.ring);
    for (uint8_t i = 0; i < 5; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK);
    assert_int_equal(test_hold(a, &held), 4);
    for (uint8_t i = 5; i < 9; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK);
    assert_int_equal(test_hold(b, &other), 8);
    assert_int_equal(((uint8_t*)held.data)[0], 4);
    for (uint8_t i = 9; i < 20; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK); /* producer + two readers + 1: never full */
    assert_int_equal(gpst_ring_reader_release(a, &held, NULL), GPST_OK);
    assert_int_equal(test_get(a), 19);
    assert_int_equal(gpst_ring_reader_release(b, &other, NULL), GPST_OK);
    assert_int_equal(test_get(b), 19);
    assert_int_equal(test_get(b), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(test_reader_info(a).missed, 18);
    assert_int_equal(test_info(t.ring).taken, 3);
    assert_int_equal(test_info(t.ring).dropped, 17);
    test_close(&t);
}

static void test_close_and_drain(void** state) {
    test_ring t;
    gpst_ring_slot late;
    (void)state;
    test_open_readers(&t, GPST_RING_BLOCK, 4, 3);
    gpst_ring_reader* const a = test_join(t.ring);
    gpst_ring_reader* const b = test_join(t.ring);
    assert_int_equal(test_put(t.ring, 1), GPST_OK);
    assert_int_equal(gpst_ring_acquire(t.ring, 0, &late), GPST_OK);
    assert_int_equal(test_get(a), 1);
    gpst_ring_close(t.ring);
    assert_int_equal(test_put(t.ring, 2), GPST_ERROR_CLOSED);
    assert_int_equal(test_get(a), GPST_ERROR_WOULD_BLOCK); /* one may still come */
    gpst_ring_reader* const c = test_join(t.ring);
    memset(late.data, 3, 24);
    late.words[0] = 3;
    gpst_ring_commit(t.ring, &late);
    assert_int_equal(test_get(a), 3);
    assert_int_equal(test_get(a), 1000 + GPST_END);
    assert_int_equal(test_get(b), 1); /* each drains by itself */
    assert_int_equal(test_get(b), 3);
    assert_int_equal(test_get(b), 1000 + GPST_END);
    assert_int_equal(test_get(c), 3);
    gpst_ring_reader_destroy(a);
    assert_int_equal(test_get(test_join(t.ring)), 1000 + GPST_END);
    test_close(&t);
}

/* ---- a depth of its own ---------------------------------------------------------------------- */

/* A ring with readers is empty where all of them have taken everything, and full where the slowest one makes it so. */
static void test_adaptive(void** state) {
    test_ring t;
    gpst_ring_slot slot;
    (void)state;
    test_begin(&t);
    t.desc.max_slots = 8;
    t.desc.slot_bytes = 24;
    t.desc.max_readers = 2;
    t.desc.adaptive = true;
    assert_int_equal(gpst_ring_create(t.context, &t.desc, &t.ring), GPST_OK);
    gpsti_ring_adapt* const adapt = t.ring->adapt;
    gpst_ring_reader* const fast = test_join(t.ring);
    gpst_ring_reader* const slow = test_join(t.ring);
    assert_int_equal(test_put(t.ring, 1), GPST_OK);
    assert_int_equal(test_put(t.ring, 2), GPST_OK);
    assert_int_equal(test_get(fast), 1);
    assert_int_equal(test_get(fast), 2);
    assert_int_equal(test_get(fast), GPST_ERROR_WOULD_BLOCK); /* it alone */
    assert_true(gpsti_a64_load(&adapt->empty.since) == 0);
    assert_int_equal(test_put(t.ring, 3), GPST_ERROR_WOULD_BLOCK);
    assert_true(gpsti_a64_load(&adapt->full.since) != 0);
    assert_int_equal(adapt->peak, 2);
    assert_int_equal(test_get(slow), 1);
    assert_int_equal(test_hold(slow, &slot), 2);
    assert_int_equal(test_get(fast), GPST_ERROR_WOULD_BLOCK);
    assert_true(gpsti_a64_load(&adapt->empty.since) != 0);
    assert_int_equal(test_put(t.ring, 3), GPST_OK);
    assert_true(gpsti_a64_load(&adapt->full.since) == 0);
    assert_int_equal(test_get(fast), 3);
    assert_true(gpsti_a64_load(&adapt->empty.since) == 0);
    test_decide(t.ring, TEST_BURSTS);
    assert_int_equal(test_info(t.ring).depth, 4);
    assert_int_equal(test_put(t.ring, 4), GPST_OK);
    assert_int_equal(test_put(t.ring, 5), GPST_OK);
    assert_int_equal(test_put(t.ring, 6), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(gpst_ring_reader_release(slow, &slot, NULL), GPST_OK);
    for (int i = 3; i < 6; i++)
        assert_int_equal(test_get(slow), i);
    test_decide(t.ring, TEST_IDLE);
    assert_true(test_info(t.ring).depth < 4);
    test_close(&t);
}

/* ---- arguments and faults ------------------------------------------------------------------- */

static void test_refused(test_ring* t, gpst_ring_desc desc, const char* text) {
    gpst_ring* ring = (gpst_ring*)&desc;
    gpst_clear_reason();
    assert_int_equal(gpst_ring_create(t->context, &desc, &ring), GPST_ERROR_ARGUMENT);
    assert_null(ring);
    test_reason_has("gpst_ring_create: ", text);
}

static void test_descs(void** state) {
    test_ring t;
    gpst_ring_desc desc = GPST_ZERO;
    (void)state;
    test_begin(&t);
    desc.max_slots = 4;
    desc.max_readers = 33;
    test_refused(&t, desc, "max_readers=33");
    desc.max_readers = 2;
    desc.sharing = GPST_RING_SPSC;
    test_refused(&t, desc, "GPST_RING_MPMC");
    desc.sharing = GPST_RING_MPMC;
    desc.max_readers = 32;
    desc.max_slots = 65536;
    assert_int_equal(gpst_ring_create(t.context, &desc, &t.ring), GPST_OK);
    gpst_ring_reader* last = NULL;
    for (int i = 0; i < 32; i++)
        last = test_join(t.ring);
    gpst_ring_slot slot, seen;
    for (int i = 0; i < 65536; i++) { /* the largest id, of the last reader */
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
        slot.words[0] = slot.id;
        gpst_ring_commit(t.ring, &slot);
        assert_int_equal(gpst_ring_reader_take(last, 0, NULL, &seen), GPST_OK);
        assert_int_equal(gpst_ring_reader_release(last, &seen, NULL), GPST_OK);
    }
    assert_int_equal(seen.words[0], 65536);
    test_close(&t);
}

static void test_arguments(void** state) {
    test_ring t;
    gpst_ring_slot slot, copy;
    gpst_ring_reader* none = (gpst_ring_reader*)&slot;
    (void)state;
    test_open(&t, GPST_RING_MPMC, GPST_RING_BLOCK, 2);
    assert_int_equal(gpst_ring_reader_create(t.ring, &none), GPST_ERROR_STATE);
    assert_null(none);
    test_reason_has("gpst_ring_reader_create: ", "desc.max_readers=0");
    assert_int_equal(gpst_ring_reader_create(NULL, &none), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_reader_create(t.ring, NULL), GPST_ERROR_ARGUMENT);
    test_close(&t);
    test_open_readers(&t, GPST_RING_BLOCK, 2, 2);
    gpst_ring_reader* const a = test_join(t.ring);
    gpst_ring_reader* const b = test_join(t.ring);
    assert_int_equal(gpst_ring_reader_create(t.ring, &none), GPST_ERROR_STATE);
    test_reason_has("gpst_ring_reader_create: ", "desc.max_readers=2");
    assert_int_equal(test_put(t.ring, 1), GPST_OK);
    assert_int_equal(gpst_ring_take(t.ring, GPST_FOREVER, &slot), GPST_ERROR_STATE);
    test_reason_has("gpst_ring_take: ", "gpst_ring_reader");
    assert_int_equal(gpst_ring_reader_take(NULL, 0, NULL, &slot), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_reader_take(a, 0, NULL, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_reader_release(NULL, &slot, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_reader_release(a, NULL, NULL), GPST_ERROR_ARGUMENT);
    gpst_ring_reader_destroy(NULL);
    gpst_ring_reader_query_info(a, NULL);
    assert_int_equal(test_reader_info(NULL).taken, 0);
    assert_int_equal(test_hold(a, &slot), 1);
    copy = slot;
    assert_int_equal(gpst_ring_reader_release(b, &copy, NULL), GPST_ERROR_ARGUMENT); /* a's */
    test_reason_has("gpst_ring_reader_release: slot.id=", "not held");
    gpst_ring_release(t.ring, &copy); /* no shared consumer's, */
    gpst_ring_commit(t.ring, &copy);  /* nor a producer's: logged */
    assert_int_equal(gpsti_a32_load(&t.log.n_errors), 2);
    gpsti_a32_store(&t.log.n_errors, 0);
    assert_int_equal(gpst_ring_reader_release(a, &slot, NULL), GPST_OK);
    assert_int_equal(gpst_ring_reader_release(a, &copy, NULL), GPST_ERROR_ARGUMENT); /* twice */
    assert_int_equal(gpst_ring_reader_release(a, &slot, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(test_get(b), 1);
    assert_int_equal(test_put(t.ring, 2), GPST_OK); /* into the same slot */
    assert_int_equal(test_hold(a, &slot), 2);
    assert_int_equal(slot.id, copy.id);
    assert_int_equal(gpst_ring_reader_release(a, &copy, NULL), GPST_ERROR_ARGUMENT); /* an earlier loan */
    assert_int_equal(gpst_ring_slot_wait(t.ring, &copy, 0), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_slot_wait(t.ring, &slot, 0), GPST_OK);
    copy = slot;
    gpst_ring_reader_destroy(a); /* which releases it */
    assert_ptr_equal(test_join(t.ring), a);
    assert_int_equal(gpst_ring_reader_release(a, &copy, NULL), GPST_ERROR_ARGUMENT);
    copy.id |= 0x7FF00000; /* of a reader that there is not */
    assert_int_equal(gpst_ring_slot_wait(t.ring, &copy, 0), GPST_ERROR_ARGUMENT);
    assert_int_equal(test_get(b), 2);
    test_close(&t);
}

static void test_faults(void** state) {
    gpst_result result = GPST_ERROR_MEMORY;
    uint64_t n = 0;
    (void)state;
    for (n = 1; GPST_FAILED(result); n++) {
        test_ring t;
        test_begin(&t);
        t.desc.max_slots = 5;
        t.desc.slot_bytes = 100;
        t.desc.max_readers = 3;
        t.desc.streams = true;
        test_memory_refuse(&t.memory, n);
        gpst_clear_reason();
        result = gpst_ring_create(t.context, &t.desc, &t.ring);
        assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
        assert_int_equal(t.ring == NULL, GPST_FAILED(result));
        if (GPST_FAILED(result)) {
            test_reason_has("gpst_ring_create", "out of memory");
            assert_int_equal(gpst_ring_create(t.context, &t.desc, &t.ring), GPST_OK);
        }
        gpst_ring_reader* const reader = test_join(t.ring);
        assert_int_equal(test_put(t.ring, 3), GPST_OK);
        assert_int_equal(test_get(reader), 3);
        test_close(&t);
    }
    assert_true(n >= 20); /* 20 events are among them */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_broadcast),       cmocka_unit_test(test_no_reader),
                                       cmocka_unit_test(test_join_late),       cmocka_unit_test(test_leave),
                                       cmocka_unit_test(test_drop_oldest),     cmocka_unit_test(test_latest_only),
                                       cmocka_unit_test(test_close_and_drain), cmocka_unit_test(test_descs),
                                       cmocka_unit_test(test_adaptive),
        cmocka_unit_test(test_arguments),       cmocka_unit_test(test_faults)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
