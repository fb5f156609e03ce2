/* core/pipeline/slot.c -- the memory of one item in flight, and what callbacks may ask
   of it. Owns buffers and strings; knows nothing of the order of work. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- memory ------------------------------------------------------------------------ */

/* Buffer sizes are rounded up, so that files of about the same size use the same buffers of the pool. */
GPSTI_PRIVATE size_t gpsti_slot_file_room(size_t bytes) {
    const size_t largest_rounded = (size_t)64 << 20;
    size_t room = 4096;
    while (room < bytes && room < largest_rounded)
        room *= 2;
    return room < bytes ? bytes : room;
}

GPSTI_PRIVATE gpst_result gpsti_slot_check_budget(gpsti_slot* slot, size_t old_bytes, size_t new_bytes) {
    const uint64_t max_bytes = slot->pipeline->desc.max_item_bytes;
    const uint64_t held = gpsti_a64_load(&slot->host_bytes);
    GPSTI_FAIL_IF(max_bytes != 0 && held - old_bytes + new_bytes > max_bytes, GPST_ERROR_BUDGET,
                  "item needs %llu bytes of host memory: max_item_bytes=%llu allows no more",
                  (unsigned long long)(held - old_bytes + new_bytes), (unsigned long long)max_bytes);
    return GPST_OK;
}

/* Submissions whose end the device has not reported yet. Locked. */
GPSTI_PRIVATE uint32_t gpsti_slot_n_on_device(const gpsti_step* step) {
    uint32_t n = step->on_device;
    for (const gpsti_job* job = step->head; job && n > 0; job = job->next)
        n -= job->slot->device_done ? 1 : 0;
    return n;
}

/* True while a thread or the device may still end an item and so give memory back. Locked. */
GPSTI_PRIVATE bool gpsti_slot_may_hope(const gpst_pipeline* pipeline) {
    const uint32_t n_executing = gpsti_a32_load(&pipeline->executing);
    if (gpsti_a32_load(&pipeline->n_starving) < n_executing + gpsti_a32_load(&pipeline->n_parked))
        return true;
    for (uint32_t s = 0; s < pipeline->n_steps; s++)
        if (gpsti_slot_n_on_device(&pipeline->steps[s]) > 0 ||
            (n_executing < pipeline->n_active && gpsti_queue_may_take(pipeline, &pipeline->steps[s])))
            return true;
    return false;
}

/* True if every item in progress waits for memory, or the run is cancelled: the caller gives up. */
GPSTI_PRIVATE bool gpsti_slot_is_stuck(gpst_pipeline* pipeline) {
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    const bool stuck = !gpsti_slot_may_hope(pipeline) || gpsti_a32_load(&pipeline->cancel) != 0;
    if (stuck)
        (void)gpsti_a32_add(&pipeline->n_starving, UINT32_MAX);
    gpsti_mutex_unlock(mutex);
    return stuck;
}

#define GPSTI_SLOT_WAIT_NS 10000000 /* between two checks for being stuck */

GPSTI_PRIVATE gpst_result gpsti_slot_lacks_memory(const gpsti_slot* slot, size_t bytes) {
    const gpst_context* const context = slot->pipeline->context;
    const uint64_t own = gpsti_a64_load(&slot->charged_bytes), all = gpsti_a64_load(&context->host_bytes);
    const uint64_t others = all > own ? all - own : 0;
    char rule[64] = "too little for it alone";
    if (others > 0)
        gpsti_format(rule, sizeof rule, "of which others have %llu", (unsigned long long)others);
    return gpsti_fail(GPST_ERROR_BUDGET, "item has %llu bytes and needs %llu more: max_host_bytes=%llu, %s",
                      (unsigned long long)own, (unsigned long long)bytes,
                      (unsigned long long)context->info.max_host_bytes, rule);
}

