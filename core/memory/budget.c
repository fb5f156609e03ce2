/* core/memory/budget.c -- the accounts of a context's memory: what is charged against its budgets and under which tag,
   the soft marks below them, and what all processes use of the device. Makes and frees nothing by itself. */
#include "../base/platform_internal.h"

#include "memory_internal.h"

#include <string.h>

#define GPSTI_MEMORY_ALERT_PART 0.9
#define GPSTI_MEMORY_TARGET_PART (0.85 / 0.9) /* of the part of the alert */
#define GPSTI_MEMORY_ASK_PART 128 /* of the device's memory is made between two questions: they take a driver time */

/* ---- budgets; from here on the mutex is held unless something else is said ------------------ */

GPSTI_INTERN bool gpsti_memory_on_device(gpsti_memory_kind kind) { return kind == GPSTI_MEMORY_DEVICE; }

GPSTI_INTERN gpsti_a64* gpsti_memory_charged(const gpsti_memory* memory, gpsti_memory_kind kind) {
    return gpsti_memory_on_device(kind) ? &memory->context->device_bytes : &memory->context->host_bytes;
}

GPSTI_INTERN uint64_t gpsti_memory_budget(const gpsti_memory* memory, gpsti_memory_kind kind) {
    return gpsti_memory_on_device(kind) ? memory->context->info.max_device_bytes : memory->context->info.max_host_bytes;
}

GPSTI_INTERN bool gpsti_pool_has_room(const gpst_pool* pool, uint64_t bytes) {
    const uint64_t cap = pool ? pool->desc.max_bytes : 0;
    return !cap || (pool->info.held_bytes <= cap && bytes <= cap - pool->info.held_bytes);
}

GPSTI_INTERN bool gpsti_memory_has_room(const gpsti_memory* memory, const gpsti_memory_request* request,
                                        uint64_t bytes) {
    const uint64_t budget = gpsti_memory_budget(memory, request->kind);
    const uint64_t charged = gpsti_a64_load_relaxed(gpsti_memory_charged(memory, request->kind));
    return gpsti_pool_has_room(request->pool, bytes) && charged <= budget && bytes <= budget - charged;
}

GPSTI_PRIVATE uint64_t gpsti_memory_part(double part, uint64_t bytes) { return (uint64_t)(part * (double)bytes); }

/* Charges only rise here, so before one is the least that there was since the one before it. */
GPSTI_PRIVATE void gpsti_memory_rearm(gpsti_memory* memory) {
    if (gpsti_a64_load_relaxed(&memory->context->device_bytes) <=
        gpsti_memory_part(memory->marks.target_part, memory->context->info.max_device_bytes))
        memory->above_budget = false;
}

GPSTI_INTERN bool gpsti_memory_charge(gpsti_memory* memory, const gpsti_memory_request* request, uint64_t bytes) {
    if (!gpsti_pool_has_room(request->pool, bytes))
        return false;
    if (gpsti_memory_on_device(request->kind))
        gpsti_memory_rearm(memory);
    if (!gpsti_a64_add_within(gpsti_memory_charged(memory, request->kind), bytes,
                              gpsti_memory_budget(memory, request->kind))) /* graphs are charged without the mutex */
        return false;
    if (request->pool)
        request->pool->info.held_bytes += bytes;
    return true;
}

GPSTI_INTERN void gpsti_memory_refund(gpsti_memory* memory, gpsti_memory_kind kind, uint64_t bytes) {
    (void)gpsti_a64_add(gpsti_memory_charged(memory, kind), (uint64_t)0 - bytes);
}

/* ---- tags ------------------------------------------------------------------------------------ */

GPSTI_INTERN void gpsti_memory_count_tag(gpsti_memory* memory, const gpsti_memory_block* block, bool add) {
    gpst_tag_info* const tag = &memory->tags[block->tag];
    const bool on_device = gpsti_memory_on_device(block->kind);
    uint64_t* const live = on_device ? &tag->device_bytes : &tag->host_bytes;
    uint64_t* const peak = on_device ? &tag->device_peak_bytes : &tag->host_peak_bytes;
    *live += add ? block->charged_bytes : (uint64_t)0 - block->charged_bytes;
    (void)gpsti_a64_add(&memory->lent_bytes[on_device],
                        add ? block->charged_bytes : (uint64_t)0 - block->charged_bytes);
    *peak = *live > *peak ? *live : *peak;
}

