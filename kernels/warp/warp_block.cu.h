/* kernels/warp/warp_block.cu.h -- the warp on a GPU: what a launch is told, and the
   kernel that computes every kind of warp, by the per-pixel reference. Chooses nothing and launches nothing. */
#ifndef GPSTI_WARP_BLOCK_CU_H
#define GPSTI_WARP_BLOCK_CU_H

#include "../launch/launch.cu.h"
#include "warp_pixel_internal.h"

#if defined(GPSTI_GPU_UNIT)

/* ---- what a launch is told -----------------------------------------------------------
   One struct by value, as large as kernels may take: nothing is allocated or copied on the way of an item, a
   graph keeps it, and the caller's lists may change at once. job is what all outputs of the launch have in
   common; what each has of its own is an item, which ends after the member of its map. More outputs than fit
   are several launches. */
typedef struct gpsti_warp_item_view {
    float a_high[3], a_low[3];
    double b[3], d[3];
} gpsti_warp_item_view;

typedef struct gpsti_warp_item {
    const uint8_t* source;
    uint8_t* output;
    union {
        int64_t axes[4];           /* ROI: begin and extent across, then down */
        gpsti_warp_listed listed;  /* ROI in place */
        int64_t affine[6];         /* AFFINE */
        gpsti_warp_item_view view; /* EQUIRECT */
        double rotation[9];        /* ROTATE */
    } map;
} gpsti_warp_item;

#define GPSTI_WARP_ITEMS_BYTES 3200

/* Where one address of the launch does for all threads. */
#if defined(__CUDACC__)
#define GPSTI_WARP_ARGUMENT __grid_constant__
#else
#define GPSTI_WARP_ARGUMENT
#endif

typedef struct gpsti_warp_launch {
    gpsti_warp_job job;
    int64_t cb_offset, cr_offset; /* NV12, I420: bytes from source */
    /* Of warp_steps.cu.h: selectors of gpsti_hot_pick; whether packed rows may be stored in words. */
    uint32_t order, taps[3], words;
    int32_t tile_rows;
    double inverses[2]; /* of the sides that a source is resized to */
    uint32_t n_items, item_bytes;
    uint64_t items[GPSTI_WARP_ITEMS_BYTES / 8];
} gpsti_warp_launch;

typedef void (*gpsti_warp_device)(gpsti_warp_launch launch);

GPSTI_DEVICE GPSTI_INLINE const gpsti_warp_item* gpsti_warp_item_of(const gpsti_warp_launch* launch, uint32_t index) {
    return (const gpsti_warp_item*)(const void*)((const uint8_t*)launch->items + (size_t)index * launch->item_bytes);
}

/* Of a list that is read where it lies, whether it has this output: the same for the whole block. */
__device__ GPSTI_INLINE bool gpsti_warp_item_counts(const gpsti_warp_job* job, const gpsti_warp_item* item) {
    return !job->rois_in_place || gpsti_warp_listed_counts(&item->map.listed);
}

/* The launch itself leaves the outputs alone that do not count: here these become 0. x is the row, z the item. */
GPSTI_KERNEL void gpsti_warp_clear_device(const gpsti_warp_launch launch) {
    const gpsti_warp_item* const item = gpsti_warp_item_of(&launch, blockIdx.z);
    const uint32_t row_bytes = gpsti_warp_row_bytes(&launch.job);
    if (gpsti_warp_item_counts(&launch.job, item))
        return;
    for (uint32_t c = 0; c < gpsti_warp_n_planes(&launch.job); c++) {
        uint8_t* const row = gpsti_warp_output_of(&launch.job, item->output, 0, (int32_t)blockIdx.x, c);
        for (uint32_t i = threadIdx.x; i < row_bytes; i += blockDim.x)
            row[i] = 0;
    }
}

/* What the fit of RESIZE leaves of the outputs. x is the row of the whole output, z the item. */
GPSTI_KERNEL void gpsti_warp_bars_device(const GPSTI_WARP_ARGUMENT gpsti_warp_launch launch) {
    const gpsti_warp_job* const job = &launch.job;
    uint8_t* const output = gpsti_warp_item_of(&launch, blockIdx.z)->output;
    const int32_t y = (int32_t)blockIdx.x - job->top;
    for (int32_t x = (int32_t)threadIdx.x; x < job->output_width; x += (int32_t)blockDim.x)
        if (gpsti_warp_is_bar(job, x - job->left, y))
            gpsti_warp_bar_pixel(job, output, x - job->left, y);
}

