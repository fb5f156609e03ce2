/* tests/test_job_hooks.c -- a job's hooks that name its outputs and that give each frame a mask of its own; what a job
   takes beside its run. */
#include "test.h"

#include <sys/stat.h>
#include <unistd.h>

enum { WIDTH = 64, HEIGHT = 32, N_FRAMES = 3, N_VIEWS = 3, VIEW_WIDTH = 24, VIEW_HEIGHT = 16 };
enum { VIEW_BYTES = VIEW_WIDTH * VIEW_HEIGHT * 3 };

typedef struct job {
    char dir[64], frames[N_FRAMES][80], out[80];
    const char* inputs[N_FRAMES];
    uint8_t pixels[WIDTH * HEIGHT * 3], mask[N_FRAMES][WIDTH * HEIGHT];
    uint32_t n_masks, n_beside, mask_width;
    gpst_format mask_format;
    gpst_result named;
    gpst_report report;
    gpst_warp* warp;
} job;

static void open_job(job* self) {
    uint64_t random = test_seed(3);
    uint8_t file[WIDTH * HEIGHT * 3 + 64];
    gpst_image frame = GPST_ZERO;
    memset(self, 0, sizeof *self);
    self->mask_width = WIDTH;
    self->mask_format = GPST_FORMAT_GRAY;
    strcpy(self->dir, "/tmp/gpustage-hooks-XXXXXX");
    assert_non_null(mkdtemp(self->dir));
    snprintf(self->out, sizeof self->out, "%s/out", self->dir);
    for (size_t i = 0; i < sizeof self->pixels; i++)
        self->pixels[i] = (uint8_t)(test_random(&random) % 255 + 1);
    for (size_t i = 0; i < sizeof self->mask; i++)
        ((uint8_t*)self->mask)[i] = test_random(&random) % 3 ? (uint8_t)(test_random(&random) % 255 + 1) : 0;
    frame.data = self->pixels;
    frame.width = WIDTH;
    frame.height = HEIGHT;
    frame.format = GPST_FORMAT_RGB;
    for (uint32_t n = 0; n < N_FRAMES; n++) {
        size_t bytes = sizeof file;
        snprintf(self->frames[n], sizeof self->frames[n], "%s/f%u.ppm", self->dir, n);
        self->inputs[n] = self->frames[n];
        assert_int_equal(gpst_picture_encode(GPST_FILE_PNM, &frame, file, &bytes), GPST_OK);
        FILE* const stream = fopen(self->frames[n], "wb");
        assert_non_null(stream);
        assert_int_equal(fwrite(file, 1, bytes, stream), bytes);
        assert_int_equal(fclose(stream), 0);
    }
}

static void close_job(const job* self) {
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", self->dir);
    assert_int_equal(system(command), 0);
}

static gpst_reproject_desc views_of(job* self) {
    gpst_reproject_desc desc = GPST_ZERO;
    desc.encode.kind = GPST_FILE_PNM;
    desc.inputs = self->inputs;
    desc.n_inputs = N_FRAMES;
    desc.output_dir = self->out;
    desc.n_views = N_VIEWS;
    desc.width = VIEW_WIDTH;
    desc.height = VIEW_HEIGHT;
    desc.run.fsync = GPST_FSYNC_NONE;
    desc.hooks.user_data = self;
    return desc;
}

static bool read_view(const char* path, uint8_t out[VIEW_BYTES]) {
    FILE* const stream = fopen(path, "rb");
    const bool there =
        stream && !fseek(stream, -VIEW_BYTES, SEEK_END) && fread(out, 1, VIEW_BYTES, stream) == VIEW_BYTES;
    if (stream)
        fclose(stream);
    return there;
}

/* ---- names ------------------------------------------------------------------------------------------- */

/* A folder a view, and one below it for every other frame. */
static gpst_result own_name(void* user_data, uint64_t index, uint32_t view, char* out, size_t out_bytes) {
    const job* const self = (const job*)user_data;
    snprintf(out, out_bytes, "v%02u/%sframe%u.ppm", view, index % 2 ? "odd/deep/" : "", (unsigned)index);
    return self->named == GPST_OK ? GPST_OK : gpst_task_fail(NULL, self->named, "no name");
}

