/* tests/test_pipeline_lifetime.c -- pipelines and contexts made and unmade in every order: from each callback, while
   other threads are inside of calls, and before what was made in them. Nothing hangs, and no freed memory is used: run
   it under AddressSanitizer and ThreadSanitizer, too. */
#include "pipeline_kit.h"

enum { SIDE = 8, N_ITEMS = 6 };

/* ---- from each callback every call ------------------------------------------------------------------------------- */

typedef enum site {
    IN_SOURCE,
    IN_SINK,
    IN_STAGE,
    IN_BATCH,
    IN_DEVICE,
    IN_INIT,
    IN_TERM,
    IN_DROPPED,
    IN_RELEASE, /* of a frame that the stages are through with, of one that was refused, and of a result */
    N_SITES
} site;

typedef struct lifetime {
    kit* kit;
    gpst_pipeline* pipeline;
    site asked;
    bool pulls, has_sink;
    gpsti_a32 n_asked, n_released, busy;
} lifetime;

static lifetime the_lifetime;
static uint8_t the_pixels[SIDE * SIDE];

static gpst_input a_frame(lifetime* self);

/* Another pipeline of the context lives and dies inside of a callback of this one. */
static void live_inside(lifetime* self) {
    gpst_stage_desc stage;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* other = NULL;
    gpst_stage_host(&stage, GPST_SET(0), 0, kit_nothing, NULL);
    desc.stages = &stage;
    desc.n_stages = 1;
    kit_check(self->kit, gpst_pipeline_create(self->kit->context, &desc, &other) == GPST_OK);
    kit_check(self->kit, gpst_pipeline_destroy(other) == GPST_OK);
}

/* Every call that a callback may try, and what comes of it. */
static void ask(lifetime* self, site where) {
    static gpst_stats stats;
    static gpst_tuner_report report;
    gpst_camera_stats cameras[2];
    gpst_pipeline* const pipeline = self->pipeline;
    const gpst_item* item = NULL;
    if (where != self->asked || gpsti_a32_exchange(&self->busy, 1) != 0) /* submit may come back here */
        return;
    gpsti_a32_add(&self->n_asked, 1);
    kit_check(self->kit, gpst_pipeline_destroy(pipeline) == GPST_ERROR_REENTRANT);
    kit_check(self->kit, gpst_context_destroy(self->kit->context) == GPST_ERROR_REENTRANT);
    kit_check(self->kit, gpst_pipeline_run(pipeline) == GPST_ERROR_REENTRANT);
    const gpst_result next = gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item);
    kit_check(self->kit, next == (self->pulls || self->has_sink ? GPST_ERROR_STATE : GPST_ERROR_REENTRANT));
    kit_check(self->kit, gpst_pipeline_drain(pipeline, GPST_FOREVER) ==
                             (self->pulls ? GPST_ERROR_STATE : GPST_ERROR_REENTRANT));
    gpst_input input = a_frame(self);
    input.release = NULL;
    const gpst_result submitted = gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL);
    kit_check(self->kit, !self->pulls || submitted == GPST_ERROR_STATE);
    kit_check(self->kit, where != IN_TERM || GPST_FAILED(submitted));
    gpst_pipeline_query_stats(pipeline, &stats);
    gpst_pipeline_query_tuner(pipeline, &report);
    (void)gpst_pipeline_query_cameras(pipeline, cameras, 2);
    gpst_pipeline_release(pipeline, NULL);
    live_inside(self);
    gpsti_a32_store(&self->busy, 0);
}

static void give_back(void* user_data) {
    lifetime* const self = (lifetime*)user_data;
    gpsti_a32_add(&self->n_released, 1);
    ask(self, IN_RELEASE);
}

static gpst_input a_frame(lifetime* self) {
    gpst_input input = GPST_ZERO;
    input.frame = kit_shape(SIDE, SIDE);
    input.frame.data = the_pixels;
    input.release = give_back;
    input.release_user_data = self;
    return input;
}

