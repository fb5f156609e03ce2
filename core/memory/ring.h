/* core/memory/ring.h -- a bounded ring of slots between producers and consumers whose
   active depth may change while it runs, by itself if asked to. Owns the slots' memory. */
#ifndef GPSTI_RING_H
#define GPSTI_RING_H

#include "../device/context.h"
#include "../device/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct gpst_ring gpst_ring;
typedef struct gpst_ring_reader gpst_ring_reader;

typedef enum gpst_ring_sharing {
    GPST_RING_DEFAULT = 0, /* MPMC */
    GPST_RING_SPSC = 1,    /* one producer thread and one consumer thread: cached indices, no read-modify-write */
    GPST_RING_MPMC = 2
} gpst_ring_sharing;

typedef enum gpst_ring_policy {
    GPST_RING_BLOCK = 0,       /* a full ring makes the producer wait */
    GPST_RING_DROP_NEWEST = 1, /* a full ring refuses the new one: GPST_DROPPED */
    /* A full ring gives up the oldest committed slot; with none: the newest. MPMC only: of an SPSC ring the consumer
       alone takes from the queue. */
    GPST_RING_DROP_OLDEST = 2,
    GPST_RING_LATEST_ONLY = 3  /* a commit gives up everything committed before it (MPMC only); full: as DROP_OLDEST.
                                  With producers + consumers + 1 slots it is never full */
} gpst_ring_policy;

/* gpst_ring_desc -- what a ring is made of; max_slots is required

   adaptive: the ring deepens where both sides wait in turn, and shrinks where slots are never in use. It looks at
   itself every 64 commits, at most ten times a second, on a thread that commits. Three limits hold: max_slots,
   max_bytes, and the context's max_host_bytes or, DEVICE, max_device_bytes. Slots beyond the depth have no memory; one
   that a stream still uses keeps it meanwhile. With several producers or consumers each call takes a mutex, since what
   is measured belongs to one moment. With readers the ring is empty when all of them have taken everything.

   max_readers: such a ring has no shared cursor: gpst_ring_take is refused, and each gpst_ring_reader sees every slot
   that is committed from its creation on. Several threads may take through one reader: then that is a shared cursor. A
   slot is free again when every reader has released it. BLOCK waits for the slowest reader. DROP_OLDEST gives up the
   oldest slot that no reader holds, and what is older, for the readers that have not taken it; LATEST_ONLY what was
   committed before. Without any reader a slot is free again as it is committed, and counts as dropped.

   streams: the slots have events, so that a producer and consumers on streams of the context's device wait for each
   other there (gpst_ring_commit_on).

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
    bool adaptive;           /* the ring sets its own depth, between min_depth and what the limits allow */
    uint32_t min_depth;      /* adaptive: 0 = 2 (1 where max_slots is 1) */
    size_t max_bytes;        /* adaptive: of the slots' memory, each in pages of its own; 0 = max_slots is the limit */
    gpst_memory_kind memory; /* of the slots: PINNED, HOST or DEVICE; 0 = PINNED */
    uint32_t max_readers;    /* 0 = one cursor that all consumers share (gpst_ring_take); else 1..32, MPMC only */
    bool streams;            /* slots have events; DEVICE has them anyway */
    uint32_t end_canary;     /* 0 */
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
    uint32_t id;       /* the ring's own: the slot, by its lower 20 bits, and in whose hands it is; */
    uint32_t loan;     /* and which loan of it this is: a copy is none any more when the slot has gone on */
} gpst_ring_slot;

/* gpst_ring_info -- state, and counts since creation

   committed = taken + occupancy + given up; dropped counts those given up and those refused. With readers a slot is
   taken when every reader has taken or missed it, given up if all of them missed it, and part of the occupancy till
   then; what one reader missed is in its own info.

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_ring_info {
    uint32_t max_slots, depth, occupancy; /* occupancy: committed, not yet taken */
    uint64_t committed, taken, dropped, abandoned;
    uint64_t producer_waits, producer_wait_ns, consumer_waits, consumer_wait_ns;
    double mean_occupancy;         /* time-weighted, since creation */
    uint32_t min_depth, max_depth; /* the depth stays between them; 1 and max_slots where the ring is not adaptive */
    uint64_t n_decisions;          /* adaptive: made since creation */
    uint64_t memory_bytes;         /* of the slots, as charged against the context's budget now */
    uint32_t max_readers, n_readers;
} gpst_ring_info;

