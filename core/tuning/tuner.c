/* core/tuning/tuner.c -- which knob moves next, and whether a move stays. A pure policy:
   what it is told are clocks, what it says are values; core/pipeline/tune.c asks and obeys. */
#include "../base/platform_internal.h"

#include "tuner_internal.h"

#include <string.h>

#define GPSTI_TUNER_FULL 0.85 /* a limit that is used so far is what holds things up */
#define GPSTI_TUNER_ALL 0.95  /* nothing can be gained that is worth trying for */
#define GPSTI_TUNER_WIN 0.02  /* a smaller gain is none */
#define GPSTI_TUNER_LOSS 0.10 /* and more than chance: no need to see more of it */
#define GPSTI_TUNER_DRIFT 0.20
#define GPSTI_TUNER_CROWD 2.0 /* times as long as one alone: half as many workers would bring as many whole items */
#define GPSTI_TUNER_PLENTY 8 /* workers, half of whom keep a device busy with whole items, too */
#define GPSTI_TUNER_UP 1u
#define GPSTI_TUNER_DOWN 2u

GPSTI_INTERN gpst_tuner_decision* gpsti_tuner_note(gpsti_tuner* tuner, gpst_knob knob, uint32_t before,
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

/* ---- what holds the run up --------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_knob gpsti_tuner_knob_of(gpst_resource resource) {
    switch (resource) {
    case GPST_RESOURCE_DISK_IN:
        return GPST_KNOB_READS;
    case GPST_RESOURCE_CPU:
        return GPST_KNOB_WORKERS;
    case GPST_RESOURCE_H2D:
    case GPST_RESOURCE_GPU:
    case GPST_RESOURCE_D2H:
        return GPST_KNOB_STREAMS;
    case GPST_RESOURCE_DISK_OUT:
        return GPST_KNOB_WRITES;
    case GPST_RESOURCE_NONE:
    case GPST_RESOURCE_COUNT:
        break;
    }
    return GPST_KNOB_SLOTS;
}

/* How far the limit on a resource is used; the engines of a device are one thing each and have none. */
GPSTI_PRIVATE double gpsti_tuner_fullness(const gpst_settings* now, const gpsti_tuner_window* window,
                                          gpst_resource resource, uint32_t cores) {
    const double wall_ns = (double)window->wall_ns;
    if (resource >= GPST_RESOURCE_H2D && resource <= GPST_RESOURCE_D2H)
        return (double)window->busy_ns[resource] / wall_ns;
    const uint32_t limit = now->value[gpsti_tuner_knob_of(resource)];
    if (limit == 0)
        return 0.0;
    const double by_limit = (double)window->service_ns[resource] / wall_ns / limit;
    const double by_cores = (double)window->cpu_ns / wall_ns / cores;
    return resource == GPST_RESOURCE_CPU && by_cores > by_limit ? by_cores : by_limit;
}

/* Of several that are full, the one that most is waiting for: upstream of it things pile up. */
GPSTI_INTERN gpst_resource gpsti_tuner_bottleneck(const gpst_settings* now, const gpsti_tuner_window* window,
                                                  uint32_t cores) {
    int worst = (int)GPST_RESOURCE_NONE;
    if (window->wall_ns <= 0)
        return GPST_RESOURCE_NONE;
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        if (gpsti_tuner_fullness(now, window, (gpst_resource)r, cores) < GPSTI_TUNER_FULL)
            continue;
        if (worst == (int)GPST_RESOURCE_NONE || window->wait_ns[r] > window->wait_ns[worst])
            worst = r;
    }
    return (gpst_resource)worst;
}

/* ---- moves ----------------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_tuner_doubles(gpst_knob knob) {
    return knob == GPST_KNOB_READS || knob == GPST_KNOB_WRITES || knob == GPST_KNOB_STREAMS ||
           knob == GPST_KNOB_BATCH;
}

/* Do whole items take so much longer than one alone? */
GPSTI_PRIVATE bool gpsti_tuner_is_slowed(const gpsti_tuner* tuner, uint64_t n_items, int64_t wall_ns) {
    const double way_ns = (double)wall_ns * tuner->now.value[GPST_KNOB_WORKERS] / (double)n_items;
    return tuner->whole && tuner->alone_ns > 0 && way_ns > GPSTI_TUNER_CROWD * (double)tuner->alone_ns;
}

