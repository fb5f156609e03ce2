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

/* Items of 1 ms for three workers. What was found goes through a text, as a file has it. */
static gpst_stats run_as_found(gpst_items items, bool in_turns, gpst_settings* found) {
    kit* const self = kit_open("cpu", 4);
    gpst_stats stats;
    char text[256];
    gpst_pipeline_desc desc = kit_simple(self, 100, sleep_a_little);
    self->decode_ns = 1000000;
    self->stages[0].user_data = self;
    self->stages[0].concurrency = in_turns ? 3 : 0;
    desc.n_items_expected = 100;
    desc.settings.value[GPST_KNOB_WORKERS] = desc.settings.value[GPST_KNOB_SLOTS] = 3;
    desc.settings.value[GPST_KNOB_ITEMS] = (uint32_t)items;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(gpst_settings_format(&report.settings, text, sizeof text), GPST_OK);
    assert_int_equal(gpst_settings_parse(text, found), GPST_OK);
    kit_close(self);
    return stats;
}

/* Else a run that begins with what one before it found would be another one, with three slots for everything. */
static void test_whole_items_are_given(void** state) {
    (void)state;
    gpst_settings found;
    gpst_stats stats = run_as_found(GPST_ITEMS_WHOLE, false, &found);
    assert_false(said("not whole items, as given"));
    if (strstr(stats.settings, "items=whole")) {
        assert_non_null(strstr(stats.settings, "items=whole workers=3 slots=3"));
        assert_int_equal(found.value[GPST_KNOB_ITEMS], GPST_ITEMS_WHOLE);
    }
    stats = run_as_found(GPST_ITEMS_STAGED, false, &found);
    assert_null(strstr(stats.settings, "items=whole"));
    if (strstr(stats.settings, "mode=engine")) {
        assert_non_null(strstr(stats.settings, "mode=engine items=staged workers=3 slots=3"));
        assert_int_equal(found.value[GPST_KNOB_ITEMS], GPST_ITEMS_STAGED);
    }
}

/* A stage that may not run any number of times at once is nobody's own. */
static void test_whole_items_are_given_in_vain(void** state) {
    (void)state;
    gpst_settings found;
    const gpst_stats stats = run_as_found(GPST_ITEMS_WHOLE, true, &found);
    assert_null(strstr(stats.settings, "items=whole"));
    if (strstr(stats.settings, "mode=engine")) {
        assert_non_null(strstr(stats.settings, "mode=engine items=staged workers=3 slots=3"));
        assert_true(said("not whole items, as given"));
        assert_int_equal(found.value[GPST_KNOB_ITEMS], GPST_ITEMS_STAGED);
        assert_int_equal(report.most.value[GPST_KNOB_ITEMS], GPST_ITEMS_STAGED);
    }
}

/* An engine from the first item on goes step by step, and does not say otherwise. */
static void test_whole_items_are_given_to_an_engine(void** state) {
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 20, kit_nothing);
    (void)state;
    desc.mode = GPST_RUN_ENGINE;
    desc.tune = GPST_TUNE_ON;
    desc.n_items_expected = 20;
    desc.settings.value[GPST_KNOB_ITEMS] = GPST_ITEMS_WHOLE;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    gpst_pipeline_query_tuner(self->pipeline, &report);
    assert_int_equal(report.settings.value[GPST_KNOB_ITEMS], GPST_ITEMS_STAGED);
    assert_true(said("items staged, not whole"));
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    kit_close(self);
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
    bool does = p->n_active == now[GPST_KNOB_WORKERS] && p->n_slots == now[GPST_KNOB_SLOTS] &&
                p->desc.n_reads == now[GPST_KNOB_READS] && p->desc.n_writes == now[GPST_KNOB_WRITES] &&
                p->exec.n_threads == now[GPST_KNOB_INSIDE];
    for (uint32_t s = 0; s < p->n_steps; s++)
        does = does && (p->steps[s].kind != GPSTI_STEP_OFFLOAD || p->steps[s].streams == now[GPST_KNOB_STREAMS]);
    return does;
}

static void run_with_settings(const char* backend) {
    kit* const self = kit_open(backend, 4);
    gpst_pipeline_desc desc = kit_standard(self, 60);
    desc.mode = GPST_RUN_DEFAULT;
    self->decode_ns = 1000000; /* a run of 60 ms: worth an engine on any machine */
    kit_forget(self);
    for (int k = (int)GPST_KNOB_WORKERS; k < (int)GPST_KNOB_COUNT; k++)
        desc.settings.value[k] = k == (int)GPST_KNOB_SLOTS ? 9 : k == (int)GPST_KNOB_ITEMS ? GPST_ITEMS_STAGED : 3;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    gpst_pipeline_query_tuner(self->pipeline, &report);
    assert_true(!said("starts with") || obeys(self->pipeline, report.settings.value));
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

/* Half a megabyte of frame memory for items of 100 KB: the slots are cut to what fits, and no item fails. */
static gpst_result large_input(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(100000, 1);
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_input(task, &shape, &image));
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
    assert_true(!said("starts with") || report.most.value[GPST_KNOB_SLOTS] <= 5);
    kit_close(self);
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
    gpsti_tune* const tune = &pipeline->tune;
    const uint64_t index = task->item->index;
    gpsti_mutex_lock(mutex);
    if (pipeline->attached && !tune->paused && index % 5 == 0) {
        tune->paused = true;
        tune->block_loop = 2 + (uint32_t)(index / 5 % 2);
        tune->block_items = 1 + index % 4;
        tune->paused_ns = gpsti_now_ns();
        tune->guard.n_windows = 1;
        tune->guard.engine_sum_ns = 1000.0;
        tune->guard.decided = index % 3 == 0;
        tune->plain_ns = 1.0; /* that stay differ from it at once */
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
    desc.settings.value[GPST_KNOB_LOOP] = 0;
    desc.settings.value[GPST_KNOB_ITEMS] = GPST_ITEMS_WHOLE + 1;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create", "ITEMS");
    gpst_pipeline_query_tuner(NULL, &report);
    assert_false(report.on);
    gpst_pipeline_query_tuner(NULL, NULL);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_knobs_move),
        cmocka_unit_test(test_settings_are_given),
        cmocka_unit_test(test_whole_items_are_given),
        cmocka_unit_test(test_whole_items_are_given_in_vain),
        cmocka_unit_test(test_whole_items_are_given_to_an_engine),
        cmocka_unit_test(test_a_plain_loop_is_given),
        cmocka_unit_test(test_fixed_knobs_stay),
        cmocka_unit_test(test_limits_are_of_the_desc),
        cmocka_unit_test(test_the_engine_obeys),
        cmocka_unit_test(test_memory_budget_is_kept),
        cmocka_unit_test(test_anything_goes),
        cmocka_unit_test(test_plain_blocks_at_any_moment),
        cmocka_unit_test(test_push_is_tuned_when_asked),
        cmocka_unit_test(test_bad_values_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
