/* core/pipeline/tune.c -- between the engine and the policies of core/tuning: reads the clocks, puts values to work,
   pauses the source for the guard's plain blocks. Decides nothing: tuner.c, window.c and guard.c do. */
#include "../base/platform_internal.h"

#include "engine_internal.h"

#include <string.h>

/* ---- the desc --------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_tune_budget(const gpst_pipeline* pipeline, const gpst_pipeline_desc* desc,
                                     gpsti_tuner_budget* out) {
    memset(out, 0, sizeof *out);
    out->cores = pipeline->context->info.cores_allowed;
    out->workers = pipeline->plan.n_workers;
    out->outputs = pipeline->plan.n_parts;
    out->reads = gpsti_report_has(pipeline, GPST_RESOURCE_DISK_IN);
    out->writes = gpsti_report_has(pipeline, GPST_RESOURCE_DISK_OUT);
    out->syncs = out->writes && desc->fsync != GPST_FSYNC_NONE;
    out->streams = gpsti_report_has(pipeline, GPST_RESOURCE_GPU) && pipeline->context->device_info.asynchronous;
    out->inside = pipeline->plan.kernel_threads;
    out->batch = pipeline->plan.batch_most;
    out->preset = desc->preset;
    out->fixed.value[GPST_KNOB_SLOTS] = desc->n_slots;
    out->fixed.value[GPST_KNOB_READS] = out->reads ? desc->n_reads : 0;
    out->fixed.value[GPST_KNOB_WRITES] = out->writes ? desc->n_writes : 0;
    out->fixed.value[GPST_KNOB_BATCH] = out->batch > 1 ? desc->batch : 0;
}

GPSTI_INTERN gpst_result gpsti_tune_check(const gpst_pipeline_desc* desc, const char* function) {
    const int tune = (int)desc->tune, preset = (int)desc->preset;
    const uint32_t loop = desc->settings.value[GPST_KNOB_LOOP];
    GPSTI_FAIL_IF(tune < 0 || tune > (int)GPST_TUNE_OFF, GPST_ERROR_ARGUMENT, "%s: tune=%d: unknown", function, tune);
    GPSTI_FAIL_IF(preset < 0 || preset > (int)GPST_PRESET_THROUGHPUT, GPST_ERROR_ARGUMENT, "%s: preset=%d: unknown",
                  function, preset);
    GPSTI_FAIL_IF(loop > (uint32_t)GPST_RUN_PLAIN_INSIDE, GPST_ERROR_ARGUMENT, "%s: settings.value[LOOP]=%u: unknown",
                  function, loop);
    return GPST_OK;
}

GPSTI_PRIVATE bool gpsti_tune_is_wanted(const gpst_pipeline_desc* desc) {
    return desc->tune == GPST_TUNE_ON ||
           (desc->tune == GPST_TUNE_DEFAULT && desc->mode == GPST_RUN_DEFAULT && desc->source);
}

GPSTI_INTERN gpst_run_mode gpsti_tune_loop(const gpst_pipeline_desc* desc) {
    const gpst_run_mode loop = (gpst_run_mode)desc->settings.value[GPST_KNOB_LOOP];
    return gpsti_tune_is_wanted(desc) && desc->source && loop != GPST_RUN_DEFAULT ? loop : GPST_RUN_ENGINE;
}

GPSTI_PRIVATE bool gpsti_tune_is_given(const gpst_settings* settings) {
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
        if (settings->value[k] != 0)
            return true;
    return false;
}

/* capacity: as many as the tuner may ever ask for; without a tuner, as many as the run starts with. */
GPSTI_INTERN void gpsti_tune_init(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpsti_tuner* const tuner = &pipeline->tune->tuner;
    gpsti_tuner_budget budget;
    if (pipeline->plan.desc.mode != GPST_RUN_ENGINE) {
        tuner->now.value[GPST_KNOB_LOOP] = (uint32_t)pipeline->plan.desc.mode;
        pipeline->items.n_slots = pipeline->items.capacity = 1;
        return;
    }
    gpsti_tune_budget(pipeline, desc, &budget);
    gpsti_tuner_init(tuner, &budget);
    pipeline->tune->on = gpsti_tune_is_wanted(desc);
    if (!pipeline->tune->on) { /* nothing moves: as many as are named, or the default */
        tuner->now.value[GPST_KNOB_STREAMS] = 0;
        tuner->now.value[GPST_KNOB_WRITES] = budget.writes ? pipeline->plan.desc.n_writes : 0;
        tuner->now.value[GPST_KNOB_BATCH] = budget.batch > 1 && desc->batch > 0 ? desc->batch : 1;
        tuner->now.value[GPST_KNOB_SLOTS] = pipeline->items.n_slots;
        tuner->n_decisions = 0;
    } else if (gpsti_tune_is_given(&desc->settings)) {
        gpsti_tuner_load(tuner, &desc->settings);
    }
    pipeline->plan.kernel_threads = tuner->now.value[GPST_KNOB_INSIDE];
    pipeline->items.n_slots = tuner->now.value[GPST_KNOB_SLOTS];
    pipeline->items.capacity = pipeline->tune->on ? tuner->most.value[GPST_KNOB_SLOTS] : pipeline->items.n_slots;
}

