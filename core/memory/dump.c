/* core/memory/dump.c -- what a context's memory is, in words: for users who ask, for the log when there is none left,
   and when something ends that has not got all of it back. Changes nothing. */
#include "../base/platform_internal.h"

#include "memory_internal.h"

#include <stdarg.h>
#include <string.h>

#define GPSTI_DUMP_LOG_BYTES 3072
#define GPSTI_DUMP_INTERVAL_NS ((int64_t)60 * 1000000000) /* between two in the log, of one kind of refusal */

typedef struct gpsti_dump {
    char* out;
    size_t max_bytes, n; /* n: what the whole text has so far */
} gpsti_dump;

GPSTI_PRIVATE void gpsti_dump_add(gpsti_dump* dump, const char* format, ...) GPSTI_PRINTF(2, 3);

GPSTI_PRIVATE void gpsti_dump_add(gpsti_dump* dump, const char* format, ...) {
    char text[320];
    va_list list;
    va_start(list, format);
    gpsti_format_list(text, sizeof text, format, list);
    va_end(list);
    if (dump->n < dump->max_bytes)
        gpsti_copy_text(dump->out + dump->n, dump->max_bytes - dump->n, text);
    dump->n += strlen(text);
}

GPSTI_PRIVATE void gpsti_dump_begin(gpsti_dump* dump, char* out, size_t max_bytes) {
    dump->out = out;
    dump->max_bytes = out ? max_bytes : 0;
    dump->n = 0;
    if (dump->max_bytes > 0)
        out[0] = '\0';
}

/* ---- lines; with the mutex -------------------------------------------------------------- */

GPSTI_PRIVATE const char* gpsti_dump_kind(gpsti_memory_kind kind) {
    return kind == GPSTI_MEMORY_DEVICE ? "device" : kind == GPSTI_MEMORY_PINNED ? "pinned" : "pageable";
}

/* Of each size, the smallest first. pool: NULL: of all. */
GPSTI_PRIVATE void gpsti_dump_sizes(gpsti_dump* dump, const gpsti_memory* memory, gpsti_memory_kind kind,
                                    const gpst_pool* pool) {
    size_t below = 0, bytes = 0;
    for (;; below = bytes) {
        uint32_t n[4] = {0, 0, 0, 0}; /* by gpsti_memory_state */
        bytes = SIZE_MAX;
        for (uint32_t i = 0; i < memory->n_blocks; i++) {
            const gpsti_memory_block* const block = &memory->blocks[i];
            if (!block->bytes || block->kind != kind || (pool && block->pool != pool) || block->bytes <= below ||
                block->bytes > bytes)
                continue;
            if (block->bytes < bytes)
                memset(n, 0, sizeof n);
            bytes = block->bytes;
            n[block->state]++;
        }
        if (bytes == SIZE_MAX)
            return;
        gpsti_dump_add(dump, "; %s, %zu bytes each: %u lent, %u free", gpsti_dump_kind(kind), bytes,
                       n[GPSTI_MEMORY_LENT], n[GPSTI_MEMORY_FREE]);
    }
}

GPSTI_PRIVATE void gpsti_dump_account(gpsti_dump* dump, const gpsti_memory* memory, bool on_device) {
    gpst_memory_account sum;
    gpsti_memory_sum_up(memory, on_device, &sum);
    gpsti_dump_add(dump,
                   "%s memory: %llu bytes charged of %s=%llu, at most %llu: %llu lent, %llu free in pools, %llu kept",
                   on_device ? "device" : "host", (unsigned long long)sum.charged_bytes,
                   on_device ? "max_device_bytes" : "max_host_bytes", (unsigned long long)sum.budget_bytes,
                   (unsigned long long)sum.peak_bytes, (unsigned long long)sum.lent_bytes,
                   (unsigned long long)sum.free_bytes, (unsigned long long)sum.kept_bytes);
    for (int kind = 0; kind < GPSTI_MEMORY_KINDS; kind++)
        if (gpsti_memory_on_device((gpsti_memory_kind)kind) == on_device)
            gpsti_dump_sizes(dump, memory, (gpsti_memory_kind)kind, NULL);
    gpsti_dump_add(dump, "\n");
}

GPSTI_PRIVATE void gpsti_dump_tags(gpsti_dump* dump, const gpsti_memory* memory, bool on_device) {
    gpsti_dump_add(dump, "%s memory on loan by tag:", on_device ? "device" : "host");
    for (uint32_t i = 0; i < memory->n_tags; i++) {
        const gpst_tag_info* const tag = &memory->tags[i];
        const uint64_t peak = on_device ? tag->device_peak_bytes : tag->host_peak_bytes;
        if (peak > 0)
            gpsti_dump_add(dump, " \"%s\" %llu (at most %llu)", tag->tag,
                           (unsigned long long)(on_device ? tag->device_bytes : tag->host_bytes),
                           (unsigned long long)peak);
    }
    gpsti_dump_add(dump, "\n");
}

GPSTI_PRIVATE void gpsti_dump_pool(gpsti_dump* dump, const gpsti_memory* memory, const gpst_pool* pool) {
    const gpst_pool_info* const info = &pool->info;
    gpsti_dump_add(dump, "pool \"%s\" of %s memory: %llu bytes held", memory->tags[pool->tag].tag,
                   gpsti_dump_kind(pool->kind), (unsigned long long)info->held_bytes);
    if (pool->desc.max_bytes)
        gpsti_dump_add(dump, " of max_bytes=%llu", (unsigned long long)pool->desc.max_bytes);
    gpsti_dump_add(dump, ", %llu of them lent, at most %llu; %llu acquires, %llu allocations, %llu refusals",
                   (unsigned long long)info->live_bytes, (unsigned long long)info->peak_bytes,
                   (unsigned long long)info->acquires, (unsigned long long)info->allocations,
                   (unsigned long long)info->refusals);
    gpsti_dump_sizes(dump, memory, pool->kind, pool);
    gpsti_dump_add(dump, "\n");
}

