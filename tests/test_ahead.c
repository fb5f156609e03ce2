/* tests/test_ahead.c -- which files are brought ahead of their reads, and when none is: piece by piece on one thread,
   then in the engine on a modelled disk, where counters say what a clock would. */
#define KIT_NAMES_ITS_BACKENDS
#include "pipeline_kit.h"
#include "test_files.h"
#if !defined(GPST_TEST_AMALGAM)
#include "../core/files/ahead_internal.h"
#include "../core/base/os_direct_internal.h"
#endif

#define MIB ((size_t)1 << 20)
#define SLOW_DISK "sim:read_us=600,read_gbps=50"

enum { TEST_N_FILES = 40, TEST_MOST_PATHS = 2000 };

/* ---- a list and what it is asked through ------------------------------------------------------- */

typedef struct subject {
    gpst_context* context;
    gpsti_ahead* ahead;
    char names[TEST_N_FILES][TEST_PATH_BYTES];
    const char* paths[TEST_MOST_PATHS];
} subject;

static subject the_subject;

/* n_paths: files over and over, each as many bytes as it is told. */
static subject* subject_open(const char* backend, size_t bytes, uint64_t n_paths, bool in_order) {
    subject* const self = &the_subject;
    gpst_context_desc desc = GPST_ZERO;
    memset(self, 0, sizeof *self);
    test_directory_make();
    unsigned char* const data = test_bytes(bytes, 3);
    for (size_t k = 0; k < TEST_N_FILES; k++) {
        char name[32];
        snprintf(name, sizeof name, "f%02u", (unsigned)k);
        test_path(self->names[k], name);
        if (k < n_paths)
            test_file_make(self->names[k], data, bytes);
    }
    free(data);
    for (uint64_t k = 0; k < n_paths; k++)
        self->paths[k] = self->names[k % TEST_N_FILES];
    desc.backend = backend;
    desc.n_workers = 1;
    desc.max_host_bytes = 4096 * (uint64_t)MIB; /* whatever else runs here */
    assert_int_equal(gpst_context_create(&desc, &self->context), GPST_OK);
    assert_int_equal(gpsti_ahead_create(self->context, self->paths, n_paths, in_order, &self->ahead), GPST_OK);
    return self;
}

static void subject_close(subject* self) {
    gpsti_ahead_destroy(self->ahead);
    gpst_context_destroy(self->context);
    test_directory_remove();
}

static void subject_run(subject* self) {
    while (gpsti_ahead_run(self->ahead)) {}
}

static gpst_read_ahead subject_query(subject* self) {
    gpst_read_ahead info;
    memset(&info, 0xA5, sizeof info);
    gpsti_ahead_query(self->ahead, &info);
    return info;
}

static bool subject_note(subject* self, uint64_t index, uint64_t n_asked) {
    return gpsti_ahead_note(self->ahead, self->paths[index], n_asked);
}

/* ---- in order --------------------------------------------------------------------------------------- */

static void a_list_is_brought_in_its_order(void** state) {
    subject* const self = subject_open(SLOW_DISK, 1000, TEST_N_FILES, true);
    (void)state;
    assert_false(gpsti_ahead_run(self->ahead)); /* nothing was asked for yet */
    for (uint64_t k = 0; k < TEST_N_FILES; k++) {
        assert_int_equal(subject_note(self, k, k), k + 2 < TEST_N_FILES); /* something new is wanted */
        assert_int_equal(gpsti_ahead_take(self->ahead, self->paths[k]), k == 0 ? 0 : 1000);
        subject_run(self);
    }
    const gpst_read_ahead info = subject_query(self);
    assert_int_equal(info.fetched, TEST_N_FILES - 1);
    assert_int_equal(info.used, TEST_N_FILES - 1);
    assert_int_equal(info.late + info.wasted + info.failed + info.resident, 0);
    assert_int_equal(info.bytes, 1000 * (TEST_N_FILES - 1));
    assert_int_equal(info.most_window, 2);
    assert_string_equal(info.state, "schedule");
    subject_close(self);
}

