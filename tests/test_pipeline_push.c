/* tests/test_pipeline_push.c -- the push way in: submit and next_result from several threads, every policy, every
   time-out, results in the user's hands, and the end by close, drain, cancel or destroy. */
#include "pipeline_kit.h"

#define MS ((int64_t)1000000)

/* A stage that every item waits in until the door is open. */
typedef struct door {
    gpsti_a32 open, entered;
} door;

static door the_door;

static gpst_result wait_at_door(void* user_data, gpst_task* task) {
    door* const self = (door*)user_data;
    (void)task;
    gpsti_a32_add(&self->entered, 1);
    while (gpsti_a32_load(&self->open) == 0)
        gpsti_sleep_ns(20000);
    return GPST_OK;
}

static void wait_entered(uint32_t wanted) {
    while (gpsti_a32_load(&the_door.entered) < wanted)
        gpsti_sleep_ns(20000);
}

/* One stage, no source; the sink only when asked for. */
static gpst_pipeline_desc push_desc(kit* self, gpst_stage_func func, bool sink) {
    gpst_pipeline_desc desc = kit_simple(self, 0, func);
    memset(&the_door, 0, sizeof the_door);
    if (func == wait_at_door)
        self->stages[0].user_data = &the_door;
    desc.source = NULL;
    if (!sink)
        desc.sink = NULL;
    return desc;
}

static gpst_pipeline* push_create(kit* self, const gpst_pipeline_desc* desc) {
    assert_int_equal(gpst_pipeline_create(self->context, desc, &self->pipeline), GPST_OK);
    return self->pipeline;
}

static gpst_result submit_number(gpst_pipeline* pipeline, int64_t number, int64_t timeout_ns,
                                 uint64_t* index) {
    gpst_input input = GPST_ZERO;
    input.timestamp_ns = number;
    return gpst_pipeline_submit(pipeline, &input, timeout_ns, index);
}

/* ---- three threads push, two take ------------------------------------------------------------- */

#define PUSHERS 3
#define PER_PUSHER 700

typedef struct pusher {
    gpsti_thread thread;
    kit* owner;
    int64_t first;
    uint64_t n_submitted;
} pusher;

typedef struct taker {
    gpsti_thread thread;
    kit* owner;
    uint64_t n_taken;
} taker;

static gpsti_a32 taken_count[PUSHERS * PER_PUSHER];

/* The frame says which item it is, and the stage turns it round. */
static gpst_result invert_frame(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_image* const input = &task->item->sets[0].pictures[0];
    const gpst_image shape = kit_shape(8, 2);
    gpst_image image;
    kit_check(self, input->data && input->width == 8 && input->height == 2 && input->pitch_bytes == 8);
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &image));
    for (int i = 0; i < 16; i++)
        ((uint8_t*)image.data)[i] = (uint8_t) ~((const uint8_t*)input->data)[i];
    return GPST_OK;
}

static void pusher_main(void* argument) {
    pusher* const self = (pusher*)argument;
    uint8_t pixels[3 * 11];
    for (int64_t n = 0; n < PER_PUSHER; n++) {
        gpst_input input = GPST_ZERO;
        uint64_t index = UINT64_MAX;
        memset(pixels, 0xA5, sizeof pixels);
        for (int y = 0; y < 2; y++) /* bottom up, with gaps: the engine's copy is top down and tight */
            memset(pixels + 1 + 11 * (1 - y), (int)((self->first + n) >> (8 * y)) & 0xff, 8);
        input.frame = kit_shape(8, 2);
        input.frame.data = pixels + 1 + 11;
        input.frame.pitch_bytes = -11;
        input.timestamp_ns = self->first + n;
        kit_check(self->owner,
                  gpst_pipeline_submit(self->owner->pipeline, &input, GPST_FOREVER, &index) == GPST_OK);
        kit_check(self->owner, index < PUSHERS * PER_PUSHER);
        self->n_submitted++;
    }
}

