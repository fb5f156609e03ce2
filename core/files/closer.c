/* core/files/closer.c -- closes files that were replaced on threads of its own. Owns
   them from close on; the threads are core/files/io.c's. */
#include "../base/platform_internal.h"

#include "closer_internal.h"

#include <stddef.h>
#include <string.h>

#define GPSTI_CLOSER_THREADS 4 /* they wait for most of their time */

/* Nobody needs the result. */
GPSTI_PRIVATE void gpsti_closer_let_go(gpsti_file* file) { (void)gpsti_file_close(file, "a file that was replaced"); }

GPSTI_INTERN bool gpsti_close_waits(gpsti_file* file) {
    uint64_t before = 0, after = 0;
    const bool counts = gpsti_thread_waits(&before);
    gpsti_closer_let_go(file);
    return !counts || !gpsti_thread_waits(&after) || after != before;
}

GPSTI_PRIVATE void gpsti_closer_run(void* owner, void* job, gpsti_io_outcome* outcome) {
    gpsti_closer* const closer = (gpsti_closer*)owner;
    const int64_t start_ns = gpsti_now_ns();
    (void)outcome;
    const bool waited = gpsti_close_waits(&((gpsti_closing*)job)->file);
    if (closer->closed)
        closer->closed(closer->user_data, start_ns, gpsti_now_ns(), waited);
}

GPSTI_PRIVATE void gpsti_closer_done(void* owner, void* job, bool cancelled) {
    gpsti_closer* const closer = (gpsti_closer*)owner;
    gpsti_closing* const closing = (gpsti_closing*)job;
    if (cancelled)
        gpsti_closer_let_go(&closing->file);
    gpsti_mutex_lock(&closer->mutex);
    closing->next = closer->free;
    closer->free = closing;
    closer->n_held--;
    gpsti_mutex_unlock(&closer->mutex);
}

static const gpsti_io_job_i gpsti_closer_job_i = {offsetof(gpsti_closing, next), gpsti_closer_run,
                                                  gpsti_closer_done, NULL};

/* Locked. Most runs replace nothing. */
GPSTI_PRIVATE bool gpsti_closer_start(gpsti_closer* closer) {
    if (!closer->started && !closer->cannot_start)
        closer->started = !GPST_FAILED(gpsti_io_init_started(&closer->io, &gpsti_closer_job_i, closer, 1,
                                                             "gpst-close", closer->pin));
    closer->cannot_start = !closer->started;
    return closer->started;
}

GPSTI_PRIVATE gpsti_closing* gpsti_closer_take(gpsti_closer* closer) {
    gpsti_mutex_lock(&closer->mutex);
    gpsti_closing* const closing = gpsti_closer_start(closer) ? closer->free : NULL;
    if (closing) {
        closer->free = (gpsti_closing*)closing->next;
        closer->n_held++;
    }
    gpsti_mutex_unlock(&closer->mutex);
    return closing;
}

/* A short run needs no more than one thread, which it waits for at its end. Once a file is behind another: all. */
GPSTI_PRIVATE void gpsti_closer_widen(gpsti_closer* closer) {
    gpsti_mutex_lock(&closer->mutex);
    if (!closer->wide && closer->n_held > 1) {
        closer->wide = true;
        (void)gpsti_io_set_in_flight(&closer->io, GPSTI_CLOSER_THREADS);
    }
    gpsti_mutex_unlock(&closer->mutex);
}

GPSTI_INTERN void gpsti_closer_close(gpsti_closer* closer, gpsti_file* file) {
    gpsti_closing* const closing = gpsti_closer_take(closer);
    if (!closing) {
        gpsti_closer_let_go(file);
        return;
    }
    closing->file = *file;
    if (GPST_FAILED(gpsti_io_submit(&closer->io, closing)))
        gpsti_closer_done(closer, closing, true);
    gpsti_closer_widen(closer);
}

GPSTI_INTERN int64_t gpsti_closer_cpu_ns(gpsti_closer* closer) {
    gpsti_io_info info;
    memset(&info, 0, sizeof info);
    gpsti_mutex_lock(&closer->mutex);
    if (closer->started)
        gpsti_io_query_info(&closer->io, &info);
    gpsti_mutex_unlock(&closer->mutex);
    return (int64_t)info.cpu_ns;
}

GPSTI_INTERN gpst_result gpsti_closer_init(gpsti_closer* closer, const gpsti_pin* pin) {
    memset(closer, 0, sizeof *closer);
    closer->pin = pin;
    for (uint32_t f = 0; f < GPSTI_CLOSER_FILES; f++) {
        closer->files[f].next = closer->free;
        closer->free = &closer->files[f];
    }
    return gpsti_mutex_init(&closer->mutex);
}

GPSTI_INTERN void gpsti_closer_retire(gpsti_closer* closer) {
    if (closer->started)
        gpsti_io_retire(&closer->io);
}

GPSTI_INTERN void gpsti_closer_term(gpsti_closer* closer) {
    if (closer->started)
        gpsti_io_term(&closer->io);
    gpsti_mutex_term(&closer->mutex);
}
