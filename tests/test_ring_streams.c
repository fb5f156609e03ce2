/* tests/test_ring_streams.c -- rings on streams, on every backend: slots in each kind of memory, who waits for whose
   event, several readers, slots that are given up while a device fills them, the host's side. On sim a gate
   holds a stream, so that work that does not wait is seen to be early. */
#include "test_ring_streams.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/device/enqueue.h"
#endif

enum { N_FRAMES = 60 };

static uint8_t byte_of(uint32_t frame, size_t i) { return (uint8_t)(frame * 31 + i * 7 + i / 251); }

static void fill_frames(uint8_t* frames, uint32_t n) {
    for (uint32_t f = 0; f < n; f++)
        for (size_t i = 0; i < SLOT_BYTES; i++)
            frames[f * (size_t)SLOT_BYTES + i] = byte_of(f, i);
}

/* What is in page-locked memory is copied without the host. */
static uint8_t* pinned(ring_kit* kit, uint32_t n, gpst_memory** out) {
    if (gpst_memory_create(kit->device, GPST_MEMORY_PINNED, (size_t)n * SLOT_BYTES, out) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    memset(gpst_memory_data(*out), 0xA5, (size_t)n * SLOT_BYTES);
    return (uint8_t*)gpst_memory_data(*out);
}

/* ---- a gate: sim's streams stop there ------------------------------------------------------------ */

static gpsti_a32 gate_is_open;

static gpst_result gate_host(const void* args) {
    (void)args;
    while (!gpsti_a32_load(&gate_is_open))
        gpsti_sleep_ns(50000);
    return GPST_OK;
}

static void gate_put(ring_kit* kit, gpst_stream* stream) {
    static const gpst_kernel gate = {"gate", gate_host, NULL};
    gpsti_a32_store(&gate_is_open, 0);
    if (kit->is_sim)
        assert_int_equal(gpst_kernel_enqueue(&gate, NULL, 0, stream), GPST_OK);
}

/* The waiting stream does not come to its end while the gate is shut. */
static void gate_open(ring_kit* kit, gpst_stream* waiting) {
    gpst_event* end = NULL;
    assert_int_equal(gpst_event_create(kit->device, &end), GPST_OK);
    assert_int_equal(gpst_event_record(end, waiting), GPST_OK);
    const gpst_result early = kit->is_sim ? gpst_event_wait(end, 2 * TEST_MS) : GPST_ERROR_TIMEOUT;
    gpsti_a32_store(&gate_is_open, 1);
    assert_int_equal(early, GPST_ERROR_TIMEOUT);
    assert_int_equal(gpst_event_wait(end, GPST_FOREVER), GPST_OK);
    gpst_event_destroy(end);
}

/* ---- memory ------------------------------------------------------------------------------------ */

static void test_memory_kinds(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++)
        for (int k = 0; k < 6; k++) {
            const int kind = GPST_MEMORY_HOST + k / 2;
            ring_kit kit;
            gpst_ring_slot slots[3], taken;
            uint8_t seen[3];
            const bool on_device = kind == GPST_MEMORY_DEVICE;
            ring_begin(&kit, backend_at(d), 0);
            kit.desc.memory = (gpst_memory_kind)kind;
            kit.desc.streams = true;
            kit.desc.slot_bytes = 5000;
            kit.desc.align_bytes = 4096;
            kit.desc.adaptive = k % 2 == 1;
            kit.desc.min_depth = kit.desc.adaptive ? 3 : 0;
            ring_make(&kit);
            const uint64_t bytes = test_info(kit.ring).memory_bytes;
            assert_true(bytes >= 3 * 8192);
            assert_int_equal(gpsti_a64_load(&kit.context->device_bytes), on_device ? bytes : 0);
            assert_int_equal(gpsti_a64_load(&kit.context->host_bytes), on_device ? 0 : bytes);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slots[i]), GPST_OK);
                assert_int_equal((uintptr_t)slots[i].data % 4096, 0);
                if (on_device)
                    assert_int_equal(gpst_fill(slots[i].data, 0, 5000, kit.streams[0]), GPST_OK);
                const uint8_t value = (uint8_t)(40 + i); /* the last byte, from the host */
                assert_int_equal(gpst_copy((uint8_t*)slots[i].data + 4999, &value, 1, kit.streams[0]), GPST_OK);
                assert_int_equal(gpst_stream_synchronize(kit.streams[0]), GPST_OK);
            }
            for (int i = 0; i < 3; i++)
                assert_int_equal(gpst_ring_commit_on(kit.ring, &slots[i], kit.streams[0]), GPST_OK);
            for (int i = 0; i < 3; i++) {
                assert_int_equal(gpst_ring_take_on(kit.ring, 0, kit.streams[1], &taken), GPST_OK);
                assert_int_equal(gpst_copy(&seen[i], (uint8_t*)taken.data + 4999, 1, kit.streams[1]), GPST_OK);
                assert_int_equal(gpst_ring_release_on(kit.ring, &taken, kit.streams[1]), GPST_OK);
            }
            synchronize(&kit);
            assert_true(seen[0] == 40 && seen[1] == 41 && seen[2] == 42);
            ring_end(&kit);
        }
}

