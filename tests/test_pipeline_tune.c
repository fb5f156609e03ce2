/* tests/test_pipeline_tune.c -- the tuner in the engine: knobs that move while items flow, budgets, the guard, and the
   same results whatever it does. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

/* ---- while it runs -------------------------------------------------------------------------------------- */

/* Workers that sleep are no load: more of them win, whichever they are to begin with. Which knobs move, and when, is
   test_tuner.c's. */
static void test_knobs_move(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 6);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_simple(self, 700, sleep_a_little);
    self->decode_ns = 1000000;
    desc.n_items_expected = 700;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    print_decisions();
    assert_true(report.on);
    assert_int_equal(self->n_ok, 700);
    assert_int_equal(stats.allocations_after_freeze, 0);
    kit_close(self);
}

typedef struct meter { /* how many are in a stage at once */
    kit* self;
    gpsti_a32 now, most;
} meter;

static gpst_result metered(void* user_data, gpst_task* task) {
    meter* const m = (meter*)user_data;
    const uint32_t now = gpsti_a32_add(&m->now, 1) + 1;
    (void)task;
    for (uint32_t most = gpsti_a32_load(&m->most); now > most; most = gpsti_a32_load(&m->most))
        gpsti_a32_store(&m->most, now);
    gpsti_sleep_ns(200000);
    (void)gpsti_a32_add(&m->now, UINT32_MAX);
    return GPST_OK;
}

/* Settings that were found before are where it starts: never more at once than they say, and frozen. */
static void test_settings_are_given(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 4);
    meter in_stage;
    gpst_stats stats;
    memset(&in_stage, 0, sizeof in_stage);
    gpst_pipeline_desc desc = kit_simple(self, 100, metered);
    self->stages[0].user_data = &in_stage;
    desc.n_items_expected = 100;
    desc.settings.value[GPST_KNOB_WORKERS] = 2;
    desc.settings.value[GPST_KNOB_SLOTS] = 3;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(report.settings.value[GPST_KNOB_WORKERS], 2);
    assert_int_equal(report.settings.value[GPST_KNOB_SLOTS], 3);
    assert_true(report.frozen);
    assert_true(gpsti_a32_load(&in_stage.most) <= 2);
    assert_true(stats.slots_used <= 3);
    kit_close(self);
}

/* What was found goes through a text, as a file has it, and the next run begins there. */
static void test_what_was_found_is_given(void** state) {
    (void)state;
    gpst_settings found = GPST_ZERO;
    for (int again = 0; again < 2; again++) {
        kit* const self = kit_open("cpu", 4);
        gpst_stats stats;
        char text[256];
        gpst_pipeline_desc desc = kit_simple(self, 100, sleep_a_little);
        const gpst_settings given = found;
        self->decode_ns = 1000000;
        desc.settings = given;
        desc.settings.value[GPST_KNOB_WORKERS] = 3;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(gpst_settings_format(&report.settings, text, sizeof text), GPST_OK);
        assert_int_equal(gpst_settings_parse(text, &found), GPST_OK);
        assert_memory_equal(&found, &report.settings, sizeof found);
        assert_true(said("as given: workers=3"));
        if (again && report.n_decisions == 1)
            assert_int_equal(found.value[GPST_KNOB_SLOTS], given.value[GPST_KNOB_SLOTS]);
        kit_close(self);
    }
}

static void test_a_plain_loop_is_given(void** state) {
    (void)state;
    static const char* const names[] = {"mode=plain-serial", "mode=plain-inside"};
    for (uint32_t loop = 0; loop < 2; loop++) {
        kit* const self = kit_open("cpu", 2);
        gpst_stats stats;
        gpst_pipeline_desc desc = kit_standard(self, 10);
        desc.settings.value[GPST_KNOB_LOOP] = (uint32_t)GPST_RUN_PLAIN_SERIAL + loop;
        self->decode_ns = 1000000;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_non_null(strstr(stats.settings, names[loop]));
        assert_int_equal(report.settings.value[GPST_KNOB_LOOP], (uint32_t)GPST_RUN_PLAIN_SERIAL + loop);
        assert_false(report.on);
        kit_check_files(self);
        kit_close(self);
    }
}