static gpst_result in_source(void* user_data, uint64_t index, gpst_input* out) {
    lifetime* const self = (lifetime*)user_data;
    ask(self, IN_SOURCE);
    *out = a_frame(self);
    return index < N_ITEMS ? GPST_OK : GPST_END;
}

static gpst_result in_sink(void* user_data, const gpst_item* item) {
    (void)item;
    ask((lifetime*)user_data, IN_SINK);
    return GPST_OK;
}

static void in_dropped(void* user_data, const gpst_item* item) {
    (void)item;
    ask((lifetime*)user_data, IN_DROPPED);
}

static gpst_result in_stage(void* user_data, gpst_task* task) {
    ask((lifetime*)user_data, task->stage_index == 0 ? IN_STAGE : IN_DEVICE);
    return GPST_OK;
}

static gpst_result in_batch(void* user_data, gpst_task* tasks, uint32_t n_tasks, gpst_result* results) {
    (void)tasks;
    (void)n_tasks;
    (void)results;
    ask((lifetime*)user_data, IN_BATCH);
    return GPST_OK;
}

static gpst_result in_init(void* user_data, uint32_t worker_index, void** worker_state) {
    (void)worker_index;
    *worker_state = user_data;
    ask((lifetime*)user_data, IN_INIT);
    return GPST_OK;
}

static void in_term(void* user_data, uint32_t worker_index, void* worker_state) {
    (void)worker_index;
    (void)worker_state;
    ask((lifetime*)user_data, IN_TERM);
}

static void describe(lifetime* self, gpst_stage_desc* stages, gpst_pipeline_desc* desc) {
    gpst_stage_host(&stages[0], GPST_SET(0), 0, in_stage, self);
    gpst_stage_device(&stages[1], GPST_SET(0), 0, in_stage, self);
    if (self->asked == IN_BATCH) {
        stages[0].func = NULL;
        stages[0].batch_func = in_batch;
        stages[0].batch_most = 1;
    }
    stages[0].worker_init = in_init;
    stages[0].worker_term = in_term;
    desc->stages = stages;
    desc->n_stages = 2;
    desc->n_slots = 2;
    desc->full_policy = self->asked == IN_DROPPED ? GPST_FULL_LATEST_ONLY : GPST_FULL_BLOCK;
    desc->dropped = in_dropped;
    desc->sink = self->has_sink ? in_sink : NULL;
    desc->source = self->pulls ? in_source : NULL;
    desc->source_user_data = desc->sink_user_data = desc->dropped_user_data = self;
    desc->n_results = 1; /* the frame: it comes back when the result is released */
    desc->results[0] = gpst_result_of(0, GPST_AS_IT_IS);
}

/* N_ITEMS frames; the last result stays in our hands. */
static void push_all(lifetime* self) {
    const gpst_item* item = NULL;
    for (int n = 0; n < N_ITEMS; n++) {
        const gpst_input input = a_frame(self);
        gpst_result result = gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL);
        while (result == GPST_ERROR_WOULD_BLOCK) { /* results of what callbacks have submitted wait */
            assert_int_equal(gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &item), GPST_OK);
            gpst_pipeline_release(self->pipeline, item);
            result = gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL);
        }
        if (GPST_FAILED(result))
            fail_msg("%s", gpst_last_reason());
        if (self->has_sink || result != GPST_OK || self->asked == IN_DROPPED)
            continue;
        assert_int_equal(gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &item), GPST_OK);
        if (n < N_ITEMS - 1)
            gpst_pipeline_release(self->pipeline, item);
    }
}

