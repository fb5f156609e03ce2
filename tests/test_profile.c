/* tests/test_profile.c -- histograms, clocks, busy time and the verdict against
   numbers worked out by hand. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/stats/profile_internal.h"
#endif

static void assert_near(double value, double wanted) {
    if (value < wanted - 1e-9 || value > wanted + 1e-9)
        fail_msg("%.12g is not %.12g", value, wanted);
}

/* ---- histogram ------------------------------------------------------------------- */

static gpsti_histogram histogram;

static void fill(const int64_t* values, size_t n) {
    memset(&histogram, 0, sizeof histogram);
    for (size_t i = 0; i < n; i++)
        gpsti_histogram_add(&histogram, values[i]);
}

static void test_histogram_is_exact_when_small(void** state) {
    (void)state;
    int64_t values[32];
    for (int i = 0; i < 32; i++) /* up to 31 every value has its own bucket */
        values[i] = 31 - i;
    fill(values, 32);
    assert_int_equal(histogram.count, 32);
    assert_int_equal(histogram.max_ns, 31);
    for (int i = 0; i < 32; i++)
        assert_int_equal(gpsti_histogram_quantile(&histogram, (i + 1) / 32.0), i);
}

static void test_histogram_edges(void** state) {
    (void)state;
    memset(&histogram, 0, sizeof histogram);
    assert_int_equal(gpsti_histogram_quantile(&histogram, 0.5), 0);
    const int64_t odd[] = {-5, 0, INT64_MAX};
    fill(odd, 3);
    assert_int_equal(gpsti_histogram_quantile(&histogram, 0.5), 0);
    assert_int_equal(histogram.max_ns, INT64_MAX);
    assert_true(gpsti_histogram_quantile(&histogram, 1.0) > (int64_t)1
                                                                << 46); /* the last bucket: over a day */
}

static int compare_ns(const void* a, const void* b) {
    const int64_t x = *(const int64_t*)a, y = *(const int64_t*)b;
    return x < y ? -1 : x > y;
}

/* Never below the true quantile, and above it by at most 1/16. */
static void test_histogram_quantiles_are_within_a_sixteenth(void** state) {
    (void)state;
    static int64_t values[2000];
    static const double fractions[] = {0.001, 0.5, 0.9, 0.99, 0.999, 1.0};
    uint64_t random = test_seed(17);
    for (uint32_t shift = 24; shift < 60; shift += 5) {
        for (size_t i = 0; i < 2000; i++)
            values[i] = (int64_t)(test_random(&random) >> shift >> (test_random(&random) % 20));
        fill(values, 2000);
        qsort(values, 2000, sizeof values[0], compare_ns);
        for (size_t f = 0; f < sizeof fractions / sizeof fractions[0]; f++) {
            const size_t rank =
                (size_t)(fractions[f] * 2000.0 + 0.999999); /* how many values are not above it */
            const int64_t exact = values[rank - 1];
            const int64_t got = gpsti_histogram_quantile(&histogram, fractions[f]);
            if (got < exact || got - exact > exact / 16 + 1)
                fail_msg("quantile %g: %lld, exactly %lld", fractions[f], (long long)got, (long long)exact);
        }
    }
}

/* ---- clocks ------------------------------------------------------------------------ */

static gpsti_clock stage;

static void test_clock_report(void** state) {
    (void)state;
    gpst_stage_stats stats;
    memset(&stage, 0, sizeof stage);
    memset(&stats, 0xA5, sizeof stats);
    gpsti_copy_text(stage.name, sizeof stage.name, "decode");
    stage.resource = GPST_RESOURCE_CPU;
    gpsti_clock_add(&stage, 10, 1, 100, false);
    gpsti_clock_add(&stage, 30, 2, 200, true);
    gpsti_clock_add(&stage, 20, 3, 300, false);
    gpsti_clock_report(&stage, 120, &stats);
    assert_string_equal(stats.name, "decode");
    assert_int_equal(stats.resource, GPST_RESOURCE_CPU);
    assert_int_equal(stats.count, 3);
    assert_int_equal(stats.failed, 1);
    assert_int_equal(stats.bytes, 600);
    assert_int_equal(stats.busy_ns, 60);
    assert_int_equal(stats.wait_ns, 6);
    assert_int_equal(stats.p50_ns, 20);
    assert_int_equal(stats.p99_ns, 30);
    assert_int_equal(stats.max_ns, 30);
    assert_near(stats.occupancy, 0.5);
    gpsti_clock_report(&stage, 0, &stats);
    assert_near(stats.occupancy, 0.0);
}

