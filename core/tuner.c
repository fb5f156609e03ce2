/* core/tuner.c -- where the knobs start and which one moves next. A pure policy:
   what it is told are clocks, what it says are values; core/tune.c asks and obeys. */
#include "platform_internal.h"

#include "tuner_internal.h"

#include <string.h>

#define GPSTI_TUNER_FULL 0.85 /* a limit that is used so far is what holds things up */
#define GPSTI_TUNER_WIN 0.02  /* a smaller gain is none */
#define GPSTI_TUNER_DRIFT 0.20
#define GPSTI_TUNER_BUNCH_NS 100000 /* about how long a worker keeps to itself what it took, and of how many items */
#define GPSTI_TUNER_BUNCH 8
#define GPSTI_TUNER_BATCH_NS 30000 /* about what a submission takes by itself: items that take less share one */
#define GPSTI_TUNER_BATCH 4
#define GPSTI_TUNER_WHOLE_NS 10000000 /* of an item, at most: a longer one is worth handing from thread to thread */
#define GPSTI_TUNER_WHOLE_FILES 8     /* that a disk serves at once about as fast as more of them */
#define GPSTI_TUNER_WHOLE_NAMES 4     /* threads that make files in one directory without taking each other's turns */
#define GPSTI_TUNER_WHOLE_CALLS 4     /* threads with brief items on a device: those are mostly calls, and take turns */
#define GPSTI_TUNER_WHOLE_LOSS 1.1    /* of the engine's time at best */
#define GPSTI_TUNER_CROWD 2.0 /* times as long as one alone: half as many workers would bring as many whole items */
#define GPSTI_TUNER_PLENTY 8 /* workers, half of whom keep a device busy with whole items, too */
#define GPSTI_TUNER_FAR_NS 2000000 /* a read that waits so long waits for more than a disk: others can, beside it */
#define GPSTI_TUNER_FAR_FILES 32
#define GPSTI_TUNER_WAITING_FILES 64 /* that wait for no disk at all, but for a network or their turn */
#define GPSTI_TUNER_WAIT_NS 500000
#define GPSTI_TUNER_BYTE_NS 10 /* of a read, from the slowest disk: 100 MB/s */
#define GPSTI_TUNER_UP 1u
#define GPSTI_TUNER_DOWN 2u
#define GPSTI_TUNER_UNSEEN_BYTES ((uint64_t)256 << 20) /* of host memory, at most, in an item nobody has seen */

GPSTI_PRIVATE uint32_t gpsti_tuner_clamp(uint64_t value, uint32_t least, uint32_t most) {
    return value < least ? least : value > most ? most : (uint32_t)value;
}

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

/* ---- budgets ------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_tuner_limit(gpsti_tuner* tuner, gpst_knob knob, uint32_t least, uint32_t most) {
    const uint32_t fixed = tuner->budget.fixed.value[knob];
    tuner->least.value[knob] = fixed ? fixed : least;
    tuner->most.value[knob] = fixed ? fixed : most;
}

/* How many items fit. A tenth is left for what is not counted in items. */
GPSTI_PRIVATE uint32_t gpsti_tuner_fit(uint64_t bytes, uint64_t item_bytes) {
    if (bytes == 0 || item_bytes == 0)
        return UINT32_MAX;
    const uint64_t n = bytes / 10 * 9 / item_bytes;
    return gpsti_tuner_clamp(n, 1, UINT32_MAX);
}

GPSTI_PRIVATE uint32_t gpsti_tuner_most_slots(const gpsti_tuner_budget* budget) {
    const uint32_t by_preset = budget->preset == GPST_PRESET_LATENCY      ? 20
                               : budget->preset == GPST_PRESET_THROUGHPUT ? 200
                                                                          : 100;
    const uint32_t for_workers = budget->workers * (1 + budget->bunch) + 4;
    const uint32_t useful = by_preset > for_workers ? by_preset : for_workers;
    const uint32_t wanted = budget->slots_worth > 0 && budget->slots_worth < useful ? budget->slots_worth : useful;
    const uint32_t on_host = gpsti_tuner_fit(budget->host_bytes, budget->item_host_bytes);
    return on_host < wanted ? on_host : wanted;
}

