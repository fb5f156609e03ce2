/* tests/test_tuner.c -- the tuner's policy: windows of clocks in, values of knobs and lines about them out. A window is
   a row of numbers here, so that nothing depends on the machine that runs the test. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/tuning/tuner_internal.h"
#endif

#define MS ((int64_t)1000000)

/* ---- a budget, a window ------------------------------------------------------------------------------ */

/* Four cores, files in and out, a device. */
static gpsti_tuner_budget budget_of(gpst_preset preset, bool syncs) {
    gpsti_tuner_budget budget = GPST_ZERO;
    budget.cores = budget.workers = 4;
    budget.reads = budget.writes = budget.streams = true;
    budget.syncs = syncs;
    budget.outputs = 1;
    budget.batch = 64;
    budget.inside = 4;
    budget.preset = preset;
    return budget;
}

static gpsti_tuner tuner_of(const gpsti_tuner_budget* budget) {
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, budget);
    return tuner;
}

/* 100 items in 100 ms, and noise of 0.1 %. */
static gpsti_tuner_window window_at(double items_per_s) {
    gpsti_tuner_window window = GPST_ZERO;
    window.n_items = 100;
    window.wall_ns = (int64_t)(100.0 * 1e9 / items_per_s);
    window.noise = 0.001;
    window.n_left = 100000;
    return window;
}

/* Of its time every one of so many at once is at work. */
static void fill(gpsti_tuner_window* window, gpst_resource resource, double n_at_once) {
    window->service_ns[resource] = (int64_t)(n_at_once * (double)window->wall_ns);
    if (resource >= GPST_RESOURCE_H2D && resource <= GPST_RESOURCE_D2H)
        window->busy_ns[resource] = (int64_t)((n_at_once < 1.0 ? n_at_once : 1.0) * (double)window->wall_ns);
}

static bool judge(gpsti_tuner* tuner, const gpsti_tuner_window* window) {
    const bool moved = gpsti_tuner_judge(tuner, window, tuner->n_items + window->n_items);
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
        assert_in_range(tuner->now.value[k], tuner->least.value[k], tuner->most.value[k]);
    return moved;
}

static const gpst_tuner_decision* last_line(const gpsti_tuner* tuner) {
    return &tuner->decisions[tuner->n_decisions - 1];
}

static void check_values(const gpsti_tuner* tuner, uint32_t reads, uint32_t writes, uint32_t streams, uint32_t slots) {
    assert_int_equal(tuner->now.value[GPST_KNOB_READS], reads);
    assert_int_equal(tuner->now.value[GPST_KNOB_WRITES], writes);
    assert_int_equal(tuner->now.value[GPST_KNOB_STREAMS], streams);
    assert_int_equal(tuner->now.value[GPST_KNOB_SLOTS], slots);
}

/* Past the model: a window says what the setting gives, and what is tried next. */
static gpsti_tuner tuner_at(double items_per_s, gpst_resource full, double n_at_once) {
    const gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
    gpsti_tuner tuner = tuner_of(&budget);
    gpsti_tuner_window window = window_at(items_per_s);
    window.cpu_ns = 3 * window.wall_ns; /* of four cores */
    fill(&window, full, n_at_once);
    tuner.state = GPSTI_TUNER_BASE;
    (void)judge(&tuner, &window);
    return tuner;
}

/* ---- where the knobs start ------------------------------------------------------------------------------ */

