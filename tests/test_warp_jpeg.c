/* tests/test_warp_jpeg.c -- sources that are the planes of a JPEG file: from what libjpeg-turbo decodes to planes every
   warp makes the same bits as from what it decodes to RGB. Skipped without libjpeg-turbo. */
#include "test_warp.h"

#if !defined(GPST_TOOL_JPEG)
int main(void) {
    printf("no libjpeg-turbo\n");
    return GPST_TEST_SKIP;
}
#else

#include <turbojpeg.h>

enum { N_FORMATS = 4, MAX_SIDE = 640, MAX_OUT = 72 };

static const gpst_format formats[N_FORMATS] = {GPST_FORMAT_JPEG_444, GPST_FORMAT_JPEG_422, GPST_FORMAT_JPEG_420,
                                               GPST_FORMAT_JPEG_440};
static const int samplings[N_FORMATS] = {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440};
static const uint32_t factors[N_FORMATS][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}}; /* across, down */

/* A file's pixels, decoded twice; memory of exactly their bytes. */
typedef struct pair {
    gpst_image rgb, planes;
} pair;

static uint64_t seed;

/* Noise, a gradient, or colours as far apart as they can be, which round and clamp most. */
static void draw(uint8_t* rgb, uint32_t w, uint32_t h, uint32_t kind) {
    static const uint8_t far_apart[4] = {0, 255, 254, 1};
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++)
            for (uint32_t c = 0; c < 3; c++)
                *rgb++ = kind == 0   ? (uint8_t)test_random(&seed)
                         : kind == 1 ? (uint8_t)(255 * (c == 0 ? x : c == 1 ? y : x + y) / (w + h) & 255)
                                     : far_apart[test_random(&seed) % 4];
}

static uint8_t* exactly(size_t bytes) {
    uint8_t* const memory = (uint8_t*)malloc(bytes);
    assert_non_null(memory);
    memset(memory, 0xa5, bytes);
    return memory;
}

/* Noise where samples mean nothing: the planes' padding and the gaps of Y's rows. */
static void spoil_padding(const gpst_image* planes, const uint32_t factor[2]) {
    uint8_t* const luma = (uint8_t*)planes->data;
    const uint32_t rows = (planes->height + factor[1] - 1) / factor[1] * factor[1];
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t x = y < planes->height ? planes->width : 0; x < (uint32_t)planes->pitch_bytes; x++)
            luma[y * (size_t)planes->pitch_bytes + x] = (uint8_t)test_random(&seed);
}

static void decode(const uint8_t* file, unsigned long bytes, uint32_t f, pair* out) {
    const tjhandle decoder = tjInitDecompress();
    const uint32_t w = out->rgb.width, h = out->rgb.height, *const factor = factors[f];
    const int64_t pitch = out->planes.pitch_bytes, chroma_pitch = pitch / factor[0];
    const size_t chroma_rows = (h + factor[1] - 1) / factor[1];
    uint8_t* const luma = (uint8_t*)out->planes.data;
    uint8_t* const cb = luma + (size_t)pitch * chroma_rows * factor[1];
    uint8_t* planes[3] = {luma, cb, cb + (size_t)chroma_pitch * chroma_rows};
    int strides[3] = {(int)pitch, (int)chroma_pitch, (int)chroma_pitch};
    assert_non_null(decoder);
    assert_int_equal(
        tjDecompress2(decoder, file, bytes, (uint8_t*)out->rgb.data, (int)w, 3 * (int)w, (int)h, TJPF_RGB, 0), 0);
    assert_int_equal(tjDecompressToYUVPlanes(decoder, file, bytes, planes, 0, strides, 0, 0), 0);
    tjDestroy(decoder);
}

static pair make_pair(uint32_t w, uint32_t h, uint32_t f, uint32_t kind, int quality) {
    static uint8_t drawn[MAX_SIDE * MAX_SIDE * 3];
    const tjhandle encoder = tjInitCompress();
    unsigned char* file = NULL;
    unsigned long file_bytes = 0;
    size_t bytes = 0;
    pair out;
    memset(&out, 0, sizeof out);
    out.rgb.width = out.planes.width = w, out.rgb.height = out.planes.height = h;
    out.rgb.format = GPST_FORMAT_RGB, out.planes.format = formats[f];
    out.rgb.data = exactly((size_t)w * h * 3);
    out.planes.pitch_bytes = (int64_t)gpst_image_row_bytes(&out.planes) + (int64_t)(test_random(&seed) % 4 * 2);
    assert_int_equal(gpst_image_bytes(&out.planes, &bytes), GPST_OK);
    out.planes.data = exactly(bytes);
    draw(drawn, w, h, kind);
    assert_non_null(encoder);
    assert_int_equal(tjCompress2(encoder, drawn, (int)w, 3 * (int)w, (int)h, TJPF_RGB, &file, &file_bytes,
                                 samplings[f], quality, 0),
                     0);
    decode(file, file_bytes, f, &out);
    spoil_padding(&out.planes, factors[f]);
    tjFree(file);
    tjDestroy(encoder);
    return out;
}

