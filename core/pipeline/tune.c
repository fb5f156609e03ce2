/* core/pipeline/tune.c -- what stands between an engine and the tuner's policy: windows made
   of the clocks, and models of items. Decides nothing about values: tuner.c does. */
#include "../base/platform_internal.h"

#include "../../kernels/exact/exact_internal.h"
#include "pipeline_internal.h"

#include <string.h>

#define GPSTI_TUNE_SOURCE_NS 100000 /* in which whom it keeps waiting could have done something else */
#define GPSTI_TUNE_FEW_ITEMS 8 /* that show an engine which is slower than the plain loop before it, in so much time */
#define GPSTI_TUNE_FEW_NS 2000000
#define GPSTI_TUNE_MOST_ITEMS 64
#define GPSTI_TUNE_FILL_ITEMS 256 /* of each worker, until every slot has its memory, at the latest */
#define GPSTI_TUNE_MANY_ITEMS 1024 /* enough in however little time */
#define GPSTI_TUNE_CROWD_ITEMS 16  /* of each worker: enough where they stand in each other's way */
#define GPSTI_TUNE_LEAST_NS 5000000
#define GPSTI_TUNE_MOST_NS 500000000
#define GPSTI_TUNE_LEAST_BLOCKS 4
#define GPSTI_TUNE_QUIET 0.01 /* noise at which a window says enough */

/* ---- budget ---------------------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_tune_has(const gpst_pipeline* pipeline, gpsti_step_kind kind) {
    for (uint32_t s = 0; s < pipeline->n_steps; s++)
        if (pipeline->steps[s].kind == kind)
            return true;
    return false;
}

GPSTI_PRIVATE void gpsti_tune_budget(const gpst_pipeline* pipeline, const gpst_pipeline_desc* desc,
                                     gpsti_tuner_budget* out) {
    const gpst_context_info* const info = &pipeline->context->info;
    memset(out, 0, sizeof *out);
    out->cores = info->cores_allowed;
    out->workers = pipeline->n_workers;
    out->outputs = pipeline->n_outputs;
    out->reads = gpsti_tune_has(pipeline, GPSTI_STEP_READ);
    out->writes = gpsti_tune_has(pipeline, GPSTI_STEP_WRITE);
    out->syncs = out->writes && desc->fsync != GPST_FSYNC_NONE;
    out->streams = gpsti_tune_has(pipeline, GPSTI_STEP_OFFLOAD) && pipeline->context->device_info.asynchronous;
    out->inside = gpsti_tune_has(pipeline, GPSTI_STEP_OFFLOAD) && pipeline->device_on_host &&
                  !pipeline->context->pin.on; /* threads inside would inherit their worker's one core */
    out->batch = pipeline->batch_most;
    out->host_bytes = info->max_host_bytes;
    out->device_bytes = info->max_device_bytes;
    out->preset = desc->preset;
    out->fixed.value[GPST_KNOB_SLOTS] = desc->n_slots;
    out->fixed.value[GPST_KNOB_READS] = out->reads ? desc->n_reads : 0;
    out->fixed.value[GPST_KNOB_WRITES] = out->writes ? desc->n_writes : 0;
    out->fixed.value[GPST_KNOB_BATCH] = out->batch > 1 ? desc->batch : 0;
    out->fixed.value[GPST_KNOB_ITEMS] = pipeline->tune.starts_plain ? 0 : GPST_ITEMS_STAGED;
}

GPSTI_INTERN gpst_result gpsti_tune_check(const gpst_pipeline_desc* desc, const char* function) {
    const int tune = (int)desc->tune, preset = (int)desc->preset;
    const uint32_t loop = desc->settings.value[GPST_KNOB_LOOP], items = desc->settings.value[GPST_KNOB_ITEMS];
    GPSTI_FAIL_IF(tune < 0 || tune > (int)GPST_TUNE_OFF, GPST_ERROR_ARGUMENT, "%s: tune=%d: unknown",
                  function, tune);
    GPSTI_FAIL_IF(preset < 0 || preset > (int)GPST_PRESET_THROUGHPUT, GPST_ERROR_ARGUMENT,
                  "%s: preset=%d: unknown", function, preset);
    GPSTI_FAIL_IF(loop > (uint32_t)GPST_RUN_PLAIN_INSIDE, GPST_ERROR_ARGUMENT,
                  "%s: settings.value[LOOP]=%u: unknown", function, loop);
    GPSTI_FAIL_IF(items > (uint32_t)GPST_ITEMS_WHOLE, GPST_ERROR_ARGUMENT,
                  "%s: settings.value[ITEMS]=%u: unknown", function, items);
    return GPST_OK;
}

