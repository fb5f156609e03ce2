/* core/device/device_memory.c -- memory of the host, page-locked and of the device, and the user's own that a device
   has locked. Copies nothing. */
#include "../base/platform_internal.h"

#include "context_internal.h"
#include "device_internal.h"

#include <string.h>

struct gpst_memory {
    gpst_device* device;
    gpst_memory_kind kind;
    void* data;
    size_t bytes;           /* as asked for */
    size_t mapped_bytes;    /* HOST */
    gpsti_host_memory host; /* PINNED */
    bool pinned;
    char reason[128];
};

/* ---- budgets of a context ---------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_memory_charge(gpst_device* device, gpst_memory_kind kind, size_t bytes) {
    const bool of_device = kind == GPST_MEMORY_DEVICE;
    gpsti_a64* const account = of_device ? device->device_bytes : device->host_bytes;
    return account ? gpsti_budget_charge(account, of_device ? device->max_device_bytes : device->max_host_bytes, bytes,
                                         "gpst_memory_create")
                   : GPST_OK;
}

GPSTI_PRIVATE void gpsti_memory_refund(gpst_device* device, gpst_memory_kind kind, size_t bytes) {
    gpsti_a64* const account = kind == GPST_MEMORY_DEVICE ? device->device_bytes : device->host_bytes;
    if (account)
        gpsti_budget_refund(account, bytes);
}

/* ---- kinds -------------------------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_memory_take_host(gpst_memory* memory) {
    gpsti_pages_kind pages = GPSTI_PAGES_NONE;
    const bool large = memory->bytes >= GPSTI_PAGES_REST_BYTES;
    return gpsti_pages_alloc(memory->bytes, large ? GPSTI_WANT_FILLED : GPSTI_WANT_SMALL, &memory->data,
                             &memory->mapped_bytes, &pages, NULL);
}

GPSTI_PRIVATE gpst_result gpsti_memory_take_pinned(gpst_memory* memory) {
    gpsti_device* const device = memory->device->device;
    GPSTI_TRY(device->i->host_alloc(device, memory->bytes, memory->bytes >= GPSTI_PAGES_REST_BYTES, &memory->host));
    memory->data = memory->host.ptr;
    memory->pinned = memory->host.pinned;
    gpsti_copy_text(memory->reason, sizeof memory->reason, memory->host.why_not);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_memory_take(gpst_memory* memory) {
    gpsti_device* const device = memory->device->device;
    return memory->kind == GPST_MEMORY_HOST     ? gpsti_memory_take_host(memory)
           : memory->kind == GPST_MEMORY_PINNED ? gpsti_memory_take_pinned(memory)
                                                : device->i->memory_alloc(device, memory->bytes, &memory->data);
}

GPSTI_PRIVATE void gpsti_memory_give_back(gpst_memory* memory) {
    gpsti_device* const device = memory->device->device;
    if (memory->kind == GPST_MEMORY_HOST)
        gpsti_pages_free(memory->data, memory->mapped_bytes);
    else if (memory->kind == GPST_MEMORY_PINNED)
        device->i->host_free(device, &memory->host);
    else if (memory->kind == GPST_MEMORY_DEVICE)
        device->i->memory_free(device, memory->data, memory->bytes);
    else if (device->i->host_unregister)
        device->i->host_unregister(device, memory->data, memory->bytes);
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
    GPSTI_TRY(gpsti_memory_charge(device, kind, bytes));
    gpst_memory* const memory = (gpst_memory*)gpsti_device_add_object(device, sizeof *memory, function);
    if (!memory) {
        gpsti_memory_refund(device, kind, bytes);
        return GPST_ERROR_MEMORY;
    }
    memory->device = device;
    memory->kind = kind;
    memory->bytes = bytes;
    const gpst_result result = gpsti_memory_take(memory);
    if (GPST_FAILED(result)) {
        gpsti_device_drop_object(device, memory, sizeof *memory);
        gpsti_memory_refund(device, kind, bytes);
        return gpsti_fail_in(result, function);
    }
    *out = memory;
    return GPST_OK;
}

GPST_API gpst_result gpst_memory_register(gpst_device* device, void* data, size_t bytes, gpst_memory** out) {
    const char* function = "gpst_memory_register";
    GPSTI_OUT_NONE(out);
    GPSTI_TRY(gpsti_memory_check(device, bytes, out, function));
    GPSTI_FAIL_IF(!data, GPST_ERROR_ARGUMENT, "%s: data=NULL: must be host memory of bytes=%zu", function, bytes);
    const gpsti_backend_i* const i = device->device->i;
    gpst_memory* const memory = (gpst_memory*)gpsti_device_add_object(device, sizeof *memory, function);
    if (!memory)
        return GPST_ERROR_MEMORY;
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
    *out = memory;
    return GPST_OK;
}

GPST_API void gpst_memory_destroy(gpst_memory* memory) {
    if (!memory || gpsti_device_forked(memory->device))
        return;
    gpst_device* const device = memory->device;
    gpsti_memory_give_back(memory);
    if (memory->kind != GPST_MEMORY_REGISTERED)
        gpsti_memory_refund(device, memory->kind, memory->bytes);
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
