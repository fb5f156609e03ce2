/* tests/test_tuner_start.c -- where the tuner's policy begins: a model of what item 0 and the first others cost, within
   what there is of memory, of knobs and of settings that were given. */
#include "tuner_machine.h"

static void test_model_is_little_s_law(void** state) {
    (void)state;
    const machine* const m = machine_named("decode, 16 cores");
    const gpsti_tuner_budget budget = budget_of(m);
    const gpsti_tuner_costs costs = costs_of(m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 16);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 2); /* 12 ms in a period of 150 / 16, and the next */
    assert_int_equal(tuner.now.value[GPST_KNOB_WRITES], 1);
    assert_int_equal(tuner.now.value[GPST_KNOB_STREAMS], 4);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 16 + 2 + 4 + 1 + 2);
    assert_int_equal(tuner.now.value[GPST_KNOB_INSIDE], 1);
}

/* Reads that wait long: as many as the workers could want, up to 32. */
static void test_model_of_far_reads(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.3;
    static const struct {
        double read;
        uint32_t reads;
    } rows[] = {{0.1, 6}, {1.9, 16}, {2.0, 32}, {90.0, 32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        m.read = rows[i].read;
        const gpsti_tuner_budget budget = budget_of(&m);
        const gpsti_tuner_costs costs = costs_of(&m);
        gpsti_tuner tuner;
        gpsti_tuner_init(&tuner, &budget, &costs);
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], rows[i].reads);
    }
    m.cpu = 10.0; /* of which there are 1.6 a ms: 5 at once */
    m.read = 3.0;
    const gpsti_tuner_budget budget = budget_of(&m);
    const gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 5);
}

/* Writes that wait long: likewise, with a slot for each; but not where they compute, or are over soon. */
static void test_model_of_far_writes(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 0.3;
    static const struct {
        double write;
        bool computes;
        uint32_t writes, slots;
    } rows[] = {
        {0.1, false, 6, 22}, {1.9, false, 16, 22}, {2.0, false, 32, 50}, {90.0, false, 32, 50}, {2.0, true, 14, 12}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        m.write = rows[i].write;
        const gpsti_tuner_budget budget = budget_of(&m);
        gpsti_tuner_costs costs = costs_of(&m);
        gpsti_tuner tuner;
        costs.writes_compute = rows[i].computes;
        gpsti_tuner_init(&tuner, &budget, &costs);
        const uint32_t* const now = tuner.now.value;
        assert_int_equal(now[GPST_KNOB_WRITES], rows[i].writes);
        assert_int_equal(now[GPST_KNOB_SLOTS], rows[i].slots);
    }
    m.cpu = 10.0; /* of which there are 1.6 a ms: 5 at once */
    m.write = 3.0;
    const gpsti_tuner_budget budget = budget_of(&m);
    const gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_WRITES], 5);
}

/* What is brought to the disk: sixteen at once, with as many slots, of which an item's outputs share one; unless it is
   no disk, or few items are to be in flight. */
static void test_model_of_synced_writes(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 4.0; /* four items a ms */
    static const struct {
        double write;
        bool syncs, computes;
        uint32_t outputs;
        gpst_preset preset;
        uint32_t writes, slots;
    } rows[] = {{1.0, false, false, 1, GPST_PRESET_BALANCED, 5, 22},  /* 16 workers, 4 of the writes and 2 */
                {1.0, true, false, 1, GPST_PRESET_BALANCED, 16, 34},
                {1.0, true, false, 2, GPST_PRESET_BALANCED, 16, 26},
                {1.0, true, false, 8, GPST_PRESET_BALANCED, 16, 22},
                {1.0, true, false, 1, GPST_PRESET_LATENCY, 5, 20},    /* and none to spare */
                {1.0, true, true, 1, GPST_PRESET_BALANCED, 4, 22},    /* 3.2 items a ms: 4 beside the workers' own */
                {8.0, true, false, 1, GPST_PRESET_BALANCED, 32, 50},  /* they wait far, synced or not */
                {0.0, true, false, 1, GPST_PRESET_BALANCED, 1, 19}};  /* and those of nothing for nobody */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        m.write = rows[i].write;
        m.preset = rows[i].preset;
        gpsti_tuner_budget budget = budget_of(&m);
        gpsti_tuner_costs costs = costs_of(&m);
        gpsti_tuner tuner;
        budget.writes = true;
        budget.syncs = rows[i].syncs;
        budget.outputs = rows[i].outputs;
        costs.writes_compute = rows[i].computes;
        gpsti_tuner_init(&tuner, &budget, &costs);
        const uint32_t* const now = tuner.now.value;
        if (now[GPST_KNOB_WRITES] != rows[i].writes || now[GPST_KNOB_SLOTS] != rows[i].slots)
            fail_msg("row %u: %u writes, %u slots", (unsigned)i, now[GPST_KNOB_WRITES], now[GPST_KNOB_SLOTS]);
    }
}

