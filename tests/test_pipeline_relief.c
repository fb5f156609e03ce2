/* tests/test_pipeline_relief.c -- too little memory: nothing is taken that somebody still needs, what is needed again is
   made again, and who waits or is tried again holds up nobody. */
#include "pipeline_kit.h"

#define WIDTH 64u
#define HEIGHT 64u
#define BYTES (WIDTH * HEIGHT)
#define PAGE 4096u /* what one picture takes */
#define SOON_NS (20 * (int64_t)1000000000)

static uint8_t frame[BYTES];

static kit* open_short(const char* opener, const char* backend, uint32_t n_workers, uint64_t max_device_bytes,
                       bool require_backend) {
    gpst_context_desc context = GPST_ZERO;
    kit* const self = kit_open_in(opener, backend, n_workers);
    context.backend = backend;
    context.n_workers = n_workers;
    context.require_backend = require_backend;
    context.max_device_bytes = max_device_bytes;
    kit_reopen(self, &context);
    return self;
}

/* Of pushed items, whose results the kit's sink gets. */
static gpst_pipeline_desc pushed_desc(kit* self, uint32_t n_slots, uint32_t set, gpst_place place) {
    gpst_pipeline_desc desc = kit_desc(self);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.source = NULL;
    desc.n_slots = n_slots;
    desc.results[0] = gpst_result_of(set, place);
    desc.n_results = 1;
    return desc;
}

static gpst_result submit_frame(gpst_pipeline* pipeline) {
    gpst_input input = GPST_ZERO;
    input.frame = kit_shape(WIDTH, HEIGHT);
    input.frame.data = frame;
    return gpst_pipeline_submit(pipeline, &input, SOON_NS, NULL);
}

static gpst_mask_desc threshold_of_127(void) {
    gpst_mask_desc threshold = GPST_ZERO;
    threshold.kind = GPST_MASK_THRESHOLD;
    threshold.threshold = 127.0f;
    return threshold;
}

/* ---- results in the user's hands ----------------------------------------------------------------- */

static void check_held(const kit* self, const gpst_item* item, uint8_t wanted) {
    static uint8_t seen[BYTES];
    const gpst_set* const set = &item->sets[1];
    gpst_stream* stream = NULL;
    assert_int_equal(item->result, GPST_OK);
    assert_int_equal(set->n, 1);
    assert_int_equal(gpst_stream_create(gpst_context_device(self->context), &stream), GPST_OK);
    if (set->on_device)
        assert_int_equal(gpst_copy(seen, set->pictures[0].data, BYTES, stream), GPST_OK);
    else
        memcpy(seen, set->pictures[0].data, BYTES);
    assert_int_equal(gpst_stream_synchronize(stream), GPST_OK);
    gpst_stream_destroy(stream);
    for (uint32_t i = 0; i < BYTES; i++)
        assert_int_equal(seen[i], wanted);
}

/* There is room for one item. The result that is held stays what it is, wherever the next one is made. */
static void test_a_held_result_stays(void** state) {
    static const gpst_place places[] = {GPST_AS_IT_IS, GPST_ON_DEVICE, GPST_ON_HOST};
    gpst_mask_desc threshold = threshold_of_127();
    (void)state;
    for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
        kit* const self = open_short(__func__, "sim:launch_us=0", 1, 2 * PAGE, false);
        gpst_pipeline* pipeline = NULL;
        const gpst_item* items[2] = {NULL, NULL};
        gpst_stage_mask(&self->stages[0], 0, 1, &threshold);
        self->n_stages = 1;
        gpst_pipeline_desc desc = pushed_desc(self, 4, 1, places[p]);
        desc.sink = NULL;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
        for (uint32_t i = 0; i < 2; i++) {
            memset(frame, i == 1 ? 0 : 255, sizeof frame);
            assert_int_equal(submit_frame(pipeline), GPST_OK);
        }
        for (uint32_t i = 0; i < 2; i++)
            assert_int_equal(gpst_pipeline_next_result(pipeline, SOON_NS, &items[i]), GPST_OK);
        for (uint32_t i = 0; i < 2; i++)
            check_held(self, items[i], i == 1 ? 0 : 255);
        for (uint32_t i = 0; i < 2; i++)
            gpst_pipeline_release(pipeline, items[i]);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}

