/* core/device/device.h -- a device without a pipeline: which there are, opening one, and memory of the host and of the
   device. The same program on every backend; what happens on a device in order is in stream.h. */
#ifndef GPSTI_DEVICE_H
#define GPSTI_DEVICE_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_device gpst_device;
typedef struct gpst_memory gpst_memory;

/* gpst_device_entry -- a device that there is, or a backend that has none, and why

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_device_entry {
    char name[32];         /* for gpst_device_open: "cpu", "cuda:device=1" */
    bool compiled_in, available;
    char device_name[128]; /* "" when not available */
    uint64_t memory_bytes;
    gpst_result result;
    char reason[160];      /* why not available or not compiled in; "" when available */
} gpst_device_entry;

/* gpst_device_list -- every device of every backend, without opening one for good

   Parameters   out  (out)  max rows; NULL with max 0
                max  (in)   rows that out has
                n    (out)  rows that there are, which may be more than max; not NULL; 0 on failure
   Shapes       out[max]
   Returns      GPST_OK, also where a backend has no device: it has one row then, with its own result and reason
                | GPST_ERROR_ARGUMENT
   Ownership    none
   Threads      any; needs no context
   Blocking     with a GPU backend compiled in its driver is started, about 100 ms once a process
   Device       no context of a GPU is made
   Source       core/device/device.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_device_list(gpst_device_entry* out, uint32_t max, uint32_t* n);

/* gpst_device_open -- opens a device by name (through the macro, which passes the version)

   Parameters   name       (in)   as gpst_context_desc.backend: "auto" (NULL = "auto": the GPU if one answers, else the
                                  CPU), "cpu", "cuda", "cuda:device=1", "hip"
                version    (in)   GPST_VERSION
                info_bytes (in)   sizeof(gpst_device_info)
                allocator  (in)   for what is made of this device; NULL = the C library's; the macro passes NULL
                logger     (in)   NULL = errors and warnings to stderr; the macro passes NULL
                out        (out)  the device; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_NO_BACKEND (a named backend is not here; "auto" takes what is, and
                gpst_device_info.reason says why) | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_MEMORY | what
                opening the device gave
   Ownership    gpst_device_close ends it; what is made of it goes first
   Threads      any; the device may be used by all of them
   Blocking     a GPU's context may have to be made: some 100 ms
   Device       opens it. On CUDA in the context of the application's that is current on this thread, where there is one
                of the device that was named, or none was; else in the device's primary context. All its calls work
                there, and what was current before a call is so behind it: docs/host-application.md
   Source       core/device/device.c          Tests  tests/test_device.c          Since 0.1
*/
#define gpst_device_open(name, out) \
    gpst_device_open_versioned(GPST_VERSION, sizeof(gpst_device_info), (name), NULL, NULL, (out))
GPST_API gpst_result gpst_device_open_versioned(uint32_t version, size_t info_bytes, const char* name,
                                                const gpst_allocator* allocator, const gpst_logger* logger,
                                                gpst_device** out);

/* gpst_device_close -- closes a device that gpst_device_open gave

   Parameters   device  (in)  NULL is a no-op
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_STATE (memory, streams or events of it are still there, or it is a context's:
                nothing is closed) | GPST_ERROR_FORKED
   Ownership    the device is gone when OK, with the strings of its info
   Threads      one, and no other call on the device is running
   Blocking     never
   Device       closes it
   Source       core/device/device.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_device_close(gpst_device* device);

/* gpst_context_device -- the device that a context chose, for use beside its pipelines

   Memory made of it counts against the context's max_host_bytes and max_device_bytes.

   Parameters   context  (in)  NULL gives NULL
   Shapes       none
   Returns      the device, as if gpst_device_open had given it
   Ownership    the context's; do not close; what is made of it goes before the context
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/device/device.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_device* gpst_context_device(gpst_context* context);

/* gpst_device_info -- what a device is

   Ownership    the caller's; the strings are the device's and die with it
   Since 0.1
*/
typedef struct gpst_device_info {
    const char* backend; /* "cpu", "cuda", "hip" */
    const char* name;    /* as the vendor has it */
    const char* reason;  /* what was asked for, why this one serves it, and in which context of the vendor's */
    bool asynchronous;   /* false: every operation is done when its call returns */
    bool zero_copy;      /* device memory is host memory: the host may use its address */
    bool copies_peers;   /* gpst_copy_peer to another device of the same backend does not go through the host */
    int32_t ordinal;     /* which of the backend's devices, as the vendor counts them; 0 on cpu */
    uint32_t n_copy_engines; /* copies up and down that may run beside a kernel; 0 = not known, or none are needed */
    uint64_t memory_bytes, memory_free_bytes; /* of the device, by all processes; free: as far as it is known, now */
    uint64_t n_objects;        /* memories, streams and events that are there */
    uint64_t allocation_count; /* calls to the allocator since opening (of a context's: since its creation) */
    uint64_t live_bytes;       /* metadata bytes now held */
} gpst_device_info;

