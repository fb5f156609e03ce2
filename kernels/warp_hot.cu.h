/* kernels/warp_hot.cu.h -- the warps that most programs run, compiled by themselves:
   bilinear views and resizes of 3 and 4 byte pixels, into packed bytes or planes of floats. The bits are those of
   the per-pixel reference, whose steps it keeps in cheaper forms. */
#ifndef GPSTI_WARP_HOT_CU_H
#define GPSTI_WARP_HOT_CU_H

#include "warp_block.cu.h"

#if defined(GPSTI_GPU_UNIT)

/* A thread has GPSTI_HOT_TOGETHER columns of its tile, GPSTI_HOT_LANES apart, in every eighth row. */
#define GPSTI_HOT_LANES 32
#define GPSTI_HOT_TOGETHER 2
#define GPSTI_HOT_COLUMNS (GPSTI_HOT_LANES * GPSTI_HOT_TOGETHER)
#define GPSTI_HOT_THREADS_Y 8
#define GPSTI_HOT_TILES_WANTED 1500 /* some for each multiprocessor of the largest devices, several times over */
#define GPSTI_HOT_ROWS 64 /* at most; see gpsti_hot_tile_rows */

/* Where one address of the launch does for all threads, what is rare stays out of the way of the rest. */
#if defined(__CUDACC__)
#define GPSTI_HOT_RARE __noinline__ GPSTI_PRIVATE
#define GPSTI_HOT_ARGUMENT __grid_constant__
#else
#define GPSTI_HOT_RARE GPSTI_INLINE
#define GPSTI_HOT_ARGUMENT
#endif

typedef enum gpsti_hot_map { GPSTI_HOT_VIEWS, GPSTI_HOT_AXES } gpsti_hot_map;
typedef enum gpsti_hot_store { GPSTI_HOT_U8, GPSTI_HOT_F16, GPSTI_HOT_F32 } gpsti_hot_store;

/* ---- instructions ---------------------------------------------------------------------- */
/* Four bytes of the eight of low and high, by number. */
__device__ GPSTI_INLINE uint32_t gpsti_hot_pick(uint32_t low, uint32_t high, uint32_t selector) {
#if defined(__CUDA_ARCH__)
    return __byte_perm(low, high, selector);
#else
    const uint64_t both = (uint64_t)high << 32 | low;
    uint32_t out = 0;
    for (int i = 0; i < 4; i++)
        out |= (uint32_t)((both >> (8 * ((selector >> (4 * i)) & 7))) & 255) << (8 * i);
    return out;
#endif
}

/* The low half of low and high shifted right by the low 5 bits of bits. */
__device__ GPSTI_INLINE uint32_t gpsti_hot_shift(uint32_t low, uint32_t high, uint32_t bits) {
#if defined(__CUDA_ARCH__)
    return __funnelshift_r(low, high, bits);
#else
    return (uint32_t)(((uint64_t)high << 32 | low) >> (bits & 31));
#endif
}

/* Two weights of 16 bits times bytes 0 and 1 (second: 2 and 3) of pairs, and 8. */
__device__ GPSTI_INLINE uint32_t gpsti_hot_dot(uint32_t weights, uint32_t pairs, bool second) {
#if defined(__CUDA_ARCH__)
    return second ? __dp2a_hi(weights, pairs, 8u) : __dp2a_lo(weights, pairs, 8u);
#else
    const uint32_t bytes = second ? pairs >> 16 : pairs;
    return (weights & 65535) * (bytes & 255) + (weights >> 16) * ((bytes >> 8) & 255) + 8;
#endif
}

/* What the next thread of the row has. */
__device__ GPSTI_INLINE uint32_t gpsti_hot_next(uint32_t value) {
#if defined(__CUDACC__)
    return __shfl_down_sync(0xffffffffu, value, 1); /* all 32: CUDA's warps have that many, and all are here */
#else
    return __shfl_down(value, 1);
#endif
}

/* Of numbers; one instruction each, or none. */
__device__ GPSTI_INLINE float gpsti_hot_abs(float value) {
#if defined(__CUDA_ARCH__)
    return fabsf(value);
#else
    return gpsti_abs32(value);
#endif
}

__device__ GPSTI_INLINE float gpsti_hot_lesser(float a, float b) {
#if defined(__CUDA_ARCH__)
    return fminf(a, b);
#else
    return a < b ? a : b;
#endif
}

