/* tests/test_pipeline_frames.c -- frames that are lent to a pipeline, from the host's memory and from the device's: who
   gives them back, and when; results on the device. */
#include "pipeline_kit.h"

#include "gpu_kernels.h"

static gpst_image gray(uint32_t width, uint32_t height, void* data) {
    gpst_image image = kit_shape(width, height);
    image.data = data;
    return image;
}

/* ---- frames that are lent ------------------------------------------------------------------------------------------ */

typedef struct lender {
    kit* owner;
    gpsti_a32 n_back;
} lender;

static void lent_back(void* user_data) { (void)gpsti_a32_add(&((lender*)user_data)->n_back, 1); }

static gpst_input lent_input(lender* self, uint8_t* pixels) {
    gpst_input input = GPST_ZERO;
    input.frame = gray(16, 8, pixels + 20 * 7); /* bottom-up, with gaps */
    input.frame.pitch_bytes = -20;
    input.release = lent_back;
    input.release_user_data = self;
    return input;
}

static gpst_result see_frame(void* user_data, gpst_task* task) {
    kit* const self = (kit*)user_data;
    const gpst_image* const frame = &task->item->sets[0].pictures[0];
    gpst_image shape = *frame, made;
    shape.pitch_bytes = 0;
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &made));
    for (uint32_t y = 0; y < frame->height; y++)
        memcpy((uint8_t*)made.data + y * frame->width, (const uint8_t*)frame->data + y * frame->pitch_bytes,
               frame->width);
    kit_check(self, frame->pitch_bytes == -20);
    return GPST_OK;
}

static gpst_result refuse_frame(void* user_data, gpst_task* task) {
    (void)user_data;
    return gpst_task_fail(task, GPST_ERROR_FORMAT, "refused");
}

static void fill_lent(uint8_t* pixels, uint32_t n) {
    for (uint32_t i = 0; i < 160; i++)
        pixels[i] = (uint8_t)(i * 3 + n);
}

static void check_lent(const gpst_image* picture, uint32_t n) {
    uint8_t pixels[160];
    fill_lent(pixels, n);
    assert_int_equal(picture->width, 16);
    for (uint32_t y = 0; y < 8; y++)
        assert_memory_equal((const uint8_t*)picture->data + y * picture->pitch_bytes, pixels + 20 * (7 - y), 16);
}

static gpst_pipeline* lending(kit* owner, gpst_stage_desc* stages, uint32_t n_stages, gpst_pipeline_desc* desc) {
    gpst_pipeline* pipeline = NULL;
    desc->stages = stages;
    desc->n_stages = n_stages;
    if (gpst_pipeline_create(owner->context, desc, &pipeline) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    return pipeline;
}

/* Given back when the last stage that reads it is through; where it is a result, with the result. */
static void test_lent_frames_come_back(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim"};
    static uint8_t pixels[8][160];
    for (int i = 0; i < 4; i++) {
        const bool is_result = i / 2 == 1;
        kit* const owner = kit_open(backends[i % 2], 2);
        lender self = {owner, GPST_ZERO};
        gpst_stage_desc stage;
        gpst_pipeline_desc desc = GPST_ZERO;
        const gpst_item* item = NULL;
        gpst_stage_host(&stage, GPST_SET(0), GPST_SET(1), see_frame, owner);
        desc.n_results = 1 + (is_result ? 1u : 0u);
        desc.results[0] = gpst_result_of(1, GPST_ON_HOST);
        desc.results[1] = gpst_result_of(0, GPST_AS_IT_IS);
        desc.n_slots = 16;
        gpst_pipeline* const pipeline = lending(owner, &stage, 1, &desc);
        for (uint32_t n = 0; n < 8; n++) {
            fill_lent(pixels[n], n);
            const gpst_input input = lent_input(&self, pixels[n]);
            assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        }
        for (uint32_t n = 0; n < 8; n++) {
            assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
            assert_int_equal(item->result, GPST_OK);
            check_lent(&item->sets[1].pictures[0], n);
            assert_int_equal(item->sets[0].n, is_result);
            assert_int_equal(item->sets[0].pictures[0].data != NULL, is_result);
            if (is_result) {
                assert_ptr_equal(item->sets[0].pictures[0].data, pixels[n] + 20 * 7);
                assert_int_equal(gpsti_a32_load(&self.n_back), n);
            } else {
                assert_true(gpsti_a32_load(&self.n_back) > n);
            }
            gpst_pipeline_release(pipeline, item);
        }
        assert_int_equal(gpsti_a32_load(&self.n_back), 8);
        /* What is refused stays the caller's; what is dropped or never taken comes back. */
        gpst_input input = lent_input(&self, pixels[0]);
        input.frame.format = GPST_FORMAT_INVALID;
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, 0, NULL), GPST_ERROR_ARGUMENT);
        assert_non_null(strstr(gpst_last_reason(), "gpst_pipeline_submit: input.frame.format"));
        assert_int_equal(gpsti_a32_load(&self.n_back), 8);
        input = lent_input(&self, pixels[0]);
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        assert_int_equal(gpsti_a32_load(&self.n_back), 9);
        kit_close(owner);
    }
}

