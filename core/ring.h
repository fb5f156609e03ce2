/* core/ring.h -- a bounded ring of slots between producers and consumers whose
   active depth may change while it runs. Owns the slots' memory. */
#ifndef GPSTI_RING_H
#define GPSTI_RING_H

#include "context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_ring gpst_ring;

typedef enum gpst_ring_sharing {
    GPST_RING_DEFAULT = 0, /* MPMC */
    GPST_RING_SPSC = 1,    /* one producer thread and one consumer thread: cached indices, no read-modify-write */
    GPST_RING_MPMC = 2
} gpst_ring_sharing;

typedef enum gpst_ring_policy {
    GPST_RING_BLOCK = 0,       /* a full ring makes the producer wait */
    GPST_RING_DROP_NEWEST = 1, /* a full ring refuses the new one: GPST_DROPPED */
    GPST_RING_DROP_OLDEST = 2, /* a full ring gives up the oldest committed slot (MPMC only) */
    GPST_RING_LATEST_ONLY = 3  /* a commit gives up everything committed before it (MPMC only) */
} gpst_ring_policy;

typedef struct gpst_ring_desc {
    uint32_t start_canary;
    uint32_t max_slots;     /* required: 1..65536 */
    uint32_t depth;         /* slots in use at the start; 0 = max_slots */
    size_t slot_bytes;      /* memory of each slot, aligned to align_bytes; 0 = slots carry only the user's words */
    size_t align_bytes;     /* power of two; 0 = 128 */
    gpst_ring_sharing sharing;
    gpst_ring_policy policy;
    uint32_t end_canary;
} gpst_ring_desc;

typedef struct gpst_ring_slot {
    void* data;         /* slot_bytes of memory; NULL when slot_bytes is 0 */
    uint64_t sequence;  /* of the commit, from 0, without gaps in what was committed */
    uint64_t words[2];  /* the user's, carried from commit to take */
    uint32_t id;        /* the ring's own */
} gpst_ring_slot;

typedef struct gpst_ring_info {
    uint32_t max_slots, depth, occupancy; /* occupancy: committed, not yet taken */
    uint64_t committed, taken, dropped, abandoned;
    uint64_t producer_waits, producer_wait_ns, consumer_waits, consumer_wait_ns;
    double mean_occupancy; /* time-weighted, since creation */
} gpst_ring_info;

#define gpst_ring_create(context, desc, out) \
    gpst_ring_create_versioned(GPST_VERSION, sizeof(gpst_ring_desc), (context), (desc), (out))
GPST_API gpst_result gpst_ring_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                const gpst_ring_desc* desc, gpst_ring** out);
GPST_API void gpst_ring_destroy(gpst_ring* ring);
/* Producer: acquire, fill, commit (or abandon). OK | DROPPED | WOULD_BLOCK (timeout 0) | TIMEOUT | CLOSED */
GPST_API gpst_result gpst_ring_acquire(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out);
GPST_API void gpst_ring_commit(gpst_ring* ring, gpst_ring_slot* slot);
GPST_API void gpst_ring_abandon(gpst_ring* ring, gpst_ring_slot* slot);
/* Consumer: take, use, release. After close: what was committed is still taken, then END. */
GPST_API gpst_result gpst_ring_take(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out);
GPST_API void gpst_ring_release(gpst_ring* ring, gpst_ring_slot* slot);
GPST_API gpst_result gpst_ring_set_depth(gpst_ring* ring, uint32_t depth); /* 1..max_slots, any thread, any time */
GPST_API void gpst_ring_close(gpst_ring* ring);
GPST_API void gpst_ring_query_info(const gpst_ring* ring, gpst_ring_info* out);

#ifdef __cplusplus
}
#endif
#endif
