/* tests/test_pipeline_load.c -- frames that are copied where memory is short: who loads one waits as long as it said,
   and others run meanwhile. */
#include "pipeline_kit.h"

#define PAGE 4096u
#define MOST_PAGES 14u
#define SOON_NS (20 * (int64_t)1000000000)

static uint8_t pixels[MOST_PAGES * PAGE];

static kit* open_short(const char* opener, uint32_t n_workers, uint64_t max_host_bytes) {
    gpst_context_desc context = GPST_ZERO;
    kit* const self = kit_open_in(opener, "cpu", n_workers);
    context.backend = "cpu";
    context.n_workers = n_workers;
    context.max_host_bytes = max_host_bytes;
    kit_reopen(self, &context);
    return self;
}

static gpst_input a_frame(uint32_t n_pages) {
    gpst_input input = GPST_ZERO;
    input.frame = kit_shape(PAGE, n_pages);
    input.frame.data = pixels;
    return input;
}

static gpst_pipeline_desc one_stage(kit* self, gpst_stage_func func, void* user_data) {
    gpst_stage_host(&self->stages[0], GPST_SET(0), 0, func, user_data);
    self->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(self);
    memset(desc.capacity, 0, sizeof desc.capacity);
    return desc;
}

/* ---- a source that gives larger frames than before ------------------------------------------------------------- */

enum { N_FRAMES = 200, EACH = 40 };

typedef struct mixed {
    gpst_pipeline* pipeline;
    uint64_t stop_at;
    uint32_t n_given;
    gpsti_a32 n_ok;
} mixed;

/* Every EACH-th frame needs most of the memory. */
static gpst_result mixed_frames(void* user_data, uint64_t index, gpst_input* out) {
    mixed* const self = (mixed*)user_data;
    if (index == N_FRAMES)
        return GPST_END;
    *out = a_frame(index % EACH == EACH - 1 ? MOST_PAGES : 1);
    self->n_given++;
    if (index == self->stop_at)
        gpst_pipeline_stop(self->pipeline);
    return GPST_OK;
}

static gpst_result count_ok(void* user_data, const gpst_item* item) {
    if (item->result == GPST_OK)
        (void)gpsti_a32_add((gpsti_a32*)user_data, 1);
    return GPST_OK;
}

/* While one waits to be copied, those behind it that the same turn at the source took hold nothing; what the source has
   given comes through, stopped or not. */
static void test_a_larger_frame_comes(void** state) {
    static const uint64_t stops[] = {UINT64_MAX, EACH - 1, 2 * EACH};
    (void)state;
    for (uint32_t n_workers = 1; n_workers <= 4; n_workers++)
        for (int rounds = 0; rounds < 9; rounds++) {
            kit* const self = open_short(__func__, n_workers, 16 * PAGE);
            mixed the = GPST_ZERO;
            gpst_pipeline_desc desc = one_stage(self, kit_nothing, self);
            the.stop_at = stops[rounds % 3];
            desc.mode = GPST_RUN_ENGINE;
            desc.source = mixed_frames;
            desc.source_user_data = &the;
            desc.sink = count_ok;
            desc.sink_user_data = &the.n_ok;
            assert_int_equal(gpst_pipeline_create(self->context, &desc, &the.pipeline), GPST_OK);
            assert_int_equal(gpst_pipeline_run(the.pipeline), GPST_OK);
            assert_int_equal(gpsti_a32_load(&the.n_ok), the.n_given);
            assert_true(the.stop_at < N_FRAMES ? the.n_given > the.stop_at : the.n_given == N_FRAMES);
            assert_int_equal(gpst_pipeline_destroy(the.pipeline), GPST_OK);
            kit_close(self);
        }
}

/* ---- submit --------------------------------------------------------------------------------------------------- */

typedef struct gate {
    gpsti_a32 entered, open;
} gate;

static gpst_result wait_for_gate(void* user_data, gpst_task* task) {
    gate* const self = (gate*)user_data;
    (void)task;
    gpsti_a32_store(&self->entered, 1);
    while (!gpsti_a32_load(&self->open))
        gpsti_sleep_ns(100000);
    return GPST_OK;
}

typedef struct waiting {
    gpst_pipeline* pipeline;
    gpst_result result;
} waiting;

static void submit_large(void* user_data) {
    waiting* const self = (waiting*)user_data;
    const gpst_input large = a_frame(MOST_PAGES);
    self->result = gpst_pipeline_submit(self->pipeline, &large, SOON_NS, NULL);
}

