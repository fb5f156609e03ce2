/* tests/test_gpu_mask.cu -- masks on a GPU against the per-pixel references on the CPU, bit for bit: tables of cases
   by chance, several items a launch, large images, a graph. Needs no library but the runtime; exits with 77 where no
   device answers.

   nvcc -O2 -x cu tests/test_gpu_mask.cu -o test_gpu_mask && ./test_gpu_mask [--quick] */
#include "test_gpu_mask.h"

#define MAX_ITEMS 3

/* ---- images and labels -------------------------------------------------------------------- */
static int64_t pick_pitch(size_t row_bytes, size_t unit) {
    if (tidy)
        return (int64_t)((row_bytes + 15) / 16 * 16);
    return (int64_t)(row_bytes + (random_below(2) ? 0 : unit * random_below(14)));
}

static gpst_image place_image(arena* a, uint32_t width, uint32_t height, gpst_format format, gpst_dtype dtype) {
    gpst_image image = GPST_ZERO;
    size_t bytes = 0;
    image.width = width, image.height = height;
    image.format = format, image.dtype = dtype;
    image.pitch_bytes = pick_pitch(gpst_image_row_bytes(&image), gpst_dtype_bytes(dtype));
    CHECK_OK(gpst_image_bytes(&image, &bytes));
    image.data = take(a, bytes, gpst_dtype_bytes(dtype));
    if (random_below(3) == 0) { /* bottom up */
        image.data = (uint8_t*)image.data + (size_t)(height - 1) * (size_t)image.pitch_bytes;
        image.pitch_bytes = -image.pitch_bytes;
    }
    return image;
}

static gpst_image image_on_device(const arena* a, const gpst_image* image) {
    gpst_image moved = *image;
    moved.data = on_device(a, image->data);
    return moved;
}

static gpst_labels place_labels(arena* a, uint32_t n_classes, uint32_t width, uint32_t height) {
    gpst_labels labels = GPST_ZERO;
    const size_t unit = n_classes > 256 ? 2 : 1;
    labels.n_classes = n_classes;
    labels.width = width, labels.height = height;
    labels.pitch_bytes = pick_pitch(width * unit, unit);
    labels.data = take(a, (size_t)labels.pitch_bytes * (height - 1) + width * unit, unit);
    return labels;
}

static gpst_labels labels_on_device(const arena* a, const gpst_labels* labels) {
    gpst_labels moved = *labels;
    moved.data = on_device(a, labels->data);
    return moved;
}

/* ---- argmax --------------------------------------------------------------------------------- */
static gpst_logits place_logits(uint32_t n_classes, uint32_t width, uint32_t height, gpst_dtype dtype,
                                gpst_layout layout) {
    gpst_logits logits = GPST_ZERO;
    const bool planes = layout == GPST_LAYOUT_CHW;
    const size_t unit = gpst_dtype_bytes(dtype), row = (size_t)width * unit * (planes ? 1 : n_classes);
    logits.n_classes = n_classes;
    logits.width = width, logits.height = height;
    logits.dtype = dtype, logits.layout = layout;
    logits.pitch_bytes = pick_pitch(row, unit);
    size_t bytes = (size_t)logits.pitch_bytes * (height - 1) + row;
    if (planes) {
        logits.plane_bytes = logits.pitch_bytes * height + (int64_t)(tidy ? 0 : unit * random_below(3));
        bytes += (size_t)logits.plane_bytes * (n_classes - 1);
    }
    logits.data = take(&source, bytes, unit);
    return logits;
}

