/* tests/test_pipeline_keep.c -- a sink that keeps items: their results stay as they are while later items pass, until
   they are released, by any thread and at any moment from the sink's call on; what waits for that meanwhile, and what
   becomes of those that nobody released. */
#include "pipeline_kit.h"

#include "gpu_kernels.h"

enum { SIDE = 32, BYTES = SIDE * SIDE, MOST_FRAMES = 16, N_ITEMS = 120 };
#define SOON_NS ((int64_t)20 * 1000000000)

/* ---- a camera whose frames are lent ----------------------------------------------------------------------- */

typedef struct camera camera;

typedef struct frame {
    camera* of;
    gpsti_a32 is_out;
    uint8_t pixels[BYTES];
} frame;

struct camera {
    kit* kit;
    uint32_t n_frames;
    uint64_t n_items;
    frame frames[MOST_FRAMES];
    gpsti_a32 n_lent, n_back, n_refused;
    gpst_stream* stream; /* reads results of the device */
    /* What the sink keeps, and how many at most; it releases the oldest. */
    uint32_t keep_most;
    const gpst_item* kept[N_ITEMS];
    uint32_t first, n;
    bool pauses; /* plain blocks of the guard at any moment */
    /* Items on their way to the thread that releases them. */
    const gpst_item* given[N_ITEMS];
    gpsti_a32 n_given, n_taken;
    bool waits_for_taker; /* the sink returns when the item has been released */
    int64_t take_ns;
};

static camera the;

static uint8_t pixel(uint64_t index, size_t i) { return (uint8_t)(index * 13 + i * 5 + 3); }

static void frame_is_back(void* user_data) {
    frame* const self = (frame*)user_data;
    kit_check(self->of->kit, gpsti_a32_exchange(&self->is_out, 0) == 1);
    (void)gpsti_a32_add(&self->of->n_back, 1);
}

/* False: all are out. */
static bool lend(camera* self, uint64_t index, gpst_input* out) {
    uint32_t f = 0;
    while (f < self->n_frames && gpsti_a32_load(&self->frames[f].is_out) != 0)
        f++;
    if (f == self->n_frames)
        return false;
    gpsti_a32_store(&self->frames[f].is_out, 1);
    for (size_t i = 0; i < BYTES; i++)
        self->frames[f].pixels[i] = pixel(index, i);
    out->frame = kit_shape(SIDE, SIDE);
    out->frame.data = self->frames[f].pixels;
    out->release = frame_is_back;
    out->release_user_data = &self->frames[f];
    (void)gpsti_a32_add(&self->n_lent, 1);
    return true;
}

static gpst_result next_frame(void* user_data, uint64_t index, gpst_input* out) {
    camera* const self = (camera*)user_data;
    if (index >= self->n_items)
        return GPST_END;
    if (lend(self, index, out))
        return GPST_OK;
    (void)gpsti_a32_add(&self->n_refused, 1);
    return GPST_ERROR_WOULD_BLOCK;
}

/* ---- results of three kinds: 0 the lent frame, 1 on the device, 2 on the host ------------------------------- */

static gpst_result add_on_host(const void* args) {
    const test_number_args* const a = (const test_number_args*)args;
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = (uint8_t)(a->from[i] + a->add);
    return GPST_OK;
}

static gpst_result add_seven(void* user_data, gpst_task* task) {
    static const gpst_kernel kernel = {"add", add_on_host, TEST_GPU(test_number_gpu)};
    gpst_image from, to;
    test_number_args args;
    (void)user_data;
    memset(&args, 0, sizeof args);
    GPSTI_TRY(gpst_task_pictures(task, 0, &from, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &from, &to));
    args.from = (const uint8_t*)from.data;
    args.to = (uint8_t*)to.data;
    args.add = 7;
    args.bytes = BYTES;
    return gpst_task_enqueue(task, &kernel, &args, sizeof args);
}

