/* core/recall.c -- which run is remembered, and when it is none to go by. A pure policy: keeps values, runs nothing. */
#include "platform_internal.h"

#include "recall_internal.h"

#include <string.h>

#define GPSTI_RECALL_SLOWER 1.10 /* times as long as a run that knew nothing: more than chance */
#define GPSTI_RECALL_LEVEL 1.03  /* where the other way need not find out anything first */
#define GPSTI_RECALL_RUNS 32     /* after which machine and items may be others */
#define GPSTI_RECALL_PAUSE 8     /* runs at first */
#define GPSTI_RECALL_LONGER 4    /* times as many each time */
#define GPSTI_RECALL_OTHER 2     /* times as much or as little of a resource: another item */

GPSTI_PRIVATE uint32_t gpsti_recall_index(const gpsti_recall* recall, uint64_t job) {
    uint32_t i = 0;
    while (i < recall->n && recall->known[i].job != job)
        i++;
    return i;
}

GPSTI_PRIVATE void gpsti_recall_take_out(gpsti_recall* recall, uint32_t index) {
    recall->n--;
    memmove(&recall->known[index], &recall->known[index + 1], (recall->n - index) * sizeof *recall->known);
}

GPSTI_INTERN const gpsti_recalled* gpsti_recall_find(const gpsti_recall* recall, uint64_t job) {
    const uint32_t i = gpsti_recall_index(recall, job);
    return i < recall->n ? &recall->known[i] : NULL;
}

GPSTI_INTERN void gpsti_recall_forget(gpsti_recall* recall, uint64_t job) {
    const uint32_t i = gpsti_recall_index(recall, job);
    if (i < recall->n)
        gpsti_recall_take_out(recall, i);
}

/* Two in a row were slower: false, the job is forgotten. */
GPSTI_PRIVATE bool gpsti_recall_rests(gpsti_recalled* run) {
    run->pause = run->pause == 0 ? GPSTI_RECALL_PAUSE : GPSTI_RECALL_LONGER * run->pause;
    run->n_rest = run->pause;
    return run->inside_ns > 0.0;
}

GPSTI_PRIVATE bool gpsti_recall_compare(gpsti_recalled* run, const gpsti_recalled* known, bool knew) {
    const double more = run->inside_ns > 0.0 ? GPSTI_RECALL_LEVEL : GPSTI_RECALL_SLOWER;
    run->pause = known->pause;
    if (!knew) {
        run->n_runs = known->n_rest > 0 ? known->n_runs + 1 : 0;
        run->n_rest = known->n_rest > 0 ? known->n_rest - 1 : 0;
        return true;
    }
    const double run_ns = run->run_ns;
    run->n_runs = known->n_runs + 1;
    run->run_ns = known->run_ns;
    run->n_slower = run_ns > more * known->run_ns ? known->n_slower + 1 : 0;
    return run->n_slower < 2 || gpsti_recall_rests(run);
}

GPSTI_INTERN void gpsti_recall_put(gpsti_recall* recall, const gpsti_recalled* seen, bool knew) {
    gpsti_recalled run = *seen;
    const uint32_t i = gpsti_recall_index(recall, seen->job);
    bool stays = true;
    run.n_runs = run.n_slower = run.pause = run.n_rest = 0;
    if (i < recall->n) {
        stays = gpsti_recall_compare(&run, &recall->known[i], knew);
        gpsti_recall_take_out(recall, i);
    }
    if (!stays || run.n_runs == GPSTI_RECALL_RUNS)
        return;
    if (recall->n == GPSTI_RECALL_MOST)
        gpsti_recall_take_out(recall, 0);
    recall->known[recall->n++] = run;
}

/* What a run begins and ends with is more of a shorter one. */
GPSTI_INTERN bool gpsti_recall_serves(const gpsti_recalled* known, uint64_t n_items) {
    return known->n_rest == 0 && 2 * n_items >= known->n_items;
}

GPSTI_INTERN bool gpsti_recall_differs(const gpsti_tuner_costs* then, const gpsti_tuner_costs* now) {
    const int64_t total_ns = gpsti_tuner_total_ns(then);
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        const int64_t a = then->service_ns[r], b = now->service_ns[r];
        const int64_t more = a > b ? a : b, less = a > b ? b : a;
        if (more > GPSTI_RECALL_OTHER * less && more - less > total_ns / 4)
            return true;
    }
    return false;
}
