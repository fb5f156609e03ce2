/* tests/test_tuner_whole.c -- the tuner's policy where workers bring items whole: how many of them, and which moves. */
#include "tuner_machine.h"

/* ---- whole items ------------------------------------------------------------------------------------- */

static uint32_t whole_workers(const machine* m, const gpsti_tuner_budget* budget) {
    const gpsti_tuner_costs costs = costs_of(m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, budget, &costs);
    return gpsti_tuner_whole_workers(&tuner, &costs);
}

static uint32_t whole_workers_of(const machine* m) {
    const gpsti_tuner_budget budget = budget_of(m);
    return whole_workers(m, &budget);
}

/* All cores where computing is what there is to do; of a busy device's workers a few; none where a worker with an item
   would wait for longer than the others can make good. */
static void test_who_brings_whole_items(void** state) {
    (void)state;
    machine m = brief_machine(16);
    assert_int_equal(whole_workers_of(&m), 0); /* nothing is known */
    m.cpu = 0.1;
    assert_int_equal(whole_workers_of(&m), 16);
    m.gpu = 0.05; /* 3 periods: that many keep it busy, and one comes with the next */
    assert_int_equal(whole_workers_of(&m), 3 + 1);
    m.gpu = 0.5; /* 1.2 periods */
    assert_int_equal(whole_workers_of(&m), 1 + 1);
    m.gpu = 0.05;
    m.workers = m.cores = 3;
    assert_int_equal(whole_workers_of(&m), 3);
    m.workers = m.cores = 2; /* 0.15 ms each: two bring an item every 0.075 ms, and the engine every 0.095 */
    assert_int_equal(whole_workers_of(&m), 2);
    m.h2d = m.d2h = 0.1; /* 0.35 each: every 0.175, the engine every 0.1 */
    assert_int_equal(whole_workers_of(&m), 0);
}

/* Handing items on takes of the workers' time, too: of brief ones that share a submission 0.015 ms, of others 0.09. A
   device that is played by cores is on theirs, and nobody is woken for it. */
static void test_whole_items_of_few_workers(void** state) {
    (void)state;
    static const struct {
        double cpu, gpu, played;
        uint32_t batch, workers;
    } rows[] = {{0.010, 0.006, 0.0, 0, 2},     /* every 0.008 ms; the engine every 0.05 */
                {0.010, 0.006, 0.0, 16, 2},    /* every 0.0125 */
                {0.100, 0.029, 0.0, 0, 2},     /* every 0.0645; the engine every 0.095 */
                {0.100, 0.029, 0.0, 16, 0},    /* every 0.0575 */
                {0.100, 0.050, 0.0, 16, 2},    /* which share none: every 0.075, and 0.095 */
                {0.100, 0.050, 0.001, 0, 0},   /* every 0.058 */
                {0.100, 0.050, 0.020, 0, 0},   /* every 0.0675 */
                {0.100, 0.050, 0.050, 0, 2}};  /* every 0.0825 */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        machine m = brief_machine(2);
        m.cpu = rows[i].cpu;
        m.gpu = rows[i].gpu;
        gpsti_tuner_budget budget = budget_of(&m);
        gpsti_tuner_costs costs = costs_of(&m);
        gpsti_tuner tuner;
        budget.batch = rows[i].batch;
        costs.played_ns = (int64_t)(rows[i].played * MS);
        gpsti_tuner_init(&tuner, &budget, &costs);
        if (gpsti_tuner_whole_workers(&tuner, &costs) != rows[i].workers)
            fail_msg("row %u: %u workers", (unsigned)i, gpsti_tuner_whole_workers(&tuner, &costs));
    }
}

/* What opening an engine is expected to bring: no more than what is busy all the time allows. */
static void test_period_of_whole_items(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.09;
    m.gpu = 0.03;
    gpsti_tuner_costs costs = costs_of(&m);
    assert_int_equal(gpsti_tuner_whole_period_ns(&costs, 2), (int64_t)(0.06 * MS));
    assert_int_equal(gpsti_tuner_whole_period_ns(&costs, 8), (int64_t)(0.03 * MS)); /* the device's */
    costs.played_ns = (int64_t)(0.05 * MS);
    assert_int_equal(gpsti_tuner_whole_period_ns(&costs, 2), (int64_t)(0.07 * MS)); /* two cores' */
}

/* Files that wait: as many at once as there are workers, of which a disk serves so many as fast as more. Files that are
   made want few threads that make them: more workers than four leave that to the engine's writers. */
