/* tests/test_timing.c -- which groups on a device are timed, and whether what is said of all of them is true: items that
   pass three engines on paper, their intervals in, busy time out. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/stats/timing_internal.h"
#endif

#define US 1000

enum { N_ENGINES = 3, MOST_IN_FLIGHT = 64 };

/* Items of n_together are a group: one submission, timed as one. */
typedef struct device_case {
    const char* name;
    uint32_t n_groups, n_in_flight, n_together;
    int64_t host_us;             /* before a group is submitted, by who has it in hand */
    int64_t engine_us[N_ENGINES]; /* up, kernel, down */
    uint32_t dear_every;         /* each so many-th takes four times as long; 0 = none does */
    bool dear_is_larger;
    int64_t host_step_us;        /* so much more from the middle of the run on */
} device_case;

typedef struct group {
    bool timed;
    uint64_t number;
    uint64_t bytes;
    int64_t start_ns, end_ns[N_ENGINES];
    int64_t begin_ns[N_ENGINES];
} group;

typedef struct device {
    const device_case* c;
    gpsti_timing timing;
    gpsti_busy busy[GPST_RESOURCE_COUNT];
    gpsti_busy really[GPST_RESOURCE_COUNT];
    group in_flight[MOST_IN_FLIGHT];
    int64_t free_ns[N_ENGINES];
    uint32_t n_submitted, n_timed, n_timed_first; /* until one was not */
} device;

static void submit(device* self, uint32_t i, int64_t now_ns) {
    const device_case* const c = self->c;
    group* const g = &self->in_flight[i % c->n_in_flight];
    const bool dear = c->dear_every > 0 && i % c->dear_every == 0;
    int64_t at_ns = now_ns + (c->host_us + (i >= c->n_groups / 2 ? c->host_step_us : 0)) * US;
    g->timed = gpsti_timing_takes(&self->timing, &g->number);
    g->bytes = dear && c->dear_is_larger ? 4000 : 1000;
    g->start_ns = at_ns;
    for (int e = 0; e < N_ENGINES; e++) {
        g->begin_ns[e] = at_ns; /* an interval begins with the event before it, and holds the wait for the engine */
        at_ns = (at_ns > self->free_ns[e] ? at_ns : self->free_ns[e]) + c->engine_us[e] * (dear ? 4 : 1) * US;
        self->free_ns[e] = g->end_ns[e] = at_ns;
    }
    self->n_timed_first += g->timed && self->n_timed == self->n_submitted ? 1 : 0;
    self->n_timed += g->timed ? 1 : 0;
    self->n_submitted++;
}

static void happen(device* self, const group* g) {
    for (int e = 0; e < N_ENGINES; e++)
        gpsti_busy_add(&self->really[(int)GPST_RESOURCE_H2D + e], g->begin_ns[e], g->end_ns[e]);
}

static void count(device* self, const group* g) {
    for (uint32_t n = 0; n < self->c->n_together; n++) {
        const int64_t end_ns = g->end_ns[N_ENGINES - 1];
        const gpsti_timing_item item = {g->number, g->bytes, g->timed ? end_ns - g->start_ns : 0, end_ns,
                                        self->c->n_in_flight};
        const gpsti_timing_use use = gpsti_timing_enter(&self->timing, self->busy, &item);
        for (int e = 0; e < N_ENGINES && use != GPSTI_TIMING_NOTHING; e++) {
            gpsti_busy* const busy = &self->busy[(int)GPST_RESOURCE_H2D + e];
            assert_true(g->timed);
            if (use == GPSTI_TIMING_COUNTS)
                gpsti_busy_add(busy, g->begin_ns[e], g->end_ns[e]);
            else
                gpsti_busy_close(busy, g->end_ns[e]);
        }
    }
}

static void enter(device* self, const group* g) {
    happen(self, g);
    count(self, g);
}