/* A result that is wanted as it is, and is on the host since a HOST stage read it, holds nothing on the device: there is
   room for one item, and one after the other is computed there while nobody releases any. */
static void test_a_result_on_the_host_holds_no_device_memory(void** state) {
    enum { N_HELD = 3 };
    gpst_mask_desc threshold = threshold_of_127();
    gpst_pipeline* pipeline = NULL;
    const gpst_item* items[N_HELD];
    gpst_stats stats;
    (void)state;
    kit* const self = open_short(__func__, "sim:launch_us=0", 1, 2 * PAGE, false);
    gpst_stage_mask(&self->stages[0], 0, 1, &threshold);
    gpst_stage_host(&self->stages[1], GPST_SET(1), 0, kit_nothing, self);
    self->n_stages = 2;
    gpst_pipeline_desc desc = pushed_desc(self, 4, 1, GPST_AS_IT_IS);
    desc.sink = NULL;
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    memset(frame, 255, sizeof frame);
    for (uint32_t i = 0; i < N_HELD; i++)
        assert_int_equal(submit_frame(pipeline), GPST_OK);
    for (uint32_t i = 0; i < N_HELD; i++) {
        assert_int_equal(gpst_pipeline_next_result(pipeline, SOON_NS, &items[i]), GPST_OK);
        check_held(self, items[i], 255);
        assert_false(items[i]->sets[1].on_device);
    }
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(stats.device_fallbacks, 0);
    for (uint32_t i = 0; i < N_HELD; i++)
        gpst_pipeline_release(pipeline, items[i]);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* Results that are held when their pipeline is destroyed give back what they had: the memory is there for all of the
   next pipeline's. */
static void test_a_destroyed_pipeline_leaves_nothing(void** state) {
    enum { N_HELD = 6, N_ROUNDS = 5 };
    static const char* const backends[] = {"cpu", "sim:launch_us=0"};
    gpst_mask_desc threshold = threshold_of_127();
    (void)state;
    for (size_t b = 0; b < 2 * N_ROUNDS; b++) {
        static kit* self = NULL;
        const bool on_device = b >= N_ROUNDS;
        gpst_pipeline* pipeline = NULL;
        const gpst_item* item = NULL;
        if (b % N_ROUNDS == 0) {
            gpst_context_desc context = GPST_ZERO;
            self = kit_open(backends[on_device], 1);
            context.backend = backends[on_device];
            context.n_workers = 1;
            context.require_backend = on_device;
            context.max_host_bytes = on_device ? 0 : 3 * N_HELD * PAGE / 2;
            context.max_device_bytes = on_device ? 3 * N_HELD * PAGE / 2 : 0;
            kit_reopen(self, &context);
        }
        gpst_stage_host(&self->stages[0], GPST_SET(0), 0, kit_nothing, self);
        if (on_device)
            gpst_stage_mask(&self->stages[0], 0, 1, &threshold);
        self->n_stages = 1;
        gpst_pipeline_desc desc = pushed_desc(self, 1, on_device ? 1 : 0, on_device ? GPST_ON_DEVICE : GPST_AS_IT_IS);
        desc.sink = NULL;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
        for (uint32_t i = 0; i < N_HELD; i++) {
            if (GPST_FAILED(submit_frame(pipeline)))
                fail_msg("round %u, item %u: %s", (unsigned)b, i, gpst_last_reason());
            if (GPST_FAILED(gpst_pipeline_next_result(pipeline, SOON_NS, &item)))
                fail_msg("round %u, item %u: %s", (unsigned)b, i, gpst_last_reason());
            assert_int_equal(item->result, GPST_OK);
        }
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK); /* the results are still ours */
        if (b % N_ROUNDS == N_ROUNDS - 1)
            kit_close(self);
    }
}

/* ---- one item at a time ---------------------------------------------------------------------------- */

static gpsti_a32 n_host_calls;

static gpst_result count_call(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    (void)gpsti_a32_add(&n_host_calls, 1);
    return GPST_OK;
}

/* Three device steps with the host in between, whose functions are called once for each item; of four sets two are
   needed at once. */
