/* kernels/mask/mask.h -- what comes after a segmentation network: class scores to
   labels, scores to masks, and what is done with masks. Owns nothing: every picture belongs to the caller. */
#ifndef GPSTI_MASK_H
#define GPSTI_MASK_H

#include "../image/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A mask is an image of format GRAY and dtype U8; non-zero = in. Masks that are written hold 0 and 255. Sides of
   everything here are 1 to 65535. Sources and outputs must not overlap. n_threads: 1 = on the calling thread; 0 = all
   cores through OpenMP where compiled in, or as many as the system gives threads for. Results do not depend on it, nor
   on the machine. */

/* The scores of every class at every pixel. Naturally aligned; nothing past the last row's own bytes is read.

   Ownership    data is the caller's; read during the call only
   Since 0.1 */
typedef struct gpst_logits {
    const void* data;     /* of class 0, top left */
    uint32_t n_classes;   /* 1 to 65535 */
    uint32_t width, height;
    gpst_dtype dtype;     /* required: F16 or F32 */
    gpst_layout layout;   /* required: CHW or HWC */
    int64_t pitch_bytes;  /* from one row to the next; 0 = rows without gaps; not negative */
    int64_t plane_bytes;  /* CHW: from one class to the next; 0 = height * pitch */
} gpst_logits;

/* A picture of class numbers: uint8_t where n_classes is at most 256, else uint16_t.

   Ownership    data is the caller's
   Since 0.1 */
typedef struct gpst_labels {
    void* data;
    int64_t pitch_bytes;  /* from one row to the next; 0 = rows without gaps; not negative */
    uint32_t width, height;
    uint32_t n_classes;   /* 1 to 65535 */
} gpst_labels;

/* A mask of one bit a pixel: pixel x is bit x % 8 (lowest first) of byte x / 8; a row is filled up with zero bits.

   Ownership    data is the caller's
   Since 0.1 */
typedef struct gpst_bitmap {
    void* data;
    int64_t pitch_bytes;  /* from one row to the next; 0 = (width + 7) / 8; not negative */
    uint32_t width, height;
} gpst_bitmap;

/* What a mask or a label covers. Empty: all zero.

   Ownership    none
   Since 0.1 */
typedef struct gpst_box {
    uint32_t x, y;          /* the first column and row of it */
    uint32_t width, height; /* up to the last of each */
    uint64_t area;          /* pixels */
} gpst_box;

typedef enum gpst_morph {
    GPST_MORPH_INVALID = 0,
    GPST_MORPH_ERODE = 1,  /* in where the whole window is in */
    GPST_MORPH_DILATE = 2, /* in where anything of the window is in */
    GPST_MORPH_OPEN = 3,   /* erode, then dilate */
    GPST_MORPH_CLOSE = 4   /* dilate, then erode */
} gpst_morph;

typedef enum gpst_smooth {
    GPST_SMOOTH_INVALID = 0,
    GPST_SMOOTH_BOX = 1,     /* the mean of the window */
    GPST_SMOOTH_GAUSSIAN = 2 /* weights 1 2 1 or 1 4 6 4 1 on both axes */
} gpst_smooth;

