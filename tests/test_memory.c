/* tests/test_memory.c -- a context's frame memory: what is given back is found again by whoever asks next, whatever it
   was; within the bounds, charged once, and never in the way of what is needed. */
#include "pipeline_kit.h"

#include <sys/wait.h>

#define PAGE ((size_t)4096)
#define MIB ((size_t)1 << 20)

static gpst_context* open_context(const char* backend, uint64_t budget_bytes, uint64_t max_kept_bytes) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    desc.backend = backend;
    desc.n_workers = 1;
    desc.max_host_bytes = desc.max_device_bytes = budget_bytes;
    desc.max_kept_bytes = max_kept_bytes;
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    return context;
}

static uint64_t kept_bytes(const gpst_context* context, bool on_device) {
    gpst_context_info info;
    gpst_context_query_info(context, &info);
    return on_device ? info.kept_device_bytes : info.kept_host_bytes;
}

static uint64_t charged_bytes(gpst_context* context, bool on_device) {
    return gpsti_a64_load(on_device ? &context->device_bytes : &context->host_bytes);
}

static gpst_result ask(gpst_context* context, gpsti_memory_kind kind, size_t bytes, bool* is_new, gpst_buffer* out) {
    gpsti_memory_request request;
    gpsti_a64 n_growths;
    gpsti_a64_store(&n_growths, 0);
    memset(&request, 0, sizeof request);
    request.kind = kind;
    request.asked_bytes = bytes;
    request.n_growths = &n_growths;
    const gpst_result result = gpsti_memory_acquire(context, &request, out);
    *is_new = gpsti_a64_load(&n_growths) > 0;
    return result;
}

static gpst_buffer take(gpst_context* context, gpsti_memory_kind kind, size_t bytes, bool wanted_new) {
    gpst_buffer out;
    bool is_new = false;
    assert_int_equal(ask(context, kind, bytes, &is_new, &out), GPST_OK);
    assert_int_equal(is_new, wanted_new);
    return out;
}

static void give(gpst_context* context, gpst_buffer buffer) { gpsti_memory_release(context, &buffer); }

/* ---- found again -------------------------------------------------------------------------- */

static void test_what_is_kept_is_found(void** state) {
    gpst_context* const context = open_context("sim", 0, 0);
    (void)state;
    for (int k = 0; k < GPSTI_MEMORY_KINDS; k++) {
        const gpsti_memory_kind kind = (gpsti_memory_kind)k;
        const bool on_device = kind == GPSTI_MEMORY_DEVICE;
        const gpst_buffer a = take(context, kind, PAGE, true), b = take(context, kind, PAGE, true);
        assert_int_equal(kept_bytes(context, on_device), 0);
        give(context, a);
        give(context, b);
        assert_int_equal(kept_bytes(context, on_device), 2 * PAGE);
        const gpst_buffer other = take(context, kind, 2 * PAGE, true); /* of another class */
        const gpst_buffer again = take(context, kind, 1, false);       /* of the same */
        assert_ptr_equal(again.data, b.data);                          /* the latest */
        assert_true(again.id != b.id);                                 /* another loan */
        assert_int_equal(again.bytes, PAGE);
        assert_int_equal(kept_bytes(context, on_device), PAGE);
        assert_int_equal(charged_bytes(context, on_device), 4 * PAGE);
        give(context, b); /* an earlier loan: nothing happens */
        assert_int_equal(kept_bytes(context, on_device), PAGE);
        give(context, again);
        give(context, other);
        assert_int_equal(kept_bytes(context, on_device), 4 * PAGE);
        gpst_context_trim(context);
        assert_int_equal(kept_bytes(context, on_device), 0);
        assert_int_equal(charged_bytes(context, on_device), 0);
    }
    gpst_context_trim(context);
    gpst_context_trim(NULL);
    gpst_context_destroy(context);
}

static gpst_pool* make_pool(gpst_context* context, uint64_t max_bytes, const char* tag) {
    gpst_pool_desc desc = GPST_ZERO;
    gpst_pool* pool = NULL;
    desc.max_bytes = max_bytes;
    desc.tag = tag;
    assert_int_equal(gpst_pool_create(context, &desc, &pool), GPST_OK);
    return pool;
}

static gpst_pool_info info_of(const gpst_pool* pool) {
    gpst_pool_info info;
    gpst_pool_query_info(pool, &info);
    return info;
}

