/* core/pipeline/plain.c -- the plain loops: one item after the other on the caller's
   thread. What the engine must never be slower than, so nothing here waits or shares. */
#include "../base/platform_internal.h"

#include "../files/io_internal.h"
#include "plain_internal.h"
#include "../files/reader_internal.h"

#include <string.h>

#define GPSTI_PLAIN_LONG_NS 1000000 /* item 0 is not left before its end for less */
#define GPSTI_PLAIN_MANY_ITEMS 128 /* of a run in which some whole items are nothing: they are waited for */
#define GPSTI_PLAIN_PART 64        /* of the run */
#define GPSTI_PLAIN_MOST_ITEMS 16  /* at most */
#define GPSTI_PLAIN_SURE_NS 200000 /* items that took so long together can tell, too */
#define GPSTI_PLAIN_INSIDE_LOSS 32 /* of a kernel's time on every core, about so small a part is lost */

GPSTI_PRIVATE void gpsti_plain_count(gpsti_plain* self, const gpsti_note* note) {
    if (self->ledger) {
        gpsti_ledger_keep(self->ledger, note);
        return;
    }
    gpsti_plain_lock(self);
    gpsti_note_count(self->pipeline, note);
    gpsti_plain_unlock(self);
}

GPSTI_PRIVATE gpst_result gpsti_plain_read(gpsti_plain* self, gpsti_note* note, char* reason) {
    gpst_pipeline* const pipeline = self->pipeline;
    gpsti_slot* const slot = self->slot;
    gpsti_flow_prepare_read(slot);
    gpsti_reader_read_plain(&slot->read, &pipeline->cancel);
    slot->read.end_ns = gpsti_io_wait_disk(pipeline->context, false, slot->read.bytes, slot->read.start_ns);
    slot->item.file_data = slot->file.data;
    slot->item.file_bytes = slot->read.bytes;
    gpsti_copy_text(reason, GPST_REASON_BYTES, slot->read.reason);
    gpsti_note_file(note, slot->read.start_ns, slot->read.end_ns, slot->read.bytes);
    return slot->read.result;
}

/* A file that is not the last of its service. */
GPSTI_PRIVATE void gpsti_plain_count_file(gpsti_plain* self, const gpsti_note* service) {
    gpsti_note note = *service;
    note.start_ns = note.end_ns = note.setup_ns = 0;
    note.cpu_ns = -1;
    gpsti_plain_count(self, &note);
}

/* Several files are as many notes; the last one's is the service's. */
GPSTI_PRIVATE gpst_result gpsti_plain_write(gpsti_plain* self, gpsti_note* note, uint32_t output, char* reason) {
    const gpsti_output* const out = &self->slot->out[output];
    gpst_result result = GPST_OK;
    gpsti_emit* emit = out->emits;
    for (uint32_t e = 0; e < out->n_emits && !GPST_FAILED(result); e++, emit = emit->next) {
        gpsti_write* const write = &emit->write;
        if (e > 0)
            gpsti_plain_count_file(self, note);
        write->asks_where = self->is_first && e == 0;
        gpsti_writer_write_now(NULL, write);
        if (write->in_memory)
            gpsti_a32_store(&self->pipeline->tune.files_in_memory, 1);
        write->end_ns = gpsti_io_wait_disk(self->pipeline->context, true, write->bytes, write->start_ns);
        gpsti_copy_text(reason, GPST_REASON_BYTES, write->reason);
        gpsti_note_file(note, write->start_ns, write->end_ns, write->bytes);
        result = write->result;
    }
    return result;
}

GPSTI_INTERN int64_t gpsti_plain_setup_ns(const gpst_pipeline* pipeline) {
    (void)pipeline;
    return GPSTI_STUB_GROWTH_NS;
}

GPSTI_INTERN int64_t gpsti_plain_time_ns(const gpst_pipeline* pipeline) {
    return gpsti_now_ns() - pipeline->start_ns - gpsti_plain_setup_ns(pipeline);
}

