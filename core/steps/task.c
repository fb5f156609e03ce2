/* core/steps/task.c -- what a stage's callback may ask of its item: room for pictures and encoded data, the pictures
   of a device, files to be written. */
#include "../base/platform_internal.h"

#include "call_internal.h"

#include <stdarg.h>
#include <string.h>

GPSTI_PRIVATE gpsti_item* gpsti_task_item(const gpst_task* task) { return (gpsti_item*)(uintptr_t)task->item; }

/* ---- pictures -------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_task_check_set(const gpst_task* task, uint32_t set, uint32_t picture_index,
                                               const char* function) {
    const gpsti_item* const item = gpsti_task_item(task);
    const gpst_pipeline* const pipeline = item->pipeline;
    const gpst_stage_desc* const stage = &pipeline->plan.stages[task->stage_index].desc;
    GPSTI_FAIL_IF(set >= pipeline->plan.n_sets, GPST_ERROR_ARGUMENT, "%s: set=%u: the pipeline has %u sets", function,
                  set, pipeline->plan.n_sets);
    const uint32_t writer = item->sets[set].writer;
    GPSTI_FAIL_IF(writer > 0 && writer != task->stage_index + 1, GPST_ERROR_ARGUMENT,
                  "%s: set=%u: the stage \"%s\" has written it, and no set is written twice", function, set,
                  pipeline->plan.stages[writer - 1].name);
    GPSTI_FAIL_IF(set == 0 && item->given.has_frame, GPST_ERROR_ARGUMENT, "%s: set=0: it is the input's own frame",
                  function);
    GPSTI_FAIL_IF(!(stage->writes & GPST_SET(set)), GPST_ERROR_ARGUMENT,
                  "%s: set=%u: the stage \"%s\" does not write it", function, set, stage->name);
    GPSTI_FAIL_IF(picture_index >= pipeline->plan.sets[set].capacity, GPST_ERROR_ARGUMENT,
                  "%s: picture_index=%u: desc.capacity[%u] allows %u", function, picture_index, set,
                  pipeline->plan.sets[set].capacity);
    return GPST_OK;
}

/* The picture is the stage's from now on. Parts of an item do this side by side, each for its own picture: what they
   share was set when the item was split. */
GPSTI_PRIVATE void gpsti_task_took(const gpst_task* task, uint32_t set, uint32_t picture_index, bool on_device) {
    gpsti_item* const item = gpsti_task_item(task);
    gpsti_set* const its = &item->sets[set];
    if (item->pipeline->plan.stages[task->stage_index].desc.per_picture)
        return;
    its->writer = task->stage_index + 1;
    its->valid = on_device ? GPSTI_ON_DEVICE(0) : GPSTI_ON_HOST;
    if (its->n <= picture_index)
        gpsti_set_resize(item, set, picture_index + 1);
}

