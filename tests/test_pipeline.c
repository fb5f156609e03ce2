/* tests/test_pipeline.c -- how items flow: every one once, in order, through stages of every kind, in the engine and
   in the plain loops, with several pipelines at once and one inside another. */
#include "pipeline_kit.h"

/* ---- every item once --------------------------------------------------------------------- */

#define N_MODES 4
static const gpst_run_mode modes[N_MODES] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL, GPST_RUN_PLAIN_INSIDE,
                                             GPST_RUN_DEFAULT};

static void test_empty_and_one(void** state) {
    (void)state;
    for (uint64_t n_items = 0; n_items < 2; n_items++) {
        for (int m = 0; m < N_MODES; m++) {
            kit* const self = kit_open("cpu", 2);
            gpst_pipeline_desc desc = kit_standard(self, n_items);
            gpst_stats stats;
            desc.mode = modes[m];
            assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
            assert_int_equal(self->n_ok, n_items);
            assert_int_equal(self->next_source, n_items + 1);
            assert_int_equal(stats.bytes_read, n_items * KIT_BYTES);
            assert_int_equal(stats.bytes_written, n_items * KIT_BYTES * self->n_outputs);
            kit_check_files(self);
            kit_close(self);
        }
    }
}

static void check_all_seen(const kit* self) {
    assert_int_equal(self->n_sinks, self->n_items);
    assert_int_equal(self->n_ok, self->n_items);
    for (uint64_t n = 0; n < self->n_items; n++)
        assert_int_equal(self->seen[n], 1);
}

static void test_10000_tiny_items(void** state) {
    (void)state;
    static const uint32_t slots[] = {0, 1, 3, 64};
    for (int i = 0; i < 4; i++) {
        kit* const self = kit_open("cpu", 3);
        gpst_pipeline_desc desc = kit_simple(self, KIT_MAX_ITEMS, kit_nothing);
        gpst_stats stats;
        desc.n_slots = slots[i];
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        check_all_seen(self); /* and in order: the sink looks */
        assert_int_equal(stats.slots, slots[i] ? slots[i] : 3 + 2);
        assert_int_equal(stats.stages[0].count, KIT_MAX_ITEMS);
        kit_close(self);
    }
}

/* The first item waits in its stage until some other one has reached the sink. */
static gpst_result wait_for_another(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const int64_t give_up_ns = gpsti_now_ns() + 20 * (int64_t)1000000000;
    while (task->item->index == 0 && gpsti_a32_load(&self->broken) == 0) {
        gpst_stats stats;
        gpst_pipeline_query_stats(task->pipeline, &stats);
        if (stats.items_ok > 0)
            break;
        kit_check(self, gpsti_now_ns() < give_up_ns);
        gpsti_sleep_ns(100000);
    }
    return GPST_OK;
}

static void test_as_ready(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    self->as_ready = true;
    gpst_pipeline_desc desc = kit_simple(self, 50, wait_for_another);
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    check_all_seen(self);
    kit_close(self);
}

static void test_slow_source_and_slow_sink(void** state) {
    (void)state;
    for (int slow = 0; slow < 2; slow++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 60, kit_nothing);
        gpst_stats stats;
        self->source_ns = slow == 0 ? 1000000 : 0;
        self->sink_ns = slow == 1 ? 1000000 : 0;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        check_all_seen(self);
        assert_true(stats.wall_ns > 50 * (int64_t)1000000);
        assert_true(stats.latency_max_ns >= stats.latency_p50_ns);
        kit_close(self);
    }
}

static gpst_result return_ok_sink(void* user_data, const gpst_item* item) {
    (void)item;
    gpsti_a32_add((gpsti_a32*)user_data, 1);
    return GPST_OK;
}

/* Nobody is told of an item, so that none waits for those before it: in so few slots the first one would keep all up. */
static void test_without_a_sink(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 100, wait_for_another);
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    desc.sink = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(stats.items_ok, 100);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* ---- concurrency and order -------------------------------------------------------------------- */

