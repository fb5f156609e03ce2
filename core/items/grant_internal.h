/* core/items/grant_internal.h -- memory that items may take. An item is granted what items like it took when it begins,
   so nothing holds a part and waits for the rest; who needs more asks, and is served by age. */
#ifndef GPSTI_GRANT_INTERNAL_H
#define GPSTI_GRANT_INTERNAL_H

#include "item_internal.h"

/* Of a context. Locked, but for the atomics. */
typedef struct gpsti_grants {
    gpsti_a64 granted[GPSTI_MEMORIES]; /* to items in flight and results */
    gpsti_a64 used[GPSTI_MEMORIES];    /* of that, what they have taken */
    gpsti_a64 device_most;             /* what the device is taken to have; UINT64_MAX: it has refused nobody */
    uint32_t n_items;                  /* in flight; results are not */
    uint64_t next_age;
    gpsti_waiter* waiters;
    gpsti_cond changed;
} gpsti_grants;

/* Of a pipeline. Locked, but for the atomics. */
typedef struct gpsti_shares {
    uint64_t most[2][GPSTI_MEMORIES]; /* that one of its latest items took, and of those before them */
    uint32_t n_seen;                  /* of the latest */
    bool any_ended;
    uint64_t age, n_begun; /* of the item that called run: its items' ages follow that; 0: nobody's. Items begun */
    gpsti_a64 taken[GPSTI_MEMORIES]; /* the most that an item has taken so far */
    gpsti_a64 device_growths;        /* allocations of device memory */
    uint32_t n_to_cores, cores_left; /* items that go to the cores at once after one that the device had no room for */
    uint64_t n_refused, n_trimmed, n_waited, n_denied, n_restarted;
    char reason[GPST_REASON_BYTES]; /* why the first time */
} gpsti_shares;