/* What a pool gives back is the next one's, and what one pool has free serves another. */
static void test_pools_share(void** state) {
    gpst_context* const context = open_context("cpu", 0, 0);
    gpst_buffer buffer, more;
    (void)state;
    gpst_pool* const first = make_pool(context, 0, NULL);
    assert_int_equal(gpst_pool_acquire(first, 3 * PAGE, 0, &buffer), GPST_OK);
    const gpst_buffer copy = buffer;
    gpst_pool_release(first, &buffer);
    assert_int_equal(info_of(first).held_bytes, 3 * PAGE);
    assert_int_equal(kept_bytes(context, false), 0); /* the pool's */
    gpst_pool* const second = make_pool(context, 0, NULL);
    assert_int_equal(gpst_pool_acquire(second, 3 * PAGE, 0, &buffer), GPST_OK);
    assert_ptr_equal(buffer.data, copy.data);
    assert_int_equal(info_of(second).allocations, 0);
    assert_int_equal(info_of(second).held_bytes, 3 * PAGE);
    assert_int_equal(info_of(second).small_bytes, 3 * PAGE);
    assert_int_equal(info_of(first).held_bytes, 0);
    assert_int_equal(info_of(first).small_bytes, 0);
    assert_int_equal(gpst_pool_acquire(first, PAGE, 0, &more), GPST_OK);
    gpst_pool_release(second, &buffer);
    assert_int_equal(gpst_pool_destroy(second), GPST_OK);
    assert_int_equal(kept_bytes(context, false), 3 * PAGE);
    assert_int_equal(gpst_pool_acquire(first, 3 * PAGE, 0, &buffer), GPST_OK);
    assert_ptr_equal(buffer.data, copy.data);
    assert_int_equal(kept_bytes(context, false), 0);
    gpst_pool_release(first, &buffer);
    gpst_pool_release(first, &more);
    gpst_context_trim(context); /* a pool has it */
    assert_int_equal(charged_bytes(context, false), 4 * PAGE);
    gpst_pool_trim(first);
    assert_int_equal(charged_bytes(context, false), 0);
    assert_int_equal(gpst_pool_destroy(first), GPST_OK);
    gpst_context_destroy(context);
}

/* A pool's cap is for what it finds, too; and it gets no huge pages that it does not want. */
static void test_what_a_pool_may_find(void** state) {
    gpst_context* const context = open_context("cpu", 0, 0);
    gpst_pool_desc desc = GPST_ZERO;
    gpst_pool* plain = NULL;
    gpst_buffer a, b;
    (void)state;
    give(context, take(context, GPSTI_MEMORY_PINNED, PAGE, true));
    gpst_pool* const pool = make_pool(context, 2 * PAGE, NULL);
    assert_int_equal(gpst_pool_acquire(pool, 2 * PAGE, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &b), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(kept_bytes(context, false), PAGE);
    gpst_pool_release(pool, &a);
    assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &b), GPST_OK);
    gpst_pool_release(pool, &b);
    assert_int_equal(info_of(pool).held_bytes, PAGE);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    const gpst_buffer large = take(context, GPSTI_MEMORY_PINNED, 4 * MIB, true);
    give(context, large);
    desc.huge_pages = GPST_HUGE_PAGES_OFF;
    assert_int_equal(gpst_pool_create(context, &desc, &plain), GPST_OK);
    assert_int_equal(gpst_pool_acquire(plain, 4 * MIB, 0, &a), GPST_OK);
    assert_int_equal(info_of(plain).small_bytes, 4 * MIB);
    assert_int_equal(info_of(plain).thp_bytes + info_of(plain).hugetlb_bytes, 0);
    gpst_pool_release(plain, &a);
    assert_int_equal(gpst_pool_destroy(plain), GPST_OK);
    gpst_context_destroy(context);
}

/* Memory that a user asks a device for; of the host it is zeroed, who ever had it. */
static void test_memory_of_the_context_s_device(void** state) {
    gpst_context* const context = open_context("sim", 64 * MIB, 0);
    gpst_device* const device = gpst_context_device(context);
    (void)state;
    for (int kind = GPST_MEMORY_HOST; kind <= GPST_MEMORY_DEVICE; kind++) {
        const bool on_device = kind == GPST_MEMORY_DEVICE;
        void* first = NULL;
        for (int round = 0; round < 2; round++) {
            gpst_memory* memory = NULL;
            assert_int_equal(gpst_memory_create(device, (gpst_memory_kind)kind, PAGE + 1, &memory), GPST_OK);
            uint8_t* const data = (uint8_t*)gpst_memory_data(memory);
            assert_true(round == 0 || (void*)data == first);
            first = data;
            for (size_t i = 0; !on_device && i <= PAGE; i++)
                assert_int_equal(data[i], 0);
            memset(data, 7, on_device ? 0 : PAGE + 1);
            assert_int_equal(charged_bytes(context, on_device) - kept_bytes(context, on_device), 2 * PAGE);
            gpst_memory_destroy(memory);
            assert_int_equal(charged_bytes(context, on_device), kept_bytes(context, on_device));
        }
        gpst_context_trim(context);
    }
    gpst_context_destroy(context);
}

