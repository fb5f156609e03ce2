/* tests/test_warp_cases.c -- every loop against the per-pixel reference for what the table of
   test_warp_bits.c does not hold: family by family, each with a hash that every build must give (--hash
   prints them alone). */
#include "test_warp_bits.h"

/* One case: what the choice says, the rest by chance. */
typedef struct kit {
    arenas a;
    gpst_warp_desc desc;
    gpst_image source;
    gpst_view view;
    gpst_roi roi;
    gpst_affine affine;
    arena table;
} kit;

typedef struct family {
    const char* name;
    uint32_t n_choices;
    bool (*choose)(kit* k, uint32_t choice, uint64_t* seed); /* false: no such case */
    uint64_t hash;
} family;

/* Takes the next choice of n. */
static uint32_t take(uint32_t* choice, uint32_t n) {
    const uint32_t taken = *choice % n;
    *choice /= n;
    return taken;
}

/* 0 or 1 as a bool: has_scale, a float's worth of scale and bias that is exact in any rounding mode. */
static void pick_scale(kit* k, uint64_t* seed, bool has_scale) {
    k->desc.has_scale = has_scale;
    for (int c = 0; c < 4; c++) {
        k->desc.scale[c] = (float)((double)(test_random(seed) % 2048) / 512.0 - 1.0);
        k->desc.bias[c] = (float)((double)(test_random(seed) % 2048) / 16.0 - 60.0);
    }
}

static void pick_mask(kit* k, bool masked) {
    k->desc.mask.data = masked ? k->a.mask.begin : NULL;
    k->desc.mask.format = GPST_FORMAT_GRAY;
}

static void pick_map(kit* k, uint64_t* seed, gpst_map map) {
    k->desc.map = map;
    pick_sizes(&k->desc, &k->source, seed);
    k->view = pick_view(seed);
    k->desc.views = &k->view;
    k->desc.n_views = map == GPST_MAP_EQUIRECT ? 1 : 0;
}

/* ---- signed bytes, blue first ------------------------------------------------------------- */
static bool choose_bytes(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    const gpst_map map = take(&choice, 2) ? GPST_MAP_EQUIRECT : GPST_MAP_RESIZE;
    k->desc.filter = take(&choice, 2) ? GPST_FILTER_NEAREST : GPST_FILTER_BILINEAR;
    k->desc.layout = take(&choice, 2) ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    k->desc.dtype = dtypes[take(&choice, 4)];
    k->source.format = (gpst_format)(1 + take(&choice, 5));
    k->desc.format = (gpst_format)(1 + take(&choice, 5));
    const bool has_scale = k->desc.dtype == GPST_DTYPE_I8 || (test_random(seed) & 1) != 0;
    const bool is_new = k->desc.dtype == GPST_DTYPE_I8 || k->source.format == GPST_FORMAT_BGRA ||
                        k->desc.format == GPST_FORMAT_BGRA;
    pick_scale(k, seed, has_scale);
    pick_mask(k, map == GPST_MAP_EQUIRECT && (test_random(seed) & 1) != 0);
    pick_map(k, seed, map);
    return is_new && (k->desc.format != GPST_FORMAT_GRAY || k->source.format == GPST_FORMAT_GRAY);
}

/* ---- the other maps -------------------------------------------------------------------------- */
/* A number of 1/64 from -span to span, exact in any rounding mode. */
static double pick_number(uint64_t* seed, int span) {
    return (double)((int64_t)(test_random(seed) % (uint64_t)(128 * span + 1)) - 64 * span) / 64.0;
}

/* Inside, around and far outside of the source, tiny and huge. */
static void pick_roi(kit* k, uint64_t* seed) {
    const float w = (float)k->source.width, h = (float)k->source.height;
    gpst_roi roi = {0, 0, w, h};
    if (test_random(seed) % 4) {
        roi.x = (float)pick_number(seed, (int)k->source.width + 2);
        roi.y = (float)pick_number(seed, (int)k->source.height + 2);
        roi.width = (float)(pick_number(seed, 60) + 60.015625),
        roi.height = (float)(pick_number(seed, 9) + 9.015625);
    }
    if (test_random(seed) % 16 == 0)
        roi.x = 1048576, roi.y = -1048576, roi.width = 1048576, roi.height = 0.00001f;
    k->roi = roi;
    k->desc.rois = &k->roi;
    k->desc.n_rois = 1;
}

