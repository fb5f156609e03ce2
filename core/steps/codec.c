/* core/steps/codec.c -- what DECODE and ENCODE stages do on a thread: which kind a file is, how much it may ask for,
   and the calls of core/pictures/ that make pixels of it, or a file of pixels. */
#include "../base/platform_internal.h"

#include "engines_internal.h"

#include <string.h>

GPSTI_PRIVATE gpsti_item* gpsti_codec_slot(const gpst_task* task) { return (gpsti_item*)(uintptr_t)task->item; }

GPSTI_INTERN gpst_result gpsti_codecs_create(gpst_pipeline* pipeline, gpsti_stage* stage) {
    const size_t n = (size_t)pipeline->plan.n_workers + 1;
    if (stage->desc.kind != GPST_STAGE_DECODE && stage->desc.kind != GPST_STAGE_ENCODE)
        return GPST_OK;
    stage->codecs = (gpsti_codec*)gpsti_alloc(&pipeline->context->host, n * sizeof *stage->codecs);
    return stage->codecs ? GPST_OK : GPST_ERROR_MEMORY;
}

GPSTI_INTERN void gpsti_codecs_free(gpst_pipeline* pipeline, gpsti_stage* stage) {
    gpsti_host* const host = &pipeline->context->host;
    const size_t n = (size_t)pipeline->plan.n_workers + 1;
    for (size_t w = 0; stage->codecs && w < n; w++) {
        gpst_jpeg_destroy(stage->codecs[w].jpeg);
        if (stage->codecs[w].scratch)
            gpsti_free(host, stage->codecs[w].scratch, stage->codecs[w].scratch_bytes);
    }
    if (stage->codecs)
        gpsti_free(host, stage->codecs, n * sizeof *stage->codecs);
    stage->codecs = NULL;
}

/* This thread's, with libturbojpeg in it. */
GPSTI_PRIVATE gpst_result gpsti_codec_prepare(const gpst_task* task, gpsti_stage* stage, gpsti_codec** out) {
    *out = &stage->codecs[task->worker_index];
    if ((*out)->jpeg)
        return GPST_OK;
    return gpst_jpeg_create(&task->pipeline->context->host.allocator, &(*out)->jpeg);
}

/* Who has room decodes and waits for nobody: it comes back. One alone always has it. */
GPSTI_PRIVATE void gpsti_codec_take_room(gpst_pipeline* pipeline, const gpst_decode_desc* desc, uint64_t bytes) {
    gpsti_engines* const all = pipeline->engines;
    if (bytes < GPSTI_DECODE_ROWS_BYTES)
        return;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    while (all->decoder_bytes > 0 && !gpsti_decode_fits(desc, all->decoder_bytes + bytes))
        (void)gpsti_cond_wait_until(&all->decoder_room, &locked->scheduler->mutex, GPST_FOREVER);
    all->decoder_bytes += bytes;
    gpsti_unlock(locked);
}

GPSTI_PRIVATE void gpsti_codec_give_room(gpst_pipeline* pipeline, uint64_t bytes) {
    if (bytes < GPSTI_DECODE_ROWS_BYTES)
        return;
    const gpsti_locked locked = gpsti_lock(pipeline->context);
    pipeline->engines->decoder_bytes -= bytes;
    gpsti_cond_broadcast(&pipeline->engines->decoder_room);
    gpsti_unlock(locked);
}

