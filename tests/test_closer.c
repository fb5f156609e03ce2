/* tests/test_closer.c -- every file that is handed over is closed once, by the
   closer's end at the latest, whoever hands it over and however many there are. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/closer_internal.h"
#endif

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
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
    gpsti_mutex_unlock(&closer.mutex);
    closing->file = files[2].file;
    closer.io.i->done(&closer, closing, true);
    assert_true(watched_is_closed(&files[2], 0));
    gpsti_closer_term(&closer);
    for (int k = 0; k < 3; k++)
        close(files[k].reads);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_files_are_closed_meanwhile),
        cmocka_unit_test(test_all_are_closed_at_the_end),
        cmocka_unit_test(test_the_caller_closes),
        cmocka_unit_test(test_cancelled_files_are_closed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
