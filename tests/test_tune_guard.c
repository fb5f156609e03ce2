/* tests/test_tune_guard.c -- the hands of the guard in the engine: what it expects of a plain loop from clocks that are
   set by hand, and what a block of plain items leaves behind. No run is timed. */
#include "pipeline_kit.h"
#include "test_tune.h"

#include <math.h>

/* ---- what the guard expects ----------------------------------------------------------------------- */

static gpst_result no_device_work(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return GPST_OK;
}

static double inside_ms; /* an item's time with every core inside its kernels, at the start; 0 = there was none */

/* A pipeline with a group of two DEVICE stages whose clocks say 20 and 10 ms of 10 items, on 4 cores; the window has 10
   items more of 1 ms of each service, on an engine that took 5 ms an item. One is left: the clocks alone decide. */
static gpst_guard_report expect(const char* backend, int64_t source_ms, uint64_t n_sourced, uint32_t cores) {
    kit* const self = kit_open(backend, 2);
    gpsti_tuner_window window;
    gpst_pipeline_desc desc = kit_simple(self, 100, kit_nothing);
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, no_device_work, "one");
    self->stages[2] = kit_stage(self, GPST_STAGE_DEVICE, no_device_work, "two");
    desc.n_stages = 3;
    desc.mode = GPST_RUN_DEFAULT;
    desc.n_items_expected = 100;
    gpst_pipeline* const pipeline = make(self, &desc);
    gpsti_clock* const clocks = &pipeline->clocks[pipeline->steps[1].first_clock];
    lock(self);
    self->context->info.cores_allowed = cores;
    pipeline->next_index = 99;
    pipeline->items_ok = 9;
    pipeline->items_failed = 1;
    pipeline->start_ns = pipeline->end_ns = MS;
    pipeline->source_clock.busy_ns = source_ms * MS;
    pipeline->source_clock.count = n_sourced;
    pipeline->tune.inside_ns = inside_ms * MS;
    clocks[1].busy_ns = 20 * MS;
    clocks[2].busy_ns = 10 * MS;
    memset(&window, 0, sizeof window);
    window.n_items = 10;
    window.wall_ns = 50 * MS;
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        window.service_ns[r] = 10 * MS;
        window.busy_ns[r] = 5 * MS;
    }
    gpsti_tune_guard(pipeline, &window);
    const gpst_guard_report report = pipeline->tune.guard.report;
    assert_true(pipeline->tune.guard.decided);
    assert_false(report.measured);
    unlock(self);
    unmake(self);
    return report;
}

/* Services of disks and cores as they were, of the device what it was busy for each item; the source's time on top. */
static void test_a_plain_loop_is_expected(void** state) {
    (void)state;
    const double item_ns = 3.0 * MS + 3.0 * 0.5 * MS;
    gpst_guard_report report = expect("cpu", 0, 0, 4);
    assert_true(report.engine_ns > 4.9 * MS && report.engine_ns < 5.1 * MS);
    assert_true(report.plain_serial_ns > item_ns - 1.0 && report.plain_serial_ns < item_ns + 1.0);
#if defined(_OPENMP)
    const double inside_ns = item_ns - 3.0 * MS * (1.0 - 1.0 / 4.0); /* the kernels' 3 ms, shared by four */
    assert_true(report.plain_inside_ns > inside_ns - 1.0 && report.plain_inside_ns < inside_ns + 1.0);
#else
    assert_true(report.plain_inside_ns <= 0.0);
#endif
    report = expect("cpu", 8, 4, 1);
    assert_true(report.plain_serial_ns > item_ns + 2.0 * MS - 1.0 && report.plain_serial_ns < item_ns + 2.0 * MS + 1.0);
    assert_true(report.plain_inside_ns <= 0.0); /* on one core there is no such loop */
    report = expect("sim", 0, 0, 4);
    assert_true(report.plain_serial_ns > item_ns - 1.0 && report.plain_serial_ns < item_ns + 1.0);
    assert_true(report.plain_inside_ns <= 0.0); /* nor where kernels do not run on cores */
}

/* Kernels that every core was inside took what they took, whatever they would by a share of each core. */
static void test_what_was_inside_is_believed(void** state) {
    (void)state;
#if defined(_OPENMP)
    inside_ms = 2.0; /* less than by their shares, which are 2.25 */
    gpst_guard_report report = expect("cpu", 0, 0, 4);
    assert_true(report.plain_inside_ns > 2.2 * MS && report.plain_inside_ns < 2.3 * MS);
    inside_ms = 7.0;
    report = expect("cpu", 0, 0, 4);
    assert_true(report.plain_inside_ns > 6.9 * MS && report.plain_inside_ns < 7.1 * MS);
    report = expect("cpu", 0, 0, 1);
    assert_true(report.plain_inside_ns <= 0.0);
    inside_ms = 0.0;
#endif
}

