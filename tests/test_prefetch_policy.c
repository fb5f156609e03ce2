/* tests/test_prefetch_policy.c -- traces of accesses in, decisions out: which are
   foreseen, how far ahead, and when it is better to leave it. */
#include "test.h"
#if !defined(GPST_TEST_AMALGAM)
#include "../core/prefetch/prefetch_policy_internal.h"
#endif

enum { TEST_MOST = 4000, TEST_AHEAD = 16 };

/* What a cache that holds exactly what is wanted would have seen. */
typedef struct test_outcome {
    unsigned n, foreseen, fetched, wasted;
    unsigned first; /* access from which on something was fetched */
    unsigned times_off;
    unsigned longest; /* window */
    char name[32];
} test_outcome;

static test_outcome test_run(const uint64_t* trace, unsigned n, uint64_t n_indices, const uint64_t* schedule,
                             uint64_t n_schedule) {
    gpsti_prefetch_policy policy;
    test_outcome out;
    uint64_t held[GPSTI_PREFETCH_MAX_AHEAD], want[GPSTI_PREFETCH_MAX_AHEAD];
    unsigned n_held = 0;
    memset(&out, 0, sizeof out);
    gpsti_prefetch_policy_init(&policy, n_indices, TEST_AHEAD, schedule, n_schedule);
    for (unsigned k = 0; k < n; k++) {
        unsigned kept = 0;
        for (unsigned h = 0; h < n_held; h++)
            if (held[h] == trace[k]) {
                out.foreseen++;
                gpsti_prefetch_policy_judge(&policy, true);
                held[h] = UINT64_MAX;
            }
        gpsti_prefetch_policy_note(&policy, trace[k]);
        memset(want, 0xA5, sizeof want);
        const uint32_t n_want = gpsti_prefetch_policy_want(&policy, want);
        assert_true(n_want <= TEST_AHEAD);
        for (unsigned w = 0; w < n_want; w++) {
            bool there = false;
            assert_true(want[w] < n_indices && want[w] != trace[k]);
            for (unsigned v = 0; v < w; v++)
                assert_true(want[v] != want[w]);
            for (unsigned h = 0; h < n_held; h++)
                there = there || held[h] == want[w];
            out.fetched += !there;
            if (!there && !out.first)
                out.first = k + 1;
        }
        for (unsigned h = 0; h < n_held; h++) { /* what is wanted no more is let go */
            bool still = false;
            for (unsigned w = 0; w < n_want; w++)
                still = still || want[w] == held[h];
            if (held[h] != UINT64_MAX && !still) {
                out.wasted++;
                gpsti_prefetch_policy_judge(&policy, false);
            }
        }
        for (; kept < n_want; kept++)
            held[kept] = want[kept];
        n_held = n_want;
        if (n_want > out.longest)
            out.longest = n_want;
        if (k + 1 == n)
            gpsti_prefetch_policy_name(&policy, out.name, sizeof out.name);
    }
    out.n = n;
    out.times_off = policy.times_off;
    return out;
}

/* ---- traces ---------------------------------------------------------------------- */

static uint64_t test_trace[TEST_MOST];

typedef enum test_shape {
    SEQUENCE, BACKWARD, STRIDE_3, STRIDE_16, STRIDE_BACK_8, CAMERAS_BY_FRAME, CAMERAS_BY_CAMERA, CAMERAS_2,
    CAMERAS_32, CAMERAS_3_GAPS, PERIOD_5, PERIOD_31, LOOP_OF_3, EPOCHS, EPOCHS_STRIDE, EPOCHS_BACKWARD,
    RANDOM, RANDOM_FEW, SHUFFLED_EPOCHS, SAME, TWO_IN_TURN, SEQUENCE_THEN_RANDOM, RANDOM_THEN_SEQUENCE,
    SEQUENCE_WITH_SEEKS, SEQUENCE_WITH_DROPS, FORTH_AND_BACK, PAIRS, TRIPLES_OVERLAPPING, SHORT_3, ONE,
    LAST_PART, SQUARES, BURSTS, CAMERAS_ACROSS, CAMERAS_PASSES, CAMERAS_ACROSS_PASSES, PERIOD_WRAPS, PERIOD_WRAPS_BACK,
    SHORT_RUNS, N_SHAPES
} test_shape;

