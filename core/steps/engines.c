/* core/steps/engines.c -- nvJPEG for a pipeline: whether it is there, when it is worth opening, opened and closed. */
#include "../base/platform_internal.h"

#include "engines_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- made and unmade ------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_codec gpsti_engines_asked(const gpst_stage_desc* stage) {
    if (stage->kind == GPST_STAGE_DECODE && stage->decode)
        return stage->decode->codec;
    if (stage->kind != GPST_STAGE_ENCODE || !stage->encode)
        return GPST_CODEC_EXACT;
    const gpst_encode_desc* const encode = stage->encode;
    const bool able = (encode->kind == GPST_FILE_UNKNOWN || encode->kind == GPST_FILE_JPEG) &&
                      encode->jpeg.restart_rows == 0 && encode->jpeg.chroma != GPST_FORMAT_JPEG_440;
    return able ? encode->codec : GPST_CODEC_EXACT;
}

GPSTI_PRIVATE gpst_result gpsti_engines_make(gpst_pipeline* pipeline) {
    gpsti_engines* const jpeg = pipeline->engines;
    gpsti_host* const host = &pipeline->context->host;
    GPSTI_FAIL_IF(pipeline->plan.device_on_host, GPST_ERROR_UNSUPPORTED, "the device is the CPU");
    GPSTI_FAIL_IF(strcmp(pipeline->context->info.backend, "cuda") && !getenv("GPUSTAGE_LIBNVJPEG"),
                  GPST_ERROR_UNSUPPORTED, "on cuda only"); /* one that was named knows its device */
    GPSTI_TRY(gpsti_nvjpeg_load(host, &jpeg->nvjpeg));
    jpeg->files = (gpsti_nvjpeg_file*)gpsti_alloc(host, GPSTI_ENGINES_MOST_FILES * sizeof *jpeg->files);
    jpeg->workers = (gpsti_nvjpeg_worker*)gpsti_alloc(host, (pipeline->plan.n_workers + 1) * sizeof *jpeg->workers);
    if (!jpeg->files || !jpeg->workers)
        return GPST_ERROR_MEMORY;
    for (; jpeg->n_mutexes < GPSTI_ENGINES_ENCODERS; jpeg->n_mutexes++)
        GPSTI_TRY(gpsti_mutex_init(&jpeg->encoding[jpeg->n_mutexes]));
    return gpsti_stream_make(&pipeline->context->public_device, &jpeg->stream);
}

/* Whoever asked for it by name is told once, whatever the path says later. Not locked. */
GPSTI_PRIVATE void gpsti_engines_warn(gpst_pipeline* pipeline, const char* reason) {
    bool asked = false;
    for (uint32_t s = 0; s < pipeline->plan.desc.n_stages; s++)
        asked = asked || gpsti_engines_asked(&pipeline->plan.stages[s].desc) == GPST_CODEC_GPU;
    const char* const why = pipeline->plan.device_on_host ? pipeline->context->info.backend_reason : "";
    if (asked)
        GPSTI_LOG(&pipeline->context->host, GPST_LOG_WARNING, GPSTI_NO_ITEM,
                  "JPEG by the cores, not by the GPU: %s%s%s", reason, why[0] ? ": " : "", why);
}

/* What is missing is no failure: the cores do it all, and the path says why. */
GPSTI_PRIVATE void gpsti_engines_find(gpst_pipeline* pipeline) {
    gpsti_engines* const jpeg = pipeline->engines;
    for (uint32_t s = 0; s < pipeline->plan.desc.n_stages; s++)
        if (gpsti_engines_asked(&pipeline->plan.stages[s].desc) != GPST_CODEC_EXACT)
            jpeg->asked = true;
    if (!jpeg->asked)
        return;
    jpeg->on = !GPST_FAILED(gpsti_engines_make(pipeline));
    if (!jpeg->on)
        gpsti_copy_text(jpeg->reason, sizeof jpeg->reason, gpst_last_reason());
    for (uint32_t s = 0; jpeg->on && s < pipeline->plan.desc.n_stages; s++) {
        gpsti_stage* const stage = &pipeline->plan.stages[s];
        const bool decode = stage->desc.kind == GPST_STAGE_DECODE;
        stage->codec = gpsti_engines_asked(&stage->desc);
        if (decode && (jpeg->decodes || !stage->planes)) /* batches of two stages would meet in the engines */
            stage->codec = GPST_CODEC_EXACT;
        jpeg->decodes = jpeg->decodes || (decode && stage->codec != GPST_CODEC_EXACT);
        jpeg->used = jpeg->used || stage->codec != GPST_CODEC_EXACT;
    }
    if (jpeg->on && !jpeg->used)
        gpsti_copy_text(jpeg->reason, sizeof jpeg->reason, "what DECODE writes is not for WARP stages alone");
    if (!jpeg->used)
        gpsti_engines_warn(pipeline, jpeg->reason);
}

