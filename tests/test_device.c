/* tests/test_device.c -- devices, memory, streams and events without a pipeline: what there is, what is refused, what
   fails and leaves nothing behind. tests/test_device_copy.c has what is put on streams. */
#include "test_device.h"

#include <sys/wait.h>
#include <unistd.h>

#if !defined(GPST_TEST_AMALGAM)
#include "../backends/sim_internal.h"
#endif

/* ---- which there are -------------------------------------------------------------------- */

static const gpst_device_entry* row_of(const gpst_device_entry* rows, uint32_t n, const char* name) {
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void test_list(void** state) {
    gpst_device_entry rows[32];
    uint32_t n = 77, again = 77;
    (void)state;
    refused(gpst_device_list(rows, 32, NULL), GPST_ERROR_ARGUMENT, "gpst_device_list: n=NULL", "");
    refused(gpst_device_list(NULL, 3, &n), GPST_ERROR_ARGUMENT, "gpst_device_list: out=NULL", "max=3");
    assert_int_equal(n, 0);
    memset(rows, 0xA5, sizeof rows);
    assert_int_equal(gpst_device_list(rows, 32, &n), GPST_OK);
    assert_string_equal(gpst_last_reason(), ""); /* what is absent is no failure */
    assert_true(n >= 3 && n < 32);
    assert_true(row_of(rows, n, "cpu")->available);
    assert_true(row_of(rows, n, "cpu")->memory_bytes > 0);
    for (uint32_t i = 0; i < n; i++) {
        gpst_device* device = NULL;
        const gpst_result result = gpst_device_open(rows[i].name, &device);
        assert_int_equal(rows[i].available, result == GPST_OK);
        assert_int_equal(rows[i].result, result);
        assert_int_equal(rows[i].reason[0] == 0, rows[i].available);
        assert_int_equal(rows[i].device_name[0] != 0, rows[i].available);
        assert_true(rows[i].compiled_in || strstr(rows[i].reason, "not compiled in"));
        assert_int_equal(gpst_device_close(device), GPST_OK);
    }
    memset(&rows[1], 0xA5, sizeof rows[1]);
    assert_int_equal(gpst_device_list(rows, 1, &again), GPST_OK);
    assert_int_equal(again, n);
    assert_int_equal((uint8_t)rows[1].name[0], 0xA5);
    assert_int_equal(gpst_device_list(NULL, 0, &again), GPST_OK);
    assert_int_equal(again, n);
}

static void test_open(void** state) {
    test_memory memory;
    gpst_allocator hooks = test_memory_hooks(&memory);
    gpst_logger logger = GPST_ZERO;
    gpst_device* device = (gpst_device*)&memory;
    gpst_device_info info;
    const size_t bytes = sizeof info;
    (void)state;
    refused(gpst_device_open("vulkan", &device), GPST_ERROR_ARGUMENT, "gpst_device_open: name=\"vulkan\"", "cuda");
    assert_null(device);
    device = (gpst_device*)&memory;
    refused(gpst_device_open("sim:no_such=1", &device), GPST_ERROR_ARGUMENT, "no_such", "");
    assert_null(device);
    refused(gpst_device_open("cpu:x=1", &device), GPST_ERROR_ARGUMENT, "it takes none", "");
    refused(gpst_device_open("cpu", NULL), GPST_ERROR_ARGUMENT, "gpst_device_open: out=NULL", "");
    refused(gpst_device_open_versioned(GPST_VERSION + 1, bytes, "cpu", NULL, NULL, &device), GPST_ERROR_VERSION,
            "gpst_device_open: version=", "");
    refused(gpst_device_open_versioned(GPST_VERSION, bytes + 8, "cpu", NULL, NULL, &device), GPST_ERROR_VERSION,
            "gpst_device_open: version=", "");
    hooks.free = NULL;
    refused(gpst_device_open_versioned(GPST_VERSION, bytes, "cpu", &hooks, NULL, &device), GPST_ERROR_ARGUMENT,
            "gpst_device_open: allocator.free=NULL", "");
    logger.threshold = (gpst_log_level)17;
    refused(gpst_device_open_versioned(GPST_VERSION, bytes, "cpu", NULL, &logger, &device), GPST_ERROR_ARGUMENT,
            "gpst_device_open: logger.threshold=17", "");
    assert_int_equal(gpst_device_close(NULL), GPST_OK);
    memset(&info, 0xA5, sizeof info);
    gpst_device_query_info(NULL, &info);
    assert_null(info.backend);
    assert_int_equal(info.memory_bytes, 0);
    gpst_device_query_info(NULL, NULL);
    assert_int_equal(gpst_device_open(NULL, &device), GPST_OK);
    gpst_device_query_info(device, &info);
    assert_non_null(strstr(info.reason, "auto: "));
    assert_string_not_equal(info.backend, "sim");
    assert_int_equal(gpst_device_close(device), GPST_OK);
}

static void test_info(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_device_info info;
        kit_start(&kit, device_name(d));
        gpst_device_query_info(kit.device, &info);
        assert_int_equal(strncmp(info.backend, device_name(d), strlen(info.backend)), 0);
        assert_true(info.name[0] && strstr(info.reason, "asked for by name"));
        assert_true(info.memory_bytes > 0 && info.memory_free_bytes <= info.memory_bytes);
        assert_int_equal(info.n_objects, 1);
        assert_true(info.allocation_count > 0 && info.live_bytes == gpsti_a64_load(&kit.memory.live_bytes));
        if (strcmp(info.backend, "cpu") == 0)
            assert_true(info.zero_copy && !info.asynchronous && !info.copies_peers);
        else
            assert_true(!info.zero_copy && info.asynchronous && info.n_copy_engines > 0);
        gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, 5000);
        refused(gpst_device_close(kit.device), GPST_ERROR_STATE, "gpst_device_close: 1 memories of 5000 bytes",
                "1 streams and events");
        gpst_memory_destroy(memory);
        refused(gpst_device_close(kit.device), GPST_ERROR_STATE, "gpst_device_close: 0 memories of 0 bytes",
                "1 streams and events");
        kit_end(&kit);
    }
}

