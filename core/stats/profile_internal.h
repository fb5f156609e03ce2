/* core/stats/profile_internal.h -- the clocks behind profile.h: histograms, stage
   clocks, busy time of a resource, and the arithmetic of the verdict. */
#ifndef GPSTI_PROFILE_INTERNAL_H
#define GPSTI_PROFILE_INTERNAL_H

#include "../base/base_internal.h"
#include "profile.h"

/* Log-linear: 16 buckets an octave, so a percentile is within 1/16 of the true value. */
#define GPSTI_HISTOGRAM_SUB 16
#define GPSTI_HISTOGRAM_BUCKETS (GPSTI_HISTOGRAM_SUB * 44)

typedef struct gpsti_histogram {
    uint64_t count;
    int64_t max_ns;
    uint32_t buckets[GPSTI_HISTOGRAM_BUCKETS];
} gpsti_histogram;

GPSTI_INTERN void gpsti_histogram_add(gpsti_histogram* histogram, int64_t value_ns);
/* The upper edge of the bucket that holds the given fraction (0..1] of all values; 0 when there are none. */
GPSTI_INTERN int64_t gpsti_histogram_quantile(const gpsti_histogram* histogram, double fraction);

/* Takes a service's time into about how long they take. */
GPSTI_INTERN void gpsti_work_average(int64_t* seen_ns, int64_t busy_ns);

/* One stage's clock. Not thread-safe: its owner has a lock. */
typedef struct gpsti_clock {
    char name[32];
    gpst_resource resource;
    uint64_t count, failed, bytes;
    int64_t busy_ns, wait_ns;
    int64_t usual_ns;                /* a service, about, of the latest ones that were timed */
    uint64_t cpu_samples;
    int64_t cpu_ns, cpu_busy_ns;     /* CPU time of the sampled services, and their service time */
    gpsti_histogram histogram;
} gpsti_clock;

GPSTI_INTERN void gpsti_clock_add(gpsti_clock* clock, int64_t busy_ns, int64_t wait_ns, uint64_t bytes, bool failed);
/* A service that was not timed counts as an average one, and in no percentile. */
GPSTI_INTERN void gpsti_clock_add_untimed(gpsti_clock* clock, int64_t wait_ns, uint64_t bytes);
GPSTI_INTERN void gpsti_clock_add_cpu(gpsti_clock* clock, int64_t cpu_ns, int64_t busy_ns);
GPSTI_INTERN int64_t gpsti_clock_cpu_ns(const gpsti_clock* clock); /* scaled up to every service */
GPSTI_INTERN void gpsti_clock_report(const gpsti_clock* clock, int64_t wall_ns, gpst_stage_stats* out);

/* Time during which a resource had at least one interval on it. Intervals arrive about in order: the last disjoint
   stretches are kept, and what comes earlier than all of them is taken as counted. */
#define GPSTI_BUSY_STRETCHES 16
typedef struct gpsti_stretch {
    int64_t start_ns, end_ns;
} gpsti_stretch;
typedef struct gpsti_busy {
    int64_t busy_ns;
    int64_t closed_ns; /* up to here nothing is added any more */
    uint32_t n_stretches;
    gpsti_stretch stretches[GPSTI_BUSY_STRETCHES]; /* by time */
} gpsti_busy;
GPSTI_INTERN void gpsti_busy_add(gpsti_busy* busy, int64_t start_ns, int64_t end_ns);
/* Nothing before that time is added any more. */
GPSTI_INTERN void gpsti_busy_close(gpsti_busy* busy, int64_t end_ns);

typedef struct gpsti_verdict_input {
    uint64_t n_items;
    int64_t wall_ns;
    int64_t start_ns, sync_ns;                /* of the job around the run, beside wall_ns: before it, and behind it */
    int64_t demand_ns[GPST_RESOURCE_COUNT];   /* of the whole run */
    double others;                            /* share of the cores that other programs took */
    int64_t alone_ns;                         /* one item's way through all stages with nothing in its way */
    int64_t alone_on_ns[GPST_RESOURCE_COUNT]; /* what of it is spent on each resource */
    uint32_t n_slots;                         /* items in flight at most; 0 = any number */
    bool serial;                              /* one item after the other: what is saved on one is saved on all */
    int64_t serial_cpu_ns;                    /* serial: how long the loop computed */
    bool pushed;                              /* inputs come when they come */
    int64_t full_ns;                          /* pushed: every slot was in use */
    /* The stage that is nearest to what its own concurrency allows: busy time over concurrency, and the part of it
       that each resource has a share in. "" = every stage may run any number of times at once. on_workers: of all that
       workers do, which wait in this one for longest, over their number. */
    const char* stage;
    bool on_workers;
    int64_t stage_ns, stage_on_ns[GPST_RESOURCE_COUNT];
} gpsti_verdict_input;
GPSTI_INTERN void gpsti_verdict_make(const gpsti_verdict_input* input, gpst_verdict* out);

#endif