static void live_once(const char* backend, site asked, bool pulls, bool has_sink, gpst_run_mode mode) {
    lifetime* const self = &the_lifetime;
    gpst_stage_desc stages[2];
    gpst_pipeline_desc desc = GPST_ZERO;
    memset(self, 0, sizeof *self);
    self->kit = kit_open(backend, 2);
    self->asked = asked;
    self->pulls = pulls;
    self->has_sink = has_sink;
    describe(self, stages, &desc);
    desc.mode = mode;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &desc, &self->pipeline), GPST_OK);
    if (pulls)
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    else
        push_all(self);
    assert_int_equal(gpst_context_destroy(self->kit->context), GPST_ERROR_STATE);
    gpsti_a32_store(&self->kit->log.n_errors, 0); /* it was said */
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    assert_true(gpsti_a32_load(&self->n_released) >= N_ITEMS);
    const bool always = (asked != IN_SOURCE || pulls) && (asked != IN_SINK || has_sink) && asked != IN_DROPPED;
    if (always && gpsti_a32_load(&self->n_asked) == 0)
        fail_msg("site %d was never reached", (int)asked);
    kit_close(self->kit);
}

static void test_from_each_callback(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_DEFAULT, GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    static const char* const backends[] = {"cpu", "sim"};
    (void)state;
    for (int b = 0; b < 2; b++)
        for (int at = 0; at < N_SITES; at++)
            for (int has_sink = 0; has_sink < 2; has_sink++) {
                live_once(backends[b], (site)at, false, has_sink != 0, GPST_RUN_DEFAULT);
                for (int m = 0; m < 3; m++)
                    live_once(backends[b], (site)at, true, has_sink != 0, modes[m]);
            }
}

/* ---- while others are inside of calls ------------------------------------------------------------------------------ */

typedef struct caller {
    gpsti_thread thread;
    gpst_pipeline* pipeline;
    int call;
    gpsti_a32 begun;
    gpst_result result;
} caller;

static gpst_result endless_source(void* user_data, uint64_t index, gpst_input* out) {
    (void)index;
    (void)out;
    gpsti_a32_store((gpsti_a32*)user_data, 1);
    return GPST_OK;
}

static void call_main(void* argument) {
    caller* const self = (caller*)argument;
    const gpst_item* item = NULL;
    gpst_input input = GPST_ZERO;
    self->result = GPST_OK;
    if (self->call == 1) /* it has the one slot, whose result nobody takes: the next one waits */
        self->result = gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL);
    if (self->call != 0)
        gpsti_a32_store(&self->begun, 1);
    if (self->call == 0)
        self->result = gpst_pipeline_run(self->pipeline);
    if (self->call == 1 && self->result == GPST_OK)
        self->result = gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL);
    if (self->call == 2)
        self->result = gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &item);
    if (self->call == 3)
        self->result = gpst_pipeline_drain(self->pipeline, GPST_FOREVER);
}

static bool is_inside(gpst_pipeline* pipeline) {
    gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
    const bool inside = pipeline->threads->n_inside > 0;
    gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    return inside;
}

