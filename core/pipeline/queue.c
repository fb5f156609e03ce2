/* core/pipeline/queue.c -- the jobs that wait in a step: their order and their turn, how many may wait and how many run
   now, and which wait for a fuller batch. Runs none of them: inline.c does. All of it is locked. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

GPSTI_INTERN const char* gpsti_step_name(const gpst_pipeline* pipeline, const gpsti_step* step) {
    return step->kind == GPSTI_STEP_FINISH ? "sink" : gpsti_step_bounded(pipeline, step)->name;
}

/* ---- the list ------------------------------------------------------------------------------ */

/* First come jobs that the device is done with: what stands behind them may wait for their end. Then an exclusive item,
   and in the first step those that have begun: while an exclusive item runs no other may stand before them
   (gpsti_queue_may_take). */
GPSTI_PRIVATE int gpsti_queue_rank(const gpsti_step* step, const gpsti_item* item) {
    const bool ahead = item->exclusive || (item->started && step == item->pipeline->plan.steps);
    return item->device_done ? 2 : ahead ? 1 : 0;
}

/* By rank; of those that are not ahead by priority, then first in. */
GPSTI_PRIVATE void gpsti_queue_insert(gpsti_step* step, gpsti_job* job) {
    const gpsti_item* const item = job->item;
    const int rank = gpsti_queue_rank(step, item);
    gpsti_job** link = &step->head;
    if (step->tail && rank == 0 && step->tail->item->shown.priority >= item->shown.priority)
        link = &step->tail->next;
    while (*link && (gpsti_queue_rank(step, (*link)->item) > rank ||
                     (rank == 0 && (*link)->item->shown.priority >= item->shown.priority)))
        link = &(*link)->next;
    job->next = *link;
    *link = job;
    step->n_queued++;
    if (!job->next)
        step->tail = job;
}

GPSTI_INTERN void gpsti_queue_remove(gpsti_step* step, gpsti_job* job) {
    gpsti_job* before = NULL;
    gpsti_job** link = &step->head;
    while (*link != job) {
        before = *link;
        link = &(*link)->next;
    }
    *link = job->next;
    step->n_queued--;
    if (step->tail == job)
        step->tail = before;
    job->item->may_drop = false;
}

GPSTI_INTERN gpsti_job* gpsti_queue_pop(gpsti_step* step) {
    gpsti_job* const job = step->head;
    gpsti_queue_remove(step, job);
    return job;
}

/* ---- an item's turn --------------------------------------------------------------------------- */

GPSTI_INTERN gpsti_camera* gpsti_queue_camera(gpst_pipeline* pipeline, uint32_t camera) {
    gpsti_camera* const seen = &pipeline->items.cameras[camera];
    const bool is_further = !seen->was_seen && pipeline->items.n_cameras > 0;
    if (is_further && pipeline->plan.desc.n_slots == 0 && !pipeline->tune.on) /* cameras may see the same moment */
        pipeline->items.n_slots++;
    seen->was_seen = true;
    if (camera >= pipeline->items.n_cameras)
        pipeline->items.n_cameras = camera + 1;
    return seen;
}

