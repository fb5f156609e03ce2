/* tests/test_pool_chunks.c -- pools of every kind of memory, and pools of chunks: which chunk serves, what is refused,
   what is counted, and nothing left behind by a failure. */
#include "test.h"

#include "test_allocator.h"

#define PAGE ((size_t)4096)
#define KIB ((size_t)1 << 10)

typedef struct chunk_kit {
    test_memory memory;
    test_log log;
    gpst_context* context;
} chunk_kit;

static void kit_open(chunk_kit* t, const char* backend, uint64_t budget_bytes) {
    gpst_context_desc desc = GPST_ZERO;
    memset(t, 0, sizeof *t);
    desc.allocator = test_memory_hooks(&t->memory);
    desc.logger = test_log_hooks(&t->log);
    desc.backend = backend;
    desc.n_workers = 1;
    desc.max_host_bytes = desc.max_device_bytes = budget_bytes;
    desc.max_kept_bytes = 1;
    desc.memory_marks.alert_part = 1; /* nothing goes below the budget */
    assert_int_equal(gpst_context_create(&desc, &t->context), GPST_OK);
}

static void kit_close(chunk_kit* t) {
    gpst_memory_use use;
    gpst_context_query_memory(t->context, &use);
    assert_int_equal(use.host.charged_bytes + use.device.charged_bytes, 0);
    gpst_context_destroy(t->context);
    test_memory_check(&t->memory);
}

static gpst_pool* make_pool(const chunk_kit* t, gpst_memory_kind kind, uint64_t max_bytes, const size_t* chunks,
                            uint32_t n_chunks) {
    gpst_pool_desc desc = GPST_ZERO;
    gpst_pool* pool = NULL;
    desc.kind = kind;
    desc.max_bytes = max_bytes;
    desc.chunk_bytes = chunks;
    desc.n_chunk_bytes = n_chunks;
    assert_int_equal(gpst_pool_create(t->context, &desc, &pool), GPST_OK);
    return pool;
}

static gpst_pool_info info_of(const gpst_pool* pool) {
    gpst_pool_info info;
    gpst_pool_query_info(pool, &info);
    return info;
}

/* ---- kinds --------------------------------------------------------------------------------- */

/* Each is charged to its own budget, found again, trimmed, and kept by the context behind the pool. */
static void test_kinds(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    (void)state;
    for (int b = 0; b < 2; b++)
        for (int kind = 0; kind <= GPST_MEMORY_DEVICE; kind++) {
            chunk_kit t;
            gpst_buffer buffer;
            gpst_memory_use use;
            kit_open(&t, backends[b], 1 << 20);
            gpst_pool* const pool = make_pool(&t, (gpst_memory_kind)kind, 0, NULL, 0);
            const gpst_memory_account* const its = kind == GPST_MEMORY_DEVICE ? &use.device : &use.host;
            const gpst_memory_account* const other = kind == GPST_MEMORY_DEVICE ? &use.host : &use.device;
            assert_int_equal(gpst_pool_acquire(pool, 3 * PAGE, 0, &buffer), GPST_OK);
            void* const data = buffer.data;
            gpst_context_query_memory(t.context, &use);
            assert_int_equal(its->lent_bytes, 3 * PAGE);
            assert_int_equal(its->charged_bytes, 3 * PAGE);
            assert_int_equal(other->charged_bytes, 0);
            gpst_pool_release(pool, &buffer);
            assert_int_equal(info_of(pool).small_bytes, kind == GPST_MEMORY_DEVICE ? 0 : 3 * PAGE);
            assert_int_equal(gpst_pool_acquire(pool, 3 * PAGE, 0, &buffer), GPST_OK);
            assert_ptr_equal(buffer.data, data);
            assert_int_equal(info_of(pool).allocations, 1);
            gpst_pool_release(pool, &buffer);
            gpst_context_query_memory(t.context, &use);
            assert_int_equal(its->free_bytes, 3 * PAGE);
            gpst_pool_trim(pool);
            gpst_context_query_memory(t.context, &use);
            assert_int_equal(its->charged_bytes, 0);
            assert_int_equal(its->peak_bytes, 3 * PAGE);
            assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &buffer), GPST_OK);
            gpst_pool_release(pool, &buffer);
            assert_int_equal(gpst_pool_destroy(pool), GPST_OK); /* nothing is kept: it goes with the pool */
            kit_close(&t);
        }
}

