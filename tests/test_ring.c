/* tests/test_ring.c -- order and loss under changing depth, policies, close and
   drain, time-outs and wake-ups of rings, SPSC and MPMC. */
#include "test.h"

#include "test_allocator.h"

#define TEST_MS 1000000 /* in ns */

typedef struct test_ring {
    test_memory memory;
    test_log log;
    gpst_context* context;
    gpst_ring_desc desc;
    gpst_ring* ring;
} test_ring;

static void test_begin(test_ring* t) {
    gpst_context_desc context = GPST_ZERO;
    memset(t, 0, sizeof *t);
    context.allocator = test_memory_hooks(&t->memory);
    context.logger = test_log_hooks(&t->log);
    context.n_workers = 1;
    context.max_host_bytes = (uint64_t)64 << 20;
    assert_int_equal(gpst_context_create(&context, &t->context), GPST_OK);
}

static void test_open(test_ring* t, gpst_ring_sharing sharing, gpst_ring_policy policy, uint32_t max_slots) {
    test_begin(t);
    t->desc.max_slots = max_slots;
    t->desc.slot_bytes = 24;
    t->desc.sharing = sharing;
    t->desc.policy = policy;
    assert_int_equal(gpst_ring_create(t->context, &t->desc, &t->ring), GPST_OK);
}

static void test_close(test_ring* t) {
    gpst_ring_destroy(t->ring);
    assert_int_equal(gpsti_a64_load(&t->context->host_bytes), 0);
    gpst_context_destroy(t->context);
    test_memory_check(&t->memory);
    assert_int_equal(gpsti_a32_load(&t->log.n_errors), 0);
}

static gpst_ring_info test_info(const gpst_ring* ring) {
    gpst_ring_info info;
    memset(&info, 0xA5, sizeof info);
    gpst_ring_query_info(ring, &info);
    return info;
}

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

/* ---- one thread: slots ---------------------------------------------------------------- */

static const gpst_ring_sharing test_sharings[] = {GPST_RING_SPSC, GPST_RING_MPMC};

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
        assert_non_null(strstr(t.log.last, "gpst_ring_commit: slot.id=0"));
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
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "GPST_RING_MPMC");
    desc.policy = GPST_RING_LATEST_ONLY;
    test_refused(&t, desc, GPST_ERROR_ARGUMENT, "GPST_RING_MPMC");
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

/* ---- wake-ups ------------------------------------------------------------------------------- */

typedef struct test_sleeper {
    gpst_ring* ring;
    bool producer;
    gpst_result result;
} test_sleeper;

static void test_sleep_in_ring(void* arg) {
    test_sleeper* sleeper = (test_sleeper*)arg;
    gpst_ring_slot slot;
    sleeper->result = sleeper->producer ? gpst_ring_acquire(sleeper->ring, GPST_FOREVER, &slot)
                                        : gpst_ring_take(sleeper->ring, GPST_FOREVER, &slot);
    if (sleeper->result == GPST_OK && sleeper->producer)
        gpst_ring_abandon(sleeper->ring, &slot);
    else if (sleeper->result == GPST_OK)
        gpst_ring_release(sleeper->ring, &slot);
}

typedef enum test_cause {
    TEST_BY_COMMIT,
    TEST_BY_CLOSE,
    TEST_BY_LAST_ABANDON,
    TEST_BY_RELEASE,
    TEST_BY_ABANDON,
    TEST_BY_DEPTH,
    TEST_BY_CLOSE_FULL,
    TEST_N_CAUSES
} test_cause;

