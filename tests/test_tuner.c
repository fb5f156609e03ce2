/* tests/test_tuner.c -- the tuner's policy: clocks in, decisions out. A machine is
   a handful of numbers here and its throughput a formula, so that nothing depends on the one that runs the test. */
#include "tuner_machine.h"

/* Within 95 % of the best of the grid after 200 items, never above a budget, and frozen soon after. Once more without
   knowing what item 0 took: there, too, by the freeze. */
static void test_converges(void** state) {
    (void)state;
    uint64_t random = test_seed(29);
    for (size_t i = 0; i < N_MACHINES * 2; i++) {
        const machine* const m = &machines[i / 2];
        const gpsti_tuner_budget budget = budget_of(m);
        const gpsti_tuner_costs costs = costs_of(m);
        gpsti_tuner tuner;
        gpsti_tuner_init(&tuner, &budget, i % 2 == 0 ? &costs : NULL);
        assert_within(&tuner);
        const uint64_t most_items = i % 2 == 0 ? 200 - 16 : 400;
        uint64_t items = run(&tuner, m, most_items, &random);
        const double reached = best_period_ms(m, &tuner) / period_ms(m, &tuner.kept);
        items += run(&tuner, m, 1000, &random);
        printf("  %-24s %s %5.1f %% of the best of the grid, frozen after %llu items\n", m->name,
               i % 2 == 0 ? "model  " : "unknown", 100.0 * reached, (unsigned long long)items);
        if (reached < 0.95 || items > 400) {
            print_decisions(&tuner);
            fail_msg("%s", m->name);
        }
        assert_true(strstr(tuner.decisions[tuner.n_decisions - 1].reason, "frozen") != NULL);
    }
}

/* What holds a machine up at its best setting is what it was made for. */
static void test_bottlenecks(void** state) {
    (void)state;
    uint64_t random = test_seed(30);
    for (size_t i = 0; i < N_MACHINES; i++) {
        const machine* const m = &machines[i];
        const gpsti_tuner_budget budget = budget_of(m);
        const gpsti_tuner_costs costs = costs_of(m);
        gpsti_tuner tuner;
        gpsti_tuner_init(&tuner, &budget, &costs);
        (void)run(&tuner, m, 1000, &random);
        const gpsti_tuner_window window = window_of(m, &tuner.now, 16, &random);
        const gpst_resource got = gpsti_tuner_bottleneck(&tuner.now, &window, m->cores);
        if (got != m->bound)
            fail_msg("%s: %s-bound, not %s-bound", m->name, gpst_resource_name(got),
                     gpst_resource_name(m->bound));
    }
}

/* ---- single moves ------------------------------------------------------------------------------------ */

/* Disk-bound at 4 reads: 8 are tried, and kept only on a win of more than 2 % and more than the noise. */
static void judge_a_trial(double gain, double noise, bool kept) {
    const machine* const m = machine_named("disk, scales to 8");
    uint64_t random = 1;
    gpsti_tuner tuner = tuner_of(m);
    gpsti_tuner_window window = window_of(m, &tuner.now, 16, &random);
    window.noise = noise;
    assert_true(gpsti_tuner_judge(&tuner, &window, 17));
    assert_int_equal(tuner.state, GPSTI_TUNER_TRIAL);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 8);
    const uint32_t slots = tuner.kept.value[GPST_KNOB_SLOTS];
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], slots + 4);
    window.wall_ns = (int64_t)((double)window.wall_ns / (1.0 + gain));
    window.service_ns[GPST_RESOURCE_DISK_IN] = window.wall_ns * 8;
    assert_true(gpsti_tuner_judge(&tuner, &window, 33));
    const gpst_tuner_decision* const decision = &tuner.decisions[0];
    assert_int_equal(decision->item, 33);
    assert_int_equal(decision->knob, GPST_KNOB_READS);
    assert_int_equal(decision->before, 4);
    assert_int_equal(decision->after, kept ? 8 : 4);
    assert_true(decision->items_per_s_before > 0.0);
    assert_int_equal((int)(decision->items_per_s_after / decision->items_per_s_before * 1000.0 + 0.5),
                     (int)((1.0 + gain) * 1000.0 + 0.5));
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], kept ? 16 : 2); /* on in the same direction, or back */
    assert_int_equal(tuner.kept.value[GPST_KNOB_READS], kept ? 8 : 4);
    assert_int_equal(tuner.kept.value[GPST_KNOB_SLOTS], kept ? slots + 4 : slots);
}