GPSTI_PRIVATE bool gpsti_tune_is_wanted(const gpst_pipeline_desc* desc) {
    return desc->tune == GPST_TUNE_ON ||
           (desc->tune == GPST_TUNE_DEFAULT && desc->mode == GPST_RUN_DEFAULT && desc->source);
}

GPSTI_INTERN gpst_run_mode gpsti_tune_loop(const gpst_pipeline_desc* desc) {
    static const gpst_run_mode loops[] = {GPST_RUN_ENGINE, GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL,
                                          GPST_RUN_PLAIN_INSIDE};
    return gpsti_tune_is_wanted(desc) && desc->source ? loops[desc->settings.value[GPST_KNOB_LOOP]]
                                                      : GPST_RUN_ENGINE;
}

GPSTI_PRIVATE bool gpsti_tune_is_given(const gpst_settings* settings) {
    for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
        if (settings->value[k] != 0)
            return true;
    return false;
}

GPSTI_INTERN void gpsti_tune_init(gpst_pipeline* pipeline, const gpst_pipeline_desc* desc) {
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_tuner_budget budget;
    tune->tuner.now.value[GPST_KNOB_LOOP] = (uint32_t)pipeline->desc.mode;
    if (pipeline->desc.mode != GPST_RUN_ENGINE || !gpsti_tune_is_wanted(desc))
        return;
    tune->on = true;
    tune->starts_plain = desc->mode == GPST_RUN_DEFAULT && desc->source;
    tune->played_before_ns = gpsti_a64_load(&pipeline->context->device->played_ns);
    gpsti_tune_budget(pipeline, desc, &budget);
    gpsti_tuner_init(&tune->tuner, &budget, NULL);
    tune->modelled = gpsti_tune_is_given(&desc->settings);
    if (tune->modelled)
        gpsti_tuner_load(&tune->tuner, &desc->settings);
    pipeline->slots_capacity = gpsti_tuner_slots_ever(&tune->tuner);
    pipeline->n_slots = tune->tuner.now.value[GPST_KNOB_SLOTS];
    gpsti_tune_set_files(pipeline);
}

/* Whose end nobody is told of need not wait for those before it; but of items that end without order the first are the
   short ones, and the model is made of those that have ended. */
GPSTI_INTERN void gpsti_tune_set_order(gpst_pipeline* pipeline) {
    const bool told = pipeline->desc.sink || !pipeline->desc.source;
    const bool needs_model = pipeline->tune.on && !pipeline->tune.modelled;
    pipeline->steps[pipeline->n_steps - 1].ordered = !pipeline->desc.as_ready && (told || needs_model);
}

/* ---- windows -------------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_tune_leave_to_workers(gpsti_tuner_window* total, gpst_resource resource) {
    total->service_ns[GPST_RESOURCE_CPU] += total->service_ns[resource];
    total->service_ns[resource] = total->wait_ns[resource] = 0;
}

GPSTI_PRIVATE void gpsti_tune_sum(gpst_pipeline* pipeline, gpsti_tune_totals* out) {
    const gpsti_tune* const tune = &pipeline->tune;
    gpsti_tuner_window* const total = &out->window;
    const int64_t now_ns = gpsti_now_ns();
    memset(out, 0, sizeof *out);
    for (uint32_t c = 0; c < pipeline->n_clocks; c++) {
        const gpsti_clock* const clock = &pipeline->clocks[c];
        total->service_ns[clock->resource] += clock->busy_ns;
        total->wait_ns[clock->resource] += clock->wait_ns;
    }
    if (gpsti_carry_reads(pipeline)) /* by workers: what they do is computing, or keeps one of them */
        gpsti_tune_leave_to_workers(total, GPST_RESOURCE_DISK_IN);
    if (pipeline->whole)
        gpsti_tune_leave_to_workers(total, GPST_RESOURCE_DISK_OUT);
    total->service_ns[GPST_RESOURCE_CPU] += pipeline->finish_clock.busy_ns + pipeline->submit_clock.busy_ns;
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++)
        total->busy_ns[r] = gpsti_timing_busy_ns(&pipeline->timing, pipeline->busy, r);
    for (uint32_t s = 0; s < pipeline->n_steps; s++)
        if (pipeline->steps[s].concurrency == 1)
            out->serial_ns[s] = pipeline->steps[s].kind == GPSTI_STEP_FINISH
                                    ? pipeline->finish_clock.busy_ns
                                    : pipeline->clocks[pipeline->steps[s].first_clock].busy_ns;
    total->cpu_ns = gpsti_report_cpu_ns(pipeline);
    total->starved_ns = tune->full_ns + (tune->full_since_ns ? now_ns - tune->full_since_ns : 0);
}

