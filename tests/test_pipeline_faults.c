/* tests/test_pipeline_faults.c -- what goes wrong costs exactly the items it touches: failures at every stage, cancel
   and stop at any moment, the n-th allocation refused, budgets. Nothing leaks, no half-written file stays. */
#include "pipeline_kit.h"

#include <signal.h>

#define N_MODES 3
static const gpst_run_mode modes[N_MODES] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL, GPST_RUN_DEFAULT};

/* ---- a failing item at every stage ------------------------------------------------------------ */

typedef struct failure {
    kit_place place;
    gpst_result result;
    const char* stage;
    const char* reason; /* a part of the sentence */
} failure;

static const failure failures[] = {
    {KIT_SOURCE, GPST_ERROR_FORMAT, "source", "line 39 of the list is bad"},
    {KIT_READ, GPST_ERROR_NOT_FOUND, "read", ".missing"},
    {KIT_DECODE, GPST_ERROR_FORMAT, "decode", "header of item 39 is bad"},
    {KIT_DEVICE, GPST_ERROR_FORMAT, "compute", "no launch for item 39"},
    {KIT_DEVICE_LATER, GPST_ERROR_FORMAT, "compute", "the kernel found a NaN"},
    {KIT_ENCODE, GPST_ERROR_UNSUPPORTED, "encode", "no encoder for output 2"},
    {KIT_WRITE, GPST_ERROR_NOT_FOUND, "write", "nowhere"},
    {KIT_COMMIT, GPST_ERROR_IO, "write", "in_the_way"},
};

static void test_failing_items(void** state) {
    (void)state;
    for (size_t f = 0; f < sizeof failures / sizeof failures[0]; f++) {
        for (int m = 0; m < N_MODES; m++) {
            kit* const self = kit_open("cpu", 3);
            char path[100];
            gpst_stats stats;
            gpst_pipeline_desc desc = kit_standard(self, 40);
            snprintf(path, sizeof path, "%s/in_the_way", self->dir);
            assert_int_equal(mkdir(path, 0700), 0);
            self->fail_place = failures[f].place;
            self->fail_first = 3;
            self->fail_every = 9; /* 3, 12, 21, 30, 39 */
            desc.mode = modes[m];
            assert_int_equal(kit_run(self, &desc, &stats), GPST_PARTIAL);
            assert_int_equal(self->n_sinks, 40);
            assert_int_equal(self->n_failed, 5);
            for (uint64_t n = 0; n < 40; n++)
                assert_int_equal(self->results[n], n % 9 == 3 ? failures[f].result : GPST_OK);
            assert_string_equal(self->failed_stage, failures[f].stage);
            if (!strstr(self->failed_reason, failures[f].reason))
                fail_msg("\"%s\" lacks \"%s\"", self->failed_reason, failures[f].reason);
            kit_check_files(self); /* no sibling of a failed output, no temporary file */
            kit_close(self);
        }
    }
}

/* The sink comes last: it saw a good item, and what it says then fails it and removes its files. */
static void test_failing_sink(void** state) {
    (void)state;
    for (int m = 0; m < N_MODES; m++) {
        kit* const self = kit_open("cpu", 2);
        gpst_stats stats;
        gpst_pipeline_desc desc = kit_standard(self, 20);
        self->fail_place = KIT_SINK;
        self->fail_every = 5;
        desc.mode = modes[m];
        assert_int_equal(kit_run(self, &desc, &stats), GPST_PARTIAL);
        assert_int_equal(self->n_sinks, 20);
        assert_int_equal(stats.items_failed, 4);
        assert_int_equal(stats.items_ok, 16);
        assert_int_equal(kit_count_files(self, "out_"), 16 * 3);
        kit_check_files(self);
        kit_close(self);
    }
}

/* A result without a sentence is told by its own text; one that is no error is made one. */
static gpst_result fail_without_words(void* user_data, gpst_task* task) {
    (void)user_data;
    return task->item->index == 0   ? GPST_ERROR_NO_SPACE
           : task->item->index == 1 ? gpst_task_fail(task, GPST_OK, "no error given, pi is %.2f", 3.14159)
                                    : GPST_OK;
}

