/* tests/test_pipeline_api.c -- what the engine refuses and how it says so: rules of the desc, calls from the wrong
   place, after fork, in the wrong order; and what a callback may ask for. */
#include "pipeline_kit.h"

#include <sys/wait.h>

/* ---- rules of the desc ------------------------------------------------------------------------ */

typedef struct rule_case {
    kit* owner;
    gpst_pipeline_desc desc;
    gpst_stage_desc stages[GPST_MAX_STAGES + 1];
    gpst_warp* warp;
} rule_case;

typedef struct rule {
    void (*break_it)(rule_case* c);
    const char* member; /* the sentence names it */
    const char* what;   /* and says this */
} rule;

static void break_start(rule_case* c) { c->desc.start_canary = 7; }
static void break_end(rule_case* c) { c->desc.end_canary = 7; }
static void break_stages(rule_case* c) { c->desc.stages = NULL; }
static void break_none(rule_case* c) { c->desc.n_stages = 0; }
static void break_many(rule_case* c) { c->desc.n_stages = GPST_MAX_STAGES + 1; }
static void break_kind(rule_case* c) { c->stages[1].kind = GPST_STAGE_INVALID; }
static void break_kind_high(rule_case* c) {
    c->stages[1].kind = (gpst_stage_kind)(int)(GPST_STAGE_ENCODE + 1);
}
static void break_read(rule_case* c) { c->stages[1].kind = GPST_STAGE_READ; }
static void break_write(rule_case* c) { c->stages[1].kind = GPST_STAGE_WRITE; }
static void break_func(rule_case* c) { c->stages[1].func = NULL; }
static void break_device_func(rule_case* c) {
    c->stages[1].kind = GPST_STAGE_DEVICE;
    c->stages[1].func = NULL;
}
static void break_warp(rule_case* c) { c->stages[1].kind = GPST_STAGE_WARP; }
static void break_two_warps(rule_case* c) {
    c->stages[2].kind = c->stages[3].kind = GPST_STAGE_WARP;
    c->stages[2].warp = c->stages[3].warp = c->warp;
    c->desc.n_stages = 4;
}
static void break_warp_capacity(rule_case* c) {
    c->stages[2].kind = GPST_STAGE_WARP;
    c->stages[2].warp = c->warp;
    c->desc.capacity[1] = 7;
}
static void break_per_picture_kind(rule_case* c) { c->stages[0].per_picture = true; }
static void break_per_picture_ordered(rule_case* c) { c->stages[1].per_picture = c->stages[1].ordered = true; }
static void break_per_picture_first(rule_case* c) { c->stages[1].per_picture = true; }
static void break_few_parts(rule_case* c) {
    c->stages[2].per_picture = true;
    c->stages[2].reads = GPST_SET(1);
    c->stages[2].writes = GPST_SET(2);
    c->desc.capacity[1] = 4;
    c->desc.capacity[2] = 3;
}
static void break_both(rule_case* c) { c->stages[1].reads = c->stages[1].writes = GPST_SET(2); }
static void break_high_set(rule_case* c) { c->stages[1].reads = GPST_SET(GPST_MAX_SETS); }
static void break_read_sets(rule_case* c) { c->stages[0].reads = GPST_SET(0); }
static void break_read_of_nobody(rule_case* c) {
    c->stages[1].reads = GPST_SET(0) | GPST_SET(5);
    c->stages[1].writes = GPST_SET(1);
}
static void break_frame_before_it_is_made(rule_case* c) {
    c->stages[1].reads = c->stages[2].writes = GPST_SET(0);
    c->stages[1].writes = c->stages[2].reads = GPST_SET(1);
    c->desc.stages = &c->stages[1]; /* no READ stage: the source may bring frames */
    c->desc.n_stages = 2;
}
static void break_second_of_one(rule_case* c) {
    gpst_stage_warp(&c->stages[2], 0, 1, c->warp);
    c->stages[2].second_set = 2;
}
static void break_second_of_host(rule_case* c) { c->stages[1].second_set = 1; }
static void break_mask(rule_case* c) {
    static gpst_mask_desc mask;
    mask.kind = GPST_MASK_MORPH;
    mask.size = 4;
    gpst_stage_mask(&c->stages[2], 0, 1, &mask);
}
static void break_result(rule_case* c) {
    c->desc.n_results = 1;
    c->desc.results[0] = gpst_result_of(GPST_MAX_SETS, GPST_ON_HOST);
}
static void break_result_of_nobody(rule_case* c) {
    for (int s = 1; s < 3; s++)
        c->stages[s].writes = GPST_SET(s);
    c->desc.n_results = 1;
    c->desc.results[0] = gpst_result_of(7, GPST_ON_HOST);
}
static void break_result_twice(rule_case* c) {
    c->desc.n_results = 2;
    c->desc.results[0] = c->desc.results[1] = gpst_result_of(1, GPST_ON_HOST);
}
static void break_place(rule_case* c) {
    c->desc.n_results = 1;
    c->desc.results[0] = gpst_result_of(1, (gpst_place)(int)(GPST_ON_DEVICE + 1));
}
static void break_stage_policy(rule_case* c) {
    c->stages[1].full_policy = (gpst_full_policy)7;
}
static void break_ordered(rule_case* c) { c->stages[0].ordered = true; }
static void break_name(rule_case* c) { c->stages[1].name = "a name of thirty-two bytes or so"; }
static void break_mode(rule_case* c) { c->desc.mode = (gpst_run_mode)(int)(GPST_RUN_PLAIN_INSIDE + 1); }
static void break_mode_low(rule_case* c) { c->desc.mode = (gpst_run_mode)-1; }
static void break_policy(rule_case* c) {
    c->desc.full_policy = (gpst_full_policy)(int)(GPST_FULL_LATEST_ONLY + 1);
}
static void break_fsync(rule_case* c) { c->desc.fsync = (gpst_fsync)(int)(GPST_FSYNC_NONE + 1); }
static void break_graphs(rule_case* c) { c->desc.graphs = (gpst_graph_use)(int)(GPST_GRAPHS_ALWAYS + 1); }
static void break_plain_push(rule_case* c) {
    c->desc.mode = GPST_RUN_PLAIN_SERIAL;
    c->desc.source = NULL;
}
static void break_slots(rule_case* c) { c->desc.n_slots = 4097; }
static void break_reads(rule_case* c) { c->desc.n_reads = 65; }
static void break_writes(rule_case* c) { c->desc.n_writes = 65; }
static void break_capacity(rule_case* c) { c->desc.capacity[1] = 4097; }

