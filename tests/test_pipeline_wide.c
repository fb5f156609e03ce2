/* tests/test_pipeline_wide.c -- kernels that are worth several threads, at the start of a tuned run: who has every core,
   who has one, and what the engine is told of it. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

#include <errno.h>

static uint8_t wide_frame[64 * 32 * 3];

/* Cores that a wide kernel may have; 1 where nothing is ever wide. OpenMP's threads stay, so they are there before a kit
   counts. */
static uint32_t wide_cores(void) {
#if defined(_OPENMP)
    gpsti_limits limits;
#pragma omp parallel
    kit_no_work(NULL);
    gpsti_limits_query(&limits);
    return limits.cores_allowed;
#else
    return 1;
#endif
}

typedef struct wide_load {
    const char* at_start;  /* what /proc/loadavg says before the run, NULL = nothing */
    const char* later;     /* and from item 0's source on, if it changes */
    uint32_t cores_online; /* 0 = the machine's */
} wide_load;

static wide_load load;

static void set_load(const kit* self, const char* text) {
    char path[400];
    snprintf(path, sizeof path, "%s/proc", self->dir);
    assert_true(mkdir(path, 0700) == 0 || errno == EEXIST);
    snprintf(path, sizeof path, "%s/proc/loadavg", self->dir);
    FILE* const file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void forget_load(const kit* self) {
    char path[400];
    snprintf(path, sizeof path, "%s/proc/loadavg", self->dir);
    (void)unlink(path);
}

static gpst_result wide_source(void* user_data, uint64_t index, gpst_input* out) {
    if (load.later && index == 0)
        set_load((const kit*)user_data, load.later);
    out->frame = kit_shape(64, 32);
    out->frame.format = GPST_FORMAT_RGB;
    out->frame.pitch_bytes = 64 * 3;
    out->frame.data = wide_frame;
    return index < ((const kit*)user_data)->n_items ? GPST_OK : GPST_END;
}

static gpst_warp* wide_warp(uint32_t side) {
    gpst_view view;
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    memset(&view, 0, sizeof view);
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = &view;
    desc.n_views = 1;
    desc.width = desc.height = side;
    desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

static gpst_pipeline_desc wide_desc(kit* self, uint64_t n_items, const gpst_warp* warp) {
    gpst_pipeline_desc desc = kit_simple(self, n_items, kit_nothing);
    self->stages[0] = kit_stage(self, GPST_STAGE_WARP, NULL, NULL);
    self->stages[0].warp = warp;
    desc.source = wide_source;
    desc.n_outputs = 0;
    desc.n_items_expected = n_items;
    return desc;
}

/* One item, whose kernel may have every core while nobody else wants them, when it is wide enough. */
static void test_a_lone_wide_kernel_has_every_core(void** state) {
    (void)state;
    static const uint32_t sides[] = {64, 1024};
    const uint32_t n_cores = wide_cores();
    for (int wide = 0; wide < 2; wide++) {
        kit* const self = kit_open("cpu", 2);
        gpst_stats stats;
        gpst_warp* const warp = wide_warp(sides[wide]);
        gpst_pipeline_desc desc = wide_desc(self, 1, warp);
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        const bool inside = wide && n_cores > 1;
        assert_non_null(strstr(stats.settings, inside ? "mode=plain-inside" : "mode=plain-serial"));
        assert_non_null(strstr(stats.verdict.text, inside ? "plain-inside: the run is too small"
                                                          : "plain-serial: the run is too small"));
        assert_int_equal(self->n_ok, 1);
        gpst_warp_destroy(warp);
        kit_close(self);
    }
}

/* What a kernel takes beyond its pixels. */
typedef struct slowness {
    int64_t late_ns; /* on every core, each late_every-th */
    uint32_t late_every;
    int64_t alone_ns; /* on one thread, each */
} slowness;

typedef struct narrow {
    slowness slow;
    uint32_t n_items; /* of the plain loop */
    bool first_alone; /* item 0's kernel had one thread */
    bool beside;      /* and item 1 began before half of it was over */
    bool elsewhere;   /* kernels are not the plain loop's own */
    int64_t alone_ns;   /* item 1, if its kernel had one thread */
    uint32_t n_sounded; /* later ones that had, where what was before them is left out of what an item takes */
} narrow;

static int64_t item_1_start_ns(gpst_task* task) {
    gpst_pipeline* const pipeline = task->pipeline;
    int64_t start_ns = INT64_MAX;
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    for (uint32_t i = 0; i < pipeline->n_slots_made; i++)
        if (pipeline->slots[i]->in_use && pipeline->slots[i]->item.index == 1)
            start_ns = pipeline->slots[i]->item.start_ns;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    return start_ns;
}

static gpst_result look_at_threads(void* user_data, gpst_task* task) {
    narrow* const self = (narrow*)user_data;
    const gpst_pipeline* const pipeline = task->pipeline;
    const uint64_t n_left_out = pipeline->tune.first[pipeline->steps[0].first_clock + 1].count;
    if (task->item->index == 0) {
        self->first_alone = pipeline->slots[0]->exec.n_threads == 1;
        self->beside = item_1_start_ns(task) < task->item->start_ns + (gpsti_now_ns() - task->item->start_ns) / 2;
    }
    if (pipeline->attached) /* so the loop is not the plain one */
        return GPST_OK;
    self->n_items++;
    if (task->item->index == 1 && pipeline->slots[0]->exec.n_threads == 1)
        self->alone_ns = gpsti_now_ns() - task->item->start_ns;
    if (task->item->index >= 3 && n_left_out == task->item->index && pipeline->slots[0]->exec.n_threads == 1)
        self->n_sounded++;
    return GPST_OK;
}

/* A part of the kernel. */
static gpst_result be_slow(void* user_data, gpst_task* task) {
    const slowness* const slow = &((const narrow*)user_data)->slow;
    const gpst_pipeline* const pipeline = task->pipeline;
    if (pipeline->attached)
        return GPST_OK;
    if (pipeline->slots[0]->exec.n_threads == 1)
        gpsti_sleep_ns(slow->alone_ns);
    else if (task->item->index % slow->late_every == slow->late_every - 1)
        gpsti_sleep_ns(slow->late_ns);
    return GPST_OK;
}

/* What becomes of so many items while the loop is plain, when so many are expected. */
static narrow narrow_items_slow(uint32_t side, uint64_t n_items, uint64_t n_expected, const slowness* slow) {
    kit* const self = kit_open("cpu", 2);
    gpst_warp* const warp = wide_warp(side);
    gpst_pipeline_desc desc = wide_desc(self, n_items, warp);
    gpst_stats stats;
    narrow out;
    gpst_context_info info;
    memset(&out, 0, sizeof out);
    gpst_context_query_info(self->context, &info);
    out.elsewhere = strcmp(info.backend, "cpu") != 0;
    if (slow) {
        out.slow = *slow;
        self->stages[self->n_stages++] = kit_stage(self, GPST_STAGE_DEVICE, be_slow, "slow");
    }
    self->stages[self->n_stages++] = kit_stage(self, GPST_STAGE_HOST, look_at_threads, "look");
    for (uint32_t s = 1; s < self->n_stages; s++)
        self->stages[s].user_data = &out;
    desc.n_stages = self->n_stages;
    desc.n_items_expected = n_expected;
    if (load.at_start)
        set_load(self, load.at_start);
    if (load.cores_online > 0)
        self->context->cores_online = load.cores_online;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, n_items);
    forget_load(self);
    printf("    of %u expected: %u plain%s%s, %u sounded\n", (unsigned)n_expected, out.n_items,
           out.first_alone ? ", the first alone" : "", out.beside ? ", others beside it" : "", out.n_sounded);
    gpst_warp_destroy(warp);
    kit_close(self);
    return out;
}

static narrow narrow_items(uint32_t side, uint64_t n_items, uint64_t n_expected) {
    return narrow_items_slow(side, n_items, n_expected, NULL);
}

enum { N_LONE = 12 };

/* Was the kernel of each of so many runs of one item wide where expected says so? Slow by so much, in one context. */
static bool lone_runs(uint32_t side, const slowness* slow, const bool* expected) {
    kit* const self = kit_open("cpu", 2);
    gpst_warp* const warp = wide_warp(side);
    gpst_pipeline_desc desc = wide_desc(self, 1, warp);
    gpst_stats stats;
    narrow seen;
    bool as_expected = true;
    memset(&seen, 0, sizeof seen);
    seen.slow = *slow;
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, be_slow, "slow");
    self->stages[2] = kit_stage(self, GPST_STAGE_HOST, look_at_threads, "look");
    self->stages[1].user_data = self->stages[2].user_data = &seen;
    desc.n_stages = 3;
    for (uint32_t r = 0; r < N_LONE && as_expected; r++) {
        self->next_source = 0;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.items_ok, 1);
        assert_true(seen.first_alone == (strstr(stats.settings, "mode=plain-serial") != NULL));
        as_expected = seen.first_alone != expected[r];
    }
    gpst_warp_destroy(warp);
    kit_close(self);
    return as_expected;
}

