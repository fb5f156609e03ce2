/* core/pipeline/queue.c -- what waits in front of a step: its order and its turn, how many may wait and how many run
   now, which go together, and which wait for company. Runs none of it: run.c does. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

/* ---- the list ------------------------------------------------------------------------------ */

GPSTI_PRIVATE bool gpsti_batch_is_whole(const gpsti_batch* batch) { return batch == &batch->item->batch; }

/* First what has come back, since what stands behind it may wait for its end; then by priority; then first in. */
GPSTI_PRIVATE void gpsti_queue_insert(gpsti_locked locked, gpsti_step* step, gpsti_batch* batch) {
    gpsti_queue* const queue = &step->queue;
    const int32_t priority = batch->item->shown.priority;
    gpsti_batch** link = &queue->head;
    if (queue->tail && !batch->returned && queue->tail->item->shown.priority >= priority)
        link = &queue->tail->next;
    while (*link && ((*link)->returned || (!batch->returned && (*link)->item->shown.priority >= priority)))
        link = &(*link)->next;
    batch->next = *link;
    *link = batch;
    queue->n++;
    if (!batch->next)
        queue->tail = batch;
    if (gpsti_batch_is_whole(batch))
        gpsti_item_enter(locked, batch->item, GPSTI_ITEM_QUEUED);
}

GPSTI_PRIVATE void gpsti_queue_remove(gpsti_queue* queue, gpsti_batch* batch) {
    gpsti_batch* before = NULL;
    gpsti_batch** link = &queue->head;
    while (*link != batch) {
        before = *link;
        link = &(*link)->next;
    }
    *link = batch->next;
    queue->n--;
    if (queue->tail == batch)
        queue->tail = before;
    batch->item->may_drop = false;
}

/* ---- an item's turn --------------------------------------------------------------------------- */

GPSTI_INTERN gpsti_camera* gpsti_queue_camera(gpsti_locked locked, gpst_pipeline* pipeline, uint32_t camera) {
    gpsti_items* const items = &pipeline->items;
    gpsti_camera* const seen = &items->cameras[camera];
    const bool is_further = !seen->was_seen && items->n_cameras > 0;
    (void)locked;
    if (is_further && pipeline->plan.desc.n_slots == 0 && !pipeline->tune->on) /* cameras may see the same moment */
        items->n_slots++;
    seen->was_seen = true;
    if (camera >= items->n_cameras)
        items->n_cameras = camera + 1;
    return seen;
}

GPSTI_INTERN void gpsti_queue_enter_order(gpsti_locked locked, gpsti_item* item) {
    gpsti_camera* const camera = gpsti_queue_camera(locked, item->pipeline, item->shown.camera);
    item->camera_index = camera->n_items++;
    item->passed = 0;
    item->newer = NULL;
    item->older = camera->newest;
    if (item->older)
        item->older->newer = item;
    camera->newest = item;
}

/* The older item has passed the step only when those before it have: looking at one is enough. */
GPSTI_PRIVATE bool gpsti_queue_is_turn(const gpsti_item* item, uint32_t step) {
    return !item->older || item->older->passed > step;
}

/* If the item waits for its turn, and that has come, it queues. */
GPSTI_PRIVATE void gpsti_queue_wake(gpsti_locked locked, gpsti_item* item) {
    if (!item || item->state != GPSTI_ITEM_TURN || !gpsti_queue_is_turn(item, item->batch.step))
        return;
    gpsti_queue_insert(locked, gpsti_batch_step(&item->batch), &item->batch);
    gpsti_scheduler_wake(locked);
}

GPSTI_INTERN void gpsti_queue_leave_order(gpsti_locked locked, gpsti_item* item) {
    gpsti_camera* const camera = &item->pipeline->items.cameras[item->shown.camera];
    if (item->newer)
        item->newer->older = item->older;
    else
        camera->newest = item->older;
    if (item->older)
        item->older->newer = item->newer;
    gpsti_queue_wake(locked, item->newer);
    item->older = item->newer = NULL;
}

