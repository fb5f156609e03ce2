/* tests/fuzz/fuzz_warp.c -- any bytes as a warp's desc, its source and its outputs: what is refused has a
   reason and writes nothing; what is accepted computes within its memory, and the same twice.

   With a fuzzer (clang's), and with run_corpus.c instead of one:
   clang -fsanitize=fuzzer,address,undefined tests/fuzz/fuzz_warp.c gpustage.c
   cc tests/fuzz/fuzz_warp.c tests/fuzz/run_corpus.c gpustage.c -pthread
*/
#include "../../gpustage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes);

enum { MAX_LIST = 3, MAX_IMAGE_BYTES = 1 << 18, FILL = 0xA5 };

#define REQUIRE(holds) ((holds) ? (void)0 : stop(#holds))

static void stop(const char* rule) {
    fprintf(stderr, "fuzz_warp: does not hold: %s (last reason: %s)\n", rule, gpst_last_reason());
    abort();
}

/* ---- what the bytes say ------------------------------------------------------------------ */
typedef struct bytes_left {
    const uint8_t* data;
    size_t n;
} bytes_left;

static uint32_t take(bytes_left* left) {
    if (left->n == 0)
        return 0;
    left->n--;
    return *left->data++;
}

static int64_t take_raw(bytes_left* left) {
    uint64_t value = 0;
    for (int i = 0; i < 8; i++)
        value = value << 8 | take(left);
    return (int64_t)value;
}

/* Small sizes mostly, and those around the limits. */
static uint32_t take_side(bytes_left* left) {
    static const uint32_t edges[] = {0, 65535, 65536, 0x7fffffff, 0x80000000u, 0xffffffffu};
    const uint32_t choice = take(left);
    return choice < 6 ? edges[choice] : choice % 61 + 1;
}

static double take_number(bytes_left* left) {
    static const double edges[] = {0, -0.0, 90, 180, -180, 1e6, 1000001, 1048576, 1e300, 1e-310, 536870912.0};
    const uint32_t choice = take(left);
    if (choice < 11)
        return edges[choice];
    if (choice == 11)
        return (double)NAN;
    if (choice == 12)
        return (double)-INFINITY;
    return ((double)choice - 128) / 3 + take(left) / 256.0;
}

/* Any of the first n, or of those of JPEG and one that is none. */
static gpst_format take_format(bytes_left* left, uint32_t n) {
    const uint32_t choice = take(left);
    return (gpst_format)(choice < 200 ? choice % n : (uint32_t)GPST_FORMAT_JPEG_444 + choice % 5);
}

static int64_t take_pitch(bytes_left* left, size_t row_bytes) {
    const int64_t row = (int64_t)row_bytes, choice = take(left);
    switch (choice % 6) {
    case 0:
        return take_raw(left);
    case 1:
        return row - 1;
    case 2:
        return -row - choice % 9;
    case 3:
        return row + choice % 9;
    default:
        return 0;
    }
}

/* ---- memory of exactly the size that an image needs ------------------------------------------- */
typedef struct picture {
    gpst_image image;
    uint8_t* memory;
    size_t bytes;
    bool valid; /* as an image by itself, and small enough to be run */
} picture;

static void picture_allocate(picture* self, uint8_t fill) {
    self->valid = gpst_image_bytes(&self->image, &self->bytes) == GPST_OK && self->bytes <= MAX_IMAGE_BYTES;
    if (!self->valid)
        self->bytes = 1;
    self->memory = (uint8_t*)malloc(self->bytes);
    REQUIRE(self->memory != NULL);
    for (size_t i = 0; i < self->bytes; i++)
        self->memory[i] = fill ? fill : (uint8_t)(i * 37 + (i >> 7));
    self->image.data = self->memory;
    if (self->valid && self->image.pitch_bytes < 0)
        self->image.data = self->memory + (self->bytes - gpst_image_row_bytes(&self->image));
}

static void picture_take(picture* self, bytes_left* left) {
    memset(self, 0, sizeof *self);
    self->image.width = take_side(left);
    self->image.height = take_side(left);
    self->image.format = take_format(left, 10);
    self->image.dtype = (gpst_dtype)(take(left) % 8);
    self->image.layout = (gpst_layout)(take(left) % 4);
    self->image.pitch_bytes = take_pitch(left, gpst_image_row_bytes(&self->image));
}

