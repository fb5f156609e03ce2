/* tests/test_recall.c -- a run that knows its items from the last one of its job: which one is remembered, who goes by
   it, and what becomes of that when the items are others. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

/* ---- the policy ------------------------------------------------------------------------------------- */

static gpsti_recalled a_run(uint64_t job, double run_ns) {
    gpsti_recalled run;
    memset(&run, 0, sizeof run);
    run.job = job;
    run.n_items = 100;
    run.run_ns = run_ns;
    return run;
}

static void put(gpsti_recall* recall, uint64_t job, double run_ns, bool knew) {
    const gpsti_recalled run = a_run(job, run_ns);
    gpsti_recall_put(recall, &run, knew);
}

static double known_ns(const gpsti_recall* recall, uint64_t job) {
    const gpsti_recalled* const known = gpsti_recall_find(recall, job);
    return known ? known->run_ns : 0.0;
}

/* Is the next run to find out anew? */
static bool is_old(const gpsti_recall* recall, uint64_t job) {
    const gpsti_recalled* const known = gpsti_recall_find(recall, job);
    assert_non_null(known);
    assert_true(!known->is_old || !gpsti_recall_serves(known, 100));
    return known->is_old;
}

/* Of more jobs than there is room for, those that ran last. */
static void test_jobs(void** state) {
    static gpsti_recall recall;
    (void)state;
    memset(&recall, 0, sizeof recall);
    assert_null(gpsti_recall_find(&recall, 1));
    for (uint64_t job = 1; job <= GPSTI_RECALL_MOST; job++)
        put(&recall, job, (double)job, false);
    put(&recall, 1, 100.0, false);
    put(&recall, 99, 99.0, false);
    assert_true(known_ns(&recall, 1) > 99.9 && known_ns(&recall, 99) > 98.9);
    assert_null(gpsti_recall_find(&recall, 2));
    assert_true(known_ns(&recall, 3) > 2.9 && known_ns(&recall, 3) < 3.1);
    assert_int_equal(recall.n, GPSTI_RECALL_MOST);
    gpsti_recall_forget(&recall, 3);
    gpsti_recall_forget(&recall, 3);
    assert_null(gpsti_recall_find(&recall, 3));
    assert_true(known_ns(&recall, 4) > 3.9 && known_ns(&recall, 1) > 99.9);
    assert_int_equal(recall.n, GPSTI_RECALL_MOST - 1);
}

/* Against the last run that knew nothing: one slow run is chance, two in a row and the next one finds out anew. */
static void test_slower_runs(void** state) {
    static gpsti_recall recall;
    (void)state;
    memset(&recall, 0, sizeof recall);
    put(&recall, 1, 100.0, false);
    put(&recall, 1, 60.0, true);
    assert_true(known_ns(&recall, 1) > 99.0);
    put(&recall, 1, 108.0, true); /* as fast */
    put(&recall, 1, 111.0, true);
    put(&recall, 1, 105.0, true);
    put(&recall, 1, 111.0, true);
    assert_true(known_ns(&recall, 1) > 99.0 && known_ns(&recall, 1) < 101.0);
    assert_false(is_old(&recall, 1));
    put(&recall, 1, 111.0, true);
    assert_true(is_old(&recall, 1));
    put(&recall, 1, 100.0, false);
    assert_false(is_old(&recall, 1));
    put(&recall, 1, 111.0, true);
    put(&recall, 1, 130.0, false); /* which found out for itself */
    put(&recall, 1, 140.0, true);
    put(&recall, 1, 144.0, true);
    assert_true(known_ns(&recall, 1) > 129.0);
}

/* Now and then a run finds out anew. */
static void test_it_is_not_known_for_ever(void** state) {
    static gpsti_recall recall;
    uint32_t n = 0;
    (void)state;
    memset(&recall, 0, sizeof recall);
    for (int i = 0; i < 2; i++) {
        put(&recall, 1, 100.0, false);
        for (n = 0; !is_old(&recall, 1) && n < 100; n++)
            put(&recall, 1, 100.0, true);
        assert_int_equal(n, 32);
    }
}

typedef struct crowd_case {
    const char* name;
    uint32_t first, most;
    double ns[17]; /* by workers: an item's part of a run */
    uint32_t best, n_runs;
} crowd_case;