static void test_whole_items_that_wait_for_files(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.01;
    m.read = 0.8; /* the engine: every 0.1 ms; 16 workers: every 0.05 */
    assert_int_equal(whole_workers_of(&m), 16);
    m.workers = m.cores = 8;
    assert_int_equal(whole_workers_of(&m), 8);
    m.workers = m.cores = 7; /* every 0.116 ms */
    assert_int_equal(whole_workers_of(&m), 0);
    m.cpu = 4.0; /* 7 workers: every 0.686 ms, and the engine 0.571 */
    assert_int_equal(whole_workers_of(&m), 0);
    m.cpu = 8.1; /* what they wait is less than a tenth */
    assert_int_equal(whole_workers_of(&m), 7);
    m.write = 0.01;
    assert_int_equal(whole_workers_of(&m), 0);
    m.workers = m.cores = 5;
    assert_int_equal(whole_workers_of(&m), 0);
    m.workers = m.cores = 4;
    m.read = 0.0;
    assert_int_equal(whole_workers_of(&m), 4);
}

/* Where a read waits for more than a disk, others can beside it: the engine has more of them in flight than there are
   workers. */
static void test_whole_items_from_far_away(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.01;
    m.read = 1.9; /* eight at once: every 0.24 ms; 16 workers: every 0.12 */
    assert_int_equal(whole_workers_of(&m), 16);
    m.read = 2.1; /* 32 at once: every 0.066 ms; 16 workers: every 0.132 */
    assert_int_equal(whole_workers_of(&m), 0);
    m.workers = m.cores = 32;
    assert_int_equal(whole_workers_of(&m), 32);
    m.read = 1.9; /* of 64 KiB, so that it waits for no disk: 64 at once, every 0.03 ms; 32 workers: every 0.06 */
    const gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    costs.read_bytes = 65536;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 0);
    costs.read_bytes = 190001;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 32);
}

/* What item 0's read did not tell: the others wait, and not for their bytes. Half of what they want is near enough, nor
   does it matter how many are wanted where they are a disk's or the user's. */
static void test_reads_after_the_first_wait(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 3.2; /* 0.2 ms a worker */
    m.read = 0.1;
    gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 1);
    costs.read_bytes = 64;
    assert_false(gpsti_tuner_finds_waits(&tuner, &costs, MS / 10));
    costs.service_ns[GPST_RESOURCE_DISK_IN] = (int64_t)(1.1 * MS); /* 2 * (5 + 1) */
    assert_true(gpsti_tuner_finds_waits(&tuner, &costs, MS / 10));
    costs.read_bytes = 200000; /* a disk's after all */
    assert_false(gpsti_tuner_finds_waits(&tuner, &costs, MS / 10));
    costs.read_bytes = 64;
    tuner.now.value[GPST_KNOB_READS] = 7;
    assert_false(gpsti_tuner_finds_waits(&tuner, &costs, MS / 20));
    tuner.now.value[GPST_KNOB_READS] = 6;
    assert_true(gpsti_tuner_finds_waits(&tuner, &costs, MS / 20));
    budget.fixed.value[GPST_KNOB_READS] = 2;
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_false(gpsti_tuner_finds_waits(&tuner, &costs, MS / 10));
    m.cpu = 0.3;
    costs = costs_of(&m);
    budget = budget_of(&m);
    gpsti_tuner_init(&tuner, &budget, &costs);
    gpsti_tuner_set_whole(&tuner, &costs, 16, false);
    assert_false(gpsti_tuner_finds_waits(&tuner, &costs, MS / 10));
    costs.service_ns[GPST_RESOURCE_DISK_IN] = (int64_t)(5.0 * MS);
    costs.read_bytes = 64;
    assert_true(gpsti_tuner_finds_waits(&tuner, &costs, MS / 10));
    assert_true(gpsti_tuner_finds_waits(&tuner, &costs, (int64_t)(0.156 * MS)));
    assert_false(gpsti_tuner_finds_waits(&tuner, &costs, (int64_t)(0.157 * MS))); /* in turn, perhaps */
    assert_false(gpsti_tuner_finds_waits(&tuner, &costs, (int64_t)(1.24 * MS)));
    assert_true(gpsti_tuner_finds_waits(&tuner, &costs, (int64_t)(1.26 * MS))); /* side by side */
}

/* Who writes into the page cache waits for nobody: handing that on to the engine's writers gains no core. */
static void test_writing_that_computes(void** state) {
    (void)state;
    machine m = brief_machine(2);
    m.cpu = 0.1;
    m.write = 0.1;
    const gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 0);
    costs.writes_compute = true;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 2);
    costs.service_ns[GPST_RESOURCE_GPU] = (int64_t)(0.1 * MS); /* still to be waited for */
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 0);
}