/* How far what is said is from the truth, of the engine that it is farthest of. */
static double wrong_by(const device* self) {
    double most = 0.0;
    for (int r = (int)GPST_RESOURCE_H2D; r <= (int)GPST_RESOURCE_D2H; r++) {
        const double really = (double)self->really[r].busy_ns;
        const double said = (double)gpsti_timing_busy_ns(&self->timing, self->busy, r);
        const double part = said > really ? said / really - 1.0 : 1.0 - said / really;
        most = part > most ? part : most;
    }
    return most;
}

static void run(device* self, const device_case* c, double most_wrong) {
    memset(self, 0, sizeof *self);
    self->c = c;
    for (uint32_t i = 0; i < c->n_in_flight; i++)
        submit(self, i, i * US);
    for (uint32_t i = 0; i < c->n_groups; i++) {
        const group g = self->in_flight[i % c->n_in_flight];
        enter(self, &g);
        submit(self, i + c->n_in_flight, g.end_ns[N_ENGINES - 1]);
        const double wrong = wrong_by(self);
        if (i >= 64 && wrong > 4 * most_wrong) /* while it runs, too: the tuner asks */
            fail_msg("%s: %.3f wrong after %u groups", c->name, wrong, (unsigned)i);
    }
    if (wrong_by(self) > most_wrong)
        fail_msg("%s: %.3f wrong", c->name, wrong_by(self));
}

static const device_case brief[] = {
    {"one after the other", 2000, 1, 1, 20, {5, 2, 3}, 0, false, 0},
    {"side by side, the link busy half of the time", 4000, 4, 1, 50, {8, 2, 3}, 0, false, 0},
    {"side by side, the link the bound", 4000, 16, 1, 5, {5, 2, 3}, 0, false, 0},
    {"side by side, the kernel the bound", 4000, 16, 1, 5, {2, 9, 3}, 0, false, 0},
    {"as many as are timed in a row", 4000, 32, 1, 40, {2, 4, 3}, 0, false, 0},
    {"four in a group", 2000, 8, 4, 30, {12, 8, 3}, 0, false, 0},
    {"sixteen in a group, one after the other", 2000, 1, 16, 30, {12, 8, 3}, 0, false, 0},
    {"slower from the middle on", 8000, 8, 1, 10, {3, 2, 1}, 0, false, 100},
    {"each eighth takes longer", 8000, 8, 1, 60, {3, 2, 1}, 8, false, 0},
    {"each sixteenth", 16000, 1, 1, 20, {3, 2, 1}, 16, false, 0},
};

static void test_a_few_tell_of_all(void** state) {
    (void)state;
    static device self;
    for (size_t i = 0; i < sizeof brief / sizeof brief[0]; i++) {
        run(&self, &brief[i], brief[i].dear_every > 0 ? 0.08 : 0.03);
        const double part = (double)self.n_timed / (double)(brief[i].n_groups + brief[i].n_in_flight);
        const uint32_t each = 4 * brief[i].n_in_flight, n_first = each < 32 ? each : 32; /* enough to be sure of */
        if (self.n_timed_first < n_first || self.n_timed_first > n_first + brief[i].n_in_flight)
            fail_msg("%s: the first %u were timed", brief[i].name, (unsigned)self.n_timed_first);
        if (part < 0.11 || part > 0.16)
            fail_msg("%s: %.3f of them timed", brief[i].name, part);
    }
}

/* ---- counted late -------------------------------------------------------------------------------- */

enum { MOST_KEPT = 16 };

/* Each in flight has a worker of its own, who keeps what was not timed until it has several. */
typedef struct worker {
    group kept[MOST_KEPT];
    uint32_t n;
} worker;

static void settle(device* self, worker* w) {
    for (uint32_t k = 0; k < w->n; k++)
        count(self, &w->kept[k]);
    w->n = 0;
}

static void keep(device* self, worker* w, const group* g) {
    happen(self, g);
    w->kept[w->n++] = *g;
    if (w->n == MOST_KEPT || g->timed)
        settle(self, w);
}