static void run_one_by_one(const char* opener, const char* backend, uint64_t max_device_bytes, bool require_backend) {
    gpst_mask_desc threshold = threshold_of_127();
    gpst_pipeline* pipeline = NULL;
    kit* const self = open_short(opener, backend, 1, max_device_bytes, require_backend);
    for (uint32_t s = 0; s < 3; s++) {
        gpst_stage_mask(&self->stages[2 * s], s, s + 1, &threshold);
        gpst_stage_host(&self->stages[2 * s + 1], GPST_SET(0), 0, count_call, self);
    }
    self->n_stages = 5;
    gpsti_a32_store(&n_host_calls, 0);
    gpst_pipeline_desc desc = pushed_desc(self, 1, 3, GPST_ON_HOST);
    desc.sink = NULL;
    for (uint32_t i = 0; i < BYTES; i++)
        frame[i] = (uint8_t)(i * 7 + i / WIDTH);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    for (uint32_t n = 0; n < 4; n++) {
        const gpst_item* item = NULL;
        assert_int_equal(submit_frame(pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_next_result(pipeline, SOON_NS, &item), GPST_OK);
        if (item->result != GPST_OK)
            fail_msg("%s, %llu bytes: item %u: %s", backend, (unsigned long long)max_device_bytes, n, item->reason);
        const uint8_t* const got = (const uint8_t*)item->sets[3].pictures[0].data;
        for (uint32_t i = 0; i < BYTES; i++)
            assert_int_equal(got[i], frame[i] > 127 ? 255 : 0);
        gpst_pipeline_release(pipeline, item);
        assert_int_equal(gpsti_a32_load(&n_host_calls), 2 * (n + 1));
    }
    if (require_backend)
        assert_int_equal(gpsti_a32_load(&self->log.n_warnings), 0);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* What later steps need no more was given back; then the device is lost, and with it all that it had: the CPU begins
   with the frame. At every point. */
static void test_what_was_given_back_is_made_again(void** state) {
    char backend[64];
    (void)state;
    for (uint32_t lose_at = 1; lose_at <= 12; lose_at++)
        for (uint32_t sets = 2; sets <= 4; sets++) {
            snprintf(backend, sizeof backend, "sim:launch_us=0,lose_at=%u", lose_at);
            run_one_by_one(__func__, backend, sets * PAGE, false);
        }
}

/* What the item before left in the slot is no reason to fail. */
static void test_alone_it_fits(void** state) {
    (void)state;
    for (uint32_t pages = 2; pages <= 4; pages++)
        run_one_by_one(__func__, "sim:launch_us=0", pages * PAGE, true);
}

/* What another pipeline's slots hold for nobody is no reason, either. */
static void test_idle_pipelines_give_back(void** state) {
    gpst_mask_desc threshold = threshold_of_127();
    gpst_pipeline* pipelines[3];
    kit* const self = open_short(__func__, "sim:launch_us=0", 1, 2 * PAGE, true);
    (void)state;
    gpst_stage_mask(&self->stages[0], 0, 1, &threshold);
    self->n_stages = 1;
    gpst_pipeline_desc desc = pushed_desc(self, 1, 1, GPST_ON_HOST);
    desc.sink = NULL;
    for (uint32_t p = 0; p < 3; p++)
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipelines[p]), GPST_OK);
    for (uint32_t n = 0; n < 9; n++) {
        const gpst_item* item = NULL;
        memset(frame, n % 2 ? 0 : 255, sizeof frame);
        assert_int_equal(submit_frame(pipelines[n % 3]), GPST_OK);
        assert_int_equal(gpst_pipeline_next_result(pipelines[n % 3], SOON_NS, &item), GPST_OK);
        check_held(self, item, frame[0]);
        gpst_pipeline_release(pipelines[n % 3], item);
    }
    for (uint32_t p = 0; p < 3; p++)
        assert_int_equal(gpst_pipeline_destroy(pipelines[p]), GPST_OK);
    kit_close(self);
}

/* ---- batches taken apart ------------------------------------------------------------------------------- */

static gpst_result nap(void* user_data, gpst_task* task) {
    (void)user_data;
    gpsti_sleep_ns(20000 * (1 + (int64_t)(task->item->index % 5)));
    return GPST_OK;
}

/* Items of batches that found no room are tried again, in front of others: what the device is done with must not stand
   behind them, for it is what they wait for. */
