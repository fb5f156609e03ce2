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

/* Case i. True: it began with whole items. */
static bool files_run(uint32_t i) {
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
    return began_whole();
}

static void test_files_are_whole_or_absent(void** state) {
    (void)state;
    for (uint32_t i = 0; i < 19; i++) {
        bool whole = false;
        for (test_tries t = {0, 0}; !whole && test_again(&t);) /* the clocks of a busy machine may say otherwise */
            whole = files_run(i);
        assert_true(whole);
    }
}

/* On two workers, most of an item is its one output's file. */
static bool run_writing(const char* backend) {
    kit* const self = kit_open(backend, 2);
    gpst_stats stats;
    gpst_pipeline_desc desc = files_desc(self, false);
    self->decode_ns = 0;
    self->n_outputs = desc.n_outputs = 1;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    files_check(self, &stats);
    kit_close(self);
    return began_whole();
}

/* No call was sampled: what the writer says. */
static bool writer_computes(const char* backend) {
    kit* const self = kit_open(backend, 1);
    gpst_pipeline_desc desc = kit_standard(self, 20);
    gpst_pipeline* pipeline = NULL;
    gpsti_tuner_costs costs;
    desc.n_slots = desc.n_writes = 1;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    assert_int_equal(pipeline->clocks[pipeline->steps[pipeline->n_steps - 2].first_clock].cpu_samples, 0);
    gpsti_tune_costs(pipeline, &costs);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
    return costs.writes_compute;
}

/* Into the page cache a file is work for who brings the item; for a disk others wait. */
static void test_writing_is_work_or_waiting(void** state) {
    (void)state;
    bool whole = false;
    for (test_tries t = {0, 0}; !whole && test_again(&t);)
        whole = run_writing("cpu");
    assert_true(whole);
    assert_false(run_writing("sim:write_us=2000"));
    uint64_t n_waits = 0;
    bool computes = !gpsti_thread_waits(&n_waits);
    for (test_tries t = {0, 0}; !computes && test_again(&t);)
        computes = writer_computes("cpu");
    assert_true(computes);
    assert_false(writer_computes("sim:write_us=2000"));
}

static struct {
    uint32_t wait; /* what is thought of files when the next one is made */
    bool tells;    /* the writer: under the scheduler's lock */
    gpsti_a32 n_told;
} frees;

static void freed_by_a_thread(void* user_data, int64_t start_ns, int64_t end_ns, bool waited) {
    (void)user_data;
    (void)start_ns;
    (void)end_ns;
    (void)waited;
    (void)gpsti_a32_add(&frees.n_told, 1);
}

static gpst_result decode_before_a_free(void* user_data, gpst_task* task) {
    gpst_context* const context = task->pipeline->context;
    gpsti_mutex_lock(&context->scheduler->mutex);
    if (task->pipeline->writer && !frees.tells)
        gpsti_writer_tell_closed(task->pipeline->writer, freed_by_a_thread, NULL);
    frees.tells = task->pipeline->writer != NULL;
    gpsti_mutex_unlock(&context->scheduler->mutex);
    gpsti_a32_store(&context->frees_wait, frees.wait);
    return kit_decode(user_data, task);
}

/* How many of N_FILES files that replace others leave it to threads to free what these had. UINT32_MAX: not whole. */
static uint32_t n_freed_by_threads(uint32_t wait) {
    kit* const self = kit_open("cpu", 2);
    gpst_stats stats;
    for (int run = 0; run < 2; run++) {
        gpst_pipeline_desc desc = files_desc(self, false);
        self->decode_ns = 300000; /* so that few commit between that and their own item's commit */
        self->n_outputs = desc.n_outputs = 1;
        self->next_source = 0;
        self->stages[1].func = decode_before_a_free;
        memset(&frees, 0, sizeof frees);
        frees.wait = wait;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    }
    files_check(self, &stats);
    kit_close(self);
    return began_whole() || said("starts with whole items") ? gpsti_a32_load(&frees.n_told) : UINT32_MAX;
}

/* Who brings whole items frees what they replace, unless that waits. */
static void test_who_frees(void** state) {
    (void)state;
    bool here = false, threads = false;
    for (test_tries t = {0, 0}; !(here && threads) && test_again(&t);) {
        const uint32_t n_here = n_freed_by_threads(0), n_threads = n_freed_by_threads(1);
        printf("    %u and %u of %u by threads\n", n_here, n_threads, N_FILES);
        here = here || n_here < N_FILES / 2;
        threads = threads || (n_threads > N_FILES / 2 && n_threads <= N_FILES);
    }
    assert_true(here && threads);
}

