/* tests/test_os.c -- threads, waits, clocks, files, pages and limits: the POSIX
   branch of core/os. */
#include "test.h"

#include "test_allocator.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#if defined(__linux__)
#include <sys/mman.h>
#endif
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_MS 1000000 /* in ns */

static char test_directory[64]; /* made before, removed after every test */

static const char* test_path(const char* name) {
    static char paths[4][160];
    static int next;
    char* path = paths[next++ % 4];
    gpsti_format(path, sizeof paths[0], "%s/%s", test_directory, name);
    return path;
}

static int test_setup(void** state) {
    (void)state;
    gpsti_copy_text(test_directory, sizeof test_directory, "/tmp/gpst_os_XXXXXX");
    return mkdtemp(test_directory) ? 0 : 1;
}

static int test_teardown(void** state) {
    char command[160];
    (void)state;
    gpsti_format(command, sizeof command, "rm -rf '%s'", test_directory);
    return system(command);
}

/* ---- threads -------------------------------------------------------------------- */

typedef struct test_seen {
    gpsti_a32 ready, word;
    gpsti_mutex mutex;
    gpsti_cond cond;
    sigset_t blocked;
    char name[32];
    uint32_t sum;
} test_seen;

static void test_look_around(void* arg) {
    test_seen* seen = (test_seen*)arg;
    (void)pthread_sigmask(SIG_BLOCK, NULL, &seen->blocked);
    (void)pthread_getname_np(pthread_self(), seen->name, sizeof seen->name);
}

static void test_thread(void** state) {
    test_seen seen;
    gpsti_thread thread;
    sigset_t before, after;
    (void)state;
    memset(&seen, 0xA5, sizeof seen);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &before);
    assert_int_equal(gpsti_thread_start(&thread, test_look_around, &seen, "a name longer than 15"), GPST_OK);
    gpsti_thread_join(&thread);
    (void)pthread_sigmask(SIG_BLOCK, NULL, &after);
    for (int signal_number = 1; signal_number < 32; signal_number++)
        assert_int_equal(sigismember(&after, signal_number), sigismember(&before, signal_number));
    assert_string_equal(seen.name, "a name longer t");
    assert_int_equal(sigismember(&seen.blocked, SIGINT), 1);
    assert_int_equal(sigismember(&seen.blocked, SIGTERM), 1);
    assert_int_equal(sigismember(&seen.blocked, SIGALRM), 1);
    assert_int_equal(sigismember(&seen.blocked, SIGCHLD), 1);
    assert_int_equal(sigismember(&seen.blocked, SIGPIPE), 1);
    assert_int_equal(sigismember(&seen.blocked, SIGSEGV), 0); /* a crash reporter still works */
    assert_int_equal(sigismember(&seen.blocked, SIGBUS), 0);
}

static void test_signal_on_go(void* arg) {
    test_seen* seen = (test_seen*)arg;
    while (!gpsti_a32_load(&seen->ready))
        gpsti_sleep_ns(TEST_MS);
    gpsti_mutex_lock(&seen->mutex);
    seen->sum = 42;
    gpsti_cond_signal(&seen->cond);
    gpsti_mutex_unlock(&seen->mutex);
}

static void test_condition(void** state) {
    test_seen seen;
    gpsti_thread thread;
    (void)state;
    memset(&seen, 0, sizeof seen);
    assert_int_equal(gpsti_mutex_init(&seen.mutex), GPST_OK);
    assert_int_equal(gpsti_cond_init(&seen.cond), GPST_OK);
    gpsti_mutex_lock(&seen.mutex);
    int64_t deadline = gpsti_deadline(20 * TEST_MS);
    while (gpsti_cond_wait_until(&seen.cond, &seen.mutex, deadline)) {}
    assert_true(gpsti_now_ns() >= deadline);
    assert_false(gpsti_cond_wait_until(&seen.cond, &seen.mutex, -5)); /* long past */
    assert_int_equal(gpsti_thread_start(&thread, test_signal_on_go, &seen, "signal"), GPST_OK);
    gpsti_a32_store(&seen.ready, 1);
    while (!seen.sum)
        assert_true(gpsti_cond_wait_until(&seen.cond, &seen.mutex, GPST_FOREVER));
    gpsti_mutex_unlock(&seen.mutex);
    gpsti_thread_join(&thread);
    gpsti_cond_term(&seen.cond);
    gpsti_mutex_term(&seen.mutex);
}