/* The memory of an adaptive ring follows its depth, whatever it is; a slot that the device uses keeps it meanwhile. */
static void test_adaptive_memory(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++)
        for (int k = 0; k < 2; k++) {
            ring_kit kit;
            gpst_ring_slot slots[4];
            ring_begin(&kit, backend_at(d), 0);
            kit.desc.max_slots = 4;
            kit.desc.adaptive = true;
            kit.desc.sharing = test_sharings[k];
            ring_make(&kit);
            const uint64_t bytes = test_info(kit.ring).memory_bytes / 2;
            assert_true(bytes >= SLOT_BYTES);
            test_decide(kit.ring, TEST_BURSTS);
            assert_int_equal(test_info(kit.ring).memory_bytes, 4 * bytes);
            assert_int_equal(gpsti_a64_load(&kit.context->device_bytes), 4 * bytes);
            gate_put(&kit, kit.streams[0]);
            for (int i = 0; i < 4; i++) {
                assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slots[i]), GPST_OK);
                assert_int_equal(gpst_fill(slots[i].data, i + 1, SLOT_BYTES, kit.streams[0]), GPST_OK);
                assert_int_equal(gpst_ring_commit_on(kit.ring, &slots[i], kit.streams[0]), GPST_OK);
            }
            for (int i = 0; i < 4; i++) {
                assert_int_equal(gpst_ring_take_on(kit.ring, 0, kit.streams[1], &slots[i]), GPST_OK);
                assert_int_equal(gpst_ring_release_on(kit.ring, &slots[i], kit.streams[1]), GPST_OK);
            }
            gpst_clear_reason();
            test_decide(kit.ring, TEST_IDLE);
            test_decide(kit.ring, TEST_IDLE);
            assert_string_equal(gpst_last_reason(), "");
            assert_int_equal(test_info(kit.ring).depth, 2);
            if (kit.is_sim)
                assert_int_equal(test_info(kit.ring).memory_bytes, 4 * bytes);
            gate_open(&kit, kit.streams[1]);
            synchronize(&kit);
            test_decide(kit.ring, TEST_IDLE);
            assert_int_equal(test_info(kit.ring).memory_bytes, 2 * bytes);
            ring_end(&kit);
        }
}

/* ---- who waits for whom -------------------------------------------------------------------------- */