/* out may be the shape itself: it is cleared only after the shape was read. */
GPSTI_PRIVATE gpst_result gpsti_task_give(gpst_result result, const gpst_image* image, gpst_image* out) {
    if (!out)
        return result;
    if (GPST_FAILED(result))
        memset(out, 0, sizeof *out);
    else
        *out = *image;
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_task_set_picture(const gpst_task* task, uint32_t set, uint32_t picture_index,
                                                 const gpst_image* shape, gpst_image* out) {
    gpsti_item* const item = gpsti_task_item(task);
    gpst_image image;
    size_t bytes = 0;
    GPSTI_TRY(gpsti_task_check_set(task, set, picture_index, "gpst_task_set_picture"));
    GPSTI_TRY(gpsti_set_shape(shape, "gpst_task_set_picture", &image, &bytes));
    gpsti_set* const its = &item->sets[set];
    const bool on_device = item->work && !item->work->on_host;
    its->on_host[picture_index] = image;
    if (on_device) {
        if (its->on_device[picture_index].data && its->device[picture_index].bytes < bytes) {
            GPSTI_TRY(gpsti_graph_flush(item->work->stream));
            GPSTI_TRY(gpsti_stream_wait_idle(item->work->stream)); /* it may be writing to what is given back now */
        }
        GPSTI_TRY(gpsti_set_make_on_device(item, set, picture_index));
    } else {
        GPSTI_TRY(gpsti_set_make_on_host(item, set, picture_index));
        if (item->work)
            its->on_device[picture_index] = its->on_host[picture_index];
    }
    gpsti_task_took(task, set, picture_index, on_device);
    *out = on_device ? its->on_device[picture_index] : its->on_host[picture_index];
    return GPST_OK;
}

GPST_API gpst_result gpst_task_set_picture(gpst_task* task, uint32_t set, uint32_t picture_index,
                                           const gpst_image* shape, gpst_image* out) {
    gpst_image image;
    gpst_result result = gpsti_task_check(task, "gpst_task_set_picture", shape, "shape");
    if (!GPST_FAILED(result))
        result = gpsti_task_check(task, "gpst_task_set_picture", out, "out");
    if (!GPST_FAILED(result))
        result = gpsti_task_set_picture(task, set, picture_index, shape, &image);
    return gpsti_task_give(result, &image, out);
}

GPSTI_PRIVATE gpst_result gpsti_task_map_picture(const gpst_task* task, uint32_t set, uint32_t picture_index,
                                                 const gpst_image* shape, size_t offset_bytes, gpst_image* out) {
    const char* function = "gpst_task_map_picture";
    gpsti_item* const item = gpsti_task_item(task);
    size_t bytes = 0;
    GPSTI_TRY(gpsti_task_check_set(task, set, picture_index, function));
    GPSTI_TRY(gpsti_set_shape(shape, function, out, &bytes));
    GPSTI_FAIL_IF(!item->shown.file_data, GPST_ERROR_STATE, "%s: no file was read", function);
    GPSTI_FAIL_IF(item->work, GPST_ERROR_STATE, "%s: not from a DEVICE stage", function);
    GPSTI_FAIL_IF(offset_bytes > item->shown.file_bytes || bytes > item->shown.file_bytes - offset_bytes,
                  GPST_ERROR_TRUNCATED, "%s: offset_bytes=%llu: %llu bytes do not fit into %llu", function,
                  (unsigned long long)offset_bytes, (unsigned long long)bytes,
                  (unsigned long long)item->shown.file_bytes);
    out->data = (uint8_t*)item->file.data + offset_bytes;
    GPSTI_TRY(gpsti_image_check(out, function, "shape"));
    item->sets[set].on_host[picture_index] = *out;
    gpsti_task_took(task, set, picture_index, false);
    return GPST_OK;
}

GPST_API gpst_result gpst_task_map_picture(gpst_task* task, uint32_t set, uint32_t picture_index,
                                           const gpst_image* shape, size_t offset_bytes, gpst_image* out) {
    gpst_image image;
    gpst_result result = gpsti_task_check(task, "gpst_task_map_picture", shape, "shape");
    if (!GPST_FAILED(result))
        result = gpsti_task_check(task, "gpst_task_map_picture", out, "out");
    if (!GPST_FAILED(result))
        result = gpsti_task_map_picture(task, set, picture_index, shape, offset_bytes, &image);
    return gpsti_task_give(result, &image, out);
}

GPST_API gpst_result gpst_task_pictures(gpst_task* task, uint32_t set, gpst_image* out, uint32_t n) {
    GPSTI_TRY(gpsti_task_check(task, "gpst_task_pictures", out, "out"));
    const gpsti_item* const item = gpsti_task_item(task);
    const gpst_stage_desc* const stage = &item->pipeline->plan.stages[task->stage_index].desc;
    memset(out, 0, n * sizeof *out);
    GPSTI_FAIL_IF(!item->work, GPST_ERROR_STATE, "gpst_task_pictures: only from a DEVICE stage");
    GPSTI_FAIL_IF(set >= item->pipeline->plan.n_sets || !((stage->reads | stage->writes) & GPST_SET(set)),
                  GPST_ERROR_ARGUMENT, "gpst_task_pictures: set=%u: the stage \"%s\" neither reads nor writes it", set,
                  stage->name);
    GPSTI_FAIL_IF(n > item->sets[set].n, GPST_ERROR_ARGUMENT, "gpst_task_pictures: n=%u: set %u has %u", n, set,
                  item->sets[set].n);
    memcpy(out, item->sets[set].on_device, n * sizeof *out);
    return GPST_OK;
}

GPST_API gpst_result gpst_task_count(gpst_task* task, uint32_t set, uint32_t** out) {
    const char* const function = "gpst_task_count";
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_task_check(task, function, out, "out"));
    gpsti_item* const item = gpsti_task_item(task);
    const gpst_stage_desc* const stage = &item->pipeline->plan.stages[task->stage_index].desc;
    GPSTI_FAIL_IF(!item->work, GPST_ERROR_STATE, "%s: only from a DEVICE stage", function);
    const bool reads = set < item->pipeline->plan.n_sets && (stage->reads & GPST_SET(set)) != 0;
    if (!reads)
        GPSTI_TRY(gpsti_task_check_set(task, set, 0, function));
    if (!reads && !item->sets[set].count)
        GPSTI_TRY(gpsti_set_make_count(item, set));
    *out = item->sets[set].count;
    return GPST_OK;
}

