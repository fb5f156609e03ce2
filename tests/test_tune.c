/* tests/test_tune.c -- the hands of the tuner in the engine: clocks, counts and windows set by hand, and what becomes
   of them. No run is timed. */
#include "pipeline_kit.h"
#include "test_tune.h"

/* ---- windows ------------------------------------------------------------------------------------ */

typedef struct window_case {
    gpsti_tuner_state state;
    uint32_t n_active;
    double item_ms[2]; /* of every other block of items */
    uint64_t n_items;  /* then the window is full */
    double kept_ms;    /* an item, in the window that this one is held against; 0 = it was endless */
} window_case;

/* A block is four items, or as many as workers. */
static const window_case window_cases[] = {
    {GPSTI_TUNER_BASE, 1, {1, 1}, 16, 0},           /* four blocks */
    {GPSTI_TUNER_BASE, 2, {1, 1}, 16, 0},
    {GPSTI_TUNER_TRIAL, 2, {1, 1}, 16, 0},
    {GPSTI_TUNER_BASE, 8, {1, 1}, 32, 0},
    {GPSTI_TUNER_BASE, 2, {0.1, 0.1}, 50, 0},       /* 5 ms */
    {GPSTI_TUNER_BASE, 2, {0.01, 0.01}, 500, 0},
    {GPSTI_TUNER_BASE, 2, {1, 1.03}, 16, 0},        /* the mean of four blocks is known to 0.9 % */
    {GPSTI_TUNER_BASE, 2, {1, 1.04}, 20, 0},        /* to 1.1 %, of five to 0.96 % */
    {GPSTI_TUNER_BASE, 2, {1, 2}, 64, 0},           /* never quiet: 64 items are enough */
    {GPSTI_TUNER_BASE, 2, {20, 30}, 21, 0},         /* or half a second */
    {GPSTI_TUNER_TRIAL, 2, {0.1, 0.1}, 16, 0.08},   /* lost: four blocks */
    {GPSTI_TUNER_TRIAL, 8, {0.1, 0.1}, 32, 0.08},
    {GPSTI_TUNER_TRIAL, 2, {0.1, 0.1}, 50, 0.095},
    {GPSTI_TUNER_TRIAL, 2, {0.09, 0.11}, 24, 0.08}, /* of five it may be chance */
    {GPSTI_TUNER_BASE, 2, {0.1, 0.1}, 50, 0.08},
    {GPSTI_TUNER_FROZEN, 2, {1, 1}, 64, 0},         /* frozen there is time: 64 items */
    {GPSTI_TUNER_FROZEN, 2, {0.1, 0.1}, 500, 0},    /* and 50 ms */
    {GPSTI_TUNER_FROZEN, 2, {20, 20}, 25, 0},       /* or half a second */
    {GPSTI_TUNER_FROZEN, 2, {200, 200}, 16, 0},     /* and four blocks */
};

static void count_item(gpst_pipeline* pipeline) {
    if (gpsti_tune_count(pipeline->slots[0]))
        gpsti_tune_look(pipeline);
}

/* Items of a hand-set clock until a window is judged. */
static uint64_t fill_window(gpst_pipeline* pipeline, const window_case* c) {
    gpsti_tune* const tune = &pipeline->tune;
    const uint64_t block = c->n_active < 4 ? 4 : c->n_active;
    uint64_t n = 0;
    tune->tuner.state = c->state;
    tune->tuner.has_reference = false;
    tune->tuner.kept_rate = c->kept_ms > 0 ? 1e3 / c->kept_ms : 0.0;
    tune->tuner.kept_window.noise = 0.0;
    pipeline->n_active = c->n_active;
    tune->n_to_settle = 1; /* the next item opens a window */
    count_item(pipeline);
    do {
        pipeline->end_ns += (int64_t)(c->item_ms[n / block % 2] * MS);
        count_item(pipeline);
        n++;
    } while (tune->n_items > 0 && n < 10000);
    return n;
}

