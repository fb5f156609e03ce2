/* core/pipeline/push.c -- push mode: submit from any thread, results, and the policies when every slot is taken. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

static GPSTI_TLS char gpsti_push_thread; /* its address is the thread's */

GPSTI_PRIVATE gpst_result gpsti_push_check(gpst_pipeline* pipeline, const char* function) {
    GPSTI_FAIL_IF(!pipeline, GPST_ERROR_ARGUMENT, "%s: pipeline=NULL: required", function);
    GPSTI_TRY(gpsti_context_check(pipeline->context, function));
    GPSTI_FAIL_IF(pipeline->plan.desc.source, GPST_ERROR_STATE, "%s: the pipeline has a source: it pulls", function);
    return GPST_OK;
}

/* The time-out has passed: WOULD_BLOCK where it was 0, else TIMEOUT. */
GPSTI_PRIVATE gpst_result gpsti_push_too_late(const char* function, int64_t timeout_ns) {
    return gpsti_fail(timeout_ns <= 0 ? GPST_ERROR_WOULD_BLOCK : GPST_ERROR_TIMEOUT,
                      "%s: timeout_ns=%lld: nothing became free in time", function, (long long)timeout_ns);
}

/* As many results as there are slots wait to be taken. */
GPSTI_PRIVATE bool gpsti_push_has_untaken(const gpst_pipeline* pipeline) {
    return pipeline->items.lists[GPSTI_ITEM_RESULT].n >= pipeline->items.n_slots;
}

/* What is missing, a slot or memory, is there when somebody takes a result, and not before; and this is the thread that
   takes them. */
GPSTI_PRIVATE bool gpsti_push_waits_for_itself(gpsti_locked locked, const gpst_pipeline* pipeline) {
    const gpsti_item_list* const lists = pipeline->items.lists;
    const bool still = gpsti_items_n_under_way(pipeline) == 0 || gpsti_grants_wait_for_user(locked, pipeline);
    return pipeline->threads->taker == &gpsti_push_thread && lists[GPSTI_ITEM_RESULT].n > 0 &&
           (gpsti_push_has_untaken(pipeline) || (still && lists[GPSTI_ITEM_HELD].n == 0));
}

/* No slot was free in time, or this thread would wait for itself; or results, taken or not, have what is missing. */
GPSTI_PRIVATE gpst_result gpsti_push_no_room(const gpst_pipeline* pipeline, int64_t timeout_ns, bool by_itself) {
    const gpsti_item_list* const lists = pipeline->items.lists;
    const uint32_t held = lists[GPSTI_ITEM_HELD].n, untaken = lists[GPSTI_ITEM_RESULT].n;
    const gpst_result late = timeout_ns <= 0 || by_itself ? GPST_ERROR_WOULD_BLOCK : GPST_ERROR_TIMEOUT;
    if (gpsti_push_has_untaken(pipeline))
        return gpsti_fail(late, "gpst_pipeline_submit: timeout_ns=%lld: n_slots=%u: %u results wait to be taken%s",
                          (long long)timeout_ns, pipeline->items.n_slots, untaken,
                          by_itself ? ", by this thread as before" : "");
    if (held + untaken == 0 || gpsti_items_n_under_way(pipeline) >= pipeline->items.n_slots)
        return gpsti_push_too_late("gpst_pipeline_submit", timeout_ns);
    return gpsti_fail(late,
                      "gpst_pipeline_submit: timeout_ns=%lld: no memory became free in time: max_host_bytes=%llu, "
                      "max_device_bytes=%llu, and %u results are held, %u wait to be taken",
                      (long long)timeout_ns, (unsigned long long)pipeline->context->info.max_host_bytes,
                      (unsigned long long)pipeline->context->info.max_device_bytes, held, untaken);
}

/* Makes room as the policy says. OK: an item is free; DROPPED: the new item is dropped. */
GPSTI_PRIVATE gpst_result gpsti_push_make_room(gpsti_locked locked, gpst_pipeline* pipeline, const gpst_input* input,
                                               int64_t timeout_ns, int64_t deadline_ns) {
    const gpst_full_policy policy = pipeline->plan.desc.full_policy;
    for (;;) {
        gpsti_threads_notice(pipeline);
        GPSTI_FAIL_IF(pipeline->threads->closed, GPST_ERROR_CLOSED, "gpst_pipeline_submit: the pipeline is closed");
        const bool full = !gpsti_items_may_begin(locked, pipeline);
        if (!full && !pipeline->threads->source_running)
            return GPST_OK;
        if (full && !gpsti_push_has_untaken(pipeline) && policy >= GPST_FULL_DROP_OLDEST &&
            gpsti_queue_drop_oldest(locked, pipeline, input->camera, input->priority,
                                    "every slot was taken: a newer one came")) {
            gpsti_items_tell_dropped(locked, pipeline);
            continue;
        }
        if (full && policy != GPST_FULL_BLOCK)
            return GPST_DROPPED;
        /* Another load is over soon, unless it waits for memory; from a callback nothing is waited for. */
        const bool only_load = !full && pipeline->items.lists[GPSTI_ITEM_LOADS].n > 0 && !gpsti_call_inside(pipeline);
        if (full && gpsti_push_waits_for_itself(locked, pipeline))
            return gpsti_push_no_room(pipeline, timeout_ns, true);
        if (!only_load && gpsti_now_ns() >= deadline_ns)
            return gpsti_push_no_room(pipeline, timeout_ns, false);
        gpsti_threads_wait(locked, pipeline, only_load ? GPST_FOREVER : deadline_ns);
    }
}

