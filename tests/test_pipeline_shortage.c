/* tests/test_pipeline_shortage.c -- too little device memory for all items at once: every item comes out right and the
   budget holds, by dropped graphs, unused memory, smaller batches, fewer items, and the CPU at last. */
#include "pipeline_kit.h"

#define N_VIEWS 8u
#define N_FRAMES 60u
#define FRAME_WIDTH 160u
#define FRAME_HEIGHT 80u
#define VIEW_SIDE 32u
#define VIEW_BYTES (VIEW_SIDE * VIEW_SIDE)
#define FRAME_BYTES (FRAME_WIDTH * FRAME_HEIGHT)
#define PAGE 4096u
/* As it is charged: in size classes of pages. The frame, eight views, and eight masks of them. */
#define ITEM_BYTES (4u * PAGE + N_VIEWS * PAGE + N_VIEWS * PAGE)

static uint8_t frame[FRAME_BYTES];
static uint8_t views[N_FRAMES][N_VIEWS][VIEW_BYTES];
static uint8_t wanted[N_FRAMES][N_VIEWS][VIEW_BYTES];
static uint64_t device_peak;
static bool is_required; /* the device: the CPU takes nothing */

static gpst_result frame_source(void* user_data, uint64_t index, gpst_input* out) {
    uint64_t random = index + 1;
    (void)user_data;
    if (index >= N_FRAMES)
        return GPST_END;
    for (size_t i = 0; i < sizeof frame; i++)
        frame[i] = (uint8_t)test_random(&random);
    out->frame = kit_shape(FRAME_WIDTH, FRAME_HEIGHT);
    out->frame.data = frame;
    return GPST_OK;
}

static void look_at_peak(gpst_context* context) {
    gpst_tag_info tags[16];
    uint32_t n = 0;
    uint64_t bytes = 0;
    gpst_context_query_tags(context, tags, 16, &n);
    for (uint32_t i = 0; i < n; i++)
        bytes += tags[i].device_bytes;
    device_peak = bytes > device_peak ? bytes : device_peak;
}

static gpst_result look_at_views(void* user_data, gpst_task* task) {
    kit_check((kit*)user_data, task->item->sets[2].n == N_VIEWS);
    if (task->item->index % 4 == 0)
        gpsti_sleep_ns(200000);
    return GPST_OK;
}

static gpst_result view_sink(void* user_data, const gpst_item* item) {
    const gpst_set* const last = &item->sets[2];
    look_at_peak(((kit*)user_data)->context);
    for (uint32_t v = 0; item->result == GPST_OK && v < last->n; v++)
        memcpy(views[item->index][v], last->pictures[v].data, VIEW_BYTES);
    return kit_sink((kit*)user_data, item);
}

static gpst_warp* make_warp(gpst_format format) {
    gpst_view list[N_VIEWS];
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    memset(list, 0, sizeof list);
    for (uint32_t v = 0; v < N_VIEWS; v++)
        list[v].yaw = 45.0 * v;
    desc.map = GPST_MAP_EQUIRECT;
    desc.views = list;
    desc.n_views = N_VIEWS;
    desc.width = desc.height = VIEW_SIDE;
    desc.format = format;
    assert_int_equal(gpst_warp_create(&desc, &warp), GPST_OK);
    return warp;
}

/* Spheres to eight views each, whose thresholds are the masks; or the views alone, in batches. */
static void run_views(const char* backend, uint64_t max_device_bytes, gpst_graph_use use, uint32_t batch,
                      gpst_stats* stats) {
    gpst_warp* const warp = make_warp(GPST_FORMAT_GRAY);
    gpst_mask_desc threshold;
    gpst_context_desc context = GPST_ZERO;
    kit* const self = kit_open_in(__func__, backend, 3);
    memset(&threshold, 0, sizeof threshold);
    threshold.kind = GPST_MASK_THRESHOLD;
    threshold.threshold = 127.0f;
    context.backend = backend;
    context.n_workers = 3;
    context.require_backend = is_required;
    context.max_device_bytes = max_device_bytes;
    kit_reopen(self, &context);
    self->n_items = N_FRAMES;
    gpst_stage_warp(&self->stages[0], 0, 1, warp);
    gpst_stage_mask(&self->stages[1], 1, 2, &threshold);
    gpst_stage_host(&self->stages[2], GPST_SET(2), 0, look_at_views, self); /* items wait behind the device, too */
    self->stages[0].batch_most = self->stages[1].batch_most = batch;
    self->n_stages = 3;
    gpst_pipeline_desc desc = kit_desc(self);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.source = frame_source;
    desc.sink = view_sink;
    desc.results[0] = gpst_result_of(2, GPST_ON_HOST);
    desc.n_results = 1;
    desc.graphs = use;
    desc.n_slots = batch > 0 ? 2 * batch : 6;
    device_peak = 0;
    memset(views, 0xA5, sizeof views);
    if (kit_run(self, &desc, stats) != GPST_OK)
        fail_msg("%s, %llu bytes: %s: %s", backend, (unsigned long long)max_device_bytes, self->failed_stage,
                 self->failed_reason);
    assert_int_equal(self->n_ok, N_FRAMES);
    if (max_device_bytes > 0)
        assert_true(device_peak <= max_device_bytes);
    kit_close(self);
    gpst_warp_destroy(warp);
}

