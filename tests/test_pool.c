/* tests/test_pool.c -- size classes, caps, waits, misuse and many threads on
   one pool of host buffers. */
#include "test.h"

#include "test_allocator.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if !defined(GPST_TEST_AMALGAM)
#include "../core/memory/pool_internal.h"
#endif

#define TEST_MS 1000000 /* in ns */
#define TEST_MIB ((size_t)1 << 20)

typedef struct test_pool {
    test_memory memory;
    test_log log;
    gpst_context* context;
    gpst_pool* pool;
} test_pool;

static void test_begin(test_pool* t, uint64_t max_host_bytes, uint64_t max_bytes) {
    gpst_context_desc context = GPST_ZERO;
    gpst_pool_desc desc = GPST_ZERO;
    memset(t, 0, sizeof *t);
    context.allocator = test_memory_hooks(&t->memory);
    context.logger = test_log_hooks(&t->log);
    context.backend = "cpu";
    context.n_workers = 1;
    context.max_host_bytes = max_host_bytes;
    desc.max_bytes = max_bytes;
    assert_int_equal(gpst_context_create(&context, &t->context), GPST_OK);
    assert_int_equal(gpst_pool_create(t->context, &desc, &t->pool), GPST_OK);
}

/* Nothing is on loan, nothing is left, and the context's account is even. */
static void test_end(test_pool* t, uint32_t n_errors) {
    assert_int_equal(gpst_pool_destroy(t->pool), GPST_OK);
    gpst_context_trim(t->context);
    assert_int_equal(gpsti_a64_load(&t->context->host_bytes), 0);
    gpst_context_destroy(t->context);
    test_memory_check(&t->memory);
    assert_int_equal(gpsti_a32_load(&t->log.n_errors), n_errors);
}

static gpst_pool_info test_info(const test_pool* t) {
    gpst_pool_info info;
    memset(&info, 0xA5, sizeof info);
    gpst_pool_query_info(t->pool, &info);
    return info;
}

/* ---- one thread --------------------------------------------------------------------- */

static void test_classes(void** state) {
    test_pool t;
    size_t before = 0;
    (void)state;
    test_begin(&t, (uint64_t)1 << 40, 0);
    for (size_t bytes = 1; bytes < 2000 * TEST_MIB; bytes += 1 + bytes / 7) {
        gpst_buffer buffer;
        memset(&buffer, 0xA5, sizeof buffer);
        assert_int_equal(gpst_pool_acquire(t.pool, bytes, 0, &buffer), GPST_OK);
        assert_true(buffer.bytes >= bytes && buffer.bytes >= before && buffer.bytes % 4096 == 0);
        assert_true(buffer.bytes - bytes < 4096 || (buffer.bytes - bytes) * 8 <= bytes);
        assert_int_equal((uintptr_t)buffer.data % 4096, 0);
        ((uint8_t*)buffer.data)[0] = 1;
        ((uint8_t*)buffer.data)[buffer.bytes - 1] = 1;
        before = buffer.bytes;
        gpst_pool_release(t.pool, &buffer);
        if (bytes > 16 * TEST_MIB) /* the small ones stay: a free buffer must not serve a larger class */
            gpst_pool_trim(t.pool);
    }
    gpst_pool_trim(t.pool);
    assert_int_equal(test_info(&t).held_bytes, 0);
    test_end(&t, 0);
}

static void test_reuse(void** state) {
    test_pool t;
    gpst_buffer a, b, c;
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 0);
    assert_int_equal(gpst_pool_acquire(t.pool, 5000, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(t.pool, 8192, 0, &b), GPST_OK);
    assert_int_equal(a.bytes, 8192);
    assert_ptr_not_equal(a.data, b.data);
    assert_true(a.id != b.id);
    void* first = a.data;
    gpst_pool_release(t.pool, &a);
    assert_null(a.data);
    assert_int_equal(a.bytes, 0);
    assert_int_equal(gpst_pool_acquire(t.pool, 4097, 0, &c), GPST_OK); /* the same class */
    assert_ptr_equal(c.data, first);
    const gpst_pool_info info = test_info(&t);
    assert_int_equal(info.hugetlb_bytes + info.thp_bytes + info.small_bytes, info.held_bytes);
    assert_int_equal(gpsti_a64_load(&t.context->host_bytes), info.held_bytes);
    assert_int_equal(info.acquires, 3);
    assert_int_equal(info.allocations, 2);
    assert_int_equal(info.live_bytes, 16384);
    assert_int_equal(info.peak_bytes, 16384);
    assert_int_equal(info.held_bytes, 16384);
    assert_int_equal(info.pinned_bytes, 0); /* the cpu backend never claims it */
    gpst_pool_release(t.pool, &b);
    gpst_pool_release(t.pool, &c);
    assert_int_equal(test_info(&t).live_bytes, 0);
    assert_int_equal(test_info(&t).peak_bytes, 16384);
    assert_int_equal(test_info(&t).held_bytes, 16384);
    gpst_pool_trim(t.pool);
    assert_int_equal(test_info(&t).held_bytes, 0);
    test_end(&t, 0);
}

