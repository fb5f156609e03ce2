/* kernels/warp/warp_area.cu.h -- the filters that go by windows, AREA and the cubics, on a GPU, for 3 and 4 byte
   pixels: the sums down are made once for each source column, and what is across is made of those. The order of the
   sums is that of warp_pixel_internal.h, and so are the bits. */
#ifndef GPSTI_WARP_AREA_CU_H
#define GPSTI_WARP_AREA_CU_H

#include "warp_block.cu.h"

#if defined(GPSTI_GPU_UNIT)

#define GPSTI_AREA_LANES 32
#define GPSTI_AREA_THREADS_Y 4 /* each an output row at a time, with sums of its own */
#define GPSTI_AREA_COLUMNS 128 /* of a tile */
#define GPSTI_AREA_ROWS 32     /* at most; see gpsti_warp_tile_rows */
#define GPSTI_AREA_SPAN 512    /* source columns whose sums a row keeps */
#define GPSTI_AREA_TOGETHER 4  /* source columns that a thread sums at once, GPSTI_AREA_LANES apart */

typedef struct gpsti_area_tile {
    gpsti_warp_window columns[GPSTI_AREA_COLUMNS], rows[GPSTI_AREA_ROWS];
    float sums[GPSTI_AREA_THREADS_Y][3][GPSTI_AREA_SPAN];
} gpsti_area_tile;

/* Until the threads of a row, which are a warp, or part of one, have come here. */
__device__ GPSTI_INLINE void gpsti_area_wait(void) {
#if defined(__CUDACC__)
    __syncwarp();
#else
    __syncthreads(); /* all rows come here as often */
#endif
}

/* Weight i of a window. all: AREA's are not the only ones, for which less is to do. */
template <bool all> __device__ GPSTI_INLINE float gpsti_area_weight(const gpsti_warp_window* window, int32_t i) {
    return all ? gpsti_warp_window_weight(window, window->begin + i) : gpsti_warp_height(window, i) * window->norm;
}

/* A place on an axis; beyond the edges, where BICUBIC's windows may end, the edge's. */
template <bool all> __device__ GPSTI_INLINE int32_t gpsti_area_inside(int32_t at, int32_t size) {
    return !all ? at : at < 0 ? 0 : at < size ? at : size - 1;
}

/* Windows beyond the output are its last ones. */
template <bool all>
__device__ GPSTI_INLINE void gpsti_area_fill(const gpsti_warp_job* job, const gpsti_warp_item* item,
                                             gpsti_area_tile* tile, int32_t i, int32_t x0, int32_t y0) {
    const bool is_row = i >= GPSTI_AREA_COLUMNS;
    const int32_t at = is_row ? y0 + i - GPSTI_AREA_COLUMNS : x0 + i;
    gpsti_warp_axis axis = is_row ? job->down : job->across;
    if (job->map == GPST_MAP_ROI)
        axis.begin = item->map.axes[is_row ? 2 : 0], axis.extent = item->map.axes[is_row ? 3 : 1];
    const int32_t last = (is_row ? job->height : job->width) - 1, i_out = at < last ? at : last;
    const gpsti_warp_window window =
        all ? gpsti_warp_window_of(&axis, i_out) : gpsti_warp_window_area(&axis, i_out);
    if (is_row)
        tile->rows[i - GPSTI_AREA_COLUMNS] = window;
    else
        tile->columns[i] = window;
}

/* The sums down of source columns first to first + span. */
template <bool all>
__device__ GPSTI_INLINE void gpsti_area_down(const gpsti_warp_job* job, const uint8_t* source,
                                             const gpsti_warp_window* window, float sums[3][GPSTI_AREA_SPAN],
                                             int32_t first, int32_t span) {
    const int64_t pitch = job->source_pitch;
    const int32_t rows = window->end - window->begin, pixel_bytes = (int32_t)job->source_pixel_bytes;
    const gpsti_warp_window down = *window;
    for (int32_t i = (int32_t)threadIdx.x; i < span; i += GPSTI_AREA_LANES * GPSTI_AREA_TOGETHER) {
        const uint8_t* from[GPSTI_AREA_TOGETHER];
        float sum[GPSTI_AREA_TOGETHER][3];
#pragma unroll
        for (int p = 0; p < GPSTI_AREA_TOGETHER; p++) {
            const int32_t at = i + p * GPSTI_AREA_LANES;
            const int32_t column =
                gpsti_area_inside<all>(first + (at < span ? at : span - 1), job->source_width);
            from[p] = source + (all ? 0 : down.begin * pitch) + column * pixel_bytes;
            sum[p][0] = 0.0f, sum[p][1] = 0.0f, sum[p][2] = 0.0f;
        }
        for (int32_t k = 0; k < rows; k++) {
            const float weight = gpsti_area_weight<all>(&down, k);
            const int64_t row = all ? gpsti_area_inside<all>(down.begin + k, job->source_height) * pitch : 0;
#pragma unroll
            for (int p = 0; p < GPSTI_AREA_TOGETHER; p++) {
#pragma unroll
                for (int c = 0; c < 3; c++)
                    sum[p][c] = gpsti_fma(weight, (float)from[p][row + c], sum[p][c]);
                from[p] += all ? 0 : pitch;
            }
        }
#pragma unroll
        for (int p = 0; p < GPSTI_AREA_TOGETHER; p++)
            for (int c = 0; c < 3 && i + p * GPSTI_AREA_LANES < span; c++)
                sums[c][i + p * GPSTI_AREA_LANES] = sum[p][c];
    }
}

