/* kernels/warp/warp.cu.h -- the warp on a GPU: outputs gathered into launches, and which
   kernel a launch is for. Checks nothing: warp.c did. */
#ifndef GPSTI_WARP_CU_H
#define GPSTI_WARP_CU_H

#include "warp_area.cu.h"
#include "warp_hot.cu.h"

#if defined(GPSTI_GPU_UNIT)

/* ---- gathering ------------------------------------------------------------------------ */
GPSTI_PRIVATE uint32_t gpsti_warp_item_bytes(gpst_map map) {
    const size_t ends = offsetof(gpsti_warp_item, map);
    switch (map) {
    case GPST_MAP_ROI:
        return (uint32_t)(ends + 4 * sizeof(int64_t));
    case GPST_MAP_AFFINE:
        return (uint32_t)(ends + 6 * sizeof(int64_t));
    case GPST_MAP_EQUIRECT:
        return (uint32_t)(ends + sizeof(gpsti_warp_item_view));
    case GPST_MAP_ROTATE:
        return (uint32_t)(ends + 9 * sizeof(double));
    default:
        return (uint32_t)ends;
    }
}

/* What output has of its own moves from its job to item: what stays is common. */
GPSTI_PRIVATE void gpsti_warp_item_split(gpsti_warp_job* job, gpsti_warp_item* item) {
    item->source = job->source;
    item->output = job->output;
    job->source = NULL, job->cb = NULL, job->cr = NULL;
    job->output = NULL;
    job->turn_columns = NULL, job->turn_rows = NULL; /* the host's; blocks compute their own */
    if (job->rois_in_place) {
        item->map.listed = job->listed;
        memset(&job->listed, 0, sizeof job->listed);
    } else if (job->map == GPST_MAP_ROI) {
        item->map.axes[0] = job->across.begin, item->map.axes[1] = job->across.extent;
        item->map.axes[2] = job->down.begin, item->map.axes[3] = job->down.extent;
        job->across.begin = 0, job->across.extent = 0;
        job->down.begin = 0, job->down.extent = 0;
        memset(&job->chroma_across, 0, sizeof job->chroma_across);
        memset(&job->chroma_down, 0, sizeof job->chroma_down);
    } else if (job->map == GPST_MAP_AFFINE) {
        memcpy(item->map.affine, job->affine.q, sizeof item->map.affine);
        memset(&job->affine, 0, sizeof job->affine);
    } else if (job->map == GPST_MAP_EQUIRECT) {
        memcpy(item->map.view.a_high, job->view.a_high, sizeof item->map.view.a_high);
        memcpy(item->map.view.a_low, job->view.a_low, sizeof item->map.view.a_low);
        memcpy(item->map.view.b, job->view.b, sizeof item->map.view.b);
        memcpy(item->map.view.d, job->view.d, sizeof item->map.view.d);
    } else if (job->map == GPST_MAP_ROTATE) {
        memcpy(item->map.rotation, job->view.rotation, sizeof item->map.rotation);
    }
    memset(&job->view, 0, sizeof job->view);
    for (int c = 0; c < 4 && !job->has_scale; c++)
        job->scale[c] = 1.0f, job->bias[c] = 0.0f; /* which changes no value */
}

/* ---- launching ------------------------------------------------------------------------ */
/* What goes into the next launch, and the kernel that it is for. */
typedef struct gpsti_warp_batch {
    gpsti_warp_launch launch;
    gpsti_warp_device kernel;
} gpsti_warp_batch;

/* Many rows save what a tile computes ahead; few outputs need many tiles, for all multiprocessors to have some. */
#define GPSTI_WARP_TILES_WANTED 1500 /* some for each multiprocessor of the largest devices, several times over */

GPSTI_PRIVATE int32_t gpsti_warp_tile_rows(const gpsti_warp_launch* launch, uint32_t columns, int32_t most,
                                           int32_t least) {
    const uint64_t across = gpsti_gpu_blocks((uint32_t)launch->job.width, columns);
    int32_t rows = most;
    while (rows > least && across * (uint64_t)(launch->job.height / rows) * launch->n_items < GPSTI_WARP_TILES_WANTED)
        rows /= 2;
    return rows;
}

/* How a kernel's blocks cover outputs. */
typedef struct gpsti_warp_shape {
    uint32_t lanes, threads_y, columns;
    int32_t rows;
} gpsti_warp_shape;

