/* core/tuning/tuner_model.c -- where the knobs start and how far they may go: budgets, and a model of what items
   have cost. A
   pure policy, as tuner.c is. */
#include "../base/platform_internal.h"

#include "tuner_internal.h"

#include <string.h>

#define GPSTI_TUNER_BUNCH_NS 100000 /* about how long a worker keeps to itself what it took, and of how many items */
#define GPSTI_TUNER_BUNCH 8
#define GPSTI_TUNER_BATCH_NS 30000 /* about what a submission takes by itself: items that take less share one */
#define GPSTI_TUNER_BATCH 4
#define GPSTI_TUNER_WHOLE_NS 10000000 /* of an item, at most: a longer one is worth handing from thread to thread */
#define GPSTI_TUNER_WHOLE_ALL_NS 50000000 /* unless all have one: others, of another pipeline, then wait so long */
#define GPSTI_TUNER_WHOLE_FILES 8     /* that a disk serves at once about as fast as more of them */
#define GPSTI_TUNER_FILES 16 /* with which it is as fast as it can be */
#define GPSTI_TUNER_WHOLE_NAMES 4     /* threads that make files in one directory without taking each other's turns */
#define GPSTI_TUNER_BRIEF_NS 500000 /* of an item that is over before others are there to share it */
#define GPSTI_TUNER_NAME_NS 4000 /* for so long about one keeps the directory, where that is in memory */
#define GPSTI_TUNER_WHOLE_CALLS 4     /* threads with brief items on a device: those are mostly calls, and take turns */
#define GPSTI_TUNER_KNOWN_CALLS 8     /* where their memory stays for more runs, so that one too many costs little */
#define GPSTI_TUNER_CALLS_NS 500000   /* of an item that is mostly calls and copies */
#define GPSTI_TUNER_WHOLE_LOSS 1.1    /* of the engine's time at best */
#define GPSTI_TUNER_HANDING_NS 90000 /* of items on a device, about: 95 to 160 us in a virtual machine */
#define GPSTI_TUNER_NEARLY 0.75 /* of a device's time: with so much computing none of the workers is one too many */
#define GPSTI_TUNER_FAR_NS 2000000 /* a read that waits so long waits for more than a disk: others can, beside it */
#define GPSTI_TUNER_FAR_FILES 32
#define GPSTI_TUNER_WAITING_FILES 64 /* that wait for no disk at all, but for a network or their turn */
#define GPSTI_TUNER_WAIT_NS 500000
#define GPSTI_TUNER_BYTE_NS 10 /* of a read, from the slowest disk: 100 MB/s */
#define GPSTI_TUNER_UNSEEN_BYTES ((uint64_t)256 << 20) /* of host memory, at most, in an item nobody has seen */

GPSTI_INTERN uint32_t gpsti_tuner_clamp(uint64_t value, uint32_t least, uint32_t most) {
    return value < least ? least : value > most ? most : (uint32_t)value;
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
    gpsti_tuner_limit(tuner, GPST_KNOB_ITEMS, GPST_ITEMS_STAGED, GPST_ITEMS_WHOLE);
}

GPSTI_PRIVATE void gpsti_tuner_clamp_all(gpsti_tuner* tuner, gpst_settings* settings) {
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
        settings->value[k] =
            gpsti_tuner_clamp(settings->value[k], tuner->least.value[k], tuner->most.value[k]);
}

/* ---- the model: where the knobs start -------------------------------------------------------- */

/* is_far: it waits so long that others can, beside it. */
GPSTI_PRIVATE uint32_t gpsti_tuner_in_flight(const gpsti_tuner* tuner, int64_t service_ns, int64_t period_ns,
                                             bool is_far) {
    const uint32_t most = is_far                                             ? GPSTI_TUNER_FAR_FILES
                          : tuner->budget.preset == GPST_PRESET_THROUGHPUT ? 32
                                                                           : GPSTI_TUNER_FILES;
    return period_ns > 0 ? gpsti_tuner_clamp((uint64_t)(service_ns / period_ns) + 1, 1, most) : 4;
}

