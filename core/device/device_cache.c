/* core/device/device_cache.c -- streams and events that were destroyed, for the next gpst_stream_create or
   gpst_event_create: a driver needs about 50 us to make a stream. */
#include "../base/platform_internal.h"

#include "device_internal.h"

/* An operation of a device that is not asynchronous is done when its call returns: its streams cost nothing. */
GPSTI_PRIVATE bool gpsti_device_caches(const gpst_device* device) {
    return device->cache.on && device->info.asynchronous && gpsti_a32_load(&device->lost) == 0;
}

GPSTI_INTERN gpst_result gpsti_device_cache_init(gpst_device* device) {
    GPSTI_TRY(gpsti_mutex_init(&device->cache.mutex));
    device->cache.on = true;
    device->cache.lists[GPSTI_CACHED_STREAMS].most = GPSTI_CACHE_MOST / 4;
    device->cache.lists[GPSTI_CACHED_EVENTS].most = GPSTI_CACHE_MOST;
    return GPST_OK;
}

GPSTI_PRIVATE void* gpsti_device_cache_pop(gpst_device* device, gpsti_cached kind) {
    gpsti_cached_list* const list = &device->cache.lists[kind];
    void* object = NULL;
    gpsti_mutex_lock(&device->cache.mutex);
    if (list->n > 0)
        object = list->objects[--list->n]; /* the one used last */
    gpsti_mutex_unlock(&device->cache.mutex);
    if (object)
        (void)gpsti_a64_add(&device->n_objects, 1);
    return object;
}

GPSTI_INTERN void* gpsti_device_cache_take(gpst_device* device, gpsti_cached kind) {
    return gpsti_device_caches(device) ? gpsti_device_cache_pop(device, kind) : NULL;
}

GPSTI_INTERN bool gpsti_device_cache_put(gpst_device* device, gpsti_cached kind, void* object) {
    gpsti_cached_list* const list = &device->cache.lists[kind];
    if (!gpsti_device_caches(device))
        return false;
    gpsti_mutex_lock(&device->cache.mutex);
    const bool stays = list->n < list->most;
    if (stays)
        list->objects[list->n++] = object;
    gpsti_mutex_unlock(&device->cache.mutex);
    if (stays)
        (void)gpsti_a64_add(&device->n_objects, UINT64_MAX);
    return stays;
}

/* The lock is not held while a driver is at work. */
GPSTI_INTERN void gpsti_device_cache_clear(gpst_device* device) {
    void* object = NULL;
    if (!device->cache.on)
        return;
    while ((object = gpsti_device_cache_pop(device, GPSTI_CACHED_STREAMS)) != NULL)
        gpsti_stream_free((gpst_stream*)object);
    while ((object = gpsti_device_cache_pop(device, GPSTI_CACHED_EVENTS)) != NULL)
        gpsti_event_free((gpst_event*)object);
}

GPSTI_INTERN void gpsti_device_cache_term(gpst_device* device) {
    gpsti_device_cache_clear(device);
    if (device->cache.on)
        gpsti_mutex_term(&device->cache.mutex);
    device->cache.on = false;
}