/* Ends are said to be long, so that each of them is sampled. */
static gpst_result decode_before_a_long_end(void* user_data, gpst_task* task) {
    gpsti_mutex* const mutex = &task->pipeline->context->scheduler->mutex;
    gpsti_clock* const ends = &task->pipeline->finish_clock;
    gpsti_mutex_lock(mutex);
    ends->busy_ns = 2000000 * (int64_t)(ends->count + 1);
    gpsti_mutex_unlock(mutex);
    return kit_decode(user_data, task);
}

/* Of a run of whole items. False: it was not one, or was interrupted so often that ends had more CPU time than time. */
static bool ends_have_cpu_time(void) {
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = files_desc(self, false);
    gpst_pipeline* pipeline = NULL;
    self->stages[1].func = decode_before_a_long_end;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    const bool whole = pipeline->whole;
    const gpsti_clock ends = pipeline->finish_clock;
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
    if (!whole)
        return false;
    assert_in_range(ends.cpu_samples, N_FILES / 2, N_FILES); /* the first ones end in a plain loop, which has its own */
    assert_true(ends.cpu_ns >= 1000 * (int64_t)ends.cpu_samples);
    return ends.cpu_ns <= ends.cpu_busy_ns + 5000 * (int64_t)ends.cpu_samples;
}

/* Files get their names and free what they replace on the cores that bring the items. */
static void test_cpu_time_of_ends(void** state) {
    (void)state;
    bool have = false;
    for (test_tries t = {0, 0}; !have && test_again(&t);)
        have = ends_have_cpu_time();
    assert_true(have);
}

