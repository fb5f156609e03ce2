/* tests/test_mask_window.c -- boxes, morphology, smoothing and refinement: every loop against the per-pixel reference
   between protected pages, the reference against plain definitions, what is refused. --hash prints the hash alone. */
#include "test_mask.h"

/* What every compiler, option and machine must compute. */
#define HASH_OF_ALL 0x4d3e00f1bd440455u

typedef struct arenas { arena source, guide, rows, reference; } arenas;

static arenas arenas_open(void) {
    arenas a;
    a.source = arena_open(), a.guide = arena_open(), a.rows = arena_open(), a.reference = arena_open();
    return a;
}

static void arenas_close(arenas a) {
    arena_close(a.source), arena_close(a.guide), arena_close(a.rows), arena_close(a.reference);
}

/* ---- loops against the reference --------------------------------------------------------- */
static uint64_t window_case(const arenas* a, const gpsti_window_job* job, uint32_t number, uint64_t hash) {
    gpsti_window_job expected = *job;
    expected.output = arena_moved(job->output, a->rows, a->reference);
    memset(a->reference.begin, 0xa5, ARENA_BYTES);
    gpsti_window_rows_reference(&expected, 0, (uint32_t)job->height);
    for (uint32_t level = 0; level <= (uint32_t)gpsti_simd_level_query(); level++) {
        memset(a->rows.begin, 0xa5, ARENA_BYTES);
        gpsti_window_rows(job, (gpsti_simd_level)level, 0, (uint32_t)job->height);
        expect_same(a->rows, a->reference, "window", number, level, (uint32_t)job->op);
    }
    for (int32_t y = 0; y < job->height; y++)
        hash = fnv(hash, expected.output + y * expected.output_pitch, (size_t)job->width * (job->wide ? 2 : 1));
    return hash;
}

/* Masks of few or many pixels, in every non-zero value. */
static void fill_mask(arena a, uint32_t kind, uint64_t* seed) {
    for (size_t i = 0; i < ARENA_BYTES; i++) {
        const uint64_t random = test_random(seed);
        const bool in = random >> 32 < (uint64_t)0x100000000u * (1 + 6 * kind) / 20;
        a.begin[i] = in ? (uint8_t)(1 + random % 255) : 0;
    }
}

static void pick_size(uint32_t* width, uint32_t* height, uint64_t* seed) {
    static const uint32_t widths[] = {1, 2, 3, 4, 5, 9, 31, 127, 128, 129, 131, 133, 260};
    static const uint32_t heights[] = {1, 2, 3, 4, 5, 8, 23, 24, 25, 27, 29, 50};
    *width = widths[test_random(seed) % 13];
    *height = heights[test_random(seed) % 12];
}

static uint64_t morph_all(uint64_t seed) {
    const arenas a = arenas_open();
    uint64_t hash = FNV_BEGIN;
    for (uint32_t choice = 0; choice < 4 * 8 * 24; choice++) {
        const uint32_t op = choice % 6 + 1, size = choice / 6 % 2 ? 5 : 3;
        uint32_t width, height;
        gpsti_window_job job;
        pick_size(&width, &height, &seed);
        const gpst_image mask = place_gray(a.source, width, height, GPST_DTYPE_U8, &seed);
        const gpst_image out = place_gray(a.rows, width, height, GPST_DTYPE_U8, &seed);
        if (choice % 24 == 0)
            fill_mask(a.source, choice / 24 % 4, &seed);
        const gpst_result result = op <= 4 ? gpsti_morph_job_init(&mask, (gpst_morph)op, size, &out, &job)
                                           : gpsti_smooth_job_init(&mask, (gpst_smooth)(op - 4), size, &out, &job);
        if (GPST_FAILED(result))
            fail_msg("%s", gpst_last_reason());
        hash = window_case(&a, &job, choice, hash);
    }
    arenas_close(a);
    return hash;
}

