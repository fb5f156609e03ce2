/* core/pipeline/offload.c -- device work of an item or a batch: uploads, kernels and downloads, submitted at once on
   the stream of the first item's slot; and on the CPU what the device did not do. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- where the pictures are ---------------------------------------------------------------- */

/* As many pictures as the item's list has. Where the host reads the list its entries are checked. */
GPSTI_PRIVATE gpst_result gpsti_offload_count_list(const gpsti_slot* slot, const gpst_stage_desc* stage, uint32_t* n) {
    const gpsti_set* const set = &slot->sets[stage->second_set];
    const gpst_image* const list = &set->on_host[0];
    const uint32_t most = gpst_warp_n_outputs(stage->warp);
    const uint32_t n_channels = gpsti_warp_list_channels(stage->warp->desc.map);
    const char* const entries = gpsti_warp_list_name(stage->warp->desc.map);
    char where[16];
    if (set->n == 0 || slot->sets[gpsti_stage_from(stage)].n == 0) { /* no list, or nothing to cut from */
        *n = 0;
        return GPST_OK;
    }
    GPSTI_FAIL_IF(set->n != 1 || list->format != GPST_FORMAT_TENSOR || list->n_channels != n_channels ||
                      list->dtype != GPST_DTYPE_F32 || list->layout == GPST_LAYOUT_CHW || list->height != 1,
                  GPST_ERROR_ARGUMENT, "set %u: a list of %s is one TENSOR of %u channels, F32, HWC, height 1",
                  stage->second_set, entries, n_channels);
    GPSTI_FAIL_IF(list->width > most, GPST_ERROR_ARGUMENT, "set %u: %u %s: the warp has n_%s=%u", stage->second_set,
                  list->width, entries, entries, most);
    *n = list->width;
    if (!gpsti_stage_host_list(stage))
        return GPST_OK;
    gpsti_format(where, sizeof where, "set %u", stage->second_set);
    return gpsti_warp_check_entries(stage->warp, list->data, list->width, where);
}

/* What a built-in stage makes of pictures counts where they do; by a list, where its entries do. */
GPSTI_PRIVATE void gpsti_offload_inherit_count(gpsti_slot* slot, const gpst_stage_desc* stage) {
    const bool listed = gpsti_stage_is_listed(stage);
    const gpsti_set* const by = &slot->sets[listed ? stage->second_set : gpsti_stage_from(stage)];
    gpsti_set* const to = &slot->sets[gpsti_set_of(stage->writes)];
    to->per_count = listed ? 1 : gpsti_stage_makes(stage, by->per_count);
    to->count = to->per_count > 0 ? by->count : NULL;
}

/* The pictures that a built-in stage will write: how many, their shape, and host memory where the host will read them
   or computes them. */
GPSTI_PRIVATE gpst_result gpsti_offload_shape(gpsti_slot* slot, const gpsti_step* step, uint32_t stage_index) {
    const gpst_stage_desc* const stage = &slot->pipeline->stages[stage_index].desc;
    const uint32_t from = gpsti_stage_from(stage), to = gpsti_set_of(stage->writes);
    uint32_t n = gpsti_stage_makes(stage, slot->sets[from].n);
    const bool on_host = slot->work->on_host || (step->downloads & GPST_SET(to));
    if (gpsti_stage_is_listed(stage))
        GPSTI_TRY(gpsti_offload_count_list(slot, stage, &n));
    for (uint32_t i = 0; i < slot->sets[from].n; i++)
        GPSTI_FAIL_IF(slot->sets[from].on_host[i].width == 0, GPST_ERROR_STATE,
                      "set %u: picture %u of %u was never set", from, i, slot->sets[from].n);
    gpsti_slot_set_n(slot, to, n);
    gpsti_offload_inherit_count(slot, stage);
    slot->sets[to].writer = stage_index + 1;
    for (uint32_t i = 0; i < n; i++) {
        gpst_image* const shape = &slot->sets[to].on_host[i];
        if (stage->kind == GPST_STAGE_WARP)
            gpst_warp_query_output(stage->warp, shape);
        else
            GPSTI_TRY(gpst_mask_query_output(stage->mask, &slot->sets[from].on_host[i], shape));
        if (on_host)
            GPSTI_TRY(gpsti_slot_make_on_host(slot, to, i));
    }
    return GPST_OK;
}

