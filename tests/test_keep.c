/* tests/test_keep.c -- memory between two pipelines: found again, within its caps, never in the way of what is
   needed, and priced as what it was when it was made. */
#include "pipeline_kit.h"

#include <sys/wait.h>

enum { PAGE = 4096 };

static gpst_context* open_context(const char* backend, uint64_t max_host_bytes, uint64_t max_kept_bytes) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    desc.backend = backend;
    desc.n_workers = 1;
    desc.max_host_bytes = desc.max_device_bytes = max_host_bytes;
    desc.max_kept_bytes = max_kept_bytes;
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    return context;
}

static uint64_t kept_host_bytes(const gpst_context* context) {
    gpst_context_info info;
    gpst_context_query_info(context, &info);
    return info.kept_host_bytes;
}

static uint64_t kept_device_bytes(const gpst_context* context) {
    gpst_context_info info;
    gpst_context_query_info(context, &info);
    return info.kept_device_bytes;
}

static gpsti_host_memory take(gpst_context* context, size_t bytes, bool want_huge, bool* found) {
    gpsti_host_memory memory;
    int64_t known_ns = -1;
    assert_int_equal(gpsti_keep_host_alloc(context->keep, context->device, bytes, want_huge, 0, &memory, &known_ns),
                     GPST_OK);
    assert_true(known_ns >= 0);
    *found = known_ns > 0;
    return memory;
}

static void give(gpst_context* context, size_t bytes, gpsti_host_memory memory) {
    gpsti_keep_host_free(context->keep, context->device, bytes, false, &memory);
}

static void test_what_is_kept_is_found(void** state) {
    gpst_context* const context = open_context("cpu", 0, 0);
    bool found = true;
    (void)state;
    const gpsti_host_memory a = take(context, PAGE, false, &found);
    assert_false(found);
    const gpsti_host_memory b = take(context, PAGE, false, &found);
    assert_false(found);
    give(context, PAGE, a);
    give(context, PAGE, b);
    assert_int_equal(kept_host_bytes(context), a.bytes + b.bytes);
    const gpsti_host_memory other = take(context, 2 * PAGE, false, &found);
    assert_false(found); /* of another size */
    const gpsti_host_memory huge = take(context, PAGE, true, &found);
    assert_false(found); /* of other pages */
    const gpsti_host_memory again = take(context, PAGE, false, &found);
    assert_true(found);
    assert_ptr_equal(again.ptr, b.ptr); /* the latest */
    assert_int_equal(kept_host_bytes(context), a.bytes);
    give(context, PAGE, again);
    give(context, 2 * PAGE, other);
    gpsti_keep_host_free(context->keep, context->device, PAGE, true, (gpsti_host_memory*)(uintptr_t)&huge);
    gpst_context_trim(context);
    assert_int_equal(kept_host_bytes(context), 0);
    gpst_context_trim(context);
    gpst_context_trim(NULL);
    gpst_context_destroy(context);
}

/* What comes last stays. */
static void test_caps(void** state) {
    gpst_context* context = open_context("cpu", 0, 3 * PAGE);
    gpsti_host_memory memory[GPSTI_KEEP_MOST + 1];
    bool found = true;
    (void)state;
    for (int i = 0; i < 4; i++)
        memory[i] = take(context, PAGE, false, &found);
    for (int i = 0; i < 4; i++)
        give(context, PAGE, memory[i]);
    assert_int_equal(kept_host_bytes(context), 3 * PAGE);
    for (int i = 4; i-- > 1;) {
        const gpsti_host_memory again = take(context, PAGE, false, &found);
        assert_true(found);
        assert_ptr_equal(again.ptr, memory[i].ptr);
        context->device->i->host_free(context->device, (gpsti_host_memory*)(uintptr_t)&again);
    }
    memory[0] = take(context, 4 * PAGE, false, &found);
    give(context, 4 * PAGE, memory[0]); /* too large by itself */
    assert_int_equal(kept_host_bytes(context), 0);
    gpst_context_destroy(context);

    context = open_context("cpu", 0, 0);
    for (int i = 0; i <= GPSTI_KEEP_MOST; i++)
        memory[i] = take(context, PAGE, false, &found);
    for (int i = 0; i <= GPSTI_KEEP_MOST; i++)
        give(context, PAGE, memory[i]);
    assert_int_equal(kept_host_bytes(context), (uint64_t)GPSTI_KEEP_MOST * PAGE);
    memory[0] = take(context, 3 * PAGE, false, &found); /* takes nothing's place */
    assert_int_equal(kept_host_bytes(context), (uint64_t)GPSTI_KEEP_MOST * PAGE);
    give(context, 3 * PAGE, memory[0]);
    assert_int_equal(kept_host_bytes(context), (uint64_t)(GPSTI_KEEP_MOST - 1) * PAGE + 3 * PAGE);
    gpst_context_destroy(context);

    context = open_context("cpu", 0, 1);
    memory[0] = take(context, PAGE, false, &found);
    give(context, PAGE, memory[0]);
    assert_int_equal(kept_host_bytes(context), 0);
    gpst_context_destroy(context);
}