/* The device's budget, not the host's, is what an acquire of the device's memory may hope for. */
static void test_a_device_pool_at_its_budget(void** state) {
    chunk_kit t;
    gpst_buffer a, b;
    (void)state;
    kit_open(&t, "sim", 4 * PAGE);
    gpst_pool* const pool = make_pool(&t, GPST_MEMORY_DEVICE, 0, NULL, 0);
    t.context->info.max_host_bytes = PAGE;
    assert_int_equal(gpst_pool_acquire(pool, 3 * PAGE, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, 2 * PAGE, 0, &b), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(gpst_pool_acquire(pool, 5 * PAGE, GPST_FOREVER, &b), GPST_ERROR_BUDGET);
    test_reason_has("takes 20480", "max_device_bytes=16384");
    gpst_pool_release(pool, &a);
    assert_int_equal(gpst_pool_acquire(pool, 4 * PAGE, 0, &b), GPST_OK); /* the free one went */
    gpst_pool_release(pool, &b);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    kit_close(&t);
}

static gpst_result lost_memory_alloc(gpsti_device* device, size_t bytes, void** out) {
    (void)device;
    (void)bytes;
    (void)out;
    return gpsti_fail(GPST_ERROR_DEVICE_LOST, "the device is gone");
}

/* The host's memory of the cpu would be none of the device's. */
static void test_a_device_pool_of_a_lost_device(void** state) {
    chunk_kit t;
    gpst_buffer a, b;
    (void)state;
    kit_open(&t, "sim", 0);
    gpst_pool* const pool = make_pool(&t, GPST_MEMORY_DEVICE, 0, NULL, 0);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &b), GPST_OK);
    gpst_pool_release(pool, &a);
    const gpsti_backend_i* const real = t.context->device->i;
    gpsti_backend_i lost = *real;
    lost.memory_alloc = lost_memory_alloc;
    t.context->device->i = &lost;
    assert_int_equal(gpst_pool_acquire(pool, 2 * PAGE, 0, &a), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &a), GPST_ERROR_DEVICE_LOST); /* what is free is not found */
    t.context->device->i = real;
    gpst_pool_release(pool, &b);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    kit_close(&t);
}

/* ---- which chunk ----------------------------------------------------------------------------- */

static size_t chunk_for(gpst_pool* pool, size_t bytes) {
    gpst_buffer buffer;
    assert_int_equal(gpst_pool_acquire(pool, bytes, 0, &buffer), GPST_OK);
    const size_t chunk = buffer.bytes;
    assert_int_equal(buffer.charged_bytes, chunk);
    gpst_pool_release(pool, &buffer);
    assert_null(buffer.data);
    return chunk;
}

