/* core/pipeline/flow.c -- what an idle thread does: it asks the source, takes the job nearest the sink, opens the
   engine for workers, or waits. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#define GPSTI_FLOW_SOURCE_ITEMS 16 /* at most, in one turn at the source */
#define GPSTI_FLOW_SOURCE_NS 20000 /* of a turn, about; a slower source is asked only when no job is ready */

/* ---- the source ------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_flow_source_ready(const gpst_pipeline* pipeline) {
    const bool rests = (pipeline->tune.paused && !gpsti_flight_is_plain(pipeline)) || pipeline->memory.starved ||
                       pipeline->memory.exclusive || pipeline->flow.source_rests;
    return pipeline->plan.desc.source && pipeline->flow.started && !pipeline->flow.source_done &&
           !pipeline->flow.source_running && !rests && gpsti_flight_has_slot(pipeline);
}

GPSTI_PRIVATE bool gpsti_flow_source_is_brief(const gpst_pipeline* pipeline) {
    return pipeline->flow.source_ns > 0 && pipeline->flow.source_ns < GPSTI_FLOW_SOURCE_NS;
}

/* Items of one turn: one in a plain loop and of a slow source, else one for each worker. */
GPSTI_PRIVATE uint32_t gpsti_flow_source_most(const gpst_pipeline* pipeline) {
    if (gpsti_flight_is_plain(pipeline) || !gpsti_flow_source_is_brief(pipeline))
        return 1;
    return pipeline->flow.n_active < GPSTI_FLOW_SOURCE_ITEMS ? pipeline->flow.n_active : GPSTI_FLOW_SOURCE_ITEMS;
}

/* OK: the slot has an item. END: the source has no more. WOULD_BLOCK: not now; only if may_wait. Not locked. */
GPSTI_PRIVATE gpst_result gpsti_flow_fill(gpsti_item* item, uint64_t index, int64_t now_ns, bool may_wait) {
    gpst_input input;
    const char* reason = NULL;
    gpsti_item_reset(item, index, now_ns);
    gpst_result result = gpsti_call_source(item->pipeline, index, &input, &reason);
    if (result == GPST_END || (result == GPST_ERROR_WOULD_BLOCK && may_wait))
        return result;
    result = result == GPST_ERROR_WOULD_BLOCK ? GPST_ERROR_BUDGET : result;
    if (!GPSTI_ENDS_ITEM(result)) {
        result = gpsti_item_load(item, &input, "gpst_source_func");
        reason = gpst_last_reason();
        if (GPST_FAILED(result) && input.release)
            gpsti_call_release(item->pipeline, input.release, input.release_user_data); /* nothing has read it */
    } else {
        (void)gpsti_item_load_names(item, &input);
    }
    item->source_failed = GPSTI_ENDS_ITEM(result);
    if (item->source_failed)
        gpsti_item_fail(item, result, "source", reason);
    return GPST_OK;
}

/* One turn at the source. Locked, but not while the source runs. */
GPSTI_PRIVATE void gpsti_flow_ask_source(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_item* slots[GPSTI_FLOW_SOURCE_ITEMS];
    const uint64_t index = pipeline->items.next_index;
    const uint32_t most = gpsti_flow_source_most(pipeline);
    const bool alone = gpsti_a32_load(&pipeline->items.in_flight) == 0;
    uint32_t n_slots = 0, n_items = 0;
    gpst_result result = GPST_OK;
    while (n_slots < most && (slots[n_slots] = gpsti_flight_take_slot(pipeline)) != NULL)
        n_slots++;
    const bool samples_cpu = n_slots > 0 && slots[0]->samples_cpu;
    pipeline->flow.source_running = true;
    gpsti_scheduler_wake(scheduler); /* what is queued must not wait for the source, which may itself wait for that */
    gpsti_mutex_unlock(&scheduler->mutex);
    const int64_t cpu_start_ns = samples_cpu ? gpsti_thread_cpu_ns() : 0;
    const int64_t start_ns = gpsti_now_ns();
    int64_t now_ns = start_ns;
    while (result == GPST_OK && n_items < n_slots && now_ns - start_ns < GPSTI_FLOW_SOURCE_NS) {
        result = gpsti_flow_fill(slots[n_items], index + n_items, now_ns, !alone || n_items > 0);
        n_items += result == GPST_OK ? 1 : 0;
        now_ns = gpsti_now_ns();
    }
    const int64_t cpu_ns = samples_cpu ? gpsti_thread_cpu_ns() - cpu_start_ns : -1;
    gpsti_mutex_lock(&scheduler->mutex);
    pipeline->flow.source_running = false;
    pipeline->flow.source_done = pipeline->flow.source_done || result == GPST_END;
    if (n_items > 0)
        gpsti_account_source(pipeline, n_items, now_ns - start_ns, cpu_ns);
    pipeline->items.next_index += n_items;
    for (uint32_t i = 0; i < n_items; i++)
        gpsti_flight_begin(slots[i]);
    while (n_slots > n_items)
        gpsti_flight_put_slot(slots[--n_slots]);
    /* Where all others have ended meanwhile nobody would wake it: it is asked again at once, alone. */
    pipeline->flow.source_rests = result == GPST_ERROR_WOULD_BLOCK && gpsti_a32_load(&pipeline->items.in_flight) > 0;
}