/* What is in use and what is kept are never more than the budget. */
static void test_use_goes_first(void** state) {
    gpst_context* const context = open_context("cpu", 10 * PAGE, 8 * PAGE);
    gpsti_host_memory memory[4];
    bool found = true;
    (void)state;
    for (int i = 0; i < 4; i++)
        memory[i] = take(context, 2 * PAGE, false, &found);
    for (int i = 0; i < 4; i++)
        give(context, 2 * PAGE, memory[i]);
    assert_int_equal(kept_host_bytes(context), 8 * PAGE);
    assert_true(gpsti_budget_try_charge(&context->host_bytes, 10 * PAGE, 5 * PAGE));
    memory[0] = take(context, 5 * PAGE, false, &found);
    assert_false(found);
    assert_int_equal(kept_host_bytes(context), 4 * PAGE);
    memory[1] = memory[0];
    give(context, 5 * PAGE, memory[1]); /* still charged: 5 in use and 5 kept */
    assert_int_equal(kept_host_bytes(context), 5 * PAGE);
    gpsti_budget_refund(&context->host_bytes, 5 * PAGE);
    gpst_context_destroy(context);
}

static void test_kept_memory_makes_way_on_a_device(void** state) {
    gpst_context* const context = open_context("sim:oom_mb=8", (uint64_t)1 << 30, (uint64_t)1 << 30);
    gpsti_device* const device = context->device;
    gpsti_keep* const keep = context->keep;
    const size_t mb = (size_t)1 << 20;
    void *a = NULL, *b = NULL;
    int64_t known_ns = 0;
    (void)state;
    assert_int_equal(gpsti_keep_memory_alloc(keep, device, 6 * mb, &a, &known_ns), GPST_OK);
    assert_int_equal(gpsti_keep_memory_alloc(keep, device, 4 * mb, &b, &known_ns), GPST_ERROR_DEVICE_MEMORY);
    gpsti_keep_memory_free(keep, device, a, 6 * mb);
    assert_int_equal(kept_device_bytes(context), 6 * mb);
    assert_int_equal(gpsti_keep_memory_alloc(keep, device, 4 * mb, &b, &known_ns), GPST_OK);
    assert_int_equal(known_ns, 0);
    assert_int_equal(kept_device_bytes(context), 0);
    gpsti_keep_memory_free(keep, device, b, 4 * mb);
    assert_int_equal(gpsti_keep_memory_alloc(keep, device, 4 * mb, &a, &known_ns), GPST_OK);
    assert_ptr_equal(a, b);
    assert_true(known_ns > 0);
    gpsti_keep_memory_free(keep, device, a, 4 * mb);
    gpst_context_destroy(context);
}

/* A device that says how often it was asked and what is out, refuses when told to, and takes its time. */
static struct {
    gpsti_backend_i i;
    const gpsti_backend_i* real;
    gpsti_device* device;
    gpst_result refusal; /* of the next call */
    int64_t alloc_ns;
    size_t more_bytes; /* than were asked for, of huge pages */
    int n_asked;
    gpsti_a32 n_out;
    uint32_t most_out; /* there is no memory for more; 0 = for any number */
    void (*inside)(void); /* called once, from the next call */
    bool free_waits; /* until somebody was refused */
    gpsti_a32 is_freeing, n_refused;
} odd;

static bool odd_refuses(gpst_result* result) {
    void (*const inside)(void) = odd.inside;
    *result = odd.refusal;
    odd.refusal = GPST_OK;
    odd.inside = NULL;
    odd.n_asked++;
    if (inside)
        inside();
    if (odd.alloc_ns)
        gpsti_sleep_ns(odd.alloc_ns);
    return GPST_FAILED(*result);
}

static gpst_result odd_host_alloc(gpsti_device* device, size_t bytes, bool want_huge, gpsti_host_memory* out) {
    gpst_result result;
    if (odd_refuses(&result))
        return result;
    if (odd.most_out > 0 && gpsti_a32_load(&odd.n_out) >= odd.most_out) {
        (void)gpsti_a32_add(&odd.n_refused, 1);
        return GPST_ERROR_MEMORY;
    }
    (void)gpsti_a32_add(&odd.n_out, 1);
    return odd.real->host_alloc(device, bytes + (want_huge ? odd.more_bytes : 0), want_huge, out);
}