/* Of that the work, without what every core worked on: others could not do that faster. */
GPSTI_INTERN int64_t gpsti_plain_work_ns(const gpsti_plain* self) {
    const int64_t inside_ns = self->inside_ns - self->inside_ns / GPSTI_PLAIN_INSIDE_LOSS;
    return gpsti_plain_time_ns(self->pipeline) - inside_ns;
}

/* An item's time between item 0 and the one at hand; item 0's where there is none. */
GPSTI_INTERN double gpsti_plain_between_ns(const gpsti_plain* self) {
    const uint64_t n_items = self->pipeline->next_index - 2;
    return n_items == 0 ? (double)self->first_end_ns
                        : (double)(gpsti_plain_time_ns(self->pipeline) - self->first_end_ns) / (double)n_items;
}

GPSTI_INTERN uint64_t gpsti_plain_left(const gpst_pipeline* pipeline) {
    const bool is_known = pipeline->desc.n_items_expected > 0; /* else as many again */
    const uint64_t n_left = is_known ? gpsti_flow_n_left(pipeline) : pipeline->next_index;
    return n_left < 1000000 ? n_left : 1000000;
}

GPSTI_PRIVATE bool gpsti_plain_falls_back(gpsti_plain* self, gpst_result result, const char* reason) {
    gpsti_plain_lock(self);
    const bool falls_back = gpsti_offload_fall_back(self->slot, result, reason);
    gpsti_plain_unlock(self);
    return falls_back;
}

GPSTI_PRIVATE gpst_result gpsti_plain_offload(gpsti_plain* self, gpsti_note* note, char* reason) {
    const gpsti_step* const step = note->step;
    const uint64_t n_pixels = gpsti_wide_pixels(self->pipeline, step);
    const bool is_wide = gpsti_wide_takes(self, n_pixels);
    bool finished = false;
    self->slot->exec = self->exec;
    if (self->is_first && n_pixels > 0 && !is_wide && self->exec.n_threads <= 1 && self->pipeline->device_on_host)
        gpsti_early_note_alone(self->pipeline); /* a stage of the user's may have threads of its own */
    gpst_result result = is_wide ? gpsti_wide_run(self, step, n_pixels, reason)
                                 : gpsti_offload_run(self->slot, step, self->worker_index, &finished, reason);
    if (GPST_FAILED(result) && gpsti_plain_falls_back(self, result, reason))
        result = gpsti_offload_run(self->slot, step, self->worker_index, &finished, reason);
    if (!GPST_FAILED(result))
        gpsti_offload_note(self->slot, &note->way);
    note->n_threads = self->slot->exec.n_threads;
    self->slot->lane = NULL;
    return result;
}

GPSTI_PRIVATE gpst_result gpsti_plain_serve(gpsti_plain* self, gpsti_note* note, uint32_t output, char* reason) {
    switch (note->step->kind) {
    case GPSTI_STEP_READ:
        return gpsti_plain_read(self, note, reason);
    case GPSTI_STEP_HOST:
        return gpsti_call_stage(self->slot, note->step->first_stage, output, self->worker_index, reason);
    case GPSTI_STEP_OFFLOAD:
        return gpsti_plain_offload(self, note, reason);
    case GPSTI_STEP_WRITE:
        return gpsti_plain_write(self, note, output, reason);
    case GPSTI_STEP_FINISH:
        break;
    }
    return GPST_OK;
}

GPSTI_PRIVATE bool gpsti_plain_wants_cpu(const gpsti_plain* self, const gpsti_step* step) {
    if (self->wants_cpu)
        return self->wants_cpu[step - self->pipeline->steps];
    if (!self->is_first)
        return gpsti_service_wants_cpu(self->pipeline, step);
    gpsti_plain_lock(self); /* others may count already */
    const bool wants = gpsti_service_wants_cpu(self->pipeline, step);
    gpsti_plain_unlock(self);
    return wants;
}

/* One service with its CPU time: what this thread used, times the threads that a kernel spread over. */
GPSTI_PRIVATE gpst_result gpsti_plain_sample(gpsti_plain* self, const gpsti_step* step, uint32_t output,
                                             char* reason) {
    gpsti_note note;
    gpsti_note_begin(&note, step, gpsti_plain_wants_cpu(self, step), self->now_ns);
    self->now_ns = gpsti_note_end(&note, gpsti_plain_serve(self, &note, output, reason));
    self->inside_ns += note.n_threads > 1 ? note.end_ns - note.start_ns : 0;
    gpsti_plain_count(self, &note);
    return note.result;
}

