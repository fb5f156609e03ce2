/* tests/test_bench_rounds.c -- the rounds of never-slower: all are as often next to each other, and the interval of two
   that are the same holds 1 as often as it promises. */
#include "test.h"

#include "../tools/gpustage/bench_never_rounds.c"

enum { N_TURNS = 4, RUNS = 20000 };

/* ---- order ---------------------------------------------------------------------------------- */

/* In one block of n turns: at each place, and after each other one, as often. */
static void check_block(uint32_t n, uint64_t seed) {
    uint32_t at[BENCH_MOST_TURNS][BENCH_MOST_TURNS], after[BENCH_MOST_TURNS][BENCH_MOST_TURNS];
    const uint32_t times = n % 2 ? 2 : 1;
    bench_turns turns = GPST_ZERO;
    memset(at, 0, sizeof at);
    memset(after, 0, sizeof after);
    turns.n = n;
    turns.random = seed;
    for (uint32_t round = 0; round < times * n; round++) {
        uint32_t order[BENCH_MOST_TURNS];
        memset(order, 0xA5, sizeof order);
        bench_turns_next(&turns, order);
        for (uint32_t i = 0; i < n; i++) {
            assert_true(order[i] < n);
            at[order[i]][i]++;
            if (i > 0)
                after[order[i]][order[i - 1]]++;
        }
    }
    for (uint32_t a = 0; a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            assert_int_equal(at[a][b], times);
            assert_int_equal(after[a][b], a == b ? 0 : times);
        }
}

static void test_a_block_is_fair(void** state) {
    uint64_t random = test_seed(1);
    (void)state;
    for (uint32_t n = 2; n <= BENCH_MOST_TURNS; n++)
        for (int k = 0; k < 20; k++)
            check_block(n, test_random(&random));
}

/* Between blocks as well, in the long run: nobody knows who comes first. */
static void test_chance_says_who_is_who(void** state) {
    enum { BLOCKS = 10000 };
    uint32_t first[N_TURNS] = {0}, after[N_TURNS][N_TURNS] = {{0}};
    bench_turns turns = GPST_ZERO;
    uint32_t last = 0;
    (void)state;
    turns.n = N_TURNS;
    turns.random = test_seed(1);
    for (int round = 0; round < BLOCKS * N_TURNS; round++) {
        uint32_t order[BENCH_MOST_TURNS];
        bench_turns_next(&turns, order);
        first[order[0]] += round % N_TURNS == 0;
        after[order[0]][last]++;
        last = order[N_TURNS - 1];
    }
    for (uint32_t a = 0; a < N_TURNS; a++) {
        assert_in_range(first[a], BLOCKS / 4 - 300, BLOCKS / 4 + 300); /* 7 standard deviations */
        for (uint32_t b = 0; b < N_TURNS; b++) /* at the seams of two blocks, which are a quarter, any; else another */
            assert_in_range(after[a][b], a == b ? BLOCKS / 16 - 200 : BLOCKS / 4 + BLOCKS / 16 - 600,
                            a == b ? BLOCKS / 16 + 200 : BLOCKS / 4 + BLOCKS / 16 + 600);
    }
}

/* ---- the interval ------------------------------------------------------------------------------ */

/* Ranks of the median's interval as statistical tables have them, counted from 1. */
static void test_ranks_are_those_of_the_tables(void** state) {
    static const struct {
        uint32_t n, low, high;
    } known[] = {{1, 1, 1},    {2, 1, 2},    {6, 1, 6},    {7, 1, 7},    {8, 1, 8},    {9, 2, 8},    {10, 2, 9},
                 {11, 2, 10},  {12, 3, 10},  {16, 4, 13},  {20, 6, 15},  {25, 8, 18},  {26, 8, 19},  {30, 10, 21},
                 {40, 14, 27}, {41, 14, 28}, {50, 18, 33}, {80, 31, 50}, {81, 32, 50}};
    double other[BENCH_MOST_ROUNDS], self[BENCH_MOST_ROUNDS];
    (void)state;
    for (size_t k = 0; k < sizeof known / sizeof known[0]; k++) {
        const uint32_t n = known[k].n;
        for (uint32_t i = 0; i < n; i++) { /* ratios n..1 */
            self[i] = 1.0 + i % 7;
            other[i] = (double)(n - i) * self[i];
        }
        const bench_interval found = bench_interval_of(other, self, n);
        assert_true(found.low == (double)known[k].low);
        assert_true(found.high == (double)known[k].high);
        assert_true(found.middle == (double)(n + 1) / 2.0);
    }
}

