/* core/pipeline/pipeline.c -- makes, runs and unmakes a pipeline: checks the desc,
   resolves defaults, turns stages into steps. What happens to items is in flow.c and plain.c. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"
#include "../files/reader_internal.h"

#include <string.h>

#define GPSTI_CREATE "gpst_pipeline_create"
#define GPSTI_MOST_BATCH 64
#define GPSTI_MOST_BATCH_OUTPUTS 1024u

/* ---- the desc is right, or the sentence says what is not ------------------------------------- */

GPSTI_PRIVATE bool gpsti_stage_is_offload(const gpst_stage_desc* stage) {
    return stage->kind == GPST_STAGE_WARP || stage->kind == GPST_STAGE_DEVICE;
}

GPSTI_PRIVATE gpst_result gpsti_stage_check(const gpst_pipeline_desc* desc, uint32_t s, bool after_outputs) {
    const gpst_stage_desc* const stage = &desc->stages[s];
    GPSTI_FAIL_IF(stage->kind < GPST_STAGE_READ || stage->kind > GPST_STAGE_WRITE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].kind=%d: unknown", s, (int)stage->kind);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_READ && s != 0, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].kind=READ: only the first stage reads", s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_WRITE && s + 1 != desc->n_stages, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].kind=WRITE: only the last stage writes", s);
    GPSTI_FAIL_IF((stage->kind == GPST_STAGE_HOST || stage->kind == GPST_STAGE_DEVICE) && !stage->func,
                  GPST_ERROR_ARGUMENT, GPSTI_CREATE ": stages[%u].func=NULL: required for HOST and DEVICE",
                  s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_WARP && !stage->warp, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].warp=NULL: required for WARP", s);
    GPSTI_FAIL_IF(stage->kind == GPST_STAGE_WARP && stage->warp->desc.rois_in_place, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].warp: rois_in_place: there is one list, and items overlap", s);
    GPSTI_FAIL_IF(stage->per_output && (stage->kind != GPST_STAGE_HOST || stage->ordered),
                  GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].per_output: only for a HOST stage that is not ordered", s);
    GPSTI_FAIL_IF(gpsti_stage_is_offload(stage) && after_outputs, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u]: device work comes before per-output stages", s);
    GPSTI_FAIL_IF(stage->ordered && stage->kind != GPST_STAGE_HOST, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].ordered: only for a HOST stage", s);
    GPSTI_FAIL_IF(stage->name && strlen(stage->name) > 31, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": stages[%u].name=\"%.40s\": at most 31 bytes", s, stage->name);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_stages_check(const gpst_pipeline_desc* desc) {
    bool after_outputs = false;
    uint32_t n_warp_outputs = 0;
    GPSTI_FAIL_IF(!desc->stages || desc->n_stages == 0 || desc->n_stages > GPST_MAX_STAGES,
                  GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_stages=%u: 1..%d stages are required",
                  desc->n_stages, GPST_MAX_STAGES);
    for (uint32_t s = 0; s < desc->n_stages; s++) {
        GPSTI_TRY(gpsti_stage_check(desc, s, after_outputs));
        after_outputs = after_outputs || desc->stages[s].per_output;
        if (!desc->stages[s].warp)
            continue;
        const uint32_t n_outputs = gpst_warp_n_outputs(desc->stages[s].warp);
        GPSTI_FAIL_IF(n_warp_outputs != 0, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": stages[%u].kind=WARP: one WARP stage at most", s);
        GPSTI_FAIL_IF(desc->n_outputs != 0 && desc->n_outputs != n_outputs, GPST_ERROR_ARGUMENT,
                      GPSTI_CREATE ": n_outputs=%u: the WARP stage makes %u", desc->n_outputs, n_outputs);
        n_warp_outputs = n_outputs;
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_pipeline_check(const gpst_context* context, const gpst_pipeline_desc* desc,
                                               gpst_pipeline** out) {
    GPSTI_FAIL_IF(!context || !desc || !out, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": %s=NULL: required",
                  !context ? "context"
                  : !desc  ? "desc"
                           : "out");
    GPSTI_TRY(gpsti_check_canaries(GPSTI_CREATE, desc->start_canary, desc->end_canary));
    GPSTI_TRY(gpsti_context_check(context, GPSTI_CREATE));
    GPSTI_TRY(gpsti_stages_check(desc));
    const int mode = (int)desc->mode, policy = (int)desc->full_policy, fsync_policy = (int)desc->fsync;
    GPSTI_FAIL_IF(mode < 0 || mode > (int)GPST_RUN_PLAIN_INSIDE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": mode=%d: unknown", mode);
    GPSTI_FAIL_IF(policy < 0 || policy > (int)GPST_FULL_LATEST_ONLY, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": full_policy=%d: unknown", policy);
    GPSTI_FAIL_IF(fsync_policy < 0 || fsync_policy > (int)GPST_FSYNC_NONE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": fsync=%d: unknown", fsync_policy);
    GPSTI_FAIL_IF(!desc->source && mode > (int)GPST_RUN_ENGINE, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": mode=plain: a plain loop pulls: source is required");
    GPSTI_FAIL_IF(desc->n_slots > 4096, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_slots=%u: at most 4096",
                  desc->n_slots);
    GPSTI_FAIL_IF(desc->n_reads > 64 || desc->n_writes > 64, GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": n_%s=%u: at most 64", desc->n_reads > 64 ? "reads" : "writes",
                  desc->n_reads > 64 ? desc->n_reads : desc->n_writes);
    GPSTI_FAIL_IF(desc->batch > GPSTI_MOST_BATCH, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": batch=%u: at most %d",
                  desc->batch, GPSTI_MOST_BATCH);
    GPSTI_FAIL_IF(desc->n_outputs > 4096, GPST_ERROR_ARGUMENT, GPSTI_CREATE ": n_outputs=%u: at most 4096",
                  desc->n_outputs);
    GPSTI_FAIL_IF(desc->n_paths > UINT32_MAX - 1 || (desc->n_paths > 0 && !desc->paths), GPST_ERROR_ARGUMENT,
                  GPSTI_CREATE ": n_paths=%llu: at most 2^32 - 2, and paths must not be NULL",
                  (unsigned long long)desc->n_paths);
    for (uint64_t k = 0; k < desc->n_paths; k++)
        GPSTI_FAIL_IF(!desc->paths[k], GPST_ERROR_ARGUMENT, GPSTI_CREATE ": paths[%llu]=NULL: required",
                      (unsigned long long)k);
    return gpsti_tune_check(desc, GPSTI_CREATE);
}

/* ---- stages become steps ------------------------------------------------------------------------ */

GPSTI_PRIVATE const char* gpsti_stage_default_name(gpst_stage_kind kind) {
    static const char* const names[] = {"", "read", "stage", "kernel", "device", "write"};
    return names[(int)kind];
}

GPSTI_PRIVATE gpst_result gpsti_stage_copy(gpst_pipeline* pipeline, gpsti_stage* stage,
                                           const gpst_stage_desc* desc) {
    gpsti_host* const host = &pipeline->context->host;
    const size_t n = (size_t)pipeline->n_workers + 1;
    stage->desc = *desc;
    gpsti_copy_text(stage->name, sizeof stage->name,
                    desc->name ? desc->name : gpsti_stage_default_name(desc->kind));
    stage->desc.name = stage->name;
    stage->worker_states = (void**)gpsti_alloc(host, n * sizeof *stage->worker_states);
    stage->worker_started = (bool*)gpsti_alloc(host, n * sizeof *stage->worker_started);
    return stage->worker_states && stage->worker_started ? GPST_OK : GPST_ERROR_MEMORY;
}

GPSTI_PRIVATE void gpsti_clock_name(gpst_pipeline* pipeline, const char* name, gpst_resource resource) {
    gpsti_clock* const clock = &pipeline->clocks[pipeline->n_clocks++];
    gpsti_copy_text(clock->name, sizeof clock->name, name);
    clock->resource = resource;
}

GPSTI_PRIVATE void gpsti_step_add_clocks(gpst_pipeline* pipeline, gpsti_step* step) {
    const gpst_resource compute = pipeline->device_on_host ? GPST_RESOURCE_CPU : GPST_RESOURCE_GPU;
    const gpst_resource other = step->kind == GPSTI_STEP_READ    ? GPST_RESOURCE_DISK_IN
                                : step->kind == GPSTI_STEP_WRITE ? GPST_RESOURCE_DISK_OUT
                                                                 : GPST_RESOURCE_CPU;
    step->first_clock = pipeline->n_clocks;
    if (step->kind == GPSTI_STEP_OFFLOAD)
        gpsti_clock_name(pipeline, "upload", GPST_RESOURCE_H2D);
    for (uint32_t s = 0; s < step->n_stages; s++)
        gpsti_clock_name(pipeline, pipeline->stages[step->first_stage + s].name,
                         step->kind == GPSTI_STEP_OFFLOAD ? compute : other);
    if (step->kind == GPSTI_STEP_OFFLOAD)
        gpsti_clock_name(pipeline, "download", GPST_RESOURCE_D2H);
}

GPSTI_PRIVATE gpsti_step_kind gpsti_step_kind_of(const gpst_stage_desc* stage) {
    return stage->kind == GPST_STAGE_READ    ? GPSTI_STEP_READ
           : stage->kind == GPST_STAGE_WRITE ? GPSTI_STEP_WRITE
           : gpsti_stage_is_offload(stage)   ? GPSTI_STEP_OFFLOAD
                                             : GPSTI_STEP_HOST;
}

GPSTI_PRIVATE void gpsti_steps_make(gpst_pipeline* pipeline) {
    for (uint32_t s = 0; s < pipeline->desc.n_stages;) {
        const gpst_stage_desc* const stage = &pipeline->stages[s].desc;
        gpsti_step* const step = &pipeline->steps[pipeline->n_steps++];
        step->kind = gpsti_step_kind_of(stage);
        step->first_stage = s++;
        while (step->kind == GPSTI_STEP_OFFLOAD && s < pipeline->desc.n_stages &&
               gpsti_stage_is_offload(&pipeline->stages[s].desc))
            s++;
        step->no_callbacks = stage->kind == GPST_STAGE_WARP && s == step->first_stage + 1;
        step->n_stages = s - step->first_stage;
        step->per_output = stage->per_output || step->kind == GPSTI_STEP_WRITE;
        step->ordered = stage->ordered;
        step->concurrency = stage->ordered ? 1 : stage->concurrency;
        if (step->n_stages + 3 > pipeline->n_events) /* before and after each of upload, stages, download */
            pipeline->n_events = step->n_stages + 3;
        gpsti_step_add_clocks(pipeline, step);
    }
    gpsti_step* const finish = &pipeline->steps[pipeline->n_steps++];
    finish->kind = GPSTI_STEP_FINISH;
    finish->concurrency = 1;
    finish->no_callbacks = !pipeline->desc.sink && (finish - 1)->kind != GPSTI_STEP_WRITE;
}

/* ---- batches ------------------------------------------------------------------------------------- */

/* What the user's own device work does is called for each item, so a DEVICE stage has none. */
GPSTI_PRIVATE uint32_t gpsti_pipeline_batch_most(const gpst_pipeline* pipeline, bool asynchronous) {
    const uint32_t fit = GPSTI_MOST_BATCH_OUTPUTS / pipeline->n_outputs;
    bool alone = false;
    for (uint32_t s = 0; s < pipeline->n_steps; s++)
        alone = alone || (pipeline->steps[s].kind == GPSTI_STEP_OFFLOAD && pipeline->steps[s].no_callbacks);
    if (!alone || !asynchronous || pipeline->device_on_host || pipeline->desc.mode != GPST_RUN_ENGINE || fit < 2)
        return 1;
    return fit < GPSTI_MOST_BATCH ? fit : GPSTI_MOST_BATCH;
}

/* Without a tuner the slots are enough for three batches, if the user has said nothing else. */
GPSTI_PRIVATE void gpsti_pipeline_set_batch(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    if (!pipeline->tune.on && desc->n_slots == 0 && desc->batch > 1 && pipeline->batch_most > 1 &&
        pipeline->n_slots < 3 * desc->batch)
        pipeline->n_slots = pipeline->slots_capacity = 3 * desc->batch;
    gpsti_steps_set_batch(pipeline, desc->batch);
}

/* ---- create / destroy ------------------------------------------------------------------------------ */

GPSTI_PRIVATE void gpsti_pipeline_resolve(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpst_pipeline_desc* const resolved = &pipeline->desc;
    *resolved = *desc;
    if (resolved->mode == GPST_RUN_DEFAULT)
        resolved->mode = gpsti_tune_loop(desc);
    if (resolved->fsync == GPST_FSYNC_DEFAULT)
        resolved->fsync = GPST_FSYNC_FILE;
    resolved->n_reads = desc->n_reads ? desc->n_reads : 4;
    resolved->n_writes = desc->n_writes ? desc->n_writes : 4;
    pipeline->n_workers = pipeline->context->scheduler->n_workers;
    pipeline->n_outputs = desc->n_outputs ? desc->n_outputs : 1;
    for (uint32_t s = 0; s < desc->n_stages; s++)
        if (desc->stages[s].warp)
            pipeline->n_outputs = gpst_warp_n_outputs(desc->stages[s].warp);
    const uint32_t reads = desc->stages[0].kind == GPST_STAGE_READ ? resolved->n_reads : 0;
    pipeline->n_slots = desc->n_slots ? desc->n_slots : pipeline->n_workers + reads + 2;
    pipeline->exec.n_threads = 1;
    pipeline->read_cpu_part = -1.0;
    if (resolved->mode != GPST_RUN_ENGINE)
        pipeline->n_slots = 1;
    pipeline->slots_capacity = pipeline->n_slots;
    pipeline->n_active = pipeline->n_workers;
    if (resolved->mode == GPST_RUN_PLAIN_INSIDE)
        pipeline->exec.n_threads = pipeline->context->info.cores_allowed;
}

/* Workers that bring items whole read by themselves: a thread that is made and ended with the pipeline would take a
   brief run more than its engine does. With a list it reads ahead. */
GPSTI_PRIVATE gpst_result gpsti_pipeline_open_reader(gpst_pipeline* pipeline) {
    const gpst_pipeline_desc* const desc = &pipeline->desc;
    const bool has_list = desc->n_paths > 0 && !desc->no_prefetch;
    GPSTI_TRY(gpsti_reader_open(pipeline->context, NULL, desc->n_reads, &pipeline->reader));
    gpsti_reader_set_cancel(pipeline->reader, &pipeline->cancel);
    if (has_list)
        GPSTI_TRY(gpsti_reader_set_list(pipeline->reader, desc->paths, desc->n_paths, desc->source != NULL));
    return pipeline->whole && !has_list ? GPST_OK : gpsti_reader_start(pipeline->reader);
}

GPSTI_PRIVATE gpst_result gpsti_pipeline_open_files(gpst_pipeline* pipeline) {
    if (pipeline->steps[0].kind == GPSTI_STEP_READ)
        GPSTI_TRY(gpsti_pipeline_open_reader(pipeline));
    if (pipeline->steps[pipeline->n_steps - 2].kind != GPSTI_STEP_WRITE)
        return GPST_OK;
    GPSTI_TRY(gpsti_writer_create(pipeline->context, pipeline->desc.n_writes, &pipeline->writer));
    gpsti_writer_tell_closed(pipeline->writer, gpsti_flow_file_closed, pipeline);
    return pipeline->whole ? GPST_OK : gpsti_writer_start(pipeline->writer);
}

GPSTI_PRIVATE gpst_result gpsti_pipeline_build(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpsti_host* const host = &pipeline->context->host;
    gpst_pool_desc pool = GPST_ZERO;
    const gpsti_device_info* const device = &pipeline->context->device_info;
    GPSTI_TRY(gpsti_cond_init(&pipeline->progress));
    pipeline->has_progress = true;
    GPSTI_TRY(gpsti_mutex_init(&pipeline->source_mutex));
    pipeline->has_source_mutex = true;
    pipeline->device_on_host = device->zero_copy;
    pipeline->device_counts_bytes = device->counts_bytes;
    pipeline->device_reaches_host = device->reaches_host;
    gpsti_pipeline_resolve(pipeline, desc);
    pipeline->stages = (gpsti_stage*)gpsti_alloc(host, desc->n_stages * sizeof *pipeline->stages);
    pipeline->clocks = (gpsti_clock*)gpsti_alloc(host, GPST_MAX_STATS * sizeof *pipeline->clocks);
    if (!pipeline->stages || !pipeline->clocks)
        return GPST_ERROR_MEMORY;
    for (uint32_t s = 0; s < desc->n_stages; s++)
        GPSTI_TRY(gpsti_stage_copy(pipeline, &pipeline->stages[s], &desc->stages[s]));
    for (uint32_t s = 0; !device->zero_copy && s < desc->n_stages; s++)
        gpsti_offload_constants_load(pipeline, &pipeline->stages[s]);
    gpsti_steps_make(pipeline);
    pipeline->batch_most = gpsti_pipeline_batch_most(pipeline, device->asynchronous);
    gpsti_tune_init(pipeline, desc);
    gpsti_tune_set_order(pipeline);
    gpsti_pipeline_set_batch(pipeline, desc);
    GPSTI_TRY(gpst_pool_create(pipeline->context, &pool, &pipeline->pool));
    return gpsti_slots_create(pipeline);
}

/* Locked. */
GPSTI_PRIVATE void gpsti_pipeline_attach(gpst_pipeline* pipeline) {
    pipeline->client.run_one = gpsti_flow_run_one;
    pipeline->client.backlog_ns = gpsti_flow_backlog_ns;
    pipeline->attached = true;
    if (!pipeline->listed)
        gpsti_scheduler_add(pipeline->context->scheduler, &pipeline->client);
    pipeline->listed = true;
    if (pipeline->started)
        gpsti_flow_call_workers(pipeline);
}

GPSTI_INTERN gpst_result gpsti_pipeline_open(gpst_pipeline* pipeline) {
    GPSTI_TRY(gpsti_carry_open(pipeline));
    const gpst_result result = gpsti_pipeline_open_files(pipeline);
    if (GPST_FAILED(result)) { /* whole or not at all: it may be tried again */
        gpst_reader_destroy(pipeline->reader);
        gpsti_writer_destroy(pipeline->writer);
        pipeline->reader = NULL;
        pipeline->writer = NULL;
        return result;
    }
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    if (pipeline->tune.on)
        gpsti_tune_apply(pipeline);
    else
        gpsti_tune_hold_back(pipeline);
    gpsti_pipeline_attach(pipeline);
    if (pipeline->left) {
        gpsti_slot* const slot = pipeline->left;
        pipeline->left = NULL;
        gpsti_flow_continue(slot, pipeline->left_step);
    }
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_stage_free(gpst_pipeline* pipeline, gpsti_stage* stage) {
    gpsti_host* const host = &pipeline->context->host;
    const size_t n = (size_t)pipeline->n_workers + 1;
    for (uint32_t w = 0; stage->worker_started && stage->desc.worker_term && w < n; w++)
        if (stage->worker_started[w])
            stage->desc.worker_term(stage->desc.user_data, w, stage->worker_states[w]);
    if (stage->worker_states)
        gpsti_free(host, stage->worker_states, n * sizeof *stage->worker_states);
    if (stage->worker_started)
        gpsti_free(host, stage->worker_started, n * sizeof *stage->worker_started);
    gpsti_offload_constants_free(pipeline, stage);
}

/* Nothing runs any more. */
GPSTI_PRIVATE void gpsti_pipeline_free(gpst_pipeline* pipeline) {
    gpsti_host* const host = &pipeline->context->host;
    gpst_reader_destroy(pipeline->reader);
    gpsti_writer_destroy(pipeline->writer);
    gpsti_slots_destroy(pipeline);
    gpsti_carry_close(pipeline);
    if (pipeline->pool)
        (void)gpst_pool_destroy(pipeline->pool);
    for (uint32_t s = 0; pipeline->stages && s < pipeline->desc.n_stages; s++)
        gpsti_stage_free(pipeline, &pipeline->stages[s]);
    if (pipeline->stages)
        gpsti_free(host, pipeline->stages, pipeline->desc.n_stages * sizeof *pipeline->stages);
    if (pipeline->clocks)
        gpsti_free(host, pipeline->clocks, GPST_MAX_STATS * sizeof *pipeline->clocks);
    if (pipeline->has_progress)
        gpsti_cond_term(&pipeline->progress);
    if (pipeline->has_source_mutex)
        gpsti_mutex_term(&pipeline->source_mutex);
    gpsti_free(host, pipeline, sizeof *pipeline);
}

GPST_API gpst_result gpst_pipeline_create_versioned(uint32_t version, size_t desc_bytes,
                                                    gpst_context* context, const gpst_pipeline_desc* desc,
                                                    gpst_pipeline** out) {
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version(GPSTI_CREATE, version, desc_bytes, sizeof(gpst_pipeline_desc)));
    GPSTI_TRY(gpsti_pipeline_check(context, desc, out));
    gpst_pipeline* const pipeline = (gpst_pipeline*)gpsti_alloc(&context->host, sizeof *pipeline);
    if (!pipeline)
        return GPST_ERROR_MEMORY;
    pipeline->context = context;
    gpst_result result = gpsti_pipeline_build(pipeline, desc);
    if (!GPST_FAILED(result) && pipeline->desc.mode == GPST_RUN_ENGINE && !pipeline->tune.starts_plain)
        result = gpsti_pipeline_open(pipeline);
    if (GPST_FAILED(result)) {
        gpsti_pipeline_free(pipeline);
        return result;
    }
    pipeline->desc.stages = NULL; /* the user's array may be gone */
    *out = pipeline;
    return GPST_OK;
}

/* Results nobody took go with the pipeline. Locked. */
GPSTI_PRIVATE void gpsti_pipeline_drop_results(gpst_pipeline* pipeline) {
    while (pipeline->first_result) {
        gpsti_slot* const slot = pipeline->first_result;
        pipeline->first_result = slot->next;
        gpsti_flow_release_slot(slot);
    }
    pipeline->last_result = NULL;
}

GPSTI_PRIVATE bool gpsti_pipeline_is_at_work(const gpst_pipeline* pipeline) {
    return pipeline->in_flight > pipeline->n_handed_out || pipeline->executing > 0 || pipeline->source_running;
}

GPST_API gpst_result gpst_pipeline_destroy(gpst_pipeline* pipeline) {
    if (!pipeline)
        return GPST_OK;
    GPSTI_TRY(gpsti_context_check(pipeline->context, "gpst_pipeline_destroy"));
    GPSTI_FAIL_IF(gpsti_call_inside(pipeline), GPST_ERROR_REENTRANT,
                  "gpst_pipeline_destroy: not from a callback of the same pipeline");
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpst_pipeline_cancel(pipeline);
    if (pipeline->listed) {
        gpsti_mutex_lock(&scheduler->mutex);
        gpsti_flow_notice(pipeline);
        gpsti_pipeline_drop_results(pipeline);
        while (gpsti_pipeline_is_at_work(pipeline)) {
            gpsti_scheduler_wake_all(scheduler);
            gpsti_flow_wait(pipeline, GPST_FOREVER);
            gpsti_pipeline_drop_results(pipeline);
        }
        gpsti_scheduler_remove(scheduler, &pipeline->client);
        gpsti_mutex_unlock(&scheduler->mutex);
    }
    gpsti_pipeline_free(pipeline);
    return GPST_OK;
}

/* ---- run ---------------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_pipeline_outcome(const gpst_pipeline* pipeline) {
    if (pipeline->items_cancelled > 0 || gpsti_a32_load(&pipeline->cancel) != 0)
        return gpsti_fail(GPST_ERROR_CANCELLED, "gpst_pipeline_run: cancelled with %llu items done",
                          (unsigned long long)pipeline->items_ok);
    return pipeline->items_failed > 0 ? GPST_PARTIAL : GPST_OK;
}

GPSTI_PRIVATE void gpsti_pipeline_wait(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_flow_wait_end(pipeline);
    gpsti_mutex_unlock(&scheduler->mutex);
}

GPST_API gpst_result gpst_pipeline_run(gpst_pipeline* pipeline) {
    GPSTI_FAIL_IF(!pipeline, GPST_ERROR_ARGUMENT, "gpst_pipeline_run: pipeline=NULL: required");
    GPSTI_TRY(gpsti_context_check(pipeline->context, "gpst_pipeline_run"));
    GPSTI_FAIL_IF(gpsti_call_inside(pipeline), GPST_ERROR_REENTRANT,
                  "gpst_pipeline_run: not from a callback of the same pipeline");
    GPSTI_FAIL_IF(!pipeline->desc.source, GPST_ERROR_STATE,
                  "gpst_pipeline_run: the pipeline has no source: submit");
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    const bool again = pipeline->started;
    pipeline->started = true;
    if (!again) {
        gpsti_core_use_query_under(pipeline->context->system_root, &pipeline->use_start);
        pipeline->start_ns = gpsti_now_ns();
    }
    if (pipeline->attached) /* until now its source was not to be called */
        gpsti_flow_call_workers(pipeline);
    gpsti_mutex_unlock(&scheduler->mutex);
    GPSTI_FAIL_IF(again, GPST_ERROR_STATE, "gpst_pipeline_run: a pipeline runs once: create another");
    if (pipeline->desc.mode != GPST_RUN_ENGINE)
        GPSTI_TRY(gpsti_plain_run(pipeline));
    else if (pipeline->attached || gpsti_tune_start(pipeline))
        gpsti_pipeline_wait(pipeline);
    gpsti_core_use_query_under(pipeline->context->system_root, &pipeline->use_end);
    gpsti_tune_remember(pipeline);
    return gpsti_pipeline_outcome(pipeline);
}

GPST_API void gpst_pipeline_cancel(gpst_pipeline* pipeline) {
    if (pipeline)
        gpsti_a32_store(&pipeline->cancel, 1);
}

GPST_API void gpst_pipeline_stop(gpst_pipeline* pipeline) {
    if (pipeline)
        gpsti_a32_store(&pipeline->stop, 1);
}