static void test_start(void** state) {
    (void)state;
    static const struct {
        gpst_preset preset;
        bool syncs;
        uint32_t outputs, writes, slots, most_slots;
    } cases[] = {{GPST_PRESET_DEFAULT, false, 1, 4, 4 + 4 + 3 + 2, 100},
                 {GPST_PRESET_LATENCY, false, 1, 4, 4 + 4 + 3, 20},
                 {GPST_PRESET_BALANCED, true, 1, 16, 4 + 4 + 16 + 3 + 2, 100},
                 {GPST_PRESET_THROUGHPUT, true, 8, 16, 4 + 4 + 2 + 3 + 2, 200},
                 {GPST_PRESET_LATENCY, true, 1, 16, 20, 20}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpsti_tuner_budget budget = budget_of(cases[i].preset, cases[i].syncs);
        budget.outputs = cases[i].outputs;
        const gpsti_tuner tuner = tuner_of(&budget);
        check_values(&tuner, 4, cases[i].writes, 3, cases[i].slots);
        assert_int_equal(tuner.most.value[GPST_KNOB_SLOTS], cases[i].most_slots);
        assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 4);
        assert_int_equal(tuner.now.value[GPST_KNOB_LOOP], GPST_RUN_ENGINE);
        assert_int_equal(tuner.now.value[GPST_KNOB_INSIDE], 4);
        assert_int_equal(tuner.now.value[GPST_KNOB_BATCH], 64);
        assert_int_equal(tuner.n_decisions, 1);
    }
    const gpsti_tuner_budget budget = budget_of(GPST_PRESET_DEFAULT, false);
    const gpsti_tuner tuner = tuner_of(&budget);
    assert_string_equal(tuner.decisions[0].reason,
                        "starts with workers=4 slots=13 reads=4 writes=4 streams=3 batch=64");
}

/* What a pipeline does not have no knob moves; and each worker has an item, whatever the preset. */
static void test_what_is_not_there(void** state) {
    (void)state;
    gpsti_tuner_budget budget = GPST_ZERO;
    budget.cores = budget.workers = 150;
    budget.preset = GPST_PRESET_LATENCY;
    const gpsti_tuner tuner = tuner_of(&budget);
    check_values(&tuner, 0, 0, 0, 150);
    assert_int_equal(tuner.most.value[GPST_KNOB_READS], 0);
    assert_int_equal(tuner.most.value[GPST_KNOB_BATCH], 0);
    assert_int_equal(tuner.most.value[GPST_KNOB_INSIDE], 1);
    assert_int_equal(tuner.most.value[GPST_KNOB_SLOTS], 154);
}

static void test_fixed_values_stay(void** state) {
    (void)state;
    gpsti_tuner_budget budget = budget_of(GPST_PRESET_LATENCY, false);
    budget.fixed.value[GPST_KNOB_READS] = 1;
    budget.fixed.value[GPST_KNOB_SLOTS] = 300;
    gpsti_tuner tuner = tuner_of(&budget);
    check_values(&tuner, 1, 4, 3, 300);
    for (int i = 0; i < 6; i++) {
        gpsti_tuner_window window = window_at(1000.0);
        fill(&window, GPST_RESOURCE_DISK_IN, 1.0);
        (void)judge(&tuner, &window);
    }
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 1);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 300);
}

/* ---- after the first window: Little's law ------------------------------------------------------------------ */

/* An item takes 1 ms of the four cores, a read 20 ms: 21 reads in flight keep up, each in a slot. Once only. */
static void test_little_s_law(void** state) {
    (void)state;
    const gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
    gpsti_tuner tuner = tuner_of(&budget);
    gpsti_tuner_window window = window_at(200.0);
    window.cpu_ns = 100 * 4 * MS;
    window.service_ns[GPST_RESOURCE_DISK_IN] = 100 * 20 * MS;
    window.service_ns[GPST_RESOURCE_DISK_OUT] = 100 * 2 * MS;
    assert_true(judge(&tuner, &window));
    check_values(&tuner, 21, 4, 3, 4 + 21 + 3 + 2); /* three writes would do, but never fewer than there are */
    assert_string_equal(last_line(&tuner)->reason,
                        "by the first window: workers=4 slots=30 reads=21 writes=4 streams=3 batch=64");
    assert_int_equal(last_line(&tuner)->item, 100);
    assert_int_equal(tuner.state, GPSTI_TUNER_BASE);
    window.service_ns[GPST_RESOURCE_DISK_IN] = 100 * 60 * MS;
    (void)judge(&tuner, &window);
    assert_int_not_equal(tuner.now.value[GPST_KNOB_READS], 61); /* from then on it climbs */
}