/* How much of the window the busiest of the device's engines was. */
GPSTI_PRIVATE double gpsti_tuner_device_part(const gpsti_tuner_window* window) {
    int64_t most_ns = 0;
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++)
        most_ns = window->busy_ns[r] > most_ns ? window->busy_ns[r] : most_ns;
    return (double)most_ns / (double)window->wall_ns;
}

/* Few of them, not where it is a busy device that they wait for. */
GPSTI_PRIVATE bool gpsti_tuner_is_crowded(const gpsti_tuner* tuner) {
    const gpsti_tuner_window* const window = &tuner->kept_window;
    return gpsti_tuner_is_slowed(tuner, window->n_items, window->wall_ns) &&
           (gpsti_tuner_device_part(window) < 0.5 || tuner->now.value[GPST_KNOB_WORKERS] >= GPSTI_TUNER_PLENTY);
}

GPSTI_PRIVATE uint32_t gpsti_tuner_step(const gpsti_tuner* tuner, gpst_knob knob, uint32_t direction) {
    const uint32_t value = tuner->now.value[knob];
    const bool doubles = gpsti_tuner_doubles(knob);
    if (direction == GPSTI_TUNER_UP)
        return doubles ? value * (tuner->leaps ? 4 : 2) : value + (value + 1) / 2;
    return doubles || gpsti_tuner_is_crowded(tuner) ? value / 2 : value - (value + 3) / 4;
}

/* Of a batch one is gathered, one on its way up, one computed, and one on its way down. */
GPSTI_PRIVATE uint32_t gpsti_tuner_more_slots(gpst_knob knob, uint32_t before, uint32_t after) {
    return (after - before) * (knob == GPST_KNOB_BATCH ? 4 : 1);
}

/* Of a run that had several numbers of them it could not be said which was better, nor of its first items beside the
   next ones. */
GPSTI_PRIVATE bool gpsti_tuner_is_by_runs(const gpsti_tuner* tuner) {
    return tuner->whole && tuner->budget.known && tuner->budget.by_runs;
}

/* Whole items have no other. */
GPSTI_PRIVATE bool gpsti_tuner_uses(const gpsti_tuner* tuner, gpst_knob knob) {
    return !tuner->whole || knob == GPST_KNOB_SLOTS ||
           (knob == GPST_KNOB_WORKERS && !gpsti_tuner_is_by_runs(tuner));
}

/* Sets the next value to try. What is in flight at one place is in no other: slots go along; down, too, where workers
   have one each, so that those in use are the ones whose memory is made. */
GPSTI_PRIVATE bool gpsti_tuner_try(gpsti_tuner* tuner, gpst_knob knob, uint32_t direction) {
    tuner->leaps = tuner->leaps && knob == tuner->knob && direction == GPSTI_TUNER_UP;
    const uint32_t before = tuner->now.value[knob];
    const uint32_t after = gpsti_tuner_clamp(gpsti_tuner_step(tuner, knob, direction), tuner->least.value[knob],
                                             tuner->most.value[knob]);
    uint32_t* const slots = &tuner->now.value[GPST_KNOB_SLOTS];
    const bool in_turns = gpsti_tuner_in_turns(tuner, tuner->alone_ns);
    if (after == before || (tuner->tried[knob] & direction) || !gpsti_tuner_uses(tuner, knob))
        return false;
    if (tuner->whole && after > before && !gpsti_tuner_slots_pay(&tuner->kept_window, before, after, in_turns))
        return false;
    tuner->now.value[knob] = after;
    if (tuner->whole && knob == GPST_KNOB_WORKERS && *slots == before)
        *slots = gpsti_tuner_clamp(after, tuner->least.value[GPST_KNOB_SLOTS], tuner->most.value[GPST_KNOB_SLOTS]);
    else if (knob != GPST_KNOB_SLOTS && after > before)
        *slots = gpsti_tuner_clamp((uint64_t)*slots + gpsti_tuner_more_slots(knob, before, after), *slots,
                                   tuner->most.value[GPST_KNOB_SLOTS]);
    tuner->knob = knob;
    tuner->direction = direction;
    tuner->state = GPSTI_TUNER_TRIAL;
    return true;
}