static gpst_result flip(void* user_data, gpst_task* task) {
    camera* const self = (camera*)user_data;
    gpst_pipeline* const pipeline = self->kit->pipeline;
    const gpst_image shape = kit_shape(SIDE, SIDE);
    const uint8_t* const from = (const uint8_t*)task->item->sets[0].pictures[0].data;
    gpst_image to;
    if (self->pauses && task->item->index % 5 == 0) {
        gpsti_mutex_lock(&pipeline->context->scheduler->mutex);
        if (gpsti_a32_load(&pipeline->signals.open) != 0 && !pipeline->tune->paused) {
            pipeline->tune->paused = true;
            pipeline->tune->block_items = 2;
            pipeline->tune->guard.report.engine_ns = 1000.0;
        }
        gpsti_mutex_unlock(&pipeline->context->scheduler->mutex);
    }
    GPSTI_TRY(gpst_task_set_picture(task, 2, 0, &shape, &to));
    for (size_t i = 0; i < BYTES; i++)
        ((uint8_t*)to.data)[i] = from[i] ^ 0x5a;
    return task->item->index % 11 == 10 ? gpst_task_fail(task, GPST_ERROR_FORMAT, "item %u", (unsigned)task->item->index)
                                        : GPST_OK;
}

static void check_kept(camera* self, const gpst_item* item) {
    static GPSTI_TLS uint8_t there[BYTES];
    kit* const owner = self->kit;
    char sentence[32];
    snprintf(sentence, sizeof sentence, "item %u", (unsigned)item->index);
    if (item->index % 11 == 10) {
        kit_check(owner, item->result == GPST_ERROR_FORMAT && strcmp(item->reason, sentence) == 0);
        return;
    }
    kit_check(owner, item->result == GPST_OK && strcmp(item->name, sentence) == 0);
    const uint8_t* const lent = (const uint8_t*)item->sets[0].pictures[0].data;
    const uint8_t* const host = (const uint8_t*)item->sets[2].pictures[0].data;
    kit_check(owner, item->sets[1].on_device == kit_has_own_memory(owner));
    kit_check(owner, gpst_copy(there, item->sets[1].pictures[0].data, BYTES, self->stream) == GPST_OK);
    kit_check(owner, gpst_stream_synchronize(self->stream) == GPST_OK);
    bool same = true;
    for (size_t i = 0; i < BYTES; i++)
        same = same && lent[i] == pixel(item->index, i) && there[i] == (uint8_t)(pixel(item->index, i) + 7) &&
               host[i] == (pixel(item->index, i) ^ 0x5a);
    kit_check(owner, same);
}

static gpst_pipeline_desc open_camera(const char* opener, const char* backend, uint32_t n_frames, uint64_t n_items,
                                      gpst_sink_func sink) {
    memset(&the, 0, sizeof the);
    kit* const owner = the.kit = kit_open_in(opener, backend, 2);
    the.n_frames = n_frames;
    the.n_items = n_items;
    for (uint32_t f = 0; f < MOST_FRAMES; f++)
        the.frames[f].of = &the;
    assert_int_equal(gpst_stream_create(gpst_context_device(owner->context), &the.stream), GPST_OK);
    gpst_stage_device(&owner->stages[0], GPST_SET(0), GPST_SET(1), add_seven, NULL);
    gpst_stage_host(&owner->stages[1], GPST_SET(0), GPST_SET(2), flip, &the);
    owner->n_stages = 2;
    gpst_pipeline_desc desc = kit_desc(owner);
    desc.capacity[1] = 1;
    desc.n_results = 3;
    desc.results[0] = gpst_result_of(0, GPST_AS_IT_IS);
    desc.results[1] = gpst_result_of(1, GPST_ON_DEVICE);
    desc.results[2] = gpst_result_of(2, GPST_ON_HOST);
    desc.source = next_frame;
    desc.source_user_data = &the;
    desc.sink = sink;
    desc.sink_user_data = &the;
    return desc;
}

