/* kernels/warp/warp_internal.h -- how the engine launches a warp through a backend,
   and what a warp is inside. */
#ifndef GPSTI_WARP_INTERNAL_H
#define GPSTI_WARP_INTERNAL_H

#include "../../backends/backend.h"
#include "../launch/launch_internal.h"
#include "warp.h"

/* The argument block of gpsti_warp_kernel(); every pointer lives until the launch is done. */
typedef struct gpsti_warp_args {
    const gpst_warp* warp;
    const gpst_image* sources;
    uint32_t n_sources;        /* at least 1 */
    const gpst_image* outputs; /* n_outputs of each source, source by source */
    uint32_t n_outputs;
    uint32_t first_output; /* outputs[0] is this view */
    const void *mask, *table; /* the device's copies; NULL: the warp's own */
    /* list_per_item: the list of the one source, gpsti_warp_list_channels floats an output. Rois are read by whoever
       computes, where they lie; affines and views by the host. NULL: the warp's own. */
    const float* list;
    /* With a list of rois, and read where that is: so many of them count, and the outputs of the others become 0.
       NULL: all. */
    const uint32_t* n_used;
    const gpst_view* pose; /* EQUIRECT: how the sources were turned when they were taken; NULL: upright */
} gpsti_warp_args;

GPSTI_INTERN const gpsti_kernel* gpsti_warp_kernel(void);
#if defined(GPSTI_GPU)
GPSTI_LINK gpst_result gpsti_warp_kernel_gpu(const void* args, void* native_stream);
#endif
/* Everything gpst_warp_run checks, without running: ARGUMENT with the reason set. */
GPSTI_INTERN gpst_result gpsti_warp_check(const gpst_warp* warp, const gpst_image* source,
                                          const gpst_image* outputs, uint32_t n_outputs);
/* COVER makes no source of a width and height of 1 or more larger than it can compute. */
GPSTI_INTERN gpst_result gpsti_warp_check_resized(const gpst_warp* warp, uint32_t width, uint32_t height,
                                                  const char* function);
/* Outside of a pipeline a warp needs a list of its own. */
GPSTI_INTERN gpst_result gpsti_warp_check_list(const gpst_warp* warp, const char* function);
/* Every rule that gpst_warp_create has for affines and views, on n of them in an item's list in host memory; the reason
   begins "where: ". Rois have none here. */
GPSTI_INTERN gpst_result gpsti_warp_check_entries(const gpst_warp* warp, const void* list, uint32_t n,
                                                  const char* where);
/* Floats of an entry of an item's list: the members of gpst_roi, gpst_affine or gpst_view; and what they are called. */
GPSTI_INTERN uint32_t gpsti_warp_list_channels(gpst_map map);
GPSTI_INTERN const char* gpsti_warp_list_name(gpst_map map);
/* An entry's numbers, wherever it lies. */
GPSTI_INTERN gpst_affine gpsti_warp_list_affine(const void* entry);
GPSTI_INTERN gpst_view gpsti_warp_list_view(const void* entry);
/* An image by itself: data, sizes, format, dtype, layout, pitch, alignment. The reason begins "function:
   member." */
GPSTI_INTERN gpst_result gpsti_image_check(const gpst_image* image, const char* function, const char* member);
GPSTI_INTERN uint32_t gpsti_image_channels(const gpst_image* image); /* 0: the format is none */
/* gpst_image_bytes, with the names of the function and the parameter in the reason. */
GPSTI_INTERN gpst_result gpsti_image_extent(const gpst_image* image, const char* function, const char* member,
                                            size_t* out);
GPSTI_INTERN gpst_image gpsti_image_resolved(const gpst_image* image); /* the defaults written out */
GPSTI_INTERN bool gpsti_image_is_yuv(gpst_format format); /* Y with the chroma behind it: NV12, I420, JPEG's */
GPSTI_INTERN bool gpsti_image_is_jpeg(gpst_format format); /* JPEG's alone */
/* The chroma of such an image whose pitch is resolved; luma_rows * pitch_bytes behind its data. */
typedef struct gpsti_image_chroma {
    int64_t pitch_bytes;
    uint64_t luma_rows;
    uint32_t width, height, step, n_planes; /* step: bytes from one sample to the next */
    uint32_t across, down;                  /* pixels of a sample */
} gpsti_image_chroma;
GPSTI_INTERN gpsti_image_chroma gpsti_image_chroma_of(const gpst_image* image);
/* Rows from one image to another of the same shape, any pitch; both are checked and do not overlap. */
GPSTI_INTERN void gpsti_image_copy(const gpst_image* from, const gpst_image* to);
/* The lowest address of a checked image; gpst_image_bytes are there. */
GPSTI_INTERN const uint8_t* gpsti_image_lowest(const gpst_image* image);

/* ---- the inside ------------------------------------------------------------------ */
#define GPSTI_WARP_MAX_SIDE \
    65535              /* of sources and outputs: positions are 16 bits of pixel and 15 of fraction */
