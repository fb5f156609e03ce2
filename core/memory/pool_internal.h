/* core/memory/pool_internal.h -- what the engine asks of its pool beyond the public text. */
#ifndef GPSTI_POOL_INTERNAL_H
#define GPSTI_POOL_INTERNAL_H

#include "../base/base_internal.h"
#include "pool.h"

/* Time in which at least one thread was getting memory from the system and pinning it: what others do that is as
   slow (memory and streams of a device) is counted with it, between these two. */
GPSTI_INTERN int64_t gpsti_pool_growth_begin(gpst_pool* pool); /* now */
/* What it took this thread is added to `grown`, unless that is NULL, before the pool is seen not to grow. */
GPSTI_INTERN void gpsti_pool_growth_end(gpst_pool* pool, int64_t begin_ns, gpsti_a64* grown);
GPSTI_INTERN int64_t gpsti_pool_growth_ns(gpst_pool* pool);
/* What a run is to think that its memory has cost, made or found made. */
GPSTI_INTERN int64_t gpsti_pool_price_ns(gpst_pool* pool);
GPSTI_INTERN uint64_t gpsti_pool_n_known(gpst_pool* pool);
GPSTI_INTERN void gpsti_pool_note_known(gpst_pool* pool, int64_t known_ns);
/* From now on what it gives back stays in the context, and what is there is taken first. */
GPSTI_INTERN void gpsti_pool_set_keeps(gpst_pool* pool);
GPSTI_INTERN bool gpsti_pool_is_growing(gpst_pool* pool); /* is a thread at it now? */
/* What the calling thread has spent on it by now, of all pools: to be taken off its services. */
GPSTI_INTERN int64_t gpsti_pool_growth_here_ns(void);
GPSTI_INTERN int64_t gpsti_pool_growth_here_cpu_ns(void); /* and what it computed for that */
/* gpst_pool_acquire, which never waits; what growing takes is added to `grown`. is_filled: all of it will be written,
   so that large new memory is used once as it is made: that, too, is what it takes to make. */
GPSTI_INTERN gpst_result gpsti_pool_acquire_now(gpst_pool* pool, size_t bytes, bool is_filled, gpsti_a64* grown,
                                                gpst_buffer* out);
/* Is there a free buffer of a class that n_items would not use up if each took as many of it as there have been for
   each of n_slots? And gives one back, if there is. Others may use the pool meanwhile. */
GPSTI_INTERN bool gpsti_pool_has_spare(gpst_pool* pool, uint32_t n_items, uint32_t n_slots);
GPSTI_INTERN void gpsti_pool_drop_spare(gpst_pool* pool, uint32_t n_items, uint32_t n_slots);

#endif