/* ---- values put to work -------------------------------------------------------------------------- */

/* A knob that could not be moved stays where it was for the rest of the run. */
GPSTI_PRIVATE void gpsti_tune_refused(gpst_pipeline* pipeline, gpst_knob knob, uint32_t value) {
    gpsti_tuner* const tuner = &pipeline->tune->tuner;
    gpst_tuner_decision* const decision = gpsti_tuner_add_decision(tuner, knob, value, value);
    gpsti_format(decision->reason, sizeof decision->reason, "%u refused: %.80s", tuner->now.value[knob],
                 gpst_last_reason());
    tuner->now.value[knob] = tuner->most.value[knob] = value;
}

GPSTI_PRIVATE void gpsti_tune_apply(gpsti_locked locked, gpst_pipeline* pipeline) {
    const uint32_t* const now = pipeline->tune->tuner.now.value;
    gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    const uint32_t reads = now[GPST_KNOB_READS], writes = now[GPST_KNOB_WRITES];
    if (GPST_FAILED(gpsti_items_make(pipeline, now[GPST_KNOB_SLOTS])))
        gpsti_tune_refused(pipeline, GPST_KNOB_SLOTS, pipeline->items.n_made);
    pipeline->items.n_slots = now[GPST_KNOB_SLOTS];
    if (reads > 0 && reads != desc->n_reads && GPST_FAILED(gpst_reader_set_in_flight(pipeline->files.reader, reads)))
        gpsti_tune_refused(pipeline, GPST_KNOB_READS, desc->n_reads);
    if (writes > 0 && writes != desc->n_writes &&
        GPST_FAILED(gpsti_writer_set_in_flight(pipeline->files.writer, writes)))
        gpsti_tune_refused(pipeline, GPST_KNOB_WRITES, desc->n_writes);
    desc->n_reads = reads > 0 ? now[GPST_KNOB_READS] : desc->n_reads;
    desc->n_writes = writes > 0 ? now[GPST_KNOB_WRITES] : desc->n_writes;
    pipeline->plan.n_active = now[GPST_KNOB_WORKERS];
    for (uint32_t s = 0; s + 1 < pipeline->plan.n_steps; s++) { /* what the stages imply, else what the knob says */
        gpsti_step* const step = &pipeline->plan.steps[s];
        const uint32_t depth = gpsti_step_depth(&pipeline->plan, step);
        if (step->kind->joins)
            step->streams = depth > 0 ? depth : now[GPST_KNOB_STREAMS];
    }
    gpsti_plan_set_batch(pipeline, now[GPST_KNOB_BATCH]);
    pipeline->counts.frozen = false;
    gpsti_scheduler_wake(locked);
}

/* ---- windows ----------------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_tune_sum(gpst_pipeline* pipeline, gpsti_tuner_window* out) {
    const gpsti_tune* const tune = pipeline->tune;
    memset(out, 0, sizeof *out);
    for (uint32_t c = 0; c < pipeline->counts.n_clocks; c++)
        out->service_ns[pipeline->counts.clocks[c].resource] += pipeline->counts.clocks[c].busy_ns;
    out->service_ns[GPST_RESOURCE_DISK_IN] -= pipeline->counts.own_read_ns; /* read on workers, from the page cache */
    out->service_ns[GPST_RESOURCE_DISK_OUT] -= pipeline->counts.own_write_ns;
    out->service_ns[GPST_RESOURCE_CPU] += pipeline->counts.own_read_ns + pipeline->counts.own_write_ns +
                                          pipeline->counts.finish_clock.busy_ns + pipeline->counts.submit_clock.busy_ns;
    gpsti_count_busy(pipeline, out->busy_ns);
    out->cpu_ns = gpsti_count_cpu_ns(pipeline);
    out->slots_full_ns = tune->full_ns + (tune->full_since_ns != 0 ? gpsti_now_ns() - tune->full_since_ns : 0);
}

