/* tests/test_pipeline_early_device.c -- workers begin with the other items while item 0 is with a device, whose
   simulated kernel waits for what it is to see: when, when not, and what becomes of all when something fails then. */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

#define PATIENCE_NS ((int64_t)10000000000) /* of item 0's kernel: longer than any machine needs */
#define SOME_NS 5000000                    /* in which workers would have begun, if they did */

typedef struct beside {
    kit* kit;
    gpsti_a32 n_decoded, n_on_device; /* of the other items: so many were decoded, and had their device stage called */
    gpsti_a32 n_decoding, n_decoding_most;
    uint32_t wants;        /* item 0's kernel goes on when so many others are decoded */
    bool brief;            /* item 0's device stage does not take as long as makes the others worth their memory */
    int64_t wait_ns;       /* its kernel takes so long at most */
    int64_t alloc_ns;      /* each allocation, from the end of item 0's decoding to its device stage */
    uint64_t refused_call; /* of those from item 0's device stage on; 0 = none */
    void (*then)(struct beside* self); /* what its kernel does before it ends */
    gpst_result result;    /* and what becomes of it */
    bool called;           /* item 0's device stage was */
    bool plain;            /* it came to the device on the caller's thread */
    uint32_t n_before;     /* others decoded until it was the device's */
    bool seen;             /* its kernel saw them */
    uint32_t n_by_then;    /* others decoded until its kernel went on */
    bool alone;            /* and that none of them came to the device */
} beside;

static gpst_result decode_beside(void* user_data, gpst_task* task) {
    beside* const self = (beside*)user_data;
    const bool is_first = task->item->index == 0;
    const uint32_t now = gpsti_a32_add(&self->n_decoding, 1) + 1;
    const gpst_result result = kit_decode(self->kit, task);
    if (!is_first && now > gpsti_a32_load(&self->n_decoding_most))
        gpsti_a32_store(&self->n_decoding_most, now);
    (void)gpsti_a32_add(&self->n_decoding, UINT32_MAX);
    (void)gpsti_a32_add(&self->n_decoded, is_first ? 0 : 1);
    if (is_first)
        gpsti_a64_store(&self->kit->memory.sleep_ns, (uint64_t)self->alloc_ns);
    return result;
}

typedef struct beside_args {
    beside* self;
} beside_args;

static gpst_result wait_on_the_device(const void* args) {
    beside* const self = ((const beside_args*)args)->self;
    const int64_t end_ns = gpsti_now_ns() + self->wait_ns;
    while (gpsti_a32_load(&self->n_decoded) < self->wants && gpsti_now_ns() < end_ns)
        gpsti_sleep_ns(100000);
    self->n_by_then = gpsti_a32_load(&self->n_decoded);
    self->seen = self->n_by_then >= self->wants;
    if (self->then)
        self->then(self);
    return GPST_FAILED(self->result) ? gpst_task_fail(NULL, self->result, "the kernel had enough") : GPST_OK;
}

/* Twice as long as that, whatever memory costs here. */
static void work_until_others_pay(const gpst_pipeline* pipeline) {
    const int64_t enough_ns = 2 * gpsti_tune_price_ns(pipeline) / (int64_t)gpsti_plain_left(pipeline) + SOME_NS;
    while (gpsti_now_ns() - pipeline->start_ns - gpsti_plain_setup_ns(pipeline) < enough_ns)
        gpsti_sleep_ns(1000000);
}

static gpst_result compute_beside(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"wait", wait_on_the_device, NULL};
    beside* const self = (beside*)user_data;
    beside_args args;
    args.self = self;
    if (task->item->index > 0) {
        (void)gpsti_a32_add(&self->n_on_device, 1);
        return kit_device(self->kit, task);
    }
    gpsti_a64_store(&self->kit->memory.sleep_ns, 0);
    if (!self->called) { /* else the CPU does what the device did not */
        self->plain = task->worker_index == 2;
        if (self->plain && !self->brief)
            work_until_others_pay(self->kit->pipeline);
        self->n_before = gpsti_a32_load(&self->n_decoded);
    }
    self->called = true;
    GPSTI_TRY(gpst_task_enqueue(task, &kernel, &args, sizeof args));
    GPSTI_TRY(kit_device(self->kit, task));
    if (self->refused_call > 0)
        test_memory_refuse(&self->kit->memory, self->refused_call);
    return GPST_OK;
}

