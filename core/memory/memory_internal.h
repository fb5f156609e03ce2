/* core/memory/memory_internal.h -- the frame memory of a context, pageable, page-locked and of the device, in size
   classes and within the context's two budgets. */
#ifndef GPSTI_MEMORY_INTERNAL_H
#define GPSTI_MEMORY_INTERNAL_H

#include "../../backends/backend.h"
#include "../device/context_internal.h"
#include "budget.h"
#include "pool.h"

#define GPSTI_MEMORY_PAGE ((size_t)4096)
#define GPSTI_MEMORY_CLASSES (8 + 64 * 8)
#define GPSTI_MEMORY_TAGS 16
#define GPSTI_MEMORY_NONE UINT32_MAX

typedef enum gpsti_memory_kind {
    GPSTI_MEMORY_HOST = 0, /* pageable */
    GPSTI_MEMORY_PINNED = 1, /* the device's host memory, page-locked where it locks any */
    GPSTI_MEMORY_DEVICE = 2,
    GPSTI_MEMORY_KINDS = 3
} gpsti_memory_kind;

typedef enum gpsti_memory_state {
    GPSTI_MEMORY_UNUSED = 0,
    GPSTI_MEMORY_FREE = 1,
    GPSTI_MEMORY_LENT = 2,
    GPSTI_MEMORY_MAKING = 3 /* by a thread that has let the mutex go */
} gpsti_memory_state;

/* One piece of memory, lent or free; or, without memory, an entry of the table to be used again. */
typedef struct gpsti_memory_block {
    gpsti_memory_state state;
    gpsti_memory_kind kind;
    gpsti_device* device;     /* whose memory it is */
    gpsti_host_memory memory; /* DEVICE: ptr and bytes alone */
    size_t bytes;             /* of the size class at least: what may be lent */
    uint64_t charged_bytes;   /* what was taken: with the rest of a huge page */
    bool is_huge;             /* as it was asked for */
    gpst_pool* pool;          /* which holds it, lent or free; NULL: none */
    uint32_t class_index, tag;
    uint32_t next;     /* in its free list, or among the unused entries */
    uint32_t loan;     /* number of the loan, so that the id of an earlier one is known for what it is */
    uint64_t freed_at; /* clock of the context's memory when it was given back */
} gpsti_memory_block;

/* A user who holds memory that it can do without. */
typedef struct gpsti_memory_cache {
    /* Gives at least one piece back, to its pool; false: it has none to give. Called without the mutex, by any thread
       that wants memory; locks nothing that is held while memory is acquired. */
    bool (*shrink)(void* user_data);
    /* Called likewise: true, it has memory that it could give as soon as something is loaded into it. */
    bool (*is_loading)(void* user_data);
    void* user_data;
    uint32_t n_calls; /* of both, under way */
    struct gpsti_memory_cache* next;
} gpsti_memory_cache;

/* What is free and no pool's is kept for whoever comes next. */
struct gpsti_memory {
    gpst_context* context;
    /* Over all below, over the context's accounts and over its pools; not held while the system or a driver makes or
       frees something. */
    gpsti_mutex mutex;
    gpsti_cond changed; /* something was given back */
    uint32_t n_waiters;
    uint32_t n_freeing; /* blocks on their way to the system, */
    uint64_t n_freed;   /* and of those that are there, ever */
    uint64_t clock;     /* counts releases, and what caches tell, */
    uint32_t n_loans;   /* and loans */
    uint64_t kept_bytes[2], max_kept_bytes[2]; /* of the host, of the device */
    gpsti_memory_block* blocks;
    uint32_t n_blocks, max_blocks, unused;
    uint32_t n_set_aside; /* of max_blocks, for those who will not allocate */
    uint32_t free[GPSTI_MEMORY_KINDS][GPSTI_MEMORY_CLASSES]; /* first of each free list: given back last */
    uint32_t n_tags;
    gpst_tag_info tags[GPSTI_MEMORY_TAGS];
    gpsti_memory_cache* caches; /* of host memory */
    gpsti_a64 lent_bytes[2]; /* on loan, of the host, of the device; written under the mutex */
    uint64_t peak_bytes[2]; /* of the host, of the device */
    gpst_memory_marks marks;               /* resolved */
    bool above_budget, above_device;       /* no more alerts until use has fallen to the target */
    uint64_t n_alerts;
    uint64_t unasked_bytes;  /* of the device, made since it was asked what all processes use */
    int64_t next_dump_ns[4]; /* by budget or system, host or device: not before */
};

/* The fields but those before n_out are under the mutex of the context's memory. */
struct gpst_pool {
    gpst_context* context;
    gpst_pool_desc desc; /* without its pointers */
    gpsti_memory_kind kind;
    size_t chunks[GPST_POOL_MAX_CHUNK_SIZES]; /* [desc.n_chunk_bytes], the smallest first */
    uint32_t tag;
    uint32_t n_out; /* on loan, or being made: what a waiter may hope for */
    gpst_pool_info info;
};