static gpst_result keep_second_reason(void* user_data, const gpst_item* item) {
    char* const reasons = (char*)user_data;
    if (item->index < 2)
        snprintf(reasons + item->index * 100, 100, "%s|%s", gpst_result_name(item->result), item->reason);
    return GPST_OK;
}

static void test_reasons(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    char reasons[200];
    gpst_pipeline_desc desc = kit_simple(self, 3, fail_without_words);
    gpst_pipeline* pipeline = NULL;
    desc.sink = keep_second_reason;
    desc.sink_user_data = reasons;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_PARTIAL);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    assert_string_equal(reasons, "GPST_ERROR_NO_SPACE|no space left");
    assert_string_equal(reasons + 100, "GPST_ERROR_CALLBACK|no error given, pi is 3.14");
    kit_close(self);
}

/* ---- cancel and stop ------------------------------------------------------------------------------ */

typedef struct canceller {
    gpsti_thread thread;
    kit* owner;
    int64_t after_ns;
    int way; /* 0: another thread, 1: a signal handler, 2: a callback */
    gpsti_a32 calls_left;
} canceller;

static gpst_pipeline* volatile signalled_pipeline;

static void on_signal(int number) {
    (void)number;
    gpst_pipeline_cancel(signalled_pipeline);
}

static void cancel_main(void* argument) {
    canceller* const self = (canceller*)argument;
    gpsti_sleep_ns(self->after_ns);
    if (self->way == 0)
        gpst_pipeline_cancel(self->owner->pipeline);
    if (self->way == 1)
        kill(getpid(), SIGUSR1);
}

static canceller canceller_the;

static gpst_result encode_or_cancel(void* user_data, gpst_task* task) {
    if (canceller_the.way == 2 && gpsti_a32_add(&canceller_the.calls_left, UINT32_MAX) == 1)
        gpst_pipeline_cancel(task->pipeline);
    return kit_encode(user_data, task);
}

/* Runs once with a cancel on its way, and looks at what is left. */
static gpst_result run_and_cancel(kit* self, gpst_pipeline_desc* desc, uint64_t* random) {
    gpst_stats stats;
    canceller_the.owner = self;
    canceller_the.way = (int)(test_random(random) % 3);
    canceller_the.after_ns = (int64_t)(test_random(random) % 2500000) << (test_random(random) % 4);
    gpsti_a32_store(&canceller_the.calls_left, (uint32_t)(1 + test_random(random) % 70));
    kit_forget(self);
    assert_int_equal(gpst_pipeline_create(self->context, desc, &self->pipeline), GPST_OK);
    signalled_pipeline = self->pipeline;
    assert_int_equal(gpsti_thread_start(&canceller_the.thread, cancel_main, &canceller_the, "cancel"),
                     GPST_OK);
    const gpst_result result = gpst_pipeline_run(self->pipeline);
    gpst_pipeline_query_stats(self->pipeline, &stats);
    gpsti_thread_join(&canceller_the.thread);
    assert_true(result == GPST_OK || result == GPST_ERROR_CANCELLED);
    assert_int_equal(stats.items_ok + stats.items_failed + stats.items_cancelled, self->n_sinks);
    assert_int_equal(stats.items_total, self->n_sinks);
    assert_int_equal(stats.items_cancelled, self->n_cancelled);
    assert_int_equal(stats.items_ok, self->n_ok);
    assert_int_equal(stats.items_failed, 0);
    if (result == GPST_OK)
        assert_int_equal(self->n_ok, self->n_items);
    for (uint64_t n = 0; n < self->n_sinks && !self->as_ready; n++)
        assert_int_equal(self->seen[n], 1); /* no item is lost between */
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_check_files(self);
    kit_remove_files(self, "out_");
    return result;
}

