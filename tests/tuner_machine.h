/* tests/tuner_machine.h -- machines by formula, for tests of the tuner's policy: a handful of numbers, and from them the
   throughput under any setting and what the engine's clocks would say. */
#ifndef GPST_TEST_TUNER_MACHINE_H
#define GPST_TEST_TUNER_MACHINE_H

#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/tuning/tuner_internal.h"
#endif

#define MS 1000000.0

/* ---- a machine by formula ------------------------------------------------------------------ */

typedef struct machine {
    const char* name;
    uint32_t cores, workers;
    double cpu, blocked;         /* ms an item of CPU time in stages, and of waiting for something in them */
    double read, read_least;     /* ms a read takes alone; ms an item when the disk does nothing else */
    double read_crowd;           /* what every further read in flight adds to read_least: a disk that seeks */
    double h2d, gpu, d2h, delay; /* ms of the device's engines; ms of delay around them */
    double write, write_least;
    double serial; /* a stage that serves one at a time */
    double noise;  /* of a window's rate */
    gpst_preset preset;
    gpst_resource bound; /* what bounds it at its best */
} machine;

static inline double larger(double a, double b) { return a > b ? a : b; }
static inline double smaller(double a, double b) { return a < b ? a : b; }

static inline double device_ms(const machine* m) { return m->h2d + m->gpu + m->d2h + m->delay; }

/* Milliseconds an item that each resource allows under a setting; NONE: what order and slots allow. */
static inline void limits_ms(const machine* m, const gpst_settings* s, double* out) {
    const double reads = s->value[GPST_KNOB_READS], writes = s->value[GPST_KNOB_WRITES];
    const double workers = s->value[GPST_KNOB_WORKERS], slots = s->value[GPST_KNOB_SLOTS];
    const double alone = m->read + m->cpu + m->blocked + device_ms(m) + m->write + m->serial;
    memset(out, 0, GPST_RESOURCE_COUNT * sizeof *out);
    out[GPST_RESOURCE_NONE] = larger(m->serial, alone / slots);
    if (device_ms(m) > 0.0)
        out[GPST_RESOURCE_NONE] = larger(out[GPST_RESOURCE_NONE], device_ms(m) / s->value[GPST_KNOB_STREAMS]);
    if (m->read > 0.0)
        out[GPST_RESOURCE_DISK_IN] = larger(m->read / reads, m->read_least + m->read_crowd * (reads - 1.0));
    out[GPST_RESOURCE_CPU] = larger((m->cpu + m->blocked) / workers, m->cpu / m->cores);
    out[GPST_RESOURCE_H2D] = m->h2d;
    out[GPST_RESOURCE_GPU] = m->gpu;
    out[GPST_RESOURCE_D2H] = m->d2h;
    if (m->write > 0.0)
        out[GPST_RESOURCE_DISK_OUT] = larger(m->write / writes, m->write_least);
}

static inline int slowest_of(const machine* m, const gpst_settings* s, double* period) {
    double limits[GPST_RESOURCE_COUNT];
    int slowest = 0;
    limits_ms(m, s, limits);
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++)
        slowest = limits[r] > limits[slowest] ? r : slowest;
    *period = limits[slowest];
    return slowest;
}

static inline double period_ms(const machine* m, const gpst_settings* s) {
    double period;
    (void)slowest_of(m, s, &period);
    return period;
}

static inline gpsti_tuner_budget budget_of(const machine* m) {
    gpsti_tuner_budget budget;
    memset(&budget, 0, sizeof budget);
    budget.cores = m->cores;
    budget.workers = m->workers;
    budget.reads = m->read > 0.0;
    budget.writes = m->write > 0.0;
    budget.streams = device_ms(m) > 0.0;
    budget.inside = !budget.streams;
    budget.preset = m->preset;
    return budget;
}

