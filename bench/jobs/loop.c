/* bench/jobs/loop.c -- the ways without a pipeline, as one writes them by hand: a loop over the items on one thread,
   and a pool of threads that run the same loop on one list. Computes on the CPU. */
#define _GNU_SOURCE
#include "job.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_OUTPUTS = 16 };

/* One thread's. */
typedef struct loop {
    job_run* run;
    worker* worker;
    int64_t disk_in_ns, disk_out_ns, work_ns;
} loop;

/* The time of a read or a write that its thread spent neither computing nor ready to: the disk's. */
typedef struct disk_clock {
    int64_t start_ns, start_cpu_ns;
    long start_waits;
} disk_clock;

static long loop_waits(void) {
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_nvcsw : 0;
}

static disk_clock loop_start_clock(void) {
    disk_clock clock;
    clock.start_ns = measure_ns();
    clock.start_cpu_ns = measure_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    clock.start_waits = loop_waits();
    return clock;
}

static int64_t loop_disk_ns(const disk_clock* clock) {
    const bool waited = loop_waits() != clock->start_waits;
    const int64_t cpu_ns = measure_clock_ns(CLOCK_THREAD_CPUTIME_ID) - clock->start_cpu_ns;
    return waited ? measure_ns() - clock->start_ns - cpu_ns : 0;
}

static bool loop_failed(loop* self, const char* reason) {
    strncpy(self->worker->reason, reason, sizeof self->worker->reason - 1);
    return false;
}

static bool loop_read(loop* self, const char* path, size_t* bytes) {
    worker* const mine = self->worker;
    const disk_clock clock = loop_start_clock();
    struct stat status;
    ssize_t n = 1;
    *bytes = 0;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return loop_failed(self, strerror(errno));
    const bool room = fstat(file, &status) == 0 && buffer_fit(&mine->file, (size_t)status.st_size);
    while (room && *bytes < (size_t)status.st_size && n > 0) {
        n = read(file, mine->file.data + *bytes, (size_t)status.st_size - *bytes);
        *bytes += n > 0 ? (size_t)n : 0;
    }
    close(file);
    self->disk_in_ns += loop_disk_ns(&clock);
    return (room && *bytes == (size_t)status.st_size) || loop_failed(self, "cannot be read");
}

static bool loop_write(loop* self, uint64_t item, uint32_t view, const void* data, size_t bytes) {
    const disk_clock clock = loop_start_clock();
    char path[JOB_PATH_BYTES];
    const bool done = work_path(self->run, item, view, path)
                          ? work_write_file(self->run, self->worker, path, data, bytes)
                          : loop_failed(self, "the path is too long");
    self->disk_out_ns += loop_disk_ns(&clock);
    return done;
}

static bool loop_decode(loop* self, const char* path, gpst_image* picture) {
    const job_run* const run = self->run;
    worker* const mine = self->worker;
    size_t bytes;
    bool in_place;
    if (!loop_read(self, path, &bytes) || !work_shape(run, mine, mine->file.data, bytes, picture, &in_place))
        return false;
    picture->data = mine->file.data;
    if (in_place)
        return true;
    if (!buffer_fit(&mine->picture, work_image_bytes(picture)))
        return loop_failed(self, "out of memory");
    picture->data = mine->picture.data;
    return work_decode(run, mine, mine->file.data, bytes, picture);
}

static bool loop_warp(loop* self, const gpst_image* picture, gpst_image* outputs) {
    const job_run* const run = self->run;
    const size_t bytes = work_image_bytes(&run->shape);
    if (!buffer_fit(&self->worker->outputs, bytes * run->n_outputs))
        return loop_failed(self, "out of memory");
    for (uint32_t o = 0; o < run->n_outputs; o++) {
        outputs[o] = run->shape;
        outputs[o].data = self->worker->outputs.data + o * bytes;
    }
    return !GPST_FAILED(gpst_warp_run(run->warp, picture, outputs, run->n_outputs, 1)) ||
           loop_failed(self, gpst_last_reason());
}

static bool loop_put_views(loop* self, uint64_t item, const gpst_image* outputs) {
    size_t bytes;
    for (uint32_t o = 0; o < self->run->n_outputs; o++)
        if (!work_encode(self->run, self->worker, &outputs[o], &bytes) ||
            !loop_write(self, item, o, self->worker->encoded.data, bytes))
            return false;
    return true;
}

