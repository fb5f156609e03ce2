/* tests/test_warp_rois.c -- rectangles that a run reads where they lie: the bits of copied ones, what counts, what is
   out of range, and that they are read when the run's turn comes. */
#include "test_warp.h"

#include <math.h>

#define W 131
#define H 67
#define OUT_W 37
#define OUT_H 23
#define N 5
#define OUT_BYTES (OUT_W * OUT_H * 4 * 4)

static uint8_t pixels[2][W * H * 4];
static uint8_t in_place[2 * N][OUT_BYTES], copied[2 * N][OUT_BYTES];
static gpst_roi list[2 * N];
static uint32_t n_used[2];

static int draw_noise(void** state) {
    uint64_t seed = test_seed(47);
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i / sizeof pixels[0]][i % sizeof pixels[0]] = (uint8_t)test_random(&seed);
    return 0;
}

static float random_part(uint64_t* seed, double from, double to) {
    return (float)(from + (to - from) * (double)(test_random(seed) % 100000) / 100000.0);
}

static void draw_list(uint64_t* seed) {
    for (int i = 0; i < 2 * N; i++) {
        list[i].x = random_part(seed, -W, W), list[i].y = random_part(seed, -H, H);
        list[i].width = random_part(seed, 0.001, 2 * W), list[i].height = random_part(seed, 0.001, 2 * H);
    }
}

static gpst_image source_of(int s, gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.data = pixels[s], image.width = W, image.height = H, image.format = format;
    return image;
}

static gpst_warp_desc desc_of(void) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_ROI, desc.rois = list, desc.n_rois = N;
    desc.width = OUT_W, desc.height = OUT_H, desc.format = GPST_FORMAT_RGB;
    return desc;
}

static gpst_warp_desc desc_in_place(void) {
    gpst_warp_desc desc = desc_of();
    desc.rois_in_place = true;
    return desc;
}

static void outputs_of(const gpst_warp* warp, uint8_t (*bytes)[OUT_BYTES], gpst_image* outputs, int n) {
    memset(bytes, 0xa5, (size_t)n * OUT_BYTES);
    for (int i = 0; i < n; i++) {
        gpst_warp_query_output(warp, &outputs[i]);
        outputs[i].data = bytes[i];
    }
}

static void run(const gpst_warp* warp, const gpst_image* source, uint8_t (*bytes)[OUT_BYTES], uint32_t n_threads) {
    gpst_image outputs[N];
    outputs_of(warp, bytes, outputs, N);
    if (GPST_FAILED(gpst_warp_run(warp, source, outputs, N, n_threads)))
        fail_msg("%s", gpst_last_reason());
}

/* What a warp with a copy of these rectangles makes. */
static void run_copied(gpst_warp_desc desc, const gpst_roi* rois, const gpst_image* source,
                       uint8_t (*bytes)[OUT_BYTES]) {
    desc.rois_in_place = false, desc.n_rois_used = NULL;
    desc.rois = rois;
    gpst_warp* warp = make_warp(&desc);
    run(warp, source, bytes, 1);
    gpst_warp_destroy(warp);
}

/* One warp for each choice; the list is another in each of its runs. */
static void the_bits_are_those_of_copied_rectangles(void** state) {
    static const gpst_format formats[4] = {GPST_FORMAT_RGB, GPST_FORMAT_BGRA, GPST_FORMAT_NV12, GPST_FORMAT_I420};
    static const gpst_filter filters[3] = {GPST_FILTER_NEAREST, GPST_FILTER_BILINEAR, GPST_FILTER_AREA};
    uint64_t seed = test_seed(48);
    (void)state;
    for (int choice = 0; choice < 4 * 3 * 2 * 2; choice++) {
        const gpst_image source = source_of(0, formats[choice % 4]);
        gpst_warp_desc desc = desc_in_place();
        desc.filter = filters[choice / 4 % 3];
        desc.convention = choice / 24 ? GPST_CONVENTION_OPENCV : GPST_CONVENTION_NATIVE;
        desc.border = desc.filter != GPST_FILTER_AREA && choice % 3 ? GPST_BORDER_ZERO : GPST_BORDER_EDGE;
        if (choice / 12 % 2)
            desc.dtype = GPST_DTYPE_F32, desc.layout = GPST_LAYOUT_CHW;
        gpst_warp* warp = make_warp(&desc);
        for (uint32_t turn = 0; turn < 2; turn++) {
            draw_list(&seed);
            run(warp, &source, in_place, turn);
            run_copied(desc, list, &source, copied);
            for (int i = 0; i < N; i++)
                if (memcmp(in_place[i], copied[i], OUT_BYTES) != 0)
                    fail_msg("choice %d, turn %u, output %d", choice, (unsigned)turn, i);
        }
        gpst_warp_destroy(warp);
    }
}