GPSTI_PRIVATE void gpsti_plain_step(gpsti_plain* self, const gpsti_step* step, uint32_t output) {
    const char* const name = self->pipeline->stages[step->first_stage].name;
    char reason[GPST_REASON_BYTES];
    reason[0] = '\0'; /* and not all of it */
    if (gpsti_a32_load(&self->pipeline->cancel) != 0)
        gpsti_slot_fail(self->slot, GPST_ERROR_CANCELLED, name, "cancelled");
    if (GPST_FAILED(self->slot->item.result))
        return;
    const gpst_result result = gpsti_plain_sample(self, step, output, reason);
    if (GPST_FAILED(result))
        gpsti_slot_fail(self->slot, result, name, reason);
}

/* Mean work of an item. What all begins with (pages, caches, clocks of the processor) is in item 0, so it counts only
   while there is no other. The one at hand counts with what it has cost by now, or where that is little not at all. */
GPSTI_PRIVATE int64_t gpsti_plain_mean_ns(const gpsti_plain* self) {
    const int64_t n_items = (int64_t)self->pipeline->next_index;
    if (self->wide_ns > 0)
        return self->wide_ns;
    const int64_t work_ns = gpsti_plain_work_ns(self);
    const int64_t mean_ns = n_items > 1 ? (work_ns - self->first_ns) / (n_items - 1) : work_ns;
    const int64_t whole_ns = n_items > 2 ? (self->whole_ns - self->first_ns) / (n_items - 2) : 0;
    return mean_ns > whole_ns ? mean_ns : whole_ns;
}

/* What an item took so far, on one thread, for those who set the engine up. Item 0 and the one at hand only where
   there is no other. */
GPSTI_PRIVATE void gpsti_plain_tell(const gpsti_plain* self) {
    gpsti_tune* const tune = &self->pipeline->tune;
    const int64_t n_items = (int64_t)self->pipeline->next_index;
    tune->item_ns = self->alone_ns > 0 ? self->alone_ns : gpsti_plain_mean_ns(self);
    if (self->inside_ns > 0 && n_items >= 3)
        tune->inside_ns = self->wide_ns > 0 ? (double)self->wide_ns : gpsti_plain_between_ns(self);
    tune->alone_more_ns = gpsti_inside_alone_more_ns(&self->inside, tune->tuner.most.value[GPST_KNOB_INSIDE]);
    if (n_items < 3 || self->alone_ns > 0)
        return;
    tune->item_ns = (self->whole_ns - self->first_ns) / (n_items - 2);
    tune->serial_ns = self->inside_ns == 0 ? (double)tune->item_ns : 0.0;
}

GPSTI_INTERN bool gpsti_plain_gains(int64_t gain_ns, int64_t open_ns, int64_t memory_ns) {
    return gain_ns >= open_ns + memory_ns / 2;
}

/* An engine gains at most what an item takes now beyond what the busiest resource needs for it. */
GPSTI_PRIVATE bool gpsti_plain_would_gain(const gpsti_plain* self, int64_t mean_ns, int64_t memory_ns,
                                          uint64_t n_left) {
    bool whole = false;
    const int64_t period_ns = gpsti_tune_period_ns(self->pipeline, &whole);
    return gpsti_plain_gains((mean_ns - period_ns) * (int64_t)n_left, gpsti_tune_open_ns(self->pipeline, whole),
                             memory_ns);
}

/* In a long run the first items, which find caches and memory cold, need not tell alone what the others take. */
GPSTI_PRIVATE uint64_t gpsti_plain_least_items(uint64_t n_left) {
    const uint64_t n = 3 + n_left / GPSTI_PLAIN_PART;
    if (n_left < GPSTI_PLAIN_MANY_ITEMS)
        return 0;
    return n < GPSTI_PLAIN_MOST_ITEMS ? n : GPSTI_PLAIN_MOST_ITEMS;
}

