/* tests/test_nvjpeg.c -- decoding and encoding by nvJPEG on the cpu and on the simulated device, with a stand-in for the
   library: which decoder a file gets, every byte of planes and files, and what is refused. */
#include "nvjpeg_fake.h"

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no turbojpeg.h: install libturbojpeg0-dev\n");
    return GPST_TEST_SKIP;
}
#else

static const gpst_format formats[] = {GPST_FORMAT_JPEG_444, GPST_FORMAT_JPEG_422, GPST_FORMAT_JPEG_420,
                                      GPST_FORMAT_JPEG_440, GPST_FORMAT_GRAY};
#define N_FORMATS (sizeof formats / sizeof formats[0])

/* ---- loading ---------------------------------------------------------------------------------------------------- */

static void load_fails(const char* path, const char* first, const char* second) {
    gpsti_host host;
    gpsti_nvjpeg* self = (gpsti_nvjpeg*)&host;
    char version[24] = "";
    gpsti_host_init(&host, NULL, NULL);
    assert_int_equal(setenv("GPUSTAGE_LIBNVJPEG", path, 1), 0);
    refused(gpsti_nvjpeg_load(&host, &self), GPST_ERROR_UNSUPPORTED, first, second);
    assert_null(self);
    refused(gpsti_nvjpeg_version(version, sizeof version), GPST_ERROR_UNSUPPORTED, first, second);
}

/* First of all: what is loaded stays. */
static void test_loading(void** state) {
    gpsti_nvjpeg* self = NULL;
    gpsti_host host;
    test_memory memory;
    const gpst_allocator hooks = test_memory_hooks(&memory);
    char version[24] = "";
    (void)state;
    load_fails("", "nvJPEG: ", "GPUSTAGE_LIBNVJPEG");
    load_fails("/nowhere/libnvjpeg.so", "nvJPEG: ", "/nowhere/libnvjpeg.so");
    load_fails(GPST_TEST_FAKES "/nvjpeg_old.so", "nvJPEG: ", "nvjpegGetHardwareDecoderInfo");
    (void)fake_load();
    gpsti_host_init(&host, &hooks, NULL);
    test_memory_refuse(&memory, 1);
    assert_int_equal(gpsti_nvjpeg_load(&host, &self), GPST_ERROR_MEMORY);
    assert_null(self);
    assert_int_equal(gpsti_nvjpeg_load(&host, &self), GPST_OK);
    gpsti_nvjpeg_unload(self);
    gpsti_nvjpeg_unload(NULL);
    assert_int_equal(gpsti_nvjpeg_version(version, sizeof version), GPST_OK);
    assert_string_equal(version, "13.0.99");
    test_memory_check(&memory);
}

/* ---- decoding ---------------------------------------------------------------------------------------------------- */

/* By each decoder that takes it. */
static void decode_file(fake_kit* kit, const fake_file* file, uint32_t gap, int expected) {
    fake_planes planes = fake_planes_make(file, gap);
    gpsti_nvjpeg_file input = fake_input(file, &planes);
    gpsti_nvjpeg_op op =
        fake_op(expected == 3 ? GPSTI_NVJPEG_DECODE_BATCH : GPSTI_NVJPEG_DECODE_ONE, kit->self, &kit->worker);
    op.files = &input;
    op.n_files = 1;
    fake_load()->reset();
    if (gpsti_nvjpeg_call(kit->device.stream, &op) != GPST_OK)
        fail_msg("%ux%u format %d: %s", file->width, file->height, (int)file->format, gpst_last_reason());
    assert_int_equal(input.result, GPST_OK);
    assert_int_equal(fake_load()->decoded(expected), 1);
    fake_planes_check(file, expected, &planes, gap);
    fake_planes_free(&planes);
}