__device__ GPSTI_INLINE float gpsti_hot_greater(float a, float b) {
#if defined(__CUDA_ARCH__)
    return fmaxf(a, b);
#else
    return a > b ? a : b;
#endif
}

/* The bits of gpsti_f16_from_f32 of what is no NaN. */
__device__ GPSTI_INLINE uint16_t gpsti_hot_half(float value) {
#if defined(__CUDA_ARCH__)
    uint16_t half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(value));
    return half;
#else
    return gpsti_f16_from_f32(value);
#endif
}

/* a / b and the square root of a, rounded to nearest, where nothing overflows and no intermediate value is
   subnormal: what CUDA computes of / and __fsqrt_rn itself, without the branch for the rest. */
__device__ GPSTI_INLINE float gpsti_hot_divide(float a, float b) {
#if defined(__CUDA_ARCH__)
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
    inverse = __fmaf_rn(inverse, __fmaf_rn(-b, inverse, 1.0f), inverse);
    const float quotient = __fmul_rn(a, inverse);
    return __fmaf_rn(inverse, __fmaf_rn(-b, quotient, a), quotient);
#else
    return a / (b > 1e-30f ? b : 1e-30f);
#endif
}

__device__ GPSTI_INLINE float gpsti_hot_root(float a) {
#if defined(__CUDA_ARCH__)
    float inverse;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(a));
    const float root = __fmul_rn(a, inverse), half = __fmul_rn(inverse, 0.5f);
    return __fmaf_rn(__fmaf_rn(-root, root, a), half, root);
#else
    return gpsti_sqrt32(a);
#endif
}

/* ---- a tile ------------------------------------------------------------------------------
   What its threads take from shared memory into registers: constants that are read from the launch again and again
   cost an instruction each time. */
typedef struct gpsti_hot_view {
    float a_high[3], a_low[3];
    float scale_u, scale_v;
    int32_t quarter_u, quarter_v, offset_u, offset_v;
} gpsti_hot_view;

typedef struct gpsti_hot_tile {
    uint32_t inner_bytes, inner_height; /* left and upper taps below them, and no further than last_at, need no */
    int32_t last_at;                    /* border: bytes of a row, rows, bytes from the first row's begin */
    uint32_t word_selects[4];           /* of the threads of four pixels; see gpsti_hot_store_bytes */
    gpsti_warp_tap taps[GPSTI_HOT_COLUMNS + GPSTI_HOT_ROWS]; /* AXES: of the columns, then of the rows */
    gpsti_warp_row rows[GPSTI_HOT_ROWS];                     /* VIEWS, and the rest */
    gpsti_hot_view view;
} gpsti_hot_tile;

/* What a column has: of AXES for good; of views in every row anew, unless the view is level (see below). */
typedef struct gpsti_hot_column {
    int32_t at;       /* of the left taps, bytes from the row's begin */
    int32_t u;        /* in 1/32768 pixel; of AXES that of the nearest pixel */
    uint32_t weights; /* 2048 - weight and weight, of 16 bits */
    float fraction;
    float n, across; /* VIEWS */
} gpsti_hot_column;

/* One pixel on its way: its place, and the two rows of its taps, the left pixel's bytes from the lowest of low up,
   then the right one's. */
typedef struct gpsti_hot_pixel {
    gpsti_hot_column column;
    int32_t y, v;
    uint32_t below; /* the lower taps' weight, times 64 */
    float fraction;
    uint32_t low[2], high[2];
} gpsti_hot_pixel;

/* What becomes of it: three bytes, or three floats. */
typedef struct gpsti_hot_sample {
    uint32_t packed;
    float value[3];
} gpsti_hot_sample;

/* ---- where: views ----------------------------------------------------------------------
   gpsti_warp_angle, sign and offset included. The larger of x and y is 0, or 1e-25 to 1e17, or x is tiny and y is not:
   where the quotient is below 1e-10 it may be wrong in its last bits, but then the angle is 0 at any scale; else no
   step is subnormal. Of two zeros the quotient is NaN, whose integer is 0. */
