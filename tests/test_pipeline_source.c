/* tests/test_pipeline_source.c -- what a source hands out: each item has its own strings, pixels and failure, however the
   source uses its memory again; every item that it gave ends, and nothing is asked of it after its end. Then desc.paths,
   the list of files that it will name. */
#include "pipeline_kit.h"

enum { N_GIVEN = 2000, LONG_TEXT = 5000 };

typedef struct giver {
    kit* owner;
    uint64_t n_given, n_late; /* calls; of those after cancel, stop or END */
    bool over;
    uint64_t fail_every;      /* 3, 3 + fail_every, ... */
    uint64_t act_at;          /* in this item's stage */
    void (*act)(gpst_pipeline* pipeline);
    gpsti_a64 n_works;
    uint8_t seen[N_GIVEN];
    int64_t called_ns[N_GIVEN];
    char text[2][LONG_TEXT + 1]; /* the source's path and name, */
    uint8_t pixels[KIT_BYTES];   /* and picture */
} giver;

static giver the;

static bool has_path(uint64_t index) { return index % 3 != 0; }
static bool has_name(uint64_t index) { return index % 4 != 0; }
static bool has_frame(uint64_t index) { return index % 9 == 4; }

/* Short or long, with the index in it. */
static void spell(char* out, char what, uint64_t index) {
    const size_t bytes = index % 53 == 7 ? LONG_TEXT : 12 + (size_t)index % 40;
    memset(out, what, bytes);
    out[bytes] = '\0';
    out[snprintf(out, 12, "%06u", (unsigned)index)] = what;
}

static gpst_result giver_source(void* user_data, uint64_t index, gpst_input* out) {
    giver* const self = (giver*)user_data;
    kit_check(self->owner, gpsti_a32_add(&self->owner->in_source, 1) == 0);
    kit_check(self->owner, index == self->n_given && !self->over);
    self->over = index >= N_GIVEN;
    for (int t = 0; t < 2; t++) /* what the call before handed out is not there any more */
        memset(self->text[t], '?', LONG_TEXT);
    memset(self->pixels, 0xEE, sizeof self->pixels);
    (void)gpsti_a32_add(&self->owner->in_source, UINT32_MAX);
    if (self->over)
        return GPST_END;
    self->n_given++;
    self->n_late += gpsti_a32_load(&self->owner->pipeline->signals.cancel) != 0 ||
                    gpsti_a32_load(&self->owner->pipeline->signals.stop) != 0;
    self->called_ns[index] = gpsti_now_ns();
    if (self->fail_every != 0 && index % self->fail_every == 3)
        return gpst_task_fail(NULL, GPST_ERROR_FORMAT, "line %u is bad", (unsigned)index);
    spell(self->text[0], 'p', index);
    spell(self->text[1], 'n', index);
    for (size_t i = 0; i < KIT_BYTES && has_frame(index); i++)
        self->pixels[i] = kit_pixel(index, i);
    out->path = has_path(index) ? self->text[0] : NULL;
    out->name = has_name(index) ? self->text[1] : NULL;
    out->timestamp_ns = (int64_t)index * 1000 + 1;
    out->user_data = &self->seen[index];
    if (has_frame(index)) {
        out->frame = kit_shape(KIT_WIDTH, KIT_HEIGHT);
        out->frame.data = self->pixels;
    }
    return GPST_OK;
}

static void check_names(kit* owner, const gpst_item* item) {
    static GPSTI_TLS char text[LONG_TEXT + 1];
    char numbered[32];
    spell(text, 'p', item->index);
    kit_check(owner, has_path(item->index) ? item->path && strcmp(item->path, text) == 0 : !item->path);
    snprintf(numbered, sizeof numbered, "item %u", (unsigned)item->index);
    if (has_name(item->index))
        spell(text, 'n', item->index);
    kit_check(owner, strcmp(item->name, has_name(item->index) || has_path(item->index) ? text : numbered) == 0);
}

static gpst_result giver_work(void* user_data, gpst_task* task) {
    giver* const self = (giver*)user_data;
    kit* const owner = self->owner;
    const gpst_item* const item = task->item;
    const uint64_t index = item->index;
    const uint8_t* const data = (const uint8_t*)item->sets[0].pictures[0].data;
    check_names(owner, item);
    kit_check(owner, item->timestamp_ns == (int64_t)index * 1000 + 1);
    kit_check(owner, item->user_data == &self->seen[index]);
    kit_check(owner, (data != NULL) == has_frame(index));
    for (size_t i = 0; i < KIT_BYTES && data; i++)
        kit_check(owner, data[i] == kit_pixel(index, i));
    kit_check(owner, item->start_ns <= self->called_ns[index]); /* of its own call */
    kit_check(owner, index == 0 || item->start_ns >= self->called_ns[index - 1]);
    self->seen[index]++;
    (void)gpsti_a64_add(&self->n_works, 1);
    if (self->act && index == self->act_at)
        self->act(task->pipeline);
    return GPST_OK;
}

