/* tests/test_reader_queue.c -- many reads at once: each is done exactly once, in
   order where there is one, within the limit, and nobody is left waiting at the end. */
#include "test_reader.h"
#include "test_threads.h"

/* ---- many at once ------------------------------------------------------------ */

enum { TEST_FILES = 200 };

static void sixty_four_at_once(void** state) {
    gpst_reader* reader = test_reader_new(64);
    static char paths[TEST_FILES][TEST_PATH_BYTES];
    static test_read reads[TEST_FILES];
    unsigned char* data = test_bytes(100000, 2);
    gpst_reader_info info;
    uint64_t total = 0;
    size_t k;
    (void)state;
    for (k = 0; k < TEST_FILES; ++k) {
        char name[32];
        snprintf(name, sizeof(name), "many%zu", k);
        test_file_make(test_path(paths[k], name), data + k, k * 400);
        test_read_init(&reads[k], paths[k]);
        total += k * 400;
    }
    for (k = 0; k < TEST_FILES; ++k)
        assert_int_equal(gpst_reader_submit(reader, &reads[k].read), GPST_OK);
    for (k = 0; k < TEST_FILES; ++k) {
        test_read_wait(&reads[k]);
        test_read_check(&reads[k], data + k, k * 400);
        test_read_term(&reads[k]);
    }
    gpst_reader_query_info(reader, &info);
    assert_int_equal(info.reads, TEST_FILES);
    assert_int_equal(info.bytes, total);
    assert_int_equal(info.n_in_flight, 64);
    gpst_reader_destroy(reader);
    for (k = 0; k < TEST_FILES; ++k)
        assert_int_equal(gpsti_a32_load(&reads[k].n_done), 1);
    free(data);
}

static void one_at_a_time_keeps_the_order(void** state) {
    gpst_reader* reader = test_trouble_new(1);
    static test_read reads[50];
    char path[TEST_PATH_BYTES];
    size_t k;
    (void)state;
    test_trouble.before = test_wait_for_gate;
    test_file_make(test_path(path, "ordered"), "abc", 3);
    for (k = 0; k < 50; ++k) {
        test_read_init(&reads[k], path);
        assert_int_equal(gpst_reader_submit(reader, &reads[k].read), GPST_OK);
    }
    gpsti_a32_store(&test_gate, 1);
    for (k = 0; k < 50; ++k) {
        test_read_wait(&reads[k]);
        test_read_check(&reads[k], "abc", 3);
        test_read_term(&reads[k]);
        assert_true(k == 0 || reads[k].order > reads[k - 1].order);
    }
    gpst_reader_destroy(reader);
}

