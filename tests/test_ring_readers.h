/* tests/test_ring_readers.h -- a ring with readers under test. */
#ifndef GPST_TEST_RING_READERS_H
#define GPST_TEST_RING_READERS_H

#include "test_ring.h"

static inline void test_open_readers(test_ring* t, gpst_ring_policy policy, uint32_t max_slots, uint32_t max_readers) {
    test_begin(t);
    t->desc.max_slots = max_slots;
    t->desc.slot_bytes = 24;
    t->desc.policy = policy;
    t->desc.max_readers = max_readers;
    assert_int_equal(gpst_ring_create(t->context, &t->desc, &t->ring), GPST_OK);
}

static inline gpst_ring_reader* test_join(gpst_ring* ring) {
    gpst_ring_reader* reader = NULL;
    assert_int_equal(gpst_ring_reader_create(ring, &reader), GPST_OK);
    return reader;
}

static inline gpst_result test_put(gpst_ring* ring, uint8_t value) {
    gpst_ring_slot slot;
    const gpst_result result = gpst_ring_acquire(ring, 0, &slot);
    if (result != GPST_OK)
        return result;
    memset(slot.data, value, 24);
    slot.words[0] = value;
    gpst_ring_commit(ring, &slot);
    assert_null(slot.data);
    return GPST_OK;
}

/* The next slot, whose words and bytes agree; its value. */
static inline int test_hold(gpst_ring_reader* reader, gpst_ring_slot* slot) {
    memset(slot, 0xA5, sizeof *slot);
    const gpst_result result = gpst_ring_reader_take(reader, 0, NULL, slot);
    if (result != GPST_OK) {
        assert_null(slot->data);
        return result < 0 ? (int)result : 1000 + (int)result;
    }
    for (int i = 0; i < 24; i++)
        assert_int_equal(((uint8_t*)slot->data)[i], slot->words[0]);
    return (int)slot->words[0];
}

static inline int test_get(gpst_ring_reader* reader) {
    gpst_ring_slot slot;
    const int value = test_hold(reader, &slot);
    if (slot.data)
        assert_int_equal(gpst_ring_reader_release(reader, &slot, NULL), GPST_OK);
    return value;
}

static inline gpst_ring_reader_info test_reader_info(const gpst_ring_reader* reader) {
    gpst_ring_reader_info info;
    memset(&info, 0xA5, sizeof info);
    gpst_ring_reader_query_info(reader, &info);
    return info;
}

#endif