static void test_cancel_200_times(void** state) {
    (void)state;
    uint64_t random = test_seed(2026);
    uint32_t n_cancelled = 0;
    struct sigaction action, before;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    kit* const self = kit_open("cpu", 3);
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    gpst_pipeline_desc desc = kit_standard(self, 40);
    self->stages[3].func = encode_or_cancel;
    for (int i = 0; i < 200; i++) {
        self->decode_ns = (int64_t)(test_random(&random) % 3) * 100000;
        self->encode_ns = (int64_t)(test_random(&random) % 3) * 50000;
        self->sink_ns = (int64_t)(test_random(&random) % 3) * 50000;
        self->as_ready = desc.as_ready = test_random(&random) % 2 == 0;
        desc.mode = test_random(&random) % 8 == 0 ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
        desc.n_slots = (uint32_t)(test_random(&random) % 3) * 5;
        n_cancelled += run_and_cancel(self, &desc, &random) == GPST_ERROR_CANCELLED;
    }
    printf("%u of 200 runs were cancelled before their end\n", n_cancelled);
    assert_true(n_cancelled > 20);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    kit_close(self);
}

static void test_cancel_before_run(void** state) {
    (void)state;
    for (int m = 0; m < N_MODES; m++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 100, kit_nothing);
        desc.mode = modes[m];
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        gpst_pipeline_cancel(self->pipeline);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_ERROR_CANCELLED);
        test_reason_has("gpst_pipeline_run", "cancelled");
        assert_int_equal(self->n_sinks, 0);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_close(self);
    }
}

/* Destroy in the middle, by another thread than those that work: cancels, waits, and leaves nothing. */
static void test_destroy_without_run(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    const gpst_pipeline_desc desc = kit_standard(self, 3);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(NULL), GPST_OK);
    kit_close(self);
}

static gpst_result stop_at_10(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    if (task->item->index == 10)
        gpst_pipeline_stop(task->pipeline);
    return kit_fails(self, KIT_DECODE, task->item->index) ? GPST_ERROR_FORMAT : GPST_OK;
}

/* The source ends; every item that it gave comes to its end. */
static void test_stop(void** state) {
    (void)state;
    for (int m = 0; m < N_MODES; m++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 1000, stop_at_10);
        desc.mode = modes[m];
        desc.n_slots = 6;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
        assert_in_range(self->n_sinks, 11, 11 + 6);
        assert_int_equal(self->n_ok, self->n_sinks);
        kit_close(self);
    }
}

static gpst_result fail_at_10(void* user_data, gpst_task* task) {
    (void)user_data;
    return task->item->index == 10 ? GPST_ERROR_FORMAT : GPST_OK;
}

static void test_stop_on_error(void** state) {
    (void)state;
    for (int m = 0; m < N_MODES; m++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, 1000, fail_at_10);
        desc.mode = modes[m];
        desc.n_slots = 6;
        desc.stop_on_error = true;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_PARTIAL);
        assert_in_range(self->n_sinks, 11, 11 + 6);
        assert_int_equal(self->n_failed, 1);
        assert_int_equal(self->n_ok, self->n_sinks - 1);
        kit_close(self);
    }
}

/* ---- memory ------------------------------------------------------------------------------------------ */