static void test_lock_that_is_taken(void** state) {
    gpsti_mutex mutex;
    (void)state;
    assert_int_equal(gpsti_mutex_init(&mutex), GPST_OK);
    assert_true(gpsti_mutex_try_lock(&mutex));
    assert_false(gpsti_mutex_try_lock(&mutex));
    gpsti_mutex_unlock(&mutex);
    gpsti_mutex_lock(&mutex);
    assert_false(gpsti_mutex_try_lock(&mutex));
    gpsti_mutex_unlock(&mutex);
    gpsti_mutex_term(&mutex);
}

static void test_wake_on_go(void* arg) {
    test_seen* seen = (test_seen*)arg;
    while (!gpsti_a32_load(&seen->ready))
        gpsti_sleep_ns(TEST_MS);
    gpsti_a32_store(&seen->word, 1);
    gpsti_futex_wake(&seen->word, 1);
}

static void test_futex(void** state) {
    test_seen seen;
    gpsti_thread thread;
    (void)state;
    memset(&seen, 0, sizeof seen);
    gpsti_futex_wait(&seen.word, 1, GPST_FOREVER); /* another value: returns at once */
    const int64_t deadline = gpsti_deadline(20 * TEST_MS);
    while (gpsti_now_ns() < deadline)
        gpsti_futex_wait(&seen.word, 0, deadline);
    gpsti_futex_wait(&seen.word, 0, 1); /* a deadline long past: returns at once */
    assert_int_equal(gpsti_thread_start(&thread, test_wake_on_go, &seen, "wake"), GPST_OK);
    gpsti_a32_store(&seen.ready, 1);
    while (!gpsti_a32_load(&seen.word))
        gpsti_futex_wait(&seen.word, 0, GPST_FOREVER);
    gpsti_thread_join(&thread);
    gpsti_futex_wake(&seen.word, UINT32_MAX); /* nobody waits */
}

/* Every thread gets the whole sum only if no update is lost. */
static void test_add_and_swap(void* arg) {
    test_seen* seen = (test_seen*)arg;
    for (int i = 0; i < 20000; i++) {
        (void)gpsti_a32_add(&seen->word, 1);
        uint32_t old = gpsti_a32_load_relaxed(&seen->ready);
        while (!gpsti_a32_cas(&seen->ready, &old, old + 1)) {}
    }
}

static void test_atomics(void** state) {
    test_seen seen;
    gpsti_thread threads[3];
    gpsti_a64 wide;
    uint64_t expected = 5;
    (void)state;
    memset(&seen, 0, sizeof seen);
    for (int i = 0; i < 3; i++)
        assert_int_equal(gpsti_thread_start(&threads[i], test_add_and_swap, &seen, "add"), GPST_OK);
    for (int i = 0; i < 3; i++)
        gpsti_thread_join(&threads[i]);
    assert_int_equal(gpsti_a32_load(&seen.word), 60000);
    assert_int_equal(gpsti_a32_exchange(&seen.ready, 9), 60000);
    gpsti_a64_store(&wide, 4);
    assert_false(gpsti_a64_cas(&wide, &expected, 6));
    assert_int_equal(expected, 4);
    assert_true(gpsti_a64_cas(&wide, &expected, (uint64_t)1 << 40));
    assert_int_equal(gpsti_a64_add(&wide, UINT64_MAX), (uint64_t)1 << 40);
    assert_int_equal(gpsti_a64_load(&wide), ((uint64_t)1 << 40) - 1);
}

static void test_fork_guard(void** state) {
    gpsti_a32* guard = gpsti_fork_guard_create();
    int status = -1;
    (void)state;
    if (!guard) {
        print_message("no memory that is wiped on fork here\n");
        return;
    }
    assert_int_equal(gpsti_a32_load(guard), 1);
    const pid_t child = fork();
    if (!child)
        _exit(gpsti_a32_load(guard) == 0 ? 0 : 1);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_int_equal(gpsti_a32_load(guard), 1);
    gpsti_fork_guard_destroy(guard);
}

