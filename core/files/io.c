/* core/files/io.c -- the threads that block on files for reader and writer.
   Owns the threads and the order of the jobs, never a job. */
#include "../base/platform_internal.h"

#include "io_internal.h"

#include <string.h>

/* ---- queue ------------------------------------------------------------------- */

GPSTI_PRIVATE void** gpsti_io_next(const gpsti_io* io, void* job) {
    return (void**)(void*)((char*)job + io->i->next_offset);
}

GPSTI_PRIVATE void gpsti_io_push(gpsti_io* io, gpsti_io_queue* queue, void* job) {
    *gpsti_io_next(io, job) = NULL;
    if (queue->first)
        *gpsti_io_next(io, queue->last) = job;
    else
        queue->first = job;
    queue->last = job;
}

GPSTI_PRIVATE void* gpsti_io_pop(gpsti_io* io, gpsti_io_queue* queue) {
    void* job = queue->first;
    if (job)
        queue->first = *gpsti_io_next(io, job);
    return job;
}

/* Under the mutex. */
GPSTI_PRIVATE void gpsti_io_cancel_queued(gpsti_io* io) {
    void* job;
    while ((job = gpsti_io_pop(io, &io->queued)) != NULL)
        gpsti_io_push(io, &io->cancelled, job);
    gpsti_cond_broadcast(&io->work);
}

/* ---- running ----------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_io_enter(gpsti_io* io) {
    if (io->n_running++ == 0)
        io->busy_since_ns = gpsti_now_ns();
}

GPSTI_PRIVATE void gpsti_io_leave(gpsti_io* io, const gpsti_io_outcome* outcome) {
    ++io->info.jobs;
    io->info.failed += outcome->failed;
    io->info.computed += outcome->computed;
    io->info.bytes += outcome->bytes;
    io->info.calls += outcome->calls;
    io->info.service_ns += (uint64_t)outcome->service_ns;
    if (--io->n_running == 0)
        io->info.busy_ns += (uint64_t)(gpsti_now_ns() - io->busy_since_ns);
    if (io->queued.first)
        gpsti_cond_signal(&io->work); /* someone may have waited for the limit */
}

/* The thread's clock costs too much for every job: it is read when the thread has nothing to do. */
GPSTI_PRIVATE void gpsti_io_count_cpu(gpsti_io* io, int64_t* counted_ns) {
    const int64_t now_ns = gpsti_thread_cpu_ns();
    io->info.cpu_ns += (uint64_t)(now_ns - *counted_ns);
    *counted_ns = now_ns;
}

/* Under the mutex: the next job, or NULL when there is none for this thread now. */
GPSTI_PRIVATE void* gpsti_io_take(gpsti_io* io, bool* cancelled) {
    void* job = gpsti_io_pop(io, &io->cancelled);
    *cancelled = job != NULL;
    if (!job && io->n_running < io->info.n_in_flight)
        job = gpsti_io_pop(io, &io->queued);
    return job;
}

GPSTI_PRIVATE void gpsti_io_main(void* arg);

GPSTI_PRIVATE gpst_result gpsti_io_add_thread(gpsti_io* io) {
    gpsti_thread* const thread = &io->threads[io->n_threads];
    GPSTI_TRY(gpsti_thread_start(thread, gpsti_io_main, io, io->thread_name));
    io->n_threads++;
    return gpsti_pin_io(io->pin, thread);
}

/* Threads are started as work comes: one that has taken some, and leaves nobody to take the next, sees to that. Where
   the system gives no more, those there are do. Under the mutex. */
GPSTI_PRIVATE void gpsti_io_grow(gpsti_io* io) {
    if (io->n_idle == 0 && !io->stop && !io->no_more && io->n_threads < io->info.n_in_flight)
        io->no_more = GPST_FAILED(gpsti_io_add_thread(io));
}

