/* tests/test_pipeline_target.c -- one file that several items write parts of: its bytes, what an item leaves that fails
   or begins anew, and a file that is whole or absent. */
#include "pipeline_kit.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

enum { N_ITEMS = 24, HEAD = 7, PART = 5000, PICTURE = 96 * 64 }; /* parts end in the middle of a page */

typedef struct parts {
    kit* kit;
    gpst_target* target;
    bool by_picture;   /* what is written is the picture, where it is, and not the encoded room */
    bool as_files;     /* another file is emitted before the part and behind it */
    uint32_t n_parts;  /* of an item */
    size_t part_bytes; /* of each */
    uint64_t n_emitted; /* items */
    char path[100];
} parts;

static size_t part_offset(const parts* self, uint64_t index, uint32_t part) {
    return HEAD + ((size_t)index * self->n_parts + part) * self->part_bytes;
}

static uint8_t part_byte(uint64_t index, uint32_t part, size_t i) { return (uint8_t)(1 + (index * 7 + part * 3 + i) % 250); }

static gpst_result emit_file(parts* self, gpst_task* task, uint32_t number) {
    char path[128];
    void* room = NULL;
    kit_output_path(self->kit, task->item->index, number, path, sizeof path);
    GPSTI_TRY(gpst_task_encoded(task, 1, &room));
    memset(room, 'f', 1);
    return gpst_task_emit(task, path, 1);
}

/* Of a per_picture stage its own part, else all parts of the item. */
static gpst_result emit_parts(void* user_data, gpst_task* task) {
    parts* const self = (parts*)user_data;
    const uint64_t index = task->item->index;
    const gpst_stage_desc* const stage = &self->kit->stages[task->stage_index];
    const uint32_t first = stage->per_picture ? task->picture_index : 0;
    const uint32_t end = stage->per_picture ? first + 1 : self->n_parts;
    __atomic_fetch_add(&self->n_emitted, 1, __ATOMIC_RELAXED);
    for (uint32_t p = first; p < end; p++) {
        void* room = self->by_picture ? task->item->sets[1].pictures[p].data : NULL;
        if (self->as_files)
            GPSTI_TRY(emit_file(self, task, p));
        if (!self->by_picture)
            GPSTI_TRY(gpst_task_encoded(task, self->part_bytes + 1, &room));
        for (size_t i = 0; i < self->part_bytes; i++)
            ((uint8_t*)room)[i] = part_byte(index, p, i);
        GPSTI_TRY(gpst_task_emit_at(task, self->target, part_offset(self, index, p), self->by_picture ? room : NULL,
                                    self->part_bytes));
        if (self->as_files)
            GPSTI_TRY(emit_file(self, task, 100 + p));
    }
    if (kit_fails(self->kit, KIT_ENCODE, index)) /* what was emitted is not written */
        return gpst_task_fail(task, GPST_ERROR_UNSUPPORTED, "no encoder");
    if (kit_fails(self->kit, KIT_WRITE, index)) { /* its parts are there by then, and another file cannot be */
        void* room = NULL;
        char path[128];
        snprintf(path, sizeof path, "%s/nowhere/x", self->kit->dir);
        GPSTI_TRY(gpst_task_encoded(task, 1, &room));
        GPSTI_TRY(gpst_task_emit(task, path, 1));
    }
    return GPST_OK;
}

static gpst_result make_pictures(void* user_data, gpst_task* task) {
    const parts* const self = (const parts*)user_data;
    const gpst_image shape = kit_shape(PICTURE / 64, 64);
    gpst_image image;
    for (uint32_t p = 0; p < self->n_parts; p++)
        GPSTI_TRY(gpst_task_set_picture(task, 1, p, &shape, &image));
    return GPST_OK;
}

static gpst_pipeline_desc parts_open(parts* self, uint32_t n_parts, size_t part_bytes, bool sync) {
    char head[HEAD + 1] = "header:";
    self->n_parts = n_parts;
    self->part_bytes = part_bytes;
    self->kit->n_outputs = n_parts;
    gpst_pipeline_desc desc = kit_simple(self->kit, N_ITEMS, make_pictures);
    gpst_stage_host(&self->kit->stages[0], 0, GPST_SET(1), make_pictures, self);
    gpst_stage_host(&self->kit->stages[1], GPST_SET(1), 0, emit_parts, self);
    gpst_stage_write(&self->kit->stages[2]);
    self->kit->n_stages = desc.n_stages = 3;
    snprintf(self->path, sizeof self->path, "%s/parts", self->kit->dir);
    assert_int_equal(gpst_target_create(self->kit->context, self->path, part_offset(self, N_ITEMS, 0), sync,
                                        &self->target),
                     GPST_OK);
    assert_int_equal(kit_count_files(self->kit, ".gpustage"), 1);
    assert_int_equal(gpst_target_write(self->target, 0, head, HEAD), GPST_OK);
    return desc;
}

