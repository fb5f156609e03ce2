/* tests/test_ring.c -- rings, SPSC and MPMC, on one thread: slots and their misuse, depth, arguments, policies, close
   and drain, time-outs, occupancy, faults. */
#include "test_ring.h"

/* Commits one slot that carries value. */
static gpst_result test_put(gpst_ring* ring, uint64_t value) {
    gpst_ring_slot slot;
    memset(&slot, 0xA5, sizeof slot);
    const gpst_result result = gpst_ring_acquire(ring, 0, &slot);
    if (result != GPST_OK)
        return result;
    memcpy(slot.data, &value, sizeof value);
    slot.words[0] = value;
    slot.words[1] = ~value;
    gpst_ring_commit(ring, &slot);
    return GPST_OK;
}

/* The next slot's value; the result instead, negated or plus 1000, when there is none. */
static int test_get(gpst_ring* ring) {
    gpst_ring_slot slot;
    uint64_t value = 0;
    memset(&slot, 0xA5, sizeof slot);
    const gpst_result result = gpst_ring_take(ring, 0, &slot);
    if (result != GPST_OK)
        return result < 0 ? (int)result : 1000 + (int)result;
    memcpy(&value, slot.data, sizeof value);
    assert_int_equal(slot.words[0], value);
    assert_int_equal(slot.words[1], ~value);
    gpst_ring_release(ring, &slot);
    return (int)value;
}

/* ---- slots ---------------------------------------------------------------------------- */

static void test_slots(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot a, b, c, d;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, 3);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &a), GPST_OK);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &b), GPST_OK);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &c), GPST_OK);
        assert_true(a.data != b.data && b.data != c.data && a.data != c.data);
        assert_int_equal((uintptr_t)a.data % 128, 0);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &d), GPST_ERROR_WOULD_BLOCK);
        test_reason_has("gpst_ring_acquire: ", "every slot was in use");
        assert_null(d.data);
        memset(a.data, 1, 24);
        memset(c.data, 3, 24);
        c.words[0] = 33;
        gpst_ring_commit(t.ring, &c); /* the order of the commits counts, not that of the acquires */
        assert_int_equal(c.sequence, 0);
        assert_null(c.data);
        gpst_ring_abandon(t.ring, &b); /* leaves no hole */
        a.words[1] = 11;
        gpst_ring_commit(t.ring, &a);
        assert_int_equal(a.sequence, 1);
        assert_int_equal(test_info(t.ring).occupancy, 2);
        assert_int_equal(gpst_ring_take(t.ring, 0, &c), GPST_OK);
        assert_int_equal(gpst_ring_take(t.ring, 0, &a), GPST_OK);
        assert_int_equal(gpst_ring_take(t.ring, 0, &d), GPST_ERROR_WOULD_BLOCK);
        test_reason_has("gpst_ring_take: ", "nothing was committed");
        assert_true(c.sequence == 0 && c.words[0] == 33 && ((uint8_t*)c.data)[23] == 3);
        assert_true(a.sequence == 1 && a.words[1] == 11 && ((uint8_t*)a.data)[23] == 1);
        gpst_ring_release(t.ring, &a); /* in another order than they were taken */
        gpst_ring_release(t.ring, &c);
        for (uint64_t i = 0; i < 100; i++) {
            assert_int_equal(test_put(t.ring, i), GPST_OK);
            assert_int_equal(test_get(t.ring), i);
        }
        const gpst_ring_info info = test_info(t.ring);
        assert_int_equal(info.max_slots, 3);
        assert_int_equal(info.depth, 3);
        assert_int_equal(info.occupancy, 0);
        assert_int_equal(info.committed, 102);
        assert_int_equal(info.taken, 102);
        assert_int_equal(info.abandoned, 1);
        assert_int_equal(info.dropped, 0);
        assert_int_equal(info.producer_waits + info.consumer_waits, 0);
        test_close(&t);
    }
}

