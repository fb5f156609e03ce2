/* core/pipeline/carry.c -- a worker takes items from the source and carries each through the steps that need nobody
   else, as a
   plain loop would: brief items in bunches, so that the lock is taken once for many. What they wait for is flow.c's.
   Whole items it carries through every step, and where nobody is told of them, to their end: then the workers are as
   many plain loops on one list, which share nothing but the source; and who waits for the run's end is one of them. */
#include "../base/platform_internal.h"

#include "note_internal.h"
#include "pipeline_internal.h"
#include "../files/reader_internal.h"

#include <string.h>

#define GPSTI_CARRY_NS 100000 /* about how long a worker keeps to itself what it has taken, */
#define GPSTI_CARRY_ENDS_NS 400000 /* and where nobody is told of its items, who all ask for the same lock then */
#define GPSTI_CARRY_SOURCE_NS 5000 /* in one turn at the source: others that wait for theirs have nothing in hand */
#define GPSTI_CARRY_READS 8 /* that tell more than the plain start's */
#define GPSTI_CARRY_READ_CPU 0.5 /* of its time: from here on a read computes (copies from the page cache) */

typedef struct gpsti_carry_end { /* one item that is over */
    gpst_result result;
    int64_t start_ns, end_ns, commit_start_ns, commit_end_ns;
    int64_t finish_ns, finish_cpu_ns; /* of its end alone; finish_cpu_ns -1: not sampled */
} gpsti_carry_end;

struct gpsti_carry {
    gpst_pipeline* pipeline;
    uint32_t worker_index;
    uint32_t n_items, n_steps;
    uint32_t n_active; /* what the pipeline was at when these items were taken */
    uint64_t share;    /* of what was left at its last turn at the source; items that end here are counted after it */
    bool whole;
    bool on_cpu; /* and where their device work began */
    gpsti_slot* slots[GPSTI_BUNCH_ITEMS]; /* of items that end here the first one is all of theirs */
    uint32_t n_served[GPSTI_BUNCH_ITEMS]; /* steps; fewer than n_steps when the item failed */
    gpsti_bunch bunch; /* items that end here: taken, and not begun; */
    bool loaded;       /* and one more, which the slot has */
    int64_t source_ns, source_cpu_ns;
    int64_t now_ns;    /* the last look at the clock; little has happened since */
    bool wants_cpu[GPST_MAX_STAGES];      /* by step, of the first item; */
    bool wants_finish_cpu;                /* and of its end, where it ends here; */
    bool wants_source_cpu;                /* of all calls of the source */
    gpsti_ledger ledger;
    uint32_t n_notes[GPSTI_BUNCH_ITEMS]; /* it had with that item (fewer by now, where they are counted already) */
    gpsti_carry_end ends[GPSTI_BUNCH_ITEMS];
};

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
    return pipeline->reader && (pipeline->whole || gpsti_carry_computes(pipeline));
}

GPSTI_INTERN void gpsti_carry_note_read(gpst_pipeline* pipeline, int64_t busy_ns, int64_t cpu_ns) {
    const double part = busy_ns > 0 ? (double)cpu_ns / (double)busy_ns : 1.0;
    pipeline->read_cpu_part += pipeline->read_cpu_part < 0.0 ? part - pipeline->read_cpu_part
                                                            : (part - pipeline->read_cpu_part) / 4.0;
}

/* Nearly all of the last ones: reads of many threads on few cores take long, but wait for nothing else. */
GPSTI_PRIVATE bool gpsti_carry_last_computed(gpst_pipeline* pipeline, const gpst_reader_info* info) {
    const uint64_t n = info->reads - pipeline->weighed_reads, n_computed = info->computed - pipeline->weighed_computed;
    if (n < GPSTI_CARRY_READS)
        return false;
    pipeline->weighed_reads = info->reads;
    pipeline->weighed_computed = info->computed;
    return n - n_computed <= n / GPSTI_CARRY_READS;
}

GPSTI_INTERN void gpsti_carry_weigh_reads(gpst_pipeline* pipeline) {
    gpst_reader_info info;
    if (!pipeline->reader || gpsti_carry_computes(pipeline))
        return;
    gpst_reader_query_info(pipeline->reader, &info);
    const double part = info.service_ns > 0 ? (double)info.cpu_ns / (double)info.service_ns : 0.0;
    if (gpsti_carry_last_computed(pipeline, &info))
        pipeline->read_cpu_part = 1.0;
    else if (info.reads >= GPSTI_CARRY_READS && part >= GPSTI_CARRY_READ_CPU)
        pipeline->read_cpu_part = part;
}

