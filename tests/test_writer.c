/* tests/test_writer.c -- a file is whole under its name or not there at all, and
   no temporary file stays behind, whatever fails. */
#include "test_files.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

typedef struct test_write {
    gpsti_write write; /* first: `done` gets it */
    gpsti_a32 n_done;
} test_write;

static void test_done(gpsti_write* write) { gpsti_a32_add(&((test_write*)write)->n_done, 1); }

static void test_write_init(test_write* t, const char* path, const void* data, size_t bytes) {
    memset(t, 0, sizeof(*t));
    t->write.path = path;
    t->write.data = data;
    t->write.bytes = bytes;
    t->write.done = test_done;
    t->write.result = GPST_ERROR_INTERNAL;
    t->write.pending = true;
}

static void test_write_wait(test_write* t) {
    while (!gpsti_a32_load(&t->n_done))
        gpsti_sleep_ns(50000);
}

static gpst_context* test_context;
static uint64_t test_live_bytes; /* of the context alone */

static int test_group_begin(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context_info info;
    (void)state;
    desc.n_workers = 1;
    assert_int_equal(gpst_context_create(&desc, &test_context), GPST_OK);
    gpst_context_query_info(test_context, &info);
    test_live_bytes = info.live_bytes;
    return 0;
}

static int test_group_end(void** state) {
    gpst_context_info info;
    (void)state;
    gpst_context_query_info(test_context, &info);
    gpst_context_destroy(test_context);
    return info.live_bytes == test_live_bytes ? 0 : -1;
}

static int test_begin(void** state) {
    (void)state;
    test_directory_make();
    return 0;
}

static int test_end(void** state) {
    (void)state;
    test_directory_remove();
    return 0;
}

/* ---- windows ------------------------------------------------------------------ */

static struct {
    unsigned begun, waited, fail_at;
    uint64_t begun_bytes, waited_bytes;
    int code;
} test_flush;

/* Takes the place of the C library's. */
int sync_file_range(int file, off64_t offset, off64_t bytes, unsigned flags) {
    (void)file;
    if (test_flush.fail_at && test_flush.begun + test_flush.waited + 1 == test_flush.fail_at) {
        test_flush.begun++;
        errno = test_flush.code;
        return -1;
    }
    if (flags & SYNC_FILE_RANGE_WAIT_AFTER) {
        assert_int_equal(offset, test_flush.waited_bytes);
        test_flush.waited++;
        test_flush.waited_bytes += (uint64_t)bytes;
    } else {
        assert_int_equal(offset, test_flush.begun_bytes);
        test_flush.begun++;
        test_flush.begun_bytes += (uint64_t)bytes;
    }
    return 0;
}

static void a_file_goes_to_the_disk_in_windows(void** state) {
    static const uint64_t windows[] = {0, 1000, 4096, 99999, 100000, 100001, UINT64_MAX};
    unsigned char* data = test_bytes(100000, 6);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_path(path, "windows");
    for (size_t k = 0; k < sizeof windows / sizeof windows[0]; k++) {
        test_write t;
        const uint64_t window = windows[k];
        memset(&test_flush, 0, sizeof test_flush);
        test_write_init(&t, path, data, 100000);
        t.write.dirty_bytes = window;
        assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_OK);
        assert_int_equal(gpsti_write_commit(&t.write, NULL), GPST_OK);
        test_file_check(path, data, 100000);
        assert_int_equal(test_flush.begun_bytes, window && window < 100000 ? 100000 : 0);
        assert_int_equal(test_flush.begun, window && window < 100000 ? (100000 + window - 1) / window : 0);
        assert_int_equal(test_flush.waited, test_flush.begun ? test_flush.begun - 1 : 0); /* never the last one */
    }
    for (unsigned n = 1; n <= 20; n++) { /* ten begun, nine waited for */
        test_write t;
        memset(&test_flush, 0, sizeof test_flush);
        test_flush.fail_at = n;
        test_flush.code = EIO;
        test_write_init(&t, path, data, 100000);
        t.write.dirty_bytes = 10000;
        const gpst_result result = gpsti_writer_write_here(NULL, &t.write);
        assert_int_equal(result, n <= 19 ? GPST_ERROR_IO : GPST_OK);
        assert_int_equal(t.write.pending, n > 19);
        if (n <= 19)
            assert_non_null(strstr(t.write.reason, "write back"));
        gpsti_write_discard(&t.write);
        assert_int_equal(test_directory_count(test_directory), 1); /* what was committed above */
    }
    free(data);
}