/* Fixed is fixed. */
static void test_fixed_knobs_stay(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 4);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_standard(self, 150);
    desc.n_slots = 2;
    desc.n_reads = 3;
    desc.n_writes = 1;
    desc.preset = GPST_PRESET_THROUGHPUT;
    self->decode_ns = 300000;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(report.settings.value[GPST_KNOB_SLOTS], 2);
    assert_int_equal(report.settings.value[GPST_KNOB_READS], 3);
    assert_int_equal(report.settings.value[GPST_KNOB_WRITES], 1);
    assert_true(stats.slots_used <= 2);
    kit_check_files(self);
    kit_close(self);
}

/* What the desc says is what the tuner is given. */
static void test_limits_are_of_the_desc(void** state) {
    (void)state;
    static const uint32_t most[] = {100, 20, 100, 200};
    for (int preset = 0; preset < 4; preset++) {
        kit* const self = kit_open("sim", 2);
        gpst_pipeline_desc desc = kit_standard(self, 1);
        desc.mode = GPST_RUN_DEFAULT;
        desc.preset = (gpst_preset)preset;
        desc.n_writes = 5;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        gpst_pipeline_query_tuner(self->pipeline, &report);
        assert_int_equal(report.most.value[GPST_KNOB_SLOTS], most[preset]);
        assert_int_equal(report.least.value[GPST_KNOB_WRITES], 5);
        assert_int_equal(report.most.value[GPST_KNOB_WRITES], 5);
        assert_int_equal(report.most.value[GPST_KNOB_READS], 64);
        assert_int_equal(report.most.value[GPST_KNOB_WORKERS], 2);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_close(self);
    }
}

static bool obeys(const gpst_pipeline* p, const uint32_t* now) {
    const gpsti_plan* const plan = &p->plan;
    bool does = p->plan.n_active == now[GPST_KNOB_WORKERS] && p->items.n_slots == now[GPST_KNOB_SLOTS] &&
                plan->desc.n_reads == now[GPST_KNOB_READS] && plan->desc.n_writes == now[GPST_KNOB_WRITES] &&
                plan->kernel_threads == now[GPST_KNOB_INSIDE];
    for (uint32_t s = 0; s < plan->n_steps; s++)
        does = does && (!plan->steps[s].kind->joins || plan->steps[s].streams == now[GPST_KNOB_STREAMS]);
    return does;
}

static void run_with_settings(const char* backend) {
    kit* const self = kit_open(backend, 4);
    gpst_pipeline_desc desc = kit_standard(self, 60);
    desc.mode = GPST_RUN_DEFAULT;
    self->decode_ns = 1000000; /* a run of 60 ms: worth an engine on any machine */
    kit_forget(self);
    for (int k = (int)GPST_KNOB_WORKERS; k < (int)GPST_KNOB_COUNT; k++)
        desc.settings.value[k] = k == (int)GPST_KNOB_SLOTS ? 9 : 3;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    gpst_pipeline_query_tuner(self->pipeline, &report);
    assert_true(gpsti_a32_load(&self->pipeline->signals.open) == 0 || obeys(self->pipeline, report.settings.value));
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    kit_check_files(self);
    kit_close(self);
}

/* And what the tuner says is what the engine does, where one was opened. */
static void test_the_engine_obeys(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim"};
    for (int b = 0; b < 2; b++)
        run_with_settings(backends[b]);
}

/* Half a megabyte of frame memory for items of 100 KB: no more are in flight than fit, and none fails. */
static gpst_result large_input(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(100000, 1);
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, 0, 0, &shape, &image));
    gpsti_sleep_ns(500000);
    return GPST_OK;
}

static void test_memory_budget_is_kept(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 4);
    gpst_context_desc context = GPST_ZERO;
    gpst_stats stats;
    context.n_workers = 4;
    context.max_host_bytes = 560000;
    kit_reopen(self, &context);
    gpst_pipeline_desc desc = kit_simple(self, 120, large_input);
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, 120);
    assert_true(stats.slots_used <= 5);
    kit_close(self);
}

/* ---- clocks that are set by hand, in a pipeline that does not run ------------------------------------------- */