/* A disk may be faster with fewer at once, but not what reads wait for beside it. */
GPSTI_PRIVATE bool gpsti_tuner_try_disk(gpsti_tuner* tuner, gpst_knob knob) {
    const bool fewer = knob != GPST_KNOB_READS || !tuner->waits_far;
    return gpsti_tuner_try(tuner, knob, GPSTI_TUNER_UP) || (fewer && gpsti_tuner_try(tuner, knob, GPSTI_TUNER_DOWN));
}

/* Workers that are all taken without using the cores wait for something: more of them, or, when there are more than
   cores already, fewer. Whole items that wait for one engine of the device would only wait longer. */
GPSTI_PRIVATE bool gpsti_tuner_try_cpu(gpsti_tuner* tuner) {
    const gpsti_tuner_window* const window = &tuner->kept_window;
    const double cores = (double)tuner->budget.cores;
    const bool cores_busy = (double)window->cpu_ns >= GPSTI_TUNER_FULL * cores * (double)window->wall_ns;
    if (tuner->now.value[GPST_KNOB_WORKERS] > tuner->budget.cores)
        return gpsti_tuner_try(tuner, GPST_KNOB_WORKERS, GPSTI_TUNER_DOWN);
    const bool waits = tuner->whole && gpsti_tuner_device_part(window) >= GPSTI_TUNER_ALL;
    return !cores_busy && !waits && gpsti_tuner_try(tuner, GPST_KNOB_WORKERS, GPSTI_TUNER_UP);
}

GPSTI_PRIVATE bool gpsti_tuner_is_serial(const gpsti_tuner_window* window) {
    return (double)window->serial_ns >= GPSTI_TUNER_FULL * (double)window->wall_ns;
}

/* Nothing is busy enough to be what holds the run up: items wait for one another. */
GPSTI_PRIVATE bool gpsti_tuner_try_latency(gpsti_tuner* tuner) {
    const gpsti_tuner_window* const window = &tuner->kept_window;
    const double wall_ns = (double)window->wall_ns;
    if (gpsti_tuner_is_serial(window))
        return false;
    const uint32_t streams = tuner->now.value[GPST_KNOB_STREAMS];
    const int64_t on_device_ns = window->service_ns[GPST_RESOURCE_H2D] +
                                 window->service_ns[GPST_RESOURCE_GPU] +
                                 window->service_ns[GPST_RESOURCE_D2H];
    if (streams > 0 && (double)on_device_ns >= GPSTI_TUNER_FULL * wall_ns * streams &&
        gpsti_tuner_try(tuner, GPST_KNOB_STREAMS, GPSTI_TUNER_UP))
        return true;
    return (double)window->starved_ns >= 0.5 * wall_ns &&
           (gpsti_tuner_try(tuner, GPST_KNOB_SLOTS, GPSTI_TUNER_UP) ||
            gpsti_tuner_try(tuner, GPST_KNOB_BATCH, GPSTI_TUNER_UP)); /* what each submission costs, in part */
}

GPSTI_PRIVATE bool gpsti_tuner_try_next(gpsti_tuner* tuner, gpst_resource bottleneck) {
    if (gpsti_tuner_is_crowded(tuner))
        return gpsti_tuner_try(tuner, GPST_KNOB_WORKERS, GPSTI_TUNER_DOWN);
    switch (bottleneck) {
    case GPST_RESOURCE_DISK_IN:
    case GPST_RESOURCE_DISK_OUT:
        return gpsti_tuner_try_disk(tuner, gpsti_tuner_knob_of(bottleneck));
    case GPST_RESOURCE_CPU:
        return gpsti_tuner_try_cpu(tuner);
    case GPST_RESOURCE_NONE:
        return gpsti_tuner_try_latency(tuner);
    case GPST_RESOURCE_GPU: /* small items: it may be launches that take the time */
        return gpsti_tuner_try(tuner, GPST_KNOB_BATCH, GPSTI_TUNER_UP);
    case GPST_RESOURCE_H2D: /* a copy engine that is always busy has no knob */
    case GPST_RESOURCE_D2H:
    case GPST_RESOURCE_COUNT:
        break;
    }
    return false;
}

/* ---- freeze and drift -------------------------------------------------------------------------------- */

/* Another window as long as the one that is held against would not be over before the run is. */
GPSTI_PRIVATE bool gpsti_tuner_is_late(const gpsti_tuner* tuner, const gpsti_tuner_window* window) {
    return window->n_left > 0 && window->n_left < tuner->kept_window.n_items;
}

