/* core/tuning/batch.c -- batches in front of a stage: what they take, who goes next, who is given up. Pure policies;
   docs/live.md ("Batches and deadlines") has the rule in words, and what a simulation of it gave. */
#include "../base/platform_internal.h"

#include "batch_internal.h"

#define GPSTI_BATCH_FORGET 128   /* batches without one of a size: what it took is forgotten, and it is tried again */
#define GPSTI_BATCH_TRY_AFTER 16 /* items that were late in a row: what batches take may have changed */

/* ---- what batches take ------------------------------------------------------------------------ */

/* The value that so many of the others do not exceed: of 32 the 29th. */
GPSTI_PRIVATE uint32_t gpsti_batch_high(const uint32_t* runs_us, uint32_t n) {
    const uint32_t rank = (n * 9 + 9) / 10; /* from 1 */
    uint32_t high = UINT32_MAX;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t n_up_to = 0;
        for (uint32_t k = 0; k < n; k++)
            n_up_to += runs_us[k] <= runs_us[i] ? 1 : 0;
        high = n_up_to >= rank && runs_us[i] < high ? runs_us[i] : high;
    }
    return high;
}

GPSTI_INTERN void gpsti_batch_times_add(gpsti_batch_times* times, uint32_t n, int64_t service_ns) {
    const int64_t us = service_ns / 1000;
    if (n == 0 || n > GPSTI_BATCH_MOST)
        return;
    times->latest[n] = ++times->n_all;
    for (uint32_t k = 1; k <= GPSTI_BATCH_MOST; k++)
        if (times->n_runs[k] > 1 && times->n_all - times->latest[k] > GPSTI_BATCH_FORGET) {
            times->n_runs[k] = 1;
            times->high_ns[k] = 0;
        }
    if (times->n_runs[n]++ == 0)
        return;
    const uint32_t n_counted = times->n_runs[n] - 1;
    const uint32_t n_kept = n_counted < GPSTI_BATCH_RUNS ? n_counted : GPSTI_BATCH_RUNS;
    times->runs_us[n][(n_counted - 1) % GPSTI_BATCH_RUNS] = us < 1 ? 1 : us < UINT32_MAX ? (uint32_t)us : UINT32_MAX;
    times->high_ns[n] = (int64_t)gpsti_batch_high(times->runs_us[n], n_kept) * 1000;
}

GPSTI_INTERN int64_t gpsti_batch_times_estimate(const gpsti_batch_times* times, uint32_t n) {
    uint32_t below = 0, above = 0;
    int64_t least_ns = 0; /* of all smaller sizes */
    for (uint32_t k = 1; k <= GPSTI_BATCH_MOST; k++) {
        if (times->high_ns[k] == 0)
            continue;
        below = k <= n ? k : below;
        above = k > n && above == 0 ? k : above;
        if (k <= n && times->high_ns[k] > least_ns)
            least_ns = times->high_ns[k];
    }
    if (below == n || (below == 0 && above == 0))
        return least_ns;
    if (below == 0)
        return times->high_ns[above];
    const int64_t beyond_ns = times->high_ns[below] * n / below;
    if (above == 0)
        return beyond_ns > least_ns ? beyond_ns : least_ns;
    const int64_t rise_ns = times->high_ns[above] - least_ns;
    return rise_ns > 0 ? least_ns + rise_ns * (n - below) / (above - below) : least_ns;
}

/* ---- who goes next -------------------------------------------------------------------------------- */

/* Items that are not late, by their numbers. */
typedef struct gpsti_batch_ready {
    const gpsti_batch_input* input;
    uint32_t n;
    uint32_t at[GPSTI_BATCH_MOST * 4]; /* more than so many need not be looked at */
} gpsti_batch_ready;

GPSTI_PRIVATE void gpsti_batch_find_ready(const gpsti_batch_input* input, gpsti_batch_ready* out) {
    const int64_t alone_ns = gpsti_batch_times_estimate(input->times, 1);
    out->input = input;
    out->n = 0;
    for (uint32_t i = 0; i < input->n_waiting; i++) {
        gpsti_batch_item* const item = &input->items[i];
        const bool late = item->deadline_ns != INT64_MAX && input->start_ns > item->deadline_ns - alone_ns;
        item->verdict = late ? GPSTI_BATCH_LATE : GPSTI_BATCH_WAIT;
        if (!late && out->n < GPSTI_BATCH_MOST * 4)
            out->at[out->n++] = i;
    }
}

