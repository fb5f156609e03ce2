/* core/items/item.c -- one item: made, filled from an input, moved from list to list by what it is doing, failed, and
   brought back to where it lacks something. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- notes ------------------------------------------------------------------------------- */

/* Those that the input came with. */
GPSTI_PRIVATE void gpsti_item_begin_notes(gpsti_item* item) {
    item->posed = item->given.posed;
    item->pose = item->given.pose;
    memcpy(item->note, item->given.note, sizeof item->note);
    item->shown.note = item->note;
}

/* What is there already is not said twice: a file may be decoded again. "" is always there. */
GPSTI_INTERN void gpsti_item_note(gpsti_item* item, const char* text) {
    const size_t used = strlen(item->note);
    if (!strstr(item->note, text))
        gpsti_format(item->note + used, sizeof item->note - used, "%s%s", used > 0 ? "; " : "", text);
}

GPSTI_INTERN void gpsti_item_placed(gpsti_item* item, const gpst_placement* placement) {
    item->pose = placement->pose;
    item->posed = placement->has_pose;
    gpsti_item_note(item, placement->note);
}

/* ---- its end ------------------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_item_fail(gpsti_item* item, gpst_result result, const char* stage, const char* reason) {
    if (gpsti_item_has_failed(item))
        return;
    item->shown.result = result;
    gpsti_copy_text(item->stage, sizeof item->stage, stage);
    gpsti_copy_text(item->reason, sizeof item->reason, reason && reason[0] ? reason : gpst_result_text(result));
    item->shown.stage = item->stage;
    item->shown.reason = item->reason;
    gpsti_a32_store(&item->failed, 1);
}

/* ---- cleared ------------------------------------------------------------------------------ */

/* Forgets all that stages made of the item. */
GPSTI_PRIVATE void gpsti_item_clear(gpsti_item* item) {
    gpst_item* const shown = &item->shown;
    shown->result = GPST_OK;
    shown->stage = shown->reason = "";
    shown->decoder = shown->encoder = item->encoder = "";
    shown->file_data = NULL;
    shown->file_bytes = 0;
    shown->metadata = NULL;
    item->may_drop = item->single = item->stays = item->denied = item->yields = item->widened = item->in_batch = false;
    item->arrived = item->done = item->lacks = 0;
    item->wants[GPSTI_OF_HOST] = item->wants[GPSTI_OF_DEVICE] = 0;
    item->decode = GPSTI_DECODE_UNSEEN;
    item->pending = item->next_part = 0;
    item->stage[0] = item->reason[0] = item->device_reason[0] = '\0';
    gpsti_item_begin_notes(item);
    gpsti_a32_store(&item->failed, 0);
    gpsti_sets_forget(item, item->given.has_frame ? ~GPST_SET(0) : UINT32_MAX);
    for (uint32_t i = 0; i < item->pipeline->plan.n_parts; i++) {
        for (gpsti_output_file* file = item->parts[i].files; file; file = file->next)
            file->asked = 0; /* what is in the room is another item's */
        item->parts[i].n_files = 0;
        item->parts[i].writes_pending = 0;
    }
}

GPSTI_INTERN void gpsti_item_reset(gpsti_item* item, uint64_t index, int64_t start_ns) {
    gpst_item* const shown = &item->shown;
    memset(shown, 0, sizeof *shown);
    shown->index = index;
    shown->name = "";
    shown->sets = item->views;
    shown->n_sets = item->pipeline->plan.n_sets;
    shown->start_ns = start_ns;
    item->given.has_frame = item->given.borrowed = item->given.posed = item->given.failed = false;
    item->given.handed_out = item->gave_way = false;
    item->given.until_ns = GPST_FOREVER;
    item->given.charged_bytes = 0;
    item->given.note[0] = '\0';
    item->given.release = NULL;
    gpsti_item_clear(item);
}