/* What pays in full goes twice as far next; what was too far then is tried at half the way. */
static void test_what_pays_in_full_goes_far(void** state) {
    (void)state;
    machine m = *machine_named("disk, scales to 8");
    uint64_t random = 1;
    m.read_least = 0.1; /* 117 reads would be of use */
    gpsti_tuner tuner = tuner_of(&m);
    static const uint32_t ways[] = {4, 8, 32};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], ways[i]);
        const gpsti_tuner_window window = window_of(&m, &tuner.now, 16, &random);
        assert_true(gpsti_tuner_judge(&tuner, &window, 17));
    }
    m.read_least = 1.0; /* from 8 on it seeks: 32 are slower, 16 are not */
    m.read_crowd = 0.02;
    tuner = tuner_of(&m);
    static const uint32_t back[] = {4, 8, 32, 16};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], back[i]);
        const gpsti_tuner_window window = window_of(&m, &tuner.now, 16, &random);
        assert_true(gpsti_tuner_judge(&tuner, &window, 17));
    }
    assert_int_equal(tuner.kept.value[GPST_KNOB_READS], 16);
}

static void test_a_win_is_kept_and_a_loss_taken_back(void** state) {
    (void)state;
    judge_a_trial(0.50, 0.0, true);
    judge_a_trial(0.03, 0.0, true);
    judge_a_trial(0.01, 0.0, false);
    judge_a_trial(0.0, 0.0, false);
    judge_a_trial(-0.30, 0.0, false);
    judge_a_trial(0.05, 0.04, false); /* two windows of 4 % noise: 5 % is none */
    judge_a_trial(0.10, 0.04, true);
}

/* A tenth, and twice what chance may have made of both windows: who has lost so much need not be seen any longer. */
static void test_a_loss_is_seen_early(void** state) {
    (void)state;
    static const struct {
        gpsti_tuner_state state;
        double items_per_s, noise, kept_noise;
        bool loses;
    } rows[] = {{GPSTI_TUNER_TRIAL, 895, 0, 0, true},       {GPSTI_TUNER_TRIAL, 905, 0, 0, false},
                {GPSTI_TUNER_TRIAL, 795, 0.05, 0, true},    {GPSTI_TUNER_TRIAL, 805, 0.05, 0, false},
                {GPSTI_TUNER_TRIAL, 795, 0.03, 0.02, true}, {GPSTI_TUNER_TRIAL, 805, 0.03, 0.02, false},
                {GPSTI_TUNER_TRIAL, 100, 0.5, 0, false},    {GPSTI_TUNER_BASE, 100, 0, 0, false},
                {GPSTI_TUNER_FROZEN, 100, 0, 0, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gpsti_tuner tuner;
        memset(&tuner, 0, sizeof tuner);
        tuner.state = rows[i].state;
        tuner.kept_rate = 1000.0;
        tuner.kept_window.noise = rows[i].kept_noise;
        const int64_t wall_ns = (int64_t)(20e9 / rows[i].items_per_s);
        if (gpsti_tuner_loses(&tuner, 20, wall_ns, rows[i].noise) != rows[i].loses)
            fail_msg("row %u", (unsigned)i);
    }
}

/* Under another setting what brought nothing may bring something; only the way back is known. */
static void test_a_win_opens_the_other_knobs(void** state) {
    (void)state;
    const machine* const m = machine_named("disk, scales to 8");
    uint64_t random = 1;
    gpsti_tuner tuner = tuner_of(m);
    gpsti_tuner_window window = window_of(m, &tuner.now, 16, &random);
    tuner.tried[GPST_KNOB_WRITES] = tuner.tried[GPST_KNOB_WORKERS] = 3;
    assert_true(gpsti_tuner_judge(&tuner, &window, 17)); /* 4 reads -> 8 */
    window = window_of(m, &tuner.now, 16, &random);
    assert_true(gpsti_tuner_judge(&tuner, &window, 33));
    assert_int_equal(tuner.kept.value[GPST_KNOB_READS], 8);
    assert_int_equal(tuner.tried[GPST_KNOB_WRITES], 0);
    assert_int_equal(tuner.tried[GPST_KNOB_WORKERS], 0);
    assert_int_equal(tuner.tried[GPST_KNOB_READS], 2); /* down */
}

static void test_fewer_workers_than_waiting_ones(void** state) {
    (void)state;
    const machine* const m = machine_named("too many workers");
    uint64_t random = 1;
    gpsti_tuner tuner = tuner_of(m);
    const gpsti_tuner_window window = window_of(m, &tuner.now, 16, &random);
    assert_true(gpsti_tuner_judge(&tuner, &window, 17));
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 6);
}