/* Not timed, a service is taken for one like the latest; it is in no percentile. */
static void test_clock_takes_services_for_usual(void** state) {
    (void)state;
    gpst_stage_stats stats;
    memset(&stage, 0, sizeof stage);
    gpsti_clock_add_untimed(&stage, 1, 10); /* nothing is known of any */
    gpsti_clock_add(&stage, 800, 2, 20, false);
    gpsti_clock_add_untimed(&stage, 3, 30);
    gpsti_clock_add(&stage, 1600, 0, 0, false); /* the usual one moves by an eighth of the difference */
    gpsti_clock_add(&stage, 0, 0, 0, true);     /* a failure says nothing */
    gpsti_clock_add_untimed(&stage, 0, 0);
    gpsti_clock_report(&stage, 10000, &stats);
    assert_int_equal(stats.count, 6);
    assert_int_equal(stats.timed, 3);
    assert_int_equal(stats.busy_ns, 0 + 800 + 800 + 1600 + 0 + 900);
    assert_int_equal(stats.wait_ns, 6);
    assert_int_equal(stats.bytes, 60);
    assert_int_equal(stats.max_ns, 1600);
}

/* 5 of 10 ns were sampled and used 4 ns of CPU: the whole used 8. */
static void test_clock_scales_sampled_cpu_time(void** state) {
    (void)state;
    memset(&stage, 0, sizeof stage);
    assert_int_equal(gpsti_clock_cpu_ns(&stage), 0);
    gpsti_clock_add(&stage, 5, 0, 0, false);
    gpsti_clock_add_cpu(&stage, 4, 5);
    gpsti_clock_add(&stage, 5, 0, 0, false);
    assert_int_equal(gpsti_clock_cpu_ns(&stage), 8);
}

static void test_busy_is_the_union(void** state) {
    (void)state;
    gpsti_busy busy = GPST_ZERO;
    gpsti_busy_add(&busy, 100, 200);
    assert_int_equal(busy.busy_ns, 100);
    gpsti_busy_add(&busy, 150, 250); /* overlaps */
    assert_int_equal(busy.busy_ns, 150);
    gpsti_busy_add(&busy, 160, 240); /* inside */
    assert_int_equal(busy.busy_ns, 150);
    gpsti_busy_add(&busy, 300, 310); /* after a gap */
    assert_int_equal(busy.busy_ns, 160);
    gpsti_busy_add(&busy, 310, 310); /* nothing */
    assert_int_equal(busy.busy_ns, 160);
    gpsti_busy_add(&busy, 240, 305); /* late, and closes the gap */
    assert_int_equal(busy.busy_ns, 210);
    gpsti_busy_add(&busy, 50, 60); /* later still */
    assert_int_equal(busy.busy_ns, 220);
}

static void test_busy_is_closed(void** state) {
    (void)state;
    gpsti_busy busy = GPST_ZERO;
    for (int64_t i = 0; i < GPSTI_BUSY_STRETCHES; i++)
        gpsti_busy_add(&busy, 100 * i, 100 * i + 10);
    gpsti_busy_close(&busy, 505); /* what it has is counted once, before that and after */
    gpsti_busy_close(&busy, 400); /* it is never opened again */
    assert_int_equal(busy.busy_ns, 160);
    gpsti_busy_add(&busy, 0, 505);
    assert_int_equal(busy.busy_ns, 160);
    gpsti_busy_add(&busy, 0, 520); /* 505 to 520, of which there was 505 to 510 */
    assert_int_equal(busy.busy_ns, 170);
    gpsti_busy_add(&busy, 1490, 1520); /* around the last one that it has */
    assert_int_equal(busy.busy_ns, 190);
    for (int64_t i = 20; i < 40; i++)
        gpsti_busy_add(&busy, 100 * i, 100 * i + 10);
    assert_int_equal(busy.busy_ns, 390);
    gpsti_busy_add(&busy, 400, 510);
    assert_int_equal(busy.busy_ns, 390);
}