/* On a disk many who make files in one directory take turns. */
static void test_files_that_are_on_no_disk(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    m.write = 0.1;
    const gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    costs.writes_compute = true;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 0);
    costs.files_in_memory = true;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 16);
    m.cpu = 0.012; /* brief ones meet there all the same: 0.004 ms of 0.032 */
    m.write = 0.02;
    costs = costs_of(&m);
    costs.writes_compute = costs.files_in_memory = true;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 8 + 1);
    costs.service_ns[GPST_RESOURCE_CPU] = 0; /* never fewer than may on a disk */
    costs.service_ns[GPST_RESOURCE_DISK_OUT] = (int64_t)(0.005 * MS);
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 4);
    tuner.budget.outputs = 4;
    costs.service_ns[GPST_RESOURCE_DISK_OUT] = (int64_t)(0.1 * MS);
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 6 + 1);
}

/* Towards a list's end, or of a short one. */
static void test_items_for_every_worker(void** state) {
    (void)state;
    machine m = brief_machine(16);
    const gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    memset(costs.service_ns, 0, sizeof costs.service_ns);
    costs.service_ns[GPST_RESOURCE_CPU] = (int64_t)(0.5 * MS);
    for (uint32_t outputs = 1; outputs <= 2; outputs++) { /* brief items */
        tuner.budget.outputs = outputs;
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, &costs, 16, 32), 16);
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, &costs, 16, 31), 15);
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, &costs, 16, 4), 2);
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, &costs, 16, 3), 0);
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, &costs, 0, 3), 0);
    }
    costs.service_ns[GPST_RESOURCE_CPU]++;
    for (int known = 0; known < 2; known++) {
        const gpsti_tuner_costs* const long_ones = known ? &costs : NULL;
        tuner.budget.outputs = 1;
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, long_ones, 16, 32), 16);
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, long_ones, 16, 31), 0);
        tuner.budget.outputs = 2; /* the last ones are shared */
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, long_ones, 16, 64), 16);
        assert_int_equal(gpsti_tuner_fit_whole(&tuner, long_ones, 16, 63), 0);
    }
}

/* What no clock has, of an item's way in the plain loop, wants workers, too; and an item 0 alone as many again: it may
   have loaded a device's kernels. Of one that was longer with its file the device says nothing. */
static void test_whole_items_on_a_device(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    m.gpu = 0.05;
    const gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    costs.item_ns = (int64_t)(0.4 * MS);
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 4); /* most of it calls */
    costs.item_ns = (int64_t)(0.99 * MS);
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 16);
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++) /* a tenth of it all: mostly calls, which take turns */
        costs.service_ns[r] /= 10;
    costs.item_ns /= 10;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 4);
    costs = costs_of(&m);
    costs.item_ns = (int64_t)(50.1 * MS); /* long after all */
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 0);
    costs.item_ns = 0;
    costs.is_first = true;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 2 * 3 + 1);
    costs.read_ns = (int64_t)(0.025 * MS); /* of its CPU time */
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 2 * 3 + 1);
    costs.read_ns++;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 16);
    costs.is_first = false;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 3 + 1);
    costs.is_first = true;
    costs.read_ns = 0;
    costs.service_ns[GPST_RESOURCE_DISK_IN] = (int64_t)(0.8 * MS); /* eight at once; 16 workers: every 0.056 ms */
    costs.service_ns[GPST_RESOURCE_H2D] = (int64_t)(1.5 * MS);
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 16);
    costs.is_first = false;
    assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), 1 + 1);
}

/* Of brief items nobody can tell whether three threads keep a device busy, or six: four do, where there are so many. So
   they do where less than half of an item's way is reading and computing. */