GPSTI_PRIVATE void gpsti_tune_open_window(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    tune->n_items = tune->n_blocks = tune->n_in_block = 0;
    tune->block_sum = tune->block_squares = 0.0;
    tune->start_ns = tune->block_start_ns = pipeline->end_ns;
    tune->growths = gpsti_report_made(pipeline);
    gpsti_tune_sum(pipeline, &tune->totals);
    if (pipeline->whole)
        gpsti_tune_leave_out(pipeline);
}

/* Items end in bunches, as many as are worked on side by side: only whole bunches can be compared. */
GPSTI_PRIVATE void gpsti_tune_add_block(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    const uint64_t block_items = pipeline->n_active < 4 ? 4 : pipeline->n_active;
    if (++tune->n_in_block < block_items)
        return;
    const double block_ns = (double)(pipeline->end_ns - tune->block_start_ns);
    tune->block_sum += block_ns;
    tune->block_squares += block_ns * block_ns;
    tune->n_blocks++;
    tune->n_in_block = 0;
    tune->block_start_ns = pipeline->end_ns;
}

/* Standard error of the mean block, as a part of it. */
GPSTI_PRIVATE double gpsti_tune_noise(const gpsti_tune* tune) {
    const double n = (double)tune->n_blocks;
    if (tune->n_blocks < 2 || tune->block_sum <= 0.0)
        return 1.0;
    const double mean = tune->block_sum / n;
    const double variance = (tune->block_squares - n * mean * mean) / (n - 1.0);
    return variance > 0.0 ? gpsti_sqrt64(variance / n) / mean : 0.0;
}

/* 0 = nobody knows. */
GPSTI_PRIVATE uint64_t gpsti_tune_n_left(const gpst_pipeline* pipeline) {
    const uint64_t n_left = gpsti_flow_n_left(pipeline);
    return pipeline->desc.n_items_expected > 0 && n_left == 0 ? 1 : n_left;
}

/* Brief items need not be many to show that those who bring them whole are too many. */
GPSTI_PRIVATE bool gpsti_tune_is_crowded(const gpst_pipeline* pipeline) {
    const gpsti_tune* const tune = &pipeline->tune;
    return tune->n_items >= GPSTI_TUNE_CROWD_ITEMS * (uint64_t)pipeline->n_active &&
           gpsti_tuner_crowds(&tune->tuner, tune->n_items, pipeline->end_ns - tune->start_ns);
}

GPSTI_PRIVATE bool gpsti_tune_window_is_full(const gpst_pipeline* pipeline) {
    const gpsti_tune* const tune = &pipeline->tune;
    const int64_t wall_ns = pipeline->end_ns - tune->start_ns;
    const bool frozen = tune->tuner.state == GPSTI_TUNER_FROZEN;
    if (tune->n_items >= GPSTI_TUNE_FEW_ITEMS && tune->n_blocks >= 2 && wall_ns >= GPSTI_TUNE_FEW_NS &&
        gpsti_tune_is_behind(pipeline))
        return true;
    if (tune->n_blocks >= GPSTI_TUNE_LEAST_BLOCKS &&
        (gpsti_tune_is_crowded(pipeline) ||
         gpsti_tuner_loses(&tune->tuner, tune->n_items, wall_ns, gpsti_tune_noise(tune))))
        return true;
    if (tune->n_blocks < GPSTI_TUNE_LEAST_BLOCKS ||
        (wall_ns < GPSTI_TUNE_LEAST_NS && tune->n_items < GPSTI_TUNE_MANY_ITEMS))
        return false;
    if (tune->n_items >= GPSTI_TUNE_MOST_ITEMS && (!frozen || wall_ns >= 10 * GPSTI_TUNE_LEAST_NS))
        return true;
    return wall_ns >= GPSTI_TUNE_MOST_NS || (!frozen && gpsti_tune_noise(tune) <= GPSTI_TUNE_QUIET);
}

