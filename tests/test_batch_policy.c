/* tests/test_batch_policy.c -- which items go together: the rules one by one, and a simulation of streams at and beyond
   what the stage can do, beside the fixed delays of other systems. */
#include "test.h"

#include "../core/tuning/batch_internal.h"

#include <math.h>

#define MS INT64_C(1000000)

/* ---- what batches take ------------------------------------------------------------------------------------ */

static gpsti_batch_times times_of(int64_t fixed_ns, int64_t item_ns, uint32_t most) {
    gpsti_batch_times times;
    memset(&times, 0, sizeof times);
    for (uint32_t n = 1; n <= most; n++)
        for (int k = 0; k < 3; k++)
            gpsti_batch_times_add(&times, n, fixed_ns + item_ns * n);
    return times;
}

static void test_times(void** state) {
    (void)state;
    static gpsti_batch_times times;
    memset(&times, 0, sizeof times);
    assert_int_equal(gpsti_batch_times_estimate(&times, 4), 0);
    gpsti_batch_times_add(&times, 4, 900 * MS); /* the first of a size warms up */
    assert_int_equal(gpsti_batch_times_estimate(&times, 4), 0);
    for (int k = 0; k < 40; k++)
        gpsti_batch_times_add(&times, 4, (k % 12 == 9 ? 30 : 10) * MS); /* of nine in ten */
    assert_int_equal(gpsti_batch_times_estimate(&times, 4), 10 * MS);
    assert_int_equal(gpsti_batch_times_estimate(&times, 1), 10 * MS); /* below: no less */
    assert_int_equal(gpsti_batch_times_estimate(&times, 8), 20 * MS); /* beyond: as much an item */
    for (int k = 0; k < 3; k++)
        gpsti_batch_times_add(&times, 8, 14 * MS);
    assert_int_equal(gpsti_batch_times_estimate(&times, 6), 12 * MS); /* between */
    for (int k = 0; k < 3; k++)
        gpsti_batch_times_add(&times, 2, 12 * MS);
    assert_int_equal(gpsti_batch_times_estimate(&times, 4), 12 * MS); /* a larger one takes no less */
    for (int k = 0; k < 64; k++)
        gpsti_batch_times_add(&times, 4, 40 * MS); /* only recent ones count */
    assert_int_equal(gpsti_batch_times_estimate(&times, 4), 40 * MS);
    gpsti_batch_times_add(&times, 0, MS); /* no sizes of ours */
    gpsti_batch_times_add(&times, GPSTI_BATCH_MOST + 1, MS);
}

/* ---- the rule ------------------------------------------------------------------------------------------------ */

/* "T" taken, "L" late, "S" shed, "." waits; deadlines in ms, 0 = none; one digit of priority each, or NULL. */
static void check_choice(const gpsti_batch_times* times, uint32_t most, uint64_t n_late_before, const int* deadlines,
                         const char* priorities, const char* wanted) {
    static const char letters[] = ".TLS";
    gpsti_batch_item items[32];
    gpsti_batch_input input;
    char got[33];
    memset(&input, 0, sizeof input);
    input.start_ns = 1000 * MS;
    input.items = items;
    input.n_waiting = (uint32_t)strlen(wanted);
    input.most = most;
    input.n_late_before = n_late_before;
    input.times = times;
    uint32_t n_wanted = 0;
    for (uint32_t i = 0; i < input.n_waiting; i++) {
        items[i].deadline_ns = deadlines[i] == 0 ? INT64_MAX : input.start_ns + deadlines[i] * MS;
        items[i].priority = priorities ? priorities[i] - '0' : 0;
        n_wanted += wanted[i] == 'T';
    }
    assert_int_equal(gpsti_batch_choose(&input), n_wanted);
    for (uint32_t i = 0; i < input.n_waiting; i++)
        got[i] = letters[items[i].verdict];
    got[input.n_waiting] = '\0';
    assert_string_equal(got, wanted);
}

