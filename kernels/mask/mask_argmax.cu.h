/* kernels/mask/mask_argmax.cu.h -- argmax on a GPU: planes of scores, scores enlarged
   on the way, and everything else by the per-pixel reference. Checks nothing: mask_launch.c did. */
#ifndef GPSTI_MASK_ARGMAX_CU_H
#define GPSTI_MASK_ARGMAX_CU_H

#include "../launch/launch.cu.h"
#include "mask_launch_internal.h"
#include "mask_pixel_internal.h"

#if defined(GPSTI_GPU_UNIT)

/* ---- one pixel's race -----------------------------------------------------------------
   As gpsti_f32_key would decide it: nothing but NaN loses to NaN, which is where a pixel begins. */
template <uint32_t n>
struct gpsti_argmax_race {
    float best[n];
    uint32_t label[n];
};

template <uint32_t n>
__device__ GPSTI_INLINE void gpsti_argmax_begin(gpsti_argmax_race<n>* race) {
#pragma unroll
    for (uint32_t i = 0; i < n; i++) {
        race->best[i] = gpsti_f32_from_bits(0x7fc00000u);
        race->label[i] = 0;
    }
}

__device__ GPSTI_INLINE void gpsti_argmax_meet(float score, uint32_t label, float* best, uint32_t* found) {
    const bool wins = !(score <= *best) && score == score;
    *best = wins ? score : *best;
    *found = wins ? label : *found;
}

__device__ GPSTI_INLINE float gpsti_argmax_score(float score) { return score; }
__device__ GPSTI_INLINE float gpsti_argmax_score(uint16_t score) { return gpsti_f32_from_f16(score); }

template <typename Label, uint32_t n>
__device__ GPSTI_INLINE void gpsti_argmax_write(uint8_t* to, const uint32_t* label) {
    gpsti_lanes<Label, n> lanes;
#pragma unroll
    for (uint32_t i = 0; i < n; i++)
        lanes.at[i] = (Label)label[i];
    *(gpsti_lanes<Label, n>*)(void*)to = lanes;
}

template <uint32_t n>
__device__ GPSTI_INLINE void gpsti_argmax_write(const gpsti_argmax_job* job, uint32_t x, uint32_t y,
                                                const uint32_t* label) {
    uint8_t* row = job->output + (ptrdiff_t)(y * job->output_pitch);
    if (job->wide)
        gpsti_argmax_write<uint16_t, n>(row + (size_t)x * 2, label);
    else
        gpsti_argmax_write<uint8_t, n>(row + x, label);
}

__device__ GPSTI_INLINE gpsti_argmax_job gpsti_argmax_take(const gpsti_mask_batch* batch) {
    gpsti_argmax_job job = batch->job.argmax;
    job.source = batch->items[blockIdx.z].source;
    job.output = batch->items[blockIdx.z].output;
    return job;
}

/* ---- planes ----------------------------------------------------------------------------
   n pixels a thread. So many classes are asked for before the first is looked at; behind the last of them it is
   the last again, which changes nothing. */
#define GPSTI_ARGMAX_AHEAD 7u
#define GPSTI_ARGMAX_THREADS 256

template <typename Score, uint32_t n>
__device__ GPSTI_INLINE void gpsti_argmax_planes(const gpsti_argmax_job* job, uint32_t x, uint32_t y) {
    const uint8_t* p = job->source + (ptrdiff_t)(y * job->source_pitch) + (ptrdiff_t)(x * (int64_t)sizeof(Score));
    gpsti_argmax_race<n> race;
    gpsti_argmax_begin(&race);
    for (uint32_t c = 0; c < job->n_classes; c += GPSTI_ARGMAX_AHEAD) {
        const uint32_t last = job->n_classes - 1 - c;
        gpsti_lanes<Score, n> scores[GPSTI_ARGMAX_AHEAD];
#pragma unroll
        for (uint32_t u = 0; u < GPSTI_ARGMAX_AHEAD; u++)
            scores[u] = *(const gpsti_lanes<Score, n>*)(const void*)(
                p + (ptrdiff_t)((u < last ? u : last) * job->class_bytes));
#pragma unroll
        for (uint32_t u = 0; u < GPSTI_ARGMAX_AHEAD; u++)
#pragma unroll
            for (uint32_t i = 0; i < n; i++)
                gpsti_argmax_meet(gpsti_argmax_score(scores[u].at[i]), c + u, &race.best[i], &race.label[i]);
        p += (ptrdiff_t)(GPSTI_ARGMAX_AHEAD * job->class_bytes);
    }
    gpsti_argmax_write<n>(job, x, y, race.label);
}