static void odd_host_free(gpsti_device* device, gpsti_host_memory* memory) {
    const int64_t give_up_ns = gpsti_now_ns() + (int64_t)10 * 1000000000;
    gpsti_a32_store(&odd.is_freeing, 1);
    while (odd.free_waits && gpsti_a32_load(&odd.n_refused) == 0 && gpsti_now_ns() < give_up_ns)
        gpsti_sleep_ns(1000000);
    (void)gpsti_a32_add(&odd.n_out, UINT32_MAX);
    odd.real->host_free(device, memory);
}

static gpst_result odd_memory_alloc(gpsti_device* device, size_t bytes, void** out) {
    gpst_result result;
    return odd_refuses(&result) ? result : odd.real->memory_alloc(device, bytes, out);
}

static gpst_context* open_odd(const char* backend, uint64_t max_kept_bytes) {
    gpst_context* const context = open_context(backend, (uint64_t)1 << 30, max_kept_bytes);
    memset(&odd, 0, sizeof odd);
    odd.device = context->device;
    odd.real = context->device->i;
    odd.i = *odd.real;
    odd.i.host_alloc = odd_host_alloc;
    odd.i.host_free = odd_host_free;
    odd.i.memory_alloc = odd_memory_alloc;
    context->device->i = &odd.i;
    return context;
}

/* All is back where it came from. */
static void close_odd(gpst_context* context) {
    gpst_context_trim(context);
    assert_int_equal(gpsti_a32_load(&odd.n_out), 0);
    odd.device->i = odd.real;
    gpst_context_destroy(context);
}

static void test_what_does_not_stay_is_freed(void** state) {
    gpst_context* const context = open_odd("cpu", 2 * PAGE);
    gpsti_keep* const keep = context->keep;
    bool found = true;
    (void)state;
    const gpsti_host_memory a = take(context, PAGE, false, &found), b = take(context, 2 * PAGE, false, &found);
    const gpsti_host_memory large = take(context, 3 * PAGE, false, &found), odd_one = take(context, 100, false, &found);
    give(context, 100, odd_one);
    assert_int_equal(kept_host_bytes(context), odd_one.bytes); /* not of what was asked for */
    gpst_context_trim(context);
    give(context, PAGE, a);
    give(context, 3 * PAGE, large);
    assert_int_equal(kept_host_bytes(context), PAGE); /* what fits does not go for what cannot */
    assert_int_equal(gpsti_a32_load(&odd.n_out), 2);
    gpsti_keep_count_run(keep);
    gpsti_keep_count_run(keep);
    give(context, 2 * PAGE, b);
    assert_int_equal(gpsti_a32_load(&odd.n_out), 1);
    gpsti_keep_count_run(keep);
    assert_int_equal(gpsti_keep_share_ns(keep, 1000), 1000); /* `a` had to go */
    gpst_context_trim(context);
    gpsti_keep_count_run(keep);
    assert_int_equal(gpsti_keep_share_ns(keep, 1000), 500); /* trimmed before the run */
    close_odd(context);
}

/* Nobody is refused while something is kept; nobody asks twice when nothing is. */
static void test_refusals(void** state) {
    gpst_context* const context = open_odd("cpu", 0);
    gpsti_keep* const keep = context->keep;
    gpsti_host_memory memory;
    bool found = true;
    int64_t known_ns = 0;
    (void)state;
    give(context, PAGE, take(context, PAGE, false, &found));
    odd.refusal = GPST_ERROR_MEMORY;
    memory = take(context, 2 * PAGE, false, &found);
    assert_int_equal(odd.n_asked, 3);
    assert_int_equal(kept_host_bytes(context), 0);
    odd.refusal = GPST_ERROR_MEMORY;
    const uint64_t made_bytes = keep->host.made_bytes;
    gpsti_host_memory none;
    assert_int_equal(gpsti_keep_host_alloc(keep, context->device, PAGE, false, 0, &none, &known_ns), GPST_ERROR_MEMORY);
    assert_int_equal(odd.n_asked, 4);
    give(context, 2 * PAGE, memory);
    odd.refusal = GPST_ERROR_DEVICE_LOST;
    assert_int_equal(gpsti_keep_host_alloc(keep, context->device, PAGE, false, 0, &none, &known_ns),
                     GPST_ERROR_DEVICE_LOST);
    assert_int_equal(keep->host.made_bytes, made_bytes);
    assert_int_equal(kept_host_bytes(context), 2 * PAGE);
    odd.refusal = GPST_ERROR_DEVICE_MEMORY;
    void* ptr = NULL;
    gpst_context_trim(context);
    assert_int_equal(gpsti_keep_memory_alloc(keep, context->device, PAGE, &ptr, &known_ns), GPST_ERROR_DEVICE_MEMORY);
    assert_int_equal(keep->device.made_bytes, 0);
    close_odd(context);
}

static void trim(void* arg) { gpst_context_trim((gpst_context*)arg); }