/* Of a device that is slower than the cores; synced writes in slots of their own; and never beyond what may be. */
static void test_little_s_law_of_others(void** state) {
    (void)state;
    const gpsti_tuner_budget budget = budget_of(GPST_PRESET_THROUGHPUT, true);
    gpsti_tuner tuner = tuner_of(&budget);
    gpsti_tuner_window window = window_at(200.0);
    window.cpu_ns = 100 * 4 * MS;
    window.busy_ns[GPST_RESOURCE_GPU] = 100 * 2 * MS;
    window.service_ns[GPST_RESOURCE_DISK_IN] = 100 * 20 * MS;
    window.service_ns[GPST_RESOURCE_DISK_OUT] = 100 * 500 * MS;
    assert_true(judge(&tuner, &window));
    check_values(&tuner, 11, 64, 3, 4 + 11 + 64 + 3 + 2);
}

/* A window that says nothing new is the base at once. */
static void test_nothing_to_model(void** state) {
    (void)state;
    const gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
    gpsti_tuner tuner = tuner_of(&budget);
    gpsti_tuner_window window = window_at(1000.0);
    window.cpu_ns = 4 * window.wall_ns;
    assert_false(judge(&tuner, &window));
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    assert_string_equal(last_line(&tuner)->reason, "frozen: cpu-bound, and no knob that serves it brings more");
    window.n_items = 0; /* and nothing measured is nothing judged */
    assert_false(judge(&tuner, &window));
    window = window_at(1000.0);
    window.wall_ns = 0;
    assert_false(judge(&tuner, &window));
    assert_int_equal(tuner.n_decisions, 2);
}

/* Items that the JPEG engines hold have slots of their own, from when the engines are open; never beyond what is
   allowed, and not where the user fixed the slots or settings brought them. */
static void test_engines_hold_items(void** state) {
    (void)state;
    gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
    gpsti_tuner tuner = tuner_at(1000.0, GPST_RESOURCE_DISK_IN, 3.8); /* in a trial */
    const uint32_t before = tuner.now.value[GPST_KNOB_SLOTS];
    assert_true(gpsti_tuner_hold(&tuner, 28));
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], before + 28);
    assert_int_equal(tuner.state, GPSTI_TUNER_START);
    assert_non_null(strstr(last_line(&tuner)->reason, "with a device's JPEG engines: workers="));
    assert_false(gpsti_tuner_hold(&tuner, 28));
    const gpst_settings found = tuner.now;
    assert_true(gpsti_tuner_hold(&tuner, 1000));
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 100);
    tuner = tuner_of(&budget);
    gpsti_tuner_load(&tuner, &found);
    assert_false(gpsti_tuner_hold(&tuner, 28));
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], found.value[GPST_KNOB_SLOTS]);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    budget.fixed.value[GPST_KNOB_SLOTS] = 7;
    tuner = tuner_of(&budget);
    assert_false(gpsti_tuner_hold(&tuner, 28));
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 7);
}

/* ---- moves ---------------------------------------------------------------------------------------------------- */

/* What is full doubles, with slots for what comes more; cores and a device's engines have no knob. */
static void test_the_fullest_doubles(void** state) {
    (void)state;
    static const struct {
        gpst_resource full;
        double n_at_once;
        gpst_knob knob;
        uint32_t after, slots;
    } cases[] = {{GPST_RESOURCE_DISK_IN, 3.8, GPST_KNOB_READS, 8, 17},
                 {GPST_RESOURCE_DISK_OUT, 3.8, GPST_KNOB_WRITES, 8, 17}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const gpsti_tuner tuner = tuner_at(1000.0, cases[i].full, cases[i].n_at_once);
        assert_int_equal(tuner.state, GPSTI_TUNER_TRIAL);
        assert_int_equal(tuner.knob, cases[i].knob);
        assert_int_equal(tuner.now.value[cases[i].knob], cases[i].after);
        assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], cases[i].slots);
    }
    const gpsti_tuner device = tuner_at(1000.0, GPST_RESOURCE_GPU, 0.95);
    assert_int_equal(device.state, GPSTI_TUNER_FROZEN);
    assert_string_equal(last_line(&device)->reason, "frozen: gpu-bound, and no knob that serves it brings more");
}

