/* tests/test_pipeline_codec.c -- DECODE and ENCODE stages: files of every kind, on the cores and by a stand-in for nvJPEG
   on the simulated device; what is whose, what crosses the link, and that nothing is lost where something fails. The
   expected bytes come from gpst_jpeg_decode, gpst_warp_run and gpst_jpeg_encode, called one after the other. */
#include "test.h"
#include "test_allocator.h"
#include "test_files.h"

#include <stdlib.h>

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no turbojpeg.h: install libturbojpeg0-dev\n");
    return GPST_TEST_SKIP;
}
#else

#define N_VIEWS 3
#define MOST_FILES 48

typedef struct file {
    char path[TEST_PATH_BYTES];
    uint64_t views[N_VIEWS]; /* hashes of the files expected */
} file;

typedef struct run {
    file files[MOST_FILES];
    uint64_t n_files;
    gpst_warp* warp;
    gpst_decode_desc decode;
    gpst_encode_desc encode;
    const char* backend;
    gpst_run_mode mode;
    uint64_t n_expected; /* told to the pipeline */
    uint32_t n_workers;
    uint64_t max_host_bytes;
    bool twice; /* the file is decoded by a second stage, too, and the views of the first are encoded twice */
    /* what came */
    gpsti_a32 n_wrong;
    uint64_t n_ok, n_failed, n_device, n_encoded_device, n_notes, file_bytes;
    gpsti_a64 encoded_bytes, n_encoded;
    char reason[GPST_REASON_BYTES], note[256], stage[32];
    const char *decoder, *encoder; /* of the last item */
    bool fails_encoded;            /* take_encoded does */
    gpst_stats stats;
    test_log log;
} run;

static uint64_t hash_of(const void* data, size_t bytes) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ ((const uint8_t*)data)[i]) * 0x100000001b3u;
    return hash;
}

/* ---- files and what is expected of them ------------------------------------------------------------- */

static void paint(uint8_t* data, uint32_t width, uint32_t height, uint32_t n_channels, uint32_t seed) {
    uint32_t noise = seed + 1;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t i = 0; i < width * n_channels; i++) {
            noise = noise * 1664525u + 1013904223u;
            *data++ = (uint8_t)(i * 3 / n_channels + y * 5 + seed * 29 + (noise >> 28));
        }
}

static void expect_views(run* self, file* one, const gpst_image* picture) {
    static uint8_t pixels[N_VIEWS][48 * 32 * 3], encoded[65536];
    gpst_image views[N_VIEWS];
    gpst_jpeg* jpeg = NULL;
    assert_int_equal(gpst_jpeg_create(NULL, &jpeg), GPST_OK);
    for (int v = 0; v < N_VIEWS; v++) {
        gpst_warp_query_output(self->warp, &views[v]);
        views[v].data = pixels[v];
    }
    assert_int_equal(gpst_warp_run(self->warp, picture, views, N_VIEWS, 1), GPST_OK);
    for (int v = 0; v < N_VIEWS; v++) {
        size_t bytes = sizeof encoded;
        assert_int_equal(gpst_jpeg_encode(jpeg, &views[v], &self->encode.jpeg, encoded, &bytes), GPST_OK);
        one->views[v] = hash_of(encoded, bytes);
    }
    gpst_jpeg_destroy(jpeg);
}

static file* add_file(run* self, const char* extension, const void* data, size_t bytes) {
    file* const one = &self->files[self->n_files];
    snprintf(one->path, sizeof one->path, "%s/f%02u.%s", test_directory, (unsigned)self->n_files, extension);
    test_file_make(one->path, data, bytes);
    self->n_files++;
    return one;
}