/* What is read before it is whole was late, and is left to its read; then more files are begun ahead. */
static void late_files_widen_the_window(void** state) {
    subject* const self = subject_open(SLOW_DISK, 5 * MIB, TEST_N_FILES, true);
    uint32_t window = 2;
    (void)state;
    assert_true(subject_note(self, 0, 0));
    for (uint64_t k = 1; k < 8; k++) {
        assert_true(gpsti_ahead_run(self->ahead)); /* looks */
        assert_true(gpsti_ahead_run(self->ahead)); /* one piece of three */
        assert_int_equal(gpsti_ahead_take(self->ahead, self->paths[k]), 2 * MIB);
        window = window < 64 ? window * 2 : 64;
        assert_int_equal(subject_query(self).window, window);
        (void)subject_note(self, k, k);
    }
    assert_int_equal(subject_query(self).late, 7);
    assert_int_equal(subject_query(self).used, 0);
    subject_run(self); /* as many as the window says, as long as the list goes on */
    assert_int_equal(subject_query(self).fetched, TEST_N_FILES - 1);
    subject_close(self);
}

static void files_in_time_narrow_it(void** state) {
    subject* const self = subject_open(SLOW_DISK, 3 * MIB, 200, true);
    (void)state;
    (void)subject_note(self, 0, 0);
    for (uint64_t k = 1; k <= 2; k++) {
        assert_true(gpsti_ahead_run(self->ahead) && gpsti_ahead_run(self->ahead));
        (void)gpsti_ahead_take(self->ahead, self->paths[k]);
        (void)subject_note(self, k, k);
    }
    assert_int_equal(subject_query(self).window, 8);
    for (uint64_t k = 3; k < 200 && subject_query(self).window > 2; k++) {
        subject_run(self);
        (void)gpsti_ahead_take(self->ahead, self->paths[k]);
        (void)subject_note(self, k, k);
    }
    assert_true(subject_query(self).window < 6 && subject_query(self).most_window == 8);
    assert_int_equal(subject_query(self).wasted, 0); /* what was ahead by the wider one is used all the same */
    subject_close(self);
}

static void what_is_skipped_is_given_up(void** state) {
    subject* const self = subject_open(SLOW_DISK, 1000, TEST_N_FILES, true);
    (void)state;
    (void)subject_note(self, 0, 0);
    subject_run(self);
    (void)subject_note(self, 10, 10);
    assert_int_equal(subject_query(self).wasted, 2);
    subject_run(self);
    assert_int_equal(gpsti_ahead_take(self->ahead, self->paths[11]), 1000);
    assert_false(gpsti_ahead_note(self->ahead, self->paths[5], 12)); /* the list says otherwise: no guess */
    assert_false(gpsti_ahead_note(self->ahead, "elsewhere", 13));
    subject_close(self);
}

/* ---- when it is not worth it ---------------------------------------------------------------------------- */

/* Files that are in memory are looked at ever more rarely. */
static void resident_files_are_left_alone(void** state) {
    subject* const self = subject_open("cpu", 1000, TEST_MOST_PATHS, true);
    uint32_t n_work = 0;
    (void)state;
    for (uint64_t k = 0; k < TEST_MOST_PATHS; k++) {
        n_work += subject_note(self, k, k) ? 1 : 0;
        subject_run(self);
        assert_int_equal(gpsti_ahead_take(self->ahead, self->paths[k]), 0);
    }
    const gpst_read_ahead info = subject_query(self);
    assert_string_equal(info.state, "off: the files are resident");
    assert_int_equal(info.fetched + info.used + info.late + info.wasted + info.bytes, 0);
    assert_true(info.resident >= 4 && info.resident < 24);
    assert_true(n_work < 24);
    subject_close(self);
}

/* On a disk that takes no time for it, foresight is only work. */
static void files_that_come_quickly_are_left_alone(void** state) {
    subject* const self = subject_open("sim:read_gbps=50", 1000, TEST_MOST_PATHS, true);
    (void)state;
    for (uint64_t k = 0; k < TEST_MOST_PATHS; k++) {
        (void)subject_note(self, k, k);
        subject_run(self);
        (void)gpsti_ahead_take(self->ahead, self->paths[k]);
    }
    const gpst_read_ahead info = subject_query(self);
    assert_string_equal(info.state, "off: files come quickly");
    assert_true(info.fetched >= 4 && info.fetched < 200 && info.resident == 0);
    subject_close(self);
}

static void it_is_off_while_reading_is_not_what_waits(void** state) {
    subject* const self = subject_open(SLOW_DISK, 1000, TEST_N_FILES, true);
    (void)state;
    assert_true(subject_note(self, 0, 0));
    for (int k = 0; k < 16; k++)
        gpsti_ahead_weigh(self->ahead, k < 3);
    assert_string_equal(subject_query(self).state, "off: reading is not what waits");
    assert_false(subject_note(self, 1, 1));
    for (int k = 0; k < 16; k++)
        gpsti_ahead_weigh(self->ahead, k < 4);
    assert_string_equal(subject_query(self).state, "schedule");
    assert_true(subject_note(self, 2, 2));
    gpsti_ahead_stop(self->ahead, "a reason");
    assert_string_equal(subject_query(self).state, "off: a reason");
    assert_false(subject_note(self, 3, 3));
    assert_false(gpsti_ahead_run(self->ahead) && subject_query(self).fetched > 3);
    subject_close(self);
}