/* Zeroed, it asks for nothing special. */
typedef struct gpsti_memory_request {
    gpsti_memory_kind kind;
    size_t asked_bytes;
    bool is_exact; /* takes no more than asked_bytes in pages, not the whole class */
    gpst_huge_pages huge_pages;
    bool is_filled; /* all of it will be written: large new memory is used once as it is made, so that what that takes
                       is no stage's work */
    bool spares_caches; /* refused, rather than that a cache gives up something for it */
    uint32_t tag;
    gpst_pool* pool;      /* for whom; NULL: no pool */
    gpsti_a64* n_growths; /* 1 is added where it had to be made; NULL: to nothing */
    char* why_not;        /* 128 bytes: why there are no better pages; NULL: not asked */
    /* Set by gpsti_memory_classify. An exact request is in the largest class that it fills: whatever is in a class has
       the bytes of the class at least. */
    size_t bytes;
    uint32_t class_index;
    bool crossed; /* out: it was made and use is above a mark: gpsti_memory_alert, once no lock is held */
} gpsti_memory_request;

/* max_kept_bytes and marks as in gpst_context_desc. The context's info is resolved and its devices are open. */
GPSTI_INTERN gpst_result gpsti_memory_init(gpsti_memory* memory, gpst_context* context, uint64_t max_kept_bytes,
                                           const gpst_memory_marks* marks);
GPSTI_INTERN void gpsti_memory_term(gpsti_memory* memory);
/* Gives what is kept back to the system, the device's cached streams and events too. */
GPSTI_INTERN void gpsti_memory_trim(gpsti_memory* memory);
/* What is kept now. */
GPSTI_INTERN void gpsti_memory_query_kept(gpsti_memory* memory, uint64_t* host_bytes, uint64_t* device_bytes);
/* The number of a tag, which is copied; NULL is "other", and so are those beyond the last there is room for. */
GPSTI_INTERN uint32_t gpsti_memory_tag(gpsti_memory* memory, const char* tag);

/* Memory of the class that fits, used before or made. Free memory is given back to the system before anybody is
   refused. BUDGET with the reason set; what the backend answers. Any thread. */
GPSTI_INTERN gpst_result gpsti_memory_acquire(gpst_context* context, gpsti_memory_request* request, gpst_buffer* out);
/* Of the device. tag: as gpsti_memory_tag takes it. */
GPSTI_INTERN gpst_result gpsti_memory_acquire_device(gpst_context* context, size_t bytes, const char* tag,
                                                     gpsti_a64* n_growths, gpst_buffer* out);
/* Zeroes *buffer; all-zero is a no-op. No stream uses the memory any more. Any thread. */
GPSTI_INTERN void gpsti_memory_release(gpst_context* context, gpst_buffer* buffer);

/* ---- for pools: the caller holds the mutex ------------------------------------------------ */

/* OVERFLOW without a reason. Needs no mutex. */
GPSTI_INTERN gpst_result gpsti_memory_classify(gpsti_memory_request* request);
/* As gpsti_memory_acquire, but where there is no room: WOULD_BLOCK without a reason. Lets the mutex go while memory is
   made or freed. */
GPSTI_INTERN gpst_result gpsti_memory_try(gpsti_memory* memory, gpsti_memory_request* request, gpst_buffer* out);
/* Only what is free: false where nothing is. */
GPSTI_INTERN bool gpsti_memory_try_free(gpsti_memory* memory, const gpsti_memory_request* request, gpst_buffer* out);
/* Until something is given back, or for no reason. */
GPSTI_INTERN void gpsti_memory_wait(gpsti_memory* memory, int64_t deadline_ns);
/* BUDGET, with the reason. */
GPSTI_INTERN gpst_result gpsti_memory_over_budget(const gpsti_memory* memory, const gpsti_memory_request* request);
/* False: not on loan from this pool (NULL: from none). */
GPSTI_INTERN bool gpsti_memory_give(gpsti_memory* memory, const gpst_pool* pool, const gpst_buffer* buffer);
/* What the pool has free goes to the system; or it is no pool's any more. */
GPSTI_INTERN void gpsti_memory_trim_pool(gpsti_memory* memory, const gpst_pool* pool);
GPSTI_INTERN void gpsti_memory_disown(gpsti_memory* memory, gpst_pool* pool);

/* ---- caches: core/memory/caches.c ------------------------------------------------------------- */

GPSTI_INTERN void gpsti_caches_add(gpsti_memory* memory, gpsti_memory_cache* cache);
/* None of its functions is called any more. One that was never added is none. */
GPSTI_INTERN void gpsti_caches_remove(gpsti_memory* memory, gpsti_memory_cache* cache);
/* With the mutex held, which is let go while they are called: something was given back; some cache is loading. */
GPSTI_INTERN bool gpsti_caches_shrink(gpsti_memory* memory);
GPSTI_INTERN bool gpsti_caches_are_loading(gpsti_memory* memory);
/* Where some cache is loading: true, once something is told or given back, or it is that late. */
GPSTI_INTERN bool gpsti_caches_wait(gpsti_memory* memory, int64_t deadline_ns);
/* A cache could give more than before: who waits for memory tries again. */
GPSTI_INTERN void gpsti_caches_tell(gpsti_memory* memory);

