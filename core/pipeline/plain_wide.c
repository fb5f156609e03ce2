/* core/pipeline/plain_wide.c -- kernels of a plain loop that may have every core: which, whether that is better than
   one
   thread, and what runs of one item know of it from those before. */
#include "../base/platform_internal.h"

#include "plain_internal.h"

#define GPSTI_WIDE_PIXELS ((uint64_t)1 << 18) /* of a warp that is worth threads inside it */
#define GPSTI_WIDE_PIXEL_NS 4 /* on one thread, about */
#define GPSTI_WIDE_WAKE_NS 4000000 /* until a thread has a core, at worst: the likelier the fewer there are */
#define GPSTI_WIDE_DOUBT 4 /* items left for each core: to leave it to workers where every core was slow once */
#define GPSTI_WIDE_SLICE_NS 8000000 /* so long the system lets another program run before a thread that waits */
#define GPSTI_WIDE_LOOK_NS 20000000 /* threads that were inside a kernel look for more for less than that */
#define GPSTI_WIDE_SOUND 4 /* times what it costs is to be gained by knowing what is lost */

/* That threads inside could share. */
GPSTI_INTERN uint64_t gpsti_wide_pixels(const gpst_pipeline* pipeline, const gpsti_step* step) {
    uint64_t n_pixels = 0;
#if defined(_OPENMP)
    for (uint32_t s = 0; s < step->n_stages; s++) {
        const gpst_warp* const warp = pipeline->stages[step->first_stage + s].desc.warp;
        if (warp)
            n_pixels += (uint64_t)warp->desc.width * warp->desc.height * pipeline->n_outputs;
    }
#else
    (void)pipeline;
    (void)step;
#endif
    return n_pixels;
}

/* What a kernel loses on every core shows beside one that has had one thread. Is that much in what is left of the run,
   were it all like this? */
GPSTI_PRIVATE bool gpsti_wide_may_lose(const gpsti_plain* self, int64_t wide_ns, int64_t alone_ns) {
    const int64_t n_threads = self->pipeline->tune.tuner.most.value[GPST_KNOB_INSIDE];
    const int64_t lost_ns = self->has_company ? GPSTI_WIDE_SLICE_NS
                                              : gpsti_inside_lost_ns(&self->inside, wide_ns, n_threads);
    return lost_ns * (int64_t)gpsti_plain_left(self->pipeline) >= GPSTI_WIDE_SOUND * alone_ns;
}

/* Do others run on cores that kernels would have? A kernel on every core waits for the one thread that has to share.
   (Threads that were inside one just now only look for more.) */
GPSTI_PRIVATE bool gpsti_wide_meets_others(const gpst_pipeline* pipeline) {
    gpst_context* const context = pipeline->context;
    const uint32_t n_threads = pipeline->tune.tuner.most.value[GPST_KNOB_INSIDE];
    if (n_threads <= 1 || gpsti_now_ns() < (int64_t)gpsti_a64_load(&context->inside_end_ns) + GPSTI_WIDE_LOOK_NS)
        return false;
    const uint32_t n_running = gpsti_threads_running_under(context->system_root);
    return n_running > 1 && n_running - 1 + n_threads > context->cores_online;
}

GPSTI_PRIVATE bool gpsti_wide_is_lone(const gpst_pipeline* pipeline) { return pipeline->desc.n_items_expected == 1; }

/* A lone item's kernels are told by those of the runs before: is the next one to have one thread? */
GPSTI_PRIVATE bool gpsti_wide_puts_off(gpsti_plain* self, uint64_t n_pixels) {
    const gpst_context* const context = self->pipeline->context;
    if (!gpsti_wide_is_lone(self->pipeline))
        return false;
    gpsti_plain_lock(self);
    const gpsti_jobs* const jobs = gpsti_jobs_of(context);
    const bool puts_off = jobs->lone_pixels == n_pixels && !gpsti_inside_wants(&jobs->lone);
    gpsti_plain_unlock(self);
    return puts_off;
}