/* Runs of one item each: every core inside its kernel where that was no slower in those before, and where it did not
   seem worth it tried after eight. */
static void test_lone_kernels_are_learnt_from(void** state) {
    (void)state;
    static const slowness late = {200000000, 1, 0}, alone = {0, 1, 50000000};
    const uint32_t n_cores = wide_cores();
    bool after_late[N_LONE], after_eight[N_LONE], late_is_left = false, wide_is_found = false;
    for (uint32_t r = 0; r < N_LONE; r++) { /* after the first that was late one has one thread, then eight */
        after_late[r] = n_cores > 1 && (r == 0 || r == 2 || r == 11);
        after_eight[r] = n_cores > 2 || (n_cores > 1 && r >= 8);
    }
    for (test_tries t = {0, 0}; !late_is_left && test_again(&t);)
        late_is_left = lone_runs(1024, &late, after_late);
    for (test_tries t = {0, 0}; !wide_is_found && test_again(&t);)
        wide_is_found = lone_runs(512, &alone, after_eight);
    assert_true(late_is_left);
    assert_true(wide_is_found);
}

static gpsti_inside others_lone; /* as another run has it, which begins while this one's kernel is at work */

static gpst_result begin_another(void* user_data, gpst_task* task) {
    gpst_context* const context = task->pipeline->context;
    (void)user_data;
    gpsti_mutex_lock(&context->scheduler->mutex);
    context->lone_pixels = 12345;
    memset(&context->lone, 7, sizeof context->lone);
    others_lone = context->lone;
    gpsti_mutex_unlock(&context->scheduler->mutex);
    return GPST_OK;
}