/* Is what is left of the run, were it all like the items so far, worth handing over? Outputs that are still to be
   encoded are work for others, too. More items at once need more slots, and what the first one took to make is known:
   that has to come back. Item 0 is left before its end only if it is long: before that, nothing is known of gains, and
   before its first step, when only the source has taken time, nothing of what memory costs; nor for one other, which
   would have only what is left of item 0 to gain. Asked again after some items: each time the answer is better known
   and less depends on it. */
GPSTI_PRIVATE bool gpsti_plain_hands_over(const gpsti_plain* self, uint32_t s) {
    const gpst_pipeline* const pipeline = self->pipeline;
    if (self->worth_ns == 0) /* on a worker others count meanwhile */
        return false;
    const uint64_t n_left = gpsti_plain_left(pipeline);
    if (n_left > 0 && pipeline->next_index < self->asks_at)
        return false;
    const bool wide = pipeline->n_outputs > 1 && pipeline->steps[s].per_output;
    const int64_t mean_ns = gpsti_plain_mean_ns(self);
    if (n_left == 0)
        return wide && mean_ns >= self->worth_ns;
    const int64_t memory_ns = gpsti_tune_memory_ns(pipeline);
    if (mean_ns * (int64_t)(n_left + wide) < gpsti_tune_open_ns(pipeline, true) + memory_ns)
        return false;
    if (pipeline->next_index < gpsti_plain_least_items(n_left) &&
        mean_ns * (int64_t)pipeline->next_index < GPSTI_PLAIN_SURE_NS)
        return false;
    if (pipeline->next_index == 1)
        return n_left + wide > 1 && s > 0 && mean_ns >= GPSTI_PLAIN_LONG_NS &&
               !gpsti_tuner_is_dear(GPSTI_STUB_PRICE_NS, mean_ns);
    return gpsti_plain_would_gain(self, mean_ns, memory_ns, n_left);
}

/* As many again; of a run of unknown length, whose rest is thought to grow with it, a quarter. */
GPSTI_PRIVATE uint64_t gpsti_plain_next_ask(const gpst_pipeline* pipeline) {
    const uint64_t n = pipeline->next_index;
    return pipeline->desc.n_items_expected > 0 ? 2 * n : n + n / 4 + 1;
}

/* Before this step? The workers may have begun while item 0 was in the one before. */
GPSTI_PRIVATE bool gpsti_plain_leaves(const gpsti_plain* self, uint32_t s) {
    gpsti_step* const step = &self->pipeline->steps[s];
    if (!self->is_first)
        return step->kind != GPSTI_STEP_FINISH && gpsti_plain_hands_over(self, s);
    gpsti_plain_lock(self);
    gpsti_early_weigh(self->pipeline, step);
    const bool leaves = gpsti_early_has_begun(self->pipeline) ||
                        (step->kind != GPSTI_STEP_FINISH && gpsti_plain_hands_over(self, s));
    if (!leaves)
        gpsti_early_enter(self->pipeline, step);
    gpsti_plain_unlock(self);
    return leaves;
}

/* Steps in order; steps that are per output run output by output, while its bytes are in the cache. Gives the step
   before which the item is left, or FINISH. */
GPSTI_PRIVATE uint32_t gpsti_plain_steps(gpsti_plain* self, uint32_t from) {
    const gpst_pipeline* const pipeline = self->pipeline;
    uint32_t s = from;
    self->slot->plain = true;
    while (!(self->leaves = gpsti_plain_leaves(self, s)) && pipeline->steps[s].kind != GPSTI_STEP_FINISH) {
        uint32_t end = s + 1;
        while (pipeline->steps[s].per_output && pipeline->steps[end].per_output)
            end++;
        const uint32_t n_outputs = pipeline->steps[s].per_output ? pipeline->n_outputs : 1;
        for (uint32_t o = 0; o < n_outputs; o++)
            for (uint32_t i = s; i < end; i++)
                gpsti_plain_step(self, &pipeline->steps[i], o);
        s = end;
    }
    self->slot->plain = !self->leaves;
    return s;
}

