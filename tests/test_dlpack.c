/* tests/test_dlpack.c -- pictures as DLPack's tensors: every dtype and layout there and back, what is refused of an
   image, memory of devices, and that a deleter is called once, by whomever. */
#include "test_dlpack.h"

#include <pthread.h>

/* ---- there and back ------------------------------------------------------------------------------ */

typedef struct dtype_case {
    gpst_dtype dtype;
    int code, bits;
} dtype_case;
static const dtype_case dtypes[] = {{GPST_DTYPE_U8, 1, 8},   {GPST_DTYPE_I8, 0, 8},   {GPST_DTYPE_U16, 1, 16},
                                    {GPST_DTYPE_F16, 2, 16}, {GPST_DTYPE_F32, 2, 32}, {GPST_DTYPE_DEFAULT, 1, 8}};

static void check_round_trip(const gpst_dlpack_desc* desc, gpst_dlpack_kind kind, gpsti_a32* n_released) {
    const gpst_image* const from = &desc->image;
    const gpst_image resolved = gpsti_image_resolved(from);
    const uint32_t n_before = gpsti_a32_load(n_released);
    gpst_dlpack_view view;
    gpst_dlpack_desc wanted = *desc;
    wanted.kind = kind;
    dl_managed* const managed = exported(&wanted);
    if (gpst_dlpack_import(managed, kind, from->layout, NULL, &view) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    assert_ptr_equal(view.image.data, from->data);
    assert_int_equal(view.image.width, from->width);
    assert_int_equal(view.image.height, from->height);
    assert_int_equal(view.image.dtype, resolved.dtype);
    assert_int_equal(view.image.n_channels, gpsti_image_channels(from));
    if (view.image.n_channels > 1)
        assert_int_equal(view.image.layout, resolved.layout);
    if (from->height > 1)
        assert_int_equal(view.image.pitch_bytes, resolved.pitch_bytes);
    assert_int_equal(view.n_images, desc->n_images);
    assert_true(!view.on_device && !view.pinned && !view.copied && view.read_only == desc->read_only);
    assert_int_equal(gpsti_a32_load(n_released), n_before);
    view.release(view.release_user_data);
    assert_int_equal(gpsti_a32_load(n_released), n_before + 1);
}

static void every_dtype_and_layout(void** state) {
    static const gpst_format formats[] = {GPST_FORMAT_GRAY, GPST_FORMAT_RGB,  GPST_FORMAT_BGR,
                                          GPST_FORMAT_RGBA, GPST_FORMAT_BGRA, GPST_FORMAT_TENSOR};
    gpsti_a32 n_released;
    (void)state;
    gpsti_a32_store(&n_released, 0);
    for (size_t d = 0; d < sizeof dtypes / sizeof *dtypes; d++)
        for (uint32_t c = 0; c < 6 * 2 * 4 * 3; c++) {
            const gpst_format format = formats[c % 6];
            const gpst_layout layout = c / 6 % 2 ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
            const uint32_t width = c / 12 % 2 ? 1 : 7, height = c / 24 % 2 ? 1 : 3, gap = c / 48 % 3;
            const dtype_case* const type = &dtypes[d];
            if (format == GPST_FORMAT_TENSOR && type->dtype == GPST_DTYPE_DEFAULT)
                continue;
            gpst_dlpack_desc desc = desc_of(image_of(width, height, format, type->dtype, layout), &n_released);
            const int64_t row_bytes = (int64_t)gpst_image_row_bytes(&desc.image);
            if (gap == 1)
                desc.image.pitch_bytes = row_bytes + 8;
            if (gap == 2) { /* bottom-up */
                desc.image.pitch_bytes = -row_bytes - 4;
                desc.image.data = pixels + 2048;
            }
            dl_managed* const managed = exported(&desc);
            assert_int_equal(managed->major, 1);
            assert_int_equal(managed->flags, 0);
            assert_int_equal(managed->tensor.code, type->code);
            assert_int_equal(managed->tensor.bits, type->bits);
            assert_int_equal(managed->tensor.lanes, 1);
            assert_int_equal(managed->tensor.device_type, 1);
            assert_ptr_equal(managed->tensor.data, desc.image.data);
            managed->deleter(managed);
            check_round_trip(&desc, GPST_DLPACK_DEFAULT, &n_released);
            check_round_trip(&desc, GPST_DLPACK_LEGACY, &n_released);
            desc.gray_has_channels = true;
            desc.n_images = 2;
            desc.read_only = true;
            check_round_trip(&desc, GPST_DLPACK_VERSIONED, &n_released);
        }
}

static void axes_and_strides(void** state) {
    (void)state;
    gpst_dlpack_desc desc = desc_of(image_of(7, 3, GPST_FORMAT_RGB, GPST_DTYPE_U16, GPST_LAYOUT_HWC), NULL);
    desc.image.pitch_bytes = 48;
    dl_managed* managed = exported(&desc);
    expect_axes(&managed->tensor, 3, (const int64_t[]){3, 7, 3}, (const int64_t[]){24, 3, 1});
    gpst_dlpack_release(GPST_DLPACK_VERSIONED, managed);
    desc.n_images = 4;
    managed = exported(&desc);
    expect_axes(&managed->tensor, 4, (const int64_t[]){4, 3, 7, 3}, (const int64_t[]){72, 24, 3, 1});
    gpst_dlpack_release(GPST_DLPACK_VERSIONED, managed);
    desc.image.layout = GPST_LAYOUT_CHW;
    desc.image_step_bytes = 1000;
    managed = exported(&desc);
    expect_axes(&managed->tensor, 4, (const int64_t[]){4, 3, 3, 7}, (const int64_t[]){500, 72, 24, 1});
    gpst_dlpack_release(GPST_DLPACK_VERSIONED, managed);
    desc = desc_of(image_of(7, 3, GPST_FORMAT_GRAY, GPST_DTYPE_F32, GPST_LAYOUT_CHW), NULL);
    desc.image.pitch_bytes = -32;
    desc.image.data = pixels + 100;
    managed = exported(&desc);
    expect_axes(&managed->tensor, 2, (const int64_t[]){3, 7}, (const int64_t[]){-8, 1});
    gpst_dlpack_release(GPST_DLPACK_DEFAULT, managed);
    desc.gray_has_channels = true;
    managed = exported(&desc);
    expect_axes(&managed->tensor, 3, (const int64_t[]){1, 3, 7}, (const int64_t[]){0, -8, 1});
    gpst_dlpack_release(GPST_DLPACK_DEFAULT, managed);
    desc.image.layout = GPST_LAYOUT_HWC;
    managed = exported(&desc);
    expect_axes(&managed->tensor, 3, (const int64_t[]){3, 7, 1}, (const int64_t[]){-8, 1, 0});
    gpst_dlpack_release(GPST_DLPACK_DEFAULT, managed);
    desc.read_only = true;
    managed = exported(&desc);
    assert_int_equal(managed->flags, 1);
    gpst_dlpack_release(GPST_DLPACK_DEFAULT, managed);
}

/* ---- what is refused of an image ------------------------------------------------------------------ */

static void refused_exports(void** state) {
    void* managed = NULL;
    (void)state;
    const gpst_dlpack_desc good = desc_of(image_of(6, 4, GPST_FORMAT_RGB, GPST_DTYPE_U16, GPST_LAYOUT_HWC), NULL);
    gpst_dlpack_desc bad = good;
    refused(gpst_dlpack_export(NULL, &managed), GPST_ERROR_ARGUMENT, "gpst_dlpack_export: desc=NULL", "");
    refused(gpst_dlpack_export(&good, NULL), GPST_ERROR_ARGUMENT, "gpst_dlpack_export: out=NULL", "");
    refused(gpst_dlpack_export_versioned(GPST_VERSION, sizeof good - 1, &good, &managed), GPST_ERROR_VERSION,
            "gpst_dlpack_export: version=", "");
    bad.end_canary = 3, refuse_export(bad, GPST_ERROR_ARGUMENT, "end_canary=3"), bad = good;
    bad.kind = (gpst_dlpack_kind)3, refuse_export(bad, GPST_ERROR_ARGUMENT, "kind=3: must be VERSIONED or LEGACY");
    bad.kind = GPST_DLPACK_LEGACY, bad.read_only = true;
    refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.read_only=true: must be false with LEGACY"), bad = good;
    bad.allocator.alloc = test_memory_alloc, refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.allocator: ");
    for (int format = 0; format < 14; format++) {
        const bool planes = (format >= GPST_FORMAT_NV12 && format <= GPST_FORMAT_I420) || (format > 8 && format < 13);
        bad = good, bad.image.format = (gpst_format)format;
        bad.image.dtype = GPST_DTYPE_U8;
        if (planes)
            refuse_export(bad, GPST_ERROR_ARGUMENT, "its planes are of two sizes, and no one array");
        else if (format == 0 || format == 13)
            refuse_export(bad, GPST_ERROR_ARGUMENT, "must be one of gpst_format");
    }
    bad = good, bad.image.data = NULL, refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.image.data=NULL"), bad = good;
    bad.image.pitch_bytes = 37,
    refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.image.pitch_bytes=37: must be a multiple");
    bad.image.pitch_bytes = 34, refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.image.pitch_bytes=34: must be 0, or");
    bad.image.pitch_bytes = INT64_MAX / 3 - 1, refuse_export(bad, GPST_ERROR_OVERFLOW, "do not fit in memory");
    bad.image.pitch_bytes = INT64_MIN, refuse_export(bad, GPST_ERROR_OVERFLOW, "do not fit in memory"), bad = good;
    bad.image_step_bytes = 100, refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.image_step_bytes=100: must be 0 without");
    bad.n_images = 2, bad.image_step_bytes = 101;
    refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.image_step_bytes=101: must be a multiple of the 2 bytes"), bad = good;
    bad.memory = GPST_MEMORY_DEVICE, refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.device=NULL: required");
    bad.memory = (gpst_memory_kind)5, refuse_export(bad, GPST_ERROR_ARGUMENT, "desc.memory=5: must be HOST"),
    bad = good;
    bad.image.height = 1, bad.image.pitch_bytes = INT64_MIN; /* of one row nobody uses it */
    gpst_dlpack_release(GPST_DLPACK_VERSIONED, exported(&bad));
}

/* ---- devices ------------------------------------------------------------------------------------------ */

/* A device that says to be a vendor's; nothing here calls it. */
typedef struct stand_in {
    gpst_device* real;
    gpsti_backend_i table;
    gpsti_device base;
    gpst_device device;
} stand_in;

static void stand_in_start(stand_in* self, const char* backend, int32_t ordinal) {
    assert_int_equal(gpst_device_open("cpu", &self->real), GPST_OK);
    self->table = *self->real->device->i;
    self->table.name = backend;
    self->base = *self->real->device;
    self->base.i = &self->table;
    self->device = *self->real;
    self->device.device = &self->base;
    self->device.info.zero_copy = false;
    self->device.info.ordinal = ordinal;
}

static gpst_result refuse_memory(gpsti_device* device, const void* ptr) {
    (void)device;
    return gpsti_fail(ptr == pixels ? GPST_ERROR_ARGUMENT : GPST_ERROR_INTERNAL, "not this memory");
}

static void expect_type(const gpst_device* device, gpst_memory_kind memory, int32_t type, int32_t id) {
    gpst_dlpack_desc desc = desc_of(image_of(5, 4, GPST_FORMAT_RGB, GPST_DTYPE_U8, HWC), NULL);
    gpst_dlpack_view view;
    desc.device = device;
    desc.memory = memory;
    dl_managed* const managed = exported(&desc);
    assert_int_equal(managed->tensor.device_type, type);
    assert_int_equal(managed->tensor.device_id, id);
    if (gpst_dlpack_import(managed, GPST_DLPACK_VERSIONED, HWC, device, &view) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    assert_int_equal(view.on_device, type == 2 || type == 10);
    assert_int_equal(view.pinned, type == 3 || type == 11);
    view.release(view.release_user_data);
}

static void kinds_of_devices(void** state) {
    static const int64_t shape[] = {4, 5, 3};
    stand_in cuda, hip, cpu, other;
    foreign tensor;
    gpst_dlpack_view view;
    (void)state;
    stand_in_start(&cuda, "cuda", 3);
    stand_in_start(&hip, "hip", 1);
    stand_in_start(&other, "other", 0);
    stand_in_start(&cpu, "cpu", 0);
    cpu.device.info.zero_copy = true;
    expect_type(NULL, GPST_MEMORY_INVALID, 1, 0);
    expect_type(NULL, GPST_MEMORY_PINNED, 1, 0);
    expect_type(&cpu.device, GPST_MEMORY_INVALID, 1, 0);
    expect_type(&cpu.device, GPST_MEMORY_DEVICE, 1, 0);
    expect_type(&cpu.device, GPST_MEMORY_PINNED, 1, 0);
    expect_type(&cuda.device, GPST_MEMORY_INVALID, 2, 3);
    expect_type(&cuda.device, GPST_MEMORY_DEVICE, 2, 3);
    expect_type(&cuda.device, GPST_MEMORY_PINNED, 3, 0);
    expect_type(&cuda.device, GPST_MEMORY_REGISTERED, 3, 0);
    expect_type(&cuda.device, GPST_MEMORY_HOST, 1, 0);
    expect_type(&hip.device, GPST_MEMORY_DEVICE, 10, 1);
    expect_type(&hip.device, GPST_MEMORY_PINNED, 11, 0);
    expect_type(&other.device, GPST_MEMORY_PINNED, 1, 0);
    gpst_dlpack_desc desc = desc_of(image_of(5, 4, GPST_FORMAT_RGB, GPST_DTYPE_U8, HWC), NULL);
    desc.device = &other.device;
    refuse_export(desc, GPST_ERROR_UNSUPPORTED, "DLPack knows no device of the backend other");

    dl_managed* const managed = foreign_make(&tensor, pixels, 3, shape, NULL);
    managed->tensor.device_type = 2, managed->tensor.device_id = 3;
    assert_int_equal(import_of(&tensor, &cuda.device, &view), GPST_OK);
    assert_true(view.on_device);
    refused(import_of(&tensor, NULL, &view), GPST_ERROR_ARGUMENT,
            "device=NULL: required: the tensor is of CUDA device 3", "");
    refused(import_of(&tensor, &hip.device, &view), GPST_ERROR_ARGUMENT, "is hip device 1, and the tensor of CUDA", "");
    refused(import_of(&tensor, &cpu.device, &view), GPST_ERROR_ARGUMENT, "is cpu device 0, and the tensor of CUDA", "");
    managed->tensor.device_id = 0;
    refused(import_of(&tensor, &cuda.device, &view), GPST_ERROR_ARGUMENT,
            "is cuda device 3, and the tensor of CUDA device 0", "");
    managed->tensor.device_type = 13, managed->tensor.device_id = 3; /* managed memory */
    assert_int_equal(import_of(&tensor, &cuda.device, &view), GPST_OK);
    assert_true(view.on_device);
    cuda.table.memory_check = refuse_memory; /* of another context, say */
    refused(import_of(&tensor, &cuda.device, &view), GPST_ERROR_ARGUMENT, "gpst_dlpack_import: not this memory", "");
    cuda.table.memory_check = NULL;
    managed->tensor.device_type = 8;
    refused(import_of(&tensor, &cuda.device, &view), GPST_ERROR_ARGUMENT, "device_type=8: must be the host's", "");
    gpst_device_close(cuda.real), gpst_device_close(hip.real), gpst_device_close(other.real),
        gpst_device_close(cpu.real);
}

/* On every backend that there is: memory of it goes out and comes back, and the device may be closed before that. */
static void memory_of_devices(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_device_info info;
        gpsti_a32 n_released;
        gpst_dlpack_view view;
        gpsti_a32_store(&n_released, 0);
        kit_start(&kit, device_name(d));
        gpst_device_query_info(kit.device, &info);
        gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, 5 * 4 * 3);
        gpst_dlpack_desc desc = desc_of(image_of(5, 4, GPST_FORMAT_RGB, GPST_DTYPE_U8, HWC), &n_released);
        desc.image.data = gpst_memory_data(memory);
        desc.device = kit.device;
        if (!strcmp(info.backend, "sim")) {
            refuse_export(desc, GPST_ERROR_UNSUPPORTED, "backend sim");
            gpst_memory_destroy(memory);
            kit_end(&kit);
            continue;
        }
        dl_managed* const managed = exported(&desc);
        assert_int_equal(managed->tensor.device_id, info.ordinal);
        assert_int_equal(gpst_dlpack_import(managed, GPST_DLPACK_VERSIONED, HWC, kit.device, &view), GPST_OK);
        assert_true(view.on_device == !info.zero_copy && view.image.data == gpst_memory_data(memory));
        gpst_memory_destroy(memory);
        kit_end(&kit);
        view.release(view.release_user_data);
        assert_int_equal(gpsti_a32_load(&n_released), 1);
    }
}