static void test_the_rule(void** state) {
    (void)state;
    static const int none[16] = {0};
    const gpsti_batch_times times = times_of(4 * MS, 1 * MS, 8); /* 5 ms alone, 12 ms of eight */
    gpsti_batch_times unknown;
    memset(&unknown, 0, sizeof unknown);
    check_choice(&times, 8, 0, none, NULL, "TTT"); /* what is ready goes at once */
    check_choice(&times, 4, 0, none, NULL, "TTTT...");   /* up to most; without deadlines nobody is given up */
    check_choice(&times, 8, 0, none, NULL, "");
    check_choice(&times, 8, 0, (const int[]){4, 6, 6}, NULL, "LTT"); /* not even alone */
    /* All are late: now and then one goes all the same, since the estimate may be wrong; not one that has expired. */
    check_choice(&times, 8, 0, (const int[]){2, 4, 3}, NULL, "LLL");
    check_choice(&times, 8, 20, (const int[]){2, 4, 3}, NULL, "LTL");
    check_choice(&times, 8, 20, (const int[]){-2, -4, 0 - 3}, NULL, "LLL");
    check_choice(&unknown, 8, 0, (const int[]){1, 1, -1}, NULL, "TTL"); /* nothing is known but that it is over */
    /* Fewer than most wait: as many go as are in time for the first one. */
    check_choice(&times, 8, 0, (const int[]){6, 30, 30, 30}, NULL, "TT..");
    check_choice(&times, 8, 0, (const int[]){8, 30, 30, 30}, NULL, "TTTT");
    /* More wait than go: the first would allow three of them, the others eight. */
    check_choice(&times, 8, 0, (const int[]){7, 20, 20, 20, 20, 20, 20, 20, 20}, NULL, "STTTTTTTT");
    /* But nobody is given up for one of a lower priority. */
    check_choice(&times, 8, 0, (const int[]){7, 20, 20, 20, 20, 20, 20, 20, 20}, "100000000", "TTT......");
    check_choice(&times, 4, 0, (const int[]){6, 20, 20, 20, 20, 20}, "221110", "TT....");
    /* Of equally good batches the one that gives nobody up. */
    check_choice(&times, 4, 0, (const int[]){20, 20, 20, 20, 20, 20}, NULL, "TTTT..");
}

static void test_presets(void** state) {
    (void)state;
    assert_int_equal(gpsti_batch_preset_of(GPST_PRESET_LATENCY).depth, 1);
    assert_int_equal(gpsti_batch_preset_of(GPST_PRESET_DEFAULT).depth, 2);
    assert_int_equal(gpsti_batch_preset_of(GPST_PRESET_BALANCED).depth, 2);
    assert_int_equal(gpsti_batch_preset_of(GPST_PRESET_THROUGHPUT).depth, 3);
    assert_int_equal(gpsti_batch_preset_of(GPST_PRESET_BALANCED).queue_batches, 0);
    assert_int_equal(gpsti_batch_preset_of(GPST_PRESET_LATENCY).queue_batches, 1);
    assert_true(gpsti_batch_preset_of(GPST_PRESET_LATENCY).batch_most <
                gpsti_batch_preset_of(GPST_PRESET_THROUGHPUT).batch_most);
}

/* ---- a stage that is simulated ----------------------------------------------------------------------------------
   A batch of n takes 4 + 1.2 n ms, 8 % more or less; eight at most, 588 items a second. Each is wanted 33 ms after it
   came. Time-outs in ms, DELAY_... : as other systems wait for a fuller batch. */

enum { MOST = 8, N_FRAMES = 6000, QUEUE = 4096 };
enum { OURS = -1, SHRINK = -2 }; /* or a delay in ms */

typedef enum arrivals { POISSON, CAMERAS, BURSTS } arrivals;

typedef struct outcome {
    double missed; /* percent: late, shed, or ready too late */
    double mean_ms; /* of those that were served */
} outcome;

static int64_t service_ns(uint32_t n, uint64_t* random) {
    const double noise = 0.92 + 0.16 * (double)(test_random(random) >> 11) / 9007199254740992.0;
    return (int64_t)((4.0 + 1.2 * n) * 1e6 * noise);
}

static double uniform(uint64_t* random) { return ((double)(test_random(random) >> 11) + 0.5) / 9007199254740992.0; }

static void make_arrivals(arrivals kind, double load, uint64_t* random, int64_t* at_ns) {
    const double mean_ns = 1e9 / (load * MOST / 0.0136); /* 8 in 13.6 ms */
    double now = 0.0;
    for (uint32_t k = 0; k < N_FRAMES; k++) {
        if (kind == POISSON)
            now += -log(uniform(random)) * mean_ns;
        else if (kind == CAMERAS)
            now += mean_ns;
        else if (k % 6 == 0)
            now += 6.0 * mean_ns * (0.5 + uniform(random));
        at_ns[k] = (int64_t)now;
    }
}

