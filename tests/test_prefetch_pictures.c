/* tests/test_prefetch_pictures.c -- prefetched pictures: what the library or a function makes of files, in the context's
   memory and its budget, page-locked where asked; bad files, too little memory and every fault. */
#include "prefetch_kit.h"

#include <pthread.h>
#if defined(GPST_TOOL_JPEG)
#include <turbojpeg.h>
#endif

static const gpst_decode_desc plain_decode;

/* ---- pictures -------------------------------------------------------------------------------------- */

/* What the plain calls make of a JPEG, turned. */
static void check_jpeg(const gpst_frame* frame, uint32_t orientation) {
    static uint8_t stored[256 * 128 * 3], turned[256 * 128 * 3];
    static uint8_t data[1 << 18];
    FILE* const stream = fopen(frame->path, "rb");
    const size_t bytes = fread(data, 1, sizeof data, stream);
    gpst_jpeg_info info;
    gpst_image from = GPST_ZERO, to;
    gpst_jpeg* jpeg = NULL;
    fclose(stream);
    assert_int_equal(gpst_jpeg_read_header(data, bytes, &info), GPST_OK);
    from.data = stored, from.width = info.width, from.height = info.height, from.format = info.format;
    assert_int_equal(gpst_jpeg_create(NULL, &jpeg), GPST_OK);
    assert_int_equal(gpst_jpeg_decode(jpeg, data, bytes, NULL, &from, NULL), GPST_OK);
    gpst_jpeg_destroy(jpeg);
    to = from;
    to.data = turned;
    to.width = orientation >= 5 ? from.height : from.width;
    to.height = orientation >= 5 ? from.width : from.height;
    assert_int_equal(gpst_image_orient(&from, orientation, &to), GPST_OK);
    assert_int_equal(frame->picture.width, to.width);
    assert_int_equal(frame->picture.height, to.height);
    assert_int_equal(frame->picture.format, info.format);
    assert_int_equal(frame->bytes, (size_t)to.width * to.height * gpst_format_channels(info.format));
    assert_memory_equal(frame->data, turned, frame->bytes);
}

static void files_become_pictures(void** state) {
    static file_set set;
    gpst_context* const context = set_context("cpu", 0, NULL);
    gpst_decode_desc decode = GPST_ZERO;
    (void)state;
    set_begin(&set, "kind");
    const uint64_t png = set_add_kinds(&set);
    gpst_prefetch_desc desc = set_desc(&set, &decode);
    decode.placement.sphere = true;
    desc.func = set_png_func;
    gpst_prefetch* const prefetch = set_open(context, &desc);
    memset(&decode, 0xA5, sizeof decode); /* it was copied */
    for (int round = 0; round < 2; round++)
        for (uint64_t k = 0; k < set.n; k++) {
            const gpst_frame* const frame = get(prefetch, k);
            const bool part = k == 9;
            assert_ptr_equal(frame->picture.data, frame->data);
            assert_true(frame->picture.pitch_bytes > 0);
            assert_int_equal(frame->has_pose, part);
            if (k < 2)
                check_jpeg(frame, 1);
            else if (k < 9)
                check_jpeg(frame, (uint32_t)k);
            if (part) {
                assert_int_equal(frame->picture.width, 160);
                assert_int_equal(frame->picture.height, 80);
                assert_true(frame->pose.yaw > 39.9 && frame->pose.yaw < 40.1);
                assert_non_null(strstr(frame->note, "placed at 30,22"));
            }
            if (k == png)
                assert_memory_equal(frame->data, "\007\005\003", 3);
            gpst_prefetch_release(prefetch, frame);
        }
    const gpst_prefetch_info info = set_info(prefetch);
    assert_int_equal(info.decoded, set.n);
    assert_int_equal(info.kept, set.n);
    assert_true(info.saved_ns == info.decode_ns && info.decode_ns > 0);
    assert_int_equal(info.failed, 0);
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
}

/* Pixels that lie in the file as in memory are not copied: the frame counts with its file. */
static void plain_pixels_stay_in_the_file(void** state) {
    static file_set set;
    gpst_context* const context = set_context("cpu", 0, NULL);
    (void)state;
    set_begin(&set, "npy");
    set_add_plain(&set, GPST_FILE_NPY, 40, 24, GPST_FORMAT_RGB, GPST_DTYPE_F32);
    const gpst_image image = set_paint(40, 24, GPST_FORMAT_RGB, GPST_DTYPE_F32, 1);
    const gpst_prefetch_desc desc = set_desc(&set, &plain_decode);
    gpst_prefetch* const prefetch = set_open(context, &desc);
    const gpst_frame* const frame = get(prefetch, 0);
    assert_int_equal(frame->bytes, 40 * 24 * 12);
    assert_int_equal((uintptr_t)frame->data % 4096, 128); /* behind the header */
    assert_memory_equal(frame->data, image.data, frame->bytes);
    assert_int_equal(set_info(prefetch).bytes, frame->bytes + 128);
    gpst_prefetch_release(prefetch, frame);
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
}