GPSTI_PRIVATE void gpsti_tuner_limits(gpsti_tuner* tuner) {
    const gpsti_tuner_budget* const budget = &tuner->budget;
    const uint32_t slots = gpsti_tuner_most_slots(budget);
    const uint32_t on_device = gpsti_tuner_fit(budget->device_bytes, budget->item_device_bytes);
    const bool each_on_device = tuner->whole && budget->streams && on_device < budget->workers;
    gpsti_tuner_limit(tuner, GPST_KNOB_WORKERS, 1, each_on_device ? on_device : budget->workers);
    gpsti_tuner_limit(tuner, GPST_KNOB_SLOTS, 1, slots);
    gpsti_tuner_limit(tuner, GPST_KNOB_READS, budget->reads ? 1 : 0, budget->reads ? 64 : 0);
    gpsti_tuner_limit(tuner, GPST_KNOB_WRITES, budget->writes ? 1 : 0, budget->writes ? 64 : 0);
    gpsti_tuner_limit(tuner, GPST_KNOB_STREAMS, budget->streams ? 1 : 0,
                      !budget->streams    ? 0
                      : on_device < slots ? on_device
                                          : slots);
    gpsti_tuner_limit(tuner, GPST_KNOB_BATCH, budget->batch > 1 ? 1 : 0,
                      budget->batch < 2 ? 0 : gpsti_tuner_clamp(slots / 3, 1, budget->batch));
    gpsti_tuner_limit(tuner, GPST_KNOB_INSIDE, 1, budget->inside ? budget->cores : 1);
    gpsti_tuner_limit(tuner, GPST_KNOB_LOOP, 1, 3); /* any gpst_run_mode; the plain loops are the guard's */
}

GPSTI_PRIVATE void gpsti_tuner_clamp_all(gpsti_tuner* tuner, gpst_settings* settings) {
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
        settings->value[k] =
            gpsti_tuner_clamp(settings->value[k], tuner->least.value[k], tuner->most.value[k]);
}

/* ---- the model: where the knobs start -------------------------------------------------------- */

GPSTI_PRIVATE uint32_t gpsti_tuner_in_flight(const gpsti_tuner* tuner, int64_t service_ns,
                                             int64_t period_ns) {
    const uint32_t most = tuner->budget.preset == GPST_PRESET_THROUGHPUT ? 32 : 16;
    return period_ns > 0 ? gpsti_tuner_clamp((uint64_t)(service_ns / period_ns) + 1, 1, most) : 4;
}

/* A read that waits, but not for its bytes to come: any number of others can wait beside it. */
GPSTI_PRIVATE bool gpsti_tuner_waits_far(const gpsti_tuner_costs* costs) {
    const int64_t waits_ns = costs->service_ns[GPST_RESOURCE_DISK_IN];
    return costs->read_bytes > 0 && waits_ns >= GPSTI_TUNER_WAIT_NS &&
           (uint64_t)waits_ns / GPSTI_TUNER_BYTE_NS >= costs->read_bytes;
}

/* As many again of reads that wait far: the first ones to come back are the short ones. */
GPSTI_PRIVATE uint32_t gpsti_tuner_reads(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs, int64_t period_ns) {
    const int64_t waits_ns = costs ? costs->service_ns[GPST_RESOURCE_DISK_IN] : 0;
    if (period_ns > 0 && gpsti_tuner_waits_far(costs))
        return gpsti_tuner_clamp(2 * ((uint64_t)(waits_ns / period_ns) + 1), 1, GPSTI_TUNER_WAITING_FILES);
    if (period_ns > 0 && waits_ns >= GPSTI_TUNER_FAR_NS)
        return gpsti_tuner_clamp((uint64_t)(waits_ns / period_ns) + 1, 1, GPSTI_TUNER_FAR_FILES);
    return gpsti_tuner_in_flight(tuner, costs ? waits_ns + costs->read_ns : 0, period_ns);
}

/* Slots for reads. Those that workers do have none of their own; behind one that waits far there are others that are
   over, and wait for their turn with the sink. */
GPSTI_PRIVATE uint32_t gpsti_tuner_in_read(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    const uint32_t reads = tuner->now.value[GPST_KNOB_READS];
    if (costs && costs->read_ns > 0 && reads > 1)
        return 1;
    return costs && gpsti_tuner_waits_far(costs) ? 2 * reads : reads;
}

