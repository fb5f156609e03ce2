/* core/pipeline/codec_device.c -- DECODE and ENCODE by the device's own JPEG engines (nvJPEG): what of a file they can
   take, batches of files, pictures that are on the device already; and when any of it is begun. The cores do the rest
   (codec.c). Which of them takes an item is core/tuning's to say. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- made and unmade ------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_codec gpsti_jpeg_device_asked(const gpst_stage_desc* stage) {
    if (stage->kind == GPST_STAGE_DECODE && stage->decode)
        return stage->decode->codec;
    if (stage->kind != GPST_STAGE_ENCODE || !stage->encode)
        return GPST_CODEC_EXACT;
    const gpst_encode_desc* const encode = stage->encode;
    const bool able = (encode->kind == GPST_FILE_UNKNOWN || encode->kind == GPST_FILE_JPEG) &&
                      encode->jpeg.restart_rows == 0 && encode->jpeg.chroma != GPST_FORMAT_JPEG_440;
    return able ? encode->codec : GPST_CODEC_EXACT;
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_device_make(gpst_pipeline* pipeline) {
    gpsti_jpeg_device* const jpeg = &pipeline->engines;
    gpsti_host* const host = &pipeline->context->host;
    GPSTI_FAIL_IF(pipeline->plan.device_on_host, GPST_ERROR_UNSUPPORTED, "the device is the CPU");
    GPSTI_FAIL_IF(strcmp(pipeline->context->info.backend, "cuda") && !getenv("GPUSTAGE_LIBNVJPEG"),
                  GPST_ERROR_UNSUPPORTED, "on cuda only"); /* one that was named knows its device */
    GPSTI_TRY(gpsti_nvjpeg_load(host, &jpeg->nvjpeg));
    jpeg->files = (gpsti_nvjpeg_file*)gpsti_alloc(host, GPSTI_CODEC_MOST_FILES * sizeof *jpeg->files);
    jpeg->workers = (gpsti_nvjpeg_worker*)gpsti_alloc(host, (pipeline->plan.n_workers + 1) * sizeof *jpeg->workers);
    if (!jpeg->files || !jpeg->workers)
        return GPST_ERROR_MEMORY;
    for (; jpeg->n_mutexes < GPSTI_CODEC_ENCODERS; jpeg->n_mutexes++)
        GPSTI_TRY(gpsti_mutex_init(&jpeg->encoding[jpeg->n_mutexes]));
    return gpsti_stream_make(&pipeline->context->public_device, &jpeg->stream);
}

/* Whoever asked for it by name is told once, whatever the path says later. Not locked. */
GPSTI_PRIVATE void gpsti_jpeg_device_warn(gpst_pipeline* pipeline, const char* reason) {
    bool asked = false;
    for (uint32_t s = 0; s < pipeline->plan.desc.n_stages; s++)
        asked = asked || gpsti_jpeg_device_asked(&pipeline->plan.stages[s].desc) == GPST_CODEC_GPU;
    const char* const why = pipeline->plan.device_on_host ? pipeline->context->info.backend_reason : "";
    if (asked)
        GPSTI_LOG(&pipeline->context->host, GPST_LOG_WARNING, GPSTI_NO_ITEM,
                  "JPEG by the cores, not by the GPU: %s%s%s", reason, why[0] ? ": " : "", why);
}

/* What is missing is no failure: the cores do it all, and the path says why. */
GPSTI_INTERN void gpsti_jpeg_device_create(gpst_pipeline* pipeline) {
    gpsti_jpeg_device* const jpeg = &pipeline->engines;
    for (uint32_t s = 0; s < pipeline->plan.desc.n_stages; s++)
        if (gpsti_jpeg_device_asked(&pipeline->plan.stages[s].desc) != GPST_CODEC_EXACT)
            jpeg->asked = true;
    if (!jpeg->asked)
        return;
    jpeg->on = !GPST_FAILED(gpsti_jpeg_device_make(pipeline));
    if (!jpeg->on)
        gpsti_copy_text(jpeg->reason, sizeof jpeg->reason, gpst_last_reason());
    for (uint32_t s = 0; jpeg->on && s < pipeline->plan.desc.n_stages; s++) {
        gpsti_stage* const stage = &pipeline->plan.stages[s];
        const bool decode = stage->desc.kind == GPST_STAGE_DECODE;
        stage->codec = gpsti_jpeg_device_asked(&stage->desc);
        if (decode && (jpeg->decodes || !stage->planes)) /* batches of two stages would meet in the engines */
            stage->codec = GPST_CODEC_EXACT;
        jpeg->decodes = jpeg->decodes || (decode && stage->codec != GPST_CODEC_EXACT);
        jpeg->used = jpeg->used || stage->codec != GPST_CODEC_EXACT;
    }
    if (jpeg->on && !jpeg->used)
        gpsti_copy_text(jpeg->reason, sizeof jpeg->reason, "what DECODE writes is not for WARP stages alone");
    if (!jpeg->used)
        gpsti_jpeg_device_warn(pipeline, jpeg->reason);
}

