/* core/tuning/shortage.c -- the steps down from too little device memory, and back up. Pure: counts, runs nothing. */
#include "../base/platform_internal.h"

#include "shortage_internal.h"

#define GPSTI_SHORTAGE_PATIENCE 32        /* submissions that find memory before a limit is raised */
#define GPSTI_SHORTAGE_PATIENCE_MOST 4096 /* each failure after a raise doubles it, up to this */
#define GPSTI_SHORTAGE_TO_CPU_MOST 64     /* items that go to the CPU before the device is tried again */

GPSTI_INTERN uint32_t gpsti_shortage_limit(uint32_t own, uint32_t limit) {
    return limit > 0 && limit < own ? limit : own;
}

GPSTI_PRIVATE void gpsti_shortage_wait_longer(gpsti_shortage* shortage) {
    if (shortage->patience == 0)
        shortage->patience = GPSTI_SHORTAGE_PATIENCE;
    else if (shortage->counts[GPSTI_RELIEF_BACK] > 0 && shortage->patience < GPSTI_SHORTAGE_PATIENCE_MOST)
        shortage->patience *= 2;
    shortage->n_good = 0;
}

GPSTI_INTERN gpsti_relief gpsti_shortage_fail(gpsti_shortage* shortage, uint32_t n_items, uint32_t n_in_flight,
                                              bool others_go_on) {
    gpsti_relief relief = GPSTI_RELIEF_CPU;
    gpsti_shortage_wait_longer(shortage);
    if (n_items > 1) {
        relief = GPSTI_RELIEF_BATCH;
        shortage->batch_most = gpsti_shortage_limit(n_items / 2, shortage->batch_most);
    } else if (others_go_on) {
        relief = GPSTI_RELIEF_SLOTS;
        shortage->slots_most = gpsti_shortage_limit(n_in_flight > 1 ? n_in_flight - 1 : 1, shortage->slots_most);
    } else {
        shortage->n_to_cpu = shortage->n_to_cpu == 0                              ? 1
                             : shortage->n_to_cpu < GPSTI_SHORTAGE_TO_CPU_MOST / 2 ? 2 * shortage->n_to_cpu
                                                                                  : GPSTI_SHORTAGE_TO_CPU_MOST;
        shortage->cpu_left = shortage->n_to_cpu - 1;
    }
    shortage->counts[relief]++;
    return relief;
}

/* Slots first: the limit of batches was reached before that of slots was. */
GPSTI_INTERN bool gpsti_shortage_succeed(gpsti_shortage* shortage, uint32_t n_slots, uint32_t batch) {
    shortage->n_to_cpu = 0;
    if ((shortage->slots_most == 0 && shortage->batch_most == 0) || ++shortage->n_good < shortage->patience)
        return false;
    if (shortage->slots_most > 0)
        shortage->slots_most = shortage->slots_most + 1 < n_slots ? shortage->slots_most + 1 : 0;
    else
        shortage->batch_most = 2 * shortage->batch_most < batch ? 2 * shortage->batch_most : 0;
    shortage->n_good = 0;
    shortage->counts[GPSTI_RELIEF_BACK]++;
    return true;
}

GPSTI_INTERN bool gpsti_shortage_skips_device(gpsti_shortage* shortage) {
    if (shortage->cpu_left == 0)
        return false;
    shortage->cpu_left--;
    return true;
}
