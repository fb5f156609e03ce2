/* core/workers/scheduler_internal.h -- the workers of a context and the one lock of its
   engine. Knows clients (pipelines) that can run one task, nothing of what a task is. */
#ifndef GPSTI_SCHEDULER_INTERNAL_H
#define GPSTI_SCHEDULER_INTERNAL_H

#include "../device/context_internal.h"

/* Whatever has tasks for workers. */
typedef struct gpsti_client gpsti_client;
struct gpsti_client {
    /* Called with the lock held. Runs at most one task, without the lock while it runs, and says whether it did. */
    bool (*run_one)(gpsti_client* client, uint32_t worker_index);
    /* About how long everything takes that run_one would run now; 0 = there is nothing. Called with the lock held. */
    int64_t (*backlog_ns)(gpsti_client* client);
    gpsti_client* next;
    gpsti_client* previous;
};

struct gpsti_scheduler {
    gpsti_host* host;
    gpsti_mutex mutex;      /* guards every client's flow, too */
    gpsti_cond work;        /* a task may have become runnable: for helping threads */
    gpsti_thread* threads;
    struct gpsti_worker* workers;
    struct gpsti_worker* sleepers; /* the last to fall asleep first */
    uint32_t n_workers, n_started, n_callable;
    uint32_t n_idle;        /* threads that sleep */
    uint32_t n_helpers;     /* of them, helping threads, which serve one client only */
    uint32_t n_waking;      /* of them, called and not here yet */
    uint32_t n_watching;    /* of them, those that look now and then without being called: 0 or 1 */
    uint32_t n_attentive;   /* threads that will look for a task soon: they look now, or their task is brief */
    int64_t watch_ns;       /* somebody is to watch, and to look that soon; 0 = nobody need */
    bool looking;           /* who holds the lock is about to look for a task */
    bool stopping;
    gpsti_client clients;   /* ring with this as its head; rotated, so that no client starves another */
};

GPSTI_INTERN gpst_result gpsti_scheduler_create(gpsti_host* host, uint32_t n_workers, const gpsti_pin* pin,
                                                gpsti_scheduler** out);
GPSTI_INTERN void gpsti_scheduler_destroy(gpsti_scheduler* scheduler); /* no client is left by then */

/* The rest with the lock held. */
GPSTI_INTERN void gpsti_scheduler_add(gpsti_scheduler* scheduler, gpsti_client* client); /* calls no worker yet */
/* The same, but it has nothing to run yet: a worker looks, and as long as run_one asks for a look, again at times. */
GPSTI_INTERN void gpsti_scheduler_watch(gpsti_scheduler* scheduler, gpsti_client* client);
/* The next worker that finds nothing to run is to look again after so long, uncalled; 0 = after the usual time, which
   is the longest. */
GPSTI_INTERN void gpsti_scheduler_look_in(gpsti_scheduler* scheduler, int64_t in_ns);
GPSTI_INTERN void gpsti_scheduler_remove(gpsti_scheduler* scheduler, gpsti_client* client);
/* A task became runnable: calls a worker, unless one is coming anyway, or who is attentive gets to it before a sleeper
   would. */
GPSTI_INTERN void gpsti_scheduler_wake(gpsti_scheduler* scheduler);
/* The calling thread took a task that takes about work_ns and lets the lock go; and is back, with the lock. */
GPSTI_INTERN void gpsti_scheduler_leave(gpsti_scheduler* scheduler, int64_t work_ns);
GPSTI_INTERN void gpsti_scheduler_return(gpsti_scheduler* scheduler, int64_t work_ns);
/* A thread that is no worker runs tasks of a client that it took itself: from here on, and up to here. */
GPSTI_INTERN void gpsti_scheduler_enter(gpsti_scheduler* scheduler);
GPSTI_INTERN void gpsti_scheduler_exit(gpsti_scheduler* scheduler);
/* At once, not each by the one before it: n of those who sleep, for a client that has work for so many; and helpers. */
GPSTI_INTERN void gpsti_scheduler_wake_some(gpsti_scheduler* scheduler, uint32_t n);
/* Wakes everybody: something ended. */
GPSTI_INTERN void gpsti_scheduler_wake_all(gpsti_scheduler* scheduler);
/* From a worker's own thread while it waits for a client: runs one of the client's tasks, or sleeps until something
   changes or deadline_ns. */
GPSTI_INTERN void gpsti_scheduler_help(gpsti_scheduler* scheduler, gpsti_client* client, uint32_t worker_index,
                                       int64_t deadline_ns);

/* Index of the calling thread among the scheduler's workers; n_workers when it is none of them. */
GPSTI_INTERN uint32_t gpsti_scheduler_worker_index(const gpsti_scheduler* scheduler);

#endif