#define MS ((int64_t)1000000)

static void lock(const kit* self) { gpsti_mutex_lock(&self->context->scheduler->mutex); }
static void unlock(const kit* self) { gpsti_mutex_unlock(&self->context->scheduler->mutex); }

static gpsti_locked locked_of(const gpst_pipeline* pipeline) { return &pipeline->context->scheduler->held; }

/* As if workers had begun. Locked from here on. */
static gpst_pipeline* make_open(kit* self, gpst_pipeline_desc* desc) {
    desc->mode = GPST_RUN_DEFAULT;
    assert_int_equal(gpst_pipeline_create(self->context, desc, &self->pipeline), GPST_OK);
    lock(self);
    gpsti_a32_store(&self->pipeline->signals.open, 1);
    gpsti_tune_open(locked_of(self->pipeline), self->pipeline);
    return self->pipeline;
}

static void unmake(kit* self) {
    unlock(self);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    kit_close(self);
}

static const gpst_tuner_decision* last_line(const gpst_pipeline* pipeline) {
    return &pipeline->tune->tuner.decisions[pipeline->tune->tuner.n_decisions - 1];
}

/* What a block says is done: the plain loop stays, in blocks of 64 items, until two in a row take a fifth longer than the
   first did; or the engine goes on, and a dry source ends it all. */
static void test_a_block_is_obeyed(void** state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
        gpst_pipeline* const pipeline = make_open(self, &desc);
        gpsti_tune* const tune = pipeline->tune;
        const bool plain = i > 0;
        const gpst_run_mode loop = i == 0 ? GPST_RUN_ENGINE : i == 1 ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_PLAIN_INSIDE;
        pipeline->plan.kernel_threads = i == 2 ? 4 : 1; /* a lone item's kernels had, in the block */
        tune->guard.report.engine_ns = 1e6;
        tune->paused = true;
        tune->block_items = 10;
        gpsti_tune_end_block(pipeline, 10, plain ? 5 * MS : 20 * MS);
        assert_true(tune->guard.decided);
        assert_int_equal(tune->paused, plain);
        assert_int_equal(tune->tuner.now.value[GPST_KNOB_LOOP], loop);
        assert_int_equal(last_line(pipeline)->knob, GPST_KNOB_LOOP);
        assert_string_equal(last_line(pipeline)->reason, tune->guard.report.text);
        assert_int_equal(tune->n_unjudged, pipeline->plan.n_active);
        if (plain) {
            static const int64_t item_ms[] = {10, 13, 10, 13, 11, 13, 13};
            assert_int_equal(tune->block_items, 64);
            for (size_t b = 0; b < sizeof item_ms / sizeof item_ms[0]; b++) {
                assert_true(tune->paused && tune->guard.decided);
                gpsti_tune_end_block(pipeline, 64, 64 * item_ms[b] * MS);
            }
            assert_false(tune->paused || tune->guard.decided);
            assert_int_equal(tune->tuner.now.value[GPST_KNOB_LOOP], GPST_RUN_ENGINE);
            assert_non_null(strstr(last_line(pipeline)->reason, "looks again"));
            assert_int_equal(tune->guard.report.plain_items, 10 + 7 * 64);
        }
        tune->paused = true;
        gpsti_tune_end_block(pipeline, 0, MS);
        assert_false(tune->paused);
        unmake(self);
    }
}

/* Once no knob moves a window's clocks decide: a block is tried where a plain loop could be as fast, and items are left
   for it. The source takes all the time that a plain loop would; 200 ms are 20 items. */