/* Steps from the first on, before FINISH. */
GPSTI_PRIVATE uint32_t gpsti_carry_n_steps(const gpst_pipeline* pipeline) {
    uint32_t n = 0;
    while (gpsti_carry_takes(pipeline, &pipeline->steps[n]))
        n++;
    return n;
}

GPSTI_INTERN bool gpsti_carry_is_work(const gpst_pipeline* pipeline) {
    return pipeline->whole || gpsti_carry_takes(pipeline, &pipeline->steps[0]);
}

/* Else those who are told of them wait for their turn. */
GPSTI_INTERN bool gpsti_carry_ends(const gpst_pipeline* pipeline) { return pipeline->whole && !pipeline->desc.sink; }

/* Towards the end of the run nobody takes more than leaves every worker as many. */
GPSTI_PRIVATE uint64_t gpsti_carry_share(uint64_t n_left, uint32_t n_active) {
    return n_left / (2 * (uint64_t)n_active);
}

/* Of brief items several, but no more than a share of the slots, and towards the end of the run of the rest. Only of a
   list whose length is known: elsewhere the source may wait for what the worker still has in hand. */
GPSTI_INTERN uint32_t gpsti_carry_n_items(const gpst_pipeline* pipeline) {
    const uint32_t n_free = gpsti_flow_n_free(pipeline);
    const uint32_t share = pipeline->n_slots / (pipeline->n_active + 1);
    const uint64_t rest = gpsti_carry_share(gpsti_flow_n_left(pipeline), pipeline->n_active);
    if (rest < 2 || pipeline->source_work_ns <= 0 || !gpsti_carry_is_work(pipeline))
        return 1;
    const uint64_t keep_ns = gpsti_carry_ends(pipeline) ? GPSTI_CARRY_ENDS_NS : GPSTI_CARRY_NS;
    uint64_t n = keep_ns / (uint64_t)pipeline->source_work_ns;
    n = n < rest ? n : rest;
    n = n < GPSTI_BUNCH_ITEMS ? n : GPSTI_BUNCH_ITEMS;
    if (!gpsti_carry_ends(pipeline)) { /* each has a slot */
        n = n < share ? n : share;
        n = n < n_free ? n : n_free;
    }
    return n > 1 ? (uint32_t)n : 1;
}

/* ---- without the lock ----------------------------------------------------------------------- */

/* False: the source is dry; the slots from n_items on hold nothing. */
GPSTI_PRIVATE bool gpsti_carry_call_source(gpsti_carry* self, uint64_t index) {
    const uint32_t n_slots = self->n_items;
    const int64_t cpu_start_ns = self->wants_source_cpu ? gpsti_thread_cpu_ns() : 0;
    const int64_t start_ns = gpsti_now_ns();
    bool more = true;
    self->n_items = 0;
    while (more && self->n_items < n_slots) {
        gpsti_slot* const slot = self->slots[self->n_items];
        gpsti_slot_reset(slot, index + self->n_items, gpsti_now_ns());
        more = gpsti_call_source(self->pipeline, slot) != GPST_END;
        if (more)
            gpsti_reader_expect(self->pipeline->reader, slot->item.path, index + self->n_items);
        self->n_items += more ? 1 : 0;
    }
    self->source_ns = gpsti_now_ns() - start_ns;
    self->source_cpu_ns = self->wants_source_cpu ? gpsti_thread_cpu_ns() - cpu_start_ns : 0;
    return more;
}

GPSTI_PRIVATE gpst_result gpsti_carry_read(gpsti_slot* slot, char* reason) {
    gpsti_flow_prepare_read(slot);
    gpsti_reader_read_here(slot->pipeline->reader, &slot->read);
    slot->item.file_data = slot->file.data;
    slot->item.file_bytes = slot->read.bytes;
    gpsti_copy_text(reason, GPST_REASON_BYTES, slot->read.reason);
    return slot->read.result;
}

