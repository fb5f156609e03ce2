/* core/device/device.c -- the devices that there are, and the life of one that a user opens. Owns no memory of it. */
#include "../base/platform_internal.h"

#include "context_internal.h"
#include "device_internal.h"

#include <string.h>

/* ---- which there are ------------------------------------------------------------- */

typedef struct gpsti_device_rows {
    gpst_device_entry* out;
    uint32_t max, n;
} gpsti_device_rows;

/* A row to fill, or scrap where the caller has no more. */
GPSTI_PRIVATE void gpsti_device_rows_add(gpsti_device_rows* rows, const char* name, bool compiled_in,
                                         gpst_result result, const gpsti_device_info* info) {
    gpst_device_entry* const row = rows->n < rows->max ? &rows->out[rows->n] : NULL;
    rows->n++;
    if (!row)
        return;
    memset(row, 0, sizeof *row);
    gpsti_copy_text(row->name, sizeof row->name, name);
    row->compiled_in = compiled_in;
    row->available = !GPST_FAILED(result);
    row->result = result;
    if (row->available) {
        gpsti_copy_text(row->device_name, sizeof row->device_name, info->name);
        row->memory_bytes = info->memory_bytes;
    } else {
        gpsti_copy_text(row->reason, sizeof row->reason, compiled_in ? gpst_last_reason() : "not compiled in");
    }
}

