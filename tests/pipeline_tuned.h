/* tests/pipeline_tuned.h -- a run with what the tuner has to say of it, for tests of its start and of what it does
   while items flow. */
#ifndef GPST_PIPELINE_TUNED_H
#define GPST_PIPELINE_TUNED_H

#include "pipeline_kit.h"

static gpst_tuner_report report;

/* As kit_run, and keeps what the tuner has to say. */
static inline gpst_result run_tuned(kit* self, gpst_pipeline_desc* desc, gpst_stats* stats) {
    if (desc->mode == GPST_RUN_ENGINE && desc->tune == GPST_TUNE_DEFAULT)
        desc->mode = GPST_RUN_DEFAULT;
    kit_forget(self);
    assert_int_equal(gpst_pipeline_create(self->context, desc, &self->pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(self->pipeline);
    gpst_pipeline_query_stats(self->pipeline, stats);
    gpst_pipeline_query_tuner(self->pipeline, &report);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    for (int k = 1; k < (int)GPST_KNOB_COUNT && report.on; k++) {
        assert_true(report.settings.value[k] >= report.least.value[k]);
        assert_true(report.settings.value[k] <= report.most.value[k]);
    }
    return result;
}

static inline void print_decisions(void) {
    for (uint32_t i = 0; i < report.n_decisions && i < GPST_MAX_DECISIONS; i++) {
        const gpst_tuner_decision* const d = &report.decisions[i];
        printf("    item %4llu %-8s %3u -> %3u  %8.1f -> %8.1f items/s  %s\n", (unsigned long long)d->item,
               gpst_knob_name(d->knob), d->before, d->after, d->items_per_s_before, d->items_per_s_after,
               d->reason);
    }
}

static inline bool said(const char* text) {
    for (uint32_t i = 0; i < report.n_decisions && i < GPST_MAX_DECISIONS; i++)
        if (strstr(report.decisions[i].reason, text))
            return true;
    return false;
}

static inline gpst_result sleep_a_little(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    (void)task;
    gpsti_sleep_ns(self->decode_ns);
    return GPST_OK;
}

#endif