static void create(const gpst_pipeline_desc* desc) {
    if (gpst_pipeline_create(the.kit->context, desc, &the.kit->pipeline) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
}

/* Nor does the account of who has memory know any item. */
static void close_camera(void) {
    const gpsti_grants* const grants = the.kit->context->grants;
    assert_int_equal(gpst_pipeline_destroy(the.kit->pipeline), GPST_OK);
    assert_int_equal(grants->n_items, 0);
    for (int m = 0; m < GPSTI_MEMORIES; m++)
        assert_true(gpsti_a64_load(&grants->granted[m]) == 0 && gpsti_a64_load(&grants->used[m]) == 0);
    assert_int_equal(gpsti_a32_load(&the.n_back), gpsti_a32_load(&the.n_lent)); /* each once: frame_is_back */
    gpst_stream_destroy(the.stream);
    kit_close(the.kit);
}

static void release_all(void) {
    for (; the.first < the.n; the.first++) {
        check_kept(&the, the.kept[the.first]);
        gpst_pipeline_release(the.kit->pipeline, the.kept[the.first]);
    }
}

static const char* const backends[] = {"cpu", "sim"};
static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_DEFAULT, GPST_RUN_PLAIN_SERIAL};

/* ---- kept, and released from the sink ------------------------------------------------------------------------ */

/* Keeps two of three, and releases the oldest for the newest. */
static gpst_result keep_some(void* user_data, const gpst_item* item) {
    camera* const self = (camera*)user_data;
    check_kept(self, item);
    for (uint32_t k = self->first; k < self->n; k++)
        check_kept(self, self->kept[k]);
    if (item->index % 3 == 1)
        return GPST_OK;
    if (self->n - self->first == self->keep_most)
        gpst_pipeline_release(self->kit->pipeline, self->kept[self->first++]);
    self->kept[self->n++] = item;
    return GPST_KEPT;
}

/* All but one of the source's frames are kept at any time; the run does not wait for them. */
static void test_kept_items_stay(void** state) {
    (void)state;
    for (int k = 0; k < 2 * 3; k++) {
        gpst_pipeline_desc desc = open_camera(__func__, backends[k % 2], 6, N_ITEMS, keep_some);
        gpst_stats stats;
        desc.mode = modes[k / 2];
        desc.n_slots = 2; /* kept items take none */
        the.pauses = desc.mode == GPST_RUN_DEFAULT;
        the.keep_most = 5;
        create(&desc);
        assert_int_equal(gpst_pipeline_run(the.kit->pipeline), GPST_PARTIAL);
        gpst_pipeline_query_stats(the.kit->pipeline, &stats);
        assert_int_equal(stats.items_ok, N_ITEMS - N_ITEMS / 11);
        assert_int_equal(stats.items_failed, N_ITEMS / 11);
        assert_true(stats.latency_max_ns > 0 && stats.slots_used <= 2);
        assert_int_equal(the.n - the.first, 5);
        assert_int_equal(gpsti_a32_load(&the.n_back), N_ITEMS - 5);
        gpsti_sleep_ns(1000000);
        const int64_t wall_ns = stats.wall_ns;
        gpst_pipeline_query_stats(the.kit->pipeline, &stats);
        assert_int_equal(stats.wall_ns, wall_ns); /* the run is over */
        release_all();
        assert_int_equal(gpsti_a32_load(&the.n_back), N_ITEMS);
        close_camera();
    }
}

/* ---- released by another thread ------------------------------------------------------------------------------ */

/* Gives every item away; from then on it may be gone. */
static gpst_result give_away(void* user_data, const gpst_item* item) {
    camera* const self = (camera*)user_data;
    const bool says = item->index % 4 != 3;
    const uint32_t n = gpsti_a32_load(&self->n_given);
    self->given[n] = item;
    gpsti_a32_store(&self->n_given, n + 1);
    while (self->waits_for_taker && gpsti_a32_load(&self->n_taken) <= n)
        gpsti_yield();
    return says || !self->waits_for_taker ? GPST_KEPT : GPST_OK; /* it was released: as good as KEPT */
}

static void take_and_release(void* argument) {
    camera* const self = (camera*)argument;
    for (uint32_t n = 0; n < self->n_items; n++) {
        while (gpsti_a32_load(&self->n_given) == n)
            gpsti_sleep_ns(10000);
        if (self->take_ns > 0)
            gpsti_sleep_ns(self->take_ns);
        check_kept(self, self->given[n]);
        if (n % 3 != 2)
            gpst_pipeline_release(self->kit->pipeline, self->given[n]);
        else
            kit_check(self->kit, gpst_pipeline_release_after(self->kit->pipeline, self->given[n], self->stream) == GPST_OK);
        gpsti_a32_store(&self->n_taken, n + 1);
    }
}