static bool loop_put_number(loop* self, uint64_t item, const void* data, size_t bytes) {
    const int64_t start_ns = measure_ns();
    self->run->numbers[item] = work_number(self->run, item, data, bytes);
    self->work_ns += measure_ns() - start_ns;
    return true;
}

static bool loop_put_row(loop* self, uint64_t item, const void* data) {
    const disk_clock clock = loop_start_clock();
    const bool done = work_write_row(self->run, self->worker, item, data);
    self->disk_out_ns += loop_disk_ns(&clock);
    return done;
}

static bool loop_item_of_nothing(loop* self, uint64_t item) {
    const size_t bytes = self->run->job->output == OUTPUT_FILES ? work_file_bytes(self->run, item) : 0;
    work_wait(self->run);
    if (self->run->job->output == OUTPUT_NUMBER)
        return loop_put_number(self, item, NULL, 0);
    if (!buffer_fit(&self->worker->encoded, bytes))
        return loop_failed(self, "out of memory");
    work_fill_file(self->run, item, self->worker->encoded.data);
    return loop_write(self, item, 0, self->worker->encoded.data, bytes);
}

/* Of a camera's frame it counts how long after the camera had it the result was there. */
static bool loop_item_of_camera(loop* self, uint64_t item) {
    job_run* const run = self->run;
    const int64_t due_ns = clock_due_ns(run, item);
    const bool works = run->job->work_passes > 0; /* else the number is the consumer's */
    gpst_image outputs[MOST_OUTPUTS];
    measure_wait_until(due_ns);
    if (!loop_warp(self, &run->frames[item % run->n_files], outputs))
        return false;
    if (works)
        loop_put_number(self, item, outputs[0].data, work_image_bytes(&run->shape));
    run->latency_ns[item] = measure_ns() - due_ns;
    return works || loop_put_number(self, item, outputs[0].data, work_image_bytes(&run->shape));
}

static bool loop_item(loop* self, uint64_t item) {
    const job_run* const run = self->run;
    gpst_image picture, outputs[MOST_OUTPUTS];
    if (run->job->source == SOURCE_NONE)
        return loop_item_of_nothing(self, item);
    if (run->job->source == SOURCE_CAMERA)
        return loop_item_of_camera(self, item);
    if (!loop_decode(self, run->paths[item % run->n_files], &picture) || !loop_warp(self, &picture, outputs))
        return false;
    if (run->job->output == OUTPUT_FILES)
        return loop_put_views(self, item, outputs);
    if (run->job->output == OUTPUT_ROW)
        return loop_put_row(self, item, outputs[0].data);
    return loop_put_number(self, item, outputs[0].data, work_image_bytes(&run->shape));
}

static void* loop_main(void* argument) {
    loop* const self = (loop*)argument;
    job_run* const run = self->run;
    uint64_t item;
    while ((item = atomic_fetch_add(&run->next, 1)) < run->n_items)
        if (loop_item(self, item))
            atomic_fetch_add(&run->n_done, 1);
        else
            run_note_failure(run, "loop", self->worker->reason);
    return NULL;
}

/* The calling thread is the first. */
gpst_result loop_run(job_run* run) {
    loop loops[JOB_MOST_THREADS];
    pthread_t threads[JOB_MOST_THREADS];
    uint32_t n = 0, n_started = 0;
    memset(loops, 0, sizeof loops);
    while (n < run->n_threads && (loops[n].worker = worker_create()) != NULL)
        loops[n++].run = run;
    for (uint32_t t = 1; n == run->n_threads && t < n && pthread_create(&threads[t], NULL, loop_main, &loops[t]) == 0;
         t++)
        n_started = t;
    const bool all = n == run->n_threads && n_started == n - 1;
    if (all)
        loop_main(&loops[0]);
    else
        atomic_store(&run->next, run->n_items);
    for (uint32_t t = 1; t <= n_started; t++)
        pthread_join(threads[t], NULL);
    if (all && n == 1) {
        run->demands.disk_in = (double)loops[0].disk_in_ns * 1e-9;
        run->demands.disk_out = (double)loops[0].disk_out_ns * 1e-9;
        run->demands.one_at_a_time = run->job->one_at_a_time ? (double)loops[0].work_ns * 1e-9 : 0.0;
    }
    for (uint32_t t = 0; t < n; t++)
        worker_free(loops[t].worker);
    return all ? GPST_OK : GPST_ERROR_MEMORY;
}
