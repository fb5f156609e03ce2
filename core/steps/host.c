/* core/steps/host.c -- a HOST stage: the user's function for an item, for one of its pictures, or for several items. */
#include "../base/platform_internal.h"

#include "call_internal.h"

/* What the stage reads comes to the host. Where the device does not give it the cores make it again, if they may. */
GPSTI_INTERN gpsti_outcome gpsti_host_fetch(gpsti_batch* batch) {
    const gpsti_step* const step = gpsti_batch_step(batch);
    gpsti_outcome outcome = GPSTI_DONE;
    for (uint32_t i = 0; i < batch->n; i++) {
        gpsti_item* const item = batch->items[i];
        gpst_result result = GPST_OK;
        if (gpsti_item_fetch(item, step->reads, &result) == GPSTI_AGAIN)
            outcome = GPSTI_AGAIN;
        else if (GPST_FAILED(result))
            gpsti_batch_fail(&item->batch, result, gpst_last_reason());
    }
    return outcome;
}

/* ---- one ---------------------------------------------------------------------------------------- */

GPSTI_INTERN gpsti_outcome gpsti_host_call(gpsti_run* run, gpsti_batch* batch) {
    char reason[GPST_REASON_BYTES];
    gpsti_service service;
    gpsti_service_begin(&service, batch);
    const gpst_result result =
        gpsti_call_stage(batch->item, gpsti_batch_step(batch)->first_stage, batch->part, run->worker_index, reason);
    gpsti_service_end(&service, result);
    gpsti_run_keep(run, &service);
    if (GPSTI_ENDS_ITEM(result))
        gpsti_batch_fail(batch, result, reason);
    return GPSTI_DONE;
}

/* ---- several -------------------------------------------------------------------------------------- */

/* The items that the function is given, and what became of each. */
typedef struct gpsti_host_batch {
    gpsti_item* items[GPSTI_MOST_BATCH];
    gpst_result results[GPSTI_MOST_BATCH];
    uint32_t n;
} gpsti_host_batch;

/* Where the batch has failed as a whole each item is tried alone. */
GPSTI_PRIVATE void gpsti_host_call_all(gpsti_run* run, const gpsti_step* step, gpsti_host_batch* all) {
    char reason[GPST_REASON_BYTES];
    gpst_result result = GPST_OK;
    if (all->n > 0)
        result = gpsti_call_batch(all->items, all->n, step->first_stage, run->worker_index, all->results, reason);
    for (uint32_t i = 0; GPST_FAILED(result) && i < all->n; i++) {
        const gpst_result again = all->n == 1 ? result
                                              : gpsti_call_batch(&all->items[i], 1, step->first_stage,
                                                                 run->worker_index, &all->results[i], reason);
        if (!GPST_FAILED(again))
            continue;
        all->results[i] = again;
        gpsti_copy_text(all->items[i]->reason, GPST_REASON_BYTES, reason);
    }
}

/* Counted as so many services side by side. */
GPSTI_PRIVATE gpsti_outcome gpsti_host_run_together(gpsti_run* run, gpsti_batch* batch) {
    const gpsti_step* const step = gpsti_batch_step(batch);
    char reason[GPST_REASON_BYTES];
    gpsti_host_batch all;
    gpsti_service service;
    all.n = 0;
    for (uint32_t i = 0; i < batch->n; i++)
        if (!gpsti_item_has_failed(batch->items[i]))
            all.items[all.n++] = batch->items[i];
    gpsti_service_begin(&service, batch);
    gpsti_host_call_all(run, step, &all);
    gpsti_service_end(&service, GPST_OK);
    gpsti_service_share(&service, all.n);
    for (uint32_t i = 0; i < all.n; i++) {
        service.failed = GPST_FAILED(all.results[i]);
        gpsti_run_keep(run, &service);
        gpsti_copy_text(reason, sizeof reason, all.items[i]->reason);
        if (GPSTI_ENDS_ITEM(all.results[i]))
            gpsti_batch_fail(&all.items[i]->batch, all.results[i], reason);
    }
    return GPSTI_DONE;
}

/* ---- the kind ------------------------------------------------------------------------------------- */

/* A part's sets were fetched when the item was split. */
GPSTI_PRIVATE gpsti_outcome gpsti_host_run(gpsti_run* run, gpsti_batch* batch) {
    const bool is_part = batch != &batch->item->batch;
    const gpsti_outcome outcome = is_part ? GPSTI_DONE : gpsti_host_fetch(batch);
    if (outcome != GPSTI_DONE)
        return outcome;
    if (gpsti_step_stage(run->pipeline, gpsti_batch_step(batch))->batch_func)
        return gpsti_host_run_together(run, batch);
    return gpsti_item_has_failed(batch->item) ? GPSTI_DONE : gpsti_host_call(run, batch);
}

/* All pictures of an item are on the host before it is split. */
GPSTI_PRIVATE gpsti_outcome gpsti_host_run_all(gpsti_run* run, gpsti_item* item) {
    (void)run;
    return gpsti_host_fetch(&item->batch) == GPSTI_AGAIN ? GPSTI_AGAIN : GPSTI_OTHER_FORM;
}

GPSTI_PRIVATE gpst_result gpsti_host_check(const gpst_pipeline_desc* desc, uint32_t s) {
    const gpst_stage_desc* const stage = &desc->stages[s];
    GPSTI_FAIL_IF(!stage->func && !stage->batch_func, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].func=NULL: required for HOST, DEVICE and ENCODE", s);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_host_plan(const gpst_pipeline* pipeline, gpsti_step* step, bool asynchronous) {
    const gpst_stage_desc* const stage = gpsti_step_stage(pipeline, step);
    (void)asynchronous;
    step->concurrency = stage->concurrency > 0 ? stage->concurrency : gpsti_step_depth(&pipeline->plan, step);
}

GPSTI_INTERN const gpsti_step_kind* gpsti_step_host(void) {
    static const gpsti_step_kind kind = {GPST_RESOURCE_CPU,
                                         /* joins */ false,
                                         /* calls */ true,      gpsti_host_check,   gpsti_host_plan,
                                         /* queues */ NULL,
                                         /* next */ NULL,
                                         /* goes_along */ NULL,
                                         /* formed */ NULL,     gpsti_host_run_all, gpsti_host_run,
                                         /* returned */ NULL,
                                         /* count */ NULL};
    return &kind;
}
