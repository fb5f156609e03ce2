/* core/pipeline/item.c -- the memory of one item in flight and of its sets: buffers and strings, and whether an item
   that lacks memory may hope for some. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- memory ------------------------------------------------------------------------ */

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

GPSTI_PRIVATE gpst_result gpsti_item_check_budget(gpsti_item* item, size_t old_bytes, size_t new_bytes) {
    const uint64_t max_bytes = item->pipeline->plan.desc.max_item_bytes;
    const uint64_t held = gpsti_a64_load(&item->host_bytes);
    GPSTI_FAIL_IF(max_bytes != 0 && held - old_bytes + new_bytes > max_bytes, GPST_ERROR_BUDGET,
                  "item needs %llu bytes of host memory: max_item_bytes=%llu allows no more",
                  (unsigned long long)(held - old_bytes + new_bytes), (unsigned long long)max_bytes);
    return GPST_OK;
}

/* Submissions that the device has, and whose end it has not reported yet. Locked. */
GPSTI_PRIVATE uint32_t gpsti_item_n_on_device(const gpst_pipeline* pipeline) {
    uint32_t n = 0, n_not = gpsti_a32_load(&pipeline->flow.n_submitting);
    for (uint32_t s = 0; s < pipeline->plan.n_steps; s++) {
        n += pipeline->plan.steps[s].on_device;
        for (const gpsti_job* job = pipeline->plan.steps[s].head; job; job = job->next)
            n_not += job->item->device_done ? 1 : 0;
    }
    return n > n_not ? n - n_not : 0;
}

/* True while a thread or the device may still end an item and so give memory back. Locked. */
GPSTI_PRIVATE bool gpsti_item_may_hope(const gpst_pipeline* pipeline) {
    const uint32_t n_executing = gpsti_a32_load(&pipeline->flow.executing);
    /* Of the reads only those count that a thread of the reader has: the others are behind them. */
    const uint32_t n_reads = pipeline->plan.desc.n_reads, n_reading = pipeline->files.n_reading;
    const uint32_t n_behind = n_reads > 0 && n_reading > n_reads ? n_reading - n_reads : 0;
    if (gpsti_a32_load(&pipeline->memory.n_starving) + n_behind <
        n_executing + gpsti_a32_load(&pipeline->flow.n_parked))
        return true;
    const bool worker_left = /* not all of them wait for memory, for this pipeline or another one */
        gpsti_a32_load(&pipeline->context->n_starving) < pipeline->context->scheduler->n_workers;
    for (uint32_t s = 0; worker_left && s < pipeline->plan.n_steps; s++)
        if (n_executing < pipeline->flow.n_active && gpsti_queue_may_take(pipeline, &pipeline->plan.steps[s]))
            return true;
    return gpsti_item_n_on_device(pipeline) > 0;
}

/* What a cache is loading it can give up when it is there. */
GPSTI_PRIVATE bool gpsti_item_may_get_from_caches(const gpst_pipeline* pipeline) {
    gpsti_memory* const memory = pipeline->context->memory;
    gpsti_mutex_lock(&memory->mutex);
    const bool loading = gpsti_caches_are_loading(memory);
    gpsti_mutex_unlock(&memory->mutex);
    return loading;
}

/* One thread more, or by UINT32_MAX one fewer, waits for memory. */
GPSTI_PRIVATE void gpsti_item_starve(gpst_pipeline* pipeline, uint32_t change) {
    (void)gpsti_a32_add(&pipeline->memory.n_starving, change);
    (void)gpsti_a32_add(&pipeline->context->n_starving, change);
}

/* True if every item in progress waits for memory, or the run is cancelled: the caller gives up. */
GPSTI_PRIVATE bool gpsti_item_is_stuck(gpst_pipeline* pipeline) {
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    const bool stuck = (!gpsti_item_may_hope(pipeline) && !gpsti_item_may_get_from_caches(pipeline)) ||
                       gpsti_a32_load(&pipeline->flow.cancel) != 0;
    if (stuck)
        gpsti_item_starve(pipeline, UINT32_MAX);
    gpsti_mutex_unlock(mutex);
    return stuck;
}

#define GPSTI_ITEM_WAIT_NS 10000000 /* between two checks for being stuck */