static void test_the_guard_is_asked(void** state) {
    static const struct {
        int64_t source_ms;
        uint64_t n_expected;
        uint32_t block_items;
    } cases[] = {{5, 6400, 16}, {5, 128, 2}, {5, 32, 0}, {15, 6400, 0}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
        desc.n_items_expected = cases[c].n_expected;
        gpst_pipeline* const pipeline = make_open(self, &desc);
        gpsti_tune* const tune = pipeline->tune;
        tune->tuner.state = GPSTI_TUNER_FROZEN;
        tune->n_unjudged = 1;
        pipeline->counts.end_ns = 1000 * MS;
        gpsti_tune_count(locked_of(pipeline), pipeline->items.slots[0]); /* the window opens */
        gpsti_clock_add(&pipeline->counts.source_clock, cases[c].source_ms * MS, 0, 0, false);
        for (int i = 1; i <= 20; i++) {
            assert_false(tune->guard.decided || tune->paused);
            pipeline->counts.end_ns = (1000 + 10 * (i < 20 ? 0 : i)) * MS;
            gpsti_tune_count(locked_of(pipeline), pipeline->items.slots[0]);
        }
        assert_int_equal(tune->guard.decided, cases[c].block_items == 0);
        assert_int_equal(tune->paused, cases[c].block_items > 0);
        assert_int_equal(tune->block_items, cases[c].block_items > 0 ? cases[c].block_items : 64);
        if (tune->guard.decided)
            assert_string_equal(last_line(pipeline)->reason, "the engine stays: the plain loop was not measured");
        tune->paused = false;
        unmake(self);
    }
}

/* A knob that cannot be moved stays where it was, says why, and is not tried again. */
static void check_refused(const gpst_pipeline* pipeline, gpst_knob knob, uint32_t stays, const char* why) {
    const gpsti_tuner* const tuner = &pipeline->tune->tuner;
    assert_int_equal(tuner->now.value[knob], stays);
    assert_int_equal(tuner->most.value[knob], stays);
    assert_int_equal(last_line(pipeline)->knob, knob);
    assert_int_equal(last_line(pipeline)->after, stays);
    if (!strstr(last_line(pipeline)->reason, why))
        fail_msg("\"%s\" lacks \"%s\"", last_line(pipeline)->reason, why);
}

static void test_refused_knobs_stay(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    char why[32];
    gpst_pipeline_desc desc = kit_standard(self, 1);
    gpst_pipeline* const pipeline = make_open(self, &desc);
    uint32_t* const now = pipeline->tune->tuner.now.value;
    const uint32_t reads = pipeline->plan.desc.n_reads, writes = pipeline->plan.desc.n_writes, slots = pipeline->items.n_made;
    pipeline->counts.frozen = true;
    now[GPST_KNOB_READS] = 65; /* more threads than there may be */
    gpsti_tune_open(locked_of(pipeline), pipeline);
    assert_false(pipeline->counts.frozen); /* what a new setting needs has to be made */
    check_refused(pipeline, GPST_KNOB_READS, reads, "65 refused: gpst_reader_set_in_flight");
    assert_int_equal(pipeline->plan.desc.n_reads, reads);
    now[GPST_KNOB_WRITES] = 65;
    gpsti_tune_open(locked_of(pipeline), pipeline);
    check_refused(pipeline, GPST_KNOB_WRITES, writes, "65 refused: ");
    assert_int_equal(pipeline->plan.desc.n_writes, writes);
    now[GPST_KNOB_SLOTS] = slots + 3;
    test_memory_refuse(&self->memory, 14); /* entries for the memory of all, the first with 12 pieces, one of the next */
    gpsti_tune_open(locked_of(pipeline), pipeline);
    test_memory_relent(&self->memory);
    snprintf(why, sizeof why, "%u refused: ", slots + 3);
    check_refused(pipeline, GPST_KNOB_SLOTS, slots + 1, why);
    assert_int_equal(pipeline->items.n_slots, slots + 1);
    assert_int_equal(pipeline->items.n_made, slots + 1);
    unmake(self);
}

typedef struct meeting {
    gpsti_a32 n_here, n_missed;
} meeting;

/* Two items at once, or one waits for the other in vain. */
static gpst_result meet(void* user_data, gpst_task* task) {
    meeting* const self = (meeting*)user_data;
    const int64_t give_up_ns = gpsti_now_ns() + 20000 * MS;
    (void)task;
    gpsti_a32_add(&self->n_here, 1);
    while (gpsti_a32_load(&self->n_here) < 2 && gpsti_now_ns() < give_up_ns)
        gpsti_sleep_ns(100000);
    if (gpsti_a32_load(&self->n_here) < 2)
        gpsti_a32_add(&self->n_missed, 1);
    return GPST_OK;
}