/* ---- clocks ----------------------------------------------------------------------- */

static void test_clocks(void** state) {
    (void)state;
    const int64_t start = gpsti_now_ns();
    const uint64_t ticks = gpsti_ticks();
    const int64_t cpu = gpsti_thread_cpu_ns();
    gpsti_sleep_ns(10 * TEST_MS);
    assert_true(gpst_now_ns() - start >= 10 * TEST_MS);
    assert_true(gpsti_now_ns() - start >= 10 * TEST_MS);
    assert_true(gpsti_ticks() > ticks);
    assert_true(gpsti_thread_cpu_ns() >= cpu);
    assert_true(gpsti_thread_cpu_ns() - cpu < gpsti_now_ns() - start); /* sleeping costs no CPU time */
    gpsti_sleep_ns(0);
    gpsti_sleep_ns(-1);
    assert_true(gpsti_deadline(GPST_FOREVER) == GPST_FOREVER);
    assert_true(gpsti_deadline(GPST_FOREVER - 1) == GPST_FOREVER);
    const int64_t now = gpsti_now_ns();
    assert_true(gpsti_deadline(-7) >= now && gpsti_deadline(-7) <= gpsti_now_ns());
    assert_true(gpsti_deadline(1000 * (int64_t)TEST_MS) >= now + 1000 * (int64_t)TEST_MS);
}

/* Sleeping is waiting; computing is not, however often another thread has the core meanwhile. */
static void test_waits_are_counted(void** state) {
    uint64_t before = 7, after = 7;
    (void)state;
    const bool counted = gpsti_thread_waits(&before);
#if defined(__linux__)
    assert_true(counted);
#endif
    const int64_t end_ns = gpsti_now_ns() + 5 * TEST_MS;
    while (gpsti_now_ns() < end_ns)
        continue;
    assert_int_equal(gpsti_thread_waits(&after), counted);
    assert_int_equal(after, before);
    for (int i = 0; i < 3; i++)
        gpsti_sleep_ns(TEST_MS);
    (void)gpsti_thread_waits(&after);
    assert_true(counted ? after >= before + 3 : after == 0 && before == 0);
}

/* ---- files ------------------------------------------------------------------------ */

static void test_put(const char* path, const void* data, size_t bytes) {
    gpsti_file file;
    assert_int_equal(gpsti_file_create(path, &file), GPST_OK);
    assert_int_equal(gpsti_file_write(&file, path, data, bytes), GPST_OK);
    assert_int_equal(gpsti_file_sync(&file, path), GPST_OK);
    assert_int_equal(gpsti_file_close(&file, path), GPST_OK);
    assert_int_equal(file.handle, -1);
}

static void test_file_round_trip(void** state) {
    const char* path = test_path("a");
    gpsti_file file;
    gpsti_file_info info;
    uint8_t out[16];
    size_t done = 99;
    (void)state;
    test_put(path, "0123456789", 10);
    assert_int_equal(gpsti_file_create(path, &file), GPST_ERROR_EXISTS);
    test_reason_has("create \"", "File exists (17)");
    assert_int_equal(gpsti_file_open_read(path, &file), GPST_OK);
    assert_true(fcntl((int)file.handle, F_GETFD) & FD_CLOEXEC);
    memset(&info, 0xA5, sizeof info);
    assert_int_equal(gpsti_file_query(&file, path, &info), GPST_OK);
    assert_true(info.is_regular && !info.is_directory && info.bytes == 10);
    assert_true(info.modified_ns > (uint64_t)1600000000 * 1000 * TEST_MS);
    memset(out, 0xA5, sizeof out);
    assert_int_equal(gpsti_file_read(&file, path, out, 4, 3, &done), GPST_OK);
    assert_int_equal(done, 4);
    assert_memory_equal(out, "3456\xA5", 5);
    assert_int_equal(gpsti_file_read(&file, path, out, 16, 7, &done), GPST_OK);
    assert_int_equal(done, 3);
    assert_int_equal(gpsti_file_read(&file, path, out, 16, 10, &done), GPST_OK);
    assert_int_equal(done, 0);
    assert_int_equal(gpsti_file_read(&file, path, out, 16, (uint64_t)INT64_MAX, &done), GPST_ERROR_OVERFLOW);
    assert_int_equal(gpsti_file_read_next(&file, path, out, 2, false, TEST_MS, &done), GPST_OK); /* in order */
    assert_int_equal(gpsti_file_read_next(&file, path, out + 2, 2, true, TEST_MS, &done), GPST_OK);
    assert_memory_equal(out, "0123", 4);
    assert_int_equal(gpsti_file_write(&file, path, "x", 1), GPST_ERROR_IO);
    test_reason_has("write \"", "Bad file descriptor (9)");
    assert_int_equal(gpsti_file_close(&file, path), GPST_OK);
    assert_int_equal(gpsti_file_close(&file, path), GPST_ERROR_IO);
}

