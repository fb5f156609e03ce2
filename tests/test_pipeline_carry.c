/* tests/test_pipeline_carry.c -- what a worker does for several steps at once: reads of resident files by the workers,
   brief items in bunches, and the same results, order and errors as one step at a time. */
#include "pipeline_kit.h"

#include <fcntl.h>

enum { N_ITEMS = 4000 };

/* What calls saw of one another. */
typedef struct carry_watch {
    kit* books;
    uint64_t n_sources; /* in a row, without a stage between */
    uint64_t most_sources;
    gpsti_a64 n_works;
    uint64_t n_works_before;
    uint64_t cancel_at;
} carry_watch;

static gpst_result watched_source(void* user_data, uint64_t index, gpst_input* out) {
    carry_watch* const self = (carry_watch*)user_data;
    const uint64_t n_works = gpsti_a64_load(&self->n_works);
    self->n_sources = n_works == self->n_works_before ? self->n_sources + 1 : 1;
    self->n_works_before = n_works;
    if (index < self->books->n_items && self->n_sources > self->most_sources)
        self->most_sources = self->n_sources;
    return kit_source(self->books, index, out);
}

static gpst_result watched_work(void* user_data, gpst_task* task) {
    carry_watch* const self = (carry_watch*)user_data;
    const uint8_t* const data = (const uint8_t*)task->item->file_data;
    (void)gpsti_a64_add(&self->n_works, 1);
    kit_check(self->books, task->item->file_bytes == KIT_BYTES);
    for (size_t i = 0; i < KIT_BYTES; i++)
        kit_check(self->books, data[i] == kit_pixel(task->item->index, i));
    if (self->cancel_at != 0 && task->item->index == self->cancel_at)
        gpst_pipeline_cancel(self->books->pipeline);
    if (self->books->decode_ns > 0) {
        const int64_t end_ns = gpsti_now_ns() + self->books->decode_ns;
        while (gpsti_now_ns() < end_ns)
            continue;
    }
    return kit_fails(self->books, KIT_DECODE, task->item->index)
               ? gpst_task_fail(task, GPST_ERROR_FORMAT, "item %u is bad", (unsigned)task->item->index)
               : GPST_OK;
}

/* READ and a stage that looks at every byte. */
static gpst_pipeline_desc carry_desc(kit* self, carry_watch* watch, uint64_t n_items) {
    memset(watch, 0, sizeof *watch);
    watch->books = self;
    self->n_items = n_items;
    self->n_outputs = 1;
    kit_make_inputs(self);
    self->stages[0] = kit_stage(self, GPST_STAGE_READ, NULL, NULL);
    self->stages[1] = kit_stage(self, GPST_STAGE_HOST, watched_work, "work");
    self->stages[1].user_data = watch;
    self->n_stages = 2;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.source = watched_source;
    desc.source_user_data = watch;
    desc.mode = GPST_RUN_DEFAULT;
    desc.n_items_expected = n_items;
    return desc;
}

/* Each item once, in order, every byte right, whatever was taken in bunches. */
static void run_resident_files(uint32_t n_workers) {
    kit* const self = kit_open("cpu", n_workers);
    carry_watch watch;
    gpst_stats stats;
    gpst_pipeline_desc desc = carry_desc(self, &watch, N_ITEMS);
    self->decode_ns = 12000; /* more than handing over costs */
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, N_ITEMS);
    assert_int_equal(stats.stages[0].count, N_ITEMS);
    assert_int_equal(stats.stages[1].count, N_ITEMS);
    assert_int_equal(stats.bytes_read, N_ITEMS * KIT_BYTES);
    assert_true(stats.cpu_ns > 0 && stats.stages[0].busy_ns > 0);
    printf("  %u workers: %s, %s; at most %u sources in a row\n", n_workers, stats.settings, stats.paths[0].taken,
           (unsigned)watch.most_sources);
    kit_close(self);
}

/* Files that were just written are resident: a read of one computes, and may be the workers' own. */
static void test_resident_files(void** state) {
    (void)state;
    for (uint32_t n_workers = 1; n_workers <= 4; n_workers++)
        run_resident_files(n_workers);
}

/* Making memory computes, and more than a file's own read may: it says nothing of whether the next ones wait. The plain
   loop, here, makes it in the read of the only item. */
static void test_memory_is_no_part_of_a_read(void** state) {
    enum { LARGE_BYTES = 8 << 20 };
    kit* const self = kit_open("cpu", 1);
    carry_watch watch;
    char path[100];
    gpst_pipeline_desc desc = carry_desc(self, &watch, 1);
    (void)state;
    self->stages[1].func = kit_nothing;
    kit_input_path(self, 0, path, sizeof path);
    FILE* const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fseek(file, LARGE_BYTES - 1, SEEK_SET), 0);
    assert_int_equal(fputc(1, file), 1);
    assert_int_equal(fclose(file), 0);
    const int64_t here_ns = gpsti_pool_growth_here_ns();
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    const int64_t setup_ns = gpsti_pool_growth_here_ns() - here_ns;
    const gpsti_clock* const clock = &self->pipeline->clocks[0];
    assert_int_equal(clock->cpu_samples, 1);
    assert_int_equal(clock->setup_ns, setup_ns);
    assert_true(setup_ns > 0 && setup_ns < clock->cpu_busy_ns);
    const double part = (double)clock->cpu_ns / (double)(clock->cpu_busy_ns - setup_ns);
    printf("  %.3f of the read computed, with its memory %.3f\n", self->pipeline->read_cpu_part,
           (double)clock->cpu_ns / (double)clock->cpu_busy_ns);
    assert_float_equal(self->pipeline->read_cpu_part, part, 1e-6);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    kit_close(self);
}