/* gpst_ring_reader_info -- where a reader is, and counts since its creation

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_ring_reader_info {
    uint64_t taken, missed; /* missed: given up by the policy before the reader took them */
    uint32_t behind;        /* committed, not yet taken or missed by it */
} gpst_ring_reader_info;

#define GPST_RING_MAX_DECISIONS 16
#define GPST_RING_REASON_BYTES 96

/* gpst_ring_decision -- one thing that an adaptive ring did about its depth, or could not do

   Ownership    plain values
   Since 0.1
*/
typedef struct gpst_ring_decision {
    uint64_t commit;                     /* commits by then */
    uint32_t before, after;              /* depths; equal: it stays, at a limit or without memory for more */
    char reason[GPST_RING_REASON_BYTES]; /* what the ring saw */
} gpst_ring_decision;

/* gpst_ring_create -- an open, empty ring

   Parameters   context  (in)   not NULL
                desc     (in)   not NULL
                out      (out)  the ring; NULL on failure
   Shapes       memory: uint8_t[max_slots][slot_bytes rounded up to align_bytes]; adaptive: depth such slots, each
                by itself
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_VERSION | GPST_ERROR_OVERFLOW | GPST_ERROR_BUDGET
                (the context's max_host_bytes or, DEVICE, max_device_bytes) | GPST_ERROR_MEMORY |
                GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_MEMORY, GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED
   Ownership    destroy with gpst_ring_destroy, before the context
   Threads      any
   Blocking     allocates everything the ring will ever need; adaptive: but the memory of slots beyond the depth
   Device       the slots are its memory, or host memory, pinned where the backend pins; streams: makes events, one for
                each slot and one more for each slot and reader
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
   Ownership    the slots' memory is gone, and so are the readers
   Threads      one, and no other call on the ring is running or waiting: close it and join the threads first
   Blocking     until the device is done with what gpst_ring_commit_on and the releases on streams recorded; in a forked
                child it does nothing
   Device       must be done with slots that somebody holds, or released without a stream; frees their memory
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
   ring. Neither touches *slot once another thread can have the slot: the struct may be used anew there.

   Parameters   ring  (in)       NULL is a no-op
                slot  (in, out)  from acquire; commit sets its sequence; data, id and loan become none. A slot that
                                 the caller does not hold as a producer, also by a copy of the struct, is logged
                                 and ignored
   Shapes       none
   Returns      none
   Ownership    the slot is the ring's again
   Threads      SPSC: the one producer; MPMC: any, also another than the one that acquired
   Blocking     never; no allocation; adaptive: a commit that deepens the ring takes memory for slots, one that
                shrinks it gives memory back, which may take milliseconds (of DEVICE, also wait for the device)
   Device       the device must be done with the slot, or the consumer must know how to wait for it; adaptive: commit
                may allocate or free memory of the device
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API void gpst_ring_commit(gpst_ring* ring, gpst_ring_slot* slot);
GPST_API void gpst_ring_abandon(gpst_ring* ring, gpst_ring_slot* slot);

/* gpst_ring_acquire_on -- a free slot for work on a stream

   As gpst_ring_acquire; what is put on the stream from now on waits until the device is done with the slot's last use:
   for what its producer and every consumer recorded. A producer without a stream calls gpst_ring_slot_wait before it
   writes.

   Parameters   ring        (in)   not NULL; made with desc.streams or in DEVICE memory
                timeout_ns  (in)   as gpst_ring_acquire: for a slot, not for the device
                stream      (in)   of the context's device (gpst_context_device); NULL: as gpst_ring_acquire
                out         (out)  as gpst_ring_acquire
   Shapes       out->data: uint8_t[slot_bytes]; DEVICE: only the device uses the address, but on a zero_copy one
   Returns      as gpst_ring_acquire | GPST_ERROR_STATE (the ring has no events) | GPST_ERROR_DEVICE,
                GPST_ERROR_DEVICE_LOST (the slot was abandoned)
   Ownership    as gpst_ring_acquire
   Threads      as gpst_ring_acquire
   Blocking     as gpst_ring_acquire; the host does not wait for the device
   Device       the stream waits for an event of each that committed or released the slot on a stream
   Source       core/memory/ring.c          Tests  tests/test_ring_streams.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_acquire_on(gpst_ring* ring, int64_t timeout_ns, gpst_stream* stream,
                                          gpst_ring_slot* out);

/* gpst_ring_commit_on -- hands on a slot that a stream is filling

   Parameters   ring    (in)       not NULL
                slot    (in, out)  from acquire; commit sets its sequence; data, id and loan become none
                stream  (in)       where it is filled; NULL: as gpst_ring_commit
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_STATE (the ring has no events) | GPST_ERROR_DEVICE,
                GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED. On failure the caller still holds the slot
   Ownership    the slot is the ring's again
   Threads      as gpst_ring_commit
   Blocking     as gpst_ring_commit
   Device       records the slot's event: consumers on streams wait there for what is on this one by now
   Source       core/memory/ring.c          Tests  tests/test_ring_streams.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_commit_on(gpst_ring* ring, gpst_ring_slot* slot, gpst_stream* stream);

/* gpst_ring_take -- the oldest committed slot

   Parameters   ring        (in)   not NULL
                timeout_ns  (in)   0 or less = never waits; GPST_FOREVER
                out         (out)  the slot with the producer's words; all-zero data and id when there is none
   Shapes       out->data: uint8_t[slot_bytes]
   Returns      GPST_OK | GPST_END (closed, everything was taken, and no producer holds a slot) |
                GPST_ERROR_WOULD_BLOCK (timeout_ns 0) | GPST_ERROR_TIMEOUT | GPST_ERROR_ARGUMENT |
                GPST_ERROR_STATE (the ring has desc.max_readers) | GPST_ERROR_FORKED
   Ownership    the consumer's until release; several may be held at once
   Threads      SPSC: the one consumer; MPMC: any
   Blocking     up to timeout_ns: spins for some microseconds, then sleeps; no allocation
   Device       none
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_take(gpst_ring* ring, int64_t timeout_ns, gpst_ring_slot* out);

/* gpst_ring_release -- gives a taken slot back for the next producer

   Parameters   ring  (in)       NULL is a no-op
                slot  (in, out)  from take, in any order; data, id and loan become none, before another thread can
                                 have the slot. A slot that the caller does not hold as a consumer, also by a copy
                                 of the struct, is logged and ignored
   Shapes       none
   Returns      none
   Ownership    the slot is the ring's again
   Threads      SPSC: the one consumer; MPMC: any, also another than the one that took
   Blocking     never; no allocation
   Device       the device must be done with the slot
   Source       core/memory/ring.c          Tests  tests/test_ring.c, tests/test_ring_threads.c          Since 0.1
*/
GPST_API void gpst_ring_release(gpst_ring* ring, gpst_ring_slot* slot);