/* What another thread is just giving back is waited for. */
static void test_refused_while_another_frees(void** state) {
    gpst_context* const context = open_odd("cpu", 0);
    gpsti_thread thread;
    bool found = true;
    (void)state;
    give(context, PAGE, take(context, PAGE, false, &found));
    odd.free_waits = true;
    odd.most_out = 1;
    assert_int_equal(gpsti_thread_start(&thread, trim, context, "trim"), GPST_OK);
    while (gpsti_a32_load(&odd.is_freeing) == 0)
        gpsti_sleep_ns(100000);
    give(context, 2 * PAGE, take(context, 2 * PAGE, false, &found));
    gpsti_thread_join(&thread);
    assert_int_equal(odd.n_asked, 3);
    odd.free_waits = false;
    close_odd(context);
}

static gpst_context* odd_context;

static void trim_inside(void) { gpst_context_trim(odd_context); }

/* Another has given all of it back when the refusal is known: that is no reason to believe it. */
static void test_refused_while_another_freed(void** state) {
    gpst_context* const context = open_odd("cpu", 0);
    bool found = true;
    (void)state;
    give(context, PAGE, take(context, PAGE, false, &found));
    odd_context = context;
    odd.inside = trim_inside;
    odd.refusal = GPST_ERROR_MEMORY;
    give(context, 2 * PAGE, take(context, 2 * PAGE, false, &found));
    assert_int_equal(odd.n_asked, 3);
    close_odd(context);
}

/* Pools and rings that a user makes find nothing, and nothing is in their way. */
static void test_it_makes_way_for_all(void** state) {
    gpst_context* const context = open_context("cpu", 10 * PAGE, 8 * PAGE);
    gpst_ring_desc ring_desc = GPST_ZERO;
    gpst_ring* ring = NULL;
    gpst_pool* pool = NULL;
    gpst_buffer buffers[10];
    bool found = true;
    (void)state;
    for (int way = 0; way < 2; way++) {
        gpsti_host_memory memory[4];
        for (int i = 0; i < 4; i++)
            memory[i] = take(context, 2 * PAGE, false, &found);
        for (int i = 0; i < 4; i++)
            give(context, 2 * PAGE, memory[i]);
        assert_int_equal(kept_host_bytes(context), 8 * PAGE);
        if (way == 0) {
            assert_int_equal(gpst_pool_create(context, NULL, &pool), GPST_OK);
            for (int i = 0; i < 10; i++)
                assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &buffers[i]), GPST_OK);
            assert_int_equal(kept_host_bytes(context), 0);
            for (int i = 0; i < 10; i++)
                gpst_pool_release(pool, &buffers[i]);
            assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        } else {
            ring_desc.slot_bytes = 9 * PAGE;
            ring_desc.max_slots = 1;
            assert_int_equal(gpst_ring_create(context, &ring_desc, &ring), GPST_OK);
            assert_int_equal(kept_host_bytes(context), 0);
            gpst_ring_destroy(ring);
        }
    }
    gpst_context_destroy(context);
}

/* A pool that gives memory back for other memory keeps less than it had. */
static void test_a_pool_that_drops(void** state) {
    gpst_context* const context = open_context("cpu", 0, 0);
    gpst_pool_desc desc = GPST_ZERO;
    gpst_pool* pool = NULL;
    gpst_buffer buffer;
    (void)state;
    desc.max_bytes = 4 * PAGE;
    assert_int_equal(gpst_pool_create(context, &desc, &pool), GPST_OK);
    gpsti_pool_set_keeps(pool);
    for (size_t n = 1; n <= 4; n += 3) {
        assert_int_equal(gpst_pool_acquire(pool, n * PAGE, 0, &buffer), GPST_OK);
        gpst_pool_release(pool, &buffer);
    }
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    gpsti_keep_count_run(context->keep);
    assert_false(gpsti_keep_stays(context->keep));
    gpsti_keep_count_run(context->keep);
    assert_true(gpsti_keep_stays(context->keep));
    gpst_context_destroy(context);
}

static gpst_context* nested_context;
static gpsti_host_memory nested_memory;

static void make_nested(void) {
    bool found = true;
    gpsti_sleep_ns(5000000);
    nested_memory = take(nested_context, PAGE, false, &found);
}

