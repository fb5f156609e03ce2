/* tests/test_pipeline_ends.c -- a stage's end: what it still has when no more items of a camera come. */
#include "pipeline_kit.h"

enum { N_CAMERAS = 3, N_EACH = 5, N_SUMS = 2, MOST = 64 };
#define SOON_NS (20 * (int64_t)1000000000)

/* What the sink was told of one item. */
typedef struct told {
    uint64_t index;
    uint32_t camera;
    gpst_result result;
    uint32_t n_sums, sum; /* set 1: is there one, and what it says */
    bool is_count;        /* it is of the last stage's end */
    uint8_t masked;       /* the first pixel of set 2 */
    char stage[32];
} told;

typedef struct ends {
    kit* kit;
    uint32_t sums[N_CAMERAS];
    uint32_t n_seen[N_CAMERAS]; /* by the first stage, */
    gpsti_a32 n_counted[N_CAMERAS]; /* and by the last one, which has no order */
    uint32_t n_sum_ends[N_CAMERAS], n_count_ends[N_CAMERAS];
    uint32_t fail_at; /* the n-th item that the sum hands out fails; 0: none */
    gpsti_a32 in_sum; /* calls of the sum and its end now inside */
    uint32_t most_in_sum;
    told told[MOST];
    uint32_t n_told;
} ends;

static gpst_result put(gpst_task* task, uint32_t set, uint32_t value) {
    const gpst_image shape = kit_shape(sizeof value, 1);
    gpst_image picture;
    const gpst_result result = gpst_task_set_picture(task, set, 0, &shape, &picture);
    if (result == GPST_OK)
        memcpy(picture.data, &value, sizeof value);
    return result;
}

static void enter_sum(ends* self) {
    const uint32_t n = gpsti_a32_add(&self->in_sum, 1) + 1;
    self->most_in_sum = n > self->most_in_sum ? n : self->most_in_sum;
}

static gpst_result sum(void* user_data, gpst_task* task) {
    ends* const self = (ends*)user_data;
    const uint32_t camera = task->item->camera;
    uint32_t value = 0;
    enter_sum(self);
    memcpy(&value, task->item->sets[0].pictures[0].data, sizeof value);
    self->sums[camera] += value;
    self->n_seen[camera]++;
    const gpst_result result = put(task, 1, value);
    gpsti_a32_add(&self->in_sum, UINT32_MAX);
    return result;
}

/* The sum, and how many it is of. */
static gpst_result end_sum(void* user_data, gpst_task* task) {
    ends* const self = (ends*)user_data;
    const uint32_t camera = task->item->camera, n = ++self->n_sum_ends[camera];
    gpst_result result = GPST_END;
    enter_sum(self);
    kit_check(self->kit, self->n_seen[camera] == N_EACH);
    kit_check(self->kit, task->item->sets[0].n == 0);
    if (n == self->fail_at)
        result = gpst_task_fail(task, GPST_ERROR_FORMAT, "no sum today");
    else if (n <= N_SUMS)
        result = put(task, 1, n == 1 ? self->sums[camera] : self->n_seen[camera]);
    gpsti_a32_add(&self->in_sum, UINT32_MAX);
    return result;
}

static gpst_result count(void* user_data, gpst_task* task) {
    gpsti_a32_add(&((ends*)user_data)->n_counted[task->item->camera], 1);
    return GPST_OK;
}

static gpst_result end_count(void* user_data, gpst_task* task) {
    ends* const self = (ends*)user_data;
    const uint32_t camera = task->item->camera;
    if (++self->n_count_ends[camera] > 1)
        return GPST_END;
    return put(task, 3, gpsti_a32_load(&self->n_counted[camera]));
}

static gpst_input an_input(uint64_t index, uint32_t* value) {
    gpst_input input = GPST_ZERO;
    *value = 10 * (uint32_t)(index / N_CAMERAS) + 100;
    input.camera = (uint32_t)(index % N_CAMERAS);
    input.frame = kit_shape(sizeof *value, 1);
    input.frame.data = value;
    return input;
}

static gpst_result source(void* user_data, uint64_t index, gpst_input* out) {
    static uint32_t value;
    (void)user_data;
    *out = an_input(index, &value);
    return index < (uint64_t)N_CAMERAS * N_EACH ? GPST_OK : GPST_END;
}