/* ROI: what an axis has of the item. */
__device__ GPSTI_INLINE void gpsti_warp_item_axis(const gpsti_warp_job* job, const gpsti_warp_item* item, bool is_row,
                                                  gpsti_warp_axis* axis) {
    if (job->rois_in_place) {
        const gpsti_warp_roi roi = gpsti_warp_roi_of(item->map.listed.roi);
        axis->begin = 2 * (is_row ? roi.y : roi.x), axis->extent = 2 * (is_row ? roi.height : roi.width);
    } else if (job->map == GPST_MAP_ROI) {
        axis->begin = item->map.axes[is_row ? 2 : 0], axis->extent = item->map.axes[is_row ? 3 : 1];
    }
}

/* ---- a block of the general kernel -----------------------------------------------------
   GPSTI_WARP_TILE columns and rows. Its job is whole again: the item's part put in, and what its rows and
   columns have in common computed once, by one thread each, not by every pixel. */
#define GPSTI_WARP_TILE 32
#define GPSTI_WARP_THREADS_Y 8

typedef struct gpsti_warp_block {
    gpsti_warp_job job;
    gpsti_warp_ahead ahead[4]; /* across, down, and of the chroma */
    gpsti_warp_tap taps[4][GPSTI_WARP_TILE];
    gpsti_warp_window windows[4][GPSTI_WARP_TILE];
    gpsti_warp_row view_rows[GPSTI_WARP_TILE];
    float turn_columns[GPSTI_WARP_TURN_COLUMN * GPSTI_WARP_TILE], turn_rows[GPSTI_WARP_TURN_ROW * GPSTI_WARP_TILE];
} gpsti_warp_block;

__device__ GPSTI_INLINE void gpsti_warp_block_take(const gpsti_warp_launch* launch, const gpsti_warp_item* item,
                                                   gpsti_warp_job* job) {
    job->source = item->source;
    job->output = item->output;
    if (launch->cb_offset) {
        job->cb = item->source + launch->cb_offset;
        job->cr = item->source + launch->cr_offset;
    }
    if (job->map == GPST_MAP_ROI) {
        gpsti_warp_item_axis(job, item, false, &job->across);
        gpsti_warp_item_axis(job, item, true, &job->down);
        gpsti_warp_chroma_axes(job);
    } else if (job->map == GPST_MAP_AFFINE) {
        for (int i = 0; i < 6; i++)
            job->affine.q[i] = item->map.affine[i];
    } else if (job->map == GPST_MAP_EQUIRECT) {
        for (int c = 0; c < 3; c++) {
            job->view.a_high[c] = item->map.view.a_high[c], job->view.a_low[c] = item->map.view.a_low[c];
            job->view.b[c] = item->map.view.b[c], job->view.d[c] = item->map.view.d[c];
        }
    } else if (job->map == GPST_MAP_ROTATE) {
        for (int i = 0; i < 9; i++)
            job->view.rotation[i] = item->map.rotation[i];
    }
}

__device__ GPSTI_INLINE gpsti_warp_axis* gpsti_warp_block_axis(gpsti_warp_job* job, int32_t axis) {
    return axis == 0 ? &job->across : axis == 1 ? &job->down : axis == 2 ? &job->chroma_across : &job->chroma_down;
}

__device__ GPSTI_INLINE void gpsti_warp_block_tap(gpsti_warp_block* block, int32_t axis, int32_t i, int32_t at) {
    const gpsti_warp_axis* from = gpsti_warp_block_axis(&block->job, axis);
    gpsti_warp_axis own = *from;
    own.ahead = NULL;
    block->taps[axis][i] = gpsti_warp_axis_tap(&own, at, axis < 2 && block->job.filter == GPST_FILTER_NEAREST);
    if (gpsti_warp_by_windows(block->job.filter))
        block->windows[axis][i] = gpsti_warp_window_of(&own, at);
}

