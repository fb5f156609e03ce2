/* tests/test_closer.c -- every file that is handed over is closed once, by the
   closer's end at the latest, whoever hands it over and however many there are. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/files/closer_internal.h"
#endif

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

enum { N_FILES = 4 * GPSTI_CLOSER_FILES, N_THREADS = 4 };

/* The end of a pipe that is read from tells when the other one is closed. */
typedef struct watched {
    gpsti_file file;
    int reads;
} watched;

static watched watched_open(void) {
    watched self;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    self.reads = ends[0];
    self.file.handle = ends[1];
    return self;
}

static bool watched_is_closed(const watched* self, int wait_ms) {
    struct pollfd end;
    memset(&end, 0, sizeof end);
    end.fd = self->reads;
    return poll(&end, 1, wait_ms) == 1 && (end.revents & POLLHUP) != 0;
}

static void test_files_are_closed_meanwhile(void** state) {
    static gpsti_closer closer;
    watched file = watched_open();
    (void)state;
    assert_int_equal(gpsti_closer_init(&closer, NULL), GPST_OK);
    assert_false(closer.started); /* threads come with the first file */
    assert_int_equal(gpsti_closer_cpu_ns(&closer), 0);
    gpsti_closer_close(&closer, &file.file);
    assert_true(closer.started);
    assert_true(watched_is_closed(&file, 60000));
    gpsti_closer_term(&closer);
    close(file.reads);
}

static void* hand_over(void* arg) {
    watched* const files = (watched*)((void**)arg)[1];
    for (int i = 0; i < N_FILES; i++)
        gpsti_closer_close((gpsti_closer*)((void**)arg)[0], &files[i].file);
    return NULL;
}

static void test_all_are_closed_at_the_end(void** state) {
    static gpsti_closer closer;
    static watched files[N_THREADS][N_FILES];
    void* args[N_THREADS][2];
    pthread_t threads[N_THREADS];
    (void)state;
    assert_int_equal(gpsti_closer_init(&closer, NULL), GPST_OK);
    for (int t = 0; t < N_THREADS; t++) {
        for (int i = 0; i < N_FILES; i++)
            files[t][i] = watched_open();
        args[t][0] = &closer;
        args[t][1] = files[t];
    }
    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_create(&threads[t], NULL, hand_over, args[t]), 0);
    for (int t = 0; t < N_THREADS; t++)
        assert_int_equal(pthread_join(threads[t], NULL), 0);
    gpsti_closer_term(&closer);
    uint32_t n_free = 0;
    for (const gpsti_closing* file = closer.free; file; file = (const gpsti_closing*)file->next)
        n_free++;
    assert_int_equal(n_free, GPSTI_CLOSER_FILES);
    for (int t = 0; t < N_THREADS; t++)
        for (int i = 0; i < N_FILES; i++) {
            assert_true(watched_is_closed(&files[t][i], 0));
            close(files[t][i].reads);
        }
}

/* Where no thread is to be had, and while as many are held as may be, the caller closes. */
static void test_the_caller_closes(void** state) {
    static gpsti_closer closer;
    (void)state;
    for (int k = 0; k < 2; k++) {
        watched file = watched_open();
        assert_int_equal(gpsti_closer_init(&closer, NULL), GPST_OK);
        if (k == 0)
            closer.cannot_start = true;
        else
            closer.free = NULL;
        gpsti_closer_close(&closer, &file.file);
        assert_true(watched_is_closed(&file, 0));
        assert_int_equal(closer.started, k == 1);
        gpsti_closer_term(&closer);
        close(file.reads);
    }
}

/* What is still queued when the closer ends, and what comes later. */
static void test_cancelled_files_are_closed(void** state) {
    static gpsti_closer closer;
    watched files[3];
    (void)state;
    assert_int_equal(gpsti_closer_init(&closer, NULL), GPST_OK);
    for (int k = 0; k < 3; k++)
        files[k] = watched_open();
    gpsti_closer_close(&closer, &files[0].file);
    assert_true(watched_is_closed(&files[0], 60000));
    gpsti_io_retire(&closer.io);
    gpsti_closer_close(&closer, &files[1].file);
    assert_true(watched_is_closed(&files[1], 0));
    gpsti_mutex_lock(&closer.mutex);
    gpsti_closing* const closing = closer.free;
    closer.free = (gpsti_closing*)closing->next;
    closer.n_held++;
    gpsti_mutex_unlock(&closer.mutex);
    closing->file = files[2].file;
    closer.io.i->done(&closer, closing, true);
    assert_true(watched_is_closed(&files[2], 0));
    gpsti_closer_term(&closer);
    for (int k = 0; k < 3; k++)
        close(files[k].reads);
}

