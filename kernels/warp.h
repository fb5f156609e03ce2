/* kernels/warp.h -- the one operation behind resize and reprojection: a map
   gives every output pixel a source position, a sampler reads it, a pixel transform changes it, a store writes it.
   All in one pass over memory. */
#ifndef GPSTI_WARP_H
#define GPSTI_WARP_H

#include "image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_map {
    GPST_MAP_INVALID = 0,
    GPST_MAP_RESIZE = 1,
    GPST_MAP_EQUIRECT = 2 /* equirectangular -> perspective, one output per view */
} gpst_map;

typedef enum gpst_filter { GPST_FILTER_DEFAULT = 0, GPST_FILTER_NEAREST = 1, GPST_FILTER_BILINEAR = 2 } gpst_filter;

typedef enum gpst_convention {
    GPST_CONVENTION_DEFAULT = 0, /* native */
    GPST_CONVENTION_NATIVE = 1,  /* half-pixel centres on both sides */
    GPST_CONVENTION_FFMPEG = 2   /* equirect: FFmpeg 5.1 v360's W-1 input mapping, weights and truncation */
} gpst_convention;

/* Degrees. Yaw turns right, pitch up, roll clockwise; roll is applied first, then pitch, then yaw. */
typedef struct gpst_view {
    double yaw, pitch, roll;
    double hfov, vfov; /* 0 < fov < 180; hfov 0 = 90; vfov 0 = square pixels */
} gpst_view;

typedef struct gpst_warp_desc {
    uint32_t start_canary;
    gpst_map map;                 /* required */
    gpst_filter filter;           /* default bilinear */
    gpst_convention convention;
    const gpst_view* views;       /* EQUIRECT: n_views of them; copied */
    uint32_t n_views;             /* EQUIRECT: required; RESIZE: 0 or 1 */
    uint32_t width, height;       /* of every output; required */
    gpst_format format;           /* of the outputs; required. From GRAY: repeated. From RGBA: alpha dropped or sampled.
                                     To RGBA from a source without alpha: 255. Colour to GRAY: refused */
    gpst_dtype dtype;
    gpst_layout layout;
    bool has_scale;               /* store value * scale[c] + bias[c] (c in output order) instead of value */
    float scale[4], bias[4];
    gpst_image mask;              /* EQUIRECT: GRAY u8 of the source's geometry, non-zero = keep; data NULL = none.
                                     Sampled to the nearest pixel by the same map; dropped pixels become 0 (before scale
                                     and bias for float stores: the stored value is 0). Must live as long as the warp */
    uint32_t end_canary;
} gpst_warp_desc;

typedef struct gpst_warp gpst_warp;

#define gpst_warp_create(desc, out) gpst_warp_create_versioned(GPST_VERSION, sizeof(gpst_warp_desc), (desc), NULL, (out))
GPST_API gpst_result gpst_warp_create_versioned(uint32_t version, size_t desc_bytes, const gpst_warp_desc* desc,
                                                const gpst_allocator* allocator, gpst_warp** out);
GPST_API void gpst_warp_destroy(gpst_warp* warp);
GPST_API uint32_t gpst_warp_n_outputs(const gpst_warp* warp);
GPST_API void gpst_warp_query_output(const gpst_warp* warp, gpst_image* out); /* shape of each output, tight pitch, data NULL */
/* Computes on the CPU, now. n_threads: 1 = on the calling thread; 0 = all cores through OpenMP where compiled in. */
GPST_API gpst_result gpst_warp_run(const gpst_warp* warp, const gpst_image* source, const gpst_image* outputs,
                                   uint32_t n_outputs, uint32_t n_threads);
/* Where in the source output pixel (x, y) of a view is looked up, in pixels, computed in double precision. */
GPST_API gpst_result gpst_warp_position(const gpst_warp* warp, uint32_t output_index, uint32_t x, uint32_t y,
                                        uint32_t source_width, uint32_t source_height, double* source_x,
                                        double* source_y);
/* Row-major 3x3 rotation, camera to world (x right, y down, z forward), of a view: our own arithmetic, the same bits
   everywhere. */
GPST_API void gpst_view_rotation(const gpst_view* view, double out[9]);
/* Unique source bytes read and output bytes written for one source of this size (an estimate by rows for EQUIRECT). */
GPST_API void gpst_warp_query_bytes(const gpst_warp* warp, const gpst_image* source, uint64_t* read_bytes,
                                    uint64_t* written_bytes);

#ifdef __cplusplus
}
#endif
#endif
