/* core/pipeline/pipeline.c -- makes, runs and unmakes a pipeline: resolves defaults, turns stages into steps. What
   happens to items is in flow.c. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

#define GPSTI_CREATE "gpst_pipeline_create"
#define GPSTI_MOST_BATCH_PICTURES 1024u
#define GPSTI_PIPELINE_BEGIN_NS 1000000 /* only the caller of run works until then: a shorter run needs no worker */

/* ---- stages become steps ------------------------------------------------------------------------ */

GPSTI_PRIVATE const char* gpsti_stage_default_name(gpst_stage_kind kind) {
    static const char* const names[] = {"", "read", "stage", "kernel", "device", "write", "mask", "decode", "encode"};
    return names[(int)kind];
}

GPSTI_PRIVATE gpst_result gpsti_stage_copy(gpst_pipeline* pipeline, gpsti_stage* stage, const gpst_stage_desc* desc) {
    gpsti_host* const host = &pipeline->context->host;
    const size_t n = (size_t)pipeline->plan.n_workers + 1;
    stage->desc = *desc;
    gpsti_copy_text(stage->name, sizeof stage->name, desc->name ? desc->name : gpsti_stage_default_name(desc->kind));
    stage->desc.name = stage->name;
    stage->desc.per_picture = desc->per_picture || desc->kind == GPST_STAGE_ENCODE;
    stage->codecs = (gpsti_codec*)gpsti_alloc(host, n * sizeof *stage->codecs);
    stage->worker_states = (void**)gpsti_alloc(host, n * sizeof *stage->worker_states);
    stage->worker_started = (bool*)gpsti_alloc(host, n * sizeof *stage->worker_started);
    const bool has_state = gpsti_stage_has_state(desc);
    if (has_state)
        stage->states = (gpsti_state*)gpsti_alloc(host, GPST_MAX_CAMERAS * sizeof *stage->states);
    return stage->worker_states && stage->worker_started && stage->codecs && (stage->states || !has_state)
               ? GPST_OK
               : GPST_ERROR_MEMORY;
}

GPSTI_PRIVATE void gpsti_clock_name(gpst_pipeline* pipeline, const char* name, gpst_resource resource) {
    gpsti_clock* const clock = &pipeline->counts.clocks[pipeline->counts.n_clocks++];
    gpsti_copy_text(clock->name, sizeof clock->name, name);
    clock->resource = resource;
}

GPSTI_PRIVATE void gpsti_step_add_clocks(gpst_pipeline* pipeline, gpsti_step* step) {
    const gpst_resource compute = pipeline->plan.device_on_host ? GPST_RESOURCE_CPU : GPST_RESOURCE_GPU;
    const gpst_resource other = step->kind == GPSTI_STEP_READ    ? GPST_RESOURCE_DISK_IN
                                : step->kind == GPSTI_STEP_WRITE ? GPST_RESOURCE_DISK_OUT
                                                                 : GPST_RESOURCE_CPU;
    step->first_clock = pipeline->counts.n_clocks;
    if (step->kind == GPSTI_STEP_OFFLOAD)
        gpsti_clock_name(pipeline, "upload", GPST_RESOURCE_H2D);
    for (uint32_t s = 0; s < step->n_stages; s++)
        gpsti_clock_name(pipeline, pipeline->plan.stages[step->first_stage + s].name,
                         step->kind == GPSTI_STEP_OFFLOAD ? compute : other);
    if (step->kind == GPSTI_STEP_OFFLOAD)
        gpsti_clock_name(pipeline, "download", GPST_RESOURCE_D2H);
}

GPSTI_PRIVATE gpsti_step_kind gpsti_step_kind_of(const gpst_stage_desc* stage) {
    return stage->kind == GPST_STAGE_READ     ? GPSTI_STEP_READ
           : stage->kind == GPST_STAGE_WRITE  ? GPSTI_STEP_WRITE
           : stage->kind == GPST_STAGE_DECODE ? GPSTI_STEP_DECODE
           : gpsti_stage_is_offload(stage)    ? GPSTI_STEP_OFFLOAD
                                              : GPSTI_STEP_HOST;
}

