/* tests/test_reader_ways.c -- which way of reading is taken, and why not another: files in the cache and out of it, the
   environment's word, io_uring forbidden, little memory that may be locked. */
#include "test_reader_kinds.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* ---- which way is taken, and why ------------------------------------------------------ */

static void test_evict(const char* path, off_t from, off_t bytes) {
    const int file = open(path, O_RDONLY);
    assert_int_equal(fsync(file), 0);
    assert_int_equal(posix_fadvise(file, from, bytes, POSIX_FADV_DONTNEED), 0);
    close(file);
}

/* Not by the code under test. */
static uint32_t test_resident(const char* path, off_t from, size_t bytes) {
    static unsigned char pages[65536];
    const int file = open(path, O_RDONLY);
    uint32_t n = 0;
    void* map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, from);
    assert_true(map != MAP_FAILED && bytes / 4096 < sizeof pages);
    assert_int_equal(mincore(map, bytes, pages), 0);
    for (size_t i = 0; i < bytes / 4096; i++)
        n += pages[i] & 1u;
    munmap(map, bytes);
    close(file);
    return (uint32_t)(n * 100 / (bytes / 4096));
}

static gpst_result test_reserve_pages(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    assert_int_equal(filled_bytes, 0);
    read->data = gpsti_aligned_alloc(needed_bytes, 4096);
    read->capacity_bytes = needed_bytes;
    return GPST_OK;
}

static uint64_t test_direct_aligned(gpst_reader* reader, const char* path, const void* data, size_t bytes) {
    gpst_reader_info before, after;
    test_read t;
    gpst_reader_query_info(reader, &before);
    test_read_init(&t, path);
    t.read.reserve = test_reserve_pages;
    test_read_kind(reader, &t);
    test_read_check(&t, data, bytes);
    gpsti_aligned_free(t.read.data);
    gpst_reader_query_info(reader, &after);
    return after.direct_bytes - before.direct_bytes;
}

static void auto_goes_past_the_cache_where_it_is_cold(void** state) {
    const size_t window = (size_t)GPSTI_READER_LARGE_BYTES, bytes = 2 * window + 5000;
    unsigned char* data = test_bytes(bytes, 14);
    gpst_reader* reader = test_kind_open(1);
    gpst_reader_info info;
    char path[TEST_PATH_BYTES], small[TEST_PATH_BYTES];
    (void)state;
    test_file_make(test_path(path, "large"), data, bytes);
    test_file_make(test_path(small, "small"), data, 100000);
    test_evict(path, 0, 0);
    if (test_resident(path, 0, window) != 0) {
        printf("skipped: nothing can be put out of the page cache here\n");
    } else {
        gpst_reader_query_info(reader, &info);
        assert_string_equal(info.path, "pread, buffered");
        assert_non_null(strstr(info.why_not, "direct: no file of 8 MiB or more"));
        assert_non_null(strstr(info.why_not, "io_uring: only when asked for"));
        gpsti_a64_store(&gpsti_reader_ways_of(reader)->direct_after_bytes, UINT64_MAX);
        assert_int_equal(test_direct_aligned(reader, path, data, bytes), 0); /* fits in memory */
        gpst_reader_query_info(reader, &info);
        assert_non_null(strstr(info.why_not, "direct: what is read fits in memory"));
        gpsti_a64_store(&gpsti_reader_ways_of(reader)->direct_after_bytes, 1);
        assert_int_equal(test_direct_aligned(reader, path, data, bytes), 0); /* resident now */
        gpst_reader_query_info(reader, &info);
        assert_non_null(strstr(info.why_not, "direct: what was read was resident"));
        assert_true(test_resident(path, 0, window) > 90);
        test_evict(path, 0, 0);
        assert_true(test_direct_aligned(reader, path, data, bytes) >= 2 * window); /* cold */
        assert_int_equal(test_resident(path, 0, window), 0);                       /* and stays so */
        test_evict(path, 0, 0);
        assert_int_equal(test_direct_aligned(reader, small, data, 100000), 0); /* small ones never */
        gpsti_a64_store(&gpsti_reader_ways_of(reader)->direct_after_bytes, UINT64_MAX);
        test_direct_aligned(reader, path, data, bytes); /* warm again */
        gpsti_a64_store(&gpsti_reader_ways_of(reader)->direct_after_bytes, 1);
        test_evict(path, (off_t)window, (off_t)(window + 8192));
        const uint64_t half = test_direct_aligned(reader, path, data, bytes);
        assert_true(half >= window && half < 2 * window); /* the second window alone */
        gpst_reader_query_info(reader, &info);
        assert_non_null(strstr(info.path, "% direct"));
        assert_null(strstr(info.why_not, "direct:"));
    }
    gpst_reader_destroy(reader);
    free(data);
}

