/* core/carry.c -- a worker takes items from the source and carries each through the steps that need nobody else, as a
   plain loop would: brief items in bunches, so that the lock is taken once for many. What they wait for is flow.c's. */
#include "platform_internal.h"

#include "pipeline_internal.h"
#include "reader_internal.h"

#define GPSTI_CARRY_NS 100000 /* about how long a worker keeps to itself what it has taken */
#define GPSTI_CARRY_ITEMS 16
#define GPSTI_CARRY_READ_CPU 0.5 /* of its time: from here on a read computes (copies from the page cache) */

typedef struct gpsti_carry_note { /* one service */
    int64_t start_ns, busy_ns, cpu_ns; /* cpu_ns -1: not sampled */
    uint64_t bytes;
    gpst_result result;
} gpsti_carry_note;

typedef struct gpsti_carry {
    gpst_pipeline* pipeline;
    uint32_t worker_index;
    uint32_t n_items, n_steps;
    gpsti_slot* slots[GPSTI_CARRY_ITEMS];
    uint32_t n_served[GPSTI_CARRY_ITEMS]; /* steps; fewer than n_steps when the item failed */
    int64_t source_ns;
    bool wants_cpu[GPST_MAX_STAGES];      /* of the first item */
    gpsti_carry_note notes[GPSTI_CARRY_ITEMS][GPST_MAX_STAGES];
} gpsti_carry;

/* ---- what may be carried ------------------------------------------------------------------- */

GPSTI_PRIVATE bool gpsti_carry_takes(const gpst_pipeline* pipeline, const gpsti_step* step) {
    if (step->kind == GPSTI_STEP_READ)
        return gpsti_carry_reads(pipeline);
    return step->kind == GPSTI_STEP_HOST && step->concurrency == 0 &&
           (!step->per_output || pipeline->n_outputs == 1);
}

GPSTI_INTERN bool gpsti_carry_computes(const gpst_pipeline* pipeline) {
    return pipeline->read_cpu_part >= GPSTI_CARRY_READ_CPU;
}

GPSTI_INTERN bool gpsti_carry_reads(const gpst_pipeline* pipeline) {
    return pipeline->reader && gpsti_carry_computes(pipeline);
}

GPSTI_INTERN void gpsti_carry_note_read(gpst_pipeline* pipeline, int64_t busy_ns, int64_t cpu_ns) {
    const double part = busy_ns > 0 ? (double)cpu_ns / (double)busy_ns : 1.0;
    pipeline->read_cpu_part += pipeline->read_cpu_part < 0.0 ? part - pipeline->read_cpu_part
                                                            : (part - pipeline->read_cpu_part) / 4.0;
}

/* Steps from the first on, before FINISH. */
GPSTI_PRIVATE uint32_t gpsti_carry_n_steps(const gpst_pipeline* pipeline) {
    uint32_t n = 0;
    while (gpsti_carry_takes(pipeline, &pipeline->steps[n]))
        n++;
    return n;
}

GPSTI_INTERN bool gpsti_carry_is_work(const gpst_pipeline* pipeline) {
    return gpsti_carry_takes(pipeline, &pipeline->steps[0]);
}

/* Of brief items several, but no more than leaves every worker as many, and towards the end of the run a share of the
   rest. Only of a list whose length is known: elsewhere the source may wait for what the worker still has in hand. */
GPSTI_INTERN uint32_t gpsti_carry_n_items(const gpst_pipeline* pipeline) {
    const uint32_t n_free = pipeline->n_slots - pipeline->in_flight;
    const uint32_t share = pipeline->n_slots / (pipeline->n_active + 1);
    const uint64_t expected = pipeline->desc.n_items_expected, next = pipeline->next_index;
    const uint64_t rest = expected > next ? (expected - next) / (2 * (uint64_t)pipeline->n_active) : 0;
    if (rest < 2 || pipeline->source_work_ns <= 0 || !gpsti_carry_is_work(pipeline))
        return 1;
    uint64_t n = GPSTI_CARRY_NS / (uint64_t)pipeline->source_work_ns;
    n = n < share ? n : share;
    n = n < rest ? n : rest;
    n = n < n_free ? n : n_free;
    n = n < GPSTI_CARRY_ITEMS ? n : GPSTI_CARRY_ITEMS;
    return n > 1 ? (uint32_t)n : 1;
}

/* ---- without the lock ----------------------------------------------------------------------- */

/* False: the source is dry; the slots from n_items on hold nothing. */
GPSTI_PRIVATE bool gpsti_carry_call_source(gpsti_carry* self, uint64_t index) {
    const uint32_t n_slots = self->n_items;
    const int64_t start_ns = gpsti_now_ns();
    bool more = true;
    self->n_items = 0;
    while (more && self->n_items < n_slots) {
        gpsti_slot* const slot = self->slots[self->n_items];
        gpsti_slot_reset(slot, index + self->n_items);
        more = gpsti_call_source(self->pipeline, slot) != GPST_END;
        if (more)
            gpsti_reader_expect(self->pipeline->reader, slot->item.path, index + self->n_items);
        self->n_items += more ? 1 : 0;
    }
    self->source_ns = gpsti_now_ns() - start_ns;
    return more;
}

GPSTI_PRIVATE void gpsti_carry_read(gpsti_slot* slot, gpsti_carry_note* note, char* reason) {
    gpsti_flow_prepare_read(slot);
    gpsti_reader_read_here(slot->pipeline->reader, &slot->read);
    slot->item.file_data = slot->file.data;
    slot->item.file_bytes = note->bytes = slot->read.bytes;
    note->result = slot->read.result;
    gpsti_copy_text(reason, GPST_REASON_BYTES, slot->read.reason);
}