static gpst_result sink(void* user_data, const gpst_item* item) {
    ends* const self = (ends*)user_data;
    kit_check(self->kit, self->n_told < MOST);
    told* const now = &self->told[self->n_told++];
    now->index = item->index;
    now->camera = item->camera;
    now->result = item->result;
    snprintf(now->stage, sizeof now->stage, "%s", item->stage);
    if (item->result != GPST_OK)
        return GPST_OK;
    now->n_sums = item->sets[1].n;
    now->is_count = item->sets[3].n > 0;
    if (now->n_sums > 0) {
        memcpy(&now->sum, item->sets[1].pictures[0].data, sizeof now->sum);
        now->masked = *(const uint8_t*)item->sets[2].pictures[0].data;
    } else if (now->is_count)
        memcpy(&now->sum, item->sets[3].pictures[0].data, sizeof now->sum);
    return GPST_OK;
}

static gpst_pipeline_desc describe(ends* self) {
    static gpst_mask_desc threshold;
    kit* const its = self->kit;
    threshold.kind = GPST_MASK_THRESHOLD;
    threshold.threshold = 40.0f;
    gpst_stage_host(&its->stages[0], GPST_SET(0), GPST_SET(1), sum, self);
    its->stages[0].ordered = true;
    its->stages[0].concurrency = 1;
    its->stages[0].end = end_sum;
    its->stages[0].name = "sum";
    gpst_stage_mask(&its->stages[1], 1, 2, &threshold);
    gpst_stage_host(&its->stages[2], GPST_SET(2), GPST_SET(3), count, self);
    its->stages[2].end = end_count;
    its->n_stages = 3;
    gpst_pipeline_desc desc = kit_desc(its);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.capacity[2] = 1;
    desc.capacity[3] = 2; /* none is no failure */
    desc.source = source;
    desc.sink = sink;
    desc.source_user_data = desc.sink_user_data = self;
    desc.n_results = 3;
    for (uint32_t k = 0; k < 3; k++)
        desc.results[k] = gpst_result_of(k + 1, GPST_ON_HOST);
    return desc;
}

/* Of each camera first its items, then those of the first stage's end, then that of the last one's. */
static void check_told(const ends* self) {
    const uint32_t n_sums = self->fail_at > 0 ? self->fail_at - 1 : N_SUMS;
    const uint32_t n_each = N_EACH + n_sums + (self->fail_at > 0 ? 1 : 0) + 1;
    uint32_t n[N_CAMERAS] = {0};
    assert_int_equal(self->n_told, N_CAMERAS * n_each);
    for (uint32_t i = 0; i < self->n_told; i++) {
        const told* const now = &self->told[i];
        const uint32_t k = n[now->camera]++;
        if (k < N_EACH)
            assert_int_equal(now->sum, 100 + 10 * k);
        else if (k < N_EACH + n_sums)
            assert_int_equal(now->sum, k == N_EACH ? 100 * N_EACH + 10 * N_EACH * (N_EACH - 1) / 2 : N_EACH);
        else if (k + 1 < n_each) {
            assert_int_equal(now->result, GPST_ERROR_FORMAT);
            assert_string_equal(now->stage, "sum");
            continue;
        } else
            assert_int_equal(now->sum, N_EACH + n_sums); /* all that passed the last stage */
        assert_int_equal(now->result, GPST_OK);
        assert_int_equal(now->n_sums, k + 1 < n_each ? 1 : 0);
        assert_int_equal(now->is_count, k + 1 == n_each);
        if (now->n_sums > 0)
            assert_int_equal(now->masked, (now->sum & 255) > 40 ? 255 : 0);
        if (k >= N_EACH)
            assert_true(now->index >= (uint64_t)N_CAMERAS * N_EACH);
    }
    for (uint32_t c = 0; c < N_CAMERAS; c++) {
        assert_int_equal(n[c], n_each);
        assert_int_equal(self->n_sum_ends[c], self->fail_at > 0 ? self->fail_at : N_SUMS + 1);
        assert_int_equal(self->n_count_ends[c], 2);
    }
    assert_int_equal(self->most_in_sum, 1);
}

/* Indices are given once each, and are the next ones. */
static void check_indices(const ends* self) {
    bool seen[MOST] = {false};
    for (uint32_t i = 0; i < self->n_told; i++) {
        assert_true(self->told[i].index < self->n_told);
        assert_false(seen[self->told[i].index]);
        seen[self->told[i].index] = true;
    }
}

