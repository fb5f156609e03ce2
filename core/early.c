/* core/early.c -- the engine opened for the others while item 0 is still at work on the thread that called run. Owns
   when that is: what is opened, and with what, is the business of tune.c and pipeline.c. */
#include "platform_internal.h"

#include "pipeline_internal.h"
#include "pool_internal.h"

#define GPSTI_EARLY_NS 400000   /* of work: item 0 is long */
#define GPSTI_EARLY_ITEMS 3     /* of a run in which others are waiting for it */

/* All but the last one locked. */

GPSTI_INTERN bool gpsti_early_pays(int64_t work_ns, int64_t n_left, int64_t price_ns) {
    return work_ns >= GPSTI_EARLY_NS && work_ns >= price_ns / n_left;
}

/* Only callbacks, reads and writes: those of several items go on side by side. A device has its own order, and a kernel
   on the CPU every core already. Time in which memory is made is no work, and says that others would make some, too;
   what a read has not asked for yet, nobody knows the price of. */
GPSTI_PRIVATE bool gpsti_early_is_due(const gpst_pipeline* pipeline) {
    const gpsti_step_kind kind = pipeline->early_step->kind;
    const int64_t setup_ns = gpsti_plain_setup_ns(pipeline);
    const int64_t work_ns = gpsti_now_ns() - pipeline->start_ns - setup_ns;
    return kind != GPSTI_STEP_OFFLOAD && (kind != GPSTI_STEP_READ || setup_ns > 0) &&
           !gpsti_pool_is_growing(pipeline->pool) &&
           gpsti_early_pays(work_ns, (int64_t)gpsti_plain_left(pipeline), gpsti_tune_price_ns(pipeline));
}

GPSTI_PRIVATE void gpsti_early_open(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const bool at_work = !pipeline->left; /* item 0's thread, which is one of those that may be */
    pipeline->early = GPSTI_EARLY_OPENING;
    pipeline->executing += at_work ? 1 : 0;
    gpsti_tune_guess(pipeline);
    gpsti_tune_prepare(pipeline);
    gpsti_scheduler_leave(scheduler, GPSTI_EARLY_NS);
    gpsti_mutex_unlock(&scheduler->mutex);
    (void)gpsti_pipeline_open(pipeline); /* else item 0's thread tries itself, and says why it cannot */
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_scheduler_return(scheduler, GPSTI_EARLY_NS);
    pipeline->early = GPSTI_EARLY_OFF;
    if (at_work && !pipeline->attached && !pipeline->left) /* as if nobody had begun */
        pipeline->executing--;
    gpsti_cond_broadcast(&pipeline->progress);
}

/* A worker looks. */
GPSTI_PRIVATE bool gpsti_early_run_one(gpsti_client* client, uint32_t worker_index) {
    gpst_pipeline* const pipeline = (gpst_pipeline*)client;
    (void)worker_index;
    if (pipeline->early != GPSTI_EARLY_WATCHED)
        return false;
    if (gpsti_early_is_due(pipeline)) {
        gpsti_early_open(pipeline);
        return true;
    }
    pipeline->context->scheduler->wants_watch = true;
    return false;
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

GPSTI_INTERN void gpsti_early_enter(gpst_pipeline* pipeline, const gpsti_step* step) {
    pipeline->early_step = step;
    if (step->kind == GPSTI_STEP_FINISH)
        pipeline->early = GPSTI_EARLY_OFF;
    else if (gpsti_early_allows(pipeline))
        gpsti_early_watch(pipeline);
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
