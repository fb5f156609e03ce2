/* tests/test_files_job.c -- whole jobs over files: what is written, against the same warp run by hand; what fails, what is
   refused, and the user's own functions in it. */
#include "test.h"

#include <dirent.h>
#include <math.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WIDTH = 64, HEIGHT = 32, N_FRAMES = 5, VIEW_WIDTH = 24, VIEW_HEIGHT = 16 };

typedef struct job {
    char dir[64], frames[80], out[80];
    uint8_t pixels[N_FRAMES][WIDTH * HEIGHT * 3];
    gpst_report report;
    gpst_pipeline* pipeline;
    uint32_t n_begun, n_done, n_failed, n_skipped, n_watched, n_inits, n_terms, skip, refuse, cancel, stop, strange;
    char failure[GPST_REASON_BYTES];
    gpst_result strange_result;
} job;

static void write_file(const char* path, const void* data, size_t bytes) {
    FILE* const file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

static size_t read_file(const char* path, uint8_t* out, size_t room) {
    FILE* const file = fopen(path, "rb");
    if (!file)
        return 0;
    const size_t bytes = fread(out, 1, room, file);
    fclose(file);
    return bytes;
}

static gpst_image frame_image(job* self, uint32_t n) {
    gpst_image image = GPST_ZERO;
    image.data = self->pixels[n];
    image.width = WIDTH;
    image.height = HEIGHT;
    image.format = GPST_FORMAT_RGB;
    return image;
}

static const char* frame_path(const job* self, uint32_t n) {
    static char path[128];
    snprintf(path, sizeof path, "%s/f%u.ppm", self->frames, n);
    return path;
}

/* Frames, and beside them what is no picture. */
static void open_job(job* self) {
    static uint8_t file[WIDTH * HEIGHT * 3 + 64];
    uint64_t random = 5;
    char path[128];
    memset(self, 0, sizeof *self);
    self->skip = self->refuse = self->cancel = self->stop = self->strange = UINT32_MAX;
    strcpy(self->dir, "/tmp/gpustage-job-XXXXXX");
    assert_non_null(mkdtemp(self->dir));
    snprintf(self->frames, sizeof self->frames, "%s/frames", self->dir);
    snprintf(self->out, sizeof self->out, "%s/out", self->dir);
    assert_int_equal(mkdir(self->frames, 0777), 0);
    for (uint32_t n = 0; n < N_FRAMES; n++) {
        const gpst_image image = frame_image(self, n);
        size_t bytes = sizeof file;
        for (size_t i = 0; i < sizeof self->pixels[n]; i++)
            self->pixels[n][i] = (uint8_t)test_random(&random);
        assert_int_equal(gpst_picture_encode(GPST_FILE_PNM, &image, file, &bytes), GPST_OK);
        write_file(frame_path(self, n), file, bytes);
    }
    snprintf(path, sizeof path, "%s/readme.txt", self->frames);
    write_file(path, "no picture", 10);
    snprintf(path, sizeof path, "%s/.hidden.ppm", self->frames);
    write_file(path, "no picture", 10);
}

static uint32_t empty_folder(const char* path) {
    char name[400];
    uint32_t n = 0;
    DIR* const dir = opendir(path);
    for (const struct dirent* entry = dir ? readdir(dir) : NULL; entry; entry = readdir(dir))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..")) {
            snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
            assert_int_equal(unlink(name), 0);
            n++;
        }
    if (dir)
        closedir(dir);
    (void)rmdir(path);
    return n;
}

static void close_job(job* self) {
    (void)empty_folder(self->out);
    (void)empty_folder(self->frames);
    assert_int_equal(empty_folder(self->dir), 0); /* nothing is left of temporary files */
    assert_int_not_equal(access(self->dir, F_OK), 0);
}

static gpst_reproject_desc views_of(const job* self) {
    static const char* inputs[1];
    gpst_reproject_desc desc = GPST_ZERO;
    desc.encode.kind = GPST_FILE_PNM;
    inputs[0] = self->frames;
    desc.inputs = inputs;
    desc.n_inputs = 1;
    desc.output_dir = self->out;
    desc.n_views = 3;
    desc.width = VIEW_WIDTH;
    desc.height = VIEW_HEIGHT;
    desc.run.fsync = GPST_FSYNC_NONE;
    return desc;
}

