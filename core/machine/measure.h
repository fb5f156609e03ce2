/* core/machine/measure.h -- what this machine reaches: memory, a disk, a device, each
   alone. Nothing is measured unless it is asked for. */
#ifndef GPSTI_MEASURE_H
#define GPSTI_MEASURE_H

#include "../device/context.h"

#ifdef __cplusplus
extern "C" {
#endif

/* gpst_measure_info -- rates in 10^9 bytes a second; 0 = not measured, and the reason says why

   Ownership    the caller's
   Since 0.1
*/
typedef struct gpst_measure_info {
    double memcpy_gbps;        /* one thread, between buffers beyond the caches; bytes copied */
    double read_one_gbps;      /* the file, 4 MiB a read, one at a time, past the page cache where that is possible */
    double read_many_gbps;     /* the same with n_reads at once */
    uint32_t n_reads;
    bool read_direct;          /* past the page cache; else it may have come from memory */
    char read_reason[160];     /* why not measured, or why by the page cache; else "" */
    double h2d_pinned_gbps;    /* to the device from memory of its own kind */
    double h2d_pageable_gbps;  /* and from ordinary memory */
    double launch_us;          /* the smallest operation, from submission to the host knowing of its end */
    char device_reason[160];   /* why not measured; else "" */
    int64_t duration_ns;       /* of the whole call */
} gpst_measure_info;

/* gpst_measure -- measures for as long as it is given

   Parameters   context    (in)   whose device and allocator; not NULL
                path       (in)   a regular file of 8 MiB or more to read from; NULL = no reading
                budget_ns  (in)   about how long it may take; 0 = 300 ms; each figure gets an equal part
                out        (out)  not NULL
   Shapes       none
   Returns      GPST_OK, also when something could not be measured: that has its reason in out | ARGUMENT | FORKED
                | MEMORY
   Ownership    none; up to 64 MiB on the host and on the device while it runs
   Threads      any; not while a pipeline runs, which would disturb both
   Blocking     about budget_ns; one operation may overrun its part
   Device       copies and a fill on a stream of its own, on the context's device
   Source       core/machine/measure.c          Tests  tests/test_measure.c          Since 0.1
*/
GPST_API gpst_result gpst_measure(gpst_context* context, const char* path, int64_t budget_ns,
                                  gpst_measure_info* out);

#ifdef __cplusplus
}
#endif
#endif
