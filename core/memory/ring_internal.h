/* core/memory/ring_internal.h -- what a ring's files ask of each other: ring.c (the public calls), ring_slot.c (a slot
   in the user's hands), ring_spsc.c and ring_mpmc.c (who holds which slot), ring_free.c (the free ids), ring_reader.c
   (cursors of their own), ring_event.c (the events of slots), ring_wait.c (who waits), ring_desc.c (what was asked
   for), ring_memory.c (the slots' memory), ring_adapt.c (what an adaptive ring measures and changes). */
#ifndef GPSTI_RING_INTERNAL_H
#define GPSTI_RING_INTERNAL_H

#include "ring_state_internal.h"

/* ---- ring_slot.c -------------------------------------------------------------------- */

/* A free slot to its producer. */
GPSTI_INTERN void gpsti_ring_grant(const gpst_ring* ring, uint32_t id, gpst_ring_slot* out);
/* The commit at this position to a consumer; role: what release will ask for: TAKEN and the reader's number. */
GPSTI_INTERN void gpsti_ring_hand_over(const gpst_ring* ring, uint64_t position, uint32_t id, uint32_t role,
                                       gpst_ring_slot* out);
/* Frame memory that nobody holds must not be touched. */
GPSTI_INTERN void gpsti_ring_poison(const gpst_ring* ring, uint32_t id);
/* The user's struct is none. Only before the slot goes on: who gets it then may have the same struct. */
GPSTI_INTERN void gpsti_ring_forget(gpst_ring_slot* slot);
/* Ends the loan and gives the slot's id if the caller holds it in this role, else NO_SLOT with the reason set. Of
   copies of one loan on several threads one claims it. */
GPSTI_INTERN uint32_t gpsti_ring_claim(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role,
                                       const char* function);
/* The call failed, so that its caller holds the slot as before; gives the result. */
GPSTI_INTERN gpst_result gpsti_ring_unclaim(const gpst_ring* ring, uint32_t id, uint32_t role,
                                            const gpst_ring_slot* slot, gpst_result result);
/* The id of a slot that the caller holds in any role and goes on holding; else as claim. */
GPSTI_INTERN uint32_t gpsti_ring_look_up(const gpst_ring* ring, const gpst_ring_slot* slot, const char* function);
/* Ends the loan of whoever holds the slot in this role. False: nobody does. */
GPSTI_INTERN bool gpsti_ring_end_held(const gpst_ring* ring, uint32_t id, uint32_t role);
/* As claim, logged; NULLs are no mistake. */
GPSTI_INTERN uint32_t gpsti_ring_claim_logged(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role,
                                              const char* function);

/* ---- ring_wait.c -------------------------------------------------------------------- */

/* Looks once, and then again, each time that `signal` tells of something, until the time is over. */
GPSTI_INTERN gpst_result gpsti_ring_get(gpst_ring* ring, gpsti_ring_try look, gpst_ring_reader* reader,
                                        gpsti_ring_signal* signal, int64_t timeout_ns, gpst_ring_slot* out);
/* Sets the reason of a failure; what: why a look gave WOULD_BLOCK. */
GPSTI_INTERN gpst_result gpsti_ring_explain(gpst_result result, const char* function, int64_t timeout_ns,
                                            const char* what);

/* ---- ring_spsc.c: one producer, one consumer ------------------------------------------ */

GPSTI_INTERN void gpsti_ring_spsc_set_up(gpst_ring* ring);
GPSTI_INTERN bool gpsti_ring_spsc_commit(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot); /* true: evaluate */
GPSTI_INTERN void gpsti_ring_spsc_abandon(gpst_ring* ring, uint32_t id);
GPSTI_INTERN void gpsti_ring_spsc_release(gpst_ring* ring, uint32_t id);

/* ---- ring_free.c -------------------------------------------------------------------- */

/* MPMC: any thread. NO_SLOT: there is none. */
GPSTI_INTERN void gpsti_ring_push_free(gpst_ring* ring, uint32_t id);
GPSTI_INTERN uint32_t gpsti_ring_pop_free(gpst_ring* ring);
/* What is free comes into free_ids, the warmest last; SPSC: by the producer. MPMC: under the mutex, while nobody
   acquires, and back again with scatter. */
GPSTI_INTERN void gpsti_ring_gather_free(gpst_ring* ring);
GPSTI_INTERN void gpsti_ring_scatter_free(gpst_ring* ring);

/* ---- ring_mpmc.c: many producers, many consumers ---------------------------------------- */

/* Takes the free ids out of free_ids. */
GPSTI_INTERN void gpsti_ring_mpmc_set_up(gpst_ring* ring);
/* A free slot, if there is one: nothing is given up. */
GPSTI_INTERN gpst_result gpsti_ring_mpmc_claim(gpst_ring* ring, gpst_ring_slot* out);
/* Puts the slot behind all others; its position, which *sequence has before a consumer can have the slot. */
GPSTI_INTERN uint64_t gpsti_ring_mpmc_push(gpst_ring* ring, uint32_t id, uint64_t* sequence);
GPSTI_INTERN bool gpsti_ring_mpmc_commit(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot); /* true: evaluate */
GPSTI_INTERN void gpsti_ring_mpmc_uncommitted(gpst_ring* ring, uint32_t n_wake); /* a producer is through with one */
GPSTI_INTERN void gpsti_ring_mpmc_free(gpst_ring* ring, uint32_t id);
GPSTI_INTERN void gpsti_ring_mpmc_abandon(gpst_ring* ring, uint32_t id);
GPSTI_INTERN void gpsti_ring_mpmc_close(gpst_ring* ring);

/* ---- ring_reader.c -------------------------------------------------------------------- */

/* Of a ring with desc.max_readers. MEMORY with the reason set. */
GPSTI_INTERN gpst_result gpsti_ring_readers_init(gpst_ring* ring);
GPSTI_INTERN void gpsti_ring_readers_term(gpst_ring* ring);
GPSTI_INTERN bool gpsti_ring_readers_commit(gpst_ring* ring, uint32_t id, gpst_ring_slot* slot); /* true: evaluate */

/* ---- ring_event.c --------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_ring_events_init(gpst_ring* ring);
/* Of a free slot, without waiting; a device that is lost is done, too. */
GPSTI_INTERN bool gpsti_ring_device_is_done(const gpst_ring* ring, uint32_t id);
/* Until the device is done with what was recorded. */
GPSTI_INTERN void gpsti_ring_events_term(gpst_ring* ring);
/* OK for NULL: no stream. */
GPSTI_INTERN gpst_result gpsti_ring_check_stream(const gpst_ring* ring, const gpst_stream* stream,
                                                 const char* function);
/* The stream waits for the last users of a free slot; for its producer. NULL: nothing happens; nor below. */
GPSTI_INTERN gpst_result gpsti_ring_await_users(const gpst_ring* ring, uint32_t id, gpst_stream* stream,
                                                const char* function);
GPSTI_INTERN gpst_result gpsti_ring_await_filled(const gpst_ring* ring, uint32_t id, gpst_stream* stream,
                                                 const char* function);
/* What is recorded counts from here on: before commit, before release. On failure nothing changes. */
GPSTI_INTERN gpst_result gpsti_ring_record_filled(gpst_ring* ring, uint32_t id, gpst_stream* stream,
                                                  const char* function);
GPSTI_INTERN gpst_result gpsti_ring_record_released(gpst_ring* ring, uint32_t id, uint32_t row, gpst_stream* stream,
                                                    const char* function);

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
