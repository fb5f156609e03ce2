/* kernels/quantise/quantise.h -- floats to 8-bit integers and back, and the scales for
   it from samples. Symmetric: zero stays zero. */
#ifndef GPSTI_QUANTISE_H
#define GPSTI_QUANTISE_H

#include "../image/image.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor without gaps, of which one axis has scales of its own: [n_outer][n_channels][n_inner]. NCHW: N, C, H * W.
   NHWC: N * H * W, C, 1. One scale for all: 1, 1, count. Naturally aligned.

   Ownership    data is the caller's
   Since 0.1 */
typedef struct gpst_channels {
    void* data;
    gpst_dtype dtype;    /* required: F16 or F32 */
    uint32_t n_channels; /* 1 or more */
    size_t n_outer;      /* 1 or more */
    size_t n_inner;      /* 1 or more */
} gpst_channels;

/* gpst_quantise -- floats to 8-bit integers

   Parameters   values     (in)  the tensor
                scales     (in)  one a channel; finite, above 0
                out        (in)  where the integers go, in the same order; must not overlap values
                n_threads  (in)  1 = this thread, 0 = all cores through OpenMP where compiled in
   Shapes       values and out [n_outer][n_channels][n_inner]; scales [n_channels]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW | GPST_ERROR_UNSUPPORTED (a build that does not
                compute exactly)
   Ownership    nothing is kept
   Threads      any; calls are independent
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      value / scale in float, correctly rounded, then to the nearest integer, ties to even, then into -128 to
                127: what ONNX's QuantizeLinear does without a zero point. NaN becomes 0, infinities the ends. The same
                bits on every machine
   Source       kernels/quantise/quantise.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API gpst_result gpst_quantise(const gpst_channels* values, const float* scales, int8_t* out, uint32_t n_threads);

/* gpst_dequantise -- 8-bit integers back to floats

   Parameters   integers   (in)  in the order of out
                scales     (in)  one a channel; finite, above 0
                out        (in)  where the floats go; must not overlap integers
   Shapes       integers and out [n_outer][n_channels][n_inner]; scales [n_channels]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW | GPST_ERROR_UNSUPPORTED (a build that does not
                compute exactly)
   Ownership    nothing is kept
   Threads      any; calls are independent; computes on the calling thread
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      integer * scale in float, correctly rounded; F16: rounded once more
   Source       kernels/quantise/quantise.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API gpst_result gpst_dequantise(const int8_t* integers, const float* scales, const gpst_channels* out);

/* How samples are looked at. All zero: one channel, percentiles.

   Ownership    copied
   Since 0.1 */
typedef struct gpst_calibration_desc {
    uint32_t start_canary;
    uint32_t n_channels; /* 0 = 1: all values of every tensor together */
    bool max_only;       /* no histogram: 64 bytes a channel instead of 255 KB, and no percentile but 100 */
    uint32_t end_canary;
} gpst_calibration_desc;

/* What a channel's samples were. min and max are of the finite ones, 0 when there was none.

   Ownership    none
   Since 0.1 */
typedef struct gpst_calibration_info {
    uint64_t n_finite, n_infinite, n_nan;
    float min, max;
} gpst_calibration_info;

typedef struct gpst_calibration gpst_calibration;

#define gpst_calibration_create(desc, out) \
    gpst_calibration_create_versioned(GPST_VERSION, sizeof(gpst_calibration_desc), (desc), NULL, (out))

