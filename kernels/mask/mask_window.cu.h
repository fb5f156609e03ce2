/* kernels/mask/mask_window.cu.h -- morphology, smoothing and refinement on a GPU: four
   pixels a word, in tiles of shared memory. Checks nothing: mask_launch.c did. Integers only. */
#ifndef GPSTI_MASK_WINDOW_CU_H
#define GPSTI_MASK_WINDOW_CU_H

#include "mask_argmax.cu.h"

#if defined(GPSTI_GPU_UNIT)

/* ---- a tile of words --------------------------------------------------------------------
   GPSTI_TILE_WORDS words of four pixels, the first lowest, in GPSTI_TILE_ROWS rows, and around them a word to the left
   and right and GPSTI_TILE_HALO rows above and below: what two windows of 5 x 5, one after the other, look at. */
#define GPSTI_TILE_WORDS 32
#define GPSTI_TILE_ROWS 32
#define GPSTI_TILE_HALO 4
#define GPSTI_TILE_ALL_WORDS (GPSTI_TILE_WORDS + 2)
#define GPSTI_TILE_ALL_ROWS (GPSTI_TILE_ROWS + 2 * GPSTI_TILE_HALO)
#define GPSTI_TILE_THREADS 256

typedef struct gpsti_tile {
    uint32_t words[GPSTI_TILE_ALL_ROWS][GPSTI_TILE_ALL_WORDS];
} gpsti_tile;

/* Where the tile's word `word` of row `row` lies in the image; both may be outside. */
__device__ GPSTI_INLINE int32_t gpsti_tile_x(uint32_t word) {
    return (int32_t)(4 * (blockIdx.x * GPSTI_TILE_WORDS + word)) - 4;
}
__device__ GPSTI_INLINE int32_t gpsti_tile_y(uint32_t row) {
    return (int32_t)(blockIdx.y * GPSTI_TILE_ROWS + row) - GPSTI_TILE_HALO;
}

__device__ GPSTI_INLINE gpsti_window_job gpsti_window_take(const gpsti_mask_batch* batch) {
    gpsti_window_job job = batch->job.window;
    job.source = batch->items[blockIdx.z].source;
    job.output = batch->items[blockIdx.z].output;
    job.guide = batch->items[blockIdx.z].guide;
    return job;
}

/* Pixels x to x + 3, of which at least one is inside; those outside are the edge's. */
__device__ GPSTI_INLINE uint32_t gpsti_tile_read(const gpsti_window_job* job, int32_t x, int32_t y, bool aligned) {
    const int32_t last_x = job->width - 1, last_y = job->height - 1;
    const uint8_t* row = job->source + (ptrdiff_t)((y < 0 ? 0 : y > last_y ? last_y : y) * job->source_pitch);
    uint32_t word = 0;
    if (aligned && x >= 0 && x + 3 <= last_x)
        return *(const uint32_t*)(const void*)(row + x);
    for (int32_t i = 0; i < 4; i++) {
        const int32_t at = x + i;
        word |= (uint32_t)row[at < 0 ? 0 : at > last_x ? last_x : at] << (8 * i);
    }
    return word;
}

__device__ GPSTI_INLINE void gpsti_tile_write(const gpsti_window_job* job, int32_t x, int32_t y, bool aligned,
                                              uint32_t word) {
    uint8_t* row = job->output + (ptrdiff_t)(y * job->output_pitch);
    if (aligned && x + 4 <= job->width)
        *(uint32_t*)(void*)(row + x) = word;
    else
        for (int32_t i = 0; i < 4 && x + i < job->width; i++)
            row[x + i] = (uint8_t)(word >> (8 * i));
}

/* 0xff where a byte is not 0. */
__device__ GPSTI_INLINE uint32_t gpsti_tile_in(uint32_t word) {
    const uint32_t low_bits = 0x7f7f7f7fu;
    return ((((word & low_bits) + low_bits) | word) >> 7 & 0x01010101u) * 255u;
}