/* By the clock, however many make some at once; what is found has a part by its size. */
static void test_the_price_of_a_byte(void** state) {
    gpst_context* const context = open_odd("cpu", 0);
    gpsti_shelf* const host = &context->keep->host;
    gpsti_host_memory memory;
    bool found = true;
    int64_t known_ns = 0;
    (void)state;
    nested_context = context;
    odd.alloc_ns = 5000000;
    odd.inside = make_nested;
    const int64_t start_ns = gpsti_now_ns();
    memory = take(context, 3 * PAGE, false, &found);
    assert_in_range(host->made_ns, 15000000, gpsti_now_ns() - start_ns); /* 5 before, 5 inside, 5 after */
    give(context, PAGE, take(context, PAGE, true, &found));
    assert_in_range(host->made_ns, 20000000, gpsti_now_ns() - start_ns);
    assert_int_equal(host->made_bytes, 5 * PAGE);
    give(context, PAGE, nested_memory);
    give(context, 3 * PAGE, memory);
    host->made_ns = 5000000;
    assert_int_equal(gpsti_keep_host_alloc(context->keep, context->device, 3 * PAGE, false, 0, &memory, &known_ns),
                     GPST_OK);
    assert_int_equal(known_ns, 3000001);
    give(context, 3 * PAGE, memory);
    host->made_ns = 0; /* as a coarse clock has it */
    assert_int_equal(gpsti_keep_host_alloc(context->keep, context->device, 3 * PAGE, false, 0, &memory, &known_ns),
                     GPST_OK);
    assert_int_equal(known_ns, 1); /* found all the same */
    give(context, 3 * PAGE, memory);
    close_odd(context);
}

/* Nobody finds another device's; an eighth of each budget stays; a forked child leaves all where it is. */
static void test_whose_it_is(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    bool found = true;
    gpsti_host_memory memory;
    int64_t known_ns = 0;
    int status = -1;
    (void)state;
    desc.backend = "sim";
    desc.n_workers = 1;
    desc.max_host_bytes = 80 * PAGE;
    desc.max_device_bytes = 160 * PAGE;
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    gpsti_keep* const keep = context->keep;
    assert_int_equal(keep->host.most_bytes, 10 * PAGE);
    assert_int_equal(keep->device.most_bytes, 20 * PAGE);
    assert_int_equal(keep->host.budget_bytes, 80 * PAGE);
    assert_int_equal(keep->device.budget_bytes, 160 * PAGE);
    assert_ptr_equal(keep->host.in_use, &context->host_bytes);
    assert_ptr_equal(keep->device.in_use, &context->device_bytes);
    give(context, PAGE, take(context, PAGE, false, &found));
    assert_int_equal(gpsti_keep_host_alloc(keep, context->cpu, PAGE, false, 0, &memory, &known_ns), GPST_OK);
    assert_int_equal(known_ns, 0);
    gpsti_keep_host_free(keep, context->cpu, PAGE, false, &memory);
    const pid_t child = fork();
    if (!child) {
        gpst_context_trim(context);
        _exit(keep->host.n == 2 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    gpst_context_destroy(context);
}

/* A pool's spare buffers stay, too; of huge pages that it may not have, nothing is left behind. */
static void test_what_a_pool_lets_go(void** state) {
    gpst_context* const context = open_odd("cpu", 0);
    gpst_pool_desc desc = GPST_ZERO;
    gpst_pool* pool = NULL;
    gpst_buffer buffer, again;
    (void)state;
    assert_int_equal(gpst_pool_create(context, NULL, &pool), GPST_OK);
    gpsti_pool_set_keeps(pool);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &buffer), GPST_OK);
    const gpst_buffer first = buffer;
    gpst_pool_release(pool, &buffer);
    gpsti_pool_drop_spare(pool, 0, 4);
    assert_int_equal(kept_host_bytes(context), PAGE);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &again), GPST_OK);
    assert_ptr_equal(again.data, first.data);
    assert_true(again.id != first.id); /* another loan */
    gpst_pool_release(pool, &again);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    odd.more_bytes = PAGE;
    desc.max_bytes = (uint64_t)1 << 20;
    assert_int_equal(gpst_pool_create(context, &desc, &pool), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, (size_t)1 << 20, 0, &buffer), GPST_OK);
    assert_int_equal(odd.n_asked, 3);
    assert_int_equal(gpsti_a32_load(&odd.n_out), 2); /* it, and what is kept */
    gpst_pool_release(pool, &buffer);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    close_odd(context);
}

/* As many runs are expected as there were; one whose memory did not stay is none of them. */
static void test_a_run_s_share(void** state) {
    gpst_context* const context = open_context("cpu", 0, PAGE);
    gpsti_keep* const keep = context->keep;
    bool found = false;
    (void)state;
    assert_int_equal(gpsti_keep_share_ns(keep, 1000), 1000);
    gpsti_keep_count_run(keep);
    assert_int_equal(gpsti_keep_share_ns(keep, 1000), 500);
    for (int i = 0; i < 3; i++)
        gpsti_keep_count_run(keep);
    assert_int_equal(gpsti_keep_share_ns(keep, 1000), 200);
    give(context, 2 * PAGE, take(context, 2 * PAGE, false, &found));
    gpsti_keep_count_run(keep);
    assert_int_equal(gpsti_keep_share_ns(keep, 1000), 1000);
    gpsti_keep_count_run(keep);
    assert_int_equal(gpsti_keep_share_ns(keep, 1000), 500);
    gpst_context_trim(context);
    assert_int_equal(gpsti_keep_share_ns(keep, 1000), 1000);
    gpst_context_destroy(context);
}

