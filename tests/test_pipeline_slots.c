/* tests/test_pipeline_slots.c -- the slots of a run, on simulated devices whose host memory takes long to make and on
   others: what was asked for, who gets memory at once, and whose clock knows what it took. How many are worth their
   memory is test_tuner_slots.c's. */
#define KIT_NAMES_ITS_BACKENDS /* what memory costs is their subject */
#include "pipeline_kit.h"
#include "pipeline_tuned.h"

#if defined(__linux__)
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

#define PATIENCE_NS ((int64_t)10000000000) /* longer than any machine needs */
#define PAGE_NS 2000000                    /* of the slow memory below: no buffer takes less */
#define SLOW_MEMORY "sim:pin_gbps=0.002"
#define QUICK_MEMORY "sim:pin_gbps=0.2"

typedef struct watched {
    kit* kit;
    uint32_t waits_for;  /* item 0 is at work until so many others have begun, and they until it is not */
    gpsti_a32 n_begun;
    gpsti_a32 is_over;
    uint32_t first, last; /* slots that item 0 saw when workers had begun, and at its end */
    bool sparing, held_back;
} watched;

/* Before workers begin there is nothing to see. */
static void watch_slots(watched* self) {
    const gpst_pipeline* const pipeline = self->kit->pipeline;
    gpsti_scheduler* const scheduler = self->kit->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    if (pipeline->attached) {
        self->last = pipeline->n_slots;
        self->first = self->first ? self->first : self->last;
        self->sparing = pipeline->tune.sparing;
        self->held_back = self->held_back || pipeline->n_slots < pipeline->tune.tuner.now.value[GPST_KNOB_SLOTS];
    }
    gpsti_mutex_unlock(&scheduler->mutex);
}

static gpst_result decode_and_watch(void* user_data, gpst_task* task) {
    watched* const self = (watched*)user_data;
    const int64_t end_ns = gpsti_now_ns() + PATIENCE_NS;
    if (task->item->index == 0) {
        do {
            gpsti_sleep_ns(100000);
            watch_slots(self);
        } while (gpsti_a32_load(&self->n_begun) < self->waits_for && gpsti_now_ns() < end_ns);
        gpsti_a32_store(&self->is_over, 1);
    } else {
        (void)gpsti_a32_add(&self->n_begun, 1);
        while (gpsti_a32_load(&self->is_over) == 0 && gpsti_now_ns() < end_ns)
            gpsti_sleep_ns(100000);
    }
    return kit_decode(self->kit, task);
}

typedef enum watch_kind { SIX_SLOTS, SIX_SETTINGS } watch_kind;

static watched run_watched(const char* backend, uint64_t n_items, uint32_t waits_for, watch_kind kind) {
    watched seen, *const self = &seen;
    memset(self, 0, sizeof *self);
    kit* const own = kit_open(backend, 16);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_standard(own, n_items);
    self->kit = own;
    self->waits_for = waits_for;
    own->stages[1].func = decode_and_watch;
    own->stages[1].user_data = self;
    desc.n_items_expected = n_items;
    desc.n_slots = kind == SIX_SLOTS ? 6 : 0;
    desc.settings.value[GPST_KNOB_SLOTS] = kind == SIX_SETTINGS ? 6 : 0;
    assert_int_equal(run_tuned(own, &desc, &stats), GPST_OK);
    assert_int_equal(own->n_ok, n_items);
    kit_check_files(own);
    kit_close(own);
    printf("    %s: %u slots at first, %u when item 0 was done with\n", backend, self->first, self->last);
    return seen;
}

/* Slots that were asked for: all at once. */
static void test_slots_that_are_asked_for(void** state) {
    (void)state;
    for (int fixed = 0; fixed < 2; fixed++) {
        const watched asked = run_watched(SLOW_MEMORY, 200, 5, fixed ? SIX_SLOTS : SIX_SETTINGS);
        assert_false(asked.sparing || asked.held_back);
        assert_int_equal(asked.first, 6);
    }
}

typedef struct in_turn {
    kit* kit;
    uint32_t n_checked; /* items that began where it was said how many are to get memory at once */
    bool too_many;
} in_turn;

