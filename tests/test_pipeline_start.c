/* tests/test_pipeline_start.c -- how a tuned run starts: plain, until what is left is worth an engine, and with how much
   of one. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

/* Whether a run of short items stayed on the caller's thread; then no thread was made and one slot used. */
static bool small_run_stays_plain(uint64_t n_items) {
    kit* const self = kit_open("cpu", 2);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_simple(self, n_items, sleep_a_little);
    const uint32_t n_threads = kit_count_threads();
    self->decode_ns = 20000; /* more than handing over costs, less than threads */
    desc.n_items_expected = n_items;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    const bool plain = strstr(stats.settings, "mode=plain-serial") != NULL;
    if (plain)
        assert_int_equal(kit_count_threads(), n_threads);
    if (plain && n_items > 0)
        assert_int_equal(stats.slots_used, 1);
    assert_int_equal(self->n_ok, n_items);
    kit_close(self);
    return plain;
}

/* Too little to start threads for. On a busy machine a short item can look long: there are several tries. */
static void test_small_runs_stay_plain(void** state) {
    (void)state;
    for (uint64_t n_items = 0; n_items < 4; n_items++) {
        bool plain = false;
        for (test_tries t = {0, 0}; !plain && test_again(&t);)
            plain = small_run_stays_plain(n_items);
        assert_true(plain);
    }
}

static gpst_result spin(int64_t for_ns) {
    const int64_t end_ns = gpsti_now_ns() + for_ns;
    while (gpsti_now_ns() < end_ns) {}
    return GPST_OK;
}

static gpst_result spin_a_little(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return spin(6000);
}

static bool was_opened(void) {
    return report.n_decisions > 0 && strstr(report.decisions[0].reason, "starts with") != NULL;
}

static gpst_result spin_longer(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return spin(30000);
}

static bool few_are_handed_over(void) {
    kit* const self = kit_open("cpu", 2);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_simple(self, 20, spin_longer);
    desc.n_items_expected = 20;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, 20);
    kit_close(self);
    return said("starts with whole items");
}

/* Of 20 items of 30 us two workers save a quarter of a millisecond: worth waking them for whole ones. More often than
   not, since an item may look long by chance. */
static void test_few_whole_items_are_handed_over(void** state) {
    (void)state;
    uint32_t n_opened = 0;
    for (test_tries t = {0, 0}; n_opened < 5 && test_again(&t);) {
        n_opened = 0;
        for (int run = 0; run < 9; run++)
            n_opened += few_are_handed_over() ? 1 : 0;
    }
    assert_true(n_opened >= 5);
}

/* 10,000 items of 6 us are worth an engine that takes them in bunches; all come out, in order. */
static void test_brief_items_are_handed_over(void** state) {
    (void)state;
    bool opened = false;
    for (test_tries t = {0, 0}; !opened && test_again(&t);) {
        kit* const self = kit_open("cpu", 2);
        gpst_stats stats;
        gpst_pipeline_desc desc = kit_simple(self, KIT_MAX_ITEMS, spin_a_little);
        desc.n_items_expected = KIT_MAX_ITEMS;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, KIT_MAX_ITEMS);
        opened = was_opened();
        kit_close(self);
    }
    assert_true(opened);
}

static int64_t brief_ns; /* what an item is thought to take of the engine, when item 100 begins */

static gpst_result spin_then_ask_for_memory(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image picture;
    bool whole = false;
    gpsti_mutex_lock(&task->pipeline->context->scheduler->mutex);
    if (task->item->index == 100)
        brief_ns = gpsti_tune_period_ns(task->pipeline, &whole);
    gpsti_mutex_unlock(&task->pipeline->context->scheduler->mutex);
    GPSTI_TRY(spin_a_little(user_data, task));
    GPSTI_TRY(gpst_task_set_input(task, &shape, &picture));
    return gpst_task_set_output(task, 0, &shape, &picture);
}