static const rule rules[] = {
    {break_start, "start_canary=7", "must be 0"},
    {break_end, "end_canary=7", "must be 0"},
    {break_stages, "stages", "required"},
    {break_none, "n_stages=0", "1..16"},
    {break_many, "n_stages=17", "1..16"},
    {break_kind, "stages[1].kind=0", "unknown"},
    {break_kind_high, "stages[1].kind=9", "unknown"},
    {break_read, "stages[1].kind=READ", "only the first"},
    {break_write, "stages[1].kind=WRITE", "only the last"},
    {break_func, "stages[1].func=NULL", "required"},
    {break_device_func, "stages[1].func=NULL", "required"},
    {break_warp, "stages[1].warp=NULL", "required"},
    {break_two_warps, "stages[3].writes=0x2: set 1", "written by a stage before"},
    {break_warp_capacity, "capacity[1]=7", "stages[2] makes 1"},
    {break_per_picture_kind, "stages[0].per_picture", "only for a HOST stage"},
    {break_per_picture_ordered, "stages[1].per_picture", "not ordered"},
    {break_per_picture_first, "stages[1].reads=0x2", "no stage before it writes set 1"},
    {break_few_parts, "capacity[2]=3", "may make 4"},
    {break_both, "stages[1]: set 2 is read and written", "no stage writes what it reads"},
    {break_high_set, "stages[1].reads=0x10000", "sets are 0..15"},
    {break_read_sets, "stages[0].reads=0x1", "have files, not sets"},
    {break_read_of_nobody, "stages[1].reads=0x21", "no stage before it writes set 0"},
    {break_frame_before_it_is_made, "stages[0].reads=0x1", "no stage before it writes set 0"},
    {break_second_of_one, "stages[2].second_set=2", "reads=0x1 has one set"},
    {break_second_of_host, "stages[1].second_set=1", "only for WARP and MASK"},
    {break_mask, "stages[2].mask: morph=0", "both 3 or 5"},
    {break_result, "results[0].set=16", "0..15"},
    {break_result_of_nobody, "results[0].set=7", "no stage writes it"},
    {break_result_twice, "results[1].set=1", "named twice"},
    {break_place, "results[0].place=3", "unknown"},
    {break_stage_policy, "stages[1].full_policy=7", "unknown"},
    {break_ordered, "stages[0].ordered", "only for a HOST stage"},
    {break_name, "stages[1].name=", "at most 31"},
    {break_mode, "mode=4", "unknown"},
    {break_mode_low, "mode=-1", "unknown"},
    {break_policy, "full_policy=4", "unknown"},
    {break_fsync, "fsync=3", "unknown"},
    {break_graphs, "graphs=3", "unknown"},
    {break_plain_push, "mode", "source is required"},
    {break_slots, "n_slots=4097", "at most 4096"},
    {break_reads, "n_reads=65", "at most 64"},
    {break_writes, "n_writes=65", "at most 64"},
    {break_capacity, "capacity[1]=4097", "at most 4096"},
};