/* ---- memory -------------------------------------------------------------------------------- */

static void test_memory_kinds(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_memory_info info;
        kit_start(&kit, device_name(d));
        for (int kind = GPST_MEMORY_HOST; kind <= GPST_MEMORY_DEVICE; kind++) {
            gpst_memory* const memory = memory_of(kit.device, (gpst_memory_kind)kind, 5000);
            uint8_t* const data = (uint8_t*)gpst_memory_data(memory);
            gpst_memory_query_info(memory, &info);
            assert_int_equal(info.kind, kind);
            assert_int_equal(info.bytes, 5000);
            assert_ptr_equal(info.data, data);
            assert_int_equal((uintptr_t)data % (kind == GPST_MEMORY_DEVICE ? 256 : 4096), 0);
            assert_true(!info.pinned || kind == GPST_MEMORY_PINNED);
            assert_true(kind != GPST_MEMORY_PINNED || info.pinned || info.reason[0]);
            if (kind != GPST_MEMORY_DEVICE) {
                for (int i = 0; i < 5000; i++)
                    assert_int_equal(data[i], 0);
                memset(data, 0xA5, 5000);
            }
            gpst_memory_destroy(memory);
        }
        kit_end(&kit);
    }
    gpst_memory_info none;
    memset(&none, 0xA5, sizeof none);
    gpst_memory_query_info(NULL, &none);
    assert_true(none.kind == GPST_MEMORY_INVALID && !none.data && none.bytes == 0);
    gpst_memory_query_info(NULL, NULL);
    assert_null(gpst_memory_data(NULL));
    gpst_memory_destroy(NULL);
}

