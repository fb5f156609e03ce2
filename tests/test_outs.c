/* tests/test_outs.c -- what is handed out through a pointer is none when the call fails, whatever fails: every create
   with each argument wrong in turn and the allocator refusing each of its calls, every function that lends something. */
#include "test_allocator.h"

#if !defined(GPST_TEST_AMALGAM)
#include "../core/prefetch/prefetch.h"
#include "../kernels/quantise/quantise.h"
#endif

typedef enum wrong {
    WRONG_NOTHING,
    WRONG_VERSION,
    WRONG_SIZE,
    WRONG_CONTEXT,
    WRONG_DESC,
    WRONG_CANARY,
    WRONG_MEMBER
} wrong;

static test_memory memory;
static test_log messages;
static gpst_context* context;
static char poison;

/* One call of a create with `what` wrong; *out as the function leaves it. OK: it doesn't mind. */
typedef gpst_result (*creator)(wrong what, void** out);

#define CREATE_ARGUMENTS(type) \
    what == WRONG_VERSION ? GPST_VERSION + 1 : GPST_VERSION, sizeof(type) - (what == WRONG_SIZE)

static gpst_result create_context(wrong what, void** out) {
    gpst_context_desc desc = GPST_ZERO;
    gpst_context* made = (gpst_context*)(void*)&poison;
    desc.allocator.alloc = test_memory_alloc, desc.allocator.free = test_memory_free;
    desc.allocator.user_data = &memory;
    desc.logger = test_log_hooks(&messages);
    desc.n_workers = 1;
    desc.backend = what == WRONG_MEMBER ? "none such" : "cpu";
    desc.end_canary = what == WRONG_CANARY;
    const gpst_result result =
        gpst_context_create_versioned(CREATE_ARGUMENTS(gpst_context_desc), what == WRONG_DESC ? NULL : &desc, &made);
    *out = made;
    if (result == GPST_OK)
        gpst_context_destroy(made);
    return result;
}

static gpst_result create_pool(wrong what, void** out) {
    gpst_pool_desc desc = GPST_ZERO;
    gpst_pool* made = (gpst_pool*)(void*)&poison;
    desc.end_canary = what == WRONG_CANARY;
    desc.huge_pages = what == WRONG_MEMBER ? (gpst_huge_pages)99 : GPST_HUGE_PAGES_DEFAULT;
    const gpst_result result =
        gpst_pool_create_versioned(CREATE_ARGUMENTS(gpst_pool_desc), what == WRONG_CONTEXT ? NULL : context,
                                   what == WRONG_DESC ? NULL : &desc, &made);
    *out = made;
    if (result == GPST_OK)
        assert_int_equal(gpst_pool_destroy(made), GPST_OK);
    return result;
}

static gpst_result create_ring(wrong what, void** out) {
    gpst_ring_desc desc = GPST_ZERO;
    gpst_ring* made = (gpst_ring*)(void*)&poison;
    desc.max_slots = what == WRONG_MEMBER ? 0 : 4;
    desc.slot_bytes = 64;
    desc.end_canary = what == WRONG_CANARY;
    const gpst_result result =
        gpst_ring_create_versioned(CREATE_ARGUMENTS(gpst_ring_desc), what == WRONG_CONTEXT ? NULL : context,
                                   what == WRONG_DESC ? NULL : &desc, &made);
    *out = made;
    if (result == GPST_OK)
        gpst_ring_destroy(made);
    return result;
}

static gpst_result create_reader(wrong what, void** out) {
    gpst_reader_desc desc = GPST_ZERO;
    gpst_reader* made = (gpst_reader*)(void*)&poison;
    desc.kind = what == WRONG_MEMBER ? "none such" : "pread";
    desc.end_canary = what == WRONG_CANARY;
    const gpst_result result =
        gpst_reader_create_versioned(CREATE_ARGUMENTS(gpst_reader_desc), what == WRONG_CONTEXT ? NULL : context,
                                     what == WRONG_DESC ? NULL : &desc, &made);
    *out = made;
    if (result == GPST_OK)
        gpst_reader_destroy(made);
    return result;
}

static gpst_result create_prefetch(wrong what, void** out) {
    static const char* const paths[] = {"none"};
    gpst_prefetch_desc desc = GPST_ZERO;
    gpst_prefetch* made = (gpst_prefetch*)(void*)&poison;
    desc.paths = paths;
    desc.n_paths = what == WRONG_MEMBER ? 0 : 1;
    desc.end_canary = what == WRONG_CANARY;
    const gpst_result result =
        gpst_prefetch_create_versioned(CREATE_ARGUMENTS(gpst_prefetch_desc), what == WRONG_CONTEXT ? NULL : context,
                                       what == WRONG_DESC ? NULL : &desc, &made);
    *out = made;
    if (result == GPST_OK)
        gpst_prefetch_destroy(made);
    return result;
}