/* A JPEG with this chroma (GRAY: of one component), and what the plain calls make of it. */
static size_t add_jpeg(run* self, uint32_t width, uint32_t height, gpst_format chroma, uint8_t* kept) {
    static uint8_t pixels[200 * 200 * 3], encoded[262144];
    gpst_image image = GPST_ZERO, picture;
    gpst_jpeg_encode_desc desc = GPST_ZERO;
    gpst_jpeg* jpeg = NULL;
    size_t bytes = sizeof encoded;
    image.data = pixels;
    image.width = width;
    image.height = height;
    image.format = chroma == GPST_FORMAT_GRAY ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    paint(pixels, width, height, gpst_format_channels(image.format), (uint32_t)self->n_files);
    desc.quality = 90;
    desc.chroma = chroma == GPST_FORMAT_GRAY ? GPST_FORMAT_INVALID : chroma;
    assert_int_equal(gpst_jpeg_create(NULL, &jpeg), GPST_OK);
    assert_int_equal(gpst_jpeg_encode(jpeg, &image, &desc, encoded, &bytes), GPST_OK);
    picture = image;
    assert_int_equal(gpst_jpeg_decode(jpeg, encoded, bytes, NULL, &picture, NULL), GPST_OK);
    gpst_jpeg_destroy(jpeg);
    expect_views(self, add_file(self, "jpg", encoded, bytes), &picture);
    self->file_bytes += bytes;
    if (kept)
        memcpy(kept, encoded, bytes);
    return bytes;
}

static void add_all_jpegs(run* self, int n) {
    static const gpst_format chromas[] = {GPST_FORMAT_JPEG_420, GPST_FORMAT_JPEG_444, GPST_FORMAT_JPEG_422,
                                          GPST_FORMAT_JPEG_440, GPST_FORMAT_GRAY};
    for (int i = 0; i < n; i++)
        (void)add_jpeg(self, 64 + (uint32_t)i % 9, 40 + (uint32_t)i % 7, chromas[i % 5], NULL);
}

/* ---- runs -------------------------------------------------------------------------------------------- */

static gpst_result next_path(void* user_data, uint64_t index, gpst_input* out) {
    run* const self = (run*)user_data;
    if (index >= self->n_files)
        return GPST_END;
    out->path = self->files[index].path;
    return GPST_OK;
}

static gpst_result take_encoded(void* user_data, gpst_task* task) {
    run* const self = (run*)user_data;
    const file* const one = &self->files[task->item->index];
    if (self->fails_encoded)
        return gpst_task_fail(task, GPST_ERROR_IO, "not taken");
    if (hash_of(task->encoded, task->encoded_bytes) != one->views[task->picture_index])
        (void)gpsti_a32_add(&self->n_wrong, 1);
    gpsti_a64_add(&self->encoded_bytes, task->encoded_bytes);
    gpsti_a64_add(&self->n_encoded, 1);
    return GPST_OK;
}

static gpst_result take_plain(void* user_data, gpst_task* task) {
    run* const self = (run*)user_data;
    if (task->encoded_bytes < 48 * 32 * 3 || memcmp(task->encoded, "P6", 2) != 0)
        (void)gpsti_a32_add(&self->n_wrong, 1);
    gpsti_a64_add(&self->n_encoded, 1);
    return GPST_OK;
}

static gpst_result take_item(void* user_data, const gpst_item* item) {
    run* const self = (run*)user_data;
    self->n_ok += item->result == GPST_OK;
    self->n_failed += GPST_FAILED(item->result);
    self->n_device += strcmp(item->decoder, "nvJPEG") == 0;
    self->n_encoded_device += strcmp(item->encoder, "nvJPEG") == 0;
    self->decoder = item->decoder;
    self->encoder = item->encoder;
    if (GPST_FAILED(item->result)) {
        snprintf(self->reason, sizeof self->reason, "%s", item->reason);
        snprintf(self->stage, sizeof self->stage, "%s", item->stage);
    }
    if (item->note[0]) {
        self->n_notes++;
        snprintf(self->note, sizeof self->note, "%s", item->note);
    }
    return GPST_OK;
}

static void open_run(run* self) {
    gpst_warp_desc warp = GPST_ZERO;
    static const gpst_view views[N_VIEWS] = {{0, 0, 0, 90, 0}, {120, 10, 0, 90, 0}, {240, -20, 5, 90, 0}};
    memset(self, 0, sizeof *self);
    test_directory_make();
    warp.map = GPST_MAP_EQUIRECT;
    warp.views = views;
    warp.n_views = N_VIEWS;
    warp.width = 48;
    warp.height = 32;
    warp.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&warp, &self->warp), GPST_OK);
    self->backend = "cpu";
    self->encode.jpeg.quality = 80;
    self->n_workers = 3;
}