GPSTI_PRIVATE void gpsti_step_find_sets(const gpst_pipeline* pipeline, gpsti_step* step) {
    for (uint32_t s = step->first_stage; s < step->first_stage + step->n_stages; s++) {
        const gpst_stage_desc* const stage = &pipeline->plan.stages[s].desc;
        step->needs |= stage->reads & ~step->writes & ~gpsti_stage_host_list(stage);
        step->lists |= gpsti_stage_host_list(stage);
        step->reads |= stage->reads;
        step->writes |= stage->writes;
    }
}

/* Parts go on where the next stage has the same pictures, and to be written. */
GPSTI_PRIVATE bool gpsti_step_is_chained(const gpst_pipeline* pipeline, const gpsti_step* step) {
    return step > pipeline->plan.steps && step->per_picture && step[-1].per_picture &&
           (step->kind == GPSTI_STEP_WRITE ||
            (step->reads == step[-1].reads && /* what the device may encode together is not split */
             pipeline->plan.stages[step[-1].first_stage].codec == GPST_CODEC_EXACT));
}

/* Items that one stage wants to be told at once; 0: it says nothing. What has no batches is told each item alone,
   whatever batch_most says. */
GPSTI_PRIVATE uint32_t gpsti_stage_batch_most(const gpst_pipeline* pipeline, const gpst_stage_desc* stage) {
    return !gpsti_stage_has_batches(stage)               ? 0
           : stage->batch_most == 0 && stage->batch_func ? gpsti_batch_preset_of(pipeline->plan.desc.preset).batch_most
                                                         : stage->batch_most;
}

/* Two stages in one submission: a batch function is told no more than its own batch_most; and what it fails for is done
   again, by every stage of the submission, which one that keeps something of its camera must not. */
GPSTI_PRIVATE bool gpsti_stages_agree(const gpst_pipeline* pipeline, const gpst_stage_desc* a,
                                      const gpst_stage_desc* b) {
    const uint32_t a_most = gpsti_stage_batch_most(pipeline, a), b_most = gpsti_stage_batch_most(pipeline, b);
    const bool a_keeps = a->stateful || gpsti_stage_has_state(a), b_keeps = b->stateful || gpsti_stage_has_state(b);
    return !(a->batch_func && b_most > a_most) && !(b->batch_func && a_most > b_most) && !(a->batch_func && b_keeps) &&
           !(b->batch_func && a_keeps);
}

/* May stage s be submitted with those from first on? Not where items may wait in front of it, but for LATEST_ONLY: the
   newest waits in front of them all, since what the device makes of it meanwhile would stand behind this stage there.
   And a list that the host reads must have been written before. */
GPSTI_PRIVATE bool gpsti_stage_goes_along(const gpst_pipeline* pipeline, uint32_t first, uint32_t s) {
    const bool latest =
        s < pipeline->plan.desc.n_stages && pipeline->plan.stages[s].desc.full_policy == GPST_FULL_LATEST_ONLY;
    uint32_t written = 0;
    if (s == pipeline->plan.desc.n_stages || !gpsti_stage_is_offload(&pipeline->plan.stages[s].desc) ||
        (gpsti_stage_has_bound(&pipeline->plan.stages[s].desc) && !latest))
        return false;
    for (uint32_t before = first; before < s; before++) {
        written |= pipeline->plan.stages[before].desc.writes;
        if ((latest && gpsti_stage_has_bound(&pipeline->plan.stages[before].desc)) ||
            !gpsti_stages_agree(pipeline, &pipeline->plan.stages[before].desc, &pipeline->plan.stages[s].desc))
            return false;
    }
    return (gpsti_stage_host_list(&pipeline->plan.stages[s].desc) & written) == 0;
}

GPSTI_PRIVATE bool gpsti_step_is_stateful(const gpst_pipeline* pipeline, const gpsti_step* step) {
    for (uint32_t s = 0; s < step->n_stages; s++)
        if (pipeline->plan.stages[step->first_stage + s].desc.stateful ||
            gpsti_stage_has_state(&pipeline->plan.stages[step->first_stage + s].desc))
            return true;
    return false;
}