typedef struct gate { /* counts who is inside a stage */
    kit* owner;
    gpsti_a32 inside, most, calls;
    uint32_t wanted; /* callers wait for so many at once, and give up after a while */
    uint64_t next;   /* ordered stages: the next index */
} gate;

static gpst_result pass_gate(void* user_data, gpst_task* task) {
    gate* const self = (gate*)user_data;
    const uint32_t now = gpsti_a32_add(&self->inside, 1) + 1;
    const int64_t give_up_ns = gpsti_now_ns() + 20 * (int64_t)1000000000;
    uint32_t most = gpsti_a32_load(&self->most);
    (void)task;
    gpsti_a32_add(&self->calls, 1);
    while (now > most && !gpsti_a32_cas(&self->most, &most, now)) {}
    while (gpsti_a32_load(&self->most) < self->wanted && gpsti_now_ns() < give_up_ns)
        gpsti_yield();
    gpsti_sleep_ns(20000); /* time for one too many */
    gpsti_a32_add(&self->inside, UINT32_MAX);
    return GPST_OK;
}

static void test_concurrency(void** state) {
    (void)state;
    static const uint32_t limits[] = {1, 2, 0};
    for (int i = 0; i < 3; i++) {
        kit* const self = kit_open("cpu", 3);
        gate door;
        memset(&door, 0, sizeof door);
        gpst_pipeline_desc desc = kit_simple(self, 300, pass_gate);
        door.wanted = limits[i] ? limits[i] : 3;
        self->stages[0].concurrency = limits[i];
        self->stages[0].user_data = &door;
        desc.n_slots = 8;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
        assert_int_equal(gpsti_a32_load(&door.most), door.wanted); /* reached, and not passed */
        assert_int_equal(gpsti_a32_load(&door.calls), 300);
        kit_close(self);
    }
}

static gpst_result scatter(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    gpsti_sleep_ns((int64_t)(task->item->index * 7919 % 5) * 100000);
    return kit_fails(self, KIT_DECODE, task->item->index)
               ? gpst_task_fail(task, GPST_ERROR_FORMAT, "item %u", (unsigned)task->item->index)
               : GPST_OK;
}

static gpst_result expect_order(void* user_data, gpst_task* task) {
    gate* const self = (gate*)user_data;
    kit_check(self->owner, gpsti_a32_add(&self->inside, 1) == 0);
    while (kit_fails(self->owner, KIT_DECODE, self->next) || kit_fails(self->owner, KIT_SOURCE, self->next))
        self->next++;
    kit_check(self->owner, task->item->index == self->next);
    self->next++;
    gpsti_a32_add(&self->calls, 1);
    gpsti_a32_add(&self->inside, UINT32_MAX);
    return GPST_OK;
}

/* Two ordered stages with one that scatters between them, while items before fail. */
static void test_ordered_stage(void** state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        kit* const self = kit_open("cpu", 3);
        gate doors[2];
        memset(doors, 0, sizeof doors);
        doors[0].owner = doors[1].owner = self;
        self->n_items = 100;
        self->fail_place = fails ? KIT_DECODE : KIT_NOWHERE;
        self->fail_every = 3;
        self->as_ready = true;
        self->stages[0] = kit_stage(self, GPST_STAGE_HOST, scatter, "scatter");
        self->stages[1] = kit_stage(self, GPST_STAGE_HOST, expect_order, "first");
        self->stages[2] = kit_stage(self, GPST_STAGE_HOST, scatter, "again");
        self->stages[3] = kit_stage(self, GPST_STAGE_HOST, expect_order, "second");
        self->stages[1].ordered = self->stages[3].ordered = true;
        self->stages[1].user_data = &doors[0];
        self->stages[3].user_data = &doors[1];
        self->n_stages = 4;
        gpst_pipeline_desc desc = kit_desc(self);
        desc.source = kit_source_empty;
        assert_int_equal(kit_run(self, &desc, NULL), fails ? GPST_PARTIAL : GPST_OK);
        assert_int_equal(self->n_sinks, 100);
        assert_int_equal(self->n_failed, fails ? 34 : 0);
        assert_int_equal(gpsti_a32_load(&doors[0].calls), fails ? 66 : 100);
        assert_int_equal(gpsti_a32_load(&doors[1].calls), fails ? 66 : 100);
        kit_close(self);
    }
}

