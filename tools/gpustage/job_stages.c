/* tools/gpustage/job_stages.c -- the hooks of the library's job that decode and encode what it does not know: PNG,
   TIFF, WebP, and files without a header; and masks beside views. Each runs on any worker. */
#include "job.h"

#include "files.h"

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

/* Where the file's metadata puts its pixels; of what has none only the shape says something. */
static gpst_result job_find_place(const job* self, gpst_task* task, const codec* worker, codec_kind kind,
                                  const gpst_image* shape, gpst_placement* out) {
    gpst_placement_desc desc = job_make_placement(self);
    char reason[CODEC_REASON_BYTES] = "";
    const gpst_metadata none = GPST_ZERO;
    gpst_image placed = *shape;
    desc.file_bytes = task->item->file_bytes;
    gpst_result result = gpst_placement_of(&desc, kind == CODEC_RAW ? &none : gpst_task_metadata(task), shape, out);
    if (GPST_FAILED(result) || !out->moves)
        return result;
    const uint64_t stored_bytes = out->orientation != 1 ? shape->height * (uint64_t)gpst_image_row_bytes(shape) : 0;
    placed.width = out->width;
    placed.height = out->height;
    result = codec_check_made(worker, &placed, stored_bytes, reason);
    return GPST_FAILED(result) ? gpst_task_fail(NULL, result, "%s", reason) : GPST_OK;
}

gpst_result job_decode(void* user_data, gpst_task* task) {
    const job* const self = (const job*)user_data;
    codec* const worker = ((const job_worker*)task->worker_state)->codec;
    const gpst_item* const item = task->item;
    char reason[CODEC_REASON_BYTES] = "";
    codec_kind kind = CODEC_UNKNOWN;
    gpst_placement placement;
    gpst_placing placing;
    gpst_image shape;
    gpst_result result =
        codec_read_header(worker, item->file_data, item->file_bytes, &self->desc.asked->raw, &kind, &shape, reason);
    if (GPST_FAILED(result))
        return gpst_task_fail(task, result, "%s", reason);
    result = job_find_place(self, task, worker, kind, &shape, &placement);
    if (GPST_FAILED(result))
        return result;
    if (kind == CODEC_RAW) { /* used where the file was read to */
        gpst_task_note(task, "%s", placement.note);
        return gpst_task_map_picture(task, 0, 0, &shape, 0, &shape);
    }
    result = gpst_task_begin_placing(task, 0, &placement, &shape, &placing);
    if (GPST_FAILED(result))
        return result;
    gpst_task_set_decoder(task, codec_library(kind));
    gpst_task_note(task, "%s", codec_note(worker));
    job_remark_bits(self, item, shape.dtype);
    result = codec_decode(worker, item->file_data, item->file_bytes, kind, &placing.stored, reason);
    return GPST_FAILED(result) ? gpst_task_fail(task, result, "%s", reason) : gpst_task_end_placing(task, &placing);
}

static gpst_result job_fit_scratch(job_worker* worker, gpst_task* task, size_t bytes) {
    if (worker->scratch_bytes >= bytes)
        return GPST_OK;
    free(worker->scratch);
    worker->scratch = malloc(bytes);
    worker->scratch_bytes = worker->scratch ? bytes : 0;
    return worker->scratch ? GPST_OK
                           : gpst_task_fail(task, GPST_ERROR_MEMORY, "out of memory: %zu bytes to encode in", bytes);
}

/* By way of the worker's scratch: the slot has room for what it is, not for the most that it can be. */
static gpst_result job_encode_picture(codec_kind kind, gpst_task* task, const gpst_image* picture,
                                      const codec_options* settings, size_t* bytes) {
    job_worker* const worker = (job_worker*)task->worker_state;
    char reason[CODEC_REASON_BYTES] = "";
    void* room = NULL;
    *bytes = codec_encode_bound(kind, picture, settings);
    if (*bytes == 0)
        return gpst_task_fail(task, GPST_ERROR_UNSUPPORTED, "%ux%u: too large for .%s", picture->width, picture->height,
                              codec_extension(kind));
    gpst_result result = job_fit_scratch(worker, task, *bytes);
    if (GPST_FAILED(result))
        return result;
    result = codec_encode(worker->codec, kind, picture, settings, worker->scratch, bytes, reason);
    if (GPST_FAILED(result))
        return gpst_task_fail(task, result, "%s", reason);
    result = gpst_task_encoded(task, *bytes, &room);
    if (!GPST_FAILED(result))
        memcpy(room, worker->scratch, *bytes);
    return result;
}

