/* core/pipeline/place.c -- where the pictures of an item's sets are: a slot's streams, events and device memory, copies
   between host and device, and what a warp keeps on the device. Submits no kernel. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- streams, events, memory ----------------------------------------------------------- */

/* Lists for the largest batch, made once. */
GPSTI_PRIVATE gpst_result gpsti_device_work_make_room(gpst_pipeline* pipeline, gpsti_device_work* work) {
    const size_t n = pipeline->plan.batch_most;
    if (n <= 1 || work->on_host)
        return GPST_OK;
    if (!work->sources)
        work->sources = (gpst_image*)gpsti_alloc(&pipeline->context->host, n * sizeof *work->sources);
    if (!work->images)
        work->images =
            (gpst_image*)gpsti_alloc(&pipeline->context->host, n * pipeline->plan.n_written * sizeof *work->images);
    return work->sources && work->images ? GPST_OK : GPST_ERROR_MEMORY;
}

GPSTI_PRIVATE gpst_result gpsti_device_work_make(gpsti_item* item, gpsti_device_work* work) {
    const uint32_t n_events = item->pipeline->plan.n_events;
    gpsti_host* const host = &item->pipeline->context->host;
    GPSTI_TRY(gpsti_device_work_make_room(item->pipeline, work));
    if (!work->events)
        work->events = (gpst_event**)gpsti_alloc(host, n_events * sizeof(gpst_event*));
    if (!work->times_ns)
        work->times_ns = (int64_t*)gpsti_alloc(host, n_events * sizeof(int64_t));
    if (!work->events || !work->times_ns)
        return GPST_ERROR_MEMORY;
    const int64_t begin_ns = gpsti_now_ns();
    gpst_result result = work->stream ? GPST_OK : gpsti_stream_make(work->device, &work->stream);
    if (!GPST_FAILED(result) && item->pipeline->plan.graphs)
        result = gpsti_commands_reserve(&work->stream->commands, GPSTI_GRAPHS_COMMAND_BYTES);
    while (!GPST_FAILED(result) && work->n_events < n_events) {
        result = gpsti_event_make(work->device, &work->events[work->n_events]);
        work->n_events += GPST_FAILED(result) ? 0 : 1;
    }
    (void)gpsti_memory_count_growth(begin_ns);
    return result;
}

GPSTI_PRIVATE void gpsti_place_free(gpst_context* context, gpst_buffer* memory) {
    if (memory->data)
        gpsti_memory_release(context, memory);
}

GPSTI_INTERN gpst_result gpsti_device_work_prepare(gpsti_item* item, gpsti_device_work* work) {
    if (work->stream && work->n_events == item->pipeline->plan.n_events)
        return GPST_OK;
    return gpsti_device_work_make(item, work);
}

GPSTI_PRIVATE gpst_result gpsti_place_reserve(gpsti_item* item, gpst_buffer* memory, size_t bytes, const char* tag) {
    gpst_pipeline* const pipeline = item->pipeline;
    if (memory->data && memory->bytes >= bytes)
        return GPST_OK;
    gpsti_place_free(pipeline->context, memory);
    const gpst_result result =
        gpsti_memory_acquire_device(pipeline->context, bytes, tag, &pipeline->memory.device_growths, memory);
    if (item->work && GPST_FAILED(result))
        item->work->is_short = true;
    return result;
}

/* Rows lie as on the host: a lent frame may have gaps between them, or be bottom-up. */
GPSTI_INTERN gpst_result gpsti_place_make_on_device(gpsti_item* item, uint32_t set, uint32_t picture) {
    gpsti_set* const its = &item->sets[set];
    const gpst_image* const host = &its->on_host[picture];
    gpst_image* const device = &its->on_device[picture];
    size_t bytes = 0;
    *device = *host;
    device->data = NULL;
    if (host->width == 0) /* its writer has left it out */
        return GPST_OK;
    GPSTI_TRY(gpst_image_bytes(device, &bytes));
    GPSTI_TRY(gpsti_place_reserve(item, &its->device[picture], bytes, set == 0 ? "input" : "picture"));
    const ptrdiff_t first = host->data ? (const uint8_t*)host->data - gpsti_image_lowest(host) : 0;
    device->data = (uint8_t*)its->device[picture].data + first;
    return GPST_OK;
}

