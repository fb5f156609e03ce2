/* tests/test_prefetch.c -- frames of a list are the files', whoever asks in
   whatever order, with any cap; and the counters say what foresight was worth. */
#include "test_reader.h"
#if !defined(GPST_TEST_AMALGAM)
#include "../core/prefetch/prefetch.h"
#endif

enum { TEST_N_FRAMES = 40 };
static char test_frame_paths[TEST_N_FRAMES][TEST_PATH_BYTES];
static const char* test_frame_list[TEST_N_FRAMES];
static unsigned char* test_frame_data;

static size_t test_frame_bytes(uint64_t index) { return index == 11 ? 0 : 20000 + (size_t)index * 100; }

static void test_frames_make(void) {
    test_frame_data = test_bytes(100000, 77);
    for (size_t k = 0; k < TEST_N_FRAMES; k++) {
        char name[32];
        snprintf(name, sizeof name, "frame%02u", (unsigned)k);
        test_file_make(test_path(test_frame_paths[k], name), test_frame_data + k, test_frame_bytes(k));
        test_frame_list[k] = test_frame_paths[k];
    }
}

static gpst_prefetch_desc test_prefetch_desc(void) {
    gpst_prefetch_desc desc = GPST_ZERO;
    desc.paths = test_frame_list;
    desc.n_paths = TEST_N_FRAMES;
    desc.n_in_flight = 2;
    return desc;
}

static gpst_prefetch* test_prefetch_new(const gpst_prefetch_desc* desc) {
    gpst_prefetch* prefetch = NULL;
    assert_int_equal(gpst_prefetch_create(test_context, desc, &prefetch), GPST_OK);
    return prefetch;
}

static void test_get(gpst_prefetch* prefetch, uint64_t index) {
    const gpst_frame* frame = NULL;
    if (gpst_prefetch_get(prefetch, index, &frame) != GPST_OK)
        fail_msg("%s", gpst_last_reason());
    assert_int_equal(frame->index, index);
    assert_string_equal(frame->path, test_frame_list[index]);
    assert_int_equal(frame->bytes, test_frame_bytes(index));
    if (frame->bytes)
        assert_memory_equal(frame->data, test_frame_data + index, frame->bytes);
    gpst_prefetch_release(prefetch, frame);
}

static void test_settle(gpst_prefetch* prefetch) { /* time in which what is wanted is fetched */
    (void)prefetch;
    gpsti_sleep_ns(20000000);
}

/* ---- what comes out ---------------------------------------------------------------- */

static void a_sequence_is_there_before_it_is_asked_for(void** state) {
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    gpst_prefetch_info info;
    (void)state;
    for (uint64_t k = 0; k < TEST_N_FRAMES; k++)
        test_get(prefetch, k);
    gpst_prefetch_query_info(prefetch, &info);
    assert_string_equal(info.pattern, "sequence");
    assert_int_equal(info.asked, TEST_N_FRAMES);
    assert_int_equal(info.misses, 4);
    assert_int_equal(info.hits + info.late, 36);
    assert_int_equal(info.fetched, 36);
    assert_int_equal(info.used, 36);
    assert_int_equal(info.wasted, 0);
    for (uint64_t k = 0; k < TEST_N_FRAMES; k++) /* all are kept: nothing is read again */
        test_get(prefetch, k);
    gpst_prefetch_query_info(prefetch, &info);
    assert_int_equal(info.misses, 4);
    assert_int_equal(info.fetched, 36);
    gpst_prefetch_destroy(prefetch);
}

static void a_schedule_is_fetched_once_each(void** state) {
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    uint64_t schedule[200], order[200];
    uint64_t seed = test_seed(41);
    (void)state;
    for (int k = 0; k < 200; k++)
        schedule[k] = test_random(&seed) % TEST_N_FRAMES;
    desc.schedule = schedule;
    desc.n_schedule = 200;
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    memcpy(order, schedule, sizeof order);
    memset(schedule, 0xA5, sizeof schedule); /* it was copied */
    for (int k = 0; k < 200; k++)
        test_get(prefetch, order[k]);
    gpst_prefetch_query_info(prefetch, &info);
    assert_string_equal(info.pattern, "schedule");
    assert_true(info.misses <= 2);
    assert_true(info.fetched <= TEST_N_FRAMES);
    assert_int_equal(info.wasted, 0);
    gpst_prefetch_destroy(prefetch);
}