static uint32_t make_stages(run* self, gpst_stage_desc stages[8]) {
    static const gpst_encode_desc plain = {GPST_CODEC_EXACT, GPST_FILE_PNM, {0, GPST_FORMAT_INVALID, false, 0}};
    uint32_t n = 0;
    gpst_stage_read(&stages[n++]);
    gpst_stage_decode(&stages[n++], 0, &self->decode);
    if (self->twice)
        gpst_stage_decode(&stages[n++], 2, &self->decode);
    gpst_stage_warp(&stages[n++], 0, 1, self->warp);
    if (self->twice)
        gpst_stage_warp(&stages[n++], 2, 3, self->warp);
    gpst_stage_encode(&stages[n++], 1, &self->encode, take_encoded, self);
    if (self->twice) {
        gpst_stage_encode(&stages[n++], 1, &plain, take_plain, self);
        gpst_stage_encode(&stages[n++], 3, &self->encode, take_encoded, self);
    }
    return n;
}

static void close_run(run* self) {
    gpst_warp_destroy(self->warp);
    test_directory_remove();
}

static const gpst_path* path_of(const run* self, const char* what) {
    for (uint32_t k = 0; k < self->stats.n_paths; k++)
        if (!strcmp(self->stats.paths[k].what, what))
            return &self->stats.paths[k];
    return NULL;
}

static void go(run* self) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_stage_desc stages[8];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    self->n_ok = self->n_failed = self->n_device = self->n_encoded_device = self->n_notes = 0;
    gpsti_a64_store(&self->encoded_bytes, 0);
    gpsti_a64_store(&self->n_encoded, 0);
    gpsti_a32_store(&self->n_wrong, 0);
    context_desc.backend = self->backend;
    context_desc.n_workers = self->n_workers;
    context_desc.max_host_bytes = self->max_host_bytes;
    context_desc.logger = test_log_hooks(&self->log);
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    desc.n_stages = make_stages(self, stages);
    desc.stages = stages;
    desc.source = next_path;
    desc.source_user_data = self;
    desc.n_items_expected = self->n_expected;
    desc.sink = take_item;
    desc.sink_user_data = self;
    desc.mode = self->mode;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(pipeline);
    assert_true(result == GPST_OK || result == GPST_PARTIAL);
    gpst_pipeline_query_stats(pipeline, &self->stats);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
    assert_int_equal(self->n_ok + self->n_failed, self->n_files);
}

static void check_whole(run* self) {
    assert_int_equal(self->n_failed, 0);
    assert_int_equal(gpsti_a32_load(&self->n_wrong), 0);
}

/* ---- on the cores -------------------------------------------------------------------------------------- */

/* On a device with memory of its own DECODE gives planes, on the cpu RGB: the same views. */
static void test_the_plain_calls(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL, GPST_RUN_DEFAULT};
    run self;
    (void)state;
    open_run(&self);
    add_all_jpegs(&self, 20);
    for (int b = 0; b < 2; b++)
        for (int m = 0; m < 3; m++) {
            self.backend = backends[b];
            self.mode = modes[m];
            go(&self);
            check_whole(&self);
            assert_int_equal(self.n_device, 0);
            assert_true(self.stats.verdict.share[GPST_RESOURCE_JPEG] <= 0.0);
            assert_string_equal(path_of(&self, "jpeg")->taken, "cores");
            assert_string_equal(path_of(&self, "jpeg")->why_not, "nvJPEG: codec=EXACT");
        }
    close_run(&self);
}

static gpst_result decode_own(void* user_data, gpst_task* task) {
    gpst_image shape = GPST_ZERO, picture;
    (void)user_data;
    shape.width = shape.height = 4;
    shape.format = GPST_FORMAT_GRAY;
    const gpst_result result = gpst_task_set_picture(task, 0, 0, &shape, &picture);
    if (!GPST_FAILED(result))
        memset(picture.data, 77, 16);
    return result;
}

static gpst_result fail_own(void* user_data, gpst_task* task) {
    (void)user_data;
    return gpst_task_fail(task, GPST_ERROR_FORMAT, "not mine either");
}