GPSTI_INTERN void gpsti_queue_enter_order(gpsti_item* item) {
    gpsti_camera* const camera = gpsti_queue_camera(item->pipeline, item->shown.camera);
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
GPSTI_PRIVATE void gpsti_queue_wake(gpsti_item* item) {
    if (!item || !item->waits_turn || !gpsti_queue_is_turn(item, item->job.step))
        return;
    item->waits_turn = false;
    gpsti_queue_insert(&item->pipeline->plan.steps[item->job.step], &item->job);
    gpsti_scheduler_wake(item->pipeline->context->scheduler);
}

GPSTI_INTERN void gpsti_queue_leave_order(gpsti_item* item) {
    gpsti_camera* const camera = &item->pipeline->items.cameras[item->shown.camera];
    if (item->newer)
        item->newer->older = item->older;
    else
        camera->newest = item->older;
    if (item->older)
        item->older->newer = item->newer;
    gpsti_queue_wake(item->newer);
    item->older = item->newer = NULL;
}

GPSTI_INTERN void gpsti_queue_pass(const gpsti_step* step, gpsti_item* item) {
    if (!step->ordered)
        return;
    item->passed = item->job.step + 1;
    gpsti_queue_wake(item->newer);
}

/* ---- bounds ------------------------------------------------------------------------------------ */

/* The item is in no queue and no order from now on. Its end is told, and its slot freed, by flight.c. */
GPSTI_PRIVATE void gpsti_queue_give_up(gpsti_item* item, const char* reason) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_step* const step = &pipeline->plan.steps[item->job.step];
    if (!item->waits_turn)
        gpsti_queue_remove(step, &item->job);
    item->waits_turn = item->may_drop = false;
    gpsti_item_fail(item, GPST_DROPPED, gpsti_step_name(pipeline, step), reason);
    gpsti_queue_leave_order(item);
    item->next = NULL;
    if (pipeline->results.dropped)
        pipeline->results.last_dropped->next = item;
    else
        pipeline->results.dropped = item;
    pipeline->results.last_dropped = item;
}

/* Of the camera's items that wait in front of the step, among those of the lowest priority, the oldest or the newest;
   *n: how many wait. */
GPSTI_PRIVATE gpsti_item* gpsti_queue_waiting(const gpst_pipeline* pipeline, uint32_t camera, uint32_t step,
                                              bool newest, uint32_t* n) {
    gpsti_item* found = NULL;
    *n = 0;
    for (gpsti_item* item = pipeline->items.cameras[camera].newest; item; item = item->older) { /* from new to old */
        if (!item->may_drop || item->job.step != step)
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
    const uint32_t executing = gpsti_a32_load(&pipeline->flow.executing);
    uint32_t n = executing < pipeline->flow.n_active ? pipeline->flow.n_active - executing : 0;
    if (step->concurrency > 0 && step->concurrency - step->running < n)
        n = step->concurrency - step->running;
    const uint32_t n_left = step->streams > step->on_device ? step->streams - step->on_device : 0;
    return step->streams > 0 && n_left < n ? n_left : n;
}

/* More wait than may: the oldest or the newest of them is dropped. */
GPSTI_PRIVATE void gpsti_queue_keep_bound(gpsti_step* step, const gpsti_item* arrived) {
    gpst_pipeline* const pipeline = arrived->pipeline;
    const uint32_t camera = arrived->shown.camera, at = arrived->job.step;
    const bool newest = step->full_policy == GPST_FULL_DROP_NEWEST;
    const uint32_t most = step->queue_most + gpsti_queue_n_free(pipeline, step);
    char reason[64];
    uint32_t n = 0;
    gpsti_item* item = gpsti_queue_waiting(pipeline, camera, at, newest, &n);
    for (; n > most; item = gpsti_queue_waiting(pipeline, camera, at, newest, &n)) {
        gpsti_format(reason, sizeof reason, "queue_most=%u: %s came", step->queue_most,
                     newest ? "one too many" : "a newer one");
        gpsti_queue_give_up(item, reason);
    }
}

GPSTI_INTERN bool gpsti_queue_drop_oldest(gpst_pipeline* pipeline, uint32_t camera, int32_t priority,
                                          const char* reason) {
    gpsti_item* found = NULL;
    uint32_t most = 0;
    for (uint32_t k = 0; k < pipeline->items.n_cameras; k++) {
        const uint32_t c = (camera + k) % pipeline->items.n_cameras; /* its own first: others must have more */
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
        gpsti_queue_give_up(found, reason);
    return found != NULL;
}

/* BLOCK: as many items of the camera as may wait in front of that step, or more. Those that wait there for the turn of
   an item behind do not count. */
GPSTI_PRIVATE bool gpsti_queue_is_full(const gpsti_step* step, uint32_t camera) {
    uint32_t n = 0;
    for (const gpsti_job* job = step->head; job; job = job->next)
        n += job->item->shown.camera == camera ? 1 : 0;
    return n >= step->queue_most;
}

/* ---- device memory ------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_queue_park_short(gpsti_item* item) {
    item->waits_memory = true;
    item->next = item->pipeline->memory.short_of_memory;
    item->pipeline->memory.short_of_memory = item;
}

/* Which of them finds enough is not known. */
GPSTI_INTERN bool gpsti_queue_wake_short(gpst_pipeline* pipeline, uint64_t before) {
    gpsti_item** link = &pipeline->memory.short_of_memory;
    bool any = false;
    while (*link) {
        gpsti_item* const item = *link;
        if (item->shown.index >= before) {
            link = &item->next;
            continue;
        }
        *link = item->next;
        item->waits_memory = false;
        gpsti_queue_put(&pipeline->plan.steps[item->job.step], &item->job);
        any = true;
    }
    if (any)
        gpsti_scheduler_wake(pipeline->context->scheduler);
    return any;
}

/* ---- in and out ---------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_queue_put(gpsti_step* step, gpsti_job* job) {
    gpsti_item* const item = job->item;
    const bool is_item = job == &item->job && step->kind != GPSTI_STEP_FINISH;
    job->ready_ns = gpsti_now_ns();
    item->may_drop = is_item && item->arrived != job->step + 1 && !item->exclusive && !gpsti_item_has_failed(item);
    if (job == &item->job)
        item->arrived = job->step + 1;
    if (step->ordered && !gpsti_queue_is_turn(item, job->step)) {
        item->waits_turn = true;
        (void)gpsti_queue_wake_short(item->pipeline, UINT64_MAX); /* memory of an item that waits may be taken */
    } else {
        gpsti_queue_insert(step, job);
    }
    if (item->may_drop && step->queue_most > 0 && step->full_policy != GPST_FULL_BLOCK)
        gpsti_queue_keep_bound(step, item);
}