static void random_access_fetches_nothing(void** state) {
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    uint64_t seed = test_seed(43);
    (void)state;
    desc.max_bytes = 5 * 24000;
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    for (int k = 0; k < 500; k++)
        test_get(prefetch, test_random(&seed) % TEST_N_FRAMES);
    gpst_prefetch_query_info(prefetch, &info);
    printf("%s: %llu hits, %llu misses, %llu fetched, %llu wasted\n", info.pattern,
           (unsigned long long)info.hits, (unsigned long long)info.misses, (unsigned long long)info.fetched,
           (unsigned long long)info.wasted);
    assert_true(info.fetched < 30);
    assert_true(info.hits > 20); /* what is kept serves */
    assert_true(info.most_bytes <= desc.max_bytes + 24000);
    gpst_prefetch_destroy(prefetch);
}

static void the_cap_is_kept(void** state) {
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    const gpst_frame* held[6];
    (void)state;
    for (uint64_t cap = 1; cap < 300000; cap = cap * 5 + 20000) {
        desc.max_bytes = cap;
        gpst_prefetch* prefetch = test_prefetch_new(&desc);
        for (int round = 0; round < 2; round++)
            for (uint64_t k = 0; k < TEST_N_FRAMES; k++)
                test_get(prefetch, k);
        test_settle(prefetch);
        gpst_prefetch_query_info(prefetch, &info);
        assert_true(info.bytes <= cap);
        assert_true(info.most_bytes <= cap + 24000); /* the one asked for */
        for (uint64_t k = 0; k < 6; k++) /* what is held is not taken away */
            assert_int_equal(gpst_prefetch_get(prefetch, 3 * k, &held[k]), GPST_OK);
        for (uint64_t k = 0; k < 6; k++)
            assert_memory_equal(held[k]->data, test_frame_data + 3 * k, held[k]->bytes);
        for (uint64_t k = 0; k < 6; k++)
            gpst_prefetch_release(prefetch, held[k]);
        test_settle(prefetch);
        gpst_prefetch_query_info(prefetch, &info);
        assert_true(info.bytes <= cap);
        gpst_prefetch_destroy(prefetch);
    }
}

/* Room for three, eight wanted: what will be asked for soonest stays, and nothing is fetched only to be thrown out. */
static void foresight_does_not_evict_foresight(void** state) {
    uint64_t schedule[TEST_N_FRAMES];
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    (void)state;
    for (uint64_t k = 0; k < TEST_N_FRAMES; k++)
        schedule[k] = k;
    desc.schedule = schedule;
    desc.n_schedule = TEST_N_FRAMES;
    desc.max_bytes = 3 * 21500;
    desc.n_in_flight = 1;
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    for (uint64_t k = 0; k < 10; k++) {
        test_get(prefetch, k);
        do { /* until the next one has been begun at least */
            test_settle(prefetch);
            gpst_prefetch_query_info(prefetch, &info);
        } while (info.fetched < k + 1);
    }
    gpst_prefetch_query_info(prefetch, &info);
    assert_int_equal(info.misses, 1);
    assert_int_equal(info.hits + info.late, 9);
    assert_int_equal(info.used, 9);
    gpst_prefetch_destroy(prefetch);
}

/* The same where room comes free at any moment and reads end in any order: each frame is held for a while. What takes
   the room of what will be asked for sooner gives it back. */
static void what_is_due_sooner_gets_the_room(void** state) {
    uint64_t schedule[TEST_N_FRAMES], seed = test_seed(47);
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    (void)state;
    for (uint64_t k = 0; k < TEST_N_FRAMES; k++)
        schedule[k] = k;
    desc.schedule = schedule;
    desc.n_schedule = TEST_N_FRAMES;
    desc.max_bytes = 3 * 24000;
    desc.n_in_flight = 1;
    for (int round = 0; round < 20; round++) {
        gpst_prefetch* prefetch = test_prefetch_new(&desc);
        for (uint64_t k = 0; k < TEST_N_FRAMES; k++) {
            const gpst_frame* frame = NULL;
            assert_int_equal(gpst_prefetch_get(prefetch, k, &frame), GPST_OK);
            gpsti_sleep_ns((int64_t)(test_random(&seed) % 100000));
            gpst_prefetch_release(prefetch, frame);
        }
        gpst_prefetch_query_info(prefetch, &info);
        assert_int_equal(info.misses, 1);
        gpst_prefetch_destroy(prefetch);
    }
}