static void test_every_format(void** state) {
    static const uint32_t sizes[][2] = {{64, 48}, {1, 1}, {17, 9}, {131, 67}, {1250, 800}, {1000, 999}};
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] * N_FORMATS; i++) {
            const uint32_t *const size = sizes[i / N_FORMATS], gap = i % 3 == 1 ? 5 : 0;
            const bool large = size[0] * size[1] >= 1000000;
            fake_file file = fake_file_make(size[0], size[1], formats[i % N_FORMATS], false);
            fake_file progressive = fake_file_make(size[0], size[1], formats[i % N_FORMATS], true);
            decode_file(&kit, &file, gap, 3);
            decode_file(&kit, &file, gap, large ? 2 : 1);
            decode_file(&kit, &progressive, gap, 1);
            fake_file_free(&file);
            fake_file_free(&progressive);
        }
    }
}

#define BATCH_MOST 20

typedef struct file_batch {
    fake_file files[BATCH_MOST];
    fake_planes planes[BATCH_MOST];
    gpsti_nvjpeg_file inputs[BATCH_MOST];
} file_batch;

static void batch_make(file_batch* batch, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        batch->files[i] = fake_file_make(40 + i * 7, 30 + i * 3 % 11, formats[i % N_FORMATS], false);
        batch->planes[i] = fake_planes_make(&batch->files[i], i % 2);
        batch->inputs[i] = fake_input(&batch->files[i], &batch->planes[i]);
    }
}

static void batch_free(file_batch* batch, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        fake_planes_free(&batch->planes[i]);
        fake_file_free(&batch->files[i]);
    }
}

static gpst_result batch_decode(fake_kit* kit, file_batch* batch, uint32_t n) {
    gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_DECODE_BATCH, kit->self, NULL);
    op.files = batch->inputs;
    op.n_files = n;
    const gpst_result result = gpsti_nvjpeg_call(kit->device.stream, &op);
    for (uint32_t i = 0; i < n; i++)
        assert_int_equal(batch->inputs[i].result, result);
    return result;
}

static void batch_check(fake_kit* kit, uint32_t n) {
    file_batch batch;
    batch_make(&batch, n);
    assert_int_equal(batch_decode(kit, &batch, n), GPST_OK);
    for (uint32_t i = 0; i < n; i++)
        fake_planes_check(&batch.files[i], 3, &batch.planes[i], i % 2);
    batch_free(&batch, n);
}

/* Prepared where the number or the largest picture is new, and only there. */
static void test_batches(void** state) {
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        assert_int_equal(kit.self->n_engines, 7);
        assert_int_equal(kit.self->batch, 7);
        assert_string_equal(kit.self->no_hardware_reason, "");
        for (uint32_t n = 1; n <= BATCH_MOST; n++)
            batch_check(&kit, n);
        assert_int_equal(fake_load()->prepared(), BATCH_MOST);
        batch_check(&kit, BATCH_MOST);
        assert_int_equal(fake_load()->prepared(), BATCH_MOST);
        batch_check(&kit, 7);
        batch_check(&kit, 7);
        assert_int_equal(fake_load()->prepared(), BATCH_MOST + 1);
    }
}

/* Sparser chroma first, then denser: prepared for the densest. */
static void test_denser_pictures(void** state) {
    static const gpst_format order[] = {GPST_FORMAT_GRAY,     GPST_FORMAT_JPEG_420, GPST_FORMAT_GRAY,
                                        GPST_FORMAT_JPEG_440, GPST_FORMAT_JPEG_420, GPST_FORMAT_JPEG_444,
                                        GPST_FORMAT_JPEG_422};
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        for (size_t i = 0; i < sizeof order / sizeof order[0]; i++) {
            fake_file file = fake_file_make(64, 48, order[i], false);
            decode_file(&kit, &file, 0, 3);
            fake_file_free(&file);
        }
    }
}

