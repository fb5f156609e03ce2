/* tests/test_pipeline_results.c -- what a sink is given where the pipeline names no results, what becomes of an item
   whose stage did not set what it says that it writes, and what run returns where nothing was done. */
#include "pipeline_kit.h"

enum { SIDE = 8, N_ITEMS = 4 };

typedef struct results {
    kit* kit;
    uint32_t n_of[4];    /* pictures of each set, as the sink saw them last */
    uint32_t written;    /* sets that `make` sets */
    char stage[32], reason[GPST_REASON_BYTES];
    gpst_result result;
} results;

static gpst_result give_frame(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[SIDE * SIDE];
    (void)user_data;
    out->frame = kit_shape(SIDE, SIDE);
    out->frame.data = pixels;
    return index < N_ITEMS ? GPST_OK : GPST_END;
}

static gpst_result see(void* user_data, const gpst_item* item) {
    results* const self = (results*)user_data;
    for (uint32_t k = 0; k < 4; k++)
        self->n_of[k] = k < item->n_sets ? item->sets[k].n : 0;
    for (uint32_t k = 0; item->result == GPST_OK && k < item->n_sets; k++)
        for (uint32_t i = 0; i < item->sets[k].n; i++)
            kit_check(self->kit, item->sets[k].pictures[i].data != NULL);
    self->result = item->result;
    snprintf(self->stage, sizeof self->stage, "%s", item->stage);
    snprintf(self->reason, sizeof self->reason, "%s", item->reason);
    return GPST_OK;
}

/* Sets those of its sets that the test says. */
static gpst_result make(void* user_data, gpst_task* task) {
    results* const self = (results*)user_data;
    const gpst_image shape = kit_shape(SIDE, SIDE);
    gpst_image image;
    for (uint32_t k = 1; k < 4; k++)
        if (self->written & GPST_SET(k))
            GPSTI_TRY(gpst_task_set_picture(task, k, 0, &shape, &image));
    return GPST_OK;
}

static gpst_result make_batch(void* user_data, gpst_task* tasks, uint32_t n_tasks, gpst_result* each) {
    for (uint32_t i = 0; i < n_tasks; i++)
        each[i] = make(user_data, &tasks[i]);
    return GPST_OK;
}