/* The shortest time an item could take of the run: disks serve many at once, so they do not set it. */
GPSTI_INTERN int64_t gpsti_tuner_period_ns(const gpsti_tuner_costs* costs, uint32_t workers) {
    int64_t period_ns = costs->service_ns[GPST_RESOURCE_CPU] / (int64_t)workers;
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++)
        if (costs->service_ns[r] > period_ns)
            period_ns = costs->service_ns[r];
    return period_ns;
}

GPSTI_INTERN int64_t gpsti_tuner_total_ns(const gpsti_tuner_costs* costs) {
    int64_t total_ns = 0;
    for (int r = 1; costs && r < (int)GPST_RESOURCE_COUNT; r++)
        total_ns += costs->service_ns[r];
    return total_ns;
}

/* Workers take brief items in bunches: slots for as many as each then has in hand. */
GPSTI_PRIVATE uint32_t gpsti_tuner_bunch(const gpsti_tuner_costs* costs) {
    const int64_t total_ns = gpsti_tuner_total_ns(costs);
    return total_ns > 0 ? gpsti_tuner_clamp((uint64_t)(GPSTI_TUNER_BUNCH_NS / total_ns), 0, GPSTI_TUNER_BUNCH) : 0;
}

GPSTI_PRIVATE uint32_t gpsti_tuner_start_slots(const gpsti_tuner* tuner, const gpst_settings* settings,
                                               uint32_t reads, uint32_t writes) {
    const gpst_preset preset = tuner->budget.preset;
    const uint32_t busy =
        settings->value[GPST_KNOB_WORKERS] + reads + settings->value[GPST_KNOB_STREAMS] + writes;
    return busy + (preset == GPST_PRESET_LATENCY ? 0 : preset == GPST_PRESET_THROUGHPUT ? busy : 2);
}

/* What more there is of anything only waits for what is busy anyway, and its memory drives the others' out of the
   caches. */
GPSTI_PRIVATE bool gpsti_tuner_knows_enough(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs,
                                            int64_t period_ns) {
    return period_ns > 0 && !costs->is_first && tuner->budget.preset != GPST_PRESET_THROUGHPUT;
}

/* Little's law, and as many again for items that take longer: of workers, for what they do of an item. */
GPSTI_PRIVATE uint32_t gpsti_tuner_useful_workers(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs,
                                                  int64_t period_ns) {
    const uint32_t workers = tuner->budget.workers;
    if (!gpsti_tuner_knows_enough(tuner, costs, period_ns))
        return workers;
    return gpsti_tuner_clamp(2 * ((uint64_t)(costs->service_ns[GPST_RESOURCE_CPU] / period_ns) + 1), 1, workers);
}

/* Likewise, for an item's whole way. */
GPSTI_PRIVATE uint32_t gpsti_tuner_useful_slots(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs,
                                                int64_t period_ns) {
    if (!gpsti_tuner_knows_enough(tuner, costs, period_ns))
        return UINT32_MAX;
    return gpsti_tuner_clamp(2 * ((uint64_t)(gpsti_tuner_total_ns(costs) / period_ns) + 1), 1, UINT32_MAX);
}

GPSTI_INTERN uint32_t gpsti_tuner_start_batch(const gpsti_tuner_costs* costs) {
    int64_t device_ns = 0;
    for (int r = (int)GPST_RESOURCE_H2D; costs && r <= (int)GPST_RESOURCE_D2H; r++)
        device_ns += costs->service_ns[r];
    return device_ns > 0 && device_ns < GPSTI_TUNER_BATCH_NS ? GPSTI_TUNER_BATCH : 1;
}

/* For reads and writes. What a device took for item 0 alone, which may have loaded its kernels, is nobody's period. */
GPSTI_PRIVATE int64_t gpsti_tuner_files_period_ns(const gpsti_tuner_costs* costs, uint32_t workers) {
    if (!costs)
        return 0;
    return costs->is_first ? costs->service_ns[GPST_RESOURCE_CPU] / (int64_t)workers
                           : gpsti_tuner_period_ns(costs, workers);
}

/* Little's law: in flight = service time / period, and one more, so that there is always a next. Reads that workers do
   now have no slots of their own, but as many readers in case they come to wait (where many at once lock memory). */
