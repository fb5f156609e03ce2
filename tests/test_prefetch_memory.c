/* tests/test_prefetch_memory.c -- the memory of prefetched pictures: what fits stays, what is not in use gives way to
   others of the context, and where frames and items of a pipeline share a budget its source waits and nothing fails. */
#include "prefetch_kit.h"
#if !defined(GPST_TEST_AMALGAM)
#include "../core/pipeline/frame_source.h"
#endif

#include <pthread.h>

static const gpst_decode_desc plain_decode;
static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL, GPST_RUN_DEFAULT};

/* ---- budgets --------------------------------------------------------------------------------------- */

/* Room for all is room for all: nothing is decoded twice. One byte less, and something is. */
static void all_that_fit_stay(void** state) {
    gpst_context* const context = set_context("cpu", 0, NULL);
    gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    (void)state;
    for (int less = 0; less < 2; less++) {
        desc.max_bytes = (uint64_t)N_ALIKE * ALIKE_BYTES - (uint64_t)less;
        gpst_prefetch* const prefetch = set_open(context, &desc);
        for (int round = 0; round < 3; round++)
            pass(prefetch, N_ALIKE);
        const gpst_prefetch_info info = set_info(prefetch);
        assert_int_equal(info.decoded == N_ALIKE, !less);
        assert_true(info.bytes <= desc.max_bytes);
        if (!less) {
            assert_int_equal(info.kept, 2 * N_ALIKE);
            assert_int_equal(info.most_bytes, desc.max_bytes);
            assert_true(info.saved_ns == 2 * info.decode_ns);
            assert_true(info.charged_bytes >= desc.max_bytes && info.charged_bytes < desc.max_bytes * 5 / 4);
        }
        gpst_prefetch_destroy(prefetch);
    }
    gpst_context_destroy(context);
}

static void budgets_of_a_frame_and_less(void** state) {
    gpst_context* const context = set_context("cpu", 0, NULL);
    gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    const gpst_frame* held[3];
    (void)state;
    for (int b = 0; b < 3; b++) {
        desc.max_bytes = b == 0 ? 1 : b == 1 ? ALIKE_BYTES - 1 : ALIKE_BYTES;
        gpst_prefetch* const prefetch = set_open(context, &desc);
        for (int round = 0; round < 2; round++)
            pass(prefetch, N_ALIKE);
        gpst_prefetch_release(prefetch, get(prefetch, 5));
        gpst_prefetch_release(prefetch, get(prefetch, 5));
        gpst_prefetch_info info = set_info(prefetch);
        assert_true(info.bytes <= desc.max_bytes);
        assert_true(b < 2 ? info.bytes == 0 : info.kept > 0);
        for (uint64_t k = 0; k < 3; k++) /* more than fits, in use */
            held[k] = get(prefetch, 2 * k);
        assert_true(set_info(prefetch).bytes >= 3 * ALIKE_BYTES);
        for (uint64_t k = 0; k < 3; k++)
            gpst_prefetch_release(prefetch, held[k]);
        assert_true(set_info(prefetch).bytes <= desc.max_bytes);
        gpst_prefetch_destroy(prefetch);
    }
    gpst_context_destroy(context);
}

/* Frames of many sizes come and go: what the cache has free for the next ones stays small. */
static void sizes_that_vary_take_no_more(void** state) {
    static file_set set;
    gpst_context* const context = set_context("cpu", 0, NULL);
    uint64_t most = 0;
    (void)state;
    set_begin(&set, "size");
    for (uint32_t k = 0; k < 40; k++)
        set_add_plain(&set, GPST_FILE_PNM, 60 + 11 * k, 100, GPST_FORMAT_RGB, GPST_DTYPE_U16);
    gpst_prefetch_desc desc = set_desc(&set, &plain_decode);
    desc.max_bytes = 600000; /* of 36000 to 292800 */
    gpst_prefetch* const prefetch = set_open(context, &desc);
    for (int round = 0; round < 5; round++)
        for (uint64_t k = 0; k < set.n; k++) {
            gpst_prefetch_release(prefetch, get(prefetch, k * 7 % set.n));
            const uint64_t charged = set_info(prefetch).charged_bytes;
            most = charged > most ? charged : most;
        }
    printf("%llu bytes taken for %u\n", (unsigned long long)most, 600000u);
    assert_true(most < 600000 * 9 / 8 + 5 * 330000); /* and for the files and pictures of those on their way */
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
}