/* Create, run and destroy with the n-th allocation refused, until there is none left to refuse; the context stays. */
static void refuse_every_allocation(kit* self, const gpst_pipeline_desc* desc, uint64_t most) {
    uint64_t n = 0, n_creates_failed = 0, n_items_failed = 0;
    const uint64_t live_bytes = gpsti_a64_load(&self->memory.live_bytes);
    bool refused = true;
    for (n = 1; refused && n < most; n++) {
        gpst_pipeline* pipeline = NULL;
        gpst_stats stats;
        kit_forget(self);
        gpst_clear_reason();
        test_memory_refuse(&self->memory, n);
        const gpst_result result = gpst_pipeline_create(self->context, desc, &pipeline);
        if (result == GPST_OK) {
            const gpst_result ran = gpst_pipeline_run(pipeline);
            gpst_pipeline_query_stats(pipeline, &stats);
            assert_true(ran == GPST_OK || ran == GPST_PARTIAL);
            assert_int_equal(self->n_sinks, self->n_items);
            assert_int_equal(stats.items_ok + stats.items_failed, self->n_items);
            n_items_failed += self->n_failed;
            assert_true(self->n_failed <= 1);
            if (self->n_failed > 0)
                assert_non_null(strstr(self->failed_reason, "out of memory"));
        } else {
            assert_int_equal(result, GPST_ERROR_MEMORY);
            assert_null(pipeline);
            assert_non_null(strstr(gpst_last_reason(), "out of memory"));
            n_creates_failed++;
        }
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        refused = test_memory_refused(&self->memory);
        test_memory_relent(&self->memory);
        gpst_context_trim(self->context); /* and the next one finds nothing */
        assert_int_equal(gpsti_a64_load(&self->memory.live_bytes), live_bytes);
        kit_check_files(self);
        kit_remove_files(self, "out_");
    }
    printf("%u allocations refused one by one: %u creates and %u items failed\n", (unsigned)(n - 2),
           (unsigned)n_creates_failed, (unsigned)n_items_failed);
    assert_false(refused);
    assert_true(n_creates_failed > 5 && n_items_failed > 5);
    assert_int_equal(kit_run(self, desc, NULL), GPST_OK); /* and then it works */
    kit_check_files(self);
}

static void test_every_allocation_refused(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "cpu", "sim", "cpu"};
    static const gpst_run_mode runs[] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL, GPST_RUN_ENGINE, GPST_RUN_DEFAULT};
    for (int i = 0; i < 4; i++) {
        kit* const self = kit_open(backends[i], 2);
        gpst_pipeline_desc desc = kit_standard(self, 4);
        self->decode_ns = runs[i] == GPST_RUN_DEFAULT ? 1100000 : 0; /* workers begin in the midst of it */
        desc.mode = runs[i];
        desc.n_slots = 2;
        desc.n_reads = desc.n_writes = 1;
        refuse_every_allocation(self, &desc, 400);
        kit_close(self);
    }
}

typedef struct sizes { /* a decode whose pictures have the height that the test says */
    kit* owner;
    uint32_t first_height, step;
} sizes;

static gpst_result decode_size(void* user_data, gpst_task* task) {
    const sizes* const self = (const sizes*)user_data;
    const gpst_image shape = kit_shape(4096, self->first_height + self->step * (uint32_t)task->item->index);
    gpst_image image;
    size_t bytes = 0;
    GPSTI_TRY(gpst_task_set_picture(task, 0, 0, &shape, &image));
    GPSTI_TRY(gpst_image_bytes(&image, &bytes));
    memset(image.data, (int)task->item->index, bytes);
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &image));
    memset(image.data, 1, bytes);
    return GPST_OK;
}

static gpst_pipeline_desc sizes_desc(kit* self, sizes* pictures, uint32_t first_height, uint32_t step) {
    self->n_outputs = 1;
    gpst_pipeline_desc desc = kit_simple(self, 30, decode_size);
    pictures->owner = self;
    pictures->first_height = first_height;
    pictures->step = step;
    self->stages[0].user_data = pictures;
    desc.n_slots = 2;
    return desc;
}

static void grow_and_freeze(uint32_t step) {
    kit* const self = kit_open("cpu", 2);
    sizes pictures;
    gpst_stats stats;
    const gpst_pipeline_desc desc = sizes_desc(self, &pictures, 10, step * 10);
    self->sink_ns = 200000; /* so that both slots are used, where workers have cores */
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    if (step == 0) { /* items of one size: at most once for input and output of each slot */
        assert_in_range(stats.growths, stats.slots_used, 2 * stats.slots_used);
        assert_int_equal(stats.allocations_after_freeze, 0);
    } else {
        assert_true(stats.growths > 20);
        assert_true(stats.slots_used < 2 || stats.growths_after_freeze > 0); /* one worker may be given no core */
    }
    kit_close(self);
}