/* The smallest that holds it, to the byte; duplicates and the order do not matter; sizes are whole pages. */
static void test_best_fit(void** state) {
    static const size_t chunks[] = {400 * KIB, 64 * KIB, 1, 64 * KIB, 100 * KIB + 1};
    static const gpst_memory_kind kinds[] = {GPST_MEMORY_HOST, GPST_MEMORY_DEVICE};
    (void)state;
    for (int k = 0; k < 2; k++) {
        chunk_kit t;
        gpst_buffer buffer;
        kit_open(&t, "sim", (uint64_t)64 << 20);
        gpst_pool* const pool = make_pool(&t, kinds[k], 0, chunks, 5);
        assert_int_equal(chunk_for(pool, 1), PAGE);
        assert_int_equal(chunk_for(pool, PAGE), PAGE);
        assert_int_equal(chunk_for(pool, PAGE + 1), 64 * KIB);
        assert_int_equal(chunk_for(pool, 64 * KIB), 64 * KIB);
        assert_int_equal(chunk_for(pool, 64 * KIB + 1), 104 * KIB);
        assert_int_equal(chunk_for(pool, 104 * KIB + 1), 400 * KIB);
        assert_int_equal(chunk_for(pool, 400 * KIB), 400 * KIB);
        assert_int_equal(info_of(pool).allocations, 4);
        assert_int_equal(gpst_pool_acquire(pool, 400 * KIB + 1, 0, &buffer), GPST_ERROR_ARGUMENT);
        test_reason_has("bytes=409601: must be at most 409600", "the largest of desc.chunk_bytes");
        assert_int_equal(gpst_pool_acquire(pool, 0, 0, &buffer), GPST_ERROR_ARGUMENT);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        kit_close(&t);
    }
}

/* A chunk takes its pages, not those of a size class: 21 pages are no 22. Nobody gets less than was asked for, whoever
   had it before. */
static void test_chunks_and_classes_share(void** state) {
    static const size_t chunks[] = {21 * PAGE};
    chunk_kit t;
    gpst_buffer a, b;
    (void)state;
    kit_open(&t, "sim", 44 * PAGE);
    gpst_pool* const pool = make_pool(&t, GPST_MEMORY_DEVICE, 0, chunks, 1);
    gpst_pool* const plain = make_pool(&t, GPST_MEMORY_DEVICE, 0, NULL, 0);
    assert_int_equal(gpst_pool_acquire(pool, 20 * PAGE, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, 21 * PAGE, 0, &b), GPST_OK);
    assert_int_equal(info_of(pool).held_bytes, 42 * PAGE);
    void* const data[] = {a.data, b.data};
    gpst_pool_release(pool, &a);
    gpst_pool_release(pool, &b);
    assert_int_equal(gpst_pool_acquire(plain, 21 * PAGE, 0, &a), GPST_OK); /* a class of 22: not there */
    assert_int_equal(a.bytes, 22 * PAGE);
    assert_int_equal(info_of(plain).allocations, 1);
    assert_int_equal(info_of(pool).held_bytes, 21 * PAGE); /* one went for it */
    assert_int_equal(gpst_pool_acquire(plain, 19 * PAGE, 0, &b), GPST_OK); /* a class of 20: the chunk has that */
    assert_int_equal(info_of(plain).allocations, 1);
    assert_ptr_equal(b.data, data[1]);
    assert_int_equal(b.bytes, 20 * PAGE);
    assert_int_equal(b.charged_bytes, 21 * PAGE);
    assert_int_equal(info_of(plain).live_bytes, 43 * PAGE);
    gpst_pool_release(plain, &a);
    gpst_pool_release(plain, &b);
    assert_int_equal(gpst_pool_acquire(pool, 1, 0, &a), GPST_OK); /* and back: the whole chunk */
    assert_ptr_equal(a.data, data[1]);
    assert_int_equal(a.bytes, 21 * PAGE);
    gpst_pool_release(pool, &a);
    gpst_pool_trim(pool);
    gpst_pool_trim(plain);
    assert_int_equal(gpst_pool_acquire(plain, 20 * PAGE, 0, &b), GPST_OK);
    gpst_pool_release(plain, &b);
    assert_int_equal(gpst_pool_acquire(pool, 1, 0, &a), GPST_OK); /* the free 20 are of its class, and too few */
    assert_int_equal(a.charged_bytes, 21 * PAGE);
    gpst_pool_release(pool, &a);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    assert_int_equal(gpst_pool_destroy(plain), GPST_OK);
    kit_close(&t);
}