static void test_memory_arguments(void** state) {
    device_kit kit;
    gpst_memory* memory = (gpst_memory*)&kit;
    static uint8_t bytes[100];
    const gpst_result bad = GPST_ERROR_ARGUMENT;
    (void)state;
    kit_start(&kit, device_name(0));
    refused(gpst_memory_create(NULL, GPST_MEMORY_HOST, 5, &memory), bad, "gpst_memory_create: device=NULL", "");
    assert_null(memory);
    refused(gpst_memory_create(kit.device, GPST_MEMORY_HOST, 5, NULL), bad, "gpst_memory_create: out=NULL", "");
    refused(gpst_memory_create(kit.device, GPST_MEMORY_INVALID, 5, &memory), bad, "gpst_memory_create: kind=0", "");
    refused(gpst_memory_create(kit.device, GPST_MEMORY_REGISTERED, 5, &memory), bad, "gpst_memory_create: kind=4", "");
    refused(gpst_memory_create(kit.device, GPST_MEMORY_DEVICE, 0, &memory), bad, "gpst_memory_create: bytes=0", "");
    refused(gpst_memory_create(kit.device, GPST_MEMORY_HOST, SIZE_MAX, &memory), bad, "gpst_memory_create: bytes=", "");
    memory = (gpst_memory*)&kit;
    refused(gpst_memory_register(NULL, bytes, 5, &memory), bad, "gpst_memory_register: device=NULL", "");
    assert_null(memory);
    refused(gpst_memory_register(kit.device, NULL, 5, &memory), bad, "gpst_memory_register: data=NULL", "bytes=5");
    refused(gpst_memory_register(kit.device, bytes, 0, &memory), bad, "gpst_memory_register: bytes=0", "");
    refused(gpst_memory_register(kit.device, bytes, 5, NULL), bad, "gpst_memory_register: out=NULL", "");
    kit_end(&kit);
}

/* Counted on sim, and refused the second time; on cpu nothing is locked, and that is said. */
static void test_registration(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_memory *memory = NULL, *again = NULL;
        gpst_memory_info info;
        uint8_t* const own = (uint8_t*)gpsti_aligned_alloc(16384, 4096);
        kit_start(&kit, device_name(d));
        const bool is_sim = strncmp(device_name(d), "sim", 3) == 0;
        const gpsti_sim_device* const sim = is_sim ? (const gpsti_sim_device*)kit.device->device : NULL;
        memset(own, 0x5A, 16384);
        assert_int_equal(gpst_memory_register(kit.device, own, 16384, &memory), GPST_OK);
        gpst_memory_query_info(memory, &info);
        assert_int_equal(info.kind, GPST_MEMORY_REGISTERED);
        assert_true(info.data == own && info.bytes == 16384);
        assert_int_equal(info.pinned, kit.asynchronous && !is_sim);
        assert_int_equal(info.pinned, info.reason[0] == 0);
        if (sim)
            assert_int_equal(sim->registered.n, 1);
        if (kit.asynchronous) {
            assert_true(GPST_FAILED(gpst_memory_register(kit.device, own, 4096, &again)));
            test_reason_has("gpst_memory_register: ", "host_register");
            assert_null(again);
        }
        if (sim) {
            refused(gpst_memory_register(kit.device, own + 16383, 100, &again), GPST_ERROR_ARGUMENT, "already", "");
            refused(gpst_memory_register(kit.device, own - 1, 2, &again), GPST_ERROR_ARGUMENT, "already", "");
            assert_int_equal(gpst_memory_register(kit.device, own - 4, 4, &again), GPST_OK);
            assert_int_equal(sim->registered.n, 2);
            gpst_memory_destroy(again);
        }
        gpst_memory_destroy(memory);
        if (sim)
            assert_int_equal(sim->registered.n, 0);
        assert_int_equal(own[16383], 0x5A);
        assert_int_equal(gpst_memory_register(kit.device, own, 16384, &memory), GPST_OK);
        gpst_memory_destroy(memory);
        kit_end(&kit);
        gpsti_aligned_free(own);
    }
}

static void test_out_of_device_memory(void** state) {
    device_kit kit;
    gpst_memory* more = (gpst_memory*)&kit;
    char name[64];
    (void)state;
    snprintf(name, sizeof name, "%s:oom_mb=1", device_with_faults());
    kit_start(&kit, name);
    gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, 600000);
    refused(gpst_memory_create(kit.device, GPST_MEMORY_DEVICE, 600000, &more), GPST_ERROR_DEVICE_MEMORY,
            "gpst_memory_create: backend ", "bytes=600000");
    assert_null(more);
    gpst_memory_destroy(memory);
    more = memory_of(kit.device, GPST_MEMORY_DEVICE, 600000);
    gpst_memory_destroy(more);
    kit_end(&kit);
}