static void test_late_counts_are_the_same(void** state) {
    static device self;
    static worker workers[MOST_IN_FLIGHT];
    (void)state;
    for (size_t k = 0; k < sizeof brief / sizeof brief[0]; k++) {
        const device_case* const c = &brief[k];
        memset(&self, 0, sizeof self);
        memset(workers, 0, sizeof workers);
        self.c = c;
        for (uint32_t i = 0; i < c->n_in_flight; i++)
            submit(&self, i, i * US);
        for (uint32_t i = 0; i < c->n_groups; i++) {
            const group g = self.in_flight[i % c->n_in_flight];
            keep(&self, &workers[i % c->n_in_flight], &g);
            submit(&self, i + c->n_in_flight, g.end_ns[N_ENGINES - 1]);
        }
        for (uint32_t w = 0; w < c->n_in_flight; w++)
            settle(&self, &workers[w]);
        const double part = (double)self.n_timed / (double)c->n_groups, most = c->dear_every > 0 ? 0.08 : 0.05;
        if (wrong_by(&self) > most)
            fail_msg("%s: %.3f wrong", c->name, wrong_by(&self));
        if (part < 0.05 || part > 0.16)
            fail_msg("%s: %.3f of them timed", c->name, part);
    }
}

/* Nothing is said of what nobody measured. */
static void test_all_are_timed(void** state) {
    static const device_case all[] = {
        {"long ones", 500, 4, 1, 10, {900, 400, 300}, 0, false, 0},
        {"long ones, one after the other", 500, 1, 1, 10, {900, 40, 100}, 0, false, 0},
        {"brief ones, 60 of them a second", 500, 1, 1, 16600, {50, 40, 10}, 0, false, 0},
        {"of two sizes", 500, 4, 1, 10, {5, 3, 2}, 8, true, 0},
        {"short runs", 16, 4, 1, 10, {5, 3, 2}, 0, false, 0},
    };
    (void)state;
    static device self;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        run(&self, &all[i], 1e-9);
        if (self.n_timed != all[i].n_groups + all[i].n_in_flight)
            fail_msg("%s: %u of %u timed", all[i].name, (unsigned)self.n_timed, (unsigned)all[i].n_groups);
    }
}

static uint32_t n_timed_of(device* self, uint32_t n) {
    const uint32_t before = self->n_timed;
    for (uint32_t i = 0; i < n; i++) {
        const int64_t now_ns = self->in_flight[0].end_ns[N_ENGINES - 1];
        submit(self, 1, now_ns);
        enter(self, &self->in_flight[0]);
    }
    return self->n_timed - before;
}

/* Items become long, and brief again; others come between, and no more. */
static void test_what_changes_is_timed_again(void** state) {
    static const device_case quick = {"quick", 0, 1, 1, 10, {5, 3, 2}, 0, false, 0};
    static const device_case slow = {"slow", 0, 1, 1, 10, {900, 400, 300}, 0, false, 0};
    static const device_case seldom = {"seldom", 0, 1, 1, 5000, {5, 3, 2}, 0, false, 0};
    static const device_case mixed = {"mixed", 0, 1, 1, 10, {5, 3, 2}, 1, true, 0};
    (void)state;
    static device self;
    memset(&self, 0, sizeof self);
    self.c = &quick;
    assert_in_range(n_timed_of(&self, 330), 40, 48);
    self.c = &slow;
    (void)n_timed_of(&self, 80); /* two rows of those that are timed have to say so */
    assert_int_equal(n_timed_of(&self, 100), 100);
    self.c = &quick;
    (void)n_timed_of(&self, 100);
    assert_in_range(n_timed_of(&self, 330), 36, 44);
    self.c = &seldom;
    (void)n_timed_of(&self, 80);
    assert_int_equal(n_timed_of(&self, 100), 100);
    self.c = &quick;
    (void)n_timed_of(&self, 100);
    assert_in_range(n_timed_of(&self, 330), 36, 44);
    self.c = &mixed;
    (void)n_timed_of(&self, 1);
    self.c = &quick;
    assert_in_range(n_timed_of(&self, 64), 64, 64);
    (void)n_timed_of(&self, 2);
    assert_in_range(n_timed_of(&self, 330), 36, 44);
}