static void free_pair(pair* p) {
    free(p->rgb.data);
    free(p->planes.data);
}

/* ---- the warps ----------------------------------------------------------------------------- */
static float floats[2][MAX_SIDE * MAX_SIDE * 3];

/* Both sources by every level of the machine, into bytes or planes of floats. */
static void expect_equal(const gpst_warp_desc* desc, const pair* p, const char* what) {
    const gpsti_simd_level highest = gpsti_simd_level_query();
    gpst_warp* const warp = make_warp(desc);
    const size_t bytes =
        (size_t)desc->width * desc->height * gpst_format_channels(desc->format) * gpst_dtype_bytes(desc->dtype);
    for (int level = GPSTI_SIMD_PORTABLE; level <= (int)highest; level++) {
        warp->level = (gpsti_simd_level)level;
        run_warp(warp, &p->rgb, floats[0], bytes);
        run_warp(warp, &p->planes, floats[1], bytes);
        if (memcmp(floats[0], floats[1], bytes) != 0) {
            size_t at = 0;
            while (((const uint8_t*)floats[0])[at] == ((const uint8_t*)floats[1])[at])
                at++;
            fail_msg("%s, %ux%u format %d, level %d, dtype %d, filter %d: byte %zu is %d, from RGB %d", what,
                     p->rgb.width, p->rgb.height, (int)p->planes.format, level, (int)desc->dtype, (int)desc->filter, at,
                     ((const uint8_t*)floats[1])[at], ((const uint8_t*)floats[0])[at]);
        }
    }
    gpst_warp_destroy(warp);
}

static void expect_both_stores(gpst_warp_desc desc, const pair* p, const char* what) {
    desc.format = GPST_FORMAT_RGB, desc.dtype = GPST_DTYPE_U8, desc.layout = GPST_LAYOUT_HWC;
    expect_equal(&desc, p, what);
    desc.format = GPST_FORMAT_BGR, desc.dtype = GPST_DTYPE_F32, desc.layout = GPST_LAYOUT_CHW, desc.has_scale = true;
    for (int c = 0; c < 4; c++)
        desc.scale[c] = 1.0f / (58.0f + (float)c), desc.bias[c] = -2.1f;
    expect_equal(&desc, p, what);
}

static gpst_warp_desc desc_of(gpst_map map, gpst_filter filter, uint32_t w, uint32_t h) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = map, desc.filter = filter, desc.width = w, desc.height = h;
    return desc;
}

/* The picture itself. */
static void expect_pixels(const pair* p) {
    gpst_warp_desc desc = desc_of(GPST_MAP_RESIZE, GPST_FILTER_NEAREST, p->rgb.width, p->rgb.height);
    const size_t bytes = (size_t)p->rgb.width * p->rgb.height * 3;
    desc.format = GPST_FORMAT_RGB;
    run_desc(&desc, &p->planes, floats[1], bytes);
    const uint8_t *const is = (const uint8_t*)floats[1], *const wanted = (const uint8_t*)p->rgb.data;
    for (size_t i = 0; i < bytes; i++)
        if (is[i] != wanted[i])
            fail_msg("%ux%u format %d: pixel (%zu, %zu), channel %zu is %d, by libjpeg-turbo %d", p->rgb.width,
                     p->rgb.height, (int)p->planes.format, i / 3 % p->rgb.width, i / 3 / p->rgb.width, i % 3, is[i],
                     wanted[i]);
    expect_both_stores(desc, p, "the pixels");
}