/* ---- bounds ------------------------------------------------------------------------------- */

/* What comes last stays. */
static void test_kept_bytes_are_bounded(void** state) {
    (void)state;
    for (int k = 0; k < GPSTI_MEMORY_KINDS; k++) {
        const gpsti_memory_kind kind = (gpsti_memory_kind)k;
        const bool on_device = kind == GPSTI_MEMORY_DEVICE;
        gpst_context* context = open_context("sim", 0, 3 * PAGE);
        gpst_buffer buffers[4];
        for (int i = 0; i < 4; i++)
            buffers[i] = take(context, kind, PAGE, true);
        for (int i = 0; i < 4; i++)
            give(context, buffers[i]);
        assert_int_equal(kept_bytes(context, on_device), 3 * PAGE);
        assert_int_equal(charged_bytes(context, on_device), 3 * PAGE);
        for (int i = 4; i-- > 1;)
            assert_ptr_equal(take(context, kind, PAGE, false).data, buffers[i].data);
        give(context, take(context, kind, 4 * PAGE, true)); /* too large by itself */
        assert_int_equal(kept_bytes(context, on_device), 0);
        gpst_context_destroy(context);
        context = open_context("sim", 0, 1); /* nothing is kept */
        give(context, take(context, kind, PAGE, true));
        assert_int_equal(charged_bytes(context, on_device), 0);
        gpst_context_destroy(context);
    }
}

/* A pool's free buffers do not count; what it leaves behind does. By default it is an eighth of each budget. */
static void test_bounds_of_pools(void** state) {
    gpst_context* const context = open_context("cpu", 80 * PAGE, 0);
    gpst_buffer buffers[20];
    (void)state;
    assert_int_equal(context->memory->max_kept_bytes[0], 10 * PAGE);
    assert_int_equal(context->memory->max_kept_bytes[1], 10 * PAGE);
    gpst_pool* const pool = make_pool(context, 0, NULL);
    for (int i = 0; i < 20; i++)
        assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &buffers[i]), GPST_OK);
    for (int i = 0; i < 20; i++)
        gpst_pool_release(pool, &buffers[i]);
    assert_int_equal(info_of(pool).held_bytes, 20 * PAGE);
    assert_int_equal(kept_bytes(context, false), 0);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    assert_int_equal(kept_bytes(context, false), 10 * PAGE);
    assert_int_equal(charged_bytes(context, false), 10 * PAGE);
    gpst_context_destroy(context);
}

/* To the byte; and whatever is free goes before anybody is refused, whose ever it is. */
static void test_budgets_at_exact_bytes(void** state) {
    (void)state;
    for (int k = 0; k < GPSTI_MEMORY_KINDS; k++) {
        const gpsti_memory_kind kind = (gpsti_memory_kind)k;
        const bool on_device = kind == GPSTI_MEMORY_DEVICE;
        gpst_context* const context = open_context("sim", 10 * PAGE, 8 * PAGE);
        gpst_buffer buffers[5], none;
        bool is_new = false;
        gpst_buffer lent;
        gpst_pool* const pool = make_pool(context, 0, NULL);
        for (int i = 0; i < 5; i++)
            buffers[i] = take(context, kind, 2 * PAGE, true);
        assert_int_equal(ask(context, kind, 1, &is_new, &none), GPST_ERROR_BUDGET);
        test_reason_has("bytes=1: takes 4096, and 40960",
                        on_device ? "max_device_bytes=40960" : "max_host_bytes=40960");
        assert_null(none.data);
        for (int i = 0; i < 5; i++)
            give(context, buffers[i]);
        assert_int_equal(kept_bytes(context, on_device), 8 * PAGE);
        buffers[0] = take(context, kind, 5 * PAGE, true); /* three of the four went */
        assert_int_equal(kept_bytes(context, on_device), 4 * PAGE);
        assert_int_equal(charged_bytes(context, on_device), 9 * PAGE);
        give(context, buffers[0]);
        if (!on_device) { /* a pool's, and for a pool */
            assert_int_equal(gpst_pool_acquire(pool, 7 * PAGE, 0, &lent), GPST_OK);
            gpst_pool_release(pool, &lent);
            give(context, take(context, kind, 8 * PAGE, true));
            assert_int_equal(info_of(pool).held_bytes, 0);
        }
        give(context, take(context, kind, 10 * PAGE, true)); /* all of it */
        context->info.max_host_bytes = context->info.max_device_bytes = 10 * PAGE - 1;
        assert_int_equal(ask(context, kind, 10 * PAGE, &is_new, &none), GPST_ERROR_BUDGET);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        gpst_context_destroy(context);
    }
}

