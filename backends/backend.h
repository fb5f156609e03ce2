/* backends/backend.h -- the device contract: what the engine may ask of any
   backend. Internal: users name backends, they do not call them. */
#ifndef GPSTI_BACKEND_H
#define GPSTI_BACKEND_H

#include "../core/base/base_internal.h"

#define GPSTI_BACKEND_ABI 5
#define GPSTI_ARGS_BYTES 288 /* largest argument block of a launch */

/* Of the sources in gpustage.h (amalgamate.py defines it there): units made from different headers refuse each
   other. "" in the split build: taken on trust. */
#if !defined(GPSTI_SOURCE_ID)
#define GPSTI_SOURCE_ID ""
#endif

typedef struct gpsti_backend_i gpsti_backend_i;

/* Every backend's own structs begin with these. */
typedef struct gpsti_device {
    const gpsti_backend_i* i;
    gpsti_host* host;
    gpsti_a64 played_ns; /* what the host's cores have worked as this device by now; 0 where it has its own */
} gpsti_device;
typedef struct gpsti_stream {
    gpsti_device* device;
} gpsti_stream;
typedef struct gpsti_event {
    gpsti_device* device;
} gpsti_event;
typedef struct gpsti_graph {
    gpsti_device* device;
    uint64_t device_bytes; /* memory of the device that it takes, as measured when it was made */
} gpsti_graph;

typedef struct gpsti_device_info {
    char name[128];
    bool zero_copy;    /* device memory is host memory: upload and download may be left out */
    bool asynchronous; /* false: every operation is done when its submission returns */
    bool reaches_host; /* kernels read and write pinned host memory at its own address, over the link */
    bool locks_host;   /* host_alloc page-locks, which takes time by the byte, for one thread after the other */
    bool counts_bytes; /* a launch takes the time that its gpsti_exec.bytes need: worth counting them */
    uint32_t n_copy_engines;
    int32_t ordinal; /* which of the backend's devices, as the vendor counts them */
    uint64_t memory_bytes, memory_free_bytes;
    char context[64]; /* "in ...": which of the vendor's contexts it works in; "" where there is no choice */
} gpsti_device_info;

typedef enum gpsti_copy_kind {
    GPSTI_COPY_H2D = 1,
    GPSTI_COPY_D2H = 2,
    GPSTI_COPY_D2D = 3,
    GPSTI_COPY_ANY = 4 /* by where the two addresses lie; from host to host, too */
} gpsti_copy_kind;

typedef struct gpsti_host_memory {
    void* ptr;
    size_t bytes;        /* usable, >= asked for */
    size_t mapped_bytes; /* backend's own bookkeeping */
    gpsti_pages_kind pages;
    bool pinned;       /* true only where the device really has it page-locked */
    char why_not[128]; /* why not the better pages or pinning; "" when nothing was refused */
} gpsti_host_memory;

/* What a launch is told beside its arguments. */
typedef struct gpsti_exec {
    uint32_t n_threads; /* on the CPU: 1 = serial on the calling thread; more = OpenMP inside the call */
    uint64_t bytes;     /* unique bytes the launch reads and writes; 0 = not known. For device_info.counts_bytes */
} gpsti_exec;

/* Lists in host memory that an argument block points to, on their way into a room and back: see gpsti_kernel.lists. */
typedef struct gpsti_lists {
    uint8_t* room;  /* aligned to 8; NULL: the lists are counted only */
    size_t n_bytes; /* of those so far; a multiple of 8 */
    bool copied;    /* they are in the room already */
} gpsti_lists;

/* The next list, of so many bytes. Gives what the argument block has in its place: the list, where it is counted only;
   where in the room it is, as a number that is never 0, where it is copied; from that number, the address. NULL gives
   NULL. */
GPSTI_INTERN const void* gpsti_lists_take(gpsti_lists* lists, const void* list, size_t bytes);
/* Copies what the launch depends on beside its arguments, and finds again by itself. */
GPSTI_INTERN void gpsti_lists_add(gpsti_lists* lists, const void* data, size_t bytes);

/* One operation, from one argument block. `host` computes it on the CPU. `gpu` runs on the calling thread too: it
   puts the work on native_stream (a cudaStream_t or hipStream_t), with the device current, and returns; it
   is defined in a .cu.h file with GPSTI_LINK, uses backends/gpu_runtime_internal.h, and must neither wait
   nor allocate on the way of an item. NULL where the program has no GPU (see GPSTI_GPU_LAUNCHER) or the
   operation no GPU form: then a GPU backend's launch is GPST_ERROR_UNSUPPORTED. */
