/* core/prefetch/prefetch_policy.c -- finds the pattern in a trace of indices and says how
   far to trust it. Pure: the same trace gives the same answers everywhere. */
#include "../base/platform_internal.h"

#include "prefetch_policy_internal.h"

#include <string.h>

GPSTI_INTERN void gpsti_prefetch_policy_init(gpsti_prefetch_policy* policy, uint64_t n, uint32_t max_ahead,
                                             const uint64_t* schedule, uint64_t n_schedule) {
    memset(policy, 0, sizeof *policy);
    policy->n = n;
    policy->max_ahead = max_ahead;
    policy->scheduled = n_schedule > 0;
    policy->schedule = schedule;
    policy->n_schedule = n_schedule;
    policy->pause = GPSTI_PREFETCH_FIRST_PAUSE;
}

/* ---- a schedule ----------------------------------------------------------------- */

GPSTI_PRIVATE uint64_t gpsti_prefetch_scheduled(const gpsti_prefetch_policy* policy, uint64_t position) {
    return policy->schedule ? policy->schedule[position] : position;
}

/* What is skipped is passed over; what the schedule does not have soon leaves it where it is. Behind its end comes its
   beginning. */
GPSTI_PRIVATE void gpsti_prefetch_follow(gpsti_prefetch_policy* policy, uint64_t index) {
    const uint64_t n = policy->n_schedule;
    for (uint64_t k = 0; k < n && k < GPSTI_PREFETCH_MAX_AHEAD; k++) {
        const uint64_t at = (policy->position + k) % n;
        if (gpsti_prefetch_scheduled(policy, at) == index) {
            policy->position = at + 1;
            return;
        }
    }
}

GPSTI_INTERN void gpsti_prefetch_policy_place(gpsti_prefetch_policy* policy, uint64_t position) {
    if (policy->scheduled)
        policy->position = position;
}

/* ---- the steps' period ------------------------------------------------------------- */

GPSTI_PRIVATE int64_t gpsti_prefetch_step_ago(const gpsti_prefetch_policy* policy, uint64_t ago) {
    return policy->steps[(policy->n_steps - 1 - ago) % GPSTI_PREFETCH_HISTORY];
}

/* Where a step leads, or n: out of range, and not known to go round. */
GPSTI_PRIVATE uint64_t gpsti_prefetch_go(const gpsti_prefetch_policy* policy, uint64_t from, int64_t step) {
    const uint64_t to = from + (uint64_t)step;
    if (to < policy->n)
        return to;
    if (!policy->wraps)
        return policy->n;
    return step < 0 ? to + policy->n : to - policy->n;
}

/* The pattern may go on at the beginning when it comes to the end: then the step that was made is the pattern's. */
GPSTI_PRIVATE int64_t gpsti_prefetch_unwrap(gpsti_prefetch_policy* policy, int64_t step) {
    if (!policy->period)
        return step;
    const int64_t expected = gpsti_prefetch_step_ago(policy, policy->period - 1);
    const int64_t around = step < expected ? step + (int64_t)policy->n : step - (int64_t)policy->n;
    if (around != expected)
        return step;
    policy->wraps = true;
    return expected;
}

/* A period is confirmed by as many right steps as it is long, and by two at least. Among several the one that has been
   right for longest: the steps within a round of cameras look like a stride, but never for long. */
GPSTI_PRIVATE uint32_t gpsti_prefetch_confirmed(const gpsti_prefetch_policy* policy) {
    uint32_t best = 0;
    for (uint32_t p = 1; p <= GPSTI_PREFETCH_MAX_PERIOD; p++)
        if (policy->runs[p] >= (p < 2 ? 2 : p) && policy->runs[p] > (best ? policy->runs[best] : 0))
            best = p;
    return best;
}

GPSTI_PRIVATE void gpsti_prefetch_trust(gpsti_prefetch_policy* policy, bool right) {
    const uint32_t period = gpsti_prefetch_confirmed(policy);
    if (!period)
        policy->window = 0;
    else if (period != policy->period || !right)
        policy->window = policy->max_ahead < 2 ? policy->max_ahead : 2;
    else if (++policy->rightly < policy->window)
        return;
    else
        policy->window = policy->window * 2 < policy->max_ahead ? policy->window * 2 : policy->max_ahead;
    policy->period = period;
    policy->rightly = 0;
}