GPSTI_PRIVATE void gpsti_tune_close_window(gpst_pipeline* pipeline, gpsti_tuner_window* out) {
    const gpsti_tune* const tune = &pipeline->tune;
    const gpsti_tuner_window* const before = &tune->totals.window;
    gpsti_tune_totals totals;
    gpsti_tune_sum(pipeline, &totals);
    *out = totals.window;
    out->n_items = tune->n_items;
    out->n_left = gpsti_tune_n_left(pipeline);
    out->wall_ns = pipeline->end_ns - tune->start_ns;
    out->noise = gpsti_tune_noise(tune);
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++) {
        out->service_ns[r] -= before->service_ns[r];
        out->wait_ns[r] -= before->wait_ns[r];
        out->busy_ns[r] -= before->busy_ns[r];
    }
    out->cpu_ns -= before->cpu_ns;
    out->starved_ns -= before->starved_ns;
    for (uint32_t s = 0; s < pipeline->n_steps; s++) {
        const int64_t serial_ns = totals.serial_ns[s] - tune->totals.serial_ns[s];
        out->serial_ns = serial_ns > out->serial_ns ? serial_ns : out->serial_ns;
    }
}

/* ---- the model, from items that have been ----------------------------------------------------------- */

/* Host memory that an item takes; 0 would mean that none has been seen. */
GPSTI_PRIVATE uint64_t gpsti_tune_item_bytes(const gpsti_tune* tune) {
    return tune->item_host_bytes ? tune->item_host_bytes : 1;
}

/* May workers bring items through every step, side by side? They wait for their turns at the source: of a run whose
   length is known, since another one may wait for its inputs, and of one that does not keep them long. */
GPSTI_PRIVATE bool gpsti_tune_may_be_whole(const gpst_pipeline* pipeline) {
    bool may = pipeline->tune.starts_plain && pipeline->tune.source_ns <= GPSTI_TUNE_SOURCE_NS;
    for (uint32_t s = 0; may && pipeline->steps[s].kind != GPSTI_STEP_FINISH; s++)
        may = pipeline->steps[s].concurrency == 0;
    return may;
}

/* So many workers, or fewer, or none. */
GPSTI_PRIVATE uint32_t gpsti_tune_fit_whole(const gpst_pipeline* pipeline, const gpsti_tuner_costs* costs,
                                            uint32_t n_workers) {
    if (!gpsti_tune_may_be_whole(pipeline))
        return 0;
    return gpsti_tuner_fit_whole(&pipeline->tune.tuner, costs, n_workers, gpsti_flow_n_left(pipeline));
}

/* What handing an item from thread to thread takes. */
GPSTI_PRIVATE void gpsti_tune_add_engine(const gpst_pipeline* pipeline, gpsti_tuner_costs* costs) {
    costs->service_ns[GPST_RESOURCE_CPU] +=
        pipeline->tune.tuner.budget.streams ? GPSTI_TUNER_DEVICE_ITEM_NS : GPSTI_TUNER_ITEM_NS;
}

GPSTI_PRIVATE int64_t gpsti_tune_staged_period_ns(const gpst_pipeline* pipeline, gpsti_tuner_costs costs) {
    const gpsti_tuner_budget* const budget = &pipeline->tune.tuner.budget;
    gpsti_tune_add_engine(pipeline, &costs);
    const uint32_t batch = budget->batch > 1 ? gpsti_tuner_start_batch(&costs) : 1;
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++)
        costs.service_ns[r] /= batch; /* brief work on a device is mostly beginning and ending */
    return gpsti_tuner_period_ns(&costs, budget->workers);
}

/* What an item takes of the engine, or of a driver, for which threads stand in line; cores that play a device whose
   items are whole do not. */
GPSTI_PRIVATE int64_t gpsti_tune_least_period_ns(const gpst_pipeline* pipeline, bool played_whole) {
    const gpsti_tuner_budget* const budget = &pipeline->tune.tuner.budget;
    if (!budget->streams || played_whole)
        return GPSTI_TUNER_ITEM_NS;
    const bool shared = budget->batch > 1 || gpsti_tune_fit_whole(pipeline, NULL, budget->workers) > 0;
    return shared ? GPSTI_TUNER_BATCH_ITEM_NS : GPSTI_TUNER_DEVICE_ITEM_NS;
}

/* In stages, with what that takes; or whole, where that is allowed and no slower. */
GPSTI_INTERN int64_t gpsti_tune_period_ns(const gpst_pipeline* pipeline, bool* whole) {
    gpsti_tuner_costs costs;
    gpsti_tune_costs(pipeline, &costs);
    const uint32_t n_model = gpsti_tuner_whole_workers(&pipeline->tune.tuner, &costs);
    const uint32_t n_whole = gpsti_tune_fit_whole(pipeline, &costs, n_model);
    *whole = n_whole > 0;
    const int64_t period_ns =
        *whole ? gpsti_tuner_whole_period_ns(&costs, n_whole) : gpsti_tune_staged_period_ns(pipeline, costs);
    const int64_t least_ns = gpsti_tune_least_period_ns(pipeline, *whole && costs.played_ns > 0);
    return period_ns > least_ns ? period_ns : least_ns;
}