/* Between two opens the path may come to name another file: never a mixture of the two. */
static void the_second_way_in_is_to_the_same_file(void** state) {
    unsigned char* data = test_bytes(8192, 17);
    char path[TEST_PATH_BYTES];
    gpsti_file file, direct;
    gpsti_direct_rules rules;
    (void)state;
    test_file_make(test_path(path, "replaced"), data, 8192);
    assert_int_equal(gpsti_file_open_read(path, &file), GPST_OK);
    assert_int_equal(unlink(path), 0);
    test_file_make(path, data + 1, 8191);
    assert_int_equal(gpsti_file_open_direct(&file, path, &direct, &rules), GPST_ERROR_IO);
    test_reason_has("replaced", "another file by now");
    gpsti_file_close(&file, path);
    free(data);
}

static void the_path_is_told(void** state) {
    unsigned char* data = test_bytes(2000000, 15);
    gpst_reader_info info;
    char path[TEST_PATH_BYTES];
    (void)state;
    test_file_make(test_path(path, "told"), data, 2000000);
    for (int kind = 0; kind < TEST_N_KINDS; kind++) {
        gpst_reader* reader = test_kind_open(kind);
        if (!reader)
            continue;
        const uint64_t direct_bytes = test_direct_aligned(reader, path, data, 2000000);
        gpst_reader_query_info(reader, &info);
        printf("%s: %s; %s\n", info.kind, info.path, info.why_not);
        assert_string_equal(info.kind, test_kinds[kind]);
        if (kind < 2)
            assert_string_equal(info.path, "pread, buffered");
        else if (direct_bytes)
            assert_string_equal(info.path, kind == 2 ? "pread, 99 % direct" : "io_uring, 99 % direct");
        else
            assert_non_null(strstr(info.why_not, "direct: "));
        if (kind == 0)
            assert_non_null(strstr(info.why_not, "direct: pread was asked for"));
        if (kind > 1) { /* an address that O_DIRECT cannot take */
            gpst_reader* other = test_kind_open(kind);
            char* base = (char*)gpsti_aligned_alloc(2004096, 4096);
            test_read t;
            test_read_init(&t, path);
            t.read.data = base + 1;
            t.read.capacity_bytes = 2000000;
            test_read_kind(other, &t);
            test_read_check(&t, data, 2000000);
            gpst_reader_query_info(other, &info);
            assert_int_equal(info.direct_bytes, 0);
            gpsti_aligned_free(base);
            gpst_reader_destroy(other);
        }
        gpst_reader_destroy(reader);
    }
    free(data);
}

static void the_environment_fixes_the_kind(void** state) {
    gpst_reader_desc desc = GPST_ZERO;
    gpst_reader_info info;
    gpst_reader* reader = NULL;
    (void)state;
    assert_int_equal(setenv("GPUSTAGE_IO", "direct", 1), 0);
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_OK);
    gpst_reader_query_info(reader, &info);
    assert_string_equal(info.kind, "direct");
    gpst_reader_destroy(reader);
    desc.kind = "uring";
    const bool has_ring = gpst_reader_create(test_context, &desc, &reader) == GPST_OK;
    gpst_reader_destroy(reader);
    desc.kind = NULL;
    assert_int_equal(setenv("GPUSTAGE_IO", "uring", 1), 0);
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_OK);
    gpst_reader_query_info(reader, &info);
    assert_string_equal(info.kind, has_ring ? "uring" : "auto");
    gpst_reader_destroy(reader);
    desc.kind = "pread"; /* the caller's word counts more */
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_OK);
    gpst_reader_query_info(reader, &info);
    assert_string_equal(info.kind, "pread");
    gpst_reader_destroy(reader);
    desc.kind = NULL;
    assert_int_equal(setenv("GPUSTAGE_IO", "mmap", 1), 0);
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_ERROR_ARGUMENT);
    test_reason_has("GPUSTAGE_IO=\"mmap\"", "\"uring\"");
    assert_null(reader);
    assert_int_equal(setenv("GPUSTAGE_IO", "", 1), 0);
    assert_int_equal(gpst_reader_create(test_context, &desc, &reader), GPST_OK);
    gpst_reader_destroy(reader);
    assert_int_equal(unsetenv("GPUSTAGE_IO"), 0);
}

/* ---- io_uring forbidden, little locked memory --------------------------------------------- */

