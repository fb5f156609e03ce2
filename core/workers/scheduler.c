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

static GPSTI_TLS const gpsti_worker* gpsti_this_worker = NULL;
static GPSTI_TLS gpsti_scheduler* gpsti_this_work = NULL; /* of the innermost task that this thread runs */

GPSTI_INTERN gpsti_locked gpsti_lock(gpst_context* context) {
    gpsti_mutex_lock(&context->scheduler->mutex);
    return &context->scheduler->held;
}

GPSTI_INTERN void gpsti_unlock(gpsti_locked locked) { gpsti_mutex_unlock(&locked->scheduler->mutex); }

/* ---- who works ------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_work_begin(gpsti_locked locked, gpsti_work* work) {
    work->before = gpsti_this_work;
    work->counts = gpsti_this_work != locked->scheduler;
    locked->scheduler->n_working += work->counts ? 1 : 0;
    gpsti_this_work = locked->scheduler;
}

/* The thread looks for more before it rests. */
GPSTI_INTERN void gpsti_work_end(gpsti_locked locked, const gpsti_work* work) {
    gpsti_this_work = work->before;
    locked->scheduler->n_working -= work->counts ? 1 : 0;
}

GPSTI_INTERN bool gpsti_scheduler_works_here(const gpsti_scheduler* scheduler) { return gpsti_this_work == scheduler; }

GPSTI_INTERN bool gpsti_work_rests(gpsti_locked locked) {
    gpsti_scheduler* const scheduler = locked->scheduler;
    const bool works = gpsti_scheduler_works_here(scheduler);
    scheduler->n_working -= works ? 1 : 0;
    (void)gpsti_scheduler_settle(locked);
    return works;
}

GPSTI_INTERN void gpsti_work_goes_on(gpsti_locked locked, bool worked) {
    locked->scheduler->n_working += worked ? 1 : 0;
}

/* ---- clients ------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_scheduler_remove(gpsti_locked locked, gpsti_client* client) {
    (void)locked;
    client->previous->next = client->next;
    client->next->previous = client->previous;
    client->next = client->previous = NULL;
}

GPSTI_INTERN void gpsti_scheduler_add(gpsti_locked locked, gpsti_client* client) {
    gpsti_scheduler* const scheduler = locked->scheduler;
    client->next = &scheduler->clients;
    client->previous = scheduler->clients.previous;
    scheduler->clients.previous->next = client;
    scheduler->clients.previous = client;
}

/* The client that ran goes to the back, so that several pipelines share the workers evenly. It is still there: a client
   is removed only when none of its tasks runs. */
GPSTI_PRIVATE bool gpsti_scheduler_run_any(gpsti_locked locked, uint32_t worker_index) {
    gpsti_client* const head = &locked->scheduler->clients;
    for (gpsti_client* client = head->next; client != head; client = client->next) {
        if (client->begin_ns > 0 && gpsti_now_ns() < client->begin_ns)
            continue;
        if (client->run_one(locked, client, worker_index)) {
            gpsti_scheduler_remove(locked, client);
            gpsti_scheduler_add(locked, client);
            return true;
        }
    }
    return false;
}

/* The next begin_ns of a client that has not begun; GPST_FOREVER: all have. */
GPSTI_PRIVATE int64_t gpsti_scheduler_next_begin_ns(const gpsti_scheduler* scheduler) {
    int64_t next_ns = GPST_FOREVER, now_ns = 0;
    for (const gpsti_client* client = scheduler->clients.next; client != &scheduler->clients; client = client->next) {
        if (client->begin_ns == 0)
            continue;
        now_ns = now_ns == 0 ? gpsti_now_ns() : now_ns;
        if (client->begin_ns > now_ns && client->begin_ns < next_ns)
            next_ns = client->begin_ns;
    }
    return next_ns;
}

GPSTI_INTERN bool gpsti_scheduler_has_work(const gpsti_scheduler* scheduler) {
    for (const gpsti_client* client = scheduler->clients.next; client != &scheduler->clients; client = client->next)
        if ((client->begin_ns == 0 || gpsti_now_ns() >= client->begin_ns) && client->has_work(&scheduler->held, client))
            return true;
    return scheduler->n_watching == 0 && gpsti_scheduler_next_begin_ns(scheduler) != GPST_FOREVER;
}

GPSTI_INTERN bool gpsti_scheduler_is_quiet(gpsti_locked locked) {
    const gpsti_scheduler* const scheduler = locked->scheduler;
    const gpsti_client* const head = &scheduler->clients;
    if (scheduler->n_working > 0 || scheduler->n_waking > 0 ||
        (scheduler->sleepers && gpsti_scheduler_has_work(scheduler)))
        return false;
    for (const gpsti_client* client = head->next; client != head; client = client->next)
        if (client->n_helpers > 0 && client->has_work(locked, client))
            return false;
    return true;
}

