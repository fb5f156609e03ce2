/* tests/test_pipeline_drops.c -- bounds in front of stages and what becomes of more, cameras that keep an order of their
   own, priority and fair service, results that are held; and that every item is heard of exactly once. */
#include "pipeline_kit.h"

#define MS ((int64_t)1000000)
#define MOST 4096

/* A stage in which items wait, one after the other, until the door is open. */
typedef struct door {
    gpsti_a32 open, entered;
} door;

typedef struct live {
    kit* kit;
    gpst_pipeline* pipeline;
    gpst_stage_desc stages[4];
    gpst_pipeline_desc desc;
    door door;
    gpsti_a32 n_first;                      /* services of the first stage */
    gpsti_a32 ok[MOST], dropped[MOST], back[MOST]; /* by timestamp: the sink, desc.dropped and release were called */
    gpsti_a32 order[MOST], n_order;         /* timestamps as the last stage saw them */
    gpsti_a32 n_refused, telling;
    char stage[32], reason[GPST_REASON_BYTES]; /* of a dropped item, the latest */
} live;

static live the_live;

static gpst_result count_first(void* user_data, gpst_task* task) {
    live* const self = (live*)user_data;
    (void)task;
    gpsti_a32_add(&self->n_first, 1);
    return GPST_OK;
}

static gpst_result wait_at_door(void* user_data, gpst_task* task) {
    live* const self = (live*)user_data;
    (void)task;
    gpsti_a32_add(&self->door.entered, 1);
    while (gpsti_a32_load(&self->door.open) == 0)
        gpsti_sleep_ns(20000);
    return GPST_OK;
}

static gpst_result note_order(void* user_data, gpst_task* task) {
    live* const self = (live*)user_data;
    const uint32_t n = gpsti_a32_add(&self->n_order, 1);
    gpsti_a32_store(&self->order[n % MOST], (uint32_t)task->item->timestamp_ns);
    return GPST_OK;
}

static gpst_result sink_ok(void* user_data, const gpst_item* item) {
    live* const self = (live*)user_data;
    kit_check(self->kit, item->result != GPST_DROPPED);
    gpsti_a32_add(&self->ok[item->timestamp_ns % MOST], 1);
    return GPST_OK;
}

static void tell_dropped(void* user_data, const gpst_item* item) {
    live* const self = (live*)user_data;
    kit_check(self->kit, item->result == GPST_DROPPED && item->reason[0] && item->name);
    kit_check(self->kit, item->start_ns > 0 && item->end_ns >= item->start_ns);
    gpsti_a32_add(&self->dropped[item->timestamp_ns % MOST], 1);
    gpsti_a32_add(&self->n_refused, item->index == UINT64_MAX ? 1 : 0);
    while (gpsti_a32_exchange(&self->telling, 1) != 0) /* several threads may tell at once */
        gpsti_sleep_ns(1000);
    snprintf(self->stage, sizeof self->stage, "%s", item->stage);
    snprintf(self->reason, sizeof self->reason, "%s", item->reason);
    gpsti_a32_store(&self->telling, 0);
}

static gpst_stage_desc host(gpst_stage_func func, const char* name) {
    gpst_stage_desc stage = GPST_ZERO;
    stage.kind = GPST_STAGE_HOST;
    stage.func = func;
    stage.user_data = &the_live;
    stage.name = name;
    return stage;
}

/* "first", any number at once; "door", one at a time; "last". */
static live* live_open(const char* backend, uint32_t n_workers) {
    live* const self = &the_live;
    memset(self, 0, sizeof *self);
    self->kit = kit_open(backend, n_workers);
    self->stages[0] = host(count_first, "first");
    self->stages[1] = host(wait_at_door, "door");
    self->stages[1].concurrency = 1;
    self->stages[2] = host(note_order, "last");
    self->desc.stages = self->stages;
    self->desc.n_stages = 3;
    self->desc.sink = sink_ok;
    self->desc.sink_user_data = self;
    self->desc.dropped = tell_dropped;
    self->desc.dropped_user_data = self;
    self->desc.n_slots = 64;
    return self;
}

