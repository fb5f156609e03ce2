/* tests/test_verdict.c -- the verdict on generated mixes: a model of a pipeline on paper (no thread, no clock) says how
   long a run takes, the verdict must name what it is bound by, and its cap must be what taking that away gives. */
#include "test.h"

#include <math.h>

#if !defined(GPST_TEST_AMALGAM)
#include "../core/stats/profile_internal.h"
#endif

enum { N_MIXES = 200, N_ITEMS = 200, N_CORES = 4, MAX_SLOTS = 64 };

/* What an item needs of each resource, ns; of the CPU on one core. */
typedef struct mix {
    int64_t need_ns[GPST_RESOURCE_COUNT];
    uint32_t n_slots;
    bool serial;
} mix;

static uint32_t mix_servers(int resource) { return resource == (int)GPST_RESOURCE_CPU ? N_CORES : 1; }

/* Items in order over every resource, each served as soon as one of its servers is free; a slot is free again when its
   item is done. */
static int64_t mix_wall_ns(const mix* self) {
    int64_t server_ns[GPST_RESOURCE_COUNT][N_CORES], slot_ns[MAX_SLOTS], wall_ns = 0;
    const uint32_t n_slots = self->serial ? 1 : self->n_slots;
    memset(server_ns, 0, sizeof server_ns);
    memset(slot_ns, 0, sizeof slot_ns);
    for (uint32_t i = 0; i < N_ITEMS; i++) {
        uint32_t slot = 0;
        for (uint32_t s = 1; s < n_slots; s++)
            slot = slot_ns[s] < slot_ns[slot] ? s : slot;
        int64_t now_ns = slot_ns[slot];
        for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
            uint32_t server = 0;
            for (uint32_t s = 1; s < mix_servers(r); s++)
                server = server_ns[r][s] < server_ns[r][server] ? s : server;
            now_ns = (now_ns > server_ns[r][server] ? now_ns : server_ns[r][server]) + self->need_ns[r];
            server_ns[r][server] = now_ns;
        }
        slot_ns[slot] = now_ns;
        wall_ns = now_ns > wall_ns ? now_ns : wall_ns;
    }
    return wall_ns;
}

static gpst_verdict mix_verdict(const mix* self) {
    gpsti_verdict_input input;
    gpst_verdict verdict;
    memset(&input, 0, sizeof input);
    memset(&verdict, 0xA5, sizeof verdict);
    input.n_items = N_ITEMS;
    input.wall_ns = mix_wall_ns(self);
    input.stage = "";
    input.serial = self->serial;
    input.serial_cpu_ns = N_ITEMS * self->need_ns[GPST_RESOURCE_CPU];
    input.n_slots = self->serial ? 0 : self->n_slots;
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        input.demand_ns[r] = N_ITEMS * self->need_ns[r] / (int64_t)mix_servers(r);
        input.alone_on_ns[r] = self->need_ns[r];
        input.alone_ns += self->need_ns[r];
    }
    gpsti_verdict_make(&input, &verdict);
    return verdict;
}

static double mix_gain_without(const mix* self, int resource) {
    mix without = *self;
    without.need_ns[resource] = 0;
    return (double)mix_wall_ns(self) / (double)mix_wall_ns(&without);
}

/* Demands from nothing to 2 ms; the largest is larger than the next by 5 % at least. */
static mix mix_make(uint64_t* random, bool serial) {
    mix self;
    int64_t first_ns, second_ns;
    do {
        memset(&self, 0, sizeof self);
        first_ns = second_ns = 0;
        for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
            const int64_t demand_ns = test_random(random) % 4 == 0 ? 0 : (int64_t)(test_random(random) % 2000000);
            self.need_ns[r] = demand_ns * (int64_t)mix_servers(r);
            second_ns = demand_ns > first_ns ? first_ns : demand_ns > second_ns ? demand_ns : second_ns;
            first_ns = demand_ns > first_ns ? demand_ns : first_ns;
        }
    } while (first_ns < 500000 || second_ns < 100000 || (double)second_ns > 0.95 * (double)first_ns);
    self.n_slots = 10 + (uint32_t)(test_random(random) % 20);
    self.serial = serial;
    return self;
}

