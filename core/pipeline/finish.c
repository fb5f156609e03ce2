/* core/pipeline/finish.c -- the end of an item: its files get their names or are removed, and the sink is called. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_PRIVATE void gpsti_finish_commit(gpsti_slot* slot) {
    for (uint32_t i = 0; i < slot->pipeline->n_parts; i++) {
        gpsti_output_file* file = slot->parts[i].files;
        for (uint32_t e = 0; e < slot->parts[i].n_files; e++, file = file->next) {
            if (gpsti_slot_has_failed(slot) || !file->write.pending)
                continue;
            const gpst_result result = gpsti_write_commit(&file->write, slot->pipeline->writer);
            file->committed = !GPST_FAILED(result);
            if (GPST_FAILED(result))
                gpsti_slot_fail(slot, result, "write", file->write.reason);
            slot->commit_end_ns = gpsti_now_ns();
        }
    }
}

/* One bad part fails the item: none of its files stays. */
GPSTI_INTERN void gpsti_finish_discard(gpsti_slot* slot) {
    for (uint32_t i = 0; i < slot->pipeline->n_parts; i++) {
        gpsti_output_file* file = slot->parts[i].files;
        for (uint32_t e = 0; e < slot->parts[i].n_files; e++, file = file->next) {
            if (file->committed)
                (void)gpsti_path_remove(file->path);
            else if (file->write.pending)
                gpsti_write_discard(&file->write);
            file->committed = false;
        }
    }
}

/* A device in trouble: the result stays on the host, as those of items that were computed there. */
GPSTI_PRIVATE gpst_result gpsti_finish_bring(gpsti_slot* slot, uint32_t set) {
    gpst_context* const context = slot->pipeline->context;
    const gpst_result result = gpsti_place_bring(slot, GPST_SET(set));
    if (!GPST_FAILED(result) || context->require_backend)
        return result;
    GPSTI_LOG(&context->host, GPST_LOG_WARNING, slot->item.index, "set %u stays on the host: %s", set,
              gpst_last_reason());
    return GPST_OK;
}

/* The sets that are results are where they are wanted, and the item shows them there. */
GPSTI_PRIVATE gpst_result gpsti_finish_place(gpsti_slot* slot) {
    const gpst_pipeline* const pipeline = slot->pipeline;
    const bool has_device = !slot->on_cpu && !pipeline->device_on_host;
    for (uint32_t k = 0; k < pipeline->n_sets; k++) {
        const gpsti_set_plan* const plan = &pipeline->sets[k];
        const gpsti_set* const set = &slot->sets[k];
        if (!plan->is_result) {
            gpsti_slot_forget(slot, GPST_SET(k));
            continue;
        }
        if (plan->place == GPST_ON_HOST)
            GPSTI_TRY(gpsti_place_fetch(slot, GPST_SET(k)));
        else if (plan->place == GPST_ON_DEVICE && has_device)
            GPSTI_TRY(gpsti_finish_bring(slot, k));
        const bool wanted = plan->place == GPST_ON_DEVICE || !set->host_valid;
        slot->views[k].on_device = set->device_valid && wanted && !pipeline->device_on_host;
        slot->views[k].pictures = slot->views[k].on_device ? set->on_device : set->on_host;
    }
    return GPST_OK;
}

GPSTI_INTERN void gpsti_finish_item(gpsti_slot* slot) {
    const char* reason = NULL;
    gpst_result result = GPST_OK;
    if (!gpsti_slot_has_failed(slot))
        result = gpsti_finish_place(slot);
    else if (!slot->pipeline->sets[0].is_result)
        gpsti_slot_forget(slot, GPST_SET(0));
    if (GPST_FAILED(result))
        gpsti_slot_fail(slot, result, "result", gpst_last_reason());
    slot->commit_start_ns = gpsti_now_ns();
    slot->commit_end_ns = 0;
    if (!gpsti_slot_has_failed(slot))
        gpsti_finish_commit(slot);
    if (gpsti_slot_has_failed(slot)) /* before the sink, so that what it is told is true */
        gpsti_finish_discard(slot);
    slot->item.encoder = gpsti_slot_has_failed(slot) ? "" : slot->encoder;
    slot->item.end_ns = gpsti_now_ns();
    result = gpsti_call_sink(slot, &reason);
    if (!GPST_FAILED(result))
        return;
    gpsti_slot_fail(slot, result, "sink", reason ? reason : "");
    gpsti_finish_discard(slot);
}