GPSTI_PRIVATE gpst_result gpsti_item_lacks_memory(const gpsti_item* item, size_t bytes) {
    const gpst_context* const context = item->pipeline->context;
    const uint64_t own = gpsti_a64_load(&item->charged_bytes), all = gpsti_a64_load(&context->host_bytes);
    const uint64_t others = all > own ? all - own : 0;
    gpsti_mutex_lock(&context->scheduler->mutex);
    const uint32_t held = item->pipeline->results.n_handed_out;
    gpsti_mutex_unlock(&context->scheduler->mutex);
    char rule[96] = "too little for it alone";
    if (others > 0)
        gpsti_format(rule, sizeof rule, "of which others have %llu", (unsigned long long)others);
    if (held > 0)
        gpsti_format(rule + strlen(rule), sizeof rule - strlen(rule), ", and %u results are held", held);
    return gpsti_fail(GPST_ERROR_BUDGET, "item has %llu bytes and needs %llu more: max_host_bytes=%llu, %s",
                      (unsigned long long)own, (unsigned long long)bytes,
                      (unsigned long long)context->info.max_host_bytes, rule);
}

/* Other items in flight have all the memory: waits until some of them end. */
GPSTI_PRIVATE gpst_result gpsti_item_wait_for_memory(gpsti_item* item, size_t bytes, gpst_buffer* out) {
    gpst_pipeline* const pipeline = item->pipeline;
    gpst_result result = GPST_ERROR_TIMEOUT;
    gpsti_item_starve(pipeline, 1);
    while (result == GPST_ERROR_TIMEOUT && !gpsti_item_is_stuck(pipeline)) {
        result = gpst_pool_acquire(pipeline->plan.pool, bytes, GPSTI_ITEM_WAIT_NS, out);
        if (result != GPST_ERROR_TIMEOUT)
            gpsti_item_starve(pipeline, UINT32_MAX);
    }
    if (result != GPST_ERROR_TIMEOUT)
        return result;
    gpsti_a32_store(&item->starved, 1);
    return gpsti_item_lacks_memory(item, bytes);
}

/* Counts what the allocation really took, from which the fit is computed. */
GPSTI_PRIVATE void gpsti_item_count_taken(gpsti_item* item, const gpst_buffer* buffer) {
    gpsti_a64* const most = &item->pipeline->memory.item_host_bytes;
    gpsti_a64_add(&item->host_bytes, buffer->bytes);
    const uint64_t bytes = gpsti_a64_add(&item->charged_bytes, buffer->charged_bytes) + buffer->charged_bytes;
    uint64_t seen = gpsti_a64_load(most);
    while (bytes > seen && !gpsti_a64_cas(most, &seen, bytes)) {}
}

GPSTI_PRIVATE void gpsti_item_give_up(gpsti_item* item, gpst_buffer* buffer) {
    gpsti_a64_add(&item->host_bytes, (uint64_t)0 - buffer->bytes);
    gpsti_a64_add(&item->charged_bytes, (uint64_t)0 - buffer->charged_bytes);
    gpst_pool_release(item->pipeline->plan.pool, buffer);
}

GPSTI_INTERN gpst_result gpsti_item_take_memory(gpsti_item* item, size_t bytes, bool is_filled, bool waits,
                                                gpst_buffer* out) {
    const gpst_result result = gpsti_pool_acquire_now(item->pipeline->plan.pool, bytes, is_filled, NULL, out);
    return result == GPST_ERROR_WOULD_BLOCK && waits ? gpsti_item_wait_for_memory(item, bytes, out) : result;
}

