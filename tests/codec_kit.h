/* tests/codec_kit.h -- files through READ, DECODE, WARP and ENCODE, and what the plain calls make of them: for tests of
   DECODE and ENCODE stages. */
#ifndef GPST_CODEC_KIT_H
#define GPST_CODEC_KIT_H

#include "test_allocator.h"
#include "test_files.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../backends/params_internal.h"
#endif

#include <dlfcn.h>
#include <stdlib.h>

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
    gpst_stage_func encoded_func; /* of the ENCODE stage; NULL = take_encoded */
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

static inline uint64_t hash_of(const void* data, size_t bytes) {
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

/* ---- the stand-in for nvJPEG -------------------------------------------------------------------------- */

/* It stays loaded, so that its counters are those of the runs. */
static void* find_fake(const char* name) {
    static void* library;
    library = library ? library : dlopen(GPST_TEST_FAKES "/nvjpeg.so", RTLD_NOW);
    assert_non_null(library);
    void* const found = dlsym(library, name);
    assert_non_null(found);
    return found;
}

static void reset_fake(void) {
    void* const found = find_fake("fake_nvjpeg_reset");
    void (*call)(void) = NULL;
    memcpy(&call, &found, sizeof call);
    call();
}

static int ask_fake(const char* name) {
    void* const found = find_fake(name);
    int (*call)(void) = NULL;
    memcpy(&call, &found, sizeof call);
    return call();
}

/* fail: "FUNCTION:N:STATUS": the N-th call of that function ("*": of any) fails in each run, which is checked. */
static void use_fake(const char* engines, const char* fail) {
    setenv("GPUSTAGE_LIBNVJPEG", GPST_TEST_FAKES "/nvjpeg.so", 1);
    setenv("FAKE_NVJPEG_ENGINES", engines, 1);
    setenv("FAKE_NVJPEG_FAIL", fail, 1);
}

static void check_fired(const char* backend, uint32_t n_fired_before) {
    const char* const fail = getenv("FAKE_NVJPEG_FAIL");
    if (strstr(backend, "lose_at=") && gpsti_a32_load(gpsti_faults_fired()) == n_fired_before)
        fail_msg("%s was not reached", backend);
    if (fail && fail[0] && ask_fake("fake_nvjpeg_fired") != 1)
        fail_msg("nvJPEG: %s did not fire", fail);
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
    static const gpst_encode_desc plain = {
        GPST_CODEC_EXACT, GPST_FILE_PNM, {0, GPST_FORMAT_INVALID, false, 0}, NULL, NULL};
    uint32_t n = 0;
    gpst_stage_read(&stages[n++]);
    gpst_stage_decode(&stages[n++], 0, &self->decode);
    if (self->twice)
        gpst_stage_decode(&stages[n++], 2, &self->decode);
    gpst_stage_warp(&stages[n++], 0, 1, self->warp);
    if (self->twice)
        gpst_stage_warp(&stages[n++], 2, 3, self->warp);
    gpst_stage_encode(&stages[n++], 1, &self->encode, self->encoded_func ? self->encoded_func : take_encoded, self);
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

static inline const gpst_path* path_of(const run* self, const char* what) {
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
    const uint32_t n_fired_before = gpsti_a32_load(gpsti_faults_fired());
    reset_fake();
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
    assert_true(self->n_ok > 0 || self->n_failed == 0 ? result >= GPST_OK : GPST_FAILED(result));
    gpst_pipeline_query_stats(pipeline, &self->stats);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
    assert_int_equal(self->n_ok + self->n_failed, self->n_files);
    check_fired(self->backend, n_fired_before);
}

static void check_whole(run* self) {
    assert_int_equal(self->n_failed, 0);
    assert_int_equal(gpsti_a32_load(&self->n_wrong), 0);
}

#endif