/* Frames 1 and 2 wait; one that nobody foresaw needs the room of one of them, and it is 2 that goes. */
static void the_last_due_goes_first(void** state) {
    uint64_t schedule[3] = {0, 1, 2};
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    const gpst_frame* held = NULL;
    (void)state;
    desc.schedule = schedule;
    desc.n_schedule = 3;
    desc.max_bytes = 3 * 21500;
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    assert_int_equal(gpst_prefetch_get(prefetch, 0, &held), GPST_OK);
    do {
        test_settle(prefetch);
        gpst_prefetch_query_info(prefetch, &info);
    } while (info.bytes < test_frame_bytes(0) + test_frame_bytes(1) + test_frame_bytes(2));
    test_settle(prefetch);
    test_get(prefetch, 30);
    gpst_prefetch_query_info(prefetch, &info);
    assert_int_equal(info.wasted, 1);
    test_get(prefetch, 1);
    gpst_prefetch_query_info(prefetch, &info);
    assert_int_equal(info.misses, 2);
    assert_int_equal(info.hits, 1);
    gpst_prefetch_release(prefetch, held);
    gpst_prefetch_destroy(prefetch);
}

static void an_error_is_told_at_its_item_only(void** state) {
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    const gpst_frame* frame = NULL;
    const char* list[TEST_N_FRAMES];
    char missing[TEST_PATH_BYTES];
    (void)state;
    memcpy(list, test_frame_list, sizeof list);
    list[12] = test_path(missing, "comes later");
    desc.paths = list;
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    for (uint64_t k = 0; k < TEST_N_FRAMES; k++) {
        if (k != 12) {
            test_get(prefetch, k);
            continue;
        }
        test_settle(prefetch); /* its fetching has failed by now */
        assert_int_equal(gpst_prefetch_get(prefetch, 12, &frame), GPST_ERROR_NOT_FOUND);
        assert_null(frame);
        test_reason_has("comes later", "open");
    }
    gpst_prefetch_query_info(prefetch, &info);
    assert_true(info.failed >= 1);
    test_file_make(missing, test_frame_data + 12, test_frame_bytes(12)); /* now it is there: tried again */
    assert_int_equal(gpst_prefetch_get(prefetch, 12, &frame), GPST_OK);
    assert_memory_equal(frame->data, test_frame_data + 12, test_frame_bytes(12));
    gpst_prefetch_release(prefetch, frame);
    assert_int_equal(gpst_prefetch_get(prefetch, TEST_N_FRAMES, &frame), GPST_ERROR_ARGUMENT);
    gpst_prefetch_destroy(prefetch);
}

/* ---- decoded frames ------------------------------------------------------------------- */

static gpsti_a32 test_n_decoded;

/* Each byte twice, as a tensor; of frame 7 nothing. */
static gpst_result test_decode(void* user_data, const gpst_prefetch_file* file) {
    gpst_image shape = GPST_ZERO, room;
    assert_ptr_equal(user_data, &test_n_decoded);
    assert_string_equal(file->path, test_frame_list[file->index]);
    shape.width = (uint32_t)file->bytes * 2 + 1;
    shape.height = 1;
    shape.format = GPST_FORMAT_TENSOR;
    shape.dtype = GPST_DTYPE_U8;
    shape.layout = GPST_LAYOUT_HWC;
    shape.n_channels = 1;
    const gpst_result result = gpst_prefetch_set_picture(file, &shape, &room);
    if (GPST_FAILED(result))
        return result;
    if (file->index == 7) /* the room is not to be taken for a frame */
        return GPST_ERROR_FORMAT;
    unsigned char* const data = (unsigned char*)room.data;
    for (size_t k = 0; k < file->bytes; k++)
        data[2 * k] = data[2 * k + 1] = ((const unsigned char*)file->data)[k];
    data[2 * file->bytes] = 0;
    gpsti_a32_add(&test_n_decoded, 1);
    return GPST_OK;
}