static kit* beside_begin(const char* backend, beside* watch, uint64_t n_items, gpst_pipeline_desc* desc) {
    kit* const self = kit_open(backend, 2);
    memset(watch, 0, sizeof *watch);
    watch->kit = self;
    watch->wants = 1;
    watch->wait_ns = PATIENCE_NS;
    *desc = kit_standard(self, n_items);
    self->stages[1].func = decode_beside;
    self->stages[2].func = compute_beside;
    self->stages[1].user_data = self->stages[2].user_data = watch;
    desc->n_items_expected = n_items;
    return self;
}

/* Where the caller's thread brought item 0 to the device, nobody had begun before. */
static void beside_end(kit* self, const beside* watch) {
    kit_check_files(self);
    kit_close(self);
    assert_true(!watch->plain || watch->n_before == 0);
}

static void test_others_begin_beside_a_device(void** state) {
    (void)state;
    static const uint64_t n_items[] = {3, 20, 200};
    for (int i = 0; i < 3; i++) {
        gpst_pipeline_desc desc;
        gpst_stats stats;
        beside watch;
        kit* const self = beside_begin("sim", &watch, n_items[i], &desc);
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_true(watch.seen);
        assert_int_equal(self->n_ok, n_items[i]);
        assert_int_equal(stats.stages[0].count, n_items[i]);
        assert_true(stats.slots_used > 1);
        beside_end(self, &watch);
    }
}

/* The picture again, with room for more, and from now on memory takes long. */
static gpst_result enlarge(void* user_data, gpst_task* task) {
    beside* const self = (beside*)user_data;
    const gpst_image shape = kit_shape(16 * KIT_WIDTH, KIT_HEIGHT);
    gpst_image image;
    GPSTI_TRY(gpst_task_set_input(task, &shape, &image));
    memset(image.data, 0xA5, 16 * KIT_BYTES);
    memcpy(image.data, task->item->file_data, KIT_BYTES);
    if (task->item->index == 0)
        gpsti_a64_store(&self->kit->memory.sleep_ns, 2000000);
    return GPST_OK;
}

/* Item 0 is with the device twice, and the second time asks it for more memory. */
static void go_there_twice(kit* self, beside* watch, gpst_pipeline_desc* desc) {
    memmove(&self->stages[4], &self->stages[2], 3 * sizeof self->stages[0]);
    self->stages[2] = kit_stage(self, GPST_STAGE_DEVICE, kit_nothing, "once");
    self->stages[3] = kit_stage(self, GPST_STAGE_HOST, enlarge, "enlarge");
    self->stages[3].user_data = watch;
    desc->n_stages = self->n_stages = 7;
}

/* Streams, events and memory of a device that take long to make are no work: beside_end looks. */
static void test_device_memory_is_waited_for(void** state) {
    (void)state;
    for (int twice = 0; twice < 2; twice++) {
        gpst_pipeline_desc desc;
        gpst_stats stats;
        beside watch;
        kit* const self = beside_begin("sim", &watch, twice ? 200 : 20, &desc);
        watch.alloc_ns = twice ? 0 : 2000000;
        watch.wait_ns = SOME_NS; /* others would make as much */
        if (twice)
            go_there_twice(self, &watch, &desc);
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, self->n_items);
        beside_end(self, &watch);
    }
}

static void look_whether_alone(beside* self) {
    gpsti_sleep_ns(SOME_NS);
    self->alone = gpsti_a32_load(&self->n_on_device) == 0;
}

/* Item 0 is one of so many that may be on the device. Its thread waits there, and is none of those at work. */
static void test_no_more_beside_a_device_than_given(void** state) {
    (void)state;
    for (int streams = 0; streams < 2; streams++) {
        gpst_pipeline_desc desc;
        gpst_stats stats;
        beside watch;
        kit* const self = beside_begin("sim", &watch, 20, &desc);
        desc.settings.value[streams ? GPST_KNOB_STREAMS : GPST_KNOB_WORKERS] = 1;
        watch.wait_ns = PATIENCE_NS / 10;
        watch.then = look_whether_alone;
        watch.wants = 3;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, 20);
        assert_true(streams || gpsti_a32_load(&watch.n_decoding_most) == 1);
        assert_true(!streams || !watch.plain || !watch.seen || watch.alone);
        beside_end(self, &watch);
    }
}