static void the_budget_is_kept(void** state) {
    subject* const self = subject_open(SLOW_DISK, 3 * MIB, TEST_N_FILES, true);
    (void)state;
    self->context->info.max_host_bytes = 16 * MIB; /* a quarter of it: one file */
    gpsti_ahead_destroy(self->ahead);
    assert_int_equal(gpsti_ahead_create(self->context, self->paths, TEST_N_FILES, true, &self->ahead), GPST_OK);
    (void)subject_note(self, 0, 0);
    subject_run(self);
    assert_int_equal(subject_query(self).fetched, 1);
    assert_int_equal(gpsti_ahead_take(self->ahead, self->paths[2]), 0);
    assert_int_equal(gpsti_ahead_take(self->ahead, self->paths[1]), 3 * MIB);
    gpsti_a64_store(&self->context->host_bytes, 14 * MIB); /* items have the rest */
    (void)subject_note(self, 2, 2);
    subject_run(self);
    assert_int_equal(subject_query(self).fetched, 1);
    gpsti_a64_store(&self->context->host_bytes, 0);
    (void)subject_note(self, 4, 4);
    subject_run(self);
    assert_int_equal(subject_query(self).fetched, 2);
    subject_close(self);
}

static gpsti_a32 pipe_opened;

static void pipe_writer(void* argument) {
    const int descriptor = open((const char*)argument, O_WRONLY); /* waits for a reader */
    gpsti_a32_store(&pipe_opened, 1);
    (void)close(descriptor);
}

/* A pipe's writer would notice; what is missing is its item's to tell. */
static void what_is_no_file_is_not_touched(void** state) {
    subject* const self = subject_open("cpu", 1000, 6, true);
    (void)state;
    assert_int_equal(unlink(self->names[1]), 0);
    assert_int_equal(unlink(self->names[2]), 0);
    assert_int_equal(mkfifo(self->names[2], 0600), 0);
    assert_int_equal(unlink(self->names[3]), 0);
    assert_int_equal(mkdir(self->names[3], 0700), 0);
    gpsti_thread writer;
    gpsti_a32_store(&pipe_opened, 0);
    assert_int_equal(gpsti_thread_start(&writer, pipe_writer, self->names[2], "writer"), GPST_OK);
    gpsti_sleep_ns(20000000);
    for (uint64_t k = 0; k < 3; k++) {
        (void)gpsti_fail(GPST_OK, "a reason of before");
        (void)subject_note(self, k, k);
        subject_run(self);
        assert_string_equal(gpst_last_reason(), "a reason of before");
    }
    assert_int_equal(subject_query(self).failed, 1);
    assert_int_equal(subject_query(self).fetched, 0);
    gpsti_sleep_ns(20000000);
    assert_int_equal(gpsti_a32_load(&pipe_opened), 0);
    const int reader = open(self->names[2], O_RDONLY);
    gpsti_thread_join(&writer);
    (void)close(reader);
    subject_close(self);
}

/* ---- foreseen ------------------------------------------------------------------------------------------- */

static uint64_t foresee(const char* backend, const uint64_t* order, uint32_t n, gpst_read_ahead* out) {
    subject* const self = subject_open(backend, 1000, TEST_N_FILES, false);
    uint64_t n_brought = 0;
    for (uint32_t k = 0; k < n; k++) {
        n_brought += gpsti_ahead_take(self->ahead, self->paths[order[k]]) > 0;
        (void)subject_note(self, order[k], k);
        subject_run(self);
    }
    *out = subject_query(self);
    subject_close(self);
    return n_brought;
}