static void make_wanted(void) {
    static gpst_stats stats;
    run_views("cpu", 0, GPST_GRAPHS_OFF, 0, &stats);
    memcpy(wanted, views, sizeof wanted);
}

static void test_every_budget(void** state) {
    static gpst_stats stats;
    (void)state;
    make_wanted();
    for (uint64_t bytes = PAGE; bytes <= 8 * ITEM_BYTES; bytes += bytes < 2 * ITEM_BYTES ? 3 * PAGE : ITEM_BYTES) {
        run_views("sim:launch_us=0", bytes, GPST_GRAPHS_ALWAYS, 0, &stats);
        assert_memory_equal(views, wanted, sizeof wanted);
        if (bytes < ITEM_BYTES) /* no item fits */
            assert_int_equal(stats.device_fallbacks, N_FRAMES);
        if (kit_why_not(&stats, "device_memory")[0]) /* whatever step was taken, why the first time */
            assert_non_null(strstr(kit_why_not(&stats, "device_memory"), "max_device_bytes="));
    }
    assert_int_equal(stats.device_fallbacks, 0); /* room for all */
}

/* Room for one item and a bit: others wait, and none but the first few go to the CPU. */
static void test_items_wait_for_one_another(void** state) {
    static gpst_stats stats;
    (void)state;
    make_wanted();
    run_views("sim:launch_us=0", ITEM_BYTES + PAGE, GPST_GRAPHS_OFF, 0, &stats);
    assert_memory_equal(views, wanted, sizeof wanted);
    assert_true(stats.device_fallbacks < N_FRAMES / 2);
}

/* Where the CPU takes nothing no item fails that fits by itself, as often as one finds no room. */
static void test_a_required_device_is_waited_for(void** state) {
    static gpst_stats stats;
    (void)state;
    make_wanted();
    is_required = true;
    for (uint64_t bytes = ITEM_BYTES; bytes <= 4 * ITEM_BYTES; bytes += 7 * PAGE)
        for (int round = 0; round < 3; round++) {
            run_views("sim:launch_us=0", bytes, round == 2 ? GPST_GRAPHS_OFF : GPST_GRAPHS_ALWAYS, 0, &stats);
            assert_memory_equal(views, wanted, sizeof wanted);
            assert_int_equal(stats.device_fallbacks, 0);
        }
    is_required = false;
}

/* Where the device itself has no more, whatever the budget says. */
static void test_the_device_runs_out(void** state) {
    static gpst_stats stats;
    char backend[64];
    (void)state;
    make_wanted();
    for (uint32_t pages = 1; pages <= 60; pages += 7) {
        snprintf(backend, sizeof backend, "sim:launch_us=0,oom_mb=%.6f", pages * PAGE / 1048576.0);
        run_views(backend, 0, GPST_GRAPHS_ALWAYS, 0, &stats);
        assert_memory_equal(views, wanted, sizeof wanted);
        if (pages * PAGE < ITEM_BYTES)
            assert_non_null(strstr(kit_why_not(&stats, "device_memory"), "left items to the cpu"));
    }
}

