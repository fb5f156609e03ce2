/* tests/test_spares.c -- streams and events between two pipelines of a context: who finds them, and what becomes of
   those that do not stay. */
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

/* Takes so many, all of them different, and puts them back. */
static void put_some(gpst_context* context, gpsti_device* device, uint32_t n) {
    gpsti_spares* const spares = context->spares;
    gpsti_stream* streams[160];
    gpsti_event* events[160];
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(gpsti_spares_take_stream(spares, device, &streams[i]), GPST_OK);
        assert_int_equal(gpsti_spares_take_event(spares, device, &events[i]), GPST_OK);
        assert_ptr_equal(streams[i]->device, device);
        assert_ptr_equal(events[i]->device, device);
        assert_true(i == 0 || (streams[i] != streams[i - 1] && events[i] != events[i - 1]));
    }
    for (uint32_t i = 0; i < n; i++) {
        gpsti_spares_put_stream(spares, streams[i]);
        gpsti_spares_put_event(spares, events[i]);
    }
}

static void test_as_many_as_there_is_room_for(void** state) {
    gpst_context* const context = open_context("sim", 0);
    const uint64_t before_bytes = live_bytes(context);
    (void)state;
    put_some(context, context->device, 3);
    assert_int_equal(context->spares->n_streams, 3);
    assert_int_equal(context->spares->n_events, 3);
    const uint64_t three_bytes = live_bytes(context);
    put_some(context, context->device, 2);
    assert_int_equal(live_bytes(context), three_bytes);
    put_some(context, context->device, 150);
    assert_int_equal(context->spares->n_streams, GPSTI_SPARES_STREAMS);
    assert_int_equal(context->spares->n_events, GPSTI_SPARES_EVENTS);
    gpst_context_trim(context);
    assert_int_equal(context->spares->n_streams + context->spares->n_events, 0);
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
        assert_int_equal(context->spares->n_streams + context->spares->n_events, 0);
        assert_int_equal(live_bytes(context), before_bytes);
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
        assert_int_equal(self->context->spares->n_streams, 1);
        assert_true(self->context->spares->n_events > 0);
    }
    gpst_context_trim(self->context);
    assert_true(run_plain(self) > 0);
    kit_close(self);
}

static void test_a_lost_device_leaves_none(void** state) {
    kit* const self = kit_open("sim:lose_at=5", 1);
    (void)state;
    put_some(self->context, self->context->device, 4);
    assert_true(run_plain(self) > 0);
    put_some(self->context, self->context->cpu, 2);
    assert_null(self->context->spares->device);
    assert_int_equal(self->context->spares->n_streams, 3); /* which nobody finds; the run had the fourth */
    gpst_context_trim(self->context);
    assert_int_equal(self->context->spares->n_streams, 0);
    kit_close(self);
}

static gpst_result nothing_host(const void* args, const gpsti_exec* exec) {
    (void)args;
    (void)exec;
    return GPST_OK;
}

/* Nor where it is host memory that is asked for when the device is found to be gone. */
static void test_a_pool_that_finds_it_lost(void** state) {
    static const gpsti_kernel nothing = {"nothing", nothing_host, NULL};
    gpst_context* const context = open_context("sim:lose_at=1", 0);
    gpsti_device* const device = context->device;
    gpsti_stream* stream = NULL;
    gpst_pool* pool = NULL;
    gpst_buffer buffer;
    gpst_pool_desc desc = GPST_ZERO;
    (void)state;
    assert_int_equal(gpsti_spares_take_stream(context->spares, device, &stream), GPST_OK);
    assert_int_equal(device->i->launch(stream, &nothing, NULL, 0, NULL), GPST_OK);
    assert_int_equal(device->i->stream_wait_idle(stream), GPST_ERROR_DEVICE_LOST);
    assert_ptr_equal(context->spares->device, device);
    assert_int_equal(gpst_pool_create(context, &desc, &pool), GPST_OK);
    assert_int_equal(gpst_pool_acquire(pool, 4096, 0, &buffer), GPST_OK);
    gpsti_spares_put_stream(context->spares, stream);
    assert_int_equal(context->spares->n_streams, 0);
    gpst_pool_release(pool, &buffer);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    gpst_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_many_as_there_is_room_for),
                                       cmocka_unit_test(test_what_does_not_stay),
                                       cmocka_unit_test(test_the_next_pipeline_makes_none),
                                       cmocka_unit_test(test_a_lost_device_leaves_none),
                                       cmocka_unit_test(test_a_pool_that_finds_it_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
