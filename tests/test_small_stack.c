/* tests/test_small_stack.c -- every public call on a thread whose stack is 64 KiB; musl's have 128, and an embedder's
   what it likes. What a call needs is measured by what it leaves of a pattern, and below it lies a page that cannot be
   touched. Of the 64 KiB the library may take 48: callbacks of the user's stand on what it has by then. */
#include "test.h"

#if defined(_WIN32)
int main(void) {
    printf("stacks are the system's here\n");
    return GPST_TEST_SKIP;
}
#else
#if !defined(GPST_TEST_AMALGAM)
#include "../core/machine/measure.h"
#include "../core/prefetch/prefetch.h"
#include "../core/tuning/tuner.h"
#include "../kernels/mask/mask.h"
#include "../kernels/quantise/quantise.h"
#endif

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define STACK_BYTES ((size_t)64 << 10)
#define MOST_BYTES ((size_t)48 << 10)
#define PAINT 0x5A

static char directory[] = "/tmp/gpst_stack_XXXXXX";
static char file_path[64], out_path[64];
static gpst_context* context;
static uint8_t *source, *output; /* of any picture here */

#define PICTURE_BYTES ((size_t)4 << 20)

static gpst_image image_of(uint8_t* data, uint32_t width, uint32_t height, gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = width;
    image.height = height;
    image.format = format;
    return image;
}

/* ---- what is called: true where it went well -------------------------------------------------------- */

static bool warp(gpst_warp_desc* desc, gpst_format format, gpst_dtype dtype, uint32_t n_threads) {
    gpst_warp* made = NULL;
    gpst_image from = image_of(source, 200, 120, format), to;
    from.dtype = dtype;
    if (gpst_warp_create(desc, &made) != GPST_OK)
        return false;
    gpst_warp_query_output(made, &to);
    to.data = output;
    const gpst_result result = gpst_warp_run(made, &from, &to, 1, n_threads);
    gpst_warp_destroy(made);
    return result == GPST_OK;
}

static gpst_warp_desc warp_of(gpst_map map, gpst_filter filter) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = map;
    desc.filter = filter;
    desc.width = 150;
    desc.height = 70;
    desc.format = GPST_FORMAT_RGB;
    return desc;
}