/* One file spoils its batch, and no other: the next one is prepared anew. */
static void test_a_bad_file(void** state) {
    fake_kit kit;
    file_batch batch;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        batch_make(&batch, 7);
        batch.inputs[3].bytes -= 20;
        refused(batch_decode(&kit, &batch, 7), GPST_ERROR_FORMAT, "nvJPEG: nvjpegDecodeBatched", "BAD_JPEG");
        batch.inputs[3].bytes += 20;
        assert_int_equal(batch_decode(&kit, &batch, 7), GPST_OK);
        assert_int_equal(fake_load()->prepared(), 2);
        for (uint32_t i = 0; i < 7; i++)
            fake_planes_check(&batch.files[i], 3, &batch.planes[i], i % 2);
        batch_free(&batch, 7);
    }
}

/* A batch that could not be prepared is prepared again. */
static void test_preparing_fails(void** state) {
    fake_kit kit;
    file_batch batch;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        batch_make(&batch, 3);
        assert_int_equal(batch_decode(&kit, &batch, 3), GPST_OK);
        fake_fail("nvjpegDecodeBatchedPreAllocate", 1, 5);
        refused(batch_decode(&kit, &batch, 2), GPST_ERROR_DEVICE_MEMORY, "nvJPEG: ", "PreAllocate");
        fake_fail(NULL, 0, 0);
        assert_int_equal(batch_decode(&kit, &batch, 2), GPST_OK);
        batch_free(&batch, 3);
    }
}

/* ---- what is refused ------------------------------------------------------------------------------------------------ */

static void refuse_both(fake_kit* kit, const gpsti_nvjpeg_file* input, gpst_result wanted, const char* text) {
    gpsti_nvjpeg_file file = *input;
    gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_DECODE_BATCH, kit->self, &kit->worker);
    op.files = &file;
    op.n_files = 1;
    refused(gpsti_nvjpeg_call(kit->device.stream, &op), wanted, "nvJPEG: ", text);
    op.operation = GPSTI_NVJPEG_DECODE_ONE;
    refused(gpsti_nvjpeg_call(kit->device.stream, &op), wanted, "nvJPEG: ", text);
    assert_int_equal(file.result, wanted);
}

/* Where the library sees another picture than the caller nothing is written. */
static void test_another_picture(void** state) {
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        fake_file file = fake_file_make(64, 48, GPST_FORMAT_JPEG_420, false);
        fake_planes planes = fake_planes_make(&file, 0);
        const gpsti_nvjpeg_file good = fake_input(&file, &planes);
        gpsti_nvjpeg_file input = good;
        input.to.width = 62;
        refuse_both(&kit, &input, GPST_ERROR_FORMAT, "64x48");
        input = good;
        input.to.height = 47;
        refuse_both(&kit, &input, GPST_ERROR_FORMAT, "64x48");
        input = good;
        input.to.format = GPST_FORMAT_JPEG_440;
        refuse_both(&kit, &input, GPST_ERROR_FORMAT, "subsampling");
        input.to.format = GPST_FORMAT_GRAY;
        refuse_both(&kit, &input, GPST_ERROR_FORMAT, "subsampling");
        input.to.format = GPST_FORMAT_RGB;
        refuse_both(&kit, &input, GPST_ERROR_UNSUPPORTED, "to.format");
        input = good;
        input.to.data = NULL;
        refuse_both(&kit, &input, GPST_ERROR_ARGUMENT, "to.data");
        input = good;
        input.data = NULL;
        refuse_both(&kit, &input, GPST_ERROR_ARGUMENT, "data, bytes");
        input = good;
        input.bytes = 0;
        refuse_both(&kit, &input, GPST_ERROR_ARGUMENT, "data, bytes");
        for (size_t i = 0; i < planes.bytes + 64; i++)
            assert_int_equal(((const uint8_t*)planes.image.data)[i], FAKE_GUARD);
        gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_DECODE_BATCH, kit.self, NULL);
        refused(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_ERROR_ARGUMENT, "nvJPEG: ", "n_files=0");
        fake_planes_free(&planes);
        fake_file_free(&file);
    }
}

/* ---- encoding -------------------------------------------------------------------------------------------------------- */

#define SET_MOST 8

