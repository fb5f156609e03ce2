/* core/tuning/tuner.c -- where the knobs start, which one moves next, and whether a move stays. A pure policy: what it
   is told are clocks, what it says are values; core/pipeline/tune.c asks and obeys. docs/tuner.md is this file on one
   page, with what each constant was measured by. */
#include "../base/platform_internal.h"

#include "tuner_internal.h"

#include <string.h>

#define GPSTI_TUNER_FILES 4   /* reads and writes in flight at the start, */
#define GPSTI_TUNER_SYNCED 16 /* and synced writes: a disk syncs many at once in the time of one */
#define GPSTI_TUNER_STREAMS 3 /* one item uploads, one is computed, one downloads */
#define GPSTI_TUNER_SPARE 2   /* slots for an item that has ended and one that is about to begin */
#define GPSTI_TUNER_MOST 64   /* files at once: the threads of a reader or a writer */
#define GPSTI_TUNER_SLOT_BYTES ((uint64_t)256 << 20) /* of memory for a trial of slots, at most: page-locking is slow */
#define GPSTI_TUNER_FULL 0.85                        /* a resource as busy as this limits the rate */
#define GPSTI_TUNER_WIN 0.02                         /* a smaller gain does not count */
#define GPSTI_TUNER_DRIFT 0.20                       /* a rate that differs by more is another job's */
#define GPSTI_TUNER_PATIENCE 2                       /* trials without a gain, or windows that drift, in a row */

GPSTI_INTERN gpst_tuner_decision* gpsti_tuner_add_decision(gpsti_tuner* tuner, gpst_knob knob, uint32_t before,
                                                           uint32_t after) {
    const uint32_t last = GPST_MAX_DECISIONS - 1;
    const uint32_t place = tuner->n_decisions < last ? tuner->n_decisions : last;
    gpst_tuner_decision* const decision = &tuner->decisions[place];
    memset(decision, 0, sizeof *decision);
    decision->item = tuner->n_items;
    decision->knob = knob;
    decision->before = before;
    decision->after = after;
    tuner->n_decisions++;
    return decision;
}

GPSTI_PRIVATE uint32_t gpsti_tuner_clamp(uint64_t value, uint32_t least, uint32_t most) {
    return value < least ? least : value > most ? most : (uint32_t)value;
}

/* Never fewer than now. */
GPSTI_PRIVATE void gpsti_tuner_raise(gpsti_tuner* tuner, gpst_knob knob, uint64_t wanted) {
    uint32_t* const value = &tuner->now.value[knob];
    *value = gpsti_tuner_clamp(wanted, *value, tuner->most.value[knob]);
}

GPSTI_PRIVATE void gpsti_tuner_say(gpsti_tuner* tuner, const char* how) {
    const uint32_t* const now = tuner->now.value;
    gpst_tuner_decision* const decision = gpsti_tuner_add_decision(tuner, GPST_KNOB_NONE, 0, 0);
    gpsti_format(decision->reason, sizeof decision->reason,
                 "%s workers=%u slots=%u reads=%u writes=%u streams=%u batch=%u", how, now[GPST_KNOB_WORKERS],
                 now[GPST_KNOB_SLOTS], now[GPST_KNOB_READS], now[GPST_KNOB_WRITES], now[GPST_KNOB_STREAMS],
                 now[GPST_KNOB_BATCH]);
}

/* ---- where the knobs start ----------------------------------------------------------------- */

/* From 1 to most, or as it is fixed; most 0: the pipeline has no use for it. */
GPSTI_PRIVATE void gpsti_tuner_limit(gpsti_tuner* tuner, gpst_knob knob, uint32_t most) {
    const uint32_t fixed = tuner->budget.fixed.value[knob];
    tuner->least.value[knob] = fixed ? fixed : most > 0 ? 1 : 0;
    tuner->most.value[knob] = fixed ? fixed : most;
}

