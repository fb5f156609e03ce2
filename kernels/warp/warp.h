/* kernels/warp/warp.h -- the one operation behind resize and reprojection: a map
   gives every output pixel a source position, a sampler reads it, a pixel transform changes it, a store
   writes it. All in one pass over memory. */
#ifndef GPSTI_WARP_H
#define GPSTI_WARP_H

#include "../image/image.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_map {
    GPST_MAP_INVALID = 0,
    GPST_MAP_RESIZE = 1,
    GPST_MAP_EQUIRECT = 2, /* equirectangular -> perspective, one output per view */
    GPST_MAP_ROI = 3,      /* resize of a rectangle, one output per roi */
    GPST_MAP_AFFINE = 4,   /* one output per matrix */
    GPST_MAP_ROTATE = 5,   /* equirectangular -> equirectangular, one output per view */
    GPST_MAP_TABLE = 6     /* the caller says where each pixel is looked up */
} gpst_map;

typedef enum gpst_filter {
    GPST_FILTER_DEFAULT = 0,
    GPST_FILTER_NEAREST = 1,
    GPST_FILTER_BILINEAR = 2,
    GPST_FILTER_AREA = 3,         /* antialiased: the mean over what an output pixel covers */
    GPST_FILTER_BICUBIC = 4,      /* RESIZE, ROI: 4 x 4 taps, a = -0.75; edges repeat */
    GPST_FILTER_BICUBIC_AREA = 5  /* RESIZE, ROI: antialiased, a = -0.5, as wide as the source is made smaller */
} gpst_filter;

/* What RESIZE makes of a source whose shape is not the outputs'. */
typedef enum gpst_fit {
    GPST_FIT_STRETCH = 0,   /* it takes theirs */

    /* All of it, as large as it fits in, in the middle; the rest is bars. As Ultralytics' LetterBox: with ratio =
       min(height / source height, width / source width) in doubles each side is the source's times the ratio, to the
       nearest pixel, ties to even, 1 at the least; an odd pixel of the bars goes right and below. */
    GPST_FIT_LETTERBOX = 1,

    /* Its shorter side becomes short_side, the longer one short_side * longer / shorter, rounded down; of that the
       middle, which begins at half of the pixels that are too many, a half to even. As torchvision's Resize(short_side)
       and CenterCrop. Where the output is larger there are bars. */
    GPST_FIT_COVER = 2
} gpst_fit;

/* What lies beyond the source's edge. Equirectangular sources have none: there it goes around. */
typedef enum gpst_border {
    GPST_BORDER_DEFAULT = 0, /* ZERO with AFFINE and TABLE, else EDGE */
    GPST_BORDER_EDGE = 1,    /* the nearest pixel of the edge */
    GPST_BORDER_ZERO = 2     /* 0 in every channel that the source has, ahead of scale and bias */
} gpst_border;

/* What the numbers of NV12 and I420 mean: matrix and range. */
typedef enum gpst_yuv {
    GPST_YUV_DEFAULT = 0,     /* BT709_VIDEO: HD video as decoders give it */
    GPST_YUV_BT601_VIDEO = 1, /* Y 16..235, Cb and Cr 16..240: SD video, cameras, OpenCV's conversions */
    GPST_YUV_BT601_FULL = 2,  /* 0..255: JPEG */
    GPST_YUV_BT709_VIDEO = 3,
    GPST_YUV_BT709_FULL = 4
} gpst_yuv;

/* Where the chroma of NV12 and I420 lies across; down it is between two rows. */
typedef enum gpst_siting {
    GPST_SITING_DEFAULT = 0, /* LEFT: MPEG-2, H.264, H.265 unless they say otherwise */
    GPST_SITING_LEFT = 1,    /* on every other pixel, from the first */
    GPST_SITING_CENTER = 2   /* between two pixels: MPEG-1, JPEG */
} gpst_siting;

/* Whose results come out. Where another project does what NATIVE does, its name changes nothing: of a convention only
   the differences are listed, each measured against that project (tests/golden, docs/conventions.md). */