/* ---- copies ------------------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_place_copy(gpst_stream* stream, const gpst_image* to, const gpst_image* from,
                                           uint64_t* copied) {
    size_t bytes = 0;
    GPSTI_TRY(gpst_image_bytes(from, &bytes));
    *copied += bytes;
    return gpsti_stream_copy(stream, (void*)(uintptr_t)gpsti_image_lowest(to), gpsti_image_lowest(from), bytes);
}

GPSTI_INTERN gpst_result gpsti_place_copy_up(gpsti_item* item, uint32_t set, uint64_t* copied) {
    gpsti_set* const its = &item->sets[set];
    for (uint32_t i = 0; i < its->n; i++)
        if (its->on_host[i].data)
            GPSTI_TRY(gpsti_place_copy(item->work->stream, &its->on_device[i], &its->on_host[i], copied));
    its->device_valid = true;
    return GPST_OK;
}

/* What the device has counted comes with the pictures; the word is no copy that is counted. */
GPSTI_PRIVATE gpst_result gpsti_place_copy_count(gpsti_item* item, uint32_t set) {
    const gpsti_set* const its = &item->sets[set];
    uint32_t* const word = (uint32_t*)item->counts_on_host.data + set;
    return its->count ? gpsti_stream_copy(item->work->stream, word, its->count, sizeof *word) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_place_copy_down(gpsti_item* item, uint32_t set, uint64_t* copied) {
    gpsti_set* const its = &item->sets[set];
    for (uint32_t i = 0; i < its->n; i++) {
        if (!its->on_device[i].data)
            continue;
        if (!its->on_host[i].data)
            GPSTI_TRY(gpsti_item_make_on_host(item, set, i));
        GPSTI_TRY(gpsti_place_copy(item->work->stream, &its->on_host[i], &its->on_device[i], copied));
    }
    GPSTI_TRY(gpsti_place_copy_count(item, set));
    its->host_valid = true;
    return GPST_OK;
}

/* Finds where kernels will have the pictures of sets, whose shapes are known. */
GPSTI_INTERN gpst_result gpsti_place_sets(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set* const its = &item->sets[k];
        if (!(sets & GPST_SET(k)) || (!item->in_place && its->device_valid))
            continue;
        for (uint32_t i = 0; i < its->n; i++) {
            if (item->in_place)
                its->on_device[i] = its->on_host[i];
            else
                GPSTI_TRY(gpsti_place_make_on_device(item, k, i));
        }
    }
    return GPST_OK;
}

/* ---- how many count --------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_place_make_count(gpsti_item* item, uint32_t set) {
    const size_t bytes = item->pipeline->plan.n_sets * sizeof(uint32_t);
    const bool on_host = item->work->on_host;
    gpsti_set* const its = &item->sets[set];
    GPSTI_TRY(gpsti_item_reserve(item, &item->counts_on_host, bytes, 0, true)); /* where the device's word comes, too */
    if (!on_host)
        GPSTI_TRY(gpsti_place_reserve(item, &item->counts_on_device, bytes, "count"));
    its->count = (uint32_t*)(on_host ? item->counts_on_host : item->counts_on_device).data + set;
    its->per_count = item->pipeline->plan.sets[set].capacity > 1 ? 1 : 0;
    return gpsti_stream_fill(item->work->stream, its->count, 0, sizeof *its->count);
}

GPSTI_PRIVATE void gpsti_place_take_count(gpsti_item* item, uint32_t set) {
    gpsti_set* const its = &item->sets[set];
    const uint32_t* const words = (const uint32_t*)item->counts_on_host.data;
    const uintptr_t count = (uintptr_t)its->count, first = (uintptr_t)words;
    const bool on_host = count >= first && count < first + item->pipeline->plan.n_sets * sizeof *words;
    const uint64_t counted = on_host ? *its->count : words[set];
    its->count = NULL;
    if (its->per_count > 0 || counted == 0 || its->n == 0) { /* a list without entries is none */
        const uint64_t n = counted * its->per_count;
        gpsti_item_set_n(item, set, n < its->n ? (uint32_t)n : its->n);
        return;
    }
    if (counted >= its->on_host[0].width)
        return;
    its->on_host[0].width = its->on_device[0].width = (uint32_t)counted;
    its->on_host[0].pitch_bytes = its->on_device[0].pitch_bytes = (int64_t)gpst_image_row_bytes(&its->on_host[0]);
}

GPSTI_INTERN void gpsti_place_take_counts(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        if ((sets & GPST_SET(k)) && item->sets[k].count && item->sets[k].host_valid)
            gpsti_place_take_count(item, k);
}

/* ---- a set from one side to the other, at once ------------------------------------------------ */

