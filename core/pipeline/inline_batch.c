/* core/pipeline/inline_batch.c -- what of a job that runs inline takes several items or pictures at once: DECODE of the
   files that came as a batch, ENCODE of pictures that are on the device, a HOST stage with a batch function. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

/* ---- DECODE and ENCODE ------------------------------------------------------------------------- */

/* Counts the batch as so many services side by side, and sends all but the first item on. Locked. */
GPSTI_PRIVATE void gpsti_inline_end_batch(gpsti_item* first, gpsti_step* step) {
    gpst_pipeline* const pipeline = first->pipeline;
    const uint32_t to = gpsti_set_of(step->writes);
    for (gpsti_item *item = first, *next = NULL; item; item = next) {
        const bool decoded = item->decode == GPSTI_DECODE_DEVICE;
        next = item->next_in_batch;
        item->next_in_batch = NULL;
        pipeline->engines.n_decoded += decoded ? 1 : 0;
        if (decoded)
            gpsti_account_copy(pipeline, &pipeline->plan.sets[to], true, 1, item->shown.file_bytes);
        if (item != first)
            gpsti_flight_send(&item->job, decoded ? gpsti_flight_next_step(item, item->job.step) : item->job.step);
    }
}

/* The first item of a batch goes on on this thread; if the device has refused it, in this step on the cores. */
GPSTI_PRIVATE gpsti_job* gpsti_inline_decode_batch(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpsti_item* const first = job->item;
    gpsti_service service;
    gpsti_service_begin(&service, step, job);
    const uint32_t n = gpsti_decode_batch(first, step, run->worker_index);
    gpsti_service_end(&service, GPST_OK);
    const int64_t start_ns = service.start_ns, end_ns = service.end_ns;
    gpsti_service_share(&service, n);
    for (uint32_t i = 0; i < n; i++)
        gpsti_run_keep(run, &service);
    gpsti_run_lock(run);
    if (n > 0 && run->pipeline->engines.has_engines) {
        gpsti_busy_add(&run->pipeline->counts.busy[GPST_RESOURCE_JPEG], start_ns, end_ns);
        /* While one batch is decoded, the next one waits. */
        gpsti_tune_hold(run->pipeline, 2 * gpsti_decode_batch_most(&run->pipeline->engines, first));
    }
    gpsti_inline_end_batch(first, step);
    gpsti_inline_leave(run, step, job);
    gpsti_run_unlock(run);
    return first->decode == GPSTI_DECODE_DEVICE ? gpsti_inline_next(run, job) : job;
}

GPSTI_INTERN gpsti_job* gpsti_inline_decode(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpst_pipeline* const pipeline = run->pipeline;
    if (job->item->decode == GPSTI_DECODE_DEVICE)
        return gpsti_inline_decode_batch(run, job, step);
    if (pipeline->engines.asked) {
        gpsti_run_lock(run);
        pipeline->engines.n_decoded++;
        gpsti_run_unlock(run);
    }
    return gpsti_inline_host(run, job, step);
}

GPSTI_INTERN bool gpsti_inline_encode(gpsti_run* run, gpsti_item* item, const gpsti_step* step) {
    char reason[GPST_REASON_BYTES];
    gpsti_service service;
    bool refused = false;
    if (run->pipeline->plan.stages[step->first_stage].codec == GPST_CODEC_EXACT ||
        !gpsti_encode_is_on_device(item, step))
        return false;
    gpsti_service_begin(&service, step, &item->job);
    const gpst_result result = gpsti_encode_on_device(item, step, run->worker_index, &refused, reason);
    if (refused)
        return false;
    gpsti_service_end(&service, result);
    gpsti_run_keep(run, &service);
    if (GPSTI_ENDS_ITEM(result))
        gpsti_inline_fail(&item->job, result, reason);
    return true;
}

/* ---- HOST -------------------------------------------------------------------------------------- */

/* One batch of a HOST stage: the items that the function is given, and what became of each. */
typedef struct gpsti_host_batch {
    gpsti_item* slots[GPSTI_MOST_BATCH];
    gpst_result results[GPSTI_MOST_BATCH];
    uint32_t n;
} gpsti_host_batch;

/* What the stage reads comes to the host; an item for which it does not come has failed. */
GPSTI_PRIVATE void gpsti_inline_collect(gpsti_run* run, gpsti_item* first, const gpsti_step* step,
                                        gpsti_host_batch* out) {
    char reason[GPST_REASON_BYTES];
    out->n = 0;
    for (gpsti_item* item = first; item; item = item->next_in_batch) {
        const gpst_result result = gpsti_offload_fetch(item, step->reads, run->worker_index, reason);
        if (GPST_FAILED(result))
            gpsti_inline_fail(&item->job, result, reason);
        else
            out->slots[out->n++] = item;
    }
}

/* Where the batch has failed as a whole each item is tried alone. */
GPSTI_PRIVATE void gpsti_inline_call(gpsti_run* run, const gpsti_step* step, gpsti_host_batch* batch) {
    char reason[GPST_REASON_BYTES];
    gpst_result result = GPST_OK;
    if (batch->n > 0)
        result = gpsti_call_batch(batch->slots, batch->n, step->first_stage, run->worker_index, batch->results, reason);
    for (uint32_t i = 0; GPST_FAILED(result) && i < batch->n; i++) {
        const gpst_result again = batch->n == 1 ? result
                                                : gpsti_call_batch(&batch->slots[i], 1, step->first_stage,
                                                                   run->worker_index, &batch->results[i], reason);
        if (!GPST_FAILED(again))
            continue;
        batch->results[i] = again;
        gpsti_copy_text(batch->slots[i]->reason, GPST_REASON_BYTES, reason);
    }
}

/* Each item has its result, and all but the first go on. Locked. */
GPSTI_PRIVATE void gpsti_inline_end_items(gpsti_item* first, const gpsti_step* step, gpsti_host_batch* batch) {
    char reason[GPST_REASON_BYTES];
    for (uint32_t i = 0; i < batch->n; i++) {
        gpsti_item* const item = batch->slots[i];
        gpsti_copy_text(reason, sizeof reason, item->reason);
        if (GPSTI_ENDS_ITEM(batch->results[i]))
            gpsti_item_fail(item, batch->results[i], gpsti_step_name(item->pipeline, step), reason);
    }
    for (gpsti_item *item = first, *next = NULL; item; item = next) {
        next = item->next_in_batch;
        item->next_in_batch = NULL;
        gpsti_queue_pass(step, item);
        if (item != first)
            gpsti_flight_send(&item->job, gpsti_flight_next_step(item, item->job.step));
    }
}

/* Counted as so many services side by side. */
GPSTI_INTERN gpsti_job* gpsti_inline_batch(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpsti_host_batch batch;
    gpsti_service service;
    gpsti_inline_collect(run, job->item, step, &batch);
    gpsti_service_begin(&service, step, job);
    gpsti_inline_call(run, step, &batch);
    gpsti_service_end(&service, GPST_OK);
    gpsti_service_share(&service, batch.n);
    for (uint32_t i = 0; i < batch.n; i++) {
        service.failed = GPST_FAILED(batch.results[i]);
        gpsti_run_keep(run, &service);
    }
    gpsti_run_lock(run);
    gpsti_queue_learn(step, batch.n, job->item->batch_ns);
    gpsti_inline_end_items(job->item, step, &batch);
    gpsti_inline_leave(run, step, job);
    gpsti_run_unlock(run);
    return gpsti_inline_next(run, job);
}