static void test_what_is_done_goes_first(void** state) {
    enum { N = 2000 };
    gpst_mask_desc threshold = threshold_of_127();
    gpst_pipeline* pipeline = NULL;
    (void)state;
    for (int round = 0; round < 4; round++) {
        kit* const self = open_short(__func__, "sim:launch_us=0", 2, 10 * PAGE, false);
        gpst_stage_mask(&self->stages[0], 0, 1, &threshold);
        gpst_stage_host(&self->stages[1], GPST_SET(0), 0, nap, NULL);
        gpst_stage_mask(&self->stages[2], 1, 2, &threshold);
        self->stages[0].batch_most = self->stages[2].batch_most = 4;
        self->n_stages = 3;
        gpst_pipeline_desc desc = pushed_desc(self, 12, 2, GPST_ON_HOST);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
        for (uint32_t i = 0; i < N; i++)
            assert_int_equal(submit_frame(pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
        assert_int_equal(self->n_ok, N);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}

/* ---- too little host memory ------------------------------------------------------------------------------- */

static gpst_result same_frame(void* user_data, uint64_t index, gpst_input* out) {
    const kit* const self = (const kit*)user_data;
    if (index >= self->n_items)
        return GPST_END;
    if (index % 5 == 2)
        return gpst_task_fail(NULL, GPST_ERROR_FORMAT, "no frame");
    out->frame = kit_shape(WIDTH, HEIGHT);
    out->frame.data = frame;
    return GPST_OK;
}

static gpst_result look_at_frame(void* user_data, gpst_task* task) {
    kit_check((kit*)user_data, task->item->sets[0].n == 1);
    return GPST_OK;
}

/* What the source did not give, or gave and there was no memory for, does not begin anew without it. */
static void test_nothing_begins_without_its_frame(void** state) {
    gpst_mask_desc threshold = threshold_of_127();
    (void)state;
    for (uint32_t n_free = 1; n_free <= 4; n_free++) {
        gpst_context_desc context = GPST_ZERO;
        gpst_pool* pool = NULL;
        gpst_buffer loan;
        kit* const self = kit_open("cpu", 4);
        context.n_workers = 4;
        context.max_host_bytes = 8 * PAGE;
        kit_reopen(self, &context);
        assert_int_equal(gpst_pool_create(self->context, NULL, &pool), GPST_OK);
        assert_int_equal(gpst_pool_acquire(pool, (8 - n_free) * PAGE, 0, &loan), GPST_OK);
        gpst_stage_host(&self->stages[0], GPST_SET(0), 0, look_at_frame, self);
        gpst_stage_mask(&self->stages[1], 0, 1, &threshold);
        self->n_stages = 2;
        self->n_items = 40;
        gpst_pipeline_desc desc = kit_desc(self);
        memset(desc.capacity, 0, sizeof desc.capacity);
        desc.source = same_frame;
        desc.source_user_data = self;
        desc.n_slots = 4;
        desc.mode = GPST_RUN_ENGINE;
        desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
        desc.n_results = 1;
        (void)kit_run(self, &desc, NULL);
        for (uint64_t n = 0; n < self->n_items; n++)
            if (n % 5 == 2)
                assert_int_equal(self->results[n], GPST_ERROR_FORMAT);
            else
                assert_true(self->results[n] == GPST_OK || self->results[n] == GPST_ERROR_BUDGET);
        gpst_pool_release(pool, &loan);
        assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
        kit_close(self);
    }
}

/* Of the first item 64 rows, of the others one. */
static gpst_result make_the_first_large(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(1024, task->item->index == 0 ? 64 : 1);
    gpst_image image;
    (void)user_data;
    return gpst_task_set_picture(task, 1, 0, &shape, &image);
}

/* What the next item is granted is what the largest of the latest 64 to 128 took, and an eighth more. */
static void test_the_next_one_is_granted_as_much(void** state) {
    static const struct {
        uint64_t n_items, bytes;
    } cases[] = {{1, 64 * 1024}, {65, 64 * 1024}, {128, 64 * 1024}, {129, PAGE}};
    (void)state;
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = kit_simple(self, cases[c].n_items, make_the_first_large);
        self->stages[0].writes = GPST_SET(1);
        desc.capacity[1] = 1;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
        const gpsti_locked locked = gpsti_lock(self->context);
        const uint64_t need = gpsti_grant_need(self->pipeline, GPSTI_OF_HOST);
        gpsti_unlock(locked);
        assert_int_equal(need, cases[c].bytes + cases[c].bytes / 8);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_close(self);
    }
}

static gpsti_a32 is_open, n_inside;

static gpst_result wait_until_open(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    (void)gpsti_a32_add(&n_inside, 1);
    for (int ms = 0; ms < 20000 && gpsti_a32_load(&is_open) == 0; ms++)
        gpsti_sleep_ns(1000000);
    return GPST_OK;
}

/* Items and threads that wait for memory. */
static uint32_t n_waiting(kit* self) {
    uint32_t n = 0;
    const gpsti_locked locked = gpsti_lock(self->context);
    for (const gpsti_waiter* waiter = self->context->grants->waiters; waiter; waiter = waiter->next)
        n++;
    gpsti_unlock(locked);
    return n;
}

/* On the CPU a camera's mean waits for host memory as pictures do, while an item goes on that has some. */
static void test_a_mean_waits_for_memory(void** state) {
    gpst_mask_desc mean = GPST_ZERO;
    gpst_context_desc context = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    kit* const self = kit_open("cpu", 2);
    (void)state;
    context.n_workers = 2;
    context.max_host_bytes = 21 * PAGE; /* an item takes 2 pages and its camera's mean 9: not both at once */
    kit_reopen(self, &context);
    mean.kind = GPST_MASK_TIME;
    gpst_stage_mask(&self->stages[0], 0, 1, &mean);
    gpst_stage_host(&self->stages[1], GPST_SET(1), 0, wait_until_open, NULL);
    self->n_stages = 2;
    gpst_pipeline_desc desc = pushed_desc(self, 2, 1, GPST_ON_HOST);
    gpsti_a32_store(&is_open, 0);
    gpsti_a32_store(&n_inside, 0);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    for (uint32_t camera = 0; camera < 2; camera++) {
        gpst_input input = GPST_ZERO;
        input.frame = kit_shape(WIDTH, HEIGHT);
        input.frame.data = frame;
        input.camera = camera;
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, SOON_NS, NULL), GPST_OK);
        for (int ms = 0; ms < 20000 && gpsti_a32_load(&n_inside) == 0; ms++)
            gpsti_sleep_ns(1000000);
    }
    for (int ms = 0; ms < 20000 && n_waiting(self) == 0 && self->n_sinks == 0; ms++)
        gpsti_sleep_ns(1000000);
    assert_int_equal(n_waiting(self), 1);
    gpsti_a32_store(&is_open, 1);
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
    assert_int_equal(self->n_ok, 2);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* Each asks for its pages when it is told to; the first one has them then, until the end. */
static gpst_result take_pages(void* user_data, gpst_task* task) {
    static const uint32_t pages[] = {16, 16, 12};
    const gpst_image shape = kit_shape(PAGE, pages[task->item->index]);
    const bool first = task->item->index == 0;
    gpst_image image;
    (void)user_data;
    (void)gpsti_a32_add(&n_inside, 1);
    while (gpsti_a32_load(&is_open) < (first ? 1 : 2))
        gpsti_sleep_ns(20000);
    const gpst_result result = gpst_task_set_picture(task, 1, 0, &shape, &image);
    (void)gpsti_a32_add(&n_inside, 1);
    while (first && gpsti_a32_load(&is_open) < 3)
        gpsti_sleep_ns(20000);
    return result;
}

static void await_inside(uint32_t n) {
    for (int ms = 0; ms < 20000 && gpsti_a32_load(&n_inside) < n; ms++)
        gpsti_sleep_ns(1000000);
}

/* Each of three is granted 10 pages of 40; the first one takes 16, another pool the rest. Of two that wait the older
   one lacks 6 pages and the younger one 2: the 4 that come back are nobody's. */
static void test_nobody_passes_an_older_one(void** state) {
    gpst_context_desc context = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_pool* pool = NULL;
    gpst_buffer loan;
    kit* const self = kit_open("cpu", 3);
    (void)state;
    context.n_workers = 3;
    context.max_host_bytes = 40 * PAGE;
    kit_reopen(self, &context);
    gpst_stage_host(&self->stages[0], 0, GPST_SET(1), take_pages, self);
    self->n_stages = 1;
    gpst_pipeline_desc desc = pushed_desc(self, 3, 1, GPST_ON_HOST);
    gpsti_a32_store(&is_open, 0);
    gpsti_a32_store(&n_inside, 0);
    assert_int_equal(gpst_pool_create(self->context, NULL, &pool), GPST_OK);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    for (int n = 0; n < 3; n++)
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, SOON_NS, NULL), GPST_OK);
    await_inside(3);
    gpsti_a32_store(&is_open, 1);
    await_inside(4);
    assert_int_equal(gpst_pool_acquire(pool, 4 * PAGE, 0, &loan), GPST_OK);
    gpsti_a32_store(&is_open, 2);
    for (int ms = 0; ms < 20000 && n_waiting(self) < 2; ms++)
        gpsti_sleep_ns(1000000);
    gpst_pool_release(pool, &loan);
    const gpsti_locked locked = gpsti_lock(self->context);
    (void)gpsti_grants_serve(locked);
    uint32_t n_answered = 0;
    for (const gpsti_waiter* waiter = self->context->grants->waiters; waiter; waiter = waiter->next)
        n_answered += waiter->answer != GPSTI_ANSWER_NONE ? 1 : 0;
    gpsti_unlock(locked);
    assert_int_equal(n_answered, 0);
    assert_int_equal(n_waiting(self), 2);
    gpsti_a32_store(&is_open, 3);
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
    assert_int_equal(self->n_ok, 3);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    kit_close(self);
}