static const crowd_case crowds[] = {
    {"fewer, and fewer still", 8, 16, {0, 9, 8, 6, 7, 8, 9, 10, 12}, 3, 9},
    {"the first, after fewer and more", 6, 16, {0, 9, 9, 9, 9, 9, 5, 9, 9, 9}, 6, 10},
    {"more, as many as there may be", 6, 16, {0, 9, 9, 9, 9, 9, 9, 9, 9, 8, 8, 8, 8, 8, 7, 7, 6}, 16, 9},
    {"better by too little", 8, 16, {0, 9, 9, 9, 9, 97, 9, 99, 99, 98, 9, 9, 98}, 8, 10},
    {"a little better, twice", 8, 16, {0, 9, 9, 120, 120, 92, 99, 9, 100}, 5, 10},
    {"one", 1, 3, {0, 9, 8, 7}, 3, 6},
    {"all, which are two more", 14, 16, {0, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 8, 9, 7}, 16, 8},
    {"one too many", 9, 16, {0, 99, 90, 80, 60, 44, 41, 39, 40, 52, 58, 60, 80, 80}, 7, 12},
    {"one too few, of many", 8, 16, {0, 9, 9, 9, 9, 70, 9, 70, 60, 50, 55, 55, 65}, 9, 11},
};

static gpsti_recalled a_crowd(uint32_t n_workers, uint32_t most, double run_ns) {
    gpsti_recalled run = a_run(1, run_ns);
    run.n_workers = n_workers;
    run.most_whole = most;
    return run;
}

/* Where a copy engine is always busy there is nothing to find; but not if a run with others was shorter, nor
   where that is so brief that it is mostly its beginnings and ends. */
static void test_workers_of_a_full_device(void** state) {
    static const struct {
        double run_ns, copies_ns;
        uint32_t now; /* of the next run */
    } rows[] = {{20600.0, 20000.0, 8}, {20700.0, 20000.0, 5}, {14900.0, 14900.0, 5}, {15000.0, 15000.0, 8}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static gpsti_recall recall;
        gpsti_recalled run = a_crowd(8, 16, rows[i].run_ns);
        memset(&recall, 0, sizeof recall);
        gpsti_recall_put(&recall, &run, false);
        run.copies_ns = rows[i].copies_ns;
        for (int n = 0; n < 2; n++)
            gpsti_recall_put(&recall, &run, true);
        const gpsti_recall_workers* const workers = &recall.known[0].workers;
        assert_int_equal(workers->best, 8);
        assert_int_equal(workers->now, rows[i].now);
        assert_true(workers->step == 0 ? workers->is_top : rows[i].now == 5);
        run = a_crowd(5, 16, rows[i].run_ns * (i == 1 ? 1.0 : 1.1));
        run.copies_ns = run.run_ns;
        gpsti_recall_put(&recall, &run, true);
        assert_int_equal(workers->best, i == 1 ? 5 : 8);
        assert_int_equal(workers->step == 0, i != 2);
    }
}

/* How many to bring whole items is found by twos of runs, or one that is clearly better, none of which makes it forget the job. */
static void test_workers_are_found(void** state) {
    (void)state;
    for (size_t c = 0; c < sizeof crowds / sizeof crowds[0]; c++) {
        static gpsti_recall recall;
        const crowd_case* const crowd = &crowds[c];
        gpsti_recalled run = a_crowd(crowd->first, crowd->most, 0.1);
        uint32_t n_runs = 0;
        memset(&recall, 0, sizeof recall);
        gpsti_recall_put(&recall, &run, false);
        const gpsti_recall_workers* const workers = &recall.known[0].workers;
        for (; workers->best == 0 || workers->step != 0; n_runs++) {
            assert_in_range(n_runs, 0, 40);
            const uint32_t n = workers->now > 0 ? workers->now : crowd->first;
            assert_in_range(n, 1, crowd->most);
            run = a_crowd(n, crowd->most, crowd->ns[n] + (n_runs % 2 == c % 2 ? 0.0 : 50.0)); /* the shorter counts */
            gpsti_recall_put(&recall, &run, true);
            assert_int_equal(recall.n, 1);
        }
        if (workers->best != crowd->best || workers->now != crowd->best || n_runs != crowd->n_runs)
            fail_msg("%s: %u after %u runs, not %u after %u", crowd->name, workers->best, n_runs, crowd->best,
                     crowd->n_runs);
        run = a_crowd(2, crowd->most, 0.001); /* now all is as it is */
        gpsti_recall_put(&recall, &run, true);
        assert_int_equal(workers->now, crowd->best);
        run.run_ns = 1.0;
        gpsti_recall_put(&recall, &run, true);
        gpsti_recall_put(&recall, &run, true);
        assert_true(is_old(&recall, 1));
    }
}

