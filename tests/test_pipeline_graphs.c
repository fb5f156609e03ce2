/* tests/test_pipeline_graphs.c -- device steps as graphs: the same bytes as piece by piece, from every slot, whatever
   fails while a graph is made or launched; and a path that says which way it went. */
#include "pipeline_kit.h"

#define WIDTH 32u
#define HEIGHT 16u
#define N_FRAMES 120u
#define BYTES (WIDTH * HEIGHT)

static uint8_t frame[BYTES];
static uint8_t masks[N_FRAMES][BYTES];
static uint8_t wanted[N_FRAMES][BYTES];

static gpst_result frame_source(void* user_data, uint64_t index, gpst_input* out) {
    uint64_t random = index + 1;
    (void)user_data;
    if (index >= N_FRAMES)
        return GPST_END;
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (uint8_t)test_random(&random);
    out->frame = kit_shape(WIDTH, HEIGHT);
    out->frame.data = frame;
    return GPST_OK;
}

static gpst_result mask_sink(void* user_data, const gpst_item* item) {
    const gpst_set* const last = &item->sets[item->n_sets - 1];
    if (item->result == GPST_OK)
        memcpy(masks[item->index], last->pictures[0].data, BYTES);
    return kit_sink((kit*)user_data, item);
}

/* Every byte and 3, by the user's own kernel. */
static gpst_result add_host(const void* args) {
    const test_number_args* const a = (const test_number_args*)args;
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = (uint8_t)(a->from[i] + a->add);
    return GPST_OK;
}

static bool asks_for_stream; /* as users of the vendor's own calls do */
static bool is_capturable = true;

static gpst_result add_stage(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"add", add_host, TEST_GPU(test_number_gpu)};
    gpst_image from, to;
    test_number_args args;
    (void)user_data;
    GPSTI_TRY(gpst_task_pictures(task, 3, &from, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 4, 0, &from, &to));
    if (asks_for_stream)
        (void)gpst_task_native_stream(task);
    memset(&args, 0, sizeof args);
    args.from = (const uint8_t*)from.data;
    args.to = (uint8_t*)to.data;
    args.add = 3;
    args.bytes = BYTES;
    return gpst_task_enqueue(task, &kernel, &args, sizeof args);
}

typedef struct chain {
    gpst_warp* warp;
    gpst_mask_desc threshold, morph;
} chain;

static void chain_make(chain* self) {
    gpst_warp_desc desc = GPST_ZERO;
    memset(self, 0, sizeof *self);
    desc.map = GPST_MAP_RESIZE;
    desc.width = WIDTH;
    desc.height = HEIGHT;
    desc.format = GPST_FORMAT_GRAY;
    desc.filter = GPST_FILTER_BILINEAR;
    assert_int_equal(gpst_warp_create(&desc, &self->warp), GPST_OK);
    self->threshold.kind = GPST_MASK_THRESHOLD;
    self->threshold.threshold = 127.0f;
    self->morph.kind = GPST_MASK_MORPH;
    self->morph.morph = GPST_MORPH_CLOSE;
    self->morph.size = 3;
}

/* WARP, two MASKs and the user's DEVICE stage, as one step. */
static gpst_result run_chain(const char* backend, gpst_graph_use use, gpst_run_mode mode, gpst_stats* stats) {
    chain parts;
    chain_make(&parts);
    kit* const self = kit_open(backend, 3);
    self->n_items = N_FRAMES;
    gpst_stage_warp(&self->stages[0], 0, 1, parts.warp);
    gpst_stage_mask(&self->stages[1], 1, 2, &parts.threshold);
    gpst_stage_mask(&self->stages[2], 2, 3, &parts.morph);
    gpst_stage_device(&self->stages[3], GPST_SET(3), GPST_SET(4), add_stage, self);
    self->stages[3].capturable = is_capturable;
    self->n_stages = 4;
    gpst_pipeline_desc desc = kit_desc(self);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.source = frame_source;
    desc.sink = mask_sink;
    desc.mode = mode;
    desc.graphs = use;
    desc.n_slots = 4;
    memset(masks, 0xA5, sizeof masks);
    const gpst_result result = kit_run(self, &desc, stats);
    assert_int_equal(self->n_ok, N_FRAMES);
    kit_close(self);
    gpst_warp_destroy(parts.warp);
    return result;
}

static const gpst_path* graph_path(const gpst_stats* stats) {
    for (uint32_t i = 0; i < stats->n_paths; i++)
        if (strcmp(stats->paths[i].what, "graph") == 0)
            return &stats->paths[i];
    fail_msg("no path is called graph");
    return NULL;
}

static void make_wanted(void) {
    static gpst_stats stats;
    assert_int_equal(run_chain("cpu", GPST_GRAPHS_OFF, GPST_RUN_ENGINE, &stats), GPST_OK);
    memcpy(wanted, masks, sizeof wanted);
}

