/* core/workers/scheduler.c -- worker threads that ask clients for one task at a time.
   Owns the threads and the lock; the order of tasks is the clients' business. */
#include "../base/platform_internal.h"

#include "scheduler_internal.h"

#include <stdio.h>
#include <string.h>

typedef struct gpsti_worker {
    gpsti_scheduler* scheduler;
    uint32_t index;
    gpsti_cond called;          /* it sleeps on */
    bool sleeps;                /* it is among the sleepers */
    struct gpsti_worker* below; /* of the sleepers, the one that fell asleep before it */
} gpsti_worker;

#define GPSTI_BRIEF_NS 20000  /* work that is done before a thread that sleeps is called and there */
#define GPSTI_WATCH_NS 500000 /* how long such work may wait when it was not brief after all: somebody watches */

static GPSTI_TLS const gpsti_worker* gpsti_this_worker = NULL;

/* The one that fell asleep last is called first: its core and what it worked on are the warmest. */
GPSTI_PRIVATE void gpsti_scheduler_call_worker(gpsti_scheduler* scheduler) {
    gpsti_worker* const worker = scheduler->sleepers;
    if (!worker)
        return;
    scheduler->sleepers = worker->below;
    scheduler->n_waking++;
    worker->sleeps = false;
    gpsti_cond_signal(&worker->called);
}

/* ---- clients ------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_scheduler_remove(gpsti_scheduler* scheduler, gpsti_client* client) {
    (void)scheduler;
    client->previous->next = client->next;
    client->next->previous = client->previous;
    client->next = client->previous = NULL;
}

GPSTI_PRIVATE void gpsti_scheduler_append(gpsti_scheduler* scheduler, gpsti_client* client) {
    client->next = &scheduler->clients;
    client->previous = scheduler->clients.previous;
    scheduler->clients.previous->next = client;
    scheduler->clients.previous = client;
}

GPSTI_INTERN void gpsti_scheduler_add(gpsti_scheduler* scheduler, gpsti_client* client) {
    gpsti_scheduler_append(scheduler, client);
}

GPSTI_INTERN void gpsti_scheduler_watch(gpsti_scheduler* scheduler, gpsti_client* client) {
    gpsti_scheduler_append(scheduler, client);
    if (scheduler->n_waking == 0)
        gpsti_scheduler_call_worker(scheduler);
}

GPSTI_INTERN void gpsti_scheduler_look_in(gpsti_scheduler* scheduler, int64_t in_ns) {
    const int64_t soon_ns = in_ns > 0 && in_ns < GPSTI_WATCH_NS ? in_ns : GPSTI_WATCH_NS; /* others rely on it, too */
    if (scheduler->watch_ns == 0 || soon_ns < scheduler->watch_ns)
        scheduler->watch_ns = soon_ns;
}

/* The client that ran goes to the back, so that several pipelines share the workers evenly. It is still there: a client
   is removed only when none of its tasks runs. */
GPSTI_PRIVATE bool gpsti_scheduler_run_any(gpsti_scheduler* scheduler, uint32_t worker_index) {
    gpsti_client* const head = &scheduler->clients;
    for (gpsti_client* client = head->next; client != head; client = client->next) {
        if (client->run_one(client, worker_index)) {
            gpsti_scheduler_remove(scheduler, client);
            gpsti_scheduler_append(scheduler, client);
            return true;
        }
    }
    return false;
}

/* ---- workers -------------------------------------------------------------------- */

/* Returns looking. */
GPSTI_PRIVATE void gpsti_scheduler_sleep(gpsti_scheduler* scheduler, gpsti_cond* cond, int64_t deadline_ns) {
    scheduler->looking = false;
    scheduler->n_attentive--;
    scheduler->n_idle++;
    gpsti_cond_wait_until(cond, &scheduler->mutex, deadline_ns);
    scheduler->n_idle--;
    scheduler->n_waking -= scheduler->n_waking > 0 ? 1 : 0;
    scheduler->n_attentive++;
    scheduler->looking = true;
}

/* It may not have been called: time was up. */
GPSTI_PRIVATE void gpsti_worker_get_up(gpsti_worker* self) {
    gpsti_worker** link = &self->scheduler->sleepers;
    while (self->sleeps && *link != self)
        link = &(*link)->below;
    if (self->sleeps)
        *link = self->below;
    self->sleeps = false;
}

