/* tests/test_graph_gate.c -- when a graph pays, by recorded times: the policy is a pure function of them. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/device/graph_internal.h"
#endif

/* Runs so many nanoseconds apart; gives the time of the last one. */
static int64_t begin_runs(gpsti_graph_family* family, int64_t now_ns, int64_t period_ns, int n) {
    for (int i = 0; i < n; i++)
        gpsti_graph_family_begin(family, now_ns += period_ns);
    return now_ns;
}

static gpsti_graph_family family_of(int64_t period_ns, int64_t pieces_ns, int64_t graph_ns) {
    gpsti_graph_family family;
    memset(&family, 0, sizeof family);
    family.n_runs = 2;
    family.period_ns = period_ns;
    family.pieces_ns = pieces_ns;
    family.graph_ns = graph_ns;
    return family;
}

static void test_period(void** state) {
    gpsti_graph_family family;
    (void)state;
    memset(&family, 0, sizeof family);
    gpsti_graph_family_begin(&family, 500);
    assert_int_equal(family.n_runs, 1);
    assert_int_equal(family.period_ns, 0); /* one run has none */
    gpsti_graph_family_begin(&family, 500 + 8000);
    assert_int_equal(family.period_ns, 8000);
    gpsti_graph_family_begin(&family, 8500 + 16000); /* an eighth of the difference */
    assert_int_equal(family.period_ns, 9000);
    gpsti_graph_family_begin(&family, 24500 + 1000);
    assert_int_equal(family.period_ns, 8000);
    assert_int_equal(family.latest_ns, 25500);
    assert_int_equal(family.n_runs, 4);
}

/* It follows what has changed, either way, and is never 0: even of a clock that stands. */
static void test_period_follows(void** state) {
    gpsti_graph_family family;
    (void)state;
    memset(&family, 0, sizeof family);
    int64_t now_ns = begin_runs(&family, 1000, 1000000, 50);
    assert_int_equal(family.period_ns, 1000000);
    now_ns = begin_runs(&family, now_ns, 10000, 100);
    assert_in_range(family.period_ns, 10000, 10010);
    now_ns = begin_runs(&family, now_ns, 500000, 100);
    assert_in_range(family.period_ns, 499990, 500000);
    (void)begin_runs(&family, now_ns, 0, 1000);
    assert_in_range(family.period_ns, 1, 10);
    memset(&family, 0, sizeof family);
    (void)begin_runs(&family, 7, 0, 2);
    assert_int_equal(family.period_ns, 1);
}

/* A pause counts as four periods, whether it was a second or an hour. */
static void test_pauses(void** state) {
    gpsti_graph_family a, b, c;
    (void)state;
    memset(&a, 0, sizeof a);
    const int64_t now_ns = begin_runs(&a, 0, 1600, 20);
    b = c = a;
    gpsti_graph_family_begin(&a, now_ns + 4 * 1600);
    assert_int_equal(a.period_ns, 1600 + 3 * 1600 / 8);
    gpsti_graph_family_begin(&b, now_ns + 4 * 1600 + 1);
    assert_int_equal(b.period_ns, a.period_ns);
    gpsti_graph_family_begin(&c, now_ns + (int64_t)3600 * 1000000000);
    assert_int_equal(c.period_ns, a.period_ns);
    (void)begin_runs(&c, now_ns + (int64_t)3600 * 1000000000, 1600, 40); /* and is forgotten */
    assert_in_range(c.period_ns, 1600, 1610);
}

static void test_least(void** state) {
    gpsti_graph_family family;
    (void)state;
    memset(&family, 0, sizeof family);
    gpsti_graph_family_end(&family, false, 900);
    assert_int_equal(family.pieces_ns, 900);
    assert_int_equal(family.graph_ns, 0);
    gpsti_graph_family_end(&family, false, 5000);
    gpsti_graph_family_end(&family, true, 300);
    gpsti_graph_family_end(&family, false, 700);
    gpsti_graph_family_end(&family, true, 301);
    assert_int_equal(family.pieces_ns, 700);
    assert_int_equal(family.graph_ns, 300);
    gpsti_graph_family_end(&family, true, 0); /* less than the clock shows: known all the same */
    gpsti_graph_family_end(&family, false, -5);
    assert_int_equal(family.graph_ns, 1);
    assert_int_equal(family.pieces_ns, 1);
}