/* The second worker sleeps, because only one may work; then both may, and nobody but the tuner could call it. */
static void test_a_new_setting_wakes(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    meeting there;
    gpst_pipeline_desc desc = kit_simple(self, 2, meet);
    gpst_input input = GPST_ZERO;
    memset(&there, 0, sizeof there);
    self->stages[0].user_data = &there;
    desc.source = NULL;
    desc.tune = GPST_TUNE_ON;
    gpst_pipeline* const pipeline = make_open(self, &desc);
    pipeline->tune->tuner.now.value[GPST_KNOB_WORKERS] = 1;
    gpsti_tune_open(locked_of(pipeline), pipeline);
    unlock(self);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    while (gpsti_a32_load(&there.n_here) == 0)
        gpsti_sleep_ns(100000);
    gpsti_sleep_ns(5 * MS);
    assert_int_equal(gpsti_a32_load(&there.n_here), 1);
    lock(self);
    pipeline->tune->tuner.now.value[GPST_KNOB_WORKERS] = 2;
    gpsti_tune_open(locked_of(pipeline), pipeline);
    unlock(self);
    assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpsti_a32_load(&there.n_missed), 0);
    lock(self);
    unmake(self);
}

/* ---- anything at any time -------------------------------------------------------------------------------- */

static void test_anything_goes(void** state) {
    (void)state;
    uint64_t random = test_seed(41);
    static const char* const backends[] = {"cpu", "sim", "sim:kernel_us=200"};
    for (int round = 0; round < 30; round++) {
        kit* const self = kit_open(backends[round % 3], 1 + (uint32_t)(test_random(&random) % 4));
        gpst_stats stats;
        gpsti_thread thread;
        self->as_ready = test_random(&random) % 2 == 0;
        gpst_pipeline_desc desc = kit_standard(self, test_random(&random) % 120);
        desc.mode = GPST_RUN_DEFAULT;
        desc.preset = (gpst_preset)(int)(test_random(&random) % 4);
        desc.n_items_expected = test_random(&random) % 2 ? self->n_items : 0;
        desc.n_slots = (uint32_t)(test_random(&random) % 3);
        self->stages[1].ordered = test_random(&random) % 3 == 0;
        self->decode_ns = test_random(&random) % 3 ? (int64_t)(test_random(&random) % 500000) : 0;
        self->sink_ns = (int64_t)(test_random(&random) % 100000) + 1;
        self->cancel_ns = self->sink_ns * 100;
        self->fail_place = (kit_place)(int)(test_random(&random) % 10);
        self->fail_every = 7;
        self->fail_first = test_random(&random) % 7;
        if (self->fail_place == KIT_COMMIT) /* what is in the way would have to be made */
            self->fail_place = KIT_DECODE;
        const bool cancels = round % 2 == 0;
        kit_forget(self);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        if (cancels)
            assert_int_equal(gpsti_thread_start(&thread, kit_cancel_soon, self, "cancel"), GPST_OK);
        const gpst_result result = gpst_pipeline_run(self->pipeline);
        if (cancels)
            gpsti_thread_join(&thread);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_true(result == GPST_OK || result == GPST_PARTIAL ||
                    (cancels && result == GPST_ERROR_CANCELLED));
        assert_int_equal(stats.items_total, self->n_sinks);
        assert_int_equal(stats.items_ok + stats.items_failed + stats.items_cancelled, self->n_sinks);
        assert_true(cancels || self->n_sinks == self->n_items);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_check_files(self);
        kit_close(self);
    }
}

/* ---- the guard ------------------------------------------------------------------------------------------------- */

/* Plain blocks at any moment, some of which stay for a while: order, errors, files and cancel are as ever. */
static gpst_result decode_and_interfere(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    gpst_pipeline* const pipeline = self->pipeline;
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_tune* const tune = pipeline->tune;
    const uint64_t index = task->item->index;
    gpsti_mutex_lock(mutex);
    if (gpsti_a32_load(&pipeline->signals.open) != 0 && !tune->paused && index % 5 == 0) {
        tune->paused = true;
        tune->block_items = 1 + index % 4;
        tune->guard.decided = index % 3 == 0;
        tune->guard.report.engine_ns = 1000.0;
        tune->guard.stay_ns = 1.0; /* blocks that stay differ from it at once */
    }
    gpsti_mutex_unlock(mutex);
    return kit_decode(user_data, task);
}