static void test_file_large_offset(void** state) {
    const char* path = test_path("sparse");
    const uint64_t offset = (uint64_t)5 << 30;
    gpsti_file file;
    gpsti_file_info info;
    char out[8] = "";
    size_t done = 0;
    (void)state;
    test_put(path, "", 0);
    assert_int_equal(truncate(path, (off_t)(offset + 3)), 0);
    const int descriptor = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(pwrite(descriptor, "end", 3, (off_t)offset), 3);
    assert_int_equal(close(descriptor), 0);
    assert_int_equal(gpsti_path_query(path, &info), GPST_OK);
    assert_true(info.bytes == offset + 3);
    assert_int_equal(gpsti_file_open_read(path, &file), GPST_OK);
    assert_int_equal(gpsti_file_read(&file, path, out, sizeof out, offset, &done), GPST_OK);
    assert_int_equal(done, 3);
    assert_string_equal(out, "end");
    assert_int_equal(gpsti_file_close(&file, path), GPST_OK);
}

static void test_file_errors(void** state) {
    gpsti_file file;
    gpsti_file_info info;
    char longer[600];
    char out[4];
    size_t done = 0;
    (void)state;
    assert_int_equal(gpsti_file_open_read(test_path("none"), &file), GPST_ERROR_NOT_FOUND);
    test_reason_has("open \"", "none\": No such file or directory (2)");
    assert_int_equal(gpsti_path_query(test_path("none"), &info), GPST_ERROR_NOT_FOUND);
    assert_int_equal(gpsti_path_remove(test_path("none")), GPST_ERROR_NOT_FOUND);
    assert_int_equal(gpsti_path_rename(test_path("none"), test_path("b")), GPST_ERROR_NOT_FOUND);
    assert_int_equal(gpsti_file_create(test_path("none/b"), &file), GPST_ERROR_NOT_FOUND);
    assert_int_equal(gpsti_path_make_directory(test_path("none/b")), GPST_ERROR_NOT_FOUND);
    assert_int_equal(gpsti_file_open_read(test_directory, &file), GPST_OK); /* only reading it fails */
    assert_int_equal(gpsti_file_query(&file, test_directory, &info), GPST_OK);
    assert_true(info.is_directory && !info.is_regular && info.bytes == 0);
    assert_int_equal(gpsti_file_read(&file, test_directory, out, 4, 0, &done), GPST_ERROR_IO);
    test_reason_has("read \"", "Is a directory (21)");
    assert_int_equal(gpsti_file_close(&file, test_directory), GPST_OK);
    memset(longer, 'p', sizeof longer);
    memcpy(longer + sizeof longer - 5, ".jpg", 5);
    assert_int_equal(gpsti_file_open_read(longer, &file), GPST_ERROR_IO);
    test_reason_has("open \"...ppp",
                    ".jpg\": File name too long (36)"); /* the end of the path, and the error */
    file.handle = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(file.handle >= 0);
    assert_int_equal(gpsti_file_write(&file, "/dev/full", "x", 1), GPST_ERROR_NO_SPACE);
    assert_int_equal(gpsti_file_sync(&file, "/dev/full"), GPST_OK); /* nothing to sync is no error */
    assert_int_equal(gpsti_file_close(&file, "/dev/full"), GPST_OK);
    if (getuid()) {
        test_put(test_path("secret"), "x", 1);
        assert_int_equal(chmod(test_path("secret"), 0), 0);
        assert_int_equal(gpsti_file_open_read(test_path("secret"), &file), GPST_ERROR_ACCESS);
    }
}