/* A batch of eight finds no room: batches get smaller, and the items stay on the device. */
static void test_batches_are_halved(void** state) {
    static gpst_stats stats;
    (void)state;
    make_wanted();
    run_views("sim:launch_us=0", 3 * ITEM_BYTES, GPST_GRAPHS_OFF, 8, &stats);
    assert_memory_equal(views, wanted, sizeof wanted);
    assert_true(stats.device_fallbacks < N_FRAMES / 2);
}

/* ---- a mean over time ---------------------------------------------------------------------------- */

static uint8_t means[N_FRAMES][FRAME_BYTES];

static gpst_result mean_sink(void* user_data, const gpst_item* item) {
    if (item->result == GPST_OK)
        memcpy(means[item->index], item->sets[1].pictures[0].data, FRAME_BYTES);
    return kit_sink((kit*)user_data, item);
}

static void run_means(uint64_t max_device_bytes) {
    gpst_mask_desc mean = GPST_ZERO, threshold = GPST_ZERO;
    gpst_context_desc context = GPST_ZERO;
    kit* const self = kit_open_in(__func__, "sim:launch_us=0", 1);
    context.backend = "sim:launch_us=0";
    context.n_workers = 1; /* slots that the source fills on another thread keep their memory */
    context.require_backend = true;
    context.max_device_bytes = max_device_bytes;
    kit_reopen(self, &context);
    self->n_items = N_FRAMES;
    mean.kind = GPST_MASK_TIME;
    mean.cut = 2.0f; /* no frame begins it anew */
    threshold.kind = GPST_MASK_THRESHOLD;
    gpst_stage_mask(&self->stages[0], 0, 1, &mean);
    gpst_stage_mask(&self->stages[1], 1, 2, &threshold);
    gpst_stage_host(&self->stages[2], GPST_SET(1) | GPST_SET(2), 0, kit_nothing, self);
    self->n_stages = 3;
    gpst_pipeline_desc desc = kit_desc(self);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.source = frame_source;
    desc.sink = mean_sink;
    desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
    desc.n_results = 1;
    desc.n_slots = 4;
    memset(means, 0xA5, sizeof means);
    if (kit_run(self, &desc, NULL) != GPST_OK)
        fail_msg("%llu bytes: %s: %s", (unsigned long long)max_device_bytes, self->failed_stage, self->failed_reason);
    kit_close(self);
}

/* An item that is tried again, when others have given memory back, goes on with the mean of those before it. */
static void test_a_mean_goes_on(void** state) {
    static uint8_t wanted_means[N_FRAMES][FRAME_BYTES];
    (void)state;
    run_means(0);
    memcpy(wanted_means, means, sizeof means);
    for (uint64_t pages = 23; pages <= 60; pages++) { /* an item takes 12, the mean 11 */
        run_means(pages * PAGE);
        assert_memory_equal(means, wanted_means, sizeof means);
    }
}

/* ---- pushed items ------------------------------------------------------------------------------ */

#define N_PUSHED 4u

static kit* open_pushed(const char* opener, uint64_t max_device_bytes, uint64_t max_host_bytes) {
    gpst_context_desc context = GPST_ZERO;
    kit* const self = kit_open_in(opener, "sim:launch_us=0,kernel_us=20", 2);
    context.backend = "sim:launch_us=0,kernel_us=20";
    context.n_workers = 2;
    context.max_device_bytes = max_device_bytes;
    context.max_host_bytes = max_host_bytes;
    kit_reopen(self, &context);
    return self;
}

static gpst_result copy_picture(void* user_data, gpst_task* task) {
    const uint32_t from = (uint32_t)(uintptr_t)user_data;
    const gpst_image shape = kit_shape(FRAME_WIDTH, FRAME_HEIGHT);
    gpst_image image;
    GPSTI_TRY(gpst_task_set_picture(task, from + 1, 0, &shape, &image));
    memcpy(image.data, task->item->sets[from].pictures[0].data, FRAME_BYTES);
    return GPST_OK;
}

static gpst_result count_ends(void* user_data, const gpst_item* item) {
    *(uint32_t*)user_data += item->index < N_FRAMES ? 1 : 0;
    return GPST_OK;
}

/* A device step, a host stage, another device step, a host stage. */
static void set_stages(kit* self, const gpst_mask_desc* threshold) {
    gpst_stage_mask(&self->stages[0], 0, 1, threshold);
    gpst_stage_host(&self->stages[1], GPST_SET(1), GPST_SET(2), copy_picture, (void*)1);
    gpst_stage_mask(&self->stages[2], 2, 3, threshold);
    gpst_stage_host(&self->stages[3], GPST_SET(3), GPST_SET(4), copy_picture, (void*)3);
    self->n_stages = 4;
}

