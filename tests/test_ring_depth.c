/* tests/test_ring_depth.c -- the depth of an adaptive ring as a policy: intervals in, depths and sentences out. Rows of
   numbers, and a ring in simulated time that has the depth of the policy: nothing depends on the machine. */
#include "test.h"

#include <math.h>

#if !defined(GPST_TEST_AMALGAM)
#include "../core/memory/ring_internal.h"
#endif

/* ---- one policy under test ----------------------------------------------------------- */

typedef struct test_policy {
    gpsti_ring_depth policy;
    uint32_t n_changes, n_reversals, n_lines;
    int last_direction;
    char reason[GPST_RING_REASON_BYTES];
} test_policy;

static void test_begin(test_policy* t, uint32_t min_depth, uint32_t max_depth, uint32_t depth) {
    memset(t, 0, sizeof *t);
    gpsti_ring_depth_init(&t->policy, min_depth, max_depth, depth);
}

/* What must hold of every answer, whatever the interval. */
static uint32_t test_judge(test_policy* t, const gpsti_ring_interval* interval) {
    const uint32_t before = t->policy.depth;
    const uint32_t depth = gpsti_ring_depth_judge(&t->policy, interval, t->reason);
    assert_int_equal(depth, t->policy.depth);
    assert_in_range(depth, t->policy.min_depth, t->policy.max_depth);
    assert_true(depth <= 2 * before);
    assert_true(depth == before || t->reason[0]);
    assert_true(strlen(t->reason) < GPST_RING_REASON_BYTES - 1);
    if (strstr(t->reason, "idle"))
        assert_true(depth < before && depth >= interval->used);
    t->n_lines += t->reason[0] != 0;
    if (depth != before) {
        const int direction = depth > before ? 1 : -1;
        t->n_changes++;
        t->n_reversals += direction == -t->last_direction;
        t->last_direction = direction;
    }
    return depth;
}

/* 100 commits in 1000 ticks; shares in thousandths. */
static gpsti_ring_interval test_interval(uint64_t full, uint64_t empty, uint32_t peak) {
    gpsti_ring_interval interval;
    memset(&interval, 0, sizeof interval);
    interval.n_commits = 100;
    interval.ticks = 1000;
    interval.full_ticks = full;
    interval.empty_ticks = empty;
    interval.peak = peak;
    return interval;
}

static uint32_t test_show(test_policy* t, uint64_t full, uint64_t empty, uint32_t peak) {
    const gpsti_ring_interval interval = test_interval(full, empty, peak);
    return test_judge(t, &interval);
}

/* ---- the rules, one by one --------------------------------------------------------------- */

static void test_one_side_waits(void** state) {
    test_policy t;
    (void)state;
    test_begin(&t, 2, 64, 8);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(test_show(&t, 900, 0, 8), 8);  /* slow consumer */
        assert_int_equal(test_show(&t, 900, 19, 8), 8); /* next to nothing */
    }
    test_begin(&t, 2, 64, 8);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(test_show(&t, 0, 900, 5), 8); /* slow producer, slots in use all the same */
    assert_int_equal(t.n_lines, 0);
}

/* So many times the same, of which the last changes the depth. */
static void test_show_all(test_policy* t, uint64_t full, uint64_t empty, uint32_t n, uint32_t depth) {
    const uint32_t before = t->policy.depth;
    for (uint32_t i = 1; i < n; i++)
        assert_int_equal(test_show(t, full, empty, before), before);
    assert_int_equal(test_show(t, full, empty, before), depth);
}