static void test_argmax(uint32_t n_cases) {
    static const uint32_t classes[] = {1, 2, 3, 4, 5, 6, 7, 8, 13, 14, 15, 21, 33, 64, 256, 257, 300};
    static const uint32_t sizes[][2] = {{1, 1},  {2, 1},  {1, 3},  {3, 2},  {63, 2},
                                        {64, 1}, {65, 3}, {17, 5}, {40, 9}, {256, 3}};
    static const uint32_t targets[][2] = {{1, 1},  {2, 3},    {5, 4},  {64, 7},   {65, 20}, {131, 37},
                                          {17, 40}, {270, 101}, {3, 1}, {129, 300}, {700, 5}, {66, 3}};
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        const gpst_dtype dtype = choice & 1 ? GPST_DTYPE_F16 : GPST_DTYPE_F32;
        const gpst_layout layout = choice & 2 ? GPST_LAYOUT_HWC : GPST_LAYOUT_CHW;
        const uint32_t n_classes = classes[choice / 8 % 17], n_items = 1 + random_below(n_classes > 64 ? 1 : MAX_ITEMS);
        const uint32_t* size = sizes[random_below(n_classes > 64 ? 7 : 10)];
        const uint32_t* target = choice & 4 ? targets[random_below(12)] : size;
        gpst_logits logits[MAX_ITEMS], device_logits[MAX_ITEMS];
        gpst_labels labels[MAX_ITEMS], device_labels[MAX_ITEMS];
        tidy = random_below(2);
        arenas_begin();
        for (uint32_t i = 0; i < n_items; i++) {
            logits[i] = place_logits(n_classes, size[0], size[1], dtype, layout);
            labels[i] = place_labels(&output, n_classes, target[0], target[1]);
            if (i && random_below(2)) { /* the pitches of the first, so that they share a launch */
                logits[i].pitch_bytes = logits[0].pitch_bytes, logits[i].plane_bytes = logits[0].plane_bytes;
                logits[i].data = logits[0].data;
            }
        }
        fill_scores(dtype, choice / 8 % 5);
        arenas_upload(4);
        for (uint32_t i = 0; i < n_items; i++) {
            gpsti_argmax_job job;
            CHECK_OK(gpsti_argmax_job_init(&logits[i], &labels[i], &job));
            gpsti_argmax_rows_reference(&job, 0, job.height);
            device_logits[i] = logits[i];
            device_logits[i].data = on_device(&source, logits[i].data);
            device_labels[i] = labels_on_device(&output, &labels[i]);
        }
        CHECK_OK(gpst_mask_argmax_launch(device_logits, device_labels, n_items, stream));
        arenas_compare("argmax", choice, n_classes);
    }
    printf("argmax: %u cases\n", n_cases);
}

/* ---- thresholds, bits --------------------------------------------------------------------------- */
static void test_thresholds(uint32_t n_cases) {
    static const uint32_t widths[] = {1, 2, 3, 31, 63, 64, 65, 127, 200, 512, 4099};
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        const gpst_dtype dtype = (gpst_dtype)(1 + choice % 3);
        const uint32_t width = widths[random_below(11)], height = 1 + random_below(4),
                       n_items = 1 + random_below(MAX_ITEMS);
        const bool is_sigmoid = dtype != GPST_DTYPE_U8 && random_below(4) == 0;
        const double probability = (double)random_below(1001) / 1000;
        float threshold =
            dtype == GPST_DTYPE_U8 ? (float)((double)random_below(1100) / 4 - 5) : pick_f32(random_below(5));
        gpst_image from[MAX_ITEMS], to[MAX_ITEMS], device_from[MAX_ITEMS], device_to[MAX_ITEMS];
        if (!(threshold <= 0 || threshold > 0))
            threshold = -gpsti_f32_from_bits(0x7f800000);
        if (is_sigmoid)
            threshold = gpst_logit(probability);
        tidy = random_below(2);
        arenas_begin();
        for (uint32_t i = 0; i < n_items; i++) {
            from[i] = place_image(&source, width, height, GPST_FORMAT_GRAY, dtype);
            to[i] = place_image(&output, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
        }
        fill_scores(dtype, choice / 3 % 5);
        arenas_upload(4);
        for (uint32_t i = 0; i < n_items; i++) {
            gpsti_mask_job job;
            CHECK_OK(gpsti_threshold_job_init("test", &from[i], threshold, &to[i], &job));
            gpsti_mask_rows_reference(&job, 0, job.height);
            device_from[i] = image_on_device(&source, &from[i]);
            device_to[i] = image_on_device(&output, &to[i]);
        }
        if (is_sigmoid)
            CHECK_OK(gpst_mask_threshold_sigmoid_launch(device_from, probability, device_to, n_items, stream));
        else
            CHECK_OK(gpst_mask_threshold_launch(device_from, threshold, device_to, n_items, stream));
        arenas_compare("threshold", choice, width);
    }
    printf("thresholds: %u cases\n", n_cases);
}

