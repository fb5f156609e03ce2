/* core/memory/ring_internal.h -- the parts of a ring, and what its files ask of each other: ring.c (who holds which
   slot, who waits), ring_desc.c (what was asked for), ring_memory.c (the slots' memory), ring_adapt.c (what an adaptive
   ring measures and changes). */
#ifndef GPSTI_RING_INTERNAL_H
#define GPSTI_RING_INTERNAL_H

#include "../device/context_internal.h"
#include "memory_internal.h"
#include "ring.h"
#include "ring_depth_internal.h"

#define GPSTI_RING_INTERVAL_COMMITS 64 /* between two looks at the clock: a 64th of them can be seen */
#define GPSTI_RING_INTERVAL_NS ((int64_t)100000000)

typedef struct gpsti_ring_cell {
    uint64_t words[2];
    uint32_t id;
} gpsti_ring_cell;

/* Where one side sleeps. A waiter reads epoch, counts itself, looks again and only then sleeps; a notifier
   publishes, fences, and wakes only when somebody is counted. */
typedef struct gpsti_ring_event {
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_a32 epoch;
    gpsti_a32 n_waiters;
    gpsti_a64 waits, wait_ns;
} gpsti_ring_event;

/* Written by producers: one thread (SPSC), or under the mutex (MPMC). */
typedef struct gpsti_ring_producer {
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_a64 tail; /* commits so far */
    gpsti_a32 n_held;                               /* acquired, not yet committed */
    uint32_t n_free;                                /* ids on the stack of free ones */
    uint64_t granted;                               /* acquires less abandons (SPSC) */
    uint64_t returned_seen;                         /* the latest look at consumer.returned (SPSC) */
    uint64_t returned_read;                         /* how many of the returned ids were used again (SPSC) */
    gpsti_a64 ticks;                                /* sum of the times of all commits, since creation */
    gpsti_a64 abandoned, dropped;
} gpsti_ring_producer;

/* Written by consumers. */
typedef struct gpsti_ring_consumer {
    GPSTI_ALIGNAS(GPSTI_CACHE_LINE) gpsti_a64 head; /* takes, and commits given up, so far */
    gpsti_a64 returned;                             /* releases so far (SPSC) */
    uint64_t tail_seen;                             /* the latest look at producer.tail (SPSC) */
    gpsti_a64 ticks;                                /* sum of the times at which cells left the queue, since creation */
    gpsti_a64 taken;
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

typedef gpst_result (*gpsti_ring_try)(gpst_ring* ring, gpst_ring_slot* out);

struct gpst_ring {
    gpst_context* context;
    gpst_ring_desc desc;
    bool spsc;
    uint32_t n_spins;
    uint32_t n_cells; /* power of two >= max_slots */
    uint32_t max_depth;
    size_t stride_bytes;
    gpsti_ring_try try_acquire, try_take;
    gpst_buffer memory;      /* of all slots; not of an adaptive ring */
    gpst_pool* pool;         /* adaptive: has the memory of each slot, */
    gpst_buffer* slots;      /* by id; without slot_bytes there is neither */
    gpsti_ring_adapt* adapt; /* NULL: not adaptive */
    gpsti_ring_cell* cells;  /* committed */
    uint32_t* returned;      /* ids on their way back (SPSC) */
    /* [max_slots]: below, the stack of free ids, since the slot used last is the warmest; at the end, n_bare ids whose
       slots have no memory. */
    uint32_t* free_ids;
    uint32_t n_bare;
    uint64_t created_ticks;
    gpsti_a32 depth;
    gpsti_a32 closed;
    gpsti_ring_producer producer;
    gpsti_ring_consumer consumer;
    gpsti_ring_event space; /* producers wait for it */
    gpsti_ring_event items; /* consumers wait for them */
    gpsti_mutex mutex;      /* MPMC: guards producer, consumer, n_used, free_ids and cells */
    uint32_t n_used;        /* slots that are not free (MPMC) */
};

GPSTI_PRIVATE uint64_t gpsti_ring_time(const gpst_ring* ring) { return gpsti_ticks() - ring->created_ticks; }

GPSTI_PRIVATE void gpsti_ring_notify(gpsti_ring_event* event, uint32_t wake_count) {
    gpsti_fence();
    if (gpsti_a32_load_relaxed(&event->n_waiters)) {
        (void)gpsti_a32_add(&event->epoch, 1);
        gpsti_futex_wake(&event->epoch, wake_count);
    }
}

/* ---- ring_desc.c -------------------------------------------------------------------- */

/* Checks the desc and puts the defaults into it. Of a slot, the bytes; of the depth, what the limits allow. */
GPSTI_INTERN gpst_result gpsti_ring_resolve(gpst_ring_desc* desc, size_t* stride_bytes, uint32_t* max_depth);

/* ---- ring_memory.c ------------------------------------------------------------------ */

/* Of a desc that is valid but for its bytes: those of a slot, and the largest depth that max_slots and max_bytes
   allow. */
GPSTI_INTERN gpst_result gpsti_ring_plan_memory(const gpst_ring_desc* desc, size_t* stride_bytes, uint32_t* max_depth);
/* For all slots, or, of an adaptive ring, for the first desc.depth. */
GPSTI_INTERN gpst_result gpsti_ring_map(gpst_ring* ring);
GPSTI_INTERN void gpsti_ring_unmap(gpst_ring* ring);
/* For `depth` slots, all or nothing. These two: adaptive, by the thread that evaluates, without the mutex. */
GPSTI_INTERN gpst_result gpsti_ring_grow_memory(gpst_ring* ring, uint32_t depth);
/* Slots beyond the depth that are free lose their memory. */
GPSTI_INTERN void gpsti_ring_shrink_memory(gpst_ring* ring);
GPSTI_INTERN uint64_t gpsti_ring_memory_bytes(const gpst_ring* ring);

/* ---- ring_adapt.c ------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_ring_adapt_init(gpst_ring* ring);
GPSTI_INTERN void gpsti_ring_adapt_term(gpst_ring* ring);
/* A producer's look at the ring, after which n_used slots are in use: OK, WOULD_BLOCK where it was full, or else.
   SPSC: by the producer; MPMC: under the mutex. */
GPSTI_INTERN void gpsti_ring_count_acquire(gpst_ring* ring, gpst_result result, uint64_t n_used);
/* A consumer's look, likewise. */
GPSTI_INTERN void gpsti_ring_count_take(gpst_ring* ring, gpst_result result);
/* A commit of an adaptive ring. True: the interval is over, evaluate. As count_acquire. */
GPSTI_INTERN bool gpsti_ring_count_commit(gpst_ring* ring);
/* Judges the interval, or the one that a test makes up; begins the next. SPSC: by the producer; MPMC: any thread,
   without the mutex. Nothing happens where another thread evaluates. */
GPSTI_INTERN void gpsti_ring_evaluate(gpst_ring* ring, const gpsti_ring_interval* made_up);

#endif
