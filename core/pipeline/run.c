/* core/pipeline/run.c -- a thread brings a batch from step to step, without the lock, until the batch must wait or its
   items have ended. The plain loop is the same function; there nothing waits for another thread. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

GPSTI_PRIVATE bool gpsti_run_is_part(const gpsti_batch* batch) { return batch != &batch->item->batch; }

/* ---- parts ---------------------------------------------------------------------------------------- */

/* Queues the parts that no thread has taken, for idle workers. */
GPSTI_PRIVATE void gpsti_run_offer_parts(gpsti_locked locked, gpsti_item* item) {
    while (item->next_part < item->n_split)
        gpsti_items_send(locked, &item->parts[item->next_part++].batch, item->batch.step);
}

/* The last step that the parts go through, when they are split at this one. */
GPSTI_PRIVATE uint32_t gpsti_run_last_chained(const gpst_pipeline* pipeline, uint32_t step) {
    while (pipeline->plan.steps[step + 1].chained)
        step++;
    return step;
}

/* So many parts go through the steps; the sets that these write have as many pictures. A step that writes no pictures
   has the files of the item for parts. */
GPSTI_PRIVATE uint32_t gpsti_run_count_parts(gpsti_item* item, uint32_t first, uint32_t last) {
    const gpsti_step* const steps = item->pipeline->plan.steps;
    if (steps[first].reads == 0)
        return gpsti_item_n_written(item);
    const uint32_t n = item->sets[gpsti_set_of(steps[first].reads)].n;
    for (uint32_t s = first; s <= last; s++)
        for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
            if (steps[s].writes & GPST_SET(k)) {
                gpsti_set_resize(item, k, n);
                item->sets[k].writer = steps[s].first_stage + 1;
                item->sets[k].valid |= GPSTI_ON_HOST;
            }
    return n;
}

/* The item goes on behind these steps: they are done. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_behind(gpsti_item* item, uint32_t first, uint32_t last) {
    for (uint32_t s = first; s <= last; s++)
        item->done |= 1u << s;
    item->batch.step = gpsti_item_next_step(item, last);
    item->batch.ready_ns = 0;
    return &item->batch;
}

GPSTI_PRIVATE gpsti_batch* gpsti_run_again(gpsti_run* run, gpsti_batch* batch);

/* The item's thread takes the first part; in a plain loop all of them, each through all its steps while the bytes are
   in the cache. An item without pictures has no parts, but it may have files. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_split(gpsti_run* run, gpsti_item* item) {
    const gpst_pipeline* const pipeline = run->pipeline;
    const gpsti_step* const steps = pipeline->plan.steps;
    uint32_t first = item->batch.step;
    const uint32_t last = gpsti_run_last_chained(pipeline, first);
    const bool failed = gpsti_item_has_failed(item);
    const gpsti_outcome outcome =
        !failed && steps[first].kind->run_all ? steps[first].kind->run_all(run, item) : GPSTI_OTHER_FORM;
    if (outcome == GPSTI_AGAIN)
        return gpsti_run_again(run, &item->batch);
    const bool ok = !gpsti_item_has_failed(item);
    uint32_t n = ok && outcome != GPSTI_DONE ? gpsti_run_count_parts(item, first, last) : 0;
    if (n == 0 && ok && steps[last].reads == 0 && last > first) { /* files alone are left to be written */
        item->done |= (1u << last) - (1u << first);
        item->batch.step = first = last;
        n = gpsti_item_n_written(item);
    }
    if (n == 0)
        return gpsti_run_behind(item, first, last);
    const gpsti_locked locked = gpsti_run_lock(run);
    item->pending = item->n_split = n;
    item->next_part = 1;
    item->parts[0].batch.step = first;
    item->parts[0].batch.ready_ns = 0;
    if (!gpsti_is_plain(pipeline))
        gpsti_run_offer_parts(locked, item);
    gpsti_unlock(locked);
    return &item->parts[0].batch;
}

