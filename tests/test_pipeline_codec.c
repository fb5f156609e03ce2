/* tests/test_pipeline_codec.c -- DECODE and ENCODE stages: files of every kind, on the cores and by a stand-in for nvJPEG
   on the simulated device; what is whose, what crosses the link, and that nothing is lost where something fails. The
   expected bytes come from gpst_jpeg_decode, gpst_warp_run and gpst_jpeg_encode, called one after the other. */
#include "test.h"

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no turbojpeg.h: install libturbojpeg0-dev\n");
    return GPST_TEST_SKIP;
}
#else

#include "codec_kit.h"

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

static gpst_result decode_by_name(void* user_data, gpst_task* task) {
    gpst_task_set_decoder(task, "libown");
    return decode_own(user_data, task);
}

static gpst_result fail_own(void* user_data, gpst_task* task) {
    (void)user_data;
    gpst_task_set_decoder(task, "libown");
    return gpst_task_fail(task, GPST_ERROR_FORMAT, "not mine either");
}

static void run_one(run* self, const void* data, size_t bytes, gpst_stage_func func, bool good) {
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
    assert_int_equal(gpst_pipeline_run(pipeline) == GPST_OK, good);
    assert_int_equal(self->n_failed, good ? 0 : 1);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
}

static void test_kinds_and_faults(void** state) {
    static uint8_t jpeg[262144], changed[262144];
    run self;
    (void)state;
    open_run(&self);
    const size_t bytes = add_jpeg(&self, 90, 70, GPST_FORMAT_JPEG_420, jpeg);
    run_one(&self, "P5 2 2 255\n1234", 15, NULL, true);
    assert_string_equal(self.decoder, "PNM");
    run_one(&self, "P5 2 2 255\n123", 14, NULL, false);
    assert_string_equal(self.decoder, "");
    run_one(&self, "what is this", 12, decode_own, true);
    assert_string_equal(self.decoder, "func");
    run_one(&self, "what is this", 12, decode_by_name, true);
    assert_string_equal(self.decoder, "libown");
    run_one(&self, "what is this", 12, fail_own, false);
    assert_string_equal(self.decoder, "");
    run_one(&self, "what is this", 12, NULL, false);
    assert_string_equal(self.decoder, "");
    assert_non_null(strstr(self.reason, "not a "));
    assert_string_equal(self.stage, "decode");
    run_one(&self, "", 0, NULL, false);
    assert_string_equal(self.decoder, "");
    assert_non_null(strstr(self.reason, "the file is empty"));

    /* No end marker behind whole data: mended, and said. */
    run_one(&self, jpeg, bytes - 2, NULL, true);
    assert_int_equal(self.n_notes, 1);
    assert_int_equal(strncmp(self.note, "mended: ", 8), 0);
    run_one(&self, jpeg, bytes, NULL, true);
    assert_int_equal(self.n_notes, 0);

    /* A third is missing: an error, or kept. */
    memcpy(changed, jpeg, bytes);
    run_one(&self, changed, bytes * 2 / 3, NULL, false);
    assert_int_equal(strncmp(self.reason, "JPEG: ", 6), 0);
    assert_string_equal(self.decoder, "");
    self.decode.on_damage = GPST_DAMAGE_KEEP;
    run_one(&self, changed, bytes * 2 / 3, NULL, true);
    assert_int_equal(strncmp(self.note, "damaged: ", 9), 0);
    assert_string_equal(self.decoder, "libjpeg-turbo");

    self.decode.max_pixels = 90 * 70 - 1;
    run_one(&self, jpeg, bytes, NULL, false);
    assert_string_equal(self.reason, "JPEG: 90x70 are 6300 pixels; at most 6299 here (max_pixels)");
    self.decode.max_pixels = 90 * 70;
    self.decode.max_bytes = 18900;
    run_one(&self, jpeg, bytes, NULL, false);
    assert_non_null(strstr(self.reason, "at most 18900 here (max_bytes)"));
    self.decode.max_bytes = 1048576;
    run_one(&self, jpeg, bytes, NULL, true);
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
                                            "nvjpegEncodeRetrieveBitstream:3:6"};
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