/* What the run took. */
static int64_t run_beside_a_taker(int k) {
    gpst_pipeline_desc desc = open_camera(__func__, backends[k % 2], 1 + (uint32_t)k % 4, N_ITEMS, give_away);
    gpsti_thread thread;
    desc.mode = modes[k / 2 % 3];
    the.pauses = desc.mode == GPST_RUN_DEFAULT;
    the.waits_for_taker = k / 6 == 0;
    the.take_ns = k / 6 == 1 ? 200000 : 0;
    create(&desc);
    assert_int_equal(gpsti_thread_start(&thread, take_and_release, &the, "taker"), GPST_OK);
    const int64_t start_ns = gpsti_now_ns();
    assert_int_equal(gpst_pipeline_run(the.kit->pipeline), GPST_PARTIAL);
    const int64_t took_ns = gpsti_now_ns() - start_ns;
    gpsti_thread_join(&thread);
    close_camera();
    return took_ns;
}

/* All frames of the source may be kept: it goes on when one is released, before the sink has returned or behind that.
   Where threads look every 50 ms alone no run is faster; a busy machine is asked several times. */
static void test_another_thread_releases(void** state) {
    (void)state;
    for (int k = 0; k < 2 * 3 * 3; k++) {
        int64_t took_ns = INT64_MAX;
        for (int tries = 0; tries < 10 && took_ns >= N_ITEMS * 25000000LL; tries++)
            took_ns = run_beside_a_taker(k);
        assert_true(took_ns < N_ITEMS * 25000000LL);
    }
}

/* The plain loop waits while all frames are kept, and does not ask again and again. */
static void test_the_plain_loop_waits(void** state) {
    (void)state;
    for (int m = 0; m < 3; m++) {
        gpst_pipeline_desc desc = open_camera(__func__, "cpu", 2, 6, give_away);
        gpsti_thread thread;
        desc.mode = modes[m];
        the.take_ns = 20000000;
        create(&desc);
        assert_int_equal(gpsti_thread_start(&thread, take_and_release, &the, "taker"), GPST_OK);
        assert_int_equal(gpst_pipeline_run(the.kit->pipeline), GPST_OK);
        gpsti_thread_join(&thread);
        assert_true(gpsti_a32_load(&the.n_refused) <= 24); /* once behind each end and each release at most */
        close_camera();
    }
}

/* ---- what ends while the source is asked ---------------------------------------------------------------------- */

static gpsti_a32 refuses;

/* Has no frame, and returns when another item has given one back. */
static gpst_result refuse_late(void* user_data, uint64_t index, gpst_input* out) {
    camera* const self = (camera*)user_data;
    const gpst_result result = next_frame(user_data, index, out);
    const int64_t end_ns = gpsti_now_ns() + SOON_NS;
    gpst_stats stats = GPST_ZERO;
    gpsti_sleep_ns(1000000); /* it is asked for one item a turn */
    if (result != GPST_ERROR_WOULD_BLOCK || index != 2)
        return result;
    gpsti_a32_store(&refuses, 1);
    while (stats.items_ok < 2 && gpsti_now_ns() < end_ns)
        gpst_pipeline_query_stats(self->kit->pipeline, &stats);
    kit_check(self->kit, stats.items_ok == 2);
    return result;
}

static gpst_result wait_for_refusal(void* user_data, gpst_task* task) {
    while (task->item->index == 1 && gpsti_a32_load(&refuses) == 0)
        gpsti_yield();
    return flip(user_data, task);
}

static gpst_result keep_first(void* user_data, const gpst_item* item) {
    camera* const self = (camera*)user_data;
    if (item->index != 0)
        return GPST_OK;
    self->kept[self->n++] = item;
    return GPST_KEPT;
}