/* Of input and outputs together. Below it two copies take longer to be asked for than the kernel takes to reach over
   the link (docs/benchmarks). */
#define GPSTI_OFFLOAD_IN_PLACE_BYTES 262144

/* The slot's own memory for it, page-locked? A mapped picture lies in the file's. */
GPSTI_PRIVATE bool gpsti_offload_is_pinned(const gpsti_slot* slot, uint32_t set, uint32_t picture) {
    const gpst_buffer* const own = &slot->sets[set].host[picture];
    const uintptr_t data = (uintptr_t)slot->sets[set].on_host[picture].data, file = (uintptr_t)slot->file.data;
    if (slot->file.data && data >= file && data < file + slot->file.bytes)
        return slot->file.pinned;
    return own->data && data == (uintptr_t)own->data && own->pinned;
}

/* True if the kernel reads and writes the slot's host memory over the link. Never a user's kernel, which may read a
   pixel many times, and never where the device has the pictures or will read them again. */
GPSTI_PRIVATE bool gpsti_offload_is_in_place(const gpsti_slot* slot, const gpsti_step* step) {
    const uint32_t sets = step->needs | step->writes;
    if (slot->work->on_host)
        return true;
    if (!slot->pipeline->device_reaches_host || !step->in_place ||
        gpsti_slot_bytes(slot, sets) > GPSTI_OFFLOAD_IN_PLACE_BYTES)
        return false;
    for (uint32_t k = 0; k < slot->pipeline->n_sets; k++)
        for (uint32_t i = 0; (sets & GPST_SET(k)) && i < slot->sets[k].n; i++)
            if (slot->sets[k].device_valid || !gpsti_offload_is_pinned(slot, k, i))
                return false;
    return true;
}

/* Of a single WARP everything is known ahead; else what each stage writes is made when its turn comes. */
GPSTI_PRIVATE gpst_result gpsti_offload_place(gpsti_slot* slot, const gpsti_step* step) {
    slot->in_place = gpsti_offload_is_in_place(slot, step);
    slot->work->copies = slot->work->copies || !slot->in_place;
    slot->uploaded = 0;
    slot->up_bytes = slot->down_bytes = 0;
    return gpsti_place_sets(slot, step->one_warp ? step->needs | step->writes : step->needs);
}

/* ---- submission -------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_offload_upload(gpsti_slot* slot, const gpsti_step* step) {
    if (slot->borrowed && slot->ready && (step->needs & GPST_SET(0)))
        GPSTI_TRY(gpsti_stream_await(slot->work->stream, slot->ready));
    if (slot->in_place) {
        slot->up_bytes = gpsti_slot_bytes(slot, step->needs);
        return GPST_OK;
    }
    for (uint32_t k = 0; k < slot->pipeline->n_sets; k++) {
        if (!(step->needs & GPST_SET(k)) || slot->sets[k].device_valid)
            continue;
        slot->uploaded |= GPST_SET(k);
        GPSTI_TRY(gpsti_place_copy_up(slot, k, &slot->up_bytes));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_download(gpsti_slot* slot, const gpsti_step* step) {
    for (uint32_t k = 0; k < slot->pipeline->n_sets; k++) {
        gpsti_set* const its = &slot->sets[k];
        if (!(step->writes & GPST_SET(k)))
            continue;
        its->host_valid = slot->in_place;
        its->device_valid = !slot->in_place;
        if (!slot->in_place && (step->downloads & GPST_SET(k)))
            GPSTI_TRY(gpsti_place_copy_down(slot, k, &slot->down_bytes));
    }
    if (slot->in_place)
        slot->down_bytes = gpsti_slot_bytes(slot, step->writes);
    return GPST_OK;
}

/* Unique bytes of the warp. Counting them may take longer than the item: counted once for each shape. */
GPSTI_PRIVATE uint64_t gpsti_offload_warp_bytes(gpsti_slot* slot, const gpst_warp* warp, const gpst_image* source) {
    const gpst_image* const counted = &slot->counted_source;
    if (!slot->pipeline->device_counts_bytes)
        return 0;
    if (counted->width != source->width || counted->height != source->height || counted->format != source->format ||
        counted->dtype != source->dtype) {
        uint64_t read_bytes = 0, written_bytes = 0;
        gpst_warp_query_bytes(warp, source, &read_bytes, &written_bytes);
        slot->counted_source = *source;
        slot->counted_bytes = read_bytes + written_bytes;
    }
    return slot->counted_bytes;
}