template <typename Score, uint32_t n>
GPSTI_KERNEL void gpsti_argmax_planes_device(const gpsti_mask_batch batch) {
    const gpsti_argmax_job job = gpsti_argmax_take(&batch);
    uint32_t x = (blockIdx.x * blockDim.x + threadIdx.x) * n;
    if (x < job.width && job.width - x >= n)
        gpsti_argmax_planes<Score, n>(&job, x, blockIdx.y);
    else
        for (; x < job.width; x++)
            gpsti_argmax_planes<Score, 1>(&job, x, blockIdx.y);
}

/* ---- enlarged -----------------------------------------------------------------------------
   A block has GPSTI_ENLARGE_COLUMNS output columns, one a thread, and up to GPSTI_ENLARGE_ROWS output rows that lie
   between the same two source rows. Of these it keeps every pixel and the change to the next one, for as many classes
   as there is room; a thread interpolates both rows across, and down is one multiply-add a row and class. */
#define GPSTI_ENLARGE_COLUMNS 128
#define GPSTI_ENLARGE_ROWS 10
#define GPSTI_ENLARGE_STEPS 512 /* shared */

typedef struct gpsti_enlarge_args {
    uint32_t n_parts; /* blocks that share the rows between two source rows */
    uint32_t n_steps; /* source columns that a block may need */
    gpsti_mask_batch batch;
} gpsti_enlarge_args;

/* From a source pixel to the next, in the upper and the lower row. Step 0 leads from beyond the edge to pixel 0, and
   changes nothing. */
typedef struct gpsti_enlarge_change {
    GPSTI_ALIGNAS(8) float value;
    float change;
} gpsti_enlarge_change;

typedef struct gpsti_enlarge_step {
    GPSTI_ALIGNAS(16) gpsti_enlarge_change row[2];
} gpsti_enlarge_step;

typedef struct gpsti_enlarge_block {
    uint32_t y, n_rows;
    uint32_t upper, lower; /* source rows */
    uint32_t first;        /* step */
    float weight[GPSTI_ENLARGE_ROWS];
    gpsti_enlarge_step steps[GPSTI_ENLARGE_STEPS];
} gpsti_enlarge_block;

__device__ GPSTI_INLINE uint32_t gpsti_enlarge_step_of(gpsti_argmax_tap across) {
    return across.second == 0 ? 0 : across.first + 1;
}

/* The first output row that lies below the centre of source row `upper` - 1, or on it:
   (2 row + 1) in + out >= 2 upper out. */
__device__ GPSTI_INLINE uint32_t gpsti_enlarge_first_row(uint32_t upper, uint32_t in, uint32_t out) {
    const uint64_t centre = 2 * (uint64_t)upper * out, shift = (uint64_t)in + out;
    return centre <= shift ? 0 : (uint32_t)((centre - shift + 2 * (uint64_t)in - 1) / (2 * (uint64_t)in));
}

/* By the first threads; all see it after the next barrier. */
__device__ GPSTI_INLINE void gpsti_enlarge_place(const gpsti_enlarge_args* args, const gpsti_argmax_job* job,
                                                 gpsti_enlarge_block* block) {
    const uint32_t group = blockIdx.x / args->n_parts, part = blockIdx.x % args->n_parts;
    const uint32_t begin = gpsti_enlarge_first_row(group, job->source_height, job->height);
    const uint32_t end = group == job->source_height
                             ? job->height
                             : gpsti_enlarge_first_row(group + 1, job->source_height, job->height);
    const uint32_t y = begin + (uint32_t)((uint64_t)(end - begin) * part / args->n_parts);
    const uint32_t y_end = begin + (uint32_t)((uint64_t)(end - begin) * (part + 1) / args->n_parts);
    if (threadIdx.x == 0) {
        const gpsti_argmax_tap across =
            gpsti_argmax_locate(blockIdx.y * GPSTI_ENLARGE_COLUMNS, job->source_width, job->width);
        block->first = gpsti_enlarge_step_of(across);
        block->y = y, block->n_rows = y_end - y;
        block->upper = group == 0 ? 0 : group - 1;
        block->lower = group == job->source_height ? group - 1 : group;
    }
    if (threadIdx.x < y_end - y)
        block->weight[threadIdx.x] = gpsti_argmax_locate(y + threadIdx.x, job->source_height, job->height).weight;
}