/* Any order within the stretches that are kept; what comes later than that counts as counted. */
static void test_busy_in_any_order(void** state) {
    (void)state;
    uint64_t random = test_seed(5);
    static bool covered[4000];
    gpsti_busy busy = GPST_ZERO;
    int64_t exact = 0;
    memset(covered, 0, sizeof covered);
    for (int i = 0; i < 350; i++) { /* starts wander forward, back by up to 20 */
        const int64_t start = i * 10 + (int64_t)(test_random(&random) % 20);
        const int64_t end = start + (int64_t)(test_random(&random) % 30);
        gpsti_busy_add(&busy, start, end);
        for (int64_t t = start; t < end; t++) {
            exact += covered[t] ? 0 : 1;
            covered[t] = true;
        }
    }
    assert_int_equal(busy.busy_ns, exact);
    memset(&busy, 0, sizeof busy);
    for (int64_t i = 0; i < 40; i++)
        gpsti_busy_add(&busy, 100 * i, 100 * i + 10);
    assert_int_equal(busy.busy_ns, 400);
    gpsti_busy_add(&busy, 50, 60);
    assert_int_equal(busy.busy_ns, 400);
    gpsti_busy_add(&busy, 0, 3950);
    assert_int_equal(busy.busy_ns, 400 + (3950 - 2310) - 160);
}

/* ---- verdict ------------------------------------------------------------------------- */

static gpst_verdict verdict_of(uint64_t n_items, int64_t wall_ns, int64_t alone_ns, int64_t disk_in,
                               int64_t cpu, int64_t gpu) {
    gpsti_verdict_input input;
    gpst_verdict verdict;
    memset(&input, 0, sizeof input);
    memset(&verdict, 0xA5, sizeof verdict);
    input.n_items = n_items;
    input.wall_ns = wall_ns;
    input.alone_ns = alone_ns;
    input.demand_ns[GPST_RESOURCE_DISK_IN] = disk_in;
    input.demand_ns[GPST_RESOURCE_CPU] = cpu;
    input.demand_ns[GPST_RESOURCE_GPU] = gpu;
    gpsti_verdict_make(&input, &verdict);
    return verdict;
}

/* 100 items of 10 ms on disk, 2 on the CPU, 0.1 on the GPU, 1.02 s in all: one item alone takes 12.1 ms, so the
   bound is 1000 + 2.1 ms. Without the disk 200 ms would remain. */
static void test_verdict_disk_bound(void** state) {
    (void)state;
    const gpst_verdict v = verdict_of(100, 1020000000, 12100000, 1000000000, 200000000, 10000000);
    assert_int_equal(v.bound, GPST_RESOURCE_DISK_IN);
    assert_near(v.bound_s, 1.0021);
    assert_near(v.efficiency, 1.0021 / 1.02);
    assert_near(v.share[GPST_RESOURCE_DISK_IN], 1.0 / 1.02);
    assert_near(v.share[GPST_RESOURCE_CPU], 0.2 / 1.02);
    assert_near(v.share[GPST_RESOURCE_GPU], 0.01 / 1.02);
    assert_near(v.share[GPST_RESOURCE_H2D], 0.0);
    assert_near(v.cap[GPST_RESOURCE_DISK_IN], 5.1);
    assert_near(v.cap[GPST_RESOURCE_CPU], 1.02); /* the disk remains */
    assert_near(v.cap[GPST_RESOURCE_GPU], 1.02);
    assert_string_equal(v.text, "disk_in-bound: disk_in busy 98 %, cpu 19.6 %, gpu 1.0 %; "
                                "without any disk_in cost at most 5.10x; 98.2 % of the bound reached");
}

/* 10 items: 900 of 1000 ms on the CPU, 500 on the disk; alone 150 ms, so the bound is 900 + 60. */
static void test_verdict_cpu_bound(void** state) {
    (void)state;
    const gpst_verdict v = verdict_of(10, 1000000000, 150000000, 500000000, 900000000, 0);
    assert_int_equal(v.bound, GPST_RESOURCE_CPU);
    assert_near(v.bound_s, 0.96);
    assert_near(v.efficiency, 0.96);
    assert_near(v.cap[GPST_RESOURCE_CPU], 2.0);
    assert_near(v.cap[GPST_RESOURCE_DISK_IN], 1.0 / 0.9);
    assert_string_equal(v.text, "cpu-bound: cpu busy 90 %, disk_in 50.0 %; "
                                "without any cpu cost at most 2.00x; 96.0 % of the bound reached");
}