/* ---- whole items ------------------------------------------------------------------------------------- */

GPSTI_INTERN uint32_t gpsti_tune_most_whole(const gpst_pipeline* pipeline) {
    const uint32_t* const most = pipeline->tune.tuner.most.value;
    uint32_t n = most[GPST_KNOB_WORKERS];
    if (most[GPST_KNOB_SLOTS] < n)
        n = most[GPST_KNOB_SLOTS];
    return pipeline->tune.tuner.budget.streams && most[GPST_KNOB_STREAMS] < n ? most[GPST_KNOB_STREAMS] : n;
}

GPSTI_PRIVATE uint32_t gpsti_tune_whole_workers(const gpst_pipeline* pipeline, const gpsti_tuner_costs* costs) {
    const uint32_t n_model = gpsti_tuner_whole_workers(&pipeline->tune.tuner, costs);
    const uint32_t n_seen = pipeline->tune.n_whole_workers, n_most = gpsti_tune_most_whole(pipeline);
    if (n_model == 0 || n_seen == 0)
        return n_model;
    return n_seen < n_most ? n_seen : n_most;
}

GPSTI_PRIVATE void gpsti_tune_choose_whole(gpst_pipeline* pipeline, const gpsti_tuner_costs* costs) {
    const uint32_t n_workers = gpsti_tune_fit_whole(pipeline, costs, gpsti_tune_whole_workers(pipeline, costs));
    if (n_workers == 0)
        return;
    gpsti_tune_set_ends(pipeline, true);
    for (uint32_t i = 0; i < pipeline->n_slots_made; i++) /* in stages they did not keep their memory */
        pipeline->slots[i]->served = false;
    pipeline->n_served = 0;
    gpsti_tuner_set_whole(&pipeline->tune.tuner, costs, n_workers, pipeline->desc.sink != NULL);
}

/* As a run before had it, where this one allows that. */
GPSTI_PRIVATE void gpsti_tune_take_given(gpst_pipeline* pipeline) {
    gpsti_tuner* const tuner = &pipeline->tune.tuner;
    if (tuner->now.value[GPST_KNOB_ITEMS] != GPST_ITEMS_WHOLE || pipeline->whole)
        return;
    if (gpsti_tune_fit_whole(pipeline, NULL, tuner->now.value[GPST_KNOB_WORKERS]) > 0) {
        gpsti_tune_set_ends(pipeline, true);
        gpsti_tuner_set_items(tuner, GPST_ITEMS_WHOLE);
        return;
    }
    tuner->budget.fixed.value[GPST_KNOB_ITEMS] = GPST_ITEMS_STAGED;
    gpsti_tuner_set_items(tuner, GPST_ITEMS_STAGED);
    gpsti_copy_text(gpsti_tuner_note(tuner, GPST_KNOB_ITEMS, GPST_ITEMS_WHOLE, GPST_ITEMS_STAGED)->reason,
                    sizeof tuner->decisions[0].reason,
                    "not whole items, as given: the list is short or of unknown length, its source slow, "
                    "or a stage has its turns");
}

GPSTI_PRIVATE void gpsti_tune_say_start(gpst_pipeline* pipeline, const char* how) {
    gpsti_tuner* const tuner = &pipeline->tune.tuner;
    const uint32_t* const now = tuner->now.value;
    gpst_tuner_decision* const decision = gpsti_tuner_note(tuner, GPST_KNOB_NONE, 0, 0);
    gpsti_format(decision->reason, sizeof decision->reason,
                 "%sworkers=%u slots=%u reads=%u writes=%u streams=%u inside=%u batch=%u", how,
                 now[GPST_KNOB_WORKERS], now[GPST_KNOB_SLOTS], now[GPST_KNOB_READS], now[GPST_KNOB_WRITES],
                 now[GPST_KNOB_STREAMS], now[GPST_KNOB_INSIDE], now[GPST_KNOB_BATCH]);
}

GPSTI_PRIVATE void gpsti_tune_keep_capacity(gpst_pipeline* pipeline) {
    gpsti_tuner* const tuner = &pipeline->tune.tuner;
    const uint32_t capacity = pipeline->slots_capacity;
    uint32_t* const most = &tuner->most.value[GPST_KNOB_SLOTS];
    uint32_t* const now = &tuner->now.value[GPST_KNOB_SLOTS];
    *most = *most < capacity ? *most : capacity;
    *now = *now < capacity ? *now : capacity;
}

