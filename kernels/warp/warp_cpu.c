/* kernels/warp/warp_cpu.c -- the warp on the CPU: the row loop of each level, and outputs by it. Checks nothing;
   warp.c did. */
#include "../../core/base/platform_internal.h"

#include "warp_pixel_internal.h"

#if GPSTI_SIMD_X86
#include <immintrin.h>
#endif

/* All of it is on the caller's stack, of which there may be no more than 64 KiB: no path takes more than 40. */
#define GPSTI_STRIP 16    /* blocks of columns whose taps are kept, */
#define GPSTI_YUV_STRIP 10 /* and of NV12 and I420, which need more of each */
#define GPSTI_HOT_DEPTH 4 /* blocks; two already hide the memory's latency */

/* A block that waits for its source lines: warp_hot_internal.h. */
typedef struct gpsti_hot_block {
    GPSTI_ALIGNAS(64) int32_t at[GPSTI_BLOCK];
    int32_t wx[GPSTI_BLOCK], wy[GPSTI_BLOCK];
    float fx[GPSTI_BLOCK], fy[GPSTI_BLOCK];
    int32_t at_x, at_y, count;
} gpsti_hot_block;

typedef struct gpsti_hot_queue {
    gpsti_hot_block blocks[GPSTI_HOT_DEPTH];
    uint32_t put, taken;
} gpsti_hot_queue;

/* Where a block's left upper taps are, and the weights of the others; of a level view x is its columns'. */
typedef struct gpsti_places {
    const int32_t *x, *y, *wx, *wy;
    const float *fx, *fy;
} gpsti_places;

/* What is known of a block of pixels, stage by stage; always whole, so that loops have a fixed count. */
typedef struct gpsti_block {
    GPSTI_ALIGNAS(64) float ray[3][GPSTI_BLOCK];
    float across[GPSTI_BLOCK];
    int32_t u[GPSTI_BLOCK], v[GPSTI_BLOCK];
    int32_t x[GPSTI_BLOCK], y[GPSTI_BLOCK];
    int32_t wx[GPSTI_BLOCK], wy[GPSTI_BLOCK];
    float fx[GPSTI_BLOCK], fy[GPSTI_BLOCK];
    uint32_t tap[4][GPSTI_BLOCK];
    uint32_t weight[4][GPSTI_BLOCK];
    uint32_t packed[GPSTI_BLOCK];
    uint32_t keep[GPSTI_BLOCK];
    float value[4][GPSTI_BLOCK];
    int32_t chroma_x[GPSTI_BLOCK], chroma_y[GPSTI_BLOCK];
    float chroma_fx[GPSTI_BLOCK], chroma_fy[GPSTI_BLOCK];
    float yuv[3][GPSTI_BLOCK];
    float wide[4][GPSTI_BLOCK];
    uint16_t half[4][GPSTI_BLOCK];
    gpsti_hot_queue* queue; /* none by axes */
} gpsti_block;

/* The words of a block of JPEG's planes, and which of its pixels have none. */
typedef struct gpsti_ycc_block {
    uint32_t luma[2][GPSTI_BLOCK], cb[3][GPSTI_BLOCK], cr[3][GPSTI_BLOCK];
    int32_t outer[GPSTI_BLOCK], n_outer;
} gpsti_ycc_block;

/* How the bytes of a block of NV12 are picked from those of a row: warp_hot_internal.h. */
typedef struct gpsti_hot_bytes {
    int32_t window[GPSTI_BLOCK / 4]; /* first of 16 bytes for four pixels */
    uint32_t pick[GPSTI_BLOCK];      /* shuffles the first byte of each pixel's, zeros above it */
} gpsti_hot_bytes;

/* What a block of a level view needs of its columns, the same in every row. */
typedef struct gpsti_level_columns {
    int32_t x[GPSTI_BLOCK], wx[GPSTI_BLOCK], u[GPSTI_BLOCK];
    float fx[GPSTI_BLOCK], across[GPSTI_BLOCK];
} gpsti_level_columns;

/* What one of RESIZE or ROI needs besides, of NV12 and I420. */
typedef struct gpsti_yuv_columns {
    int32_t chroma_x[GPSTI_BLOCK];
    float chroma_fx[GPSTI_BLOCK];
    gpsti_hot_bytes luma, chroma;
    bool windows; /* they reach */
} gpsti_yuv_columns;