/* At the cap a larger chunk that is free serves; with room a chunk of the best size is made. */
static void test_a_larger_chunk_at_the_cap(void** state) {
    static const size_t chunks[] = {2 * PAGE, 4 * PAGE, 8 * PAGE};
    chunk_kit t;
    gpst_buffer a, b, c;
    (void)state;
    kit_open(&t, "cpu", (uint64_t)1 << 20);
    gpst_pool* const pool = make_pool(&t, GPST_MEMORY_PINNED, 12 * PAGE, chunks, 3);
    assert_int_equal(gpst_pool_acquire(pool, 8 * PAGE, 0, &a), GPST_OK);
    gpst_pool_release(pool, &a);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &b), GPST_OK);
    assert_int_equal(a.bytes + b.bytes, 4 * PAGE);
    assert_int_equal(info_of(pool).held_bytes, 12 * PAGE);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &c), GPST_OK);
    assert_int_equal(c.bytes, 8 * PAGE);
    assert_int_equal(info_of(pool).allocations, 3);
    gpst_pool_release(pool, &c);
    gpst_pool_release(pool, &a);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &a), GPST_OK); /* the best is free again */
    assert_int_equal(a.bytes, 2 * PAGE);
    gpst_pool_release(pool, &a);
    assert_int_equal(gpst_pool_acquire(pool, 3 * PAGE, 0, &c), GPST_OK);
    assert_int_equal(c.bytes, 8 * PAGE);
    assert_int_equal(gpst_pool_acquire(pool, 3 * PAGE, 0, &a), GPST_ERROR_WOULD_BLOCK); /* b and c are out */
    gpst_pool_release(pool, &b);
    assert_int_equal(gpst_pool_acquire(pool, 3 * PAGE, 0, &a), GPST_OK); /* the two small ones went */
    assert_int_equal(a.bytes, 4 * PAGE);
    gpst_pool_release(pool, &a);
    gpst_pool_release(pool, &c);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    kit_close(&t);
}

/* ---- made ahead ------------------------------------------------------------------------------------ */

static void test_ready_chunks(void** state) {
    static const size_t chunks[] = {4 * PAGE, PAGE};
    (void)state;
    for (int kind = GPST_MEMORY_HOST; kind <= GPST_MEMORY_DEVICE; kind++) {
        chunk_kit t;
        gpst_pool_desc desc = GPST_ZERO;
        gpst_pool* pool = NULL;
        gpst_buffer buffers[6];
        kit_open(&t, "sim", 40 * PAGE);
        desc.kind = (gpst_memory_kind)kind;
        desc.chunk_bytes = chunks;
        desc.n_chunk_bytes = 2;
        desc.n_ready = 3;
        desc.max_bytes = 14 * PAGE; /* for two and a half of the large ones beside the small ones */
        assert_int_equal(gpst_pool_create(t.context, &desc, &pool), GPST_ERROR_BUDGET);
        assert_null(pool);
        test_reason_has("gpst_pool_create: gpst_pool_acquire: bytes=16384", "on loan");
        desc.max_bytes = 15 * PAGE;
        assert_int_equal(gpst_pool_create(t.context, &desc, &pool), GPST_OK);
        assert_int_equal(info_of(pool).held_bytes, 15 * PAGE);
        assert_int_equal(info_of(pool).live_bytes, 0);
        for (int i = 0; i < 6; i++) {
            assert_int_equal(gpst_pool_acquire(pool, i < 3 ? 1 : PAGE + 1, 0, &buffers[i]), GPST_OK);
            assert_int_equal(buffers[i].bytes, i < 3 ? PAGE : 4 * PAGE);
        }
        assert_int_equal(info_of(pool).allocations, 6);
        for (int i = 0; i < 6; i++)
            gpst_pool_release(pool, &buffers[i]);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        kit_close(&t);
    }
}

/* ---- what is refused ---------------------------------------------------------------------------- */

static void refuse(const chunk_kit* t, gpst_pool_desc desc, const char* first, const char* second) {
    gpst_pool* pool = (gpst_pool*)1;
    assert_int_equal(gpst_pool_create(t->context, &desc, &pool), GPST_ERROR_ARGUMENT);
    assert_null(pool);
    test_reason_has(first, second);
    test_reason_has("gpst_pool_create: ", "must be");
}