/* How many of the queue go now, and where they begin; 0: none yet, until *until_ns. */
static uint32_t choose(int rule, const gpsti_batch_times* times, const int64_t* at_ns, const uint32_t* queue,
                       uint32_t n, int64_t now_ns, int64_t* until_ns, uint64_t* n_late, gpsti_batch_verdict* verdicts) {
    static gpsti_batch_item items[QUEUE];
    uint32_t taken = n < MOST ? n : MOST;
    for (uint32_t i = 0; i < n; i++)
        verdicts[i] = i < taken ? GPSTI_BATCH_TAKE : GPSTI_BATCH_WAIT;
    if (rule >= 0) {
        const int64_t due_ns = at_ns[queue[0]] + rule * MS;
        if (n >= MOST || now_ns >= due_ns)
            return taken;
        *until_ns = due_ns;
        memset(verdicts, 0, n * sizeof *verdicts);
        return 0;
    }
    if (rule == SHRINK) { /* no more than the first one's deadline allows */
        while (taken > 1 && now_ns + gpsti_batch_times_estimate(times, taken) > at_ns[queue[0]] + 33 * MS)
            verdicts[--taken] = GPSTI_BATCH_WAIT;
        return taken;
    }
    gpsti_batch_input input;
    memset(&input, 0, sizeof input);
    for (uint32_t i = 0; i < n; i++) {
        items[i].deadline_ns = at_ns[queue[i]] + 33 * MS;
        items[i].priority = 0;
    }
    input.start_ns = now_ns;
    input.items = items;
    input.n_waiting = n;
    input.most = MOST;
    input.n_late_before = *n_late;
    input.times = times;
    taken = gpsti_batch_choose(&input);
    *n_late = taken > 0 ? 0 : *n_late + n;
    for (uint32_t i = 0; i < n; i++)
        verdicts[i] = items[i].verdict;
    return taken;
}

/* One batch at a time; what batches take is learned on the way. */
static outcome simulate(int rule, arrivals kind, double load, uint64_t seed) {
    static int64_t at_ns[N_FRAMES];
    static uint32_t queue[QUEUE];
    static gpsti_batch_verdict verdicts[QUEUE];
    gpsti_batch_times times;
    uint32_t n = 0, next = 0, n_missed = 0, n_served = 0;
    int64_t now_ns = 0;
    double sum_ms = 0.0;
    uint64_t n_late = 0;
    memset(&times, 0, sizeof times);
    make_arrivals(kind, load, &seed, at_ns);
    while (next < N_FRAMES || n > 0) {
        int64_t until_ns = INT64_MAX;
        for (; next < N_FRAMES && at_ns[next] <= now_ns && n < QUEUE; next++)
            queue[n++] = next;
        const uint32_t taken = n > 0 ? choose(rule, &times, at_ns, queue, n, now_ns, &until_ns, &n_late, verdicts) : 0;
        if (taken == 0 && (n == 0 || until_ns != INT64_MAX)) { /* until something comes, or the delay is over */
            const int64_t comes_ns = next < N_FRAMES ? at_ns[next] : INT64_MAX;
            now_ns = comes_ns < until_ns ? comes_ns : until_ns;
            continue;
        }
        const int64_t took_ns = taken > 0 ? service_ns(taken, &seed) : 0;
        uint32_t kept = 0;
        for (uint32_t i = 0; i < n; i++) {
            const int64_t age_ns = now_ns + took_ns - at_ns[queue[i]];
            if (verdicts[i] == GPSTI_BATCH_WAIT) {
                queue[kept++] = queue[i];
                continue;
            }
            n_missed += verdicts[i] != GPSTI_BATCH_TAKE || age_ns > 33 * MS;
            n_served += verdicts[i] == GPSTI_BATCH_TAKE;
            sum_ms += verdicts[i] == GPSTI_BATCH_TAKE ? (double)age_ns / 1e6 : 0.0;
        }
        n = kept;
        now_ns += took_ns;
        if (taken > 0)
            gpsti_batch_times_add(&times, taken, took_ns);
    }
    const outcome out = {100.0 * n_missed / N_FRAMES, n_served > 0 ? sum_ms / n_served : 0.0};
    return out;
}

