/* tools/gpustage/mask.c -- equirectangular masks as files, and the mask of every view made from one that is for all
   frames. Knows no frame. */
#include "mask.h"

#include "console.h"
#include "files.h"
#include "remarks.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the mask -------------------------------------------------------------------- */

static bool mask_is_set(const uint8_t* at, gpst_dtype dtype) {
    uint16_t half;
    float value;
    if (dtype == GPST_DTYPE_F32) {
        memcpy(&value, at, sizeof value);
        return value < 0 || value > 0;
    }
    if (dtype == GPST_DTYPE_U8)
        return *at != 0;
    memcpy(&half, at, sizeof half);
    return (dtype == GPST_DTYPE_U16 ? half : half & 0x7fff) != 0; /* of F16 without its sign */
}

/* Of the pixel at `at`: its colours, and what alpha it has. */
static bool mask_keeps(const uint8_t* at, uint32_t colours, gpst_dtype dtype, uint32_t bytes_each) {
    bool keep = false;
    for (uint32_t c = 0; c < colours; c++)
        keep = keep || mask_is_set(at + (size_t)c * bytes_each, dtype);
    return keep;
}

uint32_t mask_set_pixels(const gpst_image* from, const gpst_image* to) {
    const uint32_t channels = gpst_format_channels(from->format);
    const uint32_t colours = channels > 3 ? 3 : channels, bytes_each = gpst_dtype_bytes(from->dtype);
    uint32_t found = 0;
    for (uint32_t y = 0; y < from->height; y++) {
        const uint8_t* in = (const uint8_t*)from->data + (int64_t)y * from->pitch_bytes;
        uint8_t* const out = (uint8_t*)to->data + (int64_t)y * to->pitch_bytes;
        for (uint32_t x = 0; x < from->width; x++, in += (size_t)channels * bytes_each) {
            const bool keep = mask_keeps(in, colours, from->dtype, bytes_each);
            out[x] = keep ? 255 : 0;
            found |= keep ? MASK_KEEPS : MASK_DROPS;
            if (channels > 3 && mask_is_set(in + (size_t)3 * bytes_each, from->dtype) != keep)
                found |= MASK_ALPHA;
        }
    }
    return found;
}

/* As its EXIF says, as frames are. */
static gpst_result mask_plan_turn(codec* worker, const void* data, size_t bytes, mask_plan* plan, char* reason) {
    gpst_metadata metadata;
    gpst_placement placement;
    gpst_result result = gpst_metadata_read(data, bytes, &metadata);
    if (!GPST_FAILED(result))
        result = gpst_placement_of(NULL, &metadata, &plan->stored, &placement);
    if (GPST_FAILED(result) || !placement.moves)
        return result;
    plan->orientation = placement.orientation;
    plan->turned.width = placement.width;
    plan->turned.height = placement.height;
    plan->turned.pitch_bytes = (int64_t)gpst_image_row_bytes(&plan->turned);
    return codec_check_made(worker, &plan->turned, plan->bytes, reason);
}

#define MASK_ALIGN 64 /* of the second picture in the room */

gpst_result mask_plan_of(codec* worker, const void* data, size_t bytes, bool orients, mask_plan* out, char* reason) {
    size_t turned_bytes = 0;
    memset(out, 0, sizeof *out);
    out->orientation = 1;
    gpst_result result = codec_read_header(worker, data, bytes, NULL, &out->kind, &out->stored, reason);
    if (GPST_FAILED(result))
        return result;
    out->stored.pitch_bytes = (int64_t)gpst_image_row_bytes(&out->stored);
    out->turned = out->stored;
    result = gpst_image_bytes(&out->stored, &out->bytes);
    if (!GPST_FAILED(result) && orients)
        result = mask_plan_turn(worker, data, bytes, out, reason);
    if (!GPST_FAILED(result) && out->orientation != 1)
        result = gpst_image_bytes(&out->turned, &turned_bytes);
    out->bytes += turned_bytes > 0 ? MASK_ALIGN + turned_bytes : 0;
    return result;
}

gpst_result mask_decode(codec* worker, const void* data, size_t bytes, const mask_plan* plan, void* room,
                        gpst_image* picture, char* reason) {
    gpst_image stored = plan->stored;
    stored.data = room;
    *picture = stored;
    const gpst_result result = codec_decode(worker, data, bytes, plan->kind, &stored, reason);
    if (GPST_FAILED(result) || plan->orientation == 1)
        return result;
    const size_t stored_bytes = (size_t)stored.pitch_bytes * stored.height;
    *picture = plan->turned;
    picture->data = (uint8_t*)room + (stored_bytes + MASK_ALIGN - 1) / MASK_ALIGN * MASK_ALIGN;
    return gpst_image_orient(&stored, plan->orientation, picture);
}