static gpst_result run(ends* self, const gpst_pipeline_desc* desc, gpst_stats* stats) {
    gpst_pipeline* pipeline = NULL;
    assert_int_equal(gpst_pipeline_create(self->kit->context, desc, &pipeline), GPST_OK);
    const gpst_result result = gpst_pipeline_run(pipeline);
    gpst_pipeline_query_stats(pipeline, stats);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    return result;
}

static const char* const backends[] = {"cpu", "sim:launch_us=0"};

static void test_pulled(void** state) {
    static const gpst_run_mode modes[] = {GPST_RUN_DEFAULT, GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    static ends self;
    (void)state;
    for (int b = 0; b < 2; b++)
        for (int m = 0; m < 3; m++)
            for (uint32_t fail_at = 0; fail_at <= 2; fail_at++) {
                memset(&self, 0, sizeof self);
                self.kit = kit_open(backends[b], 2);
                self.fail_at = fail_at;
                gpst_pipeline_desc desc = describe(&self);
                gpst_stats stats;
                desc.mode = modes[m];
                assert_int_equal(run(&self, &desc, &stats), fail_at > 0 ? GPST_PARTIAL : GPST_OK);
                check_told(&self);
                check_indices(&self);
                assert_int_equal(stats.items_ok + stats.items_failed, self.n_told);
                kit_close(self.kit);
            }
}

/* Nothing more comes once a pushed pipeline is closed; drain waits for what its stages still have. */
static void test_pushed(void** state) {
    static ends self;
    (void)state;
    for (int b = 0; b < 2; b++) {
        gpst_pipeline* pipeline = NULL;
        memset(&self, 0, sizeof self);
        self.kit = kit_open(backends[b], 2);
        gpst_pipeline_desc desc = describe(&self);
        desc.source = NULL;
        assert_int_equal(gpst_pipeline_create(self.kit->context, &desc, &pipeline), GPST_OK);
        for (uint64_t i = 0; i < (uint64_t)N_CAMERAS * N_EACH; i++) {
            uint32_t value = 0;
            const gpst_input input = an_input(i, &value);
            assert_int_equal(gpst_pipeline_submit(pipeline, &input, SOON_NS, NULL), GPST_OK);
        }
        assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
        assert_int_equal(self.n_told, N_CAMERAS * N_EACH); /* more may come */
        gpst_pipeline_close(pipeline);
        assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
        check_told(&self);
        check_indices(&self);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self.kit);
    }
}

/* With next_result: END comes behind them. */
static void test_taken(void** state) {
    static ends self;
    const gpst_item* item = NULL;
    gpst_pipeline* pipeline = NULL;
    gpst_result result = GPST_OK;
    (void)state;
    memset(&self, 0, sizeof self);
    self.kit = kit_open("cpu", 2);
    gpst_pipeline_desc desc = describe(&self);
    desc.source = NULL;
    desc.sink = NULL;
    desc.n_slots = N_CAMERAS * N_EACH + 2;
    assert_int_equal(gpst_pipeline_create(self.kit->context, &desc, &pipeline), GPST_OK);
    for (uint64_t i = 0; i < (uint64_t)N_CAMERAS * N_EACH; i++) {
        uint32_t value = 0;
        const gpst_input input = an_input(i, &value);
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, SOON_NS, NULL), GPST_OK);
    }
    gpst_pipeline_close(pipeline);
    while ((result = gpst_pipeline_next_result(pipeline, SOON_NS, &item)) == GPST_OK) {
        (void)sink(&self, item);
        gpst_pipeline_release(pipeline, item);
    }
    assert_int_equal(result, GPST_END);
    check_told(&self);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self.kit);
}

/* The cancel comes before the last input is known to be the last. */
static gpst_result cancelling_source(void* user_data, uint64_t index, gpst_input* out) {
    const gpst_result result = source(user_data, index, out);
    if (result == GPST_END)
        gpst_pipeline_cancel(((ends*)user_data)->kit->pipeline);
    return result;
}