static void live_create(live* self) {
    if (gpst_pipeline_create(self->kit->context, &self->desc, &self->pipeline) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    self->kit->pipeline = self->pipeline;
}

static gpst_result submit(live* self, int64_t number, uint32_t camera, int32_t priority) {
    gpst_input input = GPST_ZERO;
    input.timestamp_ns = number;
    input.camera = camera;
    input.priority = priority;
    return gpst_pipeline_submit(self->pipeline, &input, 0, NULL);
}

/* The first stage has had so many: each but the latest of them is at the door, or was dropped in front of it. */
static void wait_first(live* self, uint32_t n) {
    while (gpsti_a32_load(&self->n_first) < n)
        gpsti_sleep_ns(20000);
}

/* Item 0 has the door, and no other. */
static void wait_for_door(live* self) {
    while (gpsti_a32_load(&self->door.entered) == 0)
        gpsti_sleep_ns(20000);
}

/* An item of another camera, for which nobody is dropped, follows the latest: behind it that is at the door, too. */
static void submit_behind(live* self, uint32_t number) {
    assert_int_equal(submit(self, number, 1, 0), GPST_OK);
    wait_first(self, number + 1);
}

static gpst_stats live_close(live* self) {
    gpst_stats stats;
    gpsti_a32_store(&self->door.open, 1);
    gpst_pipeline_close(self->pipeline);
    assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
    gpst_pipeline_query_stats(self->pipeline, &stats);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    kit_close(self->kit);
    return stats;
}

static void check_ends(const live* self, const char* wanted) { /* '1': the sink was told, 'd': dropped was */
    for (uint32_t n = 0; wanted[n]; n++)
        if (gpsti_a32_load(&self->ok[n]) != (wanted[n] == '1') ||
            gpsti_a32_load(&self->dropped[n]) != (wanted[n] == 'd'))
            fail_msg("item %u: sink %u, dropped %u instead of %s", n, gpsti_a32_load(&self->ok[n]),
                     gpsti_a32_load(&self->dropped[n]), wanted);
}

/* ---- bounds ---------------------------------------------------------------------------------------------- */

/* One item in the stage, and more in front of it than may be: the policy's survivors, of each camera. */
static void test_a_stage_s_bound(void** state) {
    static const struct {
        gpst_full_policy policy;
        uint32_t queue_most;
        const char* wanted;
        const char* reason;
    } cases[] = {{GPST_FULL_DROP_NEWEST, 2, "111ddd", "queue_most=2: one too many came"},
                 {GPST_FULL_DROP_OLDEST, 2, "1ddd11", "queue_most=2: a newer one came"},
                 {GPST_FULL_LATEST_ONLY, 0, "1dddd1", "queue_most=1: a newer one came"},
                 {GPST_FULL_BLOCK, 0, "111111", ""}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        live* const self = live_open("cpu", 2);
        self->stages[1].queue_most = cases[k].queue_most;
        self->stages[1].full_policy = cases[k].policy;
        live_create(self);
        for (uint32_t n = 0; n < 6; n++) {
            assert_int_equal(submit(self, n, 0, 0), GPST_OK);
            wait_first(self, n + 1);
            wait_for_door(self);
        }
        submit_behind(self, 6);
        const gpst_stats stats = live_close(self);
        check_ends(self, cases[k].wanted);
        assert_int_equal(gpsti_a32_load(&self->ok[6]), 1);
        assert_string_equal(self->reason, cases[k].reason);
        assert_string_equal(self->stage, cases[k].reason[0] ? "door" : "");
        assert_int_equal(stats.items_total, 7);
        assert_int_equal(stats.items_total, stats.items_ok + stats.items_dropped);
    }
}

/* Of those in front of the stage the ones of the lowest priority are given up first, however old they are. */
static void test_a_bound_keeps_priority(void** state) {
    static const struct {
        gpst_full_policy policy;
        int32_t priorities[5];
        const char* wanted;
    } cases[] = {{GPST_FULL_DROP_OLDEST, {0, 5, 0, 5, 9}, "1dd11"}, {GPST_FULL_DROP_NEWEST, {0, 0, 5, 5, 9}, "1d1d1"}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        live* const self = live_open("cpu", 2);
        self->stages[1].queue_most = 2;
        self->stages[1].full_policy = cases[k].policy;
        live_create(self);
        for (uint32_t n = 0; n < 5; n++) {
            assert_int_equal(submit(self, n, 0, cases[k].priorities[n]), GPST_OK);
            wait_first(self, n + 1);
            wait_for_door(self);
        }
        submit_behind(self, 5);
        live_close(self);
        check_ends(self, cases[k].wanted);
        assert_int_equal(gpsti_a32_load(&self->ok[5]), 1);
    }
}

/* What the device does while the door is shut; on a GPU, where no kernel waits for the host, the function itself waits. */
static gpst_result kernel_at_door(const void* args) {
    (void)args;
    return wait_at_door(&the_live, NULL);
}

static gpst_result device_at_door(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"door", kernel_at_door, NULL};
    const gpst_image shape = kit_shape(8, 8);
    const bool on_host = gpst_task_native_stream(task) == NULL;
    gpst_image image;
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &image));
    return on_host ? gpst_task_enqueue(task, &kernel, NULL, 0) : wait_at_door(user_data, task);
}

