/* core/stats/profile.h -- what a run's clocks add up to: service times per stage,
   demands per resource, the bound they set, and the verdict in words. */
#ifndef GPSTI_PROFILE_H
#define GPSTI_PROFILE_H

#include "../base/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum gpst_resource {
    GPST_RESOURCE_NONE = 0, /* a stage that only waits */
    GPST_RESOURCE_DISK_IN = 1,
    GPST_RESOURCE_CPU = 2,
    GPST_RESOURCE_H2D = 3,
    GPST_RESOURCE_GPU = 4,
    GPST_RESOURCE_D2H = 5,
    GPST_RESOURCE_DISK_OUT = 6,
    GPST_RESOURCE_JPEG = 7, /* the device's own JPEG decoder */
    GPST_RESOURCE_COUNT = 8
} gpst_resource;

/* gpst_stage_stats -- what one stage did in one run

   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_stage_stats {
    char name[32];
    gpst_resource resource;
    uint64_t count; /* services: one an item, or one an output */
    uint64_t timed; /* of them, those whose time was taken: of a device's that are brief, one soon after the
                               other, of items of one size, some in a row; the others are taken to be like these */
    uint64_t failed;
    uint64_t bytes;  /* moved by this stage */
    int64_t busy_ns; /* summed service time; over 1 thread it may exceed the wall */
    int64_t wait_ns; /* summed time from runnable to running */
    int64_t cpu_ns;  /* thread CPU time, scaled up from the services that were sampled */
    int64_t p50_ns, p90_ns, p99_ns, p999_ns, max_ns; /* of the services that were timed; within 1/16 of what is true */
    double occupancy;                                /* mean number of services running, over the wall time */
    uint64_t n_batches;      /* of a stage with batch_most; of a device group in the row of its first stage */
    uint64_t n_late, n_shed; /* items dropped in front of it for their deadlines: too late themselves; or for others */
} gpst_stage_stats;

/* gpst_verdict -- which resource bounds a run, how busy each is, and what fixing it could give at most

   Formula      wall: of the run, and start_ns and sync_ns of the job around it; demand of r: its busy time (CPU: thread
                CPU time, the source's calls and the ends of items too, / cores allowed; disk_in: without the part of
                reads' time that computes, as copies out of the page cache do; disk_out: writes, giving files their
                names, the last sync; jpeg: while the device's decoder has a batch); period: wall / items;
                bound: the largest demand + one item's fill and drain; cap of r: wall / what it is at least without r:
                start and last sync, and of the run the largest other demand, a stage at its concurrency or the source
                at one call at a time, one item's way / slots, and where cores are idle all that callbacks take /
                workers; in a plain loop the run less r's own time. What callbacks do not compute is a wait that no
                resource has, unless cores are used up
   Ownership    plain values
   Since        0.1
*/
typedef struct gpst_verdict {
    gpst_resource bound;               /* the largest demand; NONE = latency-bound (nothing above 70 %), or
                                          input-bound: pushed inputs came no faster */
    double efficiency;                 /* bound time / measured time, 0..1 */
    double bound_s;                    /* n_items * largest demand + one item's fill and drain */
    double share[GPST_RESOURCE_COUNT]; /* demand / measured period: how busy, 0..1 */
    double others; /* share of the cores that other programs took meanwhile, 0..1; 0 = none, or not known: runs
                               below half a second, a process that may not run on every core, no Linux. Where they and
                               the run together had more than 70 % of the cores the run is bound by them: bound is
                                  CPU */
    double cap[GPST_RESOURCE_COUNT]; /* what removing all cost of it could give at most, >= 1 */
    char text[384];
} gpst_verdict;

/* gpst_resource_name -- the resource's name in reports

   Parameters   resource (in)  any value
   Shapes       none
   Returns      "none", "disk_in", "cpu", "h2d", "gpu", "d2h", "disk_out", "jpeg"; "unknown" for any other value
   Ownership    static text; do not free
   Threads      any
   Blocking     never; no allocation
   Device       none
   Source       core/stats/profile.c          Tests  tests/test_profile.c          Since 0.1
*/
GPST_API const char* gpst_resource_name(gpst_resource resource);

#ifdef __cplusplus
}
#endif
#endif