#define GPSTI_BLOCK 64 /* pixels that the CPU's loops take together; a multiple of every vector's length */
#define GPSTI_BORDER_SPHERE 3      /* beside gpst_border: around in x, over the poles in y */
#define GPSTI_WARP_CHANNEL_FULL 32 /* as a shift: a channel that the source lacks and that reads 255 */

/* Ray of output pixel (i, j): component c is a[c] * n + (b[c] * m + d[c]), n = 2 i + 1 - width, m = 2 j + 1 -
   height. a is split in two floats: where the sum cancels, near the poles, what is left is still right to a
   float's precision. */
typedef struct gpsti_warp_view {
    float a_high[3], a_low[3];
    double a[3], b[3], d[3];
    double tan_x, tan_y;
    double rotation[9];
} gpsti_warp_view;

#define GPSTI_WARP_AXIS_UNIT 131072
#define GPSTI_WARP_MAX_RESIZED 1048576 /* of the picture that COVER cuts from: taps are computed in 64 bits */

/* The windows of an axis: AREA's, and of OPENCV on the axis that shrinks where the other one grows; BICUBIC's, and
   with OPENCV's weights; BICUBIC_AREA's. */
typedef enum gpsti_windows {
    GPSTI_WINDOWS_AREA = 0,
    GPSTI_WINDOWS_PAIR = 1,
    GPSTI_WINDOWS_TAPS = 2,
    GPSTI_WINDOWS_WHOLE_TAPS = 3, /* of 1/2048 */
    GPSTI_WINDOWS_CUBIC = 4
} gpsti_windows;

/* An axis of RESIZE and ROI: out output pixels over extent source pixels from begin, both in
   1/GPSTI_WARP_AXIS_UNIT pixel. */
typedef struct gpsti_warp_axis {
    int64_t begin, extent;
    int32_t in, out;
    int32_t first; /* COVER: the output's first pixel is this one of the out */
    float scale;   /* TORCH but for NEAREST: extent / out; else 0 */
    bool corner;   /* of an output pixel's first corner, not of its centre */
    bool box;      /* AREA: what an output pixel covers, not a triangle */
    uint8_t windows; /* gpsti_windows */
    const struct gpsti_warp_ahead* ahead; /* NULL: each pixel computes its own */
} gpsti_warp_axis;

typedef struct gpsti_warp_roi { /* in 1/65536 pixel */
    int64_t x, y, width, height;
} gpsti_warp_roi;

/* Positions of output pixel (i, j) in 1/2^29 pixel, 0 = centre of the first: q[0] * n + q[1] * m + q[2] in x,
   the rest in y; n = 2 i + 1, m = 2 j + 1. */
typedef struct gpsti_warp_matrix {
    int64_t q[6];
} gpsti_warp_matrix;

/* What each map keeps of its outputs, n_outputs of each; NULL for other maps, and with list_per_item. */
struct gpst_warp {
    gpsti_host host;
    size_t bytes;               /* of this block with all that follows it */
    gpst_warp_desc desc;        /* resolved; of the caller's lists only views, copied, and rois in place are kept */
    gpst_view* views;           /* EQUIRECT, ROTATE */
    gpsti_warp_view* plans;     /* EQUIRECT, ROTATE: there the rotation only */
    gpsti_warp_roi* rois;       /* ROI, not in place */
    gpsti_warp_matrix* affines; /* AFFINE */
    float* turns;               /* ROTATE: turn_floats each; see gpsti_warp_job */
    size_t turn_floats;
    uint32_t n_outputs;
    gpsti_simd_level level;
    uint64_t serial; /* of no other warp of the process */
};

/* red = y Y + red_v V + red, and so on. */
typedef struct gpsti_warp_colours {
    float y, red_v, green_u, green_v, blue_u;
    float red, green, blue;
} gpsti_warp_colours;

/* A rectangle that is known when its run's turn comes: read by whoever computes. */
typedef struct gpsti_warp_listed {
    const gpst_roi* roi;
    const uint32_t* n_used; /* NULL: all count */
    uint32_t index;
} gpsti_warp_listed;