/* gpst_mask_argmax -- the class of the highest score at every pixel, of scores enlarged on the way

   Parameters   logits     (in)  the scores
                labels     (in)  where the classes go; its n_classes is that of logits. Where its sides differ from
                                 those of logits the scores are interpolated first, as GPST_MAP_RESIZE does (half-pixel
                                 centres, bilinear, the edge repeated); no enlarged scores are stored
                n_threads  (in)  1 = this thread, 0 = all
   Shapes       logits [n_classes][height][width] (CHW) or [height][width][n_classes] (HWC); labels [height][width]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW | GPST_ERROR_UNSUPPORTED (a build that does not
                compute exactly)
   Ownership    nothing is kept
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      the lowest class whose score no other exceeds. NaN never wins; where all are NaN, class 0. -0 equals 0;
                subnormals count. Interpolated: across, then down, each a + (b - a) * weight in one rounding, in float;
                scores beyond +-2^126, infinities too, count as +-2^126, and a NaN in any of the four, whatever its
                weight, makes that class NaN there. The same bits on every machine
   Source       kernels/mask/mask.c, kernels/mask/mask_cpu.c          Tests  tests/test_mask.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_argmax(const gpst_logits* logits, const gpst_labels* labels, uint32_t n_threads);

/* gpst_mask_threshold -- in where a value is above the threshold

   Parameters   source     (in)  GRAY; U8, F16 or F32
                threshold  (in)  not NaN
                mask       (in)  GRAY, U8, of source's size: where 0 and 255 go
                n_threads  (in)  1 = this thread, 0 = all
   Shapes       both [height][width]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW | GPST_ERROR_UNSUPPORTED (a build that does not
                compute exactly)
   Ownership    nothing is kept
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      value > threshold ? 255 : 0, exactly; NaN is never in
   Source       kernels/mask/mask.c, kernels/mask/mask_cpu.c          Tests  tests/test_mask.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_threshold(const gpst_image* source, float threshold, const gpst_image* mask,
                                         uint32_t n_threads);

/* gpst_mask_threshold_sigmoid -- in where the sigmoid of a logit is above a probability

   Parameters   logits       (in)  GRAY, F16 or F32
                probability  (in)  0 to 1
                mask         (in)  GRAY, U8, of the same size: where 0 and 255 go
                n_threads    (in)  1 = this thread, 0 = all
   Shapes       both [height][width]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW | GPST_ERROR_UNSUPPORTED (a build that does not
                compute exactly)
   Ownership    nothing is kept
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      logit > gpst_logit(probability) ? 255 : 0; no exponential is computed. NaN is never in. 0: all but -inf
                and NaN; 1: nothing
   Source       kernels/mask/mask.c, kernels/mask/mask_cpu.c          Tests  tests/test_mask.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_threshold_sigmoid(const gpst_image* logits, double probability, const gpst_image* mask,
                                                 uint32_t n_threads);

/* gpst_logit -- the logit whose sigmoid is this probability

   Parameters   probability  (in)  0 to 1
   Shapes       none
   Returns      log(p / (1 - p)) as a float: -inf for 0 and less and for NaN, +inf for 1 and more
   Ownership    none
   Threads      any
   Blocking     never
   Device       none
   Formula      our own logarithm in double, within 2e-15 relative of the truth, then rounded to float: at most
                0.500001 units in the last place off. The same bits on every machine
   Source       kernels/mask/mask.c          Tests  tests/test_mask.c          Since 0.1
*/
GPST_API float gpst_logit(double probability);