static void run_one(run* self, const void* data, size_t bytes, gpst_stage_func func, gpst_result expected) {
    gpst_context* context = NULL;
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    self->n_files = 0;
    (void)add_file(self, "any", data, bytes);
    context_desc.backend = "cpu";
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    gpst_stage_read(&stages[0]);
    gpst_stage_decode(&stages[1], 0, &self->decode);
    stages[1].func = func;
    desc.stages = stages;
    desc.n_stages = 2;
    desc.source = next_path;
    desc.source_user_data = self;
    desc.sink = take_item;
    desc.sink_user_data = self;
    self->n_ok = self->n_failed = self->n_notes = 0;
    self->note[0] = '\0';
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), expected);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
}

static void test_kinds_and_faults(void** state) {
    static uint8_t jpeg[262144], changed[262144];
    run self;
    (void)state;
    open_run(&self);
    const size_t bytes = add_jpeg(&self, 90, 70, GPST_FORMAT_JPEG_420, jpeg);
    run_one(&self, "P5 2 2 255\n1234", 15, NULL, GPST_OK);
    assert_string_equal(self.decoder, "PNM");
    run_one(&self, "P5 2 2 255\n123", 14, NULL, GPST_PARTIAL);
    assert_string_equal(self.decoder, "");
    run_one(&self, "what is this", 12, decode_own, GPST_OK);
    assert_string_equal(self.decoder, "func");
    run_one(&self, "what is this", 12, fail_own, GPST_PARTIAL);
    assert_string_equal(self.decoder, "");
    run_one(&self, "what is this", 12, NULL, GPST_PARTIAL);
    assert_string_equal(self.decoder, "");
    assert_non_null(strstr(self.reason, "not a "));
    assert_string_equal(self.stage, "decode");
    run_one(&self, "", 0, NULL, GPST_PARTIAL);
    assert_string_equal(self.decoder, "");
    assert_non_null(strstr(self.reason, "the file is empty"));

    /* No end marker behind whole data: mended, and said. */
    run_one(&self, jpeg, bytes - 2, NULL, GPST_OK);
    assert_int_equal(self.n_notes, 1);
    assert_int_equal(strncmp(self.note, "mended: ", 8), 0);
    run_one(&self, jpeg, bytes, NULL, GPST_OK);
    assert_int_equal(self.n_notes, 0);

    /* A third is missing: an error, or kept. */
    memcpy(changed, jpeg, bytes);
    run_one(&self, changed, bytes * 2 / 3, NULL, GPST_PARTIAL);
    assert_int_equal(strncmp(self.reason, "JPEG: ", 6), 0);
    assert_string_equal(self.decoder, "");
    self.decode.on_damage = GPST_DAMAGE_KEEP;
    run_one(&self, changed, bytes * 2 / 3, NULL, GPST_OK);
    assert_int_equal(strncmp(self.note, "damaged: ", 9), 0);
    assert_string_equal(self.decoder, "libjpeg-turbo");

    self.decode.max_pixels = 90 * 70 - 1;
    run_one(&self, jpeg, bytes, NULL, GPST_PARTIAL);
    assert_string_equal(self.reason, "JPEG: 90x70 are 6300 pixels; at most 6299 here (max_pixels)");
    self.decode.max_pixels = 90 * 70;
    self.decode.max_bytes = 18900;
    run_one(&self, jpeg, bytes, NULL, GPST_PARTIAL);
    assert_non_null(strstr(self.reason, "at most 18900 here (max_bytes)"));
    self.decode.max_bytes = 1048576;
    run_one(&self, jpeg, bytes, NULL, GPST_OK);
    close_run(&self);
}

static void refuse_as(gpst_result result, run* self, const gpst_stage_desc* stages, uint32_t n_stages,
                      const char* sentence) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    context_desc.backend = "cpu";
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    desc.stages = stages;
    desc.n_stages = n_stages;
    desc.source = next_path;
    desc.source_user_data = self;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), result);
    if (GPST_FAILED(result) && !strstr(gpst_last_reason(), sentence))
        fail_msg("\"%s\" is not in \"%s\"", sentence, gpst_last_reason());
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
}

static void refuse(run* self, const gpst_stage_desc* stages, uint32_t n_stages, const char* sentence) {
    refuse_as(GPST_ERROR_ARGUMENT, self, stages, n_stages, sentence);
}

