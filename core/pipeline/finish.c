/* core/pipeline/finish.c -- how an item ends: its files become whole or vanish, the sink
   is told, the counts are kept. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

GPSTI_PRIVATE void gpsti_finish_commit(gpsti_slot* slot, gpsti_writer* writer) {
    for (uint32_t o = 0; o < slot->item.n_outputs; o++) {
        gpsti_emit* emit = slot->out[o].emits;
        for (uint32_t e = 0; e < slot->out[o].n_emits; e++, emit = emit->next) {
            if (GPST_FAILED(slot->item.result) || !emit->write.pending)
                continue;
            const gpst_result result = gpsti_write_commit(&emit->write, writer);
            emit->committed = !GPST_FAILED(result);
            if (emit->write.waited)
                gpsti_a32_store(&slot->pipeline->context->frees_wait, 1);
            if (GPST_FAILED(result))
                gpsti_slot_fail(slot, result, "write", emit->write.reason);
            slot->commit_end_ns = gpsti_now_ns();
        }
    }
}

GPSTI_INTERN gpsti_writer* gpsti_finish_who_frees_here(const gpst_pipeline* pipeline) {
    return gpsti_a32_load(&pipeline->context->frees_wait) == 0 ? NULL : pipeline->writer;
}

/* What files replace is freed beside the next items, by threads of the writer's. Of the last items, one for each
   worker, who commits frees it: threads that were started for it would be waited for. */
GPSTI_INTERN gpsti_writer* gpsti_finish_who_frees(const gpsti_slot* slot) {
    const gpst_pipeline* const pipeline = slot->pipeline;
    const uint64_t n_items = pipeline->desc.n_items_expected;
    const bool is_last = n_items > 0 && slot->item.index + pipeline->context->scheduler->n_workers >= n_items;
    return is_last ? gpsti_finish_who_frees_here(pipeline) : pipeline->writer;
}

/* One bad output fails the item: none of its files stays. */
GPSTI_PRIVATE void gpsti_finish_remove(gpsti_slot* slot) {
    for (uint32_t o = 0; o < slot->item.n_outputs; o++) {
        gpsti_emit* emit = slot->out[o].emits;
        for (uint32_t e = 0; e < slot->out[o].n_emits; e++, emit = emit->next) {
            if (emit->committed)
                (void)gpsti_path_remove(emit->path);
            else if (emit->write.pending)
                gpsti_write_discard(&emit->write);
            emit->committed = false;
        }
    }
}

GPSTI_PRIVATE void gpsti_finish_tell(gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpsti_call call;
    if (!pipeline->desc.sink)
        return;
    const uint64_t serial = gpsti_fail_serial();
    gpsti_call_enter(&call, pipeline);
    const gpst_result result = pipeline->desc.sink(pipeline->desc.sink_user_data, &slot->item);
    gpsti_call_leave();
    if (GPST_FAILED(result))
        gpsti_slot_fail(slot, result, "sink", gpsti_fail_serial() != serial ? gpst_last_reason() : "");
}

GPSTI_INTERN void gpsti_finish_item(gpsti_slot* slot, gpsti_writer* writer, int64_t now_ns) {
    slot->item.end_ns = slot->commit_start_ns = now_ns;
    slot->commit_end_ns = 0;
    if (!GPST_FAILED(slot->item.result))
        gpsti_finish_commit(slot, writer);
    if (slot->commit_end_ns > 0)
        slot->item.end_ns = slot->commit_end_ns;
    if (GPST_FAILED(slot->item.result)) { /* before the sink, so that what it is told is true */
        gpsti_finish_remove(slot);
        slot->item.end_ns = gpsti_now_ns();
    }
    gpsti_finish_tell(slot);
    if (GPST_FAILED(slot->item.result))
        gpsti_finish_remove(slot);
}

GPSTI_INTERN void gpsti_finish_count(gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    const gpst_result result = slot->item.result;
    if (result == GPST_ERROR_CANCELLED)
        pipeline->items_cancelled++;
    else if (GPST_FAILED(result))
        pipeline->items_failed++;
    else
        pipeline->items_ok++;
    if (slot->commit_end_ns > 0) {
        pipeline->commit_ns += slot->commit_end_ns - slot->commit_start_ns;
        gpsti_busy_add(&pipeline->busy[GPST_RESOURCE_DISK_OUT], slot->commit_start_ns, slot->commit_end_ns);
    }
    if (GPST_FAILED(result) && pipeline->desc.stop_on_error)
        gpsti_a32_store(&pipeline->stop, 1);
    gpsti_histogram_add(&pipeline->latency, slot->item.end_ns - slot->item.start_ns);
    if (!slot->served) {
        slot->served = true;
        pipeline->n_served++;
    }
    const bool settled = !pipeline->tune.on || pipeline->tune.tuner.state == GPSTI_TUNER_FROZEN;
    if (!pipeline->frozen && settled && pipeline->n_served >= pipeline->n_slots) {
        pipeline->frozen = true;
        pipeline->frozen_allocations = gpsti_a64_load(&pipeline->context->host.allocation_count);
        pipeline->frozen_growths = gpsti_report_growths(pipeline);
    }
}
