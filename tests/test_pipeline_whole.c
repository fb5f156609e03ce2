/* tests/test_pipeline_whole.c -- whole items: each worker brings its own through every step, and where nobody is told
   of them to their end. The same items, order, files and errors as one step at a time, however a run ends. */
#include "pipeline_kit.h"

enum { N_BRIEF = 4000, N_DEVICE = 1500, N_FILES = 160, MOST_ITEMS = 40000 };

/* ---- one pipeline's books, where no sink keeps them ------------------------------------------- */

typedef struct books {
    kit* owner;
    gpst_pipeline* pipeline;
    uint64_t n_items;                 /* that the source has */
    gpsti_a32 in_source, in_sink;
    uint64_t next, n_sinks;           /* the source's and the sink's */
    bool over;
    int64_t work_ns, late_ns;         /* of an item; and from item late_from on */
    uint64_t late_from;
    uint64_t fail_from, act_at;       /* 0 = none */
    void (*act)(gpst_pipeline* pipeline);
    gpsti_a64 n_works, n_asked;       /* of the stage; of the source */
    uint64_t n_asked_then;            /* when the act was over */
    gpsti_a32 n_inits[8], n_terms;    /* of workers */
    gpsti_a32 n_at_work;
    uint32_t most_at_work;
    uint8_t seen[MOST_ITEMS];
} books;

static books books_of[2];
static gpst_tuner_report report;

static books* books_open(kit* owner, uint32_t i, uint64_t n_items) {
    books* const self = &books_of[i];
    memset(self, 0, sizeof *self);
    self->owner = owner;
    self->n_items = n_items;
    self->work_ns = 20000;
    return self;
}

/* Every index once, in order, by one thread at a time, and not again after the end. */
static gpst_result books_source(void* user_data, uint64_t index, gpst_input* out) {
    books* const self = (books*)user_data;
    kit_check(self->owner, gpsti_a32_add(&self->in_source, 1) == 0);
    kit_check(self->owner, index == self->next && !self->over);
    self->next++;
    (void)gpsti_a64_add(&self->n_asked, 1);
    self->over = index >= self->n_items;
    out->user_data = self;
    (void)gpsti_a32_add(&self->in_source, UINT32_MAX);
    return index < self->n_items ? GPST_OK : GPST_END;
}

/* Computes for a while; waits where that is long, so that a machine with two cores is one with many. */
static void books_take_time(const books* self, uint64_t index) {
    const int64_t work_ns = self->late_ns > 0 && index >= self->late_from ? self->late_ns : self->work_ns;
    const int64_t end_ns = gpsti_now_ns() + work_ns;
    if (work_ns >= 100000)
        gpsti_sleep_ns(work_ns);
    while (gpsti_now_ns() < end_ns)
        continue;
}

static gpst_result books_work(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    const uint64_t index = task->item->index;
    books_take_time(self, index);
    self->seen[index]++;
    (void)gpsti_a64_add(&self->n_works, 1);
    if (self->act_at != 0 && index == self->act_at) {
        self->act(task->pipeline);
        self->n_asked_then = gpsti_a64_load(&self->n_asked);
    }
    return self->fail_from != 0 && index >= self->fail_from
               ? gpst_task_fail(task, GPST_ERROR_FORMAT, "item %u is bad", (unsigned)index)
               : GPST_OK;
}

/* Items are thought to be brief when the next are taken, whatever they took, so that a worker takes many. */
static void take_bunches(gpst_pipeline* pipeline) {
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    pipeline->source_work_ns = -100000000;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
}

static gpst_result books_work_in_bunches(void* user_data, gpst_task* task) {
    take_bunches(task->pipeline);
    return books_work(user_data, task);
}

static gpst_result books_sink(void* user_data, const gpst_item* item) {
    books* const self = (books*)user_data;
    kit_check(self->owner, gpsti_a32_add(&self->in_sink, 1) == 0);
    kit_check(self->owner, item->index == self->n_sinks);
    self->n_sinks++;
    (void)gpsti_a32_add(&self->in_sink, UINT32_MAX);
    return GPST_OK;
}