static void a_drain_waits_for_every_read(void** state) {
    gpst_reader* reader = test_trouble_new(2);
    static test_read reads[30];
    char path[TEST_PATH_BYTES];
    size_t k;
    (void)state;
    assert_int_equal(gpst_reader_drain(reader, 0), GPST_OK); /* of nothing */
    test_trouble.before = test_wait_for_gate;
    test_file_make(test_path(path, "drained"), "abc", 3);
    for (k = 0; k < 30; ++k) {
        test_read_init(&reads[k], path);
        assert_int_equal(gpst_reader_submit(reader, &reads[k].read), GPST_OK);
    }
    assert_int_equal(gpst_reader_drain(reader, 0), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(gpst_reader_drain(reader, 2000000), GPST_ERROR_TIMEOUT);
    assert_non_null(strstr(gpst_last_reason(), "gpst_reader_drain: timeout_ns=2000000"));
    gpsti_a32_store(&test_gate, 1);
    assert_int_equal(gpst_reader_drain(reader, GPST_FOREVER), GPST_OK);
    for (k = 0; k < 30; ++k) {
        assert_int_equal(gpsti_a32_load(&reads[k].n_done), 1); /* without a wait for each */
        test_read_wait(&reads[k]);
        test_read_check(&reads[k], "abc", 3);
        test_read_term(&reads[k]);
    }
    assert_int_equal(gpst_reader_drain(NULL, 0), GPST_ERROR_ARGUMENT);
    gpst_reader_destroy(reader);
}

/* Waits until the limit is reached, then a little for anyone who goes beyond it. */
static uint32_t test_most_running(gpst_reader* reader, const char* path, uint32_t limit) {
    static test_read reads[24];
    size_t k;
    gpsti_a32_store(&test_gate, 0);
    gpsti_a32_store(&test_trouble.most_running, 0);
    for (k = 0; k < 24; ++k) {
        test_read_init(&reads[k], path);
        assert_int_equal(gpst_reader_submit(reader, &reads[k].read), GPST_OK);
    }
    while (gpsti_a32_load(&test_trouble.most_running) < limit)
        gpsti_sleep_ns(50000);
    gpsti_sleep_ns(5000000);
    gpsti_a32_store(&test_gate, 1);
    for (k = 0; k < 24; ++k) {
        test_read_wait(&reads[k]);
        test_read_check(&reads[k], "abc", 3);
        test_read_term(&reads[k]);
    }
    return gpsti_a32_load(&test_trouble.most_running);
}

static void the_limit_moves_while_running(void** state) {
    gpst_reader* reader = test_trouble_new(2);
    gpst_reader_info info;
    char path[TEST_PATH_BYTES];
    (void)state;
    test_trouble.before = test_wait_for_gate;
    test_file_make(test_path(path, "limited"), "abc", 3);
    assert_int_equal(test_most_running(reader, path, 2), 2);
    assert_int_equal(gpst_reader_set_in_flight(reader, 8), GPST_OK);
    assert_int_equal(test_most_running(reader, path, 8), 8);
    assert_int_equal(gpst_reader_set_in_flight(reader, 3), GPST_OK);
    assert_int_equal(test_most_running(reader, path, 3), 3);
    assert_int_equal(gpst_reader_set_in_flight(reader, 0), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_reader_set_in_flight(reader, 65), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "n_in_flight=65"));
    gpst_reader_query_info(reader, &info);
    assert_int_equal(info.n_in_flight, 3);
    gpst_reader_destroy(reader);
}

#if defined(__linux__)
/* None to begin with; then one, at most one more for each read that comes, and as many as reads wait for. */
static void threads_come_with_work(void** state) {
    const uint32_t before = test_settled_threads();
    gpst_reader* reader = test_trouble_new(16);
    char path[TEST_PATH_BYTES];
    test_read t;
    (void)state;
    assert_int_equal(test_count_threads(), before);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(gpsti_reader_start(reader), GPST_OK);
        assert_int_equal(test_count_threads(), before + 1);
    }
    gpsti_a32_store(&test_gate, 1);
    test_trouble.before = test_wait_for_gate;
    test_file_make(test_path(path, "worked"), "abc", 3);
    for (int n = 0; n < 12; n++) {
        test_read_init(&t, path);
        assert_int_equal(gpst_reader_submit(reader, &t.read), GPST_OK);
        test_read_wait(&t);
        test_read_check(&t, "abc", 3);
        test_read_term(&t);
        gpsti_sleep_ns(2000000); /* its thread rests again, where it has a core */
    }
    assert_in_range(test_count_threads(), before + 1, before + 1 + 12);
    assert_int_equal(test_most_running(reader, path, 16), 16);
    assert_int_equal(test_count_threads(), before + 16);
    gpst_reader_destroy(reader);
    assert_int_equal(test_settled_threads(), before);
    reader = test_reader_new(4); /* one can rely on it */
    assert_int_equal(test_count_threads(), before + 1);
    gpst_reader_destroy(reader);
}

