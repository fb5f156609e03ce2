/* core/pipeline/threads.c -- what an idle thread does: it asks the source, takes the batch nearest the sink, opens the
   engine for workers, or waits. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

#define GPSTI_THREADS_SOURCE_ITEMS 16 /* at most, in one turn at the source */
#define GPSTI_THREADS_SOURCE_NS 20000 /* of a turn, about; a slower source is asked only when nothing else is ready */

/* ---- the source ------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_threads_source_ready(gpsti_locked locked, const gpst_pipeline* pipeline) {
    const gpsti_threads* const threads = pipeline->threads;
    const bool rests = (pipeline->tune->paused && !gpsti_is_plain(pipeline)) || threads->source_rests;
    return pipeline->plan.desc.source && threads->started && !pipeline->items.source_done && !threads->source_running &&
           !rests && gpsti_items_may_begin(locked, pipeline);
}

GPSTI_PRIVATE bool gpsti_threads_source_is_brief(const gpst_pipeline* pipeline) {
    return pipeline->counts.source_ns > 0 && pipeline->counts.source_ns < GPSTI_THREADS_SOURCE_NS;
}

/* Items of one turn: one in a plain loop and of a slow source, else one for each worker. */
GPSTI_PRIVATE uint32_t gpsti_threads_source_most(const gpst_pipeline* pipeline) {
    const uint32_t n_active = pipeline->plan.n_active;
    if (gpsti_is_plain(pipeline) || !gpsti_threads_source_is_brief(pipeline))
        return 1;
    return n_active < GPSTI_THREADS_SOURCE_ITEMS ? n_active : GPSTI_THREADS_SOURCE_ITEMS;
}

/* OK: it is filled. END: the source has no more. WOULD_BLOCK: not now; only if may_wait. *has_input: threads->input is
   the next one; there is no memory for it now. Not locked. */
GPSTI_PRIVATE gpst_result gpsti_threads_fill(gpsti_item* item, uint64_t index, int64_t now_ns, bool may_wait,
                                             bool is_first, bool* has_input) {
    gpst_input input;
    const char* reason = NULL;
    gpsti_threads* const threads = item->pipeline->threads;
    gpst_result result = GPST_OK;
    gpsti_item_reset(item, index, now_ns);
    if (*has_input)
        input = threads->input;
    else
        result = gpsti_call_source(item->pipeline, index, &input, &reason);
    *has_input = false;
    if (result == GPST_END || (result == GPST_ERROR_WOULD_BLOCK && may_wait))
        return result;
    result = result == GPST_ERROR_WOULD_BLOCK ? GPST_ERROR_BUDGET : result;
    if (!GPSTI_ENDS_ITEM(result)) {
        item->given.until_ns = is_first ? GPST_FOREVER : 0; /* those before it in this turn have not begun */
        result = gpsti_item_load(item, &input, "gpst_source_func");
        reason = gpst_last_reason();
        if (result == GPST_ERROR_WOULD_BLOCK || (GPST_FAILED(result) && item->yields)) { /* later, when one has ended */
            threads->input = input;
            *has_input = true;
            return GPST_ERROR_WOULD_BLOCK;
        }
        if (GPST_FAILED(result) && input.release)
            gpsti_call_release(item->pipeline, input.release, input.release_user_data); /* nothing has read it */
    } else {
        (void)gpsti_item_load_names(item, &input);
    }
    item->given.failed = GPSTI_ENDS_ITEM(result);
    if (item->given.failed)
        gpsti_item_fail(item, result, "source", reason);
    return GPST_OK;
}