/* Also where the user still has the result when the pipeline goes. */
static void test_destroy_gives_back(void** state) {
    (void)state;
    static uint8_t pixels[160];
    kit* const owner = kit_open("cpu", 2);
    lender self = {owner, GPST_ZERO};
    gpst_stage_desc stage;
    gpst_pipeline_desc desc = GPST_ZERO;
    const gpst_item* item = NULL;
    gpst_stage_host(&stage, GPST_SET(0), GPST_SET(1), see_frame, owner);
    desc.n_results = 1;
    desc.results[0] = gpst_result_of(0, GPST_AS_IT_IS);
    gpst_pipeline* const pipeline = lending(owner, &stage, 1, &desc);
    const gpst_input input = lent_input(&self, pixels);
    assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
    assert_int_equal(gpsti_a32_load(&self.n_back), 0);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    assert_int_equal(gpsti_a32_load(&self.n_back), 1);
    kit_close(owner);
}

/* A pipeline that names no results: a frame that a stage reads is none. */
static void test_a_frame_is_no_result(void** state) {
    (void)state;
    static uint8_t pixels[160];
    for (int fails = 0; fails < 2; fails++) {
        kit* const owner = kit_open("cpu", 2);
        lender self = {owner, GPST_ZERO};
        gpst_stage_desc stage;
        gpst_pipeline_desc desc = GPST_ZERO;
        const gpst_item* item = NULL;
        gpst_stage_host(&stage, GPST_SET(0), GPST_SET(1), fails ? refuse_frame : see_frame, owner);
        gpst_pipeline* const pipeline = lending(owner, &stage, 1, &desc);
        const gpst_input input = lent_input(&self, pixels);
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        assert_int_equal(item->result, fails ? GPST_ERROR_FORMAT : GPST_OK);
        assert_int_equal(gpsti_a32_load(&self.n_back), 1);
        assert_int_equal(item->sets[0].n, 0);
        assert_int_equal(item->sets[1].n, !fails);
        gpst_pipeline_release(pipeline, item);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(owner);
    }
}

enum { N_TIGHT = 2, TIGHT_SIDE = 1024 };

/* Takes the first of two pictures, waits a while for the other item to have its first one, and takes the second. */
static gpst_result take_tight(void* user_data, gpst_task* task) {
    gpsti_a32* const n_begun = (gpsti_a32*)user_data;
    const int64_t end_ns = gpsti_now_ns() + 100000000; /* it may not begin while this one has too much */
    const gpst_image shape = gray(TIGHT_SIDE, TIGHT_SIDE, NULL);
    gpst_image image;
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &shape, &image));
    (void)gpsti_a32_add(n_begun, 1);
    while (gpsti_a32_load(n_begun) < N_TIGHT && gpsti_now_ns() < end_ns)
        gpsti_sleep_ns(100000);
    return gpst_task_set_picture(task, 1, 1, &shape, &image);
}

