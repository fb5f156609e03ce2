/* core/prefetch/prefetch_load.c -- one frame from its file: memory for it, reading, decoding. Runs on the reader's
   threads and on those that ask, without the prefetcher's mutex but where it says so. */
#include "../base/platform_internal.h"

#include "../device/context_internal.h"
#include "../files/reader_internal.h"
#include "prefetch_internal.h"

#include <string.h>

#define GPSTI_PREFETCH_WAIT_NS 10000000 /* between two looks for memory */

/* What a gpst_prefetch_func is given. */
typedef struct gpsti_prefetch_call {
    gpst_prefetch_file file; /* first: a file is its call */
    gpsti_prefetch_entry* entry;
} gpsti_prefetch_call;

GPSTI_PRIVATE bool gpsti_prefetch_decodes(const gpst_prefetch* prefetch) {
    return prefetch->desc.decode || prefetch->desc.func;
}

/* ---- memory ------------------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_prefetch_no_room(const gpsti_prefetch_entry* entry, size_t bytes) {
    return gpsti_fail(GPST_ERROR_BUDGET, "prefetch \"%s\": max_bytes=%llu: no room for %zu bytes", entry->frame.path,
                      (unsigned long long)entry->prefetch->desc.max_bytes, bytes);
}

/* After BUDGET: true, there is another way to try. A frame that is only foreseen has what is free, and what those
   behind it can do without; one that was asked for has all that caches can do without, now or when it is there. */
GPSTI_PRIVATE bool gpsti_prefetch_try_again(gpsti_prefetch_entry* entry, bool was_asked, size_t bytes) {
    gpst_prefetch* const prefetch = entry->prefetch;
    const bool may_ever = bytes <= prefetch->context->info.max_host_bytes;
    if (was_asked && may_ever &&
        gpsti_caches_wait(prefetch->context->memory, gpsti_now_ns() + GPSTI_PREFETCH_WAIT_NS))
        return true;
    gpsti_mutex_lock(&prefetch->mutex);
    const bool asked = entry->n_holders > 0;
    const bool again = !was_asked && (asked || gpsti_prefetch_drop_one(prefetch, gpsti_prefetch_n_kept(entry)));
    if (!again && asked) {
        entry->starved = may_ever;
    } else if (!again) {
        entry->refused = true;
        entry->refused_at = prefetch->info.asked;
    }
    gpsti_mutex_unlock(&prefetch->mutex);
    return again;
}