typedef enum gpst_convention {
    GPST_CONVENTION_DEFAULT = 0, /* native */
    GPST_CONVENTION_NATIVE = 1,  /* half-pixel centres on both sides */

    /* EQUIRECT: FFmpeg 5.1's v360, its W-1 input mapping, weights and truncation. */
    GPST_CONVENTION_FFMPEG = 2,

    /* OpenCV 4. RESIZE, ROI: resize, NEAREST as INTER_NEAREST (pixel floor(i in / out)), AREA as INTER_AREA (the part
       of each pixel that the output pixel covers; of RESIZE where one axis grows two pixels on the one that shrinks, as
       OpenCV), BICUBIC as INTER_CUBIC (of U8 sources weights in whole 1/2048). AFFINE: warpAffine with
       WARP_INVERSE_MAP: m maps centres, which lie on whole numbers on both sides. AFFINE, TABLE (remap), EQUIRECT,
       ROTATE: BILINEAR at positions rounded to 1/32 pixel. OpenCV 5 has the same resize, but no such grid any more. */
    GPST_CONVENTION_OPENCV = 3,

    /* RESIZE: PyTorch's interpolate, align_corners=False. NEAREST as mode="nearest" (pixel floor(i in / out); what
       NATIVE does is "nearest-exact"), BILINEAR as mode="bilinear" and AREA as the same with antialias=True, BICUBIC
       and BICUBIC_AREA as mode="bicubic" without and with it, all with positions in floats as there. */
    GPST_CONVENTION_TORCH = 4,

    /* EQUIRECT: py360convert 1.0's e2p through OpenCV: the first and the last pixel lie on the edges of the view
       (linspace), so width and height are 2 or more; BILINEAR at positions rounded to 1/32 pixel. */
    GPST_CONVENTION_PY360 = 5
} gpst_convention;

/* gpst_view -- a perspective camera at the centre of the sphere

   Degrees, angles within +-1e6. Yaw turns right, pitch up, roll clockwise; roll is applied first, then pitch,
   then yaw: as FFmpeg's v360=e:flat.

   Ownership    the caller's; copied by whoever keeps it
   Since 0.1
*/
typedef struct gpst_view {
    double yaw, pitch, roll;
    double hfov, vfov; /* 0 < fov < 180; hfov 0 = 90; vfov 0 = square pixels */
} gpst_view;

/* gpst_roi -- a rectangle of the source that becomes an output

   In pixels of the source: x = 0 is the left edge of the first pixel, so (0, 0, W, H) is the whole source and
   gives what RESIZE gives. Kept to 1/65536 pixel; x and y within +-2^20, width and height above 0 and at most
   2^20. Of rois in place nobody can check that: what is beyond is the nearest number within, a side below 0 is 0,
   NaN is -2^20, or a side of 0. It may lie partly or wholly outside, where the border rules. Taps are not cut at
   the rectangle: the neighbours beyond it are read.

   Ownership    the caller's; copied by whoever keeps it
   Since 0.1
*/
typedef struct gpst_roi {
    float x, y, width, height;
} gpst_roi;

/* gpst_affine -- a matrix from output to source

   The output point (x, y) shows the source point (m[0] x + m[1] y + m[2], m[3] x + m[4] y + m[5]); pixel i
   has its centre at i + 1/2 on both sides (OPENCV: at i), so RESIZE is {W/width, 0, 0, 0, H/height, 0}. m[2]
   and m[5] within +-2^29, the others within +-65536, all kept to 1/2^28.

   Ownership    the caller's; copied by whoever keeps it
   Since 0.1
*/
typedef struct gpst_affine {
    double m[6];
} gpst_affine;

