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

static uint32_t n_cached(gpst_context* context, gpsti_cached kind) {
    return gpst_context_device(context)->cache.lists[kind].n;
}

static uint32_t n_cached_all(gpst_context* context) {
    return n_cached(context, GPSTI_CACHED_STREAMS) + n_cached(context, GPSTI_CACHED_EVENTS);
}

/* Makes so many, all of them different, and destroys them. */
static void use_some(gpst_device* device, uint32_t n) {
    gpst_stream* streams[160];
    gpst_event* events[160];
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(gpst_stream_create(device, &streams[i]), GPST_OK);
        assert_int_equal(gpst_event_create(device, &events[i]), GPST_OK);
        assert_true(i == 0 || (streams[i] != streams[i - 1] && events[i] != events[i - 1]));
    }
    for (uint32_t i = 0; i < n; i++) {
        gpst_stream_destroy(streams[i]);
        gpst_event_destroy(events[i]);
    }
}

static void test_as_many_as_there_is_room_for(void** state) {
    gpst_context* const context = open_context("sim", 0);
    const uint64_t before_bytes = live_bytes(context);
    (void)state;
    use_some(gpst_context_device(context), 3);
    assert_int_equal(n_cached(context, GPSTI_CACHED_STREAMS), 3);
    assert_int_equal(n_cached(context, GPSTI_CACHED_EVENTS), 3);
    const uint64_t three_bytes = live_bytes(context);
    use_some(gpst_context_device(context), 2);
    assert_int_equal(live_bytes(context), three_bytes);
    use_some(gpst_context_device(context), 150);
    assert_int_equal(n_cached(context, GPSTI_CACHED_STREAMS), 32);
    assert_int_equal(n_cached(context, GPSTI_CACHED_EVENTS), 128);
    gpst_context_trim(context);
    assert_int_equal(n_cached_all(context), 0);
    assert_int_equal(live_bytes(context), before_bytes);
    use_some(gpst_context_device(context), 2); /* and destroy finds them */
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
        use_some(rows[i].on_cpu ? &context->cpu_device : gpst_context_device(context), 3);
        assert_int_equal(n_cached_all(context), 0);
        assert_int_equal(live_bytes(context), before_bytes);
        gpst_context_destroy(context);
    }
}

/* Of one that cannot be made there is nothing to cache; an injected fault of an event comes as it is recorded. */
static void test_refusals(void** state) {
    gpst_context* const context = open_context("sim:fail_stream=2", 0);
    gpst_stream *first = NULL, *second = NULL;
    (void)state;
    assert_int_equal(gpst_stream_create(gpst_context_device(context), &first), GPST_OK);
    assert_true(GPST_FAILED(gpst_stream_create(gpst_context_device(context), &second)));
    assert_null(second);
    gpst_stream_destroy(first);
    assert_int_equal(n_cached(context, GPSTI_CACHED_STREAMS), 1);
    gpst_context_destroy(context);
}