/* ---- an input ------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_input_check(const gpst_pipeline* pipeline, const gpst_input* input,
                                            const char* function) {
    const gpsti_plan* const plan = &pipeline->plan;
    size_t ignored = 0;
    GPSTI_FAIL_IF(input->camera >= GPST_MAX_CAMERAS, GPST_ERROR_ARGUMENT,
                  "%s: input.camera=%u: must be below GPST_MAX_CAMERAS=%d", function, input->camera, GPST_MAX_CAMERAS);
    GPSTI_FAIL_IF(!input->path && plan->stages[0].desc.kind == GPST_STAGE_READ, GPST_ERROR_ARGUMENT,
                  "%s: input.path=NULL: required when the first stage is READ", function);
    GPSTI_FAIL_IF(!input->frame.data && plan->frame_reader, GPST_ERROR_ARGUMENT,
                  "%s: input.frame.data=NULL: required: stage \"%s\" reads set 0, which no stage before it writes",
                  function, plan->frame_reader);
    GPSTI_FAIL_IF(input->frame_on_device && (!input->frame.data || !input->release), GPST_ERROR_ARGUMENT,
                  "%s: input.frame_on_device: frame and release are required", function);
    GPSTI_FAIL_IF(input->frame_on_device && input->frame.pitch_bytes < 0, GPST_ERROR_ARGUMENT,
                  "%s: input.frame.pitch_bytes=%lld: must not be negative with frame_on_device", function,
                  (long long)input->frame.pitch_bytes);
    GPSTI_FAIL_IF(input->release && !input->frame.data, GPST_ERROR_ARGUMENT,
                  "%s: input.frame.data=NULL: required with release", function);
    if (input->frame.data)
        GPSTI_TRY(gpsti_image_extent(&input->frame, function, "input.frame", &ignored));
    if (input->frame_on_device)
        GPSTI_TRY(gpsti_device_check_memory(&pipeline->context->public_device, input->frame.data, function));
    GPSTI_FAIL_IF(input->frame.data && plan->sets[0].writer < plan->desc.n_stages, GPST_ERROR_ARGUMENT,
                  "%s: input.frame: set 0 is written by stage \"%s\"", function,
                  plan->stages[plan->sets[0].writer].name);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_item_reserve_text(gpst_pipeline* pipeline, char** text, size_t* capacity, size_t bytes) {
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

GPSTI_INTERN gpst_result gpsti_item_load_names(gpsti_item* item, const gpst_input* input) {
    const char* const path = input->path ? input->path : "";
    const char* const name = input->name && input->name[0] ? input->name : path;
    const size_t path_bytes = strlen(path) + 1, name_bytes = strlen(name) + 1;
    gpst_item* const shown = &item->shown;
    gpst_result result = GPST_OK;
    shown->timestamp_ns = input->timestamp_ns;
    shown->user_data = input->user_data;
    shown->camera = input->camera < GPST_MAX_CAMERAS ? input->camera : 0;
    shown->priority = input->priority;
    if (name[0])
        result = gpsti_item_reserve_text(item->pipeline, &item->text, &item->text_capacity, path_bytes + name_bytes);
    if (!name[0] || GPST_FAILED(result)) {
        gpsti_format(item->numbered, sizeof item->numbered, "item %llu", (unsigned long long)shown->index);
        shown->name = item->numbered;
        return result;
    }
    memcpy(item->text, path, path_bytes);
    memcpy(item->text + path_bytes, name, name_bytes);
    shown->path = input->path ? item->text : NULL;
    shown->name = item->text + path_bytes;
    return GPST_OK;
}

/* Set 0 is where the source or submit gave it, and nowhere else. */
GPSTI_PRIVATE void gpsti_item_frame_is_there(gpsti_item* item) {
    gpsti_set* const set = &item->sets[0];
    const bool on_device = item->given.frame_on_device, on_host = !on_device || item->pipeline->plan.device_on_host;
    set->valid = (on_device ? GPSTI_ON_DEVICE(0) : 0) | (on_host ? GPSTI_ON_HOST : 0);
    if (!on_host)
        set->on_host[0].data = NULL;
}

GPSTI_PRIVATE gpst_result gpsti_item_copy_frame(gpsti_item* item, const gpst_image* frame, const char* function) {
    size_t ignored = 0;
    GPSTI_TRY(gpsti_set_shape(frame, function, &item->sets[0].on_host[0], &ignored));
    GPSTI_TRY(gpsti_set_make_on_host(item, 0, 0));
    gpsti_image_copy(frame, &item->sets[0].on_host[0]);
    return GPST_OK;
}