/* ---- DECODE ------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_codec_decode_jpeg(gpsti_stage* stage, gpst_task* task) {
    gpsti_item* const item = gpsti_codec_slot(task);
    const gpst_item* const shown = task->item;
    const gpst_decode_desc* const desc = stage->desc.decode;
    gpst_jpeg_decode_desc how = GPST_ZERO;
    gpst_jpeg_note note = GPST_ZERO;
    gpst_image shape = GPST_ZERO;
    gpst_placement placement;
    gpst_placing placing;
    gpst_jpeg_info info;
    gpsti_codec* codec = NULL;
    GPSTI_TRY(gpst_jpeg_read_header(shown->file_data, shown->file_bytes, &info));
    GPSTI_TRY(gpsti_decode_check_jpeg(desc, &info, shown->file_bytes));
    GPSTI_TRY(gpsti_decode_placement(desc, gpsti_item_metadata(item), shown->file_bytes, &info, &placement));
    shape.width = info.width;
    shape.height = info.height;
    shape.format = stage->planes && info.planes != GPST_FORMAT_INVALID && !placement.moves ? info.planes : info.format;
    GPSTI_TRY(gpsti_codec_prepare(task, stage, &codec));
    GPSTI_TRY(gpst_task_begin_placing(task, gpsti_set_of(stage->desc.writes), &placement, &shape, &placing));
    how.on_damage = desc ? desc->on_damage : GPST_DAMAGE_FAIL;
    gpsti_codec_take_room(task->pipeline, desc, info.decoder_bytes);
    const int64_t start_ns = gpsti_now_ns();
    const gpst_result result =
        gpst_jpeg_decode(codec->jpeg, shown->file_data, shown->file_bytes, &how, &placing.stored, &note);
    gpsti_codec_learn(&task->pipeline->engines->decode_ns, gpsti_now_ns() - start_ns);
    gpsti_codec_give_room(task->pipeline, info.decoder_bytes);
    gpsti_item_note(item, note.text);
    if (!GPST_FAILED(result))
        item->shown.decoder = "libjpeg-turbo";
    return GPST_FAILED(result) ? result : gpst_task_end_placing(task, &placing);
}

/* Pixels are used where the file was read to, if they lie there as in memory and at multiples of their size. */
GPSTI_PRIVATE gpst_result gpsti_codec_decode_plain(gpsti_stage* stage, gpst_task* task, const char* name,
                                                   const gpst_image* shape, size_t offset) {
    const gpst_item* const shown = task->item;
    const uint32_t to = gpsti_set_of(stage->desc.writes);
    gpst_image picture;
    GPSTI_TRY(gpsti_decode_check_pixels(stage->desc.decode, name, shape->width, shape->height));
    if (offset > 0 && offset % gpst_dtype_bytes(shape->dtype) == 0)
        return gpst_task_map_picture(task, to, 0, shape, offset, &picture);
    GPSTI_TRY(gpst_task_set_picture(task, to, 0, shape, &picture));
    return gpst_picture_decode(shown->file_data, shown->file_bytes, &picture);
}