/* gpst_ring_take_on -- the oldest committed slot, for work on a stream

   As gpst_ring_take; what is put on the stream from now on waits until the slot is filled, where it was committed on a
   stream. A consumer without a stream calls gpst_ring_slot_wait before it reads such a slot.

   Parameters   ring        (in)   not NULL
                timeout_ns  (in)   as gpst_ring_take: for a slot, not for the device
                stream      (in)   of the context's device; NULL: as gpst_ring_take
                out         (out)  as gpst_ring_take
   Shapes       out->data: uint8_t[slot_bytes]
   Returns      as gpst_ring_take | GPST_ERROR_STATE (the ring has no events) | GPST_ERROR_DEVICE,
                GPST_ERROR_DEVICE_LOST (the slot was released: what it had is lost)
   Ownership    as gpst_ring_take
   Threads      as gpst_ring_take
   Blocking     as gpst_ring_take; the host does not wait for the device
   Device       the stream waits for the producer's event
   Source       core/memory/ring.c          Tests  tests/test_ring_streams.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_take_on(gpst_ring* ring, int64_t timeout_ns, gpst_stream* stream, gpst_ring_slot* out);

/* gpst_ring_release_on -- gives back a taken slot that a stream still uses

   Parameters   ring    (in)       not NULL
                slot    (in, out)  from take; data, id and loan become none
                stream  (in)       where it is used; NULL: as gpst_ring_release
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_STATE (the ring has no events) | GPST_ERROR_DEVICE,
                GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED. On failure the caller still holds the slot
   Ownership    the slot is the ring's again
   Threads      as gpst_ring_release
   Blocking     never; no allocation
   Device       records an event, for which the next producer's stream waits
   Source       core/memory/ring.c          Tests  tests/test_ring_streams.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_release_on(gpst_ring* ring, gpst_ring_slot* slot, gpst_stream* stream);

/* gpst_ring_slot_wait -- the host waits until the device is done with a slot

   For a side that has no stream: a producer waits for what the slot's last users recorded, a consumer for what its
   producer recorded.

   Parameters   ring        (in)  not NULL
                slot        (in)  in the caller's hands
                timeout_ns  (in)  0 or less = only asks; GPST_FOREVER
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_WOULD_BLOCK (timeout_ns 0) | GPST_ERROR_TIMEOUT | GPST_ERROR_ARGUMENT |
                GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED
   Ownership    the slot stays the caller's
   Threads      who holds the slot
   Blocking     up to timeout_ns; at once where nothing was recorded
   Device       none
   Source       core/memory/ring_event.c    Tests  tests/test_ring_streams.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_slot_wait(gpst_ring* ring, const gpst_ring_slot* slot, int64_t timeout_ns);

/* ---- readers --------------------------------------------------------------------- */