/* ---- pictures side by side ------------------------------------------------------------------------ */

typedef struct outputs_door {
    gate door;
    gpsti_a32 served[40][5];
} outputs_door;

static gpst_result pass_output(void* user_data, gpst_task* task) {
    outputs_door* const self = (outputs_door*)user_data;
    gpsti_a32_add(&self->served[task->item->index][task->picture_index], 1);
    return pass_gate(&self->door, task);
}

static void test_per_picture(void** state) {
    (void)state;
    for (int m = 0; modes[m] != GPST_RUN_DEFAULT; m++) {
        kit* const self = kit_open("cpu", 2);
        static outputs_door first, second;
        memset(&first, 0, sizeof first);
        memset(&second, 0, sizeof second);
        first.door.wanted = m == 0 ? 2 : 1; /* of one item: there is one slot only */
        self->n_outputs = 5;
        self->n_items = 40;
        self->stages[0] = kit_stage(self, GPST_STAGE_HOST, kit_make_pictures, "make");
        self->stages[1] = kit_stage(self, GPST_STAGE_HOST, pass_output, "first");
        self->stages[2] = kit_stage(self, GPST_STAGE_HOST, pass_output, "second");
        self->stages[3] = kit_stage(self, GPST_STAGE_HOST, kit_nothing, "whole");
        self->stages[1].per_picture = self->stages[2].per_picture = true;
        self->stages[1].user_data = &first;
        self->stages[2].user_data = &second;
        self->n_stages = 4;
        gpst_pipeline_desc desc = kit_desc(self);
        gpst_stats stats;
        desc.source = kit_source_empty;
        desc.n_slots = 1;
        desc.mode = modes[m];
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        for (int i = 0; i < 40; i++) {
            for (int o = 0; o < 5; o++) {
                assert_int_equal(gpsti_a32_load(&first.served[i][o]), 1);
                assert_int_equal(gpsti_a32_load(&second.served[i][o]), 1);
            }
        }
        assert_int_equal(stats.stages[1].count, 200);
        assert_int_equal(stats.stages[3].count, 40);
        assert_int_equal(gpsti_a32_load(&first.door.most), first.door.wanted);
        kit_close(self);
    }
}

/* ---- workers ---------------------------------------------------------------------------------------- */

#define MAX_WORKERS 5

typedef struct helpers { /* what worker_init and worker_term did; [n_workers] is the plain loop's */
    kit* owner;
    gpsti_a32 inits[MAX_WORKERS], terms[MAX_WORKERS], uses[MAX_WORKERS];
    gpst_result init_result;
} helpers;

static gpst_result helper_init(void* user_data, uint32_t worker_index, void** worker_state) {
    helpers* const self = (helpers*)user_data;
    kit_check(self->owner, worker_index < MAX_WORKERS);
    gpsti_a32_add(&self->inits[worker_index], 1);
    *worker_state = &self->uses[worker_index];
    if (GPST_FAILED(self->init_result))
        return gpst_task_fail(NULL, self->init_result, "no codec for worker %u", worker_index);
    return GPST_OK;
}

static void helper_term(void* user_data, uint32_t worker_index, void* worker_state) {
    helpers* const self = (helpers*)user_data;
    kit_check(self->owner, worker_state == &self->uses[worker_index]);
    gpsti_a32_add(&self->terms[worker_index], 1);
}

static gpst_result helper_use(void* user_data, gpst_task* task) {
    helpers* const self = (helpers*)user_data;
    kit_check(self->owner, task->worker_state == &self->uses[task->worker_index]);
    gpsti_a32_add((gpsti_a32*)task->worker_state, 1);
    gpsti_sleep_ns(50000);
    return GPST_OK;
}