/* What it took is told to who finds it: sim's memory of 1 MiB is locked for 10 ms. */
static void test_what_it_took_is_known(void** state) {
    gpst_context* const context = open_context("sim:pin_gbps=0.1", (uint64_t)1 << 30, 0);
    const size_t bytes = (size_t)1 << 20;
    gpsti_host_memory memory;
    int64_t known_ns = 0;
    (void)state;
    for (int i = 0; i < 2; i++) {
        const int64_t start_ns = gpsti_now_ns();
        assert_int_equal(
            gpsti_keep_host_alloc(context->keep, context->device, bytes, false, bytes, &memory, &known_ns), GPST_OK);
        const int64_t took_ns = gpsti_now_ns() - start_ns;
        assert_int_equal(known_ns > 0, i == 1);
        assert_true(i == 1 || took_ns >= 10000000);
        assert_true(i == 0 || known_ns >= 10000000);
        gpsti_keep_host_free(context->keep, context->device, bytes, false, &memory);
    }
    gpst_context_destroy(context);
}

/* Found memory is no growth, and its price is what it was. */
static void test_a_pool_s_price(void** state) {
    gpst_context* const context = open_context("sim:pin_gbps=0.1", (uint64_t)1 << 30, 0);
    (void)state;
    for (uint64_t i = 0; i < 2; i++) {
        gpst_pool* pool = NULL;
        gpst_buffer buffer;
        assert_int_equal(gpst_pool_create(context, NULL, &pool), GPST_OK);
        gpsti_pool_set_keeps(pool);
        assert_int_equal(gpsti_pool_acquire_now(pool, (size_t)8 << 20, true, NULL, &buffer), GPST_OK);
        assert_int_equal(gpsti_pool_n_known(pool), i);
        assert_true(gpsti_pool_price_ns(pool) >= 80000000);
        if (i == 1)
            assert_true(gpsti_pool_growth_ns(pool) < gpsti_pool_price_ns(pool));
        gpst_pool_release(pool, &buffer);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    }
    gpst_context_destroy(context);
}

/* A run's share of the first one's price; of more slots, where a driver locks memory. */
static void test_what_runs_think_of_it(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_standard(self, 40);
    gpsti_keep* const keep = self->context->keep;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    gpst_pipeline* const pipeline = self->pipeline;
    pipeline->tune.tuner.budget.cores = 4;
    pipeline->tune.tuner.budget.streams = 0;
    for (uint32_t n_runs = 0; n_runs < 8; n_runs += 7) {
        keep->n_runs = n_runs;
        if (n_runs == 0)
            gpsti_pool_note_known(pipeline->pool, 8000000);
        assert_int_equal(gpsti_report_growths(pipeline) - gpsti_report_made(pipeline), 1); /* found */
        self->context->device_info.locks_host = false;
        assert_int_equal(gpsti_tune_price_ns(pipeline), 500000 + gpsti_tuner_setups_ns(8000000 / (1 + n_runs)));
        assert_int_equal(gpsti_tune_slot_ns(pipeline), 2000000);
        gpsti_tune_set_filling(pipeline, 1000000);
        assert_int_equal(pipeline->n_filling, 0); /* found memory fills at once */
        self->context->device_info.locks_host = true;
        assert_int_equal(gpsti_tune_price_ns(pipeline), 500000 + gpsti_tuner_setups_ns(8000000 / (1 + n_runs)));
        assert_int_equal(gpsti_tune_slot_ns(pipeline), 8000000 / (1 + n_runs));
    }
    keep->n_runs = 0;
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    assert_int_equal(keep->n_runs, 0); /* it did not run */
    self->pipeline = NULL;
    kit_close(self);
}

/* Pools that the user made give everything back, and their new memory is zeroed. */
static void test_a_user_s_pool_keeps_nothing(void** state) {
    gpst_context* const context = open_context("cpu", 0, 0);
    gpst_pool* pool = NULL;
    gpst_buffer buffer;
    (void)state;
    for (int i = 0; i < 2; i++) { /* not even what an engine left */
        bool found = false;
        if (i == 0) {
            const gpsti_host_memory memory = take(context, PAGE, false, &found);
            memset(memory.ptr, 7, PAGE);
            give(context, PAGE, memory);
        }
        assert_int_equal(gpst_pool_create(context, NULL, &pool), GPST_OK);
        assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &buffer), GPST_OK);
        assert_int_equal(((uint8_t*)buffer.data)[0], 0);
        memset(buffer.data, 7, buffer.bytes);
        gpst_pool_release(pool, &buffer);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        assert_int_equal(kept_host_bytes(context), PAGE);
    }
    gpst_context_destroy(context);
}