static gpst_result device_before(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(8, 8);
    gpst_image image;
    (void)gpsti_a32_add((gpsti_a32*)user_data, 1);
    return gpst_task_set_picture(task, 2, 0, &shape, &image);
}

/* LATEST_ONLY acts in front of a stage that says nothing of how many it takes: it takes one. Device work before it goes
   along with it, and none of it is done for an item that is dropped. */
static void test_latest_only_means_one(void** state) {
    static const struct {
        const char *backend, *settings;
        bool device, behind;
    } cases[] = {{"cpu", "; door: queue_most=1 latest-only concurrency=1", false, false},
                 {"cpu", "; door: queue_most=1 latest-only depth=1", true, false},
                 {"sim", "; door: queue_most=1 latest-only depth=1", true, false},
                 {"sim", "; door: queue_most=1 latest-only depth=1", true, true}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        live* const self = live_open(cases[k].backend, 3);
        const uint32_t at = cases[k].behind ? 2 : 1;
        gpsti_a32 n_before = GPST_ZERO;
        if (cases[k].behind) {
            self->stages[3] = self->stages[2];
            gpst_stage_device(&self->stages[1], 0, GPST_SET(2), device_before, &n_before);
            self->desc.n_stages = 4;
        }
        self->stages[at] = host(wait_at_door, "door");
        if (cases[k].device) {
            gpst_stage_device(&self->stages[at], 0, GPST_SET(1), device_at_door, self);
            self->stages[at].name = "door";
        }
        self->stages[at].full_policy = GPST_FULL_LATEST_ONLY;
        live_create(self);
        for (uint32_t n = 0; n < 6; n++) {
            assert_int_equal(submit(self, n, 0, 0), GPST_OK);
            wait_first(self, n + 1);
            wait_for_door(self);
        }
        submit_behind(self, 6);
        const gpst_stats stats = live_close(self);
        check_ends(self, "1dddd11");
        assert_string_equal(self->stage, "door");
        assert_int_equal(gpsti_a32_load(&n_before), cases[k].behind ? 3 : 0);
        assert_non_null(strstr(stats.settings, cases[k].settings));
    }
}

/* BLOCK: not more begin than may wait in front of the stage, but for those that are on their way to it. */
static void test_a_stage_that_blocks(void** state) {
    (void)state;
    live* const self = live_open("cpu", 3);
    self->stages[1].queue_most = 2;
    live_create(self);
    for (int64_t n = 0; n < 40; n++)
        assert_int_equal(submit(self, n, 0, 0), GPST_OK);
    wait_first(self, 3);
    gpsti_sleep_ns(20 * MS);
    assert_true(gpsti_a32_load(&self->n_first) <= 1 + 2 + 2);
    const gpst_stats stats = live_close(self);
    assert_int_equal(stats.items_ok, 40);
    assert_non_null(strstr(stats.settings, "; door: queue_most=2 block"));
}

/* A bound of LATEST_ONLY at the pipeline is every stage's, and what waits is given up where slots are free. */
static void test_latest_only_everywhere(void** state) {
    (void)state;
    live* const self = live_open("cpu", 2);
    self->desc.full_policy = GPST_FULL_LATEST_ONLY;
    live_create(self);
    for (uint32_t n = 0; n < 20; n++) {
        assert_int_equal(submit(self, n, 0, 0), GPST_OK);
        wait_first(self, n + 1);
        wait_for_door(self);
    }
    submit_behind(self, 20);
    live_close(self);
    check_ends(self, "1dddddddddddddddddd11");
}

/* Slots are short: the oldest that waits goes, wherever it waits; of the camera that has most. */
static void test_slots_are_short(void** state) {
    (void)state;
    live* const self = live_open("cpu", 2);
    self->desc.full_policy = GPST_FULL_DROP_OLDEST;
    self->desc.n_slots = 4;
    live_create(self);
    for (uint32_t n = 0; n < 4; n++) { /* 0 is at the door, 1 to 3 in front of it */
        assert_int_equal(submit(self, n, 0, 0), GPST_OK);
        wait_first(self, n + 1);
        wait_for_door(self);
    }
    assert_int_equal(submit(self, 4, 5, 0), GPST_OK);
    wait_first(self, 5);
    assert_int_equal(submit(self, 5, 5, 0), GPST_OK);
    wait_first(self, 6);
    assert_int_equal(submit(self, 6, 5, 0), GPST_OK); /* both cameras have two: its own is given up */
    wait_first(self, 7);
    live_close(self);
    check_ends(self, "1dd1d11");
    assert_string_equal(self->reason, "every slot was taken: a newer one came");
    assert_int_equal(gpsti_a32_load(&self->n_refused), 0);
}

