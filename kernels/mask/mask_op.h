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
    GPST_MASK_LABEL_BOXES = 10 /* labels to n_classes of gpst_box */
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

   Parameters   desc       (in)  not NULL
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

#ifdef __cplusplus
}
#endif
#endif