typedef struct gpsti_columns {
    int32_t x[GPSTI_BLOCK], wx[GPSTI_BLOCK], u[GPSTI_BLOCK];
    int32_t at[GPSTI_BLOCK]; /* the bytes, where they are hot */
    float fx[GPSTI_BLOCK];
    gpsti_yuv_columns* yuv; /* NULL: packed */
    bool hot;               /* all of them inside */
} gpsti_columns;

/* The columns of a strip: those of few blocks with chroma, or those of more without it. */
typedef union gpsti_strip {
    gpsti_columns columns[GPSTI_STRIP];
    struct {
        gpsti_columns columns[GPSTI_YUV_STRIP];
        gpsti_yuv_columns chroma[GPSTI_YUV_STRIP];
    } yuv;
} gpsti_strip;

/* A row of RESIZE or ROI. */
typedef struct gpsti_row_taps {
    gpsti_warp_tap luma, chroma;
} gpsti_row_taps;

/* A block to sample: at, of the left taps, counts from above and below. */
typedef struct gpsti_hot_work {
    const uint8_t *above, *below, *chroma_above, *chroma_below;
    const int32_t *at, *wx, *wy;
    const float *fx, *fy, *chroma_fy;
    int32_t x, y, count;
} gpsti_hot_work;

#define GPSTI_AREA_STRIP 512 /* source pixels */

#define GPSTI_AREA_TAPS 16   /* of windows whose weights are kept */
#define GPSTI_AREA_PAD (4 * (GPSTI_AREA_TAPS + 1))

/* The columns of a block of AREA; past the row's last the last again. */
typedef struct gpsti_area_columns {
    gpsti_warp_window windows[GPSTI_BLOCK];
    float weights[GPSTI_BLOCK][GPSTI_AREA_TAPS];
    int32_t n_taps; /* 0: weights are not kept */
} gpsti_area_columns;

/* What AREA needs besides. */
typedef struct gpsti_area {
    float strip[4 * GPSTI_AREA_STRIP + GPSTI_AREA_PAD];
    gpsti_area_columns across, chroma_across;
} gpsti_area;

/* jpeg: the planes that its rows are made of; else NULL. */
typedef struct gpsti_area_plane {
    const gpsti_warp_job* jpeg;
    gpst_dtype dtype;
    const uint8_t* data;
    int64_t pitch;
    int32_t width, height, n_channels;
} gpsti_area_plane;

/* Of pixels begin <= x < end of a row those that are there, from first to end; they begin at strip[at]. `before` and
   `behind` them the edges repeat. */
typedef struct gpsti_area_part {
    int32_t first, end, at, before, behind;
} gpsti_area_part;

GPSTI_PRIVATE int32_t gpsti_area_inside(int32_t at, int32_t size) { return at < 0 ? 0 : at < size ? at : size - 1; }

GPSTI_PRIVATE gpsti_area_part gpsti_area_part_of(const gpsti_area_plane* plane, int32_t begin, int32_t end) {
    gpsti_area_part part;
    part.first = gpsti_area_inside(begin, plane->width);
    part.end = gpsti_area_inside(end - 1, plane->width) + 1;
    part.before = begin < 0 ? -begin : 0;
    part.behind = end - begin - part.before - (part.end - part.first);
    part.at = part.before * plane->n_channels;
    return part;
}

GPSTI_PRIVATE void gpsti_area_repeat(const gpsti_area_part* part, int32_t n_channels, float* strip) {
    float* const behind = strip + part->at + (part->end - part->first) * n_channels;
    for (int32_t j = part->at - 1; j >= 0; j--)
        strip[j] = strip[j + n_channels];
    for (int32_t j = 0; j < part->behind * n_channels; j++)
        behind[j] = behind[j - n_channels];
}