static void expect_resizes(const pair* p) {
    static const gpst_filter filters[3] = {GPST_FILTER_NEAREST, GPST_FILTER_BILINEAR, GPST_FILTER_AREA};
    static const gpst_convention conventions[3] = {GPST_CONVENTION_NATIVE, GPST_CONVENTION_OPENCV,
                                                   GPST_CONVENTION_TORCH};
    for (int i = 0; i < 9; i++) {
        gpst_warp_desc desc = desc_of(GPST_MAP_RESIZE, filters[i % 3], i % 2 ? 67 : 5, i % 2 ? 13 : 31);
        desc.convention = conventions[i / 3];
        expect_both_stores(desc, p, "resize");
    }
}

static void expect_rois(const pair* p) {
    const float w = (float)p->rgb.width, h = (float)p->rgb.height;
    const gpst_roi rois[2] = {{-0.3f * w, 0.2f * h, 0.9f * w, 1.1f * h}, {0.25f * w, 0.1f * h, 0.4f * w, 0.6f * h}};
    for (int i = 0; i < 6; i++) {
        gpst_warp_desc desc = desc_of(GPST_MAP_ROI, (gpst_filter)(1 + i % 3), 29, 11);
        desc.rois = &rois[i / 3], desc.n_rois = 1;
        desc.border = i % 3 == 1 ? GPST_BORDER_ZERO : GPST_BORDER_DEFAULT;
        expect_both_stores(desc, p, "roi");
    }
}

static void expect_affines(const pair* p) {
    const gpst_affine affine = {{0.21 * p->rgb.width / 10, 0.3, -1.7, -0.2, 0.19 * p->rgb.height / 5, 0.9}};
    for (int i = 0; i < 6; i++) {
        gpst_warp_desc desc = desc_of(GPST_MAP_AFFINE, (gpst_filter)(1 + i % 3), 66, 21);
        desc.affines = &affine, desc.n_affines = 1;
        desc.border = i < 3 ? GPST_BORDER_ZERO : GPST_BORDER_EDGE;
        expect_both_stores(desc, p, "affine");
    }
}

static void expect_spheres(const pair* p) {
    const gpst_view views[3] = {{0, 0, 0, 100, 0}, {170, 40, 12, 80, 0}, {-90, -85, 3, 70, 0}};
    for (int i = 0; i < 9; i++) {
        gpst_warp_desc desc = desc_of(GPST_MAP_EQUIRECT, (gpst_filter)(1 + i % 3), 70, 19);
        desc.views = &views[i / 3], desc.n_views = 1;
        expect_both_stores(desc, p, "equirect");
        desc.convention = GPST_CONVENTION_FFMPEG;
        if (i % 3 != 2)
            expect_both_stores(desc, p, "equirect of FFmpeg");
    }
    gpst_view turned = views[1];
    turned.hfov = 0;
    for (int i = 0; i < 3; i++) {
        gpst_warp_desc desc = desc_of(GPST_MAP_ROTATE, (gpst_filter)(1 + i), 65, 20);
        desc.views = &turned, desc.n_views = 1;
        expect_both_stores(desc, p, "rotate");
    }
}

static void expect_tables(const pair* p) {
    static float table[33 * 17 * 2];
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i += 2) {
        table[i] = (float)(test_random(&seed) % 1000) / 900.0f * (float)p->rgb.width - 1.0f;
        table[i + 1] = (float)(test_random(&seed) % 1000) / 900.0f * (float)p->rgb.height - 1.0f;
    }
    for (int i = 0; i < 4; i++) {
        gpst_warp_desc desc = desc_of(GPST_MAP_TABLE, (gpst_filter)(1 + i % 2), 33, 17);
        desc.table = table;
        desc.border = i < 2 ? GPST_BORDER_ZERO : GPST_BORDER_EDGE;
        expect_both_stores(desc, p, "table");
    }
}

/* A mask, and a missing alpha. */
static void expect_the_rest(const pair* p) {
    static uint8_t mask[MAX_SIDE * MAX_SIDE];
    gpst_warp_desc desc = desc_of(GPST_MAP_RESIZE, GPST_FILTER_BILINEAR, 40, 23);
    for (size_t i = 0; i < (size_t)p->rgb.width * p->rgb.height; i++)
        mask[i] = test_random(&seed) % 3 != 0;
    desc.mask.data = mask, desc.mask.width = p->rgb.width, desc.mask.height = p->rgb.height;
    desc.mask.format = GPST_FORMAT_GRAY;
    expect_both_stores(desc, p, "with a mask");
    desc.format = GPST_FORMAT_BGRA, desc.dtype = GPST_DTYPE_F16;
    expect_equal(&desc, p, "with alpha");
}

