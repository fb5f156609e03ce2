/* tests/test_graph_cache_faults.c -- the cache of graphs where devices, kernels and memory fail, or it is used wrongly:
   a run works all the same, or says why not, and nothing is left behind. */
#include "graph_cache_kit.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- faults ------------------------------------------------------------------------------------------------ */

static void open_logged(device_kit* kit, const char* name, test_log* log) {
    const gpst_allocator hooks = test_memory_hooks(&kit->memory);
    const gpst_logger logger = test_log_hooks(log);
    gpst_device_info info;
    if (gpst_device_open_versioned(GPST_VERSION, sizeof info, name, &hooks, &logger, &kit->device) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    assert_int_equal(gpst_stream_create(kit->device, &kit->stream), GPST_OK);
}

/* The device refuses to make one: that topology stays piece by piece, and is told of once; others have graphs. */
static void test_refused_by_the_device(void** state) {
    static const uint8_t other[] = {2, 9, 1, 9, 3, 0, 2, 4};
    (void)state;
    for (unsigned n = 1; n <= 4; n++) {
        char name[64];
        device_kit kit;
        test_log log;
        static twins t;
        const bool first = n <= 2;
        snprintf(name, sizeof name, "%s:fail_graph=%u", device_with_faults(), n);
        open_logged(&kit, name, &log);
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        twins_begin(&t, kit.device, kit.stream);
        for (int round = 0; round < 5; round++) {
            twins_add(&t, cache, 1);
            twins_run(&t, cache, other, sizeof other);
        }
        twins_compare(&t);
        const gpst_graph_cache_info info = info_of(cache);
        assert_int_equal(info.misses, 2);
        assert_int_equal(info.refused, 4); /* of one of them all but the first */
        assert_int_equal(info.captures, 1);
        assert_int_equal(info.hits, 3);
        assert_non_null(strstr(info.reason, n % 2 ? "graph_begin" : "graph_end"));
        assert_int_equal(gpsti_a32_load(&log.n_warnings), 1);
        assert_non_null(strstr(log.last, "no graph of 2 commands, they run piece by piece: "));
        twins_add(&t, cache, 9); /* another address, the same topology */
        twins_add(&t, cache, 9);
        assert_int_equal(info_of(cache).refused, first ? 6 : 4);
        assert_int_equal(gpsti_a32_load(&log.n_warnings), 1);
        gpst_graph_cache_destroy(cache);
        twins_end(&t);
        kit_end(&kit);
    }
}

/* A launch fails: of a piece, it is the run's failure; while a graph is made or launched, the run is piece by piece. */
static void test_failing_launch(void** state) {
    (void)state;
    for (unsigned n = 1; n <= 7; n++) {
        static const uint8_t bytes[] = {3, 0, 1, 5, 3, 0, 2, 6};
        unsigned n_failed = 0;
        char name[64];
        device_kit kit;
        test_log log;
        static twins t;
        snprintf(name, sizeof name, "sim:launch_us=0,fail_launch=%u", n);
        open_logged(&kit, name, &log);
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        twins_begin(&t, kit.device, kit.stream);
        for (int run = 0; run < 4; run++) { /* launches: 1 2, recorded 3 4 and launched as 5, then 6 and 7 */
            assert_int_equal(twins_record(&t, bytes, sizeof bytes), GPST_OK);
            const gpst_result result = gpst_graph_cache_run(cache, kit.stream);
            if (result == GPST_OK) {
                twins_call(&t, bytes, 0);
            } else {
                refused(result, GPST_ERROR_DEVICE, "gpst_graph_cache_run: ", "injected fault");
                n_failed++;
            }
        }
        assert_int_equal(n_failed, n <= 2);
        const gpst_graph_cache_info info = info_of(cache);
        assert_int_equal(info.misses, 1);
        assert_int_equal(info.refused, n <= 2 ? 0 : n <= 5 ? 3 : n == 6 ? 2 : 1);
        assert_int_equal(gpsti_a32_load(&log.n_warnings), n > 2);
        if (n > 2)
            assert_non_null(strstr(info.reason, "injected fault"));
        for (int run = 0; run < 4 && n > 2; run++)
            twins_call(&t, bytes, sizeof bytes);
        if (n > 2)
            twins_compare(&t);
        gpst_graph_cache_destroy(cache);
        twins_end(&t);
        kit_end(&kit);
    }
}

/* A kernel that fails is told of, by a graph as without one, and what came before it has run once. */
static void test_failing_kernel(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        uint64_t value = 1, wanted = 1;
        device_kit kit;
        kit_start(&kit, device_name(d));
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        gpst_memory* const memory = memory_of(kit.device, GPST_MEMORY_DEVICE, sizeof value);
        test_step_args args;
        args.value = (uint64_t*)gpst_memory_data(memory);
        args.add = 1;
        assert_int_equal(gpst_copy(args.value, &value, sizeof value, kit.stream), GPST_OK);
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        for (int run = 0; run < 4; run++) {
            assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
            assert_int_equal(gpst_kernel_enqueue(&graph_step, &args, sizeof args, kit.stream), GPST_OK);
            assert_int_equal(gpst_kernel_enqueue(&graph_fails, NULL, 0, kit.stream), GPST_OK);
            const gpst_result result = gpst_graph_cache_run(cache, kit.stream);
            const gpst_result later = gpst_stream_synchronize(kit.stream);
            assert_true(GPST_FAILED(result) != GPST_FAILED(later));
            wanted = wanted * 3 + 1;
            assert_int_equal(gpst_copy(&value, args.value, sizeof value, kit.stream), GPST_OK);
            assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
            assert_int_equal(value, wanted);
        }
        assert_int_equal(info_of(cache).runs, 4);
        gpst_graph_cache_destroy(cache);
        gpst_memory_destroy(memory);
        kit_end(&kit);
    }
}

