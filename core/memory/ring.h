/* core/memory/ring.h -- a bounded ring of slots between producers and consumers whose
   active depth may change while it runs, by itself if asked to. Owns the slots' memory. */
#ifndef GPSTI_RING_H
#define GPSTI_RING_H

#include "../device/context.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_ring gpst_ring;

typedef enum gpst_ring_sharing {
    GPST_RING_DEFAULT = 0, /* MPMC */
    GPST_RING_SPSC =
        1, /* one producer thread and one consumer thread: cached indices, no read-modify-write */
    GPST_RING_MPMC = 2
} gpst_ring_sharing;

typedef enum gpst_ring_policy {
    GPST_RING_BLOCK = 0,       /* a full ring makes the producer wait */
    GPST_RING_DROP_NEWEST = 1, /* a full ring refuses the new one: GPST_DROPPED */
    GPST_RING_DROP_OLDEST =
        2, /* a full ring gives up the oldest committed slot (MPMC only); with none: the newest */
    GPST_RING_LATEST_ONLY =
        3 /* a commit gives up everything committed before it (MPMC only); full: as DROP_OLDEST.
                                  With producers + consumers + 1 slots it is never full */
} gpst_ring_policy;

/* gpst_ring_desc -- what a ring is made of; max_slots is required

   adaptive: the ring deepens where both sides wait in turn, and shrinks where slots are never in use. It looks at
   itself every 64 commits, at most ten times a second, on a thread that commits. Three limits hold: max_slots,
   max_bytes, and the context's max_host_bytes. Slots beyond the depth have no memory.

   Ownership    the caller's; read during create only
   Since 0.1
*/
typedef struct gpst_ring_desc {
    uint32_t start_canary; /* 0 */
    uint32_t max_slots;    /* required: 1..65536 */
    uint32_t depth;        /* slots in use at the start; 0 = max_slots (adaptive: min_depth) */
    size_t slot_bytes;     /* memory of each slot; 0 = slots carry only the user's words */
    size_t align_bytes;    /* of each slot's memory: a power of two up to 4096; 0 = 128 */
    gpst_ring_sharing sharing;
    gpst_ring_policy policy;
    bool adaptive;       /* the ring sets its own depth, between min_depth and what the limits allow */
    uint32_t min_depth;  /* adaptive: 0 = 2 (1 where max_slots is 1) */
    size_t max_bytes;    /* adaptive: of the slots' memory, each in pages of its own; 0 = max_slots is the limit */
    uint32_t end_canary; /* 0 */
} gpst_ring_desc;

/* gpst_ring_slot -- a slot in somebody's hands: the producer's from acquire to commit, the consumer's from
   take to release; all-zero is none

   Ownership    the struct is the caller's; data is the ring's
   Since 0.1
*/
typedef struct gpst_ring_slot {
    void* data;        /* slot_bytes of memory; NULL when slot_bytes is 0 */
    uint64_t sequence; /* of the commit, from 0; a consumer sees gaps only where the policy gave slots up */
    uint64_t words[2]; /* the user's, carried from commit to take */
    uint32_t id;       /* the ring's own */
} gpst_ring_slot;

/* gpst_ring_info -- state, and counts since creation

   committed = taken + occupancy + given up; dropped counts those given up and those refused.

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_ring_info {
    uint32_t max_slots, depth, occupancy; /* occupancy: committed, not yet taken */
    uint64_t committed, taken, dropped, abandoned;
    uint64_t producer_waits, producer_wait_ns, consumer_waits, consumer_wait_ns;
    double mean_occupancy; /* time-weighted, since creation */
    uint32_t min_depth, max_depth; /* the depth stays between them; 1 and max_slots where the ring is not adaptive */
    uint64_t n_decisions;          /* adaptive: made since creation */
    uint64_t memory_bytes;         /* of the slots, as charged against the context's max_host_bytes now */
} gpst_ring_info;

#define GPST_RING_MAX_DECISIONS 16
#define GPST_RING_REASON_BYTES 96