__device__ GPSTI_INLINE int32_t gpsti_hot_angle(float y, float x, bool x_positive, float scale, int32_t quarter,
                                                int32_t offset) {
    const float ay = gpsti_hot_abs(y), ax = gpsti_hot_abs(x);
    const float r = gpsti_hot_divide(gpsti_hot_lesser(ay, ax), gpsti_hot_greater(ay, ax));
    const float arc = r * GPSTI_ATAN_POLYNOMIAL(gpsti_fma, r * r);
    int32_t angle = (int32_t)gpsti_fma(arc, scale, 0.5f);
    angle = ay > ax ? quarter - angle : angle;
    if (!x_positive)
        angle = x < 0 ? 2 * quarter - angle : angle;
    return y < 0 ? offset - angle : offset + angle;
}

__device__ GPSTI_INLINE float gpsti_hot_ray(const gpsti_hot_view* view, const gpsti_warp_row* row, int c, float n) {
    return gpsti_fma(view->a_high[c], n, row->high[c]) + gpsti_fma(view->a_low[c], n, row->low[c]);
}

__device__ GPSTI_INLINE void gpsti_hot_set_u(int32_t u, int32_t pixel_bytes, gpsti_hot_column* column) {
    column->u = u;
    column->at = (u >> 15) * pixel_bytes;
    column->weights = (((uint32_t)(u & 32767) + 8) >> 4) * 65535u + 2048u;
    column->fraction = (float)(u & 32767) * (1.0f / 32768.0f);
}

__device__ GPSTI_INLINE void gpsti_hot_set_v(int32_t v, gpsti_hot_pixel* pixel) {
    pixel->v = v;
    pixel->y = v >> 15;
    pixel->below = (((uint32_t)(v & 32767) + 8) & ~15u) << 2;
    pixel->fraction = (float)(v & 32767) * (1.0f / 32768.0f);
}

/* Half of gpsti_warp_sphere: what follows from x and z of the ray. They vanish together right next to a pole only,
   where y is about 1: any tiny distance from the axis gives the angle of the pole itself. */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_turn(const gpsti_hot_view* view, const gpsti_warp_row* row,
                                            gpsti_hot_column* column) {
    const float x = gpsti_hot_ray(view, row, 0, column->n), z = gpsti_hot_ray(view, row, 2, column->n);
    const float square = gpsti_fma(x, x, z * z);
    column->across = square < 1e-30f ? 0.0f : gpsti_hot_root(square);
    gpsti_hot_set_u(gpsti_hot_angle(x, z, false, view->scale_u, view->quarter_u, view->offset_u), pixel_bytes,
                    column);
}

/* The other half. */
__device__ GPSTI_INLINE void gpsti_hot_tilt(const gpsti_hot_view* view, const gpsti_warp_row* row,
                                            gpsti_hot_pixel* pixel) {
    const float y = gpsti_hot_ray(view, row, 1, pixel->column.n);
    gpsti_hot_set_v(
        gpsti_hot_angle(y, pixel->column.across, true, view->scale_v, view->quarter_v, view->offset_v), pixel);
}

/* ---- where: what a tile computes ahead ---------------------------------------------------
   Away from the borders taps are read in whole words, aligned as the source and its pitch are. Of 3 byte pixels three
   words have the six bytes, and may run over the row's end into the next: not from the last row, whose end is the
   image's, and not where rows go backwards, and the last is the first. */
__device__ GPSTI_INLINE void gpsti_hot_fill_constants(const gpsti_warp_job* job, gpsti_hot_tile* tile, int32_t i) {
    const int32_t pixel_bytes = (int32_t)job->source_pixel_bytes, pitch = (int32_t)job->source_pitch;
    const int32_t spared = pixel_bytes == 3 && pitch < 0 ? 3 : 1, width = job->source_width - spared;
    if (i == 0) {
        tile->inner_bytes = width > 0 ? (uint32_t)(width * pixel_bytes) : 0;
        tile->inner_height = (uint32_t)(job->source_height - 1);
        tile->last_at = pixel_bytes == 3 && pitch > 0
                            ? (job->source_height - 2) * pitch + 3 * job->source_width - 12
                            : INT32_MAX;
    }
    if (i < 4)
        tile->word_selects[i] = i == 0 ? 0x4210 : i == 1 ? 0x5421 : 0x6542;
}