static void test_windows_are_long_enough(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    desc.tune = GPST_TUNE_ON;
    gpst_pipeline* const pipeline = make(self, &desc);
    for (size_t i = 0; i < sizeof window_cases / sizeof window_cases[0]; i++) {
        lock(self);
        pipeline->end_ns = MS;
        pipeline->tune.modelled = true;
        pipeline->tune.tuner.budget.item_host_bytes = 1;
        const uint64_t n_items = fill_window(pipeline, &window_cases[i]);
        unlock(self);
        if (n_items != window_cases[i].n_items)
            fail_msg("window %u: full after %u items", (unsigned)i, (unsigned)n_items);
    }
    unmake(self);
}

/* Tuned, with a model and the size of an item, before its first one. Locked from here on. */
static gpst_pipeline* make_modelled(kit* self) {
    gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    desc.tune = GPST_TUNE_ON;
    gpst_pipeline* const pipeline = make(self, &desc);
    lock(self);
    pipeline->tune.modelled = true;
    pipeline->tune.tuner.budget.item_host_bytes = 1;
    return pipeline;
}

/* What ended under the setting before is in no window, and neither is an item that was cancelled. */
static void test_windows_begin_when_all_is_new(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline* const pipeline = make_modelled(self);
    gpsti_tune* const tune = &pipeline->tune;
    tune->n_to_settle = 3;
    for (int i = 0; i < 3; i++) {
        pipeline->end_ns += 7 * MS;
        count_item(pipeline);
        assert_int_equal(tune->n_items, 0);
    }
    assert_int_equal(tune->start_ns, 21 * MS);
    pipeline->slots[0]->item.result = GPST_ERROR_CANCELLED;
    count_item(pipeline);
    assert_int_equal(tune->n_items, 0);
    pipeline->slots[0]->item.result = GPST_OK;
    count_item(pipeline);
    assert_int_equal(tune->n_items, 1);
    unlock(self);
    unmake(self);
}

/* Whom nobody tells of items, those end as they finish; but in order until there is a model, which would be made of the
   short ones. */
static void test_order_until_there_is_a_model(void** state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        const bool tuned = i & 1, has_sink = i & 2, as_ready = i & 4;
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
        desc.tune = tuned ? GPST_TUNE_ON : GPST_TUNE_OFF;
        desc.as_ready = as_ready;
        if (!has_sink)
            desc.sink = NULL;
        gpst_pipeline* const pipeline = make(self, &desc);
        const gpsti_step* const finish = &pipeline->steps[pipeline->n_steps - 1];
        lock(self);
        assert_int_equal(finish->ordered, !as_ready && (has_sink || tuned));
        count_item(pipeline); /* the first item */
        assert_int_equal(pipeline->tune.modelled, tuned);
        assert_int_equal(finish->ordered, !as_ready && has_sink);
        unlock(self);
        unmake(self);
    }
}

/* One in which a slot that never served had memory made is none, also where that is over at an item's end; where every
   slot has some, items that grow are what the engine takes. */
static void test_windows_begin_when_slots_are_full(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline* const pipeline = make_modelled(self);
    gpsti_tune* const tune = &pipeline->tune;
    tune->serial_ns = MS;
    pipeline->n_slots = 2;
    for (uint32_t n_served = 1; n_served <= 2; n_served++) {
        pipeline->n_served = n_served;
        tune->n_to_settle = 1;
        for (uint64_t n = 0; n <= 10; n++) {
            count_item(pipeline);
            assert_int_equal(tune->n_items, n);
        }
        count_item(pipeline);
        assert_int_equal(tune->n_items, 11);
        (void)gpsti_a64_add(&pipeline->device_growths, 1);
        count_item(pipeline);
        assert_int_equal(tune->n_items, n_served < 2 ? 0 : 12);
    }
    unlock(self);
    unmake(self);
}

/* ---- knobs -------------------------------------------------------------------------------------- */

