/* tests/test_gpu_warp.cu -- the warp on a GPU against the per-pixel reference on the CPU, bit for bit: a table of
   cases by chance, many outputs, large images. Needs no library but the runtime; exits with 77 where no device
   answers.

   nvcc -O2 -x cu tests/test_gpu_warp.cu -o test_gpu_warp && ./test_gpu_warp [--quick] */
#include "test_gpu.h"

#define ARENA_BYTES ((size_t)4 << 20)

/* The same bytes on the host and on the device; everything of a case lies in it, so that a byte touched beside
   the rows is seen. */
typedef struct arena {
    uint8_t *host, *device, *back;
    size_t used, bytes;
} arena;

static arena arena_open(size_t bytes) {
    arena a;
    void* device = NULL;
    CHECK_RT(GPSTI_RT(Malloc)(&device, bytes));
    a.device = (uint8_t*)device;
    a.host = (uint8_t*)malloc(bytes + 256);
    a.back = (uint8_t*)malloc(bytes);
    CHECK(a.host && a.back, "no memory");
    a.used = 0, a.bytes = bytes;
    return a;
}

static void arena_close(arena* a) {
    CHECK_RT(GPSTI_RT(Free)(a->device));
    free(a->host);
    free(a->back);
}

/* The host's address as the device knows it. */
static void* on_device(const arena* a, const void* host) {
    return host ? a->device + ((const uint8_t*)host - a->host) : NULL;
}

static void* take(arena* a, size_t bytes, size_t align) {
    uint8_t* const begin = a->host + a->used;
    uint8_t* const at = begin + (align - (uintptr_t)begin % align) % align;
    a->used = (size_t)(at - a->host) + bytes;
    CHECK(a->used <= a->bytes, "the arena is full: %zu", a->used);
    return at;
}

/* Rows apart by chance, bottom-up by chance; half of the time as hot loops like it. */
static void place(arena* a, gpst_image* image) {
    const int64_t unit = gpst_dtype_bytes(image->dtype);
    const bool tidy = random_below(2) == 0, yuv = gpsti_image_is_yuv(image->format);
    size_t bytes = 0;
    image->pitch_bytes = 0;
    image->pitch_bytes = (int64_t)gpst_image_row_bytes(image);
    if (tidy)
        image->pitch_bytes = (image->pitch_bytes + 15) / 16 * 16;
    else if (random_below(2))
        image->pitch_bytes += (gpsti_image_is_jpeg(image->format) ? 2 : unit) * (int64_t)random_below(14);
    if (!yuv && random_below(3) == 0)
        image->pitch_bytes = -image->pitch_bytes;
    CHECK(gpst_image_bytes(image, &bytes) == GPST_OK, "bytes");
    uint8_t* const lowest = (uint8_t*)take(a, bytes, tidy ? 16 : (size_t)unit);
    image->data = lowest;
    image->data = lowest + (lowest - gpsti_image_lowest(image));
    if (!tidy)
        a->used += random_below(7);
}

/* ---- a case ------------------------------------------------------------------------------ */
enum { MAX_OUTPUTS = 80, MAX_SOURCES = 3 };

typedef struct test_case {
    gpst_warp_desc desc;
    gpst_view views[MAX_OUTPUTS];
    gpst_roi rois[MAX_OUTPUTS];
    gpst_affine affines[MAX_OUTPUTS];
    gpst_image sources[MAX_SOURCES], outputs[MAX_SOURCES * MAX_OUTPUTS];
    uint32_t n_sources, n_per_source;
} test_case;

/* area: none so wide that an output pixel has thousands of samples. */
static gpst_view pick_view(gpst_map map, bool area) {
    gpst_view view = GPST_ZERO;
    view.yaw = (double)random_below(720) - 360, view.pitch = (double)random_below(181) - 90;
    view.roll = view.yaw - view.pitch;
    switch (random_below(7)) {
    case 0:
        view.yaw = 0, view.pitch = 0, view.roll = 0;
        break;
    case 1:
        view.yaw = 180, view.pitch = 0, view.roll = 0;
        break;
    case 2:
        view.yaw = 0, view.pitch = 90, view.roll = 0;
        break;
    case 3:
        view.yaw = 45, view.pitch = -90, view.roll = 30;
        break;
    case 4:
        view.yaw = -179.5 + 1e-9, view.pitch = 1e-12, view.roll = 0;
        break;
    default:
        break;
    }
    if (map == GPST_MAP_EQUIRECT) {
        view.hfov = random_below(4) ? 40 + random_below(100) : random_below(2) || area ? 1e-4 : 179.9;
        view.vfov = random_below(4) || area ? 0 : 179.9;
    }
    return view;
}