/* A GPU that is always busy may be so with launches: batches of two, then of four, with slots for them. */
static void test_a_busy_device_gets_batches(void** state) {
    (void)state;
    const machine* const m = machine_named("kernel");
    uint64_t random = 1;
    gpsti_tuner_budget budget = budget_of(m);
    gpsti_tuner tuner;
    budget.streams = true;
    budget.batch = 64;
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_int_equal(tuner.now.value[GPST_KNOB_BATCH], 1);
    assert_int_equal(tuner.most.value[GPST_KNOB_BATCH], tuner.most.value[GPST_KNOB_SLOTS] / 3);
    const uint32_t slots = tuner.now.value[GPST_KNOB_SLOTS];
    gpsti_tuner_window window = window_of(m, &tuner.now, 16, &random);
    window.noise = 0;
    window.busy_ns[GPST_RESOURCE_GPU] = window.wall_ns;
    window.wait_ns[GPST_RESOURCE_GPU] = 1000 * window.wall_ns;
    assert_true(gpsti_tuner_judge(&tuner, &window, 17));
    assert_int_equal(tuner.now.value[GPST_KNOB_BATCH], 2);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], slots + 4);
    window.wall_ns = window.busy_ns[GPST_RESOURCE_GPU] = window.wall_ns / 2;
    assert_true(gpsti_tuner_judge(&tuner, &window, 33));
    assert_int_equal(tuner.now.value[GPST_KNOB_BATCH], 4);
    assert_true(gpsti_tuner_judge(&tuner, &window, 49)); /* no faster: back to two, for good */
    assert_int_equal(tuner.now.value[GPST_KNOB_BATCH], 2);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
}

static void test_nothing_measured_is_nothing_judged(void** state) {
    (void)state;
    gpsti_tuner tuner = tuner_of(machine_named("kernel"));
    gpsti_tuner_window window;
    memset(&window, 0, sizeof window);
    assert_false(gpsti_tuner_judge(&tuner, &window, 1));
    window.n_items = 16;
    assert_false(gpsti_tuner_judge(&tuner, &window, 1));
    assert_int_equal(tuner.n_decisions, 0);
}

/* ---- freeze, drift ------------------------------------------------------------------------------------- */

/* After the freeze nothing moves while the clocks stay; when the disk becomes twice as slow, it looks again. */
static void test_drift_thaws(void** state) {
    (void)state;
    machine m = *machine_named("disk, scales to 8");
    uint64_t random = test_seed(32);
    gpsti_tuner tuner = tuner_of(&m);
    uint64_t items = run(&tuner, &m, 1000, &random);
    const gpst_settings settled = tuner.now;
    const uint32_t n_decisions = tuner.n_decisions;
    m.noise = 0.05;
    for (int i = 0; i < 200; i++) {
        const gpsti_tuner_window window = window_of(&m, &tuner.now, 64, &random);
        assert_false(gpsti_tuner_judge(&tuner, &window, items += 64));
    }
    assert_int_equal(tuner.n_decisions, n_decisions);
    assert_memory_equal(&tuner.now, &settled, sizeof settled);
    m.noise = 0.0;
    m.read *= 4.0;
    m.read_least *= 4.0;
    bool moved = false;
    for (int i = 0; i < 4 && !moved; i++) {
        const gpsti_tuner_window window = window_of(&m, &tuner.now, 64, &random);
        moved = gpsti_tuner_judge(&tuner, &window, items += 64);
        assert_int_equal(moved, i == 1); /* one window alone may be chance */
    }
    assert_true(strstr(tuner.decisions[n_decisions].reason, "drifted") != NULL);
    (void)run(&tuner, &m, items + 2000, &random);
    assert_true(best_period_ms(&m, &tuner) / period_ms(&m, &tuner.now) >= 0.95);
}

