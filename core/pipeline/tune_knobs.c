/* core/pipeline/tune_knobs.c -- the tuner's values put to work: slots, the threads of reader and writer, workers,
   streams, and
   how items end. */
#include "../base/platform_internal.h"

#include "pipeline_internal.h"
#include "../files/reader_internal.h"

/* What reader and writer are, or will be, opened with. */
GPSTI_INTERN void gpsti_tune_set_files(gpst_pipeline* pipeline) {
    pipeline->desc.n_reads = pipeline->tune.tuner.now.value[GPST_KNOB_READS];
    pipeline->desc.n_writes = pipeline->tune.tuner.now.value[GPST_KNOB_WRITES];
}

/* A knob that could not be moved stays where it was, for good. */
GPSTI_PRIVATE void gpsti_tune_refused(gpst_pipeline* pipeline, gpst_knob knob, uint32_t value) {
    gpsti_tuner* const tuner = &pipeline->tune.tuner;
    gpst_tuner_decision* const decision = gpsti_tuner_note(tuner, knob, value, value);
    gpsti_format(decision->reason, sizeof decision->reason, "%u refused: %.80s", tuner->now.value[knob],
                 gpst_last_reason());
    tuner->now.value[knob] = tuner->most.value[knob] = value;
}

GPSTI_PRIVATE void gpsti_tune_apply_slots(gpst_pipeline* pipeline) {
    uint32_t n = gpsti_tune_slots_now(pipeline);
    if (GPST_FAILED(gpsti_slots_make(pipeline, n))) {
        n = pipeline->n_slots_made;
        gpsti_tune_refused(pipeline, GPST_KNOB_SLOTS, n);
    }
    pipeline->n_slots = n;
}

/* Items that end with their workers end side by side where nobody is told of them. */
GPSTI_INTERN void gpsti_tune_set_ends(gpst_pipeline* pipeline, bool whole) {
    gpsti_step* const finish = &pipeline->steps[pipeline->n_steps - 1];
    pipeline->whole = whole;
    if (!pipeline->desc.sink)
        finish->concurrency = whole ? 0 : 1;
}

/* A reader has no thread while workers bring items whole. Where none is to be had then, they go on reading. */
GPSTI_PRIVATE void gpsti_tune_start_reader(gpst_pipeline* pipeline) {
    if (pipeline->reader && !pipeline->whole && GPST_FAILED(gpsti_reader_start(pipeline->reader)))
        pipeline->read_cpu_part = 1.0;
}

/* Nor has a writer. Where none is to be had then, they go on bringing items whole. */
GPSTI_PRIVATE void gpsti_tune_start_writer(gpst_pipeline* pipeline) {
    gpsti_tuner* const tuner = &pipeline->tune.tuner;
    if (!pipeline->writer || pipeline->whole || !GPST_FAILED(gpsti_writer_start(pipeline->writer)))
        return;
    gpsti_tune_set_ends(pipeline, true);
    gpsti_format(gpsti_tuner_note(tuner, GPST_KNOB_NONE, 0, 0)->reason, sizeof tuner->decisions[0].reason,
                 "whole items: no thread for the writer");
}

GPSTI_PRIVATE void gpsti_tune_apply_files(gpst_pipeline* pipeline) {
    const uint32_t* const now = pipeline->tune.tuner.now.value;
    const uint32_t reads = now[GPST_KNOB_READS], writes = now[GPST_KNOB_WRITES];
    if (pipeline->reader && reads != pipeline->desc.n_reads &&
        GPST_FAILED(gpst_reader_set_in_flight(pipeline->reader, reads)))
        gpsti_tune_refused(pipeline, GPST_KNOB_READS, pipeline->desc.n_reads);
    if (pipeline->writer && writes != pipeline->desc.n_writes &&
        GPST_FAILED(gpsti_writer_set_in_flight(pipeline->writer, writes)))
        gpsti_tune_refused(pipeline, GPST_KNOB_WRITES, pipeline->desc.n_writes);
    gpsti_tune_start_writer(pipeline);
    gpsti_tune_start_reader(pipeline);
    gpsti_tune_set_files(pipeline);
}

GPSTI_INTERN void gpsti_tune_apply(gpst_pipeline* pipeline) {
    const uint32_t* const now = pipeline->tune.tuner.now.value;
    gpsti_tune_apply_slots(pipeline);
    gpsti_tune_apply_files(pipeline);
    pipeline->n_active = now[GPST_KNOB_WORKERS];
    for (uint32_t s = 0; s < pipeline->n_steps; s++)
        if (pipeline->steps[s].kind == GPSTI_STEP_OFFLOAD)
            pipeline->steps[s].streams = now[GPST_KNOB_STREAMS];
    gpsti_steps_set_batch(pipeline, now[GPST_KNOB_BATCH]);
    pipeline->exec.n_threads = now[GPST_KNOB_INSIDE];
    pipeline->frozen = false;
    if (pipeline->attached)
        gpsti_flow_call_workers(pipeline);
}
