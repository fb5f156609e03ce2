/* kernels/warp/warp_hot.cu.h -- the warps that most programs run, compiled by themselves:
   bilinear views and resizes of 3 and 4 byte pixels, into packed bytes or planes of floats. Their kernel, and which
   warps it takes. */
#ifndef GPSTI_WARP_HOT_CU_H
#define GPSTI_WARP_HOT_CU_H

#include "warp_level.cu.h"

#if defined(GPSTI_GPU_UNIT)

/* ---- the kernel --------------------------------------------------------------------------
   blockDim is GPSTI_HOT_LANES x GPSTI_HOT_THREADS_Y(map); the grid covers the output with tiles, z is the item. Threads
   beyond the output compute what its end has, and store nothing. */
/* Threads that a multiprocessor is to hold at once: NV12 and I420 need more registers, the more in views; and for
   sm_120 the compiler takes some more for NV12, too. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1200
#define GPSTI_HOT_IS_LARGE(pixel_bytes) ((pixel_bytes) <= GPSTI_HOT_NV12)
#else
#define GPSTI_HOT_IS_LARGE(pixel_bytes) ((pixel_bytes) == GPSTI_HOT_I420)
#endif
#define GPSTI_HOT_RESIDENT(map, pixel_bytes)                          \
    (GPSTI_HOT_IS_LARGE(pixel_bytes) ? (map) == GPSTI_HOT_AXES ? 768 : 640 \
     : (pixel_bytes) == GPSTI_HOT_NV12 && (map) == GPSTI_HOT_VIEWS ? 768 : 1024)
#define GPSTI_HOT_THREADS(map) (GPSTI_HOT_LANES * GPSTI_HOT_THREADS_Y(map))

template <int map, int pixel_bytes, int store>
GPSTI_KERNEL void __launch_bounds__(GPSTI_HOT_THREADS(map),
                                    GPSTI_HOT_RESIDENT(map, pixel_bytes) / GPSTI_HOT_THREADS(map))
    gpsti_warp_hot_device(const GPSTI_WARP_ARGUMENT gpsti_warp_launch launch) {
    const bool yuv = GPSTI_HOT_IS_YUV(pixel_bytes);
    __shared__ gpsti_hot_tile tile;
    __shared__ gpsti_warp_tap chroma_taps[yuv ? GPSTI_HOT_COLUMNS + GPSTI_HOT_ROWS : 1];
    const gpsti_warp_item* const item = gpsti_warp_item_of(&launch, blockIdx.z);
    const gpsti_warp_job* const job = &launch.job;
    const int32_t y0 = (int32_t)blockIdx.y * launch.tile_rows, x0 = (int32_t)(blockIdx.x * GPSTI_HOT_COLUMNS);
    const int32_t line = (int32_t)threadIdx.y, lane = (int32_t)threadIdx.x;
    const int32_t thread = line * GPSTI_HOT_LANES + lane;
    if (map == GPSTI_HOT_AXES && !gpsti_warp_item_counts(job, item))
        return;
    gpsti_hot_fill_constants(job, &tile, thread);
    if (map == GPSTI_HOT_VIEWS)
        gpsti_hot_fill_view<pixel_bytes>(&launch, item, &tile, thread, x0, y0);
    else
        gpsti_hot_fill_axes(&launch, item, tile.taps, thread, x0, y0, false);
    if (map == GPSTI_HOT_AXES && yuv)
        gpsti_hot_fill_axes(&launch, item, chroma_taps, thread, x0, y0, true);
    __syncthreads();
    const bool level = map == GPSTI_HOT_VIEWS && gpsti_hot_is_level(item);
    if (level && gpsti_level_rows<pixel_bytes, store>(&launch, item, &tile, x0, y0))
        return;
    const gpsti_hot_view view = tile.view;
    const uint32_t inner_bytes = tile.inner_bytes, inner_height = tile.inner_height;
    const int32_t last_at = tile.last_at;
    const uint32_t select = tile.word_selects[lane & 3];
    const bool words = launch.words && x0 + GPSTI_HOT_COLUMNS <= job->width;
    gpsti_hot_column columns[GPSTI_HOT_TOGETHER];
#pragma unroll
    for (int p = 0; p < GPSTI_HOT_TOGETHER; p++) {
        if (map == GPSTI_HOT_AXES)
            gpsti_hot_take_column(&tile.taps[lane + p * GPSTI_HOT_LANES], GPSTI_HOT_FIRST_BYTES(pixel_bytes),
                                  &columns[p]);
        if (map == GPSTI_HOT_AXES && yuv)
            gpsti_yuv_take_column(&chroma_taps[lane + p * GPSTI_HOT_LANES], pixel_bytes, &columns[p]);
        else if (level)
            columns[p] = tile.columns[lane + p * GPSTI_HOT_LANES];
        else if (map == GPSTI_HOT_VIEWS)
            columns[p].n = gpsti_hot_column_n(job, x0 + lane + p * GPSTI_HOT_LANES);
    }
    const uint8_t* const source = item->source;
    const int32_t pitch = (int32_t)job->source_pitch;
#pragma unroll 1
    for (int32_t j = line; j < launch.tile_rows && y0 + j < job->height; j += GPSTI_HOT_THREADS_Y(map)) {
        uint8_t* const row = item->output + (ptrdiff_t)((y0 + j) * job->output_pitch);
        gpsti_hot_pixel pixels[GPSTI_HOT_TOGETHER];
        gpsti_hot_sample samples[GPSTI_HOT_TOGETHER];
        gpsti_yuv_taps taps[GPSTI_HOT_TOGETHER];
        bool inner[GPSTI_HOT_TOGETHER], all_inner = true;
#pragma unroll
        for (int p = 0; p < GPSTI_HOT_TOGETHER; p++) {
            if (map == GPSTI_HOT_VIEWS && !level)
                gpsti_hot_turn<pixel_bytes>(&view, &tile.rows[j], &columns[p]);
            pixels[p].column = columns[p];
            if (map == GPSTI_HOT_VIEWS)
                gpsti_hot_tilt<pixel_bytes>(&view, &tile.rows[j], &pixels[p]);
            else
                gpsti_hot_take_row(&tile.taps[GPSTI_HOT_COLUMNS + j], &pixels[p]);
            if (map == GPSTI_HOT_AXES && yuv)
                gpsti_yuv_take_row(&chroma_taps[GPSTI_HOT_COLUMNS + j], &pixels[p]);
            const int32_t at = pixels[p].y * pitch + pixels[p].column.at;
            inner[p] = (uint32_t)pixels[p].column.at < inner_bytes && (uint32_t)pixels[p].y < inner_height &&
                       at <= last_at && (!yuv || gpsti_yuv_is_inner<pixel_bytes>(job, &pixels[p]));
            all_inner = all_inner && inner[p];
            if (yuv)
                gpsti_yuv_read_inner<pixel_bytes>(&launch, source + (inner[p] ? at : 0),
                                                  gpsti_yuv_chroma(&launch, source, &pixels[p], inner[p]), &taps[p]);
            else
                gpsti_hot_read_inner<pixel_bytes>(source, pitch, inner[p] ? at : 0, &pixels[p]);
        }
        if (!all_inner) {
#pragma unroll
            for (int p = 0; p < GPSTI_HOT_TOGETHER; p++) {
                if (!inner[p] && yuv)
                    gpsti_yuv_read_any<pixel_bytes>(&launch, source, &pixels[p], &taps[p]);
                else if (!inner[p])
                    gpsti_hot_read_any<pixel_bytes>(job, source, &pixels[p]);
            }
        }
#pragma unroll
        for (int p = 0; p < GPSTI_HOT_TOGETHER; p++) {
            if (yuv)
                gpsti_yuv_sample<store>(&launch, &taps[p], &pixels[p], &samples[p]);
            else
                gpsti_hot_take_sample<pixel_bytes, store>(&launch, &pixels[p], &samples[p]);
            gpsti_hot_take_mask<store>(job, &pixels[p], &samples[p]);
        }
        gpsti_hot_store_all<store>(&launch, samples, row, x0 + lane, words, select);
    }
}

/* ---- the choice --------------------------------------------------------------------------- */
template <int map, int pixel_bytes> GPSTI_PRIVATE gpsti_warp_device gpsti_hot_kernel_of(gpst_dtype dtype) {
    if (dtype == GPST_DTYPE_U8)
        return gpsti_warp_hot_device<map, pixel_bytes, GPSTI_HOT_U8>;
    return dtype == GPST_DTYPE_F16 ? gpsti_warp_hot_device<map, pixel_bytes, GPSTI_HOT_F16>
                                   : gpsti_warp_hot_device<map, pixel_bytes, GPSTI_HOT_F32>;
}

