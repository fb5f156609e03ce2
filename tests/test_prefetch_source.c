/* tests/test_prefetch_source.c -- a prefetcher as the source of pipelines: the same pictures as READ and DECODE make, bit
   for bit and in every order of cameras; bad files fail their own items; a second pass decodes nothing; and little memory
   fails nobody. */
#include "pipeline_kit.h"
#include "prefetch_kit.h"
#if !defined(GPST_TEST_AMALGAM)
#include "../core/pipeline/frame_source.h"
#endif

enum { VIEW_BYTES = 48 * 32 * 3, MOST_ITEMS = 256 };

/* What a pipeline gave, by item. */
typedef struct outcome {
    uint64_t n, n_ok;
    gpst_result results[MOST_ITEMS];
    uint64_t pictures[MOST_ITEMS], views[MOST_ITEMS]; /* hashes */
    uint32_t cameras[MOST_ITEMS];
    char paths[MOST_ITEMS][64]; /* their ends */
    char notes[MOST_ITEMS][GPST_REASON_BYTES];
    char reasons[MOST_ITEMS][GPST_REASON_BYTES];
    char stages[MOST_ITEMS][32];
} outcome;

typedef struct job {
    gpst_context* context;
    gpst_warp* warp;
    gpst_run_mode mode;
    uint32_t n_slots;
    const file_set* set; /* read and decoded; NULL: */
    gpst_prefetch* prefetch;
    const gpst_decode_desc* decode;
    outcome* out;
} job;

