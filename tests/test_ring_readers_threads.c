/* tests/test_ring_readers_threads.c -- readers of a ring on threads of their own: who is woken by what; order and loss
   with every policy, while the depth changes and readers come and go. */
#include "test_ring_readers.h"

#define TEST_MAX_READERS 4

/* ---- wake-ups ------------------------------------------------------------------------------- */

typedef struct test_sleeper {
    gpst_ring* ring;
    gpst_ring_reader* reader; /* NULL: a producer */
    gpst_result result;
} test_sleeper;

static void test_sleep_in_ring(void* arg) {
    test_sleeper* sleeper = (test_sleeper*)arg;
    gpst_ring_slot slot;
    sleeper->result = sleeper->reader ? gpst_ring_reader_take(sleeper->reader, GPST_FOREVER, NULL, &slot)
                                      : gpst_ring_acquire(sleeper->ring, GPST_FOREVER, &slot);
}

typedef enum test_cause {
    TEST_BY_COMMIT,
    TEST_BY_CLOSE,
    TEST_BY_LAST_ABANDON,
    TEST_BY_LAST_RELEASE,
    TEST_BY_LEAVING,
    TEST_BY_LEAVING_WITH_SLOTS,
    TEST_N_CAUSES
} test_cause;

static void test_wake(test_cause cause) {
    test_ring t;
    test_sleeper sleepers[2];
    gpsti_thread threads[2];
    gpst_ring_slot slot, held;
    const int n = cause < TEST_BY_LAST_RELEASE ? 2 : 1; /* all readers are woken, or one producer */
    test_open_readers(&t, GPST_RING_BLOCK, 1, 2);
    gpst_ring_reader* readers[2];
    for (int i = 0; i < 2; i++)
        readers[i] = test_join(t.ring);
    assert_int_equal(gpst_ring_acquire(t.ring, 0, &slot), GPST_OK);
    memset(slot.data, 0, 24);
    if (cause >= TEST_BY_LAST_RELEASE) {
        gpst_ring_commit(t.ring, &slot);
        assert_int_equal(test_get(readers[0]), 0);
        if (cause != TEST_BY_LEAVING)
            assert_int_equal(test_hold(readers[1], &held), 0);
    }
    for (int i = 0; i < n; i++) {
        sleepers[i].ring = t.ring;
        sleepers[i].reader = cause < TEST_BY_LAST_RELEASE ? readers[i] : NULL;
        sleepers[i].result = GPST_ERROR_INTERNAL;
        assert_int_equal(gpsti_thread_start(&threads[i], test_sleep_in_ring, &sleepers[i], "sleeper"), GPST_OK);
    }
    gpsti_sleep_ns(3 * TEST_MS);
    if (cause == TEST_BY_CLOSE)
        gpst_ring_abandon(t.ring, &slot);
    if (cause == TEST_BY_CLOSE || cause == TEST_BY_LAST_ABANDON)
        gpst_ring_close(t.ring);
    if (cause == TEST_BY_LAST_ABANDON) {
        gpsti_sleep_ns(TEST_MS);
        gpst_ring_abandon(t.ring, &slot);
    } else if (cause == TEST_BY_COMMIT) {
        gpst_ring_commit(t.ring, &slot);
    } else if (cause == TEST_BY_LAST_RELEASE) {
        assert_int_equal(gpst_ring_reader_release(readers[1], &held, NULL), GPST_OK);
    } else if (cause >= TEST_BY_LEAVING) {
        gpst_ring_reader_destroy(readers[1]);
    }
    for (int i = 0; i < n; i++) {
        gpsti_thread_join(&threads[i]);
        assert_int_equal(sleepers[i].result,
                         cause == TEST_BY_CLOSE || cause == TEST_BY_LAST_ABANDON ? GPST_END : GPST_OK);
    }
    test_close(&t);
}

static void test_wakes(void** state) {
    (void)state;
    for (int cause = 0; cause < TEST_N_CAUSES; cause++)
        test_wake((test_cause)cause);
}

/* ---- order and loss ------------------------------------------------------------------------- */

typedef struct test_flow {
    gpst_ring* ring;
    gpst_ring_policy policy;
    uint32_t n_items; /* of each producer */
    bool adaptive;
    gpsti_a32 producers_left;
} test_flow;

