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
    if (was_whole() && !desc.sink)
        assert_true(stats.slots_used <= 4 * n_workers + 4); /* an engine that began before item 0 was over had more */
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

/* ---- a lock that others have ------------------------------------------------------------------- */

typedef struct lock_holder {
    gpsti_a32 wanted, held;
    books* books;
    gpst_pipeline* pipeline; /* once it is wanted */
    uint64_t n_meanwhile;    /* items that were worked on while it was held */
    bool whole;
} lock_holder;

static lock_holder holder;

static void want_it_held(gpst_pipeline* pipeline) {
    holder.pipeline = pipeline;
    gpsti_a32_store(&holder.wanted, 1);
    while (gpsti_a32_load(&holder.held) == 0)
        gpsti_sleep_ns(20000);
}

/* For 20 ms at the most, or until three workers have done more than they had in hand. */
static void hold_it(void* argument) {
    (void)argument;
    while (gpsti_a32_load(&holder.wanted) == 0)
        gpsti_sleep_ns(20000);
    gpsti_mutex* const mutex = &holder.pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    const uint64_t n_before = gpsti_a64_load(&holder.books->n_works);
    const int64_t end_ns = gpsti_now_ns() + 20000000;
    gpsti_a32_store(&holder.held, 1);
    while (holder.n_meanwhile < 25 && gpsti_now_ns() < end_ns) {
        gpsti_sleep_ns(20000);
        holder.n_meanwhile = gpsti_a64_load(&holder.books->n_works) - n_before;
    }
    holder.whole = holder.pipeline->whole;
    gpsti_mutex_unlock(mutex);
}

static gpsti_a64 n_moves;                 /* of pictures, from item to item of one thread */
static GPSTI_TLS const void* last_picture;

static gpst_result work_on_a_picture(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    GPSTI_TRY(gpst_task_set_input(task, &shape, &image));
    (void)gpsti_a64_add(&n_moves, image.data != last_picture);
    last_picture = image.data;
    return books_work(user_data, task);
}

