/* core/steps/finish.c -- the end of an item: its files get their names or are removed, and the sink is called. */
#include "../base/platform_internal.h"

#include "call_internal.h"

GPSTI_PRIVATE void gpsti_finish_commit(gpsti_item* item) {
    for (uint32_t i = 0; i < item->pipeline->plan.n_parts; i++) {
        gpsti_output_file* file = item->parts[i].files;
        for (uint32_t e = 0; e < item->parts[i].n_files; e++, file = file->next) {
            if (gpsti_item_has_failed(item) || !file->write.pending || file->write.target)
                continue; /* a part of a target has no name of its own */
            const gpst_result result = gpsti_write_commit(&file->write, item->pipeline->files.writer);
            file->committed = !GPST_FAILED(result);
            if (GPST_FAILED(result))
                gpsti_item_fail(item, result, "write", file->write.reason);
            item->commit_end_ns = gpsti_now_ns();
        }
    }
}

/* A device in trouble: the result stays on the host, as those of items that were computed there. */
GPSTI_PRIVATE gpst_result gpsti_finish_bring(gpsti_item* item, uint32_t set) {
    gpst_context* const context = item->pipeline->context;
    const gpst_result result = gpsti_sets_bring(item, GPST_SET(set));
    if (!GPST_FAILED(result) || context->require_backend)
        return result;
    GPSTI_LOG(&context->host, GPST_LOG_WARNING, item->shown.index, "set %u stays on the host: %s", set,
              gpst_last_reason());
    return GPST_OK;
}

/* The sets that are results are where they are wanted, and the item shows them there. */
GPSTI_PRIVATE gpst_result gpsti_finish_place(gpsti_item* item) {
    const gpsti_plan* const plan = &item->pipeline->plan;
    const bool has_device = !item->on_cpu && !plan->device_on_host;
    for (uint32_t k = 0; k < plan->n_sets; k++) {
        const gpsti_set_plan* const wanted = &plan->sets[k];
        const gpsti_set* const set = &item->sets[k];
        if (!wanted->is_result) {
            gpsti_sets_forget(item, GPST_SET(k));
            continue;
        }
        if (wanted->place == GPST_ON_HOST)
            GPSTI_TRY(gpsti_sets_fetch(item, GPST_SET(k)));
        else if (wanted->place == GPST_ON_DEVICE && has_device)
            GPSTI_TRY(gpsti_finish_bring(item, k));
        const bool shows = wanted->place == GPST_ON_DEVICE || !(set->valid & GPSTI_ON_HOST);
        item->views[k].on_device = (set->valid & GPSTI_ON_DEVICE(0)) && shows && !plan->device_on_host;
        item->views[k].pictures = item->views[k].on_device ? set->on_device : set->on_host;
    }
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_finish_item(gpsti_item* item) {
    const char* reason = NULL;
    gpst_result result = GPST_OK;
    if (!gpsti_item_has_failed(item))
        result = gpsti_finish_place(item);
    else if (!item->pipeline->plan.sets[0].is_result)
        gpsti_sets_forget(item, GPST_SET(0));
    if (GPST_FAILED(result))
        gpsti_item_fail(item, result, "result", gpst_last_reason());
    item->commit_start_ns = gpsti_now_ns();
    item->commit_end_ns = 0;
    if (!gpsti_item_has_failed(item))
        gpsti_finish_commit(item);
    if (gpsti_item_has_failed(item)) /* before the sink, so that what it is told is true */
        gpsti_item_discard_files(item);
    item->shown.encoder = gpsti_item_has_failed(item) ? "" : item->encoder;
    item->shown.end_ns = gpsti_now_ns();
    result = gpsti_call_sink(item, &reason);
    if (!GPST_FAILED(result))
        return;
    gpsti_item_fail(item, result, "sink", reason ? reason : "");
    gpsti_item_discard_files(item);
}

/* Results that are there on the device alone, and that it does not give, are made again by the cores. */
GPSTI_PRIVATE uint32_t gpsti_finish_on_host(const gpst_pipeline* pipeline) {
    uint32_t sets = 0;
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++)
        if (pipeline->plan.sets[k].is_result && pipeline->plan.sets[k].place == GPST_ON_HOST)
            sets |= GPST_SET(k);
    return sets;
}

GPSTI_PRIVATE gpsti_outcome gpsti_finish_run(gpsti_run* run, gpsti_batch* batch) {
    gpst_pipeline* const pipeline = run->pipeline;
    gpsti_item* const item = batch->item;
    gpsti_service service;
    if (!gpsti_item_has_failed(item)) {
        gpst_result result = GPST_OK;
        if (gpsti_item_fetch(item, gpsti_finish_on_host(pipeline), &result) == GPSTI_AGAIN)
            return GPSTI_AGAIN;
        if (GPST_FAILED(result))
            gpsti_item_fail(item, result, "result", gpst_last_reason());
    }
    gpsti_service_begin(&service, batch);
    gpsti_finish_item(item);
    const bool is_free =
        (pipeline->plan.desc.sink || pipeline->plan.desc.source) && gpsti_a32_load(&item->keeping) == GPSTI_NOT_KEPT;
    if (is_free || !pipeline->plan.sets[0].is_result)
        gpsti_item_release_frame(item); /* else results live until release */
    gpsti_service_end(&service, GPST_OK);
    gpsti_run_keep(run, &service);
    return GPSTI_DONE;
}

GPSTI_PRIVATE bool gpsti_finish_count(gpst_pipeline* pipeline, const gpsti_service* service) {
    gpsti_counts* const counts = &pipeline->counts;
    counts->end_ns = service->end_ns > counts->end_ns ? service->end_ns : counts->end_ns;
    gpsti_clock_add(&counts->finish_clock, service->end_ns - service->start_ns, service->wait_ns, 0, false);
    return true;
}

/* A sink is called for one item at a time. Without a sink or result, ends need not keep the order. */
GPSTI_PRIVATE void gpsti_finish_plan(const gpst_pipeline* pipeline, gpsti_step* step, bool asynchronous) {
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    const bool told = desc->sink || !desc->source;
    (void)asynchronous;
    step->concurrency = told ? 1 : 0;
    step->ordered = told && !desc->as_ready;
}

GPSTI_INTERN const gpsti_step_kind* gpsti_step_finish(void) {
    static const gpsti_step_kind kind = {GPST_RESOURCE_CPU,
                                         /* joins */ false,
                                         /* calls */ false,
                                         /* check_desc */ NULL, gpsti_finish_plan,
                                         /* queues */ NULL,
                                         /* next */ NULL,
                                         /* goes_along */ NULL,
                                         /* formed */ NULL,
                                         /* run_all */ NULL,    gpsti_finish_run,
                                         /* returned */ NULL,   gpsti_finish_count};
    return &kind;
}