/* Reads that became slow, items that became long: would the model still bring them whole? One window may be chance. */
GPSTI_PRIVATE bool gpsti_tune_outgrows_whole(gpst_pipeline* pipeline, gpsti_tuner_costs* costs) {
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_tuner_costs alone;
    gpsti_tune_costs(pipeline, costs);
    alone = *costs;
    gpsti_tune_take_alone(pipeline, &alone);
    if (alone.service_ns[GPST_RESOURCE_DISK_OUT] <= tune->model.service_ns[GPST_RESOURCE_DISK_OUT])
        alone.writes_compute = tune->model.writes_compute; /* they wait for their turns, which others would, too */
    tune->n_outgrown = gpsti_tuner_whole_workers(&tune->tuner, &alone) == 0 ? tune->n_outgrown + 1 : 0;
    return tune->n_outgrown == 2;
}

/* Once: what comes and goes is not worth it. */
GPSTI_PRIVATE void gpsti_tune_go_staged(gpst_pipeline* pipeline, gpsti_tuner_costs* costs) {
    gpsti_tune* const tune = &pipeline->tune;
    const bool again = pipeline->whole;
    tune->model = *costs;
    gpsti_tune_add_engine(pipeline, costs);
    gpsti_tune_set_ends(pipeline, false);
    tune->item_ns = gpsti_tuner_total_ns(costs);
    tune->tuner.budget.slots_worth = gpsti_tune_slots_worth(pipeline);
    gpsti_tuner_set_staged(&tune->tuner, costs);
    gpsti_tune_keep_capacity(pipeline);
    tune->tuner.n_items = pipeline->items_ok + pipeline->items_failed;
    gpsti_tune_say_start(pipeline, again ? "items in stages again, " : "reads wait, ");
    tune->n_to_settle = pipeline->in_flight;
    gpsti_tune_apply(pipeline);
    gpsti_guard_forget(&tune->guard);
}

/* Item 0's read may have been the one that had nothing to wait for. When the first ones after it have come, as many as
   there are at once at least: do they wait, and not for a disk? A run that is short has no windows to find that out. */
GPSTI_PRIVATE bool gpsti_tune_finds_waits(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    const uint32_t reads = pipeline->steps[0].first_clock;
    const uint64_t n_at_once = gpsti_tune_reads_at_once(pipeline);
    const uint64_t n = n_at_once > GPSTI_TUNE_FEW_ITEMS ? n_at_once : GPSTI_TUNE_FEW_ITEMS;
    gpsti_tuner_costs costs;
    if (tune->waits_weighed || tune->tuner.state == GPSTI_TUNER_FROZEN || pipeline->steps[0].kind != GPSTI_STEP_READ ||
        pipeline->clocks[reads].count < tune->first[reads].count + n)
        return false;
    tune->waits_weighed = true;
    gpsti_tune_costs(pipeline, &costs);
    if (!gpsti_tuner_finds_waits(&tune->tuner, &costs, tune->read_alone_ns))
        return false;
    gpsti_tune_go_staged(pipeline, &costs);
    return true;
}

GPSTI_INTERN void gpsti_tune_set_model(gpst_pipeline* pipeline, const gpsti_tuner_costs* costs, const char* why) {
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_tuner_budget budget = tune->tuner.budget;
    gpsti_tuner_costs staged = *costs;
    char how[64];
    tune->model = *costs;
    gpsti_tune_add_engine(pipeline, &staged);
    tune->sparing = false;
    tune->read_alone_ns = costs->service_ns[GPST_RESOURCE_DISK_IN] + costs->read_ns;
    if (tune->guessed) { /* now one has been whole */
        tune->item_ns = gpsti_tuner_total_ns(&staged);
        budget.slots_worth = gpsti_tune_slots_worth(pipeline);
    }
    budget.item_host_bytes = gpsti_tune_item_bytes(tune);
    budget.item_device_bytes = tune->item_device_bytes;
    gpsti_tuner_init(&tune->tuner, &budget, &staged);
    gpsti_tune_choose_whole(pipeline, costs);
    tune->tuner.n_items = pipeline->items_ok + pipeline->items_failed;
    gpsti_tune_keep_capacity(pipeline);
    gpsti_tune_set_filling(pipeline, gpsti_tuner_filling_way_ns(costs));
    gpsti_format(how, sizeof how, "%sstarts with %s", why, pipeline->whole ? "whole items, " : "");
    gpsti_tune_say_start(pipeline, how);
    tune->modelled = true;
    gpsti_tune_set_order(pipeline);
}