static outcome simulate_some(int rule, arrivals kind, double load) {
    outcome mean = {0.0, 0.0};
    for (uint64_t seed = 1; seed <= 5; seed++) {
        const outcome one = simulate(rule, kind, load, seed * 7919);
        mean.missed += one.missed / 5.0;
        mean.mean_ms += one.mean_ms / 5.0;
    }
    return mean;
}

static void test_a_simulated_stage(void** state) {
    static const struct {
        double load, most_missed;
    } loads[] = {{0.31, 0.5}, {0.60, 1.0}, {0.85, 3.0}, {0.95, 6.0}, {1.02, 10.0}, {1.36, 35.0}};
    static const char* const names[] = {"poisson", "cameras", "bursts"};
    static const int rules[] = {OURS, 0, 50, 100, SHRINK};
    (void)state;
    printf("missed %% (mean ms)  ours            no delay        50 ms           100 ms          shrink\n");
    for (int kind = 0; kind < 3; kind++)
        for (size_t l = 0; l < sizeof loads / sizeof loads[0]; l++) {
            outcome by[5];
            printf("%-8s %4.0f %%    ", names[kind], loads[l].load * 100.0);
            for (int r = 0; r < 5; r++) {
                by[r] = simulate_some(rules[r], (arrivals)kind, loads[l].load);
                printf("  %5.1f (%6.1f)", by[r].missed, by[r].mean_ms);
            }
            printf("\n");
            assert_true(by[0].missed <= loads[l].most_missed);
            if (loads[l].load >= 0.9)
                continue;
            assert_true(by[0].missed <= by[1].missed + 2.0); /* what is plain and right is not made worse */
            assert_true(by[0].mean_ms <= by[1].mean_ms * 1.02);
        }
}

/* One run of a second among those of 10 ms: items are served again soon, though each would be late by it. */
static void test_a_wrong_estimate_is_corrected(void** state) {
    (void)state;
    gpsti_batch_times times;
    gpsti_batch_item item;
    gpsti_batch_input input;
    uint32_t n_served = 0;
    memset(&times, 0, sizeof times);
    gpsti_batch_times_add(&times, 1, 10 * MS);
    gpsti_batch_times_add(&times, 1, 1000 * MS);
    memset(&input, 0, sizeof input);
    input.items = &item;
    input.n_waiting = 1;
    input.most = 4;
    input.times = &times;
    item.priority = 0;
    item.deadline_ns = 33 * MS;
    for (uint32_t k = 0; k < 2000; k++) {
        const uint32_t n = gpsti_batch_choose(&input);
        input.n_late_before = n > 0 ? 0 : input.n_late_before + 1;
        n_served += n;
        if (n > 0)
            gpsti_batch_times_add(&times, 1, 10 * MS);
    }
    assert_true(n_served > 1700);
}

/* Two slow batches of four: larger ones are tried again after a while, and are as fast as ever. */
static void test_sizes_are_tried_again(void** state) {
    (void)state;
    gpsti_batch_times times;
    memset(&times, 0, sizeof times);
    for (int k = 0; k < 3; k++)
        gpsti_batch_times_add(&times, 4, 100 * MS);
    for (int k = 0; k < 100; k++)
        gpsti_batch_times_add(&times, 1, 8 * MS);
    assert_int_equal(gpsti_batch_times_estimate(&times, 4), 100 * MS);
    for (int k = 0; k < 100; k++)
        gpsti_batch_times_add(&times, 1, 8 * MS);
    assert_int_equal(gpsti_batch_times_estimate(&times, 4), 32 * MS);
    gpsti_batch_times_add(&times, 4, 20 * MS);
    assert_int_equal(gpsti_batch_times_estimate(&times, 4), 20 * MS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_the_rule),
        cmocka_unit_test(test_presets),
        cmocka_unit_test(test_sizes_are_tried_again),
        cmocka_unit_test(test_a_wrong_estimate_is_corrected),
        cmocka_unit_test(test_a_simulated_stage),
    };
    return cmocka_run_group_tests_name("batch_policy", tests, NULL, NULL);
}