typedef struct gpsti_kernel {
    const char* name;
    gpst_result (*host)(const void* args, const gpsti_exec* exec);
    gpst_result (*gpu)(const void* args, void* native_stream);
    /* Optional: calls gpsti_lists_take for each list of the host's that args points to, in the same order each time,
       and puts what that gives in its place: so a launch can be kept as bytes. NULL: there are none. */
    void (*lists)(void* args, gpsti_lists* lists);
} gpsti_kernel;

/* {"mask", gpsti_mask_host, GPSTI_GPU_LAUNCHER(gpsti_mask_gpu), gpsti_mask_lists} */
#if defined(GPSTI_GPU)
#define GPSTI_GPU_LAUNCHER(function) function
#else
#define GPSTI_GPU_LAUNCHER(function) NULL
#endif

/* A backend. Streams are in order; operations on different streams may overlap. Every submission returns at
   once on an asynchronous device. Failures set the reason, with the vendor's own text. A failure is
   reported once: by the submission, or, when it happens later, by the next notification, stream_query that does
   not block, or stream_wait_idle of its stream (the first since the last of them; what follows it on the stream
   still runs). After loss of the device every call returns GPST_ERROR_DEVICE_LOST, frees, destroys and waits
   still work, and pending notifications are delivered with it. */
struct gpsti_backend_i {
    uint32_t size_bytes; /* sizeof(gpsti_backend_i) */
    uint32_t abi;        /* GPSTI_BACKEND_ABI */
    const char* source_id; /* GPSTI_SOURCE_ID */
    const char* name;

    /* What device_open would open, without touching it: no context is made, memory_free_bytes is 0. NO_BACKEND with
       the vendor's text when there is none. Optional: NULL = opening costs nothing. */
    gpst_result (*device_probe)(const char* params, gpsti_device_info* out);

    /* params: what follows "name:" in the backend's name, NULL or "" when nothing does. Required. */
    gpst_result (*device_open)(gpsti_host* host, const char* params, gpsti_device** out);
    void (*device_close)(gpsti_device* device); /* every stream, event, graph and memory is gone by then */
    void (*device_query)(const gpsti_device* device, gpsti_device_info* out);
    /* Of the device's memory as a whole, whichever process uses it; much faster than device_query. 0 and 0 where the
       device does not say. Sets no reason. Required. */
    void (*memory_info)(const gpsti_device* device, uint64_t* free_bytes, uint64_t* total_bytes);

    /* Device memory, aligned to 256 bytes at least. Required. */
    gpst_result (*memory_alloc)(gpsti_device* device, size_t bytes, void** out);
    void (*memory_free)(gpsti_device* device, void* ptr, size_t bytes);

    /* Host memory that copies best: pinned where the device pins; page-aligned. Required. */
    gpst_result (*host_alloc)(gpsti_device* device, size_t bytes, bool want_huge, gpsti_host_memory* out);
    void (*host_free)(gpsti_device* device, gpsti_host_memory* memory);
    /* Page-locks memory allocated by others; what is locked already is refused. Optional, both: NULL = it stays
       pageable. */
    gpst_result (*host_register)(gpsti_device* device, void* ptr, size_t bytes);
    void (*host_unregister)(gpsti_device* device, void* ptr, size_t bytes); /* as it was registered */

    /* Refuses memory that others allocated where the vendor knows that this device's kernels may not touch it, which
       costs less than a copy: that of another context. Optional: NULL = there is nothing to know. */
    gpst_result (*memory_check)(gpsti_device* device, const void* ptr);

    /* Required. */
    gpst_result (*stream_create)(gpsti_device* device, gpsti_stream** out);
    void (*stream_destroy)(gpsti_stream* stream); /* waits for its work */
    gpst_result (*stream_wait_idle)(gpsti_stream* stream);
    /* The same at once: WOULD_BLOCK, without a reason, while there is work. */
    gpst_result (*stream_query)(gpsti_stream* stream);
    /* Calls func once, from a thread of the backend (or at once, from this one, when not asynchronous),
       after all earlier work of the stream; result is that work's, its reason is on the thread of func.
       func must not call the device. On failure of the submission itself func is not called. */
    gpst_result (*stream_notify)(gpsti_stream* stream, void (*func)(void* user_data, gpst_result result),
                                 void* user_data);