static void test_whole_items_that_are_mostly_calls(void** state) {
    (void)state;
    static const struct {
        double cpu, gpu, item; /* the whole way, of which clocks may know less */
        uint32_t workers, n, known; /* n: of a job that has not run before */
    } rows[] = {{0.15, 0.12, 0.0, 16, 4, 3}, {0.1, 0.05, 0.0, 16, 4, 4}, {0.15, 0.05, 0.0, 16, 4, 5},
                {0.24, 0.05, 0.0, 16, 4, 6}, {0.3, 0.05, 0.0, 16, 8, 8}, {0.3, 0.04, 0.0, 16, 9, 9},
                {0.1, 0.12, 0.0, 16, 2, 2}, {0.449, 0.05, 0.0, 16, 10, 10}, {1.0, 0.3, 0.0, 16, 5, 5},
                {0.15, 0.08, 0.0, 3, 3, 3}, {0.2, 0.02, 0.4, 16, 16, 16}, {0.199, 0.02, 0.4, 16, 4, 8},
                {0.199, 0.02, 0.5, 16, 16, 16}, {4.2, 0.34, 0.0, 16, 16, 16}, {4.2, 0.36, 0.0, 16, 13, 13}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        machine m = brief_machine(rows[i].workers);
        m.cpu = rows[i].cpu;
        m.gpu = rows[i].gpu;
        gpsti_tuner_budget budget = budget_of(&m);
        gpsti_tuner_costs costs = costs_of(&m);
        gpsti_tuner tuner;
        costs.item_ns = (int64_t)(rows[i].item * MS);
        gpsti_tuner_init(&tuner, &budget, &costs);
        assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), rows[i].n);
        budget.known = true;
        gpsti_tuner_init(&tuner, &budget, &costs);
        assert_int_equal(gpsti_tuner_whole_workers(&tuner, &costs), rows[i].known);
    }
}

/* Reads that wait for each other, no longer than that, are what they were; those that became slow are not. */
static void test_reads_beside_others(void** state) {
    (void)state;
    assert_int_equal(gpsti_tuner_file_alone_ns(900, 1000, 8), 900);
    assert_int_equal(gpsti_tuner_file_alone_ns(1001, 1000, 8), 1000);
    assert_int_equal(gpsti_tuner_file_alone_ns(8000, 1000, 8), 1000);
    assert_int_equal(gpsti_tuner_file_alone_ns(8001, 1000, 8), 8001);
    assert_int_equal(gpsti_tuner_file_alone_ns(8000, 1000, 1), 8000);
    assert_int_equal(gpsti_tuner_file_alone_ns(500, 0, 8), 500);
}

static void test_long_items_are_not_whole(void** state) {
    (void)state;
    machine m = brief_machine(4);
    m.cpu = 6.0;
    m.gpu = 3.9; /* three workers keep it busy */
    assert_int_equal(whole_workers_of(&m), 3);
    m.gpu = 4.1;
    assert_int_equal(whole_workers_of(&m), 0);
}

/* Longer ones are where every worker has its own, and nothing of it is for others: four outputs are. */
static void test_longer_items_for_all_workers(void** state) {
    (void)state;
    machine m = brief_machine(4);
    m.cpu = 49.9;
    assert_int_equal(whole_workers_of(&m), 4);
    gpsti_tuner_budget budget = budget_of(&m);
    budget.outputs = 1;
    assert_int_equal(whole_workers(&m, &budget), 4);
    budget.outputs = 4;
    assert_int_equal(whole_workers(&m, &budget), 0);
    m.cpu = 9.9;
    assert_int_equal(whole_workers(&m, &budget), 4);
    m.cpu = 50.1;
    assert_int_equal(whole_workers_of(&m), 0);
}

/* Each worker's item has its memory, on the host and on the device. */
static void test_memory_of_whole_items(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    gpsti_tuner_budget budget = budget_of(&m);
    budget.host_bytes = (uint64_t)160 << 20;
    budget.item_host_bytes = (uint64_t)9 << 20; /* 16 of them */
    assert_int_equal(whole_workers(&m, &budget), 16);
    budget.item_host_bytes = (uint64_t)12 << 20; /* 12: a quarter of the cores rests, in whichever way */
    assert_int_equal(whole_workers(&m, &budget), 12);
    m.gpu = 0.009; /* what the device does of 12 items is nothing to wait for */
    assert_int_equal(whole_workers(&m, &budget), 12);
    m.gpu = 0.03;
    budget = budget_of(&m);
    budget.device_bytes = (uint64_t)50 << 20;
    budget.item_device_bytes = (uint64_t)11 << 20; /* 4 of them */
    assert_int_equal(whole_workers(&m, &budget), 4);
    budget.item_device_bytes = (uint64_t)30 << 20; /* 1, of 4 that are needed */
    assert_int_equal(whole_workers(&m, &budget), 0);
}

/* Workers move, and slots with them; what serves single steps has no use. A worker is not tried that the device has no
   memory for. */
