/* core/memory/pool.h -- buffers of the host or of the device, in size classes or chunks, allocated once and used again
   from any thread. Knows nothing of what is in it. */
#ifndef GPSTI_POOL_H
#define GPSTI_POOL_H

#include "../device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_pool gpst_pool;

typedef enum gpst_huge_pages {
    /* Try for buffers of 768 KiB and more; not for those that leave part of a huge page unused and would take more than
       1/16 of the budget. */
    GPST_HUGE_PAGES_DEFAULT = 0,
    GPST_HUGE_PAGES_OFF = 1,
    GPST_HUGE_PAGES_ALWAYS = 2 /* try for every buffer */
} gpst_huge_pages;

#define GPST_POOL_MAX_CHUNK_SIZES 16

/* gpst_pool_desc -- what a pool is made of; all-zero is valid

   Ownership    the caller's; read during create only
   Since 0.1
*/
typedef struct gpst_pool_desc {
    uint32_t start_canary; /* 0 */
    gpst_memory_kind kind;    /* 0 = PINNED; HOST, PINNED or DEVICE */
    uint64_t max_bytes;       /* cap on what the pool holds, free or on loan; 0 = the context's budget alone */
    gpst_huge_pages huge_pages; /* of DEVICE 0 */
    /* The only sizes that buffers have, in any order, each rounded up to 4096; NULL and 0 = size classes. An acquire
       gives the smallest that holds what was asked for, and refuses more than the largest. */
    const size_t* chunk_bytes; /* [n_chunk_bytes], each 1 .. max_bytes */
    uint32_t n_chunk_bytes;    /* up to GPST_POOL_MAX_CHUNK_SIZES */
    uint32_t n_ready; /* so many of each chunk size are made by create, up to 65536; 0 = each when it is needed */
    const char* tag;  /* what it is for, in gpst_context_query_tags; NULL = "other"; the first 23 bytes are copied */
    uint32_t end_canary; /* 0 */
} gpst_pool_desc;

/* gpst_buffer -- a buffer on loan; all-zero is none

   Ownership    the struct is the caller's; data is the pool's and lent until release
   Since 0.1
*/
typedef struct gpst_buffer {
    void* data;   /* page-aligned; of DEVICE to 256 bytes */
    size_t bytes; /* of the size class or chunk: at least what was asked for */
    uint64_t charged_bytes; /* what was taken for it, and is charged to the budgets: with the rest of a huge page */
    uint64_t id;  /* this loan */
    bool pinned;  /* the device has it page-locked */
} gpst_buffer;

/* gpst_pool_info -- what a pool holds and has done since its creation

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_pool_info {
    uint64_t live_bytes, peak_bytes; /* on loan, as charged: now, and at most since creation */
    uint64_t held_bytes;             /* on loan or free, as charged against the budgets */
    uint64_t acquires, allocations;  /* of acquires, those that had to be made: the others found what was free */
    uint64_t waits, wait_ns, refusals;
    uint64_t hugetlb_bytes, thp_bytes, small_bytes, pinned_bytes; /* of the host's held_bytes, by what the pages are */
    char pages_reason[128]; /* why the latest memory it got has no better pages; "" when nothing was refused */
} gpst_pool_info;

/* gpst_pool_create -- a pool, empty but for what desc.n_ready says

   Parameters   context  (in)   not NULL
                desc     (in)   NULL = all defaults
                out      (out)  the pool; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_MEMORY | GPST_ERROR_FORKED | with
                n_ready GPST_ERROR_BUDGET (not all fit), and what gpst_pool_acquire answers
   Ownership    destroy with gpst_pool_destroy, before the context
   Threads      any
   Blocking     allocates metadata; with n_ready also the buffers, which takes milliseconds for large ones
   Device       as gpst_pool_acquire, with n_ready; else none
   Source       core/memory/pool.c          Tests  tests/test_pool.c          Since 0.1
*/
#define gpst_pool_create(context, desc, out) \
    gpst_pool_create_versioned(GPST_VERSION, sizeof(gpst_pool_desc), (context), (desc), (out))