typedef struct test_side {
    test_flow* flow;
    gpst_ring_reader* reader; /* NULL: a guest, which joins and leaves */
    gpsti_a32* seen;          /* of a reader with several threads: how often each commit came */
    uint32_t index;
    uint64_t seed, n_done, n_dropped, n_wrong;
} test_side;

/* The bytes say who and which; readers check them against the words. */
static void test_produce(void* arg) {
    test_side* side = (test_side*)arg;
    for (uint32_t i = 0; i < side->flow->n_items; i++) {
        gpst_ring_slot slot;
        if (side->flow->adaptive && i % 8 == 0)
            test_decide(side->flow->ring, (test_evidence)(test_random(&side->seed) % TEST_N_EVIDENCE));
        const gpst_result result = gpst_ring_acquire(side->flow->ring, GPST_FOREVER, &slot);
        side->n_dropped += result == GPST_DROPPED;
        side->n_wrong += result != GPST_OK && result != GPST_DROPPED;
        if (result != GPST_OK)
            continue;
        slot.words[0] = side->index;
        slot.words[1] = i;
        memset(slot.data, (int)(i * 3 + side->index) & 0xff, 24);
        gpst_ring_commit(side->flow->ring, &slot);
        side->n_done++;
    }
    if (gpsti_a32_add(&side->flow->producers_left, UINT32_MAX) == 1)
        gpst_ring_close(side->flow->ring);
}

static bool test_is_whole(const gpst_ring_slot* slot) {
    const uint8_t* const bytes = (const uint8_t*)slot->data;
    for (int i = 0; i < 24; i++)
        if (bytes[i] != (uint8_t)(slot->words[1] * 3 + slot->words[0]))
            return false;
    return true;
}

/* So many slots, or all; holds a second one now and then, and leaves with what it holds. */
static void test_read(test_side* side, gpst_ring_reader* reader, uint64_t n) {
    const bool alone = !side->seen,
               all = side->flow->policy == GPST_RING_BLOCK || side->flow->policy == GPST_RING_DROP_NEWEST;
    gpst_ring_slot slot, kept;
    int64_t last_sequence = -1, last[2] = {-1, -1};
    memset(&kept, 0, sizeof kept);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t random = test_random(&side->seed);
        if (kept.id && random % 2)
            side->n_wrong += gpst_ring_reader_release(reader, &kept, NULL) != GPST_OK;
        const gpst_result result = gpst_ring_reader_take(reader, kept.id ? 0 : GPST_FOREVER, NULL, &slot);
        if (result != GPST_OK) {
            side->n_wrong += result != GPST_END && (!kept.id || result != GPST_ERROR_WOULD_BLOCK);
            if (kept.id)
                side->n_wrong += gpst_ring_reader_release(reader, &kept, NULL) != GPST_OK;
            if (result == GPST_END)
                return;
            continue;
        }
        const int64_t sequence = (int64_t)slot.sequence, item = (int64_t)slot.words[1];
        side->n_wrong += !test_is_whole(&slot) || sequence <= last_sequence || item <= last[slot.words[0]];
        side->n_wrong += alone && all && last_sequence >= 0 && sequence != last_sequence + 1; /* a gap */
        last_sequence = sequence;
        last[slot.words[0]] = item;
        if (side->seen)
            (void)gpsti_a32_add(&side->seen[sequence], 1);
        side->n_done++;
        if (!kept.id && random % 8 == 1)
            kept = slot;
        else
            side->n_wrong += gpst_ring_reader_release(reader, &slot, NULL) != GPST_OK;
    }
}

static void test_consume(void* arg) {
    test_side* side = (test_side*)arg;
    if (side->reader) {
        test_read(side, side->reader, UINT64_MAX);
        return;
    }
    while (gpsti_a32_load(&side->flow->producers_left)) {
        gpst_ring_reader* guest = NULL;
        side->n_wrong += gpst_ring_reader_create(side->flow->ring, &guest) != GPST_OK;
        if (!guest)
            return;
        test_read(side, guest, test_random(&side->seed) % 20);
        gpst_ring_reader_destroy(guest);
    }
}