static void pick_lists(test_case* t, uint32_t w, uint32_t h) {
    for (uint32_t i = 0; i < t->n_sources * t->n_per_source; i++) { /* in place each source has its own */
        t->views[i] = pick_view(t->desc.map, t->desc.filter == GPST_FILTER_AREA);
        t->rois[i].x = ((float)random_below(2000) / 1000.0f - 0.5f) * (float)w;
        t->rois[i].y = ((float)random_below(2000) / 1000.0f - 0.5f) * (float)h;
        t->rois[i].width = 0.01f + (float)random_below(2000) / 1000.0f * (float)w;
        t->rois[i].height = 0.01f + (float)random_below(2000) / 1000.0f * (float)h;
        for (int e = 0; e < 6; e++)
            t->affines[i].m[e] = ((double)random_below(4000) - 2000) / (e % 3 == 2 ? 20.0 : 1000.0);
    }
}

/* Another project's, of those that the map has. */
static gpst_convention pick_convention(gpst_map map) {
    if (map == GPST_MAP_EQUIRECT && random_below(2))
        return random_below(2) ? GPST_CONVENTION_FFMPEG : GPST_CONVENTION_PY360;
    return map == GPST_MAP_RESIZE && random_below(2) ? GPST_CONVENTION_TORCH : GPST_CONVENTION_OPENCV;
}

static void pick_fit(gpst_warp_desc* d) {
    d->fit = random_below(2) ? GPST_FIT_COVER : GPST_FIT_LETTERBOX;
    d->short_side = d->fit == GPST_FIT_COVER ? random_below(90) : 0;
    for (int c = 0; c < 4; c++)
        d->fill[c] = (float)random_below(1024) / 4.0f;
}

static void pick_choices(test_case* t) {
    gpst_warp_desc* d = &t->desc;
    d->map = (gpst_map)(1 + random_below(6));
    const bool axes = d->map == GPST_MAP_RESIZE || d->map == GPST_MAP_ROI;
    d->filter = (gpst_filter)(1 + random_below(axes ? 5 : 3));
    if (random_below(2))
        d->filter = GPST_FILTER_BILINEAR;
    if (random_below(4) == 0)
        d->convention = pick_convention(d->map);
    if (d->filter == GPST_FILTER_BICUBIC_AREA && d->convention == GPST_CONVENTION_OPENCV) /* has none */
        d->filter = GPST_FILTER_BICUBIC;
    if (d->map == GPST_MAP_RESIZE && random_below(2))
        pick_fit(d);
    if (d->map == GPST_MAP_AFFINE || d->map == GPST_MAP_TABLE)
        d->border = (gpst_border)random_below(3);
    if (d->map == GPST_MAP_ROI && d->filter <= GPST_FILTER_BILINEAR) /* the others' edges repeat there */
        d->border = (gpst_border)random_below(3);
    d->format = (gpst_format)(1 + random_below(5));
    d->dtype = (gpst_dtype)(1 + random_below(5));
    d->layout = random_below(2) ? GPST_LAYOUT_CHW : GPST_LAYOUT_HWC;
    if (random_below(2)) { /* what the hot loops take, more often than by chance */
        d->format = random_below(2) ? GPST_FORMAT_RGB : GPST_FORMAT_BGR;
        d->layout = d->dtype == GPST_DTYPE_U8 ? GPST_LAYOUT_HWC : GPST_LAYOUT_CHW;
    }
    d->has_scale = d->dtype == GPST_DTYPE_I8 || random_below(2);
    for (int c = 0; c < 4; c++) {
        d->scale[c] = (float)((double)random_below(2048) / 512.0 - 1.0);
        d->bias[c] = (float)((double)random_below(2048) / 16.0 - 60.0);
    }
    d->yuv = (gpst_yuv)random_below(5);
    d->siting = (gpst_siting)random_below(3);
    t->n_sources = 1 + random_below(MAX_SOURCES);
    t->n_per_source = axes && d->map == GPST_MAP_RESIZE ? 1 : d->map == GPST_MAP_TABLE ? 1 : 1 + random_below(4);
    d->n_views = d->map == GPST_MAP_EQUIRECT || d->map == GPST_MAP_ROTATE ? t->n_per_source : 0;
    d->n_rois = d->map == GPST_MAP_ROI ? t->n_per_source : 0;
    d->n_affines = d->map == GPST_MAP_AFFINE ? t->n_per_source : 0;
}