/* Memory of the host refused at every call in turn. */
static void test_no_memory(void** state) {
    static const uint8_t bytes[] = {3, 0, 1, 5, 4, 0, 2, 6, 0, 1, 2, 3};
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        bool more = true;
        for (uint64_t n = 1; more; n++) {
            gpst_graph_cache* cache = NULL;
            device_kit kit;
            static twins t;
            kit_start(&kit, device_name(d));
            twins_begin(&t, kit.device, kit.stream);
            test_memory_refuse(&kit.memory, n);
            gpst_graph_cache_desc desc = GPST_ZERO;
            desc.use = GPST_GRAPHS_ALWAYS;
            desc.max_graphs = 1;
            gpst_result result = gpst_graph_cache_create(kit.device, &desc, &cache);
            assert_true(result == GPST_OK ? cache != NULL : result == GPST_ERROR_MEMORY && !cache);
            if (!cache)
                cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 1, 0);
            for (int run = 0; run < 4; run++) {
                result = twins_record(&t, bytes, run % 2 ? 8 : 12);
                assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
                const gpst_result ran = gpst_graph_cache_run(cache, kit.stream);
                if (GPST_FAILED(result))
                    refused(ran, GPST_ERROR_MEMORY, "gpst_graph_cache_run: a recorded call has failed", "");
                else
                    assert_true(ran == GPST_OK || ran == GPST_ERROR_MEMORY);
                if (ran == GPST_OK)
                    twins_call(&t, bytes, run % 2 ? 8 : 12);
            }
            more = test_memory_refused(&kit.memory);
            test_memory_relent(&kit.memory);
            twins_run(&t, cache, bytes, 12);
            twins_compare(&t);
            (void)info_of(cache);
            gpst_graph_cache_destroy(cache);
            twins_end(&t);
            kit_end(&kit);
        }
    }
}

static void test_a_lost_device(void** state) {
    static const uint8_t bytes[] = {3, 0, 1, 5, 3, 0, 2, 6};
    for (unsigned n = 1; n <= 6; n++) {
        char name[64];
        device_kit kit;
        static twins t;
        gpst_result result = GPST_OK;
        (void)state;
        snprintf(name, sizeof name, "sim:lose_at=%u", n);
        kit_start(&kit, name);
        gpst_graph_cache* const cache = cache_of(kit.device, GPST_GRAPHS_ALWAYS, 0, 0);
        twins_begin(&t, kit.device, kit.stream);
        for (int run = 0; run < 6 && result == GPST_OK; run++) {
            result = twins_record(&t, bytes, sizeof bytes);
            if (result == GPST_OK)
                result = gpst_graph_cache_run(cache, kit.stream);
            if (result == GPST_OK)
                result = gpst_stream_synchronize(kit.stream);
        }
        refused(result, GPST_ERROR_DEVICE_LOST, "gpst_", "lost");
        (void)info_of(cache);
        gpst_graph_cache_destroy(cache);
        twins_end(&t);
        kit_end(&kit);
    }
}

/* ---- what is not wanted, and what is wrong ------------------------------------------------------------------ */

static void test_off(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        static twins t;
        kit_start(&kit, device_name(d));
        twins_begin(&t, kit.device, kit.stream);
        gpst_graph_cache* cache = cache_of(kit.device, GPST_GRAPHS_OFF, 0, 0);
        for (int n = 0; n < 3; n++)
            twins_add(&t, cache, 1);
        expect_info(cache, 0, 0, 0, 0, 3);
        assert_string_equal(info_of(cache).reason, "graphs are switched off");
        gpst_graph_cache_destroy(cache);
        assert_int_equal(gpst_graph_cache_create(kit.device, NULL, &cache), GPST_OK);
        for (int n = 0; n < 300; n++)
            twins_add(&t, cache, 1);
        const gpst_graph_cache_info info = info_of(cache); /* whatever the clocks say */
        assert_int_equal(info.runs, 300);
        if (!gpst_stream_native(kit.stream)) {
            expect_info(cache, 0, 0, 0, 0, 300);
            assert_string_equal(info.reason, "this backend runs a graph piece by piece");
        }
        twins_compare(&t);
        gpst_graph_cache_destroy(cache);
        twins_end(&t);
        kit_end(&kit);
    }
}

