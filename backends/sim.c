/* backends/sim.c -- an asynchronous device made of threads, a clock model and
   faults on request, for testing what drives a GPU without one. Chosen by name only. */
#include "../core/base/platform_internal.h"

#include "sim_internal.h"

#include <string.h>

/* ---- faults ------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_sim_fail_lost(gpsti_sim_device* device, const char* function) {
    gpsti_a32_store(&device->vendor_error, GPSTI_SIM_VENDOR_LOST);
    return gpsti_fail(GPST_ERROR_DEVICE_LOST, "backend sim: %s: the simulated device is lost (lose_at)",
                      function);
}

GPSTI_INTERN gpst_result gpsti_sim_enter(gpsti_sim_device* device, gpsti_fault call,
                                         const char* function) {
    if (device->lost)
        return gpsti_sim_fail_lost(device, function);
    if (call == GPSTI_FAULT_NONE || (double)++device->n_calls[call] != device->params.fail[call])
        return GPST_OK;
    (void)gpsti_a32_add(gpsti_faults_fired(), 1);
    gpsti_a32_store(&device->vendor_error, GPSTI_SIM_VENDOR_INJECTED);
    return gpsti_fail(call == GPSTI_FAULT_ALLOC        ? GPST_ERROR_DEVICE_MEMORY
                      : call == GPSTI_FAULT_HOST_ALLOC ? GPST_ERROR_MEMORY
                                                          : GPST_ERROR_DEVICE,
                      "backend sim: %s: injected fault at call %u", function,
                      (unsigned)device->n_calls[call]);
}

GPSTI_INTERN gpst_result gpsti_sim_enter_locking(gpsti_device* device, gpsti_fault call,
                                                 const char* function) {
    gpsti_sim_device* sim = (gpsti_sim_device*)device;
    gpsti_mutex_lock(&sim->mutex);
    const gpst_result result = gpsti_sim_enter(sim, call, function);
    gpsti_mutex_unlock(&sim->mutex);
    return result;
}

/* ---- device and memory ------------------------------------------------------- */

