/* core/items/item.h -- an item and its picture sets, as the input names it, and as stages and sinks see it; what a
   stage's callback may ask of it. */
#ifndef GPSTI_ITEM_H
#define GPSTI_ITEM_H

#include "../../kernels/image/image.h"
#include "../device/enqueue.h"
#include "../files/target.h"
#include "../pictures/placement.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_pipeline gpst_pipeline;

#define GPST_REASON_BYTES 512
#define GPST_MAX_CAMERAS 64

/* ---- items ------------------------------------------------------------------ */

/* An item owns numbered picture sets: arrays of pictures or tensors. Set 0 is the input; what the others are the stages
   say, which name the sets that they read and write. The engine knows where each set is, on the host or on the device,
   and copies one only where a stage or a result wants it. */
#define GPST_MAX_SETS 16
#define GPST_SET(number) ((uint32_t)1 << (number)) /* of gpst_stage_desc.reads and writes */

/* gpst_set -- one picture set of an item; read only

   Ownership    as gpst_item
   Since        0.1
*/
typedef struct gpst_set {
    const gpst_image* pictures; /* n of them, data NULL where the host has none; never NULL. What a sink or next_result
                                   is given is complete, on the device too: there is no event to wait for */
    uint32_t n;                 /* 0: none was written. That is no failure where there may be several, and of what
                                   WARPs by lists, or functions alone, read: there may be no boxes */
    bool on_device;             /* data are the device's memory, not to be touched by the host; of what a stage has
                                   counted there (gpst_task_count) all pictures, not only those that count */
} gpst_set;

/* gpst_input -- one input, as a source hands it out or submit takes it; all-zero plus path or frame is valid

   Ownership    strings are copied before the call that hands them over returns, and so are the pixels of a frame
                without release. With release they are borrowed: the engine reads them where they are, and calls
                release once, when the last stage that reads set 0 is through, or where set 0 is a result when that is
                released; also for a dropped or failed item. The rule: release is called exactly once when submit
                returned OK or DROPPED, else never: the frame is still the caller's, who gives it back or tries again.
                Of a source's likewise when it returned OK, also where the frame is then refused and the item fails;
                else the frame is still the source's. It is a callback of the pipeline, on any thread, maybe before
                submit returns.
                Where items leave each other no memory one begins anew, but not once its frame was given back: it
                waits, and fails with GPST_ERROR_BUDGET where no other item gives memory back
   Since        0.1
*/
typedef struct gpst_input {
    const char* path;      /* file the READ stage reads; copied */
    const char* name;      /* for reports; NULL = path, else "item N"; copied */
    gpst_image frame;      /* a picture in memory instead of a file; data NULL = none */
    void (*release)(void* release_user_data); /* NULL: the frame is copied */
    void* release_user_data;
    uint64_t charged_bytes; /* of a borrowed frame: what it takes of the context's max_host_bytes, as gpst_buffer and
                              gpst_frame tell: fewer items are in flight then. 0 = nothing */
    bool frame_on_device;  /* frame.data is memory of the context's device, on CUDA of the context that it works in;
                              release is required, rows are top-down */
    const gpst_view* pose; /* how the frame's panorama was turned, as gpst_task_set_pose has it; NULL = not; copied */
    const char* note;      /* begins item->note; NULL = nothing; copied, up to 247 bytes */
    gpst_event* ready;     /* frame_on_device: the frame is there when this event is; NULL = now. Must live as long */
    int64_t timestamp_ns;  /* the user's; passed through */
    /* Below GPST_MAX_CAMERAS: order is kept, and items are dropped and counted, within a camera; of items that wait for
       the same stage the one is next whose camera was served longest ago. */
    uint32_t camera;
    int32_t priority;      /* of items that wait for the same stage the one with the highest is next */
    void* user_data;       /* passed through to every callback of the item */
} gpst_input;