/* Masks of few or many pixels, in every non-zero value. */
static void fill_mask(uint32_t kind) {
    for (size_t i = 0; i < source.used; i++) {
        const uint64_t random = random_next();
        const bool in = random >> 32 < (uint64_t)0x100000000u * (1 + 6 * kind) / 20;
        source.host[i] = in ? (uint8_t)(1 + random % 255) : 0;
    }
}

static gpst_bitmap place_bitmap(arena* a, uint32_t width, uint32_t height) {
    gpst_bitmap bitmap = GPST_ZERO;
    bitmap.width = width, bitmap.height = height;
    bitmap.pitch_bytes = pick_pitch((width + 7) / 8, 1);
    bitmap.data = take(a, (size_t)bitmap.pitch_bytes * (height - 1) + (width + 7) / 8, 1);
    return bitmap;
}

static void test_bits(uint32_t n_cases) {
    static const uint32_t widths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 160, 1000, 2048, 8199};
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        const bool packs = choice & 1;
        const uint32_t width = widths[random_below(20)], height = 1 + random_below(4),
                       n_items = 1 + random_below(MAX_ITEMS);
        gpst_image masks[MAX_ITEMS], device_masks[MAX_ITEMS];
        gpst_bitmap bitmaps[MAX_ITEMS], device_bitmaps[MAX_ITEMS];
        tidy = random_below(2);
        arenas_begin();
        for (uint32_t i = 0; i < n_items; i++) {
            masks[i] = place_image(packs ? &source : &output, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
            bitmaps[i] = place_bitmap(packs ? &output : &source, width, height);
        }
        fill_mask(choice % 4);
        arenas_upload(1);
        for (uint32_t i = 0; i < n_items; i++) {
            gpsti_mask_job job;
            CHECK_OK(gpsti_bitmap_job_init("test", packs ? GPSTI_MASK_PACK : GPSTI_MASK_UNPACK, &masks[i], &bitmaps[i],
                                           &job));
            gpsti_mask_rows_reference(&job, 0, job.height);
            device_masks[i] = image_on_device(packs ? &source : &output, &masks[i]);
            device_bitmaps[i] = bitmaps[i];
            device_bitmaps[i].data = on_device(packs ? &output : &source, bitmaps[i].data);
        }
        if (packs)
            CHECK_OK(gpst_mask_pack_launch(device_masks, device_bitmaps, n_items, stream));
        else
            CHECK_OK(gpst_mask_unpack_launch(device_bitmaps, device_masks, n_items, stream));
        arenas_compare(packs ? "pack" : "unpack", choice, width);
    }
    printf("bits: %u cases\n", n_cases);
}

/* ---- boxes ------------------------------------------------------------------------------------------ */
static void pick_size(uint32_t* width, uint32_t* height) {
    static const uint32_t widths[] = {1, 2, 3, 4, 5, 9, 31, 127, 128, 129, 131, 133, 260, 600};
    static const uint32_t heights[] = {1, 2, 3, 4, 5, 8, 23, 31, 32, 33, 35, 50, 64, 65};
    *width = widths[random_below(14)];
    *height = heights[random_below(14)];
}