static gpst_format pick_source_format(const gpst_warp_desc* d) {
    if (d->format == GPST_FORMAT_GRAY)
        return GPST_FORMAT_GRAY;
    if (random_below(2))
        return random_below(2) ? GPST_FORMAT_RGB : GPST_FORMAT_BGR;
    if (random_below(3) == 0)
        return (gpst_format)(9 + random_below(4)); /* of JPEG */
    const gpst_format format = (gpst_format)(1 + random_below(7));
    return gpsti_image_is_yuv(format) && d->convention == GPST_CONVENTION_FFMPEG ? GPST_FORMAT_BGRA : format;
}

static void fill(uint8_t* begin, const uint8_t* end) {
    for (; begin < end; begin++)
        *begin = (uint8_t)random_next();
}

static void pick_table(test_case* t, arena* a, uint32_t w, uint32_t h) {
    gpst_warp_desc* d = &t->desc;
    d->table_pitch_bytes = (int64_t)d->width * 8 + 4 * random_below(3);
    float* const table = (float*)take(a, (size_t)d->table_pitch_bytes * d->height, 4);
    const bool smooth = d->filter == GPST_FILTER_AREA; /* else thousands of samples a pixel */
    const size_t row = (size_t)d->table_pitch_bytes / 4;
    const float step = (float)random_below(3000) / 1000.0f;
    for (size_t i = 0; i < row * d->height; i++)
        table[i] = smooth && random_below(256) ? step * (float)((i % row + i / row) / 2) - (float)((i % row) & 1)
                                               : ((float)random_below(3000) / 1000.0f - 1.0f) * (float)(i % 2 ? h : w);
    d->table = table;
}

/* Of one rectangle a number that is out of range, and what it is taken for. area: none so wide that all of the source
   is in each output pixel. */
static void spoil(gpst_roi* given, gpst_roi* kept, bool area) {
    const float most = 1048576.0f, none = 1e-9f /* which is rounded to 0 */, nan = gpsti_f32_from_bits(0x7fc00000u);
    switch (random_below(area ? 4 : 8)) {
    case 0:
        given->x = nan, kept->x = -most;
        break;
    case 1:
        given->y = 3 * most, kept->y = most;
        break;
    case 2:
        given->width = -given->width, kept->width = none;
        break;
    case 3:
        given->height = nan, kept->height = none;
        break;
    case 4:
        given->width = 1e30f, kept->width = most;
        break;
    default:
        break;
    }
}

/* Rectangles and counts in the device's memory; t->rois stays what they are taken for. */
static void pick_rois_in_place(test_case* t, arena* a) {
    const uint32_t n = t->n_sources * t->n_per_source;
    if (t->desc.map != GPST_MAP_ROI || random_below(2))
        return;
    gpst_roi* const list = (gpst_roi*)take(a, n * sizeof *list, 4);
    uint32_t* const used = (uint32_t*)take(a, t->n_sources * sizeof *used, 4);
    memcpy(list, t->rois, n * sizeof *list);
    for (uint32_t i = 0; i < n; i++)
        spoil(&list[i], &t->rois[i], t->desc.filter == GPST_FILTER_AREA);
    for (uint32_t s = 0; s < t->n_sources; s++)
        used[s] = random_below(t->n_per_source + 2);
    t->desc.rois_in_place = true;
    t->desc.rois = list;
    t->desc.n_rois_used = random_below(3) ? used : NULL;
}