/* gpst_ring_decision -- one thing that an adaptive ring did about its depth, or could not do

   Ownership    plain values
   Since 0.1
*/
typedef struct gpst_ring_decision {
    uint64_t commit;        /* commits by then */
    uint32_t before, after; /* depths; equal: it stays, at a limit or without memory for more */
    char reason[GPST_RING_REASON_BYTES]; /* what the ring saw */
} gpst_ring_decision;

/* gpst_ring_create -- an open, empty ring

   Parameters   context  (in)   not NULL
                desc     (in)   not NULL
                out      (out)  the ring; NULL on failure
   Shapes       memory: uint8_t[max_slots][slot_bytes rounded up to align_bytes]; adaptive: depth such slots, each
                by itself
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_OVERFLOW | GPST_ERROR_BUDGET
                (the context's max_host_bytes) | GPST_ERROR_MEMORY | GPST_ERROR_FORKED
   Ownership    destroy with gpst_ring_destroy, before the context
   Threads      any
   Blocking     allocates everything the ring will ever need; adaptive: but the memory of slots beyond the depth
   Device       the slots are the device's host memory: pinned where the backend pins
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_adapt.c          Since 0.1
*/
#define gpst_ring_create(context, desc, out) \
    gpst_ring_create_versioned(GPST_VERSION, sizeof(gpst_ring_desc), (context), (desc), (out))
GPST_API gpst_result gpst_ring_create_versioned(uint32_t version, size_t desc_bytes, gpst_context* context,
                                                const gpst_ring_desc* desc, gpst_ring** out);

/* gpst_ring_destroy -- frees the ring, whatever its slots hold

   Parameters   ring  (in)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    the slots' memory is gone
   Threads      one, and no other call on the ring is running or waiting: close it and join the threads first
   Blocking     never; in a forked child it does nothing
   Device       the device must be done with the slots; frees host memory
   Source       core/memory/ring.c          Tests  tests/test_ring.c          Since 0.1
*/
GPST_API void gpst_ring_destroy(gpst_ring* ring);