/* A consumer's stream waits for the producer's; then the producer's for the consumer's. */
static void test_both_ways(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++)
        for (int k = 0; k < 2; k++) {
            ring_kit kit;
            gpst_memory *from, *to;
            gpst_ring_slot slot;
            ring_begin(&kit, backend_at(d), 0);
            kit.desc.max_slots = 1;
            kit.desc.sharing = test_sharings[k];
            ring_make(&kit);
            uint8_t* const frames = pinned(&kit, 2, &from);
            uint8_t* const seen = pinned(&kit, 2, &to);
            fill_frames(frames, 2);
            for (uint32_t f = 0; f < 2; f++) {
                if (f == 0)
                    gate_put(&kit, kit.streams[0]);
                assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
                assert_int_equal(gpst_copy(slot.data, frames + f * SLOT_BYTES, SLOT_BYTES, kit.streams[0]), GPST_OK);
                assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, kit.streams[0]), GPST_OK);
                if (f == 1)
                    gate_open(&kit,
                              kit.streams[0]); /* of the first download, which the second upload must not overtake */
                assert_int_equal(gpst_ring_take_on(kit.ring, 0, kit.streams[1], &slot), GPST_OK);
                if (f == 0 && kit.is_sim) {
                    assert_int_equal(gpst_ring_slot_wait(kit.ring, &slot, 0), GPST_ERROR_WOULD_BLOCK);
                    assert_int_equal(gpst_ring_slot_wait(kit.ring, &slot, TEST_MS), GPST_ERROR_TIMEOUT);
                    test_reason_has("gpst_ring_slot_wait: timeout_ns=1000000", "not done");
                }
                if (f == 0) {
                    gate_open(&kit, kit.streams[1]);
                    assert_int_equal(gpst_ring_slot_wait(kit.ring, &slot, GPST_FOREVER), GPST_OK);
                    gate_put(&kit, kit.streams[1]);
                }
                assert_int_equal(gpst_copy(seen + f * SLOT_BYTES, slot.data, SLOT_BYTES, kit.streams[1]), GPST_OK);
                assert_int_equal(gpst_ring_release_on(kit.ring, &slot, kit.streams[1]), GPST_OK);
            }
            synchronize(&kit);
            assert_memory_equal(seen, frames, 2 * SLOT_BYTES);
            gpst_memory_destroy(from);
            gpst_memory_destroy(to);
            ring_end(&kit);
        }
}

/* The download of a slot that is being filled waits. */
static void test_take_waits(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++)
        for (uint32_t n_readers = 0; n_readers < 3; n_readers++) {
            ring_kit kit;
            gpst_memory *from, *to;
            gpst_ring_reader* readers[2];
            gpst_ring_slot slot;
            ring_begin(&kit, backend_at(d), 0);
            kit.desc.max_readers = n_readers;
            ring_make(&kit);
            uint8_t* const frames = pinned(&kit, 1, &from);
            uint8_t* const seen = pinned(&kit, 2, &to);
            fill_frames(frames, 1);
            for (uint32_t r = 0; r < n_readers; r++)
                assert_int_equal(gpst_ring_reader_create(kit.ring, &readers[r]), GPST_OK);
            assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
            gate_put(&kit, kit.streams[0]);
            assert_int_equal(gpst_copy(slot.data, frames, SLOT_BYTES, kit.streams[0]), GPST_OK);
            assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, kit.streams[0]), GPST_OK);
            for (uint32_t r = 0; r < (n_readers ? n_readers : 1); r++) {
                gpst_stream* const stream = kit.streams[1 + r];
                assert_int_equal(n_readers ? gpst_ring_reader_take(readers[r], 0, stream, &slot)
                                           : gpst_ring_take_on(kit.ring, 0, stream, &slot),
                                 GPST_OK);
                assert_int_equal(gpst_copy(seen + r * SLOT_BYTES, slot.data, SLOT_BYTES, stream), GPST_OK);
                assert_int_equal(n_readers ? gpst_ring_reader_release(readers[r], &slot, stream)
                                           : gpst_ring_release_on(kit.ring, &slot, stream),
                                 GPST_OK);
            }
            gate_open(&kit, kit.streams[n_readers == 2 ? 2 : 1]);
            synchronize(&kit);
            for (uint32_t r = 0; r < (n_readers ? n_readers : 1); r++)
                assert_memory_equal(seen + r * SLOT_BYTES, frames, SLOT_BYTES);
            gpst_memory_destroy(from);
            gpst_memory_destroy(to);
            ring_end(&kit);
        }
}

/* Whichever of the readers is late, the next producer's stream waits for it; one that has left by then, too, and
   whoever joined in its place. */
