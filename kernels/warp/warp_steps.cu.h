/* kernels/warp/warp_steps.cu.h -- the steps of the warps that are compiled by themselves: where a pixel is looked up,
   which bytes those are, what becomes of them and how it is stored. The bits are those of the per-pixel reference, in
   cheaper forms. Has no kernel; see warp_hot.cu.h. */
#ifndef GPSTI_WARP_STEPS_CU_H
#define GPSTI_WARP_STEPS_CU_H

#include "warp_block.cu.h"

#if defined(GPSTI_GPU_UNIT)

/* A thread has GPSTI_HOT_TOGETHER columns of its tile, GPSTI_HOT_LANES apart, in every eighth row; of views, whose
   columns cost more, in every fourth. */
#define GPSTI_HOT_LANES 32
#define GPSTI_HOT_TOGETHER 2
#define GPSTI_HOT_COLUMNS (GPSTI_HOT_LANES * GPSTI_HOT_TOGETHER)
#define GPSTI_HOT_THREADS_Y(map) ((map) == GPSTI_HOT_VIEWS ? 4 : 8)
#define GPSTI_HOT_ROWS 64 /* at most; see gpsti_warp_tile_rows */

typedef enum gpsti_hot_map { GPSTI_HOT_VIEWS, GPSTI_HOT_AXES } gpsti_hot_map;
/* What pixel_bytes, by which the steps are compiled, is for I420 and NV12: bytes from a sample of chroma to the
   next. */
enum { GPSTI_HOT_I420 = 1, GPSTI_HOT_NV12 = 2 };
#define GPSTI_HOT_IS_YUV(pixel_bytes) ((pixel_bytes) <= GPSTI_HOT_NV12)
#define GPSTI_HOT_FIRST_BYTES(pixel_bytes) (GPSTI_HOT_IS_YUV(pixel_bytes) ? 1 : (pixel_bytes)) /* of the first plane */
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

/* A word of the source, which nobody writes meanwhile. */
__device__ GPSTI_INLINE uint32_t gpsti_hot_load(const uint8_t* from) {
    const uint32_t* const word = (const uint32_t*)(const void*)from;
#if defined(__CUDA_ARCH__)
    return __ldg(word);
#else
    return *word;
#endif
}