static uint64_t refine_all(uint64_t seed) {
    const arenas a = arenas_open();
    uint64_t hash = FNV_BEGIN;
    for (uint32_t choice = 0; choice < 5 * 2 * 2 * 12; choice++) {
        const uint32_t unit = choice % 2 + 1, format = choice / 2 % 5;
        gpst_labels labels = GPST_ZERO, out;
        gpst_image guide = GPST_ZERO;
        gpsti_window_job job;
        pick_size(&labels.width, &labels.height, &seed);
        labels.n_classes = unit == 2 ? 1000 : 256;
        labels.pitch_bytes = pick_pitch(labels.width * unit, unit, &seed);
        const size_t bytes = (size_t)labels.pitch_bytes * (labels.height - 1) + labels.width * unit;
        labels.data = arena_place(a.source, bytes, unit, &seed);
        out = labels;
        out.data = arena_place(a.rows, bytes, unit, &seed);
        for (size_t i = 0; i < ARENA_BYTES; i++) {
            const uint64_t random = test_random(&seed);
            a.source.begin[i] = (uint8_t)(random % 3 * 127);
            a.guide.begin[i] = (uint8_t)(random >> 32);
        }
        if (format != 0) {
            guide = place_gray(a.guide, labels.width, labels.height, GPST_DTYPE_U8, &seed);
            guide.format = (gpst_format)format;
            guide.pitch_bytes = (int64_t)gpst_image_row_bytes(&guide) + (int64_t)(choice % 7);
            guide.data = a.guide.begin;
        }
        const uint32_t tolerance = choice % 12 == 0 ? 0 : choice % 12 == 1 ? 255 : (uint32_t)(test_random(&seed) % 200);
        if (GPST_FAILED(gpsti_refine_job_init(&labels, format ? &guide : NULL, tolerance, &out, &job)))
            fail_msg("%s", gpst_last_reason());
        hash = window_case(&a, &job, choice, hash);
    }
    arenas_close(a);
    return hash;
}

static void loops_give_the_bits_of_the_reference(void** state) {
    (void)state;
    morph_all(test_seed(50));
    refine_all(test_seed(51));
}

static uint64_t hash_all(void) {
    const uint64_t parts[2] = {morph_all(1), refine_all(2)};
    return fnv(FNV_BEGIN, (const uint8_t*)parts, sizeof parts);
}

static void every_build_gives_the_same_hash(void** state) {
    const uint64_t hash = hash_all();
    (void)state;
    if (hash != HASH_OF_ALL)
        fail_msg("hash %016llx, expected %016llx", (unsigned long long)hash, (unsigned long long)HASH_OF_ALL);
}

/* ---- what they mean ------------------------------------------------------------------------- */
enum { SIDE = 9 };

static gpst_image image_of(uint8_t* data) {
    gpst_image image = GPST_ZERO;
    image.data = data;
    image.width = image.height = SIDE;
    image.format = GPST_FORMAT_GRAY;
    return image;
}

static uint64_t morphed_area(const uint8_t* from, gpst_morph op, uint32_t size, uint8_t* to) {
    uint8_t copy[SIDE * SIDE];
    gpst_box box;
    memcpy(copy, from, sizeof copy);
    memset(to, 0xa5, SIDE * SIDE);
    const gpst_image mask = image_of(copy), out = image_of(to);
    assert_int_equal(gpst_mask_morph(&mask, op, size, &out, 1), GPST_OK);
    assert_int_equal(gpst_mask_box(&out, &box), GPST_OK);
    return box.area;
}