/* What is not in use goes where a pool of the context's needs the memory, and comes back afterwards. */
static void a_cache_gives_way(void** state) {
    const uint64_t budget = 8 * (uint64_t)ALIKE_BYTES * 9 / 8;
    gpst_context* const context = set_context("cpu", budget, NULL);
    gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    const uint64_t only = 0; /* nothing is fetched ahead */
    desc.schedule = &only;
    desc.n_schedule = 1;
    gpst_prefetch* const prefetch = set_open(context, &desc);
    gpst_pool_desc pool_desc = GPST_ZERO;
    gpst_pool* pool = NULL;
    gpst_buffer buffers[16];
    const gpst_frame* frame = NULL;
    uint32_t n = 0;
    (void)state;
    pool_desc.huge_pages = GPST_HUGE_PAGES_OFF;
    assert_int_equal(gpst_pool_create(context, &pool_desc, &pool), GPST_OK);
    pass(prefetch, N_ALIKE); /* more than fit into the budget */
    assert_true(set_info(prefetch).bytes >= 4 * ALIKE_BYTES);
    const gpst_frame* const held = get(prefetch, 3);
    while (n < 16 && gpst_pool_acquire(pool, ALIKE_BYTES, 0, &buffers[n]) == GPST_OK)
        n++;
    assert_true(n >= 6 && n < 9);
    gpst_prefetch_info info = set_info(prefetch);
    assert_int_equal(info.bytes, ALIKE_BYTES); /* the one in use */
    assert_true(info.given_up > 0);
    assert_int_equal(gpst_prefetch_get(prefetch, 4, &frame), GPST_ERROR_BUDGET); /* there is no room for another */
    assert_null(frame);
    test_reason_has("max_host_bytes", "");
    gpst_pool_release(pool, &buffers[--n]); /* for its file, */
    gpst_pool_release(pool, &buffers[--n]); /* and its pixels */
    frame = get(prefetch, 4);
    assert_int_equal(frame->bytes, ALIKE_BYTES);
    gpst_prefetch_release(prefetch, frame);
    gpst_prefetch_release(prefetch, held);
    while (n > 0)
        gpst_pool_release(pool, &buffers[--n]);
    pass(prefetch, N_ALIKE);
    assert_true(set_info(prefetch).bytes >= 4 * ALIKE_BYTES); /* what the pool had free is its again */
    gpst_pool_destroy(pool);
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
}

/* Who waits for memory gets it when the frame that has it is given back. */
typedef struct waiter {
    gpst_pool* pool;
    gpst_result result;
    gpsti_a32 begun;
    pthread_t thread;
} waiter;

static void* wait_for_memory(void* arg) {
    waiter* const self = (waiter*)arg;
    gpst_buffer buffer;
    gpsti_a32_store(&self->begun, 1);
    self->result = gpst_pool_acquire(self->pool, 4 * ALIKE_BYTES, GPST_FOREVER, &buffer);
    if (self->result == GPST_OK)
        gpst_pool_release(self->pool, &buffer);
    return NULL;
}

static void who_waits_is_told(void** state) {
    gpst_context* const context = set_context("cpu", 6 * (uint64_t)ALIKE_BYTES * 9 / 8, NULL);
    gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    uint64_t only = 3;
    gpst_pool_desc pool_desc = GPST_ZERO;
    gpst_buffer little;
    const gpst_frame* held[4];
    waiter self;
    (void)state;
    memset(&self, 0, sizeof self);
    desc.schedule = &only; /* nothing is fetched ahead */
    desc.n_schedule = 1;
    gpst_prefetch* const prefetch = set_open(context, &desc);
    pool_desc.huge_pages = GPST_HUGE_PAGES_OFF;
    assert_int_equal(gpst_pool_create(context, &pool_desc, &self.pool), GPST_OK);
    assert_int_equal(gpst_pool_acquire(self.pool, 4096, 0, &little), GPST_OK); /* else nobody would wait */
    for (uint64_t k = 0; k < 4; k++)
        held[k] = get(prefetch, k);
    assert_int_equal(pthread_create(&self.thread, NULL, wait_for_memory, &self), 0);
    while (!gpsti_a32_load(&self.begun))
        gpsti_sleep_ns(100000);
    gpsti_sleep_ns(20000000);
    for (uint64_t k = 0; k < 4; k++)
        gpst_prefetch_release(prefetch, held[k]);
    pthread_join(self.thread, NULL);
    assert_int_equal(self.result, GPST_OK);
    gpst_pool_release(self.pool, &little);
    gpst_pool_destroy(self.pool);
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
}

