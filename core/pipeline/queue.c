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
GPSTI_PRIVATE int gpsti_queue_rank(const gpsti_step* step, const gpsti_slot* slot) {
    const bool ahead = slot->exclusive || (slot->started && step == slot->pipeline->steps);
    return slot->device_done ? 2 : ahead ? 1 : 0;
}

/* By rank; of those that are not ahead by priority, then first in. */
GPSTI_PRIVATE void gpsti_queue_insert(gpsti_step* step, gpsti_job* job) {
    const gpsti_slot* const slot = job->slot;
    const int rank = gpsti_queue_rank(step, slot);
    gpsti_job** link = &step->head;
    if (step->tail && rank == 0 && step->tail->slot->item.priority >= slot->item.priority)
        link = &step->tail->next;
    while (*link && (gpsti_queue_rank(step, (*link)->slot) > rank ||
                     (rank == 0 && (*link)->slot->item.priority >= slot->item.priority)))
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
    job->slot->may_drop = false;
}

GPSTI_INTERN gpsti_job* gpsti_queue_pop(gpsti_step* step) {
    gpsti_job* const job = step->head;
    gpsti_queue_remove(step, job);
    return job;
}

/* ---- an item's turn --------------------------------------------------------------------------- */

GPSTI_INTERN gpsti_camera* gpsti_queue_camera(gpst_pipeline* pipeline, uint32_t camera) {
    gpsti_camera* const seen = &pipeline->cameras[camera];
    const bool is_further = !seen->was_seen && pipeline->n_cameras > 0;
    if (is_further && pipeline->desc.n_slots == 0 && !pipeline->tune.on) /* cameras may see the same moment */
        pipeline->n_slots++;
    seen->was_seen = true;
    if (camera >= pipeline->n_cameras)
        pipeline->n_cameras = camera + 1;
    return seen;
}

GPSTI_INTERN void gpsti_queue_enter_order(gpsti_slot* slot) {
    gpsti_camera* const camera = gpsti_queue_camera(slot->pipeline, slot->item.camera);
    slot->camera_index = camera->n_items++;
    slot->passed = 0;
    slot->newer = NULL;
    slot->older = camera->newest;
    if (slot->older)
        slot->older->newer = slot;
    camera->newest = slot;
}

/* The older item has passed the step only when those before it have: looking at one is enough. */
GPSTI_PRIVATE bool gpsti_queue_is_turn(const gpsti_slot* slot, uint32_t step) {
    return !slot->older || slot->older->passed > step;
}

/* If the item waits for its turn, and that has come, it queues. */
GPSTI_PRIVATE void gpsti_queue_wake(gpsti_slot* slot) {
    if (!slot || !slot->waits_turn || !gpsti_queue_is_turn(slot, slot->job.step))
        return;
    slot->waits_turn = false;
    gpsti_queue_insert(&slot->pipeline->steps[slot->job.step], &slot->job);
    gpsti_scheduler_wake(slot->pipeline->context->scheduler);
}

GPSTI_INTERN void gpsti_queue_leave_order(gpsti_slot* slot) {
    gpsti_camera* const camera = &slot->pipeline->cameras[slot->item.camera];
    if (slot->newer)
        slot->newer->older = slot->older;
    else
        camera->newest = slot->older;
    if (slot->older)
        slot->older->newer = slot->newer;
    gpsti_queue_wake(slot->newer);
    slot->older = slot->newer = NULL;
}

GPSTI_INTERN void gpsti_queue_pass(const gpsti_step* step, gpsti_slot* slot) {
    if (!step->ordered)
        return;
    slot->passed = slot->job.step + 1;
    gpsti_queue_wake(slot->newer);
}

/* ---- bounds ------------------------------------------------------------------------------------ */

/* The item is in no queue and no order from now on. Its end is told, and its slot freed, by flight.c. */
GPSTI_PRIVATE void gpsti_queue_give_up(gpsti_slot* slot, const char* reason) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpsti_step* const step = &pipeline->steps[slot->job.step];
    if (!slot->waits_turn)
        gpsti_queue_remove(step, &slot->job);
    slot->waits_turn = slot->may_drop = false;
    gpsti_slot_fail(slot, GPST_DROPPED, gpsti_step_name(pipeline, step), reason);
    gpsti_queue_leave_order(slot);
    slot->next = NULL;
    if (pipeline->dropped)
        pipeline->last_dropped->next = slot;
    else
        pipeline->dropped = slot;
    pipeline->last_dropped = slot;
}

