/* kernels/warp/warp_area_internal.h -- the reference of the filters that go by windows, an axis at a time: AREA, a
   triangle as wide as the step from one output pixel to the next, or OPENCV's what the output pixel covers; BICUBIC,
   four taps; BICUBIC_AREA, a cubic twice as wide as the triangle. Plain C for the host and for devices. */
#ifndef GPSTI_WARP_AREA_INTERNAL_H
#define GPSTI_WARP_AREA_INTERNAL_H

#include "warp_map_internal.h"

/* The source pixels begin <= x < end that an output pixel is made of on one axis, never none. Pixel x has the
   weight gpsti_warp_window_weight(window, x): the height of the triangle there, cut off at top, times what makes
   the sum 1. BICUBIC's may lie outside of the source, whose edges repeat. */
typedef struct gpsti_warp_window {
    int32_t begin, end;
    float origin, step; /* distance of pixel begin from the centre, and of its next, in half widths; a cubic's reach
                           two of them */
    float norm;         /* 0: no norm, but weights that are rounded to 1/2048 */
    float top;          /* of a cubic its parameter, which is negative */
} gpsti_warp_window;

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_height(const gpsti_warp_window* window, int32_t i) {
    const float slope = 1.0f - gpsti_abs32(gpsti_fma((float)i, window->step, window->origin));
    const float height = slope < window->top ? slope : window->top;
    return height > 0.0f ? height : 0.0f;
}

/* The cubic of the parameter a at a distance x >= 0. fma names the multiply-add to use. It ends with one: whatever its
   value is added to, no product is left to be contracted. */
#define GPSTI_WARP_CUBIC(fma, a, x)                                                            \
    ((x) < 1.0f   ? fma(fma((a) + 2.0f, x, -3.0f - (a)) * (x), x, 1.0f)                       \
     : (x) < 2.0f ? fma(((x) - 1.0f) * (a), ((x) - 2.0f) * ((x) - 2.0f), 0.0f) \
                  : 0.0f)