static void test_paths(void** state) {
    gpsti_file_info info;
    gpsti_file older;
    (void)state;
    test_put(test_path("from"), "new", 3);
    test_put(test_path("to"), "older", 5);
    const bool holds = gpsti_path_hold(test_path("to"), &older);
    assert_int_equal(gpsti_path_rename(test_path("from"), test_path("to")), GPST_OK); /* replaces */
#if defined(__linux__)
    assert_true(holds); /* but on NFS */
#endif
    if (holds) {
        struct stat status;
        assert_int_equal(fstat((int)older.handle, &status), 0);
        assert_true(status.st_size == 5 && status.st_nlink == 0);
        assert_int_equal(gpsti_file_close(&older, "older"), GPST_OK);
    }
    assert_false(gpsti_path_hold(test_path("none"), &older));
    assert_int_equal(gpsti_path_query(test_path("to"), &info), GPST_OK);
    assert_int_equal(info.bytes, 3);
    assert_int_equal(gpsti_path_query(test_path("from"), &info), GPST_ERROR_NOT_FOUND);
    assert_int_equal(gpsti_path_make_directory(test_path("d")), GPST_OK);
    assert_int_equal(gpsti_path_make_directory(test_path("d")), GPST_OK);
    assert_int_equal(gpsti_path_make_directory(test_path("to")), GPST_ERROR_EXISTS);
    assert_int_equal(gpsti_path_query(test_path("d"), &info), GPST_OK);
    assert_true(info.is_directory);
    assert_int_equal(gpsti_path_remove(test_path("to")), GPST_OK);
    assert_int_equal(gpsti_path_query(test_path("to"), &info), GPST_ERROR_NOT_FOUND);
}

static void test_on_alarm(int number) { (void)number; }

static void test_feed_fifo(void* arg) {
    const int descriptor = open((const char*)arg, O_WRONLY | O_CLOEXEC);
    for (int i = 0; i < 4; i++) {
        gpsti_sleep_ns(20 * TEST_MS);
        if (write(descriptor, "piece", 5) != 5)
            break;
    }
    (void)close(descriptor);
}

