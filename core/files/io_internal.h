/* core/files/io_internal.h -- the threads that block on files for reader and writer:
   a queue in order of submission, a limit on what is in flight, and its
   clocks. Knows nothing of what a job is. */
#ifndef GPSTI_IO_INTERNAL_H
#define GPSTI_IO_INTERNAL_H

#include "../device/context_internal.h"

#define GPSTI_IO_MAX_THREADS 64

typedef struct gpsti_io_outcome {
    uint32_t n_cancels; /* set before it runs: io.n_cancels by then. When that is another, it is cancelled */
    bool failed;
    bool computed; /* it waited for nothing but a core */
    uint64_t bytes, calls;
    int64_t service_ns;
} gpsti_io_outcome;

/* What the owner's jobs are. */
typedef struct gpsti_io_job_i {
    size_t next_offset; /* of the job's `void* next`, which is ours from submit to done */
    void (*run)(void* owner, void* job, gpsti_io_outcome* outcome);
    void (*done)(void* owner, void* job,
                 bool cancelled); /* exactly once, on a thread of ours; may submit another */
} gpsti_io_job_i;

typedef struct gpsti_io_queue {
    void* first;
    void* last;
} gpsti_io_queue;

typedef struct gpsti_io_info {
    uint32_t n_in_flight;
    uint64_t jobs, failed, computed, bytes, calls, busy_ns, service_ns, cpu_ns;
} gpsti_io_info;

typedef struct gpsti_io {
    const gpsti_io_job_i* i;
    void* owner;
    const char* thread_name;
    const gpsti_pin* pin;
    gpsti_mutex mutex; /* over all below */
    gpsti_cond work, idle; /* idle: n_open is 0 */
    uint64_t n_open;       /* jobs submitted whose `done` has not returned */
    gpsti_io_queue queued, cancelled;
    gpsti_a32 n_cancels; /* read without the mutex, too */
    bool stop;
    uint32_t n_threads, n_running, n_idle;
    bool no_more; /* threads could be started */
    int64_t busy_since_ns;
    gpsti_io_info info;
    gpsti_thread threads[GPSTI_IO_MAX_THREADS];
} gpsti_io;

/* Without a thread: the first job, or gpsti_io_start, starts the first one. */
GPSTI_INTERN gpst_result gpsti_io_init(gpsti_io* io, const gpsti_io_job_i* i, void* owner,
                                       uint32_t n_in_flight, const char* thread_name, const gpsti_pin* pin);
GPSTI_INTERN gpst_result gpsti_io_start(gpsti_io* io); /* again, or retired: nothing */
/* No job will come any more: what is queued is cancelled, and threads end when they have nothing in hand. Waits for
   none of that. */
GPSTI_INTERN void gpsti_io_retire(gpsti_io* io);
/* Cancels, waits for what runs and for every `done`. Not from `done`. */
GPSTI_INTERN void gpsti_io_term(gpsti_io* io);
/* CLOSED when retired, or why there is no thread. */
GPSTI_INTERN gpst_result gpsti_io_submit(gpsti_io* io, void* job);
GPSTI_INTERN void gpsti_io_run_now(gpsti_io* io, void* job);       /* on this thread; `done` is not called */
/* Waits until every job that was submitted is done. False: the time was over. Not from `done`. */
GPSTI_INTERN bool gpsti_io_drain(gpsti_io* io, int64_t deadline_ns);
/* What is queued is not begun; what runs may look at n_cancels and end early. */
GPSTI_INTERN void gpsti_io_cancel(gpsti_io* io);
/* How many may work at once: threads are started as work comes; those above the limit are parked. On failure the
   setting stays. */
GPSTI_INTERN gpst_result gpsti_io_set_in_flight(gpsti_io* io, uint32_t n_in_flight);
/* Does the context's device model a disk? */
GPSTI_INTERN bool gpsti_io_models_disk(const gpst_context* context);
/* After a file's bytes were moved from start_ns on: waits for as long as a modelled disk would still take. Returns when
   that was. */
GPSTI_INTERN int64_t gpsti_io_wait_disk(const gpst_context* context, bool write, size_t bytes, int64_t start_ns);
GPSTI_INTERN void gpsti_io_query_info(const gpsti_io* io, gpsti_io_info* out);

#endif