/* A cached event is a new one: what it recorded before is no one's. */
static void test_an_event_begins_anew(void** state) {
    gpst_context* const context = open_context("sim", 0);
    gpst_device* const device = gpst_context_device(context);
    gpst_stream* stream = NULL;
    gpst_event *event = NULL, *again = NULL;
    int64_t elapsed_ns = 0;
    (void)state;
    assert_int_equal(gpst_stream_create(device, &stream), GPST_OK);
    assert_int_equal(gpst_event_create(device, &event), GPST_OK);
    assert_int_equal(gpst_event_record(event, stream), GPST_OK);
    assert_int_equal(gpst_event_wait(event, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_event_elapsed(event, event, &elapsed_ns), GPST_OK);
    gpst_event_destroy(event);
    assert_int_equal(gpst_event_create(device, &again), GPST_OK);
    assert_ptr_equal(again, event);
    assert_int_equal(gpst_event_elapsed(again, again, &elapsed_ns), GPST_ERROR_STATE);
    assert_non_null(strstr(gpst_last_reason(), "gpst_event_elapsed: the event was never recorded"));
    assert_int_equal(gpst_event_wait(again, 0), GPST_OK);
    assert_int_equal(gpst_stream_wait(stream, again), GPST_OK);
    gpst_event_destroy(again);
    gpst_stream_destroy(stream);
    gpst_context_destroy(context);
}

static gpst_result takes_a_while(const void* args) {
    (void)args;
    gpsti_sleep_ns(20000000);
    return GPST_OK;
}

/* A stream whose work failed is not for the next user, nor one of the application's. Destroy says nothing of it. */
static void test_what_failed(void** state) {
    static const gpst_kernel kernel = {"a while", takes_a_while, NULL};
    gpst_context* const context = open_context("sim:lose_at=1", 0);
    gpst_device* const device = gpst_context_device(context);
    gpst_stream* stream = NULL;
    (void)state;
    assert_int_equal(gpst_stream_create(device, &stream), GPST_OK);
    assert_int_equal(gpst_kernel_enqueue(&kernel, NULL, 0, stream), GPST_OK); /* and loses the device */
    assert_true(GPST_FAILED(gpst_stream_wait(NULL, NULL)));
    gpst_stream_destroy(stream);
    assert_non_null(strstr(gpst_last_reason(), "gpst_stream_wait: stream=NULL"));
    assert_int_equal(n_cached(context, GPSTI_CACHED_STREAMS), 0);
    gpst_context_destroy(context);
}

static void test_a_wrapped_stream(void** state) {
    gpst_context* const context = open_context("sim", 0);
    gpst_stream* stream = NULL;
    (void)state;
    assert_int_equal(gpst_stream_wrap(gpst_context_device(context), NULL, &stream), GPST_OK);
    gpst_stream_destroy(stream);
    assert_int_equal(n_cached(context, GPSTI_CACHED_STREAMS), 0);
    gpst_context_destroy(context);
}

/* Who takes an event must not wait for the work that another has put before it. */
static void test_an_event_that_is_not_done(void** state) {
    static const gpst_kernel kernel = {"a while", takes_a_while, NULL};
    gpst_context* const context = open_context("sim", 0);
    gpst_device* const device = gpst_context_device(context);
    gpst_stream* stream = NULL;
    gpst_event* event = NULL;
    (void)state;
    assert_int_equal(gpst_stream_create(device, &stream), GPST_OK);
    assert_int_equal(gpst_event_create(device, &event), GPST_OK);
    assert_int_equal(gpst_kernel_enqueue(&kernel, NULL, 0, stream), GPST_OK);
    assert_int_equal(gpst_event_record(event, stream), GPST_OK);
    gpst_event_destroy(event);
    assert_int_equal(n_cached(context, GPSTI_CACHED_EVENTS), 0);
    gpst_stream_destroy(stream);
    assert_int_equal(n_cached(context, GPSTI_CACHED_STREAMS), 1);
    gpst_context_destroy(context);
}

/* A device that is opened by itself has a cache, too; what it holds is no object of the user's. */
static void test_a_device_by_itself(void** state) {
    gpst_device* device = NULL;
    gpst_device_info info;
    (void)state;
    assert_int_equal(gpst_device_open("sim", &device), GPST_OK);
    use_some(device, 3);
    assert_int_equal(device->cache.lists[GPSTI_CACHED_STREAMS].n, 3);
    gpst_device_query_info(device, &info);
    assert_int_equal(info.n_objects, 0);
    assert_int_equal(gpst_device_close(device), GPST_OK);
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
        assert_int_equal(n_cached(self->context, GPSTI_CACHED_STREAMS), 1);
        assert_true(n_cached(self->context, GPSTI_CACHED_EVENTS) > 0);
    }
    gpst_context_trim(self->context);
    assert_true(run_plain(self) > 0);
    kit_close(self);
}

enum { N_USERS = 4, N_USES = 200 };

typedef struct user {
    gpst_device* device;
    gpsti_thread thread;
    uint32_t n_wrong;
} user;

