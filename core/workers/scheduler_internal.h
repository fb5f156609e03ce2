/* core/workers/scheduler_internal.h -- the workers of a context and the one lock of its
   engine. Knows clients (pipelines) that can run one task, nothing of what a task is. */
#ifndef GPSTI_SCHEDULER_INTERNAL_H
#define GPSTI_SCHEDULER_INTERNAL_H

#include "../device/context_internal.h"

/* A source of tasks for workers. */
typedef struct gpsti_client gpsti_client;
struct gpsti_client {
    /* Called with the lock held. Runs at most one task, without the lock while it runs, and says whether it did. */
    bool (*run_one)(gpsti_client* client, uint32_t worker_index);
    /* Would run_one run one now? Called with the lock held. */
    bool (*has_work)(const gpsti_client* client);
    int64_t begin_ns; /* before that no worker takes any; 0 = at once */
    gpsti_client* next;
    gpsti_client* previous;
};

struct gpsti_scheduler {
    gpsti_host* host;
    gpsti_mutex mutex; /* guards every client's flow, too */
    gpsti_cond work;   /* a task may have become runnable: for helping threads */
    gpsti_thread* threads;
    struct gpsti_worker* workers;
    struct gpsti_worker* sleepers; /* the last to fall asleep first */
    uint32_t n_workers, n_started, n_callable;
    uint32_t n_helpers;  /* waiting threads, which serve one client only */
    uint32_t n_waking;   /* workers woken and not running yet */
    uint32_t n_watching; /* sleepers that look again at a client's begin_ns: 0 or 1 */
    bool stopping;
    gpsti_client clients; /* ring with this as its head; rotated, so that no client starves another */
};

GPSTI_INTERN gpst_result gpsti_scheduler_create(gpsti_host* host, uint32_t n_workers, const gpsti_pin* pin,
                                                gpsti_scheduler** out);
GPSTI_INTERN void gpsti_scheduler_destroy(gpsti_scheduler* scheduler); /* no client is left by then */

/* The rest with the lock held. */
GPSTI_INTERN void gpsti_scheduler_add(gpsti_scheduler* scheduler, gpsti_client* client); /* wakes no worker yet */
GPSTI_INTERN void gpsti_scheduler_remove(gpsti_scheduler* scheduler, gpsti_client* client);
/* A task became runnable, or a client's begin_ns was set: calls a worker, unless one is coming anyway, who calls the
   next. */
GPSTI_INTERN void gpsti_scheduler_wake(gpsti_scheduler* scheduler);
/* Wakes all threads: something ended. */
GPSTI_INTERN void gpsti_scheduler_wake_all(gpsti_scheduler* scheduler);
/* From a worker's own thread while it waits for a client: runs one of the client's tasks, or sleeps until something
   changes or deadline_ns. */
GPSTI_INTERN void gpsti_scheduler_help(gpsti_scheduler* scheduler, gpsti_client* client, uint32_t worker_index,
                                       int64_t deadline_ns);

/* Index of the calling thread among the scheduler's workers; n_workers when it is none of them. */
GPSTI_INTERN uint32_t gpsti_scheduler_worker_index(const gpsti_scheduler* scheduler);

#endif
