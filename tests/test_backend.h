/* tests/test_backend.h -- the device contract as tests, run over every backend
   by the test file that includes it: set test_backend_name and the rest first. */
#ifndef GPST_TEST_BACKEND_H
#define GPST_TEST_BACKEND_H

#include "test_allocator.h"

#include "gpu_kernels.h"

/* What the including file says about its backend. */
typedef struct test_backend {
    const gpsti_backend_i* i;
    const char* params;
    bool zero_copy, asynchronous;
    bool on_gpu; /* device memory is out of the host's reach; kernels run in their GPU form, and fail at submission */
} test_backend;
static const test_backend* test_subject(void);

typedef struct test_device {
    gpsti_host host;
    const gpsti_backend_i* i;
    gpsti_device* device;
    gpsti_stream* stream;
} test_device;

static void test_device_open(test_device* t, const gpsti_backend_i* i, const char* params) {
    memset(t, 0, sizeof(*t));
    gpsti_host_init(&t->host, NULL, NULL);
    t->i = i;
    assert_int_equal(i->device_open(&t->host, params, &t->device), GPST_OK);
    assert_ptr_equal(t->device->i, i);
    assert_int_equal(i->stream_create(t->device, &t->stream), GPST_OK);
}

/* Every test ends here: whatever it left behind is found. */
static void test_device_close(test_device* t) {
    t->i->stream_destroy(t->stream);
    t->i->device_close(t->device);
    assert_int_equal(gpsti_a64_load(&t->host.live_bytes), 0);
}

/* ---- kernels ----------------------------------------------------------------- */

static gpst_result test_step_host(const void* args, const gpsti_exec* exec) {
    const test_step_args* step = (const test_step_args*)args;
    (void)exec;
    *step->value = *step->value * 3 + step->add;
    return GPST_OK;
}
static const gpsti_kernel test_step = {"step", test_step_host, TEST_GPU(test_step_gpu), NULL};

/* Runs until the test opens it. */
static gpst_result test_gate_host(const void* args, const gpsti_exec* exec) {
    const test_gate_args* gate = (const test_gate_args*)args;
    (void)exec;
    while (!gpsti_a32_load((const gpsti_a32*)gate->open))
        gpsti_sleep_ns(100000);
    return GPST_OK;
}
static const gpsti_kernel test_gate = {"gate", test_gate_host, TEST_GPU(test_gate_gpu), NULL};

static gpst_result test_failing_host(const void* args, const gpsti_exec* exec) {
    (void)args;
    (void)exec;
    return gpsti_fail(GPST_ERROR_DEVICE, "test_failing: value=%d: fails always", 7);
}
static const gpsti_kernel test_failing = {"failing", test_failing_host, TEST_GPU(test_failing_gpu), NULL};

static gpst_result test_exec_host(const void* args, const gpsti_exec* exec) {
    uint32_t* seen;
    memcpy(&seen, args, sizeof(seen));
    *seen = exec->n_threads;
    return GPST_OK;
}
static const gpsti_kernel test_exec = {"exec", test_exec_host, NULL, NULL};

static void test_launch_step(test_device* t, gpsti_stream* stream, uint64_t* value, uint64_t add) {
    test_step_args args;
    args.value = value;
    args.add = add;
    assert_int_equal(t->i->launch(stream, &test_step, &args, sizeof(args), NULL), GPST_OK);
    memset(&args, 0xA5, sizeof(args)); /* the arguments were copied */
}

static uint64_t* test_new_value(test_device* t) {
    void* value = NULL;
    assert_int_equal(t->i->memory_alloc(t->device, sizeof(uint64_t), &value), GPST_OK);
    assert_int_equal(t->i->memory_set(t->stream, value, 0, sizeof(uint64_t)), GPST_OK);
    assert_int_equal(t->i->stream_wait_idle(t->stream), GPST_OK);
    return (uint64_t*)value;
}

static uint64_t test_get_value(test_device* t, const uint64_t* value) {
    uint64_t out = 0xA5A5A5A5A5A5A5A5u;
    assert_int_equal(t->i->copy(t->stream, GPSTI_COPY_D2H, &out, value, sizeof(out)), GPST_OK);
    assert_int_equal(t->i->stream_wait_idle(t->stream), GPST_OK);
    return out;
}

