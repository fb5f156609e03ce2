/* core/pipeline/tune_costs.c -- what an item takes, by the clocks of those that have been: what the tuner's model is
   made of. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

GPSTI_PRIVATE void gpsti_tune_note_share(const gpsti_clock* clock, gpsti_tune_share* out) {
    out->count = clock->count;
    out->work_ns = clock->busy_ns - clock->setup_ns;
}

GPSTI_INTERN void gpsti_tune_leave_out(gpst_pipeline* pipeline) {
    for (uint32_t c = 0; c < pipeline->n_clocks; c++)
        gpsti_tune_note_share(&pipeline->clocks[c], &pipeline->tune.first[c]);
}

/* A call's mean by one clock, as if its memory had been made before; item 0 only where there is no other. */
GPSTI_PRIVATE int64_t gpsti_tune_call_ns(const gpsti_clock* clock, const gpsti_tune_share* first) {
    gpsti_tune_share all;
    gpsti_tune_note_share(clock, &all);
    if (all.count > first->count)
        return (all.work_ns - first->work_ns) / (int64_t)(all.count - first->count);
    return all.count > 0 ? all.work_ns / (int64_t)all.count : 0;
}

/* By the means of all calls, those of items in flight among them. */
GPSTI_PRIVATE void gpsti_tune_services(const gpst_pipeline* pipeline, int64_t* out_ns) {
    for (uint32_t s = 0; pipeline->steps[s].kind != GPSTI_STEP_FINISH; s++) {
        const gpsti_step* const step = &pipeline->steps[s];
        const uint32_t n_clocks = step->kind == GPSTI_STEP_OFFLOAD ? step->n_stages + 2 : 1;
        const int64_t n_calls = step->per_output ? pipeline->n_outputs : 1;
        for (uint32_t c = step->first_clock; c < step->first_clock + n_clocks; c++)
            out_ns[pipeline->clocks[c].resource] +=
                n_calls * gpsti_tune_call_ns(&pipeline->clocks[c], &pipeline->tune.first[c]);
    }
}

/* What a device did for several items side by side counts once. */
GPSTI_PRIVATE void gpsti_tune_share_device(const gpst_pipeline* pipeline, int64_t* out_ns) {
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++) {
        const double busy_ns = (double)gpsti_timing_busy_ns(&pipeline->timing, pipeline->busy, r);
        int64_t total_ns = 0;
        for (uint32_t c = 0; c < pipeline->n_clocks; c++)
            total_ns += (int)pipeline->clocks[c].resource == r ? pipeline->clocks[c].busy_ns : 0;
        if (total_ns > 0)
            out_ns[r] = (int64_t)((double)out_ns[r] * busy_ns / (double)total_ns);
    }
}

/* By all items that were there so far. Another pipeline's on the same device are taken for its own. */
GPSTI_PRIVATE int64_t gpsti_tune_played_ns(const gpst_pipeline* pipeline) {
    const uint64_t n_items = pipeline->n_in_place + pipeline->n_copied;
    const uint64_t played_ns = gpsti_a64_load(&pipeline->context->device->played_ns) - pipeline->tune.played_before_ns;
    return n_items > 0 ? (int64_t)(played_ns / n_items) : 0;
}

GPSTI_PRIVATE uint64_t gpsti_tune_read_bytes(const gpst_pipeline* pipeline) {
    const gpsti_clock* const clock = &pipeline->clocks[pipeline->steps[0].first_clock];
    return pipeline->steps[0].kind == GPSTI_STEP_READ && clock->count > 0 ? clock->bytes / clock->count : 0;
}

/* But for a part, which may be waiting. Of syncing, that is a disk's time: little, as it is in memory. */
GPSTI_PRIVATE bool gpsti_tune_computes(const gpst_pipeline* pipeline, const gpsti_clock* clock) {
    const int64_t n_parts = pipeline->tune.tuner.budget.syncs ? 8 : 2;
    return n_parts * (clock->cpu_busy_ns - clock->cpu_ns) <= clock->cpu_busy_ns;
}