/* A slot for each item that works, is read, is on the device, or is written; an item's writes share its slot. */
GPSTI_PRIVATE uint32_t gpsti_tuner_start_slots(const gpsti_tuner* tuner) {
    const gpsti_tuner_budget* const budget = &tuner->budget;
    const uint32_t* const now = tuner->now.value;
    const uint32_t outputs = budget->outputs > 1 ? budget->outputs : 1;
    const uint32_t writes = budget->syncs ? now[GPST_KNOB_WRITES] / outputs : 0;
    const uint32_t spare = budget->preset == GPST_PRESET_LATENCY ? 0 : GPSTI_TUNER_SPARE;
    return now[GPST_KNOB_WORKERS] + now[GPST_KNOB_READS] + writes + now[GPST_KNOB_STREAMS] + tuner->n_held + spare;
}

GPSTI_PRIVATE void gpsti_tuner_limits(gpsti_tuner* tuner) {
    const gpsti_tuner_budget* const budget = &tuner->budget;
    static const uint32_t by_preset[] = {100, 20, 100, 200}; /* default, latency, balanced, throughput */
    const uint32_t of_preset = by_preset[budget->preset], for_workers = budget->workers + 4;
    const uint32_t slots = of_preset > for_workers ? of_preset : for_workers;
    gpsti_tuner_limit(tuner, GPST_KNOB_LOOP, 3); /* any gpst_run_mode; the plain loops are the guard's */
    gpsti_tuner_limit(tuner, GPST_KNOB_WORKERS, budget->workers);
    gpsti_tuner_limit(tuner, GPST_KNOB_SLOTS, slots);
    gpsti_tuner_limit(tuner, GPST_KNOB_READS, budget->reads ? GPSTI_TUNER_MOST : 0);
    gpsti_tuner_limit(tuner, GPST_KNOB_WRITES, budget->writes ? GPSTI_TUNER_MOST : 0);
    gpsti_tuner_limit(tuner, GPST_KNOB_STREAMS, budget->streams ? slots : 0);
    gpsti_tuner_limit(tuner, GPST_KNOB_INSIDE, budget->inside > 1 ? budget->inside : 1);
    gpsti_tuner_limit(tuner, GPST_KNOB_BATCH, budget->batch > 1 ? budget->batch : 0);
}

GPSTI_PRIVATE void gpsti_tuner_clamp_all(gpsti_tuner* tuner) {
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
        tuner->now.value[k] = gpsti_tuner_clamp(tuner->now.value[k], tuner->least.value[k], tuner->most.value[k]);
}

GPSTI_INTERN void gpsti_tuner_init(gpsti_tuner* tuner, const gpsti_tuner_budget* budget) {
    memset(tuner, 0, sizeof *tuner);
    tuner->budget = *budget;
    uint32_t* const now = tuner->now.value;
    gpsti_tuner_limits(tuner);
    now[GPST_KNOB_LOOP] = 1;
    now[GPST_KNOB_WORKERS] = budget->workers;
    now[GPST_KNOB_READS] = GPSTI_TUNER_FILES;
    now[GPST_KNOB_WRITES] = budget->syncs ? GPSTI_TUNER_SYNCED : GPSTI_TUNER_FILES;
    now[GPST_KNOB_STREAMS] = GPSTI_TUNER_STREAMS;
    now[GPST_KNOB_INSIDE] = budget->inside;
    now[GPST_KNOB_BATCH] = budget->batch; /* at most: what is ready when the device has a place */
    gpsti_tuner_clamp_all(tuner);
    now[GPST_KNOB_SLOTS] = gpsti_tuner_start_slots(tuner);
    gpsti_tuner_clamp_all(tuner);
    gpsti_tuner_say(tuner, "starts with");
}

GPSTI_INTERN void gpsti_tuner_load(gpsti_tuner* tuner, const gpst_settings* settings) {
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
        if (settings->value[k] != 0)
            tuner->now.value[k] = settings->value[k];
    gpsti_tuner_clamp_all(tuner);
    if (settings->value[GPST_KNOB_SLOTS] == 0)
        tuner->now.value[GPST_KNOB_SLOTS] = gpsti_tuner_start_slots(tuner);
    tuner->now.value[GPST_KNOB_LOOP] = 1;
    gpsti_tuner_clamp_all(tuner);
    tuner->n_decisions = 0;
    gpsti_tuner_say(tuner, "as given:");
    tuner->state = GPSTI_TUNER_FROZEN;
}

