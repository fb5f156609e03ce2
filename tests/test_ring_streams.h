/* tests/test_ring_streams.h -- a ring on streams under test, in a context of its own, on any backend. */
#ifndef GPST_TEST_RING_STREAMS_H
#define GPST_TEST_RING_STREAMS_H

#include "test_device.h"

#include "test_ring.h"

enum { N_STREAMS = 4, SLOT_BYTES = 50000 };

typedef struct ring_kit {
    test_memory memory;
    test_log log;
    gpst_context* context;
    gpst_device* device;
    gpst_ring_desc desc;
    gpst_ring* ring;
    gpst_stream* streams[N_STREAMS];
    bool is_sim;
} ring_kit;

static inline void ring_begin(ring_kit* kit, const char* backend, uint64_t max_device_bytes) {
    gpst_context_desc context = GPST_ZERO;
    memset(kit, 0, sizeof *kit);
    context.allocator = test_memory_hooks(&kit->memory);
    context.logger = test_log_hooks(&kit->log);
    context.n_workers = 1;
    context.backend = backend;
    context.max_device_bytes = max_device_bytes;
    if (gpst_context_create(&context, &kit->context) != GPST_OK)
        fail_msg("%s: %s", backend, gpst_last_reason());
    kit->device = gpst_context_device(kit->context);
    kit->is_sim = strncmp(backend, "sim", 3) == 0;
    for (int i = 0; i < N_STREAMS; i++)
        assert_int_equal(gpst_stream_create(kit->device, &kit->streams[i]), GPST_OK);
    kit->desc.max_slots = 3;
    kit->desc.slot_bytes = SLOT_BYTES;
    kit->desc.memory = GPST_MEMORY_DEVICE;
}

static inline void ring_make(ring_kit* kit) {
    if (gpst_ring_create(kit->context, &kit->desc, &kit->ring) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
}

static inline void ring_end(ring_kit* kit) {
    gpst_ring_destroy(kit->ring);
    for (int i = 0; i < N_STREAMS; i++)
        gpst_stream_destroy(kit->streams[i]);
    gpst_context_trim(kit->context);
    assert_int_equal(gpsti_a64_load(&kit->context->device_bytes) + gpsti_a64_load(&kit->context->host_bytes), 0);
    gpst_context_destroy(kit->context);
    test_memory_check(&kit->memory);
    assert_int_equal(gpsti_a32_load(&kit->log.n_errors), 0);
}

static inline void synchronize(ring_kit* kit) {
    for (int i = 0; i < N_STREAMS; i++)
        assert_int_equal(gpst_stream_synchronize(kit->streams[i]), GPST_OK);
}

/* Each backend, sim with slow and uneven copies. */
static inline const char* backend_at(int d) {
    const char* const name = device_name(d);
    return name && strncmp(name, "sim", 3) == 0 ? "sim:launch_us=0,h2d_gbps=0.4,d2h_gbps=0.3,jitter_pct=60,seed=7"
                                                : name;
}

#endif