/* What the engine notes of its source. */
static void test_the_source_has_a_clock(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 20, kit_nothing);
    self->source_ns = MS;
    gpst_pipeline* const pipeline = make(self, &desc);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    assert_int_equal(pipeline->source_clock.count, 20);
    assert_true(pipeline->source_clock.busy_ns >= 20 * MS);
    unmake(self);
}

/* Ten items took two ms each where a plain loop took one: an engine that is behind, and a move that has lost, if one is
   on trial. */
static void test_a_move_on_trial_is_not_the_engine(void** state) {
    (void)state;
    static const gpsti_tuner_state states[] = {GPSTI_TUNER_BASE, GPSTI_TUNER_TRIAL, GPSTI_TUNER_FROZEN};
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 20, kit_nothing);
    desc.mode = GPST_RUN_DEFAULT;
    gpst_pipeline* const pipeline = make(self, &desc);
    pipeline->tune.serial_ns = 1.0 * MS;
    pipeline->tune.n_items = 10;
    pipeline->end_ns = pipeline->tune.start_ns + 20 * MS;
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++) {
        pipeline->tune.tuner.state = states[i];
        assert_int_equal(gpsti_tune_is_behind(pipeline), states[i] != GPSTI_TUNER_TRIAL);
    }
    pipeline->end_ns = pipeline->tune.start_ns + 12 * MS;
    assert_false(gpsti_tune_is_behind(pipeline));
    unmake(self);
}

/* One of two workers that bring whole items has come so far: not for ever, and not where there is none to come. */
static void test_workers_that_have_not_come_are_waited_for(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 20, kit_nothing);
    desc.mode = GPST_RUN_DEFAULT;
    gpst_pipeline* const pipeline = make(self, &desc);
    pipeline->tune.serial_ns = 0.1 * MS;
    pipeline->tune.n_items = 10;
    pipeline->n_slots = 2;
    for (int i = 0; i < 8; i++) {
        const bool late = i & 1, all = i & 2, staged = i & 4;
        pipeline->whole = !staged;
        pipeline->n_served = all ? 2 : 1;
        pipeline->end_ns = pipeline->start_ns + (late ? 11 : 9) * MS;
        pipeline->tune.start_ns = pipeline->end_ns - 2 * MS;
        assert_int_equal(gpsti_tune_is_behind(pipeline), late || all || staged);
    }
    pipeline->whole = false;
    unmake(self);
}

/* ---- the guard's blocks ---------------------------------------------------------------------------- */

static void test_empty_is_when_nothing_runs(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    desc.mode = GPST_RUN_DEFAULT;
    gpst_pipeline* const pipeline = make(self, &desc);
    assert_false(gpsti_tune_is_empty(pipeline));
    pipeline->tune.paused = true;
    assert_true(gpsti_tune_is_empty(pipeline));
    pipeline->in_flight = 1;
    assert_false(gpsti_tune_is_empty(pipeline));
    pipeline->in_flight = 0;
    pipeline->executing = 1;
    assert_false(gpsti_tune_is_empty(pipeline));
    pipeline->executing = 0;
    pipeline->source_running = true;
    assert_false(gpsti_tune_is_empty(pipeline));
    pipeline->source_running = false;
    unmake(self);
}

static uint32_t seen_threads; /* inside a kernel, by the last item of a block */

static gpst_result note_threads(void* user_data, gpst_task* task) {
    (void)user_data;
    seen_threads = ((const gpsti_slot*)task->item)->pipeline->exec.n_threads;
    return GPST_OK;
}

static gpst_pipeline* make_for_blocks(kit* self, uint64_t n_items) {
    gpst_pipeline_desc desc = kit_simple(self, n_items, note_threads);
    desc.mode = GPST_RUN_DEFAULT;
    gpst_pipeline* const pipeline = make(self, &desc);
    self->context->info.cores_allowed = 5;
    pipeline->exec.n_threads = pipeline->tune.tuner.now.value[GPST_KNOB_INSIDE] = 3;
    return pipeline;
}

/* Ten thousand seconds went by since the pause, and the engine did an item in engine_ns. */
static void run_block(kit* self, gpst_run_mode loop, uint64_t n_items, double engine_ns) {
    gpsti_tune* const tune = &self->pipeline->tune;
    lock(self);
    tune->paused = true;
    tune->block_loop = (uint32_t)loop;
    tune->block_items = n_items;
    tune->paused_ns = gpsti_now_ns() - (int64_t)10000 * 1000 * MS;
    tune->paused_items = self->pipeline->items_ok;
    tune->guard.n_windows = 2;
    tune->guard.engine_sum_ns = 2.0 * engine_ns;
    tune->n_to_settle = 0;
    gpsti_tune_run_block(self->pipeline);
    unlock(self);
}