/* 0xff where a pixel is inside the image. */
__device__ GPSTI_INLINE uint32_t gpsti_tile_inside(const gpsti_window_job* job, int32_t x, int32_t y) {
    const uint32_t all = 0xffffffffu;
    if (y < 0 || y >= job->height || x <= -4 || x >= job->width)
        return 0;
    const uint32_t left = x < 0 ? all << (8 * -x) : all;
    return x + 4 > job->width ? left & all >> (8 * (x + 4 - job->width)) : left;
}

/* ---- morphology -------------------------------------------------------------------------
   Eroding is dilating what is out, and opening is closing it: so there is one operation, of words whose bytes are 0 and
   0xff. Nothing is dilated from outside, where all is 0. */
template <int32_t radius>
__device__ GPSTI_INLINE uint32_t gpsti_tile_dilated(const gpsti_tile* tile, uint32_t row, uint32_t word) {
    uint32_t left = 0, middle = 0, right = 0;
#pragma unroll
    for (int32_t v = -radius; v <= radius; v++) {
        const uint32_t* line = tile->words[(int32_t)row + v];
        left |= word > 0 ? line[word - 1] : 0;
        middle |= line[word];
        right |= word + 1 < GPSTI_TILE_ALL_WORDS ? line[word + 1] : 0;
    }
    uint32_t all = middle;
#pragma unroll
    for (int32_t u = 1; u <= radius; u++)
        all |= middle << (8 * u) | left >> (32 - 8 * u) | middle >> (8 * u) | right << (32 - 8 * u);
    return all;
}

template <int32_t radius>
GPSTI_KERNEL void gpsti_morph_device(const gpsti_mask_batch batch) {
    __shared__ gpsti_tile tile, once;
    const gpsti_window_job job = gpsti_window_take(&batch);
    const bool twice = job.op == GPSTI_WINDOW_OPEN || job.op == GPSTI_WINDOW_CLOSE;
    const bool flipped = job.op == GPSTI_WINDOW_ERODE || job.op == GPSTI_WINDOW_OPEN;
    const bool aligned_in = gpsti_lanes_fit(job.source, job.source_pitch, 4);
    const bool aligned_out = gpsti_lanes_fit(job.output, job.output_pitch, 4);
    const uint32_t flip = flipped ? 0xffffffffu : 0;
    for (uint32_t i = threadIdx.x; i < GPSTI_TILE_ALL_ROWS * GPSTI_TILE_ALL_WORDS; i += GPSTI_TILE_THREADS) {
        const uint32_t row = i / GPSTI_TILE_ALL_WORDS, word = i % GPSTI_TILE_ALL_WORDS;
        const int32_t x = gpsti_tile_x(word), y = gpsti_tile_y(row);
        const uint32_t inside = gpsti_tile_inside(&job, x, y);
        tile.words[row][word] = inside ? (gpsti_tile_in(gpsti_tile_read(&job, x, y, aligned_in)) ^ flip) & inside : 0;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; twice && i < (GPSTI_TILE_ALL_ROWS - 4) * GPSTI_TILE_ALL_WORDS;
         i += GPSTI_TILE_THREADS) {
        const uint32_t row = 2 + i / GPSTI_TILE_ALL_WORDS, word = i % GPSTI_TILE_ALL_WORDS;
        once.words[row][word] = ~gpsti_tile_dilated<radius>(&tile, row, word) &
                                gpsti_tile_inside(&job, gpsti_tile_x(word), gpsti_tile_y(row));
    }
    __syncthreads();
    const gpsti_tile* last = twice ? &once : &tile;
    const uint32_t flip_last = flipped != twice ? 0xffffffffu : 0;
    for (uint32_t i = threadIdx.x; i < GPSTI_TILE_ROWS * GPSTI_TILE_WORDS; i += GPSTI_TILE_THREADS) {
        const uint32_t row = GPSTI_TILE_HALO + i / GPSTI_TILE_WORDS, word = 1 + i % GPSTI_TILE_WORDS;
        const int32_t x = gpsti_tile_x(word), y = gpsti_tile_y(row);
        if (x < job.width && y < job.height)
            gpsti_tile_write(&job, x, y, aligned_out, gpsti_tile_dilated<radius>(last, row, word) ^ flip_last);
    }
}