GPSTI_PRIVATE void gpsti_carry_serve(gpsti_carry* self, uint32_t i, uint32_t s) {
    gpsti_slot* const slot = self->slots[i];
    const gpsti_step* const step = &self->pipeline->steps[s];
    const char* const name = self->pipeline->stages[step->first_stage].name;
    const bool reads = step->kind == GPSTI_STEP_READ;
    char reason[GPST_REASON_BYTES];
    gpsti_note note;
    gpsti_note_begin(&note, step, self->wants_cpu[s], self->now_ns);
    const gpst_result result = reads ? gpsti_carry_read(slot, reason)
                                     : gpsti_call_stage(slot, step->first_stage, 0, self->worker_index, reason);
    self->now_ns = gpsti_note_end(&note, result);
    if (reads)
        gpsti_note_file(&note, note.start_ns, note.end_ns, slot->read.bytes);
    gpsti_ledger_keep(&self->ledger, &note);
    if (GPST_FAILED(result))
        gpsti_slot_fail(slot, result, name, reason);
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
    if (self->whole)
        self->now_ns =
            gpsti_plain_bring(slot, self->worker_index, self->n_steps, self->wants_cpu, &self->ledger, self->now_ns);
    self->n_notes[i] = self->ledger.n;
    memset(self->wants_cpu, 0, sizeof self->wants_cpu);
}

GPSTI_PRIVATE void gpsti_carry_load(gpsti_carry* self, const gpsti_given* given) {
    gpsti_slot* const slot = self->slots[0];
    gpsti_slot_reset(slot, given->index, given->start_ns); /* where it had to wait for those before it, too */
    slot->on_cpu = self->on_cpu; /* whatever became of the item before */
    gpsti_slot_receive(slot, given);
}

/* False: the source is dry, or is not to be asked any more. What the bunch has no room for is copied into the slot,
   which nothing else has yet: it is the turn's last, and begun first. */
GPSTI_PRIVATE bool gpsti_carry_ask(gpsti_carry* self, int64_t now_ns) {
    gpst_pipeline* const pipeline = self->pipeline;
    gpsti_given* const given = &self->bunch.given[self->bunch.n];
    if (pipeline->source_dry || gpsti_a32_load(&pipeline->cancel) != 0 || gpsti_a32_load(&pipeline->stop) != 0)
        return false;
    given->index = pipeline->source_index;
    given->start_ns = now_ns;
    gpsti_call_source_for(pipeline, given);
    if (given->result == GPST_END)
        return false;
    pipeline->source_index++;
    self->loaded = !gpsti_bunch_keep(&self->bunch);
    if (self->loaded)
        gpsti_carry_load(self, given);
    return true;
}

/* Of what is left by now: what others have taken is counted when they return. */
GPSTI_PRIVATE uint64_t gpsti_carry_share_now(const gpsti_carry* self) {
    const uint64_t expected = self->pipeline->desc.n_items_expected, begun = self->pipeline->source_index;
    const uint64_t share = gpsti_carry_share(expected > begun ? expected - begun : 0, self->n_active);
    return share > 1 ? share : 1;
}

/* A turn at the source, for at most n_items. False: it is dry. It is called by one worker at a time, who need not have
   the lock for that; several calls a turn, so that brief items are not begun one after the other. */
GPSTI_PRIVATE bool gpsti_carry_take(gpsti_carry* self, uint32_t n_items) {
    gpst_pipeline* const pipeline = self->pipeline;
    bool more = true;
    gpsti_bunch_empty(&self->bunch);
    self->loaded = false;
    gpsti_mutex_lock(&pipeline->source_mutex);
    self->share = gpsti_carry_share_now(self);
    const uint64_t n = n_items < self->share ? n_items : self->share;
    const int64_t cpu_start_ns = self->wants_source_cpu ? gpsti_thread_cpu_ns() : 0;
    const int64_t start_ns = gpsti_now_ns();
    int64_t now_ns = start_ns;
    while (more && !self->loaded && self->bunch.n < n && now_ns - start_ns < GPSTI_CARRY_SOURCE_NS) {
        more = gpsti_carry_ask(self, now_ns);
        now_ns = gpsti_now_ns();
    }
    pipeline->source_dry = !more;
    gpsti_mutex_unlock(&pipeline->source_mutex);
    self->source_ns += now_ns - start_ns;
    self->source_cpu_ns += self->wants_source_cpu ? gpsti_thread_cpu_ns() - cpu_start_ns : 0;
    self->now_ns = now_ns;
    return more;
}

