/* tests/test_reader.c -- one file arrives whole and unchanged whatever the
   system calls do, and every other outcome is the right error. */
#include "test_reader.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

/* ---- whole files and ranges --------------------------------------------------- */

static void reads_whole_files(void** state) {
    static const size_t sizes[] = {0, 1, 4095, 4096, 4097, 1000003};
    gpst_reader* reader = test_reader_new(0);
    gpst_reader_info info;
    char path[TEST_PATH_BYTES];
    size_t k;
    (void)state;
    test_path(path, "whole");
    for (k = 0; k < 6; ++k) {
        test_read t;
        unsigned char* data = test_bytes(sizes[k], k);
        test_file_make(path, data, sizes[k]);
        test_read_init(&t, path); /* no room yet */
        test_read_once(reader, &t);
        test_read_check(&t, data, sizes[k]);
        assert_int_equal(t.n_reserves, sizes[k] > 0); /* asked for once, exactly */
        assert_int_equal(t.read.capacity_bytes, sizes[k]);
        assert_int_equal(t.read.n_calls, sizes[k] > 0);
        test_read_term(&t);

        test_read_init(&t, path); /* room to spare: nothing beyond the file is touched */
        t.read.data = malloc(sizes[k] + 64);
        t.allocated = t.read.capacity_bytes = sizes[k] + 64;
        memset(t.read.data, 0xA5, sizes[k] + 64);
        test_read_once(reader, &t);
        test_read_check(&t, data, sizes[k]);
        assert_int_equal(t.n_reserves, 0);
        assert_int_equal(((unsigned char*)t.read.data)[sizes[k]], 0xA5);
        test_read_term(&t);
        free(data);
    }
    gpst_reader_query_info(reader, &info);
    assert_string_equal(info.kind, "auto");
    assert_string_equal(info.path, "pread, buffered");
    assert_int_equal(info.n_in_flight, 4);
    assert_int_equal(info.reads, 12);
    assert_int_equal(info.failed, 0);
    assert_int_equal(info.bytes, 2 * (1 + 4095 + 4096 + 4097 + 1000003));
    assert_int_equal(info.calls, 10);
    assert_true(info.busy_ns > 0 && info.busy_ns <= info.service_ns + 1000000000u);
    gpst_reader_destroy(reader);
}

static void reads_ranges(void** state) {
    gpst_reader* reader = test_reader_new(2);
    unsigned char* data = test_bytes(100000, 5);
    char path[TEST_PATH_BYTES];
    uint64_t seed = test_seed(9);
    test_read t;
    int k;
    (void)state;
    test_file_make(test_path(path, "range"), data, 100000);
    for (k = 0; k < 50; ++k) {
        const size_t offset = (size_t)(test_random(&seed) % 100000);
        const size_t length = 1 + (size_t)(test_random(&seed) % (100000 - offset));
        test_read_init(&t, path);
        t.read.offset_bytes = offset;
        t.read.length_bytes = length;
        test_read_once(reader, &t);
        test_read_check(&t, data + offset, length);
        test_read_term(&t);
        test_read_init(&t, path);
        t.read.offset_bytes = offset; /* to the end */
        test_read_once(reader, &t);
        test_read_check(&t, data + offset, 100000 - offset);
        test_read_term(&t);
    }
    test_read_init(&t, path);
    t.read.offset_bytes = 100000; /* nothing, but not wrong */
    test_read_once(reader, &t);
    test_read_check(&t, NULL, 0);
    for (k = 0; k < 2; ++k) {
        test_read_init(&t, path);
        t.read.offset_bytes = k ? 100001 : 99999;
        t.read.length_bytes = k ? 0 : 2;
        assert_int_equal(test_read_once(reader, &t), GPST_ERROR_TRUNCATED);
        assert_int_equal(t.n_reserves, 0); /* refused before room is asked for */
        assert_non_null(strstr(t.read.reason, "100000 bytes"));
    }
    test_read_init(&t, path);
    t.read.offset_bytes = UINT64_MAX - 1;
    t.read.length_bytes = 5;
    assert_int_equal(test_read_once(reader, &t), GPST_ERROR_OVERFLOW);
    free(data);
    gpst_reader_destroy(reader);
}

