/* tests/test_nvjpeg_faults.c -- nvJPEG without hardware, with calls and allocations that fail, one after the other, and
   used by several threads. A stand-in plays the library. Whatever fails has a reason, and nothing is left behind. */
#include "nvjpeg_fake.h"

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no turbojpeg.h: install libturbojpeg0-dev\n");
    return GPST_TEST_SKIP;
}
#else

/* ---- hardware ----------------------------------------------------------------------------------------------------- */

/* No hardware, for that reason; all else works, and the thread's own reason is still there. */
static void begin_without(fake_kit* kit, bool skip, const char* reason) {
    gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_BEGIN, kit->self, NULL);
    fake_file file = fake_file_make(64, 48, GPST_FORMAT_JPEG_420, false);
    fake_planes planes = fake_planes_make(&file, 0);
    gpsti_nvjpeg_file input = fake_input(&file, &planes);
    (void)gpsti_fail(GPST_ERROR_IO, "earlier");
    op.skip_hardware = skip;
    assert_int_equal(gpsti_nvjpeg_call(kit->device.stream, &op), GPST_OK);
    assert_string_equal(gpst_last_reason(), "earlier");
    fake_fail(NULL, 0, 0);
    assert_int_equal(kit->self->n_engines, 0);
    if (!strstr(kit->self->no_hardware_reason, reason))
        fail_msg("\"%s\" lacks \"%s\"", kit->self->no_hardware_reason, reason);
    op = fake_op(GPSTI_NVJPEG_DECODE_BATCH, kit->self, &kit->worker);
    op.files = &input;
    op.n_files = 1;
    refused(gpsti_nvjpeg_call(kit->device.stream, &op), GPST_ERROR_UNSUPPORTED, "nvJPEG: ", reason);
    op.operation = GPSTI_NVJPEG_DECODE_ONE;
    assert_int_equal(gpsti_nvjpeg_call(kit->device.stream, &op), GPST_OK);
    fake_planes_check(&file, 1, &planes, 0);
    fake_planes_free(&planes);
    fake_file_free(&file);
    fake_kit_end(kit);
}

static void test_no_hardware(void** state) {
    fake_kit kit;
    (void)state;
    for (int d = 0; d < 2; d++) {
        assert_int_equal(setenv("FAKE_NVJPEG_ENGINES", "0", 1), 0);
        fake_kit_load(&kit, fake_device(d));
        begin_without(&kit, false, "no hardware decoder (status 7)");
        assert_int_equal(unsetenv("FAKE_NVJPEG_ENGINES"), 0);
        assert_int_equal(setenv("GPUSTAGE_NVJPEG_HARDWARE", "0", 1), 0);
        fake_kit_load(&kit, fake_device(d));
        begin_without(&kit, false, "GPUSTAGE_NVJPEG_HARDWARE=0");
        assert_int_equal(unsetenv("GPUSTAGE_NVJPEG_HARDWARE"), 0);
        fake_kit_load(&kit, fake_device(d));
        begin_without(&kit, true, "not asked for");
        fake_kit_load(&kit, fake_device(d));
        fake_fail("nvjpegCreateEx", 1, 5);
        begin_without(&kit, false, "ALLOCATOR_FAILURE (status 5)");
        fake_kit_load(&kit, fake_device(d));
        fake_fail("nvjpegJpegStateCreate", 1, 8);
        begin_without(&kit, false, "INTERNAL_ERROR (status 8)");
    }
}

/* ---- its errors ------------------------------------------------------------------------------------------------------ */