static bool resizes(void) {
    static const gpst_filter filters[] = {GPST_FILTER_NEAREST, GPST_FILTER_BILINEAR, GPST_FILTER_AREA};
    static const gpst_format formats[] = {GPST_FORMAT_RGB, GPST_FORMAT_BGRA, GPST_FORMAT_NV12, GPST_FORMAT_I420,
                                          GPST_FORMAT_JPEG_420};
    static const gpst_dtype dtypes[] = {GPST_DTYPE_U8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    bool right = true;
    for (int f = 0; f < 3; f++)
        for (int k = 0; k < 5; k++)
            for (int d = 0; d < 3; d++)
                for (int planes = 0; planes < 2; planes++) {
                    gpst_warp_desc desc = warp_of(GPST_MAP_RESIZE, filters[f]);
                    desc.dtype = dtypes[d];
                    desc.layout = planes ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
                    right = warp(&desc, formats[k], GPST_DTYPE_U8, 1) && right;
                }
    return right;
}

static bool resizes_of_wide_sources(void) {
    static const gpst_dtype dtypes[] = {GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    bool right = true;
    for (int d = 0; d < 3; d++)
        for (int area = 0; area < 2; area++) {
            gpst_warp_desc desc = warp_of(GPST_MAP_RESIZE, area ? GPST_FILTER_AREA : GPST_FILTER_BILINEAR);
            desc.dtype = GPST_DTYPE_F32;
            right = warp(&desc, GPST_FORMAT_RGB, dtypes[d], 1) && right;
        }
    return right;
}

static bool views(void) {
    bool right = true;
    for (int rotated = 0; rotated < 2; rotated++)
        for (int level = 0; level < 2; level++)
            for (int filter = 0; filter < 2; filter++)
                for (int floats = 0; floats < 2; floats++) {
                    gpst_warp_desc desc = warp_of(rotated ? GPST_MAP_ROTATE : GPST_MAP_EQUIRECT,
                                                  filter ? GPST_FILTER_AREA : GPST_FILTER_BILINEAR);
                    gpst_view view = GPST_ZERO;
                    view.hfov = rotated ? 0 : 90;
                    view.pitch = level ? 0 : 20;
                    view.roll = level ? 0 : 5;
                    desc.views = &view;
                    desc.n_views = 1;
                    desc.dtype = floats ? GPST_DTYPE_F32 : GPST_DTYPE_U8;
                    desc.layout = floats ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
                    right = warp(&desc, GPST_FORMAT_RGB, GPST_DTYPE_U8, 1) && right;
                    right = warp(&desc, GPST_FORMAT_NV12, GPST_DTYPE_U8, 1) && right;
                    right = warp(&desc, GPST_FORMAT_JPEG_420, GPST_DTYPE_U8, 1) && right;
                }
    return right;
}

static float table[2 * 150 * 70];

static bool other_maps(void) {
    bool right = true;
    gpst_affine affine = GPST_ZERO;
    gpst_roi roi = GPST_ZERO;
    affine.m[0] = affine.m[4] = 1.1;
    affine.m[1] = 0.2;
    roi.x = 10.5, roi.y = 3, roi.width = 120, roi.height = 90;
    for (int filter = 0; filter < 2; filter++) {
        gpst_warp_desc desc = warp_of(GPST_MAP_AFFINE, filter ? GPST_FILTER_AREA : GPST_FILTER_BILINEAR);
        desc.affines = &affine;
        desc.n_affines = 1;
        right = warp(&desc, GPST_FORMAT_RGB, GPST_DTYPE_U8, 1) && right;
        desc = warp_of(GPST_MAP_ROI, filter ? GPST_FILTER_AREA : GPST_FILTER_BILINEAR);
        desc.border = filter ? GPST_BORDER_EDGE : GPST_BORDER_DEFAULT;
        desc.rois = &roi;
        desc.n_rois = 1;
        right = warp(&desc, GPST_FORMAT_RGB, GPST_DTYPE_U8, 1) && right;
        desc = warp_of(GPST_MAP_TABLE, filter ? GPST_FILTER_AREA : GPST_FILTER_BILINEAR);
        desc.table = table;
        right = warp(&desc, GPST_FORMAT_RGB, GPST_DTYPE_U8, 1) && right;
    }
    return right;
}

static bool warps_on_all_cores(void) {
    gpst_warp_desc desc = warp_of(GPST_MAP_RESIZE, GPST_FILTER_BILINEAR);
    return warp(&desc, GPST_FORMAT_RGB, GPST_DTYPE_U8, 0) && warp(&desc, GPST_FORMAT_NV12, GPST_DTYPE_U8, 4);
}

static bool argmax_of(gpst_dtype dtype, gpst_layout layout, uint32_t width, uint32_t height) {
    gpst_logits logits = GPST_ZERO;
    gpst_labels labels = GPST_ZERO;
    logits.data = source;
    logits.n_classes = labels.n_classes = 7;
    logits.width = 200;
    logits.height = 120;
    logits.dtype = dtype;
    logits.layout = layout;
    labels.data = output;
    labels.width = width;
    labels.height = height;
    return gpst_mask_argmax(&logits, &labels, 1) == GPST_OK;
}

static bool argmaxes(void) {
    bool right = true;
    for (int half = 0; half < 2; half++)
        for (int planes = 0; planes < 2; planes++)
            for (int large = 0; large < 2; large++)
                right = argmax_of(half ? GPST_DTYPE_F16 : GPST_DTYPE_F32,
                                  planes ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC, large ? 500 : 200,
                                  large ? 300 : 120) &&
                        right;
    return right;
}

static bool masks(void) {
    const gpst_image from = image_of(source, 300, 200, GPST_FORMAT_GRAY);
    const gpst_image to = image_of(output, 300, 200, GPST_FORMAT_GRAY);
    const gpst_image guide = image_of(source, 300, 200, GPST_FORMAT_RGB);
    gpst_labels labels = GPST_ZERO, refined;
    gpst_bitmap bits = GPST_ZERO;
    static gpst_box boxes[256];
    static GPSTI_ALIGNAS(8) uint16_t means[201 * 304];
    gpst_mask_desc desc = GPST_ZERO;
    gpst_image state;
    bool right = true;
    for (int op = GPST_MORPH_ERODE; op <= GPST_MORPH_CLOSE; op++)
        right = gpst_mask_morph(&from, (gpst_morph)op, 5, &to, 1) == GPST_OK && right;
    right = gpst_mask_smooth(&from, GPST_SMOOTH_BOX, 5, &to, 1) == GPST_OK && right;
    right = gpst_mask_smooth(&from, GPST_SMOOTH_GAUSSIAN, 3, &to, 1) == GPST_OK && right;
    right = gpst_mask_threshold(&from, 17.0f, &to, 1) == GPST_OK && right;
    right = gpst_mask_box(&from, &boxes[0]) == GPST_OK && right;
    labels.data = source;
    labels.width = 300, labels.height = 200;
    labels.n_classes = 256;
    refined = labels;
    refined.data = output;
    right = gpst_mask_refine(&labels, NULL, 0, &refined, 1) == GPST_OK && right;
    right = gpst_mask_refine(&labels, &guide, 9, &refined, 1) == GPST_OK && right;
    right = gpst_mask_label_boxes(&labels, boxes) == GPST_OK && right;
    bits.data = output;
    bits.width = 300, bits.height = 200;
    right = gpst_mask_pack(&from, &bits, 1) == GPST_OK && right;
    desc.kind = GPST_MASK_TIME;
    right = gpst_mask_query_state(&desc, &from, &state) == GPST_OK && right;
    state.data = means;
    for (int frame = 0; frame < 2; frame++)
        right = gpst_mask_time(&desc, &from, &to, &state, frame == 0, 1) == GPST_OK && right;
    bits.data = source;
    return gpst_mask_unpack(&bits, &to, 1) == GPST_OK && right;
}

/* True, too, where there is no libturbojpeg. */
static bool jpegs(void) {
    static const uint8_t cut[] = {0xff, 0xd8, 0xff, 0xe0};
    gpst_image image = image_of(source, 200, 120, GPST_FORMAT_RGB);
    gpst_jpeg_encode_desc desc = GPST_ZERO;
    gpst_jpeg* jpeg = NULL;
    gpst_jpeg_info info;
    size_t bytes = PICTURE_BYTES;
    bool right = GPST_FAILED(gpst_jpeg_read_header(cut, sizeof cut, &info));
    const gpst_result made = gpst_jpeg_create(NULL, &jpeg);
    if (made != GPST_OK)
        return made == GPST_ERROR_UNSUPPORTED && right;
    desc.chroma = GPST_FORMAT_JPEG_420;
    right = gpst_jpeg_encode(jpeg, &image, &desc, output, &bytes) == GPST_OK && right;
    right = gpst_jpeg_read_header(output, bytes, &info) == GPST_OK && right;
    right = gpst_jpeg_decode(jpeg, output, bytes, NULL, &image, NULL) == GPST_OK && right;
    right = gpst_jpeg_decode(jpeg, output, bytes - 2, NULL, &image, NULL) == GPST_OK && right;
    image.format = info.planes;
    right = gpst_jpeg_decode(jpeg, output, bytes, NULL, &image, NULL) == GPST_OK && right;
    gpst_jpeg_destroy(jpeg);
    return right;
}

static bool quantises(void) {
    gpst_channels channels = GPST_ZERO;
    gpst_calibration_desc desc = GPST_ZERO;
    gpst_calibration* calibration = NULL;
    gpst_calibration_info info;
    float scale = 0.5f;
    channels.data = source;
    channels.dtype = GPST_DTYPE_F16;
    channels.n_channels = 1;
    channels.n_outer = 1;
    channels.n_inner = 4000;
    bool right = gpst_quantise(&channels, &scale, (int8_t*)output, 1) == GPST_OK;
    if (gpst_calibration_create(&desc, &calibration) != GPST_OK)
        return false;
    right = gpst_calibration_add(calibration, &channels) == GPST_OK && right;
    right = gpst_calibration_query(calibration, 0, &info) == GPST_OK && right;
    right = gpst_calibration_scales(calibration, 99.0, &scale) == GPST_OK && right;
    gpst_calibration_destroy(calibration);
    channels.data = output + 8192;
    return gpst_dequantise((const int8_t*)source, &scale, &channels) == GPST_OK && right;
}

/* ---- pipelines: files, decoded, warped on the CPU and on the simulated device, written --------------- */

static gpst_warp* resize;
static bool has_sink, unknown_length;

static gpst_result give(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data;
    if (index >= 40)
        return GPST_END;
    out->path = file_path;
    return GPST_OK;
}

static gpst_result decode(void* user_data, gpst_task* task) {
    const gpst_image shape = image_of(NULL, 200, 120, GPST_FORMAT_RGB);
    gpst_image image;
    (void)user_data;
    return gpst_task_map_picture(task, 0, 0, &shape, 0, &image);
}

static gpst_result encode(void* user_data, gpst_task* task) {
    char path[100];
    void* room = NULL;
    (void)user_data;
    const gpst_result result = gpst_task_encoded(task, 1000, &room);
    if (GPST_FAILED(result))
        return result;
    memset(room, 7, 1000);
    snprintf(path, sizeof path, "%s_%u", out_path, (unsigned)(task->item->index % 4 + 4 * task->picture_index));
    return gpst_task_emit(task, path, 1000);
}

static gpst_result take(void* user_data, const gpst_item* item) {
    (void)user_data, (void)item;
    return GPST_OK;
}

static bool run(gpst_context* in, gpst_run_mode mode) {
    static gpst_stats stats;
    static gpst_tuner_report report;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stages[5];
    gpst_pipeline* pipeline = NULL;
    memset(stages, 0, sizeof stages);
    stages[0].kind = GPST_STAGE_READ;
    stages[1].kind = stages[3].kind = GPST_STAGE_HOST;
    stages[1].func = decode;
    stages[2].kind = GPST_STAGE_WARP;
    stages[2].warp = resize;
    stages[3].func = encode;
    stages[4].kind = GPST_STAGE_WRITE;
    desc.stages = stages;
    desc.n_stages = 5;
    desc.source = give;
    desc.sink = has_sink ? take : NULL;
    desc.n_items_expected = unknown_length ? 0 : 40;
    desc.mode = mode;
    desc.fsync = GPST_FSYNC_NONE;
    if (gpst_pipeline_create(in, &desc, &pipeline) != GPST_OK)
        return false;
    const gpst_result result = gpst_pipeline_run(pipeline);
    gpst_pipeline_query_stats(pipeline, &stats);
    gpst_pipeline_query_tuner(pipeline, &report);
    return gpst_pipeline_destroy(pipeline) == GPST_OK && result == GPST_OK && stats.items_ok == 40;
}

static bool runs_in(gpst_context* in) {
    static const gpst_run_mode modes[] = {GPST_RUN_PLAIN_SERIAL, GPST_RUN_PLAIN_INSIDE, GPST_RUN_ENGINE,
                                          GPST_RUN_DEFAULT, GPST_RUN_DEFAULT}; /* the last one knows the job */
    bool right = true;
    for (size_t m = 0; m < sizeof modes / sizeof modes[0]; m++)
        for (int way = 0; way < 4; way++) {
            has_sink = (way & 1) != 0;
            unknown_length = (way & 2) != 0;
            right = run(in, modes[m]) && right;
        }
    return right;
}

static bool runs(void) { return runs_in(context); }

static bool runs_on_a_simulated_device(void) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* in = NULL;
    desc.backend = "sim";
    desc.n_workers = 2;
    if (gpst_context_create(&desc, &in) != GPST_OK)
        return false;
    const bool right = runs_in(in);
    gpst_context_trim(in);
    gpst_context_destroy(in);
    return right;
}

static bool pushes(void) {
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stages[3];
    gpst_pipeline* pipeline = NULL;
    gpst_input input = GPST_ZERO;
    bool right = true;
    memset(stages, 0, sizeof stages);
    stages[0].kind = GPST_STAGE_READ;
    stages[1].kind = GPST_STAGE_HOST;
    stages[1].func = decode;
    stages[2].kind = GPST_STAGE_WARP;
    stages[2].warp = resize;
    desc.stages = stages;
    desc.n_stages = 3;
    input.path = file_path;
    if (gpst_pipeline_create(context, &desc, &pipeline) != GPST_OK)
        return false;
    for (int i = 0; i < 20; i++) {
        const gpst_item* item = NULL;
        right = gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL) == GPST_OK && right;
        right = gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item) == GPST_OK && right;
        gpst_pipeline_release(pipeline, item);
    }
    right = gpst_pipeline_drain(pipeline, GPST_FOREVER) == GPST_OK && right;
    return gpst_pipeline_destroy(pipeline) == GPST_OK && right;
}