static void test_classes_end_somewhere(void** state) {
    gpst_context* const context = open_context("cpu", 0, 0);
    gpst_buffer none;
    bool is_new = false;
    (void)state;
    assert_int_equal(ask(context, GPSTI_MEMORY_HOST, SIZE_MAX / 2 + 1, &is_new, &none), GPST_ERROR_OVERFLOW);
    test_reason_has("must be below", "SIZE_MAX/2");
    gpst_context_destroy(context);
}

/* ---- one account ------------------------------------------------------------------------------ */

/* A device that says how often it was asked and what is out, refuses when told to, and has pages of 2 MiB. */
static struct {
    gpsti_backend_i i;
    const gpsti_backend_i* real;
    gpsti_device* device;
    gpst_result refusal; /* of the next call */
    bool has_huge;
    int n_asked;
    gpsti_a32 n_out;
    uint32_t most_out; /* there is no memory for more; 0 = for any number */
    void (*inside)(void); /* called once, from the next call */
    gpsti_memory* free_waits; /* until somebody was refused, or waits for it; NULL: it does not */
    gpsti_a32 is_freeing, n_refused;
} odd;

static gpst_result odd_enter(void) {
    void (*const inside)(void) = odd.inside;
    const gpst_result refusal = odd.refusal;
    odd.refusal = GPST_OK;
    odd.inside = NULL;
    odd.n_asked++;
    if (inside)
        inside();
    if (GPST_FAILED(refusal))
        return refusal;
    if (odd.most_out > 0 && gpsti_a32_load(&odd.n_out) >= odd.most_out) {
        (void)gpsti_a32_add(&odd.n_refused, 1);
        return GPST_ERROR_MEMORY;
    }
    (void)gpsti_a32_add(&odd.n_out, 1);
    return GPST_OK;
}

static gpst_result odd_host_alloc(gpsti_device* device, size_t bytes, bool want_huge, gpsti_host_memory* out) {
    GPSTI_TRY(odd_enter());
    if (want_huge && odd.has_huge)
        (void)gpsti_size_round_up(bytes, 2 * MIB, &bytes);
    GPSTI_TRY(odd.real->host_alloc(device, bytes, false, out));
    out->pages = want_huge && odd.has_huge ? GPSTI_PAGES_THP : GPSTI_PAGES_SMALL;
    return GPST_OK;
}

static bool odd_is_waited_for(gpsti_memory* memory) {
    gpsti_mutex_lock(&memory->mutex);
    const bool waited_for = memory->n_waiters > 0;
    gpsti_mutex_unlock(&memory->mutex);
    return waited_for || gpsti_a32_load(&odd.n_refused) > 0;
}

static void odd_host_free(gpsti_device* device, gpsti_host_memory* memory) {
    const int64_t give_up_ns = gpsti_now_ns() + (int64_t)10 * 1000000000;
    gpsti_a32_store(&odd.is_freeing, 1);
    while (odd.free_waits && !odd_is_waited_for(odd.free_waits) && gpsti_now_ns() < give_up_ns)
        gpsti_sleep_ns(1000000);
    (void)gpsti_a32_add(&odd.n_out, UINT32_MAX);
    odd.real->host_free(device, memory);
}

static gpst_result odd_memory_alloc(gpsti_device* device, size_t bytes, void** out) {
    GPSTI_TRY(odd_enter());
    return odd.real->memory_alloc(device, bytes, out);
}

static void odd_memory_free(gpsti_device* device, void* ptr, size_t bytes) {
    (void)gpsti_a32_add(&odd.n_out, UINT32_MAX);
    odd.real->memory_free(device, ptr, bytes);
}

static gpst_context* open_odd(const char* backend, uint64_t budget_bytes) {
    gpst_context* const context = open_context(backend, budget_bytes, 0);
    memset(&odd, 0, sizeof odd);
    odd.device = context->device;
    odd.real = context->device->i;
    odd.i = *odd.real;
    odd.i.host_alloc = odd_host_alloc;
    odd.i.host_free = odd_host_free;
    odd.i.memory_alloc = odd_memory_alloc;
    odd.i.memory_free = odd_memory_free;
    context->device->i = &odd.i;
    return context;
}

/* All is back where it came from. */
static void close_odd(gpst_context* context) {
    gpst_context_trim(context);
    assert_int_equal(gpsti_a32_load(&odd.n_out), 0);
    assert_int_equal(charged_bytes(context, false), 0);
    assert_int_equal(charged_bytes(context, true), 0);
    odd.device->i = odd.real;
    gpst_context_destroy(context);
}

/* A buffer says what it was charged, huge pages included. They are not taken where a sixteenth of the budget is less,
   unless nothing of them would stay unused. */
