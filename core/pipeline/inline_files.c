/* core/pipeline/inline_files.c -- READ and WRITE of a job that runs inline: what is in the page cache, or is small and
   not synced, on the thread itself; the rest by the reader's and the writer's threads, while the job is parked. */
#include "../base/platform_internal.h"

#include "../files/io_internal.h"
#include "pipeline_internal.h"

#define GPSTI_INLINE_WRITE_BYTES ((size_t)4 << 20) /* of a part, not synced: more are the writer's */

/* Called on the reader's thread. */
GPSTI_PRIVATE void gpsti_inline_read_done(gpst_read* read) {
    gpsti_item* const item = (gpsti_item*)read->user_data;
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    pipeline->files.n_reading--;
    (void)gpsti_a32_add(&pipeline->flow.n_parked, UINT32_MAX);
    gpsti_account_read(pipeline, item);
    item->shown.file_data = item->file.data ? item->file.data : "";
    item->shown.file_bytes = read->bytes;
    if (GPST_FAILED(read->result))
        gpsti_item_fail(item, read->result, gpsti_step_name(pipeline, &pipeline->plan.steps[item->job.step]),
                        read->reason);
    gpsti_flight_send(&item->job, gpsti_flight_next_step(item, item->job.step));
    gpsti_mutex_unlock(&scheduler->mutex);
}

/* A read waits for the disk: the system is asked to read the next files ahead. Not locked. */
GPSTI_PRIVATE void gpsti_inline_advise(gpst_pipeline* pipeline, uint64_t index) {
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    const uint64_t end = index + 2 * (uint64_t)desc->n_reads;
    uint64_t k = pipeline->files.advised > index ? pipeline->files.advised : index + 1;
    const uint64_t to = end < desc->n_paths ? end : desc->n_paths;
    pipeline->files.advised = to > pipeline->files.advised ? to : pipeline->files.advised;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    for (; k < to; k++)
        gpsti_path_will_need(desc->paths[k]);
}

/* True: parked, the reader's threads have the read. False: this thread must read. */
GPSTI_PRIVATE bool gpsti_inline_park_read(gpsti_run* run, gpsti_job* job) {
    gpst_pipeline* const pipeline = run->pipeline;
    gpsti_item* const item = job->item;
    const uint64_t index = item->shown.index;
    const bool advises = pipeline->plan.desc.source && !pipeline->plan.desc.no_prefetch &&
                         pipeline->plan.desc.n_paths > 0 &&
                         gpsti_reader_goes_by_cache(pipeline->files.reader, &item->read);
    if (GPST_FAILED(gpsti_reader_start(pipeline->files.reader))) /* the system gives no thread */
        return false;
    item->read.done = gpsti_inline_read_done;
    gpsti_run_lock(run);
    gpsti_a32_store(&pipeline->files.reads_wait, 1);
    pipeline->files.n_reading++;
    (void)gpsti_a32_add(&pipeline->flow.n_parked, 1);
    job->ready_ns = gpsti_now_ns();
    const bool parked = !GPST_FAILED(gpst_reader_submit(pipeline->files.reader, &item->read));
    if (!parked) {
        pipeline->files.n_reading--;
        (void)gpsti_a32_add(&pipeline->flow.n_parked, UINT32_MAX);
    }
    gpsti_run_unlock(run);
    if (parked && advises)
        gpsti_inline_advise(pipeline, index);
    return parked;
}

GPSTI_INTERN gpsti_job* gpsti_inline_read(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpst_pipeline* const pipeline = run->pipeline;
    gpsti_item* const item = job->item;
    const bool plain = gpsti_flight_is_plain(pipeline);
    gpsti_service service;
    gpsti_item_prepare_read(item);
    gpsti_service_begin(&service, step, job);
    if (plain)
        gpsti_reader_read_plain(pipeline->context, &item->read, &pipeline->flow.cancel);
    else if (!gpsti_reader_try(pipeline->files.reader, &item->read)) {
        if (gpsti_inline_park_read(run, job))
            return NULL;
        gpsti_reader_read_here(pipeline->files.reader, &item->read);
    } else {
        gpsti_a32_store(&pipeline->files.reads_wait, 0);
    }
    service.bytes = item->read.bytes;
    gpsti_service_end(&service, item->read.result);
    gpsti_run_keep(run, &service);
    item->shown.file_data = item->file.data ? item->file.data : "";
    item->shown.file_bytes = item->read.bytes;
    if (GPST_FAILED(item->read.result))
        gpsti_inline_fail(job, item->read.result, item->read.reason);
    return gpsti_inline_next(run, job);
}