/* ---- an idle thread ----------------------------------------------------------------------------- */

/* Reads wait for the disk, and fewer than n_reads are in flight: the next read goes first. */
GPSTI_PRIVATE bool gpsti_flow_wants_reads(const gpst_pipeline* pipeline) {
    return gpsti_a32_load(&pipeline->files.reads_wait) != 0 && pipeline->plan.steps[0].kind == GPSTI_STEP_READ &&
           pipeline->files.n_reading < pipeline->plan.desc.n_reads;
}

/* True if the source is asked before a queued job runs. */
GPSTI_PRIVATE bool gpsti_flow_asks_first(const gpst_pipeline* pipeline) {
    return gpsti_flow_source_ready(pipeline) && !gpsti_flight_is_plain(pipeline) &&
           2 * pipeline->plan.steps[0].n_queued < gpsti_flow_source_most(pipeline) &&
           (gpsti_flow_source_is_brief(pipeline) || gpsti_flow_wants_reads(pipeline));
}

/* The runnable job nearest the sink, so that items leave and memory stays bounded. Locked. */
GPSTI_PRIVATE gpsti_job* gpsti_flow_choose(gpsti_run* run) {
    gpst_pipeline* const pipeline = run->pipeline;
    gpsti_step* const steps = pipeline->plan.steps;
    run->entered = false;
    if (gpsti_flow_wants_reads(pipeline) && gpsti_queue_may_take(pipeline, &steps[0]))
        return gpsti_inline_take(run, &steps[0]);
    for (uint32_t s = pipeline->plan.n_steps; s-- > 0;) {
        gpsti_job* const job = gpsti_queue_may_take(pipeline, &steps[s]) ? gpsti_inline_take(run, &steps[s]) : NULL;
        if (job) /* else all that waited were late */
            return job;
    }
    return gpsti_flight_take_starved(pipeline);
}

/* Workers begin to take items: the plain start is over. Locked. */
GPSTI_PRIVATE void gpsti_flow_open(gpst_pipeline* pipeline) {
    gpsti_a32_store(&pipeline->flow.open, 1);
    pipeline->client.begin_ns = 0;
    gpsti_tune_open(pipeline);
}

GPSTI_INTERN bool gpsti_flow_has_work(const gpsti_client* client) {
    const gpst_pipeline* const pipeline = (const gpst_pipeline*)client;
    if (gpsti_a32_load(&pipeline->flow.executing) >= pipeline->flow.n_active)
        return false;
    if (pipeline->results.dropped)
        return true;
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++)
        if (gpsti_queue_may_take(pipeline, &pipeline->plan.steps[s]))
            return true;
    return (pipeline->memory.starved && !pipeline->memory.exclusive &&
            gpsti_a32_load(&pipeline->flow.executing) == 0) ||
           gpsti_flow_source_ready(pipeline);
}

/* Takes a job and runs it. False: none was ready. Locked, but not while the job runs. */
GPSTI_PRIVATE bool gpsti_flow_work(gpst_pipeline* pipeline, uint32_t worker_index) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_run run;
    run.pipeline = pipeline;
    run.worker_index = worker_index;
    run.n = 0;
    (void)gpsti_a32_add(&pipeline->flow.executing, 1);
    gpsti_flight_tell_dropped(pipeline);
    bool asked = gpsti_flow_asks_first(pipeline);
    if (asked)
        gpsti_flow_ask_source(pipeline);
    gpsti_job* job = gpsti_flow_choose(&run);
    if (!job && !asked && gpsti_flow_source_ready(pipeline)) {
        asked = true;
        gpsti_flow_ask_source(pipeline);
        job = gpsti_flow_choose(&run);
    }
    if (job) {
        gpsti_scheduler_wake(scheduler);
        gpsti_mutex_unlock(&scheduler->mutex);
        gpsti_inline_run(&run, job);
        gpsti_mutex_lock(&scheduler->mutex);
    }
    const bool dropped = pipeline->results.dropped != NULL; /* those that were late when a batch was chosen */
    gpsti_flight_tell_dropped(pipeline);
    (void)gpsti_a32_add(&pipeline->flow.executing, UINT32_MAX);
    if (job || asked || dropped)
        gpsti_flight_wake_waiters(pipeline);
    return job || asked || dropped;
}