GPSTI_INTERN void gpsti_queue_pass(gpsti_locked locked, gpsti_item* item, uint32_t step) {
    if (!item->pipeline->plan.steps[step].ordered)
        return;
    item->passed = step + 1;
    gpsti_queue_wake(locked, item->newer);
}

/* ---- bounds ------------------------------------------------------------------------------------ */

/* The item is in no queue and no order from now on. Its end is told by items.c. */
GPSTI_PRIVATE void gpsti_queue_give_up(gpsti_locked locked, gpsti_item* item, const char* reason) {
    gpsti_step* const step = gpsti_batch_step(&item->batch);
    if (item->state == GPSTI_ITEM_QUEUED)
        gpsti_queue_remove(&step->queue, &item->batch);
    item->may_drop = false;
    gpsti_item_fail(item, GPST_DROPPED, gpsti_step_name(&item->pipeline->plan, step), reason);
    gpsti_item_enter(locked, item, GPSTI_ITEM_DROPPED);
    gpsti_queue_leave_order(locked, item);
}

/* Of the camera's items that wait in front of the step, among those of the lowest priority, the oldest or the newest;
   *n: how many wait. */
GPSTI_PRIVATE gpsti_item* gpsti_queue_waiting(const gpst_pipeline* pipeline, uint32_t camera, uint32_t step,
                                              bool newest, uint32_t* n) {
    gpsti_item* found = NULL;
    *n = 0;
    for (gpsti_item* item = pipeline->items.cameras[camera].newest; item; item = item->older) { /* from new to old */
        if (!item->may_drop || item->batch.step != step)
            continue;
        (*n)++;
        if (!found || item->shown.priority < found->shown.priority ||
            (item->shown.priority == found->shown.priority && !newest))
            found = item;
    }
    return found;
}

/* Items that the step could begin with at once. */
GPSTI_PRIVATE uint32_t gpsti_queue_n_free(const gpst_pipeline* pipeline, const gpsti_step* step) {
    const uint32_t executing = gpsti_a32_load(&pipeline->items.executing), n_active = pipeline->plan.n_active;
    const gpsti_queue* const queue = &step->queue;
    uint32_t n = executing < n_active ? n_active - executing : 0;
    const uint32_t n_places = step->concurrency > queue->running ? step->concurrency - queue->running : 0;
    n = step->concurrency > 0 && n_places < n ? n_places : n;
    const uint32_t n_left = step->streams > queue->on_device ? step->streams - queue->on_device : 0;
    return step->streams > 0 && n_left < n ? n_left : n;
}

/* More wait than may: the oldest or the newest of them is dropped. */
GPSTI_PRIVATE void gpsti_queue_keep_bound(gpsti_locked locked, gpsti_step* step, const gpsti_item* arrived) {
    gpst_pipeline* const pipeline = arrived->pipeline;
    const uint32_t camera = arrived->shown.camera;
    const bool newest = step->full_policy == GPST_FULL_DROP_NEWEST;
    const uint32_t most = step->queue_most + gpsti_queue_n_free(pipeline, step);
    char reason[64];
    uint32_t n = 0;
    gpsti_item* item = gpsti_queue_waiting(pipeline, camera, step->index, newest, &n);
    for (; n > most; item = gpsti_queue_waiting(pipeline, camera, step->index, newest, &n)) {
        gpsti_format(reason, sizeof reason, "queue_most=%u: %s came", step->queue_most,
                     newest ? "one too many" : "a newer one");
        gpsti_queue_give_up(locked, item, reason);
    }
}

GPSTI_INTERN bool gpsti_queue_drop_oldest(gpsti_locked locked, gpst_pipeline* pipeline, uint32_t camera,
                                          int32_t priority, const char* reason) {
    const uint32_t n_cameras = pipeline->items.n_cameras;
    gpsti_item* found = NULL;
    uint32_t most = 0;
    for (uint32_t k = 0; k < n_cameras; k++) {
        const uint32_t c = (camera + k) % n_cameras; /* its own first: others must have more */
        gpsti_item* oldest = NULL;
        uint32_t n = 0;
        for (gpsti_item* item = pipeline->items.cameras[c].newest; item; item = item->older, n++)
            oldest = item->may_drop && item->shown.priority <= priority ? item : oldest;
        if (!oldest || n <= most)
            continue;
        most = n;
        found = oldest;
    }
    if (found)
        gpsti_queue_give_up(locked, found, reason);
    return found != NULL;
}