static void test_boxes(uint32_t n_cases) {
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        const uint32_t n_items = 1 + random_below(MAX_ITEMS);
        gpst_image masks[MAX_ITEMS], device_masks[MAX_ITEMS];
        tidy = random_below(2);
        arenas_begin();
        gpst_box* const boxes = (gpst_box*)take(&output, n_items * sizeof(gpst_box), 8);
        for (uint32_t i = 0; i < n_items; i++) {
            uint32_t width, height;
            pick_size(&width, &height);
            masks[i] = place_image(&source, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
        }
        memset(source.host, 0, source.used);
        for (uint32_t i = 0; i < choice % 5 * choice % 40; i++)
            source.host[random_next() % source.used] = (uint8_t)(1 + random_below(255));
        arenas_upload(8);
        for (uint32_t i = 0; i < n_items; i++) {
            CHECK_OK(gpst_mask_box(&masks[i], &boxes[i]));
            device_masks[i] = image_on_device(&source, &masks[i]);
        }
        CHECK_OK(gpst_mask_box_launch(device_masks, (gpst_box*)on_device(&output, boxes), n_items, stream));
        arenas_compare("box", choice, n_items);
    }
    printf("boxes: %u cases\n", n_cases);
}

static void test_label_boxes(uint32_t n_cases) {
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        static const uint32_t all[] = {5, 300, 21, 256, 1};
        const uint32_t n_classes = all[choice % 5], unit = n_classes > 256 ? 2 : 1,
                       n_items = 1 + random_below(MAX_ITEMS);
        gpst_labels labels[MAX_ITEMS], device_labels[MAX_ITEMS];
        tidy = random_below(2);
        arenas_begin();
        gpst_box* const boxes = (gpst_box*)take(&output, n_items * n_classes * sizeof(gpst_box), 8);
        for (uint32_t i = 0; i < n_items; i++) {
            uint32_t width, height;
            pick_size(&width, &height);
            labels[i] = place_labels(&source, n_classes, width, height);
        }
        uint32_t label = 0;
        for (size_t i = 0; i < source.used / unit; i++) { /* runs, some of labels that are none */
            const uint64_t random = random_next();
            label =
                random % 9 < choice % 9 ? label : (uint32_t)(random >> 32) % 7 + (n_classes >= 256 ? n_classes - 5 : 0);
            if (unit == 1)
                source.host[i] = (uint8_t)label;
            else
                ((uint16_t*)(void*)source.host)[i] = (uint16_t)label;
        }
        arenas_upload(8);
        for (uint32_t i = 0; i < n_items; i++) {
            CHECK_OK(gpst_mask_label_boxes(&labels[i], boxes + (size_t)i * n_classes));
            device_labels[i] = labels_on_device(&source, &labels[i]);
        }
        CHECK_OK(gpst_mask_label_boxes_launch(device_labels, (gpst_box*)on_device(&output, boxes), n_items, stream));
        arenas_compare("label boxes", choice, n_classes);
    }
    printf("label boxes: %u cases\n", n_cases);
}

