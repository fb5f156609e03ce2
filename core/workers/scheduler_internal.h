/* core/workers/scheduler_internal.h -- the workers of a context and the one lock of its
   engine. Knows clients (pipelines) that can run one task, nothing of what a task is. */
#ifndef GPSTI_SCHEDULER_INTERNAL_H
#define GPSTI_SCHEDULER_INTERNAL_H

#include "../device/context_internal.h"

/* Whoever has one holds the scheduler's lock: functions that need it take it. */
typedef const struct gpsti_lock_held {
    gpsti_scheduler* scheduler;
    gpst_context* context; /* whose scheduler it is */
} * gpsti_locked;

/* A source of tasks for workers. */
typedef struct gpsti_client gpsti_client;
struct gpsti_client {
    /* Runs at most one task, without the lock while it runs, and says whether it did. */
    bool (*run_one)(gpsti_locked locked, gpsti_client* client, uint32_t worker_index);
    bool (*has_work)(gpsti_locked locked, const gpsti_client* client); /* would run_one run one now? */
    int64_t begin_ns;   /* before that no worker takes any; 0 = at once */
    uint32_t n_helpers; /* waiting threads that serve this client alone */
    gpsti_client* next;
    gpsti_client* previous;
};

struct gpsti_scheduler {
    gpsti_host* host;
    gpsti_mutex mutex;           /* guards every client, too */
    struct gpsti_lock_held held; /* what gpsti_lock gives */
    gpsti_cond work;             /* a task may have become runnable: for helping threads */
    gpsti_thread* threads;
    struct gpsti_worker* workers;
    struct gpsti_worker* sleepers; /* the last to fall asleep first */
    uint32_t n_workers, n_started, n_callable;
    uint32_t n_helpers;  /* of all clients */
    uint32_t n_waking;   /* workers woken and not running yet */
    uint32_t n_watching; /* sleepers that look again at a client's begin_ns: 0 or 1 */
    uint32_t n_working;  /* threads that run a task, and wait for nothing inside of it */
    /* A thread comes to rest, and no other works; NULL: nobody is told. True: some may go on for that. */
    bool (*quiet)(gpsti_locked locked);
    bool stopping;
    gpsti_client clients; /* ring with this as its head; rotated, so that no client starves another */
};

GPSTI_INTERN gpsti_locked gpsti_lock(gpst_context* context);
GPSTI_INTERN void gpsti_unlock(gpsti_locked locked);
/* A thread's note that it works, on the stack of who calls. It may work already, for an outer task. */
typedef struct gpsti_work {
    gpsti_scheduler* before;
    bool counts;
} gpsti_work;
GPSTI_INTERN void gpsti_work_begin(gpsti_locked locked, gpsti_work* work);
GPSTI_INTERN void gpsti_work_end(gpsti_locked locked, const gpsti_work* work);
GPSTI_INTERN bool gpsti_scheduler_works_here(const gpsti_scheduler* scheduler); /* does this thread? */
/* This thread waits for others from now on, maybe inside of its work; true: it worked. */
GPSTI_INTERN bool gpsti_work_rests(gpsti_locked locked);
GPSTI_INTERN void gpsti_work_goes_on(gpsti_locked locked, bool worked);
/* A thread comes to rest, or a user gave memory back: where no other works `quiet` is told, and workers are called for
   what it brings. True: some may go on. */
GPSTI_INTERN bool gpsti_scheduler_settle(gpsti_locked locked);
GPSTI_INTERN bool gpsti_scheduler_has_work(const gpsti_scheduler* scheduler); /* for a worker. Locked */
GPSTI_INTERN bool gpsti_scheduler_is_quiet(gpsti_locked locked); /* nobody works, and nobody who rests could */

GPSTI_INTERN gpst_result gpsti_scheduler_create(gpsti_host* host, uint32_t n_workers, const gpsti_pin* pin,
                                                gpsti_scheduler** out);
GPSTI_INTERN void gpsti_scheduler_destroy(gpsti_scheduler* scheduler); /* no client is left by then */

GPSTI_INTERN void gpsti_scheduler_add(gpsti_locked locked, gpsti_client* client); /* wakes no worker yet */
GPSTI_INTERN void gpsti_scheduler_remove(gpsti_locked locked, gpsti_client* client);
/* A task became runnable, or a client's begin_ns was set: calls a worker, unless one is coming anyway, who calls the
   next. */
GPSTI_INTERN void gpsti_scheduler_wake(gpsti_locked locked);
GPSTI_INTERN void gpsti_scheduler_wake_all(gpsti_locked locked); /* something ended */
/* From a worker's own thread while it waits for a client: runs one of the client's tasks, or sleeps until something
   changes or deadline_ns. */
GPSTI_INTERN void gpsti_scheduler_help(gpsti_locked locked, gpsti_client* client, uint32_t worker_index,
                                       int64_t deadline_ns);

/* Index of the calling thread among the scheduler's workers; n_workers when it is none of them. */
GPSTI_INTERN uint32_t gpsti_scheduler_worker_index(const gpsti_scheduler* scheduler);

#endif
