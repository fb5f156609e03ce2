/* kernels/warp/warp_map_internal.h -- the reference: where one output pixel is looked
   up, map by map, and what lies beyond the source's edge. Plain C for the host and for devices. */
#ifndef GPSTI_WARP_MAP_INTERNAL_H
#define GPSTI_WARP_MAP_INTERNAL_H

#include "../exact/exact_internal.h"
#include "warp_internal.h"

/* value >= 0 or so small in magnitude that the sum below is exact, rounded to the nearest integer, ties to
   even: in the float 1.5 * 2^23 + value the integer stands in the low bits. */
#define GPSTI_WARP_ROUNDER 12582912.0f
#define GPSTI_WARP_ROUNDER_BITS 0x4b400000u

/* The pixel up and left of the position, which may lie outside the source, and how far on the position is: in
   1/2048 of a pixel, rounded, for the sampler in integers, and as a float. NEAREST: the pixel, and zeros. */
typedef struct gpsti_warp_place {
    int32_t x, y;
    int32_t wx, wy;
    float fx, fy;
} gpsti_warp_place;

/* ---- RESIZE, ROI: an axis at a time ------------------------------------------------
   Position begin + (2 i + 1) * extent / (2 out) - 1/2, exact as whole + rest / den. */
typedef struct gpsti_warp_tap {
    int32_t pixel;
    int32_t weight;
    float fraction;
    int32_t nearest; /* the pixel nearest to the position, from -1 to the size */
} gpsti_warp_tap;

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_axis gpsti_warp_axis_of(int64_t begin, int64_t extent, int32_t in,
                                                                 int32_t out) {
    gpsti_warp_axis axis;
    memset(&axis, 0, sizeof axis);
    axis.begin = begin, axis.extent = extent;
    axis.in = in, axis.out = out;
    return axis;
}

/* To the nearest integer; the value is known to fit. */
GPSTI_DEVICE GPSTI_INLINE int64_t gpsti_warp_whole(double value) {
    return (int64_t)(value + (value < 0 ? -0.5 : 0.5));
}

#define GPSTI_WARP_MAX_ROI 1048576.0f

/* In 1/65536 pixel; what is out of range is the nearest that is not, NaN the least. */
GPSTI_DEVICE GPSTI_INLINE int64_t gpsti_warp_roi_part(float value, float least) {
    const float above = value > least ? value : least;
    return gpsti_warp_whole((double)(above < GPSTI_WARP_MAX_ROI ? above : GPSTI_WARP_MAX_ROI) * 65536.0);
}

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_roi gpsti_warp_roi_of(const gpst_roi* from) {
    gpsti_warp_roi roi;
    roi.x = gpsti_warp_roi_part(from->x, -GPSTI_WARP_MAX_ROI);
    roi.y = gpsti_warp_roi_part(from->y, -GPSTI_WARP_MAX_ROI);
    roi.width = gpsti_warp_roi_part(from->width, 0.0f);
    roi.height = gpsti_warp_roi_part(from->height, 0.0f);
    return roi;
}

GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_listed_counts(const gpsti_warp_listed* listed) {
    return !listed->n_used || listed->index < *listed->n_used;
}

/* What was computed ahead for the output pixels from first on; windows NULL without AREA. */
typedef struct gpsti_warp_ahead {
    int32_t first;
    const gpsti_warp_tap* taps;
    const struct gpsti_warp_window* windows;
} gpsti_warp_ahead;

#define GPSTI_WARP_LIFT (1 << 21) /* pixels; added so that nothing is negative */

/* PyTorch's position, in floats: its rounding, at large sizes, is more than a sample's. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_axis_torch(const gpsti_warp_axis* axis, int32_t i, gpsti_warp_tap* tap) {
    const float at = gpsti_fma(axis->scale, (float)(i + axis->first) + 0.5f, -0.5f), position = at > 0.0f ? at : 0.0f;
    tap->pixel = (int32_t)position;
    tap->fraction = position - (float)tap->pixel;
    tap->weight = (int32_t)(tap->fraction * 2048.0f + 0.5f); /* the product is exact */
}

