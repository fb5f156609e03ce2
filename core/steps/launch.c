/* core/steps/launch.c -- one stage of a device step put on the stream: WARP and MASK launched, DEVICE's function
   called. */
#include "../base/platform_internal.h"

#include "device_internal.h"

#include <string.h>

/* ---- what a stage will write ------------------------------------------------------------------ */

/* As many pictures as the item's list has. Where the host reads the list its entries are checked. */
GPSTI_PRIVATE gpst_result gpsti_launch_count_list(const gpsti_item* item, const gpst_stage_desc* stage, uint32_t* n) {
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
GPSTI_PRIVATE void gpsti_launch_inherit_count(gpsti_item* item, const gpst_stage_desc* stage) {
    const bool listed = gpsti_stage_is_listed(stage);
    const gpsti_set* const by = &item->sets[listed ? stage->second_set : gpsti_stage_from(stage)];
    gpsti_set* const to = &item->sets[gpsti_set_of(stage->writes)];
    to->per_count = listed ? 1 : gpsti_stage_makes(stage, by->per_count);
    to->count = to->per_count > 0 ? by->count : NULL;
}

GPSTI_INTERN gpst_result gpsti_launch_shape(gpsti_item* item, const gpsti_step* step, uint32_t stage_index) {
    const gpst_stage_desc* const stage = &item->pipeline->plan.stages[stage_index].desc;
    const uint32_t from = gpsti_stage_from(stage), to = gpsti_set_of(stage->writes);
    uint32_t n = gpsti_stage_makes(stage, item->sets[from].n);
    const bool on_host = item->work->on_host || (step->downloads & GPST_SET(to));
    if (gpsti_stage_is_listed(stage))
        GPSTI_TRY(gpsti_launch_count_list(item, stage, &n));
    for (uint32_t i = 0; i < item->sets[from].n; i++)
        GPSTI_FAIL_IF(item->sets[from].on_host[i].width == 0, GPST_ERROR_STATE,
                      "set %u: picture %u of %u was never set", from, i, item->sets[from].n);
    gpsti_set_resize(item, to, n);
    gpsti_launch_inherit_count(item, stage);
    item->sets[to].writer = stage_index + 1;
    for (uint32_t i = 0; i < n; i++) {
        gpst_image* const shape = &item->sets[to].on_host[i];
        if (stage->kind == GPST_STAGE_WARP)
            gpst_warp_query_output(stage->warp, shape);
        else
            GPSTI_TRY(gpst_mask_query_output(stage->mask, &item->sets[from].on_host[i], shape));
        if (on_host)
            GPSTI_TRY(gpsti_set_make_on_host(item, to, i));
    }
    return GPST_OK;
}

/* ---- WARP --------------------------------------------------------------------------------------- */

/* Unique bytes of the warp. Counting them may take longer than the item: counted once for each shape. */
GPSTI_PRIVATE uint64_t gpsti_launch_warp_bytes(gpsti_item* item, const gpst_warp* warp, const gpst_image* source) {
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

/* The pictures of n items in one list, as a launch takes them. */
GPSTI_PRIVATE void gpsti_launch_collect(gpsti_item* const* items, uint32_t n, uint32_t from, uint32_t to,
                                        gpsti_warp_args* args) {
    const gpsti_device_work* const work = items[0]->work;
    args->sources = items[0]->sets[from].on_device;
    args->outputs = items[0]->sets[to].on_device;
    args->n_sources = items[0]->sets[from].n;
    if (n == 1)
        return;
    for (uint32_t i = 0; i < n; i++) {
        work->sources[i] = items[i]->sets[from].on_device[0];
        memcpy(&work->images[(size_t)i * args->n_outputs], items[i]->sets[to].on_device,
               args->n_outputs * sizeof *work->images);
    }
    args->n_sources = n;
    args->sources = work->sources;
    args->outputs = work->images;
}

/* Where the kernel, or the host that launches it, reads the item's list. */
GPSTI_PRIVATE const float* gpsti_launch_list(const gpsti_item* item, const gpst_stage_desc* stage) {
    const gpsti_set* const set = &item->sets[stage->second_set];
    return (const float*)(gpsti_stage_host_list(stage) ? set->on_host : set->on_device)[0].data;
}

/* One launch for n items. */
GPSTI_PRIVATE gpst_result gpsti_launch_warp_of(gpsti_item* const* items, uint32_t n, const gpsti_stage* stage) {
    const uint32_t from = gpsti_stage_from(&stage->desc), to = gpsti_set_of(stage->desc.writes);
    gpsti_item* const first = items[0];
    gpsti_exec exec = first->exec;
    gpsti_warp_args args;
    memset(&args, 0, sizeof args);
    args.warp = stage->desc.warp;
    args.n_outputs = gpst_warp_n_outputs(args.warp);
    if (gpsti_stage_is_listed(&stage->desc)) {
        args.n_outputs = first->sets[to].n;
        args.list = gpsti_launch_list(first, &stage->desc);
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
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < items[k]->sets[from].n; i++) {
            const gpst_image* const source = &items[k]->sets[from].on_device[i];
            GPSTI_TRY(
                gpsti_warp_check(args.warp, source, &items[k]->sets[to].on_device[i * args.n_outputs], args.n_outputs));
            exec.bytes += gpsti_launch_warp_bytes(items[k], args.warp, source);
        }
    gpsti_launch_collect(items, n, from, to, &args);
    if (args.n_sources == 0)
        return GPST_OK;
    return gpsti_stream_launch(first->work->stream, gpsti_warp_kernel(), &args, sizeof args, &exec);
}

/* One launch for all, where the plan has made room; items with lists may have other numbers of outputs, and those with
   a pose look elsewhere. */
GPSTI_PRIVATE gpst_result gpsti_launch_warp(const gpsti_batch* batch, const gpsti_stage* stage) {
    bool together = gpsti_batch_step(batch)->one_warp && batch->item->pipeline->plan.batch_most > 1 &&
                    !gpsti_stage_is_listed(&stage->desc);
    for (uint32_t i = 0; i < batch->n; i++)
        together = together && !batch->items[i]->posed && batch->items[i]->sets[gpsti_stage_from(&stage->desc)].n == 1;
    if (together)
        return gpsti_launch_warp_of(batch->items, batch->n, stage);
    for (uint32_t i = 0; i < batch->n; i++)
        GPSTI_TRY(gpsti_launch_warp_of(&batch->items[i], 1, stage));
    return GPST_OK;
}

/* ---- MASK --------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_launch_mask_time(gpsti_item* item, const gpsti_stage* stage, uint32_t stage_index) {
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

GPSTI_PRIVATE gpst_result gpsti_launch_mask(gpsti_item* item, const gpsti_stage* stage) {
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

/* ---- DEVICE ------------------------------------------------------------------------------------- */

/* Of one picture columns are counted, which must be what its bytes are made of. */
GPSTI_PRIVATE gpst_result gpsti_launch_check_counts(const gpsti_item* item, uint32_t writes) {
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
GPSTI_PRIVATE gpst_result gpsti_launch_function(const gpsti_batch* batch, uint32_t stage_index, uint32_t worker_index,
                                                char* reason) {
    const gpst_stage_desc* const stage = &batch->item->pipeline->plan.stages[stage_index].desc;
    gpst_result results[GPSTI_MOST_BATCH];
    const bool together = batch->n > 1 && stage->batch_func;
    if (together)
        GPSTI_TRY(gpsti_call_batch(batch->items, batch->n, stage_index, worker_index, results, reason));
    for (uint32_t i = 0; i < batch->n; i++) {
        if (!together)
            GPSTI_TRY(gpsti_call_stage(batch->items[i], stage_index, 0, worker_index, reason));
        else if (GPST_FAILED(results[i])) {
            gpsti_copy_text(reason, GPST_REASON_BYTES, batch->items[i]->reason);
            return results[i];
        }
        GPSTI_TRY(gpsti_launch_check_counts(batch->items[i], stage->writes));
    }
    return GPST_OK;
}

/* ---- one stage ------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_launch_place(const gpsti_batch* batch, const gpsti_step* step, uint32_t stage_index) {
    for (uint32_t i = 0; i < batch->n; i++) {
        GPSTI_TRY(gpsti_launch_shape(batch->items[i], step, stage_index));
        GPSTI_TRY(gpsti_sets_place(batch->items[i], batch->item->pipeline->plan.stages[stage_index].desc.writes));
    }
    return GPST_OK;
}

/* What the stages behind one with a state will write: where its memory is not there, the state has not changed yet. */
GPSTI_PRIVATE gpst_result gpsti_launch_place_ahead(const gpsti_batch* batch, const gpsti_step* step,
                                                   uint32_t stage_index) {
    const uint32_t end = step->first_stage + step->n_stages;
    for (uint32_t s = stage_index + 1; s < end; s++) {
        if (batch->item->pipeline->plan.stages[s].desc.kind == GPST_STAGE_DEVICE) /* what it makes, its function says */
            break;
        batch->item->stage_at = s;
        GPSTI_TRY(gpsti_launch_place(batch, step, s));
    }
    batch->item->stage_at = stage_index;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_launch_stage(const gpsti_batch* batch, uint32_t stage_index, uint32_t worker_index,
                                            char* reason) {
    const gpsti_step* const step = gpsti_batch_step(batch);
    const gpsti_stage* const stage = &batch->item->pipeline->plan.stages[stage_index];
    const bool has_state = gpsti_stage_has_state(&stage->desc);
    if (stage->desc.kind == GPST_STAGE_DEVICE)
        return gpsti_launch_function(batch, stage_index, worker_index, reason);
    if (!step->one_warp)
        GPSTI_TRY(gpsti_launch_place(batch, step, stage_index));
    if (stage->desc.kind == GPST_STAGE_WARP)
        return gpsti_launch_warp(batch, stage);
    if (has_state)
        GPSTI_TRY(gpsti_launch_place_ahead(batch, step, stage_index));
    for (uint32_t i = 0; i < batch->n; i++)
        GPSTI_TRY(has_state ? gpsti_launch_mask_time(batch->items[i], stage, stage_index)
                            : gpsti_launch_mask(batch->items[i], stage));
    return GPST_OK;
}
