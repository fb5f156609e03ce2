/* tests/test_graph.c -- recordings and graphs, on every backend: nothing runs before a launch, launches give the bits
   of the plain calls, and whatever fails leaves nothing behind. */
#include "graph_kit.h"

#include <sys/wait.h>
#include <unistd.h>

static gpst_graph* record(const scene* s, gpst_stream* stream) {
    gpst_graph* graph = NULL;
    assert_int_equal(gpst_graph_begin(stream), GPST_OK);
    assert_int_equal(scene_put(s, stream), GPST_OK);
    assert_int_equal(gpst_graph_end(stream, &graph), GPST_OK);
    assert_non_null(graph);
    return graph;
}

static gpst_graph_info info_of(const gpst_graph* graph) {
    gpst_graph_info info;
    memset(&info, 0xA5, sizeof info);
    gpst_graph_query_info(graph, &info);
    return info;
}

/* ---- lists ------------------------------------------------------------------------------- */

typedef struct listed_args {
    const char* text;
    uint32_t n;
} listed_args;

static gpst_result listed_host(const void* args, const gpsti_exec* exec) {
    (void)args;
    (void)exec;
    return GPST_OK;
}

static void listed_lists(void* args, gpsti_lists* lists) {
    listed_args* const a = (listed_args*)args;
    a->text = (const char*)gpsti_lists_take(lists, a->text, a->n);
    gpsti_lists_add(lists, &a->n, sizeof a->n);
}

static const gpsti_kernel listed = {"listed", listed_host, NULL, listed_lists};

static void fill_list(gpsti_commands* commands, gpsti_host* host, void* dst, int value, size_t bytes,
                      const char* text) {
    listed_args args;
    memset(&args, 0, sizeof args);
    memset(commands, 0, sizeof *commands);
    commands->host = host;
    args.text = text;
    args.n = 3;
    assert_int_equal(gpsti_commands_add_fill(commands, dst, value, bytes), GPST_OK);
    assert_int_equal(gpsti_commands_add_launch(commands, &listed, &args, sizeof args, NULL), GPST_OK);
}

/* Two that do the same are equal, wherever their lists lay; what differs in addresses or values alone has the same
   topology. */
static void test_lists_are_compared(void** state) {
    static uint8_t bytes[16];
    const char one[] = "abc", same[] = "abcd", other[] = "abd";
    uint64_t hash[6], topology[6];
    gpsti_commands lists[6];
    gpsti_host host;
    (void)state;
    gpsti_host_init(&host, NULL, NULL);
    fill_list(&lists[0], &host, bytes, 1, 8, one);
    fill_list(&lists[1], &host, bytes, 1, 8, same);
    fill_list(&lists[2], &host, bytes, 1, 8, other);
    fill_list(&lists[3], &host, bytes + 1, 1, 8, one);
    fill_list(&lists[4], &host, bytes, 2, 8, one);
    fill_list(&lists[5], &host, bytes, 1, 8, NULL);
    for (int i = 0; i < 6; i++) {
        gpsti_commands_hash(&lists[i], &hash[i], &topology[i]);
        assert_int_equal(gpsti_commands_are_equal(&lists[0], &lists[i]), i < 2);
        assert_int_equal(hash[0] == hash[i], i < 2);
        assert_int_equal(topology[0] == topology[i], i < 5);
    }
    for (int i = 0; i < 6; i++)
        gpsti_commands_free(&lists[i]);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
}

/* ---- what a graph does -------------------------------------------------------------------- */