void mask_remark(const char* path, uint32_t found) {
    const uint32_t whole = found & (MASK_KEEPS | MASK_DROPS);
    if (found & MASK_ALPHA)
        remarks_add("mask_alpha", path, "the mask's alpha does not count, and says otherwise than its colours");
    if (whole == MASK_KEEPS)
        remarks_add("mask_keeps_all", path, "the mask keeps every pixel");
    if (whole == MASK_DROPS)
        remarks_add("mask_keeps_none", path, "the mask keeps no pixel");
}

void mask_remark_view(const char* name, const gpst_image* view) {
    const uint8_t* const pixels = (const uint8_t*)view->data;
    const size_t n = (size_t)view->width * view->height;
    if (pixels[0] == 0 && !memcmp(pixels, pixels + 1, n - 1))
        remarks_add("view_keeps_none", name, "the mask keeps no pixel of the view");
}

/* File, decoded picture and mask. */
static gpst_result mask_check_budget(const options* asked, uint64_t bytes, char* reason) {
    char found[CODEC_AMOUNT_BYTES], most[CODEC_AMOUNT_BYTES];
    if (asked->max_host_bytes == 0 || bytes <= asked->max_host_bytes)
        return GPST_OK;
    codec_format_amount(bytes, true, found);
    codec_format_amount(asked->max_host_bytes, false, most);
    snprintf(reason, CODEC_REASON_BYTES, "takes %s; at most %s here (--max-host-bytes)", found, most);
    return GPST_ERROR_BUDGET;
}

static gpst_result mask_take(mask* self, const options* asked, codec* worker, const text* file, char* reason) {
    gpst_image picture = GPST_ZERO;
    mask_plan plan;
    gpst_result result = mask_plan_of(worker, file->data, file->bytes, !asked->ignore_orientation, &plan, reason);
    if (GPST_FAILED(result))
        return result;
    const size_t pixels = (size_t)plan.turned.width * plan.turned.height;
    result = mask_check_budget(asked, (uint64_t)file->bytes + plan.bytes + pixels, reason);
    if (GPST_FAILED(result))
        return result;
    void* const room = malloc(plan.bytes);
    self->image.format = GPST_FORMAT_GRAY;
    self->image.width = plan.turned.width;
    self->image.height = plan.turned.height;
    self->image.pitch_bytes = plan.turned.width;
    self->image.data = malloc(pixels);
    result = GPST_ERROR_MEMORY;
    if (room && self->image.data)
        result = mask_decode(worker, file->data, file->bytes, &plan, room, &picture, reason);
    if (!GPST_FAILED(result))
        mask_remark(asked->mask, mask_set_pixels(&picture, &self->image));
    free(room);
    return result;
}

/* What is no regular file may never end. */
static const char* mask_read(const char* path, const codec_limits* limits, text* out) {
    file_info info;
    const char* const problem = files_query(path, &info);
    if (problem)
        return problem;
    if (!codec_fits(limits, info.bytes))
        return "is too large (--max-item-bytes)";
    return info.is_regular ? files_read(path, out) : files_read_at_most(path, (size_t)codec_most_bytes(limits), out);
}

int mask_load(mask* self, const options* asked) {
    text file = GPST_ZERO;
    char reason[CODEC_REASON_BYTES] = "";
    memset(self, 0, sizeof *self);
    if (!asked->mask || asked->mask_by_frame)
        return EXIT_DONE;
    const char* problem = mask_read(asked->mask, &asked->limits, &file);
    codec* const worker = problem ? NULL : codec_create();
    if (worker)
        codec_set_limits(worker, &asked->limits);
    if (!problem) {
        const gpst_result result = worker ? mask_take(self, asked, worker, &file, reason) : GPST_ERROR_MEMORY;
        problem = !GPST_FAILED(result)            ? NULL
                  : result == GPST_ERROR_MEMORY ? text_out_of_memory
                  : reason[0]                   ? reason
                                                : gpst_result_text(result);
    }
    codec_destroy(worker);
    self->file_bytes = file.bytes;
    self->file_hash = text_hash(file.data, file.bytes);
    text_free(&file);
    return problem ? console_refuse(asked->command_name, problem, "--mask=%s: %s", asked->mask, problem) : EXIT_DONE;
}

void mask_free(mask* self) {
    for (uint32_t i = 0; i < self->n_views; i++)
        free(self->views[i].data);
    free(self->views);
    free(self->image.data);
    memset(self, 0, sizeof *self);
}

/* ---- the masks of the views --------------------------------------------------------- */

/* The geometry of the views for one channel, looked up where a warp of frames looks its mask up. */
static gpst_result mask_make_warp(const options* asked, const gpst_view* views, uint32_t n_views, gpst_warp** out) {
    gpst_warp_desc desc = GPST_ZERO;
    desc.map = GPST_MAP_EQUIRECT;
    desc.filter = GPST_FILTER_NEAREST;
    desc.convention = (gpst_convention)asked->convention;
    desc.views = views;
    desc.n_views = n_views;
    desc.width = asked->width;
    desc.height = asked->height;
    desc.format = GPST_FORMAT_GRAY;
    desc.dtype = GPST_DTYPE_U8;
    return gpst_warp_create(&desc, out);
}