/* The new item is dropped: no item has it. Unlocked while it is told. */
GPSTI_PRIVATE void gpsti_push_refuse(gpsti_locked locked, gpst_pipeline* pipeline, const gpst_input* input) {
    const bool held = gpsti_items_n_under_way(pipeline) < pipeline->items.n_slots;
    gpst_item item = GPST_ZERO;
    item.index = UINT64_MAX;
    item.path = input->path;
    item.name = input->name && input->name[0] ? input->name : input->path ? input->path : "";
    item.timestamp_ns = input->timestamp_ns;
    item.camera = input->camera;
    item.priority = input->priority;
    item.user_data = input->user_data;
    item.decoder = item.encoder = item.note = "";
    item.stage = "submit";
    item.result = GPST_DROPPED;
    item.reason = gpsti_push_has_untaken(pipeline) ? "as many results as there are slots (n_slots) wait to be taken"
                  : held                           ? "others have the memory"
                                                   : "every slot (n_slots) is taken, and nothing waits";
    item.start_ns = item.end_ns = gpsti_now_ns();
    pipeline->counts.items.dropped++;
    pipeline->counts.items_refused++;
    pipeline->items.cameras[input->camera].items.dropped++;
    pipeline->items.cameras[input->camera].n_items++; /* a stateful stage has missed it, too */
    gpsti_unlock(locked);
    gpsti_call_dropped(pipeline, &item);
    if (input->release)
        gpsti_call_release(pipeline, input->release, input->release_user_data);
    (void)gpsti_lock(pipeline->context);
}

/* Copies the input into an item and queues it. One load at a time, so that indexes follow the order of the calls.
   Unlocked while it copies. */
GPSTI_PRIVATE gpst_result gpsti_push_load(gpsti_locked locked, gpst_pipeline* pipeline, const gpst_input* input,
                                          int64_t deadline_ns, uint64_t* index) {
    gpsti_counts* const counts = &pipeline->counts;
    gpsti_item* const item = gpsti_items_take(locked, pipeline);
    gpsti_core_use use = GPST_ZERO;
    GPSTI_FAIL_IF(!item, GPST_ERROR_MEMORY, "gpst_pipeline_submit: no memory for another slot");
    pipeline->threads->source_running = true;
    gpsti_unlock(locked);
    if (pipeline->items.next_index == 0)
        gpsti_core_use_query_under(pipeline->context->system_root, &use);
    gpsti_item_reset(item, pipeline->items.next_index, gpsti_now_ns());
    item->given.until_ns = deadline_ns;
    const gpst_result result = gpsti_item_load(item, input, "gpst_pipeline_submit");
    (void)gpsti_lock(pipeline->context);
    pipeline->threads->source_running = false;
    gpsti_items_wake_waiters(locked, pipeline); /* other loads may go on */
    if (GPST_FAILED(result)) {
        item->given.borrowed = false; /* the frame stays the caller's */
        gpsti_items_put(locked, item);
        gpsti_scheduler_wake(locked);
        return result;
    }
    if (index)
        *index = pipeline->items.next_index;
    pipeline->items.next_index++;
    counts->use_start = counts->start_ns > 0 ? counts->use_start : use;
    counts->start_ns = counts->start_ns > 0 ? counts->start_ns : item->shown.start_ns;
    gpsti_items_begin(locked, item);
    gpsti_items_tell_dropped(locked, pipeline);
    return GPST_OK;
}