/* Item 0 takes 20 pages, then item 1 wants 24, while item 2 stays in its call. */
static gpst_result take_or_stay(void* user_data, gpst_task* task) {
    static const uint32_t pages[] = {20, 24, 1}, opens_at[] = {1, 1, 3};
    const uint64_t n = task->item->index;
    const gpst_image shape = kit_shape(PAGE, pages[n]);
    gpst_image image;
    (void)user_data;
    (void)gpsti_a32_add(&n_inside, 1);
    while (gpsti_a32_load(&is_open) < opens_at[n] || (n == 1 && gpsti_a32_load(&n_inside) < 4))
        gpsti_sleep_ns(20000);
    const gpst_result result = gpst_task_set_picture(task, 1, 0, &shape, &image);
    (void)gpsti_a32_add(&n_inside, 1);
    while (n == 0 && gpsti_a32_load(&is_open) < 2)
        gpsti_sleep_ns(20000);
    return result;
}

/* An item's end is enough for who waits: nobody needs to come to rest for that. */
static void test_an_end_serves_who_waits(void** state) {
    gpst_context_desc context = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    kit* const self = kit_open("cpu", 3);
    (void)state;
    context.n_workers = 3;
    context.max_host_bytes = 40 * PAGE;
    kit_reopen(self, &context);
    gpst_stage_host(&self->stages[0], 0, GPST_SET(1), take_or_stay, self);
    self->n_stages = 1;
    gpst_pipeline_desc desc = pushed_desc(self, 3, 1, GPST_ON_HOST);
    gpsti_a32_store(&is_open, 0);
    gpsti_a32_store(&n_inside, 0);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    for (int n = 0; n < 3; n++)
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, SOON_NS, NULL), GPST_OK);
    await_inside(3);
    gpsti_a32_store(&is_open, 1);
    for (int ms = 0; ms < 20000 && n_waiting(self) == 0; ms++)
        gpsti_sleep_ns(1000000);
    assert_int_equal(gpsti_a32_load(&n_inside), 4);
    gpsti_a32_store(&is_open, 2);
    await_inside(5);
    const uint32_t n = gpsti_a32_load(&n_inside);
    gpsti_a32_store(&is_open, 3);
    assert_int_equal(n, 5);
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
    assert_int_equal(self->n_ok, 3);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

