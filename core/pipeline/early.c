/* core/pipeline/early.c -- the engine opened for the others while item 0 is still at work on the thread that called
   run. Owns
   when that is: what is opened, and with what, is the business of tune.c and pipeline.c. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"
#include "../memory/pool_internal.h"

#define GPSTI_EARLY_NS 400000   /* of work: item 0 is long */
#define GPSTI_EARLY_LOOK_NS 50000 /* between two looks, at the least */
#define GPSTI_EARLY_KERNEL_NS 500000 /* while a kernel has every core, one of which who looks takes from it */
#define GPSTI_EARLY_ITEMS 2     /* of a run in which another is waiting for it */

GPSTI_INTERN bool gpsti_early_pays(int64_t work_ns, int64_t beside_ns, int64_t n_left, int64_t price_ns) {
    return work_ns >= GPSTI_EARLY_NS && beside_ns >= price_ns / n_left;
}

/* When it may be long; and then the later the longer it has taken, as far as workers are away so long. */
GPSTI_INTERN int64_t gpsti_early_look_in_ns(int64_t work_ns) {
    const int64_t in_ns = work_ns < GPSTI_EARLY_NS ? GPSTI_EARLY_NS - work_ns : work_ns / 4;
    return in_ns > GPSTI_EARLY_LOOK_NS ? in_ns : GPSTI_EARLY_LOOK_NS;
}

/* Until when item 0 was at what several items can be at side by side: callbacks, reads, writes, and kernels on the CPU
   with one thread each. A device has its own order, so there only the way to it counts. 0 = others are to wait: item 0
   may still ask for memory, and nobody knows the price of that, or is in a kernel on the CPU that has every core. */
GPSTI_PRIVATE int64_t gpsti_early_beside_until_ns(const gpst_pipeline* pipeline, int64_t setup_ns, int64_t now_ns) {
    const int64_t submitted_ns = (int64_t)gpsti_a64_load(&pipeline->early_submitted_ns);
    switch (pipeline->early_step->kind) {
    case GPSTI_STEP_READ:
        return setup_ns > 0 ? now_ns : 0;
    case GPSTI_STEP_OFFLOAD:
        return submitted_ns < now_ns ? submitted_ns : now_ns;
    case GPSTI_STEP_HOST:
    case GPSTI_STEP_WRITE:
    case GPSTI_STEP_FINISH:
        break;
    }
    return now_ns;
}

/* 0 = now; else when to look again. Time in which memory is made is no work, and says that others would make some, too.
   The clock is read first: what is made after that makes item 0 shorter, not longer. */
GPSTI_PRIVATE int64_t gpsti_early_due_in_ns(const gpst_pipeline* pipeline) {
    const int64_t now_ns = gpsti_now_ns();
    const int64_t setup_ns = gpsti_plain_setup_ns(pipeline);
    const int64_t until_ns = gpsti_early_beside_until_ns(pipeline, setup_ns, now_ns);
    const int64_t begun_ns = pipeline->start_ns + setup_ns;
    if (until_ns == 0 && pipeline->early_step->kind == GPSTI_STEP_OFFLOAD && pipeline->device_on_host)
        return GPSTI_EARLY_KERNEL_NS;
    const bool due = until_ns != 0 && !gpsti_tuner_is_dear(GPSTI_STUB_PRICE_NS, now_ns - begun_ns) &&
                     gpsti_early_pays(now_ns - begun_ns, until_ns - begun_ns, (int64_t)gpsti_plain_left(pipeline),
                                      gpsti_tune_price_ns(pipeline));
    return due ? 0 : gpsti_early_look_in_ns(now_ns - begun_ns);
}

/* Item 0 is among those on the device, or its thread among those at work, as if the engine had it. */
GPSTI_PRIVATE void gpsti_early_count(gpst_pipeline* pipeline) {
    gpsti_step* const step = pipeline->early_step;
    const bool on_device = step->kind == GPSTI_STEP_OFFLOAD && !pipeline->device_on_host;
    pipeline->early_counted_in = on_device ? &step->on_device : &pipeline->executing;
    ++*pipeline->early_counted_in;
}

GPSTI_INTERN void gpsti_early_uncount(gpst_pipeline* pipeline) {
    if (pipeline->early_counted_in)
        --*pipeline->early_counted_in;
    pipeline->early_counted_in = NULL;
}

/* The device has had item 0 for so long and has it still: more items than twice what keeps it busy would only take
   memory until the first one is whole. */
GPSTI_PRIVATE void gpsti_early_spare(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    const uint32_t worth = tune->tuner.budget.slots_worth;
    if (pipeline->early_step->kind != GPSTI_STEP_OFFLOAD || tune->modelled)
        return;
    const int64_t now_ns = gpsti_now_ns();
    const uint32_t n = gpsti_tuner_slots_beside(now_ns - pipeline->start_ns - gpsti_plain_setup_ns(pipeline),
                                                now_ns - (int64_t)gpsti_a64_load(&pipeline->early_submitted_ns));
    if (worth == 0 || n < worth)
        gpsti_tuner_afford(&tune->tuner, n);
}

/* More than a disk's time for its bytes: it waits for a network, or its turn, and the others can meanwhile. 0 = it
   does; else when it may. */
GPSTI_PRIVATE int64_t gpsti_early_expect(gpst_pipeline* pipeline) {
    return gpsti_tuner_expect_waits(&pipeline->tune.tuner, gpsti_plain_time_ns(pipeline) - pipeline->tune.source_ns,
                                    gpsti_a64_load(&pipeline->slots[0]->host_bytes));
}