/* By the calls that were sampled; or by the writer, whose threads may well have waited for a core. */
GPSTI_PRIVATE bool gpsti_tune_writes_compute(const gpst_pipeline* pipeline) {
    const gpsti_step* const step = &pipeline->steps[pipeline->n_steps > 1 ? pipeline->n_steps - 2 : 0];
    const gpsti_clock* const clock = &pipeline->clocks[step->first_clock];
    gpsti_writer_info info;
    if (step->kind != GPSTI_STEP_WRITE)
        return false;
    if (clock->cpu_samples > 0)
        return gpsti_tune_computes(pipeline, clock);
    if (!pipeline->writer)
        return false;
    gpsti_writer_query_info(pipeline->writer, &info);
    return info.writes > 0 && 2 * info.computed >= info.writes;
}

/* An item's services. What calls of a device take is not to be had from a plain loop, where they wait for it; and its
   reads from the page cache will be the workers'. */
GPSTI_INTERN void gpsti_tune_costs(const gpst_pipeline* pipeline, gpsti_tuner_costs* out) {
    const gpsti_tune* const tune = &pipeline->tune;
    int64_t* const service_ns = out->service_ns;
    memset(out, 0, sizeof *out);
    out->is_first = tune->first[0].count == 0 && pipeline->items_ok + pipeline->items_failed < 2;
    out->item_ns = tune->item_ns;
    out->read_bytes = gpsti_tune_read_bytes(pipeline);
    out->played_ns = gpsti_tune_played_ns(pipeline);
    gpsti_tune_services(pipeline, service_ns);
    gpsti_tune_share_device(pipeline, service_ns);
    out->writes_compute = gpsti_tune_writes_compute(pipeline);
    out->files_in_memory = gpsti_a32_load(&tune->files_in_memory) != 0;
    service_ns[GPST_RESOURCE_CPU] += pipeline->finish_clock.count > 0
                                         ? pipeline->finish_clock.busy_ns / (int64_t)pipeline->finish_clock.count
                                         : 0;
    if (!gpsti_carry_computes(pipeline))
        return;
    out->read_ns = service_ns[GPST_RESOURCE_DISK_IN];
    service_ns[GPST_RESOURCE_CPU] += out->read_ns;
    service_ns[GPST_RESOURCE_DISK_IN] = 0;
}

GPSTI_INTERN uint32_t gpsti_tune_reads_at_once(const gpst_pipeline* pipeline) {
    return pipeline->whole ? pipeline->n_active : pipeline->desc.n_reads;
}

GPSTI_INTERN void gpsti_tune_take_alone(const gpst_pipeline* pipeline, gpsti_tuner_costs* costs) {
    const gpsti_tune* const tune = &pipeline->tune;
    int64_t* const service_ns = costs->service_ns;
    const uint32_t n_reads = gpsti_tune_reads_at_once(pipeline);
    const uint32_t n_writes = pipeline->whole ? pipeline->n_active : pipeline->desc.n_writes;
    service_ns[GPST_RESOURCE_DISK_IN] =
        gpsti_tuner_file_alone_ns(service_ns[GPST_RESOURCE_DISK_IN], tune->read_alone_ns, n_reads);
    service_ns[GPST_RESOURCE_DISK_OUT] = gpsti_tuner_file_alone_ns(
        service_ns[GPST_RESOURCE_DISK_OUT], tune->model.service_ns[GPST_RESOURCE_DISK_OUT], n_writes);
}

GPSTI_INTERN void gpsti_tune_note_source(gpst_pipeline* pipeline, int64_t busy_ns) {
    int64_t* const least_ns = &pipeline->tune.source_ns;
    *least_ns = *least_ns == 0 || busy_ns < *least_ns ? busy_ns : *least_ns;
}
