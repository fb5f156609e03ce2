/* core/memory/ring_depth.c -- how many slots an adaptive ring should use. A pure policy: it moves no slot and asks no
   clock.

   A deeper ring can only help where both sides wait in turn: producers find it full at one time, consumers find it
   empty at another. The smaller of the two times is what a deeper ring may gain: the loss. Where one side alone waits,
   the other one is the bottleneck, and more slots would only make items older. */
#include "../base/platform_internal.h"

#include "ring_depth_internal.h"

#include <string.h>

#define GPSTI_RING_DEPTH_STARVED 0.02 /* of the time: a smaller loss is none */
#define GPSTI_RING_DEPTH_GAIN 0.02    /* of the loss, by a deepening: bursts of 25 depths are reached */
#define GPSTI_RING_DEPTH_DRIFT 0.20   /* another rate is another job */
#define GPSTI_RING_DEPTH_PATIENCE 2   /* starved or drifted intervals in a row: one may be a change of phase */
#define GPSTI_RING_DEPTH_IDLE 4       /* idle intervals in a row, at first */
#define GPSTI_RING_DEPTH_REST 8       /* intervals after a deepening that failed, at first */
#define GPSTI_RING_DEPTH_MOST 65536   /* of either, after doublings: two hours of the shortest intervals */

GPSTI_INTERN void gpsti_ring_depth_init(gpsti_ring_depth* policy, uint32_t min_depth, uint32_t max_depth,
                                        uint32_t depth) {
    memset(policy, 0, sizeof *policy);
    policy->min_depth = min_depth;
    policy->max_depth = max_depth;
    policy->depth = depth;
    policy->idle_patience = GPSTI_RING_DEPTH_IDLE;
    policy->next_rest = GPSTI_RING_DEPTH_REST;
}

GPSTI_PRIVATE double gpsti_ring_depth_share(uint64_t ticks, const gpsti_ring_interval* interval) {
    return (double)(ticks < interval->ticks ? ticks : interval->ticks) / (double)interval->ticks;
}

GPSTI_PRIVATE double gpsti_ring_depth_percent(uint64_t ticks, const gpsti_ring_interval* interval) {
    return 100.0 * gpsti_ring_depth_share(ticks, interval);
}

/* Doubled each time, so that whatever the intervals show, the number of changes grows with the logarithm of theirs. */
GPSTI_PRIVATE uint32_t gpsti_ring_depth_longer(uint32_t n_intervals) {
    return n_intervals < GPSTI_RING_DEPTH_MOST ? 2 * n_intervals : GPSTI_RING_DEPTH_MOST;
}

GPSTI_PRIVATE uint32_t gpsti_ring_depth_change(gpsti_ring_depth* policy, uint32_t depth) {
    policy->n_starved = policy->n_idle = policy->idle_peak = 0;
    policy->limit_reported = false;
    policy->depth = depth;
    return depth;
}

GPSTI_PRIVATE void gpsti_ring_depth_rest(gpsti_ring_depth* policy) {
    policy->trial_from = 0;
    policy->rest = policy->next_rest;
    policy->next_rest = gpsti_ring_depth_longer(policy->next_rest);
}

GPSTI_PRIVATE void gpsti_ring_depth_count(gpsti_ring_depth* policy, const gpsti_ring_interval* interval, double loss) {
    const double change = (double)interval->n_commits / (double)interval->ticks - policy->barred_rate;
    const double limit = GPSTI_RING_DEPTH_DRIFT * policy->barred_rate;
    policy->n_starved = loss >= GPSTI_RING_DEPTH_STARVED ? policy->n_starved + 1 : 0;
    const bool idle = (uint64_t)interval->peak * 2 < policy->depth;
    policy->n_idle = idle ? policy->n_idle + 1 : 0;
    policy->idle_peak = !idle ? 0 : interval->peak > policy->idle_peak ? interval->peak : policy->idle_peak;
    policy->rest -= policy->rest > 0;
    policy->n_drifted = change > limit || -change > limit ? policy->n_drifted + 1 : 0;
    if (policy->n_drifted >= GPSTI_RING_DEPTH_PATIENCE)
        policy->barred_rate = 0.0;
}

/* The trial's intervals are over. True: the deeper ring is no better. */
GPSTI_PRIVATE bool gpsti_ring_depth_failed(const gpsti_ring_depth* policy, double loss) {
    return (policy->last_loss + loss) / 2.0 > (1.0 - GPSTI_RING_DEPTH_GAIN) * policy->loss_before;
}