/* The largest that one of its stages wants. */
GPSTI_PRIVATE void gpsti_step_find_batch(const gpst_pipeline* pipeline, gpsti_step* step) {
    for (uint32_t s = step->first_stage; s < step->first_stage + step->n_stages; s++) {
        const uint32_t most = gpsti_stage_batch_most(pipeline, &pipeline->plan.stages[s].desc);
        step->batch_most = most > step->batch_most ? most : step->batch_most;
    }
}

/* Nothing would wait in front of a stage that all items may enter: with LATEST_ONLY one is in it, unless it says more.
   Threads that submit to a driver side by side wait for each other in it: one after the other is faster
   (docs/benchmarks/gpu-engine.md). A DEVICE stage's function may wait for what another item does: it has no limit. */
GPSTI_PRIVATE uint32_t gpsti_step_concurrency(const gpst_pipeline* pipeline, const gpsti_step* step,
                                              bool asynchronous) {
    const gpsti_stage* const stages = &pipeline->plan.stages[step->first_stage];
    const uint32_t batches = gpsti_step_depth(pipeline, step);
    if (step->kind != GPSTI_STEP_OFFLOAD)
        return stages->desc.concurrency > 0 ? stages->desc.concurrency : batches;
    if (!asynchronous)
        return batches;
    for (uint32_t s = 0; s < step->n_stages; s++)
        asynchronous = asynchronous && stages[s].desc.kind != GPST_STAGE_DEVICE;
    return asynchronous ? 1 : 0;
}

/* What the stage says; LATEST_ONLY of the pipeline is that of every stage which says nothing. Items queue in front of
   the first step, and of those that not every item may enter at once. */
GPSTI_PRIVATE void gpsti_steps_bound(gpst_pipeline* pipeline) {
    const bool all = pipeline->plan.desc.full_policy == GPST_FULL_LATEST_ONLY;
    gpsti_step* holds = NULL;
    for (uint32_t s = pipeline->plan.n_steps - 1; s-- > 0;) { /* FINISH has none */
        gpsti_step* const step = &pipeline->plan.steps[s];
        const gpst_stage_desc* const stage = gpsti_step_bounded(pipeline, step);
        const bool says = gpsti_stage_has_bound(stage);
        step->full_policy = says ? stage->full_policy : all ? GPST_FULL_LATEST_ONLY : GPST_FULL_BLOCK;
        step->queue_most = step->full_policy == GPST_FULL_LATEST_ONLY ? 1 : stage->queue_most;
        if (!says && step->full_policy == GPST_FULL_BLOCK && step->batch_most > 0)
            step->queue_most = step->batch_most * gpsti_batch_preset_of(pipeline->plan.desc.preset).queue_batches;
        step->held_by = holds;
        if (step->queue_most > 0 && step->full_policy == GPST_FULL_BLOCK && s > 0)
            holds = step;
    }
}