/* When the run begins, before callbacks have threads of their own. */
GPSTI_INTERN void gpsti_wide_look_around(gpsti_plain* self) {
    const gpst_pipeline* const pipeline = self->pipeline;
    bool may_be_wide = false;
    for (uint32_t s = 0; s < pipeline->n_steps && !may_be_wide; s++) {
        const uint64_t n_pixels = gpsti_wide_pixels(pipeline, &pipeline->steps[s]);
        may_be_wide = n_pixels >= GPSTI_WIDE_PIXELS && !gpsti_wide_puts_off(self, n_pixels);
    }
    self->has_company = may_be_wide && gpsti_wide_meets_others(pipeline);
}

/* Who runs for a moment only is gone by the first kernel. */
GPSTI_PRIVATE bool gpsti_wide_has_company(gpsti_plain* self) {
    if (self->has_company && !self->is_company_sure)
        self->has_company = self->is_company_sure = gpsti_wide_meets_others(self->pipeline);
    return self->has_company;
}

/* Before the engine is opened no other item wants the cores: a wide kernel may have them all. In item 0 only where what
   was before it is little and the run too short to lose much, unless there is no other item: threads that have just
   been inside a kernel look for more for a while, and would take the cores from an engine that is opened for the rest.
   Beside other programs it must gain more than it may wait for. */
GPSTI_INTERN bool gpsti_wide_takes(gpsti_plain* self, uint64_t n_pixels) {
    const gpst_pipeline* const pipeline = self->pipeline;
    if (self->worth_ns == 0 || pipeline->tune.tuner.most.value[GPST_KNOB_INSIDE] <= 1 ||
        n_pixels < GPSTI_WIDE_PIXELS)
        return false;
    if (gpsti_wide_puts_off(self, n_pixels))
        return true; /* and is noted as one of them */
    const int64_t alone_ns = (int64_t)n_pixels * GPSTI_WIDE_PIXEL_NS;
    const int64_t n_threads = pipeline->tune.tuner.most.value[GPST_KNOB_INSIDE];
    if (gpsti_wide_has_company(self) && alone_ns - alone_ns / n_threads < GPSTI_WIDE_SLICE_NS)
        return false;
    return gpsti_wide_is_lone(pipeline) || pipeline->next_index > 1 ||
           (gpsti_plain_work_ns(self) < alone_ns / 4 && !gpsti_wide_may_lose(self, alone_ns / n_threads, alone_ns));
}

/* A kernel must be worth waking threads for: on two cores that can take the 4 ms until the system moves one, on more it
   rarely does. Where it seems not to be, that is tried after some on one thread. */
GPSTI_PRIVATE void gpsti_wide_expect_lone(const gpsti_plain* self, int64_t alone_ns, gpsti_inside* out) {
    const int64_t n_others = (int64_t)self->pipeline->tune.tuner.most.value[GPST_KNOB_INSIDE] - 1;
    gpsti_inside_init(out, alone_ns);
    if (alone_ns * n_others * n_others < GPSTI_WIDE_WAKE_NS)
        gpsti_inside_put_off(out);
}

GPSTI_PRIVATE void gpsti_wide_recall(gpsti_plain* self, uint64_t n_pixels) {
    gpst_context* const context = self->pipeline->context;
    const int64_t alone_ns = (int64_t)n_pixels * GPSTI_WIDE_PIXEL_NS;
    if (!gpsti_wide_is_lone(self->pipeline)) {
        if (self->inside.alone_ns == 0)
            gpsti_inside_init(&self->inside, alone_ns);
        return;
    }
    gpsti_plain_lock(self);
    if (gpsti_jobs_of(context)->lone_pixels != n_pixels)
        gpsti_wide_expect_lone(self, alone_ns, &gpsti_jobs_of(context)->lone);
    gpsti_jobs_of(context)->lone_pixels = n_pixels;
    self->inside = gpsti_jobs_of(context)->lone;
    gpsti_plain_unlock(self);
}