/* ---- files -------------------------------------------------------------------------------------- */

/* The entry after the last emitted file: it holds the room for the next one. */
GPSTI_PRIVATE gpsti_output_file* gpsti_task_open_file(gpsti_item* item, uint32_t part_index) {
    gpsti_part* const part = &item->parts[part_index];
    gpsti_output_file** link = &part->files;
    for (uint32_t i = 0; i < part->n_files; i++)
        link = &(*link)->next;
    if (!*link) {
        *link = (gpsti_output_file*)gpsti_alloc(&item->pipeline->context->host, sizeof **link);
        if (*link) {
            (*link)->item = item;
            (*link)->part = part_index;
        }
    }
    return *link;
}

GPSTI_INTERN gpst_result gpsti_task_encoded(gpsti_item* item, uint32_t part, size_t bytes, bool waits, void** out) {
    *out = NULL;
    gpsti_output_file* const file = gpsti_task_open_file(item, part);
    if (!file)
        return GPST_ERROR_MEMORY;
    file->asked = 0;
    GPSTI_TRY(waits ? gpsti_item_reserve(item, &file->room, bytes, 0, false)
                    : gpsti_item_reserve_now(item, &file->room, bytes, 0, false));
    file->asked = bytes;
    *out = file->room.data;
    return GPST_OK;
}

GPST_API gpst_result gpst_task_encoded(gpst_task* task, size_t bytes, void** out) {
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_task_check(task, "gpst_task_encoded", out, "out"));
    return gpsti_task_encoded(gpsti_task_item(task), task->picture_index, bytes, true, out);
}

/* The open file will be written, from data, or from its room where that is NULL; path and the rest are the caller's. */
GPSTI_PRIVATE gpst_result gpsti_task_begin_emit(const gpst_task* task, const char* function, const void* data,
                                                size_t bytes, gpsti_output_file** out) {
    gpsti_item* const item = gpsti_task_item(task);
    gpsti_output_file* const file = gpsti_task_open_file(item, task->picture_index);
    if (!file)
        return GPST_ERROR_MEMORY;
    GPSTI_FAIL_IF(item->pipeline->plan.steps[item->pipeline->plan.n_steps - 2].kind != gpsti_step_write(),
                  GPST_ERROR_STATE, "%s: the pipeline has no WRITE stage", function);
    GPSTI_FAIL_IF(!data && bytes > file->asked, GPST_ERROR_ARGUMENT,
                  "%s: bytes=%llu: more than the %llu that gpst_task_encoded gave", function, (unsigned long long)bytes,
                  (unsigned long long)file->asked);
    memset(&file->write, 0, sizeof file->write);
    file->write.data = data ? data : file->room.data;
    file->write.bytes = bytes;
    file->committed = false;
    *out = file;
    return GPST_OK;
}