GPSTI_PRIVATE void gpsti_steps_make(gpst_pipeline* pipeline, bool asynchronous) {
    for (uint32_t s = 0; s < pipeline->plan.desc.n_stages;) {
        const gpst_stage_desc* const stage = &pipeline->plan.stages[s].desc;
        gpsti_step* const step = &pipeline->plan.steps[pipeline->plan.n_steps++];
        step->kind = gpsti_step_kind_of(stage);
        step->first_stage = s++;
        while (step->kind == GPSTI_STEP_OFFLOAD && gpsti_stage_goes_along(pipeline, step->first_stage, s))
            s++;
        step->one_warp = stage->kind == GPST_STAGE_WARP && s == step->first_stage + 1;
        step->n_stages = s - step->first_stage;
        gpsti_step_find_sets(pipeline, step);
        step->per_picture = stage->per_picture || (pipeline->plan.n_parts > 1 && step->kind == GPSTI_STEP_WRITE);
        step->chained = gpsti_step_is_chained(pipeline, step);
        step->ordered = stage->ordered || gpsti_step_is_stateful(pipeline, step);
        gpsti_step_find_batch(pipeline, step);
        step->concurrency = gpsti_step_concurrency(pipeline, step, asynchronous);
        step->batch = step->batch_most > 0 ? step->batch_most : 1;
        step->gated = step->concurrency > 0 || step->ordered || (step->kind == GPSTI_STEP_OFFLOAD && asynchronous) ||
                      (step->kind == GPSTI_STEP_DECODE && pipeline->plan.stages[step->first_stage].planes &&
                       pipeline->plan.stages[step->first_stage].codec != GPST_CODEC_EXACT);
        if (step->n_stages + 3 > pipeline->plan.n_events) /* before and after each of upload, stages, download */
            pipeline->plan.n_events = step->n_stages + 3;
        gpsti_step_add_clocks(pipeline, step);
    }
    /* A sink is called for one item at a time. Without a sink or result, ends need not keep the order. */
    const bool told = pipeline->plan.desc.sink || !pipeline->plan.desc.source;
    gpsti_step* const finish = &pipeline->plan.steps[pipeline->plan.n_steps++];
    finish->kind = GPSTI_STEP_FINISH;
    finish->batch = 1;
    finish->gated = told;
    finish->concurrency = told ? 1 : 0;
    finish->ordered = told && !pipeline->plan.desc.as_ready;
    gpsti_steps_bound(pipeline);
}

/* ---- batches ------------------------------------------------------------------------------------- */

/* A DEVICE stage calls the user's function for each item: only a WARP of single pictures has batches. */
GPSTI_PRIVATE uint32_t gpsti_pipeline_batch_most(const gpst_pipeline* pipeline, bool asynchronous) {
    const uint32_t fit = GPSTI_MOST_BATCH_PICTURES / pipeline->plan.n_written;
    bool alone = false;
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        const gpsti_step* const step = &pipeline->plan.steps[s];
        if (step->kind != GPSTI_STEP_OFFLOAD)
            continue;
        alone = step->one_warp &&
                pipeline->plan.sets[gpsti_stage_from(&pipeline->plan.stages[step->first_stage].desc)].capacity == 1;
        if (!alone)
            break;
    }
    if (!alone || !asynchronous || pipeline->plan.device_on_host || pipeline->plan.desc.mode != GPST_RUN_ENGINE ||
        fit < 2)
        return 1;
    return fit < GPSTI_MOST_BATCH ? fit : GPSTI_MOST_BATCH;
}

/* Items that batches hold: of the stage with the largest those under way, and one that gathers; or three of those that
   the user asked for. */
GPSTI_PRIVATE uint32_t gpsti_pipeline_n_in_batches(const gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    const uint32_t depth = gpsti_batch_preset_of(desc->preset).depth;
    uint32_t n = desc->batch > 1 && pipeline->plan.batch_most > 1 ? 3 * desc->batch : 0;
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        const uint32_t most = pipeline->plan.steps[s].batch_most;
        n = most > 1 && (depth + 1) * most > n ? (depth + 1) * most : n;
    }
    return n;
}

/* Where the user gave no n_slots there are enough for batches. */
GPSTI_PRIVATE void gpsti_pipeline_set_batch(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    const uint32_t n = gpsti_pipeline_n_in_batches(pipeline, desc);
    if (!pipeline->tune.on && desc->n_slots == 0 && desc->mode != GPST_RUN_PLAIN_SERIAL &&
        desc->mode != GPST_RUN_PLAIN_INSIDE && pipeline->items.n_slots < n) {
        pipeline->items.n_slots = pipeline->items.slots_capacity = n;
        pipeline->tune.tuner.now.value[GPST_KNOB_SLOTS] = n;
    }
}

/* ---- create / destroy ------------------------------------------------------------------------------ */