/* What it takes of the budget, as far as that is known. */
GPSTI_PRIVATE void gpsti_item_charge_frame(gpsti_item* item) {
    gpst_buffer frame = GPST_ZERO;
    frame.charged_bytes = item->given.charged_bytes;
    gpsti_item_count_taken(item, GPSTI_OF_HOST, &frame);
}

GPSTI_PRIVATE void gpsti_item_borrow_frame(gpsti_item* item, const gpst_input* input) {
    item->given.release = input->release;
    item->given.release_user_data = input->release_user_data;
    item->given.ready = input->frame_on_device ? input->ready : NULL;
    item->given.borrowed = true;
    item->given.charged_bytes = input->charged_bytes;
    gpsti_item_charge_frame(item);
    item->sets[0].on_device[0] = item->sets[0].on_host[0] = gpsti_image_resolved(&input->frame);
}

GPSTI_INTERN void gpsti_item_release_frame(gpsti_item* item) {
    if (!item->given.borrowed)
        return;
    item->given.borrowed = false;
    gpsti_call_release(item->pipeline, item->given.release, item->given.release_user_data);
}

GPSTI_INTERN gpst_result gpsti_item_load(gpsti_item* item, const gpst_input* input, const char* function) {
    const gpst_view none = GPST_ZERO;
    GPSTI_TRY(gpsti_item_load_names(item, input));
    GPSTI_TRY(gpsti_input_check(item->pipeline, input, function));
    item->given.posed = input->pose != NULL;
    item->given.pose = input->pose ? *input->pose : none;
    gpsti_copy_text(item->given.note, sizeof item->given.note, input->note ? input->note : "");
    gpsti_item_begin_notes(item);
    if (!input->frame.data)
        return GPST_OK;
    if (input->release)
        gpsti_item_borrow_frame(item, input);
    else
        GPSTI_TRY(gpsti_item_copy_frame(item, &input->frame, function));
    item->given.has_frame = true;
    item->given.frame_on_device = input->frame_on_device;
    gpsti_item_frame_is_there(item);
    gpsti_set_resize(item, 0, 1);
    return GPST_OK;
}

/* ---- where it goes ------------------------------------------------------------------------------ */

GPSTI_INTERN uint32_t gpsti_item_next_step(const gpsti_item* item, uint32_t from) {
    const gpsti_plan* const plan = &item->pipeline->plan;
    const bool failed = gpsti_item_has_failed(item);
    uint32_t to = from + 1;
    while (to + 1 < plan->n_steps && (failed ? !plan->steps[to].ordered : (item->done >> to) & 1))
        to++;
    return to;
}

/* The frame that came with the input is there no more: only who gave it could give it again. */
GPSTI_PRIVATE bool gpsti_item_lacks_frame(const gpsti_item* item, uint32_t missing) {
    return (missing & GPST_SET(0)) && item->given.has_frame && item->sets[0].valid == 0;
}

GPSTI_INTERN uint32_t gpsti_item_rewind(gpsti_item* item, uint32_t step, uint32_t sets) {
    gpsti_plan* const plan = &item->pipeline->plan;
    uint32_t missing = sets, first = step;
    for (uint32_t s = step; s-- > 0;) {
        const gpsti_step* const made = &plan->steps[s];
        uint32_t gone = 0;
        for (uint32_t k = 0; k < plan->n_sets; k++)
            gone |= item->sets[k].valid == 0 ? made->writes & missing & GPST_SET(k) : 0;
        if (!((item->done >> s) & 1) || gone == 0)
            continue;
        if (!made->repeatable) { /* it was the user's function, or has served later items since */
            gpsti_item_fail(item, GPST_ERROR_DEVICE_LOST, gpsti_step_name(plan, made),
                            "what the device had is lost, and the stage that made it is not called again");
            return step;
        }
        item->done &= ~(1u << s);
        gpsti_sets_forget(item, made->writes);
        missing |= made->needs | made->lists;
        first = s;
    }
    if (gpsti_item_lacks_frame(item, missing))
        gpsti_item_fail(item, GPST_ERROR_DEVICE_LOST, gpsti_step_name(plan, &plan->steps[step]),
                        "what the device had is lost, and the lent frame that it was made of was given back");
    return gpsti_item_has_failed(item) ? step : first;
}