/* After a cancel nobody is asked; after a stop all are. */
static void test_cancelled(void** state) {
    static ends self;
    gpst_pipeline* pipeline = NULL;
    (void)state;
    memset(&self, 0, sizeof self);
    self.kit = kit_open("cpu", 2);
    gpst_pipeline_desc desc = describe(&self);
    desc.source = cancelling_source;
    assert_int_equal(gpst_pipeline_create(self.kit->context, &desc, &self.kit->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(self.kit->pipeline), GPST_ERROR_CANCELLED);
    for (uint32_t c = 0; c < N_CAMERAS; c++)
        assert_int_equal(self.n_sum_ends[c] + self.n_count_ends[c], 0);
    assert_int_equal(gpst_pipeline_destroy(self.kit->pipeline), GPST_OK);
    self.kit->stages[0].end = NULL;
    self.kit->stages[1].end = end_sum;
    assert_int_equal(gpst_pipeline_create(self.kit->context, &desc, &pipeline), GPST_ERROR_ARGUMENT);
    assert_non_null(strstr(gpst_last_reason(), "stages[1].end: only for HOST"));
    gpsti_a32_store(&self.kit->log.n_errors, 0);
    kit_close(self.kit);
}

/* ---- a pipeline that hands one number out after the other ------------------------------------------------------- */

enum { N_HANDED = 5 };

typedef struct handing {
    uint32_t n_ends; /* calls of the end so far */
    uint32_t skip_at;
    gpsti_a32 n_cameras; /* bits of those that were asked */
} handing;

static gpst_result pass(void* user_data, gpst_task* task) {
    (void)user_data;
    return put(task, 1, 0);
}

static gpst_result hand_out(void* user_data, gpst_task* task) {
    handing* const self = (handing*)user_data;
    gpsti_a32_store(&self->n_cameras, gpsti_a32_load(&self->n_cameras) | (1u << task->item->camera));
    const uint32_t n = ++self->n_ends;
    if (n > N_HANDED)
        return GPST_END;
    const gpst_result result = put(task, 1, n);
    return n == self->skip_at ? GPST_SKIPPED : result;
}

static gpst_pipeline* open_handing(kit* its, handing* self, uint32_t n_slots) {
    gpst_pipeline* pipeline = NULL;
    gpst_stage_host(&its->stages[0], GPST_SET(0), GPST_SET(1), pass, self);
    its->stages[0].end = hand_out;
    its->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(its);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.source = NULL;
    desc.sink = NULL;
    desc.n_slots = n_slots;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
    assert_int_equal(gpst_pipeline_create(its->context, &desc, &pipeline), GPST_OK);
    return pipeline;
}

static void submit_one(gpst_pipeline* pipeline, uint32_t camera) {
    uint32_t value = 0;
    const gpst_input input = an_input(camera, &value);
    assert_int_equal(gpst_pipeline_submit(pipeline, &input, SOON_NS, NULL), GPST_OK);
}

/* The next result, by looks that never wait. */
static gpst_result poll(gpst_pipeline* pipeline, const gpst_item** item) {
    gpst_result result = GPST_ERROR_WOULD_BLOCK;
    for (int tries = 0; result == GPST_ERROR_WOULD_BLOCK && tries < 20000; tries++) {
        result = gpst_pipeline_next_result(pipeline, 0, item);
        if (result == GPST_ERROR_WOULD_BLOCK)
            gpsti_sleep_ns(1000000);
    }
    return result;
}

/* Who only looks, and holds what it gets, is given all; after a stop as after a close; SKIPPED is not the last. */
static void test_polled(void** state) {
    (void)state;
    for (int stops = 0; stops < 2; stops++)
        for (uint32_t skip_at = 0; skip_at <= 2; skip_at += 2) {
            handing self = GPST_ZERO;
            const gpst_item* items[N_HANDED + 1];
            const gpst_item* item = NULL;
            kit* const its = kit_open("cpu", 2);
            gpst_pipeline* const pipeline = open_handing(its, &self, 1);
            self.skip_at = skip_at;
            submit_one(pipeline, 0);
            if (stops)
                gpst_pipeline_stop(pipeline);
            else
                gpst_pipeline_close(pipeline);
            for (uint32_t n = 0; n <= N_HANDED; n++) {
                uint32_t value = 0;
                assert_int_equal(poll(pipeline, &items[n]), GPST_OK);
                assert_int_equal(items[n]->result, n > 0 && n == skip_at ? GPST_SKIPPED : GPST_OK);
                if (items[n]->result != GPST_OK)
                    continue;
                memcpy(&value, items[n]->sets[1].pictures[0].data, sizeof value);
                assert_int_equal(value, n);
            }
            assert_int_equal(poll(pipeline, &item), GPST_END);
            for (uint32_t n = 0; n <= N_HANDED; n++)
                gpst_pipeline_release(pipeline, items[n]);
            assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
            kit_close(its);
        }
}

/* A drain behind a stop waits for what stages have; a camera whose only input was refused has no end. */
static void test_stopped(void** state) {
    handing self = GPST_ZERO;
    uint32_t value = 0;
    const gpst_input late = an_input(1, &value);
    const gpst_item* item = NULL;
    (void)state;
    kit* const its = kit_open("cpu", 2);
    gpst_pipeline* const pipeline = open_handing(its, &self, N_HANDED + 2);
    submit_one(pipeline, 0);
    assert_int_equal(gpst_pipeline_next_result(pipeline, SOON_NS, &item), GPST_OK);
    gpst_pipeline_release(pipeline, item);
    gpst_pipeline_stop(pipeline);
    assert_int_equal(gpst_pipeline_submit(pipeline, &late, SOON_NS, NULL), GPST_ERROR_CLOSED);
    for (uint32_t n = 0; n < N_HANDED; n++) {
        assert_int_equal(gpst_pipeline_next_result(pipeline, SOON_NS, &item), GPST_OK);
        assert_int_equal(item->camera, 0);
        gpst_pipeline_release(pipeline, item);
    }
    assert_int_equal(gpst_pipeline_next_result(pipeline, SOON_NS, &item), GPST_END);
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
    assert_int_equal(gpsti_a32_load(&self.n_cameras), 1);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(its);
}

static gpst_result swallow(void* user_data, const gpst_item* item) {
    (void)item;
    gpsti_a32_add((gpsti_a32*)user_data, 1);
    return GPST_OK;
}

/* The same with a sink, where nobody else is inside. */
static void test_drained_behind_a_stop(void** state) {
    handing self = GPST_ZERO;
    gpsti_a32 n_told = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    (void)state;
    kit* const its = kit_open("cpu", 2);
    gpst_stage_host(&its->stages[0], GPST_SET(0), GPST_SET(1), pass, &self);
    its->stages[0].end = hand_out;
    its->n_stages = 1;
    gpst_pipeline_desc desc = kit_desc(its);
    desc.source = NULL;
    desc.sink = swallow;
    desc.sink_user_data = &n_told;
    assert_int_equal(gpst_pipeline_create(its->context, &desc, &pipeline), GPST_OK);
    submit_one(pipeline, 0);
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
    gpst_pipeline_stop(pipeline);
    assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
    assert_int_equal(gpsti_a32_load(&n_told), 1 + N_HANDED);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(its);
}

/* Results that are held leave no memory for what a stage has: next_result says so instead of waiting for ever. */
static void test_held_results_leave_no_memory(void** state) {
    handing self = GPST_ZERO;
    const gpst_item* items[N_HANDED + 1];
    gpst_context_desc context = GPST_ZERO;
    gpst_result result = GPST_OK;
    uint32_t n = 0;
    (void)state;
    kit* const its = kit_open("cpu", 1);
    context.backend = "cpu";
    context.n_workers = 1;
    context.max_host_bytes = 7 * 4096;
    kit_reopen(its, &context);
    gpst_pipeline* const pipeline = open_handing(its, &self, 1);
    submit_one(pipeline, 0);
    gpst_pipeline_close(pipeline);
    while (n <= N_HANDED && (result = gpst_pipeline_next_result(pipeline, SOON_NS, &items[n])) == GPST_OK)
        n++;
    assert_int_equal(result, GPST_ERROR_BUDGET);
    assert_true(n > 1);
    assert_non_null(strstr(gpst_last_reason(), "results are held"));
    gpsti_a32_store(&its->log.n_errors, 0);
    for (uint32_t i = 0; i < n; i++)
        gpst_pipeline_release(pipeline, items[i]);
    for (; n <= N_HANDED; n++) {
        assert_int_equal(gpst_pipeline_next_result(pipeline, SOON_NS, &items[n]), GPST_OK);
        gpst_pipeline_release(pipeline, items[n]);
    }
    assert_int_equal(gpst_pipeline_next_result(pipeline, SOON_NS, &items[0]), GPST_END);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(its);
}

/* ---- behind a stage that has none, and in front of one that is full --------------------------------------------- */

static gpst_result end_at_once(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return GPST_END;
}

static gpst_result missed_none(void* user_data, gpst_task* task) {
    kit_check((kit*)user_data, task->n_missed == (task->item->index == 0 ? UINT64_MAX : 0));
    return GPST_OK;
}

/* Who is asked and has nothing leaves no gap: a stateful stage behind has missed no item. */
static void test_end_leaves_no_gap(void** state) {
    (void)state;
    for (int b = 0; b < 2; b++) {
        kit* const its = kit_open(backends[b], 2);
        handing self = GPST_ZERO;
        gpst_pipeline* pipeline = NULL;
        gpst_stage_host(&its->stages[0], GPST_SET(0), 0, kit_nothing, NULL);
        its->stages[0].end = end_at_once;
        gpst_stage_host(&its->stages[1], GPST_SET(0), GPST_SET(1), pass, &self);
        its->stages[1].end = hand_out;
        gpst_stage_host(&its->stages[2], GPST_SET(1), 0, missed_none, its);
        its->stages[2].stateful = true;
        its->n_stages = 3;
        gpst_pipeline_desc desc = kit_desc(its);
        memset(desc.capacity, 0, sizeof desc.capacity);
        desc.source = NULL;
        assert_int_equal(gpst_pipeline_create(its->context, &desc, &pipeline), GPST_OK);
        for (int n = 0; n < 3; n++)
            submit_one(pipeline, 0);
        gpst_pipeline_close(pipeline);
        assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
        assert_int_equal(its->n_ok, 3 + N_HANDED);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(its);
    }
}

static gpsti_a32 is_open, n_at_door;

static gpst_result wait_at_door(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)gpsti_a32_add(&n_at_door, 1);
    while (task->item->index > 0 && gpsti_a32_load(&is_open) == 0)
        gpsti_sleep_ns(20000);
    return GPST_OK;
}