static void taker_main(void* argument) {
    taker* const self = (taker*)argument;
    const gpst_item* item = NULL;
    uint64_t last_index = 0;
    for (;;) {
        const gpst_result result = gpst_pipeline_next_result(self->owner->pipeline, GPST_FOREVER, &item);
        if (result == GPST_END)
            break;
        kit_check(self->owner, result == GPST_OK);
        if (result != GPST_OK)
            break;
        kit_check(self->owner, item->result == GPST_OK);
        kit_check(self->owner,
                  self->n_taken == 0 || item->index > last_index); /* its own share is in order, too */
        last_index = item->index;
        const uint8_t* const pixels = (const uint8_t*)item->sets[1].pictures[0].data;
        for (int i = 0; i < 16; i++)
            kit_check(self->owner, pixels[i] == (uint8_t) ~(item->timestamp_ns >> (i < 8 ? 0 : 8)));
        gpsti_a32_add(&taken_count[item->timestamp_ns], 1);
        gpst_pipeline_release(self->owner->pipeline, item);
        self->n_taken++;
    }
}

static void test_many_threads(void** state) {
    (void)state;
    for (uint32_t n_slots = 1; n_slots < 9; n_slots += 7) {
        kit* const self = kit_open("cpu", 2);
        pusher pushers[PUSHERS];
        taker takers[2];
        gpst_pipeline_desc desc = push_desc(self, invert_frame, false);
        gpst_stats stats;
        self->stages[0].user_data = self;
        desc.capacity[1] = 1;
        desc.n_slots = n_slots;
        push_create(self, &desc);
        memset(pushers, 0, sizeof pushers);
        memset(takers, 0, sizeof takers);
        memset(taken_count, 0, sizeof taken_count);
        for (int i = 0; i < 2; i++) {
            takers[i].owner = self;
            assert_int_equal(gpsti_thread_start(&takers[i].thread, taker_main, &takers[i], "taker"), GPST_OK);
        }
        for (int i = 0; i < PUSHERS; i++) {
            pushers[i].owner = self;
            pushers[i].first = i * PER_PUSHER;
            assert_int_equal(gpsti_thread_start(&pushers[i].thread, pusher_main, &pushers[i], "pusher"),
                             GPST_OK);
        }
        for (int i = 0; i < PUSHERS; i++)
            gpsti_thread_join(&pushers[i].thread);
        gpst_pipeline_close(self->pipeline);
        for (int i = 0; i < 2; i++)
            gpsti_thread_join(&takers[i].thread);
        assert_int_equal(takers[0].n_taken + takers[1].n_taken, PUSHERS * PER_PUSHER);
        for (int i = 0; i < PUSHERS * PER_PUSHER; i++)
            assert_int_equal(gpsti_a32_load(&taken_count[i]), 1);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_int_equal(stats.items_ok, PUSHERS * PER_PUSHER);
        assert_int_equal(stats.items_total, PUSHERS * PER_PUSHER);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_close(self);
    }
}

/* Slots enough for all: whoever does not want to wait need not, though frames are copied one after the other. */
static void impatient_main(void* argument) {
    pusher* const self = (pusher*)argument;
    gpst_input input = GPST_ZERO;
    static uint8_t pixels[64 * 1024];
    input.frame = kit_shape(1024, 64);
    input.frame.data = pixels;
    for (int n = 0; n < 40; n++)
        kit_check(self->owner, gpst_pipeline_submit(self->owner->pipeline, &input, 0, NULL) == GPST_OK);
}