static gpst_warp* make_resize(uint32_t width, uint32_t height) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_RESIZE;
    desc.width = width;
    desc.height = height;
    desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

/* READ, HOST, and a HOST to spare: all right until broken. */
static void rule_case_init(rule_case* c, kit* self, gpst_warp* warp) {
    memset(c, 0, sizeof *c);
    c->owner = self;
    c->warp = warp;
    c->stages[0] = kit_stage(self, GPST_STAGE_READ, NULL, NULL);
    for (int s = 1; s <= GPST_MAX_STAGES; s++)
        c->stages[s] = kit_stage(self, GPST_STAGE_HOST, kit_nothing, NULL);
    c->desc.stages = c->stages;
    c->desc.n_stages = 3;
    c->desc.source = kit_source_empty;
    c->desc.source_user_data = self;
}

static void test_every_rule(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_warp* const warp = make_resize(4, 4);
    static rule_case c;
    gpst_pipeline* pipeline = NULL;
    for (size_t r = 0; r < sizeof rules / sizeof rules[0]; r++) {
        rule_case_init(&c, self, warp);
        assert_int_equal(gpst_pipeline_create(self->context, &c.desc, &pipeline),
                         GPST_OK); /* right until broken */
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        rules[r].break_it(&c);
        gpst_clear_reason();
        pipeline = NULL;
        if (gpst_pipeline_create(self->context, &c.desc, &pipeline) != GPST_ERROR_ARGUMENT)
            fail_msg("%s was not refused", rules[r].member);
        test_reason_has(rules[r].member, rules[r].what);
        test_reason_has("gpst_pipeline_create", "");
        assert_null(pipeline);
    }
    gpst_warp_destroy(warp);
    kit_close(self);
}