static void what_comes_next_is_foreseen(void** state) {
    uint64_t order[200];
    gpst_read_ahead info;
    uint64_t seed = test_seed(11);
    (void)state;
    for (uint64_t k = 0; k < TEST_N_FILES; k++)
        order[k] = k;
    assert_int_equal(foresee(SLOW_DISK, order, TEST_N_FILES, &info), TEST_N_FILES - 4);
    assert_string_equal(info.state, "sequence");
    assert_int_equal(info.used, TEST_N_FILES - 4);
    for (uint64_t k = 0; k < 13; k++)
        order[k] = TEST_N_FILES - 1 - 3 * k;
    assert_int_equal(foresee(SLOW_DISK, order, 13, &info), 9);
    assert_string_equal(info.state, "stride -3");
    for (uint64_t k = 0; k < 200; k++)
        order[k] = test_random(&seed) % TEST_N_FILES;
    (void)foresee(SLOW_DISK, order, 200, &info);
    assert_true(info.fetched < 40);
    for (uint64_t k = 0; k < 20; k++) /* a sequence, then its middle is left: what was brought was for nothing */
        order[k] = k < 10 ? k : k == 10 ? 35 : 5;
    (void)foresee(SLOW_DISK, order, 12, &info);
    assert_int_equal(info.wasted, 2);
}

/* Items that are asked for and dropped never take their files: others get the room. */
static void dropped_items_hold_nothing_for_ever(void** state) {
    subject* const self = subject_open(SLOW_DISK, 10, TEST_N_FILES, true);
    (void)state;
    gpsti_ahead_destroy(self->ahead);
    static char many[TEST_MOST_PATHS][TEST_PATH_BYTES / 4];
    for (size_t k = 0; k < 1000; k++) {
        snprintf(many[k], sizeof many[k], "%.200s/g%04u", test_directory, (unsigned)k);
        test_file_make(many[k], "0123456789", 10);
        self->paths[k] = many[k];
    }
    assert_int_equal(gpsti_ahead_create(self->context, self->paths, 1000, true, &self->ahead), GPST_OK);
    for (uint64_t k = 0; k < 1000; k++) {
        (void)subject_note(self, k, k);
        subject_run(self);
    }
    assert_int_equal(subject_query(self).fetched, 999);
    subject_close(self);
}

/* ---- real files --------------------------------------------------------------------------------------------- */

static uint32_t resident_pct(const char* path, bool forget) {
    gpsti_file file;
    uint32_t pct = 0;
    assert_int_equal(gpsti_file_open_read(path, &file), GPST_OK);
    if (forget) {
        assert_int_equal(gpsti_file_sync(&file, path), GPST_OK);
        gpsti_file_forget(&file);
    }
    pct = gpsti_file_resident_pct(&file, 0, 5 * MIB);
    assert_int_equal(gpsti_file_close(&file, path), GPST_OK);
    return pct;
}

/* The system may have taken a few pages back by now, if it is short of memory. */
static bool is_warm(const char* path) { return resident_pct(path, false) >= 90; }

static void cold_files_are_warm_when_they_are_read(void** state) {
    subject* const self = subject_open("cpu", 5 * MIB, 6, true);
    (void)state;
    for (size_t k = 0; k < 6; k++)
        if (resident_pct(self->names[k], true) > 0) {
            subject_close(self);
            print_message("files cannot be dropped from memory here\n");
            skip();
        }
    (void)subject_note(self, 0, 0);
    subject_run(self);
    const gpst_read_ahead info = subject_query(self);
    if (info.fetched != 2)
        fail_msg("fetched %u, resident %u, failed %u: %s", (unsigned)info.fetched, (unsigned)info.resident,
                 (unsigned)info.failed, info.state);
    assert_true(is_warm(self->names[1]));
    assert_true(is_warm(self->names[2]));
    assert_int_equal(resident_pct(self->names[3], false), 0);
    assert_int_equal(gpsti_ahead_take(self->ahead, self->names[1]), 5 * MIB);
    gpsti_ahead_pause(self->ahead, true); /* as if they had never come; what is being read stays */
    assert_true(is_warm(self->names[1]));
    assert_int_equal(resident_pct(self->names[2], false), 0);
    assert_int_equal(subject_query(self).wasted, 1);
    (void)subject_note(self, 1, 1);
    subject_run(self);
    assert_true(is_warm(self->names[2]));
    subject_close(self);
}

/* ---- in the engine ------------------------------------------------------------------------------------------ */

static char kit_paths[400][100];
static const char* kit_list[400];

static gpst_pipeline_desc listed(kit* self, uint64_t n_items) {
    gpst_pipeline_desc desc = kit_standard(self, n_items);
    for (uint64_t k = 0; k < n_items; k++) {
        kit_input_path(self, k, kit_paths[k], sizeof kit_paths[k]);
        kit_list[k] = kit_paths[k];
    }
    desc.paths = kit_list;
    desc.n_paths = n_items;
    return desc;
}

