/* tests/test_warp.h -- warps that must be made and run: what goes wrong fails the test with the library's reason. */
#ifndef GPST_TEST_WARP_H
#define GPST_TEST_WARP_H

#include "test.h"

static inline gpst_warp* make_warp(const gpst_warp_desc* desc) {
    gpst_warp* warp = NULL;
    if (GPST_FAILED(gpst_warp_create(desc, &warp)))
        fail_msg("%s", gpst_last_reason());
    return warp;
}

/* Runs a warp of one output into data, all of which is 0xa5 before. */
static inline void run_warp(const gpst_warp* warp, const gpst_image* source, void* data, size_t bytes) {
    gpst_image output = GPST_ZERO;
    gpst_warp_query_output(warp, &output);
    output.data = data;
    memset(data, 0xa5, bytes);
    if (GPST_FAILED(gpst_warp_run(warp, source, &output, 1, 1)))
        fail_msg("%s", gpst_last_reason());
}

/* Makes it, runs it and destroys it. */
static inline void run_desc(const gpst_warp_desc* desc, const gpst_image* source, void* data, size_t bytes) {
    gpst_warp* const warp = make_warp(desc);
    run_warp(warp, source, data, bytes);
    gpst_warp_destroy(warp);
}

/* It cannot be made, and the reason has that sentence. */
static inline void expect_rule(const gpst_warp_desc* desc, const char* sentence) {
    gpst_warp* warp = NULL;
    assert_int_equal(gpst_warp_create(desc, &warp), GPST_ERROR_ARGUMENT);
    if (!strstr(gpst_last_reason(), sentence))
        fail_msg("\"%s\", not \"%s\"", gpst_last_reason(), sentence);
}

#endif