static void test_knobs_of_whole_items(void** state) {
    (void)state;
    for (int waits = 0; waits < 2; waits++) {
        machine m = brief_machine(8);
        m.cpu = m.gpu = 0.05;
        m.read = m.write = 0.01;
        gpsti_tuner_budget budget = budget_of(&m);
        budget.batch = 16;
        budget.device_bytes = (uint64_t)100 << 20;
        budget.item_device_bytes = (uint64_t)1 << 20;
        const gpsti_tuner_costs costs = costs_of(&m);
        gpsti_tuner tuner;
        gpsti_tuner_init(&tuner, &budget, &costs);
        const gpst_settings before = tuner.now;
        gpsti_tuner_set_whole(&tuner, &costs, 4, waits);
        assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 4);
        assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], waits ? before.value[GPST_KNOB_SLOTS] : 4);
        assert_memory_equal(&tuner.now, &tuner.kept, sizeof tuner.now);
        const gpst_settings first = tuner.now;
        for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++) { /* whatever a window is full of */
            gpsti_tuner trial = tuner;
            gpsti_tuner_window w;
            memset(&w, 0, sizeof w);
            w.n_items = 100;
            w.wall_ns = w.starved_ns = 100000000;
            w.wait_ns[r] = w.service_ns[r] = w.busy_ns[r] = 8 * w.wall_ns;
            for (uint64_t n = 100; n < 2000; n += 100) {
                (void)gpsti_tuner_judge(&trial, &w, n);
                for (int k = 1; k < (int)GPST_KNOB_COUNT; k++)
                    if (k != (int)GPST_KNOB_WORKERS && k != (int)GPST_KNOB_SLOTS)
                        assert_int_equal(trial.now.value[k], first.value[k]);
            }
        }
        gpsti_tuner_set_whole(&tuner, &costs, 4, waits);
        (void)gpsti_tuner_resize(&tuner, 1, (uint64_t)30 << 20); /* 3 of them fit */
        assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 3);
        assert_int_equal(tuner.most.value[GPST_KNOB_WORKERS], 3);
    }
}

/* Workers that wait are not all there could be: more of them are tried, with a slot for each, and kept where they
   pay. */
static void test_more_workers_with_whole_items(void** state) {
    (void)state;
    machine m = brief_machine(8);
    m.cpu = 0.02;
    m.blocked = 0.2;
    const gpsti_tuner_budget budget = budget_of(&m);
    const gpsti_tuner_costs costs = costs_of(&m);
    uint64_t random = test_seed(31);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    gpsti_tuner_set_whole(&tuner, &costs, 4, false);
    (void)run(&tuner, &m, 1000, &random);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 8);
    assert_true(tuner.now.value[GPST_KNOB_SLOTS] >= 8);
    assert_non_null(strstr(tuner.decisions[tuner.n_decisions - 1].reason, "every worker has an item"));
}

static gpsti_tuner whole_tuner(const machine* m, uint32_t n_workers) {
    const gpsti_tuner_budget budget = budget_of(m);
    const gpsti_tuner_costs costs = costs_of(m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    gpsti_tuner_set_whole(&tuner, &costs, n_workers, false);
    return tuner;
}

/* A window of whole items that take `crowd` ms more for each worker beside theirs. */
static gpsti_tuner_window crowded_window(const machine* m, const gpsti_tuner* tuner, double crowd) {
    const double n = tuner->now.value[GPST_KNOB_WORKERS];
    const double way = m->cpu + crowd * (n - 1.0);
    gpsti_tuner_window w;
    memset(&w, 0, sizeof w);
    w.n_items = 100;
    w.wall_ns = (int64_t)(100.0 * way / n * MS);
    w.service_ns[GPST_RESOURCE_CPU] = w.cpu_ns = (int64_t)(100.0 * way * MS);
    return w;
}

static uint32_t workers_after_crowding(double crowd, uint32_t* n_decisions) {
    machine m = brief_machine(16);
    m.cpu = 0.1;
    gpsti_tuner tuner = whole_tuner(&m, 16);
    for (uint64_t n = 100; tuner.state != GPSTI_TUNER_FROZEN && n < 5000; n += 100) {
        const gpsti_tuner_window window = crowded_window(&m, &tuner, crowd);
        (void)gpsti_tuner_judge(&tuner, &window, n);
        assert_within(&tuner);
        assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], tuner.now.value[GPST_KNOB_WORKERS]);
    }
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    *n_decisions = tuner.n_decisions;
    return tuner.kept.value[GPST_KNOB_WORKERS];
}

/* As many as are kept where so many items a ms come of so many workers, and a window is so noisy. */
static uint32_t workers_of_rates(const double* items_a_ms, double noise) {
    machine m = brief_machine(16);
    m.cpu = 0.1;
    gpsti_tuner tuner = whole_tuner(&m, 16);
    for (uint64_t n = 100; tuner.state != GPSTI_TUNER_FROZEN && n < 5000; n += 100) {
        gpsti_tuner_window window = crowded_window(&m, &tuner, 0.0);
        window.wall_ns = (int64_t)(100.0 / items_a_ms[tuner.now.value[GPST_KNOB_WORKERS]] * MS);
        window.noise = noise;
        (void)gpsti_tuner_judge(&tuner, &window, n);
    }
    return tuner.kept.value[GPST_KNOB_WORKERS];
}

