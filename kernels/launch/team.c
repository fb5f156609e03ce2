/* kernels/launch/team.c -- how many threads OpenMP may be asked for. Its runtimes end the process when they cannot
   make one, which no library may do to its host: so the threads are made by way of trial first. */
#include "../../core/base/platform_internal.h"

#include "launch_internal.h"

#if GPSTI_OPENMP
#include <omp.h>
#include <stdlib.h>
#include <string.h>

/* ---- the size of their stacks ------------------------------------------------------------------ */

/* "4M", " 512 k ", "1024" (KiB); 0 = not such a text. */
GPSTI_PRIVATE size_t gpsti_team_parse_bytes(const char* text) {
    static const char units[] = "bkmg";
    char* end = NULL;
    if (!text)
        return 0;
    text += strspn(text, " \t");
    if (*text < '0' || *text > '9')
        return 0;
    const unsigned long long number = strtoull(text, &end, 10);
    end += strspn(end, " \t");
    unsigned shift = 10;
    if (*end) {
        const char* const unit = strchr(units, *end | 0x20);
        if (!unit || end[1 + strspn(end + 1, " \t")])
            return 0;
        shift = 10 * (unsigned)(unit - units);
    }
    return number > (SIZE_MAX / 2) >> shift ? 0 : (size_t)number << shift;
}

/* 0 = the system's. Each runtime has its own name beside OpenMP's: the largest is tried. */
GPSTI_PRIVATE size_t gpsti_team_stack_bytes(void) {
    static const char* const names[] = {"OMP_STACKSIZE", "GOMP_STACKSIZE", "KMP_STACKSIZE"};
    size_t most = 0;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t bytes = gpsti_team_parse_bytes(getenv(names[i]));
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ---- trial --------------------------------------------------------------------------------------- */

#define GPSTI_TEAM_MOST 4096
#define GPSTI_TEAM_SPARE 2 /* threads that others may start between the trial and the runtime's turn */

/* Over trial and making, so that no two callers count on the same threads. */
static gpsti_a32 gpsti_team_taken;

GPSTI_PRIVATE void gpsti_team_lock(void) {
    while (gpsti_a32_exchange(&gpsti_team_taken, 1) != 0)
        gpsti_futex_wait(&gpsti_team_taken, 1, GPST_FOREVER);
}

GPSTI_PRIVATE void gpsti_team_unlock(void) {
    gpsti_a32_store(&gpsti_team_taken, 0);
    gpsti_futex_wake(&gpsti_team_taken, 1);
}

/* A region with nothing in it: the runtime makes its threads now, and keeps them. */
GPSTI_PRIVATE int gpsti_team_make(int n) {
    int made = 1;
    _Pragma("omp parallel num_threads(n) shared(made)")
    {
        _Pragma("omp master")
        made = omp_get_num_threads();
    }
    return made;
}

/* A runtime keeps the threads of each thread's last region. What it gave for what was asked last; 0: nothing was, and a
   first question may have the runtime take memory. */
static GPSTI_TLS int gpsti_team_asked = 0, gpsti_team_given = 1;

#if _OPENMP >= 200805
/* Within regions that have threads, those of inner ones are made anew each time. */
GPSTI_PRIVATE bool gpsti_team_keeps(void) { return omp_get_active_level() == 0 && !omp_get_dynamic(); }
GPSTI_PRIVATE bool gpsti_team_is_inside(void) { return omp_get_active_level() >= omp_get_max_active_levels(); }
GPSTI_PRIVATE int gpsti_team_limit(void) { return omp_get_thread_limit(); }
#else
GPSTI_PRIVATE bool gpsti_team_keeps(void) { return !omp_in_parallel() && !omp_get_dynamic(); }
GPSTI_PRIVATE bool gpsti_team_is_inside(void) { return omp_in_parallel() && !omp_get_nested(); }
GPSTI_PRIVATE int gpsti_team_limit(void) { return GPSTI_TEAM_MOST; }
#endif

GPSTI_PRIVATE int gpsti_team_wanted(uint32_t n_threads) {
    if (n_threads == 0)
        return omp_get_max_threads();
    return (int)(n_threads < GPSTI_TEAM_MOST ? n_threads : GPSTI_TEAM_MOST);
}

/* Those that the thread has by now need no trial. Locked. */
GPSTI_PRIVATE int gpsti_team_try(int n, int n_there) {
    const uint32_t n_more = (uint32_t)(n - n_there);
    const int most = (int)gpsti_threads_try(n_more + GPSTI_TEAM_SPARE, gpsti_team_stack_bytes());
    return most > GPSTI_TEAM_SPARE ? n_there + most - GPSTI_TEAM_SPARE : n_there;
}

/* Locked. */
GPSTI_PRIVATE int gpsti_team_grow(uint32_t n_threads) {
    const int n = gpsti_team_wanted(n_threads), limit = gpsti_team_limit(), most = n < limit ? n : limit;
    if (most <= 1 || gpsti_team_is_inside())
        return 1;
    if (!gpsti_team_keeps())
        return gpsti_team_try(most, 1);
    if (most > gpsti_team_given)
        gpsti_team_given = gpsti_team_make(gpsti_team_try(most, gpsti_team_given));
    else
        gpsti_team_given = most;
    gpsti_team_asked = n;
    return gpsti_team_given;
}

GPSTI_INTERN int gpsti_team_size(uint32_t n_threads) {
    if (n_threads == 1)
        return 1;
    if (gpsti_team_asked > 0 && gpsti_team_wanted(n_threads) == gpsti_team_asked && gpsti_team_keeps())
        return gpsti_team_given;
    gpsti_team_lock();
    const int n = gpsti_team_grow(n_threads);
    gpsti_team_unlock();
    return n;
}
#else
GPSTI_INTERN int gpsti_team_size(uint32_t n_threads) {
    (void)n_threads;
    return 1;
}
#endif