static void test_arguments_and_version(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    const gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    gpst_pipeline* pipeline = NULL;
    assert_int_equal(gpst_pipeline_create(NULL, &desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create", "context=NULL");
    assert_int_equal(gpst_pipeline_create(self->context, NULL, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create", "desc=NULL");
    assert_int_equal(gpst_pipeline_create(self->context, &desc, NULL), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create", "out=NULL");
    assert_int_equal(
        gpst_pipeline_create_versioned(GPST_VERSION + 1, sizeof desc, self->context, &desc, &pipeline),
        GPST_ERROR_VERSION);
    assert_int_equal(
        gpst_pipeline_create_versioned(GPST_VERSION, sizeof desc + 8, self->context, &desc, &pipeline),
        GPST_ERROR_VERSION);
    assert_int_equal(gpst_pipeline_run(NULL), GPST_ERROR_ARGUMENT);
    assert_null(pipeline);
    kit_close(self);
}

/* Sixteen stages, the most there may be; the caller's array and names are gone by the time it runs. */
static void test_most_stages_and_copies(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_stage_desc stages[GPST_MAX_STAGES];
    char names[GPST_MAX_STAGES][32];
    gpst_pipeline_desc desc = kit_simple(self, 10, kit_nothing);
    gpst_stats stats;
    for (uint32_t s = 0; s < GPST_MAX_STAGES; s++) {
        snprintf(names[s], sizeof names[s], "the thirty-one bytes of stage %c", 'a' + (int)s);
        stages[s] = kit_stage(self, GPST_STAGE_HOST, kit_nothing, names[s]);
    }
    desc.stages = stages;
    desc.n_stages = GPST_MAX_STAGES;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    memset(stages, 0xA5, sizeof stages);
    memset(names, 0xA5, sizeof names);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    gpst_pipeline_query_stats(self->pipeline, &stats);
    assert_int_equal(stats.n_stages, GPST_MAX_STAGES);
    assert_string_equal(stats.stages[15].name, "the thirty-one bytes of stage p");
    assert_int_equal(stats.stages[15].count, 10);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_close(self);
}

/* ---- from the wrong place ------------------------------------------------------------------------- */

/* Everything that would wait for this very callback. */
static void try_everything(kit* self, gpst_pipeline* pipeline) {
    const gpst_item* item = NULL;
    kit_check(self, gpst_pipeline_destroy(pipeline) == GPST_ERROR_REENTRANT);
    kit_check(self, strstr(gpst_last_reason(), "gpst_pipeline_destroy") != NULL);
    kit_check(self, gpst_pipeline_run(pipeline) == GPST_ERROR_REENTRANT);
    kit_check(self, strstr(gpst_last_reason(), "gpst_pipeline_run") != NULL);
    const gpst_result drained = gpst_pipeline_drain(pipeline, GPST_FOREVER);
    const gpst_result taken = gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item);
    if (self->source_ns < 0) { /* the push pipeline of the test below */
        kit_check(self, drained == GPST_ERROR_REENTRANT);
        kit_check(self, taken == GPST_ERROR_REENTRANT);
    } else {
        kit_check(self, drained == GPST_ERROR_STATE);
        kit_check(self, taken == GPST_ERROR_STATE);
    }
}

static gpst_result reentrant_stage(void* user_data, gpst_task* task) {
    try_everything((kit*)user_data, task->pipeline);
    if (task->item->index == 5)
        gpst_pipeline_cancel(task->pipeline);
    return GPST_OK;
}

static gpst_result reentrant_source(void* user_data, uint64_t index, gpst_input* out) {
    kit* const self = (kit*)user_data;
    try_everything(self, self->pipeline);
    return kit_source_empty(user_data, index, out);
}

static gpst_result reentrant_sink(void* user_data, const gpst_item* item) {
    kit* const self = (kit*)user_data;
    gpst_stats stats;
    try_everything(self, self->pipeline);
    gpst_pipeline_query_stats(self->pipeline, &stats);
    kit_check(self, stats.items_ok <= item->index);
    return kit_sink(user_data, item);
}

static void test_reentrant(void** state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 100, reentrant_stage);
        desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        desc.source = reentrant_source;
        desc.sink = reentrant_sink;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_ERROR_CANCELLED); /* cancel is allowed */
        assert_true(self->n_sinks < 100);
        kit_close(self);
    }
}

static void test_reentrant_push(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 0, reentrant_stage);
    const gpst_item* item = NULL;
    gpst_input input = GPST_ZERO;
    self->source_ns = -1;
    desc.source = NULL;
    desc.sink = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    for (int n = 0; n < 3; n++) {
        assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &item), GPST_OK);
        gpst_pipeline_release(self->pipeline, item);
    }
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_close(self);
}

