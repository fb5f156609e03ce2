/* core/steps/call.c -- calls the user's source, stages and sink and takes their failures' sentences. Runs without the
   lock. */
#include "../base/platform_internal.h"

#include "engines_internal.h"

#include <string.h>

/* The sentence that the failed callback has set, or NULL: the thread's serial counts sentences. */
GPSTI_PRIVATE const char* gpsti_call_reason(gpst_result result, uint64_t serial) {
    return GPST_FAILED(result) && gpsti_fail_serial() != serial ? gpst_last_reason() : NULL;
}

/* What else is positive says nothing of an item: it would be lost without a word. */
GPSTI_PRIVATE gpst_result gpsti_call_check(const gpst_pipeline* pipeline, gpst_result result, const char* what) {
    if (result == GPST_ERROR_CANCELLED &&
        !gpsti_a32_load(&pipeline->signals.cancel)) /* the item's own, as of a job inside */
        return gpsti_fail(GPST_ERROR_CALLBACK, "%s returned GPST_ERROR_CANCELLED, and the pipeline is not", what);
    if (result <= GPST_OK || result == GPST_SKIPPED)
        return result;
    return gpsti_fail(GPST_ERROR_CALLBACK, "%s returned %s: must be GPST_OK, GPST_SKIPPED or negative", what,
                      gpst_result_name(result));
}