/* Nothing waits that could be given up: the new one is refused, and desc.dropped is told of it, too. */
static void test_refused_at_submit(void** state) {
    (void)state;
    live* const self = live_open("cpu", 1);
    self->desc.full_policy = GPST_FULL_DROP_OLDEST;
    self->desc.n_slots = 1;
    live_create(self);
    assert_int_equal(submit(self, 0, 0, 0), GPST_OK);
    wait_for_door(self);
    assert_int_equal(submit(self, 1, 3, 0), GPST_DROPPED);
    gpst_camera_stats cameras[8];
    assert_int_equal(gpst_pipeline_query_cameras(self->pipeline, cameras, 8), 4);
    assert_int_equal(cameras[3].items_dropped, 1);
    live_close(self);
    check_ends(self, "1d");
    assert_int_equal(gpsti_a32_load(&self->n_refused), 1);
    assert_string_equal(self->reason, "every slot (n_slots) is taken, and nothing waits");
    assert_string_equal(self->stage, "submit");
}

/* A camera that cannot be: nobody is given up for it, and it is heard of by the result alone. */
static void test_a_camera_that_cannot_be(void** state) {
    (void)state;
    live* const self = live_open("cpu", 1);
    self->desc.full_policy = GPST_FULL_DROP_OLDEST;
    self->desc.n_slots = 2;
    live_create(self);
    assert_int_equal(submit(self, 0, 0, 0), GPST_OK);
    wait_for_door(self);
    assert_int_equal(submit(self, 1, 0, 0), GPST_OK);
    assert_int_equal(submit(self, 2, GPST_MAX_CAMERAS, 0), GPST_ERROR_ARGUMENT);
    test_reason_has("input.camera=64", "below GPST_MAX_CAMERAS=64");
    const gpst_stats stats = live_close(self);
    check_ends(self, "11-");
    assert_int_equal(stats.items_total, 2);
}

/* Each camera but the first adds a slot where the engine chooses how many there are, whatever its number is. */
static void test_cameras_add_slots(void** state) {
    static const struct {
        uint32_t cameras[3], n_more;
    } cases[] = {{{0, 0, 0}, 0}, {{63, 63, 63}, 0}, {{63, 0, 63}, 1}, {{0, 9, 63}, 2}};
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        live* const self = live_open("cpu", 2);
        gpst_stats before;
        self->desc.n_slots = 0;
        live_create(self);
        gpst_pipeline_query_stats(self->pipeline, &before);
        for (uint32_t n = 0; n < 3; n++)
            assert_int_equal(submit(self, n, cases[k].cameras[n], 0), GPST_OK);
        const gpst_stats stats = live_close(self);
        assert_int_equal(stats.slots, before.slots + cases[k].n_more);
    }
}

/* No memory for a second camera's slot: that submit says so, and the next has it. */
static void test_no_memory_for_a_slot(void** state) {
    (void)state;
    live* const self = live_open("cpu", 1);
    int64_t n = 0;
    self->desc.n_slots = 0;
    live_create(self);
    while (submit(self, n, 0, 0) == GPST_OK) {
        wait_for_door(self);
        n++;
    }
    test_memory_refuse(&self->kit->memory, 1);
    assert_int_equal(submit(self, n, 1, 0), GPST_ERROR_MEMORY);
    test_reason_has("gpst_pipeline_submit: no memory for another slot", "");
    test_memory_relent(&self->kit->memory);
    assert_int_equal(submit(self, n, 1, 0), GPST_OK);
    assert_int_equal(submit(self, n + 1, 1, 0), GPST_ERROR_WOULD_BLOCK);
    const gpst_stats stats = live_close(self);
    assert_int_equal(stats.slots, n + 1);
    assert_int_equal(stats.items_ok, n + 1);
}

/* What waits with a higher priority is given up for no other; and a refused input was missed by a stateful stage. */
static gpst_result note_missed(void* user_data, gpst_task* task) {
    live* const self = (live*)user_data;
    if (task->item->timestamp_ns == 4)
        kit_check(self->kit, task->n_missed == 2); /* 2 and 3 were refused */
    return note_order(user_data, task);
}

static void test_priority_keeps_its_slot(void** state) {
    (void)state;
    live* const self = live_open("cpu", 1);
    self->desc.full_policy = GPST_FULL_DROP_OLDEST;
    self->desc.n_slots = 2;
    self->stages[2].func = note_missed;
    self->stages[2].stateful = true;
    live_create(self);
    assert_int_equal(submit(self, 0, 0, 0), GPST_OK);
    wait_for_door(self);
    assert_int_equal(submit(self, 1, 0, 5), GPST_OK);
    assert_int_equal(submit(self, 2, 0, 0), GPST_DROPPED);
    assert_int_equal(submit(self, 3, 0, 4), GPST_DROPPED);
    gpsti_a32_store(&self->door.open, 1);
    assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK);
    assert_int_equal(submit(self, 4, 0, 0), GPST_OK);
    live_close(self);
    check_ends(self, "11dd1");
}

