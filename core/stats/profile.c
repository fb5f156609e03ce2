/* core/stats/profile.c -- histograms, stage clocks and the verdict. Pure arithmetic:
   reads no clock and takes no lock. */
#include "../base/platform_internal.h"

#include "profile_internal.h"

#include <string.h>

/* ---- histogram ---------------------------------------------------------------- */

/* A binary64's exponent is the octave, and the first four bits of its fraction the bucket in it: 16 is bucket 16. */
GPSTI_PRIVATE uint32_t gpsti_histogram_bucket(int64_t value) {
    const double real = (double)value;
    uint64_t bits;
    if (value < GPSTI_HISTOGRAM_SUB)
        return (uint32_t)value;
    memcpy(&bits, &real, sizeof bits);
    const uint64_t bucket = (bits >> 48) - ((uint64_t)(1023 + 3) << 4);
    return bucket < GPSTI_HISTOGRAM_BUCKETS ? (uint32_t)bucket : GPSTI_HISTOGRAM_BUCKETS - 1;
}

GPSTI_PRIVATE int64_t gpsti_histogram_upper_edge(uint32_t bucket) {
    if (bucket < GPSTI_HISTOGRAM_SUB)
        return (int64_t)bucket;
    const uint32_t octave = bucket / GPSTI_HISTOGRAM_SUB - 1;
    const uint64_t sub = bucket % GPSTI_HISTOGRAM_SUB + GPSTI_HISTOGRAM_SUB;
    return (int64_t)(((sub + 1) << octave) - 1);
}

GPSTI_INTERN void gpsti_histogram_add(gpsti_histogram* histogram, int64_t value_ns) {
    const int64_t value = value_ns > 0 ? value_ns : 0;
    histogram->buckets[gpsti_histogram_bucket(value)]++;
    histogram->count++;
    if (value > histogram->max_ns)
        histogram->max_ns = value;
}

GPSTI_INTERN int64_t gpsti_histogram_quantile(const gpsti_histogram* histogram, double fraction) {
    const double wanted = fraction * (double)histogram->count;
    uint32_t bucket = 0;
    uint64_t seen = histogram->buckets[0];
    while ((seen == 0 || (double)seen < wanted) && bucket + 1 < GPSTI_HISTOGRAM_BUCKETS)
        seen += histogram->buckets[++bucket];
    const int64_t edge = gpsti_histogram_upper_edge(bucket);
    return edge < histogram->max_ns ? edge : histogram->max_ns; /* 0 where there are no values */
}

/* ---- stage clocks ---------------------------------------------------------------- */

GPSTI_INTERN void gpsti_work_average(int64_t* seen_ns, int64_t busy_ns) {
    *seen_ns += *seen_ns != 0 ? (busy_ns - *seen_ns) / 8 : busy_ns;
    if (*seen_ns <= 0)
        *seen_ns = 1;
}

GPSTI_INTERN void gpsti_clock_add(gpsti_clock* clock, int64_t busy_ns, int64_t wait_ns, uint64_t bytes,
                                  bool failed) {
    clock->count++;
    clock->failed += failed ? 1 : 0;
    clock->bytes += bytes;
    clock->busy_ns += busy_ns;
    clock->wait_ns += wait_ns;
    gpsti_histogram_add(&clock->histogram, busy_ns);
    if (!failed)
        gpsti_work_average(&clock->usual_ns, busy_ns);
}

GPSTI_INTERN void gpsti_clock_add_untimed(gpsti_clock* clock, int64_t wait_ns, uint64_t bytes) {
    clock->count++;
    clock->bytes += bytes;
    clock->busy_ns += clock->usual_ns;
    clock->wait_ns += wait_ns;
}

GPSTI_INTERN void gpsti_clock_add_cpu(gpsti_clock* clock, int64_t cpu_ns, int64_t busy_ns) {
    clock->cpu_samples++;
    clock->cpu_ns += cpu_ns;
    clock->cpu_busy_ns += busy_ns;
}

GPSTI_INTERN int64_t gpsti_clock_cpu_ns(const gpsti_clock* clock) {
    if (clock->cpu_samples == 0 || clock->cpu_busy_ns == 0)
        return 0;
    return (int64_t)((double)clock->cpu_ns * ((double)clock->busy_ns / (double)clock->cpu_busy_ns));
}