static gpst_preprocess_desc tensors_of(const job* self) {
    static const char* inputs[1];
    gpst_preprocess_desc desc = GPST_ZERO;
    inputs[0] = self->frames;
    desc.inputs = inputs;
    desc.n_inputs = 1;
    desc.output_dir = self->out;
    desc.width = VIEW_WIDTH;
    desc.height = VIEW_HEIGHT;
    desc.layout = GPST_LAYOUT_CHW;
    for (int c = 0; c < 3; c++) {
        desc.mean[c] = 0.25 * c;
        desc.std[c] = 0.5;
    }
    desc.run.fsync = GPST_FSYNC_NONE;
    return desc;
}

/* What the warp makes of a frame, by hand. */
static void run_warp(job* self, const gpst_warp* warp, uint32_t n, void* out) {
    gpst_image outputs[8];
    const gpst_image source = frame_image(self, n);
    size_t bytes = 0;
    for (uint32_t v = 0; v < gpst_warp_n_outputs(warp); v++) {
        gpst_warp_query_output(warp, &outputs[v]);
        assert_int_equal(gpst_image_bytes(&outputs[v], &bytes), GPST_OK);
        outputs[v].data = (uint8_t*)out + v * bytes;
    }
    assert_int_equal(gpst_warp_run(warp, &source, outputs, gpst_warp_n_outputs(warp), 1), GPST_OK);
}

/* The bytes of a view's file, which end with its pixels; a file of another length has too few or too many. */
static void expect_view(job* self, uint32_t n, uint32_t view, const char* extension, size_t header_bytes,
                        const void* wanted, size_t wanted_bytes) {
    static uint8_t found[VIEW_WIDTH * VIEW_HEIGHT * 3 * 4 + 256];
    char path[160];
    snprintf(path, sizeof path, "%s/f%u_v%02u.%s", self->out, n, view, extension);
    assert_int_equal(read_file(path, found, sizeof found), header_bytes + wanted_bytes);
    assert_memory_equal(found + header_bytes, wanted, wanted_bytes);
}

static bool view_is_right(job* self, const uint8_t* wanted, uint32_t n, uint32_t view) {
    static uint8_t found[VIEW_WIDTH * VIEW_HEIGHT * 3 + 64];
    const size_t bytes = VIEW_WIDTH * VIEW_HEIGHT * 3;
    char path[160];
    snprintf(path, sizeof path, "%s/f%u_v%02u.ppm", self->out, n, view);
    const size_t got = read_file(path, found, sizeof found);
    return got > bytes && !memcmp(found, "P6", 2) && !memcmp(found + got - bytes, wanted + view * bytes, bytes);
}

/* ---- what is written ---------------------------------------------------------------------------------- */

static void test_views(void** state) {
    static job self;
    static uint8_t wanted[3 * VIEW_WIDTH * VIEW_HEIGHT * 3];
    gpst_warp* warp = NULL;
    (void)state;
    open_job(&self);
    const gpst_reproject_desc desc = views_of(&self);
    assert_int_equal(gpst_reproject_warp(&desc, &warp), GPST_OK);
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_OK);
    assert_int_equal(self.report.stats.items_ok, N_FRAMES);
    assert_int_not_equal(self.report.stats.verdict.text[0], '\0');
    assert_string_equal(self.report.first_failure, "");
    for (uint32_t n = 0; n < N_FRAMES; n++) {
        run_warp(&self, warp, n, wanted);
        for (uint32_t v = 0; v < 3; v++)
            assert_true(view_is_right(&self, wanted, n, v));
    }
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_OK); /* again, over what is there */
    assert_int_equal(empty_folder(self.out), 3 * N_FRAMES);
    gpst_warp_destroy(warp);
    close_job(&self);
}

/* Nothing but inputs and a directory: eight views around the horizon. */
static void test_defaults(void** state) {
    static const gpst_reproject_desc nothing = GPST_ZERO;
    gpst_image shape;
    gpst_warp* warp = NULL;
    (void)state;
    assert_int_equal(gpst_reproject_warp(&nothing, &warp), GPST_OK);
    assert_int_equal(gpst_warp_n_outputs(warp), 8);
    gpst_warp_query_output(warp, &shape);
    assert_int_equal(shape.width, 1920);
    assert_int_equal(shape.height, 1080);
    gpst_warp_destroy(warp);
}

