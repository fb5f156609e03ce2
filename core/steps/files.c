/* core/steps/files.c -- READ and WRITE: what is in the page cache, or is small and not synced, on the thread itself;
   the rest by the reader's and the writer's threads, while the batch is parked. */
#include "../base/platform_internal.h"

#include "../files/io_internal.h"
#include "steps_internal.h"

#define GPSTI_FILES_WRITE_BYTES ((size_t)4 << 20) /* of a part, not synced: more are the writer's */

/* ---- READ ------------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_read_done(gpst_read* read) { /* on the reader's thread */
    gpsti_item* const item = (gpsti_item*)read->user_data;
    const gpsti_locked locked = gpsti_lock(item->pipeline->context);
    gpsti_count_read(item);
    gpsti_batch_return(locked, &item->batch, read->result);
    gpsti_unlock(locked);
}

/* A read waits for the disk: the system is asked to read the next files ahead. Not locked. */
GPSTI_PRIVATE void gpsti_read_advise(gpst_pipeline* pipeline, uint64_t index) {
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    const uint64_t end = index + 2 * (uint64_t)desc->n_reads;
    uint64_t k = pipeline->files.advised > index ? pipeline->files.advised : index + 1;
    const uint64_t to = end < desc->n_paths ? end : desc->n_paths;
    pipeline->files.advised = to > pipeline->files.advised ? to : pipeline->files.advised;
    gpsti_unlock(locked);
    for (; k < to; k++)
        gpsti_path_will_need(desc->paths[k]);
}

/* True: parked, the reader's threads have the read. False: this thread must read. */
GPSTI_PRIVATE bool gpsti_read_park(gpsti_run* run, gpsti_batch* batch) {
    gpst_pipeline* const pipeline = run->pipeline;
    gpsti_item* const item = batch->item;
    const uint64_t index = item->shown.index;
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    const bool advises = desc->source && !desc->no_prefetch && desc->n_paths > 0 &&
                         gpsti_reader_goes_by_cache(pipeline->files.reader, &item->read);
    if (GPST_FAILED(gpsti_reader_start(pipeline->files.reader))) /* the system gives no thread */
        return false;
    item->read.done = gpsti_read_done;
    const gpsti_locked locked = gpsti_run_lock(run);
    gpsti_a32_store(&pipeline->files.reads_wait, 1);
    batch->ready_ns = gpsti_now_ns();
    const bool parked = !GPST_FAILED(gpst_reader_submit(pipeline->files.reader, &item->read));
    if (parked)
        gpsti_item_enter(locked, item, GPSTI_ITEM_FILE);
    gpsti_unlock(locked);
    if (parked && advises)
        gpsti_read_advise(pipeline, index);
    return parked;
}

/* What was read is the item's; or it waits for memory, and reads again. */
GPSTI_PRIVATE gpsti_outcome gpsti_read_take(gpsti_batch* batch) {
    gpsti_item* const item = batch->item;
    if (item->read.result == GPST_ERROR_WOULD_BLOCK && item->wants[GPSTI_OF_HOST] > 0 && !item->denied)
        return GPSTI_AGAIN;
    if (item->read.result == GPST_ERROR_WOULD_BLOCK)
        gpsti_batch_fail(batch, GPST_ERROR_BUDGET, item->read.reason);
    item->denied = false;
    item->shown.file_data = item->file.data ? item->file.data : "";
    item->shown.file_bytes = item->read.bytes;
    if (GPST_FAILED(item->read.result))
        gpsti_batch_fail(batch, item->read.result, item->read.reason);
    return GPSTI_DONE;
}

GPSTI_PRIVATE gpsti_outcome gpsti_read_run(gpsti_run* run, gpsti_batch* batch) {
    gpst_pipeline* const pipeline = run->pipeline;
    gpst_read* const read = &batch->item->read;
    gpsti_service service;
    gpsti_item_prepare_read(batch->item);
    gpsti_service_begin(&service, batch);
    if (gpsti_is_plain(pipeline))
        gpsti_reader_read_plain(pipeline->context, read, &pipeline->signals.cancel);
    else if (!gpsti_reader_try(pipeline->files.reader, read)) {
        if (gpsti_read_park(run, batch))
            return GPSTI_PARKED;
        gpsti_reader_read_here(pipeline->files.reader, read);
    } else {
        gpsti_a32_store(&pipeline->files.reads_wait, 0);
    }
    service.bytes = read->bytes;
    gpsti_service_end(&service, read->result);
    gpsti_run_keep(run, &service);
    return gpsti_read_take(batch);
}