/* ---- streams --------------------------------------------------------------------------------- */

static void test_wrap(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_stream *wrapped = NULL, *none = (gpst_stream*)&kit;
        gpst_event* event = NULL;
        int value = 0;
        kit_start(&kit, device_name(d));
        void* const native = gpst_stream_native(kit.stream);
        const bool has_native = native != NULL;
        if (!has_native) {
            refused(gpst_stream_wrap(kit.device, &value, &none), GPST_ERROR_ARGUMENT, "gpst_stream_wrap: native=",
                    "must be NULL");
            assert_null(none);
        }
        assert_int_equal(gpst_stream_wrap(kit.device, native, &wrapped), GPST_OK);
        assert_ptr_equal(gpst_stream_native(wrapped), native);
        gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, sizeof value);
        assert_int_equal(gpst_event_create(kit.device, &event), GPST_OK);
        assert_int_equal(gpst_fill(gpst_memory_data(memory), 7, sizeof value, wrapped), GPST_OK);
        assert_int_equal(gpst_event_record(event, wrapped), GPST_OK);
        gpst_stream_destroy(wrapped); /* and kit.stream is as it was */
        assert_int_equal(gpst_stream_wait(kit.stream, event), GPST_OK);
        assert_int_equal(gpst_copy(&value, gpst_memory_data(memory), sizeof value, kit.stream), GPST_OK);
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        assert_int_equal(value, 0x07070707);
        assert_int_equal(gpst_stream_wrap(kit.device, NULL, &wrapped), GPST_OK); /* the vendor's default stream */
        assert_int_equal(gpst_stream_synchronize(wrapped), GPST_OK);
        gpst_stream_destroy(wrapped);
        gpst_event_destroy(event);
        gpst_memory_destroy(memory);
        kit_end(&kit);
    }
    assert_null(gpst_stream_native(NULL));
    gpst_stream_destroy(NULL);
    gpst_event_destroy(NULL);
}

static void test_stream_arguments(void** state) {
    device_kit kit;
    gpst_stream* stream = (gpst_stream*)&kit;
    gpst_event* event = (gpst_event*)&kit;
    (void)state;
    kit_start(&kit, device_name(0));
    refused(gpst_stream_create(NULL, &stream), GPST_ERROR_ARGUMENT, "gpst_stream_create: device=NULL", "");
    assert_null(stream);
    refused(gpst_stream_create(kit.device, NULL), GPST_ERROR_ARGUMENT, "gpst_stream_create: out=NULL", "");
    stream = (gpst_stream*)&kit;
    refused(gpst_stream_wrap(NULL, NULL, &stream), GPST_ERROR_ARGUMENT, "gpst_stream_wrap: device=NULL", "");
    assert_null(stream);
    refused(gpst_stream_wrap(kit.device, NULL, NULL), GPST_ERROR_ARGUMENT, "gpst_stream_wrap: out=NULL", "");
    refused(gpst_event_create(NULL, &event), GPST_ERROR_ARGUMENT, "gpst_event_create: device=NULL", "");
    assert_null(event);
    refused(gpst_event_create(kit.device, NULL), GPST_ERROR_ARGUMENT, "gpst_event_create: out=NULL", "");
    kit_end(&kit);
}

/* ---- what fails ------------------------------------------------------------------------------- */