static gpst_result create(gpst_device* device, const gpst_graph_cache_desc* desc, gpst_graph_cache** out) {
    gpst_graph_cache* const before = (gpst_graph_cache*)(uintptr_t)8;
    if (out)
        *out = before;
    const gpst_result result = gpst_graph_cache_create(device, desc, out);
    assert_true(!out || *out != before);
    return result;
}

static void test_errors(void** state) {
    static uint8_t bytes[8];
    gpst_graph_cache_desc desc = GPST_ZERO;
    gpst_graph_cache* cache = NULL;
    gpst_device* other_device = NULL;
    gpst_stream* other = NULL;
    device_kit kit;
    (void)state;
    kit_start(&kit, "cpu");
    assert_int_equal(gpst_device_open("cpu", &other_device), GPST_OK);
    assert_int_equal(gpst_stream_create(other_device, &other), GPST_OK);
    refused(create(NULL, NULL, &cache), GPST_ERROR_ARGUMENT, "gpst_graph_cache_create: device=NULL", "");
    refused(create(kit.device, NULL, NULL), GPST_ERROR_ARGUMENT, "gpst_graph_cache_create: out=NULL", "");
    refused(gpst_graph_cache_create_versioned(GPST_VERSION, sizeof desc - 1, kit.device, NULL, &cache),
            GPST_ERROR_VERSION, "gpst_graph_cache_create: ", "");
    desc.start_canary = 1;
    refused(create(kit.device, &desc, &cache), GPST_ERROR_ARGUMENT, "gpst_graph_cache_create: ", "start_canary");
    desc.start_canary = 0;
    desc.end_canary = 1;
    refused(create(kit.device, &desc, &cache), GPST_ERROR_ARGUMENT, "gpst_graph_cache_create: ", "end_canary");
    desc.end_canary = 0;
    desc.use = (gpst_graph_use)3;
    refused(create(kit.device, &desc, &cache), GPST_ERROR_ARGUMENT, "gpst_graph_cache_create: desc.use=3", "0..2");
    desc.use = GPST_GRAPHS_ALWAYS;
    desc.max_graphs = 4097;
    refused(create(kit.device, &desc, &cache), GPST_ERROR_ARGUMENT, "desc.max_graphs=4097", "at most 4096");
    desc.max_graphs = 4096;
    assert_int_equal(create(kit.device, &desc, &cache), GPST_OK);
    refused(gpst_device_close(kit.device), GPST_ERROR_STATE, "gpst_device_close", "");

    refused(gpst_graph_cache_run(cache, NULL), GPST_ERROR_ARGUMENT, "gpst_graph_cache_run: stream=NULL", "");
    refused(gpst_graph_cache_run(cache, kit.stream), GPST_ERROR_STATE, "gpst_graph_cache_run: the stream does not", "");
    assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
    assert_int_equal(gpst_fill(bytes, 1, sizeof bytes, kit.stream), GPST_OK);
    refused(gpst_graph_cache_run(NULL, kit.stream), GPST_ERROR_ARGUMENT, "gpst_graph_cache_run: cache=NULL", "");
    refused(gpst_graph_cache_run(cache, kit.stream), GPST_ERROR_STATE, "gpst_graph_cache_run: the stream does not", "");
    assert_int_equal(gpst_graph_begin(other), GPST_OK);
    assert_int_equal(gpst_fill(bytes, 1, sizeof bytes, other), GPST_OK);
    refused(gpst_graph_cache_run(cache, other), GPST_ERROR_ARGUMENT, "gpst_graph_cache_run: stream", "cache's device");
    assert_int_equal(gpst_stream_synchronize(other), GPST_OK); /* its recording is over, and nothing ran */
    assert_int_equal(bytes[0], 0);
    assert_int_equal(info_of(cache).runs, 0);
    assert_int_equal(info_of(NULL).runs, 0);
    gpst_graph_cache_query_info(cache, NULL);
    gpst_graph_cache_trim(cache);
    gpst_graph_cache_trim(NULL);
    gpst_graph_cache_destroy(NULL);

    assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
    const pid_t child = fork();
    if (child == 0) {
        gpst_graph_cache* more = NULL;
        bool good = gpst_graph_cache_run(cache, kit.stream) == GPST_ERROR_FORKED;
        good = good && gpst_graph_cache_create(kit.device, NULL, &more) == GPST_ERROR_FORKED && !more;
        gpst_graph_cache_trim(cache);
        gpst_graph_cache_destroy(cache);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_int_equal(gpst_graph_cache_run(cache, kit.stream), GPST_OK);
    gpst_graph_cache_destroy(cache);
    gpst_stream_destroy(other);
    assert_int_equal(gpst_device_close(other_device), GPST_OK);
    kit_end(&kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused_by_the_device),
        cmocka_unit_test(test_failing_launch),
        cmocka_unit_test(test_failing_kernel),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_a_lost_device),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