static kit* giver_open(uint32_t n_workers, gpst_run_mode mode, gpst_pipeline_desc* desc) {
    kit* const self = kit_open_in("giver_open", "cpu", n_workers);
    memset(&the, 0, sizeof the);
    the.owner = self;
    *desc = kit_simple(self, N_GIVEN, giver_work);
    self->stages[0].user_data = &the;
    desc->source = giver_source;
    desc->source_user_data = &the;
    desc->mode = mode;
    return self;
}

static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT, GPST_RUN_PLAIN_SERIAL};

/* The source has one buffer for each kind; the list may be longer or shorter than was said, and items' memory bounded. */
static void test_every_item_has_its_own(void** state) {
    (void)state;
    static const uint64_t expected[] = {0, N_GIVEN, 2 * N_GIVEN, N_GIVEN / 2};
    for (uint32_t i = 0; i < 3 * 4; i++) {
        gpst_pipeline_desc desc;
        kit* const self = giver_open(1 + i % 4, modes[i % 3], &desc);
        desc.n_items_expected = expected[i / 3];
        desc.max_item_bytes = i % 2 ? (uint64_t)1 << 20 : 0;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
        assert_int_equal(self->n_ok, N_GIVEN);
        for (uint64_t n = 0; n < N_GIVEN; n++)
            assert_int_equal(the.seen[n], 1);
        kit_close(self);
    }
}

static void test_a_source_that_fails_some(void** state) {
    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        gpst_pipeline_desc desc;
        kit* const self = giver_open(2, modes[i], &desc);
        the.fail_every = 7;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_PARTIAL);
        for (uint64_t n = 0; n < N_GIVEN; n++) {
            assert_int_equal(the.seen[n], n % 7 == 3 ? 0 : 1);
            assert_int_equal(self->results[n], n % 7 == 3 ? GPST_ERROR_FORMAT : GPST_OK);
        }
        assert_string_equal(self->failed_stage, "source");
        assert_string_equal(self->failed_reason, "line 1998 is bad");
        kit_close(self);
    }
}

/* Cancelled or stopped from within: every item that was given ends; the source is not called again, but for the few that
   the turn which has begun may still take. */
static void test_nothing_in_hand_is_lost(void** state) {
    (void)state;
    for (uint32_t i = 0; i < 3 * 4; i++) {
        gpst_pipeline_desc desc;
        kit* const self = giver_open(3, modes[i % 3], &desc);
        const bool cancels = i / 3 % 2 == 1;
        gpst_stats stats;
        the.act_at = 500 + 177 * i / 3;
        the.act = cancels ? gpst_pipeline_cancel : gpst_pipeline_stop;
        assert_int_equal(kit_run(self, &desc, &stats), cancels ? GPST_ERROR_CANCELLED : GPST_OK);
        assert_true(the.n_given > the.act_at && the.n_late <= 16);
        assert_int_equal(stats.items_total, the.n_given);
        assert_int_equal(stats.items_ok, gpsti_a64_load(&the.n_works));
        assert_int_equal(stats.items_cancelled, the.n_given - stats.items_ok);
        for (uint64_t n = 0; n < N_GIVEN && !cancels; n++)
            assert_int_equal(the.seen[n], n < the.n_given);
        kit_close(self);
    }
}

/* ---- desc.paths ------------------------------------------------------------------------------------------------- */

enum { N_LISTED = 60 };

static char listed_paths[N_LISTED][100];
static const char* list[N_LISTED];

static gpst_pipeline_desc listed(kit* self) {
    gpst_pipeline_desc desc = kit_standard(self, N_LISTED);
    for (uint64_t k = 0; k < N_LISTED; k++) {
        kit_input_path(self, k, listed_paths[k], sizeof listed_paths[k]);
        list[k] = listed_paths[k];
    }
    desc.paths = list;
    desc.n_paths = N_LISTED;
    return desc;
}

static const gpst_path* prefetch_path(const gpst_stats* stats) {
    for (uint32_t k = 0; k < stats->n_paths; k++)
        if (strcmp(stats->paths[k].what, "prefetch") == 0)
            return &stats->paths[k];
    fail_msg("no path \"prefetch\"");
    return NULL;
}

/* Reads that wait have the system told of the files behind them; what it reads is not counted twice. */
static void test_the_system_is_told_of_cold_files(void** state) {
    (void)state;
    kit* const self = kit_open("sim:read_us=500", 2);
    const gpst_pipeline_desc desc = listed(self);
    gpst_stats stats;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    assert_string_equal(stats.read_ahead.state, "on");
    assert_int_equal(stats.read_ahead.advised, N_LISTED);
    assert_string_equal(prefetch_path(&stats)->taken, "60 files advised");
    assert_string_equal(prefetch_path(&stats)->why_not, "");
    assert_int_equal(stats.bytes_read, N_LISTED * KIT_BYTES);
    kit_check_files(self);
    kit_close(self);
}