__device__ GPSTI_INLINE float gpsti_enlarge_read(const gpsti_argmax_job* job, uint32_t x, uint32_t y, uint32_t c) {
    return gpsti_argmax_limited(gpsti_argmax_read(job, x < job->source_width ? x : job->source_width - 1, y, c));
}

/* The steps of n_classes classes: threads go on in steps and lines without dividing. */
__device__ GPSTI_INLINE void gpsti_enlarge_load(const gpsti_argmax_job* job, uint32_t n_steps, uint32_t first_class,
                                                uint32_t n_classes, gpsti_enlarge_block* block) {
    const uint32_t lines = GPSTI_ENLARGE_COLUMNS / n_steps, steps = GPSTI_ENLARGE_COLUMNS % n_steps;
    uint32_t line = threadIdx.x / n_steps, step = threadIdx.x % n_steps;
    while (line < 2 * n_classes) {
        const uint32_t x = block->first + step, y = line & 1 ? block->lower : block->upper, c = line / 2;
        const float value = gpsti_enlarge_read(job, x == 0 ? 0 : x - 1, y, first_class + c);
        const float next = gpsti_enlarge_read(job, x, y, first_class + c);
        block->steps[c * n_steps + step].row[line & 1].value = value;
        block->steps[c * n_steps + step].row[line & 1].change = next - value;
        line += lines, step += steps;
        line += step >= n_steps ? 1 : 0;
        step -= step >= n_steps ? n_steps : 0;
    }
}

/* A score that is interpolated is above -inf or NaN. */
template <uint32_t n>
__device__ GPSTI_INLINE void gpsti_enlarge_rows(const gpsti_argmax_job* job, uint32_t n_steps, uint32_t x,
                                                gpsti_enlarge_block* block) {
    const uint32_t room = GPSTI_ENLARGE_STEPS / n_steps;
    const gpsti_argmax_tap across =
        gpsti_argmax_locate(x < job->width ? x : job->width - 1, job->source_width, job->width);
    float best[n], weight[n];
    uint32_t label[n];
#pragma unroll
    for (uint32_t r = 0; r < n; r++) {
        best[r] = gpsti_f32_from_bits(0xff800000u);
        label[r] = 0;
        weight[r] = block->weight[r];
    }
    for (uint32_t c = 0; c < job->n_classes; c += room) {
        const uint32_t left = job->n_classes - c, n_classes = left < room ? left : room;
        __syncthreads();
        gpsti_enlarge_load(job, n_steps, c, n_classes, block);
        __syncthreads();
        for (uint32_t k = 0, at = gpsti_enlarge_step_of(across) - block->first; k < n_classes; k++, at += n_steps) {
            const gpsti_enlarge_step step = block->steps[at];
            const float a = gpsti_fma(step.row[0].change, across.weight, step.row[0].value);
            const float b = gpsti_fma(step.row[1].change, across.weight, step.row[1].value);
            const float change = b - a;
#pragma unroll
            for (uint32_t r = 0; r < n; r++) {
                const float score = gpsti_fma(change, weight[r], a);
                label[r] = score > best[r] ? c + k : label[r];
                best[r] = score > best[r] ? score : best[r];
            }
        }
    }
    if (x < job->width)
#pragma unroll
        for (uint32_t r = 0; r < n; r++)
            gpsti_argmax_write<1>(job, x, block->y + r, &label[r]);
}

/* A loop of its own for every number of rows. */
template <uint32_t n>
__device__ GPSTI_INLINE void gpsti_enlarge_some(const gpsti_argmax_job* job, uint32_t n_steps, uint32_t x,
                                                gpsti_enlarge_block* block) {
    if (block->n_rows == n)
        gpsti_enlarge_rows<n>(job, n_steps, x, block);
    else if (n > 1) /* C++14 has no constexpr for it: the last one names itself */
        gpsti_enlarge_some<(n > 1 ? n - 1 : 1)>(job, n_steps, x, block);
}

GPSTI_KERNEL void gpsti_argmax_enlarge_device(const gpsti_enlarge_args args) {
    __shared__ gpsti_enlarge_block block;
    const gpsti_argmax_job job = gpsti_argmax_take(&args.batch);
    gpsti_enlarge_place(&args, &job, &block);
    __syncthreads();
    gpsti_enlarge_some<GPSTI_ENLARGE_ROWS>(&job, args.n_steps, blockIdx.y * GPSTI_ENLARGE_COLUMNS + threadIdx.x,
                                           &block);
}

