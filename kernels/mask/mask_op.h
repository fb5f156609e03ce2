/* kernels/mask/mask_op.h -- one of the operations of mask.h as a description, from one picture to another: what a MASK
   stage of a pipeline does with every picture of a set. Owns nothing. */
#ifndef GPSTI_MASK_OP_H
#define GPSTI_MASK_OP_H

#include "mask.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_mask_kind {
    GPST_MASK_INVALID = 0,
    GPST_MASK_ARGMAX = 1,      /* scores, a class a channel (F16 or F32), to labels, interpolated to other sides */
    GPST_MASK_THRESHOLD = 2,   /* values to a mask */
    GPST_MASK_SIGMOID = 3,     /* logits to a mask, by a probability */
    GPST_MASK_MORPH = 4,       /* a mask to a mask */
    GPST_MASK_SMOOTH = 5,      /* a mask to soft edges */
    GPST_MASK_REFINE = 6,      /* labels to labels, with a guide or without */
    GPST_MASK_PACK = 7,        /* a mask to a bitmap */
    GPST_MASK_UNPACK = 8,      /* a bitmap to a mask */
    GPST_MASK_BOX = 9,         /* a mask to one gpst_box */
    GPST_MASK_LABEL_BOXES = 10, /* labels to n_classes of gpst_box */
    GPST_MASK_TIME = 11 /* frames of a mask to their mean over time: gpst_mask_time, which is given the state */
} gpst_mask_kind;

/* gpst_mask_desc -- one operation; all-zero plus kind, and what the kind requires

   Pictures are masks (GRAY U8); labels (GRAY, U8 of up to 256 classes, else U16); bitmaps (GRAY U8, (width + 7) / 8
   bytes wide); boxes (GRAY U8, a row of sizeof(gpst_box) bytes each, aligned as they need).

   Ownership    the caller's; lives while it is used
   Since 0.1
*/
typedef struct gpst_mask_desc {
    gpst_mask_kind kind;    /* required */
    uint32_t width, height; /* ARGMAX: of the labels; both 0 = as the scores. UNPACK: width of the mask, required */
    float threshold;        /* THRESHOLD */
    double probability;     /* SIGMOID */
    gpst_morph morph;       /* MORPH: required */
    gpst_smooth smooth;     /* SMOOTH: required */
    uint32_t size;          /* MORPH, SMOOTH: 3 or 5 */
    uint32_t tolerance;     /* REFINE with a guide */
    uint32_t n_classes;     /* REFINE, LABEL_BOXES: 0 = 256 of U8 labels, 65535 of U16 */
    float weight;           /* TIME: of the new frame, 0 to 1; 0 = 0.35 */
    float change;           /* TIME: a pixel that differs by more takes the new value at once; 0 to 1 = 255; 0 = 0.5 */
    float cut;              /* TIME: from this mean difference of all pixels on it is a cut; 1 = 255; 0 = 0.25;
                               above 1 = no cut is looked for */
} gpst_mask_desc;