GPSTI_PRIVATE void gpsti_carry_to_end(gpsti_carry* self) {
    gpsti_slot* const slot = self->slots[0];
    const uint32_t i = self->n_items++;
    gpsti_carry_end* const end = &self->ends[i];
    self->slots[i] = slot;
    gpsti_carry_item(self, i);
    const bool sample_cpu = self->wants_finish_cpu;
    const int64_t cpu_start_ns = sample_cpu ? gpsti_thread_cpu_ns() : 0;
    const int64_t finish_ns = sample_cpu ? gpsti_now_ns() : self->now_ns;
    gpsti_finish_item(slot, gpsti_finish_who_frees_here(self->pipeline), finish_ns);
    self->now_ns = slot->item.end_ns;
    self->wants_finish_cpu = false;
    end->result = slot->item.result;
    end->start_ns = slot->item.start_ns;
    end->end_ns = slot->item.end_ns;
    end->finish_ns = slot->item.end_ns - finish_ns;
    end->finish_cpu_ns = sample_cpu ? gpsti_thread_cpu_ns() - cpu_start_ns : -1;
    end->commit_start_ns = slot->commit_start_ns;
    end->commit_end_ns = slot->commit_end_ns;
    if (GPST_FAILED(end->result) && self->pipeline->desc.stop_on_error) /* not only when the bunch is counted */
        gpsti_a32_store(&self->pipeline->stop, 1);
}

GPSTI_PRIVATE void gpsti_carry_bunch_to_end(gpsti_carry* self) {
    if (self->loaded)
        gpsti_carry_to_end(self);
    for (uint32_t b = 0; b < self->bunch.n; b++) {
        gpsti_carry_load(self, &self->bunch.given[b]);
        gpsti_carry_to_end(self);
    }
}

/* ---- with it ----------------------------------------------------------------------------------- */

GPSTI_PRIVATE void gpsti_carry_prepare(gpsti_carry* self, gpst_pipeline* pipeline, uint32_t worker_index) {
    self->pipeline = pipeline;
    self->worker_index = worker_index;
    gpsti_ledger_open(&self->ledger, pipeline);
    self->source_ns = self->source_cpu_ns = 0;
    self->n_active = pipeline->n_active;
    self->whole = pipeline->whole;
    self->on_cpu = pipeline->device_lost;
    self->n_steps = gpsti_carry_n_steps(pipeline);
    const uint32_t n_served = self->whole ? pipeline->n_steps - 1 : self->n_steps;
    for (uint32_t s = 0; s < n_served; s++)
        self->wants_cpu[s] = gpsti_service_wants_cpu(pipeline, &pipeline->steps[s]);
    self->wants_source_cpu = gpsti_clock_wants_cpu(&pipeline->source_clock);
    self->wants_finish_cpu = gpsti_service_wants_cpu(pipeline, &pipeline->steps[pipeline->n_steps - 1]);
}

GPSTI_PRIVATE void gpsti_carry_take_slots(gpsti_carry* self) {
    self->n_items = gpsti_carry_n_items(self->pipeline);
    for (uint32_t i = 0; i < self->n_items; i++)
        self->slots[i] = gpsti_flow_take_slot(self->pipeline);
}

/* Counts the items that the source gave. */
GPSTI_PRIVATE void gpsti_carry_number(const gpsti_carry* self, bool more) {
    gpst_pipeline* const pipeline = self->pipeline;
    pipeline->source_done = pipeline->source_done || !more;
    pipeline->next_index += self->n_items;
    pipeline->next_ticket += self->n_items;
    gpsti_service_account_source(pipeline, self->n_items, self->source_ns,
                                 self->wants_source_cpu ? self->source_cpu_ns : -1);
}

/* The source is another's. */
GPSTI_PRIVATE void gpsti_carry_leave_source(gpsti_carry* self, uint32_t n_slots, bool more) {
    gpst_pipeline* const pipeline = self->pipeline;
    pipeline->source_running = false;
    for (uint32_t i = 0; i < self->n_items; i++)
        self->slots[i]->ticket = pipeline->next_ticket + i;
    gpsti_carry_number(self, more);
    for (uint32_t i = self->n_items; i < n_slots; i++)
        gpsti_flow_release_slot(self->slots[i]);
}

