/* core/memory/pool_internal.h -- what the engine asks of its pool beyond the public text. */
#ifndef GPSTI_POOL_INTERNAL_H
#define GPSTI_POOL_INTERNAL_H

#include "memory_internal.h"

/* gpst_pool_acquire, which never waits. is_filled: all of it will be written. */
GPSTI_INTERN gpst_result gpsti_pool_acquire_now(gpst_pool* pool, size_t bytes, bool is_filled, gpst_buffer* out);

#endif