static void test_acquire_waits(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++)
        for (int late = 0; late < 4; late++) {
            ring_kit kit;
            gpst_memory *from, *to;
            gpst_ring_reader* readers[2];
            gpst_ring_slot slot;
            ring_begin(&kit, backend_at(d), 0);
            kit.desc.max_readers = 2;
            kit.desc.max_slots = 1;
            ring_make(&kit);
            uint8_t* const frames = pinned(&kit, 2, &from);
            uint8_t* const seen = pinned(&kit, 2, &to);
            fill_frames(frames, 2);
            for (int r = 0; r < 2; r++)
                assert_int_equal(gpst_ring_reader_create(kit.ring, &readers[r]), GPST_OK);
            assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
            assert_int_equal(gpst_copy(slot.data, frames, SLOT_BYTES, kit.streams[0]), GPST_OK);
            assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, kit.streams[0]), GPST_OK);
            assert_int_equal(gpst_stream_synchronize(kit.streams[0]), GPST_OK);
            gate_put(&kit, kit.streams[1 + late % 2]);
            for (int r = 0; r < 2; r++) {
                assert_int_equal(gpst_ring_reader_take(readers[r], 0, kit.streams[1 + r], &slot), GPST_OK);
                assert_int_equal(gpst_copy(seen + r * SLOT_BYTES, slot.data, SLOT_BYTES, kit.streams[1 + r]), GPST_OK);
                assert_int_equal(gpst_ring_reader_release(readers[r], &slot, kit.streams[1 + r]), GPST_OK);
            }
            if (late >= 2) {
                gpst_ring_reader_destroy(readers[late - 2]);
                assert_int_equal(gpst_ring_reader_create(kit.ring, &readers[late - 2]), GPST_OK);
            }
            assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[3], &slot), GPST_OK);
            if (late == 1) { /* an abandoned slot is not forgotten by its users */
                gpst_ring_abandon(kit.ring, &slot);
                assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
            }
            gpst_stream* const next = kit.streams[late == 1 ? 0 : 3];
            assert_int_equal(gpst_copy(slot.data, frames + SLOT_BYTES, SLOT_BYTES, next), GPST_OK);
            assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, next), GPST_OK);
            gate_open(&kit, next);
            synchronize(&kit);
            for (int r = 0; r < 2; r++)
                assert_memory_equal(seen + r * SLOT_BYTES, frames, SLOT_BYTES);
            gpst_memory_destroy(from);
            gpst_memory_destroy(to);
            ring_end(&kit);
        }
}

/* A slot that is given up while it is filled: the next producer's stream waits for that one. So it does where a consumer
   takes the slot without a stream, and does not care. */
static void test_given_up(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++)
        for (int k = 0; k < 5; k++) {
            ring_kit kit;
            gpst_memory *from, *to;
            gpst_ring_reader* reader = NULL;
            gpst_ring_slot slot;
            ring_begin(&kit, backend_at(d), 0);
            kit.desc.max_slots = k < 2 || k == 4 ? 1 : 2;
            kit.desc.policy = k < 2 ? GPST_RING_DROP_OLDEST : k < 4 ? GPST_RING_LATEST_ONLY : GPST_RING_BLOCK;
            kit.desc.max_readers = (uint32_t)k % 2;
            ring_make(&kit);
            if (k % 2)
                assert_int_equal(gpst_ring_reader_create(kit.ring, &reader), GPST_OK);
            uint8_t* const frames = pinned(&kit, 3, &from);
            uint8_t* const seen = pinned(&kit, 1, &to);
            fill_frames(frames, 3);
            gate_put(&kit, kit.streams[0]);
            for (uint32_t f = 0; f < kit.desc.max_slots + 1; f++) {
                gpst_stream* const stream = kit.streams[f < kit.desc.max_slots ? 0 : 1];
                assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, stream, &slot), GPST_OK);
                assert_int_equal(gpst_copy(slot.data, frames + f * SLOT_BYTES, SLOT_BYTES, stream), GPST_OK);
                assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, stream), GPST_OK);
                if (k == 4 && f == 0) {
                    assert_int_equal(gpst_ring_take(kit.ring, 0, &slot), GPST_OK);
                    assert_int_equal(gpst_ring_release_on(kit.ring, &slot, kit.streams[3]), GPST_OK);
                }
            }
            assert_int_equal(k % 2 ? gpst_ring_reader_take(reader, 0, kit.streams[2], &slot)
                                   : gpst_ring_take_on(kit.ring, 0, kit.streams[2], &slot),
                             GPST_OK);
            assert_int_equal(gpst_copy(seen, slot.data, SLOT_BYTES, kit.streams[2]), GPST_OK);
            gate_open(&kit, kit.streams[2]);
            synchronize(&kit);
            assert_memory_equal(seen, frames + kit.desc.max_slots * SLOT_BYTES, SLOT_BYTES);
            gpst_memory_destroy(from);
            gpst_memory_destroy(to);
            ring_end(&kit);
        }
}