static void what_is_out_of_range_is_the_nearest_within(void** state) {
    const float most = 1048576.0f, tiny = 1e-9f; /* a side that is rounded to 0 */
    const gpst_roi given[N] = {{NAN, 3, 20, 10},
                               {5, -INFINITY, 2e6f, 30},
                               {2e6f, 5, NAN, 10},
                               {7, 9, -4, -INFINITY},
                               {INFINITY, 4e6f, INFINITY, 0}};
    const gpst_roi kept[N] = {{-most, 3, 20, 10},
                              {5, -most, most, 30},
                              {most, 5, tiny, 10},
                              {7, 9, tiny, tiny},
                              {most, most, most, tiny}};
    const gpst_image source = source_of(0, GPST_FORMAT_RGB);
    (void)state;
    memcpy(list, given, sizeof given);
    for (int filter = GPST_FILTER_NEAREST; filter <= GPST_FILTER_AREA; filter++) {
        gpst_warp_desc desc = desc_in_place();
        desc.filter = (gpst_filter)filter;
        gpst_warp* warp = make_warp(&desc);
        run(warp, &source, in_place, 1);
        run_copied(desc, kept, &source, copied);
        for (int i = 0; i < N; i++)
            assert_memory_equal(in_place[i], copied[i], OUT_BYTES);
        gpst_warp_destroy(warp);
    }
}

static void only_those_that_count_are_computed(void** state) {
    static uint8_t untouched[OUT_BYTES];
    const gpst_image source = source_of(0, GPST_FORMAT_RGB);
    gpst_warp_desc desc = desc_in_place();
    uint64_t seed = test_seed(49);
    (void)state;
    desc.n_rois_used = n_used;
    gpst_warp* warp = make_warp(&desc);
    memset(untouched, 0xa5, sizeof untouched);
    draw_list(&seed);
    run_copied(desc, list, &source, copied);
    for (uint32_t n = 0; n <= N + 2; n++) {
        n_used[0] = n < N + 2 ? n : UINT32_MAX;
        run(warp, &source, in_place, n % 2);
        for (uint32_t i = 0; i < N; i++)
            assert_memory_equal(in_place[i], i < n ? copied[i] : untouched, OUT_BYTES);
    }
    gpst_warp_destroy(warp);
}

/* Addresses that nobody can read. */
static void create_does_not_look_at_them(void** state) {
    gpst_warp_desc desc = desc_in_place();
    (void)state;
    desc.rois = (const gpst_roi*)(uintptr_t)64, desc.n_rois_used = (const uint32_t*)(uintptr_t)128;
    gpst_warp* warp = make_warp(&desc);
    assert_int_equal(gpst_warp_n_outputs(warp), N);
    gpst_warp_destroy(warp);
}

/* ---- on a device ---------------------------------------------------------------------------------- */
/* A detector: writes rectangles and counts into the device's memory. */
typedef struct detector_args {
    gpst_roi* rois;
    uint32_t* n_used;
} detector_args;

static gpst_result detect(const void* args, const gpsti_exec* exec) {
    const detector_args* const self = (const detector_args*)args;
    (void)exec;
    memcpy(self->rois, list, sizeof list);
    memcpy(self->n_used, n_used, sizeof n_used);
    return GPST_OK;
}

/* Both are only submitted when the host has seen neither; two sources with a part of the list each. */
static void a_kernel_ahead_in_the_stream_writes_them(void** state) {
    static const gpsti_kernel detector = {"detect", detect, NULL, NULL};
    const gpsti_backend_i* const backend = gpsti_backend_sim();
    gpst_image sources[2] = {source_of(0, GPST_FORMAT_RGB), source_of(1, GPST_FORMAT_RGB)};
    gpst_image outputs[2 * N];
    gpst_warp_desc desc = desc_in_place();
    gpsti_device* device = NULL;
    gpsti_stream* stream = NULL;
    detector_args there;
    void *rois = NULL, *counts = NULL;
    gpsti_host host;
    uint64_t seed = test_seed(50);
    (void)state;
    gpsti_host_init(&host, NULL, NULL);
    assert_int_equal(backend->device_open(&host, "launch_us=2000", &device), GPST_OK);
    assert_int_equal(backend->memory_alloc(device, sizeof list, &rois), GPST_OK);
    assert_int_equal(backend->memory_alloc(device, sizeof n_used, &counts), GPST_OK);
    assert_int_equal(backend->stream_create(device, &stream), GPST_OK);
    there.rois = (gpst_roi*)rois, there.n_used = (uint32_t*)counts;
    draw_list(&seed);
    n_used[0] = N - 1, n_used[1] = 2;
    desc.rois = there.rois, desc.n_rois_used = there.n_used;
    gpst_warp* warp = make_warp(&desc);
    outputs_of(warp, in_place, outputs, 2 * N);
    gpsti_warp_args args;
    memset(&args, 0, sizeof args);
    args.warp = warp;
    args.sources = sources, args.n_sources = 2;
    args.outputs = outputs, args.n_outputs = N;
    assert_int_equal(backend->launch(stream, &detector, &there, sizeof there, NULL), GPST_OK);
    assert_int_equal(backend->launch(stream, gpsti_warp_kernel(), &args, sizeof args, NULL), GPST_OK);
    assert_int_equal(backend->stream_wait_idle(stream), GPST_OK);
    for (int s = 0; s < 2; s++) {
        run_copied(desc, list + N * s, &sources[s], copied);
        for (uint32_t i = 0; i < N; i++)
            assert_true((memcmp(in_place[N * s + (int)i], copied[i], OUT_W * OUT_H * 3) == 0) == (i < n_used[s]));
    }
    gpst_warp_destroy(warp);
    backend->stream_destroy(stream);
    backend->memory_free(device, rois, sizeof list);
    backend->memory_free(device, counts, sizeof n_used);
    backend->device_close(device);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
}