/* Of the camera's items that wait in front of the step, among those of the lowest priority, the oldest or the newest;
   *n: how many wait. */
GPSTI_PRIVATE gpsti_slot* gpsti_queue_waiting(const gpst_pipeline* pipeline, uint32_t camera, uint32_t step,
                                              bool newest, uint32_t* n) {
    gpsti_slot* found = NULL;
    *n = 0;
    for (gpsti_slot* slot = pipeline->cameras[camera].newest; slot; slot = slot->older) { /* from new to old */
        if (!slot->may_drop || slot->job.step != step)
            continue;
        (*n)++;
        if (!found || slot->item.priority < found->item.priority ||
            (slot->item.priority == found->item.priority && !newest))
            found = slot;
    }
    return found;
}

/* Items that the step could begin with at once. */
GPSTI_PRIVATE uint32_t gpsti_queue_n_free(const gpst_pipeline* pipeline, const gpsti_step* step) {
    const uint32_t executing = gpsti_a32_load(&pipeline->executing);
    uint32_t n = executing < pipeline->n_active ? pipeline->n_active - executing : 0;
    if (step->concurrency > 0 && step->concurrency - step->running < n)
        n = step->concurrency - step->running;
    const uint32_t n_left = step->streams > step->on_device ? step->streams - step->on_device : 0;
    return step->streams > 0 && n_left < n ? n_left : n;
}

/* More wait than may: the oldest or the newest of them is dropped. */
GPSTI_PRIVATE void gpsti_queue_keep_bound(gpsti_step* step, const gpsti_slot* arrived) {
    gpst_pipeline* const pipeline = arrived->pipeline;
    const uint32_t camera = arrived->item.camera, at = arrived->job.step;
    const bool newest = step->full_policy == GPST_FULL_DROP_NEWEST;
    const uint32_t most = step->queue_most + gpsti_queue_n_free(pipeline, step);
    char reason[64];
    uint32_t n = 0;
    gpsti_slot* slot = gpsti_queue_waiting(pipeline, camera, at, newest, &n);
    for (; n > most; slot = gpsti_queue_waiting(pipeline, camera, at, newest, &n)) {
        gpsti_format(reason, sizeof reason, "queue_most=%u: %s came", step->queue_most,
                     newest ? "one too many" : "a newer one");
        gpsti_queue_give_up(slot, reason);
    }
}

GPSTI_INTERN bool gpsti_queue_drop_oldest(gpst_pipeline* pipeline, uint32_t camera, int32_t priority,
                                          const char* reason) {
    gpsti_slot* found = NULL;
    uint32_t most = 0;
    for (uint32_t k = 0; k < pipeline->n_cameras; k++) {
        const uint32_t c = (camera + k) % pipeline->n_cameras; /* its own first: others must have more */
        gpsti_slot* oldest = NULL;
        uint32_t n = 0;
        for (gpsti_slot* slot = pipeline->cameras[c].newest; slot; slot = slot->older, n++)
            oldest = slot->may_drop && slot->item.priority <= priority ? slot : oldest;
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
        n += job->slot->item.camera == camera ? 1 : 0;
    return n >= step->queue_most;
}

/* ---- device memory ------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_queue_park_short(gpsti_slot* slot) {
    slot->waits_memory = true;
    slot->next = slot->pipeline->short_of_memory;
    slot->pipeline->short_of_memory = slot;
}

/* Which of them finds enough is not known. */
GPSTI_INTERN bool gpsti_queue_wake_short(gpst_pipeline* pipeline, uint64_t before) {
    gpsti_slot** link = &pipeline->short_of_memory;
    bool any = false;
    while (*link) {
        gpsti_slot* const slot = *link;
        if (slot->item.index >= before) {
            link = &slot->next;
            continue;
        }
        *link = slot->next;
        slot->waits_memory = false;
        gpsti_queue_put(&pipeline->steps[slot->job.step], &slot->job);
        any = true;
    }
    if (any)
        gpsti_scheduler_wake(pipeline->context->scheduler);
    return any;
}

/* ---- in and out ---------------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_queue_put(gpsti_step* step, gpsti_job* job) {
    gpsti_slot* const slot = job->slot;
    const bool is_item = job == &slot->job && step->kind != GPSTI_STEP_FINISH;
    job->ready_ns = gpsti_now_ns();
    slot->may_drop = is_item && slot->arrived != job->step + 1 && !slot->exclusive && !gpsti_slot_has_failed(slot);
    if (job == &slot->job)
        slot->arrived = job->step + 1;
    if (step->ordered && !gpsti_queue_is_turn(slot, job->step)) {
        slot->waits_turn = true;
        (void)gpsti_queue_wake_short(slot->pipeline, UINT64_MAX); /* memory of an item that waits may be taken */
    } else {
        gpsti_queue_insert(step, job);
    }
    if (slot->may_drop && step->queue_most > 0 && step->full_policy != GPST_FULL_BLOCK)
        gpsti_queue_keep_bound(step, slot);
}

