/* kernels/mask/mask_box.cu.h -- boxes and areas of masks and labels on a GPU. The
   boxes in the caller's memory grow by integer atomics, so that the order of blocks changes nothing. */
#ifndef GPSTI_MASK_BOX_CU_H
#define GPSTI_MASK_BOX_CU_H

#include "mask_argmax.cu.h"

#if defined(GPSTI_GPU_UNIT)

/* What a thread, a block or the launch has seen: columns and rows from first up to (not with) end. While boxes grow,
   a gpst_box holds the same in its members x, width, y and height. */
typedef struct gpsti_extent_part {
    uint32_t x_first, x_end, y_first, y_end;
    uint32_t area;
} gpsti_extent_part;

#define GPSTI_BOX_LANES 32  /* threads across, 16 bytes each */
#define GPSTI_BOX_LINES 8   /* threads down */
#define GPSTI_BOX_ROWS 64   /* of a block */
#define GPSTI_BOX_PARTS 256 /* labels that a block counts in shared memory */

__device__ GPSTI_INLINE gpsti_extent_part gpsti_extent_none(void) {
    gpsti_extent_part none;
    none.x_first = none.y_first = 0xffffffffu;
    none.x_end = none.y_end = none.area = 0;
    return none;
}

__device__ GPSTI_INLINE void gpsti_extent_grow(gpsti_extent_part* part, uint32_t x, uint32_t end, uint32_t y,
                                               uint32_t n) {
    part->x_first = x < part->x_first ? x : part->x_first;
    part->x_end = end > part->x_end ? end : part->x_end;
    part->y_first = y < part->y_first ? y : part->y_first;
    part->y_end = y + 1 > part->y_end ? y + 1 : part->y_end;
    part->area += n;
}

__device__ GPSTI_INLINE void gpsti_extent_merge(gpsti_extent_part* to, const gpsti_extent_part* from) {
    atomicMin(&to->x_first, from->x_first);
    atomicMax(&to->x_end, from->x_end);
    atomicMin(&to->y_first, from->y_first);
    atomicMax(&to->y_end, from->y_end);
    atomicAdd(&to->area, from->area);
}

__device__ GPSTI_INLINE void gpsti_extent_add(gpst_box* box, const gpsti_extent_part* from) {
    atomicMin(&box->x, from->x_first);
    atomicMax(&box->width, from->x_end);
    atomicMin(&box->y, from->y_first);
    atomicMax(&box->height, from->y_end);
    atomicAdd((unsigned long long*)(void*)&box->area, (unsigned long long)from->area);
}

__device__ GPSTI_INLINE gpsti_box_job gpsti_box_take(const gpsti_mask_batch* batch) {
    gpsti_box_job job = batch->job.box;
    job.source = batch->items[blockIdx.z].source;
    return job;
}

__device__ GPSTI_INLINE gpst_box* gpsti_box_of(const gpsti_mask_batch* batch) {
    return (gpst_box*)(void*)batch->items[blockIdx.z].output;
}

/* Elements x to x + n - 1 of a row; behind its end 0. */
template <typename T, uint32_t n>
__device__ GPSTI_INLINE gpsti_lanes<T, n> gpsti_box_read(const uint8_t* row, uint32_t x, uint32_t width, bool aligned) {
    gpsti_lanes<T, n> lanes;
    if (aligned && x + n <= width)
        return *(const gpsti_lanes<T, n>*)(const void*)(row + (size_t)x * sizeof(T));
#pragma unroll
    for (uint32_t i = 0; i < n; i++)
        lanes.at[i] = x + i < width ? ((const T*)(const void*)row)[x + i] : (T)0;
    return lanes;
}

/* ---- cleared, finished --------------------------------------------------------------------- */
GPSTI_KERNEL void gpsti_box_clear_device(const gpsti_mask_batch batch) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, n = batch.job.box.n_classes;
    gpst_box* box = gpsti_box_of(&batch) + i;
    if (i >= (n ? n : 1))
        return;
    box->x = box->y = 0xffffffffu;
    box->width = box->height = 0;
    box->area = 0;
}

GPSTI_KERNEL void gpsti_box_finish_device(const gpsti_mask_batch batch) {
    const uint32_t i = blockIdx.x * blockDim.x + threadIdx.x, n = batch.job.box.n_classes;
    gpst_box* box = gpsti_box_of(&batch) + i;
    if (i >= (n ? n : 1))
        return;
    if (box->area == 0)
        box->x = box->y = 0;
    box->width -= box->x;
    box->height -= box->y;
}

