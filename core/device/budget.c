/* core/device/budget.c -- what a context may hold, and whether this process may use it. */
#include "../base/platform_internal.h"

#include "context_internal.h"

GPSTI_INTERN bool gpsti_budget_try_charge(gpsti_a64* held_bytes, uint64_t max_bytes, uint64_t bytes) {
    uint64_t held = gpsti_a64_load_relaxed(held_bytes);
    do {
        if (held > max_bytes || bytes > max_bytes - held)
            return false;
    } while (!gpsti_a64_cas(held_bytes, &held, held + bytes));
    return true;
}

GPSTI_INTERN gpst_result gpsti_budget_charge(gpsti_a64* held_bytes, uint64_t max_bytes, uint64_t bytes,
                                             const char* what) {
    GPSTI_FAIL_IF(!gpsti_budget_try_charge(held_bytes, max_bytes, bytes), GPST_ERROR_BUDGET,
                  "%s: bytes=%llu: %llu of the budget of %llu bytes are held already", what,
                  (unsigned long long)bytes, (unsigned long long)gpsti_a64_load_relaxed(held_bytes),
                  (unsigned long long)max_bytes);
    return GPST_OK;
}

GPSTI_INTERN void gpsti_budget_refund(gpsti_a64* held_bytes, uint64_t bytes) {
    (void)gpsti_a64_add(held_bytes, (uint64_t)0 - bytes);
}

GPSTI_INTERN bool gpsti_context_forked(const gpst_context* context) {
    return context->fork_guard ? gpsti_a32_load_relaxed(context->fork_guard) == 0
                               : gpsti_pid() != context->host.pid;
}

GPSTI_INTERN gpst_result gpsti_context_check(const gpst_context* context, const char* function) {
    GPSTI_FAIL_IF(!context, GPST_ERROR_ARGUMENT, "%s: context=NULL: must be a context", function);
    GPSTI_FAIL_IF(gpsti_context_forked(context), GPST_ERROR_FORKED,
                  "%s: pid=%llu: the context was made in process %llu; after fork the child may only exec",
                  function, (unsigned long long)gpsti_pid(), (unsigned long long)context->host.pid);
    return GPST_OK;
}