/* A part has passed its steps. Gives the next part, or after the last one the item itself. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_join(gpsti_run* run, gpsti_item* item) {
    gpsti_batch* next = NULL;
    const gpsti_locked locked = gpsti_run_lock(run);
    if (--item->pending == 0) {
        next = gpsti_run_behind(item, item->batch.step, gpsti_run_last_chained(run->pipeline, item->batch.step));
    } else if (item->next_part < item->n_split) {
        next = &item->parts[item->next_part++].batch;
        next->step = item->batch.step;
        next->ready_ns = 0;
        if (!gpsti_is_plain(run->pipeline))
            gpsti_run_offer_parts(locked, item);
    }
    gpsti_unlock(locked);
    return next;
}

/* ---- from step to step ------------------------------------------------------------------------------ */

/* One item or part has passed its step. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_next(gpsti_run* run, gpsti_batch* batch) {
    gpsti_item* const item = batch->item;
    const gpsti_step* const steps = run->pipeline->plan.steps;
    if (!gpsti_run_is_part(batch))
        return gpsti_run_behind(item, batch->step, batch->step);
    if (gpsti_item_has_failed(item) || !steps[batch->step + 1].chained)
        return gpsti_run_join(run, item);
    batch->step++;
    batch->ready_ns = 0;
    return batch;
}

/* What an item needs before its step is run once more: sets made again, or memory. NULL: it waits. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_repeat(gpsti_locked locked, gpsti_item* item) {
    gpsti_batch* const batch = &item->batch;
    const uint32_t sets = item->lacks;
    item->lacks = 0;
    batch->ready_ns = gpsti_now_ns();
    if (item->yields && gpsti_grant_begins_anew(locked, item))
        return NULL;
    if (sets != 0) {
        batch->step = gpsti_item_rewind(item, batch->step, sets);
        if (gpsti_item_has_failed(item))
            batch->step = gpsti_item_next_step(item, batch->step - 1);
    }
    if (item->wants[GPSTI_OF_HOST] + item->wants[GPSTI_OF_DEVICE] > 0 && !gpsti_grant_park(locked, item))
        return NULL;
    return batch;
}

/* All items of the batch once more. The first goes on on this thread, if it need not wait. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_again(gpsti_run* run, gpsti_batch* batch) {
    gpsti_item** const items = batch->items;
    const uint32_t n = batch->n;
    const gpsti_locked locked = gpsti_run_lock(run);
    gpsti_queue_leave_device(locked, batch);
    gpsti_queue_leave(locked, batch);
    batch->n = 1;
    for (uint32_t i = 1; i < n; i++) {
        gpsti_batch* const other = gpsti_run_repeat(locked, items[i]);
        if (other)
            gpsti_items_send(locked, other, other->step);
    }
    batch->items = &batch->item;
    gpsti_batch* const next = gpsti_run_repeat(locked, batch->item);
    gpsti_scheduler_wake(locked);
    gpsti_unlock(locked);
    return next;
}

/* It was to begin anew for want of memory, and a function could do without. */
GPSTI_PRIVATE void gpsti_run_copes(gpsti_item* item) {
    if (!item->yields || gpsti_item_has_failed(item))
        return;
    item->yields = false;
    item->wants[GPSTI_OF_HOST] = item->wants[GPSTI_OF_DEVICE] = 0;
}