/* ---- the rest ----------------------------------------------------------------------------------------- */

static bool contexts(void) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context_info info;
    gpst_context* made = NULL;
    desc.pin = "cores";
    desc.n_workers = 2;
    if (gpst_context_create(&desc, &made) != GPST_OK)
        return false;
    gpst_context_query_info(made, &info);
    gpst_context_destroy(made);
    return true;
}

static bool probes(void) {
    static gpst_probe_info info;
    return gpst_probe(file_path, &info) == GPST_OK;
}

static bool measures(void) {
    static gpst_measure_info info;
    return gpst_measure(context, file_path, 20000000, &info) == GPST_OK;
}

static bool reads(void) {
    static const char* const kinds[] = {"pread", "auto", "direct"};
    bool right = true;
    for (int k = 0; k < 3; k++) {
        gpst_reader_desc desc = GPST_ZERO;
        gpst_reader_info info;
        gpst_reader* reader = NULL;
        gpst_read read;
        memset(&read, 0, sizeof read);
        desc.kind = kinds[k];
        read.path = file_path;
        read.data = output;
        read.capacity_bytes = PICTURE_BYTES;
        if (gpst_reader_create(context, &desc, &reader) != GPST_OK)
            return false;
        right = gpst_reader_read_now(reader, &read) == GPST_OK && right;
        right = gpst_reader_submit(reader, &read) == GPST_OK && right;
        gpst_reader_query_info(reader, &info);
        gpst_reader_destroy(reader);
    }
    return right;
}

