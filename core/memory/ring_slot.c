/* core/memory/ring_slot.c -- a slot in the user's hands: what is in the struct, and whether the caller may have it. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#include <string.h>

GPSTI_PRIVATE uint8_t* gpsti_ring_data(const gpst_ring* ring, uint32_t id) {
    if (ring->data)
        return ring->data + id * ring->stride_bytes;
    uint8_t* const own = ring->slots ? (uint8_t*)ring->slots[id].data : NULL;
    return own ? own + ((0 - (uintptr_t)own) & (ring->desc.align_bytes - 1)) : NULL;
}

/* A device may still use a slot whose events nobody has waited for. */
GPSTI_INTERN void gpsti_ring_poison(const gpst_ring* ring, uint32_t id) {
    if (ring->desc.slot_bytes && ring->desc.memory != GPST_MEMORY_DEVICE &&
        !gpsti_a64_load_relaxed(&ring->entries[id].marks))
        GPSTI_POISON(gpsti_ring_data(ring, id), ring->stride_bytes);
}

/* ---- loans --------------------------------------------------------------------------------- */

GPSTI_PRIVATE uint32_t gpsti_ring_reader_number(uint32_t role) {
    return (role & ~GPSTI_RING_TAKEN) >> GPSTI_RING_READER_SHIFT; /* 0: none */
}

/* Odd while somebody holds the slot in this role: the number of that loan. */
GPSTI_PRIVATE gpsti_a32* gpsti_ring_loan_at(const gpst_ring* ring, uint32_t id, uint32_t role) {
    const uint32_t reader = gpsti_ring_reader_number(role);
    return reader ? &ring->holds[(size_t)(reader - 1) * ring->desc.max_slots + id] : &ring->entries[id].loan;
}

GPSTI_PRIVATE uint32_t gpsti_ring_begin_loan(const gpst_ring* ring, uint32_t id, uint32_t role) {
    gpsti_a32* const at = gpsti_ring_loan_at(ring, id, role);
    const uint32_t loan = (gpsti_a32_load_relaxed(at) + 1) | 1;
    gpsti_a32_store_relaxed(at, loan);
    return loan;
}

/* False: it is over already. SPSC: each role is one thread's, which needs no read-modify-write. */
GPSTI_PRIVATE bool gpsti_ring_end_loan(const gpst_ring* ring, uint32_t id, uint32_t role, uint32_t loan) {
    gpsti_a32* const at = gpsti_ring_loan_at(ring, id, role);
    uint32_t seen = gpsti_a32_load_relaxed(at);
    if (!(loan & 1) || seen != loan)
        return false;
    if (!ring->spsc)
        return gpsti_a32_cas(at, &seen, loan + 1);
    gpsti_a32_store_relaxed(at, loan + 1);
    return true;
}

GPSTI_INTERN bool gpsti_ring_end_held(const gpst_ring* ring, uint32_t id, uint32_t role) {
    return gpsti_ring_end_loan(ring, id, role, gpsti_a32_load_relaxed(gpsti_ring_loan_at(ring, id, role)));
}

/* ---- handed to the user, and back ------------------------------------------------------------ */

GPSTI_INTERN void gpsti_ring_grant(const gpst_ring* ring, uint32_t id, gpst_ring_slot* out) {
    memset(out, 0, sizeof *out);
    out->data = gpsti_ring_data(ring, id);
    out->id = id + 1;
    out->loan = gpsti_ring_begin_loan(ring, id, 0);
    if (out->data && ring->desc.memory != GPST_MEMORY_DEVICE)
        GPSTI_UNPOISON(out->data, ring->desc.slot_bytes);
}

GPSTI_INTERN void gpsti_ring_hand_over(const gpst_ring* ring, uint64_t position, uint32_t id, uint32_t role,
                                       gpst_ring_slot* out) {
    out->data = gpsti_ring_data(ring, id);
    out->sequence = position;
    out->words[0] = ring->entries[id].words[0];
    out->words[1] = ring->entries[id].words[1];
    out->id = (id + 1) | role;
    out->loan = gpsti_ring_begin_loan(ring, id, role);
}

GPSTI_INTERN void gpsti_ring_forget(gpst_ring_slot* slot) {
    slot->data = NULL;
    slot->id = slot->loan = 0;
}

/* What callers see is the id + 1, so that a zeroed slot is none. */
GPSTI_PRIVATE uint32_t gpsti_ring_number(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role) {
    const uint32_t number = slot->id ^ role;
    return number >= 1 && number <= ring->desc.max_slots && gpsti_ring_reader_number(role) <= ring->desc.max_readers
               ? number - 1
               : GPSTI_RING_NO_SLOT;
}

GPSTI_PRIVATE uint32_t gpsti_ring_explain_claim(uint32_t id, const gpst_ring_slot* slot, const char* function) {
    if (!slot)
        (void)gpsti_fail(GPST_ERROR_ARGUMENT, "%s: slot=NULL: must not be NULL", function);
    else if (id == GPSTI_RING_NO_SLOT)
        (void)gpsti_fail(GPST_ERROR_ARGUMENT, "%s: slot.id=%u, loan=%u: not held by the caller", function, slot->id,
                         slot->loan);
    return id;
}

GPSTI_PRIVATE uint32_t gpsti_ring_try_claim(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role) {
    const uint32_t id = slot ? gpsti_ring_number(ring, slot, role) : GPSTI_RING_NO_SLOT;
    return id != GPSTI_RING_NO_SLOT && gpsti_ring_end_loan(ring, id, role, slot->loan) ? id : GPSTI_RING_NO_SLOT;
}

GPSTI_INTERN uint32_t gpsti_ring_look_up(const gpst_ring* ring, const gpst_ring_slot* slot, const char* function) {
    const uint32_t role = slot ? slot->id & ~(((uint32_t)1 << GPSTI_RING_READER_SHIFT) - 1) : 0;
    uint32_t id = slot && slot->loan & 1 ? gpsti_ring_number(ring, slot, role) : GPSTI_RING_NO_SLOT;
    if (id != GPSTI_RING_NO_SLOT && gpsti_a32_load_relaxed(gpsti_ring_loan_at(ring, id, role)) != slot->loan)
        id = GPSTI_RING_NO_SLOT;
    return gpsti_ring_explain_claim(id, slot, function);
}

GPSTI_INTERN uint32_t gpsti_ring_claim(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role,
                                       const char* function) {
    return gpsti_ring_explain_claim(gpsti_ring_try_claim(ring, slot, role), slot, function);
}

GPSTI_INTERN gpst_result gpsti_ring_unclaim(const gpst_ring* ring, uint32_t id, uint32_t role,
                                            const gpst_ring_slot* slot, gpst_result result) {
    gpsti_a32_store_relaxed(gpsti_ring_loan_at(ring, id, role), slot->loan);
    return result;
}

GPSTI_INTERN uint32_t gpsti_ring_claim_logged(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role,
                                              const char* function) {
    if (!ring || !slot)
        return GPSTI_RING_NO_SLOT;
    const uint32_t id = gpsti_ring_try_claim(ring, slot, role);
    if (id == GPSTI_RING_NO_SLOT)
        GPSTI_LOG(&ring->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
                  "%s: slot.id=%u, loan=%u: not held by the caller; ignored", function, slot->id, slot->loan);
    return id;
}
