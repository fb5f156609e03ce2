/* tools/gpustage/job_stages.c -- the hooks of the library's job that decode and encode what it does not know: PNG, and
   files without a header; and masks beside views. Each runs on any worker. */
#include "job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

gpst_result job_worker_init(void* user_data, uint32_t worker_index, void** worker_state) {
    const job* const self = (const job*)user_data;
    (void)worker_index;
    job_worker* const worker = (job_worker*)calloc(1, sizeof *worker);
    if (!worker)
        return GPST_ERROR_MEMORY;
    worker->codec = codec_create();
    if (!worker->codec) {
        free(worker);
        return GPST_ERROR_MEMORY;
    }
    codec_set_limits(worker->codec, &self->desc.asked->limits);
    *worker_state = worker;
    return GPST_OK;
}

void job_worker_term(void* user_data, uint32_t worker_index, void* worker_state) {
    (void)user_data;
    (void)worker_index;
    job_worker* const worker = (job_worker*)worker_state;
    if (!worker)
        return;
    codec_destroy(worker->codec);
    free(worker->scratch);
    free(worker);
}

gpst_result job_decode(void* user_data, gpst_task* task) {
    const job* const self = (const job*)user_data;
    const job_worker* const worker = (const job_worker*)task->worker_state;
    const gpst_item* const item = task->item;
    char reason[CODEC_REASON_BYTES] = "";
    codec_kind kind = CODEC_UNKNOWN;
    gpst_image shape, picture;
    gpst_result result = codec_read_header(worker->codec, item->file_data, item->file_bytes,
                                           &self->desc.asked->raw, &kind, &shape, reason);
    if (GPST_FAILED(result))
        return gpst_task_fail(task, result, "%s", reason);
    if (kind == CODEC_RAW) /* used where the file was read to */
        return gpst_task_map_picture(task, 0, 0, &shape, 0, &picture);
    result = gpst_task_set_picture(task, 0, 0, &shape, &picture);
    if (GPST_FAILED(result))
        return result;
    result = codec_decode(worker->codec, item->file_data, item->file_bytes, kind, &picture, reason);
    return GPST_FAILED(result) ? gpst_task_fail(task, result, "%s", reason) : GPST_OK;
}

static gpst_result job_fit_scratch(job_worker* worker, gpst_task* task, size_t bytes) {
    if (worker->scratch_bytes >= bytes)
        return GPST_OK;
    free(worker->scratch);
    worker->scratch = malloc(bytes);
    worker->scratch_bytes = worker->scratch ? bytes : 0;
    return worker->scratch
               ? GPST_OK
               : gpst_task_fail(task, GPST_ERROR_MEMORY, "out of memory: %zu bytes to encode in", bytes);
}

/* By way of the worker's scratch: the slot has room for what it is, not for the most that it can be. */
static gpst_result job_encode_picture(const job* self, gpst_task* task, const gpst_image* picture,
                                      size_t* bytes) {
    job_worker* const worker = (job_worker*)task->worker_state;
    const codec_options settings = {0, 0};
    char reason[CODEC_REASON_BYTES] = "";
    void* room = NULL;
    *bytes = codec_encode_bound(self->desc.kind, picture, &settings);
    if (*bytes == 0)
        return gpst_task_fail(task, GPST_ERROR_UNSUPPORTED, "%ux%u: too large for .%s", picture->width,
                              picture->height, codec_extension(self->desc.kind));
    gpst_result result = job_fit_scratch(worker, task, *bytes);
    if (GPST_FAILED(result))
        return result;
    result = codec_encode(worker->codec, self->desc.kind, picture, &settings, worker->scratch, bytes, reason);
    if (GPST_FAILED(result))
        return gpst_task_fail(task, result, "%s", reason);
    result = gpst_task_encoded(task, *bytes, &room);
    if (!GPST_FAILED(result))
        memcpy(room, worker->scratch, *bytes);
    return result;
}

gpst_result job_emit_mask(void* user_data, gpst_task* task, const char* beside) {
    const job* const self = (const job*)user_data;
    const mask_view* const view = &self->desc.mask->views[task->picture_index];
    char path[OUTPUTS_PATH_BYTES];
    void* room = NULL;
    if (snprintf(path, sizeof path, "%s.png", beside) >= (int)sizeof path)
        return gpst_task_fail(task, GPST_ERROR_ARGUMENT, "the output's path is too long");
    const gpst_result result = gpst_task_encoded(task, view->bytes, &room);
    if (GPST_FAILED(result))
        return result;
    memcpy(room, view->data, view->bytes);
    return gpst_task_emit(task, path, view->bytes);
}

gpst_result job_encode(void* user_data, gpst_task* task, const gpst_image* picture, const char* path) {
    const job* const self = (const job*)user_data;
    size_t bytes = 0;
    gpst_result result = job_encode_picture(self, task, picture, &bytes);
    if (!GPST_FAILED(result))
        result = gpst_task_emit(task, path, bytes);
    if (!GPST_FAILED(result) && self->desc.mask->n_views > 0)
        result = job_emit_mask(user_data, task, path);
    return result;
}