/* The slot's stream on the device, whatever its work in progress is. */
GPSTI_PRIVATE gpst_result gpsti_place_move(gpsti_item* item, uint32_t set, bool up) {
    gpsti_device_work* const before = item->work;
    gpsti_set_plan* const plan = &item->pipeline->plan.sets[set];
    uint64_t bytes = 0;
    item->work = &item->works[0];
    gpst_result result = gpsti_device_work_prepare(item, item->work);
    if (!GPST_FAILED(result) && item->borrowed && set == 0 && item->ready)
        result = gpsti_stream_await(item->work->stream, item->ready);
    for (uint32_t i = 0; up && !GPST_FAILED(result) && i < item->sets[set].n; i++)
        result = gpsti_place_make_on_device(item, set, i);
    if (!GPST_FAILED(result))
        result = up ? gpsti_place_copy_up(item, set, &bytes) : gpsti_place_copy_down(item, set, &bytes);
    const gpst_result waited = item->work->stream ? gpsti_stream_wait_idle(item->work->stream) : GPST_OK;
    result = GPST_FAILED(result) ? result : waited; /* after a failure, too: what was put there reads the memory */
    item->work = before;
    gpsti_set* const its = &item->sets[set];
    if (GPST_FAILED(result)) {
        its->host_valid = up;
        its->device_valid = !up;
        return result;
    }
    gpsti_mutex_lock(&item->pipeline->context->scheduler->mutex);
    gpsti_account_copy(item->pipeline, plan, up, its->n, bytes);
    gpsti_mutex_unlock(&item->pipeline->context->scheduler->mutex);
    gpsti_place_take_counts(item, GPST_SET(set));
    return GPST_OK;
}

/* An empty set has nothing to fetch, and a lost device has not taken it along. */
GPSTI_INTERN gpst_result gpsti_place_fetch(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        if ((sets & GPST_SET(k)) && item->sets[k].n > 0 && item->sets[k].device_valid && !item->sets[k].host_valid)
            GPSTI_TRY(gpsti_place_move(item, k, false));
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_place_bring(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; !item->pipeline->plan.device_on_host && k < item->pipeline->plan.n_sets; k++)
        if ((sets & GPST_SET(k)) && item->sets[k].host_valid && !item->sets[k].device_valid)
            GPSTI_TRY(gpsti_place_move(item, k, true));
    return GPST_OK;
}

GPSTI_INTERN bool gpsti_place_free_unused(gpsti_item* item, uint32_t needed) {
    bool any = false;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        for (uint32_t i = 0; !item->sets[k].device_valid && i < item->pipeline->plan.sets[k].capacity; i++) {
            any = any || (item->sets[k].device[i].data && !(needed & GPST_SET(k)));
            gpsti_place_free(item->pipeline->context, &item->sets[k].device[i]);
        }
    return any;
}

/* Will a step, from this one on, or the user find the set on the device? Elsewhere it is known on the host, or dead. */
GPSTI_PRIVATE bool gpsti_place_is_wanted(const gpsti_item* item, uint32_t set, uint32_t from) {
    const gpst_pipeline* const pipeline = item->pipeline;
    const gpsti_set_plan* const plan = &pipeline->plan.sets[set];
    const bool on_host = item->sets[set].host_valid;
    bool wanted = plan->is_result && (plan->place == GPST_ON_DEVICE || (plan->place == GPST_AS_IT_IS && !on_host));
    if (on_host)
        for (uint32_t s = from; !wanted && s < pipeline->plan.n_steps; s++)
            wanted =
                pipeline->plan.steps[s].kind == GPSTI_STEP_OFFLOAD && (pipeline->plan.steps[s].reads & GPST_SET(set));
    else
        wanted = wanted || plan->last_step >= from;
    return wanted;
}

GPSTI_INTERN bool gpsti_place_take_unneeded(gpsti_item* item, uint32_t from, gpsti_pieces* out) {
    bool any = false;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set* const its = &item->sets[k];
        const bool lent = k == 0 && item->frame_on_device;
        if (item->in_use && (lent || (its->device_valid && gpsti_place_is_wanted(item, k, from))))
            continue;
        for (uint32_t i = 0; i < item->pipeline->plan.sets[k].capacity; i++) {
            if (!its->device[i].data || (out && out->n == GPSTI_PIECES))
                continue;
            any = true;
            if (!out)
                continue;
            its->device_valid = false;
            out->memory[out->n++] = its->device[i];
            memset(&its->device[i], 0, sizeof its->device[i]);
        }
    }
    return any;
}