/* Nothing is runnable. One of the sleepers looks by itself for as long as others rely on tasks being brief. */
GPSTI_PRIVATE void gpsti_worker_sleep(gpsti_worker* self) {
    gpsti_scheduler* const scheduler = self->scheduler;
    const int64_t watch_ns = scheduler->n_watching == 0 ? scheduler->watch_ns : 0;
    const bool watch = watch_ns > 0;
    scheduler->watch_ns = watch ? 0 : scheduler->watch_ns;
    scheduler->n_watching += watch ? 1 : 0;
    self->below = scheduler->sleepers;
    self->sleeps = true;
    scheduler->sleepers = self;
    gpsti_scheduler_sleep(scheduler, &self->called, watch ? gpsti_now_ns() + watch_ns : GPST_FOREVER);
    gpsti_worker_get_up(self);
    scheduler->n_watching -= watch ? 1 : 0;
}

GPSTI_PRIVATE void gpsti_worker_main(void* argument) {
    gpsti_worker* const self = (gpsti_worker*)argument;
    gpsti_scheduler* const scheduler = self->scheduler;
    gpsti_this_worker = self;
    gpsti_mutex_lock(&scheduler->mutex);
    scheduler->n_attentive++;
    scheduler->looking = true;
    while (!scheduler->stopping)
        if (!gpsti_scheduler_run_any(scheduler, self->index))
            gpsti_worker_sleep(self);
    scheduler->n_attentive--;
    scheduler->looking = false;
    gpsti_mutex_unlock(&scheduler->mutex);
}

GPSTI_PRIVATE int64_t gpsti_scheduler_backlog_ns(const gpsti_scheduler* scheduler) {
    int64_t total_ns = 0;
    for (gpsti_client* client = scheduler->clients.next; client != &scheduler->clients; client = client->next)
        total_ns += client->backlog_ns(client);
    return total_ns;
}

/* One at a time: who comes calls the next, if there is more than it takes itself. */
GPSTI_PRIVATE void gpsti_scheduler_call(gpsti_scheduler* scheduler) {
    if (scheduler->n_idle == 0 || scheduler->n_waking > 0)
        return;
    const int64_t backlog_ns = gpsti_scheduler_backlog_ns(scheduler);
    if (backlog_ns == 0)
        return;
    if (backlog_ns < GPSTI_BRIEF_NS && scheduler->n_attentive > 0) {
        gpsti_scheduler_look_in(scheduler, 0);
        if (scheduler->n_watching > 0)
            return;
    }
    gpsti_scheduler_call_worker(scheduler);
    if (scheduler->n_helpers > 0)
        gpsti_cond_broadcast(&scheduler->work); /* each can run the tasks of one client only */
}

GPSTI_INTERN void gpsti_scheduler_wake(gpsti_scheduler* scheduler) {
    if (!scheduler->looking)
        gpsti_scheduler_call(scheduler);
}

GPSTI_INTERN void gpsti_scheduler_leave(gpsti_scheduler* scheduler, int64_t work_ns) {
    scheduler->n_attentive -= work_ns < GPSTI_BRIEF_NS ? 0 : 1;
    scheduler->looking = false;
    gpsti_scheduler_call(scheduler);
}

GPSTI_INTERN void gpsti_scheduler_return(gpsti_scheduler* scheduler, int64_t work_ns) {
    scheduler->n_attentive += work_ns < GPSTI_BRIEF_NS ? 0 : 1;
    scheduler->looking = true;
}

GPSTI_INTERN void gpsti_scheduler_enter(gpsti_scheduler* scheduler) {
    scheduler->n_attentive++;
    scheduler->looking = true;
}

/* What became runnable meanwhile was left to it. */
GPSTI_INTERN void gpsti_scheduler_exit(gpsti_scheduler* scheduler) {
    scheduler->n_attentive--;
    scheduler->looking = false;
    gpsti_scheduler_call(scheduler);
}

GPSTI_INTERN void gpsti_scheduler_wake_some(gpsti_scheduler* scheduler, uint32_t n) {
    for (; n > 0 && scheduler->sleepers; n--)
        gpsti_scheduler_call_worker(scheduler);
    if (scheduler->n_helpers > 0)
        gpsti_cond_broadcast(&scheduler->work);
}