/* A producer and a consumer without streams, of page-locked slots, wait on the host. */
static void test_host_sides(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++) {
        ring_kit kit;
        gpst_memory *device_frames = NULL, *host_frames;
        gpst_ring_slot slot;
        ring_begin(&kit, backend_at(d), 0);
        kit.desc.memory = GPST_MEMORY_PINNED;
        kit.desc.streams = true;
        kit.desc.max_slots = 2;
        ring_make(&kit);
        uint8_t* const frames = pinned(&kit, 6, &host_frames);
        fill_frames(frames, 6);
        assert_int_equal(gpst_memory_create(kit.device, GPST_MEMORY_DEVICE, 6 * SLOT_BYTES, &device_frames), GPST_OK);
        uint8_t* const on_device = (uint8_t*)gpst_memory_data(device_frames);
        for (uint32_t f = 0; f < 6; f++) { /* up */
            assert_int_equal(gpst_ring_acquire(kit.ring, 0, &slot), GPST_OK);
            assert_int_equal(gpst_ring_slot_wait(kit.ring, &slot, GPST_FOREVER), GPST_OK);
            memcpy(slot.data, frames + f * SLOT_BYTES, SLOT_BYTES);
            gpst_ring_commit(kit.ring, &slot);
            assert_int_equal(gpst_ring_take_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
            assert_int_equal(gpst_copy(on_device + f * SLOT_BYTES, slot.data, SLOT_BYTES, kit.streams[0]), GPST_OK);
            assert_int_equal(gpst_ring_release_on(kit.ring, &slot, kit.streams[0]), GPST_OK);
        }
        assert_int_equal(gpst_stream_synchronize(kit.streams[0]), GPST_OK);
        for (uint32_t f = 0; f < 6; f++) { /* and down */
            assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[1], &slot), GPST_OK);
            assert_int_equal(gpst_copy(slot.data, on_device + f * SLOT_BYTES, SLOT_BYTES, kit.streams[1]), GPST_OK);
            assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, kit.streams[1]), GPST_OK);
            assert_int_equal(gpst_ring_take(kit.ring, 0, &slot), GPST_OK);
            assert_int_equal(gpst_ring_slot_wait(kit.ring, &slot, GPST_FOREVER), GPST_OK);
            assert_memory_equal(slot.data, frames + f * SLOT_BYTES, SLOT_BYTES);
            gpst_ring_release(kit.ring, &slot);
        }
        gpst_memory_destroy(device_frames);
        gpst_memory_destroy(host_frames);
        ring_end(&kit);
    }
}

/* A ring that goes while its streams are busy. */
static void test_destroy_waits(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++) {
        ring_kit kit;
        gpst_memory *from, *to;
        gpst_ring_slot slot;
        ring_begin(&kit, backend_at(d), 0);
        ring_make(&kit);
        uint8_t* const frames = pinned(&kit, 1, &from);
        uint8_t* const seen = pinned(&kit, 1, &to);
        fill_frames(frames, 1);
        assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
        assert_int_equal(gpst_copy(slot.data, frames, SLOT_BYTES, kit.streams[0]), GPST_OK);
        assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, kit.streams[0]), GPST_OK);
        assert_int_equal(gpst_ring_take_on(kit.ring, 0, kit.streams[1], &slot), GPST_OK);
        assert_int_equal(gpst_copy(seen, slot.data, SLOT_BYTES, kit.streams[1]), GPST_OK);
        assert_int_equal(gpst_ring_release_on(kit.ring, &slot, kit.streams[1]), GPST_OK);
        (void)gpsti_fail(GPST_ERROR_IO, "kept");
        gpst_ring_destroy(kit.ring);
        assert_string_equal(gpst_last_reason(), "kept");
        kit.ring = NULL;
        assert_memory_equal(seen, frames, SLOT_BYTES); /* without a call that waits for the stream */
        gpst_memory_destroy(from);
        gpst_memory_destroy(to);
        ring_end(&kit);
    }
}

/* ---- threads ---------------------------------------------------------------------------------------- */

typedef struct stream_side {
    ring_kit* kit;
    gpst_ring_reader* reader; /* NULL: the shared cursor */
    gpst_stream* stream;
    uint8_t *frames, *seen;
    uint32_t first; /* a producer's first frame; it makes every second one */
    gpsti_a32* producers_left;
    uint64_t n_done;
    gpst_result result;
} stream_side;

