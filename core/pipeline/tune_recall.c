/* core/pipeline/tune_recall.c -- a run that knows its items from the last one of its job: which runs are of one job,
   what is
   left for the next, and what the next one makes of it. Whether it should is recall.c's business. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

#define GPSTI_TUNE_RECALL_ITEMS 32 /* of a run that is worth remembering */
#define GPSTI_TUNE_RECALL_WHOLE 4  /* which brought them whole */
#define GPSTI_TUNE_RECALL_MADE 32 /* of a run's time, in which it made memory */
#define GPSTI_TUNE_RECALL_BRIEF_NS 1000000000 /* longer runs have the time to try several numbers of workers */
#define GPSTI_TUNE_RECALL_READS 8 /* that tell more than the plain start's */
#define GPSTI_TUNE_RECALL_LOOKS 3 /* at items, until they are believed to be others: the first ones meet each other */

/* ---- the job ------------------------------------------------------------------------------------------ */

GPSTI_PRIVATE uint64_t gpsti_tune_mix(uint64_t hash, uint64_t number) {
    return gpsti_hash(hash, &number, sizeof number);
}

/* user_data may be another's in every run of the same job. */
GPSTI_PRIVATE uint64_t gpsti_tune_mix_stage(uint64_t hash, const gpst_stage_desc* stage) {
    hash = gpsti_tune_mix(hash, (uint64_t)stage->kind);
    hash = gpsti_hash(hash, &stage->func, sizeof stage->func);
    hash = gpsti_tune_mix(hash, stage->concurrency);
    hash = gpsti_tune_mix(hash, (stage->per_output ? 1u : 0u) | (stage->ordered ? 2u : 0u));
    if (!stage->warp)
        return hash;
    hash = gpsti_tune_mix(hash, (uint64_t)stage->warp->desc.map << 8 | (uint64_t)stage->warp->desc.filter);
    return gpsti_tune_mix(hash, (uint64_t)stage->warp->desc.width << 32 | stage->warp->desc.height);
}

/* What two pipelines of one context have in common whose runs are alike, but for what is in their items. */
GPSTI_PRIVATE uint64_t gpsti_tune_job(const gpst_pipeline* pipeline) {
    const gpst_pipeline_desc* const desc = &pipeline->desc;
    const gpst_settings* const fixed = &pipeline->tune.tuner.budget.fixed;
    uint64_t hash = GPSTI_HASH_START;
    for (uint32_t s = 0; s < desc->n_stages; s++)
        hash = gpsti_tune_mix_stage(hash, &pipeline->stages[s].desc);
    hash = gpsti_hash(hash, &desc->source, sizeof desc->source);
    hash = gpsti_hash(hash, &desc->sink, sizeof desc->sink);
    hash = gpsti_tune_mix(hash, pipeline->n_outputs);
    hash = gpsti_tune_mix(hash, (uint64_t)desc->preset << 8 | (uint64_t)desc->fsync);
    hash = gpsti_tune_mix(hash, (desc->as_ready ? 1u : 0u) | (desc->n_paths > 0 ? 2u : 0u));
    hash = gpsti_hash(hash, fixed->value, sizeof fixed->value);
    return hash != 0 ? hash : 1;
}

/* ---- the end of a run ---------------------------------------------------------------------------------- */

/* Its kernels had every core to the end, where workers could have brought items whole. */
GPSTI_PRIVATE bool gpsti_tune_stayed_inside(const gpst_pipeline* pipeline) {
    const gpsti_tune* const tune = &pipeline->tune;
    return !tune->modelled && tune->inside_ns > 0.0 && pipeline->items_ok >= 2 * (uint64_t)pipeline->n_workers &&
           tune->tuner.now.value[GPST_KNOB_LOOP] == (uint32_t)GPST_RUN_PLAIN_INSIDE;
}

GPSTI_PRIVATE bool gpsti_tune_is_memorable(const gpst_pipeline* pipeline) {
    const gpsti_tune* const tune = &pipeline->tune;
    const uint64_t n_least = pipeline->whole ? GPSTI_TUNE_RECALL_WHOLE : GPSTI_TUNE_RECALL_ITEMS;
    return tune->job != 0 && (tune->modelled || gpsti_tune_stayed_inside(pipeline)) && pipeline->items_failed == 0 &&
           pipeline->items_cancelled == 0 && pipeline->items_ok >= n_least;
}

/* Where a plain loop was as fast the next run begins with it. Kernels that had every core take now and again many times
   as long, and an engine after them finds their threads still looking for more: which is better for such a job is seen
   by whole runs only. */
GPSTI_PRIVATE bool gpsti_tune_was_worth_it(const gpst_pipeline* pipeline, double run_ns) {
    const gpsti_tune* const tune = &pipeline->tune;
    const bool serial = tune->serial_ns > 0.0 && tune->serial_ns <= run_ns;
    return gpsti_tune_stayed_inside(pipeline) ||
           (tune->tuner.now.value[GPST_KNOB_LOOP] == (uint32_t)GPST_RUN_ENGINE && !serial);
}