/* ---- commit and discard ------------------------------------------------------- */

static void committed_files_are_whole(void** state) {
    static const size_t sizes[] = {0, 1, 4097, 3000001};
    gpsti_writer* writer = NULL;
    gpsti_writer_info info;
    char path[TEST_PATH_BYTES];
    size_t k;
    (void)state;
    test_path(path, "picture.ppm");
    assert_int_equal(gpsti_writer_create(test_context, 0, &writer), GPST_OK);
    for (k = 0; k < 4; ++k) { /* each replaces the one before */
        unsigned char* data = test_bytes(sizes[k], k);
        test_write t;
        test_write_init(&t, path, data, sizes[k]);
        t.write.sync = k == 2;
        assert_int_equal(gpsti_writer_submit(writer, &t.write), GPST_OK);
        test_write_wait(&t);
        assert_int_equal(t.write.result, GPST_OK);
        assert_true(t.write.pending);
        assert_int_equal(access(path, F_OK), k ? 0 : -1);
        assert_int_equal(test_directory_count(test_directory),
                         k ? 2 : 1); /* the temporary file is in the same place */
        assert_int_equal(gpsti_write_commit(&t.write, NULL), GPST_OK);
        assert_false(t.write.pending);
        assert_int_equal(test_directory_count(test_directory), 1);
        test_file_check(path, data, sizes[k]);
        assert_int_equal(gpsti_write_commit(&t.write, NULL), GPST_ERROR_STATE);
        free(data);
    }
    gpsti_writer_query_info(writer, &info);
    assert_int_equal(info.n_in_flight, 2);
    assert_int_equal(info.writes, 4);
    assert_int_equal(info.failed, 0);
    assert_int_equal(info.bytes, 1 + 4097 + 3000001);
    assert_true(info.service_ns > 0);
    gpsti_writer_destroy(writer);
}

static struct {
    unsigned n;
    int code;
    off_t bytes;      /* of the file, then */
    const char* path; /* where it will be */
    bool was_there;
} test_fsync;

/* Takes the place of the C library's. */
int fsync(int file) {
    struct stat status;
    assert_int_equal(fstat(file, &status), 0);
    if (!S_ISREG(status.st_mode))
        return 0;
    test_fsync.n++;
    test_fsync.bytes = status.st_size;
    test_fsync.was_there = test_fsync.path && access(test_fsync.path, F_OK) == 0;
    errno = test_fsync.code;
    return test_fsync.code ? -1 : 0;
}

/* All of a file is on the disk before it has its name, if that is asked for; if it cannot be, there is no file. */
static void synced_files_are_on_the_disk(void** state) {
    static const int codes[] = {0, EIO, ENOSPC};
    static const gpst_result wanted[] = {GPST_OK, GPST_ERROR_IO, GPST_ERROR_NO_SPACE, GPST_OK};
    char path[TEST_PATH_BYTES];
    (void)state;
    test_path(path, "synced");
    for (int k = 0; k < 4; k++) {
        test_write t;
        memset(&test_fsync, 0, sizeof test_fsync);
        test_fsync.path = path;
        test_fsync.code = k < 3 ? codes[k] : 0;
        test_write_init(&t, path, "all of it", 9);
        t.write.sync = k < 3;
        const gpst_result result = gpsti_writer_write_here(NULL, &t.write);
        assert_int_equal(test_fsync.n, k < 3);
        assert_true(k == 3 || (test_fsync.bytes == 9 && !test_fsync.was_there));
        assert_int_equal(result, wanted[k]);
        if (test_fsync.code)
            assert_non_null(strstr(t.write.reason, "sync"));
        else
            assert_int_equal(gpsti_write_commit(&t.write, NULL), GPST_OK);
        gpsti_write_discard(&t.write);
        assert_int_equal(test_directory_count(test_directory), !test_fsync.code);
        (void)unlink(path);
    }
}

static void discarded_files_leave_nothing(void** state) {
    char path[TEST_PATH_BYTES];
    test_write t;
    (void)state;
    test_file_make(test_path(path, "old"), "old", 3);
    test_write_init(&t, path, "newer", 5);
    assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_OK);
    assert_int_equal(gpsti_a32_load(&t.n_done), 0);
    gpsti_write_discard(&t.write);
    assert_false(t.write.pending);
    gpsti_write_discard(&t.write); /* again: nothing */
    test_file_check(path, "old", 3);
    assert_int_equal(test_directory_count(test_directory), 1);
}