/* ---- smoothing ------------------------------------------------------------------------------ */
template <int32_t radius, bool is_box>
__device__ GPSTI_INLINE constexpr uint32_t gpsti_tile_weight(int32_t offset) {
    return is_box ? 1 : radius == 1 ? (offset == 0 ? 2 : 1) : offset == 0 ? 6 : offset == 1 || offset == -1 ? 4 : 1;
}

/* Sums down of the eight columns that four pixels look at, then across. */
template <int32_t radius, bool is_box>
__device__ GPSTI_INLINE uint32_t gpsti_tile_mean(const gpsti_tile* tile, uint32_t row, uint32_t word) {
    const uint32_t side = is_box ? 2 * radius + 1 : radius == 1 ? 4 : 16, weights = side * side;
    uint32_t sums[8] = {0, 0, 0, 0, 0, 0, 0, 0}, out = 0;
#pragma unroll
    for (int32_t v = -radius; v <= radius; v++) {
        const uint32_t* line = tile->words[(int32_t)row + v] + word - 1;
        const uint32_t words[3] = {line[0], line[1], line[2]};
#pragma unroll
        for (int32_t k = 2 - radius; k < 6 + radius; k++)
            sums[k] += gpsti_tile_weight<radius, is_box>(v) * (words[(k + 2) / 4] >> (8 * ((k + 2) % 4)) & 255u);
    }
#pragma unroll
    for (int32_t i = 0; i < 4; i++) {
        uint32_t sum = weights / 2;
#pragma unroll
        for (int32_t u = -radius; u <= radius; u++)
            sum += gpsti_tile_weight<radius, is_box>(u) * sums[i + 2 + u];
        out |= sum / weights << (8 * i);
    }
    return out;
}

template <int32_t radius, bool is_box>
GPSTI_KERNEL void gpsti_smooth_device(const gpsti_mask_batch batch) {
    __shared__ gpsti_tile tile;
    const gpsti_window_job job = gpsti_window_take(&batch);
    const bool aligned_in = gpsti_lanes_fit(job.source, job.source_pitch, 4);
    const bool aligned_out = gpsti_lanes_fit(job.output, job.output_pitch, 4);
    const uint32_t first_row = GPSTI_TILE_HALO - radius, n_rows = GPSTI_TILE_ROWS + 2 * radius;
    for (uint32_t i = threadIdx.x; i < n_rows * GPSTI_TILE_ALL_WORDS; i += GPSTI_TILE_THREADS) {
        const uint32_t row = first_row + i / GPSTI_TILE_ALL_WORDS, word = i % GPSTI_TILE_ALL_WORDS;
        tile.words[row][word] = gpsti_tile_read(&job, gpsti_tile_x(word), gpsti_tile_y(row), aligned_in);
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < GPSTI_TILE_ROWS * GPSTI_TILE_WORDS; i += GPSTI_TILE_THREADS) {
        const uint32_t row = GPSTI_TILE_HALO + i / GPSTI_TILE_WORDS, word = 1 + i % GPSTI_TILE_WORDS;
        const int32_t x = gpsti_tile_x(word), y = gpsti_tile_y(row);
        if (x < job.width && y < job.height)
            gpsti_tile_write(&job, x, y, aligned_out, gpsti_tile_mean<radius, is_box>(&tile, row, word));
    }
}

/* ---- refinement --------------------------------------------------------------------------------
   The window's labels, and a bit for each that has a vote; its middle is number 4 and always has. */
