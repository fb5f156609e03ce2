/* tests/test_pipeline_wide.c -- kernels that are worth several threads, at the start of a tuned run: every item is
   done, however many threads its kernel had. Who has every core and who one is test_inside.c's. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

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

static gpst_result wide_source(void* user_data, uint64_t index, gpst_input* out) {
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

/* One item, whose kernel may have every core while nobody else wants them, when it is wide enough and began soon. */
static void test_a_lone_wide_kernel_may_have_every_core(void** state) {
    (void)state;
    static const uint32_t sides[] = {64, 1024};
    const uint32_t n_cores = wide_cores();
    for (int wide = 0; wide < 2; wide++) {
        kit* const self = kit_open("cpu", 2);
        gpst_stats stats;
        gpst_warp* const warp = wide_warp(sides[wide]);
        gpst_pipeline_desc desc = wide_desc(self, 1, warp);
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        const bool inside = strstr(stats.settings, "mode=plain-inside") != NULL;
        assert_true(inside ? wide && n_cores > 1 : strstr(stats.settings, "mode=plain-serial") != NULL);
        assert_non_null(strstr(stats.verdict.text, inside ? "plain-inside: the run is too small"
                                                          : "plain-serial: the run is too small"));
        assert_int_equal(self->n_ok, 1);
        gpst_warp_destroy(warp);
        kit_close(self);
    }
}

static gpsti_inside others_lone; /* as another run has it, which begins while this one's kernel is at work */

static gpst_result begin_another(void* user_data, gpst_task* task) {
    gpst_context* const context = task->pipeline->context;
    (void)user_data;
    gpsti_mutex_lock(&context->scheduler->mutex);
    gpsti_jobs_of(context)->lone_pixels = 12345;
    memset(&gpsti_jobs_of(context)->lone, 7, sizeof gpsti_jobs_of(context)->lone);
    others_lone = gpsti_jobs_of(context)->lone;
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
    assert_int_equal(gpsti_jobs_of(self->context)->lone_pixels, 12345);
    assert_memory_equal(&gpsti_jobs_of(self->context)->lone, &others_lone, sizeof others_lone);
    gpst_warp_destroy(warp);
    kit_close(self);
}

/* In a plain loop or in an engine after it, of known and of unknown length. */
static void test_wide_items_are_all_done(void** state) {
    (void)state;
    static const uint64_t n_items[] = {8, 100, 300};
    (void)wide_cores();
    for (int i = 0; i < 3; i++) {
        kit* const self = kit_open("cpu", 2);
        gpst_warp* const warp = wide_warp(640);
        gpst_pipeline_desc desc = wide_desc(self, n_items[i], warp);
        gpst_stats stats;
        desc.n_items_expected = i < 2 ? n_items[i] : 0;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, n_items[i]);
        gpst_warp_destroy(warp);
        kit_close(self);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lone_wide_kernel_may_have_every_core),
        cmocka_unit_test(test_lone_runs_at_once),
        cmocka_unit_test(test_wide_items_are_all_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