/* Nobody knows yet how long it will. */
GPSTI_PRIVATE bool gpsti_early_reads(const gpst_pipeline* pipeline) {
    return pipeline->early_counted_in && pipeline->early_step->kind == GPSTI_STEP_READ && !pipeline->tune.modelled;
}

GPSTI_INTERN void gpsti_early_look_again(gpst_pipeline* pipeline) {
    if (!gpsti_early_reads(pipeline) || pipeline->tune.tuner.waits_far)
        return;
    gpsti_tune_guess(pipeline);
    gpsti_tune_afford(pipeline);
    const int64_t in_ns = gpsti_early_expect(pipeline);
    if (in_ns == 0)
        gpsti_tune_apply(pipeline);
    else
        gpsti_scheduler_look_in(pipeline->context->scheduler, in_ns);
}

GPSTI_PRIVATE void gpsti_early_open(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    pipeline->early = GPSTI_EARLY_OPENING;
    if (!pipeline->left)
        gpsti_early_count(pipeline);
    gpsti_tune_guess(pipeline);
    if (gpsti_early_reads(pipeline))
        (void)gpsti_early_expect(pipeline);
    gpsti_tune_prepare(pipeline);
    gpsti_early_spare(pipeline);
    gpsti_scheduler_leave(scheduler, GPSTI_EARLY_NS);
    gpsti_mutex_unlock(&scheduler->mutex);
    (void)gpsti_pipeline_open(pipeline); /* else item 0's thread tries itself, and says why it cannot */
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_scheduler_return(scheduler, GPSTI_EARLY_NS);
    pipeline->early = GPSTI_EARLY_OFF;
    if (!pipeline->attached) /* as if nobody had begun */
        gpsti_early_uncount(pipeline);
    gpsti_cond_broadcast(&pipeline->progress);
}

/* A worker looks. */
GPSTI_PRIVATE bool gpsti_early_run_one(gpsti_client* client, uint32_t worker_index) {
    gpst_pipeline* const pipeline = (gpst_pipeline*)client;
    (void)worker_index;
    if (pipeline->early != GPSTI_EARLY_WATCHED)
        return false;
    const int64_t in_ns = gpsti_early_due_in_ns(pipeline);
    if (in_ns > 0) {
        gpsti_scheduler_look_in(pipeline->context->scheduler, in_ns);
        return false;
    }
    gpsti_early_open(pipeline);
    return true;
}

GPSTI_PRIVATE int64_t gpsti_early_backlog_ns(gpsti_client* client) {
    (void)client;
    return 0;
}

/* From a list whose length is known, since another source may wait for its inputs; and item 0 is in nobody's way. */
GPSTI_PRIVATE bool gpsti_early_allows(const gpst_pipeline* pipeline) {
    bool allows = pipeline->tune.starts_plain && pipeline->desc.n_items_expected >= GPSTI_EARLY_ITEMS &&
                  pipeline->tune.tuner.most.value[GPST_KNOB_WORKERS] > 1;
    for (uint32_t s = 0; allows && pipeline->steps[s].kind != GPSTI_STEP_FINISH; s++)
        allows = pipeline->steps[s].concurrency == 0;
    return allows;
}

GPSTI_PRIVATE void gpsti_early_watch(gpst_pipeline* pipeline) {
    pipeline->early = GPSTI_EARLY_WATCHED;
    if (pipeline->listed)
        return;
    pipeline->client.run_one = gpsti_early_run_one;
    pipeline->client.backlog_ns = gpsti_early_backlog_ns;
    pipeline->listed = true;
    gpsti_scheduler_watch(pipeline->context->scheduler, &pipeline->client);
}

GPSTI_INTERN bool gpsti_early_has_begun(const gpst_pipeline* pipeline) {
    return pipeline->attached || pipeline->early == GPSTI_EARLY_OPENING;
}

GPSTI_INTERN void gpsti_early_weigh(gpst_pipeline* pipeline, const gpsti_step* step) {
    const bool is_brief = gpsti_plain_time_ns(pipeline) < GPSTI_EARLY_NS;
    if (!is_brief || step->kind == GPSTI_STEP_FINISH)
        gpsti_recall_note_first(&gpsti_jobs_of(pipeline->context)->recall, pipeline->tune.job, is_brief);
}

/* Who is called to look takes a core's time and the caller's: not for an item 0 that was brief the last time, until it
   is not. */
GPSTI_INTERN void gpsti_early_enter(gpst_pipeline* pipeline, gpsti_step* step) {
    pipeline->early_step = step;
    gpsti_a64_store(&pipeline->early_submitted_ns, 0);
    if (step->kind == GPSTI_STEP_FINISH)
        pipeline->early = GPSTI_EARLY_OFF;
    else if (gpsti_early_allows(pipeline) &&
             !gpsti_recall_is_brief(&gpsti_jobs_of(pipeline->context)->recall, pipeline->tune.job))
        gpsti_early_watch(pipeline);
}

GPSTI_INTERN void gpsti_early_note_submitted(gpst_pipeline* pipeline) {
    gpsti_a64_store(&pipeline->early_submitted_ns, (uint64_t)gpsti_now_ns());
}

GPSTI_INTERN void gpsti_early_note_alone(gpst_pipeline* pipeline) {
    gpsti_a64_store(&pipeline->early_submitted_ns, INT64_MAX);
}

GPSTI_INTERN bool gpsti_early_join(gpst_pipeline* pipeline) {
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    while (pipeline->early == GPSTI_EARLY_OPENING)
        gpsti_cond_wait_until(&pipeline->progress, mutex, GPST_FOREVER);
    pipeline->early = GPSTI_EARLY_OFF;
    const bool attached = pipeline->attached;
    gpsti_mutex_unlock(mutex);
    return attached;
}