static void reads_beyond_4_gib(void** state) {
    static const char mark[] = "far away";
    const uint64_t far = ((uint64_t)5 << 30) + 3;
    char path[TEST_PATH_BYTES];
    test_read t;
    (void)state;
    const int file = open(test_path(path, "sparse"), O_WRONLY | O_CREAT, 0600);
    if (pwrite(file, mark, sizeof(mark), (off_t)far) != (ssize_t)sizeof(mark)) {
        printf("skipped: no sparse file of 5 GiB here\n");
    } else {
        test_read_init(&t, path);
        t.read.offset_bytes = far;
        assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_OK);
        test_read_check(&t, mark, sizeof(mark));
        test_read_term(&t);
        test_read_init(&t, path);
        t.reserve_at_most = 1000000;
        t.reserve_result = GPST_ERROR_BUDGET;
        assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_ERROR_BUDGET);
        assert_true(t.read.reason[0] != 0);
    }
    close(file);
    unlink(path);
}

/* ---- trouble ----------------------------------------------------------------- */

static void short_reads_change_nothing(void** state) {
    gpst_reader* reader = test_trouble_new(1);
    unsigned char* data = test_bytes(5000, 3);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_file_make(test_path(path, "short"), data, 5000);
    for (test_trouble.at_most = 1; test_trouble.at_most < 6000; test_trouble.at_most *= 7) {
        test_read t;
        test_read_init(&t, path);
        test_read_once(reader, &t);
        test_read_check(&t, data, 5000);
        assert_int_equal(t.read.n_calls, (5000 + test_trouble.at_most - 1) / test_trouble.at_most);
        test_read_term(&t);
        test_read_init(&t, path);
        t.read.offset_bytes = 17;
        t.read.length_bytes = 4000;
        test_read_once(reader, &t);
        test_read_check(&t, data + 17, 4000);
        test_read_term(&t);
    }
    free(data);
    gpst_reader_destroy(reader);
}

static void every_failing_call_is_that_reads_error(void** state) {
    gpst_reader* reader = test_trouble_new(1);
    gpst_reader_info info;
    unsigned char* data = test_bytes(5000, 3);
    char path[TEST_PATH_BYTES];
    test_read t;
    uint32_t n;
    (void)state;
    test_file_make(test_path(path, "failing"), data, 5000);
    for (n = 1; n <= 6; ++n) { /* five calls with bytes, one that finds the end */
        memset(&test_trouble, 0, sizeof(test_trouble));
        test_trouble.at_most = 1000;
        test_trouble.fail_at = n;
        test_read_init(&t, path);
        assert_int_equal(test_read_once(reader, &t), GPST_ERROR_IO);
        assert_non_null(strstr(t.read.reason, "injected"));
        assert_int_equal(t.read.bytes, 1000 * (n - 1));
        test_read_term(&t);
        test_read_init(&t, path); /* the next one is whole */
        test_read_once(reader, &t);
        test_read_check(&t, data, 5000);
        test_read_term(&t);
    }
    gpst_reader_query_info(reader, &info);
    assert_int_equal(info.reads, 12);
    assert_int_equal(info.failed, 6);
    free(data);
    gpst_reader_destroy(reader);
}

static void test_truncate_on_second_call(uint32_t call, const char* path) {
    if (call == 2)
        assert_int_equal(truncate(path, 1500), 0);
}