/* Those that wait there for the turn of an item behind do not count. */
GPSTI_INTERN bool gpsti_queue_is_full(const gpsti_step* step, uint32_t camera) {
    uint32_t n = 0;
    for (const gpsti_batch* batch = step->queue.head; batch; batch = batch->next)
        n += batch->item->shown.camera == camera ? 1 : 0;
    return n >= step->queue_most;
}

/* ---- in ------------------------------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_queue_put(gpsti_locked locked, gpsti_batch* batch) {
    gpsti_item* const item = batch->item;
    gpsti_step* const step = gpsti_batch_step(batch);
    const bool whole = gpsti_batch_is_whole(batch), ends = step->index + 1 == item->pipeline->plan.n_steps;
    batch->ready_ns = gpsti_now_ns();
    item->may_drop = whole && !ends && !batch->returned && item->arrived != step->index + 1 &&
                     !item->given.handed_out && !gpsti_item_has_failed(item);
    if (whole)
        item->arrived = step->index + 1;
    if (step->ordered && !batch->returned && !gpsti_queue_is_turn(item, step->index))
        gpsti_item_enter(locked, item, GPSTI_ITEM_TURN);
    else
        gpsti_queue_insert(locked, step, batch);
    if (item->may_drop && step->queue_most > 0 && step->full_policy != GPST_FULL_BLOCK)
        gpsti_queue_keep_bound(locked, step, item);
}

/* ---- who is next ----------------------------------------------------------------------------------- */

/* Of those with the highest priority that nothing holds back, one whose camera was served longest ago; with deadlines
   the first, since those that are to be dropped or to wait were chosen in this order. */
GPSTI_PRIVATE gpsti_batch* gpsti_queue_choose(const gpsti_step* step) {
    const gpsti_queue* const queue = &step->queue;
    gpsti_batch* best = NULL;
    const bool first_in = queue->times || (queue->head && queue->head->item->pipeline->items.n_cameras <= 1);
    if (!queue->head || (first_in && !step->held_by))
        return queue->head;
    const gpst_pipeline* const pipeline = queue->head->item->pipeline;
    for (gpsti_batch* batch = queue->head; batch; batch = batch->next) {
        const gpsti_item* const item = batch->item;
        if (batch->returned)
            return batch;
        if (best && best->item->shown.priority > item->shown.priority)
            break;
        if (step->held_by && gpsti_queue_is_full(step->held_by, item->shown.camera))
            continue;
        const uint64_t now = pipeline->items.cameras[item->shown.camera].served[step->index];
        if (!best || (!first_in && now < pipeline->items.cameras[best->item->shown.camera].served[step->index]))
            best = batch;
    }
    return best;
}

GPSTI_PRIVATE bool gpsti_queue_may_go_along(const gpsti_step* step, const gpsti_batch* batch) {
    return batch && !batch->returned && !batch->item->single && !gpsti_item_has_failed(batch->item) &&
           (!step->kind->goes_along || step->kind->goes_along(batch->item));
}

/* Only while a batch is under way: waiting costs nothing then, and who ends that batch wakes a worker. */
GPSTI_PRIVATE bool gpsti_queue_waits_for_more(const gpsti_step* step) {
    const gpsti_queue* const queue = &step->queue;
    const bool busy = queue->on_device > 0 || (step->batch_most > 0 && queue->running > 0);
    return busy && queue->n < step->batch_full && gpsti_queue_may_go_along(step, queue->head);
}

/* How many may go now as one batch, whose first one is *out; none: nobody. An item that reaches a per_picture step is
   split there, which is no service. */