/* Memory that the context kept of an earlier pool is no better for that. */
static void test_reason_stays(void** state) {
    test_pool t;
    gpst_buffer a;
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 0);
    for (uint64_t n_made = 1;; n_made--) {
        assert_int_equal(gpst_pool_acquire(t.pool, 5000, 0, &a), GPST_OK);
        assert_int_equal(test_info(&t).allocations, n_made);
        assert_string_equal(test_info(&t).pages_reason, "cpu backend: nothing to pin for");
        gpst_pool_release(t.pool, &a);
        if (n_made == 0)
            break;
        assert_int_equal(gpst_pool_destroy(t.pool), GPST_OK);
        assert_int_equal(gpst_pool_create(t.context, NULL, &t.pool), GPST_OK);
    }
    test_end(&t, 0);
}

static void test_arguments(void** state) {
    test_pool t;
    gpst_pool* pool = (gpst_pool*)&t;
    gpst_pool_desc desc = GPST_ZERO;
    gpst_buffer buffer;
    gpst_pool_info info;
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 0);
    memset(&buffer, 0xA5, sizeof buffer);
    assert_int_equal(gpst_pool_acquire(t.pool, 0, 0, &buffer), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pool_acquire: ", "bytes=0");
    assert_null(buffer.data);
    assert_int_equal(gpst_pool_acquire(t.pool, SIZE_MAX, 0, &buffer), GPST_ERROR_OVERFLOW);
    assert_int_equal(gpst_pool_acquire(t.pool, SIZE_MAX / 2, 0, &buffer), GPST_ERROR_OVERFLOW);
    test_reason_has("gpst_pool_acquire: ", "SIZE_MAX/2");
    assert_int_equal(gpst_pool_acquire(NULL, 1, 0, &buffer), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pool_acquire: ", "pool=NULL");
    assert_int_equal(gpst_pool_acquire(t.pool, 1, 0, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_pool_create(NULL, &desc, &pool), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pool_create: ", "context=NULL");
    assert_null(pool);
    assert_int_equal(gpst_pool_create(t.context, &desc, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_pool_create_versioned(99, sizeof desc, t.context, &desc, &pool),
                     GPST_ERROR_VERSION);
    assert_int_equal(gpst_pool_create_versioned(GPST_VERSION, 8, t.context, &desc, &pool),
                     GPST_ERROR_VERSION);
    desc.huge_pages = (gpst_huge_pages)3;
    assert_int_equal(gpst_pool_create(t.context, &desc, &pool), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pool_create: ", "huge_pages=3");
    desc.huge_pages = GPST_HUGE_PAGES_DEFAULT;
    desc.end_canary = 1;
    assert_int_equal(gpst_pool_create(t.context, &desc, &pool), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_pool_create(t.context, NULL, &pool), GPST_OK); /* NULL: all defaults */
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    assert_int_equal(gpst_pool_destroy(NULL), GPST_OK);
    gpst_pool_trim(NULL);
    gpst_pool_release(NULL, &buffer);
    gpst_pool_release(t.pool, NULL);
    gpst_pool_release(t.pool, &buffer); /* all zero: nothing on loan */
    gpst_pool_query_info(NULL, &info);
    assert_int_equal(info.held_bytes, 0);
    gpst_pool_query_info(t.pool, NULL);
    test_end(&t, 0);
}

static void test_cap(void** state) {
    test_pool t;
    gpst_buffer a, b, c;
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 3 * 4096);
    assert_int_equal(gpst_pool_acquire(t.pool, 4096, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(t.pool, 8192, 0, &b), GPST_OK);
    assert_int_equal(gpst_pool_acquire(t.pool, 1, 0, &c), GPST_ERROR_WOULD_BLOCK);
    test_reason_has("gpst_pool_acquire: bytes=1", "12288 bytes of the pool are on loan");
    assert_int_equal(gpst_pool_acquire(t.pool, 1, 5 * TEST_MS, &c), GPST_ERROR_TIMEOUT);
    test_reason_has("gpst_pool_acquire: bytes=1", "5000000 ns");
    assert_int_equal(gpst_pool_acquire(t.pool, 12289, GPST_FOREVER, &c), GPST_ERROR_BUDGET); /* never fits */
    test_reason_has("bytes=12289: takes 16384", "desc.max_bytes=12288");
    gpst_pool_info info = test_info(&t);
    assert_int_equal(info.refusals, 3);
    assert_int_equal(info.waits, 1);
    assert_true(info.wait_ns >= 5 * TEST_MS);
    /* free buffers of other classes make room */
    gpst_pool_release(t.pool, &a);
    gpst_pool_release(t.pool, &b);
    assert_int_equal(test_info(&t).held_bytes, 12288);
    gpst_clear_reason();
    assert_int_equal(gpst_pool_acquire(t.pool, 12288, 0, &c), GPST_OK);
    assert_string_equal(gpst_last_reason(), ""); /* success leaves the reason alone */
    assert_int_equal(test_info(&t).held_bytes, 12288);
    assert_int_equal(gpst_pool_destroy(t.pool), GPST_ERROR_STATE);
    test_reason_has("gpst_pool_destroy: ", "1 buffers are on loan");
    assert_int_equal(gpsti_a32_load(&t.log.n_errors), 2); /* the reason, and what the pool has */
    assert_non_null(strstr(t.log.last, "12288 bytes each: 1 lent, 0 free"));
    gpst_pool_release(t.pool, &c);
    test_end(&t, 2);
}

static void test_context_budget(void** state) {
    test_pool t;
    gpst_pool* other = NULL;
    gpst_buffer a, b, c;
    (void)state;
    test_begin(&t, 16384, 0);
    assert_int_equal(gpst_pool_create(t.context, NULL, &other), GPST_OK);
    assert_int_equal(gpst_pool_acquire(other, 12288, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(t.pool, 8192, GPST_FOREVER, &b),
                     GPST_ERROR_BUDGET); /* nothing to wait for */
    test_reason_has("bytes=8192: takes 8192, and 12288", "max_host_bytes=16384");
    assert_int_equal(gpst_pool_acquire(t.pool, 4096, 0, &b), GPST_OK);
    assert_int_equal(gpst_pool_acquire(t.pool, 4096, 0, &c), GPST_ERROR_WOULD_BLOCK);
    gpst_pool_release(other, &a);
    gpst_pool_trim(other);
    assert_int_equal(gpst_pool_acquire(t.pool, 12288, 0, &c), GPST_OK);
    gpst_pool_release(t.pool, &b);
    gpst_pool_release(t.pool, &c);
    assert_int_equal(gpst_pool_destroy(other), GPST_OK);
    test_end(&t, 0);
}

static void test_misuse(void** state) {
    test_pool t;
    gpst_pool* other = NULL;
    gpst_buffer a, b, copy, odd;
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 0);
    assert_int_equal(gpst_pool_create(t.context, NULL, &other), GPST_OK);
    assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(other, 100, 0, &b), GPST_OK);
    copy = b;
    assert_true(copy.id != a.id);
    gpst_pool_release(t.pool, &copy);
    assert_int_equal(gpsti_a32_load(&t.log.n_errors), 1);
    assert_non_null(strstr(t.log.last, "not on loan from this pool"));
    odd = a;
    odd.id = UINT64_MAX;
    gpst_pool_release(t.pool, &odd);
    assert_int_equal(gpsti_a32_load(&t.log.n_errors), 2);
    assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &odd), GPST_OK);
    memcpy(odd.data, &odd, sizeof odd); /* the struct may lie where the next user may write: AddressSanitizer watches */
    gpst_pool_release(t.pool, (gpst_buffer*)odd.data);
    copy = a;
    gpst_pool_release(t.pool, &a);
    odd = copy;
    gpst_pool_release(t.pool, &odd); /* double */
    assert_int_equal(gpsti_a32_load(&t.log.n_errors), 3);
    assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &a), GPST_OK);
    gpst_pool_release(t.pool, &copy); /* an earlier loan of the buffer that is out again */
    assert_int_equal(gpsti_a32_load(&t.log.n_errors), 4);
    assert_int_equal(test_info(&t).live_bytes, 4096);
    gpst_pool_release(t.pool, &a);
    gpst_pool_release(other, &b);
    assert_int_equal(gpst_pool_destroy(other), GPST_OK);
    test_end(&t, 4);
}

