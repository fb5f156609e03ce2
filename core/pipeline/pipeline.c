/* core/pipeline/pipeline.c -- makes, runs and unmakes a pipeline: resolves defaults, and owns what the
   others use. What happens to items is in items.c, run.c and threads.c. */
#include "../base/platform_internal.h"

#include "../steps/engines_internal.h"
#include "engine_internal.h"

#include <string.h>

#define GPSTI_CREATE "gpst_pipeline_create"
#define GPSTI_PIPELINE_BEGIN_NS 1000000 /* only the caller of run works until then: a shorter run needs no worker */

/* ---- stages ------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_stage_copy(gpst_pipeline* pipeline, gpsti_stage* stage, const gpst_stage_desc* desc) {
    gpsti_host* const host = &pipeline->context->host;
    const size_t n = (size_t)pipeline->plan.n_workers + 1;
    stage->desc = *desc;
    gpsti_copy_text(stage->name, sizeof stage->name, desc->name ? desc->name : gpsti_stage_default_name(desc->kind));
    stage->desc.name = stage->name;
    stage->desc.per_picture = desc->per_picture || desc->kind == GPST_STAGE_ENCODE;
    stage->worker_states = (void**)gpsti_alloc(host, n * sizeof *stage->worker_states);
    stage->worker_started = (bool*)gpsti_alloc(host, n * sizeof *stage->worker_started);
    if (!stage->worker_states || !stage->worker_started)
        return GPST_ERROR_MEMORY;
    GPSTI_TRY(gpsti_codecs_create(pipeline, stage));
    return gpsti_states_create(pipeline, stage);
}

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
    if (!pipeline->tune->on && desc->n_slots == 0 && desc->mode != GPST_RUN_PLAIN_SERIAL &&
        desc->mode != GPST_RUN_PLAIN_INSIDE && pipeline->items.n_slots < n) {
        pipeline->items.n_slots = pipeline->items.capacity = n;
        pipeline->tune->tuner.now.value[GPST_KNOB_SLOTS] = n;
    }
}

/* ---- create / destroy ------------------------------------------------------------------------------ */

/* One allocation: the pipeline, and the rooms that only the engine sees. */
typedef struct gpsti_pipeline_block {
    gpst_pipeline pipeline; /* first */
    gpsti_threads threads;
    gpsti_tune tune;
} gpsti_pipeline_block;

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
    pipeline->plan.n_active = pipeline->plan.n_workers;
    const bool alone = resolved->mode == GPST_RUN_PLAIN_SERIAL || !pipeline->plan.device_on_host ||
                       pipeline->context->pin.on; /* threads inside would inherit their worker's one core */
    pipeline->plan.kernel_threads = alone ? 1 : pipeline->context->info.cores_allowed;
}

/* Reader and writer start their threads with the first file that must be waited for. */
GPSTI_PRIVATE gpst_result gpsti_pipeline_make_files(gpst_pipeline* pipeline) {
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    if (desc->mode != GPST_RUN_ENGINE)
        return GPST_OK;
    if (pipeline->plan.steps[0].kind == gpsti_step_read()) {
        GPSTI_TRY(gpsti_reader_open(pipeline->context, NULL, desc->n_reads, &pipeline->files.reader));
        gpsti_reader_set_cancel(pipeline->files.reader, &pipeline->signals.cancel);
    }
    if (pipeline->plan.steps[pipeline->plan.n_steps - 2].kind != gpsti_step_write())
        return GPST_OK;
    GPSTI_TRY(gpsti_writer_create(pipeline->context, desc->n_writes, &pipeline->files.writer));
    gpsti_writer_tell_closed(pipeline->files.writer, gpsti_threads_file_closed, pipeline);
    return GPST_OK;
}