/* gpst_mask_query_output -- the shape of what an operation makes

   Parameters   desc  (in)   not NULL
                from  (in)   width, height, format, n_channels and dtype are read
                out   (out)  the shape, pitch without gaps, data NULL; all-zero on failure
   Shapes       as gpst_mask_desc says
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (kind, or a member that it requires)
   Ownership    out is the caller's
   Threads      any
   Blocking     never
   Device       none
   Source       kernels/mask/mask_op.c          Tests  tests/test_pipeline_sets.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_query_output(const gpst_mask_desc* desc, const gpst_image* from, gpst_image* out);

/* gpst_mask_run -- does it, on the CPU, now

   Parameters   desc       (in)  not NULL; any kind but TIME
                from       (in)  the picture
                guide      (in)  REFINE: the picture that was labelled; NULL = none, and with every other kind
                to         (in)  of the shape that gpst_mask_query_output gives
                n_threads  (in)  1 = this thread, 0 = all
   Shapes       as gpst_mask_desc says
   Returns      what the operation of mask.h returns, whose names are in its reason | GPST_ERROR_ARGUMENT
   Ownership    nothing is kept; to is written
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      that of the operation in mask.h
   Source       kernels/mask/mask_op.c          Tests  tests/test_pipeline_sets.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_run(const gpst_mask_desc* desc, const gpst_image* from, const gpst_image* guide,
                                   const gpst_image* to, uint32_t n_threads);

/* gpst_mask_launch -- the same on a stream of the caller's own, for the GPU to compute

   Parameters   desc, from, guide, to  (in)  as for gpst_mask_run, in memory of the device
                stream                 (in)  cudaStream_t or hipStream_t of the current device
   Shapes       as gpst_mask_run
   Returns      as gpst_mask_argmax_launch
   Ownership    descriptions may go when it returns; pixels when the work is done
   Threads      any; calls are independent
   Blocking     never; no allocation
   Device       memory of the device; one launch
   Formula      that of gpst_mask_run, and its bits
   Source       kernels/mask/mask_op.c          Tests  tests/test_pipeline_sets.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_launch(const gpst_mask_desc* desc, const gpst_image* from, const gpst_image* guide,
                                      const gpst_image* to, void* stream);

/* gpst_mask_query_state -- the shape of what TIME keeps from one frame to the next

   Parameters   desc  (in)   not NULL; kind TIME
                from  (in)   width and height are read
                out   (out)  the shape, pitch without gaps, data NULL; all-zero on failure
   Shapes       out: GRAY, U16, somewhat larger than from. A first row for a GPU's sums, then the mean of each pixel in
                units of 1/256
   Returns      GPST_OK | GPST_ERROR_ARGUMENT
   Ownership    out is the caller's
   Threads      any
   Blocking     never
   Device       none
   Source       kernels/mask/mask_time.c          Tests  tests/test_mask_time.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_query_state(const gpst_mask_desc* desc, const gpst_image* from, gpst_image* out);

/* gpst_mask_time -- the next frame of a mask into the mean over time, against flicker

   Parameters   desc       (in)  kind TIME
                from       (in)  GRAY, U8: this frame's mask, hard or soft
                to         (in)  GRAY, U8, of from's size: where the mean goes
                state      (in)  what gpst_mask_query_state says, at a multiple of 8; any pitch, but all calls must find
                                 the means where the last one left them. Read and written; its first row is not used
                restart    (in)  the state means nothing yet, or no more: begin with this frame
                n_threads  (in)  1 = this thread, 0 = all
   Shapes       from, to [height][width]; state as gpst_mask_query_state
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW
   Ownership    nothing is kept; to and state are written and overlap neither from nor each other
   Threads      any; calls of one state one at a time
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      in integers. A pixel's mean m is in units of 1/256, its new value v = 256 * from, d = |v - m|.
                1. restart, or the sum of d over all pixels >= width * height * cut': m = v everywhere
                2. else, where d > change': m = v
                3. else m moves towards v by d * weight' / 65536, rounded up: so a picture that stays is reached exactly
                to = (m + 128) / 256, rounded down. weight' = weight * 65536, to nearest and 1 to 65535, of which the
                last is all of d; change' and cut' (at least 1) = change and cut * 65280, to nearest. m is within
                1 / (256 * weight) of a mean without rounding. In a hard mask (0 and 255) every change is full range,
                so it is taken at once unless change is 1
   Source       kernels/mask/mask_time.c, kernels/mask/mask_time_cpu.c          Tests  tests/test_mask_time.c
   Since 0.1
*/
GPST_API gpst_result gpst_mask_time(const gpst_mask_desc* desc, const gpst_image* from, const gpst_image* to,
                                    const gpst_image* state, bool restart, uint32_t n_threads);

/* gpst_mask_time_launch -- the same on a stream of the caller's own, for the GPU to compute

   Parameters   desc, from, to, state, restart  (in)  as for gpst_mask_time, pictures in memory of the device
                stream                          (in)  cudaStream_t or hipStream_t of the current device
   Shapes       as gpst_mask_time
   Returns      as gpst_mask_argmax_launch
   Ownership    descriptions may go when it returns; pixels when the work is done
   Threads      any; launches of one state on one stream, or each after the last one's work
   Blocking     never; no allocation; nothing comes back to the host
   Device       memory of the device; one launch, two where cuts are looked for
   Formula      that of gpst_mask_time, and its bits, in the means too: a state may move between host and device
   Source       kernels/mask/mask_time.c, kernels/mask/mask_time.cu.h
   Tests        tests/test_gpu_mask.cu          Since 0.1
*/
GPST_API gpst_result gpst_mask_time_launch(const gpst_mask_desc* desc, const gpst_image* from, const gpst_image* to,
                                           const gpst_image* state, bool restart, void* stream);

#ifdef __cplusplus
}
#endif
#endif