GPST_API gpst_result gpst_task_emit(gpst_task* task, const char* path, size_t bytes) {
    gpsti_output_file* file = NULL;
    GPSTI_TRY(gpsti_task_check(task, "gpst_task_emit", path, "path"));
    const gpsti_item* const item = gpsti_task_item(task);
    GPSTI_TRY(gpsti_task_begin_emit(task, "gpst_task_emit", NULL, bytes, &file));
    GPSTI_FAIL_IF(!path[0], GPST_ERROR_ARGUMENT, "gpst_task_emit: path=\"\": required");
    const size_t path_bytes = strlen(path) + 1;
    GPSTI_TRY(gpsti_item_reserve_text(item->pipeline, &file->path, &file->path_capacity, path_bytes));
    memcpy(file->path, path, path_bytes);
    file->write.path = file->path;
    file->write.sync = item->pipeline->plan.desc.fsync == GPST_FSYNC_FILE;
    file->write.dirty_bytes = item->pipeline->plan.desc.dirty_bytes;
    item->parts[task->picture_index].n_files++;
    return GPST_OK;
}

GPST_API gpst_result gpst_task_emit_at(gpst_task* task, gpst_target* target, uint64_t offset_bytes, const void* data,
                                       size_t bytes) {
    gpsti_output_file* file = NULL;
    GPSTI_TRY(gpsti_task_check(task, "gpst_task_emit_at", target, "target"));
    GPSTI_TRY(gpsti_target_check(target, "gpst_task_emit_at", offset_bytes, bytes));
    GPSTI_TRY(gpsti_task_begin_emit(task, "gpst_task_emit_at", data, bytes, &file));
    file->write.path = target->path;
    file->write.target = target;
    file->write.offset_bytes = offset_bytes;
    gpsti_task_item(task)->parts[task->picture_index].n_files++;
    return GPST_OK;
}

GPST_API gpst_result gpst_task_fail(gpst_task* task, gpst_result result, const char* format, ...) {
    char text[GPSTI_REASON_BYTES];
    va_list arguments;
    va_start(arguments, format);
    gpsti_format_reason(text, format ? format : "", arguments);
    va_end(arguments);
    if (task && task->item && gpsti_task_item(task)->in_batch)
        gpsti_copy_text(gpsti_task_item(task)->reason, GPST_REASON_BYTES, text);
    return gpsti_fail(GPST_FAILED(result) ? result : GPST_ERROR_CALLBACK, "%s", text);
}

/* ---- the user's own device work ------------------------------------------------------------ */

GPST_API gpst_result gpst_task_enqueue(gpst_task* task, const gpst_kernel* kernel, const void* args,
                                       size_t args_bytes) {
    GPSTI_TRY(gpsti_task_check(task, "gpst_task_enqueue", kernel, "kernel"));
    const gpsti_item* const item = gpsti_task_item(task);
    GPSTI_FAIL_IF(!item->work, GPST_ERROR_STATE, "gpst_task_enqueue: only from a DEVICE stage");
    return gpsti_kernel_put("gpst_task_enqueue", kernel, args, args_bytes, item->work->stream, &item->exec);
}

GPST_API void* gpst_task_native_stream(gpst_task* task) {
    if (GPST_FAILED(gpsti_task_check(task, "gpst_task_native_stream", task, "task")))
        return NULL;
    const gpsti_item* const item = gpsti_task_item(task);
    if (!item->work || GPST_FAILED(gpsti_graph_flush(item->work->stream))) /* what was recorded comes before it */
        return NULL;
    return gpst_stream_native(item->work->stream);
}