/* gpst_ring_acquire -- a free slot to fill

   Parameters   ring        (in)   not NULL
                timeout_ns  (in)   BLOCK: 0 or less = never waits, GPST_FOREVER; the other policies never wait
                out         (out)  the slot, its words zeroed; all-zero data and id when there is none
   Shapes       out->data: uint8_t[slot_bytes], aligned to align_bytes, as its last user left it
   Returns      GPST_OK | GPST_DROPPED (not BLOCK) | GPST_ERROR_WOULD_BLOCK (timeout_ns 0) |
                GPST_ERROR_TIMEOUT | GPST_ERROR_CLOSED | GPST_ERROR_ARGUMENT | GPST_ERROR_FORKED
   Ownership    the producer's until commit or abandon; several may be held at once
   Threads      SPSC: the one producer; MPMC: any
   Blocking     up to timeout_ns: spins for some microseconds, then sleeps; no allocation
   Device       none
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_acquire(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out);

/* gpst_ring_commit -- hands a filled slot on; gpst_ring_abandon -- gives it back unused

   Consumers see the slots in the order of the commits; an abandoned one leaves no gap. Both work on a closed
   ring.

   Parameters   ring  (in)       NULL is a no-op
                slot  (in, out)  from acquire; commit sets its sequence; data and id become none. A slot that
                                 the caller does not hold as a producer is logged and ignored
   Shapes       none
   Returns      none
   Ownership    the slot is the ring's again
   Threads      SPSC: the one producer; MPMC: any, also another than the one that acquired
   Blocking     never; no allocation; adaptive: a commit that deepens the ring takes memory for slots, one that
                shrinks it gives memory back, which may take milliseconds
   Device       the device must be done with the slot, or the consumer must know how to wait for it; adaptive: commit
                may allocate or free host memory of the device
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API void gpst_ring_commit(gpst_ring* ring, gpst_ring_slot* slot);
GPST_API void gpst_ring_abandon(gpst_ring* ring, gpst_ring_slot* slot);

/* gpst_ring_take -- the oldest committed slot

   Parameters   ring        (in)   not NULL
                timeout_ns  (in)   0 or less = never waits; GPST_FOREVER
                out         (out)  the slot with the producer's words; all-zero data and id when there is none
   Shapes       out->data: uint8_t[slot_bytes]
   Returns      GPST_OK | GPST_END (closed, everything was taken, and no producer holds a slot) |
                GPST_ERROR_WOULD_BLOCK (timeout_ns 0) | GPST_ERROR_TIMEOUT | GPST_ERROR_ARGUMENT |
                GPST_ERROR_FORKED
   Ownership    the consumer's until release; several may be held at once
   Threads      SPSC: the one consumer; MPMC: any
   Blocking     up to timeout_ns: spins for some microseconds, then sleeps; no allocation
   Device       none
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_take(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out);

/* gpst_ring_release -- gives a taken slot back for the next producer

   Parameters   ring  (in)       NULL is a no-op
                slot  (in, out)  from take, in any order; data and id become none. A slot that the caller does
                                 not hold as a consumer is logged and ignored
   Shapes       none
   Returns      none
   Ownership    the slot is the ring's again
   Threads      SPSC: the one consumer; MPMC: any, also another than the one that took
   Blocking     never; no allocation
   Device       the device must be done with the slot
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API void gpst_ring_release(gpst_ring* ring, gpst_ring_slot* slot);

/* gpst_ring_set_depth -- how many slots may be in use at once, from now on

   Growing wakes producers. Shrinking takes nothing away: what is in use drains. Fewer slots are then used in
   turn, so a small depth touches little memory.

   Parameters   ring   (in)  not NULL
                depth  (in)  1 .. max_slots
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_STATE (adaptive: the ring sets its own depth)
   Ownership    none
   Threads      any, any time
   Blocking     never; no allocation
   Device       none
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_set_depth(gpst_ring* ring, uint32_t depth);

/* gpst_ring_close -- nothing more will be acquired

   Producers get GPST_ERROR_CLOSED. What was acquired may still be committed; consumers take what was
   committed and then get GPST_END, which therefore waits for producers that hold a slot: commit or abandon
   what you acquired.

   Parameters   ring  (in)  NULL is a no-op; closing twice is one close
   Shapes       none
   Returns      none
   Ownership    none
   Threads      any
   Blocking     never; wakes everybody who waits
   Device       none
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API void gpst_ring_close(gpst_ring* ring);

/* gpst_ring_query_info -- state and statistics

   Parameters   ring  (in)   NULL fills with zeroes
                out   (out)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    none
   Threads      any; of a running SPSC ring the numbers may be an item apart
   Blocking     never; no allocation
   Device       none
   Source       core/memory/ring.c          Tests  tests/test_ring.c          Since 0.1
*/
GPST_API void gpst_ring_query_info(const gpst_ring* ring, gpst_ring_info* out);

/* gpst_ring_query_decisions -- the latest decisions of an adaptive ring, the oldest of them first

   A deepening that brings nothing is taken back, and tried again only when the rate has changed by a fifth; each that
   fails makes the pause before the next one twice as long. A deepening after a shrinking makes the ring twice as slow
   to shrink. With GPST_RING_DROP_OLDEST and GPST_RING_LATEST_ONLY a smaller depth gives committed slots up at the next
   acquire.

   Parameters   ring  (in)   NULL, or not adaptive: there are none
                out   (out)  max rows; NULL with max 0
                max   (in)   rows that out has
                n     (out)  rows that there are, at most GPST_RING_MAX_DECISIONS; where they are more than max, the
                             latest are given; NULL makes the call a no-op
   Shapes       out[max]
   Returns      none
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/memory/ring_adapt.c          Tests  tests/test_ring_adapt.c          Since 0.1
*/
GPST_API void gpst_ring_query_decisions(const gpst_ring* ring, gpst_ring_decision* out, uint32_t max, uint32_t* n);

#ifdef __cplusplus
}
#endif
#endif