static void test_same_bytes(void** state) {
    static gpst_stats stats;
    (void)state;
    make_wanted();
    for (int mode = (int)GPST_RUN_ENGINE; mode <= (int)GPST_RUN_PLAIN_SERIAL; mode++) {
        assert_int_equal(run_chain("sim:launch_us=0", GPST_GRAPHS_ALWAYS, (gpst_run_mode)mode, &stats), GPST_OK);
        assert_memory_equal(masks, wanted, sizeof wanted);
        assert_string_equal(graph_path(&stats)->taken, "graphs");
        assert_int_equal(stats.device_fallbacks, 0);
    }
    assert_int_equal(run_chain("sim:launch_us=0", GPST_GRAPHS_OFF, GPST_RUN_ENGINE, &stats), GPST_OK);
    assert_memory_equal(masks, wanted, sizeof wanted);
    assert_string_equal(graph_path(&stats)->taken, "launches");
    assert_non_null(strstr(graph_path(&stats)->why_not, "switched off"));
}

/* A stage that takes the vendor's stream, against its word: what was recorded runs before it. */
static void test_native_stream_ends_the_recording(void** state) {
    static gpst_stats stats;
    (void)state;
    make_wanted();
    asks_for_stream = true;
    assert_int_equal(run_chain("sim:launch_us=0", GPST_GRAPHS_ALWAYS, GPST_RUN_ENGINE, &stats), GPST_OK);
    asks_for_stream = false;
    assert_memory_equal(masks, wanted, sizeof wanted);
}

/* Whatever call of the device fails, every item comes out right: by the graph, piece by piece, or on the CPU. */
static void test_every_fault(void** state) {
    static const char* const faults[] = {"fail_graph", "fail_launch", "fail_alloc", "fail_notify", "fail_event",
                                         "lose_at"};
    static gpst_stats stats;
    char backend[64];
    (void)state;
    make_wanted();
    for (size_t f = 0; f < sizeof faults / sizeof *faults; f++) {
        unsigned n = 0;
        do {
            n++;
            kit_count_faults();
            snprintf(backend, sizeof backend, "sim:launch_us=0,%s=%u", faults[f], n);
            assert_int_equal(run_chain(backend, GPST_GRAPHS_ALWAYS, GPST_RUN_ENGINE, &stats), GPST_OK);
            if (memcmp(masks, wanted, sizeof wanted) != 0)
                fail_msg("%s: other bytes", backend);
        } while (kit_counted_faults() > 0 && n < 40);
        assert_true(n > 1);
    }
}

static void test_a_failed_capture_is_said(void** state) {
    static gpst_stats stats;
    (void)state;
    assert_int_equal(run_chain("sim:launch_us=0,fail_graph=1", GPST_GRAPHS_ALWAYS, GPST_RUN_ENGINE, &stats), GPST_OK);
    assert_int_equal(stats.device_fallbacks, 0);
    assert_string_equal(graph_path(&stats)->taken, "launches");
    assert_non_null(strstr(graph_path(&stats)->why_not, "injected fault"));
}

/* A device that computes in host memory has nothing to launch. */
static void test_cpu_says_why_not(void** state) {
    static gpst_stats stats;
    (void)state;
    assert_int_equal(run_chain("cpu", GPST_GRAPHS_ALWAYS, GPST_RUN_ENGINE, &stats), GPST_OK);
    assert_string_equal(graph_path(&stats)->taken, kit_wanted_backend() ? "graphs" : "launches");
}

static gpst_result no_device(void* user_data, gpst_task* task) {
    (void)user_data, (void)task;
    return GPST_OK;
}

/* A DEVICE stage that does not say so may do what a graph cannot repeat. */
static void test_only_capturable_stages_are_captured(void** state) {
    static gpst_stats stats;
    (void)state;
    make_wanted();
    is_capturable = false;
    assert_int_equal(run_chain("sim:launch_us=0", GPST_GRAPHS_ALWAYS, GPST_RUN_ENGINE, &stats), GPST_OK);
    is_capturable = true;
    assert_memory_equal(masks, wanted, sizeof wanted);
    assert_string_equal(graph_path(&stats)->taken, "launches");
    assert_non_null(strstr(graph_path(&stats)->why_not, "capturable"));
}

static void test_capturable_is_for_device(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_stage_host(&self->stages[0], GPST_SET(0), GPST_SET(1), no_device, NULL);
    self->stages[0].capturable = true;
    self->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(self);
    gpst_pipeline* pipeline = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("stages[0].capturable", "only for DEVICE");
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_native_stream_ends_the_recording),
        cmocka_unit_test(test_every_fault),
        cmocka_unit_test(test_a_failed_capture_is_said),
        cmocka_unit_test(test_cpu_says_why_not),
        cmocka_unit_test(test_only_capturable_stages_are_captured),
        cmocka_unit_test(test_capturable_is_for_device),
    };
    return cmocka_run_group_tests_name("pipeline_graphs", tests, NULL, NULL);
}
