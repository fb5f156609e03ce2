/* tests/pipeline_books.h -- pipelines whose items nobody is told of at their end: each has books of its own, kept by its
   source and its stages. */
#ifndef GPST_PIPELINE_BOOKS_H
#define GPST_PIPELINE_BOOKS_H

#include "pipeline_tuned.h"

enum { N_BRIEF = 4000 }; /* items, the most that books have room for */

/* ---- one pipeline's books, where no sink keeps them ------------------------------------------- */

typedef struct books {
    kit* owner;
    gpst_pipeline* pipeline;
    uint64_t n_items;                 /* that the source has */
    gpsti_a32 in_source, in_sink;
    uint64_t next, n_sinks;           /* the source's and the sink's */
    bool over;
    int64_t work_ns, late_ns;         /* of an item; and from item late_from on */
    uint64_t late_from;
    uint64_t fail_from, act_at;       /* 0 = none */
    void (*act)(gpst_pipeline* pipeline);
    gpsti_a64 n_works, n_asked;       /* of the stage; of the source */
    uint64_t n_asked_then;            /* when the act was over */
    gpsti_a32 n_inits[8], n_terms;    /* of workers */
    gpsti_a32 n_at_work;
    uint32_t most_at_work;
    uint8_t seen[N_BRIEF];
} books;

static books books_of[2];

static inline books* books_open(kit* owner, uint32_t i, uint64_t n_items) {
    books* const self = &books_of[i];
    memset(self, 0, sizeof *self);
    self->owner = owner;
    self->n_items = n_items;
    self->work_ns = 20000;
    return self;
}

/* Every index once, in order, by one thread at a time, and not again after the end. */
static inline gpst_result books_source(void* user_data, uint64_t index, gpst_input* out) {
    books* const self = (books*)user_data;
    kit_check(self->owner, gpsti_a32_add(&self->in_source, 1) == 0);
    kit_check(self->owner, index == self->next && !self->over);
    self->next++;
    (void)gpsti_a64_add(&self->n_asked, 1);
    self->over = index >= self->n_items;
    out->user_data = self;
    (void)gpsti_a32_add(&self->in_source, UINT32_MAX);
    return index < self->n_items ? GPST_OK : GPST_END;
}

/* Computes for a while; waits where that is long, so that a machine with two cores is one with many. */
static inline void books_take_time(const books* self, uint64_t index) {
    const int64_t work_ns = self->late_ns > 0 && index >= self->late_from ? self->late_ns : self->work_ns;
    const int64_t end_ns = gpsti_now_ns() + work_ns;
    if (work_ns >= 100000)
        gpsti_sleep_ns(work_ns);
    while (gpsti_now_ns() < end_ns)
        continue;
}

static inline gpst_result books_work(void* user_data, gpst_task* task) {
    books* const self = (books*)user_data;
    const uint64_t index = task->item->index;
    kit_check(self->owner, index < N_BRIEF);
    books_take_time(self, index);
    self->seen[index]++;
    (void)gpsti_a64_add(&self->n_works, 1);
    if (self->act_at != 0 && index == self->act_at) {
        self->act(task->pipeline);
        self->n_asked_then = gpsti_a64_load(&self->n_asked);
    }
    return self->fail_from != 0 && index >= self->fail_from
               ? gpst_task_fail(task, GPST_ERROR_FORMAT, "item %u is bad", (unsigned)index)
               : GPST_OK;
}

/* Items are thought to be brief when the next are taken, whatever they took, so that a worker takes many. */
static inline void take_bunches(gpst_pipeline* pipeline) {
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    pipeline->source_work_ns = -100000000;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
}

static inline gpst_result books_work_in_bunches(void* user_data, gpst_task* task) {
    take_bunches(task->pipeline);
    return books_work(user_data, task);
}

static inline gpst_result books_sink(void* user_data, const gpst_item* item) {
    books* const self = (books*)user_data;
    kit_check(self->owner, gpsti_a32_add(&self->in_sink, 1) == 0);
    kit_check(self->owner, item->index == self->n_sinks);
    self->n_sinks++;
    (void)gpsti_a32_add(&self->in_sink, UINT32_MAX);
    return GPST_OK;
}

/* One HOST stage, and nobody who is told of its items. */
static inline gpst_pipeline_desc books_desc(books* self, gpst_stage_desc* stage) {
    gpst_pipeline_desc desc = GPST_ZERO;
    *stage = kit_stage(self->owner, GPST_STAGE_HOST, books_work, "work");
    stage->user_data = self;
    desc.stages = stage;
    desc.n_stages = 1;
    desc.source = books_source;
    desc.source_user_data = self;
    desc.n_items_expected = self->n_items;
    return desc;
}

static inline gpst_result books_run(books* self, const gpst_pipeline_desc* desc, gpst_stats* stats) {
    assert_int_equal(gpst_pipeline_create(self->owner->context, desc, &self->pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(self->pipeline);
    gpst_pipeline_query_stats(self->pipeline, stats);
    gpst_pipeline_query_tuner(self->pipeline, &report);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    assert_int_equal(stats->items_ok + stats->items_failed + stats->items_cancelled, stats->items_total);
    return result;
}

/* Items 0 .. n - 1 were worked on once each, and no other was. */
static inline void books_check(const books* self, uint64_t n) {
    for (uint64_t i = 0; i < N_BRIEF; i++)
        if (self->seen[i] != (i < n ? 1 : 0))
            fail_msg("item %u was worked on %u times", (unsigned)i, self->seen[i]);
}

static inline bool began_whole(void) {
    return report.n_decisions > 0 && strstr(report.decisions[0].reason, "starts with whole items") != NULL;
}

static inline bool was_whole(void) { return began_whole() && !said("in stages again"); }

/* Each case once. Most begin with whole items; a busy machine's clocks may say otherwise, and then the same holds. */
static inline void run_cases(void (*run)(uint32_t i), uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        run(i);
}

#endif
