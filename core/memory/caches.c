/* core/memory/caches.c -- those of a context's users who hold memory that they can do without: asked for it before
   anybody is refused. */
#include "../base/platform_internal.h"

#include "memory_internal.h"

GPSTI_PRIVATE void gpsti_caches_wake(gpsti_memory* memory) {
    if (memory->n_waiters)
        gpsti_cond_broadcast(&memory->changed);
}

GPSTI_INTERN void gpsti_caches_add(gpsti_memory* memory, gpsti_memory_cache* cache) {
    gpsti_mutex_lock(&memory->mutex);
    cache->next = memory->caches;
    memory->caches = cache;
    gpsti_mutex_unlock(&memory->mutex);
}

GPSTI_INTERN void gpsti_caches_remove(gpsti_memory* memory, gpsti_memory_cache* cache) {
    gpsti_memory_cache** at = &memory->caches;
    gpsti_mutex_lock(&memory->mutex);
    while (cache->n_calls > 0) /* nobody leaves the list while it is called: its next is still needed */
        gpsti_memory_wait(memory, GPST_FOREVER);
    while (*at && *at != cache)
        at = &(*at)->next;
    if (*at)
        *at = cache->next;
    gpsti_mutex_unlock(&memory->mutex);
}

GPSTI_INTERN bool gpsti_caches_shrink(gpsti_memory* memory) {
    bool gave = false;
    for (gpsti_memory_cache* cache = memory->caches; cache && !gave; cache = cache->next) {
        cache->n_calls++;
        gpsti_mutex_unlock(&memory->mutex);
        gave = cache->shrink(cache->user_data);
        gpsti_mutex_lock(&memory->mutex);
        cache->n_calls--;
        gpsti_caches_wake(memory); /* who wants to remove it waits */
    }
    return gave;
}

GPSTI_INTERN void gpsti_caches_tell(gpsti_memory* memory) {
    gpsti_mutex_lock(&memory->mutex);
    gpsti_caches_wake(memory);
    gpsti_mutex_unlock(&memory->mutex);
}