static void test_bursts_deepen(void** state) {
    test_policy t;
    (void)state;
    test_begin(&t, 2, 64, 4);
    test_show_all(&t, 300, 200, 2, 4); /* may be a change of phase */
    test_show_all(&t, 300, 0, 1, 4);
    test_show_all(&t, 300, 200, 2, 4);
    assert_int_equal(test_show(&t, 200, 300, 4), 8);
    assert_string_equal(t.reason, "bursts: full 20.0 % and empty 30.0 % of the time");
    test_show_all(&t, 300, 120, 3, 16); /* 12 % after 20 %: it helped, and more may help more */
    test_show_all(&t, 300, 10, 100, 16);
    assert_int_equal(t.n_changes, 2);
    /* The worst of three counts, against the best one before: 16 hardly helps, 32 does. */
    test_begin(&t, 2, 64, 8);
    test_show_all(&t, 300, 220, 2, 8);
    test_show_all(&t, 300, 200, 1, 16);
    test_show_all(&t, 300, 100, 2, 16);
    test_show_all(&t, 300, 181, 1, 32);
    assert_string_equal(t.reason, "trial: both sides wait 18.1 % of the time, before 20.0 %");
    test_show_all(&t, 300, 179, 2, 32);
    test_show_all(&t, 300, 15, 100, 32);
    assert_int_equal(t.n_changes, 2);
}

/* A trial doubles up to four times, and is taken back as a whole if none of them helps; then it rests, twice as long
   after each one, 512 intervals at most. */
static void test_in_vain(void** state) {
    test_policy t;
    (void)state;
    test_begin(&t, 2, 1000, 4);
    test_show_all(&t, 300, 200, 2, 4);
    for (uint32_t rest = 8, trial = 0; trial < 10; trial++) {
        test_show_all(&t, 300, 200, 1, 8);
        for (uint32_t depth = 16; depth <= 64; depth *= 2)
            test_show_all(&t, 300, 196, 3, depth);
        test_show_all(&t, 300, 196, 3, 4);
        assert_string_equal(t.reason, "taken back: both sides wait 19.6 % of the time, before 20.0 %");
        test_show_all(&t, 300, 200, rest - 1, 4);
        rest = rest < 512 ? 2 * rest : 512;
    }
    /* A trial that helps ends the long rests. */
    test_show_all(&t, 300, 200, 1, 8);
    test_show_all(&t, 300, 200, 3, 16);
    test_show_all(&t, 300, 150, 3, 32); /* 16 stay: the next trial */
    for (uint32_t depth = 64; depth <= 256; depth *= 2)
        test_show_all(&t, 300, 150, 3, depth);
    test_show_all(&t, 300, 150, 3, 16);
    test_show_all(&t, 300, 150, 8, 32);
}

static void test_idle_shrinks(void** state) {
    test_policy t;
    gpsti_ring_interval interval = test_interval(0, 900, 3);
    (void)state;
    test_begin(&t, 2, 64, 32);
    for (int i = 0; i < 3; i++)
        assert_int_equal(test_show(&t, 0, 900, 3), 32);
    assert_int_equal(test_show(&t, 0, 900, 16), 32); /* half of them in use: not idle */
    for (int i = 0; i < 3; i++)
        assert_int_equal(test_show(&t, 0, 900, i == 1 ? 5 : 2), 32);
    assert_int_equal(test_show(&t, 0, 900, 2), 32 - (32 - 5) / 2);
    assert_string_equal(t.reason, "idle: at most 5 slots in use for 4 intervals");
    interval.used = 15; /* whatever the peak says */
    for (int i = 0; i < 3; i++)
        assert_int_equal(test_judge(&t, &interval), 19);
    assert_int_equal(test_judge(&t, &interval), 15);
    interval.used = 3;
    for (int i = 0; i < 100; i++)
        (void)test_judge(&t, &interval);
    assert_int_equal(t.policy.depth, 6); /* 3 are no less than half of that */
    interval.peak = interval.used = 1;
    for (int i = 0; i < 100; i++)
        (void)test_judge(&t, &interval);
    assert_int_equal(t.policy.depth, 2);
    test_begin(&t, 5, 64, 6);
    for (int i = 0; i < 100; i++)
        (void)test_judge(&t, &interval);
    assert_int_equal(t.policy.depth, 5);
}

