/* tests/test_backend_gpu.c -- the backend cuda (or hip) keeps the device contract, fails where it is told to,
   leaves the host application's device as it was, and survives the loss of its own. Skipped without a device. */
#include "gpu_device.h"
#include "test_backend.h"

#include <sys/wait.h>
#include <unistd.h>

static const test_backend* test_subject(void) {
    static test_backend subject;
    subject.i = gpsti_backend_gpu();
    subject.params = NULL;
    subject.zero_copy = false;
    subject.asynchronous = true;
    subject.on_gpu = true;
    return &subject;
}

static void gpu_open(test_device* t, const char* params) { test_device_open(t, gpsti_backend_gpu(), params); }

static void gpu_parameters(void** state) {
    gpsti_host host;
    gpsti_device* device = NULL;
    (void)state;
    gpsti_host_init(&host, NULL, NULL);
    assert_int_equal(gpsti_backend_gpu()->device_open(&host, "speed=1", &device), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "device, oom_mb, fail_alloc"));
    assert_int_equal(gpsti_backend_gpu()->device_open(&host, "device=1000", &device), GPST_ERROR_NO_BACKEND);
    assert_non_null(strstr(gpst_last_reason(), "device=1000: there are"));
    assert_int_equal(gpsti_backend_gpu()->device_open(&host, "device=0", &device), GPST_OK);
    gpsti_backend_gpu()->device_close(device);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
}

/* ---- faults on request -------------------------------------------------------- */

static gpst_result gpu_call_alloc(test_device* t) {
    void* memory = NULL;
    const gpst_result result = t->i->memory_alloc(t->device, 100, &memory);
    t->i->memory_free(t->device, memory, 100);
    return result;
}

static gpst_result gpu_call_host_alloc(test_device* t) {
    gpsti_host_memory memory;
    const gpst_result result = t->i->host_alloc(t->device, 100, false, &memory);
    t->i->host_free(t->device, &memory);
    return result;
}

static gpst_result gpu_call_copy(test_device* t) { return t->i->copy(t->stream, GPSTI_COPY_D2D, NULL, NULL, 0); }

static gpst_result gpu_nothing_host(const void* args, const gpsti_exec* exec) {
    (void)args;
    (void)exec;
    return GPST_OK;
}
static gpst_result gpu_nothing(const void* args, void* native_stream) {
    (void)args;
    return native_stream ? GPST_OK : GPST_ERROR_INTERNAL;
}
static const gpsti_kernel gpu_nothing_kernel = {"nothing", gpu_nothing_host, gpu_nothing, NULL};

static gpst_result gpu_call_launch(test_device* t) {
    return t->i->launch(t->stream, &gpu_nothing_kernel, NULL, 0, NULL);
}

static gpst_result gpu_call_event(test_device* t) {
    gpsti_event* event = NULL;
    const gpst_result result = t->i->event_create(t->device, &event);
    t->i->event_destroy(event);
    return result;
}

static gpst_result gpu_call_stream(test_device* t) {
    gpsti_stream* stream = NULL;
    const gpst_result result = t->i->stream_create(t->device, &stream);
    t->i->stream_destroy(stream);
    return result;
}

static gpst_result gpu_call_notify(test_device* t) {
    static test_note note;
    return t->i->stream_notify(t->stream, test_note_down, &note);
}

typedef struct gpu_fault {
    const char* key;
    gpst_result result;
    gpst_result (*call)(test_device* t);
    uint64_t n; /* the call at which it is asked for: test_device_open makes one stream */
} gpu_fault;

static void gpu_faults(void** state) {
    static const gpu_fault faults[] = {{"fail_alloc", GPST_ERROR_DEVICE_MEMORY, gpu_call_alloc, 2},
                                       {"fail_host_alloc", GPST_ERROR_MEMORY, gpu_call_host_alloc, 2},
                                       {"fail_copy", GPST_ERROR_DEVICE, gpu_call_copy, 2},
                                       {"fail_launch", GPST_ERROR_DEVICE, gpu_call_launch, 2},
                                       {"fail_event", GPST_ERROR_DEVICE, gpu_call_event, 2},
                                       {"fail_stream", GPST_ERROR_DEVICE, gpu_call_stream, 3},
                                       {"fail_notify", GPST_ERROR_DEVICE, gpu_call_notify, 2}};
    (void)state;
    for (size_t k = 0; k < sizeof faults / sizeof faults[0]; k++) {
        char params[64];
        test_device t;
        snprintf(params, sizeof params, "%s=%d", faults[k].key, (int)faults[k].n);
        gpu_open(&t, params);
        assert_int_equal(faults[k].call(&t), GPST_OK);
        assert_int_equal(faults[k].call(&t), faults[k].result);
        assert_non_null(strstr(gpst_last_reason(), "injected fault"));
        assert_string_equal(t.i->last_error(t.device), "injected fault");
        assert_int_equal(faults[k].call(&t), GPST_OK); /* once */
        assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
        test_device_close(&t);
    }
}