__device__ GPSTI_INLINE void gpsti_hot_fill_view(const gpsti_warp_launch* launch, const gpsti_warp_item* item,
                                                 gpsti_hot_tile* tile, int32_t i, int32_t y0) {
    const gpsti_warp_job* const job = &launch->job;
    const int32_t y = y0 + i < job->height ? y0 + i : job->height - 1;
    const double m = (double)(2 * y + 1 - job->height);
    gpsti_hot_view* const view = &tile->view;
    if (i == 0) {
        for (int c = 0; c < 3; c++)
            view->a_high[c] = item->map.view.a_high[c], view->a_low[c] = item->map.view.a_low[c];
        view->scale_u = job->scale_u, view->quarter_u = job->quarter_u, view->offset_u = job->offset_u;
        view->scale_v = job->scale_v, view->quarter_v = job->quarter_v, view->offset_v = job->offset_v;
    }
    for (int c = 0; c < 3 && i < launch->tile_rows; c++)
        gpsti_split(gpsti_mul64(item->map.view.b[c], m) + item->map.view.d[c], &tile->rows[i].high[c],
                    &tile->rows[i].low[c]);
}

/* gpsti_warp_axis_tap of BILINEAR without a division of 64 bits: quotients by a reciprocal are off by one at most, which
   their remainders tell. inverse is 1 / axis->out, rounded. */
__device__ GPSTI_INLINE gpsti_warp_tap gpsti_hot_tap(const gpsti_warp_axis* axis, int32_t i, double inverse) {
    gpsti_warp_tap tap;
    const int64_t out = axis->out, den = out << 18;
    const int64_t num =
        GPSTI_WARP_LIFT * den + 2 * out * axis->begin + (2 * (int64_t)i + 1) * axis->extent - (out << 17);
    int32_t whole = (int32_t)((double)(num >> 18) * inverse);
    int64_t rest = num - whole * den;
    whole += rest < 0 ? -1 : rest >= den ? 1 : 0;
    rest += rest < 0 ? den : rest >= den ? -den : 0;
    tap.pixel = whole - GPSTI_WARP_LIFT;
    tap.fraction = (float)rest / (float)den;
    tap.weight = (int32_t)(tap.fraction * 2048.0f);
    tap.weight += rest * 4096 + den >= 2 * den * (tap.weight + 1) ? 1 : rest * 4096 + den < 2 * den * tap.weight ? -1 : 0;
    const int32_t at = tap.pixel + (2 * rest >= den ? 1 : 0);
    tap.nearest = at < -1 ? -1 : at > axis->in ? axis->in : at;
    if (axis->scale > 0)
        gpsti_warp_axis_torch(axis, i, &tap);
    return tap;
}

__device__ GPSTI_INLINE void gpsti_hot_fill_axes(const gpsti_warp_launch* launch, const gpsti_warp_item* item,
                                                 gpsti_hot_tile* tile, int32_t i, int32_t x0, int32_t y0) {
    const gpsti_warp_job* const job = &launch->job;
    const bool is_row = i >= GPSTI_HOT_COLUMNS;
    gpsti_warp_axis axis = is_row ? job->down : job->across;
    const int32_t at = is_row ? y0 + i - GPSTI_HOT_COLUMNS : x0 + i, last = axis.out - 1;
    if (i >= GPSTI_HOT_COLUMNS + launch->tile_rows)
        return;
    if (job->map == GPST_MAP_ROI)
        axis.begin = item->map.axes[is_row ? 2 : 0], axis.extent = item->map.axes[is_row ? 3 : 1];
    tile->taps[i] = gpsti_hot_tap(&axis, at < last ? at : last, launch->inverses[is_row ? 1 : 0]);
}

__device__ GPSTI_INLINE void gpsti_hot_take_column(const gpsti_warp_tap* tap, int32_t pixel_bytes,
                                                   gpsti_hot_column* column) {
    column->at = tap->pixel * pixel_bytes, column->u = tap->nearest * 32768;
    column->weights = (uint32_t)tap->weight * 65535u + 2048u, column->fraction = tap->fraction;
}

__device__ GPSTI_INLINE void gpsti_hot_take_row(const gpsti_warp_tap* tap, gpsti_hot_pixel* pixel) {
    pixel->y = tap->pixel, pixel->v = tap->nearest * 32768;
    pixel->below = (uint32_t)tap->weight << 6, pixel->fraction = tap->fraction;
}