/* Each time that shrinking was wrong, the next one takes twice as many idle intervals. */
static void test_regret(void** state) {
    test_policy t;
    uint32_t patience = 4;
    (void)state;
    test_begin(&t, 4, 8, 8);
    for (int round = 0; round < 10; round++) {
        for (uint32_t i = 0; i + 1 < patience; i++)
            assert_int_equal(test_show(&t, 0, 900, 1), 8);
        assert_int_equal(test_show(&t, 0, 900, 1), 5);
        test_show_all(&t, 200, 200, 3, 8);
        test_show_all(&t, 0, 0, 3, 8); /* it helps */
        patience *= 2;
    }
}

static void test_limits(void** state) {
    test_policy t;
    (void)state;
    test_begin(&t, 2, 5, 2);
    test_show_all(&t, 200, 200, 3, 4);
    test_show_all(&t, 100, 100, 3, 5);
    test_show_all(&t, 50, 50, 100, 5);
    assert_int_equal(t.n_lines, 3); /* the limit is said once */
    test_begin(&t, 2, 5, 2);
    test_show_all(&t, 200, 200, 3, 4);
    test_show_all(&t, 200, 200, 3, 5);
    test_show_all(&t, 200, 200, 3, 2); /* it is of no use */
    test_begin(&t, 1, 1, 1);
    test_show_all(&t, 500, 500, 100, 1);
    assert_int_equal(t.n_lines, 1);
    /* no memory: it rests for 8 intervals, then 16; what was on trial is taken back, too */
    test_begin(&t, 2, 64, 4);
    test_show_all(&t, 200, 200, 2, 4);
    for (uint32_t rest = 8; rest <= 32; rest *= 2) {
        test_show_all(&t, 200, 200, 1, 8);
        if (rest > 8)
            test_show_all(&t, 200, 200, 3, 16);
        assert_int_equal(gpsti_ring_depth_refuse(&t.policy), 4);
        test_show_all(&t, 200, 200, rest - 1, 4);
    }
}

/* Whatever comes: within the limits, and few changes. */
static void test_any_intervals(void** state) {
    uint64_t seed = test_seed(31);
    (void)state;
    for (int round = 0; round < 20; round++) {
        test_policy t;
        test_begin(&t, 2, 64, 2 + (uint32_t)(test_random(&seed) % 63));
        gpsti_ring_interval interval = test_interval(0, 0, 0);
        uint64_t left = 0;
        for (int i = 0; i < 100000; i++) {
            if (left-- == 0) { /* another phase */
                const uint64_t random = test_random(&seed);
                interval.full_ticks = random % 3 ? (random >> 8) % 1000 : 0;
                interval.empty_ticks = (random >> 24) % 3 ? (random >> 32) % 1000 : 0;
                interval.n_commits = 64 + (random >> 48) % 1000;
                left = round % 2 ? test_random(&seed) % 20 : 0;
            }
            interval.peak = (uint32_t)(test_random(&seed) % (t.policy.depth + 1)) / (interval.full_ticks ? 1 : 4);
            interval.used = (uint32_t)(test_random(&seed) % (interval.peak + 1));
            (void)test_judge(&t, &interval);
        }
        if (t.n_changes > 300)
            fail_msg("%u changes", t.n_changes);
    }
}

/* ---- recorded ------------------------------------------------------------------------------- */

/* Of a real ring (bench/ring.c: bursts of 32, 230 us an item), on two cores beside other work, at each depth: commits of
   an interval, full and empty in thousandths of it. */
typedef struct test_recorded {
    uint32_t n_commits, full, empty;
} test_recorded;

enum { TEST_N_RECORDED = 16 };

