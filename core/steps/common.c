/* core/steps/common.c -- what steps of several kinds do alike: an item fails, lacks sets, leaves the device. */
#include "../base/platform_internal.h"

#include "call_internal.h"

GPSTI_INTERN gpst_stage_desc* gpsti_step_stage(const gpst_pipeline* pipeline, const gpsti_step* step) {
    return &pipeline->plan.stages[step->first_stage].desc;
}

GPSTI_INTERN void gpsti_batch_fail(const gpsti_batch* batch, gpst_result result, const char* reason) {
    gpst_pipeline* const pipeline = batch->item->pipeline;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    gpsti_item_fail(batch->item, result, gpsti_step_name(&pipeline->plan, gpsti_batch_step(batch)), reason);
    gpsti_unlock(locked);
}

/* After sets were fetched with that result: those that are nowhere now. */
GPSTI_PRIVATE uint32_t gpsti_sets_lost(gpsti_item* item, uint32_t sets, gpst_result result) {
    uint32_t lost = 0;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set* const set = &item->sets[k];
        if (!(sets & GPST_SET(k)) || set->n == 0 || (set->valid & GPSTI_ON_HOST))
            continue;
        const bool is_lent = k == 0 && item->given.borrowed && result != GPST_ERROR_DEVICE_LOST; /* it is there still */
        if (GPST_FAILED(result) && !is_lent)
            set->valid = 0;
        lost |= set->valid == 0 || (GPST_FAILED(result) && !item->on_cpu) ? GPST_SET(k) : 0;
    }
    return lost;
}

GPSTI_INTERN bool gpsti_item_leaves_device(gpsti_item* item, gpst_result result, const char* reason) {
    gpst_pipeline* const pipeline = item->pipeline;
    const bool trouble = result == GPST_ERROR_DEVICE || result == GPST_ERROR_DEVICE_MEMORY ||
                         result == GPST_ERROR_DEVICE_LOST || result == GPST_ERROR_UNSUPPORTED ||
                         (result == GPST_ERROR_BUDGET && !item->works[0].on_host);
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    if (result == GPST_ERROR_DEVICE_LOST)
        gpsti_a32_store(&pipeline->context->public_device.lost, 1);
    const bool leaves = trouble && !item->on_cpu && !pipeline->context->require_backend &&
                        item->works[0].device != item->works[1].device;
    if (leaves) {
        item->on_cpu = true;
        pipeline->signals.device_lost = pipeline->signals.device_lost || result == GPST_ERROR_DEVICE_LOST;
        pipeline->counts.device_fallbacks++;
        gpsti_copy_text(item->device_reason, sizeof item->device_reason, reason);
        if (!pipeline->counts.fallback_reason[0])
            gpsti_copy_text(pipeline->counts.fallback_reason, sizeof pipeline->counts.fallback_reason, reason);
    }
    gpsti_unlock(locked);
    return leaves;
}

GPSTI_INTERN gpsti_outcome gpsti_item_fetch(gpsti_item* item, uint32_t sets, gpst_result* result) {
    item->lacks = 0;
    *result = sets ? gpsti_sets_fetch(item, sets) : GPST_OK;
    if (*result == GPST_ERROR_BUDGET) /* of the host: the device has them still */
        return item->yields ? GPSTI_AGAIN : GPSTI_DONE;
    item->lacks = sets ? gpsti_sets_lost(item, sets, *result) : 0;
    const bool again = item->lacks != 0 && (!GPST_FAILED(*result) || item->on_cpu ||
                                            gpsti_item_leaves_device(item, *result, gpst_last_reason()));
    return again ? GPSTI_AGAIN : GPSTI_DONE;
}