GPSTI_INTERN bool gpsti_tuner_hold(gpsti_tuner* tuner, uint32_t n_items) {
    const uint32_t before = tuner->now.value[GPST_KNOB_SLOTS];
    if (n_items <= tuner->n_held)
        return false;
    tuner->n_held = n_items;
    gpsti_tuner_raise(tuner, GPST_KNOB_SLOTS, gpsti_tuner_start_slots(tuner));
    if (tuner->now.value[GPST_KNOB_SLOTS] == before)
        return false;
    gpsti_tuner_say(tuner, "with a device's JPEG engines:");
    tuner->state = GPSTI_TUNER_START; /* of a trial in progress nothing can be said */
    return true;
}

/* ---- after the first window: Little's law --------------------------------------------------- */

/* The least time between two items that the cores and the device's engines allow. */
GPSTI_PRIVATE double gpsti_tuner_period_ns(const gpsti_tuner* tuner, const gpsti_tuner_window* window) {
    double period_ns = (double)window->cpu_ns / (double)tuner->budget.cores;
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++)
        if ((double)window->busy_ns[r] > period_ns)
            period_ns = (double)window->busy_ns[r];
    return period_ns / (double)window->n_items;
}

/* As many in flight as begin while one is served. Never fewer than now: the service was measured among so many. */
GPSTI_PRIVATE void gpsti_tuner_set_by_little(gpsti_tuner* tuner, gpst_knob knob, int64_t service_ns, double period_ns,
                                             uint64_t n_items) {
    const double wanted = (double)service_ns / (double)n_items / (period_ns > 1.0 ? period_ns : 1.0) + 1.0;
    if (service_ns > 0)
        gpsti_tuner_raise(tuner, knob, (uint64_t)(wanted < 1e6 ? wanted : 1e6));
}

GPSTI_PRIVATE bool gpsti_tuner_model(gpsti_tuner* tuner, const gpsti_tuner_window* window) {
    const gpst_settings before = tuner->now;
    const double period_ns = gpsti_tuner_period_ns(tuner, window);
    const int64_t* const service_ns = window->service_ns;
    gpsti_tuner_set_by_little(tuner, GPST_KNOB_READS, service_ns[GPST_RESOURCE_DISK_IN], period_ns, window->n_items);
    gpsti_tuner_set_by_little(tuner, GPST_KNOB_WRITES, service_ns[GPST_RESOURCE_DISK_OUT], period_ns, window->n_items);
    gpsti_tuner_raise(tuner, GPST_KNOB_SLOTS, gpsti_tuner_start_slots(tuner));
    if (memcmp(&before, &tuner->now, sizeof before) == 0)
        return false;
    gpsti_tuner_say(tuner, "by the first window:");
    return true;
}

/* ---- the fullest resource --------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_knob gpsti_tuner_knob_of(gpst_resource resource) {
    return resource == GPST_RESOURCE_DISK_IN    ? GPST_KNOB_READS
           : resource == GPST_RESOURCE_DISK_OUT ? GPST_KNOB_WRITES
                                                : GPST_KNOB_NONE; /* cores and a device's engines are one thing each */
}

/* The used part of a resource, 0..1. */
GPSTI_PRIVATE double gpsti_tuner_fullness(const gpsti_tuner* tuner, const gpsti_tuner_window* window, int r) {
    const double wall_ns = (double)window->wall_ns;
    if (r == (int)GPST_RESOURCE_CPU)
        return (double)window->cpu_ns / wall_ns / (double)tuner->budget.cores;
    if (r >= (int)GPST_RESOURCE_H2D && r <= (int)GPST_RESOURCE_D2H)
        return (double)window->busy_ns[r] / wall_ns;
    const uint32_t limit = tuner->kept.value[gpsti_tuner_knob_of((gpst_resource)r)];
    return limit == 0 ? 0.0 : (double)window->service_ns[r] / wall_ns / (double)limit;
}

