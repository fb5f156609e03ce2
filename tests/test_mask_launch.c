/* tests/test_mask_launch.c -- the rules of masks and quantising on a GPU: every item is checked, and a program without
   GPU code says so. What is computed is the subject of tests/test_gpu_mask.cu and tests/test_gpu_quantise.cu. */
#include "test_mask.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../kernels/quantise/quantise.h"
#include "../kernels/mask/mask_launch.h"
#endif

enum { SIDE = 4 };

static uint8_t from[2][SIDE * SIDE * 8], to[2][SIDE * SIDE * 4];
static gpst_image sources[2], outputs[2], floats[2];
static gpst_labels labels[2], refined[2];
static gpst_logits logits[2];
static gpst_bitmap bitmaps[2];
static uint64_t boxes[2 * 5 * 3];

static void describe(void) {
    for (int i = 0; i < 2; i++) {
        memset(&sources[i], 0, sizeof sources[i]);
        sources[i].data = from[i];
        sources[i].width = sources[i].height = SIDE;
        sources[i].format = GPST_FORMAT_GRAY;
        outputs[i] = floats[i] = sources[i];
        outputs[i].data = to[i];
        floats[i].dtype = GPST_DTYPE_F32;
        memset(&labels[i], 0, sizeof labels[i]);
        labels[i].data = from[i];
        labels[i].width = labels[i].height = SIDE;
        labels[i].n_classes = 5;
        refined[i] = labels[i];
        refined[i].data = to[i];
        memset(&logits[i], 0, sizeof logits[i]);
        logits[i].data = from[i];
        logits[i].width = logits[i].height = 2;
        logits[i].n_classes = 5;
        logits[i].dtype = GPST_DTYPE_F32;
        logits[i].layout = GPST_LAYOUT_CHW;
        memset(&bitmaps[i], 0, sizeof bitmaps[i]);
        bitmaps[i].data = to[i];
        bitmaps[i].width = bitmaps[i].height = SIDE;
    }
}

/* What a launch that keeps the rules gives. With GPU code it is not called: there might be a device, and this is not
   its memory. */
#if defined(GPSTI_GPU)
#define EXPECT_NO_GPU(call, function) (void)0
#else
#define EXPECT_NO_GPU(call, function)                                 \
    do {                                                              \
        assert_int_equal(call, GPST_ERROR_UNSUPPORTED);               \
        assert_non_null(strstr(gpst_last_reason(), function ": "));   \
        assert_non_null(strstr(gpst_last_reason(), "no GPU code"));   \
    } while (0)
#endif

static void a_program_without_gpu_code_says_so(void** state) {
    gpst_box* out = (gpst_box*)(void*)boxes;
    gpst_channels values = GPST_ZERO;
    (void)state;
    (void)out;
    describe();
    values.data = from[0], values.dtype = GPST_DTYPE_F32;
    values.n_outer = values.n_channels = 1, values.n_inner = 4;
    EXPECT_NO_GPU(gpst_mask_argmax_launch(logits, refined, 2, NULL), "gpst_mask_argmax_launch");
    EXPECT_NO_GPU(gpst_mask_threshold_launch(sources, 1, outputs, 2, NULL), "gpst_mask_threshold_launch");
    EXPECT_NO_GPU(gpst_mask_threshold_sigmoid_launch(floats, 0.5, outputs, 2, NULL),
                  "gpst_mask_threshold_sigmoid_launch");
    EXPECT_NO_GPU(gpst_mask_pack_launch(sources, bitmaps, 2, NULL), "gpst_mask_pack_launch");
    EXPECT_NO_GPU(gpst_mask_unpack_launch(bitmaps, sources, 2, NULL), "gpst_mask_unpack_launch");
    EXPECT_NO_GPU(gpst_mask_box_launch(sources, out, 2, NULL), "gpst_mask_box_launch");
    EXPECT_NO_GPU(gpst_mask_label_boxes_launch(labels, out, 2, NULL), "gpst_mask_label_boxes_launch");
    EXPECT_NO_GPU(gpst_mask_morph_launch(sources, GPST_MORPH_OPEN, 3, outputs, 2, NULL), "gpst_mask_morph_launch");
    EXPECT_NO_GPU(gpst_mask_smooth_launch(sources, GPST_SMOOTH_BOX, 3, outputs, 2, NULL), "gpst_mask_smooth_launch");
    EXPECT_NO_GPU(gpst_mask_refine_launch(labels, NULL, 0, refined, 2, NULL), "gpst_mask_refine_launch");
    EXPECT_NO_GPU(gpst_quantise_launch(&values, (const float*)(void*)boxes, (int8_t*)to[0], NULL),
                  "gpst_quantise_launch");
    EXPECT_NO_GPU(gpst_dequantise_launch((const int8_t*)to[0], (const float*)(void*)boxes, &values, NULL),
                  "gpst_dequantise_launch");
    EXPECT_NO_GPU(gpst_calibration_ranges_launch(&values, (gpst_calibration_info*)(void*)boxes, NULL),
                  "gpst_calibration_ranges_launch");
}