/* Of two runs of one item at once, whose warps are of different sizes, the second leaves what the next one finds. */
static void test_lone_runs_at_once(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_warp* const warp = wide_warp(1024);
    gpst_pipeline_desc desc = wide_desc(self, 1, warp);
    gpst_stats stats;
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, begin_another, "another");
    desc.n_stages = 2;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->context->lone_pixels, 12345);
    assert_memory_equal(&self->context->lone, &others_lone, sizeof others_lone);
    gpst_warp_destroy(warp);
    kit_close(self);
}

/* What kernels lose on every core is found out where a run is long enough for that: at once where it is known to be,
   and others begin beside item 0's kernel; of a run of unknown length when it has become so. */
static void test_long_runs_are_sounded(void** state) {
    (void)state;
    bool brief = wide_cores() < 2, lengthy = brief, unknown = brief;
    for (test_tries t = {0, 0}; !brief && test_again(&t);) {
        const narrow of = narrow_items(640, 8, 8);
        brief = of.elsewhere || (of.n_items > 4 && !of.first_alone && of.n_sounded == 0); /* else an engine was opened */
    }
    for (test_tries t = {0, 0}; !lengthy && test_again(&t);) {
        const narrow of = narrow_items(1280, 40, 1000000);
        lengthy = of.elsewhere || (of.first_alone && of.beside);
    }
    for (test_tries t = {0, 0}; !unknown && test_again(&t);) {
        const narrow of = narrow_items(640, 600, 0);
        unknown = of.elsewhere || (!of.first_alone && of.n_sounded == 1);
    }
    assert_true(brief && lengthy && unknown);
}

/* Kernels on every core that wait for a thread: always, and no better than one thread by far, or every second time, when
   the mean is still better. One has one thread, and the rest is the engine's. A busy machine does as much to some runs.
   Not so where one thread takes longer still, if only it was thought to take less. */