GPSTI_PRIVATE void gpsti_tuner_freeze(gpsti_tuner* tuner, const gpsti_tuner_window* window, gpst_resource bottleneck) {
    const bool serial = gpsti_tuner_is_serial(&tuner->kept_window);
    gpst_tuner_decision* const decision = gpsti_tuner_note(tuner, GPST_KNOB_NONE, 0, 0);
    decision->items_per_s_before = decision->items_per_s_after = tuner->kept_rate;
    if (gpsti_tuner_is_late(tuner, window))
        gpsti_copy_text(decision->reason, sizeof decision->reason, "frozen: too few items are left to try more");
    else if (gpsti_tuner_is_by_runs(tuner))
        gpsti_copy_text(decision->reason, sizeof decision->reason,
                        "frozen: the number of workers is found from run to run of the job");
    else if (tuner->whole && bottleneck == GPST_RESOURCE_CPU)
        gpsti_copy_text(decision->reason, sizeof decision->reason,
                        "frozen: every worker has an item in hand, and another number of them brings nothing");
    else if (bottleneck != GPST_RESOURCE_NONE)
        gpsti_format(decision->reason, sizeof decision->reason,
                     "frozen: %s-bound, and no knob that serves it brings more",
                     gpst_resource_name(bottleneck));
    else
        gpsti_copy_text(decision->reason, sizeof decision->reason,
                        serial ? "frozen: a stage that serves one at a time bounds the run"
                               : "frozen: nothing is full, and more items in flight bring nothing");
    tuner->state = GPSTI_TUNER_FROZEN;
    tuner->has_reference = false;
    tuner->n_drifted = 0;
}

GPSTI_PRIVATE void gpsti_tuner_refer(gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    tuner->has_reference = true;
    tuner->reference_rate = rate;
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++)
        tuner->reference_service[r] = (double)window->service_ns[r] / (double)window->n_items;
}

/* Another rate by more than chance, or a service that takes a fifth of the period has become another one. */
GPSTI_PRIVATE bool gpsti_tuner_differs(const gpsti_tuner* tuner, const gpsti_tuner_window* window,
                                       double rate) {
    const double allowed = GPSTI_TUNER_DRIFT + 2.0 * window->noise;
    const double period_ns = 1e9 / tuner->reference_rate;
    if (rate > tuner->reference_rate * (1.0 + allowed) || rate < tuner->reference_rate * (1.0 - allowed))
        return true;
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        const double before = tuner->reference_service[r];
        const double now = (double)window->service_ns[r] / (double)window->n_items;
        const double change = now > before ? now - before : before - now;
        if (change > allowed * before && change > allowed * period_ns)
            return true;
    }
    return false;
}

/* True: thawed. What was tried under other clocks says nothing under these. Each time it takes twice as long to
   believe it, so that a run that never settles is not tuned all the time. */
GPSTI_PRIVATE bool gpsti_tuner_drifts(gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    if (!tuner->has_reference) {
        gpsti_tuner_refer(tuner, window, rate);
        return false;
    }
    tuner->n_drifted = gpsti_tuner_differs(tuner, window, rate) ? tuner->n_drifted + 1 : 0;
    if (tuner->n_drifted < tuner->patience)
        return false;
    gpst_tuner_decision* const decision = gpsti_tuner_note(tuner, GPST_KNOB_NONE, 0, 0);
    decision->items_per_s_before = tuner->reference_rate;
    decision->items_per_s_after = rate;
    gpsti_copy_text(decision->reason, sizeof decision->reason, "looks again: the clocks have drifted");
    tuner->patience *= tuner->patience < 64 ? 2 : 1;
    tuner->state = GPSTI_TUNER_BASE;
    memset(tuner->tried, 0, sizeof tuner->tried);
    return true;
}

/* ---- judging a window ---------------------------------------------------------------------------------- */

/* What the windows to come are held against. */
GPSTI_PRIVATE void gpsti_tuner_set_base(gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    tuner->kept = tuner->now;
    tuner->kept_rate = rate;
    tuner->kept_window = *window;
}

