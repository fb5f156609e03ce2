/* core/memory/ring_depth.c -- how many slots an adaptive ring should use. A pure policy: it moves no slot and asks no
   clock.

   A deeper ring can only help where both sides wait in turn: producers find it full at one time, consumers find it
   empty at another. The smaller of the two times is what a deeper ring may gain: the loss. Where one side alone waits,
   the other one is the bottleneck, and more slots would only make items older. */
#include "../base/platform_internal.h"

#include "ring_depth_internal.h"

#include <string.h>

#define GPSTI_RING_DEPTH_STARVED 0.02 /* of the time: a smaller loss is none */
#define GPSTI_RING_DEPTH_GAIN 0.10    /* of the loss, by a trial */
#define GPSTI_RING_DEPTH_DOUBLINGS 4  /* of one trial: bursts of 80 depths show at sixteen times the depth */
#define GPSTI_RING_DEPTH_IDLE 4       /* idle intervals in a row, at first */
#define GPSTI_RING_DEPTH_MOST_IDLE 65536 /* after doublings: two hours of the shortest intervals */
#define GPSTI_RING_DEPTH_REST 8          /* intervals after a trial that failed, at first; */
#define GPSTI_RING_DEPTH_MOST_REST 512   /* after doublings: then trials are 2 % of the time */

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

GPSTI_PRIVATE uint32_t gpsti_ring_depth_longer(uint32_t n_intervals, uint32_t most) {
    return 2 * n_intervals < most ? 2 * n_intervals : most;
}

GPSTI_PRIVATE uint32_t gpsti_ring_depth_change(gpsti_ring_depth* policy, uint32_t depth) {
    policy->n_starved = policy->n_idle = policy->idle_peak = 0;
    policy->limit_reported = false;
    policy->depth = depth;
    return depth;
}

GPSTI_PRIVATE void gpsti_ring_depth_count(gpsti_ring_depth* policy, const gpsti_ring_interval* interval, double loss) {
    policy->n_starved = loss >= GPSTI_RING_DEPTH_STARVED ? policy->n_starved + 1 : 0;
    const bool idle = (uint64_t)interval->peak * 2 < policy->depth;
    policy->n_idle = idle ? policy->n_idle + 1 : 0;
    policy->idle_peak = !idle ? 0 : interval->peak > policy->idle_peak ? interval->peak : policy->idle_peak;
    policy->rest -= policy->rest > 0;
    policy->n_trial++;
    memmove(&policy->losses[1], &policy->losses[0], sizeof policy->losses - sizeof policy->losses[0]);
    policy->losses[0] = loss;
}

GPSTI_PRIVATE double gpsti_ring_depth_least_loss(const gpsti_ring_depth* policy) {
    double least = policy->losses[0];
    for (int i = 1; i < GPSTI_RING_DEPTH_PATIENCE; i++)
        least = policy->losses[i] < least ? policy->losses[i] : least;
    return least;
}

GPSTI_PRIVATE double gpsti_ring_depth_largest_loss(const gpsti_ring_depth* policy) {
    double largest = policy->losses[0];
    for (int i = 1; i < GPSTI_RING_DEPTH_PATIENCE; i++)
        largest = policy->losses[i] > largest ? policy->losses[i] : largest;
    return largest;
}

/* ---- trials ------------------------------------------------------------------------------ */

GPSTI_PRIVATE uint32_t gpsti_ring_depth_double(gpsti_ring_depth* policy) {
    policy->n_trial = 0;
    return gpsti_ring_depth_change(policy,
                                   policy->depth > policy->max_depth / 2 ? policy->max_depth : 2 * policy->depth);
}

/* The trial is over, without a gain. */
GPSTI_PRIVATE uint32_t gpsti_ring_depth_fail(gpsti_ring_depth* policy) {
    const uint32_t depth = policy->trial_from;
    policy->trial_from = 0;
    policy->rest = policy->next_rest;
    policy->next_rest = gpsti_ring_depth_longer(policy->next_rest, GPSTI_RING_DEPTH_MOST_REST);
    return gpsti_ring_depth_change(policy, depth);
}

/* Every interval with the deeper ring is better than each one before it: so chance alone seldom makes a gain. */
GPSTI_PRIVATE bool gpsti_ring_depth_gained(const gpsti_ring_depth* policy) {
    return gpsti_ring_depth_largest_loss(policy) < (1.0 - GPSTI_RING_DEPTH_GAIN) * policy->loss_before;
}

/* The depth that is on trial has had its intervals, without a gain: bursts far longer than it hardly show one. So the
   next doubling is tried, too, before all are taken back. */
GPSTI_PRIVATE uint32_t gpsti_ring_depth_go_on(gpsti_ring_depth* policy, char reason[GPST_RING_REASON_BYTES]) {
    const double now = 100.0 * gpsti_ring_depth_largest_loss(policy), before = 100.0 * policy->loss_before;
    if (policy->n_doublings == GPSTI_RING_DEPTH_DOUBLINGS || policy->depth == policy->max_depth) {
        gpsti_format(reason, GPST_RING_REASON_BYTES, "taken back: both sides wait %.1f %% of the time, before %.1f %%",
                     now, before);
        return gpsti_ring_depth_fail(policy);
    }
    policy->n_doublings++;
    gpsti_format(reason, GPST_RING_REASON_BYTES, "trial: both sides wait %.1f %% of the time, before %.1f %%", now,
                 before);
    return gpsti_ring_depth_double(policy);
}

GPSTI_PRIVATE uint32_t gpsti_ring_depth_deepen(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                               char reason[GPST_RING_REASON_BYTES]) {
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
        policy->idle_patience = gpsti_ring_depth_longer(policy->idle_patience, GPSTI_RING_DEPTH_MOST_IDLE);
    policy->shrunk = false;
    policy->trial_from = policy->depth;
    policy->n_doublings = 1;
    policy->loss_before = gpsti_ring_depth_least_loss(policy);
    return gpsti_ring_depth_double(policy);
}

/* ---- idle slots ---------------------------------------------------------------------------- */

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
    return gpsti_ring_depth_change(policy, depth);
}

GPSTI_PRIVATE uint32_t gpsti_ring_depth_decide(gpsti_ring_depth* policy, const gpsti_ring_interval* interval,
                                               char reason[GPST_RING_REASON_BYTES]) {
    if (policy->trial_from) {
        if (policy->n_trial < GPSTI_RING_DEPTH_PATIENCE)
            return policy->depth;
        if (!gpsti_ring_depth_gained(policy))
            return gpsti_ring_depth_go_on(policy, reason);
        policy->trial_from = 0;
        policy->next_rest = GPSTI_RING_DEPTH_REST;
    }
    if (policy->n_starved >= GPSTI_RING_DEPTH_PATIENCE && policy->rest == 0)
        return gpsti_ring_depth_deepen(policy, interval, reason);
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
    return gpsti_ring_depth_decide(policy, interval, reason);
}

GPSTI_INTERN uint32_t gpsti_ring_depth_refuse(gpsti_ring_depth* policy) { return gpsti_ring_depth_fail(policy); }