__device__ GPSTI_INLINE uint32_t gpsti_refine_count(const uint32_t* labels, uint32_t votes, uint32_t label) {
    uint32_t n = 0;
#pragma unroll
    for (uint32_t j = 0; j < 9; j++)
        n += (votes >> j & 1u) && labels[j] == label ? 1u : 0u;
    return n;
}

__device__ GPSTI_INLINE uint32_t gpsti_refine_elect(const uint32_t* labels, uint32_t votes) {
    const uint32_t own_count = gpsti_refine_count(labels, votes, labels[4]);
    uint32_t label = labels[4], most = own_count;
    if (own_count == (uint32_t)__popc(votes))
        return label;
#pragma unroll
    for (uint32_t i = 0; i < 9; i++) {
        const uint32_t count = gpsti_refine_count(labels, votes, labels[i]);
        const bool takes = count > most || (count == most && most > own_count && labels[i] < label);
        label = takes && (votes >> i & 1u) ? labels[i] : label;
        most = takes && (votes >> i & 1u) ? count : most;
    }
    return label;
}

GPSTI_KERNEL void gpsti_refine_device(const gpsti_mask_batch batch) {
    const gpsti_window_job job = gpsti_window_take(&batch);
    const int32_t x = (int32_t)(blockIdx.x * blockDim.x + threadIdx.x);
    const int32_t y = (int32_t)(blockIdx.y * blockDim.y + threadIdx.y);
    uint32_t labels[9], votes = 0;
    if (x >= job.width || y >= job.height)
        return;
#pragma unroll
    for (int32_t j = 0; j < 9; j++) {
        const int32_t u = x + j % 3 - 1, v = y + j / 3 - 1;
        labels[j] = gpsti_window_inside(&job, u, v) ? gpsti_window_read(&job, u, v) : 0;
        votes |= gpsti_window_votes(&job, x, y, u, v) ? 1u << j : 0;
    }
    const uint32_t label = gpsti_refine_elect(labels, votes);
    uint8_t* row = job.output + (ptrdiff_t)(y * job.output_pitch);
    if (job.wide)
        ((uint16_t*)(void*)row)[x] = (uint16_t)label;
    else
        row[x] = (uint8_t)label;
}

/* ---- launching ----------------------------------------------------------------------------------- */
GPSTI_PRIVATE gpst_result gpsti_window_launch(const char* function, const gpsti_mask_batch* batch, void* stream) {
    const gpsti_window_job* job = &batch->job.window;
    const uint32_t width = (uint32_t)job->width, height = (uint32_t)job->height;
    const dim3 grid(gpsti_gpu_blocks(width, 4 * GPSTI_TILE_WORDS), gpsti_gpu_blocks(height, GPSTI_TILE_ROWS),
                    batch->n_items);
    const dim3 block(GPSTI_TILE_THREADS);
    switch (job->op) {
    case GPSTI_WINDOW_REFINE:
        return gpsti_gpu_launch(function, gpsti_refine_device,
                                dim3(gpsti_gpu_blocks(width, 32), gpsti_gpu_blocks(height, 8), batch->n_items),
                                dim3(32, 8), batch, stream);
    case GPSTI_WINDOW_BOX:
        return gpsti_gpu_launch(function,
                                job->radius == 1 ? gpsti_smooth_device<1, true> : gpsti_smooth_device<2, true>, grid,
                                block, batch, stream);
    case GPSTI_WINDOW_GAUSSIAN:
        return gpsti_gpu_launch(function,
                                job->radius == 1 ? gpsti_smooth_device<1, false> : gpsti_smooth_device<2, false>, grid,
                                block, batch, stream);
    default:
        return gpsti_gpu_launch(function, job->radius == 1 ? gpsti_morph_device<1> : gpsti_morph_device<2>, grid, block,
                                batch, stream);
    }
}

#endif
#endif
