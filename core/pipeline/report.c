/* core/pipeline/report.c -- what a pipeline's clocks and counts say: statistics, demands and verdict. Reads; changes
   nothing. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

#include <string.h>

/* ---- demands ------------------------------------------------------------------------------ */

/* True if the cores are idle so much that no thread had to wait for one. */
GPSTI_PRIVATE bool gpsti_report_cores_idle(const gpsti_verdict_input* input) {
    return (double)input->demand_ns[GPST_RESOURCE_CPU] < 0.70 * (double)input->wall_ns;
}

/* Time a callback computes. The rest it waits: for a core where cores are busy, else for something outside. */
GPSTI_PRIVATE int64_t gpsti_report_computed_ns(const gpsti_clock* clock, const gpsti_verdict_input* input) {
    const int64_t cpu_ns = gpsti_clock_cpu_ns(clock);
    const bool waits = clock->cpu_samples > 0 && cpu_ns < clock->busy_ns && gpsti_report_cores_idle(input);
    return waits ? cpu_ns : clock->busy_ns;
}

GPSTI_PRIVATE void gpsti_report_callback_alone(const gpsti_clock* clock, int64_t rounds, gpsti_verdict_input* input) {
    const int64_t computed_ns = gpsti_report_computed_ns(clock, input);
    if (clock->count == 0)
        return;
    input->alone_on_ns[GPST_RESOURCE_CPU] += computed_ns / (int64_t)clock->count * rounds;
    input->alone_on_ns[GPST_RESOURCE_NONE] += (clock->busy_ns - computed_ns) / (int64_t)clock->count * rounds;
}

/* Time of an item that meets no other, by resource: the mean service of every step, parts side by side on the
   workers. Of an asynchronous device the busy time for each item counts, since its services include waits for other
   items. */
GPSTI_PRIVATE void gpsti_report_alone(const gpst_pipeline* pipeline, gpsti_verdict_input* input) {
    const uint32_t n_parallel = gpsti_is_plain(pipeline) ? 1 : pipeline->plan.n_workers;
    const uint32_t rounds = (pipeline->plan.n_parts + n_parallel - 1) / n_parallel;
    const int64_t n_items = input->n_items > 0 ? (int64_t)input->n_items : 1;
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++)
        input->alone_on_ns[r] = input->demand_ns[r] / n_items;
    input->alone_on_ns[GPST_RESOURCE_DISK_OUT] = pipeline->counts.commit_ns / n_items;
    for (uint32_t s = 0; s + 1 < pipeline->plan.n_steps; s++) { /* not the end of items */
        const gpsti_step* const step = &pipeline->plan.steps[s];
        if (step->kind->joins && !pipeline->plan.device_on_host)
            continue;
        const uint32_t n_clocks = step->kind->joins ? step->n_stages + 2 : 1;
        for (uint32_t c = step->first_clock; c < step->first_clock + n_clocks; c++) {
            const gpsti_clock* const clock = &pipeline->counts.clocks[c];
            const int64_t n_times = step->per_picture ? (int64_t)rounds : 1;
            if (step->kind->calls)
                gpsti_report_callback_alone(clock, n_times, input);
            else if (clock->count > 0)
                input->alone_on_ns[clock->resource] += clock->busy_ns / (int64_t)clock->count * n_times;
        }
    }
    gpsti_report_callback_alone(&pipeline->counts.source_clock, 1, input);
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++)
        input->alone_ns += input->alone_on_ns[r];
}

/* Part of the reader's time in which reads waited for the disk, 0..1. Many reads at once on few cores take long
   although they only compute, so the part of reads that computed counts, or the part of CPU time where that is above a
   half. */
GPSTI_PRIVATE double gpsti_report_reader_waits(const gpst_reader_info* info) {
    const double computed = info->reads > 0 ? (double)info->computed / (double)info->reads : 0.0;
    const double part = info->service_ns > 0 ? (double)info->cpu_ns / (double)info->service_ns : 0.0;
    const double most = part < 0.5 || part < computed ? computed : part;
    return most < 1.0 ? 1.0 - most : 0.0;
}

/* Part of all read time that was waiting, 0..1: of the reader's threads as above, of workers what they did not compute.
   */