static const gpst_path* prefetch_path(const gpst_stats* stats) {
    for (uint32_t k = 0; k < stats->n_paths; k++)
        if (!strcmp(stats->paths[k].what, "prefetch"))
            return &stats->paths[k];
    fail_msg("no path \"prefetch\"");
    return NULL;
}

static void the_engine_reads_ahead(void** state) {
    kit* const self = kit_open("sim:read_us=1000", 2);
    gpst_pipeline_desc desc = listed(self, 60);
    gpst_stats stats;
    (void)state;
    desc.n_slots = 1; /* one item at a time: without foresight the disk would rest while it is decoded */
    desc.n_reads = 2;
    self->decode_ns = 3000000;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_string_equal(stats.read_ahead.state, "schedule");
    assert_in_range(stats.read_ahead.fetched, 1, 59); /* all of them, where the reader is not sooner there */
    assert_int_equal(stats.read_ahead.used + stats.read_ahead.late, stats.read_ahead.fetched);
    assert_non_null(strstr(prefetch_path(&stats)->taken, "files ahead"));
    assert_string_equal(prefetch_path(&stats)->why_not, "");
    assert_true(stats.bytes_read == 60 * KIT_BYTES); /* what was brought ahead is not counted twice */
    assert_int_equal(stats.stages[0].count, 60);
    kit_close(self);
}

/* Items queue for the workers: what the disk would do for later ones is not what anybody waits for. */
static void a_busy_engine_reads_nothing_ahead(void** state) {
    kit* const self = kit_open("sim:read_us=1000", 2);
    gpst_pipeline_desc desc = listed(self, 100);
    gpst_stats stats;
    (void)state;
    desc.n_slots = 12;
    desc.n_reads = 4;
    self->decode_ns = 4000000;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_string_equal(stats.read_ahead.state, "off: reading is not what waits");
    assert_true(stats.read_ahead.fetched < 50);
    kit_close(self);
}

static void it_says_why_not(void** state) {
    kit* const self = kit_open("sim:read_us=1000", 2);
    gpst_pipeline_desc desc = listed(self, 20);
    gpst_stats stats;
    (void)state;
    desc.mode = GPST_RUN_PLAIN_SERIAL;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_string_equal(prefetch_path(&stats)->taken, "none");
    assert_string_equal(prefetch_path(&stats)->why_not, "ahead: not in a plain loop");
    desc.mode = GPST_RUN_ENGINE;
    desc.no_prefetch = true;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_string_equal(prefetch_path(&stats)->why_not, "ahead: switched off");
    assert_int_equal(stats.read_ahead.fetched, 0);
    desc.no_prefetch = false;
    assert_int_equal(setenv("GPUSTAGE_IO", "direct", 1), 0);
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_int_equal(unsetenv("GPUSTAGE_IO"), 0);
    assert_string_equal(prefetch_path(&stats)->why_not, "ahead: reads go past the page cache");
    desc.n_paths = 0;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_string_equal(prefetch_path(&stats)->why_not, "ahead: no list of files");
    desc.n_paths = 1;
    desc.paths = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create: n_paths=1", "paths must not be NULL");
    kit_list[3] = NULL;
    desc.paths = kit_list;
    desc.n_paths = 20;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create: paths[3]=NULL", "required");
    self->pipeline = NULL;
    kit_close(self);
}

/* A missing file is its own item's trouble; a list that lies costs nothing but its foresight. */
static void errors_stay_with_their_items(void** state) {
    kit* const self = kit_open("sim:read_us=1000", 2);
    gpst_pipeline_desc desc = listed(self, 40);
    gpst_stats stats;
    (void)state;
    desc.n_slots = 2;
    for (uint64_t k = 0; k < 40; k += 5)
        assert_int_equal(unlink(kit_paths[k]), 0);
    assert_int_equal(kit_run(self, &desc, &stats), GPST_PARTIAL);
    assert_int_equal(stats.items_failed, 8);
    assert_string_equal(self->failed_stage, "read");
    for (uint64_t k = 0; k < 40; k++)
        assert_int_equal(self->results[k], k % 5 == 0 ? GPST_ERROR_NOT_FOUND : GPST_OK);
    for (uint64_t k = 0; k < 40; k++)
        kit_list[k] = kit_paths[39 - k];
    assert_int_equal(kit_run(self, &desc, &stats), GPST_PARTIAL);
    assert_int_equal(stats.items_failed, 8);
    kit_close(self);
}