GPSTI_PRIVATE void gpsti_io_main(void* arg) {
    gpsti_io* io = (gpsti_io*)arg;
    int64_t counted_ns = 0;
    gpsti_mutex_lock(&io->mutex);
    for (;;) {
        bool cancelled;
        gpsti_io_outcome outcome;
        void* job = gpsti_io_take(io, &cancelled);
        if (!job) {
            gpsti_io_count_cpu(io, &counted_ns);
            if (io->stop)
                break;
            io->n_idle++;
            gpsti_cond_wait_until(&io->work, &io->mutex, GPST_FOREVER);
            io->n_idle--;
            continue;
        }
        if (!cancelled) {
            gpsti_io_enter(io);
            gpsti_io_grow(io);
            memset(&outcome, 0, sizeof(outcome));
            outcome.n_cancels = gpsti_a32_load_relaxed(&io->n_cancels);
            gpsti_mutex_unlock(&io->mutex);
            io->i->run(io->owner, job, &outcome);
            gpsti_mutex_lock(&io->mutex);
            gpsti_io_leave(io, &outcome);
        }
        gpsti_mutex_unlock(&io->mutex);
        io->i->done(io->owner, job, cancelled);
        gpsti_mutex_lock(&io->mutex);
        if (--io->n_open == 0)
            gpsti_cond_broadcast(&io->idle);
    }
    gpsti_mutex_unlock(&io->mutex);
}

GPSTI_INTERN void gpsti_io_run_now(gpsti_io* io, void* job) {
    gpsti_io_outcome outcome;
    memset(&outcome, 0, sizeof(outcome));
    gpsti_mutex_lock(&io->mutex);
    gpsti_io_enter(io);
    outcome.n_cancels = gpsti_a32_load_relaxed(&io->n_cancels);
    gpsti_mutex_unlock(&io->mutex);
    io->i->run(io->owner, job, &outcome);
    gpsti_mutex_lock(&io->mutex);
    gpsti_io_leave(io, &outcome);
    gpsti_mutex_unlock(&io->mutex);
}

GPSTI_INTERN bool gpsti_io_models_disk(const gpst_context* context) { return context->device->i->disk_end != NULL; }

GPSTI_INTERN int64_t gpsti_io_wait_disk(const gpst_context* context, bool write, size_t bytes, int64_t start_ns) {
    gpsti_device* const device = context->device;
    if (device->i->disk_end) {
        const int64_t left_ns = device->i->disk_end(device, write, bytes, start_ns) - gpsti_now_ns();
        if (left_ns > 0)
            gpsti_sleep_ns(left_ns);
    }
    return gpsti_now_ns();
}

