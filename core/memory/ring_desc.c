/* core/memory/ring_desc.c -- the desc of a ring, checked and with its defaults. Makes nothing. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#define GPSTI_RING_MAX_SLOTS 65536u
#define GPSTI_RING_MAX_ALIGN 4096u
#define GPSTI_RING_MAX_READERS 32u /* their bits and counts fit into one word each */
#define GPSTI_RING_MIN_DEPTH 2u    /* one slot is filled while the other is used */

GPSTI_PRIVATE gpst_result gpsti_ring_validate(const gpst_ring_desc* desc) {
    const char* function = "gpst_ring_create";
    const bool drops_old = desc->policy == GPST_RING_DROP_OLDEST || desc->policy == GPST_RING_LATEST_ONLY;
    GPSTI_TRY(gpsti_check_canaries(function, desc->start_canary, desc->end_canary));
    GPSTI_FAIL_IF(!desc->max_slots || desc->max_slots > GPSTI_RING_MAX_SLOTS, GPST_ERROR_ARGUMENT,
                  "%s: desc.max_slots=%u: must be 1..%u", function, desc->max_slots, GPSTI_RING_MAX_SLOTS);
    GPSTI_FAIL_IF(desc->depth > desc->max_slots, GPST_ERROR_ARGUMENT,
                  "%s: desc.depth=%u: must be 0 (max_slots) .. %u (max_slots)", function, desc->depth, desc->max_slots);
    GPSTI_FAIL_IF((desc->align_bytes & (desc->align_bytes - 1)) || desc->align_bytes > GPSTI_RING_MAX_ALIGN,
                  GPST_ERROR_ARGUMENT, "%s: desc.align_bytes=%zu: must be 0 (default) or a power of two up to %u",
                  function, desc->align_bytes, GPSTI_RING_MAX_ALIGN);
    GPSTI_FAIL_IF((int)desc->sharing < 0 || desc->sharing > GPST_RING_MPMC, GPST_ERROR_ARGUMENT,
                  "%s: desc.sharing=%d: must be 0..%d", function, (int)desc->sharing, (int)GPST_RING_MPMC);
    GPSTI_FAIL_IF((int)desc->policy < 0 || desc->policy > GPST_RING_LATEST_ONLY, GPST_ERROR_ARGUMENT,
                  "%s: desc.policy=%d: must be 0..%d", function, (int)desc->policy, (int)GPST_RING_LATEST_ONLY);
    GPSTI_FAIL_IF(desc->sharing == GPST_RING_SPSC && drops_old, GPST_ERROR_ARGUMENT,
                  "%s: desc.policy=%s: takes slots back from the consumer's side, which SPSC does not allow: use "
                  "desc.sharing=GPST_RING_MPMC",
                  function, desc->policy == GPST_RING_LATEST_ONLY ? "LATEST_ONLY" : "DROP_OLDEST");
    GPSTI_FAIL_IF((int)desc->memory < 0 || desc->memory > GPST_MEMORY_DEVICE, GPST_ERROR_ARGUMENT,
                  "%s: desc.memory=%d: must be 0 (page-locked), GPST_MEMORY_HOST, _PINNED or _DEVICE", function,
                  (int)desc->memory);
    GPSTI_FAIL_IF(desc->max_readers > GPSTI_RING_MAX_READERS, GPST_ERROR_ARGUMENT,
                  "%s: desc.max_readers=%u: must be 0 (the one shared cursor) .. %u", function, desc->max_readers,
                  GPSTI_RING_MAX_READERS);
    GPSTI_FAIL_IF(desc->max_readers && desc->sharing == GPST_RING_SPSC, GPST_ERROR_ARGUMENT,
                  "%s: desc.max_readers=%u: an SPSC ring has one consumer: use desc.sharing=GPST_RING_MPMC", function,
                  desc->max_readers);
    GPSTI_FAIL_IF(!desc->adaptive && (desc->min_depth || desc->max_bytes), GPST_ERROR_ARGUMENT,
                  "%s: desc.min_depth=%u, max_bytes=%zu: are for desc.adaptive: must be 0 without it", function,
                  desc->min_depth, desc->max_bytes);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_ring_resolve(gpst_ring_desc* desc, size_t* stride_bytes, uint32_t* max_depth) {
    const char* function = "gpst_ring_create";
    GPSTI_TRY(gpsti_ring_validate(desc));
    if (!desc->align_bytes)
        desc->align_bytes = GPSTI_CACHE_LINE;
    if (desc->memory == GPST_MEMORY_INVALID)
        desc->memory = GPST_MEMORY_PINNED;
    desc->streams = desc->streams || desc->memory == GPST_MEMORY_DEVICE;
    GPSTI_TRY(gpsti_ring_plan_memory(desc, stride_bytes, max_depth));
    if (!desc->adaptive) {
        desc->depth = desc->depth ? desc->depth : desc->max_slots;
        return GPST_OK;
    }
    if (!desc->min_depth)
        desc->min_depth = desc->max_slots < GPSTI_RING_MIN_DEPTH ? desc->max_slots : GPSTI_RING_MIN_DEPTH;
    if (!desc->depth)
        desc->depth = desc->min_depth;
    GPSTI_FAIL_IF(desc->min_depth > *max_depth, GPST_ERROR_ARGUMENT,
                  "%s: desc.min_depth=%u: must be 0 (%u) .. %u, which max_slots=%u and max_bytes=%zu allow", function,
                  desc->min_depth, GPSTI_RING_MIN_DEPTH, *max_depth, desc->max_slots, desc->max_bytes);
    GPSTI_FAIL_IF(desc->depth < desc->min_depth || desc->depth > *max_depth, GPST_ERROR_ARGUMENT,
                  "%s: desc.depth=%u: must be 0 (min_depth) or %u (min_depth) .. %u, which max_slots=%u and "
                  "max_bytes=%zu allow",
                  function, desc->depth, desc->min_depth, *max_depth, desc->max_slots, desc->max_bytes);
    return GPST_OK;
}
