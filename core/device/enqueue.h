/* core/device/enqueue.h -- kernels on a stream: the library's own, and the user's. On cpu they are computed when the
   call returns; what they compute has the same bits everywhere. */
#ifndef GPSTI_ENQUEUE_H
#define GPSTI_ENQUEUE_H

#include "../../kernels/mask/mask.h"
#include "../../kernels/quantise/quantise.h"
#include "../../kernels/warp/warp.h"
#include "stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Pictures and tensors lie in memory of the stream's device, and stay until the stream has been there; descriptions and
   lists of them may go when the call returns. Rules are checked by the call; what is found wrong later, on the device,
   is told of by gpst_stream_synchronize. */

/* gpst_kernel -- one operation of the user's, as functions for the devices that it may run on

   Ownership    the caller's; lives until the device work of the items or streams that use it is done
   Since 0.1
*/
typedef struct gpst_kernel {
    const char* name; /* for reports and errors */
    /* Computes on the host from args; negative = the device work of the item, or the stream, failed. NULL: no CPU has
       it. */
    gpst_result (*host)(const void* args);
    /* Puts the work on native_stream (a cudaStream_t, a hipStream_t) and returns, without waiting; called at once, on
       the stage's or the caller's thread, with the device current. NULL: no GPU has it, and items go to the CPU. */
    gpst_result (*gpu)(const void* args, void* native_stream);
} gpst_kernel;

/* gpst_kernel_enqueue -- puts an operation of the user's on a stream

   Parameters   kernel      (in)  host or gpu, or both
                args        (in)  argument block; copied; NULL where args_bytes is 0
                args_bytes  (in)  at most 224
                stream      (in)  not NULL
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_UNSUPPORTED (the kernel has no form for this device) | what
                the device or the kernel says | GPST_ERROR_FORKED
   Ownership    args is copied; what it points to must live until the stream has been there, kernel too
   Threads      any; from several at once: in any order
   Blocking     cpu: kernel->host runs at once. Else what kernel->gpu does
   Device       runs on the stream
   Source       core/device/enqueue.c          Tests  tests/test_device_enqueue.c          Since 0.1
*/
GPST_API gpst_result gpst_kernel_enqueue(const gpst_kernel* kernel, const void* args, size_t args_bytes,
                                         gpst_stream* stream);

/* gpst_warp_enqueue -- puts the warp of one source on a stream

   Parameters   warp       (in)  not NULL; its mask, table and rois in place, where it has them, in memory that the
                                 device reads, as for gpst_warp_launch
                source     (in)  as for gpst_warp_run, in memory of the device
                outputs    (in)  n_outputs images as for gpst_warp_run, in memory of the device
                n_outputs  (in)  gpst_warp_n_outputs(warp)
                stream     (in)  not NULL
   Shapes       as gpst_warp_run
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (an image breaks its rule; nothing is enqueued) | GPST_ERROR_OVERFLOW |
                GPST_ERROR_UNSUPPORTED | GPST_ERROR_MEMORY | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST (some of the
                outputs may be computed) | GPST_ERROR_FORKED
   Ownership    source and outputs may go when it returns; the warp and the pixels when the stream has been there
   Threads      any, also several at once on one warp
   Blocking     never, but on cpu, where all cores that the process may use compute
   Device       one launch for each set of outputs, as gpst_warp_launch
   Formula      as gpst_warp_run, whose bits it gives
   Source       core/device/enqueue.c          Tests  tests/test_device_enqueue.c          Since 0.1
*/
GPST_API gpst_result gpst_warp_enqueue(const gpst_warp* warp, const gpst_image* source, const gpst_image* outputs,
                                       uint32_t n_outputs, gpst_stream* stream);

/* gpst_mask_argmax_enqueue, gpst_mask_threshold_enqueue -- puts the making of labels or of a mask on a stream

   Parameters   logits, labels           (in)  as for gpst_mask_argmax, in memory of the device
                source, threshold, mask  (in)  as for gpst_mask_threshold, in memory of the device
                stream                   (in)  not NULL
   Shapes       as gpst_mask_argmax and gpst_mask_threshold
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW | GPST_ERROR_UNSUPPORTED | GPST_ERROR_MEMORY |
                GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED
   Ownership    descriptions may go when it returns; pixels when the stream has been there
   Threads      any
   Blocking     never, but on cpu, where all cores that the process may use compute
   Device       one launch
   Formula      as gpst_mask_argmax and gpst_mask_threshold, whose bits they give
   Source       core/device/enqueue.c          Tests  tests/test_device_enqueue.c          Since 0.1
*/
GPST_API gpst_result gpst_mask_argmax_enqueue(const gpst_logits* logits, const gpst_labels* labels,
                                              gpst_stream* stream);
GPST_API gpst_result gpst_mask_threshold_enqueue(const gpst_image* source, float threshold, const gpst_image* mask,
                                                 gpst_stream* stream);

/* gpst_quantise_enqueue, gpst_dequantise_enqueue -- puts floats to 8-bit integers, or back, on a stream

   Parameters   values, integers, out  (in)  as for gpst_quantise and gpst_dequantise, in memory of the device
                scales                 (in)  one a channel, in memory of the device; finite and above 0
                stream                 (in)  not NULL
   Shapes       as gpst_quantise and gpst_dequantise
   Returns      as gpst_mask_argmax_enqueue
   Ownership    descriptions may go when it returns; values, scales and integers when the stream has been there
   Threads      any
   Blocking     never, but on cpu
   Device       one launch
   Formula      as gpst_quantise and gpst_dequantise, whose bits they give
   Source       core/device/enqueue.c          Tests  tests/test_device_enqueue.c          Since 0.1
*/
GPST_API gpst_result gpst_quantise_enqueue(const gpst_channels* values, const float* scales, int8_t* out,
                                           gpst_stream* stream);
GPST_API gpst_result gpst_dequantise_enqueue(const int8_t* integers, const float* scales, const gpst_channels* out,
                                             gpst_stream* stream);

#ifdef __cplusplus
}
#endif
#endif