/* ---- a device whose memory fails, or comes in large units ---------------------------- */

static gpsti_backend_i test_device;
static gpst_result (*test_real_host_alloc)(gpsti_device*, size_t, bool, gpsti_host_memory*);
static uint64_t test_fail_device_at, test_device_calls;
static gpst_result test_device_result;
static size_t test_huge_unit_bytes;

static gpst_result test_host_alloc(gpsti_device* device, size_t bytes, bool want_huge,
                                   gpsti_host_memory* out) {
    if (++test_device_calls == test_fail_device_at)
        return gpsti_fail(test_device_result, "test device: bytes=%zu: none left", bytes);
    if (want_huge && test_huge_unit_bytes)
        (void)gpsti_size_round_up(bytes, test_huge_unit_bytes, &bytes);
    GPSTI_TRY(test_real_host_alloc(device, bytes, false, out));
    out->pages = want_huge ? GPSTI_PAGES_HUGETLB : GPSTI_PAGES_SMALL;
    gpsti_copy_text(out->why_not, sizeof out->why_not, want_huge ? "" : "small pages were asked for");
    return GPST_OK;
}

static void test_use_device(test_pool* t) {
    test_device = *t->context->device->i;
    test_real_host_alloc = test_device.host_alloc;
    test_device.host_alloc = test_host_alloc;
    t->context->device->i = &test_device;
    test_fail_device_at = 0;
    test_device_result = GPST_ERROR_MEMORY;
    test_device_calls = 0;
    test_huge_unit_bytes = 0;
}

