/* core/steps/encode.c -- ENCODE: pictures made files, each by a core, or where they are on the device all of an item's
   there. */
#include "../base/platform_internal.h"

#include "engines_internal.h"

#include <string.h>

/* ---- on the device ------------------------------------------------------------------------------------ */

/* Are all pictures that the step encodes on the device, and may and should it encode them? */
GPSTI_PRIVATE bool gpsti_encode_is_on_device(gpsti_item* item, const gpsti_step* step) {
    gpst_pipeline* const pipeline = item->pipeline;
    const gpsti_stage* const stage = &pipeline->plan.stages[step->first_stage];
    const gpsti_set* const set = &item->sets[gpsti_set_of(step->reads)];
    if (stage->codec == GPST_CODEC_EXACT || item->on_cpu || !(set->valid & GPSTI_ON_DEVICE(0)) || set->n == 0 ||
        set->n > GPSTI_ENGINES_MOST_FILES || set->count)
        return false;
    for (uint32_t i = 0; i < set->n; i++)
        if (!set->on_device[i].data || set->on_device[i].pitch_bytes < 0 ||
            (set->on_device[i].format != GPST_FORMAT_RGB && set->on_device[i].format != GPST_FORMAT_BGR))
            return false;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    const bool worth = gpsti_engines_are_worth_it(pipeline, stage->codec, 1);
    gpsti_unlock(locked);
    return worth && gpsti_engines_open(pipeline);
}

/* An item's pictures on their way to files: before[i] bytes lie ahead of what the device makes of picture i. */
typedef struct gpsti_encode {
    gpsti_nvjpeg_op op;
    gpsti_nvjpeg_picture pictures[GPSTI_ENGINES_MOST_FILES];
    size_t before[GPSTI_ENGINES_MOST_FILES];
} gpsti_encode;

/* The files to the host, where their rooms are. Nobody waits for memory who has a mutex that others wait for. */
GPSTI_PRIVATE gpst_result gpsti_encode_retrieve(gpsti_item* item, gpsti_encode* self) {
    for (uint32_t i = 0; i < self->op.n_pictures; i++) {
        gpsti_nvjpeg_picture* const picture = &self->pictures[i];
        GPSTI_TRY(gpsti_task_encoded(item, i, self->before[i] + picture->bytes, false, &picture->out));
        picture->out = (uint8_t*)picture->out + self->before[i];
    }
    self->op.operation = GPSTI_NVJPEG_RETRIEVE;
    return gpsti_nvjpeg_call(item->works[0].stream, &self->op);
}

GPSTI_PRIVATE gpst_result gpsti_encode_run(gpsti_item* item, const gpst_jpeg_encode_desc* desc, gpsti_encode* self) {
    gpsti_nvjpeg_op* const op = &self->op;
    op->operation = GPSTI_NVJPEG_ENCODE;
    op->self = item->pipeline->engines->nvjpeg;
    op->quality = desc->quality ? desc->quality : GPSTI_JPEG_QUALITY;
    op->chroma = desc->chroma ? desc->chroma : GPST_FORMAT_JPEG_444;
    op->optimise = desc->optimise;
    GPSTI_TRY(gpsti_device_work_prepare(item, &item->works[0]));
    if (item->given.borrowed && item->given.ready) /* it may be the lent frame itself */
        GPSTI_TRY(gpsti_stream_await(item->works[0].stream, item->given.ready));
    GPSTI_TRY(gpsti_nvjpeg_call(item->works[0].stream, op));
    return gpsti_encode_retrieve(item, self);
}

GPSTI_PRIVATE gpst_result gpsti_encode_emit(gpsti_item* item, const gpsti_step* step, const gpsti_encode* self,
                                            uint32_t worker_index, char* reason) {
    for (uint32_t i = 0; i < self->op.n_pictures; i++) {
        gpsti_encoded encoded;
        encoded.before = self->before[i];
        encoded.room = (uint8_t*)self->pictures[i].out - encoded.before;
        encoded.bytes = encoded.before + self->pictures[i].bytes;
        GPSTI_TRY(gpsti_call_encoded(item, step->first_stage, i, worker_index, &encoded, reason));
    }
    return GPST_OK;
}

