/* core/pipeline/inline_codec.c -- DECODE of a job that runs inline, and of a batch that it came with; ENCODE of
   pictures that are on the device. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

/* Counts the batch as so many services side by side, and sends all but the first item on. Locked. */
GPSTI_PRIVATE void gpsti_inline_end_batch(gpsti_slot* first, gpsti_step* step) {
    gpst_pipeline* const pipeline = first->pipeline;
    const uint32_t to = gpsti_set_of(step->writes);
    for (gpsti_slot *slot = first, *next = NULL; slot; slot = next) {
        const bool decoded = slot->decode == GPSTI_DECODE_DEVICE;
        next = slot->next_in_batch;
        slot->next_in_batch = NULL;
        pipeline->codecs.n_decoded += decoded ? 1 : 0;
        if (decoded)
            gpsti_account_copy(pipeline, &pipeline->sets[to], true, 1, slot->item.file_bytes);
        if (slot != first)
            gpsti_flight_send(&slot->job, decoded ? gpsti_flight_next_step(slot, slot->job.step) : slot->job.step);
    }
}

/* The first item of a batch goes on on this thread; if the device has refused it, in this step on the cores. */
GPSTI_PRIVATE gpsti_job* gpsti_inline_decode_batch(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpsti_slot* const first = job->slot;
    gpsti_service service;
    gpsti_service_begin(&service, step, job);
    const uint32_t n = gpsti_decode_batch(first, step, run->worker_index);
    gpsti_service_end(&service, GPST_OK);
    const int64_t start_ns = service.start_ns, end_ns = service.end_ns, share = n > 0 ? n : 1; /* an item's */
    service.end_ns = service.start_ns + (service.end_ns - service.start_ns) / share;
    service.cpu_ns = service.cpu_ns > 0 ? service.cpu_ns / share : service.cpu_ns;
    service.setup_ns /= share;
    for (uint32_t i = 0; i < n; i++)
        gpsti_run_keep(run, &service);
    gpsti_run_lock(run);
    if (n > 0 && run->pipeline->codecs.has_engines) {
        gpsti_busy_add(&run->pipeline->busy[GPST_RESOURCE_JPEG], start_ns, end_ns);
        /* While one batch is decoded, the next one waits. */
        gpsti_tune_hold(run->pipeline, 2 * gpsti_decode_batch_most(&run->pipeline->codecs, first));
    }
    gpsti_inline_end_batch(first, step);
    gpsti_inline_leave(run, step, job);
    gpsti_run_unlock(run);
    return first->decode == GPSTI_DECODE_DEVICE ? gpsti_inline_next(run, job) : job;
}

GPSTI_INTERN gpsti_job* gpsti_inline_decode(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpst_pipeline* const pipeline = run->pipeline;
    if (job->slot->decode == GPSTI_DECODE_DEVICE)
        return gpsti_inline_decode_batch(run, job, step);
    if (pipeline->codecs.asked) {
        gpsti_run_lock(run);
        pipeline->codecs.n_decoded++;
        gpsti_run_unlock(run);
    }
    return gpsti_inline_host(run, job, step);
}

GPSTI_INTERN bool gpsti_inline_encode(gpsti_run* run, gpsti_slot* slot, const gpsti_step* step) {
    char reason[GPST_REASON_BYTES];
    gpsti_service service;
    bool refused = false;
    if (run->pipeline->stages[step->first_stage].codec == GPST_CODEC_EXACT || !gpsti_encode_is_on_device(slot, step))
        return false;
    gpsti_service_begin(&service, step, &slot->job);
    const gpst_result result = gpsti_encode_on_device(slot, step, run->worker_index, &refused, reason);
    if (refused)
        return false;
    gpsti_service_end(&service, result);
    gpsti_run_keep(run, &service);
    if (GPSTI_ENDS_ITEM(result))
        gpsti_inline_fail(&slot->job, result, reason);
    return true;
}
