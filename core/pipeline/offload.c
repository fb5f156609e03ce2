/* core/pipeline/offload.c -- device work of an item or a batch: uploads, kernels and downloads, submitted at once on
   the stream of the first item's slot; and on the CPU what the device did not do. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- where the pictures are ---------------------------------------------------------------- */

/* As many pictures as the item's list has. Where the host reads the list its entries are checked. */
GPSTI_PRIVATE gpst_result gpsti_offload_count_list(const gpsti_item* item, const gpst_stage_desc* stage, uint32_t* n) {
    const gpsti_set* const set = &item->sets[stage->second_set];
    const gpst_image* const list = &set->on_host[0];
    const uint32_t most = gpst_warp_n_outputs(stage->warp);
    const uint32_t n_channels = gpsti_warp_list_channels(stage->warp->desc.map);
    const char* const entries = gpsti_warp_list_name(stage->warp->desc.map);
    char where[16];
    if (set->n == 0 || item->sets[gpsti_stage_from(stage)].n == 0) { /* no list, or nothing to cut from */
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
GPSTI_PRIVATE void gpsti_offload_inherit_count(gpsti_item* item, const gpst_stage_desc* stage) {
    const bool listed = gpsti_stage_is_listed(stage);
    const gpsti_set* const by = &item->sets[listed ? stage->second_set : gpsti_stage_from(stage)];
    gpsti_set* const to = &item->sets[gpsti_set_of(stage->writes)];
    to->per_count = listed ? 1 : gpsti_stage_makes(stage, by->per_count);
    to->count = to->per_count > 0 ? by->count : NULL;
}

/* The pictures that a built-in stage will write: how many, their shape, and host memory where the host will read them
   or computes them. */
GPSTI_PRIVATE gpst_result gpsti_offload_shape(gpsti_item* item, const gpsti_step* step, uint32_t stage_index) {
    const gpst_stage_desc* const stage = &item->pipeline->plan.stages[stage_index].desc;
    const uint32_t from = gpsti_stage_from(stage), to = gpsti_set_of(stage->writes);
    uint32_t n = gpsti_stage_makes(stage, item->sets[from].n);
    const bool on_host = item->work->on_host || (step->downloads & GPST_SET(to));
    if (gpsti_stage_is_listed(stage))
        GPSTI_TRY(gpsti_offload_count_list(item, stage, &n));
    for (uint32_t i = 0; i < item->sets[from].n; i++)
        GPSTI_FAIL_IF(item->sets[from].on_host[i].width == 0, GPST_ERROR_STATE,
                      "set %u: picture %u of %u was never set", from, i, item->sets[from].n);
    gpsti_item_set_n(item, to, n);
    gpsti_offload_inherit_count(item, stage);
    item->sets[to].writer = stage_index + 1;
    for (uint32_t i = 0; i < n; i++) {
        gpst_image* const shape = &item->sets[to].on_host[i];
        if (stage->kind == GPST_STAGE_WARP)
            gpst_warp_query_output(stage->warp, shape);
        else
            GPSTI_TRY(gpst_mask_query_output(stage->mask, &item->sets[from].on_host[i], shape));
        if (on_host)
            GPSTI_TRY(gpsti_item_make_on_host(item, to, i));
    }
    return GPST_OK;
}

/* Of input and outputs together. Below it two copies take longer to be asked for than the kernel takes to reach over
   the link (docs/benchmarks). */
#define GPSTI_OFFLOAD_IN_PLACE_BYTES 262144

/* The slot's own memory for it, page-locked? A mapped picture lies in the file's. */
GPSTI_PRIVATE bool gpsti_offload_is_pinned(const gpsti_item* item, uint32_t set, uint32_t picture) {
    const gpst_buffer* const own = &item->sets[set].host[picture];
    const uintptr_t data = (uintptr_t)item->sets[set].on_host[picture].data, file = (uintptr_t)item->file.data;
    if (item->file.data && data >= file && data < file + item->file.bytes)
        return item->file.pinned;
    return own->data && data == (uintptr_t)own->data && own->pinned;
}

/* True if the kernel reads and writes the slot's host memory over the link. Never a user's kernel, which may read a
   pixel many times, and never where the device has the pictures or will read them again. */
GPSTI_PRIVATE bool gpsti_offload_is_in_place(const gpsti_item* item, const gpsti_step* step) {
    const uint32_t sets = step->needs | step->writes;
    if (item->work->on_host)
        return true;
    if (!item->pipeline->plan.device_reaches_host || !step->in_place ||
        gpsti_item_bytes(item, sets) > GPSTI_OFFLOAD_IN_PLACE_BYTES)
        return false;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        for (uint32_t i = 0; (sets & GPST_SET(k)) && i < item->sets[k].n; i++)
            if (item->sets[k].device_valid || !gpsti_offload_is_pinned(item, k, i))
                return false;
    return true;
}

/* Of a single WARP everything is known ahead; else what each stage writes is made when its turn comes. */
GPSTI_PRIVATE gpst_result gpsti_offload_place(gpsti_item* item, const gpsti_step* step) {
    item->in_place = gpsti_offload_is_in_place(item, step);
    item->work->copies = item->work->copies || !item->in_place;
    item->uploaded = 0;
    item->up_bytes = item->down_bytes = 0;
    return gpsti_place_sets(item, step->one_warp ? step->needs | step->writes : step->needs);
}

/* ---- submission -------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_offload_upload(gpsti_item* item, const gpsti_step* step) {
    if (item->borrowed && item->ready && (step->needs & GPST_SET(0)))
        GPSTI_TRY(gpsti_stream_await(item->work->stream, item->ready));
    if (item->in_place) {
        item->up_bytes = gpsti_item_bytes(item, step->needs);
        return GPST_OK;
    }
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        if (!(step->needs & GPST_SET(k)) || item->sets[k].device_valid)
            continue;
        item->uploaded |= GPST_SET(k);
        GPSTI_TRY(gpsti_place_copy_up(item, k, &item->up_bytes));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_download(gpsti_item* item, const gpsti_step* step) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set* const its = &item->sets[k];
        if (!(step->writes & GPST_SET(k)))
            continue;
        its->host_valid = item->in_place;
        its->device_valid = !item->in_place;
        if (!item->in_place && (step->downloads & GPST_SET(k)))
            GPSTI_TRY(gpsti_place_copy_down(item, k, &item->down_bytes));
    }
    if (item->in_place)
        item->down_bytes = gpsti_item_bytes(item, step->writes);
    return GPST_OK;
}

/* Unique bytes of the warp. Counting them may take longer than the item: counted once for each shape. */
GPSTI_PRIVATE uint64_t gpsti_offload_warp_bytes(gpsti_item* item, const gpst_warp* warp, const gpst_image* source) {
    const gpst_image* const counted = &item->counted_source;
    if (!item->pipeline->plan.device_counts_bytes)
        return 0;
    if (counted->width != source->width || counted->height != source->height || counted->format != source->format ||
        counted->dtype != source->dtype) {
        uint64_t read_bytes = 0, written_bytes = 0;
        gpst_warp_query_bytes(warp, source, &read_bytes, &written_bytes);
        item->counted_source = *source;
        item->counted_bytes = read_bytes + written_bytes;
    }
    return item->counted_bytes;
}

/* The pictures of a batch, from first up to end, in one list, as a launch takes them. */
GPSTI_PRIVATE void gpsti_offload_collect(gpsti_item* first, const gpsti_item* end, uint32_t from, uint32_t to,
                                         gpsti_warp_args* args) {
    const gpsti_device_work* const work = first->work;
    args->sources = first->sets[from].on_device;
    args->outputs = first->sets[to].on_device;
    args->n_sources = first->sets[from].n;
    if (first->next_in_batch == end)
        return;
    args->n_sources = 0;
    for (const gpsti_item* item = first; item != end; item = item->next_in_batch) {
        work->sources[args->n_sources] = item->sets[from].on_device[0];
        memcpy(&work->images[(size_t)args->n_sources * args->n_outputs], item->sets[to].on_device,
               args->n_outputs * sizeof *work->images);
        args->n_sources++;
    }
    args->sources = work->sources;
    args->outputs = work->images;
}

/* Where the kernel, or the host that launches it, reads the item's list. */
GPSTI_PRIVATE const float* gpsti_offload_list(const gpsti_item* item, const gpst_stage_desc* stage) {
    const gpsti_set* const set = &item->sets[stage->second_set];
    return (const float*)(gpsti_stage_host_list(stage) ? set->on_host : set->on_device)[0].data;
}

/* One launch for the items of a batch from first up to end. */
GPSTI_PRIVATE gpst_result gpsti_offload_launch(gpsti_item* first, const gpsti_item* end, const gpsti_stage* stage) {
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
    for (gpsti_item* item = first; item != end; item = item->next_in_batch)
        for (uint32_t i = 0; i < item->sets[from].n; i++) {
            const gpst_image* const source = &item->sets[from].on_device[i];
            GPSTI_TRY(
                gpsti_warp_check(args.warp, source, &item->sets[to].on_device[i * args.n_outputs], args.n_outputs));
            exec.bytes += gpsti_offload_warp_bytes(item, args.warp, source);
        }
    gpsti_offload_collect(first, end, from, to, &args);
    if (args.n_sources == 0)
        return GPST_OK;
    return gpsti_stream_launch(first->work->stream, gpsti_warp_kernel(), &args, sizeof args, &exec);
}

/* One launch for all, where the pipeline has made room; items with lists may have other numbers of outputs, and those
   with a pose look elsewhere. */
GPSTI_PRIVATE gpst_result gpsti_offload_warp(gpsti_item* first, const gpsti_step* step, const gpsti_stage* stage) {
    bool together = step->one_warp && first->pipeline->plan.batch_most > 1 && !gpsti_stage_is_listed(&stage->desc);
    for (const gpsti_item* item = first; item; item = item->next_in_batch)
        together = together && !item->posed;
    for (gpsti_item *item = first, *next = NULL; item; item = next) {
        next = together ? NULL : item->next_in_batch;
        GPSTI_TRY(gpsti_offload_launch(item, next, stage));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_mask_time(gpsti_item* item, const gpsti_stage* stage, uint32_t stage_index) {
    const uint32_t set = gpsti_stage_from(&stage->desc);
    const gpsti_set* const from = &item->sets[set];
    gpsti_exec exec = item->exec;
    gpsti_mask_time_args args;
    if (from->n == 0)
        return GPST_OK;
    GPSTI_FAIL_IF(from->n > 1, GPST_ERROR_ARGUMENT, "set %u: %u pictures: TIME takes one of each item", set, from->n);
    GPSTI_TRY(gpsti_state_of(item, stage_index, &from->on_device[0], &args.states, &args.restart));
    exec.bytes = 0;
    args.desc = stage->desc.mask;
    args.from = from->on_device;
    args.to = item->sets[gpsti_set_of(stage->desc.writes)].on_device;
    args.n = 1;
    item->state_changed = true;
    return gpsti_stream_launch(item->work->stream, gpsti_mask_time_kernel(), &args, sizeof args, &exec);
}

GPSTI_PRIVATE gpst_result gpsti_offload_mask(gpsti_item* item, const gpsti_stage* stage) {
    const gpsti_set* const from = &item->sets[gpsti_stage_from(&stage->desc)];
    const gpsti_set* const guides = gpsti_stage_has_second(&stage->desc) ? &item->sets[stage->desc.second_set] : NULL;
    gpsti_exec exec = item->exec;
    gpsti_mask_op_args args;
    exec.bytes = 0;
    args.desc = stage->desc.mask;
    args.from = from->on_device;
    args.guides = guides ? guides->on_device : NULL;
    args.to = item->sets[gpsti_set_of(stage->desc.writes)].on_device;
    args.n = from->n;
    GPSTI_FAIL_IF(guides && guides->n < from->n, GPST_ERROR_ARGUMENT, "set %u: %u guides for %u pictures",
                  stage->desc.second_set, guides->n, from->n);
    if (args.n == 0)
        return GPST_OK;
    return gpsti_stream_launch(item->work->stream, gpsti_mask_op_kernel(), &args, sizeof args, &exec);
}

/* Of one picture columns are counted, which must be what its bytes are made of. */
GPSTI_PRIVATE gpst_result gpsti_offload_check_counts(const gpsti_item* item, uint32_t writes) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        const gpsti_set* const set = &item->sets[k];
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
GPSTI_PRIVATE gpst_result gpsti_offload_device(gpsti_item* first, uint32_t stage_index, uint32_t worker_index,
                                               char* reason) {
    const gpsti_stage* const stage = &first->pipeline->plan.stages[stage_index];
    gpsti_item* slots[GPSTI_MOST_BATCH];
    gpst_result results[GPSTI_MOST_BATCH];
    uint32_t n = 0;
    for (gpsti_item* item = first; item; item = item->next_in_batch)
        slots[n++] = item;
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
GPSTI_PRIVATE gpst_result gpsti_offload_place_ahead(gpsti_item* first, const gpsti_step* step, uint32_t stage_index) {
    const uint32_t end = step->first_stage + step->n_stages;
    for (uint32_t s = stage_index + 1; s < end; s++) {
        const gpst_stage_desc* const stage = &first->pipeline->plan.stages[s].desc;
        if (stage->kind == GPST_STAGE_DEVICE) /* what it makes, its function says */
            break;
        first->stage_at = s;
        for (gpsti_item* item = first; item; item = item->next_in_batch) {
            GPSTI_TRY(gpsti_offload_shape(item, step, s));
            GPSTI_TRY(gpsti_place_sets(item, stage->writes));
        }
    }
    first->stage_at = stage_index;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_stage(gpsti_item* first, const gpsti_step* step, uint32_t stage_index,
                                              uint32_t worker_index, char* reason) {
    const gpsti_stage* const stage = &first->pipeline->plan.stages[stage_index];
    if (stage->desc.kind == GPST_STAGE_DEVICE)
        return gpsti_offload_device(first, stage_index, worker_index, reason);
    for (gpsti_item* item = first; item && !step->one_warp; item = item->next_in_batch) {
        GPSTI_TRY(gpsti_offload_shape(item, step, stage_index));
        GPSTI_TRY(gpsti_place_sets(item, stage->desc.writes));
    }
    if (stage->desc.kind == GPST_STAGE_WARP)
        return gpsti_offload_warp(first, step, stage);
    if (gpsti_stage_has_state(&stage->desc))
        GPSTI_TRY(gpsti_offload_place_ahead(first, step, stage_index));
    for (gpsti_item* item = first; item; item = item->next_in_batch)
        GPSTI_TRY(gpsti_stage_has_state(&stage->desc) ? gpsti_offload_mask_time(item, stage, stage_index)
                                                      : gpsti_offload_mask(item, stage));
    return GPST_OK;
}

/* Records the next event, if this submission is timed. */
GPSTI_PRIVATE gpst_result gpsti_device_work_record(gpsti_device_work* work) {
    return work->timed ? gpsti_event_record(work->events[work->n_recorded++], work->stream) : GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_submit(gpsti_item* first, const gpsti_step* step, uint32_t worker_index,
                                               char* reason) {
    gpsti_device_work* const work = first->work;
    work->timed = work->on_host || (gpsti_timing_takes(&first->pipeline->counts.timing, &work->number) &&
                                    gpsti_graphs_leave_timed(first->pipeline, step, work->number));
    work->n_recorded = 0;
    GPSTI_TRY(gpsti_device_work_record(work));
    for (gpsti_item* item = first; item; item = item->next_in_batch)
        GPSTI_TRY(gpsti_offload_upload(item, step));
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
    for (gpsti_item* item = first; item; item = item->next_in_batch)
        GPSTI_TRY(gpsti_offload_download(item, step));
    return work->copies ? gpsti_device_work_record(work) : GPST_OK;
}

/* Waits for the submission in a plain loop and on the host; else the device will call done. */
GPSTI_PRIVATE gpst_result gpsti_offload_wait(gpsti_item* first, void (*done)(void*, gpst_result), bool* finished) {
    gpst_stream* const stream = first->work->stream;
    *finished = first->work->on_host || first->plain;
    return *finished ? gpsti_stream_wait_idle(stream) : gpsti_stream_notify(stream, done, first);
}

GPSTI_INTERN void gpsti_offload_undo(gpsti_item* item, const gpsti_step* step) {
    gpsti_item_forget(item, step->writes);
    if (item->state_changed)
        gpsti_state_forget(item, step);
    item->state_changed = false;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        if (item->uploaded & GPST_SET(k))
            item->sets[k].device_valid = false;
}

/* ---- an item, or a batch ------------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_offload_recover(gpsti_item* item, uint32_t sets, uint32_t worker_index, char* reason);

/* What the step reads is there, and what a single WARP writes has a shape. */
GPSTI_PRIVATE gpst_result gpsti_offload_prepare(gpsti_item* item, const gpsti_step* step, uint32_t worker_index,
                                                char* reason) {
    const bool given_back = item->has_frame && item->release && !item->borrowed;
    GPSTI_FAIL_IF((step->needs & GPST_SET(0)) && given_back, GPST_ERROR_DEVICE_LOST,
                  "what the device had is lost, and the lent frame that it was made of was given back");
    GPSTI_FAIL_IF((step->needs & GPST_SET(0)) && item->sets[0].n == 0, GPST_ERROR_STATE,
                  "the item has no picture in set 0: a stage before must call gpst_task_set_picture");
    if (item->on_cpu)
        GPSTI_TRY(gpsti_offload_recover(item, step->needs | step->lists, worker_index, reason));
    else
        GPSTI_TRY(gpsti_place_fetch(item, step->lists));
    return step->one_warp ? gpsti_offload_shape(item, step, step->first_stage) : GPST_OK;
}

/* Computes the step again on the CPU, from sets that nobody has changed since. */
GPSTI_PRIVATE gpst_result gpsti_offload_again(gpsti_item* item, const gpsti_step* step, uint32_t worker_index,
                                              char* reason) {
    gpsti_offload_undo(item, step);
    GPSTI_TRY(gpsti_offload_prepare(item, step, worker_index, reason));
    GPSTI_TRY(gpsti_device_work_prepare(item, item->work));
    GPSTI_TRY(gpsti_offload_place(item, step));
    GPSTI_TRY(gpsti_offload_submit(item, step, worker_index, reason));
    GPSTI_TRY(gpsti_stream_wait_idle(item->work->stream));
    gpsti_place_take_counts(item, step->writes);
    return GPST_OK;
}

/* The step that has written a set on the device; FINISH: none did. */
GPSTI_PRIVATE const gpsti_step* gpsti_offload_writer(const gpst_pipeline* pipeline, uint32_t set) {
    const gpsti_step* step = pipeline->plan.steps;
    while (step->kind != GPSTI_STEP_FINISH &&
           ((step->kind != GPSTI_STEP_OFFLOAD && step->kind != GPSTI_STEP_DECODE) || !(step->writes & GPST_SET(set))))
        step++;
    return step;
}

/* A file that the device had decoded is decoded on this thread, which is in no stage of the device meanwhile. */
GPSTI_PRIVATE gpst_result gpsti_offload_decode_again(gpsti_item* item, const gpsti_step* step, uint32_t worker_index,
                                                     char* reason) {
    gpsti_device_work* const work = item->work;
    gpsti_item_forget(item, step->writes);
    item->work = NULL;
    const gpst_result result = gpsti_call_stage(item, step->first_stage, 0, worker_index, reason);
    item->work = work;
    return result;
}

/* An item that goes on on the CPU: its sets come from the device, or are computed again where that does not give
   them, or has not kept them. */
GPSTI_PRIVATE gpst_result gpsti_offload_recover(gpsti_item* item, uint32_t sets, uint32_t worker_index, char* reason) {
    const gpst_pipeline* const pipeline = item->pipeline;
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++) {
        const gpsti_set* const its = &item->sets[k];
        if (!(sets & GPST_SET(k)) || its->host_valid || its->n == 0)
            continue;
        const gpst_result fetched = its->device_valid
                                        ? gpsti_place_fetch(item, GPST_SET(k))
                                        : gpsti_fail(GPST_ERROR_DEVICE_MEMORY, "its memory there was given back");
        if (!GPST_FAILED(fetched))
            continue;
        const gpsti_step* const step = gpsti_offload_writer(pipeline, k);
        /* A stage with a state has served later items since: it cannot be done again out of order. */
        GPSTI_FAIL_IF(step->kind == GPSTI_STEP_FINISH || step->ordered, GPST_ERROR_DEVICE_LOST,
                      "set %u was on the device only%s: %.300s", k,
                      step->kind == GPSTI_STEP_FINISH ? "" : ", and made by a stage with a state", gpst_last_reason());
        GPSTI_TRY(step->kind == GPSTI_STEP_DECODE ? gpsti_offload_decode_again(item, step, worker_index, reason)
                                                  : gpsti_offload_again(item, step, worker_index, reason));
    }
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_offload_start(gpsti_item* first, const gpsti_step* step, uint32_t worker_index,
                                              void (*done)(void*, gpst_result), bool* finished, char* reason) {
    gpsti_device_work* const work = first->work;
    work->n_items = 0;
    work->copies = work->is_short = false;
    for (gpsti_item* item = first; item; item = item->next_in_batch) {
        item->uploaded = 0; /* a failure before anything is uploaded must not take what the device has made */
        item->state_changed = false;
    }
    for (gpsti_item* item = first; item; item = item->next_in_batch, work->n_items++) {
        item->work = work;
        item->stage_at = step->first_stage;
        GPSTI_TRY(gpsti_offload_prepare(item, step, worker_index, reason));
    }
    GPSTI_TRY(gpsti_device_work_prepare(first, work));
    for (gpsti_item* item = first; item; item = item->next_in_batch)
        GPSTI_TRY(gpsti_offload_place(item, step));
    GPSTI_TRY(gpsti_offload_submit(first, step, worker_index, reason));
    return gpsti_offload_wait(first, done, finished);
}

/* A failed submission: waits until the device touches the slots' memory no more. Where memory was short the slots give
   theirs back, or each might hold a part and none enough. True: some had more than the step takes. */
GPSTI_PRIVATE bool gpsti_offload_give_up(gpsti_item* first, const gpsti_step* step, gpst_result result) {
    const bool is_memory = result == GPST_ERROR_DEVICE_MEMORY || result == GPST_ERROR_BUDGET;
    bool any = false;
    if (first->work->stream) /* what was submitted before the failure */
        (void)gpsti_stream_wait_idle(first->work->stream);
    for (gpsti_item* item = first; item; item = item->next_in_batch) {
        gpsti_offload_undo(item, step);
        if (is_memory)
            any = gpsti_place_free_unused(item, step->needs | step->writes) || any;
    }
    return any;
}

GPSTI_INTERN gpst_result gpsti_offload_run(gpsti_item* item, const gpsti_step* step, uint32_t worker_index,
                                           void (*done)(void* item, gpst_result result), bool* finished, char* reason) {
    *finished = true;
    item->work = &item->works[item->on_cpu ? 1 : 0];
    reason[0] = '\0';
    if (item->device_reason[0]) { /* why the device could not; said here, where no lock is held */
        GPSTI_LOG(&item->pipeline->context->host, GPST_LOG_WARNING, item->shown.index,
                  "device work done again on the CPU: %s", item->device_reason);
        item->device_reason[0] = '\0';
    }
    gpst_result result = gpsti_offload_start(item, step, worker_index, done, finished, reason);
    for (bool again = true; GPST_FAILED(result) && again;) {
        if (!reason[0])
            gpsti_copy_text(reason, GPST_REASON_BYTES, gpst_last_reason());
        const bool freed = gpsti_offload_give_up(item, step, result);
        *finished = true;
        again = gpsti_shortage_is(item, result) && gpsti_shortage_relieve(item, reason, freed);
        if (again) {
            reason[0] = '\0';
            result = gpsti_offload_start(item, step, worker_index, done, finished, reason);
        }
    }
    if (!GPST_FAILED(result) && *finished) /* else another thread may have the slot by now */
        gpsti_offload_read_times(item);
    return result;
}

GPSTI_INTERN gpst_result gpsti_offload_fetch(gpsti_item* item, uint32_t sets, uint32_t worker_index, char* reason) {
    gpsti_mutex* const mutex = &item->pipeline->context->scheduler->mutex;
    reason[0] = '\0';
    const gpst_result fetched = gpsti_place_fetch(item, sets);
    if (!GPST_FAILED(fetched))
        return fetched;
    gpsti_copy_text(reason, GPST_REASON_BYTES, gpst_last_reason());
    gpsti_mutex_lock(mutex);
    const bool again = gpsti_offload_fall_back(item, fetched, reason);
    gpsti_mutex_unlock(mutex);
    if (!again)
        return fetched;
    item->device_reason[0] = reason[0] = '\0';
    item->work = &item->works[1];
    const gpst_result result = gpsti_offload_recover(item, sets, worker_index, reason);
    item->work = NULL;
    if (GPST_FAILED(result) && !reason[0])
        gpsti_copy_text(reason, GPST_REASON_BYTES, gpst_last_reason());
    return result;
}

GPSTI_INTERN bool gpsti_offload_fall_back(gpsti_item* item, gpst_result result, const char* reason) {
    gpst_pipeline* const pipeline = item->pipeline;
    const bool device_trouble = result == GPST_ERROR_DEVICE || result == GPST_ERROR_DEVICE_MEMORY ||
                                result == GPST_ERROR_DEVICE_LOST || result == GPST_ERROR_UNSUPPORTED ||
                                (result == GPST_ERROR_BUDGET && !item->works[0].on_host);
    if (result == GPST_ERROR_DEVICE_LOST)
        gpsti_a32_store(&pipeline->context->public_device.lost, 1);
    if (!device_trouble || item->on_cpu || pipeline->context->require_backend ||
        item->works[0].device == item->works[1].device)
        return false;
    item->on_cpu = true;
    gpsti_offload_undo(item, &pipeline->plan.steps[item->job.step]);
    pipeline->flow.device_lost = pipeline->flow.device_lost || result == GPST_ERROR_DEVICE_LOST;
    pipeline->counts.device_fallbacks++;
    gpsti_copy_text(item->device_reason, sizeof item->device_reason, reason);
    if (!pipeline->counts.fallback_reason[0])
        gpsti_copy_text(pipeline->counts.fallback_reason, sizeof pipeline->counts.fallback_reason, reason);
    return true;
}