/* Stages with every set said, and what follows from it for the sets. */
GPSTI_PRIVATE void gpsti_pipeline_resolve_sets(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpst_stage_desc stages[GPST_MAX_STAGES];
    memcpy(stages, desc->stages, desc->n_stages * sizeof *stages);
    pipeline->plan.n_sets = gpsti_stages_resolve_sets(stages, desc);
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        pipeline->plan.has_ends = pipeline->plan.has_ends || stages[s].end;
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
        step->queue.times = (gpsti_batch_times*)gpsti_alloc(&pipeline->context->host, sizeof *step->queue.times);
        if (!step->queue.times)
            return GPST_ERROR_MEMORY;
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_pipeline_build(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpsti_host* const host = &pipeline->context->host;
    gpst_pool_desc pool = GPST_ZERO;
    const gpsti_device_info* const device = &pipeline->context->device_info;
    GPSTI_TRY(gpsti_cond_init(&pipeline->threads->progress));
    pipeline->threads->has_progress = true;
    pipeline->plan.device_on_host = device->zero_copy;
    pipeline->plan.device_counts_bytes = device->counts_bytes;
    pipeline->plan.device_reaches_host = device->reaches_host;
    gpsti_pipeline_resolve(pipeline, desc);
    pipeline->plan.stages = (gpsti_stage*)gpsti_alloc(host, desc->n_stages * sizeof *pipeline->plan.stages);
    pipeline->counts.clocks = (gpsti_clock*)gpsti_alloc(host, GPST_MAX_STATS * sizeof *pipeline->counts.clocks);
    if (!pipeline->plan.stages || !pipeline->counts.clocks)
        return GPST_ERROR_MEMORY;
    for (uint32_t s = 0; s < desc->n_stages; s++)
        GPSTI_TRY(gpsti_stage_copy(pipeline, &pipeline->plan.stages[s], &desc->stages[s]));
    for (uint32_t s = 0; !device->zero_copy && s < desc->n_stages; s++)
        gpsti_constants_load(pipeline, &pipeline->plan.stages[s]);
    gpsti_pipeline_resolve_sets(pipeline, desc);
    GPSTI_TRY(gpsti_engines_create(pipeline));
    gpsti_plan_steps(pipeline, device->asynchronous && !device->zero_copy);
    GPSTI_TRY(gpsti_pipeline_make_times(pipeline));
    gpsti_plan_copies(pipeline, desc);
    GPSTI_TRY(gpsti_graphs_create(pipeline));
    pipeline->plan.batch_most = gpsti_plan_batch_most(pipeline, device->asynchronous);
    pipeline->plan.room = gpsti_plan_room(pipeline);
    gpsti_tune_init(pipeline, desc);
    gpsti_pipeline_set_batch(pipeline, desc);
    GPSTI_TRY(gpst_pool_create(pipeline->context, &pool, &pipeline->plan.pool));
    GPSTI_TRY(gpsti_items_create(pipeline));
    return gpsti_pipeline_make_files(pipeline);
}

/* The scheduler knows every pipeline, since their items share the memory; its workers take none before begin_ns. */
GPSTI_PRIVATE void gpsti_pipeline_list(gpsti_locked locked, gpst_pipeline* pipeline) {
    pipeline->client.run_one = gpsti_threads_run_one;
    pipeline->client.has_work = gpsti_threads_has_work;
    pipeline->client.begin_ns = GPST_FOREVER;
    gpsti_scheduler_add(locked, &pipeline->client);
}

GPSTI_PRIVATE void gpsti_pipeline_let_begin(gpsti_locked locked, gpst_pipeline* pipeline, int64_t begin_ns) {
    pipeline->client.begin_ns = begin_ns;
    pipeline->threads->has_workers = true;
    if (begin_ns == 0) {
        gpsti_a32_store(&pipeline->signals.open, 1);
        gpsti_tune_open(locked, pipeline);
    }
    gpsti_scheduler_wake(locked);
}

GPSTI_PRIVATE void gpsti_stage_free(gpst_pipeline* pipeline, gpsti_stage* stage) {
    gpsti_host* const host = &pipeline->context->host;
    const size_t n = (size_t)pipeline->plan.n_workers + 1;
    if (stage->worker_states)
        gpsti_free(host, stage->worker_states, n * sizeof *stage->worker_states);
    if (stage->worker_started)
        gpsti_free(host, stage->worker_started, n * sizeof *stage->worker_started);
    gpsti_codecs_free(pipeline, stage);
    gpsti_states_free(pipeline, stage);
    gpsti_constants_free(pipeline, stage);
}

/* Nothing runs any more, but the user's last callbacks, while all is there still. */
GPSTI_PRIVATE void gpsti_pipeline_free(gpst_pipeline* pipeline) {
    gpsti_host* const host = &pipeline->context->host;
    for (uint32_t i = 0; i < pipeline->items.n_made; i++)
        gpsti_item_release_frame(pipeline->items.slots[i]); /* of a result that the user still has */
    for (uint32_t s = 0; pipeline->plan.stages && s < pipeline->plan.desc.n_stages; s++)
        gpsti_call_worker_terms(pipeline, &pipeline->plan.stages[s]);
    gpst_reader_destroy(pipeline->files.reader);
    gpsti_writer_destroy(pipeline->files.writer);
    gpsti_engines_destroy(pipeline);
    gpsti_items_destroy(pipeline);
    gpst_graph_cache_destroy(pipeline->plan.graphs);
    for (uint32_t s = 0; pipeline->plan.stages && s < pipeline->plan.desc.n_stages; s++)
        gpsti_stage_free(pipeline, &pipeline->plan.stages[s]);
    if (pipeline->plan.pool)
        (void)gpst_pool_destroy(pipeline->plan.pool);
    if (pipeline->plan.stages)
        gpsti_free(host, pipeline->plan.stages, pipeline->plan.desc.n_stages * sizeof *pipeline->plan.stages);
    if (pipeline->counts.clocks)
        gpsti_free(host, pipeline->counts.clocks, GPST_MAX_STATS * sizeof *pipeline->counts.clocks);
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++)
        if (pipeline->plan.steps[s].queue.times)
            gpsti_free(host, pipeline->plan.steps[s].queue.times, sizeof *pipeline->plan.steps[s].queue.times);
    if (pipeline->threads->has_progress)
        gpsti_cond_term(&pipeline->threads->progress);
    gpsti_context_drop_object(pipeline->context, pipeline, sizeof(gpsti_pipeline_block));
}