/* One output of one call as plain data, the same for the CPU and a GPU. */
typedef struct gpsti_warp_job {
    gpst_map map;
    gpst_filter filter;
    gpst_convention convention;
    gpst_dtype dtype;
    gpst_layout layout;
    bool has_scale;
    int border; /* gpst_border or GPSTI_BORDER_SPHERE */

    const uint8_t* source;
    int64_t source_pitch;
    int32_t source_width, source_height;
    uint32_t source_pixel_bytes;
    uint32_t
        shift[4]; /* of output channel c in a source pixel read low byte first; GPSTI_WARP_CHANNEL_FULL */

    gpst_dtype source_dtype;
    float full;         /* a channel that the source lacks */
    float not_a_number; /* what NaN is stored as */
    uint32_t outside; /* what source reads where the border says that there is nothing */

    /* NV12 and I420, where source is Y; cb is NULL for others. */
    const uint8_t *cb, *cr;
    int64_t chroma_pitch;
    int32_t chroma_step, chroma_width, chroma_height;
    bool cosited; /* across; down they never are */
    /* The planes of JPEG, where source is Y, too: the pixels of a sample of chroma. 0 for others. */
    uint8_t jpeg_across, jpeg_down;
    gpsti_warp_colours colours;

    /* EQUIRECT and ROTATE, in 1/32768 pixel: position = angle * scale + offset; quarter is a right angle. */
    float scale_u, scale_v;
    int32_t quarter_u, quarter_v, offset_u, offset_v;

    const uint8_t* mask; /* NULL: keep all */
    int64_t mask_pitch;

    uint8_t* output; /* of the map's first pixel, of which there are */
    int64_t output_pitch, plane_bytes;
    int32_t width, height;
    /* The whole output, and where in it the map's pixels begin; the others are bars. */
    int32_t output_width, output_height, left, top;
    float bar[4]; /* as stored, but for the store's rounding */
    uint32_t n_channels;
    float scale[4], bias[4];

    gpsti_warp_axis across, down; /* RESIZE, ROI; of rois in place from gpsti_warp_take_roi on */
    gpsti_warp_axis chroma_across, chroma_down;
    bool rois_in_place; /* or an item's */
    bool clears;        /* outputs of rois that do not count become 0; else they stay */
    gpsti_warp_listed listed;
    gpsti_warp_view view;     /* EQUIRECT */
    gpsti_warp_matrix affine; /* AFFINE */
    const float* table;       /* TABLE */
    int64_t table_pitch;
    /* ROTATE, in pairs of floats, high and low. Of the columns, six arrays turn_stride apart: what
       cos(latitude) is multiplied with, in x, y and z. Of each row, eight floats: cos(latitude), and what is
       added in x, y and z. Then as single floats what three of the first and four of the second gain to the next
       output pixel. */
    const float *turn_columns, *turn_rows;
    int32_t turn_stride;
    int32_t n_across, n_down; /* AREA of spheres and AFFINE: samples of an output pixel; else 0 */

    /* On a GPU, where a block of pixels computes ahead what its rows and columns have in common: of which output
       column and row the first of turn_columns, turn_rows and view_rows is. Else 0 and NULL. */
    int32_t first_column, first_row;
    const struct gpsti_warp_row* view_rows;
} gpsti_warp_job;

/* How a source's side becomes the output's: resized to so many pixels, of which `size` are seen, from `first` on, and
   stand from `begin` on. */
typedef struct gpsti_warp_fit {
    uint64_t resized;
    int32_t first, begin, size;
} gpsti_warp_fit;
GPSTI_INTERN void gpsti_warp_fit_of(const gpst_warp_desc* desc, uint32_t source_width, uint32_t source_height,
                                    gpsti_warp_fit* across, gpsti_warp_fit* down);
/* Every rule of a desc. */
GPSTI_INTERN gpst_result gpsti_warp_check_desc(const gpst_warp_desc* desc);
/* Outputs of a checked desc. */
GPSTI_INTERN uint32_t gpsti_warp_count_outputs(const gpst_warp_desc* desc);
/* Everything that follows from the desc, into a warp whose memory is laid out. */
GPSTI_INTERN void gpsti_warp_plan(gpst_warp* warp, const gpst_warp_desc* desc);
GPSTI_INTERN size_t gpsti_warp_turn_floats(uint32_t width, uint32_t height);
/* What a device with memory of its own needs a copy of: bytes 0 where there is none. mask is the lowest byte of the
   mask's rows, mask_data how far above it the first row begins. */
GPSTI_INTERN void gpsti_warp_query_constants(const gpst_warp* warp, const void** mask, size_t* mask_bytes,
                                             ptrdiff_t* mask_data, const void** table, size_t* table_bytes);
/* warp and images as gpsti_warp_check passes them. */
GPSTI_LINK void gpsti_warp_job_init(const gpst_warp* warp, const gpst_image* source, const gpst_image* output,
                                    uint32_t output_index, gpsti_warp_job* out);
/* That of image number `image` of a call, with what the call knows besides: the device's copies in place of the warp's
   own, and where the rectangle is listed. */
GPSTI_LINK void gpsti_warp_job_of(const gpsti_warp_args* args, uint64_t image, gpsti_warp_job* out);
/* Rows y_begin up to y_end of the map's pixels of one output, on this thread. */
GPSTI_INTERN void gpsti_warp_rows(const gpsti_warp_job* job, gpsti_simd_level level, int32_t y_begin,
                                  int32_t y_end);
/* The bars of rows y_begin up to y_end of the whole output. */
GPSTI_INTERN void gpsti_warp_bars(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end);
/* Rows of the whole output by the per-pixel reference. */
GPSTI_INTERN void gpsti_warp_rows_reference(const gpsti_warp_job* job, int32_t y_begin, int32_t y_end);
/* All outputs; n_threads as in gpst_warp_run. */
GPSTI_INTERN void gpsti_warp_compute(const gpsti_warp_args* args, uint32_t n_threads);

#endif