static void test_statuses(void** state) {
    static const struct {
        int status;
        gpst_result result;
        const char* name;
    } all[] = {{1, GPST_ERROR_DEVICE, "NOT_INITIALIZED (status 1)"},
               {2, GPST_ERROR_DEVICE, "INVALID_PARAMETER (status 2)"},
               {3, GPST_ERROR_FORMAT, "BAD_JPEG (status 3)"},
               {4, GPST_ERROR_UNSUPPORTED, "JPEG_NOT_SUPPORTED (status 4)"},
               {5, GPST_ERROR_DEVICE_MEMORY, "ALLOCATOR_FAILURE (status 5)"},
               {6, GPST_ERROR_DEVICE, "EXECUTION_FAILED (status 6)"},
               {7, GPST_ERROR_UNSUPPORTED, "ARCH_MISMATCH (status 7)"},
               {8, GPST_ERROR_DEVICE, "INTERNAL_ERROR (status 8)"},
               {9, GPST_ERROR_DEVICE, "IMPLEMENTATION_NOT_SUPPORTED (status 9)"},
               {10, GPST_ERROR_FORMAT, "INCOMPLETE_BITSTREAM (status 10)"},
               {11, GPST_ERROR_DEVICE, "unknown (status 11)"},
               {-1, GPST_ERROR_DEVICE, "unknown (status -1)"}};
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        fake_file file = fake_file_make(64, 48, GPST_FORMAT_JPEG_444, false);
        fake_planes planes = fake_planes_make(&file, 0);
        gpsti_nvjpeg_file input = fake_input(&file, &planes);
        gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_DECODE_BATCH, kit.self, NULL);
        op.files = &input;
        op.n_files = 1;
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
            fake_fail("nvjpegDecodeBatched", 1, all[i].status);
            refused(gpsti_nvjpeg_call(kit.device.stream, &op), all[i].result,
                    "nvJPEG: nvjpegDecodeBatched: ", all[i].name);
            assert_int_equal(input.result, all[i].result);
        }
        fake_fail(NULL, 0, 0);
        assert_int_equal(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_OK);
        fake_planes_free(&planes);
        fake_file_free(&file);
    }
}

/* ---- one job, with everything -------------------------------------------------------------------------------------- */

#define N_PICTURES 3

typedef struct job_data {
    fake_file files[4]; /* three for the hardware; the last one is progressive */
    uint8_t pixels[40 * 30 * 3];
} job_data;

static void job_make(job_data* data) {
    data->files[0] = fake_file_make(64, 48, GPST_FORMAT_JPEG_444, false);
    data->files[1] = fake_file_make(35, 27, GPST_FORMAT_JPEG_420, false);
    data->files[2] = fake_file_make(1200, 900, GPST_FORMAT_GRAY, false);
    data->files[3] = fake_file_make(50, 31, GPST_FORMAT_JPEG_422, true);
    for (size_t i = 0; i < sizeof data->pixels; i++)
        data->pixels[i] = (uint8_t)(i * 7 + i / 90);
}

static void job_free(job_data* data) {
    for (int i = 0; i < 4; i++)
        fake_file_free(&data->files[i]);
}

/* The first failure, which has its sentence; the rest is tried nevertheless. */
static void job_note(gpst_result* first, gpst_result result) {
    if (!GPST_FAILED(result))
        return;
    assert_true(gpst_last_reason()[0] != '\0');
    if (*first == GPST_OK)
        *first = result;
    gpst_clear_reason();
}

static gpst_result job_decode(fake_kit* kit, const job_data* data, bool with_batch) {
    fake_planes planes[4];
    gpsti_nvjpeg_file inputs[4];
    gpst_result result = GPST_OK, batch = GPST_ERROR_STATE;
    for (int i = 0; i < 4; i++) {
        planes[i] = fake_planes_make(&data->files[i], 0);
        inputs[i] = fake_input(&data->files[i], &planes[i]);
    }
    gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_DECODE_BATCH, kit->self, &kit->worker);
    op.files = inputs;
    op.n_files = 3;
    if (with_batch) {
        batch = gpsti_nvjpeg_call(kit->device.stream, &op);
        job_note(&result, batch);
    }
    for (int i = 0; batch == GPST_OK && i < 3; i++)
        fake_planes_check(&data->files[i], 3, &planes[i], 0);
    op.operation = GPSTI_NVJPEG_DECODE_ONE;
    for (int i = 1; i < 4; i++) {
        op.files = &inputs[i];
        op.n_files = 1;
        const gpst_result one = gpsti_nvjpeg_call(kit->device.stream, &op);
        job_note(&result, one);
        if (one == GPST_OK)
            fake_planes_check(&data->files[i], i == 2 ? 2 : 1, &planes[i], 0);
    }
    for (int i = 0; i < 4; i++)
        fake_planes_free(&planes[i]);
    return result;
}