static void expect_all(uint32_t w, uint32_t h, uint32_t f, uint32_t kind, int quality) {
    pair p = make_pair(w, h, f, kind, quality);
    expect_pixels(&p);
    expect_resizes(&p);
    expect_rois(&p);
    expect_affines(&p);
    expect_spheres(&p);
    expect_tables(&p);
    expect_the_rest(&p);
    free_pair(&p);
}

static int quality_of(void) { return 30 + (int)(test_random(&seed) % 68); }

/* ---- the tests ------------------------------------------------------------------------------ */
/* Every size up to 40 on both sides: edges of all kinds, and chroma of one and two samples. */
static void pixels_are_those_of_libjpeg_turbo(void** state) {
    uint32_t n = 0;
    (void)state;
    seed = test_seed(70);
    for (uint32_t f = 0; f < N_FORMATS; f++)
        for (uint32_t i = 0; i < 40 * 40; i += i < 6 * 40 || i % 40 < 6 ? 1 : 5, n++) {
            pair p = make_pair(1 + i % 40, 1 + i / 40, f, n % 3, quality_of());
            expect_pixels(&p);
            free_pair(&p);
        }
    printf("%u files\n", n);
}

static void every_warp_of_small_pictures(void** state) {
    static const uint32_t heights[5] = {1, 2, 3, 6, 9};
    (void)state;
    seed = test_seed(71);
    for (uint32_t f = 0; f < N_FORMATS; f++)
        for (uint32_t w = 1; w <= 10; w++)
            for (uint32_t i = 0; i < 5; i++)
                expect_all(w, heights[i], f, (w + i) % 3, quality_of());
}

static void every_warp_of_larger_pictures(void** state) {
    static const uint32_t sizes[5][2] = {{40, 40}, {31, 37}, {200, 100}, {321, 97}, {640, 320}};
    (void)state;
    seed = test_seed(72);
    for (uint32_t f = 0; f < N_FORMATS; f++)
        for (uint32_t i = 0; i < 5; i++)
            expect_all(sizes[i][0], sizes[i][1], f, i % 3, quality_of());
}

/* Two by two pixels cost six bytes of 420, twelve of RGB. */
static void bytes_are_counted(void** state) {
    static const uint64_t wanted[N_FORMATS] = {8 * 6 * 3, 8 * 6 * 2, 8 * 6 * 3 / 2, 8 * 6 * 2};
    gpst_warp_desc desc = desc_of(GPST_MAP_RESIZE, GPST_FILTER_NEAREST, 8, 6);
    (void)state;
    desc.format = GPST_FORMAT_RGB;
    gpst_warp* const warp = make_warp(&desc);
    for (uint32_t f = 0; f < N_FORMATS; f++) {
        gpst_image source = GPST_ZERO;
        uint64_t read_bytes = 0, written_bytes = 0;
        source.width = 8, source.height = 6, source.format = formats[f];
        gpst_warp_query_bytes(warp, &source, &read_bytes, &written_bytes);
        assert_int_equal(read_bytes, wanted[f]);
    }
    gpst_warp_destroy(warp);
}

static void outputs_are_never_planes(void** state) {
    gpst_warp* warp = NULL;
    (void)state;
    for (uint32_t f = 0; f < N_FORMATS; f++) {
        gpst_warp_desc desc = desc_of(GPST_MAP_RESIZE, GPST_FILTER_BILINEAR, 8, 6);
        desc.format = formats[f];
        assert_int_equal(gpst_warp_create(&desc, &warp), GPST_ERROR_ARGUMENT);
        assert_non_null(strstr(gpst_last_reason(), "format="));
        desc.format = GPST_FORMAT_RGB;
        uint8_t mask[8 * 8 * 3] = {0};
        desc.mask.data = mask, desc.mask.width = 8, desc.mask.height = 8, desc.mask.format = formats[f];
        assert_int_equal(gpst_warp_create(&desc, &warp), GPST_ERROR_ARGUMENT);
        assert_non_null(strstr(gpst_last_reason(), "mask"));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pixels_are_those_of_libjpeg_turbo), cmocka_unit_test(every_warp_of_small_pictures),
        cmocka_unit_test(every_warp_of_larger_pictures),     cmocka_unit_test(bytes_are_counted),
        cmocka_unit_test(outputs_are_never_planes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
