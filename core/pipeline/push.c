/* core/pipeline/push.c -- push mode: submit from any thread, results, and the policies when every slot is taken. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

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

GPSTI_PRIVATE bool gpsti_push_can_load(const gpst_pipeline* pipeline) {
    return gpsti_flight_has_slot(pipeline) && !pipeline->flow.source_running;
}

/* As many results as there are slots wait to be taken. Locked. */
GPSTI_PRIVATE bool gpsti_push_has_untaken(const gpst_pipeline* pipeline) {
    return pipeline->results.n_untaken >= pipeline->items.n_slots;
}

/* What is missing, a slot or memory, is there when somebody takes a result, and not before; and this is the thread that
   takes them. Locked. */
GPSTI_PRIVATE bool gpsti_push_waits_for_itself(const gpst_pipeline* pipeline) {
    return pipeline->results.taker == &gpsti_push_thread && pipeline->results.n_untaken > 0 &&
           gpsti_flight_n_under_way(pipeline) < pipeline->items.n_slots &&
           (gpsti_push_has_untaken(pipeline) || pipeline->results.n_handed_out == 0);
}

/* No slot was free in time, or this thread would wait for itself; or results, taken or not, have what is missing.
   Locked. */
GPSTI_PRIVATE gpst_result gpsti_push_no_room(const gpst_pipeline* pipeline, int64_t timeout_ns, bool by_itself) {
    const uint32_t held = pipeline->results.n_handed_out, untaken = pipeline->results.n_untaken;
    const gpst_result late = timeout_ns <= 0 || by_itself ? GPST_ERROR_WOULD_BLOCK : GPST_ERROR_TIMEOUT;
    if (gpsti_push_has_untaken(pipeline))
        return gpsti_fail(late, "gpst_pipeline_submit: timeout_ns=%lld: n_slots=%u: %u results wait to be taken%s",
                          (long long)timeout_ns, pipeline->items.n_slots, untaken,
                          by_itself ? ", by this thread as before" : "");
    if (held + untaken == 0 || gpsti_flight_n_under_way(pipeline) >= pipeline->items.n_slots)
        return gpsti_push_too_late("gpst_pipeline_submit", timeout_ns);
    return gpsti_fail(late,
                      "gpst_pipeline_submit: timeout_ns=%lld: no memory became free in time: max_host_bytes=%llu, "
                      "max_device_bytes=%llu, and %u results are held, %u wait to be taken",
                      (long long)timeout_ns, (unsigned long long)pipeline->context->info.max_host_bytes,
                      (unsigned long long)pipeline->context->info.max_device_bytes, held, untaken);
}

/* Makes room as the policy says. OK: a slot is free; DROPPED: the new item is dropped. Locked. */
GPSTI_PRIVATE gpst_result gpsti_push_make_room(gpst_pipeline* pipeline, const gpst_input* input, int64_t timeout_ns) {
    const int64_t deadline_ns = gpsti_deadline(timeout_ns);
    const gpst_full_policy policy = pipeline->plan.desc.full_policy;
    for (;;) {
        gpsti_flight_notice(pipeline);
        GPSTI_FAIL_IF(pipeline->flow.closed, GPST_ERROR_CLOSED, "gpst_pipeline_submit: the pipeline is closed");
        if (gpsti_push_can_load(pipeline))
            return GPST_OK;
        const bool full = !gpsti_flight_has_slot(pipeline);
        if (full && !gpsti_push_has_untaken(pipeline) && policy >= GPST_FULL_DROP_OLDEST &&
            gpsti_queue_drop_oldest(pipeline, input->camera, input->priority,
                                    "every slot was taken: a newer one came")) {
            gpsti_flight_tell_dropped(pipeline);
            continue;
        }
        if (full && policy != GPST_FULL_BLOCK)
            return GPST_DROPPED;
        /* Another load is over soon: it is waited for as the copy itself is, but from a callback nothing is. */
        const bool only_load = !full && !gpsti_call_inside(pipeline);
        if (full && gpsti_push_waits_for_itself(pipeline))
            return gpsti_push_no_room(pipeline, timeout_ns, true);
        if (!only_load && gpsti_now_ns() >= deadline_ns)
            return gpsti_push_no_room(pipeline, timeout_ns, false);
        gpsti_flow_wait(pipeline, only_load ? GPST_FOREVER : deadline_ns);
    }
}

/* The new item is dropped: it never had a slot. Locked, but not while it is told. */
GPSTI_PRIVATE void gpsti_push_refuse(gpst_pipeline* pipeline, const gpst_input* input) {
    const bool held = gpsti_flight_n_under_way(pipeline) < pipeline->items.n_slots;
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
                  : held                           ? "results that are held have the memory"
                                                   : "every slot (n_slots) is taken, and nothing waits";
    item.start_ns = item.end_ns = gpsti_now_ns();
    pipeline->counts.items.dropped++;
    pipeline->counts.items_refused++;
    pipeline->items.cameras[input->camera].items.dropped++;
    pipeline->items.cameras[input->camera].n_items++; /* a stateful stage has missed it, too */
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    gpsti_call_dropped(pipeline, &item);
    if (input->release)
        gpsti_call_release(pipeline, input->release, input->release_user_data);
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
}