/* As many reads as the last run's disk could serve, and as many again; sixteen it can. */
static void test_reads_that_are_enough(void** state) {
    (void)state;
    assert_int_equal(gpsti_tuner_reads_enough(20, 20, 64), 130);
    assert_int_equal(gpsti_tuner_reads_enough(40, 20, 64), 66);
    assert_int_equal(gpsti_tuner_reads_enough(160, 20, 64), 18);
    assert_int_equal(gpsti_tuner_reads_enough(640, 20, 64), 16);
    assert_int_equal(gpsti_tuner_reads_enough(0, 20, 64), 0);
    assert_int_equal(gpsti_tuner_reads_enough(20, 0, 64), 0);
    machine m = brief_machine(16);
    m.cpu = 0.3;
    m.read = 3.0;
    static const struct {
        uint32_t enough, reads;
    } rows[] = {{0, 32}, {16, 16}, {31, 31}, {64, 32}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const gpsti_tuner_budget budget = budget_of(&m);
        gpsti_tuner_costs costs = costs_of(&m);
        gpsti_tuner tuner;
        costs.reads_enough = rows[i].enough;
        gpsti_tuner_init(&tuner, &budget, &costs);
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], rows[i].reads);
    }
}

/* Of an item's time, what the cores have to do; disks and devices of their own do the rest meanwhile. */
static void test_what_cores_share(void** state) {
    (void)state;
    gpsti_tuner_costs costs;
    memset(&costs, 0, sizeof costs);
    costs.service_ns[GPST_RESOURCE_CPU] = 400;
    costs.service_ns[GPST_RESOURCE_DISK_IN] = costs.service_ns[GPST_RESOURCE_DISK_OUT] = 8000;
    costs.service_ns[GPST_RESOURCE_H2D] = 90;
    assert_int_equal(gpsti_tuner_period_ns(&costs, 4), 100);
    costs.service_ns[GPST_RESOURCE_H2D] = 190;
    assert_int_equal(gpsti_tuner_period_ns(&costs, 4), 190);
    costs.played_ns = 600;
    assert_int_equal(gpsti_tuner_period_ns(&costs, 4), 250);
    costs.writes_compute = true;
    assert_int_equal(gpsti_tuner_period_ns(&costs, 4), 2250);
}

/* Reads that wait, but not for their bytes: twice as many, since the first to come back are the short ones, and as many
   slots again behind one that takes long. */
static void test_model_of_reads_that_bring_little(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 2.0; /* eight items a ms */
    static const struct {
        double read;
        uint64_t bytes;
        uint32_t reads, slots;
    } rows[] = {{1.0, 65536, 18, 50},  /* 2 * (8 + 1) of 65 MB/s; 2 * (24 + 1) items on their way */
                {1.0, 0, 9, 27},       /* nobody knows of how much; 16 workers, 9 reads and 2 */
                {1.0, 1000000, 9, 27}, /* 1 GB/s: those bytes are what it waits for */
                {1.0, 99999, 18, 50},  /* less than 100 MB/s */
                {1.0, 100001, 9, 27},  /* more */
                {0.499, 100, 4, 22},   /* hardly a wait */
                {0.5, 100, 10, 38},    /* one */
                {10.0, 100, 64, 100}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        m.read = rows[i].read;
        const gpsti_tuner_budget budget = budget_of(&m);
        gpsti_tuner_costs costs = costs_of(&m);
        gpsti_tuner tuner;
        costs.read_bytes = rows[i].bytes;
        gpsti_tuner_init(&tuner, &budget, &costs);
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], rows[i].reads);
        assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], rows[i].slots);
    }
}