static void a_file_that_shrinks_is_truncated(void** state) {
    gpst_reader* reader = test_trouble_new(1);
    unsigned char* data = test_bytes(5000, 3);
    char path[TEST_PATH_BYTES];
    int range;
    (void)state;
    test_path(path, "shrinking");
    for (range = 0; range < 2; ++range) {
        test_read t;
        test_file_make(path, data, 5000);
        memset(&test_trouble, 0, sizeof(test_trouble));
        test_trouble.at_most = 1000;
        test_trouble.before = test_truncate_on_second_call;
        test_read_init(&t, path);
        t.read.length_bytes = range ? 4000 : 0;
        assert_int_equal(test_read_once(reader, &t), GPST_ERROR_TRUNCATED);
        assert_int_equal(t.read.bytes, 1500);
        assert_non_null(strstr(t.read.reason, "1500"));
        test_read_term(&t);
    }
    free(data);
    gpst_reader_destroy(reader);
}

static unsigned char* test_tail;

static void test_append_on_second_call(uint32_t call, const char* path) {
    FILE* file;
    if (call != 2)
        return;
    file = fopen(path, "ab");
    assert_non_null(file);
    assert_int_equal(fwrite(test_tail, 1, 300000, file), 300000);
    fclose(file);
}

static void a_file_that_grows_is_read_on(void** state) {
    gpst_reader* reader = test_trouble_new(1);
    unsigned char* data = test_bytes(305000, 3);
    char path[TEST_PATH_BYTES];
    test_read t;
    (void)state;
    test_tail = data + 5000;
    test_file_make(test_path(path, "growing"), data, 5000);
    test_trouble.at_most = 3000;
    test_trouble.before = test_append_on_second_call;
    test_read_init(&t, path);
    test_read_once(reader, &t);
    test_read_check(&t, data, 305000);
    assert_true(t.n_reserves >= 2);
    test_read_term(&t);
    free(data);
    gpst_reader_destroy(reader);
}

static gpst_result test_reserve_lies(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    (void)read;
    (void)needed_bytes;
    (void)filled_bytes;
    return GPST_OK;
}

static void room_that_is_not_there(void** state) {
    char path[TEST_PATH_BYTES];
    char small[100];
    test_read t;
    (void)state;
    unsigned char* data = test_bytes(101, 1);
    test_file_make(test_path(path, "room"), data, 101);
    test_read_init(&t, path); /* no reserve, one byte too few */
    t.read.reserve = NULL;
    t.read.data = small;
    t.read.capacity_bytes = sizeof(small);
    assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_ERROR_OVERFLOW);
    assert_non_null(strstr(t.read.reason, "capacity_bytes=100"));
    test_read_init(&t, path); /* reserve refuses */
    t.reserve_at_most = 100;
    t.reserve_result = GPST_ERROR_BUDGET;
    assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_ERROR_BUDGET);
    assert_non_null(strstr(t.read.reason, "101 bytes"));
    test_read_init(&t, path); /* reserve says yes and does nothing */
    t.read.reserve = test_reserve_lies;
    assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_ERROR_CALLBACK);
    test_read_init(&t, path);
    t.read.capacity_bytes = 5; /* data NULL */
    assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_ERROR_ARGUMENT);
    test_read_init(&t, NULL);
    assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_ERROR_ARGUMENT);
    gpsti_fail(GPST_ERROR_IO, "%s", "earlier"); /* a success leaves the thread's reason alone */
    test_read_init(&t, path);
    assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_OK);
    assert_string_equal(gpst_last_reason(), "earlier");
    assert_int_equal(gpsti_a32_load(&t.n_done), 0); /* read_now calls no done */
    test_read_term(&t);
    free(data);
}

static void what_cannot_be_opened(void** state) {
    gpst_reader* reader = test_reader_new(1);
    char path[TEST_PATH_BYTES];
    test_read t;
    (void)state;
    test_read_init(&t, test_path(path, "nowhere"));
    assert_int_equal(test_read_once(reader, &t), GPST_ERROR_NOT_FOUND);
    assert_non_null(strstr(t.read.reason, "nowhere"));
    test_read_init(&t, test_directory);
    assert_int_equal(test_read_once(reader, &t), GPST_ERROR_IO);
    assert_non_null(strstr(t.read.reason, "is a directory"));
    gpst_reader_destroy(reader);
}