/* Of the jobs with the highest priority that nothing holds back, one whose camera was served longest ago; with
   deadlines the first, since those that are to be dropped or to wait were chosen in this order. */
GPSTI_PRIVATE gpsti_job* gpsti_queue_choose(const gpsti_step* step) {
    gpsti_job* best = NULL;
    const bool first_in = step->times || (step->head && step->head->item->pipeline->items.n_cameras <= 1);
    if (!step->head || (first_in && !step->held_by))
        return step->head;
    const gpst_pipeline* const pipeline = step->head->item->pipeline;
    for (gpsti_job* job = step->head; job; job = job->next) {
        const gpsti_item* const item = job->item;
        if (item->device_done || item->exclusive)
            return job;
        if (best && best->item->shown.priority > item->shown.priority)
            break;
        if (step->held_by && gpsti_queue_is_full(step->held_by, item->shown.camera))
            continue;
        const uint64_t* const served = pipeline->items.cameras[item->shown.camera].served;
        if (!best ||
            (!first_in && served[job->step] < pipeline->items.cameras[best->item->shown.camera].served[best->step]))
            best = job;
    }
    return best;
}

GPSTI_PRIVATE gpsti_job* gpsti_queue_take_out(gpsti_step* step, gpsti_job* job) {
    gpsti_queue_remove(step, job);
    job->item->pipeline->items.cameras[job->item->shown.camera].served[job->step] = ++step->n_served;
    return job;
}

/* ---- batches ------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_queue_may_join_batch(const gpsti_job* job) {
    return job && !job->item->device_done && !job->item->on_cpu && !job->item->single &&
           !gpsti_item_has_failed(job->item);
}

/* Only while a batch is under way: waiting costs nothing then, and who ends that batch wakes a worker. */
GPSTI_PRIVATE bool gpsti_queue_waits_for_more(const gpsti_step* step) {
    const bool busy = step->on_device > 0 || (step->batch_most > 0 && step->running > 0);
    const uint32_t most = step->head ? step->head->item->pipeline->memory.shortage.batch_most : 0;
    return busy && step->n_queued < gpsti_shortage_limit(step->batch_full, most) &&
           gpsti_queue_may_join_batch(step->head);
}