/* From so long on a read waits, but not for its bytes to come: any number of others can wait beside it. */
GPSTI_PRIVATE int64_t gpsti_tuner_far_ns(uint64_t bytes) {
    const uint64_t bytes_ns = bytes * GPSTI_TUNER_BYTE_NS;
    return bytes_ns > GPSTI_TUNER_WAIT_NS ? (int64_t)bytes_ns : GPSTI_TUNER_WAIT_NS;
}

GPSTI_PRIVATE bool gpsti_tuner_waits_far(const gpsti_tuner_costs* costs) {
    return costs->read_bytes > 0 &&
           costs->service_ns[GPST_RESOURCE_DISK_IN] >= gpsti_tuner_far_ns(costs->read_bytes);
}

/* As many again of reads that wait far: the first ones to come back are the short ones. */
GPSTI_PRIVATE uint32_t gpsti_tuner_reads_wanted(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs,
                                                int64_t period_ns) {
    const int64_t waits_ns = costs ? costs->service_ns[GPST_RESOURCE_DISK_IN] : 0;
    if (period_ns > 0 && gpsti_tuner_waits_far(costs))
        return gpsti_tuner_clamp(2 * ((uint64_t)(waits_ns / period_ns) + 1), 1, GPSTI_TUNER_WAITING_FILES);
    return gpsti_tuner_in_flight(tuner, costs ? waits_ns + costs->read_ns : 0, period_ns,
                                 waits_ns >= GPSTI_TUNER_FAR_NS);
}

GPSTI_PRIVATE uint32_t gpsti_tuner_reads(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs, int64_t period_ns) {
    const uint32_t wanted = gpsti_tuner_reads_wanted(tuner, costs, period_ns);
    const uint32_t enough = costs ? costs->reads_enough : 0;
    return enough > 0 && enough < wanted ? enough : wanted;
}

/* By Little's law, and as many again. */
GPSTI_INTERN uint32_t gpsti_tuner_reads_enough(int64_t read_ns, int64_t alone_ns, uint32_t n_at_once) {
    if (read_ns <= 0 || alone_ns <= 0)
        return 0;
    const uint64_t n = (uint64_t)(alone_ns * (int64_t)n_at_once / read_ns);
    return gpsti_tuner_clamp(2 * (n + 1), GPSTI_TUNER_FILES, UINT32_MAX);
}

GPSTI_PRIVATE bool gpsti_tuner_writes_far(const gpsti_tuner_costs* costs) {
    return costs && !costs->writes_compute && costs->service_ns[GPST_RESOURCE_DISK_OUT] >= GPSTI_TUNER_FAR_NS;
}

/* Is there a disk that is waited for, and may items wait for others with theirs? */
GPSTI_PRIVATE bool gpsti_tuner_syncs(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    const bool waits = costs && !costs->writes_compute && costs->service_ns[GPST_RESOURCE_DISK_OUT] > 0;
    return tuner->budget.syncs && waits && tuner->budget.preset != GPST_PRESET_LATENCY;
}

/* Those that are synced at once share what that costs the disk, so that it takes as many as it can. */
GPSTI_PRIVATE uint32_t gpsti_tuner_writes(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs, int64_t period_ns) {
    const int64_t service_ns = costs ? costs->service_ns[GPST_RESOURCE_DISK_OUT] : 0;
    const uint32_t n = gpsti_tuner_in_flight(tuner, service_ns, period_ns, gpsti_tuner_writes_far(costs));
    return gpsti_tuner_syncs(tuner, costs) && n < GPSTI_TUNER_FILES ? GPSTI_TUNER_FILES : n;
}

/* Slots for writes: what is written at once, or waits for it, is over soon; but not where it waits far, or for its turn
   to be synced. */