/* Each slot in use that has carried no item yet is one whose memory is being made. */
static gpst_result source_in_turn(void* user_data, uint64_t index, gpst_input* out) {
    in_turn* const self = (in_turn*)user_data;
    const gpst_pipeline* const pipeline = self->kit->pipeline;
    gpsti_scheduler* const scheduler = self->kit->context->scheduler;
    gpsti_mutex_lock(&scheduler->mutex);
    const uint32_t n = pipeline->n_filling;
    if (n > 0) {
        self->n_checked++;
        self->too_many = self->too_many || pipeline->in_flight > pipeline->n_served + n;
    }
    gpsti_mutex_unlock(&scheduler->mutex);
    return kit_source(self->kit, index, out);
}

static void run_in_turn(const char* backend, int64_t decode_ns) {
    in_turn seen;
    kit* const self = kit_open(backend, 8);
    gpst_stats stats;
    gpst_pipeline_desc desc = kit_standard(self, 100);
    memset(&seen, 0, sizeof seen);
    seen.kit = self;
    desc.source = source_in_turn;
    desc.source_user_data = &seen;
    desc.n_items_expected = 100;
    self->n_outputs = desc.n_outputs = 1;
    self->decode_ns = decode_ns;
    assert_int_equal(run_tuned(self, &desc, &stats), GPST_OK);
    assert_int_equal(self->n_ok, 100);
    kit_check_files(self);
    kit_close(self);
    printf("    %s: %u items began where it was said how many get memory at once\n", backend, seen.n_checked);
    assert_false(seen.too_many);
}

/* However many are to get their memory at once, no more begin without. */
static void test_memory_is_made_in_turn(void** state) {
    (void)state;
    run_in_turn(SLOW_MEMORY, 3000000);
    run_in_turn(SLOW_MEMORY, 40000000);
    run_in_turn(QUICK_MEMORY, 40000000);
    run_in_turn("sim", 3000000);
    run_in_turn("cpu", 3000000);
}

/* A bunch of brief items is no larger than what may begin: 2 beyond the slots that have carried one. */
static void test_bunches_are_of_items_that_may_begin(void** state) {
    (void)state;
    static gpst_pipeline pipeline;
    memset(&pipeline, 0, sizeof pipeline);
    pipeline.steps[0].kind = GPSTI_STEP_HOST;
    pipeline.steps[1].kind = GPSTI_STEP_FINISH;
    pipeline.n_steps = 2;
    pipeline.n_outputs = pipeline.n_active = 1;
    pipeline.source_work_ns = 1000;
    pipeline.desc.n_items_expected = 10000;
    pipeline.n_slots = 30;
    pipeline.n_served = 4;
    pipeline.in_flight = 1;
    assert_int_equal(gpsti_flow_n_free(&pipeline), 29);
    assert_int_equal(gpsti_carry_n_items(&pipeline), 15);
    pipeline.n_filling = 2;
    assert_int_equal(gpsti_flow_n_free(&pipeline), 5);
    assert_int_equal(gpsti_carry_n_items(&pipeline), 5);
    pipeline.n_served = 29;
    assert_int_equal(gpsti_flow_n_free(&pipeline), 29);
    pipeline.n_served = 0;
    pipeline.in_flight = 3; /* they began before */
    assert_int_equal(gpsti_flow_n_free(&pipeline), 0);
}

/* Whoever makes it, the clock of the stage knows it as its slot does, and once only; the run knows it as one stretch. */
static void check_setup(const gpst_pipeline* pipeline) {
    int64_t clocks_ns = 0, slots_ns = 0;
    for (uint32_t c = 0; c < pipeline->n_clocks; c++) {
        clocks_ns += pipeline->clocks[c].setup_ns;
        assert_true(pipeline->clocks[c].setup_ns <= pipeline->clocks[c].busy_ns);
    }
    for (uint32_t s = 0; s < pipeline->n_slots_made; s++)
        slots_ns += (int64_t)gpsti_a64_load(&pipeline->slots[s]->setup_ns);
    if (pipeline->n_steps == 3) /* none of it is the device's, which has no clock */
        assert_int_equal(clocks_ns, slots_ns);
    assert_true(clocks_ns <= slots_ns);
    assert_true(gpsti_plain_setup_ns(pipeline) <= slots_ns);
    assert_true(pipeline->clocks[0].setup_ns >= PAGE_NS / 100);     /* a file */
    assert_true(pipeline->clocks[1].setup_ns >= 4 * PAGE_NS / 100); /* a picture and three outputs */
}

