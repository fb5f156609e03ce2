/* core/context.h -- what a process must have only once or share between
   pipelines: the backend's device, the workers, the budgets. */
#ifndef GPSTI_CONTEXT_H
#define GPSTI_CONTEXT_H

#include "base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_context gpst_context;

/* All-zero is valid. */
typedef struct gpst_context_desc {
    uint32_t start_canary;  /* 0 */
    gpst_allocator allocator;
    gpst_logger logger;
    const char* backend;    /* "auto" (default), "cpu", "cuda", "hip", "sim" or "sim:key=value,..."; copied */
    bool require_backend;   /* a named backend that is absent, or lost later, is an error: no fallback */
    uint32_t n_workers;     /* threads that run stages; 0 = cores allowed by affinity and quota */
    uint64_t max_host_bytes;   /* frame memory on the host; 0 = half of the RAM available now */
    uint64_t max_device_bytes; /* frame memory on the device; 0 = 9/10 of what is free now */
    uint32_t end_canary;    /* 0 */
} gpst_context_desc;

typedef struct gpst_context_info {
    const char* backend;      /* "cpu", "sim", "cuda", "hip": what was chosen */
    const char* device_name;
    const char* backend_reason; /* why this one: names what was asked for and what every other candidate said */
    bool fell_back;           /* not the backend asked for */
    uint32_t n_workers;
    uint32_t cores_allowed;
    uint64_t max_host_bytes, max_device_bytes;
    uint64_t allocation_count; /* calls to the allocator since creation */
    uint64_t live_bytes;       /* metadata bytes now held */
} gpst_context_info;

#define gpst_context_create(desc, out) \
    gpst_context_create_versioned(GPST_VERSION, sizeof(gpst_context_desc), (desc), (out))
GPST_API gpst_result gpst_context_create_versioned(uint32_t version, size_t desc_bytes,
                                                   const gpst_context_desc* desc, gpst_context** out);
GPST_API void gpst_context_destroy(gpst_context* context);
GPST_API void gpst_context_query_info(const gpst_context* context, gpst_context_info* out);

#ifdef __cplusplus
}
#endif
#endif