GPST_API gpst_result gpst_pipeline_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                    const gpst_pipeline_desc* desc, gpst_pipeline** out) {
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(GPSTI_CREATE, version, desc_bytes, sizeof(gpst_pipeline_desc)));
    GPSTI_TRY(gpsti_desc_check(context, desc, out));
    gpsti_pipeline_block* const block = (gpsti_pipeline_block*)gpsti_context_add_object(context, sizeof *block);
    if (!block)
        return GPST_ERROR_MEMORY;
    gpst_pipeline* const pipeline = &block->pipeline;
    pipeline->context = context;
    pipeline->threads = &block->threads;
    pipeline->tune = &block->tune;
    pipeline->goes_on = gpsti_run_goes_on;
    const gpst_result result = gpsti_pipeline_build(pipeline, desc);
    if (GPST_FAILED(result)) {
        gpsti_pipeline_free(pipeline);
        return result;
    }
    pipeline->plan.desc.stages = NULL; /* the user's array may be gone */
    const gpsti_locked locked = gpsti_lock(context);
    gpsti_pipeline_list(locked, pipeline);
    if (pipeline->plan.desc.mode == GPST_RUN_ENGINE && (desc->mode == GPST_RUN_ENGINE || !desc->source))
        gpsti_pipeline_let_begin(locked, pipeline, 0);
    gpsti_unlock(locked);
    *out = pipeline;
    return GPST_OK;
}

/* Frees the results that the user did not take, or those that he still has; unlocks while frames are given back. */
GPSTI_PRIVATE void gpsti_pipeline_drop_results(gpsti_locked locked, gpst_pipeline* pipeline, gpsti_item_state state) {
    while (pipeline->items.lists[state].first) {
        gpsti_item* const item = pipeline->items.lists[state].first;
        gpsti_item_enter(locked, item, GPSTI_ITEM_RUNS);
        gpsti_unlock(locked);
        gpsti_item_release_frame(item);
        (void)gpsti_lock(pipeline->context);
        gpsti_item_enter(locked, item, state); /* whose grant is at rest */
        gpsti_items_put(locked, item);
    }
}