static const test_recorded test_recordings[][TEST_N_RECORDED] = {
    {{192, 559, 397}, {192, 559, 405}, {192, 585, 343}, {192, 587, 381}, {192, 569, 398}, {192, 555, 382},
     {192, 557, 408}, {192, 559, 403}, {192, 566, 401}, {192, 575, 383}, {192, 570, 394}, {192, 609, 357},
     {192, 565, 402}, {192, 578, 391}, {192, 577, 389}, {192, 572, 392}}, /* 2 */
    {{256, 548, 378}, {192, 551, 365}, {192, 576, 369}, {256, 552, 366}, {192, 553, 371}, {192, 574, 349},
     {256, 534, 391}, {192, 581, 370}, {192, 564, 364}, {256, 542, 383}, {192, 588, 346}, {192, 567, 362},
     {192, 595, 330}, {192, 577, 320}, {192, 575, 354}, {192, 575, 353}}, /* 4 */
    {{256, 511, 342}, {192, 540, 310}, {256, 525, 313}, {192, 578, 249}, {192, 593, 276}, {256, 526, 317},
     {256, 521, 321}, {256, 495, 341}, {256, 496, 341}, {256, 495, 341}, {256, 497, 339}, {256, 522, 262},
     {256, 516, 329}, {256, 527, 322}, {256, 509, 310}, {256, 528, 309}}, /* 8 */
    {{320, 408, 197}, {256, 432, 169}, {256, 424, 176}, {256, 447, 176}, {256, 440, 182}, {256, 416, 183},
     {256, 402, 194}, {256, 418, 184}, {256, 408, 150}, {320, 395, 213}, {320, 396, 213}, {320, 400, 207},
     {320, 398, 210}, {256, 426, 173}, {320, 408, 184}, {256, 425, 174}}, /* 16 */
    {{384, 255, 0}, {320, 260, 0}, {320, 304, 0}, {320, 279, 0}, {384, 253, 0}, {320, 331, 0}, {320, 291, 0},
     {320, 312, 0}, {320, 333, 0}, {320, 274, 0}, {384, 236, 0}, {384, 241, 0}, {384, 234, 0}, {384, 234, 0},
     {384, 275, 0}, {384, 249, 0}}, /* 32 */
    {{384, 231, 0}, {384, 244, 0}, {384, 241, 0}, {320, 290, 0}, {320, 299, 0}, {320, 298, 0}, {320, 316, 0},
     {320, 297, 0}, {320, 295, 0}, {320, 330, 0}, {320, 374, 0}, {320, 310, 0}, {320, 344, 0}, {320, 321, 0},
     {320, 357, 0}, {320, 333, 0}}, /* 64 */
};

/* Wherever the recordings begin: the burst is found. One doubling shows nothing that chance does not. */
static void test_recorded_bursts(void** state) {
    (void)state;
    for (uint32_t start = 0; start < TEST_N_RECORDED * TEST_N_RECORDED; start++) {
        test_policy t;
        uint32_t n_intervals = 0, depth = 2;
        test_begin(&t, 2, 64, depth);
        for (uint32_t i = 0; i < 100; i++) {
            uint32_t row = 0;
            while ((uint32_t)2 << row < depth)
                row++;
            const uint32_t step = 1 + start / TEST_N_RECORDED; /* another order */
            const test_recorded* const recorded = &test_recordings[row][(start + i * step) % TEST_N_RECORDED];
            gpsti_ring_interval interval = test_interval(recorded->full, recorded->empty, depth);
            interval.n_commits = recorded->n_commits;
            depth = test_judge(&t, &interval);
            n_intervals += depth < 32;
        }
        if (depth < 32 || n_intervals > 50)
            fail_msg("start %u: depth %u, after %u intervals", start, depth, n_intervals);
    }
}

/* ---- a ring in simulated time --------------------------------------------------------------- */

typedef struct test_flow test_flow;
typedef void (*test_times)(test_flow* flow, uint64_t i, double* produce_us, double* consume_us);