/* Found out anew, the number of workers is looked for where it was: by small steps, unless runs were slower. */
static void test_workers_are_sought_from_there(void** state) {
    static gpsti_recall recall;
    const gpsti_recall_workers* const workers = &recall.known[0].workers;
    (void)state;
    for (int slower = 0; slower < 2; slower++) {
        memset(&recall, 0, sizeof recall);
        gpsti_recalled run = a_crowd(6, 16, 100.0);
        for (uint32_t i = 0; workers->step != 0 || i < 3; i++) {
            run.n_workers = i > 0 && workers->now > 0 ? workers->now : 6;
            run.run_ns = run.n_workers == 9 ? 60.0 : 100.0;
            gpsti_recall_put(&recall, &run, i > 0);
        }
        assert_true(workers->best == 9 && workers->is_top);
        run.run_ns = slower ? 111.0 : 60.0;
        while (!is_old(&recall, 1))
            gpsti_recall_put(&recall, &run, true);
        assert_int_equal(gpsti_recall_workers_then(&recall.known[0]), 9);
        run = a_crowd(4, 16, 100.0);
        gpsti_recall_put(&recall, &run, false);
        assert_true(workers->now == 9 && workers->best == 0 && !workers->is_top);
        run.n_workers = 9;
        for (int i = 0; i < 2; i++)
            gpsti_recall_put(&recall, &run, true);
        assert_true(workers->best == 9 && workers->now == (slower ? 6u : 7u)); /* fewer are tried first, as ever */
    }
}

/* Of all that there could be, which nothing was sought among, there are as many again; not where runs were slower, nor
   of items in stages. */
static void test_workers_are_as_they_were(void** state) {
    static const struct {
        double run_ns;
        uint32_t most, now, n_slots;
    } rows[] = {{100.0, 16, 16, 16}, {111.0, 16, 0, 9}, {100.0, 0, 0, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        static gpsti_recall recall;
        gpsti_recalled run = a_crowd(16, rows[i].most, 100.0);
        memset(&recall, 0, sizeof recall);
        run.n_slots = 16;
        gpsti_recall_put(&recall, &run, false);
        run.run_ns = rows[i].run_ns;
        while (!is_old(&recall, 1))
            gpsti_recall_put(&recall, &run, true);
        assert_int_equal(gpsti_recall_workers_then(&recall.known[0]), rows[i].now);
        run = a_crowd(9, rows[i].most, 150.0);
        run.n_slots = 9;
        gpsti_recall_put(&recall, &run, false);
        assert_int_equal(recall.known[0].workers.now, rows[i].now);
        assert_int_equal(recall.known[0].n_slots, rows[i].n_slots);
    }
}

/* Fewer that could not be better are not tried: not if each of them brought its items as a plain loop does. */
static void test_too_few_workers_are_not_tried(void** state) {
    static gpsti_recall recall;
    const gpsti_recall_workers* const workers = &recall.known[0].workers;
    static const double serial_ns[] = {0.0, 199.0, 201.0, 401.0}; /* of two, at 100 an item */
    static const uint32_t next[] = {2, 2, 5, 5};
    (void)state;
    for (int c = 0; c < 4; c++) {
        memset(&recall, 0, sizeof recall);
        gpsti_recalled run = a_crowd(3, 16, 100.0);
        run.serial_ns = serial_ns[c];
        for (int i = 0; i < 3; i++)
            gpsti_recall_put(&recall, &run, i > 0);
        assert_true(workers->best == 3 && workers->now == next[c]);
    }
}

/* A run that moved them by itself, and then one that did not: neither is two. Nor is one that made memory. */
static void test_workers_that_moved(void** state) {
    static gpsti_recall recall;
    static const uint32_t n_workers[] = {8, 6, 8, 8};
    (void)state;
    memset(&recall, 0, sizeof recall);
    gpsti_recalled run = a_crowd(8, 16, 100.0);
    gpsti_recall_put(&recall, &run, false);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(recall.known[0].workers.best, 0);
        run = a_crowd(n_workers[i], 16, 100.0);
        gpsti_recall_put(&recall, &run, true);
    }
    assert_int_equal(recall.known[0].workers.best, 8);
    assert_int_equal(recall.known[0].workers.now, 5);
    run = a_crowd(8, 0, 100.0); /* in stages */
    gpsti_recall_put(&recall, &run, true);
    assert_int_equal(recall.known[0].workers.now, 5);
    run = a_crowd(5, 16, 10.0); /* for once: it made memory */
    run.made_memory = true;
    gpsti_recall_put(&recall, &run, true);
    assert_int_equal(recall.known[0].workers.n_now, 0);
    recall.known[0].workers.now = 0; /* nor is another number tried before its memory is there */
    gpsti_recall_put(&recall, &run, true);
    assert_true(recall.known[0].workers.now == 5 && recall.known[0].workers.n_now == 0);
    run = a_crowd(8, 16, 100.0);
    gpsti_recall_put(&recall, &run, false); /* found out anew */
    assert_int_equal(recall.known[0].workers.best, 0);
    assert_int_equal(recall.known[0].workers.now, 8);
    run = a_crowd(7, 16, 100.0); /* what else there are does not change it */
    gpsti_recall_put(&recall, &run, false);
    run.made_memory = true;
    gpsti_recall_put(&recall, &run, true);
    assert_true(recall.known[0].workers.best == 0 && recall.known[0].workers.now == 8);
}