/* nearest: pixel is the nearest one, too, and the rest 0. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_tap gpsti_warp_axis_tap(const gpsti_warp_axis* axis, int32_t i,
                                                             bool nearest) {
    gpsti_warp_tap tap;
    if (axis->ahead)
        return axis->ahead->taps[i - axis->ahead->first];
    const int64_t out = axis->out, den = out << 18, n = 2 * ((int64_t)i + axis->first) + (axis->corner ? 0 : 1);
    const int64_t centre = GPSTI_WARP_LIFT * den + 2 * out * axis->begin + n * axis->extent;
    const uint64_t num = (uint64_t)(nearest ? centre : centre - (out << 17));
    const int64_t rest = (int64_t)(num % (uint64_t)den);
    const int32_t at = (int32_t)((uint64_t)centre / (uint64_t)den) - GPSTI_WARP_LIFT;
    tap.pixel = (int32_t)(num / (uint64_t)den) - GPSTI_WARP_LIFT;
    tap.weight = nearest ? 0 : (int32_t)((rest * 4096 + den) / (2 * den));
    tap.fraction = nearest ? 0.0f : (float)rest / (float)den;
    tap.nearest = at < -1 ? -1 : at > axis->in ? axis->in : at;
    if (axis->scale > 0 && !nearest)
        gpsti_warp_axis_torch(axis, i, &tap);
    return tap;
}

/* ---- EQUIRECT, ROTATE: directions ---------------------------------------------------
   What the pixels of a row of a view have in common: b * m + d of each component, in two floats. */
typedef struct gpsti_warp_row {
    float high[3], low[3];
} gpsti_warp_row;

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_row gpsti_warp_view_row(const gpsti_warp_job* job, int32_t y) {
    gpsti_warp_row row;
    if (job->view_rows)
        return job->view_rows[y - job->first_row];
    const double m = (double)(2 * y + 1 - job->height);
    for (int c = 0; c < 3; c++) {
        const double value = gpsti_mul64(job->view.b[c], m) + job->view.d[c];
        gpsti_split(value, &row.high[c], &row.low[c]);
    }
    return row;
}

/* The angle of (x, y) from the x axis as y / x would tell it, times scale, in whole 1/32768 pixels. The arc
   is computed for the first half of a quarter turn only and reflected in integers, which costs no precision.
   */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_angle(float y, float x, float scale, int32_t quarter) {
    const float ay = gpsti_abs32(y), ax = gpsti_abs32(x);
    const float high = ay > ax ? ay : ax, low = ay < ax ? ay : ax;
    const float r = low / (high > 1e-30f ? high : 1e-30f); /* 0 where both are 0 */
    const float arc = r * GPSTI_ATAN_POLYNOMIAL(gpsti_fma, r * r);
    int32_t angle = (int32_t)gpsti_fma(arc, scale, 0.5f);
    angle = ay > ax ? quarter - angle : angle;
    angle = x < 0 ? 2 * quarter - angle : angle;
    return y < 0 ? -angle : angle;
}

/* ray[c] of output column x: a[c] * n + row[c], a and row in two floats each. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_view_ray(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                   float ray[3]) {
    const gpsti_warp_row row = gpsti_warp_view_row(job, y);
    const float n = (float)(2 * x + 1 - job->width);
    for (int c = 0; c < 3; c++)
        ray[c] =
            gpsti_fma(job->view.a_high[c], n, row.high[c]) + gpsti_fma(job->view.a_low[c], n, row.low[c]);
}

/* Component c of the turned direction is cos(b) (r[c][0] sin(a) + r[c][2] cos(a)) + r[c][1] sin(b): the floats of a
   column, those of a row, each with what it gains to the next. */