/* Two items, with memory for two and a half pictures: where both have begun one begins anew, and needs its frame again. */
static void test_lent_frames_in_tight_memory(void** state) {
    (void)state;
    static uint8_t pixels[160];
    kit* const owner = kit_open("cpu", N_TIGHT);
    lender self = {owner, GPST_ZERO};
    gpsti_a32 n_begun = GPST_ZERO;
    gpst_context_desc context = GPST_ZERO;
    gpst_stage_desc stage;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stats stats;
    context.backend = "cpu";
    context.n_workers = N_TIGHT;
    context.max_host_bytes = (uint64_t)TIGHT_SIDE * TIGHT_SIDE * 5 / 2;
    kit_reopen(owner, &context);
    gpst_stage_host(&stage, GPST_SET(0), GPST_SET(1), take_tight, &n_begun);
    desc.capacity[1] = 2;
    desc.sink = kit_sink;
    desc.sink_user_data = owner;
    owner->n_items = N_TIGHT;
    gpst_pipeline* const pipeline = lending(owner, &stage, 1, &desc);
    const gpst_input input = lent_input(&self, pixels);
    for (int n = 0; n < N_TIGHT; n++)
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    gpst_pipeline_close(pipeline);
    assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(stats.items_ok, N_TIGHT);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    assert_true(gpsti_a32_load(&n_begun) >= N_TIGHT);
    assert_int_equal(gpsti_a32_load(&self.n_back), N_TIGHT);
    kit_close(owner);
}

/* A source that gave a frame with GPST_OK has given it away, even one that is refused; with anything else it has not. */
static gpst_result lend_in_many_ways(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[160];
    *out = lent_input((lender*)user_data, pixels);
    if (index % 4 == 1)
        out->frame.format = GPST_FORMAT_INVALID;
    return index == 12 ? GPST_END : index % 4 == 2 ? GPST_SKIPPED : index % 4 == 3 ? GPST_ERROR_IO : GPST_OK;
}

static void test_sources_lend(void** state) {
    (void)state;
    static const gpst_run_mode modes[] = {GPST_RUN_ENGINE, GPST_RUN_PLAIN_SERIAL};
    for (int m = 0; m < 2; m++) {
        kit* const owner = kit_open("cpu", 2);
        lender self = {owner, GPST_ZERO};
        gpst_stage_desc stage;
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_stats stats;
        gpst_stage_host(&stage, GPST_SET(0), GPST_SET(1), see_frame, owner);
        desc.source = lend_in_many_ways;
        desc.source_user_data = &self;
        desc.mode = modes[m];
        gpst_pipeline* const pipeline = lending(owner, &stage, 1, &desc);
        assert_int_equal(gpst_pipeline_run(pipeline), GPST_PARTIAL);
        gpst_pipeline_query_stats(pipeline, &stats);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        assert_int_equal(stats.items_ok, 3);
        assert_int_equal(stats.items_skipped, 3);
        assert_int_equal(stats.items_failed, 6);
        assert_int_equal(gpsti_a32_load(&self.n_back), 6);
        kit_close(owner);
    }
}

static gpst_result wait_until_told(void* user_data, gpst_task* task) {
    gpsti_a32* const told = (gpsti_a32*)user_data;
    (void)task;
    while (gpsti_a32_load(told) == 0)
        gpsti_sleep_ns(100000);
    return GPST_OK;
}

static void test_dropped_frames_come_back(void** state) {
    (void)state;
    static const gpst_full_policy policies[] = {GPST_FULL_DROP_NEWEST, GPST_FULL_DROP_OLDEST, GPST_FULL_LATEST_ONLY};
    static uint8_t pixels[160];
    for (int p = 0; p < 3; p++) {
        kit* const owner = kit_open("cpu", 1);
        lender self = {owner, GPST_ZERO};
        gpsti_a32 told = GPST_ZERO;
        gpst_stage_desc stage;
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_stats stats;
        gpst_stage_host(&stage, GPST_SET(0), 0, wait_until_told, &told);
        desc.full_policy = policies[p];
        desc.n_slots = 2;
        desc.sink = kit_sink;
        desc.sink_user_data = owner;
        owner->n_items = 9;
        owner->as_ready = desc.as_ready = true;
        gpst_pipeline* const pipeline = lending(owner, &stage, 1, &desc);
        for (uint32_t n = 0; n < 9; n++) {
            const gpst_input input = lent_input(&self, pixels);
            const gpst_result result = gpst_pipeline_submit(pipeline, &input, 0, NULL);
            assert_true(result == GPST_OK || result == GPST_DROPPED);
        }
        gpst_pipeline_query_stats(pipeline, &stats);
        assert_true(stats.items_dropped >= 6);
        assert_int_equal(gpsti_a32_load(&self.n_back), stats.items_dropped);
        gpsti_a32_store(&told, 1);
        gpst_pipeline_close(pipeline);
        assert_int_equal(gpst_pipeline_drain(pipeline, GPST_FOREVER), GPST_OK);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        assert_int_equal(gpsti_a32_load(&self.n_back), 9);
        kit_close(owner);
    }
}