static gpst_pipeline_desc pushed_desc(kit* self, uint32_t n_slots) {
    gpst_pipeline_desc desc = kit_desc(self);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.source = NULL;
    desc.sink = NULL;
    desc.n_slots = n_slots;
    desc.results[0] = gpst_result_of(4, GPST_ON_HOST);
    desc.n_results = 1;
    return desc;
}

static gpst_input pushed_input(void) {
    gpst_input input = GPST_ZERO;
    input.frame = kit_shape(FRAME_WIDTH, FRAME_HEIGHT);
    input.frame.data = frame;
    return input;
}

/* Who submits takes the results, too, when n_slots items are in: there must be room for so many, however short. */
static void test_as_many_are_submitted_as_slots(void** state) {
    gpst_mask_desc threshold = GPST_ZERO;
    kit* const self = open_pushed(__func__, 8 * PAGE, 0); /* of two sets one item at a time */
    gpst_pipeline* pipeline = NULL;
    const gpst_input input = pushed_input();
    (void)state;
    threshold.kind = GPST_MASK_THRESHOLD;
    set_stages(self, &threshold);
    const gpst_pipeline_desc desc = pushed_desc(self, N_PUSHED);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < N_PUSHED; i++)
            assert_int_equal(gpst_pipeline_submit(pipeline, &input, 10 * (int64_t)1000000000, NULL), GPST_OK);
        for (uint32_t i = 0; i < N_PUSHED; i++) {
            const gpst_item* item = NULL;
            assert_int_equal(gpst_pipeline_next_result(pipeline, 10 * (int64_t)1000000000, &item), GPST_OK);
            assert_int_equal(item->result, GPST_OK);
            gpst_pipeline_release(pipeline, item);
        }
    }
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

static gpsti_a32 n_submitted;

/* Until the whole round is in: a slot that is being filled keeps its memory. */
static gpst_result wait_for_round(void* user_data, gpst_task* task) {
    const uint32_t n_in_round = ((uint32_t)task->item->index / N_PUSHED + 1) * N_PUSHED;
    (void)user_data;
    for (int ms = 0; ms < 20000 && gpsti_a32_load(&n_submitted) < n_in_round; ms++)
        gpsti_sleep_ns(1000000);
    return GPST_OK;
}

/* Of finished items, taken or not, only the results' memory is needed: those behind them may have the rest. */
static void test_finished_items_leave_the_device(void** state) {
    gpst_mask_desc threshold = GPST_ZERO;
    gpst_context_desc context = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    const gpst_item* items[N_PUSHED];
    const gpst_input input = pushed_input();
    kit* const self = kit_open_in(__func__, "sim:launch_us=0", 1);
    (void)state;
    context.backend = "sim:launch_us=0";
    context.n_workers = 1;
    context.require_backend = true;
    context.max_device_bytes = 8 * PAGE; /* two sets, of one item */
    kit_reopen(self, &context);
    threshold.kind = GPST_MASK_THRESHOLD;
    set_stages(self, &threshold);
    memmove(&self->stages[1], &self->stages[0], 4 * sizeof self->stages[0]);
    memset(&self->stages[0], 0, sizeof self->stages[0]);
    gpst_stage_host(&self->stages[0], GPST_SET(0), 0, wait_for_round, NULL);
    self->n_stages = 5;
    gpsti_a32_store(&n_submitted, 0);
    const gpst_pipeline_desc desc = pushed_desc(self, N_PUSHED);
    assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t i = 0; i < N_PUSHED; i++) {
            assert_int_equal(gpst_pipeline_submit(pipeline, &input, 10 * (int64_t)1000000000, NULL), GPST_OK);
            (void)gpsti_a32_add(&n_submitted, 1);
        }
        for (uint32_t i = 0; i < N_PUSHED; i++) /* and keep, while the others go on */
            assert_int_equal(gpst_pipeline_next_result(pipeline, 10 * (int64_t)1000000000, &items[i]), GPST_OK);
        for (uint32_t i = 0; i < N_PUSHED; i++) {
            if (items[i]->result != GPST_OK)
                fail_msg("%u of round %u: %s", i, round, items[i]->reason);
            gpst_pipeline_release(pipeline, items[i]);
        }
    }
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    kit_close(self);
}