/* The outer pipeline's callback is still inside when the inner one's calls: that is the same thing. */
static gpst_pipeline* outer_pipeline;

static gpst_result inner_stage(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    (void)task;
    kit_check(self, gpst_pipeline_destroy(outer_pipeline) == GPST_ERROR_REENTRANT);
    return GPST_OK;
}

static gpst_result outer_stage(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_stage_desc stage = kit_stage(self, GPST_STAGE_HOST, inner_stage, "inner");
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    kit inner; /* a source's books */
    memset(&inner, 0, sizeof inner);
    inner.n_items = 2;
    outer_pipeline = task->pipeline;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = kit_source_empty;
    desc.source_user_data = &inner;
    kit_check(self, gpst_pipeline_create(self->context, &desc, &pipeline) == GPST_OK);
    kit_check(self, gpst_pipeline_run(pipeline) == GPST_OK);
    kit_check(self, gpst_pipeline_destroy(pipeline) == GPST_OK);
    return GPST_OK;
}

static void test_reentrant_through_an_inner_pipeline(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1); /* one worker: the inner stage runs below the outer one */
    const gpst_pipeline_desc desc = kit_simple(self, 3, outer_stage);
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    kit_close(self);
}

static void test_run_twice(void** state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        kit* const self = kit_open("cpu", 1);
        gpst_pipeline_desc desc = kit_simple(self, 5, kit_nothing);
        desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_ERROR_STATE);
        test_reason_has("gpst_pipeline_run", "runs once");
        assert_int_equal(self->n_ok, 5);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_close(self);
    }
}

/* ---- after fork -------------------------------------------------------------------------------------- */

/* The first call of a child that does not say so; 0 when all do. */
static int call_everything_in_a_child(kit* self, gpst_pipeline* pull, gpst_pipeline* push,
                                      const gpst_item* held, const gpst_pipeline_desc* desc) {
    gpst_pipeline* made = NULL;
    const gpst_item* item = NULL;
    gpst_input input = GPST_ZERO;
    gpst_stats stats;
    if (gpst_pipeline_create(self->context, desc, &made) != GPST_ERROR_FORKED)
        return 1;
    if (gpst_pipeline_run(pull) != GPST_ERROR_FORKED)
        return 2;
    if (gpst_pipeline_submit(push, &input, 0, NULL) != GPST_ERROR_FORKED)
        return 3;
    if (gpst_pipeline_next_result(push, 0, &item) != GPST_ERROR_FORKED)
        return 4;
    if (gpst_pipeline_drain(push, 0) != GPST_ERROR_FORKED)
        return 5;
    if (gpst_pipeline_destroy(pull) != GPST_ERROR_FORKED || !strstr(gpst_last_reason(), "after fork"))
        return 6;
    gpst_pipeline_cancel(pull);
    gpst_pipeline_stop(pull);
    gpst_pipeline_close(push); /* those that return nothing do nothing, and do not hang */
    gpst_pipeline_release(push, held);
    gpst_pipeline_query_stats(push, &stats);
    if (stats.n_stages != 0 || push->threads->closed || push->items.lists[GPSTI_ITEM_HELD].n != 1)
        return 7;
    gpst_context_destroy(self->context);
    return 0;
}