GPSTI_INTERN void gpsti_clock_report(const gpsti_clock* clock, int64_t wall_ns, gpst_stage_stats* out) {
    memset(out, 0, sizeof *out);
    memcpy(out->name, clock->name, sizeof out->name);
    out->resource = clock->resource;
    out->count = clock->count;
    out->timed = clock->histogram.count;
    out->failed = clock->failed;
    out->bytes = clock->bytes;
    out->busy_ns = clock->busy_ns;
    out->wait_ns = clock->wait_ns;
    out->cpu_ns = gpsti_clock_cpu_ns(clock);
    out->p50_ns = gpsti_histogram_quantile(&clock->histogram, 0.50);
    out->p90_ns = gpsti_histogram_quantile(&clock->histogram, 0.90);
    out->p99_ns = gpsti_histogram_quantile(&clock->histogram, 0.99);
    out->p999_ns = gpsti_histogram_quantile(&clock->histogram, 0.999);
    out->max_ns = clock->histogram.max_ns;
    out->occupancy = wall_ns > 0 ? (double)clock->busy_ns / (double)wall_ns : 0.0;
}

/* Stretches that the new one touches become one with it; what they had is not counted again. */
GPSTI_PRIVATE void gpsti_busy_merge(gpsti_busy* busy, gpsti_stretch* merged) {
    uint32_t kept = 0;
    for (uint32_t i = 0; i < busy->n_stretches; i++) {
        const gpsti_stretch old = busy->stretches[i];
        if (old.end_ns < merged->start_ns || old.start_ns > merged->end_ns) {
            busy->stretches[kept++] = old;
            continue;
        }
        busy->busy_ns -= old.end_ns - old.start_ns;
        merged->start_ns = old.start_ns < merged->start_ns ? old.start_ns : merged->start_ns;
        merged->end_ns = old.end_ns > merged->end_ns ? old.end_ns : merged->end_ns;
    }
    busy->n_stretches = kept;
}

GPSTI_INTERN void gpsti_busy_close(gpsti_busy* busy, int64_t end_ns) {
    uint32_t n_over = 0;
    if (end_ns <= busy->closed_ns)
        return;
    busy->closed_ns = end_ns;
    while (n_over < busy->n_stretches && busy->stretches[n_over].end_ns <= end_ns)
        n_over++;
    busy->n_stretches -= n_over;
    memmove(&busy->stretches[0], &busy->stretches[n_over], busy->n_stretches * sizeof busy->stretches[0]);
}

GPSTI_INTERN void gpsti_busy_add(gpsti_busy* busy, int64_t start_ns, int64_t end_ns) {
    gpsti_stretch merged;
    uint32_t at = 0;
    merged.start_ns = start_ns > busy->closed_ns ? start_ns : busy->closed_ns;
    merged.end_ns = end_ns;
    if (end_ns <= merged.start_ns)
        return;
    gpsti_busy_merge(busy, &merged);
    if (busy->n_stretches == GPSTI_BUSY_STRETCHES) {
        gpsti_busy_close(busy, busy->stretches[0].end_ns);
        if (merged.end_ns <= busy->closed_ns)
            return;
    }
    busy->busy_ns += merged.end_ns - merged.start_ns;
    while (at < busy->n_stretches && busy->stretches[at].start_ns < merged.start_ns)
        at++;
    memmove(&busy->stretches[at + 1], &busy->stretches[at], (busy->n_stretches - at) * sizeof busy->stretches[0]);
    busy->stretches[at] = merged;
    busy->n_stretches++;
}

/* ---- verdict ---------------------------------------------------------------------- */

GPST_API const char* gpst_resource_name(gpst_resource resource) {
    static const char* const names[GPST_RESOURCE_COUNT] = {"none", "disk_in", "cpu",      "h2d",
                                                           "gpu",  "d2h",     "disk_out", "jpeg"};
    const int index = (int)resource;
    return index >= 0 && index < (int)GPST_RESOURCE_COUNT ? names[index] : "unknown";
}

GPSTI_PRIVATE int gpsti_verdict_largest(const int64_t* demand_ns, int left_out) {
    int largest = 0;
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++)
        if (r != left_out && (largest == 0 || demand_ns[r] > demand_ns[largest]))
            largest = r;
    return largest;
}

#define GPSTI_VERDICT_BOUND 0.70  /* a resource that is busy for more of the time bounds the run */
#define GPSTI_VERDICT_OTHERS 0.05 /* of the cores: less is what a quiet system does by itself */
#define GPSTI_VERDICT_ENDS 0.05   /* of the time: a start or a last sync that is said */

