/* backends/kernel_lists.c -- lists that a launch points to, copied to where they outlive it: what a kernel's `lists`
   calls. Knows no kernel. */
#include "../core/base/platform_internal.h"

#include "backend.h"

#include <string.h>

/* Where the next bytes lie in the room. */
GPSTI_PRIVATE size_t gpsti_lists_next(gpsti_lists* lists, size_t bytes) {
    const size_t at = lists->n_bytes;
    lists->n_bytes += (bytes + 7) & ~(size_t)7;
    return at;
}

GPSTI_PRIVATE void gpsti_lists_copy(const gpsti_lists* lists, size_t at, const void* data, size_t bytes) {
    memcpy(lists->room + at, data, bytes);
    memset(lists->room + at + bytes, 0, lists->n_bytes - at - bytes);
}

/* In a room the place of a list is its offset and 1, so that the first is not NULL. */
GPSTI_INTERN const void* gpsti_lists_take(gpsti_lists* lists, const void* list, size_t bytes) {
    if (!list)
        return NULL;
    const size_t at = gpsti_lists_next(lists, bytes);
    if (lists->copied)
        return lists->room + ((uintptr_t)list - 1);
    if (!lists->room)
        return list;
    gpsti_lists_copy(lists, at, list, bytes);
    return (const void*)(uintptr_t)(at + 1);
}

GPSTI_INTERN void gpsti_lists_add(gpsti_lists* lists, const void* data, size_t bytes) {
    const size_t at = gpsti_lists_next(lists, bytes);
    if (lists->room && !lists->copied)
        gpsti_lists_copy(lists, at, data, bytes);
}
