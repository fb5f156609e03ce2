/* tests/test_device_enqueue.c -- kernels on a stream: the bits of the plain calls, on every backend, from descriptions
   that are gone when the stream comes to them. */
#include "test_device.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/device/enqueue.h"
#endif

/* ---- device memory with what the host has --------------------------------------------------- */

static gpst_memory* upload(device_kit* kit, const void* from, size_t bytes) {
    gpst_memory* const memory = memory_of(kit->device, GPST_MEMORY_DEVICE, bytes);
    if (from)
        assert_int_equal(gpst_copy(gpst_memory_data(memory), from, bytes, kit->stream), GPST_OK);
    else
        assert_int_equal(gpst_fill(gpst_memory_data(memory), 0xA5, bytes, kit->stream), GPST_OK);
    return memory;
}

static void expect_bytes(device_kit* kit, gpst_memory* memory, const void* wanted, size_t bytes) {
    void* const seen = malloc(bytes);
    assert_int_equal(gpst_copy(seen, gpst_memory_data(memory), bytes, kit->stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(kit->stream), GPST_OK);
    assert_memory_equal(seen, wanted, bytes);
    free(seen);
}

/* ---- the library's own ----------------------------------------------------------------------- */

enum { N_VIEWS = 6, SOURCE_WIDTH = 97, SOURCE_HEIGHT = 51, WIDTH = 33, HEIGHT = 29 }; /* 6: two launches on sim */

static gpst_warp* warp_make(void) {
    gpst_view views[N_VIEWS];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    memset(views, 0, sizeof views);
    for (int v = 0; v < N_VIEWS; v++)
        views[v].yaw = 60 * v, views[v].pitch = 5 * v;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = N_VIEWS;
    desc.width = WIDTH;
    desc.height = HEIGHT;
    desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

static void test_warp(void** state) {
    static uint8_t pixels[SOURCE_WIDTH * SOURCE_HEIGHT * 3], wanted[N_VIEWS * WIDTH * HEIGHT * 3];
    uint64_t random = test_seed(5);
    (void)state;
    for (size_t i = 0; i < sizeof pixels; i++)
        pixels[i] = (uint8_t)test_random(&random);
    gpst_warp* const warp = warp_make();
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_image source = GPST_ZERO, outputs[N_VIEWS];
        kit_start(&kit, device_name(d));
        source.data = pixels;
        source.width = SOURCE_WIDTH;
        source.height = SOURCE_HEIGHT;
        source.format = GPST_FORMAT_RGB;
        for (int v = 0; v < N_VIEWS; v++) {
            gpst_warp_query_output(warp, &outputs[v]);
            outputs[v].data = wanted + v * WIDTH * HEIGHT * 3;
        }
        assert_int_equal(gpst_warp_run(warp, &source, outputs, N_VIEWS, 1), GPST_OK);
        gpst_memory* const from = upload(&kit, pixels, sizeof pixels);
        gpst_memory* const to = upload(&kit, NULL, sizeof wanted);
        source.data = gpst_memory_data(from);
        for (int v = 0; v < N_VIEWS; v++)
            outputs[v].data = (uint8_t*)gpst_memory_data(to) + v * WIDTH * HEIGHT * 3;
        refused(gpst_warp_enqueue(NULL, &source, outputs, N_VIEWS, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_warp_enqueue: warp=NULL", "");
        refused(gpst_warp_enqueue(warp, NULL, outputs, N_VIEWS, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_warp_enqueue: source=NULL", "");
        refused(gpst_warp_enqueue(warp, &source, NULL, N_VIEWS, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_warp_enqueue: outputs=NULL", "");
        refused(gpst_warp_enqueue(warp, &source, outputs, 5, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_warp_enqueue: n_outputs=5", "has 6");
        refused(gpst_warp_enqueue(warp, &source, outputs, N_VIEWS, NULL), GPST_ERROR_ARGUMENT,
                "gpst_warp_enqueue: stream=NULL", "");
        outputs[5].width++;
        refused(gpst_warp_enqueue(warp, &source, outputs, N_VIEWS, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_warp_enqueue: ", "outputs[5]");
        outputs[5].width--;
        assert_int_equal(gpst_warp_enqueue(warp, &source, outputs, N_VIEWS, kit.stream), GPST_OK);
        memset(&source, 0xA5, sizeof source);
        memset(outputs, 0xA5, sizeof outputs);
        expect_bytes(&kit, to, wanted, sizeof wanted);
        gpst_memory_destroy(from);
        gpst_memory_destroy(to);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

static void test_argmax(void** state) {
    static float scores[5 * 21 * 19];
    static uint8_t wanted[40 * 37];
    uint64_t random = test_seed(6);
    (void)state;
    for (size_t i = 0; i < sizeof scores / sizeof *scores; i++)
        scores[i] = (float)(test_random(&random) % 1000) / 500 - 1;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_logits logits = GPST_ZERO;
        gpst_labels labels = GPST_ZERO;
        kit_start(&kit, device_name(d));
        logits.data = scores;
        logits.n_classes = labels.n_classes = 5;
        logits.width = 21;
        logits.height = 19;
        logits.dtype = GPST_DTYPE_F32;
        logits.layout = GPST_LAYOUT_CHW;
        labels.data = wanted;
        labels.width = 40;
        labels.height = 37;
        assert_int_equal(gpst_mask_argmax(&logits, &labels, 1), GPST_OK);
        gpst_memory* const from = upload(&kit, scores, sizeof scores);
        gpst_memory* const to = upload(&kit, NULL, sizeof wanted);
        logits.data = gpst_memory_data(from);
        labels.data = gpst_memory_data(to);
        refused(gpst_mask_argmax_enqueue(NULL, &labels, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_mask_argmax_enqueue: logits=NULL", "");
        refused(gpst_mask_argmax_enqueue(&logits, NULL, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_mask_argmax_enqueue: labels=NULL", "");
        refused(gpst_mask_argmax_enqueue(&logits, &labels, NULL), GPST_ERROR_ARGUMENT,
                "gpst_mask_argmax_enqueue: stream=NULL", "");
        labels.n_classes = 4;
        refused(gpst_mask_argmax_enqueue(&logits, &labels, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_mask_argmax_enqueue: ", "labels.n_classes=4");
        labels.n_classes = 5;
        assert_int_equal(gpst_mask_argmax_enqueue(&logits, &labels, kit.stream), GPST_OK);
        memset(&logits, 0xA5, sizeof logits);
        memset(&labels, 0xA5, sizeof labels);
        expect_bytes(&kit, to, wanted, sizeof wanted);
        gpst_memory_destroy(from);
        gpst_memory_destroy(to);
        kit_end(&kit);
    }
}

static void test_threshold(void** state) {
    static float values[53 * 47];
    static uint8_t wanted[53 * 47];
    uint64_t random = test_seed(8);
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)(test_random(&random) % 1000) / 1000;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_image source = GPST_ZERO, mask = GPST_ZERO;
        kit_start(&kit, device_name(d));
        source.width = mask.width = 53;
        source.height = mask.height = 47;
        source.format = mask.format = GPST_FORMAT_GRAY;
        source.dtype = GPST_DTYPE_F32;
        source.data = values;
        mask.data = wanted;
        assert_int_equal(gpst_mask_threshold(&source, 0.3f, &mask, 1), GPST_OK);
        gpst_memory* const from = upload(&kit, values, sizeof values);
        gpst_memory* const to = upload(&kit, NULL, sizeof wanted);
        source.data = gpst_memory_data(from);
        mask.data = gpst_memory_data(to);
        refused(gpst_mask_threshold_enqueue(NULL, 0.3f, &mask, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_mask_threshold_enqueue: source=NULL", "");
        refused(gpst_mask_threshold_enqueue(&source, 0.3f, NULL, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_mask_threshold_enqueue: mask=NULL", "");
        refused(gpst_mask_threshold_enqueue(&source, 0.3f, &mask, NULL), GPST_ERROR_ARGUMENT,
                "gpst_mask_threshold_enqueue: stream=NULL", "");
        mask.width = 52;
        refused(gpst_mask_threshold_enqueue(&source, 0.3f, &mask, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_mask_threshold_enqueue: ", "");
        mask.width = 53;
        assert_int_equal(gpst_mask_threshold_enqueue(&source, 0.3f, &mask, kit.stream), GPST_OK);
        memset(&source, 0xA5, sizeof source);
        memset(&mask, 0xA5, sizeof mask);
        expect_bytes(&kit, to, wanted, sizeof wanted);
        gpst_memory_destroy(from);
        gpst_memory_destroy(to);
        kit_end(&kit);
    }
}

static void test_quantise(void** state) {
    static const float scales[3] = {0.01f, 0.02f, 0.5f};
    static float values[3 * 1001], back[3 * 1001];
    static int8_t wanted[3 * 1001];
    uint64_t random = test_seed(9);
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        values[i] = (float)(test_random(&random) % 4000) / 1000 - 2;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_channels tensor = GPST_ZERO;
        kit_start(&kit, device_name(d));
        tensor.dtype = GPST_DTYPE_F32;
        tensor.n_outer = 1;
        tensor.n_channels = 3;
        tensor.n_inner = 1001;
        tensor.data = values;
        assert_int_equal(gpst_quantise(&tensor, scales, wanted, 1), GPST_OK);
        tensor.data = back;
        assert_int_equal(gpst_dequantise(wanted, scales, &tensor), GPST_OK);
        gpst_memory* const from = upload(&kit, values, sizeof values);
        gpst_memory* const to = upload(&kit, NULL, sizeof wanted);
        gpst_memory* const scale = upload(&kit, scales, sizeof scales);
        const float* const device_scales = (const float*)gpst_memory_data(scale);
        int8_t* const integers = (int8_t*)gpst_memory_data(to);
        tensor.data = gpst_memory_data(from);
        refused(gpst_quantise_enqueue(NULL, device_scales, integers, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_quantise_enqueue: values=NULL", "");
        refused(gpst_quantise_enqueue(&tensor, NULL, integers, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_quantise_enqueue: scales=NULL", "");
        refused(gpst_quantise_enqueue(&tensor, device_scales, NULL, kit.stream), GPST_ERROR_ARGUMENT,
                "gpst_quantise_enqueue: 8-bit integers", "");
        refused(gpst_dequantise_enqueue(integers, device_scales, &tensor, NULL), GPST_ERROR_ARGUMENT,
                "gpst_dequantise_enqueue: stream=NULL", "");
        assert_int_equal(gpst_quantise_enqueue(&tensor, device_scales, integers, kit.stream), GPST_OK);
        expect_bytes(&kit, to, wanted, sizeof wanted);
        assert_int_equal(gpst_dequantise_enqueue(integers, device_scales, &tensor, kit.stream), GPST_OK);
        memset(&tensor, 0xA5, sizeof tensor);
        expect_bytes(&kit, from, back, sizeof back);
        gpst_memory_destroy(from);
        gpst_memory_destroy(to);
        gpst_memory_destroy(scale);
        kit_end(&kit);
    }
}

/* ---- the user's own ---------------------------------------------------------------------------- */

typedef struct add_args {
    uint8_t* data;
    size_t bytes;
    uint8_t more[200]; /* what is added, and that all of the block is copied */
} add_args;

static gpst_result add_host(const void* args) {
    const add_args* const add = (const add_args*)args;
    for (size_t i = 0; i < add->bytes; i++)
        add->data[i] = (uint8_t)(add->data[i] + add->more[i % sizeof add->more]);
    return GPST_OK;
}

static gpst_result fail_host(const void* args) {
    (void)args;
    return gpsti_fail(GPST_ERROR_CALLBACK, "fail_host: always");
}

static gpst_result never_gpu(const void* args, void* native_stream) {
    (void)args;
    (void)native_stream;
    return GPST_ERROR_INTERNAL;
}

static void test_own_kernel(void** state) {
    static const gpst_kernel add = {"add", add_host, NULL}, fails = {"fails", fail_host, NULL},
                             gpu_only = {"gpu_only", NULL, never_gpu}, none = {"none", NULL, NULL};
    static uint8_t bytes[500], wanted[500];
    add_args args;
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        kit_start(&kit, device_name(d));
        gpst_memory* const memory = upload(&kit, bytes, sizeof bytes);
        args.data = (uint8_t*)gpst_memory_data(memory);
        args.bytes = sizeof bytes;
        for (size_t i = 0; i < sizeof args.more; i++)
            args.more[i] = (uint8_t)(i + 1);
        for (size_t i = 0; i < sizeof bytes; i++)
            wanted[i] = (uint8_t)(2 * (i % sizeof args.more + 1));
        refused(gpst_kernel_enqueue(&add, &args, sizeof args, NULL), GPST_ERROR_ARGUMENT, "stream=NULL", "");
        refused(gpst_kernel_enqueue(NULL, &args, 8, kit.stream), GPST_ERROR_ARGUMENT, "gpst_kernel_enqueue: kernel",
                "");
        refused(gpst_kernel_enqueue(&none, &args, 8, kit.stream), GPST_ERROR_ARGUMENT, "gpst_kernel_enqueue: kernel",
                "");
        refused(gpst_kernel_enqueue(&add, &args, 225, kit.stream), GPST_ERROR_ARGUMENT, "args_bytes=225", "\"add\"");
        refused(gpst_kernel_enqueue(&add, NULL, 8, kit.stream), GPST_ERROR_ARGUMENT, "args=NULL", "\"add\"");
        if (gpst_stream_native(kit.stream)) {
            refused(gpst_kernel_enqueue(&add, &args, sizeof args, kit.stream), GPST_ERROR_UNSUPPORTED,
                    "kernel \"add\"", "no form");
        } else {
            refused(gpst_kernel_enqueue(&gpu_only, NULL, 0, kit.stream), GPST_ERROR_UNSUPPORTED, "gpu_only", "no form");
            for (int round = 0; round < 2; round++) {
                add_args copied = args;
                assert_int_equal(gpst_kernel_enqueue(&add, &copied, sizeof copied, kit.stream), GPST_OK);
                memset(&copied, 0xA5, sizeof copied);
            }
            expect_bytes(&kit, memory, wanted, sizeof wanted);
            gpst_result result = gpst_kernel_enqueue(&fails, NULL, 0, kit.stream);
            assert_int_equal(result, kit.asynchronous ? GPST_OK : GPST_ERROR_CALLBACK);
            if (kit.asynchronous)
                result = gpst_stream_synchronize(kit.stream);
            refused(result, GPST_ERROR_CALLBACK, kit.asynchronous ? "gpst_stream_synchronize: " : "fail_host",
                    "fail_host: always");
            assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK); /* told once */
        }
        gpst_memory_destroy(memory);
        kit_end(&kit);
    }
}

static void test_faults(void** state) {
    static uint8_t pixels[SOURCE_WIDTH * SOURCE_HEIGHT * 3];
    (void)state;
    gpst_warp* const warp = warp_make();
    for (unsigned n = 1; n <= 2; n++) {
        char name[64];
        device_kit kit;
        gpst_image source = GPST_ZERO, outputs[N_VIEWS];
        snprintf(name, sizeof name, "sim:fail_launch=%u", n);
        kit_start(&kit, name);
        gpst_memory* const from = upload(&kit, pixels, sizeof pixels);
        gpst_memory* const to = upload(&kit, NULL, (size_t)N_VIEWS * WIDTH * HEIGHT * 3);
        source.data = gpst_memory_data(from);
        source.width = SOURCE_WIDTH;
        source.height = SOURCE_HEIGHT;
        source.format = GPST_FORMAT_RGB;
        for (int v = 0; v < N_VIEWS; v++) {
            gpst_warp_query_output(warp, &outputs[v]);
            outputs[v].data = (uint8_t*)gpst_memory_data(to) + v * WIDTH * HEIGHT * 3;
        }
        refused(gpst_warp_enqueue(warp, &source, outputs, N_VIEWS, kit.stream), GPST_ERROR_DEVICE,
                "gpst_warp_enqueue: backend sim: launch", "injected fault");
        assert_int_equal(gpst_warp_enqueue(warp, &source, outputs, N_VIEWS, kit.stream), GPST_OK);
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        gpst_memory_destroy(from);
        gpst_memory_destroy(to);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* A device that is lost says so with every call, and all of it can be destroyed. */
static void test_a_lost_device(void** state) {
    static const gpst_kernel add = {"add", add_host, NULL};
    static uint8_t bytes[16];
    device_kit kit;
    add_args args;
    gpst_event* event = NULL;
    (void)state;
    kit_start(&kit, "sim:lose_at=1");
    gpst_memory* const memory = upload(&kit, bytes, sizeof bytes);
    memset(&args, 0, sizeof args);
    args.data = (uint8_t*)gpst_memory_data(memory);
    assert_int_equal(gpst_event_create(kit.device, &event), GPST_OK);
    assert_int_equal(gpst_kernel_enqueue(&add, &args, sizeof args, kit.stream), GPST_OK);
    refused(gpst_stream_synchronize(kit.stream), GPST_ERROR_DEVICE_LOST, "gpst_stream_synchronize: ", "lost");
    refused(gpst_copy(bytes, args.data, 16, kit.stream), GPST_ERROR_DEVICE_LOST, "gpst_copy: ", "lost");
    refused(gpst_event_record(event, kit.stream), GPST_ERROR_DEVICE_LOST, "gpst_event_record: ", "lost");
    refused(gpst_event_wait(event, 1000000), GPST_ERROR_DEVICE_LOST, "gpst_event_wait: ", "lost");
    gpst_event_destroy(event);
    gpst_memory_destroy(memory);
    kit_end(&kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warp),     cmocka_unit_test(test_argmax),     cmocka_unit_test(test_threshold),
        cmocka_unit_test(test_quantise), cmocka_unit_test(test_own_kernel), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_a_lost_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