static void test_depth(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, 5);
        for (uint64_t i = 0; i < 5; i++)
            assert_int_equal(test_put(t.ring, i), GPST_OK);
        assert_int_equal(gpst_ring_set_depth(t.ring, 2), GPST_OK); /* what is in flight drains */
        assert_int_equal(test_info(t.ring).depth, 2);
        for (int i = 0; i < 3; i++) {
            assert_int_equal(test_put(t.ring, 99), GPST_ERROR_WOULD_BLOCK);
            assert_int_equal(test_get(t.ring), i);
        }
        assert_int_equal(test_put(t.ring, 99), GPST_ERROR_WOULD_BLOCK);
        assert_int_equal(test_get(t.ring), 3);
        assert_int_equal(test_put(t.ring, 5), GPST_OK);
        assert_int_equal(test_put(t.ring, 99), GPST_ERROR_WOULD_BLOCK);
        assert_int_equal(gpst_ring_set_depth(t.ring, 4), GPST_OK);
        assert_int_equal(test_put(t.ring, 6), GPST_OK);
        assert_int_equal(test_put(t.ring, 7), GPST_OK);
        assert_int_equal(test_put(t.ring, 99), GPST_ERROR_WOULD_BLOCK);
        for (int i = 4; i < 8; i++)
            assert_int_equal(test_get(t.ring), i);
        assert_int_equal(gpst_ring_set_depth(t.ring, 0), GPST_ERROR_ARGUMENT);
        assert_int_equal(gpst_ring_set_depth(t.ring, 6), GPST_ERROR_ARGUMENT);
        test_reason_has("gpst_ring_set_depth: depth=6", "1..5");
        assert_int_equal(gpst_ring_set_depth(NULL, 1), GPST_ERROR_ARGUMENT);
        test_close(&t);
    }
}

/* A smaller depth keeps fewer slots warm instead of walking over all of them. */
static void test_hot_slots(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slot;
        const void* seen[3];
        size_t n_seen = 0;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, 64);
        assert_int_equal(gpst_ring_set_depth(t.ring, 2), GPST_OK);
        for (int i = 0; i < 300; i++) {
            size_t at = 0;
            assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
            while (at < n_seen && seen[at] != slot.data)
                at++;
            if (at == n_seen) {
                assert_true(n_seen < 2);
                seen[n_seen++] = slot.data;
            }
            gpst_ring_commit(t.ring, &slot);
            assert_int_equal(gpst_ring_take(t.ring, 0, &slot), GPST_OK);
            gpst_ring_release(t.ring, &slot);
        }
        test_close(&t);
    }
}

static void test_misuse(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slot, none;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, 2);
        memset(&none, 0, sizeof none);
        gpst_ring_commit(t.ring, &none);
        gpst_ring_abandon(t.ring, &none);
        gpst_ring_release(t.ring, &none);
        assert_int_equal(gpsti_a32_load(&t.log.n_errors), 3);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
        gpst_ring_release(t.ring, &slot); /* a producer's slot */
        assert_int_equal(gpsti_a32_load(&t.log.n_errors), 4);
        gpst_ring_commit(t.ring, &slot);
        gpst_ring_commit(t.ring, &slot); /* twice */
        assert_int_equal(gpsti_a32_load(&t.log.n_errors), 5);
        assert_non_null(strstr(t.log.last, "gpst_ring_commit: slot.id=0, loan=0"));
        assert_int_equal(gpst_ring_take(t.ring, 0, &slot), GPST_OK);
        gpst_ring_commit(t.ring, &slot); /* a consumer's */
        gpst_ring_abandon(t.ring, &slot);
        assert_int_equal(gpsti_a32_load(&t.log.n_errors), 7);
        gpst_ring_release(t.ring, &slot);
        assert_int_equal(test_info(t.ring).committed, 1);
        gpst_ring_commit(NULL, &slot);
        gpst_ring_commit(t.ring, NULL);
        gpst_ring_abandon(NULL, NULL);
        gpst_ring_release(t.ring, NULL);
        assert_int_equal(gpsti_a32_load(&t.log.n_errors), 7);
        gpsti_a32_store(&t.log.n_errors, 0);
        test_close(&t);
    }
}