static int mix_largest(const mix* self) {
    int largest = 1;
    for (int r = 2; r < (int)GPST_RESOURCE_COUNT; r++)
        if (self->need_ns[r] / (int64_t)mix_servers(r) > self->need_ns[largest] / (int64_t)mix_servers(largest))
            largest = r;
    return largest;
}

static void test_engine_mixes(void** state) {
    (void)state;
    uint64_t random = test_seed(2026);
    uint32_t n_right = 0, n_caps = 0;
    for (int m = 0; m < N_MIXES; m++) {
        const mix self = mix_make(&random, false);
        const gpst_verdict verdict = mix_verdict(&self);
        const int largest = mix_largest(&self);
        const double gain = mix_gain_without(&self, largest), cap = verdict.cap[largest];
        n_right += (int)verdict.bound == largest ? 1 : 0;
        n_caps += cap > 0.9 * gain && cap < 1.1 * gain ? 1 : 0;
        if ((int)verdict.bound != largest || cap < 0.9 * gain || cap > 1.1 * gain)
            printf("mix %d: %s; really %s, %.2fx\n", m, verdict.text, gpst_resource_name((gpst_resource)largest), gain);
    }
    printf("%u of %d verdicts right, %u caps within 10 %%\n", n_right, N_MIXES, n_caps);
    assert_true(n_right >= N_MIXES * 95 / 100);
    assert_true(n_caps >= N_MIXES * 95 / 100);
}

/* Few slots: no resource is busy, and the cap of each is what items in flight allow. */
static void test_latency_bound_mixes(void** state) {
    (void)state;
    uint64_t random = test_seed(2027);
    for (int m = 0; m < N_MIXES; m++) {
        mix self = mix_make(&random, false);
        self.n_slots = 1;
        const gpst_verdict verdict = mix_verdict(&self);
        for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
            const double gain = mix_gain_without(&self, r);
            assert_true(verdict.cap[r] > 0.98 * gain && verdict.cap[r] < 1.02 * gain);
        }
    }
}

/* A plain loop: what is saved on one resource is saved on the whole. */
static void test_plain_mixes(void** state) {
    (void)state;
    uint64_t random = test_seed(2028);
    for (int m = 0; m < N_MIXES; m++) {
        const mix self = mix_make(&random, true);
        const gpst_verdict verdict = mix_verdict(&self);
        for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
            const double gain = mix_gain_without(&self, r);
            assert_true(verdict.cap[r] > 0.999 * gain && verdict.cap[r] < 1.001 * gain);
        }
        if (verdict.bound == GPST_RESOURCE_NONE)
            assert_non_null(strstr(verdict.text, "latency-bound: one item after the other; "));
        else
            assert_true(verdict.share[verdict.bound] > 0.70);
    }
}

/* 4 items in 40.4 ms. */
static gpsti_verdict_input stage_input(const char* stage, int64_t stage_ns) {
    gpsti_verdict_input input;
    memset(&input, 0, sizeof input);
    input.n_items = 4;
    input.wall_ns = 40400000;
    input.stage = stage;
    input.stage_ns = stage_ns;
    return input;
}

/* 4 items of 10 ms in a stage that runs once at a time, 8 ms of it waiting: the machine has nothing to do. */
static void test_serial_stage(void** state) {
    (void)state;
    gpsti_verdict_input input = stage_input("grab", 40000000);
    gpst_verdict verdict;
    memset(&verdict, 0xA5, sizeof verdict);
    input.demand_ns[GPST_RESOURCE_CPU] = 4000000;
    input.demand_ns[GPST_RESOURCE_GPU] = 8000000;
    input.stage_on_ns[GPST_RESOURCE_CPU] = 8000000;
    gpsti_verdict_make(&input, &verdict);
    assert_int_equal(verdict.bound, GPST_RESOURCE_NONE);
    assert_non_null(
        strstr(verdict.text, "latency-bound: stage grab busy 99 % of what its concurrency allows; gpu busy"));
    assert_true(verdict.cap[GPST_RESOURCE_GPU] > 1.009 && verdict.cap[GPST_RESOURCE_GPU] < 1.011);
    assert_true(verdict.cap[GPST_RESOURCE_CPU] > 1.262 && verdict.cap[GPST_RESOURCE_CPU] < 1.263);
    input.demand_ns[GPST_RESOURCE_GPU] = 38000000;
    gpsti_verdict_make(&input, &verdict);
    assert_int_equal(verdict.bound, GPST_RESOURCE_GPU);
    assert_null(strstr(verdict.text, "grab"));
}