static void test_names(void** state) {
    static job self;
    uint8_t wanted[VIEW_BYTES], found[VIEW_BYTES];
    char path[200], plain[80];
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    snprintf(plain, sizeof plain, "%s/plain", self.dir);
    desc.output_dir = plain;
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_OK);
    desc.output_dir = self.out;
    desc.hooks.name = own_name;
    for (int again = 0; again < 2; again++)
        assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_OK);
    for (uint32_t n = 0; n < N_FRAMES; n++)
        for (uint32_t v = 0; v < N_VIEWS; v++) {
            snprintf(path, sizeof path, "%s/f%u_v%02u.ppm", plain, n, v);
            assert_true(read_view(path, wanted));
            snprintf(path, sizeof path, "%s/v%02u/%sframe%u.ppm", self.out, v, n % 2 ? "odd/deep/" : "", n);
            assert_true(read_view(path, found));
            assert_memory_equal(found, wanted, VIEW_BYTES);
        }
    close_job(&self);
}

/* What has no name has no outputs; an output is no input; the folders must be there to be made. */
static void test_names_that_are_refused(void** state) {
    static job self;
    char path[200];
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    desc.hooks.name = own_name;
    self.named = GPST_ERROR_STATE;
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_ERROR_STATE);
    assert_non_null(strstr(gpst_last_reason(), "no name"));
    self.named = GPST_OK;
    snprintf(path, sizeof path, "%s/v00", self.out);
    assert_int_equal(link(self.frames[0], path), 0); /* a file where a folder is to be; the directory is there by now */
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_ERROR_EXISTS);
    assert_non_null(strstr(gpst_last_reason(), "gpst_reproject_files: desc.output_dir: make directory"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_OK);
    snprintf(path, sizeof path, "%s/v01/frame2.ppm", self.out);
    self.inputs[0] = path;
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "would overwrite the input"));
    gpst_preprocess_desc tensors = GPST_ZERO;
    tensors.inputs = desc.inputs;
    tensors.n_inputs = 1;
    tensors.width = tensors.height = 8;
    tensors.output_file = path;
    tensors.hooks.name = own_name;
    assert_int_equal(gpst_preprocess_files(&tensors, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "desc.hooks.name: not with output_file"));
    close_job(&self);
}

/* ---- masks ------------------------------------------------------------------------------------------- */

static gpst_result own_mask(void* user_data, gpst_task* task) {
    job* const self = (job*)user_data;
    gpst_image shape = GPST_ZERO, mask;
    shape.width = self->mask_width;
    shape.height = HEIGHT;
    shape.format = self->mask_format;
    if (self->mask_width == 0)
        return GPST_OK;
    const gpst_result result = gpst_task_set_picture(task, 2, 0, &shape, &mask);
    if (!GPST_FAILED(result) && shape.width == WIDTH && shape.format == GPST_FORMAT_GRAY)
        memcpy(mask.data, self->mask[task->item->index], WIDTH * HEIGHT);
    __atomic_fetch_add(&self->n_masks, 1, __ATOMIC_RELAXED);
    return result;
}

/* Beside a view its mask is at hand. */
static gpst_result see_beside(void* user_data, gpst_task* task, const char* path) {
    job* const self = (job*)user_data;
    const gpst_image* const mask = &task->item->sets[3].pictures[task->picture_index];
    const gpst_image* const view = &task->item->sets[4].pictures[task->picture_index];
    (void)path;
    for (uint32_t i = 0; i < VIEW_WIDTH * VIEW_HEIGHT; i++) {
        const uint8_t* const pixel = (const uint8_t*)view->data + 3 * i;
        if ((((const uint8_t*)mask->data)[i] != 0) != ((pixel[0] | pixel[1] | pixel[2]) != 0))
            return gpst_task_fail(task, GPST_ERROR_CALLBACK, "pixel %u is not as its mask says", i);
    }
    __atomic_fetch_add(&self->n_beside, 1, __ATOMIC_RELAXED);
    return GPST_OK;
}

