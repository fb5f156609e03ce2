/* core/pipeline/context.c -- makes a context of its desc, with what pipelines share: devices, workers, budgets, memory
   that is kept. Computes nothing. */
#include "../base/platform_internal.h"

#include "../items/pipeline_internal.h"

#include <string.h>

#define GPSTI_MAX_WORKERS 1024u
#define GPSTI_DEFAULT_HOST_BYTES ((uint64_t)1 << 30) /* where the system does not say what is available */

/* ---- create / destroy ---------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_context_validate(const gpst_context_desc* desc) {
    const char* function = "gpst_context_create";
    GPSTI_TRY(gpsti_check_canaries(function, desc->start_canary, desc->end_canary));
    GPSTI_FAIL_IF(!desc->allocator.alloc != !desc->allocator.free, GPST_ERROR_ARGUMENT,
                  "%s: desc.allocator.%s=NULL: alloc and free must both be set, or neither", function,
                  desc->allocator.alloc ? "free" : "alloc");
    GPSTI_FAIL_IF((int)desc->logger.threshold < 0 || desc->logger.threshold > GPST_LOG_DEBUG, GPST_ERROR_ARGUMENT,
                  "%s: desc.logger.threshold=%d: must be 0..%d", function, (int)desc->logger.threshold,
                  (int)GPST_LOG_DEBUG);
    GPSTI_FAIL_IF(desc->n_workers > GPSTI_MAX_WORKERS, GPST_ERROR_ARGUMENT,
                  "%s: desc.n_workers=%u: must be 0 (default) .. %u", function, desc->n_workers, GPSTI_MAX_WORKERS);
    GPSTI_FAIL_IF(desc->backend && !gpsti_backend_is_known(desc->backend), GPST_ERROR_ARGUMENT,
                  "%s: desc.backend=\"%.100s\": must be auto, cpu, cuda or hip, with \":key=value,...\" after "
                  "those that take parameters",
                  function, desc->backend);
    return gpsti_memory_check_marks(function, &desc->memory_marks);
}

GPSTI_PRIVATE void gpsti_context_resolve(gpst_context* context, const gpst_context_desc* desc) {
    gpst_context_info* info = &context->info;
    gpsti_device_info* const device = &context->device_info;
    gpsti_limits limits;
    context->device->i->device_query(context->device, device);
    gpsti_limits_query(&limits);
    gpsti_copy_text(context->backend_name, sizeof context->backend_name, context->device->i->name);
    gpsti_copy_text(context->device_name, sizeof context->device_name, device->name);
    info->backend = context->backend_name;
    info->device_name = context->device_name;
    info->backend_reason = context->backend_reason;
    gpsti_format(context->temporary_tag, sizeof context->temporary_tag, "%016llx",
                 (unsigned long long)gpsti_process_tag());
    info->temporary_tag = context->temporary_tag;
    context->system_root = "";
    context->cores_online = limits.cores_online;
    info->cores_allowed = limits.cores_allowed;
    if (context->pin.on && context->pin.n_cores < info->cores_allowed)
        info->cores_allowed = context->pin.n_cores;
    info->pinned = context->pin.text;
    info->n_workers = gpsti_threads_fit(desc->n_workers ? desc->n_workers : info->cores_allowed);
    if (info->n_workers > GPSTI_MAX_WORKERS)
        info->n_workers = GPSTI_MAX_WORKERS;
    if (info->n_workers == 0)
        info->n_workers = 1;
    info->max_host_bytes = limits.ram_available_bytes ? limits.ram_available_bytes / 2 : GPSTI_DEFAULT_HOST_BYTES;
    if (desc->max_host_bytes)
        info->max_host_bytes = desc->max_host_bytes;
    info->max_device_bytes = desc->max_device_bytes;
    if (!info->max_device_bytes)
        info->max_device_bytes =
            device->memory_free_bytes ? device->memory_free_bytes / 10 * 9 : GPSTI_DEFAULT_HOST_BYTES;
}

/* One allocation: the context, and what it keeps for its pipelines. */
typedef struct gpsti_context_block {
    gpst_context context; /* first */
    gpsti_memory memory;
    gpsti_grants grants;
} gpsti_context_block;

GPSTI_PRIVATE gpst_result gpsti_context_build(gpst_context* context, const gpst_context_desc* desc) {
    GPSTI_TRY(gpsti_pin_parse(desc->pin, &context->pin));
    context->require_backend = desc->require_backend;
    context->fork_guard = gpsti_fork_guard_create();
    GPSTI_TRY(gpsti_backend_cpu()->device_open(&context->host, NULL, &context->cpu));
    GPSTI_TRY(gpsti_device_choose("gpst_context_create: desc.backend", desc->backend ? desc->backend : "auto",
                                  &context->host, context->cpu, &context->device, context->backend_reason));
    gpsti_context_resolve(context, desc);
    gpsti_context_init_devices(context);
    if (desc->max_kept_bytes != 1) /* which is: keep nothing */
        GPSTI_TRY(gpsti_device_cache_init(&context->public_device));
    gpsti_context_block* const block = (gpsti_context_block*)context;
    GPSTI_TRY(gpsti_memory_init(&block->memory, context, desc->max_kept_bytes, &desc->memory_marks));
    context->memory = &block->memory;
    GPSTI_TRY(gpsti_grants_init(context, &block->grants));
    GPSTI_TRY(gpsti_scheduler_create(&context->host, context->info.n_workers, &context->pin, &context->scheduler));
    context->scheduler->held.context = context;
    const gpsti_locked locked = gpsti_lock(context);
    context->scheduler->quiet = gpsti_grants_resolve;
    gpsti_unlock(locked);
    return GPST_OK;
}