/* Of the engines that serve one after the other: small kernels run side by side, and so does what cores play. */
GPSTI_PRIVATE int64_t gpsti_tune_copies_ns(const gpst_pipeline* pipeline, const gpsti_tuner_costs* seen) {
    const int64_t up_ns = gpsti_timing_busy_ns(&pipeline->timing, pipeline->busy, (int)GPST_RESOURCE_H2D);
    const int64_t down_ns = gpsti_timing_busy_ns(&pipeline->timing, pipeline->busy, (int)GPST_RESOURCE_D2H);
    if (seen->played_ns > 0)
        return 0;
    return up_ns > down_ns ? up_ns : down_ns;
}

/* What an item takes with one thread for its kernels, where they had every core. */
GPSTI_PRIVATE void gpsti_tune_take_out_threads(const gpsti_tune* tune, gpsti_tuner_costs* costs) {
    costs->service_ns[GPST_RESOURCE_CPU] += tune->alone_more_ns;
    costs->item_ns = (int64_t)tune->inside_ns + tune->alone_more_ns;
}

/* Did nearly all reads of the reader's threads wait for nothing but a core? Then the one that the model was made of, if
   it waited, had done so by chance, and each run would begin as this one did. */
GPSTI_PRIVATE bool gpsti_tune_reads_computed(const gpst_pipeline* pipeline, gpst_reader_info* info) {
    if (!pipeline->reader)
        return false;
    gpst_reader_query_info(pipeline->reader, info);
    const uint64_t n = info->reads, n_waited = n - info->computed;
    return n >= GPSTI_TUNE_RECALL_READS && n_waited <= n / GPSTI_TUNE_RECALL_READS;
}

GPSTI_PRIVATE void gpsti_tune_take_as_computing(const gpst_reader_info* info, gpsti_tuner_costs* costs) {
    costs->service_ns[GPST_RESOURCE_CPU] -= costs->read_ns;
    costs->read_ns = (int64_t)(info->cpu_ns / info->reads);
    costs->service_ns[GPST_RESOURCE_CPU] += costs->read_ns;
    costs->service_ns[GPST_RESOURCE_DISK_IN] = 0;
}

/* Files that many wait for at once take long, which says how many are enough, and nothing of what one takes: that is as
   the model had it. */
GPSTI_PRIVATE void gpsti_tune_describe_costs(const gpst_pipeline* pipeline, gpsti_recalled* out) {
    static const gpst_resource files[] = {GPST_RESOURCE_DISK_IN, GPST_RESOURCE_DISK_OUT};
    const gpsti_tune* const tune = &pipeline->tune;
    gpsti_tune_costs(pipeline, &out->seen);
    if (!tune->modelled)
        gpsti_tune_take_out_threads(tune, &out->seen);
    out->costs = out->seen;
    out->costs.is_first = false;
    if (!tune->modelled)
        return;
    out->costs.reads_enough =
        gpsti_tuner_reads_enough(out->seen.service_ns[GPST_RESOURCE_DISK_IN],
                                 tune->model.service_ns[GPST_RESOURCE_DISK_IN], gpsti_tune_reads_at_once(pipeline));
    for (int f = 0; f < 2; f++)
        out->costs.service_ns[files[f]] = out->seen.service_ns[files[f]] = tune->model.service_ns[files[f]];
    out->costs.writes_compute = tune->model.writes_compute;
    out->costs.service_ns[GPST_RESOURCE_CPU] += tune->model.read_ns - out->seen.read_ns;
    out->costs.read_ns = tune->model.read_ns;
    gpst_reader_info reads;
    if (tune->model.service_ns[GPST_RESOURCE_DISK_IN] == 0 || !gpsti_tune_reads_computed(pipeline, &reads))
        return;
    gpsti_tune_take_as_computing(&reads, &out->costs);
    gpsti_tune_take_as_computing(&reads, &out->seen);
    out->read_cpu_part = 1.0;
}

/* How many workers bring whole items best no model knows where they stand in line for a driver's calls, or for the
   directory that they make files in. */
GPSTI_PRIVATE bool gpsti_tune_stands_in_line(const gpst_pipeline* pipeline) {
    return pipeline->tune.tuner.budget.streams || gpsti_a32_load(&pipeline->tune.files_in_memory) != 0;
}

