/* tests/test_backend_sim_memory.c -- what a simulated device knows to be its memory, of many allocations that come and go
   in any order. */
#include "test.h"

#include "../backends/backend.h"
#include "test_allocator.h"

enum { N_BLOCKS = 200, N_ROUNDS = 4000, LEAST_BYTES = 4096, MOST_TIMES = 40 };

typedef struct memory_kit {
    gpsti_host host;
    const gpsti_backend_i* i;
    gpsti_device* device;
    gpsti_stream* stream;
    char* blocks[N_BLOCKS]; /* NULL = there is none */
    size_t bytes[N_BLOCKS];
    uint32_t random;
} memory_kit;

static uint32_t kit_random(memory_kit* kit) {
    kit->random = kit->random * 1664525u + 1013904223u;
    return kit->random >> 8;
}

static void kit_open(memory_kit* kit, const gpst_allocator* allocator) {
    memset(kit, 0, sizeof *kit);
    gpsti_host_init(&kit->host, allocator, NULL);
    kit->i = gpsti_backend_sim();
    assert_int_equal(kit->i->device_open(&kit->host, "launch_us=0", &kit->device), GPST_OK);
    assert_int_equal(kit->i->stream_create(kit->device, &kit->stream), GPST_OK);
}

static void kit_close(memory_kit* kit) {
    kit->i->stream_destroy(kit->stream);
    kit->i->device_close(kit->device);
    assert_int_equal(gpsti_a64_load(&kit->host.live_bytes), 0);
}

static void kit_alloc(memory_kit* kit, uint32_t b) {
    void* block = NULL;
    kit->bytes[b] = LEAST_BYTES + kit_random(kit) % (LEAST_BYTES * MOST_TIMES);
    assert_int_equal(kit->i->memory_alloc(kit->device, kit->bytes[b], &block), GPST_OK);
    kit->blocks[b] = (char*)block;
}

static void kit_free(memory_kit* kit, uint32_t b) {
    kit->i->memory_free(kit->device, kit->blocks[b], kit->bytes[b]);
    kit->blocks[b] = NULL;
}

static uint64_t kit_free_bytes(const memory_kit* kit) {
    gpsti_device_info info;
    kit->i->device_query(kit->device, &info);
    return info.memory_free_bytes;
}

/* A copy of so many bytes there; what it would have done is not waited for. */
static gpst_result kit_upload(const memory_kit* kit, char* to, size_t bytes) {
    static char from[LEAST_BYTES * (MOST_TIMES + 1) + 1];
    return kit->i->copy(kit->stream, GPSTI_COPY_H2D, to, from, bytes);
}

/* All of it and any part, but nothing before it and nothing behind. */
static void assert_owned(memory_kit* kit, uint32_t b) {
    char* const block = kit->blocks[b];
    const size_t bytes = kit->bytes[b], offset = kit_random(kit) % bytes;
    assert_int_equal(kit_upload(kit, block, bytes), GPST_OK);
    assert_int_equal(kit_upload(kit, block + offset, bytes - offset), GPST_OK);
    assert_int_equal(kit_upload(kit, block + bytes - 1, 1), GPST_OK);
    assert_int_equal(kit_upload(kit, block, bytes + 1), GPST_ERROR_ARGUMENT);
    assert_int_equal(kit_upload(kit, block + offset, bytes - offset + 1), GPST_ERROR_ARGUMENT);
    assert_int_equal(kit->i->stream_wait_idle(kit->stream), GPST_OK);
}

static void test_any_order(void** state) {
    memory_kit kit;
    uint64_t in_use = 0;
    (void)state;
    kit_open(&kit, NULL);
    const uint64_t all_bytes = kit_free_bytes(&kit);
    for (int round = 0; round < N_ROUNDS; round++) {
        const uint32_t b = kit_random(&kit) % N_BLOCKS;
        if (kit.blocks[b]) {
            assert_owned(&kit, b);
            in_use -= kit.bytes[b];
            kit_free(&kit, b);
        } else {
            kit_alloc(&kit, b);
            in_use += kit.bytes[b];
        }
        assert_int_equal(kit_free_bytes(&kit), all_bytes - in_use);
    }
    for (uint32_t b = 0; b < N_BLOCKS; b++)
        if (kit.blocks[b]) {
            assert_owned(&kit, b);
            kit_free(&kit, b);
        }
    assert_int_equal(kit_free_bytes(&kit), all_bytes);
    kit_close(&kit);
}

/* Neither host memory, nor what is free again, nor any of it where there is none. */
static void test_what_is_not_the_devices(void** state) {
    memory_kit kit;
    char host[16] = "";
    char message[64] = "";
    (void)state;
    kit_open(&kit, NULL);
    const uint64_t all_bytes = kit_free_bytes(&kit);
    assert_int_equal(kit_upload(&kit, host, sizeof host), GPST_ERROR_ARGUMENT);
    kit_alloc(&kit, 0);
    char* const block = kit.blocks[0];
    assert_int_equal(kit_upload(&kit, host, sizeof host), GPST_ERROR_ARGUMENT);
    snprintf(message, sizeof message, "%.60s", gpst_last_reason());
    assert_string_equal(message, "backend sim: copy: dst: must be device memory");
    assert_int_equal(kit.i->copy(kit.stream, GPSTI_COPY_H2D, block, block, 16), GPST_ERROR_ARGUMENT);
    kit.i->memory_free(kit.device, block + 1, 1); /* begins nothing */
    assert_owned(&kit, 0);
    kit_free(&kit, 0);
    assert_int_equal(kit_upload(&kit, block, 1), GPST_ERROR_ARGUMENT);
    kit.i->memory_free(kit.device, block, 1);
    assert_int_equal(kit_free_bytes(&kit), all_bytes);
    kit_close(&kit);
}

/* Room for more of them is made now and then: where that fails, nothing has happened. */
static void test_no_room_to_know_more(void** state) {
    memory_kit kit;
    test_memory memory;
    void* block = NULL;
    uint32_t n_failed = 0;
    (void)state;
    const gpst_allocator hooks = test_memory_hooks(&memory);
    kit_open(&kit, &hooks);
    for (uint32_t b = 0; b < N_BLOCKS; b++) {
        const uint64_t before = kit_free_bytes(&kit);
        test_memory_refuse(&memory, 1);
        const gpst_result result = kit.i->memory_alloc(kit.device, LEAST_BYTES, &block);
        test_memory_relent(&memory);
        if (result == GPST_OK) {
            kit.blocks[b] = (char*)block;
            kit.bytes[b] = LEAST_BYTES;
            continue;
        }
        assert_int_equal(result, GPST_ERROR_MEMORY);
        assert_int_equal(kit_free_bytes(&kit), before);
        n_failed++;
        kit_alloc(&kit, b);
    }
    assert_true(n_failed >= 2 && n_failed < 10);
    for (uint32_t b = 0; b < N_BLOCKS; b++) {
        assert_owned(&kit, b);
        kit_free(&kit, b);
    }
    kit_close(&kit);
    test_memory_check(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_any_order), cmocka_unit_test(test_what_is_not_the_devices),
                                       cmocka_unit_test(test_no_room_to_know_more)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
