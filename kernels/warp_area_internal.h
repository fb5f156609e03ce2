/* kernels/warp_area_internal.h -- the reference of the filter AREA: a triangle as
   wide as the step from one output pixel to the next, on each axis. Plain C for the host and for devices. */
#ifndef GPSTI_WARP_AREA_INTERNAL_H
#define GPSTI_WARP_AREA_INTERNAL_H

#include "warp_map_internal.h"

/* The source pixels begin <= x < end that an output pixel is made of on one axis, never none. Pixel x has the
   weight gpsti_warp_window_weight(window, x): the height of the triangle there, times what makes the sum 1.
   */
typedef struct gpsti_warp_window {
    int32_t begin, end;
    float origin, step; /* distance of pixel begin from the centre, and of its next, in half widths */
    float norm;
} gpsti_warp_window;

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_triangle(float origin, float step, int32_t i) {
    const float height = 1.0f - gpsti_abs32(gpsti_fma((float)i, step, origin));
    return height > 0.0f ? height : 0.0f;
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_window_weight(const gpsti_warp_window* window, int32_t x) {
    return gpsti_warp_triangle(window->origin, window->step, x - window->begin) * window->norm;
}

/* The centre begin + (2 i + 1) * extent / (2 out), kept within the source, and the half width max(extent /
   out, 1) pixel are exact, in units of 1 / (2 pixel) pixel. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_window gpsti_warp_window_of(const gpsti_warp_axis* axis, int32_t i) {
    gpsti_warp_window window;
    if (axis->ahead)
        return axis->ahead->windows[i - axis->ahead->first];
    const int64_t pixel = (int64_t)axis->out << 17, last = 2 * pixel * axis->in;
    const int64_t at = 2 * (int64_t)axis->out * axis->begin + (2 * (int64_t)i + 1) * axis->extent;
    const int64_t centre = at < 0 ? 0 : at > last ? last : at;
    const int64_t half = 2 * (axis->extent > pixel ? axis->extent : pixel);
    const int64_t before = centre - half - pixel, behind = centre + half - pixel;
    const int64_t end = (behind + 2 * pixel - 1) / (2 * pixel);
    float sum = 0.0f;
    window.begin = before < 0 ? 0 : (int32_t)(before / (2 * pixel)) + 1;
    window.end = end < axis->in ? (int32_t)end : axis->in;
    window.origin = (float)((2 * (int64_t)window.begin + 1) * pixel - centre) / (float)half;
    window.step = (float)(2 * pixel) / (float)half;
    for (int32_t k = 0; k < window.end - window.begin; k++)
        sum += gpsti_warp_triangle(window.origin, window.step, k);
    window.norm = 1.0f / sum;
    return window;
}

#endif