/* A float of 2^12 to 2^13 is a whole number of 1/2048. */
#define GPSTI_WARP_WHOLE_WEIGHT(height) (((height) + 6144.0f) - 6144.0f)

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_cubic_height(const gpsti_warp_window* window, int32_t i) {
    const float x = gpsti_abs32(gpsti_fma((float)i, window->step, window->origin));
    return GPSTI_WARP_CUBIC(gpsti_fma, window->top, x);
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_cubic_weight(const gpsti_warp_window* window, int32_t i) {
    const float height = gpsti_warp_cubic_height(window, i);
    return window->norm > 0.0f ? height * window->norm : GPSTI_WARP_WHOLE_WEIGHT(height);
}

GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_window_weight(const gpsti_warp_window* window, int32_t x) {
    if (window->top < 0.0f)
        return gpsti_warp_cubic_weight(window, x - window->begin);
    return gpsti_warp_height(window, x - window->begin) * window->norm;
}

/* PyTorch's centre, a float. */
GPSTI_DEVICE GPSTI_INLINE int64_t gpsti_warp_window_torch(float scale, int32_t i, int64_t unit) {
    const float centre = scale * ((float)i + 0.5f);
    return (int64_t)((double)centre * (double)unit);
}

/* Where the centre is, in units of 1 / (2 pixel) pixel. */
GPSTI_DEVICE GPSTI_INLINE int64_t gpsti_warp_window_centre(const gpsti_warp_axis* axis, int32_t i, int64_t pixel) {
    const int64_t n = 2 * ((int64_t)i + axis->first) + 1;
    return axis->scale > 0 ? gpsti_warp_window_torch(axis->scale, i + axis->first, 2 * pixel)
                           : 2 * (int64_t)axis->out * axis->begin + n * axis->extent;
}

/* AREA. The centre begin + (2 i + 1) * extent / (2 out), kept within the source, and the half width are exact, in units
   of 1 / (2 pixel) pixel. With s = extent / out the half width is max(s, 1) pixel. A box: what of a pixel lies between
   s / 2 on both sides of the centre is min((s + 1) / 2 - distance, s, 1), so the half width is (s + 1) / 2 and the top
   min(s, 1) of it; s is 1/1024 at the least, lest floats see no width. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_window gpsti_warp_window_area(const gpsti_warp_axis* axis, int32_t i) {
    gpsti_warp_window window;
    const int64_t pixel = (int64_t)axis->out << 17, last = 2 * pixel * axis->in;
    const int64_t at = gpsti_warp_window_centre(axis, i, pixel);
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

/* BICUBIC_AREA: the half widths are AREA's, the cubic reaches two of them. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_window gpsti_warp_window_cubic_area(const gpsti_warp_axis* axis, int32_t i) {
    gpsti_warp_window window;
    const int64_t pixel = (int64_t)axis->out << 17, last = 2 * pixel * axis->in;
    const int64_t at = gpsti_warp_window_centre(axis, i, pixel), centre = at < 0 ? 0 : at > last ? last : at;
    const int64_t half = 2 * (axis->extent > pixel ? axis->extent : pixel);
    const int64_t before = centre - 2 * half - pixel, end = (centre + 2 * half + pixel - 1) / (2 * pixel);
    float sum = 0.0f;
    window.begin = before < 0 ? 0 : (int32_t)(before / (2 * pixel)) + 1;
    window.end = end < axis->in ? (int32_t)end : axis->in;
    window.origin = (float)((2 * (int64_t)window.begin + 1) * pixel - centre) / (float)half;
    window.step = (float)(2 * pixel) / (float)half;
    window.top = -0.5f;
    for (int32_t k = 0; k < window.end - window.begin; k++)
        sum += gpsti_warp_cubic_height(&window, k);
    window.norm = 1.0f / sum;
    return window;
}

/* BICUBIC: the pixel up to the position, one ahead of it and two behind. Of rectangles whose position is two pixels and
   more outside only the edge is seen, wherever it is. PyTorch's position is a float. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_window gpsti_warp_window_taps(const gpsti_warp_axis* axis, int32_t i) {
    gpsti_warp_window window;
    const int64_t one = (int64_t)axis->out << 18, lift = 3 * one, last = ((int64_t)axis->in + 2) * one;
    const int64_t n = 2 * ((int64_t)i + axis->first) + 1;
    const int64_t at = 2 * (int64_t)axis->out * axis->begin + n * axis->extent - one / 2;
    const int64_t position = (at < -2 * one ? -2 * one : at > last ? last : at) + lift;
    int32_t pixel = (int32_t)(position / one) - 3;
    float fraction = (float)(position % one) / (float)one;
    if (axis->scale > 0) {
        const float given = gpsti_fma(axis->scale, (float)(i + axis->first) + 0.5f, -0.5f);
        pixel = (int32_t)given - (given < 0.0f ? 1 : 0);
        fraction = given - (float)pixel;
    }
    window.begin = pixel - 1, window.end = pixel + 3;
    window.origin = -1.0f - fraction, window.step = 1.0f;
    window.top = -0.75f;
    window.norm = axis->windows == GPSTI_WINDOWS_WHOLE_TAPS ? 0.0f : 1.0f;
    return window;
}

/* OPENCV's AREA of RESIZE on the axis that shrinks where the other one grows: the pixel where the output pixel begins,
   and of the next one as much as of the output pixel lies beyond it, if that is less than one. */
GPSTI_DEVICE GPSTI_INLINE gpsti_warp_window gpsti_warp_window_pair(const gpsti_warp_axis* axis, int32_t i) {
    gpsti_warp_window window;
    const int64_t n = (int64_t)i + axis->first, begin = n * axis->in / axis->out;
    const int64_t beyond = (n + 1) * axis->in - (begin + 1) * axis->out;
    const float fraction = beyond > 0 ? (float)beyond / (float)axis->in : 0.0f;
    window.begin = (int32_t)begin;
    window.end = window.begin + 1 < axis->in && beyond > 0 ? window.begin + 2 : window.begin + 1;
    window.origin = window.end > window.begin + 1 ? -fraction : 0.0f, window.step = 1.0f;
    window.norm = window.top = 1.0f;
    return window;
}

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_window gpsti_warp_window_of(const gpsti_warp_axis* axis, int32_t i) {
    if (axis->ahead)
        return axis->ahead->windows[i - axis->ahead->first];
    if (axis->windows == GPSTI_WINDOWS_AREA)
        return gpsti_warp_window_area(axis, i);
    if (axis->windows == GPSTI_WINDOWS_PAIR)
        return gpsti_warp_window_pair(axis, i);
    return axis->windows == GPSTI_WINDOWS_CUBIC ? gpsti_warp_window_cubic_area(axis, i)
                                                : gpsti_warp_window_taps(axis, i);
}

#endif