/* Each item of the batch has passed the step, has failed, or stays in it. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_done(gpsti_run* run, gpsti_batch* batch) {
    gpsti_item* const first = batch->item;
    const uint32_t step = batch->step;
    const bool ends = step + 1 == run->pipeline->plan.n_steps;
    const bool stays = !gpsti_run_is_part(batch) && first->stays;
    for (uint32_t i = 0; i < batch->n && !gpsti_run_is_part(batch); i++)
        gpsti_run_copes(batch->items[i]);
    if (!batch->entered && !batch->on_device && batch->n == 1 && !ends && !stays)
        return gpsti_run_next(run, batch);
    const gpsti_locked locked = gpsti_run_lock(run);
    if (run->pipeline->items.n_wanted > 0)
        gpsti_tune_hold(locked, run->pipeline, run->pipeline->items.n_wanted);
    if (run->pipeline->plan.steps[step].batch_most > 0 && !gpsti_item_has_failed(first))
        gpsti_queue_learn(locked, batch);
    gpsti_queue_leave_device(locked, batch);
    for (uint32_t i = 0; i < batch->n; i++) {
        gpsti_item* const item = batch->items[i];
        if (i > 0 && item->yields && gpsti_item_has_failed(item) && gpsti_grant_begins_anew(locked, item))
            continue;
        if (!item->stays && !item->yields)
            gpsti_queue_pass(locked, item, step);
        if (i > 0 && item->stays)
            gpsti_items_send(locked, &item->batch, step);
        else if (i > 0)
            gpsti_items_send(locked, &item->batch, gpsti_run_behind(item, step, step)->step);
    }
    batch->n = 1;
    batch->items = &batch->item;
    gpsti_queue_leave(locked, batch);
    gpsti_batch* next = NULL;
    const bool is_back = ends && gpsti_items_end(locked, first);
    if (ends)
        next = gpsti_queue_take(locked, &run->pipeline->plan.steps[step]);
    gpsti_unlock(locked);
    if (is_back)
        gpsti_items_release(first);
    return ends ? next : stays ? batch : gpsti_run_next(run, batch);
}

GPSTI_PRIVATE gpsti_batch* gpsti_run_after(gpsti_run* run, gpsti_batch* batch, gpsti_outcome outcome) {
    switch (outcome) {
    case GPSTI_DONE:
        return gpsti_run_done(run, batch);
    case GPSTI_PARKED:
        return NULL;
    case GPSTI_AGAIN:
    case GPSTI_OTHER_FORM:
        break;
    }
    return gpsti_run_again(run, batch);
}

/* ---- one step ------------------------------------------------------------------------------------------ */

/* Puts the batch into its step's queue, and takes what may run. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_enter(gpsti_run* run, gpsti_batch* batch) {
    gpsti_step* const step = gpsti_batch_step(batch);
    const gpsti_locked locked = gpsti_run_lock(run);
    gpsti_queue_put(locked, batch);
    if (gpsti_run_is_part(batch) && !gpsti_is_plain(run->pipeline)) /* the item's other parts need not wait */
        gpsti_run_offer_parts(locked, batch->item);
    gpsti_items_tell_dropped(locked, run->pipeline);
    batch = gpsti_queue_take(locked, step);
    gpsti_unlock(locked);
    return batch;
}

GPSTI_PRIVATE bool gpsti_run_has_failed(gpsti_batch* batch) {
    gpsti_item* const item = batch->item;
    if (batch->step + 1 == item->pipeline->plan.n_steps)
        return false;
    if (gpsti_a32_load(&item->pipeline->signals.cancel) != 0 && !gpsti_item_has_failed(item))
        gpsti_batch_fail(batch, GPST_ERROR_CANCELLED, "cancelled");
    return gpsti_item_has_failed(item);
}

/* A failed item takes its turn without a service; the rest of its batch queues again. */
GPSTI_PRIVATE gpsti_batch* gpsti_run_pass(gpsti_run* run, gpsti_batch* batch) {
    if (batch->n > 1) {
        const gpsti_locked locked = gpsti_run_lock(run);
        for (uint32_t i = 1; i < batch->n; i++)
            gpsti_items_send(locked, &batch->items[i]->batch, batch->step);
        batch->n = 1;
        batch->items = &batch->item;
        gpsti_unlock(locked);
    }
    if (!gpsti_run_is_part(batch))
        batch->item->stays = false;
    return gpsti_run_done(run, batch);
}

/* Where the item is behind the last step that reads the borrowed frame, and has not failed. Else the frame is given
   back at the item's end. */