/* Of a backend whose devices cost nothing to open. */
GPSTI_PRIVATE gpst_result gpsti_device_look(const gpsti_backend_i* backend, gpsti_device_info* info) {
    gpsti_host host;
    gpsti_device* device = NULL;
    gpsti_host_init(&host, NULL, NULL);
    GPSTI_TRY(backend->device_open(&host, NULL, &device));
    backend->device_query(device, info);
    backend->device_close(device);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_device_list_backend(gpsti_device_rows* rows, const char* name,
                                             const gpsti_backend_i* backend) {
    char with_index[32], params[24];
    gpsti_device_info info;
    memset(&info, 0, sizeof info);
    if (!backend) {
        gpsti_device_rows_add(rows, name, false, GPST_ERROR_NO_BACKEND, &info);
        return;
    }
    gpst_result result = gpsti_backend_check(backend);
    if (!GPST_FAILED(result))
        result = backend->device_probe ? backend->device_probe(NULL, &info) : gpsti_device_look(backend, &info);
    gpsti_device_rows_add(rows, name, true, result, &info);
    for (uint32_t k = 1; !GPST_FAILED(result) && backend->device_probe; k++) {
        gpsti_format(params, sizeof params, "device=%u", (unsigned)k);
        gpsti_format(with_index, sizeof with_index, "%.7s:%s", name, params);
        result = backend->device_probe(params, &info);
        if (result != GPST_ERROR_NO_BACKEND && result != GPST_ERROR_ARGUMENT) /* behind the last there is none */
            gpsti_device_rows_add(rows, with_index, true, result, &info);
    }
}

GPST_API gpst_result gpst_device_list(gpst_device_entry* out, uint32_t max, uint32_t* n) {
    gpsti_device_rows rows;
    char before[GPSTI_REASON_BYTES];
    const char* name = NULL;
    if (n)
        *n = 0;
    GPSTI_FAIL_IF(!n, GPST_ERROR_ARGUMENT, "gpst_device_list: n=NULL: must point to a number");
    GPSTI_FAIL_IF(max > 0 && !out, GPST_ERROR_ARGUMENT, "gpst_device_list: out=NULL: must have room for max=%u rows",
                  (unsigned)max);
    gpsti_copy_text(before, sizeof before, gpst_last_reason());
    rows.out = out;
    rows.max = max;
    rows.n = 0;
    const gpsti_backend_i* backend = gpsti_backend_at(0, &name);
    for (size_t i = 1; name; backend = gpsti_backend_at(i++, &name))
        gpsti_device_list_backend(&rows, name, backend);
    *n = rows.n;
    return gpsti_fail(GPST_OK, "%s", before); /* looking for what is absent is no failure of the caller's */
}

/* ---- open and close ---------------------------------------------------------------- */

/* What is opened by itself, in one allocation. */
typedef struct gpsti_device_block {
    gpst_device device; /* first */
    gpsti_host host;
    char reason[GPSTI_REASON_BYTES];
} gpsti_device_block;

/* A device that computes on other threads of the host has its own; nobody waits for one kernel alone. */
GPSTI_PRIVATE void gpsti_device_describe(gpst_device* device, const gpsti_device_info* info, uint32_t n_threads) {
    device->info = *info;
    device->n_threads = device->info.asynchronous ? 1 : n_threads;
}

GPSTI_PRIVATE gpst_result gpsti_device_validate(const char* name, const gpst_allocator* allocator,
                                                const gpst_logger* logger) {
    const char* function = "gpst_device_open";
    GPSTI_FAIL_IF(!gpsti_backend_is_known(name), GPST_ERROR_ARGUMENT,
                  "%s: name=\"%.100s\": must be auto, cpu, cuda or hip, with \":key=value,...\" after those that "
                  "take parameters",
                  function, name);
    GPSTI_FAIL_IF(allocator && !allocator->alloc != !allocator->free, GPST_ERROR_ARGUMENT,
                  "%s: allocator.%s=NULL: alloc and free must both be set, or neither", function,
                  allocator && allocator->alloc ? "free" : "alloc");
    GPSTI_FAIL_IF(logger && ((int)logger->threshold < 0 || logger->threshold > GPST_LOG_DEBUG), GPST_ERROR_ARGUMENT,
                  "%s: logger.threshold=%d: must be 0..%d", function, (int)logger->threshold, (int)GPST_LOG_DEBUG);
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_device_free(gpsti_device_block* block) {
    gpsti_device_cache_term(&block->device);
    if (block->device.device)
        block->device.device->i->device_close(block->device.device);
    gpsti_fork_guard_destroy(block->device.fork_guard);
    gpsti_host host = block->host;
    gpsti_free(&host, block, sizeof *block);
}

GPST_API gpst_result gpst_device_open_versioned(uint32_t version, size_t info_bytes, const char* name,
                                                const gpst_allocator* allocator, const gpst_logger* logger,
                                                gpst_device** out) {
    const char* const asked = name ? name : "auto";
    gpsti_host host;
    gpsti_limits limits;
    gpsti_device_info info;
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_check_version("gpst_device_open", version, info_bytes, sizeof(gpst_device_info)));
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_device_open: out=NULL: must point to a gpst_device*");
    GPSTI_TRY(gpsti_device_validate(asked, allocator, logger));
    gpsti_host_init(&host, allocator, logger);
    gpsti_device_block* const block = (gpsti_device_block*)gpsti_alloc(&host, sizeof *block);
    if (!block)
        return gpsti_fail_in(GPST_ERROR_MEMORY, "gpst_device_open");
    block->host = host;
    block->device.host = &block->host;
    block->device.reason = block->reason;
    block->device.fork_guard = gpsti_fork_guard_create();
    gpst_result result = gpsti_device_choose("gpst_device_open: name", asked, &block->host, NULL,
                                             &block->device.device, block->reason);
    if (!GPST_FAILED(result))
        result = gpsti_device_cache_init(&block->device);
    if (GPST_FAILED(result)) {
        gpsti_device_free(block);
        return result;
    }
    gpsti_limits_query(&limits);
    block->device.device->i->device_query(block->device.device, &info);
    gpsti_device_describe(&block->device, &info, limits.cores_allowed);
    *out = &block->device;
    return GPST_OK;
}

GPST_API gpst_result gpst_device_close(gpst_device* device) {
    if (!device)
        return GPST_OK;
    GPSTI_TRY(gpsti_device_check(device, "gpst_device_close"));
    GPSTI_FAIL_IF(device->context, GPST_ERROR_STATE,
                  "gpst_device_close: the device is a context's: gpst_context_destroy closes it");
    const uint64_t n_objects = gpsti_a64_load(&device->n_objects);
    const uint64_t n_memories = gpsti_a64_load(&device->n_memories);
    if (n_objects > 0) {
        (void)gpsti_fail(GPST_ERROR_STATE,
                         "gpst_device_close: %llu memories of %llu bytes and %llu streams and events are there: "
                         "destroy them first",
                         (unsigned long long)n_memories, (unsigned long long)gpsti_a64_load(&device->memory_bytes),
                         (unsigned long long)(n_objects - n_memories));
        GPSTI_LOG(device->host, GPST_LOG_ERROR, GPSTI_NO_ITEM, "%s", gpst_last_reason());
        return GPST_ERROR_STATE;
    }
    gpsti_device_free((gpsti_device_block*)device);
    return GPST_OK;
}

/* The cpu's has no cache: its streams cost nothing. */
GPSTI_INTERN void gpsti_context_init_devices(gpst_context* context) {
    gpsti_device_info cpu_info;
    context->cpu->i->device_query(context->cpu, &cpu_info);
    for (int d = 0; d < 2; d++) {
        gpst_device* const device = d == 0 ? &context->public_device : &context->cpu_device;
        device->device = d == 0 ? context->device : context->cpu;
        device->host = &context->host;
        device->context = context;
        device->fork_guard = context->fork_guard;
        device->reason = context->backend_reason;
        gpsti_device_describe(device, d == 0 ? &context->device_info : &cpu_info, context->info.cores_allowed);
    }
}

GPSTI_INTERN bool gpsti_context_forked(const gpst_context* context) {
    return context->fork_guard ? gpsti_a32_load_relaxed(context->fork_guard) == 0
                               : gpsti_pid() != context->host.pid;
}

GPSTI_INTERN gpst_result gpsti_context_check(const gpst_context* context, const char* function) {
    GPSTI_FAIL_IF(!context, GPST_ERROR_ARGUMENT, "%s: context=NULL: must be a context", function);
    GPSTI_FAIL_IF(gpsti_context_forked(context), GPST_ERROR_FORKED,
                  "%s: pid=%llu: the context was made in process %llu; after fork the child may only exec",
                  function, (unsigned long long)gpsti_pid(), (unsigned long long)context->host.pid);
    return GPST_OK;
}

GPST_API gpst_device* gpst_context_device(gpst_context* context) { return context ? &context->public_device : NULL; }

/* ---- queries ------------------------------------------------------------------------- */

GPST_API void gpst_device_query_info(const gpst_device* device, gpst_device_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!device)
        return;
    const gpsti_backend_i* const i = device->device->i;
    uint64_t free_bytes = 0, total_bytes = 0;
    if (!gpsti_device_forked(device))
        i->memory_info(device->device, &free_bytes, &total_bytes);
    out->backend = i->name;
    out->name = device->info.name;
    out->reason = device->reason;
    out->asynchronous = device->info.asynchronous;
    out->zero_copy = device->info.zero_copy;
    out->copies_peers = i->copy_peer != NULL;
    out->ordinal = device->info.ordinal;
    out->n_copy_engines = device->info.n_copy_engines;
    out->memory_bytes = device->info.memory_bytes;
    out->memory_free_bytes = total_bytes ? free_bytes : device->info.memory_free_bytes;
    out->n_objects = gpsti_a64_load(&device->n_objects);
    out->allocation_count = gpsti_a64_load_relaxed(&device->host->allocation_count);
    out->live_bytes = gpsti_a64_load_relaxed(&device->host->live_bytes);
}