/* Frozen on "disk, scales to 8"; gives the window that it is then held against. */
static gpsti_tuner frozen_tuner(gpsti_tuner_window* reference) {
    const machine* const m = machine_named("disk, scales to 8");
    uint64_t random = 1;
    gpsti_tuner tuner = tuner_of(m);
    (void)run(&tuner, m, 1000, &random);
    *reference = window_of(m, &tuner.now, 64, &random);
    assert_false(gpsti_tuner_judge(&tuner, reference, 1000));
    return tuner;
}

/* Windows like this one until it looks again; 0: it never does. */
static int windows_until_thaw(gpsti_tuner* tuner, const gpsti_tuner_window* window) {
    const uint32_t n_decisions = tuner->n_decisions;
    for (int i = 1; i <= 10; i++) {
        (void)gpsti_tuner_judge(tuner, window, tuner->n_items + 64);
        if (tuner->n_decisions != n_decisions)
            return i;
    }
    return 0;
}

/* The rate alone, either way; a service that is a good part of the period; not one that is little, and not chance. */
static void test_what_is_drift(void** state) {
    (void)state;
    gpsti_tuner_window reference, window;
    gpsti_tuner tuner = frozen_tuner(&reference);
    assert_int_equal(windows_until_thaw(&tuner, &reference), 0);
    window = reference;
    window.wall_ns = reference.wall_ns * 13 / 10;
    tuner = frozen_tuner(&reference);
    assert_int_equal(windows_until_thaw(&tuner, &window), 2);
    window.noise = 0.06;
    tuner = frozen_tuner(&reference);
    assert_int_equal(windows_until_thaw(&tuner, &window), 0);
    window = reference;
    window.wall_ns = reference.wall_ns * 7 / 10;
    tuner = frozen_tuner(&reference);
    assert_int_equal(windows_until_thaw(&tuner, &window), 2);
    window = reference;
    window.service_ns[GPST_RESOURCE_DISK_OUT] = reference.wall_ns / 2; /* there was none */
    tuner = frozen_tuner(&reference);
    assert_int_equal(windows_until_thaw(&tuner, &window), 2);
    window.service_ns[GPST_RESOURCE_DISK_OUT] = reference.wall_ns / 10;
    tuner = frozen_tuner(&reference);
    assert_int_equal(windows_until_thaw(&tuner, &window), 0);
}

/* Frozen anew it is held against what it gives then, and twice as many windows are asked for. */
static void test_after_the_second_freeze(void** state) {
    (void)state;
    machine m = *machine_named("disk, scales to 8");
    uint64_t random = 1;
    gpsti_tuner_window reference;
    gpsti_tuner tuner = frozen_tuner(&reference);
    m.read *= 4.0;
    m.read_least *= 4.0;
    gpsti_tuner_window window = window_of(&m, &tuner.now, 64, &random);
    assert_int_equal(windows_until_thaw(&tuner, &window), 2);
    (void)run(&tuner, &m, 1000, &random);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    window = window_of(&m, &tuner.now, 64, &random);
    assert_false(gpsti_tuner_judge(&tuner, &window, 2000));
    m.read *= 4.0;
    m.read_least *= 4.0;
    window = window_of(&m, &tuner.now, 64, &random);
    assert_int_equal(windows_until_thaw(&tuner, &window), 4);
}

/* Clocks that never settle are believed later and later: few moves for many windows. */
static void test_hunting_is_bounded(void** state) {
    (void)state;
    machine m = *machine_named("disk, scales to 8");
    uint64_t random = test_seed(33), items = 0;
    gpsti_tuner tuner = tuner_of(&m);
    uint32_t moves = 0;
    for (int i = 0; i < 4000; i++) {
        m.cpu = (i / 20) % 2 ? 2.0 : 20.0;
        const gpsti_tuner_window window = window_of(&m, &tuner.now, 64, &random);
        moves += gpsti_tuner_judge(&tuner, &window, items += 64);
        assert_within(&tuner);
    }
    printf("%u moves, %u decisions in 4000 windows\n", moves, tuner.n_decisions);
    assert_true(tuner.n_decisions >= 3);
    assert_true(tuner.n_decisions < 30);
}