/* gpst_ring_reader_create -- one more reader of a ring that was made with desc.max_readers

   Parameters   ring  (in)   not NULL
                out   (out)  the reader; NULL on failure
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT | GPST_ERROR_STATE (there are desc.max_readers already) |
                GPST_ERROR_FORKED
   Ownership    end it with gpst_ring_reader_destroy, or with the ring
   Threads      any, any time; of a closed ring, too
   Blocking     never; no allocation
   Device       none
   Source       core/memory/ring_reader.c   Tests  tests/test_ring_readers.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_reader_create(gpst_ring* ring, gpst_ring_reader** out);

/* gpst_ring_reader_destroy -- a reader leaves; nobody waits for it any more

   Parameters   reader  (in)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    what it has not taken, it misses; what it holds is released
   Threads      any, and no other call on the reader is running or waiting
   Blocking     never; in a forked child it does nothing
   Device       must be done with the slots that the reader holds
   Source       core/memory/ring_reader.c   Tests  tests/test_ring_readers.c          Since 0.1
*/
GPST_API void gpst_ring_reader_destroy(gpst_ring_reader* reader);

/* gpst_ring_reader_take -- the oldest slot that this reader has not taken

   Parameters   reader      (in)   not NULL
                timeout_ns  (in)   0 or less = never waits; GPST_FOREVER
                stream      (in)   as gpst_ring_take_on; NULL: none
                out         (out)  the slot with the producer's words; all-zero data and id when there is none. Other
                                   readers may have it, too: nobody may write to it
   Shapes       out->data: uint8_t[slot_bytes]
   Returns      as gpst_ring_take_on
   Ownership    the reader's until gpst_ring_reader_release; several may be held at once
   Threads      any, also several at once: each slot goes to one of them
   Blocking     up to timeout_ns: spins for some microseconds, then sleeps; no allocation, no mutex but to sleep, or of
                an adaptive ring
   Device       as gpst_ring_take_on
   Source       core/memory/ring_reader.c   Tests  tests/test_ring_readers.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_reader_take(gpst_ring_reader* reader, int64_t timeout_ns, gpst_stream* stream,
                                           gpst_ring_slot* out);

/* gpst_ring_reader_release -- this reader needs a slot no more

   Parameters   reader  (in)       that has taken the slot
                slot    (in, out)  from take, in any order; data, id and loan become none
                stream  (in)       as gpst_ring_release_on; NULL: the device is done with the slot
   Shapes       none
   Returns      GPST_OK | GPST_ERROR_ARGUMENT (also a slot that this reader does not hold) | GPST_ERROR_STATE (the ring
                has no events) | GPST_ERROR_DEVICE, GPST_ERROR_DEVICE_LOST | GPST_ERROR_FORKED. On failure of the
                device the reader still holds the slot
   Ownership    the slot is the next producer's when all readers have released it
   Threads      any
   Blocking     never; no allocation, no mutex
   Device       as gpst_ring_release_on
   Source       core/memory/ring_reader.c   Tests  tests/test_ring_readers.c          Since 0.1
*/
GPST_API gpst_result gpst_ring_reader_release(gpst_ring_reader* reader, gpst_ring_slot* slot, gpst_stream* stream);

/* gpst_ring_reader_query_info -- where a reader is

   Parameters   reader  (in)   NULL fills with zeroes
                out     (out)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    none
   Threads      any, while the reader lives; of a running ring the numbers may be an item apart
   Blocking     never; no allocation
   Device       none
   Source       core/memory/ring_reader.c   Tests  tests/test_ring_readers.c          Since 0.1
*/
GPST_API void gpst_ring_reader_query_info(const gpst_ring_reader* reader, gpst_ring_reader_info* out);

/* ---- the ring as a whole --------------------------------------------------------- */

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

   The depth doubles, up to four times, until both sides wait less; if they do not, all of it is taken back and tried
   again after a pause, which doubles each time, to 512 intervals at most. A deepening after a shrinking makes the ring
   twice as slow to shrink. With GPST_RING_DROP_OLDEST and GPST_RING_LATEST_ONLY a smaller depth gives committed slots
   up at the next acquire.

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
