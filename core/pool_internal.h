/* core/pool_internal.h -- what the engine asks of its pool beyond the public text. */
#ifndef GPSTI_POOL_INTERNAL_H
#define GPSTI_POOL_INTERNAL_H

#include "base_internal.h"
#include "pool.h"

/* Time that went into getting memory from the system and pinning it, over all threads. */
GPSTI_INTERN int64_t gpsti_pool_growth_ns(gpst_pool* pool);
GPSTI_INTERN bool gpsti_pool_is_growing(gpst_pool* pool); /* does a thread allocate now? */

#endif