GPSTI_PRIVATE void gpsti_carry_serve(gpsti_carry* self, uint32_t i, uint32_t s) {
    gpsti_slot* const slot = self->slots[i];
    const gpsti_step* const step = &self->pipeline->steps[s];
    gpsti_carry_note* const note = &self->notes[i][s];
    const char* const name = self->pipeline->stages[step->first_stage].name;
    const bool sample_cpu = i == 0 && self->wants_cpu[s];
    char reason[GPST_REASON_BYTES] = "";
    const int64_t cpu_start_ns = sample_cpu ? gpsti_thread_cpu_ns() : 0;
    note->bytes = 0;
    note->start_ns = gpsti_now_ns();
    if (step->kind == GPSTI_STEP_READ)
        gpsti_carry_read(slot, note, reason);
    else
        note->result = gpsti_call_stage(slot, step->first_stage, 0, self->worker_index, reason);
    note->busy_ns = gpsti_now_ns() - note->start_ns;
    note->cpu_ns = sample_cpu ? gpsti_thread_cpu_ns() - cpu_start_ns : -1;
    if (GPST_FAILED(note->result))
        gpsti_slot_fail(slot, note->result, name, reason);
}

GPSTI_PRIVATE void gpsti_carry_item(gpsti_carry* self, uint32_t i) {
    gpsti_slot* const slot = self->slots[i];
    gpst_pipeline* const pipeline = self->pipeline;
    uint32_t s = 0;
    slot->started = self->n_steps > 0;
    for (; s < self->n_steps && !GPST_FAILED(slot->item.result); s++) {
        if (gpsti_a32_load(&pipeline->cancel) != 0) {
            gpsti_slot_fail(slot, GPST_ERROR_CANCELLED, pipeline->stages[pipeline->steps[s].first_stage].name,
                            "cancelled");
            break;
        }
        gpsti_carry_serve(self, i, s);
    }
    self->n_served[i] = s;
}

/* ---- with it ----------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_carry_take_slots(gpsti_carry* self) {
    self->n_items = gpsti_carry_n_items(self->pipeline);
    self->n_steps = gpsti_carry_n_steps(self->pipeline);
    for (uint32_t i = 0; i < self->n_items; i++)
        self->slots[i] = gpsti_flow_take_slot(self->pipeline);
    for (uint32_t s = 0; s < self->n_steps; s++)
        self->wants_cpu[s] = gpsti_flow_wants_cpu(self->pipeline, &self->pipeline->steps[s]);
}

GPSTI_PRIVATE void gpsti_carry_number(gpsti_carry* self, uint32_t n_slots, bool more) {
    gpst_pipeline* const pipeline = self->pipeline;
    pipeline->source_running = false;
    pipeline->source_done = pipeline->source_done || !more;
    pipeline->next_index += self->n_items;
    pipeline->n_sourced += self->n_items;
    pipeline->source_busy_ns += self->source_ns;
    for (uint32_t i = 0; i < self->n_items; i++)
        self->slots[i]->ticket = pipeline->next_ticket++;
    for (uint32_t i = self->n_items; i < n_slots; i++)
        gpsti_flow_release_slot(self->slots[i]);
}

GPSTI_PRIVATE void gpsti_carry_account(gpsti_carry* self, uint32_t i) {
    gpst_pipeline* const pipeline = self->pipeline;
    for (uint32_t s = 0; s < self->n_served[i]; s++) {
        gpsti_step* const step = &pipeline->steps[s];
        const gpsti_carry_note* const note = &self->notes[i][s];
        gpsti_clock_add(&pipeline->clocks[step->first_clock], note->busy_ns, 0, note->bytes,
                        GPST_FAILED(note->result));
        if (step->kind == GPSTI_STEP_READ) {
            gpsti_busy_add(&pipeline->busy[GPST_RESOURCE_DISK_IN], note->start_ns, note->start_ns + note->busy_ns);
            pipeline->bytes_read += note->bytes;
        }
        gpsti_flow_account_cpu(pipeline, step, note->busy_ns, note->cpu_ns);
    }
}

GPSTI_INTERN void gpsti_carry_run(gpst_pipeline* pipeline, uint32_t worker_index) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_carry self;
    self.pipeline = pipeline;
    self.worker_index = worker_index;
    gpsti_carry_take_slots(&self);
    const uint32_t n_slots = self.n_items;
    const uint64_t index = pipeline->next_index;
    const int64_t work_ns = gpsti_flow_source_work_ns(pipeline);
    pipeline->source_running = true;
    pipeline->executing++;
    gpsti_scheduler_leave(scheduler, work_ns);
    gpsti_mutex_unlock(&scheduler->mutex);
    const int64_t start_ns = gpsti_now_ns();
    const bool more = gpsti_carry_call_source(&self, index);
    if (self.n_steps > 0) { /* meanwhile the source is another's */
        gpsti_mutex_lock(&scheduler->mutex);
        gpsti_carry_number(&self, n_slots, more);
        gpsti_scheduler_wake(scheduler);
        gpsti_mutex_unlock(&scheduler->mutex);
    }
    for (uint32_t i = 0; i < self.n_items; i++)
        gpsti_carry_item(&self, i);
    const int64_t spent_ns = gpsti_now_ns() - start_ns;
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_scheduler_return(scheduler, work_ns);
    pipeline->executing--;
    if (self.n_steps == 0)
        gpsti_carry_number(&self, n_slots, more);
    if (self.n_items > 0)
        gpsti_work_note(&pipeline->source_work_ns, spent_ns / (int64_t)self.n_items);
    for (uint32_t i = 0; i < self.n_items; i++) {
        gpsti_carry_account(&self, i);
        gpsti_flow_continue(self.slots[i], self.n_served[i]);
    }
}