/* ---- little memory --------------------------------------------------------------------------------- */

enum { WIDE_BYTES = 256 * 132 * 3 };

static void add_wide(file_set* set) {
    set_begin(set, "wide");
    for (int k = 0; k < 32; k++)
        set_add_jpeg(set, 256, 132, GPST_FORMAT_RGB);
}

/* Makes the item take so many rows of the frame's width, for a while. */
static gpst_result take_rows(void* user_data, gpst_task* task) {
    gpst_image shape = task->item->sets[0].pictures[0], out;
    shape.height = *(const uint32_t*)user_data;
    const gpst_result result = gpst_task_set_picture(task, 1, 0, &shape, &out);
    if (result != GPST_OK)
        return result;
    gpsti_sleep_ns(300000);
    memset(out.data, (int)task->item->index, (size_t)out.width * 3);
    return GPST_OK;
}

static gpst_result count_ok(void* user_data, const gpst_item* item) {
    uint64_t* const counts = (uint64_t*)user_data;
    counts[item->result == GPST_OK && strstr(item->note, "256x132 is not 2:1") ? 0 : 1]++; /* also of one begun anew */
    if (item->result != GPST_OK)
        printf("%s: %s\n", item->stage, item->reason);
    return GPST_OK;
}

/* Frames and items share a budget that a few of each fill: the source waits for items, the cache gives way to them, and
   nothing fails. */
static void frames_and_items_share_a_budget(void** state) {
    static file_set set;
    gpst_decode_desc decode = GPST_ZERO;
    (void)state;
    decode.placement.sphere = true; /* so that each frame has a note */
    add_wide(&set);
    for (uint64_t n_frames = 6; n_frames <= 14; n_frames += 2)
        for (int m = 0; m < 4; m++) {
            uint32_t n_rows = m < 2 ? 3 * 132 : 4; /* the items have most of it, or their frames */
            gpst_context* const context = set_context("cpu", n_frames * WIDE_BYTES * 9 / 8, NULL);
            gpst_prefetch_desc prefetch_desc = set_desc(&set, &decode);
            gpst_prefetch* const prefetch = set_open(context, &prefetch_desc);
            for (int pass = 0; pass < 2; pass++) {
                gpst_pipeline_desc desc = GPST_ZERO;
                gpst_pipeline* pipeline = NULL;
                gpst_stage_desc stage;
                uint64_t counts[2] = {0, 0};
                gpst_stage_host(&stage, GPST_SET(0), GPST_SET(1), take_rows, &n_rows);
                desc.stages = &stage;
                desc.n_stages = 1;
                desc.source = gpst_prefetch_source;
                desc.source_user_data = prefetch;
                desc.sink = count_ok;
                desc.sink_user_data = counts;
                desc.n_slots = 20;
                desc.mode = modes[m % 2];
                assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
                assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
                assert_int_equal(counts[0], set.n);
                assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
            }
            const gpst_prefetch_info info = set_info(prefetch);
            printf("%u frames: %llu decoded, %llu kept, %llu given up\n", (unsigned)n_frames,
                   (unsigned long long)info.decoded, (unsigned long long)info.kept,
                   (unsigned long long)info.given_up);
            gpst_prefetch_destroy(prefetch);
            gpst_context_destroy(context);
        }
}

/* One stage takes all memory that there is, for a while, or until the source has been refused a frame: where items are
   known to take more than is free it is not asked. */
typedef struct hoarder {
    gpst_prefetch* prefetch;
    gpst_pool* pool;
    gpsti_a32 n_refused;
    uint64_t counts[2];
} hoarder;

static gpst_result hoarded_source(void* user_data, uint64_t index, gpst_input* out) {
    hoarder* const self = (hoarder*)user_data;
    const gpst_result result = gpst_prefetch_source(self->prefetch, index, out);
    if (result == GPST_ERROR_WOULD_BLOCK)
        (void)gpsti_a32_add(&self->n_refused, 1);
    return result;
}