static gpst_result job_encode(fake_kit* kit, job_data* data, uint32_t n) {
    gpsti_nvjpeg_picture pictures[N_PICTURES];
    gpst_result result = GPST_OK;
    memset(pictures, 0, sizeof pictures);
    for (uint32_t i = 0; i < n; i++) {
        gpst_image* const image = &pictures[i].image;
        image->data = data->pixels;
        image->width = 40 - i, image->height = 30, image->format = GPST_FORMAT_RGB;
    }
    gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_ENCODE, kit->self, &kit->worker);
    op.pictures = pictures;
    op.n_pictures = n;
    op.quality = 80;
    op.chroma = GPST_FORMAT_JPEG_420;
    job_note(&result, gpsti_nvjpeg_call(kit->device.stream, &op));
    if (result != GPST_OK)
        return result;
    for (uint32_t i = 0; i < n; i++)
        pictures[i].out = malloc(pictures[i].bytes);
    op.operation = GPSTI_NVJPEG_RETRIEVE;
    job_note(&result, gpsti_nvjpeg_call(kit->device.stream, &op));
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t* const file = (const uint8_t*)pictures[i].out;
        assert_true(result != GPST_OK || (file[0] == 0xff && file[1] == 0xd8 && file[pictures[i].bytes - 1] == 0xd9));
        free(pictures[i].out);
    }
    return result;
}

/* From BEGIN to END, the operations side by side where one has failed. Twice encoded, the second time more. */
static gpst_result job_run(fake_kit* kit, job_data* data) {
    gpst_result result = GPST_OK;
    const gpst_result begun = fake_do(kit->device.stream, GPSTI_NVJPEG_BEGIN, kit->self, NULL);
    job_note(&result, begun);
    if (begun == GPST_OK && kit->self->n_engines == 0)
        result = GPST_ERROR_UNSUPPORTED; /* which is no failure of BEGIN's */
    if (begun == GPST_OK) {
        const gpst_result parts[3] = {job_decode(kit, data, kit->self->n_engines > 0), job_encode(kit, data, 1),
                                      job_encode(kit, data, N_PICTURES)};
        for (int i = 0; i < 3; i++)
            result = result == GPST_OK ? parts[i] : result;
    }
    return result;
}

#define MOST_CALLS 400

/* Each call of the library fails once; each n-th allocation, too. */
static void fail_each(job_data* data, const char* device, bool allocator) {
    int n = 1;
    for (bool failed = true; failed; n++) {
        fake_kit kit;
        assert_true(n < MOST_CALLS);
        fake_kit_load(&kit, device);
        if (allocator)
            test_memory_refuse(&kit.device.memory, (uint64_t)n);
        else
            fake_fail("*", n, 5);
        const gpst_result result = job_run(&kit, data);
        failed = allocator ? test_memory_refused(&kit.device.memory) : result != GPST_OK;
        assert_int_equal(failed, result != GPST_OK);
        fake_fail(NULL, 0, 0);
        test_memory_relent(&kit.device.memory);
        /* What has failed once works the second time, with what the first has left. */
        if (kit.self->library) {
            assert_int_equal(job_decode(&kit, data, kit.self->n_engines > 0), GPST_OK);
            assert_int_equal(job_encode(&kit, data, N_PICTURES), GPST_OK);
        }
        fake_kit_end(&kit);
    }
    printf("%s: %d %s\n", device, n - 2, allocator ? "allocations" : "calls");
    assert_true(n > (allocator ? 2 : 50));
}

static void test_failing_calls(void** state) {
    job_data data;
    (void)state;
    job_make(&data);
    for (int d = 0; d < 2; d++)
        fail_each(&data, fake_device(d), false);
    job_free(&data);
}

static void test_failing_allocations(void** state) {
    job_data data;
    (void)state;
    job_make(&data);
    for (int d = 0; d < 2; d++)
        fail_each(&data, fake_device(d), true);
    job_free(&data);
}

/* ---- calls out of place, and a device that fails ---------------------------------------------------------------------- */

static void test_wrong_length(void** state) {
    fake_kit kit;
    job_data data;
    (void)state;
    job_make(&data);
    FAKE_EACH_DEVICE(kit) {
        uint8_t room[4096];
        gpsti_nvjpeg_picture picture;
        memset(&picture, 0, sizeof picture);
        picture.image.data = data.pixels;
        picture.image.width = 20, picture.image.height = 10, picture.image.format = GPST_FORMAT_BGR;
        gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_ENCODE, kit.self, &kit.worker);
        op.pictures = &picture;
        op.n_pictures = 1;
        op.quality = 50;
        op.chroma = GPST_FORMAT_JPEG_444;
        assert_int_equal(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_OK);
        op.operation = GPSTI_NVJPEG_RETRIEVE;
        refused(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_ERROR_ARGUMENT, "nvJPEG: ", "out=NULL");
        assert_in_range(picture.bytes, 1, sizeof room);
        picture.out = room;
        assert_int_equal(setenv("FAKE_NVJPEG_LENGTH", "1", 1), 0);
        refused(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_ERROR_DEVICE, "nvJPEG: ", "were promised");
        assert_int_equal(unsetenv("FAKE_NVJPEG_LENGTH"), 0);
        assert_int_equal(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_OK);
        gpsti_nvjpeg_picture two[2] = {picture, picture};
        op.pictures = two;
        op.n_pictures = 2;
        refused(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_ERROR_STATE, "nvJPEG: ", "1 were encoded");
    }
    job_free(&data);
}