static gpst_result nothing(void* user_data, gpst_task* task) {
    (void)user_data, (void)task;
    return GPST_OK;
}

static gpst_result create_pipeline(wrong what, void** out) {
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    gpst_pipeline* made = (gpst_pipeline*)(void*)&poison;
    stage.kind = what == WRONG_MEMBER ? GPST_STAGE_INVALID : GPST_STAGE_HOST;
    stage.func = nothing;
    desc.stages = &stage;
    desc.n_stages = 1;
    desc.end_canary = what == WRONG_CANARY;
    const gpst_result result =
        gpst_pipeline_create_versioned(CREATE_ARGUMENTS(gpst_pipeline_desc), what == WRONG_CONTEXT ? NULL : context,
                                       what == WRONG_DESC ? NULL : &desc, &made);
    *out = made;
    if (result == GPST_OK)
        assert_int_equal(gpst_pipeline_destroy(made), GPST_OK);
    return result;
}

static gpst_result create_warp(wrong what, void** out) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_warp* made = (gpst_warp*)(void*)&poison;
    gpst_allocator hooks = GPST_ZERO;
    hooks.alloc = test_memory_alloc, hooks.free = test_memory_free, hooks.user_data = &memory;
    desc.map = what == WRONG_MEMBER ? (gpst_map)99 : GPST_MAP_RESIZE;
    desc.width = desc.height = 4;
    desc.format = GPST_FORMAT_GRAY;
    desc.end_canary = what == WRONG_CANARY;
    const gpst_result result = gpst_warp_create_versioned(
        CREATE_ARGUMENTS(gpst_warp_desc), what == WRONG_DESC ? NULL : &desc, &hooks, &made);
    *out = made;
    if (result == GPST_OK)
        gpst_warp_destroy(made);
    return result;
}

static gpst_result create_calibration(wrong what, void** out) {
    gpst_calibration_desc desc = GPST_ZERO;
    gpst_calibration* made = (gpst_calibration*)(void*)&poison;
    gpst_allocator hooks = GPST_ZERO;
    hooks.alloc = test_memory_alloc, hooks.free = test_memory_free, hooks.user_data = &memory;
    desc.end_canary = what == WRONG_CANARY;
    const gpst_result result = gpst_calibration_create_versioned(
        CREATE_ARGUMENTS(gpst_calibration_desc), what == WRONG_DESC ? NULL : &desc, &hooks, &made);
    *out = made;
    if (result == GPST_OK)
        gpst_calibration_destroy(made);
    return result;
}

typedef struct create_case {
    const char* name;
    creator create;
    unsigned minds; /* bits of what must fail */
} create_case;

#define BIT(what) (1u << (unsigned)(what))
#define MINDS_ALWAYS (BIT(WRONG_VERSION) | BIT(WRONG_SIZE) | BIT(WRONG_CANARY))

static const create_case creates[] = {
    {"context", create_context, MINDS_ALWAYS | BIT(WRONG_MEMBER)},
    {"pool", create_pool, MINDS_ALWAYS | BIT(WRONG_CONTEXT) | BIT(WRONG_MEMBER)},
    {"ring", create_ring, MINDS_ALWAYS | BIT(WRONG_CONTEXT) | BIT(WRONG_DESC) | BIT(WRONG_MEMBER)},
    {"reader", create_reader, MINDS_ALWAYS | BIT(WRONG_CONTEXT) | BIT(WRONG_MEMBER)},
    {"prefetch", create_prefetch, MINDS_ALWAYS | BIT(WRONG_CONTEXT) | BIT(WRONG_DESC) | BIT(WRONG_MEMBER)},
    {"pipeline", create_pipeline, MINDS_ALWAYS | BIT(WRONG_CONTEXT) | BIT(WRONG_DESC) | BIT(WRONG_MEMBER)},
    {"warp", create_warp, MINDS_ALWAYS | BIT(WRONG_DESC) | BIT(WRONG_MEMBER)},
    {"calibration", create_calibration, MINDS_ALWAYS | BIT(WRONG_DESC)},
};
#define N_CREATES (sizeof creates / sizeof creates[0])