static bool pools_and_rings(void) {
    gpst_pool* pool = NULL;
    gpst_buffer buffer;
    gpst_ring_desc desc = GPST_ZERO;
    gpst_ring* ring = NULL;
    gpst_ring_slot slot;
    if (gpst_pool_create(context, NULL, &pool) != GPST_OK)
        return false;
    bool right = gpst_pool_acquire(pool, 3000000, 0, &buffer) == GPST_OK;
    gpst_pool_release(pool, &buffer);
    char text[1024];
    gpst_memory_use use;
    right = gpst_pool_acquire(pool, SIZE_MAX / 4, 0, &buffer) == GPST_ERROR_BUDGET && right; /* the log says all */
    right = gpst_context_dump_memory(context, text, sizeof text) > 0 && right;
    right = gpst_pool_dump(pool, text, sizeof text) > 0 && right;
    gpst_context_query_memory(context, &use);
    gpst_pool_trim(pool);
    right = gpst_pool_destroy(pool) == GPST_OK && right;
    desc.max_slots = 8;
    desc.slot_bytes = 100;
    if (gpst_ring_create(context, &desc, &ring) != GPST_OK)
        return false;
    right = gpst_ring_acquire(ring, 0, &slot) == GPST_OK && right;
    gpst_ring_commit(ring, &slot);
    right = gpst_ring_take(ring, 0, &slot) == GPST_OK && right;
    gpst_ring_release(ring, &slot);
    gpst_ring_destroy(ring);
    gpst_ring_reader* reader = NULL;
    desc.max_readers = 2;
    desc.streams = true;
    if (gpst_ring_create(context, &desc, &ring) != GPST_OK)
        return false;
    right = gpst_ring_reader_create(ring, &reader) == GPST_OK && right;
    right = gpst_ring_acquire_on(ring, 0, NULL, &slot) == GPST_OK && right;
    right = gpst_ring_commit_on(ring, &slot, NULL) == GPST_OK && right;
    right = gpst_ring_reader_take(reader, 0, NULL, &slot) == GPST_OK && right;
    right = gpst_ring_slot_wait(ring, &slot, 0) == GPST_OK && right;
    right = gpst_ring_reader_release(reader, &slot, NULL) == GPST_OK && right;
    gpst_ring_reader_destroy(reader);
    gpst_ring_destroy(ring);
    return right;
}