/* Every slot can be had, once. */
static void test_all_slots_are_there(test_ring* t) {
    gpst_ring_slot slots[8], none;
    const uint32_t n = test_info(t->ring).max_slots;
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(gpst_ring_acquire(t->ring, 0, &slots[i]), GPST_OK);
    assert_int_equal(gpst_ring_acquire(t->ring, 0, &none), GPST_ERROR_WOULD_BLOCK);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_true(slots[i].data != slots[j].data);
    for (uint32_t i = 0; i < n; i++)
        gpst_ring_abandon(t->ring, &slots[i]);
}

/* A copy of a slot that went on is none, whoever has the slot now. */
static void test_copies(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slot, copy, taken, taken_copy;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, 3);
        for (int turn = 0; turn < 5; turn++) {
            assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
            copy = slot;
            gpst_ring_commit(t.ring, &slot);
            assert_true(!slot.data && !slot.id && !slot.loan);
            for (int i = 0; i < 4; i++) { /* committed; taken; free; somebody else's */
                gpst_ring_slot again = copy;
                gpst_ring_commit(t.ring, &again);
                gpst_ring_abandon(t.ring, &again);
                assert_true(again.data == copy.data && again.loan == copy.loan);
                assert_int_equal(gpst_ring_commit_on(t.ring, &again, NULL), GPST_ERROR_ARGUMENT);
                test_reason_has("gpst_ring_commit_on: slot.id=", "not held by the caller");
                assert_int_equal(gpst_ring_slot_wait(t.ring, &again, 0), GPST_ERROR_ARGUMENT);
                assert_int_equal(gpsti_a32_exchange(&t.log.n_errors, 0), 2);
                assert_int_equal(test_info(t.ring).committed, turn + 1);
                if (i == 0) {
                    assert_int_equal(gpst_ring_take(t.ring, 0, &taken), GPST_OK);
                    taken_copy = taken;
                }
                if (i >= 1) {
                    gpst_ring_release(t.ring, i == 1 ? &taken : &taken_copy);
                    assert_int_equal(gpst_ring_release_on(t.ring, &taken_copy, NULL), GPST_ERROR_ARGUMENT);
                    assert_int_equal(gpsti_a32_exchange(&t.log.n_errors, 0), i > 1);
                }
                if (i == 2)
                    assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
            }
            gpst_ring_abandon(t.ring, &slot);
            assert_int_equal(test_info(t.ring).taken, turn + 1);
            test_all_slots_are_there(&t);
        }
        assert_int_equal(test_info(t.ring).abandoned, 5 * 4);
        test_close(&t);
    }
}

/* The struct may lie where whoever has the slot next may write: here in the slot, which AddressSanitizer watches. */
static void test_struct_in_slot(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slot;
        test_begin(&t);
        t.desc.max_slots = 2;
        t.desc.slot_bytes = sizeof slot;
        t.desc.sharing = test_sharings[k];
        assert_int_equal(gpst_ring_create(t.context, &t.desc, &t.ring), GPST_OK);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
            memcpy(slot.data, &slot, sizeof slot);
            if (i % 2) {
                gpst_ring_abandon(t.ring, (gpst_ring_slot*)slot.data);
                continue;
            }
            gpst_ring_commit(t.ring, (gpst_ring_slot*)slot.data);
            assert_int_equal(gpst_ring_take(t.ring, 0, &slot), GPST_OK);
            memcpy(slot.data, &slot, sizeof slot);
            gpst_ring_release(t.ring, (gpst_ring_slot*)slot.data);
        }
        test_all_slots_are_there(&t);
        test_close(&t);
    }
}

/* ---- arguments -------------------------------------------------------------------------- */

static void test_refused(test_ring* t, gpst_ring_desc desc, gpst_result result, const char* text) {
    gpst_ring* ring = (gpst_ring*)&desc;
    gpst_clear_reason();
    assert_int_equal(gpst_ring_create(t->context, &desc, &ring), result);
    assert_null(ring);
    test_reason_has("gpst_ring_create: ", text);
}