/* gpst_warp_desc -- what a warp does; zero it, then set map, width, height, format, and the list of the map

   Ownership    the caller's, read during create only; views, rois and affines are copied, but for rois_in_place;
                these, table and the pixels of mask must live as long as the warp
   Since 0.1
*/
typedef struct gpst_warp_desc {
    uint32_t start_canary;      /* 0 */
    gpst_map map;               /* required */
    gpst_filter filter;         /* default bilinear */
    gpst_convention convention; /* default native */
    gpst_border border;         /* EDGE only with RESIZE, and ROI with AREA, BICUBIC and BICUBIC_AREA; none with
                                   EQUIRECT and ROTATE */
    const gpst_view* views;     /* EQUIRECT, ROTATE: n_views of them; ROTATE: hfov and vfov 0 */
    uint32_t n_views;           /* EQUIRECT, ROTATE: required; RESIZE: 0 or 1 */
    const gpst_roi* rois;       /* ROI: n_rois of them */
    uint32_t n_rois;            /* ROI: required */

    /* ROI: rois are not copied but read where they lie, by each run when its turn comes: of gpst_warp_launch, in
       memory that the device reads, where a kernel ahead in the stream may have put them. n_rois for each source of a
       launch, source after source. n_rois_used, in the same memory, one for each source: so many count, at most
       n_rois; the outputs of the others stay as they are. NULL: all count. No output may lie over either. */
    bool rois_in_place;
    const uint32_t* n_rois_used;
    const gpst_affine* affines; /* AFFINE: n_affines of them */
    uint32_t n_affines;         /* AFFINE: required */

    gpst_fit fit;               /* not STRETCH: only with RESIZE */
    uint32_t short_side;        /* COVER; 0 = the least that leaves no bars; at most 65535 */
    /* LETTERBOX, COVER: the bars' colour, c in output order, of 255, whatever the source's dtype: 114 of a source of
       floats is 114 / 255. Then scale, bias and the store's rounding as of any pixel; a mask drops none of it. */
    float fill[4];

    /* ROI, AFFINE, EQUIRECT, for WARP stages only: every item of the pipeline has a list of its own, of at most n_rois,
       n_affines or n_views (gpst_stage_desc.second_set). rois, affines and views are NULL. */
    bool list_per_item;

    /* TABLE: float[height][width][2], x and y of each output pixel in pixels of the source, 0 = centre of the
       first, as gpst_warp_position says them; rounded to 1/32768. NaN is outside. Not copied. */
    const float* table;
    int64_t table_pitch_bytes; /* 0 = width * 8; a multiple of 4 */

    /* Of every output: sizes 1..65535 and format are required. Format from a GRAY source: repeated; from
       RGBA and BGRA: alpha dropped or sampled, straight, never multiplied in; alpha from a source without one:
       full (255; 65535 of U16, 1 of floats); GRAY from colour: refused, NV12's, I420's and JPEG's too. */
    uint32_t width, height;
    gpst_format format;
    gpst_dtype dtype;
    gpst_layout layout;

    /* Store value * scale[c] + bias[c] (c in output order) instead of value. Both finite. U8, I8 and U16
       round the result to nearest even and clamp it. I8 requires it. */
    bool has_scale;
    bool scale_of_full; /* with has_scale: of value / full instead, full as above: one warp for sources of any dtype */
    float scale[4], bias[4];

    gpst_yuv yuv;       /* of NV12 and I420 sources */
    gpst_siting siting; /* of NV12 and I420 sources; NEAREST takes the chroma of the pixel's 2 x 2 */
    /* Neither is for the planes of JPEG, whose pixels are those of libjpeg-turbo. */

    /* GRAY u8 of the source's size, non-zero = keep; data NULL = none. Sampled to the nearest pixel by the
       same map; dropped pixels, and those outside with ZERO, are stored as 0 in every channel, whatever scale
       and bias are. */
    gpst_image mask;
    uint32_t end_canary; /* 0 */
} gpst_warp_desc;

typedef struct gpst_warp gpst_warp;