GPSTI_PRIVATE void gpsti_pipeline_resolve(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpst_pipeline_desc* const resolved = &pipeline->plan.desc;
    *resolved = *desc;
    if (resolved->mode == GPST_RUN_DEFAULT)
        resolved->mode = gpsti_tune_loop(desc);
    if (resolved->fsync == GPST_FSYNC_DEFAULT)
        resolved->fsync = GPST_FSYNC_FILE;
    resolved->n_reads = desc->n_reads ? desc->n_reads : 4;
    resolved->n_writes = desc->n_writes ? desc->n_writes : 4;
    pipeline->plan.n_workers = pipeline->context->scheduler->n_workers;
    const uint32_t reads = desc->stages[0].kind == GPST_STAGE_READ ? resolved->n_reads : 0;
    pipeline->items.n_slots = desc->n_slots ? desc->n_slots : pipeline->plan.n_workers + reads + 2;
    pipeline->flow.n_active = pipeline->plan.n_workers;
    const bool alone = resolved->mode == GPST_RUN_PLAIN_SERIAL || !pipeline->plan.device_on_host ||
                       pipeline->context->pin.on; /* threads inside would inherit their worker's one core */
    pipeline->plan.kernel_threads = alone ? 1 : pipeline->context->info.cores_allowed;
}

/* Reader and writer start their threads with the first file that must be waited for. */
GPSTI_PRIVATE gpst_result gpsti_pipeline_make_files(gpst_pipeline* pipeline) {
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    if (desc->mode != GPST_RUN_ENGINE)
        return GPST_OK;
    if (pipeline->plan.steps[0].kind == GPSTI_STEP_READ) {
        GPSTI_TRY(gpsti_reader_open(pipeline->context, NULL, desc->n_reads, &pipeline->files.reader));
        gpsti_reader_set_cancel(pipeline->files.reader, &pipeline->flow.cancel);
    }
    if (pipeline->plan.steps[pipeline->plan.n_steps - 2].kind != GPSTI_STEP_WRITE)
        return GPST_OK;
    GPSTI_TRY(gpsti_writer_create(pipeline->context, desc->n_writes, &pipeline->files.writer));
    gpsti_writer_tell_closed(pipeline->files.writer, gpsti_flow_file_closed, pipeline);
    return GPST_OK;
}

/* Stages with every set said, and what follows from it for the sets. */
GPSTI_PRIVATE void gpsti_pipeline_resolve_sets(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpst_stage_desc stages[GPST_MAX_STAGES];
    memcpy(stages, desc->stages, desc->n_stages * sizeof *stages);
    pipeline->plan.n_sets = gpsti_stages_resolve_sets(stages, desc);
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        pipeline->plan.stages[s].desc.reads = stages[s].reads;
        pipeline->plan.stages[s].desc.writes = stages[s].writes;
    }
    gpsti_plan_capacities(pipeline, desc);
}