static gpst_result take(gpst_task* task, uint32_t set, uint32_t pages) {
    const gpst_image shape = kit_shape(PAGE, pages);
    gpst_image image;
    return gpst_task_set_picture(task, set, 0, &shape, &image);
}

static void open_for_two(void) {
    (void)gpsti_a32_add(&is_open, 1);
    for (int ms = 0; ms < 20000 && gpsti_a32_load(&is_open) < 2; ms++)
        gpsti_sleep_ns(1000000);
}

static bool gave_way_before;

/* Item 0 takes 20 pages and wants 16 more, once item 1 has its first ones; */
static gpst_result take_and_want(void* user_data, gpst_task* task) {
    gpsti_item* const item = (gpsti_item*)(uintptr_t)task->item;
    if (task->item->index > 1) { /* in the place of item 0: another life */
        kit_check((kit*)user_data, !item->gave_way);
        return GPST_OK;
    }
    (void)gpsti_a32_add(&n_inside, 1);
    await_inside(2);
    if (task->item->index == 1)
        return GPST_OK;
    if (gave_way_before)
        item->gave_way = true;
    GPSTI_TRY(take(task, 1, 20));
    open_for_two();
    return take(task, 2, 16);
}

/* and item 1 takes 8, in order, and wants 24 more. */
static gpst_result take_in_order(void* user_data, gpst_task* task) {
    (void)user_data;
    return task->item->index == 1 ? take(task, 3, 8) : GPST_OK;
}

