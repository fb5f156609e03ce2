/* core/machine/find_batch.c -- tries batches of several sizes and says which gives most. */
#include "../base/platform_internal.h"

#include "find_batch_internal.h"

#include <string.h>

#define GPSTI_FIND_BATCH_RUNS 64 /* of a size that count at most */
#define GPSTI_FIND_BATCH_LEAST 3

/* Sorted by insertion: the median of a few. */
GPSTI_PRIVATE int64_t gpsti_find_batch_median(int64_t* times_ns, uint32_t n) {
    for (uint32_t i = 1; i < n; i++) {
        const int64_t value = times_ns[i];
        uint32_t k = i;
        for (; k > 0 && times_ns[k - 1] > value; k--)
            times_ns[k] = times_ns[k - 1];
        times_ns[k] = value;
    }
    return times_ns[n / 2];
}

/* The first batch makes memory and warms up. */
GPSTI_PRIVATE void gpsti_find_batch_measure(const gpsti_find_batch* self, gpst_batch_row* row) {
    int64_t times_ns[GPSTI_FIND_BATCH_RUNS], spent_ns = 0;
    uint32_t n = 0;
    row->result = self->desc.func(self->desc.user_data, row->n_items);
    while (!GPST_FAILED(row->result) && n < GPSTI_FIND_BATCH_RUNS &&
           (n < GPSTI_FIND_BATCH_LEAST || spent_ns < self->desc.try_ns)) {
        const int64_t start_ns = self->now_ns(self->clock);
        row->result = self->desc.func(self->desc.user_data, row->n_items);
        times_ns[n] = self->now_ns(self->clock) - start_ns;
        spent_ns += times_ns[n++];
    }
    if (GPST_FAILED(row->result))
        return;
    row->result = GPST_OK;
    row->batch_ns = gpsti_find_batch_median(times_ns, n);
    row->items_per_s = row->n_items * 1e9 / (double)(row->batch_ns > 0 ? row->batch_ns : 1);
}

/* Its row, in its place by size; one that is there already is not tried again. */
GPSTI_PRIVATE const gpst_batch_row* gpsti_find_batch_try(const gpsti_find_batch* self, uint32_t n_items,
                                                         gpst_batch_report* out) {
    uint32_t at = 0;
    while (at < out->n_rows && out->rows[at].n_items < n_items)
        at++;
    if (at < out->n_rows && out->rows[at].n_items == n_items)
        return &out->rows[at];
    if (out->n_rows == GPST_MAX_BATCH_ROWS)
        return NULL;
    memmove(&out->rows[at + 1], &out->rows[at], (out->n_rows - at) * sizeof *out->rows);
    memset(&out->rows[at], 0, sizeof *out->rows);
    out->n_rows++;
    out->rows[at].n_items = n_items;
    gpsti_find_batch_measure(self, &out->rows[at]);
    return &out->rows[at];
}

GPSTI_PRIVATE bool gpsti_find_batch_counts(const gpsti_find_batch* self, const gpst_batch_row* row) {
    return row->result == GPST_OK && (self->desc.most_ns == 0 || row->batch_ns <= self->desc.most_ns);
}

/* The row with the highest throughput; NULL: there is none. */
GPSTI_PRIVATE const gpst_batch_row* gpsti_find_batch_highest(const gpsti_find_batch* self,
                                                             const gpst_batch_report* report) {
    const gpst_batch_row* best = NULL;
    for (uint32_t i = 0; i < report->n_rows; i++)
        if (gpsti_find_batch_counts(self, &report->rows[i]) &&
            (!best || report->rows[i].items_per_s > best->items_per_s))
            best = &report->rows[i];
    return best;
}