/* One bad part fails the item: none of its files stays. */
GPSTI_INTERN void gpsti_item_discard_files(gpsti_item* item) {
    for (uint32_t i = 0; i < item->pipeline->plan.n_parts; i++) {
        gpsti_output_file* file = item->parts[i].files;
        for (uint32_t e = 0; e < item->parts[i].n_files; e++, file = file->next) {
            if (file->committed)
                (void)gpsti_path_remove(file->path);
            else if (file->write.pending)
                gpsti_write_discard(&file->write);
            file->committed = false;
        }
    }
}

/* A file is read again, a frame that was copied stays; a lent one must be there still. */
GPSTI_INTERN bool gpsti_item_is_repeatable(const gpsti_item* item) {
    const gpsti_plan* const plan = &item->pipeline->plan;
    bool may = !item->given.failed && !item->given.handed_out && !item->given.frame_on_device &&
               (!item->given.release || item->given.borrowed) && gpsti_a32_load(&item->pipeline->signals.cancel) == 0;
    for (uint32_t s = 0; may && s + 1 < plan->n_steps; s++)
        may = !plan->steps[s].ordered || !((item->done >> s) & 1);
    return may && (plan->stages[0].desc.kind != GPST_STAGE_READ || gpsti_path_is_regular(item->shown.path));
}

GPSTI_INTERN void gpsti_item_begin_anew(gpsti_item* item) {
    gpst_buffer* const own = &item->sets[0].host[0];
    const gpst_buffer frame = *own;
    gpsti_item_discard_files(item);
    gpsti_item_clear(item);
    if (item->given.has_frame)
        memset(own, 0, sizeof *own);
    gpsti_item_give_back(item);
    if (!item->given.has_frame)
        return;
    gpsti_item_frame_is_there(item);
    *own = frame;
    gpsti_item_count_taken(item, GPSTI_OF_HOST, own);
    gpsti_item_charge_frame(item);
}

GPSTI_INTERN uint32_t gpsti_item_n_written(const gpsti_item* item) {
    uint32_t n = item->pipeline->plan.n_parts;
    while (n > 1 && item->parts[n - 1].n_files == 0)
        n--;
    return n;
}

/* ---- its file ------------------------------------------------------------------------------------- */

/* Rounded up by a quarter at most, so that files of about the same size use the same buffers of the pool. */
GPSTI_PRIVATE size_t gpsti_item_file_room(size_t bytes) {
    const size_t largest_rounded = (size_t)64 << 20;
    size_t step = 4096;
    if (bytes > largest_rounded)
        return bytes;
    while (step * 8 < bytes)
        step *= 2;
    return bytes == 0 ? step : (bytes + step - 1) / step * step;
}