/* ---- for users; from here on without it --------------------------------------------------- */

GPST_API size_t gpst_context_dump_memory(const gpst_context* context, char* out, size_t max_bytes) {
    uint64_t free_bytes = 0, total_bytes = 0;
    gpsti_dump dump;
    gpsti_dump_begin(&dump, out, max_bytes);
    if (!context || gpsti_context_forked(context))
        return 0;
    context->device->i->memory_info(context->device, &free_bytes, &total_bytes);
    gpsti_mutex_lock(&context->memory->mutex);
    for (int on_device = 0; on_device < 2; on_device++) {
        gpsti_dump_account(&dump, context->memory, on_device != 0);
        gpsti_dump_tags(&dump, context->memory, on_device != 0);
    }
    gpsti_mutex_unlock(&context->memory->mutex);
    gpsti_dump_add(&dump, "%s: %llu of %llu bytes are free\n", context->info.device_name,
                   (unsigned long long)free_bytes, (unsigned long long)total_bytes);
    return dump.n;
}

GPST_API size_t gpst_pool_dump(const gpst_pool* pool, char* out, size_t max_bytes) {
    gpsti_dump dump;
    gpsti_dump_begin(&dump, out, max_bytes);
    if (!pool || gpsti_context_forked(pool->context))
        return 0;
    gpsti_mutex_lock(&pool->context->memory->mutex);
    gpsti_dump_pool(&dump, pool->context->memory, pool);
    gpsti_mutex_unlock(&pool->context->memory->mutex);
    return dump.n;
}

/* ---- for the log --------------------------------------------------------------------------- */

/* One message a line. */
GPSTI_PRIVATE void gpsti_dump_log(gpsti_host* host, gpst_log_level level, char* text) {
    for (char* end = strchr(text, '\n'); end; end = strchr(text, '\n')) {
        *end = '\0';
        GPSTI_LOG(host, level, GPSTI_NO_ITEM, "%s", text);
        text = end + 1;
    }
}

GPSTI_INTERN void gpsti_memory_dump_refusal(gpsti_memory* memory, gpsti_memory_kind kind, const gpst_pool* pool,
                                            gpst_result result) {
    const bool on_device = gpsti_memory_on_device(kind), by_budget = result == GPST_ERROR_BUDGET;
    const int64_t now_ns = gpsti_now_ns();
    int64_t* const next_ns = &memory->next_dump_ns[(by_budget ? 2 : 0) + (on_device ? 1 : 0)];
    char text[GPSTI_DUMP_LOG_BYTES];
    gpsti_dump dump;
    if (!by_budget && result != GPST_ERROR_MEMORY && result != GPST_ERROR_DEVICE_MEMORY)
        return;
    gpsti_dump_begin(&dump, text, sizeof text);
    gpsti_mutex_lock(&memory->mutex);
    const bool is_due = *next_ns <= now_ns;
    if (is_due) {
        *next_ns = now_ns + GPSTI_DUMP_INTERVAL_NS;
        if (pool)
            gpsti_dump_pool(&dump, memory, pool);
        gpsti_dump_account(&dump, memory, on_device);
        gpsti_dump_tags(&dump, memory, on_device);
    }
    gpsti_mutex_unlock(&memory->mutex);
    if (!is_due)
        return;
    GPSTI_LOG(&memory->context->host, GPST_LOG_WARNING, GPSTI_NO_ITEM, "no memory: %s", gpst_last_reason());
    gpsti_dump_log(&memory->context->host, GPST_LOG_WARNING, text);
}

GPSTI_INTERN void gpsti_pool_log_leak(const gpst_pool* pool) {
    char text[GPSTI_DUMP_LOG_BYTES];
    GPSTI_LOG(&pool->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM, "%s", gpst_last_reason());
    (void)gpst_pool_dump(pool, text, sizeof text);
    gpsti_dump_log(&pool->context->host, GPST_LOG_ERROR, text);
}

/* Others may still work, where a context's end is refused. The logger is called without the mutex. */
GPSTI_INTERN void gpsti_memory_log_leaks(gpsti_memory* memory) {
    gpst_tag_info tags[GPSTI_MEMORY_TAGS];
    uint32_t n[GPSTI_MEMORY_TAGS];
    memset(n, 0, sizeof n);
    gpsti_mutex_lock(&memory->mutex);
    const uint32_t n_tags = memory->n_tags;
    memcpy(tags, memory->tags, sizeof tags);
    for (uint32_t i = 0; i < memory->n_blocks; i++)
        n[memory->blocks[i].tag] += memory->blocks[i].state == GPSTI_MEMORY_LENT;
    gpsti_mutex_unlock(&memory->mutex);
    for (uint32_t tag = 0; tag < n_tags; tag++)
        if (n[tag] > 0)
            GPSTI_LOG(&memory->context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
                      "gpst_context_destroy: %u buffers of the tag \"%s\" never came back: %llu bytes of the host, "
                      "%llu of the device",
                      n[tag], tags[tag].tag, (unsigned long long)tags[tag].host_bytes,
                      (unsigned long long)tags[tag].device_bytes);
}