/* ---- frames and results of the device ------------------------------------------------------------------------------- */

enum { DEVICE_BYTES = 16 * 8 };

static gpst_result add_on_host(const void* args) {
    const test_number_args* const a = (const test_number_args*)args;
    for (uint32_t i = 0; i < a->bytes; i++)
        a->to[i] = (uint8_t)(a->from[i] + a->add);
    return GPST_OK;
}

static gpst_result enqueue_add(gpst_task* task, const gpst_image* from, const gpst_image* to, uint32_t bytes) {
    static const gpst_kernel kernel = {"add", add_on_host, TEST_GPU(test_number_gpu)};
    test_number_args args;
    memset(&args, 0, sizeof args);
    args.from = (const uint8_t*)from->data;
    args.to = (uint8_t*)to->data;
    args.add = 7;
    args.bytes = bytes;
    return gpst_task_enqueue(task, &kernel, &args, sizeof args);
}

static gpst_result add_seven(void* user_data, gpst_task* task) {
    gpst_image frame, to;
    (void)user_data;
    GPSTI_TRY(gpst_task_pictures(task, 0, &frame, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &frame, &to));
    return enqueue_add(task, &frame, &to, DEVICE_BYTES);
}

static gpsti_a32 may_read;

static gpst_result wait_to_read(const void* args) {
    (void)args;
    for (int ms = 0; ms < 20000 && gpsti_a32_load(&may_read) == 0; ms++)
        gpsti_sleep_ns(1000000);
    return GPST_OK;
}

/* One more, which a busy stream has still to read: until then it is in flight. */
static void release_late(gpst_pipeline* pipeline, gpst_memory* memory, gpst_stream* read, lender* self) {
    static uint8_t got[DEVICE_BYTES];
    static const gpst_kernel kernel = {"wait", wait_to_read, NULL};
    const bool waits = strcmp(self->owner->backend, "sim") == 0; /* no kernel of a GPU waits for the host */
    gpst_input input = GPST_ZERO;
    const gpst_item* item = NULL;
    input.frame = gray(16, 8, gpst_memory_data(memory));
    input.frame_on_device = true;
    input.release = lent_back;
    input.release_user_data = self;
    gpsti_a32_store(&may_read, 0);
    assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
    for (int n = 0; n < 200; n++)
        assert_int_equal(gpst_copy(got, item->sets[1].pictures[0].data, DEVICE_BYTES, read), GPST_OK);
    if (waits)
        assert_int_equal(gpst_kernel_enqueue(&kernel, NULL, 0, read), GPST_OK);
    assert_int_equal(gpst_pipeline_release_after(pipeline, item, read), GPST_OK);
    assert_true(!waits || gpst_pipeline_drain(pipeline, 0) == GPST_ERROR_WOULD_BLOCK);
    gpsti_a32_store(&may_read, 1);
}