static void test_what_a_buffer_was_charged(void** state) {
    static const struct {
        uint64_t budget_bytes;
        size_t bytes, charged_bytes;
    } rows[] = {{32 * MIB, 3 * MIB / 4, 2 * MIB},       {32 * MIB - 1, 3 * MIB / 4, 3 * MIB / 4},
                {32 * MIB, 11 * MIB / 16, 11 * MIB / 16},
                {64 * MIB, 3 * MIB, 4 * MIB},           {64 * MIB - 1, 3 * MIB, 3 * MIB},
                {8 * MIB, 4 * MIB, 4 * MIB}};
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        for (int by_cap = 0; by_cap < 2; by_cap++) {
            gpst_context* const context = open_odd("cpu", by_cap ? (uint64_t)1 << 30 : rows[r].budget_bytes);
            gpst_pool* const pool = make_pool(context, by_cap ? rows[r].budget_bytes : 0, NULL);
            gpst_buffer buffer;
            odd.has_huge = true;
            assert_int_equal(gpst_pool_acquire(pool, rows[r].bytes, 0, &buffer), GPST_OK);
            assert_int_equal(buffer.charged_bytes, rows[r].charged_bytes);
            assert_int_equal(info_of(pool).thp_bytes, buffer.charged_bytes % (2 * MIB) ? 0 : buffer.charged_bytes);
            assert_int_equal(info_of(pool).live_bytes, buffer.charged_bytes);
            assert_int_equal(info_of(pool).held_bytes, buffer.charged_bytes);
            assert_int_equal(charged_bytes(context, false), buffer.charged_bytes);
            gpst_pool_release(pool, &buffer);
            assert_int_equal(charged_bytes(context, false), info_of(pool).held_bytes); /* once, lent or free */
            assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
            close_odd(context);
        }
    }
}

static gpst_tag_info tag_of(const gpst_context* context, const char* tag) {
    gpst_tag_info rows[GPSTI_MEMORY_TAGS], none;
    uint32_t n = 0;
    memset(&none, 0, sizeof none);
    gpst_context_query_tags(context, rows, GPSTI_MEMORY_TAGS, &n);
    for (uint32_t i = 0; i < n; i++)
        if (!strcmp(rows[i].tag, tag))
            return rows[i];
    return none;
}

/* Live and peak, of the host and of the device; what is free has no tag. */
static void test_tags(void** state) {
    gpst_context* const context = open_context("sim", 0, 0);
    gpst_pool* const input = make_pool(context, 0, "input");
    gpst_ring_desc ring_desc = GPST_ZERO;
    gpst_ring* ring = NULL;
    gpst_memory* memory = NULL;
    gpst_buffer a, b, on_device;
    uint32_t n = 7;
    (void)state;
    assert_int_equal(gpst_pool_acquire(input, PAGE, 0, &a), GPST_OK);
    assert_int_equal(gpst_pool_acquire(input, 2 * PAGE, 0, &b), GPST_OK);
    assert_int_equal(gpsti_memory_acquire_device(context, 5 * PAGE, "input", NULL, &on_device), GPST_OK);
    gpst_pool_release(input, &a);
    assert_int_equal(tag_of(context, "input").host_bytes, 2 * PAGE);
    assert_int_equal(tag_of(context, "input").host_peak_bytes, 3 * PAGE);
    assert_int_equal(tag_of(context, "input").device_bytes, 5 * PAGE);
    gpsti_memory_release(context, &on_device);
    gpst_pool* const output = make_pool(context, 0, "output");
    assert_int_equal(gpst_pool_acquire(output, PAGE, 0, &a), GPST_OK); /* what the other pool had */
    assert_int_equal(tag_of(context, "output").host_bytes, PAGE);
    assert_int_equal(tag_of(context, "input").host_bytes, 2 * PAGE);
    assert_int_equal(tag_of(context, "input").device_bytes, 0);
    assert_int_equal(tag_of(context, "input").device_peak_bytes, 5 * PAGE);
    ring_desc.slot_bytes = PAGE;
    ring_desc.max_slots = 3;
    assert_int_equal(gpst_ring_create(context, &ring_desc, &ring), GPST_OK);
    assert_int_equal(tag_of(context, "ring").host_bytes, 3 * PAGE);
    gpst_ring_destroy(ring);
    assert_int_equal(tag_of(context, "ring").host_bytes, 0);
    assert_int_equal(tag_of(context, "ring").host_peak_bytes, 3 * PAGE);
    assert_int_equal(gpst_memory_create(gpst_context_device(context), GPST_MEMORY_DEVICE, 1, &memory), GPST_OK);
    assert_int_equal(tag_of(context, "memory").device_bytes, PAGE);
    gpst_memory_destroy(memory);
    gpst_pool_release(input, &b);
    gpst_pool_release(output, &a);
    gpst_context_query_tags(context, NULL, 0, &n);
    assert_int_equal(n, 5); /* and "other" */
    for (uint32_t i = 0; i < 2 * GPSTI_MEMORY_TAGS; i++) {
        char tag[40];
        gpsti_format(tag, sizeof tag, "a name that is too long %u", (unsigned)i);
        assert_int_equal(gpsti_memory_tag(context->memory, tag), 5); /* its first 23 characters */
        gpsti_format(tag, sizeof tag, "%u", (unsigned)i);
        assert_int_equal(gpsti_memory_tag(context->memory, tag), i + 6 < GPSTI_MEMORY_TAGS ? i + 6 : 0);
    }
    gpst_context_query_tags(context, NULL, 0, NULL);
    gpst_context_query_tags(NULL, NULL, 0, &n);
    assert_int_equal(n, 0);
    assert_int_equal(gpst_pool_destroy(input), GPST_OK);
    assert_int_equal(gpst_pool_destroy(output), GPST_OK);
    gpst_context_destroy(context);
}

