/* core/items/set.c -- the picture sets of an item: their memory on the host and on the device, the item's streams and
   events there, copies between both. Submits no kernel. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- shapes ------------------------------------------------------------------------------ */

GPSTI_INTERN gpst_result gpsti_set_shape(const gpst_image* shape, const char* function, gpst_image* out,
                                         size_t* bytes) {
    GPSTI_FAIL_IF(!shape || shape->width == 0 || shape->height == 0, GPST_ERROR_ARGUMENT,
                  "%s: shape=%u x %u: width and height must be at least 1", function, shape ? shape->width : 0,
                  shape ? shape->height : 0);
    *out = *shape;
    out->data = NULL;
    out->pitch_bytes = 0;
    GPSTI_TRY(gpsti_image_extent(out, function, "shape", bytes));
    out->pitch_bytes = (int64_t)gpst_image_row_bytes(out);
    return GPST_OK;
}

GPSTI_INTERN void gpsti_set_resize(gpsti_item* item, uint32_t set, uint32_t n) {
    item->sets[set].n = n;
    item->views[set].n = n;
}

GPSTI_INTERN void gpsti_sets_forget(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set* const set = &item->sets[k];
        const size_t capacity = item->pipeline->plan.sets[k].capacity;
        if (!(sets & GPST_SET(k)))
            continue;
        gpsti_set_resize(item, k, 0);
        set->writer = set->valid = 0;
        set->count = NULL;
        memset(set->on_host, 0, capacity * sizeof *set->on_host);
        memset(set->on_device, 0, capacity * sizeof *set->on_device);
        item->views[k].pictures = set->on_host;
        item->views[k].on_device = false;
    }
}

GPSTI_INTERN bool gpsti_set_is_at(const gpsti_item* item, uint32_t set, uint32_t where) {
    return (item->sets[set].valid & where) != 0;
}

GPSTI_INTERN uint64_t gpsti_sets_bytes(const gpsti_item* item, uint32_t sets) {
    uint64_t total = 0;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        for (uint32_t i = 0; (sets & GPST_SET(k)) && i < item->sets[k].n; i++) {
            size_t bytes = 0;
            if (item->sets[k].on_host[i].width > 0 && gpst_image_bytes(&item->sets[k].on_host[i], &bytes) == GPST_OK)
                total += bytes;
        }
    return total;
}

/* ---- memory ------------------------------------------------------------------------------ */

GPSTI_INTERN gpst_result gpsti_set_make_on_host(gpsti_item* item, uint32_t set, uint32_t picture) {
    gpst_image* const image = &item->sets[set].on_host[picture];
    gpst_buffer* const buffer = &item->sets[set].host[picture];
    size_t bytes = 0;
    image->data = NULL; /* whatever comes of growing */
    GPSTI_TRY(gpst_image_bytes(image, &bytes));
    GPSTI_TRY(gpsti_item_reserve(item, buffer, bytes, 0, true));
    image->data = buffer->data;
    return GPST_OK;
}

/* Rows lie as on the host: a lent frame may have gaps between them, or be bottom-up. */
GPSTI_INTERN gpst_result gpsti_set_make_on_device(gpsti_item* item, uint32_t set, uint32_t picture) {
    gpsti_set* const its = &item->sets[set];
    const gpst_image* const host = &its->on_host[picture];
    gpst_image* const device = &its->on_device[picture];
    size_t bytes = 0;
    *device = *host;
    device->data = NULL;
    if (host->width == 0) /* its writer has left it out */
        return GPST_OK;
    GPSTI_TRY(gpst_image_bytes(device, &bytes));
    GPSTI_TRY(gpsti_item_reserve_device(item, &its->device[picture], bytes, set == 0 ? "input" : "picture"));
    const ptrdiff_t first = host->data ? (const uint8_t*)host->data - gpsti_image_lowest(host) : 0;
    device->data = (uint8_t*)its->device[picture].data + first;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_sets_place(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set* const its = &item->sets[k];
        if (!(sets & GPST_SET(k)) || (!item->in_place && gpsti_set_is_at(item, k, GPSTI_ON_DEVICE(0))))
            continue;
        for (uint32_t i = 0; i < its->n; i++) {
            if (item->in_place)
                its->on_device[i] = its->on_host[i];
            else
                GPSTI_TRY(gpsti_set_make_on_device(item, k, i));
        }
    }
    return GPST_OK;
}