/* What batches take is learned where that decides anything. */
GPSTI_PRIVATE gpst_result gpsti_pipeline_make_times(gpst_pipeline* pipeline) {
    for (uint32_t s = 0; pipeline->plan.desc.deadline_ns > 0 && s < pipeline->plan.n_steps; s++) {
        gpsti_step* const step = &pipeline->plan.steps[s];
        if (step->batch_most == 0)
            continue;
        step->times = (gpsti_batch_times*)gpsti_alloc(&pipeline->context->host, sizeof *step->times);
        if (!step->times)
            return GPST_ERROR_MEMORY;
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_pipeline_build(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpsti_host* const host = &pipeline->context->host;
    gpst_pool_desc pool = GPST_ZERO;
    const gpsti_device_info* const device = &pipeline->context->device_info;
    GPSTI_TRY(gpsti_cond_init(&pipeline->flow.progress));
    pipeline->flow.has_progress = true;
    pipeline->plan.device_on_host = device->zero_copy;
    pipeline->plan.device_counts_bytes = device->counts_bytes;
    pipeline->plan.device_reaches_host = device->reaches_host;
    gpsti_pipeline_resolve(pipeline, desc);
    pipeline->plan.stages = (gpsti_stage*)gpsti_alloc(host, desc->n_stages * sizeof *pipeline->plan.stages);
    pipeline->counts.clocks = (gpsti_clock*)gpsti_alloc(host, GPST_MAX_STATS * sizeof *pipeline->counts.clocks);
    pipeline->items.cameras = (gpsti_camera*)gpsti_alloc(host, GPST_MAX_CAMERAS * sizeof *pipeline->items.cameras);
    if (!pipeline->plan.stages || !pipeline->counts.clocks || !pipeline->items.cameras)
        return GPST_ERROR_MEMORY;
    for (uint32_t s = 0; s < desc->n_stages; s++)
        GPSTI_TRY(gpsti_stage_copy(pipeline, &pipeline->plan.stages[s], &desc->stages[s]));
    for (uint32_t s = 0; !device->zero_copy && s < desc->n_stages; s++)
        gpsti_constants_load(pipeline, &pipeline->plan.stages[s]);
    gpsti_pipeline_resolve_sets(pipeline, desc);
    gpsti_jpeg_device_create(pipeline);
    gpsti_steps_make(pipeline, device->asynchronous && !device->zero_copy);
    GPSTI_TRY(gpsti_pipeline_make_times(pipeline));
    gpsti_plan_copies(pipeline, desc);
    GPSTI_TRY(gpsti_graphs_create(pipeline));
    pipeline->plan.batch_most = gpsti_pipeline_batch_most(pipeline, device->asynchronous);
    gpsti_tune_init(pipeline, desc);
    gpsti_pipeline_set_batch(pipeline, desc);
    GPSTI_TRY(gpst_pool_create(pipeline->context, &pool, &pipeline->plan.pool));
    GPSTI_TRY(gpsti_items_create(pipeline));
    return gpsti_pipeline_make_files(pipeline);
}

/* Lists the pipeline with the scheduler, whose workers take none of its items before begin_ns. Locked. */
GPSTI_PRIVATE void gpsti_pipeline_list(gpst_pipeline* pipeline, int64_t begin_ns) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    pipeline->client.run_one = gpsti_flow_run_one;
    pipeline->client.has_work = gpsti_flow_has_work;
    pipeline->client.begin_ns = begin_ns;
    gpsti_scheduler_add(scheduler, &pipeline->client);
    pipeline->flow.listed = true;
    if (begin_ns == 0) {
        gpsti_a32_store(&pipeline->flow.open, 1);
        gpsti_tune_open(pipeline);
    }
    gpsti_scheduler_wake(scheduler);
}

GPSTI_PRIVATE void gpsti_stage_free(gpst_pipeline* pipeline, gpsti_stage* stage) {
    gpsti_host* const host = &pipeline->context->host;
    const size_t n = (size_t)pipeline->plan.n_workers + 1;
    if (stage->worker_states)
        gpsti_free(host, stage->worker_states, n * sizeof *stage->worker_states);
    if (stage->worker_started)
        gpsti_free(host, stage->worker_started, n * sizeof *stage->worker_started);
    for (uint32_t w = 0; stage->codecs && w < n; w++)
        gpsti_codec_free(host, &stage->codecs[w]);
    if (stage->codecs)
        gpsti_free(host, stage->codecs, n * sizeof *stage->codecs);
    gpsti_constants_free(pipeline, stage);
}

/* Nothing runs any more, but the user's last callbacks, while all is there still. */
GPSTI_PRIVATE void gpsti_pipeline_free(gpst_pipeline* pipeline) {
    gpsti_host* const host = &pipeline->context->host;
    for (uint32_t i = 0; i < pipeline->items.n_slots_made; i++)
        gpsti_item_release_frame(pipeline->items.slots[i]); /* of a result that the user still has */
    for (uint32_t s = 0; pipeline->plan.stages && s < pipeline->plan.desc.n_stages; s++)
        gpsti_call_worker_terms(pipeline, &pipeline->plan.stages[s]);
    gpst_reader_destroy(pipeline->files.reader);
    gpsti_writer_destroy(pipeline->files.writer);
    gpsti_jpeg_device_destroy(pipeline);
    for (uint32_t s = 0; pipeline->plan.stages && s < pipeline->plan.desc.n_stages; s++)
        gpsti_states_free(pipeline, &pipeline->plan.stages[s]);
    gpsti_items_destroy(pipeline);
    gpst_graph_cache_destroy(pipeline->plan.graphs);
    if (pipeline->plan.pool)
        (void)gpst_pool_destroy(pipeline->plan.pool);
    for (uint32_t s = 0; pipeline->plan.stages && s < pipeline->plan.desc.n_stages; s++)
        gpsti_stage_free(pipeline, &pipeline->plan.stages[s]);
    if (pipeline->plan.stages)
        gpsti_free(host, pipeline->plan.stages, pipeline->plan.desc.n_stages * sizeof *pipeline->plan.stages);
    if (pipeline->counts.clocks)
        gpsti_free(host, pipeline->counts.clocks, GPST_MAX_STATS * sizeof *pipeline->counts.clocks);
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++)
        if (pipeline->plan.steps[s].times)
            gpsti_free(host, pipeline->plan.steps[s].times, sizeof *pipeline->plan.steps[s].times);
    if (pipeline->items.cameras)
        gpsti_free(host, pipeline->items.cameras, GPST_MAX_CAMERAS * sizeof *pipeline->items.cameras);
    if (pipeline->flow.has_progress)
        gpsti_cond_term(&pipeline->flow.progress);
    gpsti_context_drop_object(pipeline->context, pipeline, sizeof *pipeline);
}