/* One turn at the source; unlocked while it runs. */
GPSTI_PRIVATE void gpsti_threads_ask_source(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_item* taken[GPSTI_THREADS_SOURCE_ITEMS];
    const uint64_t index = pipeline->items.next_index;
    const uint32_t most = gpsti_threads_source_most(pipeline);
    const bool alone = gpsti_a32_load(&pipeline->items.in_flight) == 0;
    uint32_t n_taken = 0, n = 0;
    gpst_result result = GPST_OK;
    while (n_taken < most && (taken[n_taken] = gpsti_items_take(locked, pipeline)) != NULL)
        n_taken++;
    const bool samples_cpu = n_taken > 0 && taken[0]->samples_cpu;
    bool has_input = pipeline->threads->has_input;
    pipeline->threads->source_running = pipeline->threads->source_rests = true;
    gpsti_scheduler_wake(locked); /* what is queued must not wait for the source, which may itself wait for that */
    gpsti_unlock(locked);
    const int64_t cpu_start_ns = samples_cpu ? gpsti_thread_cpu_ns() : 0;
    const int64_t start_ns = gpsti_now_ns();
    int64_t now_ns = start_ns;
    while (result == GPST_OK && n < n_taken && now_ns - start_ns < GPSTI_THREADS_SOURCE_NS) {
        result = gpsti_threads_fill(taken[n], index + n, now_ns, !alone || n > 0, n == 0, &has_input);
        n += result == GPST_OK ? 1 : 0;
        now_ns = gpsti_now_ns();
    }
    const int64_t cpu_ns = samples_cpu ? gpsti_thread_cpu_ns() - cpu_start_ns : -1;
    (void)gpsti_lock(pipeline->context);
    pipeline->threads->source_running = false;
    pipeline->threads->has_input = has_input;
    /* Where one has ended or was released meanwhile it is asked again at once, alone where that was the last. Where no
       item could be made it waits for those under way alone: kept ones may stay for good. */
    const bool rests = pipeline->threads->source_rests && (n_taken == 0 || result == GPST_ERROR_WOULD_BLOCK);
    /* What it has given is begun, though it was stopped meanwhile. */
    pipeline->items.source_done = (pipeline->items.source_done && !has_input) || result == GPST_END;
    if (n > 0)
        gpsti_count_source(pipeline, n, now_ns - start_ns, cpu_ns);
    pipeline->items.next_index += n;
    for (uint32_t i = 0; i < n; i++)
        gpsti_items_begin(locked, taken[i]);
    while (n_taken > n)
        gpsti_items_put(locked, taken[--n_taken]);
    pipeline->threads->source_rests =
        rests && (result == GPST_ERROR_WOULD_BLOCK ? gpsti_a32_load(&pipeline->items.in_flight)
                                                   : gpsti_items_n_under_way(pipeline)) > 0;
}

/* ---- an idle thread ----------------------------------------------------------------------------- */

/* Reads wait for the disk, and fewer than n_reads are in flight: the next read goes first. */
GPSTI_PRIVATE bool gpsti_threads_wants_reads(const gpst_pipeline* pipeline) {
    return gpsti_a32_load(&pipeline->files.reads_wait) != 0 && pipeline->files.reader &&
           pipeline->items.lists[GPSTI_ITEM_FILE].n < pipeline->plan.desc.n_reads;
}

/* True if the source is asked before a queued batch runs. */
GPSTI_PRIVATE bool gpsti_threads_asks_first(gpsti_locked locked, const gpst_pipeline* pipeline) {
    return gpsti_threads_source_ready(locked, pipeline) && !gpsti_is_plain(pipeline) &&
           2 * pipeline->plan.steps[0].queue.n < gpsti_threads_source_most(pipeline) &&
           (gpsti_threads_source_is_brief(pipeline) || gpsti_threads_wants_reads(pipeline));
}

/* The runnable batch nearest the sink, so that items leave and memory stays bounded. */
GPSTI_PRIVATE gpsti_batch* gpsti_threads_choose(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_step* const steps = pipeline->plan.steps;
    gpsti_batch* batch = gpsti_threads_wants_reads(pipeline) ? gpsti_queue_take(locked, &steps[0]) : NULL;
    for (uint32_t s = pipeline->plan.n_steps; !batch && s-- > 0;)
        batch = gpsti_queue_take(locked, &steps[s]);
    return batch;
}

/* Workers begin to take items: the plain start is over. */
GPSTI_PRIVATE void gpsti_threads_open(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_a32_store(&pipeline->signals.open, 1);
    pipeline->client.begin_ns = 0;
    gpsti_tune_open(locked, pipeline);
}