GPSTI_PRIVATE double gpsti_report_reads_wait(const gpst_pipeline* pipeline) {
    const gpsti_clock* const clock = &pipeline->counts.clocks[pipeline->plan.steps[0].first_clock];
    const double own_ns = (double)pipeline->counts.own_read_ns, all_ns = (double)clock->busy_ns;
    const double own_cpu_ns = (double)gpsti_count_clock_cpu_ns(pipeline, clock);
    gpst_reader_info info;
    gpst_reader_query_info(pipeline->files.reader, &info);
    const double own_waits_ns = own_cpu_ns < own_ns ? own_ns - own_cpu_ns : 0.0;
    return all_ns <= 0.0 ? 0.0 : (own_waits_ns + (all_ns - own_ns) * gpsti_report_reader_waits(&info)) / all_ns;
}

/* Reads from the page cache load the cores, not the disk. */
GPSTI_PRIVATE void gpsti_report_computing_reads(const gpst_pipeline* pipeline, gpsti_verdict_input* input) {
    int64_t* const alone_ns = &input->alone_on_ns[GPST_RESOURCE_DISK_IN];
    int64_t* const demand_ns = &input->demand_ns[GPST_RESOURCE_DISK_IN];
    if (*alone_ns <= 0)
        return;
    const double waits = gpsti_report_reads_wait(pipeline);
    const int64_t waited_ns = (int64_t)(waits * (double)*alone_ns);
    input->alone_on_ns[GPST_RESOURCE_CPU] += *alone_ns - waited_ns;
    *alone_ns = waited_ns;
    *demand_ns = (int64_t)(waits * (double)*demand_ns);
}

/* The CPU is full when all cores are busy, or all workers: the larger of the two demands. */
GPSTI_PRIVATE int64_t gpsti_report_cpu_demand(const gpst_pipeline* pipeline, int64_t total_ns) {
    const int64_t cores = (int64_t)pipeline->context->info.cores_allowed;
    const int64_t workers = (int64_t)pipeline->plan.n_workers < cores ? (int64_t)pipeline->plan.n_workers : cores;
    int64_t on_workers_ns = gpsti_count_between_cpu_ns(pipeline);
    if (gpsti_is_plain(pipeline))
        return total_ns / cores;
    for (uint32_t c = 0; c < pipeline->counts.n_clocks; c++)
        if (pipeline->counts.clocks[c].resource == GPST_RESOURCE_CPU ||
            pipeline->counts.clocks[c].resource == GPST_RESOURCE_DISK_IN)
            on_workers_ns += gpsti_count_clock_cpu_ns(pipeline, &pipeline->counts.clocks[c]);
    const int64_t by_workers_ns = on_workers_ns / workers;
    return by_workers_ns > total_ns / cores ? by_workers_ns : total_ns / cores;
}

/* Services of a step side by side at most; ordered: one a camera. 0 = any number. */
GPSTI_PRIVATE int64_t gpsti_report_at_once(const gpst_pipeline* pipeline, const gpsti_step* step) {
    const uint32_t n_cameras = pipeline->items.n_cameras > 0 ? pipeline->items.n_cameras : 1;
    const bool fewer = step->concurrency == 0 || n_cameras < step->concurrency;
    return step->ordered && fewer ? n_cameras : step->concurrency;
}

/* The fullest of what runs with limited concurrency: the source, stages with a limit, and the ends of items where a
   sink is called. */
GPSTI_PRIVATE void gpsti_report_busiest_stage(const gpst_pipeline* pipeline, gpsti_verdict_input* input) {
    input->stage = pipeline->counts.source_clock.busy_ns > 0 ? "source" : "";
    input->stage_ns = pipeline->counts.source_clock.busy_ns;
    input->stage_on_ns[GPST_RESOURCE_CPU] = gpsti_report_computed_ns(&pipeline->counts.source_clock, input);
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        const gpsti_step* const step = &pipeline->plan.steps[s];
        const bool ends = step->n_stages == 0;
        const gpsti_clock* const clock =
            ends ? &pipeline->counts.finish_clock : &pipeline->counts.clocks[step->first_clock];
        const int64_t at_once = gpsti_report_at_once(pipeline, step);
        if (!(ends || step->kind->calls) || at_once == 0 || clock->busy_ns / at_once <= input->stage_ns)
            continue;
        input->stage = !ends                      ? pipeline->plan.stages[step->first_stage].name
                       : pipeline->plan.desc.sink ? "sink"
                                                  : "commit";
        input->stage_ns = clock->busy_ns / at_once;
        input->stage_on_ns[GPST_RESOURCE_CPU] = gpsti_report_computed_ns(clock, input) / at_once;
        input->stage_on_ns[GPST_RESOURCE_DISK_OUT] = ends ? pipeline->counts.commit_ns : 0;
    }
}