/* ---- the deleter -------------------------------------------------------------------------------------- */

static void* delete_there(void* managed) {
    ((dl_managed*)managed)->deleter((dl_managed*)managed);
    return NULL;
}

static void deleted_by_other_threads(void** state) {
    enum { N = 8 };
    gpsti_a32 n_released;
    pthread_t threads[N];
    test_memory memory;
    (void)state;
    gpsti_a32_store(&n_released, 0);
    gpst_dlpack_desc desc = desc_of(image_of(5, 4, GPST_FORMAT_RGB, GPST_DTYPE_U8, HWC), &n_released);
    desc.allocator = test_memory_hooks(&memory);
    for (int k = 0; k < N; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, delete_there, exported(&desc)), 0);
    for (int k = 0; k < N; k++)
        pthread_join(threads[k], NULL);
    assert_int_equal(gpsti_a32_load(&n_released), N);
    assert_int_equal(gpsti_a64_load(&memory.calls), N); /* one allocation each */
    test_memory_check(&memory);
}

static void faults(void** state) {
    gpsti_a32 n_released;
    test_memory memory;
    void* managed = &memory;
    (void)state;
    gpsti_a32_store(&n_released, 0);
    gpst_dlpack_desc desc = desc_of(image_of(5, 4, GPST_FORMAT_RGB, GPST_DTYPE_U8, HWC), &n_released);
    desc.allocator = test_memory_hooks(&memory);
    test_memory_refuse(&memory, 1);
    refused(gpst_dlpack_export(&desc, &managed), GPST_ERROR_MEMORY, "gpst_dlpack_export: ", "");
    assert_null(managed);
    test_memory_check(&memory);
    assert_int_equal(gpsti_a32_load(&n_released), 0);
    test_memory_relent(&memory);
    gpst_dlpack_release(GPST_DLPACK_VERSIONED, exported(&desc)); /* again */
    test_memory_check(&memory);
    assert_int_equal(gpsti_a32_load(&n_released), 1);
}