/* A knob that cannot be moved stays where it was, says why, and is not tried again. */
static void check_refused(const gpst_pipeline* pipeline, gpst_knob knob, uint32_t stays, const char* why) {
    const gpsti_tuner* const tuner = &pipeline->tune.tuner;
    assert_int_equal(tuner->now.value[knob], stays);
    assert_int_equal(tuner->most.value[knob], stays);
    assert_int_equal(last_decision(pipeline)->knob, knob);
    assert_int_equal(last_decision(pipeline)->before, stays);
    assert_int_equal(last_decision(pipeline)->after, stays);
    if (!strstr(last_decision(pipeline)->reason, why))
        fail_msg("\"%s\" lacks \"%s\"", last_decision(pipeline)->reason, why);
}

static void test_refused_knobs_stay(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_standard(self, 1);
    desc.tune = GPST_TUNE_ON;
    gpst_pipeline* const pipeline = make(self, &desc);
    uint32_t* const now = pipeline->tune.tuner.now.value;
    lock(self);
    const uint32_t reads = pipeline->desc.n_reads, writes = pipeline->desc.n_writes, slots = pipeline->n_slots_made;
    now[GPST_KNOB_READS] = 65; /* more threads than there may be */
    gpsti_tune_apply(pipeline);
    check_refused(pipeline, GPST_KNOB_READS, reads, "65 refused: gpst_reader_set_in_flight");
    assert_int_equal(pipeline->desc.n_reads, reads);
    now[GPST_KNOB_WRITES] = 65;
    gpsti_tune_apply(pipeline);
    check_refused(pipeline, GPST_KNOB_WRITES, writes, "65 refused: ");
    assert_int_equal(pipeline->desc.n_writes, writes);
    now[GPST_KNOB_SLOTS] = slots + 3;
    test_memory_refuse(&self->memory, 5); /* the first of them is made of four pieces */
    gpsti_tune_apply(pipeline);
    test_memory_relent(&self->memory);
    char why[32];
    snprintf(why, sizeof why, "%u refused: ", slots + 3);
    check_refused(pipeline, GPST_KNOB_SLOTS, slots + 1, why);
    assert_int_equal(pipeline->n_slots, slots + 1);
    assert_int_equal(pipeline->n_slots_made, slots + 1);
    unlock(self);
    unmake(self);
}

/* A new setting is followed by what has to be made for it: that may allocate. */
static void test_a_new_setting_thaws(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    desc.tune = GPST_TUNE_ON;
    gpst_pipeline* const pipeline = make(self, &desc);
    lock(self);
    pipeline->frozen = true;
    gpsti_tune_apply(pipeline);
    assert_false(pipeline->frozen);
    unlock(self);
    unmake(self);
}

typedef struct meeting {
    gpsti_a32 n_here, n_missed;
} meeting;

/* Two items at once, or one waits for the other in vain. */
static gpst_result meet(void* user_data, gpst_task* task) {
    meeting* const self = (meeting*)user_data;
    const int64_t give_up_ns = gpsti_now_ns() + (int64_t)10000 * MS;
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
    gpst_pipeline* const pipeline = make(self, &desc);
    lock(self);
    pipeline->tune.tuner.now.value[GPST_KNOB_WORKERS] = 1;
    gpsti_tune_apply(pipeline);
    unlock(self);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    while (gpsti_a32_load(&there.n_here) == 0)
        gpsti_sleep_ns(100000);
    for (bool asleep = false; !asleep; gpsti_sleep_ns(100000)) {
        lock(self);
        asleep = self->context->scheduler->n_idle == 1;
        unlock(self);
    }
    assert_int_equal(gpsti_a32_load(&there.n_here), 1);
    lock(self);
    pipeline->tune.tuner.now.value[GPST_KNOB_WORKERS] = 2;
    gpsti_tune_apply(pipeline);
    unlock(self);
    assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpsti_a32_load(&there.n_missed), 0);
    unmake(self);
}

/* ---- budgets ------------------------------------------------------------------------------------ */

typedef struct budget_case {
    const char* backend;
    const char* pin;
    bool files; /* read, decode, compute, encode, write; else one HOST stage */
} budget_case;

static const budget_case budget_cases[] = {
    {"cpu", NULL, true}, {"cpu", "cores", true}, {"sim", NULL, true}, {"cpu", NULL, false}, {"sim", NULL, false},
};