/* To its end, or to the step before which it is left. */
GPSTI_PRIVATE uint32_t gpsti_plain_item(gpsti_plain* self, uint32_t from) {
    const gpst_pipeline* const pipeline = self->pipeline;
    if (self->worth_ns > 0 && pipeline->next_index >= self->asks_at)
        self->whole_ns = gpsti_plain_work_ns(self);
    self->is_first = self->worth_ns > 0 && pipeline->next_index == 1;
    if (self->worth_ns > 0)
        gpsti_wide_sound(self);
    const int64_t begin_ns = self->wide_ns > 0 && self->alone_ns == 0 ? gpsti_plain_time_ns(self->pipeline) : 0;
    const uint32_t s = gpsti_plain_steps(self, from);
    if (self->leaves)
        return s;
    gpsti_finish_item(self->slot, NULL, self->now_ns);
    self->now_ns = pipeline->desc.sink ? gpsti_now_ns() : self->slot->item.end_ns;
    if (begin_ns > 0)
        gpsti_wide_sounded(self, gpsti_plain_time_ns(self->pipeline) - begin_ns);
    if (self->is_first) {
        self->first_ns = gpsti_plain_work_ns(self);
        self->first_end_ns = gpsti_plain_time_ns(self->pipeline);
        gpsti_plain_lock(self);
        gpsti_tune_leave_out(self->pipeline);
        gpsti_plain_unlock(self);
    }
    if (pipeline->next_index >= self->asks_at)
        self->asks_at = gpsti_plain_next_ask(pipeline);
    return s;
}

/* True: a new item is in the slot, and the lock is held. */
GPSTI_PRIVATE bool gpsti_plain_next(gpsti_plain* self) {
    gpst_pipeline* const pipeline = self->pipeline;
    if (gpsti_a32_load(&pipeline->cancel) != 0 || gpsti_a32_load(&pipeline->stop) != 0)
        return false;
    const int64_t cpu_start_ns = self->wants_source_cpu ? gpsti_thread_cpu_ns() : 0;
    const int64_t start_ns = self->now_ns; /* which the item before ended at */
    gpsti_slot_reset(self->slot, pipeline->next_index, start_ns);
    self->slot->on_cpu = pipeline->device_lost;
    if (gpsti_call_source(pipeline, self->slot) == GPST_END)
        return false;
    self->now_ns = gpsti_now_ns();
    const int64_t busy_ns = self->now_ns - start_ns;
    const int64_t cpu_ns = self->wants_source_cpu ? gpsti_thread_cpu_ns() - cpu_start_ns : -1;
    if (self->worth_ns > 0)
        gpsti_tune_note_source(pipeline, busy_ns);
    gpsti_plain_lock(self);
    gpsti_service_account_source(pipeline, 1, busy_ns, cpu_ns);
    pipeline->next_index++;
    return true;
}

GPSTI_PRIVATE gpsti_plain gpsti_plain_of(gpst_pipeline* pipeline, const gpsti_exec* exec, bool within,
                                         int64_t worth_ns, int64_t now_ns) {
    gpsti_plain self;
    memset(&self, 0, sizeof self);
    self.pipeline = pipeline;
    self.exec = *exec;
    self.worker_index = pipeline->context->scheduler->n_workers;
    self.within = within;
    self.worth_ns = worth_ns;
    self.now_ns = now_ns;
    return self;
}

GPSTI_INTERN gpst_result gpsti_plain_run(gpst_pipeline* pipeline) {
    gpsti_plain self = gpsti_plain_of(pipeline, &pipeline->exec, false, 0, gpsti_now_ns());
    self.slot = pipeline->slots[0];
    pipeline->n_slots_used = 1;
    const int64_t cpu_start_ns = gpsti_thread_cpu_ns();
    while (gpsti_plain_next(&self)) {
        (void)gpsti_plain_item(&self, 0);
        gpsti_finish_count(self.slot);
    }
    pipeline->source_done = true;
    pipeline->end_ns = gpsti_now_ns();
    pipeline->plain_cpu_ns = gpsti_thread_cpu_ns() - cpu_start_ns;
    return GPST_OK;
}