static void test_refused_descs(void** state) {
    (void)state;
    live* const self = live_open("cpu", 1);
    gpst_pipeline* pipeline = NULL;
    self->stages[1].full_policy = GPST_FULL_DROP_OLDEST;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("stages[1].queue_most=0", "required");
    self->stages[1].full_policy = GPST_FULL_LATEST_ONLY;
    self->stages[1].queue_most = 2;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("stages[1].queue_most=2", "LATEST_ONLY");
    self->stages[1].full_policy = (gpst_full_policy)9;
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("stages[1].full_policy=9", "unknown");
    self->stages[1].full_policy = GPST_FULL_BLOCK;
    self->stages[1].per_picture = true;
    self->stages[1].reads = GPST_SET(0);
    assert_int_equal(gpst_pipeline_create(self->kit->context, &self->desc, &pipeline), GPST_ERROR_ARGUMENT);
    test_reason_has("stages[1].queue_most", "for each picture");
    self->stages[1].per_picture = false;
    self->stages[1].queue_most = 0;
    kit_close(self->kit);
}

/* ---- cameras --------------------------------------------------------------------------------------------- */

/* Item 0 of camera 0 does not come on: its later ones wait for it at the ordered stage, and those of camera 1 do not. */
static gpst_result hold_the_first(void* user_data, gpst_task* task) {
    return task->item->timestamp_ns == 0 ? wait_at_door(user_data, task) : GPST_OK;
}

static void test_order_within_a_camera(void** state) {
    (void)state;
    live* const self = live_open("cpu", 3);
    self->stages[1].func = hold_the_first;
    self->stages[1].concurrency = 0;
    self->stages[2].ordered = true;
    live_create(self);
    for (uint32_t n = 0; n < 20; n++)
        assert_int_equal(submit(self, n, n % 2, 0), GPST_OK);
    for (uint32_t n = 1; n < 20; n += 2)
        while (gpsti_a32_load(&self->ok[n]) == 0) /* all of camera 1 */
            gpsti_sleep_ns(20000);
    for (uint32_t n = 0; n < 20; n += 2)
        assert_int_equal(gpsti_a32_load(&self->ok[n]), 0);
    assert_int_equal(gpsti_a32_load(&self->n_order), 10);
    gpst_camera_stats cameras[3];
    do /* an item is counted when its sink has returned */
        assert_int_equal(gpst_pipeline_query_cameras(self->pipeline, cameras, 3), 2);
    while (cameras[1].items_ok < 10);
    assert_int_equal(cameras[0].items_ok, 0);
    assert_true(cameras[1].latency_max_ns > 0 && cameras[1].latency_p50_ns <= cameras[1].latency_max_ns);
    assert_int_equal(cameras[2].items_ok, 0);
    live_close(self);
    for (uint32_t n = 0; n < 20; n++)
        assert_int_equal(gpsti_a32_load(&self->order[n]), n < 10 ? 2 * n + 1 : 2 * (n - 10));
}

/* Dropped items have no turn: those behind go on, also where they waited for it. */
static void test_nobody_waits_for_a_dropped_one(void** state) {
    (void)state;
    live* const self = live_open("cpu", 2);
    self->stages[1].queue_most = 1;
    self->stages[1].full_policy = GPST_FULL_DROP_OLDEST;
    self->stages[2].ordered = true;
    live_create(self);
    for (uint32_t n = 0; n < 50; n++) {
        assert_int_equal(submit(self, n, 0, 0), GPST_OK);
        wait_first(self, n + 1);
        wait_for_door(self);
    }
    submit_behind(self, 50);
    const gpst_stats stats = live_close(self);
    assert_int_equal(stats.items_ok, 3);
    assert_int_equal(gpsti_a32_load(&self->ok[0]), 1);
    assert_int_equal(gpsti_a32_load(&self->ok[49]), 1);
}

typedef struct tracker {
    live* self;
    uint64_t last[4], n_wrong, n_gaps;
} tracker;

static tracker the_tracker;

/* Of each camera in order; what it is told to have missed is what it has. */
static gpst_result track(void* user_data, gpst_task* task) {
    tracker* const mine = (tracker*)user_data;
    const uint32_t camera = task->item->camera;
    const uint64_t number = (uint64_t)task->item->timestamp_ns / 4 + 1; /* of the camera's items, from 1 */
    const uint64_t wanted = mine->last[camera] == 0 ? UINT64_MAX : number - mine->last[camera] - 1;
    kit_check(mine->self->kit, number > mine->last[camera]);
    kit_check(mine->self->kit, task->n_missed == wanted);
    mine->last[camera] = number;
    return task->item->timestamp_ns % 7 == 3 ? GPST_ERROR_FORMAT : GPST_OK; /* and one that fails was had */
}