/* One window in two that differs is chance. */
static void test_drift_is_in_a_row(void** state) {
    (void)state;
    machine m = *machine_named("disk, scales to 8");
    uint64_t random = test_seed(35);
    gpsti_tuner tuner = tuner_of(&m);
    uint64_t items = run(&tuner, &m, 1000, &random);
    const uint32_t n_decisions = tuner.n_decisions;
    for (int i = 0; i < 40; i++) {
        m.read = i % 2 ? 11.7 : 60.0;
        const gpsti_tuner_window window = window_of(&m, &tuner.now, 64, &random);
        assert_false(gpsti_tuner_judge(&tuner, &window, items += 64));
    }
    assert_int_equal(tuner.n_decisions, n_decisions);
}

/* Reads at once that were ever tried, the fewest, of reads of so many bytes that take 3 ms in whatever company. */
static uint32_t fewest_reads(uint64_t bytes) {
    machine m = brief_machine(16);
    m.cpu = 0.02;
    m.read = 3.0;
    const gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    costs.read_bytes = bytes;
    gpsti_tuner_init(&tuner, &budget, &costs);
    uint32_t fewest = tuner.now.value[GPST_KNOB_READS];
    for (uint64_t n = 100; tuner.state != GPSTI_TUNER_FROZEN && n < 5000; n += 100) {
        gpsti_tuner_window window;
        memset(&window, 0, sizeof window);
        window.n_items = 100;
        window.wall_ns = (int64_t)(10 * MS);
        window.service_ns[GPST_RESOURCE_DISK_IN] = (int64_t)tuner.now.value[GPST_KNOB_READS] * window.wall_ns;
        (void)gpsti_tuner_judge(&tuner, &window, n);
        fewest = tuner.now.value[GPST_KNOB_READS] < fewest ? tuner.now.value[GPST_KNOB_READS] : fewest;
    }
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    return fewest;
}

/* A disk may like fewer reads at once; a network does not, and half of them would be half as fast meanwhile. */
static void test_far_reads_are_never_fewer(void** state) {
    (void)state;
    assert_int_equal(fewest_reads(65536), 64);
    assert_int_equal(fewest_reads(1000000), 16); /* that long for so many bytes: a disk, which has 32 to begin with */
}

/* ---- where nothing is to be moved ------------------------------------------------------------------------- */

static void freezes_at_once(gpsti_tuner* tuner, const gpsti_tuner_window* window, const char* says) {
    assert_false(gpsti_tuner_judge(tuner, window, 17));
    assert_int_equal(tuner->state, GPSTI_TUNER_FROZEN);
    assert_int_equal(tuner->n_decisions, 1);
    if (!strstr(tuner->decisions[0].reason, says))
        fail_msg("\"%s\" does not say \"%s\"", tuner->decisions[0].reason, says);
}

static void test_a_serial_stage_has_no_knob(void** state) {
    (void)state;
    const machine* const m = machine_named("serial sink");
    uint64_t random = 1;
    gpsti_tuner tuner = tuner_of(m);
    const gpsti_tuner_window window = window_of(m, &tuner.now, 16, &random);
    freezes_at_once(&tuner, &window, "one at a time");
}

static void test_busy_cores_want_no_more_workers(void** state) {
    (void)state;
    const machine* const m = machine_named("decode, 2 cores");
    uint64_t random = 1;
    gpsti_tuner_budget budget = budget_of(m);
    budget.workers = 4;
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, NULL);
    tuner.now.value[GPST_KNOB_WORKERS] = 2;
    const gpsti_tuner_window window = window_of(m, &tuner.now, 16, &random);
    freezes_at_once(&tuner, &window, "cpu-bound");
}

/* Slots are free all the time: more of them are no help, the source itself is slow. */
static void test_a_slow_source_has_no_knob(void** state) {
    (void)state;
    const machine* const m = machine_named("kernel");
    uint64_t random = 1;
    gpsti_tuner tuner = tuner_of(m);
    gpsti_tuner_window window = window_of(m, &tuner.now, 16, &random);
    window.wall_ns *= 10;
    window.starved_ns = 0;
    freezes_at_once(&tuner, &window, "nothing is full");
}