/* Each rule broken by the second item, so that it is seen that every item is looked at. */
static void every_item_is_checked(void** state) {
    gpst_box* out = (gpst_box*)(void*)boxes;
    (void)state;
    describe();
    logits[1].n_classes = 6;
    expect_refused(gpst_mask_argmax_launch(logits, refined, 2, NULL), "labels.n_classes=5");
    describe();
    outputs[1].width = 3;
    expect_refused(gpst_mask_threshold_launch(sources, 1, outputs, 2, NULL), "mask.width=3");
    expect_refused(gpst_mask_morph_launch(sources, GPST_MORPH_OPEN, 3, outputs, 2, NULL), "output.width=3");
    expect_refused(gpst_mask_smooth_launch(sources, GPST_SMOOTH_BOX, 3, outputs, 2, NULL), "output.width=3");
    describe();
    floats[1].dtype = GPST_DTYPE_U8;
    expect_refused(gpst_mask_threshold_sigmoid_launch(floats, 0.5, outputs, 2, NULL), "dtype=U8");
    bitmaps[1].height = 3;
    expect_refused(gpst_mask_pack_launch(sources, bitmaps, 2, NULL), "height=3");
    expect_refused(gpst_mask_unpack_launch(bitmaps, sources, 2, NULL), "must be the source's 4 x 3");
    sources[1].data = NULL;
    expect_refused(gpst_mask_box_launch(sources, out, 2, NULL), "masks.data=NULL");
    labels[1].n_classes = 4;
    expect_refused(gpst_mask_label_boxes_launch(labels, out, 2, NULL), "n_classes=4: must be the first's 5");
    expect_refused(gpst_mask_refine_launch(labels, NULL, 0, refined, 2, NULL), "output.n_classes=5");
}

static void bad_calls_are_refused(void** state) {
    gpst_box* out = (gpst_box*)(void*)boxes;
    gpst_channels values = GPST_ZERO;
    float* scales = (float*)(void*)boxes;
    int8_t* integers = (int8_t*)to[0];
    (void)state;
    describe();
    expect_refused(gpst_mask_argmax_launch(logits, refined, 0, NULL), "n_items=0");
    expect_refused(gpst_mask_argmax_launch(NULL, refined, 1, NULL), "NULL");
    expect_refused(gpst_mask_threshold_launch(sources, 1, NULL, 1, NULL), "NULL");
    expect_refused(gpst_mask_threshold_launch(sources, gpsti_f32_from_bits(0x7fc00000), outputs, 1, NULL),
                   "threshold=NaN");
    expect_refused(gpst_mask_threshold_sigmoid_launch(floats, 1.5, outputs, 1, NULL), "probability=1.5");
    expect_refused(gpst_mask_pack_launch(sources, NULL, 1, NULL), "NULL");
    expect_refused(gpst_mask_box_launch(sources, NULL, 1, NULL), "NULL");
    expect_refused(gpst_mask_box_launch(sources, (gpst_box*)(void*)((uint8_t*)out + 4), 1, NULL), "multiple of 8");
    expect_refused(gpst_mask_label_boxes_launch(labels, (gpst_box*)(void*)((uint8_t*)out + 4), 1, NULL),
                   "multiple of 8");
    expect_refused(gpst_mask_morph_launch(sources, GPST_MORPH_OPEN, 4, outputs, 1, NULL), "size=4");
    expect_refused(gpst_mask_smooth_launch(sources, GPST_SMOOTH_INVALID, 3, outputs, 1, NULL), "kind=0");
    expect_refused(gpst_mask_refine_launch(labels, sources, 256, refined, 1, NULL), "tolerance=256");
    values.data = from[0], values.dtype = GPST_DTYPE_F32;
    values.n_outer = values.n_channels = 1, values.n_inner = 4;
    expect_refused(gpst_quantise_launch(NULL, scales, integers, NULL), "values=NULL");
    expect_refused(gpst_quantise_launch(&values, NULL, integers, NULL), "scales=NULL");
    expect_refused(gpst_quantise_launch(&values, (float*)(void*)((uint8_t*)boxes + 2), integers, NULL),
                   "multiple of 4");
    expect_refused(gpst_quantise_launch(&values, scales, NULL, NULL), "NULL: required");
    expect_refused(gpst_dequantise_launch((int8_t*)from[0] + 15, scales, &values, NULL), "overlap");
    expect_refused(gpst_calibration_ranges_launch(&values, NULL, NULL), "infos=");
    values.n_inner = 0;
    expect_refused(gpst_calibration_ranges_launch(&values, (gpst_calibration_info*)(void*)boxes, NULL), "n_inner=0");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_program_without_gpu_code_says_so),
        cmocka_unit_test(every_item_is_checked),
        cmocka_unit_test(bad_calls_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
