/* core/pipeline/ends.c -- what stages still have when no more items of a camera come: stage after stage is asked, until
   it says END, for new items that begin behind it. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

/* The step that the camera's end has come to; the last one: it is through. */
GPSTI_PRIVATE uint32_t gpsti_ends_step(const gpst_pipeline* pipeline, const gpsti_camera* camera) {
    const gpsti_plan* const plan = &pipeline->plan;
    uint32_t s = camera->n_items > 0 && plan->has_ends ? camera->ended : plan->n_steps - 1;
    while (s + 1 < plan->n_steps && !plan->stages[plan->steps[s].first_stage].desc.end)
        s++;
    return s;
}

GPSTI_INTERN bool gpsti_ends_are_over(const gpst_pipeline* pipeline) {
    bool over = true;
    for (uint32_t c = 0; c < pipeline->items.n_cameras; c++)
        over = over && gpsti_ends_step(pipeline, &pipeline->items.cameras[c]) + 1 == pipeline->plan.n_steps;
    return over || gpsti_a32_load(&pipeline->signals.cancel) != 0;
}

/* A camera whose end may go on; n_cameras: none. A step goes on handing items out; the next one waits for them. */
GPSTI_PRIVATE uint32_t gpsti_ends_camera(const gpst_pipeline* pipeline) {
    uint32_t c = 0;
    for (; c < pipeline->items.n_cameras; c++) {
        const gpsti_camera* const camera = &pipeline->items.cameras[c];
        const uint32_t s = gpsti_ends_step(pipeline, camera);
        const gpsti_step* const step = &pipeline->plan.steps[s];
        const bool has_place = (step->concurrency == 0 || step->queue.running < step->concurrency) &&
                               (!step->held_by || !gpsti_queue_is_full(step->held_by, c));
        if (s + 1 < pipeline->plan.n_steps && has_place && (!camera->newest || camera->ending == s + 1))
            break;
    }
    return c;
}

GPSTI_INTERN bool gpsti_ends_are_ready(gpsti_locked locked, const gpst_pipeline* pipeline) {
    const bool no_more = pipeline->plan.desc.source ? pipeline->items.source_done : pipeline->threads->closed;
    return pipeline->plan.has_ends && no_more && !pipeline->threads->source_running &&
           !pipeline->threads->source_rests && gpsti_a32_load(&pipeline->signals.cancel) == 0 &&
           gpsti_ends_camera(pipeline) < pipeline->items.n_cameras && gpsti_items_may_begin(locked, pipeline);
}

/* A new item of the camera, behind that step. */
GPSTI_PRIVATE void gpsti_ends_load(gpsti_locked locked, gpsti_item* item, uint32_t camera, uint32_t step) {
    gpst_input input = GPST_ZERO;
    gpsti_item_reset(item, item->pipeline->items.next_index, gpsti_now_ns());
    input.camera = camera;
    const gpst_result result = gpsti_item_load_names(item, &input);
    item->given.handed_out = true;
    item->batch.step = step;
    item->batch.ready_ns = 0;
    item->done = (1u << (step + 1)) - 1;
    gpsti_queue_enter_order(locked, item);
    item->passed = step + 1;
    gpsti_item_enter(locked, item, GPSTI_ITEM_RUNS);
    if (GPST_FAILED(result))
        gpsti_item_fail(item, result, gpsti_step_name(&item->pipeline->plan, gpsti_batch_step(&item->batch)),
                        gpst_last_reason());
}

/* Of a stage that has none, and after one that it failed. */
GPSTI_PRIVATE void gpsti_ends_pass(gpsti_camera* camera, uint32_t step) {
    camera->ended = step + 1;
    camera->ending = 0;
}

GPSTI_INTERN bool gpsti_ends_ask(gpsti_locked locked, gpsti_run* run) {
    gpst_pipeline* const pipeline = run->pipeline;
    const uint32_t c = gpsti_ends_camera(pipeline);
    gpsti_camera* const camera = &pipeline->items.cameras[c];
    gpsti_step* const step = &pipeline->plan.steps[gpsti_ends_step(pipeline, camera)];
    gpsti_item* const item = gpsti_items_take(locked, pipeline);
    char reason[GPST_REASON_BYTES] = "";
    gpsti_service service;
    if (!item) { /* none can be made: until one has ended */
        pipeline->threads->source_rests = gpsti_items_n_under_way(pipeline) > 0;
        return false;
    }
    gpsti_ends_load(locked, item, c, step->index);
    camera->ending = step->index + 1;
    step->queue.running++;
    pipeline->threads->source_running = true;
    gpsti_scheduler_wake(locked);
    gpsti_unlock(locked);
    gpsti_service_begin(&service, &item->batch);
    gpst_result result = item->shown.result;
    if (result == GPST_OK)
        result = gpsti_call_end(item, step->first_stage, run->worker_index, reason);
    gpsti_service_end(&service, result);
    if (result != GPST_END)
        gpsti_run_keep(run, &service);
    (void)gpsti_run_lock(run);
    pipeline->threads->source_running = false;
    step->queue.running--;
    if (result == GPST_END || GPST_FAILED(result))
        gpsti_ends_pass(camera, step->index);
    if (result == GPST_END) {
        gpsti_queue_leave_order(locked, item);
        camera->n_items--;
        gpsti_items_put(locked, item);
        return true;
    }
    if (GPSTI_ENDS_ITEM(result))
        gpsti_item_fail(item, result, gpsti_step_name(&pipeline->plan, step), reason);
    pipeline->items.next_index++;
    gpsti_items_send(locked, &item->batch, gpsti_item_next_step(item, step->index));
    return true;
}