/* The sets that a function has to set are there, and no picture of them is missing. */
GPSTI_PRIVATE gpst_result gpsti_call_check_sets(const gpsti_item* item, uint32_t stage_index, uint32_t part) {
    const gpsti_plan* const plan = &item->pipeline->plan;
    const bool per_picture = plan->stages[stage_index].desc.per_picture;
    for (uint32_t k = 0; k < plan->n_sets; k++) {
        const gpsti_set_plan* const its = &plan->sets[k];
        const gpsti_set* const set = &item->sets[k];
        const uint32_t end = per_picture ? part + 1 : set->n;
        if (its->writer != stage_index || !its->is_required)
            continue;
        GPSTI_FAIL_IF(set->n == 0 && its->capacity == 1, GPST_ERROR_STATE,
                      "set %u was never set: the stage writes it (gpst_task_set_picture); none is no failure where "
                      "desc.capacity[%u] is above 1",
                      k, k);
        for (uint32_t i = per_picture ? part : 0; i < end; i++)
            GPSTI_FAIL_IF(set->on_host[i].width == 0, GPST_ERROR_STATE, "set %u: picture %u of %u was never set", k, i,
                          set->n);
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_call_source(gpst_pipeline* pipeline, uint64_t index, gpst_input* out,
                                           const char** reason) {
    gpsti_call call;
    memset(out, 0, sizeof *out);
    const uint64_t serial = gpsti_fail_serial();
    gpsti_call_enter(&call, pipeline, NULL);
    gpst_result result = pipeline->plan.desc.source(pipeline->plan.desc.source_user_data, index, out);
    gpsti_call_leave();
    if (result != GPST_END)
        result = gpsti_call_check(pipeline, result, "the source");
    *reason = gpsti_call_reason(result, serial);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_call_worker_state(gpsti_stage* stage, uint32_t worker_index, void** out) {
    *out = stage->worker_states[worker_index];
    if (stage->worker_started[worker_index] || !stage->desc.worker_init)
        return GPST_OK;
    GPSTI_TRY(stage->desc.worker_init(stage->desc.user_data, worker_index, out));
    stage->worker_states[worker_index] = *out;
    stage->worker_started[worker_index] = true;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_call_worker_terms(gpst_pipeline* pipeline, gpsti_stage* stage) {
    gpsti_call call;
    gpsti_call_enter(&call, pipeline, NULL);
    for (uint32_t w = 0; stage->worker_started && stage->desc.worker_term && w < pipeline->plan.n_workers + 1; w++)
        if (stage->worker_started[w])
            stage->desc.worker_term(stage->desc.user_data, w, stage->worker_states[w]);
    gpsti_call_leave();
}

GPSTI_PRIVATE gpst_result gpsti_call_service(gpsti_stage* stage, gpst_task* task) {
    if (stage->desc.kind == GPST_STAGE_DECODE)
        return gpsti_codec_decode(stage, task);
    if (stage->desc.kind == GPST_STAGE_ENCODE && !task->encoded)
        return gpsti_codec_encode(stage, task);
    if (!stage->desc.batch_func)
        return stage->desc.func(stage->desc.user_data, task);
    gpst_result result = GPST_OK;
    const gpst_result called = stage->desc.batch_func(stage->desc.user_data, task, 1, &result);
    return GPST_FAILED(called) ? called : result;
}

/* The items of a camera come one after the other, so nobody else is at its state. An item may be tried again: alone, or
   on the CPU. */
GPSTI_INTERN uint64_t gpsti_call_missed(const gpsti_item* item, uint32_t stage_index) {
    gpsti_camera* const camera = &item->pipeline->items.cameras[item->shown.camera];
    const uint64_t before = camera->seen[stage_index], now = item->camera_index + 1;
    if (before != now)
        camera->missed[stage_index] = before == 0 ? UINT64_MAX : item->camera_index - before;
    camera->seen[stage_index] = now;
    return camera->missed[stage_index];
}

GPSTI_PRIVATE void gpsti_call_fill(gpst_task* task, gpsti_item* item, uint32_t stage_index, uint32_t worker_index) {
    memset(task, 0, sizeof *task);
    task->item = &item->shown;
    task->stage_index = stage_index;
    task->worker_index = worker_index;
    task->pipeline = item->pipeline;
    if (item->pipeline->plan.stages[stage_index].desc.stateful)
        task->n_missed = gpsti_call_missed(item, stage_index);
}

GPSTI_INTERN gpst_result gpsti_call_batch(gpsti_item* const* items, uint32_t n, uint32_t stage_index,
                                          uint32_t worker_index, gpst_result* results, char* reason) {
    gpst_pipeline* const pipeline = items[0]->pipeline;
    gpsti_stage* const stage = &pipeline->plan.stages[stage_index];
    gpst_task tasks[GPSTI_MOST_BATCH];
    gpsti_call call;
    void* worker_state = NULL;
    const uint64_t serial = gpsti_fail_serial();
    gpsti_call_enter(&call, pipeline, items[0]);
    gpst_result result = gpsti_call_worker_state(stage, worker_index, &worker_state);
    for (uint32_t i = 0; i < n; i++) {
        gpsti_call_fill(&tasks[i], items[i], stage_index, worker_index);
        tasks[i].worker_state = worker_state;
        items[i]->in_batch = true;
        items[i]->reason[0] = '\0';
        results[i] = GPST_OK;
    }
    if (!GPST_FAILED(result))
        result = gpsti_call_check(pipeline, stage->desc.batch_func(stage->desc.user_data, tasks, n, results),
                                  "the batch function");
    for (uint32_t i = 0; i < n; i++) {
        items[i]->in_batch = false;
        gpst_result checked = gpsti_call_check(pipeline, results[i], "the batch function");
        if (result == GPST_OK && checked == GPST_OK)
            checked = gpsti_call_check_sets(items[i], stage_index, 0);
        if (checked != results[i])
            gpsti_copy_text(items[i]->reason, sizeof items[i]->reason, gpst_last_reason());
        results[i] = checked;
    }
    gpsti_call_leave();
    const char* const said = gpsti_call_reason(result, serial);
    gpsti_copy_text(reason, GPST_REASON_BYTES, said ? said : GPST_FAILED(result) ? gpst_result_text(result) : "");
    return result;
}

GPSTI_INTERN gpst_result gpsti_call_ask_segments(gpsti_item* item, uint32_t stage_index, uint32_t picture,
                                                 size_t* bytes) {
    gpsti_call call;
    gpsti_call_enter(&call, item->pipeline, item);
    const gpst_result result =
        gpsti_codec_ask_segments(item->pipeline->plan.stages[stage_index].desc.encode, &item->shown, picture, bytes);
    gpsti_call_leave();
    return result;
}

/* A picture's file, if there is one, gets its segments first. */
GPSTI_PRIVATE gpst_result gpsti_call_one(gpsti_item* item, uint32_t part, const gpsti_encoded* encoded, bool asks_end,
                                         gpst_task* task, char* reason) {
    gpsti_stage* const stage = &item->pipeline->plan.stages[task->stage_index];
    gpsti_call call;
    const uint64_t serial = gpsti_fail_serial();
    gpsti_call_enter(&call, item->pipeline, item);
    gpst_result result = gpsti_call_worker_state(stage, task->worker_index, &task->worker_state);
    if (!GPST_FAILED(result) && encoded)
        result = gpsti_codec_put_segments(stage->desc.encode, &item->shown, part, encoded->room, encoded->before);
    if (!GPST_FAILED(result))
        result = asks_end ? stage->desc.end(stage->desc.user_data, task) : gpsti_call_service(stage, task);
    if (result != GPST_END || !asks_end)
        result = gpsti_call_check(item->pipeline, result, "the function");
    if (result == GPST_OK)
        result = gpsti_call_check_sets(item, task->stage_index, part);
    gpsti_call_leave();
    const char* const said = gpsti_call_reason(result, serial);
    gpsti_copy_text(reason, GPST_REASON_BYTES, said ? said : GPST_FAILED(result) ? gpst_result_text(result) : "");
    return result;
}

GPSTI_INTERN gpst_result gpsti_call_encoded(gpsti_item* item, uint32_t stage_index, uint32_t part,
                                            uint32_t worker_index, const gpsti_encoded* encoded, char* reason) {
    gpst_task task;
    gpsti_call_fill(&task, item, stage_index, worker_index);
    task.picture_index = part;
    task.encoded = encoded ? encoded->room : NULL;
    task.encoded_bytes = encoded ? encoded->bytes : 0;
    return gpsti_call_one(item, part, encoded, false, &task, reason);
}

GPSTI_INTERN gpst_result gpsti_call_stage(gpsti_item* item, uint32_t stage_index, uint32_t part, uint32_t worker_index,
                                          char* reason) {
    return gpsti_call_encoded(item, stage_index, part, worker_index, NULL, reason);
}

GPSTI_INTERN gpst_result gpsti_call_end(gpsti_item* item, uint32_t stage_index, uint32_t worker_index, char* reason) {
    gpst_task task;
    gpsti_call_fill(&task, item, stage_index, worker_index);
    return gpsti_call_one(item, 0, NULL, true, &task, reason);
}

GPSTI_INTERN void gpsti_call_dropped(gpst_pipeline* pipeline, const gpst_item* item) {
    gpsti_call call;
    if (!pipeline->plan.desc.dropped)
        return;
    gpsti_call_enter(&call, pipeline, NULL);
    pipeline->plan.desc.dropped(pipeline->plan.desc.dropped_user_data, item);
    gpsti_call_leave();
}

GPSTI_INTERN gpst_result gpsti_call_sink(gpsti_item* item, const char** reason) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_call call;
    *reason = NULL;
    if (!pipeline->plan.desc.sink)
        return GPST_OK;
    const uint64_t serial = gpsti_fail_serial();
    uint32_t in_sink = GPSTI_IN_SINK;
    gpsti_a32_store(&item->keeping, in_sink);
    gpsti_call_enter(&call, pipeline, item);
    const gpst_result result = pipeline->plan.desc.sink(pipeline->plan.desc.sink_user_data, &item->shown);
    gpsti_call_leave();
    if (result != GPST_KEPT) /* one that was released all the same ends as if it had been kept */
        (void)gpsti_a32_cas(&item->keeping, &in_sink, GPSTI_NOT_KEPT);
    *reason = gpsti_call_reason(result, serial);
    return result;
}
