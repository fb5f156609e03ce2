/* tests/test_device_cache.c -- streams and events between two pipelines of a context: who finds them, and what becomes
   of those that do not stay. */
#include "pipeline_kit.h"

static gpst_context* open_context(const char* backend, uint64_t max_kept_bytes) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    desc.backend = backend;
    desc.n_workers = 1;
    desc.max_kept_bytes = max_kept_bytes;
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    return context;
}

static uint64_t live_bytes(const gpst_context* context) { return gpsti_a64_load(&context->host.live_bytes); }

static uint32_t n_kept(const gpst_context* context, gpsti_handle_kind kind) {
    return context->memory->handles[kind].n;
}

/* Takes so many, all of them different, and puts them back. */
static void put_some(gpst_context* context, gpsti_device* device, uint32_t n) {
    void* handles[2][160];
    for (int kind = 0; kind < 2; kind++) {
        for (uint32_t i = 0; i < n; i++) {
            void** const handle = &handles[kind][i];
            assert_int_equal(gpsti_handle_take(context, device, (gpsti_handle_kind)kind, handle), GPST_OK);
            assert_ptr_equal(kind == GPSTI_HANDLE_STREAM ? ((gpsti_stream*)*handle)->device
                                                         : ((gpsti_event*)*handle)->device,
                             device);
            assert_true(i == 0 || handles[kind][i] != handles[kind][i - 1]);
        }
    }
    for (int kind = 0; kind < 2; kind++)
        for (uint32_t i = 0; i < n; i++)
            gpsti_handle_put(context, (gpsti_handle_kind)kind, handles[kind][i]);
}

static void test_as_many_as_there_is_room_for(void** state) {
    gpst_context* const context = open_context("sim", 0);
    const uint64_t before_bytes = live_bytes(context);
    (void)state;
    put_some(context, context->device, 3);
    assert_int_equal(n_kept(context, GPSTI_HANDLE_STREAM), 3);
    assert_int_equal(n_kept(context, GPSTI_HANDLE_EVENT), 3);
    const uint64_t three_bytes = live_bytes(context);
    const int64_t here_ns = gpsti_pool_growth_here_ns();
    put_some(context, context->device, 2);
    assert_int_equal(live_bytes(context), three_bytes);
    assert_int_equal(gpsti_pool_growth_here_ns(), here_ns); /* nothing was made */
    put_some(context, context->device, 150);
    assert_true(gpsti_pool_growth_here_ns() > here_ns);
    assert_int_equal(n_kept(context, GPSTI_HANDLE_STREAM), 32);
    assert_int_equal(n_kept(context, GPSTI_HANDLE_EVENT), 128);
    gpst_context_trim(context);
    assert_int_equal(n_kept(context, GPSTI_HANDLE_STREAM) + n_kept(context, GPSTI_HANDLE_EVENT), 0);
    assert_int_equal(live_bytes(context), before_bytes);
    put_some(context, context->device, 2); /* and destroy finds them */
    gpst_context_destroy(context);
}

/* Another device's, those of a context that keeps nothing, of one whose work is done when a call returns. */
static void test_what_does_not_stay(void** state) {
    static const struct {
        const char* backend;
        uint64_t max_kept_bytes;
        bool on_cpu;
    } rows[] = {{"sim", 0, true}, {"sim", 1, false}, {"cpu", 0, false}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gpst_context* const context = open_context(rows[i].backend, rows[i].max_kept_bytes);
        const uint64_t before_bytes = live_bytes(context);
        put_some(context, rows[i].on_cpu ? context->cpu : context->device, 3);
        assert_int_equal(n_kept(context, GPSTI_HANDLE_STREAM) + n_kept(context, GPSTI_HANDLE_EVENT), 0);
        assert_int_equal(live_bytes(context), before_bytes);
        gpst_context_destroy(context);
    }
}

/* Of one that cannot be made there is nothing to put. */
static void test_refusals(void** state) {
    static const char* const names[] = {"sim:fail_stream=2", "sim:fail_event=2"};
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        gpst_context* const context = open_context(names[kind], 0);
        void* handle = NULL;
        void* second = NULL;
        assert_int_equal(gpsti_handle_take(context, context->device, (gpsti_handle_kind)kind, &handle), GPST_OK);
        if (kind == GPSTI_HANDLE_STREAM) { /* events fail as they are recorded */
            assert_true(GPST_FAILED(gpsti_handle_take(context, context->device, GPSTI_HANDLE_STREAM, &second)));
            assert_null(second);
        }
        gpsti_handle_put(context, (gpsti_handle_kind)kind, handle);
        assert_int_equal(n_kept(context, (gpsti_handle_kind)kind), 1);
        gpst_context_destroy(context);
    }
}

static uint64_t run_plain(kit* self) {
    gpst_pipeline_desc desc = kit_standard(self, 12);
    gpst_stats stats;
    kit_forget(self);
    desc.mode = GPST_RUN_PLAIN_SERIAL;
    assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
    kit_check_files(self);
    kit_remove_files(self, "out_");
    return stats.device_fallbacks;
}

/* The second stream cannot be made, and nobody asks for it until the first is gone. */
static void test_the_next_pipeline_makes_none(void** state) {
    kit* const self = kit_open("sim:fail_stream=2", 1);
    (void)state;
    for (int run = 0; run < 3; run++) {
        assert_int_equal(run_plain(self), 0);
        assert_int_equal(n_kept(self->context, GPSTI_HANDLE_STREAM), 1);
        assert_true(n_kept(self->context, GPSTI_HANDLE_EVENT) > 0);
    }
    gpst_context_trim(self->context);
    assert_true(run_plain(self) > 0);
    kit_close(self);
}

/* Nobody finds what was kept, and nothing is kept. */
static void test_a_lost_device(void** state) {
    gpst_context* const context = open_context("sim", 0);
    void* stream = NULL;
    (void)state;
    put_some(context, context->device, 4);
    gpsti_context_lose_device(context);
    assert_int_equal(gpsti_handle_take(context, context->device, GPSTI_HANDLE_STREAM, &stream), GPST_OK);
    assert_int_equal(n_kept(context, GPSTI_HANDLE_STREAM), 4);
    gpsti_handle_put(context, GPSTI_HANDLE_STREAM, stream);
    assert_int_equal(n_kept(context, GPSTI_HANDLE_STREAM), 4);
    gpst_context_trim(context);
    assert_int_equal(n_kept(context, GPSTI_HANDLE_STREAM) + n_kept(context, GPSTI_HANDLE_EVENT), 0);
    gpst_context_destroy(context);
}

static void test_a_run_that_loses_it(void** state) {
    kit* const self = kit_open("sim:lose_at=5", 1);
    (void)state;
    assert_true(run_plain(self) > 0);
    assert_true(self->context->memory->lost);
    put_some(self->context, self->context->cpu, 2);
    assert_int_equal(n_kept(self->context, GPSTI_HANDLE_STREAM), 0);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_many_as_there_is_room_for),
                                       cmocka_unit_test(test_what_does_not_stay),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_the_next_pipeline_makes_none),
                                       cmocka_unit_test(test_a_lost_device),
                                       cmocka_unit_test(test_a_run_that_loses_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
