/* core/items/counts_internal.h -- what batches and items are counted as: clocks of stages, busy times of resources, how
   items ended, bytes. Locked, all of it. */
#ifndef GPSTI_COUNTS_INTERNAL_H
#define GPSTI_COUNTS_INTERNAL_H

#include "../stats/profile_internal.h"
#include "../stats/timing_internal.h"
#include "item_internal.h"

/* How items ended. */
typedef struct gpsti_item_counts {
    uint64_t ok, failed, skipped, dropped, cancelled;
} gpsti_item_counts;

/* Copies of a set over the link, of pictures. */
typedef struct gpsti_copy_counts {
    uint64_t n, bytes;
} gpsti_copy_counts;

typedef struct gpsti_counts {
    gpsti_clock* clocks;
    uint32_t n_clocks;
    gpsti_clock finish_clock, submit_clock; /* what no stage's clock has: ends of items, calls to a device; */
    gpsti_clock source_clock;          /* and the source, which knows no percentiles: an item it gave is a service */
    int64_t own_read_ns, own_write_ns; /* reads and writes on workers */
    gpsti_timing timing;
    gpsti_busy busy[GPST_RESOURCE_COUNT]; /* H2D, GPU, D2H, DISK_OUT; DISK_IN but for the reader's */
    gpsti_copy_counts copies_up[GPST_MAX_SETS], copies_down[GPST_MAX_SETS];
    gpsti_histogram latency;
    gpsti_item_counts items;
    uint64_t device_fallbacks;               /* items that the cores did for the device, */
    char fallback_reason[GPST_REASON_BYTES]; /* the first for this reason */
    uint64_t items_refused;                  /* of those dropped: the ones that never got an index */
    uint64_t n_submissions, n_submitted;     /* to the device, of so many items */
    uint64_t n_copied, n_in_place;           /* items of a device with memory of its own: how they came there */
    uint64_t n_taken_apart;                  /* batches that failed, the latest for this reason */
    char apart_reason[GPST_REASON_BYTES];
    uint64_t bytes_read, bytes_written;
    int64_t start_ns, end_ns, commit_ns;  /* commit_ns: of DISK_OUT's busy time, files got their names */
    int64_t kernel_cpu_ns;                /* of the other threads inside kernels */
    int64_t source_ns;                    /* a call of the source takes, about */
    gpsti_core_use use_start, use_end;    /* of the cores, when the run began and when it ended */
    int64_t job_begun_ns, job_ended_ns;   /* of the job that the run is a part of; 0 = there is none, or it goes on */
    gpst_result first_failed;             /* of the first item that failed, */
    char first_reason[GPST_REASON_BYTES]; /* and its name, stage and sentence */
    bool frozen;
    uint64_t frozen_allocations, frozen_growths;
} gpsti_counts;

/* One run of a step for an item or a part, timed. */
struct gpsti_service {
    const gpsti_step* step;
    int64_t start_ns, end_ns, wait_ns;
    int64_t cpu_ns;     /* of this thread; -1: not sampled */
    uint64_t bytes;     /* of a file */
    uint32_t n_threads; /* inside a kernel */
    bool failed;
};

#define GPSTI_RUN_SERVICES 8

/* A thread at work on a batch, and its services that are not counted yet. */
typedef struct gpsti_run {
    gpst_pipeline* pipeline;
    uint32_t worker_index;
    uint32_t n;
    gpsti_service services[GPSTI_RUN_SERVICES];
} gpsti_run;

/* The lock, which counts them. */
GPSTI_INTERN gpsti_locked gpsti_run_lock(gpsti_run* run);
GPSTI_INTERN void gpsti_run_keep(gpsti_run* run, const gpsti_service* service); /* not locked */

GPSTI_INTERN void gpsti_service_begin(gpsti_service* service, const gpsti_batch* batch); /* of its step; not locked */
GPSTI_INTERN void gpsti_service_end(gpsti_service* service, gpst_result result);         /* not locked */
GPSTI_INTERN void gpsti_service_share(gpsti_service* service, uint32_t n_items); /* becomes one item's part of it */
/* A file that threads of their own have read or written. */
GPSTI_INTERN void gpsti_count_read(gpsti_item* item);
GPSTI_INTERN void gpsti_count_write(gpst_pipeline* pipeline, const gpsti_write* write, int64_t ready_ns);
GPSTI_INTERN void gpsti_count_source(gpst_pipeline* pipeline, uint64_t n_items, int64_t busy_ns, int64_t cpu_ns);
GPSTI_INTERN void gpsti_count_copy(gpst_pipeline* pipeline, uint32_t set, bool up, uint32_t n_pictures, uint64_t bytes);
GPSTI_INTERN void gpsti_count_item(gpsti_item* item);                     /* it has ended */
GPSTI_INTERN uint64_t gpsti_count_growths(const gpst_pipeline* pipeline); /* allocations of frame memory so far */
/* Of a stage's clock; of reads and writes those on workers, whose threads' CPU time nobody else has. */
GPSTI_INTERN int64_t gpsti_count_clock_cpu_ns(const gpst_pipeline* pipeline, const gpsti_clock* clock);
GPSTI_INTERN int64_t gpsti_count_between_cpu_ns(const gpst_pipeline* pipeline); /* of what is no stage's */
GPSTI_INTERN int64_t gpsti_count_cpu_ns(const gpst_pipeline* pipeline); /* thread CPU time of everything so far */
/* Busy times of all resources so far. */
GPSTI_INTERN void gpsti_count_busy(const gpst_pipeline* pipeline, int64_t busy_ns[GPST_RESOURCE_COUNT]);

#endif