static gpst_result fail_some(void* user_data, gpst_task* task) {
    (void)user_data;
    return task->item->timestamp_ns % 5 == 2 ? GPST_ERROR_FORMAT : GPST_OK;
}

static void test_a_state_knows_what_it_missed(void** state) {
    static const char* const backends[] = {"cpu", "sim", "sim"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        static uint8_t pixels[64];
        live* const self = live_open(backends[k], 3);
        memset(&the_tracker, 0, sizeof the_tracker);
        the_tracker.self = self;
        self->stages[0] = host(fail_some, "first");
        self->stages[0].queue_most = 2;
        self->stages[0].full_policy = GPST_FULL_DROP_OLDEST;
        self->stages[1] = host(track, "track");
        self->stages[1].kind = k == 2 ? GPST_STAGE_DEVICE : GPST_STAGE_HOST;
        self->stages[1].user_data = &the_tracker;
        self->stages[1].stateful = true;
        self->desc.n_stages = 2;
        live_create(self);
        for (uint32_t n = 0; n < 400; n++) {
            gpst_input input = GPST_ZERO;
            input.timestamp_ns = n;
            input.camera = n % 4;
            input.frame = kit_shape(8, 8);
            input.frame.data = pixels;
            assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        }
        live_close(self);
        for (uint32_t c = 0; c < 4; c++)
            assert_true(the_tracker.last[c] > 0);
    }
}

/* One worker, which is at the door; then the highest priority first, and cameras in turn. */
static void test_priority_and_fairness(void** state) {
    static const struct {
        uint32_t camera;
        int32_t priority;
    } items[] = {{0, 0}, {0, 0}, {0, 0}, {0, 0}, {1, 0}, {2, -1}, {1, 7}, {0, 7}, {1, 0}};
    static const uint32_t wanted[] = {0, 6, 7, 4, 1, 8, 2, 3, 5};
    (void)state;
    live* const self = live_open("cpu", 1);
    self->stages[0] = host(hold_the_first, "first");
    self->stages[1] = host(note_order, "second");
    self->desc.n_stages = 2;
    self->desc.as_ready = true;
    live_create(self);
    for (uint32_t n = 0; n < 9; n++) {
        assert_int_equal(submit(self, n, items[n].camera, items[n].priority), GPST_OK);
        wait_for_door(self);
    }
    live_close(self);
    for (uint32_t n = 0; n < 9; n++)
        if (gpsti_a32_load(&self->order[n]) != wanted[n])
            fail_msg("place %u: item %u", n, gpsti_a32_load(&self->order[n]));
}

/* ---- results that are held ---------------------------------------------------------------------------------- */

#define FRAME_SIDE 1024u

static void test_held_results_and_bytes(void** state) {
    (void)state;
    live* const self = &the_live;
    static uint8_t pixels[FRAME_SIDE * FRAME_SIDE];
    const gpst_item* items[64];
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_input input = GPST_ZERO;
    uint32_t n = 0;
    memset(self, 0, sizeof *self);
    context_desc.max_host_bytes = (uint64_t)24 << 20;
    context_desc.n_workers = 2;
    context_desc.backend = "cpu";
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    self->stages[0] = host(count_first, "first");
    self->desc.stages = self->stages;
    self->desc.n_stages = 1;
    self->desc.n_slots = 2;
    self->desc.n_results = 1;
    self->desc.results[0] = gpst_result_of(0, GPST_ON_HOST);
    assert_int_equal(gpst_pipeline_create(context, &self->desc, &self->pipeline), GPST_OK);
    input.frame.data = pixels;
    input.frame.width = input.frame.height = FRAME_SIDE;
    input.frame.format = GPST_FORMAT_GRAY;
    while (n < 64 && gpst_pipeline_submit(self->pipeline, &input, 0, NULL) == GPST_OK) {
        assert_int_equal(gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &items[n]), GPST_OK);
        assert_int_equal(items[n]->result, GPST_OK);
        n++;
    }
    assert_true(n > 8 && n < 24); /* two slots, and far more results, as many as there are bytes for */
    assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, 2 * MS, NULL), GPST_ERROR_TIMEOUT);
    char said[64];
    snprintf(said, sizeof said, "%u results are held", n);
    test_reason_has("max_host_bytes=25165824", said);
    gpst_pipeline_release(self->pipeline, items[--n]);
    assert_int_equal(gpst_pipeline_submit(self->pipeline, &input, 0, NULL), GPST_OK);
    while (n > 0)
        gpst_pipeline_release(self->pipeline, items[--n]);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    gpst_context_destroy(context);
}