/* ---- which: the taps -------------------------------------------------------------------- */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_read_inner(const uint8_t* source, int32_t pitch, int32_t at,
                                                  gpsti_hot_pixel* pixel) {
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const uint32_t* const words =
            (const uint32_t*)(const void*)(source + ((at & ~3) + (r == 0 ? 0 : pitch)));
        pixel->low[r] = words[0], pixel->high[r] = words[1];
        if (pixel_bytes == 3) {
            pixel->low[r] = gpsti_hot_shift(words[0], words[1], (uint32_t)at * 8);
            pixel->high[r] = gpsti_hot_shift(words[1], words[2], (uint32_t)at * 8);
        }
    }
}

/* gpsti_warp_read of the four taps, all loads at once: what the border replaces is read, too, where the edge is. */
typedef struct gpsti_hot_taps {
    uint32_t tap[4];
} gpsti_hot_taps;

template <int pixel_bytes>
__device__ GPSTI_INLINE gpsti_hot_taps gpsti_hot_taps_any(const gpsti_warp_job* job, const uint8_t* source,
                                                            int32_t left, int32_t upper) {
    gpsti_hot_taps taps;
    const uint8_t* from[4];
    bool inside[4];
#pragma unroll
    for (int t = 0; t < 4; t++) {
        int32_t x = left + (t & 1), y = upper + (t >> 1);
        inside[t] = gpsti_warp_border(job, &x, &y);
        from[t] = source + (ptrdiff_t)(y * job->source_pitch) + x * pixel_bytes;
    }
#pragma unroll
    for (int t = 0; t < 4; t++) {
        taps.tap[t] = 0;
        for (int i = 0; i < pixel_bytes; i++)
            taps.tap[t] |= (uint32_t)from[t][i] << (8 * i);
        taps.tap[t] = inside[t] ? taps.tap[t] : job->outside;
    }
    return taps;
}

template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_read_any(const gpsti_warp_job* job, const uint8_t* source,
                                                gpsti_hot_pixel* pixel) {
    const gpsti_hot_taps taps =
        gpsti_hot_taps_any<pixel_bytes>(job, source, pixel->column.at / pixel_bytes, pixel->y);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const uint32_t left = taps.tap[2 * r], right = taps.tap[2 * r + 1];
        pixel->low[r] = pixel_bytes == 3 ? left | right << 24 : left;
        pixel->high[r] = pixel_bytes == 3 ? right >> 8 : right;
    }
}

/* ---- what: the samples -------------------------------------------------------------------
   Into bytes: gpsti_warp_blend with the weights down 64 times as large, so that each sum has its byte on top. The
   fourth byte means nothing. */
__device__ GPSTI_INLINE uint32_t gpsti_hot_blend(const gpsti_warp_launch* launch, const gpsti_hot_pixel* pixel) {
    const uint32_t across = pixel->column.weights, below = pixel->below, above = (2048u << 6) - below;
    uint32_t row[2][3], sum[3];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const uint32_t first = gpsti_hot_pick(pixel->low[r], pixel->high[r], launch->first_pairs);
        const uint32_t last = gpsti_hot_pick(pixel->low[r], pixel->high[r], launch->last_pair);
        row[r][0] = gpsti_hot_dot(across, first, false) >> 4;
        row[r][1] = gpsti_hot_dot(across, first, true) >> 4;
        row[r][2] = gpsti_hot_dot(across, last, false) >> 4;
    }
    for (int c = 0; c < 3; c++)
        sum[c] = row[0][c] * above + row[1][c] * below + (1u << 23);
    return gpsti_hot_pick(gpsti_hot_pick(sum[0], sum[1], 0x0073), sum[2], 0x0710);
}

/* Into floats: gpsti_warp_blend_float. A byte under the bits of 2^23 is the float 2^23 + byte. */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_blend_float(const gpsti_warp_launch* launch, const gpsti_hot_pixel* pixel,
                                                   float value[3]) {
    for (int c = 0; c < 3; c++) {
        float row[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint32_t right = pixel_bytes == 3 ? gpsti_hot_shift(pixel->low[r], pixel->high[r], 24) : pixel->high[r];
            const float left_tap = gpsti_f32_from_bits(gpsti_hot_pick(pixel->low[r], 0x4b000000u, launch->taps[c]));
            const float right_tap = gpsti_f32_from_bits(gpsti_hot_pick(right, 0x4b000000u, launch->taps[c]));
            row[r] = gpsti_fma(right_tap - left_tap, pixel->column.fraction, left_tap - 8388608.0f);
        }
        value[c] = gpsti_fma(gpsti_fma(row[1] - row[0], pixel->fraction, row[0]), launch->job.scale[c], launch->job.bias[c]);
    }
}

