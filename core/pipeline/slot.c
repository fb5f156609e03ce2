/* core/pipeline/slot.c -- the memory of one item in flight and of its sets: buffers and strings, and whether an item
   that lacks memory may hope for some. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"

#include <string.h>

/* ---- memory ------------------------------------------------------------------------ */

/* Rounded up by a quarter at most, so that files of about the same size use the same buffers of the pool. */
GPSTI_PRIVATE size_t gpsti_slot_file_room(size_t bytes) {
    const size_t largest_rounded = (size_t)64 << 20;
    size_t step = 4096;
    if (bytes > largest_rounded)
        return bytes;
    while (step * 8 < bytes)
        step *= 2;
    return bytes == 0 ? step : (bytes + step - 1) / step * step;
}

GPSTI_PRIVATE gpst_result gpsti_slot_check_budget(gpsti_slot* slot, size_t old_bytes, size_t new_bytes) {
    const uint64_t max_bytes = slot->pipeline->desc.max_item_bytes;
    const uint64_t held = gpsti_a64_load(&slot->host_bytes);
    GPSTI_FAIL_IF(max_bytes != 0 && held - old_bytes + new_bytes > max_bytes, GPST_ERROR_BUDGET,
                  "item needs %llu bytes of host memory: max_item_bytes=%llu allows no more",
                  (unsigned long long)(held - old_bytes + new_bytes), (unsigned long long)max_bytes);
    return GPST_OK;
}

/* Submissions that the device has, and whose end it has not reported yet. Locked. */
GPSTI_PRIVATE uint32_t gpsti_slot_n_on_device(const gpst_pipeline* pipeline) {
    uint32_t n = 0, n_not = gpsti_a32_load(&pipeline->n_submitting);
    for (uint32_t s = 0; s < pipeline->n_steps; s++) {
        n += pipeline->steps[s].on_device;
        for (const gpsti_job* job = pipeline->steps[s].head; job; job = job->next)
            n_not += job->slot->device_done ? 1 : 0;
    }
    return n > n_not ? n - n_not : 0;
}

/* True while a thread or the device may still end an item and so give memory back. Locked. */
GPSTI_PRIVATE bool gpsti_slot_may_hope(const gpst_pipeline* pipeline) {
    const uint32_t n_executing = gpsti_a32_load(&pipeline->executing);
    /* Of the reads only those count that a thread of the reader has: the others are behind them. */
    const uint32_t n_reads = pipeline->desc.n_reads, n_reading = pipeline->n_reading;
    const uint32_t n_behind = n_reads > 0 && n_reading > n_reads ? n_reading - n_reads : 0;
    if (gpsti_a32_load(&pipeline->n_starving) + n_behind < n_executing + gpsti_a32_load(&pipeline->n_parked))
        return true;
    const bool worker_left = /* not all of them wait for memory, for this pipeline or another one */
        gpsti_a32_load(&pipeline->context->n_starving) < pipeline->context->scheduler->n_workers;
    for (uint32_t s = 0; worker_left && s < pipeline->n_steps; s++)
        if (n_executing < pipeline->n_active && gpsti_queue_may_take(pipeline, &pipeline->steps[s]))
            return true;
    return gpsti_slot_n_on_device(pipeline) > 0;
}

/* What a cache is loading it can give up when it is there. */
GPSTI_PRIVATE bool gpsti_slot_may_get_from_caches(const gpst_pipeline* pipeline) {
    gpsti_memory* const memory = pipeline->context->memory;
    gpsti_mutex_lock(&memory->mutex);
    const bool loading = gpsti_caches_are_loading(memory);
    gpsti_mutex_unlock(&memory->mutex);
    return loading;
}

/* One thread more, or by UINT32_MAX one fewer, waits for memory. */
GPSTI_PRIVATE void gpsti_slot_starve(gpst_pipeline* pipeline, uint32_t change) {
    (void)gpsti_a32_add(&pipeline->n_starving, change);
    (void)gpsti_a32_add(&pipeline->context->n_starving, change);
}