static void morphology_of_simple_shapes(void** state) {
    uint8_t mask[SIDE * SIDE], out[SIDE * SIDE];
    (void)state;
    memset(mask, 1, sizeof mask); /* the border takes nothing away */
    for (int op = GPST_MORPH_ERODE; op <= GPST_MORPH_CLOSE; op++)
        assert_int_equal(morphed_area(mask, (gpst_morph)op, 5, out), SIDE * SIDE);
    memset(mask, 0, sizeof mask);
    for (int op = GPST_MORPH_ERODE; op <= GPST_MORPH_CLOSE; op++)
        assert_int_equal(morphed_area(mask, (gpst_morph)op, 3, out), 0);
    mask[4 * SIDE + 4] = 7; /* a single pixel: opened away, closed as it is */
    assert_int_equal(morphed_area(mask, GPST_MORPH_ERODE, 3, out), 0);
    assert_int_equal(morphed_area(mask, GPST_MORPH_DILATE, 3, out), 9);
    assert_int_equal(morphed_area(mask, GPST_MORPH_DILATE, 5, out), 25);
    assert_int_equal(out[2 * SIDE + 2], 255);
    assert_int_equal(morphed_area(mask, GPST_MORPH_OPEN, 3, out), 0);
    assert_int_equal(morphed_area(mask, GPST_MORPH_CLOSE, 5, out), 1);
    memset(mask, 1, sizeof mask); /* a hole: closed, and widened by eroding */
    mask[4 * SIDE + 4] = 0;
    assert_int_equal(morphed_area(mask, GPST_MORPH_CLOSE, 3, out), SIDE * SIDE);
    assert_int_equal(morphed_area(mask, GPST_MORPH_ERODE, 5, out), SIDE * SIDE - 25);
    assert_int_equal(morphed_area(mask, GPST_MORPH_OPEN, 3, out), SIDE * SIDE - 1);
}

static void smoothing_keeps_what_is_even(void** state) {
    uint8_t from[SIDE * SIDE], to[SIDE * SIDE];
    static const uint8_t middle[2][2] = {{28, 10}, {64, 36}}; /* 255/9, 255/25; 255*4/16, 255*36/256 */
    (void)state;
    const gpst_image source = image_of(from), out = image_of(to);
    for (int kind = GPST_SMOOTH_BOX; kind <= GPST_SMOOTH_GAUSSIAN; kind++)
        for (uint32_t size = 3; size <= 5; size += 2) {
            for (int value = 0; value < 256; value++) {
                memset(from, value, sizeof from);
                memset(to, 0xa5, sizeof to);
                assert_int_equal(gpst_mask_smooth(&source, (gpst_smooth)kind, size, &out, 1), GPST_OK);
                assert_memory_equal(from, to, sizeof to);
            }
            memset(from, 0, sizeof from);
            from[4 * SIDE + 4] = 255;
            assert_int_equal(gpst_mask_smooth(&source, (gpst_smooth)kind, size, &out, 1), GPST_OK);
            assert_int_equal(to[4 * SIDE + 4], middle[kind - 1][size / 2 - 1]);
        }
}

static gpst_labels labels_of(void* data, uint32_t n_classes) {
    gpst_labels labels = GPST_ZERO;
    labels.data = data;
    labels.width = labels.height = SIDE;
    labels.n_classes = n_classes;
    return labels;
}