/* A frame made on the device by a stream of the user's, and what becomes of it read there by another. */
static void run_on_the_device(kit* owner, gpst_device* device, gpst_memory* memory, gpst_stage_desc* stages) {
    lender self = {owner, GPST_ZERO};
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stream *load = NULL, *read = NULL;
    gpst_event* ready = NULL;
    gpst_stats stats;
    uint8_t pixels[DEVICE_BYTES], got[DEVICE_BYTES];
    assert_int_equal(gpst_stream_create(device, &load), GPST_OK);
    assert_int_equal(gpst_stream_create(device, &read), GPST_OK);
    assert_int_equal(gpst_event_create(device, &ready), GPST_OK);
    desc.n_results = 2;
    desc.results[0] = gpst_result_of(1, GPST_ON_DEVICE);
    desc.results[1] = gpst_result_of(2, GPST_ON_HOST);
    desc.capacity[1] = 1;
    gpst_pipeline* const pipeline = lending(owner, stages, 2, &desc);
    for (uint32_t n = 0; n < 6; n++) {
        gpst_input input = GPST_ZERO;
        const gpst_item* item = NULL;
        for (uint32_t i = 0; i < DEVICE_BYTES; i++)
            pixels[i] = (uint8_t)(i * 5 + n);
        assert_int_equal(gpst_copy(gpst_memory_data(memory), pixels, DEVICE_BYTES, load), GPST_OK);
        assert_int_equal(gpst_event_record(ready, load), GPST_OK);
        input.frame = gray(16, 8, gpst_memory_data(memory));
        input.frame_on_device = true;
        input.ready = ready;
        input.release = lent_back;
        input.release_user_data = &self;
        assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
        assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
        if (item->result != GPST_OK)
            fail_msg("%s: %s", item->stage, item->reason);
        assert_int_equal(item->sets[1].on_device, kit_has_own_memory(owner));
        assert_int_equal(item->sets[2].on_device, false);
        assert_int_equal(gpst_copy(got, item->sets[1].pictures[0].data, DEVICE_BYTES, read), GPST_OK);
        for (uint32_t i = 0; i < DEVICE_BYTES; i++)
            assert_int_equal(((const uint8_t*)item->sets[2].pictures[0].data)[i], (uint8_t)(pixels[i] ^ 9));
        assert_int_equal(gpst_pipeline_release_after(pipeline, item, read), GPST_OK);
        assert_int_equal(gpst_stream_synchronize(read), GPST_OK);
        for (uint32_t i = 0; i < DEVICE_BYTES; i++)
            assert_int_equal(got[i], (uint8_t)(pixels[i] + 7));
    }
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(stats.bytes_h2d, 0);
    assert_int_equal(stats.bytes_d2h, kit_has_own_memory(owner) ? 6 * DEVICE_BYTES : 0); /* for the HOST stage */
    release_late(pipeline, memory, read, &self);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK); /* waits for the stream */
    assert_int_equal(gpsti_a32_load(&self.n_back), 7);
    gpst_event_destroy(ready);
    gpst_stream_destroy(load);
    gpst_stream_destroy(read);
}

static gpst_result xor_frame(void* user_data, gpst_task* task) {
    const gpst_image* const from = &task->item->sets[0].pictures[0];
    gpst_image to;
    (void)user_data;
    GPSTI_TRY(gpst_task_set_picture(task, 2, 0, from, &to));
    for (uint32_t i = 0; i < DEVICE_BYTES; i++)
        ((uint8_t*)to.data)[i] = (uint8_t)(((const uint8_t*)from->data)[i] ^ 9);
    return GPST_OK;
}

static void test_frames_of_the_device(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:kernel_us=300"};
    for (int b = 0; b < 3; b++) {
        kit* const owner = kit_open(backends[b], 2);
        gpst_device* const device = gpst_context_device(owner->context);
        gpst_memory* memory = NULL;
        gpst_stage_desc stages[2];
        gpst_stage_device(&stages[0], GPST_SET(0), GPST_SET(1), add_seven, NULL);
        gpst_stage_host(&stages[1], GPST_SET(0), GPST_SET(2), xor_frame, NULL);
        assert_int_equal(gpst_memory_create(device, GPST_MEMORY_DEVICE, DEVICE_BYTES, &memory), GPST_OK);
        run_on_the_device(owner, device, memory, stages);
        gpst_memory_destroy(memory);
        kit_close(owner);
    }
}

static gpst_result see_part(void* user_data, gpst_task* task) {
    const gpst_image* const frame = &task->item->sets[0].pictures[task->picture_index];
    gpst_image to;
    GPSTI_TRY(gpst_task_set_picture(task, 1, task->picture_index, frame, &to));
    kit_check((kit*)user_data, frame->data != NULL);
    if (frame->data)
        memcpy(to.data, frame->data, DEVICE_BYTES);
    return GPST_OK;
}