GPSTI_PRIVATE uint32_t gpsti_tuner_in_write(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    const uint32_t writes = tuner->now.value[GPST_KNOB_WRITES];
    const uint32_t outputs = tuner->budget.outputs > 1 ? tuner->budget.outputs : 1;
    uint32_t most = gpsti_tuner_writes_far(costs) ? GPSTI_TUNER_FAR_FILES : 4;
    if (!tuner->budget.writes)
        return 0;
    if (gpsti_tuner_syncs(tuner, costs) && most < GPSTI_TUNER_FILES / outputs)
        most = GPSTI_TUNER_FILES / outputs;
    return gpsti_tuner_clamp(writes, 1, most);
}

/* Slots for reads. Those that workers do have none of their own; behind one that waits far there are others that are
   over, and wait for their turn with the sink. */
GPSTI_PRIVATE uint32_t gpsti_tuner_in_read(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    const uint32_t reads = tuner->now.value[GPST_KNOB_READS];
    if (costs && costs->read_ns > 0 && reads > 1)
        return 1;
    return costs && gpsti_tuner_waits_far(costs) ? 2 * reads : reads;
}

/* The shortest time an item could take of the run: disks serve many at once, so they do not set it. A device that is
   played is on the workers' cores, and so is writing that waits for no disk. */