enum { TEST_MOST_HELD = 16 }; /* of replaced files, by a writer */

typedef struct test_closings {
    gpsti_a32 n, n_wrong;
    int64_t since_ns;
} test_closings;

static void test_closed(void* user_data, int64_t start_ns, int64_t end_ns) {
    test_closings* const self = (test_closings*)user_data;
    (void)gpsti_a32_add(&self->n, 1);
    if (start_ns < self->since_ns || end_ns < start_ns || end_ns > gpsti_now_ns())
        (void)gpsti_a32_add(&self->n_wrong, 1);
}

/* What had the name is let go of: by the writer's threads, who tell of it, or at once. */
static void what_is_replaced_is_let_go_of(void** state) {
    (void)state;
    for (int by_writer = 0; by_writer < 2; by_writer++) {
        gpsti_writer* writer = NULL;
        char path[TEST_PATH_BYTES];
        const unsigned n_before = test_directory_count("/proc/self/fd");
        const unsigned n_threads = test_directory_count("/proc/self/task");
        test_closings closings = GPST_ZERO;
        closings.since_ns = gpsti_now_ns();
        if (by_writer) {
            assert_int_equal(gpsti_writer_create(test_context, 0, &writer), GPST_OK);
            gpsti_writer_tell_closed(writer, test_closed, &closings);
        }
        test_path(path, "again");
        for (int n = 0; n < 200; n++) {
            test_write t;
            test_write_init(&t, path, &n, sizeof n);
            assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_OK);
            assert_int_equal(gpsti_write_commit(&t.write, writer), GPST_OK);
            test_file_check(path, (const unsigned char*)&n, sizeof n);
            const unsigned n_held = test_directory_count("/proc/self/fd") - n_before;
            assert_true(n_held <= (by_writer ? TEST_MOST_HELD : 0));
        }
        gpsti_writer_destroy(writer);
        assert_in_range(gpsti_a32_load(&closings.n), by_writer, by_writer * 200);
        assert_int_equal(gpsti_a32_load(&closings.n_wrong), 0);
        assert_int_equal(test_directory_count("/proc/self/fd"), n_before);
        for (int ms = 0; test_directory_count("/proc/self/task") > n_threads && ms < 10000; ms++)
            gpsti_sleep_ns(1000000); /* who was joined may be listed for a moment */
        assert_true(test_directory_count("/proc/self/task") <= n_threads);
        assert_int_equal(test_directory_count(test_directory), 1);
    }
}

static void names_as_long_as_they_may_be(void** state) {
    char path[TEST_PATH_BYTES];
    char name[256];
    test_write t;
    (void)state;
    memset(name, 'n', 255);
    name[255] = 0;
    test_write_init(&t, test_path(path, name), "x", 1);
    assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_OK);
    assert_int_equal(gpsti_write_commit(&t.write, NULL), GPST_OK);
    test_file_check(path, "x", 1);
}

/* Without a directory in the path the temporary file goes where the file will be: here. */
static void relative_names(void** state) {
    char before[TEST_PATH_BYTES];
    test_write t;
    (void)state;
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(chdir(test_directory), 0);
    test_write_init(&t, "here", "x", 1);
    assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_OK);
    assert_int_equal(test_directory_count(test_directory), 1);
    assert_int_equal(gpsti_write_commit(&t.write, NULL), GPST_OK);
    test_file_check("here", "x", 1);
    assert_int_equal(chdir(before), 0);
}

static void temporary_names_of_others_are_left_alone(void** state) {
    char path[TEST_PATH_BYTES];
    char other[TEST_PATH_BYTES];
    char name[64];
    test_write t;
    (void)state;
    test_write_init(&t, test_path(path, "a"), "a", 1);
    assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_OK);
    assert_int_equal(gpsti_write_commit(&t.write, NULL), GPST_OK);
    gpst_context_info info;
    gpst_context_query_info(test_context, &info);
    snprintf(name, sizeof(name), ".gpustage-%s-%llu.tmp", info.temporary_tag,
             (unsigned long long)t.write.temporary_id + 1);
    test_file_make(test_path(other, name), "someone's", 9);
    test_write_init(&t, path, "b", 1);
    assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_OK);
    assert_int_equal(gpsti_write_commit(&t.write, NULL), GPST_OK);
    test_file_check(path, "b", 1);
    test_file_check(other, "someone's", 9);
}