static void bad_files_fail_alone(void** state) {
    static file_set set;
    static const char* const sentences[][2] = {{NULL, NULL},
                                               {"bad01.jpg", "end"},
                                               {"bad02.png", "PNG, which is not read"},
                                               {"bad03.jpg", "empty"},
                                               {"bad04.xyz", "not a PNM"},
                                               {"missing", "open"},
                                               {NULL, NULL},
                                               {"bad07.jpg", "at most 100"}};
    gpst_context* const context = set_context("cpu", 0, NULL);
    gpst_decode_desc decode = GPST_ZERO;
    (void)state;
    set_begin(&set, "bad");
    set_add_plain(&set, GPST_FILE_PNM, 10, 10, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
    const size_t bytes = set_encode_jpeg(10, 10, GPST_FORMAT_GRAY, 5);
    set_add_bytes(&set, "jpg", set_file, bytes / 2);
    set_add_bytes(&set, "png", "\211PNG\r\n\032\n", 8);
    set_add_bytes(&set, "jpg", "", 0);
    set_add_bytes(&set, "xyz", "nothing at all", 14);
    set.paths[set.n++] = "/missing/file.jpg";
    set_add_plain(&set, GPST_FILE_PNM, 10, 10, GPST_FORMAT_GRAY, GPST_DTYPE_U8); /* p06 */
    set_add_jpeg(&set, 11, 10, GPST_FORMAT_GRAY); /* p07 */
    decode.max_pixels = 100;
    const gpst_prefetch_desc desc = set_desc(&set, &decode);
    gpst_prefetch* const prefetch = set_open(context, &desc);
    for (int round = 0; round < 3; round++)
        for (uint64_t k = 0; k < set.n; k++) {
            const gpst_frame* frame = NULL;
            const gpst_result result = gpst_prefetch_get(prefetch, k, &frame);
            assert_int_equal(result == GPST_OK, k == 0 || k == 6);
            assert_int_equal(frame != NULL, result == GPST_OK);
            if (result != GPST_OK)
                test_reason_has(sentences[k][0], sentences[k][1]);
            gpst_prefetch_release(prefetch, frame);
        }
    assert_int_equal(set_info(prefetch).decoded, 2);
    for (int ms = 0; ms < 20000 && set_info(prefetch).bytes != 200 + 2 * 13; ms++)
        gpsti_sleep_ns(1000000); /* until nothing is fetched any more */
    assert_int_equal(set_info(prefetch).bytes, 200 + 2 * 13); /* of the two that are good, with their headers */
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
}

/* ---- functions ------------------------------------------------------------------------------------- */

static gpst_result no_picture(void* user_data, const gpst_prefetch_file* file) {
    (void)user_data;
    (void)file;
    return GPST_OK;
}

static gpst_result skips(void* user_data, const gpst_prefetch_file* file) {
    (void)user_data;
    (void)file;
    return GPST_SKIPPED;
}

/* Wrong shapes are refused, and the last of several is the picture. */
static gpst_result asks_often(void* user_data, const gpst_prefetch_file* file) {
    gpst_image shape = set_png_shape(), out;
    (void)user_data;
    shape.height = 0;
    if (gpst_prefetch_set_picture(file, &shape, &out) != GPST_ERROR_ARGUMENT || out.width != 0)
        return gpst_task_fail(NULL, GPST_ERROR_INTERNAL, "height 0 was taken");
    shape.height = 1;
    shape.format = GPST_FORMAT_INVALID;
    if (gpst_prefetch_set_picture(file, &shape, &out) != GPST_ERROR_ARGUMENT)
        return gpst_task_fail(NULL, GPST_ERROR_INTERNAL, "no format was taken");
    if (gpst_prefetch_set_picture(file, NULL, &out) != GPST_ERROR_ARGUMENT)
        return gpst_task_fail(NULL, GPST_ERROR_INTERNAL, "no shape was taken");
    for (uint32_t width = 9000; width >= 3; width /= 3) {
        shape = set_png_shape();
        shape.width = width;
        shape.pitch_bytes = 77777; /* ignored */
        const gpst_result result = gpst_prefetch_set_picture(file, &shape, &out);
        if (GPST_FAILED(result))
            return result;
        memset(out.data, (int)(width & 255), width);
    }
    return GPST_OK;
}

static void functions_keep_their_word(void** state) {
    static file_set set;
    gpst_context* const context = set_context("cpu", 0, NULL);
    const gpst_frame* frame = NULL;
    (void)state;
    set_begin(&set, "func");
    set_add_bytes(&set, "png", "\211PNG\r\n\032\nabc", 11);
    set_add_bytes(&set, "png", "\211PNG\r\n\032\nabcd", 12);
    gpst_prefetch_desc desc = set_desc(&set, NULL);
    static const gpst_prefetch_func funcs[] = {no_picture, skips, set_png_func, asks_often};
    static const char* const sentences[] = {"made no picture", "GPST_SKIPPED", "12 bytes are no PNG"};
    for (int f = 0; f < 4; f++) {
        desc.func = funcs[f];
        gpst_prefetch* const prefetch = set_open(context, &desc);
        assert_int_equal(gpst_prefetch_get(prefetch, 1, &frame), f == 3   ? GPST_OK
                                                                 : f == 2 ? GPST_ERROR_FORMAT
                                                                          : GPST_ERROR_CALLBACK);
        if (f < 3)
            test_reason_has("func01.png", sentences[f]);
        else
            assert_true(frame->picture.width == 4 && frame->bytes == 4 && set_info(prefetch).bytes == 4);
        gpst_prefetch_release(prefetch, frame);
        gpst_prefetch_destroy(prefetch);
    }
    gpst_context_destroy(context);
}

/* What is foreseen waits until somebody has come for it. */
static gpst_result waits(void* user_data, const gpst_prefetch_file* file) {
    gpst_prefetch* const* const prefetch = (gpst_prefetch* const*)user_data;
    for (int ms = 0; file->index == 4 && ms < 20000 && set_info(*prefetch).late == 0; ms++)
        gpsti_sleep_ns(1000000);
    return set_png_func(NULL, file);
}

static void late_is_no_hit(void** state) {
    static file_set set;
    gpst_context* const context = set_context("cpu", 0, NULL);
    gpst_prefetch* prefetch = NULL;
    (void)state;
    set_begin(&set, "late");
    for (int k = 0; k < 5; k++)
        set_add_bytes(&set, "png", "\211PNG\r\n\032\nabc", 11);
    gpst_prefetch_desc desc = set_desc(&set, NULL);
    desc.func = waits;
    desc.func_user_data = &prefetch;
    prefetch = set_open(context, &desc);
    for (uint64_t k = 0; k < 5; k++) /* four make the sequence known */
        gpst_prefetch_release(prefetch, get(prefetch, k));
    assert_int_equal(set_info(prefetch).misses, 4);
    assert_int_equal(set_info(prefetch).late, 1);
    assert_int_equal(set_info(prefetch).hits, 0);
    gpst_prefetch_release(prefetch, get(prefetch, 4));
    assert_int_equal(set_info(prefetch).late, 1);
    assert_int_equal(set_info(prefetch).hits, 1);
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
}

/* ---- page-locked ----------------------------------------------------------------------------------- */

static void frames_are_page_locked(void** state) {
    gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    (void)state;
    for (int pinned = 0; pinned < 2; pinned++) {
        gpst_context* const context = set_context("sim:mapped=1", 0, NULL);
        desc.pinned = pinned == 1;
        gpst_prefetch* const prefetch = set_open(context, &desc);
        for (uint64_t k = 0; k < N_ALIKE; k++) {
            const gpst_frame* const frame = get(prefetch, k);
            assert_int_equal(frame->pinned, pinned);
            check_jpeg(frame, 1);
            gpst_prefetch_release(prefetch, frame);
        }
        assert_int_equal(set_info(prefetch).pinned_bytes, pinned ? set_info(prefetch).charged_bytes : 0);
        gpst_prefetch_destroy(prefetch);
        gpst_context_destroy(context);
    }
}

/* The n-th time that the device locks memory it cannot: that frame fails, or nobody has asked for it; and the next time
   it is there. */
static void locking_may_fail(void** state) {
    gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    unsigned n_failed = 0;
    (void)state;
    desc.pinned = true;
    for (unsigned n = 1; n <= 14; n++) {
        char backend[64];
        test_memory memory;
        snprintf(backend, sizeof backend, "sim:fail_host_alloc=%u", n);
        gpst_context* const context = set_context(backend, 0, &memory);
        gpst_prefetch* const prefetch = set_open(context, &desc);
        for (uint64_t k = 0; k < N_ALIKE; k++) {
            const gpst_frame* frame = NULL;
            const gpst_result result = gpst_prefetch_get(prefetch, k, &frame);
            assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
            n_failed += result != GPST_OK;
            if (result != GPST_OK)
                frame = get(prefetch, k);
            assert_int_equal(frame->bytes, ALIKE_BYTES);
            gpst_prefetch_release(prefetch, frame);
        }
        gpst_prefetch_destroy(prefetch);
        gpst_context_destroy(context);
        test_memory_check(&memory);
    }
    assert_in_range(n_failed, 1, 14); /* the first of all is asked for; of foreseen frames nobody is told */
}

/* ---- faults, threads, the end ------------------------------------------------------------------------ */

static void every_allocation_may_fail(void** state) {
    gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    bool refused = true;
    (void)state;
    desc.max_bytes = 4 * ALIKE_BYTES;
    for (uint64_t n = 1; refused; n++) {
        test_memory memory;
        gpst_context* const context = set_context("cpu", 0, &memory);
        gpst_prefetch* prefetch = NULL;
        test_memory_refuse(&memory, n);
        gpst_result result = gpst_prefetch_create(context, &desc, &prefetch);
        assert_true(result == GPST_OK || (result == GPST_ERROR_MEMORY && !prefetch));
        if (result != GPST_OK)
            prefetch = set_open(context, &desc);
        for (uint64_t k = 0; k < 8; k++) {
            const gpst_frame* frame = NULL;
            result = gpst_prefetch_get(prefetch, k, &frame);
            assert_true(result == GPST_OK || result == GPST_ERROR_MEMORY);
            if (result != GPST_OK) /* the second attempt works */
                frame = get(prefetch, k);
            assert_int_equal(frame->bytes, ALIKE_BYTES);
            gpst_prefetch_release(prefetch, frame);
        }
        refused = test_memory_refused(&memory) && n < 200;
        gpst_prefetch_destroy(prefetch);
        gpst_context_destroy(context);
        test_memory_check(&memory);
    }
}

typedef struct asker {
    gpst_context* context;
    gpst_prefetch* prefetch;
    uint64_t seed;
    uint64_t n_frames, n_refused;
    pthread_t thread;
} asker;

static void* ask(void* arg) {
    asker* const self = (asker*)arg;
    for (int k = 0; k < 150; k++) {
        const gpst_frame* frame = NULL;
        const gpst_result result = gpst_prefetch_get(self->prefetch, test_random(&self->seed) % N_ALIKE, &frame);
        assert_true(result == GPST_OK || result == GPST_ERROR_BUDGET);
        self->n_frames += result == GPST_OK;
        self->n_refused += result != GPST_OK;
        if (frame)
            assert_int_equal(frame->bytes, ALIKE_BYTES);
        gpst_prefetch_release(self->prefetch, frame);
    }
    return NULL;
}

static void* take_memory(void* arg) {
    asker* const self = (asker*)arg;
    gpst_pool* pool = NULL;
    gpst_buffer buffers[3];
    assert_int_equal(gpst_pool_create(self->context, NULL, &pool), GPST_OK);
    for (int k = 0; k < 150; k++) {
        uint32_t n = 0;
        while (n < 3 && gpst_pool_acquire(pool, ALIKE_BYTES, 0, &buffers[n]) == GPST_OK) {
            memset(buffers[n].data, k, buffers[n].bytes);
            n++;
        }
        self->n_frames += n;
        while (n > 0)
            gpst_pool_release(pool, &buffers[--n]);
        gpst_pool_trim(pool);
    }
    assert_int_equal(gpst_pool_destroy(pool), GPST_OK);
    return NULL;
}

/* Four ask for frames, two for the memory that these have; and a second prefetcher in the same budget. */
static void many_at_once(void** state) {
    gpst_context* const context = set_context("cpu", 12 * (uint64_t)ALIKE_BYTES * 9 / 8, NULL);
    const gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    gpst_prefetch* const prefetches[2] = {set_open(context, &desc), set_open(context, &desc)};
    asker askers[6];
    (void)state;
    memset(askers, 0, sizeof askers);
    for (unsigned k = 0; k < 6; k++) {
        askers[k].context = context;
        askers[k].prefetch = prefetches[k % 2];
        askers[k].seed = k + 1;
        assert_int_equal(pthread_create(&askers[k].thread, NULL, k < 4 ? ask : take_memory, &askers[k]), 0);
    }
    for (unsigned k = 0; k < 6; k++)
        pthread_join(askers[k].thread, NULL);
    for (unsigned k = 0; k < 2; k++) {
        const gpst_prefetch_info info = set_info(prefetches[k]);
        printf("%llu decoded, %llu kept, %llu given up, %llu refused\n", (unsigned long long)info.decoded,
               (unsigned long long)info.kept, (unsigned long long)info.given_up,
               (unsigned long long)(askers[k].n_refused + askers[k + 2].n_refused));
        assert_int_equal(info.asked, 300);
        assert_int_equal(info.hits + info.late + info.misses, 300);
        gpst_prefetch_destroy(prefetches[k]);
    }
    gpst_context_destroy(context);
}

#if defined(GPST_TOOL_JPEG)
/* Decoders of progressive files hold whole pictures: within decode.max_bytes they wait for one another, and go on. */
static void large_decoders_take_turns(void** state) {
    enum { SIDE = 1720 };
    static file_set set;
    gpst_context* const context = set_context("cpu", 0, NULL);
    gpst_decode_desc decode = GPST_ZERO;
    gpst_jpeg_info jpeg;
    uint8_t* const pixels = (uint8_t*)calloc(SIDE, SIDE * 3);
    unsigned char* out = NULL;
    unsigned long bytes = 0;
    (void)state;
    for (uint32_t i = 0; i < SIDE * SIDE * 3; i += 1000)
        pixels[i] = (uint8_t)i;
    tjhandle handle = tjInitCompress();
    assert_int_equal(tjCompress2(handle, pixels, SIDE, 0, SIDE, TJPF_RGB, &out, &bytes, TJSAMP_444, 60,
                                 TJFLAG_PROGRESSIVE), 0);
    assert_int_equal(gpst_jpeg_read_header(out, bytes, &jpeg), GPST_OK);
    set_begin(&set, "large");
    for (int k = 0; k < 6; k++)
        set_add_bytes(&set, "jpg", out, bytes);
    tjFree(out);
    tjDestroy(handle);
    free(pixels);
    assert_true(jpeg.decoder_bytes >= 16 << 20);
    decode.max_bytes = bytes + SIDE * SIDE * 3 + jpeg.decoder_bytes; /* of one, and less than two decoders */
    gpst_prefetch_desc desc = set_desc(&set, &decode);
    desc.walk_order = GPST_CAMERAS_BY_FRAME;
    desc.n_in_flight = 4;
    gpst_prefetch* const prefetch = set_open(context, &desc);
    pass(prefetch, set.n);
    assert_int_equal(set_info(prefetch).decoded, set.n);
    gpst_prefetch_destroy(prefetch);
    gpst_context_destroy(context);
}
#endif

/* Frames that are held and frames on their way die with it. */
static void an_end_in_the_middle(void** state) {
    gpst_prefetch_desc desc = set_desc(&alike, &plain_decode);
    (void)state;
    desc.walk_order = GPST_CAMERAS_BY_FRAME;
    for (int round = 0; round < 20; round++) {
        test_memory memory;
        gpst_context* const context = set_context("cpu", 0, &memory);
        gpst_prefetch* const prefetch = set_open(context, &desc);
        (void)get(prefetch, 0);
        (void)get(prefetch, (uint64_t)round % N_ALIKE);
        gpsti_sleep_ns(round * 100000);
        gpst_prefetch_destroy(prefetch);
        assert_true(gpsti_a64_load(&context->host_bytes) <= context->info.max_host_bytes);
        gpst_context_trim(context);
        assert_int_equal(gpsti_a64_load(&context->host_bytes), 0);
        gpst_context_destroy(context);
        test_memory_check(&memory);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_become_pictures),
        cmocka_unit_test(plain_pixels_stay_in_the_file),
        cmocka_unit_test(bad_files_fail_alone),
        cmocka_unit_test(functions_keep_their_word),
        cmocka_unit_test(late_is_no_hit),
        cmocka_unit_test(frames_are_page_locked),
        cmocka_unit_test(locking_may_fail),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(many_at_once),
#if defined(GPST_TOOL_JPEG)
        cmocka_unit_test(large_decoders_take_turns),
#endif
        cmocka_unit_test(an_end_in_the_middle)};
    return set_has_jpeg() ? cmocka_run_group_tests(tests, set_begin_alike, set_end) : set_skip();
}