GPSTI_PRIVATE gpst_result gpsti_item_acquire(gpsti_item* item, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                             bool is_filled, bool waits) {
    gpst_buffer larger = GPST_ZERO;
    if (buffer->data && buffer->bytes >= bytes)
        return GPST_OK;
    GPSTI_TRY(gpsti_item_check_budget(item, buffer->bytes, bytes));
    if (keep_bytes == 0 && buffer->data)
        gpsti_item_give_up(item, buffer);
    GPSTI_TRY(gpsti_item_take_memory(item, bytes, is_filled, waits, &larger));
    if (buffer->data) {
        memcpy(larger.data, buffer->data, keep_bytes);
        gpsti_item_give_up(item, buffer);
    }
    *buffer = larger;
    gpsti_item_count_taken(item, buffer);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_item_reserve(gpsti_item* item, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                            bool is_filled) {
    return gpsti_item_acquire(item, buffer, bytes, keep_bytes, is_filled, true);
}

GPSTI_INTERN gpst_result gpsti_item_reserve_now(gpsti_item* item, gpst_buffer* buffer, size_t bytes) {
    return gpsti_item_acquire(item, buffer, bytes, 0, false, false);
}

GPSTI_PRIVATE gpst_result gpsti_item_read_reserve(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    gpsti_item* const item = (gpsti_item*)read->user_data;
    const size_t room = gpsti_item_file_room(needed_bytes);
    const int64_t grown_ns = gpsti_pool_growth_here_ns();
    gpst_result result = GPST_ERROR_BUDGET;
    if (item->pipeline->plan.desc.max_item_bytes == 0)
        result = gpsti_item_reserve(item, &item->file, room, filled_bytes, true);
    if (GPST_FAILED(result)) /* nothing to spare: exactly what is needed, then */
        GPSTI_TRY(gpsti_item_reserve(item, &item->file, needed_bytes, filled_bytes, true));
    item->read_setup_ns += gpsti_pool_growth_here_ns() - grown_ns;
    read->data = item->file.data;
    read->capacity_bytes = item->file.bytes;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_item_prepare_read(gpsti_item* item) {
    memset(&item->read, 0, sizeof item->read);
    item->read.path = item->shown.path;
    item->read.data = item->file.data;
    item->read.capacity_bytes = item->file.bytes;
    item->read.reserve = gpsti_item_read_reserve;
    item->read.user_data = item;
    item->read_setup_ns = 0;
}

GPSTI_PRIVATE void gpsti_item_give_back_one(gpst_pipeline* pipeline, gpst_buffer* buffer) {
    if (buffer->data)
        gpst_pool_release(pipeline->plan.pool, buffer);
    memset(buffer, 0, sizeof *buffer);
}

/* In reverse order of taking, since the pool lends what came back last: the next file is read into the buffer of this
   one, still in the cache, and few sets of pictures are ever touched. */
GPSTI_INTERN void gpsti_item_give_back(gpsti_item* item) {
    gpst_pipeline* const pipeline = item->pipeline;
    for (uint32_t i = pipeline->plan.n_parts; i-- > 0;)
        for (gpsti_output_file* file = item->parts[i].files; file; file = file->next)
            gpsti_item_give_back_one(pipeline, &file->room);
    for (uint32_t k = pipeline->plan.n_sets; k-- > 0;)
        for (uint32_t i = pipeline->plan.sets[k].capacity; i-- > 0;)
            gpsti_item_give_back_one(pipeline, &item->sets[k].host[i]);
    gpsti_item_give_back_one(pipeline, &item->counts_on_host);
    gpsti_item_give_back_one(pipeline, &item->file);
    gpsti_a64_store(&item->host_bytes, 0);
    gpsti_a64_store(&item->charged_bytes, 0);
}

/* ---- strings and pictures ------------------------------------------------------------ */

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

GPSTI_INTERN void gpsti_item_set_n(gpsti_item* item, uint32_t set, uint32_t n) {
    item->sets[set].n = n;
    item->views[set].n = n;
}

GPSTI_INTERN void gpsti_item_forget(gpsti_item* item, uint32_t sets) {
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++) {
        gpsti_set* const set = &item->sets[k];
        const size_t capacity = item->pipeline->plan.sets[k].capacity;
        if (!(sets & GPST_SET(k)))
            continue;
        gpsti_item_set_n(item, k, 0);
        set->writer = 0;
        set->host_valid = set->device_valid = false;
        set->count = NULL;
        memset(set->on_host, 0, capacity * sizeof *set->on_host);
        memset(set->on_device, 0, capacity * sizeof *set->on_device);
        item->views[k].pictures = set->on_host;
        item->views[k].on_device = false;
    }
}

GPSTI_INTERN uint32_t gpsti_item_n_written(const gpsti_item* item) {
    uint32_t n = item->pipeline->plan.n_parts;
    while (n > 1 && item->parts[n - 1].n_files == 0)
        n--;
    return n;
}

GPSTI_INTERN uint64_t gpsti_item_bytes(const gpsti_item* item, uint32_t sets) {
    uint64_t total = 0;
    for (uint32_t k = 0; k < item->pipeline->plan.n_sets; k++)
        for (uint32_t i = 0; (sets & GPST_SET(k)) && i < item->sets[k].n; i++) {
            size_t bytes = 0;
            if (item->sets[k].on_host[i].width > 0 && gpst_image_bytes(&item->sets[k].on_host[i], &bytes) == GPST_OK)
                total += bytes;
        }
    return total;
}

/* Forgets all that stages made of the item. */
GPSTI_PRIVATE void gpsti_item_clear(gpsti_item* item) {
    gpst_item* const shown = &item->shown;
    shown->result = GPST_OK;
    shown->stage = shown->reason = "";
    shown->decoder = shown->encoder = item->encoder = "";
    shown->file_data = NULL;
    shown->file_bytes = 0;
    shown->metadata = NULL;
    item->started = item->single = item->device_done = false;
    item->may_drop = item->waits_turn = false;
    item->arrived = 0;
    item->next_in_batch = NULL;
    item->decode = GPSTI_DECODE_UNSEEN;
    item->pending = item->next_part = 0;
    item->in_batch = false;
    item->stage[0] = item->reason[0] = item->device_reason[0] = '\0';
    gpsti_item_begin_notes(item);
    gpsti_a32_store(&item->failed, 0);
    gpsti_a32_store(&item->starved, 0);
    gpsti_item_forget(item, item->has_frame ? ~GPST_SET(0) : UINT32_MAX);
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
    item->has_frame = item->borrowed = item->exclusive = item->given.posed = item->source_failed = false;
    item->given.note[0] = '\0';
    item->release = NULL;
    gpsti_item_clear(item);
}

/* Set 0 is where the source or submit gave it, and nowhere else. */
GPSTI_PRIVATE void gpsti_item_frame_is_valid(gpsti_item* item) {
    gpsti_set* const set = &item->sets[0];
    set->device_valid = item->frame_on_device;
    set->host_valid = !item->frame_on_device || item->pipeline->plan.device_on_host;
    if (!set->host_valid)
        set->on_host[0].data = NULL;
}

GPSTI_INTERN void gpsti_item_begin_anew(gpsti_item* item) {
    gpst_buffer* const own = &item->sets[0].host[0];
    const gpst_buffer frame = *own;
    gpsti_item_clear(item);
    if (item->has_frame)
        memset(own, 0, sizeof *own);
    gpsti_item_give_back(item);
    if (!item->has_frame)
        return;
    gpsti_item_frame_is_valid(item);
    *own = frame;
    if (own->data)
        gpsti_item_count_taken(item, own);
}

GPSTI_INTERN gpst_result gpsti_item_shape(const gpst_image* shape, const char* function, gpst_image* out,
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

GPSTI_INTERN gpst_result gpsti_item_make_on_host(gpsti_item* item, uint32_t set, uint32_t picture) {
    gpst_image* const image = &item->sets[set].on_host[picture];
    gpst_buffer* const buffer = &item->sets[set].host[picture];
    size_t bytes = 0;
    image->data = NULL; /* whatever comes of growing */
    GPSTI_TRY(gpst_image_bytes(image, &bytes));
    GPSTI_TRY(gpsti_item_reserve(item, buffer, bytes, 0, true));
    image->data = buffer->data;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_item_copy_frame(gpsti_item* item, const gpst_image* frame, const char* function) {
    size_t ignored = 0;
    GPSTI_TRY(gpsti_item_shape(frame, function, &item->sets[0].on_host[0], &ignored));
    GPSTI_TRY(gpsti_item_make_on_host(item, 0, 0));
    gpsti_image_copy(frame, &item->sets[0].on_host[0]);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_item_borrow_frame(gpsti_item* item, const gpst_input* input) {
    gpst_buffer frame = GPST_ZERO; /* what it takes of the budget, as far as that is known */
    item->release = input->release;
    item->release_user_data = input->release_user_data;
    item->ready = input->frame_on_device ? input->ready : NULL;
    item->borrowed = true;
    frame.charged_bytes = input->charged_bytes;
    gpsti_item_count_taken(item, &frame);
    item->sets[0].on_device[0] = item->sets[0].on_host[0] = gpsti_image_resolved(&input->frame);
}

GPSTI_INTERN void gpsti_item_release_frame(gpsti_item* item) {
    if (!item->borrowed)
        return;
    item->borrowed = false;
    gpsti_call_release(item->pipeline, item->release, item->release_user_data);
}

GPSTI_INTERN gpst_result gpsti_item_load(gpsti_item* item, const gpst_input* input, const char* function) {
    GPSTI_TRY(gpsti_item_load_names(item, input));
    GPSTI_TRY(gpsti_input_check(item->pipeline, input, function));
    gpsti_item_load_notes(item, input);
    if (!input->frame.data)
        return GPST_OK;
    if (input->release)
        gpsti_item_borrow_frame(item, input);
    else
        GPSTI_TRY(gpsti_item_copy_frame(item, &input->frame, function));
    item->has_frame = true;
    item->frame_on_device = input->frame_on_device;
    gpsti_item_frame_is_valid(item);
    gpsti_item_set_n(item, 0, 1);
    return GPST_OK;
}

/* ---- create / destroy ------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_set_create(gpsti_host* host, gpsti_set* set, gpst_set* view, size_t n) {
    set->on_host = (gpst_image*)gpsti_alloc(host, n * sizeof *set->on_host);
    set->on_device = (gpst_image*)gpsti_alloc(host, n * sizeof *set->on_device);
    set->host = (gpst_buffer*)gpsti_alloc(host, n * sizeof *set->host);
    set->device = (gpst_buffer*)gpsti_alloc(host, n * sizeof *set->device);
    view->pictures = set->on_host;
    return set->on_host && set->on_device && set->host && set->device ? GPST_OK : GPST_ERROR_MEMORY;
}

GPSTI_PRIVATE void gpsti_set_destroy(gpsti_host* host, gpsti_set* set, size_t n) {
    if (set->on_host)
        gpsti_free(host, set->on_host, n * sizeof *set->on_host);
    if (set->on_device)
        gpsti_free(host, set->on_device, n * sizeof *set->on_device);
    if (set->host)
        gpsti_free(host, set->host, n * sizeof *set->host);
    if (set->device)
        gpsti_free(host, set->device, n * sizeof *set->device);
}

GPSTI_PRIVATE gpst_result gpsti_item_create(gpst_pipeline* pipeline, gpsti_item* item) {
    gpsti_host* const host = &pipeline->context->host;
    item->pipeline = pipeline;
    item->works[0].device = &pipeline->context->public_device;
    item->works[0].on_host = pipeline->plan.device_on_host;
    item->works[1].device =
        pipeline->context->device == pipeline->context->cpu ? item->works[0].device : &pipeline->context->cpu_device;
    item->works[1].on_host = true;
    item->job.item = item;
    item->sets = (gpsti_set*)gpsti_alloc(host, pipeline->plan.n_sets * sizeof *item->sets);
    item->views = (gpst_set*)gpsti_alloc(host, pipeline->plan.n_sets * sizeof *item->views);
    item->parts = (gpsti_part*)gpsti_alloc(host, pipeline->plan.n_parts * sizeof *item->parts);
    if (!item->sets || !item->views || !item->parts)
        return GPST_ERROR_MEMORY;
    for (uint32_t i = 0; i < pipeline->plan.n_parts; i++) {
        item->parts[i].job.item = item;
        item->parts[i].job.part = i;
    }
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++)
        GPSTI_TRY(gpsti_set_create(host, &item->sets[k], &item->views[k], pipeline->plan.sets[k].capacity));
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

GPSTI_PRIVATE void gpsti_item_destroy(gpst_pipeline* pipeline, gpsti_item* item) {
    gpsti_host* const host = &pipeline->context->host;
    bool whole = item->sets && item->parts;
    for (uint32_t k = 0; whole && k < pipeline->plan.n_sets; k++)
        whole = item->sets[k].host && item->sets[k].device;
    if (whole) {
        gpsti_place_free_slot(item);
        gpsti_item_give_back(item);
    }
    for (uint32_t i = 0; item->parts && i < pipeline->plan.n_parts; i++)
        gpsti_item_free_files(pipeline, item->parts[i].files);
    for (uint32_t k = 0; item->sets && k < pipeline->plan.n_sets; k++)
        gpsti_set_destroy(host, &item->sets[k], pipeline->plan.sets[k].capacity);
    if (item->text)
        gpsti_free(host, item->text, item->text_capacity);
    if (item->sets)
        gpsti_free(host, item->sets, pipeline->plan.n_sets * sizeof *item->sets);
    if (item->views)
        gpsti_free(host, item->views, pipeline->plan.n_sets * sizeof *item->views);
    if (item->parts)
        gpsti_free(host, item->parts, pipeline->plan.n_parts * sizeof *item->parts);
    memset(item, 0, sizeof *item);
}

GPSTI_INTERN gpst_result gpsti_items_create(gpst_pipeline* pipeline) {
    pipeline->items.slots = (gpsti_item**)gpsti_alloc(&pipeline->context->host,
                                                      pipeline->items.slots_capacity * sizeof *pipeline->items.slots);
    if (!pipeline->items.slots)
        return GPST_ERROR_MEMORY;
    return gpsti_items_make(pipeline, 1); /* the others are made when workers begin */
}

GPSTI_PRIVATE gpst_result gpsti_item_make(gpst_pipeline* pipeline, gpsti_item** out) {
    gpsti_host* const host = &pipeline->context->host;
    gpsti_item* const item = (gpsti_item*)gpsti_alloc(host, sizeof *item);
    if (!item)
        return GPST_ERROR_MEMORY;
    const gpst_result result = gpsti_item_create(pipeline, item);
    if (GPST_FAILED(result)) {
        gpsti_item_destroy(pipeline, item);
        gpsti_free(host, item, sizeof *item);
        return result;
    }
    *out = item;
    return GPST_OK;
}

/* Buffers that a slot may have: file, pictures and counts, for each part its encoded data; on a device with memory of
   its own also pictures and counts there. */
GPSTI_PRIVATE uint32_t gpsti_item_n_pieces(const gpst_pipeline* pipeline) {
    uint32_t n_pictures = 1; /* the counts */
    for (uint32_t k = 0; k < pipeline->plan.n_sets; k++)
        n_pictures += pipeline->plan.sets[k].capacity;
    return 1 + n_pictures * (pipeline->plan.device_on_host ? 1 : 2) + pipeline->plan.n_parts;
}

/* Results that the user holds may need more slots than were thought of. */
GPSTI_PRIVATE gpst_result gpsti_items_grow(gpst_pipeline* pipeline) {
    gpsti_host* const host = &pipeline->context->host;
    const uint32_t capacity = 2 * pipeline->items.slots_capacity;
    gpsti_item** const slots = (gpsti_item**)gpsti_alloc(host, capacity * sizeof *slots);
    if (!slots)
        return GPST_ERROR_MEMORY;
    memcpy(slots, pipeline->items.slots, pipeline->items.n_slots_made * sizeof *slots);
    gpsti_free(host, pipeline->items.slots, pipeline->items.slots_capacity * sizeof *slots);
    pipeline->items.slots = slots;
    pipeline->items.slots_capacity = capacity;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_items_add(gpst_pipeline* pipeline) {
    if (pipeline->items.n_slots_made == pipeline->items.slots_capacity)
        GPSTI_TRY(gpsti_items_grow(pipeline));
    gpsti_item** const item = &pipeline->items.slots[pipeline->items.n_slots_made];
    GPSTI_TRY(gpsti_item_make(pipeline, item));
    (*item)->next = pipeline->items.free_slots;
    pipeline->items.free_slots = *item;
    pipeline->items.n_slots_made++;
    return GPST_OK;
}

/* Sets aside the table entries for the slots' buffers, so that no item allocates one later. */
GPSTI_INTERN gpst_result gpsti_items_make(gpst_pipeline* pipeline, uint32_t n) {
    gpsti_memory* const memory = pipeline->context->memory;
    const uint32_t n_pieces = gpsti_item_n_pieces(pipeline);
    gpst_result result = GPST_OK;
    if (n <= pipeline->items.n_slots_made)
        return GPST_OK;
    GPSTI_TRY(gpsti_blocks_set_aside(memory, (n - pipeline->items.n_slots_made) * n_pieces));
    while (pipeline->items.n_slots_made < n && !GPST_FAILED(result))
        result = gpsti_items_add(pipeline);
    gpsti_blocks_let_go(memory, (n - pipeline->items.n_slots_made) * n_pieces);
    return result;
}

GPSTI_INTERN void gpsti_items_destroy(gpst_pipeline* pipeline) {
    gpsti_host* const host = &pipeline->context->host;
    if (!pipeline->items.slots)
        return;
    for (uint32_t i = 0; i < pipeline->items.n_slots_made; i++) {
        gpsti_item_destroy(pipeline, pipeline->items.slots[i]);
        gpsti_free(host, pipeline->items.slots[i], sizeof *pipeline->items.slots[i]);
        gpsti_blocks_let_go(pipeline->context->memory, gpsti_item_n_pieces(pipeline));
    }
    gpsti_free(host, pipeline->items.slots, pipeline->items.slots_capacity * sizeof *pipeline->items.slots);
}
