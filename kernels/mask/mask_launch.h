/* kernels/mask/mask_launch.h -- the operations of mask.h on a GPU: enqueued on the
   caller's own stream, many items in one launch, with the CPU's bits. Owns nothing. */
#ifndef GPSTI_MASK_LAUNCH_H
#define GPSTI_MASK_LAUNCH_H

#include "mask.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of every launch here: the lists of descriptions are of the host and may go when it returns; what they point to is
   memory of the device, and is read and written when the stream comes to it. Items of the same size, pitch and kind
   share a launch, up to 128 of them; others are several launches. Nothing is allocated, copied or waited for, so a
   graph may capture it. Every item is checked before the first is launched; outputs of one item must not overlap
   sources or outputs of another, which is not checked. Code compiled with -use_fast_math does not give the same
   bits. */

/* gpst_mask_argmax_launch -- gpst_mask_argmax of several pictures, for the GPU to compute

   Parameters   logits   (in)  n_items of scores, as for gpst_mask_argmax
                labels   (in)  n_items of labels, of the logits in turn
                n_items  (in)  at least 1
                stream   (in)  cudaStream_t or hipStream_t of the current device
   Shapes       as gpst_mask_argmax
   Returns      GPST_OK: it will be computed, in the order of the stream | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW |
                GPST_ERROR_UNSUPPORTED (this program has no GPU code: see GPUSTAGE_GPU_IMPLEMENTATION) |
                GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST (the vendor's text is the reason)
   Ownership    nothing is kept of the lists; scores and labels stay until the work is done
   Threads      any; calls are independent
   Blocking     never; no allocation
   Device       memory of the device
   Formula      that of gpst_mask_argmax, and its bits
   Source       kernels/mask/mask_launch.c, kernels/mask/mask.cu.h, kernels/mask/mask_argmax.cu.h
   Tests        tests/test_gpu_mask.cu          Since 0.1
*/
GPST_API gpst_result gpst_mask_argmax_launch(const gpst_logits* logits, const gpst_labels* labels, uint32_t n_items,
                                             void* stream);

/* gpst_mask_threshold_launch, gpst_mask_threshold_sigmoid_launch -- the thresholds of several pictures, on the GPU

   Parameters   sources, logits         (in)  n_items of pictures, as for the functions without _launch
                threshold, probability  (in)  one for all
                masks                   (in)  n_items of masks: where 0 and 255 go
                n_items                 (in)  at least 1
                stream                  (in)  cudaStream_t or hipStream_t of the current device
   Shapes       all [height][width]
   Returns      as gpst_mask_argmax_launch
   Ownership    nothing is kept of the lists; pictures stay until the work is done
   Threads      any; calls are independent
   Blocking     never; no allocation
   Device       memory of the device
   Formula      that of gpst_mask_threshold and gpst_mask_threshold_sigmoid, and their bits
   Source       kernels/mask/mask_launch.c, kernels/mask/mask.cu.h
   Tests  tests/test_gpu_mask.cu          Since 0.1
*/
GPST_API gpst_result gpst_mask_threshold_launch(const gpst_image* sources, float threshold, const gpst_image* masks,
                                                uint32_t n_items, void* stream);
GPST_API gpst_result gpst_mask_threshold_sigmoid_launch(const gpst_image* logits, double probability,
                                                        const gpst_image* masks, uint32_t n_items, void* stream);

/* gpst_mask_pack_launch, gpst_mask_unpack_launch -- several masks to one bit a pixel and back, on the GPU

   Parameters   masks    (in)  n_items of masks
                bitmaps  (in)  n_items of bit masks
                n_items  (in)  at least 1
                stream   (in)  cudaStream_t or hipStream_t of the current device
   Shapes       masks [height][width]; bitmaps [height][(width + 7) / 8] bytes
   Returns      as gpst_mask_argmax_launch
   Ownership    nothing is kept of the lists; masks stay until the work is done; the second list's memory is written
   Threads      any; calls are independent
   Blocking     never; no allocation
   Device       memory of the device
   Formula      that of gpst_mask_pack and gpst_mask_unpack, and their bits
   Source       kernels/mask/mask_launch.c, kernels/mask/mask.cu.h
   Tests  tests/test_gpu_mask.cu          Since 0.1
*/
GPST_API gpst_result gpst_mask_pack_launch(const gpst_image* masks, const gpst_bitmap* bitmaps, uint32_t n_items,
                                           void* stream);
