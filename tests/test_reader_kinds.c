/* tests/test_reader_kinds.c -- every way of reading gives the same bytes and the same errors, whatever the kernel
   does. */
#include "test_reader_kinds.h"

#include <errno.h>
#include <sys/syscall.h>

/* ---- the kernel misbehaves on request ------------------------------------------ */

static struct {
    gpsti_a32 calls;     /* of pread, or completions of the ring */
    uint32_t fail_from;  /* this call and all later ones of the kind below fail */
    uint32_t n_failing;  /* so many of them; 0 = all */
    int code;            /* errno */
    bool direct_only;    /* reads by the cache go well */
    size_t at_most;      /* no call moves more */
    const char* cut;     /* a file that call cut_at shortens */
    uint32_t cut_at;
    size_t cut_to;
} test_kernel;

static int test_kernel_next(uint32_t* call) {
    *call = gpsti_a32_add(&test_kernel.calls, 1) + 1;
    if (test_kernel.cut && *call == test_kernel.cut_at)
        assert_int_equal(truncate(test_kernel.cut, (off_t)test_kernel.cut_to), 0);
    return test_kernel.fail_from && *call >= test_kernel.fail_from &&
                   (!test_kernel.n_failing || *call < test_kernel.fail_from + test_kernel.n_failing)
               ? test_kernel.code
               : 0;
}

/* Takes the place of the C library's. */
ssize_t pread64(int descriptor, void* data, size_t bytes, off64_t offset) {
    uint32_t call = 0;
    const bool counted = !test_kernel.direct_only || (fcntl(descriptor, F_GETFL) & O_DIRECT) != 0;
    const int code = counted ? test_kernel_next(&call) : 0;
    if (code) {
        errno = code;
        return -1;
    }
    if (counted && test_kernel.at_most && bytes > test_kernel.at_most)
        bytes = test_kernel.at_most;
    return (ssize_t)syscall(SYS_pread64, descriptor, data, bytes, offset);
}

static int32_t test_ring_fault(int32_t result) {
    uint32_t call = 0;
    const int code = test_kernel_next(&call);
    if (code)
        return -code;
    if (test_kernel.at_most && result > (int32_t)test_kernel.at_most)
        return (int32_t)test_kernel.at_most;
    return result;
}

/* A reader whose reads meet that kernel; NULL where io_uring is refused here. */
static gpst_reader* test_kind_new(int kind) {
    memset(&test_kernel, 0, sizeof test_kernel);
    gpst_reader* const reader = test_kind_open(kind);
    if (!reader)
        return NULL;
    gpsti_reader_ways* const ways = gpsti_reader_ways_of(reader);
    for (int k = 0; k < GPSTI_READER_RINGS; k++)
        if (ways->rings[k].open)
            ways->rings[k].fault = test_ring_fault;
    return reader;
}

/* ---- the same bytes and the same errors -------------------------------------------- */

static void every_kind_gives_the_same_bytes(void** state) {
    static const size_t sizes[] = {0, 1, 511, 512, 513, 4095, 4096, 4097, 70000, 1048576, 3145729, 9437201};
    uint64_t seed = test_seed(31);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_path(path, "same");
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        unsigned char* data = test_bytes(sizes[s], s);
        test_file_make(path, data, sizes[s]);
        for (int kind = 0; kind < TEST_N_KINDS; kind++) {
            gpst_reader* reader = test_kind_new(kind);
            for (int k = 0; reader && k < 12; k++) {
                const size_t room = sizes[s] + (size_t)(test_random(&seed) % 9000);
                const size_t shift = k % 3 ? (size_t)(test_random(&seed) % 4096) : 0;
                const size_t from = k < 4 ? 0 : (size_t)(test_random(&seed) % (sizes[s] + 1));
                const size_t length = k < 8 ? 0 : (size_t)(test_random(&seed) % (sizes[s] - from + 1));
                const size_t expected = length ? length : sizes[s] - from;
                unsigned char* base = (unsigned char*)gpsti_aligned_alloc(room + 8192, 4096);
                test_read t;
                memset(base, 0xA5, room + 8192);
                test_read_init(&t, path);
                t.read.data = base + shift;
                t.read.capacity_bytes = k == 11 ? expected : room;
                t.read.offset_bytes = from;
                t.read.length_bytes = length;
                test_read_kind(reader, &t);
                test_read_check(&t, data + from, expected);
                if (!t.allocated) { /* nothing before or behind is touched */
                    assert_true(shift == 0 || base[shift - 1] == 0xA5);
                    assert_int_equal(base[shift + expected], 0xA5);
                }
                test_read_term(&t);
                gpsti_aligned_free(base);
            }
            gpst_reader_destroy(reader);
        }
        free(data);
    }
}