/* One of two frames is kept for the whole run; the other one comes back while the source says that it has none. */
static void test_it_is_asked_again_at_once(void** state) {
    (void)state;
    for (int b = 0; b < 2; b++) {
        gpst_pipeline_desc desc = open_camera(__func__, backends[b], 2, 4, keep_first);
        gpsti_a32_store(&refuses, 0);
        the.kit->stages[1].func = wait_for_refusal;
        desc.source = refuse_late;
        create(&desc);
        assert_int_equal(gpst_pipeline_run(the.kit->pipeline), GPST_OK);
        assert_int_equal(gpsti_a32_load(&refuses), 1);
        release_all();
        close_camera();
    }
}

static gpst_result keep_all(void* user_data, const gpst_item* item) {
    camera* const self = (camera*)user_data;
    self->kept[self->n++] = item;
    return GPST_KEPT;
}

/* Its only frame comes back with each item's end, though all items are kept. */
static void test_frames_that_are_no_results(void** state) {
    (void)state;
    for (int k = 0; k < 2 * 3; k++) {
        gpst_pipeline_desc desc = open_camera(__func__, backends[k % 2], 1, N_ITEMS, keep_all);
        desc.mode = modes[k / 2];
        desc.n_results = 1;
        desc.results[0] = gpst_result_of(2, GPST_ON_HOST);
        create(&desc);
        assert_int_equal(gpst_pipeline_run(the.kit->pipeline), GPST_PARTIAL);
        assert_int_equal(the.n, N_ITEMS);
        assert_int_equal(gpsti_a32_load(&the.n_back), N_ITEMS);
        close_camera();
    }
}

/* ---- pushed; destroyed with items kept -------------------------------------------------------------------------- */

static void test_destroy_gives_back(void** state) {
    (void)state;
    for (int k = 0; k < 2 * 2; k++) {
        gpst_pipeline_desc desc = open_camera(__func__, backends[k % 2], 10, 10, keep_all);
        const bool pushed = k / 2 == 1;
        const gpst_item* item = NULL;
        desc.source = pushed ? NULL : next_frame;
        desc.n_slots = 2;
        create(&desc);
        for (uint64_t n = 0; n < 10 && pushed; n++) {
            gpst_input input = GPST_ZERO;
            assert_true(lend(&the, n, &input));
            assert_int_equal(gpst_pipeline_submit(the.kit->pipeline, &input, SOON_NS, NULL), GPST_OK);
        }
        if (pushed) {
            assert_int_equal(gpst_pipeline_next_result(the.kit->pipeline, 0, &item), GPST_ERROR_STATE);
            assert_int_equal(gpst_pipeline_drain(the.kit->pipeline, SOON_NS), GPST_OK);
        } else {
            assert_int_equal(gpst_pipeline_run(the.kit->pipeline), GPST_OK);
        }
        assert_int_equal(the.n, 10);
        assert_int_equal(gpsti_a32_load(&the.n_back), 0);
        gpst_pipeline_release(the.kit->pipeline, the.kept[4]);
        assert_int_equal(gpsti_a32_load(&the.n_back), 1);
        for (uint32_t n = 0; n < 10; n++)
            if (n != 4)
                check_kept(&the, the.kept[n]);
        close_camera();
    }
}

/* ---- what is not kept, or no more ------------------------------------------------------------------------------- */

static void expect_ignored(const gpst_item* item) {
    test_log* const log = &the.kit->log;
    gpst_pipeline_release(the.kit->pipeline, item);
    assert_int_equal(gpsti_a32_load(&log->n_errors), 1);
    assert_non_null(strstr(log->last, "gpst_pipeline_release: item="));
    assert_non_null(strstr(log->last, "not handed out, or released already; ignored"));
    assert_int_equal(gpst_pipeline_release_after(the.kit->pipeline, item, the.stream), GPST_ERROR_ARGUMENT);
    test_reason_has("gpst_pipeline_release_after: item=", "not handed out, or released already");
    assert_int_equal(gpsti_a32_load(&log->n_errors), 2);
    gpsti_a32_store(&log->n_errors, 0);
}

static gpst_result keep_even(void* user_data, const gpst_item* item) {
    (void)keep_all(user_data, item);
    return item->index % 2 == 0 ? GPST_KEPT : GPST_OK;
}