/* The engine is opened: what items took one after the other says nothing of them side by side. */
static void test_company_is_timed_anew(void** state) {
    static const device_case serial = {"serial", 0, 1, 1, 10, {5, 3, 2}, 0, false, 0};
    static const device_case side_by_side = {"side by side", 0, 2, 1, 10, {5, 3, 2}, 0, false, 0};
    (void)state;
    static device self;
    memset(&self, 0, sizeof self);
    self.c = &serial;
    assert_in_range(n_timed_of(&self, 20), 4, 6);
    self.c = &side_by_side;
    for (uint32_t i = 0; i < 10; i += 2) {
        submit(&self, 0, self.in_flight[0].end_ns[N_ENGINES - 1]);
        submit(&self, 1, self.in_flight[0].end_ns[N_ENGINES - 1]);
        enter(&self, &self.in_flight[0]);
        enter(&self, &self.in_flight[1]);
    }
    assert_in_range(self.n_timed, 4 + 8, 6 + 10);
    static const device_case three = {"three", 0, 3, 1, 10, {5, 3, 2}, 0, false, 0};
    const uint32_t n_before = self.n_timed;
    self.c = &three; /* one more says nothing new */
    for (uint32_t i = 0; i < 10; i++) {
        submit(&self, 2, self.in_flight[1].end_ns[N_ENGINES - 1]);
        enter(&self, &self.in_flight[2]);
    }
    assert_in_range(self.n_timed - n_before, 0, 2);
}

/* Groups that were to be timed fail, and are never entered: others are timed in their turn. */
static void test_failures(void** state) {
    static const device_case quick = {"quick", 0, 1, 1, 10, {5, 3, 2}, 0, false, 0};
    (void)state;
    static device self;
    memset(&self, 0, sizeof self);
    self.c = &quick;
    uint32_t n_failed = 0;
    for (uint32_t i = 0; i < 400; i++) {
        submit(&self, 1, self.in_flight[0].end_ns[N_ENGINES - 1]);
        const bool fails = i >= 8 && i < 200 && self.in_flight[0].timed;
        n_failed += fails ? 1 : 0;
        if (!fails)
            enter(&self, &self.in_flight[0]);
    }
    assert_in_range(n_failed, 16, 28);
    assert_in_range(n_timed_of(&self, 330), 36, 44);
    assert_true(wrong_by(&self) < 0.01);
}

/* What no events say of is no time of a device. */
static void test_other_resources(void** state) {
    static const device_case quick = {"quick", 400, 1, 1, 10, {5, 3, 2}, 0, false, 0};
    (void)state;
    static device self;
    run(&self, &quick, 0.01);
    assert_int_equal(gpsti_timing_busy_ns(&self.timing, self.busy, (int)GPST_RESOURCE_DISK_OUT), 0);
    while (!self.timing.open || self.timing.n_since == self.timing.n_known) {
        submit(&self, 1, self.in_flight[0].end_ns[N_ENGINES - 1]);
        enter(&self, &self.in_flight[0]);
    }
    self.busy[GPST_RESOURCE_DISK_OUT].busy_ns += 1000000;
    assert_int_equal(gpsti_timing_busy_ns(&self.timing, self.busy, (int)GPST_RESOURCE_DISK_OUT), 1000000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_few_tell_of_all),           cmocka_unit_test(test_all_are_timed),
        cmocka_unit_test(test_what_changes_is_timed_again), cmocka_unit_test(test_failures),
        cmocka_unit_test(test_other_resources),             cmocka_unit_test(test_company_is_timed_anew),
        cmocka_unit_test(test_late_counts_are_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