/* ---- plain items within an engine -------------------------------------------------------------- */

/* Its turn in these steps, where they are ordered, is over. Locked. */
GPSTI_PRIVATE void gpsti_plain_pass(gpst_pipeline* pipeline, uint32_t from, uint32_t to) {
    for (uint32_t s = from; s < to; s++)
        pipeline->steps[s].next_ticket += pipeline->steps[s].ordered ? 1 : 0;
}

/* A new item, or the one that was left. The slot stays the same: nothing is given back between items. False: the source
   is dry. Locked, but not while the source is called. */
GPSTI_PRIVATE bool gpsti_plain_begin(gpsti_plain* self) {
    gpst_pipeline* const pipeline = self->pipeline;
    if (pipeline->left) {
        self->slot = pipeline->left;
        pipeline->left = NULL;
        return true;
    }
    pipeline->left_step = 0;
    if (!self->slot)
        self->slot = gpsti_flow_take_slot(pipeline);
    self->wants_source_cpu = gpsti_clock_wants_cpu(&pipeline->source_clock);
    gpsti_plain_unlock(self);
    if (!gpsti_plain_next(self)) {
        gpsti_plain_lock(self);
        return false;
    }
    self->slot->ticket = pipeline->next_ticket++;
    return true;
}

/* To the engine, or to who opens it. Locked. */
GPSTI_PRIVATE void gpsti_plain_leave(gpsti_plain* self, uint32_t step) {
    gpst_pipeline* const pipeline = self->pipeline;
    gpsti_early_uncount(pipeline);
    if (pipeline->attached) {
        gpsti_flow_continue(self->slot, step);
        gpsti_scheduler_wake(pipeline->context->scheduler);
    } else {
        pipeline->left = self->slot;
        pipeline->left_step = step;
    }
    self->slot = NULL;
}

/* An item to its end, or to where it is left. Locked, but not while callbacks run. */
GPSTI_PRIVATE bool gpsti_plain_one(gpsti_plain* self) {
    gpst_pipeline* const pipeline = self->pipeline;
    if (!gpsti_plain_begin(self))
        return false;
    const uint32_t from = pipeline->left_step;
    gpsti_plain_unlock(self);
    const uint32_t step = gpsti_plain_item(self, from);
    gpsti_plain_lock(self);
    gpsti_plain_pass(pipeline, from, self->leaves ? step : step + 1);
    if (self->leaves) {
        gpsti_plain_leave(self, step);
        return true;
    }
    pipeline->end_ns = gpsti_now_ns();
    gpsti_finish_count(self->slot);
    gpsti_tune_note_item(self->slot);
    return true;
}

GPSTI_INTERN bool gpsti_plain_within(gpst_pipeline* pipeline, uint64_t n_items, int64_t worth_ns) {
    gpsti_plain self = gpsti_plain_of(pipeline, &pipeline->exec, true, worth_ns, 0);
    bool more = true;
    if (worth_ns > 0)
        gpsti_wide_look_around(&self);
    gpsti_plain_lock(&self);
    self.now_ns = gpsti_now_ns();
    for (uint64_t n = 0; n < n_items && more; n++) {
        more = gpsti_plain_one(&self);
        if (self.leaves)
            break;
    }
    if (self.slot)
        gpsti_flow_release_slot(self.slot);
    if (worth_ns > 0 && pipeline->next_index > 0 && !gpsti_early_has_begun(pipeline))
        gpsti_plain_tell(&self);
    if (!more)
        pipeline->source_done = true;
    gpsti_plain_unlock(&self);
    return more;
}

GPSTI_INTERN int64_t gpsti_plain_bring(gpsti_slot* slot, uint32_t worker_index, uint32_t from, const bool* wants_cpu,
                                       gpsti_ledger* ledger, int64_t now_ns) {
    gpsti_plain self = gpsti_plain_of(slot->pipeline, &slot->exec, true, 0, now_ns);
    self.slot = slot;
    self.ledger = ledger;
    self.worker_index = worker_index;
    self.wants_cpu = wants_cpu;
    (void)gpsti_plain_steps(&self, from);
    return self.now_ns;
}