static void test_verdict_latency_bound(void** state) {
    (void)state;
    const gpst_verdict v = verdict_of(10, 1000000000, 0, 300000000, 700000000, 100000000);
    assert_int_equal(v.bound, GPST_RESOURCE_NONE); /* 70 % is not above 70 % */
    assert_near(v.efficiency, 0.7);
    assert_near(v.cap[GPST_RESOURCE_CPU], 1.0 / 0.3);
    assert_memory_equal(v.text, "latency-bound: cpu busy 70 %", 28);
    assert_int_equal(verdict_of(10, 1000000000, 0, 0, 700000001, 0).bound, GPST_RESOURCE_CPU);
}

/* One item is all fill and drain: its bound is its way alone. */
static void test_verdict_of_one_item(void** state) {
    (void)state;
    const gpst_verdict v = verdict_of(1, 10000000, 8000000, 2000000, 5000000, 1000000);
    assert_near(v.bound_s, 0.008);
    assert_near(v.efficiency, 0.8);
}

/* Clocks that disagree a little, or that nobody waits for, must not give more than 100 %, nor a gain below 1. */
static void test_verdict_is_clamped(void** state) {
    (void)state;
    const gpst_verdict v = verdict_of(4, 1000, 900, 1100, 1200, 0);
    assert_near(v.efficiency, 1.0);
    assert_near(v.share[GPST_RESOURCE_CPU], 1.0);
    assert_near(v.share[GPST_RESOURCE_DISK_IN], 1100.0 / 1200.0);
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++)
        assert_near(v.cap[r], r == GPST_RESOURCE_CPU ? 1200.0 / 1100.0 : 1.0);
    const gpst_verdict alone =
        verdict_of(4, 1000, 250, 0, 1000, 0); /* nothing else costs anything measured */
    assert_near(alone.cap[GPST_RESOURCE_CPU], 1000.0);
    assert_near(alone.cap[GPST_RESOURCE_GPU], 1.0);
}

static void test_verdict_of_nothing(void** state) {
    (void)state;
    const gpst_verdict none[] = {verdict_of(0, 1000, 0, 0, 10, 0), verdict_of(5, 0, 0, 0, 10, 0),
                                 verdict_of(5, 1000, 0, 0, 0, 0)};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(none[i].bound, GPST_RESOURCE_NONE);
        assert_near(none[i].efficiency, 0.0);
        assert_near(none[i].cap[GPST_RESOURCE_CPU], 1.0);
        assert_string_equal(none[i].text, "no verdict: nothing was processed");
    }
}

/* The longest text there can be is cut between its parts, never run over. */
static void test_verdict_text_fits(void** state) {
    (void)state;
    gpsti_verdict_input input;
    gpst_verdict verdict;
    memset(&input, 0, sizeof input);
    input.n_items = 1;
    input.wall_ns = 1000000000;
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++)
        input.demand_ns[r] = 999999990 + r;
    gpsti_verdict_make(&input, &verdict);
    assert_int_equal(verdict.bound, GPST_RESOURCE_JPEG);
    assert_non_null(strstr(verdict.text, ", disk_out 100.0 %;"));
    assert_non_null(strstr(verdict.text, "of the bound reached"));
}

static void test_resource_names(void** state) {
    (void)state;
    static const char* const names[] = {"none", "disk_in", "cpu", "h2d", "gpu", "d2h", "disk_out", "jpeg"};
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++)
        assert_string_equal(gpst_resource_name((gpst_resource)r), names[r]);
    assert_string_equal(gpst_resource_name(GPST_RESOURCE_COUNT), "unknown");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_histogram_is_exact_when_small),
        cmocka_unit_test(test_histogram_edges),
        cmocka_unit_test(test_histogram_quantiles_are_within_a_sixteenth),
        cmocka_unit_test(test_clock_report),
        cmocka_unit_test(test_clock_scales_sampled_cpu_time),
        cmocka_unit_test(test_busy_is_the_union), cmocka_unit_test(test_busy_is_closed),
        cmocka_unit_test(test_clock_takes_services_for_usual),
        cmocka_unit_test(test_busy_in_any_order),
        cmocka_unit_test(test_verdict_disk_bound),
        cmocka_unit_test(test_verdict_cpu_bound),
        cmocka_unit_test(test_verdict_latency_bound),
        cmocka_unit_test(test_verdict_of_one_item),
        cmocka_unit_test(test_verdict_is_clamped),
        cmocka_unit_test(test_verdict_of_nothing),
        cmocka_unit_test(test_verdict_text_fits),
        cmocka_unit_test(test_resource_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