/* The pictures of a batch, from first up to end, in one list, as a launch takes them. */
GPSTI_PRIVATE void gpsti_offload_collect(gpsti_slot* first, const gpsti_slot* end, uint32_t from, uint32_t to,
                                         gpsti_warp_args* args) {
    const gpsti_device_work* const work = first->work;
    args->sources = first->sets[from].on_device;
    args->outputs = first->sets[to].on_device;
    args->n_sources = first->sets[from].n;
    if (first->next_in_batch == end)
        return;
    args->n_sources = 0;
    for (const gpsti_slot* slot = first; slot != end; slot = slot->next_in_batch) {
        work->sources[args->n_sources] = slot->sets[from].on_device[0];
        memcpy(&work->images[(size_t)args->n_sources * args->n_outputs], slot->sets[to].on_device,
               args->n_outputs * sizeof *work->images);
        args->n_sources++;
    }
    args->sources = work->sources;
    args->outputs = work->images;
}

/* Where the kernel, or the host that launches it, reads the item's list. */
GPSTI_PRIVATE const float* gpsti_offload_list(const gpsti_slot* slot, const gpst_stage_desc* stage) {
    const gpsti_set* const set = &slot->sets[stage->second_set];
    return (const float*)(gpsti_stage_host_list(stage) ? set->on_host : set->on_device)[0].data;
}

/* One launch for the items of a batch from first up to end. */
GPSTI_PRIVATE gpst_result gpsti_offload_launch(gpsti_slot* first, const gpsti_slot* end, const gpsti_stage* stage) {
    const uint32_t from = gpsti_stage_from(&stage->desc), to = gpsti_set_of(stage->desc.writes);
    gpsti_exec exec = first->exec;
    gpsti_warp_args args;
    memset(&args, 0, sizeof args);
    args.warp = stage->desc.warp;
    args.n_outputs = gpst_warp_n_outputs(args.warp);
    if (gpsti_stage_is_listed(&stage->desc)) {
        args.n_outputs = first->sets[to].n;
        args.list = gpsti_offload_list(first, &stage->desc);
        args.n_used = first->sets[to].count;
    }
    if (args.n_outputs == 0)
        return GPST_OK;
    if (first->posed)
        args.pose = &first->pose;
    if (!first->on_cpu) {
        GPSTI_FAIL_IF(GPST_FAILED(stage->constants_result), stage->constants_result, "%s", stage->constants_reason);
        args.mask = stage->mask, args.table = stage->table;
    }
    exec.bytes = 0;
    for (gpsti_slot* slot = first; slot != end; slot = slot->next_in_batch)
        for (uint32_t i = 0; i < slot->sets[from].n; i++) {
            const gpst_image* const source = &slot->sets[from].on_device[i];
            GPSTI_TRY(gpsti_warp_check(args.warp, source, &slot->sets[to].on_device[i * args.n_outputs],
                                       args.n_outputs));
            exec.bytes += gpsti_offload_warp_bytes(slot, args.warp, source);
        }
    gpsti_offload_collect(first, end, from, to, &args);
    if (args.n_sources == 0)
        return GPST_OK;
    return gpsti_stream_launch(first->work->stream, gpsti_warp_kernel(), &args, sizeof args, &exec);
}