static void test_slots_grow_and_freeze(void** state) {
    (void)state;
    for (uint32_t step = 0; step < 2; step++)
        grow_and_freeze(step);
}

static void files_without_allocation(const char* backend) {
    kit* const self = kit_open(backend, 2);
    gpst_pipeline_desc desc = kit_standard(self, 60);
    gpst_stats stats;
    self->sink_ns = 300000;
    desc.n_slots = 3;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_int_equal(stats.allocations_after_freeze, 0);
    kit_close(self);
}

/* The whole way through files: names, emits, writes, device work, and nothing allocated once every slot has served. */
static void test_no_allocation_after_freeze(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim"};
    for (int b = 0; b < 2; b++)
        files_without_allocation(backends[b]);
}

/* ---- memory that comes after the freeze ------------------------------------------------------------- */

enum { N_LATE = 40, LATE_FROM = 8, LATE_OUTPUTS = 12 };

/* Every slot has served, but with one set of pictures; from item LATE_FROM on two are needed at once. */
typedef struct late {
    kit* owner;
    gpsti_a32 source_waits, zero_is_over, n_filled;
} late;

static void late_wait(const late* self, const gpsti_a32* value, uint32_t wanted) {
    const int64_t give_up_ns = gpsti_now_ns() + (int64_t)20000000000;
    while (gpsti_a32_load(value) < wanted && gpsti_now_ns() < give_up_ns)
        gpsti_sleep_ns(100000);
    kit_check((kit*)self->owner, gpsti_a32_load(value) >= wanted);
}

static gpst_result late_source(void* user_data, uint64_t index, gpst_input* out) {
    late* const self = (late*)user_data;
    (void)out;
    if (index == LATE_FROM) {
        gpsti_a32_store(&self->source_waits, 1);
        late_wait(self, &self->zero_is_over, 1);
    }
    return index < N_LATE ? GPST_OK : GPST_END;
}

/* Item 0 has no pictures before all other threads wait in the source. */
static gpst_result late_fill(void* user_data, gpst_task* task) {
    late* const self = (late*)user_data;
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    if (task->item->index == 0)
        late_wait(self, &self->source_waits, 1);
    GPSTI_TRY(gpst_task_set_picture(task, 0, 0, &shape, &image));
    for (uint32_t o = 0; o < LATE_OUTPUTS; o++)
        GPSTI_TRY(gpst_task_set_picture(task, 1, o, &shape, &image));
    if (task->item->index >= LATE_FROM) {
        (void)gpsti_a32_add(&self->n_filled, 1);
        late_wait(self, &self->n_filled, 2);
    }
    return GPST_OK;
}

static gpst_result late_sink(void* user_data, const gpst_item* item) {
    late* const self = (late*)user_data;
    if (item->index == 0)
        gpsti_a32_store(&self->zero_is_over, 1);
    return kit_sink(self->owner, item);
}

/* More frames may be made then, but the allocator is not called for them. */
static void test_late_memory_is_no_allocation(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    late items;
    gpst_stats stats;
    memset(&items, 0, sizeof items);
    items.owner = self;
    self->n_outputs = LATE_OUTPUTS;
    self->as_ready = true;
    gpst_pipeline_desc desc = kit_simple(self, N_LATE, late_fill);
    self->stages[0].user_data = &items;
    desc.source = late_source;
    desc.sink = late_sink;
    desc.source_user_data = desc.sink_user_data = &items;
    desc.n_slots = 2; /* while item 0 has one, all others go through the second: both have served by LATE_FROM */
    desc.mode = GPST_RUN_ENGINE;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_true(stats.growths_after_freeze >= 1 + LATE_OUTPUTS); /* or more, where an item ends late */
    assert_int_equal(stats.allocations_after_freeze, 0);
    kit_close(self);
}