GPSTI_INTERN gpst_result gpsti_grants_init(gpst_context* context, gpsti_grants* grants);
GPSTI_INTERN void gpsti_grants_term(gpsti_grants* grants);
/* May another item of the pipeline begin? One alone always may. */
GPSTI_INTERN bool gpsti_grant_fits(gpsti_locked locked, const gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_grant_begin(gpsti_locked locked, gpsti_item* item);
/* Before its first device work: what items like it take there. False: it must wait. Not locked. */
GPSTI_INTERN bool gpsti_grant_prepare_device(gpsti_item* item);
GPSTI_INTERN void gpsti_grant_learn(gpsti_locked locked, const gpsti_item* item); /* what one takes that ended well */
/* From that step on the item needs no more of the device than it has: where memory is short what else it has there goes
   back. The caller's thread has the item. Not locked. */
GPSTI_INTERN void gpsti_grant_settle(gpsti_item* item, uint32_t from);
/* The item has ended: it keeps what it has taken. */
GPSTI_INTERN void gpsti_grant_rest(gpsti_locked locked, gpsti_item* item);
GPSTI_INTERN void gpsti_grant_end(gpsti_locked locked, gpsti_item* item); /* its memory has been given back */
/* An item waits until it may take what it wants. True: it need not: there is room, or nobody else has memory, and it is
   denied more. */
GPSTI_INTERN bool gpsti_grant_park(gpsti_locked locked, gpsti_item* item);
/* Memory came back, or somebody comes to rest: who waits goes on as far as that reaches. True: some do. */
GPSTI_INTERN bool gpsti_grants_serve(gpsti_locked locked);
/* Nobody works any more: where somebody waits, memory is taken from the youngest who may begin anew, or one who waits
   is denied it. The scheduler calls this. True: some may go on. */
GPSTI_INTERN bool gpsti_grants_resolve(gpsti_locked locked);
/* The item has failed since others had the memory: true, and it waits until it may begin anew. No thread has it. */
GPSTI_INTERN bool gpsti_grant_begins_anew(gpsti_locked locked, gpsti_item* item);
/* True: items wait, and nothing moves but what the user does with results of this pipeline. */
GPSTI_INTERN bool gpsti_grants_wait_for_user(gpsti_locked locked, const gpst_pipeline* pipeline);
/* An item went to the cores since the device had no room for it, and some behind it go there at once; one found room.
   */
GPSTI_INTERN void gpsti_grant_denied(gpsti_locked locked, gpst_pipeline* pipeline);
GPSTI_INTERN void gpsti_grant_served(gpsti_locked locked, gpst_pipeline* pipeline);
GPSTI_INTERN bool gpsti_grant_skips_device(gpsti_locked locked, gpst_pipeline* pipeline); /* the next item */
/* Device memory that waiting items and free ones, of all pipelines of the context, need no more goes back; so do cached
   graphs.
   True: some did. Not locked. */
GPSTI_INTERN bool gpsti_grants_trim(gpst_pipeline* pipeline);

/* ---- what yield.c and device_grant.c ask of grant.c: locked, but for what is const ------------------ */

GPSTI_INTERN gpsti_grants* gpsti_grants_of(const gpsti_item* item);
GPSTI_INTERN uint64_t gpsti_grant_budget(const gpst_context* context, int memory);
GPSTI_INTERN uint64_t gpsti_grant_free(const gpst_context* context, int memory);
GPSTI_INTERN void gpsti_grant_set(gpsti_item* item, int memory, uint64_t bytes);
GPSTI_INTERN uint64_t gpsti_grant_beyond(const gpsti_item* item, int memory, uint64_t bytes);
GPSTI_INTERN uint64_t gpsti_grant_need(const gpst_pipeline* pipeline, int memory);
GPSTI_INTERN bool gpsti_grant_is_alone(const gpsti_item* item);
GPSTI_INTERN bool gpsti_grant_has_room(const gpsti_item* item, int memory, uint64_t bytes);
GPSTI_INTERN uint64_t gpsti_waiter_more(const gpsti_waiter* waiter, int memory); /* than the item has now */
GPSTI_INTERN void gpsti_waiter_add(gpsti_waiter* waiter);
GPSTI_INTERN void gpsti_waiter_remove(gpsti_waiter* waiter);
GPSTI_INTERN void gpsti_waiter_answer(gpsti_locked locked, gpsti_waiter* waiter, gpsti_answer answer);
GPSTI_INTERN bool gpsti_grants_older_waits(const gpsti_item* item, int memory);
GPSTI_INTERN bool gpsti_grant_allows(gpsti_item* item, int memory, uint64_t bytes);

/* ---- memory for an item: not locked ------------------------------------------------------------ */

/* Makes buffer hold `bytes`; the first keep_bytes survive. is_filled: all of them will be written. May wait, by age.
   BUDGET, MEMORY. */
GPSTI_INTERN gpst_result gpsti_item_reserve(gpsti_item* item, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                            bool is_filled);
/* The same with what memory is free: else WOULD_BLOCK, and the item's wants say what it lacks. */
GPSTI_INTERN gpst_result gpsti_item_reserve_now(gpsti_item* item, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                                bool is_filled);
/* Memory that is not the item's, for which it waits as for its own. */
GPSTI_INTERN gpst_result gpsti_item_take_memory(gpsti_item* item, size_t bytes, gpst_buffer* out);
GPSTI_INTERN gpst_result gpsti_item_reserve_device(gpsti_item* item, gpst_buffer* memory, size_t bytes,
                                                   const char* tag);
GPSTI_INTERN void gpsti_item_count_taken(gpsti_item* item, int memory, const gpst_buffer* buffer);
GPSTI_INTERN void gpsti_item_count_given(gpsti_item* item, int memory, const gpst_buffer* buffer);
GPSTI_INTERN void gpsti_item_free_device(gpsti_item* item, gpst_buffer* memory);
/* All its host memory goes back to the pool; locked or not. */
GPSTI_INTERN void gpsti_item_give_back(gpsti_item* item);

#endif