static gpst_result take_all(gpst_pipeline* pipeline, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        const gpst_item* item = NULL;
        const gpst_result result = gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item);
        if (GPST_FAILED(result) || GPST_FAILED(item->result))
            return GPST_FAILED(result) ? result : item->result;
        gpst_pipeline_release(pipeline, item);
    }
    return GPST_OK;
}

/* One after the other, as somebody would who leafs through pictures: the next ones come meanwhile. */
static void pushed_items_are_foreseen(void** state) {
    kit* const self = kit_open("sim:read_us=1000", 2);
    gpst_pipeline_desc desc = listed(self, 40);
    gpst_stats stats;
    (void)state;
    desc.source = NULL;
    desc.sink = NULL;
    self->decode_ns = 3000000;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    for (uint32_t k = 0; k < 40; k++) {
        gpst_input input = GPST_ZERO;
        input.path = kit_paths[k];
        input.user_data = self;
        assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(take_all(self->pipeline, 1), GPST_OK);
    }
    gpst_pipeline_query_stats(self->pipeline, &stats);
    assert_string_equal(stats.read_ahead.state, "sequence");
    assert_in_range(stats.read_ahead.fetched, 1, 39);
    assert_int_equal(stats.read_ahead.used + stats.read_ahead.late, stats.read_ahead.fetched);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    kit_close(self);
}

static void cancel_main(void* argument) {
    gpsti_sleep_ns(5000000);
    gpst_pipeline_cancel(((kit*)argument)->pipeline);
}

static void a_cancelled_run_stops_bringing(void** state) {
    (void)state;
    for (int destroy_at_once = 0; destroy_at_once < 2; destroy_at_once++) {
        kit* const self = kit_open("sim:read_us=3000", 2);
        gpst_pipeline_desc desc = listed(self, 400);
        gpsti_thread thread;
        desc.n_slots = 2;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        if (!destroy_at_once) {
            assert_int_equal(gpsti_thread_start(&thread, cancel_main, self, "cancel"), GPST_OK);
            assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_ERROR_CANCELLED);
            gpsti_thread_join(&thread);
        }
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_close(self);
    }
}

/* Whatever allocation is refused, nothing leaks, and the run is right or says what it lacked. */
static void every_allocation_may_fail(void** state) {
    kit* const self = kit_open("sim:read_us=50", 2);
    gpst_pipeline_desc desc = listed(self, 6);
    uint64_t n_refused = 0;
    (void)state;
    desc.n_slots = 2;
    for (int push = 0; push < 2; push++) {
        desc.source = push ? NULL : kit_source;
        for (uint64_t n = 1; n < 60; n++) {
            kit_forget(self);
            test_memory_refuse(&self->memory, n);
            const gpst_result result = gpst_pipeline_create(self->context, &desc, &self->pipeline);
            if (!GPST_FAILED(result) && !push)
                (void)gpst_pipeline_run(self->pipeline);
            n_refused += GPST_FAILED(result);
            assert_true(!GPST_FAILED(result) || result == GPST_ERROR_MEMORY);
            test_memory_relent(&self->memory);
            if (!GPST_FAILED(result))
                assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
            self->pipeline = NULL;
            kit_remove_files(self, "out_");
        }
    }
    assert_true(n_refused > 10);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_list_is_brought_in_its_order),
                                       cmocka_unit_test(late_files_widen_the_window),
                                       cmocka_unit_test(files_in_time_narrow_it),
                                       cmocka_unit_test(what_is_skipped_is_given_up),
                                       cmocka_unit_test(resident_files_are_left_alone),
                                       cmocka_unit_test(files_that_come_quickly_are_left_alone),
                                       cmocka_unit_test(it_is_off_while_reading_is_not_what_waits),
                                       cmocka_unit_test(the_budget_is_kept),
                                       cmocka_unit_test(what_is_no_file_is_not_touched),
                                       cmocka_unit_test(what_comes_next_is_foreseen),
                                       cmocka_unit_test(dropped_items_hold_nothing_for_ever),
                                       cmocka_unit_test(cold_files_are_warm_when_they_are_read),
                                       cmocka_unit_test(the_engine_reads_ahead),
                                       cmocka_unit_test(a_busy_engine_reads_nothing_ahead),
                                       cmocka_unit_test(it_says_why_not),
                                       cmocka_unit_test(errors_stay_with_their_items),
                                       cmocka_unit_test(pushed_items_are_foreseen),
                                       cmocka_unit_test(a_cancelled_run_stops_bringing),
                                       cmocka_unit_test(every_allocation_may_fail)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