GPST_API gpst_result gpst_pipeline_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                    const gpst_pipeline_desc* desc, gpst_pipeline** out) {
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(GPSTI_CREATE, version, desc_bytes, sizeof(gpst_pipeline_desc)));
    GPSTI_TRY(gpsti_desc_check(context, desc, out));
    gpst_pipeline* const pipeline = (gpst_pipeline*)gpsti_context_add_object(context, sizeof *pipeline);
    if (!pipeline)
        return GPST_ERROR_MEMORY;
    pipeline->context = context;
    const gpst_result result = gpsti_pipeline_build(pipeline, desc);
    if (GPST_FAILED(result)) {
        gpsti_pipeline_free(pipeline);
        return result;
    }
    pipeline->plan.desc.stages = NULL; /* the user's array may be gone */
    if (pipeline->plan.desc.mode == GPST_RUN_ENGINE && (desc->mode == GPST_RUN_ENGINE || !desc->source)) {
        gpsti_mutex_lock(&context->scheduler->mutex);
        gpsti_pipeline_list(pipeline, 0);
        gpsti_mutex_unlock(&context->scheduler->mutex);
    }
    *out = pipeline;
    return GPST_OK;
}

/* Frees the results that the user did not take. Locked, but not while frames are given back. */
GPSTI_PRIVATE void gpsti_pipeline_drop_results(gpst_pipeline* pipeline) {
    while (pipeline->results.first_result) {
        gpsti_item* const item = pipeline->results.first_result;
        pipeline->results.first_result = item->next;
        pipeline->results.last_result = item->next ? pipeline->results.last_result : NULL;
        pipeline->results.n_untaken--;
        gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
        gpsti_item_release_frame(item);
        gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
        gpsti_flight_release_slot(item);
    }
}

GPSTI_PRIVATE bool gpsti_pipeline_is_at_work(const gpst_pipeline* pipeline) {
    return gpsti_a32_load(&pipeline->items.in_flight) > pipeline->results.n_handed_out ||
           gpsti_a32_load(&pipeline->flow.executing) > 0 || pipeline->flow.source_running ||
           pipeline->flow.n_inside > 0;
}

GPST_API gpst_result gpst_pipeline_destroy(gpst_pipeline* pipeline) {
    if (!pipeline)
        return GPST_OK;
    GPSTI_TRY(gpsti_context_check(pipeline->context, "gpst_pipeline_destroy"));
    GPSTI_FAIL_IF(gpsti_call_inside(pipeline), GPST_ERROR_REENTRANT,
                  "gpst_pipeline_destroy: not from a callback of the same pipeline");
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpst_pipeline_cancel(pipeline);
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_flight_notice(pipeline);
    gpsti_pipeline_drop_results(pipeline);
    gpsti_cond_broadcast(&pipeline->flow.progress);
    while (gpsti_pipeline_is_at_work(pipeline)) {
        gpsti_scheduler_wake_all(scheduler);
        gpsti_flow_wait(pipeline, GPST_FOREVER);
        gpsti_pipeline_drop_results(pipeline);
    }
    if (pipeline->flow.listed)
        gpsti_scheduler_remove(scheduler, &pipeline->client);
    gpsti_mutex_unlock(&scheduler->mutex);
    gpsti_pipeline_free(pipeline);
    return GPST_OK;
}