/* One launch for all, where the pipeline has made room; items with lists may have other numbers of outputs, and those
   with a pose look elsewhere. */
GPSTI_PRIVATE gpst_result gpsti_offload_warp(gpsti_slot* first, const gpsti_step* step, const gpsti_stage* stage) {
    bool together = step->one_warp && first->pipeline->batch_most > 1 && !gpsti_stage_is_listed(&stage->desc);
    for (const gpsti_slot* slot = first; slot; slot = slot->next_in_batch)
        together = together && !slot->posed;
    for (gpsti_slot *slot = first, *next = NULL; slot; slot = next) {
        next = together ? NULL : slot->next_in_batch;
        GPSTI_TRY(gpsti_offload_launch(slot, next, stage));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_mask_time(gpsti_slot* slot, const gpsti_stage* stage, uint32_t stage_index) {
    const uint32_t set = gpsti_stage_from(&stage->desc);
    const gpsti_set* const from = &slot->sets[set];
    gpsti_exec exec = slot->exec;
    gpsti_mask_time_args args;
    if (from->n == 0)
        return GPST_OK;
    GPSTI_FAIL_IF(from->n > 1, GPST_ERROR_ARGUMENT, "set %u: %u pictures: TIME takes one of each item", set, from->n);
    GPSTI_TRY(gpsti_state_of(slot, stage_index, &from->on_device[0], &args.states, &args.restart));
    exec.bytes = 0;
    args.desc = stage->desc.mask;
    args.from = from->on_device;
    args.to = slot->sets[gpsti_set_of(stage->desc.writes)].on_device;
    args.n = 1;
    slot->state_changed = true;
    return gpsti_stream_launch(slot->work->stream, gpsti_mask_time_kernel(), &args, sizeof args, &exec);
}

GPSTI_PRIVATE gpst_result gpsti_offload_mask(gpsti_slot* slot, const gpsti_stage* stage) {
    const gpsti_set* const from = &slot->sets[gpsti_stage_from(&stage->desc)];
    const gpsti_set* const guides =
        gpsti_stage_has_second(&stage->desc) ? &slot->sets[stage->desc.second_set] : NULL;
    gpsti_exec exec = slot->exec;
    gpsti_mask_op_args args;
    exec.bytes = 0;
    args.desc = stage->desc.mask;
    args.from = from->on_device;
    args.guides = guides ? guides->on_device : NULL;
    args.to = slot->sets[gpsti_set_of(stage->desc.writes)].on_device;
    args.n = from->n;
    GPSTI_FAIL_IF(guides && guides->n < from->n, GPST_ERROR_ARGUMENT, "set %u: %u guides for %u pictures",
                  stage->desc.second_set, guides->n, from->n);
    if (args.n == 0)
        return GPST_OK;
    return gpsti_stream_launch(slot->work->stream, gpsti_mask_op_kernel(), &args, sizeof args, &exec);
}

/* Of one picture columns are counted, which must be what its bytes are made of. */
GPSTI_PRIVATE gpst_result gpsti_offload_check_counts(const gpsti_slot* slot, uint32_t writes) {
    for (uint32_t k = 0; k < slot->pipeline->n_sets; k++) {
        const gpsti_set* const set = &slot->sets[k];
        const gpst_image* const list = &set->on_host[0];
        if (!(writes & GPST_SET(k)) || !set->count || set->per_count > 0 || set->n == 0)
            continue;
        GPSTI_FAIL_IF(list->height != 1 || list->layout == GPST_LAYOUT_CHW || gpsti_image_is_yuv(list->format),
                      GPST_ERROR_ARGUMENT,
                      "gpst_task_count: set=%u: desc.capacity[%u] is 1, so the picture is a list: HWC, height 1", k, k);
    }
    return GPST_OK;
}

/* One call for all of them, where the stage has a function for that. An item's own failure is the batch's, which is
   then taken apart. */
GPSTI_PRIVATE gpst_result gpsti_offload_device(gpsti_slot* first, uint32_t stage_index, uint32_t worker_index,
                                               char* reason) {
    const gpsti_stage* const stage = &first->pipeline->stages[stage_index];
    gpsti_slot* slots[GPSTI_MOST_BATCH];
    gpst_result results[GPSTI_MOST_BATCH];
    uint32_t n = 0;
    for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch)
        slots[n++] = slot;
    if (n > 1 && stage->desc.batch_func)
        GPSTI_TRY(gpsti_call_batch(slots, n, stage_index, worker_index, results, reason));
    for (uint32_t i = 0; i < n; i++) {
        if (n == 1 || !stage->desc.batch_func)
            GPSTI_TRY(gpsti_call_stage(slots[i], stage_index, 0, worker_index, reason));
        else if (GPST_FAILED(results[i]))
            gpsti_copy_text(reason, GPST_REASON_BYTES, slots[i]->reason);
        if (n > 1 && stage->desc.batch_func && GPST_FAILED(results[i]))
            return results[i];
        GPSTI_TRY(gpsti_offload_check_counts(slots[i], stage->desc.writes));
    }
    return GPST_OK;
}

/* What the stages behind one with a state will write: where its memory is not there, the state has not changed yet. */
GPSTI_PRIVATE gpst_result gpsti_offload_place_ahead(gpsti_slot* first, const gpsti_step* step, uint32_t stage_index) {
    const uint32_t end = step->first_stage + step->n_stages;
    for (uint32_t s = stage_index + 1; s < end; s++) {
        const gpst_stage_desc* const stage = &first->pipeline->stages[s].desc;
        if (stage->kind == GPST_STAGE_DEVICE) /* what it makes, its function says */
            break;
        first->stage_at = s;
        for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch) {
            GPSTI_TRY(gpsti_offload_shape(slot, step, s));
            GPSTI_TRY(gpsti_place_sets(slot, stage->writes));
        }
    }
    first->stage_at = stage_index;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_stage(gpsti_slot* first, const gpsti_step* step, uint32_t stage_index,
                                              uint32_t worker_index, char* reason) {
    const gpsti_stage* const stage = &first->pipeline->stages[stage_index];
    if (stage->desc.kind == GPST_STAGE_DEVICE)
        return gpsti_offload_device(first, stage_index, worker_index, reason);
    for (gpsti_slot* slot = first; slot && !step->one_warp; slot = slot->next_in_batch) {
        GPSTI_TRY(gpsti_offload_shape(slot, step, stage_index));
        GPSTI_TRY(gpsti_place_sets(slot, stage->desc.writes));
    }
    if (stage->desc.kind == GPST_STAGE_WARP)
        return gpsti_offload_warp(first, step, stage);
    if (gpsti_stage_has_state(&stage->desc))
        GPSTI_TRY(gpsti_offload_place_ahead(first, step, stage_index));
    for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch)
        GPSTI_TRY(gpsti_stage_has_state(&stage->desc) ? gpsti_offload_mask_time(slot, stage, stage_index)
                                                      : gpsti_offload_mask(slot, stage));
    return GPST_OK;
}