/* Whether what libturbojpeg 3 alone can is there: refused ahead of any item, else. */
static void test_an_older_library(void** state) {
    gpst_stage_desc stages[4];
    gpst_jpeg* jpeg = NULL;
    run self;
    (void)state;
    open_run(&self);
    assert_int_equal(gpst_jpeg_create(NULL, &jpeg), GPST_OK);
    const gpst_result result = jpeg->calls->set ? GPST_OK : GPST_ERROR_UNSUPPORTED;
    gpst_jpeg_destroy(jpeg);
    gpst_stage_read(&stages[0]);
    gpst_stage_decode(&stages[1], 0, NULL);
    gpst_stage_warp(&stages[2], 0, 1, self.warp);
    gpst_stage_encode(&stages[3], 1, &self.encode, take_encoded, &self);
    self.encode.jpeg.optimise = true;
    refuse_as(result, &self, stages, 4, "gpst_pipeline_create: stages[3].encode->jpeg.optimise: needs libturbojpeg 3 or "
                                        "later; libturbojpeg 2 was found: /");
    self.encode.jpeg.optimise = false;
    self.encode.jpeg.restart_rows = 2;
    refuse_as(result, &self, stages, 4, "stages[3].encode->jpeg.restart_rows: needs libturbojpeg 3");
    self.encode.kind = GPST_FILE_PNM;
    refuse_as(GPST_OK, &self, stages, 4, "");
    close_run(&self);
}

static void test_rules(void** state) {
    gpst_stage_desc stages[4];
    run self;
    (void)state;
    open_run(&self);
    gpst_stage_decode(&stages[0], 0, NULL);
    refuse(&self, stages, 1, "stages[0].kind=DECODE: no READ stage reads a file");
    gpst_stage_read(&stages[0]);
    gpst_stage_decode(&stages[1], 0, NULL);
    gpst_stage_warp(&stages[2], 0, 1, self.warp);
    gpst_stage_encode(&stages[3], 1, &self.encode, NULL, NULL);
    refuse(&self, stages, 4, "stages[3].func=NULL: required for HOST, DEVICE and ENCODE");
    stages[3].func = take_encoded;
    self.encode.jpeg.quality = 101;
    refuse(&self, stages, 4, "stages[3].encode: ");
    self.encode.jpeg.quality = 0;
    self.encode.kind = (gpst_file_kind)9;
    refuse(&self, stages, 4, "stages[3].encode: kind=9: unknown");
    self.encode.kind = GPST_FILE_UNKNOWN;
    self.encode.codec = (gpst_codec)3;
    refuse(&self, stages, 4, "stages[3].encode: codec=3: unknown");
    self.encode.codec = GPST_CODEC_EXACT;
    stages[3].decode = &self.decode;
    refuse(&self, stages, 4, "stages[3].decode: only for DECODE");
    stages[3].decode = NULL;
    stages[1].encode = &self.encode;
    refuse(&self, stages, 4, "stages[1].encode: only for ENCODE");
    stages[1].encode = NULL;
    stages[1].reads = GPST_SET(2);
    refuse(&self, stages, 4, "DECODE writes one set and reads none");
    stages[1].reads = 0;
    stages[3].writes = GPST_SET(2);
    refuse(&self, stages, 4, "ENCODE reads one set and writes none");
    close_run(&self);
}

/* ---- by the device ------------------------------------------------------------------------------------ */

static void use_fake(const char* engines, const char* fail) {
    setenv("GPUSTAGE_LIBNVJPEG", GPST_TEST_FAKES "/nvjpeg.so", 1);
    setenv("FAKE_NVJPEG_ENGINES", engines, 1);
    setenv("FAKE_NVJPEG_FAIL", fail, 1);
}

static void open_device_run(run* self, gpst_codec codec, int n) {
    open_run(self);
    add_all_jpegs(self, n);
    self->backend = "sim";
    self->mode = GPST_RUN_ENGINE;
    self->decode.codec = self->encode.codec = codec;
}