GPSTI_PRIVATE void gpsti_tuner_model(gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    gpst_settings* const now = &tuner->now;
    const uint32_t workers = tuner->budget.workers;
    const int64_t period_ns = costs ? gpsti_tuner_period_ns(costs, workers) : 0;
    const int64_t files_ns = gpsti_tuner_files_period_ns(costs, workers);
    uint32_t in_write = 0;
    memset(now, 0, sizeof *now);
    now->value[GPST_KNOB_WORKERS] = gpsti_tuner_useful_workers(tuner, costs, period_ns);
    now->value[GPST_KNOB_READS] = gpsti_tuner_reads(tuner, costs, files_ns);
    now->value[GPST_KNOB_WRITES] =
        gpsti_tuner_in_flight(tuner, costs ? costs->service_ns[GPST_RESOURCE_DISK_OUT] : 0, files_ns);
    now->value[GPST_KNOB_STREAMS] = 4;
    now->value[GPST_KNOB_BATCH] = gpsti_tuner_start_batch(costs);
    if (tuner->budget.writes)
        in_write = gpsti_tuner_clamp(now->value[GPST_KNOB_WRITES], 1, 4);
    gpsti_tuner_clamp_all(tuner, now);
    const uint32_t slots = gpsti_tuner_start_slots(tuner, now, gpsti_tuner_in_read(tuner, costs), in_write);
    const uint32_t useful = gpsti_tuner_useful_slots(tuner, costs, period_ns);
    const uint32_t for_batches = now->value[GPST_KNOB_BATCH] > 1 ? 3 * now->value[GPST_KNOB_BATCH] : 0;
    now->value[GPST_KNOB_SLOTS] = (slots < useful ? slots : useful) + workers * tuner->budget.bunch;
    if (now->value[GPST_KNOB_SLOTS] < for_batches)
        now->value[GPST_KNOB_SLOTS] = for_batches;
    gpsti_tuner_clamp_all(tuner, now);
    if (tuner->budget.inside && now->value[GPST_KNOB_SLOTS] < workers) /* memory for few items: wide ones */
        now->value[GPST_KNOB_INSIDE] = workers / now->value[GPST_KNOB_SLOTS];
    gpsti_tuner_clamp_all(tuner, now);
}

GPSTI_PRIVATE void gpsti_tuner_start(gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    tuner->budget.bunch = gpsti_tuner_bunch(costs);
    gpsti_tuner_limits(tuner);
    gpsti_tuner_model(tuner, costs);
    tuner->kept = tuner->now;
}

/* Of the engine at its best, by what an item reads. */
GPSTI_PRIVATE int64_t gpsti_tuner_files_ns(const gpsti_tuner_costs* costs) {
    const int64_t in_ns = costs->service_ns[GPST_RESOURCE_DISK_IN];
    if (gpsti_tuner_waits_far(costs))
        return in_ns / GPSTI_TUNER_WAITING_FILES;
    return in_ns / (in_ns >= GPSTI_TUNER_FAR_NS ? GPSTI_TUNER_FAR_FILES : GPSTI_TUNER_WHOLE_FILES);
}

GPSTI_PRIVATE int64_t gpsti_tuner_way_ns(const gpsti_tuner_costs* costs) {
    const int64_t services_ns = gpsti_tuner_total_ns(costs);
    return services_ns > costs->item_ns ? services_ns : costs->item_ns; /* with what no clock has */
}

/* Of waiting for files there can be as much as there are workers; of a device's time not, so that more of them than
   keep it busy, and one that comes with the next, only stand in each other's way; nor of making files, for which the
   engine has few writers. It, too, works on no more items than there are slots. */