/* Will a step, from this one on, or the user find the set on the device? Elsewhere it is known on the host, or dead. */
GPSTI_PRIVATE bool gpsti_set_is_wanted(const gpsti_item* item, uint32_t set, uint32_t from) {
    const gpsti_plan* const all = &item->pipeline->plan;
    const gpsti_set_plan* const plan = &all->sets[set];
    const bool on_host = gpsti_set_is_at(item, set, GPSTI_ON_HOST);
    bool wanted = plan->is_result && (plan->place == GPST_ON_DEVICE || (plan->place == GPST_AS_IT_IS && !on_host));
    if (!on_host)
        return wanted || plan->last_step >= from;
    for (uint32_t s = from; !wanted && !item->on_cpu && s < all->n_steps; s++)
        wanted = (all->steps[s].reads & GPST_SET(set)) && gpsti_step_is_device(all, &all->steps[s]);
    return wanted;
}

GPSTI_INTERN uint32_t gpsti_sets_in_call(const gpsti_item* item) {
    const gpsti_step* const step = gpsti_batch_step(&item->batch);
    const bool in_call = item->state == GPSTI_ITEM_MEMORY && !item->waiter.is_parked;
    return in_call ? step->needs | step->writes | item->moved : 0;
}

GPSTI_INTERN uint64_t gpsti_sets_needed_bytes(const gpsti_item* item, uint32_t from) {
    const uint32_t keep = gpsti_sets_in_call(item);
    bool counts = keep != 0;
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        const bool on_device = gpsti_set_is_at(item, k, GPSTI_ON_DEVICE(0));
        const bool needed = (keep & GPST_SET(k)) || (on_device && gpsti_set_is_wanted(item, k, from));
        for (uint32_t i = 0; needed && i < item->pipeline->plan.sets[k].capacity; i++)
            bytes += item->sets[k].device[i].charged_bytes;
        counts = counts || (needed && item->sets[k].count);
    }
    return bytes + (counts ? item->counts_on_device.charged_bytes : 0);
}

GPSTI_PRIVATE bool gpsti_piece_take(gpsti_item* item, gpst_buffer* memory, gpsti_pieces* out) {
    if (!memory->data || out->n == GPSTI_PIECES)
        return false;
    out->memory[out->n++] = *memory;
    gpsti_item_count_given(item, GPSTI_OF_DEVICE, memory);
    memset(memory, 0, sizeof *memory);
    return true;
}

GPSTI_INTERN bool gpsti_sets_take_unneeded(gpsti_item* item, uint32_t from, uint32_t keep, gpsti_pieces* out) {
    const bool is_free = item->state == GPSTI_ITEM_FREE;
    bool any = false, counts = keep != 0;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set* const its = &item->sets[k];
        const bool lent = k == 0 && item->given.frame_on_device,
                   on_device = gpsti_set_is_at(item, k, GPSTI_ON_DEVICE(0));
        if ((keep & GPST_SET(k)) || (!is_free && (lent || (on_device && gpsti_set_is_wanted(item, k, from))))) {
            counts = counts || its->count;
            continue;
        }
        for (uint32_t i = 0; i < item->pipeline->plan.sets[k].capacity; i++)
            if (gpsti_piece_take(item, &its->device[i], out)) {
                its->valid &= ~GPSTI_ON_DEVICE(0);
                any = true;
            }
    }
    if (is_free || !counts)
        any = gpsti_piece_take(item, &item->counts_on_device, out) || any;
    return any;
}

/* ---- streams and events -------------------------------------------------------------------- */

/* Lists for the largest batch, made once. */
GPSTI_PRIVATE gpst_result gpsti_device_work_make_room(gpst_pipeline* pipeline, gpsti_device_work* work) {
    const size_t n = pipeline->plan.batch_most;
    gpsti_host* const host = &pipeline->context->host;
    if (n <= 1 || work->on_host)
        return GPST_OK;
    if (!work->sources)
        work->sources = (gpst_image*)gpsti_alloc(host, n * sizeof *work->sources);
    if (!work->images)
        work->images = (gpst_image*)gpsti_alloc(host, n * pipeline->plan.n_written * sizeof *work->images);
    return work->sources && work->images ? GPST_OK : GPST_ERROR_MEMORY;
}

#define GPSTI_COMMAND_BYTES 8192 /* of a recorded submission, before its stream's list must grow */

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
    gpst_result result = work->stream ? GPST_OK : gpsti_stream_make(work->device, &work->stream);
    if (!GPST_FAILED(result) && item->pipeline->plan.graphs)
        result = gpsti_commands_reserve(&work->stream->commands, GPSTI_COMMAND_BYTES);
    while (!GPST_FAILED(result) && work->n_events < n_events) {
        result = gpsti_event_make(work->device, &work->events[work->n_events]);
        work->n_events += GPST_FAILED(result) ? 0 : 1;
    }
    return result;
}