/* With a kernel behind the stage, or without. */
static void run_with_the_lock_held(bool kernel) {
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

/* Items of 20 us, five to a bunch: who is through with its own finds the lock taken, and carries others meanwhile.
   Kernels on the host's cores need it no more than the rest. */
static void nobody_waits_for_the_lock(bool kernel) {
    bool went_on = false;
    for (test_tries t = {0, 0}; !went_on && test_again(&t);) {
        run_with_the_lock_held(kernel);
        printf("    %u meanwhile%s\n", (unsigned)holder.n_meanwhile, holder.whole ? "" : ", in stages");
        went_on = holder.whole && holder.n_meanwhile >= 25;
    }
    assert_true(went_on);
}

static void test_nobody_waits_for_the_lock(void** state) {
    (void)state;
    nobody_waits_for_the_lock(false);
    nobody_waits_for_the_lock(true);
}

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/* While one worker is at it, others give back what their items had. */
static gpst_result source_of_a_while(void* user_data, uint64_t index, gpst_input* out) {
    const int64_t end_ns = gpsti_now_ns() + 40000;
    while (gpsti_now_ns() < end_ns)
        continue;
    return books_source(user_data, index, out);
}

static void run_with_pictures(uint32_t round) {
    kit* const self = kit_open("cpu", 4);
    books* const own = books_open(self, 0, 1000);
    gpst_stage_desc stage;
    gpst_stats stats;
    (void)round;
    own->work_ns = 200000; /* one at a time */
    gpst_pipeline_desc desc = books_desc(own, &stage);
    stage.func = work_on_a_picture;
    desc.source = source_of_a_while;
    gpsti_a64_store(&n_moves, 0);
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    books_check(own, 1000);
    printf("  %u pictures of 1000 were elsewhere than the thread's one before\n", (unsigned)gpsti_a64_load(&n_moves));
    kit_close(self);
}

/* A worker's next item has the memory of its last one, which its core's caches have. */
static void test_memory_stays_with_its_worker(void** state) {
    (void)state;
    gpsti_a64_store(&n_moves, 1000);
    for (test_tries t = {0, 0}; gpsti_a64_load(&n_moves) >= 100 && test_again(&t);)
        until_whole(run_with_pictures, 1);
    assert_true(gpsti_a64_load(&n_moves) < 100);
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
    self->stages[0].func = sleep_a_little;
    self->decode_ns = 400000;
    self->source_ns = source_ns;
    desc.mode = GPST_RUN_DEFAULT;
    desc.n_items_expected = 300;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(stats.items_ok, 300);
    kit_close(self);
}

static void run_with_quick_source(uint32_t i) {
    (void)i;
    run_with_source(0);
}

static void test_not_with_a_slow_source(void** state) {
    (void)state;
    bool staged = false;
    until_whole(run_with_quick_source, 1);
    for (test_tries t = {0, 0}; !staged && test_again(&t);) { /* an item may look long beside its source */
        run_with_source(200000);
        staged = !began_whole();
    }
    assert_true(staged);
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
    assert_in_range(stats.items_failed, 1, 3 * 16); /* what each worker had in hand */
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
    assert_true(report.guard.plain_items > 0 || !began_whole());
    books_check(own, own->n_items);
    assert_int_equal(stats.items_ok, own->n_items);
    kit_close(self);
}

static void test_plain_blocks_between(void** state) {
    (void)state;
    until_whole(run_plain_blocks_between, 4);
}

static bool crowd_seen_then; /* at the last item */

/* At the start several at once take longer, as workers do that have only just been woken. */
static gpst_result work_in_an_early_crowd(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    const bool others = gpsti_a32_add(&self->n_at_work, 1) > 0;
    gpsti_sleep_ns(others && task->item->index < 80 ? 200000 : 20000);
    (void)gpsti_a32_add(&self->n_at_work, UINT32_MAX);
    if (task->item->index == self->n_items - 1) {
        gpsti_mutex_lock(&task->pipeline->context->scheduler->mutex);
        crowd_seen_then = task->pipeline->tune.crowd_seen;
        gpsti_mutex_unlock(&task->pipeline->context->scheduler->mutex);
    }
    return books_work(user_data, task);
}

/* Were two of four the first number of workers that was tried? More than there are cores are tried less by one. */
static bool tried_half(void) {
    for (uint32_t d = 0; d < report.n_decisions && d < GPST_MAX_DECISIONS; d++)
        if (report.decisions[d].knob == GPST_KNOB_WORKERS)
            return report.decisions[d].after == 2 || strstr(report.decisions[d].reason, "taken back: 2 ") != NULL;
    return false;
}

/* What is a crowd at the start alone is none. */
static void test_an_early_crowd_is_no_crowd(void** state) {
    (void)state;
    bool stays = false;
    for (test_tries t = {0, 0}; !stays && test_again(&t);) {
        kit* const self = kit_open("cpu", 4);
        books* const own = books_open(self, 0, N_BRIEF);
        gpst_stage_desc stage;
        gpst_stats stats;
        const gpst_pipeline_desc desc = books_desc(own, &stage);
        stage.func = work_in_an_early_crowd;
        own->work_ns = 0;
        crowd_seen_then = false;
        assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
        books_check(own, N_BRIEF);
        print_decisions();
        stays = crowd_seen_then && !tried_half();
        kit_close(self);
    }
    assert_true(stays);
}

/* Items that become long are brought in stages again, while others are still on their whole way. */
static void run_to_long_items(bool has_sink) {
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

static void test_long_items_are_given_up(void** state) {
    (void)state;
    for (int has_sink = 0; has_sink < 2; has_sink++) {
        bool given_up = false;
        for (test_tries t = {0, 0}; !given_up && test_again(&t);) { /* on a busy machine a plain loop may be found faster */
            run_to_long_items(has_sink == 1);
            given_up = said("in stages again");
        }
        assert_true(given_up);
    }
}

static uint32_t n_served_then; /* slots, when the first of the whole items was at work */

static gpst_result work_and_look(void* user_data, gpst_task* task) {
    gpst_pipeline* const pipeline = task->pipeline;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    if (pipeline->whole && n_served_then == UINT32_MAX)
        n_served_then = pipeline->n_served;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    return books_work(user_data, task);
}

/* A slot that served before has given its memory back: until it has some of its own, memory is not said to stay. */
static void test_slots_that_served_before_have_no_memory(void** state) {
    (void)state;
    n_served_then = UINT32_MAX;
    for (test_tries t = {0, 0}; n_served_then != 0 && test_again(&t);) { /* others may have been quicker to end */
        kit* const self = kit_open("cpu", 3);
        books* const own = books_open(self, 0, N_BRIEF);
        gpst_stage_desc stage;
        gpst_stats stats;
        const gpst_pipeline_desc desc = books_desc(own, &stage);
        stage.func = work_and_look;
        n_served_then = UINT32_MAX;
        assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
        assert_int_equal(stats.growths_after_freeze, 0);
        kit_close(self);
    }
    assert_int_equal(n_served_then, 0);
}

/* ---- who waits for the end ----------------------------------------------------------------------- */

static gpst_result work_and_count(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    (void)gpsti_a32_add(&self->n_inits[task->worker_index], 1);
    return work_few_at_once(user_data, task);
}

/* Its items, in a run in which there are never more at work than workers are to be. */
static uint32_t run_where_who_waits_works(void) {
    kit* const self = kit_open("cpu", 3);
    books* const own = books_open(self, 0, N_BRIEF);
    gpst_stage_desc stage;
    gpst_stats stats;
    const gpst_pipeline_desc desc = books_desc(own, &stage);
    stage.func = work_and_count;
    own->most_at_work = 3;
    assert_int_equal(books_run(own, &desc, &stats), GPST_OK);
    books_check(own, N_BRIEF);
    const uint32_t n_here = gpsti_a32_load(&own->n_inits[3]);
    kit_close(self);
    return was_whole() ? n_here : 0;
}

/* Many more than the plain loop's, with which a run begins. */
static void test_who_waits_works(void** state) {
    uint32_t n_here = 0;
    (void)state;
    for (test_tries t = {0, 0}; n_here < N_BRIEF / 16 && test_again(&t);)
        n_here = run_where_who_waits_works();
    assert_true(n_here >= N_BRIEF / 16);
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
        cmocka_unit_test(test_nobody_waits_for_the_lock),
        cmocka_unit_test(test_memory_stays_with_its_worker),
        cmocka_unit_test(test_not_with_a_slow_source),
        cmocka_unit_test(test_who_has_no_whole_items),
        cmocka_unit_test(test_the_end_comes_as_it_comes),
        cmocka_unit_test(test_cancel_and_stop),
        cmocka_unit_test(test_stop_on_error),
        cmocka_unit_test(test_two_pipelines_share_the_workers),
        cmocka_unit_test(test_plain_blocks_between),
        cmocka_unit_test(test_an_early_crowd_is_no_crowd),
        cmocka_unit_test(test_long_items_are_given_up),
        cmocka_unit_test(test_slots_that_served_before_have_no_memory),
        cmocka_unit_test(test_who_waits_works),
        cmocka_unit_test(test_one_fewer_is_called),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