static void pick_affine(kit* k, uint64_t* seed) {
    double* m = k->affine.m;
    m[0] = pick_number(seed, 3), m[1] = pick_number(seed, 2), m[2] = pick_number(seed, 100);
    m[3] = pick_number(seed, 2), m[4] = pick_number(seed, 3), m[5] = pick_number(seed, 60);
    if (test_random(seed) % 16 == 0)
        m[0] = 65536, m[1] = -65536, m[2] = 536870912, m[3] = -65536, m[4] = 65536, m[5] = -536870912;
    k->desc.affines = &k->affine;
    k->desc.n_affines = 1;
}

/* The table ends at the protected page. */
static void pick_table(kit* k, uint64_t* seed) {
    static const uint32_t special[6] = {0x7fc00000u, 0xff800000u, 0x7f800000u,
                                        0x80000001u, 0x4f000000u, 0xcf000000u};
    const uint32_t w = k->desc.width, h = k->desc.height, gap = (uint32_t)(test_random(seed) % 3);
    const size_t row = (size_t)2 * w + gap;
    float* table = (float*)(void*)(k->table.begin + ARENA_BYTES) - (row * (h - 1) + (size_t)2 * w);
    for (uint32_t y = 0; y < h; y++)
        for (uint32_t x = 0; x < w; x++) {
            table[y * row + 2 * x] = (float)pick_number(seed, (int)k->source.width + 3);
            table[y * row + 2 * x + 1] = (float)pick_number(seed, (int)k->source.height + 3);
            if (test_random(seed) % 16 == 0)
                memcpy(&table[y * row + 2 * x], &special[test_random(seed) % 6], 4);
        }
    k->desc.table = table;
    k->desc.table_pitch_bytes = gap ? (int64_t)(row * 4) : 0;
}