static void pick_images(test_case* t, arena* a) {
    static const uint32_t sides[12][2] = {{1, 1},   {2, 1},    {1, 2},     {3, 3},  {5, 4},     {4, 2},
                                          {64, 33}, {131, 67}, {200, 100}, {97, 1}, {301, 150}, {256, 128}};
    static const uint32_t outs[12][2] = {{1, 1},   {2, 3},  {3, 2},  {63, 2},   {64, 3},   {65, 2},
                                         {129, 3}, {37, 9}, {1, 37}, {160, 35}, {132, 17}, {128, 16}};
    const uint32_t* from = sides[random_below(12)];
    const uint32_t* to = outs[random_below(12)];
    const gpst_format format = pick_source_format(&t->desc);
    const uint32_t least = t->desc.convention == GPST_CONVENTION_PY360 ? 2 : 1;
    t->desc.width = to[0] < least ? least : to[0], t->desc.height = to[1] < least ? least : to[1];
    pick_lists(t, from[0], from[1]);
    gpst_image first = GPST_ZERO;
    first.width = from[0], first.height = from[1], first.format = format;
    if (!gpsti_image_is_yuv(format) && t->desc.convention != GPST_CONVENTION_FFMPEG && random_below(4) == 0)
        first.dtype = random_below(3) == 0   ? GPST_DTYPE_U16
                      : random_below(2) == 0 ? GPST_DTYPE_F16
                                             : GPST_DTYPE_F32;
    for (uint32_t s = 0; s < t->n_sources; s++) {
        t->sources[s] = first;
        place(a, &t->sources[s]);
    }
    if (random_below(3) == 0) {
        gpst_image* mask = &t->desc.mask;
        mask->width = from[0], mask->height = from[1], mask->format = GPST_FORMAT_GRAY;
        mask->dtype = GPST_DTYPE_U8;
        place(a, mask);
    }
    fill(a->host, a->host + a->used);
    for (size_t i = 0; t->desc.mask.data && i < a->used; i++) /* a third of what the mask might be is dropped */
        a->host[i] = i % 3 == 0 && random_below(2) ? 0 : a->host[i];
    if (t->desc.map == GPST_MAP_TABLE)
        pick_table(t, a, from[0], from[1]);
    pick_rois_in_place(t, a);
}

static gpst_warp* create(const gpst_warp_desc* desc) {
    gpst_warp* warp = NULL;
    CHECK(gpst_warp_create(desc, &warp) == GPST_OK, "create");
    return warp;
}

static void place_outputs(test_case* t, arena* a, const gpst_warp* warp) {
    const size_t begin = a->used;
    gpst_image shape;
    gpst_warp_query_output(warp, &shape);
    shape.dtype = t->desc.dtype;
    for (uint32_t i = 0; i < t->n_sources * t->n_per_source; i++) {
        t->outputs[i] = shape;
        place(a, &t->outputs[i]);
    }
    memset(a->host + begin, 0xa5, a->bytes - begin);
}

static void launch_case(const test_case* t, arena* a) {
    gpst_warp_desc desc = t->desc;
    gpst_image sources[MAX_SOURCES], outputs[MAX_SOURCES * MAX_OUTPUTS];
    const uint32_t n = t->n_sources * t->n_per_source;
    desc.mask.data = on_device(a, desc.mask.data);
    desc.table = (const float*)on_device(a, desc.table);
    if (desc.rois_in_place) {
        desc.rois = (const gpst_roi*)on_device(a, desc.rois);
        desc.n_rois_used = (const uint32_t*)on_device(a, desc.n_rois_used);
    }
    for (uint32_t s = 0; s < t->n_sources; s++) {
        sources[s] = t->sources[s];
        sources[s].data = on_device(a, sources[s].data);
    }
    for (uint32_t o = 0; o < n; o++) {
        outputs[o] = t->outputs[o];
        outputs[o].data = on_device(a, outputs[o].data);
    }
    gpst_warp* const warp = create(&desc);
    CHECK_RT(GPSTI_RT(MemcpyAsync)(a->device, a->host, a->bytes, GPSTI_RT(MemcpyHostToDevice), stream));
    CHECK(gpst_warp_launch(warp, sources, t->n_sources, outputs, n, stream) == GPST_OK, "launch");
    CHECK_RT(GPSTI_RT(MemcpyAsync)(a->back, a->device, a->bytes, GPSTI_RT(MemcpyDeviceToHost), stream));
    CHECK_RT(GPSTI_RT(StreamSynchronize)(stream));
    gpst_warp_destroy(warp);
}