/* ---- how: the store ----------------------------------------------------------------------
   Packed bytes, into a row that begins at a word: the first three of four threads have a word each of their own
   pixel's last bytes and the next one's first. */
__device__ GPSTI_INLINE void gpsti_hot_store_words(uint8_t* row, int32_t x, uint32_t select, uint32_t packed) {
    const int32_t place = (int32_t)threadIdx.x & 3;
    const uint32_t word = gpsti_hot_pick(packed, gpsti_hot_next(packed), select);
    if (place < 3)
        *(uint32_t*)(void*)(row + 3 * x + place) = word;
}

__device__ GPSTI_INLINE void gpsti_hot_store_bytes(uint8_t* row, int32_t x, uint32_t packed) {
    for (int c = 0; c < 3; c++)
        row[3 * x + c] = (uint8_t)(packed >> (8 * c));
}

template <int store>
__device__ GPSTI_INLINE void gpsti_hot_store_floats(const gpsti_warp_launch* launch, uint8_t* row, int32_t x,
                                                    const float value[3]) {
    for (int c = 0; c < 3; c++) {
        uint8_t* const plane = row + (ptrdiff_t)(c * launch->job.plane_bytes);
        if (store == GPSTI_HOT_F16)
            ((uint16_t*)(void*)plane)[x] = gpsti_hot_half(value[c]);
        else
            ((float*)(void*)plane)[x] = value[c];
    }
}

template <int pixel_bytes, int store>
__device__ GPSTI_INLINE void gpsti_hot_take_sample(const gpsti_warp_launch* launch, const gpsti_hot_pixel* pixel,
                                                   gpsti_hot_sample* sample) {
    const gpsti_warp_job* const job = &launch->job;
    const uint32_t keep = job->mask ? gpsti_warp_mask_at(job, pixel->column.u, pixel->v) : UINT32_MAX;
    if (store == GPSTI_HOT_U8) {
        sample->packed = gpsti_hot_blend(launch, pixel) & keep;
        return;
    }
    gpsti_hot_blend_float<pixel_bytes>(launch, pixel, sample->value);
    for (int c = 0; c < 3; c++)
        sample->value[c] = gpsti_f32_from_bits(gpsti_f32_bits(sample->value[c]) & keep);
}

/* The samples of a thread, from column x on. words: their row and the whole tile allow it. */
template <int store>
__device__ GPSTI_INLINE void gpsti_hot_store_all(const gpsti_warp_launch* launch, const gpsti_hot_sample* samples,
                                                 uint8_t* row, int32_t x, bool words, uint32_t select) {
    if (store == GPSTI_HOT_U8 && words) {
#pragma unroll
        for (int p = 0; p < GPSTI_HOT_TOGETHER; p++)
            gpsti_hot_store_words(row, x + p * GPSTI_HOT_LANES, select, samples[p].packed);
        return;
    }
#pragma unroll
    for (int p = 0; p < GPSTI_HOT_TOGETHER; p++) {
        const int32_t at = x + p * GPSTI_HOT_LANES;
        if (at >= launch->job.width)
            return;
        if (store == GPSTI_HOT_U8)
            gpsti_hot_store_bytes(row, at, samples[p].packed);
        else
            gpsti_hot_store_floats<store>(launch, row, at, samples[p].value);
    }
}

/* ---- the kernel --------------------------------------------------------------------------
   blockDim is GPSTI_HOT_LANES x GPSTI_HOT_THREADS_Y; the grid covers the output with tiles, z is the item. Threads
   beyond the output compute what its end has, and store nothing.
   A level view (pitch and roll 0) has x and z of its rays, and so half of the arithmetic, the same in every row. */