/* ---- what its objects share ------------------------------------------------------------- */

GPSTI_INTERN bool gpsti_device_forked(const gpst_device* device) {
    return device->fork_guard ? gpsti_a32_load_relaxed(device->fork_guard) == 0 : gpsti_pid() != device->host->pid;
}

GPSTI_INTERN gpst_result gpsti_device_check(const gpst_device* device, const char* function) {
    GPSTI_FAIL_IF(!device, GPST_ERROR_ARGUMENT, "%s: device=NULL: must be a device", function);
    GPSTI_FAIL_IF(gpsti_device_forked(device), GPST_ERROR_FORKED,
                  "%s: pid=%llu: the device was opened in process %llu; after fork the child may only exec", function,
                  (unsigned long long)gpsti_pid(), (unsigned long long)device->host->pid);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_device_check_memory(const gpst_device* device, const void* ptr, const char* function) {
    const gpsti_backend_i* const i = device->device->i;
    return i->memory_check ? gpsti_device_result(i->memory_check(device->device, ptr), function) : GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_device_result(gpst_result result, const char* function) {
    return GPST_FAILED(result) ? gpsti_fail_in(result, function) : result;
}

GPSTI_INTERN void* gpsti_context_add_object(gpst_context* context, size_t bytes) {
    void* const object = gpsti_alloc(&context->host, bytes);
    if (object)
        (void)gpsti_a32_add(&context->n_objects, 1);
    return object;
}

GPSTI_INTERN void gpsti_context_drop_object(gpst_context* context, void* object, size_t bytes) {
    gpsti_free(&context->host, object, bytes);
    (void)gpsti_a32_add(&context->n_objects, UINT32_MAX);
}

GPSTI_INTERN void* gpsti_device_add_object(gpst_device* device, size_t bytes) {
    void* const object = gpsti_alloc(device->host, bytes);
    if (object)
        (void)gpsti_a64_add(&device->n_objects, 1);
    return object;
}

GPSTI_INTERN void gpsti_device_drop_object(gpst_device* device, void* object, size_t bytes) {
    gpsti_free(device->host, object, bytes);
    (void)gpsti_a64_add(&device->n_objects, UINT64_MAX);
}