static void explain(const test_case* t, const arena* a, uint32_t number) {
    size_t at = 0, n = 0;
    for (size_t i = 0; i < a->bytes; i++)
        if (a->host[i] != a->back[i]) {
            at = n ? at : i;
            n++;
        }
    uint32_t o = 0;
    while (o + 1 < t->n_sources * t->n_per_source && gpsti_image_lowest(&t->outputs[o + 1]) <= a->host + at)
        o++;
    printf("case %u: map %d filter %d convention %d border %d dtype %d layout %d format %d scale %d mask %d, source "
           "%ux%u format %d dtype %d pitch %lld, output %ux%u pitch %lld, in place %d, fit %d %u: %zu bytes differ, "
           "first byte %ld of output %u: %d, reference %d\n",
           number, (int)t->desc.map, (int)t->desc.filter, (int)t->desc.convention, (int)t->desc.border,
           (int)t->desc.dtype, (int)t->desc.layout, (int)t->desc.format, t->desc.has_scale, t->desc.mask.data != NULL,
           t->sources[0].width, t->sources[0].height, (int)t->sources[0].format, (int)t->sources[0].dtype,
           (long long)t->sources[0].pitch_bytes, t->desc.width, t->desc.height, (long long)t->outputs[o].pitch_bytes,
           t->desc.rois_in_place, (int)t->desc.fit, t->desc.short_side, n,
           (long)(a->host + at - (uint8_t*)t->outputs[o].data), o, a->back[at], a->host[at]);
    exit(1);
}

/* The reference into the host's bytes, then all bytes compared. */
static void compare_case(const test_case* t, arena* a, uint32_t number) {
    for (uint32_t s = 0; s < t->n_sources; s++) {
        gpst_warp_desc desc = t->desc;
        const uint32_t n_used = desc.n_rois_used ? desc.n_rois_used[s] : UINT32_MAX;
        if (desc.rois_in_place)
            desc.rois = t->rois + s * t->n_per_source, desc.rois_in_place = false, desc.n_rois_used = NULL;
        gpst_warp* const warp = create(&desc);
        for (uint32_t o = 0; o < t->n_per_source && o < n_used; o++) {
            gpsti_warp_job job;
            gpsti_warp_job_init(warp, &t->sources[s], &t->outputs[s * t->n_per_source + o], o, &job);
            gpsti_warp_rows_reference(&job, 0, job.output_height);
        }
        gpst_warp_destroy(warp);
    }
    if (memcmp(a->host, a->back, a->bytes) != 0)
        explain(t, a, number);
}

static void test_cases_by_chance(uint32_t n_cases) {
    arena a = arena_open(ARENA_BYTES);
    static test_case t;
    for (uint32_t i = 0; i < n_cases; i++) {
        memset(&t, 0, sizeof t);
        t.desc.views = t.views, t.desc.rois = t.rois, t.desc.affines = t.affines;
        a.used = 0;
        pick_choices(&t);
        pick_images(&t, &a);
        gpst_warp* const warp = create(&t.desc);
        place_outputs(&t, &a, warp);
        gpst_warp_destroy(warp);
        launch_case(&t, &a);
        compare_case(&t, &a, i);
    }
    printf("cases by chance: %u\n", n_cases);
    arena_close(&a);
}

/* ---- one large source, many outputs --------------------------------------------------------- */
/* More rectangles than a grid's z may have, of a source whose last pixels lie beyond 2^31 bytes, one small output
   each; a sample of them is computed on the CPU, of the rows that it needs. */