/* Callbacks that wait occupy workers; when all are occupied, idle cores do not help. */
GPSTI_PRIVATE void gpsti_report_waiting_workers(const gpst_pipeline* pipeline, gpsti_verdict_input* input) {
    const int64_t n_workers = (int64_t)pipeline->plan.n_workers;
    int64_t busy_ns = pipeline->counts.source_clock.busy_ns;
    int64_t computed_ns = gpsti_report_computed_ns(&pipeline->counts.source_clock, input);
    int64_t longest_ns = busy_ns - computed_ns;
    const char* longest = "source";
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        const gpsti_clock* const clock = &pipeline->counts.clocks[pipeline->plan.steps[s].first_clock];
        if (!pipeline->plan.steps[s].kind->calls)
            continue;
        const int64_t stage_ns = gpsti_report_computed_ns(clock, input), waited_ns = clock->busy_ns - stage_ns;
        busy_ns += clock->busy_ns;
        computed_ns += stage_ns;
        longest = waited_ns > longest_ns ? pipeline->plan.stages[pipeline->plan.steps[s].first_stage].name : longest;
        longest_ns = waited_ns > longest_ns ? waited_ns : longest_ns;
    }
    if (!gpsti_report_cores_idle(input) || busy_ns / n_workers <= input->stage_ns)
        return;
    input->on_workers = true;
    input->stage = longest;
    input->stage_ns = busy_ns / n_workers;
    memset(input->stage_on_ns, 0, sizeof input->stage_on_ns);
    input->stage_on_ns[GPST_RESOURCE_CPU] = computed_ns / n_workers;
}

#define GPSTI_REPORT_OTHERS_NS 500000000 /* in less time the system's steps of 10 ms are too much */

/* A pushed run is measured until now. */
GPSTI_INTERN double gpsti_report_others(const gpst_pipeline* pipeline, int64_t wall_ns) {
    const gpst_context* const context = pipeline->context;
    gpsti_core_use end = pipeline->counts.use_end;
    if (!pipeline->counts.use_start.known || wall_ns < GPSTI_REPORT_OTHERS_NS ||
        context->info.cores_allowed != context->cores_online)
        return -1.0;
    if (!end.known)
        gpsti_core_use_query_under(context->system_root, &end);
    const double all_ns = (double)(end.all_ns - pipeline->counts.use_start.all_ns);
    const double own_ns = (double)(end.own_ns - pipeline->counts.use_start.own_ns);
    const double share = (all_ns - own_ns) / ((double)wall_ns * (double)context->cores_online);
    return !end.known ? -1.0 : share < 0.0 ? 0.0 : share < 1.0 ? share : 1.0;
}

GPSTI_PRIVATE void gpsti_report_verdict(const gpst_pipeline* pipeline, gpst_stats* out) {
    const gpsti_tune* const tune = pipeline->tune;
    gpsti_verdict_input input;
    memset(&input, 0, sizeof input);
    input.n_items = out->items_ok + out->items_failed;
    input.wall_ns = out->wall_ns - out->start_ns - out->sync_ns;
    input.start_ns = out->start_ns;
    input.sync_ns = out->sync_ns;
    gpsti_count_busy(pipeline, input.demand_ns);
    input.demand_ns[GPST_RESOURCE_CPU] = gpsti_report_cpu_demand(pipeline, out->cpu_ns);
    input.serial = gpsti_is_plain(pipeline);
    input.serial_cpu_ns = out->cpu_ns - pipeline->counts.kernel_cpu_ns;
    input.n_slots = input.serial ? 0 : pipeline->items.n_slots;
    input.pushed = !pipeline->plan.desc.source;
    input.full_ns = tune->full_ns + (tune->full_since_ns != 0 ? gpsti_now_ns() - tune->full_since_ns : 0);
    if (!input.serial) {
        gpsti_report_busiest_stage(pipeline, &input);
        gpsti_report_waiting_workers(pipeline, &input);
    }
    gpsti_report_alone(pipeline, &input);
    gpsti_report_computing_reads(pipeline, &input);
    const double others = gpsti_report_others(pipeline, input.wall_ns);
    input.others = others > 0.0 ? others : 0.0;
    gpsti_verdict_make(&input, &out->verdict);
    if (tune->guard.report.text[0]) /* what the engine was worth */
        gpsti_append(out->verdict.text, sizeof out->verdict.text, "; %s", tune->guard.report.text);
}

/* ---- settings ----------------------------------------------------------------------------------- */