GPSTI_INTERN bool gpsti_flow_run_one(gpsti_client* client, uint32_t worker_index) {
    gpst_pipeline* const pipeline = (gpst_pipeline*)client;
    gpsti_flight_notice(pipeline);
    if (!gpsti_flow_has_work(client))
        return false;
    if (gpsti_flight_is_plain(pipeline))
        gpsti_flow_open(pipeline);
    return gpsti_flow_work(pipeline, worker_index);
}

GPSTI_INTERN void gpsti_flow_run_plain(gpst_pipeline* pipeline, uint64_t n_items) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_flight_notice(pipeline);
    while (n_items-- > 0 && gpsti_flight_is_plain(pipeline) && gpsti_flow_work(pipeline, scheduler->n_workers)) {
        gpsti_flight_notice(pipeline);
        if (pipeline->client.begin_ns > 0 && gpsti_now_ns() >= pipeline->client.begin_ns && !pipeline->flow.source_done)
            gpsti_flow_open(pipeline);
    }
    gpsti_scheduler_wake(scheduler);
    gpsti_mutex_unlock(&scheduler->mutex);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_flow_wait(gpst_pipeline* pipeline, int64_t deadline_ns) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const uint32_t worker_index = gpsti_scheduler_worker_index(scheduler);
    /* A signal handler may set `cancel` and cannot wake a thread: look at it every 50 ms. */
    const int64_t look_ns = gpsti_now_ns() + 50 * (int64_t)1000000;
    const int64_t until_ns = deadline_ns < look_ns ? deadline_ns : look_ns;
    gpsti_flight_notice(pipeline);
    pipeline->flow.n_waiters++;
    if (worker_index < scheduler->n_workers && pipeline->flow.listed)
        gpsti_scheduler_help(scheduler, &pipeline->client, worker_index, until_ns);
    else
        gpsti_cond_wait_until(&pipeline->flow.progress, &scheduler->mutex, until_ns);
    pipeline->flow.n_waiters--;
    gpsti_flight_notice(pipeline);
}

/* A block for the guard: the engine is empty, and this thread runs items plain while no worker takes any. Locked, but
   not while the items run. */
GPSTI_PRIVATE void gpsti_flow_run_block(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const uint64_t n_before = pipeline->counts.items.ok + pipeline->counts.items.failed;
    const int64_t start_ns = gpsti_now_ns();
    gpsti_a32_store(&pipeline->flow.open, 0);
    pipeline->client.begin_ns = GPST_FOREVER;
    gpsti_mutex_unlock(&scheduler->mutex);
    gpsti_flow_run_plain(pipeline, pipeline->tune.block_items);
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_a32_store(&pipeline->flow.open, 1);
    pipeline->client.begin_ns = 0;
    gpsti_tune_end_block(pipeline, pipeline->counts.items.ok + pipeline->counts.items.failed - n_before,
                         gpsti_now_ns() - start_ns);
    gpsti_scheduler_wake(scheduler);
}

GPSTI_INTERN void gpsti_flow_wait_end(gpst_pipeline* pipeline) {
    gpsti_flight_notice(pipeline);
    while (!gpsti_flight_is_over(pipeline))
        if (gpsti_tune_wants_block(pipeline))
            gpsti_flow_run_block(pipeline);
        else
            gpsti_flow_wait(pipeline, GPST_FOREVER);
}

/* A replaced file was closed. Freeing it keeps the disk busy that the run writes to. */
GPSTI_INTERN void gpsti_flow_file_closed(void* user_data, int64_t start_ns, int64_t end_ns) {
    gpst_pipeline* const pipeline = (gpst_pipeline*)user_data;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    if (gpsti_a32_load(&pipeline->items.in_flight) == 0 && end_ns > pipeline->counts.end_ns)
        end_ns = pipeline->counts.end_ns;
    gpsti_busy_add(&pipeline->counts.busy[GPST_RESOURCE_DISK_OUT], start_ns, end_ns);
    gpsti_mutex_unlock(&scheduler->mutex);
}