/* ---- refusals ----------------------------------------------------------------------------------- */

/* Nobody is refused while something is free; nobody asks twice when nothing is. */
static void test_refusals(void** state) {
    gpst_context* const context = open_odd("sim", 0);
    gpst_buffer none, held;
    bool is_new = false;
    (void)state;
    for (int k = GPSTI_MEMORY_PINNED; k < GPSTI_MEMORY_KINDS; k++) {
        const gpsti_memory_kind kind = (gpsti_memory_kind)k;
        const bool on_device = kind == GPSTI_MEMORY_DEVICE;
        const gpst_result refusal = on_device ? GPST_ERROR_DEVICE_MEMORY : GPST_ERROR_MEMORY;
        give(context, take(context, kind, PAGE, true));
        odd.n_asked = 0;
        odd.refusal = refusal;
        held = take(context, kind, 2 * PAGE, true);
        assert_int_equal(odd.n_asked, 2);
        assert_int_equal(kept_bytes(context, on_device), 0);
        odd.refusal = refusal;
        assert_int_equal(ask(context, kind, PAGE, &is_new, &none), refusal);
        assert_int_equal(odd.n_asked, 3);
        give(context, held);
        odd.refusal = GPST_ERROR_DEVICE;
        assert_int_equal(ask(context, kind, PAGE, &is_new, &none), GPST_ERROR_DEVICE);
        assert_int_equal(odd.n_asked, 4);
        assert_int_equal(kept_bytes(context, on_device), 2 * PAGE);
        assert_int_equal(charged_bytes(context, on_device), 2 * PAGE);
    }
    close_odd(context);
}

/* Each allocation of metadata and each of frames fails once; nothing is charged for it. */
static void test_a_refusal_at_every_call(void** state) {
    (void)state;
    for (int k = 0; k < 3; k++) {
        uint32_t n_failed = 0;
        bool reached = true;
        for (uint64_t n = 1; reached && n <= 12; n++) {
            static const char* const faults[] = {"", "fail_host_alloc", "fail_alloc"};
            test_memory memory;
            gpst_context_desc desc = GPST_ZERO;
            gpst_context* context = NULL;
            gpst_buffer buffers[10];
            char backend[40];
            gpsti_format(backend, sizeof backend, k == 0 ? "sim" : "sim:%s=%u", faults[k], (unsigned)n);
            desc.allocator = test_memory_hooks(&memory);
            desc.backend = backend;
            desc.n_workers = 1;
            assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
            if (k == 0)
                test_memory_refuse(&memory, n);
            for (int i = 0; i < 10; i++) {
                bool is_new = false;
                const gpsti_memory_kind kind = k == 1 ? GPSTI_MEMORY_PINNED : GPSTI_MEMORY_DEVICE;
                const gpst_result result = ask(context, kind, PAGE, &is_new, &buffers[i]);
                n_failed += GPST_FAILED(result);
                assert_true(!GPST_FAILED(result) || buffers[i].data == NULL);
            }
            uint64_t lent_bytes = 0;
            for (int i = 0; i < 10; i++)
                lent_bytes += buffers[i].charged_bytes;
            assert_int_equal(charged_bytes(context, true) + charged_bytes(context, false), lent_bytes);
            for (int i = 0; i < 10; i++)
                if (buffers[i].data)
                    gpsti_memory_release(context, &buffers[i]);
            reached = k > 0 || test_memory_refused(&memory);
            test_memory_relent(&memory);
            gpst_context_destroy(context);
            test_memory_check(&memory);
        }
        assert_true(n_failed >= 2);
    }
}