static void decoded_frames_are_kept(void** state) {
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    (void)state;
    desc.func = test_decode;
    desc.func_user_data = &test_n_decoded;
    desc.max_bytes = 8 << 20;
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    for (int round = 0; round < 3; round++)
        for (uint64_t k = 0; k < TEST_N_FRAMES; k++) {
            const gpst_frame* frame = NULL;
            const gpst_result result = gpst_prefetch_get(prefetch, k, &frame);
            assert_int_equal(result, k == 7 ? GPST_ERROR_FORMAT : GPST_OK);
            if (k == 7) {
                test_reason_has("prefetch \"", "frame07\": func: ");
                continue;
            }
            assert_int_equal(frame->bytes, 2 * test_frame_bytes(k) + 1);
            assert_int_equal(frame->picture.width, frame->bytes);
            assert_ptr_equal(frame->picture.data, frame->data);
            for (size_t i = 0; i + 1 < frame->bytes; i += 97)
                assert_int_equal(((const unsigned char*)frame->data)[i], test_frame_data[k + i / 2]);
            gpst_prefetch_release(prefetch, frame);
        }
    assert_int_equal(gpsti_a32_load(&test_n_decoded), TEST_N_FRAMES - 1); /* once each */
    gpst_prefetch_query_info(prefetch, &info);
    assert_int_equal(info.decoded, TEST_N_FRAMES - 1);
    assert_int_equal(info.kept, 2 * (TEST_N_FRAMES - 1));
    assert_int_equal(info.hits + info.late + info.misses, info.asked);
    gpst_prefetch_destroy(prefetch);
}

/* Room for the file beside the frame that is in use, but not for what it becomes: nobody makes it before it is asked
   for, and then it is made all the same. */
static void what_does_not_fit_is_not_made_ahead(void** state) {
    uint64_t schedule[2] = {0, 1};
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    const gpst_frame* held = NULL;
    const gpst_frame* frame = NULL;
    (void)state;
    desc.schedule = schedule;
    desc.n_schedule = 2;
    desc.max_bytes = 70000;
    desc.func = test_decode;
    desc.func_user_data = &test_n_decoded;
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    gpsti_a32_store(&test_n_decoded, 0);
    assert_int_equal(gpst_prefetch_get(prefetch, 0, &held), GPST_OK);
    for (int n = 0; n < 5; n++) {
        assert_int_equal(gpst_prefetch_get(prefetch, 0, &frame), GPST_OK);
        gpst_prefetch_release(prefetch, frame);
        test_settle(prefetch);
    }
    gpst_prefetch_query_info(prefetch, &info);
    assert_true(info.bytes <= desc.max_bytes);
    assert_int_equal(gpst_prefetch_get(prefetch, 1, &frame), GPST_OK);
    gpst_prefetch_query_info(prefetch, &info);
    assert_int_equal(info.bytes, 2 * (test_frame_bytes(0) + test_frame_bytes(1)) + 2); /* both are in use */
    gpst_prefetch_release(prefetch, frame);
    gpst_prefetch_release(prefetch, held);
    gpst_prefetch_query_info(prefetch, &info);
    assert_true(info.bytes <= desc.max_bytes);
    gpst_prefetch_destroy(prefetch);
}

/* ---- many at once, no memory, wrong descs ------------------------------------------------- */

typedef struct test_asker {
    gpst_prefetch* prefetch;
    uint64_t seed;
    pthread_t thread;
} test_asker;

static void* test_ask(void* arg) {
    test_asker* self = (test_asker*)arg;
    for (int k = 0; k < 300; k++)
        test_get(self->prefetch, k % 60 < 40 ? (uint64_t)(k % 60) : test_random(&self->seed) % TEST_N_FRAMES);
    return NULL;
}

static void many_ask_at_once(void** state) {
    gpst_prefetch_desc desc = test_prefetch_desc();
    gpst_prefetch_info info;
    test_asker askers[4];
    (void)state;
    desc.max_bytes = 150000;
    gpst_prefetch* prefetch = test_prefetch_new(&desc);
    for (unsigned k = 0; k < 4; k++) {
        askers[k].prefetch = prefetch;
        askers[k].seed = k;
        assert_int_equal(pthread_create(&askers[k].thread, NULL, test_ask, &askers[k]), 0);
    }
    for (unsigned k = 0; k < 4; k++)
        pthread_join(askers[k].thread, NULL);
    test_settle(prefetch);
    gpst_prefetch_query_info(prefetch, &info);
    assert_int_equal(info.asked, 1200);
    assert_int_equal(info.hits + info.late + info.misses, 1200);
    assert_true(info.bytes <= desc.max_bytes);
    assert_true(info.used + info.wasted <= info.fetched);
    gpst_prefetch_destroy(prefetch); /* with fetches under way, at times */
}