/* gpst_warp_create -- checks everything, plans the views; the warp never changes afterwards

   Parameters   desc       (in)   not NULL
                allocator  (in)   (versioned form) NULL = the C library; copied
                out        (out)  the warp; NULL on failure
   Shapes       as many outputs as views, rois or affines, else one; all of width x height
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (a member breaks its rule; the reason names it) |
                GPST_ERROR_VERSION | GPST_ERROR_MEMORY | GPST_ERROR_OVERFLOW | GPST_ERROR_UNSUPPORTED (this
                build cannot keep the promise of the same bits: -ffast-math, x87)
   Ownership    destroy with gpst_warp_destroy
   Threads      any
   Blocking     never; one allocation
   Device       none
   Source       kernels/warp/warp.c       Tests  tests/test_warp.c          Since 0.1
*/
#define gpst_warp_create(desc, out) \
    gpst_warp_create_versioned(GPST_VERSION, sizeof(gpst_warp_desc), (desc), NULL, (out))
GPST_API gpst_result gpst_warp_create_versioned(uint32_t version, size_t desc_bytes,
                                                const gpst_warp_desc* desc, const gpst_allocator* allocator,
                                                gpst_warp** out);

/* gpst_warp_destroy -- frees a warp

   Parameters   warp  (in)  NULL is a no-op
   Shapes       none
   Returns      nothing
   Ownership    the warp is gone; a mask stays the caller's
   Threads      one, and nothing that uses the warp is running
   Blocking     never
   Device       none
   Source       kernels/warp/warp.c       Tests  tests/test_warp.c          Since 0.1
*/
GPST_API void gpst_warp_destroy(gpst_warp* warp);

/* gpst_warp_n_outputs, gpst_warp_query_output -- how many outputs a source has, and the shape of each

   Parameters   warp  (in)   not NULL (n_outputs: NULL gives 0)
                out   (out)  width, height, format, dtype, layout, pitch_bytes without gaps; data NULL
   Shapes       the same for every output
   Returns      the number of outputs; nothing
   Ownership    out is the caller's
   Threads      any
   Blocking     never
   Device       none
   Source       kernels/warp/warp.c       Tests  tests/test_warp.c          Since 0.1
*/
GPST_API uint32_t gpst_warp_n_outputs(const gpst_warp* warp);
GPST_API void gpst_warp_query_output(const gpst_warp* warp, gpst_image* out);

