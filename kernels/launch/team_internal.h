/* kernels/launch/team_internal.h -- the threads inside a kernel: every parallel region asks here how many it may
   have. Where
   GPSTI_OPENMP is 0 there is none. */
#ifndef GPSTI_TEAM_INTERNAL_H
#define GPSTI_TEAM_INTERNAL_H

#include "../../core/base/os_internal.h"

#if defined(_OPENMP) && !defined(GPUSTAGE_NO_OPENMP)
#define GPSTI_OPENMP 1
#else
#define GPSTI_OPENMP 0
#endif

/* n_threads as the public calls have it: 0 = all. What num_threads() may be given on this thread, now: 1 where the
   system gives no threads, or the caller is in a region of its own that has them all. */
GPSTI_INTERN int gpsti_team_size(uint32_t n_threads);

#endif