/* One producer, one consumer, in microseconds. */
struct test_flow {
    test_times times;
    uint64_t seed;
    double now_us; /* when the item before was committed */
    double* released;
    test_policy policy;
    uint32_t least, most; /* depths */
};

#define TEST_N_ITEMS 300000u

static double test_exponential(uint64_t* seed, double mean) {
    return -mean * log(((double)(test_random(seed) >> 11) + 0.5) / 9007199254740992.0);
}

static void test_simulate(test_flow* flow, uint32_t max_depth, uint32_t depth) {
    double start_us = 0.0, full_us = 0.0, empty_us = 0.0;
    uint64_t start = 0, n_released = 0;
    uint32_t peak = 0;
    test_begin(&flow->policy, 2, max_depth, depth);
    flow->least = flow->most = depth;
    flow->now_us = 0.0;
    for (uint64_t i = 0; i < TEST_N_ITEMS; i++) {
        double produce_us = 0.0, consume_us = 0.0, acquired_us = flow->now_us;
        flow->times(flow, i, &produce_us, &consume_us);
        depth = flow->policy.policy.depth;
        if (i >= depth && flow->released[i - depth] > acquired_us) {
            full_us += flow->released[i - depth] - acquired_us;
            acquired_us = flow->released[i - depth];
        }
        while (n_released < i && flow->released[n_released] <= acquired_us)
            n_released++;
        if (i + 1 - n_released > peak)
            peak = (uint32_t)(i + 1 - n_released);
        flow->now_us = acquired_us + produce_us;
        const double idle_us = i ? flow->released[i - 1] : 0.0;
        if (flow->now_us > idle_us)
            empty_us += flow->now_us - idle_us;
        flow->released[i] = (flow->now_us > idle_us ? flow->now_us : idle_us) + consume_us;
        if ((i + 1 - start) % GPSTI_RING_INTERVAL_COMMITS ||
            flow->now_us - start_us < (double)GPSTI_RING_INTERVAL_NS / 1000.0)
            continue;
        gpsti_ring_interval interval;
        interval.n_commits = i + 1 - start;
        interval.ticks = (uint64_t)(flow->now_us - start_us);
        interval.full_ticks = (uint64_t)full_us;
        interval.empty_ticks = (uint64_t)empty_us;
        interval.peak = peak;
        interval.used = (uint32_t)(i + 1 - n_released);
        depth = test_judge(&flow->policy, &interval);
        flow->least = depth < flow->least ? depth : flow->least;
        flow->most = depth > flow->most ? depth : flow->most;
        start = i + 1;
        start_us = flow->now_us;
        full_us = empty_us = 0.0;
        peak = interval.used;
    }
}

/* ---- what flows there are, in milliseconds ------------------------------------------------- */

static void test_steady(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)flow, (void)i;
    *produce_us = *consume_us = 1000.0;
}

static void test_slow_consumer(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)i;
    *produce_us = 450.0 + (double)(test_random(&flow->seed) % 100);
    *consume_us = 950.0 + (double)(test_random(&flow->seed) % 100);
}

static void test_slow_producer(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    test_slow_consumer(flow, i, consume_us, produce_us);
}

/* A millisecond each on average, as chance has it. */
static void test_by_chance(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)i;
    *produce_us = test_exponential(&flow->seed, 1000.0);
    *consume_us = test_exponential(&flow->seed, 1000.0);
}

/* Eight at once, then a pause as long as the consumer takes for them. */
static void test_bursts(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)flow;
    *produce_us = i % 8 ? 1.0 : 8000.0;
    *consume_us = 1000.0;
}

static void test_long_bursts(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)flow;
    *produce_us = i % 32 ? 1.0 : 32000.0 * (0.5 + (double)(test_random(&flow->seed) % 1000) / 1000.0);
    *consume_us = 1000.0;
}

/* Far longer than any depth allowed. */
static void test_endless_bursts(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)flow;
    *produce_us = i % 500 ? 1.0 : 500000.0;
    *consume_us = 1000.0;
}