/* gpst_item -- one item as stages and sinks see it; read only

   Ownership    the pipeline's; pointers die when the callback returns, of a pushed result, and of an item that the sink
                keeps (GPST_KEPT), at gpst_pipeline_release
   Since        0.1
*/
typedef struct gpst_item {
    uint64_t index;        /* of the input, from 0, in source order */
    const char* name;
    const char* path;      /* NULL when there is none */
    int64_t timestamp_ns;
    uint32_t camera;
    int32_t priority;
    void* user_data;
    const void* file_data; /* what the READ stage read; "" of an empty file; NULL before it or without one */
    size_t file_bytes;
    const gpst_metadata* metadata; /* what the file says, once gpst_task_metadata was asked for it, as DECODE stages do
                                      of JPEG files; else NULL */
    const gpst_set* sets;  /* n_sets of them */
    uint32_t n_sets;
    const char* decoder;   /* what a DECODE stage decoded the file with: "libjpeg-turbo", "nvJPEG", "PNM", ".npy" or
                              "func", or what gpst_task_set_decoder said; "" where none has, or not yet */
    const char* encoder;   /* what an ENCODE stage made its files with, likewise; "" until the item has ended well */
    const char* note;      /* what its user may want to know, with "; " in between: what decoding had to mend or to keep
                              of a damaged file (gpst_jpeg_note's text), gpst_placement's note, and what gpst_task_note
                              said; "" */
    gpst_result result;    /* OK until something failed; SKIPPED; DROPPED. Results have pictures only where it is OK */
    const char* stage;     /* name of the stage that failed, or in front of which it was dropped; "" */
    const char* reason;    /* the sentence, or "" */
    int64_t start_ns, end_ns; /* from the source's call to the sink's, monotonic clock */
} gpst_item;

/* gpst_task -- one service of one stage: what its callback may read, and what it hands back to gpst_task_ calls

   Ownership    the engine's; dies when the callback returns
   Since        0.1
*/
typedef struct gpst_task {
    const gpst_item* item;
    uint32_t picture_index; /* per_picture stages: which of the set that the stage reads; else 0 */
    uint32_t worker_index;  /* 0 .. n_workers-1 of the context; n_workers = the thread that is in gpst_pipeline_run:
                               plain loops, a run's first items, and a few that the guard measures */
    void* worker_state;     /* what this stage's worker_init gave for this worker */
    uint32_t stage_index;   /* of the stage that is called */
    const void* encoded;    /* ENCODE stages: the picture's file, encoded_bytes long, in the room that gpst_task_emit */
    size_t encoded_bytes;   /* takes; else NULL, 0 */
    /* Stateful stages: items of the camera that came after the one that this stage had last, and that it will not have,
       since they were dropped or have failed before it; UINT64_MAX: it has had none. Else 0 */
    uint64_t n_missed;
    gpst_pipeline* pipeline;
} gpst_task;

/* gpst_task_set_picture -- room for one picture of a set that the stage writes

   Parameters   task          (in)   the callback's
                set           (in)   one that the stage writes
                picture_index (in)   below the set's capacity; the set has at least picture_index + 1 pictures from then
                                     on. In a per_picture stage the set has as many as the one that is read
                shape         (in)   width, height, format, n_channels, dtype, layout; data and pitch are ignored
                out           (out)  the same with data and tight pitch set; all-zero on failure
   Shapes       out->data: height rows of the shape's row bytes, without gaps (CHW: plane after plane)
   Returns      GPST_OK | ARGUMENT (set, picture_index, shape) | OVERFLOW | BUDGET (max_item_bytes or the context's) |
                MEMORY | DEVICE_MEMORY (a DEVICE stage)
   Ownership    the item owns the memory; asking again for the same picture keeps nothing of what was there
   Threads      within a callback of this task only; a per_picture stage only for its own picture
   Blocking     while the budget is full, until other items give memory back; allocates when the pool has no free
                buffer, which is counted (growths). In a DEVICE stage that asks again for more, until the stream is idle
   Device       in a DEVICE stage memory of the device that does the item's device work, on cpu the host's; else host
                memory, pinned where the device pins
   Source       core/steps/task.c          Tests  tests/test_pipeline_sets.c          Since 0.1
*/
GPST_API gpst_result gpst_task_set_picture(gpst_task* task, uint32_t set, uint32_t picture_index,
                                           const gpst_image* shape, gpst_image* out);