/* Files of pixels have no metadata: where a sphere is asked for, only their shape says whether they are one. */
GPSTI_PRIVATE gpst_result gpsti_codec_note_shape(const gpst_decode_desc* desc, gpst_task* task,
                                                 const gpst_image* shape) {
    const gpst_metadata none = GPST_ZERO;
    gpst_placement placement;
    GPSTI_TRY(gpst_placement_of(desc ? &desc->placement : NULL, &none, shape, &placement));
    gpsti_item_placed(gpsti_codec_slot(task), &placement);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_codec_decode(gpsti_stage* stage, gpst_task* task) {
    gpsti_item* const item = gpsti_codec_slot(task);
    gpst_file_kind kind;
    gpst_image shape;
    size_t offset = 0;
    gpst_result result =
        gpst_picture_read_header(task->item->file_data, task->item->file_bytes, &kind, &shape, &offset);
    if (kind == GPST_FILE_JPEG)
        return gpsti_codec_decode_jpeg(stage, task);
    const char* const name = kind == GPST_FILE_PNM ? "PNM" : kind == GPST_FILE_NPY ? ".npy" : "func";
    if (kind == GPST_FILE_UNKNOWN && stage->desc.func)
        result = stage->desc.func(stage->desc.user_data, task);
    else if (!GPST_FAILED(result))
        result = gpsti_codec_decode_plain(stage, task, name, &shape, offset);
    if (result == GPST_OK && kind != GPST_FILE_UNKNOWN)
        result = gpsti_codec_note_shape(stage->desc.decode, task, &shape);
    if (GPST_FAILED(result))
        item->shown.decoder = "";
    else if (result == GPST_OK && !item->shown.decoder[0])
        item->shown.decoder = name;
    return result;
}

/* ---- ENCODE -------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_codec_fit_scratch(const gpst_task* task, gpsti_codec* codec, size_t bytes) {
    gpsti_host* const host = &task->pipeline->context->host;
    if (codec->scratch_bytes >= bytes)
        return GPST_OK;
    if (codec->scratch)
        gpsti_free(host, codec->scratch, codec->scratch_bytes);
    codec->scratch = gpsti_alloc(host, bytes);
    codec->scratch_bytes = codec->scratch ? bytes : 0;
    return codec->scratch ? GPST_OK : GPST_ERROR_MEMORY;
}

GPSTI_INTERN gpst_result gpsti_codec_ask_segments(const gpst_encode_desc* desc, const gpst_item* shown,
                                                  uint32_t picture, size_t* bytes) {
    *bytes = 0;
    return desc && desc->segments ? desc->segments(desc->segments_user_data, shown, picture, NULL, bytes) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_codec_put_segments(const gpst_encode_desc* desc, const gpst_item* shown,
                                                  uint32_t picture, void* room, size_t bytes) {
    uint8_t* const file = (uint8_t*)room;
    size_t filled = bytes;
    if (bytes == 0)
        return GPST_OK;
    file[0] = 0xff, file[1] = 0xd8;
    GPSTI_TRY(desc->segments(desc->segments_user_data, shown, picture, file + 2, &filled));
    GPSTI_FAIL_IF(filled != bytes, GPST_ERROR_CALLBACK, "segments: %llu bytes were asked for, and %llu came",
                  (unsigned long long)bytes, (unsigned long long)filled);
    return GPST_OK;
}

/* A file may be many times smaller than the most that it can be: the item keeps only what it is. */
GPSTI_PRIVATE gpst_result gpsti_codec_encode_jpeg(gpsti_stage* stage, gpst_task* task, const gpst_image* picture) {
    const gpst_encode_desc* const desc = stage->desc.encode;
    const gpst_jpeg_encode_desc* const jpeg = desc ? &desc->jpeg : NULL;
    gpsti_codec* codec = NULL;
    void* room = NULL;
    size_t bytes = 0, before = 0;
    GPSTI_TRY(gpst_jpeg_bound(picture, jpeg, &bytes));
    GPSTI_TRY(gpsti_codec_prepare(task, stage, &codec));
    GPSTI_TRY(gpsti_codec_fit_scratch(task, codec, bytes));
    bytes = codec->scratch_bytes;
    const int64_t start_ns = gpsti_now_ns();
    GPSTI_TRY(gpst_jpeg_encode(codec->jpeg, picture, jpeg, codec->scratch, &bytes));
    gpsti_codec_learn(&task->pipeline->engines->encode_ns,
                      (gpsti_now_ns() - start_ns) * gpsti_codec_slot(task)->sets[gpsti_set_of(stage->desc.reads)].n);
    GPSTI_TRY(gpsti_codec_ask_segments(desc, task->item, task->picture_index, &before));
    GPSTI_TRY(gpst_task_encoded(task, before + bytes, &room));
    memcpy((uint8_t*)room + before, codec->scratch, bytes);
    GPSTI_TRY(gpsti_codec_put_segments(desc, task->item, task->picture_index, room, before));
    task->encoded = room;
    task->encoded_bytes = before + bytes;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_codec_encode_plain(gpst_file_kind kind, gpst_task* task, const gpst_image* picture) {
    void* room = NULL;
    size_t bytes = 0;
    GPSTI_TRY(gpst_picture_encode(kind, picture, NULL, &bytes));
    GPSTI_TRY(gpst_task_encoded(task, bytes, &room));
    GPSTI_TRY(gpst_picture_encode(kind, picture, room, &bytes));
    task->encoded = room;
    task->encoded_bytes = bytes;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_file_kind gpsti_codec_kind(const gpst_encode_desc* desc) {
    return desc && desc->kind != GPST_FILE_UNKNOWN ? desc->kind : GPST_FILE_JPEG;
}

GPSTI_INTERN const char* gpsti_codec_encoder(const gpst_encode_desc* desc) {
    const gpst_file_kind kind = gpsti_codec_kind(desc);
    return kind == GPST_FILE_JPEG ? "libjpeg-turbo" : kind == GPST_FILE_PNM ? "PNM" : ".npy";
}

GPSTI_INTERN gpst_result gpsti_codec_encode(gpsti_stage* stage, gpst_task* task) {
    const gpsti_item* const item = gpsti_codec_slot(task);
    const gpst_image* const picture = &item->sets[gpsti_set_of(stage->desc.reads)].on_host[task->picture_index];
    const gpst_file_kind kind = gpsti_codec_kind(stage->desc.encode);
    if (kind == GPST_FILE_JPEG)
        GPSTI_TRY(gpsti_codec_encode_jpeg(stage, task, picture));
    else
        GPSTI_TRY(gpsti_codec_encode_plain(kind, task, picture));
    return stage->desc.func(stage->desc.user_data, task);
}
