/* core/memory/device_memory.c -- memory as a user asks a device for it: of the host, page-locked and of the device, and
   the user's own that a device has locked. Copies nothing. */
#include "../base/platform_internal.h"

#include "memory_internal.h"

#include <string.h>

struct gpst_memory {
    gpst_device* device;
    gpst_memory_kind kind;
    void* data;
    size_t bytes;          /* as asked for */
    gpst_buffer buffer;    /* of a context's memory; */
    gpsti_host_memory own; /* of a device that was opened by itself, which keeps none */
    bool pinned;
    char reason[128];
};

GPSTI_STATIC_ASSERT(GPST_MEMORY_HOST - 1 == GPSTI_MEMORY_HOST && GPST_MEMORY_PINNED - 1 == GPSTI_MEMORY_PINNED &&
                        GPST_MEMORY_DEVICE - 1 == GPSTI_MEMORY_DEVICE,
                    "the kinds are counted alike");

/* Memory that was used before is zeroed where new memory would be. */
GPSTI_PRIVATE gpst_result gpsti_memory_take_kept(gpst_memory* memory) {
    gpst_context* const context = memory->device->context;
    gpsti_memory_request request;
    gpsti_a64 n_growths;
    gpsti_a64_store(&n_growths, 0);
    memset(&request, 0, sizeof request);
    request.kind = (gpsti_memory_kind)(memory->kind - 1);
    request.asked_bytes = memory->bytes;
    request.tag = gpsti_memory_tag(context->memory, "memory");
    request.n_growths = &n_growths;
    request.why_not = memory->reason;
    const gpst_result result = gpsti_memory_acquire(context, &request, &memory->buffer);
    if (GPST_FAILED(result)) {
        gpsti_memory_dump_refusal(context->memory, request.kind, NULL, result);
        return result;
    }
    memory->data = memory->buffer.data;
    memory->pinned = memory->buffer.pinned;
    if (memory->kind != GPST_MEMORY_DEVICE && gpsti_a64_load(&n_growths) == 0)
        memset(memory->data, 0, memory->bytes);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_memory_take_own(gpst_memory* memory) {
    GPSTI_TRY(gpsti_memory_make(memory->device->device, (gpsti_memory_kind)(memory->kind - 1), memory->bytes,
                                memory->bytes >= GPSTI_PAGES_REST_BYTES, &memory->own));
    memory->data = memory->own.ptr;
    memory->pinned = memory->own.pinned;
    gpsti_copy_text(memory->reason, sizeof memory->reason, memory->own.why_not);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_memory_take(gpst_memory* memory) {
    GPSTI_TRY(memory->device->context ? gpsti_memory_take_kept(memory) : gpsti_memory_take_own(memory));
    if (memory->kind != GPST_MEMORY_PINNED)
        memory->reason[0] = '\0';
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_memory_give_back(gpst_memory* memory) {
    gpsti_device* const device = memory->device->device;
    if (memory->kind == GPST_MEMORY_REGISTERED && device->i->host_unregister)
        device->i->host_unregister(device, memory->data, memory->bytes);
    else if (memory->buffer.data)
        gpsti_memory_release(memory->device->context, &memory->buffer);
    else if (memory->own.ptr)
        gpsti_memory_unmake(device, (gpsti_memory_kind)(memory->kind - 1), &memory->own);
}

GPSTI_PRIVATE void gpsti_memory_count_object(gpst_device* device, size_t bytes, bool add) {
    (void)gpsti_a64_add(&device->n_memories, add ? 1 : UINT64_MAX);
    (void)gpsti_a64_add(&device->memory_bytes, add ? bytes : (uint64_t)0 - bytes);
}

/* ---- create, register, destroy -------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_memory_check(gpst_device* device, size_t bytes, gpst_memory** out,
                                             const char* function) {
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "%s: out=NULL: must point to a gpst_memory*", function);
    GPSTI_TRY(gpsti_device_check(device, function));
    GPSTI_FAIL_IF(bytes == 0 || bytes > SIZE_MAX / 2, GPST_ERROR_ARGUMENT, "%s: bytes=%zu: must be 1 .. SIZE_MAX/2",
                  function, bytes);
    return GPST_OK;
}

GPST_API gpst_result gpst_memory_create(gpst_device* device, gpst_memory_kind kind, size_t bytes, gpst_memory** out) {
    const char* function = "gpst_memory_create";
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_memory_check(device, bytes, out, function));
    GPSTI_FAIL_IF(kind < GPST_MEMORY_HOST || kind > GPST_MEMORY_DEVICE, GPST_ERROR_ARGUMENT,
                  "%s: kind=%d: must be HOST, PINNED or DEVICE", function, (int)kind);
    gpst_memory* const memory = (gpst_memory*)gpsti_device_add_object(device, sizeof *memory);
    if (!memory)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    memory->device = device;
    memory->kind = kind;
    memory->bytes = bytes;
    const gpst_result result = gpsti_memory_take(memory);
    if (GPST_FAILED(result)) {
        gpsti_device_drop_object(device, memory, sizeof *memory);
        return gpsti_fail_in(result, function);
    }
    gpsti_memory_count_object(device, bytes, true);
    *out = memory;
    return GPST_OK;
}

GPST_API gpst_result gpst_memory_register(gpst_device* device, void* data, size_t bytes, gpst_memory** out) {
    const char* function = "gpst_memory_register";
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_memory_check(device, bytes, out, function));
    GPSTI_FAIL_IF(!data, GPST_ERROR_ARGUMENT, "%s: data=NULL: must be host memory of bytes=%zu", function, bytes);
    const gpsti_backend_i* const i = device->device->i;
    gpst_memory* const memory = (gpst_memory*)gpsti_device_add_object(device, sizeof *memory);
    if (!memory)
        return gpsti_fail_in(GPST_ERROR_MEMORY, function);
    memory->device = device;
    memory->kind = GPST_MEMORY_REGISTERED;
    memory->data = data;
    memory->bytes = bytes;
    const gpst_result result = i->host_register ? i->host_register(device->device, data, bytes) : GPST_OK;
    if (GPST_FAILED(result)) {
        gpsti_device_drop_object(device, memory, sizeof *memory);
        return gpsti_fail_in(result, function);
    }
    memory->pinned = i->host_register && device->info.locks_host;
    if (!memory->pinned)
        gpsti_format(memory->reason, sizeof memory->reason, "%s backend: it locks no memory", i->name);
    gpsti_memory_count_object(device, bytes, true);
    *out = memory;
    return GPST_OK;
}

GPST_API void gpst_memory_destroy(gpst_memory* memory) {
    if (!memory || gpsti_device_forked(memory->device))
        return;
    gpst_device* const device = memory->device;
    gpsti_memory_give_back(memory);
    gpsti_memory_count_object(device, memory->bytes, false);
    gpsti_device_drop_object(device, memory, sizeof *memory);
}

GPST_API void* gpst_memory_data(const gpst_memory* memory) { return memory ? memory->data : NULL; }

GPST_API void gpst_memory_query_info(const gpst_memory* memory, gpst_memory_info* out) {
    if (!out)
        return;
    memset(out, 0, sizeof *out);
    if (!memory)
        return;
    out->kind = memory->kind;
    out->data = memory->data;
    out->bytes = memory->bytes;
    out->pinned = memory->pinned;
    gpsti_copy_text(out->reason, sizeof out->reason, memory->reason);
}