static void test_arguments(void** state) {
    test_ring t;
    gpst_ring* ring = NULL;
    gpst_ring_slot slot;
    gpst_ring_desc desc = GPST_ZERO;
    (void)state;
    test_begin(&t);
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "max_slots=0");
    desc.max_slots = 65537;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "max_slots=65537");
    desc.max_slots = 4;
    desc.depth = 5;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "depth=5");
    desc.depth = 0;
    desc.align_bytes = 96;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "align_bytes=96");
    desc.align_bytes = 8192;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "align_bytes=8192");
    desc.align_bytes = 0;
    desc.sharing = (gpst_ring_sharing)3;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "sharing=3");
    desc.sharing = GPST_RING_SPSC;
    desc.policy = (gpst_ring_policy)4;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "policy=4");
    desc.policy = GPST_RING_DROP_OLDEST;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "policy=DROP_OLDEST: takes slots back from the consumer's side");
    desc.policy = GPST_RING_LATEST_ONLY;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "policy=LATEST_ONLY: takes slots back from the consumer's side");
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "use desc.sharing=GPST_RING_MPMC");
    desc.policy = GPST_RING_BLOCK;
    desc.slot_bytes = SIZE_MAX / 2;
    test_refused(&t, desc, GPST_ERROR_OVERFLOW, "slot_bytes=");
    desc.slot_bytes = (size_t)20 << 20;
    test_refused(&t, desc, GPST_ERROR_BUDGET, "max_host_bytes");
    assert_int_equal(gpsti_a64_load(&t.context->host_bytes), 0);
    desc.slot_bytes = 0;
    desc.start_canary = 5;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "start_canary=5");
    desc.start_canary = 0;
    assert_int_equal(gpst_ring_create(NULL, &desc, &ring), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_create(t.context, NULL, &ring), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_create(t.context, &desc, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_create_versioned(1, sizeof desc, t.context, &desc, &ring), GPST_ERROR_VERSION);
    assert_int_equal(gpst_ring_create_versioned(GPST_VERSION, 1, t.context, &desc, &ring),
                     GPST_ERROR_VERSION);
    assert_int_equal(gpst_ring_acquire(NULL, 0, &slot), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_ring_take(NULL, 0, &slot), GPST_ERROR_ARGUMENT);
    gpst_ring_close(NULL);
    gpst_ring_destroy(NULL);
    gpst_ring_query_info(NULL, NULL);
    assert_int_equal(test_info(NULL).max_slots, 0);
    /* slots without memory carry words only; large ones take huge pages; odd sizes are aligned as asked */
    for (int i = 0; i < 3; i++) {
        desc.slot_bytes = i == 0 ? 0 : i == 1 ? (size_t)3 << 20 : 1001;
        desc.align_bytes = i == 2 ? 512 : 0;
        assert_int_equal(gpst_ring_create(t.context, &desc, &ring), GPST_OK);
        assert_int_equal(gpst_ring_acquire(ring, 0, &slot), GPST_OK);
        gpst_ring_commit(ring, &slot);
        assert_int_equal(gpst_ring_acquire(ring, 0, &slot), GPST_OK);
        assert_int_equal(slot.data == NULL, i == 0);
        assert_int_equal((uintptr_t)slot.data % (i == 2 ? 512 : 128), 0);
        if (slot.data)
            memset(slot.data, 0xA5, desc.slot_bytes);
        gpst_ring_destroy(ring); /* with slots held and committed: all of it goes */
    }
    test_close(&t);
}

/* ---- policies ----------------------------------------------------------------------------- */

static void test_drop_newest(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        test_open(&t, test_sharings[k], GPST_RING_DROP_NEWEST, 2);
        assert_int_equal(test_put(t.ring, 1), GPST_OK);
        assert_int_equal(test_put(t.ring, 2), GPST_OK);
        assert_int_equal(test_put(t.ring, 3), GPST_DROPPED);
        assert_int_equal(test_put(t.ring, 4), GPST_DROPPED);
        assert_int_equal(test_get(t.ring), 1);
        assert_int_equal(test_put(t.ring, 5), GPST_OK);
        assert_int_equal(test_get(t.ring), 2);
        assert_int_equal(test_get(t.ring), 5);
        assert_int_equal(test_info(t.ring).dropped, 2);
        assert_int_equal(test_info(t.ring).committed, 3);
        test_close(&t);
    }
}