static void test_bad_descs(void** state) {
    size_t chunks[GPST_POOL_MAX_CHUNK_SIZES + 1];
    chunk_kit t;
    gpst_pool_desc good = GPST_ZERO, desc;
    (void)state;
    kit_open(&t, "sim", 0);
    for (size_t i = 0; i <= GPST_POOL_MAX_CHUNK_SIZES; i++)
        chunks[i] = (GPST_POOL_MAX_CHUNK_SIZES + 1 - i) * PAGE;
    desc = good;
    desc.kind = GPST_MEMORY_REGISTERED;
    refuse(&t, desc, "desc.kind=4", "DEVICE");
    desc.kind = (gpst_memory_kind)-1;
    refuse(&t, desc, "desc.kind=-1", "DEVICE");
    desc = good;
    desc.kind = GPST_MEMORY_DEVICE;
    desc.huge_pages = GPST_HUGE_PAGES_ALWAYS;
    refuse(&t, desc, "desc.huge_pages=2", "kind=DEVICE");
    desc = good;
    desc.chunk_bytes = chunks;
    refuse(&t, desc, "desc.n_chunk_bytes=0", "a list");
    desc.n_chunk_bytes = GPST_POOL_MAX_CHUNK_SIZES + 1;
    refuse(&t, desc, "desc.n_chunk_bytes=17", "at most 16");
    desc.n_chunk_bytes = 2;
    desc.chunk_bytes = NULL;
    refuse(&t, desc, "desc.n_chunk_bytes=2", "NULL");
    desc.chunk_bytes = chunks;
    desc.n_chunk_bytes = GPST_POOL_MAX_CHUNK_SIZES;
    desc.max_bytes = 17 * PAGE - 1;
    refuse(&t, desc, "desc.chunk_bytes[0]=69632", "1 .. 65536, the pages of max_bytes");
    desc.max_bytes = 0;
    chunks[3] = 0;
    refuse(&t, desc, "desc.chunk_bytes[3]=0", "1 .. ");
    chunks[3] = SIZE_MAX;
    refuse(&t, desc, "desc.chunk_bytes[3]=", "1 .. ");
    desc.n_ready = 65537;
    refuse(&t, desc, "desc.n_ready=65537", "at most 65536");
    desc = good;
    desc.n_ready = 1;
    refuse(&t, desc, "desc.n_ready=1", "must be 0 without chunk_bytes");
    kit_close(&t);
    assert_int_equal(gpsti_a32_load(&t.log.n_errors), 0);
}

/* ---- faults -------------------------------------------------------------------------------------- */

/* Each call of the allocator and each of the device fails once: a result, a sentence, nothing charged, nothing left,
   and the next attempt works. */