static bool test_forbid_io_uring(void) {
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 425, 0, 2),
        BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, 427, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program;
    program.len = 5;
    program.filter = code;
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int test_without_io_uring(const char* path, const unsigned char* data, size_t bytes) {
    gpst_context* context = NULL;
    gpst_reader* reader = NULL;
    gpst_reader_desc desc = GPST_ZERO;
    gpst_reader_info info;
    gpst_context_desc context_desc = GPST_ZERO;
    test_log log;
    gpst_probe_info* probe = (gpst_probe_info*)malloc(sizeof *probe);
    test_read t;
    context_desc.logger = test_log_hooks(&log);
    if (!test_forbid_io_uring())
        return GPST_TEST_SKIP;
    if (gpst_probe(NULL, probe) != GPST_OK || probe->io_uring || !strstr(probe->io_uring_reason, "EPERM"))
        return 2;
    if (gpst_context_create(&context_desc, &context) != GPST_OK)
        return 3;
    desc.kind = "uring";
    if (gpst_reader_create(context, &desc, &reader) != GPST_ERROR_UNSUPPORTED || reader ||
        !strstr(gpst_last_reason(), "EPERM"))
        return 4;
    desc.kind = NULL; /* a wish of the environment's is not a demand */
    if (setenv("GPUSTAGE_IO", "uring", 1) || gpst_reader_create(context, &desc, &reader) != GPST_OK)
        return 5;
    test_read_init(&t, path);
    if (gpst_reader_read_now(reader, &t.read) != GPST_OK || t.read.bytes != bytes ||
        memcmp(t.read.data, data, bytes) != 0)
        return 6;
    test_read_term(&t);
    gpst_reader_query_info(reader, &info);
    if (strcmp(info.kind, "auto") != 0 || strncmp(info.path, "pread", 5) != 0 || !strstr(info.why_not, "io_uring: ") ||
        !strstr(info.why_not, "EPERM"))
        return 10;
    if (gpsti_a32_load(&log.n_warnings) != 1 || !strstr(log.last, "GPUSTAGE_IO=uring: ") || !strstr(log.last, "EPERM"))
        return 11;
    gpst_reader_destroy(reader);
    gpst_context_destroy(context);
    free(probe);
    return 0;
}

/* A ring that a filter shuts while it is in use: what it had goes by the cache. */
static int test_io_uring_shut_later(const char* path, const unsigned char* data, size_t bytes) {
    gpst_context* context = NULL;
    gpst_reader* reader = NULL;
    gpst_reader_desc desc = GPST_ZERO;
    test_read t;
    desc.kind = "uring";
    if (gpst_context_create(NULL, &context) != GPST_OK ||
        gpst_reader_create(context, &desc, &reader) != GPST_OK || !test_forbid_io_uring())
        return GPST_TEST_SKIP;
    for (int k = 0; k < 2; k++) { /* the second one gets no ring at all */
        test_read_init(&t, path);
        if (gpst_reader_read_now(reader, &t.read) != GPST_OK || t.read.bytes != bytes ||
            memcmp(t.read.data, data, bytes) != 0)
            return 7;
        test_read_term(&t);
    }
    gpst_reader_destroy(reader);
    gpst_context_destroy(context);
    return 0;
}

static int test_little_memlock(const char* path, const unsigned char* data, size_t bytes) {
    struct rlimit limit;
    gpst_context* context = NULL;
    int done = 0;
    limit.rlim_cur = limit.rlim_max = (rlim_t)2 << 20;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) || gpst_context_create(NULL, &context) != GPST_OK)
        return GPST_TEST_SKIP;
    for (int kind = 0; kind < TEST_N_KINDS; kind++) {
        gpst_reader_desc desc = GPST_ZERO;
        gpst_reader* reader = NULL;
        test_read t;
        desc.kind = test_kinds[kind];
        const gpst_result result = gpst_reader_create(context, &desc, &reader);
        if (result == GPST_ERROR_UNSUPPORTED && kind == 3)
            continue;
        test_read_init(&t, path);
        if (result != GPST_OK || gpst_reader_read_now(reader, &t.read) != GPST_OK ||
            t.read.bytes != bytes || memcmp(t.read.data, data, bytes) != 0)
            return 8;
        test_read_term(&t);
        gpst_reader_destroy(reader);
        done++;
    }
    gpst_context_destroy(context);
    return done >= 3 ? 0 : 9;
}

static void test_in_child(const char* name, int (*func)(const char*, const unsigned char*, size_t)) {
    unsigned char* data = test_bytes(9000000, 16);
    char path[TEST_PATH_BYTES];
    int status = 0;
#if defined(__SANITIZE_THREAD__)
    printf("skipped: %s: ThreadSanitizer starts no threads after a fork\n", name);
    func = NULL;
#endif
    if (!func) {
        free(data);
        return;
    }
    test_file_make(test_path(path, "child"), data, 9000000);
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        _exit(func(path, data, 9000000));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == GPST_TEST_SKIP)
        printf("skipped: %s: not possible here\n", name);
    else
        assert_int_equal(WEXITSTATUS(status), 0);
    free(data);
}

static void io_uring_is_forbidden(void** state) {
    (void)state;
    test_in_child("seccomp", test_without_io_uring);
    test_in_child("seccomp later", test_io_uring_shut_later);
}

static void little_memory_may_be_locked(void** state) {
    (void)state;
    test_in_child("memlock", test_little_memlock);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(auto_goes_past_the_cache_where_it_is_cold),
                                       cmocka_unit_test(the_second_way_in_is_to_the_same_file),
                                       cmocka_unit_test(the_path_is_told),
                                       cmocka_unit_test(the_environment_fixes_the_kind),
                                       cmocka_unit_test(io_uring_is_forbidden),
                                       cmocka_unit_test(little_memory_may_be_locked)};
    test_ring_look();
    return cmocka_run_group_tests(tests, test_group_begin, test_group_end);
}