/* Slots are tried for no more memory than 256 MiB, which a driver may have to lock page by page. */
static void test_slots_have_a_price(void** state) {
    (void)state;
    for (int dear = 0; dear < 2; dear++) {
        const gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
        gpsti_tuner tuner = tuner_of(&budget);
        gpsti_tuner_window window = window_at(1000.0);
        window.cpu_ns = window.wall_ns; /* a quarter */
        window.slots_full_ns = window.wall_ns;
        window.item_bytes = ((uint64_t)256 << 20) / 13 + (dear ? 1 : 0);
        tuner.state = GPSTI_TUNER_BASE;
        assert_int_equal(judge(&tuner, &window), !dear);
        assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], dear ? 13 : 26);
    }
}

/* Nothing is full: items wait for one another, in streams that are all taken or for a slot. */
static void test_what_waits_doubles(void** state) {
    (void)state;
    for (int starved = 0; starved < 2; starved++) {
        const gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
        gpsti_tuner tuner = tuner_of(&budget);
        gpsti_tuner_window window = window_at(1000.0);
        window.cpu_ns = window.wall_ns; /* a quarter */
        window.service_ns[GPST_RESOURCE_GPU] = starved ? 0 : 3 * window.wall_ns;
        window.busy_ns[GPST_RESOURCE_GPU] = window.wall_ns / 2;
        window.slots_full_ns = starved ? window.wall_ns / 2 : 0;
        assert_true(judge(&tuner, &window));
        check_values(&tuner, 4, 4, starved ? 3 : 6, starved ? 26 : 16);
    }
    const gpsti_tuner idle = tuner_at(1000.0, GPST_RESOURCE_NONE, 0.0);
    assert_int_equal(idle.state, GPSTI_TUNER_FROZEN);
    assert_string_equal(last_line(&idle)->reason, "frozen: nothing is full, and more items in flight bring nothing");
}

typedef struct trial_case {
    double items_per_s, noise; /* of the trial's window */
    bool won;
    const char* reason;
} trial_case;

/* From 1000 items/s: 2 % and the noise of both windows are no gain. */
static const trial_case trial_cases[] = {
    {1021.0, 0.001, true, "kept: +2 %"},           {1019.0, 0.001, false, "taken back: 8 brought nothing"},
    {1900.0, 0.001, true, "kept: +90 %"},          {1090.0, 0.100, false, "taken back: 8 brought nothing"},
    {1110.0, 0.100, true, "kept: +11 %"},          {990.0, 0.001, false, "taken back: 8 brought nothing"},
    {970.0, 0.001, false, "taken back: 8 lost"},
};

static void test_a_gain_is_kept(void** state) {
    (void)state;
    for (size_t i = 0; i < sizeof trial_cases / sizeof trial_cases[0]; i++) {
        const trial_case* const c = &trial_cases[i];
        gpsti_tuner tuner = tuner_at(1000.0, GPST_RESOURCE_DISK_IN, 3.8);
        const uint32_t line = tuner.n_decisions;
        gpsti_tuner_window window = window_at(c->items_per_s);
        window.noise = c->noise;
        fill(&window, GPST_RESOURCE_DISK_IN, 1.0); /* and now nothing is full */
        assert_true(judge(&tuner, &window) == !c->won);
        check_values(&tuner, c->won ? 8 : 4, 4, 3, c->won ? 17 : 13);
        const gpst_tuner_decision* const decision = &tuner.decisions[line];
        assert_int_equal(decision->knob, GPST_KNOB_READS);
        assert_int_equal(decision->before, 4);
        assert_int_equal(decision->after, c->won ? 8 : 4);
        assert_int_equal(decision->item, 200);
        assert_float_equal(decision->items_per_s_before, 1000.0, 0.01);
        assert_float_equal(decision->items_per_s_after, c->items_per_s, 0.01);
        assert_string_equal(decision->reason, c->reason);
    }
}