/* Of the jobs with the highest priority that nothing holds back, one whose camera was served longest ago; with
   deadlines the first, since those that are to be dropped or to wait were chosen in this order. */
GPSTI_PRIVATE gpsti_job* gpsti_queue_choose(const gpsti_step* step) {
    gpsti_job* best = NULL;
    const bool first_in = step->times || (step->head && step->head->slot->pipeline->n_cameras <= 1);
    if (!step->head || (first_in && !step->held_by))
        return step->head;
    const gpst_pipeline* const pipeline = step->head->slot->pipeline;
    for (gpsti_job* job = step->head; job; job = job->next) {
        const gpsti_slot* const slot = job->slot;
        if (slot->device_done || slot->exclusive)
            return job;
        if (best && best->slot->item.priority > slot->item.priority)
            break;
        if (step->held_by && gpsti_queue_is_full(step->held_by, slot->item.camera))
            continue;
        const uint64_t* const served = pipeline->cameras[slot->item.camera].served;
        if (!best ||
            (!first_in && served[job->step] < pipeline->cameras[best->slot->item.camera].served[best->step]))
            best = job;
    }
    return best;
}

GPSTI_PRIVATE gpsti_job* gpsti_queue_take_out(gpsti_step* step, gpsti_job* job) {
    gpsti_queue_remove(step, job);
    job->slot->pipeline->cameras[job->slot->item.camera].served[job->step] = ++step->n_served;
    return job;
}

/* ---- batches ------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_queue_may_join_batch(const gpsti_job* job) {
    return job && !job->slot->device_done && !job->slot->on_cpu && !job->slot->single &&
           !gpsti_slot_has_failed(job->slot);
}

/* Only while a batch is under way: waiting costs nothing then, and who ends that batch wakes a worker. */
GPSTI_PRIVATE bool gpsti_queue_waits_for_more(const gpsti_step* step) {
    const bool busy = step->on_device > 0 || (step->batch_most > 0 && step->running > 0);
    const uint32_t most = step->head ? step->head->slot->pipeline->shortage.batch_most : 0;
    return busy && step->n_queued < gpsti_shortage_limit(step->batch_full, most) &&
           gpsti_queue_may_join_batch(step->head);
}

GPSTI_INTERN gpsti_job* gpsti_queue_take_next_in_batch(gpsti_step* step) {
    gpsti_job* const job = gpsti_queue_choose(step);
    return gpsti_queue_may_join_batch(job) ? gpsti_queue_take_out(step, job) : NULL;
}

GPSTI_INTERN void gpsti_queues_set_batch(gpst_pipeline* pipeline, uint32_t batch) {
    const uint32_t in_three = pipeline->n_slots / 3; /* one batch uploads, one is computed, one downloads */
    for (uint32_t s = 0; s < pipeline->n_steps; s++) {
        gpsti_step* const step = &pipeline->steps[s];
        const bool together = step->kind == GPSTI_STEP_OFFLOAD && pipeline->batch_most > 1 && batch > 1;
        step->batch = !together ? 1 : batch < pipeline->batch_most ? batch : pipeline->batch_most;
        step->batch = step->batch_most > 0 ? step->batch_most : step->batch;
        /* The engine waits for a batch size that the user gave; else what is ready goes at once. */
        const bool waits = pipeline->desc.batch > 0 && pipeline->desc.preset != GPST_PRESET_LATENCY;
        step->batch_full = !waits ? 1 : step->batch < in_three ? step->batch : in_three;
        /* A second batch that is not full would only stand behind the first, and take what should go together. */
        step->batch_full = step->batch_most > 0 ? step->batch_most : step->batch_full;
    }
}

