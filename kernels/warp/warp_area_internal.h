/* kernels/warp/warp_area_internal.h -- the reference of the filter AREA: a triangle as
   wide as the step from one output pixel to the next, on each axis; OPENCV: what the output pixel covers. Plain C for
   the host and for devices. */
#ifndef GPSTI_WARP_AREA_INTERNAL_H
#define GPSTI_WARP_AREA_INTERNAL_H

#include "warp_map_internal.h"

/* The source pixels begin <= x < end that an output pixel is made of on one axis, never none. Pixel x has the
   weight gpsti_warp_window_weight(window, x): the height of the triangle there, cut off at top, times what makes
   the sum 1. */
typedef struct gpsti_warp_window {
    int32_t begin, end;
    float origin, step; /* distance of pixel begin from the centre, and of its next, in half widths */
    float norm, top;
} gpsti_warp_window;

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_height(const gpsti_warp_window* window, int32_t i) {
    const float slope = 1.0f - gpsti_abs32(gpsti_fma((float)i, window->step, window->origin));
    const float height = slope < window->top ? slope : window->top;
    return height > 0.0f ? height : 0.0f;
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_window_weight(const gpsti_warp_window* window, int32_t x) {
    return gpsti_warp_height(window, x - window->begin) * window->norm;
}

/* PyTorch's centre, a float. */
GPSTI_DEVICE GPSTI_INLINE int64_t gpsti_warp_window_torch(float scale, int32_t i, int64_t unit) {
    const float centre = scale * ((float)i + 0.5f);
    return (int64_t)((double)centre * (double)unit);
}

/* The centre begin + (2 i + 1) * extent / (2 out), kept within the source, and the half width are exact, in units of
   1 / (2 pixel) pixel. With s = extent / out the half width is max(s, 1) pixel. A box: what of a pixel lies between
   s / 2 on both sides of the centre is min((s + 1) / 2 - distance, s, 1), so the half width is (s + 1) / 2 and the top
   min(s, 1) of it; s is 1/1024 at the least, lest floats see no width. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_window gpsti_warp_window_of(const gpsti_warp_axis* axis, int32_t i) {
    gpsti_warp_window window;
    if (axis->ahead)
        return axis->ahead->windows[i - axis->ahead->first];
    const int64_t pixel = (int64_t)axis->out << 17, last = 2 * pixel * axis->in;
    const int64_t exact = 2 * (int64_t)axis->out * axis->begin + (2 * (int64_t)i + 1) * axis->extent;
    const int64_t at = axis->scale > 0 ? gpsti_warp_window_torch(axis->scale, i, 2 * pixel) : exact;
    const int64_t centre = at < 0 ? 0 : at > last ? last : at;
    const int64_t wide = axis->extent > pixel ? axis->extent : pixel, least = pixel / 1024;
    const int64_t box = axis->extent > least ? axis->extent : least, narrow = box < pixel ? box : pixel;
    const int64_t half = axis->box ? box + pixel : 2 * wide;
    const int64_t before = centre - half - pixel, behind = centre + half - pixel;
    const int64_t end = (behind + 2 * pixel - 1) / (2 * pixel);
    float sum = 0.0f;
    window.begin = before < 0 ? 0 : (int32_t)(before / (2 * pixel)) + 1;
    window.end = end < axis->in ? (int32_t)end : axis->in;
    window.origin = (float)((2 * (int64_t)window.begin + 1) * pixel - centre) / (float)half;
    window.step = (float)(2 * pixel) / (float)half;
    window.top = axis->box ? (float)(2 * narrow) / (float)half : 1.0f;
    for (int32_t k = 0; k < window.end - window.begin; k++)
        sum += gpsti_warp_height(&window, k);
    window.norm = 1.0f / sum;
    return window;
}

#endif