/* How a frame was turned when it was taken; its size does not matter here. */
static bool job_find_pose(const job* self, const gpst_item* item, gpst_view* out) {
    const gpst_placement_desc desc = job_make_placement(self);
    gpst_placement placement;
    gpst_image pixel = GPST_ZERO;
    pixel.width = pixel.height = 1;
    if (self->desc.asked->raw.width > 0 || !item->metadata ||
        GPST_FAILED(gpst_placement_of(&desc, item->metadata, &pixel, &placement)))
        return false;
    *out = placement.pose;
    return placement.has_pose;
}

static gpst_result job_encode_own_mask(gpst_task* task, const char* path, const gpst_image* own, size_t* bytes) {
    codec_options settings;
    mask_remark_view(path, own);
    memset(&settings, 0, sizeof settings);
    return job_encode_picture(CODEC_PNG, task, own, &settings, bytes);
}

/* Of a mask that all frames share the file was made before the run, but for frames that were taken turned. */
static gpst_result job_encode_mask(const job* self, gpst_task* task, const char* path, size_t* bytes) {
    const mask* const shared = self->desc.mask;
    const uint32_t view = task->picture_index;
    gpst_view pose;
    gpst_image own;
    void* room = NULL;
    if (!shared->views)
        return job_encode_own_mask(task, path, &task->item->sets[3].pictures[view], bytes);
    if (job_find_pose(self, task->item, &pose)) {
        gpst_result made = mask_make_turned(shared, self->desc.asked, &pose, view, &own);
        if (!GPST_FAILED(made))
            made = job_encode_own_mask(task, path, &own, bytes);
        free(own.data);
        return made;
    }
    *bytes = shared->views[view].bytes;
    const gpst_result result = gpst_task_encoded(task, *bytes, &room);
    if (!GPST_FAILED(result))
        memcpy(room, shared->views[view].data, *bytes);
    return result;
}

gpst_result job_emit_mask(void* user_data, gpst_task* task, const char* beside) {
    const job* const self = (const job*)user_data;
    const char* const stem = self->to_do[task->item->index]->stem;
    char path[OUTPUTS_PATH_BYTES];
    size_t bytes = 0;
    (void)beside;
    if (!outputs_path(&self->names, stem, task->picture_index, true, path))
        return gpst_task_fail(task, GPST_ERROR_ARGUMENT, "the output's path is too long");
    const gpst_result result = job_encode_mask(self, task, path, &bytes);
    return GPST_FAILED(result) ? result : gpst_task_emit(task, path, bytes);
}

gpst_result job_name(void* user_data, uint64_t index, uint32_t view, char* out, size_t out_bytes) {
    const job* const self = (const job*)user_data;
    if (!outputs_name(&self->names, self->to_do[index]->stem, view, false, out, out_bytes))
        return gpst_task_fail(NULL, GPST_ERROR_OVERFLOW, "%s: the output's path is too long", self->to_do[index]->path);
    return GPST_OK;
}

/* Of the file, or of the whole sphere that it is a part of: where the file has no pixels nothing is kept. */
static gpst_result job_place_mask(const job* self, gpst_task* task, codec* worker, const gpst_image* picture,
                                  uint32_t* found) {
    const gpst_item* const item = task->item;
    char reason[CODEC_REASON_BYTES] = "";
    codec_kind kind = CODEC_UNKNOWN;
    gpst_placement placement;
    gpst_image frame, part = *picture, room, window;
    gpst_result result =
        codec_read_header(worker, item->file_data, item->file_bytes, &self->desc.asked->raw, &kind, &frame, reason);
    if (!GPST_FAILED(result))
        result = job_find_place(self, task, worker, kind, &frame, &placement);
    if (GPST_FAILED(result))
        return result;
    room = *picture;
    room.format = GPST_FORMAT_GRAY;
    room.dtype = GPST_DTYPE_U8;
    const bool own = picture->width == placement.turned_width && picture->height == placement.turned_height;
    const bool whole = picture->width == placement.width && picture->height == placement.height;
    if (own) {
        room.width = placement.width;
        room.height = placement.height;
    } else if (whole) {
        part.data = (uint8_t*)part.data + placement.top * (size_t)picture->pitch_bytes +
                    placement.left * (size_t)gpst_format_channels(part.format) * gpst_dtype_bytes(part.dtype);
        part.width = placement.turned_width;
        part.height = placement.turned_height;
    }
    result = gpst_task_set_picture(task, 2, 0, &room, &room);
    if (GPST_FAILED(result))
        return result;
    window = room;
    if (own || whole) /* else its size is wrong, and the library says so */
        gpst_placement_window(&placement, &room, &window);
    *found = mask_set_pixels(&part, &window);
    return GPST_OK;
}