/* Records the next event, if this submission is timed. */
GPSTI_PRIVATE gpst_result gpsti_device_work_record(gpsti_device_work* work) {
    return work->timed ? gpsti_event_record(work->events[work->n_recorded++], work->stream) : GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_submit(gpsti_slot* first, const gpsti_step* step, uint32_t worker_index,
                                               char* reason) {
    gpsti_device_work* const work = first->work;
    work->timed = work->on_host || (gpsti_timing_takes(&first->pipeline->timing, &work->number) &&
                                    gpsti_graphs_leave_timed(first->pipeline, step, work->number));
    work->n_recorded = 0;
    GPSTI_TRY(gpsti_device_work_record(work));
    for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch)
        GPSTI_TRY(gpsti_offload_upload(slot, step));
    if (work->copies)
        GPSTI_TRY(gpsti_device_work_record(work));
    GPSTI_TRY(gpsti_graphs_begin(first, step));
    gpst_result result = GPST_OK;
    for (uint32_t s = 0; s < step->n_stages && !GPST_FAILED(result); s++) {
        first->stage_at = work->stream->commands.tag = step->first_stage + s;
        result = gpsti_offload_stage(first, step, first->stage_at, worker_index, reason);
        if (!GPST_FAILED(result))
            result = gpsti_device_work_record(work);
    }
    GPSTI_TRY(gpsti_graphs_end(first, result));
    first->stage_at = step->first_stage; /* of what the device says later nobody knows the stage */
    for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch)
        GPSTI_TRY(gpsti_offload_download(slot, step));
    return work->copies ? gpsti_device_work_record(work) : GPST_OK;
}

