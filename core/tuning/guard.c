/* core/tuning/guard.c -- is the engine worth having in this run? A pure policy: counts nanoseconds, runs nothing. */
#include "../base/platform_internal.h"

#include "guard_internal.h"

#define GPSTI_GUARD_NEAR 1.2 /* times what an item takes of the engine: a plain loop that could be there is measured */
#define GPSTI_GUARD_PART 64  /* of the rest of the run, for that */
#define GPSTI_GUARD_MOST 16  /* items at most */
#define GPSTI_GUARD_WIN 0.98 /* the plain loop must be faster by more than chance */
#define GPSTI_GUARD_CORES_BUSY 0.70 /* by us and others: services may have waited for a core */
#define GPSTI_GUARD_STAY_DRIFT 1.2  /* times the first block's time: slower */

/* Services that had a core whenever they wanted one take what they took, but of a disk its busy time, since they ran
   side by side. Else they waited for each other and for other programs. Then the CPU time counts alone, and no more of
   it than the cores could give that other programs left. */
GPSTI_PRIVATE double gpsti_guard_host_ns(const gpsti_tuner_window* window, uint32_t cores, double others) {
    const int disks[] = {(int)GPST_RESOURCE_DISK_IN, (int)GPST_RESOURCE_DISK_OUT};
    const double cores_ns = (double)cores * (double)window->wall_ns;
    const double ours_ns = (1.0 - (others > 0.0 ? others : 0.0)) * cores_ns, computed_ns = (double)window->cpu_ns;
    double host_ns = (double)window->service_ns[GPST_RESOURCE_CPU];
    if (others < 0.0 || computed_ns > ours_ns - (1.0 - GPSTI_GUARD_CORES_BUSY) * cores_ns)
        return computed_ns < ours_ns ? computed_ns : ours_ns;
    for (int d = 0; d < 2; d++) {
        const int64_t service_ns = window->service_ns[disks[d]], busy_ns = window->busy_ns[disks[d]];
        host_ns += (double)(busy_ns < service_ns ? busy_ns : service_ns);
    }
    return host_ns;
}

GPSTI_INTERN gpsti_guard_estimate gpsti_guard_expect(const gpsti_tuner_window* window, uint32_t cores, double others,
                                                     double source_ns) {
    const double n = (double)window->n_items;
    gpsti_guard_estimate plain = {source_ns, gpsti_guard_host_ns(window, cores, others) / n};
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        const bool on_device = r >= (int)GPST_RESOURCE_H2D && r <= (int)GPST_RESOURCE_D2H;
        const double item_ns = (double)(on_device ? window->busy_ns[r] : window->service_ns[r]) / n;
        plain.ns += item_ns;
        plain.said_ns += on_device ? item_ns : 0.0;
    }
    return plain;
}

GPSTI_PRIVATE void gpsti_guard_decide(gpsti_guard* guard, bool measured) {
    gpst_guard_report* const report = &guard->report;
    guard->decided = true;
    guard->plain = measured && report->plain_ns < GPSTI_GUARD_WIN * report->engine_ns;
    report->measured = measured;
    const int hundredths = (int)(report->plain_ns / report->engine_ns * 100.0 + 0.5);
    if (report->plain_ns <= 0.0)
        gpsti_format(report->text, sizeof report->text, "the engine stays: the plain loop was not measured");
    else
        gpsti_format(report->text, sizeof report->text, "%s stays: the engine is %s%d.%02dx the plain loop (%s)",
                     guard->plain ? "the plain loop" : "the engine", measured ? "" : "about ", hundredths / 100,
                     hundredths % 100, measured ? "measured" : "estimated from clocks, not measured");
}

GPSTI_INTERN uint64_t gpsti_guard_ask(gpsti_guard* guard, double engine_ns, gpsti_guard_estimate plain,
                                      uint64_t n_left) {
    if (guard->decided || engine_ns <= 0.0 || plain.ns <= 0.0)
        return 0;
    guard->report.engine_ns = engine_ns;
    guard->report.plain_ns = plain.said_ns > engine_ns ? plain.said_ns : 0.0;
    const uint64_t n = n_left / GPSTI_GUARD_PART;
    if (plain.ns > GPSTI_GUARD_NEAR * engine_ns || n == 0) {
        gpsti_guard_decide(guard, false);
        return 0;
    }
    return n < GPSTI_GUARD_MOST ? n : GPSTI_GUARD_MOST;
}

GPSTI_INTERN void gpsti_guard_end_block(gpsti_guard* guard, uint64_t n_items, int64_t block_ns) {
    guard->report.plain_ns = (double)block_ns / (double)n_items;
    guard->report.plain_items += n_items;
    gpsti_guard_decide(guard, true);
}

GPSTI_INTERN bool gpsti_guard_watch(gpsti_guard* guard, uint64_t n_items, int64_t block_ns) {
    const double item_ns = (double)block_ns / (double)n_items;
    guard->report.plain_items += n_items;
    if (guard->stay_ns <= 0.0)
        guard->stay_ns = item_ns;
    guard->n_drifted = item_ns > GPSTI_GUARD_STAY_DRIFT * guard->stay_ns ? guard->n_drifted + 1 : 0;
    return guard->n_drifted >= 2;
}

GPSTI_INTERN void gpsti_guard_forget(gpsti_guard* guard) {
    const uint64_t plain_items = guard->report.plain_items;
    const gpsti_guard none = GPST_ZERO;
    *guard = none;
    guard->report.plain_items = plain_items;
}