static void test_worker_state(void** state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        kit* const self = kit_open("cpu", 4);
        helpers help;
        memset(&help, 0, sizeof help);
        help.owner = self;
        gpst_pipeline_desc desc = kit_simple(self, 100, helper_use);
        self->stages[0].user_data = &help;
        self->stages[0].worker_init = helper_init;
        self->stages[0].worker_term = helper_term;
        desc.mode = modes[m];
        assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
        uint32_t uses = 0;
        for (int w = 0; w < MAX_WORKERS; w++) {
            const uint32_t used = gpsti_a32_load(&help.uses[w]);
            uses += used;
            assert_int_equal(gpsti_a32_load(&help.inits[w]), used > 0); /* once, on who uses it */
            assert_int_equal(gpsti_a32_load(&help.terms[w]), used > 0);
        }
        assert_int_equal(uses, 100);
        assert_int_equal(gpsti_a32_load(&help.uses[4]), modes[m] == GPST_RUN_ENGINE ? 0 : 100);
        kit_close(self);
    }
}

static void test_worker_init_fails(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    helpers help;
    memset(&help, 0, sizeof help);
    help.owner = self;
    help.init_result = GPST_ERROR_UNSUPPORTED;
    gpst_pipeline_desc desc = kit_simple(self, 10, helper_use);
    self->stages[0].user_data = &help;
    self->stages[0].worker_init = helper_init;
    self->stages[0].worker_term = helper_term;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_ERROR_UNSUPPORTED);
    test_reason_has("gpst_pipeline_run: ", "none of 10 items was done; the first: ");
    test_reason_has(": work: ", "no codec for worker ");
    assert_int_equal(self->n_failed, 10);
    assert_string_equal(self->failed_stage, "work");
    assert_memory_equal(self->failed_reason, "no codec for worker ", 20);
    for (int w = 0; w < MAX_WORKERS; w++)
        assert_int_equal(gpsti_a32_load(&help.terms[w]), 0);
    kit_close(self);
}

/* ---- the plain loops do the same -------------------------------------------------------------------- */

static void test_plain_loops_give_the_same_files(void** state) {
    (void)state;
    static const kit_place places[] = {KIT_NOWHERE, KIT_SOURCE, KIT_READ, KIT_ENCODE, KIT_SINK};
    for (int p = 0; p < 5; p++) {
        gpst_result results[N_MODES][30];
        for (int m = 0; m < N_MODES; m++) {
            kit* const self = kit_open("cpu", 2);
            gpst_pipeline_desc desc = kit_standard(self, 30);
            gpst_stats stats;
            self->fail_place = places[p];
            self->fail_first = 4;
            self->fail_every = 7;
            desc.mode = modes[m];
            assert_int_equal(kit_run(self, &desc, &stats), p ? GPST_PARTIAL : GPST_OK);
            assert_int_equal(stats.items_ok, p ? 26 : 30);
            assert_int_equal(stats.items_failed, p ? 4 : 0);
            kit_check_files(self);
            memcpy(results[m], self->results, sizeof results[m]);
            kit_close(self);
        }
        for (int m = 1; m < N_MODES; m++)
            assert_memory_equal(results[0], results[m], sizeof results[0]);
    }
}

/* ---- several at once, and one inside another ---------------------------------------------------------- */

typedef struct runner {
    gpsti_thread thread;
    gpst_context* context;
    gpst_stage_desc stage;
    uint64_t n_items, next;
    gpsti_a32 n_sinks;
    gpst_result result;
    uint64_t items_ok;
} runner;

static gpst_result runner_source(void* user_data, uint64_t index, gpst_input* out) {
    runner* const self = (runner*)user_data;
    (void)out;
    return index < self->n_items ? GPST_OK : GPST_END;
}

static void runner_main(void* argument) {
    runner* const self = (runner*)argument;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    memset(&stats, 0, sizeof stats);
    desc.stages = &self->stage;
    desc.n_stages = 1;
    desc.source = runner_source;
    desc.source_user_data = self;
    desc.sink = return_ok_sink;
    desc.sink_user_data = &self->n_sinks;
    self->result = gpst_pipeline_create(self->context, &desc, &pipeline);
    if (self->result == GPST_OK)
        self->result = gpst_pipeline_run(pipeline);
    gpst_pipeline_query_stats(pipeline, &stats);
    self->items_ok = stats.items_ok;
    gpst_pipeline_destroy(pipeline);
}

