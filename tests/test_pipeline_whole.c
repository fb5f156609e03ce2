/* tests/test_pipeline_whole.c -- whole items: each worker brings its own through every step, and where nobody is told
   of them to their end. The same items and order as one step at a time, however a run ends. */
#include "pipeline_kit.h"

#include "pipeline_books.h"

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
    printf("  %u workers: %s; %s\n", n_workers, stats.settings, report.decisions[0].reason);
    kit_close(self);
}

static void test_every_item_once(void** state) {
    (void)state;
    run_cases(run_every_item_once, 8);
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
    assert_int_equal(gpsti_a32_load(&own->n_terms), n_inits);
    kit_close(self);
}

/* ---- a lock that others have ------------------------------------------------------------------- */

typedef struct lock_holder {
    gpsti_a32 wanted, held;
    books* books;
    gpst_pipeline* pipeline; /* once it is wanted */
} lock_holder;

static lock_holder holder;

static void want_it_held(gpst_pipeline* pipeline) {
    holder.pipeline = pipeline;
    gpsti_a32_store(&holder.wanted, 1);
    while (gpsti_a32_load(&holder.held) == 0)
        gpsti_sleep_ns(20000);
}

/* For 20 ms at the most, or until three workers have done more than they had in hand: who finds the lock taken carries
   others meanwhile. */
static void hold_it(void* argument) {
    (void)argument;
    while (gpsti_a32_load(&holder.wanted) == 0)
        gpsti_sleep_ns(20000);
    gpsti_mutex* const mutex = &holder.pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    const uint64_t n_before = gpsti_a64_load(&holder.books->n_works);
    const int64_t end_ns = gpsti_now_ns() + 20000000;
    gpsti_a32_store(&holder.held, 1);
    while (gpsti_a64_load(&holder.books->n_works) - n_before < 25 && gpsti_now_ns() < end_ns)
        gpsti_sleep_ns(20000);
    gpsti_mutex_unlock(mutex);
}

static gpst_result work_on_a_picture(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    GPSTI_TRY(gpst_task_set_input(task, &shape, &image));
    memset(image.data, 0xA5, KIT_BYTES);
    return books_work(user_data, task);
}

/* Items of 20 us, with a kernel behind the stage or without. */
static void run_with_the_lock_held(uint32_t kernel) {
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stages[2];
    gpst_stats stats;
    gpsti_thread thread;
    gpst_pipeline_desc desc = books_desc(own, stages);
    stages[1] = kit_stage(self, GPST_STAGE_DEVICE, kit_nothing, "nothing");
    if (kernel) {
        stages[0].func = work_on_a_picture;
        desc.n_stages = 2;
    }
    memset(&holder, 0, sizeof holder);
    holder.books = own;
    own->act_at = N_BRIEF / 2;
    own->act = want_it_held;
    assert_int_equal(gpsti_thread_start(&thread, hold_it, NULL, "holder"), GPST_OK);
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    gpsti_thread_join(&thread);
    books_check(own, N_BRIEF);
    assert_int_equal(stats.items_ok, N_BRIEF);
    for (uint32_t s = 0; s < stats.n_stages; s++)
        if (strcmp(stats.stages[s].name, "upload") != 0 && strcmp(stats.stages[s].name, "download") != 0)
            assert_int_equal(stats.stages[s].count, N_BRIEF);
    kit_close(self);
}

static void test_others_have_the_lock(void** state) {
    (void)state;
    run_cases(run_with_the_lock_held, 2);
}

static void test_workers_are_prepared(void** state) {
    (void)state;
    run_cases(run_prepared, 1);
}

static gpst_result sleep_for_long(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    gpsti_sleep_ns(300000);
    return GPST_OK;
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
    run_cases(run_the_end_comes_as_it_comes, 6);
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
    run_cases(run_cancel_and_stop, 12);
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
    assert_in_range(stats.items_failed, 1, 3 * 16); /* what each worker had in hand */
    books_check(own, stats.items_total);
    kit_close(self);
}

static void test_stop_on_error(void** state) {
    (void)state;
    run_cases(run_stop_on_error, 4);
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
    books_check(own, own->n_items);
    assert_int_equal(stats.items_ok, own->n_items);
    kit_close(self);
}

static void test_plain_blocks_between(void** state) {
    (void)state;
    run_cases(run_plain_blocks_between, 4);
}

/* Items that become long, and may be brought in stages again while others are still on their whole way. */
static void run_to_long_items(uint32_t has_sink) {
    kit* const self = kit_open("cpu", 4);
    books* const own = books_open(self, 0, 2160);
    gpst_stage_desc stage;
    gpst_stats stats;
    gpst_pipeline_desc desc = books_desc(own, &stage);
    own->work_ns = 200000; /* waits, so that the guard prefers the workers on any machine, and beside any sanitizer */
    own->late_from = 2080;
    own->late_ns = 60000000;
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

static void test_items_become_long(void** state) {
    (void)state;
    run_cases(run_to_long_items, 2);
}

/* ---- who waits for the end ----------------------------------------------------------------------- */

/* He works, too, and there are never more at work than workers are to be. */
static void test_who_waits_is_one_of_them(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    const gpst_pipeline_desc desc = books_desc(own, &stage);
    stage.func = work_few_at_once;
    own->most_at_work = 3;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    books_check(own, N_BRIEF);
    kit_close(self);
}

/* Of the workers one fewer is called; all where somebody is told of items, or where each worker has its own core. */
static void check_called(gpst_pipeline* pipeline, bool is_shared) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    while (scheduler->n_idle < scheduler->n_workers || scheduler->n_waking > 0) {
        gpsti_mutex_unlock(&scheduler->mutex);
        gpsti_sleep_ns(100000);
        gpsti_mutex_lock(&scheduler->mutex);
    }
    assert_int_equal(gpsti_carry_is_shared(pipeline), is_shared);
    gpsti_flow_call_workers(pipeline);
    assert_int_equal(scheduler->n_waking, pipeline->n_active - (is_shared ? 1 : 0));
    gpsti_mutex_unlock(&scheduler->mutex);
}

static void test_one_fewer_is_called(void** state) {
    kit* const self = kit_open("cpu", 4);
    books* const own = books_open(self, 0, 1);
    gpst_stage_desc stage;
    const gpst_pipeline_desc desc = books_desc(own, &stage);
    (void)state;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &own->pipeline), GPST_OK);
    gpst_pipeline* const pipeline = own->pipeline;
    pipeline->n_active = 3;
    check_called(pipeline, false);
    pipeline->whole = true;
    check_called(pipeline, true);
    self->context->pin.on = true;
    check_called(pipeline, false);
    self->context->pin.on = false;
    pipeline->desc.sink = books_sink;
    check_called(pipeline, false);
    pipeline->desc.sink = NULL;
    pipeline->n_active = 1; /* who waits, alone */
    check_called(pipeline, true);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_once),
        cmocka_unit_test(test_workers_are_prepared),
        cmocka_unit_test(test_others_have_the_lock),
        cmocka_unit_test(test_who_has_no_whole_items),
        cmocka_unit_test(test_the_end_comes_as_it_comes),
        cmocka_unit_test(test_cancel_and_stop),
        cmocka_unit_test(test_stop_on_error),
        cmocka_unit_test(test_two_pipelines_share_the_workers),
        cmocka_unit_test(test_plain_blocks_between),
        cmocka_unit_test(test_items_become_long),
        cmocka_unit_test(test_who_waits_is_one_of_them),
        cmocka_unit_test(test_one_fewer_is_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