GPSTI_PRIVATE void gpsti_tuner_keep(gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    gpst_tuner_decision* const decision =
        gpsti_tuner_note(tuner, tuner->knob, tuner->kept.value[tuner->knob], tuner->now.value[tuner->knob]);
    decision->items_per_s_before = tuner->kept_rate;
    decision->items_per_s_after = rate;
    gpsti_format(decision->reason, sizeof decision->reason, "kept: %+d %%",
                 (int)((rate / tuner->kept_rate - 1.0) * 100.0));
    tuner->leaps = gpsti_tuner_doubles(tuner->knob) && tuner->knob != GPST_KNOB_BATCH && /* those make items wait */
                 rate * decision->before >= GPSTI_TUNER_FULL * tuner->kept_rate * decision->after;
    gpsti_tuner_set_base(tuner, window, rate);
    memset(tuner->tried, 0, sizeof tuner->tried);
    tuner->tried[tuner->knob] = tuner->direction == GPSTI_TUNER_UP
                                    ? GPSTI_TUNER_DOWN
                                    : GPSTI_TUNER_UP; /* where it came from was worse */
}

GPSTI_PRIVATE void gpsti_tuner_take_back(gpsti_tuner* tuner, double rate) {
    const uint32_t value = tuner->kept.value[tuner->knob];
    gpst_tuner_decision* const decision = gpsti_tuner_note(tuner, tuner->knob, value, value);
    decision->items_per_s_before = tuner->kept_rate;
    decision->items_per_s_after = rate;
    gpsti_format(decision->reason, sizeof decision->reason, "taken back: %u %s",
                 tuner->now.value[tuner->knob],
                 rate < tuner->kept_rate * (1.0 - GPSTI_TUNER_WIN) ? "lost" : "brought nothing");
    if (!tuner->leaps) /* else half as far may do */
        tuner->tried[tuner->knob] |= tuner->direction;
    tuner->leaps = false;
    tuner->now = tuner->kept;
}

/* Was the move a win by more than chance? Where workers take each other's time, fewer of them need only be as fast. */
GPSTI_PRIVATE bool gpsti_tuner_won(const gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    if (tuner->whole && tuner->knob == GPST_KNOB_WORKERS && tuner->direction == GPSTI_TUNER_DOWN)
        return rate >= tuner->kept_rate;
    const double noise = window->noise + tuner->kept_window.noise;
    return rate > tuner->kept_rate * (1.0 + (noise > GPSTI_TUNER_WIN ? noise : GPSTI_TUNER_WIN));
}

GPSTI_INTERN bool gpsti_tuner_loses(const gpsti_tuner* tuner, uint64_t n_items, int64_t wall_ns, double noise) {
    const double least = 1.0 - GPSTI_TUNER_LOSS - 2.0 * (noise + tuner->kept_window.noise);
    return tuner->state == GPSTI_TUNER_TRIAL && (double)n_items * 1e9 < least * tuner->kept_rate * (double)wall_ns;
}

GPSTI_INTERN bool gpsti_tuner_crowds(const gpsti_tuner* tuner, uint64_t n_items, int64_t wall_ns) {
    return tuner->state == GPSTI_TUNER_BASE && !tuner->budget.streams && gpsti_tuner_is_slowed(tuner, n_items, wall_ns);
}

GPSTI_INTERN bool gpsti_tuner_judge(gpsti_tuner* tuner, const gpsti_tuner_window* window, uint64_t n_items) {
    const gpst_settings before = tuner->now;
    if (window->n_items == 0 || window->wall_ns <= 0)
        return false;
    const double rate = (double)window->n_items * 1e9 / (double)window->wall_ns;
    tuner->n_items = n_items;
    if (tuner->state == GPSTI_TUNER_FROZEN && !gpsti_tuner_drifts(tuner, window, rate))
        return false;
    if (tuner->state != GPSTI_TUNER_TRIAL)
        gpsti_tuner_set_base(tuner, window, rate);
    else if (gpsti_tuner_won(tuner, window, rate))
        gpsti_tuner_keep(tuner, window, rate);
    else
        gpsti_tuner_take_back(tuner, rate);
    const gpst_resource bottleneck =
        gpsti_tuner_bottleneck(&tuner->kept, &tuner->kept_window, tuner->budget.cores);
    if (gpsti_tuner_is_late(tuner, window) || !gpsti_tuner_try_next(tuner, bottleneck))
        gpsti_tuner_freeze(tuner, window, bottleneck);
    return memcmp(&before, &tuner->now, sizeof before) != 0;
}