GPSTI_PRIVATE gpsti_outcome gpsti_read_end(gpsti_run* run, gpsti_batch* batch) {
    (void)run;
    return gpsti_read_take(batch);
}

GPSTI_PRIVATE bool gpsti_read_count(gpst_pipeline* pipeline, const gpsti_service* service) {
    gpsti_counts* const counts = &pipeline->counts;
    const int64_t busy_ns = service->end_ns - service->start_ns;
    gpsti_clock_add(&counts->clocks[service->step->first_clock], busy_ns, 0, service->bytes, service->failed);
    counts->own_read_ns += busy_ns;
    counts->bytes_read += service->bytes;
    gpsti_busy_add(&counts->busy[GPST_RESOURCE_DISK_IN], service->start_ns, service->end_ns);
    return true;
}

GPSTI_PRIVATE gpst_result gpsti_read_check(const gpst_pipeline_desc* desc, uint32_t s) {
    (void)desc;
    GPSTI_FAIL_IF(s != 0, GPST_ERROR_ARGUMENT, "gpst_pipeline_create: stages[%u].kind=READ: only the first stage reads",
                  s);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_read_plan(const gpst_pipeline* pipeline, gpsti_step* step, bool asynchronous) {
    (void)pipeline;
    (void)asynchronous;
    step->repeatable = true;
}

GPSTI_INTERN const gpsti_step_kind* gpsti_step_read(void) {
    static const gpsti_step_kind kind = {GPST_RESOURCE_DISK_IN,
                                         /* joins */ false,
                                         /* calls */ false,     gpsti_read_check, gpsti_read_plan,
                                         /* queues */ NULL,
                                         /* next */ NULL,
                                         /* goes_along */ NULL,
                                         /* formed */ NULL,
                                         /* run_all */ NULL,    gpsti_read_run,   gpsti_read_end,  gpsti_read_count};
    return &kind;
}

/* ---- WRITE ------------------------------------------------------------------------------------ */

/* On the writer's thread. The last file of a part returns it, or where the item was not split the item. */
GPSTI_PRIVATE void gpsti_write_done(gpsti_write* write) {
    gpsti_output_file* const file = (gpsti_output_file*)write->user_data;
    gpsti_item* const item = file->item;
    gpst_pipeline* const pipeline = item->pipeline;
    gpsti_part* const part = &item->parts[file->part];
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    const gpsti_step* const step = &pipeline->plan.steps[pipeline->plan.n_steps - 2];
    gpsti_batch* const batch = step->per_picture ? &part->batch : &item->batch;
    gpsti_count_write(pipeline, write, batch->ready_ns);
    if (GPST_FAILED(write->result))
        gpsti_item_fail(item, write->result, gpsti_step_name(&pipeline->plan, step), write->reason);
    pipeline->files.n_writing--;
    const bool last = --part->writes_pending == 0;
    if (last)
        gpsti_batch_return(locked, batch, GPST_OK);
    gpsti_unlock(locked);
}

/* Files that are not synced go to the page cache, which is work of a core: small ones are written on this thread. A
   plain loop writes all of them so. */
GPSTI_PRIVATE bool gpsti_write_is_here(const gpst_pipeline* pipeline, const gpsti_part* part) {
    size_t bytes = 0;
    bool syncs = false;
    const gpsti_output_file* file = part->files;
    if (part->n_files == 0 || gpsti_is_plain(pipeline))
        return true;
    for (uint32_t e = 0; e < part->n_files; e++, file = file->next) {
        bytes += file->write.bytes;
        syncs = syncs || file->write.sync;
    }
    return !syncs && !gpsti_io_models_disk(pipeline->context) && bytes <= GPSTI_FILES_WRITE_BYTES;
}

GPSTI_PRIVATE void gpsti_write_here(gpsti_run* run, gpsti_batch* batch) {
    gpsti_part* const part = &batch->item->parts[batch->part];
    gpsti_output_file* file = part->files;
    for (uint32_t e = 0; e < part->n_files && !gpsti_item_has_failed(batch->item); e++, file = file->next) {
        gpsti_service service;
        gpsti_service_begin(&service, batch);
        gpsti_writer_write_here(run->pipeline->context, &file->write);
        service.bytes = file->write.bytes;
        gpsti_service_end(&service, file->write.result);
        gpsti_run_keep(run, &service);
        if (GPST_FAILED(file->write.result))
            gpsti_batch_fail(batch, file->write.result, file->write.reason);
    }
}

/* The writer's threads have the files, and may be done before this returns. */
GPSTI_PRIVATE void gpsti_write_park(gpsti_run* run, gpsti_batch* batch) {
    gpsti_item* const item = batch->item;
    gpsti_part* const part = &item->parts[batch->part];
    const uint32_t n_files = part->n_files;
    gpsti_output_file* file = part->files;
    const gpsti_locked locked = gpsti_run_lock(run);
    if (batch == &item->batch)
        gpsti_item_enter(locked, item, GPSTI_ITEM_WRITER);
    batch->ready_ns = gpsti_now_ns();
    part->writes_pending = n_files;
    run->pipeline->files.n_writing += n_files;
    for (uint32_t e = 0; e < n_files; e++) {
        gpsti_output_file* const next = file->next;
        file->write.done = gpsti_write_done;
        file->write.user_data = file;
        (void)gpsti_writer_submit(run->pipeline->files.writer, &file->write); /* cannot fail: the writer has a thread */
        file = next;
    }
    gpsti_unlock(locked);
}

GPSTI_PRIVATE gpsti_outcome gpsti_write_run(gpsti_run* run, gpsti_batch* batch) {
    const gpsti_part* const part = &batch->item->parts[batch->part];
    if (gpsti_write_is_here(run->pipeline, part) || GPST_FAILED(gpsti_writer_start(run->pipeline->files.writer))) {
        gpsti_write_here(run, batch);
        return GPSTI_DONE;
    }
    gpsti_write_park(run, batch);
    return GPSTI_PARKED;
}

GPSTI_PRIVATE gpsti_outcome gpsti_write_end(gpsti_run* run, gpsti_batch* batch) {
    (void)run;
    (void)batch;
    return GPSTI_DONE;
}

GPSTI_PRIVATE bool gpsti_write_count(gpst_pipeline* pipeline, const gpsti_service* service) {
    gpsti_counts* const counts = &pipeline->counts;
    const int64_t busy_ns = service->end_ns - service->start_ns;
    gpsti_clock_add(&counts->clocks[service->step->first_clock], busy_ns, 0, service->bytes, service->failed);
    counts->own_write_ns += busy_ns;
    counts->bytes_written += service->failed ? 0 : service->bytes;
    gpsti_busy_add(&counts->busy[GPST_RESOURCE_DISK_OUT], service->start_ns, service->end_ns);
    return true;
}

GPSTI_PRIVATE gpst_result gpsti_write_check(const gpst_pipeline_desc* desc, uint32_t s) {
    GPSTI_FAIL_IF(s + 1 != desc->n_stages, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].kind=WRITE: only the last stage writes", s);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_write_plan(const gpst_pipeline* pipeline, gpsti_step* step, bool asynchronous) {
    (void)asynchronous;
    step->per_picture = pipeline->plan.n_parts > 1;
    step->concurrency = gpsti_step_stage(pipeline, step)->concurrency;
}

GPSTI_INTERN const gpsti_step_kind* gpsti_step_write(void) {
    static const gpsti_step_kind kind = {GPST_RESOURCE_DISK_OUT, /* joins */ false,
                                         /* calls */ false,      gpsti_write_check,  gpsti_write_plan,
                                         /* queues */ NULL,      /* next */ NULL,    /* goes_along */ NULL,
                                         /* formed */ NULL,      /* run_all */ NULL, gpsti_write_run,
                                         gpsti_write_end,        gpsti_write_count};
    return &kind;
}