/* " preset=latency" where the mode is not the default's, and of a stage with bounds or batches "; model: queue_most=1
   latest-only batch=8 depth=1"; without batches "; model: queue_most=1 latest-only concurrency=1", of device work
   depth. */
GPSTI_PRIVATE void gpsti_report_step_settings(const gpst_pipeline* pipeline, const gpsti_step* step, gpst_stats* out) {
    static const char* const policies[] = {"block", "drop-newest", "drop-oldest", "latest-only"};
    const bool offloads = step->kind->joins;
    const uint32_t depth = offloads ? step->streams : step->concurrency; /* concurrency there: threads that submit */
    char* const text = out->settings;
    const size_t bytes = sizeof out->settings;
    if (step->queue_most == 0 && step->batch_most == 0)
        return;
    gpsti_append(text, bytes, "; %s:", gpsti_step_name(&pipeline->plan, step));
    if (step->queue_most > 0)
        gpsti_append(text, bytes, " queue_most=%u %s", step->queue_most, policies[step->full_policy]);
    if (step->batch_most > 0)
        gpsti_append(text, bytes, " batch=%u", step->batch_most);
    if (depth > 0)
        gpsti_append(text, bytes, " %s=%u", offloads || step->batch_most > 0 ? "depth" : "concurrency", depth);
}

GPSTI_PRIVATE void gpsti_report_settings(const gpst_pipeline* pipeline, gpst_stats* out) {
    static const char* const modes[] = {"engine", "engine", "plain-serial", "plain-inside"};
    static const char* const presets[] = {"", " preset=latency", "", " preset=throughput"};
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    const uint32_t found = pipeline->tune->tuner.now.value[GPST_KNOB_LOOP];
    const bool over_early = found == (uint32_t)GPST_RUN_ENGINE && gpsti_is_plain(pipeline);
    const uint32_t loop = over_early ? (uint32_t)GPST_RUN_PLAIN_SERIAL : found;
    gpsti_format(
        out->settings, sizeof out->settings,
        "mode=%s workers=%u slots=%u reads=%u writes=%u threads_inside=%u order=%s fsync=%s dirty_bytes=%llu%s",
        modes[loop], pipeline->plan.n_active, pipeline->items.n_slots, desc->n_reads, desc->n_writes,
        pipeline->plan.kernel_threads, desc->as_ready ? "ready" : "input",
        desc->fsync == GPST_FSYNC_FILE ? "file" : "none", (unsigned long long)desc->dirty_bytes, presets[desc->preset]);
    for (uint32_t s = 0; s + 1 < pipeline->plan.n_steps; s++)
        gpsti_report_step_settings(pipeline, &pipeline->plan.steps[s], out);
}

GPSTI_PRIVATE void gpsti_report_copy(gpst_stats* out, uint32_t set, bool up, const gpsti_copy_counts* counts,
                                     const char* wanted) {
    *(up ? &out->bytes_h2d : &out->bytes_d2h) += counts->bytes;
    if (counts->n == 0)
        return;
    gpst_copy_stats* const copy = &out->copies[out->n_copies++];
    copy->set = set;
    copy->up = up;
    copy->count = counts->n;
    copy->bytes = counts->bytes;
    gpsti_copy_text(copy->wanted, sizeof copy->wanted, wanted);
}

GPSTI_PRIVATE void gpsti_report_batches(const gpst_pipeline* pipeline, gpst_stats* out) {
    for (uint32_t s = 0; s + 1 < pipeline->plan.n_steps; s++) {
        const gpsti_step* const step = &pipeline->plan.steps[s];
        gpst_stage_stats* const row = &out->stages[step->first_clock + (step->kind->joins ? 1 : 0)];
        row->n_batches = step->batch_most > 0 ? step->queue.n_batches : 0;
        row->n_late = step->queue.n_late;
        row->n_shed = step->queue.n_shed;
    }
}

/* ---- all of it --------------------------------------------------------------------------------- */

/* The run's time, and that of the job around it. */
GPSTI_PRIVATE void gpsti_report_wall(const gpst_pipeline* pipeline, gpst_stats* out) {
    const bool over = gpsti_items_n_under_way(pipeline) == 0 && pipeline->counts.end_ns != 0;
    const int64_t now_ns = pipeline->counts.job_ended_ns != 0 ? pipeline->counts.job_ended_ns : gpsti_now_ns();
    const int64_t end_ns = over ? pipeline->counts.end_ns : now_ns;
    if (pipeline->counts.start_ns == 0)
        return;
    out->start_ns = pipeline->counts.job_begun_ns != 0 ? pipeline->counts.start_ns - pipeline->counts.job_begun_ns : 0;
    out->sync_ns = pipeline->counts.job_ended_ns != 0 ? pipeline->counts.job_ended_ns - end_ns : 0;
    out->wall_ns = out->start_ns + (end_ns - pipeline->counts.start_ns) + out->sync_ns;
}