static void test_device_failure(void** state) {
    test_pool t;
    gpst_buffer a, b;
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 8192);
    test_use_device(&t);
    test_fail_device_at = 2;
    assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &b), GPST_ERROR_MEMORY);
    test_reason_has("test device: bytes=4096", "none left");
    assert_null(b.data);
    assert_int_equal(test_info(&t).held_bytes, 4096);
    assert_int_equal(test_info(&t).refusals, 1);
    const uint64_t live_bytes = gpsti_a64_load(&t.memory.live_bytes);
    for (int i = 0; i < 40; i++) {
        test_fail_device_at = test_device_calls + 1;
        assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &b), GPST_ERROR_MEMORY);
    }
    assert_int_equal(gpsti_a64_load(&t.memory.live_bytes), live_bytes); /* failures leave nothing behind */
    assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &b), GPST_OK);   /* the next attempt works */
    assert_int_equal(test_info(&t).held_bytes, 8192);
    gpst_pool_release(t.pool, &a);
    gpst_pool_release(t.pool, &b);
    test_end(&t, 0);
}

/* Of a lost device nothing more can be had: the cpu's memory serves, unless the backend is required. */
static void test_device_lost(void** state) {
    test_pool t;
    gpst_buffer a;
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 0);
    test_use_device(&t);
    test_device_result = GPST_ERROR_DEVICE_LOST;
    test_fail_device_at = 1;
    assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &a), GPST_OK);
    assert_int_equal(test_device_calls, 2);
    memset(a.data, 1, a.bytes);
    gpst_pool_release(t.pool, &a);
    gpst_pool_trim(t.pool);
    t.context->require_backend = true;
    test_fail_device_at = 3;
    assert_int_equal(gpst_pool_acquire(t.pool, 100, 0, &a), GPST_ERROR_DEVICE_LOST);
    assert_int_equal(test_info(&t).held_bytes, 0);
    test_end(&t, 0);
}

