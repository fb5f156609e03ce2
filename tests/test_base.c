/* tests/test_base.c -- results, reasons, logging, counted allocation and
   checked sizes. */
#include "test.h"

#include "test_allocator.h"

#include <locale.h>
#include <unistd.h>

/* ---- results ------------------------------------------------------------------ */

typedef struct test_named {
    gpst_result result;
    const char* name;
} test_named;

static const test_named test_results[] = {
#define GPSTI_X(name, value, text) {name, #name},
    GPSTI_RESULTS(GPSTI_X)
#undef GPSTI_X
};
#define TEST_N_RESULTS (sizeof test_results / sizeof test_results[0])

static void test_result_names(void** state) {
    (void)state;
    for (size_t i = 0; i < TEST_N_RESULTS; i++) {
        const gpst_result result = test_results[i].result;
        assert_string_equal(gpst_result_name(result), test_results[i].name);
        assert_true(strlen(gpst_result_text(result)) > 3);
        assert_int_equal(GPST_FAILED(result), strncmp(test_results[i].name, "GPST_ERROR_", 11) == 0);
        for (size_t k = 0; k < i; k++) {
            assert_int_not_equal((int)test_results[k].result, (int)result);
            assert_string_not_equal(gpst_result_text(test_results[k].result), gpst_result_text(result));
        }
    }
    assert_string_equal(gpst_result_name((gpst_result)-99), "unknown result");
    assert_string_equal(gpst_result_text((gpst_result)-99), "not a result of this version");
    /* never renumbered */
    assert_int_equal(GPST_ERROR_ARGUMENT, -1);
    assert_int_equal(GPST_ERROR_MEMORY, -20);
    assert_int_equal(GPST_ERROR_IO, -40);
    assert_int_equal(GPST_ERROR_DEVICE, -60);
    assert_int_equal(GPST_ERROR_INTERNAL, -100);
}

static void test_version(void** state) {
    char text[32];
    (void)state;
    gpsti_format(text, sizeof text, "%u.%u.%u", gpst_version() / 10000, gpst_version() / 100 % 100,
                 gpst_version() % 100);
    assert_string_equal(text, GPST_VERSION_TEXT);
    assert_non_null(strstr(gpst_build_info(), "gpustage " GPST_VERSION_TEXT "; "));
    assert_non_null(strstr(gpst_build_info(), "backends: cpu"));
    assert_non_null(strstr(gpst_build_info(), "sanitizer: "));
    assert_ptr_equal(gpst_build_info(), gpst_build_info());
}

/* ---- reasons ------------------------------------------------------------------ */

static void test_reason_thread(void* arg) {
    const bool empty = !*gpst_last_reason();
    (void)gpsti_fail(GPST_ERROR_IO, "of the %s", "thread");
    *(bool*)arg = empty && strcmp(gpst_last_reason(), "of the thread") == 0;
}

static void test_reasons(void** state) {
    gpsti_thread thread;
    bool seen = false;
    char longer[2 * GPSTI_REASON_BYTES];
    (void)state;
    gpst_clear_reason();
    assert_string_equal(gpst_last_reason(), "");
    assert_int_equal(gpsti_fail(GPST_ERROR_FORMAT, "f: n=%d: rule", 3), GPST_ERROR_FORMAT);
    assert_string_equal(gpst_last_reason(), "f: n=3: rule");
    assert_int_equal(gpsti_thread_start(&thread, test_reason_thread, &seen, "reason"), GPST_OK);
    gpsti_thread_join(&thread);
    assert_true(seen);
    assert_string_equal(gpst_last_reason(), "f: n=3: rule"); /* another thread's failure is its own */
    assert_int_equal(gpsti_fail_in(GPST_ERROR_IO, "outer"), GPST_ERROR_IO);
    assert_string_equal(gpst_last_reason(), "outer: f: n=3: rule");
    (void)gpsti_fail(GPST_ERROR_IO, "<%s>", gpst_last_reason());
    assert_string_equal(gpst_last_reason(), "<outer: f: n=3: rule>");
    memset(longer, 'x', sizeof longer);
    longer[sizeof longer - 1] = 0;
    (void)gpsti_fail(GPST_ERROR_IO, "open \"%s\": no such file", longer); /* a name does not take its end away */
    assert_int_equal(strlen(gpst_last_reason()), GPSTI_REASON_BYTES - 1);
    assert_memory_equal(gpst_last_reason(), "open \"xxx", 9);
    assert_non_null(strstr(gpst_last_reason(), "xxx...xxx"));
    assert_string_equal(strstr(gpst_last_reason(), "\": "), "\": no such file");
    gpst_clear_reason();
    assert_string_equal(gpst_last_reason(), "");
}

