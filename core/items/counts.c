/* core/items/counts.c -- what services and items are counted as: clocks, busy time of resources, CPU time. Calls no
   callback. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- one service --------------------------------------------------------------------------- */

/* cpu_ns holds the thread's counter until gpsti_service_end makes a difference of it. */
GPSTI_INTERN void gpsti_service_begin(gpsti_service* service, const gpsti_batch* batch) {
    memset(service, 0, sizeof *service);
    service->step = gpsti_batch_step(batch);
    service->cpu_ns = batch->item->samples_cpu ? gpsti_thread_cpu_ns() : -1;
    service->start_ns = gpsti_now_ns();
    service->wait_ns = batch->ready_ns > 0 ? service->start_ns - batch->ready_ns : 0;
}

GPSTI_INTERN void gpsti_service_end(gpsti_service* service, gpst_result result) {
    service->end_ns = gpsti_now_ns();
    service->cpu_ns = service->cpu_ns >= 0 ? gpsti_thread_cpu_ns() - service->cpu_ns : -1;
    service->failed = GPST_FAILED(result);
}

GPSTI_INTERN void gpsti_service_share(gpsti_service* service, uint32_t n_items) {
    const int64_t n = n_items > 0 ? n_items : 1;
    service->end_ns = service->start_ns + (service->end_ns - service->start_ns) / n;
    service->cpu_ns = service->cpu_ns > 0 ? service->cpu_ns / n : service->cpu_ns;
}

GPSTI_PRIVATE void gpsti_count_service(gpst_pipeline* pipeline, const gpsti_service* service) {
    const gpsti_step* const step = service->step;
    gpsti_clock* const clock = step->index + 1 == pipeline->plan.n_steps ? &pipeline->counts.finish_clock
                                                                         : &pipeline->counts.clocks[step->first_clock];
    const int64_t busy_ns = service->end_ns - service->start_ns;
    if (!step->count)
        gpsti_clock_add(clock, busy_ns, service->wait_ns, 0, service->failed);
    else if (!step->count(pipeline, service))
        return;
    if (service->cpu_ns >= 0)
        gpsti_clock_add_cpu(clock, service->cpu_ns, busy_ns);
}

GPSTI_INTERN gpsti_locked gpsti_run_lock(gpsti_run* run) {
    const gpsti_locked locked = gpsti_lock(run->pipeline->context);
    for (uint32_t i = 0; i < run->n; i++)
        gpsti_count_service(run->pipeline, &run->services[i]);
    run->n = 0;
    return locked;
}

GPSTI_INTERN void gpsti_run_keep(gpsti_run* run, const gpsti_service* service) {
    if (run->n == GPSTI_RUN_SERVICES)
        gpsti_unlock(gpsti_run_lock(run));
    run->services[run->n++] = *service;
}

GPSTI_INTERN void gpsti_count_source(gpst_pipeline* pipeline, uint64_t n_items, int64_t busy_ns, int64_t cpu_ns) {
    gpsti_clock* const clock = &pipeline->counts.source_clock;
    clock->count += n_items;
    clock->busy_ns += busy_ns;
    if (cpu_ns >= 0)
        gpsti_clock_add_cpu(clock, cpu_ns, busy_ns);
    gpsti_work_average(&pipeline->counts.source_ns, busy_ns / (int64_t)(n_items > 0 ? n_items : 1));
}

/* ---- reads and writes by their own threads --------------------------------------------------- */

GPSTI_INTERN void gpsti_count_read(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    const gpst_read* const read = &item->read;
    gpsti_clock* const clock = &pipeline->counts.clocks[gpsti_batch_step(&item->batch)->first_clock];
    gpsti_clock_add(clock, read->end_ns - read->start_ns, read->start_ns - item->batch.ready_ns, read->bytes,
                    GPST_FAILED(read->result));
    pipeline->counts.bytes_read += read->bytes;
}

GPSTI_INTERN void gpsti_count_write(gpst_pipeline* pipeline, const gpsti_write* write, int64_t ready_ns) {
    const bool failed = GPST_FAILED(write->result);
    gpsti_clock_add(&pipeline->counts.clocks[pipeline->plan.steps[pipeline->plan.n_steps - 2].first_clock],
                    write->end_ns - write->start_ns, write->start_ns - ready_ns, write->bytes, failed);
    gpsti_busy_add(&pipeline->counts.busy[GPST_RESOURCE_DISK_OUT], write->start_ns, write->end_ns);
    pipeline->counts.bytes_written += failed ? 0 : write->bytes;
}

GPSTI_INTERN void gpsti_count_copy(gpst_pipeline* pipeline, uint32_t set, bool up, uint32_t n_pictures,
                                   uint64_t bytes) {
    gpsti_copy_counts* const copies = up ? &pipeline->counts.copies_up[set] : &pipeline->counts.copies_down[set];
    copies->bytes += bytes;
    copies->n += n_pictures;
}

