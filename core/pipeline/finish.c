/* core/pipeline/finish.c -- the end of an item: its files get their names or are removed, and the sink is called. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_PRIVATE void gpsti_finish_commit(gpsti_item* item) {
    for (uint32_t i = 0; i < item->pipeline->plan.n_parts; i++) {
        gpsti_output_file* file = item->parts[i].files;
        for (uint32_t e = 0; e < item->parts[i].n_files; e++, file = file->next) {
            if (gpsti_item_has_failed(item) || !file->write.pending)
                continue;
            const gpst_result result = gpsti_write_commit(&file->write, item->pipeline->files.writer);
            file->committed = !GPST_FAILED(result);
            if (GPST_FAILED(result))
                gpsti_item_fail(item, result, "write", file->write.reason);
            item->commit_end_ns = gpsti_now_ns();
        }
    }
}

/* One bad part fails the item: none of its files stays. */
GPSTI_INTERN void gpsti_finish_discard(gpsti_item* item) {
    for (uint32_t i = 0; i < item->pipeline->plan.n_parts; i++) {
        gpsti_output_file* file = item->parts[i].files;
        for (uint32_t e = 0; e < item->parts[i].n_files; e++, file = file->next) {
            if (file->committed)
                (void)gpsti_path_remove(file->path);
            else if (file->write.pending)
                gpsti_write_discard(&file->write);
            file->committed = false;
        }
    }
}

/* A device in trouble: the result stays on the host, as those of items that were computed there. */
GPSTI_PRIVATE gpst_result gpsti_finish_bring(gpsti_item* item, uint32_t set) {
    gpst_context* const context = item->pipeline->context;
    const gpst_result result = gpsti_place_bring(item, GPST_SET(set));
    if (!GPST_FAILED(result) || context->require_backend)
        return result;
    GPSTI_LOG(&context->host, GPST_LOG_WARNING, item->shown.index, "set %u stays on the host: %s", set,
              gpst_last_reason());
    return GPST_OK;
}

/* The sets that are results are where they are wanted, and the item shows them there. */
GPSTI_PRIVATE gpst_result gpsti_finish_place(gpsti_item* item) {
    const gpst_pipeline* const pipeline = item->pipeline;
    const bool has_device = !item->on_cpu && !pipeline->plan.device_on_host;
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++) {
        const gpsti_set_plan* const plan = &pipeline->plan.sets[k];
        const gpsti_set* const set = &item->sets[k];
        if (!plan->is_result) {
            gpsti_item_forget(item, GPST_SET(k));
            continue;
        }
        if (plan->place == GPST_ON_HOST)
            GPSTI_TRY(gpsti_place_fetch(item, GPST_SET(k)));
        else if (plan->place == GPST_ON_DEVICE && has_device)
            GPSTI_TRY(gpsti_finish_bring(item, k));
        const bool wanted = plan->place == GPST_ON_DEVICE || !set->host_valid;
        item->views[k].on_device = set->device_valid && wanted && !pipeline->plan.device_on_host;
        item->views[k].pictures = item->views[k].on_device ? set->on_device : set->on_host;
    }
    return GPST_OK;
}

GPSTI_INTERN void gpsti_finish_item(gpsti_item* item) {
    const char* reason = NULL;
    gpst_result result = GPST_OK;
    if (!gpsti_item_has_failed(item))
        result = gpsti_finish_place(item);
    else if (!item->pipeline->plan.sets[0].is_result)
        gpsti_item_forget(item, GPST_SET(0));
    if (GPST_FAILED(result))
        gpsti_item_fail(item, result, "result", gpst_last_reason());
    item->commit_start_ns = gpsti_now_ns();
    item->commit_end_ns = 0;
    if (!gpsti_item_has_failed(item))
        gpsti_finish_commit(item);
    if (gpsti_item_has_failed(item)) /* before the sink, so that what it is told is true */
        gpsti_finish_discard(item);
    item->shown.encoder = gpsti_item_has_failed(item) ? "" : item->encoder;
    item->shown.end_ns = gpsti_now_ns();
    result = gpsti_call_sink(item, &reason);
    if (!GPST_FAILED(result))
        return;
    gpsti_item_fail(item, result, "sink", reason ? reason : "");
    gpsti_finish_discard(item);
}