GPSTI_PRIVATE void gpsti_prefetch_learn(gpsti_prefetch_policy* policy, int64_t made) {
    const int64_t step = gpsti_prefetch_unwrap(policy, made);
    bool right = policy->period != 0;
    for (uint32_t p = 1; p <= GPSTI_PREFETCH_MAX_PERIOD && p <= policy->n_steps; p++) {
        const bool same = gpsti_prefetch_step_ago(policy, p - 1) == step;
        policy->runs[p] = same ? policy->runs[p] + 1 : 0;
        if (p == policy->period)
            right = same;
    }
    policy->steps[policy->n_steps++ % GPSTI_PREFETCH_HISTORY] = step;
    gpsti_prefetch_trust(policy, right);
}

GPSTI_INTERN void gpsti_prefetch_policy_note(gpsti_prefetch_policy* policy, uint64_t index) {
    if (policy->pause_left > 0)
        policy->pause_left--;
    if (policy->scheduled)
        gpsti_prefetch_follow(policy, index);
    else if (policy->started)
        gpsti_prefetch_learn(policy, (int64_t)(index - policy->last));
    policy->started = true;
    policy->last = index;
}

/* ---- what to fetch -------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_prefetch_has(const uint64_t* list, uint32_t n, uint64_t index) {
    for (uint32_t k = 0; k < n; k++)
        if (list[k] == index)
            return true;
    return false;
}

GPSTI_INTERN uint32_t gpsti_prefetch_policy_want(const gpsti_prefetch_policy* policy,
                                                 uint64_t out[GPSTI_PREFETCH_MAX_AHEAD]) {
    uint32_t n = 0;
    uint64_t at = policy->last;
    if (policy->scheduled) {
        for (uint64_t k = policy->position; k < policy->n_schedule && k < policy->position + policy->max_ahead; k++) {
            const uint64_t index = gpsti_prefetch_scheduled(policy, k);
            if (index != policy->last && !gpsti_prefetch_has(out, n, index))
                out[n++] = index;
        }
        return n;
    }
    if (policy->pause_left > 0)
        return 0;
    for (uint32_t k = 0; k < policy->window; k++) {
        const uint32_t ago = policy->period - 1 - k % policy->period;
        at = gpsti_prefetch_go(policy, at, gpsti_prefetch_step_ago(policy, ago));
        if (at >= policy->n)
            break;
        if (at != policy->last && !gpsti_prefetch_has(out, n, at))
            out[n++] = at;
    }
    return n;
}

/* Half of what it fetched for nothing, and it is off for a while, each time for longer. A schedule is not judged. */
GPSTI_INTERN void gpsti_prefetch_policy_judge(gpsti_prefetch_policy* policy, bool used) {
    policy->n_used += used ? 1 : 0;
    policy->n_wasted += used ? 0 : 1;
    if (policy->scheduled || policy->n_used + policy->n_wasted < GPSTI_PREFETCH_JUDGED)
        return;
    if (policy->n_wasted >= policy->n_used) {
        policy->pause_left = policy->pause;
        policy->pause *= policy->pause < ((uint64_t)1 << 40) ? 2 : 1;
        policy->times_off++;
    }
    policy->n_used = policy->n_wasted = 0;
}

GPSTI_INTERN void gpsti_prefetch_policy_name(const gpsti_prefetch_policy* policy, char* out, size_t out_bytes) {
    const int64_t step = policy->period ? gpsti_prefetch_step_ago(policy, policy->period - 1) : 0;
    if (policy->scheduled)
        gpsti_copy_text(out, out_bytes, "schedule");
    else if (policy->pause_left > 0)
        gpsti_copy_text(out, out_bytes, "off");
    else if (!policy->period)
        gpsti_copy_text(out, out_bytes, "none");
    else if (policy->period > 1)
        gpsti_format(out, out_bytes, "period %u", policy->period);
    else if (step == 1)
        gpsti_copy_text(out, out_bytes, "sequence");
    else
        gpsti_format(out, out_bytes, "stride %lld", (long long)step);
}