static void test_a_second_release_is_logged(void** state) {
    (void)state;
    gpst_pipeline_desc desc = open_camera(__func__, "cpu", 2, 2, keep_even);
    gpst_pipeline* other = NULL;
    create(&desc);
    assert_int_equal(gpst_pipeline_run(the.kit->pipeline), GPST_OK);
    assert_int_equal(the.n, 2);
    expect_ignored(the.kept[1]);
    gpst_pipeline* const own = the.kit->pipeline;
    assert_int_equal(gpst_pipeline_create(the.kit->context, &desc, &other), GPST_OK);
    the.kit->pipeline = other;
    expect_ignored(the.kept[0]); /* another pipeline's */
    the.kit->pipeline = own;
    assert_int_equal(gpst_pipeline_destroy(other), GPST_OK);
    check_kept(&the, the.kept[0]);
    gpst_pipeline_release(own, the.kept[0]);
    expect_ignored(the.kept[0]);
    assert_int_equal(gpst_pipeline_release_after(NULL, the.kept[0], the.stream), GPST_ERROR_ARGUMENT);
    close_camera();
}

/* ---- memory for few items ------------------------------------------------------------------------------------------ */

enum { LARGE = 1024 };

static gpst_result make_large(void* user_data, gpst_task* task) {
    const gpst_image shape = kit_shape(LARGE, LARGE);
    gpst_image image;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &image));
    memset(image.data, (int)(task->item->index % 251), (size_t)LARGE * LARGE);
    return GPST_OK;
}

static void check_large(const gpst_item* item) {
    const uint8_t* const data = (const uint8_t*)item->sets[1].pictures[0].data;
    for (size_t i = 0; i < (size_t)LARGE * LARGE; i += 4099)
        kit_check(the.kit, data[i] == item->index % 251);
}

static gpst_pipeline_desc open_large(const char* opener, gpst_sink_func sink) {
    gpst_context_desc context = GPST_ZERO;
    (void)open_camera(opener, "cpu", 0, 40, sink);
    kit* const owner = the.kit;
    gpst_stream_destroy(the.stream);
    context.backend = "cpu";
    context.n_workers = 2;
    context.max_host_bytes = (uint64_t)LARGE * LARGE * 7 / 2; /* three items */
    kit_reopen(owner, &context);
    assert_int_equal(gpst_stream_create(gpst_context_device(owner->context), &the.stream), GPST_OK);
    gpst_stage_host(&owner->stages[0], 0, GPST_SET(1), make_large, NULL);
    owner->n_stages = 1;
    owner->n_items = 40;
    gpst_pipeline_desc desc = kit_desc(owner);
    desc.source = NULL;
    desc.capacity[1] = 1;
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
    desc.sink = sink;
    desc.sink_user_data = &the;
    return desc;
}

/* Submit says that items are held, as of results, and goes on when one is released. */
static void test_kept_items_have_the_memory(void** state) {
    (void)state;
    gpst_pipeline_desc desc = open_large(__func__, keep_all);
    const gpst_input input = GPST_ZERO;
    create(&desc);
    gpst_pipeline* const pipeline = the.kit->pipeline;
    for (int round = 0; round < 5; round++) {
        gpst_result result = GPST_OK;
        for (int n = 0; n < 4 && result == GPST_OK; n++) {
            result = gpst_pipeline_submit(pipeline, &input, round % 2 == 0 ? 0 : 2000000, NULL);
            if (result == GPST_OK)
                assert_int_equal(gpst_pipeline_drain(pipeline, SOON_NS), GPST_OK);
        }
        assert_int_equal(result, round % 2 == 0 ? GPST_ERROR_WOULD_BLOCK : GPST_ERROR_TIMEOUT);
        test_reason_has("no memory became free in time", "3 results are held");
        assert_int_equal(the.n - the.first, 3);
        check_large(the.kept[the.first]);
        gpst_pipeline_release(pipeline, the.kept[the.first++]);
    }
    assert_int_equal(the.n, 7);
    close_camera();
}

