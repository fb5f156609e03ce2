/* tests/test_window.c -- when a window of items is full, what its noise is, and how many items fit into memory: times
   and bytes in, numbers out. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/tuning/window_internal.h"
#endif

#define MS ((int64_t)1000000)

/* 100 ms at least, and four blocks of four items, or of as many as are worked on side by side. */
static void test_when_a_window_is_full(void** state) {
    (void)state;
    static const struct {
        uint32_t n_parallel;
        double item_ms[2]; /* of the items of every other block */
        uint64_t n_items;  /* then the window is full */
        double noise;
    } cases[] = {{1, {1, 1}, 100, 0},  {2, {0.1, 0.1}, 1000, 0},   {2, {30, 30}, 16, 0},
                 {8, {30, 30}, 32, 0}, {2, {20, 40}, 16, 0.19245}, {2, {50, 51}, 16, 0.005717}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const uint64_t block = cases[i].n_parallel < 4 ? 4 : cases[i].n_parallel;
        gpsti_window window;
        int64_t now_ns = 21 * MS;
        uint64_t n = 0;
        bool full = false;
        gpsti_window_open(&window, now_ns);
        assert_float_equal((float)gpsti_window_noise(&window), 1.0f, 0); /* nothing is known yet */
        while (!full && n < 10000) {
            now_ns += (int64_t)(cases[i].item_ms[n++ / block % 2] * (double)MS);
            full = gpsti_window_add(&window, now_ns, cases[i].n_parallel);
        }
        assert_int_equal(n, cases[i].n_items);
        assert_int_equal(window.n_items, n);
        assert_int_equal(window.start_ns, 21 * MS);
        assert_float_equal((float)gpsti_window_noise(&window), (float)cases[i].noise, 1e-4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_when_a_window_is_full)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