/* All that there can be are the model's choice, run after run: nothing is sought, and slower ones count as ever. When
   there can be more than it wants, their number is. */
static void test_workers_that_are_all(void** state) {
    static gpsti_recall recall;
    const gpsti_recall_workers* const workers = &recall.known[0].workers;
    (void)state;
    memset(&recall, 0, sizeof recall);
    gpsti_recalled run = a_crowd(11, 11, 100.0);
    for (uint32_t n = 11; n <= 16; n++) {
        run.n_workers = run.most_whole = n;
        run.made_memory = n % 2 == 0;
        gpsti_recall_put(&recall, &run, n > 11);
        assert_true(workers->best == 0 && workers->now == 0 && workers->step == 0);
    }
    run.run_ns = 200.0;
    gpsti_recall_put(&recall, &run, true);
    assert_false(is_old(&recall, 1));
    gpsti_recall_put(&recall, &run, true);
    assert_true(is_old(&recall, 1));

    recall.n = 0;
    run = a_crowd(12, 12, 100.0);
    gpsti_recall_put(&recall, &run, false);
    run = a_crowd(12, 16, 100.0);
    for (int i = 0; i < 2; i++)
        gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 12 && workers->now == 8);
    run.n_workers = 12; /* of 12 for once, while others are tried */
    run.most_whole = 12;
    gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 12 && workers->step != 0);
}

/* More could not be tried for want of their memory, and then there can be more: those are. */
static void test_workers_that_may_be_more(void** state) {
    static gpsti_recall recall;
    const gpsti_recall_workers* const workers = &recall.known[0].workers;
    (void)state;
    memset(&recall, 0, sizeof recall);
    for (int i = 0; workers->step != 0 || i < 3; i++) {
        assert_in_range(i, 0, 9);
        const gpsti_recalled run = a_crowd(i > 1 ? workers->now : 11, 12, i > 1 ? 120.0 : 100.0);
        gpsti_recall_put(&recall, &run, i > 0);
    }
    assert_true(workers->best == 11 && workers->now == 11 && workers->step == 0);
    gpsti_recalled run = a_crowd(11, 8, 100.0); /* for once */
    gpsti_recall_put(&recall, &run, true);
    assert_int_equal(workers->now, 11);
    run.most_whole = 16;
    gpsti_recall_put(&recall, &run, true);
    assert_int_equal(workers->now, 16);
    run = a_crowd(16, 16, 80.0);
    for (int i = 0; i < 4; i++)
        gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 16 && workers->now == 16 && workers->step == 0);
    run.most_whole = 12; /* and fewer again */
    gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 16 && workers->step == 0);

    recall.n = 0; /* where more were no better, more room changes nothing */
    for (int i = 0; workers->step != 0 || i < 3; i++) {
        run = a_crowd(i > 1 ? workers->now : 8, 16, i > 1 ? 120.0 : 100.0);
        gpsti_recall_put(&recall, &run, i > 0);
    }
    assert_true(workers->best == 8 && workers->now == 8);
    run = a_crowd(8, 20, 100.0);
    gpsti_recall_put(&recall, &run, true);
    assert_true(workers->now == 8 && workers->step == 0);

    recall.n = 0; /* nor where fewer were better */
    for (int i = 0; workers->step != 0 || i < 3; i++) {
        run = a_crowd(i > 1 ? workers->now : 8, 8 + (uint32_t)i, i > 1 && workers->now == 5 ? 80.0 : 100.0);
        gpsti_recall_put(&recall, &run, i > 0);
    }
    run = a_crowd(5, 20, 80.0);
    gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 5 && workers->now == 5 && workers->step == 0);
}