/* Cores that other programs had were not idle, and what the run waited for them is not its own waiting. */
GPSTI_PRIVATE bool gpsti_verdict_lacks_cores(const gpsti_verdict_input* input, const gpst_verdict* verdict) {
    return input->others >= GPSTI_VERDICT_OTHERS &&
           verdict->share[GPST_RESOURCE_CPU] + input->others > GPSTI_VERDICT_BOUND &&
           input->demand_ns[GPST_RESOURCE_CPU] > 0;
}

/* What of the time is before the run and behind it, where it is much: "start 20 %, last sync 31 % of the time; ". */
GPSTI_PRIVATE void gpsti_verdict_ends(const gpsti_verdict_input* input, double wall, char* out, size_t out_bytes) {
    const double start = (double)input->start_ns / wall, sync = (double)input->sync_ns / wall;
    out[0] = '\0';
    if (start >= GPSTI_VERDICT_ENDS)
        gpsti_append(out, out_bytes, "start %d %%", (int)(start * 100.0 + 0.5));
    if (sync >= GPSTI_VERDICT_ENDS)
        gpsti_append(out, out_bytes, "%slast sync %d %%", out[0] ? ", " : "", (int)(sync * 100.0 + 0.5));
    if (out[0])
        gpsti_append(out, out_bytes, " of the time; ");
}

/* Why nothing is busy, or the cores are, where that is known: what comes between "-bound: " and the largest share. */
GPSTI_PRIVATE void gpsti_verdict_why(const gpsti_verdict_input* input, const gpst_verdict* verdict, double wall,
                                     char* out, size_t out_bytes) {
    const double share = (double)input->stage_ns / wall;
    const int percent = (int)((share < 1.0 ? share : 1.0) * 100.0 + 0.5);
    out[0] = '\0';
    if (verdict->bound == GPST_RESOURCE_CPU && input->others >= GPSTI_VERDICT_OTHERS)
        gpsti_format(out, out_bytes, "other programs took %d %% of the cores; ", (int)(input->others * 100.0 + 0.5));
    if (verdict->bound != GPST_RESOURCE_NONE)
        return;
    if (input->serial)
        gpsti_format(out, out_bytes, "one item after the other; ");
    else if (share > GPSTI_VERDICT_BOUND && input->on_workers)
        gpsti_format(out, out_bytes, "workers busy %d %%, waiting in stage %s (more n_workers may help); ", percent,
                     input->stage);
    else if (share > GPSTI_VERDICT_BOUND)
        gpsti_format(out, out_bytes, "stage %s busy %d %% of what its concurrency allows; ", input->stage, percent);
}

/* Nothing is busy, and slots were free: no more inputs came. What else could be saved says nothing then. */
GPSTI_PRIVATE bool gpsti_verdict_waits_for_inputs(const gpsti_verdict_input* input, const gpst_verdict* verdict,
                                                  double wall) {
    return input->pushed && verdict->bound == GPST_RESOURCE_NONE &&
           (double)input->stage_ns <= GPSTI_VERDICT_BOUND * wall &&
           (double)input->full_ns <= (1.0 - GPSTI_VERDICT_BOUND) * wall;
}

GPSTI_PRIVATE void gpsti_verdict_text(const gpsti_verdict_input* input, int largest, double wall, gpst_verdict* out) {
    const char* const name = gpst_resource_name((gpst_resource)largest);
    const int busy = (int)(out->share[largest] * 100.0 + 0.5);
    char others[160] = "";
    char ends[64], why[128];
    gpsti_verdict_ends(input, wall, ends, sizeof ends);
    gpsti_verdict_why(input, out, wall, why, sizeof why);
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        const int tenths = (int)(out->share[r] * 1000.0 + 0.5);
        if (r != largest && out->share[r] > 0.0)
            gpsti_append(others, sizeof others, ", %s %d.%d %%", gpst_resource_name((gpst_resource)r), tenths / 10,
                         tenths % 10);
    }
    if (gpsti_verdict_waits_for_inputs(input, out, wall)) {
        const int rate = (int)((double)input->n_items * 1e10 / wall + 0.5);
        gpsti_format(out->text, sizeof out->text,
                     "input-bound: %d.%d inputs/s came, every slot was taken for %d %% of the time; %s busy %d %%%s",
                     rate / 10, rate % 10, (int)((double)input->full_ns * 100.0 / wall + 0.5), name, busy, others);
        return;
    }
    const int cap = (int)(out->cap[largest] * 100.0 + 0.5);
    const int efficiency = (int)(out->efficiency * 1000.0 + 0.5);
    gpsti_format(out->text, sizeof out->text,
                 "%s-bound: %s%s%s busy %d %%%s; without any %s cost at most %d.%02dx; %d.%d %% of the bound reached",
                 out->bound == GPST_RESOURCE_NONE ? "latency" : gpst_resource_name(out->bound), ends, why, name, busy,
                 others, name, cap / 100, cap % 100, efficiency / 10, efficiency % 10);
}