static void test_before_begin(void** state) {
    fake_kit kit;
    (void)state;
    fake_kit_load(&kit, "cpu");
    for (int operation = GPSTI_NVJPEG_DECODE_BATCH; operation <= GPSTI_NVJPEG_RETRIEVE; operation++)
        refused(fake_do(kit.device.stream, (gpsti_nvjpeg_operation)operation, kit.self, &kit.worker), GPST_ERROR_STATE,
                "nvJPEG: ", "not begun");
    refused(fake_do(kit.device.stream, (gpsti_nvjpeg_operation)99, kit.self, NULL), GPST_ERROR_ARGUMENT,
            "nvJPEG: ", "operation=99");
    assert_int_equal(fake_do(kit.device.stream, GPSTI_NVJPEG_BEGIN, kit.self, NULL), GPST_OK);
    refused(fake_do(kit.device.stream, GPSTI_NVJPEG_BEGIN, kit.self, NULL), GPST_ERROR_STATE, "nvJPEG: ", "has begun");
    fake_kit_end(&kit);
}

/* The stream's own failures come through; a lost device runs nothing. */
static void test_failing_device(void** state) {
    fake_kit kit;
    (void)state;
    fake_kit_load(&kit, "sim:launch_us=0,fail_launch=1");
    assert_int_equal(fake_do(kit.device.stream, GPSTI_NVJPEG_BEGIN, kit.self, NULL), GPST_ERROR_DEVICE);
    assert_int_equal(fake_load()->live(), 0);
    assert_int_equal(fake_do(kit.device.stream, GPSTI_NVJPEG_BEGIN, kit.self, NULL), GPST_OK);
    fake_kit_end(&kit);
    fake_kit_load(&kit, "sim:launch_us=0,lose_at=1");
    assert_int_equal(fake_do(kit.device.stream, GPSTI_NVJPEG_BEGIN, kit.self, NULL), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(fake_do(kit.device.stream, GPSTI_NVJPEG_END, kit.self, NULL), GPST_ERROR_DEVICE_LOST);
    gpsti_nvjpeg_unload(kit.self);
    assert_int_equal(fake_load()->live(), 0);
    kit_end(&kit.device);
}

/* ---- threads ----------------------------------------------------------------------------------------------------------- */

#define N_THREADS 4

typedef struct thread_work {
    gpsti_thread thread;
    fake_kit kit; /* its stream and its worker */
    job_data data;
    bool batches;
    gpst_result result;
} thread_work;

static void thread_run(void* arg) {
    thread_work* const work = (thread_work*)arg;
    for (int i = 0; i < 5 && work->result == GPST_OK; i++) {
        work->result = job_decode(&work->kit, &work->data, work->batches);
        if (work->result == GPST_OK)
            work->result = job_encode(&work->kit, &work->data, N_PICTURES);
    }
}

/* Each with its own stream and worker; one alone has the hardware. */
static void test_threads(void** state) {
    static thread_work all[N_THREADS];
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        for (int i = 0; i < N_THREADS; i++) {
            thread_work* const work = &all[i];
            memset(work, 0, sizeof *work);
            job_make(&work->data);
            work->batches = i == 0;
            work->kit.self = kit.self;
            assert_int_equal(gpst_stream_create(kit.device.device, &work->kit.device.stream), GPST_OK);
            assert_int_equal(gpsti_thread_start(&work->thread, thread_run, work, "nvjpeg"), GPST_OK);
        }
        for (int i = 0; i < N_THREADS; i++) {
            thread_work* const work = &all[i];
            gpsti_thread_join(&work->thread);
            assert_int_equal(work->result, GPST_OK);
            assert_int_equal(fake_do(work->kit.device.stream, GPSTI_NVJPEG_WORKER_END, kit.self, &work->kit.worker),
                             GPST_OK);
            gpst_stream_destroy(work->kit.device.stream);
            job_free(&work->data);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_hardware),    cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_failing_calls),  cmocka_unit_test(test_failing_allocations),
        cmocka_unit_test(test_wrong_length),   cmocka_unit_test(test_before_begin),
        cmocka_unit_test(test_failing_device), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