GPSTI_PRIVATE gpst_result gpsti_sim_device_open(gpsti_host* host, const char* params, gpsti_device** out) {
    gpsti_limits limits;
    gpsti_sim_params parsed;
    GPSTI_TRY(gpsti_sim_parse(params, &parsed));
    gpsti_sim_device* device = (gpsti_sim_device*)gpsti_alloc(host, sizeof(gpsti_sim_device));
    if (!device)
        return GPST_ERROR_MEMORY;
    device->base.i = gpsti_backend_sim();
    device->base.host = host;
    device->params = parsed;
    device->random = (uint64_t)parsed.seed;
    gpsti_limits_query(&limits);
    device->memory_bytes = parsed.memory_mb > 0 ? (uint64_t)(parsed.memory_mb * 1048576) : limits.ram_bytes;
    gpst_result result = gpsti_mutex_init(&device->mutex);
    if (!GPST_FAILED(result)) {
        result = gpsti_cond_init(&device->changed);
        if (GPST_FAILED(result))
            gpsti_mutex_term(&device->mutex);
    }
    if (GPST_FAILED(result)) {
        gpsti_free(host, device, sizeof(*device));
        return result;
    }
    *out = &device->base;
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_sim_memories_free(gpsti_sim_device* device, gpsti_sim_memories* memories) {
    gpsti_free(device->base.host, memories->list, memories->capacity * sizeof(gpsti_sim_memory));
    memories->list = NULL;
    memories->capacity = 0;
}

GPSTI_PRIVATE void gpsti_sim_device_close(gpsti_device* device) {
    gpsti_sim_device* sim = (gpsti_sim_device*)device;
    if (!sim)
        return;
    gpsti_cond_term(&sim->changed);
    gpsti_mutex_term(&sim->mutex);
    gpsti_sim_memories_free(sim, &sim->memories);
    gpsti_sim_memories_free(sim, &sim->registered);
    gpsti_free(device->host, sim, sizeof(*sim));
}

/* Under the mutex. Of the memory that others leave. */
GPSTI_PRIVATE uint64_t gpsti_sim_free_bytes(const gpsti_sim_device* sim) {
    const uint64_t used_bytes = sim->used_bytes + (uint64_t)(sim->params.others_mb * 1048576);
    return used_bytes < sim->memory_bytes ? sim->memory_bytes - used_bytes : 0;
}

/* oom_mb is not in it: a driver does not say either that memory is in pieces. */
GPSTI_PRIVATE void gpsti_sim_memory_info(const gpsti_device* device, uint64_t* free_bytes, uint64_t* total_bytes) {
    gpsti_sim_device* const sim = (gpsti_sim_device*)(uintptr_t)device; /* the mutex is not const */
    gpsti_mutex_lock(&sim->mutex);
    *free_bytes = gpsti_sim_free_bytes(sim);
    *total_bytes = sim->memory_bytes;
    gpsti_mutex_unlock(&sim->mutex);
}

GPSTI_PRIVATE void gpsti_sim_device_query(const gpsti_device* device, gpsti_device_info* out) {
    const gpsti_sim_device* const sim = (const gpsti_sim_device*)device;
    memset(out, 0, sizeof(*out));
    gpsti_copy_text(out->name, sizeof(out->name), "simulated device");
    out->asynchronous = true;
    out->counts_bytes = sim->params.kernel_gbps > 0;
    out->reaches_host = sim->params.mapped > 0;
    out->locks_host = sim->params.pin_gbps > 0;
    out->n_copy_engines = (uint32_t)sim->params.copy_engines;
    gpsti_sim_memory_info(device, &out->memory_free_bytes, &out->memory_bytes);
}

GPSTI_PRIVATE gpst_result gpsti_sim_charge(gpsti_sim_device* device, size_t bytes) {
    const uint64_t oom_bytes = (uint64_t)(device->params.oom_mb * 1048576);
    GPSTI_TRY(gpsti_sim_enter(device, GPSTI_FAULT_ALLOC, "memory_alloc"));
    if (bytes > gpsti_sim_free_bytes(device) ||
        (oom_bytes && (device->used_bytes > oom_bytes || bytes > oom_bytes - device->used_bytes))) {
        gpsti_a32_store(&device->vendor_error, GPSTI_SIM_VENDOR_MEMORY);
        return gpsti_fail(
            GPST_ERROR_DEVICE_MEMORY,
            "backend sim: memory_alloc: bytes=%zu: out of simulated memory (%llu of %llu bytes in use)",
            bytes, (unsigned long long)device->used_bytes,
            (unsigned long long)(oom_bytes ? oom_bytes : device->memory_bytes));
    }
    device->used_bytes += bytes;
    return GPST_OK;
}

/* Under the mutex. How many allocations begin at or before ptr: the last of them is the one it may lie in. */
GPSTI_PRIVATE size_t gpsti_sim_count_before(const gpsti_sim_memories* memories, const void* ptr) {
    size_t begin = 0, end = memories->n;
    while (begin < end) {
        const size_t middle = begin + (end - begin) / 2;
        if ((uintptr_t)memories->list[middle].ptr <= (uintptr_t)ptr)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin;
}

/* Under the mutex. */
GPSTI_PRIVATE gpst_result gpsti_sim_memories_grow(gpsti_sim_device* device, gpsti_sim_memories* memories) {
    const size_t capacity = memories->capacity ? 2 * memories->capacity : 32;
    gpsti_sim_memory* const list =
        (gpsti_sim_memory*)gpsti_alloc(device->base.host, capacity * sizeof(gpsti_sim_memory));
    if (!list)
        return GPST_ERROR_MEMORY;
    if (memories->n)
        memcpy(list, memories->list, memories->n * sizeof(gpsti_sim_memory));
    gpsti_sim_memories_free(device, memories);
    memories->list = list;
    memories->capacity = capacity;
    return GPST_OK;
}

/* Under the mutex. */
GPSTI_PRIVATE gpst_result gpsti_sim_memories_add(gpsti_sim_device* device, gpsti_sim_memories* memories,
                                                 const gpsti_sim_memory* memory) {
    if (memories->n == memories->capacity)
        GPSTI_TRY(gpsti_sim_memories_grow(device, memories));
    gpsti_sim_memory* const at = memories->list + gpsti_sim_count_before(memories, memory->ptr);
    memmove(at + 1, at, (size_t)(memories->list + memories->n - at) * sizeof(*at));
    *at = *memory;
    ++memories->n;
    return GPST_OK;
}

/* Under the mutex. *out: what ptr begins, which the device does not know any more. */
GPSTI_PRIVATE bool gpsti_sim_memories_take(gpsti_sim_device* device, gpsti_sim_memories* memories, const void* ptr,
                                           gpsti_sim_memory* out) {
    const size_t n_before = gpsti_sim_count_before(memories, ptr);
    if (!n_before || memories->list[n_before - 1].ptr != ptr)
        return false;
    gpsti_sim_memory* const at = &memories->list[n_before - 1];
    *out = *at;
    memmove(at, at + 1, (memories->n - n_before) * sizeof(*at));
    if (--memories->n == 0)
        gpsti_sim_memories_free(device, memories);
    return true;
}

/* Under the mutex. Whether the bytes lie in one allocation of the device. */
GPSTI_PRIVATE bool gpsti_sim_owns(const gpsti_sim_device* device, const void* ptr, size_t bytes) {
    const size_t n_before = gpsti_sim_count_before(&device->memories, ptr);
    if (!n_before)
        return false;
    const gpsti_sim_memory* const memory = &device->memories.list[n_before - 1];
    const uintptr_t offset = (uintptr_t)ptr - (uintptr_t)memory->ptr;
    return offset <= memory->bytes && bytes <= memory->bytes - offset;
}

/* Under the mutex. Whether any of the bytes lies in one of them, which do not overlap each other. */
GPSTI_PRIVATE bool gpsti_sim_touches(const gpsti_sim_memories* memories, const void* ptr, size_t bytes) {
    const size_t n_before = gpsti_sim_count_before(memories, (const char*)ptr + bytes - 1);
    const gpsti_sim_memory* const last = n_before ? &memories->list[n_before - 1] : NULL;
    return last && (uintptr_t)last->ptr + last->bytes > (uintptr_t)ptr;
}

/* The pages of what was charged. */
GPSTI_PRIVATE gpst_result gpsti_sim_memory_make(gpsti_sim_device* sim, size_t bytes, void** out) {
    gpsti_sim_memory memory = {NULL, bytes, 0};
    gpsti_pages_kind pages;
    void* ptr = NULL;
    GPSTI_TRY(gpsti_pages_alloc(bytes, bytes >= GPSTI_PAGES_REST_BYTES ? GPSTI_WANT_FILLED : GPSTI_WANT_SMALL, &ptr,
                                &memory.mapped_bytes, &pages, NULL));
    memset(ptr, 0xA5, bytes); /* device memory is not zeroed: nothing may come to rely on it */
    memory.ptr = (char*)ptr;
    gpsti_mutex_lock(&sim->mutex);
    const gpst_result result = gpsti_sim_memories_add(sim, &sim->memories, &memory);
    gpsti_mutex_unlock(&sim->mutex);
    if (GPST_FAILED(result))
        gpsti_pages_free(ptr, memory.mapped_bytes);
    else
        *out = ptr;
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_sim_memory_alloc(gpsti_device* device, size_t bytes, void** out) {
    gpsti_sim_device* sim = (gpsti_sim_device*)device;
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "backend sim: memory_alloc: bytes=0: must be above 0");
    gpsti_mutex_lock(&sim->mutex);
    gpst_result result = gpsti_sim_charge(sim, bytes);
    gpsti_mutex_unlock(&sim->mutex);
    GPSTI_TRY(result);
    result = gpsti_sim_memory_make(sim, bytes, out);
    if (GPST_FAILED(result)) {
        gpsti_mutex_lock(&sim->mutex);
        sim->used_bytes -= bytes;
        gpsti_mutex_unlock(&sim->mutex);
    }
    return result;
}

GPSTI_PRIVATE void gpsti_sim_memory_free(gpsti_device* device, void* ptr, size_t bytes) {
    gpsti_sim_device* sim = (gpsti_sim_device*)device;
    gpsti_sim_memory memory;
    (void)bytes;
    gpsti_mutex_lock(&sim->mutex);
    const bool known = gpsti_sim_memories_take(sim, &sim->memories, ptr, &memory);
    sim->used_bytes -= known ? memory.bytes : 0;
    gpsti_mutex_unlock(&sim->mutex);
    if (known)
        gpsti_pages_free(memory.ptr, memory.mapped_bytes);
}

/* As long as a driver takes to lock so many bytes, which it does for one thread after the other. */
GPSTI_PRIVATE void gpsti_sim_wait_pinned(gpsti_sim_device* sim, size_t bytes) {
    if (sim->params.pin_gbps <= 0 || sim->params.virtual_clock > 0)
        return;
    gpsti_mutex_lock(&sim->mutex);
    const int64_t now_ns = gpsti_now_ns();
    sim->pin_free_ns = sim->pin_free_ns > now_ns ? sim->pin_free_ns : now_ns;
    sim->pin_free_ns += (int64_t)((double)bytes / sim->params.pin_gbps);
    const int64_t end_ns = sim->pin_free_ns;
    gpsti_mutex_unlock(&sim->mutex);
    gpsti_sleep_ns(end_ns - now_ns);
}

GPSTI_PRIVATE gpst_result gpsti_sim_host_alloc(gpsti_device* device, size_t bytes, bool want_huge,
                                               gpsti_host_memory* out) {
    gpsti_sim_device* const sim = (gpsti_sim_device*)device;
    memset(out, 0, sizeof(*out));
    GPSTI_FAIL_IF(!bytes, GPST_ERROR_ARGUMENT, "backend sim: host_alloc: bytes=0: must be above 0");
    GPSTI_TRY(gpsti_sim_enter_locking(device, GPSTI_FAULT_HOST_ALLOC, "host_alloc"));
    GPSTI_TRY(gpsti_pages_alloc(bytes, want_huge ? GPSTI_WANT_FILLED : GPSTI_WANT_SMALL, &out->ptr, &out->mapped_bytes,
                                &out->pages, out->why_not));
    out->bytes = out->mapped_bytes;
    out->pinned = sim->params.mapped > 0;
    gpsti_sim_wait_pinned(sim, bytes);
    if (!out->why_not[0] && !out->pinned)
        gpsti_copy_text(out->why_not, sizeof(out->why_not), "sim backend: only the time of pinning is simulated");
    return GPST_OK;
}

GPSTI_PRIVATE void gpsti_sim_host_free(gpsti_device* device, gpsti_host_memory* memory) {
    (void)device;
    if (memory && memory->ptr)
        gpsti_pages_free(memory->ptr, memory->mapped_bytes);
    if (memory)
        memset(memory, 0, sizeof(*memory));
}

/* Nothing is locked, but counted, and refused where the bytes are locked already, as drivers do. */
GPSTI_PRIVATE gpst_result gpsti_sim_host_register(gpsti_device* device, void* ptr, size_t bytes) {
    gpsti_sim_device* const sim = (gpsti_sim_device*)device;
    gpsti_sim_memory memory = {(char*)ptr, bytes, 0};
    gpsti_mutex_lock(&sim->mutex);
    gpst_result result = gpsti_sim_enter(sim, GPSTI_FAULT_HOST_ALLOC, "host_register");
    if (!GPST_FAILED(result) && gpsti_sim_touches(&sim->registered, ptr, bytes))
        result = gpsti_fail(GPST_ERROR_ARGUMENT, "backend sim: host_register: ptr=%p: registered already", ptr);
    if (!GPST_FAILED(result))
        result = gpsti_sim_memories_add(sim, &sim->registered, &memory);
    gpsti_mutex_unlock(&sim->mutex);
    return result;
}

GPSTI_PRIVATE void gpsti_sim_host_unregister(gpsti_device* device, void* ptr, size_t bytes) {
    gpsti_sim_device* const sim = (gpsti_sim_device*)device;
    gpsti_sim_memory memory;
    (void)bytes;
    gpsti_mutex_lock(&sim->mutex);
    (void)gpsti_sim_memories_take(sim, &sim->registered, ptr, &memory);
    gpsti_mutex_unlock(&sim->mutex);
}

/* ---- operations -------------------------------------------------------------- */

/* Under the mutex. ARGUMENT where bytes begin in an allocation of the device and end behind it. */
GPSTI_PRIVATE gpst_result gpsti_sim_place(const gpsti_sim_device* device, const char* name, const void* ptr,
                                          size_t bytes, bool* is_device) {
    *is_device = gpsti_sim_owns(device, ptr, bytes);
    GPSTI_FAIL_IF(!*is_device && gpsti_sim_owns(device, ptr, 1), GPST_ERROR_ARGUMENT,
                  "backend sim: copy: %s: %zu bytes reach behind the end of their device memory", name, bytes);
    return GPST_OK;
}

/* Under the mutex. What a copy of any kind is; between two of the host's own it is of the device's own time. */
GPSTI_PRIVATE gpst_result gpsti_sim_find_kind(const gpsti_sim_device* device, gpsti_operation* operation) {
    bool to_device = false, from_device = false;
    GPSTI_TRY(gpsti_sim_place(device, "dst", operation->dst, operation->bytes, &to_device));
    GPSTI_TRY(gpsti_sim_place(device, "src", operation->src, operation->bytes, &from_device));
    operation->copy_kind = to_device == from_device ? GPSTI_COPY_D2D : to_device ? GPSTI_COPY_H2D : GPSTI_COPY_D2H;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_sim_copy(gpsti_stream* stream, gpsti_copy_kind kind, void* dst,
                                         const void* src, size_t bytes) {
    gpsti_sim_device* device = gpsti_sim_of(stream);
    gpsti_sim_task* task;
    GPSTI_TRY(gpsti_sim_submit_begin(stream, GPSTI_FAULT_COPY, "copy", &task));
    task->kind = GPSTI_SIM_TASK_OPERATION;
    gpst_result result = gpsti_operation_copy(&task->operation, "backend sim: copy", kind, dst, src, bytes);
    if (!GPST_FAILED(result) && bytes) {
        if (kind == GPSTI_COPY_ANY)
            result = gpsti_sim_find_kind(device, &task->operation);
        else if (gpsti_sim_owns(device, dst, bytes) != (kind != GPSTI_COPY_D2H))
            result = gpsti_fail(GPST_ERROR_ARGUMENT, "backend sim: copy: dst: must be %s memory",
                                kind == GPSTI_COPY_D2H ? "host" : "device");
        else if (gpsti_sim_owns(device, src, bytes) != (kind != GPSTI_COPY_H2D))
            result = gpsti_fail(GPST_ERROR_ARGUMENT, "backend sim: copy: src: must be %s memory",
                                kind == GPSTI_COPY_H2D ? "host" : "device");
    }
    return gpsti_sim_submit_end(stream, task, result);
}

GPSTI_PRIVATE gpst_result gpsti_sim_memory_set(gpsti_stream* stream, void* dst, int value, size_t bytes) {
    gpsti_sim_task* task;
    GPSTI_TRY(gpsti_sim_submit_begin(stream, GPSTI_FAULT_NONE, "memory_set", &task));
    task->kind = GPSTI_SIM_TASK_OPERATION;
    gpst_result result = gpsti_operation_set(&task->operation, "backend sim: memory_set", dst, value, bytes);
    if (!GPST_FAILED(result) && bytes && !gpsti_sim_owns(gpsti_sim_of(stream), dst, bytes))
        result = gpsti_fail(GPST_ERROR_ARGUMENT, "backend sim: memory_set: dst: must be device memory");
    return gpsti_sim_submit_end(stream, task, result);
}

GPSTI_PRIVATE gpst_result gpsti_sim_launch(gpsti_stream* stream, const gpsti_kernel* kernel, const void* args,
                                           size_t args_bytes, const gpsti_exec* exec) {
    gpsti_sim_task* task;
    GPSTI_TRY(gpsti_sim_submit_begin(stream, GPSTI_FAULT_LAUNCH, "launch", &task));
    task->kind = GPSTI_SIM_TASK_OPERATION;
    return gpsti_sim_submit_end(
        stream, task,
        gpsti_operation_launch(&task->operation, "backend sim: launch", kernel, args, args_bytes, exec));
}

GPSTI_PRIVATE gpst_result gpsti_sim_stream_notify(gpsti_stream* stream,
                                                  void (*func)(void* user_data, gpst_result result),
                                                  void* user_data) {
    gpsti_sim_task* task;
    GPSTI_TRY(gpsti_sim_submit_begin(stream, GPSTI_FAULT_NOTIFY, "stream_notify", &task));
    task->kind = GPSTI_SIM_TASK_NOTIFY;
    task->func = func;
    task->user_data = user_data;
    return gpsti_sim_submit_end(stream, task, gpsti_sim_check_not_recording(stream, "stream_notify"));
}

GPSTI_PRIVATE gpst_result gpsti_sim_event_record(gpsti_event* event, gpsti_stream* stream) {
    gpsti_sim_event* sim_event = (gpsti_sim_event*)event;
    gpsti_sim_task* task;
    GPSTI_TRY(gpsti_sim_submit_begin(stream, GPSTI_FAULT_EVENT, "event_record", &task));
    const gpst_result result = gpsti_sim_check_not_recording(stream, "event_record");
    task->kind = GPSTI_SIM_TASK_RECORD;
    task->event = sim_event;
    if (!GPST_FAILED(result)) {
        task->sequence = ++sim_event->recorded;
        ++sim_event->n_queued;
    }
    return gpsti_sim_submit_end(stream, task, result);
}

GPSTI_PRIVATE gpst_result gpsti_sim_stream_wait_event(gpsti_stream* stream, gpsti_event* event) {
    gpsti_sim_event* sim_event = (gpsti_sim_event*)event;
    gpsti_sim_task* task;
    GPSTI_TRY(gpsti_sim_submit_begin(stream, GPSTI_FAULT_NONE, "stream_wait_event", &task));
    const gpst_result result = gpsti_sim_check_not_recording(stream, "stream_wait_event");
    task->kind = GPSTI_SIM_TASK_WAIT;
    task->event = sim_event;
    task->sequence = sim_event->recorded;
    if (!GPST_FAILED(result))
        ++sim_event->n_queued;
    return gpsti_sim_submit_end(stream, task, result);
}

/* ---- events ------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_sim_event_create(gpsti_device* device, gpsti_event** out) {
    GPSTI_TRY(gpsti_sim_enter_locking(device, GPSTI_FAULT_EVENT, "event_create"));
    gpsti_sim_event* event = (gpsti_sim_event*)gpsti_alloc(device->host, sizeof(gpsti_sim_event));
    if (!event)
        return GPST_ERROR_MEMORY;
    event->base.device = device;
    *out = &event->base;
    return GPST_OK;
}

/* Waits until no stream has it in its queue. */
GPSTI_PRIVATE void gpsti_sim_event_destroy(gpsti_event* event) {
    gpsti_sim_event* sim_event = (gpsti_sim_event*)event;
    if (!event)
        return;
    gpsti_sim_device* device = (gpsti_sim_device*)event->device;
    gpsti_mutex_lock(&device->mutex);
    if (sim_event->n_queued)
        gpsti_sim_call_all(device);
    while (sim_event->n_queued)
        gpsti_cond_wait_until(&device->changed, &device->mutex, GPST_FOREVER);
    gpsti_mutex_unlock(&device->mutex);
    gpsti_free(event->device->host, sim_event, sizeof(*sim_event));
}

/* Under the mutex. OK, WOULD_BLOCK, or DEVICE_LOST once there is nothing left to wait for. */
GPSTI_PRIVATE gpst_result gpsti_sim_event_state(gpsti_sim_event* event, const char* function) {
    gpsti_sim_device* const device = (gpsti_sim_device*)event->base.device;
    if (event->done < event->recorded) {
        gpsti_sim_call_all(device);
        return gpsti_fail(GPST_ERROR_WOULD_BLOCK, "backend sim: %s: the event is not done", function);
    }
    gpsti_sim_tell(device, event->time_ns);
    return gpsti_sim_enter(device, GPSTI_FAULT_NONE, function);
}

GPSTI_PRIVATE gpst_result gpsti_sim_event_query(gpsti_event* event) {
    gpsti_sim_device* device = (gpsti_sim_device*)event->device;
    gpsti_mutex_lock(&device->mutex);
    const gpst_result result = gpsti_sim_event_state((gpsti_sim_event*)event, "event_query");
    gpsti_mutex_unlock(&device->mutex);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_sim_event_wait(gpsti_event* event) {
    gpsti_sim_event* sim_event = (gpsti_sim_event*)event;
    gpsti_sim_device* device = (gpsti_sim_device*)event->device;
    gpsti_mutex_lock(&device->mutex);
    const uint64_t sequence = sim_event->recorded;
    if (sim_event->done < sequence)
        gpsti_sim_call_all(device);
    while (sim_event->done < sequence)
        gpsti_cond_wait_until(&device->changed, &device->mutex, GPST_FOREVER);
    gpsti_sim_tell(device, sim_event->time_ns);
    const gpst_result result = gpsti_sim_enter(device, GPSTI_FAULT_NONE, "event_wait");
    gpsti_mutex_unlock(&device->mutex);
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_sim_event_time(gpsti_event* event, int64_t* time_ns) {
    gpsti_sim_event* sim_event = (gpsti_sim_event*)event;
    gpsti_sim_device* device = (gpsti_sim_device*)event->device;
    gpsti_mutex_lock(&device->mutex);
    gpst_result result = gpsti_sim_event_state(sim_event, "event_time");
    if (!GPST_FAILED(result) && !sim_event->recorded)
        result = gpsti_fail(GPST_ERROR_STATE, "backend sim: event_time: the event was never recorded");
    if (!GPST_FAILED(result))
        *time_ns = sim_event->time_ns;
    gpsti_mutex_unlock(&device->mutex);
    return result;
}

/* ---- graphs ------------------------------------------------------------------ */

GPSTI_PRIVATE gpst_result gpsti_sim_graph_begin(gpsti_stream* stream) {
    gpsti_sim_stream* sim_stream = (gpsti_sim_stream*)stream;
    gpsti_sim_device* device = gpsti_sim_of(stream);
    gpsti_mutex_lock(&device->mutex);
    gpst_result result = gpsti_sim_enter(device, GPSTI_FAULT_GRAPH, "graph_begin");
    if (!GPST_FAILED(result))
        result = gpsti_sim_check_not_recording(stream, "graph_begin");
    if (!GPST_FAILED(result))
        result = gpsti_recording_create(stream->device, &sim_stream->recording);
    gpsti_mutex_unlock(&device->mutex);
    return result;
}

/* Waits until no stream has it in its queue. */
GPSTI_PRIVATE void gpsti_sim_graph_destroy(gpsti_graph* graph) {
    gpsti_recording* recording = (gpsti_recording*)graph;
    if (!graph)
        return;
    gpsti_sim_device* device = (gpsti_sim_device*)graph->device;
    gpsti_mutex_lock(&device->mutex);
    if (recording->n_queued)
        gpsti_sim_call_all(device);
    while (recording->n_queued)
        gpsti_cond_wait_until(&device->changed, &device->mutex, GPST_FOREVER);
    gpsti_mutex_unlock(&device->mutex);
    gpsti_recording_destroy(recording);
}

GPSTI_PRIVATE gpst_result gpsti_sim_graph_end(gpsti_stream* stream, gpsti_graph** graph) {
    gpsti_sim_stream* sim_stream = (gpsti_sim_stream*)stream;
    gpsti_sim_device* device = gpsti_sim_of(stream);
    gpsti_mutex_lock(&device->mutex);
    gpsti_recording* recording = sim_stream->recording;
    gpst_result result = gpsti_sim_enter(device, GPSTI_FAULT_GRAPH, "graph_end");
    sim_stream->recording = NULL;
    if (!recording)
        result = gpsti_fail(GPST_ERROR_STATE, "backend sim: graph_end: the stream is not recording a graph");
    gpsti_mutex_unlock(&device->mutex);
    gpsti_sim_graph_destroy(*graph);
    *graph = NULL;
    if (GPST_FAILED(result)) {
        gpsti_recording_destroy(recording);
        return result;
    }
    *graph = &recording->base;
    return GPST_OK;
}

GPSTI_PRIVATE gpst_result gpsti_sim_graph_launch(gpsti_graph* graph, gpsti_stream* stream) {
    gpsti_recording* recording = (gpsti_recording*)graph;
    gpsti_sim_task* task;
    GPSTI_TRY(gpsti_sim_submit_begin(stream, GPSTI_FAULT_LAUNCH, "graph_launch", &task));
    const gpst_result result = gpsti_sim_check_not_recording(stream, "graph_launch");
    task->kind = GPSTI_SIM_TASK_GRAPH;
    task->recording = recording;
    if (!GPST_FAILED(result))
        ++recording->n_queued;
    return gpsti_sim_submit_end(stream, task, result);
}

GPSTI_PRIVATE const char* gpsti_sim_last_error(const gpsti_device* device) {
    static const char* const texts[] = {"none", "simErrorInjected", "simErrorMemoryAllocation",
                                        "simErrorDeviceLost", "simErrorLaunchFailure"};
    return texts[gpsti_a32_load(&((const gpsti_sim_device*)device)->vendor_error)];
}

GPSTI_PRIVATE const gpsti_backend_i gpsti_sim_backend = {sizeof(gpsti_backend_i),
                                                         GPSTI_BACKEND_ABI,
                                                         GPSTI_SOURCE_ID,
                                                         "sim",
                                                         NULL,
                                                         gpsti_sim_device_open,
                                                         gpsti_sim_device_close,
                                                         gpsti_sim_device_query,
                                                         gpsti_sim_memory_info,
                                                         gpsti_sim_memory_alloc,
                                                         gpsti_sim_memory_free,
                                                         gpsti_sim_host_alloc,
                                                         gpsti_sim_host_free,
                                                         gpsti_sim_host_register,
                                                         gpsti_sim_host_unregister,
                                                         NULL,
                                                         gpsti_sim_stream_create,
                                                         gpsti_sim_stream_destroy,
                                                         gpsti_sim_stream_wait_idle,
                                                         gpsti_sim_stream_query,
                                                         gpsti_sim_stream_notify,
                                                         NULL,
                                                         NULL,
                                                         gpsti_sim_event_create,
                                                         gpsti_sim_event_destroy,
                                                         gpsti_sim_event_record,
                                                         gpsti_sim_event_query,
                                                         gpsti_sim_event_wait,
                                                         gpsti_sim_event_time,
                                                         gpsti_sim_stream_wait_event,
                                                         gpsti_sim_copy,
                                                         NULL,
                                                         gpsti_sim_memory_set,
                                                         gpsti_sim_launch,
                                                         gpsti_sim_graph_begin,
                                                         gpsti_sim_graph_end,
                                                         gpsti_sim_graph_launch,
                                                         gpsti_sim_graph_destroy,
                                                         NULL,
                                                         NULL,
                                                         NULL,
                                                         NULL,
                                                         gpsti_sim_last_error,
                                                         gpsti_sim_disk_end};

GPSTI_INTERN const gpsti_backend_i* gpsti_backend_sim(void) { return &gpsti_sim_backend; }
