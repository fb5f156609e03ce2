/* core/machine/find_batch_internal.h -- the search, by any clock. */
#ifndef GPSTI_FIND_BATCH_INTERNAL_H
#define GPSTI_FIND_BATCH_INTERNAL_H

#include "../base/base_internal.h"
#include "../base/os_internal.h"
#include "find_batch.h"

typedef struct gpsti_find_batch {
    gpst_find_batch_desc desc; /* defaults resolved */
    int64_t (*now_ns)(void* clock);
    void* clock;
} gpsti_find_batch;

/* out is all-zero before. */
GPSTI_INTERN gpst_result gpsti_find_batch_run(const gpsti_find_batch* self, gpst_batch_report* out);

#endif