/* The bits that one mask for all gives, for every filter and convention, also where the device has its own memory. */
static void check_masks(job* self, gpst_context* context, gpst_filter filter, gpst_convention convention) {
    static uint8_t wanted[N_FRAMES][N_VIEWS][VIEW_BYTES];
    uint8_t found[VIEW_BYTES];
    char path[200];
    gpst_reproject_desc desc = views_of(self);
    desc.filter = filter;
    desc.convention = convention;
    desc.mask.width = WIDTH;
    desc.mask.height = HEIGHT;
    desc.mask.format = GPST_FORMAT_GRAY;
    for (uint32_t n = 0; n < N_FRAMES; n++) {
        desc.mask.data = self->mask[n];
        assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_OK);
        for (uint32_t v = 0; v < N_VIEWS; v++) {
            snprintf(path, sizeof path, "%s/f%u_v%02u.ppm", self->out, n, v);
            assert_true(read_view(path, wanted[n][v]));
        }
    }
    desc.mask.data = NULL;
    desc.context = context;
    desc.hooks.mask = own_mask;
    desc.hooks.beside = see_beside;
    self->n_masks = self->n_beside = 0;
    if (gpst_reproject_files(&desc, &self->report) != GPST_OK)
        fail_msg("%s", self->report.first_failure);
    assert_int_equal(self->n_masks, N_FRAMES);
    assert_int_equal(self->n_beside, N_FRAMES * N_VIEWS);
    for (uint32_t n = 0; n < N_FRAMES; n++)
        for (uint32_t v = 0; v < N_VIEWS; v++) {
            snprintf(path, sizeof path, "%s/f%u_v%02u.ppm", self->out, n, v);
            assert_true(read_view(path, found));
            assert_memory_equal(found, wanted[n][v], VIEW_BYTES);
        }
}

static void test_a_mask_for_each_frame(void** state) {
    static job self;
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* device = NULL;
    (void)state;
    open_job(&self);
    desc.backend = "sim";
    assert_int_equal(gpst_context_create(&desc, &device), GPST_OK);
    for (int filter = (int)GPST_FILTER_NEAREST; filter <= (int)GPST_FILTER_AREA; filter++) {
        check_masks(&self, NULL, (gpst_filter)filter, GPST_CONVENTION_NATIVE);
        check_masks(&self, device, (gpst_filter)filter, GPST_CONVENTION_OPENCV);
        check_masks(&self, NULL, (gpst_filter)filter, GPST_CONVENTION_FFMPEG);
        check_masks(&self, device, (gpst_filter)filter, GPST_CONVENTION_PY360);
    }
    gpst_context_destroy(device);
    close_job(&self);
}

static gpst_result encode_first(void* user_data, gpst_task* task, const gpst_image* picture, const char* path) {
    void* room = NULL;
    (void)user_data;
    if (picture->data != task->item->sets[4].pictures[task->picture_index].data)
        return gpst_task_fail(task, GPST_ERROR_CALLBACK, "that is not the masked view");
    const gpst_result result = gpst_task_encoded(task, 1, &room);
    if (!GPST_FAILED(result))
        memcpy(room, picture->data, 1);
    return GPST_FAILED(result) ? result : gpst_task_emit(task, path, 1);
}

static void check_mask_fails(job* self, const char* says) {
    gpst_reproject_desc desc = views_of(self);
    desc.hooks.mask = own_mask;
    desc.hooks.encode = encode_first;
    desc.hooks.extension = "one";
    const gpst_result result = gpst_reproject_files(&desc, &self->report);
    assert_true(says ? GPST_FAILED(result) : result == GPST_OK); /* one frame: none was done */
    if (says && !strstr(self->report.first_failure, says))
        fail_msg("%s", self->report.first_failure);
}