GPSTI_PRIVATE gpst_result gpsti_jpeg_device_call(gpst_pipeline* pipeline, gpsti_nvjpeg_operation operation,
                                                 gpsti_nvjpeg_worker* worker) {
    gpsti_nvjpeg_op op = GPST_ZERO;
    op.operation = operation;
    op.self = pipeline->engines.nvjpeg;
    op.worker = worker;
    op.skip_hardware = !pipeline->engines.decodes;
    return gpsti_nvjpeg_call(pipeline->engines.stream, &op);
}

/* What one call of the device fails for by chance a second one may do; a lost device has taken everything along. */
GPSTI_PRIVATE bool gpsti_jpeg_device_end(gpst_pipeline* pipeline, gpsti_nvjpeg_operation operation,
                                         gpsti_nvjpeg_worker* worker) {
    gpst_result result = gpsti_jpeg_device_call(pipeline, operation, worker);
    if (GPST_FAILED(result) && result != GPST_ERROR_DEVICE_LOST)
        result = gpsti_jpeg_device_call(pipeline, operation, worker);
    if (worker)
        gpsti_nvjpeg_worker_free(pipeline->engines.nvjpeg, worker);
    return !GPST_FAILED(result);
}

GPSTI_INTERN void gpsti_jpeg_device_destroy(gpst_pipeline* pipeline) {
    gpsti_jpeg_device* const jpeg = &pipeline->engines;
    gpsti_host* const host = &pipeline->context->host;
    bool ended = jpeg->begun;
    for (uint32_t w = 0; jpeg->begun && w < pipeline->plan.n_workers + 1; w++)
        ended = gpsti_jpeg_device_end(pipeline, GPSTI_NVJPEG_WORKER_END, &jpeg->workers[w]) && ended;
    for (int i = 0; jpeg->begun && i < GPSTI_CODEC_ENCODERS; i++)
        ended = gpsti_jpeg_device_end(pipeline, GPSTI_NVJPEG_WORKER_END, &jpeg->encoders[i]) && ended;
    while (jpeg->n_mutexes > 0)
        gpsti_mutex_term(&jpeg->encoding[--jpeg->n_mutexes]);
    if (ended) /* else states of workers are still alive in it */
        (void)gpsti_jpeg_device_end(pipeline, GPSTI_NVJPEG_END, NULL);
    gpsti_nvjpeg_unload(jpeg->nvjpeg);
    gpst_stream_destroy(jpeg->stream);
    if (jpeg->files)
        gpsti_free(host, jpeg->files, GPSTI_CODEC_MOST_FILES * sizeof *jpeg->files);
    if (jpeg->workers)
        gpsti_free(host, jpeg->workers, (pipeline->plan.n_workers + 1) * sizeof *jpeg->workers);
}

/* ---- when they are begun --------------------------------------------------------------------------- */

/* One thread opens them; the others take the cores meanwhile. False: they are not open. Not locked. */
GPSTI_PRIVATE bool gpsti_jpeg_device_open(gpst_pipeline* pipeline) {
    gpsti_jpeg_device* const jpeg = &pipeline->engines;
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    const bool begins = jpeg->on && !jpeg->begun && !jpeg->begins;
    jpeg->begins = jpeg->begins || begins;
    gpsti_mutex_unlock(mutex);
    const gpst_result result = begins ? gpsti_jpeg_device_call(pipeline, GPSTI_NVJPEG_BEGIN, NULL) : GPST_OK;
    gpsti_mutex_lock(mutex);
    if (begins) {
        jpeg->begins = false;
        jpeg->begun = !GPST_FAILED(result);
        jpeg->on = jpeg->begun;
        jpeg->has_engines = jpeg->nvjpeg->n_engines > 0;
        if (GPST_FAILED(result))
            gpsti_copy_text(jpeg->reason, sizeof jpeg->reason, gpst_last_reason());
    }
    const bool open = jpeg->on && jpeg->begun;
    gpsti_scheduler_wake(pipeline->context->scheduler);
    gpsti_mutex_unlock(mutex);
    if (GPST_FAILED(result))
        gpsti_jpeg_device_warn(pipeline, gpst_last_reason());
    return open;
}

GPSTI_PRIVATE void gpsti_jpeg_device_note_failure(gpst_pipeline* pipeline, gpst_result result, const char* reason) {
    gpsti_jpeg_device* const jpeg = &pipeline->engines;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    jpeg->on = jpeg->on && result != GPST_ERROR_DEVICE_LOST;
    if (!jpeg->reason[0])
        gpsti_copy_text(jpeg->reason, sizeof jpeg->reason, reason);
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
}

