/* core/tuning/recall.c -- which run is remembered, when it is none to go by, and how many workers the next one is to
   try. A
   pure policy: keeps values, runs nothing. */
#include "../base/platform_internal.h"

#include "recall_internal.h"

#include <string.h>

#define GPSTI_RECALL_SLOWER 1.10 /* times as long as a run that knew nothing: more than chance */
#define GPSTI_RECALL_LEVEL 1.03  /* where the other way need not find out anything first */
#define GPSTI_RECALL_RUNS 32     /* after which machine and items may be others */
#define GPSTI_RECALL_PAUSE 8     /* runs at first */
#define GPSTI_RECALL_LONGER 4    /* times as many each time */
#define GPSTI_RECALL_OTHER 2.0   /* times as much or as little of a resource: another item */
#define GPSTI_RECALL_BETTER 0.97 /* of the time with another number of workers */
#define GPSTI_RECALL_CLEARLY 0.85 /* once is enough */
#define GPSTI_RECALL_FULL 0.97   /* of a run, for which a copy engine is busy: no number is better by much */
#define GPSTI_RECALL_SEEN_NS 15000 /* of an item there: of less, much is what each beginning and end takes */
#define GPSTI_RECALL_TURNS 2     /* else runs with each, of which the shorter counts */

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

/* ---- workers ------------------------------------------------------------------------------------------ */

/* The least step that would show: of a list of 64 items 16 workers are done after four each, 14 after five. */
GPSTI_PRIVATE uint32_t gpsti_recall_least(uint32_t n) { return (n + 7) / 8; }

/* Half as many again, or all that there can be where that is about as many; closely, by the least step. 0 = there can
   be none that would show. */
GPSTI_PRIVATE uint32_t gpsti_recall_more(uint32_t n, bool closely, uint32_t most) {
    const uint32_t least = n + gpsti_recall_least(n), wanted = closely ? least : n + (n + 1) / 2;
    const uint32_t more = wanted + (closely ? 0 : wanted / 4) >= most ? most : wanted;
    return more >= least ? more : 0;
}

/* Two thirds; closely, by the least step, unless that is as many. 0 = of those each would have to be faster than the
   plain loop. */
GPSTI_PRIVATE uint32_t gpsti_recall_fewer(const gpsti_recall_workers* self) {
    const uint32_t thirds = 2 * self->best / 3, least = self->best - gpsti_recall_least(self->best);
    const uint32_t n = !self->closely ? thirds : least > thirds ? least : 0;
    return self->serial_ns < (double)n * self->best_ns ? n : 0;
}

GPSTI_PRIVATE uint32_t gpsti_recall_next(gpsti_recall_workers* self, uint32_t most) {
    const uint32_t fewer = self->step < 0 ? gpsti_recall_fewer(self) : 0;
    if (self->step < 0 && fewer == 0)
        self->step = self->moved ? 0 : 1;
    return self->step > 0 ? gpsti_recall_more(self->best, self->closely, most) : fewer;
}

/* Fewer as long as that is better, or else more; and then the same in small steps: one too many in line may cost as
   much as all the others gain. */
GPSTI_PRIVATE void gpsti_recall_step(gpsti_recall_workers* self, uint32_t most) {
    uint32_t next = gpsti_recall_next(self, most);
    if (next == 0 && !self->closely) {
        self->closely = true;
        self->moved = false;
        self->step = -1;
        next = gpsti_recall_next(self, most);
    }
    self->step = next == 0 ? 0 : self->step;
    self->now = next == 0 ? self->best : next;
    self->n_now = 0;
}

GPSTI_PRIVATE bool gpsti_recall_is_better(const gpsti_recall_workers* self, double than) {
    return self->now_ns < than * self->best_ns;
}

GPSTI_PRIVATE void gpsti_recall_weigh(gpsti_recall_workers* self, uint32_t most) {
    const bool is_first = self->best == 0, is_better = gpsti_recall_is_better(self, GPSTI_RECALL_BETTER);
    self->is_top = self->is_top || (is_better ? self->now < self->best : !is_first && self->now > self->best);
    if (is_first)
        self->step = -1;
    else if (!is_better)
        self->step = self->step < 0 && !self->moved ? 1 : 0;
    if (is_first || is_better) {
        self->best = self->now;
        self->best_ns = self->now_ns;
        self->moved = is_better;
    }
    gpsti_recall_step(self, most);
}