/* gpst_device_query_info -- what a device is, and what is free of it

   Parameters   device  (in)   NULL fills with zeroes
                out     (out)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    see gpst_device_info
   Threads      any
   Blocking     asks the driver, which may take milliseconds; in a forked child nobody is asked
   Device       none is changed
   Source       core/device/device.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API void gpst_device_query_info(const gpst_device* device, gpst_device_info* out);

/* ---- memory -------------------------------------------------------------------- */

typedef enum gpst_memory_kind {
    GPST_MEMORY_INVALID = 0,
    GPST_MEMORY_HOST = 1,       /* plain: copies from and to it may make the host wait */
    GPST_MEMORY_PINNED = 2,     /* page-locked host memory, where the device locks any: what copies best */
    GPST_MEMORY_DEVICE = 3,     /* only the device uses its address, but on a zero_copy one */
    GPST_MEMORY_REGISTERED = 4  /* the user's own host memory: gpst_memory_register */
} gpst_memory_kind;

/* gpst_memory_info -- what a piece of memory is

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_memory_info {
    gpst_memory_kind kind;
    void* data;
    size_t bytes;     /* as asked for */
    bool pinned;      /* the device has it page-locked */
    char reason[128]; /* why PINNED or REGISTERED memory is not, or why it has no larger pages; "" else */
} gpst_memory_info;

/* gpst_memory_create -- memory of one kind, for copies and kernels of this device

   Of a context's device it is taken from the context's memory, in its size classes (gpst_pool_acquire) and budgets:
   where a piece of the class is free nobody asks the driver. A device that was opened by itself has no such memory.

   Parameters   device  (in)   not NULL
                kind    (in)   HOST, PINNED or DEVICE
                bytes   (in)   1 .. SIZE_MAX/2
                out     (out)  the memory; NULL on failure
   Shapes       uint8_t[bytes]; HOST and PINNED page-aligned and zeroed, DEVICE aligned to 256 bytes and as it comes
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_MEMORY | GPST_ERROR_DEVICE_MEMORY | GPST_ERROR_BUDGET (the
                context's) | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST (the vendor's text is the reason) |
                GPST_ERROR_FORKED
   Ownership    destroy with gpst_memory_destroy, before the device
   Threads      any, also several at once
   Blocking     allocates; page-locking takes time by the byte
   Device       allocates; PINNED memory that the vendor does not lock is there all the same: see gpst_memory_info
   Source       core/memory/device_memory.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_memory_create(gpst_device* device, gpst_memory_kind kind, size_t bytes, gpst_memory** out);

/* gpst_memory_register -- page-locks memory that the user allocated, where the device can

   Parameters   device  (in)   not NULL
                data    (in)   host memory; not NULL; a driver locks whole pages, and may refuse to lock one twice
                bytes   (in)   1 .. SIZE_MAX/2
                out     (out)  of kind REGISTERED; its data is the user's; NULL on failure
   Shapes       data: uint8_t[bytes]
   Returns      GPST_OK, also where the device locks nothing (cpu): gpst_memory_info says so | GPST_ERROR_ARGUMENT |
                GPST_ERROR_MEMORY | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST (the vendor's text is the reason: locked
                already, over the memlock limit) | GPST_ERROR_FORKED
   Ownership    data stays the user's and must live until gpst_memory_destroy, which only unlocks it
   Threads      any, also several at once
   Blocking     takes time by the byte
   Device       knows the memory until it is destroyed; on cpu nothing happens
   Source       core/memory/device_memory.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API gpst_result gpst_memory_register(gpst_device* device, void* data, size_t bytes, gpst_memory** out);

/* gpst_memory_destroy -- frees memory, or unlocks what was registered; what a context's memory gave it has back, and
   may lend it at once

   Parameters   memory  (in)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    the memory is gone; of REGISTERED memory the data is the user's as before
   Threads      one
   Blocking     unmaps memory; a driver may wait for its device
   Device       must be done with the memory: no stream may still use it; in a forked child nothing happens
   Source       core/memory/device_memory.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API void gpst_memory_destroy(gpst_memory* memory);

/* gpst_memory_data -- its address; gpst_memory_query_info -- and all else

   Parameters   memory  (in)   NULL: NULL, and zeroes
                out     (out)  NULL is a no-op
   Shapes       uint8_t[bytes]
   Returns      of DEVICE memory an address for copies and kernels, which the host does not read unless the device is
                zero_copy; nothing
   Ownership    the memory's; stable until it is destroyed
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/memory/device_memory.c          Tests  tests/test_device.c          Since 0.1
*/
GPST_API void* gpst_memory_data(const gpst_memory* memory);
GPST_API void gpst_memory_query_info(const gpst_memory* memory, gpst_memory_info* out);

#ifdef __cplusplus
}
#endif
#endif