static void test_drop_oldest(void** state) {
    test_ring t;
    gpst_ring_slot held, other;
    (void)state;
    test_open(&t, GPST_RING_MPMC, GPST_RING_DROP_OLDEST, 3);
    for (uint64_t i = 0; i < 7; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK);
    assert_int_equal(test_info(t.ring).dropped, 4);
    assert_int_equal(test_info(t.ring).occupancy, 3);
    assert_int_equal(gpst_ring_take(t.ring, 0, &held), GPST_OK);
    assert_int_equal(held.words[0], 4);
    assert_int_equal(held.sequence, 4);             /* the gap tells what was given up */
    assert_int_equal(test_put(t.ring, 7), GPST_OK); /* gives up 5, never what a consumer holds */
    assert_int_equal(held.words[0], 4);
    assert_int_equal(*(uint8_t*)held.data, 4);
    assert_int_equal(test_get(t.ring), 6);
    assert_int_equal(test_get(t.ring), 7);
    assert_int_equal(gpst_ring_acquire(t.ring, 0, &other), GPST_OK);
    assert_int_equal(gpst_ring_set_depth(t.ring, 2), GPST_OK);
    assert_int_equal(test_put(t.ring, 8), GPST_DROPPED); /* nothing committed to give up: the newest goes */
    gpst_ring_release(t.ring, &held);
    gpst_ring_abandon(t.ring, &other);
    const gpst_ring_info info = test_info(t.ring);
    assert_int_equal(info.dropped, 6);
    assert_int_equal(info.committed, 8);
    assert_int_equal(info.taken, 3);
    /* shrinking gives up more than one at the next acquire */
    assert_int_equal(test_put(t.ring, 10), GPST_OK);
    assert_int_equal(test_put(t.ring, 11), GPST_OK);
    assert_int_equal(gpst_ring_set_depth(t.ring, 1), GPST_OK);
    assert_int_equal(test_put(t.ring, 12), GPST_OK);
    assert_int_equal(test_get(t.ring), 12);
    assert_int_equal(test_get(t.ring), GPST_ERROR_WOULD_BLOCK);
    test_close(&t);
}

static void test_latest_only(void** state) {
    test_ring t;
    gpst_ring_slot held;
    (void)state;
    test_open(&t, GPST_RING_MPMC, GPST_RING_LATEST_ONLY, 3);
    for (uint64_t i = 0; i < 5; i++)
        assert_int_equal(test_put(t.ring, i), GPST_OK);
    assert_int_equal(test_info(t.ring).occupancy, 1);
    assert_int_equal(gpst_ring_take(t.ring, 0, &held), GPST_OK);
    assert_int_equal(held.words[0], 4);
    assert_int_equal(test_put(t.ring, 5), GPST_OK);
    assert_int_equal(test_put(t.ring, 6), GPST_OK);
    assert_int_equal(*(uint8_t*)held.data, 4);
    gpst_ring_release(t.ring, &held);
    assert_int_equal(test_get(t.ring), 6);
    assert_int_equal(test_get(t.ring), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(test_info(t.ring).dropped, 5);
    test_close(&t);
}

/* ---- close, drain, time-outs ----------------------------------------------------------------- */

static void test_close_and_drain(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot held, late;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, 4);
        assert_int_equal(test_put(t.ring, 1), GPST_OK);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &late), GPST_OK);
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &held), GPST_OK);
        gpst_ring_close(t.ring);
        gpst_ring_close(t.ring);
        assert_int_equal(test_put(t.ring, 2), GPST_ERROR_CLOSED);
        test_reason_has("gpst_ring_acquire: ", "closed");
        assert_int_equal(test_get(t.ring), 1);
        assert_int_equal(test_get(t.ring), GPST_ERROR_WOULD_BLOCK); /* two may still come */
        memset(late.data, 0, 24);
        late.words[0] = 0;
        late.words[1] = UINT64_MAX;
        gpst_ring_commit(t.ring, &late);
        assert_int_equal(test_get(t.ring), 0);
        assert_int_equal(test_get(t.ring), GPST_ERROR_WOULD_BLOCK);
        gpst_ring_abandon(t.ring, &held);
        assert_int_equal(test_get(t.ring), 1000 + GPST_END);
        assert_int_equal(test_get(t.ring), 1000 + GPST_END);
        assert_int_equal(test_put(t.ring, 2), GPST_ERROR_CLOSED);
        test_close(&t);
    }
}