static gpst_result test_macros(int value) {
    GPSTI_FAIL_IF(value == 1, GPST_ERROR_ARGUMENT, "test_macros: value=%d: must not be 1", value);
    GPSTI_TRY(value == 2 ? gpsti_fail(GPST_ERROR_STATE, "two") : GPST_PARTIAL);
    return GPST_OK;
}

static void test_fail_macros(void** state) {
    (void)state;
    assert_int_equal(test_macros(1), GPST_ERROR_ARGUMENT);
    assert_string_equal(gpst_last_reason(), "test_macros: value=1: must not be 1");
    assert_int_equal(test_macros(2), GPST_ERROR_STATE);
    assert_int_equal(test_macros(3), GPST_OK); /* a positive result is no failure */
    assert_string_equal(gpst_last_reason(), "two");
}

static void test_desc_checks(void** state) {
    (void)state;
    assert_int_equal(gpsti_check_version("f", GPST_VERSION, 8, 8), GPST_OK);
    assert_int_equal(gpsti_check_version("f", GPST_VERSION + 1, 8, 8), GPST_ERROR_VERSION);
    test_reason_has("version=101 desc_bytes=8", "version 100 with 8");
    assert_int_equal(gpsti_check_version("f", GPST_VERSION, 9, 8), GPST_ERROR_VERSION);
    test_reason_has("desc_bytes=9", "with 8");
    assert_int_equal(gpsti_check_canaries("f", 0, 0), GPST_OK);
    assert_int_equal(gpsti_check_canaries("f", 1, 0), GPST_ERROR_ARGUMENT);
    test_reason_has("desc.start_canary=1", "f: ");
    assert_int_equal(gpsti_check_canaries("f", 0, 7), GPST_ERROR_ARGUMENT);
    test_reason_has("desc.end_canary=7", "f: ");
}

/* ---- text ----------------------------------------------------------------------- */

static void test_text(void** state) {
    char text[8];
    (void)state;
    memset(text, 0xA5, sizeof text);
    gpsti_copy_text(text, sizeof text, "1234567");
    assert_string_equal(text, "1234567");
    gpsti_copy_text(text, sizeof text, "12345678");
    assert_string_equal(text, "1234567");
    gpsti_copy_text(text, 1, "12345678");
    assert_string_equal(text, "");
    gpsti_format(text, sizeof text, "%s", "12345678");
    assert_string_equal(text, "1234567");
}

static void test_locale(void** state) {
    static const char* const names[] = {"de_DE.UTF-8", "de_DE.utf8", "de_DE", "fr_FR.UTF-8", "fr_FR.utf8"};
    const char* set = NULL;
    char text[32];
    char plain[32];
    (void)state;
    for (size_t i = 0; !set && i < sizeof names / sizeof names[0]; i++)
        set = setlocale(LC_ALL, names[i]);
    gpsti_format(text, sizeof text, "%.2f", 0.5);
    (void)snprintf(plain, sizeof plain, "%.2f", 0.5);
    (void)setlocale(LC_ALL, "C");
    assert_string_equal(text, "0.50");
    if (!set)
        print_message("no locale with a decimal comma is installed: only the C locale was tried\n");
    else
        assert_string_equal(plain, "0,50"); /* and the process's own locale is as it was */
}

/* ---- sizes ---------------------------------------------------------------------- */