static void test_clocks_know_what_memory_took(void** state) {
    (void)state;
    static const gpst_run_mode modes[] = {GPST_RUN_PLAIN_SERIAL, GPST_RUN_ENGINE, GPST_RUN_DEFAULT};
    for (int i = 0; i < 3 * 2; i++) {
        kit* const self = kit_open(QUICK_MEMORY, 4);
        gpst_pipeline_desc desc = kit_standard(self, 100);
        desc.mode = modes[i % 3];
        desc.n_items_expected = 100;
        self->decode_ns = 500000;
        if (i >= 3)
            desc.n_stages = self->n_stages = 2;
        kit_forget(self);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
        assert_int_equal(self->n_ok, 100);
        check_setup(self->pipeline);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        self->pipeline = NULL;
        kit_close(self);
    }
}

#if defined(__linux__)
#define LARGE_SIDE 4096u
#define LARGE_BYTES ((size_t)LARGE_SIDE * LARGE_SIDE)

/* Is its last page in memory? */
static bool is_used(void* data) {
    unsigned char in_use = 0;
    assert_int_equal(mincore((char*)data + LARGE_BYTES - 4096, 4096, &in_use), 0);
    return (in_use & 1) != 0;
}

static gpst_result large_source(void* user_data, uint64_t index, gpst_input* out) {
    const kit* const self = (const kit*)user_data;
    out->path = self->path;
    return index == 0 ? GPST_OK : GPST_END;
}

/* What an encoder asks for it need not fill; but reserved huge pages are there from the first. */
static gpst_result make_large(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(LARGE_SIDE, LARGE_SIDE);
    gpst_image picture;
    gpst_pool_info pool;
    void* room = NULL;
    GPSTI_TRY(gpst_task_set_input(task, &shape, &picture));
    kit_check((kit*)user_data, is_used(picture.data));
    GPSTI_TRY(gpst_task_set_output(task, 0, &shape, &picture));
    kit_check((kit*)user_data, is_used(picture.data));
    GPSTI_TRY(gpst_task_encoded(task, LARGE_BYTES, &room));
    gpst_pool_query_info(task->pipeline->pool, &pool);
    kit_check((kit*)user_data, pool.hugetlb_bytes > 0 || !is_used(room));
    return GPST_OK;
}

/* The first use of memory is part of what it takes to make, wherever all of it will be filled: no stage's work, and in
   the price of a slot. */
static void test_first_use_is_no_work(void** state) {
    (void)state;
    kit* const self = kit_open("cpu", 2);
    snprintf(self->path, sizeof self->path, "%s/large", self->dir);
    const int file = open(self->path, O_CREAT | O_WRONLY, 0600);
    assert_true(file >= 0);
    assert_int_equal(ftruncate(file, (off_t)(4 * LARGE_BYTES)), 0);
    assert_int_equal(close(file), 0);
    gpst_pipeline_desc desc = kit_simple(self, 1, make_large);
    self->stages[1] = self->stages[0];
    self->stages[0] = kit_stage(self, GPST_STAGE_READ, NULL, NULL);
    desc.n_stages = self->n_stages = 2;
    desc.n_outputs = 1;
    desc.source = large_source;
    kit_forget(self);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
    assert_int_equal(self->n_ok, 1);
    assert_true(self->pipeline->clocks[0].setup_ns > 0);
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    self->pipeline = NULL;
    assert_int_equal(remove(self->path), 0);
    kit_close(self);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slots_that_are_asked_for),
        cmocka_unit_test(test_memory_is_made_in_turn),
        cmocka_unit_test(test_bunches_are_of_items_that_may_begin),
        cmocka_unit_test(test_clocks_know_what_memory_took),
#if defined(__linux__)
        cmocka_unit_test(test_first_use_is_no_work),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