/* ---- failures ---------------------------------------------------------------- */

static void failed_writes_leave_nothing(void** state) {
    gpsti_writer* writer = NULL;
    gpsti_writer_info info;
    char path[TEST_PATH_BYTES];
    test_write t;
    (void)state;
    assert_int_equal(gpsti_writer_create(test_context, 1, &writer), GPST_OK);
    test_write_init(&t, test_path(path, "missing/a.jpg"), "x", 1);
    assert_int_equal(gpsti_writer_submit(writer, &t.write), GPST_OK);
    test_write_wait(&t);
    assert_int_equal(t.write.result, GPST_ERROR_NOT_FOUND);
    assert_non_null(strstr(t.write.reason, "missing/a.jpg")); /* the name the user knows */
    assert_false(t.write.pending);
    gpsti_write_discard(&t.write);
    gpsti_writer_query_info(writer, &info);
    assert_int_equal(info.failed, 1);
    assert_int_equal(info.bytes, 0);
    test_write_init(&t, "", "x", 1);
    assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_ERROR_ARGUMENT);
    test_write_init(&t, path, NULL, 1);
    assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_ERROR_ARGUMENT);
    assert_false(t.write.pending);
    gpsti_writer_destroy(writer);

    test_path(path, "taken"); /* commit fails: a directory has the name */
    assert_int_equal(mkdir(path, 0700), 0);
    test_write_init(&t, path, "x", 1);
    assert_int_equal(gpsti_writer_write_here(NULL, &t.write), GPST_OK);
    const gpst_result result = gpsti_write_commit(&t.write, NULL);
    assert_true(GPST_FAILED(result));
    assert_int_equal(t.write.result, result);
    assert_true(t.write.reason[0] != 0);
    assert_false(t.write.pending);
    assert_int_equal(test_directory_count(test_directory), 1);
}

static bool can_hold(const char* path) {
    gpsti_file file;
    const bool can = gpsti_path_hold(path, &file);
    if (can)
        (void)gpsti_file_close(&file, path);
    return can;
}

/* In a child, with a tiny file system of its own where that is allowed, else with a limit on file sizes. */
static int test_fill_disk(void) {
    char path[TEST_PATH_BYTES];
    unsigned char* data = test_bytes(1 << 20, 1);
    struct rlimit limit;
    test_write t;
    bool mounted = false;
#if defined(__linux__)
    mounted = unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
              mount("tmpfs", test_directory, "tmpfs", 0, "size=256k") == 0;
#endif
    if (!mounted) {
        printf("no file system of its own (errno %d): a limit on file sizes instead\n", errno);
        limit.rlim_cur = limit.rlim_max = 1 << 18;
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            return 1;
    }
    test_write_init(&t, test_path(path, "large"), data, 1 << 20);
    const gpst_result result = gpsti_writer_write_here(NULL, &t.write);
    printf("%s: %s\n", gpst_result_name(result), t.write.reason);
    if (mounted ? result != GPST_ERROR_NO_SPACE : !GPST_FAILED(result))
        return 2;
    if (t.write.pending || !t.write.reason[0] || test_directory_count(test_directory) != 0)
        return 3;
    test_write_init(&t, path, data, 1 << 16); /* room again, because nothing was left behind */
    if (gpsti_writer_write_here(NULL, &t.write) != GPST_OK || gpsti_write_commit(&t.write, NULL) != GPST_OK)
        return 4;
    const bool keeps_large = can_hold(path);
    test_file_make(test_path(path, "small"), data, 1 << 10);
    if (mounted && (keeps_large || !can_hold(path)))
        return 5; /* of what is replaced only what there is room for is kept */
    free(data);
    return 0;
}

