/* core/pipeline/tune_start.c -- the start of a tuned run: plain, until what is left is worth an
   engine, and then the engine, or why there is none. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

/* What opening the engine costs, about: threads for reads and writes, workers that wake, queues; on a device in stages
   as much again. Of whole items only that workers wake. */
#define GPSTI_TUNE_OPEN_NS 500000
#define GPSTI_TUNE_OPEN_WHOLE_NS 100000

GPSTI_PRIVATE void gpsti_tune_stayed_plain(gpst_pipeline* pipeline, const char* reason) {
    gpsti_tune* const tune = &pipeline->tune;
    const bool inside = pipeline->plain_inside_cpu_ns > 0;
    const uint32_t loop = (uint32_t)(inside ? GPST_RUN_PLAIN_INSIDE : GPST_RUN_PLAIN_SERIAL);
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    tune->tuner.n_items = pipeline->items_ok + pipeline->items_failed;
    tune->tuner.state = GPSTI_TUNER_BASE; /* whatever was given: nothing was found */
    tune->tuner.now.value[GPST_KNOB_LOOP] = loop;
    gpst_tuner_decision* const decision = gpsti_tuner_note(&tune->tuner, GPST_KNOB_LOOP, loop, loop);
    gpsti_copy_text(decision->reason, sizeof decision->reason, reason);
    gpsti_format(tune->guard.report.text, sizeof tune->guard.report.text, "plain-%s: %s", inside ? "inside" : "serial",
                 reason);
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
}

/* No engine to be had: the plain loop can do the rest as well. An item it left to the workers it ends itself. */
GPSTI_PRIVATE void gpsti_tune_stay_plain(gpst_pipeline* pipeline) {
    char reason[128];
    gpsti_format(reason, sizeof reason, "no engine: %.100s", gpst_last_reason());
    GPSTI_LOG(&pipeline->context->host, GPST_LOG_WARNING, GPSTI_NO_ITEM, "gpst_pipeline_run: %s", reason);
    gpsti_tune_stayed_plain(pipeline, reason);
    (void)gpsti_plain_within(pipeline, UINT64_MAX, 0);
}

GPSTI_INTERN int64_t gpsti_tune_open_ns(const gpst_pipeline* pipeline, bool whole) {
    if (whole)
        return GPSTI_TUNE_OPEN_WHOLE_NS;
    return (pipeline->tune.tuner.budget.streams ? 2 : 1) * GPSTI_TUNE_OPEN_NS;
}

/* Whoever made the memory, the next runs find it, and it is they who pay where this one is too short: a price that was
   high once (the system had no page at hand) would keep every run of the job plain. */
GPSTI_INTERN int64_t gpsti_tune_memory_ns(const gpst_pipeline* pipeline) {
    (void)pipeline;
    return gpsti_tuner_setups_ns(GPSTI_STUB_PRICE_NS);
}

GPSTI_INTERN int64_t gpsti_tune_price_ns(const gpst_pipeline* pipeline) {
    return GPSTI_TUNE_OPEN_NS + gpsti_tune_memory_ns(pipeline);
}

/* Is memory dear, and nothing given or known yet of how many slots there are to be? */
GPSTI_PRIVATE bool gpsti_tune_must_spare(const gpst_pipeline* pipeline) {
    const gpsti_tuner_budget* const budget = &pipeline->tune.tuner.budget;
    return !pipeline->tune.modelled && budget->streams && pipeline->context->device_info.locks_host &&
           budget->fixed.value[GPST_KNOB_SLOTS] == 0;
}

/* Of item 0's work what several could do side by side, which the source is not; what a read has not asked for yet,
   nobody knows the price of. */
GPSTI_PRIVATE int64_t gpsti_tune_beside_ns(const gpst_pipeline* pipeline, int64_t work_ns, int64_t setup_ns) {
    const bool has_begun = setup_ns > 0 || pipeline->steps[0].kind != GPSTI_STEP_READ;
    return has_begun && work_ns > pipeline->tune.source_ns ? work_ns - pipeline->tune.source_ns : 1;
}

/* Item 0 is in the first slot. An item is thought to take as long as its memory at the least, unless that is dear. */
GPSTI_INTERN void gpsti_tune_guess(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    const int64_t setup_ns = (int64_t)gpsti_a64_load(&pipeline->slots[0]->setup_ns);
    const int64_t work_ns = gpsti_now_ns() - pipeline->start_ns - setup_ns;
    tune->guessed = true;
    tune->sparing = gpsti_tune_must_spare(pipeline);
    tune->item_ns = tune->sparing        ? gpsti_tune_beside_ns(pipeline, work_ns, setup_ns)
                    : work_ns > setup_ns ? work_ns
                                         : setup_ns;
    if (tune->sparing || !pipeline->context->device_info.locks_host)
        gpsti_tune_set_filling(pipeline, tune->sparing ? tune->item_ns : work_ns);
}

GPSTI_INTERN bool gpsti_tune_holds_back(const gpst_pipeline* pipeline) {
    const gpsti_tune* const tune = &pipeline->tune;
    const bool in_turn = pipeline->n_filling > 0 && pipeline->n_served + pipeline->n_filling < pipeline->n_slots;
    return tune->sparing && (in_turn || pipeline->n_slots < tune->tuner.now.value[GPST_KNOB_SLOTS]);
}

/* While item 0 goes on it is seen to be longer, and more of them side by side are worth their memory. Not while some is
   being made: who came in now would wait behind that. */
GPSTI_INTERN void gpsti_tune_let_in(gpst_pipeline* pipeline) {
    if (!gpsti_tune_holds_back(pipeline))
        return;
    gpsti_scheduler_look_in(pipeline->context->scheduler, 0);
    gpsti_tune_guess(pipeline);
    if (gpsti_tune_slots_now(pipeline) > pipeline->n_slots)
        gpsti_tune_apply(pipeline);
}

/* No plain item has to tell what is known. */
GPSTI_PRIVATE bool gpsti_tune_start_at_once(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    const bool recalls = gpsti_tune_recall(pipeline);
    if (recalls)
        gpsti_tune_set_files(pipeline);
    gpsti_mutex_unlock(&scheduler->mutex);
    return recalls && !GPST_FAILED(gpsti_pipeline_open(pipeline));
}

GPSTI_INTERN bool gpsti_tune_start(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const int64_t cpu_start_ns = gpsti_thread_cpu_ns();
    if (gpsti_tune_start_at_once(pipeline))
        return true;
    if (!gpsti_plain_within(pipeline, UINT64_MAX, GPSTI_TUNE_OPEN_NS)) {
        pipeline->plain_cpu_ns = gpsti_thread_cpu_ns() - cpu_start_ns; /* better than samples */
        gpsti_tune_stayed_plain(pipeline, "the run is too small for threads");
        return false;
    }
    if (gpsti_early_join(pipeline))
        return true;
    gpsti_mutex_lock(&scheduler->mutex);
    if (pipeline->items_ok == 0 && gpsti_tune_must_spare(pipeline)) /* item 0 is left to the workers */
        gpsti_tune_guess(pipeline);
    gpsti_tune_prepare(pipeline);
    gpsti_mutex_unlock(&scheduler->mutex);
    if (!GPST_FAILED(gpsti_pipeline_open(pipeline)))
        return true;
    gpsti_tune_stay_plain(pipeline);
    return false;
}