/* Callbacks that wait have all workers: the sentence says what to change. */
static void test_workers_that_wait(void** state) {
    (void)state;
    gpsti_verdict_input input = stage_input("a stage with a name of 31 bytes", 40000000);
    gpst_verdict verdict;
    memset(&verdict, 0xA5, sizeof verdict);
    input.on_workers = true;
    input.demand_ns[GPST_RESOURCE_CPU] = 2000000;
    gpsti_verdict_make(&input, &verdict);
    assert_int_equal(verdict.bound, GPST_RESOURCE_NONE);
    assert_non_null(strstr(verdict.text, "latency-bound: workers busy 99 %, waiting in stage a stage with a name of 31 "
                                         "bytes (more n_workers may help); cpu busy 5 %"));
}

/* Files get their names one after the other, 30 of 40 ms, which computes for a third of that: without the disk that is
   gone, and the CPU is next; without the CPU two thirds of it stay. */
static void test_serial_commits(void** state) {
    (void)state;
    gpsti_verdict_input input = stage_input("commit", 30000000);
    gpst_verdict verdict;
    memset(&verdict, 0xA5, sizeof verdict);
    input.demand_ns[GPST_RESOURCE_CPU] = 16160000;
    input.demand_ns[GPST_RESOURCE_DISK_OUT] = 38000000;
    input.stage_on_ns[GPST_RESOURCE_CPU] = 10000000;
    input.stage_on_ns[GPST_RESOURCE_DISK_OUT] = 30000000;
    gpsti_verdict_make(&input, &verdict);
    assert_int_equal(verdict.bound, GPST_RESOURCE_DISK_OUT);
    assert_true(verdict.cap[GPST_RESOURCE_DISK_OUT] > 2.49 && verdict.cap[GPST_RESOURCE_DISK_OUT] < 2.51);
    input.demand_ns[GPST_RESOURCE_DISK_OUT] = 0;
    gpsti_verdict_make(&input, &verdict);
    assert_true(verdict.cap[GPST_RESOURCE_CPU] > 2.01 && verdict.cap[GPST_RESOURCE_CPU] < 2.03);
}

/* Others had 46 % of the cores while the run had 52: it was bound by cores, and waited for nothing of its own. */
static void test_other_programs(void** state) {
    static const struct {
        double others, cpu_share, disk_share;
        gpst_resource bound;
        const char *says, *says_not;
    } rows[] = {
        {0.46, 0.52, 0.10, GPST_RESOURCE_CPU, "cpu-bound: other programs took 46 % of the cores; cpu busy 52 %",
         "waiting"},
        {0.46, 0.52, 0.60, GPST_RESOURCE_CPU, "cpu-bound: other programs took 46 % of the cores; cpu busy 52 %",
         "waiting"},
        {0.00, 0.52, 0.10, GPST_RESOURCE_NONE, "latency-bound: stage grab busy 90 %", "other programs"},
        {0.04, 0.69, 0.10, GPST_RESOURCE_NONE, "latency-bound: stage grab busy 90 %", "other programs"},
        {0.10, 0.52, 0.10, GPST_RESOURCE_NONE, "latency-bound: stage grab busy 90 %", "other programs"},
        {0.20, 0.75, 0.10, GPST_RESOURCE_CPU, "cpu-bound: other programs took 20 % of the cores; cpu busy 75 %",
         "waiting"},
        {0.46, 0.20, 0.90, GPST_RESOURCE_DISK_OUT, "disk_out-bound: disk_out busy 90 %", "other programs"},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        gpsti_verdict_input input = stage_input("grab", 0);
        gpst_verdict verdict;
        const double wall = (double)input.wall_ns;
        memset(&verdict, 0xA5, sizeof verdict);
        input.stage_ns = (int64_t)(0.9 * wall);
        input.others = rows[r].others;
        input.demand_ns[GPST_RESOURCE_CPU] = (int64_t)(rows[r].cpu_share * wall);
        input.demand_ns[GPST_RESOURCE_DISK_OUT] = (int64_t)(rows[r].disk_share * wall);
        gpsti_verdict_make(&input, &verdict);
        assert_int_equal(verdict.bound, rows[r].bound);
        assert_true(verdict.others == rows[r].others);
        assert_non_null(strstr(verdict.text, rows[r].says));
        assert_null(strstr(verdict.text, rows[r].says_not));
    }
}

