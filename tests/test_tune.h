/* tests/test_tune.h -- a pipeline that has not begun, for tests that set the tuner's and the guard's clocks by hand. */
#ifndef GPST_TEST_TUNE_H
#define GPST_TEST_TUNE_H

#include "pipeline_kit.h"

#define MS 1000000

static inline void lock(const kit* self) { gpsti_mutex_lock(&self->context->scheduler->mutex); }
static inline void unlock(const kit* self) { gpsti_mutex_unlock(&self->context->scheduler->mutex); }

static inline gpst_pipeline* make(kit* self, const gpst_pipeline_desc* desc) {
    kit_forget(self);
    if (gpst_pipeline_create(self->context, desc, &self->pipeline) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    return self->pipeline;
}

static inline void unmake(kit* self) {
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    kit_close(self);
}

static inline const gpst_tuner_decision* last_decision(const gpst_pipeline* pipeline) {
    return &pipeline->tune.tuner.decisions[pipeline->tune.tuner.n_decisions - 1];
}

#endif