/* *refused: the cores may do it. */
GPSTI_PRIVATE gpst_result gpsti_encode_on_device(gpsti_item* item, const gpsti_step* step, uint32_t worker_index,
                                                 bool* refused, char* reason) {
    gpst_pipeline* const pipeline = item->pipeline;
    const uint32_t from = gpsti_set_of(step->reads);
    const gpsti_set* const set = &item->sets[from];
    gpsti_encode self;
    uint64_t bytes = 0;
    memset(&self, 0, sizeof self);
    for (uint32_t i = 0; i < set->n; i++) {
        self.pictures[i].image = set->on_device[i];
        *refused = GPST_FAILED(gpsti_call_ask_segments(item, step->first_stage, i, &self.before[i]));
        if (*refused) /* the cores will say so */
            return GPST_ERROR_CALLBACK;
    }
    const uint32_t which = worker_index % GPSTI_ENGINES_ENCODERS;
    self.op.worker = &pipeline->engines->encoders[which];
    self.op.pictures = self.pictures;
    self.op.n_pictures = set->n;
    gpsti_mutex_lock(&pipeline->engines->encoding[which]); /* for about 2 ms */
    const gpst_result result =
        gpsti_encode_run(item, &pipeline->plan.stages[step->first_stage].desc.encode->jpeg, &self);
    gpsti_mutex_unlock(&pipeline->engines->encoding[which]);
    *refused = GPST_FAILED(result);
    if (*refused) {
        if (result != GPST_ERROR_WOULD_BLOCK) /* no memory was free: the cores wait for it */
            gpsti_engines_note_failure(pipeline, result, gpst_last_reason());
        return result;
    }
    for (uint32_t i = 0; i < set->n; i++)
        bytes += self.pictures[i].bytes;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    gpsti_count_copy(pipeline, from, false, set->n, bytes);
    gpsti_unlock(locked);
    GPSTI_TRY(gpsti_encode_emit(item, step, &self, worker_index, reason));
    item->encoder = "nvJPEG";
    return GPST_OK;
}

/* ---- the kind --------------------------------------------------------------------------------------------- */

/* Else the pictures come to the host, and each is a part. */
GPSTI_PRIVATE gpsti_outcome gpsti_encode_run_all(gpsti_run* run, gpsti_item* item) {
    const gpsti_step* const step = gpsti_batch_step(&item->batch);
    char reason[GPST_REASON_BYTES];
    gpsti_service service;
    bool refused = false;
    if (gpsti_encode_is_on_device(item, step)) {
        gpsti_service_begin(&service, &item->batch);
        const gpst_result result = gpsti_encode_on_device(item, step, run->worker_index, &refused, reason);
        if (!refused) {
            gpsti_service_end(&service, result);
            gpsti_run_keep(run, &service);
            if (GPSTI_ENDS_ITEM(result))
                gpsti_batch_fail(&item->batch, result, reason);
            return GPSTI_DONE;
        }
    }
    if (gpsti_host_fetch(&item->batch) == GPSTI_AGAIN)
        return GPSTI_AGAIN;
    if (item->sets[gpsti_set_of(step->reads)].n > 0)
        item->encoder = gpsti_codec_encoder(gpsti_step_stage(run->pipeline, step)->encode);
    return GPSTI_OTHER_FORM;
}

GPSTI_PRIVATE gpst_result gpsti_encode_check(const gpst_pipeline_desc* desc, uint32_t s) {
    const gpst_encode_desc* const encode = desc->stages[s].encode;
    const gpst_image pixel = {NULL, 0, 1, 1, GPST_FORMAT_RGB, GPST_DTYPE_U8, GPST_LAYOUT_HWC, 0};
    char where[64];
    size_t bytes = 0;
    GPSTI_FAIL_IF(!desc->stages[s].func, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].func=NULL: required for HOST, DEVICE and ENCODE", s);
    if (!encode)
        return GPST_OK;
    GPSTI_FAIL_IF((int)encode->codec < 0 || encode->codec > GPST_CODEC_GPU, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].encode: codec=%d: unknown", s, (int)encode->codec);
    GPSTI_FAIL_IF((int)encode->kind < 0 || encode->kind > GPST_FILE_JPEG, GPST_ERROR_ARGUMENT,
                  "gpst_pipeline_create: stages[%u].encode: kind=%d: unknown", s, (int)encode->kind);
    gpsti_format(where, sizeof where, "gpst_pipeline_create: stages[%u].encode", s);
    GPSTI_FAIL_IF(encode->segments && encode->kind != GPST_FILE_UNKNOWN && encode->kind != GPST_FILE_JPEG,
                  GPST_ERROR_ARGUMENT, "gpst_pipeline_create: stages[%u].encode: segments: only for JPEG", s);
    const gpst_result result = gpst_jpeg_bound(&pixel, &encode->jpeg, &bytes);
    if (GPST_FAILED(result))
        return gpsti_fail_in(result, where);
    gpsti_format(where, sizeof where, "gpst_pipeline_create: stages[%u].encode->jpeg", s);
    const bool is_jpeg = encode->kind == GPST_FILE_UNKNOWN || encode->kind == GPST_FILE_JPEG;
    return is_jpeg ? gpsti_jpeg_check_options(&encode->jpeg, where) : GPST_OK;
}

GPSTI_PRIVATE void gpsti_encode_plan(const gpst_pipeline* pipeline, gpsti_step* step, bool asynchronous) {
    (void)asynchronous;
    step->per_picture = true;
    step->concurrency = gpsti_step_stage(pipeline, step)->concurrency;
}

GPSTI_INTERN const gpsti_step_kind* gpsti_step_encode(void) {
    static const gpsti_step_kind kind = {GPST_RESOURCE_CPU,
                                         /* joins */ false,
                                         /* calls */ true,      gpsti_encode_check,   gpsti_encode_plan,
                                         /* queues */ NULL,
                                         /* next */ NULL,
                                         /* goes_along */ NULL,
                                         /* formed */ NULL,     gpsti_encode_run_all, gpsti_host_call,
                                         /* returned */ NULL,
                                         /* count */ NULL};
    return &kind;
}