static void refinement_follows_the_picture(void** state) {
    uint8_t from[SIDE * SIDE], to[SIDE * SIDE], picture[SIDE * SIDE];
    (void)state;
    const gpst_labels labels = labels_of(from, 4), out = labels_of(to, 4);
    const gpst_image guide = image_of(picture);
    for (int i = 0; i < SIDE * SIDE; i++) /* labels change at column 4, the picture at column 5 */
        from[i] = i % SIDE < 4 ? 1 : 2, picture[i] = i % SIDE < 5 ? 10 : 200;
    from[1 * SIDE + 1] = 3; /* a single pixel */
    memset(to, 0xa5, sizeof to);
    assert_int_equal(gpst_mask_refine(&labels, NULL, 0, &out, 1), GPST_OK);
    for (int i = 0; i < SIDE * SIDE; i++) /* no picture: straight edges stay, the pixel goes */
        assert_int_equal(to[i], i % SIDE < 4 ? 1 : 2);
    assert_int_equal(gpst_mask_refine(&labels, &guide, 20, &out, 1), GPST_OK);
    for (int i = 0; i < SIDE * SIDE; i++) { /* column 4 sees 3 + 3 of the picture's left side: a tie, its own label */
        const int x = i % SIDE;
        assert_int_equal(to[i], x < 4 ? 1 : 2);
    }
    from[4 * SIDE + 4] = 1; /* now the vote of rows 3 to 5 is decided */
    assert_int_equal(gpst_mask_refine(&labels, &guide, 20, &out, 1), GPST_OK);
    for (int y = 3; y <= 5; y++)
        assert_int_equal(to[y * SIDE + 4], 1);
    assert_int_equal(to[2 * SIDE + 4], 2);
    assert_int_equal(to[4 * SIDE + 5], 2);
    memset(from, 3, sizeof from); /* own label 0 alone, four each of 2 and 1 around: the lowest */
    from[0] = 0, from[1] = 2, from[SIDE] = 1, from[SIDE + 1] = 3;
    assert_int_equal(gpst_mask_refine(&labels, NULL, 0, &out, 1), GPST_OK);
    assert_int_equal(to[0], 0); /* one each: its own */
    for (int y = 3; y < 6; y++)
        for (int x = 3; x < 6; x++)
            from[y * SIDE + x] = (y * 3 + x) % 2 ? 2 : 1;
    from[4 * SIDE + 4] = 0;
    assert_int_equal(gpst_mask_refine(&labels, NULL, 0, &out, 1), GPST_OK);
    assert_int_equal(to[4 * SIDE + 4], 1);
}

/* ---- boxes --------------------------------------------------------------------------------------- */
static void boxes_are_those_of_plain_loops(void** state) {
    uint64_t seed = test_seed(52);
    const arena a = arena_open();
    (void)state;
    for (uint32_t choice = 0; choice < 600; choice++) {
        uint32_t width, height;
        pick_size(&width, &height, &seed);
        const gpst_image mask = place_gray(a, width, height, GPST_DTYPE_U8, &seed);
        memset(a.begin, 0, ARENA_BYTES);
        gpst_box expected = GPST_ZERO, box;
        memset(&box, 0xa5, sizeof box);
        for (uint32_t i = 0; i < choice % 5 * choice % 40; i++) {
            const uint64_t random = test_random(&seed);
            const uint32_t x = (uint32_t)(random >> 8) % width, y = (uint32_t)(random >> 40) % height;
            ((uint8_t*)mask.data)[(int64_t)y * mask.pitch_bytes + x] = (uint8_t)(1 + random % 255);
        }
        uint32_t x_end = 0, y_end = 0;
        expected.x = expected.y = UINT32_MAX;
        for (uint32_t y = 0; y < height; y++)
            for (uint32_t x = 0; x < width; x++)
                if (((uint8_t*)mask.data)[(int64_t)y * mask.pitch_bytes + x]) {
                    expected.x = x < expected.x ? x : expected.x;
                    expected.y = y < expected.y ? y : expected.y;
                    x_end = x + 1 > x_end ? x + 1 : x_end;
                    y_end = y + 1;
                    expected.area++;
                }
        expected.width = x_end - expected.x, expected.height = y_end - expected.y;
        if (expected.area == 0)
            memset(&expected, 0, sizeof expected);
        assert_int_equal(gpst_mask_box(&mask, &box), GPST_OK);
        assert_memory_equal(&box, &expected, sizeof box);
    }
    arena_close(a);
}