static void test_several_pipelines_at_once(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    static runner runners[4];
    memset(runners, 0, sizeof runners);
    for (int i = 0; i < 4; i++) {
        runners[i].context = self->context;
        runners[i].stage = kit_stage(self, GPST_STAGE_HOST, kit_nothing, "work");
        runners[i].n_items = 1000 + (uint64_t)i;
        assert_int_equal(gpsti_thread_start(&runners[i].thread, runner_main, &runners[i], "runner"), GPST_OK);
    }
    for (int i = 0; i < 4; i++) {
        gpsti_thread_join(&runners[i].thread);
        assert_int_equal(runners[i].result, GPST_OK);
        assert_int_equal(runners[i].items_ok, 1000 + i);
        assert_int_equal(gpsti_a32_load(&runners[i].n_sinks), 1000 + i);
    }
    kit_close(self);
}

/* A stage that runs a pipeline of its own, of the same context. */
static gpst_result run_inner(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    runner inner;
    (void)task;
    memset(&inner, 0, sizeof inner);
    inner.context = self->context;
    inner.stage = kit_stage(self, GPST_STAGE_HOST, kit_nothing, "inner");
    inner.n_items = 20;
    runner_main(&inner);
    kit_check(self, inner.result == GPST_OK);
    kit_check(self, inner.items_ok == 20);
    return GPST_OK;
}

static void test_inner_pipeline(void** state) {
    (void)state;
    for (uint32_t n_workers = 1; n_workers < 4; n_workers++) {
        for (int m = 0; m < 2; m++) {
            kit* const self = kit_open("cpu", n_workers);
            gpst_pipeline_desc desc = kit_simple(self, 20, run_inner);
            desc.mode = modes[m];
            assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
            check_all_seen(self);
            kit_close(self);
        }
    }
}

/* A stage that pushes into a pipeline of its own and waits for what comes out: the only worker helps. */
static gpst_result push_inner(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_stage_desc stage = kit_stage(self, GPST_STAGE_HOST, kit_nothing, "inner");
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    const gpst_item* item = NULL;
    gpst_input input = GPST_ZERO;
    (void)task;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.n_slots = 2;
    kit_check(self, gpst_pipeline_create(self->context, &desc, &pipeline) == GPST_OK);
    for (uint64_t n = 0; n < 10; n++) {
        kit_check(self, gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL) == GPST_OK);
        kit_check(self, gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item) == GPST_OK);
        kit_check(self, item && item->index == n && item->result == GPST_OK);
        gpst_pipeline_release(pipeline, item);
    }
    gpst_pipeline_close(pipeline);
    kit_check(self, gpst_pipeline_drain(pipeline, GPST_FOREVER) == GPST_OK);
    kit_check(self, gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item) == GPST_END);
    kit_check(self, gpst_pipeline_destroy(pipeline) == GPST_OK);
    return GPST_OK;
}

static void test_inner_push(void** state) {
    (void)state;
    for (uint32_t n_workers = 1; n_workers < 3; n_workers++) {
        kit* const self = kit_open("cpu", n_workers);
        const gpst_pipeline_desc desc = kit_simple(self, 20, push_inner);
        assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
        kit_close(self);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_and_one),
        cmocka_unit_test(test_10000_tiny_items),
        cmocka_unit_test(test_as_ready),
        cmocka_unit_test(test_slow_source_and_slow_sink),
        cmocka_unit_test(test_without_a_sink),
        cmocka_unit_test(test_concurrency),
        cmocka_unit_test(test_ordered_stage),
        cmocka_unit_test(test_per_picture),
        cmocka_unit_test(test_worker_state),
        cmocka_unit_test(test_worker_init_fails),
        cmocka_unit_test(test_plain_loops_give_the_same_files),
        cmocka_unit_test(test_several_pipelines_at_once),
        cmocka_unit_test(test_inner_pipeline),
        cmocka_unit_test(test_inner_push),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