GPSTI_PRIVATE void gpsti_tune_model(gpst_pipeline* pipeline) {
    gpsti_tuner_costs costs;
    gpsti_tune_costs(pipeline, &costs);
    gpsti_tune_set_model(pipeline, &costs, "");
}

/* Its items are not those of the last run of the job. */
GPSTI_PRIVATE void gpsti_tune_start_anew(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    const gpst_tuner_decision begun = tune->tuner.decisions[0];
    gpsti_tuner_costs costs;
    gpsti_tune_costs(pipeline, &costs);
    tune->recalls = tune->tuner.budget.known = false;
    tune->guessed = true;
    tune->serial_ns = 0.0;
    tune->inside_ns *= (double)gpsti_tuner_total_ns(&costs) / (double)(gpsti_tuner_total_ns(&tune->known) + 1);
    tune->n_whole_workers = 0;
    gpsti_tune_set_ends(pipeline, false);
    gpsti_tune_set_model(pipeline, &costs, "other items: ");
    *gpsti_tuner_note(&tune->tuner, GPST_KNOB_NONE, 0, 0) = tune->tuner.decisions[0];
    tune->tuner.decisions[0] = begun;
    gpsti_tune_apply(pipeline);
    gpsti_guard_forget(&tune->guard);
    tune->n_to_settle = pipeline->in_flight;
}

GPSTI_INTERN void gpsti_tune_prepare(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_tune_afford(pipeline);
    if (pipeline->items_ok > 0 && !tune->modelled)
        gpsti_tune_model(pipeline);
    gpsti_tune_take_given(pipeline);
    tune->n_to_settle = pipeline->n_active;
    gpsti_tune_set_files(pipeline);
}

GPSTI_INTERN void gpsti_tune_note_item(const gpsti_slot* slot) {
    gpsti_tune* const tune = &slot->pipeline->tune;
    const uint64_t host_bytes = gpsti_a64_load(&slot->host_bytes);
    uint64_t device_bytes = slot->device_input.charged_bytes;
    for (uint32_t o = 0; o < slot->pipeline->n_outputs; o++)
        device_bytes += slot->out[o].device.charged_bytes;
    if (host_bytes > tune->item_host_bytes)
        tune->item_host_bytes = host_bytes;
    if (device_bytes > tune->item_device_bytes)
        tune->item_device_bytes = device_bytes;
}

/* ---- without a tuner ------------------------------------------------------------------------------------ */

/* Nothing moves but what memory must. */
GPSTI_PRIVATE void gpsti_tune_count_fixed(const gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpsti_tune_note_item(slot);
    pipeline->tune.item_host_bytes = gpsti_tune_item_bytes(&pipeline->tune);
    gpsti_tune_hold_back(pipeline);
}

/* ---- an item has ended ------------------------------------------------------------------------------------- */

/* Workers that have only just been woken, and memory that nobody has written to, take each other's time, too: what a
   short window says of a crowd is believed when the next one says the same. */
GPSTI_PRIVATE bool gpsti_tune_doubts_crowd(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    const bool is_short =
        tune->n_items < GPSTI_TUNE_MANY_ITEMS && pipeline->end_ns - tune->start_ns < GPSTI_TUNE_LEAST_NS;
    if (tune->crowd_seen || !is_short || gpsti_tune_is_behind(pipeline) || !gpsti_tune_is_crowded(pipeline))
        return false;
    tune->crowd_seen = true;
    return true;
}

GPSTI_PRIVATE void gpsti_tune_judge(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_tuner_window window;
    gpsti_tuner_costs costs;
    gpsti_tune_close_window(pipeline, &window);
    window.slot_ns = gpsti_tune_slot_ns(pipeline);
    gpsti_carry_weigh_reads(pipeline);
    if (pipeline->whole && gpsti_tune_outgrows_whole(pipeline, &costs)) {
        gpsti_tune_go_staged(pipeline, &costs);
        return;
    }
    if (gpsti_tune_is_behind(pipeline)) { /* before anything is tried: is it to be there at all? */
        gpsti_tune_guard(pipeline, &window);
        gpsti_tune_open_window(pipeline);
        return;
    }
    gpsti_tune_afford_more(pipeline);
    const bool moved =
        gpsti_tuner_judge(&tune->tuner, &window, pipeline->items_ok + pipeline->items_failed);
    tune->n_to_settle = moved ? pipeline->in_flight : 0;
    if (moved)
        gpsti_tune_apply(pipeline);
    if (tune->tuner.state != GPSTI_TUNER_FROZEN)
        gpsti_guard_forget(&tune->guard);
    else if (tune->starts_plain && !moved)
        gpsti_tune_guard(pipeline, &window);
    gpsti_tune_open_window(pipeline);
}