GPSTI_INTERN uint32_t gpsti_tuner_whole_workers(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    const uint32_t* const most = tuner->most.value;
    uint32_t n = most[GPST_KNOB_WORKERS] < most[GPST_KNOB_SLOTS] ? most[GPST_KNOB_WORKERS] : most[GPST_KNOB_SLOTS];
    const int64_t files_ns = gpsti_tuner_files_ns(costs), others_ns = gpsti_tuner_period_ns(costs, n);
    const int64_t period_ns = files_ns > others_ns ? files_ns : others_ns;
    const int64_t way_ns = gpsti_tuner_way_ns(costs);
    if (tuner->budget.streams && most[GPST_KNOB_STREAMS] < n)
        n = most[GPST_KNOB_STREAMS];
    if (period_ns <= 0 || way_ns > GPSTI_TUNER_WHOLE_NS || (tuner->budget.writes && n > GPSTI_TUNER_WHOLE_NAMES) ||
        (double)gpsti_tuner_total_ns(costs) > GPSTI_TUNER_WHOLE_LOSS * (double)period_ns * (double)n)
        return 0;
    const uint64_t busy = (uint64_t)(way_ns / period_ns) * (costs->is_first ? 2 : 1);
    if (tuner->budget.streams && way_ns < GPSTI_TUNER_BUNCH_NS && n > GPSTI_TUNER_WHOLE_CALLS)
        n = GPSTI_TUNER_WHOLE_CALLS;
    return files_ns > others_ns ? n : gpsti_tuner_clamp(busy + 1, 1, n);
}

GPSTI_INTERN void gpsti_tuner_set_whole(gpsti_tuner* tuner, const gpsti_tuner_costs* costs, uint32_t n_workers,
                                        bool waits_for_turns) {
    tuner->whole = true;
    tuner->alone_ns = gpsti_tuner_way_ns(costs);
    tuner->now.value[GPST_KNOB_WORKERS] = n_workers;
    if (!waits_for_turns) /* a worker has one, whatever it does */
        tuner->now.value[GPST_KNOB_SLOTS] = n_workers;
    gpsti_tuner_limits(tuner);
    gpsti_tuner_clamp_all(tuner, &tuner->now);
    tuner->kept = tuner->now;
}

GPSTI_INTERN uint32_t gpsti_tuner_slots_ever(const gpsti_tuner* tuner) {
    gpsti_tuner_budget budget = tuner->budget;
    budget.bunch = GPSTI_TUNER_BUNCH;
    return budget.fixed.value[GPST_KNOB_SLOTS] ? budget.fixed.value[GPST_KNOB_SLOTS] : gpsti_tuner_most_slots(&budget);
}

GPSTI_INTERN uint32_t gpsti_tuner_n_fit(uint64_t host_bytes, uint64_t item_host_bytes) {
    return gpsti_tuner_fit(host_bytes, item_host_bytes ? item_host_bytes : GPSTI_TUNER_UNSEEN_BYTES);
}

/* Until the first item is whole, no more are let in than fit if they are large ones. */
GPSTI_PRIVATE void gpsti_tuner_hold_back(gpsti_tuner* tuner) {
    const uint32_t fit = gpsti_tuner_n_fit(tuner->budget.host_bytes, 0);
    uint32_t* const slots = &tuner->now.value[GPST_KNOB_SLOTS];
    if (tuner->budget.item_host_bytes == 0 && tuner->budget.fixed.value[GPST_KNOB_SLOTS] == 0 && *slots > fit)
        *slots = fit;
}

GPSTI_INTERN void gpsti_tuner_init(gpsti_tuner* tuner, const gpsti_tuner_budget* budget,
                                   const gpsti_tuner_costs* costs) {
    memset(tuner, 0, sizeof *tuner);
    tuner->budget = *budget;
    if (budget->fixed.value[GPST_KNOB_WORKERS] > budget->workers)
        tuner->budget.fixed.value[GPST_KNOB_WORKERS] = budget->workers;
    tuner->patience = 2;
    gpsti_tuner_start(tuner, costs);
    gpsti_tuner_hold_back(tuner);
}

/* What was tried with whole items says nothing. */
GPSTI_INTERN void gpsti_tuner_set_staged(gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    tuner->whole = tuner->leaps = false;
    tuner->state = GPSTI_TUNER_BASE;
    memset(tuner->tried, 0, sizeof tuner->tried);
    gpsti_tuner_start(tuner, costs);
}