/* The one side is the slow one, then the other. */
static void test_alternate(double* produce_us, double* consume_us, bool slow_producer) {
    *produce_us = slow_producer ? 1000.0 : 100.0;
    *consume_us = slow_producer ? 100.0 : 1000.0;
}

static void test_short_phases(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)flow;
    test_alternate(produce_us, consume_us, i / 10 % 2 != 0);
}

static void test_phases(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)flow;
    test_alternate(produce_us, consume_us, i / 1000 % 2 != 0);
}

static void test_long_phases(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    (void)flow;
    test_alternate(produce_us, consume_us, i / 50000 % 2 != 0);
}

/* Bursts, then a time that needs no depth, and so on. */
static void test_days_and_nights(test_flow* flow, uint64_t i, double* produce_us, double* consume_us) {
    if (i / 10000 % 2)
        test_slow_producer(flow, i, produce_us, consume_us);
    else
        test_bursts(flow, i, produce_us, consume_us);
}

typedef struct test_case {
    const char* name;
    test_times times;
    uint32_t start;       /* the depth at first, of at most 64 */
    uint32_t least, most; /* what the depth may become meanwhile, */
    uint32_t low, high;   /* and at the end */
    uint32_t max_changes;
    double item_us; /* an item takes at most so long */
} test_case;

static const test_case test_cases[] = {
    {"steady", test_steady, 8, 3, 8, 3, 8, 2, 1001.0},
    {"slow consumer", test_slow_consumer, 8, 8, 8, 8, 8, 0, 1002.0},
    {"slow producer", test_slow_producer, 64, 2, 64, 2, 6, 8, 1002.0},
    {"by chance", test_by_chance, 4, 4, 64, 16, 64, 12, 1060.0},
    {"bursts", test_bursts, 2, 2, 16, 16, 16, 3, 1003.0},
    {"long bursts", test_long_bursts, 4, 4, 64, 32, 64, 8, 1100.0},
    {"endless bursts", test_endless_bursts, 4, 4, 8, 4, 4, 2, 2000.0},
    {"short phases", test_short_phases, 4, 4, 16, 8, 16, 4, 580.0},
    {"phases", test_phases, 4, 4, 4, 4, 4, 0, 1001.0},
    {"long phases", test_long_phases, 4, 3, 8, 3, 8, 4, 1001.0},
    {"days and nights", test_days_and_nights, 4, 2, 16, 2, 16, 40, 1010.0},
};

static void test_flows(void** state) {
    test_flow flow;
    (void)state;
    memset(&flow, 0, sizeof flow);
    flow.released = (double*)malloc(TEST_N_ITEMS * sizeof *flow.released);
    assert_non_null(flow.released);
    for (size_t i = 0; i < sizeof test_cases / sizeof test_cases[0]; i++) {
        const test_case* const expected = &test_cases[i];
        flow.times = expected->times;
        flow.seed = 32;
        test_simulate(&flow, 64, expected->start);
        const uint32_t depth = flow.policy.policy.depth, n_changes = flow.policy.n_changes;
        const double item_us = flow.now_us / TEST_N_ITEMS;
        printf("%s: depth %u, between %u and %u, %u changes, %.1f us an item\n", expected->name, depth, flow.least,
               flow.most, n_changes, item_us);
        if (depth < expected->low || depth > expected->high || flow.least < expected->least ||
            flow.most > expected->most || n_changes > expected->max_changes || item_us > expected->item_us)
            fail_msg("%s: not as expected", expected->name);
    }
    free(flow.released);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_side_waits), cmocka_unit_test(test_bursts_deepen), cmocka_unit_test(test_in_vain),
        cmocka_unit_test(test_idle_shrinks),   cmocka_unit_test(test_regret),        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_any_intervals),  cmocka_unit_test(test_recorded_bursts),
        cmocka_unit_test(test_flows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