GPST_API gpst_result gpst_pipeline_submit(gpst_pipeline* pipeline, const gpst_input* input, int64_t timeout_ns,
                                          uint64_t* index) {
    GPSTI_TRY(gpsti_push_check(pipeline, "gpst_pipeline_submit"));
    GPSTI_FAIL_IF(!input, GPST_ERROR_ARGUMENT, "gpst_pipeline_submit: input=NULL: required");
    GPSTI_FAIL_IF(input->camera >= GPST_MAX_CAMERAS, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_submit: input.camera=%u: must be below GPST_MAX_CAMERAS=%d", input->camera,
                  GPST_MAX_CAMERAS);
    const gpsti_locked locked = gpsti_threads_enter(pipeline);
    (void)gpsti_queue_camera(locked, pipeline, input->camera);
    timeout_ns = gpsti_call_inside(pipeline) ? 0 : timeout_ns;
    const int64_t deadline_ns = gpsti_deadline(timeout_ns);
    gpst_result result = gpsti_push_make_room(locked, pipeline, input, timeout_ns, deadline_ns);
    if (result == GPST_OK) {
        result = gpsti_push_load(locked, pipeline, input, deadline_ns, index);
        if (result == GPST_ERROR_WOULD_BLOCK) /* no memory for the copy */
            result = pipeline->plan.desc.full_policy == GPST_FULL_BLOCK
                         ? gpsti_push_no_room(pipeline, timeout_ns, false)
                         : GPST_DROPPED;
    }
    if (result == GPST_DROPPED)
        gpsti_push_refuse(locked, pipeline, input);
    gpsti_threads_leave(locked, pipeline);
    return result;
}

/* No result will ever come: the pipeline is closed, and the user holds every item in flight. */
GPSTI_PRIVATE bool gpsti_push_exhausted(const gpst_pipeline* pipeline) {
    return pipeline->threads->closed && gpsti_ends_are_over(pipeline) && !pipeline->threads->source_running &&
           gpsti_a32_load(&pipeline->items.in_flight) == pipeline->items.lists[GPSTI_ITEM_HELD].n;
}

/* Results that are held have what items need, those in flight or the next one of a stage's end. */
GPSTI_PRIVATE bool gpsti_push_is_held_up(gpsti_locked locked, const gpst_pipeline* pipeline) {
    const bool has_ends = pipeline->threads->closed && !gpsti_ends_are_over(pipeline);
    return pipeline->items.lists[GPSTI_ITEM_HELD].n > 0 &&
           (gpsti_grants_wait_for_user(locked, pipeline) ||
            (has_ends && gpsti_items_n_under_way(pipeline) == 0 && !gpsti_items_may_begin(locked, pipeline) &&
             gpsti_scheduler_is_quiet(locked)));
}

GPSTI_PRIVATE gpst_result gpsti_push_take_result(gpsti_locked locked, gpst_pipeline* pipeline, int64_t timeout_ns,
                                                 const gpst_item** out) {
    const char* const function = "gpst_pipeline_next_result";
    const int64_t deadline_ns = gpsti_deadline(timeout_ns);
    const gpsti_item_list* const lists = pipeline->items.lists;
    while (lists[GPSTI_ITEM_RESULT].n == 0) {
        gpsti_threads_notice(pipeline);
        if (gpsti_push_exhausted(pipeline))
            return GPST_END;
        GPSTI_FAIL_IF(
            gpsti_push_is_held_up(locked, pipeline), GPST_ERROR_BUDGET,
            "%s: %u results are held, and leave no memory for the next: max_host_bytes=%llu, max_device_bytes=%llu",
            function, lists[GPSTI_ITEM_HELD].n, (unsigned long long)pipeline->context->info.max_host_bytes,
            (unsigned long long)pipeline->context->info.max_device_bytes);
        if (gpsti_now_ns() >= deadline_ns)
            return gpsti_push_too_late(function, timeout_ns);
        gpsti_threads_wait(locked, pipeline, deadline_ns);
    }
    gpsti_item* const item = lists[GPSTI_ITEM_RESULT].first;
    gpsti_item_enter(locked, item, GPSTI_ITEM_HELD);
    pipeline->threads->taker = &gpsti_push_thread;
    gpsti_items_time_full(pipeline);
    gpsti_items_wake_waiters(locked, pipeline);
    gpsti_scheduler_wake(locked); /* one result fewer waits: a stage may have its next one */
    *out = &item->shown;
    return GPST_OK;
}

GPST_API gpst_result gpst_pipeline_next_result(gpst_pipeline* pipeline, int64_t timeout_ns, const gpst_item** out) {
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_push_check(pipeline, "gpst_pipeline_next_result"));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_pipeline_next_result: out=NULL: required");
    GPSTI_FAIL_IF(pipeline->plan.desc.sink, GPST_ERROR_STATE, "gpst_pipeline_next_result: results go to the sink");
    GPSTI_FAIL_IF(gpsti_call_inside(pipeline), GPST_ERROR_REENTRANT,
                  "gpst_pipeline_next_result: not from a callback of the same pipeline");
    const gpsti_locked locked = gpsti_threads_enter(pipeline);
    const gpst_result result = gpsti_push_take_result(locked, pipeline, timeout_ns, out);
    gpsti_threads_leave(locked, pipeline);
    return result;
}