static void test_masks_that_are_refused(void** state) {
    static job self;
    (void)state;
    open_job(&self);
    check_mask_fails(&self, NULL);
    self.mask_width = WIDTH - 1;
    check_mask_fails(&self, "f0.ppm: mask: the mask has 63 x 32 pixels: must be the frame's 64 x 32");
    self.mask_width = WIDTH;
    self.mask_format = GPST_FORMAT_RGB;
    check_mask_fails(&self, ": mask: mask.format=");
    self.mask_width = 0;
    check_mask_fails(&self, ": mask: the mask hook set 0 pictures of set 2: must be one");
    gpst_reproject_desc desc = views_of(&self);
    desc.hooks.mask = own_mask;
    desc.mask.data = self.mask;
    assert_int_equal(gpst_reproject_files(&desc, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "desc.mask and desc.hooks.mask: one of them"));
    gpst_preprocess_desc tensors = GPST_ZERO;
    tensors.hooks.mask = own_mask;
    assert_int_equal(gpst_preprocess_files(&tensors, NULL), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "desc.hooks.mask: a tensor has none"));
    close_job(&self);
}

/* ---- what a job takes --------------------------------------------------------------------------------- */

enum { SLEEP_NS = 20000000 };

static int64_t synced_ns, watched_ns;

/* Instead of the system's: a disk that takes its time. */
int fsync(int file) {
    (void)file;
    gpsti_sleep_ns(SLEEP_NS);
    synced_ns = gpst_now_ns();
    return 0;
}

static gpst_result slow_name(void* user_data, uint64_t index, uint32_t view, char* out, size_t out_bytes) {
    if (watched_ns == 0 && index == 0 && view == 0)
        gpsti_sleep_ns(SLEEP_NS);
    return own_name(user_data, index, view, out, out_bytes);
}

static void see_pipeline(void* user_data, gpst_pipeline* pipeline, uint64_t n_inputs) {
    (void)user_data;
    (void)n_inputs;
    watched_ns = pipeline && watched_ns == 0 ? gpst_now_ns() : watched_ns;
}

static gpst_preprocess_desc tensors_of(job* self, const char* file) {
    gpst_preprocess_desc desc = GPST_ZERO;
    desc.inputs = self->inputs;
    desc.n_inputs = N_FRAMES;
    desc.output_file = file;
    desc.width = VIEW_WIDTH;
    desc.height = VIEW_HEIGHT;
    desc.hooks.watch = see_pipeline;
    return desc;
}

/* All of the time is said: from the job's begin to its first input, the run, and from the last item to its end. */
static void check_times(const gpst_stats* stats, int64_t begun_ns) {
    const int64_t ended_ns = gpst_now_ns();
    assert_true(watched_ns > begun_ns);
    assert_true(stats->start_ns >= watched_ns - begun_ns);
    assert_true(stats->wall_ns > stats->start_ns + stats->sync_ns);
    assert_true(stats->wall_ns <= ended_ns - begun_ns);
    if (synced_ns != 0)
        assert_true(begun_ns + stats->wall_ns >= synced_ns);
}

/* Modes, since a plain loop ends elsewhere; synced and not. */
static void test_what_a_job_takes(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_DEFAULT, GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    static job self;
    char file[100];
    (void)state;
    open_job(&self);
    snprintf(file, sizeof file, "%s/all.npy", self.dir);
    for (size_t m = 0; m < 2 * sizeof modes / sizeof modes[0]; m++) {
        const bool syncs = m % 2 == 0;
        gpst_preprocess_desc desc = tensors_of(&self, file);
        desc.run.mode = modes[m / 2];
        desc.run.fsync = syncs ? GPST_FSYNC_FILE : GPST_FSYNC_NONE;
        synced_ns = watched_ns = 0;
        desc.begun_ns = gpst_now_ns() - SLEEP_NS;
        assert_int_equal(gpst_preprocess_files(&desc, &self.report), GPST_OK);
        check_times(&self.report.stats, desc.begun_ns);
        assert_true(self.report.stats.start_ns >= SLEEP_NS);
        assert_int_equal(synced_ns != 0, syncs);
        if (syncs) {
            assert_true(self.report.stats.sync_ns >= SLEEP_NS);
            assert_true(self.report.stats.verdict.share[GPST_RESOURCE_DISK_OUT] > 0.0);
        }
    }
    close_job(&self);
}