/* As long as it pays, up to what may be. */
static void test_gains_go_far(void** state) {
    (void)state;
    gpsti_tuner tuner = tuner_at(1000.0, GPST_RESOURCE_DISK_IN, 4.0);
    for (uint32_t reads = 8; reads <= 64; reads *= 2) {
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], reads);
        gpsti_tuner_window window = window_at(250.0 * reads);
        fill(&window, GPST_RESOURCE_DISK_IN, reads);
        (void)judge(&tuner, &window);
    }
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 64);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    assert_string_equal(last_line(&tuner)->reason, "frozen: disk_in-bound, and no knob that serves it brings more");
    assert_float_equal(last_line(&tuner)->items_per_s_after, 16000.0, 1.0);
}

/* Two in a row that bring nothing: frozen, with what was kept. */
static void test_two_failures_freeze(void** state) {
    (void)state;
    const gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
    gpsti_tuner tuner = tuner_of(&budget);
    gpsti_tuner_window window = window_at(1000.0);
    window.cpu_ns = window.wall_ns;
    window.service_ns[GPST_RESOURCE_GPU] = 3 * window.wall_ns; /* streams, then slots, then no more */
    window.slots_full_ns = window.wall_ns;
    tuner.state = GPSTI_TUNER_BASE;
    assert_true(judge(&tuner, &window));
    check_values(&tuner, 4, 4, 6, 16);
    assert_true(judge(&tuner, &window));
    check_values(&tuner, 4, 4, 3, 26);
    assert_true(judge(&tuner, &window));
    check_values(&tuner, 4, 4, 3, 13);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    assert_string_equal(last_line(&tuner)->reason, "frozen: nothing is full, and more items in flight bring nothing");
    assert_int_equal(tuner.n_decisions, 1 + 2 + 1);
}

/* A trial would not be over before the run is. */
static void test_too_few_items_are_left(void** state) {
    (void)state;
    for (uint64_t n_left = 0; n_left < 200; n_left += 99) { /* 0: nobody knows */
        const gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
        gpsti_tuner tuner = tuner_of(&budget);
        gpsti_tuner_window window = window_at(1000.0);
        window.cpu_ns = 3 * window.wall_ns;
        window.n_left = n_left;
        fill(&window, GPST_RESOURCE_DISK_OUT, 3.8);
        tuner.state = GPSTI_TUNER_BASE;
        (void)judge(&tuner, &window);
        assert_int_equal(tuner.state, n_left == 99 ? GPSTI_TUNER_FROZEN : GPSTI_TUNER_TRIAL);
        if (n_left == 99)
            assert_string_equal(last_line(&tuner)->reason, "frozen: too few items are left to try more");
    }
}

/* ---- frozen ----------------------------------------------------------------------------------------------------- */

static gpsti_tuner frozen_at(double items_per_s) {
    const gpsti_tuner tuner = tuner_at(items_per_s, GPST_RESOURCE_NONE, 0.0);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    return tuner;
}

/* Two windows in a row that are 20 % off, beyond their noise, thaw; what brought nothing then may do so now. */
static void test_drift_thaws(void** state) {
    (void)state;
    static const struct {
        double rates[3], noise;
        bool thaws;
    } cases[] = {{{790.0, 790.0}, 0.001, true},          {{1210.0, 1210.0}, 0.001, true},
                 {{1190.0, 1190.0}, 0.001, false},       {{810.0, 810.0}, 0.001, false},
                 {{790.0, 1000.0, 790.0}, 0.001, false}, {{790.0, 1210.0}, 0.001, true},
                 {{700.0, 700.0}, 0.060, false},         {{650.0, 650.0}, 0.060, true}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        gpsti_tuner tuner = frozen_at(1000.0);
        const uint32_t n_lines = tuner.n_decisions;
        tuner.tried[GPST_KNOB_READS] = true;
        for (int w = 0; w < 3 && cases[i].rates[w] > 0.0; w++) {
            gpsti_tuner_window window = window_at(cases[i].rates[w]);
            window.noise = cases[i].noise;
            fill(&window, GPST_RESOURCE_DISK_IN, 3.8);
            (void)judge(&tuner, &window);
        }
        if (!cases[i].thaws) {
            assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
            assert_int_equal(tuner.n_decisions, n_lines);
            continue;
        }
        assert_string_equal(tuner.decisions[n_lines].reason, "looks again: the clocks have drifted");
        assert_float_equal(tuner.decisions[n_lines].items_per_s_before, 1000.0, 0.01);
        assert_int_equal(tuner.state, GPSTI_TUNER_TRIAL);
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], 8);
    }
}