typedef struct test_case {
    test_shape shape;
    const char* what;
    unsigned n;          /* accesses */
    uint64_t n_indices;
    unsigned least_pct;  /* foreseen, of the accesses */
    unsigned most_wasted;
    const char* name;    /* at the end; NULL = any */
} test_case;

static uint64_t test_shape_at(test_shape shape, unsigned k, uint64_t n, uint64_t* seed) {
    static const uint64_t five[] = {7, 900, 3, 44, 512}, cameras_gaps[] = {0, 1000, 2001};
    switch (shape) {
    case SEQUENCE: return k;
    case BACKWARD: return n - 1 - k;
    case STRIDE_3: return 3 * (uint64_t)k;
    case STRIDE_16: return 5 + 16 * (uint64_t)k;
    case STRIDE_BACK_8: return n - 1 - 8 * (uint64_t)k;
    case CAMERAS_BY_FRAME: return k;                              /* the camera runs fastest, on disk as asked */
    case CAMERAS_BY_CAMERA: return k % 8 * 300 + k / 8;           /* all frames of a camera lie together */
    case CAMERAS_2: return k % 2 * 1000 + k / 2;
    case CAMERAS_32: return k % 32 * 100 + k / 32;
    case CAMERAS_3_GAPS: return cameras_gaps[k % 3] + k / 3 * 2;
    case PERIOD_5: return five[k % 5];
    case PERIOD_31: return (k % 31) * (k % 31);
    case LOOP_OF_3: return k % 3;
    case EPOCHS: return k % n;
    case EPOCHS_STRIDE: return k * 7 % n;
    case EPOCHS_BACKWARD: return n - 1 - k % n;
    case RANDOM: return test_random(seed) % n;
    case RANDOM_FEW: return test_random(seed) % n;
    case SHUFFLED_EPOCHS: return (k * 2654435761u + (k / n) * 77777u) % n;
    case SAME: return 4;
    case TWO_IN_TURN: return k % 2 * 9;
    case SEQUENCE_THEN_RANDOM: return k < 500 ? k : test_random(seed) % n;
    case RANDOM_THEN_SEQUENCE: return k < 500 ? test_random(seed) % n : k;
    case SEQUENCE_WITH_SEEKS: return k % 50 == 0 ? (*seed = test_random(seed)) % (n - 60) : test_trace[k - 1] + 1;
    case SEQUENCE_WITH_DROPS: return k == 0 ? 0 : test_trace[k - 1] + (k % 20 == 0 ? 2 : 1);
    case FORTH_AND_BACK: return k % 200 < 100 ? k % 200 : 199 - k % 200;
    case PAIRS: return k / 2;
    case TRIPLES_OVERLAPPING: return k / 3 + k % 3;
    case SHORT_3: return k;
    case ONE: return 0;
    case LAST_PART: return n - 20 + k;
    case SQUARES: return (uint64_t)k * k;
    case BURSTS: return k / 3 * 100 + (k % 3) + (k / 3 % 2) * 7;
    case CAMERAS_ACROSS: return k % 300 * 8 + k / 300;               /* frames together, walked camera by camera */
    case CAMERAS_PASSES: return k % 800 % 8 * 100 + k % 800 / 8;     /* cameras together, walked by frame, again */
    case CAMERAS_ACROSS_PASSES: return k % 800 % 100 * 8 + k % 800 / 100;
    case PERIOD_WRAPS: return (k / 2 * 3 + k % 2) % n;               /* 0 1 3 4 6 7 ... and on at the beginning */
    case PERIOD_WRAPS_BACK: return n - 1 - (k / 2 * 3 + k % 2) % n;
    case SHORT_RUNS: return k % 5 == 0 ? test_random(seed) % (n - 5) : test_trace[k - 1] + 1;
    case N_SHAPES: break;
    }
    return 0;
}