/* ---- windows ------------------------------------------------------------------------------------------- */
static void test_windows(uint32_t n_cases) {
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        const uint32_t op = choice % 6 + 1, size = choice / 6 % 2 ? 5 : 3, n_items = 1 + random_below(MAX_ITEMS);
        gpst_image from[MAX_ITEMS], to[MAX_ITEMS], device_from[MAX_ITEMS], device_to[MAX_ITEMS];
        uint32_t width, height;
        pick_size(&width, &height);
        tidy = random_below(2);
        arenas_begin();
        for (uint32_t i = 0; i < n_items; i++) {
            from[i] = place_image(&source, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
            to[i] = place_image(&output, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
        }
        fill_mask(choice / 12 % 4);
        arenas_upload(1);
        for (uint32_t i = 0; i < n_items; i++) {
            gpsti_window_job job;
            CHECK_OK(op <= 4 ? gpsti_morph_job_init(&from[i], (gpst_morph)op, size, &to[i], &job)
                             : gpsti_smooth_job_init(&from[i], (gpst_smooth)(op - 4), size, &to[i], &job));
            gpsti_window_rows_reference(&job, 0, height);
            device_from[i] = image_on_device(&source, &from[i]);
            device_to[i] = image_on_device(&output, &to[i]);
        }
        CHECK_OK(op <= 4
                     ? gpst_mask_morph_launch(device_from, (gpst_morph)op, size, device_to, n_items, stream)
                     : gpst_mask_smooth_launch(device_from, (gpst_smooth)(op - 4), size, device_to, n_items, stream));
        arenas_compare("window", choice, op * 10 + size);
    }
    printf("windows: %u cases\n", n_cases);
}

static void test_refine(uint32_t n_cases) {
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        const uint32_t unit = choice % 2 + 1, format = choice / 2 % 5, n_items = 1 + random_below(2);
        const uint32_t tolerance = choice % 12 == 0 ? 0 : choice % 12 == 1 ? 255 : random_below(200);
        gpst_labels from[2], to[2], device_from[2], device_to[2];
        gpst_image guides[2], device_guides[2];
        uint32_t width, height;
        pick_size(&width, &height);
        tidy = random_below(2);
        arenas_begin();
        for (uint32_t i = 0; i < n_items; i++) {
            from[i] = place_labels(&source, unit == 2 ? 1000 : 256, width, height);
            to[i] = place_labels(&output, unit == 2 ? 1000 : 256, width, height);
        }
        const size_t n_labels = source.used;
        for (uint32_t i = 0; format && i < n_items; i++)
            guides[i] = place_image(&source, width, height, (gpst_format)format, GPST_DTYPE_U8);
        for (size_t i = 0; i < source.used; i++) {
            const uint64_t random = random_next();
            source.host[i] = i < n_labels ? (uint8_t)(random % 3 * 127) : (uint8_t)(random >> 32);
        }
        arenas_upload(2);
        for (uint32_t i = 0; i < n_items; i++) {
            gpsti_window_job job;
            CHECK_OK(gpsti_refine_job_init(&from[i], format ? &guides[i] : NULL, tolerance, &to[i], &job));
            gpsti_window_rows_reference(&job, 0, height);
            device_from[i] = labels_on_device(&source, &from[i]);
            device_to[i] = labels_on_device(&output, &to[i]);
            if (format)
                device_guides[i] = image_on_device(&source, &guides[i]);
        }
        CHECK_OK(
            gpst_mask_refine_launch(device_from, format ? device_guides : NULL, tolerance, device_to, n_items, stream));
        arenas_compare("refine", choice, format * 10 + unit);
    }
    printf("refine: %u cases\n", n_cases);
}

/* ---- over time ----------------------------------------------------------------------------------------------- */
static gpst_image place_state(const gpst_mask_desc* desc, const gpst_image* mask) {
    gpst_image state;
    size_t bytes = 0;
    CHECK_OK(gpst_mask_query_state(desc, mask, &state));
    const bool up = random_below(3) == 0;
    state.pitch_bytes = tidy ? state.pitch_bytes : pick_pitch((size_t)state.pitch_bytes, up ? 8 : 2);
    CHECK_OK(gpst_image_bytes(&state, &bytes));
    state.data = take(&output, bytes, tidy ? 16 : 8);
    if (up) {
        state.data = (uint8_t*)state.data + (size_t)(state.height - 1) * (size_t)state.pitch_bytes;
        state.pitch_bytes = -state.pitch_bytes;
    }
    return state;
}

/* What flickers: a little everywhere, wholly at some pixels; now and then everywhere. */
static void next_frame(uint32_t frame) {
    const uint32_t kind = frame ? random_below(6) : 5;
    for (size_t i = 0; i < source.used; i++) {
        const uint64_t random = random_next();
        if (kind == 5)
            source.host[i] = (uint8_t)random;
        else if (kind == 4 || (kind > 0 && random % 16 == 0))
            source.host[i] = (uint8_t)(255 - source.host[i]);
        else if (kind > 0)
            source.host[i] = (uint8_t)(source.host[i] + (random >> 32) % 21 - 10);
    }
}

/* Frames go up one after the other; the means stay, and are compared after each. What the first row of a state holds is
   the device's own. */
