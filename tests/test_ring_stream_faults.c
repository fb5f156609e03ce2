/* tests/test_ring_stream_faults.c -- rings on streams: what is refused, and what is left when the device, its memory or
   its events fail. */
#include "test_ring_streams.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/device/enqueue.h"
#endif

static void test_budget(void** state) {
    ring_kit kit;
    (void)state;
    ring_begin(&kit, device_name(0), (uint64_t)4 << 20);
    kit.desc.slot_bytes = (size_t)1 << 20;
    kit.desc.max_slots = 5;
    assert_int_equal(gpst_ring_create(kit.context, &kit.desc, &kit.ring), GPST_ERROR_BUDGET);
    assert_null(kit.ring);
    test_reason_has("gpst_ring_create: ", "max_device_bytes");
    kit.desc.max_slots = 3;
    ring_make(&kit);
    ring_end(&kit);
}

/* ---- arguments ----------------------------------------------------------------------------------- */

static void test_descs(void** state) {
    ring_kit kit;
    (void)state;
    ring_begin(&kit, device_name(0), 0);
    kit.desc.memory = GPST_MEMORY_REGISTERED;
    refused(gpst_ring_create(kit.context, &kit.desc, &kit.ring), GPST_ERROR_ARGUMENT, "gpst_ring_create: ", "memory=4");
    kit.desc.memory = GPST_MEMORY_PINNED;
    ring_make(&kit);
    ring_end(&kit);
}

static void test_streams_refused(void** state) {
    ring_kit kit, other;
    gpst_ring_slot slot, none;
    gpst_ring_reader* reader = NULL;
    (void)state;
    ring_begin(&other, "cpu", 0);
    for (int k = 0; k < 3; k++) { /* another device's; none has events; the same of readers */
        ring_begin(&kit, "cpu", 0);
        kit.desc.memory = k == 1 ? GPST_MEMORY_PINNED : GPST_MEMORY_DEVICE;
        kit.desc.max_readers = k == 2;
        ring_make(&kit);
        gpst_stream* const stream = k == 1 ? kit.streams[0] : other.streams[0];
        const gpst_result wanted = k == 1 ? GPST_ERROR_STATE : GPST_ERROR_ARGUMENT;
        const char* const text = k == 1 ? "desc.streams" : "gpst_context_device";
        if (k == 2)
            assert_int_equal(gpst_ring_reader_create(kit.ring, &reader), GPST_OK);
        refused(gpst_ring_acquire_on(kit.ring, 0, stream, &slot), wanted, "gpst_ring_acquire_on: stream", text);
        assert_null(slot.data);
        assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, NULL, &slot), GPST_OK);
        refused(gpst_ring_commit_on(kit.ring, &slot, stream), wanted, "gpst_ring_commit_on: stream", text);
        assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, NULL), GPST_OK); /* it was held all the time */
        refused(gpst_ring_commit_on(kit.ring, &slot, NULL), GPST_ERROR_ARGUMENT, "gpst_ring_commit_on: slot.id=0", "");
        if (k == 2) {
            refused(gpst_ring_take_on(kit.ring, 0, NULL, &slot), GPST_ERROR_STATE,
                    "gpst_ring_take_on: ", "max_readers");
            refused(gpst_ring_reader_take(reader, 0, stream, &slot), wanted, "gpst_ring_reader_take: stream", text);
            assert_int_equal(gpst_ring_reader_take(reader, 0, NULL, &slot), GPST_OK);
            refused(gpst_ring_reader_release(reader, &slot, stream), wanted, "gpst_ring_reader_release: stream", text);
            assert_int_equal(gpst_ring_reader_release(reader, &slot, kit.streams[0]), GPST_OK);
        } else {
            refused(gpst_ring_take_on(kit.ring, 0, stream, &slot), wanted, "gpst_ring_take_on: stream", text);
            assert_int_equal(gpst_ring_take_on(kit.ring, 0, NULL, &slot), GPST_OK);
            refused(gpst_ring_release_on(kit.ring, &slot, stream), wanted, "gpst_ring_release_on: stream", text);
            assert_int_equal(gpst_ring_slot_wait(kit.ring, &slot, 0), GPST_OK); /* nothing was recorded */
            assert_int_equal(gpst_ring_release_on(kit.ring, &slot, NULL), GPST_OK);
            refused(gpst_ring_release_on(kit.ring, &slot, NULL), GPST_ERROR_ARGUMENT, "slot.id=0", "");
        }
        memset(&none, 0, sizeof none);
        refused(gpst_ring_slot_wait(kit.ring, &none, 0), GPST_ERROR_ARGUMENT, "gpst_ring_slot_wait: slot.id=0", "");
        refused(gpst_ring_slot_wait(kit.ring, NULL, 0), GPST_ERROR_ARGUMENT, "slot=NULL", "");
        refused(gpst_ring_slot_wait(NULL, &slot, 0), GPST_ERROR_ARGUMENT, "ring=NULL", "");
        refused(gpst_ring_acquire_on(NULL, 0, NULL, &slot), GPST_ERROR_ARGUMENT, "ring=NULL", "");
        refused(gpst_ring_take_on(NULL, 0, NULL, &slot), GPST_ERROR_ARGUMENT, "ring=NULL", "");
        refused(gpst_ring_commit_on(NULL, &slot, NULL), GPST_ERROR_ARGUMENT, "ring=NULL", "");
        refused(gpst_ring_release_on(NULL, &slot, NULL), GPST_ERROR_ARGUMENT, "ring=NULL", "");
        assert_int_equal(test_info(kit.ring).taken, 1);
        ring_end(&kit);
    }
    ring_end(&other);
}