/* ---- pipelines ------------------------------------------------------------------------------------ */

static gpst_result run_standard(kit* self, gpst_run_mode mode, gpst_stats* stats) {
    gpst_pipeline_desc desc = kit_standard(self, 40);
    kit_forget(self);
    desc.mode = mode;
    desc.n_slots = mode == GPST_RUN_ENGINE ? 3 : 0;
    const gpst_result result = kit_run(self, &desc, stats);
    kit_check_files(self);
    kit_remove_files(self, "out_");
    return result;
}

/* The second of two equal pipelines makes no memory, and writes the same files. */
static void test_the_next_pipeline_makes_none(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_PLAIN_SERIAL, GPST_RUN_ENGINE};
    (void)state;
    for (int m = 0; m < 2; m++) {
        kit* const self = kit_open("sim", 2);
        gpst_stats stats;
        assert_int_equal(kept_host_bytes(self->context), 0);
        assert_int_equal(run_standard(self, modes[m], &stats), GPST_OK);
        const uint64_t host_bytes = kept_host_bytes(self->context), device_bytes = kept_device_bytes(self->context);
        const uint64_t made_bytes = self->context->keep->host.made_bytes + self->context->keep->device.made_bytes;
        assert_true(host_bytes > 0 && device_bytes > 0 && made_bytes > 0);
        assert_int_equal(gpsti_a64_load(&self->context->host_bytes), 0);
        assert_int_equal(gpsti_a64_load(&self->context->device_bytes), 0);
        assert_int_equal(run_standard(self, modes[m], &stats), GPST_OK);
        if (modes[m] == GPST_RUN_PLAIN_SERIAL) { /* an engine's items may be more at once than they were */
            assert_int_equal(self->context->keep->host.made_bytes + self->context->keep->device.made_bytes, made_bytes);
            assert_int_equal(kept_host_bytes(self->context), host_bytes);
            assert_int_equal(kept_device_bytes(self->context), device_bytes);
        }
        assert_int_equal(self->context->keep->n_runs, 2);
        kit_close(self);
    }
}

static uint64_t n_known_of_pool;

static gpst_result sink_that_asks(void* user_data, const gpst_item* item) {
    kit* const self = (kit*)user_data;
    n_known_of_pool = gpsti_pool_n_known(self->pipeline->pool);
    return kit_sink(self, item);
}

/* A device's memory is found within a budget that has room for it once, and counts as found. */
static void test_a_device_s_budget(void** state) {
    (void)state;
    kit* const self = kit_open("sim", 2);
    assert_int_equal(run_standard(self, GPST_RUN_PLAIN_SERIAL, NULL), GPST_OK);
    const uint64_t bytes = kept_device_bytes(self->context);
    const uint32_t n_host = self->context->keep->host.n, n_device = self->context->keep->device.n;
    gpst_context_trim(self->context);
    self->context->info.max_device_bytes = self->context->keep->device.budget_bytes = bytes;
    for (int i = 0; i < 2; i++) {
        gpst_pipeline_desc desc = kit_standard(self, 40);
        desc.mode = GPST_RUN_PLAIN_SERIAL;
        desc.sink = sink_that_asks;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_OK);
        assert_int_equal(kept_device_bytes(self->context), bytes);
        kit_remove_files(self, "out_");
    }
    assert_int_equal(n_known_of_pool, n_host + n_device);
    kit_close(self);
}

/* What a warp has there, too. */
static void test_a_warp_s_constants(void** state) {
    gpst_view view = GPST_ZERO;
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    uint8_t mask[8 * 8] = {0};
    (void)state;
    kit* const self = kit_open("sim", 2);
    gpst_pipeline_desc desc = kit_standard(self, 1);
    warp_desc.map = GPST_MAP_EQUIRECT;
    warp_desc.views = &view;
    warp_desc.n_views = 1;
    warp_desc.width = warp_desc.height = 8;
    warp_desc.format = GPST_FORMAT_GRAY;
    warp_desc.mask.width = warp_desc.mask.height = 8;
    warp_desc.mask.pitch_bytes = 8;
    warp_desc.mask.format = GPST_FORMAT_GRAY;
    warp_desc.mask.data = mask;
    assert_int_equal(gpst_warp_create(&warp_desc, &warp), GPST_OK);
    desc.n_outputs = self->n_outputs = 1;
    self->stages[2].kind = GPST_STAGE_WARP;
    self->stages[2].func = NULL;
    self->stages[2].warp = warp;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_non_null(self->pipeline->stages[2].constants);
        assert_int_equal(self->context->keep->device.made_bytes, 64);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        assert_int_equal(kept_device_bytes(self->context), 64);
    }
    gpst_warp_destroy(warp);
    kit_close(self);
}