static void test_loaded_settings_are_frozen_until_drift(void** state) {
    (void)state;
    machine m = *machine_named("disk, scales to 8");
    uint64_t random = 1, items = 0;
    gpst_settings settings = GPST_ZERO;
    gpsti_tuner tuner = tuner_of(&m);
    settings.value[GPST_KNOB_READS] = 11;
    settings.value[GPST_KNOB_SLOTS] = 5000; /* of another machine: what is too much is cut */
    gpsti_tuner_load(&tuner, &settings);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 11);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 4);
    assert_within(&tuner);
    for (int i = 0; i < 20; i++) {
        const gpsti_tuner_window window = window_of(&m, &tuner.now, 64, &random);
        assert_false(gpsti_tuner_judge(&tuner, &window, items += 64));
    }
    m.cpu = 40.0;
    for (int i = 0; i < 8; i++) {
        const gpsti_tuner_window window = window_of(&m, &tuner.now, 64, &random);
        (void)gpsti_tuner_judge(&tuner, &window, items += 64);
    }
    assert_true(tuner.n_decisions >= 2);
}

/* More decisions than room: the first ones stay, and the last. */
static void test_decisions_are_bounded(void** state) {
    (void)state;
    gpsti_tuner tuner = tuner_of(machine_named("kernel"));
    for (uint32_t i = 0; i < 100; i++) {
        tuner.n_items = i;
        (void)gpsti_tuner_note(&tuner, GPST_KNOB_READS, i, i + 1);
    }
    assert_int_equal(tuner.n_decisions, 100);
    for (uint32_t i = 0; i < GPST_MAX_DECISIONS - 1; i++)
        assert_int_equal(tuner.decisions[i].item, i);
    assert_int_equal(tuner.decisions[GPST_MAX_DECISIONS - 1].item, 99);
}

/* ---- text ------------------------------------------------------------------------------------------------ */

static void test_settings_survive_text(void** state) {
    (void)state;
    uint64_t random = test_seed(34);
    for (int round = 0; round < 200; round++) {
        gpst_settings settings = GPST_ZERO, read;
        char text[256];
        memset(&read, 0xA5, sizeof read);
        for (int k = 2; k < (int)GPST_KNOB_COUNT; k++)
            settings.value[k] = test_random(&random) % 3 ? (uint32_t)(test_random(&random) % 99999) : 0;
        settings.value[GPST_KNOB_LOOP] = (uint32_t)(test_random(&random) % 4);
        settings.value[GPST_KNOB_ITEMS] = (uint32_t)(test_random(&random) % 3);
        assert_int_equal(gpst_settings_format(&settings, text, sizeof text), GPST_OK);
        assert_int_equal(gpst_settings_parse(text, &read), GPST_OK);
        assert_memory_equal(&read, &settings, sizeof read);
    }
}

static void test_settings_text(void** state) {
    (void)state;
    gpst_settings settings = GPST_ZERO;
    char text[256], little[20];
    settings.value[GPST_KNOB_LOOP] = (uint32_t)GPST_KNOB_LOOP + 1; /* plain-serial */
    settings.value[GPST_KNOB_WORKERS] = 2;
    settings.value[GPST_KNOB_READS] = 16;
    assert_int_equal(gpst_settings_format(&settings, text, sizeof text), GPST_OK);
    assert_string_equal(text, "loop=plain-serial\nworkers=2\nreads=16\n");
    assert_int_equal(gpst_settings_format(&settings, little, sizeof little), GPST_ERROR_OVERFLOW);
    assert_string_equal(little, "loop=plain-serial\nw");
    assert_int_equal(gpst_settings_format(&settings, text, 37), GPST_ERROR_OVERFLOW); /* 37 and the end */
    assert_int_equal(gpst_settings_format(&settings, text, 38), GPST_OK);
    assert_string_equal(text, "loop=plain-serial\nworkers=2\nreads=16\n");
    settings.value[GPST_KNOB_LOOP] = 4;
    assert_int_equal(gpst_settings_format(&settings, text, sizeof text), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_settings_format(NULL, text, sizeof text), GPST_ERROR_ARGUMENT);
    assert_int_equal(
        gpst_settings_parse("# found on a Monday\n reads=8\tslots=12# and\r\nloop=engine", &settings),
        GPST_OK);
    assert_int_equal(settings.value[GPST_KNOB_READS], 8);
    assert_int_equal(settings.value[GPST_KNOB_SLOTS], 12);
    assert_int_equal(settings.value[GPST_KNOB_LOOP], 1);
    assert_int_equal(settings.value[GPST_KNOB_WORKERS], 0);
    assert_int_equal(gpst_settings_parse("reads=8\r\nslots=3\r\n", &settings), GPST_OK);
    assert_int_equal(settings.value[GPST_KNOB_SLOTS], 3);
    assert_int_equal(gpst_settings_parse("items=whole loop=plain-inside", &settings), GPST_OK);
    assert_int_equal(settings.value[GPST_KNOB_ITEMS], GPST_ITEMS_WHOLE);
    assert_int_equal(gpst_settings_format(&settings, text, sizeof text), GPST_OK);
    assert_string_equal(text, "loop=plain-inside\nitems=whole\n");
    settings.value[GPST_KNOB_ITEMS] = GPST_ITEMS_WHOLE + 1;
    assert_int_equal(gpst_settings_format(&settings, text, sizeof text), GPST_ERROR_ARGUMENT);
}

