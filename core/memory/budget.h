/* core/memory/budget.h -- how much memory a context may use, how much it uses and for what, and how much of the device
   others use. Lends nothing. */
#ifndef GPSTI_BUDGET_H
#define GPSTI_BUDGET_H

#include "../device/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpst_memory_account -- frame memory of a context, of the host or of the device, as it was really taken

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_memory_account {
    uint64_t budget_bytes;  /* max_host_bytes or max_device_bytes */
    uint64_t charged_bytes; /* now: the three below, and what is just being made or freed */
    uint64_t peak_bytes;    /* charged at most, since the context was made */
    uint64_t lent_bytes;
    uint64_t free_bytes; /* of pools, which lend it again */
    uint64_t kept_bytes; /* free and no pool's */
} gpst_memory_account;

/* gpst_memory_use -- a context's memory and the device's

   Ownership    the caller's
   Since 0.1
*/
struct gpst_memory_use {
    gpst_memory_account host, device;
    uint64_t device_total_bytes, device_free_bytes; /* of the device, by all processes, now; 0: it does not say */
    /* What is used there and not charged: other processes', other contexts' and the application's own, the driver's.
       Memory that a driver holds back for itself counts, too. */
    uint64_t device_others_bytes;
    double alert_part, target_part;  /* gpst_memory_marks, resolved */
    bool above_budget, above_device; /* an alert went off, and use has not fallen to the target since */
    uint64_t n_alerts;
};

/* gpst_context_query_memory -- budgets, what is used of them, and of the device by whom

   Parameters   context  (in)   NULL fills with zeroes
                out      (out)  NULL is a no-op
   Shapes       none
   Returns      none
   Ownership    none
   Threads      any; also from a gpst_memory_marks.alert
   Blocking     asks the driver, which may take milliseconds; in a forked child all is zero
   Device       none is changed
   Source       core/memory/budget.c          Tests  tests/test_budget.c          Since 0.1
*/
GPST_API void gpst_context_query_memory(const gpst_context* context, gpst_memory_use* out);

/* gpst_context_dump_memory -- all of a context's frame memory as text, for a log or a report

   Lines that end with "\n": the account of the host and of the device, each size with how many are lent and free, the
   device as a whole, and the tags.

   Parameters   context    (in)   NULL: the text is empty
                out        (out)  cut to what fits, and always terminated; NULL with max_bytes 0
                max_bytes  (in)   that out has
   Shapes       char[max_bytes]
   Returns      bytes of the whole text, without the terminating 0
   Ownership    none
   Threads      any; also from a gpst_memory_marks.alert
   Blocking     as gpst_context_query_memory
   Device       none is changed
   Source       core/memory/dump.c          Tests  tests/test_budget.c          Since 0.1
*/
GPST_API size_t gpst_context_dump_memory(const gpst_context* context, char* out, size_t max_bytes);

/* gpst_tag_info -- what is on loan under one tag, as charged against the budgets of the host and of the device

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_tag_info {
    char tag[24];
    uint64_t host_bytes, host_peak_bytes; /* now, and at most since the context was made */
    uint64_t device_bytes, device_peak_bytes;
} gpst_tag_info;

/* gpst_context_query_tags -- what a context's frame memory is used for

   Rings ("ring"), gpst_memory_create ("memory") and pools (gpst_pool_desc.tag) have tags of their own; what has none,
   and what comes when there are 16, is "other".

   Parameters   context  (in)   NULL: there are none
                out      (out)  max rows, in the order in which the tags came; NULL with max 0
                max      (in)   rows that out has
                n        (out)  rows that there are, which may be more than max; NULL makes the call a no-op
   Shapes       out[max]
   Returns      none
   Ownership    none
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/memory/budget.c          Tests  tests/test_memory.c          Since 0.1
*/
GPST_API void gpst_context_query_tags(const gpst_context* context, gpst_tag_info* out, uint32_t max, uint32_t* n);

#ifdef __cplusplus
}
#endif
#endif