/* Items that take more than twice as long side by side: half as many workers are tried, and half of them again, for as
   long as that pays. */
static void test_whole_items_in_each_other_s_way(void** state) {
    (void)state;
    uint32_t n_decisions = 0;
    assert_int_equal(workers_after_crowding(0.0, &n_decisions), 16);
    assert_int_equal(n_decisions, 1);
    assert_int_equal(workers_after_crowding(0.006, &n_decisions), 16); /* 1.9 times as long */
    assert_int_equal(n_decisions, 1);
    assert_int_equal(workers_after_crowding(0.05, &n_decisions), 16); /* 8.5 times: 19.2 a ms, and 17.8 with eight */
    assert_int_equal(n_decisions, 2);
    static const double best_is_4[] = {0, 10, 16, 0, 18, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0, 0, 12};
    assert_int_equal(workers_of_rates(best_is_4, 0.0), 4);
}

/* Of numbers of them that are as fast the least; one that is not quite as fast is not. */
static void test_fewer_are_as_good(void** state) {
    (void)state;
    static const double as_fast[] = {0, 10, 11.9, 0, 12, 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 12};
    assert_int_equal(workers_of_rates(as_fast, 0.0), 4);
    assert_int_equal(workers_of_rates(as_fast, 0.05), 4); /* and where a window says little */
    static const double not_quite[] = {0, 0, 0, 0, 0, 0, 0, 0, 11.9, 0, 0, 0, 0, 0, 0, 0, 12};
    assert_int_equal(workers_of_rates(not_quite, 0.0), 16);
}

/* Where items wait for their turn at a sink there are more slots than workers, and they stay. */
static void test_slots_of_those_that_wait_for_turns(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    const gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner = whole_tuner(&m, 16);
    const uint32_t n_slots = tuner.now.value[GPST_KNOB_SLOTS] = tuner.now.value[GPST_KNOB_SLOTS] + 2;
    gpsti_tuner_set_whole(&tuner, &costs, 16, true);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], n_slots);
    for (uint64_t n = 100; tuner.now.value[GPST_KNOB_WORKERS] == 16 && n < 1000; n += 100) {
        const gpsti_tuner_window window = crowded_window(&m, &tuner, 0.05);
        (void)gpsti_tuner_judge(&tuner, &window, n);
    }
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 8);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], n_slots);
}

/* Items that wait for a busy device are in nobody's way; one that rests more than half the time they do not wait for. */
static void test_whole_items_that_queue_for_a_device(void** state) {
    (void)state;
    static const gpst_resource engines[] = {GPST_RESOURCE_H2D, GPST_RESOURCE_GPU, GPST_RESOURCE_D2H};
    machine m = brief_machine(16);
    m.cpu = 0.1;
    for (int i = 0; i < 3; i++) {
        gpsti_tuner tuner = whole_tuner(&m, 3);
        gpsti_tuner_window window = crowded_window(&m, &tuner, 0.1);
        window.wall_ns *= 2;
        window.busy_ns[engines[i]] = window.wall_ns / 10 * 6;
        gpsti_tuner at_rest = tuner;
        (void)gpsti_tuner_judge(&tuner, &window, 100);
        assert_true(tuner.now.value[GPST_KNOB_WORKERS] >= 3);
        window.busy_ns[engines[i]] = window.wall_ns / 10 * 4;
        (void)gpsti_tuner_judge(&at_rest, &window, 100);
        assert_int_equal(at_rest.now.value[GPST_KNOB_WORKERS], 1);
    }
}

/* One that is always busy, at whatever, serves no more of them. */
static void test_a_full_device_wants_no_more(void** state) {
    (void)state;
    static const gpst_resource engines[] = {GPST_RESOURCE_H2D, GPST_RESOURCE_GPU, GPST_RESOURCE_D2H};
    machine m = brief_machine(16);
    m.cpu = 0.1;
    for (int i = 0; i < 6; i++) {
        gpsti_tuner tuner = whole_tuner(&m, 3);
        gpsti_tuner_window window = crowded_window(&m, &tuner, 0.0);
        window.cpu_ns = 0; /* its workers wait */
        window.busy_ns[engines[i / 2]] = window.wall_ns / 100 * (i % 2 ? 96 : 94);
        window.wait_ns[GPST_RESOURCE_CPU] = 1;
        (void)gpsti_tuner_judge(&tuner, &window, 100);
        if (i % 2)
            assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 3);
        else
            assert_true(tuner.now.value[GPST_KNOB_WORKERS] > 3);
    }
}