/* ---- every item is heard of exactly once ---------------------------------------------------------------------- */

typedef struct chance {
    uint64_t seed;
    uint32_t n_fail, n_slow; /* one in so many items; 0: none */
} chance;

static chance the_chance;

static gpst_result maybe(void* user_data, gpst_task* task) {
    const chance* const self = (const chance*)user_data;
    uint64_t seed = self->seed + (uint64_t)task->item->timestamp_ns * 2654435761u + task->stage_index;
    if (self->n_slow > 0 && test_random(&seed) % self->n_slow == 0)
        gpsti_sleep_ns((int64_t)(test_random(&seed) % 300000));
    if (self->n_fail > 0 && test_random(&seed) % self->n_fail == 0)
        return gpst_task_fail(task, GPST_ERROR_CALLBACK, "by chance");
    return test_random(&seed) % 50 == 0 ? GPST_SKIPPED : GPST_OK;
}

/* By the kernel of the kit, into a set of its own. */
static gpst_result maybe_on_device(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(KIT_WIDTH, KIT_HEIGHT);
    gpst_image from, to;
    kit_args args;
    const gpst_result result = maybe(user_data, task);
    if (result != GPST_OK)
        return result;
    memset(&args, 0, sizeof args);
    GPSTI_TRY(gpst_task_pictures(task, 0, &from, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 1 + task->stage_index, 0, &shape, &to));
    args.from = (const uint8_t*)from.data;
    args.to = (uint8_t*)to.data;
    args.bytes = (uint32_t)KIT_BYTES;
    return gpst_task_enqueue(task, &kit_kernel, &args, sizeof args);
}

static void give_back(void* user_data) {
    gpsti_a32_add((gpsti_a32*)user_data, 1);
}

typedef struct results {
    live* self;
    uint64_t seed;
    gpsti_thread thread;
} results;

/* Takes results, holds some of them for a while, and gives all back. */
static void take_results(void* argument) {
    results* const mine = (results*)argument;
    live* const self = mine->self;
    const gpst_item* held[8] = {NULL};
    const gpst_item* item = NULL;
    for (;;) {
        const gpst_result result = gpst_pipeline_next_result(self->pipeline, GPST_FOREVER, &item);
        if (result == GPST_END)
            break;
        kit_check(self->kit, result == GPST_OK && item->result != GPST_DROPPED);
        gpsti_a32_add(&self->ok[item->timestamp_ns % MOST], 1);
        const size_t k = (size_t)(test_random(&mine->seed) % 8);
        gpst_pipeline_release(self->pipeline, held[k]);
        held[k] = item;
    }
    for (size_t k = 0; k < 8; k++)
        gpst_pipeline_release(self->pipeline, held[k]);
}

static void random_pipeline(live* self, uint64_t* seed, bool* has_sink) {
    the_chance.seed = test_random(seed);
    the_chance.n_fail = test_random(seed) % 3 ? 0 : 7;
    the_chance.n_slow = (uint32_t)(test_random(seed) % 4);
    self->desc.n_stages = 2 + (uint32_t)(test_random(seed) % 3);
    for (uint32_t s = 0; s < self->desc.n_stages; s++) {
        gpst_stage_desc* const stage = &self->stages[s];
        if (test_random(seed) % 3 == 0) {
            gpst_stage_device(stage, GPST_SET(0), GPST_SET(1 + s), maybe_on_device, &the_chance);
            stage->stateful = test_random(seed) % 3 == 0;
        } else {
            gpst_stage_host(stage, 0, 0, maybe, &the_chance);
            stage->concurrency = (uint32_t)(test_random(seed) % 3);
            stage->ordered = test_random(seed) % 3 == 0;
        }
        stage->full_policy = (gpst_full_policy)(test_random(seed) % 4);
        stage->queue_most = stage->full_policy == GPST_FULL_LATEST_ONLY ? 0 : 1 + (uint32_t)(test_random(seed) % 3);
    }
    self->desc.full_policy = (gpst_full_policy)(test_random(seed) % 4);
    self->desc.n_slots = 1 + (uint32_t)(test_random(seed) % 9);
    self->desc.as_ready = test_random(seed) % 2 == 0;
    *has_sink = test_random(seed) % 2 == 0;
    self->desc.sink = *has_sink ? sink_ok : NULL;
}

/* Submits, drops, fails, holds, cancels and closes at random; then each item that submit took, and each that it dropped,
   has been told once, by the sink, a result or desc.dropped, and its frame given back once. */