/* ---- masks -------------------------------------------------------------------------------------- */
GPSTI_KERNEL void gpsti_box_mask_device(const gpsti_mask_batch batch) {
    __shared__ gpsti_extent_part whole;
    const gpsti_box_job job = gpsti_box_take(&batch);
    const bool aligned = gpsti_lanes_fit(job.source, job.source_pitch, 16);
    const uint32_t x = (blockIdx.x * GPSTI_BOX_LANES + threadIdx.x) * 16;
    gpsti_extent_part own = gpsti_extent_none();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        whole = own;
    __syncthreads();
    for (uint32_t i = threadIdx.y; x < job.width && i < GPSTI_BOX_ROWS; i += GPSTI_BOX_LINES) {
        const uint32_t y = blockIdx.y * GPSTI_BOX_ROWS + i;
        if (y >= job.height)
            break;
        const gpsti_lanes<uint8_t, 16> lanes =
            gpsti_box_read<uint8_t, 16>(job.source + (ptrdiff_t)(y * job.source_pitch), x, job.width, aligned);
        uint32_t bits = 0;
#pragma unroll
        for (uint32_t k = 0; k < 16; k++)
            bits |= lanes.at[k] != 0 ? 1u << k : 0;
        if (bits)
            gpsti_extent_grow(&own, x + (uint32_t)__ffs((int)bits) - 1, x + 32 - (uint32_t)__clz((int)bits), y,
                              (uint32_t)__popc(bits));
    }
    if (own.area)
        gpsti_extent_merge(&whole, &own);
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0 && whole.area)
        gpsti_extent_add(gpsti_box_of(&batch), &whole);
}

/* ---- labels ---------------------------------------------------------------------------------------
   Labels come in regions: a thread goes down its columns, and hands on what it has seen when the label changes. */
typedef struct gpsti_box_walk {
    uint32_t label;
    gpsti_extent_part part;
} gpsti_box_walk;

__device__ GPSTI_INLINE void gpsti_box_hand_on(const gpsti_box_walk* walk, uint32_t n_classes, gpsti_extent_part* parts,
                                               gpst_box* boxes) {
    if (walk->part.area == 0 || walk->label >= n_classes)
        return;
    if (n_classes <= GPSTI_BOX_PARTS)
        gpsti_extent_merge(&parts[walk->label], &walk->part);
    else
        gpsti_extent_add(&boxes[walk->label], &walk->part);
}

template <typename Label>
GPSTI_KERNEL void gpsti_box_labels_device(const gpsti_mask_batch batch) {
    __shared__ gpsti_extent_part parts[GPSTI_BOX_PARTS];
    constexpr uint32_t n = 16 / sizeof(Label);
    const gpsti_box_job job = gpsti_box_take(&batch);
    const bool aligned = gpsti_lanes_fit(job.source, job.source_pitch, 16);
    const uint32_t x = (blockIdx.x * GPSTI_BOX_LANES + threadIdx.x) * n;
    const uint32_t thread = threadIdx.y * GPSTI_BOX_LANES + threadIdx.x;
    gpst_box* boxes = gpsti_box_of(&batch);
    gpsti_box_walk walk;
    walk.label = 0, walk.part = gpsti_extent_none();
    if (thread < GPSTI_BOX_PARTS)
        parts[thread] = walk.part;
    __syncthreads();
    for (uint32_t i = threadIdx.y; x < job.width && i < GPSTI_BOX_ROWS; i += GPSTI_BOX_LINES) {
        const uint32_t y = blockIdx.y * GPSTI_BOX_ROWS + i;
        if (y >= job.height)
            break;
        const gpsti_lanes<Label, n> lanes =
            gpsti_box_read<Label, n>(job.source + (ptrdiff_t)(y * job.source_pitch), x, job.width, aligned);
#pragma unroll
        for (uint32_t k = 0; k < n; k++) {
            if (x + k >= job.width)
                break;
            if (lanes.at[k] != walk.label) {
                gpsti_box_hand_on(&walk, job.n_classes, parts, boxes);
                walk.label = lanes.at[k], walk.part = gpsti_extent_none();
            }
            gpsti_extent_grow(&walk.part, x + k, x + k + 1, y, 1);
        }
    }
    gpsti_box_hand_on(&walk, job.n_classes, parts, boxes);
    __syncthreads();
    if (job.n_classes <= GPSTI_BOX_PARTS && thread < job.n_classes && parts[thread].area)
        gpsti_extent_add(&boxes[thread], &parts[thread]);
}

/* ---- launching --------------------------------------------------------------------------------------- */
GPSTI_STATIC_ASSERT(GPSTI_BOX_PARTS <= GPSTI_BOX_LANES * GPSTI_BOX_LINES, "a thread for each");

GPSTI_PRIVATE gpst_result gpsti_box_launch(const char* function, const gpsti_mask_batch* batch, void* stream) {
    const gpsti_box_job* job = &batch->job.box;
    const uint32_t n_boxes = job->n_classes ? job->n_classes : 1;
    const dim3 each(gpsti_gpu_blocks(n_boxes, 128), 1, batch->n_items), each_block(n_boxes < 128 ? n_boxes : 128);
    const dim3 block(GPSTI_BOX_LANES, GPSTI_BOX_LINES);
    const dim3 grid(gpsti_gpu_blocks(job->width, GPSTI_BOX_LANES * (job->wide ? 8 : 16)),
                    gpsti_gpu_blocks(job->height, GPSTI_BOX_ROWS), batch->n_items);
    GPSTI_TRY(gpsti_gpu_launch(function, gpsti_box_clear_device, each, each_block, batch, stream));
    GPSTI_TRY(gpsti_gpu_launch(function,
                               job->n_classes == 0 ? gpsti_box_mask_device
                               : job->wide         ? gpsti_box_labels_device<uint16_t>
                                                   : gpsti_box_labels_device<uint8_t>,
                               grid, block, batch, stream));
    return gpsti_gpu_launch(function, gpsti_box_finish_device, each, each_block, batch, stream);
}

#endif
#endif