static bool prefetches(void) {
    const char* const paths[] = {file_path, file_path, "/none/such"};
    gpst_prefetch_desc desc = GPST_ZERO;
    gpst_prefetch* prefetch = NULL;
    gpst_prefetch_info info;
    const gpst_frame* frame = NULL;
    desc.paths = paths;
    desc.n_paths = 3;
    if (gpst_prefetch_create(context, &desc, &prefetch) != GPST_OK)
        return false;
    bool right = gpst_prefetch_get(prefetch, 0, &frame) == GPST_OK;
    gpst_prefetch_release(prefetch, frame);
    right = GPST_FAILED(gpst_prefetch_get(prefetch, 2, &frame)) && right;
    gpst_prefetch_query_info(prefetch, &info);
    gpst_prefetch_destroy(prefetch);
    return right;
}

static bool prefetches_pictures(void) {
    static char path[80];
    static const gpst_decode_desc decode;
    const char* const paths[] = {path, file_path};
    const gpst_image image = image_of(source, 200, 120, GPST_FORMAT_RGB);
    gpst_prefetch_desc desc = GPST_ZERO;
    gpst_prefetch* prefetch = NULL;
    const gpst_frame* frame = NULL;
    gpst_jpeg* jpeg = NULL;
    size_t bytes = PICTURE_BYTES;
    if (gpst_jpeg_create(NULL, &jpeg) != GPST_OK)
        return true;
    bool right = gpst_jpeg_encode(jpeg, &image, NULL, output, &bytes) == GPST_OK;
    gpst_jpeg_destroy(jpeg);
    snprintf(path, sizeof path, "%s.jpg", file_path);
    FILE* const file = fopen(path, "wb");
    right = file && fwrite(output, 1, bytes, file) == bytes && right;
    right = file && fclose(file) == 0 && right;
    desc.paths = paths;
    desc.n_paths = 2;
    desc.decode = &decode;
    right = gpst_prefetch_create(context, &desc, &prefetch) == GPST_OK && right;
    right = gpst_prefetch_get(prefetch, 0, &frame) == GPST_OK && frame->picture.width == 200 && right;
    gpst_prefetch_release(prefetch, frame);
    right = GPST_FAILED(gpst_prefetch_get(prefetch, 1, &frame)) && right; /* no picture */
    gpst_prefetch_destroy(prefetch);
    (void)unlink(path);
    return right;
}