static void upload_frames(void* arg) {
    stream_side* const side = (stream_side*)arg;
    gpst_ring* const ring = side->kit->ring;
    for (uint32_t f = side->first; f < N_FRAMES && side->result == GPST_OK; f += 2) {
        gpst_ring_slot slot;
        side->result = gpst_ring_acquire_on(ring, GPST_FOREVER, side->stream, &slot);
        if (side->result == GPST_OK)
            side->result = gpst_copy(slot.data, side->frames + f * (size_t)SLOT_BYTES, SLOT_BYTES, side->stream);
        slot.words[0] = f;
        if (side->result == GPST_OK)
            side->result = gpst_ring_commit_on(ring, &slot, side->stream);
    }
    if (gpsti_a32_add(side->producers_left, UINT32_MAX) == 1)
        gpst_ring_close(ring);
}

static void download_frames(void* arg) {
    stream_side* const side = (stream_side*)arg;
    gpst_ring* const ring = side->kit->ring;
    gpst_result result = GPST_OK;
    while (result == GPST_OK) {
        gpst_ring_slot slot;
        result = side->reader ? gpst_ring_reader_take(side->reader, GPST_FOREVER, side->stream, &slot)
                              : gpst_ring_take_on(ring, GPST_FOREVER, side->stream, &slot);
        if (result != GPST_OK)
            break;
        result = gpst_copy(side->seen + slot.words[0] * SLOT_BYTES, slot.data, SLOT_BYTES, side->stream);
        if (result == GPST_OK)
            result = side->reader ? gpst_ring_reader_release(side->reader, &slot, side->stream)
                                  : gpst_ring_release_on(ring, &slot, side->stream);
        side->n_done++;
    }
    side->result = result;
}

/* Two producers, and two consumers who share the frames or see all of them, each on a stream of its own. */
static void test_threads(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && backend_at(d); d++)
        for (uint32_t n_readers = 0; n_readers <= 2; n_readers += 2) {
            ring_kit kit;
            stream_side sides[4];
            gpsti_thread threads[4];
            gpst_memory *from, *to[2];
            gpsti_a32 producers_left;
            ring_begin(&kit, backend_at(d), 0);
            kit.desc.max_readers = n_readers;
            ring_make(&kit);
            uint8_t* const frames = pinned(&kit, N_FRAMES, &from);
            uint8_t* seen[2];
            fill_frames(frames, N_FRAMES);
            gpsti_a32_store(&producers_left, 2);
            memset(sides, 0, sizeof sides);
            for (int i = 0; i < 4; i++) {
                sides[i].kit = &kit;
                sides[i].stream = kit.streams[i];
                sides[i].frames = frames;
                sides[i].first = (uint32_t)i % 2;
                sides[i].producers_left = &producers_left;
                if (i < 2)
                    seen[i] = pinned(&kit, N_FRAMES, &to[i]);
                else
                    sides[i].seen = seen[n_readers ? i - 2 : 0];
                if (i >= 2 && n_readers)
                    assert_int_equal(gpst_ring_reader_create(kit.ring, &sides[i].reader), GPST_OK);
            }
            for (int i = 0; i < 4; i++)
                assert_int_equal(
                    gpsti_thread_start(&threads[i], i < 2 ? upload_frames : download_frames, &sides[i], "side"),
                    GPST_OK);
            for (int i = 0; i < 4; i++)
                gpsti_thread_join(&threads[i]);
            synchronize(&kit);
            for (int i = 0; i < 4; i++)
                assert_int_equal(sides[i].result, i < 2 ? GPST_OK : GPST_END);
            assert_int_equal(sides[2].n_done + sides[3].n_done, n_readers ? 2 * N_FRAMES : N_FRAMES);
            assert_memory_equal(seen[0], frames, N_FRAMES * SLOT_BYTES);
            if (n_readers)
                assert_memory_equal(seen[1], frames, N_FRAMES * SLOT_BYTES);
            gpst_memory_destroy(from);
            gpst_memory_destroy(to[0]);
            gpst_memory_destroy(to[1]);
            ring_end(&kit);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory_kinds),  cmocka_unit_test(test_adaptive_memory),
        cmocka_unit_test(test_both_ways),     cmocka_unit_test(test_take_waits),
        cmocka_unit_test(test_acquire_waits), cmocka_unit_test(test_given_up),  cmocka_unit_test(test_host_sides),
        cmocka_unit_test(test_destroy_waits), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