static void label_boxes_are_those_of_masks(void** state) {
    uint64_t seed = test_seed(53);
    const arena a = arena_open(), b = arena_open();
    static gpst_box boxes[301];
    (void)state;
    for (uint32_t choice = 0; choice < 60; choice++) {
        const uint32_t n_classes = choice & 1 ? 300 : 5, unit = choice & 1 ? 2 : 1;
        gpst_labels labels = GPST_ZERO;
        pick_size(&labels.width, &labels.height, &seed);
        labels.n_classes = n_classes;
        labels.pitch_bytes = pick_pitch(labels.width * unit, unit, &seed);
        labels.data =
            arena_place(a, (size_t)labels.pitch_bytes * (labels.height - 1) + labels.width * unit, unit, &seed);
        uint32_t label = 0;
        for (size_t i = 0; i < ARENA_BYTES / unit; i++) { /* runs, some of labels that are none */
            const uint64_t random = test_random(&seed);
            label = random % 9 < (choice & 6) ? label : (uint32_t)(random >> 32) % 7 + (n_classes > 5 ? 295 : 0);
            if (unit == 1)
                a.begin[i] = (uint8_t)label;
            else
                ((uint16_t*)(void*)a.begin)[i] = (uint16_t)label;
        }
        memset(boxes, 0xa5, sizeof boxes);
        assert_int_equal(gpst_mask_label_boxes(&labels, boxes), GPST_OK);
        for (uint32_t c = n_classes > 5 ? 294 : 0; c < n_classes; c++) {
            gpst_image mask = GPST_ZERO;
            gpst_box box;
            mask.data = b.begin;
            mask.width = labels.width, mask.height = labels.height;
            mask.format = GPST_FORMAT_GRAY;
            for (uint32_t y = 0; y < labels.height; y++)
                for (uint32_t x = 0; x < labels.width; x++) {
                    const uint8_t* row = (const uint8_t*)labels.data + (int64_t)y * labels.pitch_bytes;
                    const uint32_t value = unit == 1 ? row[x] : ((const uint16_t*)(const void*)row)[x];
                    b.begin[(size_t)y * labels.width + x] = value == c;
                }
            assert_int_equal(gpst_mask_box(&mask, &box), GPST_OK);
            assert_memory_equal(&box, &boxes[c], sizeof box);
        }
        assert_int_equal(((const uint8_t*)&boxes[n_classes])[0], 0xa5);
    }
    arena_close(a), arena_close(b);
}

static void threads_give_the_same_bits(void** state) {
    enum { W = 150, H = 131 };
    static uint8_t from[W * H], serial[W * H], threaded[W * H];
    uint64_t seed = test_seed(54);
    gpst_image source = GPST_ZERO, out = GPST_ZERO;
    (void)state;
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = test_random(&seed) % 3 ? 255 : 0;
    source.data = from;
    source.width = out.width = W, source.height = out.height = H;
    source.format = out.format = GPST_FORMAT_GRAY;
    for (uint32_t n_threads = 0; n_threads < 6; n_threads++) {
        memset(serial, 0xa5, sizeof serial);
        memset(threaded, 0x5a, sizeof threaded);
        out.data = serial;
        assert_int_equal(gpst_mask_morph(&source, GPST_MORPH_OPEN, 5, &out, 1), GPST_OK);
        out.data = threaded;
        assert_int_equal(gpst_mask_morph(&source, GPST_MORPH_OPEN, 5, &out, n_threads), GPST_OK);
        assert_memory_equal(serial, threaded, sizeof serial);
    }
}