/* Host memory is short as well: items that begin anew for it wait, and nobody waits for them. */
static void test_both_memories_are_short(void** state) {
    gpst_mask_desc threshold = GPST_ZERO;
    const gpst_input input = pushed_input();
    (void)state;
    threshold.kind = GPST_MASK_THRESHOLD;
    for (uint64_t host_pages = 16; host_pages <= 72; host_pages += 2) {
        const uint64_t device_pages = host_pages % 4 == 0 ? 8 : 13;
        uint32_t n_ended = 0;
        kit* const self = open_pushed(__func__, device_pages * PAGE, host_pages * PAGE);
        gpst_pipeline* pipeline = NULL;
        uint32_t n_taken = 0;
        set_stages(self, &threshold);
        gpst_pipeline_desc desc = pushed_desc(self, 8);
        desc.sink = count_ends;
        desc.sink_user_data = &n_ended;
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &pipeline), GPST_OK);
        bool goes_on = true; /* with every second budget nobody submits anything after a refusal */
        for (uint32_t i = 0; i < N_FRAMES && goes_on; i++) {
            const gpst_result result = gpst_pipeline_submit(pipeline, &input, 10 * (int64_t)1000000000, NULL);
            assert_true(result == GPST_OK || result == GPST_ERROR_BUDGET);
            goes_on = result == GPST_OK || host_pages % 8 == 0;
            n_taken += result == GPST_OK ? 1 : 0;
        }
        assert_int_equal(gpst_pipeline_drain(pipeline, 10 * (int64_t)1000000000), GPST_OK);
        assert_int_equal(n_ended, n_taken);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(self);
    }
}


/* ---- one by one ---------------------------------------------------------------------------------- */

/* Pushed items that stop where the test wants them, and a loan of the budget's rest. */
#define NONE_STOPS 1000u /* no item stops at a door */

typedef struct paced {
    kit* its;
    gpst_pipeline* pipeline;
    gpst_warp* warp;
    gpst_mask_desc threshold;
    gpst_pool* pool;
    gpst_buffer loan;
    gpsti_a32 front_from, back_from; /* the first index that stops in front of the device; behind it */
    gpsti_a32 front_to;              /* from that one on none stops in front */
    gpsti_a32 n_behind;              /* items that have come behind it */
    uint32_t result_set;
    uint8_t expected[2][N_VIEWS][VIEW_BYTES]; /* of frames of scale 1 and 2 */
    gpst_stats stats;
} paced;

static paced the_paced;
static uint8_t large_frame[4 * FRAME_BYTES];

static gpst_result wait_in_front(void* user_data, gpst_task* task) {
    paced* const self = (paced*)user_data;
    while (task->item->index >= gpsti_a32_load(&self->front_from) &&
           task->item->index < gpsti_a32_load(&self->front_to))
        gpsti_sleep_ns(20000);
    return GPST_OK;
}

static gpst_result wait_behind(void* user_data, gpst_task* task) {
    paced* const self = (paced*)user_data;
    (void)gpsti_a32_add(&self->n_behind, 1);
    while (task->item->index >= gpsti_a32_load(&self->back_from))
        gpsti_sleep_ns(20000);
    return GPST_OK;
}

/* What the CPU gives for a frame of that scale. */
static void paced_expect(paced* self, uint32_t scale) {
    gpst_image from = kit_shape(scale * FRAME_WIDTH, scale * FRAME_HEIGHT), to[N_VIEWS];
    from.data = large_frame;
    for (uint32_t v = 0; v < N_VIEWS; v++) {
        to[v] = kit_shape(VIEW_SIDE, VIEW_SIDE);
        to[v].data = self->expected[scale - 1][v];
    }
    assert_int_equal(gpst_warp_run(self->warp, &from, to, N_VIEWS, 1), GPST_OK);
    for (uint32_t v = 0; self->result_set == 2 && v < N_VIEWS; v++)
        for (uint32_t i = 0; i < VIEW_BYTES; i++)
            self->expected[scale - 1][v][i] = self->expected[scale - 1][v][i] > 127 ? 255 : 0;
}