/* Before item 0 is whole: as if a core's time were nothing, within what knobs and memory allow. */
static void test_first_read_that_waits(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.read = 1.0;
    static const struct {
        double waits;
        uint64_t bytes;
        uint32_t reads, slots;
        int64_t missing_ns;
    } rows[] = {{0.6, 59999, 64, 100, 0}, {0.6, 60001, 4, 22, 10}, {0.499, 100, 4, 22, 1000}, {9.0, 0, 4, 22, 500000}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        gpsti_tuner_budget budget = budget_of(&m);
        gpsti_tuner tuner;
        gpsti_tuner_init(&tuner, &budget, NULL);
        assert_int_equal(gpsti_tuner_expect_waits(&tuner, (int64_t)(rows[i].waits * MS), rows[i].bytes),
                         rows[i].missing_ns);
        assert_int_equal(tuner.waits_far, rows[i].missing_ns == 0);
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], rows[i].reads);
        assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], rows[i].slots);
        assert_memory_equal(&tuner.kept, &tuner.now, sizeof tuner.now);
        budget.host_bytes = (uint64_t)5 << 30; /* nine tenths of it: 18 large items */
        gpsti_tuner_init(&tuner, &budget, NULL);
        (void)gpsti_tuner_expect_waits(&tuner, (int64_t)(rows[i].waits * MS), rows[i].bytes);
        assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 18);
        assert_int_equal(tuner.kept.value[GPST_KNOB_SLOTS], rows[i].slots); /* once one has been whole */
        budget.fixed.value[GPST_KNOB_READS] = 2;
        budget.fixed.value[GPST_KNOB_SLOTS] = 5;
        gpsti_tuner_init(&tuner, &budget, NULL);
        (void)gpsti_tuner_expect_waits(&tuner, (int64_t)(rows[i].waits * MS), rows[i].bytes);
        assert_int_equal(tuner.now.value[GPST_KNOB_READS], 2);
        assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 5);
    }
}

/* Item 0 alone may have had to wait until a device had loaded its kernels: that says nothing of files. */
static void test_model_of_files_by_item_0(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 16.0;
    m.read = 1.9;
    m.write = 4.0;
    m.gpu = 100.0;
    const gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 1);
    assert_int_equal(tuner.now.value[GPST_KNOB_WRITES], 1);
    costs.is_first = true;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 2);
    assert_int_equal(tuner.now.value[GPST_KNOB_WRITES], 5);
}

/* What the device takes is a period, too; with little to wait for, nothing is to spare. */
static void test_model_knows_the_device(void** state) {
    (void)state;
    machine m = *machine_named("link up");
    m.read = 20.0; /* and 8 ms up: 3 reads in flight; by the cores alone it would be 16 */
    m.preset = GPST_PRESET_LATENCY;
    const gpsti_tuner_budget budget = budget_of(&m);
    const gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 3);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 2); /* 1 ms, and as many again */
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 2 + 3 + 4);
}

static uint32_t slots_of(const machine* m) {
    const gpsti_tuner_budget budget = budget_of(m);
    const gpsti_tuner_costs costs = costs_of(m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    return tuner.now.value[GPST_KNOB_SLOTS];
}

/* More slots than the busiest resource can serve only spread the work over more memory. */
static void test_slots_are_what_is_of_use(void** state) {
    (void)state;
    machine m = *machine_named("link up"); /* 8 ms up of 15.1 ms */
    assert_int_equal(slots_of(&m), 2 * 2);
    m.preset = GPST_PRESET_THROUGHPUT; /* asked for more than that */
    assert_int_equal(slots_of(&m), 2 * (4 + 1 + 4));
    m = *machine_named("decode, 16 cores");
    assert_int_equal(slots_of(&m), 16 + 2 + 4 + 1 + 2);
}

/* What the device bounds needs as many workers as keep it busy, and as many again; what they bound, all of them. */
static void test_workers_are_what_is_of_use(void** state) {
    (void)state;
    machine m = *machine_named("decode, 16 cores");
    gpsti_tuner_budget budget = budget_of(&m);
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 16);
    m.h2d = 60.0; /* of 150 ms on a worker */
    costs = costs_of(&m);
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 2 * 3);
    const uint32_t slots = tuner.now.value[GPST_KNOB_SLOTS];
    costs.is_first = true; /* the device may have loaded its kernels meanwhile */
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 16);
    assert_true(tuner.now.value[GPST_KNOB_SLOTS] > slots);
    costs.is_first = false;
    budget.preset = GPST_PRESET_THROUGHPUT;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 16);
}