/* Waits for the submission in a plain loop and on the host; else the device will call done. */
GPSTI_PRIVATE gpst_result gpsti_offload_wait(gpsti_slot* first, void (*done)(void*, gpst_result), bool* finished) {
    gpst_stream* const stream = first->work->stream;
    *finished = first->work->on_host || first->plain;
    return *finished ? gpsti_stream_wait_idle(stream) : gpsti_stream_notify(stream, done, first);
}

GPSTI_INTERN void gpsti_offload_undo(gpsti_slot* slot, const gpsti_step* step) {
    gpsti_slot_forget(slot, step->writes);
    if (slot->state_changed)
        gpsti_state_forget(slot, step);
    slot->state_changed = false;
    for (uint32_t k = 0; k < slot->pipeline->n_sets; k++)
        if (slot->uploaded & GPST_SET(k))
            slot->sets[k].device_valid = false;
}

/* ---- an item, or a batch ------------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_offload_recover(gpsti_slot* slot, uint32_t sets, uint32_t worker_index, char* reason);

/* What the step reads is there, and what a single WARP writes has a shape. */
GPSTI_PRIVATE gpst_result gpsti_offload_prepare(gpsti_slot* slot, const gpsti_step* step, uint32_t worker_index,
                                                char* reason) {
    const bool given_back = slot->has_frame && slot->release && !slot->borrowed;
    GPSTI_FAIL_IF((step->needs & GPST_SET(0)) && given_back, GPST_ERROR_DEVICE_LOST,
                  "what the device had is lost, and the lent frame that it was made of was given back");
    GPSTI_FAIL_IF((step->needs & GPST_SET(0)) && slot->sets[0].n == 0, GPST_ERROR_STATE,
                  "the item has no picture in set 0: a stage before must call gpst_task_set_picture");
    if (slot->on_cpu)
        GPSTI_TRY(gpsti_offload_recover(slot, step->needs | step->lists, worker_index, reason));
    else
        GPSTI_TRY(gpsti_place_fetch(slot, step->lists));
    return step->one_warp ? gpsti_offload_shape(slot, step, step->first_stage) : GPST_OK;
}

/* Computes the step again on the CPU, from sets that nobody has changed since. */
GPSTI_PRIVATE gpst_result gpsti_offload_again(gpsti_slot* slot, const gpsti_step* step, uint32_t worker_index,
                                              char* reason) {
    gpsti_offload_undo(slot, step);
    GPSTI_TRY(gpsti_offload_prepare(slot, step, worker_index, reason));
    GPSTI_TRY(gpsti_device_work_prepare(slot, slot->work));
    GPSTI_TRY(gpsti_offload_place(slot, step));
    GPSTI_TRY(gpsti_offload_submit(slot, step, worker_index, reason));
    GPSTI_TRY(gpsti_stream_wait_idle(slot->work->stream));
    gpsti_place_take_counts(slot, step->writes);
    return GPST_OK;
}