/* What a stage still has is not asked for while as many wait in front of a later one as may. */
static void test_a_full_stage_is_waited_for(void** state) {
    (void)state;
    for (int b = 0; b < 2; b++) {
        kit* const its = kit_open(backends[b], 3);
        handing self = GPST_ZERO;
        gpst_pipeline* pipeline = NULL;
        gpsti_a32_store(&is_open, 0);
        gpsti_a32_store(&n_at_door, 0);
        gpst_stage_host(&its->stages[0], GPST_SET(0), GPST_SET(1), pass, &self);
        its->stages[0].end = hand_out;
        gpst_stage_host(&its->stages[1], GPST_SET(1), 0, wait_at_door, NULL);
        its->stages[1].concurrency = its->stages[1].queue_most = 1;
        its->n_stages = 2;
        gpst_pipeline_desc desc = kit_desc(its);
        memset(desc.capacity, 0, sizeof desc.capacity);
        desc.source = NULL;
        desc.n_slots = 8;
        assert_int_equal(gpst_pipeline_create(its->context, &desc, &pipeline), GPST_OK);
        submit_one(pipeline, 0);
        gpst_pipeline_close(pipeline);
        for (int ms = 0; ms < 20000 && gpsti_a32_load(&n_at_door) < 2; ms++)
            gpsti_sleep_ns(1000000);
        gpsti_sleep_ns(50000000); /* for who would not wait */
        const gpsti_locked locked = gpsti_lock(its->context);
        const uint64_t n_begun = pipeline->items.next_index;
        gpsti_unlock(locked);
        gpsti_a32_store(&is_open, 1);
        assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
        assert_in_range(n_begun, 2, 3); /* the input, one at the door, one in front of it */
        assert_int_equal(its->n_ok, 1 + N_HANDED);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(its);
    }
}