/* ---- an item ------------------------------------------------------------------------------- */

GPSTI_INTERN uint64_t gpsti_count_growths(const gpst_pipeline* pipeline) {
    gpst_pool_info pool;
    gpst_pool_query_info(pipeline->plan.pool, &pool);
    return gpsti_a64_load(&pipeline->memory.device_growths) + pool.allocations;
}

GPSTI_PRIVATE uint64_t* gpsti_count_end(gpsti_item_counts* counts, gpst_result result) {
    return result == GPST_ERROR_CANCELLED ? &counts->cancelled
           : result == GPST_SKIPPED       ? &counts->skipped
           : result == GPST_DROPPED       ? &counts->dropped
           : GPST_FAILED(result)          ? &counts->failed
                                          : &counts->ok;
}

GPSTI_INTERN void gpsti_count_item(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_camera* const camera = &pipeline->items.cameras[item->shown.camera];
    const gpst_result result = item->shown.result;
    (*gpsti_count_end(&pipeline->counts.items, result))++;
    (*gpsti_count_end(&camera->items, result))++;
    if (result == GPST_DROPPED)
        return;
    if (item->commit_end_ns > 0) {
        pipeline->counts.commit_ns += item->commit_end_ns - item->commit_start_ns;
        gpsti_busy_add(&pipeline->counts.busy[GPST_RESOURCE_DISK_OUT], item->commit_start_ns, item->commit_end_ns);
    }
    if (pipeline->counts.items.failed == 1 && pipeline->counts.first_failed == GPST_OK) {
        pipeline->counts.first_failed = result;
        gpsti_format(pipeline->counts.first_reason, sizeof pipeline->counts.first_reason, "%.100s: %s: %.300s",
                     item->shown.name, item->shown.stage, item->shown.reason);
    }
    if (GPST_FAILED(result) && pipeline->plan.desc.stop_on_error)
        gpsti_a32_store(&pipeline->signals.stop, 1);
    gpsti_histogram_add(&pipeline->counts.latency, item->shown.end_ns - item->shown.start_ns);
    gpsti_histogram_add(&camera->latency, item->shown.end_ns - item->shown.start_ns);
    if (!item->served) {
        item->served = true;
        pipeline->items.n_served++;
    }
}

/* ---- CPU time and busy time ---------------------------------------------------------------- */

GPSTI_INTERN int64_t gpsti_count_clock_cpu_ns(const gpst_pipeline* pipeline, const gpsti_clock* clock) {
    const bool reads = clock->resource == GPST_RESOURCE_DISK_IN;
    const int64_t own_ns = reads ? pipeline->counts.own_read_ns : pipeline->counts.own_write_ns;
    if (!reads && clock->resource != GPST_RESOURCE_DISK_OUT)
        return gpsti_clock_cpu_ns(clock);
    if (clock->cpu_busy_ns == 0)
        return own_ns;
    return (int64_t)((double)own_ns * (double)clock->cpu_ns / (double)clock->cpu_busy_ns);
}

GPSTI_INTERN int64_t gpsti_count_between_cpu_ns(const gpst_pipeline* pipeline) {
    return gpsti_clock_cpu_ns(&pipeline->counts.source_clock) + gpsti_clock_cpu_ns(&pipeline->counts.finish_clock) +
           gpsti_clock_cpu_ns(&pipeline->counts.submit_clock);
}

GPSTI_INTERN int64_t gpsti_count_cpu_ns(const gpst_pipeline* pipeline) {
    int64_t total_ns = gpsti_count_between_cpu_ns(pipeline);
    gpst_reader_info reader;
    gpsti_writer_info writer;
    for (uint32_t c = 0; c < pipeline->counts.n_clocks; c++)
        total_ns += gpsti_count_clock_cpu_ns(pipeline, &pipeline->counts.clocks[c]);
    gpst_reader_query_info(pipeline->files.reader, &reader);
    total_ns += (int64_t)reader.cpu_ns;
    if (pipeline->files.writer) {
        gpsti_writer_query_info(pipeline->files.writer, &writer);
        total_ns += (int64_t)writer.cpu_ns;
    }
    return total_ns;
}

GPSTI_INTERN void gpsti_count_busy(const gpst_pipeline* pipeline, int64_t busy_ns[GPST_RESOURCE_COUNT]) {
    gpst_reader_info reader;
    gpst_reader_query_info(pipeline->files.reader, &reader);
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++)
        busy_ns[r] = gpsti_timing_busy_ns(&pipeline->counts.timing, pipeline->counts.busy, r);
    busy_ns[GPST_RESOURCE_DISK_IN] += (int64_t)reader.busy_ns; /* its threads had at least one read */
}
