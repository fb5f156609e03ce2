/* tests/test_pipeline_memory.c -- what a run on a device holds: where there is too little for all of its slots, and
   after many items. */
#include "pipeline_kit.h"

/* ---- too little -------------------------------------------------------------------------- */

/* Device memory for one slot of several: it has it all, though each asks for it in four pieces, and the items of the
   others wait, or are done on the CPU, tuned or not. One slot alone has room. */
static void test_memory_for_one_slot(void** state) {
    (void)state;
    static const char* const backends[] = {"sim:oom_mb=0.018", "sim:oom_mb=0.018,fail_alloc=3", "sim:oom_mb=0.018"};
    for (int b = 0; b < 3; b++) {
        kit* const self = kit_open(backends[b], 3); /* 18874 bytes; an item has four pictures of a page */
        gpst_pipeline_desc desc = kit_standard(self, 120);
        gpst_stats stats;
        const bool tuned = b == 2;
        desc.mode = tuned ? GPST_RUN_DEFAULT : GPST_RUN_ENGINE;
        desc.n_items_expected = 120;
        self->decode_ns = 300000;
        self->sink_ns = 100000;
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(self->n_ok, 120);
        assert_true(stats.bytes_h2d > 0); /* the one slot's */
        assert_true(kit_why_not(&stats, "device_memory")[0] || tuned);
        assert_true(stats.device_fallbacks < 120);
        const char* const why = kit_is_on_gpu(self) ? "over oom_mb" : "out of simulated memory";
        if (kit_why_not(&stats, "device_memory")[0] && b != 1)
            assert_non_null(strstr(kit_why_not(&stats, "device_memory"), why));
        kit_check_files(self);
        desc.n_slots = 1;
        desc.mode = GPST_RUN_ENGINE;
        kit_remove_files(self, "out_");
        assert_int_equal(kit_run(self, &desc, &stats), GPST_OK);
        assert_int_equal(stats.device_fallbacks, 0);
        kit_check_files(self);
        kit_close(self);
    }
}

/* ---- many items ---------------------------------------------------------------------------------------------- */

#define MANY_SIDE 96u /* at most */
#define MANY_BYTES (16u * 16u * 3u)
#define MANY_SLOTS 8u
#define MANY_SLOT_BYTES 131072u /* more than one buffer of each size that an item's pictures may need, 1 to 7 pages */

static gpst_image many_shape(uint32_t width, uint32_t height) {
    gpst_image shape = kit_shape(width, height);
    shape.format = GPST_FORMAT_RGB;
    return shape;
}

typedef struct held_memory {
    uint64_t device_bytes, frame_bytes, other_bytes, resident_bytes;
} held_memory;

typedef struct many {
    kit* owner;
    const gpst_warp* warp;
    uint64_t random, n_items, n_done;
    held_memory half_way;
} many;

static held_memory what_is_held(gpst_context* context) {
    held_memory held;
    gpst_context_info info;
    gpst_context_query_info(context, &info);
    held.device_bytes = gpsti_a64_load(&context->device_bytes);
    held.frame_bytes = gpsti_a64_load(&context->host_bytes);
    held.other_bytes = info.live_bytes;
    held.resident_bytes = test_resident_bytes();
    return held;
}

static gpst_result many_source(void* user_data, uint64_t index, gpst_input* out) {
    static uint8_t pixels[MANY_SIDE * MANY_SIDE * 3];
    many* const self = (many*)user_data;
    const uint64_t random = test_random(&self->random);
    pixels[random % sizeof pixels] = (uint8_t)(random >> 56); /* it is copied before the next one */
    out->frame = many_shape(1 + (uint32_t)(random >> 16) % MANY_SIDE, 1 + (uint32_t)(random >> 32) % MANY_SIDE);
    out->frame.data = pixels;
    return index < self->n_items ? GPST_OK : GPST_END;
}

/* Now and then an item is computed again. */
static gpst_result many_sink(void* user_data, const gpst_item* item) {
    many* const self = (many*)user_data;
    uint8_t wanted[MANY_BYTES];
    gpst_image output = many_shape(16, 16);
    kit_check(self->owner, item->result == GPST_OK && item->index == self->n_done);
    if (item->index % 251 == 0 && item->result == GPST_OK) {
        output.data = wanted;
        kit_check(self->owner, gpst_warp_run(self->warp, &item->sets[0].pictures[0], &output, 1, 1) == GPST_OK);
        kit_check(self->owner, memcmp(item->sets[1].pictures[0].data, wanted, MANY_BYTES) == 0);
    }
    if (++self->n_done == self->n_items / 2)
        self->half_way = what_is_held(self->owner->context);
    return GPST_OK;
}

