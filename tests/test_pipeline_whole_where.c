/* tests/test_pipeline_whole_where.c -- who brings items whole by where their files are: in memory or on a disk, and
   whether reads and writes wait for that, for their turns, or did so by chance. */
#include "pipeline_kit.h"

#include "pipeline_books.h"
#include "pipeline_files.h"

/* Eight workers, in the run that finds out where files go and in those that know it. True: whole, where that is no disk
   and only there. */
static bool whole_where_files_are_in_memory(void) {
    kit* const self = kit_open("cpu", 8);
    const bool in_memory = strncmp(self->dir, "/dev/shm", 8) == 0;
    gpst_stats stats;
    bool right = true;
    for (int run = 0; run < 3; run++) { /* the third knows it of one that did not find it out itself */
        gpst_pipeline_desc desc = files_desc(self, false);
        self->decode_ns = 300000; /* item 0 is over before others begin */
        self->next_source = 0;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        files_check(self, &stats);
        right = right && in_memory == (strstr(stats.settings, "items=whole") != NULL);
    }
    kit_close(self);
    return right;
}

static void test_files_in_memory(void** state) {
    (void)state;
    bool right = false;
    for (test_tries t = {0, 0}; !right && test_again(&t);)
        right = whole_where_files_are_in_memory();
    assert_true(right);
}

/* A file is said to take 1 ms of computing; and beside others' 2 ms, nearly all of it waiting. */
static gpst_result decode_before_a_write(void* user_data, gpst_task* task) {
    gpst_pipeline* const pipeline = task->pipeline;
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    gpsti_clock* const writes = &pipeline->clocks[pipeline->steps[pipeline->n_steps - 2].first_clock];
    const int64_t ms = pipeline->whole ? 2 : 1;
    writes->busy_ns += ms * 1000000;
    writes->cpu_busy_ns += ms * 1000000;
    writes->cpu_ns += pipeline->whole ? 0 : 1000000;
    gpsti_mutex_unlock(mutex);
    return kit_decode(user_data, task);
}

/* True: a run began with whole items, and the next one, which knew that, did at once. */
static bool writes_take_turns(void) {
    kit* const self = kit_open("cpu", 4);
    gpst_stats stats;
    bool whole = true;
    for (int run = 0; run < 2; run++) {
        gpst_pipeline_desc desc = kit_standard(self, 5 * N_FILES);
        desc.mode = GPST_RUN_DEFAULT;
        desc.n_items_expected = self->n_items;
        desc.sink = NULL;
        self->n_outputs = desc.n_outputs = 1;
        self->next_source = 0;
        self->decode_ns = 1000000;
        self->stages[1].func = decode_before_a_write;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.items_ok, self->n_items);
        assert_false(said("in stages again"));
        assert_true(!said("known job") || said("known job: starts with whole items"));
        whole = whole && said("starts with whole items") && said("known job") == (run == 1);
    }
    kit_close(self);
    return whole;
}

/* Writes that wait for each other are none that others could wait for meanwhile. */
static void test_writes_that_take_turns(void** state) {
    (void)state;
    bool whole = false;
    for (test_tries t = {0, 0}; !whole && test_again(&t);)
        whole = writes_take_turns();
    assert_true(whole);
}

/* What the model is made of is said to have waited for so long for each file. */
static void say_reads_waited(gpst_pipeline* pipeline, int64_t ns) {
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    gpsti_clock* const reads = &pipeline->clocks[pipeline->steps[0].first_clock];
    if (!pipeline->tune.modelled) {
        reads->busy_ns = ns * (int64_t)(reads->count + 1);
        pipeline->read_cpu_part = 0.01;
    }
    gpsti_mutex_unlock(mutex);
}

static gpst_result decode_after_a_late_read(void* user_data, gpst_task* task) {
    say_reads_waited(task->pipeline, 5000000);
    return kit_decode(user_data, task);
}

/* 1: a run went in stages for that, with reads that computed, and the next one, which knew the job, did not; -1: it did,
   too; 0: neither. */
