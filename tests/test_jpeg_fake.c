/* tests/test_jpeg_fake.c -- JPEG through a library that stands in for libturbojpeg, found as that is: one that is not
   there, lacks a function, fails at any call, warns, and tells wrong sizes. */
#include "test.h"

#if defined(_WIN32) || !defined(GPST_TEST_FAKES)
int main(void) {
    printf("no library is built to stand in for libturbojpeg here\n");
    return GPST_TEST_SKIP;
}
#else
#include "fake/turbojpeg.h"
#include "test_allocator.h"
#include "test_threads.h"

#include <dlfcn.h>

#define VARIABLE "GPUSTAGE_LIBTURBOJPEG"
#define NEVER 1000000

static fake_turbojpeg* fake; /* of the library that is loaded */
static uint8_t got[4096];

/* 16x8 pixels; its data are nothing that anybody reads. */
static const uint8_t file[] = {0xff, 0xd8, 0xff, 0xc0, 0, 17, 8, 0, 8, 0, 16, 3, 1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0,
                               0xff, 0xda, 0, 12, 3, 1, 0, 2, 0, 3, 0, 0, 63, 0, 1, 2, 3, 0xff, 0xd9};

static gpst_image image_of(gpst_format format) {
    gpst_image image = GPST_ZERO;
    image.data = got;
    image.width = 16;
    image.height = 8;
    image.format = format;
    memset(got, 0xA5, sizeof got);
    return image;
}

static void expect(gpst_result right, gpst_result result) {
    if (right != result)
        fail_msg("%s instead of %s: %s", gpst_result_name(result), gpst_result_name(right), gpst_last_reason());
}

static void reset(void) {
    memset(fake, 0, sizeof *fake);
    fake->fail_at = NEVER;
}

/* ---- before it is loaded ------------------------------------------------------------------------------------- */

static void expect_none(const char* path, const char* text) {
    gpst_jpeg* jpeg = (gpst_jpeg*)1;
    assert_int_equal(setenv(VARIABLE, path, 1), 0);
    gpst_clear_reason();
    expect(GPST_ERROR_UNSUPPORTED, gpst_jpeg_create(NULL, &jpeg));
    assert_null(jpeg);
    test_reason_has("libturbojpeg: ", VARIABLE);
    test_reason_has(text, "");
}

static void test_absent(void** state) {
    gpst_jpeg_info info;
    (void)state;
    expect_none("", "it is not to be used; unset it to have the installed one looked for");
    expect_none("/nonexistent/libturbojpeg.so", VARIABLE " must name the library's file: /nonexistent/libturbojpeg.so");
    test_reason_has("; unset it to have the installed one looked for", "");
    expect_none(GPST_TEST_FAKES "/lacks_compress.so", GPST_TEST_FAKES "/lacks_compress.so lacks tjCompress2");
    test_reason_has(": libturbojpeg 2.1 or later is needed; install it, or name its file in " VARIABLE, "");
    expect(GPST_OK, gpst_jpeg_read_header(file, sizeof file, &info)); /* needs no library */
    assert_int_equal(info.planes, GPST_FORMAT_JPEG_444);
}

/* By names: the first that is there is taken. */
static void test_names(void** state) {
    static void* calls[1];
    static const char* const names[] = {"libgpustage-none.so.7", GPST_TEST_FAKES "/turbojpeg.so", NULL};
    static const char* const none[] = {"libgpustage-none.so.7", "libgpustage-none.so", NULL};
    static const gpsti_symbol symbols[] = {{"tjBufSize", 0, false}, {NULL, 0, false}};
    gpsti_library library = GPST_ZERO;
    (void)state;
    library.title = "libnone";
    library.variable = "GPUSTAGE_TEST_NONE";
    library.names = none;
    library.symbols = symbols;
    library.calls = calls;
    expect(GPST_ERROR_UNSUPPORTED, gpsti_library_load(&library));
    test_reason_has("libnone: not found: ", "libgpustage-none.so.7");
    test_reason_has("GPUSTAGE_TEST_NONE", "");
    library.names = names;
    expect(GPST_OK, gpsti_library_load(&library));
    assert_non_null(calls[0]);
    library.names = none; /* once there, it is not looked for again */
    expect(GPST_OK, gpsti_library_load(&library));
}

