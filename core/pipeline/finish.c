/* core/pipeline/finish.c -- the end of an item: its files get their names or are removed, and the sink is called. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_PRIVATE void gpsti_finish_commit(gpsti_slot* slot) {
    for (uint32_t o = 0; o < slot->item.n_outputs; o++) {
        gpsti_output_file* file = slot->out[o].files;
        for (uint32_t e = 0; e < slot->out[o].n_files; e++, file = file->next) {
            if (GPST_FAILED(slot->item.result) || !file->write.pending)
                continue;
            const gpst_result result = gpsti_write_commit(&file->write, slot->pipeline->writer);
            file->committed = !GPST_FAILED(result);
            if (GPST_FAILED(result))
                gpsti_slot_fail(slot, result, "write", file->write.reason);
            slot->commit_end_ns = gpsti_now_ns();
        }
    }
}

/* One bad output fails the item: none of its files stays. */
GPSTI_INTERN void gpsti_finish_discard(gpsti_slot* slot) {
    for (uint32_t o = 0; o < slot->item.n_outputs; o++) {
        gpsti_output_file* file = slot->out[o].files;
        for (uint32_t e = 0; e < slot->out[o].n_files; e++, file = file->next) {
            if (file->committed)
                (void)gpsti_path_remove(file->path);
            else if (file->write.pending)
                gpsti_write_discard(&file->write);
            file->committed = false;
        }
    }
}

GPSTI_INTERN void gpsti_finish_item(gpsti_slot* slot) {
    const char* reason = NULL;
    slot->commit_start_ns = gpsti_now_ns();
    slot->commit_end_ns = 0;
    if (!GPST_FAILED(slot->item.result))
        gpsti_finish_commit(slot);
    if (GPST_FAILED(slot->item.result)) /* before the sink, so that what it is told is true */
        gpsti_finish_discard(slot);
    slot->item.end_ns = gpsti_now_ns();
    const gpst_result result = gpsti_call_sink(slot, &reason);
    if (!GPST_FAILED(result))
        return;
    gpsti_slot_fail(slot, result, "sink", reason ? reason : "");
    gpsti_finish_discard(slot);
}