/* Copies the input into a slot and queues it. One load at a time, so that indexes follow the order of the calls.
   Locked, but not while it copies. */
GPSTI_PRIVATE gpst_result gpsti_push_load(gpst_pipeline* pipeline, const gpst_input* input, uint64_t* index) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_item* const item = gpsti_flight_take_slot(pipeline);
    gpsti_core_use use = GPST_ZERO;
    GPSTI_FAIL_IF(!item, GPST_ERROR_MEMORY, "gpst_pipeline_submit: no memory for another slot");
    pipeline->flow.source_running = true;
    (void)gpsti_a32_add(&pipeline->flow.n_parked, 1);
    gpsti_mutex_unlock(&scheduler->mutex);
    if (pipeline->items.next_index == 0)
        gpsti_core_use_query_under(pipeline->context->system_root, &use);
    gpsti_item_reset(item, pipeline->items.next_index, gpsti_now_ns());
    const gpst_result result = gpsti_item_load(item, input, "gpst_pipeline_submit");
    gpsti_mutex_lock(&scheduler->mutex);
    (void)gpsti_a32_add(&pipeline->flow.n_parked, UINT32_MAX);
    pipeline->flow.source_running = false;
    if (GPST_FAILED(result)) {
        item->borrowed = false; /* the frame stays the caller's */
        gpsti_flight_release_slot(item);
        gpsti_scheduler_wake(scheduler); /* an item that lacks memory may begin when no load is under way */
        return result;
    }
    if (index)
        *index = pipeline->items.next_index;
    pipeline->items.next_index++;
    pipeline->counts.use_start = pipeline->counts.start_ns > 0 ? pipeline->counts.use_start : use;
    pipeline->counts.start_ns = pipeline->counts.start_ns > 0 ? pipeline->counts.start_ns : item->shown.start_ns;
    gpsti_flight_wake_waiters(pipeline); /* other loads may go on */
    gpsti_flight_begin(item);
    gpsti_flight_tell_dropped(pipeline);
    return GPST_OK;
}

GPST_API gpst_result gpst_pipeline_submit(gpst_pipeline* pipeline, const gpst_input* input, int64_t timeout_ns,
                                          uint64_t* index) {
    GPSTI_TRY(gpsti_push_check(pipeline, "gpst_pipeline_submit"));
    GPSTI_FAIL_IF(!input, GPST_ERROR_ARGUMENT, "gpst_pipeline_submit: input=NULL: required");
    GPSTI_FAIL_IF(input->camera >= GPST_MAX_CAMERAS, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_submit: input.camera=%u: must be below GPST_MAX_CAMERAS=%d", input->camera,
                  GPST_MAX_CAMERAS);
    gpsti_flight_enter(pipeline);
    (void)gpsti_queue_camera(pipeline, input->camera);
    gpst_result result = gpsti_push_make_room(pipeline, input, gpsti_call_inside(pipeline) ? 0 : timeout_ns);
    if (result == GPST_OK)
        result = gpsti_push_load(pipeline, input, index);
    else if (result == GPST_DROPPED)
        gpsti_push_refuse(pipeline, input);
    gpsti_flight_leave(pipeline);
    return result;
}

/* No result will ever come: the pipeline is closed, and the user holds every item in flight. Locked. */
GPSTI_PRIVATE bool gpsti_push_exhausted(const gpst_pipeline* pipeline) {
    return pipeline->flow.closed && !pipeline->flow.source_running &&
           gpsti_a32_load(&pipeline->items.in_flight) == pipeline->results.n_handed_out;
}

GPSTI_PRIVATE gpst_result gpsti_push_take_result(gpst_pipeline* pipeline, int64_t timeout_ns, const gpst_item** out) {
    const int64_t deadline_ns = gpsti_deadline(timeout_ns);
    while (!pipeline->results.first_result) {
        gpsti_flight_notice(pipeline);
        if (gpsti_push_exhausted(pipeline))
            return GPST_END;
        if (gpsti_now_ns() >= deadline_ns)
            return gpsti_push_too_late("gpst_pipeline_next_result", timeout_ns);
        gpsti_flow_wait(pipeline, deadline_ns);
    }
    gpsti_item* const item = pipeline->results.first_result;
    pipeline->results.first_result = item->next;
    if (!pipeline->results.first_result)
        pipeline->results.last_result = NULL;
    pipeline->results.n_untaken--;
    pipeline->results.taker = &gpsti_push_thread;
    item->next = pipeline->results.handed_out;
    pipeline->results.handed_out = item;
    pipeline->results.n_handed_out++;
    gpsti_flight_time_full(pipeline);
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
    gpsti_flight_enter(pipeline);
    const gpst_result result = gpsti_push_take_result(pipeline, timeout_ns, out);
    gpsti_flight_leave(pipeline);
    return result;
}