static void test_huge_pages(void** state) {
    test_pool t;
    gpst_buffer a, b, c;
    (void)state;
    test_begin(&t, 1024 * TEST_MIB, 1024 * TEST_MIB);
    test_use_device(&t);
    test_huge_unit_bytes = 2 * TEST_MIB;
    assert_int_equal(gpst_pool_acquire(t.pool, 11 * TEST_MIB / 16, 0, &a), GPST_OK); /* not asked for */
    assert_int_equal(test_info(&t).hugetlb_bytes, 0);
    gpst_pool_release(t.pool, &a);
    gpst_pool_trim(t.pool);
    assert_int_equal(gpst_pool_acquire(t.pool, 3 * TEST_MIB / 4, 0, &a), GPST_OK);
    assert_int_equal(test_info(&t).hugetlb_bytes, 2 * TEST_MIB);
    gpst_pool_release(t.pool, &a);
    gpst_pool_trim(t.pool);
    assert_int_equal(gpst_pool_acquire(t.pool, TEST_MIB / 2, 0, &a), GPST_OK);
    assert_int_equal(test_info(&t).small_bytes, TEST_MIB / 2);
    assert_string_equal(test_info(&t).pages_reason, "small pages were asked for");
    assert_int_equal(gpst_pool_acquire(t.pool, TEST_MIB, 0, &b), GPST_OK);
    assert_int_equal(test_info(&t).hugetlb_bytes, 2 * TEST_MIB);
    gpst_pool_release(t.pool, &b);
    gpst_pool_trim(t.pool);
    assert_int_equal(gpst_pool_acquire(t.pool, 5 * TEST_MIB, 0, &b), GPST_OK);
    assert_int_equal(b.bytes, 5 * TEST_MIB);
    assert_int_equal(test_info(&t).hugetlb_bytes, 6 * TEST_MIB); /* charged as the pages come */
    assert_int_equal(test_info(&t).held_bytes, 13 * TEST_MIB / 2);
    assert_int_equal(gpst_pool_acquire(t.pool, 7 * TEST_MIB / 2, 0, &c), GPST_OK);
    assert_int_equal(test_info(&t).held_bytes, 21 * TEST_MIB / 2);
    gpst_pool_release(t.pool, &c);
    gpst_pool_trim(t.pool);
    gpst_pool_release(t.pool, &b);
    assert_int_equal(gpst_pool_acquire(t.pool, 60 * TEST_MIB, 0, &b), GPST_OK);
    gpst_pool_trim(t.pool);
    t.context->info.max_host_bytes = 64 * TEST_MIB; /* no room for the rest of a huge page: small ones */
    assert_int_equal(gpst_pool_acquire(t.pool, 3 * TEST_MIB, 0, &c), GPST_OK);
    assert_int_equal(test_info(&t).held_bytes, 127 * TEST_MIB / 2);
    assert_int_equal(test_info(&t).small_bytes, 7 * TEST_MIB / 2);
    gpst_pool_release(t.pool, &a);
    gpst_pool_release(t.pool, &b);
    gpst_pool_release(t.pool, &c);
    test_end(&t, 0);
}

static void test_huge_pages_choice(void** state) {
    static const gpst_huge_pages choices[] = {GPST_HUGE_PAGES_OFF, GPST_HUGE_PAGES_ALWAYS};
    (void)state;
    for (int i = 0; i < 2; i++) {
        test_pool t;
        gpst_pool* pool = NULL;
        gpst_pool_desc desc = GPST_ZERO;
        gpst_pool_info info;
        gpst_buffer a;
        test_begin(&t, 64 * TEST_MIB, 0);
        test_use_device(&t);
        desc.huge_pages = choices[i];
        assert_int_equal(gpst_pool_create(t.context, &desc, &pool), GPST_OK);
        assert_int_equal(gpst_pool_acquire(pool, i ? 1 : 4 * TEST_MIB, 0, &a), GPST_OK);
        gpst_pool_query_info(pool, &info);
        assert_int_equal(info.hugetlb_bytes, i ? 4096 : 0);
        gpst_pool_release(pool, &a);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        test_end(&t, 0);
    }
}

/* ---- many threads ----------------------------------------------------------------------- */

typedef struct test_waiter {
    gpst_pool* pool;
    size_t bytes;
    gpsti_a32 started;
    gpst_result result;
} test_waiter;

static void test_wait_for_buffer(void* arg) {
    test_waiter* waiter = (test_waiter*)arg;
    gpst_buffer buffer;
    gpsti_a32_store(&waiter->started, 1);
    waiter->result = gpst_pool_acquire(waiter->pool, waiter->bytes, GPST_FOREVER, &buffer);
    gpst_pool_release(waiter->pool, &buffer);
}