/* More are wanted, and their memory is not worth it while the runs are on: they say nothing of more. One more would
   not show, either. */
static void test_workers_that_could_not_be_more(void** state) {
    static gpsti_recall recall;
    const gpsti_recall_workers* const workers = &recall.known[0].workers;
    (void)state;
    memset(&recall, 0, sizeof recall);
    gpsti_recalled run = a_crowd(10, 14, 100.0);
    for (int i = 0; i < 3; i++)
        gpsti_recall_put(&recall, &run, i > 0);
    run = a_crowd(6, 14, 120.0);
    for (int i = 0; i < 2; i++)
        gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 10 && workers->now == 14);
    run = a_crowd(10, 11, 100.0);
    for (int i = 0; i < 4; i++)
        gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 10 && workers->now == 10 && workers->step == 0);
    run.most_whole = 12;
    gpsti_recall_put(&recall, &run, true);
    assert_int_equal(workers->now, 12);
    run = a_crowd(12, 12, 90.0);
    for (int i = 0; i < 2; i++)
        gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 12 && workers->now == 10); /* one of the small steps at the end */
    run.run_ns = 100.0;
    run.n_workers = 10;
    for (int i = 0; i < 2; i++)
        gpsti_recall_put(&recall, &run, true);
    assert_true(workers->best == 12 && workers->now == 12 && workers->step == 0);
    run.n_workers = 12;
    run.most_whole = 13;
    gpsti_recall_put(&recall, &run, true);
    assert_int_equal(workers->now, 12);
}

/* Three times as many may take three times as long, which would be twice as long. */
static void test_a_crowd_takes_longer(void** state) {
    gpsti_tuner_costs few, many;
    (void)state;
    memset(&few, 0, sizeof few);
    few.service_ns[GPST_RESOURCE_GPU] = 1000;
    many = few;
    many.service_ns[GPST_RESOURCE_GPU] = 5900;
    assert_false(gpsti_recall_differs(&few, 4, &many, 12));
    assert_false(gpsti_recall_differs(&many, 12, &few, 4));
    assert_true(gpsti_recall_differs(&few, 12, &many, 4));
    assert_true(gpsti_recall_differs(&many, 4, &few, 12));
    assert_true(gpsti_recall_differs(&few, 0, &many, 12)); /* nobody knows */
    many.service_ns[GPST_RESOURCE_GPU] = 1900; /* so many may be no slower */
    assert_false(gpsti_recall_differs(&few, 12, &many, 4));
    many.service_ns[GPST_RESOURCE_GPU] = 6100;
    assert_true(gpsti_recall_differs(&few, 4, &many, 12));
}

static void put_inside(gpsti_recall* recall, double run_ns, bool knew) {
    gpsti_recalled run = a_run(1, run_ns);
    run.inside_ns = 50.0;
    gpsti_recall_put(recall, &run, knew);
}

static bool is_tried(const gpsti_recall* recall) {
    const gpsti_recalled* const known = gpsti_recall_find(recall, 1);
    return known && gpsti_recall_serves(known, 100);
}

/* Two runs in a row that were slower by little: the plain start, in which they had every core, stays for eight runs,
   and the next time for four times as many, until all is found out anew. */