/* Settings may come from another machine: what this one does not allow is said. */
GPSTI_PRIVATE void gpsti_tuner_say_given(gpsti_tuner* tuner, const gpst_settings* settings) {
    char* const reason = gpsti_tuner_note(tuner, GPST_KNOB_NONE, 0, 0)->reason;
    const char* before = ": ";
    gpsti_copy_text(reason, sizeof tuner->decisions[0].reason, "frozen: settings were given");
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++) {
        const size_t used = strlen(reason);
        if (settings->value[k] == 0 || settings->value[k] == tuner->kept.value[k])
            continue;
        gpsti_format(reason + used, sizeof tuner->decisions[0].reason - used, "%s%s %u, not %u", before,
                     gpst_knob_name((gpst_knob)k), tuner->kept.value[k], settings->value[k]);
        before = "; ";
    }
}

GPSTI_INTERN void gpsti_tuner_afford(gpsti_tuner* tuner, uint32_t slots_worth) {
    tuner->budget.slots_worth = slots_worth;
    gpsti_tuner_limits(tuner);
    gpsti_tuner_clamp_all(tuner, &tuner->now);
    gpsti_tuner_clamp_all(tuner, &tuner->kept);
}

/* As many others wait beside it as the model would have, did it know no more than that. */
GPSTI_INTERN void gpsti_tuner_expect_waits(gpsti_tuner* tuner, int64_t waits_ns, uint64_t bytes) {
    gpsti_tuner_costs costs;
    gpst_settings* const now = &tuner->now;
    memset(&costs, 0, sizeof costs);
    costs.service_ns[GPST_RESOURCE_DISK_IN] = waits_ns;
    costs.read_bytes = bytes;
    if (!gpsti_tuner_waits_far(&costs))
        return;
    now->value[GPST_KNOB_READS] = GPSTI_TUNER_WAITING_FILES;
    gpsti_tuner_clamp_all(tuner, now);
    now->value[GPST_KNOB_SLOTS] += gpsti_tuner_in_read(tuner, &costs);
    gpsti_tuner_clamp_all(tuner, now);
    tuner->kept = *now;
}

GPSTI_INTERN void gpsti_tuner_load(gpsti_tuner* tuner, const gpst_settings* settings) {
    tuner->now = tuner->kept;
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
        if (settings->value[k] != 0)
            tuner->now.value[k] = settings->value[k];
    gpsti_tuner_clamp_all(tuner, &tuner->now);
    tuner->kept = tuner->now;
    gpsti_tuner_hold_back(tuner);
    tuner->state = GPSTI_TUNER_FROZEN;
    gpsti_tuner_say_given(tuner, settings);
}

GPSTI_INTERN bool gpsti_tuner_resize(gpsti_tuner* tuner, uint64_t item_host_bytes,
                                     uint64_t item_device_bytes) {
    const gpst_settings before = tuner->now;
    if (item_host_bytes <= tuner->budget.item_host_bytes &&
        item_device_bytes <= tuner->budget.item_device_bytes)
        return false;
    if (tuner->budget.item_host_bytes == 0) /* held back until now */
        tuner->now = tuner->kept;
    const gpst_settings wanted = tuner->now;
    if (item_host_bytes > tuner->budget.item_host_bytes)
        tuner->budget.item_host_bytes = item_host_bytes;
    if (item_device_bytes > tuner->budget.item_device_bytes)
        tuner->budget.item_device_bytes = item_device_bytes;
    gpsti_tuner_limits(tuner);
    gpsti_tuner_clamp_all(tuner, &tuner->now);
    gpsti_tuner_clamp_all(tuner, &tuner->kept);
    if (memcmp(&wanted, &tuner->now, sizeof wanted) == 0)
        return memcmp(&before, &tuner->now, sizeof before) != 0;
    gpst_tuner_decision* const decision = gpsti_tuner_note(
        tuner, GPST_KNOB_SLOTS, wanted.value[GPST_KNOB_SLOTS], tuner->now.value[GPST_KNOB_SLOTS]);
    gpsti_format(decision->reason, sizeof decision->reason,
                 "an item takes %llu MB on the host and %llu MB on the device: no more fit the budgets",
                 (unsigned long long)(tuner->budget.item_host_bytes >> 20),
                 (unsigned long long)(tuner->budget.item_device_bytes >> 20));
    return true;
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
    return tuner->whole && way_ns > GPSTI_TUNER_CROWD * (double)tuner->alone_ns;
}