static gpst_result look_only(void* user_data, gpst_task* task) {
    (void)user_data;
    (void)task;
    return GPST_OK;
}

static bool a_tool_is_watching(void) {
    return getenv("GPST_NO_TRAP") != NULL || !strstr(gpst_build_info(), "sanitizer: none");
}

/* 30 us an item on a GPU. */
static uint64_t many_items(const kit* self) { return kit_is_on_gpu(self) && !a_tool_is_watching() ? 100000 : 6000; }

static gpst_pipeline_desc many_desc(kit* self, many* books, const gpst_warp* warp, uint32_t copied) {
    memset(books, 0, sizeof *books);
    books->owner = self;
    books->warp = warp;
    books->random = test_seed(11);
    books->n_items = copied ? many_items(self) / 5 : many_items(self);
    self->stages[0] = kit_stage(self, GPST_STAGE_WARP, NULL, NULL);
    self->stages[0].warp = warp;
    self->stages[1] = kit_stage(self, GPST_STAGE_DEVICE, look_only, "own");
    self->stages[1].reads = GPST_SET(1);
    self->n_stages = 1 + copied;
    gpst_pipeline_desc desc = kit_desc(self);
    desc.source = many_source, desc.sink = many_sink;
    desc.source_user_data = desc.sink_user_data = books;
    desc.capacity[1] = 0; /* the warp's */
    desc.n_results = 2;
    desc.results[0] = gpst_result_of(0, GPST_AS_IT_IS);
    desc.results[1] = gpst_result_of(1, GPST_ON_HOST);
    desc.batch = copied ? 1 : 3;
    desc.n_slots = MANY_SLOTS;
    return desc;
}

/* Random sizes, over the link and (with a stage of the user's own behind the warp) by copies: what is held is what the
   slots need, however many items there were. */
static void test_many_items_need_no_more_memory(void** state) {
    (void)state;
    gpst_warp_desc warp_desc = GPST_ZERO;
    gpst_warp* warp = NULL;
    warp_desc.map = GPST_MAP_RESIZE;
    warp_desc.width = warp_desc.height = 16;
    warp_desc.format = GPST_FORMAT_RGB;
    assert_int_equal(gpst_warp_create(&warp_desc, &warp), GPST_OK);
    for (uint32_t copied = 0; copied < 2; copied++) {
        kit* const self = kit_open("sim", 2);
        many books;
        gpst_stats stats;
        const gpst_pipeline_desc desc = many_desc(self, &books, warp, copied);
        const held_memory before = what_is_held(self->context);
        assert_int_equal(gpst_pipeline_create(self->context, &desc, &self->pipeline), GPST_OK);
        assert_int_equal(gpst_pipeline_run(self->pipeline), GPST_OK);
        gpst_pipeline_query_stats(self->pipeline, &stats);
        const held_memory end = what_is_held(self->context), half_way = books.half_way;
        assert_int_equal(stats.items_ok, books.n_items);
        assert_int_equal(stats.device_fallbacks, 0);
        printf("%u items: %u bytes of frames, %u of the device; %u KiB more resident since half of them\n",
               (unsigned)books.n_items, (unsigned)end.frame_bytes, (unsigned)end.device_bytes,
               (unsigned)(end.resident_bytes > half_way.resident_bytes
                              ? (end.resident_bytes - half_way.resident_bytes) / 1024
                              : 0));
        assert_true(end.device_bytes <= MANY_SLOTS * MANY_SLOT_BYTES);
        assert_true(end.frame_bytes <= MANY_SLOTS * MANY_SLOT_BYTES);
        assert_true(end.other_bytes <= half_way.other_bytes + MANY_SLOTS * MANY_SLOT_BYTES);
        if (!a_tool_is_watching()) /* which keeps memory that was freed, and notes of each launch */
            assert_true(end.resident_bytes <= half_way.resident_bytes + 32 * books.n_items + MANY_SLOTS * 65536u);
        assert_int_equal(gpst_pipeline_destroy(self->pipeline), GPST_OK);
        gpst_context_trim(self->context);
        assert_int_equal(what_is_held(self->context).device_bytes, before.device_bytes);
        assert_int_equal(what_is_held(self->context).frame_bytes, before.frame_bytes);
        assert_int_equal(what_is_held(self->context).other_bytes, before.other_bytes);
        kit_close(self);
    }
    gpst_warp_destroy(warp);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_memory_for_one_slot),
                                       cmocka_unit_test(test_many_items_need_no_more_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
