/* core/memory/ring_state_internal.h -- the parts of a ring, and the smallest steps with them. What threads share is
   plain words and indices: cells, entries, cursors and counters hold no address. */
#ifndef GPSTI_RING_STATE_INTERNAL_H
#define GPSTI_RING_STATE_INTERNAL_H

#include "../device/context_internal.h"
#include "memory_internal.h"
#include "ring.h"
#include "ring_depth_internal.h"

#define GPSTI_RING_NO_SLOT UINT32_MAX
#define GPSTI_RING_TAKEN 0x80000000u   /* in a consumer's gpst_ring_slot.id, so that it cannot be committed; */
#define GPSTI_RING_READER_SHIFT 20     /* and the number of its reader, from 1; 0: the shared cursor's */
#define GPSTI_RING_INTERVAL_COMMITS 64 /* between two looks at the clock: a 64th of them can be seen */
#define GPSTI_RING_INTERVAL_NS ((int64_t)100000000)

/* A cell of the queue and the top of the free stack are one word each: a number that grows with every use, so that an
   old value is known for what it is, and an id below it. */
#define GPSTI_RING_ID_BITS 17 /* ids, or ids from 1 with 0 for none, of 65536 slots */
#define GPSTI_RING_ID_MASK (((uint64_t)1 << GPSTI_RING_ID_BITS) - 1)

/* ring.state (MPMC), so that one operation changes and judges all of it. */
#define GPSTI_RING_USED ((uint64_t)1)       /* times the slots that are not free, */
#define GPSTI_RING_HELD ((uint64_t)1 << 20) /* and those of them that producers hold */
#define GPSTI_RING_CLOSED ((uint64_t)1 << 63)
#define GPSTI_RING_COUNT_MASK ((GPSTI_RING_USED << 20) - 1)

/* entry.refs, of a ring with readers: how many readers have the slot before them or in use, how many have not taken it
   yet, and how many took it. */
#define GPSTI_RING_UNRELEASED 1u
#define GPSTI_RING_UNTAKEN (1u << 8)
#define GPSTI_RING_TOOK (1u << 16)
#define GPSTI_RING_REF_MASK 255u

/* entry.marks: events that were recorded since the slot was last committed. */
#define GPSTI_RING_FILLED ((uint64_t)1)                 /* by the producer; */
#define GPSTI_RING_RELEASED(row) ((uint64_t)2 << (row)) /* by the reader of that index, or a shared consumer (0) */

/* A slot, by its id. Written by whoever holds it. */
typedef struct gpsti_ring_entry {
    uint64_t words[2];
    gpsti_a64 marks;
    gpsti_a32 refs;
    gpsti_a32 next; /* MPMC, free: the id below it on the stack, from 1; 0: none */
    gpsti_a32 loan; /* grows with each; odd: a producer or a consumer of the shared cursor holds the slot */
} gpsti_ring_entry;

/* A reader's place. */
typedef struct gpsti_ring_cursor {
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_a64 at; /* the position it takes next */
    gpsti_a64 taken, missed;
    uint32_t active; /* under the mutex */
} gpsti_ring_cursor;

struct gpst_ring_reader {
    gpst_ring* ring;
    uint32_t index;
};

/* Where one side sleeps. A waiter reads epoch, counts itself, looks again and only then sleeps; a notifier
   publishes, fences, and wakes only when somebody is counted. */
typedef struct gpsti_ring_signal {
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_a32 epoch;
    gpsti_a32 n_waiters;
    gpsti_a64 waits, wait_ns;
} gpsti_ring_signal;

/* Written by producers. */
typedef struct gpsti_ring_producer {
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_a64 tail; /* commits so far */
    gpsti_a32 n_held;                               /* acquired, not yet committed (SPSC) */
    uint32_t n_free;                                /* ids in free_ids (MPMC: under the mutex, for a moment) */
    uint64_t granted;                               /* acquires less abandons (SPSC) */
    uint64_t returned_seen;                         /* the latest look at consumer.returned (SPSC) */
    uint64_t returned_read;                         /* how many of the returned ids were used again (SPSC) */
    gpsti_a64 ticks;                                /* sum of the times of all commits, since creation */
    gpsti_a64 abandoned, refused;
} gpsti_ring_producer;

/* Written by consumers. */
typedef struct gpsti_ring_consumer {
    /* Takes, and commits given up, so far: the shared cursor. With readers: slots that all of them have passed. */
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_a64 head;
    gpsti_a64 returned; /* releases so far (SPSC) */
    uint64_t tail_seen; /* the latest look at producer.tail (SPSC) */
    gpsti_a64 ticks;    /* sum of the times at which cells left the queue, since creation */
    gpsti_a64 given_up;
} gpsti_ring_consumer;

/* How long something was so, summed up. One writer at a time. */
typedef struct gpsti_ring_span {
    gpsti_a64 since; /* ring's time at which it began; 0: it is not so now */
    gpsti_a64 ticks; /* of those that ended */
} gpsti_ring_span;

