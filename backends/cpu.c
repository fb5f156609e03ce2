/* backends/cpu.c -- the host as a device: every operation runs when it is
   submitted, on the thread that submits it. Owns no thread and schedules nothing. */
#include "../core/base/platform_internal.h"

#include "backend.h"
#include "operation_internal.h"

#include <string.h>

#if (defined(__x86_64__) || defined(__i386__)) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#define GPSTI_CPU_HAS_CPUID 1
#endif

typedef struct gpsti_cpu_device {
    gpsti_device base;
    char name[128];
    size_t page_bytes;
} gpsti_cpu_device;

typedef struct gpsti_cpu_stream {
    gpsti_stream base;
    gpsti_recording* recording; /* between graph_begin and graph_end */
} gpsti_cpu_stream;

typedef struct gpsti_cpu_event {
    gpsti_event base;
    gpsti_a64 time_ns; /* 0 = never recorded */
} gpsti_cpu_event;

/* ---- operations, shared with sim --------------------------------------------- */

GPSTI_INTERN gpst_result gpsti_operation_copy(gpsti_operation* operation, const char* function,
                                              gpsti_copy_kind kind, void* dst, const void* src,
                                              size_t bytes) {
    GPSTI_FAIL_IF(kind < GPSTI_COPY_H2D || kind > GPSTI_COPY_ANY, GPST_ERROR_ARGUMENT,
                  "%s: kind=%d: must be H2D, D2H, D2D or ANY", function, (int)kind);
    GPSTI_FAIL_IF(bytes && (!dst || !src), GPST_ERROR_ARGUMENT, "%s: dst or src is NULL for %zu bytes",
                  function, bytes);
    operation->kind = GPSTI_OPERATION_COPY;
    operation->copy_kind = kind;
    operation->dst = dst;
    operation->src = src;
    operation->bytes = bytes;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_operation_set(gpsti_operation* operation, const char* function, void* dst,
                                             int value, size_t bytes) {
    GPSTI_FAIL_IF(bytes && !dst, GPST_ERROR_ARGUMENT, "%s: dst is NULL for %zu bytes", function, bytes);
    operation->kind = GPSTI_OPERATION_SET;
    operation->dst = dst;
    operation->value = value;
    operation->bytes = bytes;
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_operation_launch(gpsti_operation* operation, const char* function,
                                                const gpsti_kernel* kernel, const void* args,
                                                size_t args_bytes, const gpsti_exec* exec) {
    GPSTI_FAIL_IF(!kernel || !kernel->host, GPST_ERROR_ARGUMENT, "%s: kernel: must have a host form",
                  function);
    GPSTI_FAIL_IF(args_bytes > GPSTI_ARGS_BYTES, GPST_ERROR_ARGUMENT,
                  "%s: args_bytes=%zu: must be at most %d", function, args_bytes, GPSTI_ARGS_BYTES);
    GPSTI_FAIL_IF(args_bytes && !args, GPST_ERROR_ARGUMENT, "%s: args is NULL for %zu bytes", function,
                  args_bytes);
    operation->kind = GPSTI_OPERATION_LAUNCH;
    operation->kernel = kernel;
    operation->exec.n_threads = exec && exec->n_threads ? exec->n_threads : 1;
    operation->exec.bytes = exec ? exec->bytes : 0;
    if (args_bytes)
        memcpy(operation->args, args, args_bytes);
    return GPST_OK;
}

GPSTI_INTERN gpst_result gpsti_operation_run(const gpsti_operation* operation) {
    switch (operation->kind) {
    case GPSTI_OPERATION_COPY:
        /* memmove: on this device an upload may well be from a buffer onto itself */
        if (operation->bytes)
            memmove(operation->dst, operation->src, operation->bytes);
        return GPST_OK;
    case GPSTI_OPERATION_SET:
        if (operation->bytes)
            memset(operation->dst, operation->value, operation->bytes);
        return GPST_OK;
    case GPSTI_OPERATION_LAUNCH:
        return operation->kernel->host(operation->args, &operation->exec);
    }
    return gpsti_fail(GPST_ERROR_INTERNAL, "gpsti_operation_run: kind=%d: not an operation",
                      (int)operation->kind);
}

GPSTI_INTERN gpst_result gpsti_recording_create(gpsti_device* device, gpsti_recording** out) {
    gpsti_recording* recording = (gpsti_recording*)gpsti_alloc(device->host, sizeof(gpsti_recording));
    if (!recording)
        return GPST_ERROR_MEMORY;
    recording->base.device = device;
    *out = recording;
    return GPST_OK;
}

GPSTI_INTERN void gpsti_recording_destroy(gpsti_recording* recording) {
    if (!recording)
        return;
    gpsti_host* host = recording->base.device->host;
    gpsti_operation* operation = recording->first;
    while (operation) {
        gpsti_operation* next = operation->next;
        gpsti_free(host, operation, sizeof(*operation));
        operation = next;
    }
    gpsti_free(host, recording, sizeof(*recording));
}

GPSTI_INTERN gpst_result gpsti_recording_append(gpsti_recording* recording,
                                                const gpsti_operation* operation) {
    gpsti_operation* copy =
        (gpsti_operation*)gpsti_alloc(recording->base.device->host, sizeof(gpsti_operation));
    if (!copy)
        return GPST_ERROR_MEMORY;
    *copy = *operation;
    copy->next = NULL;
    if (recording->last)
        recording->last->next = copy;
    else
        recording->first = copy;
    recording->last = copy;
    recording->base.device_bytes += sizeof *copy; /* device memory is host memory here */
    return GPST_OK;
}

/* ---- device and memory ------------------------------------------------------- */

/* The brand the processor itself reports, where it can be asked. */
GPSTI_PRIVATE void gpsti_cpu_name(char* out, size_t out_bytes) {
    gpsti_copy_text(out, out_bytes, "CPU");
#if defined(GPSTI_CPU_HAS_CPUID)
    unsigned registers[13];
    unsigned leaf;
    unsigned highest;
    memset(registers, 0, sizeof(registers));
    highest = (unsigned)__get_cpuid_max(0x80000000u, NULL);
    if (highest < 0x80000004u)
        return;
    for (leaf = 0; leaf < 3; ++leaf)
        __get_cpuid(0x80000002u + leaf, &registers[4 * leaf], &registers[4 * leaf + 1],
                    &registers[4 * leaf + 2], &registers[4 * leaf + 3]);
    char brand[sizeof(registers)];
    memcpy(brand, registers, sizeof(registers));
    const char* text = brand;
    while (*text == ' ')
        ++text;
    size_t length = strlen(text);
    while (length && text[length - 1] == ' ')
        --length;
    brand[(size_t)(text - brand) + length] = 0;
    if (length)
        gpsti_copy_text(out, out_bytes, text);
#endif
}

GPSTI_PRIVATE gpst_result gpsti_cpu_device_open(gpsti_host* host, const char* params, gpsti_device** out) {
    GPSTI_FAIL_IF(params && *params, GPST_ERROR_ARGUMENT, "backend cpu: parameters \"%s\": it takes none",
                  params);
    gpsti_cpu_device* device = (gpsti_cpu_device*)gpsti_alloc(host, sizeof(gpsti_cpu_device));
    if (!device)
        return GPST_ERROR_MEMORY;
    device->base.i = gpsti_backend_cpu();
    device->base.host = host;
    device->page_bytes = gpsti_page_bytes();
    gpsti_cpu_name(device->name, sizeof(device->name));
    *out = &device->base;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_cpu_device_close(gpsti_device* device) {
    if (device)
        gpsti_free(device->host, device, sizeof(gpsti_cpu_device));
}

GPSTI_PRIVATE void gpsti_cpu_device_query(const gpsti_device* device, gpsti_device_info* out) {
    gpsti_limits limits;
    gpsti_limits_query(&limits);
    memset(out, 0, sizeof(*out));
    gpsti_copy_text(out->name, sizeof(out->name), ((const gpsti_cpu_device*)device)->name);
    out->zero_copy = true;
    out->memory_bytes = limits.ram_bytes;
    out->memory_free_bytes = limits.ram_available_bytes;
}

GPSTI_PRIVATE void gpsti_cpu_memory_info(const gpsti_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
    gpsti_limits limits;
    (void)device;
    gpsti_limits_query(&limits);
    *free_bytes = limits.ram_available_bytes;
    *total_bytes = limits.ram_bytes;
}

GPSTI_PRIVATE gpst_result gpsti_cpu_memory_alloc(gpsti_device* device, size_t bytes, void** out) {
    size_t mapped_bytes;
    gpsti_pages_kind pages;
    (void)device;
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "backend cpu: memory_alloc: bytes=0: must be above 0");
    return gpsti_pages_alloc(bytes, GPSTI_WANT_SMALL, out, &mapped_bytes, &pages, NULL);
}

GPSTI_PRIVATE void gpsti_cpu_memory_free(gpsti_device* device, void* ptr, size_t bytes) {
    size_t mapped_bytes = bytes;
    if (ptr && gpsti_size_round_up(bytes, ((gpsti_cpu_device*)device)->page_bytes, &mapped_bytes))
        gpsti_pages_free(ptr, mapped_bytes);
}

GPSTI_PRIVATE gpst_result gpsti_cpu_host_alloc(gpsti_device* device, size_t bytes, bool want_huge,
                                               gpsti_host_memory* out) {
    (void)device;
    memset(out, 0, sizeof(*out));
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "backend cpu: host_alloc: bytes=0: must be above 0");
    GPSTI_TRY(gpsti_pages_alloc(bytes, want_huge ? GPSTI_WANT_FILLED : GPSTI_WANT_SMALL, &out->ptr, &out->mapped_bytes,
                                &out->pages, out->why_not));
    out->bytes = out->mapped_bytes;
    if (!out->why_not[0])
        gpsti_copy_text(out->why_not, sizeof(out->why_not), "cpu backend: nothing to pin for");
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_cpu_host_free(gpsti_device* device, gpsti_host_memory* memory) {
    (void)device;
    if (memory && memory->ptr)
        gpsti_pages_free(memory->ptr, memory->mapped_bytes);
    if (memory)
        memset(memory, 0, sizeof(*memory));
}

/* ---- streams and events ------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_cpu_stream_create(gpsti_device* device, gpsti_stream** out) {
    gpsti_cpu_stream* stream = (gpsti_cpu_stream*)gpsti_alloc(device->host, sizeof(gpsti_cpu_stream));
    if (!stream)
        return GPST_ERROR_MEMORY;
    stream->base.device = device;
    *out = &stream->base;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_cpu_stream_destroy(gpsti_stream* stream) {
    if (!stream)
        return;
    gpsti_recording_destroy(((gpsti_cpu_stream*)stream)->recording);
    gpsti_free(stream->device->host, stream, sizeof(gpsti_cpu_stream));
}

/* What is not an operation cannot be recorded. */
GPSTI_PRIVATE gpst_result gpsti_cpu_check_not_recording(const gpsti_stream* stream, const char* function) {
    GPSTI_FAIL_IF(((const gpsti_cpu_stream*)stream)->recording, GPST_ERROR_STATE,
                  "backend cpu: %s: the stream is recording a graph", function);
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_cpu_stream_wait_idle(gpsti_stream* stream) {
    return gpsti_cpu_check_not_recording(stream, "stream_wait_idle");
}

GPSTI_PRIVATE gpst_result gpsti_cpu_stream_notify(gpsti_stream* stream,
                                                  void (*func)(void* user_data, gpst_result result),
                                                  void* user_data) {
    GPSTI_TRY(gpsti_cpu_check_not_recording(stream, "stream_notify"));
    func(user_data, GPST_OK); /* earlier work that failed said so when it was submitted */
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_cpu_event_create(gpsti_device* device, gpsti_event** out) {
    gpsti_cpu_event* event = (gpsti_cpu_event*)gpsti_alloc(device->host, sizeof(gpsti_cpu_event));
    if (!event)
        return GPST_ERROR_MEMORY;
    event->base.device = device;
    *out = &event->base;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_cpu_event_destroy(gpsti_event* event) {
    if (event)
        gpsti_free(event->device->host, event, sizeof(gpsti_cpu_event));
}

GPSTI_PRIVATE gpst_result gpsti_cpu_event_record(gpsti_event* event, gpsti_stream* stream) {
    GPSTI_TRY(gpsti_cpu_check_not_recording(stream, "event_record"));
    gpsti_a64_store(&((gpsti_cpu_event*)event)->time_ns, (uint64_t)gpsti_now_ns());
    return GPST_OK;
}

/* An event is done as soon as it is recorded, and one that never was has nothing to wait for. */
GPSTI_PRIVATE gpst_result gpsti_cpu_event_done(gpsti_event* event) {
    (void)event;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_cpu_event_time(gpsti_event* event, int64_t* time_ns) {
    const int64_t time = (int64_t)gpsti_a64_load(&((gpsti_cpu_event*)event)->time_ns);
    GPSTI_FAIL_IF(!time, GPST_ERROR_STATE, "backend cpu: event_time: the event was never recorded");
    *time_ns = time;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_cpu_stream_wait_event(gpsti_stream* stream, gpsti_event* event) {
    (void)event;
    return gpsti_cpu_check_not_recording(stream, "stream_wait_event");
}

/* ---- operations and graphs --------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_cpu_submit(gpsti_stream* stream, const gpsti_operation* operation) {
    gpsti_recording* recording = ((gpsti_cpu_stream*)stream)->recording;
    return recording ? gpsti_recording_append(recording, operation) : gpsti_operation_run(operation);
}

GPSTI_PRIVATE gpst_result gpsti_cpu_copy(gpsti_stream* stream, gpsti_copy_kind kind, void* dst,
                                         const void* src, size_t bytes) {
    gpsti_operation operation;
    memset(&operation, 0, offsetof(gpsti_operation, args));
    GPSTI_TRY(gpsti_operation_copy(&operation, "backend cpu: copy", kind, dst, src, bytes));
    return gpsti_cpu_submit(stream, &operation);
}

GPSTI_PRIVATE gpst_result gpsti_cpu_memory_set(gpsti_stream* stream, void* dst, int value, size_t bytes) {
    gpsti_operation operation;
    memset(&operation, 0, offsetof(gpsti_operation, args));
    GPSTI_TRY(gpsti_operation_set(&operation, "backend cpu: memory_set", dst, value, bytes));
    return gpsti_cpu_submit(stream, &operation);
}

GPSTI_PRIVATE gpst_result gpsti_cpu_launch(gpsti_stream* stream, const gpsti_kernel* kernel, const void* args,
                                           size_t args_bytes, const gpsti_exec* exec) {
    gpsti_operation operation;
    memset(&operation, 0, sizeof(operation));
    GPSTI_TRY(gpsti_operation_launch(&operation, "backend cpu: launch", kernel, args, args_bytes, exec));
    return gpsti_cpu_submit(stream, &operation);
}

GPSTI_PRIVATE gpst_result gpsti_cpu_graph_begin(gpsti_stream* stream) {
    GPSTI_TRY(gpsti_cpu_check_not_recording(stream, "graph_begin"));
    return gpsti_recording_create(stream->device, &((gpsti_cpu_stream*)stream)->recording);
}

GPSTI_PRIVATE gpst_result gpsti_cpu_graph_end(gpsti_stream* stream, gpsti_graph** graph) {
    gpsti_cpu_stream* cpu_stream = (gpsti_cpu_stream*)stream;
    gpsti_recording_destroy((gpsti_recording*)*graph);
    *graph = NULL;
    GPSTI_FAIL_IF(!cpu_stream->recording, GPST_ERROR_STATE,
                  "backend cpu: graph_end: the stream is not recording a graph");
    *graph = &cpu_stream->recording->base;
    cpu_stream->recording = NULL;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_cpu_graph_launch(gpsti_graph* graph, gpsti_stream* stream) {
    const gpsti_operation* operation = ((gpsti_recording*)graph)->first;
    GPSTI_TRY(gpsti_cpu_check_not_recording(stream, "graph_launch"));
    for (; operation; operation = operation->next)
        GPSTI_TRY(gpsti_operation_run(operation));
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_cpu_graph_destroy(gpsti_graph* graph) {
    gpsti_recording_destroy((gpsti_recording*)graph);
}

GPSTI_PRIVATE const char* gpsti_cpu_last_error(const gpsti_device* device) {
    (void)device;
    return "none";
}

GPSTI_PRIVATE const gpsti_backend_i gpsti_cpu_backend = {sizeof(gpsti_backend_i),
                                                         GPSTI_BACKEND_ABI,
                                                         GPSTI_SOURCE_ID,
                                                         "cpu",
                                                         NULL,
                                                         gpsti_cpu_device_open,
                                                         gpsti_cpu_device_close,
                                                         gpsti_cpu_device_query,
                                                         gpsti_cpu_memory_info,
                                                         gpsti_cpu_memory_alloc,
                                                         gpsti_cpu_memory_free,
                                                         gpsti_cpu_host_alloc,
                                                         gpsti_cpu_host_free,
                                                         NULL,
                                                         NULL,
                                                         NULL,
                                                         gpsti_cpu_stream_create,
                                                         gpsti_cpu_stream_destroy,
                                                         gpsti_cpu_stream_wait_idle,
                                                         gpsti_cpu_stream_wait_idle, /* as a query: all is done */
                                                         gpsti_cpu_stream_notify,
                                                         NULL,
                                                         NULL,
                                                         gpsti_cpu_event_create,
                                                         gpsti_cpu_event_destroy,
                                                         gpsti_cpu_event_record,
                                                         gpsti_cpu_event_done,
                                                         gpsti_cpu_event_done,
                                                         gpsti_cpu_event_time,
                                                         gpsti_cpu_stream_wait_event,
                                                         gpsti_cpu_copy,
                                                         NULL,
                                                         gpsti_cpu_memory_set,
                                                         gpsti_cpu_launch,
                                                         gpsti_cpu_graph_begin,
                                                         gpsti_cpu_graph_end,
                                                         gpsti_cpu_graph_launch,
                                                         gpsti_cpu_graph_destroy,
                                                         NULL,
                                                         NULL,
                                                         NULL,
                                                         NULL,
                                                         gpsti_cpu_last_error,
                                                         NULL};

GPSTI_INTERN const gpsti_backend_i* gpsti_backend_cpu(void) { return &gpsti_cpu_backend; }