/* The copy waits for memory no longer than it may, and no submit waits for another one's. */
static void check_submit(gpst_full_policy policy, gpst_result at_once, gpst_result late) {
    gate the = GPST_ZERO;
    gpsti_a32 n_ok = GPST_ZERO;
    gpsti_thread thread;
    waiting other = GPST_ZERO;
    kit* const self = open_short(__func__, 2, 16 * PAGE);
    gpst_pipeline_desc desc = one_stage(self, wait_for_gate, &the);
    const gpst_input large = a_frame(MOST_PAGES), small = a_frame(4);
    desc.source = NULL;
    desc.sink = count_ok;
    desc.sink_user_data = &n_ok;
    desc.n_slots = 4;
    desc.full_policy = policy;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &other.pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_submit(other.pipeline, &small, 0, NULL), GPST_OK);
    while (!gpsti_a32_load(&the.entered))
        gpsti_sleep_ns(100000);
    assert_int_equal(gpst_pipeline_submit(other.pipeline, &large, 0, NULL), at_once);
    assert_int_equal(gpst_pipeline_submit(other.pipeline, &large, 1000000, NULL), late);
    if (policy == GPST_FULL_BLOCK) {
        assert_int_equal(gpsti_thread_start(&thread, submit_large, &other, "other"), GPST_OK);
        gpsti_sleep_ns(20000000); /* most likely it waits by now; whether or not, what follows holds */
        assert_int_equal(gpst_pipeline_submit(other.pipeline, &large, 1000000, NULL), late);
    }
    gpsti_a32_store(&the.open, 1);
    if (policy == GPST_FULL_BLOCK) {
        gpsti_thread_join(&thread);
        assert_int_equal(other.result, GPST_OK);
        assert_int_equal(gpst_pipeline_submit(other.pipeline, &large, SOON_NS, NULL), GPST_OK);
    }
    assert_int_equal(gpst_pipeline_drain(other.pipeline, SOON_NS), GPST_OK);
    assert_int_equal(gpsti_a32_load(&n_ok), policy == GPST_FULL_BLOCK ? 3 : 1);
    assert_int_equal(gpst_pipeline_destroy(other.pipeline), GPST_OK);
    kit_close(self);
}

static void test_submit_waits_as_long_as_it_said(void** state) {
    (void)state;
    check_submit(GPST_FULL_BLOCK, GPST_ERROR_WOULD_BLOCK, GPST_ERROR_TIMEOUT);
    check_submit(GPST_FULL_DROP_NEWEST, GPST_DROPPED, GPST_DROPPED);
}

/* ---- from a stage of another pipeline --------------------------------------------------------------------------- */

enum { N_SMALL = 3 };

/* Behind the small ones comes one that makes a large one of the other pipeline. */
static gpst_result pass_on(void* user_data, gpst_task* task) {
    const gpst_input large = a_frame(10);
    return task->item->index < N_SMALL ? GPST_OK
                                       : gpst_pipeline_submit((gpst_pipeline*)user_data, &large, SOON_NS, NULL);
}

static gpst_result wait_behind_the_small(void* user_data, gpst_task* task) {
    return task->item->index < N_SMALL ? GPST_OK : wait_for_gate(user_data, task);
}

static void submit_small(gpst_pipeline* pipeline) {
    const gpst_input small = a_frame(1);
    for (int i = 0; i < N_SMALL; i++) /* items like them are expected then */
        assert_int_equal(gpst_pipeline_submit(pipeline, &small, SOON_NS, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
}

/* Who waits there has no place in that pipeline: its items, which have the memory, run one after the other meanwhile. */
static void test_a_stage_submits_to_another_pipeline(void** state) {
    gpst_pipeline *first = NULL, *second = NULL;
    gpsti_a32 n_first = GPST_ZERO, n_second = GPST_ZERO;
    gate the = GPST_ZERO;
    const gpst_input small = a_frame(1), medium = a_frame(4);
    (void)state;
    kit* const self = open_short(__func__, 2, 13 * PAGE);
    gpst_pipeline_desc desc = one_stage(self, wait_behind_the_small, &the);
    self->stages[0].concurrency = 1;
    desc.source = NULL;
    desc.sink = count_ok;
    desc.sink_user_data = &n_second;
    desc.n_slots = 4;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &second), GPST_OK);
    desc = one_stage(self, pass_on, second);
    desc.source = NULL;
    desc.sink = count_ok;
    desc.sink_user_data = &n_first;
    desc.n_slots = 1;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &first), GPST_OK);
    submit_small(first);
    submit_small(second);
    for (int i = 0; i < 2; i++)
        assert_int_equal(gpst_pipeline_submit(second, &medium, SOON_NS, NULL), GPST_OK);
    while (!gpsti_a32_load(&the.entered))
        gpsti_sleep_ns(100000);
    assert_int_equal(gpst_pipeline_submit(first, &small, SOON_NS, NULL), GPST_OK);
    gpsti_sleep_ns(20000000); /* most likely the large one waits by now; whether or not, what follows holds */
    gpsti_a32_store(&the.open, 1);
    assert_int_equal(gpst_pipeline_drain(first, SOON_NS), GPST_OK);
    assert_int_equal(gpst_pipeline_drain(second, SOON_NS), GPST_OK);
    assert_int_equal(gpsti_a32_load(&n_first), N_SMALL + 1);
    assert_int_equal(gpsti_a32_load(&n_second), N_SMALL + 3);
    assert_int_equal(gpst_pipeline_destroy(first), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(second), GPST_OK);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_larger_frame_comes),
        cmocka_unit_test(test_submit_waits_as_long_as_it_said),
        cmocka_unit_test(test_a_stage_submits_to_another_pipeline),
    };
    return cmocka_run_group_tests_name("pipeline_load", tests, NULL, NULL);
}