/* ---- deadlines ------------------------------------------------------------------------------ */

#define GPSTI_QUEUE_LOOKED_AT 256 /* items that wait; those behind have their turn later */

GPSTI_PRIVATE int64_t gpsti_queue_deadline(const gpsti_slot* slot) {
    const int64_t allowed_ns = slot->pipeline->desc.deadline_ns, came_ns = slot->item.timestamp_ns;
    return came_ns == 0 || came_ns > INT64_MAX - allowed_ns ? INT64_MAX : came_ns + allowed_ns;
}

/* The first jobs that wait for the first time, in order. */
GPSTI_PRIVATE uint32_t gpsti_queue_list(const gpsti_step* step, gpsti_slot** slots, gpsti_batch_item* items) {
    uint32_t n = 0;
    for (gpsti_job* job = step->head; job && n < GPSTI_QUEUE_LOOKED_AT; job = job->next) {
        if (!job->slot->may_drop)
            continue;
        slots[n] = job->slot;
        items[n].deadline_ns = gpsti_queue_deadline(job->slot);
        items[n++].priority = job->slot->item.priority;
    }
    return n;
}

GPSTI_PRIVATE void gpsti_queue_drop_late(gpsti_step* step, gpsti_slot* slot, bool shed) {
    char reason[96];
    const long long allowed_ns = (long long)slot->pipeline->desc.deadline_ns;
    if (shed)
        gpsti_format(reason, sizeof reason, "deadline_ns=%lld: given up, so that more others are in time", allowed_ns);
    else
        gpsti_format(reason, sizeof reason, "deadline_ns=%lld: it would be late even alone", allowed_ns);
    step->n_late += shed ? 0 : 1;
    step->n_shed += shed ? 1 : 0;
    gpsti_queue_give_up(slot, reason);
}

GPSTI_INTERN uint32_t gpsti_queue_meet_deadlines(gpsti_step* step) {
    gpsti_slot* slots[GPSTI_QUEUE_LOOKED_AT];
    gpsti_batch_item items[GPSTI_QUEUE_LOOKED_AT];
    gpsti_batch_input input;
    if (!step->head->slot->may_drop) /* it comes again: alone, or from the device */
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
    return step->gated && !(step->per_picture && job == &job->slot->job) && !job->slot->device_done;
}

GPSTI_INTERN bool gpsti_queue_has_runnable(const gpsti_step* step) {
    const gpsti_job* const job = gpsti_queue_choose(step);
    if (!job)
        return false;
    if (step->kind == GPSTI_STEP_DECODE)
        return gpsti_decode_choose(step) != GPSTI_DECODE_EITHER;
    const bool on_cpu = step->kind == GPSTI_STEP_OFFLOAD && job->slot->on_cpu; /* the limits are the device's */
    if (on_cpu || !gpsti_queue_is_service(step, job))
        return true;
    if (gpsti_queue_waits_for_more(step) || (step->streams > 0 && step->on_device >= step->streams))
        return false;
    return step->concurrency == 0 || step->running < step->concurrency;
}

/* While an exclusive item waits or runs, no other item begins: the first step takes only items that have begun. */
GPSTI_INTERN bool gpsti_queue_may_take(const gpst_pipeline* pipeline, const gpsti_step* step) {
    const bool rests = pipeline->starved || pipeline->exclusive;
    return gpsti_queue_has_runnable(step) && (!rests || step != pipeline->steps || step->head->slot->started);
}

/* One batch at a time is a service of the step; what threads decode has no limit. */
GPSTI_PRIVATE gpsti_job* gpsti_queue_take_to_decode(gpsti_step* step) {
    const gpsti_decode_form form = gpsti_decode_choose(step);
    gpsti_job* const job = gpsti_queue_pop(step);
    const gpsti_jpeg_device* const jpeg = &job->slot->pipeline->jpeg_device;
    step->running += form == GPSTI_DECODE_DEVICE && (jpeg->has_engines || !jpeg->begun) ? 1 : 0;
    job->slot->decode = form;
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