/* Other items in flight have all the memory: waits until some of them end. */
GPSTI_PRIVATE gpst_result gpsti_slot_wait_for_memory(gpsti_slot* slot, size_t bytes, gpst_buffer* out) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpst_result result = GPST_ERROR_TIMEOUT;
    (void)gpsti_a32_add(&pipeline->n_starving, 1);
    while (result == GPST_ERROR_TIMEOUT && !gpsti_slot_is_stuck(pipeline)) {
        result = gpst_pool_acquire(pipeline->pool, bytes, GPSTI_SLOT_WAIT_NS, out);
        if (result != GPST_ERROR_TIMEOUT)
            (void)gpsti_a32_add(&pipeline->n_starving, UINT32_MAX);
    }
    if (result != GPST_ERROR_TIMEOUT)
        return result;
    gpsti_a32_store(&slot->starved, 1);
    return gpsti_slot_lacks_memory(slot, bytes);
}

/* Counts what the allocation really took, from which the fit is computed. */
GPSTI_PRIVATE void gpsti_slot_count_taken(gpsti_slot* slot, const gpst_buffer* buffer) {
    gpsti_a64* const most = &slot->pipeline->item_host_bytes;
    gpsti_a64_add(&slot->host_bytes, buffer->bytes);
    const uint64_t bytes = gpsti_a64_add(&slot->charged_bytes, buffer->charged_bytes) + buffer->charged_bytes;
    uint64_t seen = gpsti_a64_load(most);
    while (bytes > seen && !gpsti_a64_cas(most, &seen, bytes)) {}
}

GPSTI_PRIVATE void gpsti_slot_give_up(gpsti_slot* slot, gpst_buffer* buffer) {
    gpsti_a64_add(&slot->host_bytes, (uint64_t)0 - buffer->bytes);
    gpsti_a64_add(&slot->charged_bytes, (uint64_t)0 - buffer->charged_bytes);
    gpst_pool_release(slot->pipeline->pool, buffer);
}