static void test_nothing_stays_of_a_lost_device(void** state) {
    gpst_context* const context = open_context("cpu", 0, 0);
    bool found = true;
    (void)state;
    const gpsti_host_memory a = take(context, PAGE, false, &found), b = take(context, PAGE, false, &found);
    give(context, PAGE, a);
    gpsti_keep_lose(context->keep);
    give(context, PAGE, b);
    assert_int_equal(kept_host_bytes(context), PAGE);
    gpsti_keep_count_run(context->keep);
    assert_int_equal(kept_host_bytes(context), 0);
    assert_false(gpsti_keep_stays(context->keep));
    gpst_context_destroy(context);
}

/* The device's memory went with it. */
static void test_a_lost_device_leaves_nothing(void** state) {
    (void)state;
    kit* const self = kit_open("sim:lose_at=30", 2);
    gpst_stats stats;
    assert_int_equal(run_standard(self, GPST_RUN_ENGINE, &stats), GPST_OK);
    assert_true(stats.device_fallbacks > 0);
    assert_int_equal(kept_host_bytes(self->context), 0);
    assert_int_equal(kept_device_bytes(self->context), 0);
    kit_close(self);
}

/* Also where the job may not go on without it. */
static void test_a_required_device_leaves_nothing(void** state) {
    (void)state;
    kit* const self = kit_open("sim:lose_at=60", 2);
    self->context->require_backend = true;
    gpst_pipeline_desc desc = kit_standard(self, 40);
    kit_forget(self);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_PARTIAL);
    assert_true(self->n_failed > 0);
    assert_int_equal(self->results[39], GPST_ERROR_DEVICE_LOST);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    assert_int_equal(kept_host_bytes(self->context), 0);
    assert_int_equal(kept_device_bytes(self->context), 0);
    kit_close(self);
}

typedef struct many_takers {
    gpst_context* context;
    uint32_t index;
} many_takers;

static void take_and_give(void* arg) {
    many_takers* const self = (many_takers*)arg;
    uint64_t random = self->index + 1;
    for (int i = 0; i < 2000; i++) {
        const size_t bytes = (1 + test_random(&random) % 4) * PAGE;
        bool found = false;
        const gpsti_host_memory memory = take(self->context, bytes, false, &found);
        memset(memory.ptr, (int)self->index, bytes);
        assert_int_equal(((uint8_t*)memory.ptr)[bytes - 1], self->index); /* nobody else's */
        give(self->context, bytes, memory);
        if (i % 500 == 499)
            gpst_context_trim(self->context);
    }
}

static void test_many_threads(void** state) {
    enum { N = 4 };
    gpst_context* const context = open_context("cpu", 0, 6 * PAGE);
    many_takers takers[N];
    gpsti_thread threads[N];
    (void)state;
    for (uint32_t t = 0; t < N; t++) {
        takers[t].context = context;
        takers[t].index = t + 1;
        assert_int_equal(gpsti_thread_start(&threads[t], take_and_give, &takers[t], "taker"), GPST_OK);
    }
    for (uint32_t t = 0; t < N; t++)
        gpsti_thread_join(&threads[t]);
    assert_true(kept_host_bytes(context) <= 6 * PAGE);
    gpst_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_kept_is_found),
                                       cmocka_unit_test(test_caps),
                                       cmocka_unit_test(test_use_goes_first),
                                       cmocka_unit_test(test_kept_memory_makes_way_on_a_device),
                                       cmocka_unit_test(test_what_does_not_stay_is_freed),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_the_price_of_a_byte),
                                       cmocka_unit_test(test_whose_it_is),
                                       cmocka_unit_test(test_what_a_pool_lets_go),
                                       cmocka_unit_test(test_a_run_s_share),
                                       cmocka_unit_test(test_what_it_took_is_known),
                                       cmocka_unit_test(test_a_pool_s_price),
                                       cmocka_unit_test(test_what_runs_think_of_it),
                                       cmocka_unit_test(test_a_user_s_pool_keeps_nothing),
                                       cmocka_unit_test(test_the_next_pipeline_makes_none),
                                       cmocka_unit_test(test_a_device_s_budget),
                                       cmocka_unit_test(test_a_warp_s_constants),
                                       cmocka_unit_test(test_a_lost_device_leaves_nothing),
                                       cmocka_unit_test(test_a_required_device_leaves_nothing),
                                       cmocka_unit_test(test_nothing_stays_of_a_lost_device),
                                       cmocka_unit_test(test_refused_while_another_frees),
                                       cmocka_unit_test(test_refused_while_another_freed),
                                       cmocka_unit_test(test_it_makes_way_for_all),
                                       cmocka_unit_test(test_a_pool_that_drops),
                                       cmocka_unit_test(test_many_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