/* What the pool has beyond what it lends is for frames of the same size: with others it would only grow. */
GPSTI_PRIVATE void gpsti_prefetch_trim(gpst_prefetch* prefetch) {
    gpst_pool_info info;
    gpst_pool_query_info(prefetch->pool, &info);
    if (info.held_bytes > info.live_bytes && info.held_bytes - info.held_bytes / 8 > prefetch->desc.max_bytes)
        gpst_pool_trim(prefetch->pool);
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_acquire(gpsti_prefetch_entry* entry, size_t bytes, gpst_buffer* out) {
    gpst_prefetch* const prefetch = entry->prefetch;
    gpsti_memory_request request;
    gpst_result result = GPST_OK;
    do {
        memset(&request, 0, sizeof request);
        request.kind = prefetch->pool->kind;
        request.asked_bytes = bytes;
        request.tag = prefetch->pool->tag;
        request.pool = prefetch->pool;
        gpsti_mutex_lock(&prefetch->mutex);
        request.spares_caches = entry->n_holders == 0;
        gpsti_mutex_unlock(&prefetch->mutex);
        result = gpsti_memory_acquire(prefetch->context, &request, out);
    } while (result == GPST_ERROR_BUDGET && gpsti_prefetch_try_again(entry, !request.spares_caches, bytes));
    if (!GPST_FAILED(result))
        gpsti_prefetch_trim(prefetch);
    return result;
}

/* For the entry's picture; what it had for that is given back. */
GPSTI_PRIVATE gpst_result gpsti_prefetch_make_pixels(gpsti_prefetch_entry* entry, size_t bytes) {
    gpst_prefetch* const prefetch = entry->prefetch;
    gpst_pool_release(prefetch->pool, &entry->pixels);
    gpsti_mutex_lock(&prefetch->mutex);
    const bool fits = gpsti_prefetch_claim(entry, bytes);
    gpsti_mutex_unlock(&prefetch->mutex);
    return fits ? gpsti_prefetch_acquire(entry, bytes, &entry->pixels) : gpsti_prefetch_no_room(entry, bytes);
}

/* Of a file that becomes a picture only the picture counts: until its size is known it is taken for the one before. */
GPSTI_PRIVATE gpst_result gpsti_prefetch_reserve(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    gpsti_prefetch_entry* const entry = (gpsti_prefetch_entry*)read->user_data;
    gpst_prefetch* const prefetch = entry->prefetch;
    gpst_buffer room = GPST_ZERO;
    gpsti_mutex_lock(&prefetch->mutex);
    const uint64_t frame_bytes = gpsti_prefetch_decodes(prefetch) ? prefetch->frame_bytes : 0;
    const bool fits = gpsti_prefetch_claim(entry, frame_bytes > 0 ? frame_bytes : needed_bytes);
    gpsti_mutex_unlock(&prefetch->mutex);
    if (!fits)
        return gpsti_prefetch_no_room(entry, needed_bytes);
    GPSTI_TRY(gpsti_prefetch_acquire(entry, needed_bytes, &room));
    if (filled_bytes)
        memcpy(room.data, read->data, filled_bytes);
    gpst_pool_release(prefetch->pool, &entry->file);
    entry->file = room;
    read->data = room.data;
    read->capacity_bytes = room.bytes;
    return GPST_OK;
}

/* ---- decoding ------------------------------------------------------------------------------------- */

/* Who has room decodes and waits for nobody: it comes back. One alone always has it. */
GPSTI_PRIVATE void gpsti_prefetch_take_room(gpst_prefetch* prefetch, uint64_t bytes) {
    if (bytes < GPSTI_DECODE_ROWS_BYTES)
        return;
    gpsti_mutex_lock(&prefetch->mutex);
    while (prefetch->decoder_bytes > 0 && !gpsti_decode_fits(&prefetch->decode, prefetch->decoder_bytes + bytes))
        (void)gpsti_cond_wait_until(&prefetch->changed, &prefetch->mutex, GPST_FOREVER);
    prefetch->decoder_bytes += bytes;
    gpsti_mutex_unlock(&prefetch->mutex);
}

GPSTI_PRIVATE void gpsti_prefetch_give_room(gpst_prefetch* prefetch, uint64_t bytes) {
    if (bytes < GPSTI_DECODE_ROWS_BYTES)
        return;
    gpsti_mutex_lock(&prefetch->mutex);
    prefetch->decoder_bytes -= bytes;
    gpsti_cond_broadcast(&prefetch->changed);
    gpsti_mutex_unlock(&prefetch->mutex);
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_take_codec(gpst_prefetch* prefetch, gpst_jpeg** out) {
    *out = NULL;
    gpsti_mutex_lock(&prefetch->mutex);
    if (prefetch->n_codecs > 0)
        *out = prefetch->codecs[--prefetch->n_codecs];
    gpsti_mutex_unlock(&prefetch->mutex);
    return *out ? GPST_OK : gpst_jpeg_create(&prefetch->context->host.allocator, out);
}

GPSTI_PRIVATE void gpsti_prefetch_put_codec(gpst_prefetch* prefetch, gpst_jpeg* codec) {
    gpsti_mutex_lock(&prefetch->mutex);
    const bool kept = prefetch->n_codecs < GPSTI_PREFETCH_IDLE_CODECS;
    if (kept)
        prefetch->codecs[prefetch->n_codecs++] = codec;
    gpsti_mutex_unlock(&prefetch->mutex);
    if (!kept)
        gpst_jpeg_destroy(codec);
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_run_jpeg(gpsti_prefetch_entry* entry, const gpsti_decode_plan* plan,
                                                  gpst_jpeg_note* note) {
    gpst_prefetch* const prefetch = entry->prefetch;
    gpst_buffer turned = GPST_ZERO;
    gpst_jpeg* codec = NULL;
    if (plan->turned_bytes > 0)
        GPSTI_TRY(gpsti_prefetch_acquire(entry, plan->turned_bytes, &turned));
    gpst_result result = gpsti_prefetch_take_codec(prefetch, &codec);
    if (!GPST_FAILED(result)) {
        gpsti_prefetch_take_room(prefetch, plan->decoder_bytes);
        result = gpsti_decode_run(&prefetch->decode, plan, entry->read.data, entry->read.bytes, codec,
                                  entry->pixels.data, turned.data, note);
        gpsti_prefetch_give_room(prefetch, plan->decoder_bytes);
        gpsti_prefetch_put_codec(prefetch, codec);
    }
    gpst_pool_release(prefetch->pool, &turned);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_run(gpsti_prefetch_entry* entry, const gpsti_decode_plan* plan) {
    gpst_frame* const frame = &entry->frame;
    gpst_jpeg_note note = GPST_ZERO;
    if (plan->offset > 0) { /* the pixels lie in the file as they are used */
        frame->picture.data = (uint8_t*)entry->file.data + plan->offset;
    } else {
        GPSTI_TRY(gpsti_prefetch_make_pixels(entry, plan->picture_bytes));
        GPSTI_TRY(plan->kind == GPST_FILE_JPEG
                      ? gpsti_prefetch_run_jpeg(entry, plan, &note)
                      : gpsti_decode_run(&entry->prefetch->decode, plan, entry->read.data, entry->read.bytes, NULL,
                                         entry->pixels.data, NULL, &note));
        frame->picture.data = entry->pixels.data;
    }
    frame->has_pose = plan->placement.has_pose;
    frame->pose = plan->placement.pose;
    const char* const placed = plan->placement.note;
    gpsti_format(entry->note, sizeof entry->note, "%s%s%s", note.text, note.text[0] && placed[0] ? "; " : "", placed);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_call_func(gpsti_prefetch_entry* entry) {
    const gpst_prefetch* const prefetch = entry->prefetch;
    gpsti_prefetch_call call;
    memset(&call, 0, sizeof call);
    call.entry = entry;
    call.file.index = entry->frame.index;
    call.file.path = entry->frame.path;
    call.file.data = entry->read.bytes > 0 ? entry->read.data : NULL;
    call.file.bytes = entry->read.bytes;
    const uint64_t serial = gpsti_fail_serial();
    const gpst_result result = prefetch->desc.func(prefetch->desc.func_user_data, &call.file);
    if (GPST_FAILED(result))
        return gpsti_fail_serial() != serial ? result : gpsti_fail(result, "func: %s", gpst_result_text(result));
    GPSTI_FAIL_IF(result != GPST_OK, GPST_ERROR_CALLBACK, "func returned %s: must be GPST_OK or negative",
                  gpst_result_name(result));
    GPSTI_FAIL_IF(!entry->pixels.data, GPST_ERROR_CALLBACK, "func made no picture");
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_prefetch_decode(gpsti_prefetch_entry* entry) {
    const gpst_prefetch* const prefetch = entry->prefetch;
    gpsti_decode_plan plan;
    if (!prefetch->desc.decode)
        return gpsti_prefetch_call_func(entry);
    const gpst_result result =
        gpsti_decode_plan_of(&prefetch->decode, entry->read.data, entry->read.bytes, &plan);
    if (plan.kind == GPST_FILE_UNKNOWN && prefetch->desc.func)
        return gpsti_prefetch_call_func(entry);
    GPSTI_TRY(result);
    entry->frame.picture = plan.picture;
    return gpsti_prefetch_run(entry, &plan);
}

GPST_API gpst_result gpst_prefetch_set_picture(const gpst_prefetch_file* file, const gpst_image* shape,
                                               gpst_image* out) {
    const char* function = "gpst_prefetch_set_picture";
    size_t bytes = 0;
    if (out)
        memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(!file || !shape || !out, GPST_ERROR_ARGUMENT, "%s: %s=NULL: required", function,
                  !file ? "file" : !shape ? "shape" : "out");
    GPSTI_FAIL_IF(shape->width == 0 || shape->height == 0, GPST_ERROR_ARGUMENT,
                  "%s: shape=%u x %u: width and height must be at least 1", function, shape->width, shape->height);
    gpsti_prefetch_entry* const entry = ((gpsti_prefetch_call*)(uintptr_t)file)->entry;
    gpst_image picture = *shape;
    picture.data = NULL;
    picture.pitch_bytes = 0;
    GPSTI_TRY(gpsti_image_extent(&picture, function, "shape", &bytes));
    picture.pitch_bytes = (int64_t)gpst_image_row_bytes(&picture);
    GPSTI_TRY(gpsti_prefetch_make_pixels(entry, bytes));
    picture.data = entry->pixels.data;
    entry->frame.picture = picture;
    *out = picture;
    return GPST_OK;
}

/* ---- one frame ------------------------------------------------------------------------------------ */

/* The frame of what was read. A failure's sentence names the file. */
GPSTI_PRIVATE gpst_result gpsti_prefetch_make_frame(gpsti_prefetch_entry* entry) {
    gpst_frame* const frame = &entry->frame;
    char where[192];
    size_t bytes = 0;
    memset(&frame->picture, 0, sizeof frame->picture);
    memset(&frame->pose, 0, sizeof frame->pose);
    frame->has_pose = false;
    frame->data = entry->file.data;
    frame->bytes = entry->read.bytes;
    frame->pinned = entry->file.pinned;
    frame->charged_bytes = entry->file.charged_bytes;
    entry->note[0] = '\0';
    if (!gpsti_prefetch_decodes(entry->prefetch))
        return GPST_OK;
    const int64_t start_ns = gpsti_now_ns();
    const gpst_result result = gpsti_prefetch_decode(entry);
    entry->decode_ns = gpsti_now_ns() - start_ns;
    if (GPST_FAILED(result)) {
        gpsti_format(where, sizeof where, "prefetch \"%s\"", frame->path);
        return gpsti_fail_in(result, where);
    }
    GPSTI_TRY(gpst_image_bytes(&frame->picture, &bytes));
    frame->data = frame->picture.data;
    frame->bytes = bytes;
    if (entry->pixels.data) {
        frame->pinned = entry->pixels.pinned;
        frame->charged_bytes = entry->pixels.charged_bytes;
        gpst_pool_release(entry->prefetch->pool, &entry->file);
    }
    return GPST_OK;
}

/* Locked. */
GPSTI_PRIVATE void gpsti_prefetch_account(gpsti_prefetch_entry* entry) {
    gpst_prefetch_info* const info = &entry->prefetch->info;
    if (GPST_FAILED(entry->result) || !entry->frame.picture.data)
        return;
    info->decoded++;
    info->decode_ns += entry->decode_ns;
    if (!entry->pixels.data) { /* it lies in its file, and counts with all of that */
        info->bytes += entry->read.bytes - entry->claimed_bytes;
        entry->claimed_bytes = entry->read.bytes;
    }
    entry->prefetch->frame_bytes = entry->claimed_bytes;
}

/* The read is over, one way or the other: decodes, and tells those who wait. A frame that nobody asked for and that
   could not be had is forgotten: whoever asks for it will see for himself. */
GPSTI_PRIVATE void gpsti_prefetch_finish(gpsti_prefetch_entry* entry) {
    gpst_prefetch* const prefetch = entry->prefetch;
    gpst_result result = entry->read.result;
    gpsti_copy_text(entry->reason, sizeof entry->reason, entry->read.reason);
    if (!GPST_FAILED(result)) {
        result = gpsti_prefetch_make_frame(entry);
        if (GPST_FAILED(result))
            gpsti_copy_text(entry->reason, sizeof entry->reason, gpst_last_reason());
    }
    gpsti_mutex_lock(&prefetch->mutex);
    entry->result = result;
    entry->loading = false;
    gpsti_prefetch_account(entry);
    if (GPST_FAILED(result))
        gpsti_prefetch_empty(entry);
    if (GPST_FAILED(result) && !entry->n_holders) {
        const bool again = entry->refused && entry->refused_at != prefetch->info.asked; /* who asked took it for read */
        prefetch->info.failed += !entry->refused && result != GPST_ERROR_CANCELLED;
        gpsti_prefetch_drop(entry);
        if (again)
            gpsti_prefetch_go_ahead(prefetch);
    } else {
        (void)gpsti_prefetch_make_room(prefetch, 0, gpsti_prefetch_n_kept(entry));
    }
    gpsti_cond_broadcast(&prefetch->changed);
    gpsti_mutex_unlock(&prefetch->mutex);
    gpsti_caches_tell(prefetch->context->memory);
}

GPSTI_PRIVATE void gpsti_prefetch_done(gpst_read* read) {
    gpsti_prefetch_finish((gpsti_prefetch_entry*)read->user_data);
}

GPSTI_INTERN void gpsti_prefetch_prepare(gpsti_prefetch_entry* entry) {
    entry->read.reserve = gpsti_prefetch_reserve;
    entry->read.done = gpsti_prefetch_done;
    entry->read.user_data = entry;
}

GPSTI_INTERN void gpsti_prefetch_load(gpsti_prefetch_entry* entry) {
    (void)gpst_reader_read_now(entry->prefetch->reader, &entry->read);
    gpsti_prefetch_finish(entry);
}