/* ---- two that are the same ---------------------------------------------------------------------- */

static double unit(uint64_t* random) { return (double)(test_random(random) >> 11) / 9007199254740992.0; }

/* A run on a machine: what it is like at the moment, a little noise, others' work now and then, and after the last one
   of the turns threads and memory are not where they were. */
static double run_s(uint32_t before, double mood, uint64_t* random) {
    double seconds = mood * (1.0 + 0.03 * (unit(random) + unit(random) - 1.0));
    if (unit(random) < 0.15)
        seconds *= 1.0 + unit(random);
    return before == N_TURNS - 1 ? seconds * 1.12 : seconds;
}

/* Does the interval of turn 0 against turn 1 hold 1? n_rounds 0: as many as the rounds themselves want. */
static bool holds_one(uint32_t n_rounds, uint64_t* random) {
    double seconds[N_TURNS][BENCH_MOST_ROUNDS];
    bench_interval found;
    bench_turns turns = GPST_ZERO;
    double mood = 1.0;
    uint32_t before = 0, n = 0;
    memset(&found, 0xA5, sizeof found);
    turns.n = N_TURNS;
    turns.random = test_random(random);
    for (bool more = true; more;) {
        uint32_t order[BENCH_MOST_TURNS];
        bench_turns_next(&turns, order);
        for (uint32_t i = 0; i < N_TURNS; i++) {
            mood *= 1.0 + 0.02 * (unit(random) - 0.5);
            seconds[order[i]][n] = run_s(before, mood, random);
            before = order[i];
        }
        more = ++n < n_rounds;
        if (!more)
            found = bench_interval_of(seconds[0], seconds[1], n);
        if (n_rounds == 0)
            more = bench_wants_more(&found, &found, n);
    }
    return found.low <= 1.0 && 1.0 <= found.high;
}

static void test_the_same_twice_holds_one(void** state) {
    static const uint32_t rounds[] = {6, 8, 11, 16, 26, 41, 0};
    uint64_t random = test_seed(2);
    (void)state;
    for (size_t k = 0; k < sizeof rounds / sizeof rounds[0]; k++) {
        uint32_t n_held = 0;
        for (uint32_t run = 0; run < RUNS; run++)
            n_held += holds_one(rounds[k], &random);
        printf("%2u rounds: %.2f %% hold 1\n", (unsigned)rounds[k], 100.0 * n_held / RUNS);
        assert_true(n_held >= RUNS * 945 / 1000); /* 95 %, less three standard deviations */
    }
}

static void test_few_rounds_are_not_narrow(void** state) {
    const bench_interval narrow = {1.0, 1.01, 1.05}, wide = {1.0, 1.01, 1.06};
    (void)state;
    assert_true(bench_wants_more(&narrow, &narrow, BENCH_ENOUGH_ROUNDS - 1));
    assert_false(bench_wants_more(&narrow, &narrow, BENCH_ENOUGH_ROUNDS));
    assert_true(bench_wants_more(&wide, &narrow, BENCH_ENOUGH_ROUNDS));
    assert_true(bench_wants_more(&narrow, &wide, BENCH_MOST_ROUNDS - 1));
    assert_false(bench_wants_more(&wide, &wide, BENCH_MOST_ROUNDS));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_block_is_fair),
        cmocka_unit_test(test_chance_says_who_is_who),
        cmocka_unit_test(test_ranks_are_those_of_the_tables),
        cmocka_unit_test(test_the_same_twice_holds_one),
        cmocka_unit_test(test_few_rounds_are_not_narrow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