/* gpst_mask_pack, gpst_mask_unpack -- a mask to one bit a pixel and back

   Parameters   mask       (in)  GRAY, U8
                bitmap     (in)  of mask's size
                n_threads  (in)  1 = this thread, 0 = all
   Shapes       mask [height][width]; bitmap [height][(width + 7) / 8] bytes
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW
   Ownership    nothing is kept; the second argument is written
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      exact. Packing: non-zero = 1. Unpacking: 0 and 255; the bits that fill up a row are ignored
   Source       kernels/mask/mask.c, kernels/mask/mask_cpu.c          Tests  tests/test_mask.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_pack(const gpst_image* mask, const gpst_bitmap* bitmap, uint32_t n_threads);
GPST_API gpst_result gpst_mask_unpack(const gpst_bitmap* bitmap, const gpst_image* mask, uint32_t n_threads);

/* gpst_mask_box -- where a mask is, and how much of it

   Parameters   mask       (in)  GRAY, U8
                out        (out) the box; all zero when nothing is in
   Shapes       mask [height][width]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW
   Ownership    nothing is kept
   Threads      any; calls are independent; computes on the calling thread
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      exact
   Source       kernels/mask/mask_box.c          Tests  tests/test_mask_window.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_box(const gpst_image* mask, gpst_box* out);

/* gpst_mask_label_boxes -- where each label is, and how much of it

   Parameters   labels     (in)  labels of n_classes and more are passed over
                out        (out) a box for each class, all zero where there is none of it
   Shapes       labels [height][width]; out [n_classes]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW
   Ownership    nothing is kept
   Threads      any; calls are independent; computes on the calling thread
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      exact
   Source       kernels/mask/mask_box.c          Tests  tests/test_mask_window.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_label_boxes(const gpst_labels* labels, gpst_box* out);

/* gpst_mask_morph -- erode, dilate, open or close a mask

   Parameters   mask       (in)  GRAY, U8
                op         (in)  which
                size       (in)  3 or 5: a square window of that side
                output     (in)  GRAY, U8, of mask's size: where 0 and 255 go
                n_threads  (in)  1 = this thread, 0 = all
   Shapes       both [height][width]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW
   Ownership    nothing is kept
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      exact. The border: what lies outside the image does not count, so that eroding takes nothing away and
                dilating adds nothing from there; in both steps of OPEN and CLOSE
   Source       kernels/mask/mask_window.c, kernels/mask/mask_window_cpu.c          Tests  tests/test_mask_window.c
   Since 0.1
*/
GPST_API gpst_result gpst_mask_morph(const gpst_image* mask, gpst_morph op, uint32_t size, const gpst_image* output,
                                     uint32_t n_threads);

/* gpst_mask_smooth -- the weighted mean of a window, for soft edges

   Parameters   source     (in)  GRAY, U8; a mask or any picture
                kind       (in)  box or Gaussian
                size       (in)  3 or 5: a square window of that side
                output     (in)  GRAY, U8, of source's size
                n_threads  (in)  1 = this thread, 0 = all
   Shapes       both [height][width]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW
   Ownership    nothing is kept
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      in integers: (sum of weight * value + half the sum of weights) / sum of weights, rounded down: to
                nearest, a half up. Box: weights 1; Gaussian: 1 2 1 or 1 4 6 4 1 on both axes. The edge is repeated
   Source       kernels/mask/mask_window.c, kernels/mask/mask_window_cpu.c          Tests  tests/test_mask_window.c
   Since 0.1
*/
GPST_API gpst_result gpst_mask_smooth(const gpst_image* source, gpst_smooth kind, uint32_t size,
                                      const gpst_image* output, uint32_t n_threads);

/* gpst_mask_refine -- clean the edges of labels, with the picture's help

   Parameters   labels     (in)  what to refine; any value is a label
                guide      (in)  U8, of labels' size, HWC, any format without planes of chroma: the picture that
                                 was labelled; NULL = none
                tolerance  (in)  0 to 255: how far two pixels of guide may differ in any channel and still belong
                                 together; without guide it is not used
                output     (in)  labels of the same size and n_classes
                n_threads  (in)  1 = this thread, 0 = all
   Shapes       both [height][width]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW
   Ownership    nothing is kept
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      each pixel takes the label that most of its 3 x 3 window has, itself included, of those pixels that lie
                inside the image and whose guide is within tolerance of its own in every channel. Ties go to its own
                label, else to the lowest. So single pixels and frayed edges go, and an edge of labels moves, a pixel
                a call, to the edge in the picture, over which nobody votes: call it again for more
   Source       kernels/mask/mask_window.c, kernels/mask/mask_window_cpu.c          Tests  tests/test_mask_window.c
   Since 0.1
*/
GPST_API gpst_result gpst_mask_refine(const gpst_labels* labels, const gpst_image* guide, uint32_t tolerance,
                                      const gpst_labels* output, uint32_t n_threads);

#ifdef __cplusplus
}
#endif
#endif