/* NONE: no resource is full. */
GPSTI_PRIVATE gpst_resource gpsti_tuner_fullest(const gpsti_tuner* tuner) {
    int fullest = (int)GPST_RESOURCE_NONE;
    double most = GPSTI_TUNER_FULL;
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        const double fullness = gpsti_tuner_fullness(tuner, &tuner->kept_window, r);
        if (fullness >= most) {
            most = fullness;
            fullest = r;
        }
    }
    return (gpst_resource)fullest;
}

/* ---- moves ----------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_tuner_try(gpsti_tuner* tuner, gpst_knob knob) {
    const uint32_t before = tuner->now.value[knob], slots = tuner->now.value[GPST_KNOB_SLOTS];
    const uint32_t after = gpsti_tuner_clamp(2 * (uint64_t)before, before, tuner->most.value[knob]);
    if (knob == GPST_KNOB_NONE || after == before || tuner->tried[knob])
        return false;
    tuner->now.value[knob] = after;
    if (knob != GPST_KNOB_SLOTS) /* each item in flight there needs a slot of its own */
        gpsti_tuner_raise(tuner, GPST_KNOB_SLOTS, (uint64_t)slots + after - before);
    tuner->knob = knob;
    tuner->state = GPSTI_TUNER_TRIAL;
    return true;
}

GPSTI_PRIVATE bool gpsti_tuner_try_latency(gpsti_tuner* tuner) {
    const gpsti_tuner_window* const window = &tuner->kept_window;
    const int64_t* const service_ns = window->service_ns;
    const double wall_ns = (double)window->wall_ns;
    const double on_device_ns =
        (double)(service_ns[GPST_RESOURCE_H2D] + service_ns[GPST_RESOURCE_GPU] + service_ns[GPST_RESOURCE_D2H]);
    const double streams = (double)tuner->now.value[GPST_KNOB_STREAMS];
    if (streams > 0.0 && on_device_ns >= GPSTI_TUNER_FULL * wall_ns * streams &&
        gpsti_tuner_try(tuner, GPST_KNOB_STREAMS))
        return true;
    const uint64_t bytes = window->item_bytes * tuner->now.value[GPST_KNOB_SLOTS]; /* as many again */
    return (double)window->slots_full_ns >= 0.5 * wall_ns && bytes <= GPSTI_TUNER_SLOT_BYTES &&
           gpsti_tuner_try(tuner, GPST_KNOB_SLOTS);
}

/* The run would end before another window does. */
GPSTI_PRIVATE bool gpsti_tuner_is_late(const gpsti_tuner_window* window) {
    return window->n_left > 0 && window->n_left < window->n_items;
}

GPSTI_PRIVATE void gpsti_tuner_freeze(gpsti_tuner* tuner, const gpsti_tuner_window* window, gpst_resource fullest) {
    gpst_tuner_decision* const decision = gpsti_tuner_add_decision(tuner, GPST_KNOB_NONE, 0, 0);
    decision->items_per_s_before = decision->items_per_s_after = tuner->kept_rate;
    if (gpsti_tuner_is_late(window))
        gpsti_copy_text(decision->reason, sizeof decision->reason, "frozen: too few items are left to try more");
    else if (fullest == GPST_RESOURCE_NONE)
        gpsti_copy_text(decision->reason, sizeof decision->reason,
                        "frozen: nothing is full, and more items in flight bring nothing");
    else
        gpsti_format(decision->reason, sizeof decision->reason,
                     "frozen: %s-bound, and no knob that serves it brings more", gpst_resource_name(fullest));
    tuner->state = GPSTI_TUNER_FROZEN;
    tuner->n_drifted = 0;
}

GPSTI_PRIVATE void gpsti_tuner_move_on(gpsti_tuner* tuner, const gpsti_tuner_window* window) {
    const gpst_resource fullest = gpsti_tuner_fullest(tuner);
    tuner->state = GPSTI_TUNER_BASE;
    if (gpsti_tuner_is_late(window) || tuner->n_failures >= GPSTI_TUNER_PATIENCE ||
        !(fullest == GPST_RESOURCE_NONE ? gpsti_tuner_try_latency(tuner)
                                        : gpsti_tuner_try(tuner, gpsti_tuner_knob_of(fullest))))
        gpsti_tuner_freeze(tuner, window, fullest);
}

