/* backends/gpu_device.cu.h -- devices of CUDA and HIP: which there are, their
   memory, pinned host memory. */
#include "gpu_clock.cu.h"

#if defined(GPSTI_GPU_UNIT)

#include <string.h>

/* ---- which there are --------------------------------------------------------- */

#define GPSTI_GPU_FAIL(fault) (offsetof(gpsti_gpu_params, fail) + sizeof(double) * (size_t)(fault))
static const gpsti_param gpsti_gpu_keys[] = {
    {"device", offsetof(gpsti_gpu_params, device), 0, 1023, true},
    {"oom_mb", offsetof(gpsti_gpu_params, oom_mb), 0, 1e9, false},
    {"fail_alloc", GPSTI_GPU_FAIL(GPSTI_FAULT_ALLOC), 0, 1e9, true},
    {"fail_host_alloc", GPSTI_GPU_FAIL(GPSTI_FAULT_HOST_ALLOC), 0, 1e9, true},
    {"fail_copy", GPSTI_GPU_FAIL(GPSTI_FAULT_COPY), 0, 1e9, true},
    {"fail_launch", GPSTI_GPU_FAIL(GPSTI_FAULT_LAUNCH), 0, 1e9, true},
    {"fail_event", GPSTI_GPU_FAIL(GPSTI_FAULT_EVENT), 0, 1e9, true},
    {"fail_stream", GPSTI_GPU_FAIL(GPSTI_FAULT_STREAM), 0, 1e9, true},
    {"fail_notify", GPSTI_GPU_FAIL(GPSTI_FAULT_NOTIFY), 0, 1e9, true},
    {"fail_graph", GPSTI_GPU_FAIL(GPSTI_FAULT_GRAPH), 0, 1e9, true},
    {"lose_at", offsetof(gpsti_gpu_params, lose_at), 0, 1e9, true}};

