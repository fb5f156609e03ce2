/* tests/test_ring_threads.c -- rings, SPSC and MPMC, between threads: who sleeps is woken, every item comes once and in
   order while the depth changes (set, or by the ring itself), and a close at any moment loses nothing. */
#include "test_ring.h"

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

/* Who sleeps at a full adaptive ring is woken when another thread's commit deepens it. */
static void test_wake_by_deepening(void** state) {
    test_ring t;
    test_sleeper sleeper;
    gpsti_thread thread;
    gpst_ring_slot slots[2];
    (void)state;
    test_open_adaptive(&t, GPST_RING_MPMC, GPST_RING_BLOCK, 4);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpst_ring_acquire(t.ring, 0, &slots[i]), GPST_OK);
    sleeper.ring = t.ring;
    sleeper.producer = true;
    sleeper.result = GPST_ERROR_INTERNAL;
    assert_int_equal(gpsti_thread_start(&thread, test_sleep_in_ring, &sleeper, "sleeper"), GPST_OK);
    gpsti_sleep_ns(3 * TEST_MS);
    test_decide(t.ring, TEST_BURSTS);
    gpsti_thread_join(&thread);
    assert_int_equal(sleeper.result, GPST_OK);
    test_close(&t);
}

/* ---- order and loss under threads --------------------------------------------------------------- */

#define TEST_MAX_SIDES 4

