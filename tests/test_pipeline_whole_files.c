/* tests/test_pipeline_whole_files.c -- whole items with files, a device and memory that may fail: the same files and
   errors as one step at a time. */
#include "pipeline_kit.h"

#include "pipeline_books.h"
#include "pipeline_files.h"
#include "test_threads.h"

enum { N_DEVICE = 1500 };

/* ---- files ------------------------------------------------------------------------------------------ */

static const char* path_taken(const gpst_stats* stats, const char* what) {
    for (uint32_t p = 0; p < stats->n_paths; p++)
        if (strcmp(stats->paths[p].what, what) == 0)
            return stats->paths[p].taken;
    return "";
}

static void files_run(uint32_t i) {
    static const kit_place places[] = {KIT_NOWHERE, KIT_SOURCE, KIT_READ,   KIT_DECODE, KIT_DEVICE, KIT_DEVICE_LATER,
                                       KIT_ENCODE,  KIT_WRITE,  KIT_COMMIT, KIT_SINK};
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
    assert_int_equal(run_tuned(self, &desc, &stats), fails ? GPST_PARTIAL : GPST_OK);
    assert_int_equal(kit_count_files(self, ".gpustage"), 0);
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

static void test_files_are_whole_or_absent(void** state) {
    (void)state;
    run_cases(files_run, 19);
}

#if defined(__linux__)
static void apply(gpst_pipeline* pipeline, bool whole) {
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    pipeline->whole = whole;
    pipeline->read_cpu_part = -1.0; /* nobody has read yet */
    gpsti_tune_apply(pipeline);
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
}

/* Whole items are read by their workers, and need no other thread, but with a list: it reads ahead. In stages there is
   one, or the workers go on reading. */
static void test_threads_that_read(void** state) {
    (void)state;
    const char* const paths[] = {"a", "b"};
    for (int i = 0; i < 3; i++) {
        const bool whole = i > 0, has_list = i == 2;
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = files_desc(self, false);
        gpst_pipeline* pipeline = NULL;
        desc.n_stages = 2; /* with none that writes */
        const uint32_t n_before = test_settled_threads();
        desc.paths = has_list ? paths : NULL;
        desc.n_paths = has_list ? 2 : 0;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
        pipeline->whole = whole;
        assert_int_equal(gpsti_pipeline_open(pipeline), GPST_OK);
        apply(pipeline, whole);
        assert_int_equal(test_count_threads() > n_before, !whole || has_list);
        if (i == 1 && test_refuse_threads(true)) {
            apply(pipeline, false);
            assert_true(test_refuse_threads(false));
            assert_true(gpsti_carry_reads(pipeline) && test_count_threads() == n_before);
        }
        apply(pipeline, false);
        assert_true(!gpsti_carry_reads(pipeline) && test_count_threads() > n_before);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}
#endif

#if defined(__linux__)
/* Nor has a writer threads while workers bring items whole; where none is to be had, they go on with that. */
static void test_threads_that_write(void** state) {
    (void)state;
    for (int i = 0; i < 2; i++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = files_desc(self, false);
        gpst_pipeline* pipeline = NULL;
        desc.stages = &self->stages[1]; /* with none that reads */
        desc.n_stages = 4;
        const uint32_t n_before = test_settled_threads();
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
        pipeline->whole = i == 1;
        assert_int_equal(gpsti_pipeline_open(pipeline), GPST_OK);
        apply(pipeline, i == 1);
        assert_int_equal(test_count_threads() > n_before, i == 0);
        if (i == 1 && test_refuse_threads(true)) {
            apply(pipeline, false);
            assert_true(test_refuse_threads(false));
            assert_true(pipeline->whole && test_count_threads() == n_before);
            gpst_pipeline_query_tuner(pipeline, &report);
            assert_true(said("whole items: no thread for the writer"));
        }
        apply(pipeline, false);
        assert_true(!pipeline->whole && test_count_threads() > n_before);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}
#endif

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
        kit_close(self);
    }
}

/* The device goes in the midst of it: the CPU does the rest, every item once. */
static void test_a_lost_device(void** state) {
    (void)state;
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
    kit_close(self);
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

static void test_max_item_bytes_is_an_item_s(void** state) {
    (void)state;
    run_with_mode(GPST_RUN_DEFAULT);
    run_with_mode(GPST_RUN_ENGINE);
    run_with_mode(GPST_RUN_PLAIN_SERIAL);
}

/* The n-th allocation is refused, for every n: at most its item fails, nothing is left, and the source is asked in
   order to its end. */
static void test_every_allocation_refused(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 4);
    gpst_pipeline_desc desc = files_desc(self, false);
    uint64_t n = 0, n_creates_failed = 0;
    bool refused = true;
    const uint64_t live_bytes = gpsti_a64_load(&self->memory.live_bytes);
    self->n_items = desc.n_items_expected = 26;
    self->decode_ns = 2000000;
    for (n = 1; refused && n < 400; n++) {
        gpst_pipeline* pipeline = NULL;
        gpst_stats stats;
        kit_forget(self);
        desc.sink = n % 2 ? kit_sink : NULL;
        test_memory_refuse(&self->memory, n);
        const gpst_result result = gpst_pipeline_create(self->context, &desc, &pipeline);
        if (result == GPST_OK) {
            const gpst_result ran = gpst_pipeline_run(pipeline);
            gpst_pipeline_query_stats(pipeline, &stats);
            assert_true(ran == GPST_OK || ran == GPST_PARTIAL);
            assert_int_equal(stats.items_ok + stats.items_failed, self->n_items);
            assert_true(stats.items_failed <= 1);
            assert_int_equal(kit_count_files(self, "out_"), stats.items_ok * self->n_outputs);
        } else {
            assert_int_equal(result, GPST_ERROR_MEMORY);
            n_creates_failed++;
        }
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        refused = test_memory_refused(&self->memory);
        test_memory_relent(&self->memory);
        gpst_context_trim(self->context); /* and the next one finds nothing */
        assert_int_equal(gpsti_a64_load(&self->memory.live_bytes), live_bytes);
        kit_remove_files(self, "out_");
    }
    printf("%u allocations refused one by one, %u creates among them\n", (unsigned)(n - 2), (unsigned)n_creates_failed);
    assert_false(refused);
    assert_true(n_creates_failed > 5);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_whole_or_absent),
#if defined(__linux__)
        cmocka_unit_test(test_threads_that_read),
        cmocka_unit_test(test_threads_that_write),
#endif
        cmocka_unit_test(test_files_when_cancelled),
        cmocka_unit_test(test_a_fallback_is_of_one_item),
        cmocka_unit_test(test_a_lost_device),
        cmocka_unit_test(test_max_item_bytes_is_an_item_s),
        cmocka_unit_test(test_every_allocation_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