/* Not for the next lone item where another run has begun with a kernel of another size meanwhile. */
GPSTI_PRIVATE void gpsti_wide_note(gpsti_plain* self, uint64_t n_pixels, int64_t busy_ns) {
    gpst_context* const context = self->pipeline->context;
    gpsti_inside_note(&self->inside, busy_ns);
    if (!gpsti_wide_is_lone(self->pipeline))
        return;
    gpsti_plain_lock(self);
    if (gpsti_jobs_of(context)->lone_pixels == n_pixels)
        gpsti_jobs_of(context)->lone = self->inside;
    gpsti_plain_unlock(self);
}

GPSTI_INTERN gpst_result gpsti_wide_run(gpsti_plain* self, const gpsti_step* step, uint64_t n_pixels, char* reason) {
    const gpst_pipeline* const pipeline = self->pipeline;
    const int64_t setup_ns = gpsti_plain_setup_ns(pipeline), start_ns = gpsti_now_ns();
    bool finished = false;
    gpsti_wide_recall(self, n_pixels);
    const bool doubts = gpsti_inside_doubts(&self->inside);
    if (gpsti_inside_wants(&self->inside))
        self->slot->exec.n_threads = pipeline->tune.tuner.most.value[GPST_KNOB_INSIDE];
    const gpst_result result = gpsti_offload_run(self->slot, step, self->worker_index, &finished, reason);
    const int64_t busy_ns = gpsti_now_ns() - start_ns - (gpsti_plain_setup_ns(pipeline) - setup_ns);
    gpsti_wide_note(self, n_pixels, busy_ns);
    self->inside_ns += doubts ? busy_ns : 0; /* the next one will have every core: no reason for an engine yet */
    return result;
}

/* ---- is one thread better? -------------------------------------------------------------------- */

/* Every core has just been no better than one thread. That may be soon over: only where workers are as fast then, too,
   since enough items are left that the last ones, which leave some of them idle, count little. */
GPSTI_PRIVATE bool gpsti_wide_doubts(const gpsti_plain* self) {
    const uint64_t n_threads = self->pipeline->tune.tuner.most.value[GPST_KNOB_INSIDE];
    return gpsti_inside_doubts(&self->inside) && gpsti_plain_left(self->pipeline) >= GPSTI_WIDE_DOUBT * n_threads;
}

/* Once: where there is a doubt; or, when it is asked what the engine would gain, in a run of little else that was not
   known at item 0 to be so long, or whose kernels are often late. */
GPSTI_PRIVATE bool gpsti_wide_is_to_sound(const gpsti_plain* self) {
    const gpsti_inside* const inside = &self->inside;
    const uint64_t n_items = self->pipeline->next_index;
    if (self->wide_ns > 0 || n_items < 2)
        return false;
    if (gpsti_wide_doubts(self))
        return true;
    return n_items >= 4 && n_items >= self->asks_at && inside->n > 0 &&
           gpsti_plain_work_ns(self) < self->inside_ns / 2 &&
           gpsti_wide_may_lose(self, inside->total_ns / inside->n, inside->alone_ns);
}

/* The next item, on one thread. */
GPSTI_INTERN void gpsti_wide_sound(gpsti_plain* self) {
    gpst_pipeline* const pipeline = self->pipeline;
    if (!gpsti_wide_is_to_sound(self))
        return;
    self->in_doubt = gpsti_wide_doubts(self);
    self->wide_ns = (int64_t)gpsti_plain_between_ns(self);
    self->asks_at = pipeline->next_index + 1;
    gpsti_inside_sound(&self->inside);
    gpsti_plain_lock(self);
    gpsti_tune_leave_out(pipeline); /* so that an item's services are those of this one */
    gpsti_plain_unlock(self);
}

/* A kernel that takes longer than was thought is no reason for doubt. */
GPSTI_INTERN void gpsti_wide_sounded(gpsti_plain* self, int64_t alone_ns) {
    const bool unfounded = self->in_doubt && alone_ns > self->wide_ns;
    self->wide_ns = unfounded ? 0 : self->wide_ns;
    self->alone_ns = unfounded ? 0 : alone_ns;
}