/* Few of them, not where it is a busy device that they wait for. */
GPSTI_PRIVATE bool gpsti_tuner_is_crowded(const gpsti_tuner* tuner) {
    const gpsti_tuner_window* const window = &tuner->kept_window;
    bool idles = true;
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++)
        idles = idles && window->busy_ns[r] < window->wall_ns / 2;
    return gpsti_tuner_is_slowed(tuner, window->n_items, window->wall_ns) &&
           (idles || tuner->now.value[GPST_KNOB_WORKERS] >= GPSTI_TUNER_PLENTY);
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

/* Whole items have no other. */
GPSTI_PRIVATE bool gpsti_tuner_uses(const gpsti_tuner* tuner, gpst_knob knob) {
    return !tuner->whole || knob == GPST_KNOB_WORKERS || knob == GPST_KNOB_SLOTS;
}

/* Sets the next value to try. What is in flight at one place is in no other: slots go along; down, too, where workers
   have one each, so that those in use are the ones whose memory is made. */
GPSTI_PRIVATE bool gpsti_tuner_try(gpsti_tuner* tuner, gpst_knob knob, uint32_t direction) {
    tuner->leaps = tuner->leaps && knob == tuner->knob && direction == GPSTI_TUNER_UP;
    const uint32_t before = tuner->now.value[knob];
    const uint32_t after = gpsti_tuner_clamp(gpsti_tuner_step(tuner, knob, direction), tuner->least.value[knob],
                                             tuner->most.value[knob]);
    uint32_t* const slots = &tuner->now.value[GPST_KNOB_SLOTS];
    if (after == before || (tuner->tried[knob] & direction) || !gpsti_tuner_uses(tuner, knob))
        return false;
    if (tuner->whole && after > before && !gpsti_tuner_slots_pay(&tuner->kept_window, before, after))
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

GPSTI_PRIVATE bool gpsti_tuner_try_disk(gpsti_tuner* tuner, gpst_knob knob) {
    return gpsti_tuner_try(tuner, knob, GPSTI_TUNER_UP) || gpsti_tuner_try(tuner, knob, GPSTI_TUNER_DOWN);
}

/* Workers that are all taken without using the cores wait for something: more of them, or, when there are more than
   cores already, fewer. */
GPSTI_PRIVATE bool gpsti_tuner_try_cpu(gpsti_tuner* tuner) {
    const gpsti_tuner_window* const window = &tuner->kept_window;
    const double cores = (double)tuner->budget.cores;
    const bool cores_busy = (double)window->cpu_ns >= GPSTI_TUNER_FULL * cores * (double)window->wall_ns;
    if (tuner->now.value[GPST_KNOB_WORKERS] > tuner->budget.cores)
        return gpsti_tuner_try(tuner, GPST_KNOB_WORKERS, GPSTI_TUNER_DOWN);
    return !cores_busy && gpsti_tuner_try(tuner, GPST_KNOB_WORKERS, GPSTI_TUNER_UP);
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

/* Another window would not be over before the run is. */
GPSTI_PRIVATE bool gpsti_tuner_is_late(const gpsti_tuner_window* window) {
    return window->n_left > 0 && window->n_left < window->n_items;
}

GPSTI_PRIVATE void gpsti_tuner_freeze(gpsti_tuner* tuner, const gpsti_tuner_window* window, gpst_resource bottleneck) {
    const bool serial = gpsti_tuner_is_serial(&tuner->kept_window);
    gpst_tuner_decision* const decision = gpsti_tuner_note(tuner, GPST_KNOB_NONE, 0, 0);
    decision->items_per_s_before = decision->items_per_s_after = tuner->kept_rate;
    if (gpsti_tuner_is_late(window))
        gpsti_copy_text(decision->reason, sizeof decision->reason, "frozen: too few items are left to try more");
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

/* Was the move a win by more than chance? */
GPSTI_PRIVATE bool gpsti_tuner_won(const gpsti_tuner* tuner, const gpsti_tuner_window* window, double rate) {
    const double noise = window->noise + tuner->kept_window.noise;
    return rate > tuner->kept_rate * (1.0 + (noise > GPSTI_TUNER_WIN ? noise : GPSTI_TUNER_WIN));
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
    if (gpsti_tuner_is_late(window) || !gpsti_tuner_try_next(tuner, bottleneck))
        gpsti_tuner_freeze(tuner, window, bottleneck);
    return memcmp(&before, &tuner->now, sizeof before) != 0;
}