/* Short ones, interrupted ones, and the two together. */
static void odd_calls_change_nothing(void** state) {
    static const size_t limits[] = {0, 512, 4096, 5000, 70001};
    const size_t bytes = 200003;
    unsigned char* data = test_bytes(bytes, 5);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_file_make(test_path(path, "odd"), data, bytes);
    for (int kind = 0; kind < TEST_N_KINDS; kind++)
        for (int k = 0; k < 10; k++) {
            gpst_reader* reader = test_kind_new(kind);
            test_read t;
            if (!reader)
                continue;
            test_kernel.at_most = limits[k % 5];
            test_kernel.fail_from = k < 5 ? 0 : 2;
            test_kernel.n_failing = 1;
            test_kernel.code = EINTR;
            test_read_init(&t, path);
            test_read_kind(reader, &t);
            test_read_check(&t, data, bytes);
            if (test_kernel.at_most)
                assert_true(gpsti_a32_load(&test_kernel.calls) * test_kernel.at_most >= bytes);
            test_read_term(&t);
            gpst_reader_destroy(reader);
        }
    free(data);
}

/* Whatever fails past the cache is read again by it; what fails there is the read's error. */
static void the_nth_call_fails(void** state) {
    const size_t bytes = 5 * 1048576 + 100;
    unsigned char* data = test_bytes(bytes, 6);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_file_make(test_path(path, "nth"), data, bytes);
    for (int kind = 0; kind < TEST_N_KINDS; kind++)
        for (uint32_t n = 1; n <= 8; n++)
            for (int code = 0; code < 2; code++) {
                gpst_reader* reader = test_kind_new(kind);
                test_read t;
                if (!reader)
                    continue;
                test_kernel.fail_from = n;
                test_kernel.code = code ? EIO : EINVAL;
                test_kernel.direct_only = true;
                test_kernel.at_most = 1048576;
                gpst_clear_reason();
                test_read_init(&t, path);
                test_read_kind(reader, &t);
                test_read_check(&t, data, bytes);
                assert_string_equal(gpst_last_reason(), "");
                test_read_term(&t);
                if (kind < 3) { /* six calls with bytes, one that finds the end */
                    gpsti_a32_store(&test_kernel.calls, 0);
                    test_kernel.direct_only = false;
                    test_read_init(&t, path);
                    assert_int_equal(test_read_kind(reader, &t), n <= 7 ? GPST_ERROR_IO : GPST_OK);
                    assert_int_equal(t.read.reason[0] != 0, n <= 7);
                    test_read_term(&t);
                }
                gpst_reader_destroy(reader);
            }
    free(data);
}

/* No SIGBUS and no bytes that are not the file's: an error of the read. */
static void a_file_is_cut_short(void** state) {
    const size_t bytes = 6 * 1048576;
    unsigned char* data = test_bytes(bytes, 7);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_path(path, "cut");
    for (int kind = 0; kind < TEST_N_KINDS; kind++)
        for (uint32_t n = 1; n <= 3; n++)
            for (int whole = 0; whole < 2; whole++) {
                gpst_reader* reader = test_kind_new(kind);
                test_read t;
                if (!reader)
                    continue;
                test_file_make(path, data, bytes);
                test_kernel.at_most = 1048576;
                test_kernel.cut = path;
                test_kernel.cut_at = n;
                test_kernel.cut_to = whole ? 0 : 700001;
                test_read_init(&t, path);
                t.read.length_bytes = n == 2 ? bytes : 0;
                const gpst_result result = test_read_kind(reader, &t);
                if (kind < 3) { /* the ring may have had it all in hand */
                    assert_int_equal(result, GPST_ERROR_TRUNCATED);
                    assert_true(t.read.bytes < bytes);
                }
                assert_true(result == GPST_OK || result == GPST_ERROR_TRUNCATED);
                assert_memory_equal(t.read.data, data, t.read.bytes);
                test_read_term(&t);
                gpst_reader_destroy(reader);
            }
    free(data);
}

static const char* test_grown_path;
static gpst_result test_grow_in_reserve(gpst_read* read, size_t needed_bytes, size_t filled_bytes) {
    if (test_grown_path) { /* between the size and the first byte */
        FILE* file = fopen(test_grown_path, "ab");
        unsigned char* more = test_bytes(300000, 99);
        assert_int_equal(fwrite(more, 1, 300000, file), 300000);
        fclose(file);
        free(more);
        test_grown_path = NULL;
    }
    return test_reserve(read, needed_bytes, filled_bytes);
}