/* A job around the run: the start is nobody's, the last sync the disk's. 4 items in 40.4 ms, 38 of them on the GPU. */
static void test_start_and_last_sync(void** state) {
    static const struct {
        int64_t start_ns, sync_ns;
        gpst_resource bound;
        double share_gpu, share_disk, cap_gpu, cap_disk, efficiency;
        const char* says;
    } rows[] = {
        {0, 0, GPST_RESOURCE_GPU, 38 / 40.4, 4 / 40.4, 4.04, 40.4 / 38, 38 / 40.4, "gpu-bound: gpu busy 94 %"},
        {1000000, 1000000, GPST_RESOURCE_GPU, 38 / 42.4, 5 / 42.4, 42.4 / 12, 42.4 / 39, 38 / 42.4,
         "gpu-bound: gpu busy 90 %"},
        {40400000, 0, GPST_RESOURCE_NONE, 38 / 80.8, 4 / 80.8, 80.8 / 50.4, 80.8 / 78.4, 38 / 80.8,
         "latency-bound: start 50 % of the time; gpu busy 47 %"},
        {0, 40400000, GPST_RESOURCE_NONE, 38 / 80.8, 44.4 / 80.8, 80.8 / 50.4, 80.8 / 38, 44.4 / 80.8,
         "latency-bound: last sync 50 % of the time; disk_out busy 55 %"},
        {40400000, 80800000, GPST_RESOURCE_NONE, 38 / 161.6, 84.8 / 161.6, 161.6 / 131.2, 161.6 / 78.4, 84.8 / 161.6,
         "latency-bound: start 25 %, last sync 50 % of the time; disk_out busy 52 %"},
        {0, 161600000, GPST_RESOURCE_DISK_OUT, 38 / 202.0, 165.6 / 202.0, 202.0 / 171.6, 202.0 / 38, 165.6 / 202.0,
         "disk_out-bound: last sync 80 % of the time; disk_out busy 82 %"},
    };
    (void)state;
    for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
        gpsti_verdict_input input = stage_input("", 10000000);
        gpst_verdict verdict;
        memset(&verdict, 0xA5, sizeof verdict);
        input.start_ns = rows[r].start_ns;
        input.sync_ns = rows[r].sync_ns;
        input.demand_ns[GPST_RESOURCE_GPU] = 38000000;
        input.demand_ns[GPST_RESOURCE_DISK_OUT] = 4000000;
        gpsti_verdict_make(&input, &verdict);
        assert_int_equal(verdict.bound, rows[r].bound);
        assert_true(fabs(verdict.share[GPST_RESOURCE_GPU] - rows[r].share_gpu) < 1e-9);
        assert_true(fabs(verdict.share[GPST_RESOURCE_DISK_OUT] - rows[r].share_disk) < 1e-9);
        assert_true(fabs(verdict.cap[GPST_RESOURCE_GPU] - rows[r].cap_gpu) < 1e-9);
        assert_true(fabs(verdict.cap[GPST_RESOURCE_DISK_OUT] - rows[r].cap_disk) < 1e-9);
        assert_true(fabs(verdict.efficiency - rows[r].efficiency) < 1e-9);
        assert_non_null(strstr(verdict.text, rows[r].says));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_engine_mixes),      cmocka_unit_test(test_latency_bound_mixes),
        cmocka_unit_test(test_plain_mixes),       cmocka_unit_test(test_serial_stage),
        cmocka_unit_test(test_workers_that_wait), cmocka_unit_test(test_serial_commits),
        cmocka_unit_test(test_other_programs),    cmocka_unit_test(test_start_and_last_sync),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