static void test_kernels_that_had_every_core(void** state) {
    static gpsti_recall recall;
    static const double first_ns[] = {102.0, 104.0, 102.0, 104.0, 104.0};
    uint32_t n = 0;
    (void)state;
    memset(&recall, 0, sizeof recall);
    put_inside(&recall, 100.0, false);
    for (int i = 0; i < 5; i++) {
        assert_true(is_tried(&recall));
        put_inside(&recall, first_ns[i], true);
    }
    for (; n < 8; n++) {
        assert_true(!is_tried(&recall) && recall.n == 1);
        put_inside(&recall, 100.0 + n, false);
    }
    for (int i = 0; i < 2; i++) { /* against the last of those */
        assert_true(is_tried(&recall));
        put_inside(&recall, i == 0 ? 109.0 : 112.0, true);
    }
    assert_true(is_tried(&recall));
    put_inside(&recall, 112.0, true);
    for (n = 0; !is_old(&recall, 1) && n < 100; n++) {
        assert_false(is_tried(&recall));
        put_inside(&recall, 100.0, false);
    }
    assert_int_equal(n, 32 - 5 - 8 - 3);
    put_inside(&recall, 100.0, false);
    assert_true(is_tried(&recall));
    for (int i = 0; i < 2; i++)
        put_inside(&recall, 112.0, true);
    for (n = 0; !is_tried(&recall) && n < 100; n++)
        put_inside(&recall, 100.0, false);
    assert_int_equal(n, 8);
}

/* What the last run had to say, not the first. */
static void test_the_latest_is_known(void** state) {
    static gpsti_recall recall;
    gpsti_recalled run = a_run(1, 100.0);
    (void)state;
    memset(&recall, 0, sizeof recall);
    run.n_slots = 3;
    gpsti_recall_put(&recall, &run, false);
    run.n_slots = 5;
    gpsti_recall_put(&recall, &run, true);
    assert_int_equal(gpsti_recall_find(&recall, 1)->n_slots, 5);
    assert_int_equal(recall.n, 1);
}

/* Of the latest jobs; none is job 0. */
static void test_brief_jobs(void** state) {
    static gpsti_recall recall;
    (void)state;
    memset(&recall, 0, sizeof recall);
    gpsti_recall_note_first(&recall, 0, true);
    assert_false(gpsti_recall_is_brief(&recall, 0));
    for (uint64_t job = 1; job <= GPSTI_RECALL_MOST; job++)
        gpsti_recall_note_first(&recall, job, true);
    gpsti_recall_note_first(&recall, 1, true); /* again: the latest now */
    gpsti_recall_note_first(&recall, 99, false);
    gpsti_recall_note_first(&recall, 100, true);
    assert_true(gpsti_recall_is_brief(&recall, 1) && gpsti_recall_is_brief(&recall, 100));
    assert_false(gpsti_recall_is_brief(&recall, 2) || gpsti_recall_is_brief(&recall, 99));
    for (uint64_t job = 3; job <= GPSTI_RECALL_MOST; job++)
        assert_true(gpsti_recall_is_brief(&recall, job));
    gpsti_recall_note_first(&recall, 5, false);
    assert_false(gpsti_recall_is_brief(&recall, 5));
    assert_true(gpsti_recall_is_brief(&recall, 4) && gpsti_recall_is_brief(&recall, 6));
    assert_int_equal(recall.n_brief, GPSTI_RECALL_MOST - 1);
}

static void test_whom_it_serves(void** state) {
    const gpsti_recalled run = a_run(1, 1.0);
    (void)state;
    assert_false(gpsti_recall_serves(&run, 49));
    assert_true(gpsti_recall_serves(&run, 50));
    assert_true(gpsti_recall_serves(&run, 100000));
}

static void test_other_items(void** state) {
    gpsti_tuner_costs then, now;
    (void)state;
    memset(&then, 0, sizeof then);
    then.service_ns[GPST_RESOURCE_CPU] = 8000;
    then.service_ns[GPST_RESOURCE_DISK_IN] = 1000;
    now = then;
    assert_false(gpsti_recall_differs(&then, 4, &now, 4));
    now.service_ns[GPST_RESOURCE_CPU] = 15000;
    now.service_ns[GPST_RESOURCE_DISK_IN] = 3000; /* three times as much of little */
    assert_false(gpsti_recall_differs(&then, 4, &now, 4));
    now.service_ns[GPST_RESOURCE_DISK_IN] = 4000;
    assert_true(gpsti_recall_differs(&then, 4, &now, 4));
    now = then;
    now.service_ns[GPST_RESOURCE_CPU] = 17000;
    assert_true(gpsti_recall_differs(&then, 4, &now, 4));
    now.service_ns[GPST_RESOURCE_CPU] = 3900;
    assert_true(gpsti_recall_differs(&then, 4, &now, 4));
}