static void test_late_kernels_are_left(void** state) {
    (void)state;
    const uint32_t n_cores = wide_cores();
    const uint64_t n_items = 100 + 8 * (uint64_t)n_cores; /* worth workers */
    const slowness late = {20000000, 1, 0}, kernel = {5000000, 1, 4000000 * (int64_t)n_cores};
    bool always = n_cores < 2, often = always, never = always;
    for (test_tries t = {0, 0}; !(always && often) && test_again(&t);) {
        narrow of = narrow_items_slow(640, n_items, n_items, &late);
        const slowness at_times = {of.alone_ns / 2, 2, 0};
        always = always || of.elsewhere || (of.n_items == 2 && !of.first_alone && of.alone_ns > 0);
        of = narrow_items_slow(640, 60, 60, &at_times);
        often = often || of.elsewhere || (of.n_items <= 18 && !of.first_alone && of.n_sounded == 1);
    }
    for (test_tries t = {0, 0}; !never && test_again(&t);) {
        const narrow of = narrow_items_slow(640, n_items, n_items, &kernel);
        never = of.elsewhere || (of.n_items > 3 && !of.first_alone && of.alone_ns > kernel.alone_ns);
    }
    assert_true(always && often && never);
}

/* Where others run on the cores as the run begins, and still do at the first kernel, none has every core, if it gains
   less than such threads wait. What is given is more threads than there are cores on any machine. */
static void test_others_keep_their_cores(void** state) {
    (void)state;
    static const struct {
        wide_load load;
        uint32_t side;
        uint64_t n_items;
        bool alone;
    } rows[] = {{{"9.0 9.0 9.0 999999/999999 1\n", NULL, 0}, 640, 40, true},
                {{"9.0 9.0 9.0 999999/999999 1\n", NULL, 2000000}, 640, 8, false}, /* there is room for all */
                {{"9.0 9.0 9.0 1/999999 1\n", "9.0 9.0 9.0 999999/999999 1\n", 0}, 640, 8, false}, /* a callback's own */
                {{"9.0 9.0 9.0 999999/999999 1\n", "9.0 9.0 9.0 1/999999 1\n", 0}, 640, 8, false},
                {{"9.0 9.0 9.0 999999/999999 1\n", NULL, 0}, 2200, 3, false}, /* worth the wait */
                {{"9.0 9.0 9.0 999999/999999 1\n", NULL, 0}, 2200, 100, true}}; /* not so often */
    const uint32_t n_cores = wide_cores();
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        bool seen = n_cores < 2;
        for (test_tries t = {0, 0}; !seen && test_again(&t);) {
            load = rows[i].load;
            const narrow of = narrow_items(rows[i].side, rows[i].n_items, rows[i].n_items);
            memset(&load, 0, sizeof load);
            seen = of.elsewhere || (of.first_alone == rows[i].alone &&
                                    (rows[i].n_items < 4 || (of.n_items <= 2) == rows[i].alone));
        }
        assert_true(seen);
    }
}

/* Threads that have just been inside a kernel of the same context are not others. */
static void test_threads_of_its_own_are_no_others(void** state) {
    (void)state;
    bool inside = wide_cores() < 2, later = inside;
    for (test_tries t = {0, 0}; !(inside && later) && test_again(&t);) {
        kit* const self = kit_open("cpu", 2);
        gpst_warp* const warp = wide_warp(1024);
        gpst_pipeline_desc desc = wide_desc(self, 1, warp);
        gpst_stats stats;
        const bool elsewhere = strcmp(self->backend, "cpu") != 0;
        const uint64_t before_ns = (uint64_t)gpsti_now_ns();
        set_load(self, "9.0 9.0 9.0 999999/999999 1\n");
        gpsti_a64_store(&self->context->inside_end_ns, before_ns);
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        inside = elsewhere || strstr(stats.settings, "mode=plain-inside") != NULL;
        assert_true(elsewhere || !inside || gpsti_a64_load(&self->context->inside_end_ns) > before_ns);
        gpsti_sleep_ns(40000000);
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        later = elsewhere || strstr(stats.settings, "mode=plain-serial") != NULL;
        gpsti_a64_store(&self->context->inside_end_ns, 0);
        desc.mode = GPST_RUN_PLAIN_INSIDE; /* as asked for */
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_true(elsewhere || gpsti_a64_load(&self->context->inside_end_ns) > before_ns);
        forget_load(self);
        gpst_warp_destroy(warp);
        kit_close(self);
    }
    assert_true(inside && later);
}

static double seen_inside_ns; /* as the engine knows it */

static gpst_result sleep_and_look(void* user_data, gpst_task* task) {
    gpst_pipeline* const pipeline = task->pipeline;
    (void)user_data;
    if (task->item->index > 0) /* else others would begin beside item 0 */
        gpsti_sleep_ns(1000000);
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    if (pipeline->attached)
        seen_inside_ns = pipeline->tune.inside_ns;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    return GPST_OK;
}