/* Then there is no reader, or no read; and when there are threads again, there is. */
static void threads_that_cannot_be_had(void** state) {
    gpst_reader* reader = test_trouble_new(4);
    gpst_reader* none = reader;
    char path[TEST_PATH_BYTES];
    test_read t;
    (void)state;
    test_file_make(test_path(path, "later"), "abc", 3);
    test_read_init(&t, path);
    if (test_refuse_threads(true)) {
        assert_true(GPST_FAILED(gpsti_reader_start(reader)));
        assert_true(GPST_FAILED(gpst_reader_submit(reader, &t.read)));
        assert_non_null(strstr(gpst_last_reason(), "gpst-read"));
        assert_true(GPST_FAILED(gpst_reader_create(test_context, NULL, &none)));
        assert_null(none);
        assert_non_null(strstr(gpst_last_reason(), "gpst_reader_create: "));
        assert_true(test_refuse_threads(false));
    }
    assert_int_equal(gpst_reader_submit(reader, &t.read), GPST_OK);
    test_read_wait(&t);
    test_read_check(&t, "abc", 3);
    test_read_term(&t);
    gpst_reader_destroy(reader);
}
#endif

static gpsti_a32 test_chain_left;
static gpst_reader* test_chain_reader;

static void test_chain_done(gpst_read* read) {
    if (gpsti_a32_add(&test_chain_left, (uint32_t)-1) > 1)
        assert_int_equal(gpst_reader_submit(test_chain_reader, read), GPST_OK);
    else
        gpsti_a32_add(&((test_read*)read)->n_done, 1);
}

static void done_may_submit_again(void** state) {
    gpst_reader* reader = test_reader_new(1);
    gpst_reader_info info;
    char path[TEST_PATH_BYTES];
    test_read t;
    (void)state;
    test_file_make(test_path(path, "chain"), "abc", 3);
    test_chain_reader = reader;
    gpsti_a32_store(&test_chain_left, 100);
    test_read_init(&t, path);
    t.read.done = test_chain_done;
    assert_int_equal(gpst_reader_submit(reader, &t.read), GPST_OK);
    test_read_wait(&t);
    test_read_check(&t, "abc", 3);
    test_read_term(&t);
    gpst_reader_query_info(reader, &info);
    assert_int_equal(info.reads, 100);
    gpst_reader_destroy(reader);
}

/* ---- the end ----------------------------------------------------------------- */

static void test_queue_behind_gate(gpst_reader* reader, test_read* reads, size_t count, const char* path) {
    size_t k;
    for (k = 0; k < count; ++k) {
        test_read_init(&reads[k], path);
        assert_int_equal(gpst_reader_submit(reader, &reads[k].read), GPST_OK);
    }
    while (!gpsti_a32_load(&test_trouble.running))
        gpsti_sleep_ns(50000);
}

static void test_check_cancelled(test_read* reads, size_t count) {
    size_t k;
    test_read_check(&reads[0], "abc", 3); /* what ran went on */
    for (k = 0; k < count; ++k) {
        assert_int_equal(gpsti_a32_load(&reads[k].n_done), 1);
        if (k) {
            assert_int_equal(reads[k].read.result, GPST_ERROR_CANCELLED);
            assert_int_equal(reads[k].read.bytes, 0);
            assert_true(reads[k].read.reason[0] != 0);
        }
        test_read_term(&reads[k]);
    }
}

static void cancel_ends_what_is_queued(void** state) {
    gpst_reader* reader = test_trouble_new(1);
    gpst_reader_info info;
    test_read reads[10];
    test_read after;
    char path[TEST_PATH_BYTES];
    size_t k;
    (void)state;
    test_trouble.before = test_wait_for_gate;
    test_file_make(test_path(path, "cancelled"), "abc", 3);
    test_queue_behind_gate(reader, reads, 10, path);
    gpst_reader_cancel(reader);
    gpsti_a32_store(&test_gate, 1);
    for (k = 0; k < 10; ++k)
        test_read_wait(&reads[k]);
    test_check_cancelled(reads, 10);
    test_read_init(&after, path); /* the reader goes on */
    test_read_once(reader, &after);
    test_read_check(&after, "abc", 3);
    test_read_term(&after);
    gpst_reader_query_info(reader, &info);
    assert_int_equal(info.reads, 2);
    gpst_reader_destroy(reader);
}