/* A side that sleeps without a time-out is woken by whatever could concern it. */
static void test_wake(gpst_ring_sharing sharing, test_cause cause) {
    test_ring t;
    test_sleeper sleeper;
    gpsti_thread thread;
    gpst_ring_slot slot, other;
    const bool producer = cause >= TEST_BY_RELEASE;
    test_open(&t, sharing, GPST_RING_BLOCK, 2);
    assert_int_equal(gpst_ring_set_depth(t.ring, 1), GPST_OK);
    assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
    if (cause == TEST_BY_RELEASE) {
        gpst_ring_commit(t.ring, &slot);
        assert_int_equal(gpst_ring_take(t.ring, 0, &other), GPST_OK);
    }
    sleeper.ring = t.ring;
    sleeper.producer = producer;
    sleeper.result = GPST_ERROR_INTERNAL;
    assert_int_equal(gpsti_thread_start(&thread, test_sleep_in_ring, &sleeper, "sleeper"), GPST_OK);
    gpsti_sleep_ns(3 * TEST_MS);
    switch (cause) {
    case TEST_BY_COMMIT:
        gpst_ring_commit(t.ring, &slot);
        break;
    case TEST_BY_CLOSE:
        gpst_ring_abandon(t.ring, &slot);
        gpsti_sleep_ns(TEST_MS);
        gpst_ring_close(t.ring);
        break;
    case TEST_BY_LAST_ABANDON:
        gpst_ring_close(t.ring);
        gpsti_sleep_ns(TEST_MS);
        gpst_ring_abandon(t.ring, &slot);
        break;
    case TEST_BY_RELEASE:
        gpst_ring_release(t.ring, &other);
        break;
    case TEST_BY_ABANDON:
        if (sharing == GPST_RING_SPSC) /* its one producer is the one that sleeps */
            assert_int_equal(gpst_ring_set_depth(t.ring, 2), GPST_OK);
        else
            gpst_ring_abandon(t.ring, &slot);
        break;
    case TEST_BY_DEPTH:
        assert_int_equal(gpst_ring_set_depth(t.ring, 2), GPST_OK);
        break;
    default:
        gpst_ring_close(t.ring);
        break;
    }
    gpsti_thread_join(&thread);
    const bool ended = cause == TEST_BY_CLOSE || cause == TEST_BY_LAST_ABANDON;
    assert_int_equal(sleeper.result, ended                         ? GPST_END
                                     : cause == TEST_BY_CLOSE_FULL ? GPST_ERROR_CLOSED
                                                                   : GPST_OK);
    test_close(&t);
}

static void test_wakes(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int cause = 0; cause < TEST_N_CAUSES; cause++)
            test_wake(test_sharings[k], (test_cause)cause);
}

/* ---- order and loss under threads --------------------------------------------------------------- */

#define TEST_MAX_SIDES 4

typedef struct test_flow {
    gpst_ring* ring;
    uint32_t n_producers, n_consumers, n_items; /* n_items: of each producer */
    gpsti_a32 producers_left;
    gpsti_a32* seen; /* [n_producers * n_items]: how often each item came */
    bool poll;
    uint64_t seed;
} test_flow;

typedef struct test_side {
    test_flow* flow;
    uint32_t index;
    uint64_t seed;
    uint64_t n_done, n_dropped, n_abandoned, n_wrong;
} test_side;

static int64_t test_patience(const test_side* side, uint64_t random) {
    return side->flow->poll || random % 4 == 0 ? (int64_t)(random % 3) * 20000 : GPST_FOREVER;
}

static void test_produce(void* arg) {
    test_side* side = (test_side*)arg;
    test_flow* flow = side->flow;
    for (uint32_t i = 0; i < flow->n_items;) {
        const uint64_t random = test_random(&side->seed);
        gpst_ring_slot slot;
        const gpst_result result = gpst_ring_acquire(flow->ring, test_patience(side, random >> 8), &slot);
        if (result == GPST_DROPPED) {
            side->n_dropped++;
            i++;
        } else if (result == GPST_OK && random % 16 == 0) {
            gpst_ring_abandon(flow->ring, &slot);
            side->n_abandoned++;
        } else if (result == GPST_OK) {
            slot.words[0] = side->index;
            slot.words[1] = i;
            memset(slot.data, (int)(i & 0xff), 24);
            gpst_ring_commit(flow->ring, &slot);
            side->n_done++;
            i++;
        } else {
            side->n_wrong += result != GPST_ERROR_TIMEOUT && result != GPST_ERROR_WOULD_BLOCK;
        }
    }
    if (gpsti_a32_add(&flow->producers_left, UINT32_MAX) == 1)
        gpst_ring_close(flow->ring);
}

static bool test_all_bytes(const void* data, uint8_t value) {
    const uint8_t* bytes = (const uint8_t*)data;
    for (int i = 0; i < 24; i++)
        if (bytes[i] != value)
            return false;
    return true;
}

