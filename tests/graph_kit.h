/* tests/graph_kit.h -- what the tests of graphs put on a stream: one of every kind of call, over one block of the
   device's memory, from descriptions that are gone when each call returns. */
#ifndef GPST_TEST_GRAPH_KIT_H
#define GPST_TEST_GRAPH_KIT_H

#include "test_device.h"

#include "gpu_kernels.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/device/graph_internal.h"
#endif

/* ---- a kernel of the user's ------------------------------------------------------------ */

static gpst_result graph_step_host(const void* args) {
    const test_step_args* const step = (const test_step_args*)args;
    *step->value = *step->value * 3 + step->add;
    return GPST_OK;
}

static const gpst_kernel graph_step = {"step", graph_step_host, TEST_GPU(test_step_gpu)};

static gpst_result graph_fails_host(const void* args) {
    (void)args;
    return gpsti_fail(GPST_ERROR_CALLBACK, "graph_fails_host: always");
}

static const gpst_kernel graph_fails = {"fails", graph_fails_host, TEST_GPU(test_failing_gpu)};

/* ---- one call of every kind -------------------------------------------------------------- */

enum {
    SCENE_VIEWS = 6,
    SCENE_WIDTH = 97,
    SCENE_HEIGHT = 51,
    SCENE_ROW = SCENE_WIDTH * 3,
    SCENE_PITCH = 300,
    SCENE_VIEW_WIDTH = 33,
    SCENE_VIEW_HEIGHT = 29,
    SCENE_VIEW_BYTES = SCENE_VIEW_WIDTH * SCENE_VIEW_HEIGHT * 3,
    SCENE_N_SCORES = 5 * 21 * 19,
    SCENE_N_VALUES = 53 * 47,
    SCENE_N_CALLS = 8
};

/* The block: what comes in, then what is made of it. */
typedef struct scene_block {
    uint8_t in[SCENE_ROW * SCENE_HEIGHT];
    uint8_t rest[7];
    float scores[SCENE_N_SCORES];
    float values[SCENE_N_VALUES];
    float scale;
    uint64_t counter;
    uint8_t copied[SCENE_ROW * SCENE_HEIGHT];
    uint8_t rows[SCENE_PITCH * SCENE_HEIGHT];
    uint8_t filled[1001];
    uint8_t views[SCENE_VIEWS][SCENE_VIEW_BYTES];
    uint8_t labels[40 * 37];
    uint8_t mask[SCENE_N_VALUES];
    int8_t integers[SCENE_N_VALUES];
} scene_block;

typedef struct scene {
    device_kit* kit;
    gpst_warp* warp; /* the caller's */
    gpst_memory* memory;
    scene_block* block; /* the device's */
} scene;