/* Into one file: rows in the order of the list, zero where an input failed. */
static void test_tensors_in_one_file(void** state) {
    static job self;
    static float wanted[3 * VIEW_WIDTH * VIEW_HEIGHT];
    static uint8_t found[(N_FRAMES + 1) * sizeof wanted];
    const float nothing[3 * VIEW_WIDTH * VIEW_HEIGHT] = {0};
    char path[160];
    gpst_warp* warp = NULL;
    (void)state;
    open_job(&self);
    snprintf(path, sizeof path, "%s/all.npy", self.dir);
    write_file(frame_path(&self, 2), "P6 3 3 255 ", 11);
    gpst_preprocess_desc desc = tensors_of(&self);
    desc.output_dir = NULL;
    desc.output_file = path;
    assert_int_equal(gpst_preprocess_warp(&desc, &warp), GPST_OK);
    assert_int_equal(gpst_preprocess_files(&desc, &self.report), GPST_PARTIAL);
    assert_int_equal(self.report.stats.items_ok, N_FRAMES - 1);
    assert_non_null(strstr(self.report.first_failure, "/f2.ppm: decode: PNM: 0 bytes of pixels; 3x3 pixels are 27"));
    assert_int_equal(read_file(path, found, sizeof found), 128 + N_FRAMES * sizeof wanted);
    assert_non_null(strstr((const char*)found + 10, "'shape': (5, 3, 16, 24)"));
    for (uint32_t n = 0; n < N_FRAMES; n++) {
        run_warp(&self, warp, n, wanted);
        assert_memory_equal(found + 128 + n * sizeof wanted, n == 2 ? nothing : wanted, sizeof wanted);
    }
    assert_int_equal(unlink(path), 0);
    gpst_warp_destroy(warp);
    close_job(&self);
}

/* A mean belongs to its colour, wherever that is stored, and so does the colour of the bars. */
static void test_tensors_blue_first(void** state) {
    static job self;
    static float plain[3 * VIEW_WIDTH * VIEW_HEIGHT], swapped[3 * VIEW_WIDTH * VIEW_HEIGHT];
    const size_t plane = VIEW_WIDTH * VIEW_HEIGHT;
    static uint8_t found[128 + sizeof plain];
    char path[160];
    gpst_warp* warp = NULL;
    (void)state;
    open_job(&self);
    gpst_preprocess_desc desc = tensors_of(&self);
    desc.fit = GPST_FIT_LETTERBOX;
    for (int c = 0; c < 3; c++)
        desc.fill[c] = (float)(51 * c);
    assert_int_equal(gpst_preprocess_warp(&desc, &warp), GPST_OK);
    run_warp(&self, warp, 1, plain);
    for (size_t c = 0; c < 3; c++) /* (0.2 c - 0.25 c) / 0.5 */
        assert_true(fabs((double)plain[c * plane] + 0.1 * (double)c) < 1e-6);
    desc.swap_rb = true;
    assert_int_equal(gpst_preprocess_files(&desc, NULL), GPST_OK);
    snprintf(path, sizeof path, "%s/f1.npy", self.out);
    assert_int_equal(read_file(path, found, sizeof found), sizeof found);
    memcpy(swapped, found + 128, sizeof swapped);
    for (size_t c = 0; c < 3; c++)
        assert_memory_equal(swapped + (2 - c) * plane, plain + c * plane, plane * sizeof(float));
    gpst_warp_destroy(warp);
    close_job(&self);
}

/* ---- the user's own functions ------------------------------------------------------------------------- */

static gpst_result own_init(void* user_data, uint32_t worker_index, void** worker_state) {
    job* const self = (job*)user_data;
    (void)worker_index;
    *worker_state = &self->n_inits;
    __atomic_fetch_add(&self->n_inits, 1, __ATOMIC_RELAXED);
    return GPST_OK;
}

static void own_term(void* user_data, uint32_t worker_index, void* worker_state) {
    job* const self = (job*)user_data;
    (void)worker_index;
    assert_ptr_equal(worker_state, &self->n_inits);
    __atomic_fetch_add(&self->n_terms, 1, __ATOMIC_RELAXED);
}

/* Any file is a frame of one colour. */
static gpst_result own_decode(void* user_data, gpst_task* task) {
    const job* const self = (const job*)user_data;
    gpst_image shape = GPST_ZERO, picture;
    shape.width = WIDTH;
    shape.height = HEIGHT;
    shape.format = GPST_FORMAT_RGB;
    if (task->worker_state != &self->n_inits || task->item->file_bytes == 0)
        return gpst_task_fail(task, GPST_ERROR_FORMAT, "no worker_state, or an empty file");
    const gpst_result result = gpst_task_set_picture(task, 0, 0, &shape, &picture);
    if (!GPST_FAILED(result))
        memset(picture.data, 7, WIDTH * HEIGHT * 3);
    return result;
}