static void test_plain_blocks_at_any_moment(void** state) {
    (void)state;
    uint64_t random = test_seed(43);
    static const char* const backends[] = {"cpu", "sim:kernel_us=50"};
    for (int round = 0; round < 24; round++) {
        kit* const self = kit_open(backends[round % 2], 2 + (uint32_t)(test_random(&random) % 3));
        gpst_stats stats;
        gpsti_thread thread;
        self->as_ready = test_random(&random) % 2 == 0;
        gpst_pipeline_desc desc = kit_standard(self, 40 + test_random(&random) % 80);
        desc.mode = GPST_RUN_DEFAULT;
        desc.n_items_expected = self->n_items;
        self->stages[1].func = decode_and_interfere;
        self->stages[1].ordered = test_random(&random) % 3 == 0;
        self->decode_ns = 300000;
        self->sink_ns = (int64_t)(test_random(&random) % 50000) + 1;
        self->cancel_ns = self->sink_ns * 100;
        self->fail_place = (kit_place)(int)(test_random(&random) % 8);
        self->fail_every = 7;
        const bool cancels = round % 4 == 3;
        kit_forget(self);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        if (cancels)
            assert_int_equal(gpsti_thread_start(&thread, kit_cancel_soon, self, "cancel"), GPST_OK);
        const gpst_result result = gpst_pipeline_run(self->pipeline);
        if (cancels)
            gpsti_thread_join(&thread);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_true(result == GPST_OK || result == GPST_PARTIAL || (cancels && result == GPST_ERROR_CANCELLED));
        assert_int_equal(stats.items_ok + stats.items_failed + stats.items_cancelled, self->n_sinks);
        assert_true(cancels || self->n_sinks == self->n_items);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_check_files(self);
        kit_close(self);
    }
}

/* A pushed pipeline is tuned only when asked. */
static void test_push_is_tuned_when_asked(void** state) {
    (void)state;
    for (int on = 0; on < 2; on++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 300, sleep_a_little);
        gpst_input input = GPST_ZERO;
        desc.source = NULL;
        desc.mode = GPST_RUN_DEFAULT;
        desc.tune = on ? GPST_TUNE_ON : GPST_TUNE_DEFAULT;
        self->decode_ns = 100000;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        for (int i = 0; i < 300; i++)
            assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
        gpst_pipeline_query_tuner(self->pipeline, &report);
        assert_int_equal(report.on, on == 1);
        assert_true(on == 0 || report.n_decisions >= 1);
        assert_int_equal(self->n_ok, 300);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_close(self);
    }
}

static void test_bad_values_are_refused(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    desc.tune = (gpst_tune)3;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create", "tune=3");
    desc.tune = GPST_TUNE_ON;
    desc.preset = (gpst_preset)4;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create", "preset=4");
    desc.preset = GPST_PRESET_LATENCY;
    desc.settings.value[GPST_KNOB_LOOP] = 4;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create", "LOOP");
    gpst_pipeline_query_tuner(NULL, &report);
    assert_false(report.on);
    gpst_pipeline_query_tuner(NULL, NULL);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_knobs_move),
        cmocka_unit_test(test_settings_are_given),
        cmocka_unit_test(test_what_was_found_is_given),
        cmocka_unit_test(test_a_plain_loop_is_given),
        cmocka_unit_test(test_fixed_knobs_stay),
        cmocka_unit_test(test_limits_are_of_the_desc),
        cmocka_unit_test(test_the_engine_obeys),
        cmocka_unit_test(test_memory_budget_is_kept),
        cmocka_unit_test(test_a_block_is_obeyed),
        cmocka_unit_test(test_the_guard_is_asked),
        cmocka_unit_test(test_refused_knobs_stay),
        cmocka_unit_test(test_a_new_setting_wakes),
        cmocka_unit_test(test_anything_goes),
        cmocka_unit_test(test_plain_blocks_at_any_moment),
        cmocka_unit_test(test_push_is_tuned_when_asked),
        cmocka_unit_test(test_bad_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