/* Everything once; the first failure. What was made is gone. */
static gpst_result use_all(gpst_device* device) {
    static uint8_t host[3000], own[3000];
    gpst_memory* memories[4] = {NULL, NULL, NULL, NULL};
    gpst_stream* streams[2] = {NULL, NULL};
    gpst_event* event = NULL;
    gpst_result result = GPST_OK;
    for (int k = 0; k < 3 && !GPST_FAILED(result); k++)
        result = gpst_memory_create(device, (gpst_memory_kind)(k + 1), 3000, &memories[k]);
    if (!GPST_FAILED(result))
        result = gpst_memory_register(device, own, sizeof own, &memories[3]);
    if (!GPST_FAILED(result))
        result = gpst_stream_create(device, &streams[0]);
    if (!GPST_FAILED(result))
        result = gpst_stream_wrap(device, NULL, &streams[1]);
    if (!GPST_FAILED(result))
        result = gpst_event_create(device, &event);
    void* const data = gpst_memory_data(memories[2]);
    if (!GPST_FAILED(result))
        result = gpst_copy(data, host, 3000, streams[0]);
    if (!GPST_FAILED(result))
        result = gpst_event_record(event, streams[0]);
    if (!GPST_FAILED(result))
        result = gpst_stream_wait(streams[1], event);
    if (!GPST_FAILED(result))
        result = gpst_copy_rows(gpst_memory_data(memories[1]), 100, data, 90, 50, 20, streams[1]);
    if (!GPST_FAILED(result))
        result = gpst_stream_synchronize(streams[1]);
    for (int k = 0; k < 2; k++) /* first: what they use goes next */
        gpst_stream_destroy(streams[k]);
    gpst_event_destroy(event);
    for (int k = 0; k < 4; k++)
        gpst_memory_destroy(memories[k]);
    return result;
}

static void test_every_allocation(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        uint64_t n = 0;
        bool refused_one = true;
        while (refused_one) {
            device_kit kit;
            assert_int_equal(kit_open(&kit, device_name(d)), GPST_OK);
            test_memory_refuse(&kit.memory, ++n);
            const gpst_result result = use_all(kit.device);
            refused_one = test_memory_refused(&kit.memory);
            test_memory_relent(&kit.memory);
            assert_int_equal(result, refused_one ? GPST_ERROR_MEMORY : GPST_OK);
            if (refused_one)
                test_reason_has("gpst_", "bytes");
            assert_int_equal(use_all(kit.device), GPST_OK);
            kit_end(&kit);
        }
        assert_true(n > 7);
    }
}

static void test_opening_without_memory(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++)
        for (uint64_t n = 1; n <= 3; n++) {
            test_memory memory;
            const gpst_allocator hooks = test_memory_hooks(&memory);
            gpst_device* device = (gpst_device*)&memory;
            test_memory_refuse(&memory, n);
            const gpst_result result = gpst_device_open_versioned(GPST_VERSION, sizeof(gpst_device_info),
                                                                  device_name(d), &hooks, NULL, &device);
            assert_int_equal(result, test_memory_refused(&memory) ? GPST_ERROR_MEMORY : GPST_OK);
            assert_int_equal(device == NULL, GPST_FAILED(result));
            assert_true(n > 2 || GPST_FAILED(result));
            assert_int_equal(gpst_device_close(device), GPST_OK);
            test_memory_check(&memory);
        }
}

static void test_every_fault(void** state) {
    static const char* const faults[] = {"alloc", "host_alloc", "copy", "event", "stream"};
    const char* const wanted = device_with_faults();
    (void)state;
    for (size_t f = 0; f < sizeof faults / sizeof faults[0]; f++) {
        bool failed = true;
        for (unsigned n = 1; failed; n++) {
            char name[64];
            device_kit kit;
            snprintf(name, sizeof name, "%s:fail_%s=%u", wanted, faults[f], n);
            assert_int_equal(kit_open(&kit, name), GPST_OK);
            const gpst_result result = use_all(kit.device);
            failed = GPST_FAILED(result);
            if (failed) {
                assert_int_equal(result, f == 0   ? GPST_ERROR_DEVICE_MEMORY
                                         : f == 1 ? GPST_ERROR_MEMORY
                                                  : GPST_ERROR_DEVICE);
                test_reason_has("gpst_", "injected fault at call");
            }
            assert_true(failed || n > (f == 0 ? 1u : 2u)); /* the second of each was there to fail */
            if (failed)
                assert_int_equal(use_all(kit.device), GPST_OK);
            kit_end(&kit);
        }
    }
}