/* The slot has had several items since: it is each of them again for as long as that is counted. True: the tuner's
   window has it. */
GPSTI_PRIVATE bool gpsti_carry_count(gpsti_carry* self, uint32_t i) {
    gpst_pipeline* const pipeline = self->pipeline;
    gpsti_slot* const slot = self->slots[0];
    const gpsti_carry_end* const end = &self->ends[i];
    slot->item.result = end->result;
    slot->item.start_ns = end->start_ns;
    slot->item.end_ns = end->end_ns;
    slot->commit_start_ns = end->commit_start_ns;
    slot->commit_end_ns = end->commit_end_ns;
    if (end->end_ns > pipeline->end_ns)
        pipeline->end_ns = end->end_ns;
    gpsti_service_account_cpu(pipeline, &pipeline->steps[pipeline->n_steps - 1], end->finish_ns, end->finish_cpu_ns);
    gpsti_finish_count(slot);
    return gpsti_tune_count(slot);
}

/* The next item of this worker, who takes the slot that was put last, finds its memory in the caches of its core. Only
   where memory is plenty: what one slot keeps no other has. */
GPSTI_PRIVATE void gpsti_carry_put_slot(gpsti_slot* slot) {
    const gpst_pipeline* const pipeline = slot->pipeline;
    const uint32_t n_fit =
        gpsti_tuner_n_fit(pipeline->context->info.max_host_bytes, pipeline->tune.item_host_bytes);
    if (n_fit / 2 >= pipeline->n_slots)
        gpsti_flow_put_slot(slot);
    else
        gpsti_flow_release_slot(slot);
}

/* Who has several items and finds the lock taken need not wait for it: false, and it can carry another meanwhile. */
GPSTI_PRIVATE bool gpsti_carry_lock(const gpsti_carry* self, bool more) {
    gpsti_mutex* const mutex = &self->pipeline->context->scheduler->mutex;
    if (more && self->n_items > 1 && self->n_items < GPSTI_BUNCH_ITEMS)
        return gpsti_mutex_try_lock(mutex);
    gpsti_mutex_lock(mutex);
    return true;
}

GPSTI_PRIVATE void gpsti_carry_run_to_end(gpsti_carry* self, gpst_pipeline* pipeline, uint32_t worker_index) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    const uint32_t n_items = gpsti_carry_n_items(pipeline);
    const int64_t work_ns = gpsti_flow_source_work_ns(pipeline);
    gpsti_carry_prepare(self, pipeline, worker_index);
    self->slots[0] = gpsti_flow_take_slot(pipeline);
    if (pipeline->n_carrying++ == 0)
        pipeline->source_index = pipeline->next_index;
    pipeline->executing++;
    gpsti_scheduler_leave(scheduler, work_ns);
    gpsti_mutex_unlock(&scheduler->mutex);
    const int64_t start_ns = gpsti_now_ns();
    bool more = true, locked = false;
    for (self->n_items = 0; !locked;) {
        more = gpsti_carry_take(self, self->n_items < n_items ? n_items - self->n_items : 1);
        gpsti_carry_bunch_to_end(self);
        locked = (!more || self->n_items >= n_items || self->n_items >= self->share) && gpsti_carry_lock(self, more);
    }
    const int64_t spent_ns = gpsti_now_ns() - start_ns;
    gpsti_scheduler_return(scheduler, work_ns);
    pipeline->n_carrying--;
    pipeline->executing--;
    gpsti_carry_number(self, more);
    if (self->n_items > 0)
        gpsti_work_note(&pipeline->source_work_ns, spent_ns / (int64_t)self->n_items);
    bool counted = false;
    for (uint32_t i = 0; i < self->n_items; i++) {
        gpsti_ledger_count(&self->ledger, self->n_notes[i]);
        counted = gpsti_carry_count(self, i);
    }
    if (counted)
        gpsti_tune_look(pipeline);
    gpsti_carry_put_slot(self->slots[0]);
}