GPSTI_INTERN uint32_t gpsti_memory_tag(gpsti_memory* memory, const char* tag) {
    uint32_t i = 0;
    if (!tag || !tag[0])
        return 0;
    gpsti_mutex_lock(&memory->mutex);
    while (i < memory->n_tags && strncmp(memory->tags[i].tag, tag, sizeof memory->tags[i].tag - 1))
        i++;
    if (i == memory->n_tags && i < GPSTI_MEMORY_TAGS)
        gpsti_copy_text(memory->tags[memory->n_tags++].tag, sizeof memory->tags[i].tag, tag);
    gpsti_mutex_unlock(&memory->mutex);
    return i < GPSTI_MEMORY_TAGS ? i : 0;
}

GPST_API void gpst_context_query_tags(const gpst_context* context, gpst_tag_info* out, uint32_t max, uint32_t* n) {
    if (n)
        *n = 0;
    if (!context || !n || gpsti_context_forked(context))
        return;
    gpsti_memory* const memory = context->memory;
    gpsti_mutex_lock(&memory->mutex);
    *n = memory->n_tags;
    if (out && max > 0)
        memcpy(out, memory->tags, (max < *n ? max : *n) * sizeof *out);
    gpsti_mutex_unlock(&memory->mutex);
}

/* ---- soft marks ------------------------------------------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_memory_check_marks(const char* function, const gpst_memory_marks* marks) {
    const double alert = marks->alert_part > 0 ? marks->alert_part : GPSTI_MEMORY_ALERT_PART;
    GPSTI_FAIL_IF(!(marks->alert_part >= 0 && marks->alert_part <= 1), GPST_ERROR_ARGUMENT,
                  "%s: desc.memory_marks.alert_part=%g: must be 0 (%g) .. 1", function, marks->alert_part,
                  GPSTI_MEMORY_ALERT_PART);
    GPSTI_FAIL_IF(!(marks->target_part >= 0 && marks->target_part <= alert), GPST_ERROR_ARGUMENT,
                  "%s: desc.memory_marks.target_part=%g: must be 0 (default) .. %g (alert_part)", function,
                  marks->target_part, alert);
    return GPST_OK;
}

GPSTI_INTERN void gpsti_memory_set_marks(gpsti_memory* memory, const gpst_memory_marks* marks) {
    gpst_memory_marks* const own = &memory->marks;
    *own = *marks;
    if (own->alert_part <= 0)
        own->alert_part = GPSTI_MEMORY_ALERT_PART;
    if (own->target_part <= 0)
        own->target_part = own->alert_part * GPSTI_MEMORY_TARGET_PART;
}

/* Asks the device what all processes use, without the mutex; 0 and 0 where it is not asked. A zero_copy device has the
   host's memory, of which the system takes care. made_bytes: since it was asked last. */
GPSTI_PRIVATE void gpsti_memory_ask_use(gpsti_memory* memory, uint64_t made_bytes, uint64_t* used_bytes,
                                        uint64_t* total_bytes) {
    gpst_context* const context = memory->context;
    uint64_t free_bytes = 0;
    *used_bytes = *total_bytes = 0;
    if (context->device_info.zero_copy || made_bytes < context->device_info.memory_bytes / GPSTI_MEMORY_ASK_PART)
        return;
    memory->unasked_bytes = 0;
    gpsti_mutex_unlock(&memory->mutex);
    context->device->i->memory_info(context->device, &free_bytes, total_bytes);
    gpsti_mutex_lock(&memory->mutex);
    *used_bytes = *total_bytes > free_bytes ? *total_bytes - free_bytes : 0;
}

/* target_bytes: what the context may keep charged so that use falls to the target. */
GPSTI_PRIVATE bool gpsti_memory_is_crossed(gpsti_memory* memory, uint64_t made_bytes, uint64_t* target_bytes) {
    const gpst_memory_marks* const marks = &memory->marks;
    const uint64_t unasked_bytes = memory->unasked_bytes + made_bytes;
    uint64_t used = 0, total = 0;
    memory->unasked_bytes = unasked_bytes;
    gpsti_memory_ask_use(memory, unasked_bytes, &used, &total);
    const uint64_t charged = gpsti_a64_load(&memory->context->device_bytes);
    const uint64_t budget = memory->context->info.max_device_bytes;
    const uint64_t target_used = gpsti_memory_part(marks->target_part, total);
    const bool over_budget = charged > gpsti_memory_part(marks->alert_part, budget);
    const bool over_device = used > gpsti_memory_part(marks->alert_part, total);
    if (total > 0 && (used <= target_used || used - target_used <= unasked_bytes))
        memory->above_device = false;
    const bool crossed = (over_budget && !memory->above_budget) || (over_device && !memory->above_device);
    memory->above_budget = memory->above_budget || over_budget;
    memory->above_device = memory->above_device || over_device;
    *target_bytes = over_budget ? gpsti_memory_part(marks->target_part, budget) : charged;
    if (over_device) {
        const uint64_t excess = used - target_used, rest = charged > excess ? charged - excess : 0;
        *target_bytes = rest < *target_bytes ? rest : *target_bytes;
    }
    return crossed;
}