/* The n-th of several registrations fails, in the backend or for want of memory: it alone, with a sentence; nothing of
   it is left, the others stay, and the same memory is taken the second time. */
static void test_every_registration(void** state) {
    enum { N_BLOCKS = 6, BLOCK_BYTES = 4096 };
    static uint8_t own[2 * N_BLOCKS][BLOCK_BYTES]; /* every other one: between them is memory that nobody registers */
    (void)state;
    for (int by_backend = 0; by_backend < 2; by_backend++) {
        bool refused_one = true;
        for (unsigned n = 1; refused_one; n++) {
            gpst_memory *memories[N_BLOCKS], *again = NULL;
            device_kit kit;
            char name[64];
            snprintf(name, sizeof name, by_backend ? "%s:fail_host_alloc=%u" : "%s", device_with_faults(), n);
            assert_int_equal(kit_open(&kit, name), GPST_OK);
            const bool is_sim = strncmp(name, "sim", 3) == 0;
            const gpsti_sim_device* const sim = is_sim ? (const gpsti_sim_device*)kit.device->device : NULL;
            if (!by_backend)
                test_memory_refuse(&kit.memory, n);
            unsigned n_failed = 0;
            for (unsigned k = 0; k < N_BLOCKS; k++) {
                memories[k] = (gpst_memory*)&kit;
                const gpst_result result = gpst_memory_register(kit.device, own[2 * k], BLOCK_BYTES, &memories[k]);
                if (GPST_FAILED(result)) {
                    assert_int_equal(result, GPST_ERROR_MEMORY);
                    test_reason_has("gpst_memory_register: ", by_backend ? "injected fault at call" : "bytes");
                    assert_null(memories[k]);
                    assert_true(!by_backend || k + 1 == n);
                    assert_true(!sim || sim->registered.n == k);
                    n_failed++;
                    assert_int_equal(gpst_memory_register(kit.device, own[2 * k], BLOCK_BYTES, &memories[k]), GPST_OK);
                }
                assert_true(!sim || sim->registered.n == k + 1);
            }
            refused_one = n_failed > 0;
            assert_true(n_failed <= 1 && (refused_one || n > N_BLOCKS));
            test_memory_relent(&kit.memory);
            for (unsigned k = 0; sim && refused_one && k < N_BLOCKS; k++) {
                refused(gpst_memory_register(kit.device, own[2 * k], BLOCK_BYTES, &again), GPST_ERROR_ARGUMENT,
                        "already", "");
                assert_null(again);
            }
            for (unsigned k = 0; k < N_BLOCKS; k++)
                gpst_memory_destroy(memories[k]);
            assert_true(!sim || sim->registered.n == 0);
            kit_end(&kit);
        }
    }
}

/* ---- a context's -------------------------------------------------------------------------------- */

static void test_of_a_context(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        test_memory memory;
        gpst_context_desc desc = GPST_ZERO;
        gpst_context_info before;
        gpst_context* context = NULL;
        gpst_memory *host = NULL, *more = (gpst_memory*)&desc;
        gpst_device_info info;
        desc.allocator = test_memory_hooks(&memory);
        desc.backend = device_name(d);
        desc.max_host_bytes = desc.max_device_bytes = 1 << 20;
        assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
        gpst_context_query_info(context, &before);
        gpst_device* const device = gpst_context_device(context);
        assert_non_null(device);
        assert_ptr_equal(device, gpst_context_device(context));
        gpst_device_query_info(device, &info);
        assert_string_equal(info.backend, before.backend);
        assert_string_equal(info.name, before.device_name);
        assert_string_equal(info.reason, before.backend_reason);
        assert_int_equal(use_all(device), GPST_OK);
        refused(gpst_device_close(device), GPST_ERROR_STATE, "gpst_device_close: the device is a context's", "");
        for (int kind = GPST_MEMORY_HOST; kind <= GPST_MEMORY_DEVICE; kind++) {
            host = memory_of(device, (gpst_memory_kind)kind, 600000);
            refused(gpst_memory_create(device, (gpst_memory_kind)kind, 600000, &more), GPST_ERROR_BUDGET,
                    "gpst_memory_create: bytes=600000", "budget");
            assert_null(more);
            gpst_memory_destroy(host);
        }
        assert_int_equal(gpsti_a64_load(&context->host_bytes), 0);
        assert_int_equal(gpsti_a64_load(&context->device_bytes), 0);
        gpst_context_destroy(context);
        test_memory_check(&memory);
    }
    assert_null(gpst_context_device(NULL));
}