/* Makes buffer hold `bytes`; the first keep_bytes survive. is_filled: all of them will be written. BUDGET, MEMORY. */
GPSTI_PRIVATE gpst_result gpsti_slot_reserve(gpsti_slot* slot, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                             bool is_filled) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpst_buffer larger = GPST_ZERO;
    if (buffer->data && buffer->bytes >= bytes)
        return GPST_OK;
    GPSTI_TRY(gpsti_slot_check_budget(slot, buffer->bytes, bytes));
    if (keep_bytes == 0 && buffer->data)
        gpsti_slot_give_up(slot, buffer);
    gpst_result result = gpsti_pool_acquire_now(pipeline->pool, bytes, is_filled, NULL, &larger);
    if (result == GPST_ERROR_WOULD_BLOCK)
        result = gpsti_slot_wait_for_memory(slot, bytes, &larger);
    GPSTI_TRY(result);
    if (buffer->data) {
        memcpy(larger.data, buffer->data, keep_bytes);
        gpsti_slot_give_up(slot, buffer);
    }
    *buffer = larger;
    gpsti_slot_count_taken(slot, buffer);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_slot_read_reserve(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    gpsti_slot* const slot = (gpsti_slot*)read->user_data;
    const size_t room = gpsti_slot_file_room(needed_bytes);
    const int64_t grown_ns = gpsti_pool_growth_here_ns();
    gpst_result result = GPST_ERROR_BUDGET;
    if (slot->pipeline->desc.max_item_bytes == 0)
        result = gpsti_slot_reserve(slot, &slot->file, room, filled_bytes, true);
    if (GPST_FAILED(result)) /* nothing to spare: exactly what is needed, then */
        GPSTI_TRY(gpsti_slot_reserve(slot, &slot->file, needed_bytes, filled_bytes, true));
    slot->read_setup_ns += gpsti_pool_growth_here_ns() - grown_ns;
    read->data = slot->file.data;
    read->capacity_bytes = slot->file.bytes;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_slot_prepare_read(gpsti_slot* slot) {
    memset(&slot->read, 0, sizeof slot->read);
    slot->read.path = slot->item.path;
    slot->read.data = slot->file.data;
    slot->read.capacity_bytes = slot->file.bytes;
    slot->read.reserve = gpsti_slot_read_reserve;
    slot->read.user_data = slot;
    slot->read_setup_ns = 0;
}

GPSTI_PRIVATE void gpsti_slot_give_back_one(gpst_pipeline* pipeline, gpst_buffer* buffer) {
    if (buffer->data)
        gpst_pool_release(pipeline->pool, buffer);
    memset(buffer, 0, sizeof *buffer);
}

/* In reverse order of taking, since the pool lends what came back last: the next file is read into the buffer of this
   one, still in the cache, and few sets of pictures are ever touched. */
GPSTI_INTERN void gpsti_slot_give_back(gpsti_slot* slot) {
    gpst_pipeline* const pipeline = slot->pipeline;
    for (uint32_t i = pipeline->n_outputs; i-- > 0;) {
        for (gpsti_output_file* file = slot->out[i].files; file; file = file->next)
            gpsti_slot_give_back_one(pipeline, &file->room);
        gpsti_slot_give_back_one(pipeline, &slot->out[i].host);
    }
    gpsti_slot_give_back_one(pipeline, &slot->input);
    gpsti_slot_give_back_one(pipeline, &slot->file);
    gpsti_a64_store(&slot->host_bytes, 0);
    gpsti_a64_store(&slot->charged_bytes, 0);
}

/* ---- strings and pictures ------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_slot_reserve_text(gpst_pipeline* pipeline, char** text, size_t* capacity,
                                                  size_t bytes) {
    gpsti_host* const host = &pipeline->context->host;
    const size_t wanted = bytes < 512 ? 512 : bytes * 2;
    if (*capacity >= bytes)
        return GPST_OK;
    char* const larger = (char*)gpsti_alloc(host, wanted);
    if (!larger)
        return GPST_ERROR_MEMORY;
    if (*text)
        gpsti_free(host, *text, *capacity);
    *text = larger;
    *capacity = wanted;
    return GPST_OK;
}

/* Forgets all that stages made of the item. */
GPSTI_PRIVATE void gpsti_slot_clear(gpsti_slot* slot) {
    gpst_item* const item = &slot->item;
    item->result = GPST_OK;
    item->stage = item->reason = "";
    item->file_data = NULL;
    item->file_bytes = 0;
    item->outputs = NULL;
    slot->started = slot->single = slot->device_done = false;
    slot->next_in_batch = NULL;
    slot->pending = slot->next_output = 0;
    slot->stage[0] = slot->reason[0] = '\0';
    gpsti_a32_store(&slot->failed, 0);
    gpsti_a32_store(&slot->starved, 0);
    for (uint32_t i = 0; i < slot->pipeline->n_outputs; i++) {
        memset(&slot->outputs[i], 0, sizeof slot->outputs[i]);
        slot->out[i].n_files = 0;
        slot->out[i].writes_pending = 0;
    }
}

GPSTI_INTERN void gpsti_slot_reset(gpsti_slot* slot, uint64_t index, int64_t start_ns) {
    gpst_item* const item = &slot->item;
    memset(item, 0, sizeof *item);
    item->index = index;
    item->name = "";
    item->n_outputs = slot->pipeline->n_outputs;
    item->start_ns = start_ns;
    slot->has_frame = slot->exclusive = false;
    gpsti_slot_clear(slot);
}

GPSTI_INTERN void gpsti_slot_begin_anew(gpsti_slot* slot) {
    const gpst_buffer frame = slot->input;
    if (slot->has_frame)
        memset(&slot->input, 0, sizeof slot->input);
    else
        memset(&slot->item.input, 0, sizeof slot->item.input);
    gpsti_slot_clear(slot);
    gpsti_slot_give_back(slot);
    if (!slot->has_frame)
        return;
    slot->input = frame;
    gpsti_slot_count_taken(slot, &slot->input);
}

GPSTI_PRIVATE gpst_result gpsti_slot_load_names(gpsti_slot* slot, const gpst_input* input) {
    const char* const path = input->path ? input->path : "";
    const char* const name = input->name && input->name[0] ? input->name : path;
    const size_t path_bytes = strlen(path) + 1, name_bytes = strlen(name) + 1;
    gpst_result result = GPST_OK;
    if (name[0])
        result = gpsti_slot_reserve_text(slot->pipeline, &slot->text, &slot->text_capacity, path_bytes + name_bytes);
    if (!name[0] || GPST_FAILED(result)) {
        snprintf(slot->numbered, sizeof slot->numbered, "item %llu", (unsigned long long)slot->item.index);
        slot->item.name = slot->numbered;
        return result;
    }
    memcpy(slot->text, path, path_bytes);
    memcpy(slot->text + path_bytes, name, name_bytes);
    slot->item.path = input->path ? slot->text : NULL;
    slot->item.name = slot->text + path_bytes;
    return GPST_OK;
}

/* Checks a shape and gives it tight rows. */
GPSTI_PRIVATE gpst_result gpsti_slot_shape(const gpst_image* shape, const char* function, gpst_image* out,
                                           size_t* bytes) {
    GPSTI_FAIL_IF(!shape || shape->width == 0 || shape->height == 0, GPST_ERROR_ARGUMENT,
                  "%s: shape=%u x %u: width and height must be at least 1", function, shape ? shape->width : 0,
                  shape ? shape->height : 0);
    *out = *shape;
    out->pitch_bytes = 0;
    out->pitch_bytes = (int64_t)gpst_image_row_bytes(out);
    return gpst_image_bytes(out, bytes);
}

GPSTI_PRIVATE gpst_result gpsti_slot_set_input(gpsti_slot* slot, const gpst_image* shape, const char* function) {
    gpst_image image;
    size_t bytes = 0;
    GPSTI_TRY(gpsti_slot_shape(shape, function, &image, &bytes));
    slot->item.input.data = NULL; /* whatever comes of growing */
    GPSTI_TRY(gpsti_slot_reserve(slot, &slot->input, bytes, 0, true));
    image.data = slot->input.data;
    slot->item.input = image;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_slot_set_output(gpsti_slot* slot, uint32_t output_index, const gpst_image* shape) {
    gpst_image image;
    size_t bytes = 0;
    GPSTI_TRY(gpsti_slot_shape(shape, "gpst_task_set_output", &image, &bytes));
    slot->outputs[output_index].data = NULL; /* whatever comes of growing */
    GPSTI_TRY(gpsti_slot_reserve(slot, &slot->out[output_index].host, bytes, 0, true));
    image.data = slot->out[output_index].host.data;
    slot->outputs[output_index] = image;
    if (!slot->item.outputs) /* set by then in per-output stages, which run side by side */
        slot->item.outputs = slot->outputs;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_slot_copy_frame(gpsti_slot* slot, const gpst_image* frame) {
    size_t ignored = 0;
    GPSTI_TRY(gpst_image_bytes(frame, &ignored));
    GPSTI_TRY(gpsti_slot_set_input(slot, frame, "gpst_input.frame"));
    gpsti_image_copy(frame, &slot->item.input);
    slot->has_frame = true;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_slot_load(gpsti_slot* slot, const gpst_input* input) {
    slot->item.timestamp_ns = input->timestamp_ns;
    slot->item.user_data = input->user_data;
    GPSTI_TRY(gpsti_slot_load_names(slot, input));
    GPSTI_FAIL_IF(!input->path && slot->pipeline->steps[0].kind == GPSTI_STEP_READ, GPST_ERROR_ARGUMENT,
                  "gpst_input: path=NULL: required when the first stage is READ");
    return input->frame.data ? gpsti_slot_copy_frame(slot, &input->frame) : GPST_OK;
}

GPSTI_INTERN void gpsti_slot_fail(gpsti_slot* slot, gpst_result result, const char* stage, const char* reason) {
    if (GPST_FAILED(slot->item.result))
        return;
    slot->item.result = result;
    gpsti_copy_text(slot->stage, sizeof slot->stage, stage);
    gpsti_copy_text(slot->reason, sizeof slot->reason, reason && reason[0] ? reason : gpst_result_text(result));
    slot->item.stage = slot->stage;
    slot->item.reason = slot->reason;
    gpsti_a32_store(&slot->failed, 1);
}

GPSTI_INTERN bool gpsti_slot_has_failed(const gpsti_slot* slot) { return gpsti_a32_load(&slot->failed) != 0; }

/* ---- gpst_task_* ---------------------------------------------------------------------- */

GPSTI_PRIVATE gpsti_slot* gpsti_task_slot(const gpst_task* task) { return (gpsti_slot*)(uintptr_t)task->item; }

/* out may be the shape itself: it is cleared only after the shape was read. */
GPSTI_PRIVATE gpst_result gpsti_task_give(gpst_result result, const gpst_image* image, gpst_image* out) {
    if (GPST_FAILED(result))
        memset(out, 0, sizeof *out);
    else
        *out = *image;
    return result;
}

GPST_API gpst_result gpst_task_set_input(gpst_task* task, const gpst_image* shape, gpst_image* out) {
    gpsti_slot* const slot = gpsti_task_slot(task);
    return gpsti_task_give(gpsti_slot_set_input(slot, shape, "gpst_task_set_input"), &slot->item.input, out);
}

GPSTI_PRIVATE gpst_result gpsti_slot_map_input(gpsti_slot* slot, const gpst_image* shape, size_t offset_bytes) {
    gpst_image image;
    size_t bytes = 0;
    GPSTI_TRY(gpsti_slot_shape(shape, "gpst_task_map_input", &image, &bytes));
    GPSTI_FAIL_IF(!slot->item.file_data, GPST_ERROR_STATE, "gpst_task_map_input: no file was read");
    GPSTI_FAIL_IF(offset_bytes > slot->item.file_bytes || bytes > slot->item.file_bytes - offset_bytes,
                  GPST_ERROR_TRUNCATED, "gpst_task_map_input: offset_bytes=%llu: %llu bytes do not fit into %llu",
                  (unsigned long long)offset_bytes, (unsigned long long)bytes,
                  (unsigned long long)slot->item.file_bytes);
    image.data = (uint8_t*)slot->file.data + offset_bytes;
    GPSTI_TRY(gpsti_image_check(&image, "gpst_task_map_input", "shape"));
    slot->item.input = image;
    return GPST_OK;
}

GPST_API gpst_result gpst_task_map_input(gpst_task* task, const gpst_image* shape, size_t offset_bytes,
                                         gpst_image* out) {
    gpsti_slot* const slot = gpsti_task_slot(task);
    return gpsti_task_give(gpsti_slot_map_input(slot, shape, offset_bytes), &slot->item.input, out);
}

GPSTI_PRIVATE gpst_result gpsti_task_set_output(gpsti_slot* slot, uint32_t output_index, const gpst_image* shape) {
    GPSTI_FAIL_IF(output_index >= slot->item.n_outputs, GPST_ERROR_ARGUMENT,
                  "gpst_task_set_output: output_index=%u: the item has %u outputs", output_index, slot->item.n_outputs);
    return gpsti_slot_set_output(slot, output_index, shape);
}

GPST_API gpst_result gpst_task_set_output(gpst_task* task, uint32_t output_index, const gpst_image* shape,
                                          gpst_image* out) {
    gpsti_slot* const slot = gpsti_task_slot(task);
    const gpst_result result = gpsti_task_set_output(slot, output_index, shape);
    return gpsti_task_give(result, GPST_FAILED(result) ? NULL : &slot->outputs[output_index], out);
}

/* The entry after the last emitted file: it holds the room for the next one. */
GPSTI_PRIVATE gpsti_output_file* gpsti_task_open_file(const gpst_task* task) {
    gpsti_slot* const slot = gpsti_task_slot(task);
    gpsti_output* const output = &slot->out[task->output_index];
    gpsti_output_file** link = &output->files;
    for (uint32_t i = 0; i < output->n_files; i++)
        link = &(*link)->next;
    if (!*link) {
        *link = (gpsti_output_file*)gpsti_alloc(&slot->pipeline->context->host, sizeof **link);
        if (*link) {
            (*link)->slot = slot;
            (*link)->output = task->output_index;
        }
    }
    return *link;
}

GPST_API gpst_result gpst_task_encoded(gpst_task* task, size_t bytes, void** out) {
    *out = NULL;
    gpsti_output_file* const file = gpsti_task_open_file(task);
    if (!file)
        return GPST_ERROR_MEMORY;
    GPSTI_TRY(gpsti_slot_reserve(gpsti_task_slot(task), &file->room, bytes, 0, false));
    *out = file->room.data;
    return GPST_OK;
}

GPST_API gpst_result gpst_task_emit(gpst_task* task, const char* path, size_t bytes) {
    gpsti_slot* const slot = gpsti_task_slot(task);
    gpsti_output_file* const file = gpsti_task_open_file(task);
    if (!file)
        return GPST_ERROR_MEMORY;
    GPSTI_FAIL_IF(slot->pipeline->steps[slot->pipeline->n_steps - 2].kind != GPSTI_STEP_WRITE, GPST_ERROR_STATE,
                  "gpst_task_emit: the pipeline has no WRITE stage");
    GPSTI_FAIL_IF(!path || !path[0], GPST_ERROR_ARGUMENT, "gpst_task_emit: path=%s: required", path ? "\"\"" : "NULL");
    GPSTI_FAIL_IF(bytes > file->room.bytes, GPST_ERROR_ARGUMENT,
                  "gpst_task_emit: bytes=%llu: more than the %llu that gpst_task_encoded gave",
                  (unsigned long long)bytes, (unsigned long long)file->room.bytes);
    const size_t path_bytes = strlen(path) + 1;
    GPSTI_TRY(gpsti_slot_reserve_text(slot->pipeline, &file->path, &file->path_capacity, path_bytes));
    memcpy(file->path, path, path_bytes);
    memset(&file->write, 0, sizeof file->write);
    file->write.path = file->path;
    file->write.data = file->room.data;
    file->write.bytes = bytes;
    file->write.sync = slot->pipeline->desc.fsync == GPST_FSYNC_FILE;
    file->write.dirty_bytes = slot->pipeline->desc.dirty_bytes;
    file->committed = false;
    slot->out[task->output_index].n_files++;
    return GPST_OK;
}

GPST_API gpst_result gpst_task_fail(gpst_task* task, gpst_result result, const char* format, ...) {
    char text[GPST_REASON_BYTES];
    va_list arguments;
    (void)task;
    va_start(arguments, format);
    gpsti_format_list(text, sizeof text, format, arguments);
    va_end(arguments);
    return gpsti_fail(GPST_FAILED(result) ? result : GPST_ERROR_CALLBACK, "%s", text);
}

/* ---- create / destroy ------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_slot_create(gpst_pipeline* pipeline, gpsti_slot* slot) {
    gpsti_host* const host = &pipeline->context->host;
    const uint32_t n = pipeline->n_outputs;
    slot->pipeline = pipeline;
    slot->works[0].device = &pipeline->context->public_device;
    slot->works[0].on_host = pipeline->device_on_host;
    slot->works[1].device =
        pipeline->context->device == pipeline->context->cpu ? slot->works[0].device : &pipeline->context->cpu_device;
    slot->works[1].on_host = true;
    slot->job.slot = slot;
    slot->outputs = (gpst_image*)gpsti_alloc(host, n * sizeof *slot->outputs);
    slot->device_images = (gpst_image*)gpsti_alloc(host, n * sizeof *slot->device_images);
    slot->out = (gpsti_output*)gpsti_alloc(host, n * sizeof *slot->out);
    if (!slot->outputs || !slot->device_images || !slot->out)
        return GPST_ERROR_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        slot->out[i].job.slot = slot;
        slot->out[i].job.output = i;
    }
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_slot_free_files(gpst_pipeline* pipeline, gpsti_output_file* file) {
    gpsti_host* const host = &pipeline->context->host;
    while (file) {
        gpsti_output_file* const next = file->next;
        if (file->path)
            gpsti_free(host, file->path, file->path_capacity);
        gpsti_free(host, file, sizeof *file);
        file = next;
    }
}

GPSTI_PRIVATE void gpsti_slot_destroy(gpst_pipeline* pipeline, gpsti_slot* slot) {
    gpsti_host* const host = &pipeline->context->host;
    const uint32_t n = pipeline->n_outputs;
    if (slot->pipeline)
        gpsti_offload_free(slot);
    if (slot->out)
        gpsti_slot_give_back(slot);
    for (uint32_t i = 0; slot->out && i < n; i++)
        gpsti_slot_free_files(pipeline, slot->out[i].files);
    if (slot->text)
        gpsti_free(host, slot->text, slot->text_capacity);
    if (slot->outputs)
        gpsti_free(host, slot->outputs, n * sizeof *slot->outputs);
    if (slot->device_images)
        gpsti_free(host, slot->device_images, n * sizeof *slot->device_images);
    if (slot->out)
        gpsti_free(host, slot->out, n * sizeof *slot->out);
    memset(slot, 0, sizeof *slot);
}

GPSTI_INTERN gpst_result gpsti_slots_create(gpst_pipeline* pipeline) {
    pipeline->slots =
        (gpsti_slot**)gpsti_alloc(&pipeline->context->host, pipeline->slots_capacity * sizeof *pipeline->slots);
    if (!pipeline->slots)
        return GPST_ERROR_MEMORY;
    return gpsti_slots_make(pipeline, 1); /* the others are made when workers begin */
}

GPSTI_PRIVATE gpst_result gpsti_slot_make(gpst_pipeline* pipeline, gpsti_slot** out) {
    gpsti_host* const host = &pipeline->context->host;
    gpsti_slot* const slot = (gpsti_slot*)gpsti_alloc(host, sizeof *slot);
    if (!slot)
        return GPST_ERROR_MEMORY;
    const gpst_result result = gpsti_slot_create(pipeline, slot);
    if (GPST_FAILED(result)) {
        gpsti_slot_destroy(pipeline, slot);
        gpsti_free(host, slot, sizeof *slot);
        return result;
    }
    *out = slot;
    return GPST_OK;
}

/* Buffers that a slot may have: file, picture, and for each output its picture and encoded data; on a device with
   memory of its own also the pictures there. */
GPSTI_PRIVATE uint32_t gpsti_slot_n_pieces(const gpst_pipeline* pipeline) {
    const uint32_t on_device = pipeline->device_on_host ? 0 : 1 + pipeline->n_outputs;
    return 2 + 2 * pipeline->n_outputs + on_device;
}

GPSTI_PRIVATE gpst_result gpsti_slots_add(gpst_pipeline* pipeline) {
    gpsti_slot** const slot = &pipeline->slots[pipeline->n_slots_made];
    GPSTI_TRY(gpsti_slot_make(pipeline, slot));
    (*slot)->next = pipeline->free_slots;
    pipeline->free_slots = *slot;
    pipeline->n_slots_made++;
    return GPST_OK;
}

/* Sets aside the table entries for the slots' buffers, so that no item allocates one later. */
GPSTI_INTERN gpst_result gpsti_slots_make(gpst_pipeline* pipeline, uint32_t n) {
    gpsti_memory* const memory = pipeline->context->memory;
    const uint32_t n_pieces = gpsti_slot_n_pieces(pipeline);
    gpst_result result = GPST_OK;
    if (n <= pipeline->n_slots_made)
        return GPST_OK;
    GPSTI_TRY(gpsti_blocks_set_aside(memory, (n - pipeline->n_slots_made) * n_pieces));
    while (pipeline->n_slots_made < n && !GPST_FAILED(result))
        result = gpsti_slots_add(pipeline);
    gpsti_blocks_let_go(memory, (n - pipeline->n_slots_made) * n_pieces);
    return result;
}

GPSTI_INTERN void gpsti_slots_destroy(gpst_pipeline* pipeline) {
    gpsti_host* const host = &pipeline->context->host;
    if (!pipeline->slots)
        return;
    for (uint32_t i = 0; i < pipeline->n_slots_made; i++) {
        gpsti_slot_destroy(pipeline, pipeline->slots[i]);
        gpsti_free(host, pipeline->slots[i], sizeof *pipeline->slots[i]);
        gpsti_blocks_let_go(pipeline->context->memory, gpsti_slot_n_pieces(pipeline));
    }
    gpsti_free(host, pipeline->slots, pipeline->slots_capacity * sizeof *pipeline->slots);
}