/* A read that signals keep interrupting goes on; a FIFO is read in order, to its end. */
static void test_interrupted_fifo(void** state) {
    const char* path = test_path("fifo");
    struct sigaction action, before;
    struct itimerval every, never;
    gpsti_thread thread;
    gpsti_file file;
    gpsti_file_info info;
    char out[64];
    size_t used = 0, done = 1;
    (void)state;
    memset(&action, 0, sizeof action);
    memset(&every, 0, sizeof every);
    memset(&never, 0, sizeof never);
    action.sa_handler = test_on_alarm; /* without SA_RESTART */
    every.it_interval.tv_usec = every.it_value.tv_usec = 3000;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(gpsti_thread_start(&thread, test_feed_fifo, (void*)path, "feed"), GPST_OK);
    assert_int_equal(setitimer(ITIMER_REAL, &every, NULL), 0);
    gpst_result result = gpsti_file_open_read(path, &file);
    while (!GPST_FAILED(result) && done) {
        result = gpsti_file_read_next(&file, path, out + used, sizeof out - used, used > 0, 10 * TEST_MS, &done);
        used += result == GPST_OK ? done : 0;
        if (result == GPST_ERROR_WOULD_BLOCK)
            result = GPST_OK;
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    gpsti_thread_join(&thread);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(result, GPST_OK);
    assert_int_equal(used, 20);
    assert_memory_equal(out, "piecepiecepiecepiece", 20);
    assert_int_equal(gpsti_file_query(&file, path, &info), GPST_OK);
    assert_true(!info.is_regular && !info.is_directory && info.bytes == 0);
    assert_int_equal(gpsti_file_close(&file, path), GPST_OK);
}

/* ---- pages -------------------------------------------------------------------------- */

#define HUGE_PAGE ((size_t)2 << 20)

static void test_pages_of(size_t bytes, gpsti_pages_want want) {
    char why_not[128];
    uint8_t* ptr = NULL;
    size_t mapped = 0;
    gpsti_pages_kind kind = GPSTI_PAGES_NONE;
    memset(why_not, 0xA5, sizeof why_not);
    assert_int_equal(gpsti_pages_alloc(bytes, want, (void**)&ptr, &mapped, &kind, why_not), GPST_OK);
    assert_true(mapped >= bytes && mapped % 4096 == 0);
    assert_int_equal((uintptr_t)ptr % (kind == GPSTI_PAGES_SMALL ? 4096 : 2 << 20), 0);
    assert_true(want != GPSTI_WANT_SMALL || kind == GPSTI_PAGES_SMALL);
    const bool fills = want == GPSTI_WANT_FILLED && bytes % HUGE_PAGE >= HUGE_PAGE / 8 * 3;
    const size_t unit = fills ? HUGE_PAGE : 4096;
    if (kind == GPSTI_PAGES_THP) /* that rest becomes a whole one, and no other */
        assert_int_equal(mapped, (bytes + unit - 1) / unit * unit);
    assert_int_equal(why_not[0] == 0, want == GPSTI_WANT_SMALL || kind == GPSTI_PAGES_HUGETLB);
    for (size_t i = 0; i < mapped; i += 4096)
        assert_int_equal(ptr[i], 0);
    memset(ptr, 0xA5, mapped);
    gpsti_pages_free(ptr, mapped);
}

static void test_pages(void** state) {
    void* ptr = NULL;
    size_t mapped = 0;
    gpsti_pages_kind kind = GPSTI_PAGES_NONE;
    (void)state;
    test_pages_of(1, GPSTI_WANT_SMALL);
    test_pages_of(4097, GPSTI_WANT_SMALL);
    test_pages_of((size_t)3 << 20, GPSTI_WANT_SMALL);
    test_pages_of(1, GPSTI_WANT_FILLED);
    test_pages_of(((size_t)4 << 20) + 1, GPSTI_WANT_FILLED);
    test_pages_of((size_t)1 << 20, GPSTI_WANT_FILLED);
    test_pages_of((size_t)1 << 20, GPSTI_WANT_HUGE);
    test_pages_of((size_t)3 << 20, GPSTI_WANT_HUGE);
    test_pages_of(((size_t)7 << 19) - 1, GPSTI_WANT_FILLED);
    test_pages_of((size_t)3 << 18, GPSTI_WANT_FILLED);
    test_pages_of(((size_t)3 << 18) - 4096, GPSTI_WANT_FILLED);
    assert_int_equal(gpsti_pages_alloc(0, GPSTI_WANT_SMALL, &ptr, &mapped, &kind, NULL), GPST_ERROR_OVERFLOW);
    assert_int_equal(gpsti_pages_alloc(SIZE_MAX, GPSTI_WANT_FILLED, &ptr, &mapped, &kind, NULL), GPST_ERROR_OVERFLOW);
    assert_int_equal(gpsti_pages_alloc(SIZE_MAX / 2 - 8192, GPSTI_WANT_FILLED, &ptr, &mapped, &kind, NULL),
                     GPST_ERROR_MEMORY);
    test_reason_has("map memory: bytes=9223372036854767616: ", "("); /* valgrind has another reason than Linux */
    gpsti_pages_free(NULL, 0);
}

/* Whatever the memory holds stays, also where it does not begin or end with a page; none but the bytes named is used. */
static void test_touched_pages(void** state) {
    (void)state;
    const size_t bytes = ((size_t)5 << 20) + 3;
    unsigned char* const data = (unsigned char*)malloc(bytes);
    assert_non_null(data);
    memset(data, 0xA5, bytes);
    gpsti_pages_touch(data + 1, bytes - 2, GPSTI_PAGES_THP);
    gpsti_pages_touch(data + 1, bytes - 2, GPSTI_PAGES_SMALL);
    gpsti_pages_touch(data, 0, GPSTI_PAGES_SMALL);
    for (size_t i = 0; i < bytes; i++)
        assert_int_equal(data[i], 0xA5);
    free(data);
#if defined(__linux__)
    const size_t large = (size_t)6 << 20;
    char* const fresh = (char*)mmap(NULL, large, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned char in_use = 0;
    assert_ptr_not_equal(fresh, MAP_FAILED);
    assert_int_equal(mincore(fresh + large - 4096, 4096, &in_use), 0);
    assert_int_equal(in_use & 1, 0);
    gpsti_pages_touch(fresh, large / 2, GPSTI_PAGES_SMALL);
    gpsti_pages_touch(fresh + large / 2, large / 2, GPSTI_PAGES_THP);
    for (size_t at = 0; at < large; at += at < large / 2 ? 4096 : (size_t)2 << 20) {
        assert_int_equal(mincore(fresh + at, 4096, &in_use), 0);
        assert_int_equal(in_use & 1, 1);
    }
    assert_int_equal(munmap(fresh, large), 0);
#endif
}

/* ---- limits ----------------------------------------------------------------------- */

static void test_tree(const char* path, const char* text) {
    char whole[300];
    gpsti_format(whole, sizeof whole, "mkdir -p \"$(dirname '%s%s')\"", test_directory, path);
    assert_int_equal(system(whole), 0);
    gpsti_format(whole, sizeof whole, "%s%s", test_directory, path);
    FILE* file = fopen(whole, "w");
    assert_non_null(file);
    (void)fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void test_limits_here(void** state) {
    gpsti_limits limits;
    (void)state;
    memset(&limits, 0xA5, sizeof limits);
    gpsti_limits_query(&limits);
    assert_true(limits.cores_online >= 1 && limits.cores_online < 100000);
    assert_true(limits.cores_allowed >= 1 && limits.cores_allowed <= limits.cores_online);
    assert_true(limits.cores_allowed <= limits.cores_affinity);
    assert_true(limits.ram_available_bytes > 0 && limits.ram_available_bytes <= limits.ram_bytes);
    assert_true(limits.page_bytes >= 4096);
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    size_t first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    gpsti_limits_query(&limits);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(limits.cores_affinity, 1);
    assert_int_equal(limits.cores_allowed, 1);
}

static void test_limits_cgroup_v2(void** state) {
    gpsti_limits limits;
    (void)state;
    test_tree("/proc/meminfo", "MemTotal:       64000000 kB\nMemFree: 7 kB\nMemAvailable:   32000000 kB\n");
    test_tree("/proc/self/cgroup", "0::/a/b\n");
    test_tree("/sys/fs/cgroup/cpu.max", "max 100000\n");
    gpsti_limits_query_under(test_directory, &limits);
    assert_true(limits.cores_quota == 0.0);
    assert_true(limits.ram_available_bytes == (uint64_t)32000000 * 1024);
    test_tree("/sys/fs/cgroup/a/cpu.max", "50000 100000\n"); /* the parent is the tighter one */
    test_tree("/sys/fs/cgroup/a/b/cpu.max", "150000 100000\n");
    test_tree("/sys/fs/cgroup/a/b/memory.max", "1000000\n");
    test_tree("/sys/fs/cgroup/a/b/memory.current", "700000\n");
    test_tree("/sys/fs/cgroup/a/b/memory.stat", "anon 100\nactive_file 100000\ninactive_file 200000\n");
    test_tree("/sys/fs/cgroup/a/memory.max", "max\n");
    gpsti_limits_query_under(test_directory, &limits);
    assert_true(limits.cores_quota == 0.5);
    assert_int_equal(limits.cores_allowed, 1);
    assert_int_equal(limits.ram_bytes, 1000000);
    assert_int_equal(limits.ram_available_bytes, 600000); /* file pages count as free */
    test_tree("/sys/fs/cgroup/a/b/memory.current", "5000000\n");
    gpsti_limits_query_under(test_directory, &limits);
    assert_int_equal(limits.ram_available_bytes, 0);
}

static void test_limits_cgroup_v1(void** state) {
    gpsti_limits limits;
    (void)state;
    test_tree("/proc/meminfo", "MemAvailable:   32000000 kB\n");
    test_tree("/proc/self/cgroup",
              "12:cpuset:/x\n5:cpuacct,cpu:/docker/1\n4:memory:/docker/1\n1:name=systemd:/\n");
    test_tree("/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
              "110000\n"); /* in the container the group's path is the root */
    test_tree("/sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
    test_tree("/sys/fs/cgroup/memory/memory.limit_in_bytes", "2000000\n");
    test_tree("/sys/fs/cgroup/memory/memory.usage_in_bytes", "1500000\n");
    test_tree("/sys/fs/cgroup/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 250000\n");
    gpsti_limits_query_under(test_directory, &limits);
    assert_true(limits.cores_quota == 1.1);
    assert_int_equal(limits.cores_allowed, limits.cores_online < 2 || limits.cores_affinity < 2 ? 1 : 2);
    assert_int_equal(limits.ram_bytes, 2000000);
    assert_int_equal(limits.ram_available_bytes, 750000);
    test_tree("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
    gpsti_limits_query_under(test_directory, &limits);
    assert_true(limits.cores_quota == 0.0);
}

static void test_limits_without_files(void** state) {
    gpsti_limits limits;
    (void)state;
    gpsti_limits_query_under(test_directory, &limits);
    assert_true(limits.cores_quota == 0.0 && limits.cores_allowed >= 1);
    assert_true(limits.ram_bytes > 0 && limits.ram_available_bytes == limits.ram_bytes / 2);
    test_tree("/proc/self/cgroup", "nonsense\n::\n0:\n:\n0::");
    test_tree("/proc/meminfo", "MemAvailable: lots\n");
    gpsti_limits_query_under(test_directory, &limits);
    assert_true(limits.cores_quota == 0.0 && limits.ram_available_bytes == limits.ram_bytes / 2);
}

static void test_use_of_cores(void** state) {
    static const struct {
        const char* text;
        int64_t all_ticks; /* -1: not known */
    } rows[] = {{"cpu  100 20 30 4000 500 6 7 8 90 1\ncpu0 1 2 3 4\n", 100 + 20 + 30 + 6 + 7 + 8},
                {"cpu  1 2 3 4\n", 6},
                {"cpu  1 2 3\n", -1},
                {"cpu  lots\n", -1},
                {"cpu0 1 2 3 4 5 6 7 8\n", -1},
                {"", -1}};
    gpsti_core_use use;
    (void)state;
    gpsti_core_use_query_under(test_directory, &use);
    assert_false(use.known);
    gpsti_core_use_query_under("", &use);
    const bool counts_here = use.known; /* not where this process may run on some cores only */
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        test_tree("/proc/stat", rows[r].text);
        memset(&use, 0xA5, sizeof use);
        gpsti_core_use_query_under(test_directory, &use);
        assert_int_equal(use.known, counts_here && rows[r].all_ticks >= 0);
        assert_int_equal(use.all_ns, use.known ? rows[r].all_ticks * (1000000000 / sysconf(_SC_CLK_TCK)) : 0);
        assert_true(!use.known || use.own_ns > 0);
    }
}

int main(void) {
#define TEST_IN_DIRECTORY(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_thread),
        cmocka_unit_test(test_condition),
        cmocka_unit_test(test_lock_that_is_taken),
        cmocka_unit_test(test_futex),
        cmocka_unit_test(test_atomics),
        cmocka_unit_test(test_fork_guard),
        cmocka_unit_test(test_clocks),
        cmocka_unit_test(test_waits_are_counted),
        TEST_IN_DIRECTORY(test_file_round_trip),
        TEST_IN_DIRECTORY(test_file_large_offset),
        TEST_IN_DIRECTORY(test_file_errors),
        TEST_IN_DIRECTORY(test_paths),
        TEST_IN_DIRECTORY(test_interrupted_fifo),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_touched_pages),
        cmocka_unit_test(test_limits_here),
        TEST_IN_DIRECTORY(test_limits_cgroup_v2),
        TEST_IN_DIRECTORY(test_limits_cgroup_v1),
        TEST_IN_DIRECTORY(test_limits_without_files),
        TEST_IN_DIRECTORY(test_use_of_cores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