/* One frame of the device through the stages; what went up over the link. */
static uint64_t run_one_of_the_device(kit* owner, gpst_stage_desc* stages, uint32_t n_stages, uint8_t* got) {
    lender self = {owner, GPST_ZERO};
    gpst_device* const device = gpst_context_device(owner->context);
    gpst_memory* memory = NULL;
    gpst_stream* stream = NULL;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    const gpst_item* item = NULL;
    gpst_stats stats;
    uint8_t pixels[DEVICE_BYTES];
    for (uint32_t i = 0; i < DEVICE_BYTES; i++)
        pixels[i] = (uint8_t)(i * 3 + 1);
    assert_int_equal(gpst_memory_create(device, GPST_MEMORY_DEVICE, DEVICE_BYTES, &memory), GPST_OK);
    assert_int_equal(gpst_stream_create(device, &stream), GPST_OK);
    assert_int_equal(gpst_copy(gpst_memory_data(memory), pixels, DEVICE_BYTES, stream), GPST_OK);
    assert_int_equal(gpst_stream_synchronize(stream), GPST_OK);
    gpst_pipeline* const pipeline = lending(owner, stages, n_stages, &desc);
    input.frame = gray(16, 8, gpst_memory_data(memory));
    input.frame_on_device = true;
    input.release = lent_back;
    input.release_user_data = &self;
    assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
    assert_int_equal(item->result, GPST_OK);
    memcpy(got, item->sets[1].pictures[0].data, DEVICE_BYTES);
    gpst_pipeline_release(pipeline, item);
    gpst_pipeline_query_stats(pipeline, &stats);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    assert_int_equal(gpsti_a32_load(&self.n_back), 1);
    gpst_stream_destroy(stream);
    gpst_memory_destroy(memory);
    for (uint32_t i = 0; i < DEVICE_BYTES; i++)
        assert_int_equal(got[i], pixels[i]);
    return stats.bytes_h2d;
}

/* A frame that the device has is fetched for a per_picture stage, and never read back over the link. */
static void test_a_frame_of_the_device_is_near(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim", "sim:mapped=1"};
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    warp_desc.map = GPST_MAP_ROI; /* the whole frame as it is */
    const gpst_roi whole = {0, 0, 16, 8};
    warp_desc.rois = &whole;
    warp_desc.n_rois = 1;
    warp_desc.width = 16;
    warp_desc.height = 8;
    warp_desc.format = GPST_FORMAT_GRAY;
    assert_int_equal(gpst_warp_create(&warp_desc, &warp), GPST_OK);
    for (int b = 0; b < 3; b++) {
        kit* const owner = kit_open(backends[b], 2);
        gpst_stage_desc stages[2];
        uint8_t got[DEVICE_BYTES];
        gpst_stage_host(&stages[0], GPST_SET(0), GPST_SET(1), see_part, owner);
        stages[0].per_picture = true;
        assert_int_equal(run_one_of_the_device(owner, stages, 1, got), 0);
        gpst_stage_host(&stages[0], GPST_SET(0), 0, kit_nothing, owner);
        gpst_stage_warp(&stages[1], 0, 1, warp);
        assert_int_equal(run_one_of_the_device(owner, stages, 2, got), 0);
        kit_close(owner);
    }
    gpst_warp_destroy(warp);
}

enum { SMALL_BYTES = 1 << 20, LARGE_BYTES = 1 << 23 };

/* A picture that is asked for again, larger, while a kernel writes to the smaller one. */
static gpst_result ask_again(void* user_data, gpst_task* task) {
    const gpst_image small = gray(1024, SMALL_BYTES / 1024, NULL), large = gray(1024, LARGE_BYTES / 1024, NULL);
    gpst_image frame, to;
    (void)user_data;
    GPSTI_TRY(gpst_task_pictures(task, 0, &frame, 1));
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &small, &to));
    GPSTI_TRY(enqueue_add(task, &frame, &to, SMALL_BYTES));
    GPSTI_TRY(gpst_task_set_picture(task, 1, 0, &large, &to));
    return enqueue_add(task, &frame, &to, LARGE_BYTES);
}

static gpst_result again_sink(void* user_data, const gpst_item* item) {
    const uint8_t* const data = (const uint8_t*)item->sets[1].pictures[0].data;
    kit_check((kit*)user_data, item->result == GPST_OK && item->sets[1].pictures[0].height == LARGE_BYTES / 1024);
    for (uint32_t i = 0; item->result == GPST_OK && i < LARGE_BYTES; i += 4097)
        kit_check((kit*)user_data, data[i] == (uint8_t)(i / 4097 + 7));
    return GPST_OK;
}

static gpst_result large_source(void* user_data, uint64_t index, gpst_input* out) {
    out->frame = gray(1024, LARGE_BYTES / 1024, user_data);
    return index < 4 ? GPST_OK : GPST_END;
}