template <int map, int pixel_bytes, int store>
GPSTI_KERNEL void __launch_bounds__(GPSTI_HOT_LANES* GPSTI_HOT_THREADS_Y, 4)
    gpsti_warp_hot_device(const GPSTI_HOT_ARGUMENT gpsti_warp_launch launch) {
    __shared__ gpsti_hot_tile tile;
    const gpsti_warp_item* const item = gpsti_warp_item_of(&launch, blockIdx.z);
    const gpsti_warp_job* const job = &launch.job;
    const int32_t y0 = (int32_t)blockIdx.y * launch.tile_rows, x0 = (int32_t)(blockIdx.x * GPSTI_HOT_COLUMNS);
    const int32_t line = (int32_t)threadIdx.y, lane = (int32_t)threadIdx.x;
    gpsti_hot_fill_constants(job, &tile, line * GPSTI_HOT_LANES + lane);
    if (map == GPSTI_HOT_AXES)
        gpsti_hot_fill_axes(&launch, item, &tile, line * GPSTI_HOT_LANES + lane, x0, y0);
    else
        gpsti_hot_fill_view(&launch, item, &tile, line * GPSTI_HOT_LANES + lane, y0);
    __syncthreads();
    const gpsti_hot_view view = tile.view;
    const uint32_t inner_bytes = tile.inner_bytes, inner_height = tile.inner_height;
    const int32_t last_at = tile.last_at;
    const uint32_t select = tile.word_selects[lane & 3];
    const bool words = launch.words && x0 + GPSTI_HOT_COLUMNS <= job->width;
    const bool level = map == GPSTI_HOT_VIEWS && item->map.view.b[0] == 0 && item->map.view.b[2] == 0;
    gpsti_hot_column columns[GPSTI_HOT_TOGETHER];
#pragma unroll
    for (int p = 0; p < GPSTI_HOT_TOGETHER; p++) {
        columns[p].n = (float)(2 * (x0 + lane + p * GPSTI_HOT_LANES) + 1 - job->width);
        if (map == GPSTI_HOT_AXES)
            gpsti_hot_take_column(&tile.taps[lane + p * GPSTI_HOT_LANES], pixel_bytes, &columns[p]);
        else if (level)
            gpsti_hot_turn<pixel_bytes>(&view, &tile.rows[0], &columns[p]);
    }
    const uint8_t* const source = item->source;
    const int32_t pitch = (int32_t)job->source_pitch;
#pragma unroll 1
    for (int32_t j = line; j < launch.tile_rows && y0 + j < job->height; j += GPSTI_HOT_THREADS_Y) {
        uint8_t* const row = item->output + (ptrdiff_t)((y0 + j) * job->output_pitch);
        gpsti_hot_pixel pixels[GPSTI_HOT_TOGETHER];
        gpsti_hot_sample samples[GPSTI_HOT_TOGETHER];
        bool inner[GPSTI_HOT_TOGETHER], all_inner = true;
#pragma unroll
        for (int p = 0; p < GPSTI_HOT_TOGETHER; p++) {
            if (map == GPSTI_HOT_VIEWS && !level)
                gpsti_hot_turn<pixel_bytes>(&view, &tile.rows[j], &columns[p]);
            pixels[p].column = columns[p];
            if (map == GPSTI_HOT_VIEWS)
                gpsti_hot_tilt(&view, &tile.rows[j], &pixels[p]);
            else
                gpsti_hot_take_row(&tile.taps[GPSTI_HOT_COLUMNS + j], &pixels[p]);
            const int32_t at = pixels[p].y * pitch + pixels[p].column.at;
            inner[p] = (uint32_t)pixels[p].column.at < inner_bytes && (uint32_t)pixels[p].y < inner_height &&
                       at <= last_at;
            all_inner = all_inner && inner[p];
            gpsti_hot_read_inner<pixel_bytes>(source, pitch, inner[p] ? at : 0, &pixels[p]);
        }
        if (!all_inner) {
#pragma unroll
            for (int p = 0; p < GPSTI_HOT_TOGETHER; p++)
                if (!inner[p])
                    gpsti_hot_read_any<pixel_bytes>(job, source, &pixels[p]);
        }
#pragma unroll
        for (int p = 0; p < GPSTI_HOT_TOGETHER; p++)
            gpsti_hot_take_sample<pixel_bytes, store>(&launch, &pixels[p], &samples[p]);
        gpsti_hot_store_all<store>(&launch, samples, row, x0 + lane, words, select);
    }
}

/* ---- the choice --------------------------------------------------------------------------- */
typedef void (*gpsti_hot_kernel)(gpsti_warp_launch launch);

