/* core/pipeline/tune_guard.c -- what stands between an engine and the guard's policy: the
   engine runs empty, a plain loop takes some items, and the clock says what that took. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#define GPSTI_TUNE_STAY_ITEMS 64 /* of a plain loop that stays, between two looks at its clock */
#define GPSTI_TUNE_STAY_DRIFT 0.20
#define GPSTI_TUNE_COME_NS 10000000 /* of a run: by then workers that were called are there, whoever had their cores */
#define GPSTI_TUNE_BEHIND 0.80 /* of the engine's time for an item: a plain loop that took less is to be looked at */

/* ---- asking --------------------------------------------------------------------------------- */

/* Service time of kernels on the CPU: what threads inside would share. */
GPSTI_PRIVATE int64_t gpsti_tune_kernel_ns(const gpst_pipeline* pipeline) {
    int64_t total_ns = 0;
    for (uint32_t s = 0; pipeline->device_on_host && s < pipeline->n_steps; s++)
        for (uint32_t c = 0;
             pipeline->steps[s].kind == GPSTI_STEP_OFFLOAD && c < pipeline->steps[s].n_stages; c++)
            total_ns += pipeline->clocks[pipeline->steps[s].first_clock + 1 + c].busy_ns;
    return total_ns;
}

/* One item's services, one after the other, as they were side by side: a plain loop has less in its way, so that what
   it really took is believed where it is less. With every core inside kernels it is where it is more: on a machine that
   others use, too, some core always comes late. */
GPSTI_PRIVATE void gpsti_tune_expect(const gpst_pipeline* pipeline, const gpsti_tuner_window* window,
                                     gpsti_guard_input* out) {
    const double n_items = (double)window->n_items, cores = (double)pipeline->context->info.cores_allowed;
    const double known_ns = pipeline->tune.serial_ns;
    double serial_ns = 0.0;
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++)
        serial_ns += (double)(r >= (int)GPST_RESOURCE_H2D && r <= (int)GPST_RESOURCE_D2H
                                  ? window->busy_ns[r]
                                  : window->service_ns[r]);
    out->plain_ns[0] = serial_ns / n_items;
    if (pipeline->source_clock.count > 0)
        out->plain_ns[0] += (double)pipeline->source_clock.busy_ns / (double)pipeline->source_clock.count;
    if (known_ns > 0.0 && known_ns < out->plain_ns[0])
        out->plain_ns[0] = known_ns;
    out->plain_ns[1] = 0.0;
#if defined(_OPENMP)
    const uint64_t n_done = pipeline->items_ok + pipeline->items_failed;
    const double kernel_ns = (double)gpsti_tune_kernel_ns(pipeline) / (double)(n_done > 0 ? n_done : 1);
    const double shared_ns = out->plain_ns[0] - kernel_ns * (1.0 - 1.0 / cores), seen_ns = pipeline->tune.inside_ns;
    if (kernel_ns > 0.0 && cores > 1.0)
        out->plain_ns[1] = shared_ns > seen_ns ? shared_ns : seen_ns;
#else
    (void)cores;
#endif
}

GPSTI_PRIVATE void gpsti_tune_pause(gpst_pipeline* pipeline, uint32_t loop, uint64_t n_items) {
    gpsti_tune* const tune = &pipeline->tune;
    tune->paused = true;
    tune->block_loop = loop;
    tune->block_items = n_items;
    tune->paused_ns = gpsti_now_ns();
    tune->paused_items = pipeline->items_ok + pipeline->items_failed;
}

GPSTI_PRIVATE void gpsti_tune_set_loop(gpst_pipeline* pipeline, uint32_t loop, const char* reason) {
    gpsti_tuner* const tuner = &pipeline->tune.tuner;
    const gpst_guard_report* const report = &pipeline->tune.guard.report;
    const uint32_t before = tuner->now.value[GPST_KNOB_LOOP];
    const uint32_t plain = loop != (uint32_t)GPST_RUN_ENGINE ? loop : before;
    const double plain_ns =
        plain == (uint32_t)GPST_RUN_PLAIN_INSIDE ? report->plain_inside_ns : report->plain_serial_ns;
    tuner->n_items = pipeline->items_ok + pipeline->items_failed;
    gpst_tuner_decision* const decision = gpsti_tuner_note(tuner, GPST_KNOB_LOOP, before, loop);
    decision->items_per_s_before = report->engine_ns > 0.0 ? 1e9 / report->engine_ns : 0.0;
    decision->items_per_s_after = plain_ns > 0.0 ? 1e9 / plain_ns : 0.0;
    gpsti_copy_text(decision->reason, sizeof decision->reason, reason);
    tuner->now.value[GPST_KNOB_LOOP] = tuner->kept.value[GPST_KNOB_LOOP] = loop;
}

/* The guard has decided. */
GPSTI_PRIVATE void gpsti_tune_obey(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_tune_set_loop(pipeline, tune->guard.loop, tune->guard.report.text);
    if (tune->guard.loop == (uint32_t)GPST_RUN_ENGINE)
        return;
    tune->plain_ns = 0.0;
    tune->n_drifted = 0;
    gpsti_tune_pause(pipeline, tune->guard.loop, GPSTI_TUNE_STAY_ITEMS);
}

/* Some have not ended an item yet: what brief ones took is less than the engine. */
GPSTI_PRIVATE bool gpsti_tune_waits_for_workers(const gpst_pipeline* pipeline) {
    return pipeline->whole && pipeline->n_served < pipeline->n_slots &&
           pipeline->end_ns - pipeline->start_ns < GPSTI_TUNE_COME_NS;
}