/* ---- the desc ------------------------------------------------------------------------------------ */
typedef struct lists {
    gpst_view views[MAX_LIST];
    gpst_roi rois[MAX_LIST];
    gpst_affine affines[MAX_LIST];
    uint32_t n_used;
} lists;

static void take_lists(gpst_warp_desc* desc, lists* all, bytes_left* left) {
    const uint32_t which = take(left), n = which >> 4 & 3;
    all->n_used = which >> 5;
    for (int i = 0; i < MAX_LIST; i++) {
        all->views[i].yaw = take_number(left), all->views[i].pitch = take_number(left);
        all->views[i].roll = take_number(left);
        all->views[i].hfov = take_number(left), all->views[i].vfov = take_number(left);
        all->rois[i].x = (float)take_number(left), all->rois[i].y = (float)take_number(left);
        all->rois[i].width = (float)take_number(left), all->rois[i].height = (float)take_number(left);
        for (int e = 0; e < 6; e++)
            all->affines[i].m[e] = take_number(left);
    }
    if (which % 8 != 0) { /* what the map asks for */
        const bool turned = desc->map == GPST_MAP_ROTATE, seen = desc->map == GPST_MAP_EQUIRECT || turned;
        desc->views = seen ? all->views : NULL, desc->n_views = seen ? n : 0;
        desc->rois = all->rois, desc->n_rois = desc->map == GPST_MAP_ROI ? n : 0;
        desc->affines = all->affines, desc->n_affines = desc->map == GPST_MAP_AFFINE ? n : 0;
        for (int i = 0; turned && i < MAX_LIST; i++)
            all->views[i].hfov = all->views[i].vfov = 0;
        return;
    }
    desc->views = which & 8 ? all->views : NULL;
    desc->rois = which & 64 ? all->rois : NULL;
    desc->affines = which & 128 ? all->affines : NULL;
    desc->n_views = n;
    desc->n_rois = which >> 6;
    desc->n_affines = which >> 7;
}

/* NULL where there is none; a table has exactly the entries that it must. */
static float* take_table(gpst_warp_desc* desc, bytes_left* left) {
    const size_t row = (size_t)desc->width * 8;
    if (take(left) % 4 == 0 || desc->width > 64 || desc->height > 64 || desc->width * desc->height == 0)
        return NULL;
    const uint32_t choice = take(left); /* rarely a pitch that must be refused */
    desc->table_pitch_bytes = choice % 16 == 0   ? take_raw(left) | 1
                              : choice % 16 == 1 ? INT64_MAX - 3
                              : choice % 16 < 9  ? (int64_t)row + choice % 16 / 4 * 4
                                                 : 0;
    const bool refused = choice % 16 < 2;
    const size_t pitch = desc->table_pitch_bytes && !refused ? (size_t)desc->table_pitch_bytes : row;
    const size_t bytes = pitch * (desc->height - 1) + row;
    float* table = (float*)malloc(bytes);
    REQUIRE(table != NULL);
    for (size_t i = 0; i < bytes / sizeof *table; i++)
        table[i] = (float)take_number(left);
    desc->table = table;
    return table;
}

static void take_desc(gpst_warp_desc* desc, lists* all, bytes_left* left) {
    memset(desc, 0, sizeof *desc);
    desc->start_canary = take(left) == 255;
    desc->map = (gpst_map)(take(left) % 8);
    const uint32_t how = take(left), fit = how / 7 % 8; /* in half of the cases none */
    desc->filter = (gpst_filter)(how % 7);
    desc->fit = (gpst_fit)(fit < 4 ? 0 : fit - 4);
    desc->short_side = fit > 4 && how % 2 ? how : 0;
    desc->convention = (gpst_convention)(take(left) % 16 < 12 ? 0 : take(left) % 8);
    desc->border = (gpst_border)(take(left) % 4);
    desc->width = take_side(left);
    desc->height = take_side(left);
    desc->format = take_format(left, 9);
    desc->dtype = (gpst_dtype)(take(left) % 7);
    desc->layout = (gpst_layout)(take(left) % 4);
    const uint32_t flags = take(left);
    desc->has_scale = flags & 1;
    desc->rois_in_place = (flags & 6) == 6 && (desc->map == GPST_MAP_ROI || flags & 8);
    desc->list_per_item = flags >> 5 == 7;
    desc->n_rois_used = desc->rois_in_place && flags & 16 ? &all->n_used : NULL;
    for (int c = 0; c < 4; c++) {
        desc->scale[c] = (float)take_number(left);
        desc->bias[c] = (float)take_number(left);
        desc->fill[c] = desc->bias[c];
    }
    take_lists(desc, all, left);
    if (desc->list_per_item && flags & 1)
        desc->views = NULL, desc->rois = NULL, desc->affines = NULL;
}