typedef struct picture_set {
    gpsti_nvjpeg_picture pictures[SET_MOST];
    uint32_t n;
} picture_set;

static void set_make(picture_set* set, uint32_t n, gpst_format format) {
    uint64_t random = n;
    memset(set, 0, sizeof *set);
    set->n = n;
    for (uint32_t i = 0; i < n; i++) {
        gpst_image* const image = &set->pictures[i].image;
        image->width = 33 + 16 * i, image->height = 21 + 5 * i, image->format = format;
        image->pitch_bytes = i % 2 ? image->width * 3 + 7 : 0;
        const gpst_image resolved = gpsti_image_resolved(image);
        const size_t bytes = (size_t)resolved.pitch_bytes * resolved.height;
        image->data = malloc(bytes);
        for (size_t b = 0; b < bytes; b++)
            ((uint8_t*)image->data)[b] = (uint8_t)(b % 200 + test_random(&random) % 30);
    }
}

static void set_free(picture_set* set) {
    for (uint32_t i = 0; i < set->n; i++) {
        free(set->pictures[i].image.data);
        free(set->pictures[i].out);
    }
}

static gpsti_nvjpeg_op set_op(fake_kit* kit, picture_set* set, gpst_format chroma, uint32_t quality) {
    gpsti_nvjpeg_op op = fake_op(GPSTI_NVJPEG_ENCODE, kit->self, &kit->worker);
    op.pictures = set->pictures;
    op.n_pictures = set->n;
    op.chroma = chroma;
    op.quality = quality;
    return op;
}

/* The file that libturbojpeg makes of it; behind the start marker a comment where own tables were asked for. */
static void picture_check(const gpsti_nvjpeg_picture* picture, gpst_format chroma, uint32_t quality, bool optimised) {
    const gpst_image image = gpsti_image_resolved(&picture->image);
    const size_t more = optimised ? 13 : 0;
    const uint8_t* const seen = (const uint8_t*)picture->out;
    unsigned char* wanted = NULL;
    unsigned long bytes = 0;
    tjhandle const turbo = tjInitCompress();
    assert_int_equal(tjCompress2(turbo, (const unsigned char*)image.data, (int)image.width, (int)image.pitch_bytes,
                                 (int)image.height, image.format == GPST_FORMAT_RGB ? TJPF_RGB : TJPF_BGR, &wanted,
                                 &bytes, fake_sampling(chroma), (int)quality, 0),
                     0);
    assert_int_equal(picture->bytes, bytes + more);
    assert_memory_equal(seen, wanted, 2);
    assert_memory_equal(seen + 2 + more, wanted + 2, bytes - 2);
    assert_true(!optimised || memcmp(seen + 6, "optimised", 9) == 0);
    tjFree(wanted);
    tjDestroy(turbo);
}

static void set_encode(fake_kit* kit, uint32_t n, gpst_format format, gpst_format chroma, uint32_t quality,
                       bool optimise) {
    picture_set set;
    set_make(&set, n, format);
    gpsti_nvjpeg_op op = set_op(kit, &set, chroma, quality);
    op.optimise = optimise;
    assert_int_equal(gpsti_nvjpeg_call(kit->device.stream, &op), GPST_OK);
    for (uint32_t i = 0; i < n; i++)
        set.pictures[i].out = malloc(set.pictures[i].bytes);
    op.operation = GPSTI_NVJPEG_RETRIEVE;
    assert_int_equal(gpsti_nvjpeg_call(kit->device.stream, &op), GPST_OK);
    for (uint32_t i = 0; i < n; i++)
        picture_check(&set.pictures[i], chroma, quality, optimise);
    set_free(&set);
}

static void test_encode(void** state) {
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        for (uint32_t i = 0; i < 24; i++)
            set_encode(&kit, 1 + i % SET_MOST, i % 2 ? GPST_FORMAT_RGB : GPST_FORMAT_BGR, formats[i % 3],
                       i == 0   ? 1
                       : i == 1 ? 100
                                : 30 + i * 2,
                       i % 4 == 3);
        assert_int_equal(kit.worker.n_encoders, SET_MOST);
    }
}