static void test_bad_settings_are_named(void** state) {
    (void)state;
    static const struct {
        const char* text;
        const char* says;
    } bad[] = {
        {"readers=8", "line 1: \"readers\": no such knob"},
        {"reads=8\n\nslots=many", "line 3: \"slots=many\""},
        {"reads=0", "line 1: \"reads=0\""},
        {"reads=", "reads="},
        {"reads", "\"reads\""},
        {"reads=123456", "from 1 to 99999"},
        {"reads=-1", "reads=-1"},
        {"loop=fast", "plain-serial"},
        {"items=2", "items=staged or whole is wanted"},
        {"none=1", "no such knob"},
        {"=1", "no such knob"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        gpst_settings settings;
        memset(&settings, 0xA5, sizeof settings);
        const gpst_settings before = settings;
        assert_int_equal(gpst_settings_parse(bad[i].text, &settings), GPST_ERROR_FORMAT);
        if (!strstr(gpst_last_reason(), bad[i].says))
            fail_msg("%s: %s", bad[i].text, gpst_last_reason());
        assert_memory_equal(&settings, &before, sizeof before);
    }
    gpst_settings settings;
    assert_int_equal(gpst_settings_parse(NULL, &settings), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_settings_parse("", NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_settings_parse("", &settings), GPST_OK);
    assert_string_equal(gpst_knob_name((gpst_knob)77), "unknown");
    assert_string_equal(gpst_knob_name(GPST_KNOB_NONE), "none");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_converges),
        cmocka_unit_test(test_bottlenecks),
        cmocka_unit_test(test_what_pays_in_full_goes_far),
        cmocka_unit_test(test_a_win_is_kept_and_a_loss_taken_back),
        cmocka_unit_test(test_a_loss_is_seen_early),
        cmocka_unit_test(test_a_win_opens_the_other_knobs),
        cmocka_unit_test(test_fewer_workers_than_waiting_ones),
        cmocka_unit_test(test_nothing_measured_is_nothing_judged),
        cmocka_unit_test(test_drift_thaws),
        cmocka_unit_test(test_what_is_drift),
        cmocka_unit_test(test_after_the_second_freeze),
        cmocka_unit_test(test_hunting_is_bounded),
        cmocka_unit_test(test_drift_is_in_a_row),
        cmocka_unit_test(test_far_reads_are_never_fewer),
        cmocka_unit_test(test_a_serial_stage_has_no_knob),
        cmocka_unit_test(test_busy_cores_want_no_more_workers),
        cmocka_unit_test(test_a_slow_source_has_no_knob),
        cmocka_unit_test(test_a_busy_device_gets_batches),
        cmocka_unit_test(test_loaded_settings_are_frozen_until_drift),
        cmocka_unit_test(test_decisions_are_bounded),
        cmocka_unit_test(test_settings_survive_text),
        cmocka_unit_test(test_settings_text),
        cmocka_unit_test(test_bad_settings_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