static void trim(void* arg) { gpst_context_trim((gpst_context*)arg); }

/* What another thread is just giving back is waited for, where the system refuses and where the budget does. */
static void test_refused_while_another_frees(void** state) {
    (void)state;
    for (int by_budget = 0; by_budget < 2; by_budget++) {
        gpst_context* const context = open_odd("cpu", by_budget ? 2 * PAGE : 0);
        gpsti_thread thread;
        context->memory->max_kept_bytes[0] = 2 * PAGE;
        give(context, take(context, GPSTI_MEMORY_PINNED, PAGE, true));
        odd.free_waits = context->memory;
        odd.most_out = by_budget ? 0 : 1;
        assert_int_equal(gpsti_thread_start(&thread, trim, context, "trim"), GPST_OK);
        while (gpsti_a32_load(&odd.is_freeing) == 0)
            gpsti_sleep_ns(100000);
        give(context, take(context, GPSTI_MEMORY_PINNED, 2 * PAGE, true));
        gpsti_thread_join(&thread);
        odd.free_waits = NULL;
        close_odd(context);
    }
}

static gpst_context* odd_context;

static void trim_inside(void) { gpst_context_trim(odd_context); }

/* Another has given all of it back when the refusal is known: that is a reason to ask again. */
static void test_refused_while_another_freed(void** state) {
    gpst_context* const context = open_odd("cpu", 0);
    (void)state;
    give(context, take(context, GPSTI_MEMORY_PINNED, PAGE, true));
    odd_context = context;
    odd.inside = trim_inside;
    odd.refusal = GPST_ERROR_MEMORY;
    give(context, take(context, GPSTI_MEMORY_PINNED, 2 * PAGE, true));
    assert_int_equal(odd.n_asked, 3);
    close_odd(context);
}

/* ---- the device is lost ---------------------------------------------------------------------------- */

static void test_nothing_is_kept_of_a_lost_device(void** state) {
    gpst_context* const context = open_context("sim", 0, 0);
    (void)state;
    const gpst_buffer a = take(context, GPSTI_MEMORY_PINNED, PAGE, true);
    const gpst_buffer b = take(context, GPSTI_MEMORY_DEVICE, PAGE, true);
    give(context, take(context, GPSTI_MEMORY_DEVICE, PAGE, true));
    gpsti_a32_store(&context->public_device.lost, 1);
    give(context, take(context, GPSTI_MEMORY_DEVICE, PAGE, true)); /* nobody finds what was kept */
    assert_int_equal(kept_bytes(context, true), 0);
    give(context, a);
    give(context, b);
    assert_int_equal(charged_bytes(context, false) + charged_bytes(context, true), 0);
    gpst_context_destroy(context);
}

/* A pool goes on with the cpu's memory, unless the device is required; and the loss is known from then on. */
static void test_a_pool_that_finds_it_lost(void** state) {
    (void)state;
    for (int required = 0; required < 2; required++) {
        gpst_context* const context = open_odd("sim", 0);
        gpst_pool* const pool = make_pool(context, 0, NULL);
        gpst_buffer buffer;
        context->require_backend = required != 0;
        odd.refusal = GPST_ERROR_DEVICE_LOST;
        assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &buffer), required ? GPST_ERROR_DEVICE_LOST : GPST_OK);
        assert_int_equal(gpsti_a32_load(&context->public_device.lost), 1);
        gpst_pool_release(pool, &buffer);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        assert_int_equal(kept_bytes(context, false), 0);
        close_odd(context);
    }
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

/* The second of two equal pipelines makes no memory, and writes the same files; also within a budget that has room for
   it once. */
static void test_the_next_pipeline_makes_none(void** state) {
    kit* const self = kit_open("sim", 2);
    gpst_stats stats;
    (void)state;
    assert_int_equal(run_standard(self, GPST_RUN_PLAIN_SERIAL, &stats), GPST_OK);
    const uint64_t host_bytes = kept_bytes(self->context, false), device_bytes = kept_bytes(self->context, true);
    assert_true(host_bytes > 0 && device_bytes > 0 && stats.growths > 0);
    assert_int_equal(charged_bytes(self->context, false), host_bytes);
    assert_int_equal(charged_bytes(self->context, true), device_bytes);
    self->context->info.max_host_bytes = host_bytes;
    self->context->info.max_device_bytes = device_bytes;
    assert_int_equal(run_standard(self, GPST_RUN_PLAIN_SERIAL, &stats), GPST_OK);
    assert_int_equal(stats.growths, 0);
    assert_int_equal(stats.device_fallbacks, 0);
    assert_int_equal(kept_bytes(self->context, false), host_bytes);
    assert_int_equal(kept_bytes(self->context, true), device_bytes);
    kit_close(self);
}