/* As many of 10 us on a device that cores play: for that nobody stands in line, as for a driver. */
static void test_brief_items_of_a_played_device(void** state) {
    (void)state;
    bool opened = false;
    for (test_tries t = {0, 0}; !opened && test_again(&t);) {
        kit* const self = kit_open("sim:launch_us=0,kernel_us=2", 2);
        gpst_stats stats;
        self->n_outputs = 1;
        gpst_pipeline_desc desc = kit_simple(self, KIT_MAX_ITEMS, spin_then_ask_for_memory);
        self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, kit_device, "compute");
        desc.n_stages = 2;
        desc.n_items_expected = KIT_MAX_ITEMS;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, KIT_MAX_ITEMS);
        opened = said("starts with whole items") && brief_ns < GPSTI_TUNER_BATCH_ITEM_NS;
        kit_close(self);
    }
    assert_true(opened);
}

/* As many of nothing, in whichever loop. */
static void test_tiny_items_are_all_done(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_simple(self, KIT_MAX_ITEMS, kit_nothing);
    desc.n_items_expected = KIT_MAX_ITEMS;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, KIT_MAX_ITEMS);
    assert_int_equal(stats.items_ok, KIT_MAX_ITEMS);
    kit_close(self);
}

/* Case i. True: the engine took it. */
static bool item_0_is_handed_over(int i) {
    static const char* const backends[] = {"cpu", "sim:kernel_us=100"};
    kit* const self = kit_open(backends[i % 2], 2);
    gpst_stats stats;
    const uint64_t n_items = kit_is_on_gpu(self) ? 100 : 20; /* where slots take long to make, the run is longer */
    gpst_pipeline_desc desc = kit_standard(self, n_items);
    desc.n_items_expected = i / 2 < 2 ? n_items : 0;
    self->source_ns = i / 2 == 0 ? 2000000 : 0;
    self->decode_ns = i / 2 == 1 || i / 2 == 3 ? 2000000 : 0;
    self->encode_ns = i / 2 == 2 ? 2000000 : 0;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, n_items);
    assert_int_equal(stats.stages[0].count, n_items);
    kit_check_files(self);
    const bool stays = strstr(stats.settings, "mode=engine") || kit_is_on_gpu(self); /* which may be given up again */
    const bool opened = was_opened() || stayed_plain_on_gpu(self);
    kit_close(self);
    return stays && opened;
}

/* Item 0 goes on in the engine as soon as it has cost enough, wherever it is then. */
static void test_item_0_is_handed_over(void** state) {
    (void)state;
    for (int i = 0; i < 2 * 4; i++) {
        bool handed_over = false;
        for (test_tries t = {0, 0}; !handed_over && test_again(&t);)
            handed_over = item_0_is_handed_over(i);
        assert_true(handed_over);
    }
}

/* One item with many outputs that are worth workers. */
static void test_one_wide_item_is_shared(void** state) {
    (void)state;
    bool shared = false;
    for (test_tries t = {0, 0}; !shared && test_again(&t);) {
        kit* const self = kit_open("cpu", 4);
        gpst_stats stats;
        self->n_outputs = 8;
        gpst_pipeline_desc desc = kit_standard(self, 1);
        desc.n_items_expected = 1;
        self->decode_ns = 2000000;
        self->encode_ns = 20000000;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_true(stats.stages[3].occupancy >= 0.0);
        kit_check_files(self);
        shared = strstr(stats.settings, "mode=engine") != NULL;
        kit_close(self);
    }
    assert_true(shared);
}

/* Five items on memory that takes longer to make than the whole run: were all of them done with one slot of it? */
static bool stays_plain(int64_t source_ns) {
    kit* const self = kit_open("sim:pin_gbps=0.00008", 4); /* 50 ms a page */
    gpst_stats stats;
    self->n_outputs = 1;
    self->source_ns = source_ns;
    gpst_pipeline_desc desc = kit_standard(self, 5);
    desc.n_items_expected = 5;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, 5);
    kit_check_files(self);
    kit_close(self);
    return strstr(stats.settings, "mode=plain-serial") && stats.slots_used == 1;
}

