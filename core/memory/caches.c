/* core/memory/caches.c -- those of a context's users who hold memory that they can do without: asked for it before
   anybody is refused. */
#include "../base/platform_internal.h"

#include "memory_internal.h"

GPSTI_PRIVATE void gpsti_caches_wake(gpsti_memory* memory) {
    if (memory->n_waiters)
        gpsti_cond_broadcast(&memory->changed);
}

GPSTI_PRIVATE void gpsti_caches_sleep(gpsti_memory* memory, int64_t deadline_ns) {
    memory->n_waiters++;
    (void)gpsti_cond_wait_until(&memory->changed, &memory->mutex, deadline_ns);
    memory->n_waiters--;
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
        gpsti_caches_sleep(memory, GPST_FOREVER);
    while (*at && *at != cache)
        at = &(*at)->next;
    if (*at)
        *at = cache->next;
    gpsti_mutex_unlock(&memory->mutex);
}

/* True of one of them. Lets the mutex go while they are called. */
GPSTI_PRIVATE bool gpsti_caches_ask(gpsti_memory* memory, bool shrink) {
    bool yes = false;
    for (gpsti_memory_cache* cache = memory->caches; cache && !yes; cache = cache->next) {
        cache->n_calls++;
        gpsti_mutex_unlock(&memory->mutex);
        yes = shrink ? cache->shrink(cache->user_data) : cache->is_loading(cache->user_data);
        gpsti_mutex_lock(&memory->mutex);
        cache->n_calls--;
        gpsti_caches_wake(memory); /* who wants to remove it waits */
    }
    return yes;
}

GPSTI_INTERN bool gpsti_caches_shrink(gpsti_memory* memory) {
    const uint64_t clock = memory->clock, n_freed = memory->n_freed;
    const bool gave = gpsti_caches_ask(memory, true);
    return gave || memory->clock != clock || memory->n_freed != n_freed; /* or others did, while nobody waited */
}

GPSTI_INTERN bool gpsti_caches_are_loading(gpsti_memory* memory) { return gpsti_caches_ask(memory, false); }

GPSTI_INTERN bool gpsti_caches_wait(gpsti_memory* memory, int64_t deadline_ns) {
    gpsti_mutex_lock(&memory->mutex);
    const bool loading = gpsti_caches_are_loading(memory);
    if (loading)
        gpsti_caches_sleep(memory, deadline_ns);
    gpsti_mutex_unlock(&memory->mutex);
    return loading;
}

GPSTI_INTERN void gpsti_caches_tell(gpsti_memory* memory) {
    gpsti_mutex_lock(&memory->mutex);
    memory->clock++;
    gpsti_caches_wake(memory);
    gpsti_mutex_unlock(&memory->mutex);
}