/* Items 0 to 5 fit into 100 KiB for input and output, later ones do not. */
static void test_max_item_bytes(void** state) {
    (void)state;
    for (int m = 0; m < N_MODES; m++) {
        kit* const self = kit_open("cpu", 2);
        sizes pictures;
        gpst_pipeline_desc desc = sizes_desc(self, &pictures, 1, 2);
        desc.max_item_bytes = 12 * 2 * 4096;
        desc.mode = modes[m];
        assert_int_equal(kit_run(self, &desc, NULL), GPST_PARTIAL);
        for (uint64_t n = 0; n < 30; n++)
            assert_int_equal(self->results[n], n < 6 ? GPST_OK : GPST_ERROR_BUDGET);
        assert_string_equal(self->failed_stage, "work");
        assert_non_null(strstr(self->failed_reason, "max_item_bytes=98304"));
        kit_close(self);
    }
}

/* One item that does not fit into what the context may hold fails; those after it, which do, are fine. */
static gpst_result decode_giant_first(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(4096, task->item->index == 0 ? 2000 : 10);
    gpst_image image;
    (void)user_data;
    return gpst_task_set_picture(task, 0, 0, &shape, &image);
}

static void test_context_budget(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_context_desc limits = GPST_ZERO;
    limits.n_workers = 2;
    limits.max_host_bytes = 1 << 20;
    kit_reopen(self, &limits);
    const gpst_pipeline_desc desc = kit_simple(self, 20, decode_giant_first);
    assert_int_equal(kit_run(self, &desc, NULL), GPST_PARTIAL);
    assert_int_equal(self->n_failed, 1);
    assert_int_equal(self->results[0], GPST_ERROR_BUDGET);
    assert_non_null(strstr(self->failed_reason, "max_host_bytes"));
    kit_close(self);
}

static gpst_result two_pictures(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(4096, 160); /* 640 KiB */
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, 0, 0, &shape, &image));
    return gpst_task_set_picture(task, 1, 0, &shape, &image);
}

/* Each fits, both do not: no other item is to blame, and the sentence says so. With a pool beside, it says how much is
   not the item's. */
static void test_an_item_too_large_alone(void** state) {
    (void)state;
    for (int beside = 0; beside < 2; beside++) {
        kit* const self = kit_open("cpu", 2);
        gpst_context_desc limits = GPST_ZERO;
        gpst_pool_desc pool_desc = GPST_ZERO;
        gpst_pool* pool = NULL;
        gpst_buffer buffer = GPST_ZERO;
        limits.n_workers = 2;
        limits.max_host_bytes = beside ? 3 << 19 : 1 << 20;
        kit_reopen(self, &limits);
        assert_int_equal(gpst_pool_create(self->context, &pool_desc, &pool), GPST_OK);
        if (beside)
            assert_int_equal(gpst_pool_acquire(pool, 600000, 0, &buffer), GPST_OK);
        self->n_outputs = 1;
        const gpst_pipeline_desc desc = kit_simple(self, 3, two_pictures);
        assert_int_equal(kit_run(self, &desc, NULL), GPST_ERROR_BUDGET);
        assert_int_equal(self->n_failed, 3);
        assert_int_equal(self->results[2], GPST_ERROR_BUDGET);
        assert_non_null(strstr(self->failed_reason, "item has 655360 bytes and needs 655360 more: max_host_bytes="));
        assert_non_null(strstr(self->failed_reason, beside ? ", of which others have 6" : ", too little for it alone"));
        if (beside)
            gpst_pool_release(pool, &buffer);
        gpst_pool_destroy(pool);
        kit_close(self);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_failing_items),
        cmocka_unit_test(test_failing_sink),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_cancel_200_times),
        cmocka_unit_test(test_cancel_before_run),
        cmocka_unit_test(test_destroy_without_run),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_on_error),
        cmocka_unit_test(test_every_allocation_refused),
        cmocka_unit_test(test_slots_grow_and_freeze),
        cmocka_unit_test(test_no_allocation_after_freeze),
        cmocka_unit_test(test_late_memory_is_no_allocation),
        cmocka_unit_test(test_max_item_bytes),
        cmocka_unit_test(test_context_budget),
        cmocka_unit_test(test_an_item_too_large_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