/* The step that has written a set on the device; FINISH: none did. */
GPSTI_PRIVATE const gpsti_step* gpsti_offload_writer(const gpst_pipeline* pipeline, uint32_t set) {
    const gpsti_step* step = pipeline->steps;
    while (step->kind != GPSTI_STEP_FINISH &&
           ((step->kind != GPSTI_STEP_OFFLOAD && step->kind != GPSTI_STEP_DECODE) || !(step->writes & GPST_SET(set))))
        step++;
    return step;
}

/* A file that the device had decoded is decoded on this thread, which is in no stage of the device meanwhile. */
GPSTI_PRIVATE gpst_result gpsti_offload_decode_again(gpsti_slot* slot, const gpsti_step* step, uint32_t worker_index,
                                                     char* reason) {
    gpsti_device_work* const work = slot->work;
    gpsti_slot_forget(slot, step->writes);
    slot->work = NULL;
    const gpst_result result = gpsti_call_stage(slot, step->first_stage, 0, worker_index, reason);
    slot->work = work;
    return result;
}

/* An item that goes on on the CPU: its sets come from the device, or are computed again where that does not give
   them, or has not kept them. */
GPSTI_PRIVATE gpst_result gpsti_offload_recover(gpsti_slot* slot, uint32_t sets, uint32_t worker_index, char* reason) {
    const gpst_pipeline* const pipeline = slot->pipeline;
    for (uint32_t k = 0; k < pipeline->n_sets; k++) {
        const gpsti_set* const its = &slot->sets[k];
        if (!(sets & GPST_SET(k)) || its->host_valid || its->n == 0)
            continue;
        const gpst_result fetched = its->device_valid
                                        ? gpsti_place_fetch(slot, GPST_SET(k))
                                        : gpsti_fail(GPST_ERROR_DEVICE_MEMORY, "its memory there was given back");
        if (!GPST_FAILED(fetched))
            continue;
        const gpsti_step* const step = gpsti_offload_writer(pipeline, k);
        /* A stage with a state has served later items since: it cannot be done again out of order. */
        GPSTI_FAIL_IF(step->kind == GPSTI_STEP_FINISH || step->ordered, GPST_ERROR_DEVICE_LOST,
                      "set %u was on the device only%s: %.300s", k,
                      step->kind == GPSTI_STEP_FINISH ? "" : ", and made by a stage with a state", gpst_last_reason());
        GPSTI_TRY(step->kind == GPSTI_STEP_DECODE ? gpsti_offload_decode_again(slot, step, worker_index, reason)
                                                  : gpsti_offload_again(slot, step, worker_index, reason));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_start(gpsti_slot* first, const gpsti_step* step, uint32_t worker_index,
                                              void (*done)(void*, gpst_result), bool* finished, char* reason) {
    gpsti_device_work* const work = first->work;
    work->n_items = 0;
    work->copies = work->is_short = false;
    for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch) {
        slot->uploaded = 0; /* a failure before anything is uploaded must not take what the device has made */
        slot->state_changed = false;
    }
    for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch, work->n_items++) {
        slot->work = work;
        slot->stage_at = step->first_stage;
        GPSTI_TRY(gpsti_offload_prepare(slot, step, worker_index, reason));
    }
    GPSTI_TRY(gpsti_device_work_prepare(first, work));
    for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch)
        GPSTI_TRY(gpsti_offload_place(slot, step));
    GPSTI_TRY(gpsti_offload_submit(first, step, worker_index, reason));
    return gpsti_offload_wait(first, done, finished);
}

/* A failed submission: waits until the device touches the slots' memory no more. Where memory was short the slots give
   theirs back, or each might hold a part and none enough. True: some had more than the step takes. */
GPSTI_PRIVATE bool gpsti_offload_give_up(gpsti_slot* first, const gpsti_step* step, gpst_result result) {
    const bool is_memory = result == GPST_ERROR_DEVICE_MEMORY || result == GPST_ERROR_BUDGET;
    bool any = false;
    if (first->work->stream) /* what was submitted before the failure */
        (void)gpsti_stream_wait_idle(first->work->stream);
    for (gpsti_slot* slot = first; slot; slot = slot->next_in_batch) {
        gpsti_offload_undo(slot, step);
        if (is_memory)
            any = gpsti_place_free_unused(slot, step->needs | step->writes) || any;
    }
    return any;
}

