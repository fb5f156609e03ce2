/* core/stats/timing.c -- which groups on a device are timed by events. A pure policy:
   counts nanoseconds, runs nothing. */
#include "../base/platform_internal.h"

#include "timing_internal.h"

#define GPSTI_TIMING_BRIEF_NS 1000000 /* groups that take longer, or come less often, are always timed */
#define GPSTI_TIMING_EACH 4           /* timed in a row, for each that is side by side */
#define GPSTI_TIMING_MANY 32          /* at most */
#define GPSTI_TIMING_PAUSE 6          /* times as many are not, from when the last of them must have ended, */
#define GPSTI_TIMING_SHIFT 1          /* and some more, so that what comes every few items is met */
#define GPSTI_TIMING_ALIKE 64         /* items in a row, where others came between */

GPSTI_INTERN bool gpsti_timing_takes(gpsti_timing* timing, uint64_t* number) {
    const uint64_t to = gpsti_a64_load(&timing->to);
    *number = gpsti_a64_add(&timing->n_submitted, 1);
    return to == 0 || (*number >= gpsti_a64_load(&timing->from) && *number < to);
}

GPSTI_PRIVATE bool gpsti_timing_is_all(const gpsti_timing* timing) { return gpsti_a64_load(&timing->to) == 0; }

/* Busy time an item of those few. */
GPSTI_PRIVATE int64_t gpsti_timing_rate_ns(const gpsti_timing* timing, const gpsti_busy* busy, int r) {
    return timing->n_known > 0 ? (busy[r].busy_ns - timing->before_ns[r]) / (int64_t)timing->n_known
                               : timing->rate_ns[r];
}

GPSTI_INTERN int64_t gpsti_timing_busy_ns(const gpsti_timing* timing, const gpsti_busy* busy, int r) {
    const bool is_timed = r >= (int)GPST_RESOURCE_H2D && r <= (int)GPST_RESOURCE_D2H;
    const int64_t n_taken = is_timed && timing->open ? (int64_t)(timing->n_since - timing->n_known) : 0;
    return busy[r].busy_ns + (n_taken > 0 ? n_taken * gpsti_timing_rate_ns(timing, busy, r) : 0);
}

/* An item that is no part of what is measured now, if anything is. */
GPSTI_PRIVATE void gpsti_timing_add_rates(gpsti_timing* timing, gpsti_busy* busy) {
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++) {
        busy[r].busy_ns += timing->rate_ns[r];
        timing->before_ns[r] += timing->rate_ns[r];
    }
}

/* So many say what each of them takes beside the others. */
GPSTI_PRIVATE uint32_t gpsti_timing_row(uint32_t n_beside) {
    const uint32_t n = GPSTI_TIMING_EACH * (n_beside > 1 ? n_beside : 1);
    return n < GPSTI_TIMING_MANY ? n : GPSTI_TIMING_MANY;
}

GPSTI_PRIVATE void gpsti_timing_plan(gpsti_timing* timing) {
    const uint64_t n = gpsti_timing_row(timing->n_beside);
    const uint64_t from = gpsti_a64_load(&timing->n_submitted) + GPSTI_TIMING_PAUSE * n + GPSTI_TIMING_SHIFT;
    gpsti_a64_store(&timing->from, from); /* before `to`: who reads between the two times a few more */
    gpsti_a64_store(&timing->to, from + n);
}

GPSTI_PRIVATE void gpsti_timing_save_busy(gpsti_timing* timing, const gpsti_busy* busy) {
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++)
        timing->before_ns[r] = busy[r].busy_ns;
}

GPSTI_PRIVATE void gpsti_timing_begin(gpsti_timing* timing, const gpsti_busy* busy, const gpsti_timing_item* item) {
    timing->open = true;
    timing->first = item->number;
    timing->first_ns = item->now_ns;
    timing->n_since = timing->n_known = 0;
    gpsti_timing_save_busy(timing, busy);
}

GPSTI_PRIVATE void gpsti_timing_end(gpsti_timing* timing, gpsti_busy* busy) {
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++) {
        const int64_t rate_ns = gpsti_timing_rate_ns(timing, busy, r);
        busy[r].busy_ns = gpsti_timing_busy_ns(timing, busy, r);
        timing->rate_ns[r] = rate_ns;
    }
    timing->open = false;
}