GPSTI_INTERN void gpsti_scheduler_wake_all(gpsti_scheduler* scheduler) {
    gpsti_scheduler_wake_some(scheduler, scheduler->n_workers);
}

GPSTI_INTERN void gpsti_scheduler_help(gpsti_scheduler* scheduler, gpsti_client* client,
                                       uint32_t worker_index, int64_t deadline_ns) {
    scheduler->n_attentive++;
    scheduler->looking = true;
    if (!client->run_one(client, worker_index)) {
        scheduler->n_helpers++;
        gpsti_scheduler_sleep(scheduler, &scheduler->work, deadline_ns);
        scheduler->n_helpers--;
    }
    scheduler->n_attentive--;
    scheduler->looking = false;
}

GPSTI_INTERN uint32_t gpsti_scheduler_worker_index(const gpsti_scheduler* scheduler) {
    const gpsti_worker* const self = gpsti_this_worker;
    return self && self->scheduler == scheduler ? self->index : scheduler->n_workers;
}

/* ---- create / destroy ------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_scheduler_start(gpsti_scheduler* scheduler, const gpsti_pin* pin) {
    for (uint32_t i = 0; i < scheduler->n_workers; i++) {
        char name[16];
        snprintf(name, sizeof name, "gpst-work-%u", (unsigned)(i % 1000));
        scheduler->workers[i].scheduler = scheduler;
        scheduler->workers[i].index = i;
        GPSTI_TRY(gpsti_cond_init(&scheduler->workers[i].called));
        scheduler->n_callable++;
        GPSTI_TRY(
            gpsti_thread_start(&scheduler->threads[i], gpsti_worker_main, &scheduler->workers[i], name));
        scheduler->n_started++;
        GPSTI_TRY(gpsti_pin_worker(pin, &scheduler->threads[i], i));
    }
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_scheduler_create(gpsti_host* host, uint32_t n_workers, const gpsti_pin* pin,
                                                gpsti_scheduler** out) {
    gpsti_scheduler* const scheduler = (gpsti_scheduler*)gpsti_alloc(host, sizeof *scheduler);
    if (!scheduler)
        return GPST_ERROR_MEMORY;
    scheduler->host = host;
    scheduler->n_workers = n_workers;
    scheduler->clients.next = scheduler->clients.previous = &scheduler->clients;
    gpst_result result = gpsti_mutex_init(&scheduler->mutex);
    if (GPST_FAILED(result)) {
        gpsti_free(host, scheduler, sizeof *scheduler);
        return result;
    }
    result = gpsti_cond_init(&scheduler->work);
    if (GPST_FAILED(result)) {
        gpsti_mutex_term(&scheduler->mutex);
        gpsti_free(host, scheduler, sizeof *scheduler);
        return result;
    }
    scheduler->threads = (gpsti_thread*)gpsti_alloc(host, n_workers * sizeof *scheduler->threads);
    scheduler->workers = (gpsti_worker*)gpsti_alloc(host, n_workers * sizeof *scheduler->workers);
    result = scheduler->threads && scheduler->workers ? gpsti_scheduler_start(scheduler, pin) : GPST_ERROR_MEMORY;
    if (GPST_FAILED(result)) {
        gpsti_scheduler_destroy(scheduler);
        return result;
    }
    *out = scheduler;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_scheduler_destroy(gpsti_scheduler* scheduler) {
    if (!scheduler)
        return;
    gpsti_mutex_lock(&scheduler->mutex);
    scheduler->stopping = true;
    gpsti_scheduler_wake_all(scheduler);
    gpsti_mutex_unlock(&scheduler->mutex);
    for (uint32_t i = 0; i < scheduler->n_started; i++)
        gpsti_thread_join(&scheduler->threads[i]);
    for (uint32_t i = 0; i < scheduler->n_callable; i++)
        gpsti_cond_term(&scheduler->workers[i].called);
    gpsti_cond_term(&scheduler->work);
    gpsti_mutex_term(&scheduler->mutex);
    if (scheduler->threads)
        gpsti_free(scheduler->host, scheduler->threads, scheduler->n_workers * sizeof *scheduler->threads);
    if (scheduler->workers)
        gpsti_free(scheduler->host, scheduler->workers, scheduler->n_workers * sizeof *scheduler->workers);
    gpsti_free(scheduler->host, scheduler, sizeof *scheduler);
}
