/* tests/test_device.h -- one program on every backend: opens each device in turn, with an allocator that counts, and
   closes it with nothing left. GPUSTAGE_TEST_BACKEND=cuda has that one alone; a GPU build has its GPU as well. */
#ifndef GPST_TEST_DEVICE_H
#define GPST_TEST_DEVICE_H

#include "test_allocator.h"

#if defined(GPSTI_GPU)
#include "gpu_device.h"
#endif
#if !defined(GPST_TEST_AMALGAM)
#include "../core/device/device_internal.h"
#endif

#define N_DEVICES 4

/* NULL behind the last. */
static inline const char* device_name(int index) {
    static const char* names[N_DEVICES];
    if (!names[0]) {
        const char* const wanted = getenv("GPUSTAGE_TEST_BACKEND");
        names[0] = wanted ? wanted : "cpu";
        names[1] = wanted ? NULL : "sim:launch_us=0";
#if defined(GPSTI_GPU)
        names[2] = !wanted && device_is_there(NULL) ? TEST_GPU_BACKEND : NULL;
#endif
    }
    return names[index];
}

/* Where calls can be told to fail. */
static inline const char* device_with_faults(void) {
    const char* const wanted = getenv("GPUSTAGE_TEST_BACKEND");
    return wanted && strcmp(wanted, "cpu") != 0 && !strchr(wanted, ':') ? wanted : "sim";
}

typedef struct device_kit {
    test_memory memory;
    gpst_device* device;
    gpst_stream* stream;
    bool zero_copy, asynchronous;
} device_kit;

static inline gpst_result kit_open(device_kit* kit, const char* name) {
    const gpst_allocator hooks = test_memory_hooks(&kit->memory);
    gpst_device_info info;
    kit->stream = NULL;
    GPSTI_TRY(gpst_device_open_versioned(GPST_VERSION, sizeof info, name, &hooks, NULL, &kit->device));
    gpst_device_query_info(kit->device, &info);
    kit->zero_copy = info.zero_copy;
    kit->asynchronous = info.asynchronous;
    return GPST_OK;
}

static inline void kit_start(device_kit* kit, const char* name) {
    if (kit_open(kit, name) != GPST_OK || gpst_stream_create(kit->device, &kit->stream) != GPST_OK)
        fail_msg("%s: %s", name, gpst_last_reason());
}

static inline void kit_end(device_kit* kit) {
    gpst_stream_destroy(kit->stream);
    assert_int_equal(gpst_device_close(kit->device), GPST_OK);
    test_memory_check(&kit->memory);
}

/* A failure and its sentence. */
static inline void refused(gpst_result result, gpst_result wanted, const char* first, const char* second) {
    if (result != wanted)
        fail_msg("%s: wanted %s: %s", gpst_result_name(result), gpst_result_name(wanted), gpst_last_reason());
    test_reason_has(first, second);
    gpst_clear_reason();
}

static inline gpst_memory* memory_of(gpst_device* device, gpst_memory_kind kind, size_t bytes) {
    gpst_memory* memory = NULL;
    if (gpst_memory_create(device, kind, bytes, &memory) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    return memory;
}

#endif