/* One HOST stage, and nobody who is told of its items. */
static gpst_pipeline_desc books_desc(books* self, gpst_stage_desc* stage) {
    gpst_pipeline_desc desc = GPST_ZERO;
    *stage = kit_stage(self->owner, GPST_STAGE_HOST, books_work, "work");
    stage->user_data = self;
    desc.stages = stage;
    desc.n_stages = 1;
    desc.source = books_source;
    desc.source_user_data = self;
    desc.n_items_expected = self->n_items;
    return desc;
}

static gpst_result books_run(books* self, const gpst_pipeline_desc* desc, gpst_stats* stats) {
    assert_int_equal(gpst_pipeline_create(self->owner->context, desc, &self->pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(self->pipeline);
    gpst_pipeline_query_stats(self->pipeline, stats);
    gpst_pipeline_query_tuner(self->pipeline, &report);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    assert_int_equal(stats->items_ok + stats->items_failed + stats->items_cancelled, stats->items_total);
    return result;
}

/* Items 0 .. n - 1 were worked on once each, and no other was. */
static void books_check(const books* self, uint64_t n) {
    for (uint64_t i = 0; i < MOST_ITEMS; i++)
        if (self->seen[i] != (i < n ? 1 : 0))
            fail_msg("item %u was worked on %u times", (unsigned)i, self->seen[i]);
}

static bool said(const char* text) {
    for (uint32_t i = 0; i < report.n_decisions && i < GPST_MAX_DECISIONS; i++)
        if (strstr(report.decisions[i].reason, text))
            return true;
    return false;
}

static bool began_whole(void) {
    return report.n_decisions > 0 && strstr(report.decisions[0].reason, "starts with whole items") != NULL;
}

static gpst_result sleep_as_decode(void* user_data, gpst_task* task) {
    (void)task;
    gpsti_sleep_ns(((const kit*)user_data)->decode_ns);
    return GPST_OK;
}

static gpst_result sleep_for_long(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    gpsti_sleep_ns(300000);
    return GPST_OK;
}

/* A run of the kit's, with what its tuner says. */
static gpst_result kit_run_and_ask(kit* self, const gpst_pipeline_desc* desc, gpst_stats* stats) {
    kit_forget(self);
    assert_int_equal(gpst_pipeline_create(self->context, desc, &self->pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(self->pipeline);
    gpst_pipeline_query_stats(self->pipeline, stats);
    gpst_pipeline_query_tuner(self->pipeline, &report);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    return result;
}

static bool was_whole(void) { return began_whole() && !said("in stages again"); }

/* Each case until it began with whole items: a busy machine's clocks may say otherwise. */
static void until_whole(void (*run)(uint32_t i), uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        bool whole = false;
        for (int tries = 0; tries < 8 && !whole; tries++) {
            run(i);
            whole = began_whole();
        }
        assert_true(whole);
    }
}

/* ---- brief items, in bunches ------------------------------------------------------------------- */

static void run_every_item_once(uint32_t round) {
    const uint32_t n_workers = 2 + round % 4;
    kit* const self = kit_open("cpu", n_workers);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    desc.sink = round < 4 ? NULL : books_sink;
    desc.sink_user_data = own;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    books_check(own, N_BRIEF);
    assert_int_equal(stats.items_ok, N_BRIEF);
    assert_int_equal(stats.stages[0].count, N_BRIEF);
    assert_int_equal(own->n_sinks, desc.sink ? N_BRIEF : 0);
    assert_true(stats.latency_p50_ns >= own->work_ns && stats.latency_p50_ns <= stats.latency_max_ns);
    assert_true(stats.wall_ns >= stats.latency_max_ns && stats.cpu_ns > 0);
    assert_int_equal(stats.allocations_after_freeze, 0);
    if (began_whole() && strstr(stats.settings, "mode=engine"))
        assert_non_null(strstr(stats.settings, said("in stages again") ? "items=staged" : "items=whole"));
    if (was_whole() && !desc.sink)
        assert_true(stats.slots_used <= n_workers + 1); /* and one that the plain loop left */
    printf("  %u workers: %s; %s\n", n_workers, stats.settings, report.decisions[0].reason);
    kit_close(self);
}

static void test_every_item_once(void** state) {
    (void)state;
    until_whole(run_every_item_once, 8);
}

static gpst_result note_worker(void* user_data, uint32_t worker_index, void** worker_state) {
    books* const self = (books*)user_data;
    (void)gpsti_a32_add(&self->n_inits[worker_index], 1);
    *worker_state = &self->n_inits[worker_index];
    return GPST_OK;
}

static void note_end(void* user_data, uint32_t worker_index, void* worker_state) {
    books* const self = (books*)user_data;
    kit_check(self->owner, worker_state == &self->n_inits[worker_index]);
    (void)gpsti_a32_add(&self->n_terms, 1);
}

static gpst_result work_as_worker(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    kit_check(self->owner, task->worker_state == &self->n_inits[task->worker_index]);
    kit_check(self->owner, gpsti_a32_load(&self->n_inits[task->worker_index]) == 1);
    return books_work(user_data, task);
}

/* Each worker is prepared once, before its first item, and so is the thread that began. */
static void run_prepared(uint32_t i) {
    (void)i;
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    uint32_t n_inits = 0;
    const gpst_pipeline_desc desc = books_desc(own, &stage);
    stage.func = work_as_worker;
    stage.worker_init = note_worker;
    stage.worker_term = note_end;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    books_check(own, N_BRIEF);
    for (uint32_t w = 0; w < 4; w++)
        n_inits += gpsti_a32_load(&own->n_inits[w]);
    assert_int_equal(gpsti_a32_load(&own->n_inits[3]), 1); /* not a worker */
    assert_true(n_inits > 1 || !began_whole());
    assert_int_equal(gpsti_a32_load(&own->n_terms), n_inits);
    kit_close(self);
}

static void test_workers_are_prepared(void** state) {
    (void)state;
    until_whole(run_prepared, 1);
}

/* Who waits for its turn at a slow source could do something else meanwhile. */
static void run_with_source(int64_t source_ns) {
    kit* const self = kit_open("cpu", 3);
    gpst_pipeline_desc desc = kit_simple(self, 300, kit_nothing);
    gpst_stats stats;
    self->stages[0].func = sleep_as_decode;
    self->decode_ns = 400000;
    self->source_ns = source_ns;
    desc.mode = GPST_RUN_DEFAULT;
    desc.n_items_expected = 300;
    assert_int_equal(kit_run_and_ask(self, &desc, &stats), GPST_OK);
    assert_int_equal(stats.items_ok, 300);
    kit_close(self);
}

static void run_with_quick_source(uint32_t i) {
    (void)i;
    run_with_source(0);
}

static void test_not_with_a_slow_source(void** state) {
    (void)state;
    until_whole(run_with_quick_source, 1);
    run_with_source(200000);
    assert_false(began_whole());
}

static gpst_result work_few_at_once(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    kit_check(self->owner, gpsti_a32_add(&self->n_at_work, 1) < self->most_at_work);
    const gpst_result result = books_work(user_data, task);
    (void)gpsti_a32_add(&self->n_at_work, UINT32_MAX);
    return result;
}

/* A stage that serves so many at once does so, or in order; a source of unknown length may wait for what has not ended
   yet; and an engine that the user asked for is one. */
static void test_who_has_no_whole_items(void** state) {
    (void)state;
    for (uint32_t i = 0; i < 5; i++) {
        kit* const self = kit_open("cpu", 4);
        books* const own = books_open(self, 0, 1500);
        gpst_stage_desc stages[2];
        gpst_stats stats;
        gpst_pipeline_desc desc = books_desc(own, stages);
        stages[1] = stages[0];
        stages[1].name = "few";
        stages[1].func = work_few_at_once;
        stages[1].concurrency = i == 0 ? 1 : i == 1 ? 2 : 0;
        stages[1].ordered = i == 2;
        own->most_at_work = i < 3 ? i % 2 + 1 : 4;
        stages[0].func = sleep_for_long;
        desc.n_stages = 2;
        desc.n_items_expected = i == 3 ? 0 : own->n_items;
        desc.mode = i == 4 ? GPST_RUN_ENGINE : GPST_RUN_DEFAULT;
        desc.tune = GPST_TUNE_ON;
        assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
        books_check(own, own->n_items);
        assert_int_equal(report.on && report.n_decisions > 0, 1);
        assert_false(began_whole());
        assert_null(strstr(stats.settings, "items=whole"));
        kit_close(self);
    }
}

/* The list is shorter, or longer, than was said. */
static void run_the_end_comes_as_it_comes(uint32_t i) {
    static const uint64_t expected[] = {N_BRIEF * 2, N_BRIEF / 2, N_BRIEF + 1};
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    desc.n_items_expected = expected[i % 3];
    desc.sink = i < 3 ? NULL : books_sink;
    desc.sink_user_data = own;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    books_check(own, N_BRIEF);
    assert_int_equal(stats.items_total, N_BRIEF);
    kit_close(self);
}

static void test_the_end_comes_as_it_comes(void** state) {
    (void)state;
    until_whole(run_the_end_comes_as_it_comes, 6);
}

/* Cancelled and stopped from within: what was begun ends, what was not is not asked for. */
static void run_cancel_and_stop(uint32_t i) {
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    own->act_at = 500 + 177 * i;
    own->act = i % 2 ? gpst_pipeline_cancel : gpst_pipeline_stop;
    stage.func = books_work_in_bunches;
    desc.sink = i % 4 < 2 ? NULL : books_sink;
    desc.sink_user_data = own;
    assert_int_equal(books_run(own, &desc, &stats), i % 2 ? GPST_ERROR_CANCELLED : GPST_OK);
    assert_in_range(stats.items_total, own->act_at + 1, own->n_asked_then + (was_whole() && !desc.sink ? 1 : 16));
    assert_int_equal(stats.items_failed, 0);
    assert_int_equal(gpsti_a64_load(&own->n_works), stats.items_ok);
    assert_int_equal(own->n_sinks, desc.sink ? stats.items_total : 0);
    if (i % 2 == 0)
        books_check(own, stats.items_total);
    kit_close(self);
}

static void test_cancel_and_stop(void** state) {
    (void)state;
    until_whole(run_cancel_and_stop, 12);
}

/* What each worker has in hand when the first item fails is its last. */
static void run_stop_on_error(uint32_t i) {
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    own->fail_from = 1000 + i * 100;
    stage.func = books_work_in_bunches;
    desc.stop_on_error = true;
    assert_int_equal(books_run(own, &desc, &stats), GPST_PARTIAL);
    assert_int_equal(stats.items_ok, own->fail_from);
    /* A worker's first, and one that was begun meanwhile. */
    assert_in_range(stats.items_failed, 1, was_whole() ? 3 * 2 : 3 * 16);
    books_check(own, stats.items_total);
    kit_close(self);
}

static void test_stop_on_error(void** state) {
    (void)state;
    until_whole(run_stop_on_error, 4);
}

static void run_second(void* argument) {
    books* const self = (books*)argument;
    gpst_stage_desc stage;
    gpst_pipeline_desc desc = books_desc(self, &stage);
    desc.sink = books_sink;
    desc.sink_user_data = self;
    kit_check(self->owner, gpst_pipeline_create(self->owner->context, &desc, &self->pipeline) == GPST_OK);
    kit_check(self->owner, gpst_pipeline_run(self->pipeline) == GPST_OK);
    kit_check(self->owner, gpst_pipeline_destroy(self->pipeline) == GPST_OK);
}

static void test_two_pipelines_share_the_workers(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 3);
    books* const first = books_open(self, 0, N_BRIEF);
    books* const second = books_open(self, 1, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    gpsti_thread thread;
    const gpst_pipeline_desc desc = books_desc(first, &stage);
    assert_int_equal(gpsti_thread_start(&thread, run_second, second, "second"), GPST_OK);
    assert_int_equal(books_run(first, &desc, &stats), GPST_OK);
    gpsti_thread_join(&thread);
    books_check(first, N_BRIEF);
    books_check(second, N_BRIEF);
    assert_int_equal(second->n_sinks, N_BRIEF);
    kit_close(self);
}

/* ---- plain blocks, and items that change ---------------------------------------------------------- */

/* As the guard does it, but at any moment. */
static gpst_result work_and_interfere(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    gpst_pipeline* const pipeline = task->pipeline;
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_tune* const tune = &pipeline->tune;
    gpsti_mutex_lock(mutex);
    if (pipeline->attached && !tune->paused && task->item->index % 97 == 0) {
        tune->paused = true;
        tune->block_loop = (uint32_t)GPST_RUN_PLAIN_SERIAL;
        tune->block_items = 1 + task->item->index % 5;
        tune->paused_ns = gpsti_now_ns();
        tune->guard.n_windows = 1;
        tune->guard.engine_sum_ns = 1000.0;
    }
    gpsti_mutex_unlock(mutex);
    return books_work(self, task);
}

static void run_plain_blocks_between(uint32_t i) {
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF - i); /* a block meets the end of the list somewhere */
    gpst_stage_desc stage;
    gpst_stats stats;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    stage.func = work_and_interfere;
    desc.sink = i < 2 ? NULL : books_sink;
    desc.sink_user_data = own;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    assert_true(report.guard.plain_items > 0);
    books_check(own, own->n_items);
    assert_int_equal(stats.items_ok, own->n_items);
    kit_close(self);
}

static void test_plain_blocks_between(void** state) {
    (void)state;
    until_whole(run_plain_blocks_between, 4);
}

/* Items that become long are brought in stages again, while others are still on their whole way. */
static void run_to_long_items(bool has_sink) {
    kit* const self = kit_open("cpu", 4);
    books* const own = books_open(self, 0, 2280);
    gpst_stage_desc stage;
    gpst_stats stats;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    own->late_from = 2000;
    own->late_ns = 12000000;
    desc.sink = has_sink ? books_sink : NULL;
    desc.sink_user_data = own;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    if (said("in stages again"))
        assert_null(strstr(stats.settings, "items=whole"));
    books_check(own, own->n_items);
    assert_int_equal(stats.items_ok, own->n_items);
    assert_int_equal(own->n_sinks, has_sink ? own->n_items : 0);
    kit_close(self);
}

static void test_long_items_are_given_up(void** state) {
    (void)state;
    for (int has_sink = 0; has_sink < 2; has_sink++) {
        bool given_up = false;
        for (int tries = 0; tries < 6 && !given_up; tries++) { /* on a busy machine a plain loop may be found faster */
            run_to_long_items(has_sink == 1);
            given_up = said("in stages again");
        }
        assert_true(given_up);
    }
}

/* ---- files ------------------------------------------------------------------------------------------ */

/* The kit's five stages: read, decode, compute, encode each output, write. Most of an item is waiting in decode. */
static gpst_pipeline_desc files_desc(kit* self, bool has_sink) {
    gpst_pipeline_desc desc = kit_standard(self, N_FILES);
    desc.mode = GPST_RUN_DEFAULT;
    desc.n_items_expected = N_FILES;
    desc.sink = has_sink ? kit_sink : NULL;
    self->decode_ns = 4000000; /* of which the files take little, on any machine */
    return desc;
}

/* Until a run began with whole items: the clocks of a busy machine may say otherwise. */
static gpst_result files_run(kit* self, const gpst_pipeline_desc* desc, gpst_stats* stats) {
    gpst_result result = GPST_OK;
    for (int tries = 0; tries < 8; tries++) {
        kit_remove_files(self, "out_");
        result = kit_run_and_ask(self, desc, stats);
        assert_int_equal(kit_count_files(self, ".gpustage"), 0);
        if (began_whole())
            return result;
    }
    fail_msg("no run began with whole items: %s", report.decisions[0].reason);
    return result;
}

/* Of items that should be well every file is there and right; of the others there is none. */
static void files_check(kit* self, const gpst_stats* stats) {
    uint32_t n_files = 0;
    uint64_t n_ok = 0;
    for (uint64_t n = 0; n < N_FILES; n++) {
        if (self->fail_place != KIT_NOWHERE && kit_fails(self, self->fail_place, n))
            continue;
        for (uint32_t o = 0; o < self->n_outputs; o++)
            if (!kit_output_is_right(self, n, o))
                fail_msg("output %u of item %u is missing or wrong", o, (unsigned)n);
        n_files += self->n_outputs;
        n_ok++;
    }
    assert_int_equal(kit_count_files(self, "out_"), n_files);
    assert_int_equal(stats->items_ok, n_ok);
    assert_int_equal(stats->items_failed, N_FILES - n_ok);
}

static const char* path_taken(const gpst_stats* stats, const char* what) {
    for (uint32_t p = 0; p < stats->n_paths; p++)
        if (strcmp(stats->paths[p].what, what) == 0)
            return stats->paths[p].taken;
    return "";
}

static void test_files_are_whole_or_absent(void** state) {
    (void)state;
    static const kit_place places[] = {KIT_NOWHERE, KIT_SOURCE, KIT_READ,   KIT_DECODE, KIT_DEVICE, KIT_DEVICE_LATER,
                                       KIT_ENCODE,  KIT_WRITE,  KIT_COMMIT, KIT_SINK};
    for (uint32_t i = 0; i < 19; i++) {
        const bool has_sink = i >= 9;
        kit* const self = kit_open(i % 2 ? "cpu" : "sim", 4);
        gpst_stats stats;
        self->as_ready = i % 4 == 3;
        gpst_pipeline_desc desc = files_desc(self, has_sink);
        char in_the_way[100];
        self->fail_place = places[has_sink ? i - 9 : i];
        self->fail_first = 20;
        self->fail_every = 3;
        snprintf(in_the_way, sizeof in_the_way, "%s/in_the_way", self->dir);
        assert_int_equal(mkdir(in_the_way, 0700), 0);
        const bool fails = self->fail_place != KIT_NOWHERE;
        assert_int_equal(files_run(self, &desc, &stats), fails ? GPST_PARTIAL : GPST_OK);
        files_check(self, &stats);
        if (has_sink)
            assert_int_equal(self->n_sinks, N_FILES);
        if (strstr(stats.settings, "items=whole"))
            assert_string_equal(path_taken(&stats, "read"), "pread, buffered, by workers");
        if (!fails) {
            assert_int_equal(stats.bytes_read, N_FILES * KIT_BYTES);
            assert_int_equal(stats.bytes_written, N_FILES * KIT_BYTES * self->n_outputs);
            assert_int_equal(stats.stages[0].count, N_FILES);
        }
        kit_close(self);
    }
}

/* A worker waits for its own reads, where that is little of an item's time; and nobody reads ahead for it. */
static void test_reads_that_wait(void** state) {
    (void)state;
    bool whole = false;
    for (int tries = 0; tries < 8 && !whole; tries++) {
        kit* const self = kit_open("sim:read_us=100", 4);
        gpst_stats stats;
        gpst_pipeline_desc desc = files_desc(self, false);
        self->n_outputs = desc.n_outputs = 1;
        desc.n_stages = 2;
        assert_int_equal(kit_run_and_ask(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.items_ok, N_FILES);
        assert_int_equal(stats.bytes_read, N_FILES * KIT_BYTES);
        whole = strstr(stats.settings, "items=whole") != NULL;
        if (whole) {
            assert_string_equal(path_taken(&stats, "read"), "pread, buffered, by workers");
            assert_string_equal(path_taken(&stats, "prefetch"), "none");
        }
        kit_close(self);
    }
    assert_true(whole);
}

static void test_files_when_cancelled(void** state) {
    (void)state;
    uint64_t random = test_seed(61);
    for (uint32_t i = 0; i < 20; i++) {
        kit* const self = kit_open("cpu", 4);
        gpst_pipeline_desc desc = files_desc(self, true);
        gpsti_thread thread;
        self->as_ready = desc.as_ready = i % 2 == 1;
        self->decode_ns = 300000;
        self->cancel_ns = (int64_t)(test_random(&random) % 60000000);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpsti_thread_start(&thread, kit_cancel_soon, self, "cancel"), GPST_OK);
        const gpst_result result = gpst_pipeline_run(self->pipeline);
        gpsti_thread_join(&thread);
        assert_true(result == GPST_ERROR_CANCELLED || self->n_ok == N_FILES);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_check_files(self);
        kit_close(self);
    }
}

/* ---- the device ----------------------------------------------------------------------------------------- */

static gpst_result device_input(void* user_data, gpst_task* task) {
    const books* const self = (const books*)user_data;
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    take_bunches(task->pipeline);
    books_take_time(self, task->item->index);
    GPSTI_TRY(gpst_task_set_input(task, &shape, &image));
    for (size_t i = 0; i < KIT_BYTES; i++)
        ((uint8_t*)image.data)[i] = kit_pixel(task->item->index, i);
    GPSTI_TRY(gpst_task_set_output(task, 0, &shape, &image));
    memset(image.data, 0xA5, KIT_BYTES);
    return GPST_OK;
}

static gpst_result device_check(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    const uint8_t* const got = (const uint8_t*)task->item->outputs[0].data;
    for (size_t i = 0; i < KIT_BYTES; i++)
        kit_check(self->owner, got[i] == kit_result(kit_pixel(task->item->index, i), 0));
    self->seen[task->item->index]++;
    return GPST_OK;
}

static gpst_pipeline_desc device_desc(books* self, gpst_stage_desc* stages) {
    gpst_pipeline_desc desc = books_desc(self, stages);
    stages[0].func = device_input;
    stages[1] = kit_stage(self->owner, GPST_STAGE_DEVICE, kit_device, "compute");
    stages[2] = stages[0];
    stages[2].name = "check";
    stages[2].func = device_check;
    desc.n_stages = 3;
    return desc;
}

/* One launch fails: its item alone is the CPU's, also where others of the same worker follow in the same slot. */
static void test_a_fallback_is_of_one_item(void** state) {
    (void)state;
    int n_whole = 0;
    for (unsigned round = 0; round < 6; round++) { /* the failing one has others behind it in most of them */
        char backend[64];
        snprintf(backend, sizeof backend, "sim:kernel_us=100,fail_launch=%u", 500 + round * 101);
        kit* const self = kit_open(backend, 3);
        books* const own = books_open(self, 0, N_DEVICE);
        gpst_stage_desc stages[3];
        gpst_stats stats;
        const gpst_pipeline_desc desc = device_desc(own, stages);
        own->work_ns = 10000;
        assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
        books_check(own, N_DEVICE);
        assert_int_equal(stats.device_fallbacks, 1);
        assert_string_equal(stats.stages[2].name, "compute");
        assert_int_equal(stats.stages[2].count, N_DEVICE - 1);
        n_whole += began_whole();
        kit_close(self);
    }
    assert_true(n_whole > 0);
}

/* The device goes in the midst of it: the CPU does the rest, every item once. */
static void test_a_lost_device(void** state) {
    (void)state;
    bool whole = false;
    for (int tries = 0; tries < 8 && !whole; tries++) {
        kit* const self = kit_open("sim:kernel_us=200,lose_at=900", 3);
        books* const own = books_open(self, 0, N_DEVICE);
        gpst_stage_desc stages[3];
        gpst_stats stats;
        const gpst_pipeline_desc desc = device_desc(own, stages);
        own->work_ns = 10000;
        assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
        books_check(own, N_DEVICE);
        assert_true(stats.device_fallbacks > 0);
        assert_string_equal(path_taken(&stats, "device"), "cpu");
        whole = began_whole();
        kit_close(self);
    }
    assert_true(whole);
}

/* ---- memory ------------------------------------------------------------------------------------------------ */

/* Items that take much for one thing and little for another, in turns: what an item left in its slot is not the next
   one's. */
static gpst_result take_in_turns(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    const bool odd = task->item->index % 2 != 0;
    const gpst_image input = kit_shape(4096, odd ? 2 : 20), output = kit_shape(4096, odd ? 20 : 2);
    gpst_image image;
    take_bunches(task->pipeline);
    books_take_time(self, task->item->index);
    GPSTI_TRY(gpst_task_set_input(task, &input, &image));
    GPSTI_TRY(gpst_task_set_output(task, 0, &output, &image));
    self->seen[task->item->index]++;
    return GPST_OK;
}

static void run_with_mode(gpst_run_mode mode) {
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    stage.func = take_in_turns;
    desc.mode = mode;
    desc.max_item_bytes = 24 * 4096;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    books_check(own, N_BRIEF);
    kit_close(self);
}

static void run_with_default_mode(uint32_t i) {
    (void)i;
    run_with_mode(GPST_RUN_DEFAULT);
}

static void test_max_item_bytes_is_an_item_s(void** state) {
    (void)state;
    until_whole(run_with_default_mode, 1);
    run_with_mode(GPST_RUN_ENGINE);
    run_with_mode(GPST_RUN_PLAIN_SERIAL);
}

/* The n-th allocation is refused, for every n: at most its item fails, nothing is left, and the source is asked in
   order to its end. */
static void test_every_allocation_refused(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 4);
    gpst_pipeline_desc desc = files_desc(self, false);
    uint64_t n = 0, n_creates_failed = 0, n_whole = 0;
    bool refused = true;
    const uint64_t live_bytes = gpsti_a64_load(&self->memory.live_bytes);
    self->n_items = desc.n_items_expected = 26;
    self->decode_ns = 2000000;
    for (n = 1; refused && n < 400; n++) {
        gpst_pipeline* pipeline = NULL;
        gpst_stats stats;
        kit_forget(self);
        desc.sink = n % 2 ? kit_sink : NULL;
        self->memory.fail_at = gpsti_a64_load(&self->memory.calls) + n;
        const gpst_result result = gpst_pipeline_create(self->context, &desc, &pipeline);
        if (result == GPST_OK) {
            const gpst_result ran = gpst_pipeline_run(pipeline);
            gpst_pipeline_query_stats(pipeline, &stats);
            gpst_pipeline_query_tuner(pipeline, &report);
            assert_true(ran == GPST_OK || ran == GPST_PARTIAL);
            assert_int_equal(stats.items_ok + stats.items_failed, self->n_items);
            assert_true(stats.items_failed <= 1);
            assert_int_equal(kit_count_files(self, "out_"), stats.items_ok * self->n_outputs);
            n_whole += began_whole();
        } else {
            assert_int_equal(result, GPST_ERROR_MEMORY);
            n_creates_failed++;
        }
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        refused = gpsti_a64_load(&self->memory.calls) >= self->memory.fail_at;
        self->memory.fail_at = 0;
        assert_int_equal(gpsti_a64_load(&self->memory.live_bytes), live_bytes);
        kit_remove_files(self, "out_");
    }
    printf("%u allocations refused one by one, %u creates among them; %u runs began with whole items\n",
           (unsigned)(n - 2), (unsigned)n_creates_failed, (unsigned)n_whole);
    assert_false(refused);
    assert_true(n_creates_failed > 5 && n_whole > n / 4);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),
        cmocka_unit_test(test_workers_are_prepared),
        cmocka_unit_test(test_not_with_a_slow_source),
        cmocka_unit_test(test_who_has_no_whole_items),
        cmocka_unit_test(test_the_end_comes_as_it_comes),
        cmocka_unit_test(test_cancel_and_stop),
        cmocka_unit_test(test_stop_on_error),
        cmocka_unit_test(test_two_pipelines_share_the_workers),
        cmocka_unit_test(test_plain_blocks_between),
        cmocka_unit_test(test_long_items_are_given_up),
        cmocka_unit_test(test_files_are_whole_or_absent),
        cmocka_unit_test(test_reads_that_wait),
        cmocka_unit_test(test_files_when_cancelled),
        cmocka_unit_test(test_a_fallback_is_of_one_item),
        cmocka_unit_test(test_a_lost_device),
        cmocka_unit_test(test_max_item_bytes_is_an_item_s),
        cmocka_unit_test(test_every_allocation_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
