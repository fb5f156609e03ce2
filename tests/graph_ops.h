/* tests/graph_ops.h -- bytes as a sequence of calls on a stream, over a block of 4 KiB: what is recorded must compute
   what the calls themselves do. By the public API alone, for tests and for the fuzz target. */
#ifndef GPST_TEST_GRAPH_OPS_H
#define GPST_TEST_GRAPH_OPS_H

#include <string.h>

enum {
    OPS_CELL = 512,
    OPS_CELLS = 8,
    OPS_SCALE = OPS_CELL * OPS_CELLS, /* behind the cells: a float, 0.25 */
    OPS_BYTES = OPS_SCALE + 64,
    OPS_WARPS = 2,
    OPS_EACH = 4 /* bytes a call */
};

typedef struct ops_kit {
    gpst_warp* warps[OPS_WARPS]; /* 16 x 16 grey to 8 x 8, resized */
    const gpst_kernel* step;     /* NULL: no kernel of the user's */
} ops_kit;

typedef struct ops_step_args { /* as test_step_args */
    uint64_t* value;
    uint64_t add;
} ops_step_args;

static inline gpst_result ops_open(ops_kit* ops, const gpst_kernel* step) {
    memset(ops, 0, sizeof *ops);
    ops->step = step;
    for (int w = 0; w < OPS_WARPS; w++) {
        gpst_warp_desc desc = GPST_ZERO;
        desc.map = GPST_MAP_RESIZE;
        desc.width = desc.height = 8;
        desc.format = GPST_FORMAT_GRAY;
        desc.filter = w ? GPST_FILTER_AREA : GPST_FILTER_NEAREST;
        const gpst_result result = gpst_warp_create(&desc, &ops->warps[w]);
        if (GPST_FAILED(result))
            return result;
    }
    return GPST_OK;
}

static inline void ops_close(ops_kit* ops) {
    for (int w = 0; w < OPS_WARPS; w++)
        gpst_warp_destroy(ops->warps[w]);
}

/* What a block begins as, in memory of the host. */
static inline void ops_fill(uint8_t* block) {
    const float scale = 0.25f;
    for (int i = 0; i < OPS_BYTES; i++)
        block[i] = (uint8_t)(i * 7 + i / 251);
    memcpy(block + OPS_SCALE, &scale, sizeof scale);
}

static inline gpst_image ops_image(uint8_t* data, uint32_t side, gpst_dtype dtype) {
    gpst_image image;
    memset(&image, 0, sizeof image);
    image.data = data;
    image.width = image.height = side;
    image.format = GPST_FORMAT_GRAY;
    image.dtype = dtype;
    return image;
}

static inline gpst_result ops_put_kernel(const ops_kit* ops, const uint8_t* op, uint8_t* from, uint8_t* to,
                                         uint8_t* block, gpst_stream* stream) {
    gpst_logits logits = GPST_ZERO;
    gpst_labels labels = GPST_ZERO;
    gpst_channels values = GPST_ZERO;
    ops_step_args step;
    const gpst_image small = ops_image(to, 8, GPST_DTYPE_U8), source = ops_image(from, 16, GPST_DTYPE_U8);
    const gpst_image floats = ops_image(from, 8, GPST_DTYPE_F32);
    switch (op[0] % 8) {
    case 4:
        return gpst_warp_enqueue(ops->warps[op[3] % OPS_WARPS], &source, &small, 1, stream);
    case 5:
        return gpst_mask_threshold_enqueue(&floats, (float)op[3], &small, stream);
    case 6:
        logits.data = from;
        logits.n_classes = labels.n_classes = 2 + op[3] % 3;
        logits.width = logits.height = 4;
        logits.dtype = GPST_DTYPE_F32;
        logits.layout = GPST_LAYOUT_CHW;
        labels.data = to;
        labels.width = labels.height = 8;
        return gpst_mask_argmax_enqueue(&logits, &labels, stream);
    case 7:
        values.data = from;
        values.dtype = GPST_DTYPE_F32;
        values.n_channels = 1;
        values.n_outer = 1;
        values.n_inner = 1 + op[3] % 128;
        return gpst_quantise_enqueue(&values, (const float*)(const void*)(block + OPS_SCALE), (int8_t*)to, stream);
    default:
        break;
    }
    if (!ops->step)
        return GPST_OK;
    step.value = (uint64_t*)(void*)(to + 8 * (op[2] % 64));
    step.add = op[3];
    return gpst_kernel_enqueue(ops->step, &step, sizeof step, stream);
}

/* n_bytes / OPS_EACH calls; the block is the device's. */
static inline gpst_result ops_put(const ops_kit* ops, const uint8_t* bytes, size_t n_bytes, uint8_t* block,
                                  gpst_stream* stream) {
    gpst_result result = GPST_OK;
    for (size_t at = 0; at + OPS_EACH <= n_bytes && !GPST_FAILED(result); at += OPS_EACH) {
        const uint8_t* const op = bytes + at;
        const int a = op[1] % OPS_CELLS, b = op[2] % OPS_CELLS;
        uint8_t* const from = block + a * OPS_CELL;
        uint8_t* const to = block + (a == b ? (b + 1) % OPS_CELLS : b) * OPS_CELL;
        if (op[0] % 8 == 0)
            result = gpst_copy(to, from, 1 + 2u * op[3], stream);
        else if (op[0] % 8 == 1)
            result = gpst_copy_rows(to, 32, from, 64, 1 + op[3] % 32, 8, stream);
        else if (op[0] % 8 == 2)
            result = gpst_fill(to, op[1], 1 + op[3], stream);
        else
            result = ops_put_kernel(ops, op, from, to, block, stream);
    }
    return result;
}

#endif