/* Up goes the file, down come the encoded views, and the bytes are those of the cores. */
static void test_all_on_the_device(void** state) {
    run self;
    (void)state;
    use_fake("7", "");
    open_device_run(&self, GPST_CODEC_GPU, 40);
    go(&self);
    check_whole(&self);
    assert_int_equal(self.n_device, 40);
    assert_int_equal(self.n_encoded_device, 40);
    assert_int_equal(self.stats.bytes_h2d, self.file_bytes);
    assert_int_equal(self.stats.bytes_d2h, gpsti_a64_load(&self.encoded_bytes));
    assert_string_equal(path_of(&self, "jpeg")->taken, "nvJPEG and cores");
    assert_string_equal(path_of(&self, "jpeg")->why_not, "");
    assert_true(self.stats.verdict.share[GPST_RESOURCE_JPEG] > 0.0);
    self.mode = GPST_RUN_PLAIN_SERIAL;
    go(&self);
    check_whole(&self);
    assert_int_equal(self.n_device, 40);
    close_run(&self);
}

/* Opening takes longer than the cores need for a few small files. Of a source without an end that is not known. */
static void test_auto_opens_where_it_is_worth_it(void** state) {
    run self;
    (void)state;
    use_fake("7", "");
    open_device_run(&self, GPST_CODEC_AUTO, 40);
    self.n_expected = 40;
    go(&self);
    check_whole(&self);
    assert_int_equal(self.n_device + self.n_encoded_device, 0);
    assert_non_null(strstr(path_of(&self, "jpeg")->why_not, "nvJPEG: opening it takes longer"));
    self.n_expected = 1000000000;
    go(&self);
    check_whole(&self);
    assert_true(self.n_encoded_device > 0);
    close_run(&self);
}

/* Whatever call fails, and when: the cores do what the device did not, with the same bytes. */
static void test_every_call_fails_once(void** state) {
    static const char* const statuses[] = {"3", "5", "6", "4"};
    run self;
    (void)state;
    open_device_run(&self, GPST_CODEC_GPU, 12);
    for (int n = 1; n <= 60; n++) {
        char fail[64];
        snprintf(fail, sizeof fail, "*:%d:%s", n, statuses[n % 4]);
        use_fake("2", fail);
        go(&self);
        if (!strncmp(path_of(&self, "jpeg")->why_not, "engines: ", 9)) /* then the pixels are not quite the cores' */
            gpsti_a32_store(&self.n_wrong, 0);
        check_whole(&self);
    }
    for (int k = 0; k < 3; k++) {
        static const char* const calls[] = {"nvjpegDecodeBatched:1:3", "nvjpegEncodeImage:5:6",
                                            "nvjpegEncoderRetrieveBitstream:3:6"};
        use_fake("3", calls[k]);
        go(&self);
        check_whole(&self);
    }
    close_run(&self);
}

/* Without engines a thread and the device decode a file together; the pixels are not quite the cores'. */
static void test_without_engines(void** state) {
    run self;
    (void)state;
    use_fake("0", "");
    open_device_run(&self, GPST_CODEC_GPU, 24);
    go(&self);
    assert_int_equal(self.n_failed, 0);
    assert_int_equal(self.n_device, 24);
    assert_int_equal(strncmp(path_of(&self, "jpeg")->why_not, "engines: ", 9), 0);
    close_run(&self);
}

/* Whoever encoded is named where all files were made and taken, on the cores and on the device. */
static void test_who_encoded(void** state) {
    run self;
    (void)state;
    use_fake("7", "");
    open_device_run(&self, GPST_CODEC_GPU, 1);
    for (int k = 0; k < 4; k++) {
        const bool on_device = k & 1;
        self.decode.codec = self.encode.codec = on_device ? GPST_CODEC_GPU : GPST_CODEC_EXACT;
        self.fails_encoded = k & 2;
        go(&self);
        assert_int_equal(self.n_ok, !self.fails_encoded);
        assert_string_equal(self.decoder, on_device ? "nvJPEG" : "libjpeg-turbo");
        assert_string_equal(self.encoder, self.fails_encoded ? "" : self.decoder);
    }
    close_run(&self);
}

/* Whoever asked for the GPU's codec by name: once. */
static void check_warned(const run* self, const char* text) {
    assert_int_equal(gpsti_a32_load(&self->log.n_warnings), 1);
    assert_int_equal(strncmp(self->log.last, text, strlen(text)), 0);
}