/* A tensor as a lent frame of a pipeline, which calls the deleter; its result as a tensor, whose release gives it back
   to the pipeline. */
typedef struct held {
    gpst_pipeline* pipeline;
    const gpst_item* item;
} held;

static void give_back(void* user_data) {
    const held* const self = (const held*)user_data;
    gpst_pipeline_release(self->pipeline, self->item);
}

static void through_a_pipeline(void** state) {
    static const int64_t shape[] = {16, 32, 3};
    static uint8_t bytes[16 * 32 * 3];
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_warp* warp = NULL;
    foreign other;
    gpst_dlpack_view view;
    held result = GPST_ZERO;
    (void)state;
    memset(bytes, 77, sizeof bytes);
    warp_desc.map = GPST_MAP_RESIZE;
    warp_desc.width = 8, warp_desc.height = 4;
    warp_desc.format = GPST_FORMAT_RGB;
    warp_desc.layout = CHW;
    context_desc.backend = "cpu";
    stage.kind = GPST_STAGE_WARP;
    assert_int_equal(gpst_warp_create(&warp_desc, &warp), GPST_OK);
    stage.warp = warp;
    desc.stages = &stage;
    desc.n_stages = 1;
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    assert_int_equal(gpst_pipeline_create(context, &desc, &result.pipeline), GPST_OK);
    foreign_make(&other, bytes, 3, shape, NULL);
    assert_int_equal(import_of(&other, gpst_context_device(context), &view), GPST_OK);
    input.frame = view.image;
    input.release = view.release;
    input.release_user_data = view.release_user_data;
    assert_int_equal(gpst_pipeline_submit(result.pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(result.pipeline, GPST_FOREVER, &result.item), GPST_OK);
    assert_int_equal(result.item->result, GPST_OK);
    assert_int_equal(gpsti_a32_load(&other.n_deleted), 1);
    gpst_dlpack_desc out = desc_of(result.item->sets[1].pictures[0], NULL);
    out.release = give_back;
    out.release_user_data = &result;
    dl_managed* const managed = exported(&out);
    expect_axes(&managed->tensor, 3, (const int64_t[]){3, 4, 8}, (const int64_t[]){32, 8, 1});
    for (int k = 0; k < 96; k++)
        assert_int_equal(((const uint8_t*)managed->tensor.data)[k], 77);
    managed->deleter(managed);
    gpst_pipeline_destroy(result.pipeline);
    gpst_warp_destroy(warp);
    gpst_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_dtype_and_layout),
                                       cmocka_unit_test(axes_and_strides),
                                       cmocka_unit_test(refused_exports),
                                       cmocka_unit_test(kinds_of_devices),
                                       cmocka_unit_test(memory_of_devices),
                                       cmocka_unit_test(deleted_by_other_threads),
                                       cmocka_unit_test(faults),
                                       cmocka_unit_test(through_a_pipeline)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