/* True: an item was larger than any before, and fewer fit; or the first one of given settings was seen. */
GPSTI_PRIVATE bool gpsti_tune_learn(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    if (!gpsti_tuner_resize(&tune->tuner, gpsti_tune_item_bytes(tune), tune->item_device_bytes))
        return false;
    gpsti_tune_apply(pipeline);
    tune->n_to_settle = pipeline->in_flight;
    return true;
}

/* Is an item the first in some memory, or one that a driver kept waiting while it locked some for others? Only at the
   start: items that grow all the time are what the engine takes. */
GPSTI_PRIVATE bool gpsti_tune_finds_no_memory(const gpst_pipeline* pipeline) {
    const gpsti_tune* const tune = &pipeline->tune;
    const bool is_first = tune->n_items < GPSTI_TUNE_FEW_ITEMS && pipeline->items_ok < GPSTI_TUNE_MOST_ITEMS;
    const bool fills = pipeline->n_served < pipeline->n_slots &&
                       pipeline->items_ok < GPSTI_TUNE_FILL_ITEMS * (uint64_t)pipeline->n_active;
    if (tune->serial_ns <= 0.0 || (!is_first && !fills)) /* what follows has a lock of its own */
        return false;
    return tune->growths != gpsti_report_made(pipeline);
}

/* What was in flight has left. */
GPSTI_PRIVATE void gpsti_tune_settled(gpst_pipeline* pipeline) {
    gpsti_tune* const tune = &pipeline->tune;
    if (gpsti_tune_finds_others(pipeline))
        gpsti_tune_start_anew(pipeline);
    else if (tune->n_to_settle == 0)
        gpsti_tune_open_window(pipeline);
}

GPSTI_INTERN bool gpsti_tune_count(const gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpsti_tune* const tune = &pipeline->tune;
    if (slot->item.result == GPST_ERROR_CANCELLED)
        return false;
    if (!tune->on) {
        if (!GPST_FAILED(slot->item.result))
            gpsti_tune_count_fixed(slot);
        return false;
    }
    gpsti_tune_note_item(slot);
    if (!tune->modelled && GPST_FAILED(slot->item.result)) /* what it took says little of the others */
        return false;
    if (!tune->modelled) {
        gpsti_tune_model(pipeline);
        gpsti_tune_apply(pipeline);
        tune->n_to_settle = pipeline->in_flight;
        return false;
    }
    gpsti_tune_afford_fewer(pipeline);
    if (tune->paused || (!GPST_FAILED(slot->item.result) && gpsti_tune_learn(pipeline)) ||
        gpsti_tune_finds_waits(pipeline))
        return false;
    if (tune->n_to_settle > 0) {
        if (--tune->n_to_settle == 0)
            gpsti_tune_settled(pipeline);
        return false;
    }
    if (gpsti_tune_finds_no_memory(pipeline)) {
        gpsti_tune_open_window(pipeline);
        return false;
    }
    tune->n_items++;
    gpsti_tune_add_block(pipeline);
    return true;
}

GPSTI_INTERN void gpsti_tune_look(gpst_pipeline* pipeline) {
    if (!gpsti_tune_window_is_full(pipeline))
        return;
    if (gpsti_tune_doubts_crowd(pipeline))
        gpsti_tune_open_window(pipeline);
    else
        gpsti_tune_judge(pipeline);
}

/* ---- asked from outside -------------------------------------------------------------------------------- */

GPST_API void gpst_pipeline_query_tuner(gpst_pipeline* pipeline, gpst_tuner_report* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!pipeline || GPST_FAILED(gpsti_context_check(pipeline->context, "gpst_pipeline_query_tuner")))
        return;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const gpsti_tuner* const tuner = &pipeline->tune.tuner;
    gpsti_mutex_lock(&scheduler->mutex);
    out->on = pipeline->tune.on;
    out->frozen = tuner->state == GPSTI_TUNER_FROZEN;
    out->settings = tuner->now;
    out->least = tuner->least;
    out->most = tuner->most;
    out->n_decisions = tuner->n_decisions;
    memcpy(out->decisions, tuner->decisions, sizeof out->decisions);
    out->guard = pipeline->tune.guard.report;
    gpsti_mutex_unlock(&scheduler->mutex);
}