/* Many workers at a busy device: with half of them it is as busy. */
static void test_too_many_for_a_device(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    for (uint32_t n = 6; n <= 13; n += 7) {
        gpsti_tuner tuner = whole_tuner(&m, n);
        gpsti_tuner_window window = crowded_window(&m, &tuner, 0.1);
        window.busy_ns[GPST_RESOURCE_H2D] = window.wall_ns / 10 * 6;
        (void)gpsti_tuner_judge(&tuner, &window, 100);
        if (n < 8)
            assert_true(tuner.now.value[GPST_KNOB_WORKERS] >= n);
        else
            assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], n / 2);
    }
}

/* Where a job is known, and their number is found from run to run, a run keeps its own: else it moves. */
static void test_workers_that_are_found_by_runs(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    for (int i = 0; i < 8; i++) {
        const bool crowded = (i & 4) != 0, by_runs = (i & 3) == 3;
        gpsti_tuner tuner = whole_tuner(&m, 8);
        tuner.budget.known = (i & 1) != 0;
        tuner.budget.by_runs = (i & 2) != 0;
        gpsti_tuner_window window = crowded_window(&m, &tuner, crowded ? 0.1 : 0.0);
        window.cpu_ns = 0; /* its workers wait */
        (void)gpsti_tuner_judge(&tuner, &window, 100);
        assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], by_runs ? 8 : crowded ? 4 : 12);
        if (by_runs)
            assert_non_null(strstr(tuner.decisions[tuner.n_decisions - 1].reason, "from run to run"));
    }
}

/* Seen before a window is over, of whole items on the CPU before anything is tried. */
static void test_a_crowd_is_seen_early(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    gpsti_tuner tuner = whole_tuner(&m, 16);
    assert_true(gpsti_tuner_crowds(&tuner, 160, 3 * MS));  /* 0.3 ms each */
    assert_false(gpsti_tuner_crowds(&tuner, 160, 2 * MS)); /* 0.2 */
    tuner.budget.streams = true;
    assert_false(gpsti_tuner_crowds(&tuner, 160, 3 * MS));
    tuner.budget.streams = false;
    tuner.state = GPSTI_TUNER_TRIAL;
    assert_false(gpsti_tuner_crowds(&tuner, 160, 3 * MS));
    tuner.state = GPSTI_TUNER_BASE;
    tuner.whole = false;
    assert_false(gpsti_tuner_crowds(&tuner, 160, 3 * MS));
}

/* Workers that all wait would be more, did their slots not take longer to make than is left to gain. */
static gpsti_tuner after_waiting(const machine* m, uint64_t n_left, int64_t slot_ns) {
    gpsti_tuner tuner = whole_tuner(m, 4);
    gpsti_tuner_window window = crowded_window(m, &tuner, 0.0);
    window.cpu_ns /= 10;
    window.n_left = n_left;
    window.slot_ns = slot_ns;
    (void)gpsti_tuner_judge(&tuner, &window, 100);
    return tuner;
}

static void test_workers_on_trial_must_pay(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    assert_int_equal(after_waiting(&m, 0, 0).now.value[GPST_KNOB_WORKERS], 6);
    assert_int_equal(after_waiting(&m, 0, 10 * MS).now.value[GPST_KNOB_WORKERS], 6); /* who knows how long */
    assert_int_equal(after_waiting(&m, 400, MS / 8).now.value[GPST_KNOB_WORKERS], 6); /* 10 ms are left: 3.3 to gain */
    assert_int_equal(after_waiting(&m, 400, MS).now.value[GPST_KNOB_WORKERS], 4);
    assert_int_equal(after_waiting(&m, 4000, MS).now.value[GPST_KNOB_WORKERS], 6);
}

/* Brief items on a device wait for each other in its driver: there more workers are tried for a long rest only. */
static void test_workers_on_trial_in_turns(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    m.gpu = 0.01;
    assert_int_equal(after_waiting(&m, 4000, MS / 4).now.value[GPST_KNOB_WORKERS], 4); /* 100 ms are left: 1 to gain */
    assert_int_equal(after_waiting(&m, 10000, MS / 4).now.value[GPST_KNOB_WORKERS], 6);
    assert_int_equal(after_waiting(&m, 0, MS / 4).now.value[GPST_KNOB_WORKERS], 6); /* who knows how long */
    m.cpu = 0.5; /* not so brief: 500 ms are left */
    assert_int_equal(after_waiting(&m, 4000, MS).now.value[GPST_KNOB_WORKERS], 6);
}

