/* core/device/dlpack.h -- pictures and tensors to and from other libraries without a copy: DLPack's C structs, which
   NumPy, PyTorch, CuPy, JAX and others exchange. Owns no pixel, and waits for no stream. */
#ifndef GPSTI_DLPACK_H
#define GPSTI_DLPACK_H

#include "../../kernels/image/image.h"
#include "device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* DLPack's structs go through these calls as void*, so that an application may include dlpack.h of any version, or
   none. A managed tensor describes memory, and has a deleter that gives the memory back. The consumer of the
   tensor calls the deleter once, on any thread.

   Streams: a tensor of a GPU's memory says nothing about streams. The producer makes sure that what the consumer puts
   on its own stream runs after the producer's work. Where gpustage is the producer: gpst_event_record on our stream,
   gpst_stream_wrap of theirs, gpst_stream_wait on it. Where gpustage is the consumer the other library does it: in
   Python give gpst_stream_native's number to __dlpack__(stream=...). The deleter is called when no work that uses the
   memory is left on a stream. */

typedef enum gpst_dlpack_kind {
    GPST_DLPACK_DEFAULT = 0,   /* VERSIONED */
    GPST_DLPACK_VERSIONED = 1, /* DLManagedTensorVersioned, of DLPack 1.x; in Python a capsule "dltensor_versioned" */
    /* DLManagedTensor, of DLPack 0.x: a capsule "dltensor". It cannot say that the memory is read-only. NumPy before
       2.1 and older PyTorch take and give nothing else. */
    GPST_DLPACK_LEGACY = 2
} gpst_dlpack_kind;

/* gpst_dlpack_desc -- what gpst_dlpack_export makes a tensor of; but for image all may be zero

   The axes are those of the image: HWC gives height, width, channels; CHW channels, height, width; GRAY height, width
   alone. Strides tell of gaps between rows, and of bottom-up pictures, which PyTorch refuses. Whether channels are RGB
   or BGR is not told.

   Ownership    the caller's; read during export only
   Since 0.1
*/
typedef struct gpst_dlpack_desc {
    uint32_t start_canary; /* 0 */
    gpst_dlpack_kind kind;
    gpst_image image; /* the first; not NV12, I420 or one of JPEG's, whose planes are no one array */
    /* 0: one picture. Else so many that are alike, one behind the other, and the tensor has an axis more, in front. */
    uint32_t n_images;
    int64_t image_step_bytes; /* from one to the next; 0 = height * |pitch| (with CHW times the channels) */
    bool gray_has_channels;   /* GRAY: height, width, 1 */
    bool read_only;           /* the consumer must not write; LEGACY has no such word and is refused with it */
    const gpst_device* device; /* whose memory it is; NULL = the host's */
    /* HOST; DEVICE; PINNED or REGISTERED, which a GPU's device has page-locked: told to the consumer as such, which
       NumPy takes and PyTorch does not, but takes as HOST. 0 = HOST without a device, else DEVICE. */
    gpst_memory_kind memory;
    /* Called once, by the deleter, on whatever thread the consumer calls that from; it may call this library. NULL: the
       memory outlives the tensor. */
    void (*release)(void* release_user_data);
    void* release_user_data;
    gpst_allocator allocator; /* for the tensor's description; must live as long */
    uint32_t end_canary;      /* 0 */
} gpst_dlpack_desc;

/* gpst_dlpack_export -- a managed tensor of pictures that lie in memory, for another library to take

   Parameters   desc  (in)   not NULL
                out   (out)  DLManagedTensorVersioned*, or DLManagedTensor* with LEGACY; NULL on failure
   Shapes       [n_images,] height, width, channels; [n_images,] channels, height, width; [n_images,] height, width
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (a member breaks its rule; DLPack has no word for it) |
                GPST_ERROR_UNSUPPORTED (DLPack knows no device of this backend) | GPST_ERROR_OVERFLOW |
                GPST_ERROR_VERSION | GPST_ERROR_MEMORY | GPST_ERROR_FORKED
   Ownership    the tensor is the consumer's, who calls its deleter; what no consumer takes goes to gpst_dlpack_release.
                On failure release is not called. The pixels stay where they are until then. The deleter needs neither
                device nor context; what release gives back may
   Threads      any; the deleter too
   Blocking     never; one allocation
   Device       none; nothing is waited for
   Source       core/device/dlpack.c          Tests  tests/test_dlpack.c          Since 0.1
*/
#define gpst_dlpack_export(desc, out) \
    gpst_dlpack_export_versioned(GPST_VERSION, sizeof(gpst_dlpack_desc), (desc), (out))