/* Where there is memory for one item, they wait as others do. */
static void test_little_memory(void** state) {
    static ends self;
    (void)state;
    for (int b = 0; b < 2; b++) {
        gpst_context_desc context = GPST_ZERO;
        gpst_stats stats;
        memset(&self, 0, sizeof self);
        self.kit = kit_open(backends[b], 2);
        context.backend = backends[b];
        context.n_workers = 2;
        context.max_host_bytes = 5 * 4096;
        context.max_device_bytes = b > 0 ? 2 * 4096 : 0;
        kit_reopen(self.kit, &context);
        gpst_pipeline_desc desc = describe(&self);
        assert_int_equal(run(&self, &desc, &stats), GPST_OK);
        check_told(&self);
        kit_close(self.kit);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pulled),    cmocka_unit_test(test_pushed),        cmocka_unit_test(test_taken),
        cmocka_unit_test(test_cancelled), cmocka_unit_test(test_little_memory), cmocka_unit_test(test_polled),
        cmocka_unit_test(test_stopped), cmocka_unit_test(test_drained_behind_a_stop),
        cmocka_unit_test(test_held_results_leave_no_memory), cmocka_unit_test(test_end_leaves_no_gap),
        cmocka_unit_test(test_a_full_stage_is_waited_for),
    };
    return cmocka_run_group_tests_name("pipeline_ends", tests, NULL, NULL);
}