/* True if every item in progress waits for memory, or the run is cancelled: the caller gives up. */
GPSTI_PRIVATE bool gpsti_slot_is_stuck(gpst_pipeline* pipeline) {
    gpsti_mutex* const mutex = &pipeline->context->scheduler->mutex;
    gpsti_mutex_lock(mutex);
    const bool stuck = (!gpsti_slot_may_hope(pipeline) && !gpsti_slot_may_get_from_caches(pipeline)) ||
                       gpsti_a32_load(&pipeline->cancel) != 0;
    if (stuck)
        gpsti_slot_starve(pipeline, UINT32_MAX);
    gpsti_mutex_unlock(mutex);
    return stuck;
}

#define GPSTI_SLOT_WAIT_NS 10000000 /* between two checks for being stuck */

GPSTI_PRIVATE gpst_result gpsti_slot_lacks_memory(const gpsti_slot* slot, size_t bytes) {
    const gpst_context* const context = slot->pipeline->context;
    const uint64_t own = gpsti_a64_load(&slot->charged_bytes), all = gpsti_a64_load(&context->host_bytes);
    const uint64_t others = all > own ? all - own : 0;
    gpsti_mutex_lock(&context->scheduler->mutex);
    const uint32_t held = slot->pipeline->n_handed_out;
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
GPSTI_PRIVATE gpst_result gpsti_slot_wait_for_memory(gpsti_slot* slot, size_t bytes, gpst_buffer* out) {
    gpst_pipeline* const pipeline = slot->pipeline;
    gpst_result result = GPST_ERROR_TIMEOUT;
    gpsti_slot_starve(pipeline, 1);
    while (result == GPST_ERROR_TIMEOUT && !gpsti_slot_is_stuck(pipeline)) {
        result = gpst_pool_acquire(pipeline->pool, bytes, GPSTI_SLOT_WAIT_NS, out);
        if (result != GPST_ERROR_TIMEOUT)
            gpsti_slot_starve(pipeline, UINT32_MAX);
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

GPSTI_INTERN gpst_result gpsti_slot_take_memory(gpsti_slot* slot, size_t bytes, bool is_filled, bool waits,
                                                gpst_buffer* out) {
    const gpst_result result = gpsti_pool_acquire_now(slot->pipeline->pool, bytes, is_filled, NULL, out);
    return result == GPST_ERROR_WOULD_BLOCK && waits ? gpsti_slot_wait_for_memory(slot, bytes, out) : result;
}

GPSTI_PRIVATE gpst_result gpsti_slot_acquire(gpsti_slot* slot, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                             bool is_filled, bool waits) {
    gpst_buffer larger = GPST_ZERO;
    if (buffer->data && buffer->bytes >= bytes)
        return GPST_OK;
    GPSTI_TRY(gpsti_slot_check_budget(slot, buffer->bytes, bytes));
    if (keep_bytes == 0 && buffer->data)
        gpsti_slot_give_up(slot, buffer);
    GPSTI_TRY(gpsti_slot_take_memory(slot, bytes, is_filled, waits, &larger));
    if (buffer->data) {
        memcpy(larger.data, buffer->data, keep_bytes);
        gpsti_slot_give_up(slot, buffer);
    }
    *buffer = larger;
    gpsti_slot_count_taken(slot, buffer);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_slot_reserve(gpsti_slot* slot, gpst_buffer* buffer, size_t bytes, size_t keep_bytes,
                                            bool is_filled) {
    return gpsti_slot_acquire(slot, buffer, bytes, keep_bytes, is_filled, true);
}

GPSTI_INTERN gpst_result gpsti_slot_reserve_now(gpsti_slot* slot, gpst_buffer* buffer, size_t bytes) {
    return gpsti_slot_acquire(slot, buffer, bytes, 0, false, false);
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
    for (uint32_t i = pipeline->n_parts; i-- > 0;)
        for (gpsti_output_file* file = slot->parts[i].files; file; file = file->next)
            gpsti_slot_give_back_one(pipeline, &file->room);
    for (uint32_t k = pipeline->n_sets; k-- > 0;)
        for (uint32_t i = pipeline->sets[k].capacity; i-- > 0;)
            gpsti_slot_give_back_one(pipeline, &slot->sets[k].host[i]);
    gpsti_slot_give_back_one(pipeline, &slot->counts_on_host);
    gpsti_slot_give_back_one(pipeline, &slot->file);
    gpsti_a64_store(&slot->host_bytes, 0);
    gpsti_a64_store(&slot->charged_bytes, 0);
}

/* ---- strings and pictures ------------------------------------------------------------ */

GPSTI_INTERN gpst_result gpsti_slot_reserve_text(gpst_pipeline* pipeline, char** text, size_t* capacity,
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

GPSTI_INTERN void gpsti_slot_set_n(gpsti_slot* slot, uint32_t set, uint32_t n) {
    slot->sets[set].n = n;
    slot->views[set].n = n;
}

GPSTI_INTERN void gpsti_slot_forget(gpsti_slot* slot, uint32_t sets) {
    for (uint32_t k = 0; k < slot->pipeline->n_sets; k++) {
        gpsti_set* const set = &slot->sets[k];
        const size_t capacity = slot->pipeline->sets[k].capacity;
        if (!(sets & GPST_SET(k)))
            continue;
        gpsti_slot_set_n(slot, k, 0);
        set->writer = 0;
        set->host_valid = set->device_valid = false;
        set->count = NULL;
        memset(set->on_host, 0, capacity * sizeof *set->on_host);
        memset(set->on_device, 0, capacity * sizeof *set->on_device);
        slot->views[k].pictures = set->on_host;
        slot->views[k].on_device = false;
    }
}

GPSTI_INTERN uint32_t gpsti_slot_n_written(const gpsti_slot* slot) {
    uint32_t n = slot->pipeline->n_parts;
    while (n > 1 && slot->parts[n - 1].n_files == 0)
        n--;
    return n;
}

GPSTI_INTERN uint64_t gpsti_slot_bytes(const gpsti_slot* slot, uint32_t sets) {
    uint64_t total = 0;
    for (uint32_t k = 0; k < slot->pipeline->n_sets; k++)
        for (uint32_t i = 0; (sets & GPST_SET(k)) && i < slot->sets[k].n; i++) {
            size_t bytes = 0;
            if (slot->sets[k].on_host[i].width > 0 && gpst_image_bytes(&slot->sets[k].on_host[i], &bytes) == GPST_OK)
                total += bytes;
        }
    return total;
}

/* Forgets all that stages made of the item. */
GPSTI_PRIVATE void gpsti_slot_clear(gpsti_slot* slot) {
    gpst_item* const item = &slot->item;
    item->result = GPST_OK;
    item->stage = item->reason = "";
    item->decoder = item->encoder = slot->encoder = "";
    item->file_data = NULL;
    item->file_bytes = 0;
    item->metadata = NULL;
    slot->started = slot->single = slot->device_done = false;
    slot->may_drop = slot->waits_turn = false;
    slot->arrived = 0;
    slot->next_in_batch = NULL;
    slot->decode = GPSTI_DECODE_UNSEEN;
    slot->pending = slot->next_part = 0;
    slot->in_batch = false;
    slot->stage[0] = slot->reason[0] = slot->device_reason[0] = '\0';
    gpsti_slot_begin_notes(slot);
    gpsti_a32_store(&slot->failed, 0);
    gpsti_a32_store(&slot->starved, 0);
    gpsti_slot_forget(slot, slot->has_frame ? ~GPST_SET(0) : UINT32_MAX);
    for (uint32_t i = 0; i < slot->pipeline->n_parts; i++) {
        for (gpsti_output_file* file = slot->parts[i].files; file; file = file->next)
            file->asked = 0; /* what is in the room is another item's */
        slot->parts[i].n_files = 0;
        slot->parts[i].writes_pending = 0;
    }
}

GPSTI_INTERN void gpsti_slot_reset(gpsti_slot* slot, uint64_t index, int64_t start_ns) {
    gpst_item* const item = &slot->item;
    memset(item, 0, sizeof *item);
    item->index = index;
    item->name = "";
    item->sets = slot->views;
    item->n_sets = slot->pipeline->n_sets;
    item->start_ns = start_ns;
    slot->has_frame = slot->borrowed = slot->exclusive = slot->given.posed = slot->source_failed = false;
    slot->given.note[0] = '\0';
    slot->release = NULL;
    gpsti_slot_clear(slot);
}

/* Set 0 is where the source or submit gave it, and nowhere else. */
GPSTI_PRIVATE void gpsti_slot_frame_is_valid(gpsti_slot* slot) {
    gpsti_set* const set = &slot->sets[0];
    set->device_valid = slot->frame_on_device;
    set->host_valid = !slot->frame_on_device || slot->pipeline->device_on_host;
    if (!set->host_valid)
        set->on_host[0].data = NULL;
}

GPSTI_INTERN void gpsti_slot_begin_anew(gpsti_slot* slot) {
    gpst_buffer* const own = &slot->sets[0].host[0];
    const gpst_buffer frame = *own;
    gpsti_slot_clear(slot);
    if (slot->has_frame)
        memset(own, 0, sizeof *own);
    gpsti_slot_give_back(slot);
    if (!slot->has_frame)
        return;
    gpsti_slot_frame_is_valid(slot);
    *own = frame;
    if (own->data)
        gpsti_slot_count_taken(slot, own);
}

GPSTI_INTERN gpst_result gpsti_slot_shape(const gpst_image* shape, const char* function, gpst_image* out,
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

GPSTI_INTERN gpst_result gpsti_slot_make_on_host(gpsti_slot* slot, uint32_t set, uint32_t picture) {
    gpst_image* const image = &slot->sets[set].on_host[picture];
    gpst_buffer* const buffer = &slot->sets[set].host[picture];
    size_t bytes = 0;
    image->data = NULL; /* whatever comes of growing */
    GPSTI_TRY(gpst_image_bytes(image, &bytes));
    GPSTI_TRY(gpsti_slot_reserve(slot, buffer, bytes, 0, true));
    image->data = buffer->data;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_slot_copy_frame(gpsti_slot* slot, const gpst_image* frame, const char* function) {
    size_t ignored = 0;
    GPSTI_TRY(gpsti_slot_shape(frame, function, &slot->sets[0].on_host[0], &ignored));
    GPSTI_TRY(gpsti_slot_make_on_host(slot, 0, 0));
    gpsti_image_copy(frame, &slot->sets[0].on_host[0]);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_slot_borrow_frame(gpsti_slot* slot, const gpst_input* input) {
    gpst_buffer frame = GPST_ZERO; /* what it takes of the budget, as far as that is known */
    slot->release = input->release;
    slot->release_user_data = input->release_user_data;
    slot->ready = input->frame_on_device ? input->ready : NULL;
    slot->borrowed = true;
    frame.charged_bytes = input->charged_bytes;
    gpsti_slot_count_taken(slot, &frame);
    slot->sets[0].on_device[0] = slot->sets[0].on_host[0] = gpsti_image_resolved(&input->frame);
}

GPSTI_INTERN void gpsti_slot_release_frame(gpsti_slot* slot) {
    if (!slot->borrowed)
        return;
    slot->borrowed = false;
    gpsti_call_release(slot->pipeline, slot->release, slot->release_user_data);
}

GPSTI_INTERN gpst_result gpsti_slot_load(gpsti_slot* slot, const gpst_input* input, const char* function) {
    GPSTI_TRY(gpsti_slot_load_names(slot, input));
    GPSTI_TRY(gpsti_input_check(slot->pipeline, input, function));
    gpsti_slot_load_notes(slot, input);
    if (!input->frame.data)
        return GPST_OK;
    if (input->release)
        gpsti_slot_borrow_frame(slot, input);
    else
        GPSTI_TRY(gpsti_slot_copy_frame(slot, &input->frame, function));
    slot->has_frame = true;
    slot->frame_on_device = input->frame_on_device;
    gpsti_slot_frame_is_valid(slot);
    gpsti_slot_set_n(slot, 0, 1);
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

GPSTI_PRIVATE gpst_result gpsti_slot_create(gpst_pipeline* pipeline, gpsti_slot* slot) {
    gpsti_host* const host = &pipeline->context->host;
    slot->pipeline = pipeline;
    slot->works[0].device = &pipeline->context->public_device;
    slot->works[0].on_host = pipeline->device_on_host;
    slot->works[1].device =
        pipeline->context->device == pipeline->context->cpu ? slot->works[0].device : &pipeline->context->cpu_device;
    slot->works[1].on_host = true;
    slot->job.slot = slot;
    slot->sets = (gpsti_set*)gpsti_alloc(host, pipeline->n_sets * sizeof *slot->sets);
    slot->views = (gpst_set*)gpsti_alloc(host, pipeline->n_sets * sizeof *slot->views);
    slot->parts = (gpsti_part*)gpsti_alloc(host, pipeline->n_parts * sizeof *slot->parts);
    if (!slot->sets || !slot->views || !slot->parts)
        return GPST_ERROR_MEMORY;
    for (uint32_t i = 0; i < pipeline->n_parts; i++) {
        slot->parts[i].job.slot = slot;
        slot->parts[i].job.part = i;
    }
    for (uint32_t k = 0; k < pipeline->n_sets; k++)
        GPSTI_TRY(gpsti_set_create(host, &slot->sets[k], &slot->views[k], pipeline->sets[k].capacity));
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
    bool whole = slot->sets && slot->parts;
    for (uint32_t k = 0; whole && k < pipeline->n_sets; k++)
        whole = slot->sets[k].host && slot->sets[k].device;
    if (whole) {
        gpsti_place_free_slot(slot);
        gpsti_slot_give_back(slot);
    }
    for (uint32_t i = 0; slot->parts && i < pipeline->n_parts; i++)
        gpsti_slot_free_files(pipeline, slot->parts[i].files);
    for (uint32_t k = 0; slot->sets && k < pipeline->n_sets; k++)
        gpsti_set_destroy(host, &slot->sets[k], pipeline->sets[k].capacity);
    if (slot->text)
        gpsti_free(host, slot->text, slot->text_capacity);
    if (slot->sets)
        gpsti_free(host, slot->sets, pipeline->n_sets * sizeof *slot->sets);
    if (slot->views)
        gpsti_free(host, slot->views, pipeline->n_sets * sizeof *slot->views);
    if (slot->parts)
        gpsti_free(host, slot->parts, pipeline->n_parts * sizeof *slot->parts);
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

/* Buffers that a slot may have: file, pictures and counts, for each part its encoded data; on a device with memory of
   its own also pictures and counts there. */
GPSTI_PRIVATE uint32_t gpsti_slot_n_pieces(const gpst_pipeline* pipeline) {
    uint32_t n_pictures = 1; /* the counts */
    for (uint32_t k = 0; k < pipeline->n_sets; k++)
        n_pictures += pipeline->sets[k].capacity;
    return 1 + n_pictures * (pipeline->device_on_host ? 1 : 2) + pipeline->n_parts;
}

/* Results that the user holds may need more slots than were thought of. */
GPSTI_PRIVATE gpst_result gpsti_slots_grow(gpst_pipeline* pipeline) {
    gpsti_host* const host = &pipeline->context->host;
    const uint32_t capacity = 2 * pipeline->slots_capacity;
    gpsti_slot** const slots = (gpsti_slot**)gpsti_alloc(host, capacity * sizeof *slots);
    if (!slots)
        return GPST_ERROR_MEMORY;
    memcpy(slots, pipeline->slots, pipeline->n_slots_made * sizeof *slots);
    gpsti_free(host, pipeline->slots, pipeline->slots_capacity * sizeof *slots);
    pipeline->slots = slots;
    pipeline->slots_capacity = capacity;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_slots_add(gpst_pipeline* pipeline) {
    if (pipeline->n_slots_made == pipeline->slots_capacity)
        GPSTI_TRY(gpsti_slots_grow(pipeline));
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
