/* core/pipeline/tail.c -- the end of a list: workers that have nothing else to do give back what no item will want
   any more,
   while others are at their last items. One at a time: the system and the drivers take such calls one after the other,
   and every core that is at work is interrupted by each. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#define GPSTI_TAIL_NS 100000 /* about what one slot's memory takes to give back */

/* Will no other item begin, and are some under way? A plain loop within the engine takes a slot for as long as it
   runs. */
GPSTI_PRIVATE bool gpsti_tail_is_here(const gpst_pipeline* pipeline) {
    return pipeline->desc.source && pipeline->source_done && !pipeline->source_running && !pipeline->tune.paused &&
           pipeline->in_flight > 0;
}

/* A read is counted in n_reading from when its item begins, so none comes after these. */
GPSTI_PRIVATE bool gpsti_tail_has_read(const gpst_pipeline* pipeline) {
    return pipeline->reader && !pipeline->reader_retired && pipeline->n_reading == 0 && !pipeline->left;
}

/* An item's files are written before its turn to end. */
GPSTI_PRIVATE bool gpsti_tail_has_written(const gpst_pipeline* pipeline) {
    return pipeline->writer && !pipeline->writer_retired && pipeline->in_flight == pipeline->n_finishing;
}

GPSTI_INTERN bool gpsti_tail_has_threads(const gpst_pipeline* pipeline) {
    return !pipeline->giving_back && gpsti_tail_is_here(pipeline) &&
           (gpsti_tail_has_read(pipeline) || gpsti_tail_has_written(pipeline));
}

GPSTI_PRIVATE void gpsti_tail_retire(gpst_pipeline* pipeline) {
    if (gpsti_tail_has_read(pipeline)) {
        pipeline->reader_retired = true;
        gpsti_reader_retire(pipeline->reader);
    }
    if (gpsti_tail_has_written(pipeline)) {
        pipeline->writer_retired = true;
        gpsti_writer_retire(pipeline->writer);
    }
}

GPSTI_PRIVATE gpsti_slot* gpsti_tail_take_slot(gpst_pipeline* pipeline) {
    gpsti_slot* slot = pipeline->free_slots;
    while (slot && slot->emptied)
        slot = slot->next;
    if (slot)
        slot->emptied = true;
    return slot;
}

GPSTI_INTERN bool gpsti_tail_run(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    if (pipeline->giving_back || !gpsti_tail_is_here(pipeline))
        return false;
    gpsti_tail_retire(pipeline);
    gpsti_slot* const slot = gpsti_tail_take_slot(pipeline);
    if (!slot)
        return false;
    pipeline->giving_back = true;
    pipeline->executing++;
    gpsti_scheduler_leave(scheduler, GPSTI_TAIL_NS);
    gpsti_mutex_unlock(&scheduler->mutex);
    gpsti_slot_empty(slot);
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_scheduler_return(scheduler, GPSTI_TAIL_NS);
    pipeline->executing--;
    pipeline->giving_back = false;
    if (pipeline->in_flight == 0) /* who waits for the end has waited for this, too */
        gpsti_flow_tell_waiters(pipeline);
    return true;
}
