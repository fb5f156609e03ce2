/* tests/test_threads.h -- how many threads there are, and a system that gives no more. */
#ifndef GPST_TEST_THREADS_H
#define GPST_TEST_THREADS_H

#include "test.h"

#include <pthread.h>
#if defined(__linux__)
#include <dirent.h>

static inline uint32_t test_count_threads(void) {
    uint32_t n = 0;
    DIR* const dir = opendir("/proc/self/task");
    assert_non_null(dir);
    for (const struct dirent* entry = readdir(dir); entry; entry = readdir(dir))
        n += entry->d_name[0] != '.';
    closedir(dir);
    return n;
}

/* One that was joined is there for a moment yet: when there have been as many for 20 ms. */
static inline uint32_t test_settled_threads(void) {
    uint32_t n = test_count_threads();
    for (int same_ms = 0; same_ms < 20; same_ms++) {
        gpsti_sleep_ns(1000000);
        const uint32_t now = test_count_threads();
        same_ms = now == n ? same_ms : -1;
        n = now;
    }
    return n;
}
#endif

/* From now on none is to be had, or as many as before: threads with the default stack are to have one that no address
   space has room for. False: not with this libc. */
static inline bool test_refuse_threads(bool refuse) {
#if defined(__GLIBC__) && UINTPTR_MAX > 0xffffffffu
    static pthread_attr_t before;
    pthread_attr_t now;
    if (!refuse)
        return pthread_setattr_default_np(&before) == 0;
    if (pthread_getattr_default_np(&before) != 0 || pthread_getattr_default_np(&now) != 0 ||
        pthread_attr_setstacksize(&now, (size_t)1 << 47) != 0)
        return false;
    return pthread_setattr_default_np(&now) == 0;
#else
    (void)refuse;
    return false;
#endif
}

#endif