GPSTI_PRIVATE uint32_t gpsti_ring_depth_take_back(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                                  double loss, char reason[GPST_RING_REASON_BYTES]) {
    const uint32_t depth = policy->trial_from;
    gpsti_format(reason, GPST_RING_REASON_BYTES, "taken back: both sides wait %.1f %% of the time, before %.1f %%",
                 50.0 * (policy->last_loss + loss), 100.0 * policy->loss_before);
    gpsti_ring_depth_rest(policy);
    policy->barred_rate = (double)interval->n_commits / (double)interval->ticks;
    policy->n_drifted = 0;
    return gpsti_ring_depth_change(policy, depth);
}

GPSTI_PRIVATE uint32_t gpsti_ring_depth_deepen(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                               double loss, char reason[GPST_RING_REASON_BYTES]) {
    const double full = gpsti_ring_depth_percent(interval->full_ticks, interval);
    const double empty = gpsti_ring_depth_percent(interval->empty_ticks, interval);
    if (policy->depth == policy->max_depth) {
        if (!policy->limit_reported)
            gpsti_format(reason, GPST_RING_REASON_BYTES,
                         "stays: full %.1f %% and empty %.1f %% of the time, but may have no more", full, empty);
        policy->limit_reported = true;
        return policy->depth;
    }
    gpsti_format(reason, GPST_RING_REASON_BYTES, "bursts: full %.1f %% and empty %.1f %% of the time", full, empty);
    if (policy->shrunk)
        policy->idle_patience = gpsti_ring_depth_longer(policy->idle_patience);
    policy->shrunk = false;
    policy->trial_from = policy->depth;
    policy->n_trial = 0;
    policy->loss_before = (policy->last_loss + loss) / 2.0;
    return gpsti_ring_depth_change(policy,
                                   policy->depth > policy->max_depth / 2 ? policy->max_depth : 2 * policy->depth);
}

/* By half of what was never in use. */
GPSTI_PRIVATE uint32_t gpsti_ring_depth_shrink(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                               char reason[GPST_RING_REASON_BYTES]) {
    uint32_t depth = policy->depth - (policy->depth - policy->idle_peak) / 2;
    depth = depth < policy->min_depth ? policy->min_depth : depth;
    depth = depth < interval->used ? interval->used : depth;
    if (depth >= policy->depth)
        return policy->depth;
    gpsti_format(reason, GPST_RING_REASON_BYTES, "idle: at most %u slots in use for %u intervals", policy->idle_peak,
                 policy->n_idle);
    policy->shrunk = true;
    policy->barred_rate = 0.0;
    return gpsti_ring_depth_change(policy, depth);
}

GPSTI_PRIVATE uint32_t gpsti_ring_depth_decide(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                               double loss, char reason[GPST_RING_REASON_BYTES]) {
    if (policy->trial_from) {
        if (++policy->n_trial < GPSTI_RING_DEPTH_PATIENCE)
            return policy->depth;
        if (gpsti_ring_depth_failed(policy, loss))
            return gpsti_ring_depth_take_back(policy, interval, loss, reason);
        policy->trial_from = 0;
    }
    if (policy->n_starved >= GPSTI_RING_DEPTH_PATIENCE && policy->rest == 0 && policy->barred_rate <= 0.0)
        return gpsti_ring_depth_deepen(policy, interval, loss, reason);
    if (policy->n_idle >= policy->idle_patience)
        return gpsti_ring_depth_shrink(policy, interval, reason);
    return policy->depth;
}

GPSTI_INTERN uint32_t gpsti_ring_depth_judge(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                             char reason[GPST_RING_REASON_BYTES]) {
    const double full = gpsti_ring_depth_share(interval->full_ticks, interval);
    const double empty = gpsti_ring_depth_share(interval->empty_ticks, interval);
    const double loss = full < empty ? full : empty;
    reason[0] = 0;
    gpsti_ring_depth_count(policy, interval, loss);
    const uint32_t depth = gpsti_ring_depth_decide(policy, interval, loss, reason);
    policy->last_loss = loss;
    return depth;
}

GPSTI_INTERN void gpsti_ring_depth_refuse(gpsti_ring_depth* policy, uint32_t depth) {
    gpsti_ring_depth_rest(policy);
    (void)gpsti_ring_depth_change(policy, depth);
}