static inline gpst_warp* scene_warp(double turn) {
    gpst_view views[SCENE_VIEWS];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    memset(views, 0, sizeof views);
    for (int v = 0; v < SCENE_VIEWS; v++)
        views[v].yaw = 60 * v + turn, views[v].pitch = 5 * v;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = views;
    desc.n_views = SCENE_VIEWS;
    desc.width = SCENE_VIEW_WIDTH;
    desc.height = SCENE_VIEW_HEIGHT;
    desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

/* All of it 0xA5. */
static inline void scene_begin(scene* s, device_kit* kit, gpst_warp* warp) {
    s->kit = kit;
    s->warp = warp;
    s->memory = memory_of(kit->device, GPST_MEMORY_DEVICE, sizeof(scene_block));
    s->block = (scene_block*)gpst_memory_data(s->memory);
    assert_int_equal(gpst_fill(s->block, 0xA5, sizeof(scene_block), kit->stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(kit->stream), GPST_OK);
}

static inline void scene_end(scene* s) {
    gpst_memory_destroy(s->memory);
}

/* What comes in, from a seed. */
static inline void scene_feed(scene* s, uint64_t seed) {
    scene_block* const in = (scene_block*)malloc(sizeof(scene_block));
    memset(in, 0, sizeof *in);
    for (size_t i = 0; i < sizeof in->in; i++)
        in->in[i] = (uint8_t)test_random(&seed);
    for (int i = 0; i < SCENE_N_SCORES; i++)
        in->scores[i] = (float)(test_random(&seed) % 1000) / 500 - 1;
    for (int i = 0; i < SCENE_N_VALUES; i++)
        in->values[i] = (float)(test_random(&seed) % 1000) / 1000;
    in->scale = 0.01f;
    in->counter = seed;
    assert_int_equal(gpst_copy(s->block, in, offsetof(scene_block, copied), s->kit->stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(s->kit->stream), GPST_OK);
    free(in);
}

/* The whole block; free it. */
static inline scene_block* scene_read(scene* s) {
    scene_block* const out = (scene_block*)malloc(sizeof *out);
    assert_int_equal(gpst_copy(out, s->block, sizeof *out, s->kit->stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(s->kit->stream), GPST_OK);
    return out;
}

static inline void scene_expect_equal(scene* a, scene* b) {
    scene_block *const seen = scene_read(a), *const wanted = scene_read(b);
    assert_memory_equal(seen, wanted, sizeof *seen);
    free(seen);
    free(wanted);
}

static inline void scene_expect_untouched(scene* s) {
    scene_block* const seen = scene_read(s);
    const uint8_t* const bytes = (const uint8_t*)seen;
    for (size_t i = offsetof(scene_block, copied); i < sizeof *seen; i++)
        assert_int_equal(bytes[i], 0xA5);
    free(seen);
}

static inline gpst_result scene_put_warp(const scene* s, gpst_stream* stream) {
    gpst_image source, outputs[SCENE_VIEWS];
    memset(&source, 0, sizeof source);
    source.data = s->block->copied;
    source.width = SCENE_WIDTH;
    source.height = SCENE_HEIGHT;
    source.format = GPST_FORMAT_RGB;
    for (int v = 0; v < SCENE_VIEWS; v++) {
        gpst_warp_query_output(s->warp, &outputs[v]);
        outputs[v].data = s->block->views[v];
    }
    const gpst_result result = gpst_warp_enqueue(s->warp, &source, outputs, SCENE_VIEWS, stream);
    memset(&source, 0xA5, sizeof source);
    memset(outputs, 0xA5, sizeof outputs);
    return result;
}

/* `gaps` is what the caller's memory happens to hold between members. */
static inline gpst_result scene_put_argmax(const scene* s, int gaps, gpst_stream* stream) {
    gpst_logits logits;
    gpst_labels labels;
    memset(&logits, gaps, sizeof logits);
    memset(&labels, gaps, sizeof labels);
    logits.data = s->block->scores;
    logits.n_classes = labels.n_classes = 5;
    logits.width = 21;
    logits.height = 19;
    logits.dtype = GPST_DTYPE_F32;
    logits.layout = GPST_LAYOUT_CHW;
    logits.pitch_bytes = logits.plane_bytes = labels.pitch_bytes = 0;
    labels.data = s->block->labels;
    labels.width = 40;
    labels.height = 37;
    const gpst_result result = gpst_mask_argmax_enqueue(&logits, &labels, stream);
    memset(&logits, 0xA5, sizeof logits);
    memset(&labels, 0xA5, sizeof labels);
    return result;
}

static inline gpst_result scene_put_values(const scene* s, gpst_stream* stream) {
    gpst_image source = GPST_ZERO, mask = GPST_ZERO;
    gpst_channels tensor = GPST_ZERO;
    source.width = mask.width = 53;
    source.height = mask.height = 47;
    source.format = mask.format = GPST_FORMAT_GRAY;
    source.dtype = GPST_DTYPE_F32;
    source.data = s->block->values;
    mask.data = s->block->mask;
    GPSTI_TRY(gpst_mask_threshold_enqueue(&source, 0.3f, &mask, stream));
    memset(&source, 0xA5, sizeof source);
    memset(&mask, 0xA5, sizeof mask);
    tensor.data = s->block->values;
    tensor.dtype = GPST_DTYPE_F32;
    tensor.n_channels = 1;
    tensor.n_outer = 1;
    tensor.n_inner = SCENE_N_VALUES;
    const gpst_result result = gpst_quantise_enqueue(&tensor, &s->block->scale, s->block->integers, stream);
    memset(&tensor, 0xA5, sizeof tensor);
    return result;
}

/* SCENE_N_CALLS calls; the first that fails says so. */
static inline gpst_result scene_put(const scene* s, gpst_stream* stream) {
    scene_block* const block = s->block;
    test_step_args step;
    step.value = &block->counter;
    step.add = 7;
    GPSTI_TRY(gpst_copy(block->copied, block->in, sizeof block->in, stream));
    GPSTI_TRY(gpst_copy_rows(block->rows, SCENE_PITCH, block->copied, SCENE_ROW, SCENE_ROW, SCENE_HEIGHT, stream));
    GPSTI_TRY(gpst_fill(block->filled, 0x3C, sizeof block->filled, stream));
    GPSTI_TRY(scene_put_warp(s, stream));
    GPSTI_TRY(scene_put_argmax(s, 0x5A, stream));
    GPSTI_TRY(scene_put_values(s, stream));
    const gpst_result result = gpst_kernel_enqueue(&graph_step, &step, sizeof step, stream);
    memset(&step, 0xA5, sizeof step);
    return result;
}

#endif