/* ---- DECODE ----------------------------------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_decode_must_queue(gpsti_item* item, const gpsti_step* step) {
    const gpst_item* const shown = &item->shown;
    gpst_jpeg_info info;
    if (!step->gated || item->on_cpu)
        item->decode = GPSTI_DECODE_CORES;
    if (item->decode != GPSTI_DECODE_UNSEEN)
        return item->decode == GPSTI_DECODE_EITHER;
    const gpst_decode_desc* const desc = item->pipeline->plan.stages[step->first_stage].desc.decode;
    const bool plain = shown->file_data &&
                       gpsti_jpeg_is_plain((const uint8_t*)shown->file_data, shown->file_bytes, &item->jpeg_first) &&
                       !GPST_FAILED(gpst_jpeg_read_header(shown->file_data, shown->file_bytes, &info)) &&
                       !GPST_FAILED(gpsti_decode_check_jpeg(desc, &info, shown->file_bytes)) &&
                       !GPST_FAILED(gpsti_decode_placement(desc, gpsti_item_metadata(item), shown->file_bytes, &info,
                                                           &item->placement)) &&
                       !item->placement.moves;
    item->decode = plain ? GPSTI_DECODE_EITHER : GPSTI_DECODE_CORES;
    if (plain) {
        memset(&item->jpeg_shape, 0, sizeof item->jpeg_shape);
        item->jpeg_shape.width = info.width;
        item->jpeg_shape.height = info.height;
        item->jpeg_shape.format = info.planes;
    }
    return plain;
}

/* Behind the APPn segments and comments a file begins anew, with the two bytes before it as its start marker. */
GPSTI_PRIVATE void gpsti_decode_cut(gpsti_item* item, gpsti_nvjpeg_file* file) {
    uint8_t* const start = (uint8_t*)item->file.data + item->jpeg_first - 2;
    memcpy(item->jpeg_kept, start, 2);
    start[0] = 0xff, start[1] = 0xd8;
    file->data = start;
    file->bytes = item->shown.file_bytes - (item->jpeg_first - 2);
}