/* Called on the writer's thread. */
GPSTI_PRIVATE void gpsti_inline_write_done(gpsti_write* write) {
    gpsti_output_file* const file = (gpsti_output_file*)write->user_data;
    gpsti_item* const item = file->item;
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_part* const part = &item->parts[file->part];
    gpsti_mutex_lock(&scheduler->mutex);
    (void)gpsti_a32_add(&pipeline->flow.n_parked, UINT32_MAX);
    const gpsti_step* const step = &pipeline->plan.steps[pipeline->plan.n_steps - 2];
    gpsti_job* const job = step->per_picture ? &part->job : &item->job;
    gpsti_account_write(pipeline, write, job->ready_ns);
    if (GPST_FAILED(write->result))
        gpsti_item_fail(item, write->result, gpsti_step_name(pipeline, step), write->reason);
    if (--part->writes_pending == 0 && (!step->per_picture || --item->pending == 0))
        gpsti_flight_send(&item->job, gpsti_flight_next_step(item, job->step));
    gpsti_mutex_unlock(&scheduler->mutex);
}

/* Files that are not synced go to the page cache, which is work of a core: small ones are written on this thread. A
   plain loop writes all of them so. */
GPSTI_PRIVATE bool gpsti_inline_writes_here(const gpst_pipeline* pipeline, const gpsti_part* part) {
    size_t bytes = 0;
    const gpsti_output_file* file = part->files;
    if (part->n_files == 0 || gpsti_flight_is_plain(pipeline))
        return true;
    for (uint32_t e = 0; e < part->n_files; e++, file = file->next)
        bytes += file->write.bytes;
    return pipeline->plan.desc.fsync == GPST_FSYNC_NONE && !gpsti_io_models_disk(pipeline->context) &&
           bytes <= GPSTI_INLINE_WRITE_BYTES;
}

GPSTI_PRIVATE void gpsti_inline_write_here(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    gpsti_part* const part = &job->item->parts[job->part];
    gpsti_output_file* file = part->files;
    for (uint32_t e = 0; e < part->n_files && !gpsti_item_has_failed(job->item); e++, file = file->next) {
        gpsti_service service;
        gpsti_service_begin(&service, step, job);
        gpsti_writer_write_here(run->pipeline->context, &file->write);
        service.bytes = file->write.bytes;
        gpsti_service_end(&service, file->write.result);
        gpsti_run_keep(run, &service);
        if (GPST_FAILED(file->write.result))
            gpsti_inline_fail(job, file->write.result, file->write.reason);
    }
}

/* Parks the job: the writer's threads have the files, and may be done before this returns. */
GPSTI_PRIVATE void gpsti_inline_park_writes(gpsti_run* run, gpsti_job* job) {
    gpst_pipeline* const pipeline = run->pipeline;
    gpsti_part* const part = &job->item->parts[job->part];
    const uint32_t n_files = part->n_files;
    gpsti_output_file* file = part->files;
    gpsti_run_lock(run);
    if (job != &job->item->job)
        gpsti_inline_offer_parts(job->item);
    job->ready_ns = gpsti_now_ns();
    part->writes_pending = n_files;
    (void)gpsti_a32_add(&pipeline->flow.n_parked, n_files);
    for (uint32_t e = 0; e < n_files; e++) {
        gpsti_output_file* const next = file->next;
        file->write.done = gpsti_inline_write_done;
        file->write.user_data = file;
        (void)gpsti_writer_submit(pipeline->files.writer, &file->write); /* cannot fail: the writer has a thread */
        file = next;
    }
    gpsti_run_unlock(run);
}

GPSTI_INTERN gpsti_job* gpsti_inline_write(gpsti_run* run, gpsti_job* job, gpsti_step* step) {
    if (gpsti_inline_writes_here(run->pipeline, &job->item->parts[job->part]) ||
        GPST_FAILED(gpsti_writer_start(run->pipeline->files.writer))) {
        gpsti_inline_write_here(run, job, step);
        return gpsti_inline_next(run, job);
    }
    gpsti_inline_park_writes(run, job);
    return NULL;
}