static bool settings(void) {
    gpst_settings parsed;
    char text[256];
    return gpst_settings_parse("loop=engine workers=3 slots=9 # all of it", &parsed) == GPST_OK &&
           gpst_settings_format(&parsed, text, sizeof text) == GPST_OK && gpst_build_info()[0] != '\0';
}

/* ---- on a small stack ----------------------------------------------------------------------------------- */

typedef struct stack_case {
    const char* name;
    bool (*call)(void);
    bool right;
} stack_case;

static void* thread_main(void* arg) {
    stack_case* const self = (stack_case*)arg;
    self->right = self->call();
    return NULL;
}

/* How much of the stack was used, by the lowest byte that isn't the pattern any more. */
static size_t used_bytes(const uint8_t* stack) {
    size_t untouched = 0;
    while (untouched < STACK_BYTES && stack[untouched] == PAINT)
        untouched++;
    return STACK_BYTES - untouched;
}

static size_t call_on_small_stack(stack_case* c) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint8_t* const memory =
        (uint8_t*)mmap(NULL, STACK_BYTES + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pthread_attr_t attributes;
    pthread_t thread;
    assert_true(memory != MAP_FAILED);
    assert_int_equal(mprotect(memory, page, PROT_NONE), 0);
    memset(memory + page, PAINT, STACK_BYTES);
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstack(&attributes, memory + page, STACK_BYTES), 0);
    printf("%-28s ", c->name); /* which one it is, if it crashes */
    fflush(stdout);
    assert_int_equal(pthread_create(&thread, &attributes, thread_main, c), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(pthread_attr_destroy(&attributes), 0);
    const size_t used = used_bytes(memory + page);
    printf("%6u bytes%s\n", (unsigned)used, c->right ? "" : ", and it failed");
    assert_int_equal(munmap(memory, STACK_BYTES + page), 0);
    return used;
}