/* Cores are the machine's, workers the context's; streams and threads inside are for who has a use for them. */
static void test_budgets_are_of_the_pipeline(void** state) {
    (void)state;
    for (size_t i = 0; i < sizeof budget_cases / sizeof budget_cases[0]; i++) {
        const budget_case* const c = &budget_cases[i];
        kit* const self = kit_open(c->backend, 2);
        gpst_context_desc context = GPST_ZERO;
#if !defined(__linux__)
        if (c->pin) {
            kit_close(self);
            continue;
        }
#endif
        context.backend = c->backend;
        context.pin = c->pin;
        context.n_workers = 7;
        context.max_host_bytes = 123456789;
        context.max_device_bytes = 98765432;
        kit_reopen(self, &context);
        self->context->info.cores_allowed = 5;
        const bool in_place = strcmp(self->backend, "cpu") == 0;
        gpst_pipeline_desc desc = c->files ? kit_standard(self, 1) : kit_simple(self, 1, kit_nothing);
        desc.mode = GPST_RUN_DEFAULT;
        desc.n_slots = 11;
        desc.n_reads = 3;
        desc.n_writes = 2;
        desc.preset = GPST_PRESET_THROUGHPUT;
        const gpsti_tuner_budget* const budget = &make(self, &desc)->tune.tuner.budget;
        assert_int_equal(budget->cores, 5);
        assert_int_equal(budget->workers, 7);
        assert_int_equal(budget->outputs, self->n_outputs);
        assert_int_equal(budget->reads, c->files);
        assert_int_equal(budget->writes, c->files);
        assert_int_equal(budget->streams, c->files && !in_place);
        assert_int_equal(budget->inside, c->files && in_place && !c->pin);
        assert_int_equal(budget->host_bytes, 123456789);
        assert_int_equal(budget->device_bytes, 98765432);
        assert_int_equal(budget->preset, GPST_PRESET_THROUGHPUT);
        assert_int_equal(budget->fixed.value[GPST_KNOB_SLOTS], 11);
        assert_int_equal(budget->fixed.value[GPST_KNOB_READS], c->files ? 3 : 0);
        assert_int_equal(budget->fixed.value[GPST_KNOB_WRITES], c->files ? 2 : 0);
        unmake(self);
    }
}

/* ---- memory without a tuner ----------------------------------------------------------------------- */

static uint8_t large_frame[100000];

/* The frame is copied when the source gives it, so that each item in flight has its memory from the beginning. */
static gpst_result large_source(void* user_data, uint64_t index, gpst_input* out) {
    const kit* const self = (const kit*)user_data;
    out->frame = kit_shape(sizeof large_frame, 1);
    out->frame.pitch_bytes = sizeof large_frame;
    out->frame.data = large_frame;
    return index < self->n_items ? GPST_OK : GPST_END;
}

static gpst_result sleep_a_little(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    gpsti_sleep_ns(500000);
    return GPST_OK;
}

/* Bunches may want more slots than the preset has: there is room for them from the start. */
static void test_bunches_have_room(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 16);
    gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    desc.tune = GPST_TUNE_ON;
    gpst_pipeline* const pipeline = make(self, &desc);
    gpsti_clock* const clock = &pipeline->clocks[0];
    lock(self);
    for (int i = 0; i < 10; i++)
        gpsti_clock_add(clock, 5000, 0, 0, false);
    pipeline->items_ok = 10;
    count_item(pipeline); /* the first that it sees: the model */
    assert_true(pipeline->n_slots > 100);
    assert_int_equal(pipeline->n_slots, pipeline->tune.tuner.now.value[GPST_KNOB_SLOTS]);
    assert_int_equal(pipeline->n_slots_made, pipeline->n_slots);
    assert_true(pipeline->n_slots <= pipeline->slots_capacity);
    unlock(self);
    unmake(self);
}