/* One byte of each view, and a file beside it. */
static gpst_result own_encode(void* user_data, gpst_task* task, const gpst_image* picture, const char* path) {
    const job* const self = (const job*)user_data;
    char beside[400];
    void* room = NULL;
    gpst_result result = gpst_task_encoded(task, 1, &room);
    if (GPST_FAILED(result) || task->worker_state != &self->n_inits)
        return result;
    memcpy(room, picture->data, 1);
    result = gpst_task_emit(task, path, 1);
    snprintf(beside, sizeof beside, "%s.txt", path);
    if (!GPST_FAILED(result))
        result = gpst_task_encoded(task, 1, &room);
    if (!GPST_FAILED(result))
        *(char*)room = 'x';
    return GPST_FAILED(result) ? result : gpst_task_emit(task, beside, 1);
}

static void test_own_formats(void** state) {
    static job self;
    uint8_t found[4];
    char path[160];
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    desc.hooks.decode = own_decode;
    desc.hooks.encode = own_encode;
    desc.hooks.extension = "one";
    desc.hooks.worker_init = own_init;
    desc.hooks.worker_term = own_term;
    desc.hooks.user_data = &self;
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_OK);
    snprintf(path, sizeof path, "%s/f4_v02.one", self.out);
    assert_int_equal(read_file(path, found, sizeof found), 1);
    assert_int_equal(found[0], 7);
    snprintf(path, sizeof path, "%s/f4_v02.one.txt", self.out);
    assert_int_equal(read_file(path, found, sizeof found), 1);
    assert_int_equal(empty_folder(self.out), 6 * N_FRAMES);
    assert_true(self.n_inits >= 2 && self.n_inits == self.n_terms); /* decode's and encode's */
    close_job(&self);
}

static gpst_result see_begin(void* user_data, uint64_t index, const char* path) {
    job* const self = (job*)user_data;
    assert_string_equal(path, frame_path(self, (uint32_t)index));
    self->n_begun++;
    if (index == self->cancel)
        gpst_pipeline_cancel(self->pipeline);
    if (index == self->stop)
        gpst_pipeline_stop(self->pipeline);
    if (index == self->strange)
        return self->strange_result;
    if (index == self->refuse)
        return gpst_task_fail(NULL, GPST_ERROR_STATE, "not %u", (unsigned)index);
    return index == self->skip ? GPST_SKIPPED : GPST_OK;
}

static void see_done(void* user_data, const gpst_item* item) {
    job* const self = (job*)user_data;
    assert_int_equal(item->index, item->name[strlen(item->name) - 5] - '0');
    self->n_done++;
    self->n_failed += GPST_FAILED(item->result);
    self->n_skipped += item->result == GPST_SKIPPED;
    if (GPST_FAILED(item->result))
        snprintf(self->failure, sizeof self->failure, "%s: %s", item->stage, item->reason);
}

static void see_pipeline(void* user_data, gpst_pipeline* pipeline, uint64_t n_inputs) {
    job* const self = (job*)user_data;
    assert_int_equal(n_inputs, N_FRAMES);
    assert_true(self->n_watched == 0 ? pipeline != NULL : pipeline == NULL && self->n_done == N_FRAMES);
    self->n_watched++;
    self->pipeline = pipeline;
}

static void watch_job(job* self, gpst_job_hooks* hooks) {
    hooks->begin = see_begin;
    hooks->done = see_done;
    hooks->watch = see_pipeline;
    hooks->user_data = self;
}

static void test_each_input_is_told(void** state) {
    static job self;
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    watch_job(&self, &desc.hooks);
    self.skip = 1;
    self.refuse = 3;
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_PARTIAL);
    assert_int_equal(self.n_begun, N_FRAMES);
    assert_int_equal(self.n_done, N_FRAMES);
    assert_int_equal(self.n_skipped, 1);
    assert_int_equal(self.n_failed, 1);
    assert_int_equal(self.n_watched, 2);
    assert_string_equal(self.failure, "source: not 3");
    assert_non_null(strstr(self.report.first_failure, "f3.ppm: source: not 3"));
    assert_int_equal(empty_folder(self.out), 3 * (N_FRAMES - 2));
    close_job(&self);
}