static void release_large(void* argument) {
    camera* const self = (camera*)argument;
    for (uint32_t n = 0; n < self->n_items; n++) {
        while (gpsti_a32_load(&self->n_given) == n)
            gpsti_sleep_ns(10000);
        gpsti_sleep_ns(500000);
        check_large(self->given[n]);
        gpst_pipeline_release(self->kit->pipeline, self->given[n]);
    }
}

/* Pulled: who has begun and lacks memory, and the source, wait until another thread releases an item. */
static void test_a_run_waits_for_memory(void** state) {
    (void)state;
    for (int m = 0; m < 3; m++) {
        gpst_pipeline_desc desc = open_large(__func__, give_away);
        gpsti_thread thread;
        desc.source = kit_source_empty;
        desc.source_user_data = the.kit;
        desc.mode = modes[m];
        create(&desc);
        assert_int_equal(gpsti_thread_start(&thread, release_large, &the, "taker"), GPST_OK);
        assert_int_equal(gpst_pipeline_run(the.kit->pipeline), GPST_OK);
        gpsti_thread_join(&thread);
        close_camera();
    }
}

/* An item cannot be made since the allocator refuses, and all others are kept until the run is over. */
static gpst_result keep_and_refuse(void* user_data, const gpst_item* item) {
    camera* const self = (camera*)user_data;
    if (item->index == 3)
        gpsti_a64_store(&self->kit->memory.fail_at, gpsti_a64_load(&self->kit->memory.calls) + self->keep_most);
    return keep_all(user_data, item);
}

static void test_items_that_cannot_be_made(void** state) {
    (void)state;
    for (uint32_t k = 0; k < 3 * 30; k++) {
        gpst_pipeline_desc desc = open_camera(__func__, "cpu", 0, 40, keep_and_refuse);
        kit* const owner = the.kit;
        desc = kit_simple(owner, 40, kit_nothing);
        desc.sink = keep_and_refuse;
        desc.sink_user_data = &the;
        gpst_stats stats;
        desc.mode = modes[k % 3];
        desc.n_slots = 2;
        the.keep_most = 1 + k / 3;
        create(&desc);
        assert_false(GPST_FAILED(gpst_pipeline_run(owner->pipeline)));
        gpst_pipeline_query_stats(owner->pipeline, &stats);
        assert_true(stats.slots <= 2);
        assert_true(test_memory_refused(&owner->memory));
        assert_int_equal(the.n, 40);
        gpsti_a32_store(&owner->log.n_errors, 0);
        close_camera();
    }
}

/* ---- files ----------------------------------------------------------------------------------------------------------- */

static gpst_result keep_files(void* user_data, const gpst_item* item) {
    const gpst_result result = kit_sink(user_data, item);
    return result == GPST_OK ? keep_all(&the, item) : result;
}

/* The files of a kept item keep their names, those of one that failed are gone; items are made as more are kept. */
static void test_files_stay(void** state) {
    (void)state;
    for (int k = 0; k < 2 * 3; k++) {
        memset(&the, 0, sizeof the);
        kit* const self = the.kit = kit_open(backends[k % 2], 2);
        gpst_pipeline_desc desc = kit_standard(self, 60);
        desc.sink = keep_files;
        desc.n_slots = 2;
        desc.mode = modes[k / 2];
        self->fail_place = KIT_ENCODE;
        self->fail_every = 7;
        assert_int_equal(kit_run(self, &desc, NULL), GPST_PARTIAL);
        assert_int_equal(the.n, 60);
        kit_check_files(self);
        kit_close(self);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_items_stay),
        cmocka_unit_test(test_another_thread_releases),
        cmocka_unit_test(test_the_plain_loop_waits),
        cmocka_unit_test(test_it_is_asked_again_at_once),
        cmocka_unit_test(test_frames_that_are_no_results),
        cmocka_unit_test(test_destroy_gives_back),
        cmocka_unit_test(test_a_second_release_is_logged),
        cmocka_unit_test(test_kept_items_have_the_memory),
        cmocka_unit_test(test_a_run_waits_for_memory),
        cmocka_unit_test(test_items_that_cannot_be_made),
        cmocka_unit_test(test_files_stay),
    };
    return cmocka_run_group_tests_name("pipeline_keep", tests, NULL, NULL);
}