static inline gpsti_tuner_costs costs_of(const machine* m) {
    gpsti_tuner_costs costs;
    memset(&costs, 0, sizeof costs);
    costs.service_ns[GPST_RESOURCE_DISK_IN] = (int64_t)(m->read * MS);
    costs.service_ns[GPST_RESOURCE_CPU] = (int64_t)((m->cpu + m->blocked) * MS);
    costs.service_ns[GPST_RESOURCE_H2D] = (int64_t)(m->h2d * MS);
    costs.service_ns[GPST_RESOURCE_GPU] = (int64_t)(m->gpu * MS);
    costs.service_ns[GPST_RESOURCE_D2H] = (int64_t)(m->d2h * MS);
    costs.service_ns[GPST_RESOURCE_DISK_OUT] = (int64_t)(m->write * MS);
    return costs;
}

static inline gpsti_tuner tuner_of(const machine* m) {
    const gpsti_tuner_budget budget = budget_of(m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, NULL);
    return tuner;
}

/* Summed service of a disk: one that is held up by its own speed has everything in flight waiting on it. */
static inline double disk_service(double alone, double least, double in_flight, double period, double n) {
    const double held_up = in_flight * period * n;
    return alone > 0.0 && least >= period * 0.99 ? held_up : smaller(alone * n, held_up);
}

/* What the engine's clocks would say of n items. */
static inline gpsti_tuner_window window_of(const machine* m, const gpst_settings* s, uint64_t n_items,
                                    uint64_t* random) {
    const double chance = (double)(test_random(random) >> 11) / 9007199254740992.0 * 2.0 - 1.0;
    const double reads = s->value[GPST_KNOB_READS], writes = s->value[GPST_KNOB_WRITES];
    const double n = (double)n_items * MS;
    double period;
    gpsti_tuner_window w;
    memset(&w, 0, sizeof w);
    const int slowest = slowest_of(m, s, &period);
    w.n_items = n_items;
    w.wall_ns = (int64_t)(period * (1.0 + m->noise * chance) * n);
    w.noise = m->noise;
    w.service_ns[GPST_RESOURCE_DISK_IN] =
        (int64_t)disk_service(m->read, m->read_least + m->read_crowd * (reads - 1.0), reads, period, n);
    w.service_ns[GPST_RESOURCE_DISK_OUT] = (int64_t)disk_service(m->write, m->write_least, writes, period, n);
    w.service_ns[GPST_RESOURCE_CPU] = (int64_t)((m->cpu + m->blocked) * n);
    w.service_ns[GPST_RESOURCE_H2D] = (int64_t)((m->h2d + m->delay) * n);
    w.service_ns[GPST_RESOURCE_GPU] = w.busy_ns[GPST_RESOURCE_GPU] = (int64_t)(m->gpu * n);
    w.service_ns[GPST_RESOURCE_D2H] = w.busy_ns[GPST_RESOURCE_D2H] = (int64_t)(m->d2h * n);
    w.busy_ns[GPST_RESOURCE_H2D] = (int64_t)(m->h2d * n);
    w.cpu_ns = (int64_t)(m->cpu * n);
    w.serial_ns = (int64_t)(m->serial * n);
    w.wait_ns[slowest] += w.wall_ns; /* things pile up before it */
    w.starved_ns = w.wall_ns;
    return w;
}

/* ---- running the policy on one ------------------------------------------------------------------ */

static inline void assert_within(const gpsti_tuner* tuner) {
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++) {
        assert_true(tuner->now.value[k] >= tuner->least.value[k]);
        assert_true(tuner->now.value[k] <= tuner->most.value[k]);
    }
    assert_true(tuner->now.value[GPST_KNOB_WORKERS] <= tuner->budget.workers);
}

/* Windows as the engine takes them: after a change what was in flight leaves first. Ends frozen; gives the items. */
static inline uint64_t run(gpsti_tuner* tuner, const machine* m, uint64_t most_items, uint64_t* random) {
    uint64_t items = 1;
    while (tuner->state != GPSTI_TUNER_FROZEN && items < most_items) {
        const gpsti_tuner_window window = window_of(m, &tuner->now, 16, random);
        items += 16;
        if (gpsti_tuner_judge(tuner, &window, items))
            items += tuner->now.value[GPST_KNOB_SLOTS];
        assert_within(tuner);
    }
    return items;
}