static void test_sizes(void** state) {
    const size_t most = SIZE_MAX / 2;
    size_t out = 77;
    (void)state;
    assert_true(gpsti_size_add(most, 0, &out) && out == most);
    assert_true(gpsti_size_add(most - 1, 1, &out) && out == most);
    assert_true(gpsti_size_add(0, 0, &out) && out == 0);
    out = 77;
    assert_false(gpsti_size_add(most, 1, &out));
    assert_false(gpsti_size_add(1, most, &out));
    assert_false(gpsti_size_add(most + 1, 0, &out));
    assert_false(gpsti_size_add(0, most + 1, &out));
    assert_false(gpsti_size_add(SIZE_MAX, SIZE_MAX, &out));
    assert_false(gpsti_size_mul(most, 2, &out));
    assert_false(gpsti_size_mul(2, most, &out));
    assert_false(gpsti_size_mul(SIZE_MAX, 1, &out));
    assert_false(gpsti_size_mul(1, SIZE_MAX, &out));
    assert_false(gpsti_size_mul((size_t)1 << (sizeof(size_t) * 4), (size_t)1 << (sizeof(size_t) * 4), &out));
    assert_false(gpsti_size_round_up(most, 0, &out));
    assert_false(gpsti_size_round_up(most, 4096, &out));
    assert_false(gpsti_size_round_up(SIZE_MAX, 2, &out));
    assert_int_equal(out, 77); /* untouched by every refusal */
    assert_true(gpsti_size_mul(most, 1, &out) && out == most);
    assert_true(gpsti_size_mul(most / 3, 3, &out) && out == most / 3 * 3);
    assert_true(gpsti_size_mul(0, SIZE_MAX, &out) && out == 0);
    assert_true(gpsti_size_mul(SIZE_MAX, 0, &out) && out == 0);
    assert_true(gpsti_size_round_up(0, 4096, &out) && out == 0);
    assert_true(gpsti_size_round_up(1, 4096, &out) && out == 4096);
    assert_true(gpsti_size_round_up(4096, 4096, &out) && out == 4096);
    assert_true(gpsti_size_round_up(7, 3, &out) && out == 9);
}

static void test_sizes_random(void** state) {
    uint64_t seed = test_seed(7);
    (void)state;
    for (int i = 0; i < 200000; i++) {
        const size_t a = (size_t)(test_random(&seed) >> (test_random(&seed) & 63));
        const size_t b = (size_t)(test_random(&seed) >> (test_random(&seed) & 63));
        size_t out = 0, product = 0;
        const bool product_fits = !__builtin_mul_overflow(a, b, &product) && product <= SIZE_MAX / 2;
        const bool sum_fits = a <= SIZE_MAX / 2 && b <= SIZE_MAX / 2 && a + b <= SIZE_MAX / 2;
        assert_int_equal(gpsti_size_mul(a, b, &out), product_fits);
        assert_true(!product_fits || out == product);
        assert_int_equal(gpsti_size_add(a, b, &out), sum_fits);
        assert_true(!sum_fits || out == a + b);
    }
}

/* ---- allocation and logging -------------------------------------------------------- */

static void test_allocation(void** state) {
    test_memory memory;
    gpsti_host host;
    const gpst_allocator hooks = test_memory_hooks(&memory);
    (void)state;
    gpsti_host_init(&host, &hooks, NULL);
    assert_int_equal(host.pid, gpsti_pid());
    for (size_t bytes = 0; bytes < 700; bytes += 69) {
        uint8_t* ptr = (uint8_t*)gpsti_alloc(&host, bytes); /* the hook fills with 0xA5 */
        assert_non_null(ptr);
        assert_int_equal((uintptr_t)ptr % GPSTI_CACHE_LINE, 0);
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(ptr[i], 0);
        assert_int_equal(gpsti_a64_load(&host.live_bytes), gpsti_a64_load(&memory.live_bytes));
        gpsti_free(&host, ptr, bytes);
    }
    char* copy = gpsti_copy_string(&host, "text");
    assert_string_equal(copy, "text");
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 5);
    gpsti_free(&host, copy, strlen(copy) + 1);
    gpsti_free(&host, NULL, 100);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
    assert_int_equal(gpsti_a64_load(&host.allocation_count), gpsti_a64_load(&memory.calls));
    test_memory_refuse(&memory, 1);
    assert_null(gpsti_alloc(&host, 123));
    test_reason_has("bytes=123", "out of memory");
    assert_null(gpsti_alloc(&host, SIZE_MAX)); /* never reaches the hook */
    assert_true(test_memory_refused(&memory));
    test_memory_check(&memory);
}