/* ---- rules ---------------------------------------------------------------------------------------- */
static void expect_refused(const gpst_warp_desc* desc, const char* text) {
    gpst_warp* warp = NULL;
    gpst_clear_reason();
    assert_int_equal(gpst_warp_create(desc, &warp), GPST_ERROR_ARGUMENT);
    assert_null(warp);
    if (!strstr(gpst_last_reason(), text))
        fail_msg("\"%s\" is not in \"%s\"", text, gpst_last_reason());
}

#define EXPECT_REFUSED(text, change)            \
    do {                                        \
        gpst_warp_desc desc = desc_in_place();  \
        change;                                 \
        expect_refused(&desc, text);            \
    } while (0)

static void rules_fire(void** state) {
    const void* const odd = (const char*)(const void*)list + 2;
    (void)state;
    EXPECT_REFUSED("n_rois=0: required", desc.n_rois = 0);
    EXPECT_REFUSED("rois=NULL: required", (desc.rois = NULL, desc.n_rois_used = NULL, desc.rois_in_place = false));
    EXPECT_REFUSED("rois=NULL: required", desc.rois = NULL);
    EXPECT_REFUSED("rois: must be NULL with list_per_item", desc.list_per_item = true);
    EXPECT_REFUSED("rois_in_place: not with list_per_item", (desc.rois = NULL, desc.list_per_item = true));
    EXPECT_REFUSED("must be a multiple of 4 with rois_in_place", desc.rois = (const gpst_roi*)odd);
    EXPECT_REFUSED("n_rois_used=", desc.n_rois_used = (const uint32_t*)odd);
    EXPECT_REFUSED("n_rois_used: only with rois_in_place", (desc.rois_in_place = false, desc.n_rois_used = n_used));
    EXPECT_REFUSED("rois_in_place: only with map=ROI", (desc.map = GPST_MAP_RESIZE, desc.n_rois = 0));
}

/* A warp for the lists of a pipeline's items has none of its own to be run with. */
static void no_list_is_no_run(void** state) {
    static uint8_t room[2][64];
    gpst_image image = GPST_ZERO, output;
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    (void)state;
    desc.map = GPST_MAP_ROI;
    desc.list_per_item = true;
    desc.n_rois = 1;
    desc.width = desc.height = 8;
    desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    image.data = room[0];
    image.width = image.height = 8;
    image.format = GPST_FORMAT_GRAY;
    gpst_warp_query_output(warp, &output);
    output.data = room[1];
    assert_int_equal(gpst_warp_run(warp, &image, &output, 1, 1), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_warp_run: the warp has list_per_item"));
    gpst_warp_destroy(warp);
}

/* It is known to nobody where they are. */
static void position_and_pipeline_refuse(void** state) {
    const gpst_warp_desc desc = desc_in_place();
    gpst_warp* warp = make_warp(&desc);
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_pipeline_desc pipeline_desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pipeline* pipeline = NULL;
    double x = -1, y = -2;
    (void)state;
    assert_int_equal(gpst_warp_position(warp, 0, 0, 0, W, H, &x, &y), GPST_ERROR_UNSUPPORTED);
    assert_true(x == -1 && y == -2);
    context_desc.backend = "cpu";
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    stage.kind = GPST_STAGE_WARP, stage.warp = warp;
    pipeline_desc.stages = &stage, pipeline_desc.n_stages = 1;
    gpst_clear_reason();
    assert_int_equal(gpst_pipeline_create(context, &pipeline_desc, &pipeline), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "stages[0].warp: rois_in_place is for gpst_warp_launch"));
    gpst_context_destroy(context);
    gpst_warp_destroy(warp);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_bits_are_those_of_copied_rectangles),
        cmocka_unit_test(what_is_out_of_range_is_the_nearest_within),
        cmocka_unit_test(only_those_that_count_are_computed),
        cmocka_unit_test(create_does_not_look_at_them),
        cmocka_unit_test(a_kernel_ahead_in_the_stream_writes_them),
        cmocka_unit_test(rules_fire),
        cmocka_unit_test(no_list_is_no_run),
        cmocka_unit_test(position_and_pipeline_refuse),
    };
    return cmocka_run_group_tests(tests, draw_noise, NULL);
}