GPSTI_PRIVATE void gpsti_tune_open_window(gpst_pipeline* pipeline) {
    gpsti_window_open(&pipeline->tune->window, pipeline->counts.end_ns);
    gpsti_tune_sum(pipeline, &pipeline->tune->totals);
}

/* 0 = not known. */
GPSTI_PRIVATE uint64_t gpsti_tune_n_left(const gpst_pipeline* pipeline) {
    const uint64_t expected = pipeline->plan.desc.n_items_expected, begun = pipeline->items.next_index;
    return expected > begun ? expected - begun : expected > 0 ? 1 : 0;
}

GPSTI_PRIVATE void gpsti_tune_close_window(gpst_pipeline* pipeline, gpsti_tuner_window* out) {
    const gpsti_tune* const tune = pipeline->tune;
    const gpsti_tuner_window* const before = &tune->totals;
    gpsti_tune_sum(pipeline, out);
    out->n_items = tune->window.n_items;
    out->n_left = gpsti_tune_n_left(pipeline);
    out->item_bytes = gpsti_a64_load(&pipeline->memory.taken[GPSTI_OF_HOST]);
    out->wall_ns = pipeline->counts.end_ns - tune->window.start_ns;
    out->noise = gpsti_window_noise(&tune->window);
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++) {
        out->service_ns[r] -= before->service_ns[r];
        out->busy_ns[r] -= before->busy_ns[r];
    }
    out->cpu_ns -= before->cpu_ns;
    out->slots_full_ns -= before->slots_full_ns;
}

/* ---- the guard ------------------------------------------------------------------------------------------ */

GPSTI_PRIVATE void gpsti_tune_set_loop(gpst_pipeline* pipeline, gpst_run_mode loop, const char* reason) {
    gpsti_tuner* const tuner = &pipeline->tune->tuner;
    const gpst_guard_report* const report = &pipeline->tune->guard.report;
    tuner->n_items = pipeline->counts.items.ok + pipeline->counts.items.failed;
    gpst_tuner_decision* const decision =
        gpsti_tuner_add_decision(tuner, GPST_KNOB_LOOP, tuner->now.value[GPST_KNOB_LOOP], (uint32_t)loop);
    decision->items_per_s_before = report->engine_ns > 0.0 ? 1e9 / report->engine_ns : 0.0;
    decision->items_per_s_after = report->plain_ns > 0.0 ? 1e9 / report->plain_ns : 0.0;
    gpsti_copy_text(decision->reason, sizeof decision->reason, reason);
    tuner->now.value[GPST_KNOB_LOOP] = tuner->kept.value[GPST_KNOB_LOOP] = (uint32_t)loop;
}

GPSTI_PRIVATE void gpsti_tune_obey(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = pipeline->tune;
    /* As the block ran: one item at a time, whose kernels may have every core. */
    const gpst_run_mode plain = pipeline->plan.kernel_threads > 1 ? GPST_RUN_PLAIN_INSIDE : GPST_RUN_PLAIN_SERIAL;
    gpsti_tune_set_loop(pipeline, tune->guard.plain ? plain : GPST_RUN_ENGINE, tune->guard.report.text);
    tune->paused = tune->guard.plain;
    tune->block_items = GPSTI_GUARD_STAY_ITEMS;
}

GPSTI_PRIVATE void gpsti_tune_guard(gpst_pipeline* pipeline, const gpsti_tuner_window* window) {
    gpsti_tune* const tune = pipeline->tune;
    const gpsti_clock* const source = &pipeline->counts.source_clock;
    const double engine_ns = (double)window->wall_ns / (double)window->n_items;
    const double source_ns = source->count > 0 ? (double)source->busy_ns / (double)source->count : 0.0;
    if (tune->guard.decided || !pipeline->plan.desc.source)
        return;
    const double others = gpsti_report_others(pipeline, pipeline->counts.end_ns - pipeline->counts.start_ns);
    const gpsti_guard_estimate plain = gpsti_guard_expect(window, tune->tuner.budget.cores, others, source_ns);
    tune->block_items = gpsti_guard_ask(&tune->guard, engine_ns, plain, window->n_left);
    tune->paused = tune->block_items > 0;
    if (tune->guard.decided)
        gpsti_tune_obey(pipeline);
}

