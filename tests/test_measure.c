/* tests/test_measure.c -- what can be measured is, within its time, and what
   cannot says why. No figure is judged: machines differ. */
#include "test_reader.h"
#if !defined(GPST_TEST_AMALGAM)
#include "../core/machine/measure.h"
#endif

static void memory_and_disk(void** state) {
    gpst_measure_info info;
    gpst_context_info before, after;
    unsigned char* data = test_bytes(9000000, 1);
    char path[TEST_PATH_BYTES];
    (void)state;
    test_file_make(test_path(path, "measured"), data, 9000000);
    memset(&info, 0xA5, sizeof info);
    gpst_context_query_info(test_context, &before);
    gpsti_fail(GPST_ERROR_IO, "%s", "earlier");
    assert_int_equal(gpst_measure(test_context, path, 120000000, &info), GPST_OK);
    assert_string_equal(gpst_last_reason(), "earlier");
    gpst_context_query_info(test_context, &after);
    printf("memcpy %.1f GB/s; read %.2f, %.2f with %u, %s %s; device: %s; %.0f ms\n", info.memcpy_gbps,
           info.read_one_gbps, info.read_many_gbps, info.n_reads, info.read_direct ? "direct" : "buffered",
           info.read_reason, info.device_reason, (double)info.duration_ns * 1e-6);
    assert_true(info.memcpy_gbps > 0 && info.read_one_gbps > 0 && info.read_many_gbps > 0);
    assert_int_equal(info.read_direct, info.read_reason[0] == 0);
    assert_non_null(strstr(info.device_reason, "host memory"));
    assert_true(info.h2d_pinned_gbps == 0 && info.launch_us == 0);
    assert_true(info.duration_ns >= 60000000); /* three of six parts */
    assert_int_equal(after.live_bytes, before.live_bytes);
    free(data);
}

static void what_cannot_be_measured_says_why(void** state) {
    gpst_measure_info info;
    char path[TEST_PATH_BYTES];
    (void)state;
    assert_int_equal(gpst_measure(test_context, NULL, 6000000, &info), GPST_OK);
    assert_string_equal(info.read_reason, "no path was given");
    assert_true(info.read_one_gbps == 0);
    assert_int_equal(gpst_measure(test_context, test_path(path, "nowhere"), 6000000, &info), GPST_OK);
    assert_non_null(strstr(info.read_reason, "nowhere"));
    test_file_make(test_path(path, "little"), "x", 1);
    assert_int_equal(gpst_measure(test_context, path, 6000000, &info), GPST_OK);
    assert_non_null(strstr(info.read_reason, "8 MiB"));
    assert_int_equal(gpst_measure(test_context, NULL, -1, &info), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_measure(NULL, NULL, 0, &info), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_measure(test_context, NULL, 0, NULL), GPST_ERROR_ARGUMENT);
}

/* The simulated device has the rates that it was given. */
static void a_device(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_measure_info info;
    (void)state;
    desc.n_workers = 1;
    desc.backend = "sim:h2d_gbps=4";
    assert_int_equal(gpst_context_create(&desc, &context), GPST_OK);
    assert_int_equal(gpst_measure(context, NULL, 60000000, &info), GPST_OK);
    printf("sim of 4 GB/s: pinned %.2f, pageable %.2f GB/s, launch %.1f us %s\n", info.h2d_pinned_gbps,
           info.h2d_pageable_gbps, info.launch_us, info.device_reason);
    assert_string_equal(info.device_reason, "");
    assert_true(info.h2d_pinned_gbps > 0 && info.h2d_pinned_gbps < 4.4);
    assert_true(info.h2d_pageable_gbps > 0 && info.launch_us > 0);
    gpst_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(memory_and_disk),
                                       cmocka_unit_test(what_cannot_be_measured_says_why),
                                       cmocka_unit_test(a_device)};
    return cmocka_run_group_tests(tests, test_group_begin, test_group_end);
}