/* The item is the user's no more; false: it is not, and the log says so. From now on a destroy waits for it. */
GPSTI_PRIVATE bool gpsti_push_take_back(gpst_pipeline* pipeline, const gpst_item* shown, gpsti_item_state until,
                                        const char* function) {
    gpsti_item* const item = (gpsti_item*)(uintptr_t)shown;
    uint32_t in_sink = GPSTI_IN_SINK;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    const bool held = item->pipeline == pipeline && item->state == GPSTI_ITEM_HELD;
    if (held)
        gpsti_item_enter(locked, item, until);
    const bool taken = held || (item->pipeline == pipeline && gpsti_a32_cas(&item->keeping, &in_sink, GPSTI_RELEASED));
    gpsti_unlock(locked);
    if (!taken)
        GPSTI_LOG(&pipeline->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
                  "%s: item=%p: not handed out, or released already; ignored", function, (const void*)shown);
    return taken;
}

GPST_API void gpst_pipeline_release(gpst_pipeline* pipeline, const gpst_item* item) {
    if (!pipeline || !item || GPST_FAILED(gpsti_context_check(pipeline->context, "gpst_pipeline_release")))
        return;
    if (gpsti_push_take_back(pipeline, item, GPSTI_ITEM_RUNS, "gpst_pipeline_release"))
        gpsti_items_release((gpsti_item*)(uintptr_t)item);
}

/* On the device's thread. */
GPSTI_PRIVATE void gpsti_push_stream_came(void* user_data, gpst_result result) {
    (void)result; /* whatever became of it, it is over */
    gpsti_items_release((gpsti_item*)user_data);
}

GPST_API gpst_result gpst_pipeline_release_after(gpst_pipeline* pipeline, const gpst_item* item, gpst_stream* stream) {
    const char* function = "gpst_pipeline_release_after";
    gpsti_item* const held = (gpsti_item*)(uintptr_t)item;
    GPSTI_FAIL_IF(!pipeline, GPST_ERROR_ARGUMENT, "%s: pipeline=NULL: required", function);
    GPSTI_TRY(gpsti_context_check(pipeline->context, function));
    GPSTI_FAIL_IF(!item, GPST_ERROR_ARGUMENT, "%s: item=NULL: required", function);
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(!gpsti_push_take_back(pipeline, item, GPSTI_ITEM_DEVICE, function), GPST_ERROR_ARGUMENT,
                  "%s: item=%p: not handed out, or released already", function, (const void*)item);
    const gpst_result result = stream->device->info.asynchronous
                                   ? gpsti_stream_notify(stream, gpsti_push_stream_came, held)
                                   : gpsti_stream_wait_idle(stream);
    if (GPST_FAILED(result) || !stream->device->info.asynchronous)
        gpsti_items_release(held);
    return gpsti_device_result(result, function);
}

GPST_API void gpst_pipeline_close(gpst_pipeline* pipeline) {
    if (!pipeline || GPST_FAILED(gpsti_context_check(pipeline->context, "gpst_pipeline_close")))
        return;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    pipeline->threads->closed = true;
    gpsti_items_wake_waiters(locked, pipeline);
    gpsti_scheduler_wake(locked); /* stages may have more items */
    gpsti_unlock(locked);
}

GPST_API gpst_result gpst_pipeline_drain(gpst_pipeline* pipeline, int64_t timeout_ns) {
    GPSTI_TRY(gpsti_push_check(pipeline, "gpst_pipeline_drain"));
    GPSTI_FAIL_IF(gpsti_call_inside(pipeline), GPST_ERROR_REENTRANT,
                  "gpst_pipeline_drain: not from a callback of the same pipeline");
    const int64_t deadline_ns = gpsti_deadline(timeout_ns);
    gpst_result result = GPST_OK;
    const gpsti_locked locked = gpsti_threads_enter(pipeline);
    gpsti_threads_notice(pipeline);
    while (result == GPST_OK && ((pipeline->plan.desc.sink ? gpsti_items_n_under_way(pipeline)
                                                           : gpsti_a32_load(&pipeline->items.in_flight)) > 0 ||
                                 (pipeline->threads->closed && !gpsti_ends_are_over(pipeline)))) {
        if (gpsti_items_n_under_way(pipeline) == 0 && gpsti_push_waits_for_itself(locked, pipeline))
            result = gpsti_fail(GPST_ERROR_WOULD_BLOCK,
                                "gpst_pipeline_drain: %u results wait to be taken, by this thread as before",
                                pipeline->items.lists[GPSTI_ITEM_RESULT].n);
        else if (gpsti_now_ns() >= deadline_ns)
            result = gpsti_push_too_late("gpst_pipeline_drain", timeout_ns);
        else
            gpsti_threads_wait(locked, pipeline, deadline_ns);
    }
    gpsti_threads_leave(locked, pipeline);
    return result;
}