GPSTI_INTERN void gpsti_memory_count_made(gpsti_memory* memory, gpsti_memory_request* request, uint64_t bytes) {
    const bool on_device = gpsti_memory_on_device(request->kind);
    const uint64_t charged = gpsti_a64_load(gpsti_memory_charged(memory, request->kind));
    uint64_t target_bytes = 0;
    if (charged > memory->peak_bytes[on_device])
        memory->peak_bytes[on_device] = charged;
    if (!on_device || !gpsti_memory_is_crossed(memory, bytes, &target_bytes))
        return;
    memory->n_alerts++;
    request->crossed = true;
    (void)gpsti_memory_shrink_to(memory, true, target_bytes);
}

/* Without the mutex. */
GPSTI_INTERN void gpsti_memory_alert(gpsti_memory* memory) {
    gpst_memory_use use;
    gpst_context_query_memory(memory->context, &use);
    GPSTI_LOG(&memory->context->host, GPST_LOG_INFO, GPSTI_NO_ITEM,
              "device memory went above alert_part=%g; now %llu of max_device_bytes=%llu are charged, %llu of these "
              "lent; %llu of the device's %llu are free",
              use.alert_part, (unsigned long long)use.device.charged_bytes, (unsigned long long)use.device.budget_bytes,
              (unsigned long long)use.device.lent_bytes, (unsigned long long)use.device_free_bytes,
              (unsigned long long)use.device_total_bytes);
    if (memory->marks.alert)
        memory->marks.alert(memory->marks.user_data, &use);
}

/* ---- queries; without the mutex ------------------------------------------------------------------- */

GPSTI_INTERN void gpsti_memory_query_kept(gpsti_memory* memory, uint64_t* host_bytes, uint64_t* device_bytes) {
    gpsti_mutex_lock(&memory->mutex);
    *host_bytes = memory->kept_bytes[0];
    *device_bytes = memory->kept_bytes[1];
    gpsti_mutex_unlock(&memory->mutex);
}

/* With it. */
GPSTI_INTERN void gpsti_memory_sum_up(const gpsti_memory* memory, bool on_device, gpst_memory_account* out) {
    const gpsti_memory_kind kind = on_device ? GPSTI_MEMORY_DEVICE : GPSTI_MEMORY_HOST;
    memset(out, 0, sizeof *out);
    out->budget_bytes = gpsti_memory_budget(memory, kind);
    out->charged_bytes = gpsti_a64_load(gpsti_memory_charged(memory, kind));
    out->peak_bytes = memory->peak_bytes[on_device]; /* it does not have what graphs took since */
    out->peak_bytes = out->charged_bytes > out->peak_bytes ? out->charged_bytes : out->peak_bytes;
    out->kept_bytes = memory->kept_bytes[on_device];
    for (uint32_t i = 0; i < memory->n_blocks; i++) {
        const gpsti_memory_block* const block = &memory->blocks[i];
        if (gpsti_memory_on_device(block->kind) != on_device)
            continue;
        out->lent_bytes += block->state == GPSTI_MEMORY_LENT ? block->charged_bytes : 0;
        out->free_bytes += block->state == GPSTI_MEMORY_FREE && block->pool ? block->charged_bytes : 0;
    }
}

GPST_API void gpst_context_query_memory(const gpst_context* context, gpst_memory_use* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!context || gpsti_context_forked(context))
        return;
    gpsti_memory* const memory = context->memory;
    context->device->i->memory_info(context->device, &out->device_free_bytes, &out->device_total_bytes);
    gpsti_mutex_lock(&memory->mutex);
    gpsti_memory_sum_up(memory, false, &out->host);
    gpsti_memory_sum_up(memory, true, &out->device);
    out->alert_part = memory->marks.alert_part;
    out->target_part = memory->marks.target_part;
    out->above_budget = memory->above_budget;
    out->above_device = memory->above_device;
    out->n_alerts = memory->n_alerts;
    gpsti_mutex_unlock(&memory->mutex);
    const uint64_t known = out->device_free_bytes + out->device.charged_bytes;
    if (out->device_total_bytes > known)
        out->device_others_bytes = out->device_total_bytes - known;
}