/* ---- workers -------------------------------------------------------------------- */

/* The last to fall asleep is woken first: its caches are the warmest. */
GPSTI_PRIVATE void gpsti_scheduler_call_worker(gpsti_scheduler* scheduler) {
    gpsti_worker* const worker = scheduler->sleepers;
    scheduler->sleepers = worker->below;
    scheduler->n_waking++;
    worker->sleeps = false;
    gpsti_cond_signal(&worker->called);
}

GPSTI_PRIVATE void gpsti_scheduler_call_one(gpsti_scheduler* scheduler) {
    if (scheduler->sleepers && scheduler->n_waking == 0 && gpsti_scheduler_has_work(scheduler))
        gpsti_scheduler_call_worker(scheduler);
}

GPSTI_INTERN void gpsti_scheduler_wake(gpsti_locked locked) {
    if (locked->scheduler->n_helpers > 0) /* each can run the tasks of one client only */
        gpsti_cond_broadcast(&locked->scheduler->work);
    gpsti_scheduler_call_one(locked->scheduler);
}

GPSTI_INTERN void gpsti_scheduler_wake_all(gpsti_locked locked) {
    gpsti_scheduler* const scheduler = locked->scheduler;
    while (scheduler->sleepers)
        gpsti_scheduler_call_worker(scheduler);
    gpsti_cond_broadcast(&scheduler->work);
}

/* What memory somebody gives up for others may let a source be asked: no worker sleeps beside work. Helpers are not
   woken, who come to rest by turns. */
GPSTI_INTERN bool gpsti_scheduler_settle(gpsti_locked locked) {
    gpsti_scheduler* const scheduler = locked->scheduler;
    const bool moves = scheduler->n_working == 0 && scheduler->quiet && scheduler->quiet(locked);
    gpsti_scheduler_call_one(scheduler);
    return moves;
}

/* Nothing is runnable. */
GPSTI_PRIVATE void gpsti_worker_sleep(gpsti_worker* self) {
    gpsti_scheduler* const scheduler = self->scheduler;
    const int64_t until_ns = scheduler->n_watching == 0 ? gpsti_scheduler_next_begin_ns(scheduler) : GPST_FOREVER;
    const bool watches = until_ns != GPST_FOREVER;
    scheduler->n_watching += watches ? 1 : 0;
    self->below = scheduler->sleepers;
    self->sleeps = true;
    scheduler->sleepers = self;
    gpsti_cond_wait_until(&self->called, &scheduler->mutex, until_ns);
    scheduler->n_watching -= watches ? 1 : 0;
    if (!self->sleeps) {
        scheduler->n_waking--;
        return;
    }
    gpsti_worker** link = &scheduler->sleepers; /* not woken: the time is up */
    while (*link != self)
        link = &(*link)->below;
    *link = self->below;
    self->sleeps = false;
}

GPSTI_PRIVATE void gpsti_worker_main(void* argument) {
    gpsti_worker* const self = (gpsti_worker*)argument;
    gpsti_scheduler* const scheduler = self->scheduler;
    gpsti_this_worker = self;
    gpsti_mutex_lock(&scheduler->mutex);
    while (!scheduler->stopping) {
        if (gpsti_scheduler_run_any(&scheduler->held, self->index))
            continue;
        if (!gpsti_scheduler_settle(&scheduler->held) || !gpsti_scheduler_run_any(&scheduler->held, self->index))
            gpsti_worker_sleep(self);
    }
    gpsti_mutex_unlock(&scheduler->mutex);
}

GPSTI_INTERN void gpsti_scheduler_help(gpsti_locked locked, gpsti_client* client, uint32_t worker_index,
                                       int64_t deadline_ns) {
    gpsti_scheduler* const scheduler = locked->scheduler;
    if (client->run_one(locked, client, worker_index)) {
        gpsti_scheduler_wake(locked); /* it may not come again */
        return;
    }
    scheduler->n_helpers++;
    client->n_helpers++;
    const bool worked = gpsti_work_rests(locked);
    if (!client->has_work(locked, client)) /* which its rest may have brought */
        gpsti_cond_wait_until(&scheduler->work, &scheduler->mutex, deadline_ns);
    gpsti_work_goes_on(locked, worked);
    client->n_helpers--;
    scheduler->n_helpers--;
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
        GPSTI_TRY(gpsti_thread_start(&scheduler->threads[i], gpsti_worker_main, &scheduler->workers[i], name));
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
    scheduler->held.scheduler = scheduler;
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
    gpsti_scheduler_wake_all(&scheduler->held);
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