static bool choose_maps(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_map maps[4] = {GPST_MAP_ROI, GPST_MAP_AFFINE, GPST_MAP_ROTATE, GPST_MAP_TABLE};
    static const gpst_dtype dtypes[3] = {GPST_DTYPE_U8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    static const gpst_format sources[3] = {GPST_FORMAT_GRAY, GPST_FORMAT_RGB, GPST_FORMAT_BGRA};
    const gpst_map map = maps[take(&choice, 4)];
    k->desc.filter = take(&choice, 2) ? GPST_FILTER_NEAREST : GPST_FILTER_BILINEAR;
    k->desc.layout = take(&choice, 2) ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    k->desc.dtype = dtypes[take(&choice, 3)];
    k->source.format = sources[take(&choice, 3)];
    k->desc.format = take(&choice, 2) ? GPST_FORMAT_RGBA : GPST_FORMAT_RGB;
    k->desc.border = map == GPST_MAP_ROTATE ? GPST_BORDER_DEFAULT : (gpst_border)take(&choice, 3);
    pick_scale(k, seed, take(&choice, 2) != 0);
    pick_mask(k, take(&choice, 2) != 0);
    pick_map(k, seed, map);
    k->desc.n_views = map == GPST_MAP_ROTATE ? 1 : 0;
    k->view.hfov = k->view.vfov = 0;
    if (map == GPST_MAP_ROI)
        pick_roi(k, seed);
    else if (map == GPST_MAP_AFFINE)
        pick_affine(k, seed);
    else if (map == GPST_MAP_TABLE)
        pick_table(k, seed);
    return true;
}

/* RESIZE carries masks, too. */
static bool choose_resize_masks(kit* k, uint32_t choice, uint64_t* seed) {
    k->desc.filter = take(&choice, 2) ? GPST_FILTER_NEAREST : GPST_FILTER_BILINEAR;
    k->desc.dtype = take(&choice, 2) ? GPST_DTYPE_F32 : GPST_DTYPE_U8;
    k->source.format = k->desc.format = take(&choice, 2) ? GPST_FORMAT_GRAY : GPST_FORMAT_RGB;
    pick_mask(k, true);
    pick_map(k, seed, GPST_MAP_RESIZE);
    return true;
}

/* ---- area ---------------------------------------------------------------------------------------- */
static bool choose_area(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    static const gpst_format sources[3] = {GPST_FORMAT_GRAY, GPST_FORMAT_BGR, GPST_FORMAT_RGBA};
    const gpst_map map = take(&choice, 2) ? GPST_MAP_ROI : GPST_MAP_RESIZE;
    k->desc.filter = GPST_FILTER_AREA;
    k->desc.layout = take(&choice, 2) ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    k->desc.dtype = dtypes[take(&choice, 4)];
    k->source.format = sources[take(&choice, 3)];
    k->desc.format = take(&choice, 2) ? GPST_FORMAT_RGBA : GPST_FORMAT_RGB;
    pick_scale(k, seed, k->desc.dtype == GPST_DTYPE_I8 || take(&choice, 2) != 0);
    pick_mask(k, test_random(seed) % 4 == 0);
    pick_map(k, seed, map);
    if (test_random(seed) % 8 == 0) /* wider than a strip */
        k->source.width = 1500, k->source.height = 1 + (uint32_t)(test_random(seed) % 5);
    if (map == GPST_MAP_ROI)
        pick_roi(k, seed);
    return true;
}

/* What a map takes besides sizes, in a family that has every map. */
static void pick_rest(kit* k, uint64_t* seed, gpst_map map) {
    const bool on_sphere = map == GPST_MAP_EQUIRECT || map == GPST_MAP_ROTATE;
    k->desc.layout = test_random(seed) & 1 ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    k->desc.n_views = on_sphere ? 1 : 0;
    if (map == GPST_MAP_ROTATE)
        k->view.hfov = k->view.vfov = 0;
    if (k->desc.filter != GPST_FILTER_AREA && map != GPST_MAP_RESIZE && !on_sphere)
        k->desc.border = (gpst_border)(test_random(seed) % 3);
    if (map == GPST_MAP_ROI)
        pick_roi(k, seed);
    else if (map == GPST_MAP_AFFINE)
        pick_affine(k, seed);
    else if (map == GPST_MAP_TABLE)
        pick_table(k, seed);
}

/* Of AREA these families have what goes by axes; the family of footprints has the rest. */
static bool has_area(gpst_map map) { return map == GPST_MAP_RESIZE || map == GPST_MAP_ROI; }

static const gpst_map every_map[6] = {GPST_MAP_RESIZE, GPST_MAP_ROI,    GPST_MAP_EQUIRECT,
                                      GPST_MAP_AFFINE, GPST_MAP_ROTATE, GPST_MAP_TABLE};

/* ---- NV12, I420 ---------------------------------------------------------------------------------- */
static bool choose_yuv(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype dtypes[3] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F32};
    const gpst_map map = every_map[take(&choice, 6)];
    k->desc.filter = (gpst_filter)(1 + take(&choice, 3));
    k->desc.dtype = dtypes[take(&choice, 3)];
    k->source.format = take(&choice, 2) ? GPST_FORMAT_NV12 : GPST_FORMAT_I420;
    k->desc.format = take(&choice, 2) ? GPST_FORMAT_BGRA : GPST_FORMAT_RGB;
    k->desc.yuv = (gpst_yuv)take(&choice, 5);
    k->desc.siting = (gpst_siting)take(&choice, 3);
    pick_scale(k, seed, k->desc.dtype == GPST_DTYPE_I8 || (test_random(seed) & 1) != 0);
    pick_mask(k, test_random(seed) % 4 == 0);
    pick_map(k, seed, map);
    pick_rest(k, seed, map);
    return k->desc.filter != GPST_FILTER_AREA || has_area(map);
}