static void a_full_disk(void** state) {
    int status = -1;
    (void)state;
    fflush(stdout);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const int failed = test_fill_disk();
        fflush(stdout);
        _exit(failed);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* ---- many at once ------------------------------------------------------------ */

enum { TEST_WRITES = 60, TEST_WRITE_BYTES = 20000 };

static int test_write_many(gpsti_writer* writer, const char* prefix, const unsigned char* data) {
    static test_write writes[TEST_WRITES];
    static char paths[TEST_WRITES][TEST_PATH_BYTES];
    size_t k;
    for (k = 0; k < TEST_WRITES; ++k) {
        char name[64];
        snprintf(name, sizeof(name), "%s%zu", prefix, k);
        test_write_init(&writes[k], test_path(paths[k], name), data + k, TEST_WRITE_BYTES);
        if (writer ? gpsti_writer_submit(writer, &writes[k].write)
                   : gpsti_writer_write_here(NULL, &writes[k].write))
            return 1;
    }
    for (k = 0; k < TEST_WRITES; ++k) {
        if (writer)
            test_write_wait(&writes[k]);
        if (writes[k].write.result != GPST_OK)
            return 2;
        if (k % 3 == 0)
            gpsti_write_discard(&writes[k].write);
        else if (gpsti_write_commit(&writes[k].write, NULL) != GPST_OK)
            return 3;
    }
    return 0;
}

/* Two processes, one of them with many threads, in one directory: no temporary name meets another. */
static void many_at_once(void** state) {
    unsigned char* data = test_bytes(TEST_WRITE_BYTES + TEST_WRITES, 6);
    gpsti_writer* writer = NULL;
    char path[TEST_PATH_BYTES];
    char name[64];
    int status = -1;
    size_t k;
    (void)state;
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(test_write_many(NULL, "child", data));
    assert_int_equal(gpsti_writer_create(test_context, 16, &writer), GPST_OK);
    assert_int_equal(test_write_many(writer, "parent", data), 0);
    gpsti_writer_destroy(writer);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(test_directory_count(test_directory), 2 * TEST_WRITES * 2 / 3);
    for (k = 0; k < TEST_WRITES; ++k)
        if (k % 3) {
            snprintf(name, sizeof(name), "parent%zu", k);
            test_file_check(test_path(path, name), data + k, TEST_WRITE_BYTES);
            snprintf(name, sizeof(name), "child%zu", k);
            test_file_check(test_path(path, name), data + k, TEST_WRITE_BYTES);
        }
    free(data);
}

/* Whatever destroy found in the queue is cancelled, and every `done` was called when it returns. */
static void destroy_cancels_and_waits(void** state) {
    static test_write writes[40];
    unsigned char* data = test_bytes(1 << 20, 6);
    static char paths[40][TEST_PATH_BYTES];
    gpsti_writer* writer = NULL;
    unsigned cancelled = 0;
    size_t k;
    (void)state;
    assert_int_equal(gpsti_writer_create(test_context, 1, &writer), GPST_OK);
    for (k = 0; k < 40; ++k) {
        char name[32];
        snprintf(name, sizeof(name), "file%zu", k);
        test_write_init(&writes[k], test_path(paths[k], name), data, 1 << 20);
        assert_int_equal(gpsti_writer_submit(writer, &writes[k].write), GPST_OK);
    }
    gpsti_writer_destroy(writer);
    gpsti_writer_destroy(NULL);
    for (k = 0; k < 40; ++k) {
        assert_int_equal(gpsti_a32_load(&writes[k].n_done), 1);
        assert_int_equal(writes[k].write.pending, writes[k].write.result == GPST_OK);
        cancelled += writes[k].write.result == GPST_ERROR_CANCELLED;
        assert_true(writes[k].write.result == GPST_OK || writes[k].write.result == GPST_ERROR_CANCELLED);
        gpsti_write_discard(&writes[k].write);
    }
    printf("%u of 40 were cancelled\n", cancelled);
    assert_int_equal(test_directory_count(test_directory), 0);
    free(data);
}

#define TEST_CASE(name) cmocka_unit_test_setup_teardown(name, test_begin, test_end)

int main(void) {
    const struct CMUnitTest tests[] = {TEST_CASE(committed_files_are_whole),
                                       TEST_CASE(synced_files_are_on_the_disk),
                                       TEST_CASE(what_is_replaced_is_let_go_of),
                                       TEST_CASE(discarded_files_leave_nothing),
                                       TEST_CASE(names_as_long_as_they_may_be),
                                       TEST_CASE(relative_names),
                                       TEST_CASE(temporary_names_of_others_are_left_alone),
                                       TEST_CASE(failed_writes_leave_nothing),
                                       TEST_CASE(a_full_disk),
                                       TEST_CASE(a_file_goes_to_the_disk_in_windows),
                                       TEST_CASE(many_at_once),
                                       TEST_CASE(destroy_cancels_and_waits)};
    return cmocka_run_group_tests(tests, test_group_begin, test_group_end);
}