static void test_time(uint32_t n_cases) {
    static const float weights[] = {0, 1, 0.5f, 0.01f}, changes[] = {0, 1, 0.1f}, cuts[] = {0, 2, 0.05f, 1e-9f, 0.4f};
    for (uint32_t choice = 0; choice < n_cases; choice++) {
        gpst_mask_desc desc = GPST_ZERO;
        uint32_t width, height;
        pick_size(&width, &height);
        width = choice % 4 == 0 ? width / 16 * 16 + 16 : width;
        desc.kind = GPST_MASK_TIME;
        desc.weight = weights[choice % 4], desc.change = changes[choice % 3], desc.cut = cuts[choice % 5];
        tidy = choice % 4 == 0 || random_below(2);
        arenas_begin();
        const gpst_image from = place_image(&source, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
        const gpst_image to = place_image(&output, width, height, GPST_FORMAT_GRAY, GPST_DTYPE_U8);
        const gpst_image state = place_state(&desc, &from);
        arenas_upload(32);
        const gpst_image device_from = image_on_device(&source, &from), device_to = image_on_device(&output, &to);
        const gpst_image device_state = image_on_device(&output, &state);
        for (uint32_t frame = 0; frame < 6; frame++) {
            const bool restart = (frame == 0 && choice % 8 != 7) || random_below(12) == 0;
            gpsti_mask_time_job job;
            next_frame(frame);
            CHECK_RT(GPSTI_RT(MemcpyAsync)(source.device + source.shift, source.host, source.used,
                                           GPSTI_RT(MemcpyHostToDevice), stream));
            CHECK_OK(gpsti_mask_time_job_init("test", &desc, &from, &to, &state, restart, &job));
            gpsti_mask_time_reference(&job);
            CHECK_OK(gpst_mask_time_launch(&desc, &device_from, &device_to, &device_state, restart, stream));
            CHECK_RT(GPSTI_RT(MemcpyAsync)(state.data, device_state.data, GPSTI_MASK_TIME_PARTS * sizeof(uint64_t),
                                           GPSTI_RT(MemcpyDeviceToHost), stream));
            arenas_compare("time", choice, frame);
        }
    }
    printf("time: %u cases\n", n_cases);
}

/* Top down, as all of them. */
static gpst_image upright(gpst_image image) {
    if (image.pitch_bytes < 0) {
        image.data = (uint8_t*)image.data + (ptrdiff_t)((image.height - 1) * image.pitch_bytes);
        image.pitch_bytes = -image.pitch_bytes;
    }
    return image;
}

/* ---- more than a launch holds --------------------------------------------------------------------------------- */
static void test_many_items(void) {
    enum { N = 300, W = 20, H = 6 };
    static gpst_image from[N], to[N], device_from[N], device_to[N];
    tidy = true;
    arenas_begin();
    for (uint32_t i = 0; i < N; i++) {
        from[i] = upright(place_image(&source, i % 200 == 199 ? W + 1 : W, H, GPST_FORMAT_GRAY, GPST_DTYPE_U8));
        to[i] = upright(place_image(&output, from[i].width, H, GPST_FORMAT_GRAY, GPST_DTYPE_U8));
    }
    fill_mask(1);
    arenas_upload(1);
    for (uint32_t i = 0; i < N; i++) {
        CHECK_OK(gpst_mask_morph(&from[i], GPST_MORPH_CLOSE, 5, &to[i], 1));
        device_from[i] = image_on_device(&source, &from[i]);
        device_to[i] = image_on_device(&output, &to[i]);
    }
    CHECK_OK(gpst_mask_morph_launch(device_from, GPST_MORPH_CLOSE, 5, device_to, N, stream));
    arenas_compare("many items", 0, N);
    printf("many items: %u\n", (unsigned)N);
}

/* ---- large, and a graph ----------------------------------------------------------------------------------------- */
/* Scores whose last class, and masks whose last rows, lie beyond 2^31 bytes. */
static void test_large(void) {
    gpst_logits logits = GPST_ZERO;
    gpst_labels labels = GPST_ZERO;
    gpst_image image = GPST_ZERO, mask = GPST_ZERO;
    large scores = large_open((size_t)301 * 1500 * 1250 * 4, true), out = large_open(1500 * 1250 * 2, false);
    logits.data = scores.host, logits.n_classes = labels.n_classes = 301;
    logits.width = labels.width = 1500, logits.height = labels.height = 1250;
    logits.dtype = GPST_DTYPE_F32, logits.layout = GPST_LAYOUT_CHW;
    labels.data = out.host;
    CHECK_OK(gpst_mask_argmax(&logits, &labels, 0));
    logits.data = scores.device, labels.data = out.device;
    CHECK_OK(gpst_mask_argmax_launch(&logits, &labels, 1, stream));
    large_close(&out, true, "argmax");
    image.data = scores.host, image.width = 49999, image.height = 45000;
    image.format = mask.format = GPST_FORMAT_GRAY;
    out = large_open((size_t)49999 * 45000, false);
    mask = image, mask.data = out.host;
    CHECK_OK(gpst_mask_threshold(&image, 100, &mask, 0));
    image.data = scores.device, mask.data = out.device;
    CHECK_OK(gpst_mask_threshold_launch(&image, 100, &mask, 1, stream));
    CHECK_OK(gpst_mask_morph_launch(&mask, GPST_MORPH_OPEN, 3, &image, 1, stream)); /* over the scores */
    CHECK_RT(GPSTI_RT(StreamSynchronize)(stream));
    image.data = scores.host, mask.data = out.host;
    CHECK_OK(gpst_mask_morph(&mask, GPST_MORPH_OPEN, 3, &image, 0));
    large_close(&out, true, "threshold");
    scores.bytes = (size_t)49999 * 45000;
    large_close(&scores, true, "open");
}

/* A graph keeps what it was told: argmax and its boxes, launched twice. */
static void test_graph(void) {
    GPSTI_RT(Graph_t) graph;
    gpsti_rt_graph_exec exec;
    gpst_logits logits, device_logits;
    gpst_labels labels, device_labels;
    tidy = true;
    arenas_begin();
    gpst_box* const boxes = (gpst_box*)take(&output, 5 * sizeof(gpst_box), 8);
    logits = place_logits(5, 40, 30, GPST_DTYPE_F32, GPST_LAYOUT_CHW);
    labels = place_labels(&output, 5, 90, 70);
    fill_scores(GPST_DTYPE_F32, 1);
    arenas_upload(8);
    device_logits = logits, device_logits.data = on_device(&source, logits.data);
    device_labels = labels_on_device(&output, &labels);
    CHECK_RT(GPSTI_RT(StreamBeginCapture)(stream, GPSTI_RT(StreamCaptureModeThreadLocal)));
    CHECK_OK(gpst_mask_argmax_launch(&device_logits, &device_labels, 1, stream));
    CHECK_OK(gpst_mask_label_boxes_launch(&device_labels, (gpst_box*)on_device(&output, boxes), 1, stream));
    CHECK_RT(GPSTI_RT(StreamEndCapture)(stream, &graph));
    CHECK_RT(GPSTI_RT(GraphInstantiateWithFlags)(&exec, graph, 0));
    memset(&device_logits, 0, sizeof device_logits);
    CHECK_OK(gpst_mask_argmax(&logits, &labels, 1));
    CHECK_OK(gpst_mask_label_boxes(&labels, boxes));
    for (int i = 0; i < 2; i++) {
        CHECK_RT(GPSTI_RT(GraphLaunch)(exec, stream));
        arenas_compare("graph", 0, 0);
    }
    CHECK_RT(GPSTI_RT(GraphExecDestroy)(exec));
    CHECK_RT(GPSTI_RT(GraphDestroy)(graph));
    printf("graph: 1\n");
}

int main(int argc, char** argv) {
    const bool quick = argc > 1 && strcmp(argv[1], "--quick") == 0;
    const uint32_t scale = quick ? 1 : 12;
    if (!begin())
        return 77;
    test_argmax(8 * 17 * scale);
    test_thresholds(40 * scale);
    test_bits(40 * scale);
    test_boxes(30 * scale);
    test_label_boxes(30 * scale);
    test_windows(48 * scale);
    test_refine(40 * scale);
    test_time(40 * scale);
    test_many_items();
    if (!quick) {
        test_graph();
        test_large();
    }
    end();
    return 0;
}