static void test_creates_with_a_wrong_argument(void** state) {
    (void)state;
    int n_wrong = 0;
    for (size_t c = 0; c < N_CREATES; c++) {
        for (int what = WRONG_NOTHING; what <= WRONG_MEMBER; what++) {
            void* out = &poison;
            const gpst_result result = creates[c].create((wrong)what, &out);
            const bool must_fail = (creates[c].minds & BIT(what)) != 0;
            if (must_fail ? !GPST_FAILED(result) || out != NULL : GPST_FAILED(result) && out != NULL) {
                printf("%s, argument %d: %s, out %s\n", creates[c].name, what, gpst_result_name(result),
                       out == &poison ? "untouched" : out ? "set" : "NULL");
                n_wrong++;
            }
        }
    }
    assert_int_equal(n_wrong, 0);
}

static void test_creates_without_memory(void** state) {
    (void)state;
    for (size_t c = 0; c < N_CREATES; c++) {
        gpst_result result = GPST_ERROR_MEMORY;
        uint64_t n = 0;
        while (GPST_FAILED(result) && n < 1000) {
            void* out = &poison;
            test_memory_refuse(&memory, ++n);
            result = creates[c].create(WRONG_NOTHING, &out);
            const bool refused = test_memory_refused(&memory);
            test_memory_relent(&memory);
            if (GPST_FAILED(result)) {
                assert_true(refused);
                assert_null(out);
            }
        }
        assert_int_equal(result, GPST_OK);
        assert_true(n > 1); /* at least the object itself was refused once */
    }
}

/* ---- what is lent ------------------------------------------------------------------------------- */

static void test_loans(void** state) {
    (void)state;
    gpst_pool_desc pool_desc = GPST_ZERO;
    gpst_pool* pool = NULL;
    gpst_buffer buffer;
    pool_desc.max_bytes = 4096;
    assert_int_equal(gpst_pool_create(context, &pool_desc, &pool), GPST_OK);
    for (int i = 0; i < 3; i++) {
        static const size_t wanted[] = {1, 0, 1 << 20};
        memset(&buffer, 0xA5, sizeof buffer);
        assert_true(GPST_FAILED(gpst_pool_acquire(i == 0 ? NULL : pool, wanted[i], 0, &buffer)));
        assert_null(buffer.data);
        assert_int_equal(buffer.bytes, 0);
        assert_int_equal(buffer.id, 0);
    }
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);

    gpst_ring_desc ring_desc = GPST_ZERO;
    gpst_ring* ring = NULL;
    gpst_ring_slot slot;
    ring_desc.max_slots = 1;
    ring_desc.slot_bytes = 8;
    assert_int_equal(gpst_ring_create(context, &ring_desc, &ring), GPST_OK);
    memset(&slot, 0xA5, sizeof slot);
    assert_true(GPST_FAILED(gpst_ring_acquire(NULL, 0, &slot)));
    assert_true(slot.data == NULL && slot.id == 0);
    for (int i = 0; i < 2; i++) {
        memset(&slot, 0xA5, sizeof slot);
        assert_true(GPST_FAILED(gpst_ring_take(i == 0 ? NULL : ring, 0, &slot)));
        assert_true(slot.data == NULL && slot.id == 0);
        memset(&slot, 0xA5, sizeof slot);
        assert_true(GPST_FAILED(gpst_ring_take_on(i == 0 ? NULL : ring, 0, NULL, &slot)));
        assert_true(slot.data == NULL && slot.id == 0);
    }
    memset(&slot, 0xA5, sizeof slot);
    assert_true(GPST_FAILED(gpst_ring_acquire_on(NULL, 0, NULL, &slot)));
    assert_true(slot.data == NULL && slot.id == 0);
    memset(&slot, 0xA5, sizeof slot);
    assert_true(GPST_FAILED(gpst_ring_reader_take(NULL, 0, NULL, &slot)));
    assert_true(slot.data == NULL && slot.id == 0);
    gpst_ring_reader* reader = (gpst_ring_reader*)(void*)&slot;
    assert_true(GPST_FAILED(gpst_ring_reader_create(ring, &reader))); /* made without desc.max_readers */
    assert_null(reader);
    gpst_ring_destroy(ring);

    static const char* const paths[] = {"/none/such"};
    gpst_prefetch_desc prefetch_desc = GPST_ZERO;
    gpst_prefetch* prefetch = NULL;
    prefetch_desc.paths = paths;
    prefetch_desc.n_paths = 1;
    assert_int_equal(gpst_prefetch_create(context, &prefetch_desc, &prefetch), GPST_OK);
    for (int i = 0; i < 3; i++) {
        const gpst_frame* frame = (const gpst_frame*)(const void*)&poison;
        assert_true(GPST_FAILED(gpst_prefetch_get(i == 0 ? NULL : prefetch, i == 1 ? 7 : 0, &frame)));
        assert_null(frame);
    }
    gpst_prefetch_destroy(prefetch);
}

