/* core/memory/ring_wait.c -- how long a call of a ring looks, spins and sleeps, and what it says in the end. */
#include "../base/platform_internal.h"

#include "ring_internal.h"

#define GPSTI_RING_TRIES_MASK 15 /* a look every 16 pauses */

GPSTI_PRIVATE gpst_result gpsti_ring_spin(gpst_ring* ring, gpsti_ring_try look, gpst_ring_reader* reader,
                                          gpst_ring_slot* out) {
    for (uint32_t i = 0; i < ring->n_spins; i++) {
        gpsti_relax();
        if ((i & GPSTI_RING_TRIES_MASK) == GPSTI_RING_TRIES_MASK) {
            const gpst_result result = look(ring, reader, out);
            if (result != GPST_ERROR_WOULD_BLOCK)
                return result;
        }
    }
    return GPST_ERROR_WOULD_BLOCK;
}

GPSTI_PRIVATE gpst_result gpsti_ring_park(gpst_ring* ring, gpsti_ring_try look, gpst_ring_reader* reader,
                                          gpsti_ring_signal* signal, int64_t deadline_ns, gpst_ring_slot* out) {
    gpst_result result = GPST_ERROR_WOULD_BLOCK;
    while (result == GPST_ERROR_WOULD_BLOCK) {
        const uint32_t epoch = gpsti_a32_load(&signal->epoch);
        (void)gpsti_a32_add(&signal->n_waiters, 1);
        gpsti_fence();
        result = look(ring, reader, out);
        if (result == GPST_ERROR_WOULD_BLOCK && gpsti_now_ns() >= deadline_ns)
            result = GPST_ERROR_TIMEOUT;
        if (result == GPST_ERROR_WOULD_BLOCK)
            gpsti_futex_wait(&signal->epoch, epoch, deadline_ns);
        (void)gpsti_a32_add(&signal->n_waiters, UINT32_MAX);
    }
    return result;
}

GPSTI_INTERN gpst_result gpsti_ring_get(gpst_ring* ring, gpsti_ring_try look, gpst_ring_reader* reader,
                                        gpsti_ring_signal* signal, int64_t timeout_ns, gpst_ring_slot* out) {
    gpst_result result = look(ring, reader, out);
    if (result != GPST_ERROR_WOULD_BLOCK || timeout_ns <= 0)
        return result;
    const int64_t start_ns = gpsti_now_ns();
    result = gpsti_ring_spin(ring, look, reader, out);
    if (result == GPST_ERROR_WOULD_BLOCK)
        result = gpsti_ring_park(ring, look, reader, signal, gpsti_deadline(timeout_ns), out);
    (void)gpsti_a64_add(&signal->waits, 1);
    (void)gpsti_a64_add(&signal->wait_ns, (uint64_t)(gpsti_now_ns() - start_ns));
    return result;
}

GPSTI_INTERN gpst_result gpsti_ring_explain(gpst_result result, const char* function, int64_t timeout_ns,
                                            const char* what) {
    if (result == GPST_ERROR_TIMEOUT)
        return gpsti_fail(result, "%s: timeout_ns=%lld: %s all that time", function, (long long)timeout_ns, what);
    if (result == GPST_ERROR_WOULD_BLOCK)
        return gpsti_fail(result, "%s: timeout_ns=0: %s", function, what);
    if (result == GPST_ERROR_CLOSED)
        return gpsti_fail(result, "%s: the ring is closed", function);
    if (result == GPST_ERROR_STATE)
        return gpsti_fail(result, "%s: the ring was made with desc.max_readers: take through a gpst_ring_reader",
                          function);
    return result;
}