GPSTI_PRIVATE gpsti_warp_shape gpsti_warp_shape_of(const gpsti_warp_batch* batch) {
    const gpsti_warp_launch* const launch = &batch->launch;
    gpsti_warp_shape shape;
    if (batch->kernel == gpsti_warp_general_device) {
        shape.lanes = GPSTI_WARP_TILE, shape.threads_y = GPSTI_WARP_THREADS_Y;
        shape.columns = GPSTI_WARP_TILE, shape.rows = GPSTI_WARP_TILE;
    } else if (gpsti_warp_by_windows(launch->job.filter)) {
        shape.lanes = GPSTI_AREA_LANES, shape.threads_y = GPSTI_AREA_THREADS_Y;
        shape.columns = GPSTI_AREA_COLUMNS;
        shape.rows = gpsti_warp_tile_rows(launch, shape.columns, GPSTI_AREA_ROWS, GPSTI_AREA_THREADS_Y);
    } else {
        shape.lanes = GPSTI_HOT_LANES, shape.columns = GPSTI_HOT_COLUMNS;
        shape.threads_y = GPSTI_HOT_THREADS_Y(launch->job.map == GPST_MAP_EQUIRECT ? GPSTI_HOT_VIEWS : GPSTI_HOT_AXES);
        shape.rows = gpsti_warp_tile_rows(launch, shape.columns, GPSTI_HOT_ROWS, (int32_t)shape.threads_y);
    }
    return shape;
}

#define GPSTI_WARP_ROW_THREADS 128 /* that clear a row, or have its bars */

GPSTI_PRIVATE gpst_result gpsti_warp_gpu_flush(gpsti_warp_batch* batch, void* stream) {
    gpsti_warp_launch* const launch = &batch->launch;
    if (launch->n_items == 0)
        return GPST_OK;
    const gpsti_warp_shape shape = gpsti_warp_shape_of(batch);
    const dim3 grid(gpsti_gpu_blocks((uint32_t)launch->job.width, shape.columns),
                    gpsti_gpu_blocks((uint32_t)launch->job.height, (uint32_t)shape.rows), launch->n_items);
    const dim3 block(shape.lanes, shape.threads_y, 1);
    launch->tile_rows = shape.rows;
    gpsti_hot_select(launch);
    GPSTI_TRY(gpsti_gpu_launch("gpst_warp_launch", batch->kernel, grid, block, launch, stream));
    const bool bars = launch->job.width < launch->job.output_width || launch->job.height < launch->job.output_height;
    const dim3 rows((uint32_t)launch->job.output_height, 1, launch->n_items), threads(GPSTI_WARP_ROW_THREADS, 1, 1);
    if (bars)
        return gpsti_gpu_launch("gpst_warp_launch", gpsti_warp_bars_device, rows, threads, launch, stream);
    if (launch->job.clears)
        return gpsti_gpu_launch("gpst_warp_launch", gpsti_warp_clear_device, rows, threads, launch, stream);
    return GPST_OK;
}

/* The kernel that job and item are for, which has their bits and is the fastest. */
GPSTI_PRIVATE gpsti_warp_device gpsti_warp_device_of(const gpsti_warp_job* job, const gpsti_warp_item* item,
                                                     int64_t cb_offset) {
    const gpsti_warp_device area = gpsti_area_choose(job, item, cb_offset);
    const gpsti_warp_device hot = area ? area : gpsti_hot_choose(job, item, cb_offset);
    return hot ? hot : gpsti_warp_general_device;
}

/* One output into the next launch; what came before is launched when it does not fit to it. */
GPSTI_PRIVATE gpst_result gpsti_warp_gpu_add(gpsti_warp_batch* batch, gpsti_warp_job* job, void* stream) {
    gpsti_warp_launch* const launch = &batch->launch;
    const int64_t cb_offset = job->cb ? job->cb - job->source : 0, cr_offset = job->cb ? job->cr - job->source : 0;
    gpsti_warp_item item;
    gpsti_warp_item_split(job, &item);
    const gpsti_warp_device kernel = gpsti_warp_device_of(job, &item, cb_offset);
    const uint32_t item_bytes = gpsti_warp_item_bytes(job->map);
    const bool full = (launch->n_items + 1) * item_bytes > GPSTI_WARP_ITEMS_BYTES;
    const bool alike = cb_offset == launch->cb_offset && cr_offset == launch->cr_offset && kernel == batch->kernel;
    if (full || !alike || memcmp(&launch->job, job, sizeof *job) != 0) {
        GPSTI_TRY(gpsti_warp_gpu_flush(batch, stream));
        batch->kernel = kernel;
        launch->n_items = 0;
        launch->item_bytes = item_bytes;
        launch->cb_offset = cb_offset, launch->cr_offset = cr_offset;
        launch->job = *job;
        launch->words = 1;
    }
    launch->words &= ((uintptr_t)item.output | (uintptr_t)job->output_pitch) % 4 == 0 ? 1u : 0u;
    memcpy((uint8_t*)launch->items + launch->n_items * (size_t)item_bytes, &item, item_bytes);
    launch->n_items++;
    return GPST_OK;
}

GPSTI_LINK gpst_result gpsti_warp_kernel_gpu(const void* warp_args, void* native_stream) {
    const gpsti_warp_args* const args = (const gpsti_warp_args*)warp_args;
    gpsti_warp_batch batch;
    memset(&batch, 0, sizeof batch);
    for (uint64_t image = 0; image < (uint64_t)args->n_sources * args->n_outputs; image++) {
        gpsti_warp_job job;
        gpsti_warp_job_of(args, image, &job);
        GPSTI_TRY(gpsti_warp_gpu_add(&batch, &job, native_stream));
    }
    return gpsti_warp_gpu_flush(&batch, native_stream);
}

#endif
#endif