/* ---- what is refused --------------------------------------------------------------------------------- */
static void bad_calls_are_refused(void** state) {
    static uint8_t from[2 * SIDE * SIDE], to[2 * SIDE * SIDE], picture[SIDE * SIDE * 4];
    const gpst_image mask = image_of(from), out = image_of(to), guide = image_of(picture);
    const gpst_labels labels = labels_of(from, 4), refined = labels_of(to, 4);
    gpst_labels bad_labels;
    gpst_image bad;
    gpst_box boxes[4];
    (void)state;
    expect_refused(gpst_mask_morph(&mask, GPST_MORPH_INVALID, 3, &out, 1), "op=0");
    expect_refused(gpst_mask_morph(&mask, (gpst_morph)5, 3, &out, 1), "op=5");
    expect_refused(gpst_mask_morph(&mask, GPST_MORPH_OPEN, 4, &out, 1), "size=4");
    expect_refused(gpst_mask_morph(NULL, GPST_MORPH_OPEN, 3, &out, 1), "mask=NULL");
    expect_refused(gpst_mask_morph(&mask, GPST_MORPH_OPEN, 3, NULL, 1), "output=NULL");
    expect_refused(gpst_mask_morph(&mask, GPST_MORPH_OPEN, 3, &mask, 1), "overlap");
    bad = out, bad.height = SIDE - 1;
    expect_refused(gpst_mask_morph(&mask, GPST_MORPH_OPEN, 3, &bad, 1), "output.width=9, height=8");
    bad = mask, bad.pitch_bytes = -(SIDE - 1);
    expect_refused(gpst_mask_morph(&bad, GPST_MORPH_OPEN, 3, &out, 1), "mask.pitch_bytes=-8");
    bad = mask, bad.format = GPST_FORMAT_RGB;
    expect_refused(gpst_mask_smooth(&bad, GPST_SMOOTH_BOX, 3, &out, 1), "source.format=2");
    expect_refused(gpst_mask_smooth(&mask, GPST_SMOOTH_INVALID, 3, &out, 1), "kind=0");
    expect_refused(gpst_mask_smooth(&mask, GPST_SMOOTH_BOX, 7, &out, 1), "size=7");
    expect_refused(gpst_mask_box(NULL, boxes), "mask=NULL");
    expect_refused(gpst_mask_box(&mask, NULL), "out=NULL");
    bad = mask, bad.width = 65536;
    expect_refused(gpst_mask_box(&bad, boxes), "width=65536");
    expect_refused(gpst_mask_label_boxes(NULL, boxes), "labels=NULL");
    expect_refused(gpst_mask_label_boxes(&labels, NULL), "out=NULL");
    bad_labels = labels, bad_labels.n_classes = 0;
    expect_refused(gpst_mask_label_boxes(&bad_labels, boxes), "labels.n_classes=0");
    expect_refused(gpst_mask_refine(&labels, &guide, 256, &refined, 1), "tolerance=256");
    expect_refused(gpst_mask_refine(&labels, &guide, 0, &labels, 1), "overlap");
    bad_labels = refined, bad_labels.n_classes = 5;
    expect_refused(gpst_mask_refine(&labels, &guide, 0, &bad_labels, 1), "output.n_classes=5");
    bad_labels = refined, bad_labels.width = 3;
    expect_refused(gpst_mask_refine(&labels, &guide, 0, &bad_labels, 1), "output.width=3");
    bad = guide, bad.width = 3;
    expect_refused(gpst_mask_refine(&labels, &bad, 0, &refined, 1), "guide.width=3");
    bad = guide, bad.dtype = GPST_DTYPE_F16, bad.width = 4, bad.data = picture;
    expect_refused(gpst_mask_refine(&labels, &bad, 0, &refined, 1), "guide.dtype=2");
    bad = guide, bad.format = GPST_FORMAT_RGB, bad.layout = GPST_LAYOUT_CHW;
    expect_refused(gpst_mask_refine(&labels, &bad, 0, &refined, 1), "guide.layout=CHW");
    bad = guide, bad.format = GPST_FORMAT_NV12;
    expect_refused(gpst_mask_refine(&labels, &bad, 0, &refined, 1), "guide.format=6: must not have planes of chroma");
    bad.format = GPST_FORMAT_JPEG_420;
    expect_refused(gpst_mask_refine(&labels, &bad, 0, &refined, 1), "guide.format=11: must not have planes of chroma");
    bad = guide, bad.data = to;
    expect_refused(gpst_mask_refine(&labels, &bad, 0, &refined, 1), "overlap guide");
}

int main(int argc, char** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_give_the_bits_of_the_reference),
        cmocka_unit_test(every_build_gives_the_same_hash),
        cmocka_unit_test(morphology_of_simple_shapes),
        cmocka_unit_test(smoothing_keeps_what_is_even),
        cmocka_unit_test(refinement_follows_the_picture),
        cmocka_unit_test(boxes_are_those_of_plain_loops),
        cmocka_unit_test(label_boxes_are_those_of_masks),
        cmocka_unit_test(threads_give_the_same_bits),
        cmocka_unit_test(bad_calls_are_refused),
    };
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        printf("%016llx\n", (unsigned long long)hash_all());
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