#if defined(__linux__)
enum { N_FIFOS = 48 };

/* Each waits for its writer. */
static void feed_fifos(void* argument) {
    const kit* const self = (const kit*)argument;
    char path[100];
    uint8_t pixels[KIT_BYTES];
    for (uint64_t n = 0; n < N_FIFOS; n++) {
        kit_input_path(self, n, path, sizeof path);
        for (size_t i = 0; i < KIT_BYTES; i++)
            pixels[i] = kit_pixel(n, i);
        const int file = open(path, O_WRONLY);
        gpsti_sleep_ns(1000000);
        (void)!write(file, pixels, KIT_BYTES);
        close(file);
    }
}

/* The first files are FIFOs, whose reads wait for long; all others were just written. */
static void test_fifos_among_files(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    carry_watch watch;
    gpsti_thread feeder;
    char path[100];
    gpst_pipeline_desc desc = carry_desc(self, &watch, 500);
    for (uint64_t n = 0; n < N_FIFOS; n++) {
        kit_input_path(self, n, path, sizeof path);
        assert_int_equal(unlink(path), 0);
        assert_int_equal(mkfifo(path, 0600), 0);
    }
    desc.mode = GPST_RUN_ENGINE;
    assert_int_equal(gpsti_thread_start(&feeder, feed_fifos, self, "feeder"), GPST_OK);
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    gpsti_thread_join(&feeder);
    assert_int_equal(self->n_ok, 500);
    kit_close(self);
}
#endif

static gpst_result brief_work(void* user_data, gpst_task* task) {
    (void)task;
    (void)gpsti_a64_add(&((carry_watch*)user_data)->n_works, 1);
    return GPST_OK;
}

/* The most items that one worker took before it worked on the first of them. */
static uint64_t most_in_a_bunch(bool known) {
    kit* const self = kit_open("cpu", 1);
    carry_watch watch;
    gpst_pipeline_desc desc = kit_simple(self, N_ITEMS, brief_work);
    memset(&watch, 0, sizeof watch);
    watch.books = self;
    self->stages[0].user_data = &watch;
    desc.source = watched_source;
    desc.source_user_data = &watch;
    desc.n_slots = 40;
    desc.n_items_expected = known ? N_ITEMS : 0;
    assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
    assert_int_equal(self->n_ok, N_ITEMS);
    kit_close(self);
    return watch.most_sources;
}

/* One worker may take several brief items of a list of known length before it works on the first of them, 16 at most;
   of a source of unknown length, which may wait for what the worker still has in hand, never more than one. */
static void test_brief_items_come_in_bunches(void** state) {
    (void)state;
    assert_int_equal(most_in_a_bunch(false), 1);
    assert_in_range(most_in_a_bunch(true), 1, 16); /* as brief as they are here */
}

/* An error is its item's alone, with stage and sentence, also in the midst of a bunch. */
static void test_errors_in_bunches(void** state) {
    (void)state;
    static const kit_place places[] = {KIT_SOURCE, KIT_READ, KIT_DECODE, KIT_SINK};
    static const char* const stages[] = {"source", "read", "work", "sink"};
    for (int p = 0; p < 4; p++) {
        kit* const self = kit_open("cpu", 3);
        carry_watch watch;
        gpst_stats stats;
        gpst_pipeline_desc desc = carry_desc(self, &watch, N_ITEMS);
        self->decode_ns = 12000;
        self->fail_place = places[p];
        self->fail_first = 3;
        self->fail_every = 7;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_PARTIAL);
        assert_int_equal(stats.items_failed, (N_ITEMS - 4) / 7 + 1);
        assert_int_equal(stats.items_ok + stats.items_failed, N_ITEMS);
        if (places[p] != KIT_SINK) {
            assert_string_equal(self->failed_stage, stages[p]);
            assert_int_equal(self->n_failed, stats.items_failed);
            for (uint64_t n = 0; n < N_ITEMS; n++)
                assert_int_equal(GPST_FAILED(self->results[n]), n >= 3 && (n - 3) % 7 == 0);
        }
        kit_close(self);
    }
}

/* A cancel reaches what a worker has in hand: no item is lost, and the source is not asked again. */
static void test_cancel_in_bunches(void** state) {
    (void)state;
    for (uint64_t at = 500; at < 2500; at += 500) {
        kit* const self = kit_open("cpu", 2);
        carry_watch watch;
        gpst_stats stats;
        gpst_pipeline_desc desc = carry_desc(self, &watch, N_ITEMS);
        self->decode_ns = 12000;
        watch.cancel_at = at;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_ERROR_CANCELLED);
        assert_true(self->n_sinks >= at && self->n_sinks < N_ITEMS);
        assert_int_equal(self->n_ok + self->n_cancelled, self->n_sinks);
        kit_close(self);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_is_no_part_of_a_read),
        cmocka_unit_test(test_resident_files),
#if defined(__linux__)
        cmocka_unit_test(test_fifos_among_files),
#endif
        cmocka_unit_test(test_brief_items_come_in_bunches),
        cmocka_unit_test(test_errors_in_bunches),
        cmocka_unit_test(test_cancel_in_bunches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