GPST_API gpst_result gpst_pool_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                const gpst_pool_desc* desc, gpst_pool** out);

/* gpst_pool_destroy -- gives everything back to the context, which keeps as much of it as
   gpst_context_desc.max_kept_bytes allows

   Parameters   pool  (in)  NULL is a no-op
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_STATE (buffers are on loan: nothing is freed) | GPST_ERROR_FORKED
   Ownership    the pool is gone when OK
   Threads      one, and no other call on the pool is running
   Blocking     never waits for loans; may unmap memory
   Device       may free memory
   Source       core/memory/pool.c          Tests  tests/test_pool.c          Since 0.1
*/
GPST_API gpst_result gpst_pool_destroy(gpst_pool* pool);

/* gpst_pool_acquire -- lends a buffer of at least bytes

   A free buffer of the size class is lent again, whichever pool or pipeline of the context had it; else a new one is
   allocated. At a budget, free buffers of other classes are given back first; then the call waits until others
   release. Classes are 4096 bytes apart up to 8 pages, and eight to a power of two above: less than 1/8 is more than
   was asked for. Of a pool with chunk_bytes the chunk stands for the class; at a budget a larger chunk that is free is
   lent before others are given back.

   Parameters   pool        (in)   not NULL
                bytes       (in)   1 .. SIZE_MAX/2, or the largest of chunk_bytes
                timeout_ns  (in)   0 = never waits; GPST_FOREVER
                out         (out)  the loan; all-zero on failure
   Shapes       out->data: uint8_t[out->bytes]; of the host zeroed when it had to be made, else as the last user left
                it
   Returns      GPST_OK | GPST_ERROR_BUDGET (can never fit, or nothing of this pool is on loan that could come
                back) | GPST_ERROR_WOULD_BLOCK (timeout_ns 0) | GPST_ERROR_TIMEOUT | GPST_ERROR_MEMORY |
                GPST_ERROR_DEVICE_MEMORY, GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST (of DEVICE; the vendor's text is the
                reason) | GPST_ERROR_OVERFLOW | GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED
   Ownership    lent until gpst_pool_release, by any thread; the address is stable until then
   Threads      any, also several at once
   Blocking     up to timeout_ns, for releases into this pool only; allocating a large buffer takes
                milliseconds
   Device       new buffers come from the device: its own memory, or of PINNED what it page-locks, where it does
   Source       core/memory/pool.c          Tests  tests/test_pool.c          Since 0.1
*/
GPST_API gpst_result gpst_pool_acquire(gpst_pool* pool, size_t bytes, int64_t timeout_ns, gpst_buffer* out);

/* gpst_pool_release -- zeroes *buffer and ends its loan; gpst_pool_trim -- gives the pool's free buffers back
   to the system

   Parameters   pool    (in)       NULL is a no-op
                buffer  (in, out)  a loan of this pool; NULL or all-zero is a no-op. What is not on loan from
                                   this pool (another's, or released already by way of a copy) is logged
                                   and ignored
   Shapes       none
   Returns      none
   Ownership    the buffer's memory is the pool's again
   Threads      any, also several at once
   Blocking     never; trim unmaps memory
   Device       the device must be done with the memory; trim frees memory
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

/* gpst_pool_dump -- what a pool holds as one line of text: of each size, how many are lent and free

   The log has it, with the context's (gpst_context_dump_memory), when an acquire finds no memory (BUDGET, MEMORY,
   DEVICE_MEMORY; once a minute for each kind of refusal), and when a pool is to be destroyed that has loans.

   Parameters   pool       (in)   NULL: the text is empty
                out        (out)  cut to what fits, and always terminated; NULL with max_bytes 0
                max_bytes  (in)   that out has
   Shapes       char[max_bytes]
   Returns      bytes of the whole text, with the "\n" at its end and without the terminating 0
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/memory/dump.c          Tests  tests/test_budget.c          Since 0.1
*/
GPST_API size_t gpst_pool_dump(const gpst_pool* pool, char* out, size_t max_bytes);

#ifdef __cplusplus
}
#endif
#endif