static void* test_open_gate_later(void* arg) {
    (void)arg;
    gpsti_sleep_ns(20000000);
    gpsti_a32_store(&test_gate, 1);
    return NULL;
}

static void destroy_cancels_and_waits(void** state) {
    gpst_reader* reader = test_trouble_new(1);
    test_read reads[10];
    pthread_t opener;
    char path[TEST_PATH_BYTES];
    (void)state;
    test_trouble.before = test_wait_for_gate;
    test_file_make(test_path(path, "destroyed"), "abc", 3);
    test_queue_behind_gate(reader, reads, 10, path);
    assert_int_equal(pthread_create(&opener, NULL, test_open_gate_later, NULL), 0);
    gpst_reader_destroy(reader);
    test_check_cancelled(reads, 10); /* every done was called by now */
    pthread_join(opener, NULL);
    gpst_reader_destroy(NULL);
}

static void bad_arguments(void** state) {
    gpst_reader_desc desc = GPST_ZERO;
    gpst_reader* reader = (gpst_reader*)&desc;
    gpst_reader_info info;
    test_read t;
    (void)state;
    assert_int_equal(
        gpst_reader_create_versioned(GPST_VERSION + 1, sizeof(desc), test_context, &desc, &reader),
        GPST_ERROR_VERSION);
    assert_int_equal(gpst_reader_create(NULL, &desc, &reader), GPST_ERROR_ARGUMENT);
    assert_null(reader);
    desc.n_in_flight = 65;
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "n_in_flight=65"));
    desc.n_in_flight = 0;
    desc.kind = "telepathy";
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "telepathy"));
    desc.kind = "pread";
    desc.end_canary = 1;
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_reader_create(test_context, NULL, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_reader_create(test_context, NULL, &reader), GPST_OK);
    test_read_init(&t, NULL);
    assert_int_equal(gpst_reader_submit(reader, &t.read), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_reader_submit(reader, NULL), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_reader_submit(NULL, &t.read), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpsti_a32_load(&t.n_done), 0);
    gpst_reader_query_info(reader, &info);
    assert_int_equal(info.reads, 0);
    gpst_reader_destroy(reader);
}

/* create allocates; a read, however it ends, does not. */
static void memory_is_taken_at_creation_only(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_reader* reader = NULL;
    test_memory memory;
    char path[TEST_PATH_BYTES];
    test_read t;
    (void)state;
    test_file_make(test_path(path, "frugal"), "abc", 3);
    desc.allocator = test_memory_hooks(&memory);
    desc.n_workers = 1;
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    test_memory_refuse(&memory, 1);
    assert_int_equal(gpst_reader_create(context, NULL, &reader), GPST_ERROR_MEMORY);
    assert_null(reader);
    test_memory_relent(&memory);
    assert_int_equal(gpst_reader_create(context, NULL, &reader), GPST_OK);
    const uint64_t calls = gpsti_a64_load(&memory.calls);
    test_read_init(&t, path);
    test_read_once(reader, &t);
    test_read_check(&t, "abc", 3);
    test_read_term(&t);
    assert_int_equal(gpsti_a64_load(&memory.calls), calls);
    gpst_reader_destroy(reader);
    gpst_context_destroy(context);
    test_memory_check(&memory);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(sixty_four_at_once),
                                       cmocka_unit_test(one_at_a_time_keeps_the_order),
        cmocka_unit_test(a_drain_waits_for_every_read),
                                       cmocka_unit_test(the_limit_moves_while_running),
#if defined(__linux__)
                                       cmocka_unit_test(threads_come_with_work),
                                       cmocka_unit_test(threads_that_cannot_be_had),
#endif
                                       cmocka_unit_test(done_may_submit_again),
                                       cmocka_unit_test(cancel_ends_what_is_queued),
                                       cmocka_unit_test(destroy_cancels_and_waits),
                                       cmocka_unit_test(bad_arguments),
                                       cmocka_unit_test(memory_is_taken_at_creation_only)};
    return cmocka_run_group_tests(tests, test_group_begin, test_group_end);
}