GPSTI_INTERN bool gpsti_tune_wants_block(const gpst_pipeline* pipeline) {
    return pipeline->tune->paused && gpsti_items_n_under_way(pipeline) == 0 &&
           gpsti_a32_load(&pipeline->items.executing) == 0 && !pipeline->threads->source_running &&
           !pipeline->threads->source_rests;
}

GPSTI_INTERN void gpsti_tune_end_block(gpst_pipeline* pipeline, uint64_t n_items, int64_t block_ns) {
    gpsti_tune* const tune = pipeline->tune;
    tune->n_unjudged = pipeline->plan.n_active;
    if (n_items == 0) { /* the source is dry, or the run cancelled */
        tune->paused = false;
    } else if (!tune->guard.decided) {
        gpsti_guard_end_block(&tune->guard, n_items, block_ns);
        gpsti_tune_obey(pipeline);
    } else if (gpsti_guard_watch(&tune->guard, n_items, block_ns)) {
        gpsti_tune_set_loop(pipeline, GPST_RUN_ENGINE, "looks again: the plain loop's clock has drifted");
        gpsti_guard_forget(&tune->guard);
        tune->paused = false;
    }
}

/* ---- an item has ended ------------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_tune_judge(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_tune* const tune = pipeline->tune;
    gpsti_tuner_window window;
    gpsti_tune_close_window(pipeline, &window);
    const uint32_t n_decisions = tune->tuner.n_decisions;
    const bool moved =
        gpsti_tuner_judge(&tune->tuner, &window, pipeline->counts.items.ok + pipeline->counts.items.failed);
    if (moved)
        gpsti_tune_apply(locked, pipeline);
    tune->n_unjudged = moved ? gpsti_items_n_under_way(pipeline) : 0;
    if (tune->tuner.n_decisions != n_decisions) /* other clocks, or another setting */
        gpsti_guard_forget(&tune->guard);
    if (tune->tuner.state == GPSTI_TUNER_FROZEN && !moved)
        gpsti_tune_guard(pipeline, &window);
    gpsti_tune_open_window(pipeline);
}

GPSTI_INTERN void gpsti_tune_open(gpsti_locked locked, gpst_pipeline* pipeline) {
    gpsti_tune_apply(locked, pipeline);
    pipeline->tune->n_unjudged = pipeline->plan.n_active; /* the first items make their memory, and caches are cold */
}

GPSTI_INTERN void gpsti_tune_hold(gpsti_locked locked, gpst_pipeline* pipeline, uint32_t n_items) {
    gpsti_tune* const tune = pipeline->tune;
    tune->tuner.n_items = pipeline->counts.items.ok + pipeline->counts.items.failed;
    if (!tune->on || !gpsti_tuner_hold(&tune->tuner, n_items))
        return;
    gpsti_tune_apply(locked, pipeline);
    tune->n_unjudged = gpsti_items_n_under_way(pipeline);
    gpsti_guard_forget(&tune->guard);
}

GPSTI_INTERN void gpsti_tune_count(gpsti_locked locked, gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_tune* const tune = pipeline->tune;
    if (!tune->on || tune->paused || gpsti_is_plain(pipeline) || item->shown.result == GPST_ERROR_CANCELLED)
        return;
    if (tune->n_unjudged > 0) {
        if (--tune->n_unjudged == 0)
            gpsti_tune_open_window(pipeline);
        return;
    }
    if (gpsti_window_add(&tune->window, pipeline->counts.end_ns, pipeline->plan.n_active))
        gpsti_tune_judge(locked, pipeline);
}

/* ---- asked from outside -------------------------------------------------------------------------------- */

GPST_API void gpst_pipeline_query_tuner(gpst_pipeline* pipeline, gpst_tuner_report* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!pipeline || GPST_FAILED(gpsti_context_check(pipeline->context, "gpst_pipeline_query_tuner")))
        return;
    const gpsti_tuner* const tuner = &pipeline->tune->tuner;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    out->on = pipeline->tune->on;
    out->frozen = tuner->state == GPSTI_TUNER_FROZEN;
    out->settings = tuner->now;
    out->least = tuner->least;
    out->most = tuner->most;
    out->n_decisions = tuner->n_decisions;
    memcpy(out->decisions, tuner->decisions, sizeof out->decisions);
    out->guard = pipeline->tune->guard.report;
    gpsti_unlock(locked);
}