static void test_impatient_threads(void** state) {
    (void)state;
    for (int policy = GPST_FULL_BLOCK; policy <= GPST_FULL_DROP_OLDEST; policy++) {
        kit* const self = kit_open("cpu", 1);
        pusher pushers[PUSHERS];
        gpst_pipeline_desc desc = push_desc(self, wait_at_door, true);
        gpst_stats stats;
        desc.n_slots = PUSHERS * 40;
        desc.full_policy = (gpst_full_policy)policy;
        push_create(self, &desc);
        for (int i = 0; i < PUSHERS; i++) {
            pushers[i].owner = self;
            assert_int_equal(gpsti_thread_start(&pushers[i].thread, impatient_main, &pushers[i], "pusher"),
                             GPST_OK);
        }
        for (int i = 0; i < PUSHERS; i++)
            gpsti_thread_join(&pushers[i].thread);
        gpsti_a32_store(&the_door.open, 1);
        assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        assert_int_equal(stats.items_ok, PUSHERS * 40);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        kit_close(self);
    }
}

/* ---- what happens when it is full ----------------------------------------------------------------- */

static void test_block(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = push_desc(self, wait_at_door, true);
    uint64_t index = 77;
    desc.n_slots = 2;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    assert_int_equal(submit_number(pipeline, 0, 0, &index), GPST_OK);
    assert_int_equal(index, 0);
    assert_int_equal(submit_number(pipeline, 1, 0, &index), GPST_OK);
    assert_int_equal(index, 1);
    index = 77;
    assert_int_equal(submit_number(pipeline, 2, 0, &index), GPST_ERROR_WOULD_BLOCK);
    test_reason_has("gpst_pipeline_submit", "timeout_ns=0");
    assert_int_equal(submit_number(pipeline, 2, 5 * MS, &index), GPST_ERROR_TIMEOUT);
    test_reason_has("gpst_pipeline_submit", "timeout_ns=5000000");
    assert_int_equal(index, 77);
    gpsti_a32_store(&the_door.open, 1);
    assert_int_equal(submit_number(pipeline, 2, GPST_FOREVER, &index), GPST_OK);
    assert_int_equal(index, 2);
    assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(self->n_ok, 3);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* Fills the only worker with item 0 and the other slots with what follows. */
static gpst_pipeline* push_filled(kit* self, gpst_full_policy policy, uint32_t n_slots) {
    gpst_pipeline_desc desc = push_desc(self, wait_at_door, true);
    desc.n_slots = n_slots;
    desc.full_policy = policy;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    assert_int_equal(submit_number(pipeline, 0, 0, NULL), GPST_OK);
    wait_entered(1);
    for (uint32_t n = 1; n < n_slots; n++)
        assert_int_equal(submit_number(pipeline, n, 0, NULL), GPST_OK);
    return pipeline;
}

/* Opens the door and lets everything end; gives the statistics. */
static gpst_stats push_finish(kit* self, gpst_pipeline* pipeline) {
    gpst_stats stats;
    gpsti_a32_store(&the_door.open, 1);
    gpst_pipeline_close(pipeline);
    assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(stats.items_total, stats.items_ok + stats.items_dropped);
    assert_int_equal(stats.items_ok, self->n_ok);
    assert_int_equal(submit_number(pipeline, 0, 0, NULL), GPST_ERROR_CLOSED);
    test_reason_has("gpst_pipeline_submit", "closed");
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    return stats;
}

static void check_seen(const kit* self, const char* wanted) {
    for (size_t n = 0; wanted[n]; n++)
        if (self->seen[n] != (wanted[n] == '1'))
            fail_msg("item %u: seen %u", (unsigned)n, self->seen[n]);
}

static void test_drop_newest(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline* const pipeline = push_filled(self, GPST_FULL_DROP_NEWEST, 3);
    uint64_t index = 77;
    assert_int_equal(submit_number(pipeline, 3, GPST_FOREVER, &index), GPST_DROPPED);
    assert_int_equal(submit_number(pipeline, 4, 0, &index), GPST_DROPPED);
    assert_int_equal(index, 77);
    const gpst_stats stats = push_finish(self, pipeline);
    assert_int_equal(stats.items_dropped, 2);
    check_seen(self, "111");
    kit_close(self);
}

/* Items 1 and 2 wait unstarted: they are given up, one for each that comes, and the order closes up behind them. */
static void test_drop_oldest(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline* const pipeline = push_filled(self, GPST_FULL_DROP_OLDEST, 3);
    uint64_t index = 77;
    assert_int_equal(submit_number(pipeline, 3, 0, &index), GPST_OK);
    assert_int_equal(index, 3);
    assert_int_equal(submit_number(pipeline, 4, 0, &index), GPST_OK);
    assert_int_equal(submit_number(pipeline, 5, 0, &index), GPST_OK);
    assert_int_equal(index, 5);
    const gpst_stats stats = push_finish(self, pipeline);
    assert_int_equal(stats.items_dropped, 3);
    check_seen(self, "100011");
    kit_close(self);
}

/* Nothing is left that could be given up: the newest goes. */
static void test_drop_oldest_of_none(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline* const pipeline = push_filled(self, GPST_FULL_DROP_OLDEST, 1);
    assert_int_equal(submit_number(pipeline, 1, 0, NULL), GPST_DROPPED);
    const gpst_stats stats = push_finish(self, pipeline);
    assert_int_equal(stats.items_dropped, 1);
    check_seen(self, "1");
    kit_close(self);
}

static void test_latest_only(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline* const pipeline = push_filled(self, GPST_FULL_LATEST_ONLY, 4);
    /* 1 and 2 went when 2 and 3 came, though slots were free */
    assert_int_equal(submit_number(pipeline, 4, 0, NULL), GPST_OK);
    assert_int_equal(submit_number(pipeline, 5, 0, NULL), GPST_OK);
    const gpst_stats stats = push_finish(self, pipeline);
    assert_int_equal(stats.items_dropped, 4);
    check_seen(self, "100001");
    kit_close(self);
}

/* An ordered stage behind a first stage that drops: nobody waits for a dropped item's turn. */
static gpst_result expect_rising(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    kit_check(self, self->next_source <= task->item->index);
    self->next_source = task->item->index + 1;
    return GPST_OK;
}

static void test_drop_before_ordered_stage(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = push_desc(self, kit_nothing, true);
    self->stages[1] = kit_stage(self, GPST_STAGE_HOST, expect_rising, "ordered");
    self->stages[1].ordered = true;
    self->n_stages = 2;
    desc.n_stages = 2;
    desc.n_slots = 3;
    desc.full_policy = GPST_FULL_DROP_OLDEST;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    for (int64_t n = 0; n < 3000; n++) {
        const gpst_result result = submit_number(pipeline, n, 0, NULL);
        assert_true(result == GPST_OK || result == GPST_DROPPED);
    }
    const gpst_stats stats = push_finish(self, pipeline);
    assert_int_equal(stats.items_total, 3000);
    assert_true(stats.items_ok > 0);
    kit_close(self);
}

/* ---- results ------------------------------------------------------------------------------------------ */

/* A result in the user's hands has its memory, and its slot is another's. */
static void test_results_hold_no_slots(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = push_desc(self, kit_nothing, false);
    const gpst_item* items[3] = {NULL, NULL, NULL};
    const gpst_item* none = (const gpst_item*)self;
    gpst_input input = GPST_ZERO;
    desc.n_slots = 3;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    assert_int_equal(gpst_pipeline_next_result(pipeline, 0, &none), GPST_ERROR_WOULD_BLOCK);
    assert_null(none);
    assert_int_equal(gpst_pipeline_next_result(pipeline, 2 * MS, &none), GPST_ERROR_TIMEOUT);
    test_reason_has("gpst_pipeline_next_result", "timeout_ns=2000000");
    for (int i = 0; i < 3; i++) {
        char name[24];
        snprintf(name, sizeof name, "frame-%d", i);
        input.name = name;
        input.user_data = &items[i];
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, 0, NULL), GPST_OK);
        memset(name, 'x', sizeof name - 1); /* copied: ours may go */
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &items[i]), GPST_OK);
        assert_int_equal(items[i]->index, i);
        assert_ptr_equal(items[i]->user_data, &items[i]);
    }
    assert_string_equal(items[1]->name, "frame-1");
    assert_int_equal(gpst_pipeline_drain(pipeline, 2 * MS), GPST_ERROR_TIMEOUT);
    assert_int_equal(gpst_pipeline_drain(pipeline, 0), GPST_ERROR_WOULD_BLOCK);
    assert_int_equal(submit_number(pipeline, 3, 0, NULL), GPST_OK);
    gpst_pipeline_release(pipeline, items[1]); /* in any order */
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &items[1]), GPST_OK);
    assert_int_equal(items[1]->index, 3);
    assert_string_equal(items[1]->name, "item 3");
    assert_string_equal(items[0]->name, "frame-0"); /* still ours */
    gpst_pipeline_close(pipeline);
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &none), GPST_END);
    for (int i = 0; i < 3; i++)
        gpst_pipeline_release(pipeline, items[i]);
    gpst_pipeline_release(pipeline, NULL);
    assert_int_equal(gpst_pipeline_drain(pipeline, 0), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

static void wait_ended(gpst_pipeline* pipeline, uint64_t wanted) {
    static gpst_stats stats;
    for (gpst_pipeline_query_stats(pipeline, &stats); stats.items_ok < wanted;
         gpst_pipeline_query_stats(pipeline, &stats))
        gpsti_sleep_ns(20000);
}

/* Whoever submits and takes on one thread is told that results wait, and how many, and hangs in no call. */
static void test_one_thread_submits_and_takes(void** state) {
    static const gpst_full_policy policies[] = {GPST_FULL_BLOCK, GPST_FULL_DROP_NEWEST, GPST_FULL_DROP_OLDEST};
    (void)state;
    for (size_t p = 0; p < 3; p++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = push_desc(self, kit_nothing, false);
        const gpst_item* item = NULL;
        const bool blocks = policies[p] == GPST_FULL_BLOCK;
        desc.n_slots = 4;
        desc.full_policy = policies[p];
        gpst_pipeline* const pipeline = push_create(self, &desc);
        assert_int_equal(submit_number(pipeline, 0, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        gpst_pipeline_release(pipeline, item);
        int64_t n = 1;
        for (uint64_t n_ended = 1; n_ended <= 4; n++, n_ended++) {
            assert_int_equal(submit_number(pipeline, n, GPST_FOREVER, NULL), GPST_OK);
            wait_ended(pipeline, n_ended + 1);
        }
        assert_int_equal(submit_number(pipeline, n, GPST_FOREVER, NULL),
                         blocks ? GPST_ERROR_WOULD_BLOCK : GPST_DROPPED);
        if (blocks)
            test_reason_has("gpst_pipeline_submit: ", "n_slots=4: 4 results wait to be taken");
        assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_ERROR_WOULD_BLOCK);
        test_reason_has("gpst_pipeline_drain: ", "4 results wait to be taken");
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK); /* one is taken: go on */
        assert_int_equal(submit_number(pipeline, n, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}

/* Results that nobody takes have no slots: as many more are taken as are under way at most. */
static void test_untaken_results_hold_no_slots(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = push_desc(self, wait_at_door, false);
    gpst_stats stats;
    desc.n_slots = 4;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    gpsti_a32_store(&the_door.open, 1);
    for (int64_t n = 0; n < 3; n++)
        assert_int_equal(submit_number(pipeline, n, 0, NULL), GPST_OK);
    wait_ended(pipeline, 3);
    gpsti_a32_store(&the_door.open, 0);
    for (int64_t n = 3; n < 7; n++)
        assert_int_equal(submit_number(pipeline, n, 0, NULL), GPST_OK);
    assert_int_equal(submit_number(pipeline, 7, 0, NULL), GPST_ERROR_WOULD_BLOCK); /* four are under way */
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(stats.slots_used, 4);
    gpsti_a32_store(&the_door.open, 1);
    wait_ended(pipeline, 7);
    assert_int_equal(submit_number(pipeline, 7, 0, NULL), GPST_ERROR_WOULD_BLOCK);
    test_reason_has("gpst_pipeline_submit: ", "7 results wait to be taken");
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* The same where memory is short: results that nobody takes have it, and only taking them helps. */
static void test_untaken_results_and_bytes(void** state) {
    static uint8_t pixels[1 << 20];
    gpst_context_desc context_desc = GPST_ZERO;
    (void)state;
    context_desc.backend = "cpu";
    context_desc.n_workers = 2;
    context_desc.max_host_bytes = 6 << 20;
    kit* const self = kit_open("cpu", 2);
    kit_reopen(self, &context_desc);
    gpst_pipeline_desc desc = push_desc(self, kit_nothing, false);
    gpst_input input = GPST_ZERO;
    const gpst_item* item = NULL;
    gpst_result result = GPST_OK;
    int n_taken = 0;
    desc.n_slots = 4;
    desc.n_results = 1; /* the frame */
    gpst_pipeline* const pipeline = push_create(self, &desc);
    input.frame = kit_shape(1024, 1024);
    input.frame.data = pixels;
    for (int n = 0; n < 100; n += result == GPST_OK) {
        result = gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL);
        if (result == GPST_OK && n > 0)
            continue;
        assert_true(result == GPST_OK || result == GPST_ERROR_WOULD_BLOCK);
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        assert_int_equal(item->result, GPST_OK);
        gpst_pipeline_release(pipeline, item);
        n_taken++;
    }
    for (; n_taken < 100; n_taken++) {
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        assert_int_equal(item->result, GPST_OK);
        gpst_pipeline_release(pipeline, item);
    }
    assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

static void test_release_twice_is_ignored(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = push_desc(self, kit_nothing, false);
    const gpst_item* item = NULL;
    const gpst_item* other = NULL;
    desc.n_slots = 2;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    assert_int_equal(submit_number(pipeline, 0, 0, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
    gpst_pipeline_release(pipeline, item);
    gpst_pipeline_release(pipeline, item);
    assert_int_equal(gpsti_a32_load(&self->log.n_errors), 1);
    assert_non_null(strstr(self->log.last, "gpst_pipeline_release"));
    gpsti_a32_store(&self->log.n_errors, 0);
    for (int64_t n = 1; n < 3; n++)
        assert_int_equal(submit_number(pipeline, n, 0, NULL), GPST_OK);
    wait_ended(pipeline, 3);
    assert_int_equal(submit_number(pipeline, 3, 0, NULL), GPST_ERROR_WOULD_BLOCK); /* two slots are two */
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &other), GPST_OK);
    assert_ptr_not_equal(item, other);
    gpst_pipeline_release(pipeline, other);
    gpst_pipeline_release(pipeline, item);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* A failed item is a result like any other, with its sentence. */
static gpst_result fail_odd(void* user_data, gpst_task* task) {
    (void)user_data;
    return task->item->index % 2 ? gpst_task_fail(task, GPST_ERROR_FORMAT, "odd one") : GPST_OK;
}

static void test_failed_results(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    gpst_pipeline_desc desc = push_desc(self, fail_odd, false);
    const gpst_item* item = NULL;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    for (uint64_t n = 0; n < 20; n++) {
        assert_int_equal(submit_number(pipeline, 0, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        assert_int_equal(item->index, n);
        assert_int_equal(item->result, n % 2 ? GPST_ERROR_FORMAT : GPST_OK);
        assert_string_equal(item->stage, n % 2 ? "work" : "");
        assert_string_equal(item->reason, n % 2 ? "odd one" : "");
        gpst_pipeline_release(pipeline, item);
    }
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* ---- how it ends ------------------------------------------------------------------------------------------ */

static void test_destroy_with_results_not_taken(void** state) {
    (void)state;
    for (int held = 0; held < 3; held++) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = push_desc(self, kit_nothing, false);
        const gpst_item* item = NULL;
        desc.n_slots = 6;
        gpst_pipeline* const pipeline = push_create(self, &desc);
        for (int n = 0; n < 6; n++)
            assert_int_equal(submit_number(pipeline, n, 0, NULL), GPST_OK);
        for (int n = 0; n < held; n++)
            assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}

static void test_cancel_wakes_and_closes(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = push_desc(self, wait_at_door, false);
    const gpst_item* item = NULL;
    desc.n_slots = 4;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    for (int n = 0; n < 3; n++)
        assert_int_equal(submit_number(pipeline, n, 0, NULL), GPST_OK);
    wait_entered(1);
    gpst_pipeline_cancel(pipeline);
    gpst_pipeline_cancel(NULL);
    gpst_pipeline_stop(NULL);
    assert_int_equal(submit_number(pipeline, 3, GPST_FOREVER, NULL), GPST_ERROR_CLOSED);
    gpsti_a32_store(&the_door.open, 1);
    for (int n = 0; n < 3; n++) { /* the first was in its last stage: done; the others never began theirs */
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        assert_int_equal(item->index, n);
        assert_int_equal(item->result, n == 0 ? GPST_OK : GPST_ERROR_CANCELLED);
        gpst_pipeline_release(pipeline, item);
    }
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_END);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* Whoever waits for a slot or a result when the pipeline is closed is told at once. */
static void closer_main(void* argument) {
    kit* const self = (kit*)argument;
    gpsti_sleep_ns(5 * MS);
    gpst_pipeline_close(self->pipeline);
}

static void test_close_wakes(void** state) {
    (void)state;
    for (int what = 0; what < 2; what++) {
        kit* const self = kit_open("cpu", 1);
        gpst_pipeline_desc desc = push_desc(self, wait_at_door, false);
        const gpst_item* item = NULL;
        gpsti_thread thread;
        desc.n_slots = 1;
        gpst_pipeline* const pipeline = push_create(self, &desc);
        if (what == 0)
            assert_int_equal(submit_number(pipeline, 0, 0, NULL), GPST_OK);
        assert_int_equal(gpsti_thread_start(&thread, closer_main, self, "closer"), GPST_OK);
        if (what == 0)
            assert_int_equal(submit_number(pipeline, 1, GPST_FOREVER, NULL), GPST_ERROR_CLOSED);
        else
            assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_END);
        gpsti_thread_join(&thread);
        gpsti_a32_store(&the_door.open, 1);
        gpst_pipeline_close(NULL);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}

/* ---- from inside, and wrong use ------------------------------------------------------------------------------ */

static gpsti_a32 n_refused;

/* Each item submits its two children, which is not waited for, so that some find no slot. */
static gpst_result submit_children(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    for (int i = 0; i < 2 && task->item->timestamp_ns < 4; i++) {
        const gpst_result result =
            submit_number(task->pipeline, task->item->timestamp_ns + 1, GPST_FOREVER, NULL);
        kit_check(self, result == GPST_OK || result == GPST_ERROR_WOULD_BLOCK);
        gpsti_a32_add(&n_refused, result != GPST_OK);
    }
    return GPST_OK;
}

static void test_submit_from_a_callback(void** state) {
    (void)state;
    for (uint32_t n_slots = 2; n_slots < 41; n_slots += 38) {
        kit* const self = kit_open("cpu", 2);
        gpst_pipeline_desc desc = push_desc(self, submit_children, true);
        desc.n_slots = n_slots;
        gpsti_a32_store(&n_refused, 0);
        gpst_pipeline* const pipeline = push_create(self, &desc);
        assert_int_equal(submit_number(pipeline, 0, 0, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
        if (gpsti_a32_load(&n_refused) == 0)
            assert_int_equal(self->n_ok, 31);
        else
            assert_true(self->n_ok < 31);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}

static void test_bad_inputs(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    gpst_pipeline_desc desc = push_desc(self, kit_nothing, true);
    uint8_t pixels[64];
    gpst_input input = GPST_ZERO;
    const gpst_item* item = NULL;
    uint64_t index = 77;
    self->stages[1] = self->stages[0];
    self->stages[0] = kit_stage(self, GPST_STAGE_READ, NULL, NULL);
    desc.n_stages = 2;
    desc.n_slots = 1;
    gpst_pipeline* pipeline = push_create(self, &desc);
    assert_int_equal(gpst_pipeline_submit(pipeline, &input, 0, &index), GPST_ERROR_ARGUMENT);
    test_reason_has("path=NULL", "READ");
    assert_int_equal(gpst_pipeline_submit(pipeline, NULL, 0, &index), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_pipeline_submit(NULL, &input, 0, &index), GPST_ERROR_ARGUMENT);
    assert_int_equal(gpst_pipeline_next_result(pipeline, 0, &item), GPST_ERROR_STATE); /* has a sink */
    test_reason_has("gpst_pipeline_next_result", "sink");
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_ERROR_STATE);
    test_reason_has("gpst_pipeline_run", "no source");
    input.path = "/nowhere/at/all"; /* good enough for submit; the item fails */
    assert_int_equal(gpst_pipeline_submit(pipeline, &input, 0, &index), GPST_OK);
    assert_int_equal(index, 0); /* what was refused took no number */
    assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(self->n_failed, 1);
    assert_string_equal(self->failed_stage, "read");
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    desc.stages = &self->stages[1];
    desc.n_stages = 1;
    pipeline = push_create(self, &desc);
    input.frame = kit_shape(0, 4);
    input.frame.data = pixels;
    for (int i = 0; i < 5; i++) /* the only slot comes back every time */
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, 0, &index), GPST_ERROR_ARGUMENT);
    assert_true(gpst_last_reason()[0]);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

static void test_pull_pipelines_refuse_push_calls(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 1);
    const gpst_pipeline_desc desc = kit_simple(self, 1, kit_nothing);
    const gpst_item* item = NULL;
    gpst_pipeline* const pipeline = push_create(self, &desc);
    assert_int_equal(submit_number(pipeline, 0, 0, NULL), GPST_ERROR_STATE);
    test_reason_has("gpst_pipeline_submit", "has a source");
    assert_int_equal(gpst_pipeline_next_result(pipeline, 0, &item), GPST_ERROR_STATE);
    assert_int_equal(gpst_pipeline_drain(pipeline, 0), GPST_ERROR_STATE);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    assert_int_equal(self->n_ok, 1);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_threads),
        cmocka_unit_test(test_impatient_threads),
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_drop_newest),
        cmocka_unit_test(test_drop_oldest),
        cmocka_unit_test(test_drop_oldest_of_none),
        cmocka_unit_test(test_latest_only),
        cmocka_unit_test(test_drop_before_ordered_stage),
        cmocka_unit_test(test_results_hold_no_slots),
        cmocka_unit_test(test_one_thread_submits_and_takes),
        cmocka_unit_test(test_untaken_results_hold_no_slots),
        cmocka_unit_test(test_untaken_results_and_bytes),
        cmocka_unit_test(test_release_twice_is_ignored),
        cmocka_unit_test(test_failed_results),
        cmocka_unit_test(test_destroy_with_results_not_taken),
        cmocka_unit_test(test_cancel_wakes_and_closes),
        cmocka_unit_test(test_close_wakes),
        cmocka_unit_test(test_submit_from_a_callback),
        cmocka_unit_test(test_bad_inputs),
        cmocka_unit_test(test_pull_pipelines_refuse_push_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