/* What an engine itself takes for an item, which no gain can be above: on a device more, in batches less of that. */
static void test_an_item_takes_an_engine_time(void** state) {
    (void)state;
    static const struct {
        const char* backend;
        uint32_t batch_most;
        int64_t least_ns;
    } cases[] = {{"cpu", 1, 2000}, {"sim", 1, 30000}, {"sim", 8, 15000}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        kit* const self = kit_open(cases[i].backend, 4);
        gpst_pipeline_desc desc = kit_standard(self, 1);
        desc.tune = GPST_TUNE_ON;
        gpst_pipeline* const pipeline = make(self, &desc);
        lock(self);
        pipeline->tune.tuner.budget.batch = cases[i].batch_most;
        bool whole = false;
        assert_int_equal(gpsti_tune_period_ns(pipeline, &whole), cases[i].least_ns);
        unlock(self);
        unmake(self);
    }
}

/* Memory for five such items: the engine's own number of slots is cut to what fits, and the user's is not. */
static void test_memory_holds_slots_back(void** state) {
    (void)state;
    for (uint32_t n_slots = 0; n_slots <= 12; n_slots += 12) {
        kit* const self = kit_open("cpu", 4);
        gpst_context_desc context = GPST_ZERO;
        gpst_stats stats;
        context.n_workers = 8;
        context.max_host_bytes = 560000;
        kit_reopen(self, &context);
        gpst_pipeline_desc desc = kit_simple(self, 120, sleep_a_little);
        desc.source = large_source;
        desc.n_slots = n_slots;
        const gpst_result result = kit_run(self, &desc, &stats);
        if (n_slots == 0) {
            assert_int_equal(result, GPST_OK);
            assert_int_equal(stats.items_ok, 120);
            assert_true(stats.slots_used > 1); /* but not for good at what a large item would need */
            assert_true(stats.slots_used <= 5 && stats.slots == 4);
        } else {
            assert_int_equal(result, GPST_PARTIAL);
            assert_int_equal(stats.slots, n_slots);
            assert_non_null(strstr(self->failed_reason, "max_host_bytes=560000 is taken by the items in flight"));
            assert_non_null(strstr(self->failed_reason, "set a smaller n_slots"));
        }
        kit_close(self);
    }
}

/* Items that take no memory are held back until one has been seen. */
static void test_items_without_memory_have_all_slots(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_context_desc context = GPST_ZERO;
    gpst_stats stats;
    context.n_workers = 2;
    context.max_host_bytes = 560000;
    kit_reopen(self, &context);
    gpst_pipeline_desc desc = kit_simple(self, 20, kit_nothing);
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_int_equal(stats.slots, 4);
    kit_close(self);
}

/* Whoever submits may count on the slots, as many as there are: the fourth finds no memory, and says so. */
static void test_who_submits_is_not_held_back(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_context_desc context = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    context.n_workers = 2;
    context.max_host_bytes = 400000;
    kit_reopen(self, &context);
    gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    desc.source = NULL;
    desc.sink = NULL;
    gpst_pipeline* const pipeline = make(self, &desc);
    assert_int_equal(large_source(self, 0, &input), GPST_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, (int64_t)10000 * MS, NULL),
                         i < 3 ? GPST_OK : GPST_ERROR_BUDGET);
    test_reason_has("max_host_bytes=400000", "set a smaller n_slots");
    assert_int_equal(pipeline->n_slots, 4);
    unmake(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_are_long_enough),
        cmocka_unit_test(test_windows_begin_when_all_is_new),
        cmocka_unit_test(test_order_until_there_is_a_model),
        cmocka_unit_test(test_windows_begin_when_slots_are_full),
        cmocka_unit_test(test_refused_knobs_stay),
        cmocka_unit_test(test_a_new_setting_thaws),
        cmocka_unit_test(test_a_new_setting_wakes),
        cmocka_unit_test(test_budgets_are_of_the_pipeline),
        cmocka_unit_test(test_bunches_have_room),
        cmocka_unit_test(test_an_item_takes_an_engine_time),
        cmocka_unit_test(test_memory_holds_slots_back),
        cmocka_unit_test(test_items_without_memory_have_all_slots),
        cmocka_unit_test(test_who_submits_is_not_held_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