/* On trial is a move and not the engine: one that lost is taken back first. */
GPSTI_INTERN bool gpsti_tune_is_behind(const gpst_pipeline* pipeline) {
    const gpsti_tune* const tune = &pipeline->tune;
    const double wall_ns = (double)(pipeline->end_ns - tune->start_ns);
    return tune->starts_plain && !tune->guard.decided && tune->tuner.state != GPSTI_TUNER_TRIAL &&
           !gpsti_tune_waits_for_workers(pipeline) && tune->serial_ns > 0.0 &&
           wall_ns * GPSTI_TUNE_BEHIND > tune->serial_ns * (double)tune->n_items;
}

GPSTI_INTERN void gpsti_tune_guard(gpst_pipeline* pipeline, const gpsti_tuner_window* window) {
    gpsti_tune* const tune = &pipeline->tune;
    const uint64_t expected = pipeline->desc.n_items_expected;
    gpsti_guard_input input;
    uint64_t n_items = 0;
    if (tune->guard.decided)
        return;
    input.engine_ns = (double)window->wall_ns / (double)window->n_items;
    input.elapsed_ns = pipeline->end_ns - pipeline->start_ns;
    input.n_left = expected > pipeline->next_index ? expected - pipeline->next_index : 0;
    gpsti_tune_expect(pipeline, window, &input);
    const uint32_t loop = gpsti_guard_ask(&tune->guard, &input, &n_items);
    if (n_items > 0)
        gpsti_tune_pause(pipeline, loop, n_items);
    if (tune->guard.decided)
        gpsti_tune_obey(pipeline);
}

/* ---- a block ---------------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_tune_is_empty(const gpst_pipeline* pipeline) {
    return pipeline->tune.paused && pipeline->in_flight == 0 && pipeline->executing == 0 &&
           !pipeline->source_running;
}

GPSTI_PRIVATE void gpsti_tune_resume(gpst_pipeline* pipeline) {
    pipeline->tune.paused = false;
    pipeline->tune.n_to_settle = pipeline->n_active;
    gpsti_flow_call_workers(pipeline);
}

/* A plain loop that stays is looked at as the frozen engine is: two blocks in a row that take longer are drift. That
   brief items are briefer now is no reason to leave it, nor is what still is less than the engine took. */
GPSTI_PRIVATE void gpsti_tune_watch(gpst_pipeline* pipeline, double item_ns) {
    gpsti_tune* const tune = &pipeline->tune;
    if (tune->plain_ns <= 0.0) {
        tune->plain_ns = item_ns;
        return;
    }
    const bool drifts =
        item_ns > (1.0 + GPSTI_TUNE_STAY_DRIFT) * tune->plain_ns && item_ns > tune->guard.report.engine_ns;
    tune->n_drifted = drifts ? tune->n_drifted + 1 : 0;
    if (tune->n_drifted < 2)
        return;
    gpsti_tune_set_loop(pipeline, (uint32_t)GPST_RUN_ENGINE,
                        "looks again: the plain loop's clock has drifted");
    gpsti_guard_forget(&tune->guard);
    gpsti_tune_resume(pipeline);
}

/* What the block took from the run: the time from the pause on in which the engine would have done more, and about
   one item's way until it is as full as before. */
GPSTI_PRIVATE void gpsti_tune_note_block(gpst_pipeline* pipeline, uint64_t n_items, int64_t block_ns) {
    gpsti_tune* const tune = &pipeline->tune;
    const uint64_t n_since = pipeline->items_ok + pipeline->items_failed - tune->paused_items;
    const double engine_ns = tune->guard.engine_sum_ns / (double)tune->guard.n_windows;
    const double paused_ns = (double)(gpsti_now_ns() - tune->paused_ns);
    const double item_ns = (double)block_ns / (double)n_items;
    gpsti_guard_note(&tune->guard, tune->block_loop, n_items, block_ns,
                     (int64_t)(paused_ns - (double)n_since * engine_ns + item_ns));
    if (tune->block_loop == (uint32_t)GPST_RUN_PLAIN_SERIAL)
        tune->serial_ns = item_ns;
    else
        tune->inside_ns = item_ns;
    if (tune->guard.decided)
        gpsti_tune_obey(pipeline);
    else
        gpsti_tune_resume(pipeline);
}

GPSTI_INTERN void gpsti_tune_run_block(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const uint64_t n_before = pipeline->items_ok + pipeline->items_failed;
    const bool inside = tune->block_loop == (uint32_t)GPST_RUN_PLAIN_INSIDE;
    const int64_t start_ns = gpsti_now_ns();
    pipeline->exec.n_threads = inside ? pipeline->context->info.cores_allowed : 1;
    gpsti_mutex_unlock(&scheduler->mutex);
    gpsti_reader_pause_ahead(pipeline->reader, true); /* a plain loop has nobody who reads ahead for it */
    (void)gpsti_plain_within(pipeline, tune->block_items, 0);
    gpsti_mutex_lock(&scheduler->mutex);
    pipeline->exec.n_threads = tune->tuner.now.value[GPST_KNOB_INSIDE];
    const uint64_t n_items = pipeline->items_ok + pipeline->items_failed - n_before;
    const int64_t block_ns = gpsti_now_ns() - start_ns;
    if (n_items == 0) { /* the source is dry, or the run cancelled */
        gpsti_tune_resume(pipeline);
    } else if (tune->guard.decided) {
        tune->guard.report.plain_items += n_items;
        gpsti_tune_watch(pipeline, (double)block_ns / (double)n_items);
    } else {
        gpsti_tune_note_block(pipeline, n_items, block_ns);
    }
}