GPSTI_INTERN gpsti_job* gpsti_queue_take_next_in_batch(gpsti_step* step) {
    gpsti_job* const job = gpsti_queue_choose(step);
    return gpsti_queue_may_join_batch(job) ? gpsti_queue_take_out(step, job) : NULL;
}

GPSTI_INTERN void gpsti_queues_set_batch(gpst_pipeline* pipeline, uint32_t batch) {
    const uint32_t in_three = pipeline->items.n_slots / 3; /* one batch uploads, one is computed, one downloads */
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        gpsti_step* const step = &pipeline->plan.steps[s];
        const bool together = step->kind == GPSTI_STEP_OFFLOAD && pipeline->plan.batch_most > 1 && batch > 1;
        step->batch = !together ? 1 : batch < pipeline->plan.batch_most ? batch : pipeline->plan.batch_most;
        step->batch = step->batch_most > 0 ? step->batch_most : step->batch;
        /* The engine waits for a batch size that the user gave; else what is ready goes at once. */
        const bool waits = pipeline->plan.desc.batch > 0 && pipeline->plan.desc.preset != GPST_PRESET_LATENCY;
        step->batch_full = !waits ? 1 : step->batch < in_three ? step->batch : in_three;
        /* A second batch that is not full would only stand behind the first, and take what should go together. */
        step->batch_full = step->batch_most > 0 ? step->batch_most : step->batch_full;
    }
}

/* ---- deadlines ------------------------------------------------------------------------------ */

#define GPSTI_QUEUE_LOOKED_AT 256 /* items that wait; those behind have their turn later */

GPSTI_PRIVATE int64_t gpsti_queue_deadline(const gpsti_item* item) {
    const int64_t allowed_ns = item->pipeline->plan.desc.deadline_ns, came_ns = item->shown.timestamp_ns;
    return came_ns == 0 || came_ns > INT64_MAX - allowed_ns ? INT64_MAX : came_ns + allowed_ns;
}

/* The first jobs that wait for the first time, in order. */
GPSTI_PRIVATE uint32_t gpsti_queue_list(const gpsti_step* step, gpsti_item** slots, gpsti_batch_item* items) {
    uint32_t n = 0;
    for (gpsti_job* job = step->head; job && n < GPSTI_QUEUE_LOOKED_AT; job = job->next) {
        if (!job->item->may_drop)
            continue;
        slots[n] = job->item;
        items[n].deadline_ns = gpsti_queue_deadline(job->item);
        items[n++].priority = job->item->shown.priority;
    }
    return n;
}

GPSTI_PRIVATE void gpsti_queue_drop_late(gpsti_step* step, gpsti_item* item, bool shed) {
    char reason[96];
    const long long allowed_ns = (long long)item->pipeline->plan.desc.deadline_ns;
    if (shed)
        gpsti_format(reason, sizeof reason, "deadline_ns=%lld: given up, so that more others are in time", allowed_ns);
    else
        gpsti_format(reason, sizeof reason, "deadline_ns=%lld: it would be late even alone", allowed_ns);
    step->n_late += shed ? 0 : 1;
    step->n_shed += shed ? 1 : 0;
    gpsti_queue_give_up(item, reason);
}

