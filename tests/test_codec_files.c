/* tests/test_codec_files.c -- files of every kind but JPEG, as tests/make_pictures.py makes them: each is decoded to the
   pixels that it says, to the last bit. */
#include "test_files.h"

#include "test_codec.h"

enum { N_LEAST = 340 }; /* files */

typedef struct wanted {
    uint32_t width, height, n_channels;
    gpst_dtype dtype;
    uint8_t* values; /* in pixels */
} wanted;

static size_t read_file(const char* path, uint8_t* to, size_t room) {
    FILE* const stream = fopen(path, "rb");
    assert_non_null(stream);
    const size_t bytes = fread(to, 1, room, stream);
    assert_true(bytes > 0 && bytes < room);
    fclose(stream);
    return bytes;
}

/* Truth is 0 or 255, and doubles are floats. */
static void convert_wanted(wanted* out, bool doubles) {
    const size_t n = (size_t)out->width * out->height * out->n_channels;
    for (size_t i = 0; i < n; i++) {
        double value;
        if (!doubles) {
            out->values[i] = out->values[i] ? 255 : 0;
            continue;
        }
        memcpy(&value, out->values + 8 * i, sizeof value);
        const float real = (float)value;
        memcpy(out->values + 4 * i, &real, sizeof real);
    }
}

static gpst_dtype dtype_of(const char* header) {
    return strstr(header, "'|u1'") || strstr(header, "'|b1'") ? GPST_DTYPE_U8
           : strstr(header, "'<u2'")                         ? GPST_DTYPE_U16
           : strstr(header, "'<f2'")                         ? GPST_DTYPE_F16
                                                             : GPST_DTYPE_F32;
}

/* Also of two channels, which no image of the library has. */
static void read_wanted(const char* path, wanted* out) {
    const size_t bytes = read_file(path, pixels, ROOM - 1);
    pixels[bytes] = '\0';
    const size_t header = 10 + pixels[8] + 256u * pixels[9];
    const char* const text = (const char*)pixels + 10;
    const char* const shape = strstr(text, "'shape': (");
    assert_non_null(shape);
    out->n_channels = 1;
    assert_true(sscanf(shape + 10, "%u, %u, %u", &out->height, &out->width, &out->n_channels) >= 2);
    const bool doubles = strstr(text, "'<f8'") != NULL;
    out->dtype = dtype_of(text);
    out->values = pixels + header;
    assert_int_equal(bytes - header, (size_t)out->width * out->height * out->n_channels *
                                         (doubles ? 8 : gpst_dtype_bytes(out->dtype)));
    if (doubles || strstr(text, "'|b1'"))
        convert_wanted(out, doubles);
}

/* Gray with alpha is decoded to RGBA, gray three times. */
static void check_pixels(const char* name, const gpst_image* image, const wanted* want) {
    const uint32_t n = gpst_format_channels(image->format);
    const size_t one = gpst_dtype_bytes(want->dtype);
    if (image->width != want->width || image->height != want->height || image->dtype != want->dtype ||
        n != (want->n_channels == 2 ? 4 : want->n_channels))
        fail_msg("%s: %ux%u, %u channels, dtype %d", name, image->width, image->height, n, (int)image->dtype);
    for (size_t i = 0; i < (size_t)want->width * want->height; i++)
        for (uint32_t c = 0; c < n; c++) {
            const size_t from = want->n_channels == 2 ? 2 * i + c / 3 : n * i + c;
            if (memcmp(decoded + (n * i + c) * one, want->values + from * one, one) != 0)
                fail_msg("%s: channel %u of pixel %zu, %zu", name, c, i % want->width, i / want->width);
        }
}

/* What is wanted of NAME.EXTENSION is in NAME.EXTENSION.npy. */
static codec_kind kind_of(const char* name) {
    const char* const end = strrchr(name, '.');
    if (end != strchr(name, '.'))
        return CODEC_UNKNOWN;
    return !strcmp(end, ".png")    ? CODEC_PNG
           : !strcmp(end, ".tif")  ? CODEC_TIFF
           : !strcmp(end, ".webp") ? CODEC_WEBP
           : !strcmp(end, ".npy")  ? CODEC_NPY
           : end[1] == 'p'         ? CODEC_PNM /* pgm, ppm, pam */
                                   : CODEC_UNKNOWN;
}

static void test_every_kind(void** state) {
    wanted want;
    char path[TEST_PATH_BYTES], command[TEST_PATH_BYTES + 64];
    const struct dirent* entry;
    int n = 0;
    (void)state;
    if (!codec_available(CODEC_PNG) || !codec_available(CODEC_TIFF) || !codec_available(CODEC_WEBP) ||
        system("python3 -c ''") != 0)
        test_skip("no PNG, TIFF or WebP, or no python3");
    test_directory_make();
    snprintf(command, sizeof command, "python3 tests/make_pictures.py %s", test_directory);
    assert_int_equal(system(command), 0);
    DIR* const directory = opendir(test_directory);
    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        codec_kind kind;
        gpst_image image;
        /* The pixels of those that are turned are stored as they are; what is wanted is upright. */
        if (kind_of(entry->d_name) == CODEC_UNKNOWN || !strncmp(entry->d_name, "turned", 6))
            continue;
        const size_t bytes = read_file(test_path(path, entry->d_name), file, ROOM);
        const gpst_result result = decode(file, bytes, &kind, &image);
        if (GPST_FAILED(result) || kind != kind_of(entry->d_name))
            fail_msg("%s: %s: %s", entry->d_name, gpst_result_name(result), reason);
        snprintf(command, sizeof command, "%s.npy", path);
        read_wanted(command, &want);
        check_pixels(entry->d_name, &image, &want);
        n++;
    }
    closedir(directory);
    test_directory_remove();
    assert_true(n >= N_LEAST);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind),
    };
    return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