GPSTI_INTERN int64_t gpsti_tuner_period_ns(const gpsti_tuner_costs* costs, uint32_t workers) {
    const int64_t written_ns = costs->writes_compute ? costs->service_ns[GPST_RESOURCE_DISK_OUT] : 0;
    int64_t period_ns = (costs->service_ns[GPST_RESOURCE_CPU] + costs->played_ns + written_ns) / (int64_t)workers;
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
    memset(now, 0, sizeof *now);
    now->value[GPST_KNOB_WORKERS] = gpsti_tuner_useful_workers(tuner, costs, period_ns);
    now->value[GPST_KNOB_READS] = gpsti_tuner_reads(tuner, costs, files_ns);
    now->value[GPST_KNOB_WRITES] = gpsti_tuner_writes(tuner, costs, files_ns);
    now->value[GPST_KNOB_STREAMS] = 4;
    now->value[GPST_KNOB_BATCH] = gpsti_tuner_start_batch(costs);
    const uint32_t in_write = gpsti_tuner_in_write(tuner, costs);
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
    tuner->waits_far = costs && gpsti_tuner_waits_far(costs);
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

/* Item 0 may have loaded a device's kernels and waited for its memory: half of its time there is believed, and nothing
   of it where the file took longer. Writing that computes is work for the cores, whoever does it. */
GPSTI_PRIVATE void gpsti_tuner_believe(const gpsti_tuner_costs* costs, gpsti_tuner_costs* out) {
    const int64_t file_ns = costs->service_ns[GPST_RESOURCE_DISK_IN] + costs->read_ns;
    *out = *costs;
    for (int r = (int)GPST_RESOURCE_H2D; costs->is_first && r <= (int)GPST_RESOURCE_D2H; r++) {
        const int64_t half_ns = costs->service_ns[r] / 2;
        out->service_ns[r] = file_ns > half_ns ? 0 : half_ns;
    }
    if (!costs->writes_compute)
        return;
    out->service_ns[GPST_RESOURCE_CPU] += out->service_ns[GPST_RESOURCE_DISK_OUT];
    out->service_ns[GPST_RESOURCE_DISK_OUT] = 0;
}

/* Is a brief item mostly calls of a driver, which has no clock: neither reads nor computes, half of its way? */
GPSTI_PRIVATE bool gpsti_tuner_is_calls(const gpsti_tuner_costs* costs, int64_t way_ns) {
    const int64_t others_ns = costs->service_ns[GPST_RESOURCE_DISK_IN] + costs->service_ns[GPST_RESOURCE_CPU];
    return way_ns < GPSTI_TUNER_BUNCH_NS || (way_ns < GPSTI_TUNER_CALLS_NS && others_ns < way_ns / 2);
}

GPSTI_INTERN bool gpsti_tuner_in_turns(const gpsti_tuner* tuner, int64_t way_ns) {
    return tuner->budget.streams && way_ns < GPSTI_TUNER_CALLS_NS;
}

/* Brief items on a device tell too little to choose between three threads and six: one too few leaves it waiting, and
   one too many makes memory for nothing. */
GPSTI_PRIVATE uint32_t gpsti_tuner_settle_calls(const gpsti_tuner* tuner, int64_t way_ns, uint32_t n, uint32_t most) {
    const bool about = n + 1 >= GPSTI_TUNER_WHOLE_CALLS && n <= GPSTI_TUNER_WHOLE_CALLS + 2;
    if (tuner->budget.known || !gpsti_tuner_in_turns(tuner, way_ns) || !about)
        return n;
    return most < GPSTI_TUNER_WHOLE_CALLS ? most : GPSTI_TUNER_WHOLE_CALLS;
}

/* Is an item so long that others had better take part of it? Not where they all have their own. */
GPSTI_PRIVATE bool gpsti_tuner_is_shared(const gpsti_tuner* tuner, int64_t way_ns, uint32_t n_workers) {
    const bool all = n_workers == tuner->budget.workers && tuner->budget.outputs <= 1;
    return way_ns > (all ? GPSTI_TUNER_WHOLE_ALL_NS : GPSTI_TUNER_WHOLE_NS);
}

/* Does computing set the pace on n workers, or nearly so? Then one that is missing would be missed. */
GPSTI_PRIVATE bool gpsti_tuner_computes(const gpsti_tuner_costs* costs, int64_t period_ns, uint32_t n) {
    return (double)costs->service_ns[GPST_RESOURCE_CPU] >= GPSTI_TUNER_NEARLY * (double)period_ns * (double)n;
}

/* Of an item's CPU time in stages. Where a driver has each item alone most of it is waking those who wait for it. */
GPSTI_PRIVATE int64_t gpsti_tuner_handing_ns(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    const bool shared = tuner->budget.batch > 1 && gpsti_tuner_start_batch(costs) > 1;
    if (!tuner->budget.streams)
        return GPSTI_TUNER_ITEM_NS;
    return shared || costs->played_ns > 0 ? GPSTI_TUNER_BATCH_ITEM_NS : GPSTI_TUNER_HANDING_NS;
}

/* The engine's at its best, in stages. */
GPSTI_PRIVATE int64_t gpsti_tuner_staged_ns(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs, uint32_t n) {
    gpsti_tuner_costs handed = *costs;
    handed.service_ns[GPST_RESOURCE_CPU] += gpsti_tuner_handing_ns(tuner, costs);
    const int64_t files_ns = gpsti_tuner_files_ns(costs), others_ns = gpsti_tuner_period_ns(&handed, n);
    return files_ns > others_ns ? files_ns : others_ns;
}

/* Those who make files side by side in memory: one keeps the directory, and the others are elsewhere on their way. */
GPSTI_PRIVATE uint32_t gpsti_tuner_names(const gpsti_tuner* tuner, int64_t way_ns) {
    const int64_t names_ns = GPSTI_TUNER_NAME_NS * (int64_t)(tuner->budget.outputs > 1 ? tuner->budget.outputs : 1);
    return gpsti_tuner_clamp((uint64_t)(way_ns / names_ns) + 1, GPSTI_TUNER_WHOLE_NAMES, UINT32_MAX);
}

/* Of waiting for files there can be as much as there are workers; of a device's time not, so that more of them than
   keep it busy, and one that comes with the next, only stand in each other's way; nor of making files on a disk, for
   which the engine has few writers. It, too, works on no more items than there are slots; but where fewer fit the
   device its workers have the others meanwhile. */
GPSTI_INTERN uint32_t gpsti_tuner_whole_workers(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs) {
    const uint32_t* const most = tuner->most.value;
    const int64_t way_ns = gpsti_tuner_way_ns(costs);
    const bool makes_files = tuner->budget.writes > 0, in_turns = makes_files && !costs->files_in_memory;
    uint32_t n = most[GPST_KNOB_WORKERS] < most[GPST_KNOB_SLOTS] ? most[GPST_KNOB_WORKERS] : most[GPST_KNOB_SLOTS];
    gpsti_tuner_costs believed;
    gpsti_tuner_believe(costs, &believed);
    if (makes_files && !in_turns && n > gpsti_tuner_names(tuner, way_ns))
        n = gpsti_tuner_names(tuner, way_ns);
    const int64_t files_ns = gpsti_tuner_files_ns(costs), others_ns = gpsti_tuner_period_ns(&believed, n);
    const int64_t period_ns = files_ns > others_ns ? files_ns : others_ns;
    const uint32_t n_staged = n, calls = tuner->budget.known ? GPSTI_TUNER_KNOWN_CALLS : GPSTI_TUNER_WHOLE_CALLS;
    if (tuner->budget.streams && most[GPST_KNOB_STREAMS] < n)
        n = most[GPST_KNOB_STREAMS];
    if (period_ns <= 0 || (in_turns && n > GPSTI_TUNER_WHOLE_NAMES) ||
        (double)gpsti_tuner_total_ns(&believed) >
            GPSTI_TUNER_WHOLE_LOSS * (double)gpsti_tuner_staged_ns(tuner, &believed, n_staged) * (double)n)
        return 0;
    if (tuner->budget.streams && gpsti_tuner_is_calls(costs, way_ns) && n > calls)
        n = calls;
    const bool all = files_ns > others_ns || gpsti_tuner_computes(&believed, others_ns, n);
    const uint32_t useful = all ? n : gpsti_tuner_clamp((uint64_t)(way_ns / period_ns) + 1, 1, n);
    const uint32_t n_workers = gpsti_tuner_settle_calls(tuner, way_ns, useful, n);
    return gpsti_tuner_is_shared(tuner, way_ns, n_workers) ? 0 : n_workers;
}

GPSTI_INTERN uint32_t gpsti_tuner_fit_whole(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs,
                                            uint32_t n_workers, uint64_t n_left) {
    const bool brief = costs && gpsti_tuner_total_ns(costs) <= GPSTI_TUNER_BRIEF_NS;
    const uint64_t n_fit = n_left / (tuner->budget.outputs > 1 && !brief ? 4 : 2);
    if (n_workers <= n_fit)
        return n_workers;
    return brief && n_fit >= 2 ? (uint32_t)n_fit : 0;
}

GPSTI_INTERN int64_t gpsti_tuner_whole_period_ns(const gpsti_tuner_costs* costs, uint32_t n_workers) {
    const int64_t turn_ns = gpsti_tuner_total_ns(costs) / (int64_t)n_workers;
    const int64_t busy_ns = gpsti_tuner_period_ns(costs, n_workers);
    return turn_ns > busy_ns ? turn_ns : busy_ns;
}

/* So many files at once may take as many times as long and be no slower: then the disk, or the directory, serves them
   one after the other, and more of them would only wait longer. */
GPSTI_INTERN int64_t gpsti_tuner_file_alone_ns(int64_t file_ns, int64_t before_ns, uint32_t n_at_once) {
    return file_ns > before_ns && file_ns <= before_ns * (int64_t)n_at_once ? before_ns : file_ns;
}

GPSTI_INTERN void gpsti_tuner_set_items(gpsti_tuner* tuner, gpst_items items) {
    tuner->whole = items == GPST_ITEMS_WHOLE;
    tuner->now.value[GPST_KNOB_ITEMS] = (uint32_t)items;
    gpsti_tuner_limits(tuner);
    gpsti_tuner_clamp_all(tuner, &tuner->now);
    tuner->kept = tuner->now;
}

GPSTI_INTERN void gpsti_tuner_set_whole(gpsti_tuner* tuner, const gpsti_tuner_costs* costs, uint32_t n_workers,
                                        bool waits_for_turns) {
    tuner->alone_ns = gpsti_tuner_way_ns(costs);
    tuner->now.value[GPST_KNOB_WORKERS] = n_workers;
    if (!waits_for_turns) /* a worker has one, whatever it does */
        tuner->now.value[GPST_KNOB_SLOTS] = n_workers;
    gpsti_tuner_set_items(tuner, GPST_ITEMS_WHOLE);
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
    char is[16] = "", given[16] = "";
    gpsti_copy_text(reason, sizeof tuner->decisions[0].reason, "frozen: settings were given");
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++) {
        const size_t used = strlen(reason);
        if (settings->value[k] == 0 || settings->value[k] == tuner->kept.value[k])
            continue;
        (void)gpsti_setting_format(k, tuner->kept.value[k], is, sizeof is);
        (void)gpsti_setting_format(k, settings->value[k], given, sizeof given);
        gpsti_format(reason + used, sizeof tuner->decisions[0].reason - used, "%s%s %s, not %s", before,
                     gpst_knob_name((gpst_knob)k), is, given);
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
GPSTI_INTERN int64_t gpsti_tuner_expect_waits(gpsti_tuner* tuner, int64_t waits_ns, uint64_t bytes) {
    gpsti_tuner_costs costs;
    gpst_settings* const now = &tuner->now;
    const int64_t far_ns = gpsti_tuner_far_ns(bytes);
    if (bytes == 0 || waits_ns < far_ns)
        return bytes == 0 ? far_ns : far_ns - waits_ns;
    memset(&costs, 0, sizeof costs);
    costs.service_ns[GPST_RESOURCE_DISK_IN] = waits_ns;
    costs.read_bytes = bytes;
    tuner->waits_far = true;
    now->value[GPST_KNOB_READS] = GPSTI_TUNER_WAITING_FILES;
    gpsti_tuner_clamp_all(tuner, now);
    now->value[GPST_KNOB_SLOTS] += gpsti_tuner_in_read(tuner, &costs);
    gpsti_tuner_clamp_all(tuner, now);
    tuner->kept = *now;
    gpsti_tuner_hold_back(tuner);
    return 0;
}

/* About as many times as long as there are at once: they may be served one after the other, and more of them would only
   wait longer. Of the first ones, which came one by one, half as long; but not those that take a few times as long. */
GPSTI_PRIVATE bool gpsti_tuner_in_turn(int64_t read_ns, int64_t alone_ns, uint32_t n_at_once) {
    const int64_t in_turn_ns = alone_ns * (int64_t)n_at_once;
    return read_ns > in_turn_ns / 4 && read_ns < in_turn_ns * 2;
}

/* Where they are in turn after all, more of them cost memory and nothing else; whole items are worth more than that. */
GPSTI_INTERN bool gpsti_tuner_finds_waits(const gpsti_tuner* tuner, const gpsti_tuner_costs* costs, int64_t alone_ns) {
    const uint32_t* const now = tuner->now.value;
    const uint32_t wanted = gpsti_tuner_reads(tuner, costs, gpsti_tuner_files_period_ns(costs, tuner->budget.workers));
    const uint32_t most = tuner->most.value[GPST_KNOB_READS];
    if (!gpsti_tuner_waits_far(costs))
        return false;
    if (tuner->whole)
        return !gpsti_tuner_in_turn(costs->service_ns[GPST_RESOURCE_DISK_IN], alone_ns, now[GPST_KNOB_WORKERS]) &&
               gpsti_tuner_whole_workers(tuner, costs) == 0;
    return (wanted < most ? wanted : most) >= 2 * now[GPST_KNOB_READS];
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