static gpst_result hoard(void* user_data, gpst_task* task) {
    hoarder* const self = (hoarder*)user_data;
    gpst_buffer buffers[64];
    uint32_t n = 0;
    if (task->item->index != 8) /* before one has ended nobody knows how many fit, and it would be alone */
        return GPST_OK;
    const int64_t until_ns = gpst_now_ns() + 200 * GPST_MS; /* what others give back meanwhile, too */
    while (gpsti_a32_load(&self->n_refused) == 0 && gpst_now_ns() < until_ns)
        if (n < 64 && gpst_pool_acquire(self->pool, 65536, 0, &buffers[n]) == GPST_OK)
            n++;
    while (n > 0)
        gpst_pool_release(self->pool, &buffers[--n]);
    gpst_pool_trim(self->pool);
    return GPST_OK;
}

static gpst_result count_hoarded(void* user_data, const gpst_item* item) {
    return count_ok(((hoarder*)user_data)->counts, item);
}

static void a_source_waits_for_memory(void** state) {
    static file_set set;
    gpst_context* const context = set_context("cpu", 12 * (uint64_t)WIDE_BYTES * 9 / 8, NULL);
    gpst_decode_desc decode = GPST_ZERO;
    gpst_pool_desc pool_desc = GPST_ZERO;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    gpst_stage_desc stage;
    uint64_t schedule[400];
    hoarder self;
    (void)state;
    add_wide(&set);
    memset(&self, 0, sizeof self);
    decode.placement.sphere = true;
    gpst_prefetch_desc prefetch_desc = set_desc(&set, &decode);
    for (uint64_t k = 0; k < 400; k++)
        schedule[k] = k % set.n;
    prefetch_desc.schedule = schedule;
    prefetch_desc.n_schedule = 400;
    self.prefetch = set_open(context, &prefetch_desc);
    pool_desc.huge_pages = GPST_HUGE_PAGES_OFF;
    assert_int_equal(gpst_pool_create(context, &pool_desc, &self.pool), GPST_OK);
    gpst_stage_host(&stage, GPST_SET(0), 0, hoard, &self);
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = hoarded_source;
    desc.source_user_data = &self;
    desc.sink = count_hoarded;
    desc.sink_user_data = &self;
    desc.as_ready = true;
    desc.mode = GPST_RUN_ENGINE;
    desc.n_slots = 20;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    assert_int_equal(self.counts[0], 400);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_pool_destroy(self.pool);
    gpst_prefetch_destroy(self.prefetch);
    gpst_context_destroy(context);
}

/* ---- a source that has no memory -------------------------------------------------------------------- */

typedef struct refuser {
    uint64_t next, n_refused, n_alone;
    gpsti_a32 in_flight; /* items that it gave and that have not ended */
    gpsti_a32 broken;
    uint64_t hopeless; /* this one is never given */
} refuser;

static gpst_result refusing_source(void* user_data, uint64_t index, gpst_input* out) {
    refuser* const self = (refuser*)user_data;
    static uint8_t pixels[16];
    if (index >= 60)
        return GPST_END;
    if (index < self->next)
        gpsti_a32_store(&self->broken, 1);
    const uint32_t others = gpsti_a32_load(&self->in_flight);
    if (index == self->hopeless || others >= 2) { /* as if two had all the memory */
        self->n_refused++;
        self->n_alone += others == 0;
        return gpst_task_fail(NULL, GPST_ERROR_WOULD_BLOCK, "no memory for item %u", (unsigned)index);
    }
    self->next = index + 1;
    (void)gpsti_a32_add(&self->in_flight, 1);
    out->frame.data = pixels;
    out->frame.width = out->frame.height = 4;
    out->frame.format = GPST_FORMAT_GRAY;
    return GPST_OK;
}

static gpst_result work(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    gpsti_sleep_ns(200000);
    return GPST_OK;
}

static gpst_result check_refused(void* user_data, const gpst_item* item) {
    refuser* const self = (refuser*)user_data;
    const bool hopeless = item->index == self->hopeless;
    if (!hopeless)
        (void)gpsti_a32_add(&self->in_flight, UINT32_MAX);
    if (item->result != (hopeless ? GPST_ERROR_BUDGET : GPST_OK) ||
        (hopeless && strcmp(item->reason, "no memory for item 33") != 0))
        gpsti_a32_store(&self->broken, 1);
    return GPST_OK;
}