/* The most items from number k on that are ready in time for the most urgent of them. With k > 0, of the first one's
   priority alone: nobody is given up for a lower one. */
GPSTI_PRIVATE uint32_t gpsti_batch_fits(const gpsti_batch_ready* ready, uint32_t k) {
    const gpsti_batch_item* const items = ready->input->items;
    int64_t urgent_ns = INT64_MAX;
    uint32_t fits = 0;
    for (uint32_t n = 1; n <= ready->input->most && k + n <= ready->n; n++) {
        const gpsti_batch_item* const last = &items[ready->at[k + n - 1]];
        if (k > 0 && last->priority != items[ready->at[0]].priority)
            break;
        urgent_ns = last->deadline_ns < urgent_ns ? last->deadline_ns : urgent_ns;
        if (urgent_ns == INT64_MAX ||
            ready->input->start_ns <= urgent_ns - gpsti_batch_times_estimate(ready->input->times, n))
            fits = n;
    }
    return fits;
}

/* The first item of the batch that serves most items in its time; *n: how large it is. */
GPSTI_PRIVATE uint32_t gpsti_batch_best(const gpsti_batch_ready* ready, uint32_t* n) {
    double most = 0.0;
    uint32_t best = 0;
    *n = 0;
    for (uint32_t k = 0; k < ready->n; k++) {
        const uint32_t fits = gpsti_batch_fits(ready, k);
        const int64_t ns = fits > 0 ? gpsti_batch_times_estimate(ready->input->times, fits) : 0;
        const double rate = (double)fits / (double)(ns > 0 ? ns : 1);
        if (rate > most * 1.0001) { /* of equal ones the first */
            most = rate;
            best = k;
            *n = fits;
        }
        if (fits == ready->input->most) /* nothing behind it is better */
            break;
    }
    return best;
}

/* All are late by an estimate that only a batch can correct: the last to expire goes, alone, now and then. */
GPSTI_PRIVATE uint32_t gpsti_batch_try(const gpsti_batch_input* input) {
    uint32_t last = 0;
    for (uint32_t i = 1; i < input->n_waiting; i++)
        last = input->items[i].deadline_ns > input->items[last].deadline_ns ? i : last;
    if (input->busy || input->n_waiting == 0 || input->items[last].deadline_ns <= input->start_ns ||
        input->n_late_before + input->n_waiting < GPSTI_BATCH_TRY_AFTER)
        return 0;
    input->items[last].verdict = GPSTI_BATCH_TAKE;
    return 1;
}

GPSTI_INTERN uint32_t gpsti_batch_choose(const gpsti_batch_input* input) {
    gpsti_batch_ready ready;
    uint32_t first = 0, n = 0;
    gpsti_batch_find_ready(input, &ready);
    if (ready.n == 0)
        return gpsti_batch_try(input);
    if (ready.n >= input->most) /* overload: more wait than go now */
        first = gpsti_batch_best(&ready, &n);
    else /* as many as are in time together; the others wait */
        n = gpsti_batch_fits(&ready, 0);
    for (uint32_t k = 0; k < first; k++)
        input->items[ready.at[k]].verdict = GPSTI_BATCH_SHED;
    for (uint32_t k = first; k < first + n; k++)
        input->items[ready.at[k]].verdict = GPSTI_BATCH_TAKE;
    return n;
}

/* ---- modes -------------------------------------------------------------------------------------------- */

/* A batch of n serves n / (n + 3.3) of what the largest could, where its fixed part is 3.3 times an item's (4 + 1.2 n
   ms): 71, 83, 91 %. One batch under way: the choice is made when the device is free; two: one is prepared while the
   other computes; three: and another for whatever stalls between them. */
GPSTI_INTERN gpsti_batch_preset gpsti_batch_preset_of(gpst_preset preset) {
    static const gpsti_batch_preset presets[] = {{16, 2, 0}, {8, 1, 1}, {16, 2, 0}, {32, 3, 0}};
    return presets[preset];
}