GPST_API gpst_result gpst_mask_unpack_launch(const gpst_bitmap* bitmaps, const gpst_image* masks, uint32_t n_items,
                                             void* stream);

/* gpst_mask_box_launch, gpst_mask_label_boxes_launch -- where several masks or all labels are, on the GPU

   Parameters   masks, labels  (in)  n_items of masks or labels
                boxes          (in)  memory of the device, a multiple of 8, where the boxes go
                n_items        (in)  at least 1
                stream         (in)  cudaStream_t or hipStream_t of the current device
   Shapes       boxes [n_items], of labels [n_items][n_classes]; all labels of one n_classes
   Returns      as gpst_mask_argmax_launch
   Ownership    nothing is kept of the lists; pictures and boxes stay until the work is done
   Threads      any; calls are independent
   Blocking     never; no allocation; boxes are also the scratch: they mean nothing until the work is done
   Device       memory of the device; three launches in the stream's order: cleared, grown, finished
   Formula      that of gpst_mask_box and gpst_mask_label_boxes. Integers only: the order of blocks changes nothing
   Source       kernels/mask/mask_launch.c, kernels/mask/mask_box.cu.h
   Tests  tests/test_gpu_mask.cu          Since 0.1
*/
GPST_API gpst_result gpst_mask_box_launch(const gpst_image* masks, gpst_box* boxes, uint32_t n_items, void* stream);
GPST_API gpst_result gpst_mask_label_boxes_launch(const gpst_labels* labels, gpst_box* boxes, uint32_t n_items,
                                                  void* stream);

/* gpst_mask_morph_launch, gpst_mask_smooth_launch -- morphology and smoothing of several masks, on the GPU

   Parameters   masks, sources  (in)  n_items of masks
                op, kind        (in)  one for all
                size            (in)  3 or 5: a square window of that side
                outputs         (in)  n_items of masks, where the results go
                n_items         (in)  at least 1
                stream          (in)  cudaStream_t or hipStream_t of the current device
   Shapes       all [height][width]
   Returns      as gpst_mask_argmax_launch
   Ownership    nothing is kept of the lists; masks stay until the work is done
   Threads      any; calls are independent
   Blocking     never; no allocation; OPEN and CLOSE are one launch, too
   Device       memory of the device
   Formula      that of gpst_mask_morph and gpst_mask_smooth, and their bits
   Source       kernels/mask/mask_launch.c, kernels/mask/mask_window.cu.h
   Tests  tests/test_gpu_mask.cu       Since 0.1
*/
GPST_API gpst_result gpst_mask_morph_launch(const gpst_image* masks, gpst_morph op, uint32_t size,
                                            const gpst_image* outputs, uint32_t n_items, void* stream);
GPST_API gpst_result gpst_mask_smooth_launch(const gpst_image* sources, gpst_smooth kind, uint32_t size,
                                             const gpst_image* outputs, uint32_t n_items, void* stream);

/* gpst_mask_refine_launch -- gpst_mask_refine of several pictures, on the GPU

   Parameters   labels     (in)  n_items of labels
                guides     (in)  n_items of pictures, or NULL = no guide for any
                tolerance  (in)  one for all
                outputs    (in)  n_items of labels, where the results go
                n_items    (in)  at least 1
                stream     (in)  cudaStream_t or hipStream_t of the current device
   Shapes       all [height][width]
   Returns      as gpst_mask_argmax_launch
   Ownership    nothing is kept of the lists; pictures stay until the work is done
   Threads      any; calls are independent
   Blocking     never; no allocation
   Device       memory of the device
   Formula      that of gpst_mask_refine, and its bits
   Source       kernels/mask/mask_launch.c, kernels/mask/mask_window.cu.h
   Tests  tests/test_gpu_mask.cu       Since 0.1
*/
GPST_API gpst_result gpst_mask_refine_launch(const gpst_labels* labels, const gpst_image* guides, uint32_t tolerance,
                                             const gpst_labels* outputs, uint32_t n_items, void* stream);

#ifdef __cplusplus
}
#endif
#endif