/* A connection with more on its way than anybody reads: closing it waits for a second. */
static gpsti_file lingering_open(int* others) {
    static char data[1 << 16];
    const struct linger linger = {1, 1};
    struct sockaddr_in address;
    socklen_t bytes = sizeof address;
    gpsti_file file = GPST_ZERO;
    const int self = socket(AF_INET, SOCK_STREAM, 0);
    memset(&address, 0, sizeof address);
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    others[0] = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(others[0], (const struct sockaddr*)&address, sizeof address), 0);
    assert_int_equal(listen(others[0], 1), 0);
    assert_int_equal(getsockname(others[0], (struct sockaddr*)&address, &bytes), 0);
    assert_int_equal(connect(self, (const struct sockaddr*)&address, sizeof address), 0);
    others[1] = accept(others[0], NULL, NULL);
    assert_true(others[1] >= 0);
    assert_int_equal(setsockopt(self, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    while (send(self, data, sizeof data, MSG_DONTWAIT) > 0)
        continue;
    file.handle = self;
    return file;
}

static gpsti_a32 n_told, n_waited;

static void told(void* user_data, int64_t start_ns, int64_t end_ns, bool waited) {
    (void)user_data;
    assert_true(start_ns <= end_ns);
    (void)gpsti_a32_add(&n_told, 1);
    (void)gpsti_a32_add(&n_waited, waited ? 1 : 0);
}

/* By whoever closes: here, or a thread that tells. */
static void test_it_is_known_who_waits(void** state) {
    static gpsti_closer closer;
    int others[2][2];
    (void)state;
    gpsti_file file = lingering_open(others[0]);
    assert_true(gpsti_close_waits(&file));
    assert_int_equal(gpsti_closer_init(&closer, NULL), GPST_OK);
    closer.closed = told;
    file = lingering_open(others[1]);
    gpsti_closer_close(&closer, &file);
    for (int ms = 0; gpsti_a32_load(&n_told) == 0 && ms < 60000; ms++)
        gpsti_sleep_ns(1000000);
    gpsti_closer_term(&closer);
    assert_int_equal(gpsti_a32_load(&n_told), 1);
    assert_int_equal(gpsti_a32_load(&n_waited), 1);
    for (int k = 0; k < 4; k++)
        close(others[k / 2][k % 2]);
}

/* One thread, until a file comes while another is being closed: that one does not wait for it. */
static void test_threads_come_when_files_wait(void** state) {
    static gpsti_closer closer;
    int others[2];
    (void)state;
    assert_int_equal(gpsti_closer_init(&closer, NULL), GPST_OK);
    for (int i = 0; i < 3; i++) {
        watched file = watched_open();
        gpsti_closer_close(&closer, &file.file);
        assert_true(watched_is_closed(&file, 60000));
        close(file.reads);
        for (bool held = true; held;) { /* until it is known to be over */
            gpsti_mutex_lock(&closer.mutex);
            held = closer.n_held > 0;
            gpsti_mutex_unlock(&closer.mutex);
        }
    }
    assert_false(closer.wide);
    assert_int_equal(closer.io.n_threads, 1);
    gpsti_file slow = lingering_open(others); /* a second */
    const int64_t start_ns = gpsti_now_ns();
    watched file = watched_open();
    gpsti_closer_close(&closer, &slow);
    gpsti_closer_close(&closer, &file.file);
    assert_true(closer.wide);
    assert_true(watched_is_closed(&file, 60000));
    const int64_t waited_ns = gpsti_now_ns() - start_ns;
    gpsti_closer_term(&closer);
    assert_true(waited_ns < gpsti_now_ns() - start_ns - 100000000);
    close(file.reads);
    close(others[0]);
    close(others[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_closed_meanwhile),
        cmocka_unit_test(test_all_are_closed_at_the_end),
        cmocka_unit_test(test_the_caller_closes),
        cmocka_unit_test(test_cancelled_files_are_closed),
        cmocka_unit_test(test_it_is_known_who_waits),
        cmocka_unit_test(test_threads_come_when_files_wait),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