/* ---- memory ------------------------------------------------------------------ */

static void contract_describes_itself(void** state) {
    test_device t;
    gpsti_device_info info;
    (void)state;
    const gpsti_backend_i* i = test_subject()->i;
    assert_int_equal(i->size_bytes, sizeof(gpsti_backend_i));
    assert_int_equal(i->abi, GPSTI_BACKEND_ABI);
    test_device_open(&t, i, test_subject()->params);
    memset(&info, 0xA5, sizeof(info));
    i->device_query(t.device, &info);
    printf("%s: %s\n", i->name, info.name);
    assert_true(info.name[0] != 0);
    assert_int_equal(info.zero_copy, test_subject()->zero_copy);
    assert_int_equal(info.asynchronous, test_subject()->asynchronous);
    assert_true(info.memory_bytes > 0 && info.memory_free_bytes <= info.memory_bytes);
    uint64_t free_bytes = 0, total_bytes = 0;
    i->memory_info(t.device, &free_bytes, &total_bytes);
    assert_true(free_bytes > 0 && free_bytes <= total_bytes);
    assert_true(total_bytes == info.memory_bytes || !info.zero_copy); /* a driver may keep some to itself */
    assert_string_equal(i->last_error(t.device), "none");
    test_device_close(&t);
}

static void contract_device_memory(void** state) {
    static const size_t sizes[] = {1, 255, 4096, 4097, 1000003};
    void* ptrs[5];
    test_device t;
    size_t k;
    (void)state;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    for (k = 0; k < 5; ++k) {
        ptrs[k] = NULL;
        assert_int_equal(t.i->memory_alloc(t.device, sizes[k], &ptrs[k]), GPST_OK);
        assert_int_equal((uintptr_t)ptrs[k] % 256, 0);
        assert_int_equal(t.i->memory_set(t.stream, ptrs[k], (int)k, sizes[k]), GPST_OK); /* the last byte too */
    }
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    for (k = 0; k < 5; ++k)
        t.i->memory_free(t.device, ptrs[k], sizes[k]);
    t.i->memory_free(t.device, NULL, 0);
    assert_int_equal(t.i->memory_alloc(t.device, 0, &ptrs[0]), GPST_ERROR_ARGUMENT);
    test_device_close(&t);
}

static void contract_host_memory(void** state) {
    gpsti_host_memory memory;
    test_device t;
    int huge;
    (void)state;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    for (huge = 0; huge < 2; ++huge) {
        memset(&memory, 0xA5, sizeof(memory));
        assert_int_equal(t.i->host_alloc(t.device, 3000001, huge != 0, &memory), GPST_OK);
        assert_true(memory.bytes >= 3000001 && (uintptr_t)memory.ptr % 4096 == 0);
        assert_true(memory.pages != GPSTI_PAGES_NONE);
        assert_int_equal(memory.pinned, test_subject()->on_gpu);
        assert_true(memory.pinned || memory.why_not[0] != 0);
        memset(memory.ptr, 1, memory.bytes);
        t.i->host_free(t.device, &memory);
        assert_null(memory.ptr);
    }
    t.i->host_free(t.device, &memory); /* nothing there: nothing happens */
    assert_int_equal(t.i->host_alloc(t.device, 0, false, &memory), GPST_ERROR_ARGUMENT);
    test_device_close(&t);
}