/* Halfway between the best size and its neighbours, those that failed among them. */
GPSTI_PRIVATE void gpsti_find_batch_refine(const gpsti_find_batch* self, gpst_batch_report* out) {
    const gpst_batch_row* const best = gpsti_find_batch_highest(self, out);
    if (!best)
        return;
    const uint32_t at = (uint32_t)(best - out->rows), n = best->n_items;
    const uint32_t below = at > 0 ? out->rows[at - 1].n_items : n;
    const uint32_t above = at + 1 < out->n_rows ? out->rows[at + 1].n_items : n;
    if (above > n + 1)
        (void)gpsti_find_batch_try(self, n + (above - n) / 2, out);
    if (below + 1 < n)
        (void)gpsti_find_batch_try(self, below + (n - below) / 2, out);
}

GPSTI_INTERN gpst_result gpsti_find_batch_run(const gpsti_find_batch* self, gpst_batch_report* out) {
    for (uint64_t n = 1; n <= self->desc.most; n *= 2) {
        const gpst_batch_row* const row = gpsti_find_batch_try(self, (uint32_t)n, out);
        GPSTI_FAIL_IF(row && n == 1 && GPST_FAILED(row->result), row->result,
                      "gpst_find_batch: desc.func(1): %s", gpst_result_text(row->result));
        if (!row || GPST_FAILED(row->result) || (self->desc.most_ns > 0 && row->batch_ns > self->desc.most_ns))
            break;
    }
    const gpst_batch_row* const last = &out->rows[out->n_rows - 1];
    if (last->result == GPST_OK && last->n_items * 2 > self->desc.most) /* the largest is no power of two */
        (void)gpsti_find_batch_try(self, self->desc.most, out);
    gpsti_find_batch_refine(self, out);
    gpsti_find_batch_refine(self, out);
    const gpst_batch_row* const highest = gpsti_find_batch_highest(self, out);
    GPSTI_FAIL_IF(!highest, GPST_ERROR_TIMEOUT, "gpst_find_batch: desc.most_ns=%lld: one item takes %lld",
                  (long long)self->desc.most_ns, (long long)out->rows[0].batch_ns);
    for (uint32_t i = 0; out->best == 0; i++) /* as good as the highest, and smaller */
        if (gpsti_find_batch_counts(self, &out->rows[i]) &&
            out->rows[i].items_per_s >= highest->items_per_s * (1.0 - self->desc.tolerance)) {
            out->best = out->rows[i].n_items;
            out->items_per_s = out->rows[i].items_per_s;
        }
    return GPST_OK;
}

GPSTI_PRIVATE int64_t gpsti_find_batch_now(void* clock) {
    (void)clock;
    return gpsti_now_ns();
}

GPST_API gpst_result gpst_find_batch(const gpst_find_batch_desc* desc, gpst_batch_report* out) {
    gpsti_find_batch self;
    GPSTI_FAIL_IF(!out, GPST_ERROR_ARGUMENT, "gpst_find_batch: out=NULL: required");
    memset(out, 0, sizeof *out);
    GPSTI_FAIL_IF(!desc || !desc->func, GPST_ERROR_ARGUMENT, "gpst_find_batch: desc.func=NULL: required");
    GPSTI_FAIL_IF(desc->most > 65536, GPST_ERROR_ARGUMENT, "gpst_find_batch: desc.most=%u: at most 65536", desc->most);
    GPSTI_FAIL_IF(desc->try_ns < 0 || desc->most_ns < 0 || !(desc->tolerance >= 0.0 && desc->tolerance < 1.0),
                  GPST_ERROR_ARGUMENT,
                  "gpst_find_batch: desc: try_ns and most_ns must not be negative, and tolerance in 0..1");
    self.desc = *desc;
    self.desc.most = desc->most ? desc->most : 64;
    self.desc.try_ns = desc->try_ns ? desc->try_ns : 100 * GPST_MS;
    self.desc.tolerance = desc->tolerance > 0.0 ? desc->tolerance : 0.03;
    self.now_ns = gpsti_find_batch_now;
    self.clock = NULL;
    const gpst_result result = gpsti_find_batch_run(&self, out);
    if (GPST_FAILED(result))
        memset(out, 0, sizeof *out);
    return result;
}