GPSTI_INTERN gpst_result gpsti_offload_run(gpsti_slot* slot, const gpsti_step* step, uint32_t worker_index,
                                           void (*done)(void* slot, gpst_result result), bool* finished, char* reason) {
    *finished = true;
    slot->work = &slot->works[slot->on_cpu ? 1 : 0];
    reason[0] = '\0';
    if (slot->device_reason[0]) { /* why the device could not; said here, where no lock is held */
        GPSTI_LOG(&slot->pipeline->context->host, GPST_LOG_WARNING, slot->item.index,
                  "device work done again on the CPU: %s", slot->device_reason);
        slot->device_reason[0] = '\0';
    }
    gpst_result result = gpsti_offload_start(slot, step, worker_index, done, finished, reason);
    for (bool again = true; GPST_FAILED(result) && again;) {
        if (!reason[0])
            gpsti_copy_text(reason, GPST_REASON_BYTES, gpst_last_reason());
        const bool freed = gpsti_offload_give_up(slot, step, result);
        *finished = true;
        again = gpsti_shortage_is(slot, result) && gpsti_shortage_relieve(slot, reason, freed);
        if (again) {
            reason[0] = '\0';
            result = gpsti_offload_start(slot, step, worker_index, done, finished, reason);
        }
    }
    if (!GPST_FAILED(result) && *finished) /* else another thread may have the slot by now */
        gpsti_offload_read_times(slot);
    return result;
}

GPSTI_INTERN gpst_result gpsti_offload_fetch(gpsti_slot* slot, uint32_t sets, uint32_t worker_index, char* reason) {
    gpsti_mutex* const mutex = &slot->pipeline->context->scheduler->mutex;
    reason[0] = '\0';
    const gpst_result fetched = gpsti_place_fetch(slot, sets);
    if (!GPST_FAILED(fetched))
        return fetched;
    gpsti_copy_text(reason, GPST_REASON_BYTES, gpst_last_reason());
    gpsti_mutex_lock(mutex);
    const bool again = gpsti_offload_fall_back(slot, fetched, reason);
    gpsti_mutex_unlock(mutex);
    if (!again)
        return fetched;
    slot->device_reason[0] = reason[0] = '\0';
    slot->work = &slot->works[1];
    const gpst_result result = gpsti_offload_recover(slot, sets, worker_index, reason);
    slot->work = NULL;
    if (GPST_FAILED(result) && !reason[0])
        gpsti_copy_text(reason, GPST_REASON_BYTES, gpst_last_reason());
    return result;
}

GPSTI_INTERN bool gpsti_offload_fall_back(gpsti_slot* slot, gpst_result result, const char* reason) {
    gpst_pipeline* const pipeline = slot->pipeline;
    const bool device_trouble = result == GPST_ERROR_DEVICE || result == GPST_ERROR_DEVICE_MEMORY ||
                                result == GPST_ERROR_DEVICE_LOST || result == GPST_ERROR_UNSUPPORTED ||
                                (result == GPST_ERROR_BUDGET && !slot->works[0].on_host);
    if (result == GPST_ERROR_DEVICE_LOST)
        gpsti_a32_store(&pipeline->context->public_device.lost, 1);
    if (!device_trouble || slot->on_cpu || pipeline->context->require_backend ||
        slot->works[0].device == slot->works[1].device)
        return false;
    slot->on_cpu = true;
    gpsti_offload_undo(slot, &pipeline->steps[slot->job.step]);
    pipeline->device_lost = pipeline->device_lost || result == GPST_ERROR_DEVICE_LOST;
    pipeline->device_fallbacks++;
    gpsti_copy_text(slot->device_reason, sizeof slot->device_reason, reason);
    if (!pipeline->fallback_reason[0])
        gpsti_copy_text(pipeline->fallback_reason, sizeof pipeline->fallback_reason, reason);
    return true;
}