GPSTI_PRIVATE double gpsti_verdict_larger(double a, double b) { return a > b ? a : b; }

/* How long the run takes at least when r costs nothing: what the other resources need, a stage that runs only so many
   times at once, and items that are in flight only so many at once. One after the other, only r's own time is saved. */
GPSTI_PRIVATE double gpsti_verdict_without(const gpsti_verdict_input* input, int r, double wall) {
    const double others = (double)input->demand_ns[gpsti_verdict_largest(input->demand_ns, r)];
    const bool cpu = r == (int)GPST_RESOURCE_CPU;
    if (input->serial)
        return gpsti_verdict_larger(others,
                                    wall - (double)(cpu ? input->serial_cpu_ns : input->demand_ns[r]));
    const double stage = (double)(input->stage_ns - input->stage_on_ns[r]);
    const double way = (double)(input->alone_ns - input->alone_on_ns[r]) * (double)input->n_items;
    const double floor_ns = input->n_slots > 0 && way > 0.0 ? way / input->n_slots : 0.0;
    return gpsti_verdict_larger(others, gpsti_verdict_larger(stage, floor_ns));
}

/* Bound = N * max demand + one item's fill and drain (its way alone, less its time on the bound resource);
   cap of r = period / what it is at least without r. The start is nobody's, the last sync the disk's. */
GPSTI_INTERN void gpsti_verdict_make(const gpsti_verdict_input* input, gpst_verdict* out) {
    int64_t demand_ns[GPST_RESOURCE_COUNT];
    memset(out, 0, sizeof *out);
    for (int r = 0; r < (int)GPST_RESOURCE_COUNT; r++) {
        out->cap[r] = 1.0;
        demand_ns[r] = input->demand_ns[r] + (r == (int)GPST_RESOURCE_DISK_OUT ? input->sync_ns : 0);
    }
    int largest = gpsti_verdict_largest(demand_ns, 0);
    if (input->n_items == 0 || input->wall_ns <= 0 || demand_ns[largest] <= 0) {
        gpsti_format(out->text, sizeof out->text, "no verdict: nothing was processed");
        return;
    }
    /* Clocks disagree a little, and a virtual one runs ahead: a run is no shorter than its largest demand. */
    const double demand = (double)demand_ns[largest];
    const double run = gpsti_verdict_larger(
        (double)input->wall_ns, (double)input->demand_ns[gpsti_verdict_largest(input->demand_ns, 0)]);
    const double wall = run + (double)input->start_ns + (double)input->sync_ns;
    for (int r = 1; r < (int)GPST_RESOURCE_COUNT; r++) {
        const int64_t sync_ns = r == (int)GPST_RESOURCE_DISK_OUT ? 0 : input->sync_ns;
        const double without = gpsti_verdict_without(input, r, run) + (double)(input->start_ns + sync_ns);
        out->share[r] = (double)demand_ns[r] / wall;
        const double cap = without > 0.0 ? wall / without : 1000.0; /* nothing else costs anything that was measured */
        out->cap[r] = cap < 1.0 ? 1.0 : cap < 1000.0 ? cap : 1000.0;
    }
    const double fill = (double)input->alone_ns - (double)input->demand_ns[largest] / (double)input->n_items;
    const double bound = demand + (fill > 0.0 ? fill : 0.0);
    out->others = input->others;
    out->bound = out->share[largest] > GPSTI_VERDICT_BOUND ? (gpst_resource)largest : GPST_RESOURCE_NONE;
    if (out->bound == GPST_RESOURCE_NONE && gpsti_verdict_lacks_cores(input, out))
        out->bound = (gpst_resource)(largest = (int)GPST_RESOURCE_CPU);
    out->bound_s = bound / 1e9;
    out->efficiency = bound < wall ? bound / wall : 1.0;
    gpsti_verdict_text(input, largest, wall, out);
}