/* Destroy cancels, and waits until the others have left their calls. */
static void test_while_others_are_inside(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_DEFAULT, GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    (void)state;
    for (int call = 0; call < 4; call++)
        for (int m = 0; m < (call == 0 ? 3 : 1); m++)
            for (int late = 0; late < 2; late++) { /* the call waits already; or is about to */
                kit* const self = kit_open("cpu", 2);
                gpst_pipeline_desc desc = kit_simple(self, 0, kit_nothing);
                caller other = GPST_ZERO;
                desc.sink = NULL;
                desc.n_slots = call == 1 ? 1 : 2;
                desc.mode = call == 0 ? modes[m] : GPST_RUN_DEFAULT;
                desc.source = call == 0 ? endless_source : NULL;
                desc.source_user_data = &other.begun;
                assert_int_equal(gpst_pipeline_create(self->context, &desc, &other.pipeline), GPST_OK);
                other.call = call;
                if (call == 3) { /* it waits for a result that nobody takes */
                    const gpst_input input = GPST_ZERO;
                    assert_int_equal(gpst_pipeline_submit(other.pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
                }
                assert_int_equal(gpsti_thread_start(&other.thread, call_main, &other, "caller"), GPST_OK);
                while (gpsti_a32_load(&other.begun) == 0 || (call > 0 && !is_inside(other.pipeline)))
                    gpsti_sleep_ns(20000);
                if (late)
                    gpsti_sleep_ns(2000000);
                assert_int_equal(gpst_pipeline_destroy(other.pipeline), GPST_OK);
                gpsti_thread_join(&other.thread);
                assert_true(other.result == (call == 0   ? GPST_ERROR_CANCELLED
                                             : call == 1 ? GPST_ERROR_CLOSED
                                             : call == 2 ? GPST_END
                                                         : GPST_OK));
                kit_close(self);
            }
}

/* ---- the order of destroys ------------------------------------------------------------------------------------------ */

typedef struct objects {
    gpst_pipeline *pulled, *pushed;
    gpst_pool* pool;
    gpst_ring* ring;
    gpst_reader* reader;
    gpst_memory* memory;
    gpst_stream* stream;
} objects;

enum { N_OBJECTS = 7 };

static void make_object(kit* self, objects* all, int k) {
    gpst_device* const device = gpst_context_device(self->context);
    gpst_pipeline_desc desc = kit_simple(self, 3, kit_nothing);
    gpst_pool_desc pool = GPST_ZERO;
    gpst_reader_desc reader = GPST_ZERO;
    gpst_ring_desc ring = GPST_ZERO;
    gpst_result result = GPST_OK;
    ring.max_slots = 2;
    ring.slot_bytes = 64;
    self->n_sinks = self->next_source = 0;
    memset(self->seen, 0, sizeof self->seen);
    if (k == 0)
        result = gpst_pipeline_create(self->context, &desc, &all->pulled);
    if (k == 0 && result == GPST_OK)
        result = gpst_pipeline_run(all->pulled);
    desc.source = NULL;
    desc.sink = NULL;
    if (k == 1)
        result = gpst_pipeline_create(self->context, &desc, &all->pushed);
    if (k == 2)
        result = gpst_pool_create(self->context, &pool, &all->pool);
    if (k == 3)
        result = gpst_ring_create(self->context, &ring, &all->ring);
    if (k == 4)
        result = gpst_reader_create(self->context, &reader, &all->reader);
    if (k == 5)
        result = gpst_memory_create(device, GPST_MEMORY_HOST, 64, &all->memory);
    if (k == 6)
        result = gpst_stream_create(device, &all->stream);
    assert_int_equal(result, GPST_OK);
}

static void unmake_object(objects* all, int k) {
    if (k == 0)
        assert_int_equal(gpst_pipeline_destroy(all->pulled), GPST_OK);
    if (k == 1)
        assert_int_equal(gpst_pipeline_destroy(all->pushed), GPST_OK);
    if (k == 2)
        assert_int_equal(gpst_pool_destroy(all->pool), GPST_OK);
    if (k == 3)
        gpst_ring_destroy(all->ring);
    if (k == 4)
        gpst_reader_destroy(all->reader);
    if (k == 5)
        gpst_memory_destroy(all->memory);
    if (k == 6)
        gpst_stream_destroy(all->stream);
}

/* Made in this order and unmade in that one, the context asked each time: it goes when the last one has gone. */
static void test_every_order(void** state) {
    (void)state;
    for (int made = 0; made < N_OBJECTS; made++)
        for (int step = 1; step < N_OBJECTS; step++) /* 7 is prime: each step visits all */
            for (int b = 0; b < 2; b++) {
                kit* const self = kit_open(b ? "sim" : "cpu", 1);
                objects all;
                memset(&all, 0, sizeof all);
                for (int k = 0; k < N_OBJECTS; k++)
                    make_object(self, &all, (made + k) % N_OBJECTS);
                for (int k = 0; k < N_OBJECTS; k++) {
                    assert_int_equal(gpst_context_destroy(self->context), GPST_ERROR_STATE);
                    test_reason_has("gpst_context_destroy: ", "destroy them first");
                    unmake_object(&all, (made + k * step) % N_OBJECTS);
                }
                gpsti_a32_store(&self->log.n_errors, 0);
                kit_close(self);
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_from_each_callback),
        cmocka_unit_test(test_while_others_are_inside),
        cmocka_unit_test(test_every_order),
    };
    return cmocka_run_group_tests_name("pipeline_lifetime", tests, NULL, NULL);
}