GPSTI_PRIVATE bool gpsti_hot_has_store(const gpsti_warp_job* job) {
    if (job->dtype == GPST_DTYPE_U8)
        return job->layout == GPST_LAYOUT_HWC && !job->has_scale;
    return job->layout == GPST_LAYOUT_CHW && (job->dtype == GPST_DTYPE_F16 || job->dtype == GPST_DTYPE_F32);
}

/* Of the chroma: offsets of 32 bits, and pairs where they belong. */
GPSTI_PRIVATE bool gpsti_hot_has_chroma(const gpsti_warp_job* job, const gpsti_warp_item* item, int64_t cb_offset) {
    const uintptr_t at = (uintptr_t)item->source + (uintptr_t)cb_offset;
    return job->chroma_pitch * job->chroma_height < INT32_MAX && job->chroma_width >= 2 && job->chroma_height >= 2 &&
           (job->chroma_step == GPSTI_HOT_I420 || (at | (uintptr_t)job->chroma_pitch) % 2 == 0);
}

/* Offsets of 32 bits, words where they belong. */
GPSTI_PRIVATE bool gpsti_hot_has_source(const gpsti_warp_job* job, const gpsti_warp_item* item, int64_t cb_offset) {
    const int64_t pitch = job->source_pitch, rows = job->source_height;
    const int64_t span = (pitch < 0 ? -pitch : pitch) * rows;
    for (uint32_t c = 0; c < job->n_channels; c++)
        if (job->shift[c] > 16)
            return false;
    /* Where a pixel is at a border, words are read from the first pixel's taps, for nothing. */
    if (rows < 2 || job->source_width < 4 || span >= INT32_MAX || job->source_dtype != GPST_DTYPE_U8)
        return false;
    if (cb_offset)
        return gpsti_hot_has_chroma(job, item, cb_offset);
    return (job->source_pixel_bytes == 3 || job->source_pixel_bytes == 4) &&
           ((uintptr_t)item->source | (uintptr_t)pitch) % 4 == 0;
}