static void test_fork(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_simple(self, 5, kit_nothing);
    gpst_pipeline* pull = NULL;
    gpst_pipeline* push = NULL;
    const gpst_item* item = NULL;
    gpst_input input = GPST_ZERO;
    int status = -1;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pull), GPST_OK);
    desc.source = NULL;
    desc.sink = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &push), GPST_OK);
    assert_int_equal(gpst_pipeline_submit(push, &input, 0, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(push, GPST_FOREVER, &item), GPST_OK);
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(20); /* a call that waits for threads that are not here */
        _exit(call_everything_in_a_child(self, pull, push, item, &desc));
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        fail_msg("status %#x: call %d of the child was not refused", status, WEXITSTATUS(status));
    gpst_pipeline_release(push, item); /* the parent does not notice */
    assert_int_equal(gpst_pipeline_run(pull), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(pull), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(push), GPST_OK);
    kit_close(self);
}

/* ---- what callbacks may ask for ------------------------------------------------------------------------ */

static gpst_result ask_wrongly(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_image good = kit_shape(8, 8), empty = kit_shape(0, 8);
    gpst_image huge = kit_shape(UINT32_MAX, UINT32_MAX), image;
    void* room = NULL;
    huge.format = GPST_FORMAT_RGBA;
    huge.dtype = GPST_DTYPE_F32;
    kit_check(self, gpst_task_set_picture(task, 0, 0, &empty, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, strstr(gpst_last_reason(), "gpst_task_set_picture") != NULL);
    kit_check(self, gpst_task_set_picture(task, 0, 0, NULL, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, GPST_FAILED(gpst_task_set_picture(task, 0, 0, &huge, &image)));
    kit_check(self, gpst_task_set_picture(task, 1, 2, &good, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, strstr(gpst_last_reason(), "picture_index=2") != NULL);
    kit_check(self, gpst_task_set_picture(task, 1, 0, &empty, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, gpst_task_enqueue(task, &kit_kernel, NULL, 0) == GPST_ERROR_STATE);
    kit_check(self, strstr(gpst_last_reason(), "only from a DEVICE stage") != NULL);
    kit_check(self, gpst_task_pictures(task, 0, &image, 1) == GPST_ERROR_STATE);
    kit_check(self, gpst_task_set_picture(task, 2, 0, &good, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, strstr(gpst_last_reason(), "set=2") != NULL);
    kit_check(self, gpst_task_encoded(task, 100, &room) == GPST_OK);
    memset(room, 1, 100);
    kit_check(self, gpst_task_emit(task, "", 100) ==
                        (self->n_stages == 2 ? GPST_ERROR_ARGUMENT : GPST_ERROR_STATE));
    kit_check(self, gpst_task_emit(task, "x", (size_t)1 << 40) ==
                        (self->n_stages == 2 ? GPST_ERROR_ARGUMENT : GPST_ERROR_STATE));
    kit_check(self, gpst_task_set_picture(task, 0, 0, &good, &image) == GPST_OK);
    kit_check(self, image.pitch_bytes == 8 && image.data && (uintptr_t)image.data % 64 == 0);
    memset(image.data, 3, 64);
    return GPST_OK; /* what was refused does no harm */
}

static void test_tasks_refuse(void** state) {
    (void)state;
    for (uint32_t n_stages = 1; n_stages < 3; n_stages++) {
        kit* const self = kit_open("cpu", 2);
        self->n_outputs = 2;
        gpst_pipeline_desc desc = kit_simple(self, 10, ask_wrongly);
        self->stages[1] = kit_stage(self, GPST_STAGE_WRITE, NULL, NULL);
        self->n_stages = desc.n_stages = n_stages;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
        assert_int_equal(kit_count_files(self, ""), 0);
        kit_close(self);
    }
}

/* Files of KIT_BYTES: a picture that begins 4 bytes into the file is the file's own memory. */
static gpst_result map_file(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_item* const item = task->item;
    gpst_image shape = kit_shape(4, 1), image;
    kit_check(self, gpst_task_map_picture(task, 0, 0, &shape, KIT_BYTES - 3, &image) == GPST_ERROR_TRUNCATED);
    kit_check(self, gpst_task_map_picture(task, 0, 0, &shape, SIZE_MAX, &image) == GPST_ERROR_TRUNCATED);
    shape.dtype = GPST_DTYPE_F32;
    kit_check(self, gpst_task_map_picture(task, 0, 0, &shape, 2, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, item->sets[0].pictures[0].data == NULL);
    shape = kit_shape(KIT_WIDTH, KIT_HEIGHT - 1);
    GPSTI_TRY(gpst_task_map_picture(task, 0, 0, &shape, 4, &image));
    kit_check(self, image.data == (const uint8_t*)item->file_data + 4 && item->sets[0].pictures[0].data == image.data);
    kit_check(self, ((const uint8_t*)image.data)[0] == kit_pixel(item->index, 4));
    return GPST_OK;
}

static gpst_result map_nothing(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(4, 1);
    gpst_image image;
    kit_check((kit*)user_data, gpst_task_map_picture(task, 0, 0, &shape, 0, &image) == GPST_ERROR_STATE);
    return GPST_OK;
}

static void test_map_picture(void** state) {
    (void)state;
    kit* self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_standard(self, 10);
    self->stages[1] = kit_stage(self, GPST_STAGE_HOST, map_file, "map");
    desc.n_stages = 2;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    kit_close(self);
    self = kit_open("cpu", 2);
    desc = kit_simple(self, 3, map_nothing);
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    kit_close(self);
}

static gpst_result ask_device_wrongly(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_image shape = kit_shape(8, 8);
    gpst_image pictures[2], image;
    unsigned char args[225];
    memset(args, 0, sizeof args);
    kit_check(self, gpst_task_enqueue(task, NULL, NULL, 0) == GPST_ERROR_ARGUMENT);
    kit_check(self, gpst_task_enqueue(task, &kit_kernel, args, sizeof args) == GPST_ERROR_ARGUMENT);
    kit_check(self, strstr(gpst_last_reason(), "args_bytes=225") != NULL);
    kit_check(self, gpst_task_pictures(task, 0, pictures, 2) == GPST_ERROR_ARGUMENT);
    kit_check(self, gpst_task_pictures(task, 7, pictures, 1) == GPST_ERROR_ARGUMENT);
    kit_check(self, gpst_task_set_picture(task, 0, 0, &shape, &image) == GPST_ERROR_ARGUMENT);
    kit_check(self, strstr(gpst_last_reason(), "has written it") != NULL);
    kit_check(self, gpst_task_map_picture(task, 1, 0, &shape, 0, &image) == GPST_ERROR_STATE);
    return kit_device(user_data, task);
}

static void test_device_tasks_refuse(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    const gpst_pipeline_desc desc = kit_standard(self, 5);
    self->stages[2].func = ask_device_wrongly;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    kit_check_files(self);
    kit_close(self);
}

static void test_device_without_a_picture(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = kit_simple(self, 2, kit_nothing);
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, kit_device, "compute");
    desc.n_stages = 2;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_ERROR_STATE);
    assert_int_equal(self->results[0], GPST_ERROR_STATE);
    assert_non_null(strstr(self->failed_reason, "gpst_task_set_picture"));
    /* Where nothing could have made one, the input itself is refused. */
    self->stages[0] = self->stages[1];
    desc.n_stages = 1;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(self->results[0], GPST_ERROR_ARGUMENT);
    assert_string_equal(self->failed_stage, "source");
    assert_non_null(strstr(self->failed_reason, "input.frame.data=NULL"));
    kit_close(self);
}

/* Several files of one output, each with its own room. */
static gpst_result emit_twice(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    char path[100];
    void* room = NULL;
    for (int part = 0; part < 2; part++) {
        GPSTI_TRY(gpst_task_encoded(task, 10, &room)); /* asked for again: larger, keeping nothing */
        GPSTI_TRY(gpst_task_encoded(task, 5000, &room));
        memset(room, 'a' + part, 5000);
        snprintf(path, sizeof path, "%s/part%d_%u", self->dir, part, (unsigned)task->item->index);
        GPSTI_TRY(gpst_task_emit(task, path, 4000 + (size_t)part));
    }
    return GPST_OK;
}

static void test_two_files_of_an_output(void** state) {
    (void)state;
    for (int m = 0; m < 2; m++) {
        kit* const self = kit_open("cpu", 2);
        char path[100], byte = 0;
        struct stat info;
        gpst_stats stats;
        self->n_outputs = 1;
        gpst_pipeline_desc desc = kit_simple(self, 12, emit_twice);
        self->stages[1] = kit_stage(self, GPST_STAGE_WRITE, NULL, NULL);
        desc.n_stages = 2;
        desc.mode = m ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        desc.fsync = GPST_FSYNC_DEFAULT;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(kit_count_files(self, "part"), 24);
        assert_int_equal(stats.bytes_written, 12 * 8001);
        assert_int_equal(stats.stages[1].count, 24);
        snprintf(path, sizeof path, "%s/part1_11", self->dir);
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_size, 4001);
        FILE* const file = fopen(path, "rb");
        assert_non_null(file);
        assert_int_equal(fread(&byte, 1, 1, file), 1);
        fclose(file);
        assert_int_equal(byte, 'b');
        kit_close(self);
    }
}

/* Of a room only what this task asked for last is its own: behind it lies what others wrote, and nothing is of an item
   that asked for none. */
static gpst_result emit_too_much(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    char path[100];
    void* room = NULL;
    snprintf(path, sizeof path, "%s/part_%u", self->dir, (unsigned)task->item->index);
    if (task->item->index == 1)
        return gpst_task_emit(task, path, 1);
    GPSTI_TRY(gpst_task_encoded(task, 20, &room));
    GPSTI_TRY(gpst_task_encoded(task, 10, &room));
    memset(room, 'x', 10);
    GPSTI_TRY(gpst_task_emit(task, path, task->item->index == 2 ? 11 : 10));
    return task->item->index == 3 ? GPST_END : GPST_OK;
}

static void test_a_room_is_what_was_asked_for(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    self->n_outputs = 1;
    gpst_pipeline_desc desc = kit_simple(self, 5, emit_too_much);
    self->stages[1] = kit_stage(self, GPST_STAGE_WRITE, NULL, NULL);
    desc.n_stages = 2;
    desc.n_slots = 1;
    desc.mode = GPST_RUN_PLAIN_SERIAL;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_PARTIAL);
    assert_int_equal(self->results[0], GPST_OK);
    assert_int_equal(self->results[1], GPST_ERROR_ARGUMENT);
    assert_int_equal(self->results[2], GPST_ERROR_ARGUMENT);
    assert_int_equal(self->results[3], GPST_ERROR_CALLBACK); /* a result that says nothing of an item */
    assert_string_equal(self->failed_reason, "the function returned GPST_END: must be GPST_OK, GPST_SKIPPED or negative");
    assert_int_equal(self->results[4], GPST_OK);
    assert_int_equal(kit_count_files(self, "part"), 2);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_rule),
        cmocka_unit_test(test_arguments_and_version),
        cmocka_unit_test(test_most_stages_and_copies),
        cmocka_unit_test(test_reentrant),
        cmocka_unit_test(test_reentrant_push),
        cmocka_unit_test(test_reentrant_through_an_inner_pipeline),
        cmocka_unit_test(test_run_twice),
        cmocka_unit_test(test_fork),
        cmocka_unit_test(test_tasks_refuse),
        cmocka_unit_test(test_map_picture),
        cmocka_unit_test(test_device_tasks_refuse),
        cmocka_unit_test(test_device_without_a_picture),
        cmocka_unit_test(test_two_files_of_an_output),
        cmocka_unit_test(test_a_room_is_what_was_asked_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