static void test_launches(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        scene by_graph, plain;
        gpst_stream* other = NULL;
        kit_start(&kit, device_name(d));
        assert_int_equal(gpst_stream_create(kit.device, &other), GPST_OK);
        scene_begin(&by_graph, &kit, warp);
        scene_begin(&plain, &kit, warp);
        scene_feed(&by_graph, 1);
        gpst_graph* const graph = record(&by_graph, kit.stream);
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        scene_expect_untouched(&by_graph);
        gpst_graph_info info = info_of(graph);
        assert_true(info.n_commands >= SCENE_N_CALLS && info.host_bytes > 0 && info.n_launches == 0);
        assert_string_equal(info.reason, "");
        for (uint64_t round = 0; round < 5; round++) {
            gpst_stream* const stream = round % 2 ? other : kit.stream;
            scene_feed(&by_graph, 100 + round);
            scene_feed(&plain, 100 + round);
            assert_int_equal(gpst_graph_launch(graph, stream), GPST_OK);
            assert_int_equal(gpst_stream_synchronize(stream), GPST_OK);
            assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
            scene_expect_equal(&by_graph, &plain);
        }
        for (int n = 0; n < 3; n++) { /* without a wait in between: the counter takes all of them */
            assert_int_equal(gpst_graph_launch(graph, kit.stream), GPST_OK);
            assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
        }
        scene_expect_equal(&by_graph, &plain);
        assert_int_equal(info_of(graph).n_launches, 8);
        gpst_graph_destroy(graph);
        gpst_stream_destroy(other);
        scene_end(&by_graph);
        scene_end(&plain);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* Two graphs of one stream, launched in turns, and one of nothing. */
static void test_two_graphs(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        scene a, b, plain;
        gpst_graph* empty = NULL;
        kit_start(&kit, device_name(d));
        scene_begin(&a, &kit, warp);
        scene_begin(&b, &kit, warp);
        scene_begin(&plain, &kit, warp);
        scene_feed(&a, 5);
        scene_feed(&b, 5);
        scene_feed(&plain, 5);
        gpst_graph* const graph_a = record(&a, kit.stream);
        gpst_graph* const graph_b = record(&b, kit.stream);
        assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
        assert_int_equal(gpst_graph_end(kit.stream, &empty), GPST_OK);
        assert_int_equal(info_of(empty).n_commands, 0);
        assert_int_equal(gpst_graph_launch(graph_b, kit.stream), GPST_OK);
        assert_int_equal(gpst_graph_launch(empty, kit.stream), GPST_OK);
        scene_expect_untouched(&a);
        assert_int_equal(gpst_graph_launch(graph_a, kit.stream), GPST_OK);
        assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
        scene_expect_equal(&a, &plain);
        scene_expect_equal(&b, &plain);
        gpst_graph_destroy(graph_a);
        assert_int_equal(gpst_graph_launch(graph_b, kit.stream), GPST_OK);
        assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
        scene_expect_equal(&b, &plain);
        gpst_graph_destroy(graph_b);
        gpst_graph_destroy(empty);
        gpst_graph_destroy(NULL);
        scene_end(&a);
        scene_end(&b);
        scene_end(&plain);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* Forgotten: nothing runs, then or later, and the stream is as before. So, too, of a stream that is destroyed. */
static void test_abandoned(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        scene s, plain;
        gpst_stream* doomed = NULL;
        kit_start(&kit, device_name(d));
        scene_begin(&s, &kit, warp);
        scene_begin(&plain, &kit, warp);
        scene_feed(&s, 9);
        scene_feed(&plain, 9);
        assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
        assert_int_equal(scene_put(&s, kit.stream), GPST_OK);
        assert_int_equal(gpst_graph_end(kit.stream, NULL), GPST_OK);
        assert_int_equal(gpst_stream_create(kit.device, &doomed), GPST_OK);
        assert_int_equal(gpst_graph_begin(doomed), GPST_OK);
        assert_int_equal(scene_put(&s, doomed), GPST_OK);
        gpst_stream_destroy(doomed);
        assert_int_equal(gpst_stream_create(kit.device, &doomed), GPST_OK); /* may be the same one */
        assert_int_equal(gpst_stream_synchronize(doomed), GPST_OK);
        refused(gpst_graph_end(doomed, NULL), GPST_ERROR_STATE, "gpst_graph_end: the stream does not record", "");
        scene_expect_untouched(&s);
        assert_int_equal(scene_put(&s, doomed), GPST_OK);
        assert_int_equal(gpst_stream_synchronize(doomed), GPST_OK);
        assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
        scene_expect_equal(&s, &plain);
        gpst_stream_destroy(doomed);
        scene_end(&s);
        scene_end(&plain);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* A graph goes while its launches are on their way: they run all the same. */
static void test_destroyed_while_queued(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        scene s, plain;
        kit_start(&kit, device_name(d));
        scene_begin(&s, &kit, warp);
        scene_begin(&plain, &kit, warp);
        scene_feed(&s, 11);
        scene_feed(&plain, 11);
        gpst_graph* const graph = record(&s, kit.stream);
        for (int n = 0; n < 20; n++)
            assert_int_equal(gpst_graph_launch(graph, kit.stream), GPST_OK);
        gpst_graph_destroy(graph);
        for (int n = 0; n < 20; n++)
            assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
        scene_expect_equal(&s, &plain);
        scene_end(&s);
        scene_end(&plain);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* ---- what is refused --------------------------------------------------------------------- */

static void test_errors(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        scene s;
        gpst_device* other_device = NULL;
        gpst_stream* other = NULL;
        gpst_event* event = NULL;
        gpst_graph* graph = (gpst_graph*)&kit;
        kit_start(&kit, device_name(d));
        scene_begin(&s, &kit, warp);
        scene_feed(&s, 1);
        assert_int_equal(gpst_event_create(kit.device, &event), GPST_OK);
        assert_int_equal(gpst_device_open("cpu", &other_device), GPST_OK);
        assert_int_equal(gpst_stream_create(other_device, &other), GPST_OK);

        refused(gpst_graph_begin(NULL), GPST_ERROR_ARGUMENT, "gpst_graph_begin: stream=NULL", "");
        refused(gpst_graph_end(NULL, &graph), GPST_ERROR_ARGUMENT, "gpst_graph_end: stream=NULL", "");
        assert_null(graph);
        refused(gpst_graph_end(NULL, NULL), GPST_ERROR_ARGUMENT, "gpst_graph_end: stream=NULL", "");
        refused(gpst_graph_end(kit.stream, &graph), GPST_ERROR_STATE, "gpst_graph_end: the stream does not record",
                "gpst_graph_begin comes first");
        refused(gpst_graph_end(kit.stream, NULL), GPST_ERROR_STATE, "gpst_graph_end: the stream does not record", "");
        assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
        refused(gpst_graph_begin(kit.stream), GPST_ERROR_STATE, "gpst_graph_begin: the stream records", "already");
        refused(gpst_stream_synchronize(kit.stream), GPST_ERROR_STATE, "gpst_stream_synchronize: the stream records",
                "");
        refused(gpst_event_record(event, kit.stream), GPST_ERROR_STATE, "gpst_event_record: the stream records", "");
        refused(gpst_stream_wait(kit.stream, event), GPST_ERROR_STATE, "gpst_stream_wait: the stream records", "");
        refused(gpst_copy_peer(s.block->copied, kit.device, s.block->in, 5, kit.stream), GPST_ERROR_STATE,
                "gpst_copy_peer: the stream records", "");
        /* what their own checks refuse is not recorded, and the recording goes on */
        refused(gpst_copy(NULL, s.block->in, 5, kit.stream), GPST_ERROR_ARGUMENT, "gpst_copy: dst=NULL", "");
        refused(gpst_warp_enqueue(NULL, NULL, NULL, 1, kit.stream), GPST_ERROR_ARGUMENT, "gpst_warp_enqueue: warp=NULL",
                "");
        assert_int_equal(scene_put(&s, kit.stream), GPST_OK);
        assert_int_equal(gpst_graph_end(kit.stream, &graph), GPST_OK);

        refused(gpst_graph_launch(NULL, kit.stream), GPST_ERROR_ARGUMENT, "gpst_graph_launch: graph=NULL", "");
        refused(gpst_graph_launch(graph, NULL), GPST_ERROR_ARGUMENT, "gpst_graph_launch: stream=NULL", "");
        refused(gpst_graph_launch(graph, other), GPST_ERROR_ARGUMENT, "gpst_graph_launch: stream", "graph's device");
        assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
        refused(gpst_graph_launch(graph, kit.stream), GPST_ERROR_STATE, "gpst_graph_launch: the stream records", "");
        assert_int_equal(gpst_graph_end(kit.stream, NULL), GPST_OK);
        assert_int_equal(info_of(graph).n_launches, 0);
        assert_int_equal(info_of(NULL).n_commands, 0);
        gpst_graph_query_info(graph, NULL);
        refused(gpst_device_close(kit.device), GPST_ERROR_STATE, "gpst_device_close", "");

        gpst_graph_destroy(graph);
        gpst_stream_destroy(other);
        assert_int_equal(gpst_device_close(other_device), GPST_OK);
        gpst_event_destroy(event);
        scene_end(&s);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* A user's kernel that fails: on a GPU when the graph is made, and with each launch piece by piece; elsewhere when it
   runs. */
static void test_failing_kernel(void** state) {
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        device_kit kit;
        gpst_graph* graph = NULL;
        kit_start(&kit, device_name(d));
        const bool on_gpu = gpst_stream_native(kit.stream) != NULL;
        assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
        assert_int_equal(gpst_kernel_enqueue(&graph_fails, NULL, 0, kit.stream), GPST_OK);
        assert_int_equal(gpst_graph_end(kit.stream, &graph), GPST_OK);
        assert_int_equal(info_of(graph).reason[0] != 0, on_gpu);
        for (int n = 0; n < 2; n++) {
            gpst_result result = gpst_graph_launch(graph, kit.stream);
            assert_int_equal(GPST_FAILED(result), on_gpu || !kit.asynchronous);
            if (!on_gpu && kit.asynchronous)
                result = gpst_stream_synchronize(kit.stream);
            assert_true(GPST_FAILED(result));
            test_reason_has(on_gpu || !kit.asynchronous ? "gpst_graph_launch: " : "gpst_stream_synchronize: ",
                            on_gpu ? "" : "graph_fails_host: always");
        }
        assert_int_equal(gpst_stream_synchronize(kit.stream), GPST_OK);
        gpst_graph_destroy(graph);
        kit_end(&kit);
    }
}

/* ---- faults -------------------------------------------------------------------------------- */

/* The device refuses to begin one, or to end it: the same work goes piece by piece, and the reason is told. */
static void test_refused_by_the_device(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (unsigned n = 1; n <= 2; n++) {
        char name[64];
        device_kit kit;
        scene s, plain;
        snprintf(name, sizeof name, "%s:fail_graph=%u", device_with_faults(), n);
        kit_start(&kit, name);
        scene_begin(&s, &kit, warp);
        scene_begin(&plain, &kit, warp);
        gpst_graph* const graph = record(&s, kit.stream);
        const gpst_graph_info info = info_of(graph);
        assert_non_null(strstr(info.reason, n == 1 ? "graph_begin" : "graph_end"));
        assert_int_equal(info.device_bytes, 0);
        for (uint64_t round = 0; round < 3; round++) {
            scene_feed(&s, round);
            scene_feed(&plain, round);
            assert_int_equal(gpst_graph_launch(graph, kit.stream), GPST_OK);
            assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
            scene_expect_equal(&s, &plain);
        }
        gpst_graph* const second = record(&s, kit.stream);
        assert_string_equal(info_of(second).reason, "");
        gpst_graph_destroy(graph);
        gpst_graph_destroy(second);
        scene_end(&s);
        scene_end(&plain);
        kit_end(&kit);
    }
    gpst_warp_destroy(warp);
}

/* Memory of the host refused at every call in turn, of the recorded calls and of the end: either it is told of, and
   nothing is made, or the graph is launched piece by piece. */
static void test_no_memory(void** state) {
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    for (int d = 0; d < N_DEVICES && device_name(d); d++) {
        bool more = true;
        for (uint64_t n = 1; more; n++) {
            device_kit kit;
            scene s, plain;
            gpst_graph* graph = NULL;
            kit_start(&kit, device_name(d));
            scene_begin(&s, &kit, warp);
            scene_begin(&plain, &kit, warp);
            scene_feed(&s, n);
            scene_feed(&plain, n);
            test_memory_refuse(&kit.memory, n);
            assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
            const gpst_result put = scene_put(&s, kit.stream);
            assert_true(put == GPST_OK || put == GPST_ERROR_MEMORY);
            const gpst_result result = gpst_graph_end(kit.stream, &graph);
            more = test_memory_refused(&kit.memory);
            test_memory_relent(&kit.memory);
            if (GPST_FAILED(put))
                refused(result, GPST_ERROR_MEMORY, "gpst_graph_end: a recorded call has failed", "");
            if (!more)
                assert_int_equal(result, GPST_OK);
            assert_true(result == GPST_OK ? graph != NULL : result == GPST_ERROR_MEMORY && !graph);
            if (!graph)
                graph = record(&s, kit.stream);
            assert_int_equal(gpst_graph_launch(graph, kit.stream), GPST_OK);
            assert_int_equal(scene_put(&plain, kit.stream), GPST_OK);
            scene_expect_equal(&s, &plain);
            gpst_graph_destroy(graph);
            scene_end(&s);
            scene_end(&plain);
            kit_end(&kit);
        }
    }
    gpst_warp_destroy(warp);
}

/* After a call that found no memory nothing is recorded any more, whether there is memory again or not. */
static void test_no_memory_in_between(void** state) {
    static uint8_t bytes[64];
    device_kit kit;
    gpst_graph* graph = NULL;
    gpst_result result = GPST_OK;
    (void)state;
    kit_start(&kit, "cpu");
    assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
    test_memory_refuse(&kit.memory, 2); /* the first is the first list's */
    for (int n = 0; n < 1000 && !GPST_FAILED(result); n++)
        result = gpst_fill(bytes, 1, sizeof bytes, kit.stream);
    refused(result, GPST_ERROR_MEMORY, "gpst_fill: ", "");
    assert_int_equal(gpst_copy(bytes + 32, bytes, 32, kit.stream), GPST_ERROR_MEMORY);
    assert_int_equal(gpst_graph_end(kit.stream, NULL), GPST_OK);
    test_memory_relent(&kit.memory);
    assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
    assert_int_equal(gpst_fill(bytes, 2, sizeof bytes, kit.stream), GPST_OK);
    assert_int_equal(gpst_graph_end(kit.stream, &graph), GPST_OK);
    assert_int_equal(info_of(graph).n_commands, 1);
    assert_int_equal(bytes[5], 0);
    assert_int_equal(gpst_graph_launch(graph, kit.stream), GPST_OK);
    assert_int_equal(bytes[5], 2);
    gpst_graph_destroy(graph);
    kit_end(&kit);
}

static void test_a_lost_device(void** state) {
    char name[64];
    device_kit kit;
    scene s;
    gpst_graph* graph = NULL;
    gpst_warp* const warp = scene_warp(0);
    (void)state;
    snprintf(name, sizeof name, "%s:lose_at=1", device_with_faults());
    kit_start(&kit, name);
    scene_begin(&s, &kit, warp);
    gpst_graph* const before = record(&s, kit.stream);
    assert_string_equal(info_of(before).reason, "");
    (void)gpst_graph_launch(before, kit.stream);
    refused(gpst_stream_synchronize(kit.stream), GPST_ERROR_DEVICE_LOST, "gpst_stream_synchronize: ", "lost");
    refused(gpst_graph_launch(before, kit.stream), GPST_ERROR_DEVICE_LOST, "gpst_graph_launch: ", "lost");
    const gpst_result begun = gpst_graph_begin(kit.stream);
    if (!GPST_FAILED(begun)) {
        assert_int_equal(scene_put(&s, kit.stream), GPST_OK);
        refused(gpst_graph_end(kit.stream, &graph), GPST_ERROR_DEVICE_LOST, "gpst_graph_end: ", "lost");
    }
    assert_null(graph);
    gpst_graph_destroy(before);
    scene_end(&s);
    kit_end(&kit);
    gpst_warp_destroy(warp);
}

/* In a child of fork everything is refused, and nothing is freed. */
static void test_fork(void** state) {
    static uint8_t bytes[16];
    device_kit kit;
    gpst_stream* records = NULL;
    gpst_graph *graph = NULL, *more = NULL;
    (void)state;
    kit_start(&kit, "cpu");
    assert_int_equal(gpst_stream_create(kit.device, &records), GPST_OK);
    assert_int_equal(gpst_graph_begin(kit.stream), GPST_OK);
    assert_int_equal(gpst_fill(bytes, 1, sizeof bytes, kit.stream), GPST_OK);
    assert_int_equal(gpst_graph_end(kit.stream, &graph), GPST_OK);
    assert_int_equal(gpst_graph_begin(records), GPST_OK);
    const pid_t child = fork();
    if (child == 0) {
        bool good = gpst_graph_begin(kit.stream) == GPST_ERROR_FORKED;
        good = good && gpst_graph_launch(graph, kit.stream) == GPST_ERROR_FORKED;
        good = good && gpst_graph_end(records, &more) == GPST_ERROR_FORKED && !more;
        good = good && gpst_graph_end(records, NULL) == GPST_ERROR_FORKED;
        gpst_graph_destroy(graph);
        _exit(good && info_of(graph).n_commands == 1 && bytes[0] == 0 ? 0 : 1);
    }
    int status = -1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
    assert_int_equal(gpst_graph_end(records, NULL), GPST_OK);
    gpst_stream_destroy(records);
    gpst_graph_destroy(graph);
    kit_end(&kit);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_are_compared),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_two_graphs),
        cmocka_unit_test(test_abandoned),
        cmocka_unit_test(test_destroyed_while_queued),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_failing_kernel),
        cmocka_unit_test(test_refused_by_the_device),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_no_memory_in_between),
        cmocka_unit_test(test_a_lost_device),
        cmocka_unit_test(test_fork),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