static void test_without_the_library(void** state) {
    run self;
    (void)state;
    open_device_run(&self, GPST_CODEC_GPU, 10);
    setenv("GPUSTAGE_LIBNVJPEG", "", 1);
    go(&self);
    check_whole(&self);
    assert_int_equal(self.n_device, 0);
    assert_int_equal(strncmp(path_of(&self, "jpeg")->why_not, "nvJPEG: ", 8), 0);
    check_warned(&self, "JPEG by the cores, not by the GPU: nvJPEG: GPUSTAGE_LIBNVJPEG is set to nothing");
    self.backend = "cpu";
    go(&self);
    check_warned(&self, "JPEG by the cores, not by the GPU: the device is the CPU");
    self.decode.codec = self.encode.codec = GPST_CODEC_AUTO; /* asks for nothing by name */
    go(&self);
    assert_int_equal(gpsti_a32_load(&self.log.n_warnings), 0);
    close_run(&self);
}

/* What the engines should not be given: damaged files fail as on the cores, and cost nothing else. */
static void test_damaged_among_good(void** state) {
    static uint8_t jpeg[262144];
    run self;
    (void)state;
    use_fake("7", "");
    open_device_run(&self, GPST_CODEC_GPU, 10);
    const size_t bytes = add_jpeg(&self, 60, 50, GPST_FORMAT_JPEG_420, jpeg);
    const uint64_t first_bad = self.n_files;
    (void)add_file(&self, "jpg", jpeg, bytes * 3 / 4);  /* cut */
    (void)add_file(&self, "jpg", jpeg, 30);             /* in the header */
    jpeg[bytes / 2] = 0xff, jpeg[bytes / 2 + 1] = 0xd9; /* an end in the middle */
    (void)add_file(&self, "jpg", jpeg, bytes);
    go(&self);
    assert_int_equal(self.n_failed, self.n_files - first_bad);
    assert_int_equal(gpsti_a32_load(&self.n_wrong), 0);
    assert_string_equal(self.stage, "decode");
    assert_int_equal(self.n_device, 11);
    close_run(&self);
}

/* Two stages that decode: one has the engines. A second stage for the pictures that the device encodes: it is called. */
static void test_two_of_each(void** state) {
    run self;
    (void)state;
    use_fake("7", "");
    open_device_run(&self, GPST_CODEC_GPU, 40);
    self.twice = true;
    for (int k = 0; k < 4; k++) {
        go(&self);
        check_whole(&self);
        assert_int_equal(gpsti_a64_load(&self.n_encoded), 40 * 3 * N_VIEWS);
        assert_int_equal(self.n_encoded_device, 40);
    }
    close_run(&self);
}

/* Too little memory for all workers at once: items wait, begin anew, and end; whoever encodes on the device does not
   make others wait for it. */
static void test_little_memory(void** state) {
    run self;
    (void)state;
    use_fake("7", "");
    open_device_run(&self, GPST_CODEC_GPU, 40);
    self.n_workers = 9;
    for (uint64_t bytes = 200000; bytes < 700000; bytes += 50000) {
        self.max_host_bytes = bytes;
        go(&self);
        check_whole(&self);
    }
    close_run(&self);
}

/* The device is lost on the way: what it had decoded is decoded again. */
static void test_a_lost_device(void** state) {
    run self;
    (void)state;
    use_fake("4", "");
    open_device_run(&self, GPST_CODEC_GPU, 24);
    for (int k = 1; k < 60; k += 7) {
        char backend[64];
        snprintf(backend, sizeof backend, "sim:lose_at=%d", k);
        self.backend = backend;
        go(&self);
        check_whole(&self);
    }
    self.backend = "sim";
    close_run(&self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_the_library), /* first: what is loaded stays */
        cmocka_unit_test(test_the_plain_calls),
        cmocka_unit_test(test_kinds_and_faults),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_an_older_library),
        cmocka_unit_test(test_all_on_the_device),
        cmocka_unit_test(test_auto_opens_where_it_is_worth_it),
        cmocka_unit_test(test_every_call_fails_once),
        cmocka_unit_test(test_without_engines),
        cmocka_unit_test(test_who_encoded),
        cmocka_unit_test(test_damaged_among_good),
        cmocka_unit_test(test_two_of_each),
        cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_a_lost_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