/* No thread of the reader waits for memory: the item does, and reads again. What can be read once alone waits here. */
GPSTI_PRIVATE gpst_result gpsti_item_reserve_file(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    gpsti_item* const item = (gpsti_item*)read->user_data;
    const size_t room = gpsti_item_file_room(needed_bytes);
    gpst_result result = GPST_ERROR_BUDGET;
    if (item->pipeline->plan.desc.max_item_bytes == 0)
        result = gpsti_item_reserve_now(item, &item->file, room, filled_bytes, true);
    if (GPST_FAILED(result)) /* nothing to spare: exactly what is needed, then */
        result = filled_bytes == 0 ? gpsti_item_reserve_now(item, &item->file, needed_bytes, 0, true)
                                   : gpsti_item_reserve(item, &item->file, needed_bytes, filled_bytes, true);
    GPSTI_TRY(result);
    item->wants[GPSTI_OF_HOST] = 0;
    read->data = item->file.data;
    read->capacity_bytes = item->file.bytes;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_item_prepare_read(gpsti_item* item) {
    memset(&item->read, 0, sizeof item->read);
    item->read.path = item->shown.path;
    item->read.data = item->file.data;
    item->read.capacity_bytes = item->file.bytes;
    item->read.reserve = gpsti_item_reserve_file;
    item->read.user_data = item;
}

/* ---- create / destroy ------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_batch_init(gpsti_batch* batch, gpsti_item* item, uint32_t part) {
    batch->item = item;
    batch->items = &batch->item;
    batch->n = 1;
    batch->part = part;
}

GPSTI_PRIVATE gpst_result gpsti_item_make(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    const gpsti_plan* const plan = &pipeline->plan;
    gpst_context* const context = pipeline->context;
    gpsti_host* const host = &context->host;
    item->works[0].device = &context->public_device;
    item->works[0].on_host = plan->device_on_host;
    item->works[1].device = context->device == context->cpu ? item->works[0].device : &context->cpu_device;
    item->works[1].on_host = true;
    gpsti_batch_init(&item->batch, item, 0);
    item->sets = (gpsti_set*)gpsti_alloc(host, plan->n_sets * sizeof *item->sets);
    item->views = (gpst_set*)gpsti_alloc(host, plan->n_sets * sizeof *item->views);
    item->parts = (gpsti_part*)gpsti_alloc(host, plan->n_parts * sizeof *item->parts);
    if (plan->room > 1)
        item->room = (gpsti_item**)gpsti_alloc(host, plan->room * sizeof *item->room);
    if (!item->sets || !item->views || !item->parts || (plan->room > 1 && !item->room))
        return GPST_ERROR_MEMORY;
    for (uint32_t i = 0; i < plan->n_parts; i++)
        gpsti_batch_init(&item->parts[i].batch, item, i);
    for (uint32_t k = 0; k < plan->n_sets; k++)
        GPSTI_TRY(gpsti_set_create(item, k));
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_item_free_files(gpst_pipeline* pipeline, gpsti_output_file* file) {
    gpsti_host* const host = &pipeline->context->host;
    while (file) {
        gpsti_output_file* const next = file->next;
        if (file->path)
            gpsti_free(host, file->path, file->path_capacity);
        gpsti_free(host, file, sizeof *file);
        file = next;
    }
}

GPSTI_INTERN void gpsti_item_destroy(gpsti_item* item) {
    if (!item)
        return;
    gpst_pipeline* const pipeline = item->pipeline;
    const gpsti_plan* const plan = &pipeline->plan;
    gpsti_host* const host = &pipeline->context->host;
    bool complete = item->sets && item->parts;
    for (uint32_t k = 0; complete && k < plan->n_sets; k++)
        complete = item->sets[k].host && item->sets[k].device;
    if (complete) {
        gpsti_sets_free_device(item);
        gpsti_item_give_back(item);
    }
    for (uint32_t i = 0; item->parts && i < plan->n_parts; i++)
        gpsti_item_free_files(pipeline, item->parts[i].files);
    for (uint32_t k = 0; item->sets && k < plan->n_sets; k++)
        gpsti_set_destroy(item, k);
    if (item->text)
        gpsti_free(host, item->text, item->text_capacity);
    if (item->room)
        gpsti_free(host, item->room, plan->room * sizeof *item->room);
    if (item->sets)
        gpsti_free(host, item->sets, plan->n_sets * sizeof *item->sets);
    if (item->views)
        gpsti_free(host, item->views, plan->n_sets * sizeof *item->views);
    if (item->parts)
        gpsti_free(host, item->parts, plan->n_parts * sizeof *item->parts);
    gpsti_free(host, item, sizeof *item);
}

GPSTI_INTERN gpst_result gpsti_item_create(gpst_pipeline* pipeline, gpsti_item** out) {
    gpsti_item* const item = (gpsti_item*)gpsti_alloc(&pipeline->context->host, sizeof *item);
    if (!item)
        return GPST_ERROR_MEMORY;
    item->pipeline = pipeline;
    const gpst_result result = gpsti_item_make(item);
    if (GPST_FAILED(result)) {
        gpsti_item_destroy(item);
        return result;
    }
    *out = item;
    return GPST_OK;
}