static void gpu_memory_ends(void** state) {
    void* a = NULL;
    void* b = NULL;
    test_device t;
    gpsti_device_info info;
    (void)state;
    gpu_open(&t, "oom_mb=2");
    assert_int_equal(t.i->memory_alloc(t.device, 1 << 20, &a), GPST_OK);
    assert_int_equal(t.i->memory_alloc(t.device, (1 << 20) + 1, &b), GPST_ERROR_DEVICE_MEMORY);
    assert_null(b);
    assert_int_equal(t.i->memory_alloc(t.device, 1 << 20, &b), GPST_OK);
    t.i->memory_free(t.device, a, 1 << 20);
    t.i->memory_free(t.device, b, 1 << 20);
    assert_int_equal(t.i->memory_alloc(t.device, 2 << 20, &a), GPST_OK); /* what came back is there again */
    t.i->memory_free(t.device, a, 2 << 20);
    t.i->device_query(t.device, &info);
    test_device_close(&t);
    /* The real end: more than there is, told in the vendor's words, and nothing is broken by it or counts as taken. */
    char params[64];
    snprintf(params, sizeof params, "oom_mb=%.0f", (double)info.memory_bytes * 3 / 1048576);
    gpu_open(&t, params);
    for (int k = 0; k < 2; k++) {
        assert_int_equal(t.i->memory_alloc(t.device, (size_t)info.memory_bytes * 2, &a), GPST_ERROR_DEVICE_MEMORY);
        assert_non_null(strstr(gpst_last_reason(), "memory"));
        assert_null(strstr(gpst_last_reason(), "oom_mb"));
        assert_string_not_equal(t.i->last_error(t.device), "injected fault");
        assert_int_equal(gpu_call_alloc(&t), GPST_OK);
    }
    test_device_close(&t);
}

static const char* gpu_program; /* this very program, for what needs a process of its own */

/* ---- loss --------------------------------------------------------------------- */

static void gpu_told_to_be_lost(void** state) {
    test_device t;
    test_note note;
    void* memory = NULL;
    (void)state;
    memset(&note, 0, sizeof note);
    gpu_open(&t, "lose_at=2");
    uint64_t* value = test_new_value(&t);
    test_launch_step(&t, t.stream, value, 1);
    assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &note), GPST_OK);
    assert_int_equal(t.i->launch(t.stream, &gpu_nothing_kernel, NULL, 0, NULL), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->memory_alloc(t.device, 8, &memory), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_ERROR_DEVICE_LOST);
    t.i->memory_free(t.device, value, sizeof *value);
    test_device_close(&t);
    assert_int_equal(gpsti_a32_load(&note.count), 1);
}

/* A kernel that traps takes the context with it, so this happens in a process of its own: the errors stick, pending
   notifications come with DEVICE_LOST, frees and destroys work, and nothing leaks. */
static int gpu_trap_in_child(void) {
    static const gpsti_kernel trap = {"trap", gpu_nothing_host, test_trap_gpu, NULL};
    gpsti_host host;
    gpsti_device* device = NULL;
    gpsti_stream* stream = NULL;
    void* memory = NULL;
    void* more = NULL;
    test_note note;
    memset(&note, 0, sizeof note);
    gpsti_host_init(&host, NULL, NULL);
    const gpsti_backend_i* i = gpsti_backend_gpu();
    if (i->device_open(&host, NULL, &device) != GPST_OK || i->stream_create(device, &stream) != GPST_OK ||
        i->memory_alloc(device, 64, &memory) != GPST_OK || i->launch(stream, &trap, NULL, 0, NULL) != GPST_OK ||
        i->stream_notify(stream, test_note_down, &note) != GPST_OK)
        return 2;
    if (i->stream_wait_idle(stream) != GPST_ERROR_DEVICE_LOST)
        return 3;
    fprintf(stderr, "as it must: %s\n", gpst_last_reason());
    if (i->memory_alloc(device, 64, &more) != GPST_ERROR_DEVICE_LOST)
        return 4;
    i->memory_free(device, memory, 64);
    i->stream_destroy(stream);
    i->device_close(device);
    if (gpsti_a32_load(&note.count) != 1 || note.result != GPST_ERROR_DEVICE_LOST || !note.reason[0])
        return 5;
    return gpsti_a64_load(&host.live_bytes) == 0 ? 0 : 6;
}