/* ---- life -------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_io_set_in_flight(gpsti_io* io, uint32_t n_in_flight) {
    GPSTI_FAIL_IF(n_in_flight < 1 || n_in_flight > GPSTI_IO_MAX_THREADS, GPST_ERROR_ARGUMENT,
                  "n_in_flight=%u: must be from 1 to %d", n_in_flight, GPSTI_IO_MAX_THREADS);
    gpsti_mutex_lock(&io->mutex);
    io->info.n_in_flight = n_in_flight;
    gpsti_cond_broadcast(&io->work);
    if (io->queued.first)
        gpsti_io_grow(io);
    gpsti_mutex_unlock(&io->mutex);
    return GPST_OK;
}

/* Under the mutex. Not when no job will come any more. */
GPSTI_PRIVATE gpst_result gpsti_io_add_first(gpsti_io* io) {
    return io->n_threads == 0 && !io->stop ? gpsti_io_add_thread(io) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_io_start(gpsti_io* io) {
    gpsti_mutex_lock(&io->mutex);
    const gpst_result result = gpsti_io_add_first(io);
    gpsti_mutex_unlock(&io->mutex);
    return result;
}

GPSTI_INTERN gpst_result gpsti_io_init(gpsti_io* io, const gpsti_io_job_i* i, void* owner, uint32_t n_in_flight,
                                       const char* thread_name, const gpsti_pin* pin) {
    memset(io, 0, sizeof(*io));
    io->i = i;
    io->owner = owner;
    io->thread_name = thread_name;
    io->pin = pin;
    GPSTI_TRY(gpsti_mutex_init(&io->mutex));
    gpst_result result = gpsti_cond_init(&io->work);
    if (!GPST_FAILED(result)) {
        result = gpsti_cond_init(&io->idle);
        if (GPST_FAILED(result))
            gpsti_cond_term(&io->work);
    }
    if (GPST_FAILED(result)) {
        gpsti_mutex_term(&io->mutex);
        return result;
    }
    result = gpsti_io_set_in_flight(io, n_in_flight);
    if (GPST_FAILED(result))
        gpsti_io_term(io);
    return result;
}

/* Is there a thread `index`? Who starts one is a thread before it, and was joined by then. */
GPSTI_PRIVATE bool gpsti_io_has_thread(gpsti_io* io, uint32_t index) {
    gpsti_mutex_lock(&io->mutex);
    const bool has = index < io->n_threads;
    gpsti_mutex_unlock(&io->mutex);
    return has;
}

GPSTI_INTERN void gpsti_io_retire(gpsti_io* io) {
    gpsti_mutex_lock(&io->mutex);
    io->stop = true;
    gpsti_io_cancel_queued(io);
    gpsti_mutex_unlock(&io->mutex);
}

GPSTI_INTERN void gpsti_io_term(gpsti_io* io) {
    gpsti_io_cancel(io);
    gpsti_io_retire(io);
    for (uint32_t k = 0; gpsti_io_has_thread(io, k); k++)
        gpsti_thread_join(&io->threads[k]);
    gpsti_cond_term(&io->idle);
    gpsti_cond_term(&io->work);
    gpsti_mutex_term(&io->mutex);
}

GPSTI_INTERN bool gpsti_io_drain(gpsti_io* io, int64_t deadline_ns) {
    gpsti_mutex_lock(&io->mutex);
    while (io->n_open > 0 && gpsti_now_ns() < deadline_ns)
        (void)gpsti_cond_wait_until(&io->idle, &io->mutex, deadline_ns);
    const bool done = io->n_open == 0;
    gpsti_mutex_unlock(&io->mutex);
    return done;
}

GPSTI_INTERN gpst_result gpsti_io_submit(gpsti_io* io, void* job) {
    gpsti_mutex_lock(&io->mutex);
    const bool stop = io->stop;
    const gpst_result result = gpsti_io_add_first(io);
    if (!stop && !GPST_FAILED(result)) {
        io->n_open++;
        gpsti_io_push(io, &io->queued, job);
        if (io->n_running < io->info.n_in_flight)
            gpsti_cond_signal(&io->work);
        if (io->n_running == io->n_threads) /* none of them will look before its job is over */
            gpsti_io_grow(io);
    }
    gpsti_mutex_unlock(&io->mutex);
    GPSTI_FAIL_IF(stop, GPST_ERROR_CLOSED, "submit: the reader or writer is being destroyed");
    return result;
}

GPSTI_INTERN void gpsti_io_cancel(gpsti_io* io) {
    gpsti_mutex_lock(&io->mutex);
    (void)gpsti_a32_add(&io->n_cancels, 1);
    gpsti_io_cancel_queued(io);
    gpsti_mutex_unlock(&io->mutex);
}

GPSTI_INTERN void gpsti_io_query_info(const gpsti_io* io, gpsti_io_info* out) {
    gpsti_io* self = (gpsti_io*)(uintptr_t)io; /* the mutex is not const */
    gpsti_mutex_lock(&self->mutex);
    *out = self->info;
    if (self->n_running)
        out->busy_ns += (uint64_t)(gpsti_now_ns() - self->busy_since_ns);
    gpsti_mutex_unlock(&self->mutex);
}