/* What is left is not as long as a window: nothing more is tried, and it is said. */
static void test_the_end_is_near(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.1;
    gpsti_tuner tuner = after_waiting(&m, 99, 0);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 4);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    assert_non_null(strstr(tuner.decisions[0].reason, "too few items are left"));
    tuner = after_waiting(&m, 100, 0);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 6);
    gpsti_tuner_window window = crowded_window(&m, &tuner, 0.0); /* the trial that was begun is judged all the same */
    window.n_left = 50;
    window.wall_ns *= 2;
    (void)gpsti_tuner_judge(&tuner, &window, 200);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 4);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    tuner = after_waiting(&m, 200, 0);
    window = crowded_window(&m, &tuner, 0.0); /* so is one that was cut short: the next may need all of its length */
    window.n_items = 20;
    window.n_left = 99;
    (void)gpsti_tuner_judge(&tuner, &window, 120);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 4);
    assert_int_equal(tuner.state, GPSTI_TUNER_FROZEN);
    assert_non_null(strstr(tuner.decisions[tuner.n_decisions - 1].reason, "too few items are left"));
}

/* Given up, everything is where the model has it, and every knob may move again. */
static void test_whole_items_given_up(void** state) {
    (void)state;
    const machine* const m = machine_named("decode, 16 cores");
    const gpsti_tuner_budget budget = budget_of(m);
    const gpsti_tuner_costs costs = costs_of(m);
    uint64_t random = test_seed(32);
    gpsti_tuner fresh, tuner;
    gpsti_tuner_init(&fresh, &budget, &costs);
    tuner = fresh;
    gpsti_tuner_set_whole(&tuner, &costs, 3, false);
    (void)run(&tuner, m, 1000, &random);
    gpsti_tuner_set_staged(&tuner, &costs);
    assert_memory_equal(&tuner.now, &fresh.now, sizeof tuner.now);
    assert_memory_equal(&tuner.kept, &fresh.kept, sizeof tuner.kept);
    assert_memory_equal(&tuner.most, &fresh.most, sizeof tuner.most);
    assert_int_equal(tuner.state, GPSTI_TUNER_BASE);
    assert_false(tuner.whole);
    assert_int_equal(tuner.tried[GPST_KNOB_WORKERS], 0);
    const uint64_t items = run(&tuner, m, 1000, &random);
    assert_true(items < 1000 && best_period_ms(m, &tuner) / period_ms(m, &tuner.kept) >= 0.95);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_brings_whole_items),
        cmocka_unit_test(test_whole_items_of_few_workers),
        cmocka_unit_test(test_period_of_whole_items),
        cmocka_unit_test(test_whole_items_that_wait_for_files),
        cmocka_unit_test(test_whole_items_from_far_away),
        cmocka_unit_test(test_reads_after_the_first_wait),
        cmocka_unit_test(test_whole_items_that_are_mostly_calls),
        cmocka_unit_test(test_writing_that_computes),
        cmocka_unit_test(test_files_that_are_on_no_disk),
        cmocka_unit_test(test_items_for_every_worker),
        cmocka_unit_test(test_whole_items_on_a_device),
        cmocka_unit_test(test_reads_beside_others),
        cmocka_unit_test(test_long_items_are_not_whole),
        cmocka_unit_test(test_longer_items_for_all_workers),
        cmocka_unit_test(test_memory_of_whole_items),
        cmocka_unit_test(test_knobs_of_whole_items),
        cmocka_unit_test(test_more_workers_with_whole_items),
        cmocka_unit_test(test_whole_items_in_each_other_s_way),
        cmocka_unit_test(test_fewer_are_as_good),
        cmocka_unit_test(test_slots_of_those_that_wait_for_turns),
        cmocka_unit_test(test_whole_items_that_queue_for_a_device),
        cmocka_unit_test(test_a_full_device_wants_no_more),
        cmocka_unit_test(test_too_many_for_a_device),
        cmocka_unit_test(test_workers_that_are_found_by_runs),
        cmocka_unit_test(test_a_crowd_is_seen_early),
        cmocka_unit_test(test_workers_on_trial_must_pay),
        cmocka_unit_test(test_workers_on_trial_in_turns),
        cmocka_unit_test(test_the_end_is_near),
        cmocka_unit_test(test_whole_items_given_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
