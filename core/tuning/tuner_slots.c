/* core/tuning/tuner_slots.c -- how many slots are worth what their memory takes to make. A pure policy, as tuner.c
   is. */
#include "../base/platform_internal.h"

#include "../../kernels/exact/exact_internal.h"
#include "tuner_internal.h"

#define GPSTI_TUNER_LEAST_SLOTS 3    /* one that is filled, one that is worked on, one that is emptied */
#define GPSTI_TUNER_HOPE 4 /* of so many that are tried, one brings what it could at best */
#define GPSTI_TUNER_TURNS 0.01 /* what more calls at once than a driver takes bring, at best */
#define GPSTI_TUNER_AROUND_NS 8000000 /* what comes with slots beside their memory, at most */
#define GPSTI_TUNER_DEAR 5 /* items wait for one another that long with no great loss */
#define GPSTI_TUNER_UNSEEN_NS 500000 /* 1 MiB of locked memory, as much on the device, a stream: about */

/* A run of n_left items on n slots takes about n set-ups and n_left / n items one after the other. The sum is least
   where both are the same. Nothing beside it is known of the engine yet; and more than that rarely pays. */
GPSTI_INTERN uint32_t gpsti_tuner_slots_worth(uint64_t n_left, int64_t item_ns, int64_t slot_ns) {
    if (slot_ns <= 0 || item_ns <= 0)
        return 0;
    const double n = gpsti_sqrt64((double)n_left * (double)item_ns / (double)slot_ns);
    return n < (double)GPSTI_TUNER_LEAST_SLOTS ? GPSTI_TUNER_LEAST_SLOTS : n > 1e6 ? 1000000 : (uint32_t)n;
}

/* Made at several slots' hands at once, of which none may be complete: by its bytes, what the largest has cost. */
GPSTI_INTERN int64_t gpsti_tuner_slot_ns(int64_t growth_ns, uint64_t made_bytes, uint64_t slot_bytes) {
    if (slot_bytes == 0 || made_bytes <= slot_bytes)
        return growth_ns;
    return (int64_t)((double)growth_ns * (double)slot_bytes / (double)made_bytes);
}

/* The picture behind the file, and the device's memory for both ends of its work: about as much again, and no less than
   any item takes there. */
GPSTI_INTERN int64_t gpsti_tuner_unseen_slot_ns(int64_t slot_ns) {
    return 2 * slot_ns > GPSTI_TUNER_UNSEEN_NS ? 2 * slot_ns : GPSTI_TUNER_UNSEEN_NS;
}

/* Two more at least, for half the gain at the most. What comes with them (streams, events, workers that wake, and to
   take all of it down) is about as much again where memory is small, and no more where it is large. */
GPSTI_INTERN int64_t gpsti_tuner_setups_ns(int64_t slot_ns) {
    const int64_t setups_ns = 4 * slot_ns;
    return setups_ns + (setups_ns < GPSTI_TUNER_AROUND_NS ? setups_ns : GPSTI_TUNER_AROUND_NS);
}

GPSTI_INTERN bool gpsti_tuner_is_dear(int64_t slot_ns, int64_t work_ns) {
    return slot_ns / GPSTI_TUNER_DEAR > work_ns;
}

/* Item 0 may have loaded the device's kernels, which the others find there. */
GPSTI_INTERN int64_t gpsti_tuner_filling_way_ns(const gpsti_tuner_costs* costs) {
    int64_t way_ns = gpsti_tuner_total_ns(costs);
    for (int r = (int)GPST_RESOURCE_H2D; costs->is_first && r <= (int)GPST_RESOURCE_D2H; r++)
        way_ns -= costs->service_ns[r];
    return way_ns;
}

/* A driver locks memory for one thread after the other. By Little's law: so many keep it at that, one of them always;
   who else came would wait for all of them, and its item with it. */
GPSTI_INTERN uint32_t gpsti_tuner_filling(int64_t way_ns, int64_t slot_ns) {
    return slot_ns > 0 ? 2 + (uint32_t)((way_ns - 1) / slot_ns) : 0;
}

/* Twice what Little's law gives for a device that has an item for so long at the least. */
GPSTI_INTERN uint32_t gpsti_tuner_slots_beside(int64_t way_ns, int64_t on_device_ns) {
    const int64_t n = 2 * (way_ns / (on_device_ns > 0 ? on_device_ns : 1) + 1);
    return n < GPSTI_TUNER_LEAST_SLOTS ? GPSTI_TUNER_LEAST_SLOTS : n > 1000000 ? 1000000 : (uint32_t)n;
}

/* At best the rest of the run is the shorter in proportion; hardly so where items take turns. */
GPSTI_INTERN bool gpsti_tuner_slots_pay(const gpsti_tuner_window* window, uint32_t before, uint32_t after,
                                        bool in_turns) {
    const double rest_ns = (double)window->n_left * (double)window->wall_ns / (double)window->n_items;
    const double gain_ns = rest_ns * (in_turns ? GPSTI_TUNER_TURNS : (double)(after - before) / (double)after);
    return window->n_left == 0 || (double)window->slot_ns * (double)(after - before) * GPSTI_TUNER_HOPE <= gain_ns;
}