/* ---- loaded by several threads at once ----------------------------------------------------------------------- */

static void work(void* arg) {
    gpst_result* const result = (gpst_result*)arg;
    uint8_t room[16 * 8 * 6 + 2048], pixels[16 * 8 * 3];
    gpst_image image = GPST_ZERO;
    gpst_jpeg* jpeg = NULL;
    image.data = pixels;
    image.width = 16;
    image.height = 8;
    image.format = GPST_FORMAT_RGB;
    *result = gpst_jpeg_create(NULL, &jpeg);
    for (int i = 0; i < 20 && *result == GPST_OK; i++) {
        size_t bytes = sizeof room;
        *result = gpst_jpeg_decode(jpeg, file, sizeof file, NULL, &image, NULL);
        if (*result == GPST_OK)
            *result = pixels[383] == FAKE_PIXEL ? gpst_jpeg_encode(jpeg, &image, NULL, room, &bytes)
                                                : GPST_ERROR_INTERNAL;
    }
    gpst_jpeg_destroy(jpeg);
}

static void test_threads(void** state) {
    gpsti_thread threads[4];
    gpst_result results[4];
    (void)state;
    assert_int_equal(setenv(VARIABLE, GPST_TEST_FAKES "/turbojpeg.so", 1), 0);
    void* const library = dlopen(GPST_TEST_FAKES "/turbojpeg.so", RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    fake = (fake_turbojpeg*)dlsym(library, "fake_state");
    assert_non_null(fake);
    for (int i = 0; i < 4; i++)
        expect(GPST_OK, gpsti_thread_start(&threads[i], work, &results[i], "jpeg"));
    for (int i = 0; i < 4; i++)
        gpsti_thread_join(&threads[i]);
    for (int i = 0; i < 4; i++)
        assert_int_equal(results[i], GPST_OK);
    assert_int_equal(fake->n_live, 0);
    assert_true(fake->n_calls > 100);
    assert_int_equal(setenv(VARIABLE, "", 1), 0); /* it stays what it is */
}

/* ---- failures ---------------------------------------------------------------------------------------------------- */

/* One of everything; stops at the first failure. */
static gpst_result use(const gpst_allocator* hooks) {
    static uint8_t room[16 * 8 * 6 + 2048];
    gpst_jpeg_encode_desc desc = GPST_ZERO;
    gpst_jpeg* jpeg = NULL;
    gpst_image picture = image_of(GPST_FORMAT_BGRA);
    size_t bytes = sizeof room;
    gpst_result result = gpst_jpeg_create(hooks, &jpeg);
    if (result == GPST_OK)
        result = gpst_jpeg_decode(jpeg, file, sizeof file, NULL, &picture, NULL);
    picture = image_of(GPST_FORMAT_JPEG_444);
    if (result == GPST_OK)
        result = gpst_jpeg_decode(jpeg, file, sizeof file - 2, NULL, &picture, NULL); /* mended */
    picture = image_of(GPST_FORMAT_GRAY);
    if (result == GPST_OK)
        result = gpst_jpeg_encode(jpeg, &picture, NULL, room, &bytes);
    desc.optimise = true;
    desc.restart_rows = 3;
    bytes = sizeof room;
    if (result == GPST_OK)
        result = gpst_jpeg_encode(jpeg, &picture, &desc, room, &bytes);
    gpst_jpeg_destroy(jpeg);
    return result;
}

static void test_every_call_fails(void** state) {
    test_memory memory;
    const gpst_allocator hooks = test_memory_hooks(&memory);
    int failures = 0, n = 1;
    (void)state;
    for (;; n++) {
        reset();
        fake->fail_at = n;
        gpst_clear_reason();
        const gpst_result result = use(&hooks);
        assert_int_equal(fake->n_live, 0);
        if (fake->n_calls < n)
            break;
        failures += GPST_FAILED(result);
        assert_int_equal(GPST_FAILED(result), gpst_last_reason()[0] != 0);
        reset();
        expect(GPST_OK, use(&hooks));
    }
    /* Two handles, two files, two pictures, a handle more, two times two settings. The file without an end is decoded
       as it is first, and that may fail; its copy would be one call more. */
    assert_int_equal(n - 1, 11);
    assert_int_equal(failures, 10);
    reset();
    expect(GPST_OK, use(&hooks));
    test_memory_check(&memory);
}

static void test_no_memory(void** state) {
    test_memory memory;
    const gpst_allocator hooks = test_memory_hooks(&memory);
    (void)state;
    uint32_t n_refused = 0;
    for (uint64_t n = 1;; n++) {
        reset();
        test_memory_refuse(&memory, n);
        const gpst_result result = use(&hooks);
        if (!test_memory_refused(&memory))
            break;
        expect(GPST_ERROR_MEMORY, result);
        assert_int_equal(fake->n_live, 0);
        n_refused++;
    }
    assert_true(n_refused > 0);
    test_memory_check(&memory);
}

static void test_errors(void** state) {
    static const struct {
        const char* text;
        int warns;
        gpst_result whole, cut;
    } cases[] = {{"Memory allocation failure", 0, GPST_ERROR_MEMORY, GPST_ERROR_MEMORY},
                 {"Memory is a word of a warning", 1, GPST_ERROR_FORMAT, GPST_ERROR_TRUNCATED},
                 {"Premature end", 1, GPST_ERROR_FORMAT, GPST_ERROR_TRUNCATED},
                 {"Bogus", 0, GPST_ERROR_FORMAT, GPST_ERROR_TRUNCATED},
                 {NULL, 1, GPST_ERROR_FORMAT, GPST_ERROR_TRUNCATED}};
    gpst_jpeg* jpeg = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        for (size_t cut = 0; cut <= 2; cut += 2) {
            const gpst_image picture = image_of(GPST_FORMAT_RGB);
            reset();
            expect(GPST_OK, gpst_jpeg_create(NULL, &jpeg));
            fake->text = cases[i].text;
            fake->warns = cases[i].warns;
            fake->fail_at = 3;
            fake->fails_on = 1;
            expect(cut ? cases[i].cut : cases[i].whole,
                   gpst_jpeg_decode(jpeg, file, sizeof file - cut, NULL, &picture, NULL));
            test_reason_has("JPEG: ", cases[i].text ? cases[i].text : "libturbojpeg gives no reason");
            assert_int_equal(fake->n_calls, cut && cases[i].cut != GPST_ERROR_MEMORY ? 4 : 3);
            assert_int_equal(fake->last_flags, 8192 | 32768);
            gpst_jpeg_destroy(jpeg);
        }
}

/* Kept damage: what the decoder gave, or, where it gave nothing up, gray. */
static void test_damage_is_kept(void** state) {
    gpst_jpeg_decode_desc desc = GPST_ZERO;
    gpst_jpeg_note note;
    gpst_jpeg* jpeg = NULL;
    const gpst_image picture = image_of(GPST_FORMAT_RGB);
    (void)state;
    reset();
    expect(GPST_OK, gpst_jpeg_create(NULL, &jpeg));
    desc.on_damage = GPST_DAMAGE_KEEP;
    fake->text = "a warning";
    fake->warns = 1;
    fake->fail_at = 3;
    fake->fails_on = 1;
    expect(GPST_OK, gpst_jpeg_decode(jpeg, file, sizeof file, &desc, &picture, &note));
    assert_true(note.damaged);
    assert_int_equal(fake->last_flags, 32768);
    assert_string_equal(note.text, "damaged: a warning");
    assert_int_equal(got[0], FAKE_PIXEL);
    gpst_clear_reason();
    expect(GPST_OK, gpst_jpeg_decode(jpeg, file, sizeof file, &desc, &picture, &note));
    assert_string_equal(gpst_last_reason(), ""); /* success leaves it alone */
    fake->warns = 0;
    expect(GPST_ERROR_FORMAT, gpst_jpeg_decode(jpeg, file, sizeof file, &desc, &picture, &note));
    assert_false(note.damaged);
    assert_int_equal(got[0], 128);
    gpst_jpeg_destroy(jpeg);
}

static void test_wrong_sizes(void** state) {
    static uint8_t room[16 * 8 * 6 + 2048];
    gpst_jpeg* jpeg = NULL;
    const gpst_image picture = image_of(GPST_FORMAT_RGB);
    size_t bytes = sizeof room;
    (void)state;
    reset();
    expect(GPST_OK, gpst_jpeg_create(NULL, &jpeg));
    fake->wider = -1;
    expect(GPST_ERROR_FORMAT, gpst_jpeg_decode(jpeg, file, sizeof file, NULL, &picture, NULL));
    test_reason_has("libturbojpeg sees 15x8 pixels", "16x8");
    assert_int_equal(got[0], 0xA5);
    fake->has_header_failed = 1; /* what cannot be told is left to decoding */
    expect(GPST_OK, gpst_jpeg_decode(jpeg, file, sizeof file, NULL, &picture, NULL));
    fake->larger = 1000000;
    expect(GPST_ERROR_UNSUPPORTED, gpst_jpeg_encode(jpeg, &picture, NULL, room, &bytes));
    test_reason_has("wants room for 1000128 bytes", "");
    assert_int_equal(bytes, 0);
    fake->larger = 0;
    fake->longer = 1;
    bytes = sizeof room;
    expect(GPST_ERROR_INTERNAL, gpst_jpeg_encode(jpeg, &picture, NULL, room, &bytes));
    assert_int_equal(bytes, 0);
    gpst_jpeg_destroy(jpeg);
}

/* What is set for one picture is set again for the next; who optimises is another encoder. */
static void test_options(void** state) {
    static uint8_t room[16 * 8 * 6 + 2048];
    gpst_jpeg_encode_desc desc = GPST_ZERO;
    gpst_jpeg* jpeg = NULL;
    const gpst_image picture = image_of(GPST_FORMAT_RGB);
    (void)state;
    reset();
    expect(GPST_OK, gpst_jpeg_create(NULL, &jpeg));
    for (uint32_t i = 0; i < 4; i++) {
        size_t bytes = sizeof room;
        desc.optimise = i == 1 || i == 2;
        desc.restart_rows = i % 2 ? 5 + i : 0;
        desc.quality = 20 + i;
        fake->optimise = fake->restart_rows = -1;
        expect(GPST_OK, gpst_jpeg_encode(jpeg, &picture, &desc, room, &bytes));
        assert_int_equal(bytes, 100);
        assert_int_equal(room[99], 20 + i);
        assert_int_equal(fake->optimise, desc.optimise);
        assert_int_equal(fake->restart_rows, desc.restart_rows);
        assert_int_equal(fake->n_live, i ? 3 : 2);
        assert_int_equal(fake->last_flags, 1024);
        assert_ptr_equal(fake->last_handle, desc.optimise ? jpeg->optimiser : jpeg->encoder);
    }
    gpst_jpeg_destroy(jpeg);
    assert_int_equal(fake->n_live, 0);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_absent), /* these in this order: what is loaded stays */
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_every_call_fails),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_damage_is_kept),
        cmocka_unit_test(test_wrong_sizes),
        cmocka_unit_test(test_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