static void test_a_block_leaves_no_trace(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline* const pipeline = make_for_blocks(self, 5);
    const gpsti_guard* const guard = &pipeline->tune.guard;
    run_block(self, GPST_RUN_PLAIN_INSIDE, 3, 1.0);
    assert_int_equal(seen_threads, 5);
    assert_int_equal(pipeline->exec.n_threads, 3);
    assert_false(pipeline->tune.paused);
    assert_int_equal(pipeline->tune.n_to_settle, pipeline->n_active);
    assert_int_equal(guard->n_blocks[1], 1);
    assert_int_equal(guard->n_items[1], 3);
    assert_true(guard->block_ns[1] > 0);
    assert_true(pipeline->tune.inside_ns > 0.0 && pipeline->tune.serial_ns <= 0.0);
    assert_true(guard->report.cost_ns >= (int64_t)9999 * 1000 * MS);
    pipeline->tune.inside_ns = 1e9;
    run_block(self, GPST_RUN_PLAIN_SERIAL, 1, 1e12); /* the engine would have done an item in 1000 s of the 10000 */
    assert_int_equal(seen_threads, 1);
    assert_int_equal(pipeline->exec.n_threads, 3);
    assert_int_equal(guard->n_blocks[0], 1);
    assert_true(pipeline->tune.serial_ns > 0.0 && pipeline->tune.inside_ns > 0.9e9);
    assert_int_equal(guard->n_items[0], 1);
    assert_int_equal(guard->report.plain_items, 4);
    assert_true(guard->report.cost_ns >= (int64_t)18999 * 1000 * MS);
    assert_true(guard->report.cost_ns < (int64_t)19900 * 1000 * MS);
    unmake(self);
}

/* A source that is dry in the midst of a block, or from its beginning: then there is nothing to be noted. */
static void test_a_block_may_find_nothing(void** state) {
    (void)state;
    for (uint64_t n_items = 0; n_items < 4; n_items += 2) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline* const pipeline = make_for_blocks(self, n_items);
        const gpsti_guard* const guard = &pipeline->tune.guard;
        run_block(self, GPST_RUN_PLAIN_INSIDE, 8, 1.0);
        assert_int_equal(guard->n_blocks[1], n_items > 0);
        assert_int_equal(guard->n_items[1], n_items);
        assert_true(pipeline->source_done);
        assert_false(pipeline->tune.paused);
        assert_int_equal(pipeline->exec.n_threads, 3);
        unmake(self);
    }
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline* const pipeline = make_for_blocks(self, 0);
    pipeline->tune.guard.decided = true; /* likewise for a plain loop that stays */
    run_block(self, GPST_RUN_PLAIN_INSIDE, 8, 1.0);
    assert_true(pipeline->tune.plain_ns <= 0.0);
    assert_false(pipeline->tune.paused);
    unmake(self);
}

/* It is looked at as the frozen engine is: two blocks in a row that take longer, and longer than the engine did, and
   the engine has its turn. */
static void test_a_plain_loop_that_stays_is_watched(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline* const pipeline = make_for_blocks(self, 100);
    gpsti_tune* const tune = &pipeline->tune;
    /* what an item's time is held against: a nanosecond is less by far, and infinity differs by no part of it */
    const double against[] = {0.0, 1.0, HUGE_VAL, 1.0, 1.0, 1.0, 1.0};
    const double engine[] = {0.0, 1.0, 1.0, 1.0, HUGE_VAL, 1.0, 1.0};
    tune->guard.decided = true;
    tune->guard.loop = (uint32_t)GPST_RUN_PLAIN_SERIAL;
    tune->tuner.now.value[GPST_KNOB_LOOP] = (uint32_t)GPST_RUN_PLAIN_SERIAL;
    for (size_t i = 0; i < sizeof against / sizeof against[0]; i++) {
        assert_true(tune->guard.decided);
        tune->plain_ns = against[i];
        tune->guard.report.engine_ns = engine[i];
        run_block(self, GPST_RUN_PLAIN_SERIAL, 2, 1.0);
        assert_int_equal(tune->guard.report.plain_items, 2 * (i + 1));
        assert_true(tune->plain_ns > 0.0);
        assert_int_equal(tune->paused, i < 6);
    }
    assert_false(tune->guard.decided);
    assert_int_equal(tune->tuner.now.value[GPST_KNOB_LOOP], GPST_RUN_ENGINE);
    assert_non_null(strstr(last_decision(pipeline)->reason, "looks again"));
    unmake(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_plain_loop_is_expected),
        cmocka_unit_test(test_what_was_inside_is_believed),
        cmocka_unit_test(test_the_source_has_a_clock),
        cmocka_unit_test(test_a_move_on_trial_is_not_the_engine),
        cmocka_unit_test(test_workers_that_have_not_come_are_waited_for),
        cmocka_unit_test(test_empty_is_when_nothing_runs),
        cmocka_unit_test(test_a_block_leaves_no_trace),
        cmocka_unit_test(test_a_block_may_find_nothing),
        cmocka_unit_test(test_a_plain_loop_that_stays_is_watched),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