/* ---- accounts and marks: core/memory/budget.c; the caller holds the mutex unless something else is said ------- */

GPSTI_INTERN bool gpsti_memory_on_device(gpsti_memory_kind kind); /* needs no mutex */
GPSTI_INTERN uint64_t gpsti_memory_budget(const gpsti_memory* memory, gpsti_memory_kind kind);
GPSTI_INTERN gpsti_a64* gpsti_memory_charged(const gpsti_memory* memory, gpsti_memory_kind kind);
GPSTI_INTERN bool gpsti_pool_has_room(const gpst_pool* pool, uint64_t bytes); /* NULL has */
/* May so much be charged to the request's pool and the context now? charge: and is. */
GPSTI_INTERN bool gpsti_memory_has_room(const gpsti_memory* memory, const gpsti_memory_request* request,
                                        uint64_t bytes);
GPSTI_INTERN bool gpsti_memory_charge(gpsti_memory* memory, const gpsti_memory_request* request, uint64_t bytes);
GPSTI_INTERN void gpsti_memory_refund(gpsti_memory* memory, gpsti_memory_kind kind, uint64_t bytes);
GPSTI_INTERN void gpsti_memory_count_tag(gpsti_memory* memory, const gpsti_memory_block* block, bool add);
/* Memory was made and has its block: the peak, and the marks where it is the device's. Lets the mutex go. Where a mark
   is crossed, frees what is free down to the target and sets request->crossed. */
GPSTI_INTERN void gpsti_memory_count_made(gpsti_memory* memory, gpsti_memory_request* request, uint64_t bytes);
GPSTI_INTERN void gpsti_memory_alert(gpsti_memory* memory); /* calls the user; no lock is held */
/* Needs no mutex. set: 0 is resolved. */
GPSTI_INTERN gpst_result gpsti_memory_check_marks(const char* function, const gpst_memory_marks* marks);
GPSTI_INTERN void gpsti_memory_set_marks(gpsti_memory* memory, const gpst_memory_marks* marks);
GPSTI_INTERN void gpsti_memory_sum_up(const gpsti_memory* memory, bool on_device, gpst_memory_account* out);

/* Gives free memory back to the system, what is kept before what pools have, the oldest first, until no more than
   target_bytes are charged or nothing is free. Says how many bytes went. shrink: takes the mutex; shrink_to: the caller
   has it. */
GPSTI_INTERN uint64_t gpsti_memory_shrink(gpsti_memory* memory, bool on_device, uint64_t target_bytes);
GPSTI_INTERN uint64_t gpsti_memory_shrink_to(gpsti_memory* memory, bool on_device, uint64_t target_bytes);

/* ---- texts: core/memory/dump.c; without the mutex -------------------------------------------------- */

/* Where the result is that there is no memory, logs the reason and what holds it: once a minute for each kind of
   refusal. pool: for whom; NULL: none. For what users ask; the engine has other ways and logs those. */
GPSTI_INTERN void gpsti_memory_dump_refusal(gpsti_memory* memory, gpsti_memory_kind kind, const gpst_pool* pool,
                                            gpst_result result);
GPSTI_INTERN void gpsti_memory_log_leaks(gpsti_memory* memory); /* what is on loan though the context ends */
GPSTI_INTERN void gpsti_pool_log_leak(const gpst_pool* pool);   /* the reason, and what the pool has */

/* ---- one piece, outside any context's account ------------------------------------------------ */

GPSTI_INTERN gpst_result gpsti_memory_make(gpsti_device* device, gpsti_memory_kind kind, size_t bytes, bool want_huge,
                                           gpsti_host_memory* out);
GPSTI_INTERN void gpsti_memory_unmake(gpsti_device* device, gpsti_memory_kind kind, gpsti_host_memory* memory);

/* ---- the table of blocks: core/memory/blocks.c; the first four with the mutex held ---------------- */

GPSTI_INTERN gpst_result gpsti_blocks_take(gpsti_memory* memory, uint32_t* index); /* an entry to be filled */
GPSTI_INTERN void gpsti_blocks_put(gpsti_memory* memory, uint32_t index);
GPSTI_INTERN void gpsti_blocks_free(gpsti_memory* memory);
GPSTI_INTERN void gpsti_blocks_trim(gpsti_memory* memory); /* free, if no entry is in use or set aside */
/* From now on n more pieces can be lent without a call of the allocator for their entries; until let go. */
GPSTI_INTERN gpst_result gpsti_blocks_set_aside(gpsti_memory* memory, uint32_t n);
GPSTI_INTERN void gpsti_blocks_let_go(gpsti_memory* memory, uint32_t n);

#endif