static void traces_are_foreseen_as_far_as_they_can_be(void** state) {
    static const test_case cases[] = {
        {SEQUENCE, "sequence", 1000, 1000, 99, 0, "sequence"},
        {BACKWARD, "backward", 1000, 1000, 99, 0, "stride -1"},
        {STRIDE_3, "stride 3", 300, 1000, 98, 0, "stride 3"},
        {STRIDE_16, "stride 16", 200, 10000, 98, TEST_AHEAD, "stride 16"},
        {STRIDE_BACK_8, "stride -8", 100, 1000, 95, TEST_AHEAD, "stride -8"},
        {CAMERAS_BY_FRAME, "8 cameras, frame after frame", 2400, 2400, 99, 0, "sequence"},
        {CAMERAS_BY_CAMERA, "8 cameras in turn, camera after camera", 2400, 2400, 97, 16, "period 8"},
        {CAMERAS_2, "2 cameras in turn", 1000, 2000, 98, TEST_AHEAD, "period 2"},
        {CAMERAS_32, "32 cameras in turn", 3200, 3200, 90, 100, "period 32"},
        {CAMERAS_3_GAPS, "3 cameras, every other frame", 900, 3000, 98, TEST_AHEAD, "period 3"},
        {PERIOD_5, "5 in circles", 500, 1000, 95, 0, "period 5"},
        {PERIOD_31, "31 in circles", 1000, 1000, 90, 0, "period 31"},
        {LOOP_OF_3, "3 in circles", 300, 300, 95, 0, "period 3"},
        {EPOCHS, "epochs", 1000, 100, 94, 0, "sequence"},
        {EPOCHS_STRIDE, "epochs by stride", 1000, 100, 94, 0, "stride 7"},
        {EPOCHS_BACKWARD, "epochs backward", 1000, 100, 94, 0, "stride -1"},
        {RANDOM, "random", 4000, 100000, 0, 8, NULL},
        {RANDOM_FEW, "random among 10", 4000, 10, 0, 200, NULL},
        {SHUFFLED_EPOCHS, "hashed epochs", 4000, 1000, 0, 400, NULL},
        {SAME, "the same again", 500, 10, 0, 0, "stride 0"},
        {TWO_IN_TURN, "two in turn", 500, 10, 95, 0, "period 2"},
        {SEQUENCE_THEN_RANDOM, "sequence, then random", 2000, 100000, 24, 24, NULL},
        {RANDOM_THEN_SEQUENCE, "random, then sequence", 2000, 100000, 74, 24, "sequence"},
        {SEQUENCE_WITH_SEEKS, "sequence with seeks", 2000, 100000, 85, 700, NULL},
        {SEQUENCE_WITH_DROPS, "sequence with drops", 2000, 100000, 80, 100, NULL},
        {FORTH_AND_BACK, "forth and back", 2000, 100, 90, 400, NULL},
        {PAIRS, "each twice", 1000, 500, 45, 0, "period 2"},
        {TRIPLES_OVERLAPPING, "windows of three", 900, 400, 30, 10, "period 3"},
        {SHORT_3, "three accesses", 3, 1000, 0, TEST_AHEAD, NULL},
        {ONE, "one access", 1, 1, 0, 0, "none"},
        {LAST_PART, "up to the end", 20, 1000, 80, 0, "sequence"},
        {SQUARES, "squares", 60, 4000, 0, 0, "none"},
        {BURSTS, "bursts", 300, 20000, 90, 60, NULL},
        {CAMERAS_ACROSS, "8 cameras, one after the other", 2400, 2400, 98, 0, "stride 8"},
        {CAMERAS_PASSES, "8 cameras in turn, three passes", 2400, 800, 98, 20, "period 8"},
        {CAMERAS_ACROSS_PASSES, "8 cameras one after the other, 3 passes", 2400, 800, 95, 0, "stride 8"},
        {PERIOD_WRAPS, "two of three, around", 2000, 300, 99, 0, "period 2"},
        {PERIOD_WRAPS_BACK, "two of three, around, backward", 2000, 300, 99, 0, "period 2"},
        {SHORT_RUNS, "runs of five", 4000, 100000, 1, 400, NULL}};
    uint64_t seed = test_seed(3);
    (void)state;
    assert_int_equal(sizeof cases / sizeof cases[0], N_SHAPES);
    for (unsigned c = 0; c < N_SHAPES; c++) {
        const test_case* const t = &cases[c];
        for (unsigned k = 0; k < t->n; k++)
            test_trace[k] = test_shape_at(t->shape, k, t->n_indices, &seed);
        const test_outcome out = test_run(test_trace, t->n, t->n_indices, NULL, 0);
        printf("%-40s %4u accesses: %4u foreseen, %4u fetched, %3u wasted, ahead %2u, off %u: %s\n", t->what,
               out.n, out.foreseen, out.fetched, out.wasted, out.longest, out.times_off, out.name);
        assert_true(out.foreseen * 100 >= t->least_pct * t->n);
        assert_true(out.wasted <= t->most_wasted);
        if (t->name)
            assert_string_equal(out.name, t->name);
    }
}