/* ---- everything else ------------------------------------------------------------------------ */
GPSTI_KERNEL void gpsti_argmax_general_device(const gpsti_mask_batch batch) {
    const gpsti_argmax_job job = gpsti_argmax_take(&batch);
    const uint32_t x = blockIdx.x * blockDim.x + threadIdx.x;
    if (x < job.width)
        gpsti_argmax_store(&job, x, blockIdx.y, gpsti_argmax_pixel(&job, x, blockIdx.y));
}

/* ---- launching ------------------------------------------------------------------------------- */
GPSTI_PRIVATE gpst_result gpsti_argmax_launch_enlarge(const char* function, const gpsti_mask_batch* batch,
                                                      void* stream) {
    const gpsti_argmax_job* job = &batch->job.argmax;
    const uint32_t most_rows = gpsti_gpu_blocks(job->height, job->source_height);
    gpsti_enlarge_args args;
    args.batch = *batch;
    args.n_parts = gpsti_gpu_blocks(most_rows, GPSTI_ENLARGE_ROWS);
    args.n_steps = (GPSTI_ENLARGE_COLUMNS - 1) * job->source_width / job->width + 2;
    const dim3 grid((job->source_height + 1) * args.n_parts, gpsti_gpu_blocks(job->width, GPSTI_ENLARGE_COLUMNS),
                    batch->n_items);
    return gpsti_gpu_launch(function, gpsti_argmax_enlarge_device, grid, dim3(GPSTI_ENLARGE_COLUMNS), &args, stream);
}

/* Whether vectors of so many bytes fit to all of n_rows rows of every item. */
GPSTI_PRIVATE bool gpsti_mask_fits(const gpsti_mask_batch* batch, uint32_t n_rows, int64_t source_pitch,
                                   uint32_t source_bytes, int64_t output_pitch, uint32_t output_bytes) {
    bool fits = true;
    for (uint32_t i = 0; i < batch->n_items; i++)
        fits = fits && gpsti_lanes_fit(batch->items[i].source, n_rows > 1 ? source_pitch : 0, source_bytes) &&
               gpsti_lanes_fit(batch->items[i].output, n_rows > 1 ? output_pitch : 0, output_bytes);
    return fits;
}

/* Vectors where all that they touch is a multiple of them; rows without gaps are one row. */
template <typename Score>
GPSTI_PRIVATE gpst_result gpsti_argmax_launch_planes(const char* function, const gpsti_mask_batch* batch,
                                                     void* stream) {
    const uint32_t n = 16 / sizeof(Score), label_bytes = batch->job.argmax.wide ? 2 : 1;
    gpsti_mask_batch flat = *batch;
    gpsti_argmax_job* job = &flat.job.argmax;
    if (job->source_pitch == job->width * job->pixel_bytes && job->output_pitch == (int64_t)job->width * label_bytes)
        job->width *= job->height, job->height = 1;
    const bool fits = (job->n_classes == 1 || job->class_bytes % 16 == 0) &&
                      gpsti_mask_fits(&flat, job->height, job->source_pitch, 16, job->output_pitch, n * label_bytes);
    const uint32_t step = GPSTI_ARGMAX_THREADS * (fits ? n : 1);
    const dim3 grid(gpsti_gpu_blocks(job->width, step), job->height, flat.n_items);
    return gpsti_gpu_launch(function,
                            fits ? gpsti_argmax_planes_device<Score, n> : gpsti_argmax_planes_device<Score, 1>, grid,
                            dim3(GPSTI_ARGMAX_THREADS), &flat, stream);
}

GPSTI_PRIVATE gpst_result gpsti_argmax_launch(const char* function, const gpsti_mask_batch* batch, void* stream) {
    const gpsti_argmax_job* job = &batch->job.argmax;
    if (job->resize && job->source_width <= job->width && job->source_height <= job->height)
        return gpsti_argmax_launch_enlarge(function, batch, stream);
    if (!job->resize && job->pixel_bytes == (job->half ? 2 : 4))
        return job->half ? gpsti_argmax_launch_planes<uint16_t>(function, batch, stream)
                         : gpsti_argmax_launch_planes<float>(function, batch, stream);
    const dim3 grid(gpsti_gpu_blocks(job->width, GPSTI_ARGMAX_THREADS), job->height, batch->n_items);
    return gpsti_gpu_launch(function, gpsti_argmax_general_device, grid, dim3(GPSTI_ARGMAX_THREADS), batch, stream);
}

#endif
#endif