static char test_odd_block[1024];
static int test_odd_frees;
static void* test_odd_alloc(void* user_data, size_t bytes, size_t align_bytes) {
    (void)user_data;
    (void)bytes;
    (void)align_bytes;
    return test_odd_block + 1 + (0 - (uintptr_t)test_odd_block) % GPSTI_CACHE_LINE;
}
static void test_odd_free(void* user_data, void* ptr, size_t bytes) {
    (void)user_data;
    (void)ptr;
    (void)bytes;
    test_odd_frees++;
}

static void test_misaligned_allocator(void** state) {
    const gpst_allocator hooks = {test_odd_alloc, test_odd_free, NULL};
    gpsti_host host;
    (void)state;
    gpsti_host_init(&host, &hooks, NULL);
    assert_null(gpsti_alloc(&host, 64));
    test_reason_has("allocator.alloc", "aligned");
    assert_int_equal(test_odd_frees, 1);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
}

static void test_default_allocator(void** state) {
    gpsti_host host;
    (void)state;
    gpsti_host_init(&host, NULL, NULL);
    void* ptr = gpsti_alloc(&host, 100);
    assert_non_null(ptr);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 100);
    gpsti_free(&host, ptr, 100);
    assert_int_equal(gpsti_a64_load(&host.live_bytes), 0);
}

static void test_logging(void** state) {
    test_log log;
    gpst_logger logger = test_log_hooks(&log);
    gpsti_host host;
    (void)state;
    gpsti_host_init(&host, NULL, &logger);
    const int line = __LINE__ + 1;
    GPSTI_LOG(&host, GPST_LOG_ERROR, 7, "item %d", 7);
    assert_string_equal(log.last, "item 7");
    assert_int_equal(log.item_index, 7);
    assert_int_equal(log.line, line);
    GPSTI_LOG(&host, GPST_LOG_WARNING, GPSTI_NO_ITEM, "w %d", 1);
    assert_true(log.item_index == UINT64_MAX);
    GPSTI_LOG(&host, GPST_LOG_INFO, GPSTI_NO_ITEM, "i %d", 1);
    GPSTI_LOG(&host, GPST_LOG_DEBUG, GPSTI_NO_ITEM, "d %d", 1);
    assert_int_equal(gpsti_a32_load(&log.n_errors), 1);
    assert_int_equal(gpsti_a32_load(&log.n_warnings), 1);
    assert_int_equal(gpsti_a32_load(&log.n_others), 0);
    host.logger.threshold = GPST_LOG_DEBUG;
    GPSTI_LOG(&host, GPST_LOG_DEBUG, GPSTI_NO_ITEM, "d %d", 1);
    assert_int_equal(gpsti_a32_load(&log.n_others), 1);
    host.logger.threshold = GPST_LOG_ERROR;
    GPSTI_LOG(&host, GPST_LOG_WARNING, GPSTI_NO_ITEM, "w %d", 1);
    assert_int_equal(gpsti_a32_load(&log.n_warnings), 1);
}

/* Errors and warnings go to stderr, more does not. */
static void test_default_logger(void** state) {
    gpsti_host host;
    char text[512];
    FILE* file = tmpfile();
    (void)state;
    assert_non_null(file);
    gpsti_host_init(&host, NULL, NULL);
    (void)fflush(stderr);
    const int kept = dup(2);
    assert_true(kept >= 0 && dup2(fileno(file), 2) == 2);
    GPSTI_LOG(&host, GPST_LOG_ERROR, 3, "bad %s", "thing");
    GPSTI_LOG(&host, GPST_LOG_WARNING, GPSTI_NO_ITEM, "odd %s", "thing");
    GPSTI_LOG(&host, GPST_LOG_INFO, GPSTI_NO_ITEM, "quiet %s", "thing");
    (void)fflush(stderr);
    assert_int_equal(dup2(kept, 2), 2);
    (void)close(kept);
    rewind(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    (void)fclose(file);
    assert_string_equal(text, "gpustage: error: item 3: bad thing\ngpustage: warning: odd thing\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_result_names),
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_reasons),
        cmocka_unit_test(test_fail_macros),
        cmocka_unit_test(test_desc_checks),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_sizes_random),
        cmocka_unit_test(test_allocation),
        cmocka_unit_test(test_misaligned_allocator),
        cmocka_unit_test(test_default_allocator),
        cmocka_unit_test(test_logging),
        cmocka_unit_test(test_default_logger),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