/* Settings of a run before are where it starts, within what is allowed here; frozen until that drifts. */
static void test_loaded_settings(void** state) {
    (void)state;
    const gpsti_tuner_budget budget = budget_of(GPST_PRESET_BALANCED, false);
    gpsti_tuner tuner = tuner_of(&budget);
    gpst_settings given = GPST_ZERO;
    given.value[GPST_KNOB_LOOP] = GPST_RUN_PLAIN_SERIAL; /* is run, not loaded */
    given.value[GPST_KNOB_WORKERS] = 99;
    given.value[GPST_KNOB_READS] = 7;
    gpsti_tuner_load(&tuner, &given);
    check_values(&tuner, 7, 4, 3, 4 + 7 + 3 + 2); /* by what was given */
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 4);
    assert_int_equal(tuner.now.value[GPST_KNOB_LOOP], GPST_RUN_ENGINE);
    assert_int_equal(tuner.n_decisions, 1);
    assert_string_equal(tuner.decisions[0].reason, "as given: workers=4 slots=16 reads=7 writes=4 streams=3 batch=64");
    given.value[GPST_KNOB_SLOTS] = 9;
    gpsti_tuner_load(&tuner, &given);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 9);
    gpsti_tuner_window window = window_at(1000.0);
    fill(&window, GPST_RESOURCE_DISK_IN, 7.0);
    for (int w = 0; w < 3; w++)
        assert_false(judge(&tuner, &window));
    window = window_at(500.0);
    fill(&window, GPST_RESOURCE_DISK_IN, 7.0);
    assert_false(judge(&tuner, &window));
    assert_true(judge(&tuner, &window));
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 14);
}

/* Clocks that drift for ever: more lines than there is room for. The first ones stay, and the last. */
static void test_decisions_are_bounded(void** state) {
    (void)state;
    gpsti_tuner tuner = frozen_at(1000.0);
    for (int w = 0; w < 400; w++) {
        gpsti_tuner_window window = window_at(w / 4 % 2 ? 1000.0 : 2000.0);
        fill(&window, GPST_RESOURCE_DISK_IN, 3.9);
        (void)judge(&tuner, &window);
    }
    assert_true(tuner.n_decisions > 2 * GPST_MAX_DECISIONS);
    for (uint32_t i = 1; i < GPST_MAX_DECISIONS; i++)
        assert_true(tuner.decisions[i].item >= tuner.decisions[i - 1].item);
    assert_true(tuner.decisions[GPST_MAX_DECISIONS - 1].item > 30000);
    assert_true(tuner.decisions[GPST_MAX_DECISIONS - 2].item < 20000);
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
        {"items=whole", "no such knob"},
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
        cmocka_unit_test(test_start),
        cmocka_unit_test(test_what_is_not_there),
        cmocka_unit_test(test_fixed_values_stay),
        cmocka_unit_test(test_little_s_law),
        cmocka_unit_test(test_little_s_law_of_others),
        cmocka_unit_test(test_nothing_to_model),
        cmocka_unit_test(test_engines_hold_items),
        cmocka_unit_test(test_the_fullest_doubles),
        cmocka_unit_test(test_slots_have_a_price),
        cmocka_unit_test(test_what_waits_doubles),
        cmocka_unit_test(test_a_gain_is_kept),
        cmocka_unit_test(test_gains_go_far),
        cmocka_unit_test(test_two_failures_freeze),
        cmocka_unit_test(test_too_few_items_are_left),
        cmocka_unit_test(test_drift_thaws),
        cmocka_unit_test(test_loaded_settings),
        cmocka_unit_test(test_decisions_are_bounded),
        cmocka_unit_test(test_settings_survive_text),
        cmocka_unit_test(test_settings_text),
        cmocka_unit_test(test_bad_settings_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