static gpst_result no_source(void* user_data, uint64_t index, gpst_input* out) {
    (void)user_data, (void)index, (void)out;
    return GPST_END;
}

static void test_results(void** state) {
    (void)state;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    stage.kind = GPST_STAGE_HOST;
    stage.func = nothing;
    desc.stages = &stage;
    desc.n_stages = 1;
    for (int i = 0; i < 3; i++) {
        gpst_pipeline* pipeline = NULL;
        const gpst_item* item = (const gpst_item*)(const void*)&poison;
        desc.source = i == 2 ? no_source : NULL;
        assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
        assert_true(GPST_FAILED(gpst_pipeline_next_result(i == 0 ? NULL : pipeline, 0, &item)));
        assert_null(item);
        assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    }
}

/* ---- inside of callbacks -------------------------------------------------------------------------- */

static bool is_none(const gpst_image* image) {
    const gpst_image none = GPST_ZERO;
    return image->data == NULL && image->width == none.width && image->height == none.height &&
           image->pitch_bytes == 0 && image->format == GPST_FORMAT_INVALID;
}

static gpst_result ask_for_too_much(void* user_data, gpst_task* task) {
    unsigned* const right = (unsigned*)user_data;
    gpst_image shape = GPST_ZERO, out[4];
    void* room = &poison;
    shape.width = shape.height = 4;
    shape.format = GPST_FORMAT_GRAY;
    memset(out, 0xA5, sizeof out);
    *right += GPST_FAILED(gpst_task_map_picture(task, 0, 0, &shape, 0, &out[0])) && is_none(&out[0]);
    *right += GPST_FAILED(gpst_task_set_picture(task, 1, 9, &shape, &out[1])) && is_none(&out[1]);
    *right += GPST_FAILED(gpst_task_pictures(task, 0, &out[2], 2)) && is_none(&out[2]) && is_none(&out[3]);
    *right += GPST_FAILED(gpst_task_encoded(task, SIZE_MAX / 4, &room)) && room == NULL;
    shape.width = 0;
    memset(out, 0xA5, sizeof out);
    *right += GPST_FAILED(gpst_task_set_picture(task, 0, 0, &shape, &out[0])) && is_none(&out[0]);
    *right += GPST_FAILED(gpst_task_set_picture(task, 1, 0, &shape, &out[1])) && is_none(&out[1]);
    /* the shape itself is where it is wanted */
    shape.width = 4;
    *right += gpst_task_set_picture(task, 0, 0, &shape, &shape) == GPST_OK && shape.data != NULL && shape.width == 4;
    return GPST_OK;
}

static void test_what_tasks_ask_for(void** state) {
    (void)state;
    unsigned right = 0;
    gpst_pipeline_desc desc = GPST_ZERO;
    gpst_stage_desc stage = GPST_ZERO;
    gpst_input input = GPST_ZERO;
    gpst_pipeline* pipeline = NULL;
    const gpst_item* item = NULL;
    stage.kind = GPST_STAGE_HOST;
    stage.func = ask_for_too_much;
    stage.user_data = &right;
    desc.stages = &stage;
    desc.n_stages = 1;
    assert_int_equal(gpst_pipeline_create(context, &desc, &pipeline), GPST_OK);
    assert_int_equal(gpst_pipeline_submit(pipeline, &input, GPST_FOREVER, NULL), GPST_OK);
    assert_int_equal(gpst_pipeline_next_result(pipeline, GPST_FOREVER, &item), GPST_OK);
    assert_int_equal(item->result, GPST_OK);
    gpst_pipeline_release(pipeline, item);
    assert_int_equal(gpst_pipeline_destroy(pipeline), GPST_OK);
    assert_int_equal(right, 7);
}

static int set_up(void** state) {
    gpst_context_desc desc = GPST_ZERO;
    (void)state;
    desc.allocator = test_memory_hooks(&memory);
    desc.logger = test_log_hooks(&messages);
    desc.backend = "cpu";
    desc.n_workers = 1;
    return gpst_context_create(&desc, &context) == GPST_OK ? 0 : -1;
}

static int tear_down(void** state) {
    (void)state;
    gpst_context_destroy(context);
    test_memory_check(&memory);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_creates_with_a_wrong_argument),
        cmocka_unit_test(test_creates_without_memory),
        cmocka_unit_test(test_loans),
        cmocka_unit_test(test_results),
        cmocka_unit_test(test_what_tasks_ask_for),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