GPSTI_INTERN void gpsti_report_job(gpst_pipeline* pipeline, int64_t begun_ns, int64_t ended_ns) {
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    pipeline->counts.job_begun_ns = begun_ns;
    pipeline->counts.job_ended_ns = ended_ns;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
}

GPSTI_PRIVATE void gpsti_report_make(gpst_pipeline* pipeline, gpst_stats* out) {
    gpsti_report_wall(pipeline, out);
    out->items_total = pipeline->items.next_index + pipeline->counts.items_refused;
    out->items_ok = pipeline->counts.items.ok;
    out->items_failed = pipeline->counts.items.failed;
    out->items_skipped = pipeline->counts.items.skipped;
    out->items_dropped = pipeline->counts.items.dropped;
    out->items_cancelled = pipeline->counts.items.cancelled;
    out->bytes_read = pipeline->counts.bytes_read;
    out->bytes_written = pipeline->counts.bytes_written;
    out->slots = pipeline->items.n_slots;
    out->slots_used = pipeline->items.n_used;
    out->growths = gpsti_count_growths(pipeline);
    if (pipeline->counts.frozen) {
        const uint64_t allocations = gpsti_a64_load(&pipeline->context->host.allocation_count) -
                                     gpsti_graph_cache_n_allocations(pipeline->plan.graphs);
        out->allocations_after_freeze = allocations - pipeline->counts.frozen_allocations;
        out->growths_after_freeze = out->growths - pipeline->counts.frozen_growths;
    }
    out->device_fallbacks = pipeline->counts.device_fallbacks;
    out->latency_p50_ns = gpsti_histogram_quantile(&pipeline->counts.latency, 0.50);
    out->latency_p99_ns = gpsti_histogram_quantile(&pipeline->counts.latency, 0.99);
    out->latency_max_ns = pipeline->counts.latency.max_ns;
    out->cpu_ns = gpsti_count_cpu_ns(pipeline);
    out->n_stages = pipeline->counts.n_clocks;
    for (uint32_t c = 0; c < pipeline->counts.n_clocks; c++)
        gpsti_clock_report(&pipeline->counts.clocks[c], out->wall_ns, &out->stages[c]);
    gpsti_report_batches(pipeline, out);
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++) {
        gpsti_report_copy(out, k, true, &pipeline->counts.copies_up[k], pipeline->plan.sets[k].wanted_up);
        gpsti_report_copy(out, k, false, &pipeline->counts.copies_down[k], pipeline->plan.sets[k].wanted_down);
    }
    gpsti_report_verdict(pipeline, out);
    gpsti_report_paths(pipeline, out);
    gpsti_report_settings(pipeline, out);
}

GPST_API uint32_t gpst_pipeline_query_cameras(gpst_pipeline* pipeline, gpst_camera_stats* out, uint32_t n) {
    n = out ? n : 0;
    if (out)
        memset(out, 0, n * sizeof *out);
    if (!pipeline || GPST_FAILED(gpsti_context_check(pipeline->context, "gpst_pipeline_query_cameras")))
        return 0;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    const uint32_t n_cameras = pipeline->items.n_cameras;
    for (uint32_t c = 0; c < n && c < n_cameras; c++) {
        const gpsti_camera* const camera = &pipeline->items.cameras[c];
        out[c].items_ok = camera->items.ok;
        out[c].items_failed = camera->items.failed;
        out[c].items_skipped = camera->items.skipped;
        out[c].items_dropped = camera->items.dropped;
        out[c].items_cancelled = camera->items.cancelled;
        out[c].latency_p50_ns = gpsti_histogram_quantile(&camera->latency, 0.50);
        out[c].latency_p99_ns = gpsti_histogram_quantile(&camera->latency, 0.99);
        out[c].latency_max_ns = camera->latency.max_ns;
    }
    gpsti_unlock(locked);
    return n_cameras;
}

GPST_API void gpst_pipeline_query_stats(gpst_pipeline* pipeline, gpst_stats* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!pipeline || GPST_FAILED(gpsti_context_check(pipeline->context, "gpst_pipeline_query_stats")))
        return;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    gpsti_report_make(pipeline, out);
    gpsti_unlock(locked);
}