GPSTI_PRIVATE void gpsti_place_free_pictures(gpsti_item* item) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        for (uint32_t i = 0; i < item->pipeline->plan.sets[k].capacity; i++)
            gpsti_place_free(item->pipeline->context, &item->sets[k].device[i]);
}

GPSTI_PRIVATE void gpsti_device_work_free(gpsti_item* item, gpsti_device_work* work) {
    if (!work->device)
        return;
    gpst_stream_destroy(work->stream);
    for (uint32_t e = 0; e < work->n_events; e++)
        gpst_event_destroy(work->events[e]);
    if (work->times_ns)
        gpsti_free(&item->pipeline->context->host, work->times_ns, item->pipeline->plan.n_events * sizeof(int64_t));
    if (work->events)
        gpsti_free(&item->pipeline->context->host, work->events, item->pipeline->plan.n_events * sizeof(gpst_event*));
    const size_t n = item->pipeline->plan.batch_most;
    if (work->sources)
        gpsti_free(&item->pipeline->context->host, work->sources, n * sizeof *work->sources);
    if (work->images)
        gpsti_free(&item->pipeline->context->host, work->images,
                   n * item->pipeline->plan.n_written * sizeof *work->images);
    work->stream = NULL;
    work->events = NULL;
    work->n_events = 0;
    work->times_ns = NULL;
    work->sources = work->images = NULL;
}

GPSTI_INTERN void gpsti_place_free_slot(gpsti_item* item) {
    gpsti_device_work_free(item, &item->works[0]);
    gpsti_device_work_free(item, &item->works[1]);
    gpsti_place_free_pictures(item);
    gpsti_place_free(item->pipeline->context, &item->counts_on_device);
}

/* ---- what a warp keeps on the device --------------------------------------------------------- */
GPSTI_PRIVATE gpst_result gpsti_constants_copy(gpst_device* device, void* to, const void* from, size_t bytes) {
    gpst_stream* stream = NULL;
    GPSTI_TRY(gpsti_stream_make(device, &stream));
    gpst_result result = gpsti_stream_copy(stream, to, from, bytes);
    if (!GPST_FAILED(result))
        result = gpsti_stream_wait_idle(stream);
    gpst_stream_destroy(stream);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_constants_make(gpst_pipeline* pipeline, gpsti_stage* stage) {
    gpst_context* const context = pipeline->context;
    gpst_device* const device = &context->public_device;
    const void *mask = NULL, *table = NULL;
    ptrdiff_t mask_data = 0; /* from the mask's lowest byte: bottom-up its first row is the last in memory */
    size_t mask_bytes = 0, table_bytes = 0, bytes = 0;
    gpsti_warp_query_constants(stage->desc.warp, &mask, &mask_bytes, &mask_data, &table, &table_bytes);
    if (mask_bytes + table_bytes == 0)
        return GPST_OK;
    GPSTI_FAIL_IF(!gpsti_size_round_up(mask_bytes, 64, &bytes) || !gpsti_size_add(bytes, table_bytes, &bytes),
                  GPST_ERROR_OVERFLOW, "gpst_pipeline_create: the warp's mask and table do not fit in memory");
    GPSTI_TRY(gpsti_memory_acquire_device(context, bytes, "warp", NULL, &stage->constants));
    uint8_t* const table_copy = (uint8_t*)stage->constants.data + (bytes - table_bytes);
    if (mask_bytes > 0)
        GPSTI_TRY(gpsti_constants_copy(device, stage->constants.data, mask, mask_bytes));
    if (table_bytes > 0)
        GPSTI_TRY(gpsti_constants_copy(device, table_copy, table, table_bytes));
    stage->mask = mask_bytes > 0 ? (const uint8_t*)stage->constants.data + mask_data : NULL;
    stage->table = table_bytes > 0 ? table_copy : NULL;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_constants_load(gpst_pipeline* pipeline, gpsti_stage* stage) {
    if (!stage->desc.warp)
        return;
    stage->constants_result = gpsti_constants_make(pipeline, stage);
    if (GPST_FAILED(stage->constants_result))
        gpsti_copy_text(stage->constants_reason, sizeof stage->constants_reason, gpst_last_reason());
}

GPSTI_INTERN void gpsti_constants_free(gpst_pipeline* pipeline, gpsti_stage* stage) {
    if (stage->constants.data)
        gpsti_memory_release(pipeline->context, &stage->constants);
}