/* Permission bits do not bite root: a child that is nobody tries. */
static void a_file_without_permission(void** state) {
    char path[TEST_PATH_BYTES];
    int status = -1;
    (void)state;
    test_file_make(test_path(path, "secret"), "x", 1);
    assert_int_equal(chmod(path, 0), 0);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        test_read t;
        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0))
            _exit(GPST_TEST_SKIP);
        test_read_init(&t, path);
        _exit(gpst_reader_read_now(NULL, &t.read) == GPST_ERROR_ACCESS && strstr(t.read.reason, "secret")
                  ? 0
                  : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == GPST_TEST_SKIP)
        printf("skipped: root cannot become nobody here\n");
    else
        assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- what has no size -------------------------------------------------------- */

typedef struct test_feeder {
    pthread_t thread;
    char path[TEST_PATH_BYTES];
    int file; /* -1: opens path */
    const unsigned char* data;
    size_t bytes, chunk_bytes;
} test_feeder;

static void* test_feed(void* arg) {
    test_feeder* feeder = (test_feeder*)arg;
    const int file = feeder->file >= 0 ? feeder->file : open(feeder->path, O_WRONLY);
    size_t k;
    for (k = 0; k < feeder->bytes; k += feeder->chunk_bytes) {
        const size_t left = feeder->bytes - k;
        if (write(file, feeder->data + k, left < feeder->chunk_bytes ? left : feeder->chunk_bytes) < 0)
            break;
        usleep(300);
    }
    close(file);
    return NULL;
}

static void test_feeder_start(test_feeder* feeder, const char* path, int file, const unsigned char* data,
                              size_t bytes, size_t chunk_bytes) {
    sigset_t all;
    sigset_t before;
    snprintf(feeder->path, sizeof(feeder->path), "%s", path);
    feeder->file = file;
    feeder->data = data;
    feeder->bytes = bytes;
    feeder->chunk_bytes = chunk_bytes;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    assert_int_equal(pthread_create(&feeder->thread, NULL, test_feed, feeder), 0);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void a_fifo_is_read_in_order(void** state) {
    gpst_reader* reader = test_reader_new(2);
    gpst_reader_info info;
    unsigned char* data = test_bytes(300001, 8);
    char path[TEST_PATH_BYTES];
    test_feeder feeder;
    test_read t;
    (void)state;
    assert_int_equal(mkfifo(test_path(path, "fifo"), 0600), 0);
    test_feeder_start(&feeder, path, -1, data, 300001, 7001);
    test_read_init(&t, path);
    test_read_once(reader, &t);
    pthread_join(feeder.thread, NULL);
    test_read_check(&t, data, 300001);
    assert_true(t.n_reserves > 1);
    test_read_term(&t);
    gpst_reader_query_info(reader, &info);
    assert_int_equal(info.reads, 1);
    assert_int_equal(info.computed, 0); /* the feeder sleeps between its chunks */

    test_feeder_start(&feeder, path, -1, data, 5000, 5000); /* a part of it */
    test_read_init(&t, path);
    t.read.length_bytes = 3000;
    test_read_once(reader, &t);
    pthread_join(feeder.thread, NULL);
    test_read_check(&t, data, 3000);
    test_read_term(&t);

    test_feeder_start(&feeder, path, -1, data, 2000, 500); /* less than asked for */
    test_read_init(&t, path);
    t.read.length_bytes = 3000;
    assert_int_equal(test_read_once(reader, &t), GPST_ERROR_TRUNCATED);
    pthread_join(feeder.thread, NULL);
    test_read_term(&t);

    test_read_init(&t, path); /* no way back, no way forward; and no writer is waited for to say so */
    t.read.offset_bytes = 1;
    assert_int_equal(test_read_once(reader, &t), GPST_ERROR_ARGUMENT);
    free(data);
    gpst_reader_destroy(reader);
}

static void the_standard_input_is_read(void** state) {
    unsigned char* data = test_bytes(200000, 21);
    test_feeder feeder;
    test_read t;
    int ends[2];
    (void)state;
    const int before = dup(0);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], 0), 0);
    close(ends[0]);
    test_feeder_start(&feeder, "", ends[1], data, 200000, 9999);
    test_read_init(&t, "/dev/stdin");
    assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_OK);
    pthread_join(feeder.thread, NULL);
    if (before >= 0) {
        dup2(before, 0);
        close(before);
    }
    test_read_check(&t, data, 200000);
    test_read_term(&t);
    free(data);
}