/* Each of several waiters is woken by a release, also when what comes back is of another class. */
static void test_waiters(void** state) {
    test_pool t;
    gpst_buffer held[2];
    test_waiter waiters[3];
    gpsti_thread threads[3];
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 8192);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpst_pool_acquire(t.pool, 4096, 0, &held[i]), GPST_OK);
    for (int i = 0; i < 3; i++) {
        memset(&waiters[i], 0, sizeof waiters[i]);
        waiters[i].pool = t.pool;
        waiters[i].bytes = i ? 4096 : 8192;
        waiters[i].result = GPST_ERROR_INTERNAL;
        assert_int_equal(gpsti_thread_start(&threads[i], test_wait_for_buffer, &waiters[i], "waiter"),
                         GPST_OK);
        while (!gpsti_a32_load(&waiters[i].started))
            gpsti_yield();
    }
    while (test_info(&t).waits < 3)
        gpsti_sleep_ns(TEST_MS);
    gpst_pool_release(t.pool, &held[0]);
    for (int i = 1; i < 3;
         i++) /* the first waiter, who wants more, must not keep the others from what is there */
        gpsti_thread_join(&threads[i]);
    gpst_pool_release(t.pool, &held[1]);
    gpsti_thread_join(&threads[0]);
    for (int i = 0; i < 3; i++)
        assert_int_equal(waiters[i].result, GPST_OK);
    assert_int_equal(test_info(&t).waits, 3);
    test_end(&t, 0);
}

typedef struct test_user {
    gpst_pool* pool;
    uint64_t seed;
    uint32_t n_rounds, n_got, n_refused, n_wrong;
} test_user;

static bool test_pattern_holds(const gpst_buffer* buffer, uint8_t pattern) {
    const uint8_t* bytes = (const uint8_t*)buffer->data;
    for (size_t i = 0; i < buffer->bytes; i += 509)
        if (bytes[i] != pattern)
            return false;
    return bytes[buffer->bytes - 1] == pattern;
}

/* Holds up to three buffers at a time; each must keep this thread's pattern until it goes back. */
static void test_use(void* arg) {
    test_user* user = (test_user*)arg;
    gpst_buffer held[3];
    uint8_t patterns[3];
    memset(held, 0, sizeof held);
    for (uint32_t i = 0; i < user->n_rounds; i++) {
        const uint64_t random = test_random(&user->seed);
        const uint32_t at = (uint32_t)(random >> 8) % 3;
        if (held[at].data) {
            user->n_wrong += !test_pattern_holds(&held[at], patterns[at]);
            gpst_pool_release(user->pool, &held[at]);
            continue;
        }
        /* no waiting while something is held: all could wait for each other */
        const bool may_wait = !held[0].data && !held[1].data && !held[2].data;
        const gpst_result result = gpst_pool_acquire(user->pool, 1 + (size_t)(random >> 16) % 40000,
                                                     may_wait ? GPST_FOREVER : 0, &held[at]);
        user->n_got += result == GPST_OK;
        user->n_refused += result == GPST_ERROR_WOULD_BLOCK;
        user->n_wrong += result != GPST_OK && (may_wait || result != GPST_ERROR_WOULD_BLOCK);
        if (result == GPST_OK) {
            patterns[at] = (uint8_t)random;
            memset(held[at].data, patterns[at], held[at].bytes);
        }
    }
    for (int i = 0; i < 3; i++)
        gpst_pool_release(user->pool, &held[i]);
}

static void test_threads(void** state) {
    test_pool t;
    test_user users[4];
    gpsti_thread threads[4];
    uint64_t seed = test_seed(11);
    uint32_t n_got = 0, n_refused = 0;
    (void)state;
    test_begin(&t, 64 * TEST_MIB, 120000);
    memset(users, 0, sizeof users);
    for (int i = 0; i < 4; i++) {
        users[i].pool = t.pool;
        users[i].seed = test_random(&seed);
        users[i].n_rounds = 4000;
        assert_int_equal(gpsti_thread_start(&threads[i], test_use, &users[i], "user"), GPST_OK);
    }
    for (int i = 0; i < 200; i++) {
        assert_true(test_info(&t).held_bytes <= 120000);
        if (i % 20 == 0)
            gpst_pool_trim(t.pool);
        gpsti_sleep_ns(TEST_MS / 10);
    }
    for (int i = 0; i < 4; i++) {
        gpsti_thread_join(&threads[i]);
        assert_int_equal(users[i].n_wrong, 0);
        n_got += users[i].n_got;
        n_refused += users[i].n_refused;
    }
    const gpst_pool_info info = test_info(&t);
    assert_int_equal(info.live_bytes, 0);
    assert_int_equal(info.acquires, n_got);
    assert_int_equal(info.refusals, n_refused);
    assert_true(info.peak_bytes <= 120000);
    assert_int_equal(gpsti_a64_load(&t.context->host_bytes), info.held_bytes);
    assert_true(n_got > 4000 && n_refused > 0);
    test_end(&t, 0);
}