/* Workers take in a bunch what they do in a tenth of a millisecond. */
static void test_brief_items_have_slots_for_bunches(void** state) {
    (void)state;
    machine m = *machine_named("decode, 2 cores");
    m.h2d = m.d2h = m.gpu = m.delay = m.write = m.read = 0.0;
    m.cpu = 0.2;
    assert_int_equal(slots_of(&m), 2 + 2);
    m.cpu = 0.03;
    assert_int_equal(slots_of(&m), 2 + 2 + 2 * 3);
    m.cpu = 0.002;
    assert_int_equal(slots_of(&m), 2 + 2 + 2 * 8);
    m.cores = m.workers = 16; /* more than the preset's 100: so many that each worker has its bunch */
    assert_int_equal(slots_of(&m), 16 + 2 + 16 * 8);
    m.cpu = 0.2;
    assert_int_equal(slots_of(&m), 16 + 2);
}


/* Workers read what is in the page cache. Should that come to wait, readers are to be as many as it needs: no more
   slots for that. */
static void test_reads_of_workers_may_become_readers(void** state) {
    (void)state;
    machine m = brief_machine(16);
    m.cpu = 20.0;
    m.h2d = 2.0;
    gpsti_tuner_budget budget = budget_of(&m);
    budget.reads = true;
    gpsti_tuner_costs costs = costs_of(&m);
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 1);
    const uint32_t slots = tuner.now.value[GPST_KNOB_SLOTS];
    costs.read_ns = 20000000;
    gpsti_tuner_init(&tuner, &budget, &costs);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 20 / 2 + 1);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], slots);
}

static uint32_t batch_of(const machine* m, uint32_t most, uint32_t* slots) {
    gpsti_tuner_budget budget = budget_of(m);
    const gpsti_tuner_costs costs = costs_of(m);
    gpsti_tuner tuner;
    budget.batch = most;
    gpsti_tuner_init(&tuner, &budget, &costs);
    *slots = tuner.now.value[GPST_KNOB_SLOTS];
    return tuner.now.value[GPST_KNOB_BATCH];
}

/* What a device takes less for than for a submission shares one, and three of those have slots. */
static void test_brief_device_work_starts_in_batches(void** state) {
    (void)state;
    machine m = *machine_named("link up");
    uint32_t slots = 0;
    m.read = m.write = m.cpu = m.delay = 0.0;
    m.h2d = m.gpu = m.d2h = 0.009; /* 27 us of 30 */
    assert_int_equal(batch_of(&m, 64, &slots), 4);
    assert_true(slots >= 12);
    assert_int_equal(batch_of(&m, 2, &slots), 2);
    assert_int_equal(batch_of(&m, 1, &slots), 0); /* no such knob */
    m.gpu = 0.013;
    assert_int_equal(batch_of(&m, 64, &slots), 1);
}

/* What a pipeline does not have, no knob moves. */
static void test_limits_of_what_is_not_there(void** state) {
    (void)state;
    gpsti_tuner_budget budget;
    gpsti_tuner tuner;
    memset(&budget, 0, sizeof budget);
    budget.cores = budget.workers = 150;
    budget.preset = GPST_PRESET_LATENCY;
    gpsti_tuner_init(&tuner, &budget, NULL);
    static const gpst_knob none[] = {GPST_KNOB_READS, GPST_KNOB_WRITES, GPST_KNOB_STREAMS};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        assert_int_equal(tuner.least.value[none[i]], 0);
        assert_int_equal(tuner.most.value[none[i]], 0);
        assert_int_equal(tuner.now.value[none[i]], 0);
    }
    assert_int_equal(tuner.most.value[GPST_KNOB_INSIDE], 1);
    assert_int_equal(tuner.most.value[GPST_KNOB_WORKERS], 150);
    assert_int_equal(tuner.most.value[GPST_KNOB_SLOTS], 154); /* more than the preset says: each worker has an item */
}