/* ---- judging a window ------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_tuner_set_base(gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    tuner->kept = tuner->now;
    tuner->kept_rate = rate;
    tuner->kept_window = *window;
}

GPSTI_PRIVATE void gpsti_tuner_end_trial(gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    const gpst_knob knob = tuner->knob;
    const uint32_t before = tuner->kept.value[knob], tried = tuner->now.value[knob];
    const double noise = window->noise + tuner->kept_window.noise;
    const bool won = rate > tuner->kept_rate * (1.0 + (noise > GPSTI_TUNER_WIN ? noise : GPSTI_TUNER_WIN));
    gpst_tuner_decision* const decision = gpsti_tuner_add_decision(tuner, knob, before, won ? tried : before);
    decision->items_per_s_before = tuner->kept_rate;
    decision->items_per_s_after = rate;
    if (won) {
        gpsti_format(decision->reason, sizeof decision->reason, "kept: %+d %%",
                     (int)((rate / tuner->kept_rate - 1.0) * 100.0));
        gpsti_tuner_set_base(tuner, window, rate);
        memset(tuner->tried, 0, sizeof tuner->tried);
        tuner->n_failures = 0;
        return;
    }
    gpsti_format(decision->reason, sizeof decision->reason, "taken back: %u %s", tried,
                 rate < tuner->kept_rate * (1.0 - GPSTI_TUNER_WIN) ? "lost" : "brought nothing");
    tuner->tried[knob] = true;
    tuner->n_failures++;
    tuner->now = tuner->kept;
}

/* True: thawed, and what was tried is forgotten, since the clocks are others. */
GPSTI_PRIVATE bool gpsti_tuner_drifts(gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    const double allowed = GPSTI_TUNER_DRIFT + 2.0 * (window->noise + tuner->kept_window.noise);
    if (tuner->kept_rate <= 0.0) { /* the settings were given */
        gpsti_tuner_set_base(tuner, window, rate);
        return false;
    }
    const bool differs = rate > tuner->kept_rate * (1.0 + allowed) || rate < tuner->kept_rate * (1.0 - allowed);
    tuner->n_drifted = differs ? tuner->n_drifted + 1 : 0;
    if (tuner->n_drifted < GPSTI_TUNER_PATIENCE)
        return false;
    gpst_tuner_decision* const decision = gpsti_tuner_add_decision(tuner, GPST_KNOB_NONE, 0, 0);
    decision->items_per_s_before = tuner->kept_rate;
    decision->items_per_s_after = rate;
    gpsti_copy_text(decision->reason, sizeof decision->reason, "looks again: the clocks have drifted");
    memset(tuner->tried, 0, sizeof tuner->tried);
    tuner->n_failures = 0;
    return true;
}

GPSTI_INTERN bool gpsti_tuner_judge(gpsti_tuner* tuner, const gpsti_tuner_window* window, uint64_t n_items) {
    const gpst_settings before = tuner->now;
    if (window->n_items == 0 || window->wall_ns <= 0)
        return false;
    const double rate = (double)window->n_items * 1e9 / (double)window->wall_ns;
    tuner->n_items = n_items;
    if (tuner->state == GPSTI_TUNER_FROZEN && !gpsti_tuner_drifts(tuner, window, rate))
        return false;
    if (tuner->state == GPSTI_TUNER_START && gpsti_tuner_model(tuner, window)) {
        tuner->state = GPSTI_TUNER_BASE;
        return true;
    }
    if (tuner->state == GPSTI_TUNER_TRIAL)
        gpsti_tuner_end_trial(tuner, window, rate);
    else
        gpsti_tuner_set_base(tuner, window, rate);
    gpsti_tuner_move_on(tuner, window);
    return memcmp(&before, &tuner->now, sizeof before) != 0;
}