GPSTI_PRIVATE gpst_result gpsti_decode_place(gpsti_item* item, uint32_t to, gpsti_nvjpeg_file* file) {
    size_t bytes = 0;
    memset(file, 0, sizeof *file);
    GPSTI_TRY(gpsti_item_shape(&item->jpeg_shape, "decode", &item->sets[to].on_host[0], &bytes));
    item->sets[to].on_host[0].data = NULL;
    GPSTI_TRY(gpsti_place_make_on_device(item, to, 0));
    file->to = item->sets[to].on_device[0];
    gpsti_decode_cut(item, file);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_decode_take(gpsti_item* item, uint32_t stage, uint32_t to) {
    gpsti_set* const set = &item->sets[to];
    gpsti_item_set_n(item, to, 1);
    set->writer = stage + 1;
    set->device_valid = true;
    set->host_valid = false;
    item->shown.decoder = "nvJPEG";
    gpsti_item_placed(item, &item->placement);
}

/* The hardware takes all of them, or none; without it each is decoded by the thread that has it, and the device. */
GPSTI_PRIVATE gpst_result gpsti_decode_call(gpsti_item* first, gpsti_nvjpeg_file* files, uint32_t n,
                                            uint32_t worker_index) {
    gpsti_jpeg_device* const jpeg = &first->pipeline->engines;
    gpsti_nvjpeg_op op = GPST_ZERO;
    op.operation = jpeg->has_engines ? GPSTI_NVJPEG_DECODE_BATCH : GPSTI_NVJPEG_DECODE_ONE;
    op.self = jpeg->nvjpeg;
    op.worker = &jpeg->workers[worker_index];
    op.files = files;
    op.n_files = n;
    GPSTI_TRY(gpsti_device_work_prepare(first, &first->works[0]));
    return gpsti_nvjpeg_call(first->works[0].stream, &op);
}

GPSTI_INTERN uint32_t gpsti_decode_batch(gpsti_item* first, const gpsti_step* step, uint32_t worker_index) {
    gpst_pipeline* const pipeline = first->pipeline;
    gpsti_jpeg_device* const jpeg = &pipeline->engines;
    const uint32_t to = gpsti_set_of(step->writes);
    gpsti_nvjpeg_file one;
    uint32_t n = 0;
    const bool open = gpsti_jpeg_device_open(pipeline);
    gpsti_nvjpeg_file* const files = open && jpeg->has_engines ? jpeg->files : &one; /* one batch at a time */
    gpst_result result = open ? GPST_OK : GPST_ERROR_UNSUPPORTED;
    for (gpsti_item* item = first; item; item = item->next_in_batch) {
        item->decode = GPSTI_DECODE_CORES;
        const gpst_result placed = GPST_FAILED(result) ? result : gpsti_decode_place(item, to, &files[n]);
        if (!GPST_FAILED(placed)) {
            item->decode = GPSTI_DECODE_DEVICE;
            n++;
        }
    }
    const int64_t start_ns = gpsti_now_ns();
    if (n > 0)
        result = gpsti_decode_call(first, files, n, worker_index);
    if (n > 0 && GPST_FAILED(result))
        gpsti_jpeg_device_note_failure(pipeline, result, gpst_last_reason());
    else if (n > 0)
        gpsti_codec_learn(&jpeg->device_ns, (gpsti_now_ns() - start_ns) / n);
    for (gpsti_item* item = first; item; item = item->next_in_batch) {
        if (item->decode != GPSTI_DECODE_DEVICE)
            continue;
        memcpy((uint8_t*)item->file.data + item->jpeg_first - 2, item->jpeg_kept, 2);
        if (GPST_FAILED(result))
            item->decode = GPSTI_DECODE_CORES;
        else
            gpsti_decode_take(item, step->first_stage, to);
    }
    return GPST_FAILED(result) ? 0 : n;
}

/* ---- ENCODE ------------------------------------------------------------------------------------------ */

GPSTI_INTERN bool gpsti_encode_is_on_device(gpsti_item* item, const gpsti_step* step) {
    gpst_pipeline* const pipeline = item->pipeline;
    const gpsti_stage* const stage = &pipeline->plan.stages[step->first_stage];
    const gpsti_set* const set = &item->sets[gpsti_set_of(step->reads)];
    if (stage->codec == GPST_CODEC_EXACT || item->on_cpu || !set->device_valid || set->n == 0 ||
        set->n > GPSTI_CODEC_MOST_FILES || set->count)
        return false;
    for (uint32_t i = 0; i < set->n; i++)
        if (!set->on_device[i].data || set->on_device[i].pitch_bytes < 0 ||
            (set->on_device[i].format != GPST_FORMAT_RGB && set->on_device[i].format != GPST_FORMAT_BGR))
            return false;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    const bool worth = gpsti_jpeg_device_is_worth_it(pipeline, stage->codec, 1);
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    return worth && gpsti_jpeg_device_open(pipeline);
}

/* An item's pictures on their way to files: before[i] bytes lie ahead of what the device makes of picture i. */
typedef struct gpsti_encode {
    gpsti_nvjpeg_op op;
    gpsti_nvjpeg_picture pictures[GPSTI_CODEC_MOST_FILES];
    size_t before[GPSTI_CODEC_MOST_FILES];
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
    op->self = item->pipeline->engines.nvjpeg;
    op->quality = desc->quality ? desc->quality : GPSTI_JPEG_QUALITY;
    op->chroma = desc->chroma ? desc->chroma : GPST_FORMAT_JPEG_444;
    op->optimise = desc->optimise;
    GPSTI_TRY(gpsti_device_work_prepare(item, &item->works[0]));
    if (item->borrowed && item->ready) /* it may be the lent frame itself */
        GPSTI_TRY(gpsti_stream_await(item->works[0].stream, item->ready));
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

GPSTI_INTERN gpst_result gpsti_encode_on_device(gpsti_item* item, const gpsti_step* step, uint32_t worker_index,
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
    const uint32_t which = worker_index % GPSTI_CODEC_ENCODERS;
    self.op.worker = &pipeline->engines.encoders[which];
    self.op.pictures = self.pictures;
    self.op.n_pictures = set->n;
    gpsti_mutex_lock(&pipeline->engines.encoding[which]); /* for about 2 ms */
    const gpst_result result =
        gpsti_encode_run(item, &pipeline->plan.stages[step->first_stage].desc.encode->jpeg, &self);
    gpsti_mutex_unlock(&pipeline->engines.encoding[which]);
    *refused = GPST_FAILED(result);
    if (*refused) {
        if (result != GPST_ERROR_WOULD_BLOCK) /* no memory was free: the cores wait for it */
            gpsti_jpeg_device_note_failure(pipeline, result, gpst_last_reason());
        return result;
    }
    for (uint32_t i = 0; i < set->n; i++)
        bytes += self.pictures[i].bytes;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    gpsti_account_copy(pipeline, &pipeline->plan.sets[from], false, set->n, bytes);
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    GPSTI_TRY(gpsti_encode_emit(item, step, &self, worker_index, reason));
    item->encoder = "nvJPEG";
    return GPST_OK;
}