static void files_of_proc_are_read(void** state) {
    char expected[4096];
    test_read t;
    (void)state;
    FILE* file = fopen("/proc/version", "rb");
    if (!file) {
        printf("skipped: no /proc here\n");
        return;
    }
    const size_t bytes = fread(expected, 1, sizeof(expected), file);
    fclose(file);
    test_read_init(&t, "/proc/version");
    assert_int_equal(gpst_reader_read_now(NULL, &t.read), GPST_OK);
    test_read_check(&t, expected, bytes);
    assert_true(bytes > 10);
    test_read_term(&t);
}

static volatile sig_atomic_t test_n_alarms;
static void test_on_alarm(int number) {
    (void)number;
    test_n_alarms = test_n_alarms + 1;
}

/* Signals without SA_RESTART break into read() all the time. */
static void interrupted_calls_change_nothing(void** state) {
    unsigned char* data = test_bytes(100000, 4);
    char path[TEST_PATH_BYTES];
    struct sigaction action;
    struct sigaction before;
    struct itimerval timer;
    test_feeder feeder;
    test_read t;
    (void)state;
    memset(&action, 0, sizeof(action));
    action.sa_handler = test_on_alarm;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(mkfifo(test_path(path, "interrupted"), 0600), 0);
    test_feeder_start(&feeder, path, -1, data, 100000, 1000);
    memset(&timer, 0, sizeof(timer));
    timer.it_interval.tv_usec = timer.it_value.tv_usec = 500;
    assert_int_equal(setitimer(ITIMER_REAL, &timer, NULL), 0);
    test_read_init(&t, path);
    gpst_reader_read_now(NULL, &t.read);
    memset(&timer, 0, sizeof(timer));
    setitimer(ITIMER_REAL, &timer, NULL);
    sigaction(SIGALRM, &before, NULL);
    pthread_join(feeder.thread, NULL);
    test_read_check(&t, data, 100000);
    printf("%d signals\n", (int)test_n_alarms);
    assert_true(test_n_alarms > 0);
    test_read_term(&t);
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_whole_files),
                                       cmocka_unit_test(reads_ranges),
                                       cmocka_unit_test(reads_beyond_4_gib),
                                       cmocka_unit_test(short_reads_change_nothing),
                                       cmocka_unit_test(every_failing_call_is_that_reads_error),
                                       cmocka_unit_test(a_file_that_shrinks_is_truncated),
                                       cmocka_unit_test(a_file_that_grows_is_read_on),
                                       cmocka_unit_test(room_that_is_not_there),
                                       cmocka_unit_test(what_cannot_be_opened),
                                       cmocka_unit_test(a_file_without_permission),
                                       cmocka_unit_test(a_fifo_is_read_in_order),
                                       cmocka_unit_test(the_standard_input_is_read),
                                       cmocka_unit_test(files_of_proc_are_read),
                                       cmocka_unit_test(interrupted_calls_change_nothing)};
    return cmocka_run_group_tests(tests, test_group_begin, test_group_end);
}