static void a_file_grows(void** state) {
    unsigned char* data = test_bytes(1300000, 8);
    unsigned char* more = test_bytes(300000, 99);
    char path[TEST_PATH_BYTES];
    (void)state;
    memcpy(data + 1000000, more, 300000);
    test_path(path, "grows");
    for (int kind = 0; kind < TEST_N_KINDS; kind++) {
        gpst_reader* reader = test_kind_new(kind);
        test_read t;
        if (!reader)
            continue;
        test_file_make(path, data, 1000000);
        test_grown_path = path;
        test_read_init(&t, path);
        t.read.reserve = test_grow_in_reserve;
        test_read_kind(reader, &t);
        test_read_check(&t, data, 1300000);
        test_read_term(&t);
        gpst_reader_destroy(reader);
    }
    free(more);
    free(data);
}

static void* test_feed_fifo(void* path) {
    FILE* file = fopen((const char*)path, "wb");
    for (int k = 0; k < 3000; k++)
        fprintf(file, "%d\n", k);
    fclose(file);
    return NULL;
}

static void what_has_no_size(void** state) {
    char path[TEST_PATH_BYTES];
    (void)state;
    assert_int_equal(mkfifo(test_path(path, "fifo"), 0600), 0);
    for (int kind = 0; kind < TEST_N_KINDS; kind++) {
        gpst_reader* reader = test_kind_new(kind);
        pthread_t feeder;
        test_read t;
        if (!reader)
            continue;
        assert_int_equal(pthread_create(&feeder, NULL, test_feed_fifo, path), 0);
        test_read_init(&t, path);
        assert_int_equal(test_read_kind(reader, &t), GPST_OK);
        pthread_join(feeder, NULL);
        assert_int_equal(t.read.bytes, 13890);
        assert_memory_equal((char*)t.read.data + 13885, "2999\n", 5);
        test_read_term(&t);
        test_read_init(&t, "/proc/self/status");
        assert_int_equal(test_read_kind(reader, &t), GPST_OK);
        assert_true(t.read.bytes > 100);
        test_read_term(&t);
        gpst_reader_destroy(reader);
    }
}

static void no_descriptor_is_left_open(void** state) {
    unsigned char* data = test_bytes(50000, 18);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_file_make(test_path(path, "open"), data, 50000);
    const unsigned before = test_directory_count("/proc/self/fd");
    for (int kind = 0; kind < TEST_N_KINDS; kind++)
        for (uint32_t fail_from = 0; fail_from < 4; fail_from++) {
            gpst_reader* reader = test_kind_new(kind);
            test_read t;
            if (!reader)
                continue;
            test_kernel.fail_from = fail_from;
            test_kernel.code = EIO;
            test_kernel.at_most = 16384;
            test_read_init(&t, path);
            test_read_kind(reader, &t);
            assert_true(gpsti_a32_load(&test_kernel.calls) >= fail_from); /* it fired */
            test_read_term(&t);
            gpst_reader_destroy(reader);
        }
    assert_int_equal(test_directory_count("/proc/self/fd"), before);
    free(data);
}

static void many_reads_at_once(void** state) {
    enum { N_FILES = 6, N_READS = 60 };
    static test_read reads[N_READS];
    unsigned char* data = test_bytes(3000000, 12);
    char paths[N_FILES][TEST_PATH_BYTES];
    (void)state;
    for (size_t f = 0; f < N_FILES; f++) {
        char name[16];
        snprintf(name, sizeof name, "many%u", (unsigned)f);
        test_file_make(test_path(paths[f], name), data + f, 2000000 + f * 4096);
    }
    for (int kind = 0; kind < TEST_N_KINDS; kind++) {
        gpst_reader* reader = test_kind_new(kind);
        if (!reader)
            continue;
        assert_int_equal(gpst_reader_set_in_flight(reader, 8), GPST_OK);
        memset(&test_kernel, 0, sizeof test_kernel);
        for (size_t r = 0; r < N_READS; r++) {
            test_read_init(&reads[r], paths[r % N_FILES]);
            assert_int_equal(gpst_reader_submit(reader, &reads[r].read), GPST_OK);
        }
        for (size_t r = 0; r < N_READS; r++) {
            test_read_wait(&reads[r]);
            test_read_check(&reads[r], data + r % N_FILES, 2000000 + r % N_FILES * 4096);
            test_read_term(&reads[r]);
        }
        gpst_reader_destroy(reader);
    }
    free(data);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_kind_gives_the_same_bytes),
                                       cmocka_unit_test(odd_calls_change_nothing),
                                       cmocka_unit_test(the_nth_call_fails),
                                       cmocka_unit_test(a_file_is_cut_short),
                                       cmocka_unit_test(a_file_grows),
                                       cmocka_unit_test(what_has_no_size),
                                       cmocka_unit_test(no_descriptor_is_left_open),
                                       cmocka_unit_test(many_reads_at_once)};
    test_ring_look();
    return cmocka_run_group_tests(tests, test_group_begin, test_group_end);
}