static void contract_copies(void** state) {
    uint64_t seed = test_seed(11);
    test_device t;
    int round;
    (void)state;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    for (round = 0; round < 20; ++round) {
        const size_t bytes = 1 + (size_t)(test_random(&seed) % 200000);
        const size_t offset = (size_t)(test_random(&seed) % bytes);
        unsigned char* in = (unsigned char*)malloc(bytes);
        unsigned char* out = (unsigned char*)malloc(bytes);
        void* a = NULL;
        void* b = NULL;
        size_t k;
        for (k = 0; k < bytes; ++k)
            in[k] = (unsigned char)test_random(&seed);
        memset(out, 0xA5, bytes);
        assert_int_equal(t.i->memory_alloc(t.device, bytes, &a), GPST_OK);
        assert_int_equal(t.i->memory_alloc(t.device, bytes, &b), GPST_OK);
        assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, a, in, bytes), GPST_OK);
        assert_int_equal(t.i->memory_set(t.stream, b, 0x3C, bytes), GPST_OK);
        assert_int_equal(
            t.i->copy(t.stream, GPSTI_COPY_D2D, (char*)b + offset, (char*)a + offset, bytes - offset),
            GPST_OK);
        assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2H, out, b, bytes), GPST_OK);
        assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, a, NULL, 0), GPST_OK);
        assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
        for (k = 0; k < offset; ++k)
            assert_int_equal(out[k], 0x3C);
        assert_memory_equal(out + offset, in + offset, bytes - offset);
        t.i->memory_free(t.device, a, bytes);
        t.i->memory_free(t.device, b, bytes);
        free(in);
        free(out);
    }
    test_device_close(&t);
}

/* ---- streams, events, notifications ------------------------------------------ */