#if defined(__linux__)
static gpst_result status_of_this_process(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data;
    out->path = "/proc/self/status"; /* of which the system does not say whether it is in memory */
    return index < N_LISTED ? GPST_OK : GPST_END;
}

/* The reader has them first; those that computed again and again are read where they are wanted. */
static void test_nobody_says_what_is_in_memory(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = listed(self);
    gpst_reader_info reader;
    gpst_stats stats;
    desc.stages = self->stages; /* READ alone */
    desc.n_stages = 1;
    desc.n_paths = 0;
    desc.source = status_of_this_process;
    desc.sink = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    gpst_pipeline_query_stats(self->pipeline, &stats);
    gpst_reader_query_info(self->pipeline->files.reader, &reader);
    assert_int_equal(stats.items_ok, N_LISTED);
    assert_true(stats.bytes_read > N_LISTED);
    assert_in_range(reader.reads, 8, N_LISTED);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    kit_close(self);
}
#endif

static void expect_none(kit* self, const gpst_pipeline_desc* desc, const char* why_not) {
    gpst_stats stats;
    assert_int_equal(kit_run(self, desc, &stats), GPST_OK);
    assert_int_equal(stats.read_ahead.advised, 0);
    assert_memory_equal(stats.read_ahead.state, "off: ", 5);
    assert_string_equal(stats.read_ahead.state + 5, why_not);
    assert_string_equal(prefetch_path(&stats)->taken, "none");
    assert_memory_equal(prefetch_path(&stats)->why_not, "ahead: ", 7);
    assert_string_equal(prefetch_path(&stats)->why_not + 7, why_not);
    kit_check_files(self);
}

static void test_it_says_why_not(void** state) {
    (void)state;
    kit* const self = kit_open("sim:read_us=500", 2);
    gpst_pipeline_desc desc = listed(self);
    desc.mode = GPST_RUN_PLAIN_SERIAL;
    expect_none(self, &desc, "not in a plain loop");
    desc.mode = GPST_RUN_ENGINE;
    desc.no_prefetch = true;
    expect_none(self, &desc, "switched off");
    desc.no_prefetch = false;
    desc.n_paths = 0;
    expect_none(self, &desc, "no list of files");
    desc.n_paths = 1;
    desc.paths = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create: n_paths=1", "paths must not be NULL");
    list[3] = NULL;
    desc.paths = list;
    desc.n_paths = 20;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_create: paths[3]=NULL", "required");
    self->pipeline = NULL;
    kit_close(self);
}

/* What goes past the page cache would be read twice. */
static void test_direct_reads_are_not_advised(void** state) {
    (void)state;
    kit* const self = kit_open("sim:read_us=500", 2);
    const gpst_pipeline_desc desc = listed(self);
    assert_int_equal(setenv("GPUSTAGE_IO", "direct", 1), 0);
    expect_none(self, &desc, "reads go past the page cache");
    assert_int_equal(unsetenv("GPUSTAGE_IO"), 0);
    kit_close(self);
}

/* A missing file is its own item's trouble; a list that lies costs nothing but its foresight. */
static void test_a_list_that_lies(void** state) {
    (void)state;
    kit* const self = kit_open("sim:read_us=200", 2);
    const gpst_pipeline_desc desc = listed(self);
    for (uint64_t k = 0; k < N_LISTED; k += 5)
        assert_int_equal(unlink(listed_paths[k]), 0);
    for (int backwards = 0; backwards < 2; backwards++) {
        assert_int_equal(kit_run(self, &desc, NULL), GPST_PARTIAL);
        for (uint64_t k = 0; k < N_LISTED; k++)
            assert_int_equal(self->results[k], k % 5 == 0 ? GPST_ERROR_NOT_FOUND : GPST_OK);
        assert_string_equal(self->failed_stage, "read");
        kit_check_files(self);
        kit_remove_files(self, "out_");
        for (uint64_t k = 0; k < N_LISTED; k++)
            list[k] = listed_paths[N_LISTED - 1 - k];
    }
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_item_has_its_own),
        cmocka_unit_test(test_a_source_that_fails_some),
        cmocka_unit_test(test_nothing_in_hand_is_lost),
        cmocka_unit_test(test_the_system_is_told_of_cold_files),
#if defined(__linux__)
        cmocka_unit_test(test_nobody_says_what_is_in_memory),
#endif
        cmocka_unit_test(test_it_says_why_not),
        cmocka_unit_test(test_direct_reads_are_not_advised),
        cmocka_unit_test(test_a_list_that_lies),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