/* What an adaptive ring has beyond the others. */
typedef struct gpsti_ring_adapt {
    /* As gpsti_ring_producer. */
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_ring_span full;
    uint32_t n_commits; /* since the latest look at the clock */
    uint32_t peak;      /* slots in use at once in this interval */
    /* At the start of this interval. */
    int64_t start_ns;
    uint64_t start_ticks, start_tail, start_full_ticks, start_empty_ticks;
    /* As gpsti_ring_consumer. */
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_ring_span empty;
    /* Under the ring's mutex. */
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_ring_depth policy;
    gpsti_a32 evaluating; /* by one thread: it alone gives slots memory or takes it */
    uint64_t n_decisions; /* made; the latest are kept, the k-th in [k % GPST_RING_MAX_DECISIONS] */
    gpst_ring_decision decisions[GPST_RING_MAX_DECISIONS];
} gpsti_ring_adapt;

/* OK, WOULD_BLOCK, or the result to return; sets no reason. reader: NULL but for a reader's take. */
typedef gpst_result (*gpsti_ring_try)(gpst_ring* ring, gpst_ring_reader* reader, gpst_ring_slot* out);

struct gpst_ring {
    gpst_context* context;
    gpst_ring_desc desc;
    bool spsc;
    uint32_t n_spins;
    uint32_t n_cells; /* power of two >= max_slots */
    uint32_t max_depth;
    size_t stride_bytes;
    gpsti_ring_try try_acquire, try_take;
    gpst_buffer memory;        /* of all slots; not of an adaptive ring */
    uint8_t* data;             /* in it, aligned */
    gpst_pool* pool;           /* adaptive: has the memory of each slot, */
    gpst_buffer* slots;        /* by id; without slot_bytes there is neither */
    gpsti_ring_adapt* adapt;   /* NULL: not adaptive */
    gpsti_a64* cells;          /* [n_cells]: of the commit at position p, (p + 1, id) in cell p % n_cells */
    gpsti_ring_entry* entries; /* [max_slots] */
    uint32_t* returned;        /* [n_cells]: ids on their way back (SPSC) */
    /* [max_slots]: below, the stack of free ids (SPSC), since the slot used last is the warmest; at the end, n_bare ids
       whose slots have no memory. */
    uint32_t* free_ids;
    uint32_t n_bare;
    gpst_event** events;        /* desc.streams: [1 + max(1, max_readers)][max_slots]: the producer's, each reader's */
    gpst_ring_reader* readers;  /* desc.max_readers: what users have, */
    gpsti_ring_cursor* cursors; /* [max_readers]; */
    gpsti_a32* holds;           /* [max_readers][max_slots]: as entry.loan, of that reader */
    uint32_t n_readers;         /* active, under the mutex */
    uint64_t created_ticks;
    gpsti_a32 depth;
    gpsti_a32 closed;
    gpsti_ring_producer producer;
    gpsti_ring_consumer consumer;
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_a64 state; /* MPMC; */
    gpsti_a64 free_top;                              /* and its stack of free ids: (count of changes, id from 1) */
    gpsti_ring_signal space;                         /* producers wait for it */
    gpsti_ring_signal items;                         /* consumers wait for them */
    /* Over what an adaptive ring measures, and over who commits, joins and leaves in a ring with readers. */
    gpsti_mutex mutex;
};

/* For counters with one writer at a time: no locked instruction. */
GPSTI_PRIVATE void gpsti_ring_add(gpsti_a64* counter, uint64_t amount) {
    gpsti_a64_store_relaxed(counter, gpsti_a64_load_relaxed(counter) + amount);
}

GPSTI_PRIVATE uint64_t gpsti_ring_time(const gpst_ring* ring) { return gpsti_ticks() - ring->created_ticks; }

GPSTI_PRIVATE uint64_t gpsti_ring_pack(uint64_t number, uint32_t id) { return number << GPSTI_RING_ID_BITS | id; }

GPSTI_PRIVATE gpsti_a64* gpsti_ring_cell_at(const gpst_ring* ring, uint64_t position) {
    return &ring->cells[position & (ring->n_cells - 1)];
}

/* Does what a cell holds belong to the commit at this position? */
GPSTI_PRIVATE bool gpsti_ring_is_at(uint64_t cell, uint64_t position) {
    return (cell & ~GPSTI_RING_ID_MASK) == gpsti_ring_pack(position + 1, 0);
}

GPSTI_PRIVATE uint64_t gpsti_ring_used(uint64_t state) { return state & GPSTI_RING_COUNT_MASK; }

/* Nothing more will be committed. */
GPSTI_PRIVATE bool gpsti_ring_is_over(uint64_t state) {
    return state >= GPSTI_RING_CLOSED && !(state / GPSTI_RING_HELD & GPSTI_RING_COUNT_MASK);
}

/* Behind a fence. */
GPSTI_PRIVATE void gpsti_ring_wake(gpsti_ring_signal* signal, uint32_t wake_count) {
    if (gpsti_a32_load_relaxed(&signal->n_waiters)) {
        (void)gpsti_a32_add(&signal->epoch, 1);
        gpsti_futex_wake(&signal->epoch, wake_count);
    }
}

GPSTI_PRIVATE void gpsti_ring_notify(gpsti_ring_signal* signal, uint32_t wake_count) {
    gpsti_fence();
    gpsti_ring_wake(signal, wake_count);
}

#endif
