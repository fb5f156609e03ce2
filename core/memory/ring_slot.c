/* core/memory/ring_slot.c -- a slot in the user's hands: what is in the struct, and whether the caller may have it. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#include <string.h>

GPSTI_PRIVATE uint8_t* gpsti_ring_data(const gpst_ring* ring, uint32_t id) {
    if (ring->data)
        return ring->data + id * ring->stride_bytes;
    return ring->slots ? (uint8_t*)ring->slots[id].data : NULL;
}

/* A device may still use a slot whose events nobody has waited for. */
GPSTI_INTERN void gpsti_ring_poison(const gpst_ring* ring, uint32_t id) {
    if (ring->desc.slot_bytes && ring->desc.memory != GPST_MEMORY_DEVICE &&
        !gpsti_a64_load_relaxed(&ring->entries[id].marks))
        GPSTI_POISON(gpsti_ring_data(ring, id), ring->stride_bytes);
}

GPSTI_INTERN void gpsti_ring_grant(const gpst_ring* ring, uint32_t id, gpst_ring_slot* out) {
    memset(out, 0, sizeof *out);
    out->data = gpsti_ring_data(ring, id);
    out->id = id + 1;
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
}

GPSTI_INTERN void gpsti_ring_forget(gpst_ring_slot* slot) {
    slot->data = NULL;
    slot->id = 0;
}

/* What callers see is the id + 1, so that a zeroed slot is none. */
GPSTI_PRIVATE uint32_t gpsti_ring_number(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role) {
    const uint32_t number = slot->id ^ role;
    return number >= 1 && number <= ring->desc.max_slots ? number - 1 : GPSTI_RING_NO_SLOT;
}

GPSTI_INTERN uint32_t gpsti_ring_claim(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role,
                                       const char* function) {
    const uint32_t number = slot ? gpsti_ring_number(ring, slot, role) : GPSTI_RING_NO_SLOT;
    if (!slot)
        (void)gpsti_fail(GPST_ERROR_ARGUMENT, "%s: slot=NULL: must not be NULL", function);
    else if (number == GPSTI_RING_NO_SLOT)
        (void)gpsti_fail(GPST_ERROR_ARGUMENT, "%s: slot.id=%u: not held by the caller", function, slot->id);
    return number;
}

GPSTI_INTERN uint32_t gpsti_ring_claim_logged(const gpst_ring* ring, const gpst_ring_slot* slot, uint32_t role,
                                              const char* function) {
    if (!ring || !slot)
        return GPSTI_RING_NO_SLOT;
    const uint32_t number = gpsti_ring_number(ring, slot, role);
    if (number == GPSTI_RING_NO_SLOT)
        GPSTI_LOG(&ring->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
                  "%s: slot.id=%u: not held by the caller; ignored", function, slot->id);
    return number;
}