/* gpst_task_map_picture -- a picture lies in the file as it is: no copy is made

   Parameters   task          (in)   the callback's
                set           (in)   as for gpst_task_set_picture
                picture_index (in)   likewise
                shape         (in)   likewise
                offset_bytes  (in)   of the first pixel from the file's beginning; a multiple of the dtype's size
                out           (out)  the shape with data in item->file_data and tight pitch set; all-zero on failure
   Shapes       out->data: as for gpst_task_set_picture
   Returns      GPST_OK | ARGUMENT (set, picture_index, shape, offset_bytes) | STATE (no file was read, or a DEVICE
                stage) | TRUNCATED (the file ends before the picture) | OVERFLOW
   Ownership    the item owns the memory
   Threads      within a callback of this task only
   Blocking     never; no allocation
   Device       pinned where the device pins
   Source       core/steps/task.c          Tests  tests/test_pipeline_api.c          Since 0.1
*/
GPST_API gpst_result gpst_task_map_picture(gpst_task* task, uint32_t set, uint32_t picture_index,
                                           const gpst_image* shape, size_t offset_bytes, gpst_image* out);
/* gpst_task_metadata -- what the item's file says beside its pixels: read once, for all stages: item->metadata

   Parameters   task  (in)  the callback's, of a HOST stage or of DECODE's func; not per_picture
   Shapes       none
   Returns      as gpst_metadata_read fills it; all-zero without a file or a task; never NULL
   Ownership    the item's
   Threads      within a callback of this task only
   Blocking     as gpst_metadata_read
   Device       none
   Source       core/steps/placing.c       Tests  tests/test_job_hooks.c          Since 0.1
*/
GPST_API const gpst_metadata* gpst_task_metadata(gpst_task* task);
/* gpst_task_set_pose -- how the item's panorama was turned when it was taken: WARP stages with EQUIRECT behind this one
   leave their views where they are in the world

   Parameters   task  (in)  the callback's, of a HOST stage or of DECODE's func; not per_picture
                pose  (in)  yaw, pitch and roll; within +-1e6 degrees
   Shapes       none
   Returns      GPST_OK | ARGUMENT (pose)
   Ownership    copied
   Threads      within a callback of this task only
   Blocking     never; no allocation
   Device       none
   Formula      the rotation of a view is transposed(gpst_view_rotation(pose)) * gpst_view_rotation(view)
   Source       core/steps/placing.c       Tests  tests/test_pipeline_placement.c          Since 0.1
*/
GPST_API gpst_result gpst_task_set_pose(gpst_task* task, const gpst_view* pose);
/* gpst_placing -- a picture on its way to where its file's metadata puts it

   Ownership    plain values; memory is the item's
   Since        0.1
*/
typedef struct gpst_placing {
    gpst_placement placement;
    gpst_image stored; /* what the decoder fills: the file's own pixels */
    gpst_image window; /* where they come to lie */
} gpst_placing;

/* gpst_task_begin_placing, gpst_task_end_placing -- for decoders: room for what the file stores, and then it is turned
   and in its place, and the item has pose and note of the placement

   Parameters   task       (in)       the callback's, of a HOST stage or of DECODE's func
                set        (in)       one that the stage writes; its picture 0 is made
                placement  (in)       of gpst_placement_of
                shape      (in)       of what the file stores; with a placement that moves, channels interleaved
                placing    (out, in)  between the two calls the decoder fills placing->stored.data
   Shapes       stored: shape's width and height, with the pitch that it says; the picture: placement's width and height
   Returns      as gpst_task_set_picture and gpst_task_encoded
   Ownership    the item owns the memory
   Threads      within a callback of this task only
   Blocking     as gpst_task_set_picture; the second turns pixels. Pixels that must be turned are decoded into the room
                for encoded data
   Device       none
   Source       core/steps/placing.c       Tests  tests/test_pipeline_placement.c          Since 0.1
*/
GPST_API gpst_result gpst_task_begin_placing(gpst_task* task, uint32_t set, const gpst_placement* placement,
                                             const gpst_image* shape, gpst_placing* placing);