static gpst_result job_fail_mask(gpst_task* task, const input* in, gpst_result result, const char* reason) {
    return gpst_task_fail(task, result, "%s: %s", in->mask, reason[0] ? reason : gpst_result_text(result));
}

/* The file of the frame's own mask, in room of the item for so many bytes: it is counted as what the frame takes. */
static gpst_result job_read_mask_file(gpst_task* task, const input* in, uint64_t room_bytes, void** room) {
    if (room_bytes > SIZE_MAX)
        return job_fail_mask(task, in, GPST_ERROR_OVERFLOW, "");
    const gpst_result result = gpst_task_encoded(task, (size_t)room_bytes, room);
    const char* const problem = GPST_FAILED(result) ? NULL : files_read_into(in->mask, *room, (size_t)in->mask_bytes);
    return problem ? job_fail_mask(task, in, GPST_ERROR_IO, problem) : result;
}

/* Its picture lies behind it in the room. Only the header says how large that is, so the file is read twice. */
static gpst_result job_read_mask(gpst_task* task, const input* in, codec* worker, const options* asked,
                                 gpst_image* picture) {
    char reason[CODEC_REASON_BYTES] = "";
    const uint64_t bytes = in->mask_bytes, at = bytes / 64 * 64 + 64; /* never none */
    mask_plan plan;
    void* room = NULL;
    if (!codec_fits(&asked->limits, bytes))
        return job_fail_mask(task, in, GPST_ERROR_BUDGET, "is too large (--max-item-bytes)");
    gpst_result result = job_read_mask_file(task, in, at, &room);
    if (GPST_FAILED(result))
        return result;
    result = mask_plan_of(worker, room, (size_t)bytes, !asked->ignore_orientation, &plan, reason);
    if (GPST_FAILED(result))
        return job_fail_mask(task, in, result, reason);
    result = job_read_mask_file(task, in, at + plan.bytes, &room);
    if (GPST_FAILED(result))
        return result;
    result = mask_decode(worker, room, (size_t)bytes, &plan, (uint8_t*)room + at, picture, reason);
    return GPST_FAILED(result) ? job_fail_mask(task, in, result, reason) : result;
}

gpst_result job_load_mask(void* user_data, gpst_task* task) {
    const job* const self = (const job*)user_data;
    const input* const in = self->to_do[task->item->index];
    codec* const worker = ((job_worker*)task->worker_state)->codec;
    gpst_image picture = GPST_ZERO;
    uint32_t found = 0;
    gpst_result result = job_read_mask(task, in, worker, self->desc.asked, &picture);
    if (!GPST_FAILED(result))
        result = job_place_mask(self, task, worker, &picture, &found);
    if (!GPST_FAILED(result))
        mask_remark(in->mask, found);
    return result;
}

gpst_result job_encode(void* user_data, gpst_task* task, const gpst_image* picture, const char* path) {
    const job* const self = (const job*)user_data;
    codec_options settings;
    job_metadata metadata;
    size_t bytes = 0;
    gpst_result result = job_take_metadata(self, task, &metadata);
    memset(&settings, 0, sizeof settings);
    settings.quality = (int)self->desc.asked->quality;
    settings.exif = metadata.exif_bytes > 0 ? metadata.exif : NULL;
    settings.exif_bytes = metadata.exif_bytes;
    settings.icc = metadata.icc;
    settings.icc_bytes = metadata.icc_bytes;
    if (!GPST_FAILED(result))
        result = job_encode_picture(self->desc.kind, task, picture, &settings, &bytes);
    free(metadata.icc);
    if (!GPST_FAILED(result))
        result = gpst_task_emit(task, path, bytes);
    if (!GPST_FAILED(result) && self->names.mask_names)
        result = job_emit_mask(user_data, task, path);
    return result;
}