GPSTI_INTERN gpst_result gpsti_device_work_prepare(gpsti_item* item, gpsti_device_work* work) {
    if (work->stream && work->n_events == item->pipeline->plan.n_events)
        return GPST_OK;
    return gpsti_device_work_make(item, work);
}

GPSTI_PRIVATE void gpsti_device_work_free(gpsti_item* item, gpsti_device_work* work) {
    const gpsti_plan* const plan = &item->pipeline->plan;
    gpsti_host* const host = &item->pipeline->context->host;
    gpst_stream_destroy(work->stream);
    for (uint32_t e = 0; e < work->n_events; e++)
        gpst_event_destroy(work->events[e]);
    if (work->times_ns)
        gpsti_free(host, work->times_ns, plan->n_events * sizeof(int64_t));
    if (work->events)
        gpsti_free(host, work->events, plan->n_events * sizeof(gpst_event*));
    if (work->sources)
        gpsti_free(host, work->sources, plan->batch_most * sizeof *work->sources);
    if (work->images)
        gpsti_free(host, work->images, (size_t)plan->batch_most * plan->n_written * sizeof *work->images);
}

GPSTI_INTERN void gpsti_sets_free_device(gpsti_item* item) {
    for (int w = 0; w < 2; w++)
        gpsti_device_work_free(item, &item->works[w]);
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        for (uint32_t i = 0; i < item->pipeline->plan.sets[k].capacity; i++)
            gpsti_item_free_device(item, &item->sets[k].device[i]);
    gpsti_item_free_device(item, &item->counts_on_device);
}

/* ---- copies ------------------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_set_copy(gpst_stream* stream, const gpst_image* to, const gpst_image* from,
                                         uint64_t* copied) {
    size_t bytes = 0;
    GPSTI_TRY(gpst_image_bytes(from, &bytes));
    *copied += bytes;
    return gpsti_stream_copy(stream, (void*)(uintptr_t)gpsti_image_lowest(to), gpsti_image_lowest(from), bytes);
}

GPSTI_INTERN gpst_result gpsti_set_copy_up(gpsti_item* item, uint32_t set, uint64_t* copied) {
    gpsti_set* const its = &item->sets[set];
    for (uint32_t i = 0; i < its->n; i++)
        if (its->on_host[i].data)
            GPSTI_TRY(gpsti_set_copy(item->work->stream, &its->on_device[i], &its->on_host[i], copied));
    its->valid |= GPSTI_ON_DEVICE(0);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_set_copy_down(gpsti_item* item, uint32_t set, uint64_t* copied) {
    gpsti_set* const its = &item->sets[set];
    for (uint32_t i = 0; i < its->n; i++) {
        if (!its->on_device[i].data)
            continue;
        if (!its->on_host[i].data)
            GPSTI_TRY(gpsti_set_make_on_host(item, set, i));
        GPSTI_TRY(gpsti_set_copy(item->work->stream, &its->on_host[i], &its->on_device[i], copied));
    }
    if (its->count) { /* what the device has counted comes with the pictures; the word is no copy that is counted */
        uint32_t* const word = (uint32_t*)item->counts_on_host.data + set;
        GPSTI_TRY(gpsti_stream_copy(item->work->stream, word, its->count, sizeof *word));
    }
    its->valid |= GPSTI_ON_HOST;
    return GPST_OK;
}

/* The item's stream on the device, whatever its work in progress is. */
GPSTI_PRIVATE gpst_result gpsti_set_move(gpsti_item* item, uint32_t set, bool up) {
    gpsti_device_work* const before = item->work;
    gpsti_set* const its = &item->sets[set];
    uint64_t bytes = 0;
    item->work = &item->works[0];
    gpst_result result = gpsti_device_work_prepare(item, item->work);
    if (!GPST_FAILED(result) && item->given.borrowed && set == 0 && item->given.ready)
        result = gpsti_stream_await(item->work->stream, item->given.ready);
    item->moved = up ? GPST_SET(set) : 0;
    for (uint32_t i = 0; up && !GPST_FAILED(result) && i < its->n; i++)
        result = gpsti_set_make_on_device(item, set, i);
    item->moved = 0;
    if (!GPST_FAILED(result))
        result = up ? gpsti_set_copy_up(item, set, &bytes) : gpsti_set_copy_down(item, set, &bytes);
    const gpst_result waited = item->work->stream ? gpsti_stream_wait_idle(item->work->stream) : GPST_OK;
    result = GPST_FAILED(result) ? result : waited; /* after a failure, too: what was put there reads the memory */
    item->work = before;
    if (GPST_FAILED(result)) {
        its->valid = up ? GPSTI_ON_HOST : GPSTI_ON_DEVICE(0);
        return result;
    }
    const gpsti_locked locked = gpsti_lock(item->pipeline->context);
    gpsti_count_copy(item->pipeline, set, up, its->n, bytes);
    gpsti_unlock(locked);
    gpsti_sets_take_counts(item, GPST_SET(set));
    return GPST_OK;
}