static void test_rois(uint32_t n_rois, uint32_t w, uint32_t h) {
    const size_t source_bytes = (size_t)w * 3 * h, out_bytes = 6 * 4 * 3, all = n_rois * out_bytes + 64;
    gpst_roi* const rois = (gpst_roi*)calloc(n_rois, sizeof *rois);
    gpst_image* const outputs = (gpst_image*)calloc(n_rois, sizeof *outputs);
    uint8_t *const pixels = (uint8_t*)malloc(source_bytes), *const back = (uint8_t*)malloc(all);
    void *device_source = NULL, *device_out = NULL;
    CHECK(rois && outputs && pixels && back, "no memory");
    for (size_t i = 0; i < source_bytes; i++)
        pixels[i] = (uint8_t)((i * 2654435761u) >> 13 ^ i >> 7);
    CHECK_RT(GPSTI_RT(Malloc)(&device_source, source_bytes));
    CHECK_RT(GPSTI_RT(Malloc)(&device_out, all));
    CHECK_RT(GPSTI_RT(MemcpyAsync)(device_source, pixels, source_bytes, GPSTI_RT(MemcpyHostToDevice), stream));
    CHECK_RT(GPSTI_RT(MemsetAsync)(device_out, 0xa5, all, stream));
    gpst_warp_desc desc = GPST_ZERO;
    gpst_image source = GPST_ZERO, device_image;
    source.data = pixels, source.width = w, source.height = h, source.format = GPST_FORMAT_RGB;
    device_image = source, device_image.data = device_source;
    for (uint32_t i = 0; i < n_rois; i++) {
        rois[i].width = 1.0f + (float)random_below(64), rois[i].height = 1.0f + (float)random_below(64);
        rois[i].x = (float)random_below(w), rois[i].y = i % 2 ? (float)(h - 40) : (float)random_below(h);
    }
    desc.map = GPST_MAP_ROI, desc.rois = rois, desc.n_rois = n_rois;
    desc.width = 6, desc.height = 4, desc.format = GPST_FORMAT_BGR;
    gpst_warp* const warp = create(&desc);
    for (uint32_t i = 0; i < n_rois; i++) {
        gpst_warp_query_output(warp, &outputs[i]);
        outputs[i].data = (uint8_t*)device_out + i * out_bytes;
    }
    CHECK(gpst_warp_launch(warp, &device_image, 1, outputs, n_rois, stream) == GPST_OK, "launch");
    CHECK_RT(GPSTI_RT(StreamSynchronize)(stream));
    CHECK_RT(GPSTI_RT(Memcpy)(back, device_out, all, GPSTI_RT(MemcpyDeviceToHost)));
    for (uint32_t i = 0; i < n_rois; i++) {
        uint8_t expected[6 * 4 * 3];
        gpsti_warp_job job;
        gpst_image output = outputs[i];
        output.data = expected;
        gpsti_warp_job_init(warp, &source, &output, i, &job);
        gpsti_warp_rows_reference(&job, 0, job.output_height);
        CHECK(memcmp(expected, back + i * out_bytes, out_bytes) == 0, "roi %u", i);
    }
    for (size_t i = n_rois * out_bytes; i < all; i++)
        CHECK(back[i] == 0xa5, "a byte behind the outputs");
    printf("rectangles: %u of a source of %.2f GB\n", n_rois, (double)source_bytes / 1e9);
    gpst_warp_destroy(warp);
    CHECK_RT(GPSTI_RT(Free)(device_source));
    CHECK_RT(GPSTI_RT(Free)(device_out));
    free(rois), free(outputs), free(pixels), free(back);
}

/* Whole frames as applications have them, against the CPU's loops. */
static void test_frame(gpst_map map, gpst_filter filter, gpst_format from, gpst_dtype dtype, uint32_t w, uint32_t h,
                       uint32_t n) {
    gpst_warp_desc desc = GPST_ZERO;
    gpst_view views[8];
    gpst_image source = GPST_ZERO, shape;
    size_t bytes = 0, source_bytes = 0;
    memset(views, 0, sizeof views);
    for (uint32_t i = 0; i < n; i++)
        views[i].yaw = 360.0 / n * i, views[i].pitch = i == 3 ? 83 : 0, views[i].roll = i == 4 ? 12 : 0;
    desc.map = map, desc.filter = filter, desc.views = views, desc.n_views = map == GPST_MAP_EQUIRECT ? n : 0;
    desc.width = w, desc.height = h, desc.format = GPST_FORMAT_RGB, desc.dtype = dtype;
    desc.layout = dtype == GPST_DTYPE_U8 ? GPST_LAYOUT_HWC : GPST_LAYOUT_CHW;
    desc.has_scale = dtype == GPST_DTYPE_F16 || dtype == GPST_DTYPE_F32;
    for (int c = 0; c < 3; c++)
        desc.scale[c] = 1.0f / (58.395f + (float)c), desc.bias[c] = -2.1f - 0.1f * (float)c;
    gpst_warp* const warp = create(&desc);
    const uint32_t n_outputs = gpst_warp_n_outputs(warp);
    gpst_warp_query_output(warp, &shape);
    source.width = 1920, source.height = 960, source.format = from;
    CHECK(gpst_image_bytes(&shape, &bytes) == GPST_OK && gpst_image_bytes(&source, &source_bytes) == GPST_OK, "");
    arena a = arena_open(source_bytes + n_outputs * (bytes + 256) + 4096);
    source.data = take(&a, source_bytes, 16);
    fill(a.host, a.host + a.used);
    memset(a.host + a.used, 0xa5, a.bytes - a.used);
    gpst_image outputs[8], device[8], device_source = source;
    for (uint32_t o = 0; o < n_outputs; o++) {
        outputs[o] = shape;
        outputs[o].data = take(&a, bytes, 256);
        device[o] = outputs[o];
        device[o].data = on_device(&a, outputs[o].data);
    }
    device_source.data = on_device(&a, source.data);
    CHECK_RT(GPSTI_RT(MemcpyAsync)(a.device, a.host, a.bytes, GPSTI_RT(MemcpyHostToDevice), stream)); /* in its order */
    CHECK(gpst_warp_launch(warp, &device_source, 1, device, n_outputs, stream) == GPST_OK, "launch");
    CHECK_RT(GPSTI_RT(StreamSynchronize)(stream));
    CHECK_RT(GPSTI_RT(Memcpy)(a.back, a.device, a.bytes, GPSTI_RT(MemcpyDeviceToHost)));
    CHECK(gpst_warp_run(warp, &source, outputs, n_outputs, 0) == GPST_OK, "run");
    CHECK(memcmp(a.host, a.back, a.bytes) == 0, "map %d, format %d, dtype %d", (int)map, (int)from, (int)dtype);
    gpst_warp_destroy(warp);
    arena_close(&a);
}