/* from + a * b. Compilers make many instructions of it where they know what from is a sum of. */
__device__ GPSTI_INLINE const uint8_t* gpsti_hot_advance(const uint8_t* from, int32_t a, int32_t b) {
#if defined(__CUDA_ARCH__)
    const uint8_t* to;
    asm("mad.wide.s32 %0, %1, %2, %3;" : "=l"(to) : "r"(a), "r"(b), "l"(from));
    return to;
#else
    return from + (ptrdiff_t)((int64_t)a * b);
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

/* Whether it is so for all threads of a row, which are a warp, or part of one. */
__device__ GPSTI_INLINE bool gpsti_hot_all(bool so) {
#if defined(__CUDACC__)
    return __all_sync(0xffffffffu, so);
#else
    return __all(so) != 0;
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
   subnormal: what CUDA computes of / and __fsqrt_rn itself, without the branch for the rest. inverse is
   gpsti_hot_inverse(b), about 1 / b. */
__device__ GPSTI_INLINE float gpsti_hot_inverse(float b) {
#if defined(__CUDA_ARCH__)
    float inverse;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(b));
    return __fmaf_rn(inverse, __fmaf_rn(-b, inverse, 1.0f), inverse);
#else
    return b;
#endif
}

__device__ GPSTI_INLINE float gpsti_hot_divide_by(float a, float b, float inverse) {
#if defined(__CUDA_ARCH__)
    const float quotient = __fmul_rn(a, inverse);
    return __fmaf_rn(inverse, __fmaf_rn(-b, quotient, a), quotient);
#else
    (void)inverse;
    return a / (b > 1e-30f ? b : 1e-30f);
#endif
}

__device__ GPSTI_INLINE float gpsti_hot_divide(float a, float b) {
    return gpsti_hot_divide_by(a, b, gpsti_hot_inverse(b));
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
    bool cosited; /* of NV12 and I420 */
} gpsti_hot_view;

/* What a column has: of AXES and of level views for good; of other views in every row anew. */
typedef struct gpsti_hot_column {
    int32_t at;       /* of the left taps, bytes from the row's begin */
    int32_t u;        /* in 1/32768 pixel; of AXES that of the nearest pixel */
    uint32_t weights; /* 2048 - weight and weight, of 16 bits */
    float fraction;
    float n, across;   /* VIEWS */
    int32_t chroma_at; /* of NV12 and I420, as at and fraction */
    float chroma_fraction;
    uint32_t apart; /* nothing: an odd number of words lies in as many banks of shared memory as there are lanes */
} gpsti_hot_column;

/* What a row of a level view has: y of all its rays, and half a step of its sign. */
typedef struct gpsti_hot_level {
    float y, half;
} gpsti_hot_level;

typedef struct gpsti_hot_tile {
    uint32_t inner_bytes, inner_height; /* left and upper taps below them, and no further than last_at, need no */
    int32_t last_at;                    /* border: bytes of a row, rows, bytes from the first row's begin */
    uint32_t word_selects[4];           /* of the threads of four pixels; see gpsti_hot_store_bytes */
    gpsti_warp_tap taps[GPSTI_HOT_COLUMNS + GPSTI_HOT_ROWS]; /* AXES: of the columns, then of the rows */
    gpsti_warp_row rows[GPSTI_HOT_ROWS];                     /* VIEWS, and the rest */
    gpsti_hot_column columns[GPSTI_HOT_COLUMNS];             /* of level views, and */
    gpsti_hot_level levels[GPSTI_HOT_ROWS];
    gpsti_hot_view view;
} gpsti_hot_tile;

/* One pixel on its way: its place, and the two rows of its taps, the left pixel's bytes from the lowest of low up,
   then the right one's. */
typedef struct gpsti_hot_pixel {
    gpsti_hot_column column;
    int32_t y, v;
    uint32_t below; /* the lower taps' weight, times 64 */
    float fraction;
    uint32_t low[2], high[2];
    int32_t chroma_y; /* of NV12 and I420 */
    float chroma_fraction;
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

/* Of NV12 and I420: their chroma's place follows from that of the luma. */
__device__ GPSTI_INLINE void gpsti_hot_set_chroma_u(int32_t u, bool cosited, int32_t step, gpsti_hot_column* column) {
    const int32_t at = gpsti_warp_chroma_at(u, cosited, false, 0, 0);
    column->chroma_at = gpsti_warp_floor(at) * step;
    column->chroma_fraction = (float)(at & 32767) * (1.0f / 32768.0f);
}

__device__ GPSTI_INLINE void gpsti_hot_set_chroma_v(int32_t v, gpsti_hot_pixel* pixel) {
    const int32_t at = gpsti_warp_chroma_at(v, false, false, 0, 0);
    pixel->chroma_y = gpsti_warp_floor(at);
    pixel->chroma_fraction = (float)(at & 32767) * (1.0f / 32768.0f);
}

/* Half of gpsti_warp_sphere: what follows from x and z of the ray. They vanish together right next to a pole only,
   where y is about 1: any tiny distance from the axis gives the angle of the pole itself. */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_turn(const gpsti_hot_view* view, const gpsti_warp_row* row,
                                            gpsti_hot_column* column) {
    const float x = gpsti_hot_ray(view, row, 0, column->n), z = gpsti_hot_ray(view, row, 2, column->n);
    const float square = gpsti_fma(x, x, z * z);
    column->across = square < 1e-30f ? 0.0f : gpsti_hot_root(square);
    const int32_t u = gpsti_hot_angle(x, z, false, view->scale_u, view->quarter_u, view->offset_u);
    gpsti_hot_set_u(u, GPSTI_HOT_FIRST_BYTES(pixel_bytes), column);
    if (GPSTI_HOT_IS_YUV(pixel_bytes))
        gpsti_hot_set_chroma_u(u, view->cosited, pixel_bytes, column);
}

/* The other half. */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_tilt(const gpsti_hot_view* view, const gpsti_warp_row* row,
                                            gpsti_hot_pixel* pixel) {
    const float y = gpsti_hot_ray(view, row, 1, pixel->column.n);
    const int32_t v = gpsti_hot_angle(y, pixel->column.across, true, view->scale_v, view->quarter_v, view->offset_v);
    gpsti_hot_set_v(v, pixel);
    if (GPSTI_HOT_IS_YUV(pixel_bytes))
        gpsti_hot_set_chroma_v(v, pixel);
}

/* Pitch and roll 0: x and z of the rays, and so half of the arithmetic, are the same in every row. */
__device__ GPSTI_INLINE bool gpsti_hot_is_level(const gpsti_warp_item* item) {
    return item->map.view.b[0] == 0 && item->map.view.b[2] == 0;
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
        tile->last_at =
            pixel_bytes == 3 && pitch > 0 ? (job->source_height - 2) * pitch + 3 * job->source_width - 12 : INT32_MAX;
    }
    if (i < 4)
        tile->word_selects[i] = i == 0 ? 0x4210 : i == 1 ? 0x5421 : 0x6542;
}

__device__ GPSTI_INLINE gpsti_hot_view gpsti_hot_view_of(const gpsti_warp_job* job, const gpsti_warp_item* item) {
    gpsti_hot_view view;
    for (int c = 0; c < 3; c++)
        view.a_high[c] = item->map.view.a_high[c], view.a_low[c] = item->map.view.a_low[c];
    view.scale_u = job->scale_u, view.quarter_u = job->quarter_u, view.offset_u = job->offset_u;
    view.scale_v = job->scale_v, view.quarter_v = job->quarter_v, view.offset_v = job->offset_v;
    view.cosited = job->cosited;
    return view;
}

/* gpsti_warp_view_row; rows beyond the output are its last one. */
__device__ GPSTI_INLINE gpsti_warp_row gpsti_hot_row(const gpsti_warp_job* job, const gpsti_warp_item* item,
                                                     int32_t y) {
    const double m = (double)(2 * (y < job->height ? y : job->height - 1) + 1 - job->height);
    gpsti_warp_row row;
    for (int c = 0; c < 3; c++)
        gpsti_split(gpsti_mul64(item->map.view.b[c], m) + item->map.view.d[c], &row.high[c], &row.low[c]);
    return row;
}

__device__ GPSTI_INLINE float gpsti_hot_column_n(const gpsti_warp_job* job, int32_t x) {
    return (float)(2 * x + 1 - job->width);
}

template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_fill_view(const gpsti_warp_launch* launch, const gpsti_warp_item* item,
                                                 gpsti_hot_tile* tile, int32_t i, int32_t x0, int32_t y0) {
    const gpsti_warp_job* const job = &launch->job;
    const gpsti_hot_view view = gpsti_hot_view_of(job, item);
    if (i == 0)
        tile->view = view;
    if (i >= GPSTI_HOT_COLUMNS)
        return;
    const gpsti_warp_row row = gpsti_hot_row(job, item, y0 + i);
    tile->rows[i] = row;
    if (gpsti_hot_is_level(item)) { /* where x and z of row are those of all rows */
        tile->levels[i].y = row.high[1] + row.low[1];
        tile->levels[i].half = tile->levels[i].y < 0 ? -0.5f : 0.5f;
        tile->columns[i].n = gpsti_hot_column_n(job, x0 + i);
        gpsti_hot_turn<pixel_bytes>(&view, &row, &tile->columns[i]);
    }
}

/* gpsti_warp_axis_tap of BILINEAR without a division of 64 bits: quotients by a reciprocal are off by one at most, as
   their remainders tell. inverse is 1 / axis->out, rounded. */
__device__ GPSTI_INLINE gpsti_warp_tap gpsti_hot_tap(const gpsti_warp_axis* axis, int32_t i, double inverse) {
    gpsti_warp_tap tap;
    const int64_t out = axis->out, den = out << 18;
    const int64_t n = 2 * ((int64_t)i + axis->first) + 1;
    const int64_t num = GPSTI_WARP_LIFT * den + 2 * out * axis->begin + n * axis->extent - (out << 17);
    int32_t whole = (int32_t)((double)(num >> 18) * inverse);
    int64_t rest = num - whole * den;
    whole += rest < 0 ? -1 : rest >= den ? 1 : 0;
    rest += rest < 0 ? den : rest >= den ? -den : 0;
    tap.pixel = whole - GPSTI_WARP_LIFT;
    tap.fraction = (float)rest / (float)den;
    tap.weight = (int32_t)(tap.fraction * 2048.0f);
    tap.weight += rest * 4096 + den >= 2 * den * (tap.weight + 1) ? 1
                  : rest * 4096 + den < 2 * den * tap.weight      ? -1
                                                                  : 0;
    const int32_t at = tap.pixel + (2 * rest >= den ? 1 : 0);
    tap.nearest = at < -1 ? -1 : at > axis->in ? axis->in : at;
    if (axis->scale > 0)
        gpsti_warp_axis_torch(axis, i, &tap);
    return tap;
}

__device__ GPSTI_INLINE gpsti_warp_axis gpsti_hot_axis(const gpsti_warp_job* job, const gpsti_warp_item* item,
                                                       bool is_row) {
    gpsti_warp_axis axis = is_row ? job->down : job->across;
    gpsti_warp_item_axis(job, item, is_row, &axis);
    return axis;
}

/* Tap i of a tile: of its columns, then of its rows. */
__device__ GPSTI_INLINE void gpsti_hot_fill_axes(const gpsti_warp_launch* launch, const gpsti_warp_item* item,
                                                 gpsti_warp_tap* taps, int32_t i, int32_t x0, int32_t y0, bool chroma) {
    const gpsti_warp_job* const job = &launch->job;
    const bool is_row = i >= GPSTI_HOT_COLUMNS;
    const int32_t at = is_row ? y0 + i - GPSTI_HOT_COLUMNS : x0 + i;
    gpsti_warp_axis axis = gpsti_hot_axis(job, item, is_row);
    const int32_t first = axis.first, last = (is_row ? job->height : job->width) - 1;
    if (i >= GPSTI_HOT_COLUMNS + launch->tile_rows)
        return;
    if (chroma) { /* gpsti_warp_chroma_axes */
        const int64_t shift = job->cosited && !is_row ? 32768 : 0;
        axis = gpsti_warp_axis_of(axis.begin / 2 + shift, axis.extent / 2,
                                  is_row ? job->chroma_height : job->chroma_width, axis.out);
        axis.first = first;
    }
    taps[i] = gpsti_hot_tap(&axis, at < last ? at : last, launch->inverses[is_row ? 1 : 0]);
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
/* Both taps of row r from its words; bits: 8 times the taps' distance from the first word, or more by 32s. */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_read_words(const uint8_t* from, int r, uint32_t bits, gpsti_hot_pixel* pixel) {
    const uint32_t first = gpsti_hot_load(from), second = gpsti_hot_load(from + 4);
    pixel->low[r] = first, pixel->high[r] = second;
    if (pixel_bytes == 3) {
        pixel->low[r] = gpsti_hot_shift(first, second, bits);
        pixel->high[r] = gpsti_hot_shift(second, gpsti_hot_load(from + 8), bits);
    }
}

template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_read_inner(const uint8_t* source, int32_t pitch, int32_t at,
                                                  gpsti_hot_pixel* pixel) {
    const uint8_t* const from = source + (at & ~3);
    gpsti_hot_read_words<pixel_bytes>(from, 0, (uint32_t)at * 8, pixel);
    gpsti_hot_read_words<pixel_bytes>(from + pitch, 1, (uint32_t)at * 8, pixel);
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
    const gpsti_hot_taps taps = gpsti_hot_taps_any<pixel_bytes>(job, source, pixel->column.at / pixel_bytes, pixel->y);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const uint32_t left = taps.tap[2 * r], right = taps.tap[2 * r + 1];
        pixel->low[r] = pixel_bytes == 3 ? left | right << 24 : left;
        pixel->high[r] = pixel_bytes == 3 ? right >> 8 : right;
    }
}

/* ---- what: the samples -------------------------------------------------------------------
   Into bytes: gpsti_warp_blend with the weights down 64 times as large, so that each sum has its byte on top. The
   fourth byte means nothing. The bytes of a source pixel are told apart by their place; which channel each is, the last
   step says. */
template <int pixel_bytes>
__device__ GPSTI_INLINE uint32_t gpsti_hot_blend(const gpsti_warp_launch* launch, const gpsti_hot_pixel* pixel) {
    const uint32_t across = pixel->column.weights, below = pixel->below, above = (2048u << 6) - below;
    uint32_t row[2][3], sum[3];
#pragma unroll
    for (int r = 0; r < 2; r++) {
        const uint32_t first = gpsti_hot_pick(pixel->low[r], pixel->high[r], pixel_bytes == 3 ? 0x4130 : 0x5140);
        const uint32_t last = gpsti_hot_pick(pixel->low[r], pixel->high[r], pixel_bytes == 3 ? 0x0052 : 0x0062);
        row[r][0] = gpsti_hot_dot(across, first, false) >> 4;
        row[r][1] = gpsti_hot_dot(across, first, true) >> 4;
        row[r][2] = gpsti_hot_dot(across, last, false) >> 4;
    }
    for (int c = 0; c < 3; c++)
        sum[c] = row[0][c] * above + row[1][c] * below + (1u << 23);
    return gpsti_hot_pick(gpsti_hot_pick(sum[0], sum[1], 0x0073), sum[2], launch->order);
}

/* Into floats: gpsti_warp_blend_float. A byte under the bits of 2^23 is the float 2^23 + byte. */
template <int pixel_bytes>
__device__ GPSTI_INLINE void gpsti_hot_blend_float(const gpsti_warp_launch* launch, const gpsti_hot_pixel* pixel,
                                                   float value[3]) {
    for (int c = 0; c < 3; c++) {
        float row[2];
#pragma unroll
        for (int r = 0; r < 2; r++) {
            const uint32_t right =
                pixel_bytes == 3 ? gpsti_hot_shift(pixel->low[r], pixel->high[r], 24) : pixel->high[r];
            const float left_tap = gpsti_f32_from_bits(gpsti_hot_pick(pixel->low[r], 0x4b000000u, launch->taps[c]));
            const float right_tap = gpsti_f32_from_bits(gpsti_hot_pick(right, 0x4b000000u, launch->taps[c]));
            row[r] = gpsti_fma(right_tap - left_tap, pixel->column.fraction, left_tap - 8388608.0f);
        }
        value[c] =
            gpsti_fma(gpsti_fma(row[1] - row[0], pixel->fraction, row[0]), launch->job.scale[c], launch->job.bias[c]);
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
    if (store == GPSTI_HOT_U8)
        sample->packed = gpsti_hot_blend<pixel_bytes>(launch, pixel);
    else
        gpsti_hot_blend_float<pixel_bytes>(launch, pixel, sample->value);
}

template <int store>
__device__ GPSTI_INLINE void gpsti_hot_take_mask(const gpsti_warp_job* job, const gpsti_hot_pixel* pixel,
                                                 gpsti_hot_sample* sample) {
    const uint32_t keep = job->mask ? gpsti_warp_mask_at(job, pixel->column.u, pixel->v) : UINT32_MAX;
    if (store == GPSTI_HOT_U8)
        sample->packed &= keep;
    for (int c = 0; c < 3 && store != GPSTI_HOT_U8; c++)
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

#endif
#endif