static inline void print_decisions(const gpsti_tuner* tuner) {
    const uint32_t n = tuner->n_decisions < GPST_MAX_DECISIONS ? tuner->n_decisions : GPST_MAX_DECISIONS;
    for (uint32_t i = 0; i < n; i++) {
        const gpst_tuner_decision* const d = &tuner->decisions[i];
        printf("    item %4llu %-8s %3u -> %3u  %8.1f -> %8.1f items/s  %s\n", (unsigned long long)d->item,
               gpst_knob_name(d->knob), d->before, d->after, d->items_per_s_before, d->items_per_s_after,
               d->reason);
    }
}

/* The best of every setting that the budgets allow, by trying them all. */
static inline double best_period_ms(const machine* m, const gpsti_tuner* tuner) {
    gpst_settings s = tuner->now;
    double best = 1e30;
    const uint32_t* const most = tuner->most.value;
    for (uint32_t w = 1; w <= most[GPST_KNOB_WORKERS]; w++)
        for (uint32_t r = tuner->least.value[GPST_KNOB_READS]; r <= most[GPST_KNOB_READS]; r += 1 + r / 4)
            for (uint32_t o = tuner->least.value[GPST_KNOB_WRITES]; o <= most[GPST_KNOB_WRITES];
                 o += 1 + o / 4) {
                s.value[GPST_KNOB_WORKERS] = w;
                s.value[GPST_KNOB_READS] = r;
                s.value[GPST_KNOB_WRITES] = o;
                s.value[GPST_KNOB_SLOTS] = most[GPST_KNOB_SLOTS];
                s.value[GPST_KNOB_STREAMS] = most[GPST_KNOB_STREAMS];
                best = smaller(best, period_ms(m, &s));
            }
    return best;
}