static gpst_result paced_sink(void* user_data, const gpst_item* item) {
    paced* const self = (paced*)user_data;
    const uint32_t scale = item->user_data == large_frame ? 2 : 1;
    kit_check(self->its, item->result == GPST_OK);
    for (uint32_t v = 0; item->result == GPST_OK && v < N_VIEWS; v++)
        kit_check(self->its, memcmp(item->sets[self->result_set].pictures[v].data, self->expected[scale - 1][v],
                                    VIEW_BYTES) == 0);
    return GPST_OK;
}

/* A door in front of the device, the views, masks of them where graphs are wanted, and a door behind it. */
static paced* paced_open(const char* opener, uint64_t max_device_bytes, uint32_t n_slots, uint32_t batch,
                         gpst_graph_use use) {
    paced* const self = &the_paced;
    const bool masks = use != GPST_GRAPHS_OFF;
    gpst_context_desc context = GPST_ZERO;
    gpst_pool_desc pool = GPST_ZERO;
    memset(self, 0, sizeof *self);
    self->warp = make_warp(GPST_FORMAT_GRAY);
    self->its = kit_open_in(opener, "sim:launch_us=0", 12);
    self->threshold.kind = GPST_MASK_THRESHOLD;
    self->threshold.threshold = 127.0f;
    self->result_set = masks ? 2 : 1;
    gpsti_a32_store(&self->front_from, NONE_STOPS);
    gpsti_a32_store(&self->front_to, NONE_STOPS);
    gpsti_a32_store(&self->back_from, NONE_STOPS);
    context.backend = "sim:launch_us=0";
    context.n_workers = 12; /* each door holds some */
    context.max_device_bytes = max_device_bytes;
    kit_reopen(self->its, &context);
    gpst_stage_desc* stage = self->its->stages;
    gpst_stage_host(stage++, GPST_SET(0), 0, wait_in_front, self);
    gpst_stage_warp(stage++, 0, 1, self->warp);
    stage[-1].batch_most = batch;
    if (masks)
        gpst_stage_mask(stage++, 1, 2, &self->threshold);
    gpst_stage_host(stage++, GPST_SET(self->result_set), 0, wait_behind, self);
    self->its->n_stages = (uint32_t)(stage - self->its->stages);
    gpst_pipeline_desc desc = kit_desc(self->its);
    memset(desc.capacity, 0, sizeof desc.capacity);
    desc.source = NULL;
    desc.sink = paced_sink;
    desc.sink_user_data = self;
    desc.results[0] = gpst_result_of(self->result_set, GPST_ON_HOST);
    desc.n_results = 1;
    desc.graphs = use;
    desc.n_slots = n_slots;
    assert_int_equal(gpst_pipeline_create(self->its->context, &desc, &self->pipeline), GPST_OK);
    pool.kind = GPST_MEMORY_DEVICE;
    assert_int_equal(gpst_pool_create(self->its->context, &pool, &self->pool), GPST_OK);
    for (size_t i = 0; i < sizeof large_frame; i++)
        large_frame[i] = (uint8_t)(i * 7 + i / 320);
    paced_expect(self, 1);
    paced_expect(self, 2);
    return self;
}

static void paced_close(paced* self) {
    assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
    gpst_pool_release(self->pool, &self->loan);
    assert_int_equal(gpst_pool_destroy(self->pool), GPST_OK);
    gpst_warp_destroy(self->warp);
    kit_close(self->its);
}

/* So many bytes are the pipeline's no more. */
static void paced_lend(paced* self, uint64_t bytes) {
    assert_int_equal(gpst_pool_acquire(self->pool, (size_t)bytes, 0, &self->loan), GPST_OK);
}

static void paced_release(void* release_user_data) { (void)release_user_data; }

/* Borrowed and not page-locked: no device reads it where it lies, so that each item needs memory of the device. */
static gpst_result paced_submit(paced* self, uint32_t scale, int64_t timeout_ns) {
    gpst_input input = GPST_ZERO;
    input.frame = kit_shape(scale * FRAME_WIDTH, scale * FRAME_HEIGHT);
    input.frame.data = large_frame;
    input.user_data = scale == 2 ? large_frame : NULL;
    input.release = paced_release;
    return gpst_pipeline_submit(self->pipeline, &input, timeout_ns, NULL);
}