GPST_API gpst_result gpst_task_end_placing(gpst_task* task, const gpst_placing* placing);
/* gpst_task_set_decoder -- what the item's file was decoded with: item->decoder

   Parameters   task  (in)  the callback's, of a HOST stage or of DECODE's func; not per_picture
                name  (in)  a constant, as "libtiff"; not NULL
   Shapes       none
   Returns      nothing
   Ownership    must live as long as the pipeline
   Threads      within a callback of this task only
   Blocking     never; no allocation
   Device       none
   Source       core/steps/placing.c       Tests  tests/test_pipeline_codec.c          Since 0.1
*/
GPST_API void gpst_task_set_decoder(gpst_task* task, const char* name);
/* gpst_task_note -- a sentence on the item for its user, behind those that there are, once: item->note

   Parameters   task    (in)  the callback's, of a HOST stage or of DECODE's func; not per_picture
                format  (in)  as for printf; item->note has room for 247 bytes, what does not fit is left out
   Shapes       none
   Returns      nothing
   Ownership    format and arguments stay the caller's
   Threads      within a callback of this task only
   Blocking     never; no allocation
   Device       none
   Source       core/steps/placing.c       Tests  tests/test_pipeline_placement.c          Since 0.1
*/
GPST_API void gpst_task_note(gpst_task* task, const char* format, ...) GPSTI_PRINTF(2, 3);
/* gpst_task_encoded -- room for encoded data, of this task's picture or of the item

   Parameters   task  (in)   the callback's
                bytes (in)   wanted; asking again gives more room and keeps nothing of what was there
                out   (out)  the room; NULL on failure
   Shapes       out: uint8_t[bytes], page-aligned
   Returns      GPST_OK | OVERFLOW | BUDGET | MEMORY
   Ownership    the slot owns the memory; it is there until the item ends
   Threads      within a callback of this task only
   Blocking     as gpst_task_set_picture
   Device       none
   Source       core/steps/task.c          Tests  tests/test_pipeline.c          Since 0.1
*/
GPST_API gpst_result gpst_task_encoded(gpst_task* task, size_t bytes, void** out);
/* gpst_task_emit -- names a file that the WRITE stage is to write from the encoded room

   Parameters   task  (in)   the callback's
                path  (in)   final name; copied; not "" and not NULL
                bytes (in)   the first so many of the room; at most what gpst_task_encoded was asked for last, 0
                             without it
   Shapes       none
   Returns      GPST_OK | ARGUMENT | STATE (the pipeline has no WRITE stage) | MEMORY
   Ownership    the room is the file's until the item ends; the next gpst_task_encoded gives another, so
                one task may emit many files. No two items may name one path: nothing looks for that, and the file of
                the item that ends last stays
   Threads      within a callback of this task only
   Blocking     never waits; allocates at the first use of a longer path
   Device       none
   Source       core/steps/task.c          Tests  tests/test_pipeline.c          Since 0.1
*/
GPST_API gpst_result gpst_task_emit(gpst_task* task, const char* path, size_t bytes);
/* gpst_task_emit_at -- the same for a part of a file that many items write to

   Parameters   task         (in)  the callback's
                target       (in)  must live until the item has ended
                offset_bytes (in)  where the part begins; it ends within the target
                data         (in)  NULL = the encoded room, as of gpst_task_emit; or what stays as it is until the item
                                   ends, such as a picture of a set on the host, but no lent frame: it is not copied
                bytes        (in)  of the part
   Shapes       data: uint8_t[bytes]
   Returns      GPST_OK | ARGUMENT | STATE (the pipeline has no WRITE stage) | MEMORY
   Ownership    as gpst_task_emit. An item that fails, or begins anew, leaves zeroes in place of its parts, as far as
                the disk allows. Parts must not overlap: nothing looks for that
   Threads      within a callback of this task only
   Blocking     never waits. desc.fsync and dirty_bytes say nothing of a part: the target is synced as a whole
   Device       none
   Source       core/steps/task.c          Tests  tests/test_pipeline_target.c          Since 0.1
*/
GPST_API gpst_result gpst_task_emit_at(gpst_task* task, gpst_target* target, uint64_t offset_bytes, const void* data,
                                       size_t bytes);
/* gpst_task_fail -- sets the sentence of this failure: return gpst_task_fail(task, GPST_ERROR_FORMAT, "...", ...)

   Parameters   task   (in)  the callback's; NULL in sources, sinks, kernels and worker_init, which have none
                result (in)  negative; anything else becomes GPST_ERROR_CALLBACK
                format (in)  as for printf; at most 511 bytes are kept; NULL = ""
   Shapes       none
   Returns      the result
   Ownership    format and arguments stay the caller's
   Threads      within a callback of this task only
   Blocking     never; no allocation
   Device       none
   Source       core/steps/task.c          Tests  tests/test_pipeline.c          Since 0.1
*/
GPST_API gpst_result gpst_task_fail(gpst_task* task, gpst_result result, const char* format, ...) GPSTI_PRINTF(3, 4);