GPSTI_INTERN gpst_result gpsti_engines_create(gpst_pipeline* pipeline) {
    pipeline->engines = (gpsti_engines*)gpsti_alloc(&pipeline->context->host, sizeof *pipeline->engines);
    if (!pipeline->engines)
        return GPST_ERROR_MEMORY;
    GPSTI_TRY(gpsti_cond_init(&pipeline->engines->decoder_room));
    pipeline->engines->has_room = true;
    gpsti_engines_find(pipeline);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_engines_call(gpst_pipeline* pipeline, gpsti_nvjpeg_operation operation,
                                             gpsti_nvjpeg_worker* worker) {
    gpsti_nvjpeg_op op = GPST_ZERO;
    op.operation = operation;
    op.self = pipeline->engines->nvjpeg;
    op.worker = worker;
    op.skip_hardware = !pipeline->engines->decodes;
    return gpsti_nvjpeg_call(pipeline->engines->stream, &op);
}

/* What one call of the device fails for by chance a second one may do; a lost device has taken everything along. */
GPSTI_PRIVATE bool gpsti_engines_end(gpst_pipeline* pipeline, gpsti_nvjpeg_operation operation,
                                     gpsti_nvjpeg_worker* worker) {
    gpst_result result = gpsti_engines_call(pipeline, operation, worker);
    if (GPST_FAILED(result) && result != GPST_ERROR_DEVICE_LOST)
        result = gpsti_engines_call(pipeline, operation, worker);
    if (worker)
        gpsti_nvjpeg_worker_free(pipeline->engines->nvjpeg, worker);
    return !GPST_FAILED(result);
}

GPSTI_INTERN void gpsti_engines_destroy(gpst_pipeline* pipeline) {
    gpsti_engines* const jpeg = pipeline->engines;
    gpsti_host* const host = &pipeline->context->host;
    bool ended = jpeg && jpeg->begun;
    if (!jpeg)
        return;
    for (uint32_t w = 0; jpeg->begun && w < pipeline->plan.n_workers + 1; w++)
        ended = gpsti_engines_end(pipeline, GPSTI_NVJPEG_WORKER_END, &jpeg->workers[w]) && ended;
    for (int i = 0; jpeg->begun && i < GPSTI_ENGINES_ENCODERS; i++)
        ended = gpsti_engines_end(pipeline, GPSTI_NVJPEG_WORKER_END, &jpeg->encoders[i]) && ended;
    while (jpeg->n_mutexes > 0)
        gpsti_mutex_term(&jpeg->encoding[--jpeg->n_mutexes]);
    if (ended) /* else states of workers are still alive in it */
        (void)gpsti_engines_end(pipeline, GPSTI_NVJPEG_END, NULL);
    gpsti_nvjpeg_unload(jpeg->nvjpeg);
    gpst_stream_destroy(jpeg->stream);
    if (jpeg->files)
        gpsti_free(host, jpeg->files, GPSTI_ENGINES_MOST_FILES * sizeof *jpeg->files);
    if (jpeg->workers)
        gpsti_free(host, jpeg->workers, (pipeline->plan.n_workers + 1) * sizeof *jpeg->workers);
    if (jpeg->has_room)
        gpsti_cond_term(&jpeg->decoder_room);
    gpsti_free(host, jpeg, sizeof *jpeg);
    pipeline->engines = NULL;
}

/* ---- when they are begun --------------------------------------------------------------------------- */

GPSTI_INTERN uint64_t gpsti_engines_n_to_come(const gpst_pipeline* pipeline, uint32_t n_queued) {
    const gpst_pipeline_desc* const desc = &pipeline->plan.desc;
    const uint64_t expected = desc->n_items_expected, asked = pipeline->items.next_index;
    if (!desc->source || pipeline->items.source_done)
        return n_queued;
    return expected == 0 ? UINT64_MAX : n_queued + (expected > asked ? expected - asked : 0);
}

/* Opening takes more than half a second. */
GPSTI_INTERN bool gpsti_engines_are_worth_it(const gpst_pipeline* pipeline, gpst_codec codec, uint32_t n_queued) {
    const gpsti_engines* const jpeg = pipeline->engines;
    gpsti_codec_load load;
    if (!jpeg->on || jpeg->begun || jpeg->begins)
        return jpeg->on && jpeg->begun;
    load.n_items = gpsti_engines_n_to_come(pipeline, n_queued);
    load.core_ns = gpsti_a64_load(&jpeg->decode_ns) + gpsti_a64_load(&jpeg->encode_ns);
    load.n_cores = pipeline->plan.n_workers;
    return codec == GPST_CODEC_GPU || gpsti_codec_is_worth_opening(&load);
}

GPSTI_INTERN bool gpsti_engines_open(gpst_pipeline* pipeline) {
    gpsti_engines* const jpeg = pipeline->engines;
    gpsti_locked locked = gpsti_lock(pipeline->context);
    const bool begins = jpeg->on && !jpeg->begun && !jpeg->begins;
    jpeg->begins = jpeg->begins || begins;
    gpsti_unlock(locked);
    const gpst_result result = begins ? gpsti_engines_call(pipeline, GPSTI_NVJPEG_BEGIN, NULL) : GPST_OK;
    locked = gpsti_lock(pipeline->context);
    if (begins) {
        jpeg->begins = false;
        jpeg->begun = !GPST_FAILED(result);
        jpeg->on = jpeg->begun;
        jpeg->has_engines = jpeg->nvjpeg->n_engines > 0;
        if (GPST_FAILED(result))
            gpsti_copy_text(jpeg->reason, sizeof jpeg->reason, gpst_last_reason());
    }
    const bool open = jpeg->on && jpeg->begun;
    gpsti_scheduler_wake(locked);
    gpsti_unlock(locked);
    if (GPST_FAILED(result))
        gpsti_engines_warn(pipeline, gpst_last_reason());
    return open;
}

GPSTI_INTERN void gpsti_engines_note_failure(gpst_pipeline* pipeline, gpst_result result, const char* reason) {
    gpsti_engines* const jpeg = pipeline->engines;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    jpeg->on = jpeg->on && result != GPST_ERROR_DEVICE_LOST;
    if (!jpeg->reason[0])
        gpsti_copy_text(jpeg->reason, sizeof jpeg->reason, reason);
    gpsti_unlock(locked);
}