/* What AREA needs where the map does not go by axes: warp_footprint_rows_internal.h. */
typedef struct gpsti_footprint {
    GPSTI_ALIGNAS(64) float at[3][GPSTI_BLOCK];
    float step_x[3][GPSTI_BLOCK], step_y[3][GPSTI_BLOCK], twist[3][GPSTI_BLOCK]; /* twist: 0 but of ROTATE */
    int32_t across[GPSTI_BLOCK], down[GPSTI_BLOCK]; /* samples */
    int32_t most_across, most_down;
    gpsti_warp_footprint affine; /* of the block's first pixel */
    gpsti_warp_job bilinear;
    float samples[GPSTI_HOT_DEPTH][4][GPSTI_BLOCK];
    float line[4][GPSTI_BLOCK], sum[4][GPSTI_BLOCK];
} gpsti_footprint;

/* The portable level has no vector instructions that it could name. */
GPSTI_PRIVATE bool gpsti_rows_hot_portable(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                           const gpsti_places* places, gpsti_hot_queue* queue) {
    (void)job, (void)x, (void)y, (void)count, (void)places, (void)queue;
    return false;
}

GPSTI_PRIVATE void gpsti_rows_hot_drain_portable(const gpsti_warp_job* job, gpsti_hot_queue* queue) {
    (void)job, (void)queue;
}

GPSTI_PRIVATE void gpsti_rows_hot_columns_portable(const gpsti_warp_job* job, gpsti_columns* columns) {
    (void)job, (void)columns;
}

GPSTI_PRIVATE bool gpsti_rows_hot_by_axes_portable(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t count,
                                                   const gpsti_row_taps* taps, const gpsti_row_taps* next,
                                                   const gpsti_columns* columns, const gpsti_block* block) {
    (void)job, (void)x, (void)y, (void)count, (void)taps, (void)next, (void)columns, (void)block;
    return false;
}

GPSTI_PRIVATE void gpsti_rows_hot_area_columns_portable(const gpsti_area_plane* plane, gpsti_area_columns* columns) {
    (void)plane, (void)columns;
}

GPSTI_PRIVATE bool gpsti_rows_hot_area_portable(const gpsti_area_plane* plane, const gpsti_area_columns* columns,
                                                const gpsti_warp_window* down, float* strip,
                                                float (*sums)[GPSTI_BLOCK]) {
    (void)plane, (void)columns, (void)down, (void)strip, (void)sums;
    return false;
}

GPSTI_PRIVATE void gpsti_rows_sqrt_portable(float* values) { gpsti_sqrt32_block(values, GPSTI_BLOCK); }

GPSTI_PRIVATE void gpsti_rows_round_portable(const float* values, bool is_signed, uint32_t shift, uint32_t* packed) {
    for (int k = 0; k < GPSTI_BLOCK; k++)
        packed[k] |= (uint32_t)(is_signed ? gpsti_warp_signed_byte(values[k]) : gpsti_warp_byte(values[k])) << shift;
}

#define GPSTI_ROWS(name) GPSTI_SIMD(rows_##name)

#define GPSTI_SIMD_LEVEL portable
#include "warp_rows_internal.h"

#if GPSTI_SIMD_X86
/* A lane is 16 bytes, a step four pixels a lane. */
#define GPSTI_HOT_STEP (GPSTI_SIMD_WIDTH / 32)
#define GPSTI_HOT_SET(value) GPSTI_SIMD_OP(set1_epi32)((int)(value))
#define GPSTI_HOT_LOAD(p) GPSTI_SIMD_BITS(loadu)((const GPSTI_SIMD_INTS*)(const void*)(p))
#define GPSTI_HOT_STORE(p, v) GPSTI_SIMD_BITS(storeu)((GPSTI_SIMD_INTS*)(void*)(p), v)
#define GPSTI_HOT_AS_INTS(v) GPSTI_SIMD_GLUE(GPSTI_SIMD_OP(castps), _si, GPSTI_SIMD_WIDTH)(v)
#define GPSTI_HOT_AS_FLOATS(v) GPSTI_SIMD_GLUE(GPSTI_SIMD_OP(castsi), GPSTI_SIMD_WIDTH, _ps)(v)
#define GPSTI_HOT_REPEAT(v, which) GPSTI_SIMD_OP(shuffle_epi32)(v, (_MM_PERM_ENUM)(which)) /* in every lane */
#define GPSTI_HOT_WINDOW(row, at) _mm_loadu_si128((const __m128i*)(const void*)((row) + *(at)))