/* ---- the run ------------------------------------------------------------------------------------- */
static uint64_t hash_of(const picture* outputs, uint32_t n) {
    uint64_t hash = 14695981039346656037u;
    for (uint32_t o = 0; o < n; o++)
        for (size_t i = 0; i < outputs[o].bytes; i++)
            hash = (hash ^ outputs[o].memory[i]) * 1099511628211u;
    return hash;
}

static void run(const gpst_warp* warp, const picture* source, bytes_left* left) {
    picture outputs[MAX_LIST];
    gpst_image images[MAX_LIST];
    const uint32_t n = gpst_warp_n_outputs(warp);
    const bool spoiled = take(left) % 8 == 7;
    bool valid = source->valid;
    REQUIRE(n >= 1 && n <= MAX_LIST);
    for (uint32_t o = 0; o < n; o++) {
        if (spoiled)
            picture_take(&outputs[o], left);
        else
            memset(&outputs[o], 0, sizeof outputs[o]), gpst_warp_query_output(warp, &outputs[o].image);
        if (!spoiled)
            outputs[o].image.pitch_bytes = take_pitch(left, gpst_image_row_bytes(&outputs[o].image));
        picture_allocate(&outputs[o], FILL);
        images[o] = outputs[o].image;
        valid = valid && outputs[o].valid;
    }
    const uint64_t before = hash_of(outputs, n);
    size_t ignored;
    for (uint32_t o = 0; o < n; o++) /* too large to be run here; what is no image must be refused */
        if (!outputs[o].valid && gpst_image_bytes(&images[o], &ignored) == GPST_OK)
            images[o].data = NULL;
    const gpst_result result = gpst_warp_run(warp, &source->image, images, n, 1);
    REQUIRE(valid || GPST_FAILED(result));
    if (GPST_FAILED(result)) {
        REQUIRE(strncmp(gpst_last_reason(), "gpst_warp_run: ", 15) == 0);
        REQUIRE(hash_of(outputs, n) == before);
    } else {
        const uint64_t after = hash_of(outputs, n);
        REQUIRE(gpst_warp_run(warp, &source->image, images, n, 1) == GPST_OK);
        REQUIRE(hash_of(outputs, n) == after);
    }
    for (uint32_t o = 0; o < n; o++)
        free(outputs[o].memory);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t bytes) {
    bytes_left left = {data, bytes};
    gpst_warp_desc desc;
    lists all;
    picture source, mask;
    gpst_warp* warp = NULL;
    take_desc(&desc, &all, &left);
    picture_take(&source, &left);
    picture_allocate(&source, 0);
    if (!source.valid)
        source.image.data = NULL;
    memset(&mask, 0, sizeof mask);
    if (take(&left) % 4 == 1) {
        picture_take(&mask, &left);
        if (take(&left) % 4 != 1) { /* one that fits */
            mask.image = source.image;
            mask.image.format = GPST_FORMAT_GRAY;
            mask.image.dtype = GPST_DTYPE_U8;
            mask.image.layout = GPST_LAYOUT_HWC;
            mask.image.pitch_bytes = 0;
        }
        picture_allocate(&mask, 0);
        size_t ignored;
        desc.mask = mask.image;
        if (!mask.valid && gpst_image_bytes(&mask.image, &ignored) == GPST_OK)
            desc.mask.data = NULL;
    }
    float* table = take_table(&desc, &left);
    desc.yuv = (gpst_yuv)(take(&left) % 6);
    desc.siting = (gpst_siting)(take(&left) % 4);
    const gpst_result result = gpst_warp_create(&desc, &warp);
    REQUIRE(GPST_FAILED(result) == (warp == NULL));
    if (warp)
        run(warp, &source, &left);
    else
        REQUIRE(strncmp(gpst_last_reason(), "gpst_", 5) == 0 && strchr(gpst_last_reason(), ':') != NULL);
    gpst_warp_destroy(warp);
    free(table);
    free(source.memory);
    free(mask.memory);
    return 0;
}