__device__ GPSTI_INLINE void gpsti_area_store(const gpsti_warp_job* job, uint8_t* output, int32_t x, int32_t y,
                                              const float sum[3]) {
    for (uint32_t c = 0; c < 3; c++) {
        float value = job->shift[c] == 0 ? sum[0] : job->shift[c] == 8 ? sum[1] : sum[2];
        if (job->has_scale)
            value = gpsti_fma(value, job->scale[c], job->bias[c]);
        gpsti_warp_store(job, gpsti_warp_output_of(job, output, x, y, c), gpsti_warp_settle(job, value));
    }
}

/* Output pixel (x, y) from the sums of columns first on. */
template <bool all>
__device__ GPSTI_INLINE void gpsti_area_across(const gpsti_warp_job* job, uint8_t* output,
                                               const gpsti_warp_window* window, const float sums[3][GPSTI_AREA_SPAN],
                                               int32_t first, int32_t x, int32_t y) {
    const gpsti_warp_window across = *window;
    const int32_t begin = across.begin - first, columns = across.end - across.begin;
    float sum[3] = {0.0f, 0.0f, 0.0f};
    for (int32_t k = 0; k < columns; k++) {
        const float weight = gpsti_area_weight<all>(&across, k);
        for (int c = 0; c < 3; c++)
            sum[c] = gpsti_fma(weight, sums[c][begin + k], sum[c]);
    }
    gpsti_area_store(job, output, x, y, sum);
}

/* As many of the tile's columns from k on as the sums have room for: the next that is not among them. */
__device__ GPSTI_INLINE int32_t gpsti_area_reach(const gpsti_area_tile* tile, int32_t k) {
    int32_t n = GPSTI_AREA_COLUMNS - k;
    while (n > 1 && tile->columns[k + n - 1].end - tile->columns[k].begin > GPSTI_AREA_SPAN)
        n /= 2;
    return k + n;
}

/* blockDim is GPSTI_AREA_LANES x GPSTI_AREA_THREADS_Y; the grid covers the output with tiles, z is the item. Rows
   beyond the output sum what its last one does, and store nothing. */
template <bool all>
GPSTI_KERNEL void gpsti_warp_area_device(const GPSTI_WARP_ARGUMENT gpsti_warp_launch launch) {
    __shared__ gpsti_area_tile tile;
    const gpsti_warp_item* const item = gpsti_warp_item_of(&launch, blockIdx.z);
    const gpsti_warp_job* const job = &launch.job;
    const int32_t x0 = (int32_t)(blockIdx.x * GPSTI_AREA_COLUMNS), y0 = (int32_t)blockIdx.y * launch.tile_rows;
    const int32_t line = (int32_t)threadIdx.y, lane = (int32_t)threadIdx.x;
    for (int32_t i = line * GPSTI_AREA_LANES + lane; i < GPSTI_AREA_COLUMNS + launch.tile_rows;
         i += GPSTI_AREA_LANES * GPSTI_AREA_THREADS_Y)
        gpsti_area_fill<all>(job, item, &tile, i, x0, y0);
    __syncthreads();
    for (int32_t j = line; j < launch.tile_rows; j += GPSTI_AREA_THREADS_Y)
        for (int32_t k = 0, next = 0; k < GPSTI_AREA_COLUMNS; k = next) {
            const int32_t first = tile.columns[k].begin;
            next = gpsti_area_reach(&tile, k);
            gpsti_area_down<all>(job, item->source, &tile.rows[j], tile.sums[line], first,
                                   tile.columns[next - 1].end - first);
            gpsti_area_wait();
            for (int32_t i = k + lane; i < next && x0 + i < job->width && y0 + j < job->height; i += GPSTI_AREA_LANES)
                gpsti_area_across<all>(job, item->output, &tile.columns[i], tile.sums[line], first, x0 + i, y0 + j);
            gpsti_area_wait();
        }
}

/* ---- the choice --------------------------------------------------------------------------- */
/* A window, twice as wide as an output pixel's part of the source and a pixel more, must fit into the sums; that of
   BICUBIC_AREA is twice as wide as this, the others always fit. */
GPSTI_PRIVATE bool gpsti_area_fits(const gpsti_warp_axis* axis, int64_t extent) {
    const int32_t most = axis->windows == GPSTI_WINDOWS_CUBIC ? GPSTI_AREA_SPAN / 4 : GPSTI_AREA_SPAN / 2;
    const bool wide = axis->windows == GPSTI_WINDOWS_CUBIC || axis->windows == GPSTI_WINDOWS_AREA;
    return !wide || extent / axis->out < (int64_t)(most - 4) * GPSTI_WARP_AXIS_UNIT;
}

/* NULL: no kernel of its own, as for rectangles whose windows are not known. job is what outputs have in common;
   cb_offset 0: the source is not NV12 or I420. */
GPSTI_PRIVATE gpsti_warp_device gpsti_area_choose(const gpsti_warp_job* job, const gpsti_warp_item* item,
                                                  int64_t cb_offset) {
    const int64_t extent = job->map == GPST_MAP_ROI ? item->map.axes[1] : job->across.extent;
    if (!gpsti_warp_by_windows(job->filter) || !gpsti_warp_by_axes(job->map) || job->rois_in_place || cb_offset ||
        job->mask || job->n_channels != 3 || job->source_dtype != GPST_DTYPE_U8 ||
        !gpsti_area_fits(&job->across, extent))
        return NULL;
    for (int c = 0; c < 3; c++)
        if (job->shift[c] > 16)
            return NULL;
    if (job->source_pixel_bytes < 3)
        return NULL;
    return job->across.windows != GPSTI_WINDOWS_AREA || job->down.windows != GPSTI_WINDOWS_AREA
               ? gpsti_warp_area_device<true>
               : gpsti_warp_area_device<false>;
}

#endif
#endif