GPSTI_PRIVATE void gpsti_run_release_frame(const gpsti_batch* batch) {
    gpsti_item* const item = batch->item;
    const gpsti_set_plan* const frame = &item->pipeline->plan.sets[0];
    if (gpsti_run_is_part(batch) || batch->step <= frame->last_step || frame->is_result)
        return;
    gpsti_sets_forget(item, GPST_SET(0));
    gpsti_item_release_frame(item);
}

GPSTI_PRIVATE gpsti_batch* gpsti_run_serve(gpsti_run* run, gpsti_batch* batch) {
    gpsti_step* const step = gpsti_batch_step(batch);
    for (uint32_t i = 0; i < batch->n && !gpsti_run_is_part(batch); i++)
        batch->items[i]->stays = false;
    if (gpsti_run_is_part(batch) && !gpsti_is_plain(run->pipeline) && batch->item->next_part < batch->item->n_split) {
        const gpsti_locked locked = gpsti_run_lock(run);
        gpsti_run_offer_parts(locked, batch->item);
        gpsti_unlock(locked);
    }
    const bool entered = batch->entered;
    batch->entered = false; /* who is parked is not in the step, and may be elsewhere before run returns */
    const gpsti_outcome outcome = step->kind->run(run, batch);
    if (outcome == GPSTI_PARKED && entered) {
        const gpsti_locked locked = gpsti_run_lock(run);
        step->queue.running--;
        gpsti_scheduler_wake(locked);
        gpsti_unlock(locked);
    }
    if (outcome != GPSTI_PARKED)
        batch->entered = entered;
    return gpsti_run_after(run, batch, outcome);
}

GPSTI_PRIVATE gpsti_batch* gpsti_run_returned(gpsti_run* run, gpsti_batch* batch) {
    batch->returned = false;
    for (uint32_t i = 0; i < batch->n && !gpsti_run_is_part(batch); i++)
        batch->items[i]->stays = false;
    return gpsti_run_after(run, batch, gpsti_batch_step(batch)->kind->returned(run, batch));
}

/* An item to which others left no memory waits until it may begin anew. */
GPSTI_PRIVATE bool gpsti_run_begins_anew(gpsti_run* run, gpsti_batch* batch) {
    if (gpsti_run_is_part(batch) || batch->entered || !gpsti_item_has_failed(batch->item) || !batch->item->yields)
        return false;
    const gpsti_locked locked = gpsti_run_lock(run);
    const bool begins = gpsti_grant_begins_anew(locked, batch->item);
    gpsti_unlock(locked);
    return begins;
}

GPSTI_INTERN void gpsti_run_batch(gpsti_run* run, gpsti_batch* batch) {
    while (batch && !gpsti_run_begins_anew(run, batch)) {
        const gpsti_step* const step = gpsti_batch_step(batch);
        if (batch->item->given.borrowed && !batch->returned && !gpsti_item_has_failed(batch->item))
            gpsti_run_release_frame(batch);
        if (batch->returned)
            batch = gpsti_run_returned(run, batch);
        else if (step->per_picture && !step->chained && !gpsti_run_is_part(batch))
            batch = gpsti_run_split(run, batch->item);
        else if (gpsti_run_has_failed(batch) && (batch->entered || !step->ordered))
            batch = gpsti_run_pass(run, batch);
        else if (step->kind->queues ? step->kind->queues(batch->item, step) : step->gated && !batch->entered)
            batch = gpsti_run_enter(run, batch);
        else
            batch = gpsti_run_serve(run, batch);
    }
    if (run->n > 0)
        gpsti_unlock(gpsti_run_lock(run));
}

/* ---- back from where it was parked ---------------------------------------------------------------------- */

/* Of items that the device had together all but the first go where they are: the first one's batch has them. */
GPSTI_INTERN void gpsti_run_goes_on(gpsti_locked locked, gpsti_batch* batch) {
    for (uint32_t i = 1; i < batch->n; i++)
        gpsti_item_enter(locked, batch->items[i], GPSTI_ITEM_RUNS);
    gpsti_items_send(locked, batch, batch->step);
}