/* An empty set has nothing to fetch, and a lost device has not taken it along. */
GPSTI_INTERN gpst_result gpsti_sets_fetch(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        if ((sets & GPST_SET(k)) && item->sets[k].n > 0 && item->sets[k].valid == GPSTI_ON_DEVICE(0))
            GPSTI_TRY(gpsti_set_move(item, k, false));
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_sets_bring(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; !item->pipeline->plan.device_on_host && k < item->pipeline->plan.n_sets; k++)
        if ((sets & GPST_SET(k)) && item->sets[k].valid == GPSTI_ON_HOST)
            GPSTI_TRY(gpsti_set_move(item, k, true));
    return GPST_OK;
}

/* ---- how many count --------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_set_make_count(gpsti_item* item, uint32_t set) {
    const size_t bytes = item->pipeline->plan.n_sets * sizeof(uint32_t);
    const bool on_host = item->work->on_host;
    gpsti_set* const its = &item->sets[set];
    GPSTI_TRY(gpsti_item_reserve(item, &item->counts_on_host, bytes, 0, true)); /* where the device's word comes, too */
    if (!on_host)
        GPSTI_TRY(gpsti_item_reserve_device(item, &item->counts_on_device, bytes, "count"));
    its->count = (uint32_t*)(on_host ? item->counts_on_host : item->counts_on_device).data + set;
    its->per_count = item->pipeline->plan.sets[set].capacity > 1 ? 1 : 0;
    return gpsti_stream_fill(item->work->stream, its->count, 0, sizeof *its->count);
}

GPSTI_PRIVATE void gpsti_set_take_count(gpsti_item* item, uint32_t set) {
    gpsti_set* const its = &item->sets[set];
    const uint32_t* const words = (const uint32_t*)item->counts_on_host.data;
    const uintptr_t count = (uintptr_t)its->count, first = (uintptr_t)words;
    const bool on_host = count >= first && count < first + item->pipeline->plan.n_sets * sizeof *words;
    const uint64_t counted = on_host ? *its->count : words[set];
    its->count = NULL;
    if (its->per_count > 0 || counted == 0 || its->n == 0) { /* a list without entries is none */
        const uint64_t n = counted * its->per_count;
        gpsti_set_resize(item, set, n < its->n ? (uint32_t)n : its->n);
        return;
    }
    if (counted >= its->on_host[0].width)
        return;
    its->on_host[0].width = its->on_device[0].width = (uint32_t)counted;
    its->on_host[0].pitch_bytes = its->on_device[0].pitch_bytes = (int64_t)gpst_image_row_bytes(&its->on_host[0]);
}

GPSTI_INTERN void gpsti_sets_take_counts(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        if ((sets & GPST_SET(k)) && item->sets[k].count && gpsti_set_is_at(item, k, GPSTI_ON_HOST))
            gpsti_set_take_count(item, k);
}

/* ---- create / destroy --------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_set_create(gpsti_item* item, uint32_t set) {
    gpsti_host* const host = &item->pipeline->context->host;
    gpsti_set* const its = &item->sets[set];
    const size_t n = item->pipeline->plan.sets[set].capacity;
    its->on_host = (gpst_image*)gpsti_alloc(host, n * sizeof *its->on_host);
    its->on_device = (gpst_image*)gpsti_alloc(host, n * sizeof *its->on_device);
    its->host = (gpst_buffer*)gpsti_alloc(host, n * sizeof *its->host);
    its->device = (gpst_buffer*)gpsti_alloc(host, n * sizeof *its->device);
    item->views[set].pictures = its->on_host;
    return its->on_host && its->on_device && its->host && its->device ? GPST_OK : GPST_ERROR_MEMORY;
}

GPSTI_INTERN void gpsti_set_destroy(gpsti_item* item, uint32_t set) {
    gpsti_host* const host = &item->pipeline->context->host;
    const gpsti_set* const its = &item->sets[set];
    const size_t n = item->pipeline->plan.sets[set].capacity;
    if (its->on_host)
        gpsti_free(host, its->on_host, n * sizeof *its->on_host);
    if (its->on_device)
        gpsti_free(host, its->on_device, n * sizeof *its->on_device);
    if (its->host)
        gpsti_free(host, its->host, n * sizeof *its->host);
    if (its->device)
        gpsti_free(host, its->device, n * sizeof *its->device);
}