GPSTI_PRIVATE void gpsti_tune_describe(const gpst_pipeline* pipeline, gpsti_recalled* out) {
    const gpsti_tune* const tune = &pipeline->tune;
    const int64_t wall_ns = pipeline->end_ns - pipeline->start_ns;
    memset(out, 0, sizeof *out);
    out->job = tune->job;
    out->n_items = pipeline->items_ok;
    out->run_ns = (double)wall_ns / (double)pipeline->items_ok;
    out->serial_ns = tune->serial_ns;
    out->inside_ns = tune->inside_ns;
    out->read_cpu_part = pipeline->read_cpu_part;
    gpsti_tune_describe_costs(pipeline, out);
    out->copies_ns = (double)gpsti_tune_copies_ns(pipeline, &out->seen) / (double)pipeline->items_ok;
    out->item_host_bytes = tune->item_host_bytes;
    out->item_device_bytes = tune->item_device_bytes;
    out->n_workers = tune->tuner.now.value[GPST_KNOB_WORKERS];
    if (pipeline->whole && gpsti_tune_stands_in_line(pipeline) && wall_ns < GPSTI_TUNE_RECALL_BRIEF_NS)
        out->most_whole = gpsti_tune_most_whole(pipeline);
    out->made_memory = gpsti_report_made(pipeline) > 0 &&
                       GPSTI_STUB_GROWTH_NS > wall_ns / GPSTI_TUNE_RECALL_MADE;
    out->n_slots = pipeline->n_slots_used;
    out->slot_ns = gpsti_tune_slot_ns(pipeline);
    out->source_ns = tune->source_ns;
    out->source_work_ns = pipeline->source_work_ns;
}

GPSTI_INTERN void gpsti_tune_remember(gpst_pipeline* pipeline) {
    gpsti_recall* const recall = &gpsti_jobs_of(pipeline->context)->recall;
    gpsti_recalled seen;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    if (gpsti_tune_is_memorable(pipeline)) {
        gpsti_tune_describe(pipeline, &seen);
        if (gpsti_tune_was_worth_it(pipeline, seen.run_ns))
            gpsti_recall_put(recall, &seen, pipeline->tune.recalls);
        else
            gpsti_recall_forget(recall, seen.job);
    }
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
}

/* ---- the start of one ----------------------------------------------------------------------------------- */

/* More slots than have their memory must be worth making it, as in any other run. But that memory stays: where a driver
   locks it, its price is a share by now, and it serves as many runs again as there have been. */
GPSTI_PRIVATE uint32_t gpsti_tune_slots_known(const gpst_pipeline* pipeline, const gpsti_recalled* known) {
    const uint64_t n_items = pipeline->desc.n_items_expected * ((uint64_t)known->n_runs + 1);
    const uint32_t n = gpsti_tuner_slots_worth(n_items, known->costs.item_ns, known->slot_ns);
    return n > 0 && n < known->n_slots ? known->n_slots : n;
}

GPSTI_PRIVATE void gpsti_tune_take_over(gpst_pipeline* pipeline, const gpsti_recalled* known) {
    gpsti_tune* const tune = &pipeline->tune;
    tune->recalls = true;
    tune->n_looks = GPSTI_TUNE_RECALL_LOOKS;
    tune->known = known->seen;
    tune->n_known_workers = known->n_workers;
    tune->n_whole_workers = known->workers.now;
    tune->serial_ns = known->serial_ns;
    tune->inside_ns = known->inside_ns;
    tune->item_host_bytes = known->item_host_bytes;
    tune->item_device_bytes = known->item_device_bytes;
    tune->item_ns = known->costs.item_ns;
    tune->source_ns = known->source_ns;
    tune->waits_weighed = true;
    gpsti_a32_store(&tune->files_in_memory, known->costs.files_in_memory ? 1 : 0);
    tune->tuner.budget.slots_worth = gpsti_tune_slots_known(pipeline, known);
    tune->tuner.budget.known = true;
    tune->tuner.budget.by_runs = known->most_whole > 0;
    pipeline->source_work_ns = known->source_work_ns;
    pipeline->read_cpu_part = known->read_cpu_part;
    gpsti_tune_set_model(pipeline, &known->costs, "known job: ");
    tune->n_to_settle = tune->tuner.now.value[GPST_KNOB_WORKERS];
}

/* Of a list whose length is known; and whose memory is there: else what it costs decides how much of it there is. */
GPSTI_INTERN bool gpsti_tune_recall(gpst_pipeline* pipeline) {
    gpst_context* const context = pipeline->context;
    gpsti_tune* const tune = &pipeline->tune;
    if (tune->modelled) /* settings are given */
        return false;
    tune->job = gpsti_tune_job(pipeline);
    const gpsti_recalled* const known = gpsti_recall_find(&gpsti_jobs_of(context)->recall, tune->job);
    if (known && known->is_old)
        tune->n_whole_workers = gpsti_recall_workers_then(known);
    if (!known || !gpsti_recall_serves(known, pipeline->desc.n_items_expected))
        return false;
    gpsti_tune_take_over(pipeline, known);
    return true;
}

GPSTI_INTERN bool gpsti_tune_finds_others(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_tuner_costs costs;
    if (tune->n_looks == 0)
        return false;
    gpsti_tune_costs(pipeline, &costs);
    gpsti_tune_take_alone(pipeline, &costs); /* the first ones to come back have waited for fewer others */
    const bool differs = gpsti_recall_differs(&tune->known, tune->n_known_workers, &costs, pipeline->n_active);
    tune->n_looks = differs ? tune->n_looks - 1 : 0;
    if (tune->n_looks > 0) { /* the next ones are to say the same without these */
        gpsti_tune_leave_out(pipeline);
        tune->n_to_settle = 2 * (uint64_t)pipeline->n_active;
    }
    return differs && tune->n_looks == 0;
}