/* gpst_calibration_create -- begin to look at samples (through the macro, which passes version and size)

   Parameters   version     (in)  GPST_VERSION
                desc_bytes  (in)  sizeof(gpst_calibration_desc)
                desc        (in)  how; NULL is refused
                allocator   (in)  NULL = the C library
                out         (out) the calibration; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_OVERFLOW | GPST_ERROR_MEMORY
   Ownership    the caller destroys it
   Threads      any
   Blocking     allocates
   Device       none
   Source       kernels/quantise/calibration.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API gpst_result gpst_calibration_create_versioned(uint32_t version, size_t desc_bytes,
                                                       const gpst_calibration_desc* desc,
                                                       const gpst_allocator* allocator, gpst_calibration** out);

/* gpst_calibration_destroy -- forget the samples

   Parameters   calibration  (in)  NULL is allowed
   Shapes       none
   Returns      nothing
   Ownership    frees it
   Threads      one at a time
   Blocking     never
   Device       none
   Source       kernels/quantise/calibration.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API void gpst_calibration_destroy(gpst_calibration* calibration);

/* gpst_calibration_add -- look at a tensor

   Parameters   calibration  (in)  where it is counted
                values       (in)  of the calibration's n_channels; of any where that is 1
   Shapes       values [n_outer][n_channels][n_inner]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW
   Ownership    nothing is kept of values
   Threads      one at a time for a calibration; for more threads, one calibration each, merged at the end
   Blocking     computes; no allocation; no device call
   Device       host memory only
   Formula      exact counts: their order, and how samples were spread over calibrations, changes nothing
   Source       kernels/quantise/calibration.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API gpst_result gpst_calibration_add(gpst_calibration* calibration, const gpst_channels* values);

/* gpst_calibration_merge -- add what another calibration saw

   Parameters   calibration  (in)  where it is counted
                other        (in)  of the same desc; unchanged
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT
   Ownership    other stays the caller's
   Threads      one at a time for both
   Blocking     computes; no allocation
   Device       none
   Source       kernels/quantise/calibration.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API gpst_result gpst_calibration_merge(gpst_calibration* calibration, const gpst_calibration* other);

/* gpst_calibration_add_info -- count what others saw of samples

   Parameters   calibration  (in)  where it is counted; max_only
                infos        (in)  host memory: of n_channels channels, as gpst_calibration_query or
                                   gpst_calibration_ranges_launch give them
                n_channels   (in)  the calibration's; any where that is 1
   Shapes       infos [n_channels]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_STATE (a calibration with histograms, of which infos know
                nothing)
   Ownership    nothing is kept of infos
   Threads      one at a time for a calibration
   Blocking     never; no allocation
   Device       host memory only
   Formula      exact: counts add up, ranges widen
   Source       kernels/quantise/calibration.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API gpst_result gpst_calibration_add_info(gpst_calibration* calibration, const gpst_calibration_info* infos,
                                               uint32_t n_channels);

/* gpst_calibration_query -- what was seen of a channel

   Parameters   calibration  (in)  which
                channel      (in)  below n_channels
                out          (out) counts and range
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT
   Ownership    none
   Threads      one at a time
   Blocking     never
   Device       none
   Source       kernels/quantise/calibration.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API gpst_result gpst_calibration_query(const gpst_calibration* calibration, uint32_t channel,
                                            gpst_calibration_info* out);

/* gpst_calibration_scales -- the scales for what was seen

   Parameters   calibration  (in)  which
                percentile   (in)  above 0, to 100: so many percent of the magnitudes are not clamped; 100 = min-max
                scales       (out) one a channel
   Shapes       scales [n_channels]
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_STATE (a percentile below 100 without histogram)
   Ownership    none
   Threads      one at a time
   Blocking     computes; no allocation
   Device       none
   Formula      range / 127, correctly rounded; at least the least positive float; 1 where nothing but zeros was seen.
                range at 100: the largest finite magnitude. Below: the magnitude of rank ceil(percentile / 100 * n) of
                the n finite ones, from a histogram of 128 bins an octave, rounded up to the bin's end: never less than
                the true one, and less than 1/128 more (magnitudes below 2^-126: less than 2^-133 more). The same bits
                on every machine
   Source       kernels/quantise/calibration.c          Tests  tests/test_quantise.c          Since 0.1
*/
GPST_API gpst_result gpst_calibration_scales(const gpst_calibration* calibration, double percentile, float* scales);

/* gpst_quantise_launch, gpst_dequantise_launch -- the same on a GPU: enqueued on the caller's own stream

   Parameters   values, integers, out  (in)  as for the functions without _launch, in memory of the device
                scales                 (in)  memory of the device: one a channel; finite and above 0, which is not
                                             checked
                stream                 (in)  cudaStream_t or hipStream_t of the current device
   Shapes       values, integers and out [n_outer][n_channels][n_inner]; scales [n_channels]
   Returns      GPST_OK: it will be computed, in the order of the stream | GPST_ERROR_ARGUMENT | GPST_ERROR_OVERFLOW |
                GPST_ERROR_UNSUPPORTED (this program has no GPU code: see GPUSTAGE_GPU_IMPLEMENTATION) |
                GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST (the vendor's text is the reason)
   Ownership    nothing is kept of the description; values, scales and integers stay until the work is done
   Threads      any; calls are independent
   Blocking     never; no allocation, so a graph may capture it
   Device       memory of the device
   Formula      those of gpst_quantise and gpst_dequantise, and their bits (not with -use_fast_math)
   Source       kernels/quantise/quantise_launch.c, kernels/quantise/quantise.cu.h
   Tests  tests/test_gpu_quantise.cu
   Since 0.1
*/
GPST_API gpst_result gpst_quantise_launch(const gpst_channels* values, const float* scales, int8_t* out, void* stream);
GPST_API gpst_result gpst_dequantise_launch(const int8_t* integers, const float* scales, const gpst_channels* out,
                                            void* stream);

/* gpst_calibration_ranges_launch -- look at a tensor on a GPU, for min-max

   Parameters   values  (in)  memory of the device
                infos   (in)  memory of the device, a multiple of 8: what is seen of each channel, of this tensor alone.
                              Copied to the host, gpst_calibration_add_info counts it
                stream  (in)  cudaStream_t or hipStream_t of the current device
   Shapes       values [n_outer][n_channels][n_inner]; infos [n_channels]
   Returns      as gpst_quantise_launch
   Ownership    nothing is kept of the description; values and infos stay until the work is done
   Threads      any; calls are independent
   Blocking     never; no allocation; infos are also the scratch: they mean nothing until the work is done
   Device       memory of the device; three launches in the stream's order: cleared, grown, finished
   Formula      what gpst_calibration_query says after one gpst_calibration_add of the same. Integers only: the order of
                blocks changes nothing
   Source       kernels/quantise/quantise_launch.c, kernels/quantise/quantise.cu.h
   Tests  tests/test_gpu_quantise.cu
   Since 0.1
*/
GPST_API gpst_result gpst_calibration_ranges_launch(const gpst_channels* values, gpst_calibration_info* infos,
                                                    void* stream);

#ifdef __cplusplus
}
#endif
#endif
