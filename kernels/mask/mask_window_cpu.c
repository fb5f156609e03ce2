/* kernels/mask/mask_window_cpu.c -- windows of pixels on the CPU: tiles that fit into
   the L1 cache, in and out, and the loops of each level of the machine over them. Checks nothing; mask_window.c did. */
#include "../../core/base/platform_internal.h"

#include "mask_pixel_internal.h"

#define GPSTI_WINDOW_COLUMNS 128 /* of a tile */
#define GPSTI_WINDOW_ROWS 24
#define GPSTI_WINDOW_LEFT 32 /* columns and rows around it: two windows of 5 reach 4 far */
#define GPSTI_WINDOW_TOP 4
#define GPSTI_WINDOW_ROW (GPSTI_WINDOW_COLUMNS + 2 * GPSTI_WINDOW_LEFT)
#define GPSTI_WINDOW_SPAN (GPSTI_WINDOW_COLUMNS + GPSTI_WINDOW_LEFT)
#define GPSTI_WINDOW_ALL_ROWS (GPSTI_WINDOW_ROWS + 2 * GPSTI_WINDOW_TOP)
#define GPSTI_REFINE_ROWS 14 /* of a tile of REFINE, whose one window of 3 reaches 1 far */
#define GPSTI_REFINE_TOP 1
#define GPSTI_REFINE_ALL_ROWS (GPSTI_REFINE_ROWS + 2 * GPSTI_REFINE_TOP)

/* Of a tile, what the image covers within reach. */
typedef struct gpsti_window_cover {
    int32_t row_first, row_end, column_first, column_end;
} gpsti_window_cover;

typedef struct gpsti_window_tile {
    GPSTI_ALIGNAS(64) uint8_t bytes[2][GPSTI_WINDOW_ALL_ROWS][GPSTI_WINDOW_ROW];
    gpsti_window_cover cover;
} gpsti_window_tile;

typedef struct gpsti_refine_tile {
    GPSTI_ALIGNAS(64) uint8_t inside[GPSTI_REFINE_ALL_ROWS][GPSTI_WINDOW_ROW];
    uint16_t labels[GPSTI_REFINE_ALL_ROWS][GPSTI_WINDOW_ROW];
    uint8_t guide[4][GPSTI_REFINE_ALL_ROWS][GPSTI_WINDOW_ROW];
    uint16_t elected[GPSTI_WINDOW_ROW]; /* of one row */
    gpsti_window_cover cover;
} gpsti_refine_tile;

/* On the caller's stack, of which there may be little. */
typedef union gpsti_window_tiles {
    gpsti_window_tile bytes;
    gpsti_refine_tile refine;
} gpsti_window_tiles;

GPSTI_PRIVATE int32_t gpsti_window_min(int32_t a, int32_t b) { return a < b ? a : b; }
GPSTI_PRIVATE int32_t gpsti_window_max(int32_t a, int32_t b) { return a > b ? a : b; }

/* ---- in ---------------------------------------------------------------------------- */
GPSTI_PRIVATE gpsti_window_cover gpsti_window_cover_of(const gpsti_window_job* job, int32_t x, int32_t y,
                                                       int32_t n_rows, int32_t reach) {
    gpsti_window_cover cover;
    cover.row_first = reach + gpsti_window_max(-y, -reach);
    cover.row_end = reach + gpsti_window_min(job->height - y, n_rows + reach);
    cover.column_first = GPSTI_WINDOW_LEFT + gpsti_window_max(-x, -reach);
    cover.column_end = GPSTI_WINDOW_LEFT + gpsti_window_min(job->width - x, GPSTI_WINDOW_COLUMNS + reach);
    return cover;
}

/* Where column_first of a row of the tile comes from, in pixels of n bytes; the tile's own rows begin at `top`. */
GPSTI_PRIVATE const uint8_t* gpsti_window_from(const uint8_t* data, int64_t pitch, int32_t n, int32_t x, int32_t y,
                                               const gpsti_window_cover* cover, int32_t row, int32_t top) {
    const int32_t at_x = x + cover->column_first - GPSTI_WINDOW_LEFT, at_y = y + row - top;
    return data + (ptrdiff_t)(at_y * pitch) + (ptrdiff_t)at_x * n;
}

GPSTI_PRIVATE void gpsti_window_load_bytes(const gpsti_window_job* job, int32_t x, int32_t y, gpsti_window_tile* tile) {
    const gpsti_window_cover* const cover = &tile->cover; /* in memory: what gcc knows is short it copies slowly */
    tile->cover = gpsti_window_cover_of(job, x, y, GPSTI_WINDOW_ROWS, GPSTI_WINDOW_TOP);
    for (int32_t row = cover->row_first; row < cover->row_end; row++)
        memcpy(tile->bytes[0][row] + cover->column_first,
               gpsti_window_from(job->source, job->source_pitch, 1, x, y, cover, row, GPSTI_WINDOW_TOP),
               (size_t)(cover->column_end - cover->column_first));
}