/* A stream and an event of its own, however often others take and leave theirs. */
static void use_again_and_again(void* user_data) {
    user* const self = (user*)user_data;
    for (int n = 0; n < N_USES; n++) {
        gpst_stream* stream = NULL;
        gpst_event *start = NULL, *end = NULL;
        int64_t elapsed_ns = -1;
        bool good = gpst_stream_create(self->device, &stream) == GPST_OK &&
                    gpst_event_create(self->device, &start) == GPST_OK &&
                    gpst_event_create(self->device, &end) == GPST_OK && gpst_event_wait(end, 0) == GPST_OK;
        good = good && gpst_event_record(start, stream) == GPST_OK && gpst_event_record(end, stream) == GPST_OK &&
               gpst_event_wait(end, GPST_FOREVER) == GPST_OK &&
               gpst_event_elapsed(start, end, &elapsed_ns) == GPST_OK && elapsed_ns >= 0;
        self->n_wrong += good ? 0 : 1;
        gpst_event_destroy(end);
        gpst_stream_destroy(stream);
        gpst_event_destroy(start);
    }
}

static void test_several_threads(void** state) {
    static const char* const backends[] = {"sim", "cpu"};
    (void)state;
    for (int b = 0; b < 2; b++) {
        user users[N_USERS];
        gpst_device* device = NULL;
        gpst_device_info info;
        assert_int_equal(gpst_device_open(backends[b], &device), GPST_OK);
        memset(users, 0, sizeof users);
        for (int u = 0; u < N_USERS; u++) {
            users[u].device = device;
            assert_int_equal(gpsti_thread_start(&users[u].thread, use_again_and_again, &users[u], "user"), GPST_OK);
        }
        for (int u = 0; u < N_USERS; u++) {
            gpsti_thread_join(&users[u].thread);
            assert_int_equal(users[u].n_wrong, 0);
        }
        gpst_device_query_info(device, &info);
        assert_int_equal(info.n_objects, 0);
        assert_true(device->cache.lists[GPSTI_CACHED_STREAMS].n <= N_USERS);
        assert_int_equal(gpst_device_close(device), GPST_OK);
    }
}

/* Nobody finds what was cached, and nothing more is. */
static void test_a_lost_device(void** state) {
    gpst_context* const context = open_context("sim", 0);
    gpst_stream* stream = NULL;
    (void)state;
    use_some(gpst_context_device(context), 4);
    gpsti_a32_store(&context->public_device.lost, 1);
    assert_int_equal(gpst_stream_create(gpst_context_device(context), &stream), GPST_OK);
    assert_int_equal(n_cached(context, GPSTI_CACHED_STREAMS), 4);
    gpst_stream_destroy(stream);
    assert_int_equal(n_cached(context, GPSTI_CACHED_STREAMS), 4);
    gpst_context_trim(context);
    assert_int_equal(n_cached_all(context), 0);
    gpst_context_destroy(context);
}

static void test_a_run_that_loses_it(void** state) {
    kit* const self = kit_open("sim:lose_at=5", 1);
    (void)state;
    assert_true(run_plain(self) > 0);
    assert_int_equal(gpsti_a32_load(&self->context->public_device.lost), 1);
    use_some(&self->context->cpu_device, 2);
    assert_int_equal(n_cached(self->context, GPSTI_CACHED_STREAMS), 0);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_as_many_as_there_is_room_for),
                                       cmocka_unit_test(test_what_does_not_stay),
                                       cmocka_unit_test(test_refusals),
                                       cmocka_unit_test(test_an_event_begins_anew),
                                       cmocka_unit_test(test_what_failed),
                                       cmocka_unit_test(test_an_event_that_is_not_done),
                                       cmocka_unit_test(test_a_wrapped_stream),
                                       cmocka_unit_test(test_a_device_by_itself),
                                       cmocka_unit_test(test_several_threads),
                                       cmocka_unit_test(test_the_next_pipeline_makes_none),
                                       cmocka_unit_test(test_a_lost_device),
                                       cmocka_unit_test(test_a_run_that_loses_it)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