static void test_border(void** state) {
    (void)state;
    gpsti_graph_family family = family_of(100000, 5000, 3000); /* 2000 of 100000 */
    assert_false(gpsti_graph_family_pays(&family, 10));
    family.graph_ns = 2999;
    assert_true(gpsti_graph_family_pays(&family, 10));
    family.period_ns = 100050;
    assert_false(gpsti_graph_family_pays(&family, 10));
    family.period_ns = 100049;
    assert_true(gpsti_graph_family_pays(&family, 10));
    family = family_of(1, 100, 100); /* nothing saved, and less than nothing */
    assert_false(gpsti_graph_family_pays(&family, 10));
    family.graph_ns = 101;
    assert_false(gpsti_graph_family_pays(&family, 10));
    family.graph_ns = 99;
    assert_true(gpsti_graph_family_pays(&family, 10));
}

/* A graph of one command saves nothing, nor what was never measured. */
static void test_not_known(void** state) {
    (void)state;
    gpsti_graph_family family = family_of(1000, 900, 10);
    assert_false(gpsti_graph_family_pays(&family, 0));
    assert_false(gpsti_graph_family_pays(&family, 1));
    assert_true(gpsti_graph_family_pays(&family, 2));
    family.pieces_ns = 0;
    assert_false(gpsti_graph_family_pays(&family, 2));
    family = family_of(0, 900, 10);
    assert_false(gpsti_graph_family_pays(&family, 2));
    memset(&family, 0, sizeof family);
    assert_false(gpsti_graph_family_pays(&family, 100));
}

/* Before there is a graph it is taken for one piece. */
static void test_before_a_graph(void** state) {
    (void)state;
    gpsti_graph_family family = family_of(50 * 900, 1000, 0); /* of ten pieces nine are saved: 900 */
    assert_false(gpsti_graph_family_pays(&family, 10));
    family.period_ns--;
    assert_true(gpsti_graph_family_pays(&family, 10));
    assert_false(gpsti_graph_family_pays(&family, 9));
    family.graph_ns = 200; /* it took more than that */
    assert_false(gpsti_graph_family_pays(&family, 10));
    family.graph_ns = 50;
    assert_true(gpsti_graph_family_pays(&family, 9));
}

static void test_measures(void** state) {
    gpsti_graph_family family;
    int n = 0;
    (void)state;
    memset(&family, 0, sizeof family);
    for (int i = 1; i <= 1280; i++) {
        gpsti_graph_family_begin(&family, i);
        const bool measures = gpsti_graph_family_measures(&family);
        assert_int_equal(measures, i % 128 == 0);
        n += measures;
    }
    assert_int_equal(n, 10);
}

/* Seventeen runs with new addresses, one after the other; one that comes again begins the count anew. */
static void test_addresses_that_do_not_come_again(void** state) {
    gpsti_graph_family family = family_of(1000, 0, 0);
    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 16; i++)
            assert_false(gpsti_graph_family_moves(&family, true));
        assert_true(gpsti_graph_family_moves(&family, true));
        assert_true(gpsti_graph_family_moves(&family, true));
        assert_false(gpsti_graph_family_moves(&family, false));
    }
}

/* Four are tried; then the least time of them decides, at 2 % of the period. */
static void test_when_new_addresses_pay(void** state) {
    gpsti_graph_family family = family_of(100000, 50000, 5000);
    (void)state;
    for (int i = 0; i < 4; i++) {
        assert_true(gpsti_graph_family_move_pays(&family, 2));
        gpsti_graph_family_moved(&family, i == 2 ? 48000 : 60000);
    }
    assert_int_equal(family.move_ns, 48000);
    assert_false(gpsti_graph_family_move_pays(&family, 2)); /* 2000 of 100000 */
    gpsti_graph_family_moved(&family, 47999);
    assert_true(gpsti_graph_family_move_pays(&family, 2));
    assert_false(gpsti_graph_family_move_pays(&family, 1));
    family.pieces_ns = 0;
    assert_false(gpsti_graph_family_move_pays(&family, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_period),    cmocka_unit_test(test_period_follows), cmocka_unit_test(test_pauses),
        cmocka_unit_test(test_least),     cmocka_unit_test(test_border),         cmocka_unit_test(test_not_known),
        cmocka_unit_test(test_before_a_graph), cmocka_unit_test(test_measures),
        cmocka_unit_test(test_addresses_that_do_not_come_again),
        cmocka_unit_test(test_when_new_addresses_pay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