/* In this order nothing outlives what it was made with. */
GPSTI_PRIVATE void gpsti_context_free(gpst_context* context) {
    if (context->scheduler)
        gpsti_scheduler_destroy(context->scheduler);
    if (context->grants)
        gpsti_grants_term(context->grants);
    if (context->memory)
        gpsti_memory_term(context->memory);
    gpsti_device_cache_term(&context->public_device);
    if (context->device && context->device != context->cpu)
        context->device->i->device_close(context->device);
    if (context->cpu)
        context->cpu->i->device_close(context->cpu);
    gpsti_fork_guard_destroy(context->fork_guard);
    gpsti_host host = context->host;
    const uint64_t left = gpsti_a64_load(&host.live_bytes) - sizeof(gpsti_context_block);
    if (left)
        GPSTI_LOG(&host, GPST_LOG_ERROR, GPSTI_NO_ITEM,
                  "gpst_context_destroy: %llu bytes are still held: destroy pipelines, pools, rings, readers, "
                  "prefetchers, memory, streams and graphs before their context",
                  (unsigned long long)left);
    gpsti_free(&host, context, sizeof(gpsti_context_block));
}

GPST_API gpst_result gpst_context_create_versioned(uint32_t version, size_t desc_bytes, const gpst_context_desc* desc,
                                                   gpst_context** out) {
    gpst_context_desc defaults = GPST_ZERO;
    gpsti_host host;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version("gpst_context_create", version, desc_bytes, sizeof *desc));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_context_create: out=NULL: must point to a gpst_context*");
    if (!desc)
        desc = &defaults;
    GPSTI_TRY(gpsti_context_validate(desc));
    gpsti_host_init(&host, &desc->allocator, &desc->logger);
    gpst_context* context = (gpst_context*)gpsti_alloc(&host, sizeof(gpsti_context_block));
    if (!context)
        return GPST_ERROR_MEMORY;
    context->host = host;
    const gpst_result result = gpsti_context_build(context, desc);
    if (GPST_FAILED(result)) {
        gpsti_context_free(context);
        return result;
    }
    *out = context;
    return GPST_OK;
}

/* What is there would use the context's memory when that is gone. */
GPSTI_PRIVATE gpst_result gpsti_context_check_empty(gpst_context* context) {
    const uint32_t n_objects = gpsti_a32_load(&context->n_objects);
    const uint64_t n_others =
        gpsti_a64_load(&context->public_device.n_objects) + gpsti_a64_load(&context->cpu_device.n_objects);
    if (n_objects == 0 && n_others == 0)
        return GPST_OK;
    gpsti_memory_log_leaks(context->memory);
    (void)gpsti_fail(GPST_ERROR_STATE,
                     "gpst_context_destroy: %u pipelines, pools, rings, readers, prefetchers and targets, and %llu "
                     "memories, streams and events are there: destroy them first",
                     n_objects, (unsigned long long)n_others);
    GPSTI_LOG(&context->host, GPST_LOG_ERROR, GPSTI_NO_ITEM, "%s", gpst_last_reason());
    return GPST_ERROR_STATE;
}

/* A forked child has none of the threads that destroy would wait for: the memory is left to exec or exit. */
GPST_API gpst_result gpst_context_destroy(gpst_context* context) {
    if (!context)
        return GPST_OK;
    GPSTI_TRY(gpsti_context_check(context, "gpst_context_destroy"));
    GPSTI_FAIL_IF(gpsti_call_inside_any(context), GPST_ERROR_REENTRANT,
                  "gpst_context_destroy: not from a callback of one of its pipelines");
    GPSTI_TRY(gpsti_context_check_empty(context));
    gpsti_context_free(context);
    return GPST_OK;
}

GPST_API void gpst_context_trim(gpst_context* context) {
    if (context && !gpsti_context_forked(context))
        gpsti_memory_trim(context->memory);
}

GPST_API void gpst_context_query_info(const gpst_context* context, gpst_context_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!context)
        return;
    *out = context->info;
    out->allocation_count = gpsti_a64_load_relaxed(&context->host.allocation_count);
    out->live_bytes = gpsti_a64_load_relaxed(&context->host.live_bytes);
    if (!gpsti_context_forked(context)) /* in a child no thread is left to release the lock */
        gpsti_memory_query_kept(context->memory, &out->kept_host_bytes, &out->kept_device_bytes);
}