#define GPSTI_SIMD_LEVEL avx2
#define GPSTI_HOT_SIGNS(v) _mm256_movemask_ps(_mm256_castsi256_ps(v))
#define GPSTI_HOT_JOIN(row, at) \
    _mm256_setr_m128i(GPSTI_ROWS(hot_pair)(row, at), GPSTI_ROWS(hot_pair)(row, (at) + 4))
#define GPSTI_HOT_WINDOWS(row, at) _mm256_setr_m128i(GPSTI_HOT_WINDOW(row, at), GPSTI_HOT_WINDOW(row, (at) + 1))
#define GPSTI_HOT_GATHER(p, at) _mm256_i32gather_epi32((const int*)(const void*)(p), at, 1)
#define GPSTI_HOT_WIDEN(p) _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i*)(const void*)(p)))
#define GPSTI_HOT_SPREAD(v) _mm256_broadcastsi128_si256(v)
GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_close)(__m256i v, uint8_t* out) {
    const __m256i closed = _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(0, 1, 2, 4, 5, 6, 7, 7));
    _mm_storeu_si128((__m128i*)(void*)out, _mm256_castsi256_si128(closed));
    _mm_storel_epi64((__m128i*)(void*)(out + 16), _mm256_extracti128_si256(closed, 1));
}
#include "warp_hot_internal.h"
#include "warp_rows_internal.h"

#if !defined(__clang__)
#pragma GCC diagnostic push /* gcc warns of its own intrinsics: undefined values, and at -O0 a mask's sign */
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#endif
#define GPSTI_SIMD_LEVEL avx512
#define GPSTI_HOT_SIGNS(v) _mm512_movepi32_mask(v)
#define GPSTI_HOT_HALF(row, at) \
    _mm256_setr_m128i(GPSTI_ROWS(hot_pair)(row, at), GPSTI_ROWS(hot_pair)(row, (at) + 4))
#define GPSTI_HOT_JOIN(row, at) \
    _mm512_inserti64x4(_mm512_castsi256_si512(GPSTI_HOT_HALF(row, at)), GPSTI_HOT_HALF(row, (at) + 8), 1)
#define GPSTI_HOT_PUT_WINDOW(v, row, at, lane) _mm512_inserti32x4(v, GPSTI_HOT_WINDOW(row, at), lane)
#define GPSTI_HOT_WINDOWS(row, at)                                                                                    \
    GPSTI_HOT_PUT_WINDOW(GPSTI_HOT_PUT_WINDOW(GPSTI_HOT_PUT_WINDOW(_mm512_castsi128_si512(GPSTI_HOT_WINDOW(row, at)), \
                                                                   row, (at) + 1, 1),                                 \
                                              row, (at) + 2, 2),                                                      \
                         row, (at) + 3, 3)
#define GPSTI_HOT_GATHER(p, at) _mm512_i32gather_epi32(at, (const void*)(p), 1)
#define GPSTI_HOT_WIDEN(p) _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i*)(const void*)(p)))
#define GPSTI_HOT_SPREAD(v) _mm512_broadcast_i32x4(v)
GPSTI_SIMD_INLINE void GPSTI_ROWS(hot_close)(__m512i v, uint8_t* out) {
    const __m512i order = _mm512_setr_epi32(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, 15, 15, 15, 15);
    const __m512i closed = _mm512_permutexvar_epi32(order, v);
    _mm256_storeu_si256((__m256i*)(void*)out, _mm512_castsi512_si256(closed));
    _mm_storeu_si128((__m128i*)(void*)(out + 32), _mm512_extracti32x4_epi32(closed, 2));
}
#include "warp_hot_internal.h"
#include "warp_rows_internal.h"
#undef GPSTI_HOT_HALF
#undef GPSTI_HOT_PUT_WINDOW
#if !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

GPST_API const char* gpst_warp_cpu_level(const gpst_warp* warp) {
    return warp ? gpsti_simd_level_name(warp->level) : "";
}

GPSTI_INTERN void gpsti_warp_rows(const gpsti_warp_job* job, gpsti_simd_level level, int32_t y_begin, int32_t y_end) {
    gpsti_block block;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    memset(&block, 0, sizeof block); /* the end of a row's last block is computed, too, and never used */
    GPSTI_SIMD_TO_AVX512(level, rows_band, job, y_begin, y_end, &block);
    gpsti_fp_leave(mode);
}