GPSTI_PRIVATE gpsti_next gpsti_queue_next(gpsti_locked locked, const gpsti_step* step, gpsti_batch** out) {
    gpsti_batch* const batch = gpsti_queue_choose(step);
    const gpsti_queue* const queue = &step->queue;
    gpsti_next next = {0, false, false};
    *out = batch;
    if (!batch)
        return next;
    next.most = 1;
    if (batch->returned || (step->per_picture && gpsti_batch_is_whole(batch)))
        return next;
    if (step->kind->next)
        next = step->kind->next(locked, step, batch->item);
    else {
        next.enters = step->gated;
        next.most = !step->gated || step->concurrency == 0 || queue->running < step->concurrency ? step->batch : 0;
    }
    if (next.enters && gpsti_queue_waits_for_more(step) && (next.on_device || !step->kind->next))
        next.most = 0;
    return next;
}

GPSTI_INTERN bool gpsti_queue_may_take(gpsti_locked locked, const gpsti_step* step) {
    gpsti_batch* batch = NULL;
    return gpsti_queue_next(locked, step, &batch).most > 0;
}

/* ---- deadlines ------------------------------------------------------------------------------ */

#define GPSTI_QUEUE_LOOKED_AT 256 /* items that wait; those behind have their turn later */

GPSTI_PRIVATE int64_t gpsti_queue_deadline(const gpsti_item* item) {
    const int64_t allowed_ns = item->pipeline->plan.desc.deadline_ns, came_ns = item->shown.timestamp_ns;
    return came_ns == 0 || came_ns > INT64_MAX - allowed_ns ? INT64_MAX : came_ns + allowed_ns;
}

/* The first that wait for the first time, in order. */
GPSTI_PRIVATE uint32_t gpsti_queue_list(const gpsti_queue* queue, gpsti_item** items, gpsti_batch_item* wanted) {
    uint32_t n = 0;
    for (const gpsti_batch* batch = queue->head; batch && n < GPSTI_QUEUE_LOOKED_AT; batch = batch->next) {
        if (!batch->item->may_drop)
            continue;
        items[n] = batch->item;
        wanted[n].deadline_ns = gpsti_queue_deadline(batch->item);
        wanted[n++].priority = batch->item->shown.priority;
    }
    return n;
}

GPSTI_PRIVATE void gpsti_queue_drop_late(gpsti_locked locked, gpsti_queue* queue, gpsti_item* item, bool shed) {
    char reason[96];
    const long long allowed_ns = (long long)item->pipeline->plan.desc.deadline_ns;
    if (shed)
        gpsti_format(reason, sizeof reason, "deadline_ns=%lld: given up, so that more others are in time", allowed_ns);
    else
        gpsti_format(reason, sizeof reason, "deadline_ns=%lld: it would be late even alone", allowed_ns);
    queue->n_late += shed ? 0 : 1;
    queue->n_shed += shed ? 1 : 0;
    gpsti_queue_give_up(locked, item, reason);
}

/* Gives up items that would be late, and others if that lets more be in time. Gives how many are to go now; 0: none is
   left. */
GPSTI_PRIVATE uint32_t gpsti_queue_meet_deadlines(gpsti_locked locked, gpsti_step* step) {
    gpsti_queue* const queue = &step->queue;
    gpsti_item* items[GPSTI_QUEUE_LOOKED_AT];
    gpsti_batch_item wanted[GPSTI_QUEUE_LOOKED_AT];
    gpsti_batch_input input;
    if (!queue->head->item->may_drop) /* it comes again: alone, or from the device */
        return step->batch;
    const int64_t now_ns = gpsti_now_ns();
    input.busy = queue->running > 0 || queue->on_device > 0;
    input.start_ns = input.busy && queue->free_ns > now_ns ? queue->free_ns : now_ns;
    input.items = wanted;
    input.n_waiting = gpsti_queue_list(queue, items, wanted);
    input.most = step->batch;
    input.n_late_before = queue->n_late_before;
    input.times = queue->times;
    const uint32_t n = gpsti_batch_choose(&input);
    queue->n_late_before = n > 0 ? 0 : queue->n_late_before + input.n_waiting;
    queue->free_ns = input.start_ns + gpsti_batch_times_estimate(queue->times, n > 0 ? n : 1);
    for (uint32_t i = 0; i < input.n_waiting; i++)
        if (wanted[i].verdict == GPSTI_BATCH_LATE || wanted[i].verdict == GPSTI_BATCH_SHED)
            gpsti_queue_drop_late(locked, queue, items[i], wanted[i].verdict == GPSTI_BATCH_SHED);
    return n;
}