static gpst_warp* open_warp(void) {
    static const gpst_view view = {20, 10, 5, 90, 0};
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = &view;
    desc.n_views = 1;
    desc.width = 48;
    desc.height = 32;
    desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

static uint64_t hash_picture(const gpst_image* picture) {
    uint64_t hash = gpsti_hash(GPSTI_HASH_START, &picture->width, sizeof picture->width);
    const size_t row_bytes = gpst_image_row_bytes(picture);
    hash = gpsti_hash(hash, &picture->format, sizeof picture->format);
    for (uint32_t y = 0; y < picture->height && picture->data; y++)
        hash = gpsti_hash(hash, (const uint8_t*)picture->data + (ptrdiff_t)(picture->pitch_bytes * (int64_t)y),
                          row_bytes);
    return hash;
}

static gpst_result next_path(void* user_data, uint64_t index, gpst_input* out) {
    const file_set* const set = (const file_set*)user_data;
    if (index >= set->n)
        return GPST_END;
    out->path = set->paths[index];
    return GPST_OK;
}

/* As set_png_func, of a DECODE stage. */
static gpst_result decode_png(void* user_data, gpst_task* task) {
    const gpst_image shape = set_png_shape();
    gpst_image picture;
    (void)user_data;
    const gpst_result result = gpst_task_set_picture(task, 0, 0, &shape, &picture);
    if (result == GPST_OK)
        memcpy(picture.data, (const uint8_t*)task->item->file_data + 8, 3);
    return result;
}

static gpst_result look(void* user_data, gpst_task* task) {
    outcome* const out = (outcome*)user_data;
    out->pictures[task->item->index] = hash_picture(&task->item->sets[0].pictures[0]);
    return GPST_OK;
}

static gpst_result keep(void* user_data, const gpst_item* item) {
    outcome* const out = (outcome*)user_data;
    const uint64_t i = item->index;
    out->n++;
    out->n_ok += item->result == GPST_OK;
    out->results[i] = item->result;
    out->cameras[i] = item->camera;
    out->views[i] = item->result == GPST_OK ? hash_picture(&item->sets[1].pictures[0]) : 0;
    snprintf(out->paths[i], sizeof out->paths[i], "%s", item->path ? strrchr(item->path, '/') + 1 : "");
    snprintf(out->notes[i], sizeof out->notes[i], "%s", item->note);
    snprintf(out->reasons[i], sizeof out->reasons[i], "%s", item->reason);
    snprintf(out->stages[i], sizeof out->stages[i], "%s", item->stage);
    return GPST_OK;
}

static gpst_result run(const job* self, gpst_stats* stats) {
    gpst_stage_desc stages[4];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    uint32_t n = 0;
    memset(self->out, 0, sizeof *self->out);
    if (self->set) {
        gpst_stage_read(&stages[n++]);
        gpst_stage_decode(&stages[n], 0, self->decode);
        stages[n++].func = decode_png;
    }
    gpst_stage_host(&stages[n++], GPST_SET(0), 0, look, self->out);
    gpst_stage_warp(&stages[n++], 0, 1, self->warp);
    desc.stages = stages;
    desc.n_stages = n;
    desc.source = self->set ? next_path : gpst_prefetch_source;
    desc.source_user_data = self->set ? (void*)(uintptr_t)self->set : (void*)self->prefetch;
    desc.sink = keep;
    desc.sink_user_data = self->out;
    desc.mode = self->mode;
    desc.n_slots = self->n_slots;
    desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
    desc.n_results = 1;
    if (gpst_pipeline_create(self->context, &desc, &pipeline) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    const gpst_result result = gpst_pipeline_run(pipeline);
    if (stats)
        gpst_pipeline_query_stats(pipeline, stats);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    return result;
}

static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL, GPST_RUN_DEFAULT};
static outcome expected, given;

/* ---- the same pictures ----------------------------------------------------------------------------- */

static void the_same_bits_as_read_and_decode(void** state) {
    static const char* const backends[] = {"cpu", "sim", "sim:mapped=1"};
    static file_set set;
    gpst_decode_desc decode = GPST_ZERO;
    (void)state;
    set_begin(&set, "kind");
    (void)set_add_kinds(&set);
    decode.rgb = true; /* where nothing but a WARP reads them, planes are decoded: then a HOST stage sees others */
    decode.placement.sphere = true;
    for (int b = 0; b < 3; b++) {
        job self;
        memset(&self, 0, sizeof self);
        self.context = set_context(backends[b], 0, NULL);
        self.warp = open_warp();
        self.decode = &decode;
        self.set = &set;
        self.out = &expected;
        assert_int_equal(run(&self, NULL), GPST_OK);
        assert_int_equal(expected.n_ok, set.n);
        gpst_prefetch_desc desc = set_desc(&set, &decode);
        desc.func = set_png_func;
        desc.pinned = b > 0;
        self.prefetch = set_open(self.context, &desc);
        self.set = NULL;
        self.out = &given;
        for (int m = 0; m < 3; m++) {
            self.mode = modes[m];
            assert_int_equal(run(&self, NULL), GPST_OK);
            assert_int_equal(given.n_ok, set.n);
            assert_memory_equal(given.pictures, expected.pictures, set.n * sizeof given.pictures[0]);
            assert_memory_equal(given.views, expected.views, set.n * sizeof given.views[0]);
            for (uint64_t i = 0; i < set.n; i++) {
                assert_string_equal(given.paths[i], expected.paths[i]);
                assert_string_equal(given.notes[i], expected.notes[i]);
                assert_int_equal(given.cameras[i], 0);
            }
        }
        assert_int_equal(set_info(self.prefetch).decoded, set.n); /* once in three passes */
        assert_int_equal(set_info(self.prefetch).kept, 2 * set.n);
        gpst_prefetch_destroy(self.prefetch);
        gpst_warp_destroy(self.warp);
        gpst_context_destroy(self.context);
    }
}

/* ---- a second pass --------------------------------------------------------------------------------- */

static void a_second_pass_decodes_nothing(void** state) {
    static file_set set;
    job self;
    gpst_stats stats;
    const gpst_decode_desc decode = GPST_ZERO;
    (void)state;
    memset(&self, 0, sizeof self);
    set_begin(&set, "twice");
    for (int k = 0; k < 24; k++)
        set_add_jpeg(&set, 128, 64, GPST_FORMAT_RGB);
    self.context = set_context("cpu", 0, NULL);
    self.warp = open_warp();
    self.out = &given;
    gpst_prefetch_desc desc = set_desc(&set, &decode);
    desc.walk_order = GPST_CAMERAS_BY_FRAME;
    desc.max_bytes = 24 * 128 * 64 * 3;
    self.prefetch = set_open(self.context, &desc);
    assert_int_equal(run(&self, &stats), GPST_OK);
    const gpst_prefetch_info first = set_info(self.prefetch);
    assert_string_equal(first.pattern, "schedule");
    assert_int_equal(first.decoded, 24);
    assert_int_equal(first.misses, 1);
    assert_int_equal(first.used, 23);
    assert_int_equal(first.saved_ns, 0);
    assert_int_equal(run(&self, &stats), GPST_OK);
    const gpst_prefetch_info second = set_info(self.prefetch);
    assert_int_equal(second.decoded, 24);
    assert_int_equal(second.decode_ns, first.decode_ns);
    assert_int_equal(second.saved_ns, first.decode_ns);
    assert_int_equal(second.kept, 24);
    assert_int_equal(second.wasted, 0);
    gpst_prefetch_destroy(self.prefetch);
    gpst_warp_destroy(self.warp);
    gpst_context_destroy(self.context);
}

/* ---- cameras --------------------------------------------------------------------------------------- */

/* 8 cameras with 5 frames: the list in either order, walked in either, or as it is. */
static void eight_cameras_in_either_order(void** state) {
    static file_set set;
    job self;
    const gpst_decode_desc decode = GPST_ZERO;
    (void)state;
    memset(&self, 0, sizeof self);
    set_begin(&set, "camera");
    for (int k = 0; k < 40; k++)
        set_add_jpeg(&set, 32, 16, GPST_FORMAT_GRAY);
    self.context = set_context("cpu", 0, NULL);
    self.warp = open_warp();
    self.out = &given;
    for (int list = 1; list <= 2; list++)
        for (int walk = 0; walk <= 2; walk++) {
            gpst_prefetch_desc desc = set_desc(&set, &decode);
            desc.n_cameras = 8;
            desc.list_order = (gpst_camera_order)list;
            desc.walk_order = (gpst_camera_order)walk;
            self.prefetch = set_open(self.context, &desc);
            for (int pass = 0; pass < 2; pass++) {
                assert_int_equal(run(&self, NULL), GPST_OK);
                assert_int_equal(given.n, 40);
                for (uint32_t i = 0; i < 40; i++) {
                    const bool by_frame = (walk ? walk : list) == (int)GPST_CAMERAS_BY_FRAME;
                    const uint32_t camera = by_frame ? i % 8 : i / 5, frame = by_frame ? i / 8 : i % 5;
                    const uint32_t at = list == (int)GPST_CAMERAS_BY_FRAME ? frame * 8 + camera : camera * 5 + frame;
                    char name[32];
                    snprintf(name, sizeof name, "camera%02u.jpg", at);
                    assert_int_equal(given.cameras[i], camera);
                    assert_string_equal(given.paths[i], name);
                }
            }
            const gpst_prefetch_info info = set_info(self.prefetch);
            assert_string_equal(info.pattern, walk ? "schedule" : "sequence");
            assert_true(info.misses <= (walk ? 1 : 4));
            assert_int_equal(info.wasted, 0);
            gpst_prefetch_destroy(self.prefetch);
        }
    gpst_warp_destroy(self.warp);
    gpst_context_destroy(self.context);
}

/* A schedule with repetitions, in a cache of three frames. */
static void a_schedule_is_gone_through(void** state) {
    static file_set set;
    uint64_t schedule[MOST_ITEMS], seed = test_seed(5);
    job self;
    const gpst_decode_desc decode = GPST_ZERO;
    (void)state;
    memset(&self, 0, sizeof self);
    set_begin(&set, "some");
    for (int k = 0; k < 20; k++)
        set_add_plain(&set, GPST_FILE_PNM, 32, 16, GPST_FORMAT_GRAY, GPST_DTYPE_U16);
    for (int k = 0; k < 100; k++)
        schedule[k] = test_random(&seed) % 20;
    self.context = set_context("cpu", 0, NULL);
    self.warp = open_warp();
    self.out = &given;
    gpst_prefetch_desc desc = set_desc(&set, &decode);
    desc.schedule = schedule;
    desc.n_schedule = 100;
    desc.max_bytes = 3 * 32 * 16 * 2;
    self.prefetch = set_open(self.context, &desc);
    for (int pass = 0; pass < 3; pass++) {
        assert_int_equal(run(&self, NULL), GPST_OK);
        assert_int_equal(given.n_ok, 100);
        for (uint32_t i = 0; i < 100; i++) {
            char name[32];
            snprintf(name, sizeof name, "some%02u.pnm", (unsigned)schedule[i]);
            assert_string_equal(given.paths[i], name);
        }
    }
    assert_int_equal(set_info(self.prefetch).asked, 300);
    gpst_prefetch_destroy(self.prefetch);
    gpst_warp_destroy(self.warp);
    gpst_context_destroy(self.context);
}

/* ---- failures -------------------------------------------------------------------------------------- */

static void bad_files_fail_their_items(void** state) {
    static file_set set;
    job self;
    const gpst_decode_desc decode = GPST_ZERO;
    (void)state;
    memset(&self, 0, sizeof self);
    set_begin(&set, "mixed");
    for (int k = 0; k < 30; k++)
        if (k % 10 == 4)
            set_add_bytes(&set, "jpg", "\xff\xd8\xff\xe0 and no more", 16);
        else if (k % 10 == 7)
            set.paths[set.n++] = "/missing/file.jpg";
        else
            set_add_jpeg(&set, 64, 32, GPST_FORMAT_RGB);
    self.context = set_context("cpu", 0, NULL);
    self.warp = open_warp();
    self.out = &given;
    const gpst_prefetch_desc desc = set_desc(&set, &decode);
    self.prefetch = set_open(self.context, &desc);
    for (int m = 0; m < 3; m++) {
        self.mode = modes[m];
        assert_int_equal(run(&self, NULL), GPST_PARTIAL);
        assert_int_equal(given.n, 30);
        assert_int_equal(given.n_ok, 24);
        for (int k = 0; k < 30; k++) {
            const bool bad = k % 10 == 4, missing = k % 10 == 7;
            assert_int_equal(given.results[k] != GPST_OK, bad || missing);
            if (missing)
                assert_int_equal(given.results[k], GPST_ERROR_NOT_FOUND);
            if (!bad && !missing)
                continue;
            assert_string_equal(given.stages[k], "source");
            assert_string_equal(given.paths[k], strrchr(set.paths[k], '/') + 1);
            assert_non_null(strstr(given.reasons[k], given.paths[k]));
            assert_non_null(strstr(given.reasons[k], bad ? "JPEG" : "open"));
        }
    }
    gpst_prefetch_destroy(self.prefetch);
    gpst_prefetch_desc raw = set_desc(&set, NULL); /* files as they are have no picture */
    self.prefetch = set_open(self.context, &raw);
    assert_int_equal(run(&self, NULL), GPST_ERROR_STATE);
    assert_int_equal(given.n_ok, 0);
    assert_int_equal(given.results[0], GPST_ERROR_STATE);
    assert_non_null(strstr(given.reasons[0], "neither decode nor func"));
    gpst_prefetch_destroy(self.prefetch);
    self.prefetch = NULL;
    gpst_input input = GPST_ZERO;
    assert_int_equal(gpst_prefetch_source(NULL, 0, &input), GPST_ERROR_ARGUMENT);
    gpst_warp_destroy(self.warp);
    gpst_context_destroy(self.context);
}

/* ---- a full cache ---------------------------------------------------------------------------------- */

/* A cache that has filled the budget does not fail a pipeline that reads and decodes for itself. */
enum { FULL_BYTES = 256 * 128 * 3 };

static void a_full_cache_fails_no_pipeline(void** state) {
    static file_set set;
    const gpst_decode_desc decode = GPST_ZERO;
    job self;
    (void)state;
    memset(&self, 0, sizeof self);
    set_begin(&set, "full");
    for (int k = 0; k < 32; k++)
        set_add_jpeg(&set, 256, 128, GPST_FORMAT_RGB);
    self.context = set_context("cpu", 10 * (uint64_t)FULL_BYTES * 9 / 8, NULL);
    self.warp = open_warp();
    const gpst_prefetch_desc desc = set_desc(&set, &decode);
    self.prefetch = set_open(self.context, &desc);
    for (uint64_t k = 0; k < set.n; k++) {
        const gpst_frame* frame = NULL;
        assert_int_equal(gpst_prefetch_get(self.prefetch, k, &frame), GPST_OK);
        gpst_prefetch_release(self.prefetch, frame);
    }
    assert_true(set_info(self.prefetch).bytes >= 5 * FULL_BYTES);
    self.set = &set;
    self.decode = &decode;
    self.out = &expected;
    self.n_slots = 4;
    assert_int_equal(run(&self, NULL), GPST_OK);
    assert_int_equal(expected.n_ok, set.n);
    assert_true(set_info(self.prefetch).given_up > 0);
    gpst_prefetch_destroy(self.prefetch);
    gpst_warp_destroy(self.warp);
    gpst_context_destroy(self.context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_same_bits_as_read_and_decode),
                                       cmocka_unit_test(a_second_pass_decodes_nothing),
                                       cmocka_unit_test(eight_cameras_in_either_order),
                                       cmocka_unit_test(a_schedule_is_gone_through),
                                       cmocka_unit_test(bad_files_fail_their_items),
                                       cmocka_unit_test(a_full_cache_fails_no_pipeline)};
    return set_has_jpeg() ? cmocka_run_group_tests(tests, set_begin_empty, set_end) : set_skip();
}