static void test_presets_bound_the_slots(void** state) {
    (void)state;
    static const uint32_t most[] = {100, 20, 100, 200};
    for (int preset = 0; preset < 4; preset++) {
        machine m = *machine_named("decode, 16 cores");
        m.preset = (gpst_preset)preset;
        const gpsti_tuner tuner = tuner_of(&m);
        assert_int_equal(tuner.most.value[GPST_KNOB_SLOTS], most[preset]);
        assert_true(tuner.now.value[GPST_KNOB_SLOTS] <= most[preset]);
    }
}

/* 88 MB an item in 1 GB: 10 items, whatever else would be better; in 100 MB: one, with all cores inside it. */
static void test_memory_bounds_the_slots(void** state) {
    (void)state;
    gpsti_tuner_budget budget = budget_of(machine_named("all of a size"));
    budget.host_bytes = (uint64_t)1000 << 20;
    budget.item_host_bytes = (uint64_t)88 << 20;
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_int_equal(tuner.most.value[GPST_KNOB_SLOTS], 10);
    budget.device_bytes = (uint64_t)300 << 20;
    budget.item_device_bytes = (uint64_t)100 << 20;
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_int_equal(tuner.most.value[GPST_KNOB_STREAMS], 2);
    assert_int_equal(tuner.now.value[GPST_KNOB_STREAMS], 2);
    budget = budget_of(machine_named("decode, 16 cores"));
    budget.inside = true;
    budget.host_bytes = (uint64_t)100 << 20;
    budget.item_host_bytes = (uint64_t)88 << 20;
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 1);
    assert_int_equal(tuner.now.value[GPST_KNOB_INSIDE], 16);
    budget.item_host_bytes = (uint64_t)200 << 20; /* one that does not fit fails by itself */
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_int_equal(tuner.most.value[GPST_KNOB_SLOTS], 1);
    assert_within(&tuner);
}

/* Items turn out larger while the run goes on: what no longer fits is given up, with a line. */
static void test_memory_is_learnt(void** state) {
    (void)state;
    gpsti_tuner_budget budget = budget_of(machine_named("throughput, decode"));
    budget.host_bytes = (uint64_t)1000 << 20;
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 3); /* as long as an item may take 256 MiB */
    assert_true(gpsti_tuner_resize(&tuner, 1 << 20, 0));
    assert_true(tuner.now.value[GPST_KNOB_SLOTS] > 30);
    assert_int_equal(tuner.n_decisions, 0);
    assert_true(gpsti_tuner_resize(&tuner, (uint64_t)88 << 20, 0));
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 10);
    assert_int_equal(tuner.kept.value[GPST_KNOB_SLOTS], 10);
    assert_int_equal(tuner.decisions[tuner.n_decisions - 1].knob, GPST_KNOB_SLOTS);
    assert_int_equal(tuner.decisions[tuner.n_decisions - 1].after, 10);
    assert_false(gpsti_tuner_resize(&tuner, 1 << 20, 0)); /* and never got back from one small item */
    budget = budget_of(machine_named("link up"));
    budget.device_bytes = (uint64_t)1000 << 20;
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_int_equal(tuner.now.value[GPST_KNOB_STREAMS], 4);
    assert_true(gpsti_tuner_resize(&tuner, 1, (uint64_t)300 << 20));
    assert_int_equal(tuner.now.value[GPST_KNOB_STREAMS], 3);
    assert_within(&tuner);
}