static void test_faults(void** state) {
    static const size_t chunks[] = {PAGE, 3 * PAGE, 9 * PAGE};
    static const char* const faults[] = {"sim", "sim:fail_host_alloc=%u", "sim:fail_alloc=%u"};
    (void)state;
    for (int f = 0; f < 3; f++)
        for (int kind = GPST_MEMORY_PINNED; kind <= GPST_MEMORY_DEVICE; kind++) {
            uint32_t n_failed = 0;
            bool reached = true;
            for (unsigned n = 1; reached && n <= 8; n++) {
                chunk_kit t;
                char backend[40];
                gpst_pool_desc desc = GPST_ZERO;
                gpst_pool* pool = NULL;
                gpst_buffer buffers[6];
                gpsti_format(backend, sizeof backend, faults[f], n);
                kit_open(&t, backend, 0);
                desc.kind = (gpst_memory_kind)kind;
                desc.chunk_bytes = chunks;
                desc.n_chunk_bytes = 3;
                desc.n_ready = n % 2;
                if (f == 0)
                    test_memory_refuse(&t.memory, n);
                if (GPST_FAILED(gpst_pool_create(t.context, &desc, &pool))) {
                    n_failed++;
                    assert_null(pool);
                    test_reason_has("gpst_pool_create: ", "");
                    assert_int_equal(gpst_pool_create(t.context, &desc, &pool), GPST_OK);
                }
                uint64_t charged_bytes = info_of(pool).held_bytes;
                for (int i = 0; i < 6; i++) {
                    gpst_result result = gpst_pool_acquire(pool, PAGE << (i / 2), 0, &buffers[i]);
                    if (GPST_FAILED(result)) {
                        n_failed++;
                        assert_int_equal(result, f == 2 ? GPST_ERROR_DEVICE_MEMORY : GPST_ERROR_MEMORY);
                        assert_null(buffers[i].data);
                        assert_true(gpst_last_reason()[0] != '\0');
                        assert_int_equal(info_of(pool).held_bytes, charged_bytes);
                        assert_int_equal(gpst_pool_acquire(pool, PAGE << (i / 2), 0, &buffers[i]), GPST_OK);
                    }
                    charged_bytes = info_of(pool).held_bytes;
                }
                for (int i = 0; i < 6; i++)
                    gpst_pool_release(pool, &buffers[i]);
                assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
                reached = f > 0 || test_memory_refused(&t.memory);
                kit_close(&t);
            }
            if (f == 0 || (f == 2) == (kind == GPST_MEMORY_DEVICE))
                assert_true(n_failed >= 2);
        }
}

/* ---- threads --------------------------------------------------------------------------------------- */

enum { N_THREADS = 4, N_TURNS = 2000 };

typedef struct turner {
    gpst_pool* pool;
    uint32_t random;
    uint32_t n_served;
} turner;

static void turn(void* arg) {
    turner* const self = (turner*)arg;
    for (int i = 0; i < N_TURNS; i++) {
        gpst_buffer buffer;
        self->random = self->random * 1664525u + 1013904223u;
        const size_t bytes = 1 + (self->random >> 8) % (8 * PAGE);
        const gpst_result result = gpst_pool_acquire(self->pool, bytes, i % 2 ? GPST_FOREVER : 0, &buffer);
        if (GPST_FAILED(result))
            continue;
        if (buffer.bytes < bytes)
            return;
        self->n_served++;
        ((volatile uint8_t*)buffer.data)[bytes - 1] = (uint8_t)i;
        gpst_pool_release(self->pool, &buffer);
    }
}

static void test_threads(void** state) {
    static const size_t chunks[] = {PAGE, 2 * PAGE, 8 * PAGE};
    chunk_kit t;
    turner turners[N_THREADS];
    gpsti_thread threads[N_THREADS];
    uint32_t n_served = 0;
    (void)state;
    kit_open(&t, "cpu", 0);
    gpst_pool* const pool = make_pool(&t, GPST_MEMORY_DEVICE, 20 * PAGE, chunks, 3);
    for (uint32_t i = 0; i < N_THREADS; i++) {
        turners[i].pool = pool;
        turners[i].random = i + 1;
        turners[i].n_served = 0;
        assert_int_equal(gpsti_thread_start(&threads[i], turn, &turners[i], "turner"), GPST_OK);
    }
    for (uint32_t i = 0; i < N_THREADS; i++) {
        gpsti_thread_join(&threads[i]);
        assert_true(turners[i].n_served >= N_TURNS / 2 - 1);
        n_served += turners[i].n_served;
    }
    assert_int_equal(info_of(pool).acquires, n_served);
    assert_int_equal(info_of(pool).live_bytes, 0);
    assert_true(info_of(pool).held_bytes <= 20 * PAGE);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    kit_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_a_device_pool_at_its_budget),
        cmocka_unit_test(test_a_device_pool_of_a_lost_device),
        cmocka_unit_test(test_best_fit),
        cmocka_unit_test(test_chunks_and_classes_share),
        cmocka_unit_test(test_a_larger_chunk_at_the_cap),
        cmocka_unit_test(test_ready_chunks),
        cmocka_unit_test(test_bad_descs),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