#define GPSTI_WARP_TURN_COLUMN 9
#define GPSTI_WARP_TURN_ROW 12

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_turn_column(const double r[9], uint32_t width, uint32_t x,
                                                      float out[GPSTI_WARP_TURN_COLUMN]) {
    double sine, cosine;
    gpsti_sin_cos_degrees(gpsti_mul64(180.0, 2.0 * x + 1.0 - width) / width, &sine, &cosine);
    for (int c = 0; c < 3; c++) {
        const double gain = gpsti_mul64(r[3 * c], cosine) - gpsti_mul64(r[3 * c + 2], sine);
        gpsti_split(gpsti_mul64(r[3 * c], sine) + gpsti_mul64(r[3 * c + 2], cosine), &out[2 * c],
                    &out[2 * c + 1]);
        out[6 + c] = gpsti_narrow(gpsti_mul64(gain, 2 * GPSTI_PI) / width);
    }
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_turn_row(const double r[9], uint32_t height, uint32_t y,
                                                   float out[GPSTI_WARP_TURN_ROW]) {
    double sine, cosine;
    gpsti_sin_cos_degrees(gpsti_mul64(90.0, 2.0 * y + 1.0 - height) / height, &sine, &cosine);
    gpsti_split(cosine, &out[0], &out[1]);
    out[8] = gpsti_narrow(gpsti_mul64(-sine, GPSTI_PI) / height);
    for (int c = 0; c < 3; c++) {
        gpsti_split(gpsti_mul64(r[3 * c + 1], sine), &out[2 + 2 * c], &out[3 + 2 * c]);
        out[9 + c] = gpsti_narrow(gpsti_mul64(gpsti_mul64(r[3 * c + 1], cosine), GPSTI_PI) / height);
    }
}

/* The direction of the output pixel, turned: column[c] * cos(latitude) + row[c], each in two floats. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_turned_ray(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                     float ray[3]) {
    const float* column = job->turn_columns + (x - job->first_column);
    const float* row = job->turn_rows + GPSTI_WARP_TURN_ROW * (ptrdiff_t)(y - job->first_row);
    for (int c = 0; c < 3; c++) {
        const float high = column[(2 * c) * (ptrdiff_t)job->turn_stride],
                    low = column[(2 * c + 1) * (ptrdiff_t)job->turn_stride];
        ray[c] = gpsti_fma(high, row[0], row[2 + 2 * c]) +
                 gpsti_fma(high, row[1], gpsti_fma(low, row[0], row[3 + 2 * c]));
    }
}

/* What component c of a direction gains from one output pixel to the next, across and down; twist: and what the first
   gains to the next below. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_view_steps(const gpsti_warp_job* job, int c, float* across, float* down) {
    *across = 2.0f * job->view.a_high[c];
    *down = gpsti_narrow(2.0 * job->view.b[c]);
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_turned_steps(const gpsti_warp_job* job, int32_t x, int32_t y, int c,
                                                       float* across, float* down, float* twist) {
    const float* column = job->turn_columns + (x - job->first_column);
    const float* row = job->turn_rows + GPSTI_WARP_TURN_ROW * (ptrdiff_t)(y - job->first_row);
    *across = column[(6 + c) * (ptrdiff_t)job->turn_stride] * row[0];
    *twist = column[(6 + c) * (ptrdiff_t)job->turn_stride] * row[8];
    *down = gpsti_fma(column[(2 * c) * (ptrdiff_t)job->turn_stride], row[8], row[9 + c]);
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_sphere(const gpsti_warp_job* job, const float ray[3], int32_t* u,
                                                 int32_t* v) {
    const float across = gpsti_sqrt32(gpsti_fma(ray[0], ray[0], ray[2] * ray[2]));
    *u = gpsti_warp_angle(ray[0], ray[2], job->scale_u, job->quarter_u) + job->offset_u;
    *v = gpsti_warp_angle(ray[1], across, job->scale_v, job->quarter_v) + job->offset_v;
}

/* ---- AFFINE, TABLE -------------------------------------------------------------------
   A position on an axis in 1/2^29 pixel, to 1/32768, rounded; where nothing but the border is read, at the
   border's first pixel. */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_affine_at(int64_t position, int32_t size) {
    const int64_t one = (int64_t)1 << 29, last = size * one;
    const int64_t above = position > -one ? position : -one, clamped = above < last ? above : last;
    return (int32_t)((uint64_t)(clamped + one + (1 << 13)) >> 14) - 32768;
}

/* OPENCV and PY360 with BILINEAR: to 1/32 pixel, as remap and warpAffine do. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_on_grid(const gpsti_warp_job* job) {
    return (job->convention == GPST_CONVENTION_OPENCV || job->convention == GPST_CONVENTION_PY360) &&
           job->filter == GPST_FILTER_BILINEAR;
}

GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_to_grid(int32_t position) {
    return (int32_t)(((uint32_t)position + 512) & ~(uint32_t)1023);
}

/* warpAffine's: each of the two sums of a position to 1/1024 pixel. */
GPSTI_DEVICE GPSTI_INLINE int64_t gpsti_warp_affine_part(int64_t position) {
    const uint64_t lift = (uint64_t)1 << 62;
    return (int64_t)(((uint64_t)position + lift + (1 << 18)) >> 19) - ((int64_t)1 << 43);
}

GPSTI_DEVICE GPSTI_INLINE int64_t gpsti_warp_affine_opencv(const int64_t q[3], int32_t x, int32_t y) {
    const int64_t across = gpsti_warp_affine_part(2 * q[0] * x);
    return (across + gpsti_warp_affine_part(2 * q[1] * y + q[0] + q[1] + q[2])) * (1 << 19);
}

/* The same of a table's entry; NaN is far outside. On OpenCV's grid ties go to even. */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_table_at(float position, int32_t size, bool on_grid) {
    const float last = (float)size, above = position > -1.0f ? position : -1.0f;
    const float clamped = above < last ? above : last, scaled = clamped * 32768.0f; /* exact */
    if (on_grid)
        return (int32_t)(gpsti_f32_bits(clamped * 32.0f + GPSTI_WARP_ROUNDER) - GPSTI_WARP_ROUNDER_BITS) * 1024;
    return (int32_t)(scaled + (scaled < 0 ? -0.5f : 0.5f));
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_affine(const gpsti_warp_job* job, int32_t x, int32_t y, int32_t* u,
                                                 int32_t* v) {
    const int64_t n = 2 * (int64_t)x + 1, m = 2 * (int64_t)y + 1;
    const int64_t* q = job->affine.q;
    if (job->convention == GPST_CONVENTION_OPENCV) {
        *u = gpsti_warp_affine_at(gpsti_warp_affine_opencv(q, x, y), job->source_width);
        *v = gpsti_warp_affine_at(gpsti_warp_affine_opencv(q + 3, x, y), job->source_height);
        return;
    }
    *u = gpsti_warp_affine_at(q[0] * n + q[1] * m + q[2], job->source_width);
    *v = gpsti_warp_affine_at(q[3] * n + q[4] * m + q[5], job->source_height);
}

GPSTI_DEVICE GPSTI_INLINE const float* gpsti_warp_table_row(const gpsti_warp_job* job, int32_t y) {
    return (const float*)(const void*)((const uint8_t*)job->table + (ptrdiff_t)(y * job->table_pitch));
}

/* ---- all maps -------------------------------------------------------------------------- */
/* Whole pixels of a position of -1 or more, in 1/32768 pixel; the rest is the low 15 bits. */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_floor(int32_t position) {
    return (int32_t)(((uint32_t)position + 32768u) >> 15) - 1;
}

GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_by_axes(gpst_map map) {
    return map == GPST_MAP_RESIZE || map == GPST_MAP_ROI;
}

/* By axes: more than the two taps of BILINEAR on each. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_by_windows(gpst_filter filter) {
    return filter == GPST_FILTER_AREA || filter == GPST_FILTER_BICUBIC || filter == GPST_FILTER_BICUBIC_AREA;
}

/* The position in 1/32768 pixel, from -1 pixel to the size; of the maps by axes, the nearest pixel's. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_position(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                   int32_t* u, int32_t* v) {
    float ray[3];
    if (gpsti_warp_by_axes(job->map)) {
        *u = gpsti_warp_axis_tap(&job->across, x, true).nearest * 32768;
        *v = gpsti_warp_axis_tap(&job->down, y, true).nearest * 32768;
    } else if (job->map == GPST_MAP_AFFINE) {
        gpsti_warp_affine(job, x, y, u, v);
    } else if (job->map == GPST_MAP_TABLE) {
        const float* entry = gpsti_warp_table_row(job, y) + 2 * (ptrdiff_t)x;
        *u = gpsti_warp_table_at(entry[0], job->source_width, gpsti_warp_on_grid(job));
        *v = gpsti_warp_table_at(entry[1], job->source_height, gpsti_warp_on_grid(job));
    } else {
        if (job->map == GPST_MAP_ROTATE)
            gpsti_warp_turned_ray(job, x, y, ray);
        else
            gpsti_warp_view_ray(job, x, y, ray);
        gpsti_warp_sphere(job, ray, u, v);
    }
}

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_place gpsti_warp_place_of(int32_t u, int32_t v, bool nearest) {
    gpsti_warp_place place;
    place.x = gpsti_warp_floor(nearest ? u + 16384 : u);
    place.y = gpsti_warp_floor(nearest ? v + 16384 : v);
    const int32_t rest_x = nearest ? 0 : u & 32767, rest_y = nearest ? 0 : v & 32767;
    place.wx = (rest_x + 8) >> 4, place.fx = (float)rest_x * (1.0f / 32768.0f);
    place.wy = (rest_y + 8) >> 4, place.fy = (float)rest_y * (1.0f / 32768.0f);
    return place;
}

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_place gpsti_warp_locate(const gpsti_warp_job* job, int32_t x,
                                                             int32_t y) {
    gpsti_warp_place place;
    const bool nearest = job->filter == GPST_FILTER_NEAREST;
    if (gpsti_warp_by_axes(job->map)) {
        const gpsti_warp_tap across = gpsti_warp_axis_tap(&job->across, x, nearest);
        const gpsti_warp_tap down = gpsti_warp_axis_tap(&job->down, y, nearest);
        place.x = across.pixel, place.wx = across.weight, place.fx = across.fraction;
        place.y = down.pixel, place.wy = down.weight, place.fy = down.fraction;
        return place;
    }
    int32_t u, v;
    gpsti_warp_position(job, x, y, &u, &v);
    if (gpsti_warp_on_grid(job))
        u = gpsti_warp_to_grid(u), v = gpsti_warp_to_grid(v);
    return gpsti_warp_place_of(u, v, nearest);
}

/* ---- which pixel: the border ------------------------------------------------------
   EDGE repeats the edge. The sphere goes over the pole, to the row it came from half a turn on (with an odd
   width the half is rounded down), and around in x. False: outside, which reads 0. */
GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_border_of(int border, int32_t width, int32_t height, int32_t* x,
                                                    int32_t* y) {
    if (border == GPSTI_BORDER_SPHERE) {
        if (*y < 0 || *y >= height) {
            *y = *y < 0 ? -1 - *y : 2 * height - 1 - *y;
            *x += width / 2;
        }
        *x = *x < 0 ? *x + width : *x >= width ? *x - width : *x;
        return true;
    }
    const bool inside = *x >= 0 && *x < width && *y >= 0 && *y < height;
    *x = *x < 0 ? 0 : *x >= width ? width - 1 : *x;
    *y = *y < 0 ? 0 : *y >= height ? height - 1 : *y;
    return inside || border == GPST_BORDER_EDGE;
}

GPSTI_DEVICE GPSTI_INLINE bool gpsti_warp_border(const gpsti_warp_job* job, int32_t* x, int32_t* y) {
    return gpsti_warp_border_of(job->border, job->source_width, job->source_height, x, y);
}

/* Whether the mask keeps the pixel nearest to a position; outside, with ZERO, nothing is kept. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_mask_at(const gpsti_warp_job* job, int32_t u, int32_t v) {
    int32_t x = gpsti_warp_floor(u + 16384), y = gpsti_warp_floor(v + 16384);
    if (!gpsti_warp_border(job, &x, &y))
        return 0;
    return job->mask[(ptrdiff_t)(y * job->mask_pitch) + x] != 0 ? UINT32_MAX : 0;
}

#endif
