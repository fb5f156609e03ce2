/* tools/gpustage/bench_verdict.c -- the case verdict: jobs of generated demands on the simulated device, run for real.
   The verdict must name the largest, and its cap must be what the same job gives once that resource costs nothing. */
#include "bench_load.h"

#include "console.h"

#include <stdio.h>
#include <string.h>

enum { N_MIXES = 200, N_ITEMS = 60, MOST_WORKERS = 4 };
#define UP_BYTES 16384
#define DOWN_BYTES 16384
#define READ_BYTES 65536
#define WRITE_BYTES 65536

/* Demand an item, us of each resource's time; of the CPU, on one of the workers. */
typedef struct mix {
    double us[GPST_RESOURCE_COUNT];
} mix;

/* From nothing to 4 ms; the largest is above 2 ms and above the next by a tenth. */
static mix mix_make(uint64_t* random) {
    mix self;
    double first, second;
    do {
        first = second = 0.0;
        memset(&self, 0, sizeof self);
        for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
            const double us = bench_random(random) < 0.25 ? 0.0 : 4000.0 * bench_random(random);
            self.us[r] = us;
            second = us > first ? first : us > second ? us : second;
            first = us > first ? us : first;
        }
    } while (first < 2000.0 || second > 0.9 * first || second < 400.0);
    return self;
}

static int mix_largest(const mix* self) {
    int largest = 1;
    for (int r = 2; r < (int)GPST_RESOURCE_COUNT; r++)
        largest = self->us[r] > self->us[largest] ? r : largest;
    return largest;
}

/* Half of the cores are the readers', the writers' and the device's threads: where they have to share with workers, the
   demands are not what was asked for. */
static uint32_t mix_workers(void) {
    const uint32_t n = bench_cores() / 2;
    return n < 1 ? 1 : n < MOST_WORKERS ? n : MOST_WORKERS;
}

/* 0 bytes a second is "as the host does it", which for so few bytes is next to nothing. */
static double mix_gbps(double bytes, double us) { return us > 0.0 ? bytes / us / 1e3 : 0.0; }

static bool mix_run(const mix* self, uint32_t n_workers, gpst_stats* stats) {
    char backend[256];
    bench_load load;
    memset(&load, 0, sizeof load);
    const double figures[] = {mix_gbps(READ_BYTES, self->us[GPST_RESOURCE_DISK_IN]),
                              mix_gbps(UP_BYTES, self->us[GPST_RESOURCE_H2D]),
                              self->us[GPST_RESOURCE_GPU],
                              mix_gbps(DOWN_BYTES, self->us[GPST_RESOURCE_D2H]),
                              mix_gbps(WRITE_BYTES, self->us[GPST_RESOURCE_DISK_OUT])};
    static const char* const keys[] = {"read_gbps", "h2d_gbps", "kernel_us", "d2h_gbps", "write_gbps"};
    size_t used = (size_t)snprintf(backend, sizeof backend, "sim:launch_us=0");
    for (int k = 0; k < 5; k++) { /* the point is ours, whatever the locale says */
        const unsigned whole = (unsigned)figures[k], millionths = (unsigned)((figures[k] - whole) * 1e6);
        used += (size_t)snprintf(backend + used, sizeof backend - used, ",%s=%u.%06u", keys[k], whole, millionths);
    }
    load.backend = backend;
    load.n_items = N_ITEMS;
    load.read_bytes = READ_BYTES;
    load.cpu_us = self->us[GPST_RESOURCE_CPU] * n_workers;
    load.up_bytes = UP_BYTES;
    load.down_bytes = DOWN_BYTES;
    load.write_bytes = WRITE_BYTES;
    load.in_memory = true;
    bench_job* job = NULL;
    const bool ok =
        bench_job_open(&load, n_workers, &job) == GPST_OK && bench_job_run(job, BENCH_FIXED, NULL, stats) > 0.0;
    bench_job_close(job);
    return ok;
}

typedef struct score {
    uint32_t n, n_right, n_caps;
} score;

static bool mix_score(uint32_t number, const mix* self, uint32_t n_workers, score* total, json* out) {
    static gpst_stats with, without;
    const int largest = mix_largest(self);
    mix less = *self;
    less.us[largest] = 0.0;
    if (!mix_run(self, n_workers, &with) || !mix_run(&less, n_workers, &without))
        return false;
    const double gain = (double)with.wall_ns / (double)without.wall_ns, cap = with.verdict.cap[largest];
    const bool right = (int)with.verdict.bound == largest, kept = cap > 0.9 * gain && cap < 1.1 * gain;
    total->n++;
    total->n_right += right ? 1 : 0;
    total->n_caps += kept ? 1 : 0;
    if (!right || !kept)
        printf("mix %3u: %s %.0f us; cap %.2f, really %.2f; %s\n", (unsigned)number,
               gpst_resource_name((gpst_resource)largest), self->us[largest], cap, gain, with.verdict.text);
    json_open(out, NULL, '{');
    json_open(out, "demand_us", '{');
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++)
        json_number(out, gpst_resource_name((gpst_resource)r), self->us[r]);
    json_close(out, '}');
    json_string(out, "largest", gpst_resource_name((gpst_resource)largest));
    json_string(out, "named", gpst_resource_name(with.verdict.bound));
    json_number(out, "cap", cap);
    json_number(out, "gain", gain);
    json_number(out, "efficiency", with.verdict.efficiency);
    json_close(out, '}');
    return true;
}

int bench_verdict(const bench_ask* asked, json* out) {
    (void)asked;
    const uint32_t n_workers = mix_workers();
    uint64_t random = 2026;
    score total = {0, 0, 0};
    bool ok = true;
    printf("verdict: %d mixes of known demands on sim, %d items each, workers: %u; those that are wrong or whose cap is "
           "off by over 10 %%:\n", N_MIXES, N_ITEMS, (unsigned)n_workers);
    if (bench_cores() < 2)
        printf("this machine has one core: workers, readers, writers and the device's threads share it, and demands "
               "are not what was asked for\n");
    json_open(out, "rows", '[');
    for (uint32_t m = 0; ok && m < N_MIXES; m++) {
        const mix self = mix_make(&random);
        ok = mix_score(m, &self, n_workers, &total, out);
    }
    json_close(out, ']');
    json_count(out, "mixes", total.n);
    json_count(out, "right", total.n_right);
    json_count(out, "caps_within_10_percent", total.n_caps);
    if (!ok)
        console_error("verdict: %s", bench_reason());
    else
        printf("right %u of %u; caps within 10 %% %u of %u\n", (unsigned)total.n_right, (unsigned)total.n,
               (unsigned)total.n_caps, (unsigned)total.n);
    return ok ? EXIT_DONE : EXIT_FAILED_ITEMS;
}