static void contract_stream_is_in_order(void** state) {
    test_device t;
    uint64_t expected = 0;
    uint64_t k;
    (void)state;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    uint64_t* value = test_new_value(&t);
    for (k = 0; k < 100; ++k) { /* more than a stream keeps tasks for */
        test_launch_step(&t, t.stream, value, k);
        expected = expected * 3 + k;
    }
    assert_int_equal(test_get_value(&t, value), expected);
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

static void contract_exec_reaches_the_kernel(void** state) {
    test_device t;
    uint32_t* seen = NULL;
    void* memory = NULL;
    gpsti_exec exec;
    (void)state;
    if (test_subject()->on_gpu) /* exec is about the CPU */
        return;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    assert_int_equal(t.i->memory_alloc(t.device, sizeof(*seen), &memory), GPST_OK);
    seen = (uint32_t*)memory;
    exec.n_threads = 3;
    exec.bytes = 0;
    assert_int_equal(t.i->launch(t.stream, &test_exec, &seen, sizeof(seen), &exec), GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal(*seen, 3);
    assert_int_equal(t.i->launch(t.stream, &test_exec, &seen, sizeof(seen), NULL), GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal(*seen, 1);
    t.i->memory_free(t.device, seen, sizeof(*seen));
    test_device_close(&t);
}

static void contract_events(void** state) {
    test_device t;
    gpsti_event* events[2];
    int64_t times[2];
    gpst_result result = GPST_OK;
    (void)state;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    uint64_t* value = test_new_value(&t);
    assert_int_equal(t.i->stream_query(t.stream), GPST_OK); /* nothing was ever asked of it */
    assert_int_equal(t.i->event_create(t.device, &events[0]), GPST_OK);
    assert_int_equal(t.i->event_create(t.device, &events[1]), GPST_OK);
    assert_int_equal(t.i->event_time(events[0], &times[0]), GPST_ERROR_STATE);
    assert_int_equal(t.i->event_query(events[0]), GPST_OK); /* never recorded: nothing to wait for */
    assert_int_equal(t.i->event_record(events[0], t.stream), GPST_OK);
    test_launch_step(&t, t.stream, value, 1);
    assert_int_equal(t.i->event_record(events[1], t.stream), GPST_OK);
    assert_int_equal(t.i->event_wait(events[1]), GPST_OK);
    while ((result = t.i->stream_query(t.stream)) == GPST_ERROR_WOULD_BLOCK)
        gpsti_yield();
    assert_int_equal(result, GPST_OK);
    assert_int_equal(t.i->event_query(events[0]), GPST_OK);
    assert_int_equal(t.i->event_query(events[1]), GPST_OK);
    assert_int_equal(t.i->event_time(events[0], &times[0]), GPST_OK);
    assert_int_equal(t.i->event_time(events[1], &times[1]), GPST_OK);
    assert_true(times[1] >= times[0]);
    assert_int_equal(t.i->event_record(events[0], t.stream), GPST_OK); /* again: a new time */
    assert_int_equal(t.i->event_wait(events[0]), GPST_OK);
    assert_int_equal(t.i->event_time(events[0], &times[0]), GPST_OK);
    assert_true(times[0] >= times[1]);
    t.i->event_destroy(events[0]);
    t.i->event_destroy(events[1]);
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

static void contract_streams_wait_for_events(void** state) {
    test_device t;
    gpsti_stream* other;
    gpsti_event* event;
    uint64_t k;
    uint64_t expected = 0;
    (void)state;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    uint64_t* value = test_new_value(&t);
    assert_int_equal(t.i->stream_create(t.device, &other), GPST_OK);
    assert_int_equal(t.i->event_create(t.device, &event), GPST_OK);
    assert_int_equal(t.i->stream_wait_event(other, event), GPST_OK); /* never recorded */
    for (k = 0; k < 50; ++k) {
        gpsti_stream* from = k & 1 ? other : t.stream;
        gpsti_stream* to = k & 1 ? t.stream : other;
        test_launch_step(&t, from, value, k);
        assert_int_equal(t.i->event_record(event, from), GPST_OK);
        assert_int_equal(t.i->stream_wait_event(to, event), GPST_OK);
        expected = expected * 3 + k;
    }
    assert_int_equal(t.i->stream_wait_idle(other), GPST_OK);
    assert_int_equal(test_get_value(&t, value), expected);
    t.i->stream_destroy(other);
    t.i->event_destroy(event);
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

/* However long that takes. */
static void contract_streams_wait_behind_slow_work(void** state) {
    test_device t;
    gpsti_stream* other;
    gpsti_event* events[2];
    test_gate_args args;
    gpsti_a32 gate;
    (void)state;
    if (!test_subject()->asynchronous)
        return;
    memset(&gate, 0, sizeof(gate));
    args.open = &gate;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    assert_int_equal(t.i->stream_create(t.device, &other), GPST_OK);
    for (int e = 0; e < 2; ++e)
        assert_int_equal(t.i->event_create(t.device, &events[e]), GPST_OK);
    assert_int_equal(t.i->launch(t.stream, &test_gate, &args, sizeof(args), NULL), GPST_OK);
    assert_int_equal(t.i->event_record(events[0], t.stream), GPST_OK);
    assert_int_equal(t.i->stream_wait_event(other, events[0]), GPST_OK);
    assert_int_equal(t.i->event_record(events[1], other), GPST_OK);
    gpsti_sleep_ns(20000000);
    assert_int_equal(t.i->event_query(events[1]), GPST_ERROR_WOULD_BLOCK);
    gpsti_a32_store(&gate, 1);
    assert_int_equal(t.i->stream_wait_idle(other), GPST_OK);
    assert_int_equal(t.i->event_query(events[0]), GPST_OK);
    for (int e = 0; e < 2; ++e)
        t.i->event_destroy(events[e]);
    t.i->stream_destroy(other);
    test_device_close(&t);
}

typedef struct test_note {
    const uint64_t* value;
    uint64_t seen;
    gpst_result result;
    gpsti_a32 count;
    char reason[GPSTI_REASON_BYTES];
} test_note;

static void test_note_down(void* user_data, gpst_result result) {
    test_note* note = (test_note*)user_data;
    note->seen = note->value ? *note->value : 0;
    note->result = result;
    gpsti_copy_text(note->reason, sizeof(note->reason), gpst_last_reason());
    gpsti_a32_add(&note->count, 1);
}

static void contract_notifications_follow_the_work(void** state) {
    test_device t;
    test_note notes[10];
    uint64_t copies[10]; /* of the value, in the order of the stream */
    uint64_t expected = 0;
    uint64_t k;
    (void)state;
    memset(notes, 0, sizeof(notes));
    test_device_open(&t, test_subject()->i, test_subject()->params);
    uint64_t* value = test_new_value(&t);
    for (k = 0; k < 10; ++k) {
        test_launch_step(&t, t.stream, value, k);
        assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2H, &copies[k], value, sizeof(copies[k])), GPST_OK);
        notes[k].value = &copies[k];
        notes[k].result = GPST_ERROR_INTERNAL;
        assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &notes[k]), GPST_OK);
    }
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    for (k = 0; k < 10; ++k) {
        expected = expected * 3 + k;
        assert_int_equal(gpsti_a32_load(&notes[k].count), 1);
        assert_int_equal(notes[k].result, GPST_OK);
        assert_int_equal(notes[k].seen, expected);
    }
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

/* By the submission or by the next notification or wait, but once. */
static void contract_a_failed_kernel_is_reported_once(void** state) {
    test_device t;
    test_note notes[2];
    (void)state;
    memset(notes, 0, sizeof(notes));
    test_device_open(&t, test_subject()->i, test_subject()->params);
    const gpst_result at_once = t.i->launch(t.stream, &test_failing, NULL, 0, NULL);
    const bool reason_at_once = strstr(gpst_last_reason(), "value=7") != NULL;
    gpst_clear_reason();
    assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &notes[0]), GPST_OK);
    assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &notes[1]), GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    if (test_subject()->asynchronous && !test_subject()->on_gpu) {
        assert_int_equal(at_once, GPST_OK);
        assert_int_equal(notes[0].result, GPST_ERROR_DEVICE);
        assert_non_null(strstr(notes[0].reason, "value=7"));
        assert_int_equal(t.i->launch(t.stream, &test_failing, NULL, 0, NULL), GPST_OK);
        assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_ERROR_DEVICE);
        assert_non_null(strstr(gpst_last_reason(), "value=7"));
    } else {
        assert_int_equal(at_once, GPST_ERROR_DEVICE);
        assert_true(reason_at_once);
        assert_int_equal(notes[0].result, GPST_OK);
    }
    assert_int_equal(notes[1].result, GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    test_device_close(&t);
}