static void test_timeouts(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        gpst_ring_slot slot;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, 1);
        int64_t start = gpsti_now_ns();
        assert_int_equal(gpst_ring_take(t.ring, 5 * TEST_MS, &slot), GPST_ERROR_TIMEOUT);
        assert_true(gpsti_now_ns() - start >= 5 * TEST_MS);
        test_reason_has("gpst_ring_take: timeout_ns=5000000", "nothing was committed");
        assert_int_equal(gpst_ring_take(t.ring, -1, &slot), GPST_ERROR_WOULD_BLOCK);
        assert_int_equal(test_put(t.ring, 1), GPST_OK);
        start = gpsti_now_ns();
        assert_int_equal(gpst_ring_acquire(t.ring, 5 * TEST_MS, &slot), GPST_ERROR_TIMEOUT);
        assert_true(gpsti_now_ns() - start >= 5 * TEST_MS);
        assert_int_equal(test_get(t.ring), 1);
        const gpst_ring_info info = test_info(t.ring);
        assert_int_equal(info.producer_waits, 1);
        assert_int_equal(info.consumer_waits, 1);
        assert_true(info.producer_wait_ns >= 5 * TEST_MS && info.consumer_wait_ns >= 5 * TEST_MS);
        test_close(&t);
    }
}

static void test_occupancy(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, 4);
        gpsti_sleep_ns(10 * TEST_MS);
        assert_true(test_info(t.ring).mean_occupancy == 0.0);
        for (uint64_t i = 0; i < 4; i++)
            assert_int_equal(test_put(t.ring, i), GPST_OK);
        const double before = test_info(t.ring).mean_occupancy;
        assert_true(before >= 0.0 && before < 4.0);
        gpsti_sleep_ns(30 * TEST_MS); /* four slots all that time: the mean moves towards 4 */
        const double after = test_info(t.ring).mean_occupancy;
        assert_true(after > before && after < 4.0);
        for (int i = 0; i < 4; i++)
            assert_int_equal(test_get(t.ring), i);
        gpsti_sleep_ns(10 * TEST_MS);
        const double last = test_info(t.ring).mean_occupancy;
        gpsti_sleep_ns(30 * TEST_MS);
        assert_true(test_info(t.ring).mean_occupancy < last);
        test_close(&t);
    }
}

/* ---- faults ----------------------------------------------------------------------------------- */

static void test_faults(void** state) {
    gpst_result result = GPST_ERROR_MEMORY;
    uint64_t n = 0;
    (void)state;
    for (n = 1; GPST_FAILED(result); n++) {
        test_ring t;
        test_begin(&t);
        t.desc.max_slots = 100;
        t.desc.slot_bytes = 100;
        test_memory_refuse(&t.memory, n);
        gpst_clear_reason();
        result = gpst_ring_create(t.context, &t.desc, &t.ring);
        assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
        assert_int_equal(t.ring == NULL, GPST_FAILED(result));
        if (GPST_FAILED(result))
            test_reason_has("gpst_ring_create", "out of memory");
        test_close(&t);
    }
    assert_true(n >= 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots),           cmocka_unit_test(test_depth),
        cmocka_unit_test(test_hot_slots),       cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_copies),          cmocka_unit_test(test_struct_in_slot),
        cmocka_unit_test(test_arguments),       cmocka_unit_test(test_drop_newest),
        cmocka_unit_test(test_drop_oldest),     cmocka_unit_test(test_latest_only),
        cmocka_unit_test(test_close_and_drain), cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_occupancy),       cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