/* gpst_warp_run -- computes every output of one source, on the CPU, now

   Parameters   warp       (in)  not NULL
                source     (in)  HWC, any format (GRAY where the outputs are GRAY); U8, U16, F16 or F32, with
                                 NV12, I420 and those of JPEG U8; FFMPEG: neither NV12 and I420 nor wider than a
                                 byte; 1..65535 on a side; of the mask's size where there is one; COVER: at most
                                 1048576 on a side once it is resized
                outputs    (in)  n_outputs images of the shape that gpst_warp_query_output gives, with any
                                 pitch; they must not overlap the source, the mask or the table, judged by
                                 their first and last bytes
                n_outputs  (in)  gpst_warp_n_outputs(warp)
                n_threads  (in)  1 = on the calling thread; 0 = all cores, more = so many, through OpenMP
                                 where it is compiled in, else on the calling thread; fewer where the system
                                 gives no more threads
   Shapes       source: dtype[height][width][channels]; outputs: dtype[height][width][channels], or
                [channels][height][width] with CHW
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (an image breaks its rule; nothing was written) |
                GPST_ERROR_OVERFLOW
   Ownership    none is taken; no pointer is kept
   Threads      any, also several at once on one warp
   Blocking     computes; no allocation; the floating-point mode of the thread is set and restored
   Device       none: this is the CPU's form
   Formula      RESIZE: position = (i + 1/2) in / out - 1/2 on each axis, exact in integers; edges repeat. With a
                fit out is the resized side, and i counts from its first pixel.
                ROI: the same, in = the rectangle's side, plus its corner. AFFINE: by 64-bit integers from the
                matrix in 1/2^28, to 1/32768 pixel. TABLE: as it says, to 1/32768 pixel.
                EQUIRECT: ray = R (tan(hfov/2) ((2 i + 1) / width - 1), tan(vfov/2) ((2 j + 1) / height - 1),
                1) with R = gpst_view_rotation (PY360: 2 i / (width - 1), 2 j / (height - 1));
                u = (atan2(x, z) / 2 pi + 1/2) W - 1/2,
                v = (atan2(y, hypot(x, z)) / pi + 1/2) H - 1/2; W - 1, H - 1 and no - 1/2 with FFMPEG. In x
                the source goes round; over a pole it goes on at row -1 - y, x + W / 2 (rounded down).
                ROTATE: the same with ray = R (cos b sin a, sin b, cos b cos a), a = pi ((2 i + 1) / width -
                1), b = pi/2 ((2 j + 1) / height - 1).
                BILINEAR into U8: weights of 11 bits, in integers; FFMPEG: its four weights of 14 bits,
                truncated; into floats and U16: float weights. AREA of RESIZE and ROI, on each axis: weight
                max(0, 1 - |x + 1/2 - centre| / s) with s = max(scale, 1), divided by their sum; the centre is
                kept within the source and what lies beyond its edge has no weight (PyTorch's antialias=True,
                Pillow's BILINEAR); in floats into every store: down, then across, in order, one multiply-add each.
                BICUBIC: the same with four taps on each axis, of weight f(x) = (a + 2) x^3 - (a + 3) x^2 + 1 up to
                x = 1 and a (x^3 - 5 x^2 + 8 x - 4) up to 2, x the distance in pixels, a = -3/4. BICUBIC_AREA: as AREA
                with f(|x + 1/2 - centre| / s), a = -1/2. NV12, I420: of Y and of chroma, each. Sums beyond 0..full are
                cut by U8 and I8 only.
                AREA of the other maps: the mean of n x m samples as BILINEAR into floats has them (of NATIVE), evenly
                spread over the output pixel, so many that they lie at most one pixel of the source apart, and 64: n
                from the step from one output pixel to the next across, m down. EQUIRECT, ROTATE: in the middle of the
                view, a pixel counted as on the equator; around the centre of its pixel ROTATE goes along the plane
                that touches the sphere. TABLE: each pixel its own n and m, by the entry before or behind, whichever is
                nearer: where a table jumps nothing is smeared. Where nothing is minified it is one sample. Then one
                multiply-add for scale and bias, then the store's rounding.
                NV12, I420: Y and chroma are sampled in floats, each where it lies (NEAREST: whole), turned
                into red, green and blue, cut to 0..255; outside is black. Around a sphere the chroma goes
                round by its own size.
                JPEG_444, 422, 420, 440: as an RGB source of the pixels that libjpeg-turbo 2.1 and newer make of the
                planes with their defaults, to the last bit. Chroma on each axis where a sample is for two pixels: 3 of
                the sample and 1 of the next on the pixel's side, at the edge of itself; down first. Rounded once: of
                422 (sum + 1) >> 2 of even columns, + 2 of odd ones; of 440 the same of rows; of 420 (sum + 8) >> 4 of
                even columns, + 7 of odd ones. 422 and 420 of one or two samples across: repeated. Less 128, then
                red = y + (91881 cr + 32768 >> 16), green = y + (-22554 cb - 46802 cr + 32768 >> 16), blue = y +
                (116130 cb + 32768 >> 16), cut to 0..255.
                U16, F16, F32: in floats on their own scale, of which full (a missing alpha) is 65535, 1 and 1.
                Into U8 without scale full becomes 255: U16 is divided by 257, floats are multiplied by 255. Into
                U16 it becomes 65535: U8 is multiplied by 257, floats by 65535.
                NEAREST copies. BILINEAR of floats: a (1 - f) + b f, across, then down; pixels of weight 0 do
                not count (with AREA they may), infinities as IEEE 754 sums them. NaN comes out as 0x7fc00000,
                in F16 as 0x7e00, in U8, I8 and U16 as 0. Subnormals are kept.
   Accuracy     EQUIRECT and ROTATE into U8 against double precision: 0.6 LSB at the worst seen, 1.5
                promised, 0.75 on 99.99 % of samples; other maps into U8: within 1 LSB; floats within 1e-6 of
                the range (of floats: of the largest of the pixels) for the position used, and AREA within 2e-6 where
                windows have up to 100 x 100 pixels. The bits are the same on every machine. Against the projects of the
                conventions: u8 within 1 LSB of OpenCV's and PyTorch's resizes; floats (value / 255 - mean) / std within
                1e-5 of PyTorch's, AREA 1e-4 (of its CPU; its GPU rounds antialias=True otherwise where it enlarges);
                BICUBIC and BICUBIC_AREA into U8 within 1 LSB of PyTorch's floats, rounded and cut: Pillow, and PyTorch
                of bytes, also cut between across and down, which docs/conventions.md measures;
                EQUIRECT FFMPEG 72 dB PSNR seen, 50 promised; PY360 84 seen, 57 promised
   Source       kernels/warp/warp.c, kernels/warp/warp_cpu.c, kernels/warp/warp_map_internal.h,
                kernels/warp/warp_area_internal.h, kernels/warp/warp_footprint_internal.h,
                kernels/warp/warp_yuv_internal.h, kernels/warp/warp_jpeg_internal.h,
                kernels/warp/warp_wide_internal.h and kernels/warp/warp_pixel_internal.h (the reference)
   Tests        tests/test_warp.c, tests/test_warp_bits.c, tests/test_warp_cases.c, tests/test_warp_maps.c,
                tests/test_warp_rois.c, tests/test_warp_area.c, tests/test_warp_yuv.c, tests/test_warp_wide.c,
                tests/test_warp_accuracy.c, tests/test_warp_footprint.c, tests/test_warp_peers.c,
                tests/test_warp_ffmpeg.c, tests/test_warp_jpeg.c, tests/test_warp_cubic.c, tests/test_warp_fit.c
   Since 0.1
*/
GPST_API gpst_result gpst_warp_run(const gpst_warp* warp, const gpst_image* source, const gpst_image* outputs,
                                   uint32_t n_outputs, uint32_t n_threads);