/* A result that means nothing here is not taken for a good one. */
static void test_a_strange_result(void** state) {
    static job self;
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    watch_job(&self, &desc.hooks);
    self.strange = 2;
    self.strange_result = GPST_ERROR_CANCELLED;
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_PARTIAL);
    assert_string_equal(self.failure, "source: the source returned GPST_ERROR_CANCELLED, and the pipeline is not");
    self.n_watched = self.n_done = 0;
    self.strange_result = GPST_END;
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_PARTIAL);
    assert_string_equal(self.failure, "source: begin returned GPST_END: must be GPST_OK, GPST_SKIPPED or negative");
    assert_int_equal(self.report.stats.items_ok, N_FRAMES - 1);
    close_job(&self);
}

static void test_means_and_deviations(void** state) {
    static job self;
    (void)state;
    open_job(&self);
    gpst_preprocess_desc desc = tensors_of(&self);
    desc.std[1] = -1;
    assert_int_equal(gpst_preprocess_files(&desc, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_preprocess_files: desc.std[1]=-1: must be positive"));
    desc.std[1] = 1;
    desc.mean[2] = (double)NAN;
    assert_int_equal(gpst_preprocess_files(&desc, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_preprocess_files: desc.mean[2]="));
    desc.mean[2] = 0;
    desc.dtype = GPST_DTYPE_U16;
    assert_int_equal(gpst_preprocess_files(&desc, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_preprocess_files: desc.dtype=5: must be U8, I8, F16 or F32"));
    desc.dtype = GPST_DTYPE_F32;
    desc.width = 0;
    assert_int_equal(gpst_preprocess_files(&desc, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_preprocess_files: width=0: required"));
    close_job(&self);
}

/* A file that holds every row is there when every input had its turn, else not. */
static void test_cancel(void** state) {
    static job self;
    char path[160];
    (void)state;
    open_job(&self);
    gpst_preprocess_desc desc = tensors_of(&self);
    snprintf(path, sizeof path, "%s/all.npy", self.dir);
    desc.output_dir = NULL;
    desc.output_file = path;
    desc.hooks.begin = see_begin;
    desc.hooks.watch = see_pipeline;
    desc.hooks.user_data = &self;
    self.n_done = N_FRAMES;
    self.cancel = 2;
    assert_int_equal(gpst_preprocess_files(&desc, &self.report), GPST_ERROR_CANCELLED);
    assert_non_null(strstr(gpst_last_reason(), "gpst_preprocess_files: cancelled with "));
    assert_int_not_equal(access(path, F_OK), 0);
    self.cancel = UINT32_MAX;
    self.stop = 2;
    self.n_watched = 0;
    assert_int_equal(gpst_preprocess_files(&desc, &self.report), GPST_ERROR_CANCELLED);
    assert_non_null(strstr(gpst_last_reason(), "gpst_preprocess_files: stopped with "));
    assert_int_not_equal(access(path, F_OK), 0);
    close_job(&self);
}

/* Every input failed: no file of zeroes is left. */
static void test_nothing_could_be_used(void** state) {
    static job self;
    char path[160];
    (void)state;
    open_job(&self);
    for (uint32_t n = 0; n < N_FRAMES; n++)
        write_file(frame_path(&self, n), "?", 1);
    gpst_preprocess_desc desc = tensors_of(&self);
    snprintf(path, sizeof path, "%s/all.npy", self.dir);
    desc.output_dir = NULL;
    desc.output_file = path;
    assert_int_equal(gpst_preprocess_files(&desc, &self.report), GPST_ERROR_FORMAT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_preprocess_files: none of "));
    assert_non_null(strstr(self.report.first_failure, "f"));
    assert_int_equal(self.report.stats.items_failed, N_FRAMES);
    assert_int_not_equal(access(path, F_OK), 0);
    close_job(&self);
}

/* What cannot be read fails, and costs nothing else. */
static void test_inputs_that_are_not_there(void** state) {
    static job self;
    const char* inputs[3];
    char missing[160];
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    snprintf(missing, sizeof missing, "%s/none.ppm", self.dir);
    inputs[0] = missing;
    inputs[1] = self.frames;
    desc.inputs = inputs;
    desc.n_inputs = 2;
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_PARTIAL);
    assert_int_equal(self.report.stats.items_ok, N_FRAMES);
    assert_non_null(strstr(self.report.first_failure, "none.ppm: read: open "));
    close_job(&self);
}

typedef struct scarce {
    uint64_t left, live;
} scarce;

static void* scarce_alloc(void* user_data, size_t bytes, size_t align_bytes) {
    scarce* const self = (scarce*)user_data;
    if (__atomic_load_n(&self->left, __ATOMIC_RELAXED) == 0)
        return NULL;
    __atomic_fetch_sub(&self->left, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&self->live, 1, __ATOMIC_RELAXED);
    return gpsti_aligned_alloc(bytes, align_bytes);
}

static void scarce_free(void* user_data, void* ptr, size_t bytes) {
    scarce* const self = (scarce*)user_data;
    (void)bytes;
    if (ptr)
        __atomic_fetch_sub(&self->live, 1, __ATOMIC_RELAXED);
    gpsti_aligned_free(ptr);
}

/* However far memory reaches, a job ends with a result, and gives back what it took. */
static void test_memory_that_ends(void** state) {
    static job self;
    char path[160];
    uint64_t n = 0;
    gpst_result result = GPST_ERROR_MEMORY;
    (void)state;
    open_job(&self);
    gpst_preprocess_desc desc = tensors_of(&self);
    snprintf(path, sizeof path, "%s/all.npy", self.dir);
    desc.output_dir = NULL;
    desc.output_file = path;
    desc.run.mode = GPST_RUN_PLAIN_SERIAL;
    for (; result != GPST_OK && n < 2000; n++) {
        gpst_context_desc context_desc = GPST_ZERO;
        scarce memory = GPST_ZERO;
        memory.left = 1000000;
        context_desc.backend = "cpu";
        context_desc.n_workers = 1;
        context_desc.allocator.alloc = scarce_alloc;
        context_desc.allocator.free = scarce_free;
        context_desc.allocator.user_data = &memory;
        assert_int_equal(gpst_context_create(&context_desc, &desc.context), GPST_OK);
        memory.left = n;
        result = gpst_preprocess_files(&desc, &self.report);
        assert_true(result == GPST_OK || result == GPST_PARTIAL || result == GPST_ERROR_MEMORY);
        gpst_context_destroy(desc.context);
        assert_int_equal(memory.live, 0);
    }
    assert_true(n > 10 && result == GPST_OK);
    assert_int_equal(unlink(path), 0);
    close_job(&self);
}

/* ---- views of 16 bits and of floats -------------------------------------------------------------------- */

static void test_views_of_other_types(void** state) {
    enum { N = VIEW_WIDTH * VIEW_HEIGHT * 3 };
    static job self;
    static uint8_t bytes[3 * N], big_endian[2 * N];
    static uint16_t words[3 * N];
    static float floats[3 * N];
    gpst_warp *in_bytes = NULL, *in_words = NULL, *in_floats = NULL;
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    desc.filter = GPST_FILTER_NEAREST; /* so that a sample is one of the frame's */
    assert_int_equal(gpst_reproject_warp(&desc, &in_bytes), GPST_OK);
    desc.dtype = GPST_DTYPE_F32;
    assert_int_equal(gpst_reproject_warp(&desc, &in_floats), GPST_OK);
    desc.encode.kind = GPST_FILE_NPY;
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_OK);
    run_warp(&self, in_bytes, 1, bytes), run_warp(&self, in_floats, 1, floats);
    for (size_t i = 0; i < 3 * N; i++)
        assert_true(fabs((double)floats[i] - bytes[i] / 255.0) < 1e-7);
    for (uint32_t v = 0; v < 3; v++)
        expect_view(&self, 1, v, "npy", 128, floats + v * N, N * sizeof(float));
    desc.dtype = GPST_DTYPE_U16;
    assert_int_equal(gpst_reproject_warp(&desc, &in_words), GPST_OK);
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_OK);
    run_warp(&self, in_words, 2, words), run_warp(&self, in_bytes, 2, bytes);
    for (size_t i = 0; i < 3 * N; i++)
        assert_int_equal(words[i], 257 * bytes[i]);
    for (uint32_t v = 0; v < 3; v++)
        expect_view(&self, 2, v, "npy", 128, words + v * N, N * sizeof(uint16_t));
    desc.encode.kind = GPST_FILE_PNM;
    desc.filter = GPST_FILTER_DEFAULT;
    gpst_warp_destroy(in_words);
    assert_int_equal(gpst_reproject_warp(&desc, &in_words), GPST_OK);
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_OK);
    run_warp(&self, in_words, 0, words);
    for (size_t i = 0; i < N; i++)
        big_endian[2 * i] = (uint8_t)(words[i] >> 8), big_endian[2 * i + 1] = (uint8_t)words[i];
    expect_view(&self, 0, 0, "ppm", strlen("P6\n24 16\n65535\n"), big_endian, 2 * N);
    gpst_warp_destroy(in_bytes), gpst_warp_destroy(in_words), gpst_warp_destroy(in_floats);
    close_job(&self);
}

/* ---- what is refused, before anything is written --------------------------------------------------------- */

static void refuse(job* self, const gpst_reproject_desc* desc, const char* sentence) {
    assert_int_equal(gpst_reproject_files(desc, &self->report), GPST_ERROR_ARGUMENT);
    if (!strstr(gpst_last_reason(), sentence))
        print_message("%s\n", gpst_last_reason());
    assert_non_null(strstr(gpst_last_reason(), sentence));
    assert_int_equal(self->report.stats.items_total, 0);
}

static void test_rules(void** state) {
    static const gpst_view view = GPST_ZERO;
    static job self;
    const char* inputs[2] = {"", NULL};
    char same[160];
    gpst_jpeg* jpeg = NULL;
    (void)state;
    open_job(&self);
    const gpst_reproject_desc good = views_of(&self);
    gpst_reproject_desc desc = good;
    desc.inputs = NULL;
    refuse(&self, &desc, "gpst_reproject_files: desc.inputs: required");
    desc = good;
    desc.inputs = inputs;
    refuse(&self, &desc, "gpst_reproject_files: desc.inputs[0]: must not be empty");
    desc = good;
    desc.output_dir = NULL;
    refuse(&self, &desc, "gpst_reproject_files: desc.output_dir=NULL: required");
    desc = good;
    desc.hooks.encode = own_encode;
    refuse(&self, &desc, "gpst_reproject_files: desc.hooks.extension: required with encode");
    desc = good;
    desc.encode.kind = (gpst_file_kind)9;
    refuse(&self, &desc, "gpst_reproject_files: desc.encode.kind=9");
    desc = good;
    desc.encode.kind = GPST_FILE_JPEG;
    desc.encode.jpeg.quality = 101;
    if (gpst_jpeg_create(NULL, &jpeg) == GPST_OK)
        refuse(&self, &desc, "gpst_reproject_files: desc.encode.jpeg.quality=101: must be");
    gpst_jpeg_destroy(jpeg);
    desc = good;
    desc.dtype = GPST_DTYPE_F32;
    refuse(&self, &desc, "gpst_reproject_files: desc.dtype=3: encode.kind=PNM holds U8 and U16 only");
    desc.dtype = GPST_DTYPE_U16, desc.encode.kind = GPST_FILE_UNKNOWN;
    refuse(&self, &desc, "gpst_reproject_files: desc.dtype=5: encode.kind=JPEG holds U8 only");
    desc.dtype = GPST_DTYPE_I8, desc.encode.kind = GPST_FILE_NPY;
    refuse(&self, &desc, "gpst_reproject_files: desc.dtype=4: must be U8, U16 or F32");
    desc = good;
    desc.n_views = 101;
    refuse(&self, &desc, "gpst_reproject_files: desc.n_views=101: without views at most 100");
    desc = good;
    desc.run.n_slots = 100000000;
    refuse(&self, &desc, "gpst_reproject_files: n_slots=100000000");
    desc = good;
    desc.width = 70000;
    refuse(&self, &desc, "gpst_reproject_files: width=70000");
    desc = good;
    inputs[0] = self.dir; /* with folders alone in it */
    desc.inputs = inputs;
    refuse(&self, &desc, "holds no picture");
    snprintf(same, sizeof same, "%s/f1.png", self.dir);
    inputs[0] = self.frames;
    inputs[1] = same;
    desc.n_inputs = 2;
    refuse(&self, &desc, "outputs of both would be named \"f1...\"");
    desc = good;
    inputs[1] = inputs[0] = frame_path(&self, 1);
    desc.inputs = inputs;
    desc.n_inputs = 2;
    refuse(&self, &desc, "f1.ppm\" is there twice");
    desc = good;
    desc.views = &view;
    desc.n_views = 0;
    refuse(&self, &desc, "gpst_reproject_files: desc.n_views=0: required with views");
    desc = good;
    desc.hooks.encode = own_encode;
    desc.hooks.extension = "../x";
    refuse(&self, &desc, "desc.hooks.extension=\"../x\"");
    (void)rmdir(self.out); /* of the pipeline that was refused */
    assert_int_not_equal(access(self.out, F_OK), 0);
    close_job(&self);
}

/* However the directory is spelled. */
static void test_inputs_are_not_overwritten(void** state) {
    static job self;
    static uint8_t found[64];
    const char* inputs[2];
    char path[160], again[160];
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    snprintf(path, sizeof path, "%s/../frames/f1_v02.ppm", self.frames);
    write_file(path, "precious", 8);
    snprintf(again, sizeof again, "%s/../frames", self.frames);
    desc.output_dir = again;
    refuse(&self, &desc, "f1_v02.ppm\" would overwrite the input ");
    assert_int_equal(read_file(path, found, sizeof found), 8);
    inputs[0] = path;
    inputs[1] = self.frames;
    gpst_preprocess_desc tensors = tensors_of(&self);
    tensors.inputs = inputs;
    tensors.n_inputs = 1;
    tensors.output_dir = NULL;
    tensors.output_file = path;
    assert_int_equal(gpst_preprocess_files(&tensors, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "would overwrite the input"));
    tensors.output_file = "";
    assert_int_equal(gpst_preprocess_files(&tensors, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "desc.output_file: must not be empty"));
    tensors.output_dir = self.out;
    assert_int_equal(gpst_preprocess_files(&tensors, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "desc.output_dir and desc.output_file: one of them"));
    assert_int_equal(read_file(path, found, sizeof found), 8);
    close_job(&self);
}

/* By whatever name it is read: a link leads to the output that this run would replace. */
static void test_links_to_outputs(void** state) {
    static job self;
    char target[160], link_path[160];
    const char* inputs[2];
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_OK);
    snprintf(target, sizeof target, "%s/f3_v01.ppm", self.out);
    snprintf(link_path, sizeof link_path, "%s/link.ppm", self.dir);
    assert_int_equal(symlink(target, link_path), 0);
    inputs[0] = link_path;
    inputs[1] = self.frames;
    desc.inputs = inputs;
    desc.n_inputs = 2;
    refuse(&self, &desc, "f3_v01.ppm\" would overwrite the input ");
    assert_int_equal(unlink(link_path), 0);
    close_job(&self);
}

/* A folder where files are listed is an input that fails; a long name leaves room for the reason. */
static void test_folders_among_files(void** state) {
    static job self;
    static char path[3000];
    const char* inputs[2];
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    snprintf(path, sizeof path, "%s/", self.dir);
    while (strlen(path) < 2900)
        strcat(path, "./");
    strcat(path, "frames");
    inputs[0] = path;
    inputs[1] = frame_path(&self, 0);
    desc.inputs = inputs;
    desc.n_inputs = 2;
    desc.files_only = true;
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_PARTIAL);
    assert_int_equal(self.report.stats.items_ok, 1);
    assert_non_null(strstr(self.report.first_failure, "...: read: "));
    assert_true(strlen(self.report.first_failure) < sizeof self.report.first_failure);
    close_job(&self);
}

static void test_names(void** state) {
    char out[16];
    (void)state;
    assert_int_equal(gpst_output_name("a/b.c/frame.tar.jpg", 3, "png", out, sizeof out), GPST_ERROR_OVERFLOW);
    assert_string_equal(out, "");
    assert_int_equal(gpst_output_name("a/b.c/f.tar.jpg", 3, "png", out, sizeof out), GPST_OK);
    assert_string_equal(out, "f.tar_v03.png");
    assert_int_equal(gpst_output_name(".f", -1, "npy", out, sizeof out), GPST_OK);
    assert_string_equal(out, ".f.npy");
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_views),
        cmocka_unit_test(test_views_of_other_types),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_tensors_in_one_file),
        cmocka_unit_test(test_tensors_blue_first),
        cmocka_unit_test(test_own_formats),
        cmocka_unit_test(test_each_input_is_told),
        cmocka_unit_test(test_a_strange_result),
        cmocka_unit_test(test_means_and_deviations),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_nothing_could_be_used),
        cmocka_unit_test(test_inputs_that_are_not_there),
        cmocka_unit_test(test_memory_that_ends),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_inputs_are_not_overwritten),
        cmocka_unit_test(test_links_to_outputs),
        cmocka_unit_test(test_folders_among_files),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