/* No slot but the first is made. Nobody knows its price before item 0's read has asked for some, however long its
   source took. On a busy machine items can look long: there are several tries. */
static void test_dear_memory_stays_plain(void** state) {
    (void)state;
    for (int64_t source_ns = 0; source_ns <= 5000000; source_ns += 5000000) {
        bool stays = false;
        for (test_tries t = {0, 0}; !stays && test_again(&t);)
            stays = stays_plain(source_ns);
        assert_true(stays);
    }
}

/* The most slots of a run whose items are worth an engine, on memory made so fast; 0 = none was opened. */
static uint32_t most_slots(const char* backend, uint64_t expected) {
    kit* const self = kit_open(backend, 4);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_standard(self, 60);
    desc.n_items_expected = expected;
    self->decode_ns = 20000000;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    print_decisions();
    assert_int_equal(self->n_ok, 60);
    kit_check_files(self);
    kit_close(self);
    return was_opened() ? report.most.value[GPST_KNOB_SLOTS] : 0; /* a busy machine may give it up again */
}

typedef struct dear {
    int64_t work_ns;
    bool plain; /* item 0 came to its end on the caller's thread, and nobody had begun */
} dear;

static gpst_result ask_for_memory(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(64, 64);
    gpst_image picture;
    GPSTI_TRY(gpst_task_set_input(task, &shape, &picture));
    if (task->item->index == 0)
        gpsti_sleep_ns(((const dear*)user_data)->work_ns);
    return GPST_OK;
}

static gpst_result look_who_ends_it(void* user_data, gpst_task* task) {
    if (task->item->index == 0)
        ((dear*)user_data)->plain = task->worker_index == 2 && !task->pipeline->attached;
    return GPST_OK;
}

/* Item 0 is not left, nor have others begun, while its memory took five times as long as its work, however long the run:
   what others would gain the first items tell. Nor in the next pipeline, which finds that memory. */
static void test_dear_memory_is_told_of_first(void** state) {
    (void)state;
    for (int is_long = 0; is_long < 2; is_long++) {
        bool seen = false;
        for (test_tries t = {0, 0}; !seen && test_again(&t);) {
            kit* const self = kit_open("sim:pin_gbps=0.00004", 2); /* 100 ms a page */
            seen = true;
            for (int n_runs = 0; n_runs < 2; n_runs++) {
                dear watch = {is_long ? 40000000 : 4000000, false};
                gpst_stats stats;
                gpst_pipeline_desc desc = kit_simple(self, 3, ask_for_memory);
                self->stages[1] = kit_stage(self, GPST_STAGE_HOST, look_who_ends_it, "look");
                self->stages[0].user_data = self->stages[1].user_data = &watch;
                desc.n_stages = self->n_stages = 2;
                desc.n_items_expected = 1000000;
                assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
                assert_int_equal(self->n_ok, 3);
                seen = seen && (watch.plain == !is_long || stayed_plain_on_gpu(self));
            }
            kit_close(self);
        }
        assert_true(seen);
    }
}

/* Set-up of one slot: about five pages of 10 ms; of the run: 60 items of 20 ms. On a busy machine items can look long:
   there are several tries. */
static void test_slots_must_pay(void** state) {
    (void)state;
    bool pays = false;
    for (test_tries t = {0, 0}; !pays && test_again(&t);) {
        const uint32_t few = most_slots("sim:pin_gbps=0.0004", 60), unknown = most_slots("sim:pin_gbps=0.0004", 0);
        const uint32_t any = most_slots("sim", 60);
        printf("    at most %u slots; %u of a run of unknown length; %u of memory that costs nothing\n", few, unknown, any);
        pays = few >= 3 && few < 40 && unknown >= 3 && unknown < 80 && any > few;
    }
    assert_true(pays);
}

typedef struct first_item {
    kit* kit;
    int64_t period_ns; /* as it is known when item 2 is worked on */
} first_item;