static void gpu_really_lost(void** state) {
    char command[1024];
    (void)state;
    if (getenv("GPST_NO_TRAP"))
        test_skip("compute-sanitizer would count what must happen there as errors");
    snprintf(command, sizeof command, "'%s' trap", gpu_program);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- between devices and processes --------------------------------------------- */

static void gpu_copies_between_devices(void** state) {
    const gpsti_backend_i* const i = gpsti_backend_gpu();
    gpsti_device* other = NULL;
    void *from = NULL, *to = NULL;
    uint8_t back[256];
    test_device t;
    (void)state;
    gpu_open(&t, NULL);
    assert_int_equal(i->device_open(&t.host, test_count_devices() > 1 ? "device=1" : NULL, &other), GPST_OK);
    assert_int_equal(i->memory_alloc(t.device, 1000003, &from), GPST_OK);
    assert_int_equal(i->memory_alloc(other, 1000003, &to), GPST_OK);
    assert_int_equal(i->memory_set(t.stream, from, 0x3C, 1000003), GPST_OK);
    assert_int_equal(i->copy_peer(t.stream, to, other, from, 1000003), GPST_OK);
    assert_int_equal(i->copy_peer(t.stream, NULL, other, NULL, 0), GPST_OK);
    assert_int_equal(i->copy_peer(t.stream, NULL, other, from, 1), GPST_ERROR_ARGUMENT);
    memset(back, 0xA5, sizeof back);
    assert_int_equal(i->copy(t.stream, GPSTI_COPY_D2H, back, (uint8_t*)to + 1000003 - 256, 256), GPST_OK);
    assert_int_equal(i->stream_wait_idle(t.stream), GPST_OK);
    for (int k = 0; k < 256; k++)
        assert_int_equal(back[k], 0x3C);
    i->memory_free(t.device, from, 1000003);
    i->memory_free(other, to, 1000003);
    i->device_close(other);
    test_device_close(&t);
}

/* There and back, each way on a stream of the device that gives, between places that are aligned to nothing; with one
   device it is its own peer. */
static void gpu_copies_to_a_peer_and_back(void** state) {
    enum { N = 300001, FROM = 5, FAR = 4099, BACK = 77, ROOM = N + 8192 };
    static uint8_t sent[ROOM], got[ROOM];
    const gpsti_backend_i* const i = gpsti_backend_gpu();
    uint64_t random = test_seed(71);
    gpsti_device* other = NULL;
    gpsti_stream* theirs = NULL;
    void *near_memory = NULL, *far_memory = NULL;
    test_device t;
    (void)state;
    gpu_open(&t, NULL);
    assert_int_equal(i->device_open(&t.host, test_count_devices() > 1 ? "device=1" : NULL, &other), GPST_OK);
    assert_int_equal(i->stream_create(other, &theirs), GPST_OK);
    assert_int_equal(i->memory_alloc(t.device, ROOM, &near_memory), GPST_OK);
    assert_int_equal(i->memory_alloc(other, ROOM, &far_memory), GPST_OK);
    uint8_t* const here = (uint8_t*)near_memory;
    uint8_t* const there = (uint8_t*)far_memory;
    for (int k = 0; k < ROOM; k++)
        sent[k] = (uint8_t)test_random(&random);
    assert_int_equal(i->memory_set(theirs, there, 0xA5, ROOM), GPST_OK);
    assert_int_equal(i->stream_wait_idle(theirs), GPST_OK);
    assert_int_equal(i->copy(t.stream, GPSTI_COPY_H2D, here, sent, ROOM), GPST_OK);
    assert_int_equal(i->copy_peer(t.stream, there + FAR, other, here + FROM, N), GPST_OK);
    assert_int_equal(i->memory_set(t.stream, here, 0x5A, ROOM), GPST_OK); /* behind the copy */
    assert_int_equal(i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal(i->copy_peer(theirs, here + BACK, t.device, there + FAR - 1, N + 2), GPST_OK);
    assert_int_equal(i->stream_wait_idle(theirs), GPST_OK);
    assert_int_equal(i->copy(t.stream, GPSTI_COPY_D2H, got, here, ROOM), GPST_OK);
    assert_int_equal(i->stream_wait_idle(t.stream), GPST_OK);
    assert_memory_equal(got + BACK + 1, sent + FROM, N);
    assert_true(got[BACK] == 0xA5 && got[BACK + 1 + N] == 0xA5); /* what lay around it there */
    for (int k = 0; k < ROOM; k++)
        assert_true((k >= BACK && k < BACK + N + 2) || got[k] == 0x5A);
    i->memory_free(t.device, here, ROOM);
    i->memory_free(other, there, ROOM);
    i->stream_destroy(theirs);
    i->device_close(other);
    test_device_close(&t);
}

/* The importing side: its exit status says what it saw. */
static int gpu_import_in_child(const char* hex) {
    const gpsti_backend_i* const i = gpsti_backend_gpu();
    unsigned char handle[64];
    uint8_t back[64];
    void* memory = NULL;
    gpsti_host host;
    gpsti_device* device = NULL;
    gpsti_stream* stream = NULL;
    for (int k = 0; k < 64; k++) {
        unsigned value = 0;
        if (sscanf(hex + 2 * k, "%2x", &value) != 1)
            return 2;
        handle[k] = (unsigned char)value;
    }
    gpsti_host_init(&host, NULL, NULL);
    if (i->device_open(&host, NULL, &device) != GPST_OK || i->stream_create(device, &stream) != GPST_OK)
        return 3;
    if (i->ipc_import(device, handle, &memory) != GPST_OK) {
        fprintf(stderr, "%s\n", gpst_last_reason());
        return 4;
    }
    memset(back, 0, sizeof back);
    if (i->copy(stream, GPSTI_COPY_D2H, back, (uint8_t*)memory + 4096, sizeof back) != GPST_OK ||
        i->stream_wait_idle(stream) != GPST_OK)
        return 5;
    i->ipc_close(device, memory);
    i->stream_destroy(stream);
    i->device_close(device);
    return back[0] == 0x5A && back[63] == 0x5A && gpsti_a64_load(&host.live_bytes) == 0 ? 0 : 6;
}

static void gpu_shares_memory(void** state) {
    const size_t bytes = (size_t)2 << 20;
    unsigned char handle[64];
    char command[1024], hex[129];
    void* memory = NULL;
    test_device t;
    (void)state;
    gpu_open(&t, NULL);
    assert_int_equal(t.i->memory_alloc(t.device, bytes, &memory), GPST_OK);
    assert_int_equal(t.i->memory_set(t.stream, memory, 0x5A, bytes), GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal(t.i->ipc_export(t.device, memory, handle), GPST_OK);
    for (int k = 0; k < 64; k++)
        snprintf(hex + 2 * k, 3, "%02x", handle[k]);
    snprintf(command, sizeof command, "'%s' import %s", gpu_program, hex);
    const int status = system(command);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    memset(handle, 0, sizeof handle); /* what is no handle is refused, and nothing sticks */
    void* none = NULL;
    assert_true(GPST_FAILED(t.i->ipc_import(t.device, handle, &none)));
    assert_int_equal(t.i->memory_set(t.stream, memory, 1, bytes), GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    t.i->memory_free(t.device, memory, bytes);
    test_device_close(&t);
}

/* ---- in a host application ------------------------------------------------------ */

static void gpu_leaves_the_device_current(void** state) {
    test_device t;
    const int n = test_count_devices();
    (void)state;
    for (int current = 0; current < n; current++) {
        char params[32];
        snprintf(params, sizeof params, "device=%d", n - 1 - current);
        test_set_device(current);
        gpu_open(&t, params);
        uint64_t* value = test_new_value(&t);
        test_launch_step(&t, t.stream, value, 5);
        assert_int_equal(test_get_value(&t, value), 5);
        assert_int_equal(test_current_device(), current);
        t.i->memory_free(t.device, value, sizeof *value);
        test_device_close(&t);
        assert_int_equal(test_current_device(), current);
    }
}

static void gpu_registers_foreign_memory(void** state) {
    const size_t bytes = (size_t)3 << 20;
    test_device t;
    (void)state;
    gpu_open(&t, NULL);
    void* memory = aligned_alloc(4096, bytes);
    assert_non_null(memory);
    assert_int_equal(t.i->host_register(t.device, memory, bytes), GPST_OK);
    assert_int_not_equal(t.i->host_register(t.device, memory, bytes), GPST_OK); /* it is already */
    assert_non_null(strstr(gpst_last_reason(), "host_register"));
    uint64_t* value = test_new_value(&t); /* and the error did not stick */
    test_launch_step(&t, t.stream, value, 5);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2H, memory, value, sizeof *value), GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal(*(uint64_t*)memory, 5);
    t.i->host_unregister(t.device, memory, bytes);
    assert_int_equal(t.i->host_register(t.device, memory, bytes), GPST_OK);
    t.i->host_unregister(t.device, memory, bytes);
    t.i->host_unregister(t.device, memory, bytes); /* an error that is nobody's: the host application's next check... */
    test_launch_step(&t, t.stream, value, 5);      /* ...which the test's kernels make, must not find it */
    assert_int_equal(test_get_value(&t, value), 20);
    t.i->memory_free(t.device, value, sizeof *value);
    free(memory);
    test_device_close(&t);
}

static void gpu_notifies_behind_slow_work(void** state) {
    test_device t;
    test_note note;
    test_gate_args args;
    gpsti_a32 gate;
    (void)state;
    memset(&note, 0, sizeof note);
    memset(&gate, 0, sizeof gate);
    gpu_open(&t, NULL);
    args.open = &gate;
    assert_int_equal(t.i->launch(t.stream, &test_gate, &args, sizeof args, NULL), GPST_OK);
    assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &note), GPST_OK);
    gpsti_sleep_ns(20000000);
    assert_int_equal(gpsti_a32_load(&note.count), 0);
    gpsti_a32_store(&gate, 1);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal(gpsti_a32_load(&note.count), 1);
    assert_int_equal(note.result, GPST_OK);
    test_device_close(&t);
}

/* What a notification sets going may ask for the next one while it is still being delivered: the note is free by then,
   and nothing is allocated. */
typedef struct gpu_slow_note {
    gpsti_a32 n_entered, go_on;
} gpu_slow_note;

static void gpu_slow_note_down(void* user_data, gpst_result result) {
    gpu_slow_note* const self = (gpu_slow_note*)user_data;
    (void)result;
    gpsti_a32_add(&self->n_entered, 1);
    while (!gpsti_a32_load(&self->go_on))
        gpsti_sleep_ns(100000);
}

static void gpu_notes_are_used_again(void** state) {
    test_device t;
    gpu_slow_note note;
    (void)state;
    memset(&note, 0, sizeof note);
    gpu_open(&t, NULL);
    const uint64_t live_bytes = gpsti_a64_load(&t.host.live_bytes);
    assert_int_equal(t.i->stream_notify(t.stream, gpu_slow_note_down, &note), GPST_OK);
    while (gpsti_a32_load(&note.n_entered) == 0)
        gpsti_sleep_ns(100000);
    assert_int_equal(t.i->stream_notify(t.stream, gpu_slow_note_down, &note), GPST_OK);
    assert_int_equal(gpsti_a64_load(&t.host.live_bytes), live_bytes);
    gpsti_a32_store(&note.go_on, 1);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal(gpsti_a32_load(&note.n_entered), 2);
    test_device_close(&t);
}

/* No tool counts streams, events and graphs that were never destroyed, but the process grows by them. */
static void gpu_gives_streams_and_graphs_back(void** state) {
    uint64_t resident_bytes[2] = {0, 0};
    test_device t;
    (void)state;
    gpu_open(&t, NULL);
    uint64_t* const value = test_new_value(&t);
    for (int n = 0; n < 2200; n++) {
        gpsti_stream* stream = NULL;
        gpsti_event* event = NULL;
        gpsti_graph* graph = NULL;
        if (n == 200)
            resident_bytes[0] = test_resident_bytes();
        assert_int_equal(t.i->stream_create(t.device, &stream), GPST_OK);
        assert_int_equal(t.i->event_create(t.device, &event), GPST_OK);
        assert_int_equal(t.i->event_record(event, stream), GPST_OK);
        assert_int_equal(t.i->graph_begin(stream), GPST_OK);
        test_launch_step(&t, stream, value, 1);
        assert_int_equal(t.i->graph_end(stream, &graph), GPST_OK);
        t.i->graph_destroy(graph);
        t.i->event_destroy(event);
        t.i->stream_destroy(stream);
    }
    resident_bytes[1] = test_resident_bytes();
    printf("%lld bytes more after 2000 streams, events and graphs\n",
           (long long)resident_bytes[1] - (long long)resident_bytes[0]);
    assert_true(resident_bytes[1] < resident_bytes[0] + 2000 * 512);
    t.i->memory_free(t.device, value, sizeof *value);
    test_device_close(&t);
}

/* The host application's legacy default stream, busy with something of its own, holds nobody up. */
static void gpu_does_not_wait_for_the_default_stream(void** state) {
    test_device t;
    test_gate_args args;
    gpsti_a32 gate;
    gpsti_event* event = NULL;
    (void)state;
    memset(&gate, 0, sizeof gate);
    gpu_open(&t, NULL);
    assert_int_equal(t.i->event_create(t.device, &event), GPST_OK);
    uint64_t* value = test_new_value(&t);
    args.open = &gate;
    assert_int_equal(test_gate_gpu(&args, NULL), GPST_OK);
    test_launch_step(&t, t.stream, value, 5);
    assert_int_equal(t.i->event_record(event, t.stream), GPST_OK);
    gpst_result result = GPST_ERROR_WOULD_BLOCK;
    for (int k = 0; k < 2000 && result == GPST_ERROR_WOULD_BLOCK; k++) {
        gpsti_sleep_ns(1000000);
        result = t.i->event_query(event);
    }
    gpsti_a32_store(&gate, 1);
    assert_int_equal(result, GPST_OK);
    t.i->event_destroy(event);
    t.i->memory_free(t.device, value, sizeof *value);
    test_device_close(&t);
}

/* Over more than one of the clock's steps, times go with the host's clock. */
static void gpu_clock_keeps_time(void** state) {
    test_device t;
    gpsti_event* events[5];
    int64_t device_ns[5], host_ns[5];
    (void)state;
    gpu_open(&t, NULL);
    for (int k = 0; k < 5; k++) {
        assert_int_equal(t.i->event_create(t.device, &events[k]), GPST_OK);
        if (k > 0)
            gpsti_sleep_ns(700000000);
        host_ns[k] = gpsti_now_ns();
        assert_int_equal(t.i->event_record(events[k], t.stream), GPST_OK);
        assert_int_equal(t.i->event_wait(events[k]), GPST_OK);
        assert_int_equal(t.i->event_time(events[k], &device_ns[k]), GPST_OK);
    }
    for (int k = 1; k < 5; k++) {
        const int64_t passed_ns = device_ns[k] - device_ns[0], wanted_ns = host_ns[k] - host_ns[0];
        int64_t again_ns = 0;
        printf("%lld ns by the host, %lld by the device\n", (long long)wanted_ns, (long long)passed_ns);
        assert_true(passed_ns > wanted_ns - 20000000 && passed_ns < wanted_ns + 20000000);
        assert_int_equal(t.i->event_time(events[k], &again_ns), GPST_OK); /* from before the present origin */
        assert_true(again_ns - device_ns[k] < 2000 && device_ns[k] - again_ns < 2000);
    }
    for (int k = 0; k < 5; k++)
        t.i->event_destroy(events[k]);
    test_device_close(&t);
}

int main(int n_arguments, char** arguments) {
    const struct CMUnitTest tests[] = {TEST_BACKEND_CONTRACT,
                                       cmocka_unit_test(gpu_parameters),
                                       cmocka_unit_test(gpu_faults),
                                       cmocka_unit_test(gpu_memory_ends),
                                       cmocka_unit_test(gpu_told_to_be_lost),
                                       cmocka_unit_test(gpu_really_lost),
                                       cmocka_unit_test(gpu_copies_between_devices),
                                       cmocka_unit_test(gpu_copies_to_a_peer_and_back),
                                       cmocka_unit_test(gpu_shares_memory),
                                       cmocka_unit_test(gpu_leaves_the_device_current),
                                       cmocka_unit_test(gpu_registers_foreign_memory),
                                       cmocka_unit_test(gpu_notifies_behind_slow_work),
                                       cmocka_unit_test(gpu_notes_are_used_again),
                                       cmocka_unit_test(gpu_gives_streams_and_graphs_back),
                                       cmocka_unit_test(gpu_does_not_wait_for_the_default_stream),
                                       cmocka_unit_test(gpu_clock_keeps_time)};
    gpu_program = arguments[0];
    if (n_arguments > 1)
        return n_arguments > 2 ? gpu_import_in_child(arguments[2]) : gpu_trap_in_child();
    if (!device_is_there(NULL))
        return GPST_TEST_SKIP;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