__device__ GPSTI_INLINE void gpsti_warp_block_turn(gpsti_warp_block* block, int32_t i, int32_t x, int32_t y) {
    float column[GPSTI_WARP_TURN_COLUMN];
    gpsti_warp_turn_column(block->job.view.rotation, (uint32_t)block->job.width, (uint32_t)x, column);
    for (int k = 0; k < GPSTI_WARP_TURN_COLUMN; k++)
        block->turn_columns[k * GPSTI_WARP_TILE + i] = column[k];
    gpsti_warp_turn_row(block->job.view.rotation, (uint32_t)block->job.height, (uint32_t)y,
                        block->turn_rows + GPSTI_WARP_TURN_ROW * i);
}

/* What one thread computes ahead, of column or row i of the tile; clamped to the output, as the rest of the last
   tile is never read. */
__device__ GPSTI_INLINE void gpsti_warp_block_ahead(gpsti_warp_block* block, int32_t thread, int32_t x0, int32_t y0) {
    const gpsti_warp_job* job = &block->job;
    const int32_t i = thread % GPSTI_WARP_TILE, axis = thread / GPSTI_WARP_TILE;
    const int32_t x = x0 + i < job->width ? x0 + i : job->width - 1;
    const int32_t y = y0 + i < job->height ? y0 + i : job->height - 1;
    if (gpsti_warp_by_axes(job->map)) {
        if (axis < (job->cb ? 4 : 2))
            gpsti_warp_block_tap(block, axis, i, axis % 2 == 0 ? x : y);
    } else if (axis == 0 && job->map == GPST_MAP_ROTATE) {
        gpsti_warp_block_turn(block, i, x, y);
    } else if (axis == 0 && job->map == GPST_MAP_EQUIRECT) {
        gpsti_warp_job own = *job;
        own.view_rows = NULL;
        block->view_rows[i] = gpsti_warp_view_row(&own, y);
    }
}

/* By one thread, once the item is in: where pixels find what was computed ahead. */
__device__ GPSTI_INLINE void gpsti_warp_block_point(gpsti_warp_block* block, int32_t x0, int32_t y0) {
    gpsti_warp_job* job = &block->job;
    for (int32_t axis = 0; axis < 4; axis++) {
        block->ahead[axis].first = axis % 2 == 0 ? x0 : y0;
        block->ahead[axis].taps = block->taps[axis];
        block->ahead[axis].windows = block->windows[axis];
        gpsti_warp_block_axis(job, axis)->ahead = &block->ahead[axis];
    }
    job->first_column = x0, job->first_row = y0;
    job->view_rows = block->view_rows;
    job->turn_columns = block->turn_columns, job->turn_rows = block->turn_rows;
    job->turn_stride = GPSTI_WARP_TILE;
}

/* blockDim is GPSTI_WARP_TILE x GPSTI_WARP_THREADS_Y; the grid covers the output with tiles, z is the item. */
GPSTI_KERNEL void gpsti_warp_general_device(const gpsti_warp_launch launch) {
    __shared__ gpsti_warp_block block;
    const int32_t thread = (int32_t)(threadIdx.y * GPSTI_WARP_TILE + threadIdx.x);
    const int32_t x0 = (int32_t)(blockIdx.x * GPSTI_WARP_TILE), y0 = (int32_t)(blockIdx.y * GPSTI_WARP_TILE);
    const int32_t x = x0 + (int32_t)threadIdx.x;
    uint32_t* const to = (uint32_t*)(void*)&block.job;
    const uint32_t* const from = (const uint32_t*)(const void*)&launch.job;
    if (!gpsti_warp_item_counts(&launch.job, gpsti_warp_item_of(&launch, blockIdx.z)))
        return;
    for (uint32_t i = (uint32_t)thread; i < sizeof(gpsti_warp_job) / 4; i += GPSTI_WARP_TILE * GPSTI_WARP_THREADS_Y)
        to[i] = from[i];
    __syncthreads();
    if (thread == 0) {
        gpsti_warp_block_take(&launch, gpsti_warp_item_of(&launch, blockIdx.z), &block.job);
        gpsti_warp_block_point(&block, x0, y0);
    }
    __syncthreads();
    gpsti_warp_block_ahead(&block, thread, x0, y0);
    __syncthreads();
    for (int32_t y = y0 + (int32_t)threadIdx.y; y < y0 + GPSTI_WARP_TILE; y += GPSTI_WARP_THREADS_Y)
        if (x < block.job.width && y < block.job.height)
            gpsti_warp_pixel(&block.job, x, y);
}

#endif
#endif