/* Without begun_ns the call is the begin: names are asked for before the first input, and files are synced in the run. */
static void test_what_views_take(void** state) {
    static job self;
    (void)state;
    open_job(&self);
    gpst_reproject_desc desc = views_of(&self);
    desc.hooks.name = slow_name;
    desc.hooks.watch = see_pipeline;
    synced_ns = watched_ns = 0;
    const int64_t begun_ns = gpst_now_ns();
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_OK);
    assert_true(self.report.stats.start_ns >= SLEEP_NS);
    assert_true(self.report.stats.start_ns <= self.report.stats.wall_ns);
    assert_true(self.report.stats.wall_ns <= gpst_now_ns() - begun_ns);
    desc.begun_ns = -1;
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(),
                        "gpst_reproject_files: desc.begun_ns=-1: must not be negative or later than now");
    desc.begun_ns = gpst_now_ns() + 3600 * (int64_t)1000000000;
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_ERROR_ARGUMENT);
    assert_int_equal(self.report.stats.wall_ns, 0);
    close_job(&self);
}

/* ---- metadata ------------------------------------------------------------------------------------------ */

#define DATE "2024:05:06 07:08:09"

static gpst_result decode_dated(void* user_data, gpst_task* task) {
    job* const self = (job*)user_data;
    gpst_image shape = GPST_ZERO, picture;
    shape.width = WIDTH, shape.height = HEIGHT, shape.format = GPST_FORMAT_RGB;
    const gpst_result result = gpst_task_set_picture(task, 0, 0, &shape, &picture);
    if (!GPST_FAILED(result))
        memcpy(picture.data, self->pixels, sizeof self->pixels);
    return result;
}

/* Behind the decoder the file says something else. */
static gpst_result mask_and_forget(void* user_data, gpst_task* task) {
    memset((void*)(uintptr_t)task->item->file_data, 'x', task->item->file_bytes);
    return own_mask(user_data, task);
}

static gpst_result encode_dated(void* user_data, gpst_task* task, const gpst_image* picture, const char* path) {
    job* const self = (job*)user_data;
    uint8_t exif[GPST_EXIF_MOST_BYTES];
    size_t bytes = sizeof exif;
    gpst_metadata metadata;
    void* room = NULL;
    (void)picture;
    gpst_result result = gpst_view_exif(self->warp, task->picture_index, task->item, exif, &bytes);
    if (!GPST_FAILED(result))
        result = gpst_metadata_read(exif, bytes, &metadata);
    if (!GPST_FAILED(result) && strcmp(metadata.date, DATE) == 0)
        __atomic_fetch_add(&self->n_beside, 1, __ATOMIC_RELAXED);
    if (!GPST_FAILED(result))
        result = gpst_task_encoded(task, 1, &room);
    return GPST_FAILED(result) ? result : gpst_task_emit(task, path, 1);
}

static void test_metadata_are_read_once(void** state) {
    static const char exif[] = "II*\0\10\0\0\0\1\0\x32\1\2\0\x14\0\0\0\x1a\0\0\0\0\0\0\0" DATE;
    static job self;
    (void)state;
    open_job(&self);
    for (uint32_t n = 0; n < N_FRAMES; n++) {
        FILE* const stream = fopen(self.frames[n], "wb");
        assert_non_null(stream);
        assert_int_equal(fwrite(exif, 1, sizeof exif, stream), sizeof exif);
        assert_int_equal(fclose(stream), 0);
    }
    gpst_reproject_desc desc = views_of(&self);
    assert_int_equal(gpst_reproject_warp(&desc, &self.warp), GPST_OK);
    desc.hooks.decode = decode_dated;
    desc.hooks.mask = mask_and_forget;
    desc.hooks.encode = encode_dated;
    desc.hooks.extension = "one";
    assert_int_equal(gpst_reproject_files(&desc, &self.report), GPST_OK);
    assert_int_equal(self.n_beside, N_FRAMES * N_VIEWS);
    gpst_warp_destroy(self.warp);
    close_job(&self);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_names_that_are_refused),
        cmocka_unit_test(test_a_mask_for_each_frame),
        cmocka_unit_test(test_masks_that_are_refused),
        cmocka_unit_test(test_what_a_job_takes),
        cmocka_unit_test(test_what_views_take),
        cmocka_unit_test(test_metadata_are_read_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