/* The engine, opened for what follows the kernels, is told what an item took with every core inside them: 1 ms and
   more. */
static void test_wide_items_are_told_of(void** state) {
    (void)state;
    bool told = wide_cores() < 2;
    for (test_tries t = {0, 0}; !told && test_again(&t);) {
        kit* const self = kit_open("cpu", 2);
        gpst_warp* const warp = wide_warp(640);
        gpst_pipeline_desc desc = wide_desc(self, 60, warp);
        gpst_stats stats;
        self->stages[1] = kit_stage(self, GPST_STAGE_HOST, sleep_and_look, "look");
        desc.n_stages = self->n_stages = 2;
        desc.n_items_expected = 60;
        seen_inside_ns = 0.0;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        told = strcmp(self->backend, "cpu") != 0 || seen_inside_ns >= 1e6;
        printf("    %.1f ms an item\n", seen_inside_ns / 1e6);
        gpst_warp_destroy(warp);
        kit_close(self);
    }
    assert_true(told);
}

/* Did the run of a job whose kernels have every core stay plain for that? */
static bool stays_inside(kit* self, gpst_pipeline_desc* desc) {
    gpst_stats stats;
    assert_int_equal(run_tuned(self, desc, &stats), GPST_OK);
    return strstr(stats.settings, "mode=plain-inside") && said("too small");
}

/* And is the next one, which is told what an item takes on one thread, one with workers? */
static bool workers_are_tried(kit* self, gpst_pipeline_desc* desc) {
    const gpsti_recall* const recall = &self->context->recall;
    const gpsti_recalled run = recall->known[0];
    const double least_ns = 1.15 * run.inside_ns; /* unless others have its cores all the time */
    gpst_stats stats;
    if (recall->n != 1 || (double)run.costs.item_ns <= least_ns ||
        (double)run.costs.service_ns[GPST_RESOURCE_CPU] <= least_ns)
        return false;
    assert_int_equal(run_tuned(self, desc, &stats), GPST_OK);
    printf("    %.2f ms with every core, about %.2f ms with one; then: %s\n", run.inside_ns / 1e6,
           (double)run.costs.item_ns / 1e6, report.decisions[0].reason);
    return strncmp(report.decisions[0].reason, "known job: starts with whole items, workers=2", 45) == 0 &&
           recall->n == 1 && recall->known[0].n_runs == 1 && recall->known[0].inside_ns > 0.0;
}

static void test_workers_are_tried_next(void** state) {
    (void)state;
    bool tried = wide_cores() < 2;
    for (test_tries t = {0, 0}; !tried && test_again(&t);) {
        kit* const self = kit_open("cpu", 2);
        gpst_warp* const warp = wide_warp(640);
        gpst_pipeline_desc desc = wide_desc(self, 40, warp);
        desc.mode = GPST_RUN_DEFAULT;
        tried = strcmp(self->backend, "cpu") != 0 || (stays_inside(self, &desc) && workers_are_tried(self, &desc));
        gpst_warp_destroy(warp);
        kit_close(self);
    }
    assert_true(tried);
}

/* Too few items for so many workers to have two each. */
static void test_workers_without_items_are_not(void** state) {
    (void)state;
    bool stayed = wide_cores() < 2;
    for (test_tries t = {0, 0}; !stayed && test_again(&t);) {
        kit* const self = kit_open("cpu", 24);
        gpst_warp* const warp = wide_warp(640);
        gpst_pipeline_desc desc = wide_desc(self, 40, warp);
        desc.mode = GPST_RUN_DEFAULT;
        stayed = strcmp(self->backend, "cpu") != 0 || stays_inside(self, &desc);
        assert_true(strcmp(self->backend, "cpu") != 0 || !stayed || self->context->recall.n == 0);
        gpst_warp_destroy(warp);
        kit_close(self);
    }
    assert_true(stayed);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lone_wide_kernel_has_every_core),
        cmocka_unit_test(test_lone_kernels_are_learnt_from),
        cmocka_unit_test(test_lone_runs_at_once),
        cmocka_unit_test(test_long_runs_are_sounded),
        cmocka_unit_test(test_late_kernels_are_left),
        cmocka_unit_test(test_others_keep_their_cores),
        cmocka_unit_test(test_threads_of_its_own_are_no_others),
        cmocka_unit_test(test_wide_items_are_told_of),
        cmocka_unit_test(test_workers_are_tried_next),
        cmocka_unit_test(test_workers_without_items_are_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