/* Header, and of each item its own bytes where it has ended well, else zeroes. */
static void parts_check(const parts* self) {
    const size_t bytes = part_offset(self, N_ITEMS, 0);
    uint8_t* const got = (uint8_t*)malloc(bytes + 1);
    FILE* const file = fopen(self->path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(got, 1, bytes + 1, file), bytes);
    fclose(file);
    assert_memory_equal(got, "header:", HEAD);
    for (uint64_t n = 0; n < N_ITEMS; n++)
        for (uint32_t p = 0; p < self->n_parts; p++)
            for (size_t i = 0; i < self->part_bytes; i++)
                if (got[part_offset(self, n, p) + i] !=
                    (self->kit->results[n] == GPST_OK ? part_byte(n, p, i) : 0))
                    fail_msg("item %u, part %u, byte %u", (unsigned)n, p, (unsigned)i);
    free(got);
}

static void parts_finish(parts* self) {
    assert_int_equal(gpst_target_finish(self->target, true), GPST_OK);
    assert_int_equal(kit_count_files(self->kit, ".gpustage"), 0);
    parts_check(self);
}

static const char* const backends[] = {"cpu", "sim", "sim:mapped=1"};

/* Small parts by workers, parts of 5 MiB by the writer's threads, all in a plain loop; the room or the picture. */
static void test_parts_are_where_they_belong(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_DEFAULT, GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    (void)state;
    for (size_t b = 0; b < 3; b++)
        for (uint32_t form = 0; form < 24; form++) {
            parts self = GPST_ZERO;
            gpst_stats stats;
            self.kit = kit_open(backends[b], 3);
            self.by_picture = form & 1;
            const bool large = form % 12 == 10; /* once a backend and a way to say where */
            gpst_pipeline_desc desc = parts_open(&self, large ? 1 : 3, large ? (size_t)5 << 20 : PART, form & 1);
            self.by_picture = self.by_picture && !large;
            self.as_files = (form & 2) != 0;
            self.kit->as_ready = desc.as_ready = true;
            self.kit->stages[1].per_picture = (form & 4) != 0 && !large;
            self.kit->stages[2].concurrency = (form & 8) ? 1 : 0;
            desc.fsync = form & 2 ? GPST_FSYNC_FILE : GPST_FSYNC_NONE; /* says nothing of parts */
            desc.mode = modes[form % 3];
            assert_int_equal(kit_run(self.kit, &desc, &stats), GPST_OK);
            const uint64_t n_parts = (uint64_t)N_ITEMS * self.n_parts, n_files = self.as_files ? 2 * n_parts : 0;
            assert_int_equal(stats.bytes_written, n_parts * self.part_bytes + n_files);
            assert_int_equal(stats.stages[2].count, n_parts + n_files);
            assert_int_equal(kit_count_files(self.kit, "out_"), n_files);
            parts_finish(&self);
            kit_close(self.kit);
        }
}

/* Before its parts were written, behind them, and where the sink says no: nothing of the item stays. */
static void test_failed_items_leave_zeroes(void** state) {
    static const kit_place places[] = {KIT_ENCODE, KIT_WRITE, KIT_SINK};
    (void)state;
    for (size_t b = 0; b < 3; b++)
        for (uint32_t form = 0; form < 12; form++) {
            parts self = GPST_ZERO;
            gpst_stats stats;
            self.kit = kit_open(backends[b], 3);
            gpst_pipeline_desc desc = parts_open(&self, 2, PART, false);
            self.by_picture = form & 1;
            self.kit->fail_place = places[form % 3];
            self.kit->fail_first = 1;
            self.kit->fail_every = 5;
            desc.fsync = form < 6 ? GPST_FSYNC_FILE : GPST_FSYNC_NONE; /* of the file that cannot be: who writes */
            desc.mode = form % 4 == 3 ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
            assert_int_equal(kit_run(self.kit, &desc, &stats), GPST_PARTIAL);
            assert_int_equal(stats.items_failed, 5);
            for (uint32_t n = 1; n < N_ITEMS && self.kit->fail_place == KIT_SINK; n += 5)
                self.kit->results[n] = GPST_ERROR_IO; /* the sink saw it end well */
            parts_finish(&self);
            kit_close(self.kit);
        }
}