static int late_reads_are_forgotten(void) {
    kit* const self = kit_open("cpu", 4);
    gpst_stats stats;
    int forgotten = 0;
    for (int run = 0; run < 2; run++) {
        gpst_pipeline_desc desc = files_desc(self, false);
        self->next_source = 0;
        self->decode_ns = 1000000;
        desc.n_stages = 2;
        self->stages[1].func = decode_after_a_late_read;
        self->n_outputs = desc.n_outputs = 1;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.items_ok, N_FILES);
        const bool whole = strstr(stats.settings, "items=whole") != NULL;
        if (run == 0 && whole)
            break;
        forgotten = !said("known job") ? 0 : whole ? 1 : -1;
    }
    kit_close(self);
    return forgotten;
}

static void test_late_reads(void** state) {
    (void)state;
    uint64_t n_waits = 0;
    if (!gpsti_thread_waits(&n_waits)) /* the system does not say */
        skip();
    int n_more = 0; /* often than not: by chance it happens, too */
    for (test_tries t = {0, 0}; n_more < 2 && test_again(&t);)
        n_more += late_reads_are_forgotten();
    assert_int_equal(n_more, 2);
}

/* ---- reads that queue: a disk that serves one read after the other ------------------------------------------ */

enum { N_QUEUE_RUNS = 20, QUEUE_BYTES = 1 << 17 };

static gpst_result look_at_file(void* user_data, gpst_task* task) {
    kit_check((kit*)user_data, task->item->file_bytes == QUEUE_BYTES);
    return GPST_OK;
}

static void queue_run(kit* self, gpst_stage_func look, gpst_stats* stats) {
    gpst_pipeline_desc desc = files_desc(self, false);
    char path[100];
    for (uint64_t n = 0; n < N_FILES; n++) {
        kit_input_path(self, n, path, sizeof path);
        assert_int_equal(truncate(path, QUEUE_BYTES), 0);
    }
    self->next_source = 0;
    self->stages[1] = kit_stage(self, GPST_STAGE_HOST, look, "look");
    desc.n_stages = 2;
    self->n_outputs = desc.n_outputs = 1;
    assert_int_equal(run_tuned(self, &desc, stats), GPST_OK);
    assert_int_equal(stats->items_ok, N_FILES);
}

/* Each waits for those before it, the last one for all. Runs that know the job find no others in that. */
static void test_reads_that_queue(void** state) {
    (void)state;
    kit* const self = kit_open("sim:read_gbps=0.4", 4);
    gpst_stats stats;
    uint32_t n_known = 0, n_others = 0;
    for (int run = 0; run < N_QUEUE_RUNS; run++) {
        queue_run(self, look_at_file, &stats);
        n_known += said("known job") ? 1 : 0;
        n_others += said("other items") ? 1 : 0;
    }
    kit_close(self);
    printf("  of %d runs %u knew the job, %u found others\n", N_QUEUE_RUNS, (unsigned)n_known, (unsigned)n_others);
    assert_true(n_known >= N_QUEUE_RUNS / 2);
    assert_true(n_others <= N_QUEUE_RUNS / 10); /* a busy machine */
}

static gpst_result look_after_a_late_read(void* user_data, gpst_task* task) {
    say_reads_waited(task->pipeline, 1000000);
    return look_at_file(user_data, task);
}

/* True: the first run thought 64 reads at once to be good; of those that know how long they wait for each other the
   third has 16. */
static bool fewer_reads_the_next_time(void) {
    kit* const self = kit_open("sim:read_gbps=0.4", 4);
    gpst_stats stats;
    bool fewer = true;
    for (int run = 0; run < 4 && fewer; run++) {
        queue_run(self, look_after_a_late_read, &stats);
        fewer = run == 0 ? strstr(stats.settings, " reads=64 ") != NULL : said("known job: starts with workers=");
    }
    fewer = fewer && said(" reads=16 ");
    kit_close(self);
    return fewer;
}

static void test_reads_that_are_too_many(void** state) {
    (void)state;
    bool fewer = false;
    for (test_tries t = {0, 0}; !fewer && test_again(&t);)
        fewer = fewer_reads_the_next_time();
    assert_true(fewer);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_files_in_memory),
                                       cmocka_unit_test(test_writes_that_take_turns), cmocka_unit_test(test_late_reads),
                                       cmocka_unit_test(test_reads_that_queue),
                                       cmocka_unit_test(test_reads_that_are_too_many)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
