/* core/device/context.h -- what a process must have only once or share between
   pipelines: the backend's device, the workers, frame memory. */
#ifndef GPSTI_CONTEXT_H
#define GPSTI_CONTEXT_H

#include "../base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_context gpst_context;

typedef struct gpst_memory_use gpst_memory_use; /* core/memory/budget.h */

/* use dies when it returns. */
typedef void (*gpst_memory_alert_func)(void* user_data, const gpst_memory_use* use);

/* gpst_memory_marks -- soft limits below the budget of the device's memory; all-zero is valid

   When memory of the device is made and then more than alert_part is in use, of max_device_bytes by the context or of
   the device's memory by all processes, the context frees what it has free down to target_part and calls alert, once,
   on the thread that made the memory. No lock of gpustage's is held: alert may query, trim, release and acquire. The
   two are watched separately: each calls alert again only after it has fallen to target_part. The device is asked when
   memory is made, each time that 1/128 of it has been; one that is zero_copy is not. The refusal itself comes at
   max_device_bytes.

   Ownership    copied; user_data lives as long as the context
   Since 0.1
*/
typedef struct gpst_memory_marks {
    double alert_part;            /* 0 = 0.9; 1 = there is no mark */
    double target_part;           /* up to alert_part; 0 = 17/18 of alert_part: 0.85 */
    gpst_memory_alert_func alert; /* NULL: memory is freed all the same, and the log says so at INFO */
    void* user_data;
} gpst_memory_marks;

/* gpst_context_desc -- what a context is made of; all-zero is valid

   Ownership    the caller's; read during create only, strings too
   Since 0.1
*/
typedef struct gpst_context_desc {
    uint32_t start_canary; /* 0 */
    gpst_allocator allocator;
    gpst_logger logger;
    /* "auto" (NULL = "auto": the GPU if one answers, else "cpu"), "cpu", "cuda", "hip" ("cuda:device=1" for another
       than the first). On CUDA it works in the context that is current, as gpst_device_open does */
    const char* backend;
    bool require_backend; /* device trouble fails the item; else the CPU does its work again */
    uint32_t n_workers;   /* threads that run stages, up to 1024; 0 = cores allowed by affinity, quota and pin. Set it
                             to as many callbacks as may wait at once (for a network, say), since each keeps its
                             thread. They start with the context, and sleep until there is work. Fewer where the address
                             space is limited (ulimit -v) and they would take more than half of what is left of it */
    /* Linux; elsewhere nothing is pinned. NULL or "none": threads run where the system puts them. "cores": each worker
       on one of the cores that the process may run on, in turn. "0-3,8": the same with these cores, and the threads
       that read and write files on any of them. Threads that a worker's own calls start (OpenMP's, a driver's) inherit
       its core; the caller's threads are left alone. */
    const char* pin;
    /* Frame memory, lent and free, as it was really taken (huge pages whole). On the host, 0 = half of the RAM
       available now, or of the address space that is left where that is less; on the device, 0 = 9/10 of what is free
       now. */
    uint64_t max_host_bytes, max_device_bytes;
    /* Memory that pipelines, pools, rings and gpst_memory_destroy gave back and whoever is next finds, of the host and
       of the device each, within the two budgets: making it, and page-locking it, takes a short run longer than its
       work. 0 = an eighth of each budget; 1 = nothing is kept. An asynchronous device's streams and events are kept
       with it, 32 and 128 at the most. gpst_context_trim gives all of that back. */
    uint64_t max_kept_bytes;
    gpst_memory_marks memory_marks;
    uint32_t end_canary;       /* 0 */
} gpst_context_desc;

/* gpst_context_info -- what was chosen, and what is held

   Ownership    the caller's; the strings are the context's and die with it
   Since 0.1
*/
typedef struct gpst_context_info {
    const char* backend; /* "cpu", "cuda", "hip" */
    const char* device_name;
    const char* backend_reason; /* what was asked for, and why this one serves it */
    uint32_t n_workers;
    uint32_t cores_allowed;
    const char* pinned;  /* "none", "cores 0-3,8", "none: not on this system" */
    /* A file that is being written is called .gpustage-TAG-N.tmp until it is whole. This is TAG: the process's own, by
       which whoever cleans up behind a killed run tells its files from those of others. */
    const char* temporary_tag;
    uint64_t max_host_bytes, max_device_bytes;
    uint64_t allocation_count; /* calls to the allocator since creation */
    uint64_t live_bytes;       /* metadata bytes now held */
    uint64_t kept_host_bytes, kept_device_bytes; /* frame memory that is free and no pool's */
} gpst_context_info;

/* gpst_context_create -- opens the backend, starts the workers, sets the budgets

   The macro passes the version and the size of the desc, so that a caller and an implementation from
   different headers refuse each other; gpst_context_create_versioned is what it calls.

   Parameters   desc  (in)   NULL = all defaults
                out   (out)  the context; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_NO_BACKEND (a named backend is not here; "auto" takes what is, and
                gpst_context_info.backend_reason says why) | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION |
                GPST_ERROR_MEMORY | what opening the device gave
   Ownership    destroy with gpst_context_destroy; what is created in it goes first
   Threads      any
   Blocking     starts n_workers threads; allocates
   Device       opens it
   Source       core/pipeline/context.c          Tests  tests/test_context.c          Since 0.1
*/
#define gpst_context_create(desc, out) \
    gpst_context_create_versioned(GPST_VERSION, sizeof(gpst_context_desc), (desc), (out))
GPST_API gpst_result gpst_context_create_versioned(uint32_t version, size_t desc_bytes,
                                                   const gpst_context_desc* desc, gpst_context** out);

/* gpst_context_destroy -- stops the workers and closes the device

   Parameters   context  (in)  NULL is a no-op
   Shapes       none
   Returns      GPST_OK | STATE (what was made in it is there: destroy that first; the log names its memory too) |
                REENTRANT (from a callback of one of its pipelines) | FORKED. But for OK nothing is done
   Ownership    everything of the context is gone when OK; its strings too
   Threads      one, and no call on the context or on what was made in it is running
   Blocking     until the workers have ended
   Device       closes it
   Source       core/pipeline/context.c          Tests  tests/test_context.c          Since 0.1
*/
GPST_API gpst_result gpst_context_destroy(gpst_context* context);

/* gpst_context_trim -- gives back the memory that is kept for whoever is next, and a device's streams and events

   Parameters   context  (in)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    none
   Threads      any
   Blocking     unmaps memory, which takes milliseconds where a driver has it page-locked
   Device       frees memory of its own and of the host, and destroys streams and events
   Source       core/pipeline/context.c          Tests  tests/test_memory.c          Since 0.1
*/
GPST_API void gpst_context_trim(gpst_context* context);

/* gpst_context_query_info -- the resolved settings

   Parameters   context  (in)   NULL fills with zeroes
                out      (out)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    see gpst_context_info
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/pipeline/context.c          Tests  tests/test_context.c          Since 0.1
*/
GPST_API void gpst_context_query_info(const gpst_context* context, gpst_context_info* out);

#ifdef __cplusplus
}
#endif
#endif