/* gpst_warp_launch -- puts the warp of several sources on a stream of the caller's own, for the GPU to compute

   Parameters   warp       (in)  not NULL; its mask, its table and rois in place, where it has them, must be memory that
                                 the device reads: device memory, pinned or managed
                sources    (in)  n_sources images as for gpst_warp_run, in memory of the device
                n_sources  (in)  at least 1
                outputs    (in)  n_sources times gpst_warp_n_outputs images as for gpst_warp_run, in memory of the
                                 device, those of the first source first
                n_outputs  (in)  n_sources * gpst_warp_n_outputs(warp)
                stream     (in)  cudaStream_t or hipStream_t of the current device
   Shapes       as gpst_warp_run
   Returns      GPST_OK: it will be computed, in the order of the stream | GPST_ERROR_ARGUMENT (an image breaks
                its rule; nothing was launched) | GPST_ERROR_OVERFLOW | GPST_ERROR_UNSUPPORTED (this program has no
                GPU code: see GPUSTAGE_GPU_IMPLEMENTATION) | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST (the
                vendor's text is the reason)
   Ownership    none is taken; the lists may go when it returns, the warp and the pixels when the work is done
   Threads      any, also several at once on one warp
   Blocking     never; no allocation; no copy, no synchronisation: it may be captured into a graph
   Device       the current device is left as found. One launch for all outputs that fit into 3200 bytes of
                arguments and whose images have the same sizes and pitches: 200 of RESIZE, 66 of ROI, 50 of
                AFFINE, 36 of EQUIRECT and ROTATE; more are several launches
   Formula      as gpst_warp_run, whose bits it gives
   Accuracy     the same bits as gpst_warp_run
   Source       kernels/warp/warp.c, kernels/warp/warp.cu.h       Tests  tests/test_gpu_warp.cu     Since 0.1
*/
GPST_API gpst_result gpst_warp_launch(const gpst_warp* warp, const gpst_image* sources, uint32_t n_sources,
                                      const gpst_image* outputs, uint32_t n_outputs, void* stream);