GPSTI_INTERN void gpsti_queue_learn(gpsti_locked locked, const gpsti_batch* batch) {
    gpsti_queue* const queue = &gpsti_batch_step(batch)->queue;
    const int64_t now_ns = gpsti_now_ns();
    (void)locked;
    queue->n_batches++;
    if (queue->times) /* it waited for the one before it */
        gpsti_batch_times_add(queue->times, batch->n,
                              now_ns - (batch->begin_ns > queue->done_ns ? batch->begin_ns : queue->done_ns));
    queue->done_ns = now_ns;
}

/* ---- out --------------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_queue_take_out(gpsti_locked locked, gpsti_step* step, gpsti_batch* batch) {
    gpsti_item* const item = batch->item;
    gpsti_queue_remove(&step->queue, batch);
    item->pipeline->items.cameras[item->shown.camera].served[step->index] = ++step->queue.n_served;
    if (!batch->returned)
        item->device_wait_ns = gpsti_now_ns() - batch->ready_ns;
    if (gpsti_batch_is_whole(batch))
        gpsti_item_enter(locked, item, GPSTI_ITEM_RUNS);
}

/* Others that are ready go along. */
GPSTI_PRIVATE void gpsti_queue_form(gpsti_locked locked, gpsti_step* step, gpsti_batch* first, uint32_t most) {
    gpsti_item** const room = first->item->room;
    first->n = 1;
    first->items = &first->item;
    first->begin_ns = gpsti_now_ns();
    if (most < 2 || !room || !gpsti_batch_is_whole(first) || first->item->single ||
        (step->kind->goes_along && !step->kind->goes_along(first->item)))
        return;
    room[0] = first->item;
    first->items = room;
    for (; first->n < most; first->n++) {
        gpsti_batch* const batch = gpsti_queue_choose(step);
        if (!gpsti_queue_may_go_along(step, batch))
            return;
        gpsti_queue_take_out(locked, step, batch);
        room[first->n] = batch->item;
    }
}

GPSTI_INTERN gpsti_batch* gpsti_queue_take(gpsti_locked locked, gpsti_step* step) {
    gpsti_queue* const queue = &step->queue;
    gpsti_batch* batch = NULL;
    gpsti_next next = gpsti_queue_next(locked, step, &batch);
    if (next.most > 0 && queue->times && !batch->returned) {
        const uint32_t in_time = gpsti_queue_meet_deadlines(locked, step);
        if (in_time == 0)
            return NULL;
        next = gpsti_queue_next(locked, step, &batch);
        next.most = next.most < in_time ? next.most : in_time;
    }
    if (next.most == 0)
        return NULL;
    gpsti_queue_take_out(locked, step, batch);
    if (batch->returned)
        return batch;
    gpsti_queue_form(locked, step, batch, next.enters || next.on_device ? next.most : 1);
    batch->entered = next.enters;
    batch->on_device = next.enters && next.on_device && step->kind->joins;
    queue->running += batch->entered ? 1 : 0;
    queue->on_device += batch->on_device ? 1 : 0;
    if (step->kind->formed)
        step->kind->formed(locked, batch, next.on_device);
    return batch;
}

GPSTI_INTERN void gpsti_queue_leave(gpsti_locked locked, gpsti_batch* batch) {
    if (!batch->entered)
        return;
    batch->entered = false;
    gpsti_batch_step(batch)->queue.running--;
    gpsti_scheduler_wake(locked);
}

GPSTI_INTERN void gpsti_queue_leave_device(gpsti_locked locked, gpsti_batch* batch) {
    if (!batch->on_device)
        return;
    batch->on_device = false;
    gpsti_batch_step(batch)->queue.on_device--;
    gpsti_scheduler_wake(locked);
}