/* ---- run ---------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_pipeline_outcome(const gpst_pipeline* pipeline) {
    if (pipeline->counts.items.cancelled > 0 || gpsti_a32_load(&pipeline->flow.cancel) != 0)
        return gpsti_fail(GPST_ERROR_CANCELLED, "gpst_pipeline_run: cancelled with %llu items done",
                          (unsigned long long)pipeline->counts.items.ok);
    const gpsti_item_counts* const items = &pipeline->counts.items;
    if (items->failed > 0 && items->ok + items->skipped == 0)
        return gpsti_fail(pipeline->counts.first_failed,
                          "gpst_pipeline_run: none of %llu items was done; the first: %s",
                          (unsigned long long)items->failed, pipeline->counts.first_reason);
    return items->failed > 0 ? GPST_PARTIAL : GPST_OK;
}

/* Locked, but not while items run. */
GPSTI_PRIVATE gpst_result gpsti_pipeline_run_inside(gpst_pipeline* pipeline, gpsti_core_use use) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    GPSTI_FAIL_IF(pipeline->flow.started, GPST_ERROR_STATE, "gpst_pipeline_run: a pipeline runs once: create another");
    pipeline->flow.started = true;
    pipeline->counts.use_start = use;
    pipeline->counts.start_ns = gpsti_now_ns();
    if (pipeline->plan.desc.mode == GPST_RUN_ENGINE && !pipeline->flow.listed)
        gpsti_pipeline_list(pipeline, pipeline->counts.start_ns + GPSTI_PIPELINE_BEGIN_NS);
    gpsti_scheduler_wake(scheduler); /* until now its source was not to be called */
    gpsti_mutex_unlock(&scheduler->mutex);
    gpsti_flow_run_plain(pipeline, UINT64_MAX);
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_flow_wait_end(pipeline);
    gpsti_mutex_unlock(&scheduler->mutex);
    gpsti_core_use_query_under(pipeline->context->system_root, &use);
    gpsti_mutex_lock(&scheduler->mutex);
    pipeline->counts.use_end = use;
    return gpsti_pipeline_outcome(pipeline);
}

GPST_API gpst_result gpst_pipeline_run(gpst_pipeline* pipeline) {
    GPSTI_FAIL_IF(!pipeline, GPST_ERROR_ARGUMENT, "gpst_pipeline_run: pipeline=NULL: required");
    GPSTI_TRY(gpsti_context_check(pipeline->context, "gpst_pipeline_run"));
    GPSTI_FAIL_IF(gpsti_call_inside(pipeline), GPST_ERROR_REENTRANT,
                  "gpst_pipeline_run: not from a callback of the same pipeline");
    GPSTI_FAIL_IF(!pipeline->plan.desc.source, GPST_ERROR_STATE,
                  "gpst_pipeline_run: the pipeline has no source: submit");
    gpsti_core_use use = GPST_ZERO;
    gpsti_core_use_query_under(pipeline->context->system_root, &use);
    gpsti_flight_enter(pipeline);
    const gpst_result result = gpsti_pipeline_run_inside(pipeline, use);
    gpsti_flight_leave(pipeline);
    return result;
}

GPST_API void gpst_pipeline_cancel(gpst_pipeline* pipeline) {
    if (pipeline)
        gpsti_a32_store(&pipeline->flow.cancel, 1);
}

GPST_API void gpst_pipeline_stop(gpst_pipeline* pipeline) {
    if (pipeline)
        gpsti_a32_store(&pipeline->flow.stop, 1);
}