/* gpst_task_enqueue -- in a DEVICE stage: puts an operation on the slot's stream, after what is there

   Parameters   task       (in)  the callback's
                kernel     (in)  host or gpu, or both
                args       (in)  argument block; copied; NULL where args_bytes is 0
                args_bytes (in)  at most 224
   Shapes       none
   Returns      GPST_OK | ARGUMENT | STATE (not a DEVICE stage) | UNSUPPORTED (the kernel has no form for this
                device; the item's device work is then done again on the CPU, unless the backend is
                required) | what the device or the kernel says
   Ownership    args is copied; what it points to must live until the item's device work is done
   Threads      within a callback of this task only
   Blocking     never on an asynchronous device; on the cpu backend kernel->host runs at once
   Device       runs on the slot's stream
   Source       core/steps/task.c          Tests  tests/test_pipeline_device.c          Since 0.1
*/
GPST_API gpst_result gpst_task_enqueue(gpst_task* task, const gpst_kernel* kernel, const void* args,
                                       size_t args_bytes);
/* gpst_task_native_stream -- in a DEVICE stage: the vendor's stream, for libraries that want one

   Parameters   task  (in)   the callback's
   Shapes       none
   Returns      a cudaStream_t or hipStream_t; NULL on backends that compute on the host, and outside of a
                DEVICE stage
   Ownership    the slot's; what is put on it must neither wait nor outlive its arguments; the caller makes
                the stream's device current where that is not the first
   Threads      within a callback of this task only
   Blocking     never; no allocation
   Device       what is put on it runs between the stages before and behind
   Source       core/steps/task.c          Tests  tests/test_pipeline_device.c          Since 0.1
*/
GPST_API void* gpst_task_native_stream(gpst_task* task);
/* gpst_task_pictures -- in a DEVICE stage: the pictures of a set where the device has them

   Parameters   task (in)   the callback's
                set  (in)   one that the stage reads, or has written
                out  (out)  n pictures; all-zero on failure
                n    (in)   at most as many as item->sets[set].n
   Shapes       tight pitch, but for a borrowed frame, whose rows lie as they came
   Returns      GPST_OK | ARGUMENT | STATE (not a DEVICE stage)
   Ownership    the item owns the memory
   Threads      within a callback of this task only
   Blocking     never; no allocation
   Device       device memory: not to be touched by the host unless the backend is zero-copy (cpu)
   Source       core/steps/task.c          Tests  tests/test_pipeline_device.c          Since 0.1
*/
GPST_API gpst_result gpst_task_pictures(gpst_task* task, uint32_t set, gpst_image* out, uint32_t n);
/* gpst_task_count -- in a DEVICE stage: the word that says how many of a set count, where only the device knows

   Parameters   task (in)   the callback's
                set  (in)   one that the stage writes, with as many pictures as there may be: its kernels put the number
                            that count into the word, which is 0 ahead of what the stage enqueues from then on. Where
                            the set's capacity is 1 its picture is a list, of height 1, and the columns count. Or a set
                            that the stage reads
                out  (out)  the word; NULL on failure, and of a set that the stage reads where all count
   Shapes       out: uint32_t[1]; more than there are means all
   Returns      GPST_OK | ARGUMENT (set) | STATE (not a DEVICE stage) | BUDGET | MEMORY | DEVICE_MEMORY. The item fails
                where a list is of another shape
   Ownership    the item owns the memory
   Threads      within a callback of this task only
   Blocking     as gpst_task_set_picture
   Device       memory of the device that does the item's device work, on cpu the host's. Device stages compute all
                pictures: what a WARP makes by a list of rois is 0 from the count on, and what MASK and WARP make of
                pictures counts as these do, by the same word. The number comes to the host only with a set that a
                result or a HOST stage wants there, or a WARP as its list of affines or views: then the set has so many
                pictures, or the list so many columns; of an empty list there is no picture
   Source       core/steps/task.c          Tests  tests/test_pipeline_counts.c          Since 0.1
*/
GPST_API gpst_result gpst_task_count(gpst_task* task, uint32_t set, uint32_t** out);

#ifdef __cplusplus
}
#endif
#endif
