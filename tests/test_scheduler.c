/* tests/test_scheduler.c -- workers are called when work is worth it, and nobody waits for one who got stuck: tasks
   that were brief a thousand times and then are not. */
#include "test.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/base/os_internal.h"
#include "../core/pipeline/pipeline.h"
#include "../core/pipeline/pipeline_internal.h"
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

/* ---- who is called ----------------------------------------------------------------------------------------------- */

enum { N_LONE = 200 };

static gpst_result take_a_seat(void* user_data, gpst_task* task) {
    gpsti_a32* const seats = (gpsti_a32*)user_data;
    gpsti_a32_add(&seats[task->worker_index < N_MEETING ? task->worker_index : N_MEETING], 1);
    gpsti_sleep_ns(50000); /* not brief: a sleeper is called for it */
    return GPST_OK;
}

static void wait_until_all_sleep(gpsti_scheduler* scheduler) {
    for (bool asleep = false; !asleep; gpsti_sleep_ns(50000)) {
        gpsti_mutex_lock(&scheduler->mutex);
        asleep = scheduler->n_idle == scheduler->n_workers && scheduler->n_waking == 0;
        gpsti_mutex_unlock(&scheduler->mutex);
    }
}

/* Of items that come one by one, when everybody sleeps, those that the busiest worker served. */
static uint32_t most_of_lone_items(void) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pipeline* pipeline = NULL;
    gpst_input input = GPST_ZERO;
    gpsti_a32 seats[N_MEETING + 1];
    uint32_t most = 0;
    memset(seats, 0, sizeof seats);
    context_desc.n_workers = N_MEETING;
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    stage.kind = GPST_STAGE_HOST;
    stage.func = take_a_seat;
    stage.user_data = seats;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.mode = GPST_RUN_ENGINE;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    input.name = "item";
    for (int i = 0; i < N_LONE; i++) {
        const gpst_item* item = NULL;
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        gpst_pipeline_release(pipeline, item);
        wait_until_all_sleep(context->scheduler);
    }
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
    for (int w = 0; w <= N_MEETING; w++)
        most = gpsti_a32_load(&seats[w]) > most ? gpsti_a32_load(&seats[w]) : most;
    return most;
}

/* Lone items go to the worker that fell asleep last, not to all in turn. */
static void test_the_last_to_sleep_is_called(void** state) {
    (void)state;
    assert_in_range(most_of_lone_items(), N_LONE * 3 / 4, N_LONE);
}

/* ---- who looks uncalled ------------------------------------------------------------------------------------------ */

enum { N_LOOKS = 40 };

typedef struct looker {
    gpsti_client client;
    gpsti_scheduler* scheduler;
    gpsti_a32 n_looks;
    int64_t in_ns;
} looker;

/* The soonest is meant, whoever asked for it first, and nobody is out for long. */
static bool look_at_nothing(gpsti_client* client, uint32_t worker_index) {
    looker* const self = (looker*)client;
    (void)worker_index;
    (void)gpsti_a32_add(&self->n_looks, 1);
    gpsti_scheduler_look_in(self->scheduler, (int64_t)3600 * 1000000000);
    gpsti_scheduler_look_in(self->scheduler, self->in_ns);
    gpsti_scheduler_look_in(self->scheduler, (int64_t)60 * 1000000000);
    return false;
}

static int64_t no_backlog_ns(gpsti_client* client) {
    (void)client;
    return 0;
}

/* Nothing is there to run, and nobody calls: one worker looks, and again after so long. Returns the mean time between. */
static int64_t time_between_looks(int64_t in_ns) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* context = NULL;
    looker self;
    memset(&self, 0, sizeof self);
    context_desc.n_workers = N_MEETING;
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    self.scheduler = context->scheduler;
    self.in_ns = in_ns;
    self.client.run_one = look_at_nothing;
    self.client.backlog_ns = no_backlog_ns;
    const int64_t start_ns = gpsti_now_ns(), give_up_ns = start_ns + (int64_t)20 * 1000000000;
    gpsti_mutex_lock(&self.scheduler->mutex);
    gpsti_scheduler_watch(self.scheduler, &self.client);
    gpsti_mutex_unlock(&self.scheduler->mutex);
    while (gpsti_a32_load(&self.n_looks) < N_LOOKS && gpsti_now_ns() < give_up_ns)
        gpsti_sleep_ns(100000);
    const int64_t took_ns = gpsti_now_ns() - start_ns;
    gpsti_mutex_lock(&self.scheduler->mutex);
    gpsti_scheduler_remove(self.scheduler, &self.client);
    gpsti_mutex_unlock(&self.scheduler->mutex);
    gpst_context_destroy(context);
    assert_true(took_ns < (int64_t)20 * 1000000000);
    return took_ns / (N_LOOKS - N_MEETING - 1); /* all may look at first */
}

/* After as long as it was told, and not as late as it was told where others rely on it. */
static void test_a_worker_looks_again(void** state) {
    (void)state;
    assert_true(time_between_looks(100000) >= 100000);
    assert_true(time_between_looks((int64_t)7200 * 1000000000) >= 500000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_come_when_one_is_stuck),
        cmocka_unit_test(test_all_come),
        cmocka_unit_test(test_all_come_to_what_is_submitted),
        cmocka_unit_test(test_the_last_to_sleep_is_called),
        cmocka_unit_test(test_a_worker_looks_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
