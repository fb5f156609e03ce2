/* core/memory/pool.h -- aligned host buffers in size classes, allocated once and used
   again from any thread. Owns frame memory on the host; knows nothing of what is in it. */
#ifndef GPSTI_POOL_H
#define GPSTI_POOL_H

#include "../device/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_pool gpst_pool;

typedef enum gpst_huge_pages {
    GPST_HUGE_PAGES_DEFAULT = 0, /* try for buffers of 768 KiB and more */
    GPST_HUGE_PAGES_OFF = 1,
    GPST_HUGE_PAGES_ALWAYS = 2 /* try for every buffer */
} gpst_huge_pages;

/* gpst_pool_desc -- what a pool is made of; all-zero is valid

   Ownership    the caller's; read during create only
   Since 0.1
*/
typedef struct gpst_pool_desc {
    uint32_t start_canary; /* 0 */
    uint64_t
        max_bytes; /* cap on what the pool holds, free or on loan; 0 = the context's max_host_bytes alone */
    gpst_huge_pages huge_pages;
    uint32_t end_canary; /* 0 */
} gpst_pool_desc;

/* gpst_buffer -- a buffer on loan; all-zero is none

   Ownership    the struct is the caller's; data is the pool's and lent until release
   Since 0.1
*/
typedef struct gpst_buffer {
    void* data;   /* page-aligned */
    size_t bytes; /* of the size class: at least what was asked for */
    uint64_t id;  /* the pool's own: this loan */
    bool pinned;  /* the device has it page-locked */
} gpst_buffer;

/* gpst_pool_info -- what a pool holds and has done since its creation

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_pool_info {
    uint64_t live_bytes, peak_bytes; /* on loan: now, and at most since creation */
    uint64_t held_bytes;             /* on loan or free, as charged against the budgets */
    uint64_t acquires, allocations, waits, wait_ns, refusals;
    uint64_t hugetlb_bytes, thp_bytes, small_bytes, pinned_bytes; /* of held_bytes, by what the pages are */
    char pages_reason[128]; /* why the latest allocation got no better pages; "" when nothing was refused */
} gpst_pool_info;

/* gpst_pool_create -- an empty pool

   Parameters   context  (in)   not NULL
                desc     (in)   NULL = all defaults
                out      (out)  the pool; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_MEMORY | GPST_ERROR_FORKED
   Ownership    destroy with gpst_pool_destroy, before the context
   Threads      any
   Blocking     never; allocates metadata, no buffer yet
   Device       none
   Source       core/memory/pool.c          Tests  tests/test_pool.c          Since 0.1
*/
#define gpst_pool_create(context, desc, out) \
    gpst_pool_create_versioned(GPST_VERSION, sizeof(gpst_pool_desc), (context), (desc), (out))
GPST_API gpst_result gpst_pool_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                const gpst_pool_desc* desc, gpst_pool** out);

/* gpst_pool_destroy -- gives everything back

   Parameters   pool  (in)  NULL is a no-op
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_STATE (buffers are on loan: nothing is freed) | GPST_ERROR_FORKED
   Ownership    the pool is gone when OK
   Threads      one, and no other call on the pool is running
   Blocking     never waits for loans; unmaps memory
   Device       frees host memory
   Source       core/memory/pool.c          Tests  tests/test_pool.c          Since 0.1
*/
GPST_API gpst_result gpst_pool_destroy(gpst_pool* pool);

/* gpst_pool_acquire -- lends a buffer of at least bytes

   A free buffer of the size class is lent again; else a new one is allocated. At a budget, free buffers of
   other classes are given back first; then the call waits until others release. Classes are 4096 bytes apart
   up to 8 pages, and eight to a power of two above: less than 1/8 is more than was asked for.

   Parameters   pool        (in)   not NULL
                bytes       (in)   1 .. SIZE_MAX/2
                timeout_ns  (in)   0 = never waits; GPST_FOREVER
                out         (out)  the loan; all-zero on failure
   Shapes       out->data: uint8_t[out->bytes]; zeroed when new, else as the last user left it
   Returns      GPST_OK | GPST_ERROR_BUDGET (can never fit, or nothing of this pool is on loan that could come
                back) | GPST_ERROR_WOULD_BLOCK (timeout_ns 0) | GPST_ERROR_TIMEOUT | GPST_ERROR_MEMORY |
                GPST_ERROR_OVERFLOW | GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED
   Ownership    lent until gpst_pool_release, by any thread; the address is stable until then
   Threads      any, also several at once
   Blocking     up to timeout_ns, for releases into this pool only; allocating a large buffer takes
                milliseconds
   Device       new buffers come from the device's host memory: pinned where the backend pins
   Source       core/memory/pool.c          Tests  tests/test_pool.c          Since 0.1
*/
GPST_API gpst_result gpst_pool_acquire(gpst_pool* pool, size_t bytes, int64_t timeout_ns, gpst_buffer* out);

/* gpst_pool_release -- ends a loan and zeroes *buffer; gpst_pool_trim -- gives free buffers back

   Parameters   pool    (in)       NULL is a no-op
                buffer  (in, out)  a loan of this pool; NULL or all-zero is a no-op. What is not on loan from
                                   this pool (another's, or released already by way of a copy) is logged
                                   and ignored
   Shapes       none
   Returns      none
   Ownership    the buffer's memory is the pool's again
   Threads      any, also several at once
   Blocking     never; trim unmaps memory
   Device       the device must be done with the memory; trim frees host memory
   Source       core/memory/pool.c          Tests  tests/test_pool.c          Since 0.1
*/
GPST_API void gpst_pool_release(gpst_pool* pool, gpst_buffer* buffer);
GPST_API void gpst_pool_trim(gpst_pool* pool);

/* gpst_pool_query_info -- statistics

   Parameters   pool  (in)   NULL fills with zeroes
                out   (out)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/memory/pool.c          Tests  tests/test_pool.c          Since 0.1
*/
GPST_API void gpst_pool_query_info(const gpst_pool* pool, gpst_pool_info* out);

#ifdef __cplusplus
}
#endif
#endif