/* ---- graphs and misuse ------------------------------------------------------- */

static void contract_graphs(void** state) {
    test_device t;
    gpsti_graph* graph = NULL;
    uint64_t in = 5;
    uint64_t out = 0xA5A5A5A5A5A5A5A5u;
    (void)state;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    uint64_t* value = test_new_value(&t);
    assert_int_equal(t.i->graph_begin(t.stream), GPST_OK);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, value, &in, sizeof(in)), GPST_OK);
    test_launch_step(&t, t.stream, value, 1);
    test_launch_step(&t, t.stream, value, 2);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_D2H, &out, value, sizeof(out)), GPST_OK);
    assert_int_equal(t.i->graph_end(t.stream, &graph), GPST_OK);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    assert_int_equal(out, 0xA5A5A5A5A5A5A5A5u); /* recorded, not run */
    for (in = 1; in <= 5; ++in) {
        assert_int_equal(t.i->graph_launch(graph, t.stream), GPST_OK);
        assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
        assert_int_equal(out, (in * 3 + 1) * 3 + 2);
    }
    assert_int_equal(t.i->graph_launch(graph, t.stream), GPST_OK);
    t.i->graph_destroy(graph); /* queued or not */
    t.i->graph_destroy(NULL);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_OK);
    t.i->memory_free(t.device, value, sizeof(*value));
    test_device_close(&t);
}