static void test_a_lost_device_leaves_nothing(void** state) {
    kit* const self = kit_open("sim:lose_at=30", 2);
    gpst_stats stats;
    (void)state;
    assert_int_equal(run_standard(self, GPST_RUN_ENGINE, &stats), GPST_OK);
    assert_true(stats.device_fallbacks > 0);
    assert_int_equal(kept_bytes(self->context, false) + kept_bytes(self->context, true), 0);
    kit_close(self);
}

/* ---- threads, processes --------------------------------------------------------------------------------- */

typedef struct many_takers {
    gpst_context* context;
    uint32_t index;
} many_takers;

static void take_and_give(void* arg) {
    many_takers* const self = (many_takers*)arg;
    uint64_t random = self->index + 1;
    for (int i = 0; i < 2000; i++) {
        const size_t bytes = (1 + test_random(&random) % 4) * PAGE;
        bool is_new = false;
        gpst_buffer buffer;
        assert_int_equal(ask(self->context, (gpsti_memory_kind)(i % GPSTI_MEMORY_KINDS), bytes, &is_new, &buffer),
                         GPST_OK);
        if (i % GPSTI_MEMORY_KINDS != GPSTI_MEMORY_DEVICE) {
            memset(buffer.data, (int)self->index, bytes);
            assert_int_equal(((uint8_t*)buffer.data)[bytes - 1], self->index); /* nobody else's */
        }
        give(self->context, buffer);
        if (i % 500 == 499)
            gpst_context_trim(self->context);
    }
}

/* The budget has room for all, but only if what is free makes way. */
static void test_many_threads(void** state) {
    enum { N = 4 };
    gpst_context* const context = open_context("sim", 17 * PAGE, 6 * PAGE);
    many_takers takers[N];
    gpsti_thread threads[N];
    (void)state;
    for (uint32_t t = 0; t < N; t++) {
        takers[t].context = context;
        takers[t].index = t + 1;
        assert_int_equal(gpsti_thread_start(&threads[t], take_and_give, &takers[t], "taker"), GPST_OK);
    }
    for (int i = 0; i < 100; i++) {
        gpst_tag_info tag;
        uint32_t n = 0;
        gpst_context_query_tags(context, &tag, 1, &n);
        assert_true(tag.host_bytes <= 17 * PAGE && charged_bytes(context, false) <= 17 * PAGE);
        gpsti_sleep_ns(100000);
    }
    for (uint32_t t = 0; t < N; t++)
        gpsti_thread_join(&threads[t]);
    for (int on_device = 0; on_device < 2; on_device++) {
        assert_true(kept_bytes(context, on_device != 0) <= 6 * PAGE);
        assert_int_equal(charged_bytes(context, on_device != 0), kept_bytes(context, on_device != 0));
    }
    assert_int_equal(tag_of(context, "other").host_bytes, 0);
    gpst_context_destroy(context);
}

/* A forked child leaves all where it is. */
static void test_fork(void** state) {
    gpst_context* const context = open_context("cpu", 0, 0);
    int status = -1;
    (void)state;
    give(context, take(context, GPSTI_MEMORY_PINNED, PAGE, true));
    const pid_t child = fork();
    if (!child) {
        uint32_t n = 7;
        gpst_context_trim(context);
        gpst_context_query_tags(context, NULL, 0, &n);
        _exit(context->memory->kept_bytes[0] == PAGE && n == 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    gpst_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_what_is_kept_is_found),
                                       cmocka_unit_test(test_pools_share),
                                       cmocka_unit_test(test_what_a_pool_may_find),
                                       cmocka_unit_test(test_memory_of_the_context_s_device),
                                       cmocka_unit_test(test_kept_bytes_are_bounded),
                                       cmocka_unit_test(test_bounds_of_pools),
                                       cmocka_unit_test(test_budgets_at_exact_bytes),
                                       cmocka_unit_test(test_classes_end_somewhere),
                                       cmocka_unit_test(test_what_a_buffer_was_charged),
                                       cmocka_unit_test(test_tags),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_a_refusal_at_every_call),
                                       cmocka_unit_test(test_refused_while_another_frees),
                                       cmocka_unit_test(test_refused_while_another_freed),
                                       cmocka_unit_test(test_nothing_is_kept_of_a_lost_device),
                                       cmocka_unit_test(test_a_pool_that_finds_it_lost),
                                       cmocka_unit_test(test_the_next_pipeline_makes_none),
                                       cmocka_unit_test(test_a_lost_device_leaves_nothing),
                                       cmocka_unit_test(test_many_threads),
                                       cmocka_unit_test(test_fork)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