static void paced_drain(paced* self) { assert_int_equal(gpst_pipeline_drain(self->pipeline, GPST_FOREVER), GPST_OK); }

static void paced_pass(paced* self, uint32_t scale, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        assert_int_equal(paced_submit(self, scale, GPST_FOREVER), GPST_OK);
        paced_drain(self);
    }
}

/* How often the path of the report says that this was done. */
static unsigned paced_count(paced* self, const char* text) {
    gpst_pipeline_query_stats(self->pipeline, &self->stats);
    const char* const path = kit_why_not(&self->stats, "device_memory");
    const char* const found = strstr(path, text);
    unsigned n = 0;
    if (found)
        assert_int_equal(sscanf(found + strlen(text), "%u times", &n), 1);
    return n;
}

/* Only a hang takes longer. */
static void paced_await_behind(paced* self, uint32_t n_wanted) {
    for (int tries = 0; gpsti_a32_load(&self->n_behind) < n_wanted && tries < 20000; tries++)
        gpsti_sleep_ns(1000000);
    assert_int_equal(gpsti_a32_load(&self->n_behind), n_wanted);
}

#define SAID_FREE "gave unused memory back "
#define SAID_WAITED "held items back "
#define SAID_CPU "left items to the cpu "
#define VIEWS_BYTES (4u * PAGE + N_VIEWS * PAGE) /* of an item without masks */

/* Two items of before have memory and a graph each; a larger one needs them. */
static void test_graphs_and_unused_memory_go_first(void** state) {
    (void)state;
    paced* const self = paced_open(__func__, 3 * ITEM_BYTES, 2, 0, GPST_GRAPHS_ALWAYS);
    paced_pass(self, 1, 6);
    gpsti_a32_store(&self->back_from, 0);
    assert_int_equal(paced_submit(self, 1, GPST_FOREVER), GPST_OK);
    assert_int_equal(paced_submit(self, 1, GPST_FOREVER), GPST_OK);
    paced_await_behind(self, 8);
    gpsti_a32_store(&self->back_from, NONE_STOPS);
    paced_drain(self);
    assert_string_equal(kit_why_not(&self->stats, "device_memory"), "");
    paced_lend(self, ITEM_BYTES - 2 * PAGE); /* a size class; and less than a page is the graphs' */
    paced_pass(self, 2, 1);
    assert_true(paced_count(self, SAID_FREE) > 0);
    assert_int_equal(paced_count(self, SAID_WAITED) + paced_count(self, SAID_CPU), 0);
    assert_int_equal(self->stats.device_fallbacks, 0);
    paced_close(self);
}

/* Memory for one: while an item is in the host stage behind the device its memory is the next one's. */
static void test_one_after_the_other(void** state) {
    (void)state;
    paced* const self = paced_open(__func__, 4 * VIEWS_BYTES, 4, 0, GPST_GRAPHS_OFF);
    paced_lend(self, 3 * VIEWS_BYTES);
    paced_pass(self, 1, 2);
    for (int i = 0; i < 40; i++)
        assert_int_equal(paced_submit(self, 1, GPST_FOREVER), GPST_OK);
    paced_drain(self);
    assert_int_equal(paced_count(self, SAID_CPU) + self->stats.device_fallbacks, 0);
    gpst_pool_release(self->pool, &self->loan);
    const uint32_t before = gpsti_a32_load(&self->n_behind);
    gpsti_a32_store(&self->back_from, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(paced_submit(self, 1, GPST_FOREVER), GPST_OK);
    paced_await_behind(self, before + 4);
    gpsti_a32_store(&self->back_from, NONE_STOPS);
    paced_drain(self);
    assert_int_equal(self->stats.device_fallbacks, 0);
    paced_close(self);
}

/* Memory for two, one of which has not come to the device yet: of those behind it each has given up what it was granted,
   and none of them ends. The device has refused before, so that nobody keeps what he needs no more. */
static void test_behind_the_device_nothing_is_kept(void** state) {
    (void)state;
    paced* const self = paced_open(__func__, 4 * VIEWS_BYTES, 4, 0, GPST_GRAPHS_OFF);
    paced_lend(self, 2 * VIEWS_BYTES);
    paced_pass(self, 1, 3);
    gpsti_a64_store(&self->its->context->grants->device_most, 4 * VIEWS_BYTES);
    gpsti_a32_store(&self->front_from, 3);
    gpsti_a32_store(&self->front_to, 4);
    gpsti_a32_store(&self->back_from, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(paced_submit(self, 1, GPST_FOREVER), GPST_OK);
    paced_await_behind(self, 6);
    gpsti_a32_store(&self->front_from, NONE_STOPS);
    gpsti_a32_store(&self->back_from, NONE_STOPS);
    paced_drain(self);
    assert_int_equal(paced_count(self, SAID_CPU) + self->stats.device_fallbacks, 0);
    paced_close(self);
}

/* Nine items come as a batch, and there is memory for one alone: they wait for one another, and hardly any goes to the
   cores. */
static void test_a_batch_too_large(void** state) {
    (void)state;
    paced* const self = paced_open(__func__, 4 * VIEWS_BYTES, 9, 8, GPST_GRAPHS_OFF);
    paced_lend(self, 3 * VIEWS_BYTES);
    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 9; i++)
            assert_int_equal(paced_submit(self, 1, GPST_FOREVER), GPST_OK);
        paced_drain(self);
    }
    gpst_pipeline_query_stats(self->pipeline, &self->stats);
    assert_true(self->stats.device_fallbacks < 20 * 9 / 4);
    paced_close(self);
}