static gpst_result want_more(void* user_data, gpst_task* task) {
    (void)user_data;
    if (task->item->index != 1)
        return GPST_OK;
    open_for_two();
    return take(task, 4, 24);
}

/* The younger one cannot begin anew, since a stage with an order has had it; with the memory of the older one it comes
   to its end, and that one begins anew. Once in its life: the next time the younger one is told that there is no more. */
static void run_two(const char* opener) {
    gpst_context_desc context = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_stats stats;
    kit* const self = kit_open_in(opener, "cpu", 2);
    context.n_workers = 2;
    context.max_host_bytes = 40 * PAGE;
    kit_reopen(self, &context);
    gpst_stage_host(&self->stages[0], 0, GPST_SET(1) | GPST_SET(2), take_and_want, self);
    gpst_stage_host(&self->stages[1], 0, GPST_SET(3), take_in_order, self);
    gpst_stage_host(&self->stages[2], GPST_SET(1) | GPST_SET(2) | GPST_SET(3), GPST_SET(4), want_more, self);
    gpst_stage_host(&self->stages[3], GPST_SET(4), 0, kit_nothing, self); /* what is read so may be left out */
    self->stages[1].ordered = true;
    self->n_stages = 4;
    gpst_pipeline_desc desc = pushed_desc(self, 2, 1, GPST_ON_HOST);
    desc.as_ready = self->as_ready = true;
    desc.n_results = 0;
    gpsti_a32_store(&is_open, 0);
    gpsti_a32_store(&n_inside, 0);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    for (uint32_t camera = 0; camera < 2; camera++) {
        gpst_input input = GPST_ZERO;
        input.camera = camera;
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, SOON_NS, NULL), GPST_OK);
    }
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &stats);
    if (self->n_ok != (gave_way_before ? 1 : 2))
        fail_msg("%s: %s", self->failed_stage, self->failed_reason);
    assert_int_equal(strstr(kit_why_not(&stats, "host_memory"), "items began anew 1 times") != NULL, !gave_way_before);
    assert_int_equal(self->results[1], gave_way_before ? GPST_ERROR_BUDGET : GPST_OK);
    const gpst_input another = GPST_ZERO;
    assert_int_equal(gpst_pipeline_submit(pipeline, &another, SOON_NS, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

static void test_the_oldest_gives_way(void** state) {
    (void)state;
    for (int k = 0; k < 2; k++) {
        gave_way_before = k == 1;
        run_two(__func__);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_held_result_stays),
        cmocka_unit_test(test_a_result_on_the_host_holds_no_device_memory),
        cmocka_unit_test(test_a_destroyed_pipeline_leaves_nothing),
        cmocka_unit_test(test_what_was_given_back_is_made_again),
        cmocka_unit_test(test_alone_it_fits),
        cmocka_unit_test(test_idle_pipelines_give_back),
        cmocka_unit_test(test_what_is_done_goes_first),
        cmocka_unit_test(test_nothing_begins_without_its_frame),
        cmocka_unit_test(test_the_next_one_is_granted_as_much),
        cmocka_unit_test(test_a_mean_waits_for_memory),
        cmocka_unit_test(test_nobody_passes_an_older_one),
        cmocka_unit_test(test_an_end_serves_who_waits),
        cmocka_unit_test(test_the_oldest_gives_way),
    };
    return cmocka_run_group_tests_name("pipeline_relief", tests, NULL, NULL);
}