static gpst_result mask_encode(mask_view* view, codec* worker, const gpst_image* gray, char* reason) {
    codec_options settings;
    memset(&settings, 0, sizeof settings);
    size_t bytes = codec_encode_bound(CODEC_PNG, gray, &settings);
    uint8_t* const room = bytes ? (uint8_t*)malloc(bytes) : NULL;
    if (!room)
        return GPST_ERROR_MEMORY;
    const gpst_result result = codec_encode(worker, CODEC_PNG, gray, &settings, room, &bytes, reason);
    uint8_t* const fitting = GPST_FAILED(result) ? NULL : (uint8_t*)realloc(room, bytes ? bytes : 1);
    view->data = fitting ? fitting : room;
    view->bytes = bytes;
    return result;
}

static gpst_result mask_warp_and_encode(mask* self, const gpst_warp* warp, codec* worker, char* reason) {
    gpst_image shape;
    gpst_warp_query_output(warp, &shape);
    const size_t bytes = (size_t)shape.pitch_bytes * shape.height;
    gpst_image* const outputs = (gpst_image*)calloc(self->n_views, sizeof *outputs);
    uint8_t* const pixels = (uint8_t*)calloc(self->n_views, bytes);
    gpst_result result = outputs && pixels ? GPST_OK : GPST_ERROR_MEMORY;
    for (uint32_t i = 0; !GPST_FAILED(result) && i < self->n_views; i++) {
        outputs[i] = shape;
        outputs[i].data = pixels + i * bytes;
    }
    if (!GPST_FAILED(result))
        result = gpst_warp_run(warp, &self->image, outputs, self->n_views, 1);
    for (uint32_t i = 0; !GPST_FAILED(result) && i < self->n_views; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%02u", (unsigned)i);
        result = mask_encode(&self->views[i], worker, &outputs[i], reason);
        mask_remark_view(name, &outputs[i]);
    }
    free(pixels);
    free(outputs);
    return result;
}

int mask_make_views(mask* self, const options* asked) {
    gpst_warp* warp = NULL;
    char reason[CODEC_REASON_BYTES] = "";
    if (!asked->mask_out)
        return EXIT_DONE;
    if (!codec_available(CODEC_PNG)) {
        console_error("--mask-out: PNG is not built into this gpustage");
        return EXIT_MACHINE;
    }
    if (asked->mask_by_frame)
        return EXIT_DONE;
    codec* const worker = codec_create();
    self->n_views = asked->n_views;
    self->views = (mask_view*)calloc(self->n_views, sizeof *self->views);
    gpst_result result = worker && self->views ? mask_make_warp(asked, asked->views, asked->n_views, &warp) : GPST_ERROR_MEMORY;
    if (!GPST_FAILED(result))
        result = mask_warp_and_encode(self, warp, worker, reason);
    gpst_warp_destroy(warp);
    if (!self->views)
        self->n_views = 0;
    codec_destroy(worker);
    if (!GPST_FAILED(result))
        return EXIT_DONE;
    console_error("--mask-out: %s", reason[0] ? reason : gpst_result_text(result));
    return EXIT_MACHINE;
}

/* ---- the mask of a view of a frame that was taken turned ------------------------------ */

/* The same view from within the panorama: its rotation is transposed(pose) * view. */
static gpst_view mask_turn(const gpst_view* pose, const gpst_view* view) {
    const double degrees = 57.295779513082321;
    gpst_view turned = *view;
    double a[9], b[9], m[9];
    gpst_view_rotation(pose, a);
    gpst_view_rotation(view, b);
    for (int r = 0; r < 3; r++)
        for (int c = 0; c < 3; c++)
            m[3 * r + c] = a[r] * b[c] + a[3 + r] * b[3 + c] + a[6 + r] * b[6 + c];
    const double level = hypot(m[3], m[4]);
    const bool steep = level < 1e-12; /* straight up or down: yaw and roll turn the same way */
    turned.yaw = degrees * (steep ? atan2(-m[6], m[0]) : atan2(m[2], m[8]));
    turned.pitch = degrees * atan2(-m[5], level);
    turned.roll = steep ? 0.0 : degrees * atan2(m[3], m[4]);
    return turned;
}

gpst_result mask_make_turned(const mask* self, const options* asked, const gpst_view* pose, uint32_t view,
                             gpst_image* out) {
    const gpst_view turned = mask_turn(pose, &asked->views[view]);
    gpst_warp* warp = NULL;
    gpst_result result = mask_make_warp(asked, &turned, 1, &warp);
    out->data = NULL;
    if (!GPST_FAILED(result)) {
        gpst_warp_query_output(warp, out);
        out->data = malloc((size_t)out->pitch_bytes * out->height);
        result = out->data ? gpst_warp_run(warp, &self->image, out, 1, 1) : GPST_ERROR_MEMORY;
    }
    gpst_warp_destroy(warp);
    return result;
}