static void a_source_may_wait_for_items(void** state) {
    gpst_context* const context = set_context("cpu", 0, NULL);
    (void)state;
    for (int m = 0; m < 3; m++) {
        refuser self;
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_pipeline* pipeline = NULL;
        gpst_stage_desc stage;
        memset(&self, 0, sizeof self);
        self.hopeless = 33;
        gpst_stage_host(&stage, GPST_SET(0), 0, work, NULL);
        desc.stages = &stage;
        desc.n_stages = 1;
        desc.source = refusing_source;
        desc.source_user_data = &self;
        desc.sink = check_refused;
        desc.sink_user_data = &self;
        desc.n_slots = 6;
        desc.mode = modes[m];
        assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(pipeline), GPST_PARTIAL);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        assert_int_equal(gpsti_a32_load(&self.broken), 0);
        assert_int_equal(self.next, 60);
        assert_true(self.n_alone >= 1);
        assert_true(modes[m] == GPST_RUN_PLAIN_SERIAL ? self.n_refused == 1 : self.n_refused > 1);
    }
    gpst_context_destroy(context);
}

/* Lent frames that say what they take of the budget: no more are lent than fit, with an eighth to spare. */
enum { LENT_BUDGET = 4 << 20 };

typedef struct lender {
    uint64_t charged_bytes;
    gpsti_a32 n_lent;
    uint32_t most_lent;
} lender;

static void take_back(void* user_data) { (void)gpsti_a32_add((gpsti_a32*)user_data, UINT32_MAX); }

static gpst_result lending_source(void* user_data, uint64_t index, gpst_input* out) {
    lender* const self = (lender*)user_data;
    static uint8_t pixels[16];
    const uint32_t n = gpsti_a32_add(&self->n_lent, 1) + 1;
    self->most_lent = n > self->most_lent ? n : self->most_lent;
    if (index >= 60)
        return GPST_END;
    out->frame.data = pixels;
    out->frame.width = out->frame.height = 4;
    out->frame.format = GPST_FORMAT_GRAY;
    out->charged_bytes = self->charged_bytes;
    out->release = take_back;
    out->release_user_data = &self->n_lent;
    return GPST_OK;
}

/* Now and then one is slow, and those behind it wait for it with their frames. */
static gpst_result work_unevenly(void* user_data, gpst_task* task) {
    (void)user_data;
    if (task->item->index % 20 == 5)
        gpsti_sleep_ns(20000000);
    return GPST_OK;
}

static gpst_result take_it(void* user_data, const gpst_item* item) {
    (void)user_data;
    return item->result;
}

static void as_many_are_lent_as_fit(void** state) {
    gpst_context* const context = set_context("cpu", LENT_BUDGET, NULL);
    (void)state;
    for (int known = 0; known < 2; known++) {
        lender self;
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_pipeline* pipeline = NULL;
        gpst_stage_desc stage;
        memset(&self, 0, sizeof self);
        self.charged_bytes = known ? LENT_BUDGET / 4 : 0;
        gpst_stage_host(&stage, GPST_SET(0), 0, work_unevenly, NULL);
        desc.stages = &stage;
        desc.n_stages = 1;
        desc.source = lending_source;
        desc.source_user_data = &self;
        desc.sink = take_it;
        desc.results[0] = gpst_result_of(0, GPST_AS_IT_IS);
        desc.n_results = 1;
        desc.n_slots = 20;
        desc.mode = GPST_RUN_ENGINE;
        assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        assert_int_equal(gpsti_a32_load(&self.n_lent), 1); /* the END */
        if (known)
            assert_true(self.most_lent <= 3 + 1);
    }
    gpst_context_destroy(context);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_fit_stay),         cmocka_unit_test(budgets_of_a_frame_and_less),
        cmocka_unit_test(sizes_that_vary_take_no_more), cmocka_unit_test(a_cache_gives_way),
        cmocka_unit_test(who_waits_is_told),         cmocka_unit_test(frames_and_items_share_a_budget),
        cmocka_unit_test(a_source_waits_for_memory), cmocka_unit_test(a_source_may_wait_for_items),
        cmocka_unit_test(as_many_are_lent_as_fit)};
    return set_has_jpeg() ? cmocka_run_group_tests(tests, set_begin_alike, set_end) : set_skip();
}