/* Holds a second slot now and then, and gives them back in either order. */
static void test_consume(void* arg) {
    test_side* side = (test_side*)arg;
    test_flow* flow = side->flow;
    gpst_ring_slot slot, kept;
    int64_t last[TEST_MAX_SIDES];
    int64_t last_sequence = -1;
    gpst_result result = GPST_OK;
    memset(&kept, 0, sizeof kept);
    memset(last, 0xff, sizeof last);
    while (result != GPST_END) {
        const uint64_t random = test_random(&side->seed);
        if (kept.data && random % 2)
            gpst_ring_release(flow->ring, &kept);
        result = gpst_ring_take(flow->ring, kept.data ? 0 : test_patience(side, random >> 8), &slot);
        if (result != GPST_OK) {
            side->n_wrong +=
                result != GPST_END && result != GPST_ERROR_TIMEOUT && result != GPST_ERROR_WOULD_BLOCK;
            if (kept.data)
                gpst_ring_release(flow->ring, &kept);
            continue;
        }
        const uint64_t from = slot.words[0], item = slot.words[1];
        side->n_wrong += (int64_t)slot.sequence <= last_sequence || (int64_t)item <= last[from];
        side->n_wrong += !test_all_bytes(slot.data, (uint8_t)(item & 0xff));
        last_sequence = (int64_t)slot.sequence;
        last[from] = (int64_t)item;
        (void)gpsti_a32_add(&flow->seen[from * flow->n_items + item], 1);
        side->n_done++;
        if (!kept.data && random % 8 == 0)
            kept = slot;
        else
            gpst_ring_release(flow->ring, &slot);
    }
}

static void test_run_flow(gpst_ring_sharing sharing, gpst_ring_policy policy, uint32_t n_sides,
                          uint32_t n_items, uint32_t max_slots, bool poll, uint64_t* seed) {
    test_ring t;
    test_flow flow;
    test_side sides[2 * TEST_MAX_SIDES];
    gpsti_thread threads[2 * TEST_MAX_SIDES];
    uint64_t n_committed = 0, n_taken = 0, n_refused = 0, n_abandoned = 0, n_once = 0;
    test_open(&t, sharing, policy, max_slots);
    memset(&flow, 0, sizeof flow);
    memset(sides, 0, sizeof sides);
    flow.ring = t.ring;
    flow.n_producers = flow.n_consumers = n_sides;
    flow.n_items = n_items;
    flow.poll = poll;
    gpsti_a32_store(&flow.producers_left, n_sides);
    flow.seen = (gpsti_a32*)calloc(n_sides * n_items, sizeof *flow.seen);
    assert_non_null(flow.seen);
    for (uint32_t i = 0; i < 2 * n_sides; i++) {
        sides[i].flow = &flow;
        sides[i].index = i % n_sides;
        sides[i].seed = test_random(seed);
        assert_int_equal(
            gpsti_thread_start(&threads[i], i < n_sides ? test_produce : test_consume, &sides[i], "side"),
            GPST_OK);
    }
    while (gpsti_a32_load(&flow.producers_left)) { /* the depth changes all the time */
        const uint64_t random = test_random(seed);
        assert_int_equal(gpst_ring_set_depth(t.ring, 1 + (uint32_t)(random % max_slots)), GPST_OK);
        assert_true(test_info(t.ring).occupancy <= max_slots);
        gpsti_sleep_ns((int64_t)(random >> 32) % 50000);
    }
    for (uint32_t i = 0; i < 2 * n_sides; i++)
        gpsti_thread_join(&threads[i]);
    for (uint32_t i = 0; i < 2 * n_sides; i++) {
        assert_int_equal(sides[i].n_wrong, 0);
        *(i < n_sides ? &n_committed : &n_taken) += sides[i].n_done;
        n_refused += sides[i].n_dropped;
        n_abandoned += sides[i].n_abandoned;
    }
    for (uint64_t i = 0; i < (uint64_t)n_sides * n_items; i++) {
        assert_true(gpsti_a32_load(&flow.seen[i]) <= 1);
        n_once += gpsti_a32_load(&flow.seen[i]);
    }
    const gpst_ring_info info = test_info(t.ring);
    assert_int_equal(n_committed + n_refused, (uint64_t)n_sides * n_items);
    assert_int_equal(info.committed, n_committed);
    assert_int_equal(info.taken, n_taken);
    assert_int_equal(info.taken, n_once);
    assert_int_equal(info.abandoned, n_abandoned);
    assert_int_equal(info.dropped, n_refused + (n_committed - n_taken));
    assert_true(policy != GPST_RING_BLOCK || info.dropped == 0);
    assert_true(policy != GPST_RING_DROP_NEWEST || n_committed == n_taken);
    assert_int_equal(info.occupancy, 0);
    assert_true(info.mean_occupancy >= 0.0 && info.mean_occupancy <= max_slots);
    free(flow.seen);
    test_close(&t);
}

