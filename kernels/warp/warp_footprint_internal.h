/* kernels/warp/warp_footprint_internal.h -- the reference of the filter AREA where a map does not go by axes: where
   within
   an output pixel the samples lie whose mean it is. Plain C for the host and for devices. */
#ifndef GPSTI_WARP_FOOTPRINT_INTERNAL_H
#define GPSTI_WARP_FOOTPRINT_INTERNAL_H

#include "warp_map_internal.h"

#define GPSTI_WARP_MOST_SAMPLES 64 /* on each axis of an output pixel */

/* across x down samples, spread evenly over the output pixel. Of spheres, at is the direction of its centre, and steps
   are what a direction gains from one output pixel to the next, twist what step_x gains from one to the next below:
   of ROTATE that is a plane that touches the sphere. Of TABLE all are positions. Of AFFINE positions are integers, and
   steps are half of those from one sample to the next. */
typedef struct gpsti_warp_footprint {
    int32_t across, down;
    float at[3], step_x[3], step_y[3], twist[3];
    int64_t affine[2], affine_x[2], affine_y[2];
} gpsti_warp_footprint;

/* How many samples are at most a pixel apart, where output pixels are step pixels of the source apart. What is no more
   than rounding of a step makes no sample. */
GPSTI_DEVICE GPSTI_INLINE int32_t gpsti_warp_n_samples(float step) {
    const float most = (float)GPSTI_WARP_MOST_SAMPLES, within = step < most ? step : most;
    const int32_t n = (int32_t)(within + 1023.0f / 1024.0f);
    return n > 1 ? n : 1;
}

/* From an entry of a table to the one of the next output pixel, or from the one before, whichever is less: where the
   table jumps, as at a seam, one of the two does not. 0 where neither is near any source. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_table_step(const float* before, const float* entry, const float* behind,
                                                     float step[2]) {
    float least = 2.0f * (float)GPSTI_WARP_MAX_SIDE;
    step[0] = 0.0f, step[1] = 0.0f;
    for (int side = 0; side < 2; side++) {
        const float *const from = side == 0 ? before : entry, *const to = side == 0 ? entry : behind;
        if (!from || !to)
            continue;
        const float u = to[0] - from[0], v = to[1] - from[1], length = gpsti_abs32(u) + gpsti_abs32(v);
        if (length < least)
            least = length, step[0] = u, step[1] = v;
    }
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_table_footprint(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                          gpsti_warp_footprint* out) {
    const float* const entry = gpsti_warp_table_row(job, y) + 2 * (ptrdiff_t)x;
    const float* const above = y > 0 ? gpsti_warp_table_row(job, y - 1) + 2 * (ptrdiff_t)x : NULL;
    const float* const below = y + 1 < job->height ? gpsti_warp_table_row(job, y + 1) + 2 * (ptrdiff_t)x : NULL;
    gpsti_warp_table_step(x > 0 ? entry - 2 : NULL, entry, x + 1 < job->width ? entry + 2 : NULL, out->step_x);
    gpsti_warp_table_step(above, entry, below, out->step_y);
    out->at[0] = entry[0], out->at[1] = entry[1];
    out->across = gpsti_warp_n_samples(
        gpsti_sqrt32(gpsti_fma(out->step_x[0], out->step_x[0], out->step_x[1] * out->step_x[1])));
    out->down = gpsti_warp_n_samples(
        gpsti_sqrt32(gpsti_fma(out->step_y[0], out->step_y[0], out->step_y[1] * out->step_y[1])));
}

GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_affine_footprint(const gpsti_warp_job* job, int32_t x, int32_t y,
                                                           gpsti_warp_footprint* out) {
    const int64_t n = 2 * (int64_t)x + 1, m = 2 * (int64_t)y + 1;
    for (int i = 0; i < 2; i++) {
        const int64_t* const q = job->affine.q + 3 * i;
        out->affine[i] = q[0] * n + q[1] * m + q[2];
        out->affine_x[i] = q[0] / job->n_across, out->affine_y[i] = q[1] / job->n_down;
    }
}

GPSTI_DEVICE GPSTI_INLINE gpsti_warp_footprint gpsti_warp_footprint_of(const gpsti_warp_job* job, int32_t x,
                                                                       int32_t y) {
    gpsti_warp_footprint out;
    memset(&out, 0, sizeof out);
    out.across = job->n_across, out.down = job->n_down;
    if (job->map == GPST_MAP_TABLE) {
        gpsti_warp_table_footprint(job, x, y, &out);
    } else if (job->map == GPST_MAP_AFFINE) {
        gpsti_warp_affine_footprint(job, x, y, &out);
    } else if (job->map == GPST_MAP_ROTATE) {
        gpsti_warp_turned_ray(job, x, y, out.at);
        for (int c = 0; c < 3; c++)
            gpsti_warp_turned_steps(job, x, y, c, &out.step_x[c], &out.step_y[c], &out.twist[c]);
    } else {
        gpsti_warp_view_ray(job, x, y, out.at);
        for (int c = 0; c < 3; c++)
            gpsti_warp_view_steps(job, c, &out.step_x[c], &out.step_y[c]);
    }
    return out;
}

/* How far sample i of n lies from the middle of the output pixel, in output pixels. */
GPSTI_DEVICE GPSTI_INLINE float gpsti_warp_sample_at(int32_t i, int32_t n) {
    return (float)(2 * i + 1 - n) * (0.5f / (float)n);
}

/* Sample (i, j) of an output pixel, in 1/32768 pixel, from -1 pixel to the size. */
GPSTI_DEVICE GPSTI_INLINE void gpsti_warp_sample_position(const gpsti_warp_job* job,
                                                          const gpsti_warp_footprint* footprint, int32_t i, int32_t j,
                                                          int32_t* u, int32_t* v) {
    const gpsti_warp_footprint* const f = footprint;
    if (job->map == GPST_MAP_AFFINE) {
        const int64_t n = 2 * i + 1 - f->across, m = 2 * j + 1 - f->down;
        *u = gpsti_warp_affine_at(f->affine[0] + n * f->affine_x[0] + m * f->affine_y[0], job->source_width);
        *v = gpsti_warp_affine_at(f->affine[1] + n * f->affine_x[1] + m * f->affine_y[1], job->source_height);
        return;
    }
    const float x = gpsti_warp_sample_at(i, f->across), y = gpsti_warp_sample_at(j, f->down);
    float at[3];
    for (int c = 0; c < 3; c++)
        at[c] = gpsti_fma(x, gpsti_fma(y, f->twist[c], f->step_x[c]), gpsti_fma(y, f->step_y[c], f->at[c]));
    if (job->map == GPST_MAP_TABLE) {
        *u = gpsti_warp_table_at(at[0], job->source_width, false);
        *v = gpsti_warp_table_at(at[1], job->source_height, false);
    } else {
        gpsti_warp_sphere(job, at, u, v);
    }
}

#endif
