/* tests/test_scheduler.c -- no item waits for a worker that got stuck while another one sleeps: tasks that were brief a
   thousand times and then are not. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/base/os_internal.h"
#include "../core/pipeline/pipeline.h"
#include "../core/pipeline/engine_internal.h"
#endif

enum { N_BRIEF = 3000, N_MEETING = 4, N_ITEMS = N_BRIEF + 2 * N_MEETING };

typedef struct meeting {
    gpsti_a32 n_here;
    gpsti_a32 n_missed; /* who did not see all the others */
    uint32_t n_wanted;
} meeting;

static gpst_result next_item(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data;
    out->name = "item";
    return index < N_ITEMS ? GPST_OK : GPST_END;
}

/* Each of those who meet keeps its worker until all are here. */
static gpst_result meet(void* user_data, gpst_task* task) {
    meeting* const self = (meeting*)user_data;
    const int64_t give_up_ns = gpsti_now_ns() + (int64_t)10 * 1000000000;
    if (task->item->index < N_BRIEF || task->item->index >= N_BRIEF + self->n_wanted)
        return GPST_OK;
    gpsti_a32_add(&self->n_here, 1);
    while (gpsti_a32_load(&self->n_here) < self->n_wanted && gpsti_now_ns() < give_up_ns)
        gpsti_sleep_ns(100000);
    if (gpsti_a32_load(&self->n_here) < self->n_wanted)
        gpsti_a32_add(&self->n_missed, 1);
    return GPST_OK;
}

static void run_meeting(uint32_t n_workers, uint32_t n_wanted, bool push) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    meeting self;
    memset(&self, 0, sizeof self);
    self.n_wanted = n_wanted;
    context_desc.n_workers = n_workers;
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    stage.kind = GPST_STAGE_HOST;
    stage.func = meet;
    stage.user_data = &self;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.as_ready = true;
    desc.mode = GPST_RUN_ENGINE; /* no tuner takes workers away */
    desc.source = push ? NULL : next_item;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    if (push) {
        gpst_input input = GPST_ZERO;
        const gpst_item* item = NULL;
        input.name = "item";
        for (uint32_t i = 0; i < N_ITEMS; i++) { /* the brief ones one by one, then all together */
            assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
            if (i < N_BRIEF || i >= N_BRIEF + n_wanted) {
                assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
                gpst_pipeline_release(pipeline, item);
            }
        }
        gpst_pipeline_close(pipeline);
        while (gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item) == GPST_OK)
            gpst_pipeline_release(pipeline, item);
    } else {
        assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    }
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(stats.items_ok, N_ITEMS);
    assert_int_equal(gpsti_a32_load(&self.n_here), n_wanted);
    assert_int_equal(gpsti_a32_load(&self.n_missed), 0);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
}

static void test_others_come_when_one_is_stuck(void** state) {
    (void)state;
    run_meeting(2, 2, false);
    run_meeting(8, 2, false);
}

static void test_all_come(void** state) {
    (void)state;
    for (int i = 0; i < 5; i++)
        run_meeting(N_MEETING, N_MEETING, false);
}

static void test_all_come_to_what_is_submitted(void** state) {
    (void)state;
    run_meeting(2, 2, true);
    run_meeting(N_MEETING + 1, N_MEETING, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_come_when_one_is_stuck),
        cmocka_unit_test(test_all_come),
        cmocka_unit_test(test_all_come_to_what_is_submitted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