static bool do_nothing(void) { return true; }

static stack_case cases[] = {
    {"nothing", do_nothing, false}, /* what the C library has there itself */
    {"resizes", resizes, false},
    {"resizes of wide sources", resizes_of_wide_sources, false},
    {"views", views, false},
    {"other maps", other_maps, false},
    {"warps on all cores", warps_on_all_cores, false},
    {"argmax", argmaxes, false},
    {"masks", masks, false},
    {"JPEG", jpegs, false},
    {"quantise and calibration", quantises, false},
    {"contexts", contexts, false},
    {"probe", probes, false},
    {"measure", measures, false},
    {"readers", reads, false},
    {"pools and rings", pools_and_rings, false},
    {"prefetch", prefetches, false},
    {"prefetched pictures", prefetches_pictures, false},
    {"settings", settings, false},
    {"pushed items", pushes, false},
    {"runs", runs, false},
    {"runs on sim", runs_on_a_simulated_device, false},
};

static void test_calls_on_a_small_stack(void** state) {
    static const char* const levels[] = {"", "avx2", "portable"};
    bool right = true;
    (void)state;
    if (TEST_INSTRUMENTED)
        test_skip("instrumented: frames are others, and larger");
#if defined(__GNUC__) && !defined(__OPTIMIZE__)
    test_skip("not optimised: each vector has a place of its own");
#endif
    for (int level = 0; level < 3; level++) {
        size_t own = 0;
        if (level > 0)
            (void)setenv("GPUSTAGE_CPU", levels[level], 1);
        printf("-- %s\n", level > 0 ? levels[level] : "the machine's level");
        for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
            const size_t used = call_on_small_stack(&cases[c]);
            own = c == 0 ? used : own;
            right = right && cases[c].right && used - own <= MOST_BYTES;
        }
    }
    assert_true(right);
}

static int set_up(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_warp_desc warp_desc = warp_of(GPST_MAP_RESIZE, GPST_FILTER_BILINEAR);
    (void)state;
    if (!mkdtemp(directory))
        return -1;
    snprintf(file_path, sizeof file_path, "%s/file", directory);
    snprintf(out_path, sizeof out_path, "%s/out", directory);
    source = (uint8_t*)gpsti_aligned_alloc(PICTURE_BYTES, 64);
    output = (uint8_t*)gpsti_aligned_alloc(PICTURE_BYTES, 64);
    memset(source, 0, PICTURE_BYTES);
    for (size_t i = 0; i < PICTURE_BYTES; i += 3)
        source[i] = (uint8_t)(i * 7);
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        table[i] = (float)(i % 199) * 0.6f;
    FILE* const file = fopen(file_path, "wb");
    if (!file || fwrite(source, 1, 200 * 120 * 3, file) != 200 * 120 * 3 || fclose(file) != 0)
        return -1;
    desc.backend = "cpu";
    desc.n_workers = 2;
    return gpst_context_create(&desc, &context) == GPST_OK && gpst_warp_create(&warp_desc, &resize) == GPST_OK ? 0 : -1;
}

static int tear_down(void** state) {
    char path[100];
    (void)state;
    gpst_warp_destroy(resize);
    gpst_context_destroy(context);
    for (unsigned i = 0; i < 4; i++) {
        snprintf(path, sizeof path, "%s_%u", out_path, i);
        (void)unlink(path);
    }
    (void)unlink(file_path);
    (void)rmdir(directory);
    gpsti_aligned_free(source);
    gpsti_aligned_free(output);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls_on_a_small_stack)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
#endif