template <int map, int pixel_bytes>
GPSTI_PRIVATE gpsti_hot_kernel gpsti_hot_kernel_of(gpst_dtype dtype) {
    if (dtype == GPST_DTYPE_U8)
        return gpsti_warp_hot_device<map, pixel_bytes, GPSTI_HOT_U8>;
    return dtype == GPST_DTYPE_F16 ? gpsti_warp_hot_device<map, pixel_bytes, GPSTI_HOT_F16>
                                   : gpsti_warp_hot_device<map, pixel_bytes, GPSTI_HOT_F32>;
}

GPSTI_PRIVATE bool gpsti_hot_has_store(const gpsti_warp_job* job) {
    if (job->dtype == GPST_DTYPE_U8)
        return job->layout == GPST_LAYOUT_HWC && !job->has_scale;
    return job->layout == GPST_LAYOUT_CHW && job->dtype != GPST_DTYPE_I8;
}

/* Offsets of 32 bits, words where they belong. */
GPSTI_PRIVATE bool gpsti_hot_has_source(const gpsti_warp_job* job, const gpsti_warp_item* item) {
    const int64_t pitch = job->source_pitch, rows = job->source_height;
    const int64_t span = (pitch < 0 ? -pitch : pitch) * rows;
    for (uint32_t c = 0; c < job->n_channels; c++)
        if (job->shift[c] >= 8 * job->source_pixel_bytes)
            return false;
    /* Where a pixel is at a border, words are read from the first pixel's taps, for nothing. */
    if (rows < 2 || job->source_width < 4)
        return false;
    return job->source_dtype == GPST_DTYPE_U8 && (job->source_pixel_bytes == 3 || job->source_pixel_bytes == 4) && span < INT32_MAX &&
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

/* NULL: no kernel of its own. job is what outputs have in common. */
GPSTI_PRIVATE gpsti_hot_kernel gpsti_hot_choose(const gpsti_warp_job* job, const gpsti_warp_item* item) {
    const bool views = job->map == GPST_MAP_EQUIRECT && job->convention == GPST_CONVENTION_NATIVE &&
                       gpsti_hot_has_view(&item->map.view);
    if (job->filter != GPST_FILTER_BILINEAR || !(views || gpsti_warp_by_axes(job->map)) || job->n_channels != 3 ||
        !gpsti_hot_has_source(job, item) || !gpsti_hot_has_store(job))
        return NULL;
    if (job->source_pixel_bytes == 3)
        return views ? gpsti_hot_kernel_of<GPSTI_HOT_VIEWS, 3>(job->dtype)
                     : gpsti_hot_kernel_of<GPSTI_HOT_AXES, 3>(job->dtype);
    return views ? gpsti_hot_kernel_of<GPSTI_HOT_VIEWS, 4>(job->dtype)
                 : gpsti_hot_kernel_of<GPSTI_HOT_AXES, 4>(job->dtype);
}

/* How the bytes of a source pixel become channels. */
GPSTI_PRIVATE void gpsti_hot_select(gpsti_warp_launch* launch) {
    uint32_t pairs[3];
    for (int c = 0; c < 3; c++) {
        const uint32_t at = launch->job.shift[c] / 8;
        pairs[c] = at | (at + launch->job.source_pixel_bytes) << 4;
        launch->taps[c] = at | 0x7440;
    }
    launch->first_pairs = pairs[0] | pairs[1] << 8;
    launch->last_pair = pairs[2];
    launch->inverses[0] = 1.0 / launch->job.width, launch->inverses[1] = 1.0 / launch->job.height;
}

/* Many rows save what a tile computes ahead; few outputs need many tiles, for all multiprocessors to have some. */
GPSTI_PRIVATE int32_t gpsti_hot_tile_rows(const gpsti_warp_launch* launch) {
    const uint64_t columns = (uint64_t)(launch->job.width + GPSTI_HOT_COLUMNS - 1) / GPSTI_HOT_COLUMNS;
    int32_t rows = GPSTI_HOT_ROWS;
    while (rows > GPSTI_HOT_THREADS_Y &&
           columns * (uint64_t)(launch->job.height / rows) * launch->n_items < GPSTI_HOT_TILES_WANTED)
        rows /= 2;
    return rows;
}

#endif
#endif