GPSTI_INTERN void gpsti_warp_rows_reference(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end) {
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (int32_t y = y_begin - job->top; y < y_end - job->top; y++)
        for (int32_t x = -job->left; x < job->output_width - job->left; x++)
            if (gpsti_warp_is_bar(job, x, y))
                gpsti_warp_bar_pixel(job, job->output, x, y);
            else
                gpsti_warp_pixel(job, x, y);
    gpsti_fp_leave(mode);
}

/* n pixels like the first, of each plane: by copies, each twice as long as the one before. */
GPSTI_PRIVATE void gpsti_warp_bar(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t n) {
    const size_t one = gpsti_warp_row_bytes(job) / (size_t)job->width, all = one * (size_t)n;
    if (n > 0)
        gpsti_warp_bar_pixel(job, job->output, x, y);
    for (uint32_t c = 0; n > 0 && c < gpsti_warp_n_planes(job); c++) {
        uint8_t* const first = gpsti_warp_output(job, x, y, c);
        for (size_t done = one; done < all; done *= 2)
            memcpy(first + done, first, done < all - done ? done : all - done);
    }
}

GPSTI_INTERN void gpsti_warp_bars(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end) {
    const int32_t right = job->output_width - job->left;
    const gpsti_fp_mode mode = gpsti_fp_enter();
    for (int32_t y = y_begin - job->top; y < y_end - job->top; y++)
        if (y < 0 || y >= job->height) {
            gpsti_warp_bar(job, -job->left, y, job->output_width);
        } else {
            gpsti_warp_bar(job, -job->left, y, job->left);
            gpsti_warp_bar(job, job->width, y, right - job->width);
        }
    gpsti_fp_leave(mode);
}

/* Rois in place: the rectangle as it is now; false: the list is shorter. */
GPSTI_PRIVATE bool gpsti_warp_band_roi(gpsti_warp_job* job) {
    if (!job->rois_in_place)
        return true;
    if (!gpsti_warp_listed_counts(&job->listed))
        return false;
    const gpsti_warp_roi roi = gpsti_warp_roi_of(job->listed.roi);
    gpsti_warp_take_roi(&roi, job);
    return true;
}

/* Rows y_begin up to y_end of every plane become 0 in whatever dtype. */
GPSTI_PRIVATE void gpsti_warp_band_clear(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end) {
    for (uint32_t c = 0; c < gpsti_warp_n_planes(job); c++)
        for (int32_t y = y_begin; y < y_end; y++)
            memset(gpsti_warp_output(job, 0, y, c), 0, gpsti_warp_row_bytes(job));
}

/* Rows first up to end of the outputs, one above the other. */
GPSTI_PRIVATE void gpsti_warp_band(const void* call, gpsti_simd_level level, uint64_t first, uint64_t end) {
    const gpsti_warp_args* const args = (const gpsti_warp_args*)call;
    const uint64_t image = first / args->warp->desc.height, above = image * args->warp->desc.height;
    gpsti_warp_job job;
    gpsti_warp_job_of(args, image, &job);
    const int32_t y_begin = (int32_t)(first - above), y_end = (int32_t)(end - above);
    const int32_t from = y_begin > job.top ? y_begin - job.top : 0;
    const int32_t to = y_end - job.top < job.height ? y_end - job.top : job.height;
    gpsti_warp_bars(&job, y_begin, y_end);
    if (!gpsti_warp_band_roi(&job)) {
        if (job.clears)
            gpsti_warp_band_clear(&job, y_begin, y_end);
    } else if (from < to) {
        gpsti_warp_rows(&job, level, from, to);
    }
}

/* AREA reads all of the source. */
GPSTI_INTERN void gpsti_warp_compute(const gpsti_warp_args* args, uint32_t n_threads) {
    const gpst_warp_desc* const desc = &args->warp->desc;
    const bool area = desc->filter == GPST_FILTER_AREA || desc->filter == GPST_FILTER_BICUBIC_AREA;
    const uint64_t source_values = area ? (uint64_t)args->sources->width * args->sources->height : 0;
    gpsti_launch_rows(gpsti_warp_band, args, args->warp->level, (uint64_t)args->n_sources * args->n_outputs,
                      desc->height, desc->width + source_values / desc->height, n_threads);
}