/* Where the model wants all that there can be, all there are: and more when their memory has become worth it. */
GPSTI_PRIVATE bool gpsti_recall_searches(const gpsti_recall_workers* self, uint32_t n, uint32_t most) {
    return self->best == 0 ? n < most : self->step != 0;
}

/* None more were worse, and there can be more: their memory has become worth it. */
GPSTI_PRIVATE bool gpsti_recall_has_room(const gpsti_recall_workers* self, uint32_t most) {
    return self->step == 0 && !self->is_top && gpsti_recall_more(self->best, false, most) > 0;
}

GPSTI_PRIVATE bool gpsti_recall_is_full(const gpsti_recall_workers* self, double copies_ns, double run_ns) {
    const bool is_full = copies_ns >= GPSTI_RECALL_SEEN_NS && copies_ns >= GPSTI_RECALL_FULL * run_ns;
    return is_full && (self->best == 0 || run_ns * GPSTI_RECALL_BETTER <= self->best_ns);
}

GPSTI_PRIVATE void gpsti_recall_settle(gpsti_recall_workers* self, uint32_t n, double run_ns) {
    self->best = self->now = n;
    self->best_ns = run_ns;
    self->n_now = 0;
    self->step = 0;
    self->is_top = true;
}

/* A run with so many has been. */
GPSTI_PRIVATE void gpsti_recall_note_workers(gpsti_recall_workers* self, const gpsti_recalled* run, double run_ns) {
    const uint32_t n = run->n_workers, most = run->most_whole;
    if (gpsti_recall_has_room(self, most)) {
        self->step = 1;
        self->closely = false;
        gpsti_recall_step(self, most);
        return;
    }
    if (!gpsti_recall_searches(self, n, most))
        return;
    if (gpsti_recall_is_full(self, run->copies_ns, run_ns)) {
        gpsti_recall_settle(self, n, run_ns);
        return;
    }
    if (n != self->now) {
        self->now = n;
        self->n_now = 0;
    }
    self->now_ns = self->n_now == 0 || run_ns < self->now_ns ? run_ns : self->now_ns;
    if (++self->n_now == GPSTI_RECALL_TURNS || gpsti_recall_is_better(self, GPSTI_RECALL_CLEARLY))
        gpsti_recall_weigh(self, most);
}

/* ---- runs ----------------------------------------------------------------------------------------------- */

/* Two in a row were slower: true, it is to be found out anew. */
GPSTI_PRIVATE bool gpsti_recall_is_wrong(gpsti_recalled* run) {
    if (run->inside_ns <= 0.0)
        return true;
    run->pause = run->pause == 0 ? GPSTI_RECALL_PAUSE : GPSTI_RECALL_LONGER * run->pause;
    run->n_rest = run->pause;
    return false;
}

/* Not only old. */
GPSTI_PRIVATE bool gpsti_recall_is_slow(const gpsti_recalled* run) { return run->n_slower >= 2; }

GPSTI_INTERN uint32_t gpsti_recall_workers_then(const gpsti_recalled* known) {
    const gpsti_recall_workers* const workers = &known->workers;
    if (workers->best > 0)
        return workers->best;
    return workers->now > 0 || gpsti_recall_is_slow(known) || known->most_whole == 0 ? workers->now : known->n_workers;
}

/* The number of workers that was found is where the next search begins: closely, if only time has passed. */
GPSTI_PRIVATE void gpsti_recall_renew(gpsti_recalled* run, const gpsti_recalled* known) {
    const bool rests = known->n_rest > 0 && !known->is_old;
    run->pause = known->is_old ? 0 : known->pause;
    run->n_runs = rests ? known->n_runs + 1 : 0;
    run->n_rest = rests ? known->n_rest - 1 : 0;
    run->workers.now = gpsti_recall_workers_then(known);
    run->workers.closely = known->workers.closely && !gpsti_recall_is_slow(known);
    if (!gpsti_recall_is_slow(known) && run->n_slots < known->n_slots) /* they have their memory */
        run->n_slots = known->n_slots;
}