static void test_frames(void) {
    static const gpst_format formats[9] = {GPST_FORMAT_RGB,      GPST_FORMAT_BGR,      GPST_FORMAT_BGRA,
                                           GPST_FORMAT_NV12,     GPST_FORMAT_I420,     GPST_FORMAT_JPEG_444,
                                           GPST_FORMAT_JPEG_422, GPST_FORMAT_JPEG_420, GPST_FORMAT_JPEG_440};
    static const gpst_dtype dtypes[4] = {GPST_DTYPE_U8, GPST_DTYPE_F16, GPST_DTYPE_F32, GPST_DTYPE_U16};
    for (int f = 0; f < 9; f++)
        for (int d = 0; d < 4; d++) {
            test_frame(GPST_MAP_EQUIRECT, GPST_FILTER_BILINEAR, formats[f], dtypes[d], 481, 271, 8);
            /* whole tiles, rows of words */
            test_frame(GPST_MAP_EQUIRECT, GPST_FILTER_BILINEAR, formats[f], dtypes[d], 512, 300, 8);
            test_frame(GPST_MAP_RESIZE, GPST_FILTER_BILINEAR, formats[f], dtypes[d], 512, 512, 1);
            test_frame(GPST_MAP_RESIZE, GPST_FILTER_AREA, formats[f], dtypes[d], 300, 200, 1);
            test_frame(GPST_MAP_RESIZE, GPST_FILTER_AREA, formats[f], dtypes[d], 9, 5, 1); /* wide windows */
            test_frame(GPST_MAP_RESIZE, GPST_FILTER_BICUBIC, formats[f], dtypes[d], 300, 200, 1);
            test_frame(GPST_MAP_RESIZE, GPST_FILTER_BICUBIC, formats[f], dtypes[d], 9, 5, 1);
            test_frame(GPST_MAP_RESIZE, GPST_FILTER_BICUBIC_AREA, formats[f], dtypes[d], 300, 200, 1);
            test_frame(GPST_MAP_RESIZE, GPST_FILTER_BICUBIC_AREA, formats[f], dtypes[d], 9, 5, 1);
        }
    printf("whole frames: 324\n");
}

int main(int argc, char** argv) {
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const char* const text = getenv("GPST_SEED");
    const uint32_t n_cases = quick ? 200 : 6000;
    int n_devices = 0;
    const gpsti_rt_error error = GPSTI_RT(GetDeviceCount)(&n_devices);
    if (error != GPSTI_RT(Success) || n_devices == 0) {
        printf("skipped: no device: %s\n", GPSTI_RT(GetErrorString)(error));
        return 77;
    }
    seed_of_all = text ? strtoull(text, NULL, 0) : 41;
    printf("seed %llu (set GPST_SEED to replay)\n", (unsigned long long)seed_of_all);
    CHECK_RT(GPSTI_RT(StreamCreateWithFlags)(&stream, GPSTI_RT(StreamNonBlocking)));
    test_cases_by_chance(n_cases);
    if (!quick)
        test_frames();
    test_rois(quick ? 200 : 70000, quick ? 640 : 30000, quick ? 480 : 24000);
    CHECK_RT(GPSTI_RT(StreamDestroy)(stream));
    return 0;
}