/* The file of an encoded picture, decoded by the hardware. */
static void test_there_and_back(void** state) {
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        picture_set set;
        set_make(&set, 1, GPST_FORMAT_RGB);
        gpsti_nvjpeg_op op = set_op(&kit, &set, GPST_FORMAT_JPEG_422, 90);
        assert_int_equal(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_OK);
        set.pictures[0].out = malloc(set.pictures[0].bytes);
        op.operation = GPSTI_NVJPEG_RETRIEVE;
        assert_int_equal(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_OK);
        const fake_file file = {
            set.pictures[0].image.width,         set.pictures[0].image.height,        GPST_FORMAT_JPEG_422, false,
            (unsigned char*)set.pictures[0].out, (unsigned long)set.pictures[0].bytes};
        decode_file(&kit, &file, 0, 3);
        set_free(&set);
    }
}

static void refuse_encode(fake_kit* kit, gpst_format format, gpst_format chroma, uint32_t quality, gpst_result wanted,
                          const char* text) {
    picture_set set;
    set_make(&set, 1, GPST_FORMAT_RGB);
    set.pictures[0].image.format = format;
    gpsti_nvjpeg_op op = set_op(kit, &set, chroma, quality);
    refused(gpsti_nvjpeg_call(kit->device.stream, &op), wanted, "nvJPEG: ", text);
    set_free(&set);
}

static void test_what_is_not_encoded(void** state) {
    fake_kit kit;
    (void)state;
    FAKE_EACH_DEVICE(kit) {
        const gpst_format c444 = GPST_FORMAT_JPEG_444, rgb = GPST_FORMAT_RGB;
        refuse_encode(&kit, GPST_FORMAT_RGBA, c444, 90, GPST_ERROR_UNSUPPORTED, "image.format");
        refuse_encode(&kit, GPST_FORMAT_GRAY, c444, 90, GPST_ERROR_UNSUPPORTED, "image.format");
        refuse_encode(&kit, rgb, GPST_FORMAT_JPEG_440, 90, GPST_ERROR_UNSUPPORTED, "chroma=12");
        refuse_encode(&kit, rgb, GPST_FORMAT_INVALID, 90, GPST_ERROR_UNSUPPORTED, "chroma=0");
        refuse_encode(&kit, rgb, c444, 0, GPST_ERROR_ARGUMENT, "quality=0");
        refuse_encode(&kit, rgb, c444, 101, GPST_ERROR_ARGUMENT, "quality=101");
        picture_set set;
        set_make(&set, 1, GPST_FORMAT_RGB);
        gpsti_nvjpeg_op op = set_op(&kit, &set, c444, 90);
        gpst_image* const image = &set.pictures[0].image;
        const gpst_image good = *image;
        image->layout = GPST_LAYOUT_CHW;
        refused(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_ERROR_UNSUPPORTED, "nvJPEG: image", "HWC");
        *image = good;
        image->pitch_bytes = -(int64_t)good.width * 3;
        refused(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_ERROR_UNSUPPORTED, "nvJPEG: image", "bottom-up");
        *image = good;
        image->width = image->height = 20000; /* refused before it is read */
        refused(gpsti_nvjpeg_call(kit.device.stream, &op), GPST_ERROR_UNSUPPORTED, "nvJPEG: image.width=20000",
                "pixels");
        set_free(&set);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loading),         cmocka_unit_test(test_every_format),
        cmocka_unit_test(test_batches),         cmocka_unit_test(test_denser_pictures),
        cmocka_unit_test(test_a_bad_file),      cmocka_unit_test(test_preparing_fails),
        cmocka_unit_test(test_another_picture), cmocka_unit_test(test_encode),
        cmocka_unit_test(test_there_and_back),  cmocka_unit_test(test_what_is_not_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