static void contract_misuse(void** state) {
    test_device t;
    gpsti_graph* graph = NULL;
    gpsti_event* event;
    char args[GPSTI_ARGS_BYTES + 1], wanted[32];
    gpsti_kernel no_host;
    test_note note;
    (void)state;
    memset(args, 0, sizeof(args));
    memset(&note, 0, sizeof(note));
    no_host.name = "none";
    no_host.host = NULL;
    test_device_open(&t, test_subject()->i, test_subject()->params);
    assert_int_equal(t.i->event_create(t.device, &event), GPST_OK);
    assert_int_equal(t.i->launch(t.stream, &test_exec, args, sizeof(args), NULL), GPST_ERROR_ARGUMENT);
    snprintf(wanted, sizeof(wanted), "args_bytes=%d", GPSTI_ARGS_BYTES + 1);
    assert_non_null(strstr(gpst_last_reason(), wanted));
    assert_int_equal(t.i->launch(t.stream, &test_exec, NULL, 8, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->launch(t.stream, NULL, args, 8, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->launch(t.stream, &no_host, args, 8, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->copy(t.stream, (gpsti_copy_kind)9, args, args, 1), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->copy(t.stream, GPSTI_COPY_H2D, NULL, args, 1), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->memory_set(t.stream, NULL, 0, 1), GPST_ERROR_ARGUMENT);
    assert_int_equal(t.i->graph_end(t.stream, &graph), GPST_ERROR_STATE);
    assert_int_equal(t.i->graph_begin(t.stream), GPST_OK);
    assert_int_equal(t.i->graph_begin(t.stream), GPST_ERROR_STATE);
    assert_int_equal(t.i->stream_notify(t.stream, test_note_down, &note), GPST_ERROR_STATE);
    assert_int_equal(gpsti_a32_load(&note.count), 0);
    assert_int_equal(t.i->event_record(event, t.stream), GPST_ERROR_STATE);
    assert_int_equal(t.i->stream_wait_event(t.stream, event), GPST_ERROR_STATE);
    assert_int_equal(t.i->stream_wait_idle(t.stream), GPST_ERROR_STATE);
    assert_int_equal(t.i->graph_end(t.stream, &graph), GPST_OK);
    assert_int_equal(t.i->graph_begin(t.stream), GPST_OK);
    assert_int_equal(t.i->graph_launch(graph, t.stream), GPST_ERROR_STATE);
    t.i->graph_destroy(graph);
    t.i->event_destroy(event);
    t.i->event_destroy(NULL);
    t.i->stream_destroy(NULL);
    test_device_close(&t); /* with a recording begun and never ended */
}

/* ---- allocation faults ------------------------------------------------------- */

static gpst_result test_use_everything(const gpsti_backend_i* i, const char* params, gpsti_host* host) {
    gpsti_device* device = NULL;
    gpsti_stream* stream = NULL;
    gpsti_event* event = NULL;
    gpsti_graph* graph = NULL;
    void* memory = NULL;
    int k;
    gpst_result result = i->device_open(host, params, &device);
    if (GPST_FAILED(result))
        return result;
    result = i->stream_create(device, &stream);
    if (!GPST_FAILED(result))
        result = i->event_create(device, &event);
    if (!GPST_FAILED(result))
        result = i->memory_alloc(device, 64, &memory);
    if (!GPST_FAILED(result))
        result = i->graph_begin(stream);
    if (!GPST_FAILED(result))
        result = i->memory_set(stream, memory, 1, 64);
    if (!GPST_FAILED(result))
        result = i->graph_end(stream, &graph);
    for (k = 0; k < 80 && !GPST_FAILED(result); ++k)
        result = i->graph_launch(graph, stream);
    i->stream_destroy(stream);
    i->event_destroy(event);
    i->graph_destroy(graph);
    i->memory_free(device, memory, 64);
    i->device_close(device);
    return result;
}

static void contract_survives_every_allocation_failure(void** state) {
    uint64_t n;
    gpst_result result = GPST_ERROR_MEMORY;
    (void)state;
    for (n = 1; GPST_FAILED(result); ++n) {
        test_memory memory;
        gpsti_host host;
        const gpst_allocator hooks = test_memory_hooks(&memory);
        test_memory_refuse(&memory, n);
        gpsti_host_init(&host, &hooks, NULL);
        gpst_clear_reason();
        result = test_use_everything(test_subject()->i, test_subject()->params, &host);
        assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
        assert_true(result == GPST_OK || gpst_last_reason()[0]);
        assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
        test_memory_check(&memory);
        assert_true(n < 50);
    }
    assert_true(n > 4);
}

#define TEST_BACKEND_CONTRACT                                                                              \
    cmocka_unit_test(contract_describes_itself), cmocka_unit_test(contract_device_memory),                 \
        cmocka_unit_test(contract_host_memory), cmocka_unit_test(contract_copies),                         \
        cmocka_unit_test(contract_stream_is_in_order), cmocka_unit_test(contract_exec_reaches_the_kernel), \
        cmocka_unit_test(contract_events), cmocka_unit_test(contract_streams_wait_for_events),             \
        cmocka_unit_test(contract_streams_wait_behind_slow_work),                                          \
        cmocka_unit_test(contract_notifications_follow_the_work),                                          \
        cmocka_unit_test(contract_a_failed_kernel_is_reported_once), cmocka_unit_test(contract_graphs),    \
        cmocka_unit_test(contract_misuse), cmocka_unit_test(contract_survives_every_allocation_failure)

#endif