GPSTI_INTERN bool gpsti_threads_has_work(gpsti_locked locked, const gpsti_client* client) {
    const gpst_pipeline* const pipeline = (const gpst_pipeline*)client;
    if (gpsti_a32_load(&pipeline->items.executing) >= pipeline->plan.n_active)
        return false;
    if (pipeline->items.lists[GPSTI_ITEM_DROPPED].n > 0)
        return true;
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++)
        if (gpsti_queue_may_take(locked, &pipeline->plan.steps[s]))
            return true;
    return gpsti_threads_source_ready(locked, pipeline) || gpsti_ends_are_ready(locked, pipeline);
}

/* Takes a batch and runs it; unlocked while it runs. False: none was ready. */
GPSTI_PRIVATE bool gpsti_threads_work(gpsti_locked locked, gpst_pipeline* pipeline, uint32_t worker_index) {
    gpsti_run run;
    gpsti_work work;
    run.pipeline = pipeline;
    run.worker_index = worker_index;
    run.n = 0;
    (void)gpsti_a32_add(&pipeline->items.executing, 1);
    gpsti_work_begin(locked, &work);
    bool dropped = pipeline->items.lists[GPSTI_ITEM_DROPPED].n > 0;
    gpsti_items_tell_dropped(locked, pipeline);
    bool asked = gpsti_threads_asks_first(locked, pipeline);
    if (asked)
        gpsti_threads_ask_source(locked, pipeline);
    gpsti_batch* batch = gpsti_threads_choose(locked, pipeline);
    if (!batch && !asked && gpsti_threads_source_ready(locked, pipeline)) {
        asked = true;
        gpsti_threads_ask_source(locked, pipeline);
        batch = gpsti_threads_choose(locked, pipeline);
    }
    if (!batch && !asked && gpsti_ends_are_ready(locked, pipeline)) {
        asked = gpsti_ends_ask(locked, &run);
        batch = gpsti_threads_choose(locked, pipeline);
    }
    if (batch) {
        gpsti_scheduler_wake(locked);
        gpsti_unlock(locked);
        gpsti_run_batch(&run, batch);
        (void)gpsti_lock(pipeline->context);
    }
    dropped = dropped || pipeline->items.lists[GPSTI_ITEM_DROPPED].n > 0; /* late when a batch was chosen */
    gpsti_items_tell_dropped(locked, pipeline);
    (void)gpsti_a32_add(&pipeline->items.executing, UINT32_MAX);
    gpsti_work_end(locked, &work);
    if (batch || asked || dropped)
        gpsti_items_wake_waiters(locked, pipeline);
    return batch || asked || dropped;
}

GPSTI_INTERN bool gpsti_threads_run_one(gpsti_locked locked, gpsti_client* client, uint32_t worker_index) {
    gpst_pipeline* const pipeline = (gpst_pipeline*)client;
    gpsti_threads_notice(pipeline);
    if (!gpsti_threads_has_work(locked, client))
        return false;
    if (gpsti_is_plain(pipeline))
        gpsti_threads_open(locked, pipeline);
    return gpsti_threads_work(locked, pipeline, worker_index);
}

GPSTI_INTERN void gpsti_threads_run_plain(gpst_pipeline* pipeline, uint64_t n_items) {
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    gpsti_threads_notice(pipeline);
    while (n_items-- > 0 && gpsti_is_plain(pipeline) &&
           gpsti_threads_work(locked, pipeline, locked->scheduler->n_workers)) {
        gpsti_threads_notice(pipeline);
        if (pipeline->client.begin_ns > 0 && gpsti_now_ns() >= pipeline->client.begin_ns &&
            !pipeline->items.source_done)
            gpsti_threads_open(locked, pipeline);
    }
    gpsti_scheduler_wake(locked);
    gpsti_unlock(locked);
}

/* ---- waiting ---------------------------------------------------------------------------------- */

GPSTI_INTERN gpsti_locked gpsti_threads_enter(gpst_pipeline* pipeline) {
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    pipeline->threads->n_inside++;
    return locked;
}

GPSTI_INTERN void gpsti_threads_leave(gpsti_locked locked, gpst_pipeline* pipeline) {
    pipeline->threads->n_inside--;
    if (gpsti_a32_load(&pipeline->signals.cancel) != 0) /* as destroy does first */
        gpsti_cond_broadcast(&pipeline->threads->progress);
    gpsti_unlock(locked);
}