/* ---- order --------------------------------------------------------------------------------------- */

static gpsti_a32 later_has_ended;

static gpst_result emit_late(void* user_data, gpst_task* task) {
    parts* const self = (parts*)user_data;
    for (int tries = 0; task->item->index == 0 && gpsti_a32_load(&later_has_ended) == 0; tries++) {
        kit_check(self->kit, tries < 5000);
        gpsti_sleep_ns(1000000);
    }
    return emit_parts(user_data, task);
}

static gpst_result see_later(void* user_data, const gpst_item* item) {
    if (item->index > 0)
        gpsti_a32_store(&later_has_ended, 1);
    return kit_sink((kit*)user_data, item);
}

static void test_parts_come_in_any_order(void** state) {
    (void)state;
    for (size_t b = 0; b < 3; b++) {
        parts self = GPST_ZERO;
        self.kit = kit_open(backends[b], 2);
        gpst_pipeline_desc desc = parts_open(&self, 1, PART, false);
        gpsti_a32_store(&later_has_ended, 0);
        self.kit->as_ready = desc.as_ready = true;
        self.kit->stages[1].func = emit_late;
        desc.sink = see_later;
        assert_int_equal(kit_run(self.kit, &desc, NULL), GPST_OK);
        parts_finish(&self);
        kit_close(self.kit);
    }
}

/* ---- begun anew ------------------------------------------------------------------------------------ */

/* All others have their pictures by then, so that rooms are for nobody. */
static gpst_result emit_when_full(void* user_data, gpst_task* task) {
    gpsti_sleep_ns(2000000);
    return emit_parts(user_data, task);
}

/* Pictures of some items fill the memory that rooms of all want: younger ones give theirs back and come again. */
static void test_an_item_that_begins_anew_emits_again(void** state) {
    uint32_t n_anew = 0;
    (void)state;
    for (size_t b = 0; b < 3; b++)
        for (uint64_t bytes = 110000; bytes < 230000; bytes += 15000) { /* an item takes 98304 */
            gpst_context_desc context = GPST_ZERO;
            parts self = GPST_ZERO;
            gpst_stats stats;
            self.kit = kit_open(backends[b], 3);
            context.backend = backends[b];
            context.n_workers = 3;
            context.max_host_bytes = bytes;
            kit_reopen(self.kit, &context);
            gpst_pipeline_desc desc = parts_open(&self, 6, PART, false);
            self.kit->stages[1].func = emit_when_full;
            desc.n_slots = 6;
            if (kit_run(self.kit, &desc, &stats) != GPST_OK)
                fail_msg("%s: %s", self.kit->failed_stage, self.kit->failed_reason);
            n_anew += strstr(kit_why_not(&stats, "host_memory"), "began anew") && self.n_emitted > N_ITEMS;
            parts_finish(&self);
            kit_close(self.kit);
        }
    assert_true(n_anew > 0);
}

/* ---- absent ------------------------------------------------------------------------------------------ */

static gpst_result emit_and_cancel(void* user_data, gpst_task* task) {
    if (task->item->index == 5)
        gpst_pipeline_cancel(task->pipeline);
    return emit_parts(user_data, task);
}

/* What had the name stays, whoever has written how much by then. */
static void test_cancelled_means_absent(void** state) {
    (void)state;
    for (size_t b = 0; b < 3; b++)
        for (int replaces = 0; replaces < 2; replaces++) {
            parts self = GPST_ZERO;
            struct stat there;
            self.kit = kit_open(backends[b], 3);
            gpst_pipeline_desc desc = parts_open(&self, 2, PART, true);
            if (replaces) {
                FILE* const file = fopen(self.path, "wb");
                assert_non_null(file);
                assert_int_equal(fputs("old", file) >= 0, 1);
                fclose(file);
            }
            self.kit->stages[1].func = emit_and_cancel;
            assert_int_equal(kit_run(self.kit, &desc, NULL), GPST_ERROR_CANCELLED);
            assert_int_equal(gpst_target_finish(self.target, false), GPST_OK);
            assert_int_equal(kit_count_files(self.kit, ".gpustage"), 0);
            assert_int_equal(stat(self.path, &there), replaces ? 0 : -1);
            assert_true(!replaces || there.st_size == 3);
            kit_close(self.kit);
        }
}