/* A worker waits for its own reads, where that is little of an item's time; and nobody reads ahead for it. */
static void test_reads_that_wait(void** state) {
    (void)state;
    bool whole = false;
    for (test_tries t = {0, 0}; !whole && test_again(&t);) {
        kit* const self = kit_open("sim:read_us=100", 4);
        gpst_stats stats;
        gpst_pipeline_desc desc = files_desc(self, false);
        self->n_outputs = desc.n_outputs = 1;
        desc.n_stages = 2;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
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

/* A disk that serves one after the other keeps as many as read that many times as long: that is no reason to give whole
   items up. */
static void test_reads_that_wait_for_each_other(void** state) {
    (void)state;
    bool whole = false;
    for (test_tries t = {0, 0}; !whole && test_again(&t);) {
        kit* const self = kit_open("sim:read_gbps=0.0002", 16); /* 0.3 ms a file */
        gpst_stats stats;
        gpst_pipeline_desc desc = kit_standard(self, 1000);
        desc.mode = GPST_RUN_DEFAULT;
        desc.n_items_expected = 1000;
        desc.sink = NULL;
        desc.n_stages = 2;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.items_ok, 1000);
        whole = strstr(stats.settings, "items=whole") != NULL && stats.stages[0].busy_ns / 1000 > 3000000;
        kit_close(self);
    }
    assert_true(whole);
}

#define NEAR_FIRST "sim:read_us=5000,jitter_pct=99,seed=365" /* the first read takes 0.1 ms, the others 5 ms, or so */

static bool begins_with(const char* text, const char* with) { return strncmp(text, with, strlen(with)) == 0; }

static int64_t handed_on_ns; /* how long a read waits, as the next run of the job is told; 0 = it is not */

/* The item after which reads were seen to wait, whichever way the items began (on a slow machine that is another one at
   times); 0 = they never were. reads: given; 0 = they are the tuner's. */
static uint64_t when_waits_are_found(const char* backend, int64_t decode_ns, uint32_t reads) {
    kit* const self = kit_open(backend, 8);
    gpst_stats stats;
    uint64_t item = 0;
    gpst_pipeline_desc desc = kit_standard(self, 200);
    desc.mode = GPST_RUN_DEFAULT;
    desc.n_items_expected = 200;
    desc.sink = NULL;
    desc.n_stages = 2;
    desc.settings.value[GPST_KNOB_READS] = reads;
    self->decode_ns = decode_ns;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(stats.items_ok, 200);
    const gpsti_recall* const recall = &self->context->recall;
    handed_on_ns = recall->n > 0 ? recall->known[0].costs.service_ns[GPST_RESOURCE_DISK_IN] : 0;
    for (uint32_t i = 0; item == 0 && i < report.n_decisions && i < GPST_MAX_DECISIONS; i++) {
        const char* const reason = report.decisions[i].reason;
        if (begins_with(reason, "reads wait, ") || begins_with(reason, "items in stages again, "))
            item = report.decisions[i].item;
    }
    kit_close(self);
    return item;
}

/* With how many reads the run began. */
static uint32_t n_reads_at_first(void) {
    const char* const at = strstr(report.decisions[0].reason, " reads=");
    return report.n_decisions > 0 && at ? (uint32_t)strtoul(at + 7, NULL, 10) : 0;
}

/* As soon as some have come: before a window of whole items, or trials, could have told. But what was given stays. On a
   machine so slow that the first read waits like the others there is nothing left to find. */
static void test_reads_that_wait_after_the_first(void** state) {
    (void)state;
    static const int64_t decodes_ns[] = {300000, 3000000};
    for (size_t i = 0; i < sizeof decodes_ns / sizeof decodes_ns[0]; i++) {
        bool told = false;
        for (test_tries t = {0, 0}; !told && test_again(&t);) {
            const uint64_t item = when_waits_are_found(NEAR_FIRST, decodes_ns[i], 0);
            const uint32_t n_reads = report.settings.value[GPST_KNOB_READS], n_first = n_reads_at_first();
            printf("    after item %u: %u reads, %u at first\n", (unsigned)item, n_reads, n_first);
            told = n_reads >= 16 && (n_first >= 16 || (item > 0 && item <= 40));
        }
        assert_true(told);
    }
    assert_int_equal(when_waits_are_found(NEAR_FIRST, decodes_ns[0], 2), 0);
    assert_int_equal(report.settings.value[GPST_KNOB_READS], 2);
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

/* To the next run of the job, what was found, and not what the first read had said: 0.1 ms. */
static void test_what_reads_wait_is_handed_on(void** state) {
    (void)state;
    bool handed_on = false;
    for (test_tries t = {0, 0}; !handed_on && test_again(&t);)
        handed_on = when_waits_are_found(NEAR_FIRST, 300000, 0) > 0 && handed_on_ns > 2000000;
    assert_true(handed_on);
}

/* Memory of 0.6 ms: items of 0.5 ms are worth sqrt(200 * 0.5 / 0.6) = 13 slots, those of 6 ms 44. */
static void test_slots_are_worth_more_to_reads_that_wait(void** state) {
    (void)state;
    uint32_t n_slots = 0;
    for (test_tries t = {0, 0}; n_slots < 25 && test_again(&t);) {
        (void)when_waits_are_found(NEAR_FIRST ",pin_gbps=0.02", 300000, 0);
        n_slots = report.settings.value[GPST_KNOB_SLOTS];
    }
    print_decisions(); /* on some machines the first read, with its memory, is so long that it is seen to wait, too */
    assert_in_range(n_slots, 25, 100);
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
    for (test_tries t = {0, 0}; !whole && test_again(&t);) {
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
        test_memory_refuse(&self->memory, n);
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
        refused = test_memory_refused(&self->memory);
        test_memory_relent(&self->memory);
        gpst_context_trim(self->context); /* and the next one finds nothing */
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
        cmocka_unit_test(test_files_are_whole_or_absent),
        cmocka_unit_test(test_writing_is_work_or_waiting),
        cmocka_unit_test(test_who_frees),
        cmocka_unit_test(test_cpu_time_of_ends),
        cmocka_unit_test(test_reads_that_wait),
        cmocka_unit_test(test_reads_that_wait_for_each_other),
        cmocka_unit_test(test_reads_that_wait_after_the_first),
#if defined(__linux__)
        cmocka_unit_test(test_threads_that_read),
        cmocka_unit_test(test_threads_that_write),
#endif
        cmocka_unit_test(test_what_reads_wait_is_handed_on),
        cmocka_unit_test(test_slots_are_worth_more_to_reads_that_wait),
        cmocka_unit_test(test_files_when_cancelled),
        cmocka_unit_test(test_a_fallback_is_of_one_item),
        cmocka_unit_test(test_a_lost_device),
        cmocka_unit_test(test_max_item_bytes_is_an_item_s),
        cmocka_unit_test(test_every_allocation_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