/* A run that knew its items: was it wrong in that? */
GPSTI_PRIVATE bool gpsti_recall_compare(gpsti_recalled* run, const gpsti_recalled* known) {
    const double more = run->inside_ns > 0.0 ? GPSTI_RECALL_LEVEL : GPSTI_RECALL_SLOWER;
    const double run_ns = run->run_ns;
    run->pause = known->pause;
    run->n_runs = known->n_runs + 1;
    run->run_ns = known->run_ns;
    run->workers = known->workers;
    run->workers.serial_ns = run->serial_ns;
    if (run->most_whole > 0) {
        if (!run->made_memory)
            gpsti_recall_note_workers(&run->workers, run, run_ns);
        else if (run->workers.now == 0 && run->n_workers < run->most_whole)
            run->workers.now = run->n_workers;
        if (gpsti_recall_searches(&run->workers, run->n_workers, run->most_whole)) /* some are to be slower */
            return false;
    }
    run->n_slower = run_ns > more * known->run_ns ? known->n_slower + 1 : 0;
    return gpsti_recall_is_slow(run) && gpsti_recall_is_wrong(run);
}

GPSTI_INTERN void gpsti_recall_put(gpsti_recall* recall, const gpsti_recalled* seen, bool knew) {
    gpsti_recalled run = *seen;
    const uint32_t i = gpsti_recall_index(recall, seen->job);
    run.n_runs = run.n_slower = run.pause = run.n_rest = 0;
    if (i < recall->n) {
        if (knew)
            run.is_old = gpsti_recall_compare(&run, &recall->known[i]);
        else
            gpsti_recall_renew(&run, &recall->known[i]);
        gpsti_recall_take_out(recall, i);
    }
    run.is_old = run.is_old || run.n_runs == GPSTI_RECALL_RUNS;
    if (recall->n == GPSTI_RECALL_MOST)
        gpsti_recall_take_out(recall, 0);
    recall->known[recall->n++] = run;
}

GPSTI_PRIVATE uint32_t gpsti_recall_brief_index(const gpsti_recall* recall, uint64_t job) {
    uint32_t i = 0;
    while (i < recall->n_brief && recall->brief[i] != job)
        i++;
    return i;
}

GPSTI_INTERN bool gpsti_recall_is_brief(const gpsti_recall* recall, uint64_t job) {
    return gpsti_recall_brief_index(recall, job) < recall->n_brief;
}

GPSTI_INTERN void gpsti_recall_note_first(gpsti_recall* recall, uint64_t job, bool is_brief) {
    const uint32_t i = gpsti_recall_brief_index(recall, job), out = i < recall->n_brief ? i : 0;
    if (i < recall->n_brief || (is_brief && recall->n_brief == GPSTI_RECALL_MOST)) {
        recall->n_brief--;
        memmove(&recall->brief[out], &recall->brief[out + 1], (recall->n_brief - out) * sizeof *recall->brief);
    }
    if (is_brief && job != 0)
        recall->brief[recall->n_brief++] = job;
}

/* What a run begins and ends with is more of a shorter one. */
GPSTI_INTERN bool gpsti_recall_serves(const gpsti_recalled* known, uint64_t n_items) {
    return !known->is_old && known->n_rest == 0 && 2 * n_items >= known->n_items;
}

/* Side by side each takes longer, if it has to wait for the others. */
GPSTI_PRIVATE bool gpsti_recall_is_more(int64_t more_ns, uint32_t n_more, int64_t less_ns, uint32_t n_less) {
    const double beside = n_more > n_less && n_less > 0 ? (double)n_more / (double)n_less : 1.0;
    return (double)more_ns > GPSTI_RECALL_OTHER * beside * (double)less_ns;
}

GPSTI_INTERN bool gpsti_recall_differs(const gpsti_tuner_costs* then, uint32_t n_then, const gpsti_tuner_costs* now,
                                       uint32_t n_now) {
    const int64_t total_ns = gpsti_tuner_total_ns(then);
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        const int64_t a = then->service_ns[r], b = now->service_ns[r], apart = a > b ? a - b : b - a;
        if (apart > total_ns / 4 &&
            (gpsti_recall_is_more(a, n_then, b, n_now) || gpsti_recall_is_more(b, n_now, a, n_then)))
            return true;
    }
    return false;
}