static void every_allocation_may_fail(void** state) {
    test_memory memory;
    gpst_context_desc context_desc = GPST_ZERO;
    gpst_prefetch_desc desc = test_prefetch_desc();
    (void)state;
    bool refused = true;
    for (uint64_t n = 1; refused && n < 90; n++) {
        gpst_context* context = NULL;
        gpst_prefetch* prefetch = NULL;
        context_desc.n_workers = 1;
        context_desc.allocator = test_memory_hooks(&memory);
        assert_int_equal(gpst_context_create(&context_desc, &context), GPST_OK);
        test_memory_refuse(&memory, n);
        gpst_result result = gpst_prefetch_create(context, &desc, &prefetch);
        assert_true(result == GPST_OK || (result == GPST_ERROR_MEMORY && !prefetch));
        for (uint64_t k = 0; prefetch && k < 20; k++) {
            const gpst_frame* frame = NULL;
            result = gpst_prefetch_get(prefetch, k, &frame);
            assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
            gpst_prefetch_release(prefetch, frame);
        }
        refused = test_memory_refused(&memory);
        test_memory_relent(&memory);
        gpst_prefetch_destroy(prefetch);
        gpst_context_destroy(context);
        test_memory_check(&memory);
    }
}

static void wrong_descs_are_refused(void** state) {
    const char* hole[] = {"a", NULL};
    const char* many[65];
    const uint64_t beyond[] = {0, TEST_N_FRAMES};
    (void)state;
    for (int k = 0; k < 65; k++)
        many[k] = "a";
    for (int k = 0; k < 15; k++) {
        gpst_prefetch_desc desc = test_prefetch_desc();
        gpst_decode_desc decode = GPST_ZERO;
        gpst_prefetch* prefetch = NULL;
        if (k == 0)
            desc.n_paths = 0;
        if (k == 1)
            desc.paths = hole, desc.n_paths = 2;
        if (k == 2)
            desc.schedule = beyond, desc.n_schedule = 2;
        if (k == 3)
            desc.max_ahead = 65;
        if (k == 4)
            desc.n_cameras = 3; /* of 40 */
        if (k == 5)
            desc.end_canary = 1;
        if (k == 6)
            desc.n_cameras = 65, desc.n_paths = 65, desc.paths = many;
        if (k == 7)
            desc.list_order = (gpst_camera_order)3;
        if (k == 8)
            desc.walk_order = (gpst_camera_order)-1;
        if (k == 9)
            desc.walk_order = GPST_CAMERAS_BY_FRAME, desc.schedule = beyond, desc.n_schedule = 1;
        if (k == 10)
            desc.decode = &decode, decode.codec = GPST_CODEC_AUTO;
        if (k == 11)
            desc.decode = &decode, decode.on_damage = (gpst_damage)2;
        if (k == 12)
            desc.schedule = beyond; /* of none */
        if (k == 13)
            desc.n_in_flight = 65;
        if (k == 14)
            desc.paths = NULL;
        assert_int_equal(gpst_prefetch_create(test_context, &desc, &prefetch), GPST_ERROR_ARGUMENT);
        assert_null(prefetch);
        test_reason_has("gpst_prefetch_create", "");
    }
    gpst_prefetch_destroy(NULL);
    gpst_prefetch_release(NULL, NULL);
}

static int test_begin(void** state) {
    test_group_begin(state);
    test_frames_make();
    return 0;
}

static int test_end(void** state) {
    free(test_frame_data);
    gpst_context_trim(test_context); /* what frames had is kept for the next pipeline */
    return test_group_end(state);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_sequence_is_there_before_it_is_asked_for),
                                       cmocka_unit_test(a_schedule_is_fetched_once_each),
                                       cmocka_unit_test(random_access_fetches_nothing),
                                       cmocka_unit_test(the_cap_is_kept),
                                       cmocka_unit_test(foresight_does_not_evict_foresight),
                                       cmocka_unit_test(what_is_due_sooner_gets_the_room),
                                       cmocka_unit_test(the_last_due_goes_first),
                                       cmocka_unit_test(an_error_is_told_at_its_item_only),
                                       cmocka_unit_test(decoded_frames_are_kept),
                                       cmocka_unit_test(what_does_not_fit_is_not_made_ahead),
                                       cmocka_unit_test(many_ask_at_once),
                                       cmocka_unit_test(every_allocation_may_fail),
                                       cmocka_unit_test(wrong_descs_are_refused)};
    return cmocka_run_group_tests(tests, test_begin, test_end);
}