typedef struct test_flow {
    gpst_ring* ring;
    uint32_t n_producers, n_consumers, n_items; /* n_items: of each producer */
    gpsti_a32 producers_left;
    gpsti_a32* seen; /* [n_producers * n_items]: how often each item came */
    bool poll, adaptive;
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
        if (flow->adaptive && (random >> 4) % 8 == 0)
            test_decide(flow->ring, (test_evidence)((random >> 7) % TEST_N_EVIDENCE));
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

/* The depth changes all the time: by this thread, or an adaptive ring's by its producers. */
static void test_change_depth(test_flow* flow, uint32_t max_slots, uint64_t* seed) {
    const uint64_t random = test_random(seed);
    if (!flow->adaptive)
        assert_int_equal(gpst_ring_set_depth(flow->ring, 1 + (uint32_t)(random % max_slots)), GPST_OK);
    assert_true(test_info(flow->ring).occupancy <= max_slots);
    gpsti_sleep_ns((int64_t)(random >> 32) % 50000);
}

static void test_run_flow(gpst_ring_sharing sharing, gpst_ring_policy policy, uint32_t n_sides, uint32_t n_items,
                          uint32_t max_slots, bool poll, bool adaptive, uint64_t* seed) {
    test_ring t;
    test_flow flow;
    test_side sides[2 * TEST_MAX_SIDES];
    gpsti_thread threads[2 * TEST_MAX_SIDES];
    uint64_t n_committed = 0, n_taken = 0, n_refused = 0, n_abandoned = 0, n_once = 0;
    (adaptive ? test_open_adaptive : test_open)(&t, sharing, policy, max_slots);
    memset(&flow, 0, sizeof flow);
    memset(sides, 0, sizeof sides);
    flow.ring = t.ring;
    flow.n_producers = flow.n_consumers = n_sides;
    flow.n_items = n_items;
    flow.poll = poll;
    flow.adaptive = adaptive;
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
    while (gpsti_a32_load(&flow.producers_left))
        test_change_depth(&flow, max_slots, seed);
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
    assert_true(adaptive ? info.n_decisions > 10 : info.n_decisions == 0);
    free(flow.seen);
    test_close(&t);
}

static void test_mpmc_flow(void** state) {
    uint64_t seed = test_seed(21);
    (void)state;
    test_run_flow(GPST_RING_MPMC, GPST_RING_BLOCK, 4, 4000, 7, false, false, &seed);
    test_run_flow(GPST_RING_DEFAULT, GPST_RING_BLOCK, 4, 1000, 2 * TEST_MAX_SIDES + 1, true, false, &seed);
}

static void test_spsc_flow(void** state) {
    uint64_t seed = test_seed(22);
    (void)state;
    test_run_flow(GPST_RING_SPSC, GPST_RING_BLOCK, 1, 30000, 7, false, false, &seed);
    test_run_flow(GPST_RING_SPSC, GPST_RING_BLOCK, 1, 3000, 2, true, false, &seed);
}

static void test_drop_flows(void** state) {
    uint64_t seed = test_seed(23);
    (void)state;
    test_run_flow(GPST_RING_SPSC, GPST_RING_DROP_NEWEST, 1, 20000, 5, false, false, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_DROP_NEWEST, 4, 3000, 5, false, false, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_DROP_OLDEST, 4, 3000, 9, false, false, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_LATEST_ONLY, 4, 3000, 9, false, false, &seed);
}

static void test_adaptive_flows(void** state) {
    uint64_t seed = test_seed(25);
    (void)state;
    test_run_flow(GPST_RING_SPSC, GPST_RING_BLOCK, 1, 20000, 7, false, true, &seed);
    test_run_flow(GPST_RING_SPSC, GPST_RING_DROP_NEWEST, 1, 20000, 9, true, true, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_BLOCK, 4, 3000, 7, false, true, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_BLOCK, 4, 1000, 2 * TEST_MAX_SIDES + 1, true, true, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_DROP_NEWEST, 4, 3000, 20, false, true, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_DROP_OLDEST, 4, 3000, 9, false, true, &seed);
    test_run_flow(GPST_RING_MPMC, GPST_RING_LATEST_ONLY, 4, 3000, 9, false, true, &seed);
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

/* ---- structs that are used anew -------------------------------------------------------------- */

enum { REUSE_SLOTS = 1, REUSE_ITEMS = 5000 }; /* one slot: each side waits for the other one */

#define REUSE_LIMIT_NS ((int64_t)10000 * TEST_MS) /* only a slot that is lost takes so long */

/* One struct for each slot, as programs have a state for each buffer: whoever has the slot has the struct, too. */
typedef struct test_reuse {
    gpst_ring* ring;
    gpst_ring_slot slots[REUSE_SLOTS + 1];
    uint32_t n_taken, n_wrong;
} test_reuse;

static gpst_ring_slot* test_struct_of(test_reuse* reuse, const gpst_ring_slot* slot) {
    gpst_ring_slot* const own = &reuse->slots[slot->id & 0xFFFFF];
    *own = *slot;
    for (int i = 0; i < 300; i++) /* long enough for a side that has only just given the slot away */
        gpsti_relax();
    return own;
}

static void test_reuse_consumer(void* arg) {
    test_reuse* const reuse = (test_reuse*)arg;
    gpst_ring_slot slot;
    while (gpst_ring_take(reuse->ring, REUSE_LIMIT_NS, &slot) == GPST_OK) {
        reuse->n_wrong += slot.words[0] != reuse->n_taken || slot.sequence != reuse->n_taken;
        reuse->n_taken++;
        gpst_ring_release(reuse->ring, test_struct_of(reuse, &slot));
    }
}

static void test_structs_used_anew(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        test_ring t;
        test_reuse reuse;
        gpsti_thread thread;
        gpst_ring_slot slot;
        uint32_t n = 0;
        test_open(&t, test_sharings[k], GPST_RING_BLOCK, REUSE_SLOTS);
        memset(&reuse, 0, sizeof reuse);
        reuse.ring = t.ring;
        assert_int_equal(gpsti_thread_start(&thread, test_reuse_consumer, &reuse, "consumer"), GPST_OK);
        for (; n < REUSE_ITEMS && gpst_ring_acquire(t.ring, REUSE_LIMIT_NS, &slot) == GPST_OK; n++) {
            slot.words[0] = n;
            gpst_ring_commit(t.ring, test_struct_of(&reuse, &slot));
        }
        gpst_ring_close(t.ring);
        gpsti_thread_join(&thread);
        assert_int_equal(n, REUSE_ITEMS);
        assert_int_equal(reuse.n_taken, REUSE_ITEMS);
        assert_int_equal(reuse.n_wrong, 0);
        test_close(&t);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wakes),       cmocka_unit_test(test_mpmc_flow),
        cmocka_unit_test(test_spsc_flow),   cmocka_unit_test(test_drop_flows),
        cmocka_unit_test(test_close_races), cmocka_unit_test(test_adaptive_flows),
        cmocka_unit_test(test_wake_by_deepening), cmocka_unit_test(test_structs_used_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