    /* The cudaStream_t or hipStream_t. Optional: NULL = the backend computes on the host. */
    void* (*stream_native)(gpsti_stream* stream);
    /* A stream of the host application's, which stays its own: stream_destroy leaves it, and does not wait for it.
       native may be NULL: the vendor's default stream. Required where there is stream_native, else NULL. */
    gpst_result (*stream_wrap)(gpsti_device* device, void* native, gpsti_stream** out);

    /* Timed events. time_ns is when the event happened on the device's own clock (comparable between events
       of one device); valid after the event is done. Required. */
    gpst_result (*event_create)(gpsti_device* device, gpsti_event** out);
    void (*event_destroy)(gpsti_event* event);
    gpst_result (*event_record)(gpsti_event* event, gpsti_stream* stream);
    gpst_result (*event_query)(gpsti_event* event); /* OK or WOULD_BLOCK */
    gpst_result (*event_wait)(gpsti_event* event);  /* blocks the caller */
    gpst_result (*event_time)(gpsti_event* event, int64_t* time_ns);
    gpst_result (*stream_wait_event)(gpsti_stream* stream,
                                     gpsti_event* event); /* the stream waits, not the caller */

    /* Required. */
    gpst_result (*copy)(gpsti_stream* stream, gpsti_copy_kind kind, void* dst, const void* src, size_t bytes);
    /* n_rows of row_bytes each, as GPSTI_COPY_ANY; pitches >= row_bytes, up to INT32_MAX. Optional: NULL = a copy for
       each row. */
    gpst_result (*copy_rows)(gpsti_stream* stream, void* dst, size_t dst_pitch_bytes, const void* src,
                             size_t src_pitch_bytes, size_t row_bytes, size_t n_rows);
    gpst_result (*memory_set)(gpsti_stream* stream, void* dst, int value, size_t bytes);
    /* args (args_bytes <= GPSTI_ARGS_BYTES) is copied; what it points to must live until the work is done.
       exec is meant for backends that compute on the CPU; NULL: one thread, bytes not known. */
    gpst_result (*launch)(gpsti_stream* stream, const gpsti_kernel* kernel, const void* args,
                          size_t args_bytes, const gpsti_exec* exec);

    /* Graphs: between begin and end, on one thread, the stream records copies, sets and launches instead of running
       them; anything else on it is GPST_ERROR_STATE. *graph: NULL, or a graph of this device, which becomes what was
       recorded: as it is where only addresses and sizes differ, else made anew; on failure it is gone, and *graph NULL.
       A graph that runs may be destroyed. Required. */
    gpst_result (*graph_begin)(gpsti_stream* stream);
    gpst_result (*graph_end)(gpsti_stream* stream, gpsti_graph** graph);
    gpst_result (*graph_launch)(gpsti_graph* graph, gpsti_stream* stream);
    void (*graph_destroy)(gpsti_graph* graph);

    /* Copies between devices and sharing between processes. Optional: NULL = not here, stage through the
       host. */
    gpst_result (*copy_peer)(gpsti_stream* stream, void* dst, gpsti_device* dst_device, const void* src,
                             size_t bytes);
    gpst_result (*ipc_export)(gpsti_device* device, void* ptr, void* handle_64_bytes);
    gpst_result (*ipc_import)(gpsti_device* device, const void* handle_64_bytes, void** out);
    void (*ipc_close)(gpsti_device* device, void* ptr); /* of what import gave; the exporter frees it afterwards */

    /* The vendor's text for the latest failure; never NULL. Required. */
    const char* (*last_error)(const gpsti_device* device);

    /* When a file's bytes, asked for at start_ns, are moved on a modelled machine's disk. Optional: NULL = the disk is
       real. */
    int64_t (*disk_end)(gpsti_device* device, bool write, size_t bytes, int64_t start_ns);
};

/* A name that a user may ask for. */
typedef struct gpsti_backend_entry {
    const char* name;
    const gpsti_backend_i* (*backend)(void); /* NULL: not compiled in */
    bool by_name_only; /* for tests: neither listed nor chosen by itself */
} gpsti_backend_entry;

GPSTI_INTERN const gpsti_backend_entry* gpsti_backend_list(size_t* n);

GPSTI_INTERN const gpsti_backend_i* gpsti_backend_cpu(void);
GPSTI_INTERN const gpsti_backend_i* gpsti_backend_sim(void);
#if defined(GPSTI_GPU)
GPSTI_LINK const gpsti_backend_i* gpsti_backend_gpu(void); /* cuda or hip */
#endif

#endif