GPSTI_PRIVATE void gpsti_window_repeat_edges(gpsti_window_tile* tile) {
    const gpsti_window_cover* const cover = &tile->cover;
    for (int32_t row = cover->row_first; row < cover->row_end; row++) {
        uint8_t* bytes = tile->bytes[0][row];
        for (int32_t k = 1; k <= 2; k++) {
            bytes[cover->column_first - k] = bytes[cover->column_first];
            bytes[cover->column_end - 1 + k] = bytes[cover->column_end - 1];
        }
    }
    for (int32_t k = 1; k <= 2 && cover->row_first - k >= 0; k++)
        memcpy(tile->bytes[0][cover->row_first - k], tile->bytes[0][cover->row_first], GPSTI_WINDOW_ROW);
    for (int32_t k = 0; k < 2 && cover->row_end + k < GPSTI_WINDOW_ALL_ROWS; k++)
        memcpy(tile->bytes[0][cover->row_end + k], tile->bytes[0][cover->row_end - 1], GPSTI_WINDOW_ROW);
}

GPSTI_PRIVATE void gpsti_window_load_labels(const gpsti_window_job* job, int32_t x, int32_t y,
                                            gpsti_refine_tile* tile) {
    const gpsti_window_cover cover = gpsti_window_cover_of(job, x, y, GPSTI_REFINE_ROWS, GPSTI_REFINE_TOP);
    const int32_t first = cover.column_first, n = cover.column_end - first, top = GPSTI_REFINE_TOP;
    memset(tile->inside, 0, sizeof tile->inside);
    for (int32_t row = cover.row_first; row < cover.row_end; row++) {
        uint16_t* labels = tile->labels[row] + first;
        const uint8_t* from =
            gpsti_window_from(job->source, job->source_pitch, job->wide ? 2 : 1, x, y, &cover, row, top);
        memset(tile->inside[row] + first, 1, (size_t)n);
        if (job->wide)
            memcpy(labels, from, (size_t)n * sizeof *labels);
        for (int32_t k = 0; !job->wide && k < n; k++)
            labels[k] = from[k];
        if (!job->guide)
            continue;
        from = gpsti_window_from(job->guide, job->guide_pitch, job->guide_channels, x, y, &cover, row, top);
        for (int32_t c = 0; c < job->guide_channels; c++)
            for (int32_t k = 0; k < n; k++)
                tile->guide[c][row][first + k] = from[k * job->guide_channels + c];
    }
    tile->cover = cover;
}

/* ---- out --------------------------------------------------------------------------- */
GPSTI_PRIVATE void gpsti_window_store_bytes(const gpsti_window_job* job, int32_t x, int32_t y, int32_t y_end,
                                            const gpsti_window_tile* tile, int32_t plane) {
    const int32_t n = gpsti_window_min(job->width - x, GPSTI_WINDOW_COLUMNS);
    for (int32_t row = y; row < y_end; row++)
        memcpy(job->output + (ptrdiff_t)(row * job->output_pitch) + x,
               tile->bytes[plane][GPSTI_WINDOW_TOP + row - y] + GPSTI_WINDOW_LEFT, (size_t)n);
}

GPSTI_PRIVATE void gpsti_window_store_labels(const gpsti_window_job* job, int32_t x, int32_t y,
                                             const gpsti_refine_tile* tile) {
    const int32_t n = gpsti_window_min(job->width - x, GPSTI_WINDOW_COLUMNS);
    const uint16_t* labels = tile->elected + GPSTI_WINDOW_LEFT;
    uint8_t* out = job->output + (ptrdiff_t)(y * job->output_pitch) + (ptrdiff_t)x * (job->wide ? 2 : 1);
    if (job->wide)
        memcpy(out, labels, (size_t)n * sizeof *labels);
    for (int32_t k = 0; !job->wide && k < n; k++)
        out[k] = (uint8_t)labels[k];
}

/* ---- levels ------------------------------------------------------------------------- */
#define GPSTI_WINDOW(name) GPSTI_SIMD(window_##name)

#define GPSTI_SIMD_LEVEL portable
#include "mask_window_rows_internal.h"

#if GPSTI_SIMD_X86
#define GPSTI_SIMD_LEVEL avx2
#include "mask_window_rows_internal.h"
#endif

GPSTI_INTERN void gpsti_window_rows(const void* window_job, gpsti_simd_level level, uint64_t first, uint64_t end) {
    const gpsti_window_job* const job = (const gpsti_window_job*)window_job;
    const int32_t n_rows = job->op == GPSTI_WINDOW_REFINE ? GPSTI_REFINE_ROWS : GPSTI_WINDOW_ROWS;
    gpsti_window_tiles tile;
    memset(&tile, 0, sizeof tile); /* what no image covers is computed, too, and never used */
    for (int32_t y = (int32_t)first; y < (int32_t)end; y += n_rows)
        for (int32_t x = 0; x < job->width; x += GPSTI_WINDOW_COLUMNS)
            GPSTI_SIMD_TO_AVX2(level, window_tile, job, x, y, gpsti_window_min(y + n_rows, (int32_t)end), &tile);
}

GPSTI_INTERN void gpsti_window_rows_reference(const gpsti_window_job* job, uint32_t y_begin, uint32_t y_end) {
    for (int32_t y = (int32_t)y_begin; y < (int32_t)y_end; y++)
        for (int32_t x = 0; x < job->width; x++)
            gpsti_window_pixel(job, x, y);
}

GPSTI_INTERN void gpsti_window_compute(const gpsti_window_job* job, uint32_t n_threads) {
    gpsti_launch_rows(gpsti_window_rows, job, gpsti_simd_level_query(), 1, (uint64_t)job->height, (uint64_t)job->width,
                      n_threads);
}