/* The runtime answers "insufficient driver" for an old driver and for none: its version tells them apart. */
GPSTI_PRIVATE gpst_result gpsti_gpu_fail_count(gpsti_rt_error error) {
    char versions[64];
    int driver = 0;
    int runtime = 0;
    (void)GPSTI_RT(DriverGetVersion)(&driver);
    (void)GPSTI_RT(RuntimeGetVersion)(&runtime);
    (void)GPSTI_RT(GetLastError)();
    gpsti_format(versions, sizeof(versions), "the driver is for %d, this program for %d", driver, runtime);
    return gpsti_fail(GPST_ERROR_NO_BACKEND, "backend " GPSTI_RT_NAME ": %s: %s (%s, %d)",
                      driver ? versions : "no driver is installed", GPSTI_RT(GetErrorString)(error),
                      GPSTI_RT(GetErrorName)(error), (int)error);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_find(const char* text, gpsti_gpu_params* params) {
    int n_devices = 0;
    memset(params, 0, sizeof(*params));
    params->device = -1;
    GPSTI_TRY(gpsti_params_parse(GPSTI_RT_NAME, gpsti_gpu_keys, sizeof(gpsti_gpu_keys) / sizeof(gpsti_gpu_keys[0]),
                                 text, params));
    const gpsti_rt_error error = GPSTI_RT(GetDeviceCount)(&n_devices);
    if (error != GPSTI_RT(Success))
        return gpsti_gpu_fail_count(error);
    GPSTI_FAIL_IF((int)params->device >= n_devices, GPST_ERROR_NO_BACKEND, "%s: device=%d: there are %d",
                  GPSTI_GPU_CALL("devices"), (int)params->device, n_devices);
    return GPST_OK;
}

/* A runtime that does not know the question answers no. */
GPSTI_PRIVATE bool gpsti_gpu_reaches_host(int ordinal) {
    int reaches = 0;
    if (GPSTI_RT(DeviceGetAttribute)(&reaches, GPSTI_RT_REACHES_HOST, ordinal) == GPSTI_RT(Success))
        return reaches != 0;
    (void)GPSTI_RT(GetLastError)();
    return false;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_describe(int ordinal, gpsti_device_info* out) {
    gpsti_rt_properties properties;
    memset(out, 0, sizeof(*out));
    GPSTI_RT_TRY(GPSTI_RT(GetDeviceProperties)(&properties, ordinal), GPSTI_GPU_CALL("device_probe"));
    gpsti_format(out->name, sizeof(out->name), "%.90s (%d.%d)", properties.name, properties.major,
                 properties.minor);
    out->asynchronous = true;
    out->reaches_host = gpsti_gpu_reaches_host(ordinal);
    out->locks_host = true;
    out->n_copy_engines = (uint32_t)GPSTI_RT_COPY_ENGINES(properties);
    out->ordinal = ordinal;
    out->memory_bytes = properties.totalGlobalMem;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_device_probe(const char* text, gpsti_device_info* out) {
    gpsti_gpu_params params;
    GPSTI_TRY(gpsti_gpu_find(text, &params));
    return gpsti_gpu_describe(params.device < 0 ? 0 : (int)params.device, out);
}

GPSTI_PRIVATE void gpsti_gpu_memory_info(const gpsti_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
    size_t free_now = 0;
    size_t total = 0;
    const gpsti_gpu_current current(device);
    const bool said = !current.gone() && GPSTI_RT(MemGetInfo)(&free_now, &total) == GPSTI_RT(Success);
    if (!said)
        (void)GPSTI_RT(GetLastError)();
    *free_bytes = said ? free_now : 0;
    *total_bytes = said ? total : 0;
}

GPSTI_PRIVATE void gpsti_gpu_device_query(const gpsti_device* device, gpsti_device_info* out) {
    uint64_t total_bytes = 0;
    const gpsti_gpu_context* const context = &((const gpsti_gpu_device*)device)->context;
    if (GPST_FAILED(gpsti_gpu_describe(context->ordinal, out)))
        return;
    gpsti_copy_text(out->context, sizeof(out->context), gpsti_gpu_context_text(context));
    gpsti_gpu_memory_info(device, &out->memory_free_bytes, &total_bytes);
}

/* ---- open and close ------------------------------------------------------------ */

GPSTI_PRIVATE void gpsti_gpu_device_close(gpsti_device* base) {
    gpsti_gpu_device* device = (gpsti_gpu_device*)base;
    if (!device)
        return;
    if (device->context_is_open) {
        gpsti_gpu_clock_close(device);
        gpsti_gpu_context_close(&device->context);
    }
    gpsti_free(base->host, device, sizeof(*device));
}

GPSTI_PRIVATE gpst_result gpsti_gpu_device_open(gpsti_host* host, const char* text, gpsti_device** out) {
    gpsti_gpu_params params;
    GPSTI_TRY(gpsti_gpu_find(text, &params));
    gpsti_gpu_device* device = (gpsti_gpu_device*)gpsti_alloc(host, sizeof(gpsti_gpu_device));
    if (!device)
        return GPST_ERROR_MEMORY;
    device->base.i = gpsti_backend_gpu();
    device->base.host = host;
    device->params = params;
    gpst_result result = gpsti_gpu_context_open(&device->context, (int)params.device, GPSTI_GPU_CALL("device_open"));
    device->context_is_open = !GPST_FAILED(result);
    if (!GPST_FAILED(result))
        result = gpsti_gpu_clock_open(device);
    if (GPST_FAILED(result)) {
        gpsti_gpu_device_close(&device->base);
        return result;
    }
    *out = &device->base;
    return GPST_OK;
}

GPSTI_PRIVATE const char* gpsti_gpu_last_error(const gpsti_device* device) {
    const uint32_t error = gpsti_a32_load(&((const gpsti_gpu_device*)device)->last_error);
    return error == 0                    ? "none"
           : error == GPSTI_GPU_INJECTED ? "injected fault"
                                         : GPSTI_RT(GetErrorName)((gpsti_rt_error)error);
}

/* ---- device memory --------------------------------------------------------------- */

/* oom_mb: an end of memory that tests can reach. */
GPSTI_PRIVATE gpst_result gpsti_gpu_memory_take(gpsti_gpu_device* device, size_t bytes) {
    const uint64_t used = gpsti_a64_add(&device->used_bytes, bytes) + bytes;
    if (device->params.oom_mb <= 0 || (double)used <= device->params.oom_mb * 1048576)
        return GPST_OK;
    (void)gpsti_a64_add(&device->used_bytes, (uint64_t)0 - bytes);
    gpsti_a32_store(&device->last_error, GPSTI_GPU_INJECTED);
    return gpsti_fail(GPST_ERROR_DEVICE_MEMORY, "%s: bytes=%zu: over oom_mb", GPSTI_GPU_CALL("memory_alloc"), bytes);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_memory_alloc(gpsti_device* base, size_t bytes, void** out) {
    gpsti_gpu_device* device = (gpsti_gpu_device*)base;
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "%s: bytes=0: must be above 0", GPSTI_GPU_CALL("memory_alloc"));
    GPSTI_TRY(gpsti_gpu_enter(base, GPSTI_FAULT_ALLOC, GPSTI_GPU_CALL("memory_alloc")));
    GPSTI_GPU_IN_CONTEXT(base, "memory_alloc");
    GPSTI_TRY(gpsti_gpu_memory_take(device, bytes));
    const gpsti_rt_error error = GPSTI_RT(Malloc)(out, bytes);
    if (error == GPSTI_RT(Success))
        return GPST_OK;
    (void)gpsti_a64_add(&device->used_bytes, (uint64_t)0 - bytes);
    *out = NULL;
    return gpsti_gpu_result(base, error, GPSTI_GPU_CALL("memory_alloc"));
}

GPSTI_PRIVATE void gpsti_gpu_memory_free(gpsti_device* base, void* ptr, size_t bytes) {
    if (!ptr)
        return;
    const gpsti_gpu_current current(base);
    if (!current.gone())
        gpsti_gpu_ignore(base, GPSTI_RT(Free)(ptr));
    (void)gpsti_a64_add(&((gpsti_gpu_device*)base)->used_bytes, (uint64_t)0 - bytes);
}

GPSTI_PRIVATE gpst_result gpsti_gpu_memory_check(gpsti_device* base, const void* ptr) {
    const gpsti_gpu_context* const context = &((const gpsti_gpu_device*)base)->context;
    GPSTI_GPU_IN_CONTEXT(base, "memory_check");
    GPSTI_FAIL_IF(gpsti_gpu_context_is_foreign(context, ptr), GPST_ERROR_ARGUMENT,
                  "%s: ptr=%p: is memory of another context than the device's, which works %s",
                  GPSTI_GPU_CALL("memory_check"), ptr, gpsti_gpu_context_text(context));
    return GPST_OK;
}

/* ---- host memory ------------------------------------------------------------------- */

/* One call for 512 GiB or more fails on recent drivers. */
#define GPSTI_GPU_HUGE_BYTES ((size_t)2 << 20)
#define GPSTI_GPU_REGISTER_BYTES ((size_t)64 << 30)

GPSTI_PRIVATE void gpsti_gpu_host_unregister(gpsti_device* device, void* ptr, size_t bytes) {
    const gpsti_gpu_current current(device);
    for (size_t at = 0; at < bytes && !current.gone(); at += GPSTI_GPU_REGISTER_BYTES)
        gpsti_gpu_ignore(device, GPSTI_RT(HostUnregister)((char*)ptr + at));
}

GPSTI_PRIVATE gpst_result gpsti_gpu_host_register(gpsti_device* device, void* ptr, size_t bytes) {
    GPSTI_TRY(gpsti_gpu_enter(device, GPSTI_FAULT_HOST_ALLOC, GPSTI_GPU_CALL("host_register")));
    GPSTI_GPU_IN_CONTEXT(device, "host_register");
    for (size_t at = 0; at < bytes; at += GPSTI_GPU_REGISTER_BYTES) {
        const size_t rest = bytes - at;
        const size_t chunk = rest < GPSTI_GPU_REGISTER_BYTES ? rest : GPSTI_GPU_REGISTER_BYTES;
        const gpsti_rt_error error =
            GPSTI_RT(HostRegister)((char*)ptr + at, chunk, GPSTI_RT(HostRegisterPortable));
        if (error != GPSTI_RT(Success)) {
            gpsti_gpu_host_unregister(device, ptr, at);
            return gpsti_gpu_result(device, error, GPSTI_GPU_CALL("host_register"));
        }
    }
    return GPST_OK;
}

/* Pages of our own, so that they can be huge, page-locked here, which takes as long as there are bytes: no more of them
   than were asked for, and none of 1 MiB; where the vendor refuses, they stay pageable and
   say why. */
GPSTI_PRIVATE gpst_result gpsti_gpu_host_alloc(gpsti_device* device, size_t bytes, bool want_huge,
                                               gpsti_host_memory* out) {
    memset(out, 0, sizeof(*out));
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "%s: bytes=0: must be above 0", GPSTI_GPU_CALL("host_alloc"));
    GPSTI_TRY(gpsti_gpu_enter(device, GPSTI_FAULT_HOST_ALLOC, GPSTI_GPU_CALL("host_alloc")));
    GPSTI_GPU_IN_CONTEXT(device, "host_alloc");
    const bool large = want_huge && bytes >= GPSTI_GPU_HUGE_BYTES;
    GPSTI_TRY(gpsti_pages_alloc(bytes, large ? GPSTI_WANT_HUGE : GPSTI_WANT_SMALL, &out->ptr, &out->mapped_bytes,
                                &out->pages, out->why_not));
    out->bytes = out->mapped_bytes;
    const gpsti_rt_error error =
        out->bytes > GPSTI_GPU_REGISTER_BYTES
            ? GPSTI_RT_ERROR_MEMORY /* a copy across two registrations would be a pageable one */
            : GPSTI_RT(HostRegister)(out->ptr, out->bytes, GPSTI_RT(HostRegisterPortable));
    out->pinned = error == GPSTI_RT(Success);
    if (!out->pinned) {
        gpsti_gpu_ignore(device, error);
        gpsti_format(out->why_not, sizeof(out->why_not), "not pinned: %.90s", GPSTI_RT(GetErrorString)(error));
    }
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_gpu_host_free(gpsti_device* device, gpsti_host_memory* memory) {
    if (memory && memory->ptr) {
        if (memory->pinned)
            gpsti_gpu_host_unregister(device, memory->ptr, memory->bytes);
        gpsti_pages_free(memory->ptr, memory->mapped_bytes);
    }
    if (memory)
        memset(memory, 0, sizeof(*memory));
}

/* ---- between processes --------------------------------------------------------------- */

GPSTI_STATIC_ASSERT(sizeof(GPSTI_RT(IpcMemHandle_t)) == 64, "a handle is 64 bytes");

GPSTI_PRIVATE gpst_result gpsti_gpu_ipc_export(gpsti_device* device, void* ptr, void* handle_64_bytes) {
    GPSTI_RT(IpcMemHandle_t) handle;
    GPSTI_TRY(gpsti_gpu_enter(device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("ipc_export")));
    GPSTI_GPU_IN_CONTEXT(device, "ipc_export");
    GPSTI_GPU_TRY(device, GPSTI_RT(IpcGetMemHandle)(&handle, ptr), "ipc_export");
    memcpy(handle_64_bytes, &handle, sizeof(handle));
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_gpu_ipc_import(gpsti_device* device, const void* handle_64_bytes, void** out) {
    GPSTI_RT(IpcMemHandle_t) handle;
    GPSTI_TRY(gpsti_gpu_enter(device, GPSTI_FAULT_NONE, GPSTI_GPU_CALL("ipc_import")));
    GPSTI_GPU_IN_CONTEXT(device, "ipc_import");
    memcpy(&handle, handle_64_bytes, sizeof(handle));
    GPSTI_GPU_TRY(device, GPSTI_RT(IpcOpenMemHandle)(out, handle, GPSTI_RT(IpcMemLazyEnablePeerAccess)),
                  "ipc_import");
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_gpu_ipc_close(gpsti_device* device, void* ptr) {
    const gpsti_gpu_current current(device);
    if (ptr && !current.gone())
        gpsti_gpu_ignore(device, GPSTI_RT(IpcCloseMemHandle)(ptr));
}

#endif