/* Its kernel fails after the others have begun: it alone, unless the run is to stop. */
static void test_the_kernel_fails(void** state) {
    (void)state;
    for (int stops = 0; stops < 2; stops++) {
        gpst_pipeline_desc desc;
        gpst_stats stats;
        beside watch;
        kit* const self = beside_begin("sim", &watch, 100, &desc);
        watch.result = GPST_ERROR_FORMAT;
        desc.stop_on_error = stops != 0;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_PARTIAL);
        assert_true(watch.seen);
        assert_int_equal(self->results[0], GPST_ERROR_FORMAT);
        assert_int_equal(self->n_failed, 1);
        assert_true(stops ? self->n_ok < 99 : self->n_ok == 99);
        assert_string_equal(self->failed_reason, "the kernel had enough");
        beside_end(self, &watch);
    }
}

static void cancel_it(beside* self) { gpst_pipeline_cancel(self->kit->pipeline); }

static void test_cancel_beside_a_device(void** state) {
    (void)state;
    for (uint32_t round = 0; round < 8; round++) {
        gpst_pipeline_desc desc;
        gpst_stats stats;
        beside watch;
        kit* const self = beside_begin("sim", &watch, 50, &desc);
        watch.then = cancel_it;
        watch.wants = round; /* 0: perhaps while the engine is being opened */
        watch.brief = round % 2 == 0;
        watch.wait_ns = round % 2 ? PATIENCE_NS : SOME_NS;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_ERROR_CANCELLED);
        assert_int_equal(stats.items_ok + stats.items_failed + stats.items_cancelled, self->n_sinks);
        assert_int_equal(self->results[0], GPST_ERROR_CANCELLED); /* it had an encoder before it */
        assert_int_equal(self->n_failed, 0);
        beside_end(self, &watch);
    }
}

/* The device is lost with item 0, at its first, its last or the next one's kernel: all is done on the CPU. */
static void test_the_device_is_lost(void** state) {
    (void)state;
    static const char* const backends[] = {"sim:lose_at=1", "sim:lose_at=2", "sim:lose_at=4", "sim:lose_at=5"};
    for (int i = 0; i < 4; i++) {
        gpst_pipeline_desc desc;
        gpst_stats stats;
        beside watch;
        kit* const self = beside_begin(backends[i], &watch, 20, &desc);
        watch.wait_ns = i == 0 ? SOME_NS : PATIENCE_NS; /* lost at once it waits on the CPU, and others for it */
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_true(watch.seen || i == 0);
        assert_int_equal(self->n_ok, 20);
        assert_true(stats.device_fallbacks > 0);
        beside_end(self, &watch);
    }
}

static void wait_some(beside* self) {
    (void)self;
    gpsti_sleep_ns(SOME_NS);
}

/* The others' memory on the device, which item 0 keeps waiting: the one that found none is done on the CPU. */
static void test_no_memory_on_the_device(void** state) {
    (void)state;
    static const char* const backends[] = {"sim:fail_alloc=5", "sim:fail_alloc=6", "sim:fail_alloc=8",
                                           "sim:fail_stream=2"};
    for (int i = 0; i < 4; i++) {
        gpst_pipeline_desc desc;
        gpst_stats stats;
        beside watch;
        kit* const self = beside_begin(backends[i], &watch, 20, &desc);
        watch.then = wait_some;
        assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
        assert_true(watch.seen);
        assert_int_equal(self->n_ok, 20);
        assert_int_equal(stats.device_fallbacks, 1);
        beside_end(self, &watch);
    }
}

/* The n-th allocation after item 0 was given to the device: of the engine that is being opened, of an item beside it.
   An item may fail of it, a run may stay plain, and everything is there or told of. */
static void test_no_memory_for_the_opening(void** state) {
    (void)state;
    for (uint64_t n = 1; n <= 16; n++) {
        gpst_pipeline_desc desc;
        gpst_stats stats;
        beside watch;
        kit* const self = beside_begin("sim", &watch, 20, &desc);
        watch.refused_call = n;
        watch.wait_ns = 2 * SOME_NS;
        const gpst_result result = run_tuned(self, &desc, &stats);
        test_memory_relent(&self->memory);
        assert_true(result == GPST_OK || result == GPST_PARTIAL);
        assert_int_equal(self->n_ok + self->n_failed, 20);
        assert_in_range(self->n_failed, 0, 1);
        assert_int_equal(result == GPST_PARTIAL, self->n_failed);
        beside_end(self, &watch);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_others_begin_beside_a_device),
        cmocka_unit_test(test_device_memory_is_waited_for),
        cmocka_unit_test(test_no_more_beside_a_device_than_given),
        cmocka_unit_test(test_the_kernel_fails),
        cmocka_unit_test(test_cancel_beside_a_device),
        cmocka_unit_test(test_the_device_is_lost),
        cmocka_unit_test(test_no_memory_on_the_device),
        cmocka_unit_test(test_no_memory_for_the_opening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