GPSTI_INTERN void gpsti_threads_notice(gpst_pipeline* pipeline) {
    const bool cancel = gpsti_a32_load(&pipeline->signals.cancel) != 0;
    const bool no_more = cancel || gpsti_a32_load(&pipeline->signals.stop) != 0;
    if ((cancel || (no_more && !pipeline->threads->has_input)) &&
        !(pipeline->items.source_done && pipeline->threads->closed)) {
        pipeline->items.source_done = pipeline->threads->closed = true;
        gpsti_scheduler_wake(&pipeline->context->scheduler->held); /* stages may have more items */
    }
    if (cancel && !pipeline->threads->cancel_noticed) {
        pipeline->threads->cancel_noticed = true;
        gpst_reader_cancel(pipeline->files.reader);
    }
}

GPSTI_INTERN void gpsti_threads_wait(gpsti_locked locked, gpst_pipeline* pipeline, int64_t deadline_ns) {
    gpsti_scheduler* const scheduler = locked->scheduler;
    const uint32_t worker_index = gpsti_scheduler_worker_index(scheduler);
    /* A signal handler may set `cancel` and cannot wake a thread: look at it every 50 ms. */
    const int64_t look_ns = gpsti_now_ns() + 50 * (int64_t)1000000;
    const int64_t until_ns = deadline_ns < look_ns ? deadline_ns : look_ns;
    gpsti_threads_notice(pipeline);
    pipeline->threads->n_waiters++;
    if (worker_index < scheduler->n_workers && pipeline->threads->has_workers)
        gpsti_scheduler_help(locked, &pipeline->client, worker_index, until_ns);
    else {
        const bool worked = gpsti_work_rests(locked);
        if (pipeline->threads->has_workers ||
            !gpsti_threads_has_work(locked, &pipeline->client)) /* which its rest may bring */
            gpsti_cond_wait_until(&pipeline->threads->progress, &scheduler->mutex, until_ns);
        gpsti_work_goes_on(locked, worked);
    }
    pipeline->threads->n_waiters--;
    gpsti_threads_notice(pipeline);
}

/* A block for the guard: the engine is empty, and this thread runs items plain while no worker takes any. Unlocked
   while the items run. */
GPSTI_PRIVATE void gpsti_threads_run_block(gpsti_locked locked, gpst_pipeline* pipeline) {
    const gpsti_item_counts* const ended = &pipeline->counts.items;
    const uint64_t n_before = ended->ok + ended->failed;
    const int64_t start_ns = gpsti_now_ns();
    gpsti_a32_store(&pipeline->signals.open, 0);
    pipeline->client.begin_ns = GPST_FOREVER;
    gpsti_unlock(locked);
    gpsti_threads_run_plain(pipeline, pipeline->tune->block_items);
    (void)gpsti_lock(pipeline->context);
    gpsti_a32_store(&pipeline->signals.open, 1);
    pipeline->client.begin_ns = 0;
    gpsti_tune_end_block(pipeline, ended->ok + ended->failed - n_before, gpsti_now_ns() - start_ns);
    gpsti_scheduler_wake(locked);
}

/* In a plain loop an item that waited may go on. */
GPSTI_INTERN void gpsti_threads_wait_end(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_threads_notice(pipeline);
    while (!gpsti_items_are_over(pipeline))
        if (gpsti_tune_wants_block(pipeline))
            gpsti_threads_run_block(locked, pipeline);
        else if (!pipeline->threads->has_workers && gpsti_threads_has_work(locked, &pipeline->client)) {
            gpsti_unlock(locked);
            gpsti_threads_run_plain(pipeline, UINT64_MAX);
            (void)gpsti_lock(pipeline->context);
        } else
            gpsti_threads_wait(locked, pipeline, GPST_FOREVER);
}

/* A replaced file was closed. Freeing it keeps the disk busy that the run writes to. */
GPSTI_INTERN void gpsti_threads_file_closed(void* user_data, int64_t start_ns, int64_t end_ns) {
    gpst_pipeline* const pipeline = (gpst_pipeline*)user_data;
    gpsti_counts* const counts = &pipeline->counts;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    if (gpsti_items_n_under_way(pipeline) == 0 && end_ns > counts->end_ns)
        end_ns = counts->end_ns;
    gpsti_busy_add(&counts->busy[GPST_RESOURCE_DISK_OUT], start_ns, end_ns);
    gpsti_unlock(locked);
}