/* ---- how far, and how soon --------------------------------------------------------- */

static void the_window_doubles(void** state) {
    static const uint32_t expected[] = {0, 0, 0, 2, 2, 4, 4, 4, 4, 8, 8, 8, 8, 8, 8, 8, 8, 16, 16};
    gpsti_prefetch_policy policy;
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    (void)state;
    gpsti_prefetch_policy_init(&policy, 1000, TEST_AHEAD, NULL, 0);
    for (uint64_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
        gpsti_prefetch_policy_note(&policy, k);
        assert_int_equal(gpsti_prefetch_policy_want(&policy, want), expected[k]);
        if (expected[k])
            assert_int_equal(want[expected[k] - 1], k + expected[k]);
    }
    gpsti_prefetch_policy_note(&policy, 500); /* trust is lost at once */
    assert_int_equal(gpsti_prefetch_policy_want(&policy, want), 0);
}

static void one_ahead_at_most(void** state) {
    gpsti_prefetch_policy policy;
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    (void)state;
    gpsti_prefetch_policy_init(&policy, 1000, 1, NULL, 0);
    for (uint64_t k = 0; k < 30; k++)
        gpsti_prefetch_policy_note(&policy, k);
    assert_int_equal(gpsti_prefetch_policy_want(&policy, want), 1);
    assert_int_equal(want[0], 30);
    gpsti_prefetch_policy_init(&policy, 1000, 10, NULL, 0); /* no power of two: never beyond it */
    for (uint64_t k = 0; k < 60; k++) {
        gpsti_prefetch_policy_note(&policy, k);
        assert_true(gpsti_prefetch_policy_want(&policy, want) <= 10);
    }
    assert_int_equal(gpsti_prefetch_policy_want(&policy, want), 10);
}

static void what_is_wasted_switches_it_off(void** state) {
    gpsti_prefetch_policy policy;
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    char name[32];
    uint64_t at = 0;
    (void)state;
    gpsti_prefetch_policy_init(&policy, 1000000, TEST_AHEAD, NULL, 0);
    for (unsigned round = 0; round < 4; round++) {
        unsigned off = 0;
        for (unsigned k = 0; k < 8; k++)
            gpsti_prefetch_policy_note(&policy, at++);
        assert_true(gpsti_prefetch_policy_want(&policy, want) > 0);
        for (unsigned k = 0; k < GPSTI_PREFETCH_JUDGED; k++)
            gpsti_prefetch_policy_judge(&policy, k % 2 == 0);
        gpsti_prefetch_policy_name(&policy, name, sizeof name);
        assert_string_equal(name, "off");
        while (gpsti_prefetch_policy_want(&policy, want) == 0) {
            gpsti_prefetch_policy_note(&policy, at++);
            off++;
        }
        assert_int_equal(off, GPSTI_PREFETCH_FIRST_PAUSE << round); /* longer every time */
    }
    assert_int_equal(policy.times_off, 4);
    for (unsigned k = 0; k < 10 * GPSTI_PREFETCH_JUDGED; k++)
        gpsti_prefetch_policy_judge(&policy, k % 3 != 0); /* two of three are worth it */
    assert_int_equal(policy.times_off, 4);
}