GPSTI_PRIVATE bool gpsti_pipeline_is_at_work(const gpst_pipeline* pipeline) {
    return gpsti_a32_load(&pipeline->items.in_flight) > pipeline->items.lists[GPSTI_ITEM_HELD].n ||
           gpsti_a32_load(&pipeline->items.executing) > 0 || pipeline->threads->source_running ||
           pipeline->threads->n_inside > 0;
}

GPST_API gpst_result gpst_pipeline_destroy(gpst_pipeline* pipeline) {
    if (!pipeline)
        return GPST_OK;
    GPSTI_TRY(gpsti_context_check(pipeline->context, "gpst_pipeline_destroy"));
    GPSTI_FAIL_IF(gpsti_call_inside(pipeline), GPST_ERROR_REENTRANT,
                  "gpst_pipeline_destroy: not from a callback of the same pipeline");
    gpst_pipeline_cancel(pipeline);
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    gpsti_threads_notice(pipeline);
    gpsti_pipeline_drop_results(locked, pipeline, GPSTI_ITEM_RESULT);
    gpsti_cond_broadcast(&pipeline->threads->progress);
    while (gpsti_pipeline_is_at_work(pipeline)) {
        gpsti_scheduler_wake_all(locked);
        gpsti_threads_wait(locked, pipeline, GPST_FOREVER);
        gpsti_pipeline_drop_results(locked, pipeline, GPSTI_ITEM_RESULT);
    }
    gpsti_pipeline_drop_results(locked, pipeline, GPSTI_ITEM_HELD);
    gpsti_scheduler_remove(locked, &pipeline->client);
    gpsti_unlock(locked);
    gpsti_pipeline_free(pipeline);
    return GPST_OK;
}

/* ---- run ---------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_pipeline_outcome(const gpst_pipeline* pipeline) {
    if (pipeline->counts.items.cancelled > 0 || gpsti_a32_load(&pipeline->signals.cancel) != 0)
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
GPSTI_PRIVATE gpst_result gpsti_pipeline_run_inside(gpsti_locked locked, gpst_pipeline* pipeline, gpsti_core_use use) {
    GPSTI_FAIL_IF(pipeline->threads->started, GPST_ERROR_STATE,
                  "gpst_pipeline_run: a pipeline runs once: create another");
    pipeline->threads->started = true;
    pipeline->memory.age = gpsti_call_age(pipeline->context);
    pipeline->counts.use_start = use;
    pipeline->counts.start_ns = gpsti_now_ns();
    if (pipeline->plan.desc.mode == GPST_RUN_ENGINE && !pipeline->threads->has_workers)
        gpsti_pipeline_let_begin(locked, pipeline, pipeline->counts.start_ns + GPSTI_PIPELINE_BEGIN_NS);
    gpsti_scheduler_wake(locked); /* until now its source was not to be called */
    gpsti_unlock(locked);
    gpsti_threads_run_plain(pipeline, UINT64_MAX);
    (void)gpsti_lock(pipeline->context);
    gpsti_threads_wait_end(locked, pipeline);
    gpsti_unlock(locked);
    gpsti_core_use_query_under(pipeline->context->system_root, &use);
    (void)gpsti_lock(pipeline->context);
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
    const gpsti_locked locked = gpsti_threads_enter(pipeline);
    const gpst_result result = gpsti_pipeline_run_inside(locked, pipeline, use);
    gpsti_threads_leave(locked, pipeline);
    return result;
}

GPST_API void gpst_pipeline_cancel(gpst_pipeline* pipeline) {
    if (pipeline)
        gpsti_a32_store(&pipeline->signals.cancel, 1);
}

GPST_API void gpst_pipeline_stop(gpst_pipeline* pipeline) {
    if (pipeline)
        gpsti_a32_store(&pipeline->signals.stop, 1);
}