static gpst_result first_takes_long(void* user_data, gpst_task* task) {
    first_item* const self = (first_item*)user_data;
    gpst_pipeline* const pipeline = self->kit->pipeline;
    bool whole = false;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    if (task->item->index == 2)
        self->period_ns = gpsti_tune_period_ns(pipeline, &whole);
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    gpsti_sleep_ns(task->item->index == 0 ? 40000000 : 500000);
    return GPST_OK;
}

/* One at a time, so that the others wait for item 0. */
static int64_t period_after_a_long_one(void) {
    kit* const self = kit_open("cpu", 2);
    gpst_stats stats;
    first_item first;
    first.kit = self;
    first.period_ns = 0;
    gpst_pipeline_desc desc = kit_simple(self, 200, first_takes_long);
    self->stages[0].user_data = &first;
    self->stages[0].concurrency = 1;
    desc.n_items_expected = 200;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, 200);
    kit_close(self);
    return first.period_ns;
}

/* What item 0 took, which has to find memory and caches, says nothing of the others: in a long run two items are waited
   for, and the first is left out. */
static void test_item_0_is_left_out(void** state) {
    (void)state;
    int64_t period_ns = 0;
    for (test_tries t = {0, 0}; (period_ns == 0 || period_ns > 5000000) && test_again(&t);)
        period_ns = period_after_a_long_one(); /* busy machines sleep longer */
    assert_in_range(period_ns, 200000, 5000000); /* 0.5 ms by two workers; with item 0 it would be 10 ms */
}

/* Runs of 20 items with the n-th allocation refused, every n; how many stayed plain for it. */
static uint32_t runs_without_engine(uint64_t n_items_expected) {
    uint32_t n_plain = 0;
    for (uint64_t n = 1; n < 40; n++) {
        kit* const self = kit_open("cpu", 2);
        gpst_stats stats;
        gpst_pipeline_desc desc = kit_standard(self, 20);
        desc.n_items_expected = n_items_expected;
        desc.mode = GPST_RUN_DEFAULT;
        self->decode_ns = 2000000;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        test_memory_refuse(&self->memory, n);
        const gpst_result result = gpst_pipeline_run(self->pipeline);
        test_memory_relent(&self->memory);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        gpst_pipeline_query_tuner(self->pipeline, &report);
        assert_true(result == GPST_OK || result == GPST_PARTIAL);
        assert_int_equal(stats.items_ok + stats.items_failed, 20);
        assert_true(stats.items_failed <= 1);
        if (report.n_decisions > 0 && strstr(report.decisions[report.n_decisions - 1].reason, "no engine")) {
            n_plain++;
            assert_int_equal(stats.items_ok, 20);
            assert_non_null(strstr(stats.settings, "mode=plain-serial"));
        }
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_check_files(self);
        kit_close(self);
    }
    return n_plain;
}

/* No memory for the engine: the plain loop does it all, and says why. */
static void test_no_engine_stays_plain(void** state) {
    (void)state;
    uint32_t n_plain = 0;
    for (test_tries t = {0, 0}; n_plain == 0 && test_again(&t);)
        n_plain = runs_without_engine(0);
    assert_true(n_plain > 0);
    (void)runs_without_engine(20); /* the first try is a worker's, while item 0 is at work: the second may find some */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_runs_stay_plain),
        cmocka_unit_test(test_tiny_items_are_all_done),
        cmocka_unit_test(test_few_whole_items_are_handed_over),
        cmocka_unit_test(test_brief_items_are_handed_over),
        cmocka_unit_test(test_brief_items_of_a_played_device),
        cmocka_unit_test(test_item_0_is_handed_over),
        cmocka_unit_test(test_one_wide_item_is_shared),
        cmocka_unit_test(test_dear_memory_stays_plain),
        cmocka_unit_test(test_dear_memory_is_told_of_first),
        cmocka_unit_test(test_slots_must_pay),
        cmocka_unit_test(test_no_engine_stays_plain),
        cmocka_unit_test(test_item_0_is_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
