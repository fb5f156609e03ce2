/* core/machine/find_batch.h -- the batch size of a function with the highest throughput, found by trying. */
#ifndef GPSTI_FIND_BATCH_H
#define GPSTI_FIND_BATCH_H

#include "../base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

#define GPST_MAX_BATCH_ROWS 24

/* Does one batch of n_items, and returns when it is done. Negative: this size fails, such as for lack of memory. */
typedef gpst_result (*gpst_try_batch_func)(void* user_data, uint32_t n_items);

/* gpst_find_batch_desc -- what is tried; all-zero plus func is valid

   Ownership    the caller's; read during the call
   Since        0.1
*/
typedef struct gpst_find_batch_desc {
    gpst_try_batch_func func; /* required */
    void* user_data;
    uint32_t most;    /* the largest size; 0 = 64; at most 65536 */
    int64_t try_ns;   /* for each size, at least, and three batches; 0 = 100 ms */
    int64_t most_ns;  /* a batch may take; 0 = any time */
    double tolerance; /* of the throughput: among sizes that are as good the smallest is best; 0 = 0.03 */
} gpst_find_batch_desc;

/* gpst_batch_row -- what one size gave

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_batch_row {
    uint32_t n_items;
    gpst_result result; /* GPST_OK, or what the function returned */
    int64_t batch_ns;   /* the median of its batches; the first one is not counted */
    double items_per_s;
} gpst_batch_row;

/* gpst_batch_report -- the best size, and all that were tried, by size

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_batch_report {
    uint32_t best;
    double items_per_s;
    uint32_t n_rows;
    gpst_batch_row rows[GPST_MAX_BATCH_ROWS];
} gpst_batch_report;

/* gpst_find_batch -- finds the batch size of highest throughput, without failing where sizes are too large

   Sizes 1, 2, 4 and so on are tried, then those halfway to the neighbours of the best one. A size that fails ends the
   way up, and halfway below it is tried.

   Parameters   desc (in)   not NULL
                out  (out)  all-zero on failure
   Shapes       none
   Returns      GPST_OK | ARGUMENT | what the function returned for size 1 | TIMEOUT (no size is within most_ns)
   Ownership    plain values
   Threads      any; the function is called on this one
   Blocking     some tenths of a second, by desc.try_ns and the function; no allocation
   Device       none but the function's
   Source       core/machine/find_batch.c          Tests  tests/test_find_batch.c          Since 0.1
*/
GPST_API gpst_result gpst_find_batch(const gpst_find_batch_desc* desc, gpst_batch_report* out);

#ifdef __cplusplus
}
#endif
#endif