/* ---- faults --------------------------------------------------------------------------- */

static void test_faults(void** state) {
    gpst_result result = GPST_ERROR_MEMORY;
    uint64_t n = 0;
    (void)state;
    for (n = 1; GPST_FAILED(result); n++) {
        test_pool t;
        gpst_pool* pool = NULL;
        gpst_buffer held[20];
        memset(held, 0, sizeof held);
        test_begin(&t, 64 * TEST_MIB, 0);
        test_memory_refuse(&t.memory, n);
        gpst_clear_reason();
        result = gpst_pool_create(t.context, NULL, &pool);
        for (int i = 0; i < 20 && !GPST_FAILED(result); i++) /* more than the first table of entries holds */
            result = gpst_pool_acquire(pool, 100, 0, &held[i]);
        if (GPST_FAILED(result)) {
            assert_int_equal(result, GPST_ERROR_MEMORY);
            test_reason_has("out of memory", "bytes=");
        }
        for (int i = 0; i < 20; i++)
            gpst_pool_release(pool, &held[i]);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        test_end(&t, 0);
    }
    assert_true(n >= 4);
}

#if defined(__linux__)
/* Is a page of each 2 MiB in memory? */
static bool test_is_used(const gpst_buffer* buffer, size_t bytes) {
    unsigned char in_use = 0;
    bool all = true;
    for (size_t at = 0; at < bytes; at += 2 * TEST_MIB) {
        assert_int_equal(mincore((char*)buffer->data + at, 4096, &in_use), 0);
        all = all && (in_use & 1) != 0;
    }
    return all;
}

/* Large memory that will be filled is used as it is made, so that what that takes is no stage's; what may stay empty,
   or is small, is left as it is. */
static void test_memory_that_will_be_filled(void** state) {
    static const struct {
        size_t bytes;
        bool is_filled, is_used;
    } rows[] = {{9 * TEST_MIB, true, true},
                {10 * TEST_MIB, false, false},
                {(size_t)3 << 18, true, true},
                {((size_t)3 << 18) - 4096, true, false}};
    static const gpst_huge_pages choices[] = {GPST_HUGE_PAGES_DEFAULT, GPST_HUGE_PAGES_OFF};
    (void)state;
    for (int i = 0; i < 2 * 4; i++) {
        test_pool t;
        gpst_pool* pool = NULL;
        gpst_pool_desc desc = GPST_ZERO;
        gpst_pool_info info;
        gpst_buffer a;
        const int r = i / 2;
        test_begin(&t, 64 * TEST_MIB, 0);
        desc.huge_pages = choices[i % 2];
        assert_int_equal(gpst_pool_create(t.context, &desc, &pool), GPST_OK);
        assert_int_equal(gpsti_pool_acquire_now(pool, rows[r].bytes, rows[r].is_filled, &a), GPST_OK);
        gpst_pool_query_info(pool, &info);
        if (info.hugetlb_bytes == 0) /* those are there from the first */
            assert_int_equal(test_is_used(&a, rows[r].bytes), rows[r].is_used);
        gpst_pool_release(pool, &a);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        test_end(&t, 0);
    }
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes),        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_reason_stays),
        cmocka_unit_test(test_arguments),      cmocka_unit_test(test_cap),
        cmocka_unit_test(test_context_budget), cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_device_failure), cmocka_unit_test(test_device_lost),
        cmocka_unit_test(test_huge_pages),     cmocka_unit_test(test_huge_pages_choice),
        cmocka_unit_test(test_waiters),        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_faults),
#if defined(__linux__)
        cmocka_unit_test(test_memory_that_will_be_filled),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