GPSTI_PRIVATE void gpsti_carry_run_on(gpsti_carry* self, gpst_pipeline* pipeline, uint32_t worker_index) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    gpsti_carry_prepare(self, pipeline, worker_index);
    gpsti_carry_take_slots(self);
    const uint32_t n_slots = self->n_items;
    const uint64_t index = pipeline->next_index;
    const int64_t work_ns = gpsti_flow_source_work_ns(pipeline);
    pipeline->source_running = true;
    pipeline->executing++;
    gpsti_scheduler_leave(scheduler, work_ns);
    gpsti_mutex_unlock(&scheduler->mutex);
    const int64_t start_ns = gpsti_now_ns();
    const bool more = gpsti_carry_call_source(self, index);
    const bool serves = self->whole || self->n_steps > 0;
    if (serves) { /* meanwhile the source is another's */
        gpsti_mutex_lock(&scheduler->mutex);
        gpsti_carry_leave_source(self, n_slots, more);
        gpsti_scheduler_wake(scheduler);
        gpsti_mutex_unlock(&scheduler->mutex);
    }
    self->now_ns = gpsti_now_ns();
    for (uint32_t i = 0; i < self->n_items; i++)
        gpsti_carry_item(self, i);
    const int64_t spent_ns = gpsti_now_ns() - start_ns;
    gpsti_mutex_lock(&scheduler->mutex);
    gpsti_scheduler_return(scheduler, work_ns);
    pipeline->executing--;
    if (!serves)
        gpsti_carry_leave_source(self, n_slots, more);
    if (self->n_items > 0)
        gpsti_work_note(&pipeline->source_work_ns, spent_ns / (int64_t)self->n_items);
    for (uint32_t i = 0; i < self->n_items; i++) {
        gpsti_ledger_count(&self->ledger, self->n_notes[i]);
        gpsti_flow_continue(self->slots[i], self->whole ? pipeline->n_steps - 1 : self->n_served[i]);
    }
}

GPSTI_PRIVATE void gpsti_carry_run_with(gpsti_carry* self, gpst_pipeline* pipeline, uint32_t worker_index) {
    if (gpsti_carry_ends(pipeline))
        gpsti_carry_run_to_end(self, pipeline, worker_index);
    else
        gpsti_carry_run_on(self, pipeline, worker_index);
}

/* Workers have stacks of a size that is known. */
GPSTI_PRIVATE GPSTI_NOINLINE void gpsti_carry_run_as_worker(gpst_pipeline* pipeline, uint32_t worker_index) {
    gpsti_carry self;
    gpsti_carry_run_with(&self, pipeline, worker_index);
}

GPSTI_INTERN void gpsti_carry_run(gpst_pipeline* pipeline, uint32_t worker_index) {
    if (pipeline->joined && worker_index >= pipeline->context->scheduler->n_workers)
        gpsti_carry_run_with(pipeline->joined, pipeline, worker_index);
    else
        gpsti_carry_run_as_worker(pipeline, worker_index);
}

/* ---- who waits for the end ----------------------------------------------------------------------- */

/* What it has in hand is not on its stack, which may be small. */
GPSTI_INTERN gpst_result gpsti_carry_open(gpst_pipeline* pipeline) {
    const bool may_join = pipeline->desc.source && !pipeline->desc.sink && !pipeline->context->pin.on;
    if (may_join && !pipeline->joined)
        pipeline->joined = (gpsti_carry*)gpsti_alloc(&pipeline->context->host, sizeof *pipeline->joined);
    return may_join && !pipeline->joined ? GPST_ERROR_MEMORY : GPST_OK;
}

GPSTI_INTERN void gpsti_carry_close(gpst_pipeline* pipeline) {
    if (pipeline->joined)
        gpsti_free(&pipeline->context->host, pipeline->joined, sizeof *pipeline->joined);
}

GPSTI_INTERN bool gpsti_carry_is_shared(const gpst_pipeline* pipeline) {
    return gpsti_carry_ends(pipeline) && !pipeline->context->pin.on;
}

GPSTI_INTERN bool gpsti_carry_join(gpst_pipeline* pipeline) {
    gpsti_scheduler* const scheduler = pipeline->context->scheduler;
    bool ran = false;
    if (!gpsti_carry_is_shared(pipeline) || gpsti_scheduler_worker_index(scheduler) < scheduler->n_workers)
        return false;
    gpsti_scheduler_enter(scheduler);
    while (gpsti_carry_is_shared(pipeline) && gpsti_flow_run_one(&pipeline->client, scheduler->n_workers))
        ran = true;
    gpsti_scheduler_exit(scheduler);
    return ran;
}