static void random_run(const char* backend, uint64_t seed) {
    const uint64_t first_seed = seed;
    live* const self = live_open(backend, 1 + (uint32_t)(test_random(&seed) % 3));
    static uint8_t pixels[KIT_BYTES];
    static gpst_result said[MOST];
    bool has_sink = true;
    random_pipeline(self, &seed, &has_sink);
    live_create(self);
    results taker;
    taker.self = self;
    taker.seed = test_random(&seed);
    if (!has_sink)
        assert_int_equal(gpsti_thread_start(&taker.thread, take_results, &taker, "taker"), GPST_OK);
    const uint32_t n = 20 + (uint32_t)(test_random(&seed) % 60);
    const uint32_t cancel_at = test_random(&seed) % 4 ? UINT32_MAX : (uint32_t)(test_random(&seed) % n);
    for (uint32_t k = 0; k < n; k++) {
        gpst_input input = GPST_ZERO;
        input.timestamp_ns = k;
        input.camera = (uint32_t)(test_random(&seed) % 3);
        input.priority = (int32_t)(test_random(&seed) % 2);
        input.frame = kit_shape(KIT_WIDTH, KIT_HEIGHT);
        input.frame.data = pixels;
        input.release = give_back;
        input.release_user_data = &self->back[k];
        said[k] = gpst_pipeline_submit(self->pipeline, &input, test_random(&seed) % 3 ? 1 * MS : GPST_FOREVER, NULL);
        if (k == cancel_at)
            gpst_pipeline_cancel(self->pipeline);
        if (test_random(&seed) % 4 == 0)
            gpsti_sleep_ns((int64_t)(test_random(&seed) % 200000));
    }
    gpst_pipeline_close(self->pipeline);
    if (!has_sink)
        gpsti_thread_join(&taker.thread);
    const gpst_result drained = gpst_pipeline_drain(self->pipeline, 30000 * MS);
    gpst_stats stats;
    gpst_pipeline_query_stats(self->pipeline, &stats);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    if (drained != GPST_OK)
        fail_msg("seed %llu: not drained", (unsigned long long)first_seed);
    uint64_t n_told = 0;
    for (uint32_t k = 0; k < n; k++) {
        const uint32_t ok = gpsti_a32_load(&self->ok[k]), dropped = gpsti_a32_load(&self->dropped[k]);
        const uint32_t wanted = said[k] == GPST_OK || said[k] == GPST_DROPPED ? 1 : 0;
        n_told += ok + dropped;
        if (ok + dropped != wanted || (said[k] == GPST_DROPPED && dropped != 1) ||
            gpsti_a32_load(&self->back[k]) != wanted)
            fail_msg("seed %llu, item %u: submit said %s; told %u times, dropped %u, frame back %u times",
                     (unsigned long long)first_seed, k, gpst_result_name(said[k]), ok, dropped,
                     gpsti_a32_load(&self->back[k]));
    }
    assert_int_equal(stats.items_total, n_told);
    kit_close(self->kit);
}

static void test_heard_of_once(void** state) {
    const char* const wanted = getenv("GPST_DROP_RUNS");
    const char* const seed = getenv("GPST_SEED");
    const uint64_t first = seed ? strtoull(seed, NULL, 10) : 1, n = wanted ? strtoull(wanted, NULL, 10) : 150;
    static const char* const backends[] = {"cpu", "sim", "cpu", "sim:fail_launch=9", "sim:lose_at=15", "sim:fail_copy=5"};
    (void)state;
    kit_count_faults();
    for (uint64_t k = 0; k < n; k++)
        random_run(backends[(first + k) % 6], first + k);
    assert_true(kit_counted_faults() >= n / 10); /* half of the runs have one; some are cancelled before it */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stage_s_bound), cmocka_unit_test(test_a_bound_keeps_priority),
        cmocka_unit_test(test_latest_only_means_one),
        cmocka_unit_test(test_a_stage_that_blocks),
        cmocka_unit_test(test_latest_only_everywhere),
        cmocka_unit_test(test_slots_are_short),
        cmocka_unit_test(test_refused_at_submit),
        cmocka_unit_test(test_a_camera_that_cannot_be),
        cmocka_unit_test(test_cameras_add_slots),
        cmocka_unit_test(test_no_memory_for_a_slot),
        cmocka_unit_test(test_priority_keeps_its_slot),
        cmocka_unit_test(test_refused_descs),
        cmocka_unit_test(test_order_within_a_camera),
        cmocka_unit_test(test_nobody_waits_for_a_dropped_one),
        cmocka_unit_test(test_a_state_knows_what_it_missed),
        cmocka_unit_test(test_priority_and_fairness),
        cmocka_unit_test(test_held_results_and_bytes),
        cmocka_unit_test(test_heard_of_once),
    };
    return cmocka_run_group_tests_name("pipeline_drops", tests, NULL, NULL);
}