static struct {
    const char* path; /* whose file is asked for; NULL: nothing is noted */
    uint32_t n;
    int code;
    off_t bytes; /* of the file, then */
    bool was_there;
} synced;

/* Takes the place of the C library's. */
int fsync(int file) {
    struct stat status;
    if (!synced.path)
        return 0;
    synced.n++;
    assert_int_equal(fstat(file, &status), 0);
    synced.bytes = status.st_size;
    synced.was_there = access(synced.path, F_OK) == 0;
    errno = synced.code;
    return synced.code ? -1 : 0;
}

/* All of it is on the disk before it has its name, if that was asked for; if it cannot be, there is no file. */
static void test_a_synced_file_is_on_the_disk(void** state) {
    static const struct {
        bool sync, whole;
        int code;
        gpst_result wanted;
    } cases[] = {{true, true, 0, GPST_OK}, {true, true, EIO, GPST_ERROR_IO}, {true, false, 0, GPST_OK},
                 {false, true, 0, GPST_OK}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        parts self = GPST_ZERO;
        self.kit = kit_open("cpu", 1);
        (void)parts_open(&self, 1, PART, cases[k].sync);
        memset(&synced, 0, sizeof synced);
        synced.path = self.path;
        synced.code = cases[k].code;
        assert_int_equal(gpst_target_finish(self.target, cases[k].whole), cases[k].wanted);
        synced.path = NULL;
        assert_int_equal(synced.n, cases[k].sync && cases[k].whole);
        assert_true(synced.n == 0 || (synced.bytes == (off_t)part_offset(&self, N_ITEMS, 0) && !synced.was_there));
        assert_int_equal(access(self.path, F_OK), cases[k].whole && !cases[k].code ? 0 : -1);
        assert_int_equal(kit_count_files(self.kit, ".gpustage"), 0);
        kit_close(self.kit);
    }
}

/* No more than half of the file fits: what does not fails with the system's sentence, and a part that was half there is
   zero again. */
static void test_a_full_disk(void** state) {
    (void)state;
    signal(SIGXFSZ, SIG_IGN);
    for (size_t b = 0; b < 3; b++)
        for (int form = 0; form < 4; form++) {
            struct rlimit before, limit;
            parts self = GPST_ZERO;
            gpst_stats stats;
            self.kit = kit_open(backends[b], 3);
            gpst_pipeline_desc desc = parts_open(&self, 1, PART, false);
            self.by_picture = form & 1;
            desc.mode = form & 2 ? GPST_RUN_PLAIN_SERIAL : GPST_RUN_ENGINE;
            assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
            limit = before;
            limit.rlim_cur = part_offset(&self, N_ITEMS / 2, 0) + PART / 2;
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
            const gpst_result result = kit_run(self.kit, &desc, &stats);
            assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
            assert_int_equal(result, GPST_PARTIAL);
            assert_int_equal(stats.items_failed, N_ITEMS / 2);
            assert_int_equal(stats.stages[2].failed, N_ITEMS / 2);
            assert_int_equal(stats.bytes_written, N_ITEMS / 2 * PART);
            assert_string_equal(self.kit->failed_stage, "write");
            assert_non_null(strstr(self.kit->failed_reason, "write \""));
            assert_non_null(strstr(self.kit->failed_reason, "/parts\": File too large"));
            parts_finish(&self);
            kit_close(self.kit);
        }
}

static void expect_no_target(gpst_context* context, const char* path, uint64_t bytes, gpst_result wanted,
                             const char* says) {
    gpst_target* target = (gpst_target*)(uintptr_t)1;
    assert_int_equal(gpst_target_create(context, path, bytes, false, &target), wanted);
    assert_null(target);
    if (!strstr(gpst_last_reason(), says))
        fail_msg("%s", gpst_last_reason());
}