static void test_mpmc_flow(void** state) {
    uint64_t seed = test_seed(21);
    (void)state;
    test_run_flow(GPST_RING_MPMC, GPST_RING_BLOCK, 4, 4000, 7, false, &seed);
    test_run_flow(GPST_RING_DEFAULT, GPST_RING_BLOCK, 4, 1000, 2 * TEST_MAX_SIDES + 1, true, &seed);
}

static void test_spsc_flow(void** state) {
    uint64_t seed = test_seed(22);
    (void)state;
    test_run_flow(GPST_RING_SPSC, GPST_RING_BLOCK, 1, 30000, 7, false, &seed);
    test_run_flow(GPST_RING_SPSC, GPST_RING_BLOCK, 1, 3000, 2, true, &seed);
}

static void test_drop_flows(void** state) {
    uint64_t seed = test_seed(23);
    (void)state;
    test_run_flow(GPST_RING_SPSC, GPST_RING_DROP_NEWEST, 1, 20000, 5, false, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_DROP_NEWEST, 4, 3000, 5, false, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_DROP_OLDEST, 4, 3000, 9, false, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_LATEST_ONLY, 4, 3000, 9, false, &seed);
}

/* A third thread closes at a random moment: whatever acquire granted still arrives. */
static void test_produce_until_closed(void* arg) {
    test_side* side = (test_side*)arg;
    gpst_ring_slot slot;
    while (gpst_ring_acquire(side->flow->ring, GPST_FOREVER, &slot) == GPST_OK) {
        gpst_ring_commit(side->flow->ring, &slot);
        side->n_done++;
    }
}

static void test_consume_until_end(void* arg) {
    test_side* side = (test_side*)arg;
    gpst_ring_slot slot;
    while (gpst_ring_take(side->flow->ring, GPST_FOREVER, &slot) == GPST_OK) {
        side->n_wrong += slot.sequence != side->n_done;
        gpst_ring_release(side->flow->ring, &slot);
        side->n_done++;
    }
}

static void test_close_races(void** state) {
    uint64_t seed = test_seed(24);
    (void)state;
    for (int round = 0; round < 300; round++) {
        test_ring t;
        test_flow flow;
        test_side sides[2];
        gpsti_thread threads[2];
        test_open(&t, test_sharings[round % 2], GPST_RING_BLOCK, 1 + (uint32_t)round % 3);
        memset(&flow, 0, sizeof flow);
        memset(sides, 0, sizeof sides);
        flow.ring = t.ring;
        sides[0].flow = sides[1].flow = &flow;
        assert_int_equal(gpsti_thread_start(&threads[0], test_produce_until_closed, &sides[0], "produce"),
                         GPST_OK);
        assert_int_equal(gpsti_thread_start(&threads[1], test_consume_until_end, &sides[1], "consume"),
                         GPST_OK);
        for (uint64_t i = test_random(&seed) % 2000; i; i--)
            gpsti_relax();
        gpst_ring_close(t.ring);
        gpsti_thread_join(&threads[0]);
        gpsti_thread_join(&threads[1]);
        assert_int_equal(sides[0].n_done, sides[1].n_done);
        assert_int_equal(sides[1].n_wrong, 0);
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
        cmocka_unit_test(test_arguments),       cmocka_unit_test(test_drop_newest),
        cmocka_unit_test(test_drop_oldest),     cmocka_unit_test(test_latest_only),
        cmocka_unit_test(test_close_and_drain), cmocka_unit_test(test_timeouts),
        cmocka_unit_test(test_occupancy),       cmocka_unit_test(test_wakes),
        cmocka_unit_test(test_mpmc_flow),       cmocka_unit_test(test_spsc_flow),
        cmocka_unit_test(test_drop_flows),      cmocka_unit_test(test_close_races),
        cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