/* The item is the user's no more; false: it is not, and the log says so. */
GPSTI_PRIVATE bool gpsti_push_take_back(gpst_pipeline* pipeline, gpsti_item* item, const char* function) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_item** at = &pipeline->results.handed_out;
    while (*at && *at != item)
        at = &(*at)->next;
    const bool handed_out = *at != NULL;
    if (handed_out)
        *at = item->next;
    pipeline->results.n_handed_out -= handed_out ? 1 : 0; /* from now on a destroy waits for it */
    gpsti_mutex_unlock(&scheduler->mutex);
    if (!handed_out)
        GPSTI_LOG(&pipeline->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
                  "%s: item=%p: not handed out, or released already; ignored", function, (const void*)item);
    return handed_out;
}

/* Its memory is free for the next item. Not locked. */
GPSTI_PRIVATE void gpsti_push_free(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_item_release_frame(item);
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_flight_release_slot(item);
    gpsti_mutex_unlock(&scheduler->mutex);
}

GPST_API void gpst_pipeline_release(gpst_pipeline* pipeline, const gpst_item* item) {
    gpsti_item* const held = (gpsti_item*)(uintptr_t)item;
    if (!pipeline || !item || GPST_FAILED(gpsti_context_check(pipeline->context, "gpst_pipeline_release")))
        return;
    if (gpsti_push_take_back(pipeline, held, "gpst_pipeline_release"))
        gpsti_push_free(held);
}

/* Called on the device's thread. */
GPSTI_PRIVATE void gpsti_push_stream_came(void* user_data, gpst_result result) {
    (void)result; /* whatever became of it, it is over */
    gpsti_push_free((gpsti_item*)user_data);
}

GPST_API gpst_result gpst_pipeline_release_after(gpst_pipeline* pipeline, const gpst_item* item, gpst_stream* stream) {
    const char* function = "gpst_pipeline_release_after";
    gpsti_item* const held = (gpsti_item*)(uintptr_t)item;
    GPSTI_TRY(gpsti_push_check(pipeline, function));
    GPSTI_FAIL_IF(!item, GPST_ERROR_ARGUMENT, "%s: item=NULL: required", function);
    GPSTI_TRY(gpsti_stream_check(stream, function));
    GPSTI_FAIL_IF(!gpsti_push_take_back(pipeline, held, function), GPST_ERROR_ARGUMENT,
                  "%s: item=%p: not handed out, or released already", function, (const void*)item);
    const gpst_result result = stream->device->info.asynchronous
                                   ? gpsti_stream_notify(stream, gpsti_push_stream_came, held)
                                   : gpsti_stream_wait_idle(stream);
    if (GPST_FAILED(result) || !stream->device->info.asynchronous)
        gpsti_push_free(held);
    return gpsti_device_result(result, function);
}

GPST_API void gpst_pipeline_close(gpst_pipeline* pipeline) {
    if (!pipeline || GPST_FAILED(gpsti_context_check(pipeline->context, "gpst_pipeline_close")))
        return;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    pipeline->flow.closed = true;
    gpsti_flight_wake_waiters(pipeline);
    gpsti_mutex_unlock(&scheduler->mutex);
}

GPST_API gpst_result gpst_pipeline_drain(gpst_pipeline* pipeline, int64_t timeout_ns) {
    GPSTI_TRY(gpsti_push_check(pipeline, "gpst_pipeline_drain"));
    GPSTI_FAIL_IF(gpsti_call_inside(pipeline), GPST_ERROR_REENTRANT,
                  "gpst_pipeline_drain: not from a callback of the same pipeline");
    const int64_t deadline_ns = gpsti_deadline(timeout_ns);
    gpst_result result = GPST_OK;
    gpsti_flight_enter(pipeline);
    while (gpsti_a32_load(&pipeline->items.in_flight) > 0 && result == GPST_OK) {
        if (gpsti_flight_n_under_way(pipeline) == 0 && gpsti_push_waits_for_itself(pipeline))
            result = gpsti_fail(GPST_ERROR_WOULD_BLOCK,
                                "gpst_pipeline_drain: %u results wait to be taken, by this thread as before",
                                pipeline->results.n_untaken);
        else if (gpsti_now_ns() >= deadline_ns)
            result = gpsti_push_too_late("gpst_pipeline_drain", timeout_ns);
        else
            gpsti_flow_wait(pipeline, deadline_ns);
    }
    gpsti_flight_leave(pipeline);
    return result;
}