static void test_a_device_picture_is_asked_for_again(void** state) {
    (void)state;
    static const char* const backends[] = {"cpu", "sim:kernel_us=5000"};
    uint8_t* const pixels = (uint8_t*)calloc(LARGE_BYTES, 1);
    for (uint32_t i = 0; i < LARGE_BYTES; i += 4097)
        pixels[i] = (uint8_t)(i / 4097);
    for (int b = 0; b < 2; b++) {
        kit* const owner = kit_open(backends[b], 2);
        gpst_stage_desc stage;
        gpst_pipeline_desc desc = GPST_ZERO;
        gpst_context_desc context = GPST_ZERO;
        context.backend = backends[b];
        context.n_workers = 2;
        context.max_kept_bytes = 1; /* what is given back goes to the device at once */
        kit_reopen(owner, &context);
        gpst_stage_device(&stage, GPST_SET(0), GPST_SET(1), ask_again, NULL);
        desc.source = large_source;
        desc.source_user_data = pixels;
        desc.sink = again_sink;
        desc.sink_user_data = owner;
        gpst_pipeline* const pipeline = lending(owner, &stage, 1, &desc);
        assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
        kit_close(owner);
    }
    free(pixels);
}

/* ---- memory that others have ----------------------------------------------------------------------------- */

typedef struct short_run {
    gpsti_a32 n_served[2], n_released[2];
    gpst_result ends[2];
    uint8_t pixels[2][16 * 16];
} short_run;

static short_run the_short;

static void release_short(void* user_data) {
    gpsti_a32_add((gpsti_a32*)user_data, 1);
}

static gpst_result short_source(void* user_data, uint64_t index, gpst_input* out) {
    short_run* const self = (short_run*)user_data;
    if (index == 2)
        return GPST_END;
    out->frame = kit_shape(16, 16);
    out->frame.data = self->pixels[index];
    out->release = release_short;
    out->release_user_data = &self->n_released[index];
    return GPST_OK;
}

/* Each asks for more than a half of what there is. */
static gpst_result short_stage(void* user_data, gpst_task* task) {
    short_run* const self = (short_run*)user_data;
    const gpst_image shape = kit_shape(8000, 9000);
    gpst_image image;
    gpsti_a32_add(&self->n_served[task->item->index], 1);
    if (task->item->sets[0].n != 1)
        return gpst_task_fail(task, GPST_ERROR_STATE, "the frame is gone");
    if (task->item->index == 0)
        gpsti_sleep_ns(5000000); /* item 1 asks first, as a rule */
    return gpst_task_set_picture(task, 1, 0, &shape, &image);
}

static gpst_result short_sink(void* user_data, const gpst_item* item) {
    ((short_run*)user_data)->ends[item->index] = item->result;
    return GPST_OK;
}

/* What the oldest item may need is left to it: the younger one waits inside of its call, and no function is called
   twice. */
static void test_the_oldest_is_first(void** state) {
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_context* context = NULL;
    gpst_pipeline* pipeline = NULL;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stage;
    (void)state;
    memset(&the_short, 0, sizeof the_short);
    context_desc.backend = "cpu";
    context_desc.n_workers = 2;
    context_desc.max_host_bytes = (uint64_t)135 << 20;
    assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
    gpst_stage_host(&stage, GPST_SET(0), GPST_SET(1), short_stage, &the_short);
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.source = short_source;
    desc.source_user_data = desc.sink_user_data = &the_short;
    desc.sink = short_sink;
    desc.mode = GPST_RUN_ENGINE;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_run(pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    gpst_context_destroy(context);
    assert_int_equal(gpsti_a32_load(&the_short.n_served[0]), 1);
    assert_int_equal(gpsti_a32_load(&the_short.n_served[1]), 1);
    assert_int_equal(the_short.ends[0], GPST_OK);
    assert_int_equal(the_short.ends[1], GPST_OK);
    assert_int_equal(gpsti_a32_load(&the_short.n_released[0]), 1);
    assert_int_equal(gpsti_a32_load(&the_short.n_released[1]), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lent_frames_come_back),
        cmocka_unit_test(test_destroy_gives_back),
        cmocka_unit_test(test_a_frame_is_no_result),
        cmocka_unit_test(test_lent_frames_in_tight_memory),
        cmocka_unit_test(test_sources_lend),
        cmocka_unit_test(test_dropped_frames_come_back),
        cmocka_unit_test(test_the_oldest_is_first),
        cmocka_unit_test(test_frames_of_the_device),
        cmocka_unit_test(test_a_frame_of_the_device_is_near),
        cmocka_unit_test(test_a_device_picture_is_asked_for_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