/* Steps from pixel to pixel of 1e-9 and more, and angles in double as they are given, leave no x and z below 1e-25 but
   0: what cancels in a ray has a last digit above that. */
GPSTI_PRIVATE bool gpsti_hot_has_view(const gpsti_warp_item_view* view) {
    double a = 0, b = 0;
    for (int c = 0; c < 3; c++) {
        const double a_c = (double)gpsti_abs32(view->a_high[c]), b_c = view->b[c] < 0 ? -view->b[c] : view->b[c];
        a = a_c > a ? a_c : a, b = b_c > b ? b_c : b;
    }
    return a >= 1e-9 && b >= 1e-9;
}

template <int pixel_bytes> GPSTI_PRIVATE gpsti_warp_device gpsti_hot_kernel_for(bool views, gpst_dtype dtype) {
    return views ? gpsti_hot_kernel_of<GPSTI_HOT_VIEWS, pixel_bytes>(dtype)
                 : gpsti_hot_kernel_of<GPSTI_HOT_AXES, pixel_bytes>(dtype);
}

/* NULL: no kernel of its own. job is what outputs have in common; cb_offset 0: the source is not NV12 or I420. */
GPSTI_PRIVATE gpsti_warp_device gpsti_hot_choose(const gpsti_warp_job* job, const gpsti_warp_item* item,
                                                 int64_t cb_offset) {
    const bool views = job->map == GPST_MAP_EQUIRECT && job->convention == GPST_CONVENTION_NATIVE &&
                       gpsti_hot_has_view(&item->map.view);
    if (job->filter != GPST_FILTER_BILINEAR || !(views || gpsti_warp_by_axes(job->map)) || job->n_channels != 3 ||
        !gpsti_hot_has_source(job, item, cb_offset) || !gpsti_hot_has_store(job))
        return NULL;
    if (cb_offset)
        return job->chroma_step == GPSTI_HOT_NV12 ? gpsti_hot_kernel_for<GPSTI_HOT_NV12>(views, job->dtype)
                                                  : gpsti_hot_kernel_for<GPSTI_HOT_I420>(views, job->dtype);
    return job->source_pixel_bytes == 3 ? gpsti_hot_kernel_for<3>(views, job->dtype)
                                        : gpsti_hot_kernel_for<4>(views, job->dtype);
}

/* How the bytes of a source pixel become channels: the third is on top of its sum, or of NV12 and I420 at its end. */
GPSTI_PRIVATE void gpsti_hot_select(gpsti_warp_launch* launch) {
    launch->order = 0;
    for (int c = 0; c < 3; c++) {
        const uint32_t at = launch->job.shift[c] / 8;
        launch->order |= (at < 2 ? at : launch->cb_offset ? 4 : 7) << (4 * c);
        launch->taps[c] = at | 0x7440;
    }
    for (int axis = 0; axis < 2 && gpsti_warp_by_axes(launch->job.map); axis++)
        launch->inverses[axis] = 1.0 / (axis == 0 ? launch->job.across : launch->job.down).out;
}

#endif
#endif