GPST_API gpst_result gpst_dlpack_export_versioned(uint32_t version, size_t desc_bytes, const gpst_dlpack_desc* desc,
                                                  void** out);

/* gpst_dlpack_view -- the pictures that gpst_dlpack_import finds in a tensor

   Ownership    the caller's; the pixels are the tensor's until release
   Since 0.1
*/
typedef struct gpst_dlpack_view {
    /* The first. Of 1, 3 or 4 channels GRAY, RGB or RGBA, else TENSOR; dtype, layout, pitch_bytes and n_channels are
       written out, so that format may be set to BGR, BGRA or TENSOR. */
    gpst_image image;
    uint32_t n_images;        /* 0: the tensor has no axis for them, and image is the one */
    int64_t image_step_bytes; /* from one to the next; negative where the axis was turned round */
    bool read_only;           /* image.data must not be written */
    bool copied;              /* the producer copied the data for this tensor */
    bool on_device;           /* memory of the device; else of the host */
    bool pinned;              /* of the host, and page-locked by a GPU's driver */
    /* release(release_user_data) calls the tensor's deleter: as gpst_input has them, for a frame of a pipeline. */
    void (*release)(void* release_user_data);
    void* release_user_data;
} gpst_dlpack_view;

/* gpst_dlpack_import -- the pictures that a managed tensor of another library describes

   Which way the channels lie in memory is seen from the strides, not from axes: an array whose axes were put into
   another order, PyTorch's channels_last say, is found as what it is.

   Parameters   managed  (in)   DLManagedTensorVersioned*, or DLManagedTensor* with LEGACY; not NULL
                kind     (in)   which of the two
                axes     (in)   the order of the last three: HWC (0 = HWC) or CHW. Two axes are height and width; of
                                four the first is that of the pictures
                device   (in)   the device that is to use it; NULL: memory of the host alone is taken
                out      (out)  zeroes on failure; not NULL
   Shapes       two to four axes of 1 or more; u8, i8, u16, f16 or f32. Rows may have a gap, and lie bottom-up; pixels
                and channels lie without gaps, interleaved or as planes
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (which shape, stride, dtype or device, and the rule; memory of another
                context of CUDA than the device's) | GPST_ERROR_VERSION (not DLPack 1.x) | GPST_ERROR_DEVICE_LOST |
                GPST_ERROR_OVERFLOW | GPST_ERROR_FORKED
   Ownership    on success the caller calls out->release, or gpst_dlpack_release, once, when the pixels are needed no
                more; in Python a capsule is renamed "used_..." by then. On failure the tensor is as it was
   Threads      any
   Blocking     never; no allocation
   Device       none; the producer has made sure that the pixels are there
   Source       core/device/dlpack.c          Tests  tests/test_dlpack_import.c   Since 0.1
*/
GPST_API gpst_result gpst_dlpack_import(void* managed, gpst_dlpack_kind kind, gpst_layout axes,
                                        const gpst_device* device, gpst_dlpack_view* out);

/* gpst_dlpack_release -- calls a managed tensor's deleter, if it has one

   Parameters   kind     (in)  as it was made; no-op when it is none
                managed  (in)  of anybody's; NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    the tensor is gone, and the memory its owner's again
   Threads      any; one for one tensor
   Blocking     as the deleter does
   Device       as the deleter does; no stream may still use the memory
   Source       core/device/dlpack.c          Tests  tests/test_dlpack_import.c   Since 0.1
*/
GPST_API void gpst_dlpack_release(gpst_dlpack_kind kind, void* managed);

#ifdef __cplusplus
}
#endif
#endif