/* Settings are held back likewise, and what this machine does not allow of them is said. */
static void test_given_settings_are_made_to_fit(void** state) {
    (void)state;
    gpsti_tuner_budget budget = budget_of(machine_named("decode, 16 cores"));
    gpst_settings given = GPST_ZERO;
    gpsti_tuner tuner;
    given.value[GPST_KNOB_WORKERS] = 999;
    given.value[GPST_KNOB_SLOTS] = 40;
    given.value[GPST_KNOB_READS] = 7;
    budget.host_bytes = (uint64_t)4000 << 20;
    gpsti_tuner_init(&tuner, &budget, NULL);
    const uint32_t writes = tuner.now.value[GPST_KNOB_WRITES];
    gpsti_tuner_load(&tuner, &given);
    assert_within(&tuner);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 14);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], budget.workers);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 7);
    assert_int_equal(tuner.now.value[GPST_KNOB_WRITES], writes); /* not given: the model's */
    assert_string_equal(tuner.decisions[0].reason, "frozen: settings were given: workers 16, not 999");
    assert_true(gpsti_tuner_resize(&tuner, 1 << 20, 0));
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 40);
    assert_false(gpsti_tuner_resize(&tuner, 1 << 20, 0));
    assert_true(gpsti_tuner_resize(&tuner, (uint64_t)180 << 20, 0));
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 20);
    const uint32_t modelled = (gpsti_tuner_init(&tuner, &budget, NULL), tuner.kept.value[GPST_KNOB_SLOTS]);
    given.value[GPST_KNOB_SLOTS] = 0; /* not given: the model's, once the first item is whole */
    gpsti_tuner_load(&tuner, &given);
    assert_true(tuner.now.value[GPST_KNOB_SLOTS] < modelled);
    assert_true(gpsti_tuner_resize(&tuner, 1 << 20, 0));
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], modelled);
    gpsti_tuner_init(&tuner, &budget, NULL);
    given.value[GPST_KNOB_WORKERS] = 16;
    given.value[GPST_KNOB_SLOTS] = 14;
    gpsti_tuner_load(&tuner, &given);
    assert_string_equal(tuner.decisions[0].reason, "frozen: settings were given");
    budget.fixed.value[GPST_KNOB_SLOTS] = 30; /* the user's word, whatever comes of it */
    gpsti_tuner_init(&tuner, &budget, NULL);
    assert_int_equal(tuner.now.value[GPST_KNOB_SLOTS], 30);
}

static void test_fixed_values_stay(void** state) {
    (void)state;
    const machine* const m = machine_named("disk, scales to 8");
    uint64_t random = test_seed(31);
    gpsti_tuner_budget budget = budget_of(m);
    budget.fixed.value[GPST_KNOB_READS] = 3;
    budget.fixed.value[GPST_KNOB_WORKERS] = 99; /* more than there are */
    gpsti_tuner tuner;
    gpsti_tuner_init(&tuner, &budget, NULL);
    (void)run(&tuner, m, 1000, &random);
    assert_int_equal(tuner.now.value[GPST_KNOB_READS], 3);
    assert_int_equal(tuner.now.value[GPST_KNOB_WORKERS], 4);
    for (uint32_t i = 0; i < tuner.n_decisions; i++)
        assert_int_not_equal(tuner.decisions[i].knob, GPST_KNOB_READS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model_is_little_s_law),
        cmocka_unit_test(test_model_of_far_reads),
        cmocka_unit_test(test_model_of_far_writes),
        cmocka_unit_test(test_model_of_synced_writes),
        cmocka_unit_test(test_reads_that_are_enough),
        cmocka_unit_test(test_what_cores_share),
        cmocka_unit_test(test_model_of_reads_that_bring_little), cmocka_unit_test(test_first_read_that_waits),
        cmocka_unit_test(test_model_of_files_by_item_0),
        cmocka_unit_test(test_model_knows_the_device),
        cmocka_unit_test(test_slots_are_what_is_of_use),
        cmocka_unit_test(test_workers_are_what_is_of_use),
        cmocka_unit_test(test_brief_items_have_slots_for_bunches),
        cmocka_unit_test(test_reads_of_workers_may_become_readers),
        cmocka_unit_test(test_brief_device_work_starts_in_batches),
        cmocka_unit_test(test_limits_of_what_is_not_there),
        cmocka_unit_test(test_presets_bound_the_slots),
        cmocka_unit_test(test_memory_bounds_the_slots),
        cmocka_unit_test(test_memory_is_learnt),
        cmocka_unit_test(test_given_settings_are_made_to_fit),
        cmocka_unit_test(test_fixed_values_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