GPSTI_PRIVATE void gpsti_timing_time_all(gpsti_timing* timing, gpsti_busy* busy, uint32_t n) {
    if (timing->open)
        gpsti_timing_end(timing, busy);
    gpsti_a64_store(&timing->to, 0);
    timing->n_wanted = n;
    timing->n_groups = 0;
}

/* What is not like those before is not known by them. */
GPSTI_PRIVATE void gpsti_timing_compare(gpsti_timing* timing, gpsti_busy* busy, const gpsti_timing_item* item) {
    const bool is_first = timing->n_wanted == 0, alike = item->bytes == timing->item_bytes;
    if (is_first || (item->n_beside > 1) != (timing->n_beside > 1) || !alike)
        gpsti_timing_time_all(timing, busy,
                              !is_first && !alike ? GPSTI_TIMING_ALIKE : gpsti_timing_row(item->n_beside));
    timing->item_bytes = item->bytes;
    timing->n_beside = item->n_beside;
}

GPSTI_PRIVATE bool gpsti_timing_is_brief(const gpsti_timing* timing) {
    return timing->device_ns < GPSTI_TIMING_BRIEF_NS && timing->period_ns < GPSTI_TIMING_BRIEF_NS;
}

/* While all are timed: is it time for a few only? The first half of them found caches cold, or began together. */
GPSTI_PRIVATE void gpsti_timing_settle(gpsti_timing* timing, const gpsti_busy* busy) {
    if (timing->n_groups == timing->n_wanted / 2) {
        gpsti_timing_save_busy(timing, busy);
        timing->n_items = 0;
    }
    if (timing->n_groups < timing->n_wanted || !gpsti_timing_is_brief(timing))
        return;
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++)
        timing->rate_ns[r] = (busy[r].busy_ns - timing->before_ns[r]) / (int64_t)timing->n_items;
    gpsti_timing_plan(timing);
}

/* Not one of the few: it is taken for what they were. */
GPSTI_PRIVATE void gpsti_timing_take(gpsti_timing* timing, gpsti_busy* busy, const gpsti_timing_item* item) {
    const uint64_t from = gpsti_a64_load(&timing->from), to = gpsti_a64_load(&timing->to), number = item->number;
    if (to > 0 && number >= to + (to - from)) { /* by now all of them have ended or failed */
        if (timing->open)
            gpsti_timing_end(timing, busy);
        if (gpsti_timing_is_brief(timing))
            gpsti_timing_plan(timing);
        else
            gpsti_timing_time_all(timing, busy, GPSTI_TIMING_ALIKE);
    }
    if (timing->open && item->now_ns > timing->first_ns)
        timing->n_since++;
    else
        gpsti_timing_add_rates(timing, busy);
}

GPSTI_PRIVATE void gpsti_timing_add_group(gpsti_timing* timing, const gpsti_timing_item* item) {
    if (timing->latest_ns > 0)
        gpsti_work_average(&timing->period_ns, item->now_ns - timing->latest_ns);
    if (item->device_ns > 0)
        gpsti_work_average(&timing->device_ns, item->device_ns);
    timing->latest_ns = item->now_ns;
    timing->latest = item->number;
}

GPSTI_INTERN gpsti_timing_use gpsti_timing_enter(gpsti_timing* timing, gpsti_busy* busy,
                                                 const gpsti_timing_item* item) {
    const uint64_t number = item->number;
    const bool is_next = timing->n_wanted == 0 || number != timing->latest; /* items of a group come together */
    const bool is_timed = item->device_ns > 0;
    gpsti_timing_compare(timing, busy, item);
    if (gpsti_timing_is_all(timing) && is_next)
        gpsti_timing_settle(timing, busy);
    if (is_next)
        gpsti_timing_add_group(timing, item);
    if (gpsti_timing_is_all(timing) && is_timed) {
        timing->n_groups += is_next ? 1 : 0;
        timing->n_items++;
        return GPSTI_TIMING_COUNTS;
    }
    if (!is_timed || number < gpsti_a64_load(&timing->from) || number >= gpsti_a64_load(&timing->to)) {
        gpsti_timing_take(timing, busy, item);
        return GPSTI_TIMING_NOTHING;
    }
    if (!timing->open || number == timing->first) { /* all of its group */
        gpsti_timing_add_rates(timing, busy);
        gpsti_timing_begin(timing, busy, item);
        return GPSTI_TIMING_BEGINS;
    }
    timing->n_known = ++timing->n_since; /* who ended meanwhile had a part of that time, too */
    return GPSTI_TIMING_COUNTS;
}