/* No item fits: the CPU has them, for longer each time, until the device has room again. */
static void test_the_cpu_and_back(void** state) {
    (void)state;
    paced* const self = paced_open(__func__, 4 * VIEWS_BYTES, 1, 0, GPST_GRAPHS_OFF);
    paced_lend(self, 4 * VIEWS_BYTES - PAGE);
    paced_pass(self, 1, 3);
    assert_int_equal(paced_count(self, SAID_CPU), 2); /* the third one did not ask */
    assert_int_equal(self->stats.device_fallbacks, 3);
    gpst_pool_release(self->pool, &self->loan);
    paced_pass(self, 1, 20);
    assert_int_equal(paced_count(self, SAID_CPU), 2);
    assert_int_equal(self->stats.device_fallbacks, 3);
    assert_int_equal(paced_count(self, SAID_WAITED), 0);
    paced_lend(self, 3 * VIEWS_BYTES);
    paced_pass(self, 2, 2); /* no room for a larger one: both ask, as at the start */
    assert_int_equal(paced_count(self, SAID_CPU), 4);
    assert_int_equal(self->stats.device_fallbacks, 5);
    paced_close(self);
}

/* What a device that refused is taken to have grows with each item, until it is the budget that counts. */
static void test_a_device_that_refused_is_asked_again(void** state) {
    (void)state;
    paced* const self = paced_open(__func__, 4 * VIEWS_BYTES, 1, 0, GPST_GRAPHS_OFF);
    gpst_context* const context = self->its->context;
    paced_pass(self, 1, 1);
    gpsti_a64_store(&context->grants->device_most, gpsti_a64_load(&context->device_bytes));
    for (uint64_t most = VIEWS_BYTES; most < 4 * VIEWS_BYTES; most += PAGE) {
        assert_true(gpsti_grant_budget(context, GPSTI_OF_DEVICE) >= most);
        paced_pass(self, 1, 1);
    }
    assert_int_equal(gpsti_grant_budget(context, GPSTI_OF_DEVICE), 4 * VIEWS_BYTES);
    assert_int_equal(paced_count(self, SAID_CPU), 0);
    paced_close(self);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_budget),
        cmocka_unit_test(test_items_wait_for_one_another),
        cmocka_unit_test(test_a_required_device_is_waited_for),
        cmocka_unit_test(test_the_device_runs_out),
        cmocka_unit_test(test_batches_are_halved),
        cmocka_unit_test(test_a_mean_goes_on),
        cmocka_unit_test(test_as_many_are_submitted_as_slots),
        cmocka_unit_test(test_finished_items_leave_the_device),
        cmocka_unit_test(test_both_memories_are_short),
        cmocka_unit_test(test_graphs_and_unused_memory_go_first),
        cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_behind_the_device_nothing_is_kept),
        cmocka_unit_test(test_a_batch_too_large),
        cmocka_unit_test(test_the_cpu_and_back),
        cmocka_unit_test(test_a_device_that_refused_is_asked_again),
    };
    return cmocka_run_group_tests_name("pipeline_shortage", tests, NULL, NULL);
}