static gpst_result emit_wrong(void* user_data, gpst_task* task) {
    parts* const self = (parts*)user_data;
    const gpst_stage_desc* const stages = self->kit->stages;
    void* room = NULL;
    const gpst_result refused = stages[1].kind == GPST_STAGE_WRITE ? GPST_ERROR_ARGUMENT : GPST_ERROR_STATE;
    kit_check(self->kit, gpst_task_encoded(task, 10, &room) == GPST_OK);
    kit_check(self->kit, gpst_task_emit_at(task, NULL, 0, NULL, 1) == GPST_ERROR_ARGUMENT);
    kit_check(self->kit, strstr(gpst_last_reason(), "gpst_task_emit_at: target=NULL: required") != NULL);
    kit_check(self->kit, gpst_task_emit_at(task, self->target, 15, room, 6) == GPST_ERROR_ARGUMENT);
    kit_check(self->kit, strstr(gpst_last_reason(),
                                "gpst_task_emit_at: offset_bytes=15: 6 bytes do not fit into 20") != NULL);
    kit_check(self->kit, gpst_task_emit_at(task, self->target, 0, NULL, 11) == refused);
    kit_check(self->kit, strstr(gpst_last_reason(), refused == GPST_ERROR_STATE
                                                        ? "gpst_task_emit_at: the pipeline has no WRITE stage"
                                                        : "gpst_task_emit_at: bytes=11: more than the 10") != NULL);
    return GPST_OK;
}

static void test_what_is_refused(void** state) {
    parts self = GPST_ZERO;
    char path[128];
    (void)state;
    self.kit = kit_open("cpu", 1);
    snprintf(path, sizeof path, "%s/nowhere/parts", self.kit->dir);
    expect_no_target(NULL, path, 1, GPST_ERROR_ARGUMENT, "gpst_target_create: context=NULL");
    expect_no_target(self.kit->context, "", 1, GPST_ERROR_ARGUMENT, "gpst_target_create: path: required");
    expect_no_target(self.kit->context, path, (uint64_t)1 << 63, GPST_ERROR_OVERFLOW, "must be below 2^63");
    expect_no_target(self.kit->context, path, 1, GPST_ERROR_NOT_FOUND, "/nowhere/parts\": create \"");
    snprintf(path, sizeof path, "%s/locked", self.kit->dir);
    assert_int_equal(mkdir(path, 0555), 0);
    snprintf(path, sizeof path, "%s/locked/parts", self.kit->dir);
    if (geteuid() != 0) /* who may do everything may write there, too */
        expect_no_target(self.kit->context, path, 1, GPST_ERROR_ACCESS, "/locked/parts\": create \"");
    assert_int_equal(gpst_target_finish(NULL, true), GPST_OK);
    snprintf(path, sizeof path, "%s/parts", self.kit->dir);
    assert_int_equal(gpst_target_create(self.kit->context, path, 20, false, &self.target), GPST_OK);
    assert_int_equal(gpst_target_write(NULL, 0, "x", 1), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_target_write(self.target, 0, NULL, 1), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_target_write(self.target, 20, "x", 1), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_target_write: ", "offset_bytes=20: 1 bytes do not fit into 20");
    assert_int_equal(gpst_target_write(self.target, UINT64_MAX, "x", 1), GPST_ERROR_ARGUMENT);
    for (uint32_t n = 1; n < 3; n++) {
        gpst_pipeline_desc desc = kit_simple(self.kit, 1, emit_wrong);
        self.kit->stages[0].user_data = &self;
        gpst_stage_write(&self.kit->stages[1]);
        self.kit->stages[1].kind = n == 2 ? GPST_STAGE_WRITE : GPST_STAGE_INVALID;
        desc.n_stages = n;
        assert_int_equal(kit_run(self.kit, &desc, NULL), GPST_OK);
    }
    mkdir(path, 0777); /* in the way of the name */
    assert_true(GPST_FAILED(gpst_target_finish(self.target, true)));
    test_reason_has("rename to", "/parts");
    kit_close(self.kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_are_where_they_belong),
        cmocka_unit_test(test_failed_items_leave_zeroes),
        cmocka_unit_test(test_parts_come_in_any_order),
        cmocka_unit_test(test_an_item_that_begins_anew_emits_again),
        cmocka_unit_test(test_cancelled_means_absent),
        cmocka_unit_test(test_a_synced_file_is_on_the_disk),
        cmocka_unit_test(test_a_full_disk),
        cmocka_unit_test(test_what_is_refused),
    };
    return cmocka_run_group_tests_name("pipeline_target", tests, NULL, NULL);
}
