/* tests/test_keep.c -- memory between two pipelines: found again, within its caps, never in the way of what is
   needed, and priced as what it was when it was made. */
#include "pipeline_kit.h"

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
    assert_int_equal(gpsti_keep_host_alloc(&context->keep, context->device, bytes, want_huge, 0, &memory, &known_ns),
                     GPST_OK);
    assert_true(known_ns >= 0);
    *found = known_ns > 0;
    return memory;
}

static void give(gpst_context* context, size_t bytes, gpsti_host_memory memory) {
    gpsti_keep_host_free(&context->keep, context->device, bytes, false, &memory);
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
    gpsti_keep_host_free(&context->keep, context->device, PAGE, true, (gpsti_host_memory*)(uintptr_t)&huge);
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
    gpsti_keep* const keep = &context->keep;
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

/* As many runs are expected as there were; one whose memory did not stay is none of them. */
static void test_a_run_s_share(void** state) {
    gpst_context* const context = open_context("cpu", 0, PAGE);
    gpsti_keep* const keep = &context->keep;
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
            gpsti_keep_host_alloc(&context->keep, context->device, bytes, false, bytes, &memory, &known_ns), GPST_OK);
        const int64_t took_ns = gpsti_now_ns() - start_ns;
        assert_int_equal(known_ns > 0, i == 1);
        assert_true(i == 1 || took_ns >= 10000000);
        assert_true(i == 0 || known_ns >= 10000000);
        gpsti_keep_host_free(&context->keep, context->device, bytes, false, &memory);
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
        assert_int_equal(gpsti_pool_acquire_now(pool, (size_t)1 << 20, true, NULL, &buffer), GPST_OK);
        assert_int_equal(gpsti_pool_n_known(pool), i);
        assert_true(gpsti_pool_price_ns(pool) >= 10000000);
        if (i == 1)
            assert_true(gpsti_pool_growth_ns(pool) < gpsti_pool_price_ns(pool) - 9000000);
        gpst_pool_release(pool, &buffer);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    }
    gpst_context_destroy(context);
}

/* The first run's price; where a driver locks memory, a run's share of it. */
static void test_what_runs_think_of_it(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = kit_standard(self, 40);
    gpsti_keep* const keep = &self->context->keep;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    gpst_pipeline* const pipeline = self->pipeline;
    pipeline->tune.tuner.budget.cores = 4;
    pipeline->tune.tuner.budget.streams = 0;
    for (uint32_t n_runs = 0; n_runs < 8; n_runs += 7) {
        keep->n_runs = n_runs;
        if (n_runs == 0)
            gpsti_pool_note_known(pipeline->pool, 8000000);
        self->context->device_info.locks_host = false;
        assert_int_equal(gpsti_tune_price_ns(pipeline), 500000 + gpsti_tuner_setups_ns(8000000));
        assert_int_equal(gpsti_tune_slot_ns(pipeline), 2000000);
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
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpst_pool_create(context, NULL, &pool), GPST_OK);
        assert_int_equal(gpst_pool_acquire(pool, PAGE, 0, &buffer), GPST_OK);
        assert_int_equal(((uint8_t*)buffer.data)[0], 0);
        memset(buffer.data, 7, buffer.bytes);
        gpst_pool_release(pool, &buffer);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        assert_int_equal(kept_host_bytes(context), 0);
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
        const uint64_t made_bytes = self->context->keep.host.made_bytes + self->context->keep.device.made_bytes;
        assert_true(host_bytes > 0 && device_bytes > 0 && made_bytes > 0);
        assert_int_equal(gpsti_a64_load(&self->context->host_bytes), 0);
        assert_int_equal(gpsti_a64_load(&self->context->device_bytes), 0);
        assert_int_equal(run_standard(self, modes[m], &stats), GPST_OK);
        if (modes[m] == GPST_RUN_PLAIN_SERIAL) { /* an engine's items may be more at once than they were */
            assert_int_equal(self->context->keep.host.made_bytes + self->context->keep.device.made_bytes, made_bytes);
            assert_int_equal(kept_host_bytes(self->context), host_bytes);
            assert_int_equal(kept_device_bytes(self->context), device_bytes);
        }
        assert_int_equal(self->context->keep.n_runs, 2);
        kit_close(self);
    }
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
                                       cmocka_unit_test(test_a_run_s_share),
                                       cmocka_unit_test(test_what_it_took_is_known),
                                       cmocka_unit_test(test_a_pool_s_price),
                                       cmocka_unit_test(test_what_runs_think_of_it),
                                       cmocka_unit_test(test_a_user_s_pool_keeps_nothing),
                                       cmocka_unit_test(test_the_next_pipeline_makes_none),
                                       cmocka_unit_test(test_a_lost_device_leaves_nothing),
                                       cmocka_unit_test(test_many_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