#define B GPST_PRESET_BALANCED
#define L GPST_PRESET_LATENCY
#define T GPST_PRESET_THROUGHPUT
#define BOUND(resource) GPST_RESOURCE_##resource
static const machine machines[] = {
    /* cores, workers; cpu, blocked; read, least, crowd; h2d, gpu, d2h, delay; write, least; serial; noise */
    {"decode, 2 cores", 2, 2, 30, 0, 2, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, B, BOUND(CPU)},
    {"decode, 16 cores", 16, 16, 150, 0, 12, 1, 0, 1, 0.5, 1, 0.1, 3, 0.5, 0, 0, B, BOUND(CPU)},
    {"decode, noisy", 16, 16, 150, 0, 12, 1, 0, 1, 0.5, 1, 0.1, 3, 0.5, 0, 0.04, B, BOUND(CPU)},
    {"disk, scales to 8", 4, 4, 0.5, 0, 11.7, 1.4, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 0, B, BOUND(DISK_IN)},
    {"disk, one stream", 4, 4, 0.5, 0, 11.7, 11.7, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 0, B, BOUND(DISK_IN)},
    {"disk that seeks", 4, 4, 8, 0, 11.7, 11, 1.5, 0, 0, 0, 0, 0, 0, 0, 0, B, BOUND(DISK_IN)},
    {"disk, noisy", 4, 4, 0.5, 0, 11.7, 1.4, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 0.03, B, BOUND(DISK_IN)},
    {"disk, unknown to model", 2, 2, 0, 0, 20, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, B, BOUND(DISK_IN)},
    {"network disk, slow", 8, 8, 4, 0, 90, 0.9, 0, 0, 0, 0, 0, 0, 0, 0, 0, T, BOUND(DISK_IN)},
    {"link up", 4, 4, 1, 0, 1, 0.2, 0, 8, 2, 3, 0.1, 0, 0, 0, 0, B, BOUND(H2D)},
    {"link up, old laptop", 2, 2, 2, 0, 4, 3, 0, 30, 9, 9, 0.5, 0, 0, 0, 0.02, B, BOUND(H2D)},
    {"kernel", 4, 4, 1, 0, 1, 0.2, 0, 2, 12, 1, 0.1, 0, 0, 0, 0, B, BOUND(GPU)},
    {"link down", 4, 4, 1, 0, 1, 0.2, 0, 2, 1, 9, 0.1, 0, 0, 0, 0, B, BOUND(D2H)},
    {"launches with delay", 4, 4, 0.2, 0, 0, 0, 0, 0.2, 1, 0.2, 9, 0, 0, 0, 0, B, BOUND(GPU)},
    {"device, latency", 4, 4, 0.2, 0, 0, 0, 0, 0.2, 1, 0.2, 9, 0, 0, 0, 0, L, BOUND(GPU)},
    {"sink, scales", 4, 4, 1, 0, 0.5, 0.2, 0, 0, 0, 0, 0, 40, 1.5, 0, 0, B, BOUND(DISK_OUT)},
    {"sink, does not scale", 4, 4, 1, 0, 0.5, 0.2, 0, 0, 0, 0, 0, 20, 20, 0, 0, B, BOUND(DISK_OUT)},
    {"serial sink", 8, 8, 4, 0, 1, 0.2, 0, 0, 0, 0, 0, 0, 0, 12, 0, B, BOUND(NONE)},
    {"one core", 1, 1, 10, 0, 2, 0.5, 0, 0, 0, 0, 0, 2, 0.5, 0, 0, B, BOUND(CPU)},
    {"one core, disk", 1, 1, 1, 0, 12, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, B, BOUND(DISK_IN)},
    {"quota 2 of 16", 2, 2, 20, 0, 2, 0.5, 0, 1, 0.5, 1, 0.1, 2, 0.5, 0, 0, B, BOUND(CPU)},
    {"too many workers", 2, 8, 20, 0, 2, 0.5, 0, 0, 0, 0, 0, 0, 0, 0, 0, B, BOUND(CPU)},
    {"stages that wait", 4, 4, 1, 20, 1, 0.2, 0, 0, 0, 0, 0, 0, 0, 0, 0, B, BOUND(CPU)},
    {"jittery reads", 4, 4, 2, 0, 11.7, 1.4, 0, 0, 0.1, 0, 0.1, 0, 0, 0, 0.08, B, BOUND(DISK_IN)},
    {"all of a size", 4, 4, 8, 0, 4, 2, 0, 2, 2, 2, 0.1, 4, 2, 0, 0, B, BOUND(DISK_IN)},
    {"small items", 16, 16, 0.02, 0, 0.05, 0.01, 0, 0, 0, 0, 0, 0, 0, 0, 0.01, B, BOUND(DISK_IN)},
    {"latency, decode", 16, 16, 40, 0, 4, 0.5, 0, 0, 0, 0, 0, 2, 0.3, 0, 0, L, BOUND(CPU)},
    {"throughput, decode", 16, 16, 40, 0, 4, 0.5, 0, 0, 0, 0, 0, 2, 0.3, 0, 0, T, BOUND(CPU)},
};
#undef B
#undef L
#undef T
#undef BOUND
#define N_MACHINES (sizeof machines / sizeof machines[0])

static inline const machine* machine_named(const char* name) {
    for (size_t i = 0; i < N_MACHINES; i++)
        if (strcmp(machines[i].name, name) == 0)
            return &machines[i];
    fail_msg("no machine \"%s\"", name);
    return NULL;
}

/* A machine of brief items, all times in ms, with n workers. */
static inline machine brief_machine(uint32_t n_workers) {
    machine m;
    memset(&m, 0, sizeof m);
    m.name = "brief items";
    m.cores = m.workers = n_workers;
    m.preset = GPST_PRESET_BALANCED;
    return m;
}

#endif