GPSTI_INTERN uint32_t gpsti_queue_meet_deadlines(gpsti_step* step) {
    gpsti_item* slots[GPSTI_QUEUE_LOOKED_AT];
    gpsti_batch_item items[GPSTI_QUEUE_LOOKED_AT];
    gpsti_batch_input input;
    if (!step->head->item->may_drop) /* it comes again: alone, or from the device */
        return step->batch;
    const int64_t now_ns = gpsti_now_ns();
    input.busy = step->running > 0 || step->on_device > 0;
    input.start_ns = input.busy && step->free_ns > now_ns ? step->free_ns : now_ns;
    input.items = items;
    input.n_waiting = gpsti_queue_list(step, slots, items);
    input.most = step->batch;
    input.n_late_before = step->n_late_before;
    input.times = step->times;
    const uint32_t n = gpsti_batch_choose(&input);
    step->n_late_before = n > 0 ? 0 : step->n_late_before + input.n_waiting;
    step->free_ns = input.start_ns + gpsti_batch_times_estimate(step->times, n > 0 ? n : 1);
    for (uint32_t i = 0; i < input.n_waiting; i++)
        if (items[i].verdict == GPSTI_BATCH_LATE || items[i].verdict == GPSTI_BATCH_SHED)
            gpsti_queue_drop_late(step, slots[i], items[i].verdict == GPSTI_BATCH_SHED);
    return n;
}

GPSTI_INTERN void gpsti_queue_learn(gpsti_step* step, uint32_t n_items, int64_t start_ns) {
    const int64_t now_ns = gpsti_now_ns();
    step->n_batches++;
    if (step->times) /* it waited for the one before it */
        gpsti_batch_times_add(step->times, n_items, now_ns - (start_ns > step->done_ns ? start_ns : step->done_ns));
    step->done_ns = now_ns;
}

/* ---- what may run -------------------------------------------------------------------------- */

/* An item that reaches a per_picture step is split there, which is no service. */
GPSTI_PRIVATE bool gpsti_queue_is_service(const gpsti_step* step, const gpsti_job* job) {
    return step->gated && !(step->per_picture && job == &job->item->job) && !job->item->device_done;
}

GPSTI_INTERN bool gpsti_queue_has_runnable(const gpsti_step* step) {
    const gpsti_job* const job = gpsti_queue_choose(step);
    if (!job)
        return false;
    if (step->kind == GPSTI_STEP_DECODE)
        return gpsti_decode_choose(step) != GPSTI_DECODE_EITHER;
    const bool on_cpu = step->kind == GPSTI_STEP_OFFLOAD && job->item->on_cpu; /* the limits are the device's */
    if (on_cpu || !gpsti_queue_is_service(step, job))
        return true;
    if (gpsti_queue_waits_for_more(step) || (step->streams > 0 && step->on_device >= step->streams))
        return false;
    return step->concurrency == 0 || step->running < step->concurrency;
}

/* While an exclusive item waits or runs, no other item begins: the first step takes only items that have begun. */
GPSTI_INTERN bool gpsti_queue_may_take(const gpst_pipeline* pipeline, const gpsti_step* step) {
    const bool rests = pipeline->memory.starved || pipeline->memory.exclusive;
    return gpsti_queue_has_runnable(step) && (!rests || step != pipeline->plan.steps || step->head->item->started);
}

/* One batch at a time is a service of the step; what threads decode has no limit. */
GPSTI_PRIVATE gpsti_job* gpsti_queue_take_to_decode(gpsti_step* step) {
    const gpsti_decode_form form = gpsti_decode_choose(step);
    gpsti_job* const job = gpsti_queue_pop(step);
    const gpsti_jpeg_device* const jpeg = &job->item->pipeline->engines;
    step->running += form == GPSTI_DECODE_DEVICE && (jpeg->has_engines || !jpeg->begun) ? 1 : 0;
    job->item->decode = form;
    return job;
}

GPSTI_INTERN gpsti_job* gpsti_queue_take(gpsti_step* step) {
    if (!gpsti_queue_has_runnable(step))
        return NULL;
    if (step->kind == GPSTI_STEP_DECODE)
        return gpsti_queue_take_to_decode(step);
    gpsti_job* const job = gpsti_queue_take_out(step, gpsti_queue_choose(step));
    step->running += gpsti_queue_is_service(step, job) ? 1 : 0;
    return job;
}
