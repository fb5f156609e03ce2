/* kernels/warp/warp_yuv_internal.h -- the reference of NV12 and I420 sources: where the
   chroma of an output pixel is looked up, and what colour comes of it. Plain C for the host and for
   devices. */
#ifndef GPSTI_WARP_YUV_INTERNAL_H
#define GPSTI_WARP_YUV_INTERNAL_H

#include "warp_area_internal.h"

/* A position in 1/32768 luma pixel, from -1 pixel to the size, in chroma pixels, rounded down: a sample lies
   on every other luma pixel (cosited) or between two. Where no luma is left, with ZERO, there is no chroma. */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_chroma_at(int32_t position, bool cosited, bool zero,
                                                       int32_t size, int32_t chroma_size) {
    const bool outside = zero && (position <= -32768 || position >= size * 32768);
    const int32_t at = (int32_t)(((uint32_t)position + 65536u - (cosited ? 0u : 16384u)) >> 1) - 32768;
    return outside ? chroma_size * 32768 : at;
}

GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_chroma_u(const gpsti_warp_job* job, int32_t u) {
    return gpsti_warp_chroma_at(u, job->cosited, job->border == GPST_BORDER_ZERO, job->source_width,
                                job->chroma_width);
}

GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_chroma_v(const gpsti_warp_job* job, int32_t v) {
    return gpsti_warp_chroma_at(v, false, job->border == GPST_BORDER_ZERO, job->source_height,
                                job->chroma_height);
}

/* RESIZE, ROI: the axes of the chroma from those of the luma. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_chroma_axes(gpsti_warp_job* job) {
    const int64_t shift = job->cosited ? 32768 : 0; /* a quarter of a chroma pixel */
    job->chroma_across = gpsti_warp_axis_of(job->across.begin / 2 + shift, job->across.extent / 2,
                                            job->chroma_width, job->across.out);
    job->chroma_down =
        gpsti_warp_axis_of(job->down.begin / 2, job->down.extent / 2, job->chroma_height, job->down.out);
    job->chroma_across.first = job->across.first, job->chroma_down.first = job->down.first;
    job->chroma_across.box = job->across.box, job->chroma_down.box = job->down.box;
    if (job->across.windows != GPSTI_WINDOWS_PAIR && job->down.windows != GPSTI_WINDOWS_PAIR)
        job->chroma_across.windows = job->across.windows, job->chroma_down.windows = job->down.windows;
}

/* ROI: the axes of a rectangle, once what a convention says of them is there. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_take_roi(const gpsti_warp_roi* roi, gpsti_warp_job* job) {
    job->across.begin = 2 * roi->x, job->across.extent = 2 * roi->width;
    job->down.begin = 2 * roi->y, job->down.extent = 2 * roi->height;
    if (job->cb)
        gpsti_warp_chroma_axes(job);
}

/* Cb and, 8 bits up, Cr. */
GPSTI_DEVICE GPSTI_INLINE uint32_t gpsti_warp_read_chroma(const gpsti_warp_job* job, int32_t x, int32_t y) {
    if (!gpsti_warp_border_of(job->border, job->chroma_width, job->chroma_height, &x, &y))
        return 128u | 128u << 8;
    const ptrdiff_t at = (ptrdiff_t)(y * job->chroma_pitch) + (ptrdiff_t)x * job->chroma_step;
    return (uint32_t)job->cb[at] | (uint32_t)job->cr[at] << 8;
}

/* Luma and chroma of 8 bits, as they are sampled, to red, green and blue of 0..255. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_clamp(float value) {
    const float high = value < 255.0f ? value : 255.0f;
    return high > 0.0f ? high : 0.0f;
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_rgb_of(const gpsti_warp_colours* k, const float yuv[3],
                                                 float rgb[3]) {
    rgb[0] = gpsti_warp_clamp(gpsti_fma(yuv[2], k->red_v, gpsti_fma(yuv[0], k->y, k->red)));
    rgb[1] = gpsti_warp_clamp(
        gpsti_fma(yuv[1], k->green_u, gpsti_fma(yuv[2], k->green_v, gpsti_fma(yuv[0], k->y, k->green))));
    rgb[2] = gpsti_warp_clamp(gpsti_fma(yuv[1], k->blue_u, gpsti_fma(yuv[0], k->y, k->blue)));
}

#endif