/* ---- schedules ------------------------------------------------------------------------ */

static void a_schedule_is_followed_exactly(void** state) {
    uint64_t schedule[1000];
    uint64_t seed = test_seed(5);
    (void)state;
    for (unsigned k = 0; k < 1000; k++)
        schedule[k] = test_random(&seed) % 200; /* random, some often */
    const test_outcome out = test_run(schedule, 1000, 200, schedule, 1000);
    printf("schedule: %u foreseen, %u fetched, %u wasted\n", out.foreseen, out.fetched, out.wasted);
    assert_true(out.foreseen >= 985); /* all but the first and what comes twice in a row */
    assert_int_equal(out.wasted, 0);
    assert_int_equal(out.longest, TEST_AHEAD);
    assert_string_equal(out.name, "schedule");
}

static void a_schedule_is_left_and_taken_up_again(void** state) {
    uint64_t schedule[100], trace[60];
    unsigned n = 0;
    (void)state;
    for (unsigned k = 0; k < 100; k++)
        schedule[k] = 99 - k;
    for (unsigned k = 0; k < 20; k++)
        trace[n++] = 99 - k;
    trace[n++] = 99; /* again: not of the rest of the schedule */
    for (unsigned k = 30; k < 60; k++) /* ten are left out */
        trace[n++] = 99 - k;
    const test_outcome out = test_run(trace, n, 100, schedule, 100);
    assert_true(out.foreseen >= n - 2);
    assert_int_equal(out.wasted, 10);
    assert_int_equal(out.times_off, 0);
}

/* Each pass but the first leaves out the last four: the next one is found all the same. */
static void a_schedule_begins_anew(void** state) {
    uint64_t schedule[100], trace[TEST_MOST];
    gpsti_prefetch_policy policy;
    uint64_t want[GPSTI_PREFETCH_MAX_AHEAD];
    unsigned n = 0;
    (void)state;
    for (unsigned k = 0; k < 100; k++)
        schedule[k] = k * 37 % 100;
    for (unsigned pass = 0; pass < 5; pass++)
        for (unsigned k = 0; k < (pass == 0 ? 100 : 96); k++)
            trace[n++] = schedule[k];
    const test_outcome out = test_run(trace, n, 100, schedule, 100);
    assert_int_equal(out.foreseen, n - 5); /* all but the first of each */
    assert_int_equal(out.wasted, 4 * 4 - 4); /* of the last pass they wait yet */
    gpsti_prefetch_policy_init(&policy, 100, 4, schedule, 100);
    gpsti_prefetch_policy_place(&policy, 90);
    gpsti_prefetch_policy_note(&policy, schedule[90]);
    assert_int_equal(gpsti_prefetch_policy_want(&policy, want), 4);
    assert_int_equal(want[0], schedule[91]);
    gpsti_prefetch_policy_place(&policy, 0); /* where a source begins anew, wherever it was */
    gpsti_prefetch_policy_note(&policy, schedule[0]);
    assert_int_equal(gpsti_prefetch_policy_want(&policy, want), 4);
    assert_int_equal(want[3], schedule[4]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(traces_are_foreseen_as_far_as_they_can_be),
                                       cmocka_unit_test(the_window_doubles),
                                       cmocka_unit_test(one_ahead_at_most),
                                       cmocka_unit_test(what_is_wasted_switches_it_off),
                                       cmocka_unit_test(a_schedule_is_followed_exactly),
                                       cmocka_unit_test(a_schedule_is_left_and_taken_up_again),
                                       cmocka_unit_test(a_schedule_begins_anew)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