/* ---- runs ------------------------------------------------------------------------------------------------ */

enum { N_ITEMS = 64, N_WORKERS = 4 };
static const char known_job[] = "known job: starts with";

static gpst_pipeline_desc a_job(kit* self) {
    gpst_pipeline_desc desc = kit_standard(self, N_ITEMS);
    desc.n_items_expected = N_ITEMS;
    self->decode_ns = 2000000;
    return desc;
}

static gpst_stats stats;

/* A second one may know its items: only a run that was faster than its plain start is remembered. */
static void run_again(kit* self, gpst_pipeline_desc* desc) {
    const gpst_result result = run_tuned(self, desc, &stats);
    const bool knew = report.n_decisions > 0 && strncmp(report.decisions[0].reason, known_job, strlen(known_job)) == 0;
    assert_int_equal(result, self->fail_place == KIT_NOWHERE ? GPST_OK : GPST_PARTIAL);
    assert_int_equal(self->n_sinks, self->n_items);
    assert_true(knew || !said(known_job)); /* it is the first thing */
    kit_check_files(self);
    kit_remove_files(self, "out_");
}

/* A run that finds out anew has as many workers for whole items as those before it had come to. */
static void test_workers_of_a_run_that_finds_out(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", N_WORKERS);
    gpst_pipeline_desc desc = a_job(self);
    gpsti_recall* const recall = &gpsti_jobs_of(self->context)->recall;
    for (int is_old = 0; is_old < 2; is_old++) {
        desc.mode = GPST_RUN_DEFAULT;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        gpsti_recalled run = a_crowd(3, 4, 100.0);
        assert_false(gpsti_tune_recall(self->pipeline)); /* and has its job */
        run.job = self->pipeline->tune.job;
        gpsti_recall_put(recall, &run, false);
        recall->known[0].is_old = is_old;
        recall->known[0].n_items = 1000 * N_ITEMS; /* which it does not serve in any case */
        recall->known[0].workers.best = 3;
        assert_false(gpsti_tune_recall(self->pipeline));
        assert_int_equal(self->pipeline->tune.n_whole_workers, is_old ? 3 : 0);
        gpsti_recall_forget(recall, run.job);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
    }
    kit_close(self);
}

/* Of few items only where they were whole. */
static void test_how_short_a_run_is_remembered(void** state) {
    static const struct {
        bool whole;
        uint64_t n_items;
        bool is_known;
    } rows[] = {{true, 3, false}, {true, 4, true}, {false, 31, false}, {false, 32, true}};
    (void)state;
    kit* const self = kit_open("cpu", N_WORKERS);
    gpst_pipeline_desc desc = a_job(self);
    desc.mode = GPST_RUN_DEFAULT;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        kit_forget(self);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        gpst_pipeline* const pipeline = self->pipeline;
        assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
        pipeline->tune.job = 77;
        pipeline->tune.modelled = true;
        pipeline->tune.serial_ns = 0.0; /* however fast a plain loop is */
        pipeline->tune.tuner.now.value[GPST_KNOB_LOOP] = GPST_RUN_ENGINE;
        const bool whole = pipeline->whole;
        pipeline->whole = rows[r].whole;
        pipeline->items_ok = rows[r].n_items;
        gpsti_tune_remember(pipeline);
        assert_int_equal(gpsti_recall_find(&gpsti_jobs_of(self->context)->recall, 77) != NULL, rows[r].is_known);
        gpsti_recall_forget(&gpsti_jobs_of(self->context)->recall, 77);
        pipeline->whole = whole;
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_remove_files(self, "out_");
    }
    kit_close(self);
}