/* What was charged for memory that is not made is free again. */
static void test_budget_after_a_fault(void** state) {
    static const char* const names[] = {"sim:fail_alloc=1", "sim:fail_host_alloc=1"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        test_memory memory;
        gpst_context_desc desc = GPST_ZERO;
        gpst_context* context = NULL;
        gpst_memory* more = NULL;
        desc.allocator = test_memory_hooks(&memory);
        desc.backend = names[k % 2];
        assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
        const gpst_memory_kind kind = k % 2 ? GPST_MEMORY_PINNED : GPST_MEMORY_DEVICE;
        if (k == 2)
            test_memory_refuse(&memory, 1); /* before the device is asked */
        assert_true(GPST_FAILED(gpst_memory_create(gpst_context_device(context), kind, 5000, &more)));
        assert_null(more);
        assert_int_equal(gpsti_a64_load(&context->host_bytes), 0);
        assert_int_equal(gpsti_a64_load(&context->device_bytes), 0);
        test_memory_relent(&memory);
        gpst_context_destroy(context);
        test_memory_check(&memory);
    }
}

/* In a child of fork nothing is asked of the device, and nothing is freed. */
static void test_fork(void** state) {
    device_kit kit;
    gpst_event* event = NULL;
    (void)state;
    kit_start(&kit, "cpu");
    gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_HOST, 100);
    assert_int_equal(gpst_event_create(kit.device, &event), GPST_OK);
    for (int round = 0; round < 2; round++) {
        gpsti_a32* const guard = kit.device->fork_guard;
        if (round > 0)
            kit.device->fork_guard = NULL; /* as on a system without one */
        const pid_t child = fork();
        if (child == 0) {
            gpst_stream* stream = NULL;
            gpst_memory* more = NULL;
            gpst_device_info info;
            bool good = gpst_stream_create(kit.device, &stream) == GPST_ERROR_FORKED && !stream;
            good = good && gpst_memory_create(kit.device, GPST_MEMORY_HOST, 5, &more) == GPST_ERROR_FORKED && !more;
            good = good && gpst_copy(gpst_memory_data(memory), "abc", 3, kit.stream) == GPST_ERROR_FORKED;
            good = good && gpst_event_record(event, kit.stream) == GPST_ERROR_FORKED;
            good = good && gpst_stream_synchronize(kit.stream) == GPST_ERROR_FORKED;
            good = good && gpst_device_close(kit.device) == GPST_ERROR_FORKED;
            gpst_stream_destroy(kit.stream);
            gpst_event_destroy(event);
            gpst_memory_destroy(memory);
            gpst_device_query_info(kit.device, &info);
            _exit(good && info.n_objects == 3 && strstr(gpst_last_reason(), "after fork") ? 0 : 1);
        }
        int status = -1;
        assert_true(child > 0 && waitpid(child, &status, 0) == child);
        assert_int_equal(status, 0);
        kit.device->fork_guard = guard;
    }
    gpst_event_destroy(event);
    gpst_memory_destroy(memory);
    kit_end(&kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_open),
        cmocka_unit_test(test_info),
        cmocka_unit_test(test_memory_kinds),
        cmocka_unit_test(test_memory_arguments),
        cmocka_unit_test(test_registration),
        cmocka_unit_test(test_out_of_device_memory),
        cmocka_unit_test(test_wrap),
        cmocka_unit_test(test_stream_arguments),
        cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_opening_without_memory),
        cmocka_unit_test(test_every_fault),
        cmocka_unit_test(test_every_registration),
        cmocka_unit_test(test_of_a_context),
        cmocka_unit_test(test_budget_after_a_fault),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