/* gpst_warp_position -- where in the source an output pixel is looked up, in double precision

   Parameters   warp                         (in)   not NULL
                output_index                 (in)   which view
                x, y                         (in)   pixel of that output
                source_width, source_height  (in)   1..65535
                source_x, source_y           (out)  in pixels, 0 = centre of the first; ahead of the border
                                                    rule; of bars beyond the source; untouched on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_UNSUPPORTED (rois_in_place, list_per_item: where is known
                to each run only)
   Ownership    none
   Threads      any
   Blocking     never
   Device       none
   Source       kernels/warp/warp.c       Tests  tests/test_warp_accuracy.c, tests/test_warp_maps.c     Since 0.1
*/
GPST_API gpst_result gpst_warp_position(const gpst_warp* warp, uint32_t output_index, uint32_t x, uint32_t y,
                                        uint32_t source_width, uint32_t source_height, double* source_x,
                                        double* source_y);

/* gpst_warp_query_camera -- a view as a pinhole camera

   Parameters   warp          (in)   made with EQUIRECT, without list_per_item
                output_index  (in)   which view
                out           (out)  focal lengths and principal point in pixels: fx, fy, cx, cy; (0, 0) is the corner
                                     of the first pixel, whose centre is at a half; untouched on failure
   Shapes       double[4]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Formula      fx = width / (2 tan(hfov / 2)), cx = width / 2; PY360, whose first and last centres lie on the edges:
                fx = (width - 1) / (2 tan(hfov / 2)); fy and cy likewise
   Source       kernels/warp/warp.c       Tests  tests/test_warp.c          Since 0.1
*/
GPST_API gpst_result gpst_warp_query_camera(const gpst_warp* warp, uint32_t output_index, double out[4]);

/* gpst_view_rotation -- the rotation of a view, camera to world (x right, y down, z forward)

   Parameters   view  (in)   yaw, pitch and roll are read
                out   (out)  row-major 3x3: Ry(yaw) Rx(pitch) Rz(roll); all 0 when an angle is not within
                             +-1e6
   Shapes       double[3][3]
   Returns      nothing
   Ownership    none
   Threads      any
   Blocking     never
   Device       none; our own arithmetic, the same bits everywhere, each element within 1e-15; multiples of 90
                are exact
   Source       kernels/warp/warp_plan.c  Tests  tests/test_warp.c          Since 0.1
*/
GPST_API void gpst_view_rotation(const gpst_view* view, double out[9]);

/* gpst_warp_cpu_level -- which of the CPU's loops a warp runs

   Parameters   warp  (in)  not NULL
   Shapes       none
   Returns      "portable", "avx2" or "avx512": the highest that machine and compiler have when the warp is created,
                or what GPUSTAGE_CPU=portable or =avx2 in the environment leaves of it. The bits are the same
   Ownership    static text; do not free
   Threads      any
   Blocking     never
   Device       none
   Source       kernels/warp/warp_cpu.c   Tests  tests/test_warp.c          Since 0.1
*/
GPST_API const char* gpst_warp_cpu_level(const gpst_warp* warp);

/* gpst_warp_query_bytes -- unique source bytes read and output bytes written for one source of this size

   Parameters   warp           (in)   not NULL
                source         (in)   width, height, format and dtype are read
                read_bytes     (out)  RESIZE: rows times columns touched, AREA all that is seen. EQUIRECT: an estimate,
                                      what the views see together by 256 x 128 cells of the sphere. Other
                                      maps, and list_per_item: at most the whole source. Never more than the
                                      samples need
                written_bytes  (out)  exact; list_per_item: of the longest list
   Shapes       none
   Returns      nothing
   Ownership    none
   Threads      any
   Blocking     computes: about 1 ms for 8 views; not for the path of items
   Device       none
   Source       kernels/warp/warp.c       Tests  tests/test_warp.c          Since 0.1
*/
GPST_API void gpst_warp_query_bytes(const gpst_warp* warp, const gpst_image* source, uint64_t* read_bytes,
                                    uint64_t* written_bytes);

#ifdef __cplusplus
}
#endif
#endif