/* No engine to be had: the run begins as any other. */
static void test_every_allocation_refused(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", N_WORKERS);
    gpst_pipeline_desc desc = a_job(self);
    self->decode_ns = 500000;
    run_again(self, &desc);
    bool refused = true;
    uint64_t n = 1, n_ran = 0;
    for (; refused && n < 400; n++) {
        gpst_pipeline* pipeline = NULL;
        kit_forget(self);
        if (gpst_pipeline_create(self->context, &desc, &pipeline) == GPST_OK) {
            test_memory_refuse(&self->memory, n);
            const gpst_result ran = gpst_pipeline_run(pipeline);
            assert_true(ran == GPST_OK || ran == GPST_PARTIAL);
            assert_int_equal(self->n_sinks, self->n_items);
            assert_true(self->n_failed <= 1);
            n_ran++;
        }
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        refused = test_memory_refused(&self->memory);
        test_memory_relent(&self->memory);
        kit_check_files(self);
        kit_remove_files(self, "out_");
        run_again(self, &desc);
    }
    assert_false(refused);
    assert_true(n_ran > 3);
    kit_close(self);
}

/* ---- side by side ------------------------------------------------------------------------------------------ */

enum { N_SIDE = 3 };

typedef struct side {
    gpst_context* context;
    uint32_t n_begun, n_done;
    gpsti_a64 n_items;
} side;

static gpst_result side_source(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data;
    out->name = "side";
    return index < N_ITEMS ? GPST_OK : GPST_END;
}

static gpst_result side_work(void* user_data, gpst_task* task) {
    (void)task;
    gpsti_sleep_ns(500000);
    gpsti_a64_add(&((side*)user_data)->n_items, 1);
    return GPST_OK;
}

static void run_beside_others(void* arg) {
    side* const self = (side*)arg;
    for (int i = 0; i < 6; i++) {
        gpst_stage_desc stage = GPST_ZERO;
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_pipeline* pipeline = NULL;
        stage.kind = GPST_STAGE_HOST;
        stage.func = side_work;
        stage.user_data = self;
        desc.stages = &stage;
        desc.n_stages = 1;
        desc.source = side_source;
        desc.n_items_expected = N_ITEMS;
        self->n_begun += GPST_FAILED(gpst_pipeline_create(self->context, &desc, &pipeline)) ? 0 : 1;
        self->n_done += pipeline && gpst_pipeline_run(pipeline) == GPST_OK ? 1 : 0;
        (void)gpst_pipeline_destroy(pipeline);
    }
}

/* The same job on several threads: each remembers and recalls what another does at that moment. */
static void test_side_by_side(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", N_WORKERS);
    gpsti_thread threads[N_SIDE];
    side sides[N_SIDE];
    memset(sides, 0, sizeof sides);
    for (int t = 0; t < N_SIDE; t++) {
        sides[t].context = self->context;
        assert_int_equal(gpsti_thread_start(&threads[t], run_beside_others, &sides[t], "side"), GPST_OK);
    }
    for (int t = 0; t < N_SIDE; t++)
        gpsti_thread_join(&threads[t]);
    for (int t = 0; t < N_SIDE; t++) {
        assert_int_equal(sides[t].n_begun, 6);
        assert_int_equal(sides[t].n_done, 6);
        assert_int_equal(gpsti_a64_load(&sides[t].n_items), 6 * N_ITEMS);
    }
    assert_true(gpsti_jobs_of(self->context)->recall.n <= 1);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_jobs),
                                       cmocka_unit_test(test_slower_runs),
                                       cmocka_unit_test(test_brief_jobs),
                                       cmocka_unit_test(test_whom_it_serves),
                                       cmocka_unit_test(test_it_is_not_known_for_ever),
                                       cmocka_unit_test(test_kernels_that_had_every_core),
                                       cmocka_unit_test(test_workers_are_found),
                                       cmocka_unit_test(test_workers_of_a_full_device),
                                       cmocka_unit_test(test_workers_that_moved),
                                       cmocka_unit_test(test_workers_are_sought_from_there),
                                       cmocka_unit_test(test_workers_are_as_they_were),
                                       cmocka_unit_test(test_too_few_workers_are_not_tried),
                                       cmocka_unit_test(test_workers_that_are_all),
                                       cmocka_unit_test(test_workers_that_may_be_more),
                                       cmocka_unit_test(test_workers_that_could_not_be_more),
                                       cmocka_unit_test(test_a_crowd_takes_longer),
                                       cmocka_unit_test(test_the_latest_is_known),
                                       cmocka_unit_test(test_other_items),
                                       cmocka_unit_test(test_workers_of_a_run_that_finds_out),
                                       cmocka_unit_test(test_how_short_a_run_is_remembered),
                                       cmocka_unit_test(test_every_allocation_refused),
                                       cmocka_unit_test(test_side_by_side)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