/* ---- the planes of JPEG ------------------------------------------------------------------------ */
static bool choose_jpeg(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype dtypes[3] = {GPST_DTYPE_U8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    const gpst_map map = every_map[take(&choice, 6)];
    k->desc.filter = (gpst_filter)(1 + take(&choice, 3));
    k->desc.dtype = dtypes[take(&choice, 3)];
    k->source.format = (gpst_format)((uint32_t)GPST_FORMAT_JPEG_444 + take(&choice, 4));
    k->desc.format = take(&choice, 2) ? GPST_FORMAT_BGRA : GPST_FORMAT_RGB;
    if (map == GPST_MAP_EQUIRECT && test_random(seed) % 4 == 0)
        k->desc.convention = GPST_CONVENTION_FFMPEG;
    pick_scale(k, seed, (test_random(seed) & 1) != 0);
    pick_mask(k, test_random(seed) % 4 == 0);
    pick_map(k, seed, map);
    pick_rest(k, seed, map);
    return k->desc.filter != GPST_FILTER_AREA || has_area(map);
}

/* ---- 16 bits and floats, every pattern of bits: NaN, infinities, subnormals -------------------------- */
static bool choose_wide(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    static const gpst_dtype sources[3] = {GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    const gpst_map map = every_map[take(&choice, 6)];
    k->desc.filter = (gpst_filter)(1 + take(&choice, 3));
    k->desc.dtype = dtypes[take(&choice, 4)];
    k->source.dtype = sources[take(&choice, 3)];
    k->source.format = (gpst_format)(1 + take(&choice, 5));
    k->desc.format = take(&choice, 2) ? GPST_FORMAT_BGRA : GPST_FORMAT_RGB;
    pick_scale(k, seed, k->desc.dtype == GPST_DTYPE_I8 || take(&choice, 2) != 0);
    pick_mask(k, test_random(seed) % 4 == 0);
    pick_map(k, seed, map);
    if (k->source.width == 200) /* of 16 bytes a pixel no more fit */
        k->source.height = 50;
    pick_rest(k, seed, map);
    return k->desc.filter != GPST_FILTER_AREA || has_area(map);
}

/* ---- conventions ----------------------------------------------------------------------------------------- */
static bool choose_conventions(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_convention conventions[8] = {
        GPST_CONVENTION_OPENCV, GPST_CONVENTION_OPENCV, GPST_CONVENTION_OPENCV, GPST_CONVENTION_OPENCV,
        GPST_CONVENTION_OPENCV, GPST_CONVENTION_OPENCV, GPST_CONVENTION_TORCH,  GPST_CONVENTION_PY360};
    static const gpst_map maps[8] = {GPST_MAP_RESIZE, GPST_MAP_ROI,   GPST_MAP_EQUIRECT, GPST_MAP_AFFINE,
                                     GPST_MAP_ROTATE, GPST_MAP_TABLE, GPST_MAP_RESIZE,   GPST_MAP_EQUIRECT};
    const uint32_t which = take(&choice, 8);
    k->desc.convention = conventions[which];
    k->desc.filter = (gpst_filter)(1 + take(&choice, 3));
    k->desc.dtype = take(&choice, 2) ? GPST_DTYPE_F32 : GPST_DTYPE_U8;
    k->source.format = take(&choice, 3) ? GPST_FORMAT_RGB : GPST_FORMAT_NV12;
    k->source.dtype = k->source.format == GPST_FORMAT_RGB && take(&choice, 2) ? GPST_DTYPE_F32 : GPST_DTYPE_U8;
    k->desc.format = GPST_FORMAT_RGB;
    pick_scale(k, seed, test_random(seed) & 1);
    pick_mask(k, test_random(seed) % 3 == 0);
    pick_map(k, seed, maps[which]);
    if (k->source.width == 200)
        k->source.height = 50;
    if (k->desc.convention == GPST_CONVENTION_PY360)
        k->desc.width++, k->desc.height++;
    pick_rest(k, seed, maps[which]);
    return k->desc.filter != GPST_FILTER_AREA || has_area(maps[which]);
}

/* ---- area of the maps that do not go by axes ------------------------------------------------------------- */
/* Smooth but for seams and entries that are no number, so that most pixels have few samples. */
static void pick_smooth_table(kit* k, uint64_t* seed) {
    pick_table(k, seed);
    const double step_x = pick_number(seed, 3), step_y = pick_number(seed, 2), turn = pick_number(seed, 1);
    const size_t row = k->desc.table_pitch_bytes ? (size_t)k->desc.table_pitch_bytes / 4 : (size_t)2 * k->desc.width;
    float* const table =
        (float*)(void*)(k->table.begin + ARENA_BYTES) - (row * (k->desc.height - 1) + 2 * k->desc.width);
    const uint32_t seam = (uint32_t)(test_random(seed) % (2 * k->desc.width));
    for (uint32_t y = 0; y < k->desc.height; y++)
        for (uint32_t x = 0; x < k->desc.width; x++)
            if (test_random(seed) % 512) {
                table[y * row + 2 * x] = (float)(step_x * x + turn * y - (x >= seam ? k->source.width : 0));
                table[y * row + 2 * x + 1] = (float)(step_y * y + turn * x);
            }
}

/* Few samples a pixel, else there would be thousands. */
static void pick_smooth(kit* k, uint64_t* seed, gpst_map map) {
    if (map == GPST_MAP_TABLE)
        pick_smooth_table(k, seed);
    if (k->desc.width * k->desc.height == 1)
        return;
    k->view.hfov = map == GPST_MAP_EQUIRECT ? 10 : 0, k->view.vfov = 0;
    for (int e = 0; map == GPST_MAP_AFFINE && e < 6; e++)
        k->affine.m[e] = e % 3 == 2 ? k->affine.m[e] : pick_number(seed, 3);
}

static bool choose_footprints(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_map maps[4] = {GPST_MAP_EQUIRECT, GPST_MAP_AFFINE, GPST_MAP_ROTATE, GPST_MAP_TABLE};
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    static const gpst_format formats[6] = {GPST_FORMAT_RGB,  GPST_FORMAT_BGR,  GPST_FORMAT_BGRA,
                                           GPST_FORMAT_GRAY, GPST_FORMAT_NV12, GPST_FORMAT_I420};
    static const gpst_dtype wide[3] = {GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    const gpst_map map = maps[take(&choice, 4)];
    const uint32_t from = take(&choice, 9);
    k->desc.filter = GPST_FILTER_AREA;
    k->desc.dtype = dtypes[take(&choice, 4)];
    k->source.format = from < 6 ? formats[from] : (gpst_format)(1 + test_random(seed) % 5);
    k->source.dtype = from < 6 ? GPST_DTYPE_U8 : wide[from - 6];
    k->desc.format = take(&choice, 2) ? GPST_FORMAT_BGRA : GPST_FORMAT_RGB;
    k->desc.yuv = (gpst_yuv)(test_random(seed) % 5), k->desc.siting = (gpst_siting)(test_random(seed) % 3);
    if (test_random(seed) % 4 == 0)
        k->desc.convention = map == GPST_MAP_EQUIRECT && from < 4 ? GPST_CONVENTION_FFMPEG : GPST_CONVENTION_OPENCV;
    pick_scale(k, seed, k->desc.dtype == GPST_DTYPE_I8 || (test_random(seed) & 1) != 0);
    pick_mask(k, test_random(seed) % 4 == 0);
    pick_map(k, seed, map);
    if (k->source.width == 200)
        k->source.height = 50;
    pick_rest(k, seed, map);
    pick_smooth(k, seed, map);
    return true;
}

/* ---- into 16 bits, from every source ------------------------------------------------------------------------ */
static bool choose_words(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype wide[3] = {GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    const gpst_map map = every_map[take(&choice, 6)];
    const uint32_t from = take(&choice, 8);
    k->desc.filter = (gpst_filter)(1 + take(&choice, 3));
    k->desc.dtype = GPST_DTYPE_U16;
    k->source.dtype = from < 3 ? wide[from] : GPST_DTYPE_U8;
    k->source.format = from < 5 ? (gpst_format)(1 + test_random(seed) % 5)
                                : (gpst_format)((uint32_t)GPST_FORMAT_NV12 + test_random(seed) % 7);
    if (k->source.format == GPST_FORMAT_TENSOR)
        k->source.format = GPST_FORMAT_RGB;
    k->desc.format = k->source.format == GPST_FORMAT_GRAY && take(&choice, 2) ? GPST_FORMAT_GRAY
                     : test_random(seed) % 2                                  ? GPST_FORMAT_BGRA
                                                                              : GPST_FORMAT_RGB;
    if (map == GPST_MAP_EQUIRECT && (from == 3 || from == 4) && test_random(seed) % 2)
        k->desc.convention = GPST_CONVENTION_FFMPEG;
    pick_scale(k, seed, (test_random(seed) & 1) != 0);
    k->desc.scale_of_full = k->desc.has_scale && (test_random(seed) & 1) != 0;
    for (int c = 0; c < 4; c++)
        k->desc.scale[c] *= k->desc.scale_of_full ? 32768.0f : 64.0f, k->desc.bias[c] *= 128.0f;
    pick_mask(k, test_random(seed) % 4 == 0);
    pick_map(k, seed, map);
    if (k->source.width == 200)
        k->source.height = 50;
    pick_rest(k, seed, map);
    if (k->desc.filter == GPST_FILTER_AREA && !has_area(map))
        pick_smooth(k, seed, map);
    return true;
}

/* ---- cubics, and fits with every filter --------------------------------------------------------------------- */
/* Any source that a warp by axes takes. */
static void pick_source(kit* k, uint64_t* seed, uint32_t from) {
    static const gpst_format formats[8] = {GPST_FORMAT_RGB,  GPST_FORMAT_BGRA,     GPST_FORMAT_GRAY,
                                           GPST_FORMAT_NV12, GPST_FORMAT_I420,     GPST_FORMAT_JPEG_420,
                                           GPST_FORMAT_RGB,  GPST_FORMAT_JPEG_422};
    static const gpst_dtype wide[3] = {GPST_DTYPE_U16, GPST_DTYPE_F16, GPST_DTYPE_F32};
    k->source.format = formats[from];
    k->source.dtype = from == 6 ? wide[test_random(seed) % 3] : GPST_DTYPE_U8;
    k->desc.yuv = (gpst_yuv)(test_random(seed) % 5), k->desc.siting = (gpst_siting)(test_random(seed) % 3);
}

static bool choose_cubics(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    static const gpst_convention conventions[3] = {GPST_CONVENTION_NATIVE, GPST_CONVENTION_OPENCV,
                                                   GPST_CONVENTION_TORCH};
    const gpst_map map = take(&choice, 2) ? GPST_MAP_ROI : GPST_MAP_RESIZE;
    k->desc.filter = take(&choice, 2) ? GPST_FILTER_BICUBIC_AREA : GPST_FILTER_BICUBIC;
    k->desc.convention = conventions[take(&choice, 3)];
    k->desc.dtype = dtypes[take(&choice, 4)];
    pick_source(k, seed, take(&choice, 8));
    k->desc.layout = take(&choice, 2) ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    k->desc.format = test_random(seed) & 1 ? GPST_FORMAT_RGBA : GPST_FORMAT_RGB;
    pick_scale(k, seed, k->desc.dtype == GPST_DTYPE_I8 || (test_random(seed) & 1) != 0);
    pick_mask(k, test_random(seed) % 4 == 0);
    pick_map(k, seed, map);
    if (test_random(seed) % 8 == 0) /* wider than a strip */
        k->source.width = 1500, k->source.height = 1 + (uint32_t)(test_random(seed) % 5);
    if (map == GPST_MAP_ROI)
        pick_roi(k, seed);
    return !(k->desc.convention == GPST_CONVENTION_TORCH && map == GPST_MAP_ROI) &&
           !(k->desc.convention == GPST_CONVENTION_OPENCV && k->desc.filter == GPST_FILTER_BICUBIC_AREA);
}

static bool choose_fits(kit* k, uint32_t choice, uint64_t* seed) {
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_I8, GPST_DTYPE_F16, GPST_DTYPE_F32};
    k->desc.fit = take(&choice, 2) ? GPST_FIT_COVER : GPST_FIT_LETTERBOX;
    k->desc.filter = (gpst_filter)(1 + take(&choice, 5));
    k->desc.dtype = dtypes[take(&choice, 4)];
    k->desc.layout = take(&choice, 2) ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    pick_source(k, seed, take(&choice, 8));
    k->desc.convention = test_random(seed) & 1 ? GPST_CONVENTION_TORCH : GPST_CONVENTION_NATIVE;
    k->desc.format = test_random(seed) & 1 ? GPST_FORMAT_BGRA : GPST_FORMAT_RGB;
    pick_scale(k, seed, k->desc.dtype == GPST_DTYPE_I8 || (test_random(seed) & 1) != 0);
    pick_mask(k, test_random(seed) % 4 == 0);
    pick_map(k, seed, GPST_MAP_RESIZE);
    if (test_random(seed) & 1) /* room for bars on every side */
        k->desc.width = 1 + (uint32_t)(test_random(seed) % 90), k->desc.height = 1 + (uint32_t)(test_random(seed) % 40);
    if (k->desc.fit == GPST_FIT_COVER && test_random(seed) % 3)
        k->desc.short_side = 1 + (uint32_t)(test_random(seed) % 60);
    for (int c = 0; c < 4; c++)
        k->desc.fill[c] = (float)(test_random(seed) % 1024) / 4.0f;
    return true;
}

/* What every compiler, option and machine must compute. A change of any formula changes it: then say so in
   the change log and put the new value here. */
static const family families[] = {
    {"bytes", 2 * 2 * 2 * 4 * 5 * 5, choose_bytes, 0x25b9939f63d0346au},
    {"maps", 4 * 2 * 2 * 3 * 3 * 2 * 3 * 2 * 2, choose_maps, 0x47521825235b73bau},
    {"resize masks", 2 * 2 * 2 * 8, choose_resize_masks, 0x27a8b07ddd62ad3bu},
    {"area", 2 * 2 * 4 * 3 * 2 * 2 * 4, choose_area, 0x1cbd480b10845559u},
    {"footprints", 4 * 9 * 4 * 2 * 2, choose_footprints, 0x11f0587c691b8328u},
    {"conventions", 8 * 3 * 2 * 3 * 2 * 16, choose_conventions, 0x9cb70ab7ceb7fbcdu},
    {"wide", 6 * 3 * 4 * 3 * 5 * 2 * 2, choose_wide, 0xf4ad4ccc6d33c609u},
    {"jpeg", 6 * 3 * 3 * 4 * 2 * 8, choose_jpeg, 0x0f88cea922325067u},
    {"words", 6 * 8 * 3 * 2 * 8, choose_words, 0x5cb8e2447af08e41u},
    {"yuv", 6 * 3 * 3 * 2 * 2 * 5 * 3, choose_yuv, 0xb5dd3b405e4731b4u},
    {"cubics", 2 * 2 * 3 * 4 * 8 * 2 * 3, choose_cubics, 0x5280cb57c049c326u},
    {"fits", 2 * 5 * 4 * 2 * 8 * 2, choose_fits, 0x9fc4d13f7c04d926u},
};
#define N_FAMILIES (sizeof families / sizeof families[0])

static tally run_family(const family* f, uint64_t seed) {
    kit k;
    tally count = {0, 0xcbf29ce484222325u};
    memset(&k, 0, sizeof k);
    k.a.source = arena_open(), k.a.mask = arena_open(), k.a.rows = arena_open(), k.a.reference = arena_open();
    k.table = arena_open();
    for (size_t i = 0; i < ARENA_BYTES; i++) {
        const uint64_t random = test_random(&seed);
        k.a.source.begin[i] = (uint8_t)random;
        k.a.mask.begin[i] = (random >> 8) % 3 == 0 ? 0 : (uint8_t)(random >> 16);
    }
    for (uint32_t choice = 0; choice < f->n_choices; choice++) {
        memset(&k.desc, 0, sizeof k.desc);
        memset(&k.source, 0, sizeof k.source);
        if (f->choose(&k, choice, &seed))
            run_case(&k.a, &k.desc, &k.source, &seed, &count);
    }
    arena_close(k.a.source), arena_close(k.a.mask), arena_close(k.a.rows), arena_close(k.a.reference);
    arena_close(k.table);
    return count;
}

/* The hashes are of the default seed. */
static void loops_give_the_bits_of_the_reference(void** state) {
    const uint64_t seed = test_seed(1);
    (void)state;
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const tally count = run_family(&families[i], seed);
        printf("%s: %u cases at %d levels\n", families[i].name, count.n_cases, (int)gpsti_simd_level_query() + 1);
        assert_true(count.n_cases > families[i].n_choices / 4);
        if (seed == 1 && count.hash != families[i].hash)
            fail_msg("%s: hash %016llx, expected %016llx", families[i].name, (unsigned long long)count.hash,
                     (unsigned long long)families[i].hash);
    }
}

/* A caller who rounds upwards and flushes subnormals gets the same bits. */
static void the_callers_mode_changes_nothing(void** state) {
    (void)state;
#if defined(__x86_64__)
    for (size_t i = 0; i < N_FAMILIES; i++) {
        const uint32_t saved = __builtin_ia32_stmxcsr();
        __builtin_ia32_ldmxcsr(saved | 0x8040 | 0x4000);
        const tally count = run_family(&families[i], 1);
        __builtin_ia32_ldmxcsr(saved);
        assert_true(count.hash == families[i].hash);
    }
#endif
}

int main(int argc, char** argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(loops_give_the_bits_of_the_reference),
        cmocka_unit_test(the_callers_mode_changes_nothing),
    };
    if (argc > 1 && strcmp(argv[1], "--hash") == 0) {
        for (size_t i = 0; i < N_FAMILIES; i++)
            printf("%s %016llx\n", families[i].name, (unsigned long long)run_family(&families[i], 1).hash);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