/* ---- faults --------------------------------------------------------------------------------------------- */

static void with_fault(char* text, size_t bytes, const char* fault, int n) {
    snprintf(text, bytes, "%s:%s=%d", device_with_faults(), fault, n);
}

/* Nothing is left of a ring that could not be made; the next one can. */
static void test_create_faults(void** state) {
    static const char* const faults[] = {"fail_event", "fail_alloc"};
    (void)state;
    for (int k = 0; k < 2; k++)
        for (int n = 1; n <= (k == 0 ? 9 : 1); n++) {
            ring_kit kit;
            char backend[64];
            with_fault(backend, sizeof backend, faults[k], n);
            ring_begin(&kit, backend, 0);
            kit.desc.max_readers = 2;
            gpst_clear_reason();
            const gpst_result result = gpst_ring_create(kit.context, &kit.desc, &kit.ring);
            assert_int_equal(result, k == 0 ? GPST_ERROR_DEVICE : GPST_ERROR_DEVICE_MEMORY);
            assert_null(kit.ring);
            test_reason_has("gpst_ring_create: ", "");
            ring_make(&kit);
            ring_end(&kit);
        }
}

/* What cannot be recorded changes nothing: the slot is held, and may go another way. */
static void test_record_faults(void** state) {
    (void)state;
    for (int n = 7; n <= 8; n++) { /* behind the 6 events of 3 slots: the commit's record, the release's */
        ring_kit kit;
        gpst_ring_slot slot;
        char backend[64];
        with_fault(backend, sizeof backend, "fail_event", n);
        ring_begin(&kit, backend, 0);
        ring_make(&kit);
        assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
        if (n == 7) {
            refused(gpst_ring_commit_on(kit.ring, &slot, kit.streams[0]), GPST_ERROR_DEVICE,
                    "gpst_ring_commit_on: ", "");
            assert_non_null(slot.data);
            assert_int_equal(test_info(kit.ring).committed, 0);
        }
        assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, kit.streams[0]), GPST_OK);
        assert_int_equal(gpst_ring_take_on(kit.ring, 0, kit.streams[1], &slot), GPST_OK);
        if (n == 8) {
            refused(gpst_ring_release_on(kit.ring, &slot, kit.streams[1]), GPST_ERROR_DEVICE,
                    "gpst_ring_release_on: ", "");
            assert_non_null(slot.data);
        }
        assert_int_equal(gpst_ring_release_on(kit.ring, &slot, kit.streams[1]), GPST_OK);
        for (int i = 0; i < 3; i++)
            assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
        ring_end(&kit);
    }
}

static gpst_result lose_host(const void* args) {
    (void)args;
    return GPST_OK;
}

/* On a device that is gone every call says so, nobody hangs, and no slot is lost. */
static void test_lost(void** state) {
    static const gpst_kernel kernel = {"lose", lose_host, NULL};
    ring_kit kit;
    gpst_ring_slot slot, held;
    gpst_ring_reader* reader = NULL;
    (void)state;
    if (strcmp(device_with_faults(), "sim") != 0)
        return; /* a kernel that has a form for it would be needed */
    ring_begin(&kit, "sim:lose_at=1", 0);
    kit.desc.max_readers = 1;
    ring_make(&kit);
    assert_int_equal(gpst_ring_reader_create(kit.ring, &reader), GPST_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK);
        assert_int_equal(gpst_ring_commit_on(kit.ring, &slot, kit.streams[0]), GPST_OK);
    }
    assert_int_equal(gpst_ring_reader_take(reader, 0, kit.streams[1], &slot), GPST_OK);
    assert_int_equal(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &held), GPST_OK);
    (void)gpst_kernel_enqueue(&kernel, NULL, 0, kit.streams[0]);
    (void)gpst_stream_synchronize(kit.streams[0]);
    refused(gpst_ring_commit_on(kit.ring, &held, kit.streams[0]), GPST_ERROR_DEVICE_LOST, "gpst_ring_commit_on: ", "");
    refused(gpst_ring_reader_release(reader, &slot, kit.streams[1]), GPST_ERROR_DEVICE_LOST,
            "gpst_ring_reader_release: ", "");
    assert_int_equal(gpst_ring_reader_release(reader, &slot, NULL), GPST_OK);
    refused(gpst_ring_reader_take(reader, 0, kit.streams[1], &slot), GPST_ERROR_DEVICE_LOST,
            "gpst_ring_reader_take: ", "");
    assert_null(slot.data);
    assert_int_equal(gpst_ring_reader_take(reader, 0, NULL, &slot), GPST_ERROR_WOULD_BLOCK); /* that one is lost */
    gpst_ring_abandon(kit.ring, &held);
    refused(gpst_ring_acquire_on(kit.ring, 0, kit.streams[0], &slot), GPST_OK, "", "");
    gpst_ring_abandon(kit.ring, &slot);
    for (int i = 0; i < 3; i++)
        assert_int_equal(gpst_ring_acquire(kit.ring, 0, &slot), GPST_OK);
    ring_end(&kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_budget),          cmocka_unit_test(test_descs),
        cmocka_unit_test(test_streams_refused), cmocka_unit_test(test_create_faults),
        cmocka_unit_test(test_record_faults),   cmocka_unit_test(test_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
