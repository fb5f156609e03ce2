/* core/pool.h -- aligned host buffers in size classes, allocated once and used
   again from any thread. Owns frame memory on the host; knows nothing of what is in it. */
#ifndef GPSTI_POOL_H
#define GPSTI_POOL_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_pool gpst_pool;

typedef enum gpst_huge_pages {
    GPST_HUGE_PAGES_DEFAULT = 0, /* try for buffers of 2 MiB and more */
    GPST_HUGE_PAGES_OFF = 1,
    GPST_HUGE_PAGES_ALWAYS = 2   /* try for every buffer */
} gpst_huge_pages;

typedef struct gpst_pool_desc {
    uint32_t start_canary;
    uint64_t max_bytes; /* cap on what the pool holds, free or in use; 0 = the context's max_host_bytes alone */
    gpst_huge_pages huge_pages;
    uint32_t end_canary;
} gpst_pool_desc;

/* A buffer out on loan. bytes is what was granted (the size class), at least what was asked for. */
typedef struct gpst_buffer {
    void* data;          /* page-aligned */
    size_t bytes;
    uint64_t id;         /* the pool's own */
} gpst_buffer;

typedef struct gpst_pool_info {
    uint64_t live_bytes, peak_bytes; /* on loan: now, and at most since creation */
    uint64_t held_bytes;             /* on loan or free */
    uint64_t acquires, allocations, waits, wait_ns, refusals;
    uint64_t hugetlb_bytes, thp_bytes, small_bytes, pinned_bytes; /* of held_bytes, by what the pages are */
    char pages_reason[128];          /* why not better pages; "" when nothing was refused */
} gpst_pool_info;

#define gpst_pool_create(context, desc, out) \
    gpst_pool_create_versioned(GPST_VERSION, sizeof(gpst_pool_desc), (context), (desc), (out))
GPST_API gpst_result gpst_pool_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                const gpst_pool_desc* desc, gpst_pool** out);
/* STATE while buffers are on loan; then nothing is freed. */
GPST_API gpst_result gpst_pool_destroy(gpst_pool* pool);
/* timeout_ns 0 = never waits; waits only for buffers of the pool to come back under its cap. */
GPST_API gpst_result gpst_pool_acquire(gpst_pool* pool, size_t bytes, int64_t timeout_ns, gpst_buffer* out);
GPST_API void gpst_pool_release(gpst_pool* pool, gpst_buffer* buffer);
GPST_API void gpst_pool_trim(gpst_pool* pool); /* gives free buffers back to the system */
GPST_API void gpst_pool_query_info(const gpst_pool* pool, gpst_pool_info* out);

#ifdef __cplusplus
}
#endif
#endif