static gpst_result run_stages(results* self, const char* backend, gpst_stage_desc* stages, uint32_t n_stages,
                              gpst_pipeline_desc* desc) {
    self->kit = kit_open(backend, 2);
    desc->stages = stages;
    desc->n_stages = n_stages;
    desc->source = give_frame;
    desc->sink = see;
    desc->sink_user_data = self;
    assert_int_equal(gpst_pipeline_create(self->kit->context, desc, &self->kit->pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(self->kit->pipeline);
    assert_int_equal(gpst_pipeline_destroy(self->kit->pipeline), GPST_OK);
    kit_close(self->kit);
    return result;
}

static gpst_warp* make_warp(void) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    desc.map = GPST_MAP_RESIZE;
    desc.width = desc.height = SIDE / 2;
    desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

/* Nothing is named: what the built-in stages and the last ones make, also behind a stage that only looks at it. */
static void test_who_looks_takes_nothing_away(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    gpst_warp* const warp = make_warp();
    gpst_mask_desc mask = GPST_ZERO;
    (void)state;
    mask.kind = GPST_MASK_THRESHOLD;
    for (int b = 0; b < 2; b++)
        for (int form = 0; form < 6; form++) {
            results self = GPST_ZERO;
            gpst_stage_desc stages[3];
            gpst_pipeline_desc desc = GPST_ZERO;
            uint32_t n = 2;
            gpst_stage_warp(&stages[0], 0, 1, warp);
            gpst_stage_host(&stages[1], 0, 0, make, &self); /* says nothing */
            if (form == 1)
                gpst_stage_host(&stages[1], GPST_SET(1), 0, make, &self); /* only reads */
            if (form == 2)
                stages[1].per_picture = true;
            if (form >= 3) { /* makes another set of it */
                self.written = GPST_SET(2);
                gpst_stage_host(&stages[1], GPST_SET(1), GPST_SET(2), make, &self);
            }
            if (form >= 4)
                gpst_stage_mask(&stages[n++], 2, 3, &mask);
            desc.n_results = form == 5 ? 1 : 0;
            desc.results[0] = gpst_result_of(3, GPST_ON_HOST);
            assert_int_equal(run_stages(&self, backends[b], stages, n, &desc), GPST_OK);
            assert_int_equal(self.n_of[0], 0); /* the input's own frame was read */
            assert_int_equal(self.n_of[1], form < 5 ? 1 : 0);
            assert_int_equal(self.n_of[2], form == 3 ? 1 : 0); /* MASK has made a set of it */
            assert_int_equal(self.n_of[3], form >= 4 ? 1 : 0);
        }
    gpst_warp_destroy(warp);
}

/* A stage says that it writes a set and does not: the item fails there, with the rule. */
static void test_what_is_never_set(void** state) {
    static const char* const backends[] = {"cpu", "sim"};
    enum { OF_HOST, OF_DEVICE, OF_BATCH, OF_PICTURE, N_FORMS };
    (void)state;
    for (int b = 0; b < 2; b++)
        for (int form = 0; form < N_FORMS; form++)
            for (uint32_t written = 0; written < 4; written++) {
                results self = GPST_ZERO;
                gpst_stage_desc stages[2];
                gpst_pipeline_desc desc = GPST_ZERO;
                uint32_t n = 1;
                self.written = written << 2 & (form == OF_PICTURE ? GPST_SET(2) : UINT32_MAX);
                gpst_stage_host(&stages[0], GPST_SET(0), GPST_SET(2) | GPST_SET(3), make, &self);
                stages[0].kind = form == OF_DEVICE ? GPST_STAGE_DEVICE : GPST_STAGE_HOST;
                if (form == OF_BATCH) {
                    stages[0].func = NULL;
                    stages[0].batch_func = make_batch;
                }
                if (form == OF_PICTURE) {
                    stages[0].writes = GPST_SET(2);
                    stages[0].per_picture = true;
                }
                stages[0].name = "maker";
                const uint32_t missing = stages[0].writes & ~self.written;
                const gpst_result result = run_stages(&self, backends[b], stages, n, &desc);
                assert_int_equal(result, missing ? GPST_ERROR_STATE : GPST_OK);
                assert_int_equal(self.result, result);
                if (!missing)
                    continue;
                assert_string_equal(self.stage, "maker");
                assert_non_null(strstr(self.reason, missing & GPST_SET(2) ? "set 2" : "set 3"));
                assert_non_null(strstr(self.reason, "was never set"));
            }
}

/* None is no failure where there may be several, and where a function alone reads it, which sees that. */
static void test_what_may_be_empty(void** state) {
    (void)state;
    for (int several = 0; several < 2; several++) {
        results self = GPST_ZERO;
        gpst_stage_desc stages[2];
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_stage_host(&stages[0], GPST_SET(0), GPST_SET(2), make, &self);
        gpst_stage_host(&stages[1], GPST_SET(2), 0, make, &self);
        desc.capacity[2] = several ? 2 : 0;
        assert_int_equal(run_stages(&self, "cpu", stages, several ? 1 : 2, &desc), GPST_OK);
        assert_int_equal(self.n_of[2], 0);
    }
}

/* Of run's result: some, all or none failed; what was skipped was done as it was wanted. */
static gpst_result end_as_asked(void* user_data, gpst_task* task) {
    const gpst_result* const ends = (const gpst_result*)user_data;
    const gpst_result result = ends[task->item->index];
    return GPST_FAILED(result) ? gpst_task_fail(task, result, "item %u", (unsigned)task->item->index) : result;
}

static void test_nothing_done_is_a_failure(void** state) {
    static const struct {
        gpst_result ends[N_ITEMS], wanted;
    } cases[] = {{{GPST_OK, GPST_OK, GPST_OK, GPST_OK}, GPST_OK},
                 {{GPST_ERROR_IO, GPST_OK, GPST_ERROR_FORMAT, GPST_ERROR_IO}, GPST_PARTIAL},
                 {{GPST_ERROR_IO, GPST_ERROR_IO, GPST_ERROR_IO, GPST_SKIPPED}, GPST_PARTIAL},
                 {{GPST_SKIPPED, GPST_SKIPPED, GPST_SKIPPED, GPST_SKIPPED}, GPST_OK},
                 {{GPST_ERROR_IO, GPST_ERROR_FORMAT, GPST_ERROR_FORMAT, GPST_ERROR_FORMAT}, GPST_ERROR_IO}};
    static const gpst_run_mode modes[] = {GPST_RUN_DEFAULT, GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        for (int m = 0; m < 3; m++) {
            results self = GPST_ZERO;
            gpst_stage_desc stage;
            gpst_pipeline_desc desc = GPST_ZERO;
            gpst_stage_host(&stage, GPST_SET(0), 0, end_as_asked, (void*)(uintptr_t)cases[c].ends);
            stage.name = "asked";
            desc.mode = modes[m];
            assert_int_equal(run_stages(&self, "cpu", &stage, 1, &desc), cases[c].wanted);
            if (GPST_FAILED(cases[c].wanted))
                test_reason_has("gpst_pipeline_run: ", "none of 4 items was done; the first: item 0: asked: item 0");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_looks_takes_nothing_away),
        cmocka_unit_test(test_what_is_never_set),
        cmocka_unit_test(test_what_may_be_empty),
        cmocka_unit_test(test_nothing_done_is_a_failure),
    };
    return cmocka_run_group_tests_name("pipeline_results", tests, NULL, NULL);
}
