/* core/tuning/guard.c -- is the engine worth having in this run? A pure policy: counts
   nanoseconds, runs nothing. */
#include "../base/platform_internal.h"

#include "guard_internal.h"

#include <string.h>

#define GPSTI_GUARD_BLOCKS 2     /* of each plain loop, each between windows of the engine */
#define GPSTI_GUARD_MOST_ITEMS 16
#define GPSTI_GUARD_PART 16      /* of what is left, for a block of a loop that is expected to be the faster one */
#define GPSTI_GUARD_ENGINE 1u    /* GPST_RUN_ENGINE; the plain loops are 2 and 3 */
#define GPSTI_GUARD_PLAIN 2u
#define GPSTI_GUARD_WIN 0.98     /* the plain loop must be faster by more than chance */
#define GPSTI_GUARD_PAUSE_NS 150000.0 /* about what it takes until workers sleep and are awake again */
#define GPSTI_GUARD_EXPECTED 0.80 /* likewise where only clocks say so; they rather say too much of a plain loop */

static const char* const gpsti_guard_names[] = {"", "engine", "plain-serial", "plain-inside"};

GPSTI_PRIVATE double gpsti_guard_engine_ns(const gpsti_guard* guard) {
    return guard->n_windows > 0 ? guard->engine_sum_ns / (double)guard->n_windows : 0.0;
}

/* Measured where it was, else expected. */
GPSTI_PRIVATE double gpsti_guard_plain_ns(const gpsti_guard* guard, const gpsti_guard_input* input, int p) {
    return guard->n_items[p] > 0 ? (double)guard->block_ns[p] / (double)guard->n_items[p] : input->plain_ns[p];
}

/* A hundredth of the run may go for comparing; of a run of unknown length, of what has been. */
GPSTI_PRIVATE double gpsti_guard_allowance_ns(const gpsti_guard* guard, const gpsti_guard_input* input) {
    const double run_ns = (double)input->elapsed_ns + (double)input->n_left * gpsti_guard_engine_ns(guard);
    return run_ns / 100.0 - (double)guard->report.cost_ns;
}

/* What the plain loop would have to be, to be better than what takes other_ns. */
GPSTI_PRIVATE double gpsti_guard_bar_ns(const gpsti_guard* guard, int p, double other_ns) {
    return other_ns * (guard->n_items[p] > 0 ? GPSTI_GUARD_WIN : GPSTI_GUARD_EXPECTED);
}

GPSTI_PRIVATE void gpsti_guard_decide(gpsti_guard* guard, const gpsti_guard_input* input, bool measured) {
    gpst_guard_report* const report = &guard->report;
    const double engine_ns = gpsti_guard_engine_ns(guard);
    double best_ns = engine_ns, nearest_ns = 0.0;
    uint32_t nearest = GPSTI_GUARD_PLAIN;
    guard->decided = true;
    guard->loop = GPSTI_GUARD_ENGINE;
    for (int p = 0; p < GPSTI_GUARD_LOOPS; p++) {
        const double plain_ns = gpsti_guard_plain_ns(guard, input, p);
        if (plain_ns > 0.0 && (nearest_ns <= 0.0 || plain_ns < nearest_ns)) {
            nearest_ns = plain_ns;
            nearest = GPSTI_GUARD_PLAIN + (uint32_t)p;
        }
        if (plain_ns > 0.0 && plain_ns < gpsti_guard_bar_ns(guard, p, best_ns)) {
            best_ns = plain_ns;
            guard->loop = GPSTI_GUARD_PLAIN + (uint32_t)p;
        }
    }
    report->engine_ns = engine_ns;
    report->plain_serial_ns = gpsti_guard_plain_ns(guard, input, 0);
    report->plain_inside_ns = gpsti_guard_plain_ns(guard, input, 1);
    report->measured = measured;
    const int hundredths = (int)(nearest_ns / engine_ns * 100.0 + 0.5);
    gpsti_format(report->text, sizeof report->text, "%s stays: the engine is %d.%02dx %s (%s)",
                 gpsti_guard_names[guard->loop], hundredths / 100, hundredths % 100,
                 gpsti_guard_names[nearest], measured ? "measured" : "by its stages' clocks");
}

/* What is expected to gain need not be afforded. */
GPSTI_PRIVATE bool gpsti_guard_expects_gain(const gpsti_guard* guard, const gpsti_guard_input* input, int p) {
    return guard->n_items[p] == 0 && input->n_left > 0 &&
           input->plain_ns[p] < gpsti_guard_bar_ns(guard, p, gpsti_guard_engine_ns(guard));
}

/* The loop with the fewest blocks so far; -1: all have enough. */
GPSTI_PRIVATE int gpsti_guard_next(const gpsti_guard* guard, const gpsti_guard_input* input) {
    int next = -1;
    for (int p = 0; p < GPSTI_GUARD_LOOPS; p++)
        if (input->plain_ns[p] > 0.0 && guard->n_blocks[p] < GPSTI_GUARD_BLOCKS &&
            (next < 0 || guard->n_blocks[p] < guard->n_blocks[next]))
            next = p;
    return next;
}

GPSTI_INTERN uint32_t gpsti_guard_ask(gpsti_guard* guard, const gpsti_guard_input* input, uint64_t* n_items) {
    *n_items = 0;
    if (guard->decided || input->engine_ns <= 0.0)
        return GPSTI_GUARD_ENGINE;
    guard->n_windows++;
    guard->engine_sum_ns += input->engine_ns;
    const int next = gpsti_guard_next(guard, input);
    if (next < 0) {
        gpsti_guard_decide(guard, input, true);
        return GPSTI_GUARD_ENGINE;
    }
    /* A block costs what its items take longer, and one item's time until the engine is empty and full again. */
    const double plain_ns = gpsti_guard_plain_ns(guard, input, next);
    const double allowance_ns = gpsti_guard_allowance_ns(guard, input) - GPSTI_GUARD_PAUSE_NS;
    const bool gains = gpsti_guard_expects_gain(guard, input, next);
    guard->input = *input;
    if (!gains && 2.0 * plain_ns > allowance_ns) {
        gpsti_guard_decide(guard, input, false);
        guard->decided = input->n_left != 0; /* else there will be more to spend */
        return GPSTI_GUARD_ENGINE;
    }
    const double n = gains ? (double)input->n_left / GPSTI_GUARD_PART : allowance_ns / 4.0 / plain_ns;
    *n_items = n < 1.0 ? 1 : n > GPSTI_GUARD_MOST_ITEMS ? GPSTI_GUARD_MOST_ITEMS : (uint64_t)n;
    return GPSTI_GUARD_PLAIN + (uint32_t)next;
}

GPSTI_INTERN void gpsti_guard_note(gpsti_guard* guard, uint32_t loop, uint64_t n_items, int64_t block_ns,
                                   int64_t cost_ns) {
    const uint32_t p = loop - GPSTI_GUARD_PLAIN;
    guard->n_blocks[p]++;
    guard->n_items[p] += n_items;
    guard->block_ns[p] += block_ns;
    guard->report.plain_items += n_items;
    guard->report.cost_ns += cost_ns > 0 ? cost_ns : 0;
    const double engine_ns = gpsti_guard_engine_ns(guard);
    if ((double)block_ns / (double)n_items < engine_ns * GPSTI_GUARD_EXPECTED) /* no more need be known */
        gpsti_guard_decide(guard, &guard->input, true);
}

GPSTI_INTERN void gpsti_guard_forget(gpsti_guard* guard) {
    const gpst_guard_report before = guard->report;
    memset(guard, 0, sizeof *guard);
    guard->report = before;
}