/* Two producers; two readers with a thread each, one with two threads, and a guest. */
static void test_run_flow(gpst_ring_policy policy, uint32_t n_items, uint32_t max_slots, bool adaptive,
                          uint64_t* seed) {
    enum { N_SIDES = 7 };
    test_ring t;
    test_flow flow;
    test_side sides[N_SIDES];
    gpsti_thread threads[N_SIDES];
    test_begin(&t);
    t.desc.max_slots = max_slots;
    t.desc.slot_bytes = 24;
    t.desc.policy = policy;
    t.desc.max_readers = TEST_MAX_READERS;
    t.desc.adaptive = adaptive;
    assert_int_equal(gpst_ring_create(t.context, &t.desc, &t.ring), GPST_OK);
    memset(&flow, 0, sizeof flow);
    flow.adaptive = adaptive;
    memset(sides, 0, sizeof sides);
    flow.ring = t.ring;
    flow.policy = policy;
    flow.n_items = n_items;
    gpsti_a32_store(&flow.producers_left, 2);
    gpsti_a32* const seen = (gpsti_a32*)calloc(2 * n_items, sizeof *seen);
    assert_non_null(seen);
    for (uint32_t i = 0; i < N_SIDES; i++) {
        sides[i].flow = &flow;
        sides[i].index = i;
        sides[i].seed = test_random(seed);
        if (i >= 2 && i < 5)
            sides[i].reader = test_join(t.ring);
    }
    sides[5].reader = sides[4].reader;
    sides[4].seen = sides[5].seen = seen;
    for (uint32_t i = 0; i < N_SIDES; i++)
        assert_int_equal(gpsti_thread_start(&threads[i], i < 2 ? test_produce : test_consume, &sides[i], "side"),
                         GPST_OK);
    while (gpsti_a32_load(&flow.producers_left)) {
        if (!adaptive)
            assert_int_equal(gpst_ring_set_depth(t.ring, 1 + (uint32_t)(test_random(seed) % max_slots)), GPST_OK);
        assert_true(test_info(t.ring).occupancy <= max_slots);
        gpsti_sleep_ns(20000);
    }
    for (uint32_t i = 0; i < N_SIDES; i++)
        gpsti_thread_join(&threads[i]);
    for (uint32_t i = 0; i < N_SIDES; i++)
        assert_int_equal(sides[i].n_wrong, 0);
    const gpst_ring_info info = test_info(t.ring);
    const uint64_t n_refused = sides[0].n_dropped + sides[1].n_dropped;
    assert_int_equal(info.committed, sides[0].n_done + sides[1].n_done);
    assert_int_equal(info.committed + n_refused, 2 * (uint64_t)n_items);
    assert_int_equal(info.committed + n_refused, info.taken + info.dropped);
    assert_int_equal(info.occupancy, 0);
    assert_int_equal(info.n_decisions > 10, adaptive);
    assert_int_equal(info.n_readers, 3);
    assert_true(policy != GPST_RING_BLOCK || info.dropped == 0);
    for (int i = 2; i < 5; i++) {
        const gpst_ring_reader_info reader = test_reader_info(sides[i].reader);
        assert_int_equal(reader.taken, i < 4 ? sides[i].n_done : sides[4].n_done + sides[5].n_done);
        assert_int_equal(reader.taken + reader.missed, info.committed);
        assert_true(reader.missed == 0 || policy >= GPST_RING_DROP_OLDEST);
    }
    for (uint64_t i = 0; i < 2 * (uint64_t)n_items; i++)
        assert_true(gpsti_a32_load(&seen[i]) <= 1);
    assert_int_equal(gpsti_ring_used(gpsti_a64_load(&t.ring->state)), 0); /* every slot has come back */
    free(seen);
    test_close(&t);
}

static void test_flows(void** state) {
    uint64_t seed = test_seed(31);
    (void)state;
    for (int adaptive = 0; adaptive < 2; adaptive++) {
        const uint32_t n_items = adaptive ? 2000 : 6000;
        test_run_flow(GPST_RING_BLOCK, n_items, 9, adaptive, &seed);
        test_run_flow(GPST_RING_BLOCK, 2000, 32, adaptive, &seed);
        test_run_flow(GPST_RING_DROP_NEWEST, n_items, 9, adaptive, &seed);
        test_run_flow(GPST_RING_DROP_OLDEST, n_items, 9, adaptive, &seed);
        test_run_flow(GPST_RING_DROP_OLDEST, n_items, 16, adaptive, &seed);
        test_run_flow(GPST_RING_LATEST_ONLY, n_items, 16, adaptive, &seed);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wakes),
        cmocka_unit_test(test_flows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
